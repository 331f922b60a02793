/* Numbers that a paper prints, held against the series they are said to come from.
 *
 * A table (CSV, TSV or JSON Lines) with the columns run, best and last, and benchmark where there
 * are several; best and last as they are printed: "0.752", or "75.2" in per cent. A printed number
 * agrees with a value that rounds to it.
 */
#ifndef GEPOLAB_ANALYSIS_IMPORT_PUBLISHED_H
#define GEPOLAB_ANALYSIS_IMPORT_PUBLISHED_H

#include "analysis/import/sheet.h"

typedef struct published_number {
  char *text;     /* as it is printed; NULL: none */
  double value;   /* in the scale of the series; NaN: none */
  double half;    /* half a unit of its last digit, in that scale */
  int is_percent; /* 1: printed in per cent, whatever the series' scale */
} published_number;

typedef struct published_row {
  char *run, *benchmark; /* benchmark: "" if none */
  published_number best, last;
} published_row;

typedef struct published {
  published_row *row;
  size_t n;
} published;

/* Release with published_fini() in any case. GL_EIO, GL_EINPUT with the place and the remedy. */
gl_status published_read(published *out, const char *path, gl_error *err);
void published_fini(published *p);

/* Whether the value rounds to the printed number; in per cent where the series' values are
 * fractions (largest at most 1) and the number is not. */
int published_agrees(const published_number *printed, double value, double largest);

#endif
