/* Batches between their first token and their update: a pool of records with free slots reused,
 * and the learner's buffer of those that have arrived, a list from oldest to newest. Prefix:
 * buffer_. Records are named by their number in the pool. */
#ifndef GEPOLAB_SIM_BUFFER_H
#define GEPOLAB_SIM_BUFFER_H

#include "sim/schedule.h"

enum { BUFFER_NONE = UINT32_MAX };

typedef struct pooled_batch {
  schedule_batch facts;       /* n_segments; first_segment is not used here */
  schedule_segment *segments; /* owned; kept when the slot is reused */
  uint32_t segment_capacity;
  uint64_t arrival;      /* number of its arrival, from 1; 0: not in the buffer */
  uint32_t older, newer; /* in the buffer; newer also links free slots */
} pooled_batch;

typedef struct buffer {
  pooled_batch *pool;
  size_t n_pool, capacity;
  uint32_t free_slot, oldest, newest;
  size_t waiting;
  uint64_t arrivals;
} buffer;

void buffer_init(buffer *b);
void buffer_fini(buffer *b);
/* Memory held by records and their segments. */
size_t buffer_bytes(const buffer *b);
/* Records in use. */
size_t buffer_in_use(const buffer *b);
/* A fresh record with its first segment at version; BUFFER_NONE if memory is short. */
uint32_t buffer_take(buffer *b, int64_t version);
/* Ends the open segment at a fraction of the response and begins another. 0: memory is short. */
int buffer_switch(buffer *b, uint32_t slot, double at, int64_t version);
void buffer_release(buffer *b, uint32_t slot);
/* Puts a record into the list by generation time (as file names sort) or at the newest end. */
void buffer_insert(buffer *b, uint32_t slot, int by_generation_time);
void buffer_remove(buffer *b, uint32_t slot);
/* Version of the batch's first, hence oldest, segment. */
int64_t buffer_version(const buffer *b, uint32_t slot);

#endif
