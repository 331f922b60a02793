/* The tables of a study file as text: what there are, what their columns hold, and how one is
 * written. experiments/DATA.md documents them for who reads them. */
#ifndef GEPOLAB_CORE_STORE_EXPORT_H
#define GEPOLAB_CORE_STORE_EXPORT_H

#include "core/base/records.h"
#include "core/config/axes.h"
#include "core/store/store.h"

/* --- the runs of a file, in the order of its exports, and the fields in which they differ --- */
/* Runs whose place another run has taken are not among them. */

typedef struct listed_run {
  int64_t id; /* its number in the file, which depends on the order of execution */
  int64_t ordinal;
  const char *study, *key;
  uint64_t seed;
  double lr; /* NaN: not known */
} listed_run;

typedef struct run_number {
  int64_t id;
  size_t run; /* its index in the list */
} run_number;

typedef struct run_list {
  listed_run *run; /* [n], by study, ordinal and key */
  size_t n;
  axis_table axes;   /* of these runs, in this order */
  run_number *by_id; /* [n] by number, ascending */
  char **texts;      /* [n_texts] owned: names, keys and what the comparison reads */
  size_t n_texts;
} run_list;

/* Reads the runs and compares their recipes; inside store_begin_reading(). Release with
 * run_list_fini() in any case. */
gl_status run_list_init(run_list *l, store *s, gl_error *err);
void run_list_fini(run_list *l);
/* The index of the run with that number; l->n if there is none. */
size_t run_list_find(const run_list *l, int64_t id);

/* The columns with which the tables of runs begin: study, ordinal, key, algorithm, seed,
 * optimizer.lr, and each other field that tells runs of the file apart, by its path. */
enum { RUN_LIST_COLUMNS = 6 };
/* The first of them, without the fields that tell runs apart. */
const table_column *run_list_fixed(void);
/* The run's values for them. */
void run_list_put(const run_list *l, size_t run, records_writer *w);

/* The fields that tell runs apart and have columns of their own, for tables that are not of runs:
 * how many, the columns, a run's values. */
size_t run_list_axes(const run_list *l);
table_column run_list_axis(const run_list *l, size_t i);
void run_list_put_axes(const run_list *l, size_t run, records_writer *w);

/* --- the tables --- */

/* The columns with which a table begins, before its own. */
typedef enum export_lead {
  EXPORT_ALONE,    /* none */
  EXPORT_OF_RUNS,  /* those of a run, as run_list_put() has them */
  EXPORT_OF_CELLS, /* cell, study, algorithm, optimizer.lr and the fields in which runs differ */
} export_lead;

typedef struct export_table {
  const char *name;
  const char *about; /* "a record for each …" */
  export_lead lead;
  bool depends_on_execution; /* says how and when runs were made; the rest depends on recipes alone
                              */
  const char *key;           /* the columns that no two records have alike: "key, step" */
  const table_column *columns; /* its own, ended by a NULL name; NULL: those of `stored` that have a
                                  meaning */
  /* Where store_export() takes its records from, which are put behind the leading columns. Either
   * the rows of a table of the file; rows of runs that have their places, ordered by study, ordinal
   * and key first. */
  const char *stored, *order; /* order: SQL, of the rows t; NULL: no further one */
  /* Or a query, whose first column is not put; `read`: the tables that it reads. */
  const char *query, *read[2];
  /* Or the runs of the file, compared. */
  gl_status (*put)(records_writer *w, const run_list *runs, gl_error *err);
} export_table;

/* The i-th table that store_export() writes, or NULL past the last. */
const export_table *store_export_at(size_t i);
/* Its own columns: how many, and the i-th. */
size_t export_columns(const export_table *t);
table_column export_column(const export_table *t, size_t i);

/* All columns of a table, on the heap for the caller to free, *n of them; NULL if memory is short.
 * runs: of the file that it is written of; NULL: without the fields that tell runs apart. */
table_column *export_header(const export_table *t, const run_list *runs, size_t *n);

/* Writes a table while one state of the study is held, and hands it on when the study is free
 * again: who reads it may pause, and a sweep that writes to the study must not wait for that.
 * `read`: the tables of the file, ended by NULL, that are compared with their checksums first;
 * write() has the runs of the file. name: for messages. */
typedef gl_status (*export_writer)(void *self, store *s, const run_list *runs, FILE *to,
                                   gl_error *err);
gl_status store_export_with(store *s, const char *name, const char *const *read,
                            export_writer write, void *self, FILE *to, gl_error *err);

#endif
