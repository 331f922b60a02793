/* Tables for the terminal, Markdown and LaTeX, filled cell by cell in reading order. A failed
 * allocation is remembered and reported by table_write(). */
#ifndef GEPOLAB_ANALYSIS_TABLES_H
#define GEPOLAB_ANALYSIS_TABLES_H

#include "analysis/statistics.h"
#include "core/base/error.h"

#include <stddef.h>
#include <stdio.h>

typedef enum table_format { TABLE_TEXT, TABLE_MARKDOWN, TABLE_LATEX } table_format;
enum { TABLE_FORMATS = TABLE_LATEX + 1 };
/* "text", "markdown", "latex". */
extern const char *const table_format_names[TABLE_FORMATS];
typedef struct table table;

/* heads[n] are copied. NULL if memory is short. */
table *table_new(const char *const *heads, size_t n);
void table_free(table *t);
/* The next cell, printf-style. */
void table_cell(table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The next cell as value to four significant digits; an en dash for NaN. */
void table_number(table *t, double value);
/* The next cell as an estimate with its interval, "0.61 [0.52, 0.7]", to four significant digits;
 * without one where there is none, and an en dash for NaN. */
void table_interval(table *t, interval v);
/* A line of text over the table, printf-style; before table_write(). LaTeX then gets a floating
 * table with it as caption, the others a line. */
void table_caption(table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* First column left, the others right, measured in columns of a terminal. Captions and cells may
 * be any text: control characters are shown as core/base/shown.h does, and what Markdown, HTML or
 * LaTeX would obey is escaped. LaTeX is a booktabs tabular. GL_EIO if writing fails. */
gl_status table_write(const table *t, table_format format, FILE *to, gl_error *err);

#endif
