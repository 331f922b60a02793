/* The data file and the script of one figure. */
#include "analysis/plot/page.h"

#include "analysis/plot/text.h"
#include "core/base/json.h"
#include "core/base/shown.h"
#include "core/base/utf8.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* --- files --- */

gl_status page_begin_file(file_writer *w, const figure_page *p, const char *suffix, gl_error *err) {
  size_t n = strlen(p->q->folder) + strlen(p->name) + strlen(suffix) + 2;
  char *path = malloc(n);
  if (!path) return gl_fail_memory(err, "a file's name");
  snprintf(path, n, "%s/%s%s", p->q->folder, p->name, suffix);
  gl_status status = file_begin(w, path, err);
  free(path);
  return status;
}

void page_line(figure_page *p, size_t panel, const char *line) {
  p->in_block = 1;
  p->in_record = line;
  fprintf(p->data.stream, "%zu\t", panel);
  shown_write_field(line, p->data.stream);
}

void page_number(figure_page *p, double value) {
  char text[NUMBER_TEXT_SIZE];
  fprintf(p->data.stream, "\t%s", isfinite(value) ? number_text(value, text) : "");
}

/* A logarithmic axis has no place for what is not positive. */
static int has_place(const figure_panel *panel, double value) {
  return isfinite(value) && (!panel->logarithmic || value > 0);
}

/* Lines come in turn, so the one found last or the next is mostly the one asked for. Where memory
 * is short no name is kept, and no line is hidden. */
void page_keep_line(figure_page *p, const char *line) {
  for (size_t i = 0; i < p->n_drawn; i++) {
    const size_t at = (p->last_drawn + i) % p->n_drawn;
    if (strcmp(p->drawn[at], line) != 0) continue;
    p->last_drawn = at;
    return;
  }
  char **longer = realloc(p->drawn, (p->n_drawn + 1) * sizeof *longer);
  if (!longer) return;
  p->drawn = longer;
  if (!(longer[p->n_drawn] = strdup(line))) return;
  p->last_drawn = p->n_drawn++;
}

static void widen(figure_panel *panel, double value) {
  if (!has_place(panel, value)) return;
  panel->low = fmin(panel->low, value);
  panel->high = fmax(panel->high, value);
}

void page_interval(figure_page *p, size_t panel, double value, double low, double high) {
  figure_panel *to = &p->panels[panel];
  p->n_points++;
  page_number(p, value), page_number(p, low), page_number(p, high);
  if (has_place(to, value))
    to->least = fmin(to->least, value), to->largest = fmax(to->largest, value);
  if (has_place(to, value) && p->in_record) page_keep_line(p, p->in_record);
  widen(to, value);
  if (!to->logarithmic) widen(to, low);
  widen(to, high);
}

void page_x(figure_page *p, double x) {
  if (!isfinite(x) || (p->x_logarithmic && x <= 0)) return;
  p->x_low = fmin(p->x_low, x);
  p->x_high = fmax(p->x_high, x);
}

void page_panel_x(figure_page *p, size_t panel, double x) {
  figure_panel *to = &p->panels[panel];
  if (!isfinite(x) || (to->x_logarithmic && x <= 0)) return;
  to->x_low = fmin(to->x_low, x);
  to->x_high = fmax(to->x_high, x);
}

void page_point(figure_page *p, size_t panel, const char *line, double x, double value, double low,
                double high) {
  page_line(p, panel, line);
  page_number(p, x);
  page_interval(p, panel, value, low, high);
  fputc('\n', p->data.stream);
  if (*p->panels[panel].x_axis)
    page_panel_x(p, panel, x);
  else
    page_x(p, x);
}

void page_block_end(figure_page *p) {
  if (!p->in_block) fputs("-\t\t\n", p->data.stream);
  p->in_block = 0;
  p->in_record = NULL;
  fputs("\n\n", p->data.stream);
}

int panel_has_values(const figure_panel *panel) {
  return panel->low <= panel->high;
}

int page_is_empty(const figure_page *p) {
  for (size_t i = 0; i < p->n_panels; i++)
    if (panel_has_values(&p->panels[i])) return 0;
  return 1;
}

double page_width(const figure_page *p) {
  return p->q->width_cm > 0 ? p->q->width_cm : FIGURE_WIDTH_CM;
}

size_t page_columns(const figure_page *p, size_t most) {
  const double fit = floor((page_width(p) - 1.3) / PANEL_NARROWEST_CM);
  return fit < 1 ? 1 : fit < (double)most ? (size_t)fit : most;
}

size_t page_pick(size_t n, size_t most, size_t *picked) {
  size_t count = n < most ? n : most;
  for (size_t i = 0; i < count; i++)
    picked[i] = count < 2 ? 0 : (i * (n - 1) + (count - 1) / 2) / (count - 1);
  return count;
}

/* --- the script --- */

/* A text without control characters in gnuplot's single quotes, in which nothing is replaced or
 * run. A quote stands outside, between two parts: gnuplot 5.4 takes some doubled ones for the end
 * of the text and goes on with what follows as commands. */
void page_write_name(const char *text, FILE *to) {
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

void page_write_text(const char *text, FILE *to) {
  shown_text s = shown(text);
  char escaped[4 * SHOWN_SIZE];
  size_t n = 0;
  for (const char *c = s.text; *c;) {
    uint32_t character;
    const size_t size = utf8_read(c, strlen(c), &character);
    if (!text_in_font(character)) {
      n += (size_t)snprintf(escaped + n, sizeof escaped - n, TEXT_ESCAPE, (unsigned)character);
    } else {
      if (is_mark(*c)) escaped[n++] = '\\';
      memcpy(escaped + n, c, size), n += size;
    }
    c += size;
  }
  escaped[n] = 0;
  page_write_name(escaped, to);
}

/* --- what is left out --- */

/* Appends to a text on the heap, with a separator where there is something before it. */
static gl_status append(char **to, const char *separator, const char *more, gl_error *err) {
  const size_t have = *to ? strlen(*to) : 0, size = have + strlen(more) + strlen(separator) + 1;
  char *longer = realloc(*to, size);
  if (!longer) return gl_fail_memory(err, "what a figure says at its foot");
  snprintf(longer + have, size - have, "%s%s", have ? separator : "", more);
  *to = longer;
  return GL_OK;
}

static const char SEPARATOR[] = "; ";

/* Whether text is one of the entries of said: the whole of one, since a setting's name may begin
 * another's. */
static int is_said(const char *said, const char *text) {
  const size_t n = strlen(text), gap = sizeof SEPARATOR - 1;
  for (const char *at = said; at; at = strstr(at, SEPARATOR)) {
    if (at != said) at += gap;
    if (strncmp(at, text, n) == 0 && (at[n] == 0 || strncmp(at + n, SEPARATOR, gap) == 0)) return 1;
  }
  return 0;
}

gl_status page_leave_out(figure_page *p, gl_error *err, const char *format, ...) {
  char text[200];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (is_said(p->left_out, text)) return GL_OK;
  p->n_left_out++;
  return append(&p->left_out, SEPARATOR, text, err);
}

gl_status page_remark(figure_page *p, gl_error *err, const char *format, ...) {
  char text[1000];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return append(&p->remark, ". ", text, err);
}

/* --- opening and closing --- */

void page_init(figure_page *p, const figure_request *q, const char *name, const char *shape) {
  *p = (figure_page){.q = q,
                     .name = name,
                     .shape = shape,
                     .x_axis = "updates",
                     .x_low = INFINITY,
                     .x_high = -INFINITY,
                     .decades = 6};
}

gl_status page_open(figure_page *p, size_t n_panels, const char *columns, gl_error *err) {
  assert(!p->panels);
  p->n_panels = p->wide = n_panels;
  p->panels = calloc(n_panels + 1, sizeof *p->panels);
  p->variables = open_memstream(&p->variables_text, &p->variables_size);
  if (!p->panels || !p->variables) return gl_fail_memory(err, "a figure");
  for (size_t i = 0; i < n_panels; i++) {
    figure_panel *panel = &p->panels[i];
    panel->low = panel->least = panel->x_low = INFINITY;
    panel->high = panel->largest = panel->x_high = -INFINITY;
  }
  gl_status status = page_begin_file(&p->data, p, ".tsv", err);
  if (status == GL_OK && columns) fprintf(p->data.stream, "# %s\n", columns);
  return status;
}

gl_status page_set_lines(figure_page *p, const char *const *names, size_t n, gl_error *err) {
  assert(!p->lines);
  look *looks = calloc(n + 1, sizeof *looks);
  p->lines = calloc(n + 1, sizeof *p->lines);
  int ok = looks && p->lines;
  if (ok) looks_assign(names, n, looks);
  for (; ok && p->n_lines < n; p->n_lines += (size_t)ok) {
    figure_line *line = &p->lines[p->n_lines];
    *line = (figure_line){strdup(names[p->n_lines]), looks[p->n_lines], SAMPLE_LINE_MARK, 0};
    ok = line->name != NULL;
  }
  free(looks);
  return ok ? GL_OK : gl_fail_memory(err, "the names of a figure's lines");
}

gl_status page_set_kinds(figure_page *p, const figure_kind *kinds, size_t n, gl_error *err) {
  assert(!p->kinds);
  p->kinds = calloc(n + 1, sizeof *p->kinds);
  int ok = p->kinds != NULL;
  for (; ok && p->n_kinds < n; p->n_kinds += (size_t)ok) {
    const figure_kind *k = &kinds[p->n_kinds];
    p->kinds[p->n_kinds] = (figure_line){strdup(k->name), k->look, k->sample, 0};
    ok = p->kinds[p->n_kinds].name != NULL;
  }
  return ok ? GL_OK : gl_fail_memory(err, "the legend of a figure");
}

gl_status page_mark(figure_page *p, size_t panel, double x, const char *text, gl_error *err) {
  figure_mark *longer = realloc(p->marks, (p->n_marks + 1) * sizeof *longer);
  if (!longer) return gl_fail_memory(err, "the marks of a figure's axis");
  p->marks = longer;
  if (!(longer[p->n_marks].text = strdup(text)))
    return gl_fail_memory(err, "the marks of a figure's axis");
  longer[p->n_marks].panel = panel;
  longer[p->n_marks++].x = x;
  return GL_OK;
}

void page_set(figure_page *p, const char *variable, double value) {
  fprintf(p->variables, "%s = %.10g\n", variable, value);
}

void page_set_text(figure_page *p, const char *variable, const char *text) {
  fprintf(p->variables, "%s = ", variable);
  page_write_text(text, p->variables);
  fputc('\n', p->variables);
}

void page_set_texts(figure_page *p, const char *array, const char *const *texts, size_t n) {
  fprintf(p->variables, "array %s[%zu]\n", array, n);
  for (size_t i = 0; i < n; i++) {
    fprintf(p->variables, "%s[%zu] = ", array, i + 1);
    page_write_text(texts[i], p->variables);
    fputc('\n', p->variables);
  }
}

void page_set_numbers(figure_page *p, const char *array, const double *numbers, size_t n) {
  fprintf(p->variables, "array %s[%zu]\n", array, n);
  for (size_t i = 0; i < n; i++)
    fprintf(p->variables, "%s[%zu] = %.10g\n", array, i + 1, numbers[i]);
}
