/* gepolab fit: recipe lines from logs, which gepolab sim takes; what it refuses, with the place. */
#include "core/base/json.h"
#include "sim/delay.h"
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("cli: fit");

static const delay_dist fetches = {
    .kind = DELAY_LOGNORMAL, .lognormal = {5, 0.5}, .clamp_hi = INFINITY};
static const delay_dist lengths = {.kind = DELAY_GAMMA, .gamma = {4, 150}, .clamp_hi = 1000};

/* 400 rows: fetch times in milliseconds, and lengths cut at 1,000 tokens. form: of a row. */
static void write_log(const char *path, const char *head, const char *form) {
  static char text[65536];
  int n = snprintf(text, sizeof text, "%s", head);
  delay_source a = {.stream = rng_stream_at(3, RNG_TEST, 0)},
               b = {.stream = rng_stream_at(3, RNG_TEST, 1)};
  for (int i = 0; i < 400; ++i)
    n += snprintf(text + n, sizeof text - (size_t)n, form, 1000 * delay_draw(&fetches, &a),
                  round(delay_draw(&lengths, &b)));
  cli_write(path, text, (size_t)n);
}

static void check_json(const char *log) {
  cli_result r = CLI("fit", log, "--column", "delay=fetch_ms", "--unit", "ms", "--column",
                     "lengths=tokens", "--at-most", "lengths=1000", "--json");
  CU_ASSERT_EQUAL(r.code, 0);
  cJSON *d = r.code == 0 ? json_parsed(r.out) : NULL;
  CU_ASSERT_PTR_NOT_NULL_FATAL(d);
  const cJSON *cluster = member_at(d, "cluster");
  const cJSON *delay = member_at(cluster, "delay");
  const cJSON *length = member_at(cluster, "lengths");
  CU_ASSERT_STRING_EQUAL(text_at(delay, "chosen"), "lognormal");
  CU_ASSERT_EQUAL(number_at(delay, "n"), 400);
  const cJSON *row = cJSON_GetArrayItem(member_at(delay, "distributions"), 2); /* lognormal */
  const cJSON *at = member_at(row, "parameters");
  const cJSON *error = member_at(row, "standard_errors");
  CU_ASSERT(fabs(number_at(at, "mu") - 5) < 4 * number_at(error, "mu"));
  CU_ASSERT(fabs(number_at(at, "sigma") - 0.5) < 4 * number_at(error, "sigma"));
  CU_ASSERT(number_at(error, "mu") < 0.05);
  CU_ASSERT_STRING_EQUAL(text_at(length, "chosen"), "gamma");
  CU_ASSERT(number_at(length, "n_at_most") > 20);
}

TEST(logs_of_every_syntax_give_the_dists_they_were_drawn_from) {
  char folder[64], csv[128], tsv[128], json[128];
  cli_scratch_make(folder);
  write_log(cli_path(csv, folder, "log.csv"), "fetch_ms,tokens\n", "%.6f,%.0f\n");
  write_log(cli_path(tsv, folder, "log.tsv"), "fetch_ms\ttokens\n", "%.6f\t%.0f\n");
  write_log(cli_path(json, folder, "log.jsonl"), "", "{\"fetch_ms\": %.6f, \"tokens\": %.0f}\n");
  check_json(csv);
  check_json(tsv);
  check_json(json);
}

/* The printed lines after "cluster:" are a recipe's. */
TEST(a_simulation_takes_what_is_printed) {
  char folder[64], log[128], recipe[128], text[4096];
  cli_scratch_make(folder);
  write_log(cli_path(log, folder, "log.csv"), "delay,lengths\n", "%.6f,%.0f\n");
  cli_result r = CLI("fit", log, "--unit", "ms", "--at-most", "lengths=1000");
  CU_ASSERT_EQUAL_FATAL(r.code, 0);
  const char *cluster = strstr(r.out, "\ncluster:\n");
  CU_ASSERT_PTR_NOT_NULL_FATAL(cluster);
  CU_ASSERT_PTR_NOT_NULL(strstr(cluster, "clamp: [0, 1000]"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "  chosen\n"));
  const int n = snprintf(text, sizeof text,
                         "name: own\nsteps: 5\nworld: {kind: bandit, rewards: [1, 0]}%s", cluster);
  cli_write(cli_path(recipe, folder, "own.yaml"), text, (size_t)n);
  CU_ASSERT(CLI_GIVES(0, "sim", recipe));
}

static int refuses(const char *log, const char *text, const char *option, const char *words) {
  cli_write(log, text, strlen(text));
  cli_result r = CLI("fit", log, option);
  const int ok = r.code == 2 && strstr(r.err, words) != NULL;
  if (!ok) fprintf(stderr, "%d: %s\n", r.code, r.err);
  return ok;
}

TEST(hostile_logs_are_refused_with_the_place) {
  char folder[64], log[128];
  cli_scratch_make(folder);
  cli_path(log, folder, "log.csv");
  CU_ASSERT(refuses(log, "delay,x\n1,2\n-3,4\n", "--json", "log.csv:3:1: '-3' in column delay"));
  CU_ASSERT(refuses(log, "delay,x\n1,2\nnan,4\n", "--json", "log.csv:3:1: 'nan'"));
  CU_ASSERT(refuses(log, "delay,x\n1,2\nfast,4\n", "--json", "log.csv:3:1: 'fast'"));
  CU_ASSERT(refuses(log, "{\"delay\": 1}\n{\"delay\": -1}\n", "--json", "log.csv:2:"));
  CU_ASSERT(refuses(log, "delay\n3\n", "--json", "delay has 1 values, and a fit needs 20"));
  CU_ASSERT(refuses(log, "time,x\n1,2\n", "--json", "in a column headed delay"));
  CU_ASSERT(refuses(log, "time,x\n1,2\n", "--column=delay=y", "column headed 'y'"));
  CU_ASSERT(refuses(log, "delay,x\n1,2\n", "--column=dely=x", "'dely' is no field"));
  CU_ASSERT(refuses(log, "delay,x\n1,2\n", "--column=dely=x", "did you mean 'delay'"));
  CU_ASSERT(
      refuses(log, "fetch_ms,x\n1,2\n", "--column=delay=fetch_ms",
              "is column 'fetch_ms' in milliseconds? Say which unit the times have: --unit ms, "
              "or --unit s"));
  CU_ASSERT(refuses(log, "fetch (min),x\n1,2\n", "--column=delay=fetch (min)", "--unit min"));
  CU_ASSERT(refuses(log, "fetch_s,x\n1,2\n", "--column=delay=fetch_s", "a fit needs 20"));
  CU_ASSERT(refuses(log, "n_ms,x\n1,2\n", "--column=lengths=n_ms", "a fit needs 20"));
  CU_ASSERT(refuses(log, "delay,x\n1,2\n", "--unit=tokens", "no unit of time"));
  CU_ASSERT(refuses(log, "delay,x\n1,2\n", "--at-most=delay=-1", "a limit is a number above 0"));
  CU_ASSERT(refuses(log, "", "--json", "the file is empty"));
  CU_ASSERT(refuses(log, "delay,x\n1,2\n", "--group-size=4", "--group-size is for token-level"));
  CU_ASSERT(CLI_GIVES(1, "fit", "build/no/such.csv"));
  CU_ASSERT(CLI_GIVES(2, "fit"));
}

/* A run of miles without a tool: its events have no times of tools. */
TEST(a_log_without_tools_gives_the_other_times) {
  cli_result r = CLI("fit", "tests/golden/second_logs/miles");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "request (one response from its submission"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "): 22 values"));
  CU_ASSERT_PTR_NULL(strstr(r.out, "tools ("));
}

TEST(one_value_again_and_again_is_a_constant) {
  char folder[64], log[128];
  cli_scratch_make(folder);
  char text[512] = "delay\n";
  for (int i = 0; i < 30; ++i) strcat(text, "2.5\n");
  cli_write(cli_path(log, folder, "log.csv"), text, strlen(text));
  cli_result r = CLI("fit", log);
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "cluster:\n  delay: 2.5\n"));
}
