/* Section `figures`: draws every figure the study has data for in a temporary folder and embeds it
 * as an image. */
#include "analysis/figures/figures.h"
#include "experiments/base/memory.h"

#include "analysis/plot/page.h"
#include "core/base/display_text.h"
#include "core/base/file.h"
#include "core/base/utf8.h"
#include "experiments/base/print_json.h"
#include "experiments/report/study_internal.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { DRAWING_MOST = 32 };

typedef struct drawing_figure {
  char *name;     /* base name of the figure's files */
  char *left_out; /* what the figure does not show; NULL: it shows everything */
  cJSON *chart;   /* panels, axes and lines, for the page's script; NULL: none */
} drawing_figure;

/* A request to figures_draw(), its temporary folder, and the figures that were reported. */
typedef struct drawing_folder {
  figure_request request;
  char path[256]; /* "" until drawing_init() */
  int lock; /* descriptor of the folder, which is locked while this process uses it; -1: none */
  drawing_figure figures[DRAWING_MOST];
  size_t n;
} drawing_folder;

/* --- reports of drawing --- */

static drawing_figure *figure_named(drawing_folder *f, const char *name) {
  for (size_t i = 0; i < f->n; ++i)
    if (strcmp(f->figures[i].name, name) == 0) return &f->figures[i];
  if (f->n == DRAWING_MOST) return NULL;
  drawing_figure *new = &f->figures[f->n];
  *new = (drawing_figure){.name = must_copy(name, "a figure")};
  ++f->n;
  return new;
}

static void record_figure(void *context, const char *file, const char *why) {
  if (why == NULL) figure_named(context, file);
}

static void record_left_out(void *context, const char *file, const char *left_out) {
  drawing_folder *f = context;
  drawing_figure *of = figure_named(f, file);
  if (of == NULL) return;
  free(of->left_out);
  of->left_out = must_copy(left_out, "a figure");
}

/* A dash pattern of gnuplot, "solid" or "(8,3)", as a list of lengths. */
static void add_dashes(cJSON *line, int dash) {
  cJSON *list = json_list(line, "dash");
  for (const char *c = look_dash(dash); (c = strpbrk(c, "0123456789")) != NULL;) {
    char *end;
    json_attach(list, NULL, cJSON_CreateNumber((double)strtol(c, &end, 10)));
    c = end;
  }
}

/* Records what a chart of the figure needs besides its numbers. */
static void record_page(void *context, const figure_page *p) {
  drawing_figure *of = figure_named(context, p->name);
  if (of == NULL) return;
  cJSON *o = json_new(), *panels = json_list(o, "panels"), *lines = json_list(o, "lines"),
        *marks = json_list(o, "marks");
  json_put(o, "shape %s, x_axis %s, x_logarithmic %i", p->shape, shown(p->x_axis).text,
           p->x_logarithmic);
  for (size_t i = 0; i < p->n_panels; ++i) {
    const figure_panel *panel = &p->panels[i];
    json_put(json_object(panels, NULL),
             "title %s, axis %s, logarithmic %i, x_axis %s, x_logarithmic %i",
             shown(panel->title).text, shown(panel->axis).text, panel->logarithmic,
             shown(panel->x_axis).text, panel->x_logarithmic);
  }
  for (size_t i = 0; i < p->n_lines; ++i) {
    char colour[LOOK_SHADED];
    cJSON *line = json_object(lines, NULL);
    look_shaded(p->lines[i].look, colour);
    json_put(line, "name %s, colour %s, grey %i, hidden %i", shown(p->lines[i].name).text, colour,
             p->lines[i].look.colour == LOOK_GREY, p->lines[i].hidden);
    add_dashes(line, p->lines[i].look.dash);
  }
  for (size_t i = 0; i < p->n_marks; ++i)
    json_put(json_object(marks, NULL), "panel %g, x %g, text %s",
             p->marks[i].panel == PAGE_MARK ? -1 : (double)p->marks[i].panel, p->marks[i].x,
             shown(p->marks[i].text).text);
  cJSON_Delete(of->chart);
  of->chart = o;
}

/* --- the folder --- */

static void drawing_remove(const char *path) {
  DIR *all = opendir(path);
  for (struct dirent *e; all != NULL && (e = readdir(all)) != NULL;)
    if (e->d_name[0] != '.') unlinkat(dirfd(all), e->d_name, 0);
  if (all != NULL) closedir(all);
  rmdir(path);
}

static const char folder_prefix[] = "gepolab-report-";

/* Locks a temporary folder whose process has ended. The process that makes a folder locks it right
 * afterwards and until it ends; so folders of the last YOUNG_S seconds are left alone, as they may
 * not be locked yet. -1: the folder is in use, too new, or of another user. */
static int lock_abandoned(const char *path) {
  enum { YOUNG_S = 10 };
  struct stat about;
  const int lock = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (lock >= 0 && fstat(lock, &about) == 0 && about.st_uid == geteuid() &&
      about.st_mtime + YOUNG_S < time(NULL) && flock(lock, LOCK_EX | LOCK_NB) == 0)
    return lock;
  if (lock >= 0) close(lock);
  return -1;
}

/* Removes the folders of reports that were killed. */
static void remove_abandoned(const char *where) {
  DIR *all = opendir(where);
  for (struct dirent *e; all != NULL && (e = readdir(all)) != NULL;) {
    char path[PATH_MAX];
    if (strncmp(e->d_name, folder_prefix, sizeof folder_prefix - 1) != 0) continue;
    if (snprintf(path, sizeof path, "%s/%s", where, e->d_name) >= (int)sizeof path) continue;
    const int lock = lock_abandoned(path);
    if (lock < 0) continue;
    drawing_remove(path);
    close(lock);
  }
  if (all != NULL) closedir(all);
}

/* Makes an empty temporary folder in $TMPDIR or /tmp. f must not move until drawing_fini(), which
 * removes the folder and its contents. Errors: GL_EIO. */
static gl_status drawing_init(drawing_folder *f, const report_request *q, gl_error *err) {
  const char *where = getenv("TMPDIR");
  *f = (drawing_folder){.request = {.gnuplot = q->gnuplot,
                                    .formats = "svg",
                                    .script = q->text_of,
                                    .report = record_figure,
                                    .noted = record_left_out,
                                    .described = record_page,
                                    .context = f},
                        .lock = -1};
  if (where == NULL || where[0] == '\0') where = "/tmp";
  remove_abandoned(where);
  const int n = snprintf(f->path, sizeof f->path, "%s/%sXXXXXX", where, folder_prefix);
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
  f->lock = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (f->lock >= 0) (void)flock(f->lock, LOCK_EX | LOCK_NB);
  f->request.folder = f->path;
  return GL_OK;
}

static void drawing_fini(drawing_folder *f) {
  if (f->path[0] != '\0') drawing_remove(f->path);
  if (f->lock >= 0) close(f->lock);
  for (size_t i = 0; i < f->n; ++i) {
    free(f->figures[i].name), free(f->figures[i].left_out);
    cJSON_Delete(f->figures[i].chart);
  }
  *f = (drawing_folder){.lock = -1};
}

/* --- into the page --- */

/* Writes the file in base64, as in a data: URL. */
static gl_status write_base64(html *h, const char *path, gl_error *err) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  unsigned char b[3] = {0};
  FILE *from = fopen(path, "rb");
  if (from == NULL) return file_fail(path, "read", errno, err);
  for (size_t n; (n = fread(b, 1, sizeof b, from)) > 0; memset(b, 0, sizeof b)) {
    const unsigned bits = (unsigned)b[0] << 16 | (unsigned)b[1] << 8 | b[2];
    for (size_t i = 0; i < 4; ++i) fputc(i <= n ? digits[bits >> (18 - 6 * i) & 63] : '=', h->to);
  }
  const bool failed = ferror(from);
  fclose(from);
  return failed ? file_fail(path, "read", EIO, err) : GL_OK;
}

/* Reads a file of numbers as a text, malloc'd. */
static gl_status figure_numbers(char **text, const char *path, gl_error *err) {
  size_t size = 0;
  char piece[4096];
  FILE *from = fopen(path, "rb"), *to;
  if (from == NULL) return file_fail(path, "read", errno, err);
  to = must_have(open_memstream(text, &size), "a chart");
  for (size_t n; (n = fread(piece, 1, sizeof piece, from)) > 0;) fwrite(piece, 1, n, to);
  const bool failed = ferror(from);
  fclose(from);
  must_succeed(fclose(to) == 0, "a chart");
  if (failed) free(*text);
  return failed ? file_fail(path, "read", EIO, err) : GL_OK;
}

/* Writes JSON so that no character of it is markup or beyond ASCII. */
static void write_json(html *h, const char *text) {
  for (size_t size = strlen(text), n; size > 0; text += n, size -= n) {
    uint32_t c;
    n = utf8_read(text, size, &c);
    if (c == UTF8_INVALID) c = UTF8_REPLACEMENT;
    if (c >= 0x10000)
      fprintf(h->to, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10), 0xdc00 + (c & 0x3ff));
    else if (c >= 0x7f || c == '<' || c == '>' || c == '&')
      fprintf(h->to, "\\u%04x", c);
    else
      fputc((int)c, h->to);
  }
}

/* Writes the figure's description and its numbers for the page's script. */
static gl_status embed_chart(html *h, cJSON *chart, const char *path, gl_error *err) {
  char *data = NULL;
  const gl_status status = figure_numbers(&data, path, err);
  if (status != GL_OK) return status;
  json_put(chart, "data %s", data);
  free(data);
  char *text = must_have(cJSON_PrintUnformatted(chart), "a chart");
  html_markup(h, "<script type=\"application/json\">");
  write_json(h, text);
  html_markup(h, "</script>\n");
  cJSON_free(text);
  return GL_OK;
}

/* Makes a title of a description such as "evaluation score against step (paper Fig. 1)":
 * capitalises it and removes the parenthesis at its end. */
static void make_title(char *title, size_t size, const char *shows) {
  snprintf(title, size, "%s", shows);
  char *bracket = strstr(title, " (");
  if (bracket != NULL && title[strlen(title) - 1] == ')') *bracket = '\0';
  title[0] = (char)toupper((unsigned char)title[0]);
}

/* The figure's description, used as its caption. NULL: the page does not include the figure. */
static const char *shows_of(const char *name) {
  for (size_t i = 0; figures_at(i) != NULL; ++i)
    if (strcmp(figures_at(i)->name, name) == 0) return figures_at(i)->shows;
  return NULL;
}

static gl_status write_figure(html *h, const drawing_folder *f, const drawing_figure *of,
                              gl_error *err) {
  char path[512], title[256];
  const char *shows = shows_of(of->name);
  if (shows == NULL) return GL_OK;
  const int n = snprintf(path, sizeof path, "%s/%s.svg", f->path, of->name);
  if (n < 0 || (size_t)n >= sizeof path)
    return gl_fail(err, GL_EIO, "the figure %.100s has too long a name", of->name);
  make_title(title, sizeof title, shows);
  html_markup(h, "<figure><div class=\"drawing\" role=\"region\" tabindex=\"0\" aria-label=\"");
  html_text(h, title);
  html_markup(h, "\">\n<img alt=\"");
  html_textf(h, "%s. The tables of this page hold the numbers of the study.", title);
  html_markup(h, "\" src=\"data:image/svg+xml;base64,");
  gl_status status = write_base64(h, path, err);
  html_markup(h, "\" />\n</div><figcaption>");
  html_textf(h, "%s.", title);
  if (of->left_out != NULL) html_textf(h, " Not shown: %s.", of->left_out);
  html_markup(h, "</figcaption>\n");
  snprintf(path, sizeof path, "%s/%s.tsv", f->path, of->name);
  if (status == GL_OK && of->chart != NULL) status = embed_chart(h, of->chart, path, err);
  html_markup(h, "</figure>\n");
  return status;
}

static gl_status write_figures(html *h, const drawing_folder *f, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < f->n && status == GL_OK; ++i)
    status = write_figure(h, f, &f->figures[i], err);
  return status;
}

/* --- the section --- */

int has_figures(const report_study *t) {
  return has_runs(t) && !t->q->no_figures;
}

gl_status section_figures(html *h, const report_study *t, gl_error *err) {
  drawing_folder f;
  gl_error why = {.status = GL_OK};
  gl_status status = drawing_init(&f, t->q, err);
  if (status != GL_OK) return status;
  status = figures_draw(t->r, NULL, &f.request, &why);
  if (status == GL_OK) {
    html_markup(h, "<p>Points are interquartile means over seeds, bars and bands their 95&#160;% "
                   "bootstrap intervals. An algorithm keeps its colour, dash and point.</p>\n");
    status = write_figures(h, &f, err);
  } else if (status == GL_EINPUT) { /* the study has no data for any figure */
    html_markup(h, "<p>");
    html_textf(h, "None: %s.", why.text);
    html_markup(h, "</p>\n");
    status = GL_OK;
  } else {
    status = gl_fail(err, status, "%s; or leave the figures out with --no-figures", why.text);
  }
  drawing_fini(&f);
  return status;
}
