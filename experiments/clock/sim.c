/* Options of `gepolab sim` beyond a single schedule: replicas over seeds, a timeline, and the
 * densities of the cluster's distributions. */
#include "experiments/clock/sim.h"

#include "analysis/figures/without_study.h"
#include "core/base/display_text.h"
#include "core/base/thread_pool.h"
#include "core/config/fields.h"
#include "experiments/base/memory.h"
#include "experiments/sweep/grid.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- replicas --- */

/* Runs the clock with the i-th seed. All seeds give equally many numbers, so only the first run
 * sets n_numbers. */
static gl_status run_replica(void *context, size_t i, gl_error *err) {
  replicas *q = context;
  schedule s = {0};
  const gl_status status = schedule_build(&s, q->cluster, q->r->seed + i, q->r->steps, err);
  if (status != GL_OK) return status;
  const size_t n = schedule_numbers(&s, &q->number[i * SCHEDULE_MOST_NUMBERS]);
  if (i == 0) q->n_numbers = n;
  schedule_fini(&s);
  return GL_OK;
}

gl_status replicas_run(replicas *q, const recipe *r, const cluster_spec *cluster, size_t n,
                       size_t threads, gl_error *err) {
  *q = (replicas){.r = r, .cluster = cluster, .n = n};
  if (n < 2)
    return gl_fail(err, GL_EINPUT,
                   "--replicas needs at least 2 seeds, to say how much they differ");
  q->number = must_alloc(n, SCHEDULE_MOST_NUMBERS * sizeof *q->number, "replicas");
  return pool_try(n, threads, run_replica, q, err);
}

replicas_spread replicas_spread_of(const replicas *q, size_t number) {
  const schedule_number *first = &q->number[number];
  replicas_spread s = {first->name, first->unit, 0, 0, 0, NAN, NAN, INFINITY, -INFINITY};
  double squares = 0;
  for (size_t i = 0; i < q->n; ++i) {
    const double x = first[i * SCHEDULE_MOST_NUMBERS].value;
    if (isnan(x)) continue;
    const double from = x - s.mean;
    s.mean += from / ++s.n;
    squares += from * (x - s.mean);
    s.least = fmin(s.least, x);
    s.most = fmax(s.most, x);
  }
  if (s.n == 0) s.mean = s.least = s.most = NAN;
  s.sd = s.n > 1 ? sqrt(squares / (s.n - 1)) : NAN;
  const double half = s.n > 1 ? gsl_cdf_tdist_Pinv(0.975, s.n - 1) * s.sd / sqrt(s.n) : NAN;
  s.low = s.mean - half;
  s.high = s.mean + half;
  return s;
}

void replicas_fini(replicas *q) {
  free(q->number);
  q->number = NULL;
}

/* --- timeline: spans of a clock as rows and bars of a chart --- */

enum { MOST_SAMPLERS = 8, MOST_SITES = 8, MOST_UPDATES = 64, MOST_BARS = 200000 };
/* Rows of the chart: the learner, the batches waiting for it, its network links in both directions,
 * restarts, sites, and for each sampler the rows from OF_SAMPLER on. */
enum {
  ROW_LEARNER,
  ROW_QUEUE,
  ROW_EGRESS,
  ROW_INGRESS,
  ROW_RESTARTS,
  FIRST_SITE,
  FIRST_SAMPLER = FIRST_SITE + MOST_SITES,
  OF_SAMPLER = 0,
  OF_PAUSES,
  OF_BATCHES,
  OF_WEIGHTS,
  OF_RELAY,
  EACH
};
enum { MOST_ROWS = FIRST_SAMPLER + EACH * MOST_SAMPLERS };

gl_status timeline_between(const char *text, double between[2], gl_error *err) {
  char *end, *last;
  between[0] = strtod(text, &end);
  between[1] = *end == ',' ? strtod(end + 1, &last) : NAN;
  if (end == text || *end != ',' || last == end + 1 || *last || !isfinite(between[0]) ||
      !isfinite(between[1]))
    return gl_fail(err, GL_EINPUT,
                   "--between needs two simulated times in seconds, as in --between 0,3600, not "
                   "'%s'",
                   shown(text).text);
  if (between[0] >= 0 && between[1] > between[0]) return GL_OK;
  return gl_fail(err, GL_EINPUT, "--between %s: times begin at 0, and the second is the later one",
                 shown(text).text);
}

typedef struct collector {
  uint32_t sampler[MOST_SAMPLERS]; /* [n_samplers] the samplers shown, in ascending order */
  size_t n_samplers;
  double from_s, to_s;
  timeline_bar *bars; /* [n], at most MOST_BARS */
  size_t n;
  bool is_full;
} collector;

/* The position of a shown sampler; n_samplers if it is not shown. */
static size_t timeline_place_of(const collector *c, uint32_t sampler) {
  size_t i = 0;
  while (i < c->n_samplers && c->sampler[i] != sampler) i++;
  return i;
}

static size_t sampler_row(const collector *c, uint32_t sampler, size_t which) {
  const size_t place = timeline_place_of(c, sampler);
  return place < c->n_samplers ? FIRST_SAMPLER + EACH * place + which : MOST_ROWS;
}

/* The row and kind of a span's bar; row MOST_ROWS: not shown. */
static timeline_bar timeline_bar_of(const collector *c, const schedule_span *s) {
  const size_t sampler = sampler_row(c, s->sampler, OF_SAMPLER);
  switch (s->kind) {
  case SPAN_GENERATION:
    return (timeline_bar){.row = sampler, .kind = TIMELINE_GENERATION};
  case SPAN_INTERRUPT:
    return (timeline_bar){.row = sampler_row(c, s->sampler, OF_PAUSES),
                          .kind = TIMELINE_INTERRUPTION};
  case SPAN_PREFILL:
    return (timeline_bar){.row = sampler_row(c, s->sampler, OF_PAUSES), .kind = TIMELINE_PREFILL};
  case SPAN_CALL:
    return (timeline_bar){.row = sampler_row(c, s->sampler, OF_PAUSES),
                          .kind = TIMELINE_EVALUATION};
  case SPAN_CALL_WAITS:
  case SPAN_PREEMPTED:
    return (timeline_bar){.row = sampler_row(c, s->sampler, OF_PAUSES), .kind = TIMELINE_WAITING};
  case SPAN_GATED:
  case SPAN_FETCH:
    return (timeline_bar){.row = sampler, .kind = TIMELINE_WAITING};
  case SPAN_DOWN:
    return (timeline_bar){.row = sampler, .kind = TIMELINE_DOWN};
  case SPAN_UPLOAD:
    return (timeline_bar){.row = sampler_row(c, s->sampler, OF_BATCHES), .kind = TIMELINE_BATCHES};
  case SPAN_DOWNLOAD:
    return (timeline_bar){.row = sampler_row(c, s->sampler, OF_WEIGHTS), .kind = TIMELINE_WEIGHTS};
  case SPAN_UPLOAD_WAITS:
    return (timeline_bar){.row = sampler_row(c, s->sampler, OF_BATCHES), .kind = TIMELINE_WAITING};
  case SPAN_DOWNLOAD_WAITS:
    return (timeline_bar){.row = sampler_row(c, s->sampler, OF_WEIGHTS), .kind = TIMELINE_WAITING};
  case SPAN_EGRESS:
    return (timeline_bar){.row = ROW_EGRESS, .kind = TIMELINE_WEIGHTS};
  case SPAN_INGRESS:
    return (timeline_bar){.row = ROW_INGRESS, .kind = TIMELINE_BATCHES};
  case SPAN_RELAY:
    return (timeline_bar){.row = sampler_row(c, s->sampler, OF_RELAY), .kind = TIMELINE_WEIGHTS};
  case SPAN_OUTAGE:
    return (timeline_bar){.row = s->sampler < MOST_SITES ? FIRST_SITE + s->sampler : MOST_ROWS,
                          .kind = TIMELINE_DOWN};
  case SPAN_GRADING:
    return (timeline_bar){.row = ROW_QUEUE, .kind = TIMELINE_EVALUATION};
  case SPAN_RESTART:
    return (timeline_bar){.row = ROW_RESTARTS, .kind = TIMELINE_DOWN};
  case SPAN_QUEUED:
    return (timeline_bar){.row = ROW_QUEUE, .kind = TIMELINE_QUEUED};
  case SPAN_IDLE:
    return (timeline_bar){.row = ROW_LEARNER, .kind = TIMELINE_WAITING};
  case SPAN_TRAINING:
    return (timeline_bar){.row = ROW_LEARNER, .kind = TIMELINE_TRAINING};
  case SPAN_SWITCH:
    return (timeline_bar){.row = ROW_LEARNER, .kind = TIMELINE_INTERRUPTION};
  case SPAN_EVALUATION:
    return (timeline_bar){.row = ROW_LEARNER, .kind = TIMELINE_EVALUATION};
  }
  return (timeline_bar){.row = MOST_ROWS};
}

static void timeline_collect(void *self, const schedule_span *s) {
  collector *c = self;
  timeline_bar bar = timeline_bar_of(c, s);
  if (bar.row == MOST_ROWS || s->from_s > c->to_s || s->to_s < c->from_s) return;
  bar.ends = s->end == SPAN_DROPPED ? TIMELINE_DROPPED
             : s->end == SPAN_LOST  ? TIMELINE_LOST
                                    : bar.kind;
  bar.from_s = s->from_s;
  bar.to_s = s->to_s;
  c->is_full |= c->n == MOST_BARS;
  if (!c->is_full) *MUST_ADD(c->bars, c->n, "a timeline") = bar;
}

static void choose_samplers(collector *c, size_t n) {
  c->n_samplers = n < MOST_SAMPLERS ? n : MOST_SAMPLERS;
  for (size_t i = 0; i < c->n_samplers; i++)
    c->sampler[i] = (uint32_t)(c->n_samplers < 2 ? 0 : i * (n - 1) / (c->n_samplers - 1));
}

/* Selects the time range: `between`, or by default the first updates, with the evaluation that may
 * follow them. */
static void choose_times(collector *c, const schedule *s, const double *between) {
  c->from_s = between != NULL ? between[0] : 0;
  c->to_s = between != NULL               ? between[1]
            : s->n_updates > MOST_UPDATES ? s->updates[MOST_UPDATES].start_s
                                          : s->clock.simulated_s;
}

static gl_status timeline_check(const collector *c, gl_error *err) {
  if (!c->is_full) return GL_OK;
  return gl_fail(err, GL_EINPUT,
                 "more than %d things happen between %g and %g simulated seconds; show less of "
                 "them: --between FROM,TO",
                 MOST_BARS, c->from_s, c->to_s);
}

static gl_status timeline_draw_rows(const collector *c, const cluster_spec *cluster,
                                    const figure_request *q, gl_error *err) {
  const size_t n_samplers = cluster_samplers(cluster);
  char room[MOST_ROWS][40] = {"learner", "queue", "egress", "ingress", "restarts"},
       left_out[80] = "";
  const char *units = cluster_unit_names(cluster);
  const char *rows[MOST_ROWS] = {room[0], room[1], room[2], room[3], room[4]};
  for (size_t i = 0; i < MOST_SITES; i++) {
    const char *site = cluster_site_at(cluster, i);
    snprintf(room[FIRST_SITE + i], sizeof room[0], "site %.30s",
             site != NULL ? shown(site).text : "");
    rows[FIRST_SITE + i] = room[FIRST_SITE + i];
  }
  size_t n = FIRST_SAMPLER;
  for (size_t i = 0; i < c->n_samplers; i++, n += EACH) {
    const unsigned number = c->sampler[i] + 1;
    snprintf(room[n + OF_SAMPLER], sizeof room[n], "sampler %u", number);
    snprintf(room[n + OF_PAUSES], sizeof room[n], "pauses of %u", number);
    snprintf(room[n + OF_BATCHES], sizeof room[n], "%s of %u", units, number);
    snprintf(room[n + OF_WEIGHTS], sizeof room[n], "weights to %u", number);
    snprintf(room[n + OF_RELAY], sizeof room[n], "%u sends on", number);
    for (size_t k = 0; k < EACH; k++) rows[n + k] = room[n + k];
  }
  if (n_samplers > c->n_samplers)
    snprintf(left_out, sizeof left_out, "%zu of %zu samplers", n_samplers - c->n_samplers,
             n_samplers);
  return figure_of_timeline(&(timeline){rows, n, c->bars, c->n, c->from_s, c->to_s, left_out}, q,
                            err);
}

gl_status timeline_draw(const schedule *s, const cluster_spec *cluster, uint64_t seed,
                        const double *between, const figure_request *q, gl_error *err) {
  collector c = {.n = 0};
  schedule again;
  const schedule_trace trace = {&c, timeline_collect};
  choose_samplers(&c, cluster_samplers(cluster));
  choose_times(&c, s, between);
  gl_status status = schedule_build_traced(&again, cluster, seed, s->n_updates, &trace, err);
  schedule_fini(&again);
  if (status == GL_OK) status = timeline_check(&c, err);
  if (status == GL_OK) status = timeline_draw_rows(&c, cluster, q, err);
  free(c.bars);
  return status;
}

/* --- densities: the distributions of a recipe's clusters as curves --- */

enum { MOST_BINS = 120, LEAST_BINS = 8, ROOM = MOST_BINS + 4, NAME = 120, MOST_FIELDS = 16 };
enum { SENTENCE = 400 };
/* A distribution with this much probability at one value counts as constant. */
static const double all_mass = 1 - 1e-9;

typedef struct clusters {
  cluster_spec **spec; /* [n] */
  size_t n;
} clusters;

static void clusters_fini(clusters *c) {
  for (size_t i = 0; i < c->n; i++) cluster_free(c->spec[i]);
  free(c->spec);
}

static gl_status add_cluster(clusters *c, const recipe *r, gl_error *err) {
  cluster_spec **added = MUST_ADD(c->spec, c->n, "clusters");
  return cluster_parse(added, r->cluster, r->groups, r->group_size, err);
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

static gl_status read_clusters(clusters *c, const recipe *r, const cfg_doc *doc, gl_error *err) {
  sweep_grid grid;
  sweep_cells cells = {0};
  if (r->sweep == NULL) return add_cluster(c, r, err);
  gl_status status = sweep_grid_read(&grid, doc, err);
  if (status == GL_OK) status = sweep_expand(&cells, doc, &grid, &(sweep_expansion){0}, err);
  for (size_t i = 0; i < cells.n_cells && status == GL_OK; i++)
    if (!sweep_cell_repeats(&cells, i)) status = densities_add_cell(c, &cells.cells[i], err);
  sweep_cells_fini(&cells);
  return status;
}

/* A distribution of a field and its density curve. Equal distributions of a field share an entry.
 */
typedef struct entry {
  const char *field, *unit;
  const delay_dist *dist;
  char text[DELAY_TEXT_SIZE];
  double value[DELAY_MOST_POINT_MASSES], mass[DELAY_MOST_POINT_MASSES]; /* [n_masses] points */
  size_t n_masses;
  bool varies;
  size_t panel;
  double x[ROOM], y[ROOM]; /* [n] the density curve */
  size_t n;
} entry;

typedef struct dists {
  entry *of; /* [n] */
  size_t n;
  const char *field[MOST_FIELDS]; /* [n_panels] fields with a distribution that varies */
  int logarithmic[MOST_FIELDS];
  double low[MOST_FIELDS], high[MOST_FIELDS];
  size_t n_panels;
} dists;

static void densities_add_dist(dists *l, const cluster_dist *dist) {
  char text[DELAY_TEXT_SIZE];
  delay_text(dist->dist, text);
  for (size_t i = 0; i < l->n; i++)
    if (strcmp(l->of[i].field, dist->field) == 0 && strcmp(l->of[i].text, text) == 0) return;
  entry *e = MUST_ADD(l->of, l->n, "distributions");
  *e = (entry){.field = dist->field, .unit = dist->unit, .dist = dist->dist};
  memcpy(e->text, text, sizeof text);
  e->n_masses = delay_point_masses(dist->dist, e->value, e->mass);
  e->varies = !(e->n_masses > 0 && e->mass[0] >= all_mass);
}

static void densities_read_dists(dists *l, const clusters *c) {
  cluster_dist dist;
  for (size_t i = 0; i < c->n; i++)
    for (size_t k = 0; cluster_dist_at(c->spec[i], k, &dist); k++) densities_add_dist(l, &dist);
}

/* Gives each field with a distribution that is not constant a panel. The range of a panel ends at
 * the largest 99.5 % quantile of its distributions, or at the end of a distribution that is less
 * than 10 % above that quantile. Its axis is logarithmic if the 99.5 % quantile of a distribution
 * is more than 30 times its median, or less than a twentieth of the range's end. */
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
    const double last = delay_quantile(e->dist, all_mass);
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

/* The probability in (a, b] without point masses. */
static double continuous_mass(const entry *e, double a, double b) {
  double sum = delay_cdf(e->dist, b, false) - delay_cdf(e->dist, a, false);
  for (size_t i = 0; i < e->n_masses; i++)
    if (e->value[i] > a && e->value[i] <= b) sum -= e->mass[i];
  return fmax(0, sum);
}

/* The number of bins; fewer for small empirical samples (Rice's rule). */
static size_t bins_of(const delay_dist *dist) {
  if (dist->kind != DELAY_EMPIRICAL) return MOST_BINS;
  const double n = ceil(2 * cbrt((double)dist->empirical.n));
  return n < LEAST_BINS ? LEAST_BINS : n > MOST_BINS ? MOST_BINS : (size_t)n;
}

static void densities_add_point(entry *e, double x, double y) {
  e->x[e->n] = x, e->y[e->n++] = y;
}

/* Computes the mean density of each bin, at the bin's centre, and a step to 0 at both ends of the
 * support. */
static void make_curve(const dists *l, entry *e) {
  const int logarithmic = l->logarithmic[e->panel];
  const double least = delay_quantile(e->dist, 1e-9), most = delay_quantile(e->dist, all_mass);
  const double from = logarithmic ? fmax(least, l->low[e->panel]) : least;
  const double to = fmin(most, l->high[e->panel]);
  const size_t bins = bins_of(e->dist);
  if (!(to > from)) return;
  const double wide =
      (logarithmic ? log(to / from) : to - from) / (double)bins; /* width in x or ln x */
  if (from == least) densities_add_point(e, from, 0), densities_add_point(e, from, NAN);
  for (size_t i = 0; i < bins; i++) {
    const double at = wide * (double)i, middle = at + 0.5 * wide;
    const double a = logarithmic ? from * exp(at) : from + at;
    const double b = logarithmic ? from * exp(at + wide) : from + at + wide;
    densities_add_point(e, logarithmic ? from * exp(middle) : from + middle,
                        continuous_mass(e, a, b) / wide);
  }
  if (from == least) e->y[1] = e->y[2];
  if (to == most) densities_add_point(e, to, e->y[e->n - 1]), densities_add_point(e, to, 0);
}

static void densities_name_panel(const dists *l, size_t panel, char name[NAME]) {
  const field *f = fields_named(l->field[panel]);
  const char *unit = "";
  for (size_t i = 0; i < l->n; i++)
    if (strcmp(l->of[i].field, l->field[panel]) == 0) unit = l->of[i].unit;
  snprintf(name, NAME, *unit ? "%s [%s]" : "%s%s", f != NULL ? f->label : l->field[panel], unit);
}

/* Describes a constant: "step time (always 27 s)"; or "weight delay none" if other distributions of
 * the field vary; or "" for a field that is always 0, because it is unused. */
static void describe_constant(const dists *l, const entry *e, char text[SENTENCE]) {
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

/* Describes point masses: "lognormal(...): 0.25 % are 60 s, 0.25 % are 1800 s"; "" without point
 * masses. */
static void describe_point_masses(const entry *e, char text[SENTENCE]) {
  size_t n = 0, said = 0;
  text[0] = 0;
  for (size_t i = 0; e->varies && i < e->n_masses && n < SENTENCE; i++) {
    if (e->mass[i] < 5e-5) continue;
    n += (size_t)snprintf(text + n, SENTENCE - n,
                          said++ ? ", %.3g %% are %.4g%s%s" : "%.3g %% are %.4g%s%s",
                          100 * e->mass[i], e->value[i], *e->unit ? " " : "", e->unit);
  }
  if (said == 0) return;
  char head[SENTENCE];
  snprintf(head, sizeof head, "%.200s: %.180s", e->text, text);
  memcpy(text, head, SENTENCE);
}

/* The index of a distribution's line in the legend; it may occur in several panels. */
static size_t densities_line_of(const char **lines, size_t *n, const char *text) {
  size_t i = 0;
  while (i < *n && strcmp(lines[i], text) != 0) i++;
  if (i == *n) lines[(*n)++] = text;
  return i;
}

static gl_status densities_draw_panels(const dists *l, const figure_request *q, gl_error *err) {
  static const char what[] = "densities";
  char names[MOST_FIELDS][NAME];
  const char *panels[MOST_FIELDS];
  char(*sentence)[SENTENCE] = must_alloc(2 * l->n, sizeof *sentence, what);
  density *curves = MUST_ARRAY(density, l->n, what);
  const char **lines = MUST_ARRAY(const char *, l->n, what);
  const char **left_out = MUST_ARRAY(const char *, l->n, what);
  const char **remarks = MUST_ARRAY(const char *, l->n, what);
  densities d = {.panels = panels,
                 .logarithmic = l->logarithmic,
                 .n_panels = l->n_panels,
                 .lines = lines,
                 .of = curves,
                 .left_out = left_out,
                 .remarks = remarks};
  for (size_t panel = 0; panel < l->n_panels; panel++) {
    densities_name_panel(l, panel, names[panel]);
    panels[panel] = names[panel];
  }
  for (size_t i = 0; i < l->n; i++) {
    const entry *e = &l->of[i];
    char *constant = sentence[2 * i], *masses = sentence[2 * i + 1];
    describe_constant(l, e, constant);
    describe_point_masses(e, masses);
    if (*constant) left_out[d.n_left_out++] = constant;
    if (*masses) remarks[d.n_remarks++] = masses;
    if (!e->varies) continue;
    const size_t line = densities_line_of(lines, &d.n_lines, e->text);
    curves[d.n++] = (density){e->panel, line, e->x, e->y, e->n};
  }
  const gl_status status = figure_of_densities(&d, q, err);
  free(lines), free(curves), free(sentence), free(left_out), free(remarks);
  return status;
}

gl_status densities_draw(const recipe *r, const cfg_doc *doc, const figure_request *q,
                         gl_error *err) {
  clusters c = {NULL, 0};
  dists l = {.n = 0};
  gl_status status = read_clusters(&c, r, doc, err);
  if (status == GL_OK) {
    densities_read_dists(&l, &c);
    choose_panels(&l);
    for (size_t i = 0; i < l.n; i++)
      if (l.of[i].varies) make_curve(&l, &l.of[i]);
    status = densities_draw_panels(&l, q, err);
  }
  free(l.of);
  clusters_fini(&c);
  return status;
}
