/* What a study is to hold, and what every command says when it does not hold it. */
#include "core/store/store.h"
#include "experiments/sweep/forecast.h"
#include "tests/support/cli_study.h"
#include "tests/support/core.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

SUITE("cli: status");

/* 4 tuning runs and 8 cells. */
static const char small_recipe[] =
    "name: small\n"
    "steps: 40\n"
    "eval_every: 10\n"
    "world: {kind: sequence, vocabulary: 3, horizon: 2, prompts: 2}\n"
    "optimizer: {kind: adam, lr: 0.05}\n"
    "train: {groups: 2, group_size: 4}\n"
    "cluster: {preset: heterorl, max_delay: 120}\n"
    "sweep:\n"
    "  algorithm: [grpo, gepo]\n"
    "  seed: [1, 2, 3, 4]\n"
    "tune: {lr: [0.02, 0.1], seeds: [101]}\n";

typedef cli_study bench;

static void bench_make(bench *b) {
  cli_study_make(b, "small.yaml", small_recipe);
}

/* The only study of the file, as `gepolab status --json` tells it. */
typedef struct told {
  cJSON *all;
  const cJSON *study;
} told;

static told status_of(const char *db) {
  told t = {.all = CLI_JSON("status", db, "--json", "--missing")};
  CU_ASSERT_PTR_NOT_NULL_FATAL(t.all);
  const cJSON *studies = member_at(t.all, "studies");
  CU_ASSERT_EQUAL_FATAL(cJSON_GetArraySize(studies), 1);
  t.study = cJSON_GetArrayItem(studies, 0);
  return t;
}

static double number(const told *t, const char *key) {
  return number_at(t->study, key);
}

static int is_complete(const told *t) {
  return is_true_at(t->study, "complete");
}

static double status_number(const char *db, const char *key) {
  told t = status_of(db);
  const double value = number(&t, key);
  return value;
}

/* --- unfinished --- */

/* Starts the sweep, kills it in its first tuning run, and leaves what it planned. */
static void kill_at_once(const bench *b, const char *more) {
  pid_t pid = CLI_START("sweep", b->recipe, "-o", b->db, "-j", "1", "-q", "steps=2000000", more);
  pid_t worker = 0;
  cli_wait_for_children(pid, &worker, 1);
  CU_ASSERT_FATAL(worker > 0);
  CU_ASSERT(status_number(b->db, "planned") > 0);
  cli_result r = CLI("status", b->db);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "a sweep is writing it"));
  kill(pid, SIGKILL);
  cli_wait(pid);
}

TEST(a_sweep_keeps_its_plan_before_its_first_run) {
  bench b;
  bench_make(&b);
  kill_at_once(&b, "name=small");
  told t = status_of(b.db);
  CU_ASSERT_EQUAL(number(&t, "planned"), 8);
  CU_ASSERT_EQUAL(number(&t, "missing"), 8);
  CU_ASSERT_EQUAL(number(&t, "tuning_planned"), 4);
  CU_ASSERT_EQUAL(number(&t, "tuning_known"), 0);
  CU_ASSERT_FALSE(is_complete(&t));
  CU_ASSERT(cJSON_IsFalse(member_at(t.all, "being_written")));
  const cJSON *missing = member_at(t.study, "missing_cells"), *one;
  CU_ASSERT_EQUAL_FATAL(cJSON_GetArraySize(missing), 8);
  one = cJSON_GetArrayItem(missing, 5); /* in grid order: gepo's second seed */
  CU_ASSERT_STRING_EQUAL(text_at(one, "algorithm"), "gepo");
  CU_ASSERT_EQUAL(number_at(one, "seed"), 2);
  cli_result words = CLI("status", b.db);
  CU_ASSERT_PTR_NOT_NULL(strstr(words.out, "small: 0 of 8 cells, 8 missing"));
  CU_ASSERT_PTR_NOT_NULL(strstr(words.out, "and 3 more; --missing lists all"));
  CU_ASSERT_PTR_NOT_NULL(strstr(words.out, "nothing is writing it"));
  CU_ASSERT(CLI_GIVES(1, "status", b.db, "--exit-code"));
}

/* Whether a command on the study ends well and says so many of so many cells, or, with of NULL,
 * warns of nothing. */
static int warns(const char *const *arguments, const char *of) {
  cli_result r = cli_run(NULL, arguments);
  const char *warning = strstr(r.err, "gepolab: warning: ");
  int good = r.code == 0 && r.out_size > 0 && (warning != NULL) == (of != NULL) &&
             (of == NULL || strstr(warning, of) != NULL);
  if (!good) fprintf(stderr, "%s gave %d: %s\n", arguments[0], r.code, r.err);
  return good;
}
#define WARNS(of, ...) warns((const char *const[]){__VA_ARGS__, NULL}, of)

/* Four cells are done; then a larger sweep, killed, plans eight. Every reader says so and shows the
 * same bytes as before. */
TEST(readers_of_an_unfinished_study_say_so_and_print_the_same) {
  bench b;
  char figures[128];
  bench_make(&b);
  const char *const few = "sweep.seed=[1,2]";
  CU_ASSERT(CLI_GIVES(0, "sweep", b.recipe, "-o", b.db, "-q", few));
  CU_ASSERT_EQUAL(status_number(b.db, "missing"), 0);
  CU_ASSERT(WARNS(NULL, "analyze", b.db));
  cli_result before = CLI("export", b.db);
  kill_at_once(&b, "tune=null");
  cli_result after = CLI("export", b.db);
  CU_ASSERT_EQUAL(after.code, 0);
  CU_ASSERT_STRING_EQUAL(before.out, after.out);
  CU_ASSERT_PTR_NULL(strstr(before.err, "warning"));
  CU_ASSERT_PTR_NOT_NULL(strstr(after.err, "small has 4 of 12 cells"));
  CU_ASSERT(WARNS("4 of 12 cells", "analyze", b.db));
  char page[128];
  cli_result report = CLI("report", b.db, "-o", cli_path(page, b.folder, "page.html"));
  CU_ASSERT_EQUAL(report.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(report.err, "4 of 12 cells"));
  CU_ASSERT(WARNS("4 of 12 cells", "plot", b.db, "-f", "staleness", "-o",
                  cli_path(figures, b.folder, "figures")));
}

TEST(a_shard_that_was_not_joined_is_named) {
  bench b;
  char part[3][160];
  static const char *const shard[] = {"0/3", "1/3", "2/3"};
  bench_make(&b);
  for (int i = 0; i < 3; ++i) {
    snprintf(part[i], sizeof part[i], "%s.shard%d", b.db, i);
    CU_ASSERT(CLI_GIVES(0, "sweep", b.recipe, "-o", b.db, "-q", "--shard", shard[i]));
  }
  REFUSED(1, "not a gepolab study", "merge", b.db, part[0], b.recipe);
  CU_ASSERT_NOT_EQUAL(access(b.db, F_OK), 0); /* a refused merge makes no study */
  cli_result r = CLI("merge", b.db, part[0], part[2]);
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT(CLI_GIVES(1, "merge", b.db, b.recipe)); /* and leaves one that is there */
  cli_result shown = CLI("status", b.db);
  CU_ASSERT_PTR_NOT_NULL(strstr(shown.out, "  missing     "));
  CU_ASSERT_PTR_NULL(strstr(shown.out, "{}"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "small has 5 of 8 cells"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "shard 1/3 is missing"));
  CU_ASSERT_EQUAL(status_number(b.db, "shards_missing"), 1);
  CU_ASSERT(CLI_GIVES(1, "status", b.db, "--exit-code"));
  cli_result whole = CLI("merge", b.db, part[1]);
  CU_ASSERT_EQUAL(whole.code, 0);
  CU_ASSERT_STRING_EQUAL(whole.err, "");
  CU_ASSERT(CLI_GIVES(0, "status", b.db, "--exit-code"));
}

TEST(shards_of_another_number_are_not_passed_over_in_silence) {
  static const char says[] = "is of a sweep in 2 shards";
  bench b;
  char part[2][160];
  bench_make(&b);
  for (int i = 0; i < 2; ++i) {
    snprintf(part[i], sizeof part[i], "%s.shard%d", b.db, i);
    cli_result r = CLI("sweep", b.recipe, "-o", b.db, "-q", "--shard", i == 0 ? "0/2" : "1/2");
    CU_ASSERT_PTR_NULL(strstr(r.err, says));
  }
  REFUSED(1, part[1], "status", b.db);
  cli_result r = CLI("sweep", b.recipe, "-o", b.db, "-q", "--shard", "2/4", "--dry-run");
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, says));
  r = CLI("sweep", b.recipe, "-o", b.db, "-q", "--dry-run");
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, says));
  CU_ASSERT(CLI_GIVES(0, "merge", b.db, part[0], part[1]));
  r = CLI("sweep", b.recipe, "-o", b.db, "-q", "--json");
  CU_ASSERT_PTR_NULL(strstr(r.err, says));
  CU_ASSERT_EQUAL(printed_number(&r, "already_finished"), 8);
}

/* --- plans --- */

TEST(plans_of_a_study_add_up_and_can_be_replaced) {
  bench b;
  bench_make(&b);
  CU_ASSERT(CLI_GIVES(0, "sweep", b.recipe, "-o", b.db, "-q", "sweep.seed=[1]"));
  CU_ASSERT_EQUAL(status_number(b.db, "planned"), 2);
  CU_ASSERT(CLI_GIVES(0, "sweep", b.recipe, "-o", b.db, "-q", "sweep.seed=[1,2]"));
  CU_ASSERT_EQUAL(status_number(b.db, "planned"), 4);
  CU_ASSERT(CLI_GIVES(0, "sweep", b.recipe, "-o", b.db, "-q", "sweep.seed=[3]"));
  CU_ASSERT_EQUAL(status_number(b.db, "planned"), 6);
  kill_at_once(&b, "tune=null"); /* eight more, much longer */
  CU_ASSERT_EQUAL(status_number(b.db, "planned"), 14);
  CU_ASSERT_EQUAL(status_number(b.db, "missing"), 8);
  CU_ASSERT(CLI_GIVES(0, "sweep", b.recipe, "-o", b.db, "-q", "sweep.seed=[1]"));
  CU_ASSERT_EQUAL(status_number(b.db, "missing"), 8);
  CU_ASSERT(CLI_GIVES(0, "sweep", b.recipe, "-o", b.db, "-q", "sweep.seed=[1]", "--replace-plan"));
  CU_ASSERT_EQUAL(status_number(b.db, "planned"), 2);
  CU_ASSERT_EQUAL(status_number(b.db, "missing"), 0);
  CU_ASSERT_EQUAL(status_number(b.db, "done"), 6); /* what is there stays */
}

static size_t lines_of(const char *db) {
  cli_result r = CLI("export", db);
  size_t n = 0;
  for (const char *c = r.out; *c != '\0'; ++c) n += *c == '\n';
  return n;
}

/* Another choice of rates makes the cells again. The runs of the one before give up their places:
 * they are neither averaged with the new ones nor lost. */
TEST(runs_at_other_rates_take_the_places_of_the_old_ones) {
  bench b;
  bench_make(&b);
  CU_ASSERT(CLI_GIVES(0, "sweep", b.recipe, "-o", b.db, "-q", "tune.lr=[0.02]"));
  cli_result first = CLI("export", b.db);
  cli_result other = CLI("sweep", b.recipe, "-o", b.db, "-q", "--json", "tune.lr=[0.1]");
  CU_ASSERT_EQUAL(other.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(other.err, "8 runs are superseded"));
  CU_ASSERT_EQUAL(lines_of(b.db), 9); /* with the header */
  told t = status_of(b.db);
  CU_ASSERT_EQUAL(number(&t, "planned"), 8);
  CU_ASSERT_EQUAL(number(&t, "done") + number(&t, "diverged"), 8);
  CU_ASSERT_EQUAL(number(&t, "superseded"), 8);
  CU_ASSERT(is_complete(&t));
  cli_result analysis = CLI("analyze", b.db);
  CU_ASSERT_PTR_NOT_NULL(strstr(analysis.err, "8 runs of small are superseded"));
  /* The first choice again: its runs are in the file and take their places back. */
  cli_result back = CLI("sweep", b.recipe, "-o", b.db, "-q", "--json", "tune.lr=[0.02]");
  cJSON *report = json_parsed(back.out);
  CU_ASSERT_EQUAL(number_at(report, "already_finished"), 8);
  CU_ASSERT_EQUAL(number_at(report, "superseded"), 8);
  cli_result again = CLI("export", b.db);
  CU_ASSERT_STRING_EQUAL(first.out, again.out);
}

/* --- watching --- */

TEST(watching_ends_when_all_is_there) {
  bench b;
  bench_make(&b);
  pid_t pid = CLI_START("sweep", b.recipe, "-o", b.db, "-j", "1", "-q", "steps=8000");
  for (int wait = 0; wait < 2000 && access(b.db, F_OK) != 0; ++wait) cli_sleep_ms(5);
  for (int wait = 0; wait < 500 && CLI_GIVES(1, "status", b.db); ++wait) cli_sleep_ms(5);
  cli_result r = CLI("status", b.db, "--watch", "--every", "1", "--json");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_EQUAL(cli_wait(pid), 0);
  /* Every line is a document, and the last one says that all is there. */
  char *last = NULL;
  size_t n = 0;
  for (char *line = strtok(r.out, "\n"); line != NULL; line = strtok(NULL, "\n"), ++n) {
    cJSON *document = json_parsed(line);
    CU_ASSERT_PTR_NOT_NULL(document);
    last = line;
  }
  CU_ASSERT(n >= 2);
  CU_ASSERT_PTR_NOT_NULL_FATAL(last);
  CU_ASSERT_PTR_NOT_NULL(strstr(last, "\"complete\":true"));
}

TEST(watching_what_nothing_writes_ends_at_once) {
  bench b;
  bench_make(&b);
  kill_at_once(&b, "name=small");
  pid_t pid = CLI_START("status", b.db, "--watch", "--every", "600");
  int how = 0;
  for (int wait = 0; wait < 2000 && waitpid(pid, &how, WNOHANG) == 0; ++wait) cli_sleep_ms(5);
  CU_ASSERT(WIFEXITED(how) && WEXITSTATUS(how) == 0);
  if (kill(pid, SIGKILL) == 0) cli_wait(pid);
}

/* --- where results would be lost --- */

TEST(results_are_never_written_where_they_would_be_lost) {
  bench b;
  bench_make(&b);
  const char *const places[] = {":memory:", "file:study.db?mode=memory", "file:study.db",
                                "/dev/null", b.folder};
  for (size_t i = 0; i < sizeof places / sizeof *places; ++i) {
    cli_result r = CLI("sweep", b.recipe, "-q", "-o", places[i]);
    CU_ASSERT(r.code == 1 || r.code == 2);
    CU_ASSERT_PTR_NOT_NULL(strstr(r.err, places[i]));
    CU_ASSERT_PTR_NULL(strstr(r.out, "cells in"));
    CU_ASSERT_FALSE(
        CLI_GIVES(0, "run", b.recipe, "-q", "sweep=null", "tune=null", "-o", places[i]));
  }
  CU_ASSERT(CLI_GIVES(2, "sweep", b.recipe, "-q", "-o", ""));
  CU_ASSERT_EQUAL(cli_files_in(b.folder), 1); /* the recipe alone */
}

/* Two of four tuning runs took 10 s each, one after the other, and four cells come after them. */
TEST(tuning_runs_say_how_long_it_will_take) {
  static const char *const places[] = {"t1", "t2", "t3", "t4", "c1", "c2", "c3", "c4"};
  static const char *const finished[] = {"2026-11-22T08:30:10Z", "2026-11-22T08:30:20Z"};
  planned_cell cells[8];
  sweep_outlook o;
  bench b;
  bench_make(&b);
  for (int i = 0; i < 8; ++i)
    cells[i] = (planned_cell){.tuning = i < 4,
                              .place = places[i],
                              .ordinal = i % 4,
                              .algorithm = i % 2 ? "gepo" : "grpo",
                              .swept = "{}"};
  store *s = store_opened(b.db, STORE_WRITE);
  const study_plan plan = {.study = "s", .recipe = "{}", .shards = 1, .cells = cells, .n = 8};
  CU_ASSERT_EQUAL(store_put_plan(s, &plan, NULL), GL_OK);
  CU_ASSERT_EQUAL(sweep_outlook_read(&o, s, "s", NULL), GL_OK);
  CU_ASSERT(isnan(o.per_s) && isnan(o.left_s));
  for (int i = 0; i < 2; ++i)
    CU_ASSERT_EQUAL(
        store_put_score(s, &(score_record){places[i], "{}", 0.5, 10, finished[i]}, NULL), GL_OK);
  CU_ASSERT_EQUAL(sweep_outlook_read(&o, s, "s", NULL), GL_OK);
  ASSERT_CLOSE(o.per_s, 0.1, 1e-12);
  ASSERT_CLOSE(o.left_s, 60, 1e-9);
  store_close(s);
}

/* Eight settings in rungs of 23 and of 90 updates, of which two go on, then two cells of 90. Half
 * of the first rung has been made, at 0.1 s an update. */
TEST(the_time_left_knows_lengths_and_later_rungs) {
  static const char recipe[] = "{\"name\":\"s\",\"steps\":90,\"sweep\":{\"algorithm\":[\"grpo\"],"
                               "\"seed\":[1,2]},\"tune\":{\"halving\":"
                               "{\"eta\":4,\"rungs\":2},\"lr\":[1,2,3,4,5,6,7,8],\"seeds\":[101]},"
                               "\"world\":{\"kind\":\"bandit\"}}";
  planned_cell cells[10];
  char places[10][8], swept[10][64], finished[32];
  sweep_outlook o;
  bench b;
  bench_make(&b);
  for (int i = 0; i < 10; ++i) {
    snprintf(places[i], sizeof places[i], "p%d", i);
    snprintf(swept[i], sizeof swept[i], "{\"optimizer.lr\":%d,\"steps\":23}", i + 1);
    cells[i] = (planned_cell){.tuning = i < 8,
                              .place = places[i],
                              .ordinal = i,
                              .algorithm = "grpo",
                              .seed = 1,
                              .swept = i < 8 ? swept[i] : "{}"};
  }
  store *s = store_opened(b.db, STORE_WRITE);
  const study_plan plan = {.study = "s", .recipe = recipe, .shards = 1, .cells = cells, .n = 10};
  CU_ASSERT_EQUAL(store_put_plan(s, &plan, NULL), GL_OK);
  CU_ASSERT_EQUAL(sweep_outlook_read(&o, s, "s", NULL), GL_OK);
  CU_ASSERT(isnan(sweep_outlook_left_s(&o, 0)));
  for (int i = 0; i < 4; ++i) {
    snprintf(finished, sizeof finished, "2026-11-22T08:30:%02dZ", 10 + 23 * i / 10);
    CU_ASSERT_EQUAL(store_put_score(s, &(score_record){places[i], "{}", 0.5, 2.3, finished}, NULL),
                    GL_OK);
    CU_ASSERT_EQUAL(sweep_outlook_read(&o, s, "s", NULL), GL_OK);
    CU_ASSERT_EQUAL(o.at_most, i == 0);
  }
  store_close(s);
  const double run = 2.3, long_run = 9;
  const double span = 6 + run; /* from 10 s to 16 s, and the first run */
  ASSERT_CLOSE(o.left_s, (4 * run + 2 * long_run + 2 * long_run) * span / (4 * run), 1e-6);
  ASSERT_CLOSE(sweep_outlook_left_s(&o, o.ended_s + 1), o.left_s - 1, 1e-9);
  ASSERT_CLOSE(sweep_outlook_left_s(&o, o.ended_s + 1e6), o.left_s - run, 1e-9);
}
