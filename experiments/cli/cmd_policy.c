/* gepolab policy: loss, weights and coefficients of given groups, to check a trainer against. */
#include "core/base/shown.h"
#include "core/policy/policy.h"
#include "experiments/base/args.h"
#include "experiments/base/command.h"
#include "experiments/base/print_json.h"
#include "experiments/cli/policy_input_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the algorithm
 * ------------------------------------------------------------------------------------
 */

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

/* --- what is printed ----------------------------------------------------------------------------
 */

/* [[T_1], …] of group g. */
static cJSON *token_lists(cJSON *to, const char *key, const policy_input *in, size_t g,
                          const double *value) {
  cJSON *lists = cJSON_AddArrayToObject(to, key);
  for (size_t i = in->group_start[g]; i < in->group_start[g + 1] && lists != NULL; ++i) {
    cJSON *list = cJSON_CreateArray();
    if (list == NULL || !cJSON_AddItemToArray(lists, list)) return NULL;
    for (size_t t = in->token_start[i]; t < in->token_start[i + 1]; ++t)
      if (json_add_number(list, NULL, value[t]) == NULL) return NULL;
  }
  return lists;
}

static int group_json(cJSON *to, const policy_input *in, size_t g, const policy_output *out) {
  size_t first = in->group_start[g], n = in->group_start[g + 1] - first;
  return json_add_numbers(to, "advantages", out->advantage + first, n) != NULL &&
         token_lists(to, "weights", in, g, out->weight) != NULL &&
         token_lists(to, "coefficients", in, g, out->coefficient) != NULL;
}

/* Diagnostics that policy_evaluate() could know (null where the input lacks what they need); those
 * of schedules, learners and worlds are left out, and the loss has been printed. */
static int diagnostics_json(cJSON *to, const policy_output *out) {
  static const metric others[] = {METRIC_VERSION,      METRIC_LOSS,     METRIC_GRAD_NORM,
                                  METRIC_ENTROPY,      METRIC_KL_EXACT, METRIC_KL_EXACT_QP,
                                  METRIC_EXACT_RETURN, METRIC_LR,       METRIC_ESTIMATION_ERROR};
  for (int m = 0; m < METRIC_COUNT; ++m) {
    int known = 1;
    for (size_t k = 0; k < sizeof others / sizeof others[0]; ++k)
      known = known && m != (int)others[k];
    if (known && json_add_number(to, metric_about((metric)m)->name, out->metric[m]) == NULL)
      return 0;
  }
  return 1;
}

static gl_status print_json(const policy_algorithm *algorithm, const group_file *g,
                            const policy_output *out, gl_error *err) {
  cJSON *d = cJSON_CreateObject();
  int ok = d != NULL && json_add_string(d, "algorithm", algorithm->name) != NULL &&
           json_add_number(d, "loss", out->loss) != NULL;
  if (ok && !g->listed) ok = group_json(d, &g->input, 0, out);
  if (ok && g->listed) {
    cJSON *groups = cJSON_AddArrayToObject(d, "groups");
    ok = groups != NULL;
    for (size_t i = 0; i < g->input.n_groups && ok; ++i) {
      cJSON *item = cJSON_CreateObject();
      ok =
          item != NULL && cJSON_AddItemToArray(groups, item) && group_json(item, &g->input, i, out);
    }
  }
  if (!ok || !diagnostics_json(d, out)) {
    cJSON_Delete(d);
    d = NULL;
  }
  return report_json(d, err);
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

/* --- the command --------------------------------------------------------------------------------
 */

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
      {"algorithm", 'a', ARGS_TEXT, "NAME",
       "algorithm name, or {base: NAME, field: value, …} (needed)", &name},
      {"json", 0, ARGS_FLAG, NULL, "loss, advantages, weights, coefficients as JSON", &json}};
  args a;
  policy_algorithm algorithm;
  group_file g = {.listed = 0};
  gl_status status = args_parse(&a, self, options, 2, (args_shape){1, 1, 1}, argc, argv, err);
  if (status == GL_OK && !a.help) {
    if (name == NULL)
      status = gl_fail(err, GL_EINPUT,
                       "policy needs --algorithm NAME; `gepolab algorithms` lists the names");
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
    .arguments = "--algorithm NAME [key=value …] FILE.json",
    .summary = "loss, weights and coefficients of one group, to check a trainer against",
    .about =
        "FILE (or - for standard input) holds one group, {\"rewards\": [G], \"logp\": [[T_1], …],\n"
        "\"logq\": [[T_1], …]}, or {\"groups\": [{…}, …]}; with \"logprox\", \"logref\",\n"
        "\"version_gap\" shaped as logp, \"log_denominator\" in a group, and \"max_length\", where "
        "an\n"
        "algorithm needs them. key=value changes a field of the algorithm. Coefficients are\n"
        "d(-loss)/d logp of every token; weights are the algorithm's importance ratio before "
        "clipping,\n"
        "a response's repeated over its tokens.",
    .examples = "  gepolab policy --algorithm gepo group.json --json\n"
                "  gepolab policy -a grpo eps_high=0.28 scale=none group.json\n"
                "  echo '{\"rewards\":[1,0],\"logp\":[[-1],[-2]],\"logq\":[[-1],[-1]]}' | gepolab "
                "policy -a is -",
    .run = run_policy};
