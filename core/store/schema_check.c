/* Whether the tables of a file are those of a study, before anything is read from them. */
#include "core/store/internal.h"

#include "core/base/metrics.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const types[] = {
    [COLUMN_INTEGER] = "INTEGER", [COLUMN_REAL] = "REAL", [COLUMN_TEXT] = "TEXT"};

static gl_status refuse(store *s, const char *what, const char *name, gl_error *err) {
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
      status = refuse(s, "it has a column that is not known here", name != NULL ? name : "", err);
    else if (type == NULL || strcasecmp(type, types[c->type]) != 0 || sqlite3_column_int(q, 2) != 0)
      status = refuse(s, "of another type, or computed, is its column", name, err);
  }
  if (status == GL_OK && code != SQLITE_DONE) status = store_fail(s, code, "reading", err);
  sqlite3_finalize(q);
  for (const store_column *c = t->columns; c->name != NULL && status == GL_OK; ++c)
    if (!store_has_column(s, "main", t->name, c->name))
      status = refuse(s, "it lacks the column", c->name, err);
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
      status = refuse(s, "a view or virtual table stands in the place of its table", table, err);
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
    status = refuse(s, what, name != NULL ? name : "", err);
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
      status = refuse(s, "it lacks the table", schema_at(i)->name, err);
  }
  return status;
}
