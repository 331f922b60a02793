/* A page's legend: its entries, and their columns. */
#include "analysis/plot/layout_internal.h"

#include "analysis/plot/text.h"
#include "core/base/shown.h"

#include <math.h>
#include <string.h>

int layout_has_legend(const figure_page *p) {
  return p->n_kinds > 0 || (!p->named_rows && !p->plain && p->n_lines > 1);
}

const figure_line *layout_scripted(const figure_page *p, size_t i) {
  return i < p->n_lines ? &p->lines[i] : &p->kinds[i - p->n_lines];
}

static int is_grey(const figure_page *p, size_t i) {
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

/* The width of each column where so many stand side by side, and of all together. */
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

void layout_set_legend(layout *l) {
  const figure_page *p = l->p;
  if (!layout_has_legend(p)) return;
  const size_t n = layout_legend_entries(p);
  const double room = l->width - 2 * MARGIN;
  size_t columns = n < MOST_ENTRIES ? n : MOST_ENTRIES;
  while (columns > 1 && entry_widths(p, columns, l->entry_wide) > room) columns--;
  l->entry_rows = (n + columns - 1) / columns;
  l->entries_across = (n + l->entry_rows - 1) / l->entry_rows;
  l->legend_wide = fmin(room, entry_widths(p, l->entries_across, l->entry_wide));
}
