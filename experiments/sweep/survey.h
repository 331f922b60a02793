/* What a sweep would do, without doing it: its cells, what of them is in the file already, and what
 * the rest may take. */
#ifndef GEPOLAB_EXPERIMENTS_SWEEP_SURVEY_H
#define GEPOLAB_EXPERIMENTS_SWEEP_SURVEY_H

#include "experiments/sweep/sweep.h"

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
