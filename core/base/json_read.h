/* The one reader of JSON. It reads a text whose shape is known one value after another without
 * building a tree, so that a large header of a file from a stranger costs no memory;
 * core/base/json_tree.h builds a tree with it where that is easier. Strict (RFC 8259): no comments,
 * no trailing commas, valid UTF-8, nothing after the end; besides, no NUL in a string.
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
 * afterwards every function does nothing and returns 0, so that loops end. Prefix: json_. */
#ifndef GEPOLAB_CORE_BASE_JSON_READ_H
#define GEPOLAB_CORE_BASE_JSON_READ_H

#include "core/base/error.h"

#include <stddef.h>
#include <stdint.h>

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
/* Complains about what follows the whole value, releases the reader and tells how it went. */
gl_status json_end(json_reader *r);
/* GL_EINPUT at the reader's place. */
void json_fail(json_reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* GL_EINPUT at a byte of the text. */
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

#endif
