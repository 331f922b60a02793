/* Exports the tables of a study file as text: the list of tables, the meaning of their columns, and
 * writing one. Documented for users in experiments/DATA.md. */
#ifndef GEPOLAB_CORE_STORE_EXPORT_H
#define GEPOLAB_CORE_STORE_EXPORT_H

#include "core/base/records.h"
#include "core/config/axes.h"
#include "core/store/store.h"

/* --- list of runs --- */
/* A run that is not superseded. */

typedef struct listed_run {
  int64_t id; /* number in the file, which depends on the order of execution */
  int64_t ordinal;
  const char *study, *key;
  uint64_t seed;
  double lr; /* NaN: unknown */
} listed_run;

typedef struct run_number {
  int64_t id;
  size_t run; /* index in the list */
} run_number;

typedef struct run_list {
  listed_run *run; /* [n] ordered by study, ordinal and key */
  size_t n;
  axis_table axes;   /* values of the fields in which these runs differ, in this order */
  run_number *by_id; /* [n] ordered by run number */
  char **texts;      /* [n_texts] owned: names, keys and texts that the comparison uses */
  size_t n_texts;
} run_list;

/* Reads the runs and compares their recipes; call it within store_begin_reading(). Call
 * run_list_fini() even after an error. */
gl_status run_list_init(run_list *l, store *s, gl_error *err);
void run_list_fini(run_list *l);
/* Returns the index of the run with number `id`, or l->n if there is none. */
size_t run_list_find(const run_list *l, int64_t id);

/* The leading columns of tables about runs: study, ordinal, key, algorithm, seed, optimizer.lr, and
 * every other field in which runs of the file differ, named by its path. */
enum { RUN_LIST_COLUMNS = 6 };
/* The first RUN_LIST_COLUMNS columns, without the fields in which runs differ. */
const table_column *run_list_fixed(void);
/* Writes the run's values of the leading columns. */
void run_list_put(const run_list *l, size_t run, records_writer *w);

/* The fields in which runs differ, for tables that are not about runs: their number, their columns,
 * and writing a run's values. */
size_t run_list_axes(const run_list *l);
table_column run_list_axis(const run_list *l, size_t i);
void run_list_put_axes(const run_list *l, size_t run, records_writer *w);

/* --- the tables --- */

/* The leading columns of an exported table. */
typedef enum export_lead {
  EXPORT_ALONE,    /* no leading columns */
  EXPORT_OF_RUNS,  /* those of a run, as written by run_list_put() */
  EXPORT_OF_CELLS, /* cell, study, algorithm, optimizer.lr and the fields in which runs differ */
} export_lead;

typedef struct export_table {
  const char *name;
  const char *about; /* "a record for each …" */
  export_lead lead;
  bool depends_on_execution;   /* describes how and when runs were made; other tables depend on
                                  recipes only */
  const char *key;             /* the columns that identify a record: "key, step" */
  const table_column *columns; /* the table's own columns, ended by a NULL name; NULL: the columns
                                  of `stored` that have a description */
  /* store_export() takes the records from one of three sources and writes them after the leading
   * columns. First: a table of the file, without superseded runs, ordered first by study, ordinal
   * and key. */
  const char *stored, *order; /* order: further SQL order of the rows t; NULL: none */
  /* Second: a query, whose first column is skipped; `read`: the tables that it reads. */
  const char *query, *read[2];
  /* Third: a function that writes records of the compared runs. */
  gl_status (*put)(records_writer *w, const run_list *runs, gl_error *err);
} export_table;

/* The i-th table that store_export() can write, or NULL past the last. */
const export_table *store_export_at(size_t i);
/* The number of the table's own columns, and the i-th of them. */
size_t export_columns(const export_table *t);
table_column export_column(const export_table *t, size_t i);

/* All columns of a table as an array of *n on the heap, which the caller frees; NULL if out of
 * memory. runs: the runs of the exported file; NULL: without the fields in which runs differ. */
table_column *export_header(const export_table *t, const run_list *runs, size_t *n);

/* Writes a table from one snapshot of the study to a buffer, and to `to` only after the study has
 * been released, because a slow reader of `to` must not block a sweep that writes to the study.
 * `read`: the tables of the file, ended by NULL, that are verified first. write() receives the runs
 * of the file. name is used in messages. */
typedef gl_status (*export_writer)(void *self, store *s, const run_list *runs, FILE *to,
                                   gl_error *err);
gl_status store_export_with(store *s, const char *name, const char *const *read,
                            export_writer write, void *self, FILE *to, gl_error *err);

#endif
