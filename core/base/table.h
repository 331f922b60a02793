/* Typed tables of results, and one writer per format: text, Markdown, LaTeX, HTML, CSV, TSV and
 * JSON.
 *
 *   static const table_column columns[] = {{"run", TABLE_TEXT, .head = "run"},
 *                                          {"score", TABLE_INTERVAL, .head = "best score"},
 *                                          {"seed", TABLE_INTEGER}};
 *   table *t = table_new(columns, 3);
 *   for (each run) {
 *     table_row(t);
 *     table_text(t, name), table_interval(t, iqm, low, high), table_integer(t, seed);
 *   }
 *   status = table_write(t, TABLE_AS_TEXT, stdout, err);
 *   table_free(t);
 *
 * A column has a name in formats for programs (JSON, CSV, TSV), a head in formats for people
 * (text, Markdown, LaTeX, HTML), or both. Cells are filled in the order of the columns. A document
 * is a table with one row whose columns are added one by one: in JSON it is an object; formats for
 * people show its tables and lines one below the other.
 *
 * Missing is not NaN: a missing cell has no key in JSON, NaN is null there; both are empty in CSV
 * and an en dash for people. A failed allocation is remembered: all functions then do nothing,
 * also if the table is NULL, and table_write() returns GL_ENOMEM. Texts are copied. */
#ifndef GEPOLAB_CORE_BASE_TABLE_H
#define GEPOLAB_CORE_BASE_TABLE_H

#include "core/base/error.h"
#include "core/base/records.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Format of scores and their intervals: three decimals below 100, the precision that a few seeds
 * allow. */
#define TABLE_SCORE "%.3f|%.4g"

typedef enum table_format {
  TABLE_AS_TEXT,
  TABLE_AS_MARKDOWN,
  TABLE_AS_LATEX,
  TABLE_COMMAND_FORMATS, /* number of formats that a command's --format accepts */
  TABLE_AS_HTML = TABLE_COMMAND_FORMATS,
  TABLE_AS_CSV,
  TABLE_AS_TSV,
  TABLE_AS_JSON,
  TABLE_FORMATS
} table_format;
/* "text", "markdown", "latex", "html", "csv", "tsv", "json". */
extern const char *const table_format_names[TABLE_FORMATS];

typedef struct table table;

/* --- construction --- */

/* Returns NULL if out of memory. columns[n] is copied. */
table *table_new(const table_column *columns, size_t n);
table *table_document(void);
/* Frees t, which must be NULL or a table of table_new() or table_document(), with all tables within
 * it. */
void table_free(table *t);
/* Sets a title, printf-style. In LaTeX the table then becomes a floating table with this caption.
 */
void table_title(table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Makes a table without rules and grid in text format: every cell is padded to its column's width
 * and separated by a space. Lines begin with `indent` spaces; no heads if all are "". */
void table_plain(table *t, int indent);
/* Adds an empty line after the table. */
void table_gap(table *t);
/* Adds a column, before the first row; its head is formatted printf-style. */
void table_add_column(table *t, table_column column, const char *head, ...)
    __attribute__((format(printf, 3, 4)));
/* Removes the head of a column, so that only programs see it. */
void table_hide_head(table *t, size_t column);

/* --- filling --- */

/* Starts a row. Unfilled cells of the previous row are missing. */
void table_row(table *t);
/* Hides the current row in formats for people. */
void table_hide_row(table *t);
/* Adds the next column of a document; name NULL: only for people. Returns t. */
table *table_field(table *t, const char *name);
/* Adds columns of a document, only for programs, printf-style: table_put(t, "name %s, steps %zu,
 * loss %g, complete %i", …): %s text (NULL: null), %zu, %llu and %d whole numbers, %g reals, %i yes
 * or no. */
__attribute__((format(printf, 2, 3))) void table_put(table *t, const char *format, ...);
/* Fill the next cell. A NULL text is missing, and so is table_missing() for any column. */
void table_text(table *t, const char *text);
void table_textf(table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void table_integer(table *t, int64_t value);
void table_count(table *t, size_t n);
void table_real(table *t, double value);
void table_flag(table *t, bool value);
void table_interval(table *t, double value, double low, double high);
void table_numbers(table *t, const double *value, size_t n);
/* Takes ownership of the tree; NULL: out of memory. */
void table_json(table *t, cJSON *tree);
void table_missing(table *t);
/* Makes the next cell a table of its own and returns it: a list of objects in JSON. */
table *table_rows(table *t, const table_column *columns, size_t n);
/* The same with one row, whose columns are added with table_field(): an object in JSON. */
table *table_object(table *t);
/* The same for a JSON list; all names are "". */
table *table_list(table *t);
/* Sets the position, in formats for people, of the document column added last. */
void table_order(table *t, int order);
/* Sets the text that people see in the previous cell instead of its value. */
void table_shown(table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Makes the previous cell bold in formats for people. */
void table_bold(table *t);
/* Adds text after the previous cell in formats for people; it ends the row of a plain table. */
void table_rest(table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds a line (or an empty one) between the tables of a document, for people. Returns t. */
table *table_line(table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* --- writing --- */

/* Writes the table. Control characters in texts are escaped as in core/base/display_text.h, and
 * Markdown, HTML or LaTeX markup is escaped. Text format: first column left-aligned, the others
 * right-aligned, measured in terminal columns; columns beyond 80 follow in blocks that begin with
 * the first. LaTeX is a booktabs tabular. HTML is also well-formed XML. JSON is an array of
 * objects, or an object for a document. Errors: GL_ENOMEM, GL_EIO. */
gl_status table_write(const table *t, table_format form, FILE *to, gl_error *err);
/* Returns the JSON tree, to be freed with cJSON_Delete(); NULL if out of memory. */
cJSON *table_to_json(const table *t);

#endif
