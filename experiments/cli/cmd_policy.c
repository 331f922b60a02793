/* gepolab policy: loss, weights and coefficients of given groups, to check a trainer against. */
#include "core/base/json.h"
#include "core/base/shown.h"
#include "core/policy/policy.h"
#include "experiments/base/args.h"
#include "experiments/policy/group_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the algorithm --- */
/* The algorithm as a recipe's `algorithm:` would be read: {base: NAME, key: value, …}. */
static gl_status read_algorithm(policy_algorithm *algorithm, const char *name, const args *a,
                                gl_error *err) {
  cfg_doc *doc = NULL;
  size_t longest = strlen(name);
  for (size_t i = 0; i < a->n_overrides; ++i)
    if (strlen(a->overrides[i]) > longest) longest = strlen(a->overrides[i]);
  size_t size = longest + sizeof "algorithm.base=";
  char *assignment = malloc(size);
  if (assignment == NULL) return gl_fail_memory(err, "the algorithm");
  gl_status status = cfg_load_text(&doc, "{}", 2, "command line", err);
  if (status == GL_OK) {
    snprintf(assignment, size, name[0] == '{' ? "algorithm=%s" : "algorithm.base=%s", name);
    status = cfg_override(doc, assignment, err);
  }
  for (size_t i = 0; i < a->n_overrides && status == GL_OK; ++i) {
    snprintf(assignment, size, "algorithm.%s", a->overrides[i]);
    status = cfg_override(doc, assignment, err);
  }
  if (status == GL_OK)
    status = policy_algorithm_parse(algorithm, cfg_find(cfg_root(doc), "algorithm"), err);
  cfg_free(doc);
  free(assignment);
  return status;
}

/* --- what is printed --- */

/* The document is written as it is made: a batch of millions of tokens would take a hundred bytes a
 * number as a tree. */
static void print_number(double value) {
  char text[NUMBER_TEXT_SIZE];
  fputs(isfinite(value) ? number_text(value, text) : "null", stdout);
}

static void print_numbers(const double *value, size_t n) {
  putchar('[');
  for (size_t i = 0; i < n; ++i) {
    if (i > 0) fputs(", ", stdout);
    print_number(value[i]);
  }
  putchar(']');
}

/* [[T_1], …] of group g. */
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

/* Whether policy_evaluate() can know a metric (it is null where the input lacks what it needs);
 * those of schedules, learners and worlds are left out, and the loss has a place of its own. */
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

static gl_status print_json(const policy_algorithm *algorithm, const group_file *g,
                            const policy_output *out, gl_error *err) {
  cJSON *name = cJSON_CreateString(algorithm->name);
  char *quoted = name != NULL ? cJSON_PrintUnformatted(name) : NULL;
  cJSON_Delete(name);
  if (quoted == NULL) return gl_fail_memory(err, "the JSON answer");
  printf("{\n  \"algorithm\": %s,\n  \"loss\": ", quoted);
  free(quoted);
  print_number(out->loss);
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
    print_number(out->metric[m]);
  }
  fputs("\n}\n", stdout);
  return GL_OK;
}

static void print_text(const policy_algorithm *algorithm, const policy_input *in,
                       const policy_output *out) {
  printf("%s: loss %.10g\n", shown(algorithm->name).text, out->loss);
  puts("group response token      advantage         weight    coefficient");
  for (size_t g = 0; g < in->n_groups; ++g)
    for (size_t i = in->group_start[g]; i < in->group_start[g + 1]; ++i)
      for (size_t t = in->token_start[i]; t < in->token_start[i + 1]; ++t)
        printf("%5zu %8zu %5zu %14.7g %14.7g %14.7g\n", g, i - in->group_start[g],
               t - in->token_start[i], out->advantage[i], out->weight[t], out->coefficient[t]);
  for (int m = 0; m < METRIC_COUNT; ++m)
    if (out->metric[m] == out->metric[m])
      printf("  %-20s %.10g\n", metric_about((metric)m)->name, out->metric[m]);
}

/* --- what is not finite --- */
/* JSON has no infinity, and no trainer can use one: it is refused by name. */

/* A metric that another one gives the logarithm of may be too large for a double, and a logarithm
 * is -inf where there is no variance. Both are null; NaN stands for what the input does not tell.
 */
static int may_overflow(metric m) {
  char name[64];
  const char *own = metric_about(m)->name;
  snprintf(name, sizeof name, "log_%s", own);
  return metric_find(name) != METRIC_COUNT || strncmp(own, "log_", 4) == 0;
}

static gl_status check_finite(const group_file *g, const policy_output *out, gl_error *err) {
  const policy_keeping keeping = {.by_group = g->listed};
  gl_status status = policy_check_finite(&g->input, out, &keeping, err);
  if (status != GL_OK) return status;
  for (int m = 0; m < METRIC_COUNT; ++m)
    if (is_diagnostic((metric)m) && isinf(out->metric[m]) && !may_overflow((metric)m))
      return gl_fail(err, GL_ENUMERIC,
                     "the diagnostic %s is %g: some logp and logq are further apart than the 709 "
                     "that an exponential in double precision holds",
                     metric_about((metric)m)->name, out->metric[m]);
  return GL_OK;
}

/* --- the command --- */

static gl_status evaluate(const policy_algorithm *algorithm, const group_file *g, int json,
                          gl_error *err) {
  const policy_input *in = &g->input;
  policy_workspace *workspace = policy_workspace_new();
  double *memory = calloc(in->n_responses + 2 * in->n_tokens, sizeof *memory);
  gl_status status = GL_OK;
  if (workspace == NULL || memory == NULL) status = gl_fail_memory(err, "the coefficients");
  policy_output out = {0};
  if (status == GL_OK) {
    metrics_clear(out.metric);
    out.advantage = memory;
    out.weight = memory + in->n_responses;
    out.coefficient = out.weight + in->n_tokens;
    status = policy_evaluate(algorithm, in, &out, workspace, err);
  }
  if (status == GL_OK) status = check_finite(g, &out, err);
  if (status == GL_OK && json) status = print_json(algorithm, g, &out, err);
  if (status == GL_OK && !json) print_text(algorithm, in, &out);
  policy_workspace_free(workspace);
  free(memory);
  return status;
}

static gl_status run_policy(const command *self, int argc, char **argv, gl_error *err) {
  int json = 0;
  const char *name = NULL;
  const args_option options[] = {
      {"algorithm", 'a', ARGS_TEXT, "ALGORITHM",
       "its name, or {base: NAME, field: value, …} (needed)", &name},
      {"json", 0, ARGS_FLAG, NULL, "loss, advantages, weights, coefficients as JSON", &json}};
  args a;
  policy_algorithm algorithm;
  group_file g = {.listed = 0};
  gl_status status = args_parse(&a, self, options, 2, (args_shape){1, 1, 1}, argc, argv, err);
  if (status == GL_OK && !a.help) {
    if (name == NULL)
      status = gl_fail(err, GL_EINPUT,
                       "policy needs --algorithm NAME; `gepolab list algorithms` lists the names");
    if (status == GL_OK) status = read_algorithm(&algorithm, name, &a, err);
    if (status == GL_OK) status = group_file_read(&g, a.words[0], err);
    if (status == GL_OK) status = evaluate(&algorithm, &g, json, err);
  }
  group_file_fini(&g);
  args_fini(&a);
  return status;
}

const command command_policy = {
    .name = "policy",
    .arguments = "--algorithm ALGORITHM [key=value …] FILE.json",
    .summary = "loss and coefficients of a group, to check a trainer with",
    .about =
        "FILE (or - for standard input) holds one group, {\"rewards\": [G], \"logp\": [[T_1], …],\n"
        "\"logq\": [[T_1], …]}, or {\"groups\": [{…}, …]}; with \"logprox\", \"logref\",\n"
        "\"version_gap\" shaped as logp, \"log_denominator\" in a group, and \"max_length\", where "
        "an\n"
        "algorithm needs them. key=value changes a field of the algorithm. Coefficients are\n"
        "d(-loss)/d logp of every token; weights are the algorithm's importance ratio before "
        "clipping,\n"
        "a response's repeated over its tokens. Log-probabilities lie between -1e6 and 0, and FILE "
        "has\n"
        "at most 1 GiB (64 groups of 8 responses of 1,024 tokens take some 20 MiB). A loss, "
        "weight,\n"
        "coefficient or diagnostic that is not finite is an error, which names the token; null "
        "stands\n"
        "for a diagnostic that needs what FILE does not give, or that only its log_… can hold.",
    .examples = "  gepolab policy --algorithm gepo group.json --json\n"
                "  gepolab policy -a grpo eps_high=0.28 scale=none group.json\n"
                "  echo '{\"rewards\":[1,0],\"logp\":[[-1],[-2]],\"logq\":[[-1],[-1]]}' | gepolab "
                "policy -a is -",
    .run = run_policy};
