/* The learner as a small table of functions. toy/ and llm/ implement it; the training loop in
 * experiments/ brings a learner and a schedule together and knows no more than this page.
 */
#ifndef GEPOLAB_CORE_LEARNER_H
#define GEPOLAB_CORE_LEARNER_H

#include "core/batch.h"
#include "core/config.h"
#include "core/error.h"
#include "core/metrics.h"
#include "core/policy_row.h"

#include <stdint.h>
#include <stdio.h>

/* A request to draw tokens with the learner's parameters as they are now. A batch whose weights
 * change in flight is drawn in several requests on the same batch: the first has from = 0 and
 * makes the batch; each draws, for every response, the token positions in [from, to) as fractions
 * of the longest response allowed, with the version given. An ordinary batch has one: [0, 1). */
typedef struct draw_request {
  uint64_t batch_id; /* address: the same id under the same parameters draws the same tokens */
  int64_t version;
  size_t n_groups, group_size;
  double from, to;
} draw_request;

typedef struct learner_ops {
  const char *kind;
  /* Draws (a part of) a batch; *b is zeroed before the first request. Rewards are set by the
   * request with to == 1. */
  gl_status (*draw)(void *self, const draw_request *request, batch *b, gl_error *err);
  /* One learner step on n batches together: minibatches x epochs optimiser updates. Fills the
   * metrics it can know; the loop adds version and staleness. Increments the version by one. A
   * parameter that becomes non-finite is a result, not an error: metrics carry it. */
  gl_status (*update)(void *self, batch *const *batches, size_t n, double metrics[METRIC_COUNT],
                      gl_error *err);
  /* Evaluation score in [0,1] where the world defines one, without touching any training draw. */
  gl_status (*evaluate)(void *self, double *eval_score, gl_error *err);
  /* Parameters, optimiser and version; load refuses a file that does not fit. */
  gl_status (*save)(void *self, FILE *to, gl_error *err);
  gl_status (*load)(void *self, FILE *from, gl_error *err);
  void (*free)(void *self);
} learner_ops;

typedef struct learner {
  const learner_ops *ops;
  void *self;
} learner;

/* What a learner is made from; sections are borrowed during construction only. */
typedef struct learner_setup {
  uint64_t seed;
  const policy_row *algorithm;
  const cfg_node *world;     /* never NULL */
  const cfg_node *optimizer; /* NULL: defaults */
  const cfg_node *sampling;  /* NULL: temperature 1, no truncation */
  size_t group_size, n_groups;
  size_t minibatches, epochs;
  uint64_t updates; /* how many learner steps the run will make, for decay schedules */
} learner_setup;

static inline void learner_fini(learner *l) {
  if (l->ops != NULL) l->ops->free(l->self);
  l->ops = NULL;
  l->self = NULL;
}

#endif
