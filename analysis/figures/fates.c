/* The figures of stored outcomes. */
#include "analysis/figures/fates.h"

#include "analysis/plot/draw.h"

enum { NEEDS_A_FALL = 1 << 0, NEEDS_RATES = 1 << 1, NEEDS_SETTINGS = 1 << 2 };

static gl_status write_survival(const void *data, figure_page *p, gl_error *err) {
  return survival_page(data, p, err);
}

static gl_status write_frontier(const void *data, figure_page *p, gl_error *err) {
  return frontier_page(data, p, err);
}

static const figure figures[] = {
    {"survival", "share of runs that have not fallen, against updates", "curves", NEEDS_A_FALL,
     write_survival},
    {"frontier", "learning rate at which 10 and 50 % of the runs fall, against staleness", "curves",
     NEEDS_A_FALL | NEEDS_RATES | NEEDS_SETTINGS, write_frontier},
};

static int any_fell(const stability *s) {
  for (size_t i = 0; i < s->n_settings * s->n_algorithms; i++)
    if (s->cells[i].falls > 0) return 1;
  return 0;
}

static const char *lacks(const void *data, unsigned needs) {
  const stability *s = data;
  if ((needs & NEEDS_RATES) && !s->has_doses)
    return "the study does not sweep optimizer.lr over several numbers";
  if ((needs & NEEDS_SETTINGS) && s->n_settings < 2)
    return "the study has one setting besides optimizer.lr";
  return (needs & NEEDS_A_FALL) && !any_fell(s) ? "no run fell" : NULL;
}

gl_status figures_of_fates(const stability *s, const figure_request *q, gl_error *err) {
  static const figure_table drawn = {figures, sizeof figures / sizeof *figures, lacks,
                                     "the stored outcomes have no data for any figure"};
  gl_status status = figures_check_highlight(q, s->algorithms, s->n_algorithms, err);
  return status == GL_OK ? figures_draw_table(&drawn, s, q, err) : status;
}
