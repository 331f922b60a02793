/* Reads what was measured: staleness as counts written in the recipe or a CSV that it names, and
 * the seconds of updates. */
#include "sim/measured.h"

#include "core/base/csv.h"
#include "core/config/fields.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static gl_status make_counts(measured_staleness *m, size_t n, gl_error *err) {
  m->count = calloc(n, sizeof *m->count);
  if (m->count == NULL) return gl_fail_memory(err, "a staleness histogram");
  m->n = n;
  return GL_OK;
}

static gl_status read_histogram(measured_staleness *m, cfg_reader *r) {
  double *count = NULL;
  const cfg_node *at = cfg_child(r, "histogram");
  const size_t n = field_numbers(r, "histogram", &count);
  if (r->status == GL_OK && (n == 0 || n > MEASURED_MOST))
    r->status = cfg_fail(at, r->err, "a staleness histogram has 1 to %d counts", MEASURED_MOST);
  if (r->status == GL_OK) r->status = make_counts(m, n, r->err);
  for (size_t i = 0; i < n && r->status == GL_OK; ++i) {
    if (count[i] != floor(count[i]))
      r->status =
          cfg_fail(at, r->err, "%g is no count: how many updates had staleness %zu?", count[i], i);
    else
      m->updates += m->count[i] = (uint64_t)count[i];
  }
  if (r->status == GL_OK && m->updates == 0)
    r->status = cfg_fail(at, r->err, "a staleness histogram needs a count above 0");
  free(count);
  return r->status;
}

static gl_status count_values(measured_staleness *m, const double *value, size_t n,
                              const cfg_node *at, gl_error *err) {
  double largest = 0;
  for (size_t i = 0; i < n; ++i) {
    if (!(value[i] >= 0 && value[i] < MEASURED_MOST))
      return cfg_fail(at, err, "staleness %g is not a number of updates", value[i]);
    largest = fmax(largest, value[i]);
  }
  gl_status status = make_counts(m, (size_t)llround(largest) + 1, err);
  for (size_t i = 0; i < n && status == GL_OK; ++i) m->count[llround(value[i])]++;
  m->updates = n;
  return status;
}

static gl_status read_trace(measured_staleness *m, cfg_reader *r, const char *column) {
  const cfg_node *at = cfg_child(r, "trace");
  const char *file = field_text(r, "trace");
  gl_error why = {0};
  double *value = NULL;
  size_t n = 0;
  if (r->status != GL_OK) return r->status;
  char *path = cfg_locate(at, file);
  if (path == NULL) return r->status = gl_fail_memory(r->err, "a file name");
  r->status = csv_column(&value, &n, path, column, &why);
  if (r->status != GL_OK)
    r->status = cfg_fail(at, r->err, "%s", why.text);
  else
    r->status = count_values(m, value, n, at, r->err);
  free(value);
  free(path);
  return r->status;
}

static void copy_text(cfg_reader *r, const char *text, char **out) {
  if (r->status != GL_OK) return;
  *out = strdup(text);
  if (*out == NULL) r->status = gl_fail_memory(r->err, "a measured staleness");
}

static void read_seconds(measured_staleness *m, cfg_reader *r) {
  if (cfg_has(r, "seconds")) m->seconds = field_real_or(r, "seconds", 1);
  m->seconds_of = (double)field_count(r, "updates");
  if (r->status == GL_OK && isnan(m->seconds) && cfg_has(r, "updates"))
    r->status = cfg_fail(cfg_child(r, "updates"), r->err,
                         "updates says how many updates take `seconds`, and there are none; give "
                         "seconds too");
}

gl_status measured_read(measured_staleness *m, const cfg_node *compare, gl_error *err) {
  cfg_reader r;
  *m = (measured_staleness){.seconds = NAN};
  if (compare == NULL) return GL_OK;
  cfg_begin(&r, compare, "cluster.compare", err);
  const char *trace = field_text(&r, "trace"), *column = field_text(&r, "column");
  const char *fallback = column != NULL ? column : trace != NULL ? trace : "measured";
  copy_text(&r, cfg_string(&r, "name", fallback), &m->name);
  copy_text(&r, cfg_string(&r, "source", ""), &m->source);
  const int counted = cfg_child(&r, "histogram") != NULL;
  read_seconds(m, &r);
  const int given = counted || trace != NULL;
  if (r.status == GL_OK && ((counted && trace != NULL) || (!given && isnan(m->seconds))))
    r.status = cfg_fail(compare, err,
                        "compare needs the measured staleness once, a histogram or a trace, or the "
                        "seconds of updates");
  if (r.status == GL_OK && column != NULL && trace == NULL)
    r.status = cfg_fail(cfg_child(&r, "column"), err,
                        "column names a column of a trace, and there "
                        "is none");
  if (r.status == GL_OK && counted) read_histogram(m, &r);
  if (r.status == GL_OK && trace != NULL) read_trace(m, &r, column);
  return cfg_end(&r);
}

void measured_fini(measured_staleness *m) {
  free(m->name);
  free(m->source);
  free(m->count);
  *m = (measured_staleness){0};
}
