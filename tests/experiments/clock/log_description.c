/* gepolab plan of a log: the description has the distributions with which the log was made, by
 * closed forms and by the clock itself; what a log does not say is refused with what to add. */
#include "core/base/json.h"
#include "experiments/recipe/recipe.h"
#include "sim/schedule.h"
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

SUITE("cli: plan of a log");

#define GIVEN                                                                                      \
  "plan.sites=[{name: here, gpus: 8}]", "plan.learner.gpus=2", "plan.sampler.gpus=1",              \
      "train.groups=12", "train.group_size=4"
#define QUICK "plan.selection={replicates: 3, updates: 16, most: 6}", "-q"

/* What the page says last of a field: its "value", "kind" or "source". */
static const char *line_of(const cJSON *page, const char *field, const char *member) {
  const cJSON *row = NULL;
  const char *found = "";
  cJSON_ArrayForEach(row, member_at(page, "log.lines")) {
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItem(row, "field"));
    if (name != NULL && strcmp(name, field) == 0)
      found = cJSON_GetStringValue(cJSON_GetObjectItem(row, member));
  }
  return found;
}

/* The number behind a word of a field's value: 0.7 behind "sigma: " of {…, sigma: 0.7}. */
static double number_behind(const cJSON *page, const char *field, const char *word) {
  const char *at = strstr(line_of(page, field, "value"), word);
  return at != NULL ? strtod(at + strlen(word), NULL) : NAN;
}

/* verl's file logger of a synchronous run with responses of 1,000 tokens on average, at 40
 * tokens/s: 1.5 s of an update are in no part of their own, and weights are sent after every
 * `every`-th. */
static void write_in_turn(const char *path, double most, int every) {
  FILE *to = fopen(path, "w");
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  for (int i = 0; i < 60; ++i) {
    const double sync = i % every == 0 ? 2 : 0;
    fprintf(to,
            "{\"step\":%d,\"data\":{\"timing_s/step\":%.17g,\"timing_s/gen\":%.17g,"
            "\"timing_s/update_weights\":%g,\"timing_s/update_actor\":6,"
            "\"response_length/mean\":1000,\"response_length/max\":%.17g}}\n",
            i + 1, most / 40 + sync + 7.5, most / 40, sync, most);
  }
  CU_ASSERT_EQUAL(fclose(to), 0);
}

/* The longest of 48 responses of a lognormal with sigma 0.7 and mean 1000 has the median
 * 1000 exp(0.7 z - 0.7^2 / 2), z the normal quantile of 0.5^(1/48), which is 2.187945 (Python
 * NormalDist.inv_cdf). At 40 tokens/s it takes that / 40 s. */
TEST(a_run_in_turn_gives_its_distributions) {
  char folder[64], path[128];
  const double most = 1000 * exp(0.7 * 2.1879450843710546 - 0.245), seconds = most / 40 + 9.5;
  cli_scratch_make(folder);
  write_in_turn(cli_path(path, folder, "verl.jsonl"), most, 1);
  cJSON *j =
      CLI_JSON("plan", path, GIVEN, QUICK, "cluster.max_tokens=30000", "--json", "--for", "verl");
  CU_ASSERT(fabs(number_behind(j, "cluster.lengths", "sigma: ") - 0.7) < 1e-4);
  CU_ASSERT(fabs(number_behind(j, "cluster.lengths", "mu: ") - (log(1000) - 0.245)) < 1e-4);
  CU_ASSERT(fabs(number_behind(j, "plan.sampler.decoding", "tokens_per_s: ") - 40) < 1e-3);
  CU_ASSERT_EQUAL(number_behind(j, "plan.sampler.decoding", "concurrency: "), 8); /* 48 / 6 */
  CU_ASSERT_EQUAL(strtod(line_of(j, "cluster.learner.step", "value"), NULL), 7.5);
  CU_ASSERT_EQUAL(strtod(line_of(j, "cluster.delay", "value"), NULL), 2);
  CU_ASSERT_STRING_EQUAL(line_of(j, "window of the logged run", "value"), "0");
  CU_ASSERT_STRING_EQUAL(line_of(j, "plan.sites", "kind"), "given");
  CU_ASSERT_STRING_EQUAL(line_of(j, "plan.learner.serial", "kind"), "assumed");
  CU_ASSERT(fabs(number_at(j, "log.responses_per_hour") * seconds / (3600 * 48) - 1) < 1e-9);
  /* 8 runs of 30 steps: the standard error is 2 %; the longest is lognormal's, whose mean is above
   * its median by about 6 % */
  CU_ASSERT(fabs(number_at(j, "log.check.step_s.error") - 0.04) < 0.08);
  CU_ASSERT(number_at(j, "recommended.responses_per_hour.mean") >
            number_at(j, "log.responses_per_hour"));
  CU_ASSERT_PTR_NOT_NULL(member_at(j, "for.settings"));
}

/* Steps that sent no weights are not delays of 0 s. */
TEST(weights_that_are_not_sent_have_no_delay) {
  char folder[64], path[128];
  cli_scratch_make(folder);
  write_in_turn(cli_path(path, folder, "verl.jsonl"), 3000, 3);
  cJSON *j = CLI_JSON("plan", path, GIVEN, QUICK, "--json");
  CU_ASSERT_STRING_EQUAL(line_of(j, "cluster.delay", "value"), "2");
  CU_ASSERT_PTR_NOT_NULL(strstr(line_of(j, "cluster.delay", "source"), "of 20 steps that sent"));
  CU_ASSERT_EQUAL(strtod(line_of(j, "cluster.learner.step", "value"), NULL), 7.5);
  CU_ASSERT_PTR_NULL(member_at(j, "log.check"));
}

#define ASYNCHRONOUS                                                                               \
  "cluster={preset: fifo, unit: group, partial: continue, samplers: 6, concurrency: 8, "           \
  "lengths: {law: lognormal, mu: 6, sigma: 0.6}, max_tokens: 30000, tokens_per_s: 40, ahead: 4, "  \
  "window: 4, delay: 2, learner: {step: {law: gamma, shape: 100, scale: 0.05}}}"

/* A log of the clock as verl V1 writes it where its trainer waits for the replay buffer: then
 * timing_s/gen is the wait. */
static void write_asynchronous(const char *path, size_t steps) {
  const char *overrides[] = {ASYNCHRONOUS, "train.groups=12", "train.group_size=4", "seed=5"};
  cfg_doc *doc = NULL;
  recipe r;
  cluster_spec *spec = NULL;
  schedule s = {0};
  ASSERT_OK(recipe_load(&doc, "quickstart", overrides, 4, &err));
  ASSERT_OK(recipe_read(&r, doc, &err));
  ASSERT_OK(cluster_parse(&spec, r.cluster, r.groups, r.group_size, &err));
  ASSERT_OK(schedule_build(&s, spec, r.seed, steps, &err));
  FILE *to = fopen(path, "w");
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  double before = 0;
  for (size_t i = 0; i < s.n_updates; ++i) {
    const schedule_update *u = &s.updates[i];
    double tokens = 0, longest = 0, age = 0, oldest = 0;
    for (size_t k = 0; k < u->n_batches; ++k) {
      const schedule_batch *b = &s.batches[u->first_batch + k];
      const double lag = (double)schedule_staleness(&s, u, b);
      tokens += b->tokens, longest = fmax(longest, b->longest);
      age += lag / (double)u->n_batches, oldest = fmax(oldest, lag);
    }
    fprintf(to,
            "{\"step\":%zu,\"data\":{\"timing_s/step\":%.17g,\"timing_s/gen\":%.17g,"
            "\"timing_s/update_actor\":%.17g,\"response_length/mean\":%.17g,"
            "\"response_length/max\":%.17g,\"training/off_policy/trajectory_staleness/mean\":%.17g,"
            "\"training/off_policy/trajectory_staleness_worst/mean\":%.17g,"
            "\"training/off_policy/trajectory_staleness_worst/max\":%g}}\n",
            i + 1, u->end_s - before, u->start_s - before, u->end_s - u->start_s, tokens / 48,
            longest, age, age, oldest);
    before = u->end_s;
  }
  CU_ASSERT_EQUAL(fclose(to), 0);
  schedule_fini(&s);
  cluster_free(spec);
  cfg_free(doc);
}

/* 400 steps of one seed: standard errors of the mean step and of the mean length are about 1 %. */
TEST(a_run_that_waits_gives_its_distributions) {
  char folder[64], path[128];
  cli_scratch_make(folder);
  write_asynchronous(cli_path(path, folder, "verl.jsonl"), 400);
  cJSON *j = CLI_JSON("plan", path, GIVEN, QUICK, "--json", "cluster.delay=2");
  CU_ASSERT(fabs(number_behind(j, "cluster.lengths", "sigma: ") - 0.6) < 0.03);
  CU_ASSERT(fabs(number_behind(j, "cluster.lengths", "mu: ") - 6) < 0.04);
  CU_ASSERT(fabs(number_behind(j, "plan.sampler.decoding", "tokens_per_s: ") / 40 - 1) < 0.05);
  CU_ASSERT_STRING_EQUAL(line_of(j, "cluster.delay", "kind"), "given");
  CU_ASSERT_STRING_EQUAL(line_of(j, "window of the logged run", "value"), "4");
  CU_ASSERT(fabs(number_at(j, "log.check.step_s.error")) < 0.05);
  CU_ASSERT(fabs(number_at(j, "log.check.staleness.error")) < 0.1);
}

/* The description that --describe prints gives the same plan as the log. */
TEST(the_description_can_be_kept) {
  char folder[64], path[128], kept[128], json[128];
  cli_scratch_make(folder);
  write_in_turn(cli_path(path, folder, "verl.jsonl"), 3000, 1);
  cli_path(kept, folder, "kept.yaml"), cli_path(json, folder, "kept.json");
  cli_result r = CLI("plan", path, GIVEN, QUICK, "--describe");
  CU_ASSERT_EQUAL_FATAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "# given    plan.learner.gpus: 2\n"));
  cli_write(kept, r.out, r.out_size);
  cJSON *a = CLI_JSON("plan", path, GIVEN, QUICK, "--json"),
        *b = CLI_JSON("plan", kept, QUICK, "--json");
  CU_ASSERT(
      cJSON_Compare(member_at(a, "recommended.recipe"), member_at(b, "recommended.recipe"), 1));
  CU_ASSERT_EQUAL(number_at(a, "recommended.responses_per_hour.mean"),
                  number_at(b, "recommended.responses_per_hour.mean"));
  CU_ASSERT_PTR_NULL(member_at(b, "log"));
  /* JSON with a section `plan` is a description, too */
  cli_result sent = CLI("plan", path, GIVEN, QUICK);
  CU_ASSERT_PTR_NOT_NULL(strstr(sent.out, "the logged run: "));
  CU_ASSERT(cli_fits(sent.out, strlen(sent.out)));
  REFUSED(2, "--describe is for logs", "plan", kept, "--describe");
  cli_write(json, "{\"plan\": {}}", 12);
  REFUSED(2, "'plan' needs `sites`", "plan", json);
  REFUSED(2, "from one description, or from the logs of one run", "plan", kept, kept);
}

/* Logs that trainers' own code wrote (tests/golden/second_logs.py, trainer_logs.py), which are too
 * short or lack what a plan needs. */
TEST(what_a_log_lacks_is_named) {
  static const char verl[] = "tests/golden/second_logs/verl.jsonl";
  static const char csv[] = "step,timing_s/step,timing_s/gen\n1,9,4\n2,8,5\n";
  static const char v1[] = "tests/golden/trainer_logs/verl.jsonl";
  char folder[64], path[128];
  REFUSED(2, "plan.sampler.gpus=4 (GPUs of an engine) train.groups=64", "plan", verl,
          "plan.learner.gpus=2");
  REFUSED(2, "12 steps with the seconds of the learner", "plan", verl, GIVEN);
  REFUSED(2, "the trainer is not said to wait", "plan", v1, GIVEN);
  REFUSED(2, "--samplers N", "plan", v1, GIVEN, "plan.learner.gpus=8");
  REFUSED(2, "must be a number of at least 1", "plan", v1, GIVEN, "train.groups=many");
  REFUSED(2, "no series of the seconds of a step", "plan",
          "tests/golden/trainer_logs/prime_rl/run-a/metrics.jsonl", GIVEN);
  REFUSED(2, "the trainer is not said to wait", "plan", "tests/golden/second_logs/trl/checkpoint-8",
          GIVEN);
  cli_scratch_make(folder);
  cli_write(cli_path(path, folder, "short.csv"), csv, sizeof csv - 1);
  REFUSED(2, "add cluster.lengths=", "plan", path, GIVEN);
  write_in_turn(cli_path(path, folder, "verl.jsonl"), 3000, 1);
  REFUSED(2, "plan.sites lists places with their GPUs", "plan", path, GIVEN, "plan.sites=5");
  REFUSED(2, "cluster.lengths of your own", "plan", path, GIVEN, "cluster.lengths=100");
  REFUSED(2, "a plan chooses cluster.window itself", "plan", path, GIVEN, "cluster.window=2");
  CU_ASSERT(CLI_GIVES(0, "plan", path, GIVEN, QUICK, "cluster.lengths=100", "--samplers", "8",
                      "plan.sampler.decoding=[{concurrency: 8, tokens_per_s: 40}]"));
}
