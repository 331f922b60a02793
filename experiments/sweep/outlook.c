/* Reads from a study how fast its runs have finished lately, and what is left. */
#include "experiments/sweep/outlook.h"

#include "core/store/plan.h"
#include "experiments/sweep/costs.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>

/* So many runs, the newest ones, say how fast the work goes; where nothing ran for so many seconds,
 * the sweep was stopped, and what lies before says nothing. */
enum { LATELY = 20, PAUSE_S = 60 };

typedef struct recent {
  double begun_s, ended_s; /* of all of them, in seconds since 1970 */
  double work_s;
  size_t n;
} recent;

/* Finished runs of the study ?1, those of the grid and those of its tuning: algorithm, swept, when
 * and after how long. On the heap; NULL if memory is short. */
static char *finished_runs(store *s, const char *then) {
  static const char *const names[] = {"finished", "wall_s"};
  char *columns = store_columns(s, "main", "tuning_scores", "t", names, 2);
  char *sql =
      columns != NULL
          ? sqlite3_mprintf("WITH took AS (SELECT t.key, %s FROM tuning_scores t), ended AS (SELECT"
                            " algorithm, swept, finished, wall_s, 0 AS tuning FROM runs WHERE"
                            " study = ?1 AND status != 'failed' UNION ALL SELECT p.algorithm,"
                            " p.swept, x.finished, x.wall_s, 1 FROM plan p JOIN took x ON x.key ="
                            " p.place WHERE p.study = ?1 AND p.tuning = 1) %s",
                            columns, then)
          : NULL;
  free(columns);
  return sql;
}

static gl_status outlook_fail(store *s, gl_error *err) {
  return gl_fail(err, GL_EIO, "the times of finished runs cannot be read: %s",
                 sqlite3_errmsg(store_handle(s)));
}

/* Frees sql. */
static gl_status query(sqlite3_stmt **q, store *s, char *sql, const char *study, gl_error *err) {
  *q = NULL;
  if (sql == NULL) return gl_fail_memory(err, "the times of runs");
  int code = sqlite3_prepare_v2(store_handle(s), sql, -1, q, NULL);
  if (code == SQLITE_OK) code = sqlite3_bind_text(*q, 1, study, -1, SQLITE_STATIC);
  sqlite3_free(sql);
  return code == SQLITE_OK ? GL_OK : outlook_fail(s, err);
}

static gl_status query_end(sqlite3_stmt *q, store *s, int code, gl_status status, gl_error *err) {
  if (status == GL_OK && code != SQLITE_DONE) status = outlook_fail(s, err);
  sqlite3_finalize(q);
  return status;
}

static gl_status read_recent(recent *out, store *s, const char *study, gl_error *err) {
  static const char newest[] =
      "SELECT CAST(strftime('%s', finished) AS REAL), wall_s FROM ended WHERE finished IS NOT NULL"
      " AND wall_s IS NOT NULL ORDER BY finished DESC LIMIT ?2";
  sqlite3_stmt *q = NULL;
  *out = (recent){.begun_s = INFINITY, .ended_s = -INFINITY};
  gl_status status = query(&q, s, finished_runs(s, newest), study, err);
  int code = status == GL_OK ? sqlite3_bind_int(q, 2, LATELY) : SQLITE_DONE;
  if (code == SQLITE_OK) code = sqlite3_step(q);
  for (; code == SQLITE_ROW; code = sqlite3_step(q)) {
    const double ended = sqlite3_column_double(q, 0), took = sqlite3_column_double(q, 1);
    if (ended + PAUSE_S < out->begun_s && out->n > 0) {
      code = SQLITE_DONE;
      break;
    }
    out->begun_s = fmin(out->begun_s, ended - took);
    out->ended_s = fmax(out->ended_s, ended);
    out->work_s += took;
    ++out->n;
  }
  return query_end(q, s, code, status, err);
}

/* --- tuning --- */

/* What tuning runs took, and which of them are to be made. They make as many updates as the runs of
 * the grid. */
static gl_status read_tuning(costs *c, store *s, const char *study, gl_error *err) {
  char *const sql[] = {
      finished_runs(s, "SELECT algorithm, swept, wall_s FROM ended WHERE tuning AND wall_s IS NOT"
                       " NULL"),
      sqlite3_mprintf("SELECT algorithm, swept FROM plan WHERE study = ?1 AND tuning = 1 AND place"
                      " NOT IN (SELECT key FROM tuning_scores)")};
  gl_status status = GL_OK;
  for (int missing = 0; missing < 2; ++missing) {
    sqlite3_stmt *q = NULL;
    if (status != GL_OK) {
      sqlite3_free(sql[missing]);
      continue;
    }
    status = query(&q, s, sql[missing], study, err);
    int code = status == GL_OK ? sqlite3_step(q) : SQLITE_DONE;
    for (; code == SQLITE_ROW && status == GL_OK; code = sqlite3_step(q)) {
      const char *algorithm = (const char *)sqlite3_column_text(q, 0),
                 *swept = (const char *)sqlite3_column_text(q, 1);
      costs_kind *k = algorithm != NULL && swept != NULL ? costs_of(c, algorithm, swept) : NULL;
      if (k == NULL)
        status = gl_fail_memory(err, "the times of runs");
      else if (missing)
        costs_expect(k, 0);
      else
        costs_learn(k, sqlite3_column_double(q, 2), 1);
    }
    status = query_end(q, s, code, status, err);
  }
  return status;
}

/* --- the outlook --- */

static int expect_cell(void *self, const planned_cell *cell) {
  costs_kind *k = costs_of(self, cell->algorithm, cell->swept);
  if (k != NULL) costs_expect(k, 0);
  return k != NULL; /* without memory the estimate ends early */
}

gl_status sweep_outlook_read(sweep_outlook *out, store *s, const char *study, gl_error *err) {
  recent lately;
  *out = (sweep_outlook){.per_s = NAN, .left_s = NAN};
  costs *c = costs_new();
  if (c == NULL) return gl_fail_memory(err, "the times of runs");
  gl_status status = read_recent(&lately, s, study, err);
  if (status == GL_OK) status = costs_read(c, s, study, err);
  if (status == GL_OK) status = read_tuning(c, s, study, err);
  if (status == GL_OK) status = store_missing(s, study, expect_cell, c, err);
  if (status == GL_OK && lately.n >= 2) {
    /* Times of finishing are whole seconds. */
    const double span = fmax(lately.ended_s - lately.begun_s, 1);
    out->per_s = (double)lately.n / span;
    out->left_s = costs_left_s(c) * span / lately.work_s;
  }
  costs_free(c);
  return status;
}
