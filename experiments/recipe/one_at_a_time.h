/* One-at-a-time designs: settings of a sweep that each differ from one base setting in one field.
 *
 *   sweep:
 *     one_at_a_time:
 *       train.group_size: [8, 4, 16]
 *       sampling.temperature: [1, 0.6]
 *     algorithm: [gspo, gepo]
 *
 * The first value of every list is the base. The base itself and one setting for each further value
 * are run: four settings here. Each sets all the fields together and is one value of the axis
 * `one_at_a_time`, crossed with the other axes. Interactions cannot be seen in such a design;
 * factorial.h has those that show them.
 */
#ifndef GEPOLAB_EXPERIMENTS_RECIPE_ONE_AT_A_TIME_H
#define GEPOLAB_EXPERIMENTS_RECIPE_ONE_AT_A_TIME_H

#include "core/base/error.h"
#include "core/config/config.h"

/* Puts the list of settings, maps from paths to values, in the place of sweep.one_at_a_time; does
 * nothing where there is none. Comes behind cfg_resolve(). GL_EINPUT for a field without two values
 * or more, a field inside another, one that is an axis as well or that `tune` chooses, `algorithm`
 * and `seed`, and beside a random search or a factorial design. */
gl_status one_at_a_time_expand(cfg_doc *doc, gl_error *err);

#endif
