/* Counts the runs of a sweep over its phases and prices what is left. */
#include "experiments/sweep/watch.h"

#include "experiments/base/process.h"

#include <math.h>

/* Sums over kinds of runs are made this often: there may be very many kinds, and very short runs.
 */
static const double pricing_s = 0.2;

gl_status watch_init(watch *w, uint64_t total, size_t workers, progress_mode mode, store *s,
                     const char *study, gl_error *err) {
  *w = (watch){.costs = costs_new(), .priced = -INFINITY};
  if (w->costs == NULL) return gl_fail_memory(err, "the times of runs");
  gl_status status = costs_read(w->costs, s, study, err);
  w->learned_s = costs_spent_s(w->costs);
  w->bar = progress_new(study, "runs", total, mode);
  progress_workers(w->bar, workers);
  return status;
}

void watch_fini(watch *w) {
  progress_free(w->bar);
  costs_free(w->costs);
  *w = (watch){0};
}

void watch_phase(watch *w, const char *what, size_t n) {
  w->found += n;
  w->finished += n;
  progress_phase(w->bar, what);
  progress_resume(w->bar, w->found);
  costs_expect_nothing(w->costs);
}

static void price(watch *w) {
  const double now = seconds_now();
  if (now - w->priced < pricing_s) return;
  w->priced = now;
  const double left = costs_left_s(w->costs);
  if (!isnan(left)) progress_cost(w->bar, costs_spent_s(w->costs) - w->learned_s, left);
}

gl_status watch_expect(watch *w, const sweep_cells *cells, const size_t *job, size_t n,
                       gl_error *err) {
  for (size_t i = 0; i < n; ++i) {
    const sweep_cell *cell = &cells->cells[job != NULL ? job[i] : i];
    costs_kind *k = costs_of(w->costs, cell->algorithm, cell->swept);
    if (k == NULL) return gl_fail_memory(err, "the times of runs");
    costs_expect(k, cell->steps);
  }
  w->priced = -INFINITY;
  return GL_OK;
}

void watch_ended(watch *w, const sweep_cell *cell, const run_result *o) {
  costs_kind *k = costs_of(w->costs, cell->algorithm, cell->swept); /* NULL: the estimate suffers */
  if (k != NULL) costs_ended(k, o->wall_s, o->status == RUN_FAILED);
  price(w);
  progress_at(w->bar, ++w->finished, cell->algorithm);
}

void watch_tick(watch *w) {
  price(w);
  progress_tick(w->bar);
}
