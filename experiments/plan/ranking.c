/* Ranking and selection: limits by the procedure of Batur and Kim, comparison by confidence
 * sequences for differences. */
#include "experiments/plan/ranking.h"

#include "experiments/base/memory.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Limits and comparison each get half of the error rate. */
enum { PARTS = 2 };

typedef struct work {
  const ranking_request *q;
  ranking *out;
  size_t *which;               /* [systems] scratch: the systems of a round */
  ranking_observation *answer; /* [systems] scratch */
  bool *wanted;                /* [systems] scratch: those that need more replicates */
  double c;                    /* factor of bounds: see bound_factor() */
  gl_error *err;
} work;

/* --- observations --- */

/* Appends an observation to a system, and updates its means. */
static void ranking_record(ranking_system *s, const ranking_observation *o) {
  *MUST_ADD(s->seen, s->n, "replicates") = *o;
  s->mean += (o->value - s->mean) / (double)s->n;
  s->mean_second += (o->second - s->mean_second) / (double)s->n;
}

/* Simulates replicate `replicate` of the n systems in w->which. */
static gl_status ranking_observe(work *w, size_t n, size_t replicate) {
  if (n == 0) return GL_OK;
  const gl_status status = w->q->observe(w->q->self, w->which, n, replicate, w->answer, w->err);
  if (status != GL_OK) return status;
  for (size_t i = 0; i < n; ++i) ranking_record(&w->out->system[w->which[i]], &w->answer[i]);
  return GL_OK;
}

/* Simulates the first stage: `first` replicates of every system. */
static gl_status observe_first(work *w) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < w->out->n; ++i) w->which[i] = i;
  for (size_t r = 0; r < w->q->first && status == GL_OK; ++r)
    status = ranking_observe(w, w->out->n, r);
  return status;
}

/* --- the triangle --- */

/* The constant h^2 of Batur and Kim's procedure. The sum of a system's slacks is compared with a
 * triangular region, which narrows with every observation; the side on which the sum leaves the
 * region decides whether the limit is kept. With this constant the side is wrong with probability
 * at most `error`, if the variance is estimated from `first` observations. */
static double h_squared(double error, size_t first) {
  const double n = (double)(first - 1);
  return n * (pow(2 * error, -2 / n) - 1);
}

/* Half the height of that region after r observations with variance s2. delta: the slack of the
 * limit (ranking_request). */
static double height(double h2, double s2, double delta, size_t r) {
  if (!(s2 > 0)) return 0;
  return fmax(0, 0.5 * (h2 * s2 / delta - delta * (double)r));
}

/* --- feasibility --- */

static double slack_variance(const ranking_system *s, size_t limit, size_t n) {
  double mean = 0, squares = 0;
  for (size_t r = 0; r < n; ++r) mean += s->seen[r].slack[limit] / (double)n;
  for (size_t r = 0; r < n; ++r) squares += pow(s->seen[r].slack[limit] - mean, 2);
  return squares / (double)(n - 1);
}

static double slack_sum(const ranking_system *s, size_t limit) {
  double sum = 0;
  for (size_t r = 0; r < s->n; ++r) sum += s->seen[r].slack[limit];
  return sum;
}

/* Returns 1 if the system keeps all limits, 0 if it misses one, -1 if undecided. */
static int keeps_limits(const work *w, const ranking_system *s) {
  const ranking_request *q = w->q;
  const double error =
      q->error_rate / PARTS / (double)w->out->n / (double)(q->n_limits > 0 ? q->n_limits : 1);
  const double h2 = h_squared(error, q->first);
  int known = 1;
  for (size_t k = 0; k < q->n_limits; ++k) {
    const double sum = slack_sum(s, k);
    const double far = height(h2, slack_variance(s, k, q->first), q->slack[k], s->n);
    if (sum < 0 && sum <= -far) return 0;
    known = known && sum >= far;
  }
  return known ? 1 : -1;
}

static bool keeps_on_average(const work *w, const ranking_system *s) {
  for (size_t k = 0; k < w->q->n_limits; ++k)
    if (slack_sum(s, k) < 0) return false;
  return true;
}

/* Decides the feasibility of all systems with enough observations. */
static void decide_limits(const work *w) {
  for (size_t i = 0; i < w->out->n; ++i) {
    ranking_system *s = &w->out->system[i];
    const int known = s->verdict == RANKING_UNDECIDED ? keeps_limits(w, s) : -1;
    if (known < 0) continue;
    s->feasible = known == 1;
    s->verdict = known ? RANKING_FEASIBLE : RANKING_INFEASIBLE;
  }
}

/* --- comparison --- */

/* The indifference zone around s in replicate r: s counts as equal to systems that are better by no
 * more than this. */
static double zone_in(const ranking_request *q, const ranking_system *s, size_t r) {
  return q->zone_fraction > 0 ? q->zone_fraction * fabs(s->seen[r].value) : q->zone;
}

/* By how much i is better than s, beyond the zone, in replicate r. */
static double lead_in(const work *w, const ranking_system *i, const ranking_system *s, size_t r) {
  return i->seen[r].value - s->seen[r].value - zone_in(w->q, s, r);
}

static double lead_mean(const work *w, const ranking_system *i, const ranking_system *s, size_t n) {
  double sum = 0;
  for (size_t r = 0; r < n; ++r) sum += lead_in(w, i, s, r);
  return sum / (double)n;
}

static size_t common(const ranking_system *i, const ranking_system *s) {
  return i->n < s->n ? i->n : s->n;
}

/* Upper bound on the mean of i's lead over s beyond the zone, if both had n replicates and the same
 * means as now; it holds simultaneously for all n. Equal systems and those without noise need no
 * bound. */
static double bound_after(const work *w, const ranking_system *i, const ranking_system *s,
                          size_t n) {
  const size_t first = w->q->first;
  const double mean = lead_mean(w, i, s, first);
  double squares = 0, zone = 0;
  for (size_t r = 0; r < first; ++r) {
    squares += pow(lead_in(w, i, s, r) - mean, 2);
    zone += zone_in(w->q, s, r) / (double)first;
  }
  const double s2 = squares / (double)(first - 1), lambda = zone / 2;
  const double now = lead_mean(w, i, s, common(i, s));
  if (!(s2 > 0)) return now;
  return now + w->c * s2 / (2 * lambda * (double)n) + lambda;
}

/* Whether i may still be better than s by more than the zone. */
static bool is_open(const work *w, const ranking_system *i, const ranking_system *s) {
  return i != s && i->verdict != RANKING_INFEASIBLE && bound_after(w, i, s, common(i, s)) > 0;
}

/* The feasible system with the largest mean; SIZE_MAX: none is known to be feasible. */
static size_t leader(const ranking *o) {
  size_t best = SIZE_MAX;
  for (size_t i = 0; i < o->n; ++i) {
    const ranking_system *s = &o->system[i], *b = &o->system[best == SIZE_MAX ? i : best];
    if (!s->feasible) continue;
    if (best == SIZE_MAX || s->mean > b->mean ||
        (s->mean == b->mean && s->mean_second > b->mean_second))
      best = i;
  }
  return best;
}

/* Marks in w->wanted the systems that are open against system `at`, and `at` itself; for SIZE_MAX
 * all systems whose feasibility is undecided. Returns their number. */
static size_t want(work *w, size_t at) {
  size_t n = 0;
  for (size_t i = 0; i < w->out->n; ++i) {
    const ranking_system *s = &w->out->system[i];
    const bool wanted =
        at == SIZE_MAX ? s->verdict == RANKING_UNDECIDED : is_open(w, s, &w->out->system[at]);
    w->wanted[i] = wanted;
    n += w->wanted[i];
  }
  if (n > 0 && at != SIZE_MAX) w->wanted[at] = true;
  return n;
}

/* Simulates one more replicate of those wanted systems that have the fewest replicates, if these
 * are fewer than `most`; sets *any to whether there was such a system. */
static gl_status ranking_advance(work *w, size_t most, bool *any) {
  size_t fewest = most, n = 0;
  for (size_t i = 0; i < w->out->n; ++i)
    if (w->wanted[i] && w->out->system[i].n < fewest) fewest = w->out->system[i].n;
  *any = fewest < most;
  if (!*any) return GL_OK;
  for (size_t i = 0; i < w->out->n; ++i)
    if (w->wanted[i] && w->out->system[i].n == fewest) w->which[n++] = i;
  return ranking_observe(w, n, fewest);
}

/* Called when replicates are exhausted: if no system was shown to be feasible, the means decide. */
static void give_up(work *w) {
  w->out->separated = false;
  if (leader(w->out) != SIZE_MAX) return;
  for (size_t i = 0; i < w->out->n; ++i) {
    ranking_system *s = &w->out->system[i];
    if (s->verdict == RANKING_UNDECIDED) s->feasible = keeps_on_average(w, s);
  }
}

/* Simulates replicates until no other system may be better than the leader by more than the zone,
 * or replicates are exhausted. */
static gl_status ranking_compare(work *w) {
  gl_status status = GL_OK;
  bool any = true;
  while (status == GL_OK) {
    decide_limits(w);
    if (want(w, leader(w->out)) == 0) break;
    status = ranking_advance(w, w->q->most, &any);
    if (any) continue;
    give_up(w);
    break;
  }
  w->out->best = w->out->chosen = leader(w->out);
  return status;
}

/* --- selection among systems as good as the best --- */

/* Whether s may be selected: no other system is open against it (is_open()), or would be after
 * `enough` replicates with the same means. The best system is compared first, because most systems
 * fail against it. */
static bool may_be_selected(const work *w, const ranking_system *s, size_t enough) {
  for (size_t k = 0; k <= w->out->n; ++k) {
    const ranking_system *i = &w->out->system[k == 0 ? w->out->best : k - 1];
    if (is_open(w, i, s) && (enough == 0 || bound_after(w, i, s, enough) > 0)) return false;
  }
  return true;
}

/* The feasible system with the best second quantity among those that may be as good as the best. */
static size_t rival(const work *w, size_t enough) {
  const ranking *o = w->out;
  size_t best = o->best;
  for (size_t i = 0; i < o->n; ++i)
    if (o->system[i].feasible && o->system[i].mean_second > o->system[best].mean_second &&
        may_be_selected(w, &o->system[i], enough))
      best = i;
  return best;
}

/* Gives rivals of the best system as many replicates as it has, and at least twice those of the
 * first stage. */
static gl_status ranking_choose(work *w) {
  ranking *o = w->out;
  gl_status status = GL_OK;
  size_t enough = 2 * w->q->first;
  if (o->best == SIZE_MAX || !o->separated) return GL_OK;
  if (enough > w->q->most) enough = w->q->most;
  if (o->system[o->best].n > enough) enough = o->system[o->best].n;
  for (bool any = true; any && status == GL_OK;) {
    decide_limits(w);
    o->chosen = rival(w, enough);
    if (want(w, o->chosen) == 0) break;
    status = ranking_advance(w, enough, &any);
  }
  return status;
}

/* Returns an upper confidence bound of how much better than chosen another system may be, beyond
 * the indifference zone; infinite if chosen is not shown to be feasible. For the case that the
 * replicates ran out before the systems were separated. */
static double beyond_zone(const work *w, const ranking_system *chosen) {
  double beyond = chosen->verdict == RANKING_FEASIBLE ? 0 : INFINITY;
  for (size_t i = 0; i < w->out->n; ++i) {
    const ranking_system *s = &w->out->system[i];
    if (is_open(w, s, chosen)) beyond = fmax(beyond, bound_after(w, s, chosen, common(s, chosen)));
  }
  return beyond;
}

/* Computes the zone that was reached, and marks the systems shown to be as good as the best. */
static void ranking_judge(work *w) {
  ranking *o = w->out;
  if (o->chosen == SIZE_MAX) return;
  const ranking_system *chosen = &o->system[o->chosen];
  for (size_t r = 0; r < chosen->n; ++r) o->zone += zone_in(w->q, chosen, r) / (double)chosen->n;
  o->reached = o->zone + (o->separated ? 0 : beyond_zone(w, chosen));
  for (size_t i = 0; i < o->n; ++i) {
    ranking_system *s = &o->system[i];
    const bool shown = o->separated && i == o->chosen;
    if (s->verdict != RANKING_FEASIBLE || !(shown || may_be_selected(w, s, 0))) continue;
    s->verdict = RANKING_AS_GOOD;
    ++o->as_good;
  }
}

/* --- main procedure --- */

/* A sum of independent normal differences with mean 0 and variance v ever exceeds a + lambda r with
 * probability at most exp(-2 a lambda / v). Set a = c S^2 / (2 lambda) with S^2 estimated from
 * `first` of them. The mean of the bound over the distribution of S^2 is (1 + 2c / (first -
 * 1))^(-(first - 1) / 2), which must equal `error`. */
static double bound_factor(double error, size_t first) {
  const double n = (double)(first - 1);
  return n / 2 * (pow(error, -2 / n) - 1);
}

gl_status ranking_best(ranking *out, const ranking_request *q, gl_error *err) {
  *out = (ranking){.best = SIZE_MAX, .chosen = SIZE_MAX, .separated = true};
  if (q->systems == 0 || q->first < 3 || q->most < q->first)
    return gl_fail(err, GL_EINPUT,
                   "a selection needs a system, and 3 replicates in its first stage at least");
  work w = {.q = q, .out = out, .err = err};
  w.which = MUST_ARRAY(size_t, q->systems, "systems");
  w.answer = MUST_ARRAY(ranking_observation, q->systems, "systems");
  w.wanted = MUST_ARRAY(bool, q->systems, "systems");
  out->system = MUST_ARRAY(ranking_system, q->systems, "systems");
  out->n = q->systems;
  for (size_t i = 0; i < out->n; ++i) out->system[i].verdict = RANKING_UNDECIDED;
  gl_status status = observe_first(&w);
  if (q->systems > 1)
    w.c = bound_factor(q->error_rate / PARTS / (double)(q->systems - 1), q->first);
  if (status == GL_OK) status = ranking_compare(&w);
  if (status == GL_OK) status = ranking_choose(&w);
  if (status == GL_OK) ranking_judge(&w);
  free(w.which);
  free(w.answer);
  free(w.wanted);
  return status;
}

void ranking_fini(ranking *s) {
  for (size_t i = 0; i < s->n; ++i) free(s->system[i].seen);
  free(s->system);
  *s = (ranking){.best = SIZE_MAX};
}

void ranking_interval(const double *value, size_t n, double confidence, double *mean,
                      double *half) {
  double sum = 0, squares = 0;
  *mean = *half = NAN;
  if (n == 0) return;
  for (size_t i = 0; i < n; ++i) sum += value[i];
  *mean = sum / (double)n;
  if (n < 2) return;
  for (size_t i = 0; i < n; ++i) squares += pow(value[i] - *mean, 2);
  *half = gsl_cdf_tdist_Pinv(0.5 + 0.5 * confidence, (double)(n - 1)) *
          sqrt(squares / (double)(n - 1) / (double)n);
}
