/* Checksums of a study's records, and validation of values against their columns.
 *
 * The checksum of a record is the sum of the XXH3 hashes of its values, each seeded with the hash
 * of its column's name. NULLs are skipped, so a column added by a later version changes no
 * checksum. The checksum of a run's records in a table is the sum of their mixed record checksums,
 * so it does not depend on their order. Both are computed inside SQLite by functions of this file,
 * which reject invalid values. The strict functions end the query with an error that names table
 * and column. Those called gepolab_try return NULL, for queries that look for all damage. */
#include "core/base/hash.h"
#include "core/base/utf8.h"
#include "core/store/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- one value --- */

/* The columns of a call's values, looked up once from its first two arguments. */
enum { FIRST_VALUE = 2 };
typedef struct row_columns {
  int n;
  const char *table;
  store_column column[SCHEMA_MOST_COLUMNS];
  uint64_t seed[SCHEMA_MOST_COLUMNS];
} row_columns;

/* Returns why the value is invalid in the column; NULL: it is valid. */
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
    return checksum_seeded(seed, &n, sizeof n);
  }
  case COLUMN_REAL: {
    double x = sqlite3_value_double(v);
    if (x == 0) x = 0; /* SQLite does not preserve the sign of zero */
    return checksum_seeded(seed, &x, sizeof x);
  }
  case COLUMN_TEXT:
    return checksum_seeded(seed, sqlite3_value_text(v), (size_t)sqlite3_value_bytes(v));
  }
  return 0;
}

/* --- one record --- */

/* Looks up the columns named by the first two arguments of a call, table and names; returns 0 if
 * one does not exist. */
static int find_columns(row_columns *r, sqlite3_value **arg, int n) {
  const char *table = (const char *)sqlite3_value_text(arg[0]);
  const char *names = (const char *)sqlite3_value_text(arg[1]);
  const store_table *t = table != NULL ? schema_named(table) : NULL;
  char name[128];
  *r = (row_columns){.n = n - FIRST_VALUE};
  if (t == NULL || names == NULL || r->n > SCHEMA_MOST_COLUMNS) return 0;
  r->table = t->name;
  for (int i = 0; i < r->n; ++i) {
    const size_t length = strcspn(names, ",");
    if (length >= sizeof name) return 0;
    memcpy(name, names, length);
    name[length] = '\0';
    if (!schema_column(t, name, &r->column[i])) return 0;
    r->seed[i] = checksum_seeded(0, name, length);
    names += length + (names[length] == ',');
  }
  return 1;
}

static int is_strict(sqlite3_context *call) {
  return sqlite3_user_data(call) == NULL;
}

/* Returns 1 and sets *sum to the record's checksum; otherwise 0, and a strict call has failed. */
static int sum_record(sqlite3_context *call, const row_columns *r, sqlite3_value **value,
                      uint64_t *sum) {
  *sum = 0;
  for (int i = 0; i < r->n; ++i) {
    const char *why = sums_refusal(&r->column[i], value[i]);
    if (why != NULL && !is_strict(call)) return 0;
    if (why != NULL) {
      char text[256];
      snprintf(
          text, sizeof text,
          "the table %s has %s in its column %s; is the file damaged? `gepolab study check` names "
          "all damage",
          r->table, why, r->column[i].name);
      sqlite3_result_error(call, text, -1);
      return 0;
    }
    if (sqlite3_value_type(value[i]) != SQLITE_NULL)
      *sum += hash_value(r->seed[i], &r->column[i], value[i]);
  }
  return 1;
}

/* SQL function gepolab_sum(table, names, values…): the checksum of a record. */
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
  if (sum_record(call, r, arg + FIRST_VALUE, &sum)) sqlite3_result_int64(call, (sqlite3_int64)sum);
  if (!known) sqlite3_set_auxdata(call, 0, r, free);
}

/* SQL function gepolab_rows(table, names, values…): the checksum of all records; 0 if there are
 * none.
 */
typedef struct rows_sum {
  int known, refused; /* the columns have been looked up; some record has an invalid value */
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
  if (sum_record(call, &all->columns, arg + FIRST_VALUE, &sum))
    all->sum += checksum_seeded(1, &sum, sizeof sum);
  else
    all->refused = 1;
}

static void rows_final(sqlite3_context *call) {
  const rows_sum *all = sqlite3_aggregate_context(call, 0);
  if (all != NULL && all->refused) return; /* returns NULL */
  sqlite3_result_int64(call, all != NULL ? (sqlite3_int64)all->sum : 0);
}

int store_sum_functions(sqlite3 *db) {
  const int how = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY;
  const struct {
    const char *row, *rows;
    void *which; /* NULL: the strict functions, which fail on an invalid value; else those that
                    return NULL */
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

/* --- checksums of tables --- */

/* Excludes run numbers, which differ between files, and checksums themselves. */
static int is_summed(const char *name) {
  return strcmp(name, "id") != 0 && strcmp(name, "run") != 0 && strcmp(name, "sum") != 0;
}

static char *sum_expression(store *s, const char *function, const char *schema,
                            const store_table *t, const char *alias) {
  query q;
  char *names = NULL, *values = NULL, *text = NULL, *sql = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&names, &size), *also = open_memstream(&values, &size);
  query_beginf(&q, s, NULL, "SELECT name FROM pragma_table_info(%Q, %Q)", t->name, schema);
  for (int n = 0; to != NULL && also != NULL && query_next(&q);) {
    const char *name = query_get_text(&q, 0);
    if (name == NULL || !is_summed(name)) continue;
    fprintf(to, "%s%s", n++ > 0 ? "," : "", name);
    fprintf(also, ", %s.\"%s\"", alias, name);
  }
  bool whole = query_end(&q) == GL_OK && to != NULL && also != NULL;
  if (to != NULL) whole = fclose(to) == 0 && whole;
  if (also != NULL) whole = fclose(also) == 0 && whole;
  if (whole)
    sql = sqlite3_mprintf("gepolab_%s%s(%Q, %Q%s)", function,
                          t->kind == TABLE_OF_A_RUN ? "rows" : "sum", t->name, names, values);
  if (sql != NULL) text = strdup(sql);
  sqlite3_free(sql);
  free(names), free(values);
  return text;
}

char *store_sum_of(store *s, const char *schema, const store_table *t, const char *alias) {
  return sum_expression(s, "", schema, t, alias);
}

char *store_try_sum_of(store *s, const store_table *t, const char *alias) {
  return sum_expression(s, "try_", "main", t, alias);
}

void store_written_sum(char sql[STORE_SUM_SIZE], const store_table *t) {
  snprintf(sql, STORE_SUM_SIZE, t->optional ? "coalesce(r.sum_%.30s, 0)" : "r.sum_%.30s", t->name);
}

/* Runs UPDATE table SET column = checksum for the records that match `which`. Without records the
 * checksum is 0, or NULL in an optional table. */
static gl_status set_sum(store *s, const store_table *t, const char *which, gl_error *err) {
  static const char doing[] = "writing checksums to";
  char *sum = store_sum_of(s, "main", t, t->kind == TABLE_OF_A_RUN ? "t" : t->name);
  if (sum == NULL) return gl_fail_memory(err, "a checksum");
  gl_status status =
      t->kind == TABLE_OF_A_RUN
          ? store_execf(s, doing, err,
                        "UPDATE runs SET %s = nullif((SELECT %s FROM %s t WHERE t.run = runs.id),"
                        " %s) WHERE %s",
                        t->sum, sum, t->name, t->optional ? "0" : "NULL", which)
          : store_execf(s, doing, err, "UPDATE %s SET sum = %s WHERE %s", t->name, sum, which);
  free(sum);
  return status;
}

gl_status store_seal_runs(store *s, const char *which, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = 0; schema_at(i) != NULL && status == GL_OK; ++i)
    if (schema_at(i)->kind == TABLE_OF_A_RUN) status = set_sum(s, schema_at(i), which, err);
  return status == GL_OK ? set_sum(s, schema_at(0), which, err) : status;
}

/* Updates the table's record in `seals`, the number of records and the sum of their checksums,
 * unless it is up to date. An empty table needs no seal. */
static gl_status seal_table(store *s, const store_table *t, gl_error *err) {
  gl_status status = store_execf(
      s, "writing checksums to", err,
      "INSERT OR REPLACE INTO seals(name, records, content) SELECT t.name, t.n, t.content FROM"
      " (SELECT %Q AS name, count(*) AS n, gepolab_rows(%Q, 'sum', sum) AS content FROM %s) t LEFT"
      " JOIN seals s ON s.name = t.name WHERE t.n != coalesce(s.records, 0) OR t.content !="
      " coalesce(s.content, 0)",
      t->name, t->name, t->name);
  return status == GL_OK ? set_sum(s, schema_named("seals"), "sum IS NULL", err) : status;
}

gl_status store_seal(store *s, const char *table, gl_error *err) {
  const store_table *t = schema_named(table);
  gl_status status = set_sum(s, t, "sum IS NULL", err);
  return status == GL_OK && t->sealed ? seal_table(s, t, err) : status;
}

gl_status store_part_of(store *s, seal_record *out, const char *table, const char *which,
                        gl_error *err) {
  query q;
  query_beginf(&q, s, err, "SELECT count(*), gepolab_rows(%Q, 'sum', sum) FROM %s WHERE %s", table,
               table, which);
  *out = (seal_record){.name = table};
  if (query_next(&q))
    out->records = query_get_integer(&q, 0), out->content = (uint64_t)query_get_integer(&q, 1);
  return query_end(&q);
}

gl_status store_seal_part(store *s, const char *table, const char *which, seal_record before,
                          gl_error *err) {
  seal_record after, all = {.name = table};
  query q;
  gl_status status = set_sum(s, schema_named(table), which, err);
  if (status == GL_OK) status = store_part_of(s, &after, table, which, err);
  if (status != GL_OK) return status;
  query_begin(&q, s, "SELECT records, content FROM seals WHERE name = ?1", err);
  query_bind_text(&q, 1, table);
  if (query_next(&q))
    all.records = query_get_integer(&q, 0), all.content = (uint64_t)query_get_integer(&q, 1);
  status = query_end(&q);
  all.records += after.records - before.records;
  all.content += after.content - before.content;
  if (status == GL_OK) status = store_put_record(s, "seals", "OR REPLACE", &all, err);
  return status == GL_OK ? set_sum(s, schema_named("seals"), "sum IS NULL", err) : status;
}

gl_status store_seal_all(store *s, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = 0; schema_at(i) != NULL && status == GL_OK; ++i)
    if (schema_at(i)->kind == TABLE_ALONE) status = store_seal(s, schema_at(i)->name, err);
  return status;
}
