/* Bias, variance and mean squared error of algorithms' gradients at policies of a real run, by
 * Monte Carlo (paper/methods.md §7.12).
 *
 * An algorithm's estimate g is the direction of the first update from a whole batch of the recipe's
 * size, prompts and responses drawn by the samplers at one checkpoint, the learner standing at
 * another. The truth is the gradient of J, the mean reward that training sees of responses from the
 * learner's own distribution; its estimates h are those of `reinforce` with the leave-one-out
 * baseline, on batches of the same size that the learner draws itself. Both are unbiased for what
 * they stand for, and independent of each other, so that gradient_moments.h applies. Batches of all
 * algorithms and of all ages have the same addresses, which pairs them. Prefixes: llm_run_,
 * llm_bias_. */
#ifndef GEPOLAB_EXPERIMENTS_LLM_BIAS_H
#define GEPOLAB_EXPERIMENTS_LLM_BIAS_H

#include "analysis/plot/page.h"
#include "core/base/progress.h"
#include "core/policy/algorithm.h"
#include "core/rl/learner.h"
#include "experiments/llm/gradient_moments.h"
#include "experiments/recipe/recipe.h"

#include <stddef.h>
#include <stdint.h>

/* --- a run's checkpoints --- */
/* Their folder (experiments/train/checkpoint.h) is only read: the learner the checkpoints belong
 * to, and the parameters after so many updates. */

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

/* --- measurements --- */

/* What is measured. Batches are of `groups` groups of `group_size` responses, 2 or more. */
typedef struct llm_bias_spec {
  const policy_algorithm *algorithms; /* [n_algorithms] borrowed */
  size_t n_algorithms;
  size_t groups, group_size;
  size_t batches;    /* for each algorithm: a multiple of GRADIENT_BLOCKS */
  size_t references; /* batches for the true gradient: the same */
  uint64_t
      seed; /* below 2^29; independent measurements of the same policies have different seeds */
  double confidence; /* of intervals */
} llm_bias_spec;

/* The learner's parameters and those of the samplers, with their versions. */
typedef struct llm_bias_pair {
  const double *learner, *sampler; /* [llm_learner_size()] */
  int64_t version, sampler_version;
} llm_bias_pair;

typedef struct llm_bias_result {
  int applicable; /* 0: the algorithm cannot be measured here; `why` says */
  char why[200];
  gradient_estimate number[GRADIENT_NUMBERS];
  /* Means over the batches of core/policy's diagnostics (paper/methods.md §5): divergence of a
   * response from the samplers' distribution, the algorithm's own ratios. */
  double kl, iw_mean, iw_variance, aw_variance, ess, clip_fraction;
} llm_bias_result;

/* A measurement: of what, by which learner, at which policies. */
typedef struct llm_bias_job {
  learner *learner;
  const llm_bias_spec *spec;
  llm_bias_pair pair;
  progress *bar;  /* NULL: none; counts gradients */
  uint64_t *done; /* gradients so far */
} llm_bias_job;

/* Gradients that llm_bias_reference() and llm_bias_measure() take. */
uint64_t llm_bias_reference_work(const llm_bias_spec *s);
uint64_t llm_bias_work(const llm_bias_spec *s);

/* Fills out, an empty sample of spec->references / GRADIENT_BLOCKS vectors a block, with gradients
 * at the pair's learner; *reward is the mean reward. GL_EINPUT for a policy that is not finite,
 * GL_EINTERRUPTED after a signal. */
gl_status llm_bias_reference(gradient_sample *out, double *reward, const llm_bias_job *job,
                             gl_error *err);
/* Measures all algorithms on batches of the pair's sampler against that reference: out
 * [n_algorithms]. scratch is a sample of spec->batches / GRADIENT_BLOCKS vectors a block, whose
 * contents are lost. Errors as above. */
gl_status llm_bias_measure(llm_bias_result *out, const llm_bias_job *job,
                           const gradient_sample *reference, gradient_sample *scratch,
                           gl_error *err);

/* --- results --- */

/* The result of algorithm a at age k of checkpoint u is results[(u * n_staleness + k) *
 * n_algorithms + a]; all borrowed. */
typedef struct llm_bias_table {
  const char *name; /* the run's: files are NAME_gradients.png, … */
  const llm_bias_spec *spec;
  const uint64_t *at, *staleness; /* [n_at], [n_staleness] */
  const llm_bias_result *results;
  size_t n_at, n_staleness;
} llm_bias_table;

/* Draws the figure `gradients`: cosine, variance and scaled MSE against staleness with their
 * intervals, a column for each checkpoint. GL_EINPUT for a single staleness, and as
 * figures_draw_table(). */
gl_status llm_bias_draw(const llm_bias_table *t, const figure_request *q, gl_error *err);

/* Puts the measurements into the file at `path` (made where it is not there), those of each
 * checkpoint as a study of its own, "NAME after N updates", in place of those that it has by that
 * name: one transaction a checkpoint. wall_s: how long all measurements took.
 * Intervals have no columns there. GL_EIO, GL_ENOMEM. */
gl_status llm_bias_store(const llm_bias_table *t, const char *path, double wall_s, gl_error *err);

#endif
