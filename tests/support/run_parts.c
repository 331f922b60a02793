/* Tables of records of runs. */
#include "tests/support/run_parts.h"

#include "core/store/store.h"
#include "tests/support/sql.h"
#include "tests/support/suite.h"

#include <string.h>

void part_study_make(part_study *f, const run_part *p) {
  scratch_make(&f->at);
  store *s = store_opened(scratch_path(&f->at, "study.db", f->path), STORE_WRITE);
  p->put(s, 1, 0.25);
  store_put_samples(s, 2, 2, 4);
  p->put(s, 3, 0.5);
  store_close(s);
}

gl_status part_verified(const run_part *p, const char *path, gl_error *err) {
  const char *const tables[] = {p->table, NULL};
  store *s = store_opened(path, STORE_READ);
  CU_ASSERT_EQUAL_FATAL(store_begin_reading(s, NULL), GL_OK);
  gl_status status = store_verify(s, tables, err);
  store_end_reading(s);
  store_close(s);
  return status;
}

char *part_exported(const run_part *p) {
  part_study f;
  char *text = NULL;
  size_t size;
  part_study_make(&f, p);
  store *s = store_opened(f.path, STORE_READ);
  FILE *to = open_memstream(&text, &size);
  CU_ASSERT_EQUAL(store_export(s, p->table, "csv", to, NULL), GL_OK);
  fclose(to);
  store_close(s);
  scratch_remove(&f.at);
  return text;
}

static double number_of(store *s, const char *form, const char *word) {
  char sql[128];
  snprintf(sql, sizeof sql, form, word);
  return store_number(s, sql);
}

static double records_in(store *s, const run_part *p) {
  return number_of(s, "SELECT count(*) FROM %s", p->table);
}

void check_runs_without_part_have_no_sum(const run_part *p) {
  part_study f;
  part_study_make(&f, p);
  store *s = store_opened(f.path, STORE_READ);
  CU_ASSERT_EQUAL(records_in(s, p), 2 * (double)p->records);
  CU_ASSERT_EQUAL(number_of(s, "SELECT count(*) FROM runs WHERE %s IS NULL", p->sum), 1);
  CU_ASSERT_EQUAL(number_of(s, "SELECT ordinal FROM runs WHERE %s IS NULL", p->sum), 2);
  store_close(s);
  scratch_remove(&f.at);
}

static void count(void *self, const char *key, const char *text) {
  (void)key, (void)text;
  ++*(int *)self;
}

static void check_damage(const run_part *p, const char *damage) {
  part_study f;
  gl_error err = {0};
  store_removed removed;
  int n = 0;
  part_study_make(&f, p);
  CU_ASSERT_EQUAL(part_verified(p, f.path, &err), GL_OK);
  CU_ASSERT(run_sql(f.path, damage) > 0);
  CU_ASSERT_EQUAL(part_verified(p, f.path, &err), GL_EIO);
  store *s = store_opened(f.path, STORE_READ);
  CU_ASSERT_EQUAL(store_check(s, count, &n, NULL), GL_OK);
  CU_ASSERT(n >= 1);
  store_close(s);
  s = store_opened(f.path, STORE_WRITE);
  CU_ASSERT_EQUAL(store_repair(s, &removed, NULL), GL_OK);
  CU_ASSERT(removed.runs >= 1 && removed.runs <= 2);
  store_close(s);
  CU_ASSERT_EQUAL(part_verified(p, f.path, &err), GL_OK);
  scratch_remove(&f.at);
}

void check_damage_of_part_is_found(const run_part *p, const char *const *damages, size_t n) {
  for (size_t i = 0; i < n; ++i) check_damage(p, damages[i]);
}

void check_part_is_merged(const run_part *p) {
  part_study f;
  char other[SCRATCH_PATH_SIZE];
  gl_error err = {0};
  part_study_make(&f, p);
  store *into = store_opened(scratch_path(&f.at, "other.db", other), STORE_WRITE);
  p->put(into, 3, 0.5);
  p->put(into, 4, 0.5);
  CU_ASSERT_EQUAL(store_merge(into, f.path, &err), GL_OK);
  CU_ASSERT_EQUAL(records_in(into, p), 3 * (double)p->records);
  p->put(into, 3, 0.75);
  CU_ASSERT_EQUAL(store_merge(into, f.path, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, p->disagrees));
  store_close(into);
  CU_ASSERT_EQUAL(part_verified(p, other, &err), GL_OK);
  scratch_remove(&f.at);
}

void check_part_is_salvaged(const run_part *p) {
  part_study f;
  char saved[SCRATCH_PATH_SIZE];
  store_salvaged found;
  part_study_make(&f, p);
  ASSERT_OK(store_salvage(f.path, scratch_path(&f.at, "saved.db", saved), &found, &err));
  CU_ASSERT(found.runs == 3 && found.lost_runs == 0);
  ASSERT_OK(part_verified(p, saved, &err));
  store *s = store_opened(saved, STORE_READ);
  CU_ASSERT_EQUAL(records_in(s, p), 2 * (double)p->records);
  store_close(s);
  scratch_remove(&f.at);
}
