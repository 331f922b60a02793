/* Lays out a page: selects the visible panels and computes their positions. */
#include "analysis/plot/layout.h"

#include "core/base/display_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- selection of panels, settings, lines and colours --- */

static bool panel_varies(const figure_panel *panel) {
  if (!panel_has_values(panel)) return false;
  return panel->kept || panel->largest - panel->least > 1e-12 * fabs(panel->largest);
}

/* Adds a remark with the single number, if any, that the omitted panels would have shown. */
static gl_status remark_constant(figure_page *p, size_t from, size_t to, gl_error *err) {
  double value = NAN;
  char text[24];
  for (size_t i = from; i < to; i++)
    if (p->panels[i].least <= p->panels[i].largest) value = p->panels[i].least;
  const figure_panel *first = &p->panels[from];
  if (isnan(value))
    return page_absent(p, err,
                       *first->x_axis ? "%.90s against %.90s (no values)" : "%.90s%.0s (no values)",
                       first->axis, first->x_axis);
  int digits = 0;
  while (digits < 4 && fabs(value - round(value * pow(10, digits)) / pow(10, digits)) > 1e-9)
    digits++;
  tick_text(value, digits, text);
  return page_leave_out(p, err, "%s (%s everywhere)", p->panels[from].axis, text);
}

static bool has_points(const figure_panel *panel) {
  return panel->least <= panel->largest;
}

/* Returns true if no panel of the column has points, among the rows with a common range. */
static bool is_column_empty(const layout *l, size_t column) {
  for (size_t i = 0; i < l->n; i++)
    if (l->places[i].panel % l->p->share == column && has_points(layout_panel(l, &l->places[i])))
      return false;
  return true;
}

static gl_status drop_column(layout *l, size_t column, gl_error *err) {
  const char *heading = "";
  size_t kept = 0;
  for (size_t i = 0; i < l->n; i++) {
    const int here = l->places[i].panel % l->p->share == column;
    if (here && !*heading) heading = layout_panel(l, &l->places[i])->title;
    if (!here) l->places[kept++] = l->places[i];
  }
  l->n = kept;
  return *heading ? page_leave_out(l->p, err, "%.150s (no values)", heading) : GL_OK;
}

/* Omits settings without points in any panel, if others have points. */
static gl_status drop_empty_columns(layout *l, gl_error *err) {
  figure_page *p = l->p;
  size_t left = p->share, most = p->share;
  gl_status status = GL_OK;
  int any = 0;
  for (size_t i = 0; i < l->n; i++) any |= has_points(layout_panel(l, &l->places[i]));
  for (size_t column = 0; column < most && any && status == GL_OK; column++) {
    if (!is_column_empty(l, column)) continue;
    status = drop_column(l, column, err);
    left--;
  }
  if (p->wide == p->share || p->wide > left) p->wide = left;
  return status;
}

/* Selects the panels whose values vary. Panels with a common range are kept or omitted together. */
static gl_status choose_varying_rows(layout *l, gl_error *err) {
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
    if (!any) status = remark_constant(p, from, to, err);
    for (size_t i = from; i < to && any; i++) l->places[l->n++].panel = i;
    if (any && l->n == to - from)
      for (size_t i = from; i < to; i++) /* titles move to the first visible row */
        if (!*p->panels[i].title && from > 0)
          memcpy(p->panels[i].title, p->panels[i - from].title, sizeof p->panels[i].title);
  }
  return status;
}

static gl_status choose_shown_panels(layout *l, gl_error *err) {
  gl_status status = choose_varying_rows(l, err);
  return status == GL_OK && l->p->share > 1 ? drop_empty_columns(l, err) : status;
}

size_t layout_shown_lines(const figure_page *p) {
  size_t n = 0;
  for (size_t i = 0; i < p->n_lines; i++) n += !p->lines[i].hidden;
  return n;
}

/* --- lines in colour and in grey --- */

enum { MOST_HIDDEN = 3 }; /* more lines without a value than this are counted, not named */

/* Hides lines without a value and adds them to the list of what the figure omits. */
static gl_status hide_empty_lines(figure_page *p, gl_error *err) {
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

/* Adds a remark that names the grey lines. */
static gl_status remark_grey(figure_page *p, gl_error *err) {
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

/* Makes lines grey: all that the request does not highlight, or those beyond the number of colours.
 */
static gl_status choose_colours(figure_page *p, gl_error *err) {
  const char *wanted = p->q->highlight;
  size_t named = 0, coloured = 0;
  for (size_t i = 0; i < p->n_lines; i++)
    named += wanted && figure_is_named(wanted, p->lines[i].name);
  if (named == 0 && (p->named_rows || layout_shown_lines(p) <= LOOK_COLOURS)) return GL_OK;
  for (size_t i = 0; i < p->n_lines; i++) {
    if (p->lines[i].hidden) continue;
    const int chosen = named ? figure_is_named(wanted, p->lines[i].name) : coloured < LOOK_COLOURS;
    coloured += (size_t)chosen;
    if (!chosen) p->lines[i].look = (look){LOOK_GREY, 0, p->lines[i].look.mark, 0};
  }
  return p->named_rows ? GL_OK : remark_grey(p, err);
}

/* --- the ranges of the axes --- */

/* Scripts have ten digits per number, so a range narrower than this, relative to its ends, may have
 * equal ends in the script. */
static const double POINT = 1e-6;

/* Adds space for symbols at the ends of a range; a range that is empty or a single point is
 * widened. Returns true if a logarithmic axis cuts off its lower end. */
static bool pad_range(const figure_page *p, double *low, double *high, bool logarithmic) {
  bool is_cut = false;
  if (!(*low <= *high)) *low = logarithmic ? 1 : 0, *high = 1;
  if (logarithmic) {
    is_cut = *low < *high * pow(10, -p->decades);
    *low = fmax(*low, *high * pow(10, -p->decades));
    const double room = p->tight && *high > *low ? 1 : pow(fmax(*high / *low, 1.5), 0.06);
    *low /= room, *high *= room;
  } else {
    const int is_point = *high - *low <= POINT * fmax(fabs(*low), fabs(*high));
    double room = p->tight ? 0 : 0.06 * (*high - *low);
    if (is_point) room = fmax(0.05 * fabs(*high), 0.015);
    *low -= room, *high += room;
  }
  return is_cut;
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

/* Sets the final ranges of all panels, and adds a remark if an axis does not show all values. In
 * panels with named rows, values are on the x axis and rows at y = -1, -2, ... */
static gl_status set_ranges(figure_page *p, gl_error *err) {
  bool is_cut = false;
  share_ranges(p);
  for (size_t i = 0; i < p->n_panels; i++) {
    figure_panel *panel = &p->panels[i];
    if (!*panel->x_axis) {
      panel->x_low = p->x_low, panel->x_high = p->x_high;
      panel->x_logarithmic = p->x_logarithmic;
    }
    if (p->named_rows) {
      is_cut |= pad_range(p, &panel->low, &panel->high, panel->logarithmic);
      panel->x_low = panel->low, panel->x_high = panel->high;
      panel->x_logarithmic = panel->logarithmic;
      panel->low = -(double)layout_shown_lines(p) - 0.6, panel->high = -0.4;
      panel->logarithmic = 0;
      continue;
    }
    is_cut |= pad_range(p, &panel->low, &panel->high, panel->logarithmic);
    is_cut |= pad_range(p, &panel->x_low, &panel->x_high, panel->x_logarithmic);
  }
  if (!is_cut) return GL_OK;
  return page_remark(p, err, "Logarithmic axes show %g decades; smaller values are beyond them",
                     p->decades);
}

/* --- horizontal layout: axis labels, panel widths, panels per row --- */

static const double BROADEST = 9.5; /* maximum width of a panel */

static void set_y_ticks(layout *l) {
  l->y_numbers = 0;
  for (size_t i = 0; i < l->n; i++) {
    place *at = &l->places[i];
    const figure_panel *panel = layout_panel(l, at);
    at->n_y = l->p->named_rows
                  ? 0
                  : ticks_of_axis(panel->low, panel->high, panel->logarithmic,
                                  (size_t)fmax(2, floor(l->panel_height / 0.6)), at->y);
    l->y_numbers = fmax(l->y_numbers, ticks_widest(at->y, at->n_y));
  }
  for (size_t i = 0; i < l->p->n_lines && l->p->named_rows; i++)
    if (!l->p->lines[i].hidden)
      l->y_numbers = fmax(l->y_numbers, text_cm(shown(l->p->lines[i].name).text));
  l->y_numbers = fmin(l->y_numbers, 0.4 * l->page_width);
}

bool layout_is_of(const layout *l, const figure_mark *mark, const place *at) {
  return mark->panel == at->panel || (mark->panel == PAGE_MARK && !*layout_panel(l, at)->x_axis);
}

bool layout_has_marks(const layout *l, const place *at) {
  for (size_t i = 0; i < l->p->n_marks; i++)
    if (layout_is_of(l, &l->p->marks[i], at)) return true;
  return false;
}

/* Where x lies on the x axis of a panel: 0 at its left end, 1 at its right end. */
static double tick_place(const figure_panel *panel, double x) {
  const double low = panel->x_low, high = panel->x_high;
  return panel->x_logarithmic ? log(x / low) / log(high / low) : (x - low) / (high - low);
}

/* Whether the tick labels of an x axis of width `broad` fit side by side. */
static int labels_fit(const figure_panel *panel, const place *at, double broad) {
  double behind = -INFINITY;
  for (size_t k = 0; k < at->n_x; k++) {
    if (!at->x[k].text[0]) continue;
    const double centre = broad * tick_place(panel, at->x[k].at),
                 half = 0.5 * text_cm(at->x[k].text);
    if (!(centre - half >= behind + 0.16)) return 0;
    behind = centre + half;
  }
  return 1;
}

/* Sets as many tick labels as fit side by side. */
static void set_x_ticks(layout *l) {
  for (size_t i = 0; i < l->n; i++) {
    place *at = &l->places[i];
    const figure_panel *panel = layout_panel(l, at);
    at->n_x = 0;
    if (layout_has_marks(l, at)) continue;
    for (size_t most = 8; most >= 2; most--) {
      at->n_x = ticks_of_axis(panel->x_low, panel->x_high, panel->x_logarithmic, most, at->x);
      if (labels_fit(panel, at, l->panel_width)) break;
    }
  }
}

size_t layout_axis_lines(const layout *l, const char *axis, size_t *starts, size_t *lengths) {
  int cut;
  return text_break(axis, fmax(l->panel_height, 2.6), MOST_AXIS, starts, lengths, &cut);
}

static double y_axis_room(const layout *l) {
  size_t most = 0, starts[MOST_AXIS], lengths[MOST_AXIS];
  for (size_t i = 0; i < l->n && !l->p->named_rows; i++) {
    const size_t n = layout_axis_lines(l, layout_panel(l, &l->places[i])->axis, starts, lengths);
    if (n > most) most = n;
  }
  return LINE * (double)most;
}

double layout_bar_room(const layout *l) {
  const figure_page *p = l->p;
  tick ticks[MOST_TICKS];
  if (!*p->bar_axis) return 0;
  const size_t n =
      ticks_of_axis(p->bar_low, p->bar_high, p->bar_logarithmic, MOST_BAR_TICKS, ticks);
  return 0.25 + BAR + 0.3 + ticks_widest(ticks, n) + LINE + 0.1;
}

static void fit_columns(layout *l) {
  const figure_page *p = l->p;
  const double room = l->page_width - l->left - l->right;
  size_t fit = (size_t)fmax(
      1, floor((room + l->gap) / (p->share ? PANEL_NARROWEST_CM - 0.35 : PANEL_NARROWEST_CM)));
  l->columns = p->wide < l->n ? p->wide : l->n;
  if (l->columns > fit) l->columns = fit;
  if (l->columns < 1) l->columns = 1;
  l->rows = (l->n + l->columns - 1) / l->columns;
  l->panel_width = (room - (double)(l->columns - 1) * l->gap) / (double)l->columns;
  if (l->panel_width > BROADEST && p->n_kinds == 0) l->panel_width = BROADEST;
}

double layout_mark_x(const layout *l, const place *at, size_t i) {
  const figure_panel *panel = layout_panel(l, at);
  return at->left +
         l->panel_width * (l->p->marks[i].x - panel->x_low) / (panel->x_high - panel->x_low);
}

double layout_marks_apart(const layout *l, double *longest) {
  const figure_page *p = l->p;
  double nearest = l->panel_width;
  *longest = 0;
  for (size_t k = 0; k < l->n; k++) {
    double before = NAN;
    for (size_t i = 0; i < p->n_marks; i++) {
      if (!layout_is_of(l, &p->marks[i], &l->places[k])) continue;
      const double x = layout_mark_x(l, &l->places[k], i);
      *longest = fmax(*longest, text_cm(shown(p->marks[i].text).text));
      if (isfinite(before)) nearest = fmin(nearest, x - before);
      before = x;
    }
  }
  return nearest;
}

/* Returns true if the labels of the x axis fit side by side; otherwise they are rotated. */
static bool marks_fit(const layout *l) {
  double longest;
  const double nearest = layout_marks_apart(l, &longest);
  return longest + 0.12 <= nearest;
}

/* How far the marks of the x axis extend beyond the right or the left edge of their panels. */
static double marks_overhang(const layout *l, bool to_left) {
  double most = 0;
  for (size_t k = 0; k < l->n && !l->turned; k++)
    for (size_t i = 0; i < l->p->n_marks; i++) {
      const place *at = &l->places[k];
      if (!layout_is_of(l, &l->p->marks[i], at)) continue;
      const double half = 0.5 * fmin(LONGEST_MARK, text_cm(shown(l->p->marks[i].text).text));
      const double x = layout_mark_x(l, at, i);
      most = fmax(most, half - (to_left ? x - at->left : at->left + l->panel_width - x));
    }
  return most;
}

/* The same for the labels of ticks. */
static double ticks_overhang(const layout *l, bool to_left) {
  double most = 0;
  for (size_t k = 0; k < l->n; k++) {
    const place *at = &l->places[k];
    for (size_t i = 0; i < at->n_x; i++) {
      const double from_left = l->panel_width * tick_place(layout_panel(l, at), at->x[i].at);
      const double half = 0.5 * text_cm(at->x[i].text);
      most = fmax(most, half - (to_left ? from_left : l->panel_width - from_left));
    }
  }
  return most;
}

/* Space between panels in which the last label of one does not touch the first of the next. */
static double labels_gap(const layout *l) {
  const double marks = marks_overhang(l, false) + marks_overhang(l, true);
  return fmax(marks, ticks_overhang(l, false) + ticks_overhang(l, true)) + 0.12;
}

/* Space needed on both sides of a panel: half of the widest x label, or part of the last label. */
static double overhang(const layout *l) {
  double most = fmax(0.2, marks_overhang(l, false));
  for (size_t i = 0; i < l->n; i++)
    most = fmax(most, 0.5 * ticks_widest(l->places[i].x, l->places[i].n_x));
  return most;
}

static void set_columns(layout *l) {
  const figure_page *p = l->p;
  l->panel_height = p->tall;
  for (int round = 0; round < 3; round++) {
    if (p->named_rows)
      l->panel_height = 0.36 * (double)layout_shown_lines(p) + 0.25;
    else if (p->tall <= 0)
      l->panel_height = l->panel_width <= 0 ? 3 : fmin(fmax(0.8 * l->panel_width, 2.4), 4.6);
    set_y_ticks(l);
    l->left = MARGIN + y_axis_room(l) + 0.06 + l->y_numbers + Y_SPACE;
    /* Reserving space for labels narrows the panels; labels that became rotated stay rotated. */
    l->turned |= round > 0 && !marks_fit(l);
    const double out = round ? overhang(l) : 0.3;
    l->right = layout_bar_room(l) + (*p->bar_axis ? 0 : fmax(0.15, out));
    l->gap = p->share || p->named_rows ? fmax(0.3, 1.3 * out) : l->left + fmax(0.05, out - 0.2);
    l->gap = fmax(l->gap, round ? labels_gap(l) : 0);
    fit_columns(l);
    set_x_ticks(l);
  }
  /* Panels that do not fill the page are centred. */
  const double used = (double)l->columns * l->panel_width + (double)(l->columns - 1) * l->gap;
  l->left += 0.5 * fmax(0, l->page_width - l->left - l->right - used);
}

/* Vertical layout: titles, panels, and labels below them. */

/* Space below a row of panels; some panels may have no labels. */
static double room_below(const layout *l, size_t row) {
  double longest = 0;
  for (size_t k = row * l->columns; l->turned && k < l->n && k < (row + 1) * l->columns; k++)
    for (size_t i = 0; i < l->p->n_marks; i++)
      if (layout_is_of(l, &l->p->marks[i], &l->places[k]))
        longest = fmax(longest, text_cm(shown(l->p->marks[i].text).text));
  return longest > 0 ? fmin(longest, LONGEST_MARK) + 0.1 : LINE;
}

static void set_marks(layout *l) {
  l->turned |= !marks_fit(l);
  for (size_t i = 0; i < l->n; i++) l->places[i].x_numbers = room_below(l, i / l->columns);
}

/* --- rows from top to bottom --- */

double layout_heading_wide(const layout *l) {
  return l->panel_width + fmin(l->gap - 0.25, 2 * fmax(0, l->right - MARGIN));
}

static size_t heading_lines(const layout *l, size_t row) {
  size_t most = 0, starts[MOST_HEADING], lengths[MOST_HEADING];
  int cut;
  for (size_t i = row * l->columns; i < l->n && i < (row + 1) * l->columns; i++) {
    const size_t n = text_break(layout_panel(l, &l->places[i])->title, layout_heading_wide(l),
                                MOST_HEADING, starts, lengths, &cut);
    if (n > most) most = n;
  }
  return most;
}

/* Determines whether every panel has x labels below it: panels have their own axes, or rows of
 * panels have titles between them. */
static void see_axes(layout *l) {
  l->x_everywhere = 0;
  for (size_t i = 0; i < l->n; i++) {
    const figure_panel *panel = layout_panel(l, &l->places[i]);
    l->x_everywhere |= *panel->x_axis != 0 || (l->p->named_rows && i >= l->columns);
    l->x_everywhere |= i >= l->columns && *panel->title;
  }
}

bool layout_names_x(const layout *l, const place *at) {
  return at->lowest || l->p->named_rows || *layout_panel(l, at)->x_axis;
}

static void set_rows(layout *l) {
  double y = MARGIN;
  for (size_t i = 0; i < l->n; i++)
    l->places[i].first = i % l->columns == 0, l->places[i].lowest = i + l->columns >= l->n;
  see_axes(l);
  for (size_t i = 0; i < l->n; i++) {
    l->places[i].left = l->left + (double)(i % l->columns) * (l->panel_width + l->gap);
    l->places[i].right = l->places[i].left + l->panel_width;
  }
  set_marks(l);
  for (size_t row = 0; row < l->rows; row++) {
    const size_t headed = heading_lines(l, row);
    int any_lowest = 0, any_named = 0;
    y += headed ? LINE * (double)headed + 0.08 : 0.1;
    for (size_t i = row * l->columns; i < l->n && i < (row + 1) * l->columns; i++) {
      place *at = &l->places[i];
      at->top = y, at->bottom = y + l->panel_height;
      any_lowest |= at->lowest;
      any_named |= layout_names_x(l, at);
    }
    y += l->panel_height;
    if (any_lowest || any_named || l->x_everywhere) y += TIC + room_below(l, row) + 0.05;
    if (any_named) y += LINE + 0.03;
    if (row + 1 < l->rows) y += 0.15;
  }
  l->page_height = y;
}

/* The page's legend: its entries and columns. */

bool layout_has_legend(const figure_page *p) {
  return p->n_kinds > 0 || (!p->named_rows && !p->plain && p->n_lines > 1);
}

const figure_line *layout_scripted(const figure_page *p, size_t i) {
  return i < p->n_lines ? &p->lines[i] : &p->kinds[i - p->n_lines];
}

static bool is_grey(const figure_page *p, size_t i) {
  return p->lines[i].look.colour == LOOK_GREY;
}

size_t layout_legend_entries(const figure_page *p) {
  size_t n = 0, grey = 0;
  if (p->n_kinds > 0) return p->n_kinds;
  for (size_t i = 0; i < p->n_lines; i++) {
    if (p->lines[i].hidden) continue;
    n += !is_grey(p, i) || grey == 0;
    grey += (size_t)is_grey(p, i);
  }
  return n;
}

size_t layout_entry_line(const figure_page *p, size_t entry) {
  size_t n = 0;
  if (p->n_kinds > 0) return p->n_lines + entry;
  for (int grey = 0; grey < 2; grey++)
    for (size_t i = 0; i < p->n_lines; i++)
      if (!p->lines[i].hidden && is_grey(p, i) == grey && n++ == entry) return i;
  return 0;
}

const char *layout_entry_text(const figure_page *p, size_t i) {
  const figure_line *line = layout_scripted(p, i);
  return i < p->n_lines && line->look.colour == LOOK_GREY ? "others" : line->name;
}

/* Computes the width of each legend column for the given number of columns. Returns the total. */
static double entry_widths(const figure_page *p, size_t columns, double wide[MOST_ENTRIES]) {
  double sum = 0;
  memset(wide, 0, columns * sizeof *wide);
  for (size_t entry = 0; entry < layout_legend_entries(p); entry++) {
    double *of = &wide[entry % columns];
    const char *text = layout_entry_text(p, layout_entry_line(p, entry));
    *of = fmax(*of, SAMPLE + 0.5 + text_cm(shown(text).text));
  }
  for (size_t i = 0; i < columns; i++) sum += wide[i];
  return sum - 0.38;
}

static void set_legend(layout *l) {
  const figure_page *p = l->p;
  if (!layout_has_legend(p)) return;
  const size_t n = layout_legend_entries(p);
  const double room = l->page_width - 2 * MARGIN;
  size_t columns = n < MOST_ENTRIES ? n : MOST_ENTRIES;
  while (columns > 1 && entry_widths(p, columns, l->entry_wide) > room) columns--;
  l->entry_rows = (n + columns - 1) / columns;
  l->entries_across = (n + l->entry_rows - 1) / l->entry_rows;
  /* Fewer columns may be wider: long entries that shared a column can now stand in two. */
  if (entry_widths(p, l->entries_across, l->entry_wide) > room) l->entries_across = columns;
  l->legend_wide = fmin(room, entry_widths(p, l->entries_across, l->entry_wide));
}

/* --- entry points --- */

gl_status layout_arrange(layout *l, gl_error *err) {
  gl_status status = choose_shown_panels(l, err);
  if (status == GL_OK) status = hide_empty_lines(l->p, err);
  if (status == GL_OK) status = choose_colours(l->p, err);
  if (status == GL_OK) status = set_ranges(l->p, err);
  if (status != GL_OK) return status;
  set_columns(l);
  set_rows(l);
  set_legend(l);
  return GL_OK;
}
