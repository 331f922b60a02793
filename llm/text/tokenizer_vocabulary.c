/* The model of a tokenizer.json: its vocabulary, merges, and added tokens. */
#include "core/base/utf8.h"
#include "llm/text/tokenizer_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  NUMBERS = 1 << 22,   /* token numbers are below; the largest vocabularies have 2^18 */
  LONGEST_TOKEN = 4096 /* bytes of a token in the file: bounds the work of a match or a merge */
};

typedef struct vocabulary {
  const reader *r;
  tokenizer *t;
  token_table keys; /* tokens by the text the file writes them with */
  size_t n, bytes;  /* tokens of vocabulary and added ones together, and their bytes */
  char *end;        /* where the next content goes */
  const cJSON *vocab, *merges, *added;
  int whole_first; /* ignore_merges: a piece that is a token is that token */
} vocabulary;

/* --- byte letters --- */

/* Byte-level BPE writes each byte as one printable character: itself where Latin-1 prints it, and
 * U+0100 and on for the rest in order (GPT-2's encoder). Returns -1 for other characters. */
static int byte_of_letter(uint32_t code) {
  if ((code > 32 && code < 127) || (code > 160 && code < 256 && code != 173)) return (int)code;
  if (code < 256 || code > 323) return -1;
  const int rest = (int)code - 256; /* 0 .. 32, 127 .. 160, 173 */
  return rest <= 32 ? rest : rest <= 66 ? rest - 33 + 127 : 173;
}

/* Writes the bytes a token's letters stand for and returns their number; 0 if one is no letter. */
static size_t bytes_of_letters(const char *letters, size_t size, char *to) {
  size_t n = 0;
  for (size_t at = 0; at < size;) {
    uint32_t code;
    at += utf8_read(letters + at, size - at, &code);
    const int byte = byte_of_letter(code);
    if (byte < 0) return 0;
    to[n++] = (char)byte;
  }
  return n;
}

/* --- tokens --- */

/* A token number: an integer from 0. */
static int is_number(const cJSON *value, int32_t *number) {
  if (!cJSON_IsNumber(value)) return 0;
  const double x = value->valuedouble;
  if (!(x >= 0 && x < NUMBERS) || x != (double)(int32_t)x) return 0;
  *number = (int32_t)x;
  return 1;
}

static gl_status count_token(vocabulary *v, const char *content, int32_t number) {
  const size_t size = strlen(content);
  char quote[QUOTE_SIZE];
  if (size > LONGEST_TOKEN)
    return reader_fail(v->r, "token %d, \"%s\": has more than %d bytes", (int)number,
                       reader_quote(content, quote), LONGEST_TOKEN);
  ++v->n;
  v->bytes += size;
  if ((size_t)number >= v->t->size) v->t->size = (size_t)number + 1;
  return GL_OK;
}

/* First reading: sizes. */
static gl_status count_vocabulary(vocabulary *v) {
  const cJSON *item;
  gl_status status = GL_OK;
  char quote[QUOTE_SIZE];
  if (!cJSON_IsObject(v->vocab) || v->vocab->child == NULL)
    return reader_fail(v->r, "/model/vocab: is no object of tokens");
  cJSON_ArrayForEach(item, v->vocab) {
    int32_t number;
    if (!is_number(item, &number))
      return reader_fail(v->r, "/model/vocab/%s: is no integer from 0 to %d",
                         reader_quote(item->string, quote), NUMBERS - 1);
    if ((status = count_token(v, item->string, number)) != GL_OK) return status;
  }
  return GL_OK;
}

static gl_status put_token(vocabulary *v, const cJSON *item, int32_t number) {
  token_entry *e = &v->t->entry[number];
  const size_t size = strlen(item->string);
  char quote[QUOTE_SIZE];
  if (e->flags & ENTRY_HERE)
    return reader_fail(v->r, "/model/vocab/%s: another token has number %d too",
                       reader_quote(item->string, quote), (int)number);
  if (!token_table_add(&v->keys, item->string, size, number))
    return reader_fail(v->r, "/model/vocab/%s: is there twice; keep one",
                       reader_quote(item->string, quote));
  size_t bytes = bytes_of_letters(item->string, size, v->end);
  *e = (token_entry){v->end, (uint32_t)bytes, ENTRY_HERE | ENTRY_BYTES};
  if (bytes == 0) {
    memcpy(v->end, item->string, size);
    *e = (token_entry){v->end, (uint32_t)size, ENTRY_HERE};
  }
  if (bytes == 1) v->t->byte_token[(unsigned char)*v->end] = number;
  v->end += e->size;
  return GL_OK;
}

static gl_status put_vocabulary(vocabulary *v) {
  const cJSON *item;
  for (int b = 0; b < 256; ++b) v->t->byte_token[b] = -1;
  cJSON_ArrayForEach(item, v->vocab) {
    int32_t number = 0;
    is_number(item, &number);
    gl_status status = put_token(v, item, number);
    if (status != GL_OK) return status;
  }
  for (int b = 0; b < 256; ++b)
    if (v->t->byte_token[b] < 0)
      return reader_fail(v->r,
                         "/model/vocab: byte %d has no token, so not every text can be "
                         "written; train the tokenizer with the byte-level alphabet",
                         b);
  return GL_OK;
}

/* --- merges --- */

/* The halves of a merge, written "left right" or ["left", "right"]. The space of the first form
 * becomes a NUL: the document is read once. */
static int halves_of(const cJSON *merge, const char *half[2]) {
  if (cJSON_IsArray(merge)) {
    const cJSON *left = merge->child, *right = left != NULL ? left->next : NULL;
    if (!cJSON_IsString(left) || !cJSON_IsString(right) || right->next != NULL) return 0;
    half[0] = left->valuestring;
    half[1] = right->valuestring;
    return 1;
  }
  char *text = cJSON_GetStringValue(merge), *space = text != NULL ? strchr(text, ' ') : NULL;
  if (space == NULL || strchr(space + 1, ' ') != NULL) return 0;
  *space = '\0';
  half[0] = text;
  half[1] = space + 1;
  return 1;
}

static gl_status put_merge(vocabulary *v, const cJSON *merge, uint32_t rank) {
  const char *half[2];
  int32_t token[2];
  size_t size = 0;
  char joined[2 * LONGEST_TOKEN + 1], quote[QUOTE_SIZE];
  if (!halves_of(merge, half))
    return reader_fail(v->r,
                       "/model/merges/%u: is neither \"left right\" nor [\"left\", \"right\"]",
                       (unsigned)rank);
  for (int i = 0; i < 2; ++i) {
    const size_t n = strlen(half[i]);
    token[i] = token_table_find(&v->keys, half[i], n);
    if (token[i] < 0)
      return reader_fail(v->r, "/model/merges/%u: its %s half \"%s\" is not in the vocabulary",
                         (unsigned)rank, i == 0 ? "left" : "right", reader_quote(half[i], quote));
    memcpy(joined + size, half[i], n + 1); /* a token has LONGEST_TOKEN bytes at most */
    size += n;
  }
  const int32_t merged = token_table_find(&v->keys, joined, size);
  if (merged < 0)
    return reader_fail(v->r, "/model/merges/%u: what it makes, \"%s\", is not in the vocabulary",
                       (unsigned)rank, reader_quote(joined, quote));
  pair_table_set(&v->t->merges, token[0], token[1], rank, merged);
  return GL_OK;
}

static gl_status put_merges(vocabulary *v, uint64_t seed) {
  const cJSON *merge;
  size_t n = 0;
  if (!cJSON_IsArray(v->merges)) return reader_fail(v->r, "/model/merges: is no list");
  cJSON_ArrayForEach(merge, v->merges)++ n;
  gl_status status = pair_table_init(&v->t->merges, n, seed, v->r->err);
  uint32_t rank = 0;
  if (status == GL_OK) cJSON_ArrayForEach(merge, v->merges) {
      if ((status = put_merge(v, merge, rank++)) != GL_OK) break;
    }
  return status;
}

/* Finds the tokens that stand for themselves. */
static gl_status put_whole_tokens(vocabulary *v, uint64_t seed) {
  tokenizer *t = v->t;
  merge_work work = {0};
  token_list list = {0};
  gl_status status = token_table_init(&t->by_bytes, v->n, seed, v->r->err);
  for (size_t i = 0; i < t->size && status == GL_OK; ++i) {
    const token_entry *e = &t->entry[i];
    if (!(e->flags & ENTRY_BYTES)) continue;
    list.n = 0;
    if (!v->whole_first) status = merge_piece(t, &work, e->bytes, e->size, &list, v->r->err);
    if (v->whole_first || (list.n == 1 && list.at[0] == (int32_t)i))
      token_table_add(&t->by_bytes, e->bytes, e->size, (int32_t)i);
  }
  merge_work_fini(&work);
  free(list.at);
  return status;
}

/* --- added tokens --- */

typedef struct added_token {
  const char *content;
  int32_t number;
  int special, normalized;
} added_token;

static gl_status read_added(const reader *r, const cJSON *item, size_t i, added_token *out) {
  enum { ID, CONTENT, SINGLE_WORD, LSTRIP, RSTRIP, NORMALIZED, SPECIAL, FIELDS };
  json_field field[FIELDS] = {{"id", NULL},     {"content", NULL}, {"single_word", NULL},
                              {"lstrip", NULL}, {"rstrip", NULL},  {"normalized", NULL},
                              {"special", NULL}};
  char pointer[64];
  snprintf(pointer, sizeof pointer, "/added_tokens/%zu", i);
  gl_status status = reader_fields(r, item, pointer, field, FIELDS);
  if (status != GL_OK) return status;
  if (!is_number(field[ID].value, &out->number))
    return reader_fail(r, "%s/id: is no integer from 0 to %d", pointer, NUMBERS - 1);
  out->content = cJSON_GetStringValue(field[CONTENT].value);
  if (out->content == NULL || out->content[0] == '\0')
    return reader_fail(r, "%s/content: is no text", pointer);
  for (int f = SINGLE_WORD; f < FIELDS; ++f)
    if (!cJSON_IsBool(field[f].value))
      return reader_fail(r, "%s/%s: is neither true nor false", pointer, field[f].name);
  for (int f = SINGLE_WORD; f <= RSTRIP; ++f)
    if (!cJSON_IsFalse(field[f].value))
      return reader_fail(r, "%s/%s: is true; only false is supported", pointer, field[f].name);
  out->special = cJSON_IsTrue(field[SPECIAL].value);
  out->normalized = cJSON_IsTrue(field[NORMALIZED].value);
  return GL_OK;
}

static gl_status count_added(vocabulary *v) {
  const cJSON *item;
  size_t i = 0;
  if (reader_is_null(v->added)) return GL_OK;
  if (!cJSON_IsArray(v->added)) return reader_fail(v->r, "/added_tokens: is no list");
  cJSON_ArrayForEach(item, v->added) {
    added_token a;
    gl_status status = read_added(v->r, item, i++, &a);
    if (status == GL_OK) status = count_token(v, a.content, a.number);
    if (status != GL_OK) return status;
  }
  v->t->n_added = 0;
  v->t->added = calloc(i + 1, sizeof *v->t->added);
  v->t->raw.at = calloc(i + 1, sizeof *v->t->raw.at);
  v->t->normal.at = calloc(i + 1, sizeof *v->t->normal.at);
  if (v->t->added == NULL || v->t->raw.at == NULL || v->t->normal.at == NULL)
    return gl_fail_memory(v->r->err, "added tokens");
  return GL_OK;
}

/* What is looked for in the text: the content, in normal form if the text is. */
static gl_status put_pattern(vocabulary *v, const added_token *a) {
  added_set *set = a->normalized ? &v->t->normal : &v->t->raw;
  char *text = NULL;
  size_t size = strlen(a->content);
  if (a->normalized && v->t->nfc) {
    gl_status status = nfc_text(a->content, size, &text, &size, v->r->err);
    if (status != GL_OK) return status;
  }
  if (text == NULL) text = strdup(a->content);
  if (text == NULL) return gl_fail_memory(v->r->err, "added tokens");
  set->at[set->n++] = (struct added_text){text, size, a->number};
  return GL_OK;
}

/* An added token has the number of the vocabulary's token of that text, or one of its own. */
static gl_status put_added_token(vocabulary *v, size_t i, const added_token *a) {
  tokenizer *t = v->t;
  token_entry *e = &t->entry[a->number];
  const size_t size = strlen(a->content);
  const int32_t known = token_table_find(&v->keys, a->content, size);
  char quote[QUOTE_SIZE];
  if (known >= 0 && known != a->number)
    return reader_fail(v->r, "/added_tokens/%zu/id: \"%s\" is %d here and %d elsewhere in the file",
                       i, reader_quote(a->content, quote), (int)a->number, (int)known);
  if (e->flags & ENTRY_ADDED || (known < 0 && e->flags & ENTRY_HERE))
    return reader_fail(v->r, "/added_tokens/%zu/id: another token has number %d too", i,
                       (int)a->number);
  if (known < 0) token_table_add(&v->keys, a->content, size, a->number);
  memcpy(v->end, a->content, size);
  e->bytes = v->end;
  e->size = (uint32_t)size;
  e->flags = ENTRY_HERE | ENTRY_ADDED | (e->flags & ENTRY_BYTES) |
             (a->special ? (unsigned)ENTRY_SPECIAL : 0);
  v->end += size;
  t->added[t->n_added++] = a->number;
  return put_pattern(v, a);
}

static gl_status put_added(vocabulary *v) {
  const cJSON *item;
  size_t i = 0;
  gl_status status = GL_OK;
  if (reader_is_null(v->added)) return GL_OK;
  cJSON_ArrayForEach(item, v->added) {
    added_token a;
    status = read_added(v->r, item, i, &a);
    if (status == GL_OK) status = put_added_token(v, i++, &a);
    if (status != GL_OK) return status;
  }
  const int32_t twice = added_set_sort(&v->t->raw), alike = added_set_sort(&v->t->normal);
  if (twice >= 0 || alike >= 0)
    return reader_fail(v->r, "/added_tokens: token %d reads like another one after normalisation",
                       (int)(twice >= 0 ? twice : alike));
  return GL_OK;
}

/* --- the model --- */

static int is_empty(const cJSON *value) {
  const char *text = cJSON_GetStringValue(value);
  return reader_is_null(value) || (text != NULL && text[0] == '\0');
}

static int is_off(const cJSON *value) {
  return reader_is_null(value) || cJSON_IsFalse(value) ||
         (cJSON_IsNumber(value) && !(value->valuedouble > 0 || value->valuedouble < 0));
}

static gl_status read_model(vocabulary *v, const cJSON *model) {
  enum { TYPE, DROPOUT, UNK, PREFIX, SUFFIX, FUSE, FALLBACK, IGNORE, VOCAB, MERGES, FIELDS };
  json_field field[FIELDS] = {[TYPE] = {"type", NULL},
                              [DROPOUT] = {"dropout", NULL},
                              [UNK] = {"unk_token", NULL},
                              [PREFIX] = {"continuing_subword_prefix", NULL},
                              [SUFFIX] = {"end_of_word_suffix", NULL},
                              [FUSE] = {"fuse_unk", NULL},
                              [FALLBACK] = {"byte_fallback", NULL},
                              [IGNORE] = {"ignore_merges", NULL},
                              [VOCAB] = {"vocab", NULL},
                              [MERGES] = {"merges", NULL}};
  gl_status status = reader_fields(v->r, model, "/model", field, FIELDS);
  if (status != GL_OK) return status;
  const char *type = cJSON_GetStringValue(field[TYPE].value);
  if (type == NULL || strcmp(type, "BPE") != 0)
    return reader_fail(v->r, "/model/type: is not \"BPE\", which alone is supported");
  for (int i = DROPOUT; i <= FALLBACK; ++i)
    if (i == PREFIX || i == SUFFIX ? !is_empty(field[i].value) : !is_off(field[i].value))
      return reader_fail(v->r,
                         "/model/%s: is set, which is not supported; byte-level BPE has null "
                         "or false here",
                         field[i].name);
  if (!is_off(field[IGNORE].value) && !cJSON_IsTrue(field[IGNORE].value))
    return reader_fail(v->r, "/model/ignore_merges: is neither true nor false");
  v->whole_first = cJSON_IsTrue(field[IGNORE].value);
  v->vocab = field[VOCAB].value;
  v->merges = field[MERGES].value;
  return GL_OK;
}

gl_status reader_vocabulary(const reader *r, const cJSON *model, const cJSON *added, uint64_t seed,
                            tokenizer *t) {
  vocabulary v = {.r = r, .t = t, .added = added};
  gl_status status = read_model(&v, model);
  if (status == GL_OK) status = count_vocabulary(&v);
  if (status == GL_OK) status = count_added(&v);
  if (status != GL_OK) return status;
  t->entry = calloc(t->size, sizeof *t->entry);
  t->content = v.end = malloc(v.bytes + 1);
  if (t->entry == NULL || t->content == NULL) return gl_fail_memory(r->err, "a vocabulary");
  status = token_table_init(&v.keys, v.n, seed, r->err);
  if (status == GL_OK) status = put_vocabulary(&v);
  if (status == GL_OK) status = put_merges(&v, seed);
  if (status == GL_OK) status = put_whole_tokens(&v, seed);
  if (status == GL_OK) status = put_added(&v);
  token_table_fini(&v.keys);
  return status;
}
