/* Versions that the learner has left and samplers still draw from: copies of its parameters. A copy
 * keeps the stamp that its parameters had, so what is cached of them stays true. */
#include "toy/learner/learner.h"

#include <stdlib.h>
#include <string.h>

toy_held *toy_learner_add_held(toy_held **held, size_t *n, size_t *capacity, size_t n_parameters) {
  if (*n == *capacity) {
    size_t more = *capacity == 0 ? 4 : 2 * *capacity;
    toy_held *grown = more > SIZE_MAX / sizeof *grown ? NULL : realloc(*held, more * sizeof *grown);
    if (grown == NULL) return NULL;
    *held = grown;
    *capacity = more;
  }
  toy_held *h = &(*held)[*n];
  *h = (toy_held){.theta = calloc(n_parameters, sizeof *h->theta)};
  if (h->theta == NULL) return NULL;
  ++*n;
  return h;
}

void toy_held_free(toy_held *held, size_t n) {
  for (size_t i = 0; i < n; ++i) free(held[i].theta);
  free(held);
}

gl_status toy_learner_hold(void *self, gl_error *err) {
  toy_learner *l = self;
  const size_t n = l->world->features.n_parameters;
  toy_held *h = toy_learner_add_held(&l->held, &l->n_held, &l->cap_held, n);
  if (h == NULL) return gl_fail_memory(err, "a version held for samplers");
  h->version = l->update.version;
  h->stamp = l->stamp;
  memcpy(h->theta, l->theta, n * sizeof *h->theta);
  return GL_OK;
}

void toy_learner_release(void *self, int64_t version) {
  toy_learner *l = self;
  for (size_t i = 0; i < l->n_held; ++i) {
    if (l->held[i].version != version) continue;
    free(l->held[i].theta);
    l->held[i] = l->held[--l->n_held];
    return;
  }
}
