/* Merges another study file into this one if both files agree on everything they share. */
#include "core/base/file.h"
#include "core/store/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The other study is attached as `other`. */

/* --- consistency of the two files --- */

/* Returns the first record of the query, a text, as an error: the files disagree. `what` precedes
 * it. */
static gl_status refuse_records(query *q, const char *path, const char *what) {
  q->doing = "comparing";
  if (query_next(q))
    q->status = gl_fail(q->err, GL_EINPUT,
                        "%s and %s disagree about %s %s; they come from different versions or"
                        " settings of gepolab, so keep them apart",
                        q->s->path, path, what, query_get_text(q, 0));
  return query_end(q);
}

/* Columns of a run that must be equal in both files, always or if both have finished it. Ordinals
 * may differ, because a grid that has grown numbers its cells anew. */
static const struct {
  const char *column, *words;
  bool finished; /* compare finished runs only */
} of_runs[] = {
    {"recipe", "recipe", false},
    {"study", "study", false},
    {"algorithm", "algorithm", false},
    {"seed", "seed", false},
    {"lr", "learning rate", false},
    {"swept", "swept fields", false},
    {"chosen", "chosen fields", false},
    {"meaning", "meaning of recipes", false},
    {"code_version", "version of gepolab", true},
    {"status", "outcome", true},
};

#define DIFFERING_RUNS                                                                             \
  "SELECT a.key || ' (' || a.algorithm || ', seed ' || a.seed || '): its %s' FROM main.runs a"     \
  " JOIN other.runs b ON a.key = b.key WHERE a.%s %s b.%s%s"
#define BOTH_FINISHED " AND a.status != 'failed' AND b.status != 'failed'"

static gl_status check_runs(store *s, const char *path, gl_error *err) {
  gl_status status = GL_OK;
  query q;
  for (size_t i = 0; i < sizeof of_runs / sizeof *of_runs && status == GL_OK; ++i) {
    char words[64];
    snprintf(words, sizeof words, "%s differs", of_runs[i].words);
    query_beginf(&q, s, err, DIFFERING_RUNS, words, of_runs[i].column, "IS NOT", of_runs[i].column,
                 of_runs[i].finished ? BOTH_FINISHED : "");
    status = refuse_records(&q, path, "run");
  }
  for (size_t i = 0; schema_at(i) != NULL && status == GL_OK; ++i) {
    const store_table *t = schema_at(i);
    char words[64];
    if (t->kind != TABLE_OF_A_RUN) continue;
    /* One file may lack the fates of a run: their checksum is then NULL, which != does not report,
     * unlike IS NOT. */
    snprintf(words, sizeof words, "records in the table %s differ", t->name);
    query_beginf(&q, s, err, DIFFERING_RUNS, words, t->sum,
                 strcmp(t->name, "fates") == 0 ? "!=" : "IS NOT", t->sum, BOTH_FINISHED);
    status = refuse_records(&q, path, "run");
  }
  return status;
}

/* Selects two finished runs of one place if neither file says which supersedes the other. */
static const char places[] =
    "WITH gone(key) AS (SELECT key FROM main.superseded UNION SELECT key FROM other.superseded)"
    " SELECT a.algorithm || ', seed ' || a.seed || ' of ' || a.study || ': one has it with the"
    " chosen fields ' || coalesce(a.chosen, 'none') || ', the other with ' || coalesce(b.chosen,"
    " 'none') FROM main.runs a JOIN other.runs b ON a.place = b.place AND a.study = b.study AND"
    " a.key != b.key WHERE a.status != 'failed' AND b.status != 'failed' AND a.key NOT IN (SELECT"
    " key FROM gone) AND b.key NOT IN (SELECT key FROM gone)";
static const char order_of_places[] =
    "SELECT a.key FROM main.superseded a JOIN other.superseded b ON b.key = a.by AND b.by = a.key";
static const char rates[] = "SELECT a.algorithm FROM main.tuned a JOIN other.tuned b USING(study,"
                            " algorithm) WHERE a.lr IS NOT b.lr";
static const char scores[] = "SELECT a.key FROM main.tuning_scores a JOIN other.tuning_scores b"
                             " USING(key) WHERE a.score IS NOT b.score OR a.recipe IS NOT"
                             " b.recipe";
static const char measurements[] =
    "SELECT a.study FROM main.bias a LEFT JOIN other.bias b USING(study, ordinal) WHERE a.study IN"
    " (SELECT study FROM other.bias) AND a.sum IS NOT b.sum UNION ALL SELECT b.study FROM"
    " other.bias b LEFT JOIN main.bias a USING(study, ordinal) WHERE b.study IN (SELECT study FROM"
    " main.bias) AND a.sum IS NOT b.sum";
/* Shards of one sweep must come from the same recipe. */
static const char parts[] =
    "WITH a AS (SELECT study, recipe_hash FROM main.sweeps WHERE shards > 1), b AS (SELECT study,"
    " recipe_hash FROM other.sweeps WHERE shards > 1) SELECT study FROM (SELECT * FROM (SELECT *"
    " FROM a EXCEPT SELECT * FROM b) UNION ALL SELECT * FROM (SELECT * FROM b EXCEPT SELECT * FROM"
    " a)) WHERE study IN (SELECT study FROM a) AND study IN (SELECT study FROM b)";

static gl_status check_agreement(store *s, const char *path, gl_error *err) {
  static const struct {
    const char *sql, *what;
  } checks[] = {{parts, "the recipe of the sweep that they are parts of,"},
                {places, "the cell"},
                {order_of_places, "which run superseded the other, run"},
                {rates, "the learning rate of"},
                {scores, "the score of tuning run"},
                {measurements, "the measurements of the laboratory's study"}};
  gl_status status = check_runs(s, path, err);
  for (size_t i = 0; i < sizeof checks / sizeof *checks && status == GL_OK; ++i) {
    query q;
    query_begin(&q, s, checks[i].sql, err);
    status = refuse_records(&q, path, checks[i].what);
  }
  return status;
}

/* --- copying --- */

/* The columns of a table to copy, as names and as SQL that selects them in the other file, which
 * may have fewer metrics. The number of a run is not copied, because every file numbers its runs
 * itself. */
static gl_status column_texts(char **names, char **there, store *s, const store_table *t,
                              gl_error *err) {
  store_column column[SCHEMA_MOST_COLUMNS];
  const char *name[SCHEMA_MOST_COLUMNS];
  size_t n = 0, size = 0;
  *names = *there = NULL;
  for (size_t i = 0; i < schema_columns(t); ++i) {
    column[n] = schema_column_at(t, i);
    name[n] = column[n].name;
    n += strcmp(name[n], "id") != 0 && column[n].member != MEMBER_RUN;
  }
  FILE *to = open_memstream(names, &size);
  for (size_t k = 0; k < n && to != NULL; ++k) fprintf(to, "%s\"%s\"", k > 0 ? ", " : "", name[k]);
  const bool whole = to != NULL && fclose(to) == 0;
  *there = store_columns(s, "other", t->name, "t", name, n);
  return whole && *there != NULL ? GL_OK : gl_fail_memory(err, "a table's columns");
}

static gl_status copy_table(store *s, const store_table *t, gl_error *err) {
  static const char doing[] = "merging into";
  char *names = NULL, *there = NULL;
  gl_status status = column_texts(&names, &there, s, t, err);
  if (status == GL_OK) {
    switch (t->kind) {
    case TABLE_OF_RUNS:
      status = store_execf(s, doing, err,
                           "INSERT INTO main.runs(%s) SELECT %s FROM other.runs t JOIN wanted w ON"
                           " w.old = t.id ORDER BY t.id",
                           names, there);
      break;
    case TABLE_OF_A_RUN:
      status = store_execf(s, doing, err,
                           "INSERT INTO main.%s(run, %s) SELECT r.id, %s FROM other.%s t JOIN"
                           " wanted w ON w.old = t.run JOIN (SELECT id, key FROM main.runs) r"
                           " ON r.key = w.key",
                           t->name, names, there, t->name);
      break;
    case TABLE_ALONE:
      status =
          store_execf(s, doing, err, "INSERT OR IGNORE INTO main.%s(%s) SELECT %s FROM other.%s t",
                      t->name, names, there, t->name);
      break;
    }
  }
  free(names), free(there);
  return status;
}

/* Runs inside a transaction, so that the temporary table is also removed after a failure. */
static gl_status copy_attached(store *s, const char *path, gl_error *err) {
  static const char wanted[] =
      "CREATE TEMP TABLE wanted AS SELECT b.id AS old, b.key AS key FROM other.runs b LEFT JOIN "
      "main.runs a ON a.key = b.key WHERE a.key IS NULL OR (a.status = 'failed' AND b.status != "
      "'failed');"
      "DELETE FROM main.runs WHERE key IN (SELECT key FROM wanted);";
  gl_status status = check_agreement(s, path, err);
  if (status == GL_OK) status = store_exec(s, wanted, "merging into", err);
  for (size_t i = 0; schema_at(i) != NULL && status == GL_OK; ++i)
    if (strcmp(schema_at(i)->name, "seals") != 0) status = copy_table(s, schema_at(i), err);
  if (status == GL_OK) status = store_seal_all(s, err);
  if (status == GL_OK) status = store_exec(s, "DROP TABLE wanted", "merging into", err);
  return status;
}

/* --- attaching the other file --- */

/* Copies the other study in one snapshot to a temporary SQLite file and verifies it, so that it
 * cannot change while it is compared and merged. */
static gl_status attach_copy(store *into, store *other, gl_error *err) {
  gl_status status = store_exec(into, "ATTACH '' AS other", "merging into", err);
  if (status != GL_OK) return status;
  sqlite3_backup *b = sqlite3_backup_init(into->db, "other", other->db, "main");
  int code = b != NULL ? sqlite3_backup_step(b, -1) : sqlite3_errcode(into->db);
  sqlite3_backup_finish(b);
  return code == SQLITE_DONE ? GL_OK : store_fail(other, code, "reading", err);
}

gl_status store_merge(store *into, const char *path, gl_error *err) {
  if (file_same(into->path, path))
    return gl_fail(err, GL_EINPUT, "%s cannot be merged into itself; give another study", path);
  store *other = NULL;
  gl_status status = store_open(&other, path, STORE_READ, err);
  if (status == GL_OK) status = store_begin_reading(other, err);
  if (status == GL_OK) status = store_verify(other, NULL, err);
  if (status == GL_OK) status = attach_copy(into, other, err);
  if (other != NULL) store_end_reading(other);
  store_close(other);
  if (status == GL_OK) status = store_begin(into, err);
  if (status == GL_OK) status = store_verify(into, NULL, err);
  if (status == GL_OK || sqlite3_get_autocommit(into->db) == 0)
    status = store_end(into, status == GL_OK ? copy_attached(into, path, err) : status, err);
  sqlite3_exec(into->db, "DETACH other", NULL, NULL, NULL);
  return status;
}
