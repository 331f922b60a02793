/* The training loop: a learner and a clock.
 *
 * Normally the clock runs first, and the learner replays its schedule. At version v it samples
 * those batches (or parts of batches) of v that will be trained, stores them until their update,
 * and frees them afterwards. Schedule and random-stream addresses do not depend on the algorithm.
 * So runs of a sweep that differ only in the algorithm are paired. With cluster.coupled clock and
 * learner run together, because the lengths of real responses take simulated time.
 *
 * A run diverges when the learner's parameters are no longer finite: after three consecutive
 * updates with a loss or gradient norm that is not finite, or an evaluation that is not. The result
 * contains everything recorded up to there. A run whose last evaluation is below a tenth of its
 * best one is marked as diverged, too, with all its records.
 *
 * With a checkpoint folder a run resumes from the newest checkpoint. Its results equal those of an
 * uninterrupted run, bit for bit. */
#ifndef GEPOLAB_EXPERIMENTS_TRAIN_TRAIN_H
#define GEPOLAB_EXPERIMENTS_TRAIN_TRAIN_H

#include "experiments/recipe/recipe.h"
#include "experiments/train/run_result.h"

#include <stddef.h>

/* Options of the caller; all may be zero. */
typedef struct train_options {
  /* Called after every update and evaluation. A result other than 0 stops the run: it writes a
   * checkpoint, if it has a folder, and returns GL_EINTERRUPTED. */
  int (*after_step)(void *self, size_t step, double last_eval);
  /* Called after every step before the first update (a transformer's warm-up). A result other than
   * 0 stops the run there in the same way. */
  int (*preparing)(void *self, uint64_t step, uint64_t steps, double loss);
  /* Receives a message for the user: where the run resumes, which checkpoint is damaged. */
  void (*note)(void *self, const char *text);
  void *self;
  const char *checkpoints; /* the checkpoint folder */
  const char
      *canonical; /* the recipe's canonical text, stored in checkpoints; required with a folder */
  checkpoint_pace pace;
  int checkpoint_at_end; /* 1: write one after the last update, too */
  const char *save_to;   /* file for the learner's final state */
  /* Called with the learner after its last update; an error here is an error of the run. */
  gl_status (*at_end)(void *self, const learner *l, gl_error *err);
} train_options;

/* Runs a recipe from its first update, or from its checkpoint, to its last. A diverged run returns
 * GL_OK; out->status reports the divergence. Release *out with run_result_fini() in any case.
 * Errors: those of the recipe, the schedule, checkpoints, memory. */
gl_status train_run(run_result *out, const recipe *r, const train_options *options, gl_error *err);

#endif
