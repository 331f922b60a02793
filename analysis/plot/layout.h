/* The places of everything on a page: panels, texts, marks of axes and the legend, at the figure's
 * final size. All lengths are centimetres; y counts from the upper edge. Only for draw.c and the
 * files layout*.c. */
#ifndef GEPOLAB_ANALYSIS_PLOT_LAYOUT_H
#define GEPOLAB_ANALYSIS_PLOT_LAYOUT_H

#include "analysis/plot/page.h"
#include "analysis/plot/text.h"

#include <stdbool.h>
#include <stdio.h>

static const double LINE = 0.31;      /* from one line of text to the next */
static const double TIC = 0.1;        /* a mark's length and the space behind it */
static const double Y_SPACE = 0.23;   /* from a panel to its numbers of y */
static const double MARGIN = 0.08;    /* at the page's edges */
static const double SAMPLE = 0.75;    /* of the legend's samples */
static const double BAR = 0.28;       /* of a colour bar */
static const double LONGEST_MARK = 3; /* of a text turned along the x axis */

enum { MOST_ENTRIES = 12 };               /* of the legend side by side */
enum { MOST_HEADING = 3, MOST_AXIS = 3 }; /* lines of text */

/* A panel as it is shown. */
typedef struct place {
  size_t panel; /* of the page */
  double left, right, top, bottom;
  tick x[MOST_TICKS], y[MOST_TICKS];
  size_t n_x, n_y;
  double x_numbers;  /* room that numbers and texts below the row of panels take */
  int first, lowest; /* of its row of panels; of its column */
} place;

typedef struct layout {
  figure_page *p;
  place *places; /* [n] */
  size_t n, columns, rows;
  double width, height, broad, tall, left, gap, right;
  double y_numbers; /* room that numbers of y take */
  int turned;       /* marks of x along the page's height */
  int x_everywhere; /* numbers of x below every panel */
  size_t entries_across, entry_rows;
  double entry_wide[MOST_ENTRIES], legend_wide;
  FILE *to;
  size_t n_texts, n_samples;
} layout;

static inline const figure_panel *layout_panel(const layout *l, const place *at) {
  return &l->p->panels[at->panel];
}

/* Lays the page out and writes the variables of plots/style.gp: sizes, panels, texts, lines, legend
 * and the foot. Pads and shares the panels' ranges, leaves out panels in which nothing varies,
 * settings and lines without a value, and shows in grey the lines that are too many for a colour
 * each (or, with q->highlight, all lines that it does not name). */
gl_status layout_write(figure_page *p, FILE *to, gl_error *err);

/* --- layout.c --- */

/* Fills in everything but `to`. What is left out is stated at the page's foot. places: [n_panels],
 * zeros. GL_ENOMEM. */
gl_status layout_arrange(layout *l, gl_error *err);
size_t layout_shown_lines(const figure_page *p);

/* Whether the mark belongs to the panel's x axis; whether that has marks. */
bool layout_is_of(const layout *l, const figure_mark *mark, const place *at);
bool layout_has_marks(const layout *l, const place *at);
/* The x of mark i on the page. */
double layout_mark_x(const layout *l, const place *at, size_t i);
/* The least distance between texts at the x axis, and the width of the longest. */
double layout_marks_apart(const layout *l, double *longest);
/* The lines of a y axis' name, at most MOST_AXIS. */
size_t layout_axis_lines(const layout *l, const char *axis, size_t *starts, size_t *lengths);
/* Room for a colour bar with its numbers; 0 where there is none. */
double layout_bar_room(const layout *l);
/* A heading may extend a little over both sides, but not over the page's edge. */
double layout_heading_wide(const layout *l);
/* Whether the x axis' name is below the panel. */
bool layout_names_x(const layout *l, const place *at);

bool layout_has_legend(const figure_page *p);
/* Grey lines are one entry together. */
size_t layout_legend_entries(const figure_page *p);
/* The line of an entry, as the script counts them: those in colour, then the first grey one. */
size_t layout_entry_line(const figure_page *p, size_t entry);
const char *layout_entry_text(const figure_page *p, size_t line);
/* The item at that place of the script's arrays of lines: the lines, then the kinds that only the
 * legend has. */
const figure_line *layout_scripted(const figure_page *p, size_t i);

#endif
