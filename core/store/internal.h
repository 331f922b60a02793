/* Shared by the files of core/store, and private to this room. */
#ifndef GEPOLAB_CORE_STORE_INTERNAL_H
#define GEPOLAB_CORE_STORE_INTERNAL_H

#include "core/base/hash.h"
#include "core/store/store.h"

#include <sqlite3.h>
#include <stdbool.h>

enum { STORE_APPLICATION_ID = 0x47504c42 }; /* "GPLB" in the file header: a study of ours */

/* --- the open file --- */

struct store {
  sqlite3 *db;
  char *path;
  int lock;    /* descriptor holding the writer's lock, or -1 */
  int readers; /* pairs of store_begin_reading() and store_end_reading() that are open */
  store_waiting waiting;
};

/* A failed SQLite call as a sentence: what was being done, to which file, why, the remedy. */
gl_status store_fail(store *s, int code, const char *doing, gl_error *err);
/* Runs SQL text without results; the second is printf-style, as sqlite3_mprintf(). */
gl_status store_exec(store *s, const char *sql, const char *doing, gl_error *err);
gl_status store_execf(store *s, const char *doing, gl_error *err, const char *format, ...);
/* BEGIN IMMEDIATE; COMMIT when status is GL_OK, else ROLLBACK. Returns the status to pass on. */
gl_status store_begin(store *s, gl_error *err);
gl_status store_end(store *s, gl_status status, gl_error *err);
/* 1 if the table has the column. */
int store_has_column(store *s, const char *schema, const char *table, const char *name);

/* A statement. Its error is sticky: after the first one, all calls do nothing, query_next() is
 * false, and query_end() returns the error. Always end it. */
typedef struct query {
  store *s;
  sqlite3_stmt *stmt;
  gl_status status;
  gl_error *err;
  const char *doing; /* for messages; "reading" unless the caller changes it */
  int code;          /* SQLite's of the last step */
} query;

void query_begin(query *q, store *s, const char *sql, gl_error *err);
/* The same with SQL made as by sqlite3_mprintf(). */
void query_beginf(query *q, store *s, gl_error *err, const char *format, ...);
/* Parameters, from 1. A text outlives the statement; NULL stays NULL. */
void query_bind_text(query *q, int at, const char *text);
void query_bind_whole(query *q, int at, int64_t value);
/* The next record; false behind the last one. */
bool query_next(query *q);
/* Values of the present record, from column 0; texts are valid until the next record, and NULL
 * stays NULL; a real that is NULL is NAN. */
const char *row_text(const query *q, int column);
int64_t row_whole(const query *q, int column);
double row_real(const query *q, int column);
/* Runs a statement that has no records, which may be bound and run again. */
gl_status query_run(query *q);
gl_status query_end(query *q);
/* The whole number that a query answers with; text: its parameter ?1, or NULL where it has none. */
gl_status store_whole(store *s, int64_t *value, const char *sql, const char *text, gl_error *err);

/* --- the tables of a study, as data: made, written, read, exported, checked and summed by it --- */

typedef enum column_type { COLUMN_INTEGER, COLUMN_REAL, COLUMN_TEXT } column_type;

/* How a record in memory has a column's value. */
typedef enum column_member {
  MEMBER_NONE,  /* not at all */
  MEMBER_RUN,   /* it is the number of the run */
  MEMBER_INDEX, /* it is the record's place among those of its run, from 0 */
  MEMBER_INT32, /* a number below the column's least one is NULL, as in MEMBER_INT64 */
  MEMBER_INT64,
  MEMBER_UINT64, /* its 64 bits */
  MEMBER_REAL,   /* NAN is NULL */
  MEMBER_TEXT,   /* NULL is NULL, and read as "" where the column is needed */
  MEMBER_CHARS   /* an array of char; written only */
} column_member;

/* What a column may hold: an integer from `least` to `most`; any number that is not NaN; a text of
 * `least` to `most` bytes of UTF-8 without a NUL. */
typedef struct store_column {
  const char *name;
  column_type type;
  bool needed; /* NULL is refused */
  int64_t least, most;
  column_member member;
  size_t at;                /* of the member in the record, in bytes */
  const char *unit, *about; /* as it is exported; about NULL: it is not */
} store_column;

/* Whose rows a table keeps. */
typedef enum table_kind {
  TABLE_OF_RUNS,  /* the runs themselves, by number */
  TABLE_OF_A_RUN, /* belongs to a run: its first column is the run's number; its checksum is a
                     column of runs, sum_NAME */
  TABLE_ALONE     /* each row has a checksum of its own */
} table_kind;

enum { ONE_RECORD = -1 };

typedef struct store_table {
  const char *name;
  table_kind kind;
  const char *what;            /* its records in words, for messages: "writing WHAT to" */
  const store_column *columns; /* ended by a name of NULL; see schema_column_at() */
  const char *key;             /* SQL: its primary key, "run, step"; NULL: the first column alone */
  bool sealed;   /* the table seals says how many records it has, and with which checksums */
  bool optional; /* only some runs have records in it; the sum of none is NULL */
  /* of a run: the name of its column of sums in runs; where run_record has its records and how many
   * they are (count ONE_RECORD: the record itself); their size in bytes */
  const char *sum;
  ptrdiff_t records, count;
  size_t size;
} store_table;

/* The i-th table, or NULL past the end; runs is the first. */
const store_table *schema_at(size_t i);
/* By its exact name, or NULL. */
const store_table *schema_named(const char *name);
/* All columns of a table: those that it lists; of runs, then a sum for each table that belongs to
 * runs; of steps, then the metrics. At most SCHEMA_MOST_COLUMNS. */
enum { SCHEMA_MOST_COLUMNS = 120 };
size_t schema_columns(const store_table *t);
store_column schema_column_at(const store_table *t, size_t i);
/* *c: what a column of that name may hold; false: the table has none of the name. */
bool schema_column(const store_table *t, const char *name, store_column *c);
/* The only index that SQLite does not make by itself: a run that is put looks for others of its
 * place. */
#define SCHEMA_INDEX "CREATE INDEX runs_by_place ON runs(place)"
/* The SQL that makes all tables and the index, on the heap; NULL if memory is short. */
char *schema_sql(void);
/* Refuses a file whose tables are not those of a study: one lacks a table or a column, or has views
 * or virtual tables in their place, triggers, columns that are computed, of another type, or
 * unknown. */
gl_status store_check_schema(store *s, gl_error *err);

/* Writes records into a table: begin, put each, end. */
typedef struct row_writer {
  const store_table *table;
  query q;
  char doing[64];
  size_t n;
  store_column column[SCHEMA_MOST_COLUMNS]; /* [n] those that a record has */
} row_writer;
/* how: "", "OR IGNORE" or "OR REPLACE", as SQL has it after INSERT. */
void row_writer_begin(row_writer *w, store *s, const char *table, const char *how, gl_error *err);
/* run and index: what MEMBER_RUN and MEMBER_INDEX take, if the table has them. */
gl_status row_writer_put(row_writer *w, int64_t run, size_t index, const void *record);
gl_status row_writer_end(row_writer *w);
/* One record of a table that belongs to no run. */
gl_status store_put_row(store *s, const char *table, const char *how, const void *record,
                        gl_error *err);
/* SQL: the columns that records of the table have, of a table called alias in the query; on the
 * heap, NULL if memory is short. And a record from these columns of a query, from column `at` on;
 * returns the column behind them. */
char *store_row_columns(const char *table, const char *alias);
int store_read_row(const char *table, const query *q, int at, void *record);

/* Rows that no public header knows. */
typedef struct sweep_row {
  const char *study, *recipe_hash, *recipe;
  uint64_t shard, shards;
} sweep_row;
typedef struct tuned_row {
  const char *study, *algorithm;
  double lr, score;
} tuned_row;
typedef struct laboratory_row {
  const char *study, *provenance, *finished;
  double wall_s;
} laboratory_row;
/* Also what a seal says of some rows of a table: how many, and the sum of their checksums. */
typedef struct seal_row {
  const char *name;
  int64_t records;
  uint64_t content;
} seal_row;

/* --- checksums, damage --- */

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
/* What a seal says of those rows of a table for which the SQL condition holds. */
gl_status store_part_of(store *s, seal_row *out, const char *table, const char *which,
                        gl_error *err);
/* As store_seal() where only these rows were changed, which were `before`: the others are not read.
 */
gl_status store_seal_part(store *s, const char *table, const char *which, seal_row before,
                          gl_error *err);
/* store_seal() of all tables that belong to no run. */
gl_status store_seal_all(store *s, gl_error *err);
/* Keeps how runs or measurements came about, once for all that came about so; its key into hash.
 * Inside a transaction of the caller. */
gl_status store_put_provenance(store *s, const run_provenance *p, char hash[HASH_HEX_SIZE],
                               gl_error *err);

/* Restores consistency after records were removed, inside a transaction of the caller: of several
 * runs in one place the last supersedes the others (places_lost: records of the table superseded
 * are gone), references to provenance that is gone become NULL, measurements of the laboratory of
 * which some are gone go too, and chosen rates that are gone come back from the runs made with
 * them, without their scores. */
gl_status store_complete(store *s, int places_lost, gl_error *err);

/* The run of that key supersedes every other run of its place. Inside a
 * transaction of the caller. */
gl_status store_take_place(store *s, const char *key, gl_error *err);

#endif
