/* Tables as aligned text, Markdown and LaTeX. */
#include "analysis/tables.h"

#include "core/base/shown.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const char *const table_format_names[TABLE_FORMATS] = {
    [TABLE_TEXT] = "text", [TABLE_MARKDOWN] = "markdown", [TABLE_LATEX] = "latex"};

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

void table_interval(table *t, interval v) {
  if (isnan(v.value) || isnan(v.low))
    table_number(t, v.value);
  else
    table_cell(t, "%.4g [%.4g, %.4g]", v.value, v.low, v.high);
}

static void pad(FILE *to, size_t n) {
  while (n--) fputc(' ', to);
}

/* --- texts that may be anything --- */

/* What stands for a character that LaTeX or Markdown (and HTML in it) would obey. */
static const struct {
  char c;
  const char *latex, *markdown;
} special[] = {{'\\', "\\textbackslash{}", "\\\\"},
               {'~', "\\textasciitilde{}", "\\~"},
               {'^', "\\textasciicircum{}", "^"},
               {'<', "\\textless{}", "&lt;"},
               {'>', "\\textgreater{}", "&gt;"},
               {'|', "\\textbar{}", "\\|"},
               {'&', "\\&", "&amp;"},
               {'%', "\\%", "%"},
               {'$', "\\$", "$"},
               {'#', "\\#", "#"},
               {'_', "\\_", "_"},
               {'{', "\\{", "{"},
               {'}', "\\}", "}"},
               {'`', "`", "\\`"},
               {'*', "*", "\\*"}};

static void write_character(char c, table_format format, FILE *to) {
  for (size_t i = 0; i < sizeof special / sizeof *special && format != TABLE_TEXT; i++)
    if (special[i].c == c) {
      fputs(format == TABLE_LATEX ? special[i].latex : special[i].markdown, to);
      return;
    }
  fputc(c, to);
}

static int is_word(char c) {
  return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

/* Marks of Markdown that are marks only where they stand: a bracket that ends a link's text, an
 * underscore at the edge of a word. */
static int is_mark_here(const char *text, size_t i) {
  if (text[i] == ']') return text[i + 1] == '(' || text[i + 1] == '[';
  return text[i] == '_' && !(i > 0 && is_word(text[i - 1]) && is_word(text[i + 1]));
}

/* Where LaTeX would take the beginning of a row for an argument of the row's end before it, and
 * Markdown that of a line for one of its own marks. */
static const char *guard_of(char first, table_format format, int begins_line) {
  if (format == TABLE_LATEX && (first == '[' || first == '*')) return "{}";
  if (format == TABLE_MARKDOWN && begins_line && first && strchr("#+-=[", first)) return "\\";
  return "";
}

/* Any text as the format needs it, on the heap; NULL if memory is short. */
static char *written(const char *text, table_format format, int begins_line) {
  char *calm = NULL, *out = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&calm, &size);
  if (!to) return NULL;
  shown_write(text, strlen(text), to);
  if (fclose(to) == 0 && (to = open_memstream(&out, &size)) != NULL) {
    fputs(guard_of(*calm, format, begins_line), to);
    for (size_t i = 0; calm[i]; i++) {
      if (format == TABLE_MARKDOWN && is_mark_here(calm, i)) fputc('\\', to);
      write_character(calm[i], format, to);
    }
    if (fclose(to) != 0) free(out), out = NULL;
  }
  free(calm);
  return out;
}

/* --- rows --- */

static void write_aligned_cell(const char *text, size_t width, int left, FILE *to) {
  size_t space = width - shown_width(text);
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
      fputs(text, to);
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
    fputs(t->caption, to);
    fputs("}\n", to);
  }
  fputs("\\begin{tabular}{l", to);
  for (size_t c = 1; c < t->columns; c++) fputc('r', to);
  fputs("}\n\\toprule\n", to);
}

/* The table with its texts as the format needs them; table_free() it. NULL if memory is short. */
static table *written_table(const table *t, table_format format) {
  table *w = calloc(1, sizeof *w);
  if (!w) return NULL;
  w->columns = t->columns;
  w->cells = calloc(t->n + 1, sizeof *w->cells);
  if (t->caption) w->caption = written(t->caption, format, 1);
  int ok = w->cells && (!t->caption || w->caption);
  for (; w->n < t->n && ok; w->n += (size_t)ok)
    ok = (w->cells[w->n] = written(t->cells[w->n], format, 0)) != NULL;
  if (ok) return w;
  table_free(w);
  return NULL;
}

gl_status table_write(const table *t, table_format format, FILE *to, gl_error *err) {
  if (t->failed) return gl_fail_memory(err, "a table");
  table *w = written_table(t, format);
  size_t *width = calloc(t->columns, sizeof *width);
  if (!w || !width) {
    table_free(w), free(width);
    return gl_fail_memory(err, "a table");
  }
  for (size_t i = 0; i < w->n; i++) {
    size_t columns = shown_width(w->cells[i]);
    if (columns > width[i % w->columns]) width[i % w->columns] = columns;
  }
  write_opening(w, format, to);
  for (size_t row = 0; row < w->n / w->columns; row++) {
    write_row(w, row, format, width, to);
    if (row == 0) write_rule(w, format, width, to);
  }
  if (format == TABLE_LATEX) fputs("\\bottomrule\n\\end{tabular}\n", to);
  if (format == TABLE_LATEX && w->caption) fputs("\\end{table}\n", to);
  table_free(w), free(width);
  return ferror(to) ? gl_fail(err, GL_EIO, "writing a table failed; is the disk full?") : GL_OK;
}
