/* The `sampling` section of a recipe, and the truncation it describes. Temperature belongs to the
 * policy itself (sampler and learner divide their logits by it alike); top-k and top-p do not:
 * they turn the policy q into the distribution q~ that tokens are really drawn from. */
#ifndef GEPOLAB_CORE_RL_SAMPLING_H
#define GEPOLAB_CORE_RL_SAMPLING_H

#include "core/base/error.h"
#include "core/config/config.h"

#include <stddef.h>

/* Which sampler log-probabilities the algorithm's importance weights see. */
typedef enum sampling_weights {
  SAMPLING_RAW,       /* the learner's distribution against the sampler's, both before truncation */
  SAMPLING_TRUNCATED, /* the learner's distribution against the truncated one that was drawn from */
  SAMPLING_REPLAY     /* both renormalised over the tokens that the sampler kept */
} sampling_weights;

/* Who computes the log-probabilities that are recorded of drawn tokens. */
typedef enum sampling_logq {
  LOGQ_SAMPLER, /* the sampler, as it drew them: of its own distribution, with all that distorts it
                 */
  LOGQ_LEARNER  /* the learner, from the parameters of the version that drew: undistorted */
} sampling_logq;

typedef enum sampling_other { OTHER_NONE, OTHER_INITIAL, OTHER_UNIFORM } sampling_other;

/* How the distribution of a sampler differs from the policy whose parameters it has
 * (paper/methods.md §1.3). Logits z become round(z + noise e) / (temperature (1 +
 * temperature_error)), e standard normal at an address of its own; then a share of the responses
 * comes from another policy. */
typedef struct sampling_behaviour {
  double noise;             /* standard deviation, >= 0 */
  int rounds_to_bfloat16;   /* precision: bfloat16 */
  double temperature_error; /* > -1 */
  sampling_other with;      /* behaviour_mixture; OTHER_NONE: none */
  double share;             /* of responses from the other policy, in [0, 1) */
} sampling_behaviour;

typedef struct sampling_spec {
  double temperature; /* > 0 */
  size_t top_k;       /* 0: off */
  double top_p;       /* in (0, 1]; 1: off */
  sampling_weights weights;
  sampling_logq logq;
  sampling_behaviour behaviour;
} sampling_spec;

/* Reads the section (NULL: temperature 1, no truncation, raw weights, no distortion). GL_EINPUT too
 * for a mixture together with what it has no formula for: truncation, or logq: learner. */
gl_status sampling_parse(sampling_spec *spec, const cfg_node *section, gl_error *err);

/* How a policy is scored. Which kinds there are depends on the world. */
typedef enum evaluation_kind {
  EVALUATION_EXACT,  /* the expected reward, by enumeration of all responses */
  EVALUATION_GREEDY, /* the reward of the response made of most probable tokens */
  EVALUATION_SAMPLED /* the mean reward of drawn responses */
} evaluation_kind;

/* The distribution an evaluation uses is its own: it does not follow the recipe's `sampling`. */
typedef struct evaluation_spec {
  evaluation_kind kind;
  sampling_spec dist; /* of exact and sampled evaluation; its `weights` mean nothing here */
} evaluation_spec;

/* Reads the key `evaluation` of the world section that `world` is at: one of kinds[n], whose first
 * is the default, or a map {kind, temperature: 1, top_k: 0, top_p: 1}. `own` is left at that map
 * (or at no map), so that a world can read further keys of its own from it; it keeps the first
 * error, also of `world`, and the caller ends it with cfg_end(). Refused: temperature, top_k and
 * top_p for a greedy evaluation, which they cannot change. */
void evaluation_read(evaluation_spec *out, cfg_reader *world, cfg_reader *own,
                     const evaluation_kind *kinds, int n);

/* Reads the keys kind, temperature, top_k and top_p of one evaluation set (evaluation_sets.h),
 * which `own` is at; what it leaves out is as `usual` has it. */
void evaluation_read_set(evaluation_spec *out, const evaluation_spec *usual, cfg_reader *own,
                         const evaluation_kind *kinds, int n);

/* 1 if logits are distorted by noise, rounding or another temperature. */
int sampling_distorts(const sampling_spec *spec);
/* x rounded to the nearest bfloat16, of two as near the even one. */
double sampling_to_bfloat16(double x);

/* 1 if the distribution drawn from differs from the policy for a vocabulary of n. */
int sampling_truncates(const sampling_spec *spec, size_t n);

typedef struct sampling_rank {
  double logp;
  size_t token;
} sampling_rank;

/* The truncated distribution: out[n] from the temperature-scaled logp[n], -inf outside. top-k keeps
 * every token at least as probable as the k-th, so that ties stay and no token number is preferred
 * (the rule of Hugging Face's TopKLogitsWarper; uniform logits are not truncated at all). Then
 * top-p keeps the shortest run of the most probable, of equals the lower number, whose share of
 * what top-k kept reaches top_p, never fewer than one. rank[n] is scratch. Not-a-number
 * log-probabilities are copied as they are. out may not overlap logp. */
void sampling_truncate(const sampling_spec *spec, const double *logp, size_t n, double *out,
                       sampling_rank *rank);

#endif
