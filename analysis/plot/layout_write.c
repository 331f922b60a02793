/* Writes a layout as the variables of plots/page.gp. */
#include "analysis/plot/layout.h"

#include "core/base/arena.h"
#include "core/base/display_text.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TO_LEFT, TO_CENTRE, TO_RIGHT };
enum { NOTE_LINES = 6, MOST_MARK_LINES = 3 };

static double across(const layout *l, double x) {
  return x / l->page_width;
}

static double up(const layout *l, double y) {
  return 1 - y / l->page_height;
}

static void write_label(layout *l, const char *text, double x, double y, int where, int turned) {
  const size_t i = ++l->n_texts;
  fprintf(l->to, "text_of[%zu] = ", i), page_write_text(text, l->to);
  fprintf(l->to,
          "; text_x[%zu] = %.5f; text_y[%zu] = %.5f; text_to[%zu] = %d; text_turned[%zu] = "
          "%d\n",
          i, across(l, x), i, up(l, y), i, where, i, turned);
}

/* A part of a text, with an ellipsis if it was cut. */
typedef struct text_part {
  char text[SHOWN_SIZE + 8];
} text_part;

static text_part part_of(const char *text, size_t length, int cut) {
  text_part part;
  snprintf(part.text, sizeof part.text, "%.*s%s", (int)(length < SHOWN_SIZE ? length : SHOWN_SIZE),
           text, cut ? "…" : "");
  return part;
}

static void write_heading(layout *l, const place *at) {
  size_t starts[MOST_HEADING], lengths[MOST_HEADING];
  int cut;
  const shown_text title = shown(layout_panel(l, at)->title);
  const size_t n =
      text_break(title.text, layout_heading_wide(l), MOST_HEADING, starts, lengths, &cut);
  for (size_t i = 0; i < n; i++)
    write_label(l, part_of(title.text + starts[i], lengths[i], cut && i + 1 == n).text,
                0.5 * (at->left + at->right), at->top - LINE * (double)(n - i) + 0.5 * LINE - 0.04,
                TO_CENTRE, 0);
}

static void write_y_axis(layout *l, const place *at) {
  size_t starts[MOST_AXIS], lengths[MOST_AXIS];
  const shown_text axis = shown(layout_panel(l, at)->axis);
  const size_t n = layout_axis_lines(l, axis.text, starts, lengths);
  const double numbers = at->left - l->y_numbers - Y_SPACE - 0.06;
  for (size_t i = 0; i < n; i++)
    write_label(l, part_of(axis.text + starts[i], lengths[i], 0).text,
                numbers - LINE * (double)(n - i) + 0.5 * LINE, 0.5 * (at->top + at->bottom),
                TO_CENTRE, 1);
}

static void write_x_axis(layout *l, const place *at) {
  const figure_panel *panel = layout_panel(l, at);
  const char *axis = l->p->named_rows ? panel->axis : *panel->x_axis ? panel->x_axis : l->p->x_axis;
  size_t start, length;
  int cut;
  const shown_text text = shown(axis);
  if (text_break(text.text, l->panel_width + l->gap - 0.1, 1, &start, &length, &cut) == 0) return;
  const text_part part = part_of(text.text, length, cut);
  /* Centred below the panel, or as near to that as the page's edges permit. */
  const double half = 0.5 * text_cm(part.text) + MARGIN;
  const double x = fmax(fmin(0.5 * (at->left + at->right), l->page_width - half), half);
  write_label(l, part.text, x, at->bottom + TIC + at->x_numbers + 0.05 + 0.5 * LINE, TO_CENTRE, 0);
}

static void write_cut(layout *l, const char *text, double most, double x, double y, int where,
                      int turned) {
  size_t start, length;
  int cut;
  const shown_text t = shown(text);
  if (text_break(t.text, most, 1, &start, &length, &cut) > 0)
    write_label(l, part_of(t.text, length, cut).text, x, y, where, turned);
}

/* Writes rotated text, broken into as many lines as fit. */
static void write_turned(layout *l, const char *text, size_t lines, double x, double y) {
  size_t starts[MOST_MARK_LINES], lengths[MOST_MARK_LINES];
  int cut;
  const shown_text t = shown(text);
  const size_t n = text_break(t.text, LONGEST_MARK, lines, starts, lengths, &cut);
  for (size_t i = 0; i < n; i++)
    write_label(l, part_of(t.text + starts[i], lengths[i], cut && i + 1 == n).text,
                x + LINE * ((double)i - 0.5 * (double)(n - 1)), y, TO_RIGHT, 1);
}

static void write_x_marks(layout *l, const place *at) {
  const figure_page *p = l->p;
  double behind = -INFINITY, longest;
  const double room = floor((layout_marks_apart(l, &longest) - 0.1) / LINE);
  const size_t lines = room < 1 ? 1 : room < MOST_MARK_LINES ? (size_t)room : MOST_MARK_LINES;
  for (size_t i = 0; i < p->n_marks; i++) {
    if (!layout_is_of(l, &p->marks[i], at)) continue;
    const double x = layout_mark_x(l, at, i);
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
  const double rows = (double)layout_shown_lines(l->p) + 0.2;
  size_t row = 0;
  for (size_t i = 0; i < l->p->n_lines; i++)
    if (!l->p->lines[i].hidden)
      write_cut(l, l->p->lines[i].name, l->y_numbers + 0.01, at->left - TIC - 0.05,
                at->top + l->panel_height * ((double)row++ + 0.6) / rows, TO_RIGHT, 0);
}

static void write_note(layout *l, const place *at) {
  double y = at->top + 0.25;
  char line[200];
  for (const char *c = layout_panel(l, at)->note; *c; y += LINE) {
    const size_t n = strcspn(c, "\n");
    snprintf(line, sizeof line, "%.*s", (int)n, c);
    write_label(l, line, at->right - 0.08, y, TO_RIGHT, 0);
    c += n + (c[n] == '\n');
  }
}

static void write_panel_texts(layout *l, const place *at) {
  const int row_first = at->first || !(l->p->share || l->p->named_rows);
  if (*layout_panel(l, at)->title) write_heading(l, at);
  if (row_first && !l->p->named_rows) write_y_axis(l, at);
  if (row_first && l->p->named_rows) write_row_names(l, at);
  if (layout_names_x(l, at)) write_x_axis(l, at);
  if (at->lowest || l->x_everywhere || l->p->named_rows) write_x_marks(l, at);
  write_note(l, at);
}

/* Writes gnuplot's list of ticks, without labels if another panel shows them. */
static void write_ticks(FILE *to, const char *array, size_t number, const tick *ticks, size_t n,
                        int named) {
  fprintf(to, "%s[%zu] = \"", array, number);
  for (size_t i = 0; i < n; i++)
    fprintf(to, "%s'%s' %.10g%s", i ? ", " : "", named ? ticks[i].text : "", ticks[i].at,
            ticks[i].text[0] ? "" : " 1");
  if (n == 0) fputs("'' -1e300", to);
  fputs("\"\n", to);
}

static void write_layout_panel(layout *l, size_t number) {
  const place *at = &l->places[number - 1];
  const figure_panel *panel = layout_panel(l, at);
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
  if (layout_has_marks(l, at)) {
    size_t n = 0;
    fprintf(to, "x_tics[%zu] = \"", number);
    for (size_t i = 0; i < l->p->n_marks; i++)
      if (layout_is_of(l, &l->p->marks[i], at))
        fprintf(to, "%s'' %.10g", n++ ? ", " : "", l->p->marks[i].x);
    fputs("\"\n", to);
  } else {
    write_ticks(to, "x_tics", number, at->x, at->n_x,
                at->lowest || l->x_everywhere || l->p->named_rows);
  }
  write_ticks(to, "y_tics", number, at->y, at->n_y, at->first || !l->p->share);
}

/* Points between symbols: about seven symbols per line, staggered between lines. */
static size_t points_to_a_mark(const figure_page *p) {
  const size_t curves = p->n_panels * (p->n_lines ? p->n_lines : 1);
  return p->all_marks || p->n_points < 12 * curves ? 1 : p->n_points / (7 * curves);
}

static void write_lines(const figure_page *p, FILE *to) {
  static const char *const arrays[] = {"line_colour", "line_dash", "line_mark",
                                       "line_grey",   "in_order",  "row_of"};
  size_t n = 0, row = 0;
  fprintf(to, "lines = %zu\nrows = %zu\nkinds = %zu\npoints_to_a_mark = %zu\n", p->n_lines,
          layout_shown_lines(p), p->n_kinds, points_to_a_mark(p));
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
    fprintf(to, "array %s[%zu]\n", arrays[i], p->n_lines + p->n_kinds + 1);
  for (size_t i = 0; i < p->n_lines; i++)
    fprintf(to, "row_of[%zu] = %zu\n", i + 1, p->lines[i].hidden ? 0 : ++row);
  for (int grey = 1; grey >= 0; grey--) /* grey first, so that coloured lines are on top */
    for (size_t i = 0; i < p->n_lines; i++)
      if ((p->lines[i].look.colour == LOOK_GREY) == grey)
        fprintf(to, "in_order[%zu] = %zu\n", ++n, i + 1);
  for (size_t i = 0; i < p->n_lines + p->n_kinds; i++) {
    const look k = layout_scripted(p, i)->look;
    char colour[LOOK_SHADED];
    look_shaded(k, colour);
    fprintf(to,
            "line_colour[%zu] = '%s'; line_dash[%zu] = '%s'; line_mark[%zu] = %d; "
            "line_grey[%zu] = %d\n",
            i + 1, colour, i + 1, look_dash(k.dash), i + 1, k.mark, i + 1, k.colour == LOOK_GREY);
  }
}

static void write_legend(layout *l, double top) {
  const double from = 0.5 * (l->page_width - l->legend_wide);
  for (size_t entry = 0; layout_has_legend(l->p) && entry < layout_legend_entries(l->p); entry++) {
    const size_t i = layout_entry_line(l->p, entry);
    const size_t column = entry % l->entries_across;
    double x = from;
    for (size_t k = 0; k < column; k++) x += l->entry_wide[k];
    const double y = top + LINE * ((double)(entry / l->entries_across) + 0.5);
    const size_t s = ++l->n_samples;
    fprintf(l->to,
            "sample_line[%zu] = %zu; sample_x[%zu] = %.5f; sample_y[%zu] = %.5f; "
            "sample_is[%zu] = %d\n",
            s, i + 1, s, across(l, x), s, up(l, y), s, (int)layout_scripted(l->p, i)->sample);
    write_cut(l, layout_entry_text(l->p, i),
              fmin(l->entry_wide[column] - SAMPLE - 0.4, l->page_width - 1.2), x + SAMPLE + 0.12, y,
              TO_LEFT, 0);
  }
}

/* --- remarks --- */

/* Breaks a text below the panels into lines. If it does not fit, the last line ends in an ellipsis
 * and the number of items (`parts`; 0: no number). Writes the lines unless `top` is negative.
 * Returns their number. */
static size_t foot_lines(layout *l, const char *before, const char *text, size_t parts,
                         double top) {
  char *all = NULL;
  size_t size = 0, n = 0;
  FILE *join = text ? open_memstream(&all, &size) : NULL;
  if (!join) return 0;
  fputs(before, join);
  shown_write(text, strlen(text), join);
  fclose(join);
  const double most = l->page_width - 2 * MARGIN - 0.1;
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
  if (l->p->q->no_notes) return 0;
  const size_t n = foot_lines(l, "not shown: ", l->p->left_out, l->p->n_left_out, top);
  return n + foot_lines(l, "", l->p->remark, 0, top < 0 ? top : top + LINE * (double)n);
}

/* --- entry point --- */

static void write_color_bar(layout *l) {
  const figure_page *p = l->p;
  tick ticks[MOST_TICKS];
  fprintf(l->to, "bar = %d\n", *p->bar_axis != 0);
  if (!*p->bar_axis) return;
  const place *last = &l->places[l->n - 1];
  const double top = l->places[0].top, bottom = last->bottom,
               x = l->page_width - layout_bar_room(l) + 0.25;
  const double tall = fmin(bottom - top, 6), from = 0.5 * (top + bottom) - 0.5 * tall;
  const size_t most = (size_t)fmin(MOST_BAR_TICKS, fmax(1, tall / (1.6 * LINE)));
  const size_t n = ticks_of_axis(p->bar_low, p->bar_high, p->bar_logarithmic, most, ticks);
  fprintf(l->to,
          "bar_x = %.5f; bar_y = %.5f; bar_broad = %.5f; bar_tall = %.5f\nbar_low = %.10g; "
          "bar_high = %.10g; bar_logarithmic = %d\narray bar_tics[1]\n",
          across(l, x), up(l, from + tall), BAR / l->page_width, tall / l->page_height, p->bar_low,
          p->bar_high, p->bar_logarithmic);
  write_ticks(l->to, "bar_tics", 1, ticks, n, 1);
  /* At the bar's middle, as far as the page's ends allow. */
  const double half = fmin(0.5 * text_cm(p->bar_axis), 0.5 * l->page_height - 0.1) + 0.1;
  write_cut(l, p->bar_axis, l->page_height - 0.2, l->page_width - MARGIN - 0.5 * LINE,
            fmax(fmin(from + 0.5 * tall, l->page_height - half), half), TO_CENTRE, 1);
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

static void write_layout(layout *l) {
  const double legend = l->page_height + (l->entry_rows ? 0.1 : 0.0);
  const double foot = legend + LINE * (double)l->entry_rows + 0.08;
  const size_t lines = write_foot(l, -1);
  l->page_height = foot + LINE * (double)lines + (lines ? 0.08 : 0);
  fprintf(l->to, "panels = %zu\npanels_in_all = %zu\npage_width = %.5g\npage_height = %.5g\n", l->n,
          l->p->n_panels, l->page_width, l->page_height);
  declare_arrays(l);
  write_lines(l->p, l->to);
  for (size_t i = 0; i < l->n; i++) write_layout_panel(l, i + 1);
  for (size_t i = 0; i < l->n; i++) write_panel_texts(l, &l->places[i]);
  write_color_bar(l);
  write_legend(l, legend);
  write_foot(l, foot);
  fprintf(l->to, "texts = %zu\nsamples = %zu\n", l->n_texts, l->n_samples);
}

gl_status layout_write(figure_page *p, FILE *to, gl_error *err) {
  assert(p->n_panels > 0);
  arena work = {0};
  layout l = {.p = p, .to = to, .page_width = page_width(p)};
  l.places = ARENA_ARRAY(&work, place, p->n_panels);
  gl_status status = arena_check(&work, "the layout of a figure", err);
  if (status == GL_OK) status = layout_arrange(&l, err);
  if (status == GL_OK) write_layout(&l);
  arena_fini(&work);
  return status;
}
