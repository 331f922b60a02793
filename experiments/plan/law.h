/* Distributions of durations, written out anew: all durations multiplied by a factor. */
#ifndef GEPOLAB_EXPERIMENTS_PLAN_DIST_H
#define GEPOLAB_EXPERIMENTS_PLAN_DIST_H

#include "core/base/error.h"
#include "core/config/config.h"

/* The distribution at node as JSON, which is a value of YAML too, with every draw multiplied by
 * factor (above 0); an interval becomes the parameters it stands for, and the file of an empirical
 * distribution is named by its whole path. malloc'd, the caller frees. Errors are delay_parse()'s.
 */
gl_status plan_dist_times(char **out, const cfg_node *node, double factor, gl_error *err);

#endif
