/* Coefficients and moments of a block of groups at once, in loops that a compiler vectorises. */
#include "toy/lab/kernel.h"

#include "core/base/vector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef double lane4 __attribute__((vector_size(32), aligned(8), may_alias));

gl_status lab_moments_init(lab_moments *m, size_t n, gl_error *err) {
  *m = (lab_moments){.n = n};
  m->first = calloc(n, sizeof *m->first);
  m->second = calloc(n, n * sizeof *m->second);
  if (m->first == NULL || m->second == NULL) {
    lab_moments_fini(m);
    return gl_fail_memory(err, "the moments of an estimator");
  }
  return GL_OK;
}

void lab_moments_fini(lab_moments *m) {
  free(m->first);
  free(m->second);
  *m = (lab_moments){0};
}

gl_status lab_scratch_init(lab_scratch *s, size_t n, gl_error *err) {
  s->c = calloc(n, LAB_BLOCK * sizeof *s->c);
  return s->c == NULL ? gl_fail_memory(err, "the coefficients of a block of groups") : GL_OK;
}

void lab_scratch_fini(lab_scratch *s) {
  free(s->c);
  *s = (lab_scratch){0};
}

/* What all responses of a group share. */
typedef struct shared {
  double shift[LAB_BLOCK];       /* baseline b, before the leave-one-out gain */
  double gain[LAB_BLOCK];        /* 1/s, and G/(G-1) where the own reward is left out */
  double denominator[LAB_BLOCK]; /* D */
  double pull[LAB_BLOCK];        /* LAB_WEIGHTED: sum_i a_i rho_i open_i, over sum_j z_j w_j */
  double w[LAB_BLOCK], w2[LAB_BLOCK], aw[LAB_BLOCK], aw2[LAB_BLOCK];
} shared;

INLINE void baseline_and_scale(const lab_form *f, const lab_block *k, shared *s) {
  const double size = (double)k->group_size;
  const int alone = k->group_size == 1; /* has no others: baseline 0, deviation 0 */
  const int own =
      f->baseline == LAB_BASELINE_CONSTANT || (alone && f->baseline == LAB_BASELINE_LEAVE_ONE_OUT);
  const double gain = !own && f->baseline == LAB_BASELINE_LEAVE_ONE_OUT ? size / (size - 1) : 1;
  for (size_t b = 0; b < LAB_BLOCK; ++b) {
    s->shift[b] = f->baseline == LAB_BASELINE_CONSTANT ? f->constant : 0;
    s->gain[b] = gain;
  }
  double mean[LAB_BLOCK] = {0}, square[LAB_BLOCK] = {0};
  if (own && !f->group_std) return;
  for (size_t y = 0; y < f->n; ++y)
    for (size_t b = 0; b < LAB_BLOCK; ++b) mean[b] += k->count[y * LAB_BLOCK + b] * f->reward[y];
  for (size_t b = 0; b < LAB_BLOCK; ++b) mean[b] /= size;
  if (!own) memcpy(s->shift, mean, sizeof mean);
  if (!f->group_std) return;
  for (size_t y = 0; y < f->n; ++y)
    for (size_t b = 0; b < LAB_BLOCK; ++b) {
      double d = f->reward[y] - mean[b];
      square[b] += k->count[y * LAB_BLOCK + b] * d * d;
    }
  /* Equal rewards leave squares of rounding only: the deviation is 0 then, as core/policy has it.
   */
  double scale = 0;
  for (size_t y = 0; y < f->n; ++y) scale = fmax(scale, fabs(f->reward[y]));
  const double rounding = size * scale * scale * 0x1p-96;
  const double degrees = alone ? 1 : size - f->ddof;
  for (size_t b = 0; b < LAB_BLOCK; ++b) {
    double deviation = (square[b] > rounding ? sqrt(square[b] / degrees) : 0) + f->std_eps;
    s->gain[b] = square[b] > rounding || own ? gain / (deviation > 0 ? deviation : 1) : 1;
  }
}

INLINE void group_denominator(const lab_form *f, const lab_block *k, shared *s) {
  double upper[LAB_BLOCK] = {0}, lower[LAB_BLOCK] = {0};
  const double one = f->denominator == LAB_MEAN_RATIO || f->denominator == LAB_MEAN;
  for (size_t y = 0; y < f->n; ++y) {
    double z = f->denominator == LAB_MEAN_RATIO ? f->w[y] : f->z[y];
    double top = f->denominator == LAB_SELF_NORMALISED ? z * z
                 : f->denominator == LAB_WEIGHTED      ? z * f->w[y]
                                                       : z;
    double below = one != 0 ? 1 : z;
    for (size_t b = 0; b < LAB_BLOCK; ++b) {
      upper[b] += k->count[y * LAB_BLOCK + b] * top;
      lower[b] += k->count[y * LAB_BLOCK + b] * below;
    }
  }
  for (size_t b = 0; b < LAB_BLOCK; ++b) {
    s->denominator[b] = upper[b] / lower[b];
    s->pull[b] = 1 / upper[b];
  }
}

INLINE void tally(shared *restrict s, size_t b, double count, double ratio, double a) {
  double weighted = a * ratio;
  s->w[b] += count * ratio;
  s->w2[b] += count * ratio * ratio;
  s->aw[b] += count * weighted;
  s->aw2[b] += count * weighted * weighted;
}

INLINE void local_coefficients(const lab_form *f, const lab_block *k, shared *restrict s,
                               double *restrict c) {
  const double share = 1 / (double)k->group_size;
  for (size_t y = 0; y < f->n; ++y) {
    const double *count = k->count + y * LAB_BLOCK;
    double *restrict out = c + y * LAB_BLOCK;
    const double r = f->reward[y], up = f->up[y] * share, down = f->down[y] * share;
    const double extra = f->extra[y] * share, ratio = f->ratio[y];
    for (size_t b = 0; b < LAB_BLOCK; ++b) {
      double a = (r - s->shift[b]) * s->gain[b];
      out[b] = count[b] * (a * (a > 0 ? up : down) + extra);
      tally(s, b, count[b], ratio, a);
    }
  }
}

INLINE void coupled_coefficients(const lab_form *f, const lab_block *k, shared *restrict s,
                                 double *restrict c) {
  const double share = 1 / (double)k->group_size;
  double all[LAB_BLOCK] = {0};
  for (size_t y = 0; y < f->n; ++y) {
    const double *count = k->count + y * LAB_BLOCK;
    double *restrict out = c + y * LAB_BLOCK;
    const double r = f->reward[y], w = f->w[y], u = f->u[y], v = f->v[y];
    const double low = f->clip_low, high = f->clip_high, extra = f->extra[y] * share;
    for (size_t b = 0; b < LAB_BLOCK; ++b) {
      double a = (r - s->shift[b]) * s->gain[b];
      double rho = w / (u * s->denominator[b] + v);
      /* rho > high where a > 0, rho < low elsewhere; not nested, for the vectoriser. */
      double side = a > 0 ? rho : -rho, limit = a > 0 ? high : -low;
      double open = side > limit ? 0 : 1;
      double term = a * rho * open * share;
      out[b] = count[b] * (term + extra);
      all[b] += count[b] * term;
      tally(s, b, count[b], rho, a);
    }
  }
  if (!f->through_denominator) return;
  for (size_t y = 0; y < f->n; ++y) {
    const double zw = f->z[y] * f->w[y];
    for (size_t b = 0; b < LAB_BLOCK; ++b)
      c[y * LAB_BLOCK + b] -= k->count[y * LAB_BLOCK + b] * zw * s->pull[b] * all[b];
  }
}

INLINE double total_of(const lane4 *v) { /* by value it would need AVX in its callers */
  return ((*v)[0] + (*v)[1]) + ((*v)[2] + (*v)[3]);
}

/* m2[i][j] += sum_b w_b c_i c_j, two rows by two at a time so that every load is used twice. */
INLINE void second_moments(const double *weight, const double *c, size_t n, double *m2) {
  double left[2 * LAB_BLOCK];
  for (size_t i = 0; i < n; i += 2) {
    const size_t i2 = i + 1 < n ? i + 1 : i;
    for (size_t b = 0; b < LAB_BLOCK; ++b) {
      left[b] = weight[b] * c[i * LAB_BLOCK + b];
      left[LAB_BLOCK + b] = weight[b] * c[i2 * LAB_BLOCK + b];
    }
    for (size_t j = 0; j <= i; j += 2) {
      const size_t j2 = j + 1 < n ? j + 1 : j;
      const double *a = c + j * LAB_BLOCK, *a2 = c + j2 * LAB_BLOCK;
      lane4 s00 = {0}, s01 = {0}, s10 = {0}, s11 = {0};
      for (size_t b = 0; b < LAB_BLOCK; b += 4) {
        lane4 x0 = *(const lane4 *)(left + b), x1 = *(const lane4 *)(left + LAB_BLOCK + b);
        lane4 y0 = *(const lane4 *)(a + b), y1 = *(const lane4 *)(a2 + b);
        s00 += x0 * y0;
        s01 += x0 * y1;
        s10 += x1 * y0;
        s11 += x1 * y1;
      }
      m2[i * n + j] += total_of(&s00);
      if (j2 != j && j2 <= i) m2[i * n + j2] += total_of(&s01);
      if (i2 != i) m2[i2 * n + j] += total_of(&s10);
      if (i2 != i && j2 != j) m2[i2 * n + j2] += total_of(&s11);
    }
  }
}

CLONES static void run_block(const lab_form *f, const lab_block *k, double *c, lab_moments *m) {
  shared s;
  memset(&s, 0, sizeof s);
  baseline_and_scale(f, k, &s);
  if (f->denominator == LAB_LOCAL) {
    local_coefficients(f, k, &s, c);
  } else {
    group_denominator(f, k, &s);
    coupled_coefficients(f, k, &s, c);
  }
  second_moments(k->weight, c, f->n, m->second);
  const double share = 1 / (double)k->group_size;
  for (size_t y = 0; y < f->n; ++y) {
    lane4 sum = {0};
    for (size_t b = 0; b < LAB_BLOCK; b += 4)
      sum += *(const lane4 *)(k->weight + b) * *(const lane4 *)(c + y * LAB_BLOCK + b);
    m->first[y] += total_of(&sum);
  }
  for (size_t b = 0; b < LAB_BLOCK; ++b) {
    const double weight = k->weight[b];
    m->total += weight;
    m->w += weight * s.w[b] * share;
    m->w2 += weight * s.w2[b] * share;
    m->aw += weight * s.aw[b] * share;
    m->aw2 += weight * s.aw2[b] * share;
    /* All weights zero is a group that says nothing: effective size 0. */
    if (s.w2[b] > 0) m->ess += weight * share * s.w[b] * (s.w[b] / s.w2[b]);
  }
}

void lab_kernel(const lab_form *f, const lab_block *b, lab_scratch *s, lab_moments *m) {
  run_block(f, b, s->c, m);
}

void lab_moments_mirror(lab_moments *m) {
  for (size_t i = 0; i < m->n; ++i)
    for (size_t j = 0; j < i; ++j) m->second[j * m->n + i] = m->second[i * m->n + j];
}
