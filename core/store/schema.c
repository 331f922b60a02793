/* The tables of a study: their columns, what these may hold, and whether those of a file are such.
 */
#include "core/base/metrics.h"
#include "core/store/internal.h"
#include "core/store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --- columns --- */

/* Longest texts: of names and keys, of sentences and command lines, of recipes. */
#define NAME_BYTES 4096
#define WORDS_BYTES (1 << 20)
#define RECIPE_BYTES (16 << 20)
#define MANY ((int64_t)1 << 53) /* a double counts that far */

#define COLUMN(name, type, needed, least, most)                                                    \
  { name, COLUMN_##type, needed, least, most }
#define WHOLE(name, least, most) COLUMN(name, INTEGER, true, least, most)
#define WHOLE_OR_NULL(name, least, most) COLUMN(name, INTEGER, false, least, most)
#define NUMBER(name) COLUMN(name, REAL, false, 0, 0)
#define TEXT(name, most) COLUMN(name, TEXT, true, 0, most)
#define TEXT_OR_NULL(name, most) COLUMN(name, TEXT, false, 0, most)
#define NAME(name) COLUMN(name, TEXT, true, 1, NAME_BYTES)
#define SUM(name) COLUMN(name, INTEGER, true, INT64_MIN, INT64_MAX)
#define SUM_OR_NULL(name) COLUMN(name, INTEGER, false, INT64_MIN, INT64_MAX)
#define SEED(name) SUM(name) /* 64 bits, as they are */
#define RUN WHOLE("run", 1, INT64_MAX)
#define END COLUMN(NULL, TEXT, false, 0, 0)

static const store_column runs_columns[] = {WHOLE("id", 1, INT64_MAX),
                                            NAME("key"),
                                            WHOLE("ordinal", 0, MANY),
                                            NAME("study"),
                                            NAME("algorithm"),
                                            TEXT("swept", RECIPE_BYTES),
                                            TEXT_OR_NULL("chosen", RECIPE_BYTES),
                                            WHOLE("meaning", 0, INT32_MAX),
                                            SEED("seed"),
                                            NUMBER("lr"),
                                            NAME("status"),
                                            TEXT("reason", WORDS_BYTES),
                                            TEXT("recipe", RECIPE_BYTES),
                                            TEXT_OR_NULL("in_effect", RECIPE_BYTES),
                                            TEXT("code_version", NAME_BYTES),
                                            TEXT("machine", NAME_BYTES),
                                            NUMBER("wall_s"),
                                            NAME("place"),
                                            TEXT_OR_NULL("provenance", NAME_BYTES),
                                            TEXT_OR_NULL("finished", NAME_BYTES),
                                            WHOLE_OR_NULL("peak_bytes", 0, INT64_MAX),
                                            SUM("sum_steps"),
                                            SUM("sum_evals"),
                                            SUM("sum_staleness"),
                                            SUM("sum_clock"),
                                            SUM("sum"),
                                            SUM_OR_NULL("sum_set_evals"),
                                            SUM_OR_NULL("sum_fates"),
                                            END};
static const store_column steps_columns[] = {RUN,
                                             WHOLE("step", 0, MANY),
                                             WHOLE_OR_NULL("sampler", -1, INT32_MAX),
                                             NUMBER("time_s"),
                                             NUMBER("wait_s"),
                                             END};
static const store_column evals_columns[] = {RUN, WHOLE("step", 0, MANY), NUMBER("time_s"),
                                             NUMBER("eval_score"), END};
static const store_column set_evals_columns[] = {
    RUN,
    WHOLE("place", 0, INT32_MAX),
    WHOLE("half", 0, 2),
    WHOLE("step", 0, MANY),
    COLUMN("eval_set", TEXT, true, 1, STORE_SET_NAME_SIZE - 1),
    NUMBER("time_s"),
    NUMBER("eval_score"),
    END};
static const store_column staleness_columns[] = {RUN, WHOLE("staleness", 0, STORE_MAX_STALENESS),
                                                 WHOLE("count", 0, INT64_MAX), END};
static const store_column fates_columns[] = {RUN,
                                             COLUMN("fate", TEXT, true, 1, STORE_FATE_SIZE - 1),
                                             WHOLE("quarter", 1, STORE_QUARTERS),
                                             WHOLE("tokens_from", 1, MANY),
                                             WHOLE("responses", 1, MANY),
                                             NUMBER("tokens"),
                                             NUMBER("reward"),
                                             END};
#define CLOCK_COLUMN(name, unit, meaning) NUMBER(#name),
static const store_column clock_columns[] = {RUN, CLOCK_RECORD(CLOCK_COLUMN) END};
static const store_column tuned_columns[] = {NAME("study"),   NAME("algorithm"), NUMBER("lr"),
                                             NUMBER("score"), SUM("sum"),        END};
static const store_column scores_columns[] = {NAME("key"),
                                              TEXT("recipe", RECIPE_BYTES),
                                              NUMBER("score"),
                                              NUMBER("wall_s"),
                                              TEXT_OR_NULL("finished", NAME_BYTES),
                                              SUM("sum"),
                                              END};
static const store_column bias_columns[] = {NAME("study"),
                                            WHOLE("ordinal", 0, MANY),
                                            TEXT_OR_NULL("algorithm", NAME_BYTES),
                                            TEXT_OR_NULL("method", NAME_BYTES),
                                            NUMBER("group_size"),
                                            NUMBER("kl_exact"),
                                            NUMBER("kl_exact_qp"),
                                            NUMBER("staleness"),
                                            NUMBER("groups"),
                                            NUMBER("bias"),
                                            NUMBER("cosine"),
                                            NUMBER("scaled_bias"),
                                            NUMBER("variance"),
                                            NUMBER("mse"),
                                            NUMBER("scaled_mse"),
                                            NUMBER("snr"),
                                            NUMBER("iw_mean"),
                                            NUMBER("iw_variance"),
                                            NUMBER("aw_variance"),
                                            NUMBER("ess"),
                                            SUM("sum"),
                                            END};
static const store_column sweeps_columns[] = {NAME("study"),
                                              NAME("recipe_hash"),
                                              WHOLE("shard", 0, INT32_MAX),
                                              WHOLE("shards", 1, INT32_MAX),
                                              TEXT("recipe", RECIPE_BYTES),
                                              SUM("sum"),
                                              END};
static const store_column plan_columns[] = {NAME("study"),
                                            WHOLE("tuning", 0, 1),
                                            NAME("place"),
                                            WHOLE("ordinal", 0, MANY),
                                            NAME("algorithm"),
                                            SEED("seed"),
                                            TEXT("swept", RECIPE_BYTES),
                                            SUM("sum"),
                                            END};
static const store_column superseded_columns[] = {NAME("key"), NAME("by"), SUM("sum"), END};
static const store_column provenance_columns[] = {NAME("hash"),
                                                  TEXT("version", NAME_BYTES),
                                                  TEXT("source", NAME_BYTES),
                                                  WHOLE_OR_NULL("dirty", 0, 1),
                                                  TEXT("command", WORDS_BYTES),
                                                  TEXT("processor", NAME_BYTES),
                                                  TEXT("system", NAME_BYTES),
                                                  TEXT("compiler", NAME_BYTES),
                                                  TEXT("libraries", WORDS_BYTES),
                                                  SUM("sum"),
                                                  END};

static const store_column laboratory_columns[] = {NAME("study"),
                                                  TEXT_OR_NULL("provenance", NAME_BYTES),
                                                  TEXT_OR_NULL("finished", NAME_BYTES),
                                                  NUMBER("wall_s"),
                                                  SUM("sum"),
                                                  END};
static const store_column seals_columns[] = {NAME("name"), WHOLE("records", 0, MANY),
                                             SUM("content"), SUM("sum"), END};

static const store_table tables[] = {
    {"runs", TABLE_OF_RUNS, runs_columns, NULL, false, false},
    {"steps", TABLE_OF_A_RUN, steps_columns, "run, step", false, false},
    {"evals", TABLE_OF_A_RUN, evals_columns, "run, step", false, false},
    {"set_evals", TABLE_OF_A_RUN, set_evals_columns, "run, place, half, step", false, true},
    {"staleness", TABLE_OF_A_RUN, staleness_columns, "run, staleness", false, false},
    {"fates", TABLE_OF_A_RUN, fates_columns, "run, fate, quarter, tokens_from", false, true},
    {"clock", TABLE_OF_A_RUN, clock_columns, NULL, false, false},
    {"tuned", TABLE_ALONE, tuned_columns, "study, algorithm", true, false},
    {"tuning_scores", TABLE_ALONE, scores_columns, "key", true, false},
    {"bias", TABLE_ALONE, bias_columns, "study, ordinal", true, false},
    {"sweeps", TABLE_ALONE, sweeps_columns, "study, recipe_hash, shards, shard", true, false},
    {"plan", TABLE_ALONE, plan_columns, "study, tuning, place", true, false},
    {"superseded", TABLE_ALONE, superseded_columns, "key", true, false},
    {"provenance", TABLE_ALONE, provenance_columns, "hash", true, false},
    {"laboratory", TABLE_ALONE, laboratory_columns, "study", true, false},
    {"seals", TABLE_ALONE, seals_columns, "name", false, false},
};

const store_table *schema_at(size_t i) {
  return i < sizeof tables / sizeof *tables ? &tables[i] : NULL;
}

const store_table *schema_named(const char *name) {
  for (size_t i = 0; schema_at(i) != NULL; ++i)
    if (strcmp(tables[i].name, name) == 0) return &tables[i];
  return NULL;
}

const store_column *schema_column(const store_table *t, const char *name) {
  static const store_column measured = NUMBER("metric");
  for (const store_column *c = t->columns; c->name != NULL; ++c)
    if (strcmp(c->name, name) == 0) return c;
  return t->columns == steps_columns && metric_find(name) != METRIC_COUNT ? &measured : NULL;
}

/* SQL --- */

static const char *const type_names[] = {
    [COLUMN_INTEGER] = "INTEGER", [COLUMN_REAL] = "REAL", [COLUMN_TEXT] = "TEXT"};

/* What a column may hold is checked as it is read, not by SQLite. */
static void put_column(FILE *to, const store_table *t, const store_column *c) {
  const int first = c == t->columns;
  fprintf(to, "%s\"%s\" %s", first ? "" : ", ", c->name, type_names[c->type]);
  if (first && t->key == NULL) fputs(" PRIMARY KEY", to);
  if (first && t->kind == TABLE_OF_A_RUN) fputs(" REFERENCES runs(id) ON DELETE CASCADE", to);
  if (t->kind == TABLE_OF_RUNS && strcmp(c->name, "key") == 0) fputs(" NOT NULL UNIQUE", to);
}

static void schema_put_table(FILE *to, const store_table *t) {
  fprintf(to, "CREATE TABLE %s(", t->name);
  for (const store_column *c = t->columns; c->name != NULL; ++c) put_column(to, t, c);
  for (int m = 0; m < METRIC_COUNT && t->columns == steps_columns; ++m)
    fprintf(to, ", \"%s\" REAL", metric_about((metric)m)->name);
  if (t->key != NULL)
    fprintf(to, ", PRIMARY KEY(%s)) WITHOUT ROWID;", t->key);
  else
    fputs(");", to);
}

char *schema_sql(void) {
  char *text = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&text, &size);
  if (to == NULL) return NULL;
  for (size_t i = 0; schema_at(i) != NULL; ++i) schema_put_table(to, schema_at(i));
  fputs(SCHEMA_INDEX ";", to);
  if (fclose(to) == 0) return text;
  free(text);
  return NULL;
}

/* --- whether the tables of a file are those of a study, before anything is read from them --- */

static const char *const types[] = {
    [COLUMN_INTEGER] = "INTEGER", [COLUMN_REAL] = "REAL", [COLUMN_TEXT] = "TEXT"};

static gl_status schema_refuse(store *s, const char *what, const char *name, gl_error *err) {
  return gl_fail(err, GL_EIO,
                 "%s is not a study that gepolab wrote: %s '%.80s'; restore a copy, or take away "
                 "what was added",
                 s->path, what, name);
}

/* Columns of the table in the file: none computed, none of another type, none unknown. */
static gl_status check_columns(store *s, const store_table *t, gl_error *err) {
  sqlite3_stmt *q = NULL;
  int code = SQLITE_DONE;
  gl_status status =
      store_prepare(s, &q, "SELECT name, type, hidden FROM pragma_table_xinfo(?1, 'main')", err);
  if (status != GL_OK) return status;
  store_bind_text(q, 1, t->name);
  while (status == GL_OK && (code = sqlite3_step(q)) == SQLITE_ROW) {
    const char *name = (const char *)sqlite3_column_text(q, 0);
    const char *type = (const char *)sqlite3_column_text(q, 1);
    const store_column *c = name != NULL ? schema_column(t, name) : NULL;
    if (c == NULL)
      status =
          schema_refuse(s, "it has a column that is not known here", name != NULL ? name : "", err);
    else if (type == NULL || strcasecmp(type, types[c->type]) != 0 || sqlite3_column_int(q, 2) != 0)
      status = schema_refuse(s, "of another type, or computed, is its column", name, err);
  }
  if (status == GL_OK && code != SQLITE_DONE) status = store_fail(s, code, "reading", err);
  sqlite3_finalize(q);
  for (const store_column *c = t->columns; c->name != NULL && status == GL_OK; ++c)
    if (!store_has_column(s, "main", t->name, c->name))
      status = schema_refuse(s, "it lacks the column", c->name, err);
  return status;
}

/* *is: 1 an ordinary table; 0 nothing of that name. A view or a virtual table is refused. */
static gl_status check_kind(store *s, const char *table, int *is, gl_error *err) {
  sqlite3_stmt *q = NULL;
  *is = 0;
  gl_status status = store_prepare(
      s, &q,
      "SELECT type, name FROM pragma_table_list WHERE schema = 'main' AND name = ?1 COLLATE"
      " NOCASE",
      err);
  if (status != GL_OK) return status;
  store_bind_text(q, 1, table);
  const int code = sqlite3_step(q);
  if (code == SQLITE_ROW) {
    const char *type = (const char *)sqlite3_column_text(q, 0);
    const char *name = (const char *)sqlite3_column_text(q, 1);
    *is = type != NULL && name != NULL && strcmp(type, "table") == 0 && strcmp(name, table) == 0;
    if (!*is)
      status =
          schema_refuse(s, "a view or virtual table stands in the place of its table", table, err);
  } else if (code != SQLITE_DONE)
    status = store_fail(s, code, "reading", err);
  sqlite3_finalize(q);
  return status;
}

/* Triggers and views of others, and indices that SQLite did not make itself: a study has none, and
 * what they compute would run when it is read or written. */
static gl_status check_others(store *s, gl_error *err) {
  sqlite3_stmt *q = NULL;
  gl_status status = store_prepare(
      s, &q,
      "SELECT type, name FROM sqlite_schema WHERE type IN ('trigger', 'view') OR (type = 'index'"
      " AND sql IS NOT NULL AND sql != '" SCHEMA_INDEX "')",
      err);
  if (status != GL_OK) return status;
  const int code = sqlite3_step(q);
  if (code == SQLITE_ROW) {
    const char *type = (const char *)sqlite3_column_text(q, 0);
    const char *name = (const char *)sqlite3_column_text(q, 1);
    char what[64];
    snprintf(what, sizeof what, "a study has no %.20s such as", type != NULL ? type : "object");
    status = schema_refuse(s, what, name != NULL ? name : "", err);
  } else if (code != SQLITE_DONE)
    status = store_fail(s, code, "reading", err);
  sqlite3_finalize(q);
  return status;
}

gl_status store_check_schema(store *s, gl_error *err) {
  gl_status status = check_others(s, err);
  for (size_t i = 0; schema_at(i) != NULL && status == GL_OK; ++i) {
    int is = 0;
    status = check_kind(s, schema_at(i)->name, &is, err);
    if (status != GL_OK) break;
    if (is)
      status = check_columns(s, schema_at(i), err);
    else
      status = schema_refuse(s, "it lacks the table", schema_at(i)->name, err);
  }
  return status;
}
