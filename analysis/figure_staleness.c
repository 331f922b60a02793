/* The staleness distribution: schedules against a measured trace. */
#include "analysis/figure_page.h"

#include "analysis/wandb.h"
#include "core/base/ks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PANELS = 4, MOST_STALENESS = 1 << 20 };

static double total(const uint64_t *count, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += (double)count[i];
  return sum;
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

gl_status staleness_measured(staleness_histogram *out, const char *path, const char *run,
                             gl_error *err) {
  static const char *const metrics[] = {"step_diff", "staleness"};
  wandb_table *w;
  const wandb_series *s = NULL;
  double wrong = 0;
  *out = (staleness_histogram){0};
  gl_status status = wandb_read(&w, path, err);
  if (status != GL_OK) return status;
  status = wandb_choose(&s, w, metrics, 2, run, path, err);
  int64_t largest = s ? largest_staleness(s, &wrong) : 0;
  if (status == GL_OK && s->n == 0)
    status = gl_fail(err, GL_EINPUT, "%s: run %s has no staleness", path, s->run);
  if (status == GL_OK && largest < 0)
    status = gl_fail(err, GL_EINPUT, "%s: staleness %g of run %s is not a number of updates", path,
                     wrong, s->run);
  if (status == GL_OK) {
    *out = (staleness_histogram){strdup(s->run), calloc((size_t)largest + 1, sizeof *out->count),
                                 (size_t)largest + 1};
    if (!out->name || !out->count) status = gl_fail_memory(err, "a histogram");
  }
  for (size_t i = 0; status == GL_OK && i < s->n; i++) out->count[llround(s->value[i])]++;
  wandb_free(w);
  return status;
}

void staleness_histogram_fini(staleness_histogram *h) {
  free(h->name), free(h->count);
  *h = (staleness_histogram){0};
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
                                  gl_error *err) {
  char shown[200];
  const char *const lines[] = {"simulated", shown};
  const staleness_histogram *measured = q->measured;
  figure_page p;
  snprintf(shown, sizeof shown, "measured%s%s", measured && *measured->name ? ": " : "",
           measured ? measured->name : "");
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
    double distance = NAN;
    if (measured)
      distance = ks_distance((ks_sample){.count = h[i].count, .n = h[i].n},
                             (ks_sample){.count = measured->count, .n = measured->n});
    snprintf(to->title, sizeof to->title, "%s", h[i].name);
    if (isfinite(distance)) snprintf(to->note, sizeof to->note, "KS %.3f", distance);
    snprintf(to->axis, sizeof to->axis, "share of batches");
    write_shares(&p, i, lines[0], h[i].count, h[i].n);
    if (measured) write_shares(&p, i, lines[1], measured->count, measured->n);
    to->high *= 1.15; /* room for the note */
  }
  return page_end(&p, GL_OK, err);
}

gl_status figure_staleness(const staleness_histogram *panels, size_t n, const figure_request *q,
                           gl_error *err) {
  double any = 0;
  for (size_t i = 0; i < n; i++) any += total(panels[i].count, panels[i].n);
  if (any <= 0) return gl_fail(err, GL_EINPUT, "no batch was trained: there is no staleness");
  gl_status status = folder_make(q->folder, err);
  if (status == GL_OK) status = write_histograms(panels, n, q, err);
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
  if (status == GL_OK && any > 0) status = write_histograms(h, n, q, err);
  for (size_t i = 0; i < n; i++) free(count[i]);
  return status;
}
