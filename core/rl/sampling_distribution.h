/* The `sampling` section of a recipe, and the truncation it describes. Temperature is part of the
 * policy: sampler and learner divide their logits by it. top-k and top-p are not: they turn the
 * policy q into the truncated distribution q~ that tokens are sampled from. */
#ifndef GEPOLAB_CORE_RL_SAMPLING_DISTRIBUTION_H
#define GEPOLAB_CORE_RL_SAMPLING_DISTRIBUTION_H

#include "core/base/error.h"
#include "core/config/config.h"

#include <stddef.h>
#include <stdint.h>

/* The log-probabilities used for importance weights. */
typedef enum sampling_weights {
  SAMPLING_RAW,       /* learner's and sampler's distributions, both before truncation */
  SAMPLING_TRUNCATED, /* learner's distribution before truncation, sampler's after it */
  SAMPLING_REPLAY     /* both renormalised over the tokens that the sampler kept */
} sampling_weights;

/* Who computes the recorded behaviour log-probabilities of sampled tokens. */
typedef enum sampling_logq {
  LOGQ_SAMPLER, /* the sampler: under its sampling distribution, which `sampling.behaviour` distorts
                 */
  LOGQ_LEARNER  /* the learner: from the parameters of the version that sampled, undistorted */
} sampling_logq;

typedef enum sampling_other { OTHER_NONE, OTHER_INITIAL, OTHER_UNIFORM } sampling_other;

/* How a sampler's distribution differs from the policy with the same parameters (paper/methods.md
 * §1.3). Logits z become round(z + noise e) / (temperature (1 + temperature_error)), with standard
 * normal e. In addition, a fraction of the responses is sampled from another policy. */
typedef struct sampling_behaviour {
  double noise;             /* standard deviation, >= 0 */
  int rounds_to_bfloat16;   /* precision: bfloat16 */
  double temperature_error; /* > -1 */
  sampling_other with;      /* the other policy: behaviour_mixture; OTHER_NONE: none */
  double share;             /* fraction of responses from the other policy, in [0, 1) */
} sampling_behaviour;

typedef struct sampling_spec {
  double temperature; /* > 0 */
  size_t top_k;       /* 0: off */
  double top_p;       /* in (0, 1]; 1: off */
  sampling_weights weights;
  sampling_logq logq;
  sampling_behaviour behaviour;
} sampling_spec;

/* Reads the section (NULL: temperature 1, no truncation, raw weights, no distortion). Errors:
 * GL_EINPUT, also for a mixture combined with truncation or logq: learner, for which there is no
 * formula. */
gl_status sampling_parse(sampling_spec *spec, const cfg_node *section, gl_error *err);

/* Reads the keys temperature, top_k and top_p of the section at r. `usual` supplies the values of
 * missing keys; NULL: the defaults in the table of fields. */
void sampling_read_dist(sampling_spec *dist, const sampling_spec *usual, cfg_reader *r);

/* Returns 1 if logits are distorted by noise, rounding or another temperature. */
int sampling_distorts(const sampling_spec *spec);
/* x rounded to the nearest bfloat16; ties to even. */
double sampling_to_bfloat16(double x);

/* Returns 1 if top-k or top-p may drop tokens of a vocabulary of n. */
int sampling_truncates(const sampling_spec *spec, size_t n);

typedef struct sampling_rank {
  double logp;
  size_t token;
} sampling_rank;

/* Writes log-probabilities of the truncated distribution to out[n], from the temperature-scaled
 * logp[n]; -inf for dropped tokens. top-k keeps every token at least as probable as the k-th, so
 * that ties do not depend on token numbers (as in Hugging Face's TopKLogitsWarper; uniform logits
 * are not truncated at all). top-p then keeps the shortest prefix, in order of probability and then
 * token number, whose fraction of the probability that top-k kept reaches top_p; at least one
 * token. rank[n] is scratch. If a log-probability is NaN, all are copied unchanged. out must not
 * overlap logp. */
void sampling_truncate(const sampling_spec *spec, const double *logp, size_t n, double *out,
                       sampling_rank *rank);

/* log(e^x + e^y), for a mixture of two samplers. */
double sampling_log_add(double x, double y);

/* --- sets of tokens kept by top-k and top-p --- */
/* The sets of tokens that top-k and top-p kept when a token was sampled. `weights: replay`
 * transfers them from the sampler to the learner (paper/methods.md §1.2). A set is an array of
 * 32-bit words, of the same size for every token of a run. For a small vocabulary it is a bit set:
 * token a is bit a % 32 of word a / 32. For a larger one it is a list: word 0 is the number of
 * tokens, followed by the tokens in ascending order; top-k bounds their number. An empty set means
 * that the distribution contained NaN and no token was dropped. Prefix: kept_. */

enum {
  KEPT_MOST_BITS = 1024, /* the largest vocabulary that uses bit sets */
  KEPT_MOST_WORDS = 4096 /* the maximum size of a set */
};
/* Word 0 of a list that was too small for all tokens. */
#define KEPT_OVERFLOW UINT32_MAX

typedef struct kept_shape {
  size_t vocabulary;
  size_t words; /* words per set; 0: there are no sets */
  int listed;   /* 1: a list of tokens; 0: a bit set */
} kept_shape;

/* The shape of the sets of a distribution, which must truncate (sampling_truncates()). With ties
 * top-k keeps more than k tokens, so lists have room for 2 k + 32. Errors: GL_EINPUT at the
 * position of `sampling` (NULL: none) if a large vocabulary is truncated by top-p only, or if top_k
 * needs sets of more than KEPT_MOST_WORDS words. */
gl_status kept_shape_of(kept_shape *out, const sampling_spec *spec, size_t vocabulary,
                        const cfg_node *sampling, gl_error *err);

/* Writes the tokens with finite log-probability in dist[shape->vocabulary] to set[shape->words]; an
 * empty set if a log-probability is NaN. A list that is too small gets KEPT_OVERFLOW. */
void kept_put(const kept_shape *shape, const double *dist, uint32_t *set);
/* Returns 1 if the set contains the token, which must be in the vocabulary. */
int kept_has(const kept_shape *shape, const uint32_t *set, size_t token);
/* The number of tokens in the set; 0 if it overflowed. */
size_t kept_count(const kept_shape *shape, const uint32_t *set);

/* The index of the first word of a list with a token >= least, or of the word after the last token.
 */
static inline size_t kept_from(const uint32_t *list, size_t least) {
  size_t low = 1, high = 1 + (size_t)list[0];
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (list[middle] < least)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

#endif
