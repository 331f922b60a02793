/* Checksums of what a study holds, and whether each value is one that its column may hold.
 *
 * The sum of a row is the sum of the XXH3 hashes of its values, each seeded with the hash of its
 * column's name, NULLs left out: a column that a later version adds changes no sum. The sum of a
 * run's rows of a table is the sum of their mixed sums, so that it needs no order. Both are
 * computed inside SQLite by functions of this file, which refuse a value that its column may not
 * hold: the strict ones end the query, naming table and column, and those called gepolab_try give
 * NULL, for queries that look for all damage. */
#include "core/store/internal.h"

#include "core/base/hash.h"
#include "core/base/utf8.h"
#include "core/store/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- one value --- */

/* What the values of a call belong to, found once from its two first arguments. */
enum { MOST_COLUMNS = 120, FIRST_VALUE = 2 };
typedef struct row_columns {
  int n;
  const char *table;
  const store_column *column[MOST_COLUMNS];
  uint64_t seed[MOST_COLUMNS];
} row_columns;

static uint64_t sums_hash_of(uint64_t seed, const void *data, size_t size) {
  return checksum_seeded(seed, data, size);
}

/* Why the column may not hold the value; NULL: it may. */
static const char *sums_refusal(const store_column *c, sqlite3_value *v) {
  const int type = sqlite3_value_type(v);
  if (type == SQLITE_NULL) return c->needed ? "nothing" : NULL;
  switch (c->type) {
  case COLUMN_INTEGER: {
    if (type != SQLITE_INTEGER) return "something that is no whole number";
    const int64_t n = sqlite3_value_int64(v);
    return n >= c->least && n <= c->most ? NULL : "a number out of range";
  }
  case COLUMN_REAL:
    return type == SQLITE_FLOAT || type == SQLITE_INTEGER ? NULL : "something that is no number";
  case COLUMN_TEXT: {
    if (type != SQLITE_TEXT) return "something that is no text";
    const char *text = (const char *)sqlite3_value_text(v);
    const size_t size = (size_t)sqlite3_value_bytes(v);
    if (text == NULL || size > (size_t)c->most || size < (size_t)c->least)
      return "a text too long or too short";
    return utf8_valid_prefix(text, size) == size && memchr(text, 0, size) == NULL
               ? NULL
               : "a text that is not UTF-8";
  }
  }
  return "a value of unknown type";
}

static uint64_t hash_value(uint64_t seed, const store_column *c, sqlite3_value *v) {
  switch (c->type) {
  case COLUMN_INTEGER: {
    const int64_t n = sqlite3_value_int64(v);
    return sums_hash_of(seed, &n, sizeof n);
  }
  case COLUMN_REAL: {
    double x = sqlite3_value_double(v);
    if (x == 0) x = 0; /* SQLite does not keep the sign of a zero */
    return sums_hash_of(seed, &x, sizeof x);
  }
  case COLUMN_TEXT:
    return sums_hash_of(seed, sqlite3_value_text(v), (size_t)sqlite3_value_bytes(v));
  }
  return 0;
}

/* --- one row --- */

static int find_columns(row_columns *r, sqlite3_value **arg, int n) {
  const char *table = (const char *)sqlite3_value_text(arg[0]);
  const char *names = (const char *)sqlite3_value_text(arg[1]);
  const store_table *t = table != NULL ? schema_named(table) : NULL;
  char name[128];
  *r = (row_columns){.n = n - FIRST_VALUE};
  if (t == NULL || names == NULL || r->n > MOST_COLUMNS) return 0;
  r->table = t->name;
  for (int i = 0; i < r->n; ++i) {
    const size_t length = strcspn(names, ",");
    if (length >= sizeof name) return 0;
    memcpy(name, names, length);
    name[length] = '\0';
    r->column[i] = schema_column(t, name);
    if (r->column[i] == NULL) return 0;
    r->seed[i] = sums_hash_of(0, name, length);
    names += length + (names[length] == ',');
  }
  return 1;
}

static int is_strict(sqlite3_context *call) {
  return sqlite3_user_data(call) == NULL;
}

/* 1 and the row's sum in *sum; else 0, and a strict call has failed. */
static int sum_row(sqlite3_context *call, const row_columns *r, sqlite3_value **value,
                   uint64_t *sum) {
  *sum = 0;
  for (int i = 0; i < r->n; ++i) {
    const char *why = sums_refusal(r->column[i], value[i]);
    if (why != NULL && !is_strict(call)) return 0;
    if (why != NULL) {
      char text[256];
      snprintf(
          text, sizeof text,
          "the table %s has %s in its column %s; is the file damaged? `gepolab study check` names "
          "all damage",
          r->table, why, r->column[i]->name);
      sqlite3_result_error(call, text, -1);
      return 0;
    }
    if (sqlite3_value_type(value[i]) != SQLITE_NULL)
      *sum += hash_value(r->seed[i], r->column[i], value[i]);
  }
  return 1;
}

/* gepolab_sum(table, names, values…): the sum of a row. */
static void sum_function(sqlite3_context *call, int n, sqlite3_value **arg) {
  row_columns *r = sqlite3_get_auxdata(call, 0);
  uint64_t sum = 0;
  const int known = r != NULL;
  if (!known && (r = malloc(sizeof *r)) == NULL) {
    sqlite3_result_error_nomem(call);
    return;
  }
  if (!known && !find_columns(r, arg, n)) {
    sqlite3_result_error(call, "a checksum of unknown columns was asked for", -1);
    free(r);
    return;
  }
  if (sum_row(call, r, arg + FIRST_VALUE, &sum)) sqlite3_result_int64(call, (sqlite3_int64)sum);
  if (!known) sqlite3_set_auxdata(call, 0, r, free);
}

/* gepolab_rows(table, names, values…): the sum of all rows, 0 of none. */
typedef struct rows_sum {
  int known, refused;
  uint64_t sum;
  row_columns columns;
} rows_sum;

static void rows_step(sqlite3_context *call, int n, sqlite3_value **arg) {
  rows_sum *all = sqlite3_aggregate_context(call, sizeof *all);
  uint64_t sum = 0;
  if (all == NULL) {
    sqlite3_result_error_nomem(call);
    return;
  }
  if (!all->known && !find_columns(&all->columns, arg, n)) {
    sqlite3_result_error(call, "a checksum of unknown columns was asked for", -1);
    return;
  }
  all->known = 1;
  if (sum_row(call, &all->columns, arg + FIRST_VALUE, &sum))
    all->sum += sums_hash_of(1, &sum, sizeof sum);
  else
    all->refused = 1;
}

static void rows_final(sqlite3_context *call) {
  const rows_sum *all = sqlite3_aggregate_context(call, 0);
  if (all != NULL && all->refused) return; /* NULL */
  sqlite3_result_int64(call, all != NULL ? (sqlite3_int64)all->sum : 0);
}

int store_sum_functions(sqlite3 *db) {
  const int how = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY;
  const struct {
    const char *row, *rows;
    void *which; /* anything but NULL: lenient */
  } pairs[] = {{"gepolab_sum", "gepolab_rows", NULL}, {"gepolab_try_sum", "gepolab_try_rows", db}};
  int code = SQLITE_OK;
  for (int i = 0; i < 2 && code == SQLITE_OK; ++i) {
    code = sqlite3_create_function_v2(db, pairs[i].row, -1, how, pairs[i].which, sum_function, NULL,
                                      NULL, NULL);
    if (code == SQLITE_OK)
      code = sqlite3_create_function_v2(db, pairs[i].rows, -1, how, pairs[i].which, NULL, rows_step,
                                        rows_final, NULL);
  }
  return code;
}

/* --- sums of a file --- */

/* A run's number is each file's own matter, and a sum is not summed. */
static int is_summed(const char *name) {
  return strcmp(name, "id") != 0 && strcmp(name, "run") != 0 && strcmp(name, "sum") != 0;
}

static char *sums_sum_of(store *s, const char *function, const char *schema, const store_table *t,
                         const char *alias) {
  sqlite3_stmt *q = NULL;
  char *names = NULL, *values = NULL, *text = NULL;
  size_t size = 0;
  char *sql = sqlite3_mprintf("SELECT name FROM pragma_table_info(%Q, %Q)", t->name, schema);
  FILE *to = open_memstream(&names, &size), *also = open_memstream(&values, &size);
  int ok = sql != NULL && to != NULL && also != NULL &&
           sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) == SQLITE_OK;
  for (int n = 0; ok && sqlite3_step(q) == SQLITE_ROW;) {
    const char *name = (const char *)sqlite3_column_text(q, 0);
    if (name == NULL || !is_summed(name)) continue;
    fprintf(to, "%s%s", n++ > 0 ? "," : "", name);
    fprintf(also, ", %s.\"%s\"", alias, name);
  }
  if (to != NULL) ok = fclose(to) == 0 && ok;
  if (also != NULL) ok = fclose(also) == 0 && ok;
  if (ok) {
    char *made =
        sqlite3_mprintf("gepolab_%s%s(%Q, %Q%s)", function,
                        t->kind == TABLE_OF_A_RUN ? "rows" : "sum", t->name, names, values);
    text = made != NULL ? strdup(made) : NULL;
    sqlite3_free(made);
  }
  sqlite3_finalize(q);
  sqlite3_free(sql);
  free(names), free(values);
  return text;
}

char *store_sum_of(store *s, const char *schema, const store_table *t, const char *alias) {
  return sums_sum_of(s, "", schema, t, alias);
}

char *store_try_sum_of(store *s, const store_table *t, const char *alias) {
  return sums_sum_of(s, "try_", "main", t, alias);
}

void store_written_sum(char sql[STORE_SUM_SIZE], const store_table *t) {
  snprintf(sql, STORE_SUM_SIZE, t->optional ? "coalesce(r.sum_%.30s, 0)" : "r.sum_%.30s", t->name);
}

/* UPDATE table SET column = its sum, for the rows where `which` holds. The sum of no records is 0,
 * of an optional table NULL. */
static gl_status set_sum(store *s, const store_table *t, const char *which, gl_error *err) {
  char *sum = store_sum_of(s, "main", t, t->kind == TABLE_OF_A_RUN ? "t" : t->name), *sql = NULL;
  if (sum != NULL && t->kind == TABLE_OF_A_RUN)
    sql = sqlite3_mprintf("UPDATE runs SET sum_%s = nullif((SELECT %s FROM %s t WHERE t.run ="
                          " runs.id), %s) WHERE %s",
                          t->name, sum, t->name, t->optional ? "0" : "NULL", which);
  else if (sum != NULL)
    sql = sqlite3_mprintf("UPDATE %s SET sum = %s WHERE %s", t->name, sum, which);
  free(sum);
  if (sql == NULL) return gl_fail_memory(err, "a checksum");
  gl_status status = store_exec(s, sql, "writing checksums to", err);
  sqlite3_free(sql);
  return status;
}

gl_status store_seal_runs(store *s, const char *which, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = 0; schema_at(i) != NULL && status == GL_OK; ++i)
    if (schema_at(i)->kind == TABLE_OF_A_RUN) status = set_sum(s, schema_at(i), which, err);
  return status == GL_OK ? set_sum(s, schema_at(0), which, err) : status;
}

/* Says how many records the table has and the sum of their checksums, where that is not said; of an
 * empty table nothing need be said. */
static gl_status seal_table(store *s, const store_table *t, gl_error *err) {
  char *sql = sqlite3_mprintf(
      "INSERT OR REPLACE INTO seals(name, records, content) SELECT t.name, t.n, t.content FROM"
      " (SELECT %Q AS name, count(*) AS n, gepolab_rows(%Q, 'sum', sum) AS content FROM %s) t LEFT"
      " JOIN seals s ON s.name = t.name WHERE t.n != coalesce(s.records, 0) OR t.content !="
      " coalesce(s.content, 0)",
      t->name, t->name, t->name);
  if (sql == NULL) return gl_fail_memory(err, "a checksum");
  gl_status status = store_exec(s, sql, "writing checksums to", err);
  sqlite3_free(sql);
  return status == GL_OK ? set_sum(s, schema_named("seals"), "sum IS NULL", err) : status;
}

gl_status store_seal(store *s, const char *table, gl_error *err) {
  const store_table *t = schema_named(table);
  gl_status status = set_sum(s, t, "sum IS NULL", err);
  return status == GL_OK && t->sealed ? seal_table(s, t, err) : status;
}

gl_status store_part_of(store *s, seal_part *out, const char *table, const char *which,
                        gl_error *err) {
  sqlite3_stmt *q = NULL;
  char *sql = sqlite3_mprintf("SELECT count(*), gepolab_rows(%Q, 'sum', sum) FROM %s WHERE %s",
                              table, table, which);
  if (sql == NULL) return gl_fail_memory(err, "a checksum");
  gl_status status = store_prepare(s, &q, sql, err);
  sqlite3_free(sql);
  const int code = status == GL_OK ? sqlite3_step(q) : SQLITE_ROW;
  if (code != SQLITE_ROW) status = store_fail(s, code, "reading", err);
  if (status == GL_OK)
    *out = (seal_part){sqlite3_column_int64(q, 0), (uint64_t)sqlite3_column_int64(q, 1)};
  sqlite3_finalize(q);
  return status;
}

/* What the seal of the table says; zeros where there is none. */
static gl_status read_seal(store *s, seal_part *out, const char *table, gl_error *err) {
  sqlite3_stmt *q = NULL;
  gl_status status =
      store_prepare(s, &q, "SELECT records, content FROM seals WHERE name = ?1", err);
  if (status != GL_OK) return status;
  store_bind_text(q, 1, table);
  const int code = sqlite3_step(q);
  *out = (seal_part){0, 0};
  if (code == SQLITE_ROW)
    *out = (seal_part){sqlite3_column_int64(q, 0), (uint64_t)sqlite3_column_int64(q, 1)};
  else if (code != SQLITE_DONE)
    status = store_fail(s, code, "reading", err);
  sqlite3_finalize(q);
  return status;
}

static gl_status write_seal(store *s, const char *table, seal_part part, gl_error *err) {
  sqlite3_stmt *q = NULL;
  gl_status status = store_prepare(
      s, &q, "INSERT OR REPLACE INTO seals(name, records, content) VALUES(?1, ?2, ?3)", err);
  if (status != GL_OK) return status;
  store_bind_text(q, 1, table);
  sqlite3_bind_int64(q, 2, part.records);
  sqlite3_bind_int64(q, 3, (int64_t)part.content);
  status = store_step_done(s, q, "writing checksums to", err);
  sqlite3_finalize(q);
  return status == GL_OK ? set_sum(s, schema_named("seals"), "sum IS NULL", err) : status;
}

gl_status store_seal_part(store *s, const char *table, const char *which, seal_part before,
                          gl_error *err) {
  seal_part after, all;
  gl_status status = set_sum(s, schema_named(table), which, err);
  if (status == GL_OK) status = store_part_of(s, &after, table, which, err);
  if (status == GL_OK) status = read_seal(s, &all, table, err);
  if (status != GL_OK) return status;
  all.records += after.records - before.records;
  all.content += after.content - before.content;
  return write_seal(s, table, all, err);
}

gl_status store_seal_all(store *s, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = 0; schema_at(i) != NULL && status == GL_OK; ++i)
    if (schema_at(i)->kind == TABLE_ALONE) status = store_seal(s, schema_at(i)->name, err);
  return status;
}
