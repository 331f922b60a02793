/* The training loop: an update and its record, an evaluation and its record, and the times of
 * checkpoints; and the loop that follows a schedule computed in advance. coupled.c has the loop
 * that runs together with the clock. */
#include "experiments/train/internal.h"

#include "experiments/base/memory.h"
#include "experiments/base/program.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  BROKEN_UPDATES = 3
}; /* a run has diverged after this many consecutive updates that are not finite */

/* --- one update --- */

/* A unit of an update. number: index of its first response in the group; first: position of the
 * unit in the update, then that of the first unit of its group. */
typedef struct member {
  uint64_t group;
  size_t number, first;
  batch *of;
} member;

static int by_group(const void *a, const void *b) {
  const member *x = a, *y = b;
  if (x->group != y->group) return (x->group > y->group) - (x->group < y->group);
  return (x->first > y->first) - (x->first < y->first);
}

static int by_first_unit(const void *a, const void *b) {
  const member *x = a, *y = b;
  if (x->first != y->first) return (x->first > y->first) - (x->first < y->first);
  return (x->number > y->number) - (x->number < y->number);
}

void train_assemble(const train_loop *l, const schedule_batch *units, batch **batches, size_t n) {
  if (!cluster_divides_groups(l->cluster)) return;
  member *all = MUST_ARRAY(member, n, "the groups of an update");
  for (size_t i = 0; i < n; ++i) {
    const unit_draw draw = cluster_unit_draw(l->cluster, units[i].id, 1);
    all[i] = (member){draw.id, draw.first_response, i, batches[i]};
  }
  qsort(all, n, sizeof *all, by_group);
  for (size_t i = 1; i < n; ++i)
    if (all[i].group == all[i - 1].group) all[i].first = all[i - 1].first;
  qsort(all, n, sizeof *all, by_first_unit);
  for (size_t i = 0; i < n; ++i) {
    batches[i] = all[i].of;
    batches[i]->continues = i > 0 && all[i].group == all[i - 1].group;
  }
  free(all);
}

/* The learner's update on the batches and, with replay, on responses of earlier ones. */
static gl_status update_learner(train_loop *l, const schedule_update *u, batch **batches,
                                double *value) {
  const replay_spec *replay = &l->recipe->replay;
  const size_t n = u->n_batches;
  batch replayed = {0};
  batch **all = MUST_ARRAY(batch *, n + 1, "the batches of an update");
  memcpy(all, batches, n * sizeof *all);
  all[n] = &replayed;
  gl_status status = replay_draw(replay, &l->replay_buffer, l->recipe->seed, (uint64_t)u->version,
                                 &replayed, l->err);
  const size_t n_all = replayed.n_groups > 0 ? n + 1 : n;
  if (status == GL_OK) status = l->learner.ops->update(l->learner.self, all, n_all, value, l->err);
  if (status == GL_OK) status = replay_add(replay, &l->replay_buffer, batches, n, l->err);
  batch_fini(&replayed);
  free(all);
  return status;
}

gl_status train_update(train_loop *l, const schedule_update *u, uint32_t sampler, batch **batches) {
  step_record *record = &l->out->steps[l->out->n_steps];
  metrics_clear(record->metric);
  for (size_t i = 0; i < u->n_batches; ++i)
    batches[i]->loss_weight =
        cluster_stale_weight(l->cluster, u->version - batch_oldest_version(batches[i]));
  gl_status status = update_learner(l, u, batches, record->metric);
  if (status != GL_OK) return status;
  record->step = u->step;
  record->sampler = (int32_t)sampler;
  record->time_s = u->end_s;
  record->wait_s = u->wait_s;
  record->metric[METRIC_VERSION] = (double)u->version;
  const learner_passes passes = {l->recipe->minibatches, l->recipe->epochs, l->recipe->seed};
  status = learner_staleness(&passes, batches, u->n_batches, u->version, record->metric, l->err);
  if (status != GL_OK) return status;
  ++l->out->n_steps;
  int finite = isfinite(record->metric[METRIC_LOSS]) && isfinite(record->metric[METRIC_GRAD_NORM]);
  l->broken = finite ? 0 : l->broken + 1;
  if (l->broken >= BROKEN_UPDATES) {
    l->out->status = RUN_DIVERGED;
    snprintf(l->out->reason, sizeof l->out->reason,
             "loss or gradient norm not finite in %d updates up to step %lld", BROKEN_UPDATES,
             (long long)u->step);
  }
  return GL_OK;
}

const evaluation_part *train_parts(const train_loop *l, size_t *n) {
  const learner_ops *ops = l->learner.ops;
  *n = 0;
  return ops->parts != NULL ? ops->parts(l->learner.self, n) : NULL;
}

/* Scores all parts of an evaluation and stores their records. *score: that of the first part, which
 * is the run's score. */
static gl_status evaluate_parts(train_loop *l, const evaluation_part *part, size_t n,
                                size_t updates, double time_s, double *score) {
  run_result *o = l->out;
  double *of_part = MUST_ARRAY(double, n, "an evaluation");
  gl_status status = l->learner.ops->evaluate_parts(l->learner.self, of_part, l->err);
  int32_t place = -1;
  for (size_t i = 0; i < n && status == GL_OK && isfinite(of_part[0]); ++i) {
    set_eval_record *r = &o->set_evals[o->n_set_evals++];
    place += part[i].half == 0;
    *r = (set_eval_record){(int64_t)updates, time_s, of_part[i], place, part[i].half, ""};
    snprintf(r->set, sizeof r->set, "%s", part[i].set);
  }
  *score = of_part[0];
  free(of_part);
  return status;
}

gl_status train_evaluate(train_loop *l, size_t updates, double time_s) {
  if (l->out->status != RUN_DONE) return GL_OK;
  if (updates % l->recipe->eval_every != 0 && updates != l->recipe->steps) return GL_OK;
  double score = NAN;
  size_t n = 0;
  const evaluation_part *part = train_parts(l, &n);
  gl_status status = n > 0 ? evaluate_parts(l, part, n, updates, time_s, &score)
                           : l->learner.ops->evaluate(l->learner.self, &score, l->err);
  if (status != GL_OK) return status;
  if (!isfinite(score)) {
    l->out->status = RUN_DIVERGED;
    snprintf(l->out->reason, sizeof l->out->reason, "evaluation not finite after step %zu",
             updates);
    return GL_OK;
  }
  l->out->evals[l->out->n_evals++] = (eval_record){(int64_t)updates, time_s, score};
  return GL_OK;
}

/* --- between updates --- */

int train_pauses(train_loop *l) {
  const run_result *o = l->out;
  const checkpoint_pace *pace = &l->options->pace;
  int pauses = TRAIN_ON;
  if (l->options->after_step != NULL &&
      l->options->after_step(l->options->self, o->n_steps,
                             o->n_evals > 0 ? o->evals[o->n_evals - 1].eval_score : NAN))
    pauses = TRAIN_STOP;
  if (l->folder == NULL || o->status != RUN_DONE || l->saved == o->n_steps) return pauses;
  int due =
      pace->every > 0 ? o->n_steps % pace->every == 0 : seconds_now() - l->saved_s >= pace->seconds;
  if (o->n_steps == l->recipe->steps) due = l->options->checkpoint_at_end;
  return pauses | (due || pauses == TRAIN_STOP ? TRAIN_SAVE : TRAIN_ON);
}

gl_status train_save(train_loop *l, checkpoint *c) {
  c->steps = l->out->steps;
  c->n_steps = l->out->n_steps;
  c->evals = l->out->evals;
  c->n_evals = l->out->n_evals;
  c->set_evals = l->out->set_evals;
  c->n_set_evals = l->out->n_set_evals;
  c->broken = l->broken;
  c->wall_s = l->earlier_s + seconds_now() - l->begun_s;
  if (l->replay_buffer.n_responses > 0) {
    c->batches = must_resize(c->batches, c->n_batches + 1, sizeof *c->batches, "a checkpoint");
    c->batches[c->n_batches++] = (checkpoint_batch){CHECKPOINT_REPLAY, l->replay_buffer};
  }
  gl_status status = checkpoint_folder_save(l->folder, c, &l->learner, l->err);
  l->saved = l->out->n_steps;
  l->saved_s = seconds_now();
  return status;
}

gl_status train_misfit(train_loop *l) {
  return gl_fail(l->err, GL_EINPUT,
                 "%s: the clock of these checkpoints is not the recipe's any more; a file that the "
                 "recipe names may have changed: restore it, or delete the checkpoints to start "
                 "over",
                 l->options->checkpoints);
}

gl_status train_stopped(train_loop *l) {
  size_t made = l->out->n_steps;
  const char *how =
      l->folder == NULL ? "; with --checkpoint DIR the same command goes on later" : "";
  if (l->folder != NULL && l->saved == made) how = "; the same command goes on from there";
  return gl_fail(l->err, GL_EINTERRUPTED, "stopped after %zu of %zu updates%s", made,
                 l->recipe->steps, how);
}

void train_take_clock(train_loop *l, const schedule *s) {
  run_result *o = l->out;
  o->clock = s->clock;
  o->parts = s->parts;
  o->staleness = MUST_ARRAY(uint64_t, s->n_staleness, "the staleness of a run");
  o->n_staleness = s->n_staleness;
  if (s->n_staleness > 0) memcpy(o->staleness, s->staleness, s->n_staleness * sizeof *s->staleness);
}

/* --- a schedule is followed --- */

typedef struct following {
  train_loop *loop;
  schedule plan;
  batch *batches;        /* [plan.n_batches]; empty if not yet sampled or already trained */
  size_t *version_start; /* [n_updates + 1] offsets into by_version */
  size_t *by_version;    /* [n_segments] segments sorted by version, then by batch */
  size_t *batch_of;      /* [n_segments] batch of each segment */
  batch **together;      /* [largest update] workspace */
  draw_span *span; /* [responses of a unit] the tokens of each response that one request samples */
} following;

/* --- which segments are drawn at which version --- */

/* Counting sort of the segments by version. */
static gl_status order_segments(following *p) {
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
  size_t *next = MUST_ARRAY(size_t, s->n_updates + 1, "the order of drawing");
  memcpy(next, p->version_start, (s->n_updates + 1) * sizeof *next);
  for (size_t i = 0; i < s->n_segments; ++i) p->by_version[next[s->segments[i].version]++] = i;
  free(next);
  return GL_OK;
}

static const schedule_segment *segment_at(const following *p, size_t i) {
  return &p->plan.segments[p->by_version[i]];
}

/* 1 if the batch has a segment of a later version. */
static int has_later_version(const following *p, size_t b, int64_t version) {
  const schedule_batch *of = &p->plan.batches[b];
  int later = 0;
  for (size_t k = 0; k < of->n_segments; ++k)
    later |= p->plan.segments[of->first_segment + k].version > version;
  return later;
}

/* Combines consecutive segments of one batch and version, from segment i on, into one request with
 * a span of tokens for each response. Returns the number of segments combined. */
static size_t request_spans(following *p, size_t i, size_t end, draw_request *request) {
  const size_t b = p->batch_of[p->by_version[i]], n = request->n_groups * request->group_size;
  const size_t longest = p->loop->learner.ops->longest(p->loop->learner.self);
  size_t taken = 0;
  memset(p->span, 0, n * sizeof *p->span);
  for (; i + taken < end && p->batch_of[p->by_version[i + taken]] == b; ++taken) {
    const schedule_segment *s = segment_at(p, i + taken);
    p->span[s->response] =
        (draw_span){draw_boundary(s->from, longest), draw_boundary(s->to, longest)};
  }
  draw_request_set_spans(request, p->span, p->batches[b].token_start == NULL,
                         !has_later_version(p, b, request->version));
  return taken;
}

static unit_draw followed_unit(const following *p, size_t b) {
  return cluster_unit_draw(p->loop->cluster, p->plan.batches[b].id, p->loop->recipe->groups);
}

/* Samples all segments of batches that the schedule samples with this version. */
static gl_status draw_version(following *p, size_t version) {
  const learner *drawer = &p->loop->learner;
  const size_t end = p->version_start[version + 1];
  for (size_t i = p->version_start[version], taken = 1; i < end; i += taken) {
    const schedule_segment *segment = segment_at(p, i);
    size_t b = p->batch_of[p->by_version[i]];
    const unit_draw unit = followed_unit(p, b);
    draw_request request = {.batch_id = unit.id,
                            .version = segment->version,
                            .n_groups = unit.n_groups,
                            .group_size = unit.group_size,
                            .first_response = unit.first_response,
                            .from = segment->from,
                            .to = segment->to};
    taken = segment->response == SEGMENT_OF_ALL ? 1 : request_spans(p, i, end, &request);
    gl_status status = drawer->ops->draw(drawer->self, &request, &p->batches[b], p->loop->err);
    if (status != GL_OK) return status;
  }
  return GL_OK;
}

/* --- checkpoints --- */

/* 1 if the batch was begun but not trained after that many updates. */
static int is_pending(const following *p, size_t b, size_t updates) {
  const schedule *s = &p->plan;
  size_t trained =
      updates == 0 ? 0 : s->updates[updates - 1].first_batch + s->updates[updates - 1].n_batches;
  return b >= trained && s->segments[s->batches[b].first_segment].version < (int64_t)updates;
}

static gl_status save_following(following *p, size_t updates) {
  const schedule *s = &p->plan;
  checkpoint c = {0};
  for (size_t b = 0; b < s->n_batches; ++b) c.n_batches += (size_t)is_pending(p, b, updates);
  c.batches = MUST_ARRAY(checkpoint_batch, c.n_batches, "a checkpoint");
  for (size_t b = 0, n = 0; b < s->n_batches; ++b)
    if (is_pending(p, b, updates)) c.batches[n++] = (checkpoint_batch){b, p->batches[b]};
  gl_status status = train_save(p->loop, &c);
  free(c.batches);
  return status;
}

/* Resumes from a checkpoint. The clock has been computed again; its times and the waiting batches
 * are compared with the checkpoint's. */
static gl_status resume_following(following *p, checkpoint *c) {
  const schedule *s = &p->plan;
  const size_t updates = c->n_steps;
  int fits =
      updates == 0 || p->loop->out->steps[updates - 1].time_s == s->updates[updates - 1].end_s;
  for (size_t i = 0; i < c->n_batches && fits; ++i) {
    size_t b = (size_t)c->batches[i].number;
    fits = b < s->n_batches && is_pending(p, b, updates) && p->batches[b].token_start == NULL &&
           c->batches[i].drawn.id == followed_unit(p, b).id;
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

static gl_status make_update(following *p, const schedule_update *u) {
  for (size_t b = 0; b < u->n_batches; ++b) p->together[b] = &p->batches[u->first_batch + b];
  train_assemble(p->loop, p->plan.batches + u->first_batch, p->together, u->n_batches);
  gl_status status = train_update(p->loop, u, p->plan.batches[u->first_batch].sampler, p->together);
  for (size_t b = 0; b < u->n_batches; ++b) batch_fini(p->together[b]);
  return status;
}

/* Makes the updates of the schedule from update `from` on. */
static gl_status follow_schedule(following *p, size_t from) {
  gl_status status = GL_OK;
  const run_result *out = p->loop->out;
  for (size_t v = from; v < p->plan.n_updates && status == GL_OK && out->status == RUN_DONE; ++v) {
    const schedule_update *u = &p->plan.updates[v];
    status = draw_version(p, v);
    if (status == GL_OK) status = make_update(p, u);
    if (status == GL_OK) status = train_evaluate(p->loop, v + 1, u->end_s);
    if (status != GL_OK) break;
    int pauses = train_pauses(p->loop);
    if (pauses & TRAIN_SAVE) status = save_following(p, v + 1);
    if (status == GL_OK && pauses & TRAIN_STOP) status = train_stopped(p->loop);
  }
  return status;
}

static void following_allocate(following *p) {
  static const char what[] = "the training loop";
  const schedule *s = &p->plan;
  size_t largest = 0;
  for (size_t u = 0; u < s->n_updates; ++u)
    if (s->updates[u].n_batches > largest) largest = s->updates[u].n_batches;
  p->batches = MUST_ARRAY(batch, s->n_batches, what);
  p->version_start = MUST_ARRAY(size_t, s->n_updates + 1, what);
  p->by_version = MUST_ARRAY(size_t, s->n_segments, what);
  p->batch_of = MUST_ARRAY(size_t, s->n_segments, what);
  p->together = MUST_ARRAY(batch *, largest, what);
  p->span = MUST_ARRAY(draw_span, s->unit_responses, what);
}

gl_status train_follow(train_loop *l, checkpoint *c) {
  following p = {.loop = l};
  gl_status status = schedule_build(&p.plan, l->cluster, l->recipe->seed, l->recipe->steps, l->err);
  if (status == GL_OK) {
    following_allocate(&p);
    train_take_clock(l, &p.plan);
    status = order_segments(&p);
  }
  if (status == GL_OK) status = resume_following(&p, c);
  if (status == GL_OK && l->out->n_evals == 0) status = train_evaluate(l, 0, 0);
  if (status == GL_OK) status = follow_schedule(&p, c->n_steps);
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
