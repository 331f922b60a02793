/* The buckets of the future event list: memory, insertion, spreading and emptying. The functions
 * that the event loop calls most (eq_push, eq_pop, fel_push, fel_pop) are inline in event_queue.h.
 */
#include "sim/event_queue.h"

enum { LEAST_SLAB = 64, MOST_SLAB = 2048 }; /* numbers of blocks */

void fel_init(future_events *f) {
  *f = (future_events){.last = ~(fel_key)0, .spill_at = FEL_SPILL};
}

void fel_fini(future_events *f) {
  while (f->slabs != NULL) {
    fel_slab *slab = f->slabs;
    f->slabs = slab->next;
    free(slab);
  }
  free(f->levels);
  eq_fini(&f->near);
  fel_init(f);
}

size_t fel_bytes(const future_events *f) {
  return f->near.capacity * sizeof *f->near.heap + f->bytes +
         (f->levels != NULL ? FEL_LEVELS * sizeof *f->levels : 0);
}

/* --- blocks --- */

static void fel_give_back(future_events *f, fel_block *block) {
  block->next = f->free;
  f->free = block;
}

/* Each slab has half the size of all previous ones together, so at most a quarter of the memory is
 * unused. */
static int fel_add_slab(future_events *f) {
  size_t blocks = f->bytes / sizeof(fel_block) / 2;
  blocks = blocks < LEAST_SLAB ? LEAST_SLAB : blocks > MOST_SLAB ? MOST_SLAB : blocks;
  const size_t bytes = (blocks + 1) * sizeof(fel_block);
  fel_slab *slab = malloc(bytes);
  if (slab == NULL) return 0;
  *slab = (fel_slab){f->slabs, blocks};
  f->slabs = slab;
  f->bytes += bytes;
  for (size_t i = blocks; i > 0; --i) fel_give_back(f, (fel_block *)slab + i);
  return 1;
}

static fel_block *fel_take_block(future_events *f) {
  if (f->free == NULL && !fel_add_slab(f)) return NULL;
  fel_block *block = f->free;
  f->free = block->next;
  block->next = NULL;
  block->n = 0;
  return block;
}

/* --- keys --- */

/* The highest digit in which two unequal keys differ. */
static uint32_t fel_level_of(fel_key a, fel_key b) {
  const uint64_t high = (uint64_t)(a >> 64) ^ (uint64_t)(b >> 64), low = (uint64_t)a ^ (uint64_t)b;
  const int bit = high != 0 ? 127 - __builtin_clzll(high) : 63 - __builtin_clzll(low);
  return (uint32_t)bit / FEL_BITS;
}

/* A mask of all bits below a digit. */
static fel_key fel_mask_of(uint32_t level) {
  return ((fel_key)1 << FEL_BITS * level) - 1;
}

/* --- events --- */

int fel_put_far(future_events *f, sim_event e, fel_key key) {
  const uint32_t level = fel_level_of(key, f->base);
  const uint32_t digit = (uint32_t)(key >> FEL_BITS * level) & (FEL_DIGITS - 1);
  fel_bucket *b = &f->levels[level].of[digit];
  if (b->n == 0 || b->last->n == FEL_BLOCK) {
    fel_block *block = fel_take_block(f);
    if (block == NULL) return 0;
    *(b->n == 0 ? &b->first : &b->last->next) = block;
    b->last = block;
    f->levels[level].filled |= (uint64_t)1 << digit;
    f->filled |= (uint32_t)1 << level;
  }
  b->last->events[b->last->n++] = e;
  ++b->n;
  ++f->far;
  return 1;
}

int fel_spill(future_events *f) {
  event_queue *q = &f->near;
  const size_t n = q->size;
  if (f->levels == NULL) f->levels = calloc(FEL_LEVELS, sizeof *f->levels);
  if (f->levels == NULL) return 0;
  if (f->far == 0) f->base = fel_key_of(eq_top(q));
  f->last = f->base;
  q->size = 0;
  for (size_t i = 0; i < n; ++i) {
    /* The heap grows in place over its own array; each push only overwrites entries that have been
     * read. */
    const sim_event e = q->heap[i];
    const fel_key key = fel_key_of(&e);
    if (!(key <= f->last ? eq_insert(q, e) : fel_put_far(f, e, key))) return 0;
  }
  /* Events before `base` cannot be moved to buckets; try again when the heap has doubled. */
  f->spill_at = 2 * q->size > FEL_SPILL ? 2 * q->size : FEL_SPILL;
  return 1;
}

/* Moves the events of a bucket to `near`, or distributes them by their keys. */
static int fel_spread(future_events *f, fel_bucket b, int all_near) {
  f->far -= b.n;
  for (fel_block *block = b.first; block != NULL;) {
    fel_block *next = block->next;
    for (size_t i = 0; i < block->n; ++i) {
      const sim_event e = block->events[i];
      const fel_key key = fel_key_of(&e);
      if (!(all_near || key <= f->last ? eq_insert(&f->near, e) : fel_put_far(f, e, key))) return 0;
    }
    fel_give_back(f, block);
    block = next;
  }
  return 1;
}

static fel_key fel_least_key(const fel_bucket *b) {
  fel_key least = ~(fel_key)0;
  for (const fel_block *block = b->first; block != NULL; block = block->next)
    for (size_t i = 0; i < block->n; ++i) {
      const fel_key key = fel_key_of(&block->events[i]);
      if (key < least) least = key;
    }
  return least;
}

/* Takes a bucket. `base` may advance to any key in the first bucket, or to its start: all other
 * events differ from it in the same digit as before. */
static int fel_take_bucket(future_events *f, uint32_t level, uint32_t digit, int whole) {
  fel_level *l = &f->levels[level];
  const fel_bucket b = l->of[digit];
  l->of[digit] = (fel_bucket){0};
  l->filled &= ~((uint64_t)1 << digit);
  if (l->filled == 0) f->filled &= ~((uint32_t)1 << level);
  if (whole) {
    const fel_key any = fel_key_of(&b.first->events[0]);
    f->base = any & ~fel_mask_of(level);
    f->last = any | fel_mask_of(level);
  } else {
    f->base = f->last = fel_least_key(&b);
  }
  return fel_spread(f, b, whole);
}

int fel_refill(future_events *f) {
  f->spill_at = FEL_SPILL;
  ++f->refills;
  while (f->far > 0) {
    const uint32_t level = (uint32_t)__builtin_ctz(f->filled);
    const uint32_t digit = (uint32_t)__builtin_ctzll(f->levels[level].filled);
    const int whole = f->levels[level].of[digit].n <= FEL_NEAR;
    if (f->near.size > (whole ? FEL_NEAR / 2 : 0)) return 1;
    if (!fel_take_bucket(f, level, digit, whole)) return 0;
  }
  f->last = ~(fel_key)0;
  return 1;
}
