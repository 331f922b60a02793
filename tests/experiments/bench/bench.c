/* gepolab bench: medians and ratios from made-up rates, what is kept back on a busy machine, and
 * that the parts which take seconds run and answer with every number they promise. How large the
 * speeds are is no test's business; what is known exactly beside them is checked. */
#include "experiments/bench/bench.h"
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <string.h>
#include <unistd.h>

/* --- arithmetic --- */

SUITE("cli: bench");

static const meter_load quiet = {0.02, 0.01}, busy = {0.3, 0};

static bench_rate rate(double median, meter_load load) {
  return (bench_rate){.median = median, .low = median, .high = median, .n = 5, .load = load};
}

TEST(the_median_stands_between_smallest_and_largest) {
  double odd[] = {5, 1, 4, 100, 3}, even[] = {4, 1, 3, 2}, one[] = {7};
  bench_rate r = bench_rate_of(odd, 5, quiet);
  CU_ASSERT_EQUAL(r.median, 4);
  CU_ASSERT_EQUAL(r.low, 1);
  CU_ASSERT_EQUAL(r.high, 100);
  CU_ASSERT_EQUAL(r.n, 5);
  CU_ASSERT_EQUAL(bench_rate_of(even, 4, quiet).median, 2.5);
  CU_ASSERT_EQUAL(bench_rate_of(one, 1, quiet).median, 7);
  r = bench_rate_of(NULL, 0, quiet);
  CU_ASSERT(r.n == 0 && isnan(r.median));
}

static double ratio(meter_load ours, meter_load theirs, int takes_busy, int *withheld) {
  const bench_number number = {.rate = rate(30, ours)};
  const bench_peer other = {.rate = rate(20, theirs)};
  return bench_ratio(&number, &other, takes_busy, withheld);
}

TEST(a_ratio_is_kept_back_where_the_machine_was_busy_for_either) {
  int withheld;
  CU_ASSERT_EQUAL(ratio(quiet, quiet, 0, &withheld), 1.5);
  CU_ASSERT_EQUAL(withheld, 0);
  CU_ASSERT(isnan(ratio(busy, quiet, 0, &withheld)));
  CU_ASSERT_EQUAL(withheld, 1);
  CU_ASSERT(isnan(ratio(quiet, busy, 0, &withheld)));
  CU_ASSERT_EQUAL(withheld, 1);
  CU_ASSERT_EQUAL(ratio(busy, busy, 1, &withheld), 1.5);
  CU_ASSERT_EQUAL(withheld, 0);
}

TEST(what_was_not_measured_has_no_ratio_and_keeps_none_back) {
  int withheld = 1;
  const bench_number number = {.rate = rate(30, busy)}, none = {.rate = {.n = 0}};
  const bench_peer other = {.rate = rate(20, busy)}, missing = {.rate = {.n = 0}};
  CU_ASSERT(isnan(bench_ratio(&number, &missing, 0, &withheld)));
  CU_ASSERT_EQUAL(withheld, 0);
  CU_ASSERT(isnan(bench_ratio(&none, &other, 0, &withheld)));
  CU_ASSERT_EQUAL(withheld, 0);
}

TEST(ratios_kept_back_are_counted) {
  static bench b;
  b = (bench){.n = 2};
  b.numbers[0] = (bench_number){
      .rate = rate(1, quiet), .n_peers = 2, .peer = {{.rate = rate(1, busy)}, {.rate = {.n = 0}}}};
  b.numbers[1] = (bench_number){.rate = rate(1, busy),
                                .n_peers = 2,
                                .peer = {{.rate = rate(1, quiet)}, {.rate = rate(1, quiet)}}};
  CU_ASSERT_EQUAL(bench_withheld(&b), 3);
  b.takes_busy = 1;
  CU_ASSERT_EQUAL(bench_withheld(&b), 0);
}

TEST(a_number_derived_from_a_busy_rate_is_kept_back) {
  static bench b;
  b = (bench){.n = 0};
  CU_ASSERT_EQUAL(bench_derived(&b, "quiet", 2, meter_heavier(quiet, quiet), 1, "", NULL), GL_OK);
  CU_ASSERT_EQUAL(bench_derived(&b, "busy", 2, meter_heavier(quiet, busy), 1, "", NULL), GL_OK);
  CU_ASSERT_EQUAL(bench_derived(&b, "busy_first", 2, meter_heavier(busy, quiet), 1, "", NULL),
                  GL_OK);
  b.takes_busy = 1;
  CU_ASSERT_EQUAL(bench_derived(&b, "taken", 2, meter_heavier(quiet, busy), 1, "", NULL), GL_OK);
  CU_ASSERT_EQUAL(b.numbers[0].value, 2);
  CU_ASSERT(isnan(b.numbers[1].value));
  CU_ASSERT(isnan(b.numbers[2].value));
  CU_ASSERT_EQUAL(b.numbers[3].value, 2);
}

/* --- measuring --- */

static gl_status count(void *self, gl_error *err) {
  (void)err;
  ++*(int *)self;
  return GL_OK;
}

static gl_status fail_third(void *self, gl_error *err) {
  return ++*(int *)self == 3 ? gl_fail(err, GL_EIO, "the third") : GL_OK;
}

TEST(a_task_warms_up_once_and_is_repeated) {
  static bench b;
  bench_number *number;
  int calls = 0;
  b = (bench){.end = INFINITY};
  CU_ASSERT_EQUAL(
      bench_measure(&b, &number, (bench_row){"key", "what", 10, count, &calls}, 0, NULL), GL_OK);
  CU_ASSERT_EQUAL(calls, 1 + BENCH_REPETITIONS);
  CU_ASSERT_EQUAL(number->rate.n, BENCH_REPETITIONS);
  CU_ASSERT(number->rate.low > 0 && number->rate.low <= number->rate.high);
  CU_ASSERT_PTR_EQUAL(number, &b.numbers[0]);
  calls = 0;
  gl_error err = {.status = GL_OK};
  CU_ASSERT_EQUAL(
      bench_measure(&b, &number, (bench_row){"key", "what", 10, fail_third, &calls}, 0, &err),
      GL_EIO);
  CU_ASSERT_STRING_EQUAL(err.text, "the third");
}

typedef struct letter {
  char letter, *text;
} letter;

static gl_status write_letter(void *self, gl_error *err) {
  const letter *l = self;
  (void)err;
  const size_t n = strlen(l->text);
  l->text[n] = l->letter;
  l->text[n + 1] = '\0';
  return GL_OK;
}

/* One after the other, the machine of the first row need not be that of the second. */
TEST(rows_are_measured_in_turns) {
  static bench b;
  bench_number *number[2];
  char text[32] = "";
  letter one = {'1', text}, two = {'2', text};
  const bench_row rows[] = {{"one", "", 10, write_letter, &one},
                            {"two", "", 20, write_letter, &two}};
  b = (bench){.end = INFINITY};
  CU_ASSERT_EQUAL(bench_measure_in_turns(&b, number, rows, 2, 0, NULL), GL_OK);
  CU_ASSERT_STRING_EQUAL(text, "121212121212"); /* the first of each warms up */
  CU_ASSERT_EQUAL(b.n, 2);
  for (size_t k = 0; k < 2; ++k) {
    CU_ASSERT_PTR_EQUAL(number[k], &b.numbers[k]);
    CU_ASSERT_EQUAL(number[k]->rate.n, BENCH_REPETITIONS);
    CU_ASSERT(number[k]->rate.own_s >= 0);
    CU_ASSERT(number[k]->rate.least_s >= 0 && number[k]->rate.least_s <= number[k]->rate.own_s);
  }
}

/* Two workers that seem 2.7 times as fast as one, as a machine has shown them whose processor took
 * 1.35 times as long for the same work while there was one. */
TEST(a_processor_that_changed_its_speed_gives_no_speed_up) {
  static bench b;
  bench_number one = {.rate = rate(5.2, quiet)}, two = {.rate = rate(14, quiet)};
  b = (bench){.n = 0};
  one.rate.own_s = 0.193;
  two.rate.own_s = 0.143;
  CU_ASSERT_EQUAL(bench_speed_up(&b, "slower", &one, &two, 2, "", NULL), GL_OK);
  CU_ASSERT(isnan(b.numbers[0].value));
  one.rate = rate(7, quiet);
  one.rate.own_s = 0.143;
  CU_ASSERT_EQUAL(bench_speed_up(&b, "same", &one, &two, 2, "", NULL), GL_OK);
  CU_ASSERT_EQUAL(b.numbers[1].value, 2);
  two.rate.load = busy;
  CU_ASSERT_EQUAL(bench_speed_up(&b, "busy", &one, &two, 2, "", NULL), GL_OK);
  CU_ASSERT(isnan(b.numbers[2].value));
  one.rate.own_s = NAN;
  b.takes_busy = 1;
  CU_ASSERT_EQUAL(bench_speed_up(&b, "unknown", &one, &two, 2, "", NULL), GL_OK);
  CU_ASSERT(isnan(b.numbers[3].value));
}

TEST(after_its_time_nothing_is_begun) {
  static bench b;
  bench_number *number;
  peer_process p = {.pid = 0};
  int calls = 0;
  b = (bench){.end = 0};
  CU_ASSERT_EQUAL(
      bench_measure(&b, &number, (bench_row){"key", "what", 10, count, &calls}, 0, NULL), GL_OK);
  CU_ASSERT_EQUAL(calls, 0);
  CU_ASSERT_EQUAL(number->rate.n, 0);
  bench_ask(&b, number, &p, "peer", "request", 1);
  CU_ASSERT_STRING_EQUAL(number->missing, "no time left");
  CU_ASSERT_STRING_EQUAL(number->peer[0].missing, "no time left");
}

/* As on a lent machine, where the peer's number may be had in no other call. */
TEST(a_peer_has_its_least_time_after_the_end_and_without_ours) {
  static bench b;
  static const char *const words[] = {"sh", "-c", "read x; echo '{\"rates\": [4]}'", NULL};
  bench_number *number, *again;
  peer_process p;
  b = (bench){.end = 0, .least_peer_s = 60};
  CU_ASSERT_EQUAL(bench_named(&b, &number, "key", "what", NULL), GL_OK);
  CU_ASSERT_EQUAL(bench_named(&b, &again, "key", "what", NULL), GL_OK);
  CU_ASSERT_PTR_EQUAL(number, again);
  peer_start(&p, words, NULL);
  bench_ask(&b, number, &p, "shell", "go", NAN);
  peer_end(&p);
  CU_ASSERT_EQUAL(b.n, 1);
  CU_ASSERT_EQUAL(number->rate.n, 0);
  CU_ASSERT_EQUAL(number->peer[0].rate.median, 4);
}

TEST(computed_rates_stand_beside_and_repetitions_can_be_fewer) {
  static bench b;
  bench_number *number;
  int calls = 0, withheld;
  b = (bench){.end = INFINITY, .repetitions = 2, .takes_busy = 1};
  CU_ASSERT_EQUAL(
      bench_measure(&b, &number, (bench_row){"key", "what", 10, count, &calls}, 0, NULL), GL_OK);
  CU_ASSERT_EQUAL(calls, 1 + 2);
  CU_ASSERT_EQUAL(number->rate.n, 2);
  bench_beside(number, "limit", 2 * number->rate.median, 0.6, "why");
  CU_ASSERT_EQUAL(bench_ratio(number, &number->peer[0], 1, &withheld), 0.5);
  CU_ASSERT_EQUAL(number->peer[0].aim, 0.6);
  CU_ASSERT_STRING_EQUAL(number->peer[0].note, "why");
}

TEST(a_peer_is_asked_after_ours_and_programs_are_run) {
  static bench b;
  static const char *const words[] = {"sh", "-c", "read x; echo '{\"rates\": [3, 1, 2]}'", NULL};
  bench_number *number;
  peer_process p;
  int calls = 0;
  b = (bench){.end = INFINITY, .takes_busy = 1};
  CU_ASSERT_EQUAL(
      bench_measure(&b, &number, (bench_row){"key", "what", 10, count, &calls}, 0, NULL), GL_OK);
  peer_start(&p, words, NULL);
  bench_ask(&b, number, &p, "shell", "go", 1.5);
  peer_end(&p);
  CU_ASSERT_EQUAL(number->n_peers, 1);
  CU_ASSERT_EQUAL(number->peer[0].rate.median, 2);
  CU_ASSERT_EQUAL(number->peer[0].aim, 1.5);
  bench_ask(&b, number, &p, "shell", "go", 1.5);
  CU_ASSERT_EQUAL(number->peer[1].rate.n, 0);
}

/* --- the command --- */

static cJSON *numbers(const char *part, const char *option, const char *value) {
  cJSON *json = CLI_JSON("bench", part, "--json", "--quick", "--no-peers", option, value);
  return json;
}

static double number_of(const cJSON *json, const char *key) {
  const cJSON *all = member_at(json, "numbers");
  const cJSON *item = member_at(member_at(all, key), "value");
  if (!cJSON_IsNumber(item)) fprintf(stderr, "no number %s\n", key);
  return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

static void all_positive(const cJSON *json, const char *const *keys, size_t n) {
  for (size_t i = 0; i < n; ++i) CU_ASSERT(number_of(json, keys[i]) > 0);
}

/* M/M/1 at load 0.9 has a mean sojourn of 1 / (1 - 0.9) = 10. Within five standard errors: fails
 * for fewer than one seed in a million, and the seed is fixed. */
TEST(the_event_queue_is_measured_on_a_queue_whose_sojourn_is_known) {
  cJSON *json = numbers("des", "-n", "200");
  static const char *const keys[] = {
      "mm1_customers_per_s",       "mm1_events_per_s",
      "star_events_per_s",         "star_events_per_s_million",
      "star_bytes_per_sampler",    "event_bytes",
      "event_bytes_million",       "cluster_batches_per_s",
      "cluster_events_per_s",      "cluster_events_per_s_million",
      "cluster_bytes_per_sampler", "cluster_all_bytes_per_sampler_million"};
  all_positive(json, keys, sizeof keys / sizeof *keys);
  CU_ASSERT(number_of(json, "cluster_memory_ratio") < 2);
  const double error = number_of(json, "mm1_mean_sojourn_error");
  CU_ASSERT(error > 0 && error < 1);
  CU_ASSERT(fabs(number_of(json, "mm1_mean_sojourn") - 10) < 5 * error);
  CU_ASSERT(cJSON_IsBool(member_at(json, "quiet")));
}

TEST(coefficients_and_the_laboratory_are_measured) {
  cJSON *json = numbers("policy", "lab", NULL);
  static const char *const keys[] = {"is_tokens_per_s",       "grpo_tokens_per_s",
                                     "gspo_tokens_per_s",     "gepo_tokens_per_s",
                                     "m2po_tokens_per_s",     "lab_exact_groups_per_s",
                                     "lab_exact_over_tuples", "lab_monte_carlo_groups_per_s"};
  all_positive(json, keys, sizeof keys / sizeof *keys);
}

TEST(parts_and_shapes_are_named) {
  cli_result r = CLI("bench", "polcy");
  CU_ASSERT_EQUAL(r.code, 2);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "policy"));
  REFUSED(2, "64x2", "bench", "llm", "--shape", "63x2");
}
