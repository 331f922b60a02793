/* Loads a study for its report. */
#include "experiments/report/study_internal.h"

#include "core/store/plan.h"

#include <stdlib.h>
#include <string.h>

static int compare_seeds(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static gl_status find_seeds(report_study *t, gl_error *err) {
  t->seeds = calloc(t->r->n_runs + 1, sizeof *t->seeds);
  if (t->seeds == NULL) return gl_fail_memory(err, "the seeds of a study");
  for (size_t i = 0; i < t->r->n_runs; ++i) t->seeds[i] = t->r->runs[i].seed;
  qsort(t->seeds, t->r->n_runs, sizeof *t->seeds, compare_seeds);
  for (size_t i = 0; i < t->r->n_runs; ++i)
    if (t->n_seeds == 0 || t->seeds[t->n_seeds - 1] != t->seeds[i])
      t->seeds[t->n_seeds++] = t->seeds[i];
  return GL_OK;
}

static void count_runs(report_study *t) {
  for (size_t i = 0; i < t->r->n_runs; ++i) {
    t->done += t->r->runs[i].status == RUN_DONE;
    t->diverged += t->r->runs[i].status == RUN_DIVERGED;
    t->failed += t->r->runs[i].status == RUN_FAILED;
  }
}

static gl_status load_runs(report_study *t, gl_error *err) {
  results *r = NULL;
  gl_status status = results_load(&r, t->from, t->name, err);
  if (status != GL_OK) return status;
  status = summary_init(&t->s, r, err);
  if (status != GL_OK) {
    results_free(r);
    return status;
  }
  t->r = r;
  count_runs(t);
  return find_seeds(t, err);
}

gl_status study_init(report_study *t, const report_request *q, store *from, const char *name,
                     size_t number, gl_error *err) {
  *t = (report_study){.q = q, .from = from, .name = name};
  snprintf(t->id, sizeof t->id, "s%zu", number);
  study_progress progress;
  gl_status status = store_progress(from, name, &progress, err);
  if (status == GL_OK && progress.done + progress.diverged + progress.failed > 0)
    status = load_runs(t, err);
  if (status == GL_OK) status = study_find_gaps(t, err);
  return status == GL_OK ? study_find_recipes(t, err) : status;
}

void study_fini(report_study *t) {
  for (size_t i = 0; i < t->n_gaps; ++i)
    free(t->gaps[i].algorithm), free(t->gaps[i].setting), free(t->gaps[i].seeds);
  for (size_t i = 0; i < t->n_recipes; ++i) free(t->recipes[i]);
  free(t->gaps), free(t->recipes), free(t->seeds);
  if (t->r != NULL) summary_fini(&t->s);
  results_free(t->r);
  *t = (report_study){0};
}

char *study_seeds_text(const uint64_t *seeds, size_t n) {
  char *text = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&text, &size);
  if (to == NULL) return NULL;
  for (size_t i = 0, k; i < n; i = k + 1) {
    for (k = i; k + 1 < n && seeds[k + 1] == seeds[k] + 1;) ++k;
    if (k < i + 2) k = i; /* two in a row are told one by one */
    fprintf(to, "%s%llu", i > 0 ? ", " : "", (unsigned long long)seeds[i]);
    if (k > i) fprintf(to, " to %llu", (unsigned long long)seeds[k]);
  }
  if (fclose(to) == 0) return text;
  free(text);
  return NULL;
}

const char *study_setting(const report_study *t, size_t group) {
  const char *heading = t->r->groups[group].heading;
  return *heading ? heading : "the only setting";
}

int has_runs(const report_study *t) {
  return t->r != NULL;
}

int has_grid(const report_study *t) {
  return has_runs(t) || t->is_planned;
}
