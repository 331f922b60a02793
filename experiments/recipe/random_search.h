/* Random search: settings of a sweep that are drawn instead of listed.
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
 * Each draw sets all its fields together and is one value of the axis `random`, crossed with the
 * other axes: every algorithm and every seed meets the same draws. A number is drawn at an address
 * made of the search's seed, the field and the number of the draw (core/random/rng.h), so more
 * draws or other fields change none. It is rounded to a ten-thousandth of its distribution's width,
 * so that it can be read. A draw that an earlier one equals is drawn again.
 */
#ifndef GEPOLAB_EXPERIMENTS_RECIPE_RANDOM_SEARCH_H
#define GEPOLAB_EXPERIMENTS_RECIPE_RANDOM_SEARCH_H

#include "core/base/error.h"
#include "core/config/config.h"

/* Puts the list of draws, maps from the fields' paths to their values, in the place of
 * sweep.random; does nothing where there is none. Comes behind cfg_resolve(). GL_EINPUT for a
 * distribution that is none, a field that is an axis as well, and more draws than there are
 * different ones. */
gl_status random_search_draw(cfg_doc *doc, gl_error *err);

#endif
