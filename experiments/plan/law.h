/* Laws of durations, written out anew: all durations multiplied by a factor. */
#ifndef GEPOLAB_EXPERIMENTS_PLAN_LAW_H
#define GEPOLAB_EXPERIMENTS_PLAN_LAW_H

#include "core/base/error.h"
#include "core/config/config.h"

/* The law at node as JSON, which is a value of YAML too, with every draw multiplied by factor
 * (above 0); an interval becomes the parameters it stands for, and the file of an empirical law is
 * named by its whole path. malloc'd, the caller frees. Errors are delay_parse()'s. */
gl_status plan_law_times(char **out, const cfg_node *node, double factor, gl_error *err);

#endif
