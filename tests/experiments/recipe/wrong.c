/* Wrong recipes: each gets file:line:column, the reason, where there is one the nearest name, exit
 * code 2, and leaves no file behind. */
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

SUITE("cli: wrong recipes");

#define WORLD "world: {kind: bandit, rewards: [1, 0]}\n"
#define SWEEP "sweep: {seed: [1, 2]}\n"

typedef struct wrong_recipe {
  const char *what;
  const char *text;
  const char *override; /* NULL: none */
  const char *place;    /* line:column, or the beginning of it */
  const char *says;
  const char *near; /* nearest name in quotes; NULL: none is near */
} wrong_recipe;

static const wrong_recipe wrong[] = {
    {"unknown key", WORLD SWEEP "setps: 10\n", NULL, "3:", "setps", "'steps'"},
    {"unknown key near include", WORLD SWEEP "inclued: x\n", NULL, "3:", "inclued", "'include'"},
    {"word for a number", WORLD SWEEP "steps: many\n", NULL, "3:8", "many", NULL},
    {"negative count", WORLD SWEEP "steps: -5\n", NULL, "3:8", "-5", NULL},
    {"zero updates", WORLD SWEEP "steps: 0\n", NULL, "3:8", "steps", NULL},
    {"fractional seed", WORLD SWEEP "seed: 1.5\n", NULL, "3:7", "1.5", NULL},
    {"map for a number", WORLD SWEEP "steps: {a: 1}\n", NULL, "3:8", "steps", NULL},
    {"empty sweep", WORLD "sweep: {}\n", NULL, "2:8", "empty", NULL},
    {"no sweep", WORLD, NULL, "1:1", "no sweep", NULL},
    {"empty axis", WORLD "sweep: {seed: []}\n", NULL, "2:15", "at least one value", NULL},
    {"axis that is no list", WORLD "sweep: {seed: 3}\n", NULL, "2:15", "must be a list", NULL},
    {"unknown axis", WORLD "sweep: {clutser.max_delay: [1]}\n", NULL, "2:", "clutser", "'cluster'"},
    {"same seed twice", WORLD "sweep: {seed: [1, 1]}\n", NULL, "2:", "twice", NULL},
    {"same algorithm name twice",
     WORLD "sweep: {algorithm: [{base: gepo, name: mine}, {base: gspo, name: mine}]}\n", NULL,
     "2:", "name:", NULL},
    {"unknown algorithm", WORLD SWEEP "algorithm: geppo\n", NULL, "3:12", "geppo", "'gepo'"},
    {"unknown field", WORLD SWEEP "algorithm: {base: gepo, clipp: none}\n", NULL, "3:", "clipp",
     "'clip'"},
    {"unknown choice", WORLD SWEEP "algorithm: {base: gepo, clip: nonne}\n", NULL, "3:", "nonne",
     "'none'"},
    {"wrong algorithm in one cell", WORLD "sweep: {algorithm: [grpo, gepo, gspoo]}\n", NULL,
     "2:", "gspoo", "'gspo'"},
    {"no world", SWEEP "steps: 10\n", NULL, "1:1", "world", NULL},
    {"unknown world", "world: {kind: bandti}\n" SWEEP, NULL, "1:15", "bandti", "'bandit'"},
    {"world without a kind", "world: {rewards: [1, 0]}\n" SWEEP, NULL, "1:", "kind", NULL},
    {"world that is no map", "world: bandit\n" SWEEP, NULL, "1:8", "map", NULL},
    {"reward that is no number", "world: {kind: bandit, rewards: [1, .nan]}\n" SWEEP, NULL, "1:36",
     "finite", NULL},
    {"world too large", "world: {kind: sequence, vocabulary: 10, horizon: 20}\n" SWEEP, NULL,
     "1:", "responses", NULL},
    {"unknown optimizer", WORLD SWEEP "optimizer: {kind: adm}\n", NULL, "3:", "adm", "'adam'"},
    {"negative rate", WORLD SWEEP "optimizer: {lr: -0.1}\n", NULL, "3:17", "lr", NULL},
    {"temperature zero", WORLD SWEEP "sampling: {temperature: 0}\n", NULL, "3:25", "temperature",
     NULL},
    {"group of none", WORLD SWEEP "train: {group_size: 0}\n", NULL, "3:21", "group_size", NULL},
    {"weight noise and drops of wrong responses",
     WORLD SWEEP "train: {weight_noise: 1, drop_negative: 0.5}\n", NULL, "3:41",
     "set one of them to 0", NULL},
    {"weight noise and drops of right responses",
     WORLD SWEEP "train: {drop_positive: 0.5, weight_noise: 1}\n", NULL, "3:24",
     "set one of them to 0", NULL},
    {"weight noise and drops of groups of equal rewards",
     WORLD SWEEP "train: {weight_noise: 1, drop_equal: 1}\n", NULL, "3:38", "set one of them to 0",
     NULL},
    {"more updates of a step than weight noise can address",
     WORLD SWEEP "train: {weight_noise: 1, minibatches: 2, epochs: 32769}\n", NULL, "3:23",
     "lower minibatches or epochs", NULL},
    {"more updates of a step than drops can address",
     WORLD SWEEP "train: {drop_negative: 0.5, epochs: 65537}\n", NULL, "3:24",
     "lower minibatches or epochs", NULL},
    {"replay without a transformer", WORLD SWEEP "train: {replay: {coef: 4}}\n", NULL, "3:17",
     "coef: 0", NULL},
    {"replay of no response", WORLD SWEEP "train: {replay: {responses: 0}}\n", NULL, "3:29",
     "from 1 to", NULL},
    {"unknown key below", WORLD SWEEP "train: {gruops: 4}\n", NULL, "3:", "gruops", "'groups'"},
    {"negative delay", WORLD SWEEP "cluster: {preset: heterorl, max_delay: -5}\n", NULL,
     "3:", "max_delay", NULL},
    {"unknown preset", WORLD SWEEP "cluster: {preset: hetrorl}\n", NULL, "3:", "hetrorl",
     "'heterorl'"},
    {"tuning without seeds", WORLD SWEEP "tune: {lr: [0.1]}\n", NULL, "3:", "seeds", NULL},
    {"tuning on the sweep's seeds", WORLD SWEEP "tune: {lr: [0.1], seeds: [2]}\n", NULL, "3:27",
     "other than", NULL},
    {"tuning at negative rates", WORLD SWEEP "tune: {lr: [-1], seeds: [7]}\n", NULL, "3:13",
     "not negative", NULL},
    {"tuning what is swept", WORLD "sweep: {optimizer.lr: [0.1, 1]}\ntune: {lr: [1], seeds: [7]}\n",
     NULL, "2:", "keep one", NULL},
    {"two paces of checkpoints", WORLD SWEEP "checkpoint: {every: 5, seconds: 9}\n", NULL, "3:33",
     "not both", NULL},
    {"no checkpoint kept", WORLD SWEEP "checkpoint: {keep: 0}\n", NULL, "3:20", "keep", NULL},
    {"pace of nothing", WORLD SWEEP "checkpoint: {evry: 5}\n", NULL, "3:", "evry", "'every'"},
    {"checkpoint that is no map", WORLD SWEEP "checkpoint: 5\n", NULL, "3:13", "map", NULL},
    {"not YAML", "world: {kind: [\n", NULL, "", "", NULL},
    {"cyclic alias", "world: &w {kind: bandit, again: *w}\n" SWEEP, NULL, "1:", "", NULL},
    {"the same key twice", WORLD "steps: 1\nsteps: 2\n" SWEEP, NULL, "3:", "steps", NULL},
    {"two documents", WORLD SWEEP "---\nsteps: 1\n", NULL, "", "", NULL},
    {"a list", "- 1\n- 2\n", NULL, "1:1", "map", NULL},
    {"an empty file", "", NULL, "1:1", "", NULL},
    {"not UTF-8", "name: \xff\xfe\n" WORLD SWEEP, NULL, "", "", NULL},
    {"wrong override", WORLD SWEEP, "steps=many", "1:", "many", NULL},
    {"override of nothing", WORLD SWEEP, "setps=4", "1:", "setps", "'steps'"},
    {"override that an axis would undo", WORLD "sweep: {algorithm: [grpo, gepo]}\n",
     "algorithm.clip=none", "", "sweep.algorithm.clip=[none]", NULL},
    {"unit of another dimension", WORLD SWEEP "cluster: {max_delay: 5MB}\n", NULL, "3:22",
     "'cluster.max_delay' is in s", NULL},
    {"include of itself", WORLD SWEEP "include: wrong.yaml\n", NULL, "3:10", "a cycle", NULL},
    {"override that is not YAML", WORLD SWEEP, "sweep.seed=[1,2", "", "", NULL},
};

static const char *describe(const wrong_recipe *w, const cli_result *r) {
  static char text[512];
  snprintf(text, sizeof text, "%s: exit %d, %.300s", w->what, r->code, r->err);
  return text;
}

/* The message begins with file (or command line) and two numbers. */
static int has_place(const char *err, const char *file, const char *place) {
  char start[256];
  if (strncmp(err, "gepolab: ", 9) != 0) return 0;
  err += 9;
  snprintf(start, sizeof start, "%s:", file);
  if (strncmp(err, start, strlen(start)) != 0) return 0;
  err += strlen(start);
  int line = 0, column = 0, used = 0;
  if (strncmp(err, place, strlen(place)) != 0) return 0;
  return sscanf(err, "%d:%d:%n", &line, &column, &used) == 2 && used > 0 && line > 0 && column > 0;
}

static void check_wrong(const wrong_recipe *w, const char *path, const char *folder) {
  char db[128];
  cli_path(db, folder, "study.db");
  cli_result r = CLI("sweep", path, "-o", db, "-q", w->override != NULL ? w->override : "-q");
  const char *file = w->override != NULL ? "command line" : path;
  int good = r.code == 2 && has_place(r.err, file, w->place) && strstr(r.err, w->says) != NULL &&
             (w->near == NULL || strstr(r.err, w->near) != NULL) && r.out_size == 0 &&
             cli_files_in(folder) == 1;
  if (!good) CU_assertImplementation(0, __LINE__, describe(w, &r), __FILE__, "", 0);
  CU_PASS("as expected");
}

TEST(wrong_recipes_are_refused_with_place_reason_and_nearest_name) {
  char folder[64], path[128];
  cli_scratch_make(folder);
  cli_path(path, folder, "wrong.yaml");
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
    cli_write(path, wrong[i].text, strlen(wrong[i].text));
    check_wrong(&wrong[i], path, folder);
  }
}

static void check_text(const char *what, const char *text, size_t size) {
  char folder[64], path[128];
  const wrong_recipe w = {.what = what, .place = "", .says = ""};
  cli_scratch_make(folder);
  cli_path(path, folder, "wrong.yaml");
  cli_write(path, text, size);
  check_wrong(&w, path, folder);
}

static const char alias_bomb[] =
    "a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
    "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
    "e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n"
    "g: [*f,*f,*f,*f,*f,*f,*f,*f,*f,*f]\n";

TEST(monstrous_files_are_refused) {
  enum { LINE = 10 << 20, DEPTH = 5000 };
  char *text = malloc(LINE + 64);
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  memset(text, 'x', LINE);
  check_text("a line of 10 MB", text, LINE);
  memset(text, '[', DEPTH);
  check_text("5000 open brackets", text, DEPTH);
  memset(text, 0, 64);
  check_text("zeros", text, 64);
  free(text);
  check_text("an alias bomb", alias_bomb, sizeof alias_bomb - 1);
}

TEST(a_missing_file_and_a_folder_are_refused) {
  char folder[64], path[128], db[128];
  cli_scratch_make(folder);
  cli_path(path, folder, "missing.yaml");
  cli_path(db, folder, "study.db");
  cli_result r = CLI("sweep", path, "-o", db, "-q");
  CU_ASSERT_EQUAL(r.code, 2);
  CU_ASSERT(has_place(r.err, path, ""));
  r = CLI("sweep", folder, "-o", db, "-q");
  CU_ASSERT(r.code == 1 || r.code == 2);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, folder));
  CU_ASSERT_EQUAL(cli_files_in(folder), 0);
}

TEST(a_wrong_recipe_leaves_an_existing_study_alone) {
  char folder[64], path[128], db[128];
  struct stat before, after;
  cli_scratch_make(folder);
  cli_path(path, folder, "recipe.yaml");
  cli_path(db, folder, "study.db");
  cli_write(path, WORLD SWEEP "steps: 3\n", strlen(WORLD SWEEP "steps: 3\n"));
  CU_ASSERT(CLI_GIVES(0, "sweep", path, "-o", db, "-q"));
  CU_ASSERT_EQUAL_FATAL(stat(db, &before), 0);
  CU_ASSERT(CLI_GIVES(2, "sweep", path, "-o", db, "-q", "algorithm=nonsense"));
  CU_ASSERT_EQUAL_FATAL(stat(db, &after), 0);
  CU_ASSERT(before.st_size == after.st_size && before.st_mtime == after.st_mtime);
}
