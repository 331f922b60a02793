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
  uint64_t id; /* address of its draws: entity of RNG_PROMPT and RNG_ROLLOUT */
  size_t n_groups, n_responses, n_tokens;
  size_t *group_start; /* [n_groups + 1] */
  size_t *token_start; /* [n_responses + 1] */
  int64_t *prompt;     /* [n_groups] the world's number of the prompt */
  double *reward;      /* [n_responses] */
  int32_t *token;      /* [n_tokens] */
  int64_t *version;    /* [n_tokens] learner version that drew the token */
  double *logq;        /* [n_tokens] sampler's log-probability, temperature-scaled, untruncated */
  double *logq_trunc;  /* [n_tokens] under the truncated (top-k/top-p) distribution drawn from */
  /* Of a transformer: the sets of tokens that samplers kept, [n_tokens] of kept_words words each,
   * as core/rl/sampling.h has them; no words: none are recorded. */
  uint32_t *kept;
  size_t kept_words;
  /* Of a transformer's batch under way: keys and values that are kept between draws. */
  unsigned char *cache; /* [cache_bytes] */
  size_t cache_bytes;
  /* Of a toy world: records of the exact distributions that responses were drawn from
   * (toy/world/measure.h). */
  double *dist; /* [n_dist] */
  size_t n_dist;
  bool own_dists; /* each response has a record of its own; else each different prompt, in order of
                     appearance */
  /* What its learner multiplies the loss of every response by: 1, unless whoever trains the batch
   * sets another weight. Not part of the binary form. */
  double loss_weight;
  /* In an update that takes several batches its first group is one with the last group of the batch
   * before, and has its prompt. False, unless whoever trains the batch says so; not part of the
   * binary form. */
  bool continues;
} batch;

/* Makes an empty batch able to hold the given shape: lengths[i] tokens for response i, equal groups
 * of group_size. All values zero, starts filled in. Sizes are checked for overflow. */
gl_status batch_init(batch *b, uint64_t id, size_t n_groups, size_t group_size,
                     const size_t *lengths, gl_error *err);
/* Room, zeroed, for what one kind of learner records: in place of what there was. GL_ENOMEM. */
gl_status batch_reserve_kept(batch *b, size_t words, gl_error *err);
gl_status batch_reserve_cache(batch *b, size_t bytes, gl_error *err);
gl_status batch_reserve_dists(batch *b, size_t n, bool own, gl_error *err);
/* Cuts every response i to its first lengths[i] tokens. Keys and values go. */
void batch_cut(batch *b, const size_t *lengths);
void batch_fini(batch *b);

/* A group of a batch. */
typedef struct batch_group {
  const batch *from;
  size_t group; /* below from->n_groups */
} batch_group;
/* Makes an empty batch of these groups, in this order, without distributions, keys and values: n of
 * them, all of as many responses. */
gl_status batch_take_groups(batch *b, uint64_t id, const batch_group *group, size_t n,
                            gl_error *err);
/* Whether the rewards of a group are not all the same number. */
int batch_rewards_differ(const batch *b, size_t group);

/* Multiplies the coefficients of n responses by the weight of each; response i has the coefficients
 * token_start[i] .. token_start[i + 1] - 1. A weight of 1 changes no bit. */
void batch_weigh(const double *loss_weight, const size_t *token_start, size_t n,
                 double *coefficient);
/* Groups of n batches that are trained together. The first batch continues none. */
size_t batches_groups(const batch *const *batches, size_t n);
/* The oldest version that drew a token of the batch; INT64_MAX where it has none. */
int64_t batch_oldest_version(const batch *b);

/* Binary form for checkpoints and pipes, native byte order, with a checksum; read refuses
 * anything truncated or inconsistent (GL_EINPUT) and leaves *b empty then. */
gl_status batch_write(const batch *b, FILE *to, gl_error *err);
gl_status batch_read(batch *b, FILE *from, gl_error *err);
/* The binary form does not say which optional records follow the columns: a batch that was read has
 * them all as cache, until its learner names it: sets of kept_words words and a cache, or where
 * dist_doubles is not 0 records of distributions, one of which has so many doubles at least. Sets
 * that an older program has not recorded stay away. GL_ENOMEM. */
gl_status batch_name_records(batch *b, size_t kept_words, size_t dist_doubles, gl_error *err);

/* Whether the starts are monotone and the counts agree; a cheap contract check at boundaries. */
int batch_is_consistent(const batch *b);

#endif
