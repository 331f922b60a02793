/* Exact quantities of a policy in a world whose responses can be listed: its mean reward J, the
 * gradient of J, which estimators are compared with, and divergences from another policy. */
#ifndef GEPOLAB_TOY_LAB_EXACT_GRADIENT_H
#define GEPOLAB_TOY_LAB_EXACT_GRADIENT_H

#include "core/rl/enumerable.h"

/* Computes KL(p||q) and KL(q||p), averaged over prompts; either pointer may be NULL. */
gl_status lab_divergence(const enumerable *world, const double *theta_p, const double *theta_q,
                         double *kl_pq, double *kl_qp, gl_error *err);

/* Computes J and, if gradient is not NULL, gradient[n_parameters]. */
gl_status lab_value(const enumerable *world, const double *theta, double *value, double *gradient,
                    gl_error *err);

#endif
