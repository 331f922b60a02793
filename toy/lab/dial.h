/* The KL dial: sampler parameters at a wanted KL(p||q) from the learner, solved for and not tried.
 *
 * Along a ray theta_q = theta_p + s d, KL(p||q) is convex in s with its minimum 0 at s = 0 wherever
 * logits are linear in the parameters (tabular and log-linear policies), so a wanted value has one
 * s >= 0 or is out of reach. Elsewhere (a transformer) it is continuous and need not be monotone:
 * the value is looked for where s, doubled from 1e-3, first meets it. A temperature is the ray
 * towards (hotter) or away from (colder) zero logits.
 */
#ifndef GEPOLAB_TOY_LAB_DIAL_H
#define GEPOLAB_TOY_LAB_DIAL_H

#include "core/rl/enumerable.h"

#include <stdint.h>

typedef enum lab_ray { LAB_RAY_HOTTER, LAB_RAY_COLDER, LAB_RAY_RANDOM } lab_ray;

/* d[n_parameters] of the ray; a random one has independent normal entries at (seed, RNG_SEARCH,
 * entity), scaled to length 1. */
void lab_dial_direction(const enumerable *world, const double *theta_p, lab_ray ray, uint64_t seed,
                        uint64_t entity, double *direction);

/* Writes theta_q on the ray at KL(p||q) = kl >= 0 nats, over prompts. GL_EINPUT with the largest
 * KL that the ray reaches where kl is beyond it. *scale is the s found. */
gl_status lab_dial_ray(const enumerable *world, const double *theta_p, const double *direction,
                       double most, double kl, double *theta_q, double *scale, gl_error *err);
/* Largest s of a ray: 1 for hotter (uniform logits), +inf for the others. */
double lab_dial_most(lab_ray ray);

/* Mixture of two distributions on n outcomes: q = (1 - m) p + m other with KL(p||q) = kl; *mixture
 * is m. GL_EINPUT where m = 1 does not reach kl. */
gl_status lab_dial_mixture(const double *p, const double *other, size_t n, double kl, double *q,
                           double *mixture, gl_error *err);

/* KL(p||q) over prompts and its mirror image; either pointer may be NULL. */
gl_status lab_divergence(const enumerable *world, const double *theta_p, const double *theta_q,
                         double *kl_pq, double *kl_qp, gl_error *err);

/* J and, where gradient is not NULL, its gradient[n_parameters]. */
gl_status lab_value(const enumerable *world, const double *theta, double *value, double *gradient,
                    gl_error *err);

#endif
