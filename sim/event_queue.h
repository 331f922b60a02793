/* Event queues ordered by (time, rank, order of insertion): a heap, and a future event list with a
 * heap for its nearest events. There are two structures because each level of a heap of millions
 * costs one or two cache misses, while small queues (decoding slots, flows of a class, batches by
 * version) need only the heap.
 *
 * Why a 4-ary heap: push and pop are O(log n) with half the levels of a binary heap. The four
 * children of a node are 128 contiguous bytes, two cache lines, so a level costs about one miss. A
 * calendar queue would be O(1) for benign distributions, but O(n) for the heavy-tailed delays
 * simulated here. Functions called for every event, eq_push() to fel_pop(), are inline here because
 * the simulation spends most of its time in them; event_queue.c has the work on whole buckets.
 *
 * Why a rank: at equal times arrivals must be handled before anything starts (paper/methods.md
 * §10.1). Ranks order events of equal time; within a rank they leave in the order of insertion, so
 * results do not depend on the heap's layout.
 *
 * Prefixes: eq_, fel_. Times are simulated seconds, from 0 to infinity, never NaN. */
#ifndef GEPOLAB_SIM_EVENT_QUEUE_H
#define GEPOLAB_SIM_EVENT_QUEUE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct sim_event {
  double time;
  uint64_t order; /* rank in the top 4 bits, insertion number below */
  uint32_t kind, node;
  uint64_t data;
} sim_event;

typedef struct event_queue {
  sim_event *heap; /* owned */
  size_t size, capacity;
  uint64_t inserted;
} event_queue;

static inline void eq_init(event_queue *q) {
  *q = (event_queue){0};
}

static inline void eq_fini(event_queue *q) {
  free(q->heap);
  eq_init(q);
}

/* Bits of non-negative doubles have the same order as the doubles, so time and order form one
 * 128-bit number that is compared without a branch. The result is unpredictable, and a mispredicted
 * branch costs more than a level of the heap. */
static inline int eq_before(const sim_event *a, const sim_event *b) {
  union {
    double time;
    uint64_t bits;
  } x = {a->time}, y = {b->time};
  return ((unsigned __int128)x.bits << 64 | a->order) <
         ((unsigned __int128)y.bits << 64 | b->order);
}

/* Makes room for one more event; returns 0 if out of memory. */
static inline int eq_reserve(event_queue *q) {
  if (q->size < q->capacity) return 1;
  size_t capacity = q->capacity == 0 ? 16 : 2 * q->capacity;
  if (capacity > SIZE_MAX / sizeof(sim_event)) return 0;
  sim_event *heap = realloc(q->heap, capacity * sizeof *heap);
  if (heap == NULL) return 0;
  q->heap = heap;
  q->capacity = capacity;
  return 1;
}

/* The index of the first of four siblings, in two rounds so that the first two comparisons overlap.
 */
static inline size_t eq_first_of_four(const sim_event *h, size_t child) {
  size_t left = child + (size_t)eq_before(&h[child + 1], &h[child]);
  size_t right = child + 2 + (size_t)eq_before(&h[child + 3], &h[child + 2]);
  return eq_before(&h[right], &h[left]) ? right : left;
}

/* Moves e down from hole i until no child precedes it. */
static inline void eq_sink(event_queue *q, size_t i, sim_event e) {
  sim_event *h = q->heap;
  size_t n = q->size;
  for (size_t child = 4 * i + 1; child < n; child = 4 * i + 1) {
    size_t least = child;
    if (child + 4 <= n)
      least = eq_first_of_four(h, child);
    else
      for (size_t c = child + 1; c < n; ++c)
        if (eq_before(&h[c], &h[least])) least = c;
    if (!eq_before(&h[least], &e)) break;
    h[i] = h[least];
    i = least;
  }
  h[i] = e;
}

static inline sim_event eq_stamp(event_queue *q, double time, uint32_t rank, uint32_t kind,
                                 uint32_t node, uint64_t data) {
  /* + 0.0 turns a negative zero, whose sign bit would break the order, into zero */
  return (sim_event){time + 0.0, (uint64_t)rank << 60 | q->inserted++, kind, node, data};
}

/* Inserts an event that already has its order. Returns 0 if out of memory. */
static inline int eq_insert(event_queue *q, sim_event e) {
  if (!eq_reserve(q)) return 0;
  size_t i = q->size++;
  while (i > 0) {
    size_t parent = (i - 1) / 4;
    if (!eq_before(&e, &q->heap[parent])) break;
    q->heap[i] = q->heap[parent];
    i = parent;
  }
  q->heap[i] = e;
  return 1;
}

/* Adds an event; rank is below 16, 0 first. Returns 0 if out of memory. */
static inline int eq_push(event_queue *q, double time, uint32_t rank, uint32_t kind, uint32_t node,
                          uint64_t data) {
  return eq_insert(q, eq_stamp(q, time, rank, kind, node, data));
}

static inline int eq_is_empty(const event_queue *q) {
  return q->size == 0;
}

/* Returns the next event without removing it; the queue must not be empty. */
static inline const sim_event *eq_top(const event_queue *q) {
  return &q->heap[0];
}

/* Removes and returns the next event; the queue must not be empty. */
static inline sim_event eq_pop(event_queue *q) {
  sim_event top = q->heap[0];
  sim_event last = q->heap[--q->size];
  if (q->size > 0) eq_sink(q, 0, last);
  return top;
}

/* Removes the next event and adds another in one descent, for events that schedule their own
 * successor. The queue must not be empty. */
static inline void eq_replace(event_queue *q, double time, uint32_t rank, uint32_t kind,
                              uint32_t node, uint64_t data) {
  eq_sink(q, 0, eq_stamp(q, time, rank, kind, node, data));
}

/* --- future event list --- */

/* The future event list, for simulations with millions of pending events: a heap `near` for the
 * next events, and unordered buckets for later ones. Events leave in the same order as from a
 * single heap.
 *
 * Why: each level of a heap of millions costs one or two cache misses, so an event among a million
 * samplers would cost four times one among ten thousand. A bucket is written at its end and read
 * from its start, which is cheap, and the heap stays small enough for the cache.
 *
 * The buckets are those of a radix heap (Ahuja, Mehlhorn, Orlin and Tarjan, Faster algorithms for
 * the shortest path problem, JACM 37, 1990) with digits of six bits. A key has 128 bits: time, then
 * rank and number. All events up to the key `last` are in `near`. Any other event is in the bucket
 * of the highest digit in which its key differs from `base`, and of that digit's value, so buckets
 * of lower digits come first. If `near` is empty, the first bucket is moved there if it is small;
 * otherwise its events are spread over lower digits. An event moves at most once per digit,
 * whatever the distribution of times: three or four times among a million. If there are few events,
 * they never move. */

/* FEL_NEAR: a bucket with at most this many events is moved to `near` as a whole. FEL_SPILL: more
 * events than this in `near` are moved to buckets. */
enum { FEL_BITS = 6, FEL_DIGITS = 64, FEL_LEVELS = 22, FEL_NEAR = 256, FEL_SPILL = 2048 };
enum { FEL_BLOCK = 63 };

typedef unsigned __int128 fel_key;

/* A block of events takes 2 KiB. */
typedef struct fel_block {
  struct fel_block *next;
  size_t n;
  size_t unused[2];
  sim_event events[FEL_BLOCK];
} fel_block;

/* Memory from which blocks are allocated. */
typedef struct fel_slab {
  struct fel_slab *next;
  size_t blocks;
} fel_slab;

typedef struct fel_bucket {
  fel_block *first, *last;
  size_t n;
} fel_bucket;

typedef struct fel_level {
  uint64_t filled; /* bit d: bucket d is not empty */
  fel_bucket of[FEL_DIGITS];
} fel_level;

typedef struct future_events {
  event_queue near;
  fel_key base, last;
  fel_level *levels; /* [FEL_LEVELS] owned; NULL: there were never many events */
  uint32_t filled;   /* bit l: level l is not empty */
  size_t far;        /* number of events in buckets */
  size_t spill_at;   /* size of `near` at which events are moved to buckets */
  uint64_t refills;  /* number of times `near` was refilled */
  fel_block *free;   /* list of free blocks */
  fel_slab *slabs;   /* owned */
  size_t bytes;      /* total size of slabs */
} future_events;

void fel_init(future_events *f);
void fel_fini(future_events *f);
/* Total memory in bytes. */
size_t fel_bytes(const future_events *f);

/* Used by the inline functions below. They return 0 if out of memory; then only fel_fini() may be
 * called. */
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

static inline int fel_insert(future_events *f, sim_event e) {
  const fel_key key = fel_key_of(&e);
  if (key > f->last) return fel_put_far(f, e, key);
  return eq_insert(&f->near, e) && (f->near.size < f->spill_at || fel_spill(f));
}

/* Adds an event; rank is below 16, 0 first. Returns 0 if out of memory, as above. */
static inline int fel_push(future_events *f, double time, uint32_t rank, uint32_t kind,
                           uint32_t node, uint64_t data) {
  return fel_insert(f, eq_stamp(&f->near, time, rank, kind, node, data));
}

/* Like fel_push(), but events of equal time and rank leave in the order of their nodes, and those
 * of one node in the order of insertion (by the last 28 bits of the insertion number). */
static inline int fel_push_by_node(future_events *f, double time, uint32_t rank, uint32_t kind,
                                   uint32_t node, uint64_t data) {
  sim_event e = eq_stamp(&f->near, time, rank, kind, node, data);
  e.order = (uint64_t)rank << 60 | (uint64_t)node << 28 | (e.order & ((UINT64_C(1) << 28) - 1));
  return fel_insert(f, e);
}

static inline size_t fel_size(const future_events *f) {
  return f->near.size + f->far;
}

/* Removes the next event; the list must not be empty. Returns 0 if out of memory. */
static inline int fel_pop(future_events *f, sim_event *out) {
  if (f->near.size == 0 && !fel_refill(f)) return 0;
  *out = eq_pop(&f->near);
  return 1;
}

#endif
