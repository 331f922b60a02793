/* Goes through a table of figures: which apply, which are written, which are drawn. */
#include "analysis/plot/draw.h"

#include "analysis/plot/finish.h"
#include "analysis/plot/gnuplot.h"
#include "analysis/plot/page.h"
#include "core/base/file.h"
#include "core/base/shown.h"
#include "core/config/config.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gl_status check_name(const figure_table *t, const char *only, gl_error *err) {
  const char **names = calloc(t->n + 1, sizeof *names);
  char hint[CFG_HINT_SIZE];
  int known = !only;
  if (!names) return gl_fail_memory(err, "the names of figures");
  for (size_t i = 0; i < t->n; i++) {
    names[i] = t->figures[i].name;
    known |= only && strcmp(only, names[i]) == 0;
  }
  gl_status status = GL_OK;
  if (!known)
    status = gl_fail(err, GL_EINPUT, "there is no figure '%s'%s", only,
                     cfg_hint(only, names, t->n, hint));
  free(names);
  return status;
}

gl_status figures_check_highlight(const figure_request *q, const char *const *names, size_t n,
                                  gl_error *err) {
  char one[128], hint[CFG_HINT_SIZE];
  for (const char *at = q->highlight; at && *at; at += *at == ',') {
    const size_t length = strcspn(at, ",");
    size_t i = 0;
    snprintf(one, sizeof one, "%.*s", (int)(length < 127 ? length : 127), at);
    while (i < n && strcmp(names[i], one) != 0) i++;
    if (i == n)
      return gl_fail(err, GL_EINPUT, "--highlight: there is no algorithm '%s'%s", shown(one).text,
                     cfg_hint(one, names, n, hint));
    at += length;
  }
  return GL_OK;
}

/* PREFIX_NAME on the heap. A prefix may be any text: what no file of the folder can be named by is
 * replaced. */
static char *file_name(const figure_request *q, const char *name) {
  const char *prefix = q->prefix ? q->prefix : "";
  const size_t size = strlen(prefix) + strlen(name) + 2;
  char *file = malloc(size);
  if (!file) return NULL;
  snprintf(file, size, "%s%s%s", prefix, *prefix ? "_" : "", name);
  for (char *c = file; *c; c++)
    if (*c == '/' || (unsigned char)*c < ' ' || *c == 127) *c = '_';
  return file;
}

/* *is_empty: there turned out to be no value to show, and nothing is kept. */
static gl_status write_figure(const figure *f, const void *data, const figure_request *q,
                              const char *file, int *is_empty, gl_error *err) {
  figure_page p;
  page_init(&p, q, file, f->shape);
  gl_status status = f->write(data, &p, err);
  *is_empty = status == GL_OK && page_is_empty(&p);
  if (!*is_empty) return page_close(&p, status, err);
  page_close(&p, GL_EINPUT, err);
  return GL_OK;
}

static const char no_values[] = "none of the quantities that it needs together has a value";

/* Writes what is asked for and has its data; files[i] is then its name on the heap. */
static gl_status write_all(const figure_table *t, const void *data, const figure_request *q,
                           char **files, gl_error *err) {
  size_t n = 0;
  for (size_t i = 0; i < t->n; i++) {
    const figure *f = &t->figures[i];
    if (q->only && strcmp(q->only, f->name) != 0) continue;
    const char *why = t->lacks(data, f->needs);
    if (why && q->only)
      return gl_fail(err, GL_EINPUT, "figure %s does not apply: %s", f->name, why);
    if (why && q->told) q->told(q->context, f->name, why);
    if (why) continue;
    if (!(files[i] = file_name(q, f->name))) return gl_fail_memory(err, "a figure's name");
    int is_empty;
    gl_status status = write_figure(f, data, q, files[i], &is_empty, err);
    if (status != GL_OK) return status;
    n += !is_empty;
    if (!is_empty) continue;
    free(files[i]), files[i] = NULL;
    if (q->only) return gl_fail(err, GL_EINPUT, "figure %s does not apply: %s", f->name, no_values);
    if (q->told) q->told(q->context, f->name, no_values);
  }
  return n ? GL_OK : gl_fail(err, GL_EINPUT, "%s", t->nothing);
}

static gl_status draw_all(const figure_table *t, const figure_request *q, char *const *files,
                          gl_error *err) {
  for (size_t i = 0; i < t->n; i++) {
    if (!files[i]) continue;
    gl_status status = gnuplot_draw(q->folder, q->gnuplot ? q->gnuplot : "gnuplot", files[i], err);
    if (status != GL_OK) return status;
    if (q->told) q->told(q->context, files[i], NULL);
  }
  return GL_OK;
}

gl_status figures_draw_table(const figure_table *t, const void *data, const figure_request *q,
                             gl_error *err) {
  assert(q->folder && q->script);
  gl_status status = check_name(t, q->only, err);
  if (status == GL_OK) status = file_make_folder(q->folder, err);
  if (status != GL_OK) return status;
  char **files = calloc(t->n + 1, sizeof *files);
  if (!files) return gl_fail_memory(err, "the names of figures");
  status = write_all(t, data, q, files, err);
  if (status == GL_OK) status = draw_all(t, q, files, err);
  for (size_t i = 0; i < t->n; i++) free(files[i]);
  free(files);
  return status;
}
