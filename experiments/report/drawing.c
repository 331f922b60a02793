/* The folder in which a page's figures are drawn, and their way into the page. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include "experiments/report/drawing.h"

#include "core/base/file.h"
#include "experiments/report/svg.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- what drawing tells --- */

static drawing_figure *figure_named(drawing_folder *f, const char *name) {
  for (size_t i = 0; i < f->n; ++i)
    if (strcmp(f->figures[i].name, name) == 0) return &f->figures[i];
  if (f->n == DRAWING_MOST) return NULL;
  drawing_figure *new = &f->figures[f->n];
  *new = (drawing_figure){.name = strdup(name)};
  if (new->name == NULL) {
    f->failed = 1;
    return NULL;
  }
  ++f->n;
  return new;
}

static void told(void *context, const char *file, const char *why) {
  if (why == NULL) figure_named(context, file);
}

static void noted(void *context, const char *file, const char *left_out) {
  drawing_folder *f = context;
  drawing_figure *of = figure_named(f, file);
  if (of == NULL) return;
  free(of->left_out);
  of->left_out = strdup(left_out);
  f->failed |= of->left_out == NULL;
}

/* --- the folder --- */

gl_status drawing_init(drawing_folder *f, const report_request *q, gl_error *err) {
  const char *where = getenv("TMPDIR");
  *f = (drawing_folder){.request = {.gnuplot = q->gnuplot,
                                    .formats = "svg",
                                    .script = q->text_of,
                                    .told = told,
                                    .noted = noted,
                                    .context = f}};
  if (where == NULL || where[0] == '\0') where = "/tmp";
  const int n = snprintf(f->path, sizeof f->path, "%s/gepolab-report-XXXXXX", where);
  if (n < 0 || (size_t)n >= sizeof f->path) {
    f->path[0] = '\0';
    return gl_fail(err, GL_EIO, "TMPDIR has a name of more than %zu bytes; set another",
                   sizeof f->path - 24);
  }
  if (mkdtemp(f->path) == NULL) {
    const int reason = errno;
    gl_fail(
        err, GL_EIO,
        "a folder that the report's figures are drawn in, %.400s, cannot be made: %s; free some "
        "room there, or name another folder in TMPDIR",
        f->path, strerror(reason));
    f->path[0] = '\0';
    return GL_EIO;
  }
  f->request.folder = f->path;
  return GL_OK;
}

void drawing_fini(drawing_folder *f) {
  DIR *all = f->path[0] != '\0' ? opendir(f->path) : NULL;
  for (struct dirent *e; all != NULL && (e = readdir(all)) != NULL;)
    if (e->d_name[0] != '.') unlinkat(dirfd(all), e->d_name, 0);
  if (all != NULL) closedir(all);
  if (f->path[0] != '\0') rmdir(f->path);
  for (size_t i = 0; i < f->n; ++i) free(f->figures[i].name), free(f->figures[i].left_out);
  *f = (drawing_folder){0};
}

/* --- into the page --- */

/* The whole file on the heap, *size bytes. */
static gl_status read_file(const char *path, char **text, size_t *size, gl_error *err) {
  FILE *to = open_memstream(text, size), *from = fopen(path, "rb");
  char room[1 << 14];
  gl_status status = GL_OK;
  if (from == NULL) status = file_fail(path, "read", errno, err);
  if (to == NULL) status = gl_fail_memory(err, "a figure");
  for (size_t n; status == GL_OK && (n = fread(room, 1, sizeof room, from)) > 0;)
    fwrite(room, 1, n, to);
  if (status == GL_OK && ferror(from)) status = file_fail(path, "read", EIO, err);
  if (from != NULL) fclose(from);
  if (to != NULL && fclose(to) != 0 && status == GL_OK) status = gl_fail_memory(err, "a figure");
  return status;
}

/* "evaluation score against step (paper Fig. 1)" as a title: its first letter large, without what
 * is in brackets at its end. */
static void make_title(char *title, size_t size, const char *shows) {
  snprintf(title, size, "%s", shows);
  char *bracket = strstr(title, " (");
  if (bracket != NULL && title[strlen(title) - 1] == ')') *bracket = '\0';
  title[0] = (char)toupper((unsigned char)title[0]);
}

static gl_status write_figure(html *h, const drawing_folder *f, const drawing_figure *of,
                              const char *id, const char *shows, gl_error *err) {
  char path[512], title[256], *text = NULL;
  size_t size = 0;
  const int n = snprintf(path, sizeof path, "%s/%s.svg", f->path, of->name);
  if (n < 0 || (size_t)n >= sizeof path)
    return gl_fail(err, GL_EIO, "the figure %.100s has too long a name", of->name);
  make_title(title, sizeof title, shows);
  gl_status status = read_file(path, &text, &size, err);
  if (status == GL_OK) {
    const svg_words words = {id, title,
                             "A drawing. The tables of this page hold the numbers of the study."};
    html_markup(h, "<figure><div class=\"drawing\" role=\"region\" tabindex=\"0\" aria-label=\"");
    html_text(h, title);
    html_markup(h, "\">\n");
    status = svg_inline(h, &words, text, size, err);
    html_markup(h, "</div><figcaption>");
    html_textf(h, "%s.", title);
    if (of->left_out != NULL) html_textf(h, " Not shown: %s.", of->left_out);
    html_markup(h, "</figcaption></figure>\n");
  }
  free(text);
  return status;
}

gl_status drawing_write(html *h, const drawing_folder *f, const char *id, drawing_caption *caption,
                        gl_error *err) {
  gl_status status = f->failed ? gl_fail_memory(err, "the figures of a page") : GL_OK;
  for (size_t i = 0; i < f->n && status == GL_OK; ++i) {
    char own[64];
    const char *shows = caption(f->figures[i].name);
    snprintf(own, sizeof own, "%s-figure%zu", id, i + 1);
    if (shows != NULL) status = write_figure(h, f, &f->figures[i], own, shows, err);
  }
  return status;
}
