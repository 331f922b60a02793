/* Sweeps: the same bytes however they are executed, interrupted and continued. */
#include "core/store/store.h"
#include "tests/support/cli_study.h"
#include "tests/support/sql.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

SUITE("cli: sweeps");

/* 16 cells and 8 tuning runs of a few milliseconds each. */
static const char recipe[] = "name: small\n"
                             "steps: 150\n"
                             "eval_every: 25\n"
                             "world: {kind: sequence, vocabulary: 3, horizon: 3, prompts: 3}\n"
                             "optimizer: {kind: adam, lr: 0.05}\n"
                             "train: {groups: 4, group_size: 4}\n"
                             "cluster: {preset: heterorl, max_delay: 120}\n"
                             "sweep:\n"
                             "  algorithm: [grpo, {base: gepo, log_prob: mean}]\n"
                             "  cluster.max_delay: [0, 600]\n"
                             "  seed: [1, 2, 3, 4]\n"
                             "tune: {lr: [0.02, 0.1], seeds: [101]}\n";

typedef cli_study bench;

static void bench_make(bench *b) {
  cli_study_make(b, "small.yaml", recipe);
}

static cli_result export_table(const char *db, const char *table) {
  return CLI("export", db, "--table", table, "--format", "csv");
}

/* Whether two studies export the same bytes, and more than a header. */
static int same_study(const char *a, const char *b) {
  static const char *const tables[] = {"steps", "evals",   "runs",       "staleness",
                                       "clock", "tuned",   "tuning",     "recipes",
                                       "cells", "summary", "axis_values"};
  int same = 1;
  for (size_t i = 0; i < sizeof tables / sizeof tables[0]; ++i) {
    cli_result x = export_table(a, tables[i]), y = export_table(b, tables[i]);
    int equal = x.code == 0 && y.code == 0 && x.out_size == y.out_size && x.out_size > 100 &&
                memcmp(x.out, y.out, x.out_size) == 0;
    if (!equal)
      fprintf(stderr, "%s differ: %zu and %zu bytes %s %s\n", tables[i], x.out_size, y.out_size,
              x.err, y.err);
    same = same && equal;
  }
  return same;
}

static size_t count_lines(const char *text) {
  size_t n = 0;
  for (; *text != '\0'; ++text) n += *text == '\n';
  return n;
}

static size_t finished_cells(const char *db) {
  cli_result r = export_table(db, "runs");
  size_t lines = r.code == 0 ? count_lines(r.out) : 0;
  return lines > 0 ? lines - 1 : 0;
}

TEST(one_and_two_workers_write_the_same) {
  bench b;
  bench_make(&b);
  CU_ASSERT(CLI_GIVES(0, "sweep", b.recipe, "-o", b.db, "-j", "1", "-q"));
  CU_ASSERT(CLI_GIVES(0, "sweep", b.recipe, "-o", b.other, "-j", "2", "-q"));
  CU_ASSERT(same_study(b.db, b.other));
  cli_result steps = export_table(b.db, "steps");
  CU_ASSERT_EQUAL(count_lines(steps.out), 16 * 150 + 1);
}

/* Another score would choose other rates and make the whole grid again beside the old one. */
TEST(a_sweep_does_not_go_on_from_damaged_scores_or_runs) {
  static const char *const damage[] = {"UPDATE tuning_scores SET score = 0.01 WHERE score > 0.2",
                                       "UPDATE evals SET eval_score = 1 WHERE run = 1"};
  bench b;
  bench_make(&b);
  CU_ASSERT(CLI_GIVES(0, "sweep", b.recipe, "-o", b.db, "-q"));
  for (int i = 0; i < 2; ++i) {
    run_sql(b.db, damage[i]);
    cli_result r = CLI("sweep", b.recipe, "-o", b.db, "-q");
    CU_ASSERT_EQUAL(r.code, 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "is damaged"));
    CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "gepolab study check"));
    CU_ASSERT(CLI_GIVES(0, "check", b.db, "--repair"));
    CU_ASSERT(CLI_GIVES(0, "sweep", b.recipe, "-o", b.db, "-q"));
  }
}

TEST(a_finished_cell_is_never_run_again) {
  bench b;
  bench_make(&b);
  cli_result first = CLI("sweep", b.recipe, "-o", b.db, "-q", "--json");
  CU_ASSERT_EQUAL(printed_number(&first, "done") + printed_number(&first, "diverged"), 16);
  CU_ASSERT_EQUAL(printed_number(&first, "tuning_runs"), 8);
  cli_result again = CLI("sweep", b.recipe, "-o", b.db, "-q", "--json");
  CU_ASSERT_EQUAL(printed_number(&again, "done") + printed_number(&again, "diverged"), 0);
  CU_ASSERT_EQUAL(printed_number(&again, "tuning_runs"), 0);
  CU_ASSERT_EQUAL(printed_number(&again, "already_finished"), 16);
}

/* 24 runs in all: 8 tuning runs and 16 cells, of which an earlier start made the tuning runs and 8
 * cells. The bar counts all of them from the start. */
TEST(the_bar_goes_on_from_what_the_file_has) {
  bench b;
  bench_make(&b);
  CU_ASSERT(CLI_GIVES(0, "sweep", b.recipe, "-o", b.db, "-j", "1", "-q", "sweep.seed=[1,2]"));
  cli_result r = CLI_ON_TERMINAL("sweep", b.recipe, "-o", b.db, "-j", "1");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, " 24/24 runs"));
  size_t drawn = 0;
  for (const char *at = r.err; (at = strstr(at, " runs  ")) != NULL; at += 6) {
    const char *count = at;
    while (count > r.err && count[-1] != ' ') --count;
    unsigned done = 0, all = 0;
    CU_ASSERT_EQUAL(sscanf(count, "%u/%u", &done, &all), 2);
    CU_ASSERT(done >= 16 && all == 24);
    ++drawn;
  }
  CU_ASSERT(drawn >= 2);
}

/* As nohup starts it. */
TEST(a_sweep_that_ignores_hangups_goes_on_after_one) {
  bench b;
  bench_make(&b);
  void (*before)(int) = signal(SIGHUP, SIG_IGN);
  pid_t pid = CLI_START("sweep", b.recipe, "-o", b.db, "-j", "1", "-q", "steps=2000"), worker = 0;
  signal(SIGHUP, before);
  cli_wait_for_children(pid, &worker, 1);
  kill(pid, SIGHUP);
  CU_ASSERT_EQUAL(cli_wait(pid), 0);
  CU_ASSERT_EQUAL(finished_cells(b.db), 16);
}

/* The best score is -1, so a tenth of it is above every score. */
TEST(a_run_with_negative_scores_has_not_lost_its_score) {
  bench b;
  cli_study_make(&b, "negative.yaml",
                 "name: negative\nsteps: 100\neval_every: 10\n"
                 "world: {kind: bandit, rewards: [-1, -2, -3]}\nsweep: {seed: [1, 2]}\n");
  cli_result r = CLI("sweep", b.recipe, "-o", b.db, "-q", "--json");
  CU_ASSERT_EQUAL(printed_number(&r, "done"), 2);
  CU_ASSERT_EQUAL(printed_number(&r, "diverged"), 0);
}

TEST(a_dry_run_counts_and_writes_nothing) {
  bench b;
  bench_make(&b);
  cli_result none = CLI("sweep", b.recipe, "-o", b.db, "-j", "2", "--dry-run", "--json");
  CU_ASSERT_EQUAL(none.code, 0);
  CU_ASSERT_EQUAL(printed_number(&none, "tuning_runs"), 8);
  CU_ASSERT_EQUAL(printed_number(&none, "tuning_already_known"), 0);
  CU_ASSERT_EQUAL(printed_number(&none, "cells"), 16);
  CU_ASSERT_EQUAL(printed_number(&none, "already_finished"), 0);
  CU_ASSERT_EQUAL(printed_number(&none, "learned_from_runs"), 0);
  CU_ASSERT(printed_number(&none, "timed_updates") > 0); /* one cell was run for it */
  CU_ASSERT(printed_number(&none, "seconds_left") > 0);
  CU_ASSERT_EQUAL(cli_files_in(b.folder), 1); /* the recipe */
  CU_ASSERT(CLI_GIVES(0, "sweep", b.recipe, "-o", b.db, "-q", "sweep.seed=[1]"));
  struct stat before, after;
  CU_ASSERT_EQUAL(stat(b.db, &before), 0);
  cli_result some = CLI("sweep", b.recipe, "-o", b.db, "-j", "2", "--dry-run", "--json");
  CU_ASSERT_EQUAL(printed_number(&some, "tuning_already_known"), 8);
  CU_ASSERT_EQUAL(printed_number(&some, "already_finished"), 4);
  CU_ASSERT_EQUAL(printed_number(&some, "learned_from_runs"), 4);
  CU_ASSERT(printed_number(&some, "seconds_left") > 0);
  CU_ASSERT(printed_number(&some, "peak_bytes_of_a_run") > 1e5);
  ASSERT_CLOSE(printed_number(&some, "seconds_left"), printed_number(&some, "work_s") / 2, 1e-12);
  CU_ASSERT_EQUAL(stat(b.db, &after), 0);
  CU_ASSERT(before.st_size == after.st_size && before.st_mtim.tv_sec == after.st_mtim.tv_sec &&
            before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
  CU_ASSERT_EQUAL(cli_files_in(b.folder), 2);
  cli_result words = CLI("sweep", b.recipe, "--dry-run");
  CU_ASSERT_EQUAL(words.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(words.out, "cluster.max_delay    [0,600]"));
  CU_ASSERT_PTR_NOT_NULL(strstr(words.out, "time                   about "));
  CU_ASSERT_PTR_NOT_NULL(strstr(words.out, "of the first cell took\n"));
  cli_result many = CLI("sweep", b.recipe, "--dry-run", "sweep.seed={from: 200, to: 499, n: 300}");
  CU_ASSERT_PTR_NOT_NULL(strstr(many.out, "[200,201,202,"));
  CU_ASSERT_PTR_NOT_NULL(strstr(many.out, "… (300 values)\n"));
  CU_ASSERT_PTR_NULL(strstr(many.out, "499"));
  CU_ASSERT(CLI_GIVES(2, "sweep", b.recipe, "--dry-run", "sweep.cluster.max_delai=[1]"));
}

/* A run of 60 updates is no run of 150 that broke off: where lengths are swept, each is scored by
 * its own. */
TEST(tuning_scores_runs_of_every_length) {
  bench b;
  bench_make(&b);
  cJSON *json = CLI_JSON("sweep", b.recipe, "-o", b.db, "-q", "--json", "sweep.steps=[60]",
                         "sweep.seed=[1]", "sweep.cluster.max_delay=[0]");
  const cJSON *rate;
  CU_ASSERT_EQUAL(cJSON_GetArraySize(member_at(json, "tuned")), 2);
  cJSON_ArrayForEach(rate, member_at(json, "tuned")) CU_ASSERT(number_at(rate, "score") > 0);
}

TEST(kill_at_any_moment_and_a_second_start_change_nothing) {
  static const long moments_ms[] = {15, 60, 110, 170, 240};
  bench b;
  bench_make(&b);
  CU_ASSERT(CLI_GIVES(0, "sweep", b.recipe, "-o", b.other, "-j", "2", "-q"));
  for (size_t i = 0; i < sizeof moments_ms / sizeof moments_ms[0]; ++i) {
    pid_t pid = CLI_START("sweep", b.recipe, "-o", b.db, "-j", "2", "-q");
    cli_sleep_ms(moments_ms[i]);
    kill(pid, SIGKILL);
    cli_wait(pid);
  }
  CU_ASSERT(CLI_GIVES(0, "sweep", b.recipe, "-o", b.db, "-j", "2", "-q"));
  CU_ASSERT(same_study(b.db, b.other));
}

/* Starts a sweep long enough to be interfered with, and waits until its workers are there. */
static pid_t start_long(const bench *b, pid_t *workers, size_t n) {
  pid_t pid = CLI_START("sweep", b->recipe, "-o", b->db, "-j", "2", "-q", "steps=200000",
                        "tune=null", "eval_every=1000");
  cli_wait_for_children(pid, workers, n);
  return pid;
}

static int is_alive(pid_t pid) {
  return kill(pid, 0) == 0;
}

TEST(workers_end_when_their_parent_is_killed) {
  bench b;
  bench_make(&b);
  pid_t workers[2] = {0, 0};
  pid_t pid = start_long(&b, workers, 2);
  CU_ASSERT_FATAL(workers[0] > 0 && workers[1] > 0);
  kill(pid, SIGKILL);
  cli_wait(pid);
  for (int wait = 0; wait < 6000 && (is_alive(workers[0]) || is_alive(workers[1])); ++wait)
    cli_sleep_ms(10);
  CU_ASSERT_FALSE(is_alive(workers[0]));
  CU_ASSERT_FALSE(is_alive(workers[1]));
}

TEST(interrupt_keeps_finished_cells_and_exits_with_130) {
  static const int signals[] = {SIGINT, SIGTERM};
  for (size_t i = 0; i < 2; ++i) {
    bench b;
    bench_make(&b);
    /* Seed 1 is quick to finish; the cells after it are not. */
    CU_ASSERT(CLI_GIVES(0, "sweep", b.recipe, "-o", b.db, "-q", "tune=null", "sweep.seed=[1]"));
    size_t finished = finished_cells(b.db);
    CU_ASSERT_EQUAL(finished, 4);
    pid_t workers[2] = {0, 0};
    pid_t pid = start_long(&b, workers, 2);
    kill(pid, signals[i]);
    CU_ASSERT_EQUAL(cli_wait(pid), 130);
    CU_ASSERT_FALSE(is_alive(workers[0]));
    CU_ASSERT_EQUAL(finished_cells(b.db), finished);
  }
}

TEST(a_crashed_worker_spoils_its_own_cell_only_and_is_tried_again) {
  bench b;
  bench_make(&b);
  const char *const few = "sweep.seed=[1]";
  pid_t pid =
      CLI_START("sweep", b.recipe, "-o", b.db, "-j", "1", "-q", "tune=null", few, "steps=6000");
  pid_t worker = 0;
  cli_wait_for_children(pid, &worker, 1);
  CU_ASSERT_FATAL(worker > 0);
  kill(worker, SIGKILL);
  CU_ASSERT_EQUAL(cli_wait(pid), 1);
  cli_result runs = export_table(b.db, "runs");
  CU_ASSERT_EQUAL(count_lines(runs.out), 5);
  CU_ASSERT_PTR_NOT_NULL(strstr(runs.out, "signal 9"));
  cli_result again =
      CLI("sweep", b.recipe, "-o", b.db, "-q", "--json", "tune=null", few, "steps=6000");
  CU_ASSERT_EQUAL(again.code, 0);
  CU_ASSERT_EQUAL(printed_number(&again, "already_finished"), 3);
  CU_ASSERT_EQUAL(printed_number(&again, "done") + printed_number(&again, "diverged"), 1);
}

/* A tuning run that died says nothing about its rate: the grid waits for it. */
TEST(a_crashed_tuning_run_is_tried_again_before_any_rate_is_chosen) {
  bench b;
  char err[128];
  const char *const few = "sweep.seed=[1]", *const longer = "steps=6000";
  bench_make(&b);
  CU_ASSERT(CLI_GIVES(0, "sweep", b.recipe, "-o", b.other, "-j", "2", "-q", few, longer));
  cli_path(err, b.folder, "err");
  pid_t pid = CLI_START_WRITING("/dev/null", err, "sweep", b.recipe, "-o", b.db, "-j", "1", "-q",
                                few, longer);
  pid_t worker = 0;
  cli_wait_for_children(pid, &worker, 1);
  CU_ASSERT_FATAL(worker > 0);
  kill(worker, SIGKILL);
  CU_ASSERT_EQUAL(cli_wait(pid), 1);
  CU_ASSERT_EQUAL(finished_cells(b.db), 0);
  char *told = cli_read(err);
  CU_ASSERT_PTR_NOT_NULL(strstr(told, "1 of 8 tuning runs failed"));
  CU_ASSERT_PTR_NOT_NULL(strstr(told, "grpo, seed 101"));
  CU_ASSERT_PTR_NOT_NULL(strstr(told, "\"optimizer.lr\":0.02"));
  CU_ASSERT_PTR_NOT_NULL(strstr(told, "signal 9"));
  CU_ASSERT_PTR_NOT_NULL(strstr(told, "same command"));
  cli_result again = CLI("sweep", b.recipe, "-o", b.db, "-j", "2", "-q", "--json", few, longer);
  CU_ASSERT_EQUAL(again.code, 0);
  CU_ASSERT_EQUAL(printed_number(&again, "tuning_already_known"), 7);
  CU_ASSERT_EQUAL(printed_number(&again, "tuning_runs"), 1);
  CU_ASSERT(same_study(b.db, b.other));
}

TEST(shards_joined_by_merge_are_the_whole_study) {
  bench b;
  bench_make(&b);
  char one[160], two[160];
  snprintf(one, sizeof one, "%s.shard0", b.db);
  snprintf(two, sizeof two, "%s.shard1", b.db);
  CU_ASSERT(CLI_GIVES(0, "sweep", b.recipe, "-o", b.other, "-q"));
  CU_ASSERT(CLI_GIVES(0, "sweep", b.recipe, "-o", b.db, "-q", "--shard", "0/2"));
  CU_ASSERT(CLI_GIVES(0, "sweep", b.recipe, "-o", b.db, "-q", "--shard", "1/2"));
  CU_ASSERT_EQUAL(finished_cells(one) + finished_cells(two), 16);
  CU_ASSERT(CLI_GIVES(0, "merge", b.db, one, two));
  CU_ASSERT(same_study(b.db, b.other));
}

TEST(ranks_of_an_mpi_job_make_the_whole_study) {
  if (system("command -v mpirun >/dev/null 2>&1") != 0) SKIP("no mpirun");
  const char *path = getenv("GEPOLAB");
  bench b;
  bench_make(&b);
  char line[640];
  snprintf(line, sizeof line,
           "mpirun --allow-run-as-root --oversubscribe -n 2 %s sweep %s -o %s -q >%s/out 2>%s/err",
           path != NULL ? path : "build/gepolab", b.recipe, b.db, b.folder, b.folder);
  int gave = system(line);
  if (gave != 0) {
    char err[128];
    snprintf(line, sizeof line, "grep -q 'built without MPI' %s", cli_path(err, b.folder, "err"));
    int without = system(line) == 0;
    CU_ASSERT(without);
    SKIP("built without MPI");
  }
  CU_ASSERT(CLI_GIVES(0, "sweep", b.recipe, "-o", b.other, "-q"));
  CU_ASSERT(same_study(b.db, b.other));
  /* One rank speaks for all: of 8 tuning runs, 16 cells, and the joined file. */
  snprintf(line, sizeof line,
           "test $(grep -c 'cells in' %s/out) = 1 && grep -q '^16 cells .* -> %s$' %s/out && "
           "grep -q '(8 runs, 0 already known' %s/out",
           b.folder, b.db, b.folder, b.folder);
  CU_ASSERT_EQUAL(system(line), 0);
}

TEST(two_runs_of_a_recipe_print_and_store_the_same) {
  bench b;
  bench_make(&b);
  cli_result x = CLI("run", b.recipe, "sweep=null", "tune=null", "-o", b.db, "--json", "-q");
  cli_result y = CLI("run", b.recipe, "sweep=null", "tune=null", "-o", b.other, "--json", "-q");
  CU_ASSERT_EQUAL(x.code, 0);
  CU_ASSERT_STRING_EQUAL(x.out, y.out);
  cli_result p = export_table(b.db, "steps"), q = export_table(b.other, "steps");
  CU_ASSERT_STRING_EQUAL(p.out, q.out);
  CU_ASSERT_EQUAL(count_lines(p.out), 151);
}

/* A command that was killed before its first cell leaves an empty file, and a survey, a sweep and a
 * run fill it. */
TEST(a_file_without_a_study_is_filled) {
  bench b;
  bench_make(&b);
  fclose(fopen(b.db, "w"));
  fclose(fopen(b.other, "w"));
  CU_ASSERT_EQUAL(CLI("sweep", b.recipe, "-o", b.db, "--dry-run").code, 0);
  CU_ASSERT_EQUAL(CLI("sweep", b.recipe, "-o", b.db, "-j", "1", "-q").code, 0);
  CU_ASSERT_EQUAL(CLI("run", b.recipe, "sweep=null", "tune=null", "-o", b.other, "-q").code, 0);
  CU_ASSERT_EQUAL(count_lines(export_table(b.db, "runs").out), 17);
  CU_ASSERT_EQUAL(count_lines(export_table(b.other, "runs").out), 2);
}

/* Weight decay of 10 at a rate of 10^6 multiplies the parameters by -10^7 at every step, past the
 * largest double within fifty. */
TEST(a_run_whose_parameters_overflow_has_diverged_and_keeps_its_rows) {
  bench b;
  bench_make(&b);
  cli_result r = CLI("run", b.recipe, "sweep=null", "tune=null", "-o", b.db, "--json", "-q",
                     "optimizer={kind: sgd, lr: 1000000, weight_decay: 10}");
  CU_ASSERT_EQUAL(r.code, 0);
  cJSON *json = json_parsed(r.out);
  CU_ASSERT_PTR_NOT_NULL_FATAL(json);
  CU_ASSERT_STRING_EQUAL(text_at(json, "status"), "diverged");
  CU_ASSERT_PTR_NOT_NULL(strstr(text_at(json, "reason"), "not finite"));
  double steps = printed_number(&r, "steps");
  CU_ASSERT(steps > 10 && steps < 100);
  cli_result rows = export_table(b.db, "steps");
  CU_ASSERT_EQUAL((double)count_lines(rows.out), steps + 1);
}

/* Two algorithms meet the same clock: their rows have equal times, versions and staleness. */
TEST(runs_that_differ_in_the_algorithm_are_paired) {
  bench b;
  bench_make(&b);
  cJSON *p = CLI_JSON("run", b.recipe, "sweep=null", "tune=null", "algorithm=grpo", "--json", "-q"),
        *q = CLI_JSON("run", b.recipe, "sweep=null", "tune=null", "algorithm=gepo", "--json", "-q");
  CU_ASSERT_FATAL(p != NULL && q != NULL);
  CU_ASSERT(cJSON_Compare(member_at(p, "staleness"), member_at(q, "staleness"), 1));
  CU_ASSERT_FALSE(cJSON_Compare(member_at(p, "last_update"), member_at(q, "last_update"), 1));
  double first = number_at(p, "eval_first");
  ASSERT_CLOSE(first, number_at(q, "eval_first"), 0);
}

TEST(a_cell_finds_the_files_beside_its_recipe) {
  static const char text[] =
      "steps: 5\nworld: {kind: bandit}\ncluster: {samplers: 1, delay: {distribution: "
      "empirical, file: delays.csv}}\nsweep: {seed: [1, 2]}\n",
                    delays[] = "seconds\n60\n120\n";
  bench b;
  char path[128];
  bench_make(&b);
  cli_path(path, b.folder, "delays.csv");
  cli_write(path, delays, sizeof delays - 1);
  cli_write(b.recipe, text, sizeof text - 1);
  CU_ASSERT(CLI_GIVES(0, "sweep", b.recipe, "-o", b.db, "-q"));
  CU_ASSERT_EQUAL(finished_cells(b.db), 2);
}

/* The other study takes the place of a sweep's, in the same file or under the same name. */
static void overwrite(const char *path, const char *with, int in_place) {
  char command[320], moved[160];
  snprintf(moved, sizeof moved, "%s.moved", path);
  if (!in_place) CU_ASSERT_EQUAL_FATAL(rename(path, moved), 0);
  snprintf(command, sizeof command, "cat '%s' > '%s'", with, path);
  CU_ASSERT_EQUAL_FATAL(system(command), 0);
}

TEST(a_study_that_is_overwritten_during_a_sweep_is_noticed) {
  for (int in_place = 0; in_place < 2; ++in_place) {
    bench b;
    char err[128];
    bench_make(&b);
    cli_path(err, b.folder, "err");
    CU_ASSERT(CLI_GIVES(0, "sweep", b.recipe, "-o", b.other, "-q", "tune=null", "steps=2",
                        "sweep={seed: [9]}"));
    pid_t pid =
        CLI_START_WRITING("/dev/null", err, "sweep", b.recipe, "-o", b.db, "-j", "1", "-q",
                          "tune=null", "steps=5000", "eval_every=1000", "sweep={seed: [1, 2]}");
    for (int wait = 0; wait < 6000 && finished_cells(b.db) < 1; ++wait) cli_sleep_ms(10);
    overwrite(b.db, b.other, in_place);
    CU_ASSERT_EQUAL(cli_wait(pid), 1);
    char *told = cli_read(err);
    const char *says = in_place ? "holds 1 of the 2 finished cells: another program"
                                : "the file was deleted, moved or replaced while it was open";
    CU_ASSERT_PTR_NOT_NULL(strstr(told, says));
    CU_ASSERT_PTR_NOT_NULL(strstr(told, b.db));
  }
}
