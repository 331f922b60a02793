/* A part of delay_sweep, one seed and no tuning, with one worker and with two. */
#include "experiments/sweep/sweep.h"
#include "experiments/bench/bench.h"
#include "experiments/recipe/recipe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static gl_status cells_per_s(double *rate, const cfg_doc *doc, const char *folder, size_t workers,
                             gl_error *err) {
  char path[64];
  sweep_report report;
  snprintf(path, sizeof path, "%s/%zu.db", folder, workers);
  sweep_options options = {.file = path,
                           .workers = workers,
                           .ranks = {.index = 0, .count = 1},
                           .progress = PROGRESS_SILENT};
  gl_status status = sweep_run(&report, doc, &options, err);
  *rate = (double)report.cells / report.grid_s;
  if (status == GL_OK && report.failed > 0)
    status = gl_fail(err, GL_EIO, "%zu runs failed: %.*s", report.failed,
                     (int)strcspn(report.failures, "\n"), report.failures);
  sweep_report_fini(&report);
  unlink(path);
  return status;
}

gl_status bench_sweep(bench_result *r, gl_error *err) {
  const char *const overrides[] = {"tune=null", "sweep.seed=[1]"};
  char folder[] = "/tmp/gepolab-bench-XXXXXX";
  cfg_doc *doc = NULL;
  double one = NAN, two = NAN;
  if (mkdtemp(folder) == NULL) return gl_fail(err, GL_EIO, "cannot make a folder in /tmp");
  gl_status status = recipe_load(&doc, "delay_sweep", overrides, 2, err);
  if (status == GL_OK) status = cells_per_s(&one, doc, folder, 1, err);
  if (status == GL_OK) status = cells_per_s(&two, doc, folder, 2, err);
  cfg_free(doc);
  rmdir(folder);
  if (status != GL_OK) return status;
  bench_add(r, "cells_per_s_j1", one, NAN, "delay_sweep cells per second, -j 1");
  bench_add(r, "cells_per_s_j2", two, NAN, "delay_sweep cells per second, -j 2");
  bench_add(r, "speed_up_j2", two / one, 2, "speed-up of -j 2");
  return GL_OK;
}
