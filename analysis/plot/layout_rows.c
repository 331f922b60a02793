/* Down a page: headings, panels, and what stands below them. */
#include "analysis/plot/layout_internal.h"

#include "analysis/plot/text.h"
#include "core/base/shown.h"

#include <math.h>

/* Room below a row of panels, of which only some may have texts. */
static double room_below(const layout *l, size_t row) {
  double longest = 0;
  for (size_t k = row * l->columns; l->turned && k < l->n && k < (row + 1) * l->columns; k++)
    for (size_t i = 0; i < l->p->n_marks; i++)
      if (layout_is_of(l, &l->p->marks[i], &l->places[k]))
        longest = fmax(longest, text_cm(shown(l->p->marks[i].text).text));
  return longest > 0 ? fmin(longest, LONGEST_MARK) + 0.1 : LINE;
}

static void set_marks(layout *l) {
  l->turned |= !layout_marks_fit(l);
  for (size_t i = 0; i < l->n; i++) l->places[i].x_numbers = room_below(l, i / l->columns);
}

/* --- rows from above --- */

double layout_heading_wide(const layout *l) {
  return l->broad + fmin(l->gap - 0.25, 2 * fmax(0, l->right - MARGIN));
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

/* Whether panels have axes of their own, or headings between them that part the columns. */
static void see_axes(layout *l) {
  l->x_everywhere = 0;
  for (size_t i = 0; i < l->n; i++) {
    const figure_panel *panel = layout_panel(l, &l->places[i]);
    l->x_everywhere |= *panel->x_axis != 0 || (l->p->named_rows && i >= l->columns);
    l->x_everywhere |= i >= l->columns && *panel->title;
  }
}

int layout_names_x(const layout *l, const place *at) {
  return at->lowest || l->p->named_rows || *layout_panel(l, at)->x_axis;
}

void layout_set_rows(layout *l) {
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
      any_named |= layout_names_x(l, at);
    }
    y += l->tall;
    if (any_lowest || any_named || l->x_everywhere) y += TIC + room_below(l, row) + 0.05;
    if (any_named) y += LINE + 0.03;
    if (row + 1 < l->rows) y += 0.15;
  }
  l->height = y;
}
