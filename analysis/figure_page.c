#include "analysis/figure_page.h"

#include "core/base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- files --------------------------------------------------------------------------------------
 */

gl_status folder_make(const char *folder, gl_error *err) {
  char *path = strdup(folder);
  if (!path) return gl_fail_memory(err, "a folder's name");
  gl_status status = GL_OK;
  for (char *c = path; status == GL_OK; c++) {
    if (c == path || (*c != '/' && *c)) continue;
    char here = *c;
    *c = 0;
    if (mkdir(path, 0777) != 0 && errno != EEXIST && errno != EISDIR)
      status = file_fail(path, "made", errno, err);
    *c = here;
    if (!here) break;
  }
  free(path);
  return status;
}

static gl_status begin_file(file_writer *w, const figure_page *p, const char *suffix,
                            gl_error *err) {
  size_t n = strlen(p->q->folder) + strlen(p->name) + strlen(suffix) + 2;
  char *path = malloc(n);
  if (!path) return gl_fail_memory(err, "a file's name");
  snprintf(path, n, "%s/%s%s", p->q->folder, p->name, suffix);
  gl_status status = file_begin(w, path, err);
  free(path);
  return status;
}

gl_status page_begin(figure_page *p, const figure_request *q, const char *name, const char *shape,
                     size_t n_panels, const char *columns, gl_error *err) {
  *p = (figure_page){.q = q,
                     .name = name,
                     .shape = shape,
                     .n_panels = n_panels,
                     .wide = n_panels,
                     .x_axis = "step",
                     .x_low = INFINITY,
                     .x_high = -INFINITY};
  p->panels = calloc(n_panels + 1, sizeof *p->panels);
  if (!p->panels) return gl_fail_memory(err, "a figure");
  for (size_t i = 0; i < n_panels; i++) p->panels[i].low = INFINITY, p->panels[i].high = -INFINITY;
  gl_status status = begin_file(&p->data, p, ".tsv", err);
  if (status == GL_OK)
    fprintf(p->data.stream, "# %s\n", columns);
  else
    free(p->panels);
  return status;
}

static int is_structure(char c) {
  return (unsigned char)c < ' ' || c == '"';
}

void page_line(figure_page *p, size_t panel, const char *line) {
  fprintf(p->data.stream, "%zu\t", panel);
  for (; *line; line++) fputc(is_structure(*line) ? ' ' : *line, p->data.stream);
}

void page_number(figure_page *p, double value) {
  char text[NUMBER_TEXT_SIZE];
  fprintf(p->data.stream, "\t%s", isfinite(value) ? number_text(value, text) : "");
}

/* A logarithmic axis has no place for what is not positive. */
static void widen(figure_panel *panel, double value) {
  if (!isfinite(value) || (panel->logarithmic && value <= 0)) return;
  panel->low = fmin(panel->low, value);
  panel->high = fmax(panel->high, value);
}

void page_interval(figure_page *p, size_t panel, interval v) {
  figure_panel *to = &p->panels[panel];
  page_number(p, v.value), page_number(p, v.low), page_number(p, v.high);
  widen(to, v.value);
  if (!to->logarithmic) widen(to, v.low);
  widen(to, v.high);
}

void page_x(figure_page *p, double x) {
  p->x_low = fmin(p->x_low, x);
  p->x_high = fmax(p->x_high, x);
}

void page_block_end(figure_page *p) {
  fputs("\n\n", p->data.stream);
}

size_t page_pick(size_t n, size_t most, size_t *picked) {
  size_t count = n < most ? n : most;
  for (size_t i = 0; i < count; i++)
    picked[i] = count < 2 ? 0 : (i * (n - 1) + (count - 1) / 2) / (count - 1);
  return count;
}

/* --- the script ---------------------------------------------------------------------------------
 */

/* In gnuplot's single quotes, with the marks of its enhanced text taken literally. */
static void write_quoted(const char *text, FILE *to) {
  for (fputc('\'', to); *text; text++) {
    if (*text == '\'') fputc('\'', to);
    if (strchr("_^@&~{}\\", *text)) fputc('\\', to);
    fputc(is_structure(*text) ? ' ' : *text, to);
  }
  fputc('\'', to);
}

/* A logarithmic axis shows six decades at most, for a lone almost-zero would flatten the rest. */
static const double MOST_DECADES = 1e-6;

/* Room for the marks at the ends; a range that is a point, or empty, gets some. */
static void pad_range(double *low, double *high, int logarithmic) {
  if (!(*low <= *high)) *low = logarithmic ? 1 : 0, *high = 1;
  if (logarithmic) {
    *low = fmax(*low, *high * MOST_DECADES);
    double room = pow(fmax(*high / *low, 1.5), 0.06);
    *low /= room, *high *= room;
  } else {
    double room = 0.06 * (*high - *low);
    if (room <= 0) room = fmax(0.05 * fabs(*high), 1e-6);
    *low -= room, *high += room;
  }
}

static void share_ranges(figure_page *p) {
  for (size_t from = 0; from < p->n_panels; from += p->share) {
    double low = INFINITY, high = -INFINITY;
    for (size_t i = from; i < from + p->share && i < p->n_panels; i++)
      low = fmin(low, p->panels[i].low), high = fmax(high, p->panels[i].high);
    for (size_t i = from; i < from + p->share && i < p->n_panels; i++)
      p->panels[i].low = low, p->panels[i].high = high;
  }
}

static void write_panel(const figure_panel *panel, size_t number, FILE *to) {
  double low = panel->low, high = panel->high;
  pad_range(&low, &high, panel->logarithmic);
  fprintf(to, "title[%zu] = ", number), write_quoted(panel->title, to);
  fprintf(to, "; axis[%zu] = ", number), write_quoted(panel->axis, to);
  fprintf(to, "; note[%zu] = ", number), write_quoted(panel->note, to);
  fprintf(to, "; low[%zu] = %.10g; high[%zu] = %.10g; logarithmic[%zu] = %d\n", number, low, number,
          high, number, panel->logarithmic);
}

static void write_script(figure_page *p, FILE *to) {
  static const char *const arrays[] = {"title", "axis", "note", "low", "high", "logarithmic"};
  double x_low = p->x_low, x_high = p->x_high;
  size_t longest = 0;
  if (p->share > 0) share_ranges(p);
  pad_range(&x_low, &x_high, 0);
  fprintf(to, "# gnuplot %s.gp draws %s.pdf and %s.png from %s.tsv\n", p->name, p->name, p->name,
          p->name);
  fprintf(to, "name = '%s'\npanels = %zu\nwide = %zu\nshared = %d\nnamed_rows = %d\nlines = %zu\n",
          p->name, p->n_panels, p->wide, p->share > 0, p->named_rows, p->n_lines);
  fprintf(to, "x_low = %.10g\nx_high = %.10g\nx_axis = ", x_low, x_high);
  write_quoted(p->x_axis, to);
  fputc('\n', to);
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
    fprintf(to, "array %s[%zu]\n", arrays[i], p->n_panels);
  for (size_t i = 0; i < p->n_panels; i++) write_panel(&p->panels[i], i + 1, to);
  fprintf(to, "array line_name[%zu]\n", p->n_lines + 1);
  for (size_t i = 0; i < p->n_lines; i++) {
    size_t n = strlen(p->lines[i]);
    if (n > longest) longest = n;
    fprintf(to, "line_name[%zu] = ", i + 1), write_quoted(p->lines[i], to), fputc('\n', to);
  }
  fprintf(to, "longest_name = %zu\n", longest);
  fprintf(to, "x_marks = \"%s\"\n", p->x_marks);
}

static gl_status end_script(figure_page *p, gl_error *err) {
  char shape[64];
  snprintf(shape, sizeof shape, "plots/%s.gp", p->shape);
  const char *palette = p->q->script("plots/palette.gp");
  const char *style = p->q->script("plots/style.gp"), *draws = p->q->script(shape);
  file_writer w;
  if (!palette || !style || !draws)
    return gl_fail(err, GL_EINPUT, "the plot script %s is missing", shape);
  gl_status status = begin_file(&w, p, ".gp", err);
  if (status != GL_OK) return status;
  write_script(p, w.stream);
  fprintf(w.stream, "\n%s\n%s\n%s", palette, style, draws);
  return file_commit(&w, err);
}

gl_status page_end(figure_page *p, gl_status status, gl_error *err) {
  if (status == GL_OK)
    status = file_commit(&p->data, err);
  else
    file_abandon(&p->data);
  if (status == GL_OK) status = end_script(p, err);
  free(p->panels);
  return status;
}

/* --- drawing ------------------------------------------------------------------------------------
 */

/* In the child: gnuplot in the folder, its complaints into the pipe. */
static void run_gnuplot(const char *folder, const char *gnuplot, const char *script, int complaints,
                        int failure) {
  int nothing = open("/dev/null", O_RDWR);
  if (nothing >= 0) dup2(nothing, 0), dup2(nothing, 1);
  dup2(complaints, 2);
  if (chdir(folder) == 0) execlp(gnuplot, gnuplot, script, (char *)NULL);
  int reason = errno;
  if (write(failure, &reason, sizeof reason) < 0) _exit(126);
  _exit(127);
}

/* The first bytes of what comes through a pipe, as text without line breaks; reads to its end. */
static void read_complaint(int from, char *text, size_t size) {
  size_t n = 0;
  char room[512];
  for (ssize_t got; (got = read(from, room, sizeof room)) > 0 || (got < 0 && errno == EINTR);)
    for (ssize_t i = 0; i < got && n + 1 < size; i++)
      if (n > 0 || !strchr(" \n\r", room[i])) text[n++] = room[i] == '\n' ? ' ' : room[i];
  text[n] = 0;
}

/* How gnuplot ended: 0, or errno if it could not be started, or -1 with its complaint. */
static int gnuplot_outcome(const char *folder, const char *gnuplot, const char *script,
                           char *complaint, size_t size) {
  int complaints[2], failure[2], reason = 0, code = 0;
  if (pipe(complaints) != 0) return errno;
  if (pipe(failure) != 0) {
    reason = errno;
    close(complaints[0]), close(complaints[1]);
    return reason;
  }
  fcntl(failure[1], F_SETFD, FD_CLOEXEC);
  pid_t child = fork();
  if (child == 0) run_gnuplot(folder, gnuplot, script, complaints[1], failure[1]);
  reason = child < 0 ? errno : 0;
  close(complaints[1]), close(failure[1]);
  read_complaint(complaints[0], complaint, size);
  int found;
  if (read(failure[0], &found, sizeof found) == (ssize_t)sizeof found) reason = found;
  close(complaints[0]), close(failure[0]);
  while (child > 0 && waitpid(child, &code, 0) < 0 && errno == EINTR) continue;
  if (reason) return reason;
  return WIFEXITED(code) && WEXITSTATUS(code) == 0 ? 0 : -1;
}

gl_status page_draw(const figure_request *q, const char *name, gl_error *err) {
  const char *gnuplot = q->gnuplot ? q->gnuplot : "gnuplot";
  char script[64], complaint[200];
  snprintf(script, sizeof script, "%s.gp", name);
  int outcome = gnuplot_outcome(q->folder, gnuplot, script, complaint, sizeof complaint);
  if (outcome == 0) return GL_OK;
  if (outcome > 0)
    return gl_fail(
        err, GL_EIO,
        "%s cannot be started: %s; install the package gnuplot-nox (data and scripts are "
        "complete in %s)",
        gnuplot, strerror(outcome), q->folder);
  return gl_fail(err, GL_EIO, "%s failed on %s/%s: %s", gnuplot, q->folder, script, complaint);
}
