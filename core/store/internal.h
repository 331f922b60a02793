/* Private interfaces between the files of core/store. */
#ifndef GEPOLAB_CORE_STORE_INTERNAL_H
#define GEPOLAB_CORE_STORE_INTERNAL_H

#include "core/base/hash.h"
#include "core/store/store.h"

#include <sqlite3.h>
#include <stdbool.h>

enum {
  STORE_APPLICATION_ID = 0x47504c42
}; /* "GPLB" in the file header identifies a gepolab study */

/* --- the open file --- */

struct store {
  sqlite3 *db;
  char *path;
  int lock;       /* descriptor that holds the writer's lock, or -1 */
  int readers;    /* number of store_begin_reading() calls not yet ended */
  bool reads_cut; /* opened with STORE_READ_CUT */
  store_waiting waiting;
};

/* Turns a failed SQLite call into an error message: operation, file, reason and fix. */
gl_status store_fail(store *s, int code, const char *doing, gl_error *err);
/* Runs SQL without results; store_execf() formats its arguments like sqlite3_mprintf(). */
gl_status store_exec(store *s, const char *sql, const char *doing, gl_error *err);
gl_status store_execf(store *s, const char *doing, gl_error *err, const char *format, ...);
/* store_begin: BEGIN IMMEDIATE. store_end: COMMIT if status is GL_OK, otherwise ROLLBACK; returns
 * the status to pass on. */
gl_status store_begin(store *s, gl_error *err);
gl_status store_end(store *s, gl_status status, gl_error *err);
/* Returns 1 if the table has the column. */
int store_has_column(store *s, const char *schema, const char *table, const char *name);

/* A statement. Its error is sticky: after the first one all calls do nothing, query_next() returns
 * false, and query_end() returns the error. Always call query_end(). */
typedef struct query {
  store *s;
  sqlite3_stmt *stmt;
  gl_status status;
  gl_error *err;
  const char *doing; /* for messages; "reading" unless the caller changes it */
  int code;          /* SQLite's result code of the last step */
} query;

void query_begin(query *q, store *s, const char *sql, gl_error *err);
/* The same with SQL formatted like sqlite3_mprintf(). */
void query_beginf(query *q, store *s, gl_error *err, const char *format, ...);
/* Binds parameters, numbered from 1. A text must outlive the statement; a NULL text is bound as
 * NULL. */
void query_bind_text(query *q, int at, const char *text);
void query_bind_integer(query *q, int at, int64_t value);
/* Advances to the next record; false after the last one. */
bool query_next(query *q);
/* Values of the current record, columns from 0. Texts are valid until the next record; NULL is
 * returned as NULL, or NAN for a real. */
const char *query_get_text(const query *q, int column);
int64_t query_get_integer(const query *q, int column);
double query_get_real(const query *q, int column);
/* Runs a statement without results; it may then be bound and run again. */
gl_status query_run(query *q);
gl_status query_end(query *q);
/* Reads the integer result of a query; text: its parameter ?1, or NULL if it has none. */
gl_status store_query_integer(store *s, int64_t *value, const char *sql, const char *text,
                              gl_error *err);

/* --- schema of the tables --- */

typedef enum column_type { COLUMN_INTEGER, COLUMN_REAL, COLUMN_TEXT } column_type;

/* How a C record represents a column's value. */
typedef enum column_member {
  MEMBER_NONE,  /* not part of the record */
  MEMBER_RUN,   /* the number of the run */
  MEMBER_INDEX, /* the index of the record among those of its run, from 0 */
  MEMBER_INT32, /* a number below the column's `least` stands for NULL, also in MEMBER_INT64 */
  MEMBER_INT64,
  MEMBER_UINT64, /* the 64 bits, stored as a signed integer */
  MEMBER_REAL,   /* NAN stands for NULL */
  MEMBER_TEXT,   /* NULL stands for NULL; read as "" if the column is needed */
  MEMBER_CHARS   /* an array of char; written only */
} column_member;

/* The valid values of a column: an integer from `least` to `most`; any number except NaN; or
 * `least` to `most` bytes of UTF-8 without a NUL. */
typedef struct store_column {
  const char *name;
  column_type type;
  bool needed; /* NULL is invalid */
  int64_t least, most;
  column_member member;
  size_t at;                /* offset of the member in the record, in bytes */
  const char *unit, *about; /* as exported; about NULL: not exported */
} store_column;

/* The object that the records of a table belong to. */
typedef enum table_kind {
  TABLE_OF_RUNS,  /* the table of runs, one record per run */
  TABLE_OF_A_RUN, /* records belong to a run: the first column is the run's number; the checksum is
                     in the column sum_NAME of runs */
  TABLE_ALONE     /* records belong to no run; each has its own checksum */
} table_kind;

enum { ONE_RECORD = -1 };

typedef struct store_table {
  const char *name;
  table_kind kind;
  const char *what;            /* name of its records in messages: "writing WHAT to" */
  const store_column *columns; /* ended by a name of NULL; see schema_column_at() */
  const char *key;             /* SQL: its primary key, "run, step"; NULL: the first column alone */
  bool sealed; /* the table `seals` stores the number of its records and the sum of their checksums
                */
  bool optional; /* only some runs have records here; without records the checksum is NULL */
  /* TABLE_OF_A_RUN only: the checksum column in runs; offsets in run_record of the records and of
   * their number (count ONE_RECORD: the record itself); size of a record in bytes. */
  const char *sum;
  ptrdiff_t records, count;
  size_t size;
} store_table;

/* The i-th table, or NULL past the end; the first is runs. */
const store_table *schema_at(size_t i);
/* The table with exactly this name, or NULL. */
const store_table *schema_named(const char *name);
/* All columns of a table: those listed; in runs, also one checksum per table that belongs to runs;
 * in steps, also the metrics. At most SCHEMA_MOST_COLUMNS. */
enum { SCHEMA_MOST_COLUMNS = 120 };
size_t schema_columns(const store_table *t);
store_column schema_column_at(const store_table *t, size_t i);
/* Sets *c to the column with that name; returns false if the table has none. */
bool schema_column(const store_table *t, const char *name, store_column *c);
/* The only index that SQLite does not create itself. Inserting a run looks up other runs of its
 * place. */
#define SCHEMA_INDEX "CREATE INDEX runs_by_place ON runs(place)"
/* The SQL that creates all tables and the index, on the heap; NULL if out of memory. */
char *schema_sql(void);
/* Adds the views that the file does not have yet. */
gl_status schema_add_views(store *s, gl_error *err);
/* Checks that the file is a study of format STORE_FORMAT with its tables; sets *empty if it has no
 * tables yet. Refuses other databases, older and newer formats, and files with missing tables or
 * columns, views or virtual tables instead of tables, triggers, computed or unknown columns, or
 * columns of another type. */
gl_status store_check_format(store *s, int *empty, gl_error *err);

/* Inserts records into a table: call begin, put for each record, then end. */
typedef struct record_writer {
  const store_table *table;
  query q;
  char doing[64];
  size_t n;
  store_column column[SCHEMA_MOST_COLUMNS]; /* [n] columns that have a member in the record */
} record_writer;
/* how: "", "OR IGNORE" or "OR REPLACE", the SQL after INSERT. */
void record_writer_begin(record_writer *w, store *s, const char *table, const char *how,
                         gl_error *err);
/* run and index: the values of MEMBER_RUN and MEMBER_INDEX columns, if the table has them. */
gl_status record_writer_put(record_writer *w, int64_t run, size_t index, const void *record);
gl_status record_writer_end(record_writer *w);
/* Inserts one record of a table that belongs to no run. */
gl_status store_put_record(store *s, const char *table, const char *how, const void *record,
                           gl_error *err);
/* store_record_columns: SQL that lists the table's columns that have a member in the record; alias:
 * the table's name in the query. On the heap, NULL if out of memory. store_read_record: reads a
 * record from these columns of a query, starting at column `at`; returns the column after them. */
char *store_record_columns(const char *table, const char *alias);
int store_read_record(const char *table, const query *q, int at, void *record);

/* Records of tables that have no public struct. */
typedef struct sweep_record {
  const char *study, *recipe_hash, *recipe;
  uint64_t shard, shards;
} sweep_record;
typedef struct tuned_record {
  const char *study, *algorithm;
  double lr, score;
} tuned_record;
typedef struct laboratory_record {
  const char *study, *provenance, *finished;
  double wall_s;
} laboratory_record;
/* A record of `seals`; also used for a subset of records: their number and the sum of their
 * checksums. */
typedef struct seal_record {
  const char *name;
  int64_t records;
  uint64_t content;
} seal_record;

/* --- checksums and damage --- */

/* Registers the SQL functions that compute checksums; returns SQLite's result code. */
int store_sum_functions(sqlite3 *db);
/* SQL that computes the checksum of a record (of all records of a run, for tables that belong to
 * runs) over the columns that the table in the file has; alias: the table's name in the query. On
 * the heap; NULL if out of memory. */
char *store_sum_of(store *s, const char *schema, const store_table *t, const char *alias);
/* The same for the file itself, except that the checksum is NULL if a value is invalid. */
char *store_try_sum_of(store *s, const store_table *t, const char *alias);
/* SQL for the stored checksum of a run's records in the table, where `runs` is called r. In an
 * optional table a run without records has checksum 0. */
enum { STORE_SUM_SIZE = 64 };
void store_written_sum(char sql[STORE_SUM_SIZE], const store_table *t);
/* Writes the checksums of all runs that match the SQL condition, and of their records. */
gl_status store_seal_runs(store *s, const char *which, gl_error *err);
/* Writes missing record checksums of a table and updates its record in `seals`. Must be called at
 * the end of every transaction that changed the table. */
gl_status store_seal(store *s, const char *table, gl_error *err);
/* Computes the seal of the records that match the SQL condition. */
gl_status store_part_of(store *s, seal_record *out, const char *table, const char *which,
                        gl_error *err);
/* Like store_seal() if only records that match `which` were changed, whose seal was `before`. Other
 * records are not read. */
gl_status store_seal_part(store *s, const char *table, const char *which, seal_record before,
                          gl_error *err);
/* Calls store_seal() for all tables that belong to no run. */
gl_status store_seal_all(store *s, gl_error *err);

/* Makes the run with that key supersede every other run of its place. The caller must have begun a
 * transaction. */
gl_status store_take_place(store *s, const char *key, gl_error *err);

#endif
