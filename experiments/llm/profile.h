/* How long this machine takes for a recipe's batches and updates, as delay distributions for a
 * `cluster` section, so that a simulated study keeps the pace of real hardware. Prefix:
 * llm_profile_. */
#ifndef GEPOLAB_EXPERIMENTS_LLM_PROFILE_H
#define GEPOLAB_EXPERIMENTS_LLM_PROFILE_H

#include "core/rl/learner.h"
#include "experiments/recipe/recipe.h"

typedef struct llm_timing {
  double *seconds; /* [repetitions] */
  double mean, sd, smallest, largest;
  double mu, sigma; /* of the log-normal distribution: mean and deviation of the logarithms */
} llm_timing;

typedef struct llm_profile {
  size_t repetitions, responses; /* responses of a batch */
  llm_timing prompt;             /* prompts of a batch and one token of each response */
  llm_timing generation;         /* a whole batch */
  llm_timing step;               /* a learner update on one batch */
  double *lengths;               /* [repetitions * responses] tokens */
  double tokens;                 /* mean of lengths */
  double tokens_per_s;           /* generated, all responses together */
  double trained_per_s;          /* tokens of responses through an update */
  size_t concurrency;
  /* Decoding speed of one response among `concurrency`, such that simulated batches (prompt time,
   * then lengths / speed on that many slots, see sim/cluster_spec.h) take as long in all as those
   * measured. */
  double decode_per_s;
} llm_profile;

typedef struct llm_profile_request {
  learner *learner; /* its learning rate should be 0, so that all batches are of one policy */
  const recipe *recipe;
  size_t slots; /* responses decoded side by side; 0: all */
  size_t repetitions;
  /* Called after each repetition; a result other than 0 stops (GL_EINTERRUPTED). NULL: not called.
   */
  int (*after)(void *self, size_t done);
  void *self;
} llm_profile_request;

/* Samples `repetitions` batches and updates on each, after one that does not count. Release with
 * llm_profile_fini() in any case. */
gl_status llm_profile_init(llm_profile *out, const llm_profile_request *q, gl_error *err);
void llm_profile_fini(llm_profile *p);

/* Tokens of the longest run of decoding steps when `lengths` are decoded in order on so many slots,
 * each taking the next response when its own has ended. slots is scratch of n_slots. */
double llm_profile_makespan(const double *lengths, size_t n, double *slots, size_t n_slots);

#endif
