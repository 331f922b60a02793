/* The figure `staleness`: its distribution in schedules, beside a measured one. */
#include "analysis/figures/list.h"

#include "analysis/import/read.h"
#include "analysis/plot/draw.h"
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
static int64_t largest_staleness(const series *s, double *wrong) {
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
  series_table *w;
  const series *s = NULL;
  double wrong = 0;
  *out = (staleness_histogram){0};
  gl_status status = read_series(&w, path, NULL, err);
  if (status != GL_OK) return status;
  status = series_choose(&s, w, metrics, 2, run, path, err);
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
  series_table_free(w);
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

static gl_status write_histograms(figure_page *p, const staleness_histogram *h, size_t n,
                                  const staleness_histogram *measured, gl_error *err) {
  char shown[200];
  const char *const lines[] = {"simulated", shown};
  snprintf(shown, sizeof shown, "measured%s%s", measured && *measured->name ? ": " : "",
           measured ? measured->name : "");
  gl_status status = page_open(p, n, "panel\tsource\tstaleness\tshare\tcount", err);
  if (status == GL_OK) status = page_set_lines(p, lines, measured ? 2 : 1, err);
  if (status != GL_OK) return status;
  p->share = n;
  p->lines[0].sample = SAMPLE_BOX;
  if (measured) p->lines[1].sample = SAMPLE_LINE;
  snprintf(p->x_axis, sizeof p->x_axis, "staleness [versions]");
  page_x(p, -0.5);
  for (size_t i = 0; i < n; i++) {
    figure_panel *to = &p->panels[i];
    double distance = NAN;
    if (measured)
      distance = ks_distance((ks_sample){.count = h[i].count, .n = h[i].n},
                             (ks_sample){.count = measured->count, .n = measured->n});
    snprintf(to->title, sizeof to->title, "%s", h[i].name);
    if (isfinite(distance)) snprintf(to->note, sizeof to->note, "KS %.3f", distance);
    snprintf(to->axis, sizeof to->axis, "share of batches");
    to->kept = 1;
    write_shares(p, i, lines[0], h[i].count, h[i].n);
    if (measured) write_shares(p, i, lines[1], measured->count, measured->n);
    to->high *= 1.15; /* room for the note */
  }
  return GL_OK;
}

/* --- of a study --- */

/* The histogram of a group over all its runs; 0 if memory is short. */
static int group_staleness(const results *r, size_t group, staleness_histogram *h) {
  *h = (staleness_histogram){.name = strdup(r->groups[group].title)};
  for (size_t i = 0; i < r->n_runs; i++)
    if (r->runs[i].group == group && r->runs[i].n_staleness > h->n) h->n = r->runs[i].n_staleness;
  h->count = calloc(h->n + 1, sizeof *h->count);
  for (size_t i = 0; i < r->n_runs && h->count; i++)
    for (size_t k = 0; r->runs[i].group == group && k < r->runs[i].n_staleness; k++)
      h->count[k] += r->runs[i].staleness[k];
  return h->name && h->count;
}

/* The groups that have a batch; how many. */
static size_t counted_groups(const results *r, size_t *groups) {
  size_t n = 0;
  for (size_t g = 0; g < r->n_groups; g++)
    for (size_t i = 0; i < r->n_runs; i++)
      if (r->runs[i].group == g && total(r->runs[i].staleness, r->runs[i].n_staleness) > 0) {
        groups[n++] = g;
        break;
      }
  return n;
}

gl_status figure_staleness(const void *data, figure_page *p, gl_error *err) {
  const figure_data *d = data;
  const results *r = d->s->from;
  size_t columns[MOST_PANELS], n = 0, *counted = calloc(r->n_groups + 1, sizeof *counted);
  staleness_histogram h[MOST_PANELS] = {{0}};
  gl_status status = counted ? GL_OK : gl_fail_memory(err, "a histogram");
  if (counted) {
    n = page_pick(counted_groups(r, counted), page_columns(p, MOST_PANELS), columns);
    for (size_t i = 0; i < n; i++) columns[i] = counted[columns[i]];
  }
  free(counted);
  for (size_t i = 0; i < n && status == GL_OK; i++)
    if (!group_staleness(r, columns[i], &h[i])) status = gl_fail_memory(err, "a histogram");
  if (status == GL_OK) status = write_histograms(p, h, n, d->measured, err);
  if (status == GL_OK) status = leave_out_settings(p, r, columns, n, err);
  for (size_t i = 0; i < n; i++) staleness_histogram_fini(&h[i]);
  return status;
}

/* --- of schedules without a study --- */

typedef struct schedules {
  const staleness_histogram *panels, *measured;
  size_t n;
} schedules;

static gl_status write_schedules(const void *data, figure_page *p, gl_error *err) {
  const schedules *d = data;
  return write_histograms(p, d->panels, d->n, d->measured, err);
}

static const char *lacks_batches(const void *data, unsigned needs) {
  const schedules *d = data;
  (void)needs;
  for (size_t i = 0; i < d->n; i++)
    if (total(d->panels[i].count, d->panels[i].n) > 0) return NULL;
  return "no batch was trained";
}

gl_status figure_of_staleness(const staleness_histogram *panels, size_t n,
                              const staleness_histogram *measured, const figure_request *q,
                              gl_error *err) {
  const figure line = {"staleness", "staleness distribution", "bars", NEEDS_STALENESS,
                       write_schedules};
  const figure_table list = {&line, 1, lacks_batches,
                             "no batch was trained: there is no staleness"};
  return figures_draw_table(&list, &(schedules){panels, measured, n}, q, err);
}
