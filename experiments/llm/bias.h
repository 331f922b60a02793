/* Bias, variance and mean squared error of algorithms' gradients at the checkpoints of a run, by
 * Monte Carlo (paper/methods.md §7.12).
 *
 * An algorithm's estimate g is the direction of the first update from a whole batch of the recipe's
 * size. The samplers sample its prompts and responses at one checkpoint, and the learner is at
 * another. The truth is the gradient of J, the mean training reward of responses from the learner's
 * own distribution. Its estimates h are those of `reinforce` with the leave-one-out baseline, on
 * batches of the same size that the learner samples itself. g and h are unbiased estimates of their
 * expectations and independent of each other, so the moments below apply. Batches for all
 * algorithms and stalenesses have the same random-stream addresses, so they are paired. Prefixes:
 * llm_run_, llm_bias_. */
#ifndef GEPOLAB_EXPERIMENTS_LLM_BIAS_H
#define GEPOLAB_EXPERIMENTS_LLM_BIAS_H

#include "analysis/plot/page.h"
#include "core/base/progress.h"
#include "core/policy/algorithm.h"
#include "core/rl/learner.h"
#include "experiments/recipe/recipe.h"

#include <stddef.h>
#include <stdint.h>

/* --- moments of a run's gradients --- */

/* Moments estimated from two samples of random vectors: estimates g of a gradient, and references h
 * whose expectation is the true gradient. Both are stored as sums over a fixed number of blocks, so
 * memory does not grow with the samples.
 *
 * Let g_1 .. g_n be independent with expectation m, and h_1 .. h_k with expectation t. Products of
 * different vectors are unbiased: <m, m> is estimated by the mean of <g_i, g_j> over i != j, <t, t>
 * by that of <h_i, h_j>, <m, t> by that of <g_i, h_j>. From these follow (names as in the
 * laboratory, paper/methods.md §7.12)
 *
 *   bias^2 = <m, m> - 2 <m, t> + <t, t>          (unbiased; may be negative)
 *   variance = E<g, g> - <m, m>, mse = bias^2 + variance          (unbiased)
 *   cosine = <m, t> / sqrt(<m, m> <t, t>), scaled_bias = sqrt(1 - cosine^2)
 *   scaled_mse = 1 - <m, t>^2 / (<t, t> E<g, g>), snr = <m, m> / variance
 *
 * Standard errors are jackknife estimates that leave out one block of g, or one of h, at a time. On
 * average the jackknife does not understate the error (Efron and Stein 1981). If the bias is zero,
 * its estimate is a degenerate U-statistic and the jackknife overstates. Prefix: gradient_. */

enum { GRADIENT_BLOCKS = 16 };

/* A sample with the same number of vectors in every block. */
typedef struct gradient_sample {
  size_t n, per_block;            /* length of a vector; vectors per block */
  float *sum;                     /* [GRADIENT_BLOCKS * n] sum of each block's vectors */
  double square[GRADIENT_BLOCKS]; /* each block's sum of <g, g> over its vectors */
} gradient_sample;

/* Makes an empty sample. */
void gradient_sample_init(gradient_sample *s, size_t n, size_t per_block);
void gradient_sample_fini(gradient_sample *s);
/* Empties the sample. */
void gradient_sample_clear(gradient_sample *s);
/* Adds a vector g[n] to a block. Each block must receive per_block of them. */
void gradient_sample_add(gradient_sample *s, size_t block, const double *g);

/* An estimate, its standard error and its interval. NaN if unknown. */
typedef struct gradient_estimate {
  double value, error, low, high;
} gradient_estimate;

typedef enum gradient_number {
  GRADIENT_BIAS,
  GRADIENT_COSINE,
  GRADIENT_SCALED_BIAS,
  GRADIENT_VARIANCE,
  GRADIENT_MSE,
  GRADIENT_SCALED_MSE,
  GRADIENT_SNR,
  GRADIENT_LENGTH, /* length of the true gradient */
  GRADIENT_NUMBERS
} gradient_number;
extern const char *const gradient_number_names[GRADIENT_NUMBERS];

/* Computes all numbers of the estimates g against the references h. Intervals have the given
 * confidence level (such as 0.95) and use Student's t with GRADIENT_BLOCKS - 1 degrees of freedom.
 * bias and length are square roots: 0 if the estimated square is negative; their intervals are
 * those of the squares. A divisor must be three standard errors above zero; otherwise the sample is
 * too small and the result is NaN. A cosine above 1 by chance is set to 1. */
void gradient_moments(gradient_estimate out[GRADIENT_NUMBERS], const gradient_sample *g,
                      const gradient_sample *h, double confidence);

/* --- a run's checkpoints --- */
/* A run read from its checkpoint folder (experiments/train/checkpoint.h), which is not changed: its
 * learner, and its parameters after given numbers of updates. */

typedef struct llm_run {
  const char *path;
  char *text; /* canonical text of the run's recipe */
  cfg_doc *doc;
  recipe recipe;     /* recipe of the run, with the overrides */
  learner learner;   /* on one device, without the warm-up unless it is needed */
  uint64_t *updates; /* [n] numbers of updates with a checkpoint, ascending */
  size_t n;
} llm_run;

/* Reads the folder's list and the newest checkpoint's recipe, applies the overrides and makes its
 * learner with `threads` threads (0: all cores). Release with llm_run_fini() in any case. Errors:
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
  size_t references; /* batches for the true gradient: a multiple of GRADIENT_BLOCKS */
  uint64_t
      seed; /* below 2^29; use different seeds for independent measurements of the same policies */
  double confidence; /* confidence level of intervals */
} llm_bias_spec;

/* The learner's and the samplers' parameters, with their versions. */
typedef struct llm_bias_pair {
  const double *learner, *sampler; /* [llm_learner_size()] parameters */
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
  const uint64_t *at, *staleness; /* [n_at] updates of the checkpoints; [n_staleness] */
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
