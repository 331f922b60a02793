/* Reads a tokenizer.json: its components, vocabulary, merges and added tokens. */
#include "core/base/array.h"
#include "core/base/json.h"
#include "core/base/utf8.h"
#include "llm/text/internal.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  LARGEST_FILE = 256 << 20,
  MOST_VALUES = 8 << 20,
  NUMBERS = 1 << 22, /* limit of token numbers; the largest vocabularies have 2^18 */
  LONGEST_TOKEN =
      4096 /* maximum bytes of a token in the file; bounds the work of a match or a merge */
};

/* --- messages and fields --- */

typedef struct reader {
  const char *name; /* the file's name for messages */
  gl_error *err;
} reader;

/* Returns GL_EINPUT. The message is the file's name, then the formatted text, "/pointer: reason;
 * remedy". */
__attribute__((format(printf, 2, 3))) static gl_status reader_fail(const reader *r,
                                                                   const char *format, ...) {
  char text[800];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return gl_fail(r->err, GL_EINPUT, "%.200s: %s", r->name, text);
}

enum { QUOTE_SIZE = 64 };
/* The beginning of a string from the file for messages: control characters become '?', a long
 * string ends in dots. Returns text. */
static const char *reader_quote(const char *string, char text[QUOTE_SIZE]) {
  size_t size = strlen(string), shown = 0, bytes;
  uint32_t code;
  for (; shown < size && shown < QUOTE_SIZE - 8; shown += bytes) {
    bytes = utf8_read(string + shown, size - shown, &code);
    memcpy(text + shown, string + shown, bytes);
    if (code < ' ' || code == 0x7f) text[shown] = '?';
  }
  strcpy(text + shown, shown < size ? "..." : "");
  return text;
}

typedef struct json_field {
  const char *name;
  const cJSON *value; /* NULL: absent */
} json_field;

/* Reads the values of an object's fields. Errors: not an object, an unknown field, a duplicate
 * field. */
static gl_status reader_fields(const reader *r, const cJSON *object, const char *pointer,
                               json_field *field, size_t n) {
  const cJSON *value;
  if (!cJSON_IsObject(object))
    return reader_fail(r, "%s: is no object", pointer[0] != '\0' ? pointer : "/");
  cJSON_ArrayForEach(value, object) {
    size_t i = 0;
    char quote[QUOTE_SIZE];
    while (i < n && strcmp(field[i].name, value->string) != 0) ++i;
    reader_quote(value->string, quote);
    if (i == n)
      return reader_fail(r,
                         "%s/%s: this field is not known; only what the tokenizers of Qwen2 and "
                         "Qwen3 have is supported",
                         pointer, quote);
    if (field[i].value != NULL)
      return reader_fail(r, "%s/%s: is there twice; keep one", pointer, quote);
    field[i].value = value;
  }
  return GL_OK;
}

/* Absent or null. */
static bool reader_is_null(const cJSON *value) {
  return value == NULL || cJSON_IsNull(value);
}

static bool is_false(const cJSON *value) {
  return value == NULL || cJSON_IsFalse(value);
}

/* The "type" of a component, or "" if it has none. */
static const char *type_of(const cJSON *component) {
  const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(component, "type"));
  return type != NULL ? type : "";
}

static gl_status fail_type(const reader *r, const char *pointer, const cJSON *component,
                           const char *supported) {
  char quote[QUOTE_SIZE];
  return reader_fail(r, "%s: type \"%s\" is not supported; %s", pointer,
                     reader_quote(type_of(component), quote), supported);
}

/* --- components --- */

static gl_status read_normalizer(const reader *r, const cJSON *normalizer, tokenizer *t) {
  static const char supported[] = "NFC, a Sequence of NFC, or null is";
  if (reader_is_null(normalizer)) return GL_OK;
  json_field field[] = {{"type", NULL}, {"normalizers", NULL}};
  gl_status status = reader_fields(r, normalizer, "/normalizer", field, 2);
  if (status != GL_OK) return status;
  if (strcmp(type_of(normalizer), "NFC") == 0 && field[1].value == NULL) {
    t->nfc = true;
    return GL_OK;
  }
  if (strcmp(type_of(normalizer), "Sequence") != 0 || !cJSON_IsArray(field[1].value))
    return fail_type(r, "/normalizer", normalizer, supported);
  const cJSON *member;
  size_t i = 0;
  cJSON_ArrayForEach(member, field[1].value) {
    char pointer[64];
    json_field only[] = {{"type", NULL}};
    snprintf(pointer, sizeof pointer, "/normalizer/normalizers/%zu", i++);
    if ((status = reader_fields(r, member, pointer, only, 1)) != GL_OK) return status;
    if (strcmp(type_of(member), "NFC") != 0) return fail_type(r, pointer, member, supported);
    t->nfc = true;
  }
  return GL_OK;
}

static gl_status set_rule(const reader *r, const char *pointer, const char *pattern, tokenizer *t) {
  gl_error why = {0};
  gl_status status = split_rule_init(&t->rule, pattern, &why);
  if (status == GL_OK) t->splits = true;
  if (status == GL_EINPUT) return reader_fail(r, "%s: %s", pointer, why.text);
  return status == GL_OK ? GL_OK : gl_fail(r->err, status, "%s", why.text);
}

static gl_status read_split(const reader *r, const char *pointer, const cJSON *split,
                            tokenizer *t) {
  json_field field[] = {{"type", NULL}, {"pattern", NULL}, {"behavior", NULL}, {"invert", NULL}};
  json_field pattern[] = {{"Regex", NULL}};
  char at[128];
  gl_status status = reader_fields(r, split, pointer, field, 4);
  if (status != GL_OK) return status;
  if (strcmp(type_of(split), "Split") != 0)
    return fail_type(r, pointer, split, "Split before ByteLevel is");
  const char *behavior = cJSON_GetStringValue(field[2].value);
  if (behavior == NULL || strcmp(behavior, "Isolated") != 0)
    return reader_fail(r, "%s/behavior: is not \"Isolated\", which alone is supported", pointer);
  if (!is_false(field[3].value))
    return reader_fail(r, "%s/invert: is not false, which alone is supported", pointer);
  snprintf(at, sizeof at, "%s/pattern", pointer);
  if ((status = reader_fields(r, field[1].value, at, pattern, 1)) != GL_OK) return status;
  snprintf(at, sizeof at, "%s/pattern/Regex", pointer);
  const char *regex = cJSON_GetStringValue(pattern[0].value);
  if (regex == NULL) return reader_fail(r, "%s: is no string", at);
  return set_rule(r, at, regex, t);
}

/* The pre-tokenizer that maps bytes to characters. It includes GPT-2's splitting rule unless
 * use_regex is false. */
static gl_status read_byte_level(const reader *r, const char *pointer, const cJSON *level,
                                 tokenizer *t) {
  static const char gpt2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|"
                             "\\s+(?!\\S)|\\s+";
  json_field field[] = {
      {"type", NULL}, {"add_prefix_space", NULL}, {"trim_offsets", NULL}, {"use_regex", NULL}};
  if (strcmp(type_of(level), "ByteLevel") != 0)
    return fail_type(r, pointer, level, "ByteLevel, alone or after one Split, is");
  gl_status status = reader_fields(r, level, pointer, field, 4);
  if (status != GL_OK) return status;
  if (!cJSON_IsFalse(field[1].value))
    return reader_fail(r, "%s/add_prefix_space: is not false, which alone is supported", pointer);
  if (cJSON_IsFalse(field[3].value)) return GL_OK;
  if (field[3].value != NULL && !cJSON_IsTrue(field[3].value))
    return reader_fail(r, "%s/use_regex: is neither true nor false", pointer);
  if (t->splits)
    return reader_fail(r,
                       "%s/use_regex: is not false after a Split; one splitting rule is "
                       "supported",
                       pointer);
  return set_rule(r, pointer, gpt2, t);
}

static gl_status read_pre_tokenizer(const reader *r, const cJSON *pre, tokenizer *t) {
  static const char at[] = "/pre_tokenizer/pretokenizers";
  if (strcmp(type_of(pre), "Sequence") != 0) return read_byte_level(r, "/pre_tokenizer", pre, t);
  json_field field[] = {{"type", NULL}, {"pretokenizers", NULL}};
  gl_status status = reader_fields(r, pre, "/pre_tokenizer", field, 2);
  if (status != GL_OK) return status;
  const cJSON *first = cJSON_IsArray(field[1].value) ? field[1].value->child : NULL;
  const cJSON *second = first != NULL ? first->next : NULL;
  if (first == NULL || (second != NULL && second->next != NULL))
    return reader_fail(r, "%s: is no list of one Split and one ByteLevel", at);
  if (second == NULL) return read_byte_level(r, "/pre_tokenizer/pretokenizers/0", first, t);
  status = read_split(r, "/pre_tokenizer/pretokenizers/0", first, t);
  if (status != GL_OK) return status;
  return read_byte_level(r, "/pre_tokenizer/pretokenizers/1", second, t);
}

/* Only tokens added by a post-processor would matter; callers add special tokens themselves. */
static gl_status check_post_processor(const reader *r, const char *pointer, const cJSON *post) {
  static const char supported[] = "ByteLevel, TemplateProcessing, a Sequence of these, or null is";
  const char *type = type_of(post);
  if (strcmp(type, "ByteLevel") == 0 || strcmp(type, "TemplateProcessing") == 0) return GL_OK;
  const cJSON *list = cJSON_GetObjectItemCaseSensitive(post, "processors"), *member;
  if (strcmp(type, "Sequence") != 0 || !cJSON_IsArray(list))
    return fail_type(r, pointer, post, supported);
  size_t i = 0;
  cJSON_ArrayForEach(member, list) {
    char at[64];
    snprintf(at, sizeof at, "/post_processor/processors/%zu", i++);
    type = type_of(member);
    if (strcmp(type, "ByteLevel") != 0 && strcmp(type, "TemplateProcessing") != 0)
      return fail_type(r, at, member, supported);
  }
  return GL_OK;
}

typedef struct vocabulary {
  const reader *r;
  tokenizer *t;
  hash_table keys;   /* tokens by their text in the file */
  const char **text; /* [t->size] the text of each token in the file */
  size_t n, bytes;   /* number of tokens, in the vocabulary and added, and their bytes */
  char *end;         /* where the next content is written */
  const cJSON *vocab, *merges, *added;
  bool whole_first; /* ignore_merges: a piece that is a token is not merged */
} vocabulary;

/* --- byte letters --- */

/* Byte-level BPE writes each byte as one printable character: itself if Latin-1 prints it, and
 * U+0100 and following for the others in order (GPT-2's encoder). Returns -1 for other characters.
 */
static int byte_of_letter(uint32_t code) {
  if ((code > 32 && code < 127) || (code > 160 && code < 256 && code != 173)) return (int)code;
  if (code < 256 || code > 323) return -1;
  const int rest = (int)code - 256; /* 0 .. 32, 127 .. 160, 173 */
  return rest <= 32 ? rest : rest <= 66 ? rest - 33 + 127 : 173;
}

/* Writes the bytes that a token's letters encode and returns their number; 0 if a character is not
 * such a letter. */
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
static bool is_token_number(const cJSON *value, int32_t *number) {
  if (!cJSON_IsNumber(value)) return 0;
  const double x = value->valuedouble;
  if (!(x >= 0 && x < NUMBERS) || x != (double)(int32_t)x) return 0;
  *number = (int32_t)x;
  return 1;
}

static gl_status count_in_token(vocabulary *v, const char *content, int32_t number) {
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

static bool is_written(const void *texts, uint64_t token, const void *text) {
  return strcmp(((const char *const *)texts)[token], text) == 0;
}

/* The token with that text in the file, or -1. */
static int32_t find_written_text(const vocabulary *v, const char *text) {
  const uint64_t *token = hash_table_find(&v->keys, hash_64_text(HASH_64_START ^ v->t->seed, text),
                                          is_written, v->text, text);
  return token != NULL ? (int32_t)*token : -1;
}

/* False if another token has the same text in the file. */
static bool add_written_text(vocabulary *v, const char *text, int32_t token) {
  if (find_written_text(v, text) >= 0) return false;
  v->text[token] = text;
  return hash_table_add(&v->keys, hash_64_text(HASH_64_START ^ v->t->seed, text),
                        (uint64_t)token); /* space was reserved, so this cannot fail */
}

/* First pass over the vocabulary: determines the sizes. */
static gl_status count_vocabulary(vocabulary *v) {
  const cJSON *item;
  gl_status status = GL_OK;
  char quote[QUOTE_SIZE];
  if (!cJSON_IsObject(v->vocab) || v->vocab->child == NULL)
    return reader_fail(v->r, "/model/vocab: is no object of tokens");
  cJSON_ArrayForEach(item, v->vocab) {
    int32_t number;
    if (!is_token_number(item, &number))
      return reader_fail(v->r, "/model/vocab/%s: is no integer from 0 to %d",
                         reader_quote(item->string, quote), NUMBERS - 1);
    if ((status = count_in_token(v, item->string, number)) != GL_OK) return status;
  }
  return GL_OK;
}

/* Stores a token of the vocabulary. If its text is not byte letters, merges cannot produce it. */
static gl_status put_token(vocabulary *v, const cJSON *item, int32_t number) {
  token_entry *e = &v->t->entry[number];
  const size_t size = strlen(item->string);
  char quote[QUOTE_SIZE];
  if (e->flags & ENTRY_HERE)
    return reader_fail(v->r, "/model/vocab/%s: another token has number %d too",
                       reader_quote(item->string, quote), (int)number);
  if (!add_written_text(v, item->string, number))
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

/* Stores all tokens of the vocabulary, and checks that every byte has one. */
static gl_status put_vocabulary(vocabulary *v) {
  const cJSON *item;
  for (int b = 0; b < 256; ++b) v->t->byte_token[b] = -1;
  cJSON_ArrayForEach(item, v->vocab) {
    int32_t number = 0;
    is_token_number(item, &number);
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

/* The halves of a merge, written "left right" or ["left", "right"]. The space of the first form is
 * replaced by a NUL, because the document is read only once. */
static bool halves_of(const cJSON *merge, const char *half[2]) {
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

/* Stores a merge. Both halves and their concatenation must be tokens. */
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
    token[i] = find_written_text(v, half[i]);
    if (token[i] < 0)
      return reader_fail(v->r, "/model/merges/%u: its %s half \"%s\" is not in the vocabulary",
                         (unsigned)rank, i == 0 ? "left" : "right", reader_quote(half[i], quote));
    memcpy(joined + size, half[i], n + 1); /* a token has at most LONGEST_TOKEN bytes */
    size += n;
  }
  const int32_t merged = find_written_text(v, joined);
  if (merged < 0)
    return reader_fail(v->r, "/model/merges/%u: what it makes, \"%s\", is not in the vocabulary",
                       (unsigned)rank, reader_quote(joined, quote));
  tokenizer_set_merge(v->t, token[0], token[1], rank, merged);
  return GL_OK;
}

static gl_status put_merges(vocabulary *v) {
  const cJSON *merge;
  size_t n = 0;
  if (!cJSON_IsArray(v->merges)) return reader_fail(v->r, "/model/merges: is no list");
  cJSON_ArrayForEach(merge, v->merges)++ n;
  gl_status status = tokenizer_reserve_merges(v->t, n, v->r->err);
  uint32_t rank = 0;
  if (status == GL_OK) cJSON_ArrayForEach(merge, v->merges) {
      if ((status = put_merge(v, merge, rank++)) != GL_OK) break;
    }
  return status;
}

/* Adds to by_bytes every token that is the result of encoding its own bytes. */
static gl_status put_whole_tokens(vocabulary *v) {
  tokenizer *t = v->t;
  merge_work work = {0};
  token_list list = {0};
  gl_status status = tokenizer_reserve_bytes(t, v->n, v->r->err);
  for (size_t i = 0; i < t->size && status == GL_OK; ++i) {
    const token_entry *e = &t->entry[i];
    if (!(e->flags & ENTRY_BYTES)) continue;
    list.n = 0;
    if (!v->whole_first) status = merge_piece(t, &work, e->bytes, e->size, &list, v->r->err);
    if (v->whole_first || (list.n == 1 && list.at[0] == (int32_t)i))
      tokenizer_add_bytes(t, (int32_t)i);
  }
  merge_work_fini(&work);
  free(list.at);
  return status;
}

/* --- added tokens --- */

typedef struct added_token {
  const char *content;
  int32_t number;
  bool special, normalized;
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
  if (!is_token_number(field[ID].value, &out->number))
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
    if (status == GL_OK) status = count_in_token(v, a.content, a.number);
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

/* Adds the text to search for: the content, normalised if the text is. */
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

/* An added token has the number of the vocabulary's token with the same text, or a separate one. */
static gl_status put_added_token(vocabulary *v, size_t i, const added_token *a) {
  tokenizer *t = v->t;
  token_entry *e = &t->entry[a->number];
  const size_t size = strlen(a->content);
  const int32_t known = find_written_text(v, a->content);
  char quote[QUOTE_SIZE];
  if (known >= 0 && known != a->number)
    return reader_fail(v->r, "/added_tokens/%zu/id: \"%s\" is %d here and %d elsewhere in the file",
                       i, reader_quote(a->content, quote), (int)a->number, (int)known);
  if (e->flags & ENTRY_ADDED || (known < 0 && e->flags & ENTRY_HERE))
    return reader_fail(v->r, "/added_tokens/%zu/id: another token has number %d too", i,
                       (int)a->number);
  if (known < 0) add_written_text(v, a->content, a->number);
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

static bool is_empty(const cJSON *value) {
  const char *text = cJSON_GetStringValue(value);
  return reader_is_null(value) || (text != NULL && text[0] == '\0');
}

static bool is_off(const cJSON *value) {
  return reader_is_null(value) || cJSON_IsFalse(value) ||
         (cJSON_IsNumber(value) && !(value->valuedouble > 0 || value->valuedouble < 0));
}

static gl_status read_bpe_model(vocabulary *v, const cJSON *model) {
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

/* Reads `model` and `added_tokens` (may be NULL) into t: entries, added tokens, tables. After an
 * error t is incomplete; tokenizer_free() frees it. */
static gl_status reader_vocabulary(const reader *r, const cJSON *model, const cJSON *added,
                                   tokenizer *t) {
  vocabulary v = {.r = r, .t = t, .added = added};
  gl_status status = read_bpe_model(&v, model);
  if (status == GL_OK) status = count_vocabulary(&v);
  if (status == GL_OK) status = count_added(&v);
  if (status != GL_OK) return status;
  t->entry = calloc(t->size, sizeof *t->entry);
  t->content = v.end = malloc(v.bytes + 1);
  v.text = calloc(t->size, sizeof *v.text);
  if (t->entry == NULL || t->content == NULL || v.text == NULL || !hash_table_reserve(&v.keys, v.n))
    status = gl_fail_memory(r->err, "a vocabulary");
  if (status == GL_OK) status = put_vocabulary(&v);
  if (status == GL_OK) status = put_merges(&v);
  if (status == GL_OK) status = put_whole_tokens(&v);
  if (status == GL_OK) status = put_added(&v);
  hash_table_fini(&v.keys);
  free(v.text);
  return status;
}

/* --- the file --- */

static gl_status read_tokenizer_json(const reader *r, const cJSON *root, tokenizer *t) {
  enum { VERSION, TRUNCATION, PADDING, ADDED, NORMALIZER, PRE, POST, DECODER, MODEL, FIELDS };
  json_field field[FIELDS] = {[VERSION] = {"version", NULL},
                              [TRUNCATION] = {"truncation", NULL},
                              [PADDING] = {"padding", NULL},
                              [ADDED] = {"added_tokens", NULL},
                              [NORMALIZER] = {"normalizer", NULL},
                              [PRE] = {"pre_tokenizer", NULL},
                              [POST] = {"post_processor", NULL},
                              [DECODER] = {"decoder", NULL},
                              [MODEL] = {"model", NULL}};
  gl_status status = reader_fields(r, root, "", field, FIELDS);
  if (status != GL_OK) return status;
  for (int i = TRUNCATION; i <= PADDING; ++i)
    if (!reader_is_null(field[i].value))
      return reader_fail(r, "/%s: is not null; gepolab bounds lengths itself, set it to null",
                         field[i].name);
  if ((status = read_normalizer(r, field[NORMALIZER].value, t)) != GL_OK) return status;
  if ((status = read_pre_tokenizer(r, field[PRE].value, t)) != GL_OK) return status;
  if (!reader_is_null(field[POST].value) &&
      (status = check_post_processor(r, "/post_processor", field[POST].value)) != GL_OK)
    return status;
  if (strcmp(type_of(field[DECODER].value), "ByteLevel") != 0)
    return fail_type(r, "/decoder", field[DECODER].value, "ByteLevel is");
  return reader_vocabulary(r, field[MODEL].value, field[ADDED].value, t);
}

gl_status tokenizer_parse(tokenizer **out, const char *json, size_t size, const char *name,
                          gl_error *err) {
  const reader r = {name, err};
  cJSON *root;
  *out = NULL;
  if (size > LARGEST_FILE)
    return reader_fail(&r, "has more than %d MiB; it is no tokenizer.json", LARGEST_FILE >> 20);
  gl_status status = json_tree_read(&root, json, size, MOST_VALUES, name, err);
  if (status != GL_OK) return status;
  tokenizer *t = calloc(1, sizeof *t);
  if (t != NULL) {
    t->type = TOKENIZER_BPE;
    t->seed = hash_64(HASH_64_START, json, size);
    status = read_tokenizer_json(&r, root, t);
  } else
    status = gl_fail_memory(err, "a tokenizer");
  cJSON_Delete(root);
  if (status != GL_OK) {
    tokenizer_free(t);
    t = NULL;
  }
  *out = t;
  return status;
}

/* Reads the whole file, or slightly more than LARGEST_FILE bytes of a longer one; NULL if out of
 * memory. */
static char *read_bounded(FILE *f, size_t *size) {
  enum { PIECE = 1 << 20 };
  size_t room = 0, got = PIECE;
  char *text = NULL;
  for (*size = 0; got == PIECE && *size <= LARGEST_FILE; *size += got) {
    if (!ARRAY_RESERVE(text, room, *size + PIECE)) {
      free(text);
      return NULL;
    }
    got = fread(text + *size, 1, PIECE, f);
  }
  return text;
}

gl_status tokenizer_load(tokenizer **out, const char *path, gl_error *err) {
  size_t size;
  *out = NULL;
  FILE *f = fopen(path, "rb");
  if (f == NULL)
    return gl_fail(err, GL_EIO, "%.400s: cannot be read: %s; give the path of a tokenizer.json",
                   path, strerror(errno));
  char *text = read_bounded(f, &size);
  gl_status status;
  if (ferror(f))
    status = gl_fail(err, GL_EIO, "%.400s: cannot be read: %s; give the path of a tokenizer.json",
                     path, strerror(errno));
  else if (text == NULL)
    status = gl_fail_memory(err, "a tokenizer.json");
  else
    status = tokenizer_parse(out, text, size, path, err);
  fclose(f);
  free(text);
  return status;
}
