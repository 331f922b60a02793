/* What became of drawn responses: counted by hand, beside the clock and the exact selection, and
 * the same after a resumption (cli: checkpoints). */
#include "experiments/train/internal.h"
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- counting --- */

SUITE("cli: fates");

/* A group of two responses to one prompt. */
static void add(fates_log *l, int64_t prompt, const size_t length[2], double first, double second,
                unit_fate fate) {
  batch b;
  gl_error err = {0};
  CU_ASSERT_FATAL(batch_init(&b, 1, 1, 2, length, &err) == GL_OK);
  b.prompt[0] = prompt;
  b.reward[0] = first;
  b.reward[1] = second;
  fates_add(l, &b, fate);
  batch_fini(&b);
}

static int is_record(const fate_record *r, const char *fate, int quarter, int64_t from,
                     int64_t responses, double tokens, double reward) {
  return strcmp(r->fate, fate) == 0 && r->quarter == quarter && r->tokens_from == from &&
         r->responses == responses && r->tokens == tokens && r->reward == reward;
}

/* Prompts 7, 3, 9, 5 and 4 have the mean rewards 0, 0.25, 0.25, 0.5 and 1: of five prompts in four
 * quarters the first two (3 comes before 9) share one. */
TEST(responses_are_counted_by_fate_quarter_and_length) {
  fates_log l = {0};
  size_t n = 0;
  add(&l, 4, (size_t[2]){8, 15}, 1, 1, FATE_TRAINED);
  add(&l, 9, (size_t[2]){1, 1}, 0.5, 0, FATE_STALE);
  add(&l, 7, (size_t[2]){4, 4}, 0, 0, FATE_STALE);
  add(&l, 3, (size_t[2]){5, 7}, 0.5, 0, FATE_STALE);
  add(&l, 5, (size_t[2]){1, 2}, 0.5, 0.5, FATE_PENDING);
  fate_record *r = fates_count(&l, &n);
  CU_ASSERT_EQUAL_FATAL(n, 5);
  CU_ASSERT(is_record(&r[0], "trained", 4, 8, 2, 23, 2));
  CU_ASSERT(is_record(&r[1], "stale", 1, 4, 4, 20, 0.5));
  CU_ASSERT(is_record(&r[2], "stale", 2, 1, 2, 2, 0.5));
  CU_ASSERT(is_record(&r[3], "pending", 3, 1, 1, 1, 0.5));
  CU_ASSERT(is_record(&r[4], "pending", 3, 2, 1, 2, 0.5));
  free(r);
  fates_fini(&l);
  r = fates_count(&l, &n);
  CU_ASSERT_EQUAL(n, 0);
  free(r);
}

/* --- runs --- */

/* The coupled runs here: their shares, and a column of a fate. */
static double of_fate(const cJSON *run, const char *fate, const char *column) {
  const cJSON *row;
  cJSON_ArrayForEach(row, member_at(run, "fates")) {
    if (strcmp(text_at(row, "fate"), fate) != 0) continue;
    return number_at(row, column);
  }
  return NAN;
}

/* Mean of a column of the steps that a study keeps. */
static double mean_of_steps(const char *db, const char *column) {
  cli_result r = CLI("export", db, "--table", "steps", "--format", "jsonl");
  double sum = 0, n = 0;
  char *rest = NULL;
  for (char *line = strtok_r(r.out, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest), ++n) {
    cJSON *json = json_parsed(line);
    sum += number_at(json, column);
  }
  return sum / n;
}

#define STILL "what_arrives", "optimizer={kind: sgd, lr: 1e-12}"

/* Under one policy the exact distributions of what is drawn and what arrives are known; updates
 * record what they train. */
TEST(what_is_thrown_away_is_what_does_not_arrive) {
  char folder[64], db[128];
  cli_scratch_make(folder);
  cJSON *run = CLI_JSON("run", STILL, "--json", "-q", "-o", cli_path(db, folder, "a.db"));
  cJSON *exact = CLI_JSON("selection", STILL, "--json");
  const double arrives = number_at(exact, "probability"), length = number_at(exact, "drawn.length"),
               short_ones = number_at(exact, "arrived.length");
  const double n = of_fate(run, "drawn", "responses"), stale = of_fate(run, "stale", "responses"),
               trained = of_fate(run, "trained", "responses");
  CU_ASSERT_EQUAL(trained, 2 * 3200);
  CU_ASSERT_EQUAL(n, trained + stale + of_fate(run, "pending", "responses"));
  ASSERT_CLOSE(trained / (trained + stale), arrives, 0.01);
  /* Lengths 1 to 5, rewards 0 or 1: five standard deviations of a mean over groups of two. */
  const double sigmas = 5 / sqrt(stale / 2);
  ASSERT_CLOSE(of_fate(run, "drawn", "mean_tokens"), length, 2 * sigmas);
  ASSERT_CLOSE(of_fate(run, "stale", "mean_tokens"),
               (length - arrives * short_ones) / (1 - arrives), 2 * sigmas);
  ASSERT_CLOSE(of_fate(run, "stale", "mean_reward"), 1.0 / 3, 0.5 * sigmas);
  ASSERT_CLOSE(of_fate(run, "trained", "mean_tokens"), mean_of_steps(db, "response_length"), 1e-9);
  ASSERT_CLOSE(of_fate(run, "trained", "mean_reward"), mean_of_steps(db, "reward_mean"), 1e-9);
}

/* Responses that are completed for their rewards only, some not even begun when they were thrown
 * away: every one is counted once, and every count that the clock has is found again. */
TEST(every_response_of_a_coupled_run_has_one_fate) {
  static const char *const clusters[] = {
      "cluster={preset: fifo, unit: group, coupled: true, partial: continue, window: 1, samplers: "
      "3, concurrency: 24, tokens_per_s: 0.05, delay: 20, mtbf: {distribution: exponential, mean: "
      "900}, "
      "mttr: 30, learner: {step: 8}}",
      "cluster={preset: fifo, unit: group, coupled: true, partial: drop, window: 1, samplers: 3, "
      "concurrency: 24, tokens_per_s: 0.05, delay: 20, learner: {step: 8, capacity: 40}}",
      "cluster={preset: fifo, coupled: true, window: 1, samplers: 3, tokens_per_s: 0.05, delay: "
      "20, learner: {step: 8}}"};
  for (size_t i = 0; i < 3; ++i) {
    const double size = i == 2 ? 16 : 2;
    cJSON *run = CLI_JSON("run", "what_arrives", "steps=200", clusters[i], "--json", "-q");
    const double thrown = of_fate(run, "stale", "responses") +
                          of_fate(run, "evicted", "responses") +
                          of_fate(run, "aborted", "responses");
    CU_ASSERT_EQUAL(of_fate(run, "trained", "responses"), 200 * 16);
    CU_ASSERT_EQUAL(thrown, size * number_at(run, "batches_dropped"));
    CU_ASSERT_EQUAL(of_fate(run, "lost", "responses"), size * number_at(run, "batches_lost"));
    CU_ASSERT((of_fate(run, "lost", "responses") > 0) == (i == 0));
    CU_ASSERT((of_fate(run, "aborted", "responses") > 0) == (i == 1));
    CU_ASSERT(of_fate(run, "stale", "responses") > 0);
    CU_ASSERT(of_fate(run, "stale", "mean_reward") > 0);
    double drawn = 0, by_length = 0;
    const cJSON *row;
    cJSON_ArrayForEach(row, member_at(run, "drawn_by_prompt")) {
      drawn += number_at(row, "drawn");
    }
    cJSON_ArrayForEach(row, member_at(run, "drawn_by_length")) {
      by_length += number_at(row, "drawn");
    }
    CU_ASSERT(drawn == of_fate(run, "drawn", "responses") && by_length == drawn);
  }
}

TEST(runs_that_draw_only_what_they_train_have_no_fates) {
  cJSON *run = CLI_JSON("run", "quickstart", "steps=3", "--json", "-q");
  CU_ASSERT_PTR_NULL(member_at(run, "fates"));
}

TEST(the_tables_of_a_run_name_fates_quarters_and_lengths) {
  cli_result r = CLI("run", STILL, "steps=100", "-q");
  CU_ASSERT_EQUAL(r.code, 0);
  static const char *const lines[] = {"\n    drawn  ", "\n    trained  ", "\n    stale  ",
                                      "\n    1 (hardest)", "\n    4 to 7 "};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; ++i)
    CU_ASSERT_PTR_NOT_NULL(strstr(r.out, lines[i]));
}
