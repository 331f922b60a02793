/* Merging the bytes of a piece: the neighbours of the lowest rank become one token, the leftmost
 * such first, until no neighbours merge. A heap of (rank, place) over a linked list makes it
 * O(n log n) in the piece's bytes. */
#include "llm/text/tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>

enum { NOTHING = -1 };
#define NO_MERGE UINT32_MAX

struct merge_symbol {
  int32_t token;          /* NOTHING: merged into the symbol before it */
  int32_t previous, next; /* places, NOTHING at the ends */
  int32_t merged;         /* what it and the next one become */
  uint32_t rank;          /* of that merge; NO_MERGE */
};

static void push(uint64_t *heap, size_t *n, uint64_t entry) {
  size_t i = (*n)++;
  for (; i > 0 && heap[(i - 1) / 2] > entry; i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
  heap[i] = entry;
}

static uint64_t pop(uint64_t *heap, size_t *n) {
  const uint64_t top = heap[0], entry = heap[--*n];
  size_t i = 0;
  for (size_t child = 1; child < *n; child = 2 * i + 1) {
    if (child + 1 < *n && heap[child + 1] < heap[child]) ++child;
    if (heap[child] >= entry) break;
    heap[i] = heap[child];
    i = child;
  }
  heap[i] = entry;
  return top;
}

static gl_status reserve(merge_work *w, size_t n, gl_error *err) {
  if (n <= w->room) return GL_OK;
  const size_t room = n < 256 ? 256 : n + n / 2;
  struct merge_symbol *symbol =
      room < SIZE_MAX / 64 ? realloc(w->symbol, room * sizeof *symbol) : NULL;
  if (symbol != NULL) w->symbol = symbol;
  /* n - 1 pairs at first, and each merge takes one out and puts at most two in */
  uint64_t *heap = symbol != NULL ? realloc(w->heap, 2 * room * sizeof *heap) : NULL;
  if (heap == NULL) return gl_fail_memory(err, "merging a piece of text");
  w->heap = heap;
  w->room = room;
  return GL_OK;
}

void merge_work_fini(merge_work *w) {
  free(w->symbol);
  free(w->heap);
  *w = (merge_work){0};
}

/* Looks up what symbol i and the one after it become, and queues it. */
static void offer(const tokenizer *t, merge_work *w, size_t *queued, int32_t i) {
  struct merge_symbol *s = &w->symbol[i];
  s->rank = NO_MERGE;
  if (s->next == NOTHING) return;
  const struct pair_slot *merge = pair_table_find(&t->merges, s->token, w->symbol[s->next].token);
  if (merge == NULL) return;
  s->rank = merge->rank;
  s->merged = merge->token;
  push(w->heap, queued, (uint64_t)merge->rank << 32 | (uint32_t)i);
}

/* Merges the next symbol into symbol i. */
static void apply(merge_work *w, int32_t i) {
  struct merge_symbol *s = &w->symbol[i], *swallowed = &w->symbol[s->next];
  s->token = s->merged;
  s->next = swallowed->next;
  if (s->next != NOTHING) w->symbol[s->next].previous = i;
  swallowed->token = NOTHING;
  swallowed->rank = NO_MERGE;
}

gl_status merge_piece(const tokenizer *t, merge_work *w, const char *piece, size_t size,
                      token_list *out, gl_error *err) {
  if (size > INT32_MAX)
    return gl_fail(err, GL_EINPUT, "a text has %zu bytes that its tokenizer does not split; cut it",
                   size);
  gl_status status = reserve(w, size, err);
  if (status != GL_OK) return status;
  const int32_t n = (int32_t)size;
  size_t queued = 0;
  for (int32_t i = 0; i < n; ++i)
    w->symbol[i] = (struct merge_symbol){.token = t->byte_token[(unsigned char)piece[i]],
                                         .previous = i - 1,
                                         .next = i + 1 < n ? i + 1 : NOTHING};
  for (int32_t i = 0; i < n; ++i) offer(t, w, &queued, i);
  while (queued > 0) {
    const uint64_t best = pop(w->heap, &queued);
    const int32_t i = (int32_t)(uint32_t)best, before = w->symbol[i].previous;
    if (w->symbol[i].rank != best >> 32) continue; /* its pair has changed since it was queued */
    apply(w, i);
    offer(t, w, &queued, i);
    if (before != NOTHING) offer(t, w, &queued, before);
  }
  for (int32_t i = 0; i != NOTHING && i < n && status == GL_OK; i = w->symbol[i].next)
    status = token_list_push(out, w->symbol[i].token, err);
  return status;
}
