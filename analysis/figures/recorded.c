/* Figures of a recorded run. Points are medians over updates with quartiles. Updates of one run are
 * not independent, so an interval of a mean would be too narrow. */
#include "analysis/figures/recorded.h"

#include "analysis/plot/draw.h"
#include "analysis/plot/page.h"
#include "analysis/statistics.h"
#include "core/base/display_text.h"
#include "core/base/metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NEEDS_STALENESS = 1 << 0, NEEDS_DISTANCE = 1 << 1, NEEDS_ROWS = 1 << 2 };

size_t recorded_width(size_t n_algorithms) {
  return RECORDED_VALUES + n_algorithms * RECORDED_OF_ALGORITHM;
}

static double value_at(const recorded *r, size_t update, recorded_value v) {
  return r->value[update * recorded_width(r->n_algorithms) + (size_t)v];
}

static double recorded_algorithm_at(const recorded *r, size_t update, size_t row,
                                    recorded_of_algorithm v) {
  return r->value[update * recorded_width(r->n_algorithms) + RECORDED_VALUES +
                  row * RECORDED_OF_ALGORITHM + (size_t)v];
}

/* Sorts values[n] and returns their median and quartiles, exponentiated if they are logarithms
 * (which keeps the order). Infinite values count but are not drawn. */
static interval middle_of(double *values, size_t n, int logarithms) {
  const size_t kept = sample_sort(values, n);
  interval v = {sample_quantile(values, kept, 0.5), sample_quantile(values, kept, 0.25),
                sample_quantile(values, kept, 0.75)};
  if (logarithms) v = (interval){exp(v.value), exp(v.low), exp(v.high)};
  return v;
}

/* --- figure against staleness --- */

enum { BINS = 24, DISTANCES = 3 };

static const char *const of_responses = "KL(q‖p) per response, k3 [nats]";

typedef struct distance {
  recorded_value of;
  const char *axis;
  int logarithm; /* 1: values are logarithms of the plotted quantity */
} distance;

static distance distance_at(size_t i) {
  const distance all[DISTANCES] = {
      {RECORDED_KL_TOKEN, "KL(q‖p) per token, k3 [nats]", 0},
      {RECORDED_KL_RESPONSE, of_responses, 0},
      {RECORDED_LOG_VARIANCE_PQ, "variance of P/Q", 1},
  };
  return all[i];
}

static double largest_recorded_staleness(const recorded *r) {
  double most = 0;
  for (size_t i = 0; i < r->n; i++) most = fmax(most, value_at(r, i, RECORDED_STALENESS));
  return most;
}

/* Width of a staleness bin, in versions. */
static double bin_width(const recorded *r) {
  return fmax(1, ceil((largest_recorded_staleness(r) + 1) / BINS));
}

/* Writes the values of the updates with from <= staleness < to. Returns how many. */
static size_t of_bin(const recorded *r, recorded_value v, double from, double to, double *values) {
  size_t n = 0;
  for (size_t i = 0; i < r->n; i++) {
    const double staleness = value_at(r, i, RECORDED_STALENESS);
    if (staleness >= from && staleness < to) values[n++] = value_at(r, i, v);
  }
  return n;
}

static void write_recorded_point(figure_page *p, size_t panel, const char *line, double x,
                                 interval v, size_t n) {
  page_line(p, panel, line);
  page_number(p, x);
  page_interval(p, panel, v.value, v.low, v.high);
  fprintf(p->data.stream, "\t%zu\n", n);
  page_x(p, x);
}

/* The last panel has the number of updates per point. */
static void write_staleness_panel(figure_page *p, size_t panel, const recorded *r, const char *line,
                                  double *values) {
  const double wide = bin_width(r);
  const int counts = panel == DISTANCES;
  const distance d =
      counts ? (distance){RECORDED_STALENESS, "updates in the bin", 1} : distance_at(panel);
  figure_panel *to = &p->panels[panel];
  snprintf(to->axis, sizeof to->axis, "%s", d.axis);
  to->logarithmic = d.logarithm;
  to->kept = counts;
  for (size_t k = 0; k < BINS; k++) {
    const double from = wide * (double)k;
    const size_t n = of_bin(r, d.of, from, from + wide, values);
    if (n == 0) continue;
    const interval v = counts ? (interval){(double)n, NAN, NAN} : middle_of(values, n, d.logarithm);
    write_recorded_point(p, panel, line, from + 0.5 * (wide - 1), v, n);
  }
  page_block_end(p);
}

static gl_status write_staleness(const void *data, figure_page *p, gl_error *err) {
  static const char *const line = "recorded";
  const recorded *r = data;
  double *values = ARENA_ARRAY(&p->memory, double, r->n);
  gl_status status = arena_check(&p->memory, "a figure", err);
  if (status == GL_OK)
    status =
        page_open(p, DISTANCES + 1,
                  "panel\tline\tstaleness\tmedian\tlower quartile\tupper quartile\tupdates", err);
  if (status == GL_OK) {
    p->wide = page_columns(p, 2);
    p->all_marks = 1;
    metric_axis(METRIC_STALENESS, p->x_axis);
    for (size_t panel = 0; panel < p->n_panels; panel++)
      write_staleness_panel(p, panel, r, line, values);
    status = page_set_lines(p, &line, 1, err);
  }
  if (status == GL_OK)
    status = page_remark(p, err, "Medians over updates in bins of %g version%s; bands: quartiles",
                         bin_width(r), bin_width(r) == 1 ? "" : "s");
  return status;
}

/* --- figure against KL --- */

enum { MOST_CLASSES = 10, FEWEST_IN_CLASS = 4 };

static const char *const plain_ratio = "P/Q of the response";

/* Updates in ascending order of the KL per response; updates without a KL above 0 are omitted. */
typedef struct by_distance {
  const recorded *r;
  size_t *update; /* [n] */
  size_t n, classes;
  size_t *line; /* [n_lines] */
  size_t n_lines;
  double *values; /* [r->n] */
} by_distance;

typedef struct place {
  double kl;
  size_t update;
} place;

static int by_kl(const void *a, const void *b) {
  const double x = ((const place *)a)->kl, y = ((const place *)b)->kl;
  return (x > y) - (x < y);
}

/* Memory comes from the page's arena. */
static gl_status by_distance_init(by_distance *d, figure_page *p, const recorded *r,
                                  gl_error *err) {
  *d = (by_distance){.r = r,
                     .update = ARENA_ARRAY(&p->memory, size_t, r->n),
                     .line = ARENA_ARRAY(&p->memory, size_t, r->n_algorithms + 1),
                     .values = ARENA_ARRAY(&p->memory, double, r->n)};
  place *places = ARENA_ARRAY(&p->memory, place, r->n);
  gl_status status = arena_check(&p->memory, "a figure", err);
  if (status != GL_OK) return status;
  for (size_t i = 0; i < r->n; i++) {
    const double kl = value_at(r, i, RECORDED_KL_RESPONSE);
    if (kl > 0 && isfinite(kl)) places[d->n++] = (place){kl, i};
  }
  qsort(places, d->n, sizeof *places, by_kl);
  for (size_t i = 0; i < d->n; i++) d->update[i] = places[i].update;
  d->classes = d->n / FEWEST_IN_CLASS;
  d->classes = d->classes < 1 ? 1 : d->classes > MOST_CLASSES ? MOST_CLASSES : d->classes;
  return GL_OK;
}

/* Log variance of a line's importance weights: an algorithm's, or those of P/Q if line ==
 * n_algorithms.
 */
static double line_at(const recorded *r, size_t update, size_t line) {
  return line == r->n_algorithms ? value_at(r, update, RECORDED_LOG_VARIANCE_PQ)
                                 : recorded_algorithm_at(r, update, line, RECORDED_LOG_VARIANCE);
}

static const char *line_name(const recorded *r, size_t line) {
  return line == r->n_algorithms ? plain_ratio : r->algorithms[line];
}

/* Compares with a tolerance: sums of equal weights in another order differ in the last digits. */
static bool is_same(double a, double b) {
  return a == b || (isnan(a) && isnan(b)) || fabs(a - b) < 1e-9;
}

static bool weigh_alike(const recorded *r, size_t a, size_t b) {
  for (size_t i = 0; i < r->n; i++)
    if (!is_same(line_at(r, i, a), line_at(r, i, b))) return false;
  return true;
}

static bool has_weights(const recorded *r, size_t line) {
  for (size_t i = 0; i < r->n; i++)
    if (isfinite(line_at(r, i, line))) return true;
  return false;
}

/* The line that represents algorithm `line`: the first with the same weights. */
static size_t drawn_as(const recorded *r, size_t line) {
  if (weigh_alike(r, r->n_algorithms, line)) return r->n_algorithms;
  for (size_t k = 0; k < line; k++)
    if (weigh_alike(r, k, line)) return k;
  return line;
}

static void recorded_list_name(FILE *to, size_t *n, const char *name) {
  fprintf(to, "%s%s", (*n)++ > 0 ? ", " : "", shown(name).text);
}

/* Adds a remark such as "gspo also stands for gspo_token, gmpo". */
static gl_status remark_twins(figure_page *p, const recorded *r, size_t line, gl_error *err) {
  char *list = NULL;
  size_t size = 0, n = 0;
  FILE *to = open_memstream(&list, &size);
  if (to == NULL) return gl_fail_memory(err, "the names of a figure's lines");
  for (size_t k = 0; k < r->n_algorithms; k++)
    if (k != line && has_weights(r, k) && drawn_as(r, k) == line)
      recorded_list_name(to, &n, r->algorithms[k]);
  fclose(to);
  gl_status status =
      n > 0 ? page_remark(p, err, "%s also stands for %s", shown(line_name(r, line)).text, list)
            : GL_OK;
  free(list);
  return status;
}

static gl_status remark_weightless(figure_page *p, const recorded *r, gl_error *err) {
  char *list = NULL;
  size_t size = 0, n = 0;
  FILE *to = open_memstream(&list, &size);
  if (to == NULL) return gl_fail_memory(err, "the names of a figure's lines");
  for (size_t k = 0; k < r->n_algorithms; k++)
    if (!has_weights(r, k)) recorded_list_name(to, &n, r->algorithms[k]);
  fclose(to);
  gl_status status = n > 0 ? page_remark(p, err, "Without weights that vary: %s", list) : GL_OK;
  free(list);
  return status;
}

/* Draws only one of several lines with equal weights; a remark names the others. */
static gl_status choose_lines(by_distance *d, figure_page *p, gl_error *err) {
  const recorded *r = d->r;
  d->line[d->n_lines++] = r->n_algorithms;
  for (size_t k = 0; k < r->n_algorithms; k++)
    if (has_weights(r, k) && drawn_as(r, k) == k) d->line[d->n_lines++] = k;
  gl_status status = GL_OK;
  for (size_t k = 0; k < d->n_lines && status == GL_OK; k++)
    status = remark_twins(p, r, d->line[k], err);
  return status == GL_OK ? remark_weightless(p, r, err) : status;
}

/* Writes the values of a line at the updates of one KL class (equal numbers of updates, by KL) to
 * values[]. Returns their number; *first: index of the first. */
static size_t of_class(const by_distance *d, size_t line, size_t class, size_t *first) {
  const size_t from = class * d->n / d->classes, to = (class + 1) * d->n / d->classes;
  for (size_t i = from; i < to; i++) d->values[i - from] = line_at(d->r, d->update[i], line);
  *first = from;
  return to - from;
}

static void write_variances(figure_page *p, const by_distance *d, size_t line) {
  for (size_t class = 0; class < d->classes; class ++) {
    size_t first;
    const size_t n = of_class(d, line, class, &first);
    const double x = value_at(d->r, d->update[first + n / 2], RECORDED_KL_RESPONSE);
    interval v = middle_of(d->values, n, 1);
    if (line < d->r->n_algorithms) v.low = v.high = NAN; /* only P/Q has a readable band */
    write_recorded_point(p, 0, line_name(d->r, line), x,
                         v.value > 0 ? v : (interval){NAN, NAN, NAN}, n);
  }
  page_block_end(p);
}

static gl_status remark_rank_correlation(figure_page *p, const by_distance *d, gl_error *err) {
  const recorded *r = d->r;
  double *kl = ARENA_ARRAY(&p->memory, double, r->n);
  correlation rho;
  if (kl == NULL) return gl_fail_memory(err, "a figure");
  for (size_t i = 0; i < r->n; i++) {
    kl[i] = value_at(r, i, RECORDED_KL_RESPONSE);
    d->values[i] = value_at(r, i, RECORDED_LOG_VARIANCE_PQ);
  }
  const rng_stream stream = rng_stream_at(1, RNG_BOOTSTRAP, UINT64_C(9) << 60);
  gl_status status = spearman(kl, d->values, r->n, stream, &rho, err);
  if (status != GL_OK) return status;
  if (rho.why != NULL) return page_remark(p, err, "P/Q: %s", rho.why);
  return page_remark(p, err, "Spearman's ρ of KL and the variance of P/Q over %zu updates: %.2f",
                     rho.n, rho.fisher.value);
}

static gl_status write_variance_lines(figure_page *p, by_distance *d, gl_error *err) {
  const char **names = ARENA_ARRAY(&p->memory, const char *, d->n_lines);
  if (names == NULL) return gl_fail_memory(err, "a figure");
  for (size_t k = 0; k < d->n_lines; k++) {
    names[k] = line_name(d->r, d->line[k]);
    write_variances(p, d, d->line[k]);
  }
  return page_set_lines(p, names, d->n_lines, err);
}

static gl_status write_distance(by_distance *d, figure_page *p, gl_error *err) {
  gl_status status =
      page_open(p, 1, "panel\tline\tkl\tmedian\tlower quartile\tupper quartile\tupdates", err);
  if (status != GL_OK) return status;
  p->all_marks = 1;
  p->x_logarithmic = 1;
  snprintf(p->x_axis, sizeof p->x_axis, "%s", of_responses);
  snprintf(p->panels[0].axis, sizeof p->panels[0].axis, "variance of weights in a group");
  p->panels[0].logarithmic = true;
  p->panels[0].kept = 1;
  status = page_remark(p, err,
                       "Updates in %zu classes by KL, as many in each: medians; band: quartiles of "
                       "P/Q",
                       d->classes);
  if (status == GL_OK) status = remark_rank_correlation(p, d, err);
  if (status == GL_OK) status = choose_lines(d, p, err);
  if (status == GL_OK) status = write_variance_lines(p, d, err);
  if (status == GL_OK && d->n < d->r->n)
    status =
        page_leave_out(p, err, "%zu of %zu updates, without a KL above 0", d->r->n - d->n, d->r->n);
  return status;
}

static gl_status write_variance(const void *data, figure_page *p, gl_error *err) {
  by_distance d;
  gl_status status = by_distance_init(&d, p, data, err);
  if (status != GL_OK) return status;
  status = write_distance(&d, p, err);
  return status;
}

/* --- figure by algorithm --- */

static const struct {
  recorded_of_algorithm of;
  const char *axis;
} shares[] = {{RECORDED_ESS, "effective sample size"},
              {RECORDED_CLIPPED, "clipped fraction"},
              {RECORDED_IDLE, "tokens without gradient"}};
enum { SHARES = sizeof shares / sizeof *shares };

/* Writes a panel with median and quartiles of a fraction over the updates, one row for each
 * algorithm. */
static void write_fraction(figure_page *p, size_t panel, const recorded *r, double *values) {
  figure_panel *to = &p->panels[panel];
  snprintf(to->axis, sizeof to->axis, "%s", shares[panel].axis);
  to->low = 0, to->high = 1, to->kept = 1;
  for (size_t k = 0; k < r->n_algorithms; k++, page_block_end(p)) {
    for (size_t i = 0; i < r->n; i++) values[i] = recorded_algorithm_at(r, i, k, shares[panel].of);
    const size_t n = sample_sort(values, r->n);
    if (n == 0) continue;
    const interval v = middle_of(values, n, 0);
    page_line(p, panel, r->algorithms[k]);
    fprintf(p->data.stream, "\t%zu", k + 1);
    page_interval(p, panel, v.value, v.low, v.high);
    fprintf(p->data.stream, "\t%zu\n", n);
  }
}

static gl_status write_algorithms(const void *data, figure_page *p, gl_error *err) {
  const recorded *r = data;
  double *values = ARENA_ARRAY(&p->memory, double, r->n);
  gl_status status = arena_check(&p->memory, "a figure", err);
  if (status == GL_OK)
    status = page_open(
        p, SHARES, "panel\talgorithm\tplace\tmedian\tlower quartile\tupper quartile\tupdates", err);
  if (status == GL_OK) {
    p->wide = p->share = SHARES;
    p->named_rows = 1;
    for (size_t panel = 0; panel < SHARES; panel++) write_fraction(p, panel, r, values);
    status = page_set_lines(p, r->algorithms, r->n_algorithms, err);
  }
  if (status == GL_OK)
    status = page_remark(p, err, "Medians over %zu updates, with quartiles", r->n);
  return status;
}

/* --- the table --- */

static const figure figures[] = {
    {"whatif_staleness", "KL and the variance of P/Q against staleness", "curves", NEEDS_STALENESS,
     write_staleness},
    {"whatif_variance", "the variance of every algorithm's weights against KL", "curves",
     NEEDS_DISTANCE, write_variance},
    {"whatif_algorithms", "effective sample size, clipped fraction and idle tokens by algorithm",
     "rows", NEEDS_ROWS, write_algorithms},
};

static const char *lacks_staleness(const recorded *r) {
  double least = INFINITY, most = -INFINITY;
  for (size_t i = 0; i < r->n; i++) {
    least = fmin(least, value_at(r, i, RECORDED_STALENESS));
    most = fmax(most, value_at(r, i, RECORDED_STALENESS));
  }
  if (most < 0) return "no record of the log has version_gap";
  return most > least ? NULL : "all updates of the log have one staleness";
}

static bool has_distance(const recorded *r) {
  for (size_t i = 0; i < r->n; i++)
    if (value_at(r, i, RECORDED_KL_RESPONSE) > 0 &&
        isfinite(value_at(r, i, RECORDED_LOG_VARIANCE_PQ)))
      return true;
  return false;
}

static const char *recorded_lacks(const void *data, unsigned needs) {
  const recorded *r = data;
  if ((needs & NEEDS_STALENESS) && lacks_staleness(r) != NULL) return lacks_staleness(r);
  if ((needs & NEEDS_DISTANCE) && !has_distance(r))
    return "learner and sampler are alike in every update of the log";
  if ((needs & NEEDS_ROWS) && r->n_algorithms == 0) return "no algorithm takes a batch of the log";
  return NULL;
}

gl_status figures_of_recorded(const recorded *r, const figure_request *q, gl_error *err) {
  static const figure_table list = {figures, sizeof figures / sizeof *figures, recorded_lacks,
                                    "the log has no data for any figure", NULL};
  gl_status status = figures_check_highlight(q, r->algorithms, r->n_algorithms, err);
  return status == GL_OK ? figures_draw_table(&list, r, q, err) : status;
}
