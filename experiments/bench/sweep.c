/* A part of delay_sweep, one seed and no tuning, with one worker and with two; and of
 * llm_delay_sweep with two. */
#include "experiments/sweep/sweep.h"
#include "experiments/bench/bench.h"
#include "experiments/recipe/recipe.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct sweep_work {
  const cfg_doc *doc;
  char path[64]; /* the study, made anew every time */
  size_t workers, cells;
} sweep_work;

static gl_status run_sweep(void *self, gl_error *err) {
  sweep_work *w = self;
  sweep_report report;
  sweep_options options = {.file = w->path,
                           .workers = w->workers,
                           .ranks = {.index = 0, .count = 1},
                           .progress = PROGRESS_SILENT};
  gl_status status = sweep_run(&report, w->doc, &options, err);
  w->cells = report.cells;
  if (status == GL_OK && report.failed > 0)
    status = gl_fail(err, GL_EIO, "%zu runs failed: %.*s", report.failed,
                     (int)strcspn(report.failures, "\n"), report.failures);
  sweep_report_fini(&report);
  unlink(w->path);
  return status;
}

typedef struct sweep_case {
  const char *key, *what, *recipe;
  const char *const *overrides;
  size_t n_overrides, workers;
  double cells, per; /* cells of one run; 3600: the rate is by the hour */
} sweep_case;

static gl_status measure(bench *b, bench_number **number, const sweep_case *c, const char *folder,
                         gl_error *err) {
  cfg_doc *doc = NULL;
  sweep_work w = {.workers = c->workers};
  snprintf(w.path, sizeof w.path, "%s/study.db", folder);
  gl_status status = recipe_load(&doc, c->recipe, c->overrides, c->n_overrides, err);
  w.doc = doc;
  if (status == GL_OK)
    status = bench_measure(b, number, c->key, c->what, c->cells * c->per, 0, run_sweep, &w, err);
  cfg_free(doc);
  if (status == GL_OK && (*number)->rate.n > 0 && (double)w.cells != c->cells)
    status =
        gl_fail(err, GL_EINTERNAL, "%s has %zu cells instead of %g", c->recipe, w.cells, c->cells);
  return status;
}

static gl_status measure_all(bench *b, const char *folder, gl_error *err) {
  static const char *const toy[] = {"tune=null", "sweep.seed=[1]"};
  static const char *const llm[] = {"tune=null", "sweep.seed=[1]", "sweep.algorithm=[gepo]",
                                    "sweep.cluster.max_delay=[120, 600]"};
  static const sweep_case cases[] = {
      {"cells_per_s_j1", "cells a second of delay_sweep, -j 1", "delay_sweep", toy, 2, 1, 32, 1},
      {"cells_per_s_j2", "cells a second of delay_sweep, -j 2", "delay_sweep", toy, 2, 2, 32, 1},
      {"llm_cells_per_hour_j2", "cells an hour of llm_delay_sweep, -j 2, warmed up",
       "llm_delay_sweep", llm, 4, 2, 2, 3600}};
  bench_number *number[3] = {NULL};
  gl_status status = GL_OK;
  for (size_t i = 0; i < 3 && status == GL_OK; ++i)
    status = measure(b, &number[i], &cases[i], folder, err);
  if (status != GL_OK || number[0]->rate.n == 0 || number[1]->rate.n == 0) return status;
  return bench_derived(b, "speed_up_j2", number[1]->rate.median / number[0]->rate.median,
                       number[0]->rate.load, number[1]->rate.load, 2, "speed-up of -j 2", err);
}

/* Removes a folder of files. */
static void remove_folder(const char *folder) {
  char path[4096];
  DIR *d = opendir(folder);
  for (struct dirent *e = d != NULL ? readdir(d) : NULL; e != NULL; e = readdir(d)) {
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    if (e->d_name[0] != '.') unlink(path);
  }
  if (d != NULL) closedir(d);
  rmdir(folder);
}

/* Warm-ups are kept in the scratch folder, so that every call makes them once, in the run that is
 * not counted, and the user's own cache stays as it is. */
gl_status bench_sweep(bench *b, gl_error *err) {
  char folder[] = "/tmp/gepolab-bench-XXXXXX", cache[64];
  const char *kept = getenv("GEPOLAB_CACHE");
  char *before = kept != NULL ? strdup(kept) : NULL;
  if ((kept != NULL && before == NULL) || mkdtemp(folder) == NULL) {
    free(before);
    return gl_fail(err, GL_EIO, "cannot make a folder in /tmp");
  }
  snprintf(cache, sizeof cache, "%s/cache", folder);
  setenv("GEPOLAB_CACHE", cache, 1);
  gl_status status = measure_all(b, folder, err);
  if (before != NULL)
    setenv("GEPOLAB_CACHE", before, 1);
  else
    unsetenv("GEPOLAB_CACHE");
  free(before);
  remove_folder(cache);
  remove_folder(folder);
  return status;
}
