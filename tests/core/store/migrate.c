/* Studies that older versions wrote, kept in tests/golden/ with what these versions exported: the
 * oracle of all that is read from them here. */
#include "core/base/csv.h"
#include "core/store/plan.h"
#include "tests/support/core.h"
#include "tests/support/faulty_vfs.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
  OLDEST = 1,
  NEWEST = 5,
  NOW = 6,
  LAST_TO_LACK = 2,
  GOLDEN_RUNS = 8
}; /* and as many tuning runs */

static const char *const tables[] = {"runs", "steps", "evals", "staleness", "clock", "tuned"};
enum { N_TABLES = sizeof tables / sizeof *tables };

typedef struct ground {
  scratch at;
  char golden[SCRATCH_PATH_SIZE], exported[SCRATCH_PATH_SIZE], study[SCRATCH_PATH_SIZE];
} ground;

/* A copy of the study of that format, to do anything with. */
static void ground_make(ground *g, int format) {
  scratch_make(&g->at);
  snprintf(g->golden, sizeof g->golden, "tests/golden/study_format%d.db", format);
  snprintf(g->exported, sizeof g->exported, "tests/golden/study_format%d.txt", format);
  scratch_copy(g->golden, scratch_path(&g->at, "study.db", g->study));
  faulty_vfs_arm((fault_plan){0});
}

static void ground_remove(const ground *g) {
  scratch_remove(&g->at);
}

/* --- tables of text --- */

enum { MOST_ROWS = 128, MOST_COLUMNS = 80 };
typedef struct sheet {
  char *cell[MOST_ROWS][MOST_COLUMNS]; /* owned; row 0: the headings */
  size_t rows, columns;
} sheet;

static void sheet_fini(sheet *s) {
  for (size_t r = 0; r < MOST_ROWS; ++r)
    for (size_t c = 0; c < MOST_COLUMNS; ++c) free(s->cell[r][c]);
  *s = (sheet){0};
}

static void sheet_read(sheet *s, const char *text, size_t size) {
  csv_reader r;
  gl_error err = {0};
  *s = (sheet){0};
  gl_status status = csv_begin(&r, text, size, "a table", &err);
  while (status == GL_OK && csv_line(&r)) {
    size_t column = 0;
    CU_ASSERT_FATAL(s->rows < MOST_ROWS && csv_most_cells(&r) <= MOST_COLUMNS);
    for (int more = 1; more && status == GL_OK; ++column) {
      status = csv_cell(&r, &more);
      if (status == GL_OK) s->cell[s->rows][column] = strdup(r.cell);
    }
    s->columns = column;
    ++s->rows;
  }
  csv_end(&r);
  if (status != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_EQUAL_FATAL(status, GL_OK);
}

/* The section of the golden file that begins with the line "# TABLE". */
static void sheet_of_golden(sheet *s, const char *path, const char *table) {
  char heading[64];
  char *text = scratch_read(path);
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  snprintf(heading, sizeof heading, "# %s\n", table);
  const char *at = strstr(text, heading);
  CU_ASSERT_PTR_NOT_NULL_FATAL(at);
  at += strlen(heading);
  const char *end = strstr(at, "\n# ");
  sheet_read(s, at, end != NULL ? (size_t)(end - at) + 1 : strlen(at));
  free(text);
}

static size_t column_of(const sheet *s, const char *name) {
  size_t c = 0;
  while (c < s->columns && strcmp(s->cell[0][c], name) != 0) ++c;
  return c;
}

/* What a column of format 1 is called now: `axes` is a column for each field, and the rate of the
 * run stands in optimizer.lr. */
static const char *name_now(const sheet *old, size_t c, const char *table) {
  const char *name = old->cell[0][c];
  if (strcmp(name, "axes") == 0) return "cluster.max_delay";
  const int of_run = strcmp(table, "tuned") != 0 && column_of(old, "lr") == c &&
                     column_of(old, "optimizer.lr") == old->columns;
  return of_run && strcmp(name, "lr") == 0 ? "optimizer.lr" : name;
}

/* Every column that the older program wrote has its values; there may be more. */
static void compare_sheets(const sheet *old, const sheet *now, const char *table) {
  CU_ASSERT_EQUAL_FATAL(old->rows, now->rows);
  CU_ASSERT(now->columns + 1 >= old->columns);
  for (size_t c = 0; c < old->columns; ++c) {
    const int axes = strcmp(old->cell[0][c], "axes") == 0;
    if (axes && strcmp(table, "tuned") == 0) continue; /* one rate for all settings here */
    const size_t at = column_of(now, name_now(old, c, table));
    if (at == now->columns) fprintf(stderr, "%s has no column %s\n", table, old->cell[0][c]);
    CU_ASSERT_FATAL(at < now->columns);
    size_t other = 0;
    for (size_t r = 1; r < old->rows; ++r) {
      char as_axes[128];
      snprintf(as_axes, sizeof as_axes, "{\"cluster.max_delay\":%s}", now->cell[r][at]);
      const char *value = axes ? as_axes : now->cell[r][at];
      if (strcmp(value, old->cell[r][c]) == 0) continue;
      ++other;
      fprintf(stderr, "%s, %s: %s was %s\n", table, old->cell[0][c], value, old->cell[r][c]);
    }
    CU_ASSERT_EQUAL(other, 0);
  }
}

static char *export_of(store *s, const char *table) {
  char *text = NULL;
  size_t size = 0;
  gl_error err = {0};
  FILE *to = open_memstream(&text, &size);
  CU_ASSERT_EQUAL(store_export(s, table, "csv", to, &err), GL_OK);
  if (err.text[0] != '\0') fprintf(stderr, "%s\n", err.text);
  fclose(to);
  return text;
}

/* Recipes were a column of runs; now they are a table with the runs' keys, in the same order. */
static void add_recipes(sheet *runs, store *s) {
  static sheet recipes;
  char *text = export_of(s, "recipes");
  const size_t key = column_of(runs, "key");
  sheet_read(&recipes, text, strlen(text));
  CU_ASSERT_EQUAL_FATAL(recipes.rows, runs->rows);
  CU_ASSERT_FATAL(key < runs->columns && runs->columns < MOST_COLUMNS);
  for (size_t r = 0; r < runs->rows; ++r) {
    CU_ASSERT_STRING_EQUAL(recipes.cell[r][0], runs->cell[r][key]);
    runs->cell[r][runs->columns] = strdup(recipes.cell[r][1]);
  }
  ++runs->columns;
  sheet_fini(&recipes);
  free(text);
}

static void compare_with_golden(store *s, const ground *g) {
  static sheet old, now;
  for (int i = 0; i < N_TABLES; ++i) {
    char *text = export_of(s, tables[i]);
    sheet_of_golden(&old, g->exported, tables[i]);
    sheet_read(&now, text, strlen(text));
    if (strcmp(tables[i], "runs") == 0) add_recipes(&now, s);
    compare_sheets(&old, &now, tables[i]);
    sheet_fini(&old), sheet_fini(&now);
    free(text);
  }
}

/* The study at path exports what the older program did. */
static void check_exports(const ground *g, const char *path) {
  store *s = store_opened(path, STORE_READ);
  compare_with_golden(s, g);
  store_close(s);
}

/* --- reading --- */

static char *bytes_of(const char *path, size_t *size) {
  struct stat about;
  CU_ASSERT_EQUAL_FATAL(stat(path, &about), 0);
  char *bytes = malloc((size_t)about.st_size);
  FILE *from = fopen(path, "rb");
  *size = fread(bytes, 1, (size_t)about.st_size, from);
  fclose(from);
  return bytes;
}

static void an_older_study_is_read_as_its_program_read_it(void) {
  for (int format = OLDEST; format <= NEWEST; ++format) {
    ground g;
    size_t before_size = 0, after_size = 0;
    ground_make(&g, format);
    char *before = bytes_of(g.study, &before_size);
    CU_ASSERT_EQUAL(chmod(g.study, 0400), 0);
    store *s = store_opened(g.study, STORE_READ);
    CU_ASSERT_EQUAL(store_format(s), format);
    compare_with_golden(s, &g);
    CU_ASSERT_EQUAL(store_verify(s, NULL, NULL), GL_OK);
    store_close(s);
    char *after = bytes_of(g.study, &after_size);
    CU_ASSERT(before_size == after_size && memcmp(before, after, after_size) == 0);
    CU_ASSERT_EQUAL(scratch_count(&g.at), 1);
    free(before), free(after);
    ground_remove(&g);
  }
}

static void an_older_study_says_what_it_lacks(void) {
  static const char *const lacks[] = {"", "written by gepolab 0.1.0", "before format 3"};
  for (int format = OLDEST; format <= LAST_TO_LACK; ++format) {
    ground g;
    study_progress p;
    ground_make(&g, format);
    store *s = store_opened(g.study, STORE_READ);
    CU_ASSERT_PTR_NOT_NULL(strstr(store_lacks(s), lacks[format]));
    CU_ASSERT_PTR_NOT_NULL(strstr(store_lacks(s), "which cells were planned"));
    CU_ASSERT_EQUAL(store_progress(s, "formats", &p, NULL), GL_OK);
    CU_ASSERT(p.planned == 0 && p.done == GOLDEN_RUNS && p.superseded == 0);
    CU_ASSERT_EQUAL(store_number(s, "SELECT count(*) FROM runs WHERE provenance IS NULL AND"
                                    " finished IS NULL AND peak_bytes IS NULL"),
                    GOLDEN_RUNS);
    store_close(s);
    ground_remove(&g);
  }
}

/* --- bringing up to date --- */

static void count_damage(void *self, const char *key, const char *text) {
  (void)key;
  fprintf(stderr, "%s\n", text);
  ++*(int *)self;
}

static void check_migrated(const ground *g, const char *path) {
  int n = 0;
  store *s = store_opened(path, STORE_READ);
  CU_ASSERT_EQUAL(store_format(s), NOW);
  CU_ASSERT_PTR_NULL(store_lacks(s));
  CU_ASSERT_EQUAL(store_check(s, count_damage, &n, NULL), GL_OK);
  CU_ASSERT_EQUAL(n, 0);
  store_close(s);
  check_exports(g, path);
}

static void opened_for_writing_it_gets_the_present_format_and_exports_the_same(void) {
  for (int format = OLDEST; format <= NEWEST; ++format) {
    ground g;
    static sample_run sample;
    ground_make(&g, format);
    store_close(store_opened(g.study, STORE_WRITE));
    check_migrated(&g, g.study);
    store *s = store_opened(g.study, STORE_WRITE);
    sample_run_init(&sample, 99, 3);
    CU_ASSERT_EQUAL(store_put_run(s, &sample.run, NULL), GL_OK);
    CU_ASSERT_EQUAL(store_remove_run(s, sample.key, NULL), GL_OK);
    store_close(s);
    check_migrated(&g, g.study);
    ground_remove(&g);
  }
}

static void an_older_study_is_merged_into_a_new_one(void) {
  for (int format = OLDEST; format <= NEWEST; ++format) {
    ground g;
    gl_error err = {0};
    char joined[SCRATCH_PATH_SIZE];
    ground_make(&g, format);
    store *s = store_opened(scratch_path(&g.at, "joined.db", joined), STORE_WRITE);
    CU_ASSERT_EQUAL(store_merge(s, g.golden, &err), GL_OK);
    CU_ASSERT_EQUAL(store_merge(s, g.golden, &err), GL_OK); /* what is there is not doubled */
    if (err.text[0] != '\0') fprintf(stderr, "%s\n", err.text);
    CU_ASSERT_EQUAL(store_number(s, "SELECT count(*) FROM runs"), GOLDEN_RUNS);
    CU_ASSERT_EQUAL(store_number(s, "SELECT count(*) FROM tuning_scores"), GOLDEN_RUNS);
    store_close(s);
    check_migrated(&g, joined);
    ground_remove(&g);
  }
}

/* The same sweep by two versions: other keys, because recipes had another meaning. */
static void studies_of_two_formats_are_merged(void) {
  ground g;
  gl_error err = {0};
  ground_make(&g, 1);
  store *s = store_opened(g.study, STORE_WRITE);
  CU_ASSERT_EQUAL(store_merge(s, "tests/golden/study_format2.db", &err), GL_OK);
  if (err.text[0] != '\0') fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_EQUAL(store_number(s, "SELECT count(*) FROM runs"), 2 * GOLDEN_RUNS);
  CU_ASSERT_EQUAL(store_number(s, "SELECT count(DISTINCT place) FROM runs"), 2 * GOLDEN_RUNS);
  CU_ASSERT_EQUAL(store_number(s, "SELECT count(*) FROM superseded"), 0);
  store_close(s);
  ground_remove(&g);
}

/* --- what fails on the way --- */

static const int changes = FAULT_WRITE | FAULT_SYNC | FAULT_TRUNCATE | FAULT_DELETE;

/* A child that opens the study for writing and dies at the nth change of the disk. Whether it died.
 */
static int migrate_and_die(const char *study, int nth) {
  const pid_t child = fork();
  if (child == 0) {
    store *s = NULL;
    faulty_vfs_arm((fault_plan){changes, nth, FAULT_KILL, 0});
    const gl_status status = store_open_vfs(&s, study, STORE_WRITE, FAULTY_VFS, NULL);
    store_close(s);
    _exit(status == GL_OK ? 0 : 1);
  }
  int ended = 0;
  CU_ASSERT_EQUAL_FATAL(waitpid(child, &ended, 0), child);
  const int died = WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL;
  CU_ASSERT(died || (WIFEXITED(ended) && WEXITSTATUS(ended) == 0));
  return died;
}

static void killed_at_any_moment_it_is_the_older_study_or_the_new_one(void) {
  for (int format = OLDEST; format <= NEWEST; ++format) {
    ground g;
    int died = 1, nth = 1, older = 0;
    ground_make(&g, format);
    for (; died; ++nth) {
      scratch_copy(g.golden, g.study);
      died = migrate_and_die(g.study, nth);
      store *s = store_opened(g.study, STORE_READ);
      CU_ASSERT(store_format(s) == format || store_format(s) == NOW);
      older += died && store_format(s) == format;
      compare_with_golden(s, &g);
      store_close(s);
    }
    CU_ASSERT(older > 5); /* it did die at several moments */
    check_migrated(&g, g.study);
    ground_remove(&g);
  }
}

/* It fills up at the first write, at the second …: all of the change is made, or none. */
static void a_full_disk_leaves_the_older_study_or_the_new_one(void) {
  for (int format = OLDEST; format <= NEWEST; ++format) {
    ground g;
    int fired = 1, nth = 1, older = 0;
    ground_make(&g, format);
    for (; fired; ++nth) {
      store *s = NULL;
      gl_error err = {0};
      scratch_copy(g.golden, g.study);
      faulty_vfs_arm((fault_plan){FAULT_WRITE, nth, SQLITE_FULL, 1});
      const gl_status status = store_open_vfs(&s, g.study, STORE_WRITE, FAULTY_VFS, &err);
      fired = faulty_vfs_fired();
      store_close(s);
      faulty_vfs_arm((fault_plan){0});
      CU_ASSERT_EQUAL(status, fired ? GL_EIO : GL_OK);
      if (fired) CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "the disk is full"));
      s = store_opened(g.study, STORE_READ);
      CU_ASSERT(store_format(s) == NOW || (fired && store_format(s) == format));
      older += store_format(s) == format;
      compare_with_golden(s, &g);
      store_close(s);
    }
    CU_ASSERT(older > 5);
    ground_remove(&g);
  }
}

SUITE(core_store_migrate, "core: studies of older formats",
      TEST(an_older_study_is_read_as_its_program_read_it), TEST(an_older_study_says_what_it_lacks),
      TEST(opened_for_writing_it_gets_the_present_format_and_exports_the_same),
      TEST(an_older_study_is_merged_into_a_new_one), TEST(studies_of_two_formats_are_merged),
      TEST(killed_at_any_moment_it_is_the_older_study_or_the_new_one),
      TEST(a_full_disk_leaves_the_older_study_or_the_new_one));
