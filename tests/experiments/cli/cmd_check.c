/* gepolab check: damage is told, taken out, and made again by the sweep. */
#include "core/base/json.h"
#include "tests/support/cli.h"
#include "tests/support/sql.h"
#include "tests/support/suite.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

SUITE("cli: check");

static const char recipe[] = "name: checked\nsteps: 12\nworld: {kind: bandit, rewards: [1, 0]}\n"
                             "train: {groups: 1, group_size: 4}\n"
                             "sweep: {algorithm: [gepo, grpo], seed: [1, 2]}\n"
                             "tune: {lr: [0.1, 0.3], seeds: [9]}\n";

typedef struct ground {
  char folder[64], recipe[128], study[128];
} ground;

static void ground_make(ground *g) {
  cli_scratch_make(g->folder);
  cli_write(cli_path(g->recipe, g->folder, "checked.yaml"), recipe, sizeof recipe - 1);
  CU_ASSERT(
      CLI_GIVES(0, "sweep", g->recipe, "-o", cli_path(g->study, g->folder, "study.db"), "-q"));
}

/* Exit code of `check`; its output must have that text. */
static int checked(const char *study, const char *option, const char *says) {
  cli_result r = option != NULL ? CLI("check", study, option) : CLI("check", study);
  const int found = strstr(r.out, says) != NULL, code = r.code;
  if (!found) fprintf(stderr, "no '%s' in: %s%s", says, r.out, r.err);
  CU_ASSERT(found);
  CU_ASSERT_EQUAL(code == 0, r.err[0] == '\0');
  return code;
}

static char *exported(const char *study) {
  char *all = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&all, &size);
  static const char *const tables[] = {"runs", "steps", "evals", "tuned"};
  for (size_t i = 0; i < sizeof tables / sizeof *tables; ++i) {
    cli_result r = CLI("export", study, "-t", tables[i]);
    CU_ASSERT_EQUAL(r.code, 0);
    fputs(r.out, to);
  }
  fclose(to);
  return all;
}

TEST(a_repaired_study_is_made_whole_by_the_same_sweep) {
  ground g;
  ground_make(&g);
  char *before = exported(g.study);
  CU_ASSERT_EQUAL(checked(g.study, NULL, "4 runs, all as they were written"), 0);
  run_sql(g.study, "UPDATE steps SET loss = 9 WHERE run = 2 AND step = 4; UPDATE tuned SET lr = 7;"
                   "UPDATE tuning_scores SET score = 1e9 WHERE key = (SELECT min(key) FROM"
                   " tuning_scores)");
  CU_ASSERT_EQUAL(checked(g.study, NULL, "are not what was written"), 1);
  CU_ASSERT(CLI_GIVES(1, "export", g.study, "-t", "steps"));
  CU_ASSERT_EQUAL(checked(g.study, "--repair", "removed 1 of runs: the same sweep"), 0);
  CU_ASSERT_EQUAL(checked(g.study, NULL, "3 runs, all as they were written"), 0);
  CU_ASSERT(CLI_GIVES(0, "sweep", g.recipe, "-o", g.study, "-q"));
  CU_ASSERT_EQUAL(checked(g.study, NULL, "4 runs, all as they were written"), 0);
  char *after = exported(g.study);
  CU_ASSERT_STRING_EQUAL(before, after);
  free(before), free(after);
}

/* Without --repair nothing is written, also where the file could be. */
TEST(a_check_reads_only) {
  ground g;
  struct stat before, after;
  ground_make(&g);
  run_sql(g.study, "UPDATE evals SET time_s = 3 WHERE run = 1 AND step = 0");
  CU_ASSERT_EQUAL(chmod(g.study, 0400), 0);
  CU_ASSERT_EQUAL(stat(g.study, &before), 0);
  CU_ASSERT_EQUAL(checked(g.study, NULL, "evals are not what was written"), 1);
  cli_result r = CLI("check", g.study);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, ": 1 damage; restore a copy"));
  CU_ASSERT_EQUAL(stat(g.study, &after), 0);
  CU_ASSERT(before.st_mtim.tv_sec == after.st_mtim.tv_sec &&
            before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
  CU_ASSERT_EQUAL(cli_files_in(g.folder), 2);
}

TEST(the_damage_is_listed_as_json) {
  ground g;
  ground_make(&g);
  /* the run's record, and that no rate was chosen for an algorithm of that name */
  run_sql(g.study, "UPDATE runs SET algorithm = 'x' || char(27) || '[2J' WHERE id = 3");
  cli_result r = CLI("check", g.study, "--json");
  CU_ASSERT_EQUAL(r.code, 1);
  cJSON *d = json_parsed(r.out);
  const cJSON *list = member_at(d, "damage");
  CU_ASSERT_EQUAL(cJSON_GetArraySize(list), 2);
  CU_ASSERT(list != NULL && strlen(text_at(list->child, "run")) == 32);
  CU_ASSERT_EQUAL(checked(g.study, NULL, "x\\x1b[2J"), 1);
}

/* Pages of noise in the middle: refused in place, and what is whole goes into a new study, which
 * the sweep completes. */
TEST(a_study_of_damaged_structure_is_salvaged) {
  ground g;
  char saved[128], noise[4096];
  ground_make(&g);
  char *before = exported(g.study);
  cli_path(saved, g.folder, "saved.db");
  cli_result r = CLI("check", g.study, "--salvage", saved);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "Nothing in "));
  CU_ASSERT_PTR_NULL(strstr(r.out, "makes what is missing"));
  CU_ASSERT_EQUAL(unlink(saved), 0);
  run_sql(g.study,
          "CREATE TABLE place(page); INSERT INTO place SELECT max(pageno) FROM dbstat WHERE"
          " name = 'steps'");
  sqlite3 *db = NULL;
  sqlite3_stmt *q = NULL;
  CU_ASSERT_EQUAL_FATAL(sqlite3_open(g.study, &db), SQLITE_OK);
  CU_ASSERT_EQUAL_FATAL(sqlite3_prepare_v2(db, "SELECT page FROM place", -1, &q, NULL), SQLITE_OK);
  CU_ASSERT_EQUAL_FATAL(sqlite3_step(q), SQLITE_ROW);
  const long page = (long)sqlite3_column_int64(q, 0);
  sqlite3_finalize(q);
  CU_ASSERT_EQUAL(sqlite3_exec(db, "DROP TABLE place", NULL, NULL, NULL), SQLITE_OK);
  sqlite3_close(db);
  memset(noise, 0x5a, sizeof noise);
  FILE *file = fopen(g.study, "r+b");
  CU_ASSERT_EQUAL(fseek(file, (page - 1) * 4096, SEEK_SET), 0);
  CU_ASSERT_EQUAL(fwrite(noise, 1, sizeof noise, file), sizeof noise);
  fclose(file);
  CU_ASSERT_EQUAL(checked(g.study, NULL, "its structure"), 1);
  CU_ASSERT_EQUAL(checked(g.study, "--repair", "its structure"), 1);
  CU_ASSERT(CLI_GIVES(2, "check", g.study, "--repair", "--salvage", saved));
  CU_ASSERT(CLI_GIVES(0, "check", g.study, "--salvage", saved));
  CU_ASSERT(CLI_GIVES(2, "check", g.study, "--salvage", saved)); /* it is there already */
  CU_ASSERT_EQUAL(checked(saved, NULL, "all as they were written"), 0);
  CU_ASSERT(CLI_GIVES(0, "sweep", g.recipe, "-o", saved, "-q"));
  char *after = exported(saved);
  CU_ASSERT_STRING_EQUAL(before, after);
  free(before), free(after);
}
