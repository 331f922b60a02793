/* The data file and the script of one figure. */
#include "analysis/plot/page.h"

#include "core/base/json.h"
#include "core/base/shown.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* --- files --------------------------------------------------------------------------------------
 */

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

void page_line(figure_page *p, size_t panel, const char *line) {
  fprintf(p->data.stream, "%zu\t", panel);
  shown_write_field(line, p->data.stream);
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

void page_interval(figure_page *p, size_t panel, double value, double low, double high) {
  figure_panel *to = &p->panels[panel];
  page_number(p, value), page_number(p, low), page_number(p, high);
  widen(to, value);
  if (!to->logarithmic) widen(to, low);
  widen(to, high);
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

/* A text without control characters in gnuplot's single quotes, in which nothing is replaced or
 * run. A quote stands outside, between two parts: gnuplot 5.4 takes some doubled ones for the end
 * of the text and goes on with what follows as commands. */
static void write_single_quoted(const char *text, FILE *to) {
  for (fputc('\'', to); *text; text++) {
    if (*text == '\'')
      fputs("'.\"'\".'", to);
    else
      fputc(*text, to);
  }
  fputc('\'', to);
}

/* Whether gnuplot's enhanced text obeys the character. */
static int is_mark(char c) {
  return strchr("_^@&~{}\\", c) != NULL;
}

/* Any text, to be shown literally; `format`: where gnuplot takes it for a format of numbers. */
static void write_text(const char *text, int format, FILE *to) {
  shown_text s = shown(text);
  char escaped[2 * SHOWN_SIZE];
  size_t n = 0;
  for (const char *c = s.text; *c; c++) {
    if (is_mark(*c)) escaped[n++] = '\\';
    if (format && *c == '%') escaped[n++] = '%';
    escaped[n++] = *c;
  }
  escaped[n] = 0;
  write_single_quoted(escaped, to);
}

static void write_quoted(const char *text, FILE *to) {
  write_text(text, 0, to);
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
    if (room <= 0) room = fmax(0.05 * fabs(*high), 0.015);
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

/* line_mark is line_name as tic marks need it, which take a name for a format. */
static void write_line_names(const figure_page *p, FILE *to) {
  size_t longest = 0;
  fprintf(to, "array line_name[%zu]\narray line_mark[%zu]\n", p->n_lines + 1, p->n_lines + 1);
  for (size_t i = 0; i < p->n_lines; i++) {
    size_t n = shown_width(p->lines[i]);
    if (n > longest) longest = n;
    fprintf(to, "line_name[%zu] = ", i + 1), write_text(p->lines[i], 0, to);
    fprintf(to, "; line_mark[%zu] = ", i + 1), write_text(p->lines[i], 1, to), fputc('\n', to);
  }
  fprintf(to, "longest_name = %zu\n", longest);
}

static void write_panels(figure_page *p, FILE *to) {
  static const char *const arrays[] = {"title", "axis", "note", "low", "high", "logarithmic"};
  double x_low = p->x_low, x_high = p->x_high;
  if (p->share > 0) share_ranges(p);
  pad_range(&x_low, &x_high, 0);
  fprintf(to, "panels = %zu\nwide = %zu\nshared = %d\nnamed_rows = %d\nlines = %zu\n", p->n_panels,
          p->wide, p->share > 0, p->named_rows, p->n_lines);
  fprintf(to, "x_low = %.10g\nx_high = %.10g\nx_axis = ", x_low, x_high);
  write_quoted(p->x_axis, to);
  fputc('\n', to);
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
    fprintf(to, "array %s[%zu]\n", arrays[i], p->n_panels);
  for (size_t i = 0; i < p->n_panels; i++) write_panel(&p->panels[i], i + 1, to);
  write_line_names(p, to);
  fprintf(to, "x_marks = \"%s\"\n", p->x_marks);
}

/* --- what is left out ---------------------------------------------------------------------------
 */

gl_status page_leave_out(figure_page *p, gl_error *err, const char *format, ...) {
  char text[200];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  const size_t have = p->left_out ? strlen(p->left_out) : 0, more = strlen(text);
  char *longer = realloc(p->left_out, have + more + sizeof "; ");
  if (!longer) return gl_fail_memory(err, "what a figure leaves out");
  snprintf(longer + have, more + sizeof "; ", "%s%s", have ? "; " : "", text);
  p->left_out = longer;
  p->n_left_out++;
  return GL_OK;
}

/* Lines of the note below the panels, and bytes in each: as much as the narrowest page has room
 * for.
 */
enum { NOTE_LINES = 4, NARROW_NOTE = 75, WIDE_NOTE = 125 };

/* Where a line of at most `most` bytes of the text ends: behind its last whole item ("; "), else
 * its last word, else anywhere between two characters. */
static size_t line_length(const char *text, size_t most) {
  if (strlen(text) <= most) return strlen(text);
  size_t item = 0, word = 0, character = 0;
  for (size_t i = 1; i <= most; i++) {
    if (((unsigned char)text[i] & 0xC0) != 0x80) character = i;
    if (text[i - 1] == ' ') word = i;
    if (i > 1 && text[i - 1] == ' ' && text[i - 2] == ';') item = i;
  }
  return item ? item : word ? word : character;
}

/* The note cut into lines; the last says how much did not fit. */
static void write_left_out(const figure_page *p, FILE *to) {
  const size_t across = p->wide < p->n_panels ? p->wide : p->n_panels;
  const size_t most = across <= 1 ? NARROW_NOTE : WIDE_NOTE;
  char lines[NOTE_LINES][WIDE_NOTE + 64], *text = NULL;
  size_t n = 0, size = 0;
  FILE *all = p->left_out ? open_memstream(&text, &size) : NULL;
  if (all) fprintf(all, "not shown: %s", p->left_out), fclose(all);
  for (const char *rest = text; rest && *rest && n < NOTE_LINES; n++) {
    const size_t length = line_length(rest, most);
    snprintf(lines[n], sizeof lines[n], "%.*s", (int)length, rest);
    rest += length;
    if (*rest && n + 1 == NOTE_LINES)
      snprintf(lines[n] + length, sizeof lines[n] - length, "... (%zu in all)", p->n_left_out);
  }
  fprintf(to, "left_out_lines = %zu\narray left_out[%d]\n", n, NOTE_LINES);
  for (size_t i = 0; i < n; i++)
    fprintf(to, "left_out[%zu] = ", i + 1), write_quoted(lines[i], to), fputc('\n', to);
  free(text);
}

/* --- opening and closing ------------------------------------------------------------------------
 */

void page_init(figure_page *p, const figure_request *q, const char *name, const char *shape) {
  *p = (figure_page){.q = q,
                     .name = name,
                     .shape = shape,
                     .x_axis = "step",
                     .x_low = INFINITY,
                     .x_high = -INFINITY};
}

gl_status page_open(figure_page *p, size_t n_panels, const char *columns, gl_error *err) {
  assert(!p->panels);
  p->n_panels = p->wide = n_panels;
  p->panels = calloc(n_panels + 1, sizeof *p->panels);
  p->variables = open_memstream(&p->variables_text, &p->variables_size);
  if (!p->panels || !p->variables) return gl_fail_memory(err, "a figure");
  for (size_t i = 0; i < n_panels; i++) p->panels[i].low = INFINITY, p->panels[i].high = -INFINITY;
  gl_status status = begin_file(&p->data, p, ".tsv", err);
  if (status == GL_OK && columns) fprintf(p->data.stream, "# %s\n", columns);
  return status;
}

gl_status page_set_lines(figure_page *p, const char *const *names, size_t n, gl_error *err) {
  assert(!p->lines);
  p->lines = calloc(n + 1, sizeof *p->lines);
  if (!p->lines) return gl_fail_memory(err, "the names of a figure's lines");
  for (; p->n_lines < n; p->n_lines++)
    if (!(p->lines[p->n_lines] = strdup(names[p->n_lines])))
      return gl_fail_memory(err, "the names of a figure's lines");
  return GL_OK;
}

void page_set(figure_page *p, const char *variable, double value) {
  fprintf(p->variables, "%s = %.10g\n", variable, value);
}

void page_set_texts(figure_page *p, const char *array, const char *const *texts, size_t n) {
  fprintf(p->variables, "array %s[%zu]\n", array, n);
  for (size_t i = 0; i < n; i++) {
    fprintf(p->variables, "%s[%zu] = ", array, i + 1);
    write_quoted(texts[i], p->variables);
    fputc('\n', p->variables);
  }
}

void page_set_numbers(figure_page *p, const char *array, const double *numbers, size_t n) {
  fprintf(p->variables, "array %s[%zu]\n", array, n);
  for (size_t i = 0; i < n; i++)
    fprintf(p->variables, "%s[%zu] = %.10g\n", array, i + 1, numbers[i]);
}

static gl_status write_script(figure_page *p, gl_error *err) {
  char shape[64];
  snprintf(shape, sizeof shape, "plots/%s.gp", p->shape);
  const char *palette = p->q->script("plots/palette.gp"), *draws = p->q->script(shape);
  const char *style = p->q->script(p->n_panels ? "plots/style.gp" : "plots/page.gp");
  file_writer w;
  if (!palette || !style || !draws)
    return gl_fail(err, GL_EINPUT, "the plot script %s is missing", shape);
  gl_status status = begin_file(&w, p, ".gp", err);
  if (status != GL_OK) return status;
  fprintf(w.stream, "# gnuplot %s.gp draws %s.pdf, %s.png and %s.svg from %s.tsv\n", p->name,
          p->name, p->name, p->name, p->name);
  fputs("if (!exists('aside')) aside = ''\n", w.stream);
  /* Behind ./ no name begins with what gnuplot takes for a command instead of a file: | or <. */
  fputs("name = './'.", w.stream), write_single_quoted(p->name, w.stream), fputc('\n', w.stream);
  fprintf(w.stream, "formats = '%s'\n", p->q->formats ? p->q->formats : "pdf png svg");
  if (p->n_panels) write_panels(p, w.stream);
  fwrite(p->variables_text, 1, p->variables_size, w.stream);
  write_left_out(p, w.stream);
  fprintf(w.stream, "\n%s\n%s\n%s", palette, style, draws);
  return file_commit(&w, err);
}

gl_status page_close(figure_page *p, gl_status status, gl_error *err) {
  if (p->variables && fclose(p->variables) != 0 && status == GL_OK)
    status = gl_fail_memory(err, "the script of a figure");
  if (status == GL_OK) status = write_script(p, err);
  if (status == GL_OK)
    status = file_commit(&p->data, err);
  else if (p->data.stream)
    file_abandon(&p->data);
  if (status == GL_OK && p->left_out && p->q->noted)
    p->q->noted(p->q->context, p->name, p->left_out);
  for (size_t i = 0; i < p->n_lines; i++) free(p->lines[i]);
  free(p->lines), free(p->panels), free(p->variables_text), free(p->left_out);
  *p = (figure_page){0};
  return status;
}
