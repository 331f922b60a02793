/* Training along a schedule that is known beforehand. */
#include "experiments/train/internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct replay {
  train_loop *loop;
  schedule plan;
  batch *batches;        /* [plan.n_batches] those not yet drawn or already trained are empty */
  size_t *version_start; /* [n_updates + 1] into by_version */
  size_t *by_version;    /* [n_segments] segments in order of version, then of their batch */
  size_t *batch_of;      /* [n_segments] */
  batch **together;      /* [largest update] */
  draw_span *span;       /* [responses of a unit] what a draw takes of each */
} replay;

/* --- which segments are drawn at which version --- */

/* A counting sort of the segments by version. */
static gl_status order_segments(replay *p) {
  const schedule *s = &p->plan;
  for (size_t b = 0; b < s->n_batches; ++b)
    for (size_t k = 0; k < s->batches[b].n_segments; ++k)
      p->batch_of[s->batches[b].first_segment + k] = b;
  for (size_t i = 0; i < s->n_segments; ++i) {
    int64_t version = s->segments[i].version;
    if (version < 0 || (size_t)version >= s->n_updates)
      return gl_fail(p->loop->err, GL_EINTERNAL,
                     "the schedule trains a batch of version %lld, which %zu "
                     "updates never make",
                     (long long)version, s->n_updates);
    ++p->version_start[version + 1];
  }
  for (size_t v = 0; v < s->n_updates; ++v) p->version_start[v + 1] += p->version_start[v];
  size_t *next = calloc(s->n_updates + 1, sizeof *next);
  if (next == NULL) return gl_fail_memory(p->loop->err, "the order of drawing");
  memcpy(next, p->version_start, (s->n_updates + 1) * sizeof *next);
  for (size_t i = 0; i < s->n_segments; ++i) p->by_version[next[s->segments[i].version]++] = i;
  free(next);
  return GL_OK;
}

static const schedule_segment *segment_at(const replay *p, size_t i) {
  return &p->plan.segments[p->by_version[i]];
}

/* Whether a batch has a segment of a later version. */
static int goes_on(const replay *p, size_t b, int64_t version) {
  const schedule_batch *of = &p->plan.batches[b];
  int later = 0;
  for (size_t k = 0; k < of->n_segments; ++k)
    later |= p->plan.segments[of->first_segment + k].version > version;
  return later;
}

/* Segments i, i + 1, … are those of one batch and version, each of one response: the draw that
 * takes them all. Returns how many they are. */
static size_t take_spans(replay *p, size_t i, size_t end, draw_request *request) {
  const size_t b = p->batch_of[p->by_version[i]], n = request->n_groups * request->group_size;
  const size_t longest = p->loop->learner.ops->longest(p->loop->learner.self);
  size_t taken = 0;
  memset(p->span, 0, n * sizeof *p->span);
  for (; i + taken < end && p->batch_of[p->by_version[i + taken]] == b; ++taken) {
    const schedule_segment *s = segment_at(p, i + taken);
    p->span[s->response] =
        (draw_span){draw_boundary(s->from, longest), draw_boundary(s->to, longest)};
  }
  request->span = p->span;
  request->from = p->batches[b].token_start == NULL ? 0 : 0.5;
  request->to = goes_on(p, b, request->version) ? 0.75 : 1;
  return taken;
}

static unit_draw unit_of(const replay *p, size_t b) {
  return cluster_unit_draw(p->loop->cluster, p->plan.batches[b].id, p->loop->recipe->groups);
}

static gl_status draw_version(replay *p, size_t version) {
  const learner *drawer = &p->loop->learner;
  const size_t end = p->version_start[version + 1];
  for (size_t i = p->version_start[version], taken = 1; i < end; i += taken) {
    const schedule_segment *segment = segment_at(p, i);
    size_t b = p->batch_of[p->by_version[i]];
    const unit_draw unit = unit_of(p, b);
    draw_request request = {.batch_id = unit.id,
                            .version = segment->version,
                            .n_groups = unit.n_groups,
                            .group_size = unit.group_size,
                            .first_response = unit.first_response,
                            .from = segment->from,
                            .to = segment->to};
    taken = segment->response == SEGMENT_OF_ALL ? 1 : take_spans(p, i, end, &request);
    gl_status status = drawer->ops->draw(drawer->self, &request, &p->batches[b], p->loop->err);
    if (status != GL_OK) return status;
  }
  return GL_OK;
}

/* --- checkpoints --- */

/* Whether the batch has been begun after so many updates and not been trained by them. */
static int is_pending(const replay *p, size_t b, size_t updates) {
  const schedule *s = &p->plan;
  size_t trained =
      updates == 0 ? 0 : s->updates[updates - 1].first_batch + s->updates[updates - 1].n_batches;
  return b >= trained && s->segments[s->batches[b].first_segment].version < (int64_t)updates;
}

static gl_status save(replay *p, size_t updates) {
  const schedule *s = &p->plan;
  checkpoint c = {0};
  for (size_t b = 0; b < s->n_batches; ++b) c.n_batches += (size_t)is_pending(p, b, updates);
  c.batches = calloc(c.n_batches + 1, sizeof *c.batches);
  if (c.batches == NULL) return gl_fail_memory(p->loop->err, "a checkpoint");
  for (size_t b = 0, n = 0; b < s->n_batches; ++b)
    if (is_pending(p, b, updates)) c.batches[n++] = (checkpoint_batch){b, p->batches[b]};
  gl_status status = train_save(p->loop, &c);
  free(c.batches);
  return status;
}

/* The clock is computed anew; that it is still the one of the checkpoint shows in its times and in
 * which batches wait. */
static gl_status resume(replay *p, checkpoint *c) {
  const schedule *s = &p->plan;
  const size_t updates = c->n_steps;
  int fits =
      updates == 0 || p->loop->out->steps[updates - 1].time_s == s->updates[updates - 1].end_s;
  for (size_t i = 0; i < c->n_batches && fits; ++i) {
    size_t b = (size_t)c->batches[i].number;
    fits = b < s->n_batches && is_pending(p, b, updates) && p->batches[b].token_start == NULL &&
           c->batches[i].drawn.id == unit_of(p, b).id;
    if (!fits) break;
    p->batches[b] = c->batches[i].drawn;
    c->batches[i].drawn = (batch){0};
  }
  for (size_t b = 0; b < s->n_batches && fits; ++b)
    fits = !is_pending(p, b, updates) || p->batches[b].token_start != NULL;
  if (fits) return GL_OK;
  return train_misfit(p->loop);
}

/* --- the loop --- */

static gl_status make_update(replay *p, const schedule_update *u) {
  for (size_t b = 0; b < u->n_batches; ++b) p->together[b] = &p->batches[u->first_batch + b];
  gl_status status =
      train_assemble(p->loop, p->plan.batches + u->first_batch, p->together, u->n_batches);
  if (status == GL_OK)
    status = train_update(p->loop, u, p->plan.batches[u->first_batch].sampler, p->together);
  for (size_t b = 0; b < u->n_batches; ++b) batch_fini(p->together[b]);
  return status;
}

static gl_status follow(replay *p, size_t from) {
  gl_status status = GL_OK;
  const run_result *out = p->loop->out;
  for (size_t v = from; v < p->plan.n_updates && status == GL_OK && out->status == RUN_DONE; ++v) {
    const schedule_update *u = &p->plan.updates[v];
    status = draw_version(p, v);
    if (status == GL_OK) status = make_update(p, u);
    if (status == GL_OK) status = train_evaluate(p->loop, v + 1, u->end_s);
    if (status != GL_OK) break;
    int pauses = train_pauses(p->loop);
    if (pauses & TRAIN_SAVE) status = save(p, v + 1);
    if (status == GL_OK && pauses & TRAIN_STOP) status = train_stopped(p->loop);
  }
  return status;
}

static gl_status allocate(replay *p) {
  const schedule *s = &p->plan;
  size_t largest = 0;
  for (size_t u = 0; u < s->n_updates; ++u)
    if (s->updates[u].n_batches > largest) largest = s->updates[u].n_batches;
  p->batches = calloc(s->n_batches + 1, sizeof *p->batches);
  p->version_start = calloc(s->n_updates + 1, sizeof *p->version_start);
  p->by_version = calloc(s->n_segments + 1, sizeof *p->by_version);
  p->batch_of = calloc(s->n_segments + 1, sizeof *p->batch_of);
  p->together = calloc(largest + 1, sizeof(batch *));
  p->span = calloc(s->unit_responses + 1, sizeof *p->span);
  if (p->batches == NULL || p->version_start == NULL || p->by_version == NULL ||
      p->batch_of == NULL || p->together == NULL || p->span == NULL)
    return gl_fail_memory(p->loop->err, "the training loop");
  return train_take_clock(p->loop, s);
}

gl_status train_replay(train_loop *l, checkpoint *c) {
  replay p = {.loop = l};
  gl_status status = schedule_build(&p.plan, l->cluster, l->recipe->seed, l->recipe->steps, l->err);
  if (status == GL_OK) status = allocate(&p);
  if (status == GL_OK) status = order_segments(&p);
  if (status == GL_OK) status = resume(&p, c);
  if (status == GL_OK && l->out->n_evals == 0) status = train_evaluate(l, 0, 0);
  if (status == GL_OK) status = follow(&p, c->n_steps);
  for (size_t b = 0; p.batches != NULL && b < p.plan.n_batches; ++b) batch_fini(&p.batches[b]);
  free(p.batches);
  free(p.version_start);
  free(p.by_version);
  free(p.batch_of);
  free(p.together);
  free(p.span);
  schedule_fini(&p.plan);
  return status;
}
