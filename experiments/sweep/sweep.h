/* A sweep from a checked recipe to a filled study file: tuning runs first, then the grid. */
#ifndef GEPOLAB_EXPERIMENTS_SWEEP_SWEEP_H
#define GEPOLAB_EXPERIMENTS_SWEEP_SWEEP_H

#include "core/base/error.h"
#include "core/base/progress.h"
#include "core/config/config.h"
#include "core/store/store.h"
#include "experiments/sweep/executor.h"
#include "experiments/sweep/sweep_cells.h"
#include "experiments/train/run_result.h"

#include <stddef.h>

typedef struct sweep_options {
  const char *file; /* the study; each of several ranks adds its number */
  size_t workers;
  ranks ranks;
  progress_mode progress;
  const char *checkpoints; /* a folder, where each cell has one of its own; NULL: beside the study
                              file if the recipe has a `checkpoint` section, else none */
  size_t checkpoint_every; /* updates; 0: as the recipe says */
  int replaces_plan;       /* the recipe's grid is all that the study is to hold from now on; 0: it
                              is added to what was planned before */
} sweep_options;

enum { SWEEP_FAILURES_TOLD = 10 };

typedef struct sweep_report {
  size_t tuning_runs, tuning_known; /* made now, found in the file */
  size_t tuning_failed;             /* of those made now */
  size_t cells, known;              /* of this shard; found finished in the file */
  size_t done, diverged, failed;    /* made now */
  double tuning_s, grid_s;
  tuned_fields tuned;    /* what `tune` chose; borrowed from the recipe, like the choices' values */
  sweep_choice *choices; /* [n_choices], owned */
  size_t n_choices;
  size_t superseded; /* runs of the study in the file whose places others have taken */
  char *failures;    /* a line for each of the first SWEEP_FAILURES_TOLD runs that failed now:
                        algorithm, seed, settings and reason; owned, NULL: none */
} sweep_report;

/* Reads the sweep and every one of its cells, asks whether this machine has the device and the
 * memory that each needs, and only then opens the file, keeps the plan there and runs what is not
 * in it yet. A failed cell is counted and stored as such and tried again by the next call. A failed
 * tuning run is GL_EIO with out->tuning_failed: what is chosen without it could be other than what
 * is chosen with it, so the grid waits until a later call has made it. Release *out with
 * sweep_report_fini() in any case.
 */
gl_status sweep_run(sweep_report *out, const cfg_doc *doc, const sweep_options *options,
                    gl_error *err);
void sweep_report_fini(sweep_report *r);

/* The folder of a cell's checkpoints into path[PATH_MAX]: root/KEY, or with a root of NULL
 * file.checkpoints/KEY. */
gl_status sweep_checkpoints(char *path, const char *root, const char *file, const sweep_cell *cell,
                            gl_error *err);
/* Removes the checkpoints in that folder, then it and a file.checkpoints that is empty. */
void sweep_clear_checkpoints(const char *path);

/* Stores the run of one cell. */
gl_status sweep_store_cell(store *to, const char *study_name, const sweep_cell *cell,
                           const run_result *o, gl_error *err);

/* --- looking ahead --- */

/* What a sweep would do, without doing it: its cells, what of them is in the file already, and what
 * the rest may take. */

typedef struct sweep_survey {
  const char *study; /* borrowed from the recipe's doc, like the grids */
  sweep_grid grid;   /* its axes with their values */
  sweep_grid tuning; /* n_axes 0: the recipe has no `tune` */
  cfg_doc *steps;    /* of the rungs of successive halving, which that grid borrows; owned */
  size_t tuning_runs, tuning_known; /* all; those whose scores are in the file */
  size_t cells, known;              /* of this shard; those finished in the file */
  int rates_open;        /* 1: rates are chosen when all tuning runs have ended, and only then is it
                            certain which cells are in the file; `known` is 0 */
  size_t learned_from;   /* finished runs of the study in the file, from which times are expected */
  double work_s, wait_s; /* of all that is left: summed over runs, and with the options' workers;
                            NaN: no run of the study has finished yet */
  int64_t peak_bytes;    /* of memory that the largest of those runs took; 0: not known */
} sweep_survey;

void sweep_survey_fini(sweep_survey *v);

/* Reads the recipe and, where there is one, the file (options->file NULL: none), asks whether this
 * machine fits what is left, and writes nothing. Release *out with sweep_survey_fini() in any case.
 * Errors are those that sweep_run() would give before it opens the file, and those of reading it.
 */
gl_status sweep_look_ahead(sweep_survey *out, const cfg_doc *doc, const sweep_options *options,
                           gl_error *err);

#endif
