/* Tables as aligned text, Markdown and LaTeX. */
#include "analysis/tables.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct table {
  char **cells; /* the heads first */
  char *caption;
  size_t columns, n, room;
  int failed;
};

table *table_new(const char *const *heads, size_t n) {
  table *t = calloc(1, sizeof *t);
  if (!t) return NULL;
  t->columns = n;
  for (size_t i = 0; i < n; i++) table_cell(t, "%s", heads[i]);
  return t;
}

void table_free(table *t) {
  if (!t) return;
  for (size_t i = 0; i < t->n; i++) free(t->cells[i]);
  free(t->cells), free(t->caption), free(t);
}

/* printf onto the heap; NULL if memory is short. */
static char *format_text(const char *format, va_list args) {
  va_list again;
  va_copy(again, args);
  int length = vsnprintf(NULL, 0, format, again);
  va_end(again);
  char *text = length < 0 ? NULL : malloc((size_t)length + 1);
  if (text) vsnprintf(text, (size_t)length + 1, format, args);
  return text;
}

void table_caption(table *t, const char *format, ...) {
  va_list args;
  va_start(args, format);
  free(t->caption);
  t->caption = format_text(format, args);
  va_end(args);
  if (!t->caption) t->failed = 1;
}

void table_cell(table *t, const char *format, ...) {
  if (t->failed) return;
  if (t->n == t->room) {
    size_t room = t->room ? 2 * t->room : 64;
    char **more = realloc(t->cells, room * sizeof *more);
    if (!more) {
      t->failed = 1;
      return;
    }
    t->cells = more;
    t->room = room;
  }
  va_list args;
  va_start(args, format);
  char *text = format_text(format, args);
  va_end(args);
  t->failed = !text;
  if (text) t->cells[t->n++] = text;
}

void table_number(table *t, double value) {
  if (isnan(value))
    table_cell(t, "–");
  else
    table_cell(t, "%.4g", value);
}

static size_t width_of(const char *text) {
  size_t n = 0;
  for (; *text; text++) n += (*text & 0xC0) != 0x80;
  return n;
}

static void pad(FILE *to, size_t n) {
  while (n--) fputc(' ', to);
}

static void write_escaped(const char *text, FILE *to) {
  for (; *text; text++) {
    if (strchr("&%$#_{}", *text)) fputc('\\', to);
    if (*text == '\\')
      fputs("\\textbackslash{}", to);
    else if (*text == '~' || *text == '^')
      fprintf(to, "\\text%s{}", *text == '~' ? "asciitilde" : "asciicircum");
    else
      fputc(*text, to);
  }
}

static void write_aligned_cell(const char *text, size_t width, int left, FILE *to) {
  size_t space = width - width_of(text);
  if (!left) pad(to, space);
  fputs(text, to);
  if (left) pad(to, space);
}

static void write_row(const table *t, size_t row, table_format format, const size_t *width,
                      FILE *to) {
  static const char *const open[] = {"", "| ", ""}, *const between[] = {"  ", " | ", " & "},
                           *const close[] = {"\n", " |\n", " \\\\\n"};
  fputs(open[format], to);
  for (size_t c = 0; c < t->columns; c++) {
    const char *text = t->cells[row * t->columns + c];
    if (c) fputs(between[format], to);
    if (format == TABLE_LATEX)
      write_escaped(text, to);
    else
      write_aligned_cell(text, width[c], c == 0, to);
  }
  fputs(close[format], to);
}

static void write_rule(const table *t, table_format format, const size_t *width, FILE *to) {
  if (format == TABLE_LATEX) {
    fputs("\\midrule\n", to);
  } else if (format == TABLE_MARKDOWN) {
    for (size_t c = 0; c < t->columns; c++) fputs(c ? "---:|" : "|:---|", to);
    fputc('\n', to);
  } else {
    for (size_t c = 0; c < t->columns; c++) {
      for (size_t i = 0; i < width[c]; i++) fputs("─", to);
      fputs(c + 1 < t->columns ? "──" : "\n", to);
    }
  }
}

static void write_opening(const table *t, table_format format, FILE *to) {
  if (t->caption && format != TABLE_LATEX) fprintf(to, "%s\n\n", t->caption);
  if (format != TABLE_LATEX) return;
  if (t->caption) {
    fputs("\\begin{table}\n\\centering\\footnotesize\n\\caption{", to);
    write_escaped(t->caption, to);
    fputs("}\n", to);
  }
  fputs("\\begin{tabular}{l", to);
  for (size_t c = 1; c < t->columns; c++) fputc('r', to);
  fputs("}\n\\toprule\n", to);
}

gl_status table_write(const table *t, table_format format, FILE *to, gl_error *err) {
  if (t->failed) return gl_fail_memory(err, "a table");
  size_t *width = calloc(t->columns, sizeof *width);
  if (!width) return gl_fail_memory(err, "a table");
  for (size_t i = 0; i < t->n; i++) {
    size_t w = width_of(t->cells[i]);
    if (w > width[i % t->columns]) width[i % t->columns] = w;
  }
  write_opening(t, format, to);
  for (size_t row = 0; row < t->n / t->columns; row++) {
    write_row(t, row, format, width, to);
    if (row == 0) write_rule(t, format, width, to);
  }
  if (format == TABLE_LATEX) fputs("\\bottomrule\n\\end{tabular}\n", to);
  if (format == TABLE_LATEX && t->caption) fputs("\\end{table}\n", to);
  free(width);
  return ferror(to) ? gl_fail(err, GL_EIO, "writing a table failed; is the disk full?") : GL_OK;
}
