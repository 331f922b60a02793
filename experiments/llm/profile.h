/* Measures how long this machine takes for a recipe's batches and updates. The results are delay
 * distributions for a section `cluster`, so that a simulated study has the timing of real hardware.
 * Prefix: llm_profile_. */
#ifndef GEPOLAB_EXPERIMENTS_LLM_PROFILE_H
#define GEPOLAB_EXPERIMENTS_LLM_PROFILE_H

#include "core/rl/learner.h"
#include "experiments/recipe/recipe.h"

typedef struct llm_timing {
  double *seconds; /* [repetitions] measured times */
  double mean, sd, smallest, largest;
  double mu, sigma; /* parameters of the log-normal distribution: mean and standard deviation of the
                       logarithm */
} llm_timing;

typedef struct llm_profile {
  size_t repetitions, responses; /* responses: per batch */
  llm_timing prompt;             /* the prompts of a batch and one token of each response */
  llm_timing generation;         /* a whole batch */
  llm_timing step;               /* a learner update on one batch */
  double *lengths;               /* [repetitions * responses] tokens */
  double tokens;                 /* mean of lengths, tokens */
  double tokens_per_s;           /* generated tokens per second, all responses together */
  double trained_per_s;          /* response tokens per second in an update */
  size_t concurrency;
  /* Decoding speed of one response among `concurrency`, in tokens per second. It is chosen such
   * that simulated batches (prompt time, then lengths / speed on that many slots, see
   * sim/cluster_spec.h) take as long in total as the measured ones. */
  double decode_per_s;
} llm_profile;

typedef struct llm_profile_request {
  learner *learner; /* its learning rate should be 0, so that one policy samples all batches */
  const recipe *recipe;
  size_t slots; /* responses decoded side by side; 0: all */
  size_t repetitions;
  /* Called after each repetition; a result other than 0 stops (GL_EINTERRUPTED). NULL: not called.
   */
  int (*after)(void *self, size_t done);
  void *self;
} llm_profile_request;

/* Samples `repetitions` batches and makes an update on each, after one that is not counted. Release
 * with llm_profile_fini() in any case. */
gl_status llm_profile_init(llm_profile *out, const llm_profile_request *q, gl_error *err);
void llm_profile_fini(llm_profile *p);

/* Number of decoding steps when `lengths` are decoded in order on n_slots slots, each of which
 * starts the next response when its own has ended. slots: workspace of n_slots. */
double llm_profile_makespan(const double *lengths, size_t n, double *slots, size_t n_slots);

#endif
