/* Brent's method of GSL, with its failures as errors. */
#include "core/base/root.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_roots.h>

gl_status root_find(gsl_function *f, double low, double high, double absolute, double relative,
                    double *root, gl_error *err) {
  enum { MOST = 200 };
  gsl_root_fsolver *solver = gsl_root_fsolver_alloc(gsl_root_fsolver_brent);
  if (solver == NULL) return gl_fail_memory(err, "a root finder");
  int code = gsl_root_fsolver_set(solver, f, low, high), near = GSL_CONTINUE;
  for (int i = 0; i < MOST && code == GSL_SUCCESS && near == GSL_CONTINUE; ++i) {
    code = gsl_root_fsolver_iterate(solver);
    near = gsl_root_test_interval(gsl_root_fsolver_x_lower(solver),
                                  gsl_root_fsolver_x_upper(solver), absolute, relative);
  }
  *root = gsl_root_fsolver_root(solver);
  gsl_root_fsolver_free(solver);
  if (code == GSL_SUCCESS) code = near;
  return code == GSL_SUCCESS ? GL_OK
                             : gl_fail(err, GL_ENUMERIC, "no root found between %g and %g: %s", low,
                                       high, gsl_strerror(code));
}
