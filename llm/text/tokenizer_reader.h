/* What the two files that read a tokenizer.json share. */
#ifndef GEPOLAB_LLM_TEXT_TOKENIZER_READER_H
#define GEPOLAB_LLM_TEXT_TOKENIZER_READER_H

#include "llm/text/tokenizer_internal.h"

#include <cjson/cJSON.h>

typedef struct reader {
  const char *name; /* of the file, for messages */
  gl_error *err;
} reader;

/* GL_EINPUT: "NAME: /pointer: what is wrong; remedy", the latter two from the format. */
gl_status reader_fail(const reader *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

enum { QUOTE_SIZE = 64 };
/* The start of a string from the file as a message can show it: control characters become '?', a
 * long one ends in dots. Returns text. */
const char *reader_quote(const char *string, char text[QUOTE_SIZE]);

typedef struct json_field {
  const char *name;
  const cJSON *value; /* NULL: absent */
} json_field;

/* Fills in the values of the fields of an object. Anything but an object, a field without a place
 * and one named twice are errors. */
gl_status reader_fields(const reader *r, const cJSON *object, const char *pointer,
                        json_field *field, size_t n);
/* Absent or null. */
int reader_is_null(const cJSON *value);

/* Reads `model` and `added_tokens` (may be NULL) into t: entries, added tokens, tables. seed is of
 * the tables. On failure t is as far as it came; tokenizer_free() releases it. */
gl_status reader_vocabulary(const reader *r, const cJSON *model, const cJSON *added, uint64_t seed,
                            tokenizer *t);

#endif
