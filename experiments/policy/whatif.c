/* Evaluates the batches of a recorded run with the policy core, one line of the log at a time. */
#include "experiments/policy/whatif.h"

#include "analysis/figures/recorded.h"
#include "core/config/config.h"
#include "experiments/base/memory.h"
#include "experiments/policy/group_file.h"

#include <assert.h>
#include <errno.h>
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
  gl_status status = cfg_load_text(&doc, "{}", 2, "command line", err);
  for (size_t i = 0; i <= n && status == GL_OK; ++i) {
    char *assignment =
        i > 0 ? must_textf("the algorithm", "algorithm.%s", overrides[i - 1])
              : must_textf("the algorithm", "algorithm%s=%s", text[0] == '{' ? "" : ".base", text);
    status = cfg_override(doc, assignment, err);
    free(assignment);
  }
  if (status == GL_OK)
    status = policy_algorithm_parse_alone(out, cfg_find(cfg_root(doc), "algorithm"), err);
  cfg_free(doc);
  return status;
}

gl_status whatif_init(whatif *w, const char *const *names, size_t n_names, gl_error *err) {
  const size_t n = n_names > 0 ? n_names : policy_algorithms_count();
  gl_status status = GL_OK;
  *w = (whatif){.first_step = NAN, .last_step = NAN, .first_time = NAN, .last_time = NAN};
  w->row = MUST_ARRAY(whatif_row, n, "the algorithms");
  w->n_rows = n;
  for (size_t i = 0; i < n && status == GL_OK; ++i) {
    moments_begin(&w->row[i].ess_on_policy);
    for (int q = 0; q < WHATIF_QUANTITIES; ++q) moments_begin(&w->row[i].of[q]);
    if (n_names > 0)
      status = whatif_algorithm(&w->row[i].algorithm, names[i], NULL, 0, err);
    else
      w->row[i].algorithm = *policy_algorithms_at(i);
  }
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

static double share_of_zeros(const double *c, size_t n) {
  size_t zeros = 0;
  for (size_t t = 0; t < n; ++t) zeros += c[t] == 0;
  return (double)zeros / (double)n;
}

/* --- data required by figures --- */

/* Appends the numbers of one more update, all NaN; NULL if numbers are not kept. */
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
  kept[RECORDED_IDLE] = share_of_zeros(out->coefficient, n_tokens);
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
    return share_of_zeros(out->coefficient, n_tokens);
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

static gl_status add_batch(whatif *w, const group_record *record, policy_workspace *workspace,
                           gl_error *err) {
  const policy_input *in = &record->groups.input;
  double *coefficient = MUST_ARRAY(double, in->n_tokens, "the coefficients");
  double *kept = keep_update(w);
  gl_status status = add_to_age(w, in, kept, workspace, err);
  for (size_t i = 0; i < w->n_rows && status == GL_OK; ++i)
    status = add_to_row(&w->row[i], in, coefficient,
                        kept == NULL ? NULL : kept + RECORDED_VALUES + i * RECORDED_OF_ROW,
                        workspace, err);
  free(coefficient);
  ++w->n_batches;
  w->n_groups += in->n_groups;
  w->n_responses += in->n_responses;
  w->n_tokens += in->n_tokens;
  w->n_restarts += record->step < w->last_step;
  if (isnan(w->first_step)) w->first_step = record->step;
  if (!isnan(record->step)) w->last_step = record->step;
  if (isnan(w->first_time)) w->first_time = record->time_s;
  if (!isnan(record->time_s)) w->last_time = record->time_s;
  return status;
}

static int whatif_is_blank(const char *text, size_t size) {
  for (size_t i = 0; i < size; ++i)
    if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r' && text[i] != '\n') return 0;
  return 1;
}

static gl_status whatif_add_line(whatif *w, const char *text, size_t size, const char *name,
                                 size_t line, policy_workspace *workspace, gl_error *err) {
  group_record record;
  if (whatif_is_blank(text, size)) return GL_OK;
  gl_status status = group_record_read_text(&record, text, size, name, line, err);
  if (status != GL_OK) return status;
  gl_error why = {0};
  status = add_batch(w, &record, workspace, &why);
  if (status != GL_OK) gl_fail(err, status, "%s:%zu: %s", name, line, why.text);
  group_file_fini(&record.groups);
  return status;
}

/* Returns 1 if a text ends inside an object, like the last line of a log whose program was killed.
 */
static int whatif_is_cut(const char *text, size_t size) {
  size_t depth = 0;
  int in_string = 0;
  for (size_t i = 0; i < size; ++i) {
    const char c = text[i];
    if (c == '"')
      in_string = !in_string;
    else if (!in_string && (c == '{' || c == '['))
      ++depth;
    else if (!in_string && (c == '}' || c == ']') && depth > 0)
      --depth;
  }
  return size > 0 && text[0] == '{' && depth > 0;
}

/* Adds the last line of a log, which has no line feed. */
static gl_status whatif_add_last_line(whatif *w, const char *text, size_t size, const char *name,
                                      size_t line, policy_workspace *workspace, gl_error *err) {
  if (!whatif_is_cut(text, size)) return whatif_add_line(w, text, size, name, line, workspace, err);
  ++w->n_incomplete;
  return GL_OK;
}

static gl_status check_any(const whatif *w, size_t before, const char *name, gl_error *err) {
  if (w->n_batches > before) return GL_OK;
  return gl_fail(err, GL_EINPUT,
                 "%s: there is no record in it; a record is a line {\"step\": 1, \"groups\": "
                 "[{\"rewards\": […], \"logp\": [[…]], \"logq\": [[…]]}]}",
                 name);
}

/* --- files --- */

gl_status whatif_read_text(whatif *w, const char *text, size_t size, const char *name,
                           gl_error *err) {
  policy_workspace *workspace = must_have(policy_workspace_new(), "a workspace");
  const size_t before = w->n_batches;
  gl_status status = GL_OK;
  for (size_t at = 0, line = 1; at < size && status == GL_OK; ++line) {
    const char *end = memchr(text + at, '\n', size - at);
    const size_t length = end != NULL ? (size_t)(end - text) - at : size - at;
    status = (end != NULL ? whatif_add_line : whatif_add_last_line)(w, text + at, length, name,
                                                                    line, workspace, err);
    at += length + 1;
  }
  policy_workspace_free(workspace);
  return status == GL_OK ? check_any(w, before, name, err) : status;
}

typedef struct line_reader {
  FILE *from;
  const char *name;
  char *text;
  size_t size, room, number;
  int has_end; /* the line ends with a line feed */
} line_reader;

/* Reads the next line, without its end; *more is 0 after the last one. */
static gl_status next_line(line_reader *r, int *more, gl_error *err) {
  int c = 0;
  r->size = 0;
  ++r->number;
  while ((c = getc_unlocked(r->from)) != EOF && c != '\n') {
    if (r->size == WHATIF_MOST_LINE)
      return gl_fail(err, GL_EINPUT,
                     "%s:%zu: the line is longer than 256 MiB; write one update a line, or fewer "
                     "of its groups",
                     r->name, r->number);
    if (r->size == r->room) MUST_RESERVE(r->text, r->room, r->size + 1, "a line of the log");
    r->text[r->size++] = (char)c;
  }
  r->has_end = c != EOF;
  *more = c != EOF || r->size > 0;
  if (c == EOF && ferror(r->from))
    return gl_fail(err, GL_EIO, "%s: cannot be read: %s", r->name, strerror(errno));
  return GL_OK;
}

/* Parquet files begin with these bytes, which are not JSON. */
static int is_parquet(const line_reader *r) {
  return r->number == 1 && r->size >= 4 && memcmp(r->text, "PAR1", 4) == 0;
}

gl_status whatif_read(whatif *w, const char *path, gl_error *err) {
  const int is_stdin = strcmp(path, "-") == 0;
  const size_t before = w->n_batches;
  line_reader r = {.from = is_stdin ? stdin : fopen(path, "rb"),
                   .name = is_stdin ? "standard input" : path};
  if (r.from == NULL)
    return gl_fail(err, GL_EIO, "%s: cannot be opened: %s", path, strerror(errno));
  policy_workspace *workspace = must_have(policy_workspace_new(), "a workspace");
  gl_status status = GL_OK;
  for (int more = 1; more && status == GL_OK;) {
    status = next_line(&r, &more, err);
    if (status == GL_OK && is_parquet(&r))
      status = gl_fail(err, GL_EINPUT,
                       "%s: is Parquet, which Python reads: gepolab.whatif(\"run.parquet\") of the "
                       "package in python/",
                       r.name);
    if (status == GL_OK && more)
      status = (r.has_end ? whatif_add_line : whatif_add_last_line)(w, r.text, r.size, r.name,
                                                                    r.number, workspace, err);
  }
  if (status == GL_OK) status = check_any(w, before, r.name, err);
  policy_workspace_free(workspace);
  free(r.text);
  if (!is_stdin) fclose(r.from);
  return status;
}

/* --- figures --- */

/* Selects the kept numbers of algorithms that evaluated at least one batch: names [n_rows], value.
 */
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
      memcpy(value, from + RECORDED_VALUES + i * RECORDED_OF_ROW, RECORDED_OF_ROW * sizeof *value);
      value += RECORDED_OF_ROW;
    }
  }
  return n;
}

gl_status whatif_draw(const whatif *w, const figure_request *q, gl_error *err) {
  assert(w->kept != NULL && w->n_batches > 0);
  const char **names = MUST_ARRAY(const char *, w->n_rows, "figures");
  double *value = MUST_ARRAY(double, w->n_batches *recorded_width(w->n_rows), "figures");
  const recorded r = {
      .value = value, .n = w->n_batches, .rows = names, .n_rows = taken(w, names, value)};
  const gl_status status = figures_of_recorded(&r, q, err);
  free(names);
  free(value);
  return status;
}
