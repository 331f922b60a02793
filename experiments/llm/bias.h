/* Bias, variance and mean squared error of algorithms' gradients at the checkpoints of a run, by
 * Monte Carlo (paper/methods.md §7.12).
 *
 * An algorithm's estimate g is the direction of the first update from a whole batch of the recipe's
 * size. The samplers sample its prompts and responses at one checkpoint, and the learner is at
 * another. The truth is the gradient of J, the mean training reward of responses from the learner's
 * own distribution. Its estimates h are those of `reinforce` with the leave-one-out baseline, on
 * batches of the same size that the learner samples itself. g and h are unbiased estimates of their
 * expectations and independent of each other, so gradient_moments.h applies. Batches for all
 * algorithms and stalenesses have the same random-stream addresses, so they are paired. Prefixes:
 * llm_run_, llm_bias_. */
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
/* A run read from its checkpoint folder (experiments/train/checkpoint.h), which is not changed: its
 * learner, and its parameters after given numbers of updates. */

typedef struct llm_run {
  const char *path;
  char *text; /* canonical text of the run's recipe */
  cfg_doc *doc;
  recipe recipe;     /* of the run, with the overrides */
  learner learner;   /* on one device, without the warm-up unless it is needed */
  uint64_t *updates; /* [n] numbers of updates with a checkpoint, ascending */
  size_t n;
} llm_run;

/* Reads the folder's list and the newest checkpoint's recipe, applies the overrides and makes its
 * learner, with that many threads (0: all cores). Release with llm_run_fini() in any case. Errors:
 * GL_EINPUT with folder or file (no checkpoints, a damaged one, one in another program's format,
 * not a transformer's run), GL_EIO. */
gl_status llm_run_init(llm_run *r, const char *path, const char *const *overrides,
                       size_t n_overrides, size_t threads, gl_error *err);
void llm_run_fini(llm_run *r);

/* Checks that the checkpoints after `update` and after `update` - `staleness` updates exist.
 * Errors: GL_EINPUT (the message lists the existing ones and a remedy). */
gl_status llm_run_check(const llm_run *r, uint64_t update, uint64_t staleness, gl_error *err);
/* Reads the parameters after that many updates into theta[llm_learner_size(&r->learner)] and sets
 * the learner to them. Errors: GL_EINPUT with the file (damaged, or of another recipe or
 * arithmetic). */
gl_status llm_run_load(llm_run *r, uint64_t update, double *theta, gl_error *err);

/* --- measurements --- */

/* What to measure. Batches have `groups` groups of `group_size` responses, 2 or more. */
typedef struct llm_bias_spec {
  const policy_algorithm *algorithms; /* [n_algorithms] borrowed */
  size_t n_algorithms;
  size_t groups, group_size;
  size_t batches;    /* number per algorithm: a multiple of GRADIENT_BLOCKS */
  size_t references; /* batches for the true gradient: also such a multiple */
  uint64_t
      seed; /* below 2^29; use different seeds for independent measurements of the same policies */
  double confidence; /* confidence level of intervals */
} llm_bias_spec;

/* The learner's and the samplers' parameters, with their versions. */
typedef struct llm_bias_pair {
  const double *learner, *sampler; /* [llm_learner_size()] */
  int64_t version, sampler_version;
} llm_bias_pair;

typedef struct llm_bias_result {
  int applicable; /* 0: the algorithm cannot be measured here; `why` has the reason */
  char why[200];
  gradient_estimate number[GRADIENT_NUMBERS];
  /* Means over the batches of core/policy's diagnostics (paper/methods.md §5): divergence from the
   * samplers' distribution per response, and the algorithm's own ratios. */
  double kl, iw_mean, iw_variance, aw_variance, ess, clip_fraction;
} llm_bias_result;

/* A measurement: its settings, the learner, and the two policies. */
typedef struct llm_bias_job {
  learner *learner;
  const llm_bias_spec *spec;
  llm_bias_pair pair;
  progress *bar;  /* counts gradients; NULL: none */
  uint64_t *done; /* gradients computed so far */
} llm_bias_job;

/* Numbers of gradients that llm_bias_reference() and llm_bias_measure() compute. */
uint64_t llm_bias_reference_work(const llm_bias_spec *s);
uint64_t llm_bias_work(const llm_bias_spec *s);

/* Fills out, an empty sample with spec->references / GRADIENT_BLOCKS vectors per block, with
 * true-gradient estimates at the pair's learner. *reward: the mean reward. Errors: GL_EINPUT (a
 * policy that is not finite), GL_EINTERRUPTED (after a signal). */
gl_status llm_bias_reference(gradient_sample *out, double *reward, const llm_bias_job *job,
                             gl_error *err);
/* Measures all algorithms on batches from the pair's sampler against that reference: out
 * [n_algorithms]. scratch is a sample with spec->batches / GRADIENT_BLOCKS vectors per block, whose
 * contents are lost. Errors as above. */
gl_status llm_bias_measure(llm_bias_result *out, const llm_bias_job *job,
                           const gradient_sample *reference, gradient_sample *scratch,
                           gl_error *err);

/* --- results --- */

/* All results. Algorithm a at staleness k of checkpoint u is results[(u * n_staleness + k) *
 * n_algorithms + a]. All pointers are borrowed. */
typedef struct llm_bias_table {
  const char *name; /* the run's name; files are NAME_gradients.png, … */
  const llm_bias_spec *spec;
  const uint64_t *at, *staleness; /* [n_at], [n_staleness] */
  const llm_bias_result *results;
  size_t n_at, n_staleness;
} llm_bias_table;

/* Draws the figure `gradients`: cosine, variance and scaled MSE against staleness with intervals,
 * one column per checkpoint. Errors: GL_EINPUT (a single staleness), those of figures_draw_table().
 */
gl_status llm_bias_draw(const llm_bias_table *t, const figure_request *q, gl_error *err);

/* Stores the measurements in the study file at `path`, which is created if needed. Each checkpoint
 * is a study "NAME after N updates" and replaces one of that name, in one transaction per
 * checkpoint. wall_s: duration of all measurements. Intervals are not stored. Errors: GL_EIO,
 * GL_ENOMEM. */
gl_status llm_bias_store(const llm_bias_table *t, const char *path, double wall_s, gl_error *err);

#endif
