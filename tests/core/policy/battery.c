/* Random combinations of fields: each is evaluated to finite numbers whose coefficients are the
 * derivatives of the loss, or is refused by a rule that names the fields. */
#include "core/policy/policy.h"
#include "core/random/rng.h"
#include "tests/support/suite.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

SUITE("policy: combinations of fields");

enum { COMBINATIONS = 2000, MOST_CHANGES = 5, RESPONSES = 7, TOKENS = 16 };

static const size_t groups[] = {0, 4, 7}, starts[RESPONSES + 1] = {0, 3, 4, 6, 9, 11, 13, 16};
static const double reward[RESPONSES] = {1, 0, 0, 1, 0, 1, 1}, exact[] = {-1.3, -0.9};

typedef struct batch {
  double logp[TOKENS], logq[TOKENS], logprox[TOKENS], logref[TOKENS], gap[TOKENS];
  double entropy[TOKENS], entropy_prox[TOKENS];
} batch;

/* A number in (0, 1) at an address of its own; seed 2000. */
static double draw(uint64_t entity, uint64_t index) {
  return rng_u01(rng_block(rng_stream_at(2000, RNG_BOOTSTRAP, entity), index).v[0]);
}

static size_t draw_below(uint64_t entity, uint64_t index, size_t n) {
  return (size_t)(draw(entity, index) * (double)n);
}

static void batch_fill(batch *b) {
  for (size_t t = 0; t < TOKENS; t++) {
    b->logq[t] = -0.05 - 2 * draw(1, t);
    b->logp[t] = fmin(b->logq[t] + 0.5 * (draw(2, t) - 0.5), -1e-3);
    b->logprox[t] = b->logq[t] + 0.3 * (draw(3, t) - 0.5);
    b->logref[t] = b->logq[t] + 0.6 * (draw(4, t) - 0.5);
    b->entropy[t] = 3 * draw(5, t);
    b->entropy_prox[t] = b->entropy[t] * exp(draw(7, t) - 0.5);
    b->gap[t] = floor(6 * draw(6, t));
  }
}

static policy_input input_of(const batch *b) {
  return (policy_input){.n_groups = 2,
                        .n_responses = RESPONSES,
                        .n_tokens = TOKENS,
                        .group_start = groups,
                        .token_start = starts,
                        .reward = reward,
                        .logp = b->logp,
                        .logq = b->logq,
                        .logprox = b->logprox,
                        .logref = b->logref,
                        .entropy = b->entropy,
                        .entropy_prox = b->entropy_prox,
                        .version_gap = b->gap,
                        .log_denominator = exact,
                        .max_length = 4};
}

/* --- combinations --- */

static void change_field(policy_algorithm *a, const policy_field *f, uint64_t entity,
                         uint64_t index) {
  static const double numbers[] = {0, 0.03, 0.3, 0.9, 1, 1.1, 2.5, 12, INFINITY, -0.4};
  void *at = (char *)a + f->offset;
  const double number = numbers[draw_below(entity, index, sizeof numbers / sizeof *numbers)];
  switch (f->kind) {
  case POLICY_FIELD_CHOICE:
    *(int *)at = (int)draw_below(entity, index, (size_t)f->n_choices);
    break;
  case POLICY_FIELD_FLAG:
    *(int *)at = (int)draw_below(entity, index, 2);
    break;
  case POLICY_FIELD_COUNT:
    *(size_t *)at = (size_t)f->lo + draw_below(entity, index, f->hi > 1 ? 8 : 2);
    break;
  case POLICY_FIELD_NUMBER:
    *(double *)at = fmin(fmax(number, f->lo), isinf(f->hi) ? INFINITY : fmin(f->hi, 12));
    break;
  }
}

/* Half of the changes are of choices and switches, which decide what the numbers mean. */
static policy_algorithm combination(uint64_t k) {
  policy_algorithm a = *policy_algorithms_at(draw_below(10 + k, 0, policy_algorithms_count()));
  const size_t changes = 1 + draw_below(10 + k, 1, MOST_CHANGES);
  for (size_t c = 0; c < changes; c++) {
    const policy_field *f = policy_fields_at(draw_below(10 + k, 10 * c + 2, policy_fields_count()));
    if (f->kind == POLICY_FIELD_NUMBER && c % 2 == 0)
      for (uint64_t i = 3; i < 9 && f->kind == POLICY_FIELD_NUMBER; i++)
        f = policy_fields_at(draw_below(10 + k, 10 * c + i, policy_fields_count()));
    change_field(&a, f, 10 + k, 10 * c + 9);
  }
  a.has_own_name = 0;
  (void)policy_algorithm_set_name(&a, NULL, 0, NULL);
  return a;
}

/* --- what may be asked of one --- */

/* Whether the loss, as reported, is a function whose derivative the coefficients are: nothing that
 * depends on logp is held constant, but for choices that a small step does not change. */
static int is_differentiable(const policy_algorithm *a) {
  const policy_ratio_info *ratio = policy_ratio_about(a->ratio);
  const int constant_factor =
      a->tis_level != LEVEL_NONE &&
      (a->correction_of == CORRECTION_LEARNER || a->old_policy == OLD_INTERPOLATED);
  const int whole = ratio->unit == RATIO_OF_TOKEN ? a->ratio != RATIO_PREFIX
                                                  : ratio->gradient == RATIO_GRADIENT_RESPONSE;
  const int denominator =
      a->ratio == RATIO_SELF_NORMALISED ||
      (a->ratio == RATIO_GROUP_EXPECTATION && a->denominator == DENOMINATOR_EXPECTED_P);
  return a->objective == OBJECTIVE_POLICY_GRADIENT && a->ratio_gradient &&
         ratio->gradient != RATIO_GRADIENT_NONE && whole && !constant_factor &&
         (!denominator || a->denominator_gradient) && a->old_policy != OLD_INTERPOLATED &&
         a->baseline != BASELINE_OFF_POLICY && a->reward_kl_coef == 0 &&
         a->clip != CLIP_TANH_HAZARD &&
         !(a->clip == CLIP_SECOND_MOMENT && a->m2_form == M2_THRESHOLD) &&
         !(a->ref_kl_coef > 0 &&
           (a->ref_kl_form == REF_KL_K1_PLUS || a->ref_kl_form == REF_KL_K3_PLUS)) &&
         !(a->ref_kl_coef > 0 && a->ref_kl_ratio && a->ratio_gradient == 0);
}

/* Whether the loss is minus the sum of coefficients times log-probabilities. */
static int is_linear(const policy_algorithm *a) {
  return a->objective == OBJECTIVE_POLICY_GRADIENT && !a->ratio_gradient && a->kl_coef == 0 &&
         a->ref_kl_coef == 0;
}

static int evaluate(const policy_algorithm *a, const batch *b, double *loss,
                    double coefficient[TOKENS], policy_workspace *ws, gl_error *err) {
  const policy_input in = input_of(b);
  policy_output out = {.coefficient = coefficient};
  const gl_status status = policy_evaluate(a, &in, &out, ws, err);
  *loss = out.loss;
  return status == GL_OK;
}

/* Derivatives by central differences; a step across a kink is one that a tenth of it is not. */
static int agrees_with_differences(const policy_algorithm *a, batch *b, const double *c,
                                   policy_workspace *ws) {
  double other[TOKENS], up, down;
  gl_error err = {0};
  for (size_t t = 0; t < TOKENS; t++) {
    int ok = 0;
    for (double h = 1e-5; h > 5e-8 && !ok; h /= 10) {
      const double at = b->logp[t];
      b->logp[t] = at + h;
      if (!evaluate(a, b, &up, other, ws, &err)) return 0;
      b->logp[t] = at - h;
      if (!evaluate(a, b, &down, other, ws, &err)) return 0;
      b->logp[t] = at;
      ok = fabs((up - down) / (2 * h) + c[t]) <= 1e-6 * fmax(1, fabs(c[t])) + 1e-10 / h;
    }
    if (!ok) {
      fprintf(stderr, "%s: token %zu, coefficient %.10g, differences %.10g\n", a->name, t, c[t],
              -(up - down) / 2e-7);
      return 0;
    }
  }
  return 1;
}

static int is_word(const char *text, const char *at, size_t length) {
  return (at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_' || at[-1] == '.')) &&
         !(isalnum((unsigned char)at[length]) || at[length] == '_');
}

/* How many different fields the text names. */
static size_t fields_named(const char *text) {
  size_t n = 0;
  for (size_t i = 0; i < policy_fields_count(); i++) {
    const char *name = policy_fields_at(i)->name;
    int found = 0;
    for (const char *at = strstr(text, name); at != NULL && !found; at = strstr(at + 1, name))
      found = is_word(text, at, strlen(name));
    n += found ? 1 : 0;
  }
  return n;
}

static void check_refused(const policy_algorithm *a, const gl_error *err) {
  char prefix[160];
  snprintf(prefix, sizeof prefix, "algorithm %s: ", a->name);
  const size_t skip = strncmp(err->text, prefix, strlen(prefix)) == 0 ? strlen(prefix) : 0;
  const size_t named = fields_named(err->text + skip);
  if (skip == 0 || named < 2) fprintf(stderr, "names %zu fields: %s\n", named, err->text);
  CU_ASSERT(skip > 0 && named >= 2);
}

static void check_works(const policy_algorithm *a, batch *b, policy_workspace *ws,
                        size_t counts[2]) {
  double c[TOKENS], loss, sum = 0;
  gl_error err = {0};
  if (!evaluate(a, b, &loss, c, ws, &err)) {
    fprintf(stderr, "%s: %s\n", a->name, err.text);
    CU_FAIL("not evaluated");
    return;
  }
  int finite = isfinite(loss);
  for (size_t t = 0; t < TOKENS; t++) finite = finite && isfinite(c[t]), sum += c[t] * b->logp[t];
  if (!finite) fprintf(stderr, "%s: loss %g\n", a->name, loss);
  CU_ASSERT(finite);
  if (is_linear(a)) {
    counts[0]++;
    CU_ASSERT(fabs(loss + sum) <= 1e-9 * fmax(1, fabs(loss)));
  }
  if (!is_differentiable(a)) return;
  counts[1]++;
  CU_ASSERT(agrees_with_differences(a, b, c, ws));
}

TEST(every_combination_works_or_is_refused_by_the_fields_names) {
  policy_workspace *ws = policy_workspace_new();
  size_t refused = 0, counts[2] = {0};
  batch b;
  batch_fill(&b);
  for (uint64_t k = 0; k < COMBINATIONS; k++) {
    const policy_algorithm a = combination(k);
    gl_error err = {0};
    if (policy_algorithm_check(&a, &err) != GL_OK) {
      refused++;
      check_refused(&a, &err);
    } else {
      check_works(&a, &b, ws, counts);
    }
  }
  policy_workspace_free(ws);
  /* every way is well covered: about 700 refused, 450 linear and 500 differentiable */
  CU_ASSERT(refused > 300 && refused < 1500);
  CU_ASSERT(counts[0] > 200);
  CU_ASSERT(counts[1] > 200);
  if (getenv("SHOW_BATTERY") != NULL)
    fprintf(stderr, "%zu refused, %zu linear, %zu differentiable\n", refused, counts[0], counts[1]);
}
