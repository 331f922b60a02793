/* The figure `map`: MSE over that of the first algorithm, over KL and group size: blue where it is
 * lower, orange where the first one's is, with a line at equality. */
#include "experiments/lab/figures/list.h"

#include "analysis/plot/layout.h"
#include "analysis/plot/map.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_MAPS = 8, QUANTITIES = 2 };

/* The algorithms whose maps are drawn: those that --highlight names, or else the first ones. */
typedef struct choice {
  size_t at[MOST_MAPS], n;
} choice;

static choice choose(const lab_recipe *r, const char *highlight) {
  choice c = {.n = 0};
  for (size_t a = 1; a < r->n_algorithms && c.n < MOST_MAPS; ++a)
    if (figure_is_named(highlight, r->algorithms[a].name)) c.at[c.n++] = a;
  for (size_t a = 1; a < r->n_algorithms && c.n < MOST_MAPS && !highlight; ++a) c.at[c.n++] = a;
  return c;
}

static int is_chosen(const choice *c, size_t algorithm) {
  for (size_t i = 0; i < c->n; ++i)
    if (c->at[i] == algorithm) return 1;
  return 0;
}

/* What the maps of one table are made of. */
typedef struct ratios {
  double *x_edge, *y_edge, *kl,
      *value; /* [n_sizes + 1], [n_pairs + 1], [n_pairs], [pairs * sizes] */
} ratios;

static void ratios_fini(ratios *r) {
  free(r->x_edge), free(r->y_edge), free(r->kl), free(r->value);
}

static int ratios_init(ratios *out, const lab_table *t) {
  const lab_recipe *r = t->recipe;
  *out = (ratios){calloc(r->n_sizes + 1, sizeof(double)), calloc(r->n_pairs + 1, sizeof(double)),
                  calloc(r->n_pairs + 1, sizeof(double)),
                  calloc(r->n_pairs * r->n_sizes + 1, sizeof(double))};
  if (!out->x_edge || !out->y_edge || !out->kl || !out->value) return 0;
  for (size_t i = 0; i <= r->n_sizes; ++i) out->x_edge[i] = (double)i + 0.5;
  for (size_t k = 0; k < r->n_pairs; ++k)
    out->kl[k] = t->results[k * r->n_sizes * r->n_algorithms].kl;
  map_edges(out->kl, r->n_pairs, 1, out->y_edge);
  return 1;
}

/* The map of algorithm a; quantity 0: MSE, 1: scaled MSE. */
static figure_map map_of(ratios *of, const lab_table *t, size_t a, size_t quantity) {
  const lab_recipe *r = t->recipe;
  for (size_t k = 0; k < r->n_pairs; ++k)
    for (size_t s = 0; s < r->n_sizes; ++s) {
      const lab_result *m = t->results + (k * r->n_sizes + s) * r->n_algorithms;
      const double over = quantity == 0 ? m[a].numbers.mse : m[a].numbers.scaled_mse;
      const double under = quantity == 0 ? m->numbers.mse : m->numbers.scaled_mse;
      of->value[k * r->n_sizes + s] = m[a].applicable && m->applicable ? over / under : NAN;
    }
  return (figure_map){r->n_sizes, r->n_pairs, of->x_edge, of->y_edge, of->value};
}

static gl_status write_marks(figure_page *p, const lab_recipe *r, gl_error *err) {
  gl_status status = GL_OK;
  char text[24];
  for (size_t s = 0; s < r->n_sizes && status == GL_OK; ++s) {
    lab_size_text(r->group_size[s], text);
    status = page_mark(p, PAGE_MARK, (double)s + 1, text, err);
  }
  return status;
}

static gl_status write_maps(figure_page *p, const lab_table *t, ratios *of, const choice *c,
                            gl_error *err) {
  const size_t n = c->n;
  static const char *const names[] = {"MSE", "scaled MSE"}, *const line = "cell";
  const lab_recipe *r = t->recipe;
  for (size_t i = 0; i < QUANTITIES * n; ++i) {
    figure_panel *to = &p->panels[i];
    snprintf(to->axis, sizeof to->axis, "KL(p‖q) [nats]");
    snprintf(to->title, sizeof to->title, "%s, %.60s / %.60s", names[i / n],
             r->algorithms[c->at[i % n]].name, r->algorithms[0].name);
    to->logarithmic = 1;
    const figure_map m = map_of(of, t, c->at[i % n], i / n);
    page_map(p, i, &m);
  }
  for (size_t i = 0; i < QUANTITIES * n; ++i) {
    const figure_map m = map_of(of, t, c->at[i % n], i / n);
    page_contour(p, i, &m, 1);
  }
  gl_status status = write_marks(p, r, err);
  return status == GL_OK ? page_set_lines(p, &line, 1, err) : status;
}

gl_status lab_figure_map(const void *data, figure_page *p, gl_error *err) {
  const lab_table *t = ((const lab_figure_data *)data)->table;
  choice chosen = choose(t->recipe, p->q->highlight);
  if (chosen.n == 0) chosen = choose(t->recipe, NULL);
  const size_t n = chosen.n;
  ratios of = {0};
  gl_status status = page_open(p, QUANTITIES * n,
                               "panel\tcell\tG from\tto\tKL from\tto\tratio (G by its place)", err);
  if (status == GL_OK && !ratios_init(&of, t)) status = gl_fail_memory(err, "a map");
  if (status == GL_OK) {
    p->wide = page_columns(p, n < 3 ? n : 3);
    p->share = p->wide, p->tight = 1, p->decades = 20;
    snprintf(p->x_axis, sizeof p->x_axis, "group size G");
    page_bar_diverging(p, "ratio; the line is 1", 30, 1);
    status = write_maps(p, t, &of, &chosen, err);
  }
  ratios_fini(&of);
  for (size_t a = 1; a < t->recipe->n_algorithms && status == GL_OK; ++a)
    if (!is_chosen(&chosen, a))
      status = page_leave_out(p, err, "%s", t->recipe->algorithms[a].name);
  return status;
}
