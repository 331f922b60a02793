/* Events in the order of (time, rank, order of insertion): a heap, and a list of future events that
 * has a heap at its near end. Two structures, because each level of a heap of millions is a cache
 * miss or two, while small queues (decoding slots, flows of a class, batches by version) need no
 * more than the heap.
 *
 * The heap is 4-ary, of plain events.
 *
 * Why a 4-ary heap: push and pop are O(log n) with half the levels of a binary heap; the four
 * children of a node are 128 contiguous bytes, two cache lines, so a level costs about one miss. A
 * calendar queue would be O(1) on friendly distributions and O(n) on heavy-tailed delays, which is
 * what is simulated here. All functions are inline because a queueing model spends its time
 * here.
 *
 * Why a rank: at equal times arrivals must be seen before anything starts (paper/methods.md
 * §10.1). Ranks order events of one moment; within a rank they leave in the order they
 * came, so a run never depends on the heap's layout.
 *
 * Prefixes: eq_, fel_. Times are simulated seconds, from 0 to infinity, never NaN.
 */
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

/* Bits of doubles that are not negative are in the order of the doubles, so time and order make one
 * 128-bit number, compared without a branch: which of two events is first cannot be predicted, and
 * a mispredicted branch costs more than a level of the heap. */
static inline int eq_before(const sim_event *a, const sim_event *b) {
  union {
    double time;
    uint64_t bits;
  } x = {a->time}, y = {b->time};
  return ((unsigned __int128)x.bits << 64 | a->order) <
         ((unsigned __int128)y.bits << 64 | b->order);
}

/* Makes room for one more event; 0 if memory is short. */
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

/* The first of four neighbours, by two rounds so that the first two comparisons overlap. */
static inline size_t eq_first_of_four(const sim_event *h, size_t child) {
  size_t left = child + (size_t)eq_before(&h[child + 1], &h[child]);
  size_t right = child + 2 + (size_t)eq_before(&h[child + 3], &h[child + 2]);
  return eq_before(&h[right], &h[left]) ? right : left;
}

/* Lets e sink from hole i until no child comes before it. */
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
  /* + 0: a negative zero would be ordered by its sign bit */
  return (sim_event){time + 0.0, (uint64_t)rank << 60 | q->inserted++, kind, node, data};
}

/* Adds an event that has its stamp. 0 if memory is short. */
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

/* Adds an event; rank is below 16, 0 first. 0 if memory is short. */
static inline int eq_push(event_queue *q, double time, uint32_t rank, uint32_t kind, uint32_t node,
                          uint64_t data) {
  return eq_insert(q, eq_stamp(q, time, rank, kind, node, data));
}

static inline int eq_is_empty(const event_queue *q) {
  return q->size == 0;
}

/* The next event, left in the queue, which must not be empty. */
static inline const sim_event *eq_top(const event_queue *q) {
  return &q->heap[0];
}

/* Removes and returns the next event of a queue that is not empty. */
static inline sim_event eq_pop(event_queue *q) {
  sim_event top = q->heap[0];
  sim_event last = q->heap[--q->size];
  if (q->size > 0) eq_sink(q, 0, last);
  return top;
}

/* Removes the next event and adds another in one descent: what an event that schedules its own
 * successor wants. The queue must not be empty. */
static inline void eq_replace(event_queue *q, double time, uint32_t rank, uint32_t kind,
                              uint32_t node, uint64_t data) {
  eq_sink(q, 0, eq_stamp(q, time, rank, kind, node, data));
}

/* --- the list of future events --- */

/* For simulations that may have millions of events waiting: `near`, a heap of those that come next,
 * and beyond it buckets, in which events lie unordered. Events leave in the same order as from one
 * heap of all.
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
 * moved. */

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

static inline int fel_insert(future_events *f, sim_event e) {
  const fel_key key = fel_key_of(&e);
  if (key > f->last) return fel_put_far(f, e, key);
  return eq_insert(&f->near, e) && (f->near.size < f->spill_at || fel_spill(f));
}

/* Adds an event; rank is below 16, 0 first. 0: as above. */
static inline int fel_push(future_events *f, double time, uint32_t rank, uint32_t kind,
                           uint32_t node, uint64_t data) {
  return fel_insert(f, eq_stamp(&f->near, time, rank, kind, node, data));
}

/* The same for events that come in the order of their nodes among those of their time and rank; of
 * one node in the order in which they were added, as far as its last 28 bits tell. */
static inline int fel_push_by_node(future_events *f, double time, uint32_t rank, uint32_t kind,
                                   uint32_t node, uint64_t data) {
  sim_event e = eq_stamp(&f->near, time, rank, kind, node, data);
  e.order = (uint64_t)rank << 60 | (uint64_t)node << 28 | (e.order & ((UINT64_C(1) << 28) - 1));
  return fel_insert(f, e);
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
