/* Reads a tokenizer.json: the whole file here, vocabulary and merges in tokenizer_vocabulary.c. */
#include "core/base/hash.h"
#include "core/base/json_tree.h"
#include "core/base/utf8.h"
#include "llm/text/tokenizer_reader.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST_FILE = 256 << 20, MOST_VALUES = 8 << 20 };

/* --- messages and fields --- */

gl_status reader_fail(const reader *r, const char *format, ...) {
  char text[800];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return gl_fail(r->err, GL_EINPUT, "%.200s: %s", r->name, text);
}

const char *reader_quote(const char *string, char text[QUOTE_SIZE]) {
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

gl_status reader_fields(const reader *r, const cJSON *object, const char *pointer,
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

int reader_is_null(const cJSON *value) {
  return value == NULL || cJSON_IsNull(value);
}

static int is_false(const cJSON *value) {
  return value == NULL || cJSON_IsFalse(value);
}

/* The "type" of a component, or "" where it has none. */
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
    t->nfc = 1;
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
    t->nfc = 1;
  }
  return GL_OK;
}

static gl_status set_rule(const reader *r, const char *pointer, const char *pattern, tokenizer *t) {
  gl_error why = {0};
  gl_status status = split_rule_init(&t->rule, pattern, &why);
  if (status == GL_OK) t->splits = 1;
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

/* The pre-tokenizer that makes bytes of characters. It has a splitting rule of its own, GPT-2's,
 * unless use_regex says no. */
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

/* Only what a post-processor adds would matter, and special tokens are the caller's to add. */
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

/* --- the file --- */

static gl_status read_root(const reader *r, const cJSON *root, uint64_t seed, tokenizer *t) {
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
  return reader_vocabulary(r, field[MODEL].value, field[ADDED].value, seed, t);
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
    status = read_root(&r, root, hash_64(HASH_64_START, json, size), t);
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

/* The whole file, or more than LARGEST_FILE bytes of one that is longer; NULL if memory is short.
 */
static char *read_file(FILE *f, size_t *size) {
  size_t room = 1 << 20, n = 0;
  char *text = malloc(room);
  while (text != NULL) {
    n += fread(text + n, 1, room - n, f);
    if (n < room || n > LARGEST_FILE) break;
    room *= 2;
    char *more = realloc(text, room);
    if (more == NULL) free(text);
    text = more;
  }
  *size = n;
  return text;
}

gl_status tokenizer_load(tokenizer **out, const char *path, gl_error *err) {
  size_t size;
  *out = NULL;
  FILE *f = fopen(path, "rb");
  if (f == NULL)
    return gl_fail(err, GL_EIO, "%.400s: cannot be read: %s; give the path of a tokenizer.json",
                   path, strerror(errno));
  char *text = read_file(f, &size);
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
