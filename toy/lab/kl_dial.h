/* The KL dial: finds sampler parameters at a given KL(p||q) from the learner by root finding.
 *
 * Along a ray theta_q = theta_p + s d, KL(p||q) is convex in s with minimum 0 at s = 0 if logits
 * are linear in the parameters (tabular and log-linear policies). A target then has one solution s
 * >= 0 or is out of reach. For other policies (a transformer) KL is continuous but may not be
 * monotone: s is doubled from 1e-3 until KL first reaches the target, and the root is searched in
 * the last interval. A temperature change is a ray towards zero logits (hotter) or away from them
 * (colder). */
#ifndef GEPOLAB_TOY_LAB_KL_DIAL_H
#define GEPOLAB_TOY_LAB_KL_DIAL_H

#include "core/rl/enumerable.h"
#include "toy/lab/exact_gradient.h"

#include <stdint.h>

typedef enum lab_ray { LAB_RAY_HOTTER, LAB_RAY_COLDER, LAB_RAY_RANDOM } lab_ray;

/* Writes the ray's direction d[n_parameters]. A random direction has independent normal entries
 * sampled at (seed, RNG_SEARCH, entity), scaled to length 1. */
void lab_dial_direction(const enumerable *world, const double *theta_p, lab_ray ray, uint64_t seed,
                        uint64_t entity, double *direction);

/* The policies theta_p + s direction, 0 <= s <= most. */
typedef struct lab_half_line {
  const double *theta_p, *direction; /* [n_parameters] */
  double most;                       /* largest s, from lab_dial_most() */
} lab_half_line;
/* Writes theta_q on the ray with KL(p||q) = kl >= 0 nats, averaged over prompts, and stores s in
 * *scale. Errors: GL_EINPUT (beyond the largest KL on the ray, which the message gives). */
gl_status lab_dial_ray(const enumerable *world, const lab_half_line *along, double kl,
                       double *theta_q, double *scale, gl_error *err);
/* Returns the largest s of a ray: 1 for hotter (uniform logits), +inf for the others. */
double lab_dial_most(lab_ray ray);

/* Mixture of two distributions on n outcomes: finds q = (1 - m) p + m other with KL(p||q) = kl and
 * stores m in *mixture. Errors: GL_EINPUT (kl not reached at m = 1). */
gl_status lab_dial_mixture(const double *p, const double *other, size_t n, double kl, double *q,
                           double *mixture, gl_error *err);

#endif
