/* Ranking and selection on systems whose means are known: how often it errs, and that it stops. */
#include "experiments/plan/ranking.h"

#include "core/random/rng.h"
#include "tests/support/suite.h"

#include <stdint.h>

SUITE("experiments: ranking and selection");

enum { MOST = 16, RUNS = 200 };

/* Normal systems with a common part in every replicate, as common random numbers make. */
typedef struct world {
  size_t n;
  double mean[MOST], second[MOST], slack[MOST], sd, common;
  uint64_t run; /* of many independent ones */
  size_t asked;
} world;

static double normal(const world *w, uint64_t what, uint64_t index) {
  const rng_words v = rng_block(rng_stream_at(w->run, RNG_TEST, what), index);
  const double u = rng_u01_53(v.v[0], v.v[1]), k = rng_u01_53(v.v[2], v.v[3]);
  return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * k);
}

static gl_status observe(void *self, const size_t *which, size_t n, size_t replicate,
                         ranking_observation *out, gl_error *err) {
  world *w = self;
  (void)err;
  w->asked += n;
  const double shared = w->common * normal(w, 1000, replicate);
  for (size_t i = 0; i < n; ++i) {
    const size_t k = which[i];
    out[i].value = w->mean[k] + shared + w->sd * normal(w, k, replicate);
    out[i].second = w->second[k];
    out[i].slack[0] = w->slack[k] + 0.3 * normal(w, 2000 + k, replicate);
  }
  return GL_OK;
}

static ranking_request request_of(world *w) {
  return (ranking_request){.systems = w->n,
                           .first = 10,
                           .most = 4000,
                           .error_rate = 0.1,
                           .zone = 1,
                           .slack = {0.1},
                           .observe = observe,
                           .self = w};
}

/* Of 200 independent selections at an error rate of 10 %, half of it for comparison: were it 5 %
 * indeed, more than 20 errors would have a chance of 0.1 %. */
enum { MOST_ERRORS = 20 };

/* Whether one selection among w's systems ends, and selects a system that none is better than by
 * more than the zone. */
static int selects_well(world *w, const ranking_request *q, double zone) {
  ranking r;
  double best = -INFINITY;
  ASSERT_OK(ranking_best(&r, q, &err));
  CU_ASSERT_FATAL(r.chosen < w->n);
  CU_ASSERT(r.separated);
  CU_ASSERT(r.reached == r.zone);
  CU_ASSERT(r.as_good >= 1);
  CU_ASSERT_EQUAL(r.system[r.chosen].verdict, RANKING_AS_GOOD);
  for (size_t i = 0; i < w->n; ++i) best = fmax(best, w->mean[i]);
  const int well = w->mean[r.chosen] >= best - zone;
  ranking_fini(&r);
  return well;
}

/* 200 selections among n systems of known means, a replicate's part of its own with this sd. What
 * has the smaller mean has the better second quantity, which tempts. */
static size_t errors(const double *mean, size_t n, double sd, size_t most) {
  size_t wrong = 0;
  for (uint64_t run = 0; run < RUNS; ++run) {
    world w = {.n = n, .sd = sd, .common = 5, .run = run};
    for (size_t i = 0; i < n; ++i) w.mean[i] = mean[i], w.second[i] = -mean[i];
    ranking_request q = request_of(&w);
    q.most = most;
    wrong += !selects_well(&w, &q, 1);
  }
  return wrong;
}

/* The least favourable case: all others lie a little more than the zone below the best. */
TEST(the_best_is_selected_as_often_as_promised) {
  static const double mean[] = {98.999, 98.999, 98.999, 100, 98.999, 98.999, 98.999, 98.999};
  CU_ASSERT(errors(mean, 8, 0.6, 4000) <= MOST_ERRORS);
}

/* Exact ties of the best, among systems just beyond the zone. Any of the tied ones is right. */
TEST(exact_ties_are_as_good) {
  static const double mean[] = {100, 98.999, 100, 98.999, 100, 98.999, 100, 98.999};
  CU_ASSERT(errors(mean, 8, 0.6, 4000) <= MOST_ERRORS);
}

/* A chain, each less than the zone below the one before: what beats the best may be beaten itself
 * by what is not good. */
TEST(a_chain_of_near_ties_does_not_slip) {
  static const double mean[] = {100, 99.4, 98.8, 98.2, 97.6, 97, 96.4, 95.8};
  CU_ASSERT(errors(mean, 8, 0.6, 4000) <= MOST_ERRORS);
}

/* 16 systems, the best two of them tied, with a noise of three zones in every difference: two
 * selections in a row, one for the best and one among what is as good, would need 750 replicates.
 */
TEST(a_noisy_tie_ends) {
  const double tied[MOST] = {100, 100, 90, 90, 90, 90, 90, 90, 90, 90, 90, 90, 90, 90, 90, 90};
  CU_ASSERT(errors(tied, MOST, 3 / sqrt(2), 650) <= MOST_ERRORS);
}

/* The zone as a share is one of the selected system's mean. */
TEST(a_share_is_of_the_selected_system) {
  size_t wrong = 0;
  for (uint64_t run = 0; run < RUNS; ++run) {
    world w = {.n = 4, .sd = 0.6, .common = 1, .run = 9000 + run};
    static const double mean[] = {50, 48.9, 48.9, 48.9}; /* 50 is 2.2 % more */
    for (size_t i = 0; i < 4; ++i) w.mean[i] = mean[i], w.second[i] = -mean[i];
    ranking_request q = request_of(&w);
    q.zone_fraction = 0.02;
    wrong += !selects_well(&w, &q, 1);
  }
  CU_ASSERT(wrong <= MOST_ERRORS);
}

/* Systems that lie exactly on their limit may be found either, and nothing waits for them for ever.
 * The selected one misses no limit by the tolerance, and is as good as those that keep it. */
TEST(exactly_on_the_limit_either_is_right) {
  size_t wrong = 0;
  for (uint64_t run = 0; run < RUNS; ++run) {
    world w = {.n = 6, .sd = 0.3, .common = 2, .run = 7000 + run};
    static const double mean[] = {102, 102, 100, 100, 104, 96}, slack[] = {0, 0, 0.1, 0.2, -0.1, 1};
    for (size_t i = 0; i < w.n; ++i) w.mean[i] = mean[i], w.slack[i] = slack[i];
    ranking_request q = request_of(&w);
    q.n_limits = 1;
    ranking r;
    ASSERT_OK(ranking_best(&r, &q, &err));
    CU_ASSERT(r.separated);
    wrong += r.chosen == SIZE_MAX || r.chosen >= 4;
    ranking_fini(&r);
  }
  CU_ASSERT(wrong <= 32); /* limits and comparison together: 10 %, and 0.4 % for more */
}

/* Where replicates run out, the zone that they suffice for is told, and holds as often. */
TEST(the_reached_zone_holds_as_often) {
  size_t wrong = 0;
  for (uint64_t run = 0; run < RUNS; ++run) {
    world w = {.n = 6, .sd = 4, .common = 5, .run = 3000 + run};
    for (size_t i = 0; i < w.n; ++i) w.mean[i] = 100 - (double)i;
    ranking_request q = request_of(&w);
    q.most = 20;
    ranking r;
    ASSERT_OK(ranking_best(&r, &q, &err));
    CU_ASSERT(!r.separated);
    CU_ASSERT(r.reached > r.zone && isfinite(r.reached));
    wrong += w.mean[r.chosen] < 100 - r.reached;
    ranking_fini(&r);
  }
  CU_ASSERT(wrong <= MOST_ERRORS);
}

/* A faster system that misses the limit by the slack is not taken. */
TEST(what_misses_a_limit_is_not_selected) {
  size_t wrong = 0;
  for (uint64_t run = 0; run < 100; ++run) {
    world w = {.n = 4, .sd = 0.3, .common = 2, .run = 5000 + run};
    static const double mean[] = {100, 110, 95, 90}, slack[] = {0.1, -0.1, 0.5, 0.8};
    for (size_t i = 0; i < w.n; ++i) w.mean[i] = mean[i], w.slack[i] = slack[i];
    ranking_request q = request_of(&w);
    q.n_limits = 1;
    ranking r;
    ASSERT_OK(ranking_best(&r, &q, &err));
    wrong += r.chosen != 0;
    ranking_fini(&r);
  }
  CU_ASSERT(wrong <= 19); /* at 10 %, 20 or more have a chance of 0.2 % */
}

TEST(among_equals_the_second_quantity_decides) {
  world w = {.n = 5, .sd = 0.05, .common = 3, .run = 9};
  static const double mean[] = {100, 100.1, 99.9, 90, 100}, second[] = {-4, -3, -1, 0, -2};
  for (size_t i = 0; i < w.n; ++i) w.mean[i] = mean[i], w.second[i] = second[i];
  const ranking_request q = request_of(&w);
  ranking r;
  ASSERT_OK(ranking_best(&r, &q, &err));
  CU_ASSERT_EQUAL(r.chosen, 2);
  CU_ASSERT_EQUAL(r.system[3].verdict, RANKING_FEASIBLE);
  CU_ASSERT_EQUAL(r.system[2].verdict, RANKING_AS_GOOD);
  ranking_fini(&r);
}

/* Systems without any noise, and equal ones, end in the first stage. */
TEST(exact_ties_end_at_once) {
  world w = {.n = 6, .run = 3};
  for (size_t i = 0; i < w.n; ++i) w.mean[i] = 7, w.second[i] = (double)i;
  const ranking_request q = request_of(&w);
  ranking r;
  ASSERT_OK(ranking_best(&r, &q, &err));
  CU_ASSERT_EQUAL(r.best, 5);
  CU_ASSERT_EQUAL(w.asked, 6 * q.first);
  CU_ASSERT_EQUAL(r.as_good, 6);
  CU_ASSERT(r.separated);
  ranking_fini(&r);
}

TEST(where_nothing_keeps_the_limits_nothing_is_selected) {
  world w = {.n = 3, .sd = 1, .slack = {-2, -3, -2}, .run = 4};
  ranking_request q = request_of(&w);
  q.n_limits = 1;
  ranking r;
  ASSERT_OK(ranking_best(&r, &q, &err));
  CU_ASSERT_EQUAL(r.chosen, SIZE_MAX);
  for (size_t i = 0; i < w.n; ++i) CU_ASSERT_EQUAL(r.system[i].verdict, RANKING_INFEASIBLE);
  ranking_fini(&r);
}

TEST(it_says_when_the_replicates_did_not_suffice) {
  world w = {.n = 2, .sd = 50, .mean = {1, 1}, .run = 6};
  ranking_request q = request_of(&w);
  q.most = 20;
  ranking r;
  gl_error err = {0};
  CU_ASSERT_EQUAL_FATAL(ranking_best(&r, &q, &err), GL_OK);
  CU_ASSERT(!r.separated);
  CU_ASSERT(r.best < 2);
  ranking_fini(&r);
  q.first = 2;
  CU_ASSERT_EQUAL(ranking_best(&r, &q, &err), GL_EINPUT);
  ranking_fini(&r);
}

/* t(0.975, 4) = 2.776 of 1, 2, 3, 4, 5: 3 +- 2.776 sqrt(2.5 / 5). */
TEST(intervals_are_students) {
  static const double x[] = {1, 2, 3, 4, 5};
  double mean, half;
  ranking_interval(x, 5, 0.95, &mean, &half);
  ASSERT_CLOSE(mean, 3, 1e-12);
  ASSERT_CLOSE(half, 1.9632432, 1e-6);
  ranking_interval(x, 1, 0.95, &mean, &half);
  CU_ASSERT(mean == 1 && isnan(half));
}
