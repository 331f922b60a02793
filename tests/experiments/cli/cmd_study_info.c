/* gepolab info, checked against SQL over the same file and against the system. */
#include "core/base/json.h"
#include "tests/support/cli.h"
#include "tests/support/core.h"
#include "tests/support/suite.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

SUITE("cli: info");

static const char recipe[] =
    "name: looked at\nsteps: 20\nworld: {kind: bandit, rewards: [1, 0]}\n"
    "train: {groups: 1, group_size: 4}\n"
    "sweep: {algorithm: [gepo, grpo], seed: [1, 2, 9223372036854775807]}\n";

typedef struct ground {
  char folder[64], recipe[128], study[128];
} ground;

static void ground_make(ground *g) {
  cli_scratch_make(g->folder);
  cli_write(cli_path(g->recipe, g->folder, "a recipe.yaml"), recipe, sizeof recipe - 1);
  cli_path(g->study, g->folder, "study.db");
}

/* What `info` prints as JSON; NULL with a failed assertion where it fails. */
static cJSON *info(const char *study, const char *key) {
  cli_result r =
      key != NULL ? CLI("info", study, "--json", "--run", key) : CLI("info", study, "--json");
  cJSON *d = r.code == 0 ? json_parsed(r.out) : NULL;
  if (d == NULL) fprintf(stderr, "%s%s", r.out, r.err);
  CU_ASSERT_PTR_NOT_NULL_FATAL(d);
  return d;
}

/* The first value that a query gives, as text; the caller frees. */
static char *asked(const char *study, const char *sql) {
  sqlite3 *db = NULL;
  sqlite3_stmt *q = NULL;
  CU_ASSERT_EQUAL_FATAL(sqlite3_open(study, &db), SQLITE_OK);
  CU_ASSERT_EQUAL_FATAL(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
  CU_ASSERT_EQUAL_FATAL(sqlite3_step(q), SQLITE_ROW);
  const char *text = (const char *)sqlite3_column_text(q, 0);
  char *copy = strdup(text != NULL ? text : "");
  sqlite3_finalize(q);
  sqlite3_close(db);
  return copy;
}

static double asked_number(const char *study, const char *sql) {
  char *text = asked(study, sql);
  const double value = strtod(text, NULL);
  free(text);
  return value;
}

TEST(a_sweep_tells_how_its_runs_came_about) {
  ground g;
  struct stat about;
  ground_make(&g);
  CU_ASSERT(CLI_GIVES(0, "sweep", g.recipe, "-o", g.study, "-q", "-j", "2"));
  CU_ASSERT_EQUAL_FATAL(stat(g.study, &about), 0);
  cJSON *d = info(g.study, NULL);
  CU_ASSERT_EQUAL(number_at(d, "format"), 7);
  CU_ASSERT_EQUAL(number_at(d, "bytes"), (double)about.st_size);
  const cJSON *study = member_at(d, "studies")->child, *origin = member_at(d, "origins")->child;
  CU_ASSERT_STRING_EQUAL(text_at(study, "study"), "looked at");
  CU_ASSERT_EQUAL(number_at(study, "done"), 6);
  CU_ASSERT_EQUAL(number_at(study, "planned"), 6);
  CU_ASSERT_EQUAL(number_at(study, "missing"), 0);
  CU_ASSERT_PTR_NULL(origin->next);
  CU_ASSERT_EQUAL(number_at(origin, "runs"), 6);
  char command[512];
  snprintf(command, sizeof command, "gepolab sweep '%s' -o %s -q -j 2", g.recipe, g.study);
  CU_ASSERT_PTR_NOT_NULL(strstr(text_at(origin, "command"), command));
  CU_ASSERT(strlen(text_at(origin, "processor")) > 0 && strlen(text_at(origin, "compiler")) > 0);
  CU_ASSERT(cJSON_IsObject(member_at(origin, "libraries")));
  CU_ASSERT_EQUAL(strlen(text_at(origin, "first")), 20);
  CU_ASSERT(strcmp(text_at(origin, "first"), text_at(origin, "last")) <= 0);
}

TEST(costs_are_those_of_the_runs) {
  ground g;
  ground_make(&g);
  CU_ASSERT(CLI_GIVES(0, "sweep", g.recipe, "-o", g.study, "-q", "-j", "2"));
  cJSON *d = info(g.study, NULL);
  const cJSON *gepo = member_at(d, "algorithms")->child;
  CU_ASSERT_STRING_EQUAL(text_at(gepo, "algorithm"), "gepo");
  CU_ASSERT_EQUAL(number_at(gepo, "runs"), 3);
  CU_ASSERT_EQUAL(number_at(gepo, "seeds"), 3);
  CU_ASSERT_EQUAL(number_at(gepo, "seed_min"), 1);
#define OF_GEPO " FROM runs WHERE algorithm = 'gepo'"
  ASSERT_CLOSE(number_at(gepo, "wall_s"), asked_number(g.study, "SELECT sum(wall_s)" OF_GEPO),
               1e-12);
  ASSERT_CLOSE(number_at(gepo, "wall_s_max"), asked_number(g.study, "SELECT max(wall_s)" OF_GEPO),
               1e-12);
  ASSERT_CLOSE(number_at(gepo, "wall_s_median"),
               asked_number(g.study, "SELECT wall_s" OF_GEPO " ORDER BY wall_s LIMIT 1 OFFSET 1"),
               1e-12);
  /* a process that holds the program takes more than a MiB, and of these less than a GiB */
  CU_ASSERT(number_at(gepo, "peak_bytes") > 1 << 20 && number_at(gepo, "peak_bytes") < 1 << 30);
  cli_result text = CLI("info", g.study);
  CU_ASSERT_PTR_NOT_NULL(strstr(text.out, "3 gepo, 3 seeds 1 to 9223372036854775807"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text.out, "6 of 6 planned cells, 6 done"));
}

TEST(one_run_is_shown_whole) {
  ground g;
  char prefix[8];
  ground_make(&g);
  CU_ASSERT(CLI_GIVES(0, "sweep", g.recipe, "-o", g.study, "-q", "-j", "2"));
  char *key = asked(g.study, "SELECT key FROM runs WHERE ordinal = 2");
  char *recipe_text = asked(g.study, "SELECT recipe FROM runs WHERE ordinal = 2");
  snprintf(prefix, sizeof prefix, "%.7s", key);
  cJSON *d = info(g.study, prefix), *same = json_parsed(recipe_text);
  CU_ASSERT_STRING_EQUAL(text_at(d, "key"), key);
  CU_ASSERT_STRING_EQUAL(text_at(d, "status"), "done");
  CU_ASSERT_EQUAL(number_at(d, "steps"), 20);
  CU_ASSERT(cJSON_Compare(member_at(d, "recipe"), same, 1));
  CU_ASSERT(cJSON_IsObject(member_at(d, "provenance")));
  CU_ASSERT(number_at(d, "eval_best") >= number_at(d, "eval_last"));
  cli_result text = CLI("info", g.study, "--run", key);
  CU_ASSERT_PTR_NOT_NULL(strstr(text.out, "9223372036854775807"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text.out, recipe_text));
  free(key), free(recipe_text);
}

/* Of 17 keys in hexadecimal digits two begin alike. */
TEST(a_key_that_names_no_run_or_several_is_refused) {
  ground g;
  char expected[64];
  ground_make(&g);
  CU_ASSERT(CLI_GIVES(0, "sweep", g.recipe, "-o", g.study, "-q", "-j", "2", "steps=1",
                      "sweep={seed: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]}"));
  char *digit = asked(g.study, "SELECT substr(key, 1, 1) FROM runs GROUP BY 1 HAVING count(*) > 1");
  char *many = asked(g.study, "SELECT count(*) FROM runs GROUP BY substr(key, 1, 1) HAVING"
                              " count(*) > 1");
  cli_result none = CLI("info", g.study, "--run", "nobody"),
             several = CLI("info", g.study, "--run", digit);
  snprintf(expected, sizeof expected, "%s runs of", many);
  CU_ASSERT_EQUAL(none.code, 2);
  CU_ASSERT_PTR_NOT_NULL(strstr(none.err, "no run of"));
  CU_ASSERT_EQUAL(several.code, 2);
  CU_ASSERT_PTR_NOT_NULL(strstr(several.err, expected));
  free(digit), free(many);
}

/* Runs of another commit and machine, and a name that a terminal would obey. */
TEST(mixed_origins_are_told_and_shown_harmless) {
  ground g;
  ground_make(&g);
  CU_ASSERT(CLI_GIVES(0, "run", g.recipe, "sweep=null", "seed=7", "-o", g.study, "-q"));
  CU_ASSERT(CLI_GIVES(0, "run", g.recipe, "sweep=null", "seed=8", "-o", g.study, "-q",
                      "name=\"a\\e[2Jb\""));
  cJSON *d = info(g.study, NULL);
  CU_ASSERT_EQUAL(cJSON_GetArraySize(member_at(d, "origins")), 2); /* two commands */
  CU_ASSERT_EQUAL(cJSON_GetArraySize(member_at(d, "studies")), 2);
  const cJSON *one;
  cJSON_ArrayForEach(one, member_at(d, "warnings")) {
    CU_ASSERT_PTR_NULL(strstr(one->valuestring, "processors"));
    CU_ASSERT_PTR_NULL(strstr(one->valuestring, "commits"));
  }
  cli_result text = CLI("info", g.study);
  CU_ASSERT_EQUAL(text.code, 0);
  CU_ASSERT_PTR_NULL(strchr(text.out, '\x1b'));
  CU_ASSERT_PTR_NOT_NULL(strstr(text.out, "a\\x1b[2Jb"));
}

/* Parts made by two commands: the joined file keeps both origins. */
TEST(joined_shards_keep_their_origins) {
  ground g;
  char joined[128], part[2][152];
  ground_make(&g);
  CU_ASSERT(CLI_GIVES(0, "sweep", g.recipe, "-o", g.study, "-q", "--shard", "0/2"));
  CU_ASSERT(CLI_GIVES(0, "sweep", g.recipe, "-o", g.study, "-q", "--shard", "1/2"));
  for (int i = 0; i < 2; ++i) snprintf(part[i], sizeof part[i], "%s.shard%d", g.study, i);
  cli_path(joined, g.folder, "joined.db");
  CU_ASSERT(CLI_GIVES(0, "merge", joined, part[0], part[1]));
  cJSON *d = info(joined, NULL);
  const cJSON *one = member_at(d, "origins")->child, *two = one->next;
  CU_ASSERT_PTR_NOT_NULL_FATAL(two);
  CU_ASSERT(number_at(one, "runs") == 3 && number_at(two, "runs") == 3);
  CU_ASSERT_PTR_NOT_NULL(strstr(text_at(one, "command"), "--shard "));
  CU_ASSERT_STRING_NOT_EQUAL(text_at(one, "command"), text_at(two, "command"));
  CU_ASSERT_EQUAL(asked_number(joined, "SELECT count(*) FROM runs WHERE finished IS NOT NULL AND"
                                       " peak_bytes > 1000000"),
                  6);
}

static int warns(const cJSON *d, const char *of) {
  const cJSON *one;
  cJSON_ArrayForEach(one, member_at(d, "warnings")) {
    if (strstr(one->valuestring, of) != NULL) return 1;
  }
  return 0;
}

/* Each part of an origin, changed alone, gives its own warning. */
TEST(what_is_mixed_is_named) {
  static const run_provenance same = {.version = "1",
                                      .source = "ab",
                                      .dirty = 0,
                                      .command = "c",
                                      .processor = "p",
                                      .system = "s",
                                      .compiler = "cc",
                                      .libraries = "{}"};
  static const struct {
    const char *says;
    run_provenance other;
  } cases[] = {
      {"versions", {"2", "ab", 0, "c", "p", "s", "cc", "{}", ""}},
      {"commits", {"1", "cd", 0, "c", "p", "s", "cc", "{}", ""}},
      {"differed from its commit", {"1", "ab", 1, "c", "p", "s", "cc", "{}", ""}},
      {"processors", {"1", "ab", 0, "c", "q", "s", "cc", "{}", ""}},
      {"compilers", {"1", "ab", 0, "c", "p", "s", "dd", "{}", ""}},
      {"libraries", {"1", "ab", 0, "c", "p", "s", "cc", "{\"GSL\":\"3\"}", ""}},
      {NULL, {"1", "ab", 0, "another command", "p", "s", "cc", "{}", ""}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    ground g;
    static sample_run sample[2];
    ground_make(&g);
    store *s = store_opened(g.study, STORE_WRITE);
    for (int k = 0; k < 2; ++k) {
      sample_run_init(&sample[k], k + 1, 2);
      sample[k].run.provenance = k == 0 ? &same : &cases[i].other;
      CU_ASSERT_EQUAL(store_put_run(s, &sample[k].run, NULL), GL_OK);
    }
    store_close(s);
    cJSON *d = info(g.study, NULL);
    CU_ASSERT_EQUAL(cJSON_GetArraySize(member_at(d, "warnings")), cases[i].says != NULL);
    if (cases[i].says != NULL) CU_ASSERT(warns(d, cases[i].says));
  }
}

/* Beside the runs of a sweep, and in a file of their own. */
TEST(measurements_tell_how_they_came_about) {
  ground g;
  char alone[128];
  ground_make(&g);
  CU_ASSERT(CLI_GIVES(0, "sweep", g.recipe, "-o", g.study, "-q"));
  CU_ASSERT(CLI_GIVES(0, "bias", "four_arms", "-o", g.study));
  CU_ASSERT(CLI_GIVES(0, "bias", "four_arms", "-o", cli_path(alone, g.folder, "alone.db")));
  cJSON *d = info(g.study, NULL);
  const cJSON *of_runs = cJSON_GetArrayItem(member_at(d, "origins"), 0),
              *measured = cJSON_GetArrayItem(member_at(d, "origins"), 1);
  CU_ASSERT_EQUAL(cJSON_GetArraySize(member_at(d, "origins")), 2);
  CU_ASSERT(number_at(of_runs, "runs") == 6 && number_at(of_runs, "measured") == 0);
  CU_ASSERT(number_at(measured, "runs") == 0 && number_at(measured, "measured") == 1);
  CU_ASSERT_PTR_NOT_NULL(strstr(text_at(measured, "command"), "gepolab bias four_arms -o"));
  CU_ASSERT_EQUAL(strlen(text_at(measured, "first")), 20);
  d = info(alone, NULL);
  CU_ASSERT_EQUAL(cJSON_GetArraySize(member_at(d, "origins")), 1);
  char *took = asked(alone, "SELECT wall_s > 0 AND wall_s < 1000 FROM laboratory");
  CU_ASSERT_STRING_EQUAL(took, "1");
  free(took);
  cli_result r = CLI("info", alone);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "measurements of the laboratory, 2"));
}

/* A field that is stated as null, one that is left out, one of the preset and one that follows from
 * others: the study says what they were, and which is which. */
TEST(values_in_effect_are_stored_with_their_origins) {
  static const char *const expected[][3] = {{"null", "$.null.\"optimizer.lr\"", "0.05"},
                                            {"stated", "$.stated.\"train.group_size\"", "4"},
                                            {"default", "$.default.\"optimizer.beta1\"", "0.9"},
                                            {"preset", "$.preset.\"cluster.ahead\"", "4"},
                                            {"computed", "$.computed.\"cluster.window\"", "4"}};
  ground g;
  ground_make(&g);
  CU_ASSERT(CLI_GIVES(0, "run", g.recipe, "-q", "-o", g.study, "sweep=null", "optimizer.lr=null",
                      "cluster.preset=areal"));
  for (size_t i = 0; i < sizeof expected / sizeof *expected; ++i) {
    char sql[160];
    snprintf(sql, sizeof sql, "SELECT json_extract(in_effect, '%s') FROM runs", expected[i][1]);
    char *value = asked(g.study, sql);
    CU_ASSERT_STRING_EQUAL(value, expected[i][2]);
    free(value);
  }
  cli_result r = CLI("export", g.study, "-t", "runs");
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, ",1,0.05,done,"));
  char *key = asked(g.study, "SELECT key FROM runs");
  r = CLI("info", g.study, "--run", key);
  const char *null = strstr(r.out, "  null, so the default\n    optimizer.lr"),
             *preset = strstr(r.out, "  from the preset\n");
  CU_ASSERT(null != NULL && preset != NULL && null < preset);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "  default\n"));
  free(key);
}
