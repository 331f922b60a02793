/* Factorial designs: settings of a sweep that change many fields at once, each at two levels.
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
 * With blocks, the signs of the words say which of the seeds a combination has, the first word
 * changing fastest; without, `seed` is an axis like any other. Each combination sets all its fields
 * together and is one value of the axis `factorial`, crossed with the other axes.
 */
#ifndef GEPOLAB_EXPERIMENTS_RECIPE_FACTORIAL_H
#define GEPOLAB_EXPERIMENTS_RECIPE_FACTORIAL_H

#include "core/base/error.h"
#include "core/config/config.h"

/* Puts the list of combinations, maps from paths to values, in the place of sweep.factorial; does
 * nothing where there is none. Comes behind cfg_resolve(). GL_EINPUT for a factor that is not one
 * capital letter or has not two values, a generator or block that names other than base factors,
 * two factors that are one (the same word) or a word of one letter, more than 2^12 combinations, a
 * field that is an axis as well, and as many seeds as there are no blocks. */
gl_status factorial_expand(cfg_doc *doc, gl_error *err);

#endif
