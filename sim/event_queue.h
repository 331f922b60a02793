/* The event queue: a 4-ary heap of plain events, ordered by (time, rank, order of insertion).
 *
 * Why a 4-ary heap: push and pop are O(log n) with half the levels of a binary heap; the four
 * children of a node are 128 contiguous bytes, two cache lines, so a level costs about one miss. A
 * calendar queue would be O(1) on friendly distributions and O(n) on heavy-tailed delays, which is
 * what is simulated here. Where there may be more events than a cache holds, this heap is the near
 * end of sim/future_events.h. All functions are inline because a queueing model spends its time
 * here.
 *
 * Why a rank: at equal times arrivals must be seen before anything starts (paper/methods.md
 * §10.1). Ranks order events of one moment; within a rank they leave in the order they
 * came, so a run never depends on the heap's layout.
 *
 * Prefix: eq_. Times are simulated seconds, from 0 to infinity, never NaN.
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

#endif
