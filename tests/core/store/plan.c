/* What a study is to hold, and how far it is. */
#include "core/store/store.h"

#include "tests/support/core.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("core: plans of studies");

typedef struct fixture {
  scratch at;
  char path[SCRATCH_PATH_SIZE], other[SCRATCH_PATH_SIZE];
  store *s;
} fixture;

static void fixture_make(fixture *f) {
  scratch_make(&f->at);
  scratch_path(&f->at, "other.db", f->other);
  f->s = store_opened(scratch_path(&f->at, "study.db", f->path), STORE_WRITE);
}

static void fixture_remove(fixture *f) {
  store_close(f->s);
  scratch_remove(&f->at);
}

/* A run like sample `ordinal` at a place of its own, with a rate that was chosen for it. */
static void put_chosen(store *s, int ordinal, double lr, run_status status) {
  static sample_run sample;
  char recipe[96], chosen[64], key[33];
  gl_error err = {0};
  sample_run_init(&sample, ordinal, 3);
  snprintf(recipe, sizeof recipe, "{\"optimizer\":{\"lr\":%g},\"seed\":%d}", lr, ordinal);
  snprintf(chosen, sizeof chosen, "{\"optimizer.lr\":%g}", lr);
  snprintf(key, sizeof key, "%d at %g", ordinal, lr);
  sample.run.recipe = recipe;
  sample.run.chosen = chosen;
  sample.run.key = key;
  sample.run.lr = lr;
  sample.run.status = status;
  CU_ASSERT_EQUAL(store_put_run(s, &sample.run, &err), GL_OK);
  if (err.status != GL_OK) fprintf(stderr, "%s\n", err.text);
}

static void plan_of(store *s, int first, int last, size_t shard, size_t shards, int replaces) {
  static planned_cell cells[64];
  static char place[64][STORE_PLACE_SIZE];
  gl_error err = {0};
  size_t n = 0;
  for (int i = first; i <= last; ++i, ++n) {
    char recipe[64];
    snprintf(recipe, sizeof recipe, "{\"optimizer\":{\"lr\":null},\"seed\":%d}", i);
    CU_ASSERT_EQUAL_FATAL(store_place(place[n], recipe, NULL, 1, &err), GL_OK);
    cells[n] = (planned_cell){
        .place = place[n], .ordinal = i, .algorithm = "gepo", .seed = (uint64_t)i, .swept = "{}"};
  }
  const study_plan plan = {.study = "s",
                           .recipe = "{\"sweep\":{}}",
                           .shard = shard,
                           .shards = shards,
                           .cells = cells,
                           .n = n,
                           .replaces = replaces};
  CU_ASSERT_EQUAL(store_put_plan(s, &plan, &err), GL_OK);
  if (err.status != GL_OK) fprintf(stderr, "%s\n", err.text);
}

static study_progress progress_of(store *s) {
  study_progress p = {0};
  CU_ASSERT_EQUAL(store_progress(s, "s", &p, NULL), GL_OK);
  return p;
}

TEST(a_place_leaves_chosen_fields_open_and_nothing_else) {
  char a[STORE_PLACE_SIZE], b[STORE_PLACE_SIZE], c[STORE_PLACE_SIZE], key[STORE_PLACE_SIZE];
  const char *chosen = "{\"optimizer.lr\":0.1}";
  store_place(a, "{\"optimizer\":{\"lr\":0.1},\"seed\":1}", chosen, 2, NULL);
  store_place(b, "{\"optimizer\":{\"lr\":1e-05},\"seed\":1}", chosen, 2, NULL);
  CU_ASSERT_STRING_EQUAL(a, b);
  store_place(c, "{\"optimizer\":{\"lr\":null},\"seed\":1}", NULL, 2, NULL);
  CU_ASSERT_STRING_EQUAL(a, c);
  store_place(b, "{\"optimizer\":{\"lr\":0.1},\"seed\":2}", chosen, 2, NULL);
  CU_ASSERT_STRING_NOT_EQUAL(a, b);
  store_place(b, "{\"optimizer\":{\"lr\":0.1},\"seed\":1}", chosen, 1, NULL);
  CU_ASSERT_STRING_NOT_EQUAL(a, b);
  store_place(key, "{\"optimizer\":{\"lr\":0.1},\"seed\":1}", NULL, 2, NULL);
  CU_ASSERT_STRING_NOT_EQUAL(a, key);
  CU_ASSERT_NOT_EQUAL(store_place(a, "{", chosen, 1, NULL), GL_OK);
  CU_ASSERT_NOT_EQUAL(store_place(a, "{}", "[1]", 1, NULL), GL_OK);
}

static int note_ordinal(void *self, const planned_cell *cell) {
  int *sum = self;
  *sum = 10 * *sum + (int)cell->ordinal;
  return 1;
}

TEST(progress_counts_cells_by_place) {
  fixture f;
  int missing = 0;
  fixture_make(&f);
  plan_of(f.s, 1, 5, 0, 1, 0);
  put_chosen(f.s, 1, 0.1, RUN_DONE);
  put_chosen(f.s, 2, 0.1, RUN_DIVERGED);
  put_chosen(f.s, 4, 0.1, RUN_FAILED);
  study_progress p = progress_of(f.s);
  CU_ASSERT_EQUAL(p.planned, 5);
  CU_ASSERT_EQUAL(p.done, 1);
  CU_ASSERT_EQUAL(p.diverged, 1);
  CU_ASSERT_EQUAL(p.failed, 1);
  CU_ASSERT_EQUAL(p.missing, 3);
  CU_ASSERT_EQUAL(store_missing(f.s, "s", note_ordinal, &missing, NULL), GL_OK);
  CU_ASSERT_EQUAL(missing, 345);
  plan_of(f.s, 4, 7, 0, 1, 0); /* a second grid adds to the first */
  CU_ASSERT_EQUAL(progress_of(f.s).planned, 7);
  plan_of(f.s, 1, 2, 0, 1, 1); /* or takes its place */
  CU_ASSERT_EQUAL(progress_of(f.s).planned, 2);
  CU_ASSERT_EQUAL(progress_of(f.s).missing, 0);
  fixture_remove(&f);
}

TEST(a_run_with_another_choice_supersedes_the_one_before) {
  fixture f;
  fixture_make(&f);
  plan_of(f.s, 1, 2, 0, 1, 0);
  put_chosen(f.s, 1, 0.1, RUN_DONE);
  put_chosen(f.s, 2, 0.1, RUN_DONE);
  put_chosen(f.s, 1, 0.3, RUN_FAILED); /* is no result, so the result before stands */
  CU_ASSERT_EQUAL(progress_of(f.s).superseded, 0);
  put_chosen(f.s, 1, 0.3, RUN_DONE);
  study_progress p = progress_of(f.s);
  CU_ASSERT_EQUAL(p.superseded, 1);
  CU_ASSERT_EQUAL(p.done, 2);
  CU_ASSERT_EQUAL(store_number(f.s, "SELECT r.lr FROM superseded x JOIN runs r USING(key)"), 0.1);
  char *text = NULL;
  size_t size;
  FILE *to = open_memstream(&text, &size);
  CU_ASSERT_EQUAL(store_export(f.s, "evals", "csv", to, NULL), GL_OK);
  fclose(to);
  CU_ASSERT_PTR_NULL(strstr(text, "1 at 0.1"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "1 at 0.3"));
  free(text);
  /* and back: the earlier choice again, found finished in the file */
  CU_ASSERT_EQUAL(store_take_place_again(f.s, "1 at 0.1", NULL), GL_OK);
  CU_ASSERT_EQUAL(store_number(f.s, "SELECT r.lr FROM superseded x JOIN runs r USING(key)"), 0.3);
  CU_ASSERT_EQUAL(progress_of(f.s).superseded, 1);
  fixture_remove(&f);
}

TEST(a_missing_part_of_a_sweep_is_named_after_merging) {
  fixture f;
  char part[SCRATCH_PATH_SIZE];
  fixture_make(&f);
  for (size_t shard = 0; shard < 3; ++shard) {
    char name[16];
    snprintf(name, sizeof name, "part%zu", shard);
    store *s = store_opened(scratch_path(&f.at, name, part), STORE_WRITE);
    plan_of(s, 1, 6, shard, 3, 0);
    put_chosen(s, 1 + (int)shard, 0.1, RUN_DONE);
    put_chosen(s, 4 + (int)shard, 0.1, RUN_DONE);
    CU_ASSERT_EQUAL(store_put_tuned(s, "s", "gepo", 0.1, 0.5, NULL), GL_OK);
    store_close(s);
  }
  CU_ASSERT_EQUAL(store_merge(f.s, scratch_path(&f.at, "part0", part), NULL), GL_OK);
  CU_ASSERT_EQUAL(store_merge(f.s, scratch_path(&f.at, "part2", part), NULL), GL_OK);
  study_progress p = progress_of(f.s);
  CU_ASSERT_EQUAL(p.shards, 3);
  CU_ASSERT_EQUAL(p.shards_missing, 1);
  CU_ASSERT_EQUAL(p.first_missing_shard, 1);
  CU_ASSERT_EQUAL(p.missing, 2);
  CU_ASSERT_EQUAL(store_merge(f.s, scratch_path(&f.at, "part1", part), NULL), GL_OK);
  p = progress_of(f.s);
  CU_ASSERT_EQUAL(p.shards_missing, 0);
  CU_ASSERT_EQUAL(p.missing, 0);
  fixture_remove(&f);
}

TEST(studies_of_a_file_are_those_with_runs_or_a_plan) {
  fixture f;
  char **names = NULL;
  size_t n = 1;
  fixture_make(&f);
  CU_ASSERT_EQUAL(store_studies(f.s, &names, &n, NULL), GL_OK);
  CU_ASSERT_EQUAL(n, 0);
  CU_ASSERT_PTR_NULL(names);
  plan_of(f.s, 1, 1, 0, 1, 0);
  CU_ASSERT_EQUAL(store_studies(f.s, &names, &n, NULL), GL_OK);
  CU_ASSERT_EQUAL_FATAL(n, 1);
  CU_ASSERT_STRING_EQUAL(names[0], "s");
  free(names);
  fixture_remove(&f);
}
