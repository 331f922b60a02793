/* Coefficients and moments of a block of groups at once, in loops that a compiler vectorises. */
#include "toy/lab/kernel.h"

#include "core/base/vector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* Loops run over four groups at once, a lane each, and then over responses, so that a group's sums
 * stay in registers; for every group they add in the order of the responses. */
#define AT(p) (*(lane4 *)(p))
#define AT_CONST(p) (*(const lane4 *)(p))

/* What all responses of four groups share. */
typedef struct shared {
  lane4 shift;       /* baseline b, before the leave-one-out gain */
  lane4 gain;        /* 1/s, and G/(G-1) where the own reward is left out */
  lane4 denominator; /* D */
  lane4 inverse;     /* 1 / D */
  lane4 pull;        /* LAB_WEIGHTED: 1 over sum_j z_j w_j */
} shared;

/* Sums over the responses of each group: of ratios, of their squares, of both with advantages. */
typedef struct tallies {
  double w[LAB_BLOCK], w2[LAB_BLOCK], aw[LAB_BLOCK], aw2[LAB_BLOCK];
} tallies;

/* What holds for every group of a block. */
typedef struct common {
  double size, share, constant, gain, rounding, degrees;
  int own; /* the baseline is the constant, the group's rewards are not asked */
} common;

INLINE void common_of(const lab_form *f, const lab_block *k, common *c) {
  const int alone = k->group_size == 1; /* has no others: baseline 0, deviation 0 */
  double scale = 0;
  c->size = (double)k->group_size;
  c->share = 1 / c->size;
  c->own =
      f->baseline == LAB_BASELINE_CONSTANT || (alone && f->baseline == LAB_BASELINE_LEAVE_ONE_OUT);
  c->constant = f->baseline == LAB_BASELINE_CONSTANT ? f->constant : 0;
  c->gain = !c->own && f->baseline == LAB_BASELINE_LEAVE_ONE_OUT ? c->size / (c->size - 1) : 1;
  /* Equal rewards leave squares of rounding only: the deviation is 0 then, as core/policy has it.
   */
  for (size_t y = 0; y < f->n; ++y) scale = fmax(scale, fabs(f->reward[y]));
  c->rounding = c->size * scale * scale * 0x1p-96;
  c->degrees = alone ? 1 : c->size - f->ddof;
}

/* Divides the gain of four groups by their rewards' deviation. */
INLINE void group_scale(const lab_form *f, const common *c, const double *count, const lane4 *mean,
                        shared *s) {
  lane4 square = {0};
  for (size_t y = 0; y < f->n; ++y) {
    const lane4 d = f->reward[y] - *mean;
    square += AT_CONST(count + y * LAB_BLOCK) * d * d;
  }
  for (int l = 0; l < 4; ++l) {
    const int spread = square[l] > c->rounding;
    const double deviation = (spread ? sqrt(square[l] / c->degrees) : 0) + f->std_eps;
    s->gain[l] = spread || c->own ? c->gain / (deviation > 0 ? deviation : 1) : 1;
  }
}

/* Sums over the responses of four groups: of rewards, and of D's numerator and denominator. In one
 * loop, because each of them waits for its own last addition. */
typedef struct group_sums {
  lane4 reward, upper, lower;
} group_sums;

INLINE void sum_groups(const lab_form *f, const double *count, group_sums *sums) {
  const int ratio = f->denominator == LAB_MEAN_RATIO;
  lane4 reward = {0}, upper = {0}, lower = {0};
  for (size_t y = 0; y < f->n; ++y) {
    const lane4 n = AT_CONST(count + y * LAB_BLOCK);
    const double z = ratio ? f->w[y] : f->z[y];
    const double top = f->denominator == LAB_SELF_NORMALISED ? z * z
                       : f->denominator == LAB_WEIGHTED      ? z * f->w[y]
                                                             : z;
    reward += n * f->reward[y];
    upper += n * top;
    lower += n * z;
  }
  *sums = (group_sums){reward, upper, lower};
}

INLINE void sum_rewards(const lab_form *f, const double *count, lane4 *reward) {
  *reward = (lane4){0};
  for (size_t y = 0; y < f->n; ++y) *reward += AT_CONST(count + y * LAB_BLOCK) * f->reward[y];
}

INLINE void baseline_and_scale(const lab_form *f, const common *c, const double *count,
                               const lane4 *reward, shared *s) {
  const lane4 mean = *reward / c->size;
  s->shift = (lane4){0} + c->constant;
  if (!c->own) s->shift = mean;
  s->gain = (lane4){0} + c->gain;
  if (f->group_std) group_scale(f, c, count, &mean, s);
}

INLINE void group_denominator(const lab_form *f, const common *c, const group_sums *sums,
                              shared *s) {
  lane4 lower = sums->lower;
  if (f->denominator == LAB_MEAN_RATIO || f->denominator == LAB_MEAN) lower = (lane4){0} + c->size;
  s->denominator = sums->upper / lower;
  s->inverse = lower / sums->upper;
  if (f->through_denominator) s->pull = 1 / sums->upper;
}

/* Adds `count` copies of a response; returns through *weighted the sum of their a w. */
INLINE void tally(lane4 sums[4], const lane4 *count, const lane4 *ratio, const lane4 *a,
                  lane4 *weighted) {
  const lane4 times = *a * *ratio, all = *count * *ratio;
  *weighted = *count * times;
  sums[0] += all;
  sums[1] += all * *ratio;
  sums[2] += *weighted;
  sums[3] += *weighted * times;
}

INLINE void put_tallies(tallies *t, size_t b, const lane4 sums[4]) {
  AT(t->w + b) = sums[0];
  AT(t->w2 + b) = sums[1];
  AT(t->aw + b) = sums[2];
  AT(t->aw2 + b) = sums[3];
}

INLINE void local_coefficients(const lab_form *f, const common *k, const double *restrict counts,
                               const shared *s, lane4 sums[4], double *restrict c) {
  for (size_t y = 0; y < f->n; ++y) {
    const lane4 count = AT_CONST(counts + y * LAB_BLOCK);
    const lane4 up = (lane4){0} + f->up[y] * k->share, down = (lane4){0} + f->down[y] * k->share;
    const lane4 ratio = (lane4){0} + f->ratio[y], a = (f->reward[y] - s->shift) * s->gain;
    const mask4 plus = a > 0;
    const lane4 slope = (lane4)(((mask4)up & plus) | ((mask4)down & ~plus));
    lane4 weighted;
    AT(c + y * LAB_BLOCK) = count * (a * slope + f->extra[y] * k->share);
    tally(sums, &count, &ratio, &a, &weighted);
  }
}

/* Which of two shapes of rho = w / (u D + v), of which the first is that of most algorithms. */
typedef enum coupled_shape {
  SHAPE_PLAIN, /* u = 1, v = 0, and nothing is clipped */
  SHAPE_GENERAL
} coupled_shape;

INLINE coupled_shape shape_of(const lab_form *f) {
  int plain = f->clip_low == -INFINITY && f->clip_high == INFINITY;
  for (size_t y = 0; y < f->n; ++y) plain = plain && f->u[y] == 1 && f->v[y] == 0;
  return plain ? SHAPE_PLAIN : SHAPE_GENERAL;
}

INLINE void coupled_coefficients(const lab_form *f, const common *k, coupled_shape shape,
                                 const double *restrict counts, const shared *s, lane4 sums[4],
                                 double *restrict c) {
  lane4 all = {0};
  for (size_t y = 0; y < f->n; ++y) {
    const lane4 count = AT_CONST(counts + y * LAB_BLOCK), a = (f->reward[y] - s->shift) * s->gain;
    lane4 rho, term;
    if (shape == SHAPE_PLAIN) {
      rho = f->w[y] * s->inverse;
      tally(sums, &count, &rho, &a, &term);
    } else {
      rho = f->w[y] / (f->u[y] * s->denominator + f->v[y]);
      tally(sums, &count, &rho, &a, &term);
      const mask4 plus = a > 0;
      const mask4 closed = (plus & (rho > f->clip_high)) | (~plus & (rho < f->clip_low));
      term = (lane4)((mask4)term & ~closed);
    }
    term *= k->share;
    AT(c + y * LAB_BLOCK) = term + count * (f->extra[y] * k->share);
    if (f->through_denominator) all += term;
  }
  if (!f->through_denominator) return;
  for (size_t y = 0; y < f->n; ++y)
    AT(c + y * LAB_BLOCK) -= AT_CONST(counts + y * LAB_BLOCK) * (f->z[y] * f->w[y]) * s->pull * all;
}

/* Coefficients c [n * LAB_BLOCK] and tallies of a block's groups. */
INLINE void coefficients(const lab_form *f, const lab_block *k, double *c, tallies *t) {
  common shared_by_all;
  common_of(f, k, &shared_by_all);
  const coupled_shape shape = f->denominator == LAB_LOCAL ? SHAPE_GENERAL : shape_of(f);
  for (size_t b = 0; b < LAB_BLOCK; b += 4) {
    const double *count = k->count + b;
    lane4 sums[4] = {{0}};
    shared s;
    if (f->denominator == LAB_LOCAL) {
      lane4 reward;
      sum_rewards(f, count, &reward);
      baseline_and_scale(f, &shared_by_all, count, &reward, &s);
      local_coefficients(f, &shared_by_all, count, &s, sums, c + b);
    } else {
      group_sums of;
      sum_groups(f, count, &of);
      baseline_and_scale(f, &shared_by_all, count, &of.reward, &s);
      group_denominator(f, &shared_by_all, &of, &s);
      if (shape == SHAPE_PLAIN)
        coupled_coefficients(f, &shared_by_all, SHAPE_PLAIN, count, &s, sums, c + b);
      else
        coupled_coefficients(f, &shared_by_all, SHAPE_GENERAL, count, &s, sums, c + b);
    }
    put_tallies(t, b, sums);
  }
}

/* m2[i][j] += sum_b w_b c_i c_j, two rows by four at a time: eight sums, which keep both adders
 * busy while each waits for its own last addition. Rows beyond the last repeat it and are not
 * stored. */
INLINE void second_moments(const double *weight, const double *c, size_t n, double *m2) {
  double left[2 * LAB_BLOCK];
  for (size_t i = 0; i < n; i += 2) {
    const size_t i2 = i + 1 < n ? i + 1 : i;
    for (size_t b = 0; b < LAB_BLOCK; ++b) {
      left[b] = weight[b] * c[i * LAB_BLOCK + b];
      left[LAB_BLOCK + b] = weight[b] * c[i2 * LAB_BLOCK + b];
    }
    for (size_t j = 0; j <= i2; j += 4) {
      const double *row[4];
      for (size_t l = 0; l < 4; ++l) row[l] = c + (j + l < n ? j + l : n - 1) * LAB_BLOCK;
      lane4 s00 = {0}, s01 = {0}, s02 = {0}, s03 = {0}, s10 = {0}, s11 = {0}, s12 = {0}, s13 = {0};
      for (size_t b = 0; b < LAB_BLOCK; b += 4) {
        const lane4 x0 = AT_CONST(left + b), x1 = AT_CONST(left + LAB_BLOCK + b);
        const lane4 y0 = AT_CONST(row[0] + b), y1 = AT_CONST(row[1] + b);
        const lane4 y2 = AT_CONST(row[2] + b), y3 = AT_CONST(row[3] + b);
        s00 += x0 * y0, s10 += x1 * y0;
        s01 += x0 * y1, s11 += x1 * y1;
        s02 += x0 * y2, s12 += x1 * y2;
        s03 += x0 * y3, s13 += x1 * y3;
      }
      const double upper[4] = {lane4_total(&s00), lane4_total(&s01), lane4_total(&s02),
                               lane4_total(&s03)};
      const double lower[4] = {lane4_total(&s10), lane4_total(&s11), lane4_total(&s12),
                               lane4_total(&s13)};
      for (size_t l = 0; l < 4; ++l) {
        if (j + l <= i) m2[i * n + j + l] += upper[l];
        if (i2 != i && j + l <= i2) m2[i2 * n + j + l] += lower[l];
      }
    }
  }
}

INLINE void first_moments(const double *weight, const double *c, size_t n, double *first) {
  for (size_t y = 0; y < n; ++y) {
    lane4 sum = {0};
    for (size_t b = 0; b < LAB_BLOCK; b += 4)
      sum += AT_CONST(weight + b) * AT_CONST(c + y * LAB_BLOCK + b);
    first[y] += lane4_total(&sum);
  }
}

/* Adds the block's tallies. */
INLINE void add_tallies(const double *weight, double share, const tallies *t, lab_moments *m) {
  lane4 total = {0}, w = {0}, w2 = {0}, aw = {0}, aw2 = {0}, ess = {0};
  for (size_t b = 0; b < LAB_BLOCK; b += 4) {
    const lane4 part = AT_CONST(weight + b) * share, of_w = AT_CONST(t->w + b);
    const lane4 squares = AT_CONST(t->w2 + b), size = part * of_w * (of_w / squares);
    /* All weights zero is a group that says nothing: effective size 0. */
    ess += (lane4)((mask4)size & (squares > 0));
    total += AT_CONST(weight + b);
    w += part * of_w;
    w2 += part * squares;
    aw += part * AT_CONST(t->aw + b);
    aw2 += part * AT_CONST(t->aw2 + b);
  }
  m->total += lane4_total(&total);
  m->w += lane4_total(&w);
  m->w2 += lane4_total(&w2);
  m->aw += lane4_total(&aw);
  m->aw2 += lane4_total(&aw2);
  m->ess += lane4_total(&ess);
}

CLONES static void run_block(const lab_form *f, const lab_block *k, double *c, lab_moments *m) {
  tallies t;
  coefficients(f, k, c, &t);
  second_moments(k->weight, c, f->n, m->second);
  first_moments(k->weight, c, f->n, m->first);
  add_tallies(k->weight, 1 / (double)k->group_size, &t, m);
}

void lab_kernel(const lab_form *f, const lab_block *b, lab_scratch *s, lab_moments *m) {
  run_block(f, b, s->c, m);
}

void lab_moments_mirror(lab_moments *m) {
  for (size_t i = 0; i < m->n; ++i)
    for (size_t j = 0; j < i; ++j) m->second[j * m->n + i] = m->second[i * m->n + j];
}
