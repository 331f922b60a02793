/* gepolab sim --replicas: against the single runs of its seeds, on any number of threads. */
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

SUITE("cli: replicas");

/* Three seeds by themselves: mean, and with Student's t of two degrees of freedom (4.30265) the
 * interval of it. */
TEST(numbers_are_those_of_the_single_runs) {
  cJSON *all = CLI_JSON("sim", "shared_egress", "seed=5", "steps=60", "--replicas", "3", "--json");
  double sum = 0, squares = 0, longest = 0;
  for (int seed = 5; seed < 8; ++seed) {
    char word[20];
    snprintf(word, sizeof word, "seed=%d", seed);
    cJSON *json = CLI_JSON("sim", "shared_egress", word, "steps=60", "--json");
    const double x = number_at(json, "simulated_s");
    sum += x;
    squares += x * x;
    longest = fmax(longest, x);
  }
  const double mean = sum / 3, sd = sqrt((squares - 3 * mean * mean) / 2);
  ASSERT_CLOSE(number_at(all, "simulated_s.mean"), mean, 1e-12);
  ASSERT_CLOSE(number_at(all, "simulated_s.sd"), sd, 1e-6);
  ASSERT_CLOSE(number_at(all, "simulated_s.high") - mean, 4.302653 * sd / sqrt(3), 1e-5);
  CU_ASSERT_EQUAL(number_at(all, "simulated_s.max"), longest);
  CU_ASSERT_EQUAL(number_at(all, "updates.sd"), 0);
  CU_ASSERT(number_at(all, "weights_p50.mean") > 0);
}

TEST(threads_change_nothing) {
  cli_result one = CLI("sim", "packet_loss", "steps=40", "--replicas", "9", "-j", "1"),
             four = CLI("sim", "packet_loss", "steps=40", "--replicas", "9", "-j", "4");
  CU_ASSERT_EQUAL(one.code, 0);
  CU_ASSERT_STRING_EQUAL(one.out, four.out);
  CU_ASSERT(strlen(one.out) > 200);
}

TEST(what_is_of_one_run_is_refused) {
  CU_ASSERT(CLI_GIVES(2, "sim", "quickstart", "--replicas", "1"));
  CU_ASSERT(CLI_GIVES(2, "sim", "quickstart", "--replicas", "4", "--theory"));
  CU_ASSERT(CLI_GIVES(2, "sim", "quickstart", "--replicas", "4", "--schedule", "csv"));
  CU_ASSERT(CLI_GIVES(2, "sim", "quickstart", "--replicas", "0"));
}
