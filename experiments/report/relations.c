/* The section `relations`: rank correlations of delay, divergence and variance of the weights. */
#include "experiments/report/study_internal.h"

int has_relations(const report_study *t) {
  if (!has_runs(t)) return 0;
  for (size_t i = 0; i < RELATION_COUNT; ++i)
    if (t->s.relations[i].spearman.why == NULL) return 1;
  return 0;
}

static void write_correlation(html *h, const correlation *c, interval v) {
  if (c->why == NULL) {
    html_cell_interval(h, v.value, v.low, v.high, 0);
    return;
  }
  html_markup(h, "<td class=\"n\">");
  html_textf(h, "– (%s)", c->why);
  html_markup(h, "</td>");
}

static void write_within(html *h, const report_study *t) {
  char delay[64], variance[64];
  snprintf(delay, sizeof delay, "#%s, %s", t->s.within[0].x, t->s.within[0].y);
  snprintf(variance, sizeof variance, "#%s, %s", t->s.within[1].x, t->s.within[1].y);
  const char *const heads[] = {"algorithm", "#runs", delay, variance};
  html_table_begin(h, "Within one algorithm, over its runs", heads, 4);
  for (size_t a = 0; a < t->r->n_algorithms; ++a) {
    const relation *of = t->s.within + a * RELATION_COUNT;
    html_row_begin(h), html_row_head(h, t->r->algorithms[a]);
    html_cell_count(h, of[1].spearman.n);
    for (size_t i = 0; i < RELATION_COUNT; ++i)
      write_correlation(h, &of[i].spearman, of[i].spearman.bootstrap);
    html_row_end(h);
  }
  html_table_end(h);
}

gl_status section_relations(html *h, const report_study *t, gl_error *err) {
  static const char *const heads[] = {"quantities", "#cells", "#rho [Bonett–Wright]",
                                      "#rho [bootstrap]"};
  (void)err;
  html_table_begin(h, "Spearman's rank correlation over all cells", heads, 4);
  for (size_t i = 0; i < RELATION_COUNT; ++i) {
    const relation *of = &t->s.relations[i];
    char words[128];
    snprintf(words, sizeof words, "%s, %s", of->x, of->y);
    html_row_begin(h), html_row_head(h, words), html_cell_count(h, of->spearman.n);
    write_correlation(h, &of->spearman, of->spearman.fisher);
    write_correlation(h, &of->spearman, of->spearman.bootstrap);
    html_row_end(h);
  }
  html_table_end(h);
  if (t->r->n_algorithms > 1) write_within(h, t);
  return GL_OK;
}
