/* Compares the parts with what is known exactly, then times them. */
#include "experiments/doctor/self_test.h"

#include "core/policy/policy.h"
#include "experiments/base/seconds.h"
#include "experiments/lab/table.h"
#include "experiments/recipe/recipe.h"
#include "experiments/train/train.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- coefficients are the loss's derivatives --- */

enum { RESPONSES = 4, TOKENS = 7 };

static const size_t group_start[] = {0, RESPONSES}, token_start[] = {0, 2, 3, 5, 7};
static const double reward[RESPONSES] = {1, 0, 0.5, 0},
                    logq[TOKENS] = {-1.2, -0.4, -1.8, -0.7, -0.3, -2.1, -0.9},
                    at[TOKENS] = {-1.15, -0.45, -1.75, -0.72, -0.31, -2.0, -0.95};

static gl_status loss_at(const policy_algorithm *algorithm, const double *logp, policy_output *out,
                         policy_workspace *w, gl_error *err) {
  const policy_input in = {.n_groups = 1,
                           .n_responses = RESPONSES,
                           .n_tokens = TOKENS,
                           .group_start = group_start,
                           .token_start = token_start,
                           .reward = reward,
                           .logp = logp,
                           .logq = logq,
                           .max_length = 2};
  out->skip_metrics = 1;
  return policy_evaluate(algorithm, &in, out, w, err);
}

/* The largest difference of a coefficient from the central difference of the loss. */
static gl_status largest_error(const char *name, policy_workspace *w, double *error,
                               gl_error *err) {
  const double h = 1e-5;
  const policy_algorithm *algorithm = policy_algorithms_find(name);
  double coefficient[TOKENS], logp[TOKENS];
  policy_output out = {.coefficient = coefficient}, up = {0}, down = {0};
  gl_status status = loss_at(algorithm, at, &out, w, err);
  for (size_t t = 0; t < TOKENS && status == GL_OK; ++t) {
    memcpy(logp, at, sizeof logp);
    logp[t] = at[t] + h;
    status = loss_at(algorithm, logp, &up, w, err);
    logp[t] = at[t] - h;
    if (status == GL_OK) status = loss_at(algorithm, logp, &down, w, err);
    *error = fmax(*error, fabs((up.loss - down.loss) / (2 * h) + coefficient[t]));
  }
  return status;
}

/* Rows whose coefficients are derivatives of what they return as their loss. */
static gl_status check_coefficients(self_check *c, gl_error *err) {
  static const char *const rows[] = {"is", "grpo", "gspo"};
  double error = 0;
  policy_workspace *w = policy_workspace_new();
  gl_status status = w != NULL ? GL_OK : gl_fail_memory(err, "a workspace");
  for (size_t i = 0; i < 3 && status == GL_OK; ++i) status = largest_error(rows[i], w, &error, err);
  policy_workspace_free(w);
  c->passed = error < 1e-8;
  snprintf(c->detail, sizeof c->detail,
           "of is, grpo and gspo against differences of the loss: %.1e apart", error);
  return status;
}

/* --- importance sampling is unbiased --- */

static gl_status check_laboratory(self_check *c, gl_error *err) {
  cfg_doc *doc = NULL;
  lab_recipe r = {0};
  lab_table t = {0};
  gl_status status = recipe_load(&doc, "four_arms", NULL, 0, err);
  if (status == GL_OK) status = lab_recipe_read(&r, doc, err);
  if (status == GL_OK) status = lab_table_init(&t, &r, 1, PROGRESS_SILENT, err);
  if (status == GL_OK) {
    const double bias = t.results[0].numbers.bias;
    c->passed = strcmp(r.algorithms[0].name, "is") == 0 && bias < 1e-12;
    snprintf(c->detail, sizeof c->detail,
             "importance sampling on four arms has no bias: %.1e, enumerated", bias);
  }
  lab_table_fini(&t);
  lab_recipe_fini(&r);
  cfg_free(doc);
  return status;
}

/* --- a run learns, and learns the same again --- */

static gl_status self_test_train(run_result *out, gl_error *err) {
  static const char *const overrides[] = {"steps=150"};
  const train_options quiet = {0};
  cfg_doc *doc = NULL;
  recipe r = {0};
  *out = (run_result){.n_steps = 0};
  gl_status status = recipe_load(&doc, "quickstart", overrides, 1, err);
  if (status == GL_OK) status = recipe_read(&r, doc, err);
  r.threads = 1;
  if (status == GL_OK) status = train_run(out, &r, &quiet, err);
  cfg_free(doc);
  return status;
}

static gl_status check_training(self_check *c, gl_error *err) {
  run_result one, other = {.n_steps = 0};
  gl_status status = self_test_train(&one, err);
  if (status == GL_OK) status = self_test_train(&other, err);
  if (status == GL_OK) {
    const run_scores a = run_result_scores(&one), b = run_result_scores(&other);
    c->passed = a.last > a.eval_first + 0.1 && a.last == b.last;
    snprintf(c->detail, sizeof c->detail, "quickstart goes from %.3f to %.3f, and to %.3f again",
             a.eval_first, a.last, b.last);
  }
  run_result_fini(&one);
  run_result_fini(&other);
  return status;
}

/* --- all together --- */

typedef struct named_check {
  const char *name;
  gl_status (*run)(self_check *c, gl_error *err);
} named_check;

static const named_check checks[] = {{"coefficients", check_coefficients},
                                     {"laboratory", check_laboratory},
                                     {"training", check_training}};

static void self_test_run_check(self_test *t, const named_check *named) {
  gl_error err = {.status = GL_OK};
  self_check *c = &t->checks[t->n_checks++];
  *c = (self_check){.name = named->name};
  if (named->run(c, &err) == GL_OK) return;
  c->passed = 0;
  snprintf(c->detail, sizeof c->detail, "%.*s", SELF_TEST_TEXT - 1, err.text);
}

static gl_status run_once(void *self, gl_error *err) {
  run_result *out = self;
  gl_status status = self_test_train(out, err);
  run_result_fini(out);
  return status;
}

static gl_status time_training(bench *b, gl_error *err) {
  run_result out;
  bench_number *number = NULL;
  return bench_measure(b, &number, "updates_per_s", "updates a second of a toy learner", 150, 0.2,
                       run_once, &out, err);
}

/* The parts of `gepolab bench` that take a second or two. */
static void self_test_measure(self_test *t) {
  static gl_status (*const parts[])(bench * b, gl_error * err) = {time_training, bench_policy,
                                                                  bench_lab, bench_llm};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i) {
    gl_error err = {.status = GL_OK};
    if (parts[i](&t->speeds, &err) == GL_OK) continue;
    self_check *c = &t->checks[t->n_checks++];
    *c = (self_check){.name = "speeds"};
    snprintf(c->detail, sizeof c->detail, "%.*s", SELF_TEST_TEXT - 1, err.text);
    return;
  }
}

void self_test_run(self_test *t) {
  const double begun = seconds_now();
  *t = (self_test){
      .speeds = {.shape = "64x2", .quick = 1, .takes_busy = 1, .end = begun + SELF_TEST_SECONDS}};
  for (size_t i = 0; i < sizeof checks / sizeof *checks; ++i) self_test_run_check(t, &checks[i]);
  self_test_measure(t);
  t->seconds = seconds_now() - begun;
}

int self_test_passed(const self_test *t) {
  for (size_t i = 0; i < t->n_checks; ++i)
    if (!t->checks[i].passed) return 0;
  return 1;
}
