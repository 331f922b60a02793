#include "experiments/train.h"

#include "experiments/seconds.h"
#include "sim/schedule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BROKEN_UPDATES = 3 };        /* updates in a row without a number, then a run has diverged */
static const double collapse = 0.1; /* fraction of the best score */

typedef struct loop {
  const recipe *recipe;
  schedule plan;
  learner learner;
  batch *batches;        /* [plan.n_batches] those not yet drawn or already trained are empty */
  size_t *version_start; /* [n_updates + 1] into by_version */
  size_t *by_version;    /* [n_segments] segments in order of version, then of their batch */
  size_t *batch_of;      /* [n_segments] */
  batch **together;      /* [largest update] */
  size_t broken;         /* updates in a row without a number */
  outcome *out;
  gl_error *err;
} loop;

/* --- which segments are drawn at which version --------------------------------------------------
 */

/* A counting sort of the segments by version. */
static gl_status order_segments(loop *l) {
  const schedule *s = &l->plan;
  for (size_t b = 0; b < s->n_batches; ++b)
    for (size_t k = 0; k < s->batches[b].n_segments; ++k)
      l->batch_of[s->batches[b].first_segment + k] = b;
  for (size_t i = 0; i < s->n_segments; ++i) {
    int64_t version = s->segments[i].version;
    if (version < 0 || (size_t)version >= s->n_updates)
      return gl_fail(l->err, GL_EINTERNAL,
                     "the schedule trains a batch of version %lld, which %zu "
                     "updates never make",
                     (long long)version, s->n_updates);
    ++l->version_start[version + 1];
  }
  for (size_t v = 0; v < s->n_updates; ++v) l->version_start[v + 1] += l->version_start[v];
  size_t *next = calloc(s->n_updates + 1, sizeof *next);
  if (next == NULL) return gl_fail_memory(l->err, "the order of drawing");
  memcpy(next, l->version_start, (s->n_updates + 1) * sizeof *next);
  for (size_t i = 0; i < s->n_segments; ++i) l->by_version[next[s->segments[i].version]++] = i;
  free(next);
  return GL_OK;
}

static gl_status draw_version(loop *l, size_t version) {
  for (size_t i = l->version_start[version]; i < l->version_start[version + 1]; ++i) {
    const schedule_segment *segment = &l->plan.segments[l->by_version[i]];
    size_t b = l->batch_of[l->by_version[i]];
    draw_request request = {.batch_id = l->plan.batches[b].id,
                            .version = segment->version,
                            .n_groups = l->recipe->groups,
                            .group_size = l->recipe->group_size,
                            .from = segment->from,
                            .to = segment->to};
    gl_status status = l->learner.ops->draw(l->learner.self, &request, &l->batches[b], l->err);
    if (status != GL_OK) return status;
  }
  return GL_OK;
}

/* --- one update ---------------------------------------------------------------------------------
 */

static void record_staleness(double value[METRIC_COUNT], batch *const *batches, size_t n,
                             int64_t version) {
  double sum = 0, largest = 0, tokens = 0;
  for (size_t b = 0; b < n; ++b) {
    for (size_t t = 0; t < batches[b]->n_tokens; ++t) {
      double gap = (double)(version - batches[b]->version[t]);
      sum += gap;
      largest = fmax(largest, gap);
    }
    tokens += (double)batches[b]->n_tokens;
  }
  value[METRIC_VERSION] = (double)version;
  value[METRIC_STALENESS] = sum / tokens;
  value[METRIC_STALENESS_MAX] = largest;
}

static gl_status make_update(loop *l, const schedule_update *u) {
  for (size_t b = 0; b < u->n_batches; ++b) l->together[b] = &l->batches[u->first_batch + b];
  step_row *row = &l->out->steps[l->out->n_steps];
  metrics_clear(row->metric);
  gl_status status =
      l->learner.ops->update(l->learner.self, l->together, u->n_batches, row->metric, l->err);
  if (status != GL_OK) return status;
  row->step = u->step;
  row->sampler = (int32_t)l->plan.batches[u->first_batch].sampler;
  row->time_s = u->end_s;
  row->wait_s = u->wait_s;
  record_staleness(row->metric, l->together, u->n_batches, u->version);
  for (size_t b = 0; b < u->n_batches; ++b) batch_fini(l->together[b]);
  ++l->out->n_steps;
  int finite = isfinite(row->metric[METRIC_LOSS]) && isfinite(row->metric[METRIC_GRAD_NORM]);
  l->broken = finite ? 0 : l->broken + 1;
  if (l->broken >= BROKEN_UPDATES) {
    l->out->status = RUN_DIVERGED;
    snprintf(l->out->reason, sizeof l->out->reason,
             "loss or gradient norm not finite in %d updates up to step %lld", BROKEN_UPDATES,
             (long long)u->step);
  }
  return GL_OK;
}

static gl_status evaluate(loop *l, int64_t step, double time_s) {
  double score = NAN;
  gl_status status = l->learner.ops->evaluate(l->learner.self, &score, l->err);
  if (status != GL_OK) return status;
  if (!isfinite(score)) {
    l->out->status = RUN_DIVERGED;
    snprintf(l->out->reason, sizeof l->out->reason, "evaluation not finite after step %lld",
             (long long)step);
    return GL_OK;
  }
  l->out->evals[l->out->n_evals++] = (eval_row){step, time_s, score};
  return GL_OK;
}

static int stopped(const loop *l, const train_watch *watch, size_t step) {
  if (watch == NULL) return 0;
  size_t n = l->out->n_evals;
  return watch->after_step(watch->self, step, n > 0 ? l->out->evals[n - 1].eval_score : NAN);
}

static gl_status replay(loop *l, const train_watch *watch) {
  gl_status status = evaluate(l, 0, 0.0);
  size_t n = l->plan.n_updates, every = l->recipe->eval_every;
  for (size_t v = 0; v < n && status == GL_OK && l->out->status == RUN_DONE; ++v) {
    const schedule_update *u = &l->plan.updates[v];
    status = draw_version(l, v);
    if (status == GL_OK) status = make_update(l, u);
    if (status != GL_OK) break;
    if (l->out->status == RUN_DONE && ((v + 1) % every == 0 || v + 1 == n))
      status = evaluate(l, u->step, u->end_s);
    if (status == GL_OK && stopped(l, watch, v + 1))
      status = gl_fail(l->err, GL_EINTERRUPTED, "stopped after %zu of %zu updates", v + 1, n);
  }
  return status;
}

static void note_collapse(outcome *o) {
  outcome_scores s = outcome_summarise(o);
  if (o->status != RUN_DONE || !(s.last < collapse * s.best)) return;
  o->status = RUN_DIVERGED;
  snprintf(o->reason, sizeof o->reason,
           "collapsed: the last score %.4g is below a tenth of the best, %.4g", s.last, s.best);
}

/* --- a whole run --------------------------------------------------------------------------------
 */

static gl_status plan_run(loop *l) {
  cluster_spec *cluster = NULL;
  gl_status status = cluster_parse(&cluster, l->recipe->cluster,
                                   l->recipe->groups * l->recipe->group_size, l->err);
  if (status == GL_OK)
    status = schedule_build(&l->plan, cluster, l->recipe->seed, l->recipe->steps, l->err);
  cluster_free(cluster);
  return status;
}

static gl_status allocate(loop *l) {
  const schedule *s = &l->plan;
  size_t largest = 0;
  for (size_t u = 0; u < s->n_updates; ++u)
    if (s->updates[u].n_batches > largest) largest = s->updates[u].n_batches;
  outcome *o = l->out;
  o->clock = s->clock;
  o->n_staleness = s->n_staleness;
  o->staleness = calloc(s->n_staleness + 1, sizeof *o->staleness);
  o->steps = calloc(s->n_updates + 1, sizeof *o->steps);
  o->evals = calloc(s->n_updates / l->recipe->eval_every + 2, sizeof *o->evals);
  l->batches = calloc(s->n_batches + 1, sizeof *l->batches);
  l->version_start = calloc(s->n_updates + 1, sizeof *l->version_start);
  l->by_version = calloc(s->n_segments + 1, sizeof *l->by_version);
  l->batch_of = calloc(s->n_segments + 1, sizeof *l->batch_of);
  l->together = calloc(largest + 1, sizeof(batch *));
  if (o->staleness == NULL || o->steps == NULL || o->evals == NULL || l->batches == NULL ||
      l->version_start == NULL || l->by_version == NULL || l->batch_of == NULL ||
      l->together == NULL)
    return gl_fail_memory(l->err, "the training loop");
  if (s->n_staleness > 0) memcpy(o->staleness, s->staleness, s->n_staleness * sizeof *s->staleness);
  return GL_OK;
}

static void release(loop *l) {
  for (size_t b = 0; l->batches != NULL && b < l->plan.n_batches; ++b) batch_fini(&l->batches[b]);
  free(l->batches);
  free(l->version_start);
  free(l->by_version);
  free(l->batch_of);
  free(l->together);
  learner_fini(&l->learner);
  schedule_fini(&l->plan);
}

gl_status train_run(outcome *out, const recipe *r, const train_watch *watch, gl_error *err) {
  double begun = seconds_now();
  *out = (outcome){.status = RUN_DONE};
  loop l = {.recipe = r, .out = out, .err = err};
  gl_status status = plan_run(&l);
  if (status == GL_OK) status = recipe_learner(&l.learner, r, err);
  if (status == GL_OK) status = allocate(&l);
  if (status == GL_OK) status = order_segments(&l);
  if (status == GL_OK) status = replay(&l, watch);
  release(&l);
  if (status == GL_OK) note_collapse(out);
  out->wall_s = seconds_now() - begun;
  return status;
}
