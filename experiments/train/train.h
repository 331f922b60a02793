/* The training loop: a learner and a clock.
 *
 * Ordinarily the clock runs first, and the learner replays its schedule: standing at version v it
 * draws exactly those batches (or parts of batches) of v that will ever be trained, keeps them
 * until their update, and frees them after it. Schedule and draw addresses do not depend on the
 * algorithm, so the runs of a sweep that differ only in it are paired. Under cluster.coupled clock
 * and learner run together, for there the lengths of real responses take the simulated time.
 *
 * A run diverges when the learner's parameters stop being numbers: three updates in a row whose
 * loss or gradient norm is not finite, or an evaluation that is not. What was recorded up to there
 * is the result. A run whose last evaluation is below a tenth of its best one has collapsed: it is
 * marked as diverged too, with all its records.
 *
 * With a folder for checkpoints a run resumes from the newest one there. Its results are those of a
 * run that was never interrupted, bit for bit.
 */
#ifndef GEPOLAB_EXPERIMENTS_TRAIN_TRAIN_H
#define GEPOLAB_EXPERIMENTS_TRAIN_TRAIN_H

#include "experiments/recipe/recipe.h"
#include "experiments/train/run_result.h"

#include <stddef.h>

/* What the caller does or wants besides the result; all may be zero. */
typedef struct train_options {
  /* Called after every update and evaluation; a result other than 0 stops the run: it writes a
   * checkpoint, if it has a folder, and is GL_EINTERRUPTED. */
  int (*after_step)(void *self, size_t step, double last_eval);
  /* Called after every step of what comes before the first update (a transformer's warm-up); other
   * than 0 stops the run there, likewise. */
  int (*preparing)(void *self, uint64_t step, uint64_t steps, double loss);
  /* A sentence for the user: where the run resumes, which checkpoint is damaged. */
  void (*note)(void *self, const char *text);
  void *self;
  const char *checkpoints; /* their folder */
  const char *canonical;   /* the recipe's canonical text, which says whose checkpoints they are;
                              needed where there is a folder */
  checkpoint_pace pace;
  int checkpoint_at_end; /* also after the last update */
  const char *save_to;   /* file for the learner's final state */
  /* Called with the learner after its last update; what fails there fails the run. */
  gl_status (*at_end)(void *self, const learner *l, gl_error *err);
} train_options;

/* Runs a recipe from its first update, or from its checkpoint, to its last. A diverged run is GL_OK
 * with out->status saying so; errors are those of the recipe, the schedule, checkpoints or memory.
 * Release *out with run_result_fini() in any case. */
gl_status train_run(run_result *out, const recipe *r, const train_options *options, gl_error *err);

#endif
