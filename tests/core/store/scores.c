/* Scores of tuning runs: found by key and recipe, replaced, absent. */
#include "core/store/store.h"

#include "tests/support/core.h"
#include "tests/support/suite.h"

SUITE("core: tuning scores");

static const char key[] = "00000000000000000000000000000001";

static gl_status put(store *s, const char *of, double score, gl_error *err) {
  return store_put_score(s, &(score_record){of, "{}", score, 2.5, "2026-11-22T08:30:00Z"}, err);
}

TEST(a_score_is_found_by_its_key_and_recipe) {
  scratch f;
  char path[SCRATCH_PATH_SIZE];
  double score = -1;
  scratch_make(&f);
  store *s = store_opened(scratch_path(&f, "s.db", path), STORE_WRITE);
  CU_ASSERT(!store_get_score(s, key, "{}", &score));
  CU_ASSERT_EQUAL(put(s, key, 0.75, NULL), GL_OK);
  CU_ASSERT(store_get_score(s, key, "{}", &score));
  CU_ASSERT_EQUAL(score, 0.75);
  /* Another recipe of the same key (which a hash could have) has no score. */
  score = -1;
  CU_ASSERT(!store_get_score(s, key, "{\"seed\":1}", &score));
  CU_ASSERT(!store_get_score(s, "00000000000000000000000000000002", "{}", &score));
  CU_ASSERT_EQUAL(score, -1);
  CU_ASSERT_EQUAL(put(s, key, -2.5, NULL), GL_OK);
  store_close(s);
  s = store_opened(path, STORE_READ);
  CU_ASSERT(store_get_score(s, key, "{}", &score));
  CU_ASSERT_EQUAL(score, -2.5);
  CU_ASSERT_EQUAL(store_number(s, "SELECT count(*) FROM tuning_scores"), 1);
  store_close(s);
  scratch_remove(&f);
}

TEST(a_study_that_is_read_only_keeps_its_scores) {
  scratch f;
  char path[SCRATCH_PATH_SIZE];
  double score = -1;
  gl_error err = {0};
  scratch_make(&f);
  store *s = store_opened(scratch_path(&f, "s.db", path), STORE_WRITE);
  CU_ASSERT_EQUAL(put(s, key, 0.75, NULL), GL_OK);
  store_close(s);
  s = store_opened(path, STORE_READ);
  CU_ASSERT_EQUAL(put(s, key, 0.5, &err), GL_EIO);
  CU_ASSERT(err.text[0] != '\0');
  CU_ASSERT(store_get_score(s, key, "{}", &score));
  CU_ASSERT_EQUAL(score, 0.75);
  store_close(s);
  scratch_remove(&f);
}

/* A score that is no number (a run without any evaluation) is as good as none: it is made again. */
TEST(a_score_that_is_no_number_is_not_found) {
  scratch f;
  char path[SCRATCH_PATH_SIZE];
  double score = -1;
  scratch_make(&f);
  store *s = store_opened(scratch_path(&f, "s.db", path), STORE_WRITE);
  CU_ASSERT_EQUAL(put(s, key, NAN, NULL), GL_OK);
  CU_ASSERT(!store_get_score(s, key, "{}", &score));
  CU_ASSERT_EQUAL(score, -1);
  store_close(s);
  scratch_remove(&f);
}
