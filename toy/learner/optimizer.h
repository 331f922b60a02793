/* Gradient ascent on a vector of doubles: SGD with momentum, Adam (1412.6980), AdamW (1711.05101),
 * in PyTorch's conventions. */
#ifndef GEPOLAB_TOY_LEARNER_OPTIMIZER_H
#define GEPOLAB_TOY_LEARNER_OPTIMIZER_H

#include "core/rl/optimizer.h"

#include <stddef.h>
#include <stdint.h>

typedef struct toy_optimizer {
  optimizer_spec spec;
  size_t n;
  uint64_t steps; /* taken so far */
  double *first;  /* [n] momentum, or Adam's mean of gradients; NULL for plain SGD */
  double *second; /* [n] Adam's mean of squares; NULL for SGD */
} toy_optimizer;

gl_status toy_optimizer_init(toy_optimizer *o, const optimizer_spec *spec, size_t n, gl_error *err);
void toy_optimizer_fini(toy_optimizer *o);

/* theta[n] moves along `direction`[n] = d(-loss)/dtheta, whose norm is first brought down to
 * clip_grad_norm (direction is changed then). Returns the norm before that. */
double toy_optimizer_step(toy_optimizer *o, double lr, double *theta, double *direction);

#endif
