/* The ranges of a page's axes. */
#include "analysis/plot/layout_internal.h"

#include <math.h>

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
