/* How a policy is evaluated: the section `evaluation` of a world, and its evaluation sets. */
#ifndef GEPOLAB_CORE_RL_EVALUATION_H
#define GEPOLAB_CORE_RL_EVALUATION_H

#include "core/base/error.h"
#include "core/config/config.h"
#include "core/rl/sampling.h"

#include <stddef.h>

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

/* --- evaluation sets --- */
/* What a policy is scored on besides, or instead of, what it is trained on.
 *
 *   evaluation: {prompts: 64, halves: true, sets: [{name: own}, {name: long, task: {digits: 3}}]}
 *
 * A set is a map with a name. What it leaves out is as the evaluation and the world have it, so one
 * that has nothing but a name is the evaluation of a recipe without sets. The first set is the main
 * one, whose score is the run's score. With `halves` every set is also scored on its odd and on its
 * even problems apart: who chooses the best evaluation by one half may score it on the other, which
 * had no part in the choice. Prefix: evaluation_sets_. */

enum { EVALUATION_NAME_SIZE = 64, EVALUATION_MOST_SETS = 32 };

/* What one score of an evaluation is of. */
typedef struct evaluation_part {
  char set[EVALUATION_NAME_SIZE];
  int half; /* 0: all problems of the set; 1: its first, third, …; 2: the others */
} evaluation_part;

typedef struct evaluation_sets {
  size_t n; /* 0: neither sets nor halves are asked for */
  int halves;
  evaluation_part *part; /* [n_parts] set by set, of each the whole before its halves; owned */
  size_t n_parts;
} evaluation_sets;

/* Reads the keys `sets` and `halves` of the evaluation section that `own` is at; of each set
 * its name alone, for the world reads the rest. Names are 1 to 63 bytes of UTF-8 without control
 * characters and differ. Without `sets`, halves are those of one set called "all". Errors stay in
 * the reader. Release with evaluation_sets_fini() in any case. */
void evaluation_sets_read(evaluation_sets *out, cfg_reader *own);
void evaluation_sets_fini(evaluation_sets *s);
/* How many parts each set has. */
size_t evaluation_sets_parts(const evaluation_sets *s);

/* GL_EINPUT at that place where a set has too few problems to be scored, or to be halved. */
gl_status evaluation_sets_check(const evaluation_sets *s, const char *set, size_t problems,
                                const cfg_node *at, gl_error *err);
/* The mean score of problems, of which each was asked so often: score[problems * each], those of a
 * problem side by side. Into out[0], and the means of the halves, where wanted, into out[1] and
 * out[2]. The number of problems has been checked. */
void evaluation_sets_means(const evaluation_sets *s, const double *score, size_t problems,
                           size_t each, double *out);

#endif
