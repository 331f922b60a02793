/* One study as the sections of its report use it. Private to this folder. */
#ifndef GEPOLAB_EXPERIMENTS_REPORT_STUDY_INTERNAL_H
#define GEPOLAB_EXPERIMENTS_REPORT_STUDY_INTERNAL_H

#include "analysis/results.h"
#include "analysis/summary.h"
#include "analysis/verdict.h"
#include "core/store/store.h"
#include "experiments/report/html.h"
#include "experiments/report/report.h"

#include <sqlite3.h>

/* A cell with missing runs. */
typedef struct incomplete_cell {
  char *algorithm, *setting; /* descriptions */
  uint64_t *seeds;           /* [n], ascending */
  size_t n;
} incomplete_cell;

typedef struct report_study {
  const report_request *q;
  store *from;
  const char *name;
  char id[24];     /* prefix of the study's HTML ids */
  results *r;      /* NULL if the file has no run of the study yet */
  summary s;       /* set if r is not NULL */
  verdicts v;      /* set if r is not NULL */
  uint64_t *seeds; /* [n_seeds] all seeds of the study's runs, ascending */
  size_t n_seeds;
  incomplete_cell *incomplete; /* [n_incomplete] */
  size_t n_incomplete;
  size_t missing;    /* total number of missing runs */
  int is_planned;    /* 1: the file has a plan; 0: the full grid is assumed */
  size_t superseded; /* number of runs that a later run replaced */
  size_t done, diverged, failed;
  size_t collapsed, not_finite; /* runs that did not fail and collapsed, or are not finite at their
                                   end; sums over cells */
  char **recipes; /* [n_recipes] canonical JSON of the swept recipes; none if the file has no
                     plan, as `run -o` writes it */
  size_t n_recipes;
} report_study;

/* Loads the study of that name. number: of the study in the report, from which its HTML ids are
 * made. Release with study_fini(), also after an error. Errors: those of store_progress() and
 * results_load(). */
gl_status study_init(report_study *t, const report_request *q, store *from, const char *name,
                     size_t number, gl_error *err);
void study_fini(report_study *t);

/* A top-level field of the first recipe as text, allocated; NULL if absent. */
char *study_recipe_text(const report_study *t, const char *key);

/* Formats ascending seeds as "1, 2, 5" or "1 to 6"; allocated. */
char *study_seeds_text(const uint64_t *seeds, size_t n);
/* A group's setting as text; "the only setting" if nothing is swept. */
const char *study_setting(const report_study *t, size_t group);

/* --- sections: summary.c, figures.c, study_tables.c --- */
/* Each function writes the contents of a section below its heading. */

typedef gl_status section_writer(html *h, const report_study *t, gl_error *err);
section_writer section_summary, section_figures, section_scores, section_sets, section_rates,
    section_clock, section_relations, section_problems, section_laboratory, section_recipe,
    section_provenance, section_rerun;

/* Each returns 1 if the section has content. */
int has_figures(const report_study *t);
int has_sets(const report_study *t);
int has_rates(const report_study *t);
int has_relations(const report_study *t);
int has_problems(const report_study *t);
int has_laboratory(const report_study *t);
int has_recipe(const report_study *t);
int has_runs(const report_study *t);
int has_grid(const report_study *t); /* 1 if there are runs or a plan */

/* --- queries on a study's file that analysis/ does not provide --- */

/* Called for each record that a query returns. */
typedef gl_status query_record(void *context, sqlite3_stmt *record, gl_error *err);

/* Runs a query after checking the checksums of the tables (a list that ends with NULL). ?1 in the
 * query is the study's name (NULL: no parameter). Errors: GL_EIO (database error or damage), and
 * those that `take` returns. */
gl_status query_each(store *from, const char *const *tables, const char *sql, const char *study,
                     query_record *take, void *context, gl_error *err);
/* A column as text ("" for NULL) or as a number (NaN for NULL). */
const char *query_text(sqlite3_stmt *record, int column);
double query_number(sqlite3_stmt *record, int column);

#endif
