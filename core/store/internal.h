/* What the files of core/store share. Private to this room. */
#ifndef GEPOLAB_CORE_STORE_INTERNAL_H
#define GEPOLAB_CORE_STORE_INTERNAL_H

#include "core/base/hash.h"
#include "core/store/store.h"

#include <sqlite3.h>
#include <stdbool.h>

enum { STORE_APPLICATION_ID = 0x47504c42 }; /* "GPLB" in the file header: a study of ours */

/* --- the tables of a study, as data: made from it, compared with it, checked and summed by it --- */

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

/* --- the open file --- */

struct store {
  sqlite3 *db;
  char *path;
  int lock;    /* descriptor holding the writer's lock, or -1 */
  int readers; /* pairs of store_begin_reading() and store_end_reading() that are open */
  store_waiting waiting;
};

/* The columns of the table steps but for `run`: step, sampler, time_s, wait_s and the metrics. */
enum { STORE_STEP_COLUMNS = 4 + METRIC_COUNT };
void store_step_columns(const char *names[STORE_STEP_COLUMNS]);

/* A failed SQLite call as a sentence: what was being done, to which file, why, the remedy. */
gl_status store_fail(store *s, int code, const char *doing, gl_error *err);
/* Runs SQL text without results. */
gl_status store_exec(store *s, const char *sql, const char *doing, gl_error *err);
gl_status store_prepare(store *s, sqlite3_stmt **out, const char *sql, gl_error *err);
/* Steps a statement that returns no records and resets it. */
gl_status store_step_done(store *s, sqlite3_stmt *stmt, const char *doing, gl_error *err);
/* The whole number that a query answers with. */
gl_status store_whole(store *s, int64_t *value, const char *sql, gl_error *err);
/* Binds a text that outlives the statement; NULL stays NULL. */
void store_bind_text(sqlite3_stmt *stmt, int at, const char *text);
/* BEGIN IMMEDIATE; COMMIT when status is GL_OK, else ROLLBACK. Returns the status to pass on. */
gl_status store_begin(store *s, gl_error *err);
gl_status store_end(store *s, gl_status status, gl_error *err);

/* Refuses a file whose tables are not those of a study: one lacks a table or a column, or has views
 * or virtual tables in their place, triggers, columns that are computed, of another type, or
 * unknown. */
gl_status store_check_schema(store *s, gl_error *err);

/* Makes the functions that compute checksums known to the connection; SQLite's code. */
int store_sum_functions(sqlite3 *db);
/* SQL that computes the sum of a row of the table (of all rows of a run, for tables that belong to
 * runs) over the columns that the file's table has; alias: what the table is called in the query.
 * On the heap; NULL if memory is short. */
char *store_sum_of(store *s, const char *schema, const store_table *t, const char *alias);
/* The same of the file itself, but NULL where a value is one that its column may not hold. */
char *store_try_sum_of(store *s, const store_table *t, const char *alias);
/* SQL that gives the sum that was written of a run's records in the table, `runs` being called r;
 * of a table that is optional, a run without records has none written, which is 0. */
enum { STORE_SUM_SIZE = 64 };
void store_written_sum(char sql[STORE_SUM_SIZE], const store_table *t);
/* 1 if the key is the hash of the recipe, or memory is short. */
int store_is_key_of(const char *key, const char *recipe, int64_t meaning);
/* GL_EIO with the first thing that is wrong with the structure of the file. */
gl_status store_verify_structure(store *s, gl_error *err);
/* Writes the sums of the runs for which the SQL condition holds, and of their records. */
gl_status store_seal_runs(store *s, const char *which, gl_error *err);
/* Writes the sums of those rows of a table that have none, and its record in the table seals. To be
 * called at the end of every transaction that changed the table. */
gl_status store_seal(store *s, const char *table, gl_error *err);
/* What a seal says of some rows of a table that has one: those for which the SQL condition holds.
 */
typedef struct seal_part {
  int64_t records;
  uint64_t content;
} seal_part;
gl_status store_part_of(store *s, seal_part *out, const char *table, const char *which,
                        gl_error *err);
/* As store_seal() where only these rows were changed, which were `before`: the others are not read.
 */
gl_status store_seal_part(store *s, const char *table, const char *which, seal_part before,
                          gl_error *err);
/* store_seal() of all tables that stand alone. */
gl_status store_seal_all(store *s, gl_error *err);
/* Keeps how runs or measurements came about, once for all that came about so; its key into hash.
 * Inside a transaction of the caller. */
gl_status store_put_provenance(store *s, const run_provenance *p, char hash[HASH_HEX_SIZE],
                               gl_error *err);
/* 1 if the table has the column. */
int store_has_column(store *s, const char *schema, const char *table, const char *name);

/* After records were taken out, inside a transaction of the caller: of several runs that stand in
 * one place the last takes it (places_lost: records of the table superseded are gone), runs forget
 * a provenance that is gone, measurements of the laboratory of which some are gone go too, and
 * chosen rates that are gone come back from the runs made with them, without their scores. */
gl_status store_complete(store *s, int places_lost, gl_error *err);

/* The run of that key takes its place: every other run of the place is superseded by it. Inside a
 * transaction of the caller. */
gl_status store_take_place(store *s, const char *key, gl_error *err);

#endif
