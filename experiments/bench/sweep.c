/* A part of delay_sweep, one seed and no tuning, with one worker and with two; and of
 * llm_delay_sweep with two. */
#include "experiments/sweep/sweep.h"
#include "experiments/bench/bench.h"
#include "experiments/recipe/recipe.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct sweep_work {
  cfg_doc *doc;  /* owned */
  char path[96]; /* the study, made anew every time */
  size_t workers, cells;
} sweep_work;

static gl_status time_sweep_run(void *self, gl_error *err) {
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

static gl_status time_sweep_load(sweep_work *w, bench_row *row, const sweep_case *c,
                                 const char *folder, gl_error *err) {
  cfg_doc *doc = NULL;
  gl_status status = recipe_load(&doc, c->recipe, c->overrides, c->n_overrides, err);
  *w = (sweep_work){.doc = doc, .workers = c->workers};
  snprintf(w->path, sizeof w->path, "%s/%s.db", folder, c->key);
  *row = (bench_row){c->key, c->what, c->cells * c->per, time_sweep_run, w};
  return status;
}

/* Two at most are measured in turns. */
static gl_status time_sweep_measure(bench *b, bench_number *number[], const sweep_case *cases,
                                    size_t n, const char *folder, gl_error *err) {
  sweep_work w[2] = {{.doc = NULL}};
  bench_row rows[2];
  gl_status status = GL_OK;
  for (size_t i = 0; i < n && status == GL_OK; ++i)
    status = time_sweep_load(&w[i], &rows[i], &cases[i], folder, err);
  if (status == GL_OK) status = bench_measure_in_turns(b, number, rows, n, 0, err);
  for (size_t i = 0; i < n; ++i) {
    if (status == GL_OK && number[i]->rate.n > 0 && (double)w[i].cells != cases[i].cells)
      status = gl_fail(err, GL_EINTERNAL, "%s has %zu cells instead of %g", cases[i].recipe,
                       w[i].cells, cases[i].cells);
    cfg_free(w[i].doc);
  }
  return status;
}

static gl_status measure_all(bench *b, const char *folder, gl_error *err) {
  static const char *const toy[] = {"tune=null", "sweep.seed=[1]"};
  static const char *const llm[] = {"tune=null", "sweep.seed=[1]", "sweep.algorithm=[gepo]",
                                    "sweep.cluster.max_delay=[120, 600]"};
  static const sweep_case workers[] = {
      {"cells_per_s_j1", "cells a second of delay_sweep, -j 1", "delay_sweep", toy, 2, 1, 32, 1},
      {"cells_per_s_j2", "cells a second of delay_sweep, -j 2", "delay_sweep", toy, 2, 2, 32, 1}};
  static const sweep_case hourly = {"llm_cells_per_hour_j2",
                                    "cells an hour of llm_delay_sweep, -j 2, warmed up",
                                    "llm_delay_sweep",
                                    llm,
                                    4,
                                    2,
                                    2,
                                    3600};
  bench_number *number[2] = {NULL}, *llm_number = NULL;
  gl_status status = time_sweep_measure(b, number, workers, 2, folder, err);
  if (status == GL_OK && number[1]->rate.n > 0)
    status = bench_speed_up(b, "speed_up_j2", number[0], number[1], 2,
                            "speed-up of -j 2, measured in turns", err);
  return status == GL_OK ? time_sweep_measure(b, &llm_number, &hourly, 1, folder, err) : status;
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
