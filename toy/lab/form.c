#include "toy/lab/form.h"

#include <math.h>
#include <stdlib.h>

/* Below this log-ratio between probabilities, products in plain numbers could underflow. */
#define LOG_SMALL (-300.0)

/* What policy_evaluate() says of a group of one, its advantage being the reward. */
static gl_status evaluate_one(const policy_row *row, const lab_tables *t, size_t y,
                              double advantage, double *coefficient, double *weight,
                              policy_workspace *ws, gl_error *err) {
  policy_row alone = *row;
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

static int shares_group(const policy_row *row) {
  if (row->ratio == RATIO_SELF_NORMALISED) return 1;
  return row->ratio == RATIO_GROUP_EXPECTATION && row->denominator != DENOMINATOR_EXACT;
}

static int plain_ratio(const policy_row *row) {
  return row->tis_level == LEVEL_NONE && row->mis_level == LEVEL_NONE && !row->token_mask &&
         isinf(row->token_log_clamp) && isinf(row->log_floor) && isinf(row->log_cap) &&
         isinf(row->dual_clip);
}

/* Whether the row's coefficients have one of the two shapes a kernel knows. */
static int factors(const policy_row *row, const lab_tables *t) {
  if (t->width != 1 || row->objective != OBJECTIVE_POLICY_GRADIENT) return 0;
  if (row->scale != SCALE_NONE && row->scale != SCALE_GROUP_STD) return 0;
  if (row->clip == CLIP_SECOND_MOMENT || row->tis_normalise || row->ref_kl_coef != 0) return 0;
  if (row->mask_denominator != MASK_ALL && row->mis_level != LEVEL_NONE) return 0;
  if (row->group_scope != SCOPE_PROMPT) return 0;
  if (row->drop_equal &&
      (row->kl_coef != 0 || row->baseline == BASELINE_NONE || row->baseline == BASELINE_CONSTANT))
    return 0;
  if (!shares_group(row)) return 1;
  if (!plain_ratio(row)) return 0;
  if (row->clip != CLIP_NONE && !(row->clip == CLIP_PPO && row->ratio_gradient)) return 0;
  if (row->denominator_gradient && row->ratio_gradient)
    return row->ratio == RATIO_GROUP_EXPECTATION;
  return 1;
}

static void advantages(lab_form *f, const policy_row *row) {
  f->baseline = LAB_BASELINE_CONSTANT;
  if (row->baseline == BASELINE_CONSTANT) f->constant = row->baseline_value;
  if (row->baseline == BASELINE_GROUP_MEAN) f->baseline = LAB_BASELINE_MEAN;
  if (row->baseline == BASELINE_LEAVE_ONE_OUT) f->baseline = LAB_BASELINE_LEAVE_ONE_OUT;
  f->group_std = row->scale == SCALE_GROUP_STD;
  f->ddof = (double)row->std_ddof;
  f->std_eps = row->scale_eps;
}

static double cppo(double l) {
  return expm1(-l) + l;
}

/* w, z, u, v of a group row; 0 where plain numbers would underflow. */
static int group_tables(lab_form *f, const policy_row *row, const lab_tables *t) {
  const int expectation = row->ratio == RATIO_GROUP_EXPECTATION;
  double top = -INFINITY, low = INFINITY;
  for (size_t y = 0; y < f->n; ++y) {
    double x = expectation ? t->logq[y] : t->logp[y] - t->logq[y];
    top = fmax(top, x);
    low = fmin(low, x);
  }
  if (!(low - top > LOG_SMALL)) return 0;
  for (size_t y = 0; y < f->n; ++y) {
    double l = t->logp[y] - t->logq[y];
    int near = expectation && row->kappa > 0 && cppo(l) < row->kappa;
    f->w[y] = exp((expectation ? t->logp[y] : l) - top);
    f->z[y] = expectation ? exp(t->logq[y] - top) : 1;
    f->u[y] = near ? 0 : 1;
    f->v[y] = near ? f->z[y] : 0;
    if (!isfinite(f->w[y])) return 0;
  }
  f->denominator = LAB_MEAN_RATIO;
  if (expectation)
    f->denominator = row->denominator == DENOMINATOR_MEAN         ? LAB_MEAN
                     : row->denominator == DENOMINATOR_EXPECTED_P ? LAB_WEIGHTED
                                                                  : LAB_SELF_NORMALISED;
  f->through_denominator =
      f->denominator == LAB_WEIGHTED && row->denominator_gradient && row->ratio_gradient;
  f->clip_low = row->clip == CLIP_PPO ? 1 - row->eps_low : -INFINITY;
  f->clip_high = row->clip == CLIP_PPO ? 1 + row->eps_high : INFINITY;
  return 1;
}

static gl_status single_tables(lab_form *f, const policy_row *row, const lab_tables *t,
                               policy_workspace *ws, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t y = 0; y < f->n && status == GL_OK; ++y) {
    double plus = 0, minus = 0;
    status = evaluate_one(row, t, y, 0, &f->extra[y], &f->ratio[y], ws, err);
    if (f->denominator != LAB_LOCAL) continue;
    if (status == GL_OK) status = evaluate_one(row, t, y, 1, &plus, NULL, ws, err);
    if (status == GL_OK) status = evaluate_one(row, t, y, -1, &minus, NULL, ws, err);
    f->up[y] = plus - f->extra[y];
    f->down[y] = f->extra[y] - minus;
  }
  return status;
}

gl_status lab_form_init(lab_form *f, int *fast, const policy_row *row, const lab_tables *t,
                        policy_workspace *ws, gl_error *err) {
  *f = (lab_form){.n = t->n, .reward = t->reward};
  *fast = 0;
  if (!factors(row, t)) return GL_OK;
  double *block = calloc(t->n, 8 * sizeof *block);
  if (block == NULL) return gl_fail_memory(err, "the tables of an algorithm");
  double **part[] = {&f->up, &f->down, &f->extra, &f->ratio, &f->w, &f->z, &f->u, &f->v};
  for (size_t i = 0; i < 8; ++i) *part[i] = block + i * t->n;
  advantages(f, row);
  if (shares_group(row) && !group_tables(f, row, t)) {
    lab_form_fini(f);
    return GL_OK;
  }
  gl_status status = single_tables(f, row, t, ws, err);
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
