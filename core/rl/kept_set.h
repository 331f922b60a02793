/* Which tokens a sampler kept when it drew one under top-k or top-p: what `weights: replay` brings
 * from the sampler to the learner (paper/methods.md §1.2). A set is an array of words of 32 bits,
 * the same number of them for every token of a run. Of a small vocabulary each token has a bit: bit
 * a % 32 of word a / 32. Of a larger one word 0 is the number of tokens and the words behind it are
 * the tokens, ascending; top-k bounds how many there are. A set without any token stands for a
 * distribution that was not a number, of which nothing was left out. Prefix: kept_. */
#ifndef GEPOLAB_CORE_RL_KEPT_SET_H
#define GEPOLAB_CORE_RL_KEPT_SET_H

#include "core/rl/sampling.h"

#include <stddef.h>
#include <stdint.h>

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
