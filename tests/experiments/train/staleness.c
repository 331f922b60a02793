/* The ages of trained data that a run records: in versions, and in optimiser updates. */
#include "tests/support/cli.h"
#include "tests/support/files.h"
#include "tests/support/suite.h"

#include <math.h>
#include <string.h>

SUITE("cli: staleness");

/* A metric of the run's last update; NaN where it has none. */
static double last(const char *train, const char *preset, const char *metric) {
  cJSON *json =
      CLI_JSON("run", "quickstart", "steps=4", "eval_every=4", train, preset, "--json", "-q");
  double number = number_at(member_at(json, "last_update"), metric);
  return number;
}

/* All responses have five tokens and groups are alike, so the updates of a step, 0 to 7 updates
 * after its start, train equally many tokens: 3.5. Under one_step_off the fourth update trains the
 * version before, 8 updates ago. */
TEST(minibatches_and_epochs_make_data_staler) {
#define TRAIN "train={groups: 8, group_size: 4, minibatches: 4, epochs: 2}"
  ASSERT_CLOSE(last(TRAIN, "cluster={preset: sync}", "staleness"), 0, 0);
  ASSERT_CLOSE(last(TRAIN, "cluster={preset: sync}", "staleness_updates"), 3.5, 1e-12);
  ASSERT_CLOSE(last(TRAIN, "cluster={preset: one_step_off}", "staleness"), 1, 0);
  ASSERT_CLOSE(last(TRAIN, "cluster={preset: one_step_off}", "staleness_updates"), 11.5, 1e-12);
  ASSERT_CLOSE(last(TRAIN, "cluster={preset: one_step_off}", "staleness_within"), 3.5, 1e-12);
  static const char *const commands[] = {"run", "sim"};
  for (size_t i = 0; i < 2; ++i) {
    cJSON *json = CLI_JSON(commands[i], "quickstart", "steps=4", "eval_every=4", TRAIN,
                           "cluster={preset: one_step_off}", "--json");
    const cJSON *staleness = member_at(json, "staleness");
    ASSERT_CLOSE(number_at(staleness, "updates_within"), 3.5, 1e-12);
    CU_ASSERT_EQUAL(number_at(staleness, "updates_per_version"), 8);
    ASSERT_CLOSE(number_at(staleness, "mean"), 0.75, 1e-12);
  }
#undef TRAIN
}

TEST(with_one_update_a_step_both_ages_are_the_same) {
  const char *train = "train={groups: 4, group_size: 4}", *heterorl = "cluster={preset: heterorl}";
  const double versions = last(train, heterorl, "staleness");
  CU_ASSERT(versions >= 0);
  ASSERT_CLOSE(last(train, heterorl, "staleness_updates"), versions, 0);
}

/* Groups that stream: an update's age is the mean over its groups, which have their own versions
 * (all responses of this world have the same number of tokens). */
TEST(an_update_of_groups_is_as_stale_as_they_are_on_average) {
  const char *train = "train={groups: 8, group_size: 4}",
             *streams = "cluster={preset: fifo, samplers: 3, unit: group, concurrency: 6, "
                        "tokens_per_s: 5, lengths: "
                        "{distribution: exponential, mean: 300}}";
  cli_result r = CLI("sim", "quickstart", "steps=4", train, streams, "--schedule", "csv");
  double sum = 0, n = 0, low = INFINITY, high = 0;
  char *rest = NULL;
  for (char *line = strtok_r(r.out, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
    int step, sampler, version, staleness;
    if (sscanf(line, "%d,%d,%d,%d", &step, &sampler, &version, &staleness) != 4 || step != 4)
      continue;
    sum += staleness;
    low = fmin(low, staleness);
    high = fmax(high, staleness);
    ++n;
  }
  CU_ASSERT_EQUAL(n, 8);
  CU_ASSERT(low < high);
  ASSERT_CLOSE(last(train, streams, "staleness"), sum / n, 1e-12);
  ASSERT_CLOSE(last(train, streams, "staleness_max"), high, 0);
}

/* One step off, the first update trains data of its own version, and the second of the version
 * before: up to there runs are the same whatever their window, and the second gradient is the
 * plain one times the weight, exactly where that is a power of two. */
TEST(stale_data_is_trained_with_its_weight) {
  static const char *const clusters[][2] = {
      {"cluster={preset: one_step_off}",
       "cluster={preset: one_step_off, window: 0, stale: downweight, stale_decay: 0.125}"},
      {"cluster={preset: one_step_off, coupled: true, tokens_per_s: 5}",
       "cluster={preset: one_step_off, coupled: true, tokens_per_s: 5, window: 0, stale: "
       "downweight, stale_decay: 0.125}"}};
  static const char *const worlds[] = {
      "world={kind: sequence, vocabulary: 4, horizon: 5, prompts: 4, reward: graded}",
      "world={kind: llm, backend: cpu, dtype: float64, model: {layers: 1, hidden: 16, heads: 2, "
      "context: 32}, task: {kind: sorting, length: 3, reward: graded}}"};
  for (size_t i = 0; i < 4; ++i) {
    double norm[2][2];
    for (size_t k = 0; k < 4; ++k) {
      cJSON *json = CLI_JSON("run", "quickstart", k % 2 == 0 ? "steps=1" : "steps=2",
                             "eval_every=2", worlds[i / 2], clusters[i % 2][k / 2],
                             "algorithm={base: reinforce, baseline: none}",
                             "optimizer={kind: sgd, lr: 0.5, clip_grad_norm: 0}", "--json", "-q");
      norm[k / 2][k % 2] = number_at(json, "last_update.grad_norm");
    }
    CU_ASSERT(norm[0][1] > 0);
    CU_ASSERT_EQUAL(norm[1][0], norm[0][0]);
    CU_ASSERT_EQUAL(norm[1][1], 0.125 * norm[0][1]);
  }
}

/* What is trained when whole groups come in time is the same whether they come as one message or
 * response by response: the learner assembles them. The responses here are all of one length, or
 * end where they like but wait for each other. */
TEST(responses_of_whole_groups_are_trained_as_groups) {
  static const char *const worlds[] = {
      "world={kind: sequence, vocabulary: 4, horizon: 5, prompts: 4, reward: graded}",
      "world={kind: llm, backend: cpu, model: {layers: 1, hidden: 16, heads: 2, context: 32}, "
      "task: {kind: sorting, length: 3, reward: graded}}"};
  static const char *const clocks[] = {"tokens_per_s: 5, lengths: 5",
                                       "tokens_per_s: 5, coupled: true"};
  char folder[64], saved[2][128];
  cli_scratch_make(folder);
  cli_path(saved[0], folder, "groups.state");
  cli_path(saved[1], folder, "responses.state");
  for (size_t i = 0; i < 3; ++i) {
    for (size_t k = 0; k < 2; ++k) {
      char cluster[200];
      snprintf(cluster, sizeof cluster, "cluster={preset: sync, unit: %s, concurrency: 3, %s}",
               k == 0 ? "group" : "response", clocks[i % 2]);
      cli_result r =
          CLI("run", "quickstart", "steps=6", "eval_every=6", worlds[i / 2], cluster,
              "train={groups: 4, group_size: 4, minibatches: 2}", "-q", "--save", saved[k]);
      CU_ASSERT_EQUAL(r.code, 0);
      if (r.code != 0) fprintf(stderr, "%s", r.err);
    }
    CU_ASSERT(files_equal(saved[0], saved[1]));
  }
}
