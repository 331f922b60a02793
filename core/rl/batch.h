/* A batch of groups of responses: what a sampler sends and a learner trains on.
 *
 * Ragged arrays, outermost first: group g owns responses [group_start[g], group_start[g+1]);
 * response i owns tokens [token_start[i], token_start[i+1]). Everything a later update needs
 * travels in the batch, so no learner ever looks up old parameters. Versions and sampler
 * log-probabilities are stored per token because weights may change while a response is being
 * generated.
 */
#ifndef GEPOLAB_CORE_RL_BATCH_H
#define GEPOLAB_CORE_RL_BATCH_H

#include "core/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct batch {
  uint64_t id; /* entity of RNG_PROMPT and RNG_ROLLOUT: selects the batch's random numbers */
  size_t n_groups, n_responses, n_tokens;
  size_t *group_start; /* [n_groups + 1] */
  size_t *token_start; /* [n_responses + 1] */
  int64_t *prompt;     /* [n_groups] the world's index of the prompt */
  double *reward;      /* [n_responses] */
  int32_t *token;      /* [n_tokens] */
  int64_t *version;    /* [n_tokens] learner version that sampled the token */
  double *logq;        /* [n_tokens] sampler's log-probability, temperature-scaled, untruncated */
  double *logq_trunc;  /* [n_tokens] under the truncated (top-k/top-p) distribution that was sampled
                          from */
  /* Transformer only: the sets of tokens kept by top-k or top-p, [n_tokens] sets of kept_words
   * words each, in the format of core/rl/sampling_distribution.h; kept_words 0: not recorded. */
  uint32_t *kept;
  size_t kept_words;
  /* Transformer only, in an incomplete batch: keys and values stored between requests. */
  unsigned char *cache; /* [cache_bytes] */
  size_t cache_bytes;
  /* Toy worlds only: the exact distributions that responses were sampled from (toy_behaviour,
   * toy/world/measure.h). */
  double *dist; /* [n_dist] */
  size_t n_dist;
  bool own_dists; /* one distribution per response; false: one per distinct prompt, in order of
                     appearance */
  /* The learner multiplies the loss of every response by this weight. It is 1 unless the trainer
   * sets another weight. Not part of the binary form. */
  double loss_weight;
  /* In an update on several batches: the first group of this batch and the last group of the
   * previous batch form one group, with the same prompt. Set by the trainer, otherwise false; not
   * part of the binary form. */
  bool continues;
  /* In an update: 0, or the coefficient of replay if this batch is replayed (core/rl/replay.h). Set
   * by the trainer; not part of the binary form. */
  double replay;
} batch;

/* Allocates the arrays of an empty batch: lengths[i] tokens for response i, groups of group_size
 * responses. Fills in the starts and loss_weight = 1; all other values are zero. Sizes are checked
 * for overflow. */
gl_status batch_init(batch *b, uint64_t id, size_t n_groups, size_t group_size,
                     const size_t *lengths, gl_error *err);
/* Allocate zeroed memory for optional contents and free the previous ones. bytes is a multiple of
 * 8, as the binary form counts doubles. Errors: GL_ENOMEM. */
gl_status batch_reserve_kept(batch *b, size_t words, gl_error *err);
gl_status batch_reserve_cache(batch *b, size_t bytes, gl_error *err);
gl_status batch_reserve_dists(batch *b, size_t n, bool own, gl_error *err);
/* Truncates every response i to its first lengths[i] tokens and frees keys and values. */
void batch_cut(batch *b, const size_t *lengths);
void batch_fini(batch *b);

/* A group of a batch. */
typedef struct batch_group {
  const batch *from;
  size_t group; /* index, below from->n_groups */
} batch_group;
/* Makes a batch of n groups, in this order; they must all have the same number of responses. *b
 * must be empty. Distributions, keys and values are not copied. */
gl_status batch_take_groups(batch *b, uint64_t id, const batch_group *group, size_t n,
                            gl_error *err);
/* A response of a batch. */
typedef struct batch_response {
  const batch *from;
  size_t response; /* index, below from->n_responses */
} batch_response;
/* Makes a batch of n responses, in this order, each the only one of its group. *b must be empty and
 * not among the sources, which must all have the same kept_words. Distributions, keys and values
 * are not copied. */
gl_status batch_take_responses(batch *b, uint64_t id, const batch_response *response, size_t n,
                               gl_error *err);
/* Whether the rewards of a group differ. */
int batch_rewards_differ(const batch *b, size_t group);

/* Multiplies the coefficients of each of n responses by its weight; response i has coefficients
 * token_start[i] .. token_start[i + 1] - 1. A weight of 1 changes no bit. */
void batch_weigh(const double *loss_weight, const size_t *token_start, size_t n,
                 double *coefficient);
/* The number of groups of n batches that are trained together. The first batch must not have
 * `continues` set. */
size_t batches_groups(const batch *const *batches, size_t n);
/* The oldest version that sampled a token of the batch; INT64_MAX if it has no tokens. */
int64_t batch_oldest_version(const batch *b);

/* Writes or reads the binary form for checkpoints and pipes: native byte order, with a checksum.
 * batch_read() rejects truncated or inconsistent data (GL_EINPUT) and then leaves *b empty. */
gl_status batch_write(const batch *b, FILE *to, gl_error *err);
gl_status batch_read(batch *b, FILE *from, gl_error *err);
/* Assigns the optional contents of a batch that was read from a file. The binary form does not mark
 * their type, so batch_read() stores all of them as cache until the learner calls this. If
 * dist_doubles is 0 they are sets of kept_words words followed by a cache. Otherwise they are
 * distributions, each of at least dist_doubles doubles. Sets that an older program did not store
 * remain absent. Errors: GL_ENOMEM. */
gl_status batch_assign_optional(batch *b, size_t kept_words, size_t dist_doubles, gl_error *err);

/* Checks cheaply that the starts are monotone and the counts agree; used at module boundaries. */
int batch_is_consistent(const batch *b);

#endif
