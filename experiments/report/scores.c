/* The section `scores`: best, last and their gap by setting and algorithm. */
#include "experiments/report/study_internal.h"

#include <math.h>

const cell_summary *study_highest(const report_study *t, size_t group) {
  const cell_summary *best = NULL;
  for (size_t i = 0; i < t->s.n_cells; ++i) {
    const cell_summary *c = &t->s.cells[i];
    if (c->cell->group == group && !isnan(c->last.value) &&
        (best == NULL || c->last.value > best->last.value))
      best = c;
  }
  return best;
}

int study_reaches(const cell_summary *c, const cell_summary *best) {
  if (best == NULL || isnan(c->last.value)) return 0;
  const double reach = isnan(c->last.high) ? c->last.value : c->last.high;
  return c == best || reach >= (isnan(best->last.low) ? best->last.value : best->last.low);
}

static void write_row(html *h, const report_study *t, const cell_summary *c,
                      const cell_summary *best) {
  char rate[64];
  html_row_begin(h);
  html_row_head(h, t->r->algorithms[c->cell->algorithm]);
  if (c->lr_low < c->lr_high)
    snprintf(rate, sizeof rate, "%.3g–%.3g", c->lr_low, c->lr_high);
  else
    snprintf(rate, sizeof rate, isnan(c->lr_low) ? "–" : "%.3g", c->lr_low);
  html_markup(h, "<td class=\"n\">"), html_text(h, rate), html_markup(h, "</td>");
  html_markup(h, "<td class=\"n\">");
  html_textf(h, "%zu", c->done + c->diverged);
  if (c->diverged > 0) html_textf(h, " (%zu diverged)", c->diverged);
  if (c->failed > 0) html_textf(h, " (%zu failed)", c->failed);
  html_markup(h, "</td>");
  html_cell_interval(h, c->best.value, c->best.low, c->best.high, 0);
  html_cell_interval(h, c->last.value, c->last.low, c->last.high, study_reaches(c, best));
  html_cell_interval(h, c->best_to_last.value, c->best_to_last.low, c->best_to_last.high, 0);
  html_row_end(h);
}

static void write_missing_row(html *h, const report_study *t, size_t algorithm) {
  html_row_begin(h);
  html_row_head(h, t->r->algorithms[algorithm]);
  html_markup(h, "<td class=\"missing\" colspan=\"5\">no run of this cell</td>");
  html_row_end(h);
}

static const cell_summary *cell_at(const summary *s, size_t group, size_t algorithm) {
  for (size_t i = 0; i < s->n_cells; ++i)
    if (s->cells[i].cell->group == group && s->cells[i].cell->algorithm == algorithm)
      return &s->cells[i];
  return NULL;
}

/* The setting heads the lines of its algorithms. */
static void write_setting(html *h, const report_study *t, size_t group) {
  html_markup(h, "</tbody>\n<tbody>\n<tr><th scope=\"rowgroup\" colspan=\"6\" class=\"group\">");
  html_text(h, study_setting(t, group));
  html_markup(h, "</th></tr>\n");
}

gl_status section_scores(html *h, const report_study *t, gl_error *err) {
  static const char *const heads[] = {"algorithm", "#learning rate", "#runs",
                                      "#best",     "#last",          "#best − last"};
  (void)err;
  html_markup(h, "<p>Bold: the highest last score of a setting, and those whose intervals reach "
                 "into its own, so that the study does not tell them apart.</p>\n");
  html_table_begin(h, "Evaluation scores by setting and algorithm", heads, 6);
  for (size_t g = 0; g < t->r->n_groups; ++g) {
    const cell_summary *best = study_highest(t, g);
    write_setting(h, t, g);
    for (size_t a = 0; a < t->r->n_algorithms; ++a) {
      const cell_summary *c = cell_at(&t->s, g, a);
      if (c != NULL)
        write_row(h, t, c, best);
      else
        write_missing_row(h, t, a);
    }
  }
  html_table_end(h);
  return GL_OK;
}
