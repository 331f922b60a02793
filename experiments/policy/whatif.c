/* Evaluates the batches of a recorded run with the policy core, one at a time. */
#include "experiments/policy/whatif.h"

#include "analysis/figures/recorded.h"
#include "core/config/config.h"
#include "core/config/user_defined.h"
#include "experiments/base/memory.h"
#include "experiments/base/program.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- quantities --- */

static const struct {
  const char *name, *heading;
  metric from; /* METRIC_COUNT: computed from the coefficients */
} quantities[WHATIF_QUANTITIES] = {
    [WHATIF_WEIGHT_MEAN] = {"weight_mean", "mean w", METRIC_IW_MEAN},
    [WHATIF_WEIGHT_MAX] = {"weight_max", "max w", METRIC_IW_MAX},
    [WHATIF_WEIGHT_VARIANCE] = {"weight_variance", "var w", METRIC_IW_VARIANCE},
    [WHATIF_ESS] = {"ess", "ESS", METRIC_ESS},
    [WHATIF_CLIP_FRACTION] = {"clip_fraction", "clipped", METRIC_CLIP_FRACTION},
    [WHATIF_AW_VARIANCE] = {"aw_variance", "var Aw", METRIC_AW_VARIANCE},
    [WHATIF_COEFFICIENT_NORM] = {"coefficient_norm", "|c|", METRIC_COUNT},
    [WHATIF_IDLE_TOKENS] = {"idle_tokens", "idle", METRIC_COUNT},
    [WHATIF_LOSS] = {"loss", "loss", METRIC_LOSS},
};

const char *whatif_name(whatif_quantity q) {
  assert(q < WHATIF_QUANTITIES);
  return quantities[q].name;
}

const char *whatif_heading(whatif_quantity q) {
  assert(q < WHATIF_QUANTITIES);
  return quantities[q].heading;
}

static void moments_begin(whatif_moments *m) {
  *m = (whatif_moments){.mean = NAN, .least = NAN, .most = NAN};
}

static void moments_add(whatif_moments *m, double x) {
  if (isnan(x)) return; /* the batch does not have the required data */
  if (isinf(x)) {
    ++m->n_infinite;
    return;
  }
  ++m->n;
  m->mean = m->n == 1 ? x : m->mean + (x - m->mean) / (double)m->n;
  m->least = fmin(m->least, x);
  m->most = fmax(m->most, x);
}

/* --- rows --- */

gl_status whatif_algorithm(policy_algorithm *out, const char *text, const char *const *overrides,
                           size_t n, gl_error *err) {
  cfg_doc *doc = NULL;
  cfg_own *own = NULL;
  gl_status status = cfg_load_text(&doc, "{}", 2, "command line", err);
  for (size_t i = 0; i <= n && status == GL_OK; ++i) {
    char *assignment =
        i > 0 ? must_textf("the algorithm", "algorithm.%s", overrides[i - 1])
              : must_textf("the algorithm", "algorithm%s=%s", text[0] == '{' ? "" : ".base", text);
    status = cfg_override(doc, assignment, err);
    free(assignment);
  }
  if (status == GL_OK) status = program_own(&own, err);
  if (status == GL_OK) status = cfg_own_expand(own, doc, err);
  if (status == GL_OK)
    status = policy_algorithm_parse_alone(out, cfg_find(cfg_root(doc), "algorithm"), err);
  cfg_own_free(own);
  cfg_free(doc);
  return status;
}

bool whatif_lacks_prox(const policy_algorithm *algorithm, const policy_input *in) {
  return algorithm->old_policy == OLD_PROXIMAL && in->logprox == NULL;
}

/* Fills in the named algorithms, or the published ones and then the user's own. */
static gl_status whatif_choose(whatif *w, const char *const *names, size_t n_names,
                               const cfg_own *own, gl_error *err) {
  const size_t published = policy_algorithms_count();
  gl_status status = GL_OK;
  w->n_rows = n_names > 0 ? n_names : published + cfg_own_count(own, "algorithms");
  w->row = MUST_ARRAY(whatif_row, w->n_rows, "the algorithms");
  for (size_t i = 0; i < w->n_rows && status == GL_OK; ++i) {
    moments_begin(&w->row[i].ess_on_policy);
    for (int q = 0; q < WHATIF_QUANTITIES; ++q) moments_begin(&w->row[i].of[q]);
    if (n_names > 0)
      status = whatif_algorithm(&w->row[i].algorithm, names[i], NULL, 0, err);
    else if (i < published)
      w->row[i].algorithm = *policy_algorithms_at(i);
    else
      status = policy_algorithms_own(&w->row[i].algorithm, own, i - published, err);
  }
  return status;
}

gl_status whatif_init(whatif *w, const char *const *names, size_t n_names, gl_error *err) {
  cfg_own *own = NULL;
  *w = (whatif){.n_rows = 0};
  gl_status status = program_own(&own, err);
  if (status == GL_OK) status = whatif_choose(w, names, n_names, own, err);
  cfg_own_free(own);
  for (size_t a = 0; a <= WHATIF_MOST_STALENESS; ++a) {
    moments_begin(&w->age[a].kl_token);
    moments_begin(&w->age[a].kl_response);
    moments_begin(&w->age[a].log_variance);
  }
  return status;
}

void whatif_fini(whatif *w) {
  free(w->row);
  free(w->kept);
  w->row = NULL;
  w->kept = NULL;
  w->n_rows = 0;
}

/* --- one batch --- */

static double norm_of(const double *c, size_t n) {
  double scale = 0, sum = 0;
  for (size_t t = 0; t < n; ++t) scale = fmax(scale, fabs(c[t]));
  if (!(scale > 0) || isinf(scale)) return scale;
  for (size_t t = 0; t < n; ++t) sum += (c[t] / scale) * (c[t] / scale);
  return scale * sqrt(sum);
}

static double fraction_of_zeros(const double *c, size_t n) {
  size_t zeros = 0;
  for (size_t t = 0; t < n; ++t) zeros += c[t] == 0;
  return (double)zeros / (double)n;
}

/* --- data required by figures --- */

/* Appends the numbers of an update, initially NaN, and returns them; NULL if numbers are not kept.
 */
static double *keep_update(whatif *w) {
  const size_t width = recorded_width(w->n_rows);
  if (!w->keeps) return NULL;
  MUST_RESERVE(w->kept, w->kept_room, (w->n_batches + 1) * width, "a log's numbers");
  double *out = w->kept + w->n_batches * width;
  for (size_t i = 0; i < width; ++i) out[i] = NAN;
  return out;
}

static void keep_row(const policy_output *out, size_t n_tokens, double *kept) {
  if (kept == NULL) return;
  kept[RECORDED_LOG_VARIANCE] = out->metric[METRIC_LOG_IW_VARIANCE];
  kept[RECORDED_ESS] = out->metric[METRIC_ESS];
  kept[RECORDED_CLIPPED] = out->metric[METRIC_CLIP_FRACTION];
  kept[RECORDED_IDLE] = fraction_of_zeros(out->coefficient, n_tokens);
}

static void keep_distance(const policy_output *out, double *kept) {
  if (kept == NULL) return;
  kept[RECORDED_STALENESS] = out->metric[METRIC_STALENESS];
  kept[RECORDED_KL_TOKEN] = out->metric[METRIC_KL_K3];
  kept[RECORDED_KL_RESPONSE] = out->metric[METRIC_KL_K3_SEQ];
  kept[RECORDED_LOG_VARIANCE_PQ] = out->metric[METRIC_LOG_IW_VARIANCE_PQ];
}

/* --- evaluating an algorithm --- */

static double whatif_value_of(whatif_quantity q, const policy_output *out, size_t n_tokens) {
  switch (q) {
  case WHATIF_COEFFICIENT_NORM:
    return norm_of(out->coefficient, n_tokens);
  case WHATIF_IDLE_TOKENS:
    return fraction_of_zeros(out->coefficient, n_tokens);
  case WHATIF_LOSS:
    return out->loss;
  case WHATIF_WEIGHT_MEAN:
  case WHATIF_WEIGHT_MAX:
  case WHATIF_WEIGHT_VARIANCE:
  case WHATIF_ESS:
  case WHATIF_CLIP_FRACTION:
  case WHATIF_AW_VARIANCE:
    return out->metric[quantities[q].from];
  case WHATIF_QUANTITIES:
    break;
  }
  assert(0);
  return NAN;
}

/* If a batch does not have what an algorithm needs (a reference policy, rewards of 0 and 1), the
 * algorithm counts it as rejected; this is not an error of the log. */
static gl_status add_to_row(whatif_row *row, const policy_input *in, double *coefficient,
                            double *kept, policy_workspace *workspace, gl_error *err) {
  policy_output out = {.coefficient = coefficient};
  gl_error why = {0};
  metrics_clear(out.metric);
  const gl_status status = policy_evaluate(&row->algorithm, in, &out, workspace, &why);
  if (status == GL_EINPUT) {
    if (row->n_refused++ == 0) snprintf(row->why, sizeof row->why, "%.255s", why.text);
    return GL_OK;
  }
  if (status != GL_OK) return gl_fail(err, status, "%s", why.text);
  ++row->n;
  row->n_no_prox += whatif_lacks_prox(&row->algorithm, in);
  for (int q = 0; q < WHATIF_QUANTITIES; ++q)
    moments_add(&row->of[q], whatif_value_of((whatif_quantity)q, &out, in->n_tokens));
  if (policy_is_on_policy(out.metric)) moments_add(&row->ess_on_policy, out.metric[METRIC_ESS]);
  keep_row(&out, in->n_tokens, kept);
  return GL_OK;
}

/* Adds the distance between sampler and learner, which does not depend on the algorithm. It is
 * computed with grpo, which needs no optional data. */
static gl_status add_to_age(whatif *w, const policy_input *in, double *kept,
                            policy_workspace *workspace, gl_error *err) {
  policy_output out = {0};
  metrics_clear(out.metric);
  gl_status status = policy_evaluate(policy_algorithms_find("grpo"), in, &out, workspace, err);
  if (status != GL_OK) return status;
  keep_distance(&out, kept);
  const double staleness = out.metric[METRIC_STALENESS];
  if (!(staleness >= 0)) {
    ++w->n_unknown_age;
    return GL_OK;
  }
  const size_t at =
      staleness >= WHATIF_MOST_STALENESS ? WHATIF_MOST_STALENESS : (size_t)(staleness + 0.5);
  whatif_age *age = &w->age[at];
  ++age->n;
  moments_add(&age->kl_token, out.metric[METRIC_KL_K3]);
  moments_add(&age->kl_response, out.metric[METRIC_KL_K3_SEQ]);
  moments_add(&age->log_variance, out.metric[METRIC_LOG_IW_VARIANCE_PQ]);
  return GL_OK;
}

/* Evaluates all algorithms on a batch. */
static gl_status add_batch(whatif *w, const token_batch *batch, policy_workspace *workspace,
                           gl_error *err) {
  const policy_input *in = &batch->input;
  double *coefficient = MUST_ARRAY(double, in->n_tokens, "the coefficients");
  double *kept = keep_update(w);
  gl_status status = add_to_age(w, in, kept, workspace, err);
  for (size_t i = 0; i < w->n_rows && status == GL_OK; ++i)
    status = add_to_row(&w->row[i], in, coefficient,
                        kept == NULL ? NULL : kept + RECORDED_VALUES + i * RECORDED_OF_ALGORITHM,
                        workspace, err);
  free(coefficient);
  ++w->n_batches;
  w->n_groups += in->n_groups;
  w->n_responses += in->n_responses;
  w->n_tokens += in->n_tokens;
  return status;
}

/* Adds the batches of an opened log, and closes it. */
static gl_status whatif_add_log(whatif *w, token_log *log, gl_error *err) {
  policy_workspace *workspace = must_have(policy_workspace_new(), "a workspace");
  const token_batch *batch = NULL;
  gl_status status = GL_OK;
  while (status == GL_OK && (status = token_log_next(log, &batch, err)) == GL_OK && batch != NULL) {
    gl_error why = {0};
    status = token_log_check(log, err);
    if (status == GL_OK && (status = add_batch(w, batch, workspace, &why)) != GL_OK)
      gl_fail(err, status, "update %zu of the log: %s", w->n_batches, why.text);
  }
  w->log = *token_log_about(log);
  policy_workspace_free(workspace);
  return status;
}

gl_status whatif_read(whatif *w, const char *const *paths, size_t n, const token_request *request,
                      gl_error *err) {
  token_log *log = NULL;
  gl_status status = token_log_open(&log, paths, n, request, err);
  if (status == GL_OK) status = whatif_add_log(w, log, err);
  token_log_close(log);
  return status;
}

gl_status whatif_read_text(whatif *w, const char *text, size_t size, const char *name,
                           const token_request *request, gl_error *err) {
  token_log *log = NULL;
  gl_status status = token_log_open_text(&log, text, size, name, request, err);
  if (status == GL_OK) status = whatif_add_log(w, log, err);
  token_log_close(log);
  return status;
}

/* --- figures --- */

/* Selects the algorithms that evaluated at least one batch. Writes their names to names[] and their
 * kept numbers to value[]. Returns how many. */
static size_t taken(const whatif *w, const char **names, double *value) {
  const size_t width = recorded_width(w->n_rows);
  size_t n = 0;
  for (size_t i = 0; i < w->n_rows; ++i)
    if (w->row[i].n > 0) names[n++] = w->row[i].algorithm.name;
  for (size_t b = 0; b < w->n_batches; ++b) {
    const double *from = w->kept + b * width;
    memcpy(value, from, RECORDED_VALUES * sizeof *value);
    value += RECORDED_VALUES;
    for (size_t i = 0; i < w->n_rows; ++i) {
      if (w->row[i].n == 0) continue;
      memcpy(value, from + RECORDED_VALUES + i * RECORDED_OF_ALGORITHM,
             RECORDED_OF_ALGORITHM * sizeof *value);
      value += RECORDED_OF_ALGORITHM;
    }
  }
  return n;
}

gl_status whatif_draw(const whatif *w, const figure_request *q, gl_error *err) {
  assert(w->kept != NULL && w->n_batches > 0);
  const char **names = MUST_ARRAY(const char *, w->n_rows, "figures");
  double *value = MUST_ARRAY(double, w->n_batches *recorded_width(w->n_rows), "figures");
  const recorded r = {.value = value,
                      .n = w->n_batches,
                      .algorithms = names,
                      .n_algorithms = taken(w, names, value)};
  const gl_status status = figures_of_recorded(&r, q, err);
  free(names);
  free(value);
  return status;
}
