/* The training loop: a learner replays a schedule.
 *
 * Standing at version v it draws exactly those batches (or parts of batches) of v that will ever be
 * trained, keeps them until their update, and frees them after it. Schedule and draw addresses do
 * not depend on the algorithm, so the runs of a sweep that differ only in it are paired.
 *
 * A run diverges when the learner's parameters stop being numbers: three updates in a row whose
 * loss or gradient norm is not finite, or an evaluation that is not. What was recorded up to there
 * is the result. A run whose last evaluation is below a tenth of its best one has collapsed: it is
 * marked as diverged too, with all its rows.
 */
#ifndef GEPOLAB_EXPERIMENTS_TRAIN_H
#define GEPOLAB_EXPERIMENTS_TRAIN_H

#include "experiments/outcome.h"
#include "experiments/recipe.h"

#include <stddef.h>

/* Called after every update and evaluation; a result other than 0 stops the run (GL_EINTERRUPTED).
 */
typedef struct train_watch {
  int (*after_step)(void *self, size_t step, double last_eval);
  void *self;
} train_watch;

/* Runs a recipe from its first update to its last. watch may be NULL. A diverged run is GL_OK with
 * out->status saying so; errors are those of the recipe, the schedule or memory. Release *out with
 * outcome_fini() in any case. */
gl_status train_run(outcome *out, const recipe *r, const train_watch *watch, gl_error *err);

#endif
