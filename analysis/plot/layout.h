/* Positions of all elements of a page: panels, text, ticks and the legend, at the figure's final
 * size. Lengths are in centimetres; y is measured from the upper edge. Private to script.c and
 * the files layout*.c. */
#ifndef GEPOLAB_ANALYSIS_PLOT_LAYOUT_H
#define GEPOLAB_ANALYSIS_PLOT_LAYOUT_H

#include "analysis/plot/page.h"
#include "analysis/plot/text.h"
#include "analysis/plot/ticks.h"

#include <stdbool.h>
#include <stdio.h>

static const double LINE = 0.31;      /* line height of text */
static const double TIC = 0.1;        /* length of a tick and the space behind it */
static const double Y_SPACE = 0.23;   /* distance from a panel to its y labels */
static const double MARGIN = 0.08;    /* margin at the page's edges */
static const double SAMPLE = 0.75;    /* width of a sample line in the legend */
static const double BAR = 0.28;       /* width of a colour bar */
static const double LONGEST_MARK = 3; /* maximum length of a rotated label at the x axis */

enum { MOST_ENTRIES = 12 };               /* maximum number of legend columns */
enum { MOST_HEADING = 3, MOST_AXIS = 3 }; /* maximum number of text lines */
enum { MOST_BAR_TICKS = 6 };              /* maximum number of labels of a colour bar */

/* A visible panel. */
typedef struct place {
  size_t panel; /* index among the page's panels */
  double left, right, top, bottom;
  tick x[MOST_TICKS], y[MOST_TICKS];
  size_t n_x, n_y;
  double x_numbers; /* space for labels below its row of panels */
  bool first;       /* the first panel of its row */
  bool lowest;      /* the lowest panel of its column */
} place;

typedef struct layout {
  figure_page *p;
  place *places; /* [n] */
  size_t n, columns, rows;
  /* left, right: space beside the panels; gap: between two [cm]. */
  double page_width, page_height, panel_width, panel_height, left, gap, right;
  double y_numbers; /* space for the y labels */
  int turned;       /* 1: x labels are rotated */
  int x_everywhere; /* 1: x labels below every panel */
  size_t entries_across, entry_rows;
  double entry_wide[MOST_ENTRIES], legend_wide;
  FILE *to;
  size_t n_texts, n_samples;
} layout;

static inline const figure_panel *layout_panel(const layout *l, const place *at) {
  return &l->p->panels[at->panel];
}

/* Lays out the page and writes the variables of plots/page.gp: sizes, panels, text, lines, legend
 * and remarks. Pads the panels' ranges and makes common ranges equal. Omits panels in which nothing
 * varies, and settings and lines without a value. Lines beyond the number of colours are grey (with
 * q->highlight: all lines that it does not name). */
gl_status layout_write(figure_page *p, FILE *to, gl_error *err);

/* --- layout.c --- */

/* Fills in all fields except `to`. Adds remarks on what is omitted. places: [n_panels], zeroed.
 * Errors: GL_ENOMEM. */
gl_status layout_arrange(layout *l, gl_error *err);
size_t layout_shown_lines(const figure_page *p);

/* layout_is_of: the mark belongs to the panel's x axis. layout_has_marks: that axis has marks. */
bool layout_is_of(const layout *l, const figure_mark *mark, const place *at);
bool layout_has_marks(const layout *l, const place *at);
/* The x position of mark i on the page. */
double layout_mark_x(const layout *l, const place *at, size_t i);
/* The smallest distance between labels on the x axis. *longest receives the width of the widest
 * label. */
double layout_marks_apart(const layout *l, double *longest);
/* Breaks a y axis label into at most MOST_AXIS lines. Returns their number. */
size_t layout_axis_lines(const layout *l, const char *axis, size_t *starts, size_t *lengths);
/* Width of a colour bar with its numbers; 0 if there is none. */
double layout_bar_room(const layout *l);
/* Available width of a title. It may extend slightly beyond its panel, but not beyond the page. */
double layout_heading_wide(const layout *l);
/* Returns true if the panel has the x axis label below it. */
bool layout_names_x(const layout *l, const place *at);

bool layout_has_legend(const figure_page *p);
/* Number of legend entries. All grey lines share one entry. */
size_t layout_legend_entries(const figure_page *p);
/* Index of an entry's line in the script's order: coloured lines, then the first grey line. */
size_t layout_entry_line(const figure_page *p, size_t entry);
const char *layout_entry_text(const figure_page *p, size_t line);
/* The item at index i of the script's arrays of lines: the lines, then the kinds that appear only
 * in the legend. */
const figure_line *layout_scripted(const figure_page *p, size_t i);

#endif
