/* The designs of a sweep, and the fields that a recipe's `tune` chooses. A design is a key of
 * `sweep` (cfg_design, core/config/fields.h) that lists settings of several fields at once. Every
 * setting is one value of the axis with that name, crossed with the other axes.
 *
 * The functions that expand a design replace it by the list of its settings, maps from paths to
 * values. They do nothing if the design is absent, and must be called after cfg_resolve(). */
#ifndef GEPOLAB_EXPERIMENTS_RECIPE_DESIGNS_H
#define GEPOLAB_EXPERIMENTS_RECIPE_DESIGNS_H

#include "core/base/error.h"
#include "core/config/config.h"

#include <stddef.h>

/* --- factorial designs --- */

/* Factorial design: many fields, each at two levels:
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
 * Factors without a generator are base factors: all 2^k combinations of their levels are run, the
 * first factor varying fastest. The level of a factor with a generator is the product of the levels
 * in its word, with low = -1 and high = +1 (Box, Hunter and Hunter, Statistics for Experimenters,
 * ch. 6). With blocks, the signs of the words select the seed of a combination, the first word
 * varying fastest; otherwise `seed` is an ordinary axis.
 *
 * Errors: GL_EINPUT (a factor that is not one capital letter or does not have two values; a
 * generator or block with factors that are not base factors; two factors with the same word, or a
 * word of one letter; more than 2^12 combinations; a field that is also an axis; a number of seeds
 * different from the number of blocks). */
gl_status factorial_expand(cfg_doc *doc, gl_error *err);

/* --- one-at-a-time designs --- */

/* One-at-a-time design: settings that each differ from one base setting in one field:
 *
 *   sweep:
 *     one_at_a_time:
 *       train.group_size: [8, 4, 16]
 *       sampling.temperature: [1, 0.6]
 *     algorithm: [gspo, gepo]
 *
 * The first value of every list is the base. The base and one setting for each further value are
 * run: four settings here. Such a design cannot show interactions; a factorial design can.
 *
 * Errors: GL_EINPUT (a field with fewer than two values, inside another field, that is also an
 * axis, or that `tune` chooses; `algorithm` or `seed`; a random search or factorial design in the
 * same sweep). */
gl_status one_at_a_time_expand(cfg_doc *doc, gl_error *err);

/* --- random search --- */

/* Random search: settings that are sampled instead of listed:
 *
 *   sweep:
 *     random:
 *       draws: 32
 *       seed: 1
 *       fields:
 *         optimizer.lr: {distribution: log_uniform, from: 1e-4, to: 1e-1}
 *         train.group_size: {choice: [4, 8, 16]}
 *     algorithm: [grpo, gepo]
 *
 * All algorithms and seeds use the same samples. A number is sampled at an address made of the
 * search's seed, the field and the index of the sample (core/random/rng.h), so that adding samples
 * or changing other fields changes no other number. It is rounded to a ten-thousandth of its
 * distribution's width for readability. A sample that equals an earlier one is replaced by a new
 * one.
 *
 * Errors: GL_EINPUT (an unknown distribution, a field that is also an axis, or more samples than
 * there are distinct ones). */
gl_status random_search_draw(cfg_doc *doc, gl_error *err);

/* --- fields that `tune` chooses --- */

enum { TUNED_FIELDS_MOST = 8 };

/* The fields that `tune` chooses: optimizer.lr if it has `lr`, and the fields listed under
 * `fields`. */
typedef struct tuned_fields {
  const char *path[TUNED_FIELDS_MOST];       /* [n] dotted paths; borrowed from the document */
  const cfg_node *values[TUNED_FIELDS_MOST]; /* values to try; borrowed */
  size_t n;                                  /* 0: the recipe tunes nothing */
} tuned_fields;

/* Not validated. Fields beyond TUNED_FIELDS_MOST are omitted; tune_plan_read() rejects them. */
tuned_fields tuned_fields_of(const cfg_doc *doc);

#endif
