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

static int shares_group(const policy_algorithm *algorithm) {
  if (algorithm->ratio == RATIO_SELF_NORMALISED) return 1;
  return algorithm->ratio == RATIO_GROUP_EXPECTATION && algorithm->denominator != DENOMINATOR_EXACT;
}

static int plain_ratio(const policy_algorithm *algorithm) {
  return algorithm->tis_level == LEVEL_NONE && algorithm->mis_level == LEVEL_NONE &&
         !algorithm->token_mask && isinf(algorithm->token_log_clamp) &&
         isinf(algorithm->log_floor) && isinf(algorithm->log_cap) && isinf(algorithm->dual_clip);
}

/* Whether the algorithm's coefficients have one of the two shapes a kernel knows. */
static int factors(const policy_algorithm *algorithm, const lab_tables *t) {
  if (t->width != 1 || algorithm->objective != OBJECTIVE_POLICY_GRADIENT) return 0;
  if (algorithm->scale != SCALE_NONE && algorithm->scale != SCALE_GROUP_STD) return 0;
  if (algorithm->clip == CLIP_SECOND_MOMENT || algorithm->tis_normalise ||
      algorithm->ref_kl_coef != 0)
    return 0;
  if (algorithm->mask_denominator != MASK_ALL && algorithm->mis_level != LEVEL_NONE) return 0;
  if (algorithm->group_scope != SCOPE_PROMPT) return 0;
  if (algorithm->drop_equal && (algorithm->kl_coef != 0 || algorithm->baseline == BASELINE_NONE ||
                                algorithm->baseline == BASELINE_CONSTANT))
    return 0;
  if (!shares_group(algorithm)) return 1;
  if (!plain_ratio(algorithm)) return 0;
  if (algorithm->clip != CLIP_NONE && !(algorithm->clip == CLIP_PPO && algorithm->ratio_gradient))
    return 0;
  if (algorithm->denominator_gradient && algorithm->ratio_gradient)
    return algorithm->ratio == RATIO_GROUP_EXPECTATION;
  return 1;
}

static void advantages(lab_form *f, const policy_algorithm *algorithm) {
  f->baseline = LAB_BASELINE_CONSTANT;
  if (algorithm->baseline == BASELINE_CONSTANT) f->constant = algorithm->baseline_value;
  if (algorithm->baseline == BASELINE_GROUP_MEAN) f->baseline = LAB_BASELINE_MEAN;
  if (algorithm->baseline == BASELINE_LEAVE_ONE_OUT) f->baseline = LAB_BASELINE_LEAVE_ONE_OUT;
  f->group_std = algorithm->scale == SCALE_GROUP_STD;
  f->ddof = (double)algorithm->std_ddof;
  f->std_eps = algorithm->scale_eps;
}

static double cppo(double l) {
  return expm1(-l) + l;
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
  f->denominator = LAB_MEAN_RATIO;
  if (expectation)
    f->denominator = algorithm->denominator == DENOMINATOR_MEAN         ? LAB_MEAN
                     : algorithm->denominator == DENOMINATOR_EXPECTED_P ? LAB_WEIGHTED
                                                                        : LAB_SELF_NORMALISED;
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
  if (shares_group(algorithm) && !group_tables(f, algorithm, t)) {
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
