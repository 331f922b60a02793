/* How a policy is evaluated: the section `evaluation` of a world, and evaluation sets. */
#ifndef GEPOLAB_CORE_RL_EVALUATION_H
#define GEPOLAB_CORE_RL_EVALUATION_H

#include "core/base/error.h"
#include "core/config/config.h"
#include "core/rl/sampling_distribution.h"

#include <stddef.h>

/* How a policy is scored. Each world supports some of these. */
typedef enum evaluation_kind {
  EVALUATION_EXACT,  /* the expected reward, by enumeration of all responses */
  EVALUATION_GREEDY, /* the reward of the greedily decoded response */
  EVALUATION_SAMPLED /* the mean reward of sampled responses */
} evaluation_kind;

/* The evaluation has its own sampling distribution, independent of the recipe's `sampling`. */
typedef struct evaluation_spec {
  evaluation_kind kind;
  sampling_spec dist; /* for exact and sampled evaluation; its `weights` are not used */
} evaluation_spec;

/* Reads the key `evaluation` of the world section at `world`: one of kinds[n], the first being the
 * default, or a map {kind, temperature: 1, top_k: 0, top_p: 1}. `own` is left at that map (or at no
 * map), so that a world can read its own further keys from it. `own` holds the first error,
 * including errors of `world`; the caller must call cfg_end() on it. temperature, top_k and top_p
 * are refused for greedy evaluation, which they cannot change. */
void evaluation_read(evaluation_spec *out, cfg_reader *world, cfg_reader *own,
                     const evaluation_kind *kinds, int n);

/* Reads the keys kind, temperature, top_k and top_p of the evaluation set at `own`. Missing keys
 * take their values from `usual`. */
void evaluation_read_set(evaluation_spec *out, const evaluation_spec *usual, cfg_reader *own,
                         const evaluation_kind *kinds, int n);

/* --- evaluation sets --- */
/* Evaluation sets: problems that a policy is scored on in addition to, or instead of, the training
 * problems.
 *
 *   evaluation: {prompts: 64, halves: true, sets: [{name: own}, {name: long, task: {digits: 3}}]}
 *
 * A set is a map with a name. Missing keys default to those of the evaluation and the world, so a
 * set with only a name is the evaluation of a recipe without sets. The first set is the main one;
 * its score is the run's score. With `halves` every set is also scored separately on its odd and
 * its even problems, so that one half can select the best evaluation and the other half score it
 * without selection bias. Prefix: evaluation_sets_. */

enum { EVALUATION_NAME_SIZE = 64, EVALUATION_MOST_SETS = 32 };

/* The set and half that one score belongs to. */
typedef struct evaluation_part {
  char set[EVALUATION_NAME_SIZE];
  int half; /* 0: all problems of the set; 1: the first, third, …; 2: the others */
} evaluation_part;

typedef struct evaluation_sets {
  size_t n; /* 0: the recipe has neither sets nor halves */
  int halves;
  evaluation_part *part; /* [n_parts] ordered by set, each set before its halves; owned */
  size_t n_parts;
} evaluation_sets;

/* Reads the keys `sets` and `halves` of the evaluation section at `own`. Only the names of sets are
 * read; the world reads their other keys. Names must differ and have 1 to 63 bytes of UTF-8 without
 * control characters. With halves but no `sets` there is one set called "all". Errors are stored in
 * the reader. Call evaluation_sets_fini() even after an error. */
void evaluation_sets_read(evaluation_sets *out, cfg_reader *own);
void evaluation_sets_fini(evaluation_sets *s);
/* The number of parts of each set: 1, or 3 with halves. */
size_t evaluation_sets_parts(const evaluation_sets *s);

/* Errors: GL_EINPUT at `at` if a set has too few problems to be scored or split in halves. */
gl_status evaluation_sets_check(const evaluation_sets *s, const char *set, size_t problems,
                                const cfg_node *at, gl_error *err);
/* Averages score[problems * each]; the `each` scores of a problem are adjacent. Writes the mean to
 * out[0] and, with halves, the means of the halves to out[1] and out[2]. The number of problems
 * must have been checked. */
void evaluation_sets_means(const evaluation_sets *s, const double *score, size_t problems,
                           size_t each, double *out);

#endif
