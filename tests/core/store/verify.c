/* Studies whose pages are not where, or not what, they were: writes that went to another place of
 * the disk, were never done, or were done twice. Such pages are whole, and each of their records
 * may have its checksum. */
#include "core/store/store.h"

#include "tests/support/core.h"
#include "tests/support/sql.h"
#include "tests/support/suite.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

SUITE("core: studies with pages in wrong places");

enum { PAGE = 4096, STATES = 10, MOST_TABLES = 9 };

typedef struct bytes {
  unsigned char *at;
  size_t size;
} bytes;

/* A study and what its file held after each of its writes; the last of them is the whole. */
typedef struct ground {
  scratch at;
  char study[SCRATCH_PATH_SIZE], damaged[SCRATCH_PATH_SIZE];
  bytes state[STATES];
  size_t n;
} ground;

static const char *const of_runs[MOST_TABLES] = {"runs", "steps", "evals", "staleness", "clock"};
static const char *const all[MOST_TABLES] = {"runs",  "steps",  "evals", "staleness", "clock",
                                             "tuned", "tuning", "bias",  "provenance"};

static bytes read_bytes(const char *path) {
  struct stat about;
  CU_ASSERT_EQUAL_FATAL(stat(path, &about), 0);
  bytes b = {malloc((size_t)about.st_size), (size_t)about.st_size};
  const int file = open(path, O_RDONLY);
  CU_ASSERT_EQUAL_FATAL(read(file, b.at, b.size), (ssize_t)b.size);
  close(file);
  return b;
}

static void write_bytes(const char *path, const void *at, size_t size) {
  const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  CU_ASSERT_EQUAL_FATAL(write(file, at, size), (ssize_t)size);
  close(file);
}

static void keep(ground *g) {
  CU_ASSERT_FATAL(g->n < STATES);
  g->state[g->n++] = read_bytes(g->study);
}

/* A run of a place that the run before it had, and of a provenance of its own. */
static void put_run(store *s, int ordinal, const char *place) {
  static sample_run sample;
  char command[32];
  snprintf(command, sizeof command, "gepolab run %d", ordinal);
  const run_provenance how = {.version = "1",
                              .source = "",
                              .command = command,
                              .processor = "",
                              .system = "",
                              .compiler = "",
                              .libraries = "{}"};
  sample_run_init(&sample, ordinal, 8);
  sample.run.provenance = &how;
  sample.run.place = place;
  sample.run.chosen = "{\"optimizer.lr\":0.1}";
  CU_ASSERT_EQUAL(store_put_run(s, &sample.run, NULL), GL_OK);
}

static void ground_make(ground *g) {
  const bias_record measured[2] = {{.algorithm = "gepo", .method = "exact", .bias = 0.5},
                                   {.algorithm = "grpo", .method = "exact", .bias = 0.25}};
  const planned_cell tried[2] = {
      {.tuning = 1, .place = "a", .algorithm = "gepo", .swept = "{\"optimizer.lr\":0.1}"},
      {.tuning = 1, .place = "b", .ordinal = 1, .algorithm = "gepo", .swept = "{}"}};
  const study_plan plan = {.study = "s", .recipe = "{}", .shards = 1, .cells = tried, .n = 2};
  *g = (ground){.n = 0};
  scratch_make(&g->at);
  scratch_path(&g->at, "damaged.db", g->damaged);
  store *s = store_opened(scratch_path(&g->at, "study.db", g->study), STORE_WRITE);
  keep(g);
  CU_ASSERT_EQUAL(store_put_tuned(s, "s", "gepo", 0.1, 0.5, NULL), GL_OK);
  CU_ASSERT_EQUAL(store_put_plan(s, &plan, NULL), GL_OK);
  for (int i = 0; i < 3; ++i) /* the second of them twice */
    CU_ASSERT_EQUAL(store_put_score(s, &(score_record){i == 0 ? "a" : "b", "{}", i, i, NULL}, NULL),
                    GL_OK);
  CU_ASSERT_EQUAL(store_put_bias(s, "lab", measured, 2, &(bias_making){.wall_s = 1}, NULL), GL_OK);
  keep(g);
  for (int i = 0; i < 5; ++i) {
    char place[16];
    snprintf(place, sizeof place, "at %d", i == 4 ? 0 : i);
    put_run(s, 1 + i, place);
    keep(g);
  }
  store_close(s);
}

static void ground_remove(ground *g) {
  for (size_t i = 0; i < g->n; ++i) free(g->state[i].at);
  scratch_remove(&g->at);
}

static bytes whole_of(const ground *g) {
  return g->state[g->n - 1];
}

/* These tables of the study as text, or NULL where it is refused. */
static char *exports(const char *path, const char *const *tables) {
  gl_error err = {0};
  size_t n = 0;
  while (n < MOST_TABLES && tables[n] != NULL) ++n;
  char *text = store_text(path, tables, n, &err);
  if (text == NULL) CU_ASSERT(strstr(err.text, path) != NULL);
  return text;
}

/* The damaged bytes are refused, or read as the whole study: 1 if they were refused. */
static int told(const ground *g, const char *const *tables, const char *whole,
                const unsigned char *damaged, size_t size, const char *how) {
  write_bytes(g->damaged, damaged, size);
  char *text = exports(g->damaged, tables);
  const int refused = text == NULL, silent = !refused && strcmp(text, whole) != 0;
  if (silent) fprintf(stderr, "%s changes an export silently\n", how);
  CU_ASSERT_FALSE(silent);
  free(text);
  return refused;
}

/* What is done to a copy of the whole study with page a and page b, or page a of state b. */
typedef void (*damaging)(unsigned char *to, bytes whole, size_t a, size_t b);

static void swap_pages(unsigned char *to, bytes whole, size_t a, size_t b) {
  memcpy(to + a * PAGE, whole.at + b * PAGE, PAGE);
  memcpy(to + b * PAGE, whole.at + a * PAGE, PAGE);
}

static void repeat_page(unsigned char *to, bytes whole, size_t a, size_t b) {
  memcpy(to + b * PAGE, whole.at + a * PAGE, PAGE);
}

static void empty_page(unsigned char *to, bytes whole, size_t a, size_t b) {
  (void)whole;
  memset(to + a * PAGE, b == 0 ? 0 : 0xff, PAGE);
}

static void try_pages(damaging damage, const char *name, size_t others) {
  ground g;
  char how[80];
  int refused = 0, tried = 0;
  ground_make(&g);
  const bytes whole = whole_of(&g);
  const size_t pages = whole.size / PAGE;
  unsigned char *damaged = malloc(whole.size);
  char *text = exports(g.study, all);
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  for (size_t a = 0; a < pages; ++a)
    for (size_t b = 0; b < (others > 0 ? others : pages); ++b) {
      if ((others == 0 && a == b) || (damage == swap_pages && b < a)) continue;
      memcpy(damaged, whole.at, whole.size);
      damage(damaged, whole, a, b);
      snprintf(how, sizeof how, "%s %zu, %zu", name, a, b);
      refused += told(&g, all, text, damaged, whole.size, how);
      ++tried;
    }
  CU_ASSERT(refused > tried / 2);
  free(text), free(damaged);
  ground_remove(&g);
}

TEST(swapped_pages_are_told) {
  try_pages(swap_pages, "swapping pages", 0);
}

TEST(a_page_in_the_place_of_another_is_told) {
  try_pages(repeat_page, "repeating page", 0);
}

TEST(a_page_of_nothing_is_told) {
  try_pages(empty_page, "emptying page", 2);
}

TEST(a_file_cut_short_is_told) {
  ground g;
  ground_make(&g);
  const bytes whole = whole_of(&g);
  char *text = exports(g.study, all);
  for (size_t size = 1; size < whole.size; size += size % PAGE == 0 ? 1 : PAGE - 1)
    CU_ASSERT(told(&g, all, text, whole.at, size, "a cut"));
  free(text);
  ground_remove(&g);
}

/* Pages as they were before a later write. */
TEST(an_older_page_is_told) {
  ground g;
  char how[80];
  int refused = 0;
  ground_make(&g);
  const bytes whole = whole_of(&g);
  unsigned char *damaged = malloc(whole.size);
  char *text = exports(g.study, all);
  for (size_t state = 0; state + 1 < g.n; ++state)
    for (size_t page = 0; page < g.state[state].size / PAGE; ++page) {
      memcpy(damaged, whole.at, whole.size);
      memcpy(damaged + page * PAGE, g.state[state].at + page * PAGE, PAGE);
      snprintf(how, sizeof how, "page %zu of state %zu", page, state);
      refused += told(&g, all, text, damaged, whole.size, how);
    }
  CU_ASSERT(refused > (int)g.n);
  free(text), free(damaged);
  ground_remove(&g);
}

TEST(tuning_runs_are_exported_with_what_they_scored) {
  ground g;
  static const char *const tables[MOST_TABLES] = {"tuning"};
  ground_make(&g);
  char *text = exports(g.study, tables);
  CU_ASSERT_STRING_EQUAL(text, "study,ordinal,key,algorithm,seed,optimizer.lr,score\n"
                               "s,0,a,gepo,0,0.1,0\ns,1,b,gepo,0,,2\n");
  free(text);
  ground_remove(&g);
}

/* --- records that are gone --- */

static void note(void *self, const char *key, const char *text) {
  (void)key;
  strncat(self, text, 511 - strlen(self));
}

TEST(records_that_are_gone_are_told_and_done_without) {
  static const struct {
    const char *sql, *says;
  } gone[] = {
      {"DELETE FROM tuning_scores WHERE key = 'a'", "records of the table tuning_scores are gone"},
      {"UPDATE tuning_scores SET key = 'c', sum = NULL WHERE key = 'b'", "tuning_scores"},
      {"DELETE FROM superseded", "several runs of s stand in the place of gepo, seed"},
      {"DELETE FROM provenance WHERE command LIKE '% 3'", "came about is gone from the table"},
  };
  for (size_t i = 0; i < sizeof gone / sizeof *gone; ++i) {
    ground g;
    char said[512] = "";
    store_removed removed;
    ground_make(&g);
    char *before = exports(g.study, of_runs);
    run_sql(g.study, gone[i].sql);
    CU_ASSERT_PTR_NULL(exports(g.study, all));
    store *s = store_opened(g.study, STORE_WRITE);
    CU_ASSERT_EQUAL(store_check(s, note, said, NULL), GL_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, gone[i].says));
    CU_ASSERT_EQUAL(store_repair(s, &removed, NULL), GL_OK);
    said[0] = '\0';
    CU_ASSERT_EQUAL(store_check(s, note, said, NULL), GL_OK);
    CU_ASSERT_STRING_EQUAL(said, "");
    CU_ASSERT_EQUAL(store_number(s, "SELECT count(*) FROM runs"), 5);
    store_close(s);
    char *after = exports(g.study, of_runs);
    CU_ASSERT_PTR_NOT_NULL_FATAL(after);
    CU_ASSERT_STRING_EQUAL(before, after);
    free(before), free(after);
    ground_remove(&g);
  }
}

/* Runs of which it is not known how they came about share no place either. */
TEST(several_runs_of_a_place_without_provenance_are_damage) {
  scratch at;
  char said[512] = "", path[SCRATCH_PATH_SIZE];
  static sample_run sample[2];
  scratch_make(&at);
  store *s = store_opened(scratch_path(&at, "study.db", path), STORE_WRITE);
  for (int i = 0; i < 2; ++i) {
    sample_run_init(&sample[i], 6 + i, 3);
    sample[i].run.place = "one place";
    CU_ASSERT_EQUAL(store_put_run(s, &sample[i].run, NULL), GL_OK);
  }
  store_close(s);
  run_sql(path, "DELETE FROM superseded; DELETE FROM seals WHERE name = 'superseded'");
  s = store_opened(path, STORE_READ);
  CU_ASSERT_EQUAL(store_check(s, note, said, NULL), GL_OK);
  CU_ASSERT_PTR_NOT_NULL(strstr(said, "several runs of"));
  store_close(s);
  scratch_remove(&at);
}
