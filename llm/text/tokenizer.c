/* Text to tokens and back: byte-level BPE, and the two kinds that need no file. */
#include "llm/text/internal.h"

#include "core/base/array.h"
#include "core/base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- byte-level BPE --- */

/* Text to tokens by byte-level BPE, in the steps of a tokenizer.json: added tokens are extracted,
 * the rest is normalised and cut by the splitting rule, and each piece is merged.
 *
 * Merging: the adjacent pair with the lowest rank, the leftmost one on ties, becomes one token,
 * until no pair merges. With a heap of (rank, place) over a linked list this takes O(n log n) in
 * the piece's bytes. */

static gl_status token_list_push(token_list *list, int32_t token, gl_error *err) {
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

/* The token with these bytes, or -1. */
static int32_t tokenizer_find_bytes(const tokenizer *t, const char *bytes, size_t size) {
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

/* A bijection, so equal hashes imply equal pairs. */
static uint64_t pair_hash(const tokenizer *t, int32_t left, int32_t right) {
  return hash_mix(((uint64_t)left << 32 | (uint64_t)right) ^ t->seed);
}

void tokenizer_set_merge(tokenizer *t, int32_t left, int32_t right, uint32_t rank, int32_t merged) {
  const uint64_t hash = pair_hash(t, left, right), merge = (uint64_t)rank << 32 | (uint64_t)merged;
  uint64_t *known = hash_table_find(&t->merges, hash, NULL, NULL, NULL);
  if (known != NULL)
    *known = merge;
  else
    hash_table_add(&t->merges, hash, merge); /* cannot fail: space was reserved */
}

/* --- merging --- */

enum { NOTHING = -1 };
#define NO_MERGE UINT32_MAX

struct merge_symbol {
  int32_t token;          /* NOTHING: merged into the symbol before it */
  int32_t previous, next; /* indices, NOTHING at the ends */
  int32_t merged;         /* the token that this one and the next one become */
  uint32_t rank;          /* rank of that merge, or NO_MERGE */
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

/* Looks up the merge of symbol i and the next one, and queues it. */
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
  /* at first there are size - 1 pairs; each merge removes one and adds at most two */
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
    if (w->symbol[i].rank != best >> 32)
      continue; /* the symbol's pair has changed since it was queued */
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

/* Matches are pieces, and so are the texts between them. An empty match splits there, unless it
 * touches the match before it: then the search continues one character later. */
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

static void added_set_fini(added_set *s) {
  for (size_t i = 0; i < s->n; ++i) free(s->at[i].text);
  free(s->at);
  *s = (added_set){0};
}

/* The first of texts [low, high) whose byte at index `depth` is at least `byte`. All are longer
 * than depth and equal before it. */
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

/* The longest added text that is a prefix of text[size], or NULL. */
static const struct added_text *longest_at(const added_set *s, const char *text, size_t size) {
  const struct added_text *longest = NULL;
  size_t low = 0, high = s->n;
  for (size_t depth = 0;; ++depth) {
    if (low < high && s->at[low].size == depth) longest = &s->at[low++];
    if (low == high || depth == size) return longest;
    const int byte = (unsigned char)text[depth];
    if (s->at[low].text[depth] == text[depth] && s->at[high - 1].text[depth] == text[depth])
      continue; /* texts are sorted, so those between have this prefix, too */
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

/* Encodes normalised text: added tokens as themselves, the text between them piece by piece. */
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

/* Appends the tokens of text[size], valid UTF-8. */
static gl_status encode_bpe(const tokenizer *t, const char *text, size_t size, token_list *out,
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

/* --- text to tokens --- */

static gl_status fail_character(uint32_t code, const char *bytes, size_t size, size_t at,
                                gl_error *err) {
  const bool shown = code > ' ' && !(code >= 0x7f && code < 0xa1);
  return gl_fail(err, GL_EINPUT,
                 "the character %s%.*s%sU+%04X at byte %zu of a text is not in the tokenizer's "
                 "alphabet; use the byte tokenizer, or an alphabet that has it",
                 shown ? "'" : "", shown ? (int)size : 0, bytes, shown ? "' " : "", (unsigned)code,
                 at);
}

static gl_status encode_char(const tokenizer *t, const char *text, size_t size, token_list *out,
                             gl_error *err) {
  gl_status status = GL_OK;
  for (size_t at = 0, bytes; at < size && status == GL_OK; at += bytes) {
    uint32_t code;
    bytes = utf8_read(text + at, size - at, &code);
    int32_t token = tokenizer_find_bytes(t, text + at, bytes);
    status = token >= 0 ? token_list_push(out, token, err)
                        : fail_character(code, text + at, bytes, at, err);
  }
  return status;
}

static gl_status encode_byte(const char *text, size_t size, token_list *out, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t at = 0; at < size && status == GL_OK; ++at)
    status = token_list_push(out, TOKEN_FIRST + (unsigned char)text[at], err);
  return status;
}

static gl_status encode_valid(const tokenizer *t, const char *text, size_t size, token_list *out,
                              gl_error *err) {
  switch (t->type) {
  case TOKENIZER_CHAR:
    return encode_char(t, text, size, out, err);
  case TOKENIZER_BYTE:
    return encode_byte(text, size, out, err);
  case TOKENIZER_BPE:
    return encode_bpe(t, text, size, out, err);
  }
  return gl_fail(err, GL_EINTERNAL, "a tokenizer of unknown kind");
}

gl_status tokenizer_encode(const tokenizer *t, const char *text, size_t size, int32_t **out,
                           size_t *n, gl_error *err) {
  token_list list = {0};
  char *repaired = NULL;
  gl_status status = GL_OK;
  *out = NULL;
  *n = 0;
  if (utf8_valid_prefix(text, size) < size) {
    status = utf8_repair(text, size, &repaired, &size, err);
    text = repaired;
  }
  if (status == GL_OK) status = encode_valid(t, text, size, &list, err);
  free(repaired);
  if (status != GL_OK) {
    free(list.at);
    return status;
  }
  *out = list.at;
  *n = list.n;
  return GL_OK;
}

/* --- tokens to text --- */

bool tokenizer_has(const tokenizer *t, int32_t token) {
  return token >= 0 && (size_t)token < t->size && t->entry[token].flags & ENTRY_HERE;
}

/* Total size in bytes of the tokens' contents. SIZE_MAX on overflow. */
static size_t content_size(const tokenizer *t, const int32_t *token, size_t n, unsigned skipped) {
  size_t size = 0;
  for (size_t i = 0; i < n; ++i) {
    const token_entry *e = &t->entry[token[i]];
    if (e->flags & skipped) continue;
    if (e->size > SIZE_MAX - 1 - size) return SIZE_MAX;
    size += e->size;
  }
  return size;
}

gl_status tokenizer_decode(const tokenizer *t, const int32_t *token, size_t n, bool skip_special,
                           char **out, size_t *size, gl_error *err) {
  const unsigned skipped = skip_special ? ENTRY_SPECIAL : 0;
  *out = NULL;
  if (size != NULL) *size = 0;
  for (size_t i = 0; i < n; ++i)
    if (!tokenizer_has(t, token[i]))
      return gl_fail(err, GL_EINPUT,
                     "token %d at position %zu is not in the tokenizer's vocabulary (%zu numbers)",
                     (int)token[i], i, t->size);
  const size_t bytes = content_size(t, token, n, skipped);
  char *text = bytes < SIZE_MAX ? malloc(bytes + 1) : NULL;
  if (text == NULL) return gl_fail_memory(err, "a text");
  size_t end = 0;
  for (size_t i = 0; i < n; ++i) {
    const token_entry *e = &t->entry[token[i]];
    if (e->flags & skipped || e->size == 0) continue;
    memcpy(text + end, e->bytes, e->size);
    end += e->size;
  }
  text[end] = '\0';
  if (utf8_valid_prefix(text, end) < end) {
    char *repaired;
    gl_status status = utf8_repair(text, end, &repaired, &end, err);
    free(text);
    if (status != GL_OK) return status;
    text = repaired;
  }
  *out = text;
  if (size != NULL) *size = end;
  return GL_OK;
}

/* --- the kinds without a file --- */

static const struct {
  const char *text;
  uint32_t size;
} built_in[TOKEN_FIRST] = {{"<pad>", 5}, {"<s>", 3}, {"</s>", 4}};

/* Makes a tokenizer of `size` token numbers with the three special tokens filled in. Their texts
 * are at the beginning of its content. *rest receives the address of the `bytes` bytes that
 * follow. */
static gl_status new_built_in(tokenizer **out, tokenizer_type type, size_t size, size_t bytes,
                              char **rest, gl_error *err) {
  *out = NULL;
  tokenizer *t = calloc(1, sizeof *t);
  if (t == NULL) return gl_fail_memory(err, "a tokenizer");
  t->type = type;
  t->size = size;
  t->entry = calloc(size, sizeof *t->entry);
  t->added = calloc(TOKEN_FIRST, sizeof *t->added);
  t->content = malloc(bytes + sizeof "<pad><s></s>");
  if (t->entry == NULL || t->added == NULL || t->content == NULL) {
    tokenizer_free(t);
    return gl_fail_memory(err, "a tokenizer");
  }
  char *to = t->content;
  for (int32_t i = 0; i < TOKEN_FIRST; ++i) {
    memcpy(to, built_in[i].text, built_in[i].size);
    t->entry[i] = (token_entry){to, built_in[i].size, ENTRY_HERE | ENTRY_ADDED | ENTRY_SPECIAL};
    t->added[t->n_added++] = i;
    to += built_in[i].size;
  }
  *rest = to;
  *out = t;
  return GL_OK;
}

gl_status tokenizer_new_byte(tokenizer **out, gl_error *err) {
  enum { BYTES = 256 };
  char *content;
  gl_status status = new_built_in(out, TOKENIZER_BYTE, TOKEN_FIRST + BYTES, BYTES, &content, err);
  for (int i = 0; status == GL_OK && i < BYTES; ++i) {
    content[i] = (char)i;
    (*out)->entry[TOKEN_FIRST + i] = (token_entry){content + i, 1, ENTRY_HERE};
  }
  return status;
}

static gl_status count_characters(const char *alphabet, size_t size, size_t *n, gl_error *err) {
  *n = 0;
  if (size == 0) return gl_fail(err, GL_EINPUT, "a tokenizer's alphabet is empty");
  if (size > INT32_MAX)
    return gl_fail(err, GL_EINPUT, "a tokenizer's alphabet of %zu bytes is too long", size);
  for (size_t at = 0; at < size; ++*n) {
    uint32_t code;
    size_t bytes = utf8_read(alphabet + at, size - at, &code);
    if (code == UTF8_INVALID)
      return gl_fail(err, GL_EINPUT, "a tokenizer's alphabet is not UTF-8 at byte %zu", at);
    at += bytes;
  }
  return GL_OK;
}

gl_status tokenizer_new_char(tokenizer **out, const char *alphabet, gl_error *err) {
  const size_t size = strlen(alphabet);
  size_t n;
  char *content;
  *out = NULL;
  gl_status status = count_characters(alphabet, size, &n, err);
  if (status == GL_OK)
    status = new_built_in(out, TOKENIZER_CHAR, TOKEN_FIRST + n, size, &content, err);
  if (status != GL_OK) return status;
  tokenizer *t = *out;
  memcpy(content, alphabet, size);
  status = tokenizer_reserve_bytes(t, n, err);
  int32_t token = TOKEN_FIRST;
  for (size_t at = 0, bytes; at < size && status == GL_OK; at += bytes, ++token) {
    uint32_t code;
    bytes = utf8_read(content + at, size - at, &code);
    t->entry[token] = (token_entry){content + at, (uint32_t)bytes, ENTRY_HERE};
    if (!tokenizer_add_bytes(t, token))
      status = gl_fail(err, GL_EINPUT, "U+%04X is twice in a tokenizer's alphabet; name it once",
                       (unsigned)code);
  }
  if (status != GL_OK) {
    tokenizer_free(t);
    *out = NULL;
  }
  return status;
}

gl_status tokenizer_add_unused(tokenizer *t, size_t n, gl_error *err) {
  static const char unused[] = "\xef\xbf\xbd";
  if (t->type == TOKENIZER_BPE)
    return gl_fail(err, GL_EINPUT,
                   "a tokenizer.json says what tokens there are; none can be added");
  if (n > (size_t)INT32_MAX - t->size)
    return gl_fail(err, GL_EINPUT, "%zu unused tokens are more than can be numbered", n);
  token_entry *entry = realloc(t->entry, (t->size + n) * sizeof *entry);
  if (entry == NULL) return gl_fail_memory(err, "a tokenizer");
  t->entry = entry;
  for (size_t i = 0; i < n; ++i)
    t->entry[t->size++] = (token_entry){unused, sizeof unused - 1, ENTRY_HERE};
  return GL_OK;
}

/* --- about a tokenizer --- */

void tokenizer_free(tokenizer *t) {
  if (t == NULL) return;
  hash_table_fini(&t->by_bytes);
  free(t->piece);
  hash_table_fini(&t->merges);
  split_rule_fini(&t->rule);
  added_set_fini(&t->raw);
  added_set_fini(&t->normal);
  free(t->added);
  free(t->entry);
  free(t->content);
  free(t);
}

const char *tokenizer_kind(const tokenizer *t) {
  static const char *const name[] = {
      [TOKENIZER_CHAR] = "char", [TOKENIZER_BYTE] = "byte", [TOKENIZER_BPE] = "bpe"};
  return name[t->type];
}

size_t tokenizer_size(const tokenizer *t) {
  return t->size;
}

int32_t tokenizer_special(const tokenizer *t, const char *content) {
  const size_t size = strlen(content);
  for (size_t i = 0; i < t->n_added; ++i) {
    const token_entry *e = &t->entry[t->added[i]];
    if (e->size == size && memcmp(e->bytes, content, size) == 0) return t->added[i];
  }
  return -1;
}
