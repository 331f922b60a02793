/* JSON: a writer of numbers and texts, a strict reader, and trees of cJSON items. Prefix: json_. */
#ifndef GEPOLAB_CORE_BASE_JSON_H
#define GEPOLAB_CORE_BASE_JSON_H

#include "core/base/error.h"

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

/* --- writing --- */
/* Numbers have the shortest decimal form that reads back to the same double, as in CSV; NaN and
 * infinities, which JSON does not have, become null. */

enum { NUMBER_TEXT_SIZE = 32 };
/* Writes the shortest round-trip form ("0.1", "1e-05", "3") into text and returns it. "nan", "inf"
 * and "-inf" for the rest. */
char *number_text(double value, char text[NUMBER_TEXT_SIZE]);

/* Adds a number (raw shortest form, or null) to an object or an array (key NULL). Returns the item
 * or NULL if memory is short. */
cJSON *json_add_number(cJSON *to, const char *key, double value);
cJSON *json_add_numbers(cJSON *to, const char *key, const double *values, size_t n);
/* A new object at the end of an array, or NULL if memory is short. */
cJSON *json_append_object(cJSON *array);
cJSON *json_add_string(cJSON *to, const char *key, const char *value);

/* --- reading --- */
/* The one reader of JSON. It reads a text whose shape is known one value after another without
 * building a tree, so that a large header of an untrusted file costs no memory; json_tree_read()
 * builds a tree with it where that is easier. Strict (RFC 8259): no comments, no trailing commas,
 * valid UTF-8, nothing after the end; besides, no NUL in a string.
 *
 *   json_reader r;
 *   json_begin(&r, text, size, "config.json", err);
 *   json_enter(&r, '{');
 *   while (json_member(&r)) {              // r.word: the key
 *     if (strcmp(r.word, "n") == 0) n = json_unsigned(&r);
 *     else json_skip(&r);
 *   }
 *   if (json_end(&r) != GL_OK) return err->status;
 *
 * The first failure is kept (GL_EINPUT, "NAME:LINE:COLUMN: what", the column in characters);
 * afterwards every function does nothing and returns 0, so that loops end. */

enum { JSON_MAX_DEPTH = 64 };

typedef struct json_reader {
  const char *text, *name; /* borrowed */
  size_t size, at;
  size_t first_line; /* the number of the text's first line; 1 unless the caller sets another */
  size_t depth;      /* containers that are open */
  int first;         /* the container entered last has had no element yet */
  char *word;        /* the string or key read last, decoded; valid until the next */
  size_t word_size, word_room;
  gl_error *err;
  gl_status status;
} json_reader;

/* name, for messages, and err must outlive the reader. */
void json_begin(json_reader *r, const char *text, size_t size, const char *name, gl_error *err);
/* Fails if anything follows the whole value; releases the reader and returns its status. */
gl_status json_end(json_reader *r);
/* Fails with GL_EINPUT at the reader's place. */
void json_fail(json_reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Fails with GL_EINPUT at a byte of the text. */
void json_fail_at(json_reader *r, size_t byte, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Enters an object '{' or an array '['. */
void json_enter(json_reader *r, char open);
/* 1 and the key in r->word if the object has another member, whose value must be read next; 0 at
 * its end, which is left. */
int json_member(json_reader *r);
/* 1 if the array has another element, which must be read next; 0 at its end, which is left. */
int json_element(json_reader *r);

/* The first character of the value that follows: one of {["tfn-0123456789, or 0. */
char json_peek(json_reader *r);
/* The string in r->word. */
void json_string(json_reader *r);
/* A whole number without sign, fraction or exponent, at most SIZE_MAX. */
size_t json_unsigned(json_reader *r);
double json_real(json_reader *r);
int json_truth(json_reader *r);
/* Consumes null. */
void json_null(json_reader *r);
/* Consumes any value, checking its grammar. */
void json_skip(json_reader *r);

/* --- trees --- */
/* Trees are built by the strict reader above: cJSON's own parser accepts texts that are not JSON,
 * cuts strings at a NUL, and does not say where it stopped. */

/* Reads the whole of text[size], which needs no NUL at its end. name stands for it in messages.
 * Members keep their order, and a repeated key stays repeated. GL_EINPUT with name,
 * line and column, also for more than most_values values (an item takes some 64 bytes; 0: no limit)
 * and for more than JSON_MAX_DEPTH levels. The caller releases *out with cJSON_Delete(); on failure
 * it is NULL. */
gl_status json_tree_read(cJSON **out, const char *text, size_t size, size_t most_values,
                         const char *name, gl_error *err);

/* The tree of a text that this program wrote, ended by a NUL; NULL where it is no JSON, NULL, or
 * memory is short. To learn which, or for a text from elsewhere, call json_tree_read(). The caller
 * releases it with cJSON_Delete(). */
cJSON *json_tree_of(const char *text);

#endif
