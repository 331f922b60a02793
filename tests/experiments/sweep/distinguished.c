/* Runs of different recipes in one study file: only seeds are averaged over, and what distinguishes
 * runs has columns of its own. */
#include "core/base/hash.h"
#include "core/config/fields.h"
#include "tests/support/cli_study.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("cli: runs distinguished");

static const char recipe[] = "name: small\n"
                             "steps: 30\n"
                             "world: {kind: sequence, horizon: 2, prompts: 2}\n"
                             "train: {groups: 2, group_size: 4}\n"
                             "algorithm: gepo\n"
                             "cluster: {preset: heterorl}\n";

typedef cli_study bench;

static void bench_make(bench *b) {
  cli_study_make(b, "small.yaml", recipe);
}

static cJSON *analysis(const bench *b) {
  cJSON *json = CLI_JSON("analyze", b->db, "--json");
  return json;
}

/* The finished runs of the one cell whose axes are those, as printed without spaces; -1 if there is
 * no such cell. */
static double runs_at(const cJSON *study, const char *axes) {
  const cJSON *cell = NULL;
  double done = -1;
  cJSON_ArrayForEach(cell, member_at(study, "cells")) {
    char *text = cJSON_PrintUnformatted(member_at(cell, "axes"));
    if (strcmp(text, axes) == 0) done = number_at(cell, "done");
    cJSON_free(text);
  }
  return done;
}

static int n_cells(const cJSON *study) {
  return cJSON_GetArraySize(member_at(study, "cells"));
}

TEST(sweeps_of_changed_recipes_are_not_pooled_as_seeds) {
  bench b;
  bench_make(&b);
  const char *seeds = "sweep.seed=[1,2,3]";
  CU_ASSERT(CLI_GIVES(0, "sweep", b.recipe, "-q", "-o", b.db, seeds));
  CU_ASSERT(CLI_GIVES(0, "sweep", b.recipe, "-q", "-o", b.db, seeds, "steps=20"));
  CU_ASSERT(CLI_GIVES(0, "sweep", b.recipe, "-q", "-o", b.db, seeds, "world.vocabulary=3"));
  cJSON *study = analysis(&b);
  CU_ASSERT_EQUAL(n_cells(study), 3);
  CU_ASSERT_EQUAL(runs_at(study, "{\"steps\":20,\"world.vocabulary\":4}"), 3);
  CU_ASSERT_EQUAL(runs_at(study, "{\"steps\":30,\"world.vocabulary\":4}"), 3);
  CU_ASSERT_EQUAL(runs_at(study, "{\"steps\":30,\"world.vocabulary\":3}"), 3);
}

TEST(single_runs_of_changed_recipes_are_not_pooled_as_seeds) {
  bench b;
  bench_make(&b);
  CU_ASSERT(CLI_GIVES(0, "run", b.recipe, "-q", "-o", b.db));
  CU_ASSERT(CLI_GIVES(0, "run", b.recipe, "-q", "-o", b.db, "cluster.max_delay=600"));
  CU_ASSERT(CLI_GIVES(0, "run", b.recipe, "-q", "-o", b.db, "cluster.max_delay=600", "seed=2"));
  cJSON *study = analysis(&b);
  CU_ASSERT_EQUAL(n_cells(study), 2);
  CU_ASSERT_EQUAL(runs_at(study, "{\"cluster.max_delay\":1800}"), 1); /* the preset's */
  CU_ASSERT_EQUAL(runs_at(study, "{\"cluster.max_delay\":600}"), 2);
}

/* A default that is written out makes another key, but the same run: it counts once, and says so.
 */
TEST(a_run_with_a_default_written_out_is_not_another_seed) {
  bench b;
  bench_make(&b);
  CU_ASSERT(CLI_GIVES(0, "run", b.recipe, "-q", "-o", b.db));
  CU_ASSERT(CLI_GIVES(0, "run", b.recipe, "-q", "-o", b.db, "train.epochs=1"));
  cJSON *study = analysis(&b);
  CU_ASSERT_EQUAL(runs_at(study, "{}"), 1);
  CU_ASSERT_EQUAL(number_at(study, "repeats_left_out"), 1);
}

TEST(studies_of_one_file_are_shown_apart) {
  bench b;
  bench_make(&b);
  CU_ASSERT(CLI_GIVES(0, "run", b.recipe, "-q", "-o", b.db));
  CU_ASSERT(CLI_GIVES(0, "run", b.recipe, "-q", "-o", b.db, "name=other", "steps=20"));
  cJSON *json = analysis(&b);
  const cJSON *studies = member_at(json, "studies");
  CU_ASSERT_EQUAL_FATAL(cJSON_GetArraySize(studies), 2);
  for (int i = 0; i < 2; ++i) {
    const cJSON *study = cJSON_GetArrayItem(studies, i);
    CU_ASSERT_STRING_EQUAL(text_at(study, "study"), i == 0 ? "other" : "small");
    CU_ASSERT_EQUAL(n_cells(study), 1);
    CU_ASSERT_EQUAL(runs_at(study, "{}"), 1);
  }
  cli_result text = CLI("analyze", b.db);
  CU_ASSERT(text.code == 0 && strstr(text.out, "other: evaluation score") != NULL &&
            strstr(text.out, "small: evaluation score") != NULL);
}

TEST(a_rate_that_tune_chose_is_no_setting) {
  bench b;
  bench_make(&b);
  CU_ASSERT(CLI_GIVES(0, "sweep", b.recipe, "-q", "-o", b.db, "sweep.seed=[1,2]",
                      "sweep.algorithm=[grpo,is]", "tune={lr: [0.001, 0.3], seeds: [9]}"));
  cJSON *study = analysis(&b);
  CU_ASSERT_EQUAL(n_cells(study), 2);
  CU_ASSERT_EQUAL(runs_at(study, "{}"), 2);
  /* A rate stated by hand for some of them is one. */
  CU_ASSERT(CLI_GIVES(0, "run", b.recipe, "-q", "-o", b.db, "algorithm=is", "optimizer.lr=0.7"));
  study = analysis(&b);
  CU_ASSERT_EQUAL(runs_at(study, "{\"optimizer.lr\":0.7}"), 1);
}

/* The value of the first record in that column of a CSV export without quoted separators before it;
 * the caller frees. */
static char *cell_of(const char *db, const char *table, const char *column) {
  cli_result r = CLI("export", db, "-t", table);
  char *value = NULL, *line = strchr(r.out, '\n');
  CU_ASSERT_PTR_NOT_NULL_FATAL(line);
  *line++ = '\0';
  char *rest = NULL, *head = strtok_r(r.out, ",", &rest);
  for (; head != NULL && strcmp(head, column) != 0; head = strtok_r(NULL, ",", &rest))
    if ((line = strchr(line, ',')) != NULL) ++line;
  if (head != NULL && line != NULL) value = strndup(line, strcspn(line, ",\n"));
  return value;
}

TEST(the_learning_rate_is_the_recipes_and_not_the_first_updates) {
  static const char *const optimizers[] = {"optimizer={lr: 0.05, warmup: 10}",
                                           "optimizer={warmup: 10}"};
  for (int i = 0; i < 2; ++i) {
    bench b;
    bench_make(&b);
    CU_ASSERT(CLI_GIVES(0, "run", b.recipe, "-q", "-o", b.db, optimizers[i]));
    char *lr = cell_of(b.db, "runs", "optimizer.lr"), *first = cell_of(b.db, "steps", "lr");
    CU_ASSERT_STRING_EQUAL(lr, "0.05");
    CU_ASSERT_STRING_EQUAL(first, "0.005");
    free(lr), free(first);
  }
}

/* How often a name stands in a header line. */
static size_t times_in(const char *header, const char *name, char separator) {
  size_t n = 0, length = strlen(name);
  for (const char *at = header; *at != '\0' && *at != '\n';) {
    size_t here = strcspn(at, separator == ',' ? ",\n" : "\t\n");
    n += here == length && strncmp(at, name, length) == 0;
    at += here + (at[here] == separator);
  }
  return n;
}

TEST(no_export_has_two_columns_of_one_name) {
  static const char *const tables[] = {
      "runs",    "steps", "evals",       "staleness", "clock",      "summary",   "cells", "tuned",
      "recipes", "axes",  "axis_values", "execution", "provenance", "libraries", "bias",  "tuning"};
  static const char *const formats[] = {"csv", "tsv"};
  bench b;
  bench_make(&b);
  CU_ASSERT(CLI_GIVES(0, "sweep", b.recipe, "-q", "-o", b.db, "sweep.optimizer.lr=[0.01,0.1]",
                      "sweep.cluster.max_delay=[0,600]", "sweep.steps=[5]", "sweep.seed=[1]"));
  for (size_t t = 0; t < sizeof tables / sizeof *tables; ++t)
    for (size_t f = 0; f < 2; ++f) {
      cli_result r = CLI("export", b.db, "-t", tables[t], "-f", formats[f]);
      const char separator = f == 0 ? ',' : '\t';
      CU_ASSERT_EQUAL_FATAL(r.code, 0);
      size_t columns = 0;
      for (const char *at = r.out; *at != '\0' && *at != '\n'; ++columns) {
        size_t n = strcspn(at, f == 0 ? ",\n" : "\t\n");
        char *name = strndup(at, n);
        CU_ASSERT_EQUAL(times_in(r.out, name, separator), 1);
        free(name);
        at += n + (at[n] == separator);
      }
      CU_ASSERT(columns >= 2);
      CU_ASSERT_EQUAL(times_in(r.out, "cluster.max_delay", separator), t < 7);
      CU_ASSERT_EQUAL(times_in(r.out, "axes", separator), 0);
    }
  char *delay = cell_of(b.db, "evals", "cluster.max_delay"),
       *steps = cell_of(b.db, "clock", "steps");
  CU_ASSERT_STRING_EQUAL(delay, "0");
  CU_ASSERT_STRING_EQUAL(steps, "5");
  free(delay), free(steps);
  cli_result lines = CLI("export", b.db, "-t", "evals", "-f", "jsonl");
  cJSON *first = json_line(lines.out);
  CU_ASSERT(cJSON_IsNumber(member_at(first, "cluster.max_delay")));
  CU_ASSERT(cJSON_IsNumber(member_at(first, "optimizer.lr")));
}

/* The key is that of the recipe under the present meaning of recipes, so a run made under another
 * one is never taken for this one. */
TEST(a_cells_key_holds_the_meaning_of_recipes) {
  bench b;
  char wanted[HASH_HEX_SIZE], plain[HASH_HEX_SIZE];
  bench_make(&b);
  CU_ASSERT(CLI_GIVES(0, "run", b.recipe, "-q", "-o", b.db));
  cli_result r = CLI("export", b.db, "-t", "runs", "-f", "jsonl"),
             of = CLI("export", b.db, "-t", "recipes", "-f", "jsonl");
  cJSON *run = json_line(r.out), *whole = json_line(of.out);
  const char *text = text_at(whole, "recipe");
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  char *identity = malloc(strlen(text) + 64);
  CU_ASSERT_PTR_NOT_NULL_FATAL(identity);
  sprintf(identity, "meaning %d: %s", RECIPE_MEANING, text);
  hash_hex(identity, strlen(identity), wanted);
  hash_hex(text, strlen(text), plain);
  const char *key = text_at(run, "key");
  CU_ASSERT_STRING_EQUAL(key, wanted);
  CU_ASSERT_STRING_NOT_EQUAL(key, plain);
  CU_ASSERT_EQUAL(number_at(run, "meaning"), RECIPE_MEANING);
  free(identity);
}
