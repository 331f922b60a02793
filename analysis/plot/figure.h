/* Figures as a table: what a figure needs, which script draws it, and what writes its data.
 *
 * Every figure NAME becomes NAME.tsv (its numbers, a comment naming the columns), NAME.gp (the
 * whole script, style included), NAME.pdf, NAME.png and NAME.svg, so that `gnuplot NAME.gp` in the
 * folder draws it again. A figure that cannot show all there is says on itself what it leaves out.
 */
#ifndef GEPOLAB_ANALYSIS_PLOT_FIGURE_H
#define GEPOLAB_ANALYSIS_PLOT_FIGURE_H

#include "core/base/error.h"

#include <stddef.h>

typedef struct figure_page figure_page; /* analysis/plot/page.h */

/* The text width of NeurIPS: 5.5 inches. */
#define FIGURE_WIDTH_CM 13.97

/* Where figures go, which ones, and what draws them. Only folder and script are needed. */
typedef struct figure_request {
  const char *folder;    /* made if missing, with those it lies in */
  const char *prefix;    /* files are PREFIX_NAME.tsv, ..., any / in it being _; NULL: NAME.tsv */
  const char *only;      /* one figure's name; NULL: all there are data for */
  const char *gnuplot;   /* the program; NULL: "gnuplot" */
  const char *formats;   /* which of pdf, png and svg, with spaces between; NULL: all of them */
  double width_cm;       /* of the page, at its final size; 0: FIGURE_WIDTH_CM */
  const char *highlight; /* "gepo,gspo": lines in colour, the others grey; NULL: the first eight */
  const char *(*script)(const char *path); /* text of "plots/style.gp", ..., ended by a zero */
  /* Told of each figure once it is drawn (why == NULL; file: without its ending), or why it is not
   * (file: the figure's name). May be NULL, as noted. */
  void (*told)(void *context, const char *file, const char *why);
  /* Told what a drawn figure leaves out, as the figure says it itself. */
  void (*noted)(void *context, const char *file, const char *left_out);
  void *context;
} figure_request;

/* One line of a table of figures. */
typedef struct figure {
  const char *name, *shows; /* shows: half a sentence */
  const char *shape;        /* plots/SHAPE.gp draws it */
  unsigned needs;           /* what it needs of the data: bits of the table's room */
  /* Opens the page (page_open) and writes the figure's data; the page is closed and drawn by the
   * caller. data is what figures_draw_table was given. */
  gl_status (*write)(const void *data, figure_page *p, gl_error *err);
} figure;

typedef struct figure_table {
  const figure *figures;
  size_t n;
  /* Why there are no data for these needs; NULL if there are. */
  const char *(*lacks)(const void *data, unsigned needs);
  const char *nothing; /* the error where there are data for no figure */
} figure_table;

#endif
