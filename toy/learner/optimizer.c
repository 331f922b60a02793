/* The optimiser of small worlds: SGD, Adam and AdamW steps, and gradient-norm clipping. */
#include "toy/learner/learner.h"

#include <math.h>
#include <stdlib.h>

gl_status toy_optimizer_init(toy_optimizer *o, const optimizer_spec *spec, size_t n,
                             gl_error *err) {
  *o = (toy_optimizer){.spec = *spec, .n = n};
  int adam = spec->kind != OPTIMIZER_SGD;
  if (adam || spec->momentum > 0) o->first = calloc(n, sizeof *o->first);
  if (adam) o->second = calloc(n, sizeof *o->second);
  if (((adam || spec->momentum > 0) && o->first == NULL) || (adam && o->second == NULL)) {
    toy_optimizer_fini(o);
    return gl_fail_memory(err, "the optimizer's state");
  }
  return GL_OK;
}

void toy_optimizer_fini(toy_optimizer *o) {
  free(o->first);
  free(o->second);
  *o = (toy_optimizer){0};
}

static double clip(double limit, double *direction, size_t n) {
  double square = 0;
  for (size_t i = 0; i < n; ++i) square += direction[i] * direction[i];
  double norm = sqrt(square);
  if (limit > 0 && norm > limit) {
    double shrink = limit / norm;
    for (size_t i = 0; i < n; ++i) direction[i] *= shrink;
  }
  return norm;
}

static void step_sgd(toy_optimizer *o, double lr, double *theta, const double *direction) {
  const double decay = o->spec.weight_decay, momentum = o->spec.momentum;
  for (size_t i = 0; i < o->n; ++i) {
    double g = direction[i] - decay * theta[i];
    if (o->first != NULL) g = o->first[i] = momentum * o->first[i] + g;
    theta[i] += lr * g;
  }
}

static void step_adam(toy_optimizer *o, double lr, double *theta, const double *direction) {
  const double b1 = o->spec.beta1, b2 = o->spec.beta2, eps = o->spec.eps;
  const double correct1 = 1 - pow(b1, (double)o->steps), correct2 = 1 - pow(b2, (double)o->steps);
  const int decoupled = o->spec.kind == OPTIMIZER_ADAMW;
  const double in_gradient = decoupled ? 0 : o->spec.weight_decay;
  const double shrink = decoupled ? 1 - lr * o->spec.weight_decay : 1;
  double *restrict m = o->first, *restrict v = o->second;
  for (size_t i = 0; i < o->n; ++i) {
    double g = direction[i] - in_gradient * theta[i];
    m[i] = b1 * m[i] + (1 - b1) * g;
    v[i] = b2 * v[i] + (1 - b2) * g * g;
    theta[i] = shrink * theta[i] + lr * (m[i] / correct1) / (sqrt(v[i] / correct2) + eps);
  }
}

double toy_optimizer_step(toy_optimizer *o, double lr, double *theta, double *direction) {
  double norm = clip(o->spec.clip_grad_norm, direction, o->n);
  ++o->steps;
  if (o->spec.kind == OPTIMIZER_SGD)
    step_sgd(o, lr, theta, direction);
  else
    step_adam(o, lr, theta, direction);
  return norm;
}
