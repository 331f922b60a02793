/* The future event list of a simulation that may have millions of events waiting: `near`, a heap of
 * those that come next (sim/event_queue.h), and beyond it buckets, in which events lie unordered.
 * Events leave in the same order as from one heap of all.
 *
 * Why: each level of a heap of millions is a cache miss or two, so an event of a million samplers
 * would cost four times one of ten thousand. A bucket is written at its end and read from its
 * beginning, which costs next to nothing, and the heap stays as small as the cache.
 *
 * Buckets are those of a radix heap (Ahuja, Mehlhorn, Orlin and Tarjan, Faster algorithms for the
 * shortest path problem, JACM 37, 1990) with digits of six bits. A key is 128 bits: time, then rank
 * and number. All events up to the key `last` are near; any other one is in the bucket of the
 * highest digit in which its key differs from `base`, and of its value there, so buckets of lower
 * digits come first. When nothing is near, the first bucket is taken as a whole if it is small;
 * else its events are spread over lower digits. An event is moved at most once for each digit,
 * whatever the distribution of its times: three or four times in a million. Few events are never
 * moved.
 *
 * Prefix: fel_. Times as in sim/event_queue.h. */
#ifndef GEPOLAB_SIM_FUTURE_EVENTS_H
#define GEPOLAB_SIM_FUTURE_EVENTS_H

#include "sim/event_queue.h"

/* FEL_NEAR: a bucket of so many events or fewer is taken as a whole. FEL_SPILL: so many near ones
 * are too many. */
enum { FEL_BITS = 6, FEL_DIGITS = 64, FEL_LEVELS = 22, FEL_NEAR = 256, FEL_SPILL = 2048 };
enum { FEL_BLOCK = 63 };

typedef unsigned __int128 fel_key;

/* 2 KiB. */
typedef struct fel_block {
  struct fel_block *next;
  size_t n;
  size_t unused[2];
  sim_event events[FEL_BLOCK];
} fel_block;

/* Memory that blocks are cut from. */
typedef struct fel_slab {
  struct fel_slab *next;
  size_t blocks;
} fel_slab;

typedef struct fel_bucket {
  fel_block *first, *last;
  size_t n;
} fel_bucket;

typedef struct fel_level {
  uint64_t filled; /* bit d: bucket d has events */
  fel_bucket of[FEL_DIGITS];
} fel_level;

typedef struct future_events {
  event_queue near;
  fel_key base, last;
  fel_level *levels; /* [FEL_LEVELS] owned; NULL: there have never been many events */
  uint32_t filled;   /* bit l: level l has events */
  size_t far;        /* events in buckets */
  size_t spill_at;   /* near ones */
  uint64_t refills;  /* of `near`, so far */
  fel_block *free;   /* blocks */
  fel_slab *slabs;   /* owned */
  size_t bytes;      /* of slabs */
} future_events;

void fel_init(future_events *f);
void fel_fini(future_events *f);
/* Memory of all of it. */
size_t fel_bytes(const future_events *f);

/* For the functions below. 0: memory is short, and the list is of use to fel_fini alone. */
int fel_refill(future_events *f);
int fel_spill(future_events *f);
int fel_put_far(future_events *f, sim_event e, fel_key key);

static inline fel_key fel_key_of(const sim_event *e) {
  union {
    double time;
    uint64_t bits;
  } x = {e->time};
  return (fel_key)x.bits << 64 | e->order;
}

/* Adds an event; rank is below 16, 0 first. 0: as above. */
static inline int fel_push(future_events *f, double time, uint32_t rank, uint32_t kind,
                           uint32_t node, uint64_t data) {
  const sim_event e = eq_stamp(&f->near, time, rank, kind, node, data);
  const fel_key key = fel_key_of(&e);
  if (key > f->last) return fel_put_far(f, e, key);
  return eq_insert(&f->near, e) && (f->near.size < f->spill_at || fel_spill(f));
}

static inline size_t fel_size(const future_events *f) {
  return f->near.size + f->far;
}

/* Removes the next event of a list that is not empty. 0: as above. */
static inline int fel_pop(future_events *f, sim_event *out) {
  if (f->near.size == 0 && !fel_refill(f)) return 0;
  *out = eq_pop(&f->near);
  return 1;
}

#endif
