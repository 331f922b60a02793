/* Writes a page: constant markup verbatim, and all text from a study escaped.
 *
 * A page is both HTML and well-formed XML, so that an XML parser can check it: every element is
 * closed and every attribute quoted. Write errors are kept by the stream. */
#ifndef GEPOLAB_EXPERIMENTS_REPORT_HTML_H
#define GEPOLAB_EXPERIMENTS_REPORT_HTML_H

#include "core/base/table.h"

#include <stddef.h>
#include <stdio.h>

typedef struct html {
  FILE *to;
  int level; /* level of the next heading: 1 for the page, 2 for sections */
} html;

/* Writes the beginning of a page with its title as heading; kind is the line above it. style is the
 * text of the style sheet. Errors: GL_EINTERNAL (style is NULL). */
gl_status html_page_begin(html *h, const char *style, const char *kind, const char *title,
                          gl_error *err);
/* Writes the end; from completes "Written by gepolab VERSION ". */
void html_page_end(html *h, const char *from);

/* Writes markup verbatim; only for constants of this program. */
void html_markup(html *h, const char *markup);

/* Writes a script; only a constant of this program. NULL writes nothing. */
void html_script(html *h, const char *script);

/* Writes untrusted text, in an element or a quoted attribute. Non-printable characters are replaced
 * as in core/base/display_text.h, line breaks are kept, and the five markup characters become
 * entities. NULL writes nothing. */
void html_text(html *h, const char *text);
/* The same with a printf-style format. */
void html_textf(html *h, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes <hN id="id">text</hN> at the current level; without id if NULL. */
void html_heading(html *h, const char *id, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* --- tables --- */

/* Writes a table as HTML and frees it. */
void html_table(html *h, table *t);

/* Tables written cell by cell, for cells that contain markup and rows with group headings. */
/* A table is wrapped in a box that scrolls horizontally on narrow pages. The first column has the
 * row headings. */

/* Opens a table with its caption and n column headings. A heading that begins with '#' marks a
 * column of numbers. Close with html_table_end(). */
void html_table_begin(html *h, const char *caption, const char *const *heads, size_t n);
void html_table_end(html *h);
void html_row_begin(html *h);
void html_row_end(html *h);
/* Writes a row's heading, then its cells in order. */
void html_row_head(html *h, const char *text);
void html_cell(html *h, const char *text);
/* Writes a number with four significant digits; an en dash for NaN. */
void html_cell_number(html *h, double value);
void html_cell_count(html *h, size_t n);
/* Writes an estimate and its interval. bold: highlighted. */
void html_cell_interval(html *h, double value, double low, double high, int bold);

/* Formats "1 run" or "2 runs" into text[size]. */
const char *html_count(char *text, size_t size, size_t n, const char *one, const char *many);

#endif
