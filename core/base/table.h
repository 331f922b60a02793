/* Results as typed tables, and one writer for each form: text, Markdown, LaTeX, HTML, CSV, TSV and
 * JSON.
 *
 *   static const table_column columns[] = {{"run", TABLE_TEXT, .head = "run"},
 *                                          {"score", TABLE_INTERVAL, .head = "best score"},
 *                                          {"seed", TABLE_WHOLE}};
 *   table *t = table_new(columns, 3);
 *   for (each run) {
 *     table_row(t);
 *     table_text(t, name), table_interval(t, iqm, low, high), table_whole(t, seed);
 *   }
 *   status = table_write(t, TABLE_AS_TEXT, stdout, err);
 *   table_free(t);
 *
 * A column has a name for programs (JSON, CSV, TSV), a head for people (text, Markdown, LaTeX,
 * HTML), or both. Cells are filled in the order of the columns. A document is a table with one row
 * whose columns are added one by one: in JSON it is an object; people see its tables and lines one
 * below the other.
 *
 * Missing is not NaN: a missing cell has no key in JSON, NaN is null there; both are empty in CSV
 * and an en dash for people. A failed allocation is remembered: all functions then do nothing, also
 * with a table that is NULL, and table_write() returns GL_ENOMEM. Texts are copied. */
#ifndef GEPOLAB_CORE_BASE_TABLE_H
#define GEPOLAB_CORE_BASE_TABLE_H

#include "core/base/error.h"
#include "core/base/records.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* An estimate with the ends of its interval, three decimals below 100: the precision of a few
 * seeds. */
#define TABLE_SCORE "%.3f|%.4g"

typedef enum table_form {
  TABLE_AS_TEXT,
  TABLE_AS_MARKDOWN,
  TABLE_AS_LATEX,
  TABLE_FOR_PEOPLE, /* how many forms a command's --format names */
  TABLE_AS_HTML = TABLE_FOR_PEOPLE,
  TABLE_AS_CSV,
  TABLE_AS_TSV,
  TABLE_AS_JSON,
  TABLE_FORMS
} table_form;
/* "text", "markdown", "latex", "html", "csv", "tsv", "json". */
extern const char *const table_form_names[TABLE_FORMS];

typedef struct table table;

/* --- making --- */

/* NULL if memory is short. columns[n] is copied. */
table *table_new(const table_column *columns, size_t n);
table *table_document(void);
/* Frees the outermost table and those within it. */
void table_free(table *t);
/* A line over the table, printf-style. LaTeX then gets a floating table with it as its caption. */
void table_title(table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A table whose text has no rule and no grid: every cell is padded to its column's width alone, a
 * space stands between two, and a last column of width 0 is wrapped at 80 columns. Lines begin with
 * `indent` spaces; without heads if all are "". */
void table_plain(table *t, int indent);
/* An empty line follows the table. */
void table_gap(table *t);
/* One more column, before the first row; its head is made printf-style. */
void table_add_column(table *t, table_column column, const char *head, ...)
    __attribute__((format(printf, 3, 4)));
/* Leaves the head of a column out, so that only programs see it. */
void table_hide_head(table *t, size_t column);

/* --- filling --- */

/* Begins a row. Cells that were not filled in the row before are missing. */
void table_row(table *t);
/* Hides the current row from people. */
void table_hide_row(table *t);
/* Adds a document's next column; name NULL: for people only. Returns t. */
table *table_field(table *t, const char *name);
/* The next cell. A text that is NULL, and table_missing() whatever the column: missing. */
void table_text(table *t, const char *text);
void table_textf(table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void table_whole(table *t, int64_t value);
void table_count(table *t, size_t n);
void table_real(table *t, double value);
void table_flag(table *t, bool value);
void table_interval(table *t, double value, double low, double high);
void table_numbers(table *t, const double *value, size_t n);
/* Takes ownership of the tree; NULL: memory was short. */
void table_json(table *t, cJSON *tree);
void table_missing(table *t);
/* The next cell is a table of its own, which is returned: a list of objects in JSON. */
table *table_rows(table *t, const table_column *columns, size_t n);
/* The same with one row, whose columns come with table_field(): an object in JSON. */
table *table_object(table *t);
/* The same as a list, in which all names are "". */
table *table_list(table *t);
/* People see the column of a document that was added last in that place among the others. */
void table_place(table *t, int place);
/* The text that people see in the previous cell, in place of its value. */
void table_shown(table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Makes the previous cell bold, for people. */
void table_bold(table *t);
/* Text after the previous cell, for people; it ends the row of a plain table. */
void table_rest(table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A line (or an empty one) that people see between the tables of a document. Returns t. */
table *table_line(table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* --- writing --- */

/* Texts may be any: control characters are shown as core/base/shown.h does, and characters of
 * Markdown, HTML or LaTeX markup are escaped. Text: the first column on the left, the others on the
 * right, measured in columns of a terminal. LaTeX is a booktabs tabular. HTML is also well-formed
 * XML. JSON is an array of objects, of a document an object. GL_EIO if writing fails. */
gl_status table_write(const table *t, table_form form, FILE *to, gl_error *err);
/* As a tree, to be released with cJSON_Delete(); NULL if memory is short. */
cJSON *table_to_json(const table *t);

#endif
