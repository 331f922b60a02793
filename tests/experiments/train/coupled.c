/* cluster.coupled through the command: real response lengths take the simulated time. */
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("cli: coupled clock");

typedef struct bench {
  char folder[64], recipe[128], one[128], two[128];
} bench;

static void bench_make(bench *b, const char *text) {
  cli_scratch_make(b->folder);
  cli_path(b->recipe, b->folder, "coupled.yaml");
  cli_path(b->one, b->folder, "one");
  cli_path(b->two, b->folder, "two");
  cli_write(b->recipe, text, strlen(text));
}

static int same_file(const char *a, const char *b) {
  char line[300];
  snprintf(line, sizeof line, "cmp -s %s %s", a, b);
  return system(line) == 0;
}

/* All responses of this world have five tokens. */
static const char fixed[] = "name: fixed\nsteps: 60\n"
                            "world: {kind: sequence, vocabulary: 3, horizon: 5, prompts: 3}\n"
                            "train: {groups: 4, group_size: 4}\n";

/* What a run prints but for the fates of its responses, which a clock that comes first has not; to
 * be freed. */
static char *without_fates(const char *text) {
  static const char *const own[] = {"fates", "drawn_by_prompt", "drawn_by_length"};
  cJSON *json = json_parsed(text);
  CU_ASSERT_PTR_NOT_NULL_FATAL(json);
  for (size_t i = 0; i < sizeof own / sizeof *own; ++i) cJSON_DeleteItemFromObject(json, own[i]);
  char *rest = cJSON_Print(json);
  return rest;
}

TEST(responses_of_one_length_give_the_run_of_a_constant_dist) {
  static const char *const presets[] = {
      "sync",
      "one_step_off, samplers: 2",
      "heterorl, max_delay: 300, bytes_per_token: 10, up: {bandwidth: 50, loss: 0.1}",
      "fifo, data_delay: {distribution: exponential, mean: 30}, mtbf: {distribution: exponential, "
      "mean: 2000}",
      "lifo, learner: {capacity: 3}",
      "areal, in_flight: false, jitter: {distribution: uniform, min: 0.5, max: 2}",
      "fifo, unit: group, window: 3, delay: 20, learner: {step: 60}",
      "one_step_off, samplers: 2, unit: group, partial: drop, delay: {distribution: exponential, "
      "mean: 30}",
      "heterorl, max_delay: 300, unit: group, mtbf: {distribution: exponential, mean: 2000}",
      "lifo, unit: group, learner: {tokens: 100}",
      "areal, unit: group, delay: 7",
      "fifo, unit: group, partial: continue, delay: {distribution: exponential, mean: 30}, "
      "interrupt: 9, "
      "mtbf: {distribution: exponential, mean: 2000}, jitter: {distribution: uniform, min: 0.5, "
      "max: 2}",
      "fifo, unit: response, window: 3, delay: 20, learner: {step: 60}",
      "one_step_off, samplers: 2, unit: response, partial: drop, delay: {distribution: "
      "exponential, mean: "
      "30}",
      "fifo, unit: response, partial: continue, delay: {distribution: exponential, mean: 30}, "
      "mtbf: {distribution: "
      "exponential, mean: 2000}, jitter: {distribution: uniform, min: 0.5, max: 2}",
      "areal, samplers: 2, unit: group, prefill_tokens_per_s: 2, prompt_tokens: 3, learner: {step: "
      "11}",
  };
  bench b;
  bench_make(&b, fixed);
  for (size_t i = 0; i < sizeof presets / sizeof *presets; ++i) {
    char coupled[300], dist[300];
    static const char speed[] = "tokens_per_s: 0.1, concurrency: 3";
    snprintf(coupled, sizeof coupled, "cluster={preset: %s, %s, coupled: true}", presets[i], speed);
    snprintf(dist, sizeof dist, "cluster={preset: %s, %s, lengths: 5}", presets[i], speed);
    cli_result x = CLI("run", b.recipe, coupled, "-q", "--json", "--save", b.one);
    cli_result y = CLI("run", b.recipe, dist, "-q", "--json", "--save", b.two);
    CU_ASSERT_EQUAL(x.code, 0);
    CU_ASSERT(x.out_size > 1000);
    char *of_x = without_fates(x.out), *of_y = without_fates(y.out);
    CU_ASSERT_STRING_EQUAL(of_x, of_y);
    free(of_x);
    free(of_y);
    CU_ASSERT(same_file(b.one, b.two));
  }
}

#define VARYING                                                                                    \
  "name: varying\nsteps: 120\neval_every: 30\n"                                                    \
  "world: {kind: sequence, vocabulary: 3, horizon: 6, prompts: 4, end_token: true}\n"              \
  "optimizer: {kind: adam, lr: 0.1}\n"                                                             \
  "train: {groups: 8, group_size: 8}\n"

typedef struct row {
  double time_s, length;
} row;

/* Time and response length of each update kept in a study. */
static size_t read_rows(const char *db, row *rows, size_t n) {
  cli_result r = CLI("export", db, "--table", "steps", "--format", "jsonl");
  size_t found = 0;
  char *rest = NULL;
  for (char *line = strtok_r(r.out, "\n", &rest); line != NULL && found < n;
       line = strtok_r(NULL, "\n", &rest), ++found) {
    cJSON *json = json_parsed(line);
    const cJSON *time = member_at(json, "time_s"), *length = member_at(json, "response_length");
    rows[found] = (row){cJSON_IsNumber(time) ? time->valuedouble : NAN,
                        cJSON_IsNumber(length) ? length->valuedouble : NAN};
  }
  return found;
}

/* One sampler that decodes one response after the other: an update takes the time of all tokens of
 * its batch, and 30 s. In one world answers become longer by learning, in the other shorter. */
TEST(lengths_that_change_by_learning_drive_the_clock) {
  static const struct {
    const char *task;
    int sign;
  } worlds[] = {{"world.task=target", 1}, {"world.task=sum_mod", -1}};
  for (size_t i = 0; i < 2; ++i) {
    bench b;
    row rows[120];
    bench_make(&b, VARYING "cluster: {coupled: true, tokens_per_s: 0.5, concurrency: 1}\n");
    CU_ASSERT(CLI_GIVES(0, "run", b.recipe, worlds[i].task, "-q", "-o", b.one));
    CU_ASSERT_EQUAL_FATAL(read_rows(b.one, rows, 120), 120);
    double before = 0;
    for (size_t u = 0; u < 120; ++u) {
      ASSERT_CLOSE(rows[u].time_s - before, 64 * rows[u].length / 0.5 + 30, 1e-9);
      before = rows[u].time_s;
    }
    double early = rows[19].time_s, late = rows[119].time_s - rows[99].time_s;
    CU_ASSERT(worlds[i].sign * (late - early) > 0.1 * early);
  }
}

static const char hetero[] = VARYING "cluster: {preset: heterorl, max_delay: 300, coupled: true, "
                                     "tokens_per_s: 0.05, concurrency: 8}\n"
                                     "sweep: {algorithm: [grpo, gepo], seed: [1, 2]}\n";

TEST(coupled_runs_are_the_same_however_they_are_executed) {
  static const char *const tables[] = {"steps", "evals", "runs", "staleness", "clock"};
  bench b;
  bench_make(&b, hetero);
  CU_ASSERT(CLI_GIVES(0, "sweep", b.recipe, "-o", b.one, "-q", "-j", "1"));
  CU_ASSERT(CLI_GIVES(0, "sweep", b.recipe, "-o", b.two, "-q", "-j", "2"));
  for (size_t i = 0; i < sizeof tables / sizeof *tables; ++i) {
    cli_result x = CLI("export", b.one, "--table", tables[i]),
               y = CLI("export", b.two, "--table", tables[i]);
    CU_ASSERT(x.code == 0 && x.out_size > 100);
    CU_ASSERT_STRING_EQUAL(x.out, y.out);
  }
  /* What learns otherwise writes otherwise, so the clocks of two algorithms differ. */
  cli_result x = CLI("run", b.recipe, "sweep=null", "algorithm=grpo", "--json", "-q");
  cli_result y = CLI("run", b.recipe, "sweep=null", "algorithm=gepo", "--json", "-q");
  CU_ASSERT(printed_number(&x, "simulated_s") > 1000);
  CU_ASSERT(printed_number(&x, "simulated_s") != printed_number(&y, "simulated_s"));
  CU_ASSERT(printed_number(&x, "staleness.max") > 2);
}

TEST(a_coupled_run_that_diverges_stops_its_clock) {
  bench b;
  bench_make(&b, VARYING "cluster: {preset: fifo, coupled: true, tokens_per_s: 0.05}\n");
  cli_result r = CLI("run", b.recipe, "-q", "--json",
                     "optimizer={kind: sgd, lr: 1000000, weight_decay: 10}", "-o", b.one);
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "\"diverged\""));
  row rows[120];
  size_t n = read_rows(b.one, rows, 120);
  CU_ASSERT_EQUAL_FATAL((double)n, printed_number(&r, "steps"));
  CU_ASSERT(n > 5 && n < 120);
  CU_ASSERT_EQUAL(printed_number(&r, "batches_trained"), (double)n);
  ASSERT_CLOSE(printed_number(&r, "simulated_s"), rows[n - 1].time_s, 1e-12);
}

TEST(what_cannot_be_coupled_is_refused_at_its_place) {
  static const struct {
    const char *cluster, *place, *says;
  } table[] = {
      {"preset: areal\n  coupled: true", ":9:12: ", "in_flight: false"},
      {"coupled: true\n  in_flight: true", ":9:14: ", "in_flight: false"},
      {"coupled: true\n  samples_per_batch: 3", ":9:22: ", "= 64"},
      {"coupled: perhaps", ":8:12: ", "true or false"},
      {"copled: true", ":8:3: ", "did you mean 'coupled'"},
      {"preset: areal\n  lengths: 5\n  unit: group\n  kv_cache: keep",
       ":11:13: ", "no keys and values"},
  };
  for (size_t i = 0; i < sizeof table / sizeof *table; ++i) {
    bench b;
    char text[600];
    snprintf(text, sizeof text, VARYING "cluster:\n  %s\n", table[i].cluster);
    bench_make(&b, text);
    cli_result r = CLI("run", b.recipe, "-q", "-o", b.one);
    int right = r.code == 2 && strstr(r.err, table[i].place) != NULL &&
                strstr(r.err, table[i].says) != NULL && cli_files_in(b.folder) == 1;
    if (!right) fprintf(stderr, "%s gave %d %s", table[i].cluster, r.code, r.err);
    CU_ASSERT(right);
  }
}

TEST(the_clock_alone_says_what_stands_in_for_responses) {
  bench b;
  bench_make(&b, VARYING "cluster: {coupled: true, tokens_per_s: 0.5}\n");
  cli_result r = CLI("sim", b.recipe, "--json");
  CU_ASSERT_EQUAL(r.code, 2);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, ":7:20: "));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "a distribution of `lengths`"));
  CU_ASSERT_EQUAL(r.out_size, 0);
  r = CLI("sim", b.recipe, "--json", "cluster.lengths=4");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "from the distribution of `lengths`"));
  ASSERT_CLOSE(printed_number(&r, "simulated_s"), 120 * (8 + 30), 1e-12);
}

/* A metric of each update kept in a study. */
static size_t read_metric(const char *db, const char *name, double *value, size_t n) {
  cli_result r = CLI("export", db, "--table", "steps", "--format", "jsonl");
  size_t found = 0;
  char *rest = NULL;
  for (char *line = strtok_r(r.out, "\n", &rest); line != NULL && found < n;
       line = strtok_r(NULL, "\n", &rest), ++found) {
    cJSON *json = json_parsed(line);
    value[found] = number_at(json, name);
  }
  return found;
}

/* Responses of five tokens, one after the other, and one sampler: an update takes 50 s a response
 * that is drawn, left-out groups included, the overhead of every round, and 30 s. */
TEST(left_out_groups_take_their_time) {
  double drawn[60], kept[60], plain[60];
  row rows[60];
  bench b;
  bench_make(&b, fixed);
  CU_ASSERT(CLI_GIVES(0, "run", b.recipe, "-q", "-o", b.one,
                      "cluster={coupled: true, tokens_per_s: 0.1, concurrency: 1, generation: 7}",
                      "train.filter_groups={enable: true, gen_batch_size: 3}"));
  CU_ASSERT_EQUAL_FATAL(read_rows(b.one, rows, 60), 60);
  CU_ASSERT_EQUAL_FATAL(read_metric(b.one, "groups_drawn", drawn, 60), 60);
  CU_ASSERT_EQUAL_FATAL(read_metric(b.one, "groups_kept", kept, 60), 60);
  double before = 0, all = 0;
  for (size_t u = 0; u < 60; ++u) {
    CU_ASSERT(fmod(drawn[u], 3) == 0 && drawn[u] >= 6 && kept[u] <= 4);
    CU_ASSERT(kept[u] == 4 || drawn[u] == 30);
    ASSERT_CLOSE(rows[u].time_s - before, drawn[u] * 4 * 50 + drawn[u] / 3 * 7 + 30, 1e-9);
    before = rows[u].time_s;
    all += drawn[u];
  }
  CU_ASSERT(all > 60 * 6); /* some updates need more than two rounds */
  char says[64];
  double of_them = 0;
  for (size_t u = 0; u < 60; ++u) of_them += kept[u];
  snprintf(says, sizeof says, "%.0f sampled for the updates, %.0f kept", all, of_them);
  cli_result told = CLI("run", b.recipe, "-q",
                        "cluster={coupled: true, tokens_per_s: 0.1, concurrency: 1, generation: 7}",
                        "train.filter_groups={enable: true, gen_batch_size: 3}");
  CU_ASSERT_PTR_NOT_NULL(strstr(told.out, says));
  /* Without it the metrics are left out, and the run is the one of a recipe that does not say so.
   */
  CU_ASSERT(CLI_GIVES(0, "run", b.recipe, "-q", "-o", b.two, "cluster.coupled=true",
                      "train.filter_groups.enable=false"));
  CU_ASSERT_EQUAL_FATAL(read_metric(b.two, "groups_drawn", plain, 60), 60);
  for (size_t u = 0; u < 60; ++u) CU_ASSERT(isnan(plain[u]));
  cli_result x = CLI("run", b.recipe, "-q", "--json", "cluster.coupled=true");
  cli_result y = CLI("run", b.recipe, "-q", "--json", "cluster.coupled=true",
                     "train.filter_groups={enable: false, exhausted: fail}");
  CU_ASSERT(x.code == 0 && x.out_size > 1000);
  CU_ASSERT_STRING_EQUAL(x.out, y.out);
}

TEST(a_filter_without_its_clock_is_refused_at_its_place) {
  static const struct {
    const char *cluster, *filter, *says;
    int code;
  } table[] = {
      {"{preset: fifo}", "{enable: true}", "coupled: true", 2},
      {"{preset: fifo, coupled: true, unit: group}", "{enable: true}", "unit: batch", 2},
      {"{coupled: true}", "{max_num_gen_batches: 3}", "enable: true", 2},
      {"{coupled: true}", "{enable: true, max_gen_batches: 3}", "max_num_gen_batches", 2},
      {"{coupled: true}", "{enable: true, max_num_gen_batches: 1, exhausted: fail}",
       "only 0 of 8 groups", 1},
  };
  for (size_t i = 0; i < sizeof table / sizeof *table; ++i) {
    bench b;
    char text[800];
    snprintf(text, sizeof text,
             "name: varying\nsteps: 3\nworld: {kind: bandit}\ncluster: %s\n"
             "train: {unsolvable: 1, filter_groups: %s}\n",
             table[i].cluster, table[i].filter);
    bench_make(&b, text);
    cli_result r = CLI("run", b.recipe, "-q", "-o", b.one);
    const int right =
        r.code == table[i].code && strstr(r.err, table[i].says) != NULL &&
        (r.code != 2 || (strstr(r.err, "coupled.yaml:5:") != NULL && cli_files_in(b.folder) == 1));
    if (!right) fprintf(stderr, "%s gave %d %s", table[i].filter, r.code, r.err);
    CU_ASSERT(right);
  }
}
