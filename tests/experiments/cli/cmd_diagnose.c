/* gepolab diagnose on made-up logs: the page, JSON, recipes, refusals. */
#include "tests/support/cli.h"
#include "tests/support/json.h"
#include "tests/support/made_log.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

SUITE("cli: diagnose");

typedef struct log_folder {
  char folder[64], log[96], page[96], recipe[96], metrics[96];
} log_folder;

static log_folder made_folder(const made_plan *plan, bool has_versions) {
  log_folder f = {.folder = "/tmp/gepolab-diagnose-XXXXXX"};
  CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(f.folder));
  snprintf(f.log, sizeof f.log, "%s/run.jsonl", f.folder);
  snprintf(f.page, sizeof f.page, "%s/page.html", f.folder);
  snprintf(f.recipe, sizeof f.recipe, "%s/effect.yaml", f.folder);
  snprintf(f.metrics, sizeof f.metrics, "%s/metrics.jsonl", f.folder);
  made_write(plan, f.log, has_versions);
  return f;
}

static void folder_remove(const log_folder *f) {
  unlink(f->log), unlink(f->page), unlink(f->recipe), unlink(f->metrics);
  CU_ASSERT_EQUAL(rmdir(f->folder), 0);
}

TEST(the_page_has_seven_sections_in_every_form) {
  const made_plan plan = made_with(CAUSE_AGE);
  const log_folder f = made_folder(&plan, true);
  static const char *const ids[] = {"read",  "staleness", "divergence", "weights",
                                    "speed", "warnings",  "changes"};
  cJSON *j = CLI_JSON("diagnose", f.log, "--json");
  for (size_t i = 0; i < 7; ++i) CU_ASSERT_PTR_NOT_NULL(cJSON_GetObjectItem(j, ids[i]));
  const cJSON *findings = cJSON_GetObjectItem(cJSON_GetObjectItem(j, "changes"), "findings");
  CU_ASSERT_EQUAL(cJSON_GetArraySize(findings), 1);
  CU_ASSERT_STRING_EQUAL(
      cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(findings, 0), "cause")), "age");
  cli_result r = CLI("diagnose", f.log, "-a", "gspo");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "\n7. What to change\n"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "gspo (ran)"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "cluster.window"));
  folder_remove(&f);
}

TEST(the_html_page_is_written_whole) {
  const made_plan plan = made_healthy();
  const log_folder f = made_folder(&plan, true);
  CU_ASSERT(CLI_GIVES(0, "diagnose", f.log, "-o", f.page));
  char *page = cli_read(f.page);
  CU_ASSERT_PTR_NOT_NULL_FATAL(page);
  CU_ASSERT_PTR_NOT_NULL(strstr(page, "<h2 id=\"changes\">7. What to change</h2>"));
  CU_ASSERT_PTR_NOT_NULL(strstr(page, "</html>"));
  CU_ASSERT_PTR_NOT_NULL(strstr(page, "No cause is beyond its limit"));
  folder_remove(&f);
}

TEST(a_log_without_versions_says_what_to_log) {
  const made_plan plan = made_healthy();
  const log_folder f = made_folder(&plan, false);
  cli_result r = CLI("diagnose", f.log);
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "Not in this log: the lag of the data"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "version_gap"));
  folder_remove(&f);
}

/* Without versions the first update is the floor: age is found all the same. */
TEST(age_is_found_without_versions_from_the_first_update) {
  made_plan plan = made_with(CAUSE_AGE);
  const log_folder f = made_folder(&plan, false);
  cli_result r = CLI("diagnose", f.log, "--json");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "\"age\""));
  CU_ASSERT_PTR_NULL(strstr(r.out, "\"engine_mismatch\""));
  folder_remove(&f);
}

/* Every change has a recipe that the program can run. */
TEST(recipes_of_changes_are_valid) {
  for (int c = CAUSE_MISMATCH; c <= CAUSE_SMALL_BATCH; ++c) {
    const made_plan plan = made_with((diagnose_cause)c);
    const log_folder f = made_folder(&plan, true);
    CU_ASSERT(CLI_GIVES(0, "diagnose", f.log, "-r", f.recipe));
    CU_ASSERT(CLI_GIVES(0, "sweep", f.recipe, "--dry-run"));
    folder_remove(&f);
  }
  const made_plan plan = made_healthy();
  const log_folder f = made_folder(&plan, true);
  REFUSED(2, "shows no cause", "diagnose", f.log, "-r", f.recipe);
  REFUSED(2, "--change needs --recipe", "diagnose", f.log, "--change", "2");
  REFUSED(2, "--trainer", "diagnose", f.log, "--trainer", "nemorl");
  folder_remove(&f);
}

/* Checks the causes that a file of series shows: one, or none. */
static void check_file(const char *path, const char *cause) {
  cJSON *j = CLI_JSON("diagnose", path, "--json");
  const cJSON *findings = cJSON_GetObjectItem(cJSON_GetObjectItem(j, "changes"), "findings");
  const char *found =
      cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(findings, 0), "cause"));
  CU_ASSERT_EQUAL(cJSON_GetArraySize(findings), cause != NULL);
  if (cause != NULL && (found == NULL || strcmp(found, cause) != 0))
    fprintf(stderr, "%s instead of %s\n", found != NULL ? found : "nothing", cause);
  if (cause != NULL && found != NULL) CU_ASSERT_STRING_EQUAL(found, cause);
}

/* verl's file logger, of a trainer whose parts follow each other: fractions of a step. */
static void check_serial(double generation, double environment, double sync, double staleness,
                         const char *cause) {
  char path[] = "/tmp/gepolab-serial-XXXXXX";
  const int file = mkstemp(path);
  FILE *to = file >= 0 ? fdopen(file, "w") : NULL;
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  for (int u = 0; u < 24; ++u) {
    const double step = 100 + u % 5;
    fprintf(to,
            "{\"step\": %d, \"data\": {\"timing_s/step\": %g, \"timing_s/gen\": %g, "
            "\"timing_s/reward\": %g, "
            "\"timing_s/update_weights\": %g, \"timing_s/update_actor\": %g, "
            "\"training/off_policy/trajectory_staleness_worst/mean\": %g}}\n",
            u + 1, step, generation * step, environment * step, sync * step,
            (1 - generation - environment - sync) * step, staleness);
  }
  CU_ASSERT_EQUAL(fclose(to), 0);
  check_file(path, cause);
  unlink(path);
}

TEST(what_limits_a_serial_trainer_is_named) {
  check_serial(0.7, 0.05, 0.05, 0, "generation_bound");
  check_serial(0.3, 0.4, 0.05, 0, "environment_bound");
  check_serial(0.3, 0.05, 0.4, 0, "sync_bound");
  check_serial(0.4, 0.1, 0.05, 0, NULL);
  /* The same where trajectories are stale: now it is waiting, and 0.3 of a step is the limit. */
  check_serial(0.4, 0.1, 0.05, 2, "generation_bound");
  check_serial(0.2, 0.1, 0.05, 2, NULL);
}

/* The value of a quantity in a section's tables; NaN: there is none. */
static double value_in_page(const cJSON *page, const char *section, const char *rows,
                            const char *name) {
  const cJSON *row;
  cJSON_ArrayForEach(row, cJSON_GetObjectItem(cJSON_GetObjectItem(page, section), rows)) {
    const char *found = cJSON_GetStringValue(cJSON_GetObjectItem(row, "quantity"));
    if (found != NULL && strcmp(found, name) == 0) return number_at(row, "value.value");
  }
  return NAN;
}

/* Writes n lines with `each`, every fourth also with `sometimes`. */
static char *write_steps(char folder[64], char path[128], const char *name, int n, const char *each,
                         const char *sometimes) {
  cli_scratch_make(folder);
  FILE *to = fopen(cli_path(path, folder, name), "w");
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  for (int u = 1; u <= n; ++u)
    fprintf(to, "{\"step\": %d, %s%s}\n", u, each, u % 4 == 0 ? sometimes : "");
  CU_ASSERT_EQUAL(fclose(to), 0);
  return path;
}

/* What verl and TRL log by default: differences of probabilities, and no divergence in nats. */
TEST(logged_differences_are_in_the_section_of_the_divergence) {
  static const struct {
    const char *name, *each, *quantity;
    double value;
  } logs[] = {{"verl.jsonl", "\"data\": {\"training/rollout_probs_diff_mean\": 0.0125}",
               "mean |p - q|", 0.0125},
              {"trl.jsonl", "\"sampling/sampling_logp_difference/mean\": 0.25",
               "mean |log p - log q|", 0.25}};
  for (size_t i = 0; i < sizeof logs / sizeof *logs; ++i) {
    char folder[64], path[128];
    cJSON *j = CLI_JSON("diagnose", write_steps(folder, path, logs[i].name, 8, logs[i].each, ""),
                        "--json");
    for (size_t k = 0; k < sizeof logs / sizeof *logs; ++k) {
      const double value = value_in_page(j, "divergence", "parts", logs[k].quantity);
      CU_ASSERT(k == i ? fabs(value - logs[k].value) < 1e-12 : isnan(value));
    }
  }
}

/* TRL logs a transfer of weights at the steps that have one, and its seconds are in the step after.
 */
TEST(transfers_that_most_steps_lack_are_a_part_of_the_time) {
  char folder[64], path[128];
  cli_scratch_make(folder);
  FILE *to = fopen(cli_path(path, folder, "log.jsonl"), "w");
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  for (int u = 1; u <= 40; ++u)
    fprintf(to,
            "{\"step\": %d, \"perf/fwd_bwd_s\": 4, \"perf/rollout_wait_s\": 1, \"perf/step_s\": "
            "%d%s}\n",
            u, u % 4 == 1 && u > 1 ? 13 : 5, u % 4 == 0 ? ", \"perf/weight_sync_s\": 8" : "");
  CU_ASSERT_EQUAL(fclose(to), 0);
  cJSON *j = CLI_JSON("diagnose", path, "--json");
  ASSERT_CLOSE(value_in_page(j, "speed", "seconds", "step"), (31 * 5 + 9 * 13) / 40.0, 1e-9);
  ASSERT_CLOSE(value_in_page(j, "speed", "seconds", "weight sync"), 9 * 8 / 40.0, 1e-9);
  ASSERT_CLOSE(value_in_page(j, "speed", "seconds", "trainer"), 4, 1e-9);
}

/* verl's learner computes log-probabilities before it updates. */
TEST(all_work_of_the_learner_is_the_trainers) {
  char folder[64], path[128];
  cJSON *j = CLI_JSON(
      "diagnose",
      write_steps(folder, path, "verl.jsonl", 24,
                  "\"data\": {\"timing_s/step\": 220, \"timing_s/gen\": 100, "
                  "\"timing_s/old_log_prob\": 30, "
                  "\"timing_s/ref\": 29, \"timing_s/adv\": 1, \"timing_s/update_actor\": 60}",
                  ""),
      "--json");
  ASSERT_CLOSE(value_in_page(j, "speed", "seconds", "trainer"), 120, 1e-9);
  ASSERT_CLOSE(value_in_page(j, "speed", "seconds", "most that asynchrony can bring"), 220 / 120.0,
               1e-9);
}

/* An evaluation within the step is no work of the step; one beside it has not been in it. */
TEST(evaluations_are_no_part_of_a_step) {
  for (int inside = 0; inside < 2; ++inside) {
    char folder[64], path[128];
    cli_scratch_make(folder);
    FILE *to = fopen(cli_path(path, folder, "verl.jsonl"), "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(to);
    for (int u = 1; u <= 24; ++u)
      fprintf(to,
              "{\"step\": %d, \"data\": {\"timing_s/gen\": 50, \"timing_s/update_actor\": 40, "
              "\"timing_s/step\": %d%s}}\n",
              u, u % 4 == 0 && inside ? 590 : 90, u % 4 == 0 ? ", \"timing_s/testing\": 500" : "");
    CU_ASSERT_EQUAL(fclose(to), 0);
    cJSON *j = CLI_JSON("diagnose", path, "--json");
    ASSERT_CLOSE(value_in_page(j, "speed", "seconds", "step"), 90, 1e-9);
  }
}

/* verl counts dropped samples from the beginning of the run; TRL logs no step without one. */
TEST(dropped_responses_are_those_of_a_step) {
  char folder[64], path[128];
  cli_scratch_make(folder);
  FILE *to = fopen(cli_path(path, folder, "verl.jsonl"), "w");
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  for (int u = 1; u <= 40; ++u)
    fprintf(to,
            "{\"step\": %d, \"data\": {\"timing_s/step\": 9, \"timing_s/gen\": 1, "
            "\"timing_s/update_actor\": 8, "
            "\"fully_async/count/dropped_stale_samples\": %d}}\n",
            u, 2 * u);
  CU_ASSERT_EQUAL(fclose(to), 0);
  cJSON *j = CLI_JSON("diagnose", path, "--json");
  ASSERT_CLOSE(value_in_page(j, "staleness", "trend_and_dropping", "dropped in a step"), 2, 1e-9);
  j = CLI_JSON("diagnose",
               write_steps(folder, path, "trl.jsonl", 40,
                           "\"perf/step_s\": 5, \"perf/rollout_wait_s\": 1",
                           ", \"sample/dropped_stale_total\": 6"),
               "--json");
  ASSERT_CLOSE(value_in_page(j, "staleness", "trend_and_dropping", "dropped in a step"), 1.5, 1e-9);
}

TEST(values_that_are_no_numbers_are_told) {
  char folder[64], path[128];
  cli_scratch_make(folder);
  FILE *to = fopen(cli_path(path, folder, "verl.jsonl"), "w");
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  for (int u = 1; u <= 30; ++u)
    fprintf(to,
            "{\"step\": %d, \"data\": {\"timing_s/step\": 9, \"actor/pg_loss\": %s, "
            "\"critic/score/mean\": %g}}\n",
            u, u > 20 ? "null" : "0.1", 0.02 * u);
  CU_ASSERT_EQUAL(fclose(to), 0);
  cli_result r = CLI("diagnose", path);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "actor/pg_loss is not a number at 10 steps"));
  /* The reward has doubled, which is no warning. */
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "alarms: 0"));
}

/* A clock that was set back. Of 40 steps, one has no generation and another no weight sync. */
TEST(seconds_below_0_are_told_and_left_out) {
  char folder[64], path[128];
  cli_scratch_make(folder);
  FILE *to = fopen(cli_path(path, folder, "verl.jsonl"), "w");
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  for (int u = 1; u <= 40; ++u)
    fprintf(to,
            "{\"step\": %d, \"data\": {\"timing_s/step\": 9, \"timing_s/gen\": %d, "
            "\"timing_s/update_actor\": 3, \"timing_s/update_weights\": %d}}\n",
            u, u == 7 ? -500 : 5, u == 9 ? -500 : 1);
  CU_ASSERT_EQUAL(fclose(to), 0);
  cli_result r = CLI("diagnose", path);
  CU_ASSERT_PTR_NOT_NULL(
      strstr(r.out, "timing_s/gen is below 0 and no duration at 1 step, first at step 7"));
  cJSON *j = CLI_JSON("diagnose", path, "--json");
  ASSERT_CLOSE(value_in_page(j, "speed", "seconds", "generation"), 5, 1e-9);
  ASSERT_CLOSE(value_in_page(j, "speed", "seconds", "weight sync"), 1, 1e-9);
}

/* A floor from one update of lag 0 has no interval, so it is no finding. */
TEST(one_fresh_update_gives_no_interval) {
  char folder[64], path[128];
  cli_scratch_make(folder);
  FILE *to = fopen(cli_path(path, folder, "prime.jsonl"), "w");
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  for (int u = 0; u < 40; ++u)
    fprintf(to, "{\"step\": %d, \"kl_k3\": %g, \"staleness\": %d}\n", u + 1, 0.05 + 0.001 * (u % 3),
            u > 0);
  CU_ASSERT_EQUAL(fclose(to), 0);
  cJSON *j = CLI_JSON("diagnose", path, "--json");
  CU_ASSERT_EQUAL(
      cJSON_GetArraySize(cJSON_GetObjectItem(cJSON_GetObjectItem(j, "changes"), "findings")), 0);
}

/* A CSV whose first column is the seconds of a step: the step is another one. */
TEST(seconds_of_a_step_are_not_its_number) {
  char path[] = "/tmp/gepolab-csv-XXXXXX";
  const int file = mkstemp(path);
  FILE *to = file >= 0 ? fdopen(file, "w") : NULL;
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  fputs("timing_s/step,timing_s/gen,timing_s/update_actor,step\n", to);
  for (int u = 0; u < 24; ++u) {
    const int step = 100 + u % 5;
    fprintf(to, "%d,%g,%g,%d\n", step, 0.7 * step, 0.3 * step, u + 1);
  }
  CU_ASSERT_EQUAL(fclose(to), 0);
  check_file(path, "generation_bound");
  unlink(path);
}

/* Divergence and staleness of updates, as trainers log them: k3 = floor + slope staleness. */
static void check_divergence(double floor, double slope, const char *cause) {
  char path[] = "/tmp/gepolab-series-XXXXXX";
  const int file = mkstemp(path);
  FILE *to = file >= 0 ? fdopen(file, "w") : NULL;
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  for (int u = 0; u < 40; ++u) {
    const double staleness = u % 5, wobble = 1 + 0.05 * ((u * 7) % 3 - 1);
    fprintf(to, "{\"step\": %d, \"sample/staleness_mean\": %g, \"kl_k3\": %g}\n", u + 1, staleness,
            (floor + slope * staleness) * wobble);
  }
  CU_ASSERT_EQUAL(fclose(to), 0);
  check_file(path, cause);
  unlink(path);
}

TEST(divergence_of_series_is_separated_too) {
  check_divergence(0.02, 1e-4, "engine_mismatch");
  check_divergence(0.005, 1e-4, NULL);
  check_divergence(5e-4, 0.012, "age");
  check_divergence(5e-4, 0.004, NULL);
  check_divergence(5e-4, 0.05, "rate_too_high");
}

static void check_series(double wait, double sync, const char *cause) {
  const made_plan plan = made_healthy();
  const log_folder f = made_folder(&plan, true);
  made_series(f.metrics, wait, sync);
  cJSON *j = CLI_JSON("diagnose", f.metrics, "--json");
  const cJSON *findings = cJSON_GetObjectItem(cJSON_GetObjectItem(j, "changes"), "findings");
  CU_ASSERT_EQUAL_FATAL(cJSON_GetArraySize(findings), cause != NULL);
  if (cause != NULL)
    CU_ASSERT_STRING_EQUAL(
        cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(findings, 0), "cause")), cause);
  cli_result r = CLI("diagnose", f.metrics);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "trl/sample/staleness "));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "most that asynchrony can bring"));
  if (cause != NULL) {
    CU_ASSERT(CLI_GIVES(0, "diagnose", f.metrics, "-r", f.recipe));
    CU_ASSERT(CLI_GIVES(0, "sim", f.recipe));
  }
  folder_remove(&f);
}

TEST(what_limits_the_speed_is_named) {
  check_series(0.6, 0.02, "generation_bound");
  check_series(0.05, 0.5, "sync_bound");
  check_series(0.05, 0.05, NULL);
}

/* Two logs together, and two runs apart. */
TEST(logs_of_one_run_are_read_together) {
  const made_plan plan = made_with(CAUSE_AGE);
  const log_folder f = made_folder(&plan, true), other = made_folder(&plan, true);
  made_series(f.metrics, 0.6, 0.02), made_series(other.metrics, 0.1, 0.02);
  cJSON *j = CLI_JSON("diagnose", f.log, f.metrics, "--json");
  const cJSON *findings = cJSON_GetObjectItem(cJSON_GetObjectItem(j, "changes"), "findings");
  CU_ASSERT_EQUAL_FATAL(cJSON_GetArraySize(findings), 2); /* the result before the speed */
  CU_ASSERT_STRING_EQUAL(
      cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(findings, 0), "cause")), "age");
  REFUSED(2, "both have", "diagnose", f.metrics, other.metrics);
  folder_remove(&f), folder_remove(&other);
}

/* --- the second set of trainers' logs, tests/golden/second_logs.py --- */

#define SECOND(name) "tests/golden/second_logs/" name

static const cJSON *rows_of(const cJSON *page, const char *section, const char *name) {
  return cJSON_GetObjectItem(cJSON_GetObjectItem(page, section), name);
}

/* The value of the row whose member `quantity` has that name; NaN: there is none. */
static double quantity_value(const cJSON *rows, const char *name) {
  for (const cJSON *row = rows != NULL ? rows->child : NULL; row != NULL; row = row->next) {
    const cJSON *value = cJSON_GetObjectItem(cJSON_GetObjectItem(row, "value"), "value");
    const char *found = cJSON_GetStringValue(cJSON_GetObjectItem(row, "quantity"));
    if (found != NULL && strcmp(found, name) == 0 && cJSON_IsNumber(value))
      return value->valuedouble;
  }
  return NAN;
}

/* prime-rl writes token exports and the file monitor's metrics to one folder. */
TEST(a_folder_with_both_kinds_of_logs_is_read_whole) {
  cJSON *j = CLI_JSON("diagnose", SECOND("prime_rl"), "--json");
  const cJSON *counts = rows_of(j, "read", "counts");
  CU_ASSERT_EQUAL(quantity_value(counts, "updates"), 2);
  CU_ASSERT_EQUAL(quantity_value(counts, "restarts (steps that go back)"), 0);
  CU_ASSERT_EQUAL(cJSON_GetArraySize(rows_of(j, "staleness", "definitions")), 1);
  /* two sequences of another loss were not dropped; the monitor counts what was */
  CU_ASSERT(isnan(quantity_value(rows_of(j, "staleness", "trend_and_dropping"),
                                 "fraction of responses dropped")));
  CU_ASSERT(quantity_value(rows_of(j, "staleness", "trend_and_dropping"), "dropped in a step") > 0);
}

TEST(evaluations_and_repeated_tasks_of_areal_are_kept_apart) {
  cJSON *j = CLI_JSON("diagnose", SECOND("areal"), "--json");
  const cJSON *counts = rows_of(j, "read", "counts");
  CU_ASSERT_EQUAL(quantity_value(counts, "updates"), 3);
  CU_ASSERT_EQUAL(quantity_value(counts, "groups"), 7); /* six tasks, one of them twice */
  CU_ASSERT_EQUAL(quantity_value(counts, "responses"), 28);
}

/* verl's trainer of before V1 calls its wait for samples "gen". */
TEST(the_wait_of_fully_async_verl_is_no_generation) {
  cJSON *j = CLI_JSON("diagnose", SECOND("verl.jsonl"), "--json");
  CU_ASSERT_STRING_EQUAL(
      cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetObjectItem(j, "read"), "trainer")), "verl");
  const cJSON *seconds = rows_of(j, "speed", "seconds");
  CU_ASSERT_EQUAL(quantity_value(seconds, "trainer waits"), 30);
  CU_ASSERT(quantity_value(seconds, "generation") > 50); /* a batch takes a whole step */
  check_file(SECOND("verl.jsonl"), "generation_bound");
  cJSON *trl = CLI_JSON("diagnose", SECOND("trl"), "--json");
  CU_ASSERT(quantity_value(rows_of(trl, "speed", "seconds"), "step") > 0);
  REFUSED(2, "no format of token-level logs", "whatif", SECOND("nemo_rl_distillation"));
  REFUSED(2, "gepolab fit reads them", "diagnose", "tests/golden/trainer_logs/areal");
}

static const cJSON *row_named(const cJSON *rows, const char *key, const char *name) {
  const cJSON *row = NULL;
  cJSON_ArrayForEach(row, rows) {
    const char *is = cJSON_GetStringValue(cJSON_GetObjectItem(row, key));
    if (is != NULL && strcmp(is, name) == 0) return row;
  }
  return NULL;
}

/* --- the lines that numbers come from --- */

/* How many rows with a quantity have no lines, in the whole page. */
static int count_without_lines(const cJSON *node) {
  int n = 0;
  if (cJSON_IsObject(node) && cJSON_HasObjectItem(node, "quantity") &&
      cJSON_HasObjectItem(node, "from")) {
    const char *lines = cJSON_GetStringValue(cJSON_GetObjectItem(node, "lines"));
    if (lines == NULL || *lines == '\0')
      fprintf(stderr, "no lines: %s\n",
              cJSON_GetStringValue(cJSON_GetObjectItem(node, "quantity"))),
          ++n;
  }
  for (const cJSON *c = node->child; c != NULL; c = c->next) n += count_without_lines(c);
  return n;
}

/* The JSON object of a line of a file, from 1. */
static cJSON *object_of_line(const char *path, long line) {
  char *text = cli_read(path), *at = text;
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  for (long i = 1; i < line && at != NULL; ++i) at = strchr(at, '\n'), at += at != NULL;
  CU_ASSERT_PTR_NOT_NULL_FATAL(at);
  at[strcspn(at, "\n")] = '\0';
  cJSON *tree = json_parsed(at);
  CU_ASSERT_PTR_NOT_NULL_FATAL(tree);
  return tree;
}

/* The line in "FILE:LINE". */
static long line_of(const char *place) {
  const char *colon = place != NULL ? strrchr(place, ':') : NULL;
  CU_ASSERT_PTR_NOT_NULL_FATAL(colon);
  return strtol(colon + 1, NULL, 10);
}

static double largest_number(const cJSON *node) {
  double most = cJSON_IsNumber(node) ? node->valuedouble : -INFINITY;
  for (const cJSON *c = node != NULL ? node->child : NULL; c != NULL; c = c->next)
    most = fmax(most, largest_number(c));
  return most;
}

static double largest_member(const cJSON *node, const char *name) {
  double most = -INFINITY;
  for (const cJSON *c = node->child; c != NULL; c = c->next)
    most = fmax(most, c->string != NULL && strcmp(c->string, name) == 0 ? largest_number(c)
                                                                        : largest_member(c, name));
  return most;
}

/* The lines that the page names have the numbers. */
TEST(every_number_names_the_lines_that_it_is_from) {
  static const char *const logs[] = {"tests/golden/diagnose.jsonl",
                                     SECOND("prime_rl"),
                                     SECOND("verl.jsonl"),
                                     SECOND("trl"),
                                     SECOND("areal"),
                                     "tests/golden/trainer_logs/mimo.json"};
  for (size_t i = 0; i < sizeof logs / sizeof *logs; ++i) {
    cJSON *j = CLI_JSON("diagnose", logs[i], "--json");
    CU_ASSERT_EQUAL(count_without_lines(j), 0);
  }
  cJSON *j = CLI_JSON("diagnose", logs[0], "--json");
  const cJSON *row = row_named(rows_of(j, "staleness", "trend_and_dropping"), "quantity",
                               "largest lag of a token");
  const char *lines = cJSON_GetStringValue(cJSON_GetObjectItem(row, "lines"));
  cJSON *line = object_of_line(logs[0], line_of(lines));
  CU_ASSERT_EQUAL(largest_member(line, "version_gap"), 4);
  j = CLI_JSON("diagnose", logs[1], "--json");
  row = cJSON_GetArrayItem(rows_of(j, "staleness", "definitions"), 0);
  lines = cJSON_GetStringValue(cJSON_GetObjectItem(row, "most_lines"));
  CU_ASSERT_EQUAL(strncmp(lines, "metrics.jsonl:", 14), 0);
  line = object_of_line(SECOND("prime_rl/run/metrics.jsonl"), line_of(lines));
  CU_ASSERT_EQUAL(cJSON_GetNumberValue(cJSON_GetObjectItem(line, "off_policy/mean")),
                  cJSON_GetNumberValue(cJSON_GetObjectItem(row, "most")));
}

/* The text has the lines once, and the number of the source at each field; so has the page. */
TEST(text_and_page_have_the_sources) {
  cli_result r = CLI("diagnose", SECOND("prime_rl"));
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "trainer_logprobs, inference_logprobs [1]\n"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "step_1/rank_0.jsonl:1 to "));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "metrics.jsonl:1-15 (8 lines)\n"));
  const made_plan plan = made_with(CAUSE_AGE);
  const log_folder f = made_folder(&plan, true);
  CU_ASSERT(CLI_GIVES(0, "diagnose", f.log, "-o", f.page));
  char *page = cli_read(f.page);
  CU_ASSERT_PTR_NOT_NULL_FATAL(page);
  CU_ASSERT_PTR_NOT_NULL(strstr(page, "logp, logq [1]"));
  CU_ASSERT_PTR_NOT_NULL(strstr(page, "run.jsonl:1-"));
  CU_ASSERT_PTR_NOT_NULL(strstr(page, "nats per token [1]. Limit: "));
  folder_remove(&f);
}

/* --- NeMo-RL: a folder without versions, with dropped responses --- */

static void check_nemo(const made_plan *plan, const char *cause) {
  char folder[] = "/tmp/gepolab-nemo-XXXXXX", path[128];
  CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
  made_write_nemo(plan, folder);
  cJSON *j = CLI_JSON("diagnose", folder, "--json");
  const cJSON *findings = cJSON_GetObjectItem(cJSON_GetObjectItem(j, "changes"), "findings");
  CU_ASSERT_EQUAL_FATAL(cJSON_GetArraySize(findings), cause != NULL);
  if (cause != NULL)
    CU_ASSERT_STRING_EQUAL(
        cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(findings, 0), "cause")), cause);
  CU_ASSERT_STRING_EQUAL(
      cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetObjectItem(j, "read"), "trainer")),
      "nemo_rl");
  for (size_t u = 1; u <= plan->updates; ++u) {
    snprintf(path, sizeof path, "%s/train_data_step%zu.jsonl", folder, u);
    unlink(path);
  }
  CU_ASSERT_EQUAL(rmdir(folder), 0);
}

TEST(causes_are_named_in_folders_of_nemo_rl) {
  made_plan plan = made_healthy();
  check_nemo(&plan, NULL);
  plan = made_with(CAUSE_DISCARD);
  check_nemo(&plan, "discard_bias");
  plan.dropped_length = 1;
  check_nemo(&plan, NULL);
  plan = made_with(CAUSE_AGE);
  check_nemo(&plan, "age");
  plan = made_with(CAUSE_MISMATCH);
  check_nemo(&plan, "engine_mismatch");
}

/* --- logs that trainers wrote: tests/golden/trainer_logs.py --- */

static void check_counter(const char *log, const char *trainer, const char *counter) {
  cli_result r = CLI("diagnose", log);
  CU_ASSERT_EQUAL(r.code, 0);
  if (strstr(r.out, trainer) == NULL || strstr(r.out, counter) == NULL)
    fprintf(stderr, "%s: no %s or %s in\n%s", log, trainer, counter, r.out);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, trainer));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, counter));
}

TEST(series_of_trainers_have_their_own_counters) {
  check_counter("tests/golden/trainer_logs/verl.jsonl", "Trainer: read as verl",
                "trajectory_staleness_worst");
  check_counter("tests/golden/trainer_logs/prime_rl", "Trainer: read as prime-rl",
                "prime_rl/off_policy ");
  check_counter("tests/golden/trainer_logs/async/checkpoint-12", "Trainer: read as TRL",
                "trl/sample/staleness ");
  check_counter("tests/golden/trainer_logs/mimo.json", "not known", "mimo/partial/avg_staleness");
  REFUSED(2, "nothing in the logs", "diagnose", "tests/golden/trainer_logs/trainer_state.json");
}

/* --- against NumPy: tests/golden/diagnose.py --- */

static void check_interval(const cJSON *of, const char *name, double value, double low,
                           double high) {
  if (of == NULL) fprintf(stderr, "%s is missing\n", name);
  CU_ASSERT_PTR_NOT_NULL_FATAL(of);
  ASSERT_CLOSE(cJSON_GetNumberValue(cJSON_GetObjectItem(of, "value")), value, 1e-12);
  ASSERT_CLOSE(cJSON_GetNumberValue(cJSON_GetObjectItem(of, "low")), low, 1e-12);
  ASSERT_CLOSE(cJSON_GetNumberValue(cJSON_GetObjectItem(of, "high")), high, 1e-12);
}

/* Where the page has a number of the fixture. */
static const struct {
  const char *name, *section, *table, *key, *row;
} numbers[] = {
    {"all.k3", "divergence", "parts", "quantity", "divergence k3, all data"},
    {"all.k1", "divergence", "parts", "quantity", "divergence k1"},
    {"all.spread", "divergence", "parts", "quantity", "standard deviation of l"},
    {"all.difference", "divergence", "parts", "quantity", "mean |p - q|"},
    {"all.far", "divergence", "parts", "quantity", "fraction of tokens with |p - q| > 0.2"},
    {"all.factor", "divergence", "parts", "quantity", "mean exp(|l|)"},
    {"floor", "divergence", "parts", "quantity", "floor: k3 at lag 0"},
    {"slope", "divergence", "parts", "quantity", "slope: k3 per version"},
    {"mismatch_fraction", "divergence", "parts", "quantity",
     "part of k3 that is mismatch of the engines"},
    {"age_fraction", "divergence", "parts", "quantity", "part of k3 that is age"},
    {"staleness.tokens", "staleness", "definitions", "definition", "mimo/partial/avg_staleness"},
    {"staleness.start", "staleness", "definitions", "definition", "trl/sample/staleness"},
    {"staleness.newest", "staleness", "definitions", "definition", "verl_v1/trajectory_staleness"},
    {"staleness.oldest", "staleness", "definitions", "definition",
     "verl_v1/trajectory_staleness_worst"},
};

/* Returns the interval of a fixture's name; NULL: the page does not have it. */
static const cJSON *interval_named(const cJSON *page, const char *name) {
  size_t lag = 0;
  char member[32];
  if (sscanf(name, "lag%zu.%31s", &lag, member) == 2) {
    const cJSON *rows = cJSON_GetObjectItem(cJSON_GetObjectItem(page, "divergence"), "by_lag");
    return cJSON_GetObjectItem(cJSON_GetArrayItem(rows, (int)lag), member);
  }
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i) {
    if (strcmp(numbers[i].name, name) != 0) continue;
    const cJSON *rows =
        cJSON_GetObjectItem(cJSON_GetObjectItem(page, numbers[i].section), numbers[i].table);
    const cJSON *row = row_named(rows, numbers[i].key, numbers[i].row);
    const cJSON *value = cJSON_GetObjectItem(row, "value");
    return value != NULL ? value : cJSON_GetObjectItem(row, "mean");
  }
  return NULL;
}

TEST(numbers_and_intervals_are_those_of_numpy) {
  cJSON *page = CLI_JSON("diagnose", "tests/golden/diagnose.jsonl", "--json");
  FILE *from = fopen("tests/golden/diagnose.txt", "r");
  CU_ASSERT_PTR_NOT_NULL_FATAL(from);
  char name[64];
  double value, low, high;
  int n = 0;
  while (fscanf(from, "%63s %lf %lf %lf", name, &value, &low, &high) == 4) {
    if (strcmp(name, "age") == 0) continue; /* printed as a fraction */
    check_interval(interval_named(page, name), name, value, low, high);
    ++n;
  }
  CU_ASSERT(n > 40);
  fclose(from);
}
