/* gepolab policy: loss, weights and coefficients of given groups, to check a trainer against. */
#include "core/base/display_text.h"
#include "core/base/json.h"
#include "core/config/fields.h"
#include "core/policy/policy.h"
#include "experiments/base/args.h"
#include "experiments/base/memory.h"
#include "experiments/cli/common.h"
#include "experiments/policy/whatif.h"
#include "experiments/tokens/group_file.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct policy_request {
  int json;
  token_request log;
} policy_request;

/* The JSON is printed directly, because a tree would need about a hundred bytes per number, and a
 * batch may have millions of tokens. */
static void policy_print_number(double value) {
  char text[NUMBER_TEXT_SIZE];
  fputs(isfinite(value) ? number_text(value, text) : "null", stdout);
}

static void print_numbers(const double *value, size_t n) {
  putchar('[');
  for (size_t i = 0; i < n; ++i) {
    if (i > 0) fputs(", ", stdout);
    policy_print_number(value[i]);
  }
  putchar(']');
}

/* Prints the values of group g's tokens, a list for each response: [[0.1, 0.2], [0.3]]. */
static void print_token_lists(const policy_input *in, size_t g, const double *value) {
  putchar('[');
  for (size_t i = in->group_start[g]; i < in->group_start[g + 1]; ++i) {
    if (i > in->group_start[g]) fputs(", ", stdout);
    print_numbers(value + in->token_start[i], in->token_start[i + 1] - in->token_start[i]);
  }
  putchar(']');
}

static void print_group(const policy_input *in, size_t g, const policy_output *out,
                        const char *indent) {
  const size_t first = in->group_start[g];
  printf("%s\"advantages\": ", indent);
  print_numbers(out->advantage + first, in->group_start[g + 1] - first);
  printf(",\n%s\"weights\": ", indent);
  print_token_lists(in, g, out->weight);
  printf(",\n%s\"coefficients\": ", indent);
  print_token_lists(in, g, out->coefficient);
}

/* Returns 1 for metrics that policy_evaluate() computes (null if the input lacks what they need).
 * Metrics of schedules, learners and worlds are not printed; the loss is printed separately. */
static int is_diagnostic(metric m) {
  static const metric others[] = {METRIC_VERSION,      METRIC_LOSS,        METRIC_GRAD_NORM,
                                  METRIC_ENTROPY,      METRIC_KL_EXACT,    METRIC_KL_EXACT_QP,
                                  METRIC_EXACT_RETURN, METRIC_LR,          METRIC_ESTIMATION_ERROR,
                                  METRIC_GRAD_COSINE,  METRIC_KEPT_MASS,   METRIC_KEPT_MASS_Q,
                                  METRIC_ENTROPY_KEPT, METRIC_ENTROPY_TAIL};
  for (size_t k = 0; k < sizeof others / sizeof others[0]; ++k)
    if (m == others[k]) return 0;
  return 1;
}

static void policy_print_json(const policy_algorithm *algorithm, const group_file *g,
                              const policy_output *out) {
  cJSON *name = must_have(cJSON_CreateString(algorithm->name), "the JSON answer");
  char *quoted = must_have(cJSON_PrintUnformatted(name), "the JSON answer");
  cJSON_Delete(name);
  printf("{\n  \"algorithm\": %s,\n  \"loss\": ", quoted);
  free(quoted);
  policy_print_number(out->loss);
  fputs(g->listed ? ",\n  \"groups\": [" : ",\n", stdout);
  for (size_t i = 0; i < g->input.n_groups; ++i) {
    if (g->listed) fputs(i > 0 ? ", {\n" : "{\n", stdout);
    print_group(&g->input, i, out, g->listed ? "    " : "  ");
    if (g->listed) fputs("\n  }", stdout);
  }
  if (g->listed) putchar(']');
  for (int m = 0; m < METRIC_COUNT; ++m) {
    if (!is_diagnostic((metric)m)) continue;
    printf(",\n  \"%s\": ", metric_about((metric)m)->name);
    policy_print_number(out->metric[m]);
  }
  fputs("\n}\n", stdout);
}

static void policy_print_text(const policy_algorithm *algorithm, const policy_input *in,
                              const policy_output *out) {
  printf("%s: loss %.10g\n", shown(algorithm->name).text, out->loss);
  puts("group response token      advantage         weight    coefficient");
  for (size_t g = 0; g < in->n_groups; ++g)
    for (size_t i = in->group_start[g]; i < in->group_start[g + 1]; ++i)
      for (size_t t = in->token_start[i]; t < in->token_start[i + 1]; ++t)
        printf("%5zu %8zu %5zu %14.7g %14.7g %14.7g\n", g, i - in->group_start[g],
               t - in->token_start[i], out->advantage[i], out->weight[t], out->coefficient[t]);
  for (int m = 0; m < METRIC_COUNT; ++m)
    if (isfinite(out->metric[m]))
      printf("  %-20s %.10g\n", metric_about((metric)m)->name, out->metric[m]);
    else if (!isnan(out->metric[m])) /* NaN: not computable from the input */
      printf("  %-20s –\n", metric_about((metric)m)->name);
}

/* Returns 1 for a metric that may be infinite: one whose logarithm is another metric may exceed a
 * double, and the logarithm of a variance is -inf if there is no variance. Both are printed as
 * null, as is NaN (not computable from the input). */
static int may_overflow(metric m) {
  char name[64];
  const char *own = metric_about(m)->name;
  snprintf(name, sizeof name, "log_%s", own);
  return metric_find(name) != METRIC_COUNT || strncmp(own, "log_", 4) == 0;
}

/* Whether the square of some token's or response's ratio, or of a ratio of the first tokens of a
 * response, is beyond double precision. */
static bool ratios_overflow(const policy_input *in) {
  static const double most = 354; /* exp(2 x 355) is infinite */
  for (size_t i = 0; i < in->n_responses; ++i) {
    double sum = 0;
    for (size_t t = in->token_start[i]; t < in->token_start[i + 1]; ++t) {
      const double l = in->logp[t] - in->logq[t];
      sum += l;
      if (fabs(l) > most || fabs(sum) > most) return true;
    }
  }
  return false;
}

/* Returns an error that names an infinite result: JSON has no infinity, and no trainer can use it.
 * Metrics of may_overflow() are exempt. */
static gl_status check_finite(const group_file *g, const policy_output *out, gl_error *err) {
  const policy_precisions keeping = {.by_group = g->listed};
  gl_status status = policy_check_finite(&g->input, out, &keeping, err);
  if (status != GL_OK) return status;
  for (int m = 0; m < METRIC_COUNT; ++m)
    if (is_diagnostic((metric)m) && isinf(out->metric[m]) && !may_overflow((metric)m))
      return gl_fail(err, GL_ENUMERIC, "the diagnostic %s is %g: %s", metric_about((metric)m)->name,
                     out->metric[m],
                     ratios_overflow(&g->input)
                         ? "some logp and logq are so far apart that the square of their ratio is "
                           "beyond double precision"
                         : "the rewards are too large for double precision");
  return GL_OK;
}

static gl_status evaluate_groups(const policy_algorithm *algorithm, const group_file *g, int json,
                                 gl_error *err) {
  const policy_input *in = &g->input;
  size_t largest = 0;
  gl_error why = {.status = GL_OK};
  for (size_t i = 0; i < in->n_groups; ++i)
    largest = in->group_start[i + 1] - in->group_start[i] > largest
                  ? in->group_start[i + 1] - in->group_start[i]
                  : largest;
  if (policy_algorithm_check_group_size(algorithm, largest, &why) != GL_OK)
    fprintf(stderr, "gepolab: warning: %s: %s\n", shown(algorithm->name).text, why.text);
  if (whatif_lacks_prox(algorithm, in))
    fprintf(stderr, "gepolab: note: %s: " WHATIF_LACKS_PROX "\n", shown(algorithm->name).text);
  policy_workspace *workspace = must_have(policy_workspace_new(), "the coefficients");
  double *memory = MUST_ARRAY(double, in->n_responses + 2 * in->n_tokens, "the coefficients");
  policy_output out = {.advantage = memory,
                       .weight = memory + in->n_responses,
                       .coefficient = memory + in->n_responses + in->n_tokens};
  metrics_clear(out.metric);
  gl_status status = policy_evaluate(algorithm, in, &out, workspace, err);
  if (status == GL_OK) status = check_finite(g, &out, err);
  if (status == GL_OK && json) policy_print_json(algorithm, g, &out);
  if (status == GL_OK && !json) policy_print_text(algorithm, in, &out);
  char advice[POLICY_ADVICE_SIZE] = "";
  if (status == GL_OK && policy_is_on_policy(out.metric))
    policy_ess_advice(algorithm, out.metric[METRIC_ESS], advice);
  if (advice[0] != '\0')
    fprintf(stderr, "gepolab: warning: %s: %s\n", shown(algorithm->name).text, advice);
  policy_workspace_free(workspace);
  free(memory);
  return status;
}

/* Whether an algorithm has the field, also one of the map `gate`. */
static bool policy_field_is(const char *key) {
  bool is = strcmp(key, "name") == 0 || strcmp(key, "gate") == 0;
  for (size_t i = 0; i < policy_fields_count() && !is; ++i)
    is = strcmp(policy_fields_at(i)->name, key) == 0;
  return is;
}

/* Refuses overrides that are no field of the algorithm, and says in this command's form what they
 * are: eps_low, where recipes have algorithm.eps_low. */
static gl_status check_overrides(const args *a, gl_error *err) {
  static const char section[] = "algorithm.";
  const size_t n = sizeof section - 1;
  for (size_t i = 0; i < a->n_overrides; ++i) {
    char key[FIELD_HINT_SIZE], own[FIELD_HINT_SIZE];
    const char *value = a->overrides[i] + strcspn(a->overrides[i], "=") + 1;
    snprintf(key, sizeof key, "%.*s", (int)strcspn(a->overrides[i], "="), a->overrides[i]);
    if (policy_field_is(key)) continue;
    if (strcmp(key, "algorithm") == 0)
      return gl_fail(err, GL_EINPUT, "policy has no field 'algorithm'; write -a %s", value);
    if (strncmp(key, section, n) == 0)
      snprintf(own, sizeof own, "%s", key);
    else
      fields_elsewhere(key, NULL, own);
    for (char *at; strncmp(own, section, n) == 0 && (at = strstr(own + n, section)) != NULL;)
      memmove(at, at + n, strlen(at + n) + 1);
    if (strncmp(own, section, n) == 0)
      return gl_fail(err, GL_EINPUT, "policy has no field '%s'; write %.*s=%s%s", key,
                     (int)strcspn(own + n, " "), own + n, value, own + n + strcspn(own + n, " "));
    return gl_fail(err, GL_EINPUT,
                   "policy has no field '%s': it has those of the algorithm, which `gepolab list "
                   "algorithms --fields` lists",
                   key);
  }
  return GL_OK;
}

/* Evaluates the text of another trainer's log, which must contain one update. */
static gl_status evaluate_log(const policy_algorithm *algorithm, token_log *log, int json,
                              gl_error *err) {
  const token_batch *update = NULL;
  gl_status status = token_log_next(log, &update, err);
  if (status == GL_OK) status = token_log_check(log, err);
  if (status != GL_OK) return status;
  return evaluate_groups(algorithm, &(group_file){.input = update->input, .listed = 1}, json, err);
}

static gl_status check_one_update(token_log *log, const char *name, gl_error *err) {
  const token_batch *update = NULL;
  gl_status status = GL_OK;
  do status = token_log_next(log, &update, err);
  while (status == GL_OK && update != NULL);
  if (status != GL_OK || token_log_about(log)->n_batches == 1) return status;
  return gl_fail(err, GL_EINPUT,
                 "%s: has %zu updates, and policy evaluates one; see `gepolab "
                 "whatif`",
                 name, token_log_about(log)->n_batches);
}

/* Evaluates the groups of a text in any of the formats. */
static gl_status evaluate_text(const policy_algorithm *algorithm, const char *text, size_t size,
                               const char *name, const policy_request *q, gl_error *err) {
  const char *format = q->log.format != NULL ? q->log.format : token_format_of(text, size);
  gl_status status = GL_OK;
  if (format == NULL || strcmp(format, "gepolab") == 0) {
    if (q->log.group_size > 0)
      return gl_fail(err, GL_EINPUT, "%s: this file has groups; leave --group-size out", name);
    group_file g = {.listed = 0};
    status = group_file_read_text(&g, text, size, name, err);
    if (status == GL_OK) status = evaluate_groups(algorithm, &g, q->json, err);
    group_file_fini(&g);
    return status;
  }
  for (int pass = 0; pass < 2 && status == GL_OK; ++pass) {
    token_log *log = NULL;
    status = token_log_open_text(&log, text, size, name, &q->log, err);
    if (status == GL_OK)
      status =
          pass == 0 ? check_one_update(log, name, err) : evaluate_log(algorithm, log, q->json, err);
    token_log_close(log);
  }
  return status;
}

static gl_status run_policy(args *a, gl_error *err) {
  policy_request q = {.json = 0};
  const char *name = NULL;
  const args_option options[] = {
      {"algorithm", 'a', ARGS_TEXT, "ALGORITHM",
       "its name, or {base: NAME, field: value, …} (needed)", &name},
      {"json", 0, ARGS_FLAG, NULL, "loss, advantages, weights, coefficients as JSON", &q.json},
      LOG_OPTIONS("FILE", q.log)};
  policy_algorithm algorithm;
  char *text = NULL;
  size_t size = 0;
  gl_status status = args_parse(a, ARGS_OPTIONS(options), err);
  if (status != GL_OK || a->help) return status;
  if (name == NULL)
    status = gl_fail(err, GL_EINPUT,
                     "policy needs --algorithm NAME; `gepolab list algorithms` lists the names");
  if (status == GL_OK) status = check_overrides(a, err);
  if (status == GL_OK)
    status =
        whatif_algorithm(&algorithm, name, (const char *const *)a->overrides, a->n_overrides, err);
  if (status == GL_OK) status = group_file_load(&text, &size, a->words[0], err);
  if (status == GL_OK)
    status = evaluate_text(&algorithm, text, size,
                           strcmp(a->words[0], "-") == 0 ? "standard input" : a->words[0], &q, err);
  free(text);
  return status;
}

const command command_policy = {
    .name = "policy",
    .arguments = "--algorithm ALGORITHM [key=value …] FILE.json",
    .words = {.input = ARGS_LOGS, .min = 1, .max = 1, .overrides = true, .algorithms = true},
    .summary = "loss and coefficients of a group, to check a trainer with",
    .about =
        "FILE (or - for standard input) holds one group, {\"rewards\": [G], \"logp\": [[T_1], …],\n"
        "\"logq\": [[T_1], …]}, or {\"groups\": [{…}, …]}; with \"logprox\", \"logref\",\n"
        "\"version_gap\", \"entropy\" and \"entropy_prox\" shaped as logp, \"log_denominator\" in\n"
        "a group, and \"max_length\", where an algorithm needs them. \"step\" and \"time_s\", "
        "which\n"
        "logs of a run have, are not used. key=value changes a field of the algorithm.\n"
        "Coefficients are d(-loss)/d logp of every token; weights are the algorithm's importance\n"
        "ratio before clipping, a response's repeated over its tokens. Log-probabilities lie\n"
        "between -1e6 and 0 (up to 1e-3 is read as 0), and FILE has at most 1 GiB (64 groups of\n"
        "8 responses of 1,024 tokens take some 20 MiB). A loss, weight, coefficient or diagnostic\n"
        "that is not finite is an error, which names the token; null stands for a diagnostic\n"
        "that needs what FILE does not give, or that only its log_… can hold.",
    .examples = "  gepolab policy --algorithm gepo_released group.json --json\n"
                "  gepolab policy -a grpo eps_high=0.28 scale=none group.json\n"
                "  echo '{\"rewards\":[1,0],\"logp\":[[-1],[-2]],\"logq\":[[-1],[-1]]}' |\n"
                "      gepolab policy -a is -",
    .run = run_policy};
