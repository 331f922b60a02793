/* The `sampling` section of a recipe, and the truncation it describes. Temperature belongs to the
 * policy itself (sampler and learner divide their logits by it alike); top-k and top-p do not:
 * they turn the policy q into the distribution q~ that tokens are really drawn from. */
#ifndef GEPOLAB_CORE_RL_SAMPLING_H
#define GEPOLAB_CORE_RL_SAMPLING_H

#include "core/base/error.h"
#include "core/config/config.h"

#include <stddef.h>
#include <stdint.h>

/* Which log-probabilities importance weights are made of. */
typedef enum sampling_weights {
  SAMPLING_RAW,       /* the learner's distribution against the sampler's, both before truncation */
  SAMPLING_TRUNCATED, /* the learner's distribution against the truncated one that was drawn from */
  SAMPLING_REPLAY     /* both renormalised over the tokens that the sampler kept */
} sampling_weights;

/* Who computes the behaviour log-probabilities that are recorded of sampled tokens. */
typedef enum sampling_logq {
  LOGQ_SAMPLER, /* the sampler: of the distribution it sampled from, distorted by
                    `sampling.behaviour` */
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

/* Reads the keys temperature, top_k and top_p of the section that r is at; usual: their values
 * where it leaves them out; NULL: as the table of fields has them. */
void sampling_read_dist(sampling_spec *dist, const sampling_spec *usual, cfg_reader *r);

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

/* --- the tokens that top-k and top-p kept --- */
/* The tokens that top-k or top-p kept when a token was sampled, which `weights: replay` carries
 * from the sampler to the learner (paper/methods.md §1.2). A set is an array of words of 32 bits,
 * the same number of them for every token of a run. Of a small vocabulary each token has a bit: bit
 * a % 32 of word a / 32. Of a larger one word 0 is the number of tokens and the words behind it are
 * the tokens, ascending; top-k bounds how many there are. An empty set means that the
 * distribution was not a number, and that no token was left out. Prefix: kept_. */

enum {
  KEPT_MOST_BITS = 1024, /* the largest vocabulary whose sets are bits */
  KEPT_MOST_WORDS = 4096 /* of a set */
};
/* Word 0 of a list that had no room for all tokens. */
#define KEPT_OVERFLOW UINT32_MAX

typedef struct kept_shape {
  size_t vocabulary;
  size_t words; /* of one set; 0: there are no sets */
  int listed;   /* 1: a list of tokens; 0: a bit for each */
} kept_shape;

/* The shape of the sets of a distribution, which truncates (sampling_truncates()). Of equally
 * probable tokens top-k keeps more than k, so lists have room for 2 k + 32. GL_EINPUT at the place
 * of `sampling` (NULL: nowhere) where a large vocabulary is cut by top-p alone, or top_k is so
 * large that sets would have more than KEPT_MOST_WORDS. */
gl_status kept_shape_of(kept_shape *out, const sampling_spec *spec, size_t vocabulary,
                        const cfg_node *sampling, gl_error *err);

/* Writes the tokens of finite log-probability of distribution[shape->vocabulary] into
 * set[shape->words]; none if one of them is not a number. A list without room for all gets
 * KEPT_OVERFLOW. */
void kept_put(const kept_shape *shape, const double *dist, uint32_t *set);
/* 1 if the set holds the token, which is in the vocabulary. */
int kept_has(const kept_shape *shape, const uint32_t *set, size_t token);
/* How many tokens it holds; 0 for one that overflowed. */
size_t kept_count(const kept_shape *shape, const uint32_t *set);

/* Where the tokens >= `least` of a list begin: its first word with one, or the word behind all. */
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
