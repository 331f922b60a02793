/* Writing a page: our own markup as it is, and everything that comes out of a study escaped.
 *
 * A page is HTML and well-formed XML at once, so that a parser of XML can check it: every element
 * is closed, every attribute quoted. Trouble with writing stays in the stream.
 */
#ifndef GEPOLAB_EXPERIMENTS_REPORT_HTML_H
#define GEPOLAB_EXPERIMENTS_REPORT_HTML_H

#include "core/base/table.h"

#include <stddef.h>
#include <stdio.h>

typedef struct html {
  FILE *to;
  int level; /* of the next headings: 1 is the page's, 2 its sections' */
} html;

/* Markup of our own, taken as it is: only ever a text written in this program. */
void html_markup(html *h, const char *markup);

/* Text of unknown origin, in an element or in an attribute's quotes: as core/base/shown.h shows it
 * (so that nothing in it is obeyed), its own line breaks kept, the five characters of markup as
 * entities. NULL is nothing. */
void html_text(html *h, const char *text);
/* The same of a text made printf-style. */
void html_textf(html *h, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* <hN id="id">text</hN> of the present level; id NULL: without. */
void html_heading(html *h, const char *id, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* --- tables --- */

/* Writes a table as HTML and frees it. */
void html_table(html *h, table *t);

/* Cell by cell, where cells have markup of their own or rows have group headings. */
/* A table stands in a box of its own, in which it scrolls where the page is narrow. The first
 * column heads its rows. */

/* Opens a table with its caption and the heads of n columns; a head that begins with '#' stands
 * over numbers. Close with html_table_end(). */
void html_table_begin(html *h, const char *caption, const char *const *heads, size_t n);
void html_table_end(html *h);
void html_row_begin(html *h);
void html_row_end(html *h);
/* The head of a row, and its cells in turn. */
void html_row_head(html *h, const char *text);
void html_cell(html *h, const char *text);
/* A number to four significant digits; an en dash for NaN. */
void html_cell_number(html *h, double value);
void html_cell_count(html *h, size_t n);
/* An estimate and its interval; bold: set off from the others. */
void html_cell_interval(html *h, double value, double low, double high, int bold);

/* "1 run", "2 runs": text holds size bytes. */
const char *html_count(char *text, size_t size, size_t n, const char *one, const char *many);

#endif
