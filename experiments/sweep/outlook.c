/* Reads from a study how fast its cells have finished lately, and what is left. */
#include "experiments/sweep/outlook.h"

#include "core/store/plan.h"
#include "experiments/sweep/costs.h"

#include <math.h>
#include <sqlite3.h>

/* So many runs, the newest ones, say how fast the work goes; where nothing ran for so many seconds,
 * the sweep was stopped, and what lies before says nothing. */
enum { LATELY = 20, PAUSE_S = 60 };

typedef struct recent {
  double begun_s, ended_s; /* of all of them, in seconds since 1970 */
  double work_s;
  size_t n;
} recent;

static gl_status read_recent(recent *out, store *s, const char *study, gl_error *err) {
  static const char sql[] =
      "SELECT CAST(strftime('%s', finished) AS REAL), wall_s FROM runs WHERE study = ?1 AND status"
      " != 'failed' AND finished IS NOT NULL AND wall_s IS NOT NULL ORDER BY finished DESC LIMIT "
      "?2";
  sqlite3_stmt *q = NULL;
  *out = (recent){.begun_s = INFINITY, .ended_s = -INFINITY};
  int code = sqlite3_prepare_v2(store_handle(s), sql, -1, &q, NULL);
  if (code == SQLITE_OK) code = sqlite3_bind_text(q, 1, study, -1, SQLITE_STATIC);
  if (code == SQLITE_OK) code = sqlite3_bind_int(q, 2, LATELY);
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
  gl_status status = code == SQLITE_DONE
                         ? GL_OK
                         : gl_fail(err, GL_EIO, "the times of finished runs cannot be read: %s",
                                   sqlite3_errmsg(store_handle(s)));
  sqlite3_finalize(q);
  return status;
}

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
