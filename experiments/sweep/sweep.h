/* Runs a sweep: from a checked recipe to a filled study file, with tuning runs before the grid. */
#ifndef GEPOLAB_EXPERIMENTS_SWEEP_SWEEP_H
#define GEPOLAB_EXPERIMENTS_SWEEP_SWEEP_H

#include "core/base/error.h"
#include "core/base/progress.h"
#include "core/config/config.h"
#include "core/store/store.h"
#include "experiments/sweep/grid.h"
#include "experiments/sweep/worker_processes.h"
#include "experiments/train/run_result.h"

#include <stddef.h>

typedef struct sweep_options {
  const char *file; /* the study file; with several ranks each appends its number */
  size_t workers;
  ranks ranks;
  progress_mode progress;
  const char *checkpoints; /* folder with a subfolder per cell; NULL: beside the study file if the
                              recipe has a `checkpoint` section, else no checkpoints */
  size_t checkpoint_every; /* in updates; 0: as in the recipe */
  int replaces_plan; /* 1: the recipe's grid replaces the study's plan; 0: it is added to the plan
                      */
} sweep_options;

enum { SWEEP_FAILURES_TOLD = 10 };

typedef struct sweep_report {
  size_t tuning_runs, tuning_known; /* runs made now, runs found in the file */
  size_t tuning_failed;             /* failed runs among those made now */
  size_t cells, known;              /* cells of this shard; known: found finished in the file */
  size_t done, diverged, failed;    /* results of the cells made now */
  double tuning_s, grid_s;
  tuned_fields tuned; /* the fields that `tune` chooses; borrowed from the recipe, like the values
                         of choices */
  sweep_choice *choices; /* [n_choices], owned */
  size_t n_choices;
  size_t superseded; /* runs of the study in the file that are superseded */
  char *failures; /* one line for each of the first SWEEP_FAILURES_TOLD runs that failed now, with
                     algorithm, seed, settings and reason; owned, NULL: none */
} sweep_report;

/* Reads the sweep and all its cells, and checks that this machine has the devices and the memory
 * they need. Only then opens the file, stores the plan and runs what is missing. A failed cell is
 * counted, stored as failed, and repeated by the next call. If a tuning run failed, the result is
 * GL_EIO with out->tuning_failed, and the grid is not started: the missing score could change the
 * choice. Release *out with sweep_report_fini(), also after an error. */
gl_status sweep_run(sweep_report *out, const cfg_doc *doc, const sweep_options *options,
                    gl_error *err);
void sweep_report_fini(sweep_report *r);

/* Writes the folder of a cell's checkpoints to path[PATH_MAX]: root/KEY, or if root is NULL
 * file.checkpoints/KEY. */
gl_status sweep_checkpoints(char *path, const char *root, const char *file, const sweep_cell *cell,
                            gl_error *err);
/* Removes the checkpoints in that folder, the folder, and file.checkpoints if it is then empty. */
void sweep_clear_checkpoints(const char *path);

/* Stores the run of one cell. */
gl_status sweep_store_cell(store *to, const char *study_name, const sweep_cell *cell,
                           const run_result *o, gl_error *err);

/* --- surveying a sweep without running it --- */

/* A preview of a sweep: its cells, which of them are already in the file, and the expected duration
 * of the rest. */

typedef struct sweep_survey {
  const char *study; /* borrowed from the recipe's document, like the grids */
  sweep_grid grid;   /* its axes with their values */
  sweep_grid tuning; /* n_axes 0: the recipe has no `tune` */
  cfg_doc *steps;    /* owned; the rungs of successive halving, borrowed by `tuning` */
  size_t tuning_runs, tuning_known; /* total, and those with scores in the file */
  size_t cells, known;              /* of this shard: total, and those finished in the file */
  int rates_open; /* 1: rates are chosen after all tuning runs. Until then it is unknown which cells
                     are in the file, and `known` is 0 */
  size_t learned_from;   /* finished runs of the study in the file, used for the estimates */
  double work_s, wait_s; /* seconds for everything that is left: total over runs, and elapsed with
                            the options' workers; NaN: unknown */
  size_t timed_updates;  /* of a cell that was run for the estimate, as no run of the study had
                            finished; 0: none was */
  int64_t peak_bytes;    /* largest memory use of those runs; 0: unknown */
} sweep_survey;

void sweep_survey_fini(sweep_survey *v);

/* Reads the recipe and the file, if it exists (options->file NULL: none), checks this machine
 * against what is left, and writes nothing. Release *out with sweep_survey_fini(), also after an
 * error. Errors: those of sweep_run() before it opens the file, and of reading the file. */
gl_status sweep_look_ahead(sweep_survey *out, const cfg_doc *doc, const sweep_options *options,
                           gl_error *err);

#endif
