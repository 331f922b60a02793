/* What the staleness counters of trainers would read for one simulated run.
 *
 * Trainers mean different things by staleness: the newest or the oldest version in a response, or
 * every token's; the learner's version or the last one that was published; versions, optimiser
 * updates or samples. Each row of the table is one counter, with the place in the system's source
 * that it was read from. Here one system step is one publication of weights
 * (cluster.learner.publish_every updates of the learner, each of train.minibatches x train.epochs
 * optimiser updates).
 *
 * Every update of the schedule gives one value, as a system's log has one value a step: a mean, a
 * largest value or a number of responses. The reading is the mean of these values over all updates,
 * and the largest value of any unit (for numbers of responses: of any update). */
#ifndef GEPOLAB_SIM_TRAINER_COUNTERS_H
#define GEPOLAB_SIM_TRAINER_COUNTERS_H

#include "core/base/error.h"
#include "sim/schedule.h"

#include <stddef.h>
#include <stdint.h>

/* The two versions whose difference a definition counts. A unit is a batch or group; with `unit:
 * response`, the response. */
typedef enum counted_now {
  NOW_LEARNER,   /* the version that the update starts from */
  NOW_PUBLISHED, /* the newest published version at that time */
  NOW_LAST       /* the version of the response's last token */
} counted_now;
typedef enum counted_then {
  THEN_BEGUN,        /* the version that the unit was begun with */
  THEN_SCHEDULED,    /* the learner's version when the unit was begun */
  THEN_FIRST,        /* the version of the response's first token */
  THEN_LAST,         /* the version of the response's last token */
  THEN_CACHE,        /* the version of its first token's keys and values: the last version of the
                        response if they are recomputed, the first if they are kept
                        (cluster.kv_cache) */
  THEN_EARLIEST_END, /* the oldest of the versions of last tokens in the unit */
  THEN_OWN           /* every token's own version */
} counted_then;
typedef enum counted_per { PER_UNIT, PER_RESPONSE, PER_TOKEN } counted_per;
typedef enum counted_in {
  IN_UPDATES,   /* updates of the learner */
  IN_SYNCS,     /* publications of weights */
  IN_OPTIMISER, /* optimiser updates */
  IN_SAMPLES    /* trained responses */
} counted_in;
/* How the values of an update's units become one value: mean, largest, or the number of values that
 * are at least 1. */
typedef enum counted_as { AS_MEAN, AS_LARGEST, AS_NUMBER_STALE } counted_as;

typedef struct staleness_definition {
  const char *name;    /* SYSTEM/the name in the system's own log */
  const char *system;  /* name and version of the trainer */
  const char *source;  /* file:line, with commit where the version does not say it */
  const char *unit;    /* unit of the value */
  const char *formula; /* in words */
  counted_now now;
  counted_then then;
  counted_per per;
  counted_in in;
  counted_as as;
  int plus;    /* constant that is added to the difference */
  bool within; /* also counts the optimiser updates already made within the same update */
} staleness_definition;

/* The i-th definition, NULL past the last. */
enum { STALENESS_DEFINITIONS = 20 };
const staleness_definition *staleness_definition_at(size_t i);

typedef struct staleness_reading {
  double mean, max;
} staleness_reading;

/* Reads every counter. The schedule is that of schedule_build(), not of a coupled clock, with this
 * cluster and seed; an update of the learner makes `optimiser_updates` optimiser updates. Tokens
 * are those of the cluster's length distributions; without them every response counts as one token.
 * Errors: GL_ENOMEM. */
gl_status staleness_read(staleness_reading out[STALENESS_DEFINITIONS], const schedule *s,
                         const cluster_spec *spec, uint64_t seed, size_t optimiser_updates,
                         gl_error *err);

/* The events that the counters are computed from: tokens of one response that one version
 * generated. Tokens may be fractions, because weights change between tokens at any time. */
typedef struct token_run {
  const schedule_update *update;
  const schedule_batch *unit;
  size_t response; /* index in the unit */
  int64_t version;
  double tokens;
} token_run;
/* Calls `each` for all runs of all trained units, in the order of updates and units, for each
 * response in the order of its tokens. Errors and conditions as above. */
gl_status schedule_token_runs(const schedule *s, const cluster_spec *spec, uint64_t seed,
                              void (*each)(void *self, const token_run *run), void *self,
                              gl_error *err);

#endif
