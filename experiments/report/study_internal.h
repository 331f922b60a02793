/* One study as the sections of its report see it. Only for the files of this room. */
#ifndef GEPOLAB_EXPERIMENTS_REPORT_STUDY_INTERNAL_H
#define GEPOLAB_EXPERIMENTS_REPORT_STUDY_INTERNAL_H

#include "analysis/results.h"
#include "analysis/summary.h"
#include "core/store/store.h"
#include "experiments/report/html.h"
#include "experiments/report/report.h"

#include <sqlite3.h>

/* Runs that the study is to hold and its file does not: seeds of one cell. */
typedef struct report_gap {
  char *algorithm, *setting; /* in words */
  uint64_t *seeds;           /* [n], ascending */
  size_t n;
} report_gap;

typedef struct report_study {
  const report_request *q;
  store *from;
  const char *name;
  char id[24];     /* begins the ids of everything on the page that is its */
  results *r;      /* NULL where the file has no run of the study yet */
  summary s;       /* where r is not NULL */
  uint64_t *seeds; /* [n_seeds] all seeds of its runs, ascending */
  size_t n_seeds;
  report_gap *gaps; /* [n_gaps] */
  size_t n_gaps;
  size_t missing;    /* runs in gaps */
  int is_planned;    /* 1: the file says which runs it is to hold; 0: the full grid is assumed */
  size_t superseded; /* runs whose place another one has taken */
  size_t done, diverged, failed;
  char **recipes; /* [n_recipes] canonical JSON of what was swept; none in older files */
  size_t n_recipes;
} report_study;

/* The study of that name; release with study_fini() in any case. */
gl_status study_init(report_study *t, const report_request *q, store *from, const char *name,
                     size_t number, gl_error *err);
void study_fini(report_study *t);

/* A field of the first recipe on its highest level, as text of its own on the heap; NULL where
 * there is none. */
char *study_recipe_text(const report_study *t, const char *key);

/* "1, 2, 5" or "1 to 6" of ascending seeds; on the heap. */
char *study_seeds_text(const uint64_t *seeds, size_t n);
/* A group's setting in words; "the only setting" where nothing is swept. */
const char *study_setting(const report_study *t, size_t group);

/* The cell with the highest last score of a setting; NULL where none has a score. scores.c */
const cell_summary *study_highest(const report_study *t, size_t group);
/* Whether a cell's interval of the last score reaches into the highest one's. */
int study_reaches(const cell_summary *c, const cell_summary *best);

/* --- sections, a file each --- */
/* Each writes what stands below its heading. */

typedef gl_status section_writer(html *h, const report_study *t, gl_error *err);
section_writer section_summary, section_figures, section_scores, section_sets, section_rates,
    section_clock, section_relations, section_problems, section_laboratory, section_recipe,
    section_provenance, section_rerun;

/* Whether there is anything to say. */
int has_figures(const report_study *t);
int has_sets(const report_study *t);
int has_rates(const report_study *t);
int has_relations(const report_study *t);
int has_problems(const report_study *t);
int has_laboratory(const report_study *t);
int has_recipe(const report_study *t);
int has_runs(const report_study *t);
int has_grid(const report_study *t); /* runs, or a plan of some */

/* Questions to a study's file that analysis/ does not ask. Only for the files of this room. */

/* Called with each record of an answer. */
typedef gl_status query_record(void *context, sqlite3_stmt *record, gl_error *err);

/* Asks, once the tables (ended by NULL) agree with their checksums; ?1 in the question is the
 * study's name (NULL: the question has none). GL_EIO as the database says and for damage, or what
 * `take` returns. */
gl_status query_each(store *from, const char *const *tables, const char *sql, const char *study,
                     query_record *take, void *context, gl_error *err);
/* A column as text, "" for NULL; as a number, NaN for NULL. */
const char *query_text(sqlite3_stmt *record, int column);
double query_number(sqlite3_stmt *record, int column);

#endif
