/* What `gepolab llm eval` and `llm profile` compute: pass@k against enumeration, intervals against
 * published values, decoding time against a simulation by hand. */
#include "experiments/llm/eval.h"
#include "experiments/llm/profile.h"
#include "tests/support/suite.h"

SUITE("cli: llm numbers");

/* The share of the k-subsets of n responses, the first c of them right, that hold a right one. */
static double by_subsets(unsigned n, unsigned c, unsigned k) {
  unsigned all = 0, solved = 0;
  for (unsigned set = 0; set < 1u << n; ++set) {
    unsigned size = 0;
    for (unsigned i = 0; i < n; ++i) size += set >> i & 1;
    if (size != k) continue;
    ++all;
    solved += (set & ((1u << c) - 1)) != 0;
  }
  return (double)solved / (double)all;
}

TEST(pass_at_k_is_the_share_of_subsets_with_a_right_response) {
  for (unsigned n = 1; n <= 9; ++n)
    for (unsigned c = 0; c <= n; ++c)
      for (unsigned k = 1; k <= n; ++k)
        ASSERT_CLOSE(llm_pass_problem(n, c, k), by_subsets(n, c, k), 1e-14);
  ASSERT_CLOSE(llm_pass_problem(4096, 1, 4096), 1, 1e-12);
  ASSERT_CLOSE(llm_pass_problem(4096, 1, 1), 1.0 / 4096, 1e-12);
}

TEST(right_or_wrong_problems_have_wilsons_interval) {
  /* Newcombe (1998), Statistics in Medicine 17:857, table I, method 3: 81/263, 15/148, 0/20, 1/29.
   */
  static const struct {
    size_t right, n;
    double low, high;
  } known[] = {
      {81, 263, .2553, .3662}, {15, 148, .0624, .1605}, {0, 20, 0, .1611}, {1, 29, .0061, .1718}};
  size_t correct[263];
  for (size_t t = 0; t < sizeof known / sizeof *known; ++t) {
    llm_pass p;
    for (size_t i = 0; i < known[t].n; ++i) correct[i] = i < known[t].right;
    llm_pass_at(&p, correct, known[t].n, 1, 1, rng_stream_at(1, RNG_TEST, 0));
    ASSERT_CLOSE(p.value, (double)known[t].right / (double)known[t].n, 1e-14);
    CU_ASSERT(fabs(p.low - known[t].low) < 5.1e-5 && fabs(p.high - known[t].high) < 5.1e-5);
    CU_ASSERT_STRING_EQUAL(p.interval, "wilson");
  }
}

TEST(other_problems_have_a_bootstrap_interval_and_a_standard_error) {
  enum { PROBLEMS = 40, SAMPLES = 4 };
  size_t correct[PROBLEMS];
  llm_pass p, again;
  for (size_t i = 0; i < PROBLEMS; ++i) correct[i] = i % (SAMPLES + 1);
  rng_stream stream = rng_stream_at(1, RNG_BOOTSTRAP, 0);
  llm_pass_at(&p, correct, PROBLEMS, SAMPLES, 1, stream);
  llm_pass_at(&again, correct, PROBLEMS, SAMPLES, 1, stream);
  ASSERT_CLOSE(p.value, 0.5, 1e-14);
  /* Estimates 0, 1/4 … 1, eight of each: variance 40/39 of 1/8. */
  ASSERT_CLOSE(p.standard_error, sqrt(0.125 * PROBLEMS / (PROBLEMS - 1) / PROBLEMS), 1e-12);
  CU_ASSERT_STRING_EQUAL(p.interval, "bootstrap");
  CU_ASSERT(p.low < p.value - p.standard_error && p.low > p.value - 3 * p.standard_error);
  CU_ASSERT(p.high > p.value + p.standard_error && p.high < p.value + 3 * p.standard_error);
  CU_ASSERT(p.low == again.low && p.high == again.high);
  llm_pass_at(&p, correct, 1, SAMPLES, 1, stream);
  CU_ASSERT(isnan(p.standard_error));
}

TEST(decoding_ends_with_the_last_slot) {
  static const double lengths[] = {4, 1, 2, 5, 1};
  double slots[5];
  ASSERT_CLOSE(llm_profile_makespan(lengths, 5, slots, 1), 13, 0);
  ASSERT_CLOSE(llm_profile_makespan(lengths, 5, slots, 2), 8, 0); /* 4 1, 1 2 5 */
  ASSERT_CLOSE(llm_profile_makespan(lengths, 5, slots, 3), 6, 0); /* 4, 1 5, 2 1 */
  ASSERT_CLOSE(llm_profile_makespan(lengths, 5, slots, 5), 5, 0);
}
