/* The pool of batches under way, and the list of those that wait at the learner. */
#include "sim/buffer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void buffer_init(buffer *b) {
  *b = (buffer){.free_slot = BUFFER_NONE, .oldest = BUFFER_NONE, .newest = BUFFER_NONE};
}

void buffer_fini(buffer *b) {
  for (size_t i = 0; i < b->n_pool; ++i) free(b->pool[i].segments);
  free(b->pool);
  buffer_init(b);
}

size_t buffer_bytes(const buffer *b) {
  size_t bytes = b->capacity * sizeof *b->pool;
  for (size_t i = 0; i < b->n_pool; ++i)
    bytes += b->pool[i].segment_capacity * sizeof *b->pool[i].segments;
  return bytes;
}

size_t buffer_in_use(const buffer *b) {
  size_t n = b->n_pool;
  for (uint32_t i = b->free_slot; i != BUFFER_NONE; i = b->pool[i].newer) --n;
  return n;
}

/* The links of a batch are in its last cache line, and all of it is asked for by sim/clock.c: so it
 * must not reach into a third one, which realloc would let it do. */
_Static_assert(sizeof(pooled_batch) == 2 * CACHE_LINE, "a batch is two cache lines");

static bool buffer_grow(buffer *b) {
  if (b->n_pool < b->capacity) return true;
  size_t capacity = b->capacity == 0 ? 64 : 2 * b->capacity;
  if (capacity >= BUFFER_NONE || capacity > SIZE_MAX / sizeof *b->pool) return false;
  pooled_batch *pool = aligned_alloc(CACHE_LINE, capacity * sizeof *pool);
  if (pool == NULL) return false;
  if (b->n_pool > 0) memcpy(pool, b->pool, b->n_pool * sizeof *pool);
  free(b->pool);
  b->pool = pool;
  b->capacity = capacity;
  return true;
}

static bool buffer_add_segment(pooled_batch *p, int64_t version, double from, int64_t response) {
  uint32_t n = p->facts.n_segments;
  if (n == p->segment_capacity) {
    uint32_t capacity = n == 0 ? 1 : 2 * n;
    schedule_segment *s = realloc(p->segments, capacity * sizeof *s);
    if (s == NULL) return false;
    p->segments = s;
    p->segment_capacity = capacity;
  }
  p->segments[p->facts.n_segments++] = (schedule_segment){version, from, 1, response};
  return true;
}

/* A slot that was given back long ago is in main memory: the next is asked for while its taker is
 * still some events away. */
static void ask_for_free(const buffer *b) {
  if (b->free_slot == BUFFER_NONE) return;
  const char *next = (const char *)&b->pool[b->free_slot];
  __builtin_prefetch(next, 1);
  __builtin_prefetch(next + CACHE_LINE, 1);
}

uint32_t buffer_take(buffer *b, int64_t version) {
  uint32_t slot = b->free_slot;
  if (slot == BUFFER_NONE) {
    if (!buffer_grow(b)) return BUFFER_NONE;
    slot = (uint32_t)b->n_pool++;
    b->pool[slot] = (pooled_batch){0};
  } else {
    b->free_slot = b->pool[slot].newer;
    ask_for_free(b);
  }
  pooled_batch *p = &b->pool[slot];
  p->facts = (schedule_batch){0};
  p->begun_with = version;
  p->older = p->newer = BUFFER_NONE;
  if (buffer_add_segment(p, version, 0, SEGMENT_OF_ALL)) return slot;
  buffer_release(b, slot);
  return BUFFER_NONE;
}

bool buffer_switch(buffer *b, uint32_t slot, double at, int64_t version) {
  pooled_batch *p = &b->pool[slot];
  schedule_segment *last = &p->segments[p->facts.n_segments - 1];
  if (at <= last->from) { /* nothing was generated under the version before */
    last->version = version;
    return true;
  }
  last->to = at;
  return buffer_add_segment(p, version, at, SEGMENT_OF_ALL);
}

uint32_t buffer_begin_response(buffer *b, uint32_t slot, int64_t response, int64_t version) {
  pooled_batch *p = &b->pool[slot];
  if (p->segments[0].response == SEGMENT_OF_ALL) {
    p->segments[0].response = response;
    p->segments[0].version = version;
    return 0;
  }
  return buffer_add_segment(p, version, 0, response) ? p->facts.n_segments - 1 : UINT32_MAX;
}

uint32_t buffer_switch_response(buffer *b, uint32_t slot, uint32_t segment, double at,
                                int64_t version) {
  pooled_batch *p = &b->pool[slot];
  const int64_t response = p->segments[segment].response;
  if (at <= p->segments[segment].from) {
    p->segments[segment].version = version;
    return segment;
  }
  p->segments[segment].to = at;
  return buffer_add_segment(p, version, at, response) ? p->facts.n_segments - 1 : UINT32_MAX;
}

void buffer_rescale_response(buffer *b, uint32_t slot, int64_t response, double factor) {
  pooled_batch *p = &b->pool[slot];
  for (uint32_t i = 0; i < p->facts.n_segments; ++i) {
    schedule_segment *s = &p->segments[i];
    if (s->response != response) continue;
    s->from *= factor;
    if (s->to < 1) s->to *= factor;
  }
}

void buffer_join_segments(buffer *b, uint32_t slot) {
  pooled_batch *p = &b->pool[slot];
  for (uint32_t i = 1; i < p->facts.n_segments; ++i)
    if (p->segments[i].version != p->segments[0].version) return;
  p->segments[0] = (schedule_segment){p->segments[0].version, 0, 1, SEGMENT_OF_ALL};
  p->facts.n_segments = 1;
}

void buffer_release(buffer *b, uint32_t slot) {
  b->pool[slot].newer = b->free_slot;
  b->free_slot = slot;
}

void buffer_insert(buffer *b, uint32_t slot, bool by_generation_time) {
  pooled_batch *pool = b->pool;
  uint32_t before = b->newest, after = BUFFER_NONE;
  while (by_generation_time && before != BUFFER_NONE &&
         pool[before].facts.generated_s > pool[slot].facts.generated_s) {
    after = before;
    before = pool[before].older;
  }
  pool[slot].arrival = ++b->arrivals;
  pool[slot].older = before;
  pool[slot].newer = after;
  *(before == BUFFER_NONE ? &b->oldest : &pool[before].newer) = slot;
  *(after == BUFFER_NONE ? &b->newest : &pool[after].older) = slot;
  ++b->waiting;
}

void buffer_remove(buffer *b, uint32_t slot) {
  pooled_batch *p = &b->pool[slot];
  assert(slot < b->n_pool && p->arrival != 0);
  p->arrival = 0;
  *(p->older == BUFFER_NONE ? &b->oldest : &b->pool[p->older].newer) = p->newer;
  *(p->newer == BUFFER_NONE ? &b->newest : &b->pool[p->newer].older) = p->older;
  --b->waiting;
}

int64_t buffer_version(const buffer *b, uint32_t slot) {
  return b->pool[slot].segments[0].version;
}
