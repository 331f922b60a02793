/* Batches between their first token and their update: a pool whose free slots are used again, and
 * the list, from oldest to newest, of those that have arrived at the learner and wait there. A
 * batch is named by its slot, its index in the pool. Prefix: buffer_. */
#ifndef GEPOLAB_SIM_BUFFER_H
#define GEPOLAB_SIM_BUFFER_H

#include "sim/schedule.h"

#include <stdbool.h>

enum { BUFFER_NONE = UINT32_MAX };
enum { CACHE_LINE = 64 };

/* Two cache lines, the links in the second. */
typedef struct pooled_batch {
  schedule_batch facts;       /* what the schedule will say of it; first_segment is not used here */
  schedule_segment *segments; /* owned; kept when the slot is reused */
  uint32_t segment_capacity;
  int64_t begun_with;    /* version of its sampler at its start */
  uint64_t arrival;      /* its place in the order of arrivals, from 1; 0: it does not wait */
  uint32_t older, newer; /* neighbours in the list; `newer` also links free slots */
} pooled_batch;

typedef struct buffer {
  pooled_batch *pool; /* owned; each on lines of its own */
  size_t n_pool, capacity;
  uint32_t free_slot, oldest, newest;
  size_t waiting;
  uint64_t arrivals;
} buffer;

void buffer_init(buffer *b);
void buffer_fini(buffer *b);
/* Bytes of memory that batches and their segments take. */
size_t buffer_bytes(const buffer *b);
/* Slots in use. */
size_t buffer_in_use(const buffer *b);
/* Takes a slot for a new batch whose first segment is of this version; BUFFER_NONE if memory is
 * short. */
uint32_t buffer_take(buffer *b, int64_t version);
/* Ends the last segment at this fraction of the response and begins one of another version. False
 * if memory is short. */
bool buffer_switch(buffer *b, uint32_t slot, double at, int64_t version);
/* Adds a segment that begins one response; the batch's segments are then those of single responses.
 * Its index, UINT32_MAX if memory is short. */
uint32_t buffer_begin_response(buffer *b, uint32_t slot, int64_t response, int64_t version);
/* Ends that segment there and begins one of another version; the new one's index, or that of the
 * old one where nothing was generated under it; UINT32_MAX if memory is short. */
uint32_t buffer_switch_response(buffer *b, uint32_t slot, uint32_t segment, double at,
                                int64_t version);
/* Segments of a response whose length is now other: their ends, but the last, are so many times
 * what they were. */
void buffer_rescale_response(buffer *b, uint32_t slot, int64_t response, double factor);
/* Where all responses are of one version: makes one segment of theirs. */
void buffer_join_segments(buffer *b, uint32_t slot);
/* Frees the slot. */
void buffer_release(buffer *b, uint32_t slot);
/* Puts a batch into the list: by the time it was generated, as HeteroRL sorts its files by name, or
 * else at the newest end. */
void buffer_insert(buffer *b, uint32_t slot, bool by_generation_time);
void buffer_remove(buffer *b, uint32_t slot);
/* Version of the batch's first segment, its oldest. */
int64_t buffer_version(const buffer *b, uint32_t slot);

#endif
