/* Text to tokens by byte-level BPE, in the steps of a tokenizer.json: added tokens are cut out, the
 * rest is normalised, cut by the splitting rule, and each piece merged. */
#include "core/base/utf8.h"
#include "llm/text/tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>

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
  int32_t token = token_table_find(&e->t->by_bytes, piece, size);
  if (token >= 0) return token_list_push(e->out, token, e->err);
  return merge_piece(e->t, &e->work, piece, size, e->out, e->err);
}

/* Matches are pieces, and so is what lies between them. An empty match cuts, unless it touches the
 * match before it: then the search goes on one character later. */
static gl_status encode_split(encoder *e, const char *text, size_t size) {
  size_t done = 0, from = 0, start, end, last = SIZE_MAX;
  gl_status status = GL_OK;
  while (status == GL_OK && from <= size) {
    status = split_rule_find(&e->t->rule, &e->match, text, size, from, &start, &end, e->err);
    if (status != GL_OK || start == SIZE_MAX) break;
    if (start == end && end == last) {
      uint32_t code;
      from += from < size ? utf8_read(text + from, size - from, &code) : 1;
      continue;
    }
    status = encode_piece(e, text + done, start - done);
    if (status == GL_OK) status = encode_piece(e, text + start, end - start);
    done = from = last = end;
  }
  return status == GL_OK ? encode_piece(e, text + done, size - done) : status;
}

/* --- added tokens --- */

static int by_text(const void *a, const void *b) {
  const struct added_text *x = a, *y = b;
  const int order = memcmp(x->text, y->text, x->size < y->size ? x->size : y->size);
  return order != 0 ? order : (x->size > y->size) - (x->size < y->size);
}

int32_t added_set_sort(added_set *s) {
  if (s->n > 0) qsort(s->at, s->n, sizeof *s->at, by_text);
  for (size_t i = 0; i < s->n; ++i) {
    s->starts[(unsigned char)s->at[i].text[0]] = 1;
    if (i > 0 && by_text(&s->at[i - 1], &s->at[i]) == 0) return s->at[i].token;
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
