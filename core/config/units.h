/* Units of numbers in recipes: 10m, 1.5GiB, 100Mbit/s.
 *
 * A field with a unit (core/config/fields.h) takes plain numbers of that unit, and numbers followed
 * by any unit of its dimension, with or without a space. One table lists them, for `gepolab fields
 * --units` and for messages. A rate takes the units of its dimension followed by /s. Ambiguous
 * letters (a bare k or M: 1000 or 1024?) are in the table too, and are refused with the reason.
 */
#ifndef GEPOLAB_CORE_CONFIG_UNITS_H
#define GEPOLAB_CORE_CONFIG_UNITS_H

#include <stddef.h>
#include <stdint.h>

typedef struct unit {
  const char *name;      /* "ms" */
  const char *dimension; /* the unit that fields have: "s", "bytes", "bytes/s", "tokens", … */
  uint64_t factor; /* of a value in that unit: factor × 10^power; 0: the letters are refused */
  int power;
  const char *about; /* what it is, or why it is refused */
} unit;

/* The i-th entry of the table, or NULL past its end. Entries of one dimension are neighbours. */
const unit *units_at(size_t i);
/* The unit of that name for fields whose unit is `dimension`, or NULL. */
const unit *units_find(const char *name, const char *dimension);
/* A number with a unit of that dimension, for messages: "10m". */
const char *units_example(const char *dimension);

#endif
