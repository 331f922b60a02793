/* The section `clock`: what the schedule did in each setting. */
#include "experiments/report/study_internal.h"

#include <math.h>

/* Means over the runs of a setting that have a clock. */
typedef struct clock_means {
  double sum[8];
  size_t n;
} clock_means;

static void add_run(clock_means *m, const clock_record *c) {
  const double value[] = {c->staleness_mean,
                          c->staleness_p50,
                          c->staleness_p95,
                          c->staleness_max,
                          c->samples_per_s,
                          100 * c->learner_utilisation,
                          100 * c->sampler_utilisation,
                          c->simulated_s};
  if (isnan(c->simulated_s)) return;
  for (size_t i = 0; i < sizeof value / sizeof *value; ++i) m->sum[i] += value[i];
  ++m->n;
}

gl_status section_clock(html *h, const report_study *t, gl_error *err) {
  static const char *const heads[] = {"setting",    "#mean staleness", "#median",
                                      "#95 %",      "#largest",        "#samples/s",
                                      "#learner %", "#samplers %",     "#simulated s"};
  (void)err;
  html_markup(h, "<p>Staleness counts updates between the drawing of a batch and its training; "
                 "utilisation is the share of simulated time at work. Means over the runs of a "
                 "setting.</p>\n");
  html_table_begin(h, "The simulated clock", heads, 9);
  for (size_t g = 0; g < t->r->n_groups; ++g) {
    clock_means m = {.n = 0};
    for (size_t i = 0; i < t->r->n_runs; ++i)
      if (t->r->runs[i].group == g && t->r->runs[i].status != RUN_FAILED)
        add_run(&m, &t->r->runs[i].clock);
    html_row_begin(h), html_row_head(h, study_setting(t, g));
    for (size_t i = 0; i < 8; ++i) html_cell_number(h, m.n > 0 ? m.sum[i] / (double)m.n : NAN);
    html_row_end(h);
  }
  html_table_end(h);
  return GL_OK;
}
