/* Typed tables, and writers of their formats for people and programs. */
#include "core/base/table.h"

#include "core/base/arena.h"
#include "core/base/json.h"
#include "core/base/shown.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const char *const table_form_names[TABLE_FORMS] = {
    [TABLE_AS_TEXT] = "text", [TABLE_AS_MARKDOWN] = "markdown", [TABLE_AS_LATEX] = "latex",
    [TABLE_AS_HTML] = "html", [TABLE_AS_CSV] = "csv",           [TABLE_AS_TSV] = "tsv",
    [TABLE_AS_JSON] = "json"};

typedef struct cell {
  bool is_missing, is_bold, is_line;
  size_t n;          /* count of numbers */
  const char *text;  /* TABLE_TEXT, or a line of a document */
  const cJSON *json; /* TABLE_JSON */
  int64_t whole;     /* TABLE_WHOLE, TABLE_FLAG */
  double number[3];  /* TABLE_REAL, TABLE_INTERVAL */
  const double *numbers;
  table *within;     /* TABLE_TABLE */
  const char *shown; /* text for people instead of the value; NULL: the value */
  const char *rest;  /* text after the cell, or NULL */
} cell;

/* A cJSON tree owned by a table. */
typedef struct owned_tree {
  struct owned_tree *next;
  cJSON *json;
} owned_tree;

struct table {
  table *outer; /* the outermost table, or itself; owns all memory and trees */
  arena memory;
  owned_tree *trees;
  table_column *column; /* [n_columns] */
  size_t n_columns, column_room;
  cell *cell; /* [n_cells], row by row */
  size_t n_cells, cell_room;
  bool *is_hidden; /* [n_rows] whether hidden from people */
  size_t n_rows, row_room;
  const char *title;
  bool is_document, is_list, is_plain, has_gap;
  int indent;
};

/* --- memory --- */

static bool has_failed(const table *t) {
  return t == NULL || t->outer->memory.failed;
}

/* Zeroed memory; NULL if out of memory, which the arena remembers. */
static void *table_memory(table *t, size_t n, size_t size) {
  return t != NULL ? arena_array(&t->outer->memory, n, size) : NULL;
}

/* Returns the array of n items, grown if needed so that one more fits. */
static void *table_more(table *t, void *array, size_t n, size_t *room, size_t size) {
  if (n < *room) return array;
  const size_t more = *room > 0 ? 2 * *room : 16;
  void *larger = table_memory(t, more, size);
  if (larger != NULL && n > 0) memcpy(larger, array, n * size);
  if (larger != NULL) *room = more;
  return larger;
}

static const char *table_formatted(table *t, const char *format, va_list args) {
  if (format == NULL) return NULL; /* printf of no format is undefined */
  va_list again;
  va_copy(again, args);
  const int length = vsnprintf(NULL, 0, format, again);
  va_end(again);
  char *text = length >= 0 ? table_memory(t, (size_t)length + 1, 1) : NULL;
  if (text != NULL) vsnprintf(text, (size_t)length + 1, format, args);
  return text;
}

/* --- construction --- */

static table *table_within(table *outer) {
  table *t = table_memory(outer, 1, sizeof *t);
  if (t != NULL) t->outer = outer->outer;
  return t;
}

static void table_put_column(table *t, const table_column *c) {
  table_column *grown = table_more(t, t->column, t->n_columns, &t->column_room, sizeof *t->column);
  if (grown == NULL) return;
  t->column = grown;
  t->column[t->n_columns] = *c;
  const char **text[] = {&t->column[t->n_columns].name, &t->column[t->n_columns].head};
  for (size_t i = 0; i < 2; ++i)
    if (*text[i] != NULL) *text[i] = arena_text(&t->outer->memory, *text[i]);
  ++t->n_columns;
}

static table *with_columns(table *t, const table_column *columns, size_t n) {
  for (size_t i = 0; t != NULL && i < n; ++i) table_put_column(t, &columns[i]);
  return t;
}

static table *as_document(table *t) {
  if (t == NULL) return NULL;
  t->is_document = true;
  t->n_rows = 1;
  return t;
}

table *table_new(const table_column *columns, size_t n) {
  table *t = calloc(1, sizeof *t);
  if (t == NULL) return NULL;
  t->outer = t;
  return with_columns(t, columns, n);
}

table *table_document(void) {
  return as_document(table_new(NULL, 0));
}

void table_free(table *t) {
  if (t == NULL) return;
  for (const owned_tree *tree = t->trees; tree != NULL; tree = tree->next) cJSON_Delete(tree->json);
  arena_fini(&t->memory);
  free(t);
}

void table_title(table *t, const char *format, ...) {
  va_list args;
  if (t == NULL) return;
  va_start(args, format);
  t->title = table_formatted(t, format, args);
  va_end(args);
}

void table_plain(table *t, int indent) {
  if (t == NULL) return;
  t->is_plain = true;
  t->indent = indent;
}

void table_gap(table *t) {
  if (t != NULL) t->has_gap = true;
}

void table_add_column(table *t, table_column column, const char *head, ...) {
  va_list args;
  if (t == NULL) return;
  va_start(args, head);
  column.head = table_formatted(t, head, args);
  va_end(args);
  table_put_column(t, &column);
}

void table_hide_head(table *t, size_t column) {
  if (t != NULL && column < t->n_columns) t->column[column].head = NULL;
}

/* --- filling --- */

/* The next cell; NULL if out of memory. In a document its column was added just before. */
static cell *next_cell(table *t) {
  if (has_failed(t)) return NULL;
  assert(t->n_cells < t->n_rows * t->n_columns);
  cell *grown = table_more(t, t->cell, t->n_cells, &t->cell_room, sizeof *t->cell);
  if (grown == NULL) return NULL;
  t->cell = grown;
  t->cell[t->n_cells] = (cell){.is_missing = false};
  return &t->cell[t->n_cells++];
}

/* The next cell, checked to have this type. */
static cell *table_cell_of(table *t, table_type type) {
  cell *c = next_cell(t);
  if (c == NULL) return NULL;
  table_column *column = &t->column[(t->n_cells - 1) % t->n_columns];
  if (t->is_document) column->type = type;
  assert(column->type == type);
  return c;
}

static cell *last_cell(table *t) {
  return !has_failed(t) && t->n_cells > 0 ? &t->cell[t->n_cells - 1] : NULL;
}

void table_row(table *t) {
  if (has_failed(t)) return;
  while (!has_failed(t) && t->n_cells < t->n_rows * t->n_columns) table_missing(t);
  bool *grown = table_more(t, t->is_hidden, t->n_rows, &t->row_room, sizeof *t->is_hidden);
  if (grown == NULL) return;
  t->is_hidden = grown;
  t->is_hidden[t->n_rows++] = false;
}

void table_hide_row(table *t) {
  if (!has_failed(t)) t->is_hidden[t->n_rows - 1] = true;
}

table *table_field(table *t, const char *name) {
  if (!has_failed(t)) table_put_column(t, &(table_column){.name = name});
  return t;
}

void table_text(table *t, const char *text) {
  if (text == NULL) {
    table_missing(t);
    return;
  }
  cell *c = table_cell_of(t, TABLE_TEXT);
  if (c != NULL) c->text = arena_text(&t->outer->memory, text);
}

void table_textf(table *t, const char *format, ...) {
  cell *c = table_cell_of(t, TABLE_TEXT);
  va_list args;
  if (c == NULL) return;
  va_start(args, format);
  c->text = table_formatted(t, format, args);
  va_end(args);
}

void table_whole(table *t, int64_t value) {
  cell *c = table_cell_of(t, TABLE_WHOLE);
  if (c != NULL) c->whole = value;
}

void table_count(table *t, size_t n) {
  table_whole(t, (int64_t)n);
}

void table_real(table *t, double value) {
  cell *c = table_cell_of(t, TABLE_REAL);
  if (c != NULL) c->number[0] = value;
}

void table_flag(table *t, bool value) {
  cell *c = table_cell_of(t, TABLE_FLAG);
  if (c != NULL) c->whole = value;
}

void table_interval(table *t, double value, double low, double high) {
  cell *c = table_cell_of(t, TABLE_INTERVAL);
  if (c != NULL) c->number[0] = value, c->number[1] = low, c->number[2] = high;
}

void table_numbers(table *t, const double *value, size_t n) {
  cell *c = table_cell_of(t, TABLE_NUMBERS);
  if (c == NULL) return;
  c->numbers = arena_copy(&t->outer->memory, value, n, sizeof *value);
  c->n = c->numbers != NULL ? n : 0;
}

void table_json(table *t, cJSON *tree) {
  cell *c = table_cell_of(t, TABLE_JSON);
  owned_tree *own = c != NULL && tree != NULL ? table_memory(t, 1, sizeof *own) : NULL;
  if (own != NULL) {
    *own = (owned_tree){t->outer->trees, tree};
    t->outer->trees = own;
    c->json = tree;
    return;
  }
  if (t != NULL) t->outer->memory.failed = true;
  cJSON_Delete(tree);
}

void table_missing(table *t) {
  cell *c = next_cell(t);
  if (c != NULL) c->is_missing = true;
}

table *table_rows(table *t, const table_column *columns, size_t n) {
  cell *c = table_cell_of(t, TABLE_TABLE);
  if (c == NULL) return NULL;
  table *within = with_columns(table_within(t), columns, n);
  c->within = within;
  return within;
}

table *table_object(table *t) {
  return as_document(table_rows(t, NULL, 0));
}

table *table_list(table *t) {
  table *list = table_object(t);
  if (list != NULL) list->is_list = true;
  return list;
}

void table_place(table *t, int place) {
  if (t != NULL && t->n_columns > 0) t->column[t->n_columns - 1].place = place;
}

void table_shown(table *t, const char *format, ...) {
  cell *c = last_cell(t);
  va_list args;
  if (c == NULL) return;
  va_start(args, format);
  c->shown = table_formatted(t, format, args);
  va_end(args);
}

void table_bold(table *t) {
  cell *c = last_cell(t);
  if (c != NULL) c->is_bold = true;
}

void table_rest(table *t, const char *format, ...) {
  cell *c = last_cell(t);
  va_list args;
  if (c == NULL) return;
  va_start(args, format);
  c->rest = table_formatted(t, format, args);
  va_end(args);
}

table *table_line(table *t, const char *format, ...) {
  cell *c = table_cell_of(table_field(t, NULL), TABLE_TEXT);
  va_list args;
  if (c == NULL) return t;
  c->is_line = true;
  va_start(args, format);
  c->text = table_formatted(t, format, args);
  va_end(args);
  return t;
}

/* --- JSON --- */

/* Makes a JSON item for the cell; NULL if out of memory. */
static cJSON *json_of_cell(const table_column *column, const cell *c) {
  cJSON *item = NULL;
  char text[NUMBER_TEXT_SIZE];
  switch (column->type) {
  case TABLE_TEXT:
    return cJSON_CreateString(c->text);
  case TABLE_WHOLE:
    snprintf(text, sizeof text, "%lld", (long long)c->whole);
    return cJSON_CreateRaw(text);
  case TABLE_REAL:
    return isfinite(c->number[0]) ? cJSON_CreateRaw(number_text(c->number[0], text))
                                  : cJSON_CreateNull();
  case TABLE_FLAG:
    return cJSON_CreateBool(c->whole != 0);
  case TABLE_INTERVAL:
    item = cJSON_CreateObject();
    if (item != NULL &&
        json_add_number(item, column->value != NULL ? column->value : "value", c->number[0]) &&
        json_add_number(item, "low", c->number[1]) && json_add_number(item, "high", c->number[2]))
      return item;
    cJSON_Delete(item);
    return NULL;
  case TABLE_NUMBERS:
    item = cJSON_CreateArray();
    for (size_t i = 0; item != NULL && i < c->n; ++i)
      if (json_add_number(item, NULL, c->numbers[i]) == NULL) {
        cJSON_Delete(item);
        item = NULL;
      }
    return item;
  case TABLE_JSON:
    return cJSON_Duplicate(c->json, true);
  case TABLE_TABLE:
    return table_to_json(c->within);
  }
  return NULL;
}

/* Returns the object a for a name a/b, creating it if needed, and sets *name to b. */
static cJSON *object_for(cJSON *row, const char **name) {
  const char *slash = strchr(*name, '/');
  if (slash == NULL) return row;
  char key[64];
  snprintf(key, sizeof key, "%.*s", (int)(slash - *name), *name);
  *name = slash + 1;
  cJSON *object = cJSON_GetObjectItemCaseSensitive(row, key);
  return object != NULL ? object : cJSON_AddObjectToObject(row, key);
}

static bool table_json_add(cJSON *row, const table_column *column, const cell *c) {
  if (column->name == NULL || c->is_missing) return true;
  const char *name = column->name;
  cJSON *to = cJSON_IsArray(row) ? row : object_for(row, &name);
  cJSON *item = to != NULL ? json_of_cell(column, c) : NULL;
  if (item != NULL &&
      (cJSON_IsArray(to) ? cJSON_AddItemToArray(to, item) : cJSON_AddItemToObject(to, name, item)))
    return true;
  cJSON_Delete(item);
  return false;
}

static cJSON *json_of_row(const table *t, size_t row) {
  cJSON *object = t->is_list ? cJSON_CreateArray() : cJSON_CreateObject();
  const size_t first = row * t->n_columns;
  for (size_t i = 0; object != NULL && i < t->n_columns && first + i < t->n_cells; ++i)
    if (!table_json_add(object, &t->column[i], &t->cell[first + i])) {
      cJSON_Delete(object);
      object = NULL;
    }
  return object;
}

cJSON *table_to_json(const table *t) {
  if (has_failed(t)) return NULL;
  if (t->is_document) return json_of_row(t, 0);
  cJSON *array = cJSON_CreateArray();
  for (size_t i = 0; array != NULL && i < t->n_rows; ++i) {
    cJSON *row = json_of_row(t, i);
    if (row == NULL || !cJSON_AddItemToArray(array, row)) {
      cJSON_Delete(row);
      cJSON_Delete(array);
      array = NULL;
    }
  }
  return array;
}

static gl_status write_json(const table *t, FILE *to, gl_error *err) {
  cJSON *tree = table_to_json(t);
  char *text = tree != NULL ? cJSON_Print(tree) : NULL;
  cJSON_Delete(tree);
  if (text == NULL) return gl_fail_memory(err, "the JSON answer");
  json_write(text, to);
  fputc('\n', to);
  cJSON_free(text);
  return GL_OK;
}

/* --- CSV and TSV --- */

/* Calls records_writer for one cell; an interval takes three columns. */
static void write_record_cell(records_writer *w, const table_column *column, const cell *c) {
  const size_t n = column->type == TABLE_INTERVAL ? 3 : 1;
  for (size_t i = 0; i < n; ++i)
    if (c == NULL || c->is_missing)
      records_missing(w);
    else if (column->type == TABLE_TEXT)
      records_text(w, c->text);
    else if (column->type == TABLE_WHOLE)
      records_whole(w, c->whole);
    else if (column->type == TABLE_FLAG)
      records_flag(w, c->whole != 0);
    else
      records_number(w, c->number[i]);
}

static bool is_record_column(const table_column *c) {
  return c->name != NULL && c->type <= TABLE_INTERVAL;
}

/* Columns for records; the bounds of an interval get columns of their own. Sets *n. */
static gl_status record_columns(const table *t, table *scratch, size_t *n, gl_error *err) {
  static const char *const end[] = {"", "_low", "_high"};
  for (size_t i = 0; i < t->n_columns; ++i) {
    table_column c = t->column[i];
    if (!is_record_column(&c)) continue;
    const bool is_interval = c.type == TABLE_INTERVAL;
    for (size_t k = 0; k < (is_interval ? 3 : 1); ++k) {
      char name[160];
      snprintf(name, sizeof name, "%s%s", t->column[i].name, end[k]);
      for (char *slash; (slash = strchr(name, '/')) != NULL;) *slash = '.';
      c.name = name;
      if (is_interval) c.type = TABLE_REAL;
      table_put_column(scratch, &c);
    }
  }
  *n = scratch->n_columns;
  return has_failed(scratch) ? gl_fail_memory(err, "a table") : GL_OK;
}

static gl_status write_rows_of_records(const table *t, records_format format, FILE *to,
                                       gl_error *err) {
  size_t n = 0;
  records_writer w;
  table *scratch = table_new(NULL, 0);
  if (scratch == NULL) return gl_fail_memory(err, "a table");
  gl_status status = record_columns(t, scratch, &n, err);
  if (status == GL_OK && n > 0) {
    records_begin(&w, to, format, scratch->column, n);
    for (size_t row = 0; row < t->n_rows && status == GL_OK; ++row) {
      for (size_t i = 0; i < t->n_columns; ++i) {
        const size_t at = row * t->n_columns + i;
        if (is_record_column(&t->column[i]))
          write_record_cell(&w, &t->column[i], at < t->n_cells ? &t->cell[at] : NULL);
      }
      status = records_end(&w, err);
    }
  }
  table_free(scratch);
  return status;
}

static bool has_records(const table *t) {
  bool found = false;
  for (size_t i = 0; i < t->n_columns && !found; ++i)
    found = !t->is_document ? is_record_column(&t->column[i])
                            : t->column[i].name != NULL && t->column[i].type == TABLE_TABLE &&
                                  has_records(t->cell[i].within);
  return found;
}

/* A document is written as its tables, separated by empty lines. */
static gl_status write_records(const table *t, records_format format, FILE *to, gl_error *err) {
  if (!t->is_document) return write_rows_of_records(t, format, to, err);
  gl_status status = GL_OK;
  bool is_first = true;
  for (size_t i = 0; i < t->n_cells && status == GL_OK; ++i) {
    if (t->column[i].type != TABLE_TABLE || t->column[i].name == NULL ||
        !has_records(t->cell[i].within))
      continue;
    if (!is_first) fputc('\n', to);
    is_first = false;
    status = write_records(t->cell[i].within, format, to, err);
  }
  return status;
}

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

static void write_character(char c, table_form form, FILE *to) {
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
static const char *guard_of(char first, table_form form, bool begins_line) {
  if (form == TABLE_AS_LATEX && (first == '[' || first == '*')) return "{}";
  if (form == TABLE_AS_MARKDOWN && begins_line && first && strchr("#+-=[", first)) return "\\";
  return "";
}

/* Escapes text for the format, in the scratch table's memory; "" if out of memory. */
static const char *escaped(table *scratch, const char *text, table_form form, bool begins_line) {
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
  const char *copy = ok ? arena_text(&scratch->outer->memory, out) : NULL;
  if (copy == NULL) scratch->outer->memory.failed = true;
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

static void show_number(char text[SHOWN_NUMBER_SIZE], const char *format, double value) {
  if (isnan(value))
    snprintf(text, SHOWN_NUMBER_SIZE, "–");
  else
    snprintf(text, SHOWN_NUMBER_SIZE, format, value);
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
  case TABLE_WHOLE:
    snprintf(text, SHOWN_CELL_SIZE, "%lld", (long long)c->whole);
    return text;
  case TABLE_FLAG:
    return c->whole ? "yes" : "no";
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

/* The order of columns in formats for people: by `place`, then by position. */
static size_t *order_for_people(const table *t, table *scratch) {
  size_t *order = table_memory(scratch, t->n_columns + 1, sizeof *order);
  for (size_t i = 0; order != NULL && i < t->n_columns; ++i) {
    size_t at = i;
    for (; at > 0 && t->column[order[at - 1]].place > t->column[i].place; --at)
      order[at] = order[at - 1];
    order[at] = i;
  }
  return order;
}

/* The cells of a table as text in one format: the heads first, then the visible rows. */
typedef struct lettering {
  table_form form;
  table *scratch;    /* provides the memory */
  const char **text; /* [n_rows][n_columns] */
  const char **rest; /* [n_rows] text after the last cell, if the row ends early */
  size_t *ends;      /* [n_rows] number of cells */
  size_t *width;     /* [n_columns] width in terminal columns */
  int *least;        /* [n_columns] minimum widths */
  size_t n_columns, n_rows;
} lettering;

static const char *emphasised(table *scratch, const char *text, table_form form) {
  const char *open = form == TABLE_AS_LATEX ? "\\textbf{" : form == TABLE_AS_MARKDOWN ? "**" : "";
  const char *close = form == TABLE_AS_LATEX ? "}" : open;
  const size_t size = strlen(text) + strlen(open) + strlen(close) + 1;
  char *out = table_memory(scratch, size, 1);
  if (out == NULL) return "";
  snprintf(out, size, "%s%s%s", open, text, close);
  return out;
}

static void letter_row(lettering *l, const table *t, size_t row, const size_t *order) {
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

static gl_status lettering_init(lettering *l, const table *t, table_form form, gl_error *err) {
  *l = (lettering){.form = form, .scratch = table_new(NULL, 0)};
  if (l->scratch == NULL) return gl_fail_memory(err, "a table");
  for (size_t i = 0; i < t->n_columns; ++i) l->n_columns += t->column[i].head != NULL;
  l->text = table_memory(l->scratch, (t->n_rows + 1) * l->n_columns, sizeof *l->text);
  l->rest = table_memory(l->scratch, t->n_rows + 1, sizeof *l->rest);
  l->ends = table_memory(l->scratch, t->n_rows + 1, sizeof *l->ends);
  l->width = table_memory(l->scratch, l->n_columns, sizeof *l->width);
  l->least = table_memory(l->scratch, l->n_columns, sizeof *l->least);
  const size_t *order = order_for_people(t, l->scratch);
  if (has_failed(l->scratch)) return gl_fail_memory(err, "a table");
  for (size_t place = 0, k = 0; place < t->n_columns; ++place) {
    const size_t i = order[place];
    if (t->column[i].head == NULL) continue;
    l->least[k] = t->column[i].width;
    l->text[k++] = escaped(l->scratch, t->column[i].head, form, false);
  }
  l->ends[l->n_rows++] = l->n_columns;
  for (size_t row = 0; row < t->n_rows; ++row)
    if (!t->is_hidden[row]) letter_row(l, t, row, order);
  if (has_failed(l->scratch)) return gl_fail_memory(err, "a table");
  for (size_t i = 0; i < l->n_rows * l->n_columns; ++i) {
    const size_t columns = l->text[i] != NULL ? shown_width(l->text[i]) : 0;
    if (columns > l->width[i % l->n_columns]) l->width[i % l->n_columns] = columns;
  }
  return GL_OK;
}

static void write_text_row(const lettering *l, size_t row, FILE *to) {
  static const char *const open[] = {"", "| ", ""}, *const between[] = {"  ", " | ", " & "},
                           *const close[] = {"\n", " |\n", " \\\\\n"};
  fputs(open[l->form], to);
  for (size_t i = 0; i < l->n_columns; ++i) {
    const char *text = l->text[row * l->n_columns + i];
    if (i > 0) fputs(between[l->form], to);
    if (l->form == TABLE_AS_LATEX)
      fputs(text, to);
    else
      write_aligned(text, l->width[i], i == 0, to);
  }
  fputs(close[l->form], to);
}

/* A last cell without a width is wrapped below its column. */
static void write_plain_row(const lettering *l, int indent, size_t row, FILE *to) {
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

static void write_rule(const lettering *l, FILE *to) {
  if (l->form == TABLE_AS_LATEX) {
    fputs("\\midrule\n", to);
    return;
  }
  for (size_t i = 0; i < l->n_columns && l->form == TABLE_AS_MARKDOWN; ++i)
    fputs(i > 0 ? "---:|" : "|:---|", to);
  for (size_t i = 0; i < l->n_columns && l->form == TABLE_AS_TEXT; ++i)
    for (size_t k = 0; k < l->width[i] + (i + 1 < l->n_columns ? 2 : 0); ++k) fputs("─", to);
  fputc('\n', to);
}

static void write_opening(const lettering *l, const char *title, FILE *to) {
  if (title != NULL && l->form != TABLE_AS_LATEX) fprintf(to, "%s\n\n", title);
  if (l->form != TABLE_AS_LATEX) return;
  if (title != NULL)
    fprintf(to, "\\begin{table}\n\\centering\\footnotesize\n\\caption{%s}\n", title);
  fputs("\\begin{tabular}{l", to);
  for (size_t i = 1; i < l->n_columns; ++i) fputc('r', to);
  fputs("}\n\\toprule\n", to);
}

static bool has_heads(const lettering *l) {
  for (size_t i = 0; i < l->n_columns; ++i)
    if (*l->text[i] != '\0') return true;
  return false;
}

static void write_lettered(const lettering *l, const table *t, const char *title, FILE *to) {
  if (t->is_plain && l->form == TABLE_AS_TEXT) {
    if (title != NULL) fprintf(to, "%s\n", title);
    for (size_t row = !has_heads(l); row < l->n_rows; ++row) write_plain_row(l, t->indent, row, to);
    return;
  }
  write_opening(l, title, to);
  for (size_t row = 0; row < l->n_rows; ++row) {
    write_text_row(l, row, to);
    if (row == 0) write_rule(l, to);
  }
  if (l->form == TABLE_AS_LATEX) fputs("\\bottomrule\n\\end{tabular}\n", to);
  if (l->form == TABLE_AS_LATEX && title != NULL) fputs("\\end{table}\n", to);
}

static gl_status write_letters(const table *t, table_form form, FILE *to, gl_error *err) {
  lettering l;
  gl_status status = lettering_init(&l, t, form, err);
  if (status == GL_OK && l.n_columns > 0) {
    const char *title = t->title != NULL ? escaped(l.scratch, t->title, form, true) : NULL;
    if (has_failed(l.scratch))
      status = gl_fail_memory(err, "a table");
    else
      write_lettered(&l, t, title, to);
  }
  table_free(l.scratch);
  return status;
}

static gl_status write_text_line(const char *text, table_form form, FILE *to, gl_error *err) {
  table *scratch = table_new(NULL, 0);
  if (scratch == NULL) return gl_fail_memory(err, "a table");
  fprintf(to, "%s\n", escaped(scratch, text, form, true));
  const bool failed = has_failed(scratch);
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

/* --- all formats --- */

static bool has_head(const table *t) {
  for (size_t i = 0; i < t->n_columns; ++i)
    if (t->column[i].head != NULL) return true;
  return false;
}

static gl_status write_for_people(const table *t, table_form form, FILE *to, gl_error *err);

static gl_status table_write_item(const table *t, size_t i, table_form form, FILE *to,
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

static gl_status write_document(const table *t, table_form form, FILE *to, gl_error *err) {
  table *scratch = table_new(NULL, 0);
  const size_t *order = scratch != NULL ? order_for_people(t, scratch) : NULL;
  gl_status status = order != NULL ? GL_OK : gl_fail_memory(err, "a table");
  for (size_t i = 0; i < t->n_columns && status == GL_OK; ++i)
    status = table_write_item(t, order[i], form, to, err);
  table_free(scratch);
  return status;
}

static gl_status write_for_people(const table *t, table_form form, FILE *to, gl_error *err) {
  gl_status status = GL_OK;
  if (t->is_document)
    status = write_document(t, form, to, err);
  else if (!has_head(t))
    return GL_OK;
  else if (form == TABLE_AS_HTML)
    write_html(t, to);
  else
    status = write_letters(t, form, to, err);
  if (status == GL_OK && t->has_gap) fputc('\n', to);
  return status;
}

gl_status table_write(const table *t, table_form form, FILE *to, gl_error *err) {
  gl_status status = GL_OK;
  if (has_failed(t)) return gl_fail_memory(err, "a table");
  switch (form) {
  case TABLE_AS_TEXT:
  case TABLE_AS_MARKDOWN:
  case TABLE_AS_LATEX:
  case TABLE_AS_HTML:
    status = write_for_people(t, form, to, err);
    break;
  case TABLE_AS_CSV:
    status = write_records(t, RECORDS_CSV, to, err);
    break;
  case TABLE_AS_TSV:
    status = write_records(t, RECORDS_TSV, to, err);
    break;
  case TABLE_AS_JSON:
    status = write_json(t, to, err);
    break;
  case TABLE_FORMS:
    break;
  }
  if (status != GL_OK) return status;
  return ferror(to) ? gl_fail(err, GL_EIO, "writing a table failed; is the disk full?") : GL_OK;
}
