/* Typed tables, and writers of their machine-readable formats. */
#include "core/base/table_internal.h"

#include "core/base/json.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const char *const table_format_names[TABLE_FORMATS] = {
    [TABLE_AS_TEXT] = "text", [TABLE_AS_MARKDOWN] = "markdown", [TABLE_AS_LATEX] = "latex",
    [TABLE_AS_HTML] = "html", [TABLE_AS_CSV] = "csv",           [TABLE_AS_TSV] = "tsv",
    [TABLE_AS_JSON] = "json"};

/* --- memory --- */

bool table_has_failed(const table *t) {
  return t == NULL || t->outermost->memory.failed;
}

/* Zeroed memory; NULL if out of memory, which the arena remembers. */
void *table_memory(table *t, size_t n, size_t size) {
  return t != NULL ? arena_array(&t->outermost->memory, n, size) : NULL;
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
  if (t != NULL) t->outermost = outer->outermost;
  return t;
}

static void table_put_column(table *t, const table_column *c) {
  table_column *grown = table_more(t, t->column, t->n_columns, &t->column_room, sizeof *t->column);
  if (grown == NULL) return;
  t->column = grown;
  t->column[t->n_columns] = *c;
  const char **text[] = {&t->column[t->n_columns].name, &t->column[t->n_columns].head};
  for (size_t i = 0; i < 2; ++i)
    if (*text[i] != NULL) *text[i] = arena_text(&t->outermost->memory, *text[i]);
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
  t->outermost = t;
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

/* The next cell; NULL if out of memory. In a document (one row of named fields) every cell has a
 * column of its own, which the caller adds first. */
static cell *next_cell(table *t) {
  if (table_has_failed(t)) return NULL;
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
  return !table_has_failed(t) && t->n_cells > 0 ? &t->cell[t->n_cells - 1] : NULL;
}

void table_row(table *t) {
  if (table_has_failed(t)) return;
  while (!table_has_failed(t) && t->n_cells < t->n_rows * t->n_columns) table_missing(t);
  bool *grown = table_more(t, t->is_hidden, t->n_rows, &t->row_room, sizeof *t->is_hidden);
  if (grown == NULL) return;
  t->is_hidden = grown;
  t->is_hidden[t->n_rows++] = false;
}

void table_hide_row(table *t) {
  if (!table_has_failed(t)) t->is_hidden[t->n_rows - 1] = true;
}

table *table_field(table *t, const char *name) {
  if (!table_has_failed(t)) table_put_column(t, &(table_column){.name = name});
  return t;
}

void table_text(table *t, const char *text) {
  if (text == NULL) {
    table_missing(t);
    return;
  }
  cell *c = table_cell_of(t, TABLE_TEXT);
  if (c != NULL) c->text = arena_text(&t->outermost->memory, text);
}

void table_textf(table *t, const char *format, ...) {
  cell *c = table_cell_of(t, TABLE_TEXT);
  va_list args;
  if (c == NULL) return;
  va_start(args, format);
  c->text = table_formatted(t, format, args);
  va_end(args);
}

void table_integer(table *t, int64_t value) {
  cell *c = table_cell_of(t, TABLE_INTEGER);
  if (c != NULL) c->integer = value;
}

void table_count(table *t, size_t n) {
  table_integer(t, (int64_t)n);
}

void table_real(table *t, double value) {
  cell *c = table_cell_of(t, TABLE_REAL);
  if (c != NULL) c->number[0] = value;
}

void table_flag(table *t, bool value) {
  cell *c = table_cell_of(t, TABLE_FLAG);
  if (c != NULL) c->integer = value;
}

void table_interval(table *t, double value, double low, double high) {
  cell *c = table_cell_of(t, TABLE_INTERVAL);
  if (c != NULL) c->number[0] = value, c->number[1] = low, c->number[2] = high;
}

void table_numbers(table *t, const double *value, size_t n) {
  cell *c = table_cell_of(t, TABLE_NUMBERS);
  if (c == NULL) return;
  c->numbers = arena_copy(&t->outermost->memory, value, n, sizeof *value);
  c->n = c->numbers != NULL ? n : 0;
}

void table_put(table *t, const char *format, ...) {
  char name[JSON_KEY_SIZE];
  va_list args;
  va_start(args, format);
  for (char kind; (kind = json_next_member(&format, name)) != '\0';) {
    const char *text = kind == 's' ? va_arg(args, const char *) : NULL;
    table_field(t, name);
    if (text != NULL)
      table_text(t, text);
    else if (kind == 's')
      table_real(t, (double)NAN);
    else if (kind == 'z')
      table_count(t, va_arg(args, size_t));
    else if (kind == 'l')
      table_integer(t, (int64_t)va_arg(args, unsigned long long));
    else if (kind == 'd')
      table_integer(t, va_arg(args, int));
    else if (kind == 'g')
      table_real(t, va_arg(args, double));
    else
      table_flag(t, va_arg(args, int));
  }
  va_end(args);
}

void table_json(table *t, cJSON *tree) {
  cell *c = table_cell_of(t, TABLE_JSON);
  owned_tree *own = c != NULL && tree != NULL ? table_memory(t, 1, sizeof *own) : NULL;
  if (own != NULL) {
    *own = (owned_tree){t->outermost->trees, tree};
    t->outermost->trees = own;
    c->json = tree;
    return;
  }
  if (t != NULL) t->outermost->memory.failed = true;
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

void table_order(table *t, int order) {
  if (t != NULL && t->n_columns > 0) t->column[t->n_columns - 1].order = order;
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
  case TABLE_INTEGER:
    snprintf(text, sizeof text, "%lld", (long long)c->integer);
    return cJSON_CreateRaw(text);
  case TABLE_REAL:
    return isfinite(c->number[0]) ? cJSON_CreateRaw(number_text(c->number[0], text))
                                  : cJSON_CreateNull();
  case TABLE_FLAG:
    return cJSON_CreateBool(c->integer != 0);
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
  if (table_has_failed(t)) return NULL;
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

gl_status table_write_json(const table *t, FILE *to, gl_error *err) {
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
    else if (column->type == TABLE_INTEGER)
      records_integer(w, c->integer);
    else if (column->type == TABLE_FLAG)
      records_flag(w, c->integer != 0);
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
  return table_has_failed(scratch) ? gl_fail_memory(err, "a table") : GL_OK;
}

static void write_record(records_writer *w, const table *t, size_t row) {
  for (size_t i = 0; i < t->n_columns; ++i) {
    const size_t at = row * t->n_columns + i;
    if (is_record_column(&t->column[i]))
      write_record_cell(w, &t->column[i], at < t->n_cells ? &t->cell[at] : NULL);
  }
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
      write_record(&w, t, row);
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
gl_status table_write_records(const table *t, records_format format, FILE *to, gl_error *err) {
  if (!t->is_document) return write_rows_of_records(t, format, to, err);
  gl_status status = GL_OK;
  bool is_first = true;
  for (size_t i = 0; i < t->n_cells && status == GL_OK; ++i) {
    if (t->column[i].type != TABLE_TABLE || t->column[i].name == NULL ||
        !has_records(t->cell[i].within))
      continue;
    if (!is_first) fputc('\n', to);
    is_first = false;
    status = table_write_records(t->cell[i].within, format, to, err);
  }
  return status;
}
