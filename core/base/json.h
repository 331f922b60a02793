/* JSON: writing numbers and texts, a strict reader, and trees of cJSON items. Prefix: json_,
 * except for number_text(). */
#ifndef GEPOLAB_CORE_BASE_JSON_H
#define GEPOLAB_CORE_BASE_JSON_H

#include "core/base/error.h"

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* --- writing --- */
/* Numbers have the shortest decimal form that reads back to the same double, as in CSV. NaN and
 * infinities, which JSON lacks, become null. */

enum { NUMBER_TEXT_SIZE = 40 };
/* Writes the shortest form that reads back exactly ("0.1", "1e-05", "3") to text and returns it;
 * "nan", "inf" and "-inf" for other values. */
char *number_text(double value, char text[NUMBER_TEXT_SIZE]);

/* Adds a number (shortest form, or null) to an object, or to an array if key is NULL. Returns the
 * item, or NULL if out of memory. */
cJSON *json_add_number(cJSON *to, const char *key, double value);
cJSON *json_add_numbers(cJSON *to, const char *key, const double *values, size_t n);
/* Appends a new object to an array; NULL if out of memory. */
cJSON *json_append_object(cJSON *array);
/* Writes printed JSON; bytes of its texts that are not UTF-8 are
 * escaped as in display_text.h, "\\xff". */
void json_write(const char *printed, FILE *to);
cJSON *json_add_string(cJSON *to, const char *key, const char *value);

enum { JSON_KEY_SIZE = 64 };
/* Reads the next "KEY %CONVERSION" of a format such as "name %s, steps %zu" (table_put()): advances
 * *format, copies the key ("" if there is none) and returns the first letter of the conversion, one
 * of s, z, l, d, g and i; 0 at the end. */
char json_next_member(const char **format, char key[JSON_KEY_SIZE]);

/* --- reading --- */
/* The JSON reader. It reads a text of known structure one value after another without building a
 * tree, so that a large header of an untrusted file costs no memory. json_tree_read() uses it to
 * build a tree. Strict (RFC 8259): no comments, no trailing commas, valid UTF-8, nothing after the
 * end; in addition no NUL in strings.
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
 * The error is sticky (GL_EINPUT, "NAME:LINE:COLUMN: what", columns count characters): after the
 * first failure every function does nothing and returns 0, so that loops end. */

enum { JSON_MAX_DEPTH = 64 };

typedef struct json_reader {
  const char *text, *name; /* borrowed */
  size_t size, at;
  size_t first_line;  /* line number of the text's first line; 1 unless the caller sets another */
  size_t depth;       /* number of open containers */
  int first;          /* no element of the innermost container has been read yet */
  int python_numbers; /* set by the caller: NaN, Infinity and -Infinity, which Python's json.dumps
                         writes, are numbers too */
  char *word;         /* the last string or key read, decoded; valid until the next */
  size_t word_size, word_room;
  gl_error *err;
  gl_status status;
} json_reader;

/* name, for messages, and err must outlive the reader. */
void json_begin(json_reader *r, const char *text, size_t size, const char *name, gl_error *err);
/* Fails if anything follows the value; releases the reader and returns its status. */
gl_status json_end(json_reader *r);
/* Fails with GL_EINPUT at the reader's position. */
void json_fail(json_reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Fails with GL_EINPUT at a byte of the text. */
void json_fail_at(json_reader *r, size_t byte, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Enters an object '{' or an array '['. */
void json_enter(json_reader *r, char open);
/* Returns 1 with the key in r->word if the object has another member, whose value must be read
 * next; at its end leaves the object and returns 0. */
int json_member(json_reader *r);
/* Returns 1 if the array has another element, which must be read next; at its end leaves the array
 * and returns 0. */
int json_element(json_reader *r);

/* Returns the first character of the next value, one of {["tfn-0123456789, or 0 if there is none.
 * For NaN and Infinity returns a digit if python_numbers is set. */
char json_peek(json_reader *r);
/* Reads a string into r->word. */
void json_string(json_reader *r);
/* Reads a whole number without sign, fraction or exponent, at most SIZE_MAX. */
size_t json_unsigned(json_reader *r);
double json_real(json_reader *r);
int json_truth(json_reader *r);
/* Consumes null. */
void json_null(json_reader *r);
/* Consumes any value, checking its grammar. */
void json_skip(json_reader *r);

/* --- trees --- */
/* Trees are built with the strict reader above, because cJSON's own parser accepts invalid JSON,
 * truncates strings at a NUL, and does not report where it stopped. */

/* Reads all of text[size], which need not end with a NUL. name is used in messages. Members keep
 * their order, and repeated keys are preserved. The caller frees *out with cJSON_Delete(); NULL on
 * failure. Errors: GL_ENOMEM, GL_EINPUT with name, line and column, also for more than most_values
 * values (about 64 bytes each; 0: no limit) or more than JSON_MAX_DEPTH levels. */
gl_status json_tree_read(cJSON **out, const char *text, size_t size, size_t most_values,
                         const char *name, gl_error *err);

/* Parses a NUL-terminated text that this program wrote. Returns NULL if it is invalid, NULL, or out
 * of memory; use json_tree_read() to learn the reason, and for untrusted text. The caller frees the
 * tree with cJSON_Delete(). */
cJSON *json_tree_of(const char *text);

#endif
