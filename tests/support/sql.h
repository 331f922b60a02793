/* Changing a study behind the program's back. */
#ifndef GEPOLAB_TESTS_SUPPORT_SQL_H
#define GEPOLAB_TESTS_SUPPORT_SQL_H

/* Runs statements on a database file, and fails the test where SQLite refuses one. Returns how many
 * rows the last of them changed. */
int run_sql(const char *path, const char *sql);

#endif
