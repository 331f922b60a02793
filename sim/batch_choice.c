/* Which waiting batch is trained next. */
#include "sim/clock.h"

void batch_choice_drop(sim_clock *c, uint32_t slot) {
  const schedule_batch *b = &c->buffer.pool[slot].facts;
  c->waited_s += c->now - b->arrived_s;
  clock_tell(c, SPAN_QUEUED, SPAN_DROPPED, b->sampler, b->arrived_s, c->now, b->number, -1);
  buffer_remove(&c->buffer, slot);
  ++c->dropped;
  forget_batch(c, slot);
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
    batch_choice_drop(c, b->oldest);
}

static int choose_heterorl(sim_clock *c) {
  int64_t before = c->newest_trained;
  size_t n = 0;
  for (; n < c->spec->batches; ++n) {
    uint32_t slot = heterorl_next(c, c->newest_trained);
    if (slot == BUFFER_NONE) break;
    buffer_remove(&c->buffer, slot);
    c->chosen[n] = slot;
    if (buffer_version(&c->buffer, slot) > c->newest_trained)
      c->newest_trained = buffer_version(&c->buffer, slot);
  }
  if (n == c->spec->batches) {
    heterorl_trim(c);
    return 1;
  }
  while (n > 0) buffer_insert(&c->buffer, c->chosen[--n], 1);
  c->newest_trained = before;
  return 0;
}

/* Rules that train the oldest version first, or drop versions that are too old, ask for the
 * smallest version that waits: a heap holds the waiting batches by version and, within a version,
 * by arrival. A batch that leaves the list in another way leaves its entry in the heap, which is
 * skipped when it comes to the top. */
static int needs_versions(const sim_clock *c) {
  return c->spec->queue == QUEUE_OLDEST_VERSION ||
         (c->spec->queue != QUEUE_HETERORL && c->spec->window < INT64_MAX);
}

int batch_choice_add(sim_clock *c, uint32_t slot) {
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
    batch_choice_drop(c, i);
}

int batch_choice_next(sim_clock *c) {
  const cluster_spec *spec = c->spec;
  buffer *b = &c->buffer;
  if (spec->queue == QUEUE_HETERORL) return choose_heterorl(c);
  if (b->waiting < spec->batches) return 0;
  if (spec->window < c->version) drop_stale(c);
  if (b->waiting < spec->batches) return 0;
  for (size_t n = 0; n < spec->batches; ++n) {
    uint32_t slot = spec->queue == QUEUE_FIFO   ? b->oldest
                    : spec->queue == QUEUE_LIFO ? b->newest
                                                : oldest_version(c);
    buffer_remove(b, slot);
    c->chosen[n] = slot;
  }
  return 1;
}
