/* A figure that is being written: its data file, its script, and a list of what it leaves out.
 *
 * A page has panels in a grid. Its data are blocks, one per (panel, line) in that order and each
 * ended by two empty lines, so that block panel * n_lines + line is one curve of one panel; a
 * figure may write further blocks behind them. Where all that a panel (of panels with a common
 * range: all that each of them) would show is one number, it is left out and the figure says so.
 * The page is laid out when it is closed (analysis/plot/draw.h). */
#ifndef GEPOLAB_ANALYSIS_PLOT_PAGE_H
#define GEPOLAB_ANALYSIS_PLOT_PAGE_H

#include "analysis/plot/look.h"
#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/base/file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* --- figures --- */
/* * Every figure NAME becomes NAME.tsv (its numbers, a comment naming the columns), NAME.gp (the
 * whole script, style included), NAME.pdf, NAME.png and NAME.svg, so that `gnuplot NAME.gp` in the
 * folder draws it again. A figure that cannot show all there is says on itself what it leaves out.
 */

typedef struct figure_page figure_page;

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
  /* Called for each figure once it is drawn (why == NULL; file: without its ending), or why it is
   * not (file: the figure's name). May be NULL, as noted. */
  void (*told)(void *context, const char *file, const char *why);
  /* Called with the list of what a drawn figure leaves out, as the figure prints it. */
  void (*noted)(void *context, const char *file, const char *left_out);
  void *context;
} figure_request;

/* One line of a table of figures. */
typedef struct figure {
  const char *name, *shows; /* shows: half a sentence */
  const char *shape;        /* plots/SHAPE.gp draws it */
  unsigned needs;           /* the data that it needs: bits, which the table defines */
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

/* The width of a figure by name: neurips (13.97 cm, the text), icml (8.25 cm, a column), a4 (16 cm,
 * the text), or a number of centimetres from 6 to 100. GL_EINPUT says what there is. */
gl_status figure_width(const char *text, double *cm, gl_error *err);
/* Whether the list of names parted by commas (NULL: none) has that one. */
bool figure_is_named(const char *list, const char *name);

/* --- pages --- */

typedef struct figure_panel {
  char title[240], axis[160];
  char note[200]; /* in the panel's upper right corner; "\n" ends a line */
  double low, high;
  double least, largest; /* of the values, without intervals */
  bool logarithmic;      /* scale of its axis */
  int kept;              /* 1: shown even where nothing varies */
  char x_axis[160];      /* of its own; "": the page's, with the page's range */
  double x_low, x_high;
  bool x_logarithmic;
} figure_panel;

/* A text at a place of the x axis: of one panel with an axis of its own, or of all that have none
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
  int hidden; /* has no value anywhere: it is neither in the legend nor in a row of its own */
} figure_line;

/* Something that a shape draws besides lines, as the legend shows it. */
typedef struct figure_kind {
  const char *name;
  look look;
  figure_sample sample;
} figure_kind;

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
  char *remark; /* further words at the foot of the figure; NULL: none */
  figure_panel *panels;
  size_t n_panels, wide; /* wide: panels in a row of the page at most; page_open: n_panels */
  size_t share;          /* so many panels in turn have one range, shown once a row; 0: none */
  double tall;           /* of a panel, in centimetres; 0: as its width asks for */
  int named_rows;        /* every panel lists the lines from above; no legend */
  int all_marks;         /* a mark at every point instead of at some */
  int tight;             /* ranges end at the data */
  int plain;             /* the legend is the script's */
  int thinned;           /* a remark says that not every value is shown */
  figure_line *lines;    /* [n_lines]; page_set_lines() */
  size_t n_lines;
  const char *
      *drawn; /* [n_drawn] names of lines with a value, by page_interval() or page_keep_line() */
  size_t n_drawn, last_drawn;
  const char *in_record; /* the line of the record being written */
  figure_line *kinds;    /* [n_kinds] what the legend shows instead of lines; page_set_kinds() */
  size_t n_kinds;
  size_t n_points;    /* written by page_interval() */
  int in_block;       /* 1: the block being written has a record */
  char x_axis[160];   /* "updates" after page_open() */
  figure_mark *marks; /* [n_marks] where x is a place in a list; page_mark() */
  size_t n_marks;
  double x_low, x_high; /* widened by page_x() */
  bool x_logarithmic;
  double decades;     /* a logarithmic axis shows so many at most, from its upper end */
  char bar_axis[160]; /* a colour bar at the right: its name; "": none */
  double bar_low, bar_high;
  bool bar_logarithmic;
  arena memory; /* of the panels, lines and kinds, and of the texts of lines and marks */
};

/* The strings are borrowed until page_close() (analysis/plot/draw.h), which must follow. */
void page_init(figure_page *p, const figure_request *q, const char *name, const char *shape);
/* Opens q->folder/NAME.tsv, with the columns' names as its first line (NULL: the figure writes
 * one), and n_panels empty panels. */
gl_status page_open(figure_page *p, size_t n_panels, const char *columns, gl_error *err);
/* The page's width in centimetres. */
double page_width(const figure_page *p);
/* The narrowest panel with its gap. */
#define PANEL_NARROWEST_CM 2.7
/* How many panels of at least that width the page has room for side by side, at most `most`. */
size_t page_columns(const figure_page *p, size_t most);

/* Copies the names of the lines of every panel, each of which gets its look (looks_assign). */
gl_status page_set_lines(figure_page *p, const char *const *names, size_t n, gl_error *err);

/* Copies what the legend shows instead of lines: things that the shape draws with these looks,
 * which the script has behind those of the lines. */
gl_status page_set_kinds(figure_page *p, const figure_kind *kinds, size_t n, gl_error *err);

/* Begins a record of data: the panel's number and the line's name, as shown_write_field() writes
 * it. */
void page_line(figure_page *p, size_t panel, const char *line);
/* Keeps a line without any value in the legend and in its row, to show that it has none. */
void page_keep_line(figure_page *p, const char *line);
/* Three cells: value, low, high; empty where not finite. Widens the panel's range, on a logarithmic
 * axis not by low, which can be anything near zero. */
void page_interval(figure_page *p, size_t panel, double value, double low, double high);
void page_number(figure_page *p, double value);
/* The record that most figures are made of: the line's name, x, a value with the ends of its
 * interval (NaN: none). Widens the ranges of both axes, that of x of the panel if its x_axis was
 * set before, else of the page. */
void page_point(figure_page *p, size_t panel, const char *line, double x, double value, double low,
                double high);
/* Widen the range of x: of the page, or of a panel with an x axis of its own. */
void page_x(figure_page *p, double x);
void page_panel_x(figure_page *p, size_t panel, double x);
/* Ends a block. One without a record gets an empty one, for gnuplot does not count empty blocks. */
void page_block_end(figure_page *p);
/* Writes a text at a place of the x axis instead of numbers; panel: or PAGE_MARK. */
gl_status page_mark(figure_page *p, size_t panel, double x, const char *text, gl_error *err);

/* Variables of the script: a number, a text, and arrays of texts (shown literally) and of numbers.
 */
void page_set(figure_page *p, const char *variable, double value);
void page_set_text(figure_page *p, const char *variable, const char *text);
void page_set_texts(figure_page *p, const char *array, const char *const *texts, size_t n);
void page_set_numbers(figure_page *p, const char *array, const double *numbers, size_t n);

/* Whether the panel has a value to show; and whether no panel of the page has. */
bool panel_has_values(const figure_panel *panel);
bool page_is_empty(const figure_page *p);

/* Adds to what the figure says below its panels that it does not show, printf-style; once. */
gl_status page_leave_out(figure_page *p, gl_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Adds a sentence to the figure's foot, printf-style. */
gl_status page_remark(figure_page *p, gl_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Fills picked with at most `most` numbers below n, spread evenly, first and last among them, in
 * order; returns how many. */
size_t page_pick(size_t n, size_t most, size_t *picked);

/* Writes any text as gnuplot's, so that it is shown literally: control characters as
 * core/base/shown.h has them, characters that the font lacks as numbers (text_in_font()), nothing
 * obeyed or run. */
void page_write_text(const char *text, FILE *to);
/* Writes a text without control characters as gnuplot's, byte for byte: the name of a file. */
void page_write_name(const char *text, FILE *to);
/* Begins q->folder/NAME with the suffix (".gp"). */
gl_status page_begin_file(file_writer *w, const figure_page *p, const char *suffix, gl_error *err);

/* --- maps: a value for each cell of a grid, as a panel of coloured cells with a contour --- */

/* Borrowed: n_x + 1 and n_y + 1 ascending edges of cells, value[y * n_x + x] (not finite: no cell).
 */
typedef struct figure_map {
  size_t n_x, n_y;
  const double *x_edge, *y_edge, *value;
} figure_map;

/* The edges of cells around ascending numbers x[n], halfway between neighbours (on a logarithmic
 * scale if asked), into edge[n + 1]. */
void map_edges(const double *x, size_t n, bool logarithmic, double *edge);

/* A page of maps has one line and one block per panel; p->shape is "map". Writes the panel's block,
 * with an axis of its own over the edges; the panel is kept. Call in the order of the panels. */
void page_map(figure_page *p, size_t panel, const figure_map *m);
/* Behind the blocks of all panels, one of these for each panel in turn: where the values cross
 * `level`, by linear interpolation between the cells' centres (of logarithms where the colours are
 * logarithmic). NaN: an empty contour. */
void page_contour(figure_page *p, size_t panel, const figure_map *m, double level);

/* Colours: from low to high, light to dark in grey too; or from blue over white at the middle to
 * orange, with ends at equal distance from it: 1 on a logarithmic scale, 0 on a linear one. `most`
 * is the upper end; values beyond an end have its colour. */
void page_bar(figure_page *p, const char *axis, double low, double high, bool logarithmic);
void page_bar_diverging(figure_page *p, const char *axis, double most, bool logarithmic);

#endif
