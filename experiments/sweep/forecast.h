/* Run-time estimates of a sweep: mean durations by kind of run, the throughput of a study that is
 * being written, and a sweep's progress bar. */
#ifndef GEPOLAB_EXPERIMENTS_SWEEP_FORECAST_H
#define GEPOLAB_EXPERIMENTS_SWEEP_FORECAST_H

#include "core/base/error.h"
#include "core/base/progress.h"
#include "core/store/store.h"
#include "experiments/sweep/grid.h"
#include "experiments/train/run_result.h"

#include <stddef.h>
#include <stdint.h>

/* --- mean times by kind of run --- */

/* Wall-clock seconds per update, measured on finished runs and predicted for the remaining ones.
 *
 * Runs of one algorithm in one setting are of one kind, whatever their seed and learning rate. The
 * prediction is the mean over finished runs of the same kind, else of the same algorithm, else over
 * all runs. A run that diverged early counts with all its planned updates, because other runs may
 * also end early. Prefix: costs_. */

typedef struct costs costs;
typedef struct costs_kind costs_kind; /* owned by its costs */

/* Release with costs_free(). */
costs *costs_new(void);
void costs_free(costs *c);

/* Returns the kind of runs with that shown name and those settings (canonical JSON of a cell's
 * swept fields, ignoring optimizer.lr). */
costs_kind *costs_of(costs *c, const char *algorithm, const char *swept);

/* Adds a run of that kind to those to be made. updates: the same for all runs of a kind; 0:
 * unknown, and the run is expected to take as long as others did, whatever their number of updates.
 */
void costs_expect(costs_kind *k, size_t updates);
/* Resets the runs to be made to zero; the measured durations are kept. */
void costs_expect_nothing(costs *c);
/* Reports that a run to be made ended after wall_s seconds. The duration of a failed run is
 * ignored. */
void costs_ended(costs_kind *k, double wall_s, int failed);
/* Adds the duration of a run from an earlier sweep with that many planned updates. */
void costs_learn(costs_kind *k, double wall_s, size_t updates);

/* Expected duration of a run of that kind in seconds; NaN if no run has ended yet. */
double costs_run_s(const costs_kind *k);
/* Total seconds of the runs that ended, each as long as the mean of its kind. The work left in the
 * same unit is costs_left_s(), so their ratio holds where the machine's load has changed since
 * earlier runs. */
double costs_spent_s(const costs *c);
/* Number of measured runs. */
size_t costs_runs(const costs *c);
/* Total seconds of the runs still to be made; NaN if unknown. */
double costs_left_s(const costs *c);
/* Seconds until `workers` workers finish the remaining runs: the work divided evenly, and at least
 * the longest run. 0 if nothing is left, NaN if unknown. */
double costs_wait_s(const costs *c, size_t workers);

/* Largest peak memory in bytes of the runs read from the store; 0: unknown. */
int64_t costs_peak_bytes(const costs *c);

/* Adds the finished runs of that study in the store: their wall_s and peak_bytes. */
gl_status costs_read(costs *c, store *s, const char *study, gl_error *err);

/* --- recent throughput --- */

typedef struct sweep_outlook {
  double per_s;  /* finished runs per second, over the most recent ones; NaN: none */
  double left_s; /* seconds until the missing runs are done at the recent degree of parallelism,
                    from the end of the last run; NaN: unknown */
  double ended_s, run_s; /* the end of the last run, seconds since 1970, and the mean duration of
                            the recent ones; NaN: none */
  int at_most; /* 1: only one run is recent. Others may run beside it, so left_s may be too long */
} sweep_outlook;

/* Estimates for one study in the store, over tuning runs and cells of the grid. Missing runs are
 * expected to take as long as finished runs of their kind (costs_…), with as many in parallel as
 * the last twenty runs had. If the study was swept with one recipe, their numbers of updates and
 * the later rungs of its tuning are known. Tuning runs of files before format 4 have no durations.
 */
gl_status sweep_outlook_read(sweep_outlook *out, store *s, const char *study, gl_error *err);
/* The seconds left of a study that is being written, at that time (seconds since 1970): what has
 * passed since the end of the last run counts, but no more than a run takes, because the sweep may
 * have been stopped since. NaN: unknown. */
double sweep_outlook_left_s(const sweep_outlook *o, double now_s);

/* --- watching a sweep --- */

typedef struct sweep_progress {
  progress *bar;
  costs *costs;
  uint64_t finished;  /* runs found in the file or completed now, out of the total */
  uint64_t found;     /* of `finished`, those that were in the file */
  double estimated_s; /* time of the last estimate */
} sweep_progress;

/* Starts a progress display and reads the durations of the study's finished runs from the store.
 * total: runs of all phases, including those in the file. Release with sweep_progress_fini(), also
 * after an error. Errors: those of costs_read(). */
gl_status sweep_progress_init(sweep_progress *w, uint64_t total, size_t workers, progress_mode mode,
                              store *s, const char *study, gl_error *err);
void sweep_progress_fini(sweep_progress *w);

/* Begins a phase of which n runs are already in the file. The following calls of
 * sweep_progress_expect() replace earlier expectations for this and later phases. */
void sweep_progress_phase(sweep_progress *w, const char *what, size_t n);
/* Adds the cells job[0 .. n) to the runs to be made (job NULL: the first n). */
void sweep_progress_expect(sweep_progress *w, const sweep_cells *cells, const size_t *job,
                           size_t n);
/* Reports the end of a run that was expected. */
void sweep_progress_ended(sweep_progress *w, const sweep_cell *cell, const run_result *o);
/* Updates the display while waiting. */
void sweep_progress_tick(sweep_progress *w);

#endif
