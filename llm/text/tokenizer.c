/* The tokenizer's public face, and the two kinds that need no file. */
#include "llm/text/tokenizer.h"
#include "core/base/utf8.h"
#include "llm/text/tokenizer_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static bool is_token(const tokenizer *t, int32_t token) {
  return token >= 0 && (size_t)token < t->size && t->entry[token].flags & ENTRY_HERE;
}

/* Bytes of the tokens' contents, one after another. SIZE_MAX: too many to count. */
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
    if (!is_token(t, token[i]))
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

/* A tokenizer of `size` numbers of which the special ones are filled in; their contents take
 * the first bytes of content, which has `bytes` more. */
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
  static const char *const name[] = {"char", "byte", "bpe"};
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
