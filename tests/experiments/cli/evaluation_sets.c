/* Evaluation sets through the commands: they change nothing else of a run, do not depend on how a
 * sweep is executed, and are told, drawn and judged by name. */
#include "core/base/json.h"
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("cli: evaluation sets");

#define RECIPE(evaluation)                                                                         \
  "name: sets\nsteps: 60\neval_every: 5\n"                                                         \
  "world: {kind: sequence, vocabulary: 3, horizon: 3, prompts: 4, task: sum_mod" evaluation        \
  "}\nsweep: {algorithm: [gepo, grpo], cluster.delay: [0, 30], seed: [1, 2, 3]}\n"
static const char with[] =
    RECIPE(", evaluation: {halves: true, sets: [{name: own}, {name: sorted, world: {task: sorted}},"
           " {name: \"one & two\", prompts: [0, 1]}]}"),
                  without[] = RECIPE("");

typedef struct bench {
  char folder[64], recipe[128], plain[128], db[128], other[128], plain_db[128];
} bench;

static void bench_make(bench *b) {
  cli_scratch_make(b->folder);
  cli_write(cli_path(b->recipe, b->folder, "sets.yaml"), with, strlen(with));
  cli_write(cli_path(b->plain, b->folder, "plain.yaml"), without, strlen(without));
  cli_path(b->db, b->folder, "sets.db");
  cli_path(b->other, b->folder, "other.db");
  cli_path(b->plain_db, b->folder, "plain.db");
  CU_ASSERT_FATAL(CLI_GIVES(0, "sweep", b->recipe, "-o", b->db, "-q", "-j", "1"));
}

static char *exported(const char *db, const char *table) {
  cli_result r = CLI("export", db, "-t", table);
  CU_ASSERT_EQUAL(r.code, 0);
  return r.out;
}

/* The table without its first three columns: the study, the place in it, and the run's key, which
 * names the recipe. */
static char *without_keys(char *text) {
  char *to = text;
  for (char *line = text; *line != '\0';) {
    char *from = line, *end = strchr(line, '\n');
    CU_ASSERT_PTR_NOT_NULL_FATAL(end);
    for (int i = 0; i < 3; ++i) {
      from = strchr(from + 1, ',');
      CU_ASSERT_FATAL(from != NULL && from < end);
    }
    memmove(to, from, (size_t)(end + 1 - from));
    to += end + 1 - from;
    line = end + 1;
  }
  *to = '\0';
  return text;
}

TEST(sets_change_nothing_else_of_a_study) {
  static const char *const tables[] = {"steps", "evals", "staleness", "clock"};
  bench b;
  bench_make(&b);
  CU_ASSERT_FATAL(CLI_GIVES(0, "sweep", b.plain, "-o", b.plain_db, "-q"));
  for (size_t i = 0; i < sizeof tables / sizeof *tables; ++i) {
    char *a = without_keys(exported(b.db, tables[i])),
         *c = without_keys(exported(b.plain_db, tables[i]));
    CU_ASSERT(strlen(a) > 200 && strcmp(a, c) == 0);
  }
  char *none = exported(b.plain_db, "set_evals");
  CU_ASSERT(strchr(none, '\n') == none + strlen(none) - 1); /* a header alone */
}

TEST(scores_do_not_depend_on_workers_or_on_merging) {
  bench b;
  char shard[140];
  bench_make(&b);
  char *one = exported(b.db, "set_evals");
  CU_ASSERT_PTR_NOT_NULL(strstr(one, ",sorted,2,"));
  CU_ASSERT_FATAL(CLI_GIVES(0, "sweep", b.recipe, "-o", b.other, "-q", "-j", "3"));
  char *three = exported(b.other, "set_evals");
  CU_ASSERT_STRING_EQUAL(one, three);
  char joined[128], half[128];
  cli_path(joined, b.folder, "joined.db"), cli_path(half, b.folder, "half.db");
  CU_ASSERT(CLI_GIVES(0, "sweep", b.recipe, "-o", half, "-q", "--shard", "0/2"));
  CU_ASSERT(CLI_GIVES(0, "sweep", b.recipe, "-o", half, "-q", "--shard", "1/2"));
  snprintf(shard, sizeof shard, "%s.shard1", half);
  char first[140];
  snprintf(first, sizeof first, "%s.shard0", half);
  CU_ASSERT(CLI_GIVES(0, "merge", joined, first, shard));
  char *merged = exported(joined, "set_evals");
  CU_ASSERT_STRING_EQUAL(one, merged);
  CU_ASSERT(CLI_GIVES(0, "check", joined));
}

static double number_of(const cJSON *o, const char *key) {
  const cJSON *v = member_at(o, key);
  return cJSON_IsObject(v) ? number_at(v, "iqm") : v->valuedouble;
}

TEST(analyze_tells_every_set_and_their_average) {
  bench b;
  bench_make(&b);
  cli_result json = CLI("analyze", b.db, "--json"), text = CLI("analyze", b.db),
             latex = CLI("analyze", b.db, "-f", "latex"),
             markdown = CLI("analyze", b.db, "-f", "markdown");
  cJSON *d = json_parsed(json.out);
  const cJSON *sets = member_at(d, "sets");
  CU_ASSERT_EQUAL_FATAL(cJSON_GetArraySize(sets), 4 * 5); /* four cells; three sets, two averages */
  const cJSON *own = cJSON_GetArrayItem(sets, 0),
              *cell = cJSON_GetArrayItem(member_at(d, "cells"), 0);
  CU_ASSERT_STRING_EQUAL(text_at(own, "set"), "own");
  CU_ASSERT(number_of(own, "best") == number_of(cell, "best"));
  CU_ASSERT(number_of(own, "last") == number_of(cell, "last"));
  CU_ASSERT(number_of(own, "best_by_halves") <= number_of(own, "best") + 1e-12);
  const cJSON *average = cJSON_GetArrayItem(sets, 3), *of_mean = cJSON_GetArrayItem(sets, 4);
  CU_ASSERT_STRING_EQUAL(text_at(average, "set"), "average");
  CU_ASSERT(number_of(average, "best") >= number_of(of_mean, "best") - 1e-12);
  ASSERT_CLOSE(number_of(average, "last"), number_of(of_mean, "last"), 1e-12);
  const cJSON *rows = member_at(d, "benchmarks.rows");
  CU_ASSERT_EQUAL(cJSON_GetArraySize(rows), 4);
  CU_ASSERT_STRING_EQUAL(text_at(cJSON_GetArrayItem(rows, 1), "run"), "grpo, weight delay 0 s");
  CU_ASSERT_PTR_NOT_NULL(strstr(text.out, "one & two"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text.out, "By halves of the problems"));
  CU_ASSERT_PTR_NOT_NULL(strstr(latex.out, "one \\& two best & one \\& two last & average best"));
  CU_ASSERT_PTR_NOT_NULL(strstr(markdown.out, "one &amp; two best"));
}

TEST(commands_take_a_set_by_name) {
  bench b;
  char figures[128], path[200];
  bench_make(&b);
  cli_result all = CLI("analyze", b.db, "--json"),
             sorted = CLI("analyze", b.db, "--json", "--set", "sorted");
  cJSON *a = json_parsed(all.out), *s = json_parsed(sorted.out);
  const cJSON *set = cJSON_GetArrayItem(member_at(a, "sets"), 1),
              *cell = cJSON_GetArrayItem(member_at(s, "cells"), 0);
  CU_ASSERT(number_of(set, "best") == number_of(cell, "best"));
  CU_ASSERT(CLI_GIVES(0, "outcomes", b.db, "--set", "mean"));
  cli_result wrong = CLI("outcomes", b.db, "--set", "sortd");
  CU_ASSERT(wrong.code == 2 && strstr(wrong.err, "did you mean 'sorted'") != NULL);
  wrong =
      CLI("plot", b.db, "--set", "sorted", "--each-set", "-o", cli_path(figures, b.folder, "f"));
  CU_ASSERT(wrong.code == 2 && strstr(wrong.err, "give one") != NULL);
  CU_ASSERT(CLI_GIVES(0, "plot", b.db, "--each-set", "-f", "eval_score", "-o", figures));
  snprintf(path, sizeof path, "%s/eval_score.gp", figures);
  char *data = cli_read(path);
  CU_ASSERT(data != NULL && strstr(data, "s, sorted'") != NULL &&
            strstr(data, "s, one \\& two'") != NULL);
  /* The table of exports from a study: rows are algorithms and settings, columns are sets. */
  cli_result each = CLI("analyze", b.db, "--each-set", "--json");
  cJSON *d = json_parsed(each.out);
  const cJSON *table = member_at(d, "benchmarks");
  CU_ASSERT_EQUAL(cJSON_GetArraySize(member_at(table, "labels")), 3);
  CU_ASSERT_EQUAL(cJSON_GetArraySize(member_at(table, "rows")), 4);
}

TEST(a_study_without_sets_says_so) {
  bench b;
  bench_make(&b);
  CU_ASSERT_FATAL(CLI_GIVES(0, "sweep", b.plain, "-o", b.plain_db, "-q", "steps=5"));
  const char *const wrong[][2] = {{"--set", "own"}, {"--each-set", NULL}};
  for (size_t i = 0; i < 2; ++i) {
    cli_result r =
        cli_run(NULL, (const char *const[]){"analyze", b.plain_db, wrong[i][0], wrong[i][1], NULL});
    CU_ASSERT(r.code == 2 && strstr(r.err, "has no evaluation sets") != NULL);
  }
  cli_result r = CLI("analyze", "tests/golden/exports/panel_eval.csv", "--set", "own");
  CU_ASSERT(r.code == 2 && strstr(r.err, "none of the files is a study") != NULL);
}

/* Every set has its rows in the report, with the numbers of the table; and outcomes say that halves
 * chose their bests. */
TEST(reports_and_outcomes_know_the_sets) {
  bench b;
  char page[128];
  bench_make(&b);
  cli_result r = CLI("report", b.db, "-o", cli_path(page, b.folder, "page.html"), "--no-figures");
  if (r.code != 0) fprintf(stderr, "%s", r.err);
  CU_ASSERT_EQUAL(r.code, 0);
  char *text = cli_read(page);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "Evaluation scores by set"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "<td>one &amp; two</td>"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "<td>sorted</td>"));
  r = CLI("outcomes", b.db, "--set", "sorted");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "chosen on one"));
}
