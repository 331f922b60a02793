/* From the distributions of a recipe's clusters to curves. */
#include "experiments/clock/densities.h"

#include "analysis/figures/direct.h"
#include "core/config/fields.h"
#include "experiments/sweep/sweep_cells.h"
#include "sim/cluster.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BINS = 120, LEAST_BINS = 8, ROOM = MOST_BINS + 4, NAME = 120, MOST_FIELDS = 16 };
enum { SENTENCE = 400 };
/* A distribution that has so much of its mass at one value does not vary. */
static const double all = 1 - 1e-9;

/* --- the clusters of a recipe --- */

typedef struct clusters {
  cluster_spec **spec; /* [n] */
  size_t n;
} clusters;

static void clusters_fini(clusters *c) {
  for (size_t i = 0; i < c->n; i++) cluster_free(c->spec[i]);
  free(c->spec);
}

static gl_status add_cluster(clusters *c, const recipe *r, gl_error *err) {
  cluster_spec **longer = realloc(c->spec, (c->n + 1) * sizeof *longer);
  if (longer == NULL) return gl_fail_memory(err, "clusters");
  c->spec = longer;
  gl_status status = cluster_parse(&c->spec[c->n], r->cluster, r->groups, r->group_size, err);
  c->n += status == GL_OK;
  return status;
}

static gl_status densities_add_cell(clusters *c, const sweep_cell *cell, gl_error *err) {
  cfg_doc *doc = NULL;
  recipe r;
  gl_status status = sweep_cell_recipe(&doc, cell, err);
  if (status == GL_OK) status = recipe_read(&r, doc, err);
  if (status == GL_OK) status = add_cluster(c, &r, err);
  cfg_free(doc);
  return status;
}

/* Cells that differ in algorithm and seed alone have one cluster. */
static int is_first(const sweep_cells *s, size_t i) {
  for (size_t k = 0; k < i; k++)
    if (strcmp(s->cells[k].swept, s->cells[i].swept) == 0) return 0;
  return 1;
}

static gl_status read_clusters(clusters *c, const recipe *r, const cfg_doc *doc, gl_error *err) {
  sweep_grid grid;
  sweep_cells cells = {0};
  if (r->sweep == NULL) return add_cluster(c, r, err);
  gl_status status = sweep_grid_read(&grid, doc, err);
  if (status == GL_OK) status = sweep_expand(&cells, doc, &grid, &(sweep_expansion){0}, err);
  for (size_t i = 0; i < cells.n_cells && status == GL_OK; i++)
    if (is_first(&cells, i)) status = densities_add_cell(c, &cells.cells[i], err);
  sweep_cells_fini(&cells);
  return status;
}

/* --- their distributions --- */

/* A distribution of a field; each is there once. */
typedef struct entry {
  const char *field, *unit;
  const delay_dist *dist;
  char text[DELAY_TEXT_SIZE];
  double value[DELAY_MOST_POINT_MASSES], share[DELAY_MOST_POINT_MASSES]; /* [n_atoms] */
  size_t n_atoms;
  int varies;
  size_t panel, line;
  double x[ROOM], y[ROOM]; /* [n] */
  size_t n;
} entry;

typedef struct dists {
  entry *of; /* [n] */
  size_t n;
  const char *field[MOST_FIELDS]; /* [n_panels] those in which a distribution varies */
  int logarithmic[MOST_FIELDS];
  double low[MOST_FIELDS], high[MOST_FIELDS];
  size_t n_panels;
} dists;

static gl_status densities_add_dist(dists *l, const cluster_dist *dist, gl_error *err) {
  char text[DELAY_TEXT_SIZE];
  delay_text(dist->dist, text);
  for (size_t i = 0; i < l->n; i++)
    if (strcmp(l->of[i].field, dist->field) == 0 && strcmp(l->of[i].text, text) == 0) return GL_OK;
  entry *longer = realloc(l->of, (l->n + 1) * sizeof *longer);
  if (longer == NULL) return gl_fail_memory(err, "laws");
  l->of = longer;
  entry *e = &longer[l->n++];
  *e = (entry){.field = dist->field, .unit = dist->unit, .dist = dist->dist};
  memcpy(e->text, text, sizeof text);
  e->n_atoms = delay_point_masses(dist->dist, e->value, e->share);
  e->varies = !(e->n_atoms > 0 && e->share[0] >= all);
  return GL_OK;
}

static gl_status densities_read_dists(dists *l, const clusters *c, gl_error *err) {
  cluster_dist dist;
  gl_status status = GL_OK;
  for (size_t i = 0; i < c->n; i++)
    for (size_t k = 0; cluster_dist_at(c->spec[i], k, &dist) && status == GL_OK; k++)
      status = densities_add_dist(l, &dist, err);
  return status;
}

/* Fields in which a distribution varies become panels. Their range leaves out the last half per
 * cent; it is logarithmic where the distributions' scales, or the middle and the end of one, are
 * far apart. */
static void choose_panels(dists *l) {
  for (size_t i = 0; i < l->n; i++) {
    entry *e = &l->of[i];
    if (!e->varies) continue;
    size_t panel = 0;
    while (panel < l->n_panels && strcmp(l->field[panel], e->field) != 0) panel++;
    e->panel = panel;
    const double begin = delay_quantile(e->dist, 0.01), end = delay_quantile(e->dist, 0.995);
    if (panel == l->n_panels) {
      l->field[l->n_panels++] = e->field;
      l->low[panel] = INFINITY, l->high[panel] = 0;
    }
    const double last = delay_quantile(e->dist, all);
    if (begin > 0) l->low[panel] = fmin(l->low[panel], begin);
    l->high[panel] = fmax(l->high[panel], last < 1.1 * end ? last : end);
  }
  for (size_t i = 0; i < l->n; i++) {
    const entry *e = &l->of[i];
    if (!e->varies) continue;
    const double end = delay_quantile(e->dist, 0.995), middle = delay_quantile(e->dist, 0.5);
    l->logarithmic[e->panel] |= middle > 0 && (end > 30 * middle || l->high[e->panel] > 20 * end);
  }
}

/* The mass in (a, b] without the values that have a share of their own. */
static double mass(const entry *e, double a, double b) {
  double sum = delay_cdf(e->dist, b, false) - delay_cdf(e->dist, a, false);
  for (size_t i = 0; i < e->n_atoms; i++)
    if (e->value[i] > a && e->value[i] <= b) sum -= e->share[i];
  return fmax(0, sum);
}

/* Few measured values say little of a narrow bin (Rice's rule). */
static size_t bins_of(const delay_dist *dist) {
  if (dist->kind != DELAY_EMPIRICAL) return MOST_BINS;
  const double n = ceil(2 * cbrt((double)dist->empirical.n));
  return n < LEAST_BINS ? LEAST_BINS : n > MOST_BINS ? MOST_BINS : (size_t)n;
}

static void densities_add_point(entry *e, double x, double y) {
  e->x[e->n] = x, e->y[e->n++] = y;
}

/* The mean density of each bin, at its middle; and at the ends of the distribution's support a step
 * to 0. */
static void make_curve(const dists *l, entry *e) {
  const int logarithmic = l->logarithmic[e->panel];
  const double least = delay_quantile(e->dist, 1e-9), most = delay_quantile(e->dist, all);
  const double from = logarithmic ? fmax(least, l->low[e->panel]) : least;
  const double to = fmin(most, l->high[e->panel]);
  const size_t bins = bins_of(e->dist);
  if (!(to > from)) return;
  const double wide =
      (logarithmic ? log(to / from) : to - from) / (double)bins; /* of x or of ln x */
  if (from == least) densities_add_point(e, from, 0), densities_add_point(e, from, NAN);
  for (size_t i = 0; i < bins; i++) {
    const double at = wide * (double)i, middle = at + 0.5 * wide;
    const double a = logarithmic ? from * exp(at) : from + at;
    const double b = logarithmic ? from * exp(at + wide) : from + at + wide;
    densities_add_point(e, logarithmic ? from * exp(middle) : from + middle, mass(e, a, b) / wide);
  }
  if (from == least) e->y[1] = e->y[2];
  if (to == most) densities_add_point(e, to, e->y[e->n - 1]), densities_add_point(e, to, 0);
}

/* --- drawing --- */

static void densities_name_panel(const dists *l, size_t panel, char name[NAME]) {
  const field *f = fields_named(l->field[panel]);
  const char *unit = "";
  for (size_t i = 0; i < l->n; i++)
    if (strcmp(l->of[i].field, l->field[panel]) == 0) unit = l->of[i].unit;
  snprintf(name, NAME, *unit ? "%s [%s]" : "%s%s", f != NULL ? f->label : l->field[panel], unit);
}

/* "step time (always 27 s)"; "" for what is always 0, which is how a recipe says that there is no
 * such thing. Where other distributions of the field vary: "weight delay none". */
static void say_constant(const dists *l, const entry *e, char text[SENTENCE]) {
  const field *f = fields_named(e->field);
  text[0] = 0;
  if (e->varies) return;
  for (size_t panel = 0; panel < l->n_panels; panel++)
    if (strcmp(l->field[panel], e->field) == 0)
      snprintf(text, SENTENCE, "%s %s", f != NULL ? f->label : e->field, e->text);
  if (*text || !(e->value[0] > 0)) return;
  snprintf(text, SENTENCE, "%s (always %.4g%s%s)", f != NULL ? f->label : e->field, e->value[0],
           *e->unit ? " " : "", e->unit);
}

/* "lognormal(...): 0.25 % are 60 s, 0.25 % are 1800 s"; "" where it has no such values. */
static void say_atoms(const entry *e, char text[SENTENCE]) {
  size_t n = 0, said = 0;
  text[0] = 0;
  for (size_t i = 0; e->varies && i < e->n_atoms && n < SENTENCE; i++) {
    if (e->share[i] < 5e-5) continue;
    n += (size_t)snprintf(text + n, SENTENCE - n,
                          said++ ? ", %.3g %% are %.4g%s%s" : "%.3g %% are %.4g%s%s",
                          100 * e->share[i], e->value[i], *e->unit ? " " : "", e->unit);
  }
  if (said == 0) return;
  char head[SENTENCE];
  snprintf(head, sizeof head, "%.200s: %.180s", e->text, text);
  memcpy(text, head, SENTENCE);
}

/* What the figure is told; all of one size. */
typedef struct told {
  char panel[MOST_FIELDS][NAME];
  const char *panels[MOST_FIELDS];
  const char **lines;         /* [n_lines] */
  density *of;                /* [n] */
  char (*sentence)[SENTENCE]; /* [2 * distributions] */
  const char **left_out, **remarks;
  size_t n, n_lines, n_left_out, n_remarks;
} told;

static void told_fini(told *t) {
  free(t->lines), free(t->of), free(t->sentence), free(t->left_out), free(t->remarks);
}

/* The place of a distribution among the lines; the same distribution may stand in several panels.
 */
static size_t densities_line_of(told *t, const char *text) {
  size_t i = 0;
  while (i < t->n_lines && strcmp(t->lines[i], text) != 0) i++;
  if (i == t->n_lines) t->lines[t->n_lines++] = text;
  return i;
}

static gl_status told_init(told *t, const dists *l, gl_error *err) {
  const size_t n = l->n + 1;
  *t = (told){.lines = calloc(n, sizeof *t->lines),
              .of = calloc(n, sizeof *t->of),
              .sentence = calloc(2 * n, sizeof *t->sentence),
              .left_out = calloc(n, sizeof *t->left_out),
              .remarks = calloc(n, sizeof *t->remarks)};
  if (t->lines == NULL || t->of == NULL || t->sentence == NULL || t->left_out == NULL ||
      t->remarks == NULL)
    return gl_fail_memory(err, "densities");
  for (size_t panel = 0; panel < l->n_panels; panel++) {
    densities_name_panel(l, panel, t->panel[panel]);
    t->panels[panel] = t->panel[panel];
  }
  for (size_t i = 0; i < l->n; i++) {
    const entry *e = &l->of[i];
    say_constant(l, e, t->sentence[2 * i]);
    say_atoms(e, t->sentence[2 * i + 1]);
    if (*t->sentence[2 * i]) t->left_out[t->n_left_out++] = t->sentence[2 * i];
    if (*t->sentence[2 * i + 1]) t->remarks[t->n_remarks++] = t->sentence[2 * i + 1];
    if (!e->varies) continue;
    t->of[t->n++] = (density){e->panel, densities_line_of(t, e->text), e->x, e->y, e->n};
  }
  return GL_OK;
}

static gl_status densities_draw_panels(const dists *l, const figure_request *q, gl_error *err) {
  told t;
  gl_status status = told_init(&t, l, err);
  if (status == GL_OK)
    status = figure_of_densities(&(densities){t.panels, l->logarithmic, l->n_panels, t.lines,
                                              t.n_lines, t.of, t.n, t.left_out, t.n_left_out,
                                              t.remarks, t.n_remarks},
                                 q, err);
  told_fini(&t);
  return status;
}

gl_status densities_draw(const recipe *r, const cfg_doc *doc, const figure_request *q,
                         gl_error *err) {
  clusters c = {NULL, 0};
  dists l = {.n = 0};
  gl_status status = read_clusters(&c, r, doc, err);
  if (status == GL_OK) status = densities_read_dists(&l, &c, err);
  if (status == GL_OK) choose_panels(&l);
  for (size_t i = 0; i < l.n && status == GL_OK; i++)
    if (l.of[i].varies) make_curve(&l, &l.of[i]);
  if (status == GL_OK) status = densities_draw_panels(&l, q, err);
  free(l.of);
  clusters_fini(&c);
  return status;
}
