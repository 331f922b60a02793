/* What of a page is shown: panels, settings, lines, and which lines have a colour. */
#include "analysis/plot/layout_internal.h"
#include "analysis/plot/ticks.h"
#include "core/base/shown.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    if (l->places[i].panel % l->p->share == column && has_points(layout_panel(l, &l->places[i])))
      return 0;
  return 1;
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

/* Leaves out the settings of which no panel has a point, where others have. */
static gl_status choose_columns(layout *l, gl_error *err) {
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

gl_status layout_choose_panels(layout *l, gl_error *err) {
  gl_status status = choose_rows(l, err);
  return status == GL_OK && l->p->share > 1 ? choose_columns(l, err) : status;
}

size_t layout_shown_lines(const figure_page *p) {
  size_t n = 0;
  for (size_t i = 0; i < p->n_lines; i++) n += !p->lines[i].hidden;
  return n;
}

/* --- lines in colour and in grey --- */

enum { MOST_HIDDEN = 3 }; /* lines that are named as having no value */

gl_status layout_choose_lines(figure_page *p, gl_error *err) {
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

gl_status layout_choose_colours(figure_page *p, gl_error *err) {
  const char *wanted = p->q->highlight;
  size_t named = 0, coloured = 0;
  for (size_t i = 0; i < p->n_lines; i++)
    named += wanted && figure_is_named(wanted, p->lines[i].name);
  if (named == 0 && (p->named_rows || layout_shown_lines(p) <= LOOK_COLOURS)) return GL_OK;
  for (size_t i = 0; i < p->n_lines; i++) {
    if (p->lines[i].hidden) continue;
    const int chosen = named ? figure_is_named(wanted, p->lines[i].name) : coloured < LOOK_COLOURS;
    coloured += (size_t)chosen;
    if (!chosen) p->lines[i].look.colour = LOOK_GREY, p->lines[i].look.dash = 0;
  }
  return p->named_rows ? GL_OK : tell_grey(p, err);
}

/* The ranges of a page's axes. */

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

void layout_set_ranges(figure_page *p) {
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
      panel->low = -(double)layout_shown_lines(p) - 0.6, panel->high = -0.4;
      panel->logarithmic = 0;
      continue;
    }
    pad_range(p, &panel->low, &panel->high, panel->logarithmic);
    pad_range(p, &panel->x_low, &panel->x_high, panel->x_logarithmic);
  }
}
