/* Tokens of one response in a caller's array, in loops that run over several at once. */
#ifndef GEPOLAB_LIBRARY_ROWS_H
#define GEPOLAB_LIBRARY_ROWS_H

#include "library/gepolab.h"

#include <stddef.h>
#include <stdint.h>

/* n elements of an array, `stride` elements apart, from number `first` on. */
typedef struct row {
  void *data;
  gepolab_type type; /* GEPOLAB_FLOAT32 or GEPOLAB_FLOAT64 */
  int64_t first, stride;
  size_t n;
} row;

/* Copies the row into to[n], in double precision; returns whether row_is_within(to, n, most). */
int row_read(const row *from, double most, double *to);
/* Copies value[n] into the row, rounded to its type. */
void row_write(const row *to, const double *value);
/* Sets the row's elements to a value, rounded to their type. */
void row_fill(const row *to, double value);
/* Whether all numbers of value[n] are finite and not above `most`. */
int row_is_within(const double *value, size_t n, double most);

/* Whether all of value[n] are finite, and stay so in an array of the type (GEPOLAB_NONE: in double
 * precision). */
int row_fits(const double *value, size_t n, gepolab_type type);

/* How many of n bytes, `stride` apart, are not 0, and where the first one and the end of the last
 * one are; 0 and 0 where there is none. */
size_t row_marked(const uint8_t *mask, int64_t stride, size_t n, size_t *first, size_t *end);

#endif
