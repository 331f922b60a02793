/* Geometry of a page. All lengths are centimetres; y counts from the upper edge. */
#include "analysis/plot/layout.h"

#include "analysis/plot/text.h"
#include "analysis/plot/ticks.h"
#include "core/base/shown.h"
#include "core/config/config.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- widths by name -----------------------------------------------------------------------------
 */

static const struct {
  const char *name;
  double cm;
} widths[] = {{"neurips", FIGURE_WIDTH_CM}, {"icml", 8.255}, {"a4", 16}};
enum { WIDTHS = sizeof widths / sizeof *widths };
static const double NARROWEST = 6, WIDEST = 100;

gl_status figure_width(const char *text, double *cm, gl_error *err) {
  const char *names[WIDTHS];
  char hint[CFG_HINT_SIZE], *end;
  for (size_t i = 0; i < WIDTHS; i++) {
    names[i] = widths[i].name;
    if (strcmp(text, widths[i].name) != 0) continue;
    *cm = widths[i].cm;
    return GL_OK;
  }
  *cm = strtod(text, &end);
  if (end == text || *end)
    return gl_fail(err, GL_EINPUT,
                   "the width '%.40s' is neither neurips, icml, a4 nor a number of centimetres%s",
                   text, cfg_hint(text, names, WIDTHS, hint));
  if (!(*cm >= NARROWEST && *cm <= WIDEST))
    return gl_fail(err, GL_EINPUT, "a figure is %g to %g cm wide, not %.40s", NARROWEST, WIDEST,
                   text);
  return GL_OK;
}

/* --- what is laid out ---------------------------------------------------------------------------
 */

static const double LINE = 0.31;      /* from one line of text to the next */
static const double TIC = 0.1;        /* a mark's length and the space behind it */
static const double Y_SPACE = 0.23;   /* from a panel to its numbers of y */
static const double MARGIN = 0.08;    /* at the page's edges */
static const double BROADEST = 9.5;   /* of a panel */
static const double SAMPLE = 0.75;    /* of the legend's samples */
static const double BAR = 0.28;       /* of a colour bar */
static const double LONGEST_MARK = 3; /* of a text turned along the x axis */

enum { MOST_ENTRIES = 12 }; /* of the legend side by side */
enum { MOST_HEADING = 3, MOST_AXIS = 3, NOTE_LINES = 6, MOST_MARK_LINES = 3 };
enum { TO_LEFT, TO_CENTRE, TO_RIGHT };

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

static const figure_panel *panel_of(const layout *l, const place *at) {
  return &l->p->panels[at->panel];
}

/* --- what is shown ------------------------------------------------------------------------------
 */

static int panel_varies(const figure_panel *panel) {
  if (!panel_has_values(panel)) return 0;
  return panel->kept || panel->largest - panel->least > 1e-12 * fabs(panel->largest);
}

/* Says what the panels would have shown: one number, or nothing. */
static gl_status tell_constant(figure_page *p, size_t from, size_t to, gl_error *err) {
  double value = NAN;
  char text[24];
  for (size_t i = from; i < to; i++)
    if (p->panels[i].least <= p->panels[i].largest) value = p->panels[i].least;
  const figure_panel *first = &p->panels[from];
  if (isnan(value))
    return page_leave_out(
        p, err, *first->x_axis ? "%.90s against %.90s (no values)" : "%.90s%.0s (no values)",
        first->axis, first->x_axis);
  int digits = 0;
  while (digits < 4 && fabs(value - round(value * pow(10, digits)) / pow(10, digits)) > 1e-9)
    digits++;
  tick_text(value, digits, text);
  return page_leave_out(p, err, "%s (%s everywhere)", p->panels[from].axis, text);
}

static int has_points(const figure_panel *panel) {
  return panel->least <= panel->largest;
}

/* Whether the panels of one column of the rows with a common range are without points. */
static int is_column_empty(const layout *l, size_t column) {
  for (size_t i = 0; i < l->n; i++)
    if (l->places[i].panel % l->p->share == column && has_points(panel_of(l, &l->places[i])))
      return 0;
  return 1;
}

static gl_status drop_column(layout *l, size_t column, gl_error *err) {
  const char *heading = "";
  size_t kept = 0;
  for (size_t i = 0; i < l->n; i++) {
    const int here = l->places[i].panel % l->p->share == column;
    if (here && !*heading) heading = panel_of(l, &l->places[i])->title;
    if (!here) l->places[kept++] = l->places[i];
  }
  l->n = kept;
  return *heading ? page_leave_out(l->p, err, "%.150s (no values)", heading) : GL_OK;
}

/* Leaves out the settings of which no panel has a point, where others have. */
static gl_status choose_columns(layout *l, gl_error *err) {
  figure_page *p = l->p;
  size_t left = p->share, most = p->share;
  gl_status status = GL_OK;
  int any = 0;
  for (size_t i = 0; i < l->n; i++) any |= has_points(panel_of(l, &l->places[i]));
  for (size_t column = 0; column < most && any && status == GL_OK; column++) {
    if (!is_column_empty(l, column)) continue;
    status = drop_column(l, column, err);
    left--;
  }
  if (p->wide == p->share || p->wide > left) p->wide = left;
  return status;
}

/* Chooses the panels that vary: of those with a common range all or none. */
static gl_status choose_rows(layout *l, gl_error *err) {
  figure_page *p = l->p;
  const size_t together = p->share ? p->share : 1;
  const int empty = page_is_empty(p);
  size_t varying = 0;
  gl_status status = GL_OK;
  for (size_t i = 0; i < p->n_panels; i++) varying += (size_t)panel_varies(&p->panels[i]);
  for (size_t from = 0; from < p->n_panels && status == GL_OK; from += together) {
    const size_t to = from + together < p->n_panels ? from + together : p->n_panels;
    int any = 0;
    for (size_t i = from; i < to; i++)
      any |= varying > 0 ? panel_varies(&p->panels[i]) : empty || panel_has_values(&p->panels[i]);
    if (!any) status = tell_constant(p, from, to, err);
    for (size_t i = from; i < to && any; i++) l->places[l->n++].panel = i;
    if (any && l->n == to - from)
      for (size_t i = from; i < to; i++) /* headings stand above the first row that is shown */
        if (!*p->panels[i].title && from > 0)
          memcpy(p->panels[i].title, p->panels[i - from].title, sizeof p->panels[i].title);
  }
  return status;
}

static gl_status choose_panels(layout *l, gl_error *err) {
  gl_status status = choose_rows(l, err);
  return status == GL_OK && l->p->share > 1 ? choose_columns(l, err) : status;
}

static size_t shown_lines(const figure_page *p) {
  size_t n = 0;
  for (size_t i = 0; i < p->n_lines; i++) n += !p->lines[i].hidden;
  return n;
}

/* --- ranges -------------------------------------------------------------------------------------
 */

/* Scripts have ten digits of a number, so that a range narrower than this share of its ends may be
 * written as a point. */
static const double POINT = 1e-6;

/* Room for the marks at the ends; a range that is a point, or empty, gets some. */
static void pad_range(const figure_page *p, double *low, double *high, int logarithmic) {
  if (!(*low <= *high)) *low = logarithmic ? 1 : 0, *high = 1;
  if (logarithmic) {
    *low = fmax(*low, *high * pow(10, -p->decades));
    const double room = p->tight && *high > *low ? 1 : pow(fmax(*high / *low, 1.5), 0.06);
    *low /= room, *high *= room;
  } else {
    const int is_point = *high - *low <= POINT * fmax(fabs(*low), fabs(*high));
    double room = p->tight ? 0 : 0.06 * (*high - *low);
    if (is_point) room = fmax(0.05 * fabs(*high), 0.015);
    *low -= room, *high += room;
  }
}

static void share_ranges(figure_page *p) {
  for (size_t from = 0; p->share && from < p->n_panels; from += p->share) {
    double low = INFINITY, high = -INFINITY;
    for (size_t i = from; i < from + p->share && i < p->n_panels; i++)
      low = fmin(low, p->panels[i].low), high = fmax(high, p->panels[i].high);
    for (size_t i = from; i < from + p->share && i < p->n_panels; i++)
      p->panels[i].low = low, p->panels[i].high = high;
  }
}

static void set_ranges(figure_page *p) {
  share_ranges(p);
  for (size_t i = 0; i < p->n_panels; i++) {
    figure_panel *panel = &p->panels[i];
    if (!*panel->x_axis) {
      panel->x_low = p->x_low, panel->x_high = p->x_high;
      panel->x_logarithmic = p->x_logarithmic;
    }
    if (p->named_rows) {
      pad_range(p, &panel->low, &panel->high, panel->logarithmic);
      panel->x_low = panel->low, panel->x_high = panel->high;
      panel->x_logarithmic = panel->logarithmic;
      panel->low = -(double)shown_lines(p) - 0.6, panel->high = -0.4;
      panel->logarithmic = 0;
      continue;
    }
    pad_range(p, &panel->low, &panel->high, panel->logarithmic);
    pad_range(p, &panel->x_low, &panel->x_high, panel->x_logarithmic);
  }
}

/* --- lines in colour and in grey ----------------------------------------------------------------
 */

enum { MOST_HIDDEN = 3 }; /* lines that are named as having no value */

/* Hides the lines that have no value, and says so. Of a page whose values are not told apart by
 * lines none is hidden. */
static gl_status choose_lines(figure_page *p, gl_error *err) {
  size_t hidden = 0;
  gl_status status = GL_OK;
  for (size_t i = 0, at = 0; i < p->n_lines && p->n_drawn > 0 && status == GL_OK; i++) {
    size_t tried = 0;
    while (tried < p->n_drawn && strcmp(p->drawn[at], p->lines[i].name) != 0)
      at = (at + 1) % p->n_drawn, tried++;
    p->lines[i].hidden = tried == p->n_drawn;
    if (p->lines[i].hidden && hidden++ < MOST_HIDDEN)
      status = page_leave_out(p, err, "%.150s (no values)", p->lines[i].name);
  }
  if (hidden > MOST_HIDDEN && status == GL_OK)
    status = page_leave_out(p, err, "%zu others (no values)", hidden - MOST_HIDDEN);
  return status;
}

int figure_is_named(const char *list, const char *name) {
  const size_t n = strlen(name);
  for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
    if (strncmp(at, name, n) == 0 && (at[n] == ',' || !at[n])) return 1;
  return 0;
}

/* Says which lines are grey. */
static gl_status tell_grey(figure_page *p, gl_error *err) {
  char *list = NULL;
  size_t size = 0, n = 0;
  FILE *to = open_memstream(&list, &size);
  if (!to) return gl_fail_memory(err, "the names of a figure's lines");
  for (size_t i = 0; i < p->n_lines; i++)
    if (p->lines[i].look.colour == LOOK_GREY && !p->lines[i].hidden)
      fprintf(to, "%s%s", n++ ? ", " : "", shown(p->lines[i].name).text);
  fclose(to);
  gl_status status = n ? page_remark(p, err, "In grey: %s", list) : GL_OK;
  free(list);
  return status;
}

static gl_status choose_colours(figure_page *p, gl_error *err) {
  const char *wanted = p->q->highlight;
  size_t named = 0, coloured = 0;
  for (size_t i = 0; i < p->n_lines; i++)
    named += wanted && figure_is_named(wanted, p->lines[i].name);
  if (named == 0 && (p->named_rows || shown_lines(p) <= LOOK_COLOURS)) return GL_OK;
  for (size_t i = 0; i < p->n_lines; i++) {
    if (p->lines[i].hidden) continue;
    const int chosen = named ? figure_is_named(wanted, p->lines[i].name) : coloured < LOOK_COLOURS;
    coloured += (size_t)chosen;
    if (!chosen) p->lines[i].look.colour = LOOK_GREY, p->lines[i].look.dash = 0;
  }
  return p->named_rows ? GL_OK : tell_grey(p, err);
}

/* --- the grid -----------------------------------------------------------------------------------
 */

static double widest_text(const tick *ticks, size_t n) {
  double most = 0;
  for (size_t i = 0; i < n; i++) most = fmax(most, text_cm(ticks[i].text));
  return most;
}

static size_t axis_ticks(double low, double high, int logarithmic, size_t most, tick *out) {
  return logarithmic ? ticks_logarithmic(low, high, most, out) : ticks_linear(low, high, most, out);
}

static void set_y_ticks(layout *l) {
  l->y_numbers = 0;
  for (size_t i = 0; i < l->n; i++) {
    place *at = &l->places[i];
    const figure_panel *panel = panel_of(l, at);
    at->n_y = l->p->named_rows ? 0
                               : axis_ticks(panel->low, panel->high, panel->logarithmic,
                                            (size_t)fmax(2, floor(l->tall / 0.6)), at->y);
    l->y_numbers = fmax(l->y_numbers, widest_text(at->y, at->n_y));
  }
  for (size_t i = 0; i < l->p->n_lines && l->p->named_rows; i++)
    if (!l->p->lines[i].hidden)
      l->y_numbers = fmax(l->y_numbers, text_cm(shown(l->p->lines[i].name).text));
  l->y_numbers = fmin(l->y_numbers, 0.4 * l->width);
}

/* Whether the mark belongs to the panel's x axis. */
static int is_of(const layout *l, const figure_mark *mark, const place *at) {
  return mark->panel == at->panel || (mark->panel == PAGE_MARK && !*panel_of(l, at)->x_axis);
}

static int has_marks(const layout *l, const place *at) {
  for (size_t i = 0; i < l->p->n_marks; i++)
    if (is_of(l, &l->p->marks[i], at)) return 1;
  return 0;
}

/* As many numbers as fit side by side. */
static void set_x_ticks(layout *l) {
  for (size_t i = 0; i < l->n; i++) {
    place *at = &l->places[i];
    const figure_panel *panel = panel_of(l, at);
    at->n_x = 0;
    if (has_marks(l, at)) continue;
    for (size_t most = 8; most >= 2; most--) {
      at->n_x = axis_ticks(panel->x_low, panel->x_high, panel->x_logarithmic, most, at->x);
      const double span =
          panel->x_logarithmic ? log(panel->x_high / panel->x_low) : panel->x_high - panel->x_low;
      double behind = -INFINITY;
      int fit = 1;
      for (size_t k = 0; k < at->n_x && fit; k++) {
        if (!at->x[k].text[0]) continue;
        const double from =
            panel->x_logarithmic ? log(at->x[k].at / panel->x_low) : at->x[k].at - panel->x_low;
        const double centre = l->broad * from / span, half = 0.5 * text_cm(at->x[k].text);
        fit = centre - half >= behind + 0.16;
        behind = centre + half;
      }
      if (fit) break;
    }
  }
}

static size_t axis_lines(const layout *l, const char *axis, size_t *starts, size_t *lengths) {
  int cut;
  return text_break(axis, fmax(l->tall, 2.6), MOST_AXIS, starts, lengths, &cut);
}

static double y_axis_room(const layout *l) {
  size_t most = 0, starts[MOST_AXIS], lengths[MOST_AXIS];
  for (size_t i = 0; i < l->n && !l->p->named_rows; i++) {
    const size_t n = axis_lines(l, panel_of(l, &l->places[i])->axis, starts, lengths);
    if (n > most) most = n;
  }
  return LINE * (double)most;
}

static double bar_room(const layout *l) {
  const figure_page *p = l->p;
  tick ticks[MOST_TICKS];
  if (!*p->bar_axis) return 0;
  const size_t n = axis_ticks(p->bar_low, p->bar_high, p->bar_logarithmic, 6, ticks);
  return 0.25 + BAR + 0.3 + widest_text(ticks, n) + LINE + 0.1;
}

static void set_columns(layout *l) {
  const figure_page *p = l->p;
  const double room = l->width - l->left - l->right;
  size_t fit = (size_t)fmax(
      1, floor((room + l->gap) / (p->share ? PANEL_NARROWEST_CM - 0.35 : PANEL_NARROWEST_CM)));
  l->columns = p->wide < l->n ? p->wide : l->n;
  if (l->columns > fit) l->columns = fit;
  if (l->columns < 1) l->columns = 1;
  l->rows = (l->n + l->columns - 1) / l->columns;
  l->broad = (room - (double)(l->columns - 1) * l->gap) / (double)l->columns;
  if (l->broad > BROADEST && p->n_kinds == 0) l->broad = BROADEST;
}

static double mark_x(const layout *l, const place *at, size_t i) {
  const figure_panel *panel = panel_of(l, at);
  return at->left + l->broad * (l->p->marks[i].x - panel->x_low) / (panel->x_high - panel->x_low);
}

/* The least distance between texts at the x axis, and the width of the longest. */
static double marks_apart(const layout *l, double *longest) {
  const figure_page *p = l->p;
  double nearest = l->broad;
  *longest = 0;
  for (size_t k = 0; k < l->n; k++) {
    double before = NAN;
    for (size_t i = 0; i < p->n_marks; i++) {
      if (!is_of(l, &p->marks[i], &l->places[k])) continue;
      const double x = mark_x(l, &l->places[k], i);
      *longest = fmax(*longest, text_cm(shown(p->marks[i].text).text));
      if (isfinite(before)) nearest = fmin(nearest, x - before);
      before = x;
    }
  }
  return nearest;
}

/* Whether they fit side by side; else they are turned. */
static int marks_fit(const layout *l) {
  double longest;
  const double nearest = marks_apart(l, &longest);
  return longest + 0.12 <= nearest;
}

/* How far the last of these texts stands out at the right. */
static double marks_overhang(const layout *l) {
  double most = 0;
  for (size_t k = 0; k < l->n && !l->turned; k++)
    for (size_t i = 0; i < l->p->n_marks; i++) {
      const place *at = &l->places[k];
      if (!is_of(l, &l->p->marks[i], at)) continue;
      const double half = 0.5 * fmin(LONGEST_MARK, text_cm(shown(l->p->marks[i].text).text));
      most = fmax(most, half - (at->left + l->broad - mark_x(l, at, i)));
    }
  return most;
}

/* Half of the broadest number of x may stand out at either side of a panel, and a part of the last
 * text there. */
static double overhang(const layout *l) {
  double most = fmax(0.2, marks_overhang(l));
  for (size_t i = 0; i < l->n; i++)
    most = fmax(most, 0.5 * widest_text(l->places[i].x, l->places[i].n_x));
  return most;
}

static void set_sizes(layout *l) {
  const figure_page *p = l->p;
  l->tall = p->tall;
  for (int round = 0; round < 3; round++) {
    if (p->named_rows)
      l->tall = 0.36 * (double)shown_lines(p) + 0.25;
    else if (p->tall <= 0)
      l->tall = l->broad <= 0 ? 3 : fmin(fmax(0.8 * l->broad, 2.4), 4.6);
    set_y_ticks(l);
    l->left = MARGIN + y_axis_room(l) + 0.06 + l->y_numbers + Y_SPACE;
    /* Room for texts that stand out makes panels narrower: what has been turned stays so. */
    l->turned |= round > 0 && !marks_fit(l);
    const double out = round ? overhang(l) : 0.3;
    l->right = bar_room(l) + (*p->bar_axis ? 0 : fmax(0.15, out));
    l->gap = p->share || p->named_rows ? fmax(0.3, 1.3 * out) : l->left + fmax(0.05, out - 0.2);
    set_columns(l);
    set_x_ticks(l);
  }
  /* Panels that do not fill the page stand in its middle. */
  const double used = (double)l->columns * l->broad + (double)(l->columns - 1) * l->gap;
  l->left += 0.5 * fmax(0, l->width - l->left - l->right - used);
}

/* --- marks of x that are texts ------------------------------------------------------------------
 */

/* Room below a row of panels, of which only some may have texts. */
static double room_below(const layout *l, size_t row) {
  double longest = 0;
  for (size_t k = row * l->columns; l->turned && k < l->n && k < (row + 1) * l->columns; k++)
    for (size_t i = 0; i < l->p->n_marks; i++)
      if (is_of(l, &l->p->marks[i], &l->places[k]))
        longest = fmax(longest, text_cm(shown(l->p->marks[i].text).text));
  return longest > 0 ? fmin(longest, LONGEST_MARK) + 0.1 : LINE;
}

static void set_marks(layout *l) {
  l->turned |= !marks_fit(l);
  for (size_t i = 0; i < l->n; i++) l->places[i].x_numbers = room_below(l, i / l->columns);
}

/* --- rows from above ----------------------------------------------------------------------------
 */

/* A heading may stand out a little at both sides, but not over the page's edge. */
static double heading_wide(const layout *l) {
  return l->broad + fmin(l->gap - 0.25, 2 * fmax(0, l->right - MARGIN));
}

static size_t heading_lines(const layout *l, size_t row) {
  size_t most = 0, starts[MOST_HEADING], lengths[MOST_HEADING];
  int cut;
  for (size_t i = row * l->columns; i < l->n && i < (row + 1) * l->columns; i++) {
    const size_t n = text_break(panel_of(l, &l->places[i])->title, heading_wide(l), MOST_HEADING,
                                starts, lengths, &cut);
    if (n > most) most = n;
  }
  return most;
}

/* Whether panels have axes of their own, or headings between them that part the columns. */
static void see_axes(layout *l) {
  l->x_everywhere = 0;
  for (size_t i = 0; i < l->n; i++) {
    const figure_panel *panel = panel_of(l, &l->places[i]);
    l->x_everywhere |= *panel->x_axis != 0 || (l->p->named_rows && i >= l->columns);
    l->x_everywhere |= i >= l->columns && *panel->title;
  }
}

static int names_x(const layout *l, const place *at) {
  return at->lowest || l->p->named_rows || *panel_of(l, at)->x_axis;
}

static void set_rows(layout *l) {
  double y = MARGIN;
  for (size_t i = 0; i < l->n; i++)
    l->places[i].first = i % l->columns == 0, l->places[i].lowest = i + l->columns >= l->n;
  see_axes(l);
  for (size_t i = 0; i < l->n; i++) {
    l->places[i].left = l->left + (double)(i % l->columns) * (l->broad + l->gap);
    l->places[i].right = l->places[i].left + l->broad;
  }
  set_marks(l);
  for (size_t row = 0; row < l->rows; row++) {
    const size_t headed = heading_lines(l, row);
    int any_lowest = 0, any_named = 0;
    y += headed ? LINE * (double)headed + 0.08 : 0.1;
    for (size_t i = row * l->columns; i < l->n && i < (row + 1) * l->columns; i++) {
      place *at = &l->places[i];
      at->top = y, at->bottom = y + l->tall;
      any_lowest |= at->lowest;
      any_named |= names_x(l, at);
    }
    y += l->tall;
    if (any_lowest || any_named || l->x_everywhere) y += TIC + room_below(l, row) + 0.05;
    if (any_named) y += LINE + 0.03;
    if (row + 1 < l->rows) y += 0.15;
  }
  l->height = y;
}

/* --- the legend ---------------------------------------------------------------------------------
 */

static int has_legend(const figure_page *p) {
  return p->n_kinds > 0 || (!p->named_rows && !p->plain && p->n_lines > 1);
}

/* What the script's arrays of lines hold at that place: the lines, then what has only a legend. */
static const figure_line *scripted(const figure_page *p, size_t i) {
  return i < p->n_lines ? &p->lines[i] : &p->kinds[i - p->n_lines];
}

static int is_grey(const figure_page *p, size_t i) {
  return p->lines[i].look.colour == LOOK_GREY;
}

/* Grey lines are one entry together. */
static size_t legend_entries(const figure_page *p) {
  size_t n = 0, grey = 0;
  if (p->n_kinds > 0) return p->n_kinds;
  for (size_t i = 0; i < p->n_lines; i++) {
    if (p->lines[i].hidden) continue;
    n += !is_grey(p, i) || grey == 0;
    grey += (size_t)is_grey(p, i);
  }
  return n;
}

/* The line of that entry: those in colour, then the first of the grey ones. */
static size_t entry_line(const figure_page *p, size_t entry) {
  size_t n = 0;
  if (p->n_kinds > 0) return p->n_lines + entry;
  for (int grey = 0; grey < 2; grey++)
    for (size_t i = 0; i < p->n_lines; i++)
      if (!p->lines[i].hidden && is_grey(p, i) == grey && n++ == entry) return i;
  return 0;
}

static const char *entry_text(const figure_page *p, size_t i) {
  const figure_line *line = scripted(p, i);
  return i < p->n_lines && line->look.colour == LOOK_GREY ? "others" : line->name;
}

/* The width of each column where so many stand side by side, and of all together. */
static double entry_widths(const figure_page *p, size_t columns, double wide[MOST_ENTRIES]) {
  double sum = 0;
  memset(wide, 0, columns * sizeof *wide);
  for (size_t entry = 0; entry < legend_entries(p); entry++) {
    double *of = &wide[entry % columns];
    const char *text = entry_text(p, entry_line(p, entry));
    *of = fmax(*of, SAMPLE + 0.5 + text_cm(shown(text).text));
  }
  for (size_t i = 0; i < columns; i++) sum += wide[i];
  return sum - 0.38;
}

static void set_legend(layout *l) {
  const figure_page *p = l->p;
  if (!has_legend(p)) return;
  const size_t n = legend_entries(p);
  const double room = l->width - 2 * MARGIN;
  size_t columns = n < MOST_ENTRIES ? n : MOST_ENTRIES;
  while (columns > 1 && entry_widths(p, columns, l->entry_wide) > room) columns--;
  l->entry_rows = (n + columns - 1) / columns;
  l->entries_across = (n + l->entry_rows - 1) / l->entry_rows;
  l->legend_wide = fmin(room, entry_widths(p, l->entries_across, l->entry_wide));
}

/* --- writing ------------------------------------------------------------------------------------
 */

static double across(const layout *l, double x) {
  return x / l->width;
}

static double up(const layout *l, double y) {
  return 1 - y / l->height;
}

static void write_label(layout *l, const char *text, double x, double y, int where, int turned) {
  const size_t i = ++l->n_texts;
  fprintf(l->to, "text_of[%zu] = ", i), page_write_text(text, l->to);
  fprintf(l->to,
          "; text_x[%zu] = %.5f; text_y[%zu] = %.5f; text_to[%zu] = %d; text_turned[%zu] = "
          "%d\n",
          i, across(l, x), i, up(l, y), i, where, i, turned);
}

/* A part of a text, with an ellipsis where it was cut. */
static void write_part(layout *l, const char *text, size_t length, int cut, double x, double y,
                       int where, int turned) {
  char part[SHOWN_SIZE + 8];
  snprintf(part, sizeof part, "%.*s%s", (int)(length < SHOWN_SIZE ? length : SHOWN_SIZE), text,
           cut ? "…" : "");
  write_label(l, part, x, y, where, turned);
}

static void write_heading(layout *l, const place *at) {
  size_t starts[MOST_HEADING], lengths[MOST_HEADING];
  int cut;
  const shown_text title = shown(panel_of(l, at)->title);
  const size_t n = text_break(title.text, heading_wide(l), MOST_HEADING, starts, lengths, &cut);
  for (size_t i = 0; i < n; i++)
    write_part(l, title.text + starts[i], lengths[i], cut && i + 1 == n,
               0.5 * (at->left + at->right), at->top - LINE * (double)(n - i) + 0.5 * LINE - 0.04,
               TO_CENTRE, 0);
}

static void write_y_axis(layout *l, const place *at) {
  size_t starts[MOST_AXIS], lengths[MOST_AXIS];
  const shown_text axis = shown(panel_of(l, at)->axis);
  const size_t n = axis_lines(l, axis.text, starts, lengths);
  const double numbers = at->left - l->y_numbers - Y_SPACE - 0.06;
  for (size_t i = 0; i < n; i++)
    write_part(l, axis.text + starts[i], lengths[i], 0,
               numbers - LINE * (double)(n - i) + 0.5 * LINE, 0.5 * (at->top + at->bottom),
               TO_CENTRE, 1);
}

static void write_x_axis(layout *l, const place *at) {
  const figure_panel *panel = panel_of(l, at);
  const char *axis = l->p->named_rows ? panel->axis : *panel->x_axis ? panel->x_axis : l->p->x_axis;
  size_t start, length;
  int cut;
  const shown_text text = shown(axis);
  if (text_break(text.text, l->broad + l->gap - 0.1, 1, &start, &length, &cut) == 0) return;
  write_part(l, text.text, length, cut, 0.5 * (at->left + at->right),
             at->bottom + TIC + at->x_numbers + 0.05 + 0.5 * LINE, TO_CENTRE, 0);
}

static void write_cut(layout *l, const char *text, double most, double x, double y, int where,
                      int turned) {
  size_t start, length;
  int cut;
  const shown_text t = shown(text);
  if (text_break(t.text, most, 1, &start, &length, &cut) > 0)
    write_part(l, t.text, length, cut, x, y, where, turned);
}

/* A turned text in as many lines as there is room for. */
static void write_turned(layout *l, const char *text, size_t lines, double x, double y) {
  size_t starts[MOST_MARK_LINES], lengths[MOST_MARK_LINES];
  int cut;
  const shown_text t = shown(text);
  const size_t n = text_break(t.text, LONGEST_MARK, lines, starts, lengths, &cut);
  for (size_t i = 0; i < n; i++)
    write_part(l, t.text + starts[i], lengths[i], cut && i + 1 == n,
               x + LINE * ((double)i - 0.5 * (double)(n - 1)), y, TO_RIGHT, 1);
}

static void write_x_marks(layout *l, const place *at) {
  const figure_page *p = l->p;
  double behind = -INFINITY, longest;
  const double room = floor((marks_apart(l, &longest) - 0.1) / LINE);
  const size_t lines = room < 1 ? 1 : room < MOST_MARK_LINES ? (size_t)room : MOST_MARK_LINES;
  for (size_t i = 0; i < p->n_marks; i++) {
    if (!is_of(l, &p->marks[i], at)) continue;
    const double x = mark_x(l, at, i);
    if (l->turned) {
      if (x < behind + LINE) continue;
      behind = x;
      write_turned(l, p->marks[i].text, lines, x, at->bottom + TIC + 0.03);
      continue;
    }
    write_cut(l, p->marks[i].text, LONGEST_MARK, x, at->bottom + TIC + 0.5 * LINE, TO_CENTRE, 0);
  }
}

static void write_row_names(layout *l, const place *at) {
  const double rows = (double)shown_lines(l->p) + 0.2;
  size_t row = 0;
  for (size_t i = 0; i < l->p->n_lines; i++)
    if (!l->p->lines[i].hidden)
      write_cut(l, l->p->lines[i].name, l->y_numbers + 0.01, at->left - TIC - 0.05,
                at->top + l->tall * ((double)row++ + 0.6) / rows, TO_RIGHT, 0);
}

static void write_note(layout *l, const place *at) {
  double y = at->top + 0.25;
  char line[200];
  for (const char *c = panel_of(l, at)->note; *c; y += LINE) {
    const size_t n = strcspn(c, "\n");
    snprintf(line, sizeof line, "%.*s", (int)n, c);
    write_label(l, line, at->right - 0.08, y, TO_RIGHT, 0);
    c += n + (c[n] == '\n');
  }
}

static void write_panel_texts(layout *l, const place *at) {
  const int row_first = at->first || !(l->p->share || l->p->named_rows);
  if (*panel_of(l, at)->title) write_heading(l, at);
  if (row_first && !l->p->named_rows) write_y_axis(l, at);
  if (row_first && l->p->named_rows) write_row_names(l, at);
  if (names_x(l, at)) write_x_axis(l, at);
  if (at->lowest || l->x_everywhere || l->p->named_rows) write_x_marks(l, at);
  write_note(l, at);
}

/* Gnuplot's list of marks; without names where another panel shows them. */
static void write_ticks(FILE *to, const char *array, size_t number, const tick *ticks, size_t n,
                        int named) {
  fprintf(to, "%s[%zu] = \"", array, number);
  for (size_t i = 0; i < n; i++)
    fprintf(to, "%s'%s' %.10g%s", i ? ", " : "", named ? ticks[i].text : "", ticks[i].at,
            ticks[i].text[0] ? "" : " 1");
  if (n == 0) fputs("'' -1e300", to);
  fputs("\"\n", to);
}

static void write_panel(layout *l, size_t number) {
  const place *at = &l->places[number - 1];
  const figure_panel *panel = panel_of(l, at);
  FILE *to = l->to;
  fprintf(to,
          "panel_of[%zu] = %zu; at_left[%zu] = %.5f; at_right[%zu] = %.5f; at_top[%zu] = %.5f; "
          "at_bottom[%zu] = %.5f\n",
          number, at->panel, number, across(l, at->left), number, across(l, at->right), number,
          up(l, at->top), number, up(l, at->bottom));
  fprintf(to, "low[%zu] = %.10g; high[%zu] = %.10g; logarithmic[%zu] = %d\n", number, panel->low,
          number, panel->high, number, panel->logarithmic);
  fprintf(to, "x_low[%zu] = %.10g; x_high[%zu] = %.10g; x_logarithmic[%zu] = %d\n", number,
          panel->x_low, number, panel->x_high, number, panel->x_logarithmic);
  if (has_marks(l, at)) {
    size_t n = 0;
    fprintf(to, "x_tics[%zu] = \"", number);
    for (size_t i = 0; i < l->p->n_marks; i++)
      if (is_of(l, &l->p->marks[i], at))
        fprintf(to, "%s'' %.10g", n++ ? ", " : "", l->p->marks[i].x);
    fputs("\"\n", to);
  } else {
    write_ticks(to, "x_tics", number, at->x, at->n_x,
                at->lowest || l->x_everywhere || l->p->named_rows);
  }
  write_ticks(to, "y_tics", number, at->y, at->n_y, at->first || !l->p->share);
}

/* Some seven marks a line, at different points of neighbours. */
static size_t points_to_a_mark(const figure_page *p) {
  const size_t curves = p->n_panels * (p->n_lines ? p->n_lines : 1);
  return p->all_marks || p->n_points < 12 * curves ? 1 : p->n_points / (7 * curves);
}

static void write_lines(const figure_page *p, FILE *to) {
  static const char *const arrays[] = {"line_colour", "line_dash", "line_mark",
                                       "line_grey",   "in_order",  "row_of"};
  size_t n = 0, row = 0;
  fprintf(to, "lines = %zu\nrows = %zu\nkinds = %zu\npoints_to_a_mark = %zu\n", p->n_lines,
          shown_lines(p), p->n_kinds, points_to_a_mark(p));
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
    fprintf(to, "array %s[%zu]\n", arrays[i], p->n_lines + p->n_kinds + 1);
  for (size_t i = 0; i < p->n_lines; i++)
    fprintf(to, "row_of[%zu] = %zu\n", i + 1, p->lines[i].hidden ? 0 : ++row);
  for (int grey = 1; grey >= 0; grey--) /* colours are drawn over grey */
    for (size_t i = 0; i < p->n_lines; i++)
      if ((p->lines[i].look.colour == LOOK_GREY) == grey)
        fprintf(to, "in_order[%zu] = %zu\n", ++n, i + 1);
  for (size_t i = 0; i < p->n_lines + p->n_kinds; i++) {
    const look k = scripted(p, i)->look;
    fprintf(to,
            "line_colour[%zu] = '%s'; line_dash[%zu] = '%s'; line_mark[%zu] = %d; "
            "line_grey[%zu] = %d\n",
            i + 1, look_colour(k.colour), i + 1, look_dash(k.dash), i + 1, k.mark, i + 1,
            k.colour == LOOK_GREY);
  }
}

static void write_legend(layout *l, double top) {
  const double from = 0.5 * (l->width - l->legend_wide);
  for (size_t entry = 0; has_legend(l->p) && entry < legend_entries(l->p); entry++) {
    const size_t i = entry_line(l->p, entry);
    const size_t column = entry % l->entries_across;
    double x = from;
    for (size_t k = 0; k < column; k++) x += l->entry_wide[k];
    const double y = top + LINE * ((double)(entry / l->entries_across) + 0.5);
    const size_t s = ++l->n_samples;
    fprintf(l->to,
            "sample_line[%zu] = %zu; sample_x[%zu] = %.5f; sample_y[%zu] = %.5f; "
            "sample_is[%zu] = %d\n",
            s, i + 1, s, across(l, x), s, up(l, y), s, (int)scripted(l->p, i)->sample);
    write_cut(l, entry_text(l->p, i), fmin(l->entry_wide[column] - SAMPLE - 0.4, l->width - 1.2),
              x + SAMPLE + 0.12, y, TO_LEFT, 0);
  }
}

/* --- the foot -----------------------------------------------------------------------------------
 */

/* One text below the panels, cut into lines; where it does not fit the last one ends in dots, and
 * says of how many parts it is (0: of none). Writes them where `top` is not negative. Returns how
 * many lines. */
static size_t foot_lines(layout *l, const char *before, const char *text, size_t parts,
                         double top) {
  char *all = NULL;
  size_t size = 0, n = 0;
  FILE *join = text ? open_memstream(&all, &size) : NULL;
  if (!join) return 0;
  fputs(before, join);
  shown_write(text, strlen(text), join);
  fclose(join);
  const double most = l->width - 2 * MARGIN - 0.1;
  for (const char *rest = all; rest && *rest && n < NOTE_LINES; n++) {
    char line[SHOWN_SIZE], more[48] = "";
    size_t length = text_line(rest, most);
    if (rest[length] && n + 1 == NOTE_LINES) {
      snprintf(more, sizeof more, "...");
      if (parts > 0) snprintf(more, sizeof more, "... (%zu in all)", parts);
      length = text_line(rest, most - text_cm(more));
    }
    snprintf(line, sizeof line, "%.*s%s", (int)(length < 400 ? length : 400), rest, more);
    if (top >= 0) write_label(l, line, MARGIN, top + LINE * ((double)n + 0.5), TO_LEFT, 0);
    rest += length;
  }
  free(all);
  return n;
}

static size_t write_foot(layout *l, double top) {
  const size_t n = foot_lines(l, "not shown: ", l->p->left_out, l->p->n_left_out, top);
  return n + foot_lines(l, "", l->p->remark, 0, top < 0 ? top : top + LINE * (double)n);
}

/* --- all of it ----------------------------------------------------------------------------------
 */

static void write_bar(layout *l) {
  const figure_page *p = l->p;
  tick ticks[MOST_TICKS];
  fprintf(l->to, "bar = %d\n", *p->bar_axis != 0);
  if (!*p->bar_axis) return;
  const place *last = &l->places[l->n - 1];
  const double top = l->places[0].top, bottom = last->bottom, x = l->width - bar_room(l) + 0.25;
  const double tall = fmin(bottom - top, 6), from = 0.5 * (top + bottom) - 0.5 * tall;
  const size_t n = axis_ticks(p->bar_low, p->bar_high, p->bar_logarithmic, 6, ticks);
  fprintf(l->to,
          "bar_x = %.5f; bar_y = %.5f; bar_broad = %.5f; bar_tall = %.5f\nbar_low = %.10g; "
          "bar_high = %.10g; bar_logarithmic = %d\narray bar_tics[1]\n",
          across(l, x), up(l, from + tall), BAR / l->width, tall / l->height, p->bar_low,
          p->bar_high, p->bar_logarithmic);
  write_ticks(l->to, "bar_tics", 1, ticks, n, 1);
  write_cut(l, p->bar_axis, l->height - 0.2, l->width - MARGIN - 0.5 * LINE,
            0.5 * (from + from + tall), TO_CENTRE, 1);
}

static void declare_arrays(const layout *l) {
  static const char *const of_panels[] = {
      "panel_of", "at_left", "at_right", "at_top",        "at_bottom", "low",        "high",
      "x_low",    "x_high",  "x_tics",   "x_logarithmic", "y_tics",    "logarithmic"};
  static const char *const of_texts[] = {"text_of", "text_x", "text_y", "text_to", "text_turned"};
  static const char *const of_samples[] = {"sample_line", "sample_x", "sample_y", "sample_is"};
  const size_t texts = l->n * (6 + MOST_HEADING + MOST_AXIS + l->p->n_marks + l->p->n_lines) +
                       l->p->n_lines + l->p->n_kinds + 2 * NOTE_LINES + 8;
  for (size_t i = 0; i < sizeof of_panels / sizeof *of_panels; i++)
    fprintf(l->to, "array %s[%zu]\n", of_panels[i], l->n);
  for (size_t i = 0; i < sizeof of_texts / sizeof *of_texts; i++)
    fprintf(l->to, "array %s[%zu]\n", of_texts[i], texts);
  for (size_t i = 0; i < sizeof of_samples / sizeof *of_samples; i++)
    fprintf(l->to, "array %s[%zu]\n", of_samples[i], l->p->n_lines + l->p->n_kinds + 1);
}

static void write_all(layout *l) {
  const double legend = l->height + (l->entry_rows ? 0.1 : 0.0);
  const double foot = legend + LINE * (double)l->entry_rows + 0.08;
  const size_t lines = write_foot(l, -1);
  l->height = foot + LINE * (double)lines + (lines ? 0.08 : 0);
  fprintf(l->to, "panels = %zu\npanels_in_all = %zu\npage_width = %.5g\npage_height = %.5g\n", l->n,
          l->p->n_panels, l->width, l->height);
  declare_arrays(l);
  write_lines(l->p, l->to);
  for (size_t i = 0; i < l->n; i++) write_panel(l, i + 1);
  for (size_t i = 0; i < l->n; i++) write_panel_texts(l, &l->places[i]);
  write_bar(l);
  write_legend(l, legend);
  write_foot(l, foot);
  fprintf(l->to, "texts = %zu\nsamples = %zu\n", l->n_texts, l->n_samples);
}

gl_status layout_write(figure_page *p, FILE *to, gl_error *err) {
  layout l = {.p = p, .to = to, .width = page_width(p)};
  assert(p->n_panels > 0);
  l.places = calloc(p->n_panels, sizeof *l.places);
  gl_status status = l.places ? GL_OK : gl_fail_memory(err, "the layout of a figure");
  if (status == GL_OK) status = choose_panels(&l, err);
  if (status == GL_OK) status = choose_lines(p, err);
  if (status == GL_OK) status = choose_colours(p, err);
  if (status == GL_OK) {
    set_ranges(p);
    set_sizes(&l);
    set_rows(&l);
    set_legend(&l);
    write_all(&l);
  }
  free(l.places);
  return status;
}
