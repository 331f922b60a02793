/* The designs of a sweep. Each is a key of `sweep` (core/config/designs.h) that lists settings of
 * several fields at once; every setting is one value of the axis of that name, crossed with the
 * other axes. And the fields that a recipe's `tune` chooses.
 *
 * The functions that expand a design put the list of its settings, maps from paths to values, in
 * its place; they do nothing where there is none, and come after cfg_resolve(). */
#ifndef GEPOLAB_EXPERIMENTS_RECIPE_DESIGNS_H
#define GEPOLAB_EXPERIMENTS_RECIPE_DESIGNS_H

#include "core/base/error.h"
#include "core/config/config.h"

#include <stddef.h>

/* --- factorial designs --- */

/* Many fields, each at two levels:
 *
 *   sweep:
 *     factorial:
 *       factors:
 *         A: {sampling.top_p: [1, 0.95]}
 *         B: {train.group_size: [8, 16]}
 *         C: {optimizer.lr: [1e-4, 2e-4], optimizer.warmup: [10, 20]}
 *         D: {cluster.delay: [0, 31]}
 *       generators: {D: ABC}
 *       blocks: {words: [AB], seeds: [1, 2]}
 *     algorithm: [gspo, gepo]
 *
 * Factors without a generator are base factors: their k levels are run in all 2^k combinations, the
 * first factor changing fastest. The level of a factor with a generator is the product of those of
 * its word, low being -1 and high +1 (Box, Hunter and Hunter, Statistics for Experimenters, ch. 6).
 * With blocks, the signs of the words choose the seed of a combination, the first word changing
 * fastest; without, `seed` is an axis like any other.
 *
 * GL_EINPUT for a factor that is not one capital letter or has not two values, a generator or block
 * that names other than base factors, two factors with the same word or a word of one letter, more
 * than 2^12 combinations, a field that is an axis as well, and a number of seeds that is not the
 * number of blocks. */
gl_status factorial_expand(cfg_doc *doc, gl_error *err);

/* --- one-at-a-time designs --- */

/* Settings that each differ from one base setting in one field:
 *
 *   sweep:
 *     one_at_a_time:
 *       train.group_size: [8, 4, 16]
 *       sampling.temperature: [1, 0.6]
 *     algorithm: [gspo, gepo]
 *
 * The first value of every list is the base. The base itself and one setting for each further value
 * are run: four settings here. Such a design cannot show interactions; a factorial one can.
 *
 * GL_EINPUT for a field with fewer than two values, a field inside another, one that is an axis as
 * well or that `tune` chooses, `algorithm` and `seed`, and beside a random search or a factorial
 * design. */
gl_status one_at_a_time_expand(cfg_doc *doc, gl_error *err);

/* --- random search --- */

/* Settings that are drawn instead of listed:
 *
 *   sweep:
 *     random:
 *       draws: 32
 *       seed: 1
 *       fields:
 *         optimizer.lr: {law: log_uniform, from: 1e-4, to: 1e-1}
 *         train.group_size: {choice: [4, 8, 16]}
 *     algorithm: [grpo, gepo]
 *
 * Every algorithm and every seed is run with the same draws. A number is drawn at an address made
 * of the search's seed, the field and the number of the draw (core/random/rng.h), so that more
 * draws or other fields change no other number. It is rounded to a ten-thousandth of its
 * distribution's width, for readability. A draw that equals an earlier one is drawn again.
 *
 * GL_EINPUT for an unknown distribution, a field that is an axis as well, and more draws than there
 * are different ones. */
gl_status random_search_draw(cfg_doc *doc, gl_error *err);

/* --- fields that `tune` chooses --- */

enum { TUNED_FIELDS_MOST = 8 };

/* optimizer.lr where `tune` has `lr`, and the fields listed under its `fields`. */
typedef struct tuned_fields {
  const char *path[TUNED_FIELDS_MOST];       /* [n] dotted; borrowed from the doc */
  const cfg_node *values[TUNED_FIELDS_MOST]; /* the values that are tried; borrowed */
  size_t n;                                  /* 0: the recipe tunes nothing */
} tuned_fields;

/* Unchecked. Fields beyond the most are left out, which tune_plan_read() refuses. */
tuned_fields tuned_fields_of(const cfg_doc *doc);
/* The field that `tune` chooses and that is `path`, inside of it or around it; NULL: none. */
const char *tuned_fields_meet(const cfg_doc *doc, const char *path);

#endif
