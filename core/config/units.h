/* Units of numbers in recipes: 10m, 1.5GiB, 100Mbit/s.
 *
 * A field with a unit (core/config/fields.h) accepts plain numbers in that unit, and numbers
 * followed by any unit of its dimension, with or without a space. One table lists the units, for
 * `gepolab list fields --units` and for messages. Rates accept the units of their dimension
 * followed by /s. Ambiguous letters (a bare k or M: 1000 or 1024?) are in the table too, and are
 * refused with the reason. */
#ifndef GEPOLAB_CORE_CONFIG_UNITS_H
#define GEPOLAB_CORE_CONFIG_UNITS_H

#include <stddef.h>
#include <stdint.h>

typedef struct unit {
  const char *name;      /* "ms" */
  const char *dimension; /* the unit that fields have: "s", "bytes", "bytes/s", "tokens", … */
  uint64_t factor;       /* factor × 10^power converts to that unit; 0: the letters are refused */
  int power;
  const char *about; /* description, or why it is refused */
} unit;

/* The i-th entry of the table, or NULL past its end. Entries of one dimension are adjacent. */
const unit *units_at(size_t i);
/* The unit of that name for fields whose unit is `dimension`, or NULL. */
const unit *units_find(const char *name, const char *dimension);
/* An example of a number with a unit of that dimension, for messages: "10m". */
const char *units_example(const char *dimension);

#endif
