/* Damage taken out of studies, and whole runs out of damaged files. */
#include "core/store/store.h"

#include "tests/support/core.h"
#include "tests/support/sql.h"
#include "tests/support/suite.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

SUITE("core: damaged studies repaired");

enum { RUNS = 6, STEPS = 40 };

typedef struct ground {
  scratch at;
  char study[SCRATCH_PATH_SIZE], other[SCRATCH_PATH_SIZE];
} ground;

static void ground_make(ground *g) {
  const bias_record measured = {.algorithm = "gepo", .method = "exact", .bias = 0.5};
  scratch_make(&g->at);
  scratch_path(&g->at, "other.db", g->other);
  store *s = store_opened(scratch_path(&g->at, "study.db", g->study), STORE_WRITE);
  store_put_samples(s, 1, RUNS, STEPS);
  CU_ASSERT_EQUAL(store_put_tuned(s, "s", "gepo", 0.1, 0.5, NULL), GL_OK);
  CU_ASSERT_EQUAL(store_put_bias(s, "lab", &measured, 1, &(bias_making){.wall_s = 1}, NULL), GL_OK);
  CU_ASSERT_EQUAL(store_put_bias(s, "another lab", &measured, 1, &(bias_making){.wall_s = 1}, NULL),
                  GL_OK);
  store_close(s);
}

static void ground_remove(const ground *g) {
  scratch_remove(&g->at);
}

/* The tables of runs as text; NULL where the study is refused. */
static char *exports(const char *path) {
  static const char *const tables[] = {"runs", "steps", "evals", "staleness", "clock"};
  return store_text(path, tables, sizeof tables / sizeof *tables, NULL);
}

/* Whether every line of `part` stands in `whole`. */
static int is_part(const char *part, const char *whole) {
  for (const char *at = part; *at != '\0';) {
    const size_t length = strcspn(at, "\n") + 1;
    char *line = strndup(at, length);
    const int found = strstr(whole, line) != NULL;
    if (!found) fprintf(stderr, "not in the whole: %s", line);
    free(line);
    if (!found) return 0;
    at += length;
  }
  return 1;
}

static void count_damage(void *self, const char *key, const char *text) {
  (void)key, (void)text;
  ++*(int *)self;
}

static int damages(store *s) {
  int n = 0;
  CU_ASSERT_EQUAL(store_check(s, count_damage, &n, NULL), GL_OK);
  return n;
}

/* --- repair --- */

/* SQL that damages a study, and how many runs it costs. */
static const struct {
  const char *sql;
  size_t runs;
} harms[] = {
    {"UPDATE staleness SET staleness = 4702111234474983745 WHERE run = 1 AND staleness = 2", 1},
    {"UPDATE staleness SET staleness = 'zzz' WHERE run = 1 AND staleness = 2", 1},
    {"UPDATE steps SET loss = 'much' WHERE step = 3", RUNS},
    {"UPDATE steps SET loss = loss + 1e-9 WHERE step = 3 AND run = 2", 1},
    {"UPDATE runs SET algorithm = x'ff' WHERE id = 1", 1},
    {"UPDATE runs SET algorithm = CAST(x'ff41' AS TEXT) WHERE id = 1", 1},
    {"UPDATE runs SET status = NULL WHERE id = 1", 1},
    {"UPDATE runs SET key = x'00' WHERE id = 3", 1},
    {"UPDATE runs SET sum = NULL WHERE id = 1; UPDATE runs SET sum_evals = NULL WHERE id = 2", 2},
    {"DELETE FROM evals WHERE run = 2 AND step = 0", 1},
    {"UPDATE steps SET run = 77 WHERE run = 3", 1},
    {"DELETE FROM clock WHERE run = 4", 1},
    {"UPDATE tuned SET lr = 0.2", 0},
    {"UPDATE tuned SET lr = 'fast', sum = NULL", 0},
    {"UPDATE bias SET mse = 3 WHERE study = 'lab'", 0},
    {"INSERT INTO superseded VALUES('a', 'b', 7)", 0},
    {"INSERT INTO provenance(hash, version) VALUES('a', 'b')", 0},
    {"INSERT INTO plan(study, tuning, place) VALUES('s', 2, 'p')", 0},
    {"INSERT INTO sweeps VALUES('s', 'h', 3, 0, 'r', 0)", 0},
    {"INSERT INTO tuning_scores(key, recipe, score, sum) VALUES('k', 'r', 'best', 0)", 0},
};

TEST(every_damage_is_found_and_taken_out_and_the_rest_is_untouched) {
  for (size_t i = 0; i < sizeof harms / sizeof *harms; ++i) {
    ground g;
    gl_error err = {0};
    store_removed removed;
    ground_make(&g);
    char *whole = exports(g.study);
    run_sql(g.study, harms[i].sql);
    store *s = store_opened(g.study, STORE_WRITE);
    const int found = damages(s);
    CU_ASSERT(found > 0);
    CU_ASSERT_EQUAL(store_repair(s, &removed, &err), GL_OK);
    CU_ASSERT_EQUAL(damages(s), 0);
    CU_ASSERT_EQUAL(removed.runs, harms[i].runs);
    CU_ASSERT_EQUAL(store_number(s, "SELECT count(*) FROM runs"), (int)(RUNS - harms[i].runs));
    CU_ASSERT_EQUAL(store_number(s, "SELECT count(*) FROM steps"),
                    (int)(STEPS * (RUNS - harms[i].runs)));
    store_close(s);
    char *rest = exports(g.study);
    CU_ASSERT_PTR_NOT_NULL_FATAL(rest);
    CU_ASSERT(is_part(rest, whole));
    if (harms[i].runs == 0) CU_ASSERT_STRING_EQUAL(rest, whole);
    if (found == 0 || err.text[0] != '\0') fprintf(stderr, "%s: %s\n", harms[i].sql, err.text);
    free(whole), free(rest);
    ground_remove(&g);
  }
}

TEST(a_whole_study_loses_nothing) {
  ground g;
  store_removed removed;
  const store_removed none = {0};
  ground_make(&g);
  char *before = exports(g.study);
  store *s = store_opened(g.study, STORE_WRITE);
  CU_ASSERT_EQUAL(damages(s), 0);
  CU_ASSERT_EQUAL(store_repair(s, &removed, NULL), GL_OK);
  CU_ASSERT_EQUAL(memcmp(&removed, &none, sizeof none), 0);
  store_close(s);
  char *after = exports(g.study);
  CU_ASSERT_STRING_EQUAL(before, after);
  free(before), free(after);
  ground_remove(&g);
}

/* Two studies of the laboratory, one record damaged: nobody knows whose it was. */
TEST(measurements_go_together) {
  ground g;
  store_removed removed;
  ground_make(&g);
  run_sql(g.study, "UPDATE bias SET study = 'lax' WHERE study = 'lab'");
  store *s = store_opened(g.study, STORE_WRITE);
  CU_ASSERT_EQUAL(store_repair(s, &removed, NULL), GL_OK);
  CU_ASSERT_EQUAL(removed.bias, 2);
  CU_ASSERT_EQUAL(store_number(s, "SELECT count(*) FROM bias"), 0);
  store_close(s);
  ground_remove(&g);
}

/* Two runs of one place, and what said which of them stands is damaged or gone. */
static void restores_place(const char *harm, size_t damaged) {
  ground g;
  store_removed removed;
  static sample_run sample[2];
  ground_make(&g);
  store *s = store_opened(g.study, STORE_WRITE);
  for (int i = 0; i < 2; ++i) {
    sample_run_init(&sample[i], RUNS + 1 + i, 2);
    sample[i].run.place = "one place";
    CU_ASSERT_EQUAL(store_put_run(s, &sample[i].run, NULL), GL_OK);
  }
  store_close(s);
  char *before = exports(g.study);
  run_sql(g.study, harm);
  s = store_opened(g.study, STORE_WRITE);
  CU_ASSERT_EQUAL(store_repair(s, &removed, NULL), GL_OK);
  CU_ASSERT_EQUAL(removed.superseded, damaged);
  CU_ASSERT_EQUAL(damages(s), 0);
  store_close(s);
  char *after = exports(g.study);
  CU_ASSERT_PTR_NULL(strstr(after, sample[0].key));
  CU_ASSERT_STRING_EQUAL(before, after);
  free(before), free(after);
  ground_remove(&g);
}

TEST(the_last_run_of_a_place_stands_where_nothing_else_says) {
  restores_place("UPDATE superseded SET by = 'nobody'", 1);
  restores_place("DELETE FROM superseded", 0);
}

/* --- salvage --- */

/* Writes noise over a page of the file, from the second on. */
static void spoil_page(const char *path, uint64_t *state) {
  enum { PAGE = 4096 };
  struct stat about;
  unsigned char noise[PAGE];
  CU_ASSERT_EQUAL_FATAL(stat(path, &about), 0);
  for (int i = 0; i < PAGE; ++i) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    noise[i] = (unsigned char)(*state >> 56);
  }
  const off_t page = 1 + (off_t)((*state >> 20) % (uint64_t)(about.st_size / PAGE - 1));
  const int file = open(path, O_WRONLY);
  CU_ASSERT_EQUAL(pwrite(file, noise, PAGE, page * PAGE), PAGE);
  close(file);
}

/* Fixed seed. What is salvaged is whole and was in the study; much of it comes through. */
TEST(what_is_salvaged_is_whole_and_was_there) {
  enum { TRIALS = 60 };
  ground g;
  uint64_t state = 20261122;
  size_t saved = 0, refused = 0;
  char damaged[SCRATCH_PATH_SIZE];
  ground_make(&g);
  scratch_path(&g.at, "damaged.db", damaged);
  char *whole = exports(g.study);
  for (int i = 0; i < TRIALS; ++i) {
    store_salvaged n;
    gl_error err = {0};
    scratch_copy(g.study, damaged);
    spoil_page(damaged, &state);
    if (store_salvage(damaged, g.other, &n, &err) != GL_OK) {
      CU_ASSERT_EQUAL(err.status, GL_EIO);
      CU_ASSERT_NOT_EQUAL(access(g.other, F_OK), 0);
      ++refused;
      continue;
    }
    store *s = store_opened(g.other, STORE_READ);
    CU_ASSERT_EQUAL(damages(s), 0);
    CU_ASSERT_EQUAL(store_number(s, "SELECT count(*) FROM runs"), (double)n.runs);
    store_close(s);
    char *part = exports(g.other);
    CU_ASSERT_PTR_NOT_NULL_FATAL(part);
    CU_ASSERT(is_part(part, whole));
    saved += n.runs;
    free(part);
    unlink(g.other);
  }
  if (saved < TRIALS * RUNS / 2) fprintf(stderr, "%zu saved, %zu refused\n", saved, refused);
  CU_ASSERT(saved >= TRIALS * RUNS / 2 && refused < TRIALS / 2);
  free(whole);
  ground_remove(&g);
}

TEST(a_damaged_structure_is_not_repaired_in_place) {
  ground g;
  store *s = NULL;
  store_removed removed;
  gl_error err = {0};
  ground_make(&g);
  CU_ASSERT_EQUAL_FATAL(truncate(g.study, 12 * 4096), 0);
  char *before = scratch_read(g.study);
  if (store_open(&s, g.study, STORE_WRITE, &err) == GL_OK) {
    CU_ASSERT_EQUAL(store_repair(s, &removed, &err), GL_EIO);
  }
  store_close(s);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "--salvage"));
  free(before);
  ground_remove(&g);
}

/* SQLite refuses a file that is shorter than its header says. */
TEST(what_is_left_of_a_cut_study_is_salvaged) {
  ground g;
  store_salvaged n;
  struct stat about;
  ground_make(&g);
  char *whole = exports(g.study);
  CU_ASSERT_EQUAL_FATAL(stat(g.study, &about), 0);
  CU_ASSERT_EQUAL_FATAL(truncate(g.study, about.st_size - 3 * 4096), 0);
  CU_ASSERT_EQUAL(store_salvage(g.study, g.other, &n, NULL), GL_OK);
  CU_ASSERT(n.runs > 0 && n.runs < RUNS && n.lost_runs + n.lost > 0);
  char *part = exports(g.other);
  CU_ASSERT_PTR_NOT_NULL_FATAL(part);
  CU_ASSERT(is_part(part, whole));
  free(whole), free(part);
  ground_remove(&g);
}

TEST(a_whole_study_is_salvaged_whole) {
  ground g;
  store_salvaged n;
  ground_make(&g);
  CU_ASSERT_EQUAL(store_salvage(g.study, g.other, &n, NULL), GL_OK);
  CU_ASSERT(n.runs == RUNS && n.lost_runs == 0 && n.lost == 0);
  char *one = exports(g.study), *two = exports(g.other);
  CU_ASSERT_STRING_EQUAL(one, two);
  store *s = store_opened(g.other, STORE_READ);
  CU_ASSERT_EQUAL(store_number(s, "SELECT count(*) FROM bias"), 2);
  CU_ASSERT_EQUAL(store_number(s, "SELECT count(*) FROM tuned"), 1);
  store_close(s);
  free(one), free(two);
  ground_remove(&g);
}

TEST(salvage_overwrites_nothing) {
  ground g;
  store_salvaged n;
  gl_error err = {0};
  ground_make(&g);
  scratch_write(g.other, "a letter");
  CU_ASSERT_EQUAL(store_salvage(g.study, g.other, &n, &err), GL_EINPUT);
  char *text = scratch_read(g.other);
  CU_ASSERT_STRING_EQUAL(text, "a letter");
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "is there already"));
  free(text);
  unlink(g.other);
  CU_ASSERT_EQUAL(store_salvage("/nowhere/study.db", g.other, &n, &err), GL_EIO);
  CU_ASSERT_NOT_EQUAL(access(g.other, F_OK), 0);
  ground_remove(&g);
}

/* A child whose files may grow to so many bytes, and that a larger write kills. Whether it died. */
static int salvage_and_die(const ground *g, rlim_t most) {
  const pid_t child = fork();
  if (child == 0) {
    store_salvaged n;
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){most, most});
    signal(SIGXFSZ, SIG_DFL);
    _exit(store_salvage(g->study, g->other, &n, NULL) == GL_OK ? 0 : 1);
  }
  int ended = 0;
  CU_ASSERT_EQUAL_FATAL(waitpid(child, &ended, 0), child);
  CU_ASSERT(WIFSIGNALED(ended) || (WIFEXITED(ended) && WEXITSTATUS(ended) == 0));
  return WIFSIGNALED(ended);
}

TEST(a_killed_salvage_leaves_no_study_and_is_called_again) {
  ground g;
  store_salvaged n;
  int died = 0;
  ground_make(&g);
  for (rlim_t most = 0;; most += 8192) {
    if (!salvage_and_die(&g, most)) break;
    ++died;
    CU_ASSERT_NOT_EQUAL(access(g.other, F_OK), 0);
  }
  CU_ASSERT(died > 3);
  unlink(g.other);
  CU_ASSERT_EQUAL(store_salvage(g.study, g.other, &n, NULL), GL_OK);
  CU_ASSERT_EQUAL(n.runs, RUNS);
  ground_remove(&g);
}
