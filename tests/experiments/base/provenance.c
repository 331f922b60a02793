/* How runs come about: what is collected, and how it is written down. */
#include "experiments/base/provenance.h"
#include "llm/backend/open/open.h"

#include "core/base/json.h"
#include "core/base/utf8.h"
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

SUITE("cli: provenance");

/* What a shell command prints, without its last line break. */
static void shell(char *text, size_t size, const char *line) {
  FILE *from = popen(line, "r");
  size_t got = from != NULL ? fread(text, 1, size - 1, from) : 0;
  if (from != NULL) pclose(from);
  if (got > 0 && text[got - 1] == '\n') --got;
  text[got] = '\0';
}

/* --- command lines --- */

/* The shell is the oracle: it prints each word between brackets. */
TEST(a_shell_takes_a_quoted_command_apart_into_its_words) {
  static const char *const words[] = {
      "printf",      "[%s]", "plain",      "two words",    "",
      "it's",        "'",    "\"double\"", "$HOME `id`",   "a\\b",
      "~",           "*",    "new\nline",  "grüße",        "\xff",
      "a\xc3'b\x80", "#no",  "key=value",  "-n; echo bad", "{base: gepo, clip: none}"};
  enum { N = sizeof words / sizeof *words };
  char expected[1024] = "", given[1024], line[4096];
  for (size_t i = 2; i < N; ++i) {
    strcat(expected, "[");
    strcat(expected, words[i]);
    strcat(expected, "]");
  }
  char *text = provenance_command(words, N, 65536);
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  CU_ASSERT_EQUAL(utf8_valid_prefix(text, strlen(text)), strlen(text));
  snprintf(line, sizeof line, "%s", text);
  shell(given, sizeof given, line);
  if (strcmp(given, expected) != 0) fprintf(stderr, "%s\n gave %s\n", line, given);
  CU_ASSERT_STRING_EQUAL(given, expected);
  free(text);
}

TEST(a_command_names_the_variables_that_change_results) {
  static const char *const words[] = {"/home/somebody/build/gepolab", "run", "quickstart"};
  setenv("GLIBC_TUNABLES", "a b", 1);
  setenv("OPENBLAS_CORETYPE", "Haswell", 1);
  char *text = provenance_command(words, 3, 65536);
  unsetenv("GLIBC_TUNABLES");
  unsetenv("OPENBLAS_CORETYPE");
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "OPENBLAS_CORETYPE=Haswell "));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "GLIBC_TUNABLES='a b' gepolab run quickstart"));
  CU_ASSERT_PTR_NULL(strstr(text, "somebody"));
  free(text);
}

TEST(a_long_command_is_cut_between_characters) {
  static const char *const words[] = {"gepolab", "ääääääääääääääääääää"};
  for (size_t most = 12; most < 30; ++most) {
    char *text = provenance_command(words, 2, most);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    const size_t length = strlen(text);
    CU_ASSERT(length <= most && length + 2 > most); /* a character is two bytes */
    CU_ASSERT_EQUAL(utf8_valid_prefix(text, length), length);
    CU_ASSERT_STRING_EQUAL(text + length - 3, "…");
    free(text);
  }
}

/* --- machines --- */

TEST(the_processor_is_found_in_the_texts_of_several_systems) {
  static const char *const texts[][2] = {
      {"processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel name\t: AMD EPYC 9B14\n"
       "\nprocessor\t: 1\nmodel name\t: another\n",
       "AMD EPYC 9B14"},
      {"processor\t: 0\ncpu\t\t: POWER9, altivec supported\nclock\t\t: 3800MHz\n",
       "POWER9, altivec supported"},
      {"processor\t: 0\nhart\t\t: 1\nuarch\t\t: sifive,u74-mc\n", "sifive,u74-mc"},
      {"processor\t: 0\nBogoMIPS\t: 50.00\nCPU implementer\t: 0x41\n", "machine"},
      {"model name\t:\nmodel name\t: ab\xff\x63\n", "ab?c"},
      {"", "machine"}};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
    char text[64];
    FILE *from = fmemopen((void *)(uintptr_t)texts[i][0], strlen(texts[i][0]) + 1, "r");
    CU_ASSERT_STRING_EQUAL(provenance_processor(from, "machine", text, sizeof text), texts[i][1]);
    fclose(from);
  }
  char text[64];
  CU_ASSERT_STRING_EQUAL(provenance_processor(NULL, "machine", text, sizeof text), "machine");
}

TEST(dates_are_those_of_the_clock) {
  char before[32], after[32], now[PROVENANCE_DATE_SIZE];
  shell(before, sizeof before, "date -u +%Y-%m-%dT%H:%M:%SZ");
  provenance_now(now);
  shell(after, sizeof after, "date -u +%Y-%m-%dT%H:%M:%SZ");
  CU_ASSERT(strcmp(before, now) <= 0 && strcmp(now, after) <= 0);
}

/* Memory that is touched stands in the peak, also when it is given back. */
TEST(the_peak_counts_what_was_touched) {
  enum { MUCH = 96 << 20 };
  const int64_t before = provenance_peak_bytes();
  char *much = malloc(MUCH);
  CU_ASSERT_PTR_NOT_NULL_FATAL(much);
  for (int i = 0; i < MUCH; i += 1024) *(volatile char *)(much + i) = 1;
  free(much);
  CU_ASSERT(before > 0);
  CU_ASSERT(provenance_peak_bytes() >= MUCH);
}

TEST(everything_is_filled_in) {
  provenance p;
  char uname[256], version[64];
  ASSERT_OK(provenance_init(&p, &err));
  const run_provenance *r = &p.record;
  shell(uname, sizeof uname, "echo $(uname -s) $(uname -m)");
  shell(version, sizeof version, "cat VERSION");
  CU_ASSERT_STRING_EQUAL(r->version, version);
  CU_ASSERT_STRING_EQUAL(r->system, uname);
  CU_ASSERT(strlen(r->source) == 0 || strlen(r->source) == 40 || strlen(r->source) == 64);
  for (const char *c = r->source; *c != '\0'; ++c) CU_ASSERT(isxdigit((unsigned char)*c));
  CU_ASSERT(r->dirty >= -1 && r->dirty <= 1 && (r->source[0] != '\0' || r->dirty == -1));
  CU_ASSERT_PTR_NOT_NULL(strstr(r->command, "gepolab-tests"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r->processor, " thread"));
  CU_ASSERT(strncmp(r->compiler, "gcc ", 4) == 0 || strncmp(r->compiler, "clang ", 6) == 0);
  cJSON *all = json_parsed(r->libraries);
  CU_ASSERT_PTR_NOT_NULL(all);
  static const char *const names[] = {"GSL", "SQLite", "libyaml", "cJSON", "PCRE2", "utf8proc"};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    const cJSON *item = member_at(all, names[i]);
    CU_ASSERT(item != NULL && isdigit((unsigned char)item->valuestring[0]));
  }
  const cJSON *form = member_at(all, "CPU form");
  CU_ASSERT(form != NULL && strcmp(form->valuestring, backend_cpu_form()) == 0);
  provenance_fini(&p);
}

/* --- the source --- */

/* What experiments/write_commit.sh finds in a scratch folder that `made` fills. */
static void source_of(char *text, size_t size, const char *made) {
  char folder[64], line[2048];
  cli_scratch_make(folder);
  snprintf(
      line, sizeof line,
      "script=$PWD/experiments/write_commit.sh; unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE; "
      "mkdir %s/tree; cd %s/tree; export GIT_CONFIG_GLOBAL=/dev/null "
      "GIT_CEILING_DIRECTORIES=%s; commit() { git -c user.name=n -c user.email=e "
      "commit -q -m m; }; init() { git init -q . ; }; mkdir core; echo 1 > core/a.c; "
      "{ %s; } >/dev/null 2>&1; $script out/source.c && $script out/source.c; "
      "grep -o '= .*;' out/source.c | tr '\\n' ' '; git rev-parse -q --verify HEAD 2>/dev/null",
      folder, folder, folder, made);
  shell(text, size, line);
}

TEST(the_commit_and_what_differs_from_it_are_told) {
  static const struct {
    const char *made;
    int dirty;
  } trees[] = {{"init; git add core; commit", 0},
               {"init; git add core; commit; echo notes > notes.txt", 0},
               {"init; git add core; commit; echo 2 > core/a.c", 1},
               {"init; git add core; commit; echo 2 > core/a.c; git add core", 1},
               {"init; git add core; commit; echo 2 > core/new.c", 1}};
  if (system("git --version >/dev/null 2>&1") != 0) SKIP("no git");
  for (size_t i = 0; i < sizeof trees / sizeof *trees; ++i) {
    char text[256], expected[256], head[256] = "";
    source_of(text, sizeof text, trees[i].made);
    const char *last = strrchr(text, ' ');
    snprintf(head, sizeof head, "%s", last != NULL ? last + 1 : "");
    CU_ASSERT_EQUAL(strlen(head), 40);
    snprintf(expected, sizeof expected, "= \"%.40s\"; = %d; = \"\"; %.40s", head, trees[i].dirty,
             head);
    if (strcmp(text, expected) != 0) fprintf(stderr, "%s: %s\n", trees[i].made, text);
    CU_ASSERT_STRING_EQUAL(text, expected);
  }
}

TEST(without_a_repository_of_its_own_the_source_is_not_known) {
  static const char *const trees[] = {
      "true",
      "init; git add core; commit; mkdir ../bin; for t in dirname mkdir cat cmp rm mv grep tr sh; "
      "do "
      "ln -s $(command -v $t) ../bin/; done; PATH=$PWD/../bin", /* no git */
      "init",                                                   /* a repository without a commit */
      "cd ..; init; git add tree/core; commit; cd tree" /* somebody else's repository */};
  for (size_t i = 0; i < sizeof trees / sizeof *trees; ++i) {
    char text[256];
    source_of(text, sizeof text, trees[i]);
    text[strlen("= \"\"; = -1; = \"\";")] = '\0';
    CU_ASSERT_STRING_EQUAL(text, "= \"\"; = -1; = \"\";");
  }
}
