/* Which waiting batch is trained next. */
#include "sim/clock.h"

#include <stdlib.h>

int batch_choice_reserve(sim_clock *c, size_t units) {
  if (units <= c->chosen_capacity) return 1;
  size_t capacity = c->chosen_capacity + units;
  if (capacity < units || capacity > SIZE_MAX / sizeof *c->chosen) return 0;
  uint32_t *more = realloc(c->chosen, capacity * sizeof *more);
  if (more == NULL) return 0;
  c->chosen = more;
  c->chosen_capacity = capacity;
  return 1;
}

/* Tokens that wait, counted only where an update is counted in them. */
static void count_tokens(sim_clock *c, uint32_t slot, double sign) {
  if (c->spec->tokens > 0) c->waiting_tokens += sign * c->buffer.pool[slot].facts.tokens;
}

static void take_out(sim_clock *c, uint32_t slot) {
  buffer_remove(&c->buffer, slot);
  count_tokens(c, slot, -1);
}

void batch_choice_drop(sim_clock *c, uint32_t slot, unit_fate fate) {
  const schedule_batch *b = &c->buffer.pool[slot].facts;
  c->waited_s += c->now - b->arrived_s;
  clock_tell(c, SPAN_QUEUED, SPAN_DROPPED, b->sampler, b->arrived_s, c->now, b->number, -1);
  take_out(c, slot);
  ++c->dropped;
  forget_batch(c, slot, fate);
}

/* HeteroRL (paper/methods.md §10.4): over the `lookback` newest batches, the first of the newest
 * version if that is newer than all trained; otherwise the oldest batch within the window of the
 * newest version trained. */
static uint32_t heterorl_next(const sim_clock *c, int64_t newest_trained) {
  const buffer *b = &c->buffer;
  uint32_t newest = BUFFER_NONE, oldest = BUFFER_NONE;
  int64_t window = c->spec->window;
  int64_t least = newest_trained > window ? newest_trained - window : 0;
  size_t seen = 0;
  for (uint32_t i = b->newest; i != BUFFER_NONE && seen < c->spec->lookback;
       i = b->pool[i].older, ++seen) {
    int64_t v = buffer_version(b, i);
    if (newest == BUFFER_NONE || v >= buffer_version(b, newest)) newest = i;
    if (v >= least) oldest = i;
  }
  if (newest == BUFFER_NONE || c->version - buffer_version(b, newest) > window) return BUFFER_NONE;
  return buffer_version(b, newest) > newest_trained ? newest : oldest;
}

/* Drops the oldest batches of which the window will never again allow the version. They would not
 * be chosen, but would still count among the `lookback` newest. */
static void heterorl_trim(sim_clock *c) {
  buffer *b = &c->buffer;
  while (b->oldest != BUFFER_NONE &&
         buffer_version(b, b->oldest) < c->newest_trained - c->spec->window)
    batch_choice_drop(c, b->oldest, FATE_STALE);
}

/* Whether what waits can fill an update. */
static int is_enough(const sim_clock *c) {
  return c->spec->tokens > 0 ? c->waiting_tokens >= c->spec->tokens
                             : c->buffer.waiting >= c->spec->take;
}

/* Whether the units chosen so far, with so many tokens, fill it. */
static int is_full(const sim_clock *c, double tokens) {
  return c->spec->tokens > 0 ? tokens >= c->spec->tokens : c->n_chosen >= c->spec->take;
}

static int choose_heterorl(sim_clock *c) {
  int64_t before = c->newest_trained;
  double tokens = 0;
  while (!is_full(c, tokens)) {
    uint32_t slot = heterorl_next(c, c->newest_trained);
    if (slot == BUFFER_NONE) break;
    take_out(c, slot);
    tokens += c->buffer.pool[slot].facts.tokens;
    c->chosen[c->n_chosen++] = slot;
    if (buffer_version(&c->buffer, slot) > c->newest_trained)
      c->newest_trained = buffer_version(&c->buffer, slot);
  }
  if (is_full(c, tokens)) {
    heterorl_trim(c);
    return 1;
  }
  while (c->n_chosen > 0) {
    const uint32_t slot = c->chosen[--c->n_chosen];
    buffer_insert(&c->buffer, slot, 1);
    count_tokens(c, slot, 1);
  }
  c->newest_trained = before;
  return 0;
}

/* Rules that train the oldest version first, or drop versions that are too old, ask for the
 * smallest version that waits: a heap holds the waiting batches by version and, within a version,
 * by arrival. A batch that leaves the list in another way leaves its entry in the heap, which is
 * skipped when it comes to the top. */
static int needs_versions(const sim_clock *c) {
  return c->spec->queue == QUEUE_OLDEST_VERSION || c->spec->evict == EVICT_STALEST ||
         (c->spec->queue != QUEUE_HETERORL && c->spec->window < INT64_MAX);
}

int batch_choice_add(sim_clock *c, uint32_t slot) {
  count_tokens(c, slot, 1);
  if (c->spec->tokens > 0 && !batch_choice_reserve(c, c->buffer.waiting)) return 0;
  if (!needs_versions(c)) return 1;
  return eq_push(&c->by_version, (double)buffer_version(&c->buffer, slot), 0, 0, slot,
                 c->buffer.pool[slot].arrival);
}

/* The first arrival of the oldest version that waits; BUFFER_NONE if nothing does. */
static uint32_t oldest_version(sim_clock *c) {
  while (!eq_is_empty(&c->by_version)) {
    const sim_event *e = eq_top(&c->by_version);
    if (c->buffer.pool[e->node].arrival == e->data) return e->node;
    eq_pop(&c->by_version);
  }
  return BUFFER_NONE;
}

static void drop_stale(sim_clock *c) {
  for (uint32_t i = oldest_version(c);
       i != BUFFER_NONE && c->version - buffer_version(&c->buffer, i) > c->spec->window;
       i = oldest_version(c))
    batch_choice_drop(c, i, FATE_STALE);
}

void batch_choice_evict(sim_clock *c) {
  switch (c->spec->evict) {
  case EVICT_OLDEST:
    batch_choice_drop(c, c->buffer.oldest, FATE_EVICTED);
    return;
  case EVICT_STALEST:
    batch_choice_drop(c, oldest_version(c), FATE_EVICTED);
    return;
  case EVICT_NEWEST:
    batch_choice_drop(c, c->buffer.newest, FATE_EVICTED);
    return;
  }
}

static uint32_t next_in_queue(sim_clock *c) {
  return c->spec->queue == QUEUE_FIFO   ? c->buffer.oldest
         : c->spec->queue == QUEUE_LIFO ? c->buffer.newest
                                        : oldest_version(c);
}

int batch_choice_next(sim_clock *c) {
  const cluster_spec *spec = c->spec;
  buffer *b = &c->buffer;
  c->n_chosen = 0;
  if (spec->queue == QUEUE_HETERORL) return choose_heterorl(c);
  if (!is_enough(c)) return 0;
  if (spec->stale == STALE_DISCARD && spec->window < c->version) drop_stale(c);
  if (!is_enough(c) || (spec->stale == STALE_WAIT && selection_must_wait(c))) return 0;
  double tokens = 0;
  while (!is_full(c, tokens)) {
    const uint32_t slot = next_in_queue(c);
    take_out(c, slot);
    tokens += b->pool[slot].facts.tokens;
    c->chosen[c->n_chosen++] = slot;
  }
  return 1;
}
