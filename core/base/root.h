/* Roots of functions of one variable. */
#ifndef GEPOLAB_CORE_BASE_ROOT_H
#define GEPOLAB_CORE_BASE_ROOT_H

#include "core/base/error.h"

#include <gsl/gsl_math.h>

/* Finds a root of f between low and high, where f has different signs, by Brent's method: to within
 * `absolute` plus `relative` times the root. Errors: GL_ENOMEM, GL_ENUMERIC (equal signs, a value
 * that is not finite, or no convergence). */
gl_status root_find(gsl_function *f, double low, double high, double absolute, double relative,
                    double *root, gl_error *err);

#endif
