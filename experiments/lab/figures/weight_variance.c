/* The figure `weight_variance` (the paper's Fig. 2): how much more p/q varies than GEPO's weight,
 * for Bernoulli distributions and for unit normals, with the denominator of the theorem and the one
 * that is computed. Inside the line, in blue, GEPO's weight varies more: the paper's green region.
 */
#include "experiments/lab/figures/list.h"

#include "analysis/plot/map.h"
#include "toy/lab/theory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { GRID = 60, PANELS = 4 };

/* Panels: Bernoulli and normals in columns, the denominators in rows. */
static double difference(size_t panel, double a, double b) {
  lab_weights_stats s;
  if (panel % 2 == 0)
    lab_theory_bernoulli(a, b, &s);
  else
    lab_theory_gaussian(a - b, &s);
  return s.variance_pq - s.variance[panel / 2 == 0 ? LAB_EXPECTED : LAB_COMPUTED];
}

typedef struct surface {
  double edge[GRID + 1], value[GRID * GRID];
} surface;

static figure_map surface_of(surface *s, size_t panel) {
  const double from = panel % 2 == 0 ? 0 : -1.2, to = panel % 2 == 0 ? 1 : 1.2;
  for (size_t i = 0; i <= GRID; ++i) s->edge[i] = from + (to - from) * (double)i / GRID;
  for (size_t y = 0; y < GRID; ++y)
    for (size_t x = 0; x < GRID; ++x)
      s->value[y * GRID + x] = difference(panel, 0.5 * (s->edge[x] + s->edge[x + 1]),
                                          0.5 * (s->edge[y] + s->edge[y + 1]));
  return (figure_map){GRID, GRID, s->edge, s->edge, s->value};
}

static void name_panel(figure_panel *to, size_t panel) {
  static const char *const dists[] = {"Bernoulli", "unit normals"};
  static const char *const under[] = {"D = E_q q", "D as computed"};
  snprintf(to->title, sizeof to->title, "%s, %s", dists[panel % 2], under[panel / 2]);
  snprintf(to->axis, sizeof to->axis, panel % 2 == 0 ? "q" : "mean b of q");
  snprintf(to->x_axis, sizeof to->x_axis, panel % 2 == 0 ? "p" : "mean a of p");
}

static gl_status write_surfaces(figure_page *p, surface *s, gl_error *err) {
  static const char *const line = "cell";
  for (size_t i = 0; i < PANELS; ++i) {
    const figure_map m = surface_of(s, i);
    name_panel(&p->panels[i], i);
    page_map(p, i, &m);
    page_panel_x(p, i, m.x_edge[0]), page_panel_x(p, i, m.x_edge[GRID]);
  }
  for (size_t i = 0; i < PANELS; ++i) {
    const figure_map m = surface_of(s, i);
    page_contour(p, i, &m, 0);
  }
  return page_set_lines(p, &line, 1, err);
}

gl_status lab_figure_weight_variance(const void *data, figure_page *p, gl_error *err) {
  double d2, kl[LAB_CONSTANTS];
  (void)data;
  gl_status status = page_open(p, PANELS, "panel\tcell\ta from\tto\tb from\tto\tdifference", err);
  for (int k = 0; k < LAB_CONSTANTS && status == GL_OK; ++k)
    status = lab_theory_gaussian_crossing((lab_constant)k, &d2, &kl[k], err);
  surface *s = status == GL_OK ? malloc(sizeof *s) : NULL;
  if (status == GL_OK && s == NULL) status = gl_fail_memory(err, "a map");
  if (status == GL_OK) {
    p->wide = page_columns(p, 2), p->tight = 1;
    page_bar_diverging(p, "Var[p/q] − Var[p/D]", 0.6, 0);
    status = write_surfaces(p, s, err);
  }
  free(s);
  if (status != GL_OK) return status;
  return page_remark(p, err,
                     "On the line both vary alike; for normals KL is %.3f there, %.3f with D as "
                     "computed",
                     kl[LAB_EXPECTED], kl[LAB_COMPUTED]);
}
