/* The contents of a table, for its writers. */
#ifndef GEPOLAB_CORE_BASE_TABLE_INTERNAL_H
#define GEPOLAB_CORE_BASE_TABLE_INTERNAL_H

#include "core/base/arena.h"
#include "core/base/table.h"

typedef struct cell {
  bool is_missing, is_bold, is_line;
  size_t n;          /* count of numbers */
  const char *text;  /* TABLE_TEXT, or a line of a document */
  const cJSON *json; /* TABLE_JSON */
  int64_t integer;   /* TABLE_INTEGER, TABLE_FLAG */
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
  table *outermost; /* the outermost table, or itself; owns all memory and trees */
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

/* Whether the table is NULL or an allocation of it failed. */
bool table_has_failed(const table *t);
/* Memory [n] of `size` bytes, zeroed, that lives as long as the outermost table; NULL after a
 * failure. */
void *table_memory(table *t, size_t n, size_t size);
/* The writers for programs. */
gl_status table_write_json(const table *t, FILE *to, gl_error *err);
gl_status table_write_records(const table *t, records_format format, FILE *to, gl_error *err);

#endif
