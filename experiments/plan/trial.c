/* A schedule of a candidate, and its measures. */
#include "experiments/plan/trial.h"

#include "experiments/recipe/recipe.h"
#include "sim/schedule.h"

#include <math.h>
#include <stdlib.h>

/* --- the cluster --- */

/* Samplers are numbered group by group, as the recipe lists them. */
static gl_status place_samplers(plan_setup *s, gl_error *err) {
  const size_t n = plan_candidate_samplers(s->c, s->d);
  size_t at = 0;
  s->site_of = calloc(n, sizeof *s->site_of);
  if (s->site_of == NULL) return gl_fail_memory(err, "samplers");
  for (size_t i = 0, site; (site = plan_candidate_group(s->c, s->d, i)) != SIZE_MAX; ++i)
    for (size_t k = 0; k < s->c->samplers[site]; ++k) s->site_of[at++] = site;
  return GL_OK;
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
    status = place_samplers(s, err);
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

/* The updates that are measured, and the batches in them. */
typedef struct span {
  const schedule *s;
  size_t first, batch; /* update, and its first batch */
  double seconds;
} span;

static span span_of(const schedule *s, size_t warm_up) {
  const double from = warm_up > 0 ? s->updates[warm_up - 1].end_s : 0;
  return (span){s, warm_up, s->updates[warm_up].first_batch,
                s->updates[s->n_updates - 1].end_s - from};
}

static int trial_by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Mean and 95th percentile: the smallest staleness that so many units do not exceed. */
static gl_status measure_staleness(plan_measures *m, const span *at, gl_error *err) {
  const schedule *s = at->s;
  const size_t n = s->n_batches - at->batch;
  double *value = malloc(n * sizeof *value), sum = 0;
  size_t k = 0;
  if (value == NULL) return gl_fail_memory(err, "staleness");
  for (size_t i = at->first; i < s->n_updates; ++i)
    for (size_t b = 0; b < s->updates[i].n_batches; ++b, ++k) {
      const schedule_update *u = &s->updates[i];
      value[k] = (double)schedule_staleness(s, u, &s->batches[u->first_batch + b]);
      sum += value[k];
    }
  qsort(value, n, sizeof *value, trial_by_value);
  m->staleness = sum / (double)n;
  m->staleness_p95 = value[(size_t)ceil(0.95 * (double)n) - 1];
  free(value);
  return GL_OK;
}

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
  return measure_staleness(m, &at, err);
}

gl_status plan_trial(plan_measures *out, const plan_setup *s, size_t replicate, gl_error *err) {
  schedule made = {0};
  gl_status status =
      schedule_build(&made, s->cluster, s->d->seed + replicate, s->d->rigour.updates, err);
  if (status == GL_OK) status = trial_measure(out, s, &made, err);
  schedule_fini(&made);
  return status;
}
