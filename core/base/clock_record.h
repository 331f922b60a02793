/* The clock statistics of a run: one table of columns from which the record, the store, its exports
 * and the loading of results are generated. sim/ fills the record.
 * A column added here becomes a field of clock_record; files without it read as NaN. */
#ifndef GEPOLAB_CORE_BASE_CLOCK_RECORD_H
#define GEPOLAB_CORE_BASE_CLOCK_RECORD_H

#include <stddef.h>
#include <stdint.h>

/* X(name, unit, meaning), in the order of the store's columns. */
#define CLOCK_RECORD(X)                                                                            \
  X(simulated_s, "s", "from the start to the end of the last update")                              \
  X(learner_utilisation, "", "fraction of that time at work, 0 to 1")                              \
  X(sampler_utilisation, "", "the same, mean over samplers")                                       \
  X(samples_per_s, "1/s", "responses trained per simulated second")                                \
  X(bytes_up, "bytes", "sent by the samplers; a message under way at the end counts in full")      \
  X(bytes_down, "bytes", "sent to the samplers; a message under way at the end counts in full")    \
  X(staleness_mean, "versions", "over trained batches")                                            \
  X(staleness_max, "versions", "largest of a trained batch")                                       \
  X(staleness_p50, "versions", "median over trained batches")                                      \
  X(staleness_p95, "versions", "95 % quantile over trained batches")                               \
  X(batches_generated, "batches", "finished by samplers")                                          \
  X(batches_trained, "batches", "trained")                                                         \
  X(batches_dropped, "batches", "thrown away by the rule that chooses batches")                    \
  X(batches_lost, "batches", "lost with a sampler that crashed")                                   \
  X(retransmissions, "packets", "sent again")

#define CLOCK_RECORD_FIELD(name, unit, meaning) double name;
typedef struct clock_record {
  CLOCK_RECORD(CLOCK_RECORD_FIELD)
} clock_record;

#define CLOCK_RECORD_NAME(name, unit, meaning) #name,
static const char *const clock_record_names[] = {CLOCK_RECORD(CLOCK_RECORD_NAME)};
enum { CLOCK_RECORD_COLUMNS = sizeof clock_record_names / sizeof *clock_record_names };
_Static_assert(sizeof(clock_record) == CLOCK_RECORD_COLUMNS * sizeof(double), "no padding");

/* Parts of the staleness of trained batches: the number of versions made during each stage of a
 * batch, from its oldest version to the one its update starts from. A version made exactly at the
 * end of a stage counts in that stage. X(name, meaning). */
#define STALENESS_PARTS(X)                                                                         \
  X(weights, "before its generation began: late weights")                                          \
  X(generation, "while it was generated")                                                          \
  X(transit, "on its way to the learner")                                                          \
  X(queue, "while it waited at the learner")                                                       \
  X(pause, "likewise, in the backlog of an evaluation pause")

#define STALENESS_PART_FIELD(name, meaning) uint64_t name;
typedef struct staleness_parts { /* numbers of versions */
  STALENESS_PARTS(STALENESS_PART_FIELD)
} staleness_parts;

/* The value of a column by its index in the table. */
static inline double *clock_record_at(clock_record *c, size_t column) {
  return (double *)((char *)c + column * sizeof(double));
}

#endif
