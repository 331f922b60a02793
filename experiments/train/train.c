/* A run from its first update, or from its checkpoint, to its last. */
#include "experiments/train/internal.h"

#include "core/base/file.h"
#include "experiments/base/process.h"
#include "experiments/base/provenance.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BROKEN_UPDATES = 3 };        /* updates in a row without a number, then a run has diverged */
static const double collapse = 0.1; /* fraction of the best score */

/* --- one update --- */

/* A unit of an update: which draw it is, and where the first unit of its group stands. */
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

static int by_place(const void *a, const void *b) {
  const member *x = a, *y = b;
  if (x->first != y->first) return (x->first > y->first) - (x->first < y->first);
  return (x->number > y->number) - (x->number < y->number);
}

gl_status train_assemble(const train_loop *l, const schedule_batch *units, batch **batches,
                         size_t n) {
  if (!cluster_divides_groups(l->cluster)) return GL_OK;
  member *all = calloc(n + 1, sizeof *all); /* n batches are in memory */
  if (all == NULL) return gl_fail_memory(l->err, "the groups of an update");
  for (size_t i = 0; i < n; ++i) {
    const unit_draw draw = cluster_unit_draw(l->cluster, units[i].id, 1);
    all[i] = (member){draw.id, draw.first_response, i, batches[i]};
  }
  qsort(all, n, sizeof *all, by_group);
  for (size_t i = 1; i < n; ++i)
    if (all[i].group == all[i - 1].group) all[i].first = all[i - 1].first;
  qsort(all, n, sizeof *all, by_place);
  for (size_t i = 0; i < n; ++i) {
    batches[i] = all[i].of;
    batches[i]->continues = i > 0 && all[i].group == all[i - 1].group;
  }
  free(all);
  return GL_OK;
}

gl_status train_update(train_loop *l, const schedule_update *u, uint32_t sampler, batch **batches) {
  step_record *record = &l->out->steps[l->out->n_steps];
  metrics_clear(record->metric);
  for (size_t i = 0; i < u->n_batches; ++i)
    batches[i]->loss_weight =
        cluster_stale_weight(l->cluster, u->version - batch_oldest_version(batches[i]));
  gl_status status =
      l->learner.ops->update(l->learner.self, batches, u->n_batches, record->metric, l->err);
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

/* The parts that the learner's evaluation has; 0 where it has one score. */
static const evaluation_part *parts_of(const train_loop *l, size_t *n) {
  const learner_ops *ops = l->learner.ops;
  *n = 0;
  return ops->parts != NULL ? ops->parts(l->learner.self, n) : NULL;
}

/* Scores all parts and keeps their records; the first is the run's own score. */
static gl_status evaluate_parts(train_loop *l, const evaluation_part *part, size_t n,
                                size_t updates, double time_s, double *score) {
  run_result *o = l->out;
  double *of_part = calloc(n, sizeof *of_part);
  if (of_part == NULL) return gl_fail_memory(l->err, "an evaluation");
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
  const evaluation_part *part = parts_of(l, &n);
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

static void note_collapse(run_result *o) {
  run_scores s = run_result_scores(o);
  if (o->status != RUN_DONE || !(s.last < collapse * s.best)) return;
  o->status = RUN_DIVERGED;
  snprintf(o->reason, sizeof o->reason,
           "collapsed: the last score %.4g is below a tenth of the best, %.4g", s.last, s.best);
}

/* --- between updates --- */

static void note(const train_loop *l, const char *text) {
  if (l->options->note != NULL) l->options->note(l->options->self, text);
}

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
  return gl_fail(
      l->err, GL_EINTERRUPTED, "stopped after %zu of %zu updates%s", made, l->recipe->steps,
      l->folder != NULL && l->saved == made ? "; the same command goes on from there" : "");
}

/* --- beginning and end --- */

/* The most evaluations that the run may make: before it, now and then, after it. */
static size_t most_evaluations(const train_loop *l) {
  return l->recipe->steps / l->recipe->eval_every + 2;
}

static gl_status allocate_rows(train_loop *l) {
  run_result *o = l->out;
  o->steps = calloc(l->recipe->steps + 1, sizeof *o->steps);
  o->evals = calloc(most_evaluations(l), sizeof *o->evals);
  return o->steps != NULL && o->evals != NULL ? GL_OK : gl_fail_memory(l->err, "the training loop");
}

gl_status train_take_clock(train_loop *l, const schedule *s) {
  run_result *o = l->out;
  o->clock = s->clock;
  o->staleness = calloc(s->n_staleness + 1, sizeof *o->staleness);
  if (o->staleness == NULL) return gl_fail_memory(l->err, "the staleness of a run");
  o->n_staleness = s->n_staleness;
  if (s->n_staleness > 0) memcpy(o->staleness, s->staleness, s->n_staleness * sizeof *s->staleness);
  return GL_OK;
}

/* How many parts evaluations have is known when the learner is there. */
static gl_status allocate_set_rows(train_loop *l) {
  size_t n = 0;
  parts_of(l, &n);
  l->out->set_evals = calloc(most_evaluations(l) * n + 1, sizeof *l->out->set_evals);
  return l->out->set_evals != NULL ? GL_OK : gl_fail_memory(l->err, "evaluation sets");
}

/* Moves the records of a checkpoint into the result. */
static gl_status take_rows(train_loop *l, const checkpoint *c) {
  run_result *o = l->out;
  size_t n = 0;
  parts_of(l, &n);
  if (c->n_steps > l->recipe->steps || c->n_evals > most_evaluations(l) ||
      c->n_set_evals != c->n_evals * n)
    return gl_fail(l->err, GL_EINPUT, "%s: has more updates or evaluations than the recipe",
                   l->options->checkpoints);
  memcpy(o->steps, c->steps, c->n_steps * sizeof *o->steps);
  memcpy(o->evals, c->evals, c->n_evals * sizeof *o->evals);
  if (c->n_set_evals > 0) memcpy(o->set_evals, c->set_evals, c->n_set_evals * sizeof *o->set_evals);
  o->n_set_evals = c->n_set_evals;
  o->n_steps = c->n_steps;
  o->n_evals = c->n_evals;
  l->broken = c->broken;
  l->saved = c->n_steps;
  l->earlier_s = c->wall_s;
  return GL_OK;
}

static gl_status load_learner(train_loop *l, const checkpoint *c, FILE *state) {
  gl_error why = {0};
  gl_status status = l->learner.ops->load(l->learner.self, state, &why);
  for (size_t i = 0; i < c->n_batches && status == GL_OK; ++i)
    status = l->learner.ops->adopt(l->learner.self, &c->batches[i].drawn, &why);
  if (status != GL_OK) gl_fail(l->err, status, "%s: %s", l->options->checkpoints, why.text);
  return status;
}

/* Tells the learner to keep keys and values, if the cluster does; GL_EINPUT at its place where it
 * has or keeps none. */
static gl_status keep_cache(train_loop *l) {
  const learner_ops *ops = l->learner.ops;
  gl_error why = {0};
  if (!cluster_keeps_cache(l->cluster)) return GL_OK;
  const cfg_node *at = cfg_find(l->recipe->cluster, "kv_cache");
  if (ops->keep_cache == NULL && at == NULL) return GL_OK; /* a preset's, and there is none */
  if (at == NULL) at = cfg_find(l->recipe->cluster, "preset");
  if (ops->keep_cache == NULL)
    return cfg_fail(at, l->err,
                    "a %s learner's policy is a table, which has no keys and values to keep; leave "
                    "kv_cache out",
                    ops->kind);
  gl_status status = ops->keep_cache(l->learner.self, &why);
  if (status == GL_EINPUT) return cfg_fail(at, l->err, "%s", why.text);
  return status == GL_OK ? status : gl_fail(l->err, status, "%s", why.text);
}

/* Makes the learner, new or as the newest checkpoint has it. */
static gl_status begin_or_resume(train_loop *l, checkpoint *c) {
  const train_options *o = l->options;
  char text[CHECKPOINT_NOTE_SIZE] = "";
  FILE *state = NULL;
  gl_status status = GL_OK;
  if (o->checkpoints != NULL) {
    status = checkpoint_folder_open(&l->folder, o->checkpoints, o->canonical, o->pace.keep, l->err);
    if (status == GL_OK) status = checkpoint_folder_find(l->folder, c, &state, text, l->err);
  }
  const learner_preparation how = {.after_step = o->preparing,
                                   .self = o->self,
                                   .folder = o->checkpoints,
                                   .every = o->pace.every,
                                   .seconds = o->pace.seconds};
  if (status == GL_OK) status = recipe_learner(&l->learner, l->recipe, &how, l->err);
  if (status == GL_OK) status = keep_cache(l);
  if (status == GL_OK) status = allocate_set_rows(l);
  if (status == GL_OK && state != NULL) status = take_rows(l, c);
  if (status == GL_OK && state != NULL) status = load_learner(l, c, state);
  if (state != NULL) fclose(state);
  if (status != GL_OK || state == NULL) return status;
  if (text[0] != '\0') note(l, text);
  snprintf(text, sizeof text, "goes on after update %zu of %zu, from %.300s", c->n_steps,
           l->recipe->steps, o->checkpoints);
  note(l, text);
  return GL_OK;
}

/* A place where nothing can be written is better known now than after the run. */
static gl_status probe(const char *path, gl_error *err) {
  file_writer w;
  if (path == NULL) return GL_OK;
  gl_status status = file_begin(&w, path, err);
  if (status == GL_OK) file_abandon(&w);
  return status;
}

static gl_status save_final(train_loop *l) {
  const char *path = l->options->save_to;
  file_writer w;
  gl_error why = {0};
  if (path == NULL) return GL_OK;
  gl_status status = file_begin(&w, path, l->err);
  if (status != GL_OK) return status;
  status = l->learner.ops->save(l->learner.self, w.stream, &why);
  if (status == GL_OK) return file_commit(&w, l->err);
  int reason = ferror(w.stream) ? errno : 0;
  file_abandon(&w);
  if (reason != 0) return file_fail(path, "written", reason, l->err);
  return gl_fail(l->err, status, "%s", why.text);
}

gl_status train_run(run_result *out, const recipe *r, const train_options *options, gl_error *err) {
  *out = (run_result){.status = RUN_DONE};
  checkpoint resumed = {0};
  cluster_spec *cluster = NULL;
  train_loop l = {
      .recipe = r, .options = options, .out = out, .err = err, .begun_s = seconds_now()};
  l.saved_s = l.begun_s;
  gl_status status = probe(options->save_to, err);
  if (status == GL_OK) status = cluster_parse(&cluster, r->cluster, r->groups, r->group_size, err);
  if (status == GL_OK) status = recipe_check_filter(r, cluster, err);
  l.cluster = cluster;
  if (status == GL_OK) status = allocate_rows(&l);
  if (status == GL_OK) status = begin_or_resume(&l, &resumed);
  if (status == GL_OK)
    status = cluster_is_coupled(cluster) ? train_coupled(&l, &resumed) : train_replay(&l, &resumed);
  if (status == GL_OK) status = save_final(&l);
  if (status == GL_OK && options->at_end != NULL)
    status = options->at_end(options->self, &l.learner, err);
  if (status == GL_OK) note_collapse(out);
  checkpoint_fini(&resumed);
  checkpoint_folder_close(l.folder);
  learner_fini(&l.learner);
  cluster_free(cluster);
  out->wall_s = l.earlier_s + seconds_now() - l.begun_s;
  out->peak_bytes = provenance_peak_bytes();
  return status;
}
