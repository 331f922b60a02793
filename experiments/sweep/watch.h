/* The one progress bar of a sweep: it counts tuning runs and cells together, goes on from what the
 * file has already, and tells the time left from what runs of each kind took. Prefix: watch_. */
#ifndef GEPOLAB_EXPERIMENTS_SWEEP_WATCH_H
#define GEPOLAB_EXPERIMENTS_SWEEP_WATCH_H

#include "core/base/progress.h"
#include "experiments/sweep/forecast.h"
#include "experiments/sweep/sweep_cells.h"
#include "experiments/train/run_result.h"

#include <stdint.h>

typedef struct watch {
  progress *bar;
  costs *costs;
  double learned_s;  /* what runs of the file took that were learned from at the beginning */
  uint64_t finished; /* of the total: found in the file, or made now */
  uint64_t found;
  double priced; /* when the time left was last computed */
} watch;

/* Learns from the finished runs of the study in the store (which may fail as reading does). total:
 * runs of all phases, found ones included. Release with watch_fini() in any case. */
gl_status watch_init(watch *w, uint64_t total, size_t workers, progress_mode mode, store *s,
                     const char *study, gl_error *err);
void watch_fini(watch *w);

/* A phase begins, of which n runs are in the file already; what was expected before of it and those
 * after is replaced by the next calls of watch_expect(). */
void watch_phase(watch *w, const char *what, size_t n);
/* These cells will be run: cells job[0 .. n) (job NULL: the first n). */
gl_status watch_expect(watch *w, const sweep_cells *cells, const size_t *job, size_t n,
                       gl_error *err);
/* One of them ended. */
void watch_ended(watch *w, const sweep_cell *cell, const run_result *o);
/* Time passes while runs are waited for. */
void watch_tick(watch *w);

#endif
