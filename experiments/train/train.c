/* Runs a recipe from its first update, or from its checkpoint, to its last; computes scores; and
 * serialises the result. */
#include "experiments/train/internal.h"

#include "core/base/file.h"
#include "core/config/config.h"
#include "experiments/base/memory.h"
#include "experiments/base/program.h"
#include "experiments/base/provenance.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- results --- */

void run_result_fini(run_result *o) {
  free(o->steps);
  free(o->evals);
  free(o->set_evals);
  free(o->staleness);
  free(o->fates);
  free(o->in_effect);
  *o = (run_result){0};
}

run_scores run_result_scores(const run_result *o) {
  run_scores s = {NAN, NAN, NAN, NAN, NAN};
  if (o->n_evals == 0) return s;
  s.eval_first = o->evals[0].eval_score;
  s.best = s.eval_first;
  double quarter = 0.75 * (double)o->evals[o->n_evals - 1].step, sum = 0;
  size_t counted = 0;
  for (size_t i = 0; i < o->n_evals; ++i) {
    double score = o->evals[i].eval_score;
    s.best = fmax(s.best, score);
    if ((double)o->evals[i].step < quarter) continue;
    sum += score;
    ++counted;
  }
  s.last = o->evals[o->n_evals - 1].eval_score;
  s.best_to_last = s.best - s.last;
  s.last_quarter = sum / (double)counted;
  return s;
}

/* --- between processes --- */
/* Writes the struct, then its arrays. */

/* An empty array may be NULL, which fwrite() does not accept. */
static int write_array(const void *items, size_t item, size_t n, FILE *to) {
  return n == 0 || fwrite(items, item, n, to) == n;
}

gl_status run_result_write(const run_result *o, FILE *to, gl_error *err) {
  int ok = fwrite(o, sizeof *o, 1, to) == 1;
  ok = ok && write_array(o->steps, sizeof *o->steps, o->n_steps, to);
  ok = ok && write_array(o->evals, sizeof *o->evals, o->n_evals, to);
  ok = ok && write_array(o->set_evals, sizeof *o->set_evals, o->n_set_evals, to);
  ok = ok && write_array(o->staleness, sizeof *o->staleness, o->n_staleness, to);
  ok = ok && write_array(o->fates, sizeof *o->fates, o->n_fates, to);
  ok = ok && write_array(o->in_effect, 1, o->n_in_effect, to);
  if (ok) return GL_OK;
  return gl_fail(err, GL_EIO, "cannot hand over a finished run: %s", strerror(errno));
}

/* Copies the next n items from the bytes; NULL and *ok = 0 if there are fewer. */
static void *next_array(const char **at, size_t *left, size_t n, size_t item, int *ok) {
  if (!*ok || n > *left / item) {
    *ok = 0;
    return NULL;
  }
  void *copy = must_alloc(n, item, "a worker's result");
  if (n > 0) memcpy(copy, *at, n * item);
  *at += n * item;
  *left -= n * item;
  return copy;
}

gl_status run_result_read(run_result *o, const void *bytes, size_t size, gl_error *err) {
  *o = (run_result){0};
  if (size < sizeof *o)
    return gl_fail(err, GL_EIO, "a worker's result is cut short after %zu bytes", size);
  run_result head;
  memcpy(&head, bytes, sizeof head);
  const char *at = (const char *)bytes + sizeof head;
  size_t left = size - sizeof head;
  int ok = 1;
  head.steps = next_array(&at, &left, head.n_steps, sizeof *head.steps, &ok);
  head.evals = next_array(&at, &left, head.n_evals, sizeof *head.evals, &ok);
  head.set_evals = next_array(&at, &left, head.n_set_evals, sizeof *head.set_evals, &ok);
  head.staleness = next_array(&at, &left, head.n_staleness, sizeof *head.staleness, &ok);
  head.fates = next_array(&at, &left, head.n_fates, sizeof *head.fates, &ok);
  head.in_effect = next_array(&at, &left, head.n_in_effect, 1, &ok);
  if (!ok || left != 0) {
    run_result_fini(&head);
    return gl_fail(err, GL_EIO, "a worker's result of %zu bytes does not fit its own counts", size);
  }
  *o = head;
  return GL_OK;
}

/* --- the run --- */

static const double collapse = 0.1; /* fraction of the best score */

static void note_collapse(run_result *o) {
  run_scores s = run_result_scores(o);
  if (o->status != RUN_DONE || !(s.best > 0 && s.last < collapse * s.best)) return;
  o->status = RUN_DIVERGED;
  snprintf(o->reason, sizeof o->reason,
           "score lost: the last one, %.4g, is below a tenth of the best, %.4g", s.last, s.best);
}

/* --- between updates --- */

static void report_note(const train_loop *l, const char *text) {
  if (l->options->note != NULL) l->options->note(l->options->self, text);
}

/* --- beginning and end --- */

/* The maximum number of evaluations of the run: before it, during it, and after it. */
static size_t most_evaluations(const train_loop *l) {
  return l->recipe->steps / l->recipe->eval_every + 2;
}

static void allocate_rows(train_loop *l) {
  l->out->steps = MUST_ARRAY(step_record, l->recipe->steps, "the training loop");
  l->out->evals = MUST_ARRAY(eval_record, most_evaluations(l), "the training loop");
}

/* Allocates the records of evaluation sets. Their number is known only after the learner is
 * made. */
static void allocate_set_rows(train_loop *l) {
  size_t n = 0;
  train_parts(l, &n);
  l->out->set_evals =
      must_alloc(most_evaluations(l) * n, sizeof *l->out->set_evals, "evaluation sets");
}

/* Moves the records of a checkpoint into the result. */
static gl_status take_rows(train_loop *l, const checkpoint *c) {
  run_result *o = l->out;
  size_t n = 0;
  train_parts(l, &n);
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

/* Moves the replay buffer, which is the last batch of a checkpoint, to the loop. */
static gl_status take_replay_buffer(train_loop *l, checkpoint *c) {
  if (c->n_batches == 0 || c->batches[c->n_batches - 1].number != CHECKPOINT_REPLAY) return GL_OK;
  batch *b = &l->replay_buffer, *last = &c->batches[--c->n_batches].drawn;
  *b = *last;
  *last = (batch){0};
  bool fits = b->n_groups == b->n_responses && b->n_responses <= l->recipe->replay.size;
  for (size_t g = 0; g < b->n_groups && fits; ++g) fits = b->group_start[g + 1] == g + 1;
  return fits ? GL_OK : train_misfit(l);
}

/* Makes the learner keep keys and values if the cluster does. Errors: GL_EINPUT at the field's
 * position (the learner has no such cache). */
static gl_status keep_cache(train_loop *l) {
  const learner_ops *ops = l->learner.ops;
  gl_error why = {0};
  if (!cluster_keeps_cache(l->cluster)) return GL_OK;
  const cfg_node *at = cfg_find(l->recipe->cluster, "kv_cache");
  if (ops->keep_cache == NULL && at == NULL)
    return GL_OK; /* a preset requested it, and this learner has no cache */
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

/* Makes the learner: new, or restored from the newest checkpoint. */
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
  if (status == GL_OK) allocate_set_rows(l);
  if (status == GL_OK && state != NULL) status = take_rows(l, c);
  if (status == GL_OK && state != NULL) status = load_learner(l, c, state);
  if (status == GL_OK && state != NULL) status = take_replay_buffer(l, c);
  if (state != NULL) fclose(state);
  if (status != GL_OK || state == NULL) return status;
  if (text[0] != '\0') report_note(l, text);
  snprintf(text, sizeof text, "goes on after update %zu of %zu, from %.300s", c->n_steps,
           l->recipe->steps, o->checkpoints);
  report_note(l, text);
  return GL_OK;
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
  gl_status status = file_check(options->save_to, err);
  recipe again;
  cfg_record_begin();
  if (status == GL_OK) status = recipe_read_at(&again, r->root, err);
  if (status == GL_OK) status = cluster_parse(&cluster, r->cluster, r->groups, r->group_size, err);
  if (status == GL_OK) status = recipe_check_filter(r, cluster, err);
  l.cluster = cluster;
  if (status == GL_OK) allocate_rows(&l);
  if (status == GL_OK) status = begin_or_resume(&l, &resumed);
  out->in_effect = cfg_record_end();
  out->n_in_effect = out->in_effect != NULL ? strlen(out->in_effect) + 1 : 0;
  if (status == GL_OK)
    status = cluster_is_coupled(cluster) ? train_coupled(&l, &resumed) : train_follow(&l, &resumed);
  if (status == GL_OK) status = save_final(&l);
  if (status == GL_OK && options->at_end != NULL)
    status = options->at_end(options->self, &l.learner, err);
  if (status == GL_OK) note_collapse(out);
  checkpoint_fini(&resumed);
  batch_fini(&l.replay_buffer);
  checkpoint_folder_close(l.folder);
  learner_fini(&l.learner);
  cluster_free(cluster);
  out->wall_s = l.earlier_s + seconds_now() - l.begun_s;
  out->peak_bytes = provenance_peak_bytes();
  return status;
}
