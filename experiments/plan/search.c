/* Searches for a plan: simulates candidates, measures their schedules, and decides what to simulate
 * next. */
#include "experiments/plan/plan.h"

#include "core/base/array.h"
#include "core/base/thread_pool.h"
#include "experiments/base/memory.h"
#include "experiments/recipe/recipe.h"
#include "sim/closed_forms.h"
#include "sim/schedule.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* --- one simulation --- */

/* Fills site_of. In the candidate's recipe each site that has samplers is one group of them, in the
 * order of sites, and samplers are numbered group by group. */
static void place_samplers(plan_setup *s) {
  size_t at = 0;
  s->site_of = MUST_ARRAY(size_t, plan_candidate_samplers(s->c, s->d), "samplers");
  for (size_t i = 0, site; (site = plan_candidate_group(s->c, s->d, i)) != SIZE_MAX; ++i)
    for (size_t k = 0; k < s->c->samplers[site]; ++k) s->site_of[at++] = site;
}

gl_status plan_setup_init(plan_setup *s, const plan_candidate *c, const plan_description *d,
                          gl_error *err) {
  *s = (plan_setup){.d = d, .c = c};
  cfg_doc *doc = NULL;
  recipe r;
  gl_status status = plan_candidate_recipe(&doc, c, d, err);
  if (status == GL_OK) status = recipe_read(&r, doc, err);
  if (status == GL_OK) status = cluster_parse(&s->cluster, r.cluster, r.groups, r.group_size, err);
  if (status == GL_OK) {
    const cfg_node *bytes = cfg_find(r.cluster, "weights_bytes");
    if (bytes != NULL) cfg_number(bytes, &s->weights_bytes);
    place_samplers(s);
  }
  cfg_free(doc);
  return status;
}

void plan_setup_fini(plan_setup *s) {
  cluster_free(s->cluster);
  free(s->site_of);
  *s = (plan_setup){.d = NULL};
}

/* --- measures --- */

/* The measured updates and their batches. */
typedef struct span {
  const schedule *s;
  size_t first, batch; /* first measured update, and its first batch */
  double seconds;
} span;

static span span_of(const schedule *s, size_t warm_up) {
  const double from = warm_up > 0 ? s->updates[warm_up - 1].end_s : 0;
  return (span){s, warm_up, s->updates[warm_up].first_batch,
                s->updates[s->n_updates - 1].end_s - from};
}

/* Computes the mean and the 95th percentile, the smallest staleness that 95 % of the units do not
 * exceed. */
static void measure_staleness(plan_measures *m, const span *at) {
  const schedule *s = at->s;
  const size_t n = s->n_batches - at->batch;
  double *value = MUST_ARRAY(double, n, "staleness"), sum = 0;
  size_t k = 0;
  for (size_t i = at->first; i < s->n_updates; ++i)
    for (size_t b = 0; b < s->updates[i].n_batches; ++b, ++k) {
      const schedule_update *u = &s->updates[i];
      value[k] = (double)schedule_staleness(s, u, &s->batches[u->first_batch + b]);
      sum += value[k];
    }
  qsort(value, n, sizeof *value, order_real);
  m->staleness = sum / (double)n;
  m->staleness_p95 = value[(size_t)ceil(0.95 * (double)n) - 1];
  free(value);
}

/* Computes the fractions of the time that each site's link transfers weights and responses. */
static void measure_links(plan_measures *m, const plan_setup *p, const span *at) {
  const schedule *s = at->s;
  const plan_candidate *c = p->c;
  const double updates = (double)(s->n_updates - at->first);
  double bytes[PLAN_MOST_SITES] = {0};
  for (size_t b = at->batch; b < s->n_batches; ++b)
    bytes[p->site_of[s->batches[b].sampler]] += s->batches[b].bytes;
  for (size_t i = 0; i < p->d->n_sites; ++i) {
    const double room = p->d->links[i][c->learner_site].bandwidth * c->bandwidth[i] * at->seconds;
    const double copies = c->samplers[i] == 0 ? 0 : p->d->relay ? 1 : (double)c->samplers[i];
    m->weights[i] = fmin(1, copies * p->weights_bytes * updates / (double)c->publish / room);
    m->responses[i] = fmin(1, bytes[i] / room);
  }
}

static gl_status trial_measure(plan_measures *m, const plan_setup *p, const schedule *s,
                               gl_error *err) {
  const span at = span_of(s, p->d->rigour.warm_up);
  double tokens = 0, busy = 0;
  if (!(at.seconds > 0))
    return gl_fail(err, GL_ENUMERIC, "%zu updates take no simulated time, so there is no rate",
                   s->n_updates);
  for (size_t b = at.batch; b < s->n_batches; ++b) tokens += s->batches[b].tokens;
  for (size_t i = at.first; i < s->n_updates; ++i)
    busy += s->updates[i].end_s - s->updates[i].start_s;
  const double units = (double)(s->n_batches - at.batch);
  const double made = s->clock.batches_trained + s->clock.batches_dropped;
  *m = (plan_measures){.throughput = 3600 * units * (double)s->unit_responses / at.seconds,
                       .tokens = 3600 * tokens / at.seconds,
                       .learner = busy / at.seconds,
                       .samplers = s->streams ? s->slot_utilisation : s->clock.sampler_utilisation,
                       .wasted = made > 0 ? s->clock.batches_dropped / made : 0};
  measure_links(m, p, &at);
  measure_staleness(m, &at);
  return GL_OK;
}

gl_status plan_trial(plan_measures *out, const plan_setup *s, size_t replicate, gl_error *err) {
  schedule made = {0};
  gl_status status =
      schedule_build(&made, s->cluster, s->d->seed + replicate, s->d->rigour.updates, err);
  if (status == GL_OK) status = trial_measure(out, s, &made, err);
  schedule_fini(&made);
  return status;
}

/* --- the search: replicates --- */

/* One replicate each of several systems, simulated in parallel. */
typedef struct trial_round {
  plan_system **of; /* [n] the systems to simulate */
  size_t replicate, n;
  const plan_watch *watch;
} trial_round;

static bool search_is_stopped(const plan_watch *w) {
  return w != NULL && w->stop != NULL && w->stop(w->self);
}

static void report_phase(const plan_watch *w, const char *what, size_t n) {
  if (w != NULL && w->phase != NULL) w->phase(w->self, what, n);
}

static void report_done(const plan_watch *w, size_t n) {
  if (w != NULL && w->done != NULL) w->done(w->self, n);
}

/* Simulates the replicate for system i of the round. If the cluster stalls, throughput counts as
 * zero and staleness as the maximum. */
static gl_status search_run_one(void *context, size_t i, gl_error *err) {
  const trial_round *r = context;
  plan_system *s = r->of[i];
  gl_error why = {0};
  if (search_is_stopped(r->watch)) return gl_fail(err, GL_EINTERRUPTED, "the plan was stopped");
  gl_status status = plan_trial(&s->run[r->replicate], &s->setup, r->replicate, &why);
  if (status == GL_OK) return GL_OK;
  if (status != GL_ENUMERIC) return gl_fail(err, status, "%s", why.text);
  if (r->replicate == 0) s->stalls = true;
  s->run[r->replicate] = (plan_measures){.staleness = (double)s->candidate.window,
                                         .staleness_p95 = (double)s->candidate.window};
  return GL_OK;
}

/* Simulates one replicate of n systems in parallel; skips systems that already have it. Adds the
 * number of simulations to *made. */
static gl_status run_round(plan_system **of, size_t n, size_t replicate, size_t threads,
                           const plan_watch *watch, size_t *made, gl_error *err) {
  trial_round r = {.of = MUST_ARRAY(plan_system *, n, "a round of simulations"),
                   .replicate = replicate,
                   .watch = watch};
  for (size_t i = 0; i < n; ++i)
    if (of[i]->n <= replicate) {
      MUST_RESERVE(of[i]->run, of[i]->room, replicate + 1, "replicates");
      r.of[r.n++] = of[i];
    }
  const gl_status status = pool_try(r.n, threads, search_run_one, &r, err);
  for (size_t i = 0; i < r.n && status == GL_OK; ++i) r.of[i]->n = replicate + 1;
  *made += r.n;
  free(r.of);
  return status;
}

/* --- bounds without simulation --- */

/* Upper bound on responses per hour from closed forms: the learner is never faster than its step
 * time, if that is constant, and the bounds of sim/closed_forms.h for clusters they cover. */
static double most_throughput(const plan_system *s) {
  const plan_description *d = s->setup.d;
  const double update = (double)(s->candidate.batches * (int64_t)(d->groups * d->group_size));
  double most = INFINITY;
  cluster_dist dist;
  gl_error none = {0};
  theory said;
  for (size_t i = 0; cluster_dist_at(s->setup.cluster, i, &dist); ++i)
    if (strcmp(dist.field, "cluster.learner.step") == 0 && dist.dist->kind == DELAY_CONSTANT &&
        dist.dist->clamp_lo <= 0 && isinf(dist.dist->clamp_hi) &&
        dist.dist->constant.value > dist.dist->offset)
      most = 3600 * update / (dist.dist->constant.value - dist.dist->offset);
  if (sim_theory_of(&said, s->setup.cluster, &none) == GL_OK) {
    const double high = 3600 * said.value[THEORY_SAMPLES_PER_S].high;
    if (isfinite(high)) most = fmin(most, high);
    sim_theory_fini(&said);
  }
  return most;
}

/* Whether the bound is below the required throughput. Nothing is known if samples_per_batch differs
 * from groups x group_size. */
static bool is_too_slow(const plan_system *s) {
  const plan_rigour *g = &s->setup.d->rigour;
  const double least = s->setup.d->limits.throughput * (1 - g->throughput);
  const cfg_node *root = cfg_root(s->setup.d->doc);
  if (least <= 0 || cfg_find(root, "cluster.samples_per_batch") != NULL) return false;
  return most_throughput(s) < least;
}

/* --- selection --- */

typedef struct search {
  plan_result *out;
  const plan_description *d;
  const plan_watch *watch;
  size_t threads, reported; /* reported: simulations of this phase so far */
  plan_system **round;      /* [n] scratch */
} search;

/* If throughput is the only limit, the least stale system is preferred; otherwise the fastest. */
static bool wants_fresh(const plan_limits *l) {
  return l->throughput > 0 && isinf(l->staleness) && isinf(l->staleness_p95);
}

static size_t slacks(const plan_limits *l, const plan_measures *m,
                     double out[RANKING_MOST_LIMITS]) {
  size_t n = 0;
  if (isfinite(l->staleness)) out[n++] = l->staleness - m->staleness;
  if (isfinite(l->staleness_p95)) out[n++] = l->staleness_p95 - m->staleness_p95;
  if (l->throughput > 0) out[n++] = m->throughput - l->throughput;
  return n;
}

/* The callback of the ranking: simulates a replicate of n systems. Their first value is throughput
 * and their second negated staleness; the reverse if throughput is the only limit. */
static gl_status search_observe(void *self, const size_t *which, size_t n, size_t replicate,
                                ranking_observation *out, gl_error *err) {
  search *s = self;
  const plan_limits *l = &s->d->limits;
  size_t made = 0;
  for (size_t i = 0; i < n; ++i) s->round[i] = &s->out->system[s->out->of[which[i]]];
  gl_status status = run_round(s->round, n, replicate, s->threads, s->watch, &made, err);
  s->out->simulations += made;
  report_done(s->watch, s->reported += made);
  for (size_t i = 0; i < n && status == GL_OK; ++i) {
    const plan_measures *m = &s->round[i]->run[replicate];
    const bool fresh = wants_fresh(l);
    out[i].value = fresh ? -m->staleness : m->throughput;
    out[i].second = fresh ? m->throughput : -m->staleness;
    slacks(l, m, out[i].slack);
  }
  return status;
}

static gl_status choose_system(search *s, gl_error *err) {
  const plan_rigour *g = &s->d->rigour;
  const plan_limits *l = &s->d->limits;
  ranking_request q = {.systems = s->out->n - s->out->n_stalled - s->out->n_too_slow,
                       .first = g->replicates,
                       .most = g->most,
                       .error_rate = g->error_rate,
                       .zone_fraction = wants_fresh(l) ? 0 : g->throughput,
                       .zone = g->staleness,
                       .observe = search_observe,
                       .self = s};
  if (isfinite(l->staleness)) q.slack[q.n_limits++] = g->staleness;
  if (isfinite(l->staleness_p95)) q.slack[q.n_limits++] = g->staleness;
  if (l->throughput > 0) q.slack[q.n_limits++] = g->throughput * l->throughput;
  gl_status status = ranking_best(&s->out->ranking, &q, err);
  if (status == GL_OK && s->out->ranking.chosen != SIZE_MAX)
    s->out->chosen = s->out->of[s->out->ranking.chosen];
  return status;
}

/* --- first replicates --- */

/* Enumerates the candidates and builds their recipes; marks those that closed forms show to be too
 * slow. */
static gl_status set_up(search *s, gl_error *err) {
  plan_candidate *c = NULL;
  size_t n = 0;
  gl_status status = plan_candidates(&c, &n, s->d, err);
  if (status != GL_OK) return status;
  s->out->system = MUST_ARRAY(plan_system, n, "candidates");
  s->out->of = MUST_ARRAY(size_t, n, "candidates");
  s->out->front = MUST_ARRAY(size_t, n + 1, "candidates");
  s->round = MUST_ARRAY(plan_system *, n, "candidates");
  for (size_t i = 0; i < n && status == GL_OK; ++i) {
    plan_system *p = &s->out->system[s->out->n++];
    p->candidate = c[i];
    status = plan_setup_init(&p->setup, &p->candidate, s->d, err);
    if (status != GL_OK) break;
    p->too_slow = is_too_slow(p);
    s->out->n_too_slow += p->too_slow;
    if (search_is_stopped(s->watch)) status = gl_fail(err, GL_EINTERRUPTED, "the plan was stopped");
  }
  free(c);
  return status;
}

/* Simulates the first replicate of all candidates; those that stall in it are excluded. */
static gl_status run_first(search *s, gl_error *err) {
  plan_result *r = s->out;
  size_t n = 0, made = 0;
  for (size_t i = 0; i < r->n; ++i)
    if (!r->system[i].too_slow) s->round[n++] = &r->system[i];
  if (n == 0)
    return gl_fail(err, GL_ENUMERIC,
                   "no candidate can train %g responses per hour: closed forms say so of all %zu; "
                   "lower plan.limits.throughput, or describe more GPUs",
                   s->d->limits.throughput, r->n);
  report_phase(s->watch, "first stage", n * s->d->rigour.replicates);
  gl_status status = run_round(s->round, n, 0, s->threads, s->watch, &made, err);
  r->simulations += made;
  report_done(s->watch, s->reported = made);
  n = 0;
  for (size_t i = 0; i < r->n && status == GL_OK; ++i) {
    r->n_stalled += r->system[i].stalls;
    if (!r->system[i].stalls && !r->system[i].too_slow) r->of[n++] = i;
  }
  if (status != GL_OK || n > 0) return status;
  gl_error why = {0};
  plan_measures m;
  plan_trial(&m, &s->round[0]->setup, 0, &why);
  return gl_fail(err, GL_ENUMERIC, "all %zu candidates stand still; of the first: %.700s", r->n,
                 why.text);
}

/* --- estimates --- */

/* Mean and interval, over n replicates, of the measure at byte `offset` of a replicate's struct.
 * With `base`: of the difference from that system, paired by replicate. */
static plan_estimate search_estimate(const plan_system *s, const plan_system *base, size_t n,
                                     size_t offset) {
  double value[PLAN_MOST_REPLICATES];
  plan_estimate e;
  for (size_t r = 0; r < n; ++r) {
    value[r] = *(const double *)((const char *)&s->run[r] + offset);
    if (base != NULL) value[r] -= *(const double *)((const char *)&base->run[r] + offset);
  }
  ranking_interval(value, n, 0.95, &e.mean, &e.half);
  return e;
}

plan_estimate plan_throughput(const plan_system *s) {
  return search_estimate(s, NULL, s->n, offsetof(plan_measures, throughput));
}
plan_estimate plan_tokens(const plan_system *s) {
  return search_estimate(s, NULL, s->n, offsetof(plan_measures, tokens));
}
plan_estimate plan_staleness(const plan_system *s) {
  return search_estimate(s, NULL, s->n, offsetof(plan_measures, staleness));
}
plan_estimate plan_staleness_p95(const plan_system *s) {
  return search_estimate(s, NULL, s->n, offsetof(plan_measures, staleness_p95));
}

plan_estimate plan_wasted(const plan_system *s) {
  return search_estimate(s, NULL, s->n, offsetof(plan_measures, wasted));
}

double plan_use(const plan_system *s, plan_resource which, size_t site) {
  double sum = 0;
  for (size_t r = 0; r < s->n; ++r) {
    const plan_measures *m = &s->run[r];
    switch (which) {
    case PLAN_LEARNER:
      sum += m->learner;
      break;
    case PLAN_SAMPLERS:
      sum += m->samplers;
      break;
    case PLAN_WEIGHTS:
      sum += m->weights[site];
      break;
    case PLAN_RESPONSES:
      sum += m->responses[site];
      break;
    case PLAN_RESOURCES:
      break;
    }
  }
  return s->n > 0 ? sum / (double)s->n : 0;
}

bool plan_keeps_limits(const plan_system *s, const plan_limits *l) {
  const plan_measures mean = {.throughput = plan_throughput(s).mean,
                              .staleness = plan_staleness(s).mean,
                              .staleness_p95 = plan_staleness_p95(s).mean};
  double slack[RANKING_MOST_LIMITS];
  const size_t n = slacks(l, &mean, slack);
  for (size_t i = 0; i < n; ++i)
    if (slack[i] < 0) return false;
  return true;
}

/* --- the front --- */

typedef struct place {
  size_t at;
  double throughput, staleness;
} place;

static int by_staleness(const void *a, const void *b) {
  const place *x = a, *y = b;
  if (x->staleness != y->staleness)
    return (x->staleness > y->staleness) - (x->staleness < y->staleness);
  return (x->throughput < y->throughput) - (x->throughput > y->throughput);
}

/* Finds the Pareto front: candidates that no other beats in both staleness and throughput, each
 * faster than the previous one by at least half the indifference zone. The recommended candidate is
 * included. */
static void find_front(plan_result *r) {
  const size_t n = r->ranking.n;
  place *p = MUST_ARRAY(place, n, "a Pareto front");
  double largest = 0, best = -INFINITY;
  for (size_t i = 0; i < n; ++i) {
    const plan_system *s = &r->system[r->of[i]];
    p[i] = (place){r->of[i], plan_throughput(s).mean, plan_staleness(s).mean};
    largest = fmax(largest, p[i].throughput);
  }
  r->zone = r->d->rigour.throughput * largest;
  qsort(p, n, sizeof *p, by_staleness);
  for (size_t i = 0; i < n; ++i) {
    const bool steps_up = p[i].throughput > best + (isinf(best) ? 0 : r->zone / 2);
    if (!steps_up && p[i].at != r->chosen) continue;
    best = fmax(best, p[i].throughput);
    r->front[r->n_front++] = p[i].at;
  }
  free(p);
}

/* --- bottleneck and gains --- */

/* Finds the most used resource, which is the bottleneck if it is in use for at least
 * PLAN_BOTTLENECK_USE of the time. */
static void find_bottleneck(plan_result *r) {
  const plan_system *s = &r->system[r->chosen];
  for (plan_resource k = 0; k < PLAN_RESOURCES; ++k)
    for (size_t site = 0; site < (k < PLAN_WEIGHTS ? 1 : r->d->n_sites); ++site) {
      const double use = plan_use(s, k, site);
      if (use <= r->in_use) continue;
      r->in_use = use;
      r->bottleneck = k;
      r->bottleneck_site = site;
    }
  if (r->in_use < PLAN_BOTTLENECK_USE) r->bottleneck = PLAN_RESOURCES;
}

/* Applies the change of a gain to a candidate. */
static void change(plan_candidate *c, const plan_description *d, const plan_gain *g) {
  switch (g->more) {
  case PLAN_MORE_SAMPLER:
    ++c->samplers[g->site];
    break;
  case PLAN_MORE_LEARNER:
    c->learner_gpus += d->learner_gpus;
    break;
  case PLAN_MORE_BANDWIDTH:
    c->bandwidth[g->site] *= 2;
    break;
  case PLAN_MORE_WINDOW:
    ++c->window;
    break;
  case PLAN_WITHOUT_SITE:
    c->samplers[g->site] = 0;
    break;
  }
}

/* Simulates both systems until each has `replicates` replicates. */
static gl_status run_both(search *s, plan_system *base, plan_system *changed, size_t replicates,
                          gl_error *err) {
  gl_status status = plan_setup_init(&changed->setup, &changed->candidate, s->d, err);
  size_t made = 0;
  for (size_t r = 0; r < replicates && status == GL_OK && !changed->stalls; ++r) {
    plan_system *both[] = {base, changed};
    status = run_round(both, 2, r, s->threads, s->watch, &made, err);
  }
  s->out->simulations += made;
  report_done(s->watch, s->reported += made);
  return status;
}

static void system_fini(plan_system *s) {
  plan_setup_fini(&s->setup);
  free(s->run);
}

static gl_status measure_gain(search *s, plan_gain *g, size_t replicates, gl_error *err) {
  plan_system *base = &s->out->system[s->out->chosen];
  plan_system changed = {.candidate = base->candidate};
  change(&changed.candidate, s->d, g);
  gl_status status = run_both(s, base, &changed, replicates, err);
  g->stalls = changed.stalls;
  if (status == GL_OK && !changed.stalls) {
    g->throughput =
        search_estimate(&changed, base, replicates, offsetof(plan_measures, throughput));
    g->tokens = search_estimate(&changed, base, replicates, offsetof(plan_measures, tokens));
    g->staleness = search_estimate(&changed, base, replicates, offsetof(plan_measures, staleness));
  }
  system_fini(&changed);
  return status;
}

/* Lists the changes whose gain is measured. Returns their number. */
static size_t list_gains(const plan_result *r, plan_gain *out) {
  const plan_candidate *c = &r->system[r->chosen].candidate;
  size_t n = 0;
  for (size_t i = 0; i < r->d->n_sites; ++i)
    if (i == c->learner_site || r->d->links[i][c->learner_site].at != NULL)
      out[n++] = (plan_gain){.more = PLAN_MORE_SAMPLER, .site = i};
  out[n++] = (plan_gain){.more = PLAN_MORE_LEARNER};
  for (size_t i = 0; i < r->d->n_sites; ++i)
    if (c->samplers[i] > 0 && isfinite(r->d->links[i][c->learner_site].bandwidth))
      out[n++] = (plan_gain){.more = PLAN_MORE_BANDWIDTH, .site = i};
  out[n++] = (plan_gain){.more = PLAN_MORE_WINDOW};
  for (size_t i = 0; i < r->d->n_sites; ++i)
    if (c->samplers[i] > 0 && c->samplers[i] < plan_candidate_samplers(c, r->d))
      out[n++] = (plan_gain){.more = PLAN_WITHOUT_SITE, .site = i};
  return n;
}

/* Maximum replicates for the effect of a change, as a multiple of those of the first stage. The
 * selection may have used more, but an effect is printed with its interval, so fewer suffice. */
enum { GAIN_STAGES = 8 };

static size_t paired_replicates(const plan_result *r) {
  size_t replicates = r->system[r->chosen].n;
  const size_t first = r->d->rigour.replicates;
  if (replicates < 2 * first) replicates = 2 * first;
  if (replicates > GAIN_STAGES * first) replicates = GAIN_STAGES * first;
  return replicates > PLAN_MOST_REPLICATES ? PLAN_MOST_REPLICATES : replicates;
}

/* Whether a system with fewer samplers is as good as the base: within the limits, its mean worse by
 * at most half the indifference zone, and not by the whole one within the 95 % interval. */
static bool is_as_good(const search *s, const plan_system *base, const plan_system *fewer,
                       size_t replicates) {
  const plan_rigour *g = &s->d->rigour;
  const plan_estimate t =
      search_estimate(fewer, base, replicates, offsetof(plan_measures, throughput));
  const plan_estimate a =
      search_estimate(fewer, base, replicates, offsetof(plan_measures, staleness));
  const double zone = g->throughput * plan_throughput(base).mean;
  const bool is_fast = t.mean >= -zone / 2 && t.mean - t.half >= -zone;
  const bool is_fresh = a.mean <= g->staleness / 2 && a.mean + a.half <= g->staleness;
  if (fewer->stalls || !is_fresh || !plan_keeps_limits(fewer, &s->d->limits)) return false;
  return is_fast || wants_fresh(&s->d->limits);
}

/* Simulates candidate c with `samplers` samplers at a site; *good: whether it is as good as the
 * selected one. */
static gl_status try_fewer(search *s, const plan_candidate *c, size_t site, size_t samplers,
                           size_t replicates, bool *good, gl_error *err) {
  plan_system *base = &s->out->system[s->out->chosen];
  plan_system fewer = {.candidate = *c};
  fewer.candidate.samplers[site] = samplers;
  *good = false;
  if (plan_candidate_samplers(&fewer.candidate, s->d) == 0) return GL_OK;
  gl_status status = run_both(s, base, &fewer, replicates, err);
  if (status == GL_OK) *good = is_as_good(s, base, &fewer, replicates);
  system_fini(&fewer);
  return status;
}

/* The fewest samplers at a site, by bisection, that are as good as all of them. */
static gl_status leave_out_site(search *s, plan_candidate *c, size_t site, size_t replicates,
                                gl_error *err) {
  size_t enough = c->samplers[site], low = 0;
  gl_status status = GL_OK;
  while (low < enough && status == GL_OK) {
    const size_t middle = low + (enough - low) / 2;
    bool good;
    status = try_fewer(s, c, site, middle, replicates, &good, err);
    if (good)
      enough = middle;
    else
      low = middle + 1;
  }
  c->samplers[site] = enough;
  return status;
}

/* Removes samplers without which the selected candidate is as good, first at sites other than the
 * learner's. The replicates of the new candidate have the same seeds, so both can be compared by
 * replicate. */
static gl_status leave_out_samplers(search *s, gl_error *err) {
  plan_result *r = s->out;
  plan_system *base = &r->system[r->chosen];
  plan_candidate c = base->candidate;
  const size_t replicates = paired_replicates(r);
  gl_status status = GL_OK;
  report_phase(s->watch, "fewer samplers", 0);
  s->reported = 0;
  for (int own = 0; own < 2; ++own)
    for (size_t site = 0; site < s->d->n_sites && status == GL_OK; ++site)
      if ((site == c.learner_site) == (own == 1) && c.samplers[site] > 0)
        status = leave_out_site(s, &c, site, replicates, err);
  size_t left_out = 0;
  for (size_t i = 0; i < s->d->n_sites; ++i)
    left_out += r->left_out[i] = base->candidate.samplers[i] - c.samplers[i];
  if (status != GL_OK || left_out == 0) return status;
  plan_system fewer = {.candidate = c};
  status = run_both(s, base, &fewer, base->n > replicates ? base->n : replicates, err);
  if (status != GL_OK) {
    system_fini(&fewer);
    return status;
  }
  r->left_out_throughput =
      search_estimate(base, &fewer, base->n, offsetof(plan_measures, throughput));
  r->left_out_staleness =
      search_estimate(base, &fewer, base->n, offsetof(plan_measures, staleness));
  system_fini(base);
  *base = fewer;
  base->setup.c = &base->candidate;
  return GL_OK;
}

static gl_status find_gains(search *s, gl_error *err) {
  plan_result *r = s->out;
  r->gains = MUST_ARRAY(plan_gain, 3 * r->d->n_sites + 2, "gains");
  r->n_gains = list_gains(r, r->gains);
  const size_t replicates = paired_replicates(r);
  report_phase(s->watch, "one more of each", r->n_gains * replicates);
  s->reported = 0;
  gl_status status = GL_OK;
  for (size_t i = 0; i < r->n_gains && status == GL_OK; ++i)
    status = measure_gain(s, &r->gains[i], replicates, err);
  return status;
}

gl_status plan_search(plan_result *out, const plan_description *d, size_t threads,
                      const plan_watch *watch, gl_error *err) {
  *out = (plan_result){.d = d, .chosen = SIZE_MAX, .bottleneck = PLAN_RESOURCES};
  search s = {
      .out = out, .d = d, .watch = watch, .threads = threads > 0 ? threads : pool_usable_cores()};
  gl_status status = set_up(&s, err);
  if (status == GL_OK) status = run_first(&s, err);
  if (status == GL_OK) status = choose_system(&s, err);
  if (status == GL_OK && out->chosen != SIZE_MAX) status = leave_out_samplers(&s, err);
  if (status == GL_OK) find_front(out);
  if (status == GL_OK && out->chosen != SIZE_MAX) {
    find_bottleneck(out);
    status = find_gains(&s, err);
  }
  free(s.round);
  return status;
}

void plan_result_fini(plan_result *r) {
  for (size_t i = 0; i < r->n; ++i) {
    system_fini(&r->system[i]);
  }
  ranking_fini(&r->ranking);
  free(r->system);
  free(r->of);
  free(r->front);
  free(r->gains);
  *r = (plan_result){.chosen = SIZE_MAX};
}
