/* A figure in the making: its data file, its script, and what it leaves out.
 *
 * Of a page with panels (plots/style.gp lays them out) the data are blocks, one per (panel, line)
 * in that order and each ended by two empty lines, so that block panel * n_lines + line is one
 * curve of one panel. A page without panels is laid out by its own script (plots/page.gp helps),
 * from data and variables of its own.
 */
#ifndef GEPOLAB_ANALYSIS_PLOT_PAGE_H
#define GEPOLAB_ANALYSIS_PLOT_PAGE_H

#include "analysis/plot/figure.h"
#include "core/base/file.h"

#include <stdio.h>

typedef struct figure_panel {
  char title[160], axis[160], note[32]; /* note: in the panel's upper right corner */
  double low, high;
  int logarithmic; /* scale of its axis */
} figure_panel;

struct figure_page {
  const figure_request *q;
  /* files are NAME.tsv, ..., a name without / and control characters; plots/SHAPE.gp draws it */
  const char *name, *shape;
  file_writer data;
  FILE *variables; /* of the script, into variables_text */
  char *variables_text;
  size_t variables_size;
  char *left_out; /* "a; b; c": what the figure does not show; NULL: nothing */
  size_t n_left_out;
  figure_panel *panels;
  size_t n_panels, wide; /* wide: panels in a row of the page; set by page_open to n_panels */
  size_t share;          /* so many panels in turn have one range, shown once a row; 0: none */
  int named_rows;        /* every panel lists the lines from above; no legend */
  char **lines;          /* [n_lines] their names; page_set_lines() */
  size_t n_lines;
  char x_axis[160];     /* "step" after page_open() */
  char x_marks[640];    /* "'0' 0, '600' 1" where x is a place in a list; else "" */
  double x_low, x_high; /* widened by page_x() */
};

/* The strings are borrowed until page_close(). */
void page_init(figure_page *p, const figure_request *q, const char *name, const char *shape);
/* Opens q->folder/NAME.tsv, with the columns' names as its first line (NULL: the figure writes
 * one), and n_panels empty panels. */
gl_status page_open(figure_page *p, size_t n_panels, const char *columns, gl_error *err);
/* Writes the script and puts both files in place; releases the page. After a failure (status, which
 * is then handed through, also one before page_open) nothing is left behind. */
gl_status page_close(figure_page *p, gl_status status, gl_error *err);

/* Copies the names of the lines of every panel. */
gl_status page_set_lines(figure_page *p, const char *const *names, size_t n, gl_error *err);

/* Begins a record of data: the panel's number and the line's name, as shown_write_field() writes
 * it. */
void page_line(figure_page *p, size_t panel, const char *line);
/* Three cells: value, low, high; empty where not finite. Widens the panel's range, on a logarithmic
 * axis not by low, which can be anything near zero. */
void page_interval(figure_page *p, size_t panel, double value, double low, double high);
void page_number(figure_page *p, double value);
void page_x(figure_page *p, double x);
void page_block_end(figure_page *p);

/* Variables of the script: a number, and arrays of texts (shown literally) and of numbers. */
void page_set(figure_page *p, const char *variable, double value);
void page_set_texts(figure_page *p, const char *array, const char *const *texts, size_t n);
void page_set_numbers(figure_page *p, const char *array, const double *numbers, size_t n);

/* Adds to what the figure says below its panels that it does not show, printf-style. */
gl_status page_leave_out(figure_page *p, gl_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Fills picked with at most `most` numbers below n, spread evenly, first and last among them, in
 * order; returns how many. */
size_t page_pick(size_t n, size_t most, size_t *picked);

#endif
