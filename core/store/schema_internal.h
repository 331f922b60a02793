/* The tables of a study, as data: what they are made from, compared with, checked by and summed
 * over. Private to core/store. */
#ifndef GEPOLAB_CORE_STORE_SCHEMA_INTERNAL_H
#define GEPOLAB_CORE_STORE_SCHEMA_INTERNAL_H

#include "core/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum column_type { COLUMN_INTEGER, COLUMN_REAL, COLUMN_TEXT } column_type;

/* What a column may hold: an integer from `least` to `most`; any number that is not NaN; a text of
 * `least` to `most` bytes of UTF-8 without a NUL. */
typedef struct store_column {
  const char *name;
  column_type type;
  bool needed; /* NULL is refused */
  int64_t least, most;
} store_column;

/* Whose rows a table keeps. */
typedef enum table_kind {
  TABLE_OF_RUNS,  /* the runs themselves, by number */
  TABLE_OF_A_RUN, /* belongs to a run: its first column is the run's number; its checksum stands
                     with the run, in the column sum_NAME of runs */
  TABLE_ALONE     /* each row has a checksum of its own */
} table_kind;

typedef struct store_table {
  const char *name;
  table_kind kind;
  const store_column *columns; /* ended by a name of NULL; those of steps are without metrics */
  const char *key;             /* SQL: its primary key, "run, step"; NULL: the first column alone */
  bool sealed;   /* the table seals says how many records it has, and with which checksums */
  bool optional; /* only some runs have records in it; the sum of none is NULL */
} store_table;

/* The i-th table, or NULL past the end; runs is the first. */
const store_table *schema_at(size_t i);
/* By its exact name, or NULL. */
const store_table *schema_named(const char *name);
/* What a column of that name may hold; NULL: the table has none of the name. Every metric is a
 * column of steps. */
const store_column *schema_column(const store_table *t, const char *name);
/* The only index that SQLite does not make by itself: a run that is put looks for others of its
 * place. */
#define SCHEMA_INDEX "CREATE INDEX runs_by_place ON runs(place)"
/* The SQL that makes all tables and the index, on the heap; NULL if memory is short. */
char *schema_sql(void);

#endif
