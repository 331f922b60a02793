/* Computes the coefficients and moments of a block of groups in loops that the compiler can
 * vectorise. */
#include "toy/lab/kernel.h"

#include "core/base/simd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

gl_status lab_moments_init(lab_moments *m, size_t n, gl_error *err) {
  *m = (lab_moments){.n = n};
  m->first = ARENA_ARRAY(&m->memory, double, n);
  m->second = ARENA_GRID(&m->memory, double, n, n);
  return arena_check(&m->memory, "the moments of an estimator", err);
}

void lab_moments_fini(lab_moments *m) {
  arena_fini(&m->memory);
}

gl_status lab_scratch_init(lab_scratch *s, size_t n, gl_error *err) {
  s->c = calloc(n, LAB_BLOCK * sizeof *s->c);
  return s->c == NULL ? gl_fail_memory(err, "the coefficients of a block of groups") : GL_OK;
}

void lab_scratch_fini(lab_scratch *s) {
  free(s->c);
  *s = (lab_scratch){0};
}

/* Loops process four groups at once, one per vector lane, and iterate over responses inside, so
 * that a group's sums stay in registers. Each group's sums are added in the order of the responses.
 */
#define AT(p) (*(lane4 *)(p))
#define AT_CONST(p) (*(const lane4 *)(p))

/* Quantities shared by all responses of a group, for four groups. */
typedef struct shared {
  lane4 shift;       /* baseline b, before the leave-one-out factor */
  lane4 gain;        /* 1/s, times G/(G-1) for the leave-one-out baseline */
  lane4 denominator; /* D */
  lane4 inverse;     /* 1 / D */
  lane4 pull;        /* LAB_WEIGHTED: 1 / sum_j z_j w_j */
} shared;

/* Per group, sums over responses of w, w^2, a w and (a w)^2. */
typedef struct tallies {
  double w[LAB_BLOCK], w2[LAB_BLOCK], aw[LAB_BLOCK], aw2[LAB_BLOCK];
} tallies;

/* Constants of all groups in a block: G, 1 / G, a constant baseline, G / (G - 1) for leave-one-out
 * (else 1), the sum of squares below which all rewards count as equal, and the divisor of the
 * variance. */
typedef struct common {
  double size, share, constant, gain, rounding, degrees;
  int own; /* 1: the baseline is constant and does not depend on the group's rewards */
} common;

INLINE void common_of(const lab_form *f, const lab_block *k, common *c) {
  const int alone = k->group_size == 1; /* a group of one: baseline 0, standard deviation 0 */
  double scale = 0;
  c->size = (double)k->group_size;
  c->share = 1 / c->size;
  c->own =
      f->baseline == LAB_BASELINE_CONSTANT || (alone && f->baseline == LAB_BASELINE_LEAVE_ONE_OUT);
  c->constant = f->baseline == LAB_BASELINE_CONSTANT ? f->constant : 0;
  c->gain = !c->own && f->baseline == LAB_BASELINE_LEAVE_ONE_OUT ? c->size / (c->size - 1) : 1;
  /* If all rewards are equal, the sum of squares has only rounding error. The standard deviation is
   * then 0, as in core/policy. */
  for (size_t y = 0; y < f->n; ++y) scale = fmax(scale, fabs(f->reward[y]));
  c->rounding = c->size * scale * scale * 0x1p-96;
  c->degrees = alone ? 1 : c->size - f->ddof;
}

/* Divides the gain of four groups by the standard deviation of their rewards. */
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

/* Sums over the responses of four groups: rewards, D's numerator, D's denominator. One loop
 * computes all three so that their additions overlap. */
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

/* The sum of rewards of four groups. */
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

/* Adds `count` copies of a response to the sums and stores count a w in *weighted. */
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

/* count_y c_y of algorithms without a group denominator (kernel.h), for four groups. */
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

/* Two code paths for rho = w / (u D + v); most algorithms use the first. */
typedef enum coupled_shape {
  SHAPE_PLAIN, /* u = 1, v = 0, no clipping */
  SHAPE_GENERAL
} coupled_shape;

INLINE coupled_shape shape_of(const lab_form *f) {
  int plain = f->clip_low == -INFINITY && f->clip_high == INFINITY;
  for (size_t y = 0; y < f->n; ++y) plain = plain && f->u[y] == 1 && f->v[y] == 0;
  return plain ? SHAPE_PLAIN : SHAPE_GENERAL;
}

/* count_y c_y of algorithms with a group denominator (kernel.h), for four groups. */
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

/* Computes the coefficients c[n * LAB_BLOCK] and the tallies of a block's groups. */
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
      /* the plain shape as a constant, so that the compiler makes a version without the rest */
      if (shape == SHAPE_PLAIN)
        coupled_coefficients(f, &shared_by_all, SHAPE_PLAIN, count, &s, sums, c + b);
      else
        coupled_coefficients(f, &shared_by_all, SHAPE_GENERAL, count, &s, sums, c + b);
    }
    put_tallies(t, b, sums);
  }
}

/* m2[i][j] += sum_b w_b c_i c_j, in tiles of two rows by four columns. The eight independent sums
 * hide the latency of additions. Indices past the last row repeat it, and their sums are not
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

/* Adds a block's tallies to the moments. */
INLINE void add_tallies(const double *weight, double share, const tallies *t, lab_moments *m) {
  lane4 total = {0}, w = {0}, w2 = {0}, aw = {0}, aw2 = {0}, ess = {0};
  for (size_t b = 0; b < LAB_BLOCK; b += 4) {
    const lane4 part = AT_CONST(weight + b) * share, of_w = AT_CONST(t->w + b);
    const lane4 squares = AT_CONST(t->w2 + b), size = part * of_w * (of_w / squares);
    /* If all weights of a group are zero, its effective sample size is 0. */
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

/* --- forms of algorithms --- */
/* Reduces an algorithm to tables over the responses of a prompt, if possible. */

/* If log-probabilities differ by more than this, products of probabilities could underflow. */
#define LOG_SMALL (-300.0)

/* Coefficient and importance weight of the only response of a group. */
typedef struct single {
  double coefficient, weight;
} single;

/* Runs policy_evaluate() on a group of one response with the given advantage. */
static gl_status evaluate_one(single *out, const policy_algorithm *algorithm, const lab_tables *t,
                              size_t y, double advantage, policy_workspace *ws, gl_error *err) {
  policy_algorithm alone = *algorithm;
  alone.baseline = BASELINE_NONE;
  alone.scale = SCALE_NONE;
  alone.drop_equal = 0;
  const size_t start[2] = {0, 1};
  const policy_input in = {.n_groups = 1,
                           .n_responses = 1,
                           .n_tokens = 1,
                           .group_start = start,
                           .token_start = start,
                           .reward = &advantage,
                           .logp = t->logp + y,
                           .logq = t->logq + y,
                           .log_denominator = &t->log_collision,
                           .max_length = 1};
  policy_output to = {.coefficient = &out->coefficient, .weight = &out->weight, .skip_metrics = 1};
  return policy_evaluate(&alone, &in, &to, ws, err);
}

/* --- algorithms that can be factored --- */
/* White list of the algorithms that the kernels can compute: for each field, its allowed values. An
 * algorithm with an unlisted field or another value is evaluated group by group instead. `alone`
 * applies to algorithms whose coefficients depend on the group only through the advantage,
 * `coupled` to those with a denominator over the group. */

/* Allowed values: for choices and switches a bit set of values, for numbers a combination of these
 * bits. */
enum { ANY_NUMBER = 1, ZERO = 2, INFINITE = 4, ONE = 8 };
#define BIT(value) (1u << (value))
#define ON_OR_OFF 3u
#define OFF 1u
#define ANY_VALUE_TO(last) (BIT(last) | (BIT(last) - 1))

/* The allowed values of one field of an algorithm. */
typedef struct may {
  size_t offset; /* offset of the field in policy_algorithm */
  unsigned alone, coupled;
} may;
#define MAY(field, alone, coupled)                                                                 \
  { offsetof(policy_algorithm, field), alone, coupled }
#define MAY_BOTH(field, values) MAY(field, values, values)
#define ANY(field) MAY_BOTH(field, ANY_NUMBER)

static const may may_be_factored[] = {
    MAY_BOTH(objective, BIT(OBJECTIVE_POLICY_GRADIENT)),
    MAY_BOTH(baseline, ANY_VALUE_TO(BASELINE_LEAVE_ONE_OUT)),
    ANY(baseline_value),
    ANY(baseline_temperature),
    MAY_BOTH(scale, BIT(SCALE_NONE) | BIT(SCALE_GROUP_STD)),
    ANY(scale_eps),
    ANY(std_ddof),
    MAY_BOTH(drop_equal, ON_OR_OFF),
    MAY_BOTH(reward_kl_coef, ZERO),
    MAY_BOTH(reward_kl_of, ANY_VALUE_TO(REWARD_KL_REFERENCE)),
    MAY(ratio,
        BIT(RATIO_NONE) | BIT(RATIO_TOKEN) | BIT(RATIO_PREFIX) | BIT(RATIO_SEQUENCE) |
            BIT(RATIO_SEQUENCE_TOKEN) | BIT(RATIO_GROUP_EXPECTATION) | BIT(RATIO_MIXTURE) |
            BIT(RATIO_VTRACE),
        BIT(RATIO_GROUP_EXPECTATION) | BIT(RATIO_SELF_NORMALISED)),
    MAY_BOTH(log_prob, ANY_VALUE_TO(LOG_PROB_MEAN)), /* equivalent for one token */
    MAY(old_policy, ANY_VALUE_TO(OLD_PROXIMAL), BIT(OLD_SAMPLER)),
    MAY_BOTH(ratio_gradient, ON_OR_OFF),
    MAY_BOTH(denominator, ANY_VALUE_TO(DENOMINATOR_EXPECTED_P)),
    MAY_BOTH(denominator_gradient, ON_OR_OFF),
    MAY_BOTH(group_scope, BIT(SCOPE_PROMPT)),
    ANY(microbatch),
    ANY(kappa),
    ANY(mixture),
    MAY_BOTH(mixture_anneal, OFF),
    ANY(mixture_midpoint),
    ANY(mixture_slope),
    ANY(rho_bar),
    ANY(c_bar),
    MAY(token_log_clamp, ANY_NUMBER, INFINITE),
    MAY(log_floor, ANY_NUMBER, INFINITE),
    MAY(log_cap, ANY_NUMBER, INFINITE),
    MAY(clip,
        BIT(CLIP_NONE) | BIT(CLIP_PPO) | BIT(CLIP_PPO_POWER) | BIT(CLIP_CAP) | BIT(CLIP_CLAMP) |
            BIT(CLIP_SIGNED_CLAMP) | BIT(CLIP_TOKEN_LOG) | BIT(CLIP_SIGMOID) |
            BIT(CLIP_TANH_HAZARD) | BIT(CLIP_GAMMA) | BIT(CLIP_BINARY_TV) | BIT(CLIP_BINARY_KL) |
            BIT(CLIP_PROBABILITY) | BIT(CLIP_RECIPROCAL),
        BIT(CLIP_NONE) | BIT(CLIP_PPO)),
    ANY(eps_low),
    ANY(eps_high),
    MAY(dual_clip, ANY_NUMBER, INFINITE),
    ANY(cap),
    ANY(clip_power),
    MAY(keep_low, ANY_NUMBER, ONE),
    MAY(keep_high, ANY_NUMBER, ONE),
    MAY_BOTH(balance, ZERO),
    ANY(balance_step),
    ANY(balance_low),
    ANY(balance_high),
    ANY(positive_low),
    ANY(positive_high),
    ANY(negative_low),
    ANY(negative_high),
    ANY(tau_positive),
    ANY(tau_negative),
    ANY(tanh_scale),
    ANY(hazard_power_up),
    ANY(hazard_width_up),
    ANY(hazard_power_down),
    ANY(hazard_width_down),
    ANY(gamma_k_positive),
    ANY(gamma_rate_positive),
    ANY(gamma_k_negative),
    ANY(gamma_rate_negative),
    MAY_BOTH(
        m2_form,
        ANY_VALUE_TO(M2_THRESHOLD)), /* used only by clip: second_moment, which is not allowed */
    MAY_BOTH(m2_set, ANY_VALUE_TO(M2_ALL)),
    ANY(m2_tau),
    MAY(token_mask, ON_OR_OFF, OFF),
    ANY(mask_low),
    ANY(mask_high),
    MAY_BOTH(gate.negative_below, ZERO),
    MAY_BOTH(gate.negative_above, INFINITE),
    MAY_BOTH(gate.positive_above, INFINITE),
    MAY_BOTH(gate.of, ANY_VALUE_TO(GATE_SAMPLER)),
    MAY_BOTH(gate.scope, ANY_VALUE_TO(SCOPE_MICROBATCH)),
    MAY_BOTH(gate.log_prob, ANY_VALUE_TO(LOG_PROB_MEAN)),
    MAY_BOTH(aggregate, ANY_VALUE_TO(AGGREGATE_LENGTH_POWER)), /* all give 1 / G for one token */
    ANY(length_power),
    ANY(kl_coef),
    MAY_BOTH(kl_share, ONE),
    MAY_BOTH(kl_form, ANY_VALUE_TO(KL_ABS)),
    MAY_BOTH(ref_kl_coef, ZERO),
    MAY_BOTH(ref_kl_form, ANY_VALUE_TO(REF_KL_K3_PLUS)),
    MAY_BOTH(ref_kl_ratio, ON_OR_OFF), /* unused: ref_kl_coef is 0 */
    MAY_BOTH(correction_of, ANY_VALUE_TO(CORRECTION_LEARNER)),
    MAY(tis_level, ANY_VALUE_TO(LEVEL_TOKEN_GEOMETRIC), BIT(LEVEL_NONE)),
    ANY(tis_min),
    ANY(tis_max),
    ANY(tis_log_clamp),
    ANY(future_half_life),
    MAY(mis_free_low, ANY_NUMBER, ZERO),
    MAY(mis_free_high, ANY_NUMBER, INFINITE),
    MAY_BOTH(tis_normalise, OFF),
    MAY(mis_level, ANY_VALUE_TO(MASK_LEVEL_SEQUENCE_MAX), BIT(MASK_LEVEL_NONE)),
    MAY_BOTH(mis_test, ANY_VALUE_TO(MIS_TV)),
    ANY(mis_min),
    ANY(mis_max),
    MAY(mis2_level, ANY_VALUE_TO(MASK_LEVEL_SEQUENCE_MAX), BIT(MASK_LEVEL_NONE)),
    MAY_BOTH(mis2_test, ANY_VALUE_TO(MIS_TV)),
    ANY(mis2_min),
    ANY(mis2_max),
    ANY(mis_log_clamp),
    MAY(off_policy_mask, ANY_NUMBER, INFINITE),
    MAY_BOTH(top_entropy, ONE), /* the laboratory has no entropies */
    MAY_BOTH(entropy_ratio_low, ZERO),
    MAY_BOTH(entropy_ratio_high, INFINITE),
    MAY_BOTH(proximal_decay, ZERO), /* the laboratory has no updates */
    MAY_BOTH(mask_denominator, ANY_VALUE_TO(MASK_KEPT)),
    MAY_BOTH(
        negatives,
        ANY_VALUE_TO(NEGATIVES_MEAN)), /* used only by objective: disco, which is not allowed */
    ANY(disco_tau),
    ANY(penalty),
    ANY(penalty_margin),
};

static int number_allowed(double value, unsigned allowed) {
  return (allowed & ANY_NUMBER) || ((allowed & ZERO) && value == 0) ||
         ((allowed & ONE) && value == 1) || ((allowed & INFINITE) && isinf(value));
}

static int field_allowed(const policy_algorithm *algorithm, const policy_field *f,
                         unsigned allowed) {
  const void *at = (const char *)algorithm + f->offset;
  switch (f->kind) {
  case POLICY_FIELD_CHOICE:
  case POLICY_FIELD_FLAG:
    return (unsigned)*(const int *)at < 32 && (allowed & BIT(*(const int *)at)) != 0;
  case POLICY_FIELD_COUNT:
    return number_allowed((double)*(const size_t *)at, allowed);
  case POLICY_FIELD_NUMBER:
    return number_allowed(*(const double *)at, allowed);
  }
  return 0;
}

static int all_fields_allowed(const policy_algorithm *algorithm, int coupled) {
  const size_t n = sizeof may_be_factored / sizeof may_be_factored[0];
  for (size_t i = 0; i < policy_fields_count(); ++i) {
    const policy_field *f = policy_fields_at(i);
    size_t k = 0;
    while (k < n && may_be_factored[k].offset != f->offset) ++k;
    if (k == n) return 0;
    const unsigned allowed = coupled ? may_be_factored[k].coupled : may_be_factored[k].alone;
    if (!field_allowed(algorithm, f, allowed)) return 0;
  }
  return 1;
}

/* Returns 1 if a kernel can compute the algorithm's coefficients: every field is allowed, and so
 * are the combinations checked below. */
static int factors(const policy_algorithm *algorithm, const lab_tables *t) {
  if (t->width != 1 || policy_ratio_about(algorithm->ratio) == NULL) return 0;
  const int coupled = policy_couples_group(algorithm);
  if (!all_fields_allowed(algorithm, coupled)) return 0;
  if (algorithm->mask_denominator != MASK_ALL &&
      (algorithm->mis_level != MASK_LEVEL_NONE || algorithm->mis2_level != MASK_LEVEL_NONE))
    return 0;
  /* drop_equal is equivalent to zero advantages only if there is no KL term, which would be dropped
   * too. */
  const int zero_if_equal =
      algorithm->baseline == BASELINE_GROUP_MEAN || algorithm->baseline == BASELINE_LEAVE_ONE_OUT;
  if (algorithm->drop_equal && (algorithm->kl_coef != 0 || !zero_if_equal)) return 0;
  if (algorithm->baseline_value != 0 && zero_if_equal)
    return 0; /* kernels add no constant to the group's mean */
  if (!coupled) return 1;
  if (algorithm->clip == CLIP_PPO && !algorithm->ratio_gradient) return 0;
  return !algorithm->denominator_gradient || !algorithm->ratio_gradient ||
         algorithm->ratio == RATIO_GROUP_EXPECTATION;
}

/* Copies the settings of baseline and standard deviation into the form. */
static void advantages(lab_form *f, const policy_algorithm *algorithm) {
  switch (algorithm->baseline) {
  case BASELINE_NONE:
    f->baseline = LAB_BASELINE_CONSTANT;
    break;
  case BASELINE_CONSTANT:
    f->baseline = LAB_BASELINE_CONSTANT;
    f->constant = algorithm->baseline_value;
    break;
  case BASELINE_GROUP_MEAN:
    f->baseline = LAB_BASELINE_MEAN;
    break;
  case BASELINE_LEAVE_ONE_OUT:
    f->baseline = LAB_BASELINE_LEAVE_ONE_OUT;
    break;
  case BASELINE_LENGTH_WEIGHTED: /* not on the white list */
  case BASELINE_RUNNER_UP:
  case BASELINE_OFF_POLICY:
  case BASELINE_SOFT_MAXIMUM:
    break;
  }
  f->group_std = algorithm->scale == SCALE_GROUP_STD;
  f->ddof = (double)algorithm->std_ddof;
  f->std_eps = algorithm->scale_eps;
}

static double cppo(double l) {
  return expm1(-l) + l;
}

static lab_denominator denominator_of(policy_denominator which) {
  switch (which) {
  case DENOMINATOR_SELF_NORMALISED:
    return LAB_SELF_NORMALISED;
  case DENOMINATOR_MEAN:
    return LAB_MEAN;
  case DENOMINATOR_EXPECTED_P:
    return LAB_WEIGHTED;
  case DENOMINATOR_EXACT: /* does not depend on the group */
    break;
  }
  return LAB_LOCAL;
}

/* Fills w, z, u, v (formula at the top of kernel.h) for an algorithm with a group denominator.
 * Returns 0 if products could underflow; the caller then uses the slow path. */
static int group_tables(lab_form *f, const policy_algorithm *algorithm, const lab_tables *t) {
  const int expectation = algorithm->ratio == RATIO_GROUP_EXPECTATION;
  double top = -INFINITY, low = INFINITY;
  for (size_t y = 0; y < f->n; ++y) {
    double x = expectation ? t->logq[y] : t->logp[y] - t->logq[y];
    top = fmax(top, x);
    low = fmin(low, x);
  }
  if (!(low - top > LOG_SMALL)) return 0;
  for (size_t y = 0; y < f->n; ++y) {
    double l = t->logp[y] - t->logq[y];
    int near = expectation && algorithm->kappa > 0 && cppo(l) < algorithm->kappa;
    f->w[y] = exp((expectation ? t->logp[y] : l) - top);
    f->z[y] = expectation ? exp(t->logq[y] - top) : 1;
    f->u[y] = near ? 0 : 1;
    f->v[y] = near ? f->z[y] : 0;
    if (!isfinite(f->w[y])) return 0;
  }
  f->denominator = expectation ? denominator_of(algorithm->denominator) : LAB_MEAN_RATIO;
  f->through_denominator = f->denominator == LAB_WEIGHTED && algorithm->denominator_gradient &&
                           algorithm->ratio_gradient;
  f->clip_low = -INFINITY;
  f->clip_high = INFINITY;
  if (algorithm->clip == CLIP_PPO) {
    f->clip_low = (1 - algorithm->eps_low) * (1 - POLICY_CLIP_SLACK);
    f->clip_high = (1 + algorithm->eps_high) * (1 + POLICY_CLIP_SLACK);
  }
  return 1;
}

/* Fills the tables that depend on one response only, by policy_evaluate() on groups of one
 * response. */
static gl_status single_tables(lab_form *f, const policy_algorithm *algorithm, const lab_tables *t,
                               policy_workspace *ws, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t y = 0; y < f->n && status == GL_OK; ++y) {
    single zero = {0}, plus = {0}, minus = {0};
    status = evaluate_one(&zero, algorithm, t, y, 0, ws, err);
    f->extra[y] = zero.coefficient;
    f->ratio[y] = zero.weight;
    if (f->denominator != LAB_LOCAL) continue;
    if (status == GL_OK) status = evaluate_one(&plus, algorithm, t, y, 1, ws, err);
    if (status == GL_OK) status = evaluate_one(&minus, algorithm, t, y, -1, ws, err);
    f->up[y] = plus.coefficient - zero.coefficient;
    f->down[y] = zero.coefficient - minus.coefficient;
  }
  return status;
}

gl_status lab_form_init(lab_form *f, int *fast, const policy_algorithm *algorithm,
                        const lab_tables *t, policy_workspace *ws, gl_error *err) {
  *f = (lab_form){.n = t->n, .reward = t->reward};
  *fast = 0;
  if (!factors(algorithm, t)) return GL_OK;
  double *block = calloc(t->n, 8 * sizeof *block);
  if (block == NULL) return gl_fail_memory(err, "the tables of an algorithm");
  double **part[] = {&f->up, &f->down, &f->extra, &f->ratio, &f->w, &f->z, &f->u, &f->v};
  for (size_t i = 0; i < 8; ++i) *part[i] = block + i * t->n;
  advantages(f, algorithm);
  if (policy_couples_group(algorithm) && !group_tables(f, algorithm, t)) {
    lab_form_fini(f);
    return GL_OK;
  }
  gl_status status = single_tables(f, algorithm, t, ws, err);
  *fast = status == GL_OK;
  for (size_t y = 0; y < f->n; ++y)
    *fast = *fast && isfinite(f->up[y]) && isfinite(f->down[y]) && isfinite(f->ratio[y]);
  if (!*fast) lab_form_fini(f);
  return status;
}

void lab_form_fini(lab_form *f) {
  free(f->up);
  *f = (lab_form){0};
}
