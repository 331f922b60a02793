/* gepolab plan of a log: the description has the distributions with which the log was made, by
 * closed forms and by the clock itself; what a log does not say is refused with what to add. */
#include "core/base/json.h"
#include "experiments/recipe/recipe.h"
#include "sim/delay.h"
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
  "lengths: {distribution: lognormal, mu: 6, sigma: 0.6}, max_tokens: 30000, tokens_per_s: 40, "   \
  "ahead: 4, "                                                                                     \
  "window: 4, delay: 2, learner: {step: {distribution: gamma, shape: 100, scale: 0.05}}}"

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

/* Short logs are read, too: a quarter of their steps are enough to tune the speed. */
TEST(a_short_log_of_a_run_that_waits_is_read) {
  char folder[64], path[128];
  cli_scratch_make(folder);
  write_asynchronous(cli_path(path, folder, "verl.jsonl"), 90);
  cJSON *j = CLI_JSON("plan", path, GIVEN, QUICK, "--json", "cluster.delay=2");
  CU_ASSERT(fabs(number_at(j, "log.check.step_s.error")) < 0.15);
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

/* --- logs with a line for each response --- */

enum { BATCHES = 5, GROUPS = 12, SIZE = 4, RESPONSES = BATCHES * GROUPS * SIZE };

/* Lengths of a lognormal with mu 3.6 and sigma 0.8, as whole numbers, cut at `limit`. */
static void sample_lengths(double out[RESPONSES], double limit) {
  const delay_dist law = {.kind = DELAY_LOGNORMAL, .lognormal = {3.6, 0.8}, .clamp_hi = limit};
  delay_source from = {.stream = rng_stream_at(11, RNG_TEST, 0)};
  for (int i = 0; i < RESPONSES; ++i) out[i] = fmax(round(delay_draw(&law, &from)), 1);
}

static void write_list(FILE *to, const char *name, const char *first, const char *each, int n) {
  fprintf(to, ",\"%s\":[[%s", name, first);
  for (int i = 0; i < n; ++i) fputs(each, to);
  fputs("]]", to);
}

/* NeMo-RL's train_data_step1.jsonl … in the folder. */
static void write_nemo(const char *folder, const double length[RESPONSES]) {
  char path[128], name[32], prompt[32];
  for (int i = 0; i < RESPONSES; i += GROUPS * SIZE) {
    snprintf(name, sizeof name, "train_data_step%d.jsonl", i / (GROUPS * SIZE) + 1);
    FILE *to = fopen(cli_path(path, folder, name), "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(to);
    for (int k = 0; k < GROUPS * SIZE; ++k) {
      const int n = (int)length[i + k];
      snprintf(prompt, sizeof prompt, "%d,7", k / SIZE);
      fprintf(to, "{\"idx\":%d,\"rewards\":[%d],\"input_lengths\":[%d],\"sample_loss_mask\":[1]", k,
              k % 2, n + 2);
      write_list(to, "token_ids", prompt, ",5", n);
      write_list(to, "token_loss_mask", "0,0", ",1", n);
      write_list(to, "advantages", "0,0", ",0.5", n);
      write_list(to, "generation_logprobs", "0,0", ",-1", n);
      write_list(to, "prev_logprobs", "0,0", ",-2", n);
      fputs("}\n", to);
    }
    CU_ASSERT_EQUAL(fclose(to), 0);
  }
}

#define GPUS "plan.sites=[{name: here, gpus: 8}]", "plan.learner.gpus=2", "plan.sampler.gpus=1"
#define SPEED "plan.sampler.decoding=[{concurrency: 8, tokens_per_s: 40}]"

/* The maximum likelihood of a lognormal has a closed form: mean and deviation of the logarithms. */
TEST(lengths_of_responses_are_fitted) {
  char folder[64];
  double length[RESPONSES], sum = 0, squares = 0, most = 0;
  cli_scratch_make(folder);
  sample_lengths(length, INFINITY);
  write_nemo(folder, length);
  for (int i = 0; i < RESPONSES; ++i) {
    sum += log(length[i]), squares += log(length[i]) * log(length[i]);
    most = fmax(most, length[i]);
  }
  const double mu = sum / RESPONSES, sigma = sqrt(squares / RESPONSES - mu * mu);
  cJSON *j = CLI_JSON("plan", folder, GPUS, QUICK, SPEED, "cluster.learner.step=20", "--json");
  CU_ASSERT_STRING_EQUAL(line_of(j, "train.groups", "value"), "12");
  CU_ASSERT_STRING_EQUAL(line_of(j, "train.group_size", "value"), "4");
  CU_ASSERT_STRING_EQUAL(line_of(j, "train.groups", "kind"), "read");
  CU_ASSERT_STRING_EQUAL(line_of(j, "cluster.lengths", "kind"), "read");
  CU_ASSERT(fabs(number_behind(j, "cluster.lengths", "mu: ") - mu) < 1e-5);
  CU_ASSERT(fabs(number_behind(j, "cluster.lengths", "sigma: ") - sigma) < 1e-5);
  CU_ASSERT_EQUAL(strtod(line_of(j, "cluster.max_tokens", "value"), NULL), most);
  CU_ASSERT_STRING_EQUAL(line_of(j, "window of the logged run", "value"), "not known");
  CU_ASSERT_STRING_EQUAL(line_of(j, "cluster.learner.step", "kind"), "given");
  CU_ASSERT(cJSON_IsNull(member_at(j, "log.responses_per_hour")));
  CU_ASSERT(number_at(j, "recommended.responses_per_hour.mean") > 0);
  /* what is given replaces what the log has */
  j = CLI_JSON("plan", folder, GPUS, QUICK, SPEED, "cluster.learner.step=20", "--json",
               "train.groups=6", "cluster.lengths=100");
  CU_ASSERT_STRING_EQUAL(line_of(j, "train.groups", "kind"), "given");
  CU_ASSERT_STRING_EQUAL(line_of(j, "cluster.lengths", "kind"), "given");
  /* the same values through gepolab fit */
  j = CLI_JSON("fit", folder, "--json");
  CU_ASSERT_EQUAL(number_at(j, "cluster.lengths.n"), RESPONSES);
}

/* A limit of the trainer cuts lengths off; they are fitted as gepolab fit does with that limit. */
TEST(a_limit_of_the_lengths_is_found) {
  char folder[64], cut[64];
  double length[RESPONSES];
  size_t n = 0;
  cli_scratch_make(folder);
  sample_lengths(length, 90);
  write_nemo(folder, length);
  for (int i = 0; i < RESPONSES; ++i) n += length[i] == 90;
  snprintf(cut, sizeof cut, "cut off there: %zu responses", n);
  cJSON *j = CLI_JSON("plan", folder, GPUS, QUICK, SPEED, "cluster.learner.step=20", "--json");
  CU_ASSERT_STRING_EQUAL(line_of(j, "cluster.max_tokens", "value"), "90");
  CU_ASSERT_STRING_EQUAL(line_of(j, "cluster.max_tokens", "source"), cut);
  const char *planned = line_of(j, "cluster.lengths", "value");
  cJSON *fit = CLI_JSON("fit", folder, "--at-most", "lengths=90", "--json");
  const char *fitted =
      text_at(fit, "cluster.lengths.recipe"); /* "lengths: {distribution: …, clamp: …}" */
  CU_ASSERT_EQUAL(number_at(fit, "cluster.lengths.n_at_most"), (double)n);
  CU_ASSERT(strncmp(planned, fitted + strlen("lengths: "), strcspn(planned, ".")) == 0);
}

/* Lengths of the responses, and the seconds of the steps of verl's log, are of one run. */
TEST(logs_of_steps_and_of_responses_are_one_run) {
  char folder[64], other[64], path[128];
  double length[RESPONSES];
  cli_scratch_make(folder), cli_scratch_make(other);
  sample_lengths(length, INFINITY);
  write_nemo(folder, length);
  write_in_turn(cli_path(path, other, "verl.jsonl"), 3000, 1);
  cJSON *apart = CLI_JSON("plan", path, folder, GPUS, QUICK, "--json");
  CU_ASSERT_EQUAL(strtod(line_of(apart, "cluster.learner.step", "value"), NULL), 7.5);
  CU_ASSERT_STRING_EQUAL(line_of(apart, "train.groups", "value"), "12");
  CU_ASSERT(fabs(number_behind(apart, "cluster.lengths", "mu: ") - 3.6) < 0.15);
  /* the same where the trainer wrote both into one folder */
  write_in_turn(cli_path(path, folder, "verl.jsonl"), 3000, 1);
  cJSON *beside = CLI_JSON("plan", folder, GPUS, QUICK, "--json");
  CU_ASSERT_EQUAL(number_at(apart, "recommended.responses_per_hour.mean"),
                  number_at(beside, "recommended.responses_per_hour.mean"));
}

/* gepolab's own log of groups has the age of every token. */
TEST(staleness_of_tokens_is_read) {
  char folder[64], path[128];
  cli_scratch_make(folder);
  FILE *to = fopen(cli_path(path, folder, "run.jsonl"), "w");
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  for (int step = 0; step < 30; ++step)
    fprintf(to,
            "{\"step\":%d,\"groups\":[{\"rewards\":[1,0],\"logp\":[[-1,-1],[-1,-1,-1]],"
            "\"logq\":[[-1,-1],[-1,-1,-1]],\"version_gap\":[[0,1],[3,3,%d]]}]}\n",
            step, step == 17 ? 6 : 2);
  CU_ASSERT_EQUAL(fclose(to), 0);
  cJSON *j = CLI_JSON("plan", path, GPUS, QUICK, SPEED, "cluster.learner.step=20", "--json");
  CU_ASSERT_STRING_EQUAL(line_of(j, "window of the logged run", "value"), "6");
  CU_ASSERT_STRING_EQUAL(line_of(j, "staleness of the logged run", "value"), "1.83"); /* 274/150 */
  CU_ASSERT_STRING_EQUAL(line_of(j, "train.groups", "value"), "1");
}

/* AReaL's trajectories have lengths and its sessions seconds: 10 responses of 100 tokens in 8 s and
 * 10 of 300 in 12 s are decoded at 20 tokens/s. */
TEST(seconds_of_responses_give_the_speed) {
  char folder[64], path[128], name[32];
  cli_scratch_make(folder);
  FILE *sessions = fopen(cli_path(path, folder, "sessions-r0.jsonl"), "w");
  CU_ASSERT_PTR_NOT_NULL_FATAL(sessions);
  for (int i = 0; i < 20; ++i) {
    const int tokens = i % 2 == 0 ? 100 : 300;
    snprintf(name, sizeof name, "task-%d.jsonl", i / 2);
    FILE *to = fopen(cli_path(path, folder, name), "a");
    CU_ASSERT_PTR_NOT_NULL_FATAL(to);
    fprintf(to,
            "{\"task_id\":%d,\"sample_idx\":%d,\"seqlen\":%d,\"prompt_len\":10,"
            "\"head_version\":2,\"tail_version\":2,\"version_rle\":[[2,%d]],\"reward\":1}\n",
            i / 2, i % 2, tokens + 10, tokens);
    CU_ASSERT_EQUAL(fclose(to), 0);
    fprintf(sessions,
            "{\"task_id\":%d,\"session_id\":%d,\"rank\":0,\"role\":\"actor\",\"status\":"
            "\"accepted\",\"submit_ts\":%d,\"finalized_ts\":%d,\"total_s\":20,\"generate_s\":%d,"
            "\"reward_s\":0.25,\"toolcall_s\":0}\n",
            i / 2, i, 100 * i, 100 * i + 20, i % 2 == 0 ? 8 : 12);
  }
  CU_ASSERT_EQUAL(fclose(sessions), 0);
  cJSON *j = CLI_JSON("plan", folder, GPUS, QUICK, "cluster.learner.step=20", "--json");
  CU_ASSERT_EQUAL(number_behind(j, "plan.sampler.decoding", "tokens_per_s: "), 20);
  CU_ASSERT_STRING_EQUAL(line_of(j, "train.groups", "value"), "10");
  CU_ASSERT_PTR_NOT_NULL(strstr(line_of(j, "cluster.grader", "source"), "0.25 s on average"));
}

TEST(what_responses_lack_is_named) {
  static const char nemo[] = "tests/golden/token_logs/nemo_rl";
  static const char sessions[] = "tests/golden/trainer_logs/areal";
  REFUSED(2,
          "train.groups=64 (prompts of an update, 2 to 3 in the log) train.group_size=8 (responses "
          "of a prompt, 2 to 3 in the log) cluster.learner.step=20 (seconds of an update) "
          "plan.sampler.decoding=",
          "plan", nemo, GPUS);
  REFUSED(2, "a fit needs 20", "plan", nemo, GIVEN, SPEED, "cluster.learner.step=20");
  REFUSED(2, "(responses of a prompt) cluster.learner.step=20", "plan", sessions, GPUS);
  REFUSED(2, "no mean length of responses", "plan", sessions, GIVEN, "cluster.learner.step=20");
  /* a name that formats of both kinds have */
  REFUSED(2, "add what is missing: cluster.learner.step", "plan",
          "tests/golden/token_logs/prime_rl", GPUS, "--log-format", "prime_rl");
  REFUSED(2, "no series of the seconds of a step", "plan",
          "tests/golden/trainer_logs/prime_rl/run-a/metrics.jsonl", GIVEN, "--log-format",
          "prime_rl");
  REFUSED(2, "--group-size is for logs", "plan", "one_node", "--group-size", "4");
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
  REFUSED(2, "their GPUs, at least 1 each", "plan", path, GIVEN,
          "plan.sites=[{name: here, gpus: 0}]");
  REFUSED(2, "cluster.lengths of your own", "plan", path, GIVEN, "cluster.lengths=100");
  REFUSED(2, "a plan chooses cluster.window itself", "plan", path, GIVEN, "cluster.window=2");
  CU_ASSERT(CLI_GIVES(0, "plan", path, GIVEN, QUICK, "cluster.lengths=100", "--samplers", "8",
                      "plan.sampler.decoding=[{concurrency: 8, tokens_per_s: 40}]"));
}
