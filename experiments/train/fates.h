/* What became of every response that the samplers of a coupled run drew, and which they were: what
 * tells whether those that are thrown away have other lengths, prompts or rewards than those that
 * are trained. Prefix: fates_. */
#ifndef GEPOLAB_EXPERIMENTS_TRAIN_FATES_H
#define GEPOLAB_EXPERIMENTS_TRAIN_FATES_H

#include "core/base/error.h"
#include "core/rl/batch.h"
#include "core/store/store.h"
#include "sim/schedule.h"

#include <stddef.h>
#include <stdint.h>

/* Of 24 bytes without holes, as checkpoints have it. */
typedef struct response_fate {
  int64_t prompt;
  double reward;
  uint32_t tokens, fate; /* a unit_fate */
} response_fate;

typedef struct fates_log {
  response_fate *all; /* [n] owned */
  size_t n, capacity;
} fates_log;

void fates_fini(fates_log *l);
/* Adds the responses of a batch that is complete, with their rewards. GL_ENOMEM. */
gl_status fates_add(fates_log *l, const batch *b, unit_fate fate, gl_error *err);
/* *out: the responses counted by fate, quarter of prompts and length, *n records in the order of
 * these, to be freed. Prompts are put in order of the mean reward of all their responses in the
 * log, equal ones by their number, and each quarter has as many of them as can be. GL_ENOMEM. */
gl_status fates_count(const fates_log *l, fate_record **out, size_t *n, gl_error *err);

#endif
