/* Numbers from one column of a CSV file: measured delays, a measured trace. Prefix: series_. */
#ifndef GEPOLAB_SIM_SERIES_H
#define GEPOLAB_SIM_SERIES_H

#include "core/base/error.h"
#include "core/config/config.h"

#include <stddef.h>

/* Reads the named column, or the first where column is NULL, of a CSV with or without a heading
 * line; quotes around fields are dropped, empty cells skipped. *out is malloc'd and never empty.
 * GL_EINPUT names the file and the line. */
gl_status series_read(double **out, size_t *n, const char *path, const char *column, gl_error *err);
void series_sort(double *values, size_t n);
/* Largest distance between the empirical distribution functions of two sorted samples. */
double series_ks(const double *a, size_t n_a, const double *b, size_t n_b);

#endif
