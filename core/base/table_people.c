/* Writes tables: the formats for people, and the choice of a format. */
#include "core/base/display_text.h"
#include "core/base/table_internal.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- escaping --- */

/* Escapes of characters that are markup in LaTeX or Markdown (including HTML in it). */
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

static void write_character(char c, table_format form, FILE *to) {
  for (size_t i = 0; i < sizeof special / sizeof *special && form != TABLE_AS_TEXT; ++i)
    if (special[i].c == c) {
      fputs(form == TABLE_AS_LATEX ? special[i].latex : special[i].markdown, to);
      return;
    }
  fputc(c, to);
}

static bool is_word(char c) {
  return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

/* Characters that are Markdown markup only in some positions: a bracket that ends a link's text, an
 * underscore at the edge of a word. */
static bool is_mark_here(const char *text, size_t i) {
  if (text[i] == ']') return text[i + 1] == '(' || text[i + 1] == '[';
  return text[i] == '_' && !(i > 0 && is_word(text[i - 1]) && is_word(text[i + 1]));
}

/* Text to insert where LaTeX would read the start of a row as an argument of the preceding row end,
 * or Markdown the start of a line as markup. */
static const char *guard_of(char first, table_format form, bool begins_line) {
  if (form == TABLE_AS_LATEX && (first == '[' || first == '*')) return "{}";
  if (form == TABLE_AS_MARKDOWN && begins_line && first && strchr("#+-=[", first)) return "\\";
  return "";
}

/* Escapes text for the format, in the scratch table's memory; "" if out of memory. */
static const char *escaped(table *scratch, const char *text, table_format form, bool begins_line) {
  char *calm = NULL, *out = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&calm, &size);
  if (to != NULL) shown_write(text, strlen(text), to);
  bool ok = to != NULL && fclose(to) == 0;
  to = ok ? open_memstream(&out, &size) : NULL;
  if (to != NULL) {
    fputs(guard_of(*calm, form, begins_line), to);
    for (size_t i = 0; calm[i] != '\0'; ++i) {
      if (form == TABLE_AS_MARKDOWN && is_mark_here(calm, i)) fputc('\\', to);
      write_character(calm[i], form, to);
    }
  }
  ok = to != NULL && fclose(to) == 0;
  const char *copy = ok ? arena_text(&scratch->outermost->memory, out) : NULL;
  if (copy == NULL) scratch->outermost->memory.failed = true;
  free(calm);
  free(out);
  return copy != NULL ? copy : "";
}

/* --- values as text for people --- */

enum { FORMAT_SIZE = 16, SHOWN_NUMBER_SIZE = 64, SHOWN_CELL_SIZE = 3 * SHOWN_NUMBER_SIZE };

/* Selects the part of a format "A|B" for numbers up to `size`. */
static void choose_format(char out[FORMAT_SIZE], const char *format, double size) {
  if (format == NULL) format = "%.4g";
  const size_t first = strcspn(format, "|");
  if (format[first] == '\0' || size < 100)
    snprintf(out, FORMAT_SIZE, "%.*s", (int)first, format);
  else
    snprintf(out, FORMAT_SIZE, "%s", format + first + 1);
}

/* A number that rounds to zero has no sign. */
static void show_number(char text[SHOWN_NUMBER_SIZE], const char *format, double value) {
  snprintf(text, SHOWN_NUMBER_SIZE, isfinite(value) ? format : "–", value);
  if (*text == '-' && strspn(text + 1, "0.") == strlen(text + 1))
    memmove(text, text + 1, strlen(text));
}

/* Writes the estimate, and its interval as "[low, high]" or "". */
static void show_interval(const table_column *column, const cell *c, char value[SHOWN_NUMBER_SIZE],
                          char ends[SHOWN_CELL_SIZE]) {
  char format[FORMAT_SIZE], low[SHOWN_NUMBER_SIZE], high[SHOWN_NUMBER_SIZE];
  *ends = '\0';
  const bool has_ends = !isnan(c->number[0]) && !isnan(c->number[1]);
  choose_format(format, column->format,
                has_ends ? fmax(fabs(c->number[1]), fabs(c->number[2])) : INFINITY);
  show_number(value, format, c->number[0]);
  if (!has_ends) return;
  show_number(low, format, c->number[1]);
  show_number(high, format, c->number[2]);
  snprintf(ends, SHOWN_CELL_SIZE, "[%s, %s]", low, high);
}

/* The cell's value as unescaped text; may be written to `text`. */
static const char *shown_cell(const table_column *column, const cell *c,
                              char text[SHOWN_CELL_SIZE]) {
  char format[FORMAT_SIZE], value[SHOWN_NUMBER_SIZE], ends[SHOWN_CELL_SIZE];
  if (c != NULL && c->shown != NULL) return c->shown;
  if (c == NULL || c->is_missing) return "–";
  switch (column->type) {
  case TABLE_TEXT:
    return c->text;
  case TABLE_INTEGER:
    snprintf(text, SHOWN_CELL_SIZE, "%lld", (long long)c->integer);
    return text;
  case TABLE_FLAG:
    return c->integer ? "yes" : "no";
  case TABLE_REAL:
    choose_format(format, column->format, fabs(c->number[0]));
    show_number(text, format, c->number[0]);
    return text;
  case TABLE_INTERVAL:
    show_interval(column, c, value, ends);
    snprintf(text, SHOWN_CELL_SIZE, "%.60s%s%.120s", value, *ends != '\0' ? " " : "", ends);
    return text;
  case TABLE_NUMBERS:
  case TABLE_JSON:
  case TABLE_TABLE:
    break;
  }
  return "";
}

/* --- tables for people --- */

static const cell *table_cell_at(const table *t, size_t row, size_t column) {
  const size_t at = row * t->n_columns + column;
  return at < t->n_cells ? &t->cell[at] : NULL;
}

static void write_spaces(size_t n, FILE *to) {
  while (n-- > 0) fputc(' ', to);
}

static void write_aligned(const char *text, size_t width, bool left, FILE *to) {
  const size_t columns = shown_width(text), space = width > columns ? width - columns : 0;
  if (!left) write_spaces(space, to);
  fputs(text, to);
  if (left) write_spaces(space, to);
}

/* The order of columns in formats for people: by table_column.order, then by position. */
static size_t *order_for_people(const table *t, table *scratch) {
  size_t *order = table_memory(scratch, t->n_columns + 1, sizeof *order);
  for (size_t i = 0; order != NULL && i < t->n_columns; ++i) {
    size_t at = i;
    for (; at > 0 && t->column[order[at - 1]].order > t->column[i].order; --at)
      order[at] = order[at - 1];
    order[at] = i;
  }
  return order;
}

/* The cells of a table as text in one format: the heads first, then the visible rows. */
typedef struct text_grid {
  table_format form;
  table *scratch;    /* provides the memory */
  const char **text; /* [n_rows][n_columns] text of every cell */
  const char **rest; /* [n_rows] text after the last cell, if the row ends early */
  size_t *ends;      /* [n_rows] number of cells */
  size_t *width;     /* [n_columns] width in terminal columns */
  int *least;        /* [n_columns] minimum widths */
  size_t n_columns, n_rows;
} text_grid;

static const char *emphasised(table *scratch, const char *text, table_format form) {
  const char *open = form == TABLE_AS_LATEX ? "\\textbf{" : form == TABLE_AS_MARKDOWN ? "**" : "";
  const char *close = form == TABLE_AS_LATEX ? "}" : open;
  const size_t size = strlen(text) + strlen(open) + strlen(close) + 1;
  char *out = table_memory(scratch, size, 1);
  if (out == NULL) return "";
  snprintf(out, size, "%s%s%s", open, text, close);
  return out;
}

static void text_grid_add_row(text_grid *l, const table *t, size_t row, const size_t *order) {
  const size_t at = l->n_rows++;
  size_t k = 0;
  for (size_t place = 0; place < t->n_columns; ++place) {
    const size_t i = order[place];
    char text[SHOWN_CELL_SIZE];
    if (t->column[i].head == NULL) continue;
    const cell *c = table_cell_at(t, row, i);
    const char *words = escaped(l->scratch, shown_cell(&t->column[i], c, text), l->form, false);
    if (c != NULL && c->is_bold) words = emphasised(l->scratch, words, l->form);
    l->text[at * l->n_columns + k++] = words;
    if (c == NULL || c->rest == NULL || l->rest[at] != NULL) continue;
    l->rest[at] = escaped(l->scratch, c->rest, l->form, false);
    l->ends[at] = k;
  }
  if (l->rest[at] == NULL) l->ends[at] = k;
}

static gl_status text_grid_init(text_grid *l, const table *t, table_format form, gl_error *err) {
  *l = (text_grid){.form = form, .scratch = table_new(NULL, 0)};
  if (l->scratch == NULL) return gl_fail_memory(err, "a table");
  for (size_t i = 0; i < t->n_columns; ++i) l->n_columns += t->column[i].head != NULL;
  l->text = table_memory(l->scratch, (t->n_rows + 1) * l->n_columns, sizeof *l->text);
  l->rest = table_memory(l->scratch, t->n_rows + 1, sizeof *l->rest);
  l->ends = table_memory(l->scratch, t->n_rows + 1, sizeof *l->ends);
  l->width = table_memory(l->scratch, l->n_columns, sizeof *l->width);
  l->least = table_memory(l->scratch, l->n_columns, sizeof *l->least);
  const size_t *order = order_for_people(t, l->scratch);
  if (table_has_failed(l->scratch)) return gl_fail_memory(err, "a table");
  for (size_t place = 0, k = 0; place < t->n_columns; ++place) {
    const size_t i = order[place];
    if (t->column[i].head == NULL) continue;
    l->least[k] = t->column[i].width;
    l->text[k++] = escaped(l->scratch, t->column[i].head, form, false);
  }
  l->ends[l->n_rows++] = l->n_columns;
  for (size_t row = 0; row < t->n_rows; ++row)
    if (!t->is_hidden[row]) text_grid_add_row(l, t, row, order);
  if (table_has_failed(l->scratch)) return gl_fail_memory(err, "a table");
  for (size_t i = 0; i < l->n_rows * l->n_columns; ++i) {
    const size_t columns = l->text[i] != NULL ? shown_width(l->text[i]) : 0;
    if (columns > l->width[i % l->n_columns]) l->width[i % l->n_columns] = columns;
  }
  return GL_OK;
}

/* Columns of a table; the first column of the table is written in front of them. */
typedef struct block {
  size_t from, end;
} block;

/* Selects the columns from `from` on that fit a terminal next to the first column; at least one. */
static block block_from(const text_grid *l, size_t from) {
  size_t end = from, width = l->width[0];
  while (end < l->n_columns &&
         (end == from || l->form != TABLE_AS_TEXT || width + 2 + l->width[end] <= SHOWN_COLUMNS))
    width += 2 + l->width[end++];
  return (block){from, end};
}

static void write_text_row(const text_grid *l, size_t row, block b, FILE *to) {
  static const char *const open[] = {"", "| ", ""}, *const between[] = {"  ", " | ", " & "},
                           *const close[] = {"\n", " |\n", " \\\\\n"};
  fputs(open[l->form], to);
  for (size_t i = 0; i < b.end; i = i == 0 ? b.from : i + 1) {
    const char *text = l->text[row * l->n_columns + i];
    if (i > 0) fputs(between[l->form], to);
    if (l->form == TABLE_AS_LATEX)
      fputs(text, to);
    else
      write_aligned(text, l->width[i], i == 0, to);
  }
  fputs(close[l->form], to);
}

/* Writes a row of a plain table. A last cell without a width is wrapped, and its further lines
 * start at its column, unless a text follows it (table_rest()). */
static void write_plain_row(const text_grid *l, int indent, size_t row, FILE *to) {
  size_t at = (size_t)indent, begins = at; /* where the cell is, and its column */
  write_spaces(at, to);
  for (size_t i = 0; i < l->ends[row]; ++i) {
    const char *text = l->text[row * l->n_columns + i];
    const int width = l->least[i];
    const size_t columns = shown_width(text), least = (size_t)abs(width);
    if (i > 0) fputc(' ', to), ++at, ++begins;
    if (width == 0 && i + 1 == l->ends[row] && l->rest[row] == NULL)
      shown_wrap(text, at, begins, to);
    else
      write_aligned(text, least, width < 0, to);
    at += columns > least ? columns : least;
    begins += least;
  }
  if (l->rest[row] != NULL) fprintf(to, " %s", l->rest[row]);
  fputc('\n', to);
}

static void write_rule(const text_grid *l, block b, FILE *to) {
  if (l->form == TABLE_AS_LATEX) {
    fputs("\\midrule\n", to);
    return;
  }
  for (size_t i = 0; i < l->n_columns && l->form == TABLE_AS_MARKDOWN; ++i)
    fputs(i > 0 ? "---:|" : "|:---|", to);
  for (size_t i = 0; i < b.end && l->form == TABLE_AS_TEXT; i = i == 0 ? b.from : i + 1)
    for (size_t k = 0; k < l->width[i] + (i > 0 ? 2 : 0); ++k) fputs("─", to);
  fputc('\n', to);
}

/* Text wider than a terminal becomes several lines with the indent of the first. */
static void write_wrapped(const char *words, table_format form, FILE *to) {
  const size_t indent = strspn(words, " ");
  if (form != TABLE_AS_TEXT || shown_width(words) <= SHOWN_COLUMNS) {
    fputs(words, to);
    return;
  }
  write_spaces(indent, to);
  shown_wrap(words + indent, indent, indent, to);
}

static void write_opening(const text_grid *l, const char *title, FILE *to) {
  if (title != NULL && l->form != TABLE_AS_LATEX) {
    write_wrapped(title, l->form, to);
    fputs("\n\n", to);
  }
  if (l->form != TABLE_AS_LATEX) return;
  if (title != NULL)
    fprintf(to, "\\begin{table}\n\\centering\\footnotesize\n\\caption{%s}\n", title);
  fputs("\\begin{tabular}{l", to);
  for (size_t i = 1; i < l->n_columns; ++i) fputc('r', to);
  fputs("}\n\\toprule\n", to);
}

static bool has_heads(const text_grid *l) {
  for (size_t i = 0; i < l->n_columns; ++i)
    if (*l->text[i] != '\0') return true;
  return false;
}

static void write_text_rows(const text_grid *l, const table *t, const char *title, FILE *to) {
  if (t->is_plain && l->form == TABLE_AS_TEXT) {
    if (title != NULL) write_wrapped(title, l->form, to), fputc('\n', to);
    for (size_t row = !has_heads(l); row < l->n_rows; ++row) write_plain_row(l, t->indent, row, to);
    return;
  }
  write_opening(l, title, to);
  for (block b = block_from(l, 1); b.from == 1 || b.from < l->n_columns; b = block_from(l, b.end)) {
    if (b.from > 1) fputc('\n', to);
    for (size_t row = 0; row < l->n_rows; ++row) {
      write_text_row(l, row, b, to);
      if (row == 0) write_rule(l, b, to);
    }
    if (b.end >= l->n_columns) break;
  }
  if (l->form == TABLE_AS_LATEX) fputs("\\bottomrule\n\\end{tabular}\n", to);
  if (l->form == TABLE_AS_LATEX && title != NULL) fputs("\\end{table}\n", to);
}

static gl_status write_text_grid(const table *t, table_format form, FILE *to, gl_error *err) {
  text_grid l;
  gl_status status = text_grid_init(&l, t, form, err);
  if (status == GL_OK && l.n_columns > 0) {
    const char *title = t->title != NULL ? escaped(l.scratch, t->title, form, true) : NULL;
    if (table_has_failed(l.scratch))
      status = gl_fail_memory(err, "a table");
    else
      write_text_rows(&l, t, title, to);
  }
  table_free(l.scratch);
  return status;
}

static gl_status write_text_line(const char *text, table_format form, FILE *to, gl_error *err) {
  table *scratch = table_new(NULL, 0);
  if (scratch == NULL) return gl_fail_memory(err, "a table");
  const char *words = escaped(scratch, text, form, true);
  write_wrapped(words, form, to);
  fputc('\n', to);
  const bool failed = table_has_failed(scratch);
  table_free(scratch);
  return failed ? gl_fail_memory(err, "a table") : GL_OK;
}

/* --- HTML --- */

static void write_html_cell(const table_column *column, const cell *c, bool is_first, FILE *to) {
  char text[SHOWN_CELL_SIZE], value[SHOWN_NUMBER_SIZE], ends[SHOWN_CELL_SIZE] = "";
  const bool is_number = column->type != TABLE_TEXT && column->type != TABLE_FLAG;
  const char *words = shown_cell(column, c, text);
  if (column->type == TABLE_INTERVAL && c != NULL && !c->is_missing && c->shown == NULL) {
    show_interval(column, c, value, ends);
    words = value;
  }
  const bool is_bold = c != NULL && c->is_bold;
  fputs(is_first ? "<th scope=\"row\">" : is_number ? "<td class=\"n\">" : "<td>", to);
  if (is_bold) fputs("<strong>", to);
  shown_write_html(words, to);
  if (is_bold) fputs("</strong>", to);
  if (*ends != '\0') fprintf(to, " <span class=\"ends\">%s</span>", ends);
  fputs(is_first ? "</th>" : "</td>", to);
}

static void write_html_row(const table *t, size_t row, FILE *to) {
  bool is_first = true;
  fputs("<tr>", to);
  for (size_t i = 0; i < t->n_columns; ++i) {
    if (t->column[i].head == NULL) continue;
    const cell *c = table_cell_at(t, row, i);
    write_html_cell(&t->column[i], c, is_first, to);
    is_first = false;
  }
  fputs("</tr>\n", to);
}

static void write_html(const table *t, FILE *to) {
  const char *title = t->title != NULL ? t->title : "";
  fputs("<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"", to);
  shown_write_html(title, to);
  fputs("\"><table>\n<caption>", to);
  shown_write_html(title, to);
  fputs("</caption>\n<thead><tr>", to);
  for (size_t i = 0; i < t->n_columns; ++i) {
    const table_column *c = &t->column[i];
    if (c->head == NULL) continue;
    fputs(c->type == TABLE_TEXT || c->type == TABLE_FLAG ? "<th scope=\"col\">"
                                                         : "<th scope=\"col\" class=\"n\">",
          to);
    shown_write_html(c->head, to);
    fputs("</th>", to);
  }
  fputs("</tr></thead>\n<tbody>\n", to);
  for (size_t row = 0; row < t->n_rows; ++row)
    if (!t->is_hidden[row]) write_html_row(t, row, to);
  fputs("</tbody>\n</table></div>\n", to);
}

/* --- documents and tables --- */

static bool has_head(const table *t) {
  for (size_t i = 0; i < t->n_columns; ++i)
    if (t->column[i].head != NULL) return true;
  return false;
}

static gl_status write_for_people(const table *t, table_format form, FILE *to, gl_error *err);

static gl_status table_write_item(const table *t, size_t i, table_format form, FILE *to,
                                  gl_error *err) {
  const cell *c = &t->cell[i];
  if (c->is_missing) return GL_OK;
  if (t->column[i].type == TABLE_TABLE) return write_for_people(c->within, form, to, err);
  if (!c->is_line) return GL_OK;
  if (form != TABLE_AS_HTML) return write_text_line(c->text, form, to, err);
  fputs("<p>", to);
  shown_write_html(c->text, to);
  fputs("</p>\n", to);
  return GL_OK;
}

static gl_status write_document(const table *t, table_format form, FILE *to, gl_error *err) {
  table *scratch = table_new(NULL, 0);
  const size_t *order = scratch != NULL ? order_for_people(t, scratch) : NULL;
  gl_status status = order != NULL ? GL_OK : gl_fail_memory(err, "a table");
  for (size_t i = 0; i < t->n_columns && status == GL_OK; ++i)
    status = table_write_item(t, order[i], form, to, err);
  table_free(scratch);
  return status;
}

static gl_status write_for_people(const table *t, table_format form, FILE *to, gl_error *err) {
  gl_status status = GL_OK;
  if (t->is_document)
    status = write_document(t, form, to, err);
  else if (!has_head(t))
    return GL_OK;
  else if (form == TABLE_AS_HTML)
    write_html(t, to);
  else
    status = write_text_grid(t, form, to, err);
  if (status == GL_OK && t->has_gap) fputc('\n', to);
  return status;
}

/* --- all formats --- */

gl_status table_write(const table *t, table_format form, FILE *to, gl_error *err) {
  gl_status status = GL_OK;
  if (table_has_failed(t)) return gl_fail_memory(err, "a table");
  switch (form) {
  case TABLE_AS_TEXT:
  case TABLE_AS_MARKDOWN:
  case TABLE_AS_LATEX:
  case TABLE_AS_HTML:
    status = write_for_people(t, form, to, err);
    break;
  case TABLE_AS_CSV:
    status = table_write_records(t, RECORDS_CSV, to, err);
    break;
  case TABLE_AS_TSV:
    status = table_write_records(t, RECORDS_TSV, to, err);
    break;
  case TABLE_AS_JSON:
    status = table_write_json(t, to, err);
    break;
  case TABLE_FORMATS:
    break;
  }
  if (status != GL_OK) return status;
  return ferror(to) ? gl_fail(err, GL_EIO, "writing a table failed; is the disk full?") : GL_OK;
}
