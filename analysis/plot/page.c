/* Collects one figure: writes its data file, records its panels, lines, marks and notes. script.c
 * writes the gnuplot script from them. */
#include "analysis/plot/page.h"

#include "analysis/plot/text.h"
#include "core/base/array.h"
#include "core/base/display_text.h"
#include "core/base/json.h"
#include "core/base/utf8.h"
#include "core/config/config.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* --- options --- */

/* Named page widths. */
static const struct {
  const char *name;
  double cm;
} widths[] = {{"neurips", FIGURE_WIDTH_CM}, {"icml", 8.255}, {"a4", 16}};
enum { WIDTHS = sizeof widths / sizeof *widths };
static const double NARROWEST = 6, WIDEST = 100;

gl_status figure_width(const char *text, double *cm, gl_error *err) {
  const char *names[WIDTHS];
  char hint[CFG_HINT_SIZE], *end;
  for (size_t i = 0; i < WIDTHS; i++) {
    names[i] = widths[i].name;
    if (strcmp(text, widths[i].name) != 0) continue;
    *cm = widths[i].cm;
    return GL_OK;
  }
  *cm = strtod(text, &end);
  if (end == text || *end)
    return gl_fail(err, GL_EINPUT,
                   "the width '%.40s' is neither neurips, icml, a4 nor a number of centimetres%s",
                   text, cfg_hint(text, names, WIDTHS, hint));
  if (!(*cm >= NARROWEST && *cm <= WIDEST))
    return gl_fail(err, GL_EINPUT, "a figure is %g to %g cm wide, not %.40s", NARROWEST, WIDEST,
                   text);
  return GL_OK;
}

gl_status figure_points(const char *text, size_t *points, gl_error *err) {
  enum { FEWEST = 2, MOST = 65536 };
  char *end;
  const long n = strtol(text, &end, 10);
  const bool is_raw = strcmp(text, "raw") == 0;
  if (!is_raw && (end == text || *end || n < FEWEST || n > MOST))
    return gl_fail(err, GL_EINPUT, "--points takes raw or a number from %d to %d, not '%.40s'",
                   FEWEST, MOST, text);
  *points = is_raw ? FIGURE_EVERY_UPDATE : (size_t)n;
  return GL_OK;
}

bool figure_is_named(const char *list, const char *name) {
  const size_t n = strlen(name);
  for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
    if (strncmp(at, name, n) == 0 && (at[n] == ',' || !at[n])) return true;
  return false;
}

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

/* A logarithmic axis shows positive values only. */
static bool is_on_axis(const figure_panel *panel, double value) {
  return isfinite(value) && (!panel->logarithmic || value > 0);
}

/* Lines are written in order, so the search starts at the line found last. If memory runs out, no
 * name is recorded and no line is hidden. */
void page_keep_line(figure_page *p, const char *line) {
  for (size_t i = 0; i < p->n_drawn; i++) {
    const size_t at = (p->last_drawn + i) % p->n_drawn;
    if (strcmp(p->drawn[at], line) != 0) continue;
    p->last_drawn = at;
    return;
  }
  const char *copy = arena_text(&p->memory, line);
  const char **added = copy ? ARRAY_ADD(p->drawn, p->n_drawn) : NULL;
  if (!added) return;
  *added = copy;
  p->last_drawn = p->n_drawn - 1;
}

static void widen(figure_panel *panel, double value) {
  if (!is_on_axis(panel, value)) return;
  panel->low = fmin(panel->low, value);
  panel->high = fmax(panel->high, value);
}

void page_interval(figure_page *p, size_t panel, double value, double low, double high) {
  figure_panel *to = &p->panels[panel];
  p->n_points++;
  page_number(p, value), page_number(p, low), page_number(p, high);
  if (is_on_axis(to, value))
    to->least = fmin(to->least, value), to->largest = fmax(to->largest, value);
  if (is_on_axis(to, value) && p->in_record) page_keep_line(p, p->in_record);
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

bool panel_has_values(const figure_panel *panel) {
  return panel->low <= panel->high;
}

bool page_is_empty(const figure_page *p) {
  for (size_t i = 0; i < p->n_panels; i++)
    if (panel_has_values(&p->panels[i])) return false;
  return true;
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

/* Writes a text without control characters in gnuplot's single quotes, where nothing is
 * interpreted. A quote character is written outside, between two quoted parts: gnuplot 5.4 mistakes
 * some doubled quotes for the end of the string and executes the rest as commands. */
void page_write_name(const char *text, FILE *to) {
  for (fputc('\'', to); *text; text++) {
    if (*text == '\'')
      fputs("'.\"'\".'", to);
    else
      fputc(*text, to);
  }
  fputc('\'', to);
}

/* Returns true if gnuplot's enhanced text mode interprets the character. */
static bool is_gnuplot_mark(char c) {
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
      if (is_gnuplot_mark(*c)) escaped[n++] = '\\';
      memcpy(escaped + n, c, size), n += size;
    }
    c += size;
  }
  escaped[n] = 0;
  page_write_name(escaped, to);
}

/* --- remarks and settings left out --- */

/* Appends to an allocated text, with a separator if it is not empty. */
static gl_status append_foot(char **to, const char *separator, const char *more, gl_error *err) {
  const size_t have = *to ? strlen(*to) : 0, size = have + strlen(more) + strlen(separator) + 1;
  char *longer = realloc(*to, size);
  if (!longer) return gl_fail_memory(err, "what a figure says at its foot");
  snprintf(longer + have, size - have, "%s%s", have ? separator : "", more);
  *to = longer;
  return GL_OK;
}

static const char SEPARATOR[] = "; ";

/* Returns true if text is a complete entry of the list `said`. One setting's name may be a prefix
 * of another's. */
static bool is_in_list(const char *said, const char *text) {
  const size_t n = strlen(text), gap = sizeof SEPARATOR - 1;
  for (const char *at = said; at; at = strstr(at, SEPARATOR)) {
    if (at != said) at += gap;
    if (strncmp(at, text, n) == 0 && (at[n] == 0 || strncmp(at + n, SEPARATOR, gap) == 0))
      return true;
  }
  return false;
}

/* Adds an entry to a list unless the list has it; counts it in *n, which may be NULL. */
static gl_status add_foot_entry(char **list, size_t *n, gl_error *err, const char *format,
                                va_list args) {
  char text[200];
  vsnprintf(text, sizeof text, format, args);
  if (is_in_list(*list, text)) return GL_OK;
  if (n != NULL) ++*n;
  return append_foot(list, SEPARATOR, text, err);
}

gl_status page_leave_out(figure_page *p, gl_error *err, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const gl_status status = add_foot_entry(&p->left_out, &p->n_left_out, err, format, args);
  va_end(args);
  return status;
}

gl_status page_absent(figure_page *p, gl_error *err, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const gl_status status = add_foot_entry(&p->absent, NULL, err, format, args);
  va_end(args);
  return status;
}

gl_status page_remark(figure_page *p, gl_error *err, const char *format, ...) {
  char text[1000];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return append_foot(&p->remark, ". ", text, err);
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

/* Files of the figure that are read elsewhere would be lost. */
static gl_status refuse_overwriting(const figure_page *p, gl_error *err) {
  static const char *const suffixes[] = {".tsv", ".gp", ".txt", ".pdf", ".png", ".svg"};
  const size_t size = strlen(p->q->folder) + strlen(p->name) + sizeof "/.tsv";
  char *path = malloc(size);
  if (path == NULL) return gl_fail_memory(err, "a file's name");
  gl_status status = GL_OK;
  for (size_t k = 0; k < sizeof suffixes / sizeof *suffixes; k++)
    for (size_t i = 0; i < p->q->n_reads && status == GL_OK; i++) {
      snprintf(path, size, "%s/%s%s", p->q->folder, p->name, suffixes[k]);
      if (file_same(path, p->q->reads[i]))
        status = gl_fail(err, GL_EINPUT,
                         "the figure's file '%s' and '%s' are one, which would be overwritten; "
                         "name another folder",
                         path, p->q->reads[i]);
    }
  free(path);
  return status;
}

gl_status page_open(figure_page *p, size_t n_panels, const char *columns, gl_error *err) {
  assert(!p->panels);
  p->n_panels = p->wide = n_panels;
  p->panels = ARENA_ARRAY(&p->memory, figure_panel, n_panels);
  p->variables = open_memstream(&p->variables_text, &p->variables_size);
  if (!p->panels || !p->variables) return gl_fail_memory(err, "a figure");
  for (size_t i = 0; i < n_panels; i++) {
    figure_panel *panel = &p->panels[i];
    panel->low = panel->least = panel->x_low = INFINITY;
    panel->high = panel->largest = panel->x_high = -INFINITY;
  }
  gl_status status = refuse_overwriting(p, err);
  if (status == GL_OK) status = page_begin_file(&p->data, p, ".tsv", err);
  if (status == GL_OK && columns) fprintf(p->data.stream, "# %s\n", columns);
  return status;
}

gl_status page_set_lines(figure_page *p, const char *const *names, size_t n, gl_error *err) {
  assert(!p->lines);
  look *looks = ARENA_ARRAY(&p->memory, look, n);
  p->lines = ARENA_ARRAY(&p->memory, figure_line, n);
  if (looks && p->lines) looks_assign(names, n, p->q->variants, p->q->n_variants, looks);
  for (size_t i = 0; i < n && !p->memory.failed; i++)
    p->lines[i] = (figure_line){arena_text(&p->memory, names[i]), looks[i], SAMPLE_LINE_MARK, 0};
  p->n_lines = p->memory.failed ? 0 : n;
  return arena_check(&p->memory, "the names of a figure's lines", err);
}

gl_status page_set_kinds(figure_page *p, const figure_kind *kinds, size_t n, gl_error *err) {
  assert(!p->kinds);
  p->kinds = ARENA_ARRAY(&p->memory, figure_line, n);
  for (size_t i = 0; i < n && !p->memory.failed; i++)
    p->kinds[i] =
        (figure_line){arena_text(&p->memory, kinds[i].name), kinds[i].look, kinds[i].sample, 0};
  p->n_kinds = p->memory.failed ? 0 : n;
  return arena_check(&p->memory, "the legend of a figure", err);
}

gl_status page_mark(figure_page *p, size_t panel, double x, const char *text, gl_error *err) {
  const char *copy = arena_text(&p->memory, text);
  figure_mark *mark = copy ? ARRAY_ADD(p->marks, p->n_marks) : NULL;
  if (!mark) return gl_fail_memory(err, "the marks of a figure's axis");
  *mark = (figure_mark){panel, x, copy};
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

/* --- cells of maps --- */

void map_edges(const double *x, size_t n, bool logarithmic, double *edge) {
  for (size_t i = 1; i < n; i++)
    edge[i] = logarithmic ? sqrt(x[i - 1] * x[i]) : 0.5 * (x[i - 1] + x[i]);
  if (n == 1) {
    edge[0] = logarithmic ? x[0] / 2 : x[0] - 0.5, edge[1] = logarithmic ? x[0] * 2 : x[0] + 0.5;
    return;
  }
  edge[0] = logarithmic ? x[0] * x[0] / edge[1] : 2 * x[0] - edge[1];
  edge[n] = logarithmic ? x[n - 1] * x[n - 1] / edge[n - 1] : 2 * x[n - 1] - edge[n - 1];
}

void page_map(figure_page *p, size_t panel, const figure_map *m) {
  figure_panel *to = &p->panels[panel];
  to->kept = 1;
  to->low = m->y_edge[0], to->high = m->y_edge[m->n_y];
  page_x(p, m->x_edge[0]), page_x(p, m->x_edge[m->n_x]);
  for (size_t y = 0; y < m->n_y; y++)
    for (size_t x = 0; x < m->n_x; x++) {
      const double value = m->value[y * m->n_x + x];
      if (!isfinite(value)) continue;
      page_line(p, panel, "cell");
      page_number(p, m->x_edge[x]), page_number(p, m->x_edge[x + 1]);
      page_number(p, m->y_edge[y]), page_number(p, m->y_edge[y + 1]);
      page_number(p, value);
      fputc('\n', p->data.stream);
    }
  page_block_end(p);
}

/* --- contours --- */

/* A contour of a map at `level`, in a panel of a page. log_x, log_y, log_value: whether the axis or
 * the values are logarithmic. */
typedef struct contour {
  figure_page *p;
  const figure_map *m;
  size_t panel;
  double level;
  int log_x, log_y, log_value;
} contour;

static double centre(const double *edge, size_t i, bool logarithmic) {
  return logarithmic ? 0.5 * (log(edge[i]) + log(edge[i + 1])) : 0.5 * (edge[i] + edge[i + 1]);
}

/* Difference between the cell's value and the level, on the scale of the colours. */
static double above(const contour *c, size_t x, size_t y) {
  const double value = c->m->value[y * c->m->n_x + x];
  return c->log_value ? log(value) - log(c->level) : value - c->level;
}

typedef struct point {
  double x, y;
} point;

/* Finds where the contour crosses the four sides of a square. Its lower left corner is the centre
 * of cell (x, y). */
static size_t crossings(const contour *c, size_t x, size_t y, point out[4]) {
  const size_t cx[5] = {x, x + 1, x + 1, x, x}, cy[5] = {y, y, y + 1, y + 1, y};
  size_t n = 0;
  for (int side = 0; side < 4; side++) {
    const double a = above(c, cx[side], cy[side]), b = above(c, cx[side + 1], cy[side + 1]);
    if (!isfinite(a) || !isfinite(b)) return 0;
    if ((a < 0) == (b < 0)) continue;
    const double t = a / (a - b);
    const double xa = centre(c->m->x_edge, cx[side], c->log_x),
                 xb = centre(c->m->x_edge, cx[side + 1], c->log_x),
                 ya = centre(c->m->y_edge, cy[side], c->log_y),
                 yb = centre(c->m->y_edge, cy[side + 1], c->log_y);
    out[n++] = (point){xa + t * (xb - xa), ya + t * (yb - ya)};
  }
  return n;
}

static void write_segment(const contour *c, point from, point to) {
  const point ends[2] = {from, to};
  for (int i = 0; i < 2; i++) {
    page_line(c->p, c->panel, "contour");
    page_number(c->p, c->log_x ? exp(ends[i].x) : ends[i].x);
    page_number(c->p, c->log_y ? exp(ends[i].y) : ends[i].y);
    fputc('\n', c->p->data.stream);
  }
  fputc('\n', c->p->data.stream);
}

void page_contour(figure_page *p, size_t panel, const figure_map *m, double level) {
  const contour c = {
      p, m, panel, level, p->x_logarithmic, p->panels[panel].logarithmic, p->bar_logarithmic};
  point at[4];
  page_line(p, panel, "contour");
  fputs("\t\t\n\n", p->data.stream); /* gnuplot does not count empty blocks */
  for (size_t y = 0; y + 1 < m->n_y && isfinite(level); y++)
    for (size_t x = 0; x + 1 < m->n_x; x++) {
      const size_t n = crossings(&c, x, y, at);
      if (n >= 2) write_segment(&c, at[0], at[1]);
      if (n == 4) write_segment(&c, at[2], at[3]);
    }
  fputc('\n', p->data.stream);
}

/* --- colour bars --- */

void page_bar(figure_page *p, const char *axis, double low, double high, bool logarithmic) {
  snprintf(p->bar_axis, sizeof p->bar_axis, "%s", axis);
  p->bar_low = low, p->bar_high = high > low ? high : low == 0 ? 1 : low + fabs(low) * 1e-3;
  p->bar_logarithmic = logarithmic;
  page_set(p, "diverging", 0);
}

void page_bar_diverging(figure_page *p, const char *axis, double most, bool logarithmic) {
  page_bar(p, axis, logarithmic ? 1 / most : -most, most, logarithmic);
  page_set(p, "diverging", 1);
}
