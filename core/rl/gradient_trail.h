/* The cosine between the gradients of consecutive optimiser updates, which announces that steps
 * begin to undo each other (GAC, 2603.01501): the gradient of the last update is kept, whole or as
 * many of its numbers as its owner chooses, the same ones at every update. Part of a checkpoint,
 * for the first update after one is compared, too.
 */
#ifndef GEPOLAB_CORE_RL_GRADIENT_TRAIL_H
#define GEPOLAB_CORE_RL_GRADIENT_TRAIL_H

#include "core/base/error.h"

#include <stddef.h>
#include <stdint.h>

typedef struct gradient_trail {
  size_t n;
  double *last;     /* [n] of the last update; without meaning while `has` is 0 */
  double *now;      /* [n] where the owner puts the present one */
  uint64_t has;     /* 1: there was an update before */
  double sum;       /* of the cosines since gradient_trail_begin() */
  uint64_t cosines; /* how many they are */
} gradient_trail;

/* All zero is an empty one, which gradient_trail_fini() takes. GL_ENOMEM. */
gl_status gradient_trail_init(gradient_trail *t, size_t n, gl_error *err);
void gradient_trail_fini(gradient_trail *t);

/* A step of several updates begins. */
void gradient_trail_begin(gradient_trail *t);
/* `now` holds the gradient of an update: compares it with the one before and keeps it. Where one of
 * the two is zero or not finite there is no cosine. */
void gradient_trail_next(gradient_trail *t);
/* The mean cosine of the step's updates with the ones before them; NaN where there is none. */
double gradient_trail_mean(const gradient_trail *t);

#endif
