/* The checkpoints of a transformer's run in their folder (experiments/train/checkpoint_folder.h),
 * for who asks what its policies were: the learner they belong to, and the parameters after so many
 * updates. The folder is only read. Prefix: llm_run_. */
#ifndef GEPOLAB_EXPERIMENTS_LLM_RUN_FOLDER_H
#define GEPOLAB_EXPERIMENTS_LLM_RUN_FOLDER_H

#include "core/rl/learner.h"
#include "experiments/recipe/recipe.h"

#include <stddef.h>
#include <stdint.h>

typedef struct llm_run {
  const char *path;
  char *text; /* whose checkpoints they are: the run's canonical text */
  cfg_doc *doc;
  recipe recipe;     /* of the run, with the overrides */
  learner learner;   /* on one device, without the warm-up where nothing needs it */
  uint64_t *updates; /* [n] after which there are checkpoints, ascending */
  size_t n;
} llm_run;

/* Reads the folder's list and the newest checkpoint's recipe, applies the overrides and makes its
 * learner, on so many threads (0: all cores). GL_EINPUT, with folder or file: no checkpoints, a
 * damaged one, one of another program's form, a run that is not of a transformer; GL_EIO. Release
 * with llm_run_fini() in any case. */
gl_status llm_run_init(llm_run *r, const char *path, const char *const *overrides,
                       size_t n_overrides, size_t threads, gl_error *err);
void llm_run_fini(llm_run *r);

/* GL_EINPUT where one of the checkpoints after `update` and after `update` - `staleness` updates is
 * not there: with which are, and what to do. */
gl_status llm_run_check(const llm_run *r, uint64_t update, uint64_t staleness, gl_error *err);
/* Parameters after so many updates into theta[llm_learner_size(&r->learner)]; the learner is left
 * standing there. GL_EINPUT with the file: damaged, or of another recipe or arithmetic. */
gl_status llm_run_load(llm_run *r, uint64_t update, double *theta, gl_error *err);

#endif
