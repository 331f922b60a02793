/* The staleness distribution: schedules against a measured trace. */
#include "analysis/figure_page.h"

#include "analysis/wandb.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PANELS = 4, MOST_STALENESS = 1 << 20 };

static double total(const uint64_t *count, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += (double)count[i];
  return sum;
}

double staleness_distance(const uint64_t *a, size_t n_a, const uint64_t *b, size_t n_b) {
  double all_a = total(a, n_a), all_b = total(b, n_b), sum_a = 0, sum_b = 0, largest = 0;
  if (all_a <= 0 || all_b <= 0) return NAN;
  for (size_t i = 0; i < n_a || i < n_b; i++) {
    if (i < n_a) sum_a += (double)a[i];
    if (i < n_b) sum_b += (double)b[i];
    largest = fmax(largest, fabs(sum_a / all_a - sum_b / all_b));
  }
  return largest;
}

/* Largest usable value of the series, or -1 with the first that is not one in *wrong. */
static int64_t largest_staleness(const wandb_series *s, double *wrong) {
  int64_t largest = 0;
  for (size_t i = 0; i < s->n; i++) {
    if (!(s->value[i] >= 0 && s->value[i] < MOST_STALENESS)) {
      *wrong = s->value[i];
      return -1;
    }
    int64_t here = llround(s->value[i]);
    if (here > largest) largest = here;
  }
  return largest;
}

gl_status staleness_measured(const char *path, uint64_t **count, size_t *n, gl_error *err) {
  wandb_table *w;
  double wrong = 0;
  *count = NULL;
  *n = 0;
  gl_status status = wandb_read(&w, path, err);
  if (status != GL_OK) return status;
  const wandb_series *s = wandb_find(w, "step_diff");
  if (!s) s = wandb_find(w, "staleness");
  int64_t largest = s ? largest_staleness(s, &wrong) : -1;
  if (!s || s->n == 0)
    status = gl_fail(err, GL_EINPUT,
                     "%s: no run has a metric step_diff or staleness; export that panel", path);
  else if (largest < 0)
    status = gl_fail(err, GL_EINPUT, "%s: staleness %g of run %s is not a number of updates", path,
                     wrong, s->run);
  else if (!(*count = calloc((size_t)largest + 1, sizeof **count)))
    status = gl_fail_memory(err, "a histogram");
  for (size_t i = 0; status == GL_OK && i < s->n; i++) ++(*count)[llround(s->value[i])];
  if (status == GL_OK) *n = (size_t)largest + 1;
  wandb_free(w);
  return status;
}

/* A block of shares, which widens the panel. */
static void write_shares(figure_page *p, size_t panel, const char *line, const uint64_t *count,
                         size_t n) {
  double all = total(count, n);
  for (size_t i = 0; i < n && all > 0; i++) {
    double share = (double)count[i] / all;
    page_line(p, panel, line);
    fprintf(p->data.stream, "\t%zu", i);
    page_number(p, share);
    fprintf(p->data.stream, "\t%llu\n", (unsigned long long)count[i]);
    p->panels[panel].low = 0;
    p->panels[panel].high = fmax(p->panels[panel].high, share);
    if (count[i]) page_x(p, (double)i);
  }
  page_block_end(p);
}

static gl_status write_histograms(const staleness_histogram *h, size_t n, const figure_request *q,
                                  const uint64_t *measured, size_t n_measured, gl_error *err) {
  static const char *const lines[] = {"simulated", "measured"};
  figure_page p;
  gl_status status =
      page_begin(&p, q, "staleness", "staleness", n, "panel\tsource\tstaleness\tshare\tcount", err);
  if (status != GL_OK) return status;
  p.share = n;
  p.lines = lines;
  p.n_lines = measured ? 2 : 1;
  p.x_axis = "staleness [updates]";
  page_x(&p, -0.5);
  for (size_t i = 0; i < n; i++) {
    figure_panel *to = &p.panels[i];
    double distance = staleness_distance(h[i].count, h[i].n, measured, n_measured);
    snprintf(to->title, sizeof to->title, "%s", h[i].heading);
    if (isfinite(distance)) snprintf(to->note, sizeof to->note, "KS %.3f", distance);
    snprintf(to->axis, sizeof to->axis, "share of batches");
    write_shares(&p, i, lines[0], h[i].count, h[i].n);
    if (measured) write_shares(&p, i, lines[1], measured, n_measured);
    to->high *= 1.15; /* room for the note */
  }
  return page_end(&p, GL_OK, err);
}

/* Reads the measured trace, if one is asked for, and writes data and script. */
static gl_status write_with_measured(const staleness_histogram *h, size_t n,
                                     const figure_request *q, gl_error *err) {
  uint64_t *measured = NULL;
  size_t n_measured = 0;
  gl_status status =
      q->measured ? staleness_measured(q->measured, &measured, &n_measured, err) : GL_OK;
  if (status == GL_OK) status = write_histograms(h, n, q, measured, n_measured, err);
  free(measured);
  return status;
}

gl_status figure_staleness(const staleness_histogram *panels, size_t n, const figure_request *q,
                           gl_error *err) {
  double any = 0;
  for (size_t i = 0; i < n; i++) any += total(panels[i].count, panels[i].n);
  if (any <= 0) return gl_fail(err, GL_EINPUT, "no batch was trained: there is no staleness");
  gl_status status = folder_make(q->folder, err);
  if (status == GL_OK) status = write_with_measured(panels, n, q, err);
  return status == GL_OK ? page_draw(q, "staleness", err) : status;
}

/* The histogram of a group over all its runs, on the heap. */
static uint64_t *group_staleness(const results *r, size_t group, size_t *n) {
  *n = 0;
  for (size_t i = 0; i < r->n_runs; i++)
    if (r->runs[i].group == group && r->runs[i].n_staleness > *n) *n = r->runs[i].n_staleness;
  uint64_t *count = calloc(*n + 1, sizeof *count);
  for (size_t i = 0; i < r->n_runs && count; i++)
    for (size_t k = 0; r->runs[i].group == group && k < r->runs[i].n_staleness; k++)
      count[k] += r->runs[i].staleness[k];
  return count;
}

gl_status write_staleness(const summary *s, const figure_request *q, const char **why,
                          gl_error *err) {
  const results *r = s->from;
  size_t columns[MOST_PANELS], n = page_pick(r->n_groups, MOST_PANELS, columns);
  staleness_histogram h[MOST_PANELS];
  uint64_t *count[MOST_PANELS];
  double any = 0;
  gl_status status = GL_OK;
  for (size_t i = 0; i < n; i++) {
    size_t length;
    if (!(count[i] = group_staleness(r, columns[i], &length)))
      status = gl_fail_memory(err, "a histogram");
    h[i] = (staleness_histogram){r->groups[columns[i]].heading, count[i], count[i] ? length : 0};
    any += total(h[i].count, h[i].n);
  }
  if (status == GL_OK && any <= 0) *why = "the study has no staleness histogram";
  if (status == GL_OK && any > 0) status = write_with_measured(h, n, q, err);
  for (size_t i = 0; i < n; i++) free(count[i]);
  return status;
}
