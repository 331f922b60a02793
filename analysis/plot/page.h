/* Writes one figure: its data file, its script, and a list of what it omits.
 *
 * A page has panels in a grid. The data are blocks, one per (panel, line) in that order, each ended
 * by two empty lines. Block panel * n_lines + line is thus one curve of one panel; a figure may
 * append more blocks. A panel that would show a single number (or a set of panels with a common
 * range, if each would) is omitted, and a remark gives the number. The layout is computed when the
 * page is closed. */
#ifndef GEPOLAB_ANALYSIS_PLOT_PAGE_H
#define GEPOLAB_ANALYSIS_PLOT_PAGE_H

#include "analysis/plot/line_styles.h"
#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/base/file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* --- figures --- */
/* Figure NAME consists of NAME.tsv (the numbers, with column names in a comment), NAME.gp (the
 * complete script, including the style), NAME.pdf, NAME.png and NAME.svg; NAME.txt has notes that
 * the figure does not show. `gnuplot -d NAME.gp` in the folder draws it again. A figure that omits
 * something has a remark that names it. */

typedef struct figure_page figure_page;

/* The text width of NeurIPS: 5.5 inches. */
#define FIGURE_WIDTH_CM 13.97
/* Largest number of points of a curve against updates. Runs with more updates are averaged, with a
 * thin line through all updates. FIGURE_EVERY_UPDATE: nothing is averaged. */
#define FIGURE_CURVE_POINTS 40
#define FIGURE_EVERY_UPDATE SIZE_MAX

/* Destination, selection and drawing program of figures. Only folder and script are required. */
typedef struct figure_request {
  const char *folder; /* created if missing, with its parent folders */
  const char *prefix; /* files are PREFIX_NAME.tsv, ..., with any / replaced by _; NULL: NAME.tsv */
  const char *only;   /* "heat,gap": only these figures; NULL: all that have data */
  const char *gnuplot;   /* the gnuplot program; NULL: "gnuplot" */
  const char *formats;   /* some of pdf, png and svg, separated by spaces; NULL: all three */
  double width_cm;       /* width of the page at its final size; 0: FIGURE_WIDTH_CM */
  const char *highlight; /* "gepo,gspo": these lines are coloured and the others grey; NULL: the
                            first eight */
  bool no_notes;         /* no text below the figure; NAME.txt holds it */
  size_t points;         /* most points of a curve against updates; 0: FIGURE_CURVE_POINTS */
  const look_variant *variants; /* [n_variants] what is known of algorithms besides their names */
  size_t n_variants;
  char *const *reads; /* [n_reads] files that no figure may be written onto */
  size_t n_reads;
  const char *(*script)(const char *path); /* text of "plots/page.gp", ..., null-terminated */
  /* Called for each figure after it is drawn (why == NULL; file: path without extension) or skipped
   * (why: the reason; file: name of the figure). May be NULL, and so may `noted`. */
  void (*report)(void *context, const char *file, const char *why);
  /* Called with the text of what a drawn figure omits, as printed in the figure. */
  void (*noted)(void *context, const char *file, const char *left_out);
  /* Called with a figure's page when its data and script are complete. May be NULL. */
  void (*described)(void *context, const figure_page *p);
  void *context;
} figure_request;

/* One line of a table of figures. */
typedef struct figure {
  const char *name, *shows; /* shows: description without a verb */
  const char *shape;        /* drawn by plots/SHAPE.gp */
  unsigned needs;           /* required data: bits that the table defines */
  /* Opens the page (page_open) and writes the figure's data; the caller closes and draws it. data
   * is the argument of figures_draw_table. */
  gl_status (*write)(const void *data, figure_page *p, gl_error *err);
} figure;

typedef struct figure_table {
  const figure *figures;
  size_t n;
  /* Returns the reason why required data are missing; NULL if they are present. */
  const char *(*lacks)(const void *data, unsigned needs);
  const char *nothing; /* error message if no figure has data */
  const char *missing; /* if lacks is NULL: why data are missing; NULL: they are present */
} figure_table;

/* Parses a figure width: neurips (13.97 cm, text width), icml (8.25 cm, column width), a4 (16 cm,
 * text width), or centimetres from 6 to 100. Errors: GL_EINPUT (with the choices). */
gl_status figure_width(const char *text, double *cm, gl_error *err);
/* Parses the number of points of a curve: from 2 to 65536, or raw (FIGURE_EVERY_UPDATE). Errors:
 * GL_EINPUT. */
gl_status figure_points(const char *text, size_t *points, gl_error *err);
/* Returns true if the comma-separated list (NULL: empty) contains the name. */
bool figure_is_named(const char *list, const char *name);

/* --- pages --- */

typedef struct figure_panel {
  char title[240], axis[160];
  char note[200]; /* text in the panel's upper right corner; "\n" ends a line */
  double low, high;
  double least, largest; /* range of the values without intervals */
  bool logarithmic;      /* logarithmic y axis */
  int kept;              /* 1: shown even if nothing varies */
  char x_axis[160];      /* label of its own x axis; "": uses the page's axis and range */
  double x_low, x_high;
  bool x_logarithmic;
} figure_panel;

/* A text at a position on the x axis: of one panel with its own axis, or of all panels without
 * (PAGE_MARK). */
#define PAGE_MARK SIZE_MAX
typedef struct figure_mark {
  size_t panel;
  double x;
  const char *text;
} figure_mark;

/* How the legend shows a line. */
typedef enum figure_sample { SAMPLE_LINE_MARK, SAMPLE_LINE, SAMPLE_MARK, SAMPLE_BOX } figure_sample;

typedef struct figure_line {
  const char *name;
  look look;
  figure_sample sample;
  int hidden; /* 1: the line has no value; it is in neither the legend nor a row of its own */
} figure_line;

/* A legend entry for something other than a line. */
typedef struct figure_kind {
  const char *name;
  look look;
  figure_sample sample;
} figure_kind;

struct figure_page {
  const figure_request *q;
  /* files are NAME.tsv, ..., without / and control characters in NAME; drawn by plots/SHAPE.gp */
  const char *name, *shape;
  file_writer data;
  FILE *variables; /* stream of the script's variables, into variables_text */
  char *variables_text;
  size_t variables_size;
  char *left_out; /* "a; b; c": what the figure omits; NULL: nothing */
  size_t n_left_out;
  char *absent; /* "a; b; c": quantities without any value; in NAME.txt, not in the figure; NULL:
                   none */
  char *remark; /* additional remarks below the figure; NULL: none */
  figure_panel *panels;
  size_t n_panels, wide; /* wide: maximum number of panels per row; page_open() sets n_panels */
  size_t share; /* number of consecutive panels with a common range, which is shown once per row; 0:
                   none */
  double tall;  /* height of a panel in centimetres; 0: proportional to its width */
  int named_rows;     /* 1: every panel lists the lines from top to bottom; no legend */
  int all_marks;      /* 1: a symbol at every point, not at some */
  int tight;          /* 1: ranges end at the data */
  int plain;          /* 1: the script draws the legend itself */
  int thinned;        /* 1: there is a remark that not every value is shown */
  figure_line *lines; /* [n_lines]; set by page_set_lines() */
  size_t n_lines;
  const char **
      drawn; /* [n_drawn] names of lines with a value; set by page_interval() or page_keep_line() */
  size_t n_drawn, last_drawn;
  const char *in_record; /* name of the line of the record being written */
  figure_line *kinds;    /* [n_kinds] legend entries instead of lines; set by page_set_kinds() */
  size_t n_kinds;
  size_t n_points;    /* number of calls of page_interval() */
  int in_block;       /* 1: the block being written has a record */
  char x_axis[160];   /* page_open() sets "updates" */
  figure_mark *marks; /* [n_marks] labels at positions of the x axis; set by page_mark() */
  size_t n_marks;
  double x_low, x_high; /* range of x, extended by page_x() */
  bool x_logarithmic;
  double decades;     /* a logarithmic axis shows at most this many decades below its upper end */
  char bar_axis[160]; /* label of a colour bar at the right; "": none */
  double bar_low, bar_high;
  bool bar_logarithmic;
  arena memory; /* memory of panels, lines and kinds, and of the texts of lines and marks */
};

/* The strings are borrowed until page_close(), which must be called. */
void page_init(figure_page *p, const figure_request *q, const char *name, const char *shape);
/* Opens q->folder/NAME.tsv with n_panels empty panels. The first line has the names of the columns
 * (NULL: the figure writes it). */
gl_status page_open(figure_page *p, size_t n_panels, const char *columns, gl_error *err);
/* The page's width in centimetres. */
double page_width(const figure_page *p);
/* Width of the narrowest panel, including the gap. */
#define PANEL_NARROWEST_CM 2.7
/* Returns how many panels of at least that width fit side by side, at most `most`. */
size_t page_columns(const figure_page *p, size_t most);

/* Copies the names of the lines, which all panels have, and assigns their styles (looks_assign). */
gl_status page_set_lines(figure_page *p, const char *const *names, size_t n, gl_error *err);

/* Copies legend entries that replace those of lines. The script's arrays contain their styles after
 * those of the lines. */
gl_status page_set_kinds(figure_page *p, const figure_kind *kinds, size_t n, gl_error *err);

/* Begins a data record with the panel's number and the line's name, formatted by
 * shown_write_field(). */
void page_line(figure_page *p, size_t panel, const char *line);
/* Keeps a line without values in the legend and in its row, to show that it has none. */
void page_keep_line(figure_page *p, const char *line);
/* Writes three fields: value, low, high; empty if not finite. Extends the panel's range; on a
 * logarithmic axis low is ignored, because it may be arbitrarily close to zero. */
void page_interval(figure_page *p, size_t panel, double value, double low, double high);
void page_number(figure_page *p, double value);
/* Writes the usual record: the line's name, x, and a value with the ends of its interval (NaN:
 * none). Extends the ranges of both axes. The range of x is the panel's if its x_axis is already
 * set, else the page's. */
void page_point(figure_page *p, size_t panel, const char *line, double x, double value, double low,
                double high);
/* Extend the range of x of the page, or of a panel with its own x axis. */
void page_x(figure_page *p, double x);
void page_panel_x(figure_page *p, size_t panel, double x);
/* Ends a block. A block without records gets an empty record, because gnuplot does not count empty
 * blocks. */
void page_block_end(figure_page *p);
/* Puts a text at a position of the x axis instead of numbers. panel: a panel's index or PAGE_MARK.
 */
gl_status page_mark(figure_page *p, size_t panel, double x, const char *text, gl_error *err);

/* Set variables of the script: a number, and a text, which is shown literally. */
void page_set(figure_page *p, const char *variable, double value);
void page_set_text(figure_page *p, const char *variable, const char *text);

/* panel_has_values: the panel has a value to show. page_is_empty: no panel of the page has one. */
bool panel_has_values(const figure_panel *panel);
bool page_is_empty(const figure_page *p);

/* Adds an entry to the list of what the figure omits, printf-style; duplicates are ignored. */
gl_status page_leave_out(figure_page *p, gl_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for a quantity that the study or export does not have at all. Such a
 * quantity is listed in NAME.txt only and not below the figure, which omits nothing by it. */
gl_status page_absent(figure_page *p, gl_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Adds a sentence to the remarks below the figure, printf-style. */
gl_status page_remark(figure_page *p, gl_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Writes at most `most` ascending integers below n to picked, evenly spread and including the first
 * and last. Returns how many. */
size_t page_pick(size_t n, size_t most, size_t *picked);

/* Writes any text as a gnuplot string that is shown literally. Control characters are replaced as
 * in core/base/display_text.h, and characters that the font lacks are written as numbers
 * (text_in_font()). Nothing is interpreted or executed. */
void page_write_text(const char *text, FILE *to);
/* Writes a text without control characters as a gnuplot string, byte for byte; used for file names.
 */
void page_write_name(const char *text, FILE *to);
/* Begins writing q->folder/NAME with the suffix (".gp"). */
gl_status page_begin_file(file_writer *w, const figure_page *p, const char *suffix, gl_error *err);

/* --- maps: a value for each cell of a grid, as a panel of coloured cells with a contour --- */

/* A heat map; borrowed. x and y have n_x + 1 and n_y + 1 ascending edges of cells; value[y * n_x +
 * x] (not finite: no cell). */
typedef struct figure_map {
  size_t n_x, n_y;
  const double *x_edge, *y_edge, *value;
} figure_map;

/* Writes the edges of cells around ascending numbers x[n] to edge[n + 1]: halfway between
 * neighbours, on a logarithmic scale if requested. */
void map_edges(const double *x, size_t n, bool logarithmic, double *edge);

/* Writes a panel's map. A page of maps has one line and one block per panel, and p->shape is "map".
 * The panel gets its own axis over the edges and is always shown. Call in the order of the panels.
 */
void page_map(figure_page *p, size_t panel, const figure_map *m);
/* Writes where the values cross `level`, by linear interpolation between the cells' centres (of
 * logarithms if the colours are logarithmic). Call once per panel, in order, after the blocks of
 * all panels. NaN: an empty contour. */
void page_contour(figure_page *p, size_t panel, const figure_map *m, double level);

/* Set the colour scale. page_bar(): from low to high, light to dark, also in grey.
 * page_bar_diverging(): from blue over white to orange, symmetric around the middle (1 on a
 * logarithmic scale, 0 on a linear one). `most` is the upper end; values beyond an end have its
 * colour. */
void page_bar(figure_page *p, const char *axis, double low, double high, bool logarithmic);
void page_bar_diverging(figure_page *p, const char *axis, double most, bool logarithmic);

/* Writes the script NAME.gp and the notes NAME.txt, renames the data file to its final name, and
 * releases the page. `status` is the result of writing the page: if it is an error (also one before
 * page_open), no file is left and the error is returned. */
gl_status page_close(figure_page *p, gl_status status, gl_error *err);

#endif
