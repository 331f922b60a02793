/* The runs of a study file in the order of its exports, with what tells them apart. Runs whose
 * place another run has taken are not among them. */
#ifndef GEPOLAB_CORE_STORE_RUN_LIST_H
#define GEPOLAB_CORE_STORE_RUN_LIST_H

#include "core/base/records.h"
#include "core/config/axes.h"
#include "core/store/store.h"

typedef struct listed_run {
  int64_t id; /* its number in the file, which depends on the order of execution */
  int64_t ordinal;
  const char *study, *key;
  uint64_t seed;
  double lr; /* NaN: not known */
} listed_run;

typedef struct run_list {
  listed_run *run; /* [n], by study, ordinal and key */
  size_t n;
  axis_table axes; /* of these runs, in this order */
  size_t *by_id;   /* [n] indices of the runs with their numbers ascending */
  char **texts;    /* [n_texts] owned: names, keys and what the comparison reads */
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
/* How many there are in all, and the i-th; texts live as long as the list. */
size_t run_list_columns(const run_list *l);
table_column run_list_column(const run_list *l, size_t i);
/* The run's values for them. */
void run_list_put(const run_list *l, size_t run, records_writer *w);

/* The fields that tell runs apart and have columns of their own, for tables that are not of runs:
 * how many, the columns, a run's values. */
size_t run_list_axes(const run_list *l);
table_column run_list_axis(const run_list *l, size_t i);
void run_list_put_axes(const run_list *l, size_t run, records_writer *w);
/* The type that all values of axis a have: numbers where all of them are numbers, truth values
 * where all are, else text. */
table_type run_list_axis_type(const run_list *l, size_t a);

#endif
