/* gepolab whatif against gepolab policy's core on the same batches; what it refuses, with the line.
 */
#include "experiments/policy/whatif.h"

#include "core/base/json.h"
#include "experiments/tokens/group_file.h"
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

SUITE("cli: whatif");

static const char *const batches[] = {
    "{\"groups\": [{\"rewards\": [1, 0], \"logp\": [[-1.0, -0.5], [-2.0]], "
    "\"logq\": [[-1.2, -0.4], [-1.8]], \"version_gap\": [[0, 0], [0]]}]}",
    "{\"groups\": [{\"rewards\": [0.5, 0, 1], \"logp\": [[-1.0, -0.5], [-2.0], [-0.3]], "
    "\"logq\": [[-1.5, -0.4], [-1.8], [-0.9]], \"version_gap\": [[3, 3], [3], [3]]}]}"};

static const token_request any_log = {0};

/* The two batches as a log, with step and time. */
static size_t log_of(char text[2048]) {
  return (size_t)snprintf(
      text, 2048, "{\"step\": 7, \"time_s\": 1.5, %s\n\n{\"time_s\": 4, \"step\": 8, %s\r\n",
      batches[0] + 1, batches[1] + 1);
}

static double norm_by_hand(const policy_algorithm *algorithm, const char *text, double *ess,
                           double *loss) {
  group_file g;
  gl_error err = {0};
  double c[8] = {0}, sum = 0;
  policy_workspace *ws = policy_workspace_new();
  CU_ASSERT_EQUAL_FATAL(group_file_read_text(&g, text, strlen(text), "batch", &err), GL_OK);
  policy_output out = {.coefficient = c};
  CU_ASSERT_EQUAL_FATAL(policy_evaluate(algorithm, &g.input, &out, ws, &err), GL_OK);
  for (size_t t = 0; t < g.input.n_tokens; ++t) sum += c[t] * c[t];
  *ess = out.metric[METRIC_ESS];
  *loss = out.loss;
  policy_workspace_free(ws);
  group_file_fini(&g);
  return sqrt(sum);
}

TEST(every_row_is_what_the_policy_core_says_of_each_batch) {
  char text[2048];
  const size_t size = log_of(text);
  whatif *w = calloc(1, sizeof *w);
  ASSERT_OK(whatif_init(w, NULL, 0, &err));
  ASSERT_OK(whatif_read_text(w, text, size, "log", &any_log, &err));
  CU_ASSERT_EQUAL(w->n_rows, policy_algorithms_count());
  CU_ASSERT_EQUAL(w->n_batches, 2);
  CU_ASSERT_EQUAL(w->n_responses, 5);
  CU_ASSERT_EQUAL(w->n_tokens, 7);
  CU_ASSERT_EQUAL(w->log.last_step, 8);
  CU_ASSERT_EQUAL(w->log.last_time - w->log.first_time, 2.5);
  size_t evaluated = 0;
  for (size_t i = 0; i < w->n_rows; ++i) {
    const whatif_row *r = &w->row[i];
    CU_ASSERT_EQUAL(r->n + r->n_refused, 2);
    CU_ASSERT_EQUAL(r->n_refused > 0, r->why[0] != '\0');
    if (r->n < 2) continue;
    double ess[2], loss[2], norm[2];
    for (int b = 0; b < 2; ++b)
      norm[b] = norm_by_hand(&r->algorithm, batches[b], &ess[b], &loss[b]);
    ASSERT_CLOSE(r->of[WHATIF_COEFFICIENT_NORM].mean, (norm[0] + norm[1]) / 2, 1e-12);
    ASSERT_CLOSE(r->of[WHATIF_COEFFICIENT_NORM].most, fmax(norm[0], norm[1]), 1e-12);
    ASSERT_CLOSE(r->of[WHATIF_LOSS].least, fmin(loss[0], loss[1]), 1e-12);
    if (!isnan(ess[0] + ess[1])) ASSERT_CLOSE(r->of[WHATIF_ESS].mean, (ess[0] + ess[1]) / 2, 1e-12);
    ++evaluated;
  }
  CU_ASSERT(evaluated > 20);
  whatif_fini(w);
  free(w);
}

/* kl_k3 of the tokens, by its formula. */
static double k3(double l) {
  return exp(l) - l - 1;
}

TEST(distance_is_told_by_staleness) {
  char text[2048];
  const size_t size = log_of(text);
  const char *const names[] = {"gepo"};
  whatif *w = calloc(1, sizeof *w);
  ASSERT_OK(whatif_init(w, names, 1, &err));
  ASSERT_OK(whatif_read_text(w, text, size, "log", &any_log, &err));
  CU_ASSERT_EQUAL(w->age[0].n, 1);
  CU_ASSERT_EQUAL(w->age[3].n, 1);
  CU_ASSERT_EQUAL(w->n_unknown_age, 0);
  ASSERT_CLOSE(w->age[0].kl_token.mean, (k3(0.2) + k3(-0.1) + k3(-0.2)) / 3, 1e-12);
  ASSERT_CLOSE(w->age[3].kl_response.mean, (k3(0.5) + k3(-0.1) + k3(-0.2) + k3(0.6)) / 3, 1e-12);
  whatif_fini(w);
  free(w);
}

TEST(what_a_batch_lacks_is_the_row_s_to_tell) {
  static const char text[] =
      "{\"rewards\": [3, 0], \"logp\": [[-1], [-2]], \"logq\": [[-1], [-2]]}";
  const char *const names[] = {"disco", "grpo"};
  whatif *w = calloc(1, sizeof *w);
  ASSERT_OK(whatif_init(w, names, 2, &err));
  ASSERT_OK(whatif_read_text(w, text, sizeof text - 1, "log", &any_log, &err));
  CU_ASSERT_EQUAL(w->row[0].n_refused, 1);
  CU_ASSERT_PTR_NOT_NULL(strstr(w->row[0].why, "disco"));
  CU_ASSERT_EQUAL(w->row[1].n, 1);
  CU_ASSERT_EQUAL(w->n_unknown_age, 1);
  CU_ASSERT(isnan(w->log.first_step));
  whatif_fini(w);
  free(w);
}

static int refuses(const char *text, const char *words) {
  const char *arguments[] = {"whatif", "-", NULL};
  cli_result r = cli_run(text, arguments);
  const int ok = r.code == 2 && strstr(r.err, words) != NULL;
  if (!ok) fprintf(stderr, "%d: %s\n", r.code, r.err);
  return ok;
}

TEST(hostile_logs_are_refused_with_the_line) {
  char text[2048];
  CU_ASSERT(refuses("\n \n", "there is no record in it"));
  CU_ASSERT(refuses("{}\n", "standard input:1:1: this line has the keys of no known format"));
  CU_ASSERT(refuses("not JSON\n", "standard input:1:1"));
  CU_ASSERT(refuses("PAR1\x15\x04 and more\n", "is Parquet, which Python reads"));
  snprintf(text, sizeof text, "%s\n{\"stpe\": 1}\n", batches[0]);
  CU_ASSERT(refuses(text, "standard input:2:9: policy input: unknown key 'stpe' (did you mean "
                          "'step'?)"));
  snprintf(text, sizeof text, "%s\n\n{\"step\": 1, \"step\": 2, %s\n", batches[0], batches[1] + 1);
  CU_ASSERT(refuses(text, "standard input:3:21: policy input: step is given twice"));
  snprintf(text, sizeof text, "{\"step\": NaN, %s\n", batches[0] + 1);
  CU_ASSERT(refuses(text, "step must be a finite number"));
  snprintf(text, sizeof text, "%s %s\n", batches[0], batches[1]);
  CU_ASSERT(refuses(text, "standard input:1:"));
  CU_ASSERT(CLI_GIVES(1, "whatif", "build/no/such.jsonl"));
  CU_ASSERT(CLI_GIVES(2, "whatif", "README.md", "-a", "gepoo"));
  CU_ASSERT(CLI_GIVES(2, "whatif"));
}

/* A log whose program was killed ends within a line. */
TEST(a_line_that_was_cut_off_is_left_out_and_counted) {
  char text[4096], folder[64], log[128];
  const size_t whole = log_of(text), more = (size_t)snprintf(text + whole, 1024, "%s", batches[1]);
  cli_scratch_make(folder);
  for (size_t kept = 1; kept < more; kept += 7) {
    cli_write(cli_path(log, folder, "run.jsonl"), text, whole + kept);
    cli_result r = CLI("whatif", log, "-a", "grpo");
    CU_ASSERT_EQUAL(r.code, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "2 updates, 2 groups"));
    CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "1 log: last line incomplete, left out"));
  }
  cli_write(log, text, whole + more);
  cli_result r = CLI("whatif", log, "-a", "grpo");
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "3 updates, 3 groups"));
  CU_ASSERT_PTR_NULL(strstr(r.out, "incomplete"));
}

TEST(two_runs_in_one_log_are_named) {
  char text[4096], folder[64], log[128];
  const size_t n = log_of(text);
  memcpy(text + n, text, n);
  cli_scratch_make(folder);
  cli_write(cli_path(log, folder, "run.jsonl"), text, 2 * n);
  cli_result r = CLI("whatif", log, "-a", "grpo");
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "warning: steps go back 1 time: several runs are pooled"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "14 tokens\n")); /* no steps and no seconds */
}

TEST(changed_algorithms_are_rows_with_names_of_any_length) {
  static const char changed[] =
      "{base: mhpo, tanh_scale: 1.0000000000000002, hazard_power_up: 1.0000000000000002, "
      "hazard_width_up: 1.0000000000000002, hazard_power_down: 1.0000000000000002}";
  char folder[64], log[128];
  cli_scratch_make(folder);
  cli_write(cli_path(log, folder, "run.jsonl"), batches[0], strlen(batches[0]));
  cli_result r = CLI("whatif", log, "-a", "{base: gepo, clip: none}", "-a", changed),
             one = CLI("policy", log, "-a", changed);
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "gepo(clip=none)"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "mhpo(tanh_scale=1.0000000000000002"));
  CU_ASSERT_EQUAL(one.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(one.out, "…): loss "));
}

/* A line of a log is an input of `gepolab policy`, two lines are not. */
TEST(policy_evaluates_one_line_of_a_log) {
  char text[2048];
  const char *arguments[] = {"policy", "-a", "grpo", "-", NULL};
  cli_result alone = cli_run(batches[0], arguments);
  (void)log_of(text);
  cli_result two = cli_run(text, arguments);
  *strchr(text, '\n') = '\0';
  cli_result one = cli_run(text, arguments);
  CU_ASSERT_EQUAL(one.code, 0);
  CU_ASSERT_STRING_EQUAL(one.out, alone.out);
  CU_ASSERT_EQUAL(two.code, 2);
  CU_ASSERT_PTR_NOT_NULL(strstr(two.err, "a log of several is read by `gepolab whatif`"));
}

/* decoupled_ppo needs logprox, which this log lacks; grpo does not. */
TEST(a_proximal_policy_that_is_missing_is_noted) {
  char folder[64], log[128];
  cli_scratch_make(folder);
  cli_write(cli_path(log, folder, "run.jsonl"), batches[0], strlen(batches[0]));
  cli_result text = CLI("whatif", log, "-a", "decoupled_ppo", "-a", "grpo", "-a", "erc"),
             json = CLI("whatif", log, "-a", "decoupled_ppo", "-a", "grpo", "--json");
  CU_ASSERT_PTR_NOT_NULL(
      strstr(text.out, "note: decoupled_ppo: without logprox the proximal policy is taken to be"));
  const cJSON *rows = member_at(json_parsed(json.out), "algorithms");
  CU_ASSERT_PTR_NOT_NULL(strstr(text_at(cJSON_GetArrayItem(rows, 0), "note"), "without logprox"));
  CU_ASSERT_PTR_NULL(member_at(cJSON_GetArrayItem(rows, 1), "note"));
}

TEST(text_and_json_tell_the_same) {
  char folder[64], log[128], text[2048];
  cli_scratch_make(folder);
  cli_write(cli_path(log, folder, "run.jsonl"), text, log_of(text));
  cli_result plain = CLI("whatif", log), r = CLI("whatif", log, "-a", "gepo", "--json");
  CU_ASSERT_EQUAL(plain.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(plain.out, "2 updates, 2 groups, 5 responses, 7 tokens; steps 7"));
  CU_ASSERT_PTR_NOT_NULL(strstr(plain.out, "gspo_token"));
  cJSON *d = r.code == 0 ? json_parsed(r.out) : NULL;
  CU_ASSERT_PTR_NOT_NULL_FATAL(d);
  const cJSON *rows = member_at(d, "algorithms");
  CU_ASSERT_EQUAL(cJSON_GetArraySize(rows), 1);
  const cJSON *ess = member_at(cJSON_GetArrayItem(rows, 0), "ess");
  const cJSON *mean = member_at(ess, "mean");
  CU_ASSERT(cJSON_IsNumber(mean) && mean->valuedouble > 0 && mean->valuedouble <= 1);
  char shown_mean[32];
  snprintf(shown_mean, sizeof shown_mean, " %.4g ", cJSON_IsNumber(mean) ? mean->valuedouble : 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(plain.out, shown_mean));
  CU_ASSERT_EQUAL(cJSON_GetArraySize(member_at(d, "by_staleness")), 2);
}

/* Eight responses of 500 tokens whose mean log-probabilities differ as a model's do, on-policy: the
 * probabilities of whole responses differ by e^5 and more. The weights are those of the formula
 * P / (sum Q^2 / sum Q). */
TEST(gepo_on_policy_warns_and_names_gepo_released) {
  enum { G = 8, T = 500 };
  static const double mean[G] = {-0.31, -0.27, -0.33, -0.281, -0.36, -0.3, -0.32, -0.29};
  char *text = malloc(2 * G * T * 32), folder[64], file[128];
  size_t n = (size_t)sprintf(text, "{\"rewards\": [1, 0, 1, 0, 1, 0, 1, 0]");
  for (int k = 0; k < 2; ++k)
    for (int i = 0; i < G * T; ++i)
      n += (size_t)sprintf(text + n, "%s%.17g%s",
                           i == 0       ? (k ? ", \"logq\": [[" : ", \"logp\": [[")
                           : i % T == 0 ? ", ["
                                        : ", ",
                           mean[i / T], i % T == T - 1 ? (i == G * T - 1 ? "]]" : "]") : "");
  n += (size_t)sprintf(text + n, "}\n");
  cli_scratch_make(folder);
  cli_write(cli_path(file, folder, "group.json"), text, n);
  cli_result r = CLI("policy", "-a", "gepo", file, "--json");
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "effective sample size is 0.13 of a group"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "use gepo_released"));
  cJSON *d = json_of(&r);
  const cJSON *weights = member_at(d, "weights");
  double square = 0, sum = 0;
  for (int i = 0; i < G; ++i) {
    square += exp(2 * T * (mean[i] - mean[1]));
    sum += exp(T * (mean[i] - mean[1]));
  }
  for (int i = 0; i < G; ++i) {
    const cJSON *of = cJSON_GetArrayItem(cJSON_GetArrayItem(weights, i), 0);
    ASSERT_CLOSE(cJSON_IsNumber(of) ? of->valuedouble : NAN,
                 exp(T * (mean[i] - mean[1])) / (square / sum), 1e-9);
  }
  r = CLI("policy", "-a", "gepo_released", file);
  CU_ASSERT_STRING_EQUAL(r.err, "");
  r = CLI("whatif", file, "-a", "gepo", "-a", "gepo_released", "-a", "is");
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "warning: gepo: on-policy"));
  CU_ASSERT_PTR_NULL(strstr(r.out, "warning: gepo_released"));
  CU_ASSERT_PTR_NULL(strstr(r.out, "warning: is"));
  free(text);
}

/* Two updates at two stalenesses are enough for every figure; without versions one is missing. */
TEST(a_log_becomes_figures) {
  char folder[64], log[128], bare[128], figures[128], path[128], text[2048];
  cli_scratch_make(folder);
  cli_write(cli_path(log, folder, "run.jsonl"), text, log_of(text));
  cli_path(figures, folder, "figures");
  cli_result r = CLI("whatif", log, "-f", figures, "-a", "gepo", "-a", "grpo");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "whatif_staleness.pdf"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "whatif_variance.pdf"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "whatif_algorithms.pdf"));
  char *data = cli_read(cli_path(path, figures, "whatif_algorithms.tsv"));
  CU_ASSERT_PTR_NOT_NULL_FATAL(data);
  CU_ASSERT_PTR_NOT_NULL(strstr(data, "\n0\tgrpo\t2\t"));
  CU_ASSERT_PTR_NULL(strstr(data, "gspo"));
  const char only[] = "{\"rewards\": [1, 0], \"logp\": [[-1], [-2]], \"logq\": [[-2], [-1]]}\n";
  cli_write(cli_path(bare, folder, "bare.jsonl"), only, sizeof only - 1);
  r = CLI("whatif", bare, "-f", figures, "--width", "icml");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(
      strstr(r.out, "no whatif_staleness: no record of the log has version_gap"));
  CU_ASSERT(CLI_GIVES(2, "whatif", log, "--figure", "whatif_variance"));
  CU_ASSERT(CLI_GIVES(2, "whatif", log, "--json", "-f", figures));
}
