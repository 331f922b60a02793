/* An algorithm as tables over the responses of a prompt, where the list below allows it. */
#include "toy/lab/form.h"

#include <math.h>
#include <stdlib.h>

/* Below this log-ratio between probabilities, products in plain numbers could underflow. */
#define LOG_SMALL (-300.0)

/* What policy_evaluate() says of a group of one, its advantage being the reward. */
static gl_status evaluate_one(const policy_algorithm *algorithm, const lab_tables *t, size_t y,
                              double advantage, double *coefficient, double *weight,
                              policy_workspace *ws, gl_error *err) {
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
  policy_output out = {.coefficient = coefficient, .weight = weight, .skip_metrics = 1};
  return policy_evaluate(&alone, &in, &out, ws, err);
}

/* --- what may be factored --- */
/* For every field of an algorithm what the kernels are known to compute. A field that is not
 * listed, or a value that its line does not allow, is not factored: the algorithm is then asked
 * group by group. `alone` is for algorithms whose coefficients depend on the group through the
 * advantage only, `coupled` for those with a denominator over the group. */

/* A choice or a switch may have the values whose bits are set; a number what these say. */
enum { ANY_NUMBER = 1, ZERO = 2, INFINITE = 4, ONE = 8 };
#define BIT(value) (1u << (value))
#define ON_OR_OFF 3u
#define OFF 1u
#define ANY_VALUE_TO(last) (BIT(last) | (BIT(last) - 1))

typedef struct may {
  size_t offset; /* of the field in policy_algorithm */
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
    MAY_BOTH(scale, BIT(SCALE_NONE) | BIT(SCALE_GROUP_STD)),
    ANY(scale_eps),
    ANY(std_ddof),
    MAY_BOTH(drop_equal, ON_OR_OFF),
    MAY(ratio,
        BIT(RATIO_NONE) | BIT(RATIO_TOKEN) | BIT(RATIO_PREFIX) | BIT(RATIO_SEQUENCE) |
            BIT(RATIO_SEQUENCE_TOKEN) | BIT(RATIO_GROUP_EXPECTATION) | BIT(RATIO_MIXTURE) |
            BIT(RATIO_VTRACE),
        BIT(RATIO_GROUP_EXPECTATION) | BIT(RATIO_SELF_NORMALISED)),
    MAY_BOTH(log_prob, ANY_VALUE_TO(LOG_PROB_MEAN)), /* the same for one token */
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
            BIT(CLIP_TANH_HAZARD) | BIT(CLIP_GAMMA) | BIT(CLIP_BINARY_TV) | BIT(CLIP_BINARY_KL),
        BIT(CLIP_NONE) | BIT(CLIP_PPO)),
    ANY(eps_low),
    ANY(eps_high),
    MAY(dual_clip, ANY_NUMBER, INFINITE),
    ANY(cap),
    ANY(clip_power),
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
    MAY_BOTH(m2_form, ANY_VALUE_TO(M2_THRESHOLD)), /* clip: second_moment's, which is not listed */
    MAY_BOTH(m2_set, ANY_VALUE_TO(M2_ALL)),
    ANY(m2_tau),
    MAY(token_mask, ON_OR_OFF, OFF),
    ANY(mask_low),
    ANY(mask_high),
    MAY_BOTH(gate.negative_below, ZERO),
    MAY_BOTH(gate.positive_above, INFINITE),
    MAY_BOTH(gate.of, ANY_VALUE_TO(GATE_SAMPLER)),
    MAY_BOTH(gate.scope, ANY_VALUE_TO(SCOPE_MICROBATCH)),
    MAY_BOTH(gate.log_prob, ANY_VALUE_TO(LOG_PROB_MEAN)),
    MAY_BOTH(aggregate, ANY_VALUE_TO(AGGREGATE_LENGTH_POWER)), /* 1 / G each for one token */
    ANY(length_power),
    ANY(kl_coef),
    MAY_BOTH(kl_share, ONE),
    MAY_BOTH(kl_form, ANY_VALUE_TO(KL_ABS)),
    MAY_BOTH(ref_kl_coef, ZERO),
    MAY_BOTH(ref_kl_form, ANY_VALUE_TO(REF_KL_K3_PLUS)),
    MAY_BOTH(ref_kl_ratio, ON_OR_OFF), /* of a term that is not there */
    MAY_BOTH(correction_of, ANY_VALUE_TO(CORRECTION_LEARNER)),
    MAY(tis_level, ANY_VALUE_TO(LEVEL_TOKEN_GEOMETRIC), BIT(LEVEL_NONE)),
    ANY(tis_min),
    ANY(tis_max),
    ANY(tis_log_clamp),
    MAY_BOTH(tis_normalise, OFF),
    MAY(mis_level, ANY_VALUE_TO(MASK_LEVEL_SEQUENCE_MAX), BIT(MASK_LEVEL_NONE)),
    MAY_BOTH(mis_test, ANY_VALUE_TO(MIS_K3)),
    ANY(mis_min),
    ANY(mis_max),
    MAY(mis2_level, ANY_VALUE_TO(MASK_LEVEL_SEQUENCE_MAX), BIT(MASK_LEVEL_NONE)),
    MAY_BOTH(mis2_test, ANY_VALUE_TO(MIS_K3)),
    ANY(mis2_min),
    ANY(mis2_max),
    ANY(mis_log_clamp),
    MAY(off_policy_mask, ANY_NUMBER, INFINITE),
    MAY_BOTH(top_entropy, ONE), /* and the laboratory has no entropies to give */
    MAY_BOTH(mask_denominator, ANY_VALUE_TO(MASK_KEPT)),
    MAY_BOTH(negatives, ANY_VALUE_TO(NEGATIVES_MEAN)), /* objective: disco's, which is not listed */
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
  case FIELD_CHOICE:
  case FIELD_BOOL:
    return (unsigned)*(const int *)at < 32 && (allowed & BIT(*(const int *)at)) != 0;
  case FIELD_COUNT:
    return number_allowed((double)*(const size_t *)at, allowed);
  case FIELD_NUMBER:
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

/* Whether the algorithm's coefficients have one of the two shapes a kernel knows: every field is
 * allowed, and so is what depends on two of them. */
static int factors(const policy_algorithm *algorithm, const lab_tables *t) {
  if (t->width != 1 || policy_ratio_about(algorithm->ratio) == NULL) return 0;
  const int coupled = policy_couples_group(algorithm);
  if (!all_fields_allowed(algorithm, coupled)) return 0;
  if (algorithm->mask_denominator != MASK_ALL &&
      (algorithm->mis_level != MASK_LEVEL_NONE || algorithm->mis2_level != MASK_LEVEL_NONE))
    return 0;
  /* A group left out has advantages of 0, but its KL terms would be left out too. */
  const int zero_if_equal =
      algorithm->baseline == BASELINE_GROUP_MEAN || algorithm->baseline == BASELINE_LEAVE_ONE_OUT;
  if (algorithm->drop_equal && (algorithm->kl_coef != 0 || !zero_if_equal)) return 0;
  if (!coupled) return 1;
  if (algorithm->clip == CLIP_PPO && !algorithm->ratio_gradient) return 0;
  return !algorithm->denominator_gradient || !algorithm->ratio_gradient ||
         algorithm->ratio == RATIO_GROUP_EXPECTATION;
}

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
  case BASELINE_LENGTH_WEIGHTED: /* not listed above */
  case BASELINE_RUNNER_UP:
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
  case DENOMINATOR_EXACT: /* couples no group */
    break;
  }
  return LAB_LOCAL;
}

/* w, z, u, v of an algorithm with a group denominator; 0 where plain numbers would underflow. */
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
  f->clip_low = algorithm->clip == CLIP_PPO ? 1 - algorithm->eps_low : -INFINITY;
  f->clip_high = algorithm->clip == CLIP_PPO ? 1 + algorithm->eps_high : INFINITY;
  return 1;
}

static gl_status single_tables(lab_form *f, const policy_algorithm *algorithm, const lab_tables *t,
                               policy_workspace *ws, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t y = 0; y < f->n && status == GL_OK; ++y) {
    double plus = 0, minus = 0;
    status = evaluate_one(algorithm, t, y, 0, &f->extra[y], &f->ratio[y], ws, err);
    if (f->denominator != LAB_LOCAL) continue;
    if (status == GL_OK) status = evaluate_one(algorithm, t, y, 1, &plus, NULL, ws, err);
    if (status == GL_OK) status = evaluate_one(algorithm, t, y, -1, &minus, NULL, ws, err);
    f->up[y] = plus - f->extra[y];
    f->down[y] = f->extra[y] - minus;
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
