/* The tables of a study file as text: what there are, what their columns hold, and how one is
 * written. experiments/DATA.md documents them for who reads them. */
#ifndef GEPOLAB_CORE_STORE_EXPORT_H
#define GEPOLAB_CORE_STORE_EXPORT_H

#include "core/base/records.h"
#include "core/store/run_list.h"
#include "core/store/store.h"

/* The columns with which a table begins, before its own. */
typedef enum export_lead {
  EXPORT_ALONE,    /* none */
  EXPORT_OF_RUNS,  /* those of run_list.h */
  EXPORT_OF_CELLS, /* cell, study, algorithm, optimizer.lr and the fields that tell runs apart */
} export_lead;

typedef struct export_table {
  const char *name;
  const char *about; /* "a record for each …" */
  export_lead lead;
  int reproducible; /* 0: says how and when runs were made; the rest depends on recipes alone */
  const char *key;  /* the columns that no two records have alike: "key, step" */
  const table_column *columns; /* its own, ended by a NULL name; those of steps are followed by
                                    the metrics */
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
