/* Text to tokens by byte-level BPE, in the steps of a tokenizer.json: added tokens are cut out, the
 * rest is normalised, cut by the splitting rule, and each piece merged.
 *
 * Merging: the neighbours of the lowest rank become one token, the leftmost such first, until no
 * neighbours merge. A heap of (rank, place) over a linked list makes it O(n log n) in the piece's
 * bytes. */
#include "core/base/array.h"
#include "core/base/utf8.h"
#include "llm/text/tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>

gl_status token_list_push(token_list *list, int32_t token, gl_error *err) {
  if (!ARRAY_RESERVE(list->at, list->room, list->n + 1))
    return gl_fail_memory(err, "the tokens of a text");
  list->at[list->n++] = token;
  return GL_OK;
}

/* --- look-up --- */

static uint64_t hash_of_bytes(const tokenizer *t, const char *bytes, size_t size) {
  return hash_64(HASH_64_START ^ t->seed, bytes, size);
}

static bool has_bytes(const void *pieces, uint64_t i, const void *key) {
  const token_bytes *p = &((const token_bytes *)pieces)[i], *wanted = key;
  return p->size == wanted->size && memcmp(p->bytes, wanted->bytes, p->size) == 0;
}

gl_status tokenizer_reserve_bytes(tokenizer *t, size_t n, gl_error *err) {
  t->piece = calloc(n + 1, sizeof *t->piece);
  return t->piece != NULL && hash_table_reserve(&t->by_bytes, n)
             ? GL_OK
             : gl_fail_memory(err, "a table of tokens");
}

int32_t tokenizer_find_bytes(const tokenizer *t, const char *bytes, size_t size) {
  if (size > UINT32_MAX) return -1;
  const token_bytes wanted = {.bytes = bytes, .size = (uint32_t)size};
  const uint64_t *i =
      hash_table_find(&t->by_bytes, hash_of_bytes(t, bytes, size), has_bytes, t->piece, &wanted);
  return i != NULL ? t->piece[*i].token : -1;
}

bool tokenizer_add_bytes(tokenizer *t, int32_t token) {
  const token_entry *e = &t->entry[token];
  if (tokenizer_find_bytes(t, e->bytes, e->size) >= 0) return false;
  t->piece[t->n_pieces] = (token_bytes){e->bytes, e->size, token};
  return hash_table_add(&t->by_bytes, hash_of_bytes(t, e->bytes, e->size), t->n_pieces++);
}

gl_status tokenizer_reserve_merges(tokenizer *t, size_t n, gl_error *err) {
  return hash_table_reserve(&t->merges, n) ? GL_OK : gl_fail_memory(err, "a table of merges");
}

/* A bijection, so that equal hashes are equal pairs. */
static uint64_t pair_hash(const tokenizer *t, int32_t left, int32_t right) {
  return hash_mix(((uint64_t)left << 32 | (uint64_t)right) ^ t->seed);
}

void tokenizer_set_merge(tokenizer *t, int32_t left, int32_t right, uint32_t rank, int32_t merged) {
  const uint64_t hash = pair_hash(t, left, right), merge = (uint64_t)rank << 32 | (uint64_t)merged;
  uint64_t *known = hash_table_find(&t->merges, hash, NULL, NULL, NULL);
  if (known != NULL)
    *known = merge;
  else
    hash_table_add(&t->merges, hash, merge); /* there is room */
}

/* --- merging --- */

enum { NOTHING = -1 };
#define NO_MERGE UINT32_MAX

struct merge_symbol {
  int32_t token;          /* NOTHING: merged into the symbol before it */
  int32_t previous, next; /* places, NOTHING at the ends */
  int32_t merged;         /* what it and the next one become */
  uint32_t rank;          /* of that merge; NO_MERGE */
};

static void heap_push(uint64_t *heap, size_t *n, uint64_t entry) {
  size_t i = (*n)++;
  for (; i > 0 && heap[(i - 1) / 2] > entry; i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
  heap[i] = entry;
}

static uint64_t heap_pop(uint64_t *heap, size_t *n) {
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

void merge_work_fini(merge_work *w) {
  free(w->symbol);
  free(w->heap);
  *w = (merge_work){0};
}

/* Looks up what symbol i and the one after it become, and queues it. */
static void offer_merge(const tokenizer *t, merge_work *w, size_t *queued, int32_t i) {
  struct merge_symbol *s = &w->symbol[i];
  s->rank = NO_MERGE;
  if (s->next == NOTHING) return;
  const uint64_t *merge = hash_table_find(
      &t->merges, pair_hash(t, s->token, w->symbol[s->next].token), NULL, NULL, NULL);
  if (merge == NULL) return;
  s->rank = (uint32_t)(*merge >> 32);
  s->merged = (int32_t)(uint32_t)*merge;
  heap_push(w->heap, queued, (uint64_t)s->rank << 32 | (uint32_t)i);
}

/* Merges the next symbol into symbol i. */
static void apply_merge(merge_work *w, int32_t i) {
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
  /* size - 1 pairs at first, and each merge takes one out and puts at most two in */
  if (!ARRAY_RESERVE(w->symbol, w->symbols, size) || !ARRAY_RESERVE(w->heap, w->queue, 2 * size))
    return gl_fail_memory(err, "merging a piece of text");
  gl_status status = GL_OK;
  const int32_t n = (int32_t)size;
  size_t queued = 0;
  for (int32_t i = 0; i < n; ++i)
    w->symbol[i] = (struct merge_symbol){.token = t->byte_token[(unsigned char)piece[i]],
                                         .previous = i - 1,
                                         .next = i + 1 < n ? i + 1 : NOTHING};
  for (int32_t i = 0; i < n; ++i) offer_merge(t, w, &queued, i);
  while (queued > 0) {
    const uint64_t best = heap_pop(w->heap, &queued);
    const int32_t i = (int32_t)(uint32_t)best, before = w->symbol[i].previous;
    if (w->symbol[i].rank != best >> 32) continue; /* its pair has changed since it was queued */
    apply_merge(w, i);
    offer_merge(t, w, &queued, i);
    if (before != NOTHING) offer_merge(t, w, &queued, before);
  }
  for (int32_t i = 0; i != NOTHING && i < n && status == GL_OK; i = w->symbol[i].next)
    status = token_list_push(out, w->symbol[i].token, err);
  return status;
}

/* --- encoding --- */

typedef struct encoder {
  const tokenizer *t;
  token_list *out;
  merge_work work;
  split_match match;
  gl_error *err;
} encoder;

/* --- pieces --- */

static gl_status encode_piece(encoder *e, const char *piece, size_t size) {
  if (size == 0) return GL_OK;
  int32_t token = tokenizer_find_bytes(e->t, piece, size);
  if (token >= 0) return token_list_push(e->out, token, e->err);
  return merge_piece(e->t, &e->work, piece, size, e->out, e->err);
}

/* Matches are pieces, and so is what lies between them. An empty match cuts, unless it touches the
 * match before it: then the search goes on one character later. */
static gl_status encode_split(encoder *e, const char *text, size_t size) {
  size_t done = 0, from = 0, last = SIZE_MAX;
  gl_status status = GL_OK;
  while (status == GL_OK && from <= size) {
    split_place p;
    status = split_rule_find(&e->t->rule, &e->match, text, size, from, &p, e->err);
    if (status != GL_OK || p.start == SIZE_MAX) break;
    if (p.start == p.end && p.end == last) {
      uint32_t code;
      from += from < size ? utf8_read(text + from, size - from, &code) : 1;
      continue;
    }
    status = encode_piece(e, text + done, p.start - done);
    if (status == GL_OK) status = encode_piece(e, text + p.start, p.end - p.start);
    done = from = last = p.end;
  }
  return status == GL_OK ? encode_piece(e, text + done, size - done) : status;
}

/* --- added tokens --- */

static int by_added_text(const void *a, const void *b) {
  const struct added_text *x = a, *y = b;
  const int order = memcmp(x->text, y->text, x->size < y->size ? x->size : y->size);
  return order != 0 ? order : (x->size > y->size) - (x->size < y->size);
}

int32_t added_set_sort(added_set *s) {
  if (s->n > 0) qsort(s->at, s->n, sizeof *s->at, by_added_text);
  for (size_t i = 0; i < s->n; ++i) {
    s->starts[(unsigned char)s->at[i].text[0]] = 1;
    if (i > 0 && by_added_text(&s->at[i - 1], &s->at[i]) == 0) return s->at[i].token;
  }
  return -1;
}

void added_set_fini(added_set *s) {
  for (size_t i = 0; i < s->n; ++i) free(s->at[i].text);
  free(s->at);
  *s = (added_set){0};
}

/* The first of texts [low, high), all longer than `depth` and alike before it, whose byte there is
 * at least `byte`. */
static size_t first_with(const added_set *s, size_t low, size_t high, size_t depth, int byte) {
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if ((unsigned char)s->at[middle].text[depth] < byte)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* The longest text that text[size] starts with, or NULL. */
static const struct added_text *longest_at(const added_set *s, const char *text, size_t size) {
  const struct added_text *longest = NULL;
  size_t low = 0, high = s->n;
  for (size_t depth = 0;; ++depth) {
    if (low < high && s->at[low].size == depth) longest = &s->at[low++];
    if (low == high || depth == size) return longest;
    const int byte = (unsigned char)text[depth];
    if (s->at[low].text[depth] == text[depth] && s->at[high - 1].text[depth] == text[depth])
      continue; /* sorted: those between have it too */
    low = first_with(s, low, high, depth, byte);
    high = first_with(s, low, high, depth, byte + 1);
  }
}

/* The first added token in text[size], with its place; NULL if there is none. */
static const struct added_text *next_added(const added_set *s, const char *text, size_t size,
                                           size_t *place) {
  const struct added_text *found = NULL;
  for (size_t i = 0; s->n > 0 && i < size && found == NULL; ++i)
    if (s->starts[(unsigned char)text[i]]) {
      found = longest_at(s, text + i, size - i);
      *place = i;
    }
  return found;
}

/* --- the whole text --- */

static gl_status encode_normal(encoder *e, const char *text, size_t size) {
  gl_status status = GL_OK;
  while (status == GL_OK && size > 0) {
    size_t place = size;
    const struct added_text *added = next_added(&e->t->normal, text, size, &place);
    const size_t before = added != NULL ? place : size;
    status = e->t->splits ? encode_split(e, text, before) : encode_piece(e, text, before);
    if (status != GL_OK || added == NULL) break;
    status = token_list_push(e->out, added->token, e->err);
    text += place + added->size;
    size -= place + added->size;
  }
  return status;
}

static gl_status encode_raw(encoder *e, const char *text, size_t size) {
  char *normal = NULL;
  gl_status status = e->t->nfc ? nfc_text(text, size, &normal, &size, e->err) : GL_OK;
  if (status == GL_OK) status = encode_normal(e, normal != NULL ? normal : text, size);
  free(normal);
  return status;
}

gl_status encode_bpe(const tokenizer *t, const char *text, size_t size, token_list *out,
                     gl_error *err) {
  encoder e = {.t = t, .out = out, .err = err};
  gl_status status = t->splits ? split_match_init(&e.match, size, err) : GL_OK;
  while (status == GL_OK && size > 0) {
    size_t place = size;
    const struct added_text *added = next_added(&t->raw, text, size, &place);
    const size_t before = added != NULL ? place : size;
    status = encode_raw(&e, text, before);
    if (status != GL_OK || added == NULL) break;
    status = token_list_push(out, added->token, err);
    text += place + added->size;
    size -= place + added->size;
  }
  merge_work_fini(&e.work);
  split_match_fini(&e.match);
  return status;
}
