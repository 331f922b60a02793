/* `gepolab report`: one page, whole, safe, and true to what the file holds. */
#include "core/store/store.h"
#include "tests/support/cli.h"
#include "tests/support/files.h"
#include "tests/support/markup.h"
#include "tests/support/suite.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

SUITE("cli: report");

typedef struct fixture {
  char folder[64], db[128], page[128];
} fixture;

static void fixture_make(fixture *f) {
  cli_scratch_make(f->folder);
  cli_path(f->db, f->folder, "study.db");
  cli_path(f->page, f->folder, "report.html");
}

static int says(const char *page, const char *words) {
  const int found = strstr(page, words) != NULL;
  if (!found) fprintf(stderr, "the page does not say: %s\n", words);
  return found;
}

/* Removes the page's scripts: the program's own, and the numbers of charts, which hold no markup.
 * Returns whether there is nothing else between a script's marks. */
static int cut_scripts(char *page) {
  static const char *const begins[] = {"<script>//<![CDATA[\n",
                                       "<script type=\"application/json\">{"};
  static const char *const ends[] = {"\n//]]></script>", "}</script>"};
  for (int kind = 0; kind < 2; ++kind)
    for (char *at; (at = strstr(page, begins[kind])) != NULL;) {
      char *end = strstr(at, ends[kind]);
      if (end == NULL) return 0;
      *end = '\0';
      if (kind == 1 && strpbrk(at + strlen(begins[1]), "<>&") != NULL) return 0;
      memmove(at, end + strlen(ends[kind]), strlen(end + strlen(ends[kind])) + 1);
    }
  return 1;
}

/* Nothing but the program's script is run and nothing is fetched; what XML calls its languages is
 * no address to open. */
static int stands_alone(char *page) {
  static const char *const nowhere[] = {"<script", "<link",  "<iframe",           "<object",
                                        "@import", "https:", "href=\"javascript:"};
  int good = cut_scripts(page) && markup_is_well_formed(page) && markup_ids_hold(page) &&
             markup_count(page, "http:") == markup_count(page, "xmlns=\"http://www.w3.org/") &&
             markup_count(page, " src=") ==
                 markup_count(page, " src=\"data:image/svg+xml;base64,PD94bWwg");
  for (size_t i = 0; i < sizeof nowhere / sizeof *nowhere; ++i) {
    const char *found = strstr(page, nowhere[i]);
    if (found != NULL) fprintf(stderr, "the page has: %.60s\n", found);
    good &= found == NULL;
  }
  return good;
}

static void sweep_some(const fixture *f) {
  CU_ASSERT(CLI_GIVES(
      0, "sweep", "quickstart", "-q", "-o", f->db, "steps=20", "cluster={preset: heterorl}",
      "sweep={algorithm: [grpo, gepo], cluster.max_delay: [0, 600], seed: [1, 2]}"));
}

TEST(a_study_becomes_one_page_with_everything_in_it) {
  static const char *const sections[] = {"summary", "figures", "scores",     "clock",
                                         "recipe",  "rerun",   "provenance", "relations"};
  fixture f;
  fixture_make(&f);
  sweep_some(&f);
  CU_ASSERT(CLI_GIVES(0, "report", f.db, "-o", f.page));
  char *page = files_text(f.page);
  CU_ASSERT(stands_alone(page));
  for (size_t i = 0; i < sizeof sections / sizeof *sections; ++i) {
    char words[64];
    snprintf(words, sizeof words, "<h2 id=\"s1-%s\">", sections[i]);
    CU_ASSERT(says(page, words));
  }
  CU_ASSERT(says(page, "<h1>quickstart</h1>") && says(page, "<dt>runs ended</dt><dd>8</dd>"));
  CU_ASSERT_EQUAL(markup_count(page, "<img alt=\""), 14);
  CU_ASSERT_EQUAL(markup_count(page, "<figcaption>"), 14);
  CU_ASSERT(says(page, "<th scope=\"row\">max delay 600 s</th>"));
  CU_ASSERT(says(page, "cluster.max_delay: [0, 600]"));
  CU_ASSERT_PTR_NULL(strstr(page, "id=\"s1-problems\""));
  CU_ASSERT_PTR_NULL(strstr(page, f.page)); /* nothing of where the page was made */
  free(page);
}

/* The characters that the page's entities stand for, in place; returns the bytes left. */
static size_t without_entities(char *text, size_t size) {
  static const struct {
    const char *entity;
    char is;
  } all[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&#39;", '\''}};
  size_t n = 0;
  for (size_t i = 0; i < size; ++n) {
    size_t e = 0;
    while (e < 5 && strncmp(text + i, all[e].entity, strlen(all[e].entity)) != 0) ++e;
    text[n] = e < 5 ? all[e].is : text[i];
    i += e < 5 ? strlen(all[e].entity) : 1;
  }
  return n;
}

TEST(the_recipe_on_the_page_makes_the_same_runs) {
  fixture f;
  char recipe[128], again[128], keys[2][4096];
  fixture_make(&f);
  sweep_some(&f);
  CU_ASSERT(CLI_GIVES(0, "report", f.db, "--no-figures", "-o", f.page));
  char *page = files_text(f.page), *at = strstr(page, "<code>name: ");
  CU_ASSERT_PTR_NOT_NULL_FATAL(at);
  char *end = strstr(at, "</code>");
  CU_ASSERT_PTR_NOT_NULL_FATAL(end);
  at += strlen("<code>");
  const size_t size = without_entities(at, (size_t)(end - at));
  cli_write(cli_path(recipe, f.folder, "again.yaml"), at, size);
  CU_ASSERT(CLI_GIVES(0, "sweep", recipe, "-q", "-o", cli_path(again, f.folder, "again.db")));
  for (int i = 0; i < 2; ++i) {
    cli_result r = CLI("export", i == 0 ? f.db : again);
    snprintf(keys[i], sizeof keys[i], "%s", r.out);
  }
  CU_ASSERT(strlen(keys[0]) > 400);
  CU_ASSERT_STRING_EQUAL(keys[0], keys[1]);
  free(page);
}

TEST(the_same_study_gives_the_same_bytes) {
  fixture f;
  char second[128];
  fixture_make(&f);
  sweep_some(&f);
  cli_path(second, f.folder, "second.html");
  CU_ASSERT(CLI_GIVES(0, "report", f.db, "-o", f.page));
  CU_ASSERT(CLI_GIVES(0, "report", f.db, "-o", second));
  char *a = files_text(f.page), *b = files_text(second);
  CU_ASSERT_STRING_EQUAL(a, b);
  free(a), free(b);
}

/* --- studies by hand --- */

static void put(store *s, const char *study, const char *algorithm, int delay, uint64_t seed,
                run_status status, const char *reason) {
  char key[33], recipe[256], swept[64];
  static int64_t ordinal;
  const eval_record evals[] = {{0, 0, 0.25}, {2, 10, 0.5 + (double)seed / 16}};
  snprintf(key, sizeof key, "%032lld", (long long)++ordinal);
  snprintf(swept, sizeof swept, "{\"cluster.max_delay\":%d}", delay);
  snprintf(recipe, sizeof recipe,
           "{\"algorithm\":\"%s\",\"cluster\":{\"max_delay\":%d,\"preset\":\"heterorl\"},"
           "\"name\":\"x\",\"seed\":%d}",
           strlen(algorithm) == 4 ? algorithm : "is", delay, (int)seed);
  const run_record run = {.key = key,
                          .ordinal = ordinal,
                          .study = study,
                          .algorithm = algorithm,
                          .swept = swept,
                          .recipe = recipe,
                          .meaning = 2,
                          .code_version = "0.0",
                          .machine = "a & b <c>",
                          .seed = seed,
                          .lr = 0.1,
                          .status = status,
                          .reason = reason,
                          .evals = evals,
                          .n_evals = 2};
  gl_error err = {0};
  CU_ASSERT_EQUAL_FATAL(store_put_run(s, &run, &err), GL_OK);
}

static store *opened(const fixture *f) {
  store *s = NULL;
  ASSERT_OK(store_open(&s, f->db, STORE_WRITE, &err));
  return s;
}

TEST(names_that_are_markup_are_shown_and_not_obeyed) {
  static const char name[] = "<script>alert('1')</script>\"&amp;\x1b[2J\xe2\x80\xae]]>";
  fixture f;
  fixture_make(&f);
  store *s = opened(&f);
  put(s, name, name, 0, 1, RUN_DONE, "");
  put(s, name, "b<i>\"onclick=\"x", 0, 2, RUN_FAILED, "<b onload=x>because\n</td></table>");
  store_close(s);
  CU_ASSERT(CLI_GIVES(0, "report", f.db, "-o", f.page));
  char *page = files_text(f.page);
  CU_ASSERT(stands_alone(page));
  CU_ASSERT(says(page, "<h1>&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&quot;&amp;amp;\\x1b[2J"
                       "\\u202e]]&gt;</h1>"));
  CU_ASSERT(says(page, "&lt;b onload=x&gt;because"));
  CU_ASSERT(says(page, "<td>a &amp; b &lt;c&gt;</td>"));
  CU_ASSERT(says(page, "gepolab sweep scriptalert1scriptamp2J.yaml -o"));
  CU_ASSERT_PTR_NULL(strchr(page, '\x1b'));
  CU_ASSERT_PTR_NULL(strstr(page, "\xe2\x80\xae"));
  free(page);
}

TEST(what_diverged_failed_or_is_missing_is_named) {
  fixture f;
  fixture_make(&f);
  store *s = opened(&f);
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    put(s, "gaps", "gepo", 0, seed, RUN_DONE, "");
    if (seed <= 1) put(s, "gaps", "gepo", 600, seed, RUN_DONE, "");
    if (seed <= 2) put(s, "gaps", "grpo", 0, seed, RUN_DIVERGED, "the loss is not a number");
    if (seed == 3) put(s, "gaps", "grpo", 0, seed, RUN_FAILED, "killed by signal 9");
  }
  CU_ASSERT_EQUAL(store_put_tuned(s, "gaps", "gepo", 0.03, 0.625, NULL), GL_OK);
  store_close(s);
  CU_ASSERT(CLI_GIVES(0, "report", f.db, "--no-figures", "-o", f.page));
  char *page = files_text(f.page);
  CU_ASSERT(stands_alone(page));
  CU_ASSERT(says(page, "<div class=\"tile bad\"><dt>missing</dt><dd>8</dd>"));
  CU_ASSERT(says(page, "<div class=\"tile mind\"><dt>collapsed</dt><dd>2</dd>"));
  CU_ASSERT(says(page, "8 runs of 16 are missing"));
  CU_ASSERT(says(page, "<tr><th scope=\"row\">gepo</th><td>max delay 600 s</td>"
                       "<td class=\"n\">3</td><td>2 to 4</td></tr>"));
  CU_ASSERT(says(page, "<td>max delay 600 s</td><td class=\"n\">4</td><td>1 to 4</td>"));
  CU_ASSERT(says(page, "<td>max delay 0 s</td><td class=\"n\">1</td><td>4</td>"));
  CU_ASSERT(
      says(page, "<td>1, 2</td><td>diverged</td><td class=\"words\">the loss is not a number"));
  CU_ASSERT(says(page, "<td>3</td><td>failed</td><td class=\"words\">killed by signal 9"));
  CU_ASSERT(says(page, "no run of this cell"));
  CU_ASSERT(says(page, "<th scope=\"row\">gepo</th><td class=\"n\">0.03</td>"
                       "<td class=\"n\">0.625</td>"));
  /* Last scores 1/2 + seed/16 of four seeds: the mean of the middle two. */
  CU_ASSERT(says(page, "<strong>0.656</strong>"));
  CU_ASSERT_PTR_NULL(strstr(page, "<img"));
  free(page);
}

/* The plan says what is to come; a study may have nothing else yet. */
TEST(what_a_plan_asks_for_and_no_run_has_made_is_named) {
  static const char recipe[] =
      "{\"description\":\"<b>\",\"name\":\"planned\",\"sweep\":{\"seed\":[1,2]}}";
  const planned_cell cells[] = {{0, "p1", 0, "gepo", 1, "{\"cluster.max_delay\":60}", NULL},
                                {0, "p2", 1, "gepo", 2, "{\"cluster.max_delay\":60}", NULL},
                                {0, "p3", 2, "<i>", 1, "{}", NULL}};
  fixture f;
  fixture_make(&f);
  store *s = opened(&f);
  ASSERT_OK(store_put_plan(s, &(study_plan){"planned", recipe, 0, 1, cells, 3, 0}, &err));
  store_close(s);
  CU_ASSERT(CLI_GIVES(0, "report", f.db, "-o", f.page));
  char *page = files_text(f.page);
  CU_ASSERT(stands_alone(page));
  CU_ASSERT(says(page, "3 runs of 3 are missing"));
  CU_ASSERT(says(page, "<p class=\"lead\">&lt;b&gt;</p>"));
  CU_ASSERT(says(page, "<th scope=\"row\">gepo</th><td>cluster.max_delay 60</td>"
                       "<td class=\"n\">2</td><td>1, 2</td>"));
  CU_ASSERT(says(page, "<th scope=\"row\">&lt;i&gt;</th><td>the only setting</td>"));
  CU_ASSERT(says(page, "sweep: {seed: [1, 2]}"));
  CU_ASSERT_PTR_NULL(strstr(page, "<img"));
  free(page);
}

TEST(what_made_the_runs_is_told) {
  const run_provenance made = {.version = "9.8",
                               .source = "0123456789abcdef0123",
                               .dirty = 1,
                               .command = "gepolab sweep 'a<b'",
                               .processor = "Z80",
                               .system = "CP/M",
                               .compiler = "cc 1",
                               .libraries = "{\"GSL\":\"2.7\",\"SQLite\":\"3\"}"};
  fixture f;
  fixture_make(&f);
  store *s = opened(&f);
  put(s, "made", "gepo", 0, 1, RUN_DONE, "");
  const run_record run = {.key = "00000000000000000000000000abcdef",
                          .study = "made",
                          .algorithm = "grpo",
                          .swept = "{}",
                          .recipe = "{\"algorithm\":\"grpo\",\"name\":\"x\",\"seed\":1}",
                          .meaning = 2,
                          .code_version = "9.8",
                          .machine = "m",
                          .seed = 1,
                          .status = RUN_DONE,
                          .wall_s = 5400,
                          .provenance = &made,
                          .finished = "2026-11-22T08:30:00Z",
                          .peak_bytes = 3 << 20};
  ASSERT_OK(store_put_run(s, &run, &err));
  store_close(s);
  CU_ASSERT(CLI_GIVES(0, "report", f.db, "--no-figures", "-o", f.page));
  char *page = files_text(f.page);
  CU_ASSERT(stands_alone(page));
  CU_ASSERT(says(page, "<tr><th scope=\"row\">0.0</th><td>–</td><td>a &amp; b &lt;c&gt;</td>"));
  CU_ASSERT(says(page, "<tr><th scope=\"row\">9.8</th><td><code>0123456789ab</code> "
                       "<span class=\"missing\">with changes</span></td><td>Z80, CP/M</td>"
                       "<td class=\"n\">1</td><td class=\"n\">1.5</td><td class=\"n\">3</td>"
                       "<td>cc 1</td><td class=\"words\">GSL 2.7, SQLite 3</td></tr>"));
  CU_ASSERT(says(page, "finished at 2026-11-22T08:30:00Z"));
  CU_ASSERT(says(page, "gepolab sweep &#39;a&lt;b&#39;  # 1\n"));
  free(page);
}

TEST(measurements_of_the_laboratory_have_their_table) {
  fixture f;
  fixture_make(&f);
  CU_ASSERT(CLI_GIVES(0, "bias", "four_arms", "group_size=[2]", "-o", f.db));
  CU_ASSERT(CLI_GIVES(0, "report", f.db, "-o", f.page));
  char *page = files_text(f.page);
  cli_result r = CLI("export", f.db, "--table", "bias");
  CU_ASSERT(stands_alone(page));
  CU_ASSERT(says(page, "<h1>four_arms</h1>") && says(page, "id=\"s1-laboratory\""));
  CU_ASSERT_PTR_NULL(strstr(page, "id=\"s1-summary\""));
  /* A line below the heads for each record, that of the export without its own head. */
  CU_ASSERT_EQUAL(markup_count(page, "<tr><th scope=\"row\">"), markup_count(r.out, "\n") - 1);
  CU_ASSERT(says(page, "<td>exact</td><td class=\"n\">2</td>"));
  free(page);
}

TEST(each_study_of_a_file_has_a_part) {
  fixture f;
  fixture_make(&f);
  store *s = opened(&f);
  put(s, "one", "gepo", 0, 1, RUN_DONE, "");
  put(s, "two", "grpo", 600, 1, RUN_DONE, "");
  store_close(s);
  CU_ASSERT(CLI_GIVES(0, "report", f.db, "-o", f.page));
  char *page = files_text(f.page);
  CU_ASSERT(stands_alone(page));
  CU_ASSERT(says(page, "<h1>2 studies</h1>"));
  CU_ASSERT(says(page, "<h2 id=\"s1\">one</h2>") && says(page, "<h2 id=\"s2\">two</h2>"));
  CU_ASSERT(says(page, "<h3 id=\"s2-scores\">"));
  free(page);
  CU_ASSERT(CLI_GIVES(0, "report", f.db, "--study", "two", "-o", f.page));
  page = files_text(f.page);
  CU_ASSERT(says(page, "<h1>two</h1>"));
  CU_ASSERT_PTR_NULL(strstr(page, "one</h2>"));
  free(page);
  cli_result r = CLI("report", f.db, "--study", "three", "-o", f.page);
  CU_ASSERT_EQUAL(r.code, 2);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "no study 'three'; it has one, two"));
}

TEST(a_failure_leaves_the_old_page_and_nothing_else) {
  static const char old[] = "the old page";
  fixture f;
  char nowhere[128];
  fixture_make(&f);
  cli_write(f.page, old, sizeof old - 1);
  CU_ASSERT(CLI_GIVES(1, "report", f.db, "-o", f.page)); /* there is no such file */
  store_close(opened(&f));
  cli_result r = CLI("report", f.db, "-o", f.page);
  CU_ASSERT_EQUAL(r.code, 2);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "sweep a recipe into it first"));
  store *s = opened(&f);
  put(s, "one", "gepo", 0, 1, RUN_DONE, "");
  store_close(s);
  REFUSED(1, "--no-figures", "report", f.db, "-o", f.page, "--gnuplot", "no-such-gnuplot");
  CU_ASSERT(CLI_GIVES(1, "report", f.db, "-o", f.page, "--gnuplot", "true")); /* draws nothing */
  CU_ASSERT(CLI_GIVES(1, "report", f.db, "-o", cli_path(nowhere, f.folder, "no/report.html")));
  CU_ASSERT(CLI_GIVES(1, "report", f.db, "-o", f.folder));
  char *page = files_text(f.page);
  CU_ASSERT_STRING_EQUAL(page, old);
  CU_ASSERT_EQUAL(cli_files_in(f.folder), 2);
  free(page);
}

/* A gnuplot that takes a second and draws nothing, until the signal comes. */
static int report_stopped(const fixture *f, const char *gnuplot, const char *tmp, int signal) {
  pid_t pid = CLI_START("report", f->db, "-o", f->page, "--gnuplot", gnuplot);
  for (int wait = 0; wait < 500 && cli_files_in(tmp) == 0; ++wait) cli_sleep_ms(10);
  cli_sleep_ms(100);
  kill(pid, signal);
  return cli_wait(pid);
}

static void make_old(const char *tmp) {
  DIR *all = opendir(tmp);
  CU_ASSERT_PTR_NOT_NULL_FATAL(all);
  const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
  for (struct dirent *e; (e = readdir(all)) != NULL;)
    if (e->d_name[0] != '.') utimensat(dirfd(all), e->d_name, old, 0);
  closedir(all);
}

TEST(the_folder_of_its_figures_does_not_outlive_a_report_for_long) {
  static const char slow[] = "#!/bin/sh\nexec sleep 1\n";
  fixture f;
  char gnuplot[128], tmp[128];
  fixture_make(&f);
  sweep_some(&f);
  cli_write(cli_path(gnuplot, f.folder, "slow"), slow, sizeof slow - 1);
  chmod(gnuplot, 0755);
  CU_ASSERT_EQUAL_FATAL(mkdir(cli_path(tmp, f.folder, "tmp"), 0777), 0);
  setenv("TMPDIR", tmp, 1);
  CU_ASSERT_EQUAL(report_stopped(&f, gnuplot, tmp, SIGTERM), 130);
  CU_ASSERT_EQUAL(cli_files_in(tmp), 0);
  CU_ASSERT_EQUAL(report_stopped(&f, gnuplot, tmp, SIGKILL), 128 + SIGKILL);
  CU_ASSERT_EQUAL(cli_files_in(tmp), 1);
  make_old(tmp);
  CU_ASSERT(CLI_GIVES(0, "report", f.db, "-o", f.page));
  CU_ASSERT_EQUAL(cli_files_in(tmp), 0);
  unsetenv("TMPDIR");
}
