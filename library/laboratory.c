/* The exact laboratory for tables of probabilities: a softmax over K responses of one token. */
#include "core/rl/enumerable.h"
#include "library/internal.h"
#include "toy/lab/estimator_moments.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- the table as an enumerable policy --- */
/* A parameter vector holds log-probabilities, which are logits up to a constant: their softmax
 * returns the probabilities, and d log p_y / d logit_k = [y = k] - p_k. */

static size_t table_n_responses(const void *self, size_t x) {
  (void)x;
  return (size_t)((const gepolab_table *)self)->n_responses;
}

static size_t table_length(const void *self, size_t x, size_t y) {
  (void)self;
  (void)x;
  (void)y;
  return 1;
}

static void table_rewards(const void *self, size_t x, double *reward) {
  const gepolab_table *t = self;
  const size_t k = (size_t)t->n_responses;
  memcpy(reward, t->reward + x * k, k * sizeof *reward);
}

static gl_status table_log_probs(const void *self, const double *theta, size_t x, double *logp,
                                 gl_error *err) {
  const size_t k = (size_t)((const gepolab_table *)self)->n_responses;
  (void)err;
  memcpy(logp, theta + x * k, k * sizeof *logp);
  return GL_OK;
}

static gl_status table_accumulate(const void *self, const double *theta, size_t x,
                                  const double *coefficient, double *grad, gl_error *err) {
  const size_t k = (size_t)((const gepolab_table *)self)->n_responses;
  double total = 0;
  (void)err;
  for (size_t y = 0; y < k; ++y) total += coefficient[y];
  for (size_t y = 0; y < k; ++y) grad[x * k + y] += coefficient[y] - total * exp(theta[x * k + y]);
  return GL_OK;
}

static gl_status table_scores(const void *self, const double *theta, size_t x, double *score,
                              gl_error *err) {
  const gepolab_table *t = self;
  const size_t k = (size_t)t->n_responses, n = (size_t)t->n_prompts * k;
  (void)err;
  memset(score, 0, k * n * sizeof *score);
  for (size_t y = 0; y < k; ++y)
    for (size_t z = 0; z < k; ++z)
      score[y * n + x * k + z] = (double)(y == z) - exp(theta[x * k + z]);
  return GL_OK;
}

static const enumerable_ops table_ops = {.n_responses = table_n_responses,
                                         .length = table_length,
                                         .rewards = table_rewards,
                                         .log_probs = table_log_probs,
                                         .accumulate_score = table_accumulate,
                                         .sequence_scores = table_scores,
                                         .token_scores = table_scores};

/* --- checks --- */

/* Limits on the laboratory's tables: each prompt needs K x (n_prompts K) scores. */
enum { MOST_RESPONSES = 1 << 16, MOST_PROMPTS = 1 << 16 };

static gl_status check_row(const char *name, const double *p, size_t x, size_t k, gl_error *err) {
  double sum = 0;
  for (size_t y = 0; y < k; ++y) {
    if (!(p[x * k + y] >= 0) || p[x * k + y] > 1)
      return gl_fail(err, GL_EINPUT, "%s[%zu][%zu] is %g, no probability", name, x, y,
                     p[x * k + y]);
    sum += p[x * k + y];
  }
  if (fabs(sum - 1) > 1e-9)
    return gl_fail(err, GL_EINPUT, "the probabilities %s[%zu] sum to %.12g, not to 1", name, x,
                   sum);
  return GL_OK;
}

static gl_status check_weights(const gepolab_table *t, gl_error *err) {
  double sum = 0;
  if (t->prompt_weight == NULL) return GL_OK;
  for (int64_t x = 0; x < t->n_prompts; ++x) {
    if (!(t->prompt_weight[x] >= 0) || !isfinite(t->prompt_weight[x]))
      return gl_fail(err, GL_EINPUT, "prompt_weight[%lld] is %g", (long long)x,
                     t->prompt_weight[x]);
    sum += t->prompt_weight[x];
  }
  if (fabs(sum - 1) > 1e-9)
    return gl_fail(err, GL_EINPUT, "prompt_weight sums to %.12g, not to 1", sum);
  return GL_OK;
}

static gl_status check_table(const gepolab_table *t, gl_error *err) {
  if (t->size != sizeof *t)
    return gl_fail(err, GL_EINPUT,
                   "table.size is %zu, not sizeof(gepolab_table) = %zu: begin with GEPOLAB_INIT",
                   t->size, sizeof *t);
  if (t->n_prompts < 1 || t->n_prompts > MOST_PROMPTS || t->n_responses < 2 ||
      t->n_responses > MOST_RESPONSES)
    return gl_fail(err, GL_EINPUT,
                   "a table has 1 to %d prompts of 2 to %d responses; this one has %lld of %lld",
                   (int)MOST_PROMPTS, (int)MOST_RESPONSES, (long long)t->n_prompts,
                   (long long)t->n_responses);
  if (t->learner == NULL || t->sampler == NULL || t->reward == NULL)
    return gl_fail(err, GL_EINPUT, "a table needs learner, sampler and reward");
  const size_t k = (size_t)t->n_responses;
  gl_status status = check_weights(t, err);
  for (size_t x = 0; x < (size_t)t->n_prompts && status == GL_OK; ++x) {
    status = check_row("learner", t->learner, x, k, err);
    if (status == GL_OK) status = check_row("sampler", t->sampler, x, k, err);
    for (size_t y = 0; y < k && status == GL_OK; ++y)
      if (!isfinite(t->reward[x * k + y]))
        status = gl_fail(err, GL_EINPUT, "reward[%zu][%zu] is %g", x, y, t->reward[x * k + y]);
  }
  return status;
}

/* --- public function --- */

static void laboratory_report(const lab_result *r, gepolab_moments *out) {
  const lab_numbers *n = &r->numbers, *e = &r->error;
  switch (r->method) {
  case LAB_EXACT:
    out->method = 0;
    break;
  case LAB_MONTE_CARLO:
    out->method = 1;
    break;
  case LAB_POPULATION:
    out->method = 2;
    break;
  }
  out->applicable = r->applicable;
  memcpy(out->why, r->why, sizeof out->why);
  out->groups = r->groups;
  out->value = r->value;
  out->kl = r->kl;
  out->kl_qp = r->kl_qp;
  out->bias = n->bias;
  out->cosine = n->cosine;
  out->scaled_bias = n->scaled_bias;
  out->variance = n->variance;
  out->mse = n->mse;
  out->scaled_mse = n->scaled_mse;
  out->snr = n->snr;
  out->iw_mean = n->iw_mean;
  out->iw_variance = n->iw_variance;
  out->aw_variance = n->aw_variance;
  out->ess = n->ess;
  out->bias_error = e->bias;
  out->cosine_error = e->cosine;
  out->variance_error = e->variance;
  out->mse_error = e->mse;
  const size_t bytes = r->n_parameters * sizeof(double);
  if (out->expected != NULL && r->expected != NULL) memcpy(out->expected, r->expected, bytes);
  if (out->truth != NULL && r->truth != NULL) memcpy(out->truth, r->truth, bytes);
}

_Static_assert(sizeof((gepolab_moments *)0)->why == sizeof((lab_result *)0)->why, "one text");

static gl_status laboratory_measure(const gepolab_algorithm *algorithm, const gepolab_table *t,
                                    lab_spec *spec, gepolab_moments *out, gl_error *err) {
  const size_t n = (size_t)t->n_prompts * (size_t)t->n_responses;
  const enumerable world = {.ops = &table_ops,
                            .self = t,
                            .n_prompts = (size_t)t->n_prompts,
                            .prompt_weight = t->prompt_weight,
                            .n_parameters = n,
                            .max_length = 1,
                            .max_responses = (size_t)t->n_responses};
  const policy_algorithm *const one[] = {&algorithm->own};
  lab_result result = {.method = LAB_EXACT};
  double *theta = malloc(2 * n * sizeof *theta);
  if (theta == NULL) return gl_fail_memory(err, "the table's logarithms");
  for (size_t i = 0; i < n; ++i) {
    theta[i] = log(t->learner[i]);
    theta[n + i] = log(t->sampler[i]);
  }
  spec->world = &world;
  spec->theta_learner = theta;
  spec->theta_sampler = theta + n;
  gl_status status = lab_measure(&result, one, 1, spec, err);
  if (status == GL_OK) laboratory_report(&result, out);
  if (status == GL_OK) lab_result_fini(&result);
  free(theta);
  return status;
}

gepolab_status gepolab_laboratory(const gepolab_algorithm *algorithm, const gepolab_table *table,
                                  const gepolab_groups *groups, gepolab_moments *out,
                                  gepolab_error *err) {
  gl_error own = {0};
  gl_status status = check_table(table, &own);
  if (status == GL_OK && out->size != sizeof *out)
    status = gl_fail(&own, GL_EINPUT,
                     "moments.size is %zu, not sizeof(gepolab_moments) = %zu: begin with "
                     "GEPOLAB_INIT",
                     out->size, sizeof *out);
  if (status == GL_OK && groups->size != sizeof *groups)
    status = gl_fail(&own, GL_EINPUT,
                     "groups.size is %zu, not sizeof(gepolab_groups) = %zu: begin with "
                     "GEPOLAB_INIT",
                     groups->size, sizeof *groups);
  if (status == GL_OK && (groups->group_size < 0 || groups->group_size > MOST_RESPONSES ||
                          groups->budget < 0 || groups->samples < 0))
    status = gl_fail(&own, GL_EINPUT,
                     "group_size lies between 0 and %d, and budget and samples are not negative",
                     (int)MOST_RESPONSES);
  if (status == GL_OK && groups->group_size > 0)
    status = policy_algorithm_check_group_size(&algorithm->own, (size_t)groups->group_size, &own);
  lab_spec spec = {.weights = LAB_WEIGHTS_RAW,
                   .group_size = (size_t)groups->group_size,
                   .budget = (size_t)groups->budget,
                   .samples = (size_t)groups->samples,
                   .seed = groups->seed,
                   .threads = 1};
  if (status == GL_OK) status = laboratory_measure(algorithm, table, &spec, out, &own);
  return status == GL_OK ? GEPOLAB_OK : library_failed(err, &own);
}
