/* Queries about runs that are no results: origins, costs, one run. */
#include "core/store/about.h"

#include "core/store/internal.h"

#include <math.h>
#include <string.h>

static const char *text_at(sqlite3_stmt *q, int column) {
  return (const char *)sqlite3_column_text(q, column);
}

static const char *text_or_empty(sqlite3_stmt *q, int column) {
  const char *text = text_at(q, column);
  return text != NULL ? text : "";
}

static double about_number_at(sqlite3_stmt *q, int column) {
  return sqlite3_column_type(q, column) == SQLITE_NULL ? NAN : sqlite3_column_double(q, column);
}

static int64_t bytes_at(sqlite3_stmt *q, int column) {
  return sqlite3_column_type(q, column) == SQLITE_NULL ? -1 : sqlite3_column_int64(q, column);
}

/* Columns of provenance p from `at` on, in this order. */
#define PROVENANCE                                                                                 \
  " p.version, p.source, p.dirty, p.command, p.processor, p.system, p.compiler, p.libraries"
enum { N_PROVENANCE = 8 };

static run_provenance provenance_at(sqlite3_stmt *q, int at) {
  return (run_provenance){
      .version = text_or_empty(q, at),
      .source = text_or_empty(q, at + 1),
      .dirty = sqlite3_column_type(q, at + 2) == SQLITE_NULL ? -1 : sqlite3_column_int(q, at + 2),
      .command = text_or_empty(q, at + 3),
      .processor = text_or_empty(q, at + 4),
      .system = text_or_empty(q, at + 5),
      .compiler = text_or_empty(q, at + 6),
      .libraries = text_or_empty(q, at + 7)};
}

/* --- origins --- */

gl_status store_origins(store *s, int (*each)(void *self, const store_origin *origin), void *self,
                        gl_error *err) {
  sqlite3_stmt *q = NULL;
  int code = SQLITE_DONE, goes_on = 1;
  static const char sql[] =
      "WITH made(provenance, finished, code_version, run) AS (SELECT provenance, finished,"
      " code_version, 1 FROM runs UNION ALL SELECT provenance, finished, '', 0 FROM laboratory"
      " WHERE provenance IS NOT NULL) SELECT" PROVENANCE ", sum(r.run), min(r.finished),"
      " max(r.finished), p.hash IS NOT NULL, r.code_version, sum(1 - r.run) FROM made r LEFT JOIN"
      " provenance p ON p.hash = r.provenance GROUP BY p.hash, CASE WHEN p.hash IS NULL THEN"
      " r.code_version END ORDER BY sum(r.run) DESC, min(r.finished), p.hash, r.code_version";
  gl_status status = store_prepare(s, &q, sql, err);
  if (status != GL_OK) return status;
  while (goes_on && (code = sqlite3_step(q)) == SQLITE_ROW) {
    store_origin o = {.how = provenance_at(q, 0),
                      .runs = (size_t)sqlite3_column_int64(q, N_PROVENANCE),
                      .first = text_at(q, N_PROVENANCE + 1),
                      .last = text_at(q, N_PROVENANCE + 2),
                      .known = sqlite3_column_int(q, N_PROVENANCE + 3),
                      .measured = (size_t)sqlite3_column_int64(q, N_PROVENANCE + 5)};
    if (!o.known) o.how.version = text_or_empty(q, N_PROVENANCE + 4);
    goes_on = each(self, &o);
  }
  if (goes_on && code != SQLITE_DONE) status = store_fail(s, code, "reading", err);
  sqlite3_finalize(q);
  return status;
}

/* --- costs --- */

/* The median of n is the mean of those at (n + 1) / 2 and (n + 2) / 2, of an odd n one and the
 * same. Seeds are 64 bits without a sign: those that SQLite holds as negative are the largest. */
static const char costs[] =
    "WITH o AS (SELECT study, algorithm, ordinal, seed, wall_s, peak_bytes, row_number() OVER w AS"
    " i, count(wall_s) OVER (PARTITION BY study, algorithm) AS n FROM runs WINDOW w AS (PARTITION "
    "BY"
    " study, algorithm ORDER BY wall_s IS NULL, wall_s)) SELECT study, algorithm, count(*),"
    " sum(wall_s), avg(CASE WHEN i IN ((n + 1) / 2, (n + 2) / 2) THEN wall_s END), max(wall_s),"
    " max(peak_bytes), count(DISTINCT seed), coalesce(min(CASE WHEN seed >= 0 THEN seed END),"
    " min(seed)), coalesce(max(CASE WHEN seed < 0 THEN seed END), max(seed)) FROM o GROUP BY study,"
    " algorithm ORDER BY study, min(ordinal), algorithm";

gl_status store_costs(store *s, int (*each)(void *self, const store_cost *cost), void *self,
                      gl_error *err) {
  sqlite3_stmt *q = NULL;
  int code = SQLITE_DONE, goes_on = 1;
  gl_status status = store_prepare(s, &q, costs, err);
  if (status != GL_OK) return status;
  while (goes_on && (code = sqlite3_step(q)) == SQLITE_ROW) {
    const store_cost c = {.study = text_or_empty(q, 0),
                          .algorithm = text_or_empty(q, 1),
                          .runs = (size_t)sqlite3_column_int64(q, 2),
                          .wall_s = about_number_at(q, 3),
                          .median_s = about_number_at(q, 4),
                          .largest_s = about_number_at(q, 5),
                          .peak_bytes = bytes_at(q, 6),
                          .seeds = (size_t)sqlite3_column_int64(q, 7),
                          .least_seed = (uint64_t)sqlite3_column_int64(q, 8),
                          .largest_seed = (uint64_t)sqlite3_column_int64(q, 9)};
    goes_on = each(self, &c);
  }
  if (goes_on && code != SQLITE_DONE) status = store_fail(s, code, "reading", err);
  sqlite3_finalize(q);
  return status;
}

/* --- one run --- */

enum { NAMED = 4 }; /* keys that a message lists */

/* *id: of the only run whose key begins so. */
static gl_status about_find_one(store *s, const char *prefix, int64_t *id, gl_error *err) {
  sqlite3_stmt *q = NULL;
  char keys[256] = "";
  size_t n = 0;
  int code;
  gl_status status = store_prepare(
      s, &q, "SELECT id, key FROM runs WHERE substr(key, 1, length(?1)) = ?1 ORDER BY key", err);
  if (status != GL_OK) return status;
  store_bind_text(q, 1, prefix);
  while ((code = sqlite3_step(q)) == SQLITE_ROW) {
    const size_t used = strlen(keys);
    *id = sqlite3_column_int64(q, 0);
    if (n++ < NAMED)
      snprintf(keys + used, sizeof keys - used, "%s%.40s", n > 1 ? ", " : "", text_or_empty(q, 1));
  }
  if (code != SQLITE_DONE) status = store_fail(s, code, "reading", err);
  sqlite3_finalize(q);
  if (status != GL_OK || n == 1) return status;
  if (n == 0)
    return gl_fail(
        err, GL_EINPUT,
        "no run of %s has a key that begins with '%s'; `gepolab study export --table runs` "
        "lists the keys",
        s->path, prefix);
  return gl_fail(err, GL_EINPUT,
                 "%zu runs of %s have keys that begin with '%s': %s%s; give more "
                 "of the one you mean",
                 n, s->path, prefix, keys, n > NAMED ? ", …" : "");
}

static const char one_run[] =
    "SELECT r.key, r.place, r.study, r.algorithm, r.swept, r.chosen, r.recipe, r.ordinal, "
    "r.meaning,"
    " r.seed, r.lr, r.wall_s, r.status, r.reason, r.code_version, r.machine, r.finished,"
    " r.peak_bytes, x.by, (SELECT count(*) FROM steps t WHERE t.run = r.id), (SELECT count(*) FROM"
    " evals t WHERE t.run = r.id), (SELECT eval_score FROM evals t WHERE t.run = r.id ORDER BY step"
    " LIMIT 1), (SELECT max(eval_score) FROM evals t WHERE t.run = r.id), (SELECT eval_score FROM"
    " evals t WHERE t.run = r.id ORDER BY step DESC LIMIT 1), p.hash IS NOT NULL," PROVENANCE
    ", r.in_effect"
    " FROM runs r LEFT JOIN superseded x ON x.key = r.key LEFT JOIN provenance p ON p.hash ="
    " r.provenance WHERE r.id = ?1";

static store_run run_at(sqlite3_stmt *q) {
  return (store_run){.key = text_or_empty(q, 0),
                     .place = text_or_empty(q, 1),
                     .study = text_or_empty(q, 2),
                     .algorithm = text_or_empty(q, 3),
                     .swept = text_or_empty(q, 4),
                     .chosen = text_at(q, 5),
                     .recipe = text_or_empty(q, 6),
                     .ordinal = sqlite3_column_int64(q, 7),
                     .meaning = sqlite3_column_int64(q, 8),
                     .seed = (uint64_t)sqlite3_column_int64(q, 9),
                     .lr = about_number_at(q, 10),
                     .wall_s = about_number_at(q, 11),
                     .status = text_or_empty(q, 12),
                     .reason = text_or_empty(q, 13),
                     .code_version = text_or_empty(q, 14),
                     .machine = text_or_empty(q, 15),
                     .finished = text_at(q, 16),
                     .peak_bytes = bytes_at(q, 17),
                     .superseded_by = text_at(q, 18),
                     .n_steps = (size_t)sqlite3_column_int64(q, 19),
                     .n_evals = (size_t)sqlite3_column_int64(q, 20),
                     .eval_first = about_number_at(q, 21),
                     .eval_best = about_number_at(q, 22),
                     .eval_last = about_number_at(q, 23),
                     .has_provenance = sqlite3_column_int(q, 24),
                     .provenance = provenance_at(q, 25),
                     .in_effect = text_at(q, 25 + N_PROVENANCE)};
}

gl_status store_find_run(store *s, const char *prefix, void (*found)(void *self, const store_run *),
                         void *self, gl_error *err) {
  sqlite3_stmt *q = NULL;
  int64_t id = 0;
  gl_status status = about_find_one(s, prefix, &id, err);
  if (status == GL_OK) status = store_prepare(s, &q, one_run, err);
  if (status != GL_OK) return status;
  sqlite3_bind_int64(q, 1, id);
  const int code = sqlite3_step(q);
  if (code == SQLITE_ROW) {
    const store_run run = run_at(q);
    found(self, &run);
  } else {
    status = store_fail(s, code, "reading", err);
  }
  sqlite3_finalize(q);
  return status;
}
