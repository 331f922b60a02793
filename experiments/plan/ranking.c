/* The procedures of Batur and Kim, and of Kim and Nelson, with c = 1, side by side as Andradottir
 * and Kim run them. */
#include "experiments/plan/ranking.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* Each of the three steps has this share of the error rate. */
enum { STEPS = 3 };

typedef struct work {
  const ranking_request *q;
  ranking *out;
  size_t *which;               /* [systems] scratch: those of a round */
  ranking_observation *answer; /* [systems] scratch */
  gl_error *err;
} work;

/* --- observations -------------------------------------------------------------------------------
 */

static gl_status keep(ranking_system *s, const ranking_observation *o, gl_error *err) {
  if (s->n == s->room) {
    const size_t room = 2 * s->room + 8;
    ranking_observation *more = realloc(s->seen, room * sizeof *more);
    if (more == NULL) return gl_fail_memory(err, "replicates");
    s->seen = more;
    s->room = room;
  }
  s->seen[s->n++] = *o;
  s->mean += (o->value - s->mean) / (double)s->n;
  s->mean_second += (o->second - s->mean_second) / (double)s->n;
  return GL_OK;
}

/* One more replicate of the n systems in w->which that all have as many. */
static gl_status observe(work *w, size_t n, size_t replicate) {
  if (n == 0) return GL_OK;
  gl_status status = w->q->observe(w->q->self, w->which, n, replicate, w->answer, w->err);
  for (size_t i = 0; i < n && status == GL_OK; ++i)
    status = keep(&w->out->system[w->which[i]], &w->answer[i], w->err);
  if (status == GL_OK) w->out->replicates += n;
  return status;
}

static gl_status observe_first(work *w) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < w->out->n; ++i) w->which[i] = i;
  for (size_t r = 0; r < w->q->first && status == GL_OK; ++r) status = observe(w, w->out->n, r);
  return status;
}

/* --- the triangle -------------------------------------------------------------------------------
 */

/* h^2 of the triangular region that a sum of differences leaves at the wrong side with a chance of
 * at most `error`, by the variance of `first` observations. */
static double h_squared(double error, size_t first) {
  const double n = (double)(first - 1);
  return n * (pow(2 * error, -2 / n) - 1);
}

/* Half the region's height after r observations of variance s2, for a difference of delta. */
static double height(double h2, double s2, double delta, size_t r) {
  if (!(s2 > 0)) return 0;
  return fmax(0, 0.5 * (h2 * s2 / delta - delta * (double)r));
}

/* --- feasibility --------------------------------------------------------------------------------
 */

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

/* 1 it keeps all limits, 0 it misses one, -1 not known yet. */
static int keeps_limits(const work *w, const ranking_system *s) {
  const ranking_request *q = w->q;
  const double error =
      q->error_rate / STEPS / (double)w->out->n / (double)(q->n_limits > 0 ? q->n_limits : 1);
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

static int keeps_on_average(const work *w, const ranking_system *s) {
  for (size_t k = 0; k < w->q->n_limits; ++k)
    if (slack_sum(s, k) < 0) return 0;
  return 1;
}

/* Looks at the limits of systems of which it is not known yet. */
static void decide_limits(const work *w) {
  for (size_t i = 0; i < w->out->n; ++i) {
    ranking_system *s = &w->out->system[i];
    const int known = s->fate == RANKING_UNDECIDED ? keeps_limits(w, s) : -1;
    if (known < 0) continue;
    s->feasible = known;
    s->fate = known ? RANKING_LEFT : RANKING_INFEASIBLE;
  }
}

/* --- comparison ---------------------------------------------------------------------------------
 */

static double difference_sum(const ranking_system *a, const ranking_system *b, size_t n) {
  double sum = 0;
  for (size_t r = 0; r < n; ++r) sum += a->seen[r].value - b->seen[r].value;
  return sum;
}

static double difference_variance(const ranking_system *a, const ranking_system *b, size_t n) {
  const double mean = difference_sum(a, b, n) / (double)n;
  double squares = 0;
  for (size_t r = 0; r < n; ++r) squares += pow(a->seen[r].value - b->seen[r].value - mean, 2);
  return squares / (double)(n - 1);
}

typedef struct comparison {
  double h2, delta;
  size_t *left, n; /* systems that are still compared: feasible, or not known to be */
  unsigned char *beaten;
} comparison;

static int is_left(const ranking_system *s) {
  return s->fate == RANKING_UNDECIDED || s->fate == RANKING_LEFT;
}

/* One round after r replicates: only a feasible system beats another. Returns whether a system's
 * limits, or a pair of feasible ones, are still open. */
static int screen(work *w, comparison *c, size_t r) {
  int open = 0;
  size_t n = 0;
  for (size_t i = 0; i < c->n; ++i)
    if (is_left(&w->out->system[c->left[i]])) c->left[n++] = c->left[i];
  c->n = n;
  for (size_t i = 0; i < n; ++i) c->beaten[i] = 0;
  for (size_t i = 0; i < n; ++i)
    for (size_t k = i + 1; k < n; ++k) {
      const ranking_system *a = &w->out->system[c->left[i]], *b = &w->out->system[c->left[k]];
      if (!a->feasible && !b->feasible) continue;
      const double sum = difference_sum(a, b, r);
      const double far = height(c->h2, difference_variance(a, b, w->q->first), c->delta, r);
      if (sum < -far && b->feasible) c->beaten[i] = 1;
      if (sum > far && a->feasible) c->beaten[k] = 1;
      if (a->feasible && b->feasible && far > 0 && fabs(sum) <= far) open = 1;
    }
  for (size_t i = 0; i < n; ++i) {
    ranking_system *s = &w->out->system[c->left[i]];
    if (c->beaten[i]) s->fate = RANKING_BEATEN;
    open = open || s->fate == RANKING_UNDECIDED;
  }
  n = 0;
  for (size_t i = 0; i < c->n; ++i)
    if (!c->beaten[i]) c->left[n++] = c->left[i];
  c->n = n;
  return open && (n > 1 || (n == 1 && w->out->system[c->left[0]].fate == RANKING_UNDECIDED));
}

static int is_better(const ranking_system *a, const ranking_system *b) {
  return a->mean > b->mean || (a->mean == b->mean && a->mean_second > b->mean_second);
}

/* The replicates ran out: what is not known is taken from the means. */
static void give_up(work *w, const comparison *c) {
  w->out->separated = 0;
  for (size_t i = 0; i < c->n; ++i) {
    ranking_system *s = &w->out->system[c->left[i]];
    if (s->fate == RANKING_UNDECIDED) s->feasible = keeps_on_average(w, s);
  }
}

static void take_best(work *w, const comparison *c) {
  for (size_t i = 0; i < c->n; ++i) {
    const ranking_system *s = &w->out->system[c->left[i]];
    if (s->feasible && (w->out->best == SIZE_MAX || is_better(s, &w->out->system[w->out->best])))
      w->out->best = c->left[i];
  }
}

static gl_status compare(work *w) {
  const ranking_request *q = w->q;
  comparison c = {.left = malloc(w->out->n * sizeof *c.left),
                  .n = w->out->n,
                  .beaten = malloc(w->out->n),
                  .delta = w->out->zone / 2};
  gl_status status = c.left && c.beaten ? GL_OK : gl_fail_memory(w->err, "a comparison");
  for (size_t i = 0; i < c.n && status == GL_OK; ++i) c.left[i] = i;
  if (c.n > 1) c.h2 = h_squared(q->error_rate / STEPS / (double)(c.n - 1), q->first);
  for (size_t r = q->first; status == GL_OK; ++r) {
    decide_limits(w);
    if (!screen(w, &c, r)) break;
    if (r >= q->most) {
      give_up(w, &c);
      break;
    }
    for (size_t i = 0; i < c.n; ++i) w->which[i] = c.left[i];
    status = observe(w, c.n, r);
  }
  if (status == GL_OK) take_best(w, &c);
  free(c.left);
  free(c.beaten);
  return status;
}

/* --- which of those that are as good ------------------------------------------------------------
 */

/* Whether the system looks as good as the best and has the better second quantity. */
static int is_rival(const work *w, const ranking_system *s) {
  const ranking_system *best = &w->out->system[w->out->best];
  return s->feasible && s != best && s->mean >= best->mean - w->out->zone / 2 &&
         s->mean_second > best->mean_second;
}

/* Brings the best system and its rivals to so many replicates. */
static gl_status complete(work *w, size_t enough) {
  gl_status status = GL_OK;
  for (size_t r = w->q->first; r < enough && status == GL_OK; ++r) {
    size_t n = 0;
    for (size_t i = 0; i < w->out->n; ++i)
      if (w->out->system[i].n == r && (i == w->out->best || is_rival(w, &w->out->system[i])))
        w->which[n++] = i;
    status = observe(w, n, r);
  }
  return status;
}

static int is_as_good(const work *w, const ranking_system *s, const ranking_system *best,
                      size_t comparisons) {
  const size_t n = s->n < best->n ? s->n : best->n;
  const double below = difference_sum(best, s, n) / (double)n;
  const double error = w->q->error_rate / STEPS / (double)comparisons;
  const double t = gsl_cdf_tdist_Qinv(error, (double)(n - 1));
  return below + t * sqrt(difference_variance(best, s, n) / (double)n) <= w->out->zone / 2;
}

/* Rivals get as many replicates as the best, and the best twice those of the first stage at least.
 */
static gl_status choose(work *w) {
  ranking *o = w->out;
  size_t feasible = 0, enough = 2 * w->q->first;
  if (o->best == SIZE_MAX) return GL_OK;
  for (size_t i = 0; i < o->n; ++i) feasible += o->system[i].feasible != 0;
  if (enough > w->q->most) enough = w->q->most;
  if (o->system[o->best].n > enough) enough = o->system[o->best].n;
  gl_status status = complete(w, enough);
  o->chosen = o->best;
  o->as_good = 1;
  for (size_t i = 0; i < o->n && status == GL_OK; ++i) {
    const ranking_system *s = &o->system[i];
    if (!is_rival(w, s) || !is_as_good(w, s, &o->system[o->best], feasible - 1)) continue;
    ++o->as_good;
    if (s->mean_second > o->system[o->chosen].mean_second) o->chosen = i;
  }
  return status;
}

/* --- the whole ----------------------------------------------------------------------------------
 */

static void set_zone(work *w) {
  double largest = 0;
  for (size_t i = 0; i < w->out->n; ++i) largest = fmax(largest, fabs(w->out->system[i].mean));
  w->out->zone = w->q->zone_share > 0 ? w->q->zone_share * largest : w->q->zone;
}

gl_status ranking_best(ranking *out, const ranking_request *q, gl_error *err) {
  *out = (ranking){.best = SIZE_MAX, .chosen = SIZE_MAX, .separated = 1};
  if (q->systems == 0 || q->first < 3 || q->most < q->first)
    return gl_fail(err, GL_EINPUT,
                   "a selection needs a system, and 3 replicates in its first stage at least");
  work w = {.q = q, .out = out, .err = err};
  w.which = malloc(q->systems * sizeof *w.which);
  w.answer = malloc(q->systems * sizeof *w.answer);
  out->system = calloc(q->systems, sizeof *out->system);
  gl_status status = w.which && w.answer && out->system ? GL_OK : gl_fail_memory(err, "systems");
  if (status == GL_OK) {
    out->n = q->systems;
    for (size_t i = 0; i < out->n; ++i) out->system[i].fate = RANKING_UNDECIDED;
    status = observe_first(&w);
  }
  if (status == GL_OK) {
    set_zone(&w);
    status = compare(&w);
  }
  if (status == GL_OK) status = choose(&w);
  free(w.which);
  free(w.answer);
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
