/* Reads JSON Lines of prompts and answers. */
#include "llm/task/dataset.h"

#include "core/base/array.h"
#include "core/base/json_read.h"
#include "core/config/config.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- one line --- */

typedef struct line_reader {
  json_reader json;
  const char *key[2]; /* of prompt and answer */
} line_reader;

static const char *describe_json(char first) {
  switch (first) {
  case '{':
    return "an object";
  case '[':
    return "a list";
  case '"':
    return "text";
  case 't':
  case 'f':
    return "true or false";
  case 'n':
    return "null";
  case '\0':
    return "no JSON";
  default:
    return "a number";
  }
}

/* The keys of a line, for the complaint about one that is missing. */
enum { SHOWN_KEYS = 12, SHOWN_KEY_SIZE = 48 };
typedef struct seen_keys {
  char name[SHOWN_KEYS][SHOWN_KEY_SIZE];
  size_t n;
} seen_keys;

static gl_status fail_missing(line_reader *l, const char *key, const seen_keys *seen) {
  const char *names[SHOWN_KEYS];
  char all[SHOWN_KEYS * (SHOWN_KEY_SIZE + 2)] = "nothing", hint[CFG_HINT_SIZE];
  for (size_t i = 0, used = 0; i < seen->n; ++i) {
    names[i] = seen->name[i];
    used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i == 0 ? "" : ", ", names[i]);
  }
  json_fail_at(&l->json, 0, "key '%.64s' is missing%s; this object has: %s", key,
               cfg_hint(key, names, seen->n, hint), all);
  return l->json.status;
}

/* The value of a wanted key into *to, which must still be NULL. The key's quote is the first one
 * from byte `from` on. */
static void take_dataset_value(line_reader *l, size_t from, int which, char **to) {
  json_reader *r = &l->json;
  const char *key = l->key[which];
  if (*to != NULL) {
    const char *quote = memchr(r->text + from, '"', r->size - from);
    json_fail_at(r, quote == NULL ? from : (size_t)(quote - r->text), "key '%.64s' stands twice",
                 key);
    return;
  }
  char first = json_peek(r);
  size_t at = r->at;
  if (first == '"') {
    json_string(r);
    if (r->status == GL_OK) *to = strdup(r->word);
  } else if (which == 1 && (first == '-' || (first >= '0' && first <= '9'))) {
    json_skip(r); /* a number stays as it is written */
    if (r->status == GL_OK) *to = strndup(r->text + at, r->at - at);
  } else
    json_fail(r, "'%.64s' is %s; it must be text%s", key, describe_json(first),
              which == 1 ? " or a number" : "");
  if (r->status == GL_OK && *to == NULL) r->status = gl_fail_memory(r->err, "a text");
  if (r->status == GL_OK && (*to)[strspn(*to, " \t\r\n")] == '\0')
    json_fail_at(r, at, "'%.64s' is empty", key);
}

static gl_status read_dataset_object(line_reader *l, dataset_row *row) {
  json_reader *r = &l->json;
  seen_keys seen = {.n = 0};
  const char first = json_peek(r);
  if (first != '{') {
    json_fail(r, "a line must be an object with the keys '%.40s' and '%.40s'; this is %s",
              l->key[0], l->key[1], describe_json(first));
    return r->status;
  }
  json_enter(r, '{');
  for (size_t at = r->at; json_member(r); at = r->at) {
    const char *key = r->word;
    if (seen.n < SHOWN_KEYS) snprintf(seen.name[seen.n++], SHOWN_KEY_SIZE, "%.40s", key);
    if (strcmp(key, l->key[0]) == 0)
      take_dataset_value(l, at, 0, &row->prompt);
    else if (strcmp(key, l->key[1]) == 0)
      take_dataset_value(l, at, 1, &row->answer);
    else
      json_skip(r);
  }
  if (json_end(r) != GL_OK) return r->status;
  if (row->prompt == NULL) return fail_missing(l, l->key[0], &seen);
  return row->answer == NULL ? fail_missing(l, l->key[1], &seen) : GL_OK;
}

/* One line of text[size]. Nothing is left in *row on failure. */
static gl_status read_dataset_row(dataset_row *row, const char *text, size_t size, const char *name,
                                  const char *const key[2], gl_error *err) {
  line_reader l = {.key = {key[0], key[1]}};
  json_begin(&l.json, text, size, name, err);
  l.json.first_line = row->line;
  gl_status status = read_dataset_object(&l, row);
  json_end(&l.json);
  if (status == GL_OK) return GL_OK;
  free(row->prompt);
  free(row->answer);
  row->prompt = row->answer = NULL;
  return status;
}

/* --- all lines --- */

typedef struct line_buffer {
  char *data;
  size_t n, room;
} line_buffer;

/* The next line without its end; *any tells whether there was any. Stops as soon as the line is
 * too long, so no file makes it hold more than that. */
static gl_status read_dataset_line(line_buffer *b, FILE *from, bool *any, const char *name,
                                   size_t line, gl_error *err) {
  b->n = 0;
  *any = false;
  for (int c; (c = getc(from)) != EOF;) {
    *any = true;
    if (c == '\n') break;
    if (b->n == DATASET_MAX_LINE)
      return gl_fail(err, GL_EINPUT, "%.300s:%zu:1: the line is longer than %d MiB", name, line,
                     DATASET_MAX_LINE >> 20);
    if (!ARRAY_RESERVE(b->data, b->room, b->n + 1)) return gl_fail_memory(err, "a line");
    b->data[b->n++] = (char)c;
  }
  return GL_OK;
}

static bool is_blank_line(const char *text, size_t size) {
  for (size_t i = 0; i < size; ++i)
    if (text[i] == '\0' || strchr(" \t\r", text[i]) == NULL) return false;
  return true;
}

static gl_status read_dataset_rows(dataset *out, FILE *from, const char *name,
                                   const char *const key[2], gl_error *err) {
  line_buffer b = {0};
  gl_status status = GL_OK;
  bool any = true;
  for (size_t line = 1; status == GL_OK; ++line) {
    status = read_dataset_line(&b, from, &any, name, line, err);
    if (status != GL_OK || !any) break;
    size_t mark = line == 1 && b.n >= 3 && memcmp(b.data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    if (b.n == 0 || is_blank_line(b.data + mark, b.n - mark)) continue;
    dataset_row *row = ARRAY_ADD(out->row, out->n);
    if (row == NULL) {
      status = gl_fail_memory(err, "a data set");
      break;
    }
    row->line = line;
    status = read_dataset_row(row, b.data + mark, b.n - mark, name, key, err);
  }
  free(b.data);
  if (status == GL_OK && ferror(from))
    status = gl_fail(err, GL_EIO, "reading %.400s failed: %s", name, strerror(errno));
  if (status == GL_OK && out->n == 0)
    status =
        gl_fail(err, GL_EINPUT, "%.300s:1:1: the file is empty; it needs one object a line", name);
  if (status != GL_OK) dataset_fini(out);
  return status;
}

gl_status dataset_read(dataset *out, const char *path, const char *prompt_key,
                       const char *answer_key, gl_error *err) {
  *out = (dataset){0};
  FILE *from = fopen(path, "rb");
  if (from == NULL) return gl_fail(err, GL_EINPUT, "cannot read %.400s: %s", path, strerror(errno));
  gl_status status =
      read_dataset_rows(out, from, path, (const char *const[]){prompt_key, answer_key}, err);
  fclose(from);
  return status;
}

gl_status dataset_parse(dataset *out, const char *text, size_t size, const char *name,
                        const char *prompt_key, const char *answer_key, gl_error *err) {
  *out = (dataset){0};
  if (size == 0) text = "\n", size = 1; /* a stream over no bytes cannot be opened everywhere */
  FILE *from = fmemopen((void *)(uintptr_t)text, size, "rb");
  if (from == NULL) return gl_fail_memory(err, "a stream over a text");
  gl_status status =
      read_dataset_rows(out, from, name, (const char *const[]){prompt_key, answer_key}, err);
  fclose(from);
  return status;
}

void dataset_fini(dataset *d) {
  for (size_t i = 0; i < d->n; ++i) {
    free(d->row[i].prompt);
    free(d->row[i].answer);
  }
  free(d->row);
  *d = (dataset){0};
}
