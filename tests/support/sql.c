/* Statements on a database file. */
#include "tests/support/sql.h"

#include "tests/support/suite.h"

#include <sqlite3.h>

int run_sql(const char *path, const char *sql) {
  sqlite3 *db = NULL;
  char *why = NULL;
  CU_ASSERT_EQUAL_FATAL(sqlite3_open(path, &db), SQLITE_OK);
  if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK) {
    fprintf(stderr, "%s: %s\n", sql, why);
    CU_FAIL("SQL of a test");
  }
  sqlite3_free(why);
  const int changed = sqlite3_changes(db);
  sqlite3_close(db);
  return changed;
}
