/* Delay distributions against GSL's distribution functions and their intervals; links against the
 * distribution of rounds; crashes. */
#include "sim/delay.h"
#include "sim/lossy_link.h"
#include "sim/schedule.h"
#include "tests/support/sim.h"
#include "tests/support/suite.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sort.h>
#include <stdlib.h>
#include <string.h>

SUITE("sim: delays, links and failures");

static double uniform_cdf(const delay_dist *dist, double x) {
  return gsl_cdf_flat_P(x, dist->uniform.min, dist->uniform.max);
}

static double exponential_cdf(const delay_dist *dist, double x) {
  return gsl_cdf_exponential_P(x - dist->exponential.shift, dist->exponential.mean);
}

static double lognormal_cdf(const delay_dist *dist, double x) {
  return gsl_cdf_lognormal_P(x, dist->lognormal.mu, dist->lognormal.sigma);
}

static double weibull_cdf(const delay_dist *dist, double x) {
  return gsl_cdf_weibull_P(x, dist->weibull.scale, dist->weibull.shape);
}

static double gamma_cdf(const delay_dist *dist, double x) {
  return gsl_cdf_gamma_P(x, dist->gamma.shape, dist->gamma.scale);
}

static double pareto_cdf(const delay_dist *dist, double x) {
  return gsl_cdf_pareto_P(x, dist->pareto.shape, dist->pareto.scale);
}

static const struct {
  delay_kind kind;
  double (*cdf)(const delay_dist *dist, double x);
} dists[] = {{DELAY_UNIFORM, uniform_cdf},     {DELAY_EXPONENTIAL, exponential_cdf},
             {DELAY_LOGNORMAL, lognormal_cdf}, {DELAY_WEIBULL, weibull_cdf},
             {DELAY_GAMMA, gamma_cdf},         {DELAY_PARETO, pareto_cdf}};

TEST(intervals_hold_their_confidence_with_equal_tails) {
  const double confidence[] = {0.5, 0.9, 0.995};
  for (size_t k = 0; k < 6; ++k)
    for (size_t c = 0; c < 3; ++c) {
      delay_dist dist;
      ASSERT_OK(delay_from_interval(&dist, dists[k].kind, 60, 150, confidence[c], &err));
      ASSERT_CLOSE(dists[k].cdf(&dist, 60), (1 - confidence[c]) / 2, 1e-10);
      ASSERT_CLOSE(dists[k].cdf(&dist, 150), (1 + confidence[c]) / 2, 1e-10);
    }
}

TEST(gamma_quantiles_invert_the_distribution_in_both_tails) {
  const double shapes[] = {0.1, 0.5, 1, 30, 1e4}, tails[] = {1e-12, 1e-6, 0.01, 0.3, 0.5};
  for (size_t k = 0; k < 5; ++k)
    for (size_t i = 0; i < 5; ++i) {
      delay_dist dist = {.kind = DELAY_GAMMA, .gamma = {shapes[k], 2}, .clamp_hi = INFINITY};
      double x = delay_quantile(&dist, tails[i]), y = delay_quantile(&dist, 1 - tails[i]);
      CU_ASSERT(fabs(gsl_cdf_gamma_P(x, shapes[k], 2) / tails[i] - 1) < 2e-12);
      CU_ASSERT(fabs(gsl_cdf_gamma_Q(y, shapes[k], 2) / (1 - (1 - tails[i])) - 1) < 2e-12);
    }
}

/* Kolmogorov: with n = 20,000 a right distribution exceeds 1.95 / sqrt(n) with probability 0.001;
 * six distributions at a fixed seed. */
/* A share is looked for in the quantiles, and GSL has it as a formula. */
TEST(shares_are_gsls_distribution_functions_within_offset_and_clamp) {
  for (size_t k = 0; k < 6; ++k) {
    delay_dist dist;
    ASSERT_OK(delay_from_interval(&dist, dists[k].kind, 60, 150, 0.9, &err));
    for (double x = 5; x < 400; x += 31) {
      ASSERT_CLOSE(delay_cdf(&dist, x, false), dists[k].cdf(&dist, x), 1e-9);
      ASSERT_CLOSE(delay_cdf(&dist, x, true), dists[k].cdf(&dist, x), 1e-9);
    }
    dist.offset = 20;
    dist.clamp_lo = 50, dist.clamp_hi = 90;
    ASSERT_CLOSE(delay_cdf(&dist, 70, false), dists[k].cdf(&dist, 90), 1e-9);
    CU_ASSERT_EQUAL(delay_cdf(&dist, 49, false), 0);
    CU_ASSERT_EQUAL(delay_cdf(&dist, 50, true), 0);
    CU_ASSERT_EQUAL(delay_cdf(&dist, 90, false), 1);
    double value[DELAY_MOST_POINT_MASSES], share[DELAY_MOST_POINT_MASSES];
    CU_ASSERT_EQUAL_FATAL(delay_point_masses(&dist, value, share), 2);
    CU_ASSERT(value[0] == 50 && value[1] == 90);
    ASSERT_CLOSE(share[0], dists[k].cdf(&dist, 70), 1e-9);
    ASSERT_CLOSE(share[1], 1 - dists[k].cdf(&dist, 110), 1e-9);
  }
}

/* Four draws in five are 3 s, the others between 10 and 20: 1 / (1 + 4) of the time is bad. */
TEST(shares_of_a_mixture_are_those_of_its_states_in_the_long_run) {
  delay_dist good = {.kind = DELAY_CONSTANT, .clamp_hi = INFINITY},
             bad = {.kind = DELAY_UNIFORM, .clamp_hi = INFINITY},
             dist = {.kind = DELAY_GILBERT_ELLIOTT, .clamp_hi = INFINITY};
  good.constant.value = 3;
  bad.uniform.min = 10, bad.uniform.max = 20;
  dist.gilbert_elliott.to_bad = 0.1, dist.gilbert_elliott.to_good = 0.4;
  dist.gilbert_elliott.good = &good, dist.gilbert_elliott.bad = &bad;
  double value[DELAY_MOST_POINT_MASSES], share[DELAY_MOST_POINT_MASSES];
  char text[DELAY_TEXT_SIZE];
  ASSERT_CLOSE(delay_cdf(&dist, 2.9, false), 0, 1e-12);
  ASSERT_CLOSE(delay_cdf(&dist, 3, true), 0, 1e-12);
  ASSERT_CLOSE(delay_cdf(&dist, 3, false), 0.8, 1e-12);
  ASSERT_CLOSE(delay_cdf(&dist, 15, false), 0.9, 1e-12);
  ASSERT_CLOSE(delay_quantile(&dist, 0.95), 17.5, 1e-9);
  CU_ASSERT_EQUAL_FATAL(delay_point_masses(&dist, value, share), 1);
  CU_ASSERT(value[0] == 3);
  ASSERT_CLOSE(share[0], 0.8, 1e-12);
  delay_text(&dist, text);
  CU_ASSERT_STRING_EQUAL(text, "20 % uniform 10 to 20, else constant 3");
  dist.gilbert_elliott.to_bad = 0;
  ASSERT_CLOSE(delay_cdf(&dist, 3, false), 1, 1e-12);
}

TEST(draws_follow_gsls_distribution_functions) {
  enum { N = 20000 };
  double *x = calloc(N, sizeof *x);
  for (size_t k = 0; k < 6; ++k) {
    delay_dist dist;
    double d = 0;
    ASSERT_OK(delay_from_interval(&dist, dists[k].kind, 60, 150, 0.9, &err));
    delay_source source = {rng_stream_at(7, RNG_DELAY, k), 0, 0};
    for (size_t i = 0; i < N; ++i) x[i] = delay_draw(&dist, &source);
    gsl_sort(x, 1, N);
    for (size_t i = 0; i < N; ++i)
      d = fmax(d, fabs(dists[k].cdf(&dist, x[i]) - ((double)i + 0.5) / N) + 0.5 / N);
    CU_ASSERT(d < 1.95 / sqrt(N));
  }
  free(x);
}

/* Share of bad draws: to_bad / (to_bad + to_good) = 1/3; its standard error with this persistence
 * is below 0.006 at n = 50,000, so 4 of them fail a right distribution with probability below 1e-4.
 */
TEST(two_state_delays_come_in_bursts) {
  delay_dist good = {.kind = DELAY_CONSTANT, .constant = {1}, .clamp_hi = INFINITY},
             bad = {.kind = DELAY_CONSTANT, .constant = {2}, .clamp_hi = INFINITY};
  delay_dist dist = {.kind = DELAY_GILBERT_ELLIOTT,
                     .gilbert_elliott = {0.05, 0.1, &good, &bad},
                     .clamp_hi = INFINITY};
  delay_source source = {rng_stream_at(1, RNG_DELAY, 0), 0, 0};
  double share = 0, changes = 0, last = 1;
  for (int i = 0; i < 50000; ++i) {
    double x = delay_draw(&dist, &source);
    share += (x == 2) / 50000.0;
    changes += (x != last) / 50000.0;
    last = x;
  }
  CU_ASSERT(fabs(share - 1.0 / 3) < 0.024);
  CU_ASSERT(fabs(changes - 2 * 0.05 * 2.0 / 3) < 0.01);
}

/* Packets sent of n with loss p are n / (1 - p) on average when nothing is given up; n p / (1 - p)
 * retransmissions with variance n p / (1 - p)^2. |z| <= 4: 6e-5. */
TEST(retransmissions_are_negative_binomial) {
  link_spec spec = {.bandwidth = 1e6, .packet_bytes = 1000, .loss = 0.2, .max_retries = 60};
  link_state state = {0};
  gsl_rng *g = rng_gsl_new(rng_stream_at(0, RNG_LOSS, 0));
  enum { MESSAGES = 2000, PACKETS = 50 };
  double resent = 0, n = (double)MESSAGES * PACKETS;
  for (int i = 0; i < MESSAGES; ++i) {
    link_trip trip =
        link_send(&spec, &state, rng_stream_at(5, RNG_LOSS, 3), g, 0, PACKETS * 1000.0);
    CU_ASSERT(trip.delivered);
    resent += trip.retransmissions;
  }
  CU_ASSERT(fabs(resent - n * 0.25) < 4 * sqrt(n * 0.2 / 0.64));
  ASSERT_CLOSE(state.free_at, (n + resent) * 1e-3, 1e-9); /* serialised */
  gsl_rng_free(g);
}

TEST(a_link_that_loses_all_gives_up_after_its_retries) {
  link_spec spec = {.bandwidth = INFINITY, .packet_bytes = 1000, .loss = 1, .rto = 1, .backoff = 2};
  link_state state = {0};
  gsl_rng *g = rng_gsl_new(rng_stream_at(0, RNG_LOSS, 0));
  spec.max_retries = 3;
  link_trip trip = link_send(&spec, &state, rng_stream_at(5, RNG_LOSS, 3), g, 10, 2500);
  CU_ASSERT(!trip.delivered);
  CU_ASSERT_EQUAL(trip.end_s, 10 + 1 + 2 + 4);
  CU_ASSERT_EQUAL(trip.retransmissions, 9);
  CU_ASSERT_EQUAL(trip.bytes, 4 * 2500);
  gsl_rng_free(g);
}

TEST(crashes_and_losses_lose_batches_but_the_gate_goes_on) {
  const char *presets[] = {"sync", "areal", "heterorl", "lifo"};
  for (size_t i = 0; i < 4; ++i) {
    char text[300];
    snprintf(text, sizeof text,
             "{preset: %s, samplers: 4, mtbf: {distribution: exponential, mean: 900}, mttr: 60, "
             "weights_bytes:"
             " 1e6, rollout_bytes: 1e5, down: {bandwidth: 1e5, loss: 0.1}, up: {loss: 0.2, "
             "max_retries: 2}}",
             presets[i]);
    schedule s = sim_must_build(text, 1, 150);
    CU_ASSERT_EQUAL(s.n_updates, 150);
    CU_ASSERT(s.clock.batches_lost > 10 && s.clock.retransmissions > 0);
    CU_ASSERT(s.clock.sampler_utilisation < 1 && s.clock.bytes_down > 1e6);
    if (i == 0) CU_ASSERT_EQUAL(s.clock.staleness_max, 0);
  }
}
