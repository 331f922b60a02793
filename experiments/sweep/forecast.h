/* Time that the runs of a sweep take, and time that is left: means by kind of run, the throughput
 * of a study that is being written, and the progress bar of a sweep. */
#ifndef GEPOLAB_EXPERIMENTS_SWEEP_FORECAST_H
#define GEPOLAB_EXPERIMENTS_SWEEP_FORECAST_H

#include "core/base/error.h"
#include "core/base/progress.h"
#include "core/store/store.h"
#include "experiments/sweep/sweep_cells.h"
#include "experiments/train/run_result.h"

#include <stddef.h>
#include <stdint.h>

/* --- mean times by kind of run --- */

/* Wall-clock seconds per update, measured on finished runs and predicted for the remaining ones.
 *
 * Runs of one algorithm at one setting are of one kind, whatever their seed and learning rate. The
 * prediction is the mean over finished runs of the same kind; else over those of the same
 * algorithm; else over all. A run that diverged early counts with all its planned updates, since
 * others may end early likewise. Prefix: costs_. */

typedef struct costs costs;
typedef struct costs_kind costs_kind; /* owned by its costs */

/* Release with costs_free(). */
costs *costs_new(void);
void costs_free(costs *c);

/* The kind of runs with that shown name and those settings (canonical JSON of a cell's swept
 * fields; its optimizer.lr does not count). */
costs_kind *costs_of(costs *c, const char *algorithm, const char *swept);

/* One more run of the kind is to be made, of so many updates; all of a kind make as many. 0: the
 * number is not known, and a run is expected to take as long as others did whatever their number.
 */
void costs_expect(costs_kind *k, size_t updates);
/* No more runs of any kind are to be made; what was learned stays. */
void costs_expect_nothing(costs *c);
/* One of them ended after so many seconds; as it failed, it teaches nothing. */
void costs_ended(costs_kind *k, double wall_s, int failed);
/* A run of an earlier sweep, which was to make so many updates, took so long. */
void costs_learn(costs_kind *k, double wall_s, size_t updates);

/* Seconds that a run of the kind is expected to take; NaN as long as no run at all ended. */
double costs_run_s(const costs_kind *k);
/* Seconds that all runs ended and learned from took. */
double costs_spent_s(const costs *c);
/* How many runs were learned from. */
size_t costs_runs(const costs *c);
/* Seconds of work that is left, summed over runs; NaN where nothing is known. */
double costs_left_s(const costs *c);
/* Seconds until so many workers have done what is left: shared evenly, and no less than the longest
 * run. 0 where nothing is left, NaN where nothing is known. */
double costs_wait_s(const costs *c, size_t workers);

/* Bytes of memory that the largest run learned from the store took; 0: not known. */
int64_t costs_peak_bytes(const costs *c);

/* Learns from the finished runs of that study in the store: their wall_s and peak_bytes. */
gl_status costs_read(costs *c, store *s, const char *study, gl_error *err);

/* --- how fast runs have finished lately --- */

typedef struct sweep_outlook {
  double per_s;  /* runs that finished a second, over the last ones; NaN: too few finished */
  double left_s; /* until the missing ones are there, if work goes on as it did then; NaN */
} sweep_outlook;

/* Of one study of the store, tuning runs and cells of the grid alike. Missing ones take what
 * finished runs of their kind took (experiments/sweep/costs.h), and are worked at as many at a time
 * as the last twenty runs were. Tuning runs of before format 4 do not say what they took. */
gl_status sweep_outlook_read(sweep_outlook *out, store *s, const char *study, gl_error *err);

/* --- watching a sweep --- */

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
void watch_expect(watch *w, const sweep_cells *cells, const size_t *job, size_t n);
/* One of them ended. */
void watch_ended(watch *w, const sweep_cell *cell, const run_result *o);
/* Time passes while runs are waited for. */
void watch_tick(watch *w);

#endif
