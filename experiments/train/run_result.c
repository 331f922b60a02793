/* The result of a run: its scores, and its way from a worker process to the writer. */
#include "experiments/train/run_result.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
/* The struct itself, then its arrays. */

/* An array that is empty may have no address, which fwrite() may not be given. */
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

/* Copies the next n items out of the bytes; NULL and *ok = 0 if they are not all there. */
static void *next_array(const char **at, size_t *left, size_t n, size_t item, int *ok) {
  if (!*ok || n > *left / item) {
    *ok = 0;
    return NULL;
  }
  void *copy = calloc(n > 0 ? n : 1, item);
  if (copy == NULL) {
    *ok = 0;
    return NULL;
  }
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
