/* A fast reader for lines of JSON that hold long lists of numbers. It finds the fields of an object
 * and reads those that are wanted; strings and lists of other fields are skipped, not checked.
 *
 * Numbers are the nearest doubles, as strtod() gives. NaN, Infinity and null, which Python's json
 * writes for numbers that are not finite, are NaN. The first error is kept and ends all loops. */
#ifndef GEPOLAB_EXPERIMENTS_TOKENS_SCAN_H
#define GEPOLAB_EXPERIMENTS_TOKENS_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A substring of the line; text NULL: the field is absent. */
typedef struct scan_piece {
  const char *text;
  size_t size;
} scan_piece;

typedef struct scan {
  const char *start, *at, *end; /* *end is NUL */
  const char *why;              /* what is wrong at `at`; NULL: nothing */
} scan;

/* text[size] is NUL. Borrowed. */
void scan_begin(scan *s, const char *text, size_t size);
/* Enters the object at the start of the line. */
void scan_enter(scan *s);
/* Reads the next member: its key without quotes, and the text of its value. Returns false after the
 * last one, with an error if the line does not end there, and after an error. */
bool scan_member(scan *s, scan_piece *key, scan_piece *value);
/* Whether the line ends within its object, like the last line of a log whose program was killed. */
bool scan_is_cut(const char *text, size_t size);
/* Column of a byte of the line, from 1, in characters. */
size_t scan_column(const char *line, const char *at);

/* --- values: the piece must be followed by a NUL or by the rest of the line --- */
/* Each of the readers returns NULL, or the address of the first character that does not fit the
 * type. */

const char *scan_number(scan_piece v, double *out);
/* Reads a whole number from 0 to 2^53. */
const char *scan_integer(scan_piece v, uint64_t *out);
/* Removes the brackets of a list of one element, [x]; false: it is no such list. */
bool scan_unwrap(scan_piece *v);
/* Reads a list of numbers 0 and 1 (or true and false): its length to *n, the first `room` values to
 * mask[room]. */
const char *scan_mask(scan_piece v, unsigned char *mask, size_t room, size_t *n);
/* Reads a list of n numbers: writes those with mask[i] = 1 to out, one after the other. The other
 * elements may be anything without comma, bracket or quote. *n_seen is the length of the list, at
 * most n + 1. */
const char *scan_masked(scan_piece v, const unsigned char *mask, size_t n, double *out,
                        size_t *n_seen);
/* Whether all elements of a list have the same text, such as the advantages of a response. *value:
 * that number (NaN for null). */
bool scan_constant(scan_piece v, double *value);
/* Finds the text of the first n elements of a list; false if it is no list of scalars or is
 * shorter. */
bool scan_head(scan_piece v, size_t n, scan_piece *head);
/* Takes the next element of a list of lists or scalars. *v: first the whole list, then the rest of
 * it. Returns false at the end, or if the text is no such list. */
bool scan_element(scan_piece *v, scan_piece *element);

#endif
