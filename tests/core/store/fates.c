/* Fates of responses: stored, exported, merged, checked, repaired and salvaged; and runs that have
 * none are the records they were before. */
#include "core/store/store.h"
#include "tests/support/run_parts.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("core: fates of responses");

enum { RECORDS = 4 };

/* A run of which four kinds of responses were drawn. */
static void put(store *s, int ordinal, double reward) {
  static sample_run sample;
  const fate_record fates[RECORDS] = {{"trained", 1, 1, 10, 10, reward},
                                      {"trained", 4, 64, 3, 300, 2},
                                      {"stale", 4, 64, 7, 700, 1.5},
                                      {"pending", 2, 2, 1, 3, 0}};
  gl_error err = {0};
  sample_run_init(&sample, ordinal, 4);
  sample.run.fates = fates;
  sample.run.n_fates = RECORDS;
  if (store_put_run(s, &sample.run, &err) != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_EQUAL_FATAL(err.status, GL_OK);
}

static const run_part part = {.table = "fates",
                              .sum = "sum_fates",
                              .disagrees = "its records in the table fates differ",
                              .records = RECORDS,
                              .put = put};

TEST(fates_are_exported_in_order) {
  char *text = part_exported(&part);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, ",fate,quarter,tokens_from,responses,tokens,reward\n"));
  const char *pending = strstr(text, ",pending,2,2,1,3,0\n"),
             *stale = strstr(text, ",stale,4,64,7,700,1.5\n"),
             *first = strstr(text, ",trained,1,1,10,10,0.25\n"),
             *second = strstr(text, ",trained,4,64,3,300,2\n"),
             *other = strstr(text, ",trained,1,1,10,10,0.5\n");
  CU_ASSERT(pending && stale && first && second && other);
  CU_ASSERT(pending < stale && stale < first && first < second && second < other);
  free(text);
}

TEST(runs_without_fates_have_no_sum_of_them) {
  check_runs_without_part_have_no_sum(&part);
}

TEST(damage_is_found_by_those_who_read_and_by_check) {
  static const char *const damages[] = {
      "UPDATE fates SET reward = 0.75 WHERE quarter = 1",
      "UPDATE fates SET fate = 'evicted' WHERE fate = 'stale'",
      "UPDATE fates SET quarter = 5 WHERE quarter = 1",
      "DELETE FROM fates WHERE fate = 'pending'",
      "DELETE FROM fates",
      "UPDATE fates SET fate = 'a fate that is too long' WHERE quarter = 1",
      "INSERT INTO fates SELECT id, 'lost', 1, 1, 1, 1, 0 FROM runs WHERE ordinal = 2"};
  check_damage_of_part_is_found(&part, damages, sizeof damages / sizeof *damages);
}

TEST(studies_are_merged_with_their_fates_and_disagreement_is_refused) {
  check_part_is_merged(&part);
}

/* A run that an older format keeps without its fates is the same run. */
TEST(a_run_of_before_has_no_fates_to_disagree_with) {
  part_study f;
  char other[SCRATCH_PATH_SIZE];
  gl_error err = {0};
  part_study_make(&f, &part);
  store *into = store_opened(scratch_path(&f.at, "other.db", other), STORE_WRITE);
  store_put_samples(into, 3, 3, 4);
  CU_ASSERT_EQUAL(store_merge(into, f.path, &err), GL_OK);
  if (err.text[0] != '\0') fprintf(stderr, "%s\n", err.text);
  store_close(into);
  CU_ASSERT_EQUAL(part_verified(&part, other, &err), GL_OK);
  scratch_remove(&f.at);
}

TEST(a_salvaged_study_has_its_fates) {
  check_part_is_salvaged(&part);
}
