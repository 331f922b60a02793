/* Runs the test suites that are linked in.
 *
 *   gepolab-tests [SUITE] [--test NAME] [--jobs N] [--list]
 *
 * SUITE: only suites whose name is SUITE or begins with its words ("cli", "cli: bias"). --test:
 * only the tests of that name. --jobs: N processes share the files of tests, by default as many as
 * there are processors; the tests of a file run in one process, one after the other. --list: prints
 * the names instead. After the last suite it prints seconds by suite, the skipped tests and the
 * failed ones; CUnit's summary is the last thing on standard output. Exits 1 if a test fails or
 * none is asked for that exists. */
#include "core/config/fields.h"
#include "tests/support/processes.h"
#include "tests/support/sanitized.h"

#include <CUnit/Basic.h>
#include <ctype.h>
#include <errno.h>
#include <gsl/gsl_errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if SANITIZED
/* A sanitizer's malloc() returns NULL without memory, as the C library's does, and does not end the
 * program. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
  return "allocator_may_return_null=1";
}
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) {
  return "allocator_may_return_null=1";
}
#endif

extern const test_entry *const __start_gl_tests[];
extern const test_entry *const __stop_gl_tests[];

/* CUnit's hooks take no argument, so their state is here. */
static struct {
  size_t n, done;
  double began;
  const char **names; /* [n] suites in the order they run */
  double *seconds;    /* [n] */
} suites;

static struct {
  size_t n;
  wanted_test *at; /* [n] */
  size_t files;
  size_t jobs; /* processes; 1: this one alone */
  size_t bad;  /* processes that did not end well */
  double began;
} wanted = {.jobs = 1};

static struct {
  size_t n;
  struct {
    const char *test, *why;
  } * at; /* [wanted.n] */
} skips;

void test_skipped(const char *why) {
  if (processes_sends()) {
    processes_skipped(why);
    return;
  }
  printf(" skipped: %s ", why);
  skips.at[skips.n].test = CU_get_current_test()->pName;
  skips.at[skips.n++].why = why;
}

/* What the running test has to release. */
static struct {
  size_t n, room;
  struct {
    void (*release)(void *);
    void *what;
  } * at;
} ends;

void test_at_end(void (*release)(void *), void *what) {
  if (ends.n == ends.room) {
    ends.room = 2 * ends.room + 16;
    ends.at = realloc(ends.at, ends.room * sizeof *ends.at);
    CU_ASSERT_PTR_NOT_NULL_FATAL(ends.at);
  }
  ends.at[ends.n].release = release;
  ends.at[ends.n++].what = what;
}

void *test_copy(const void *bytes, size_t size) {
  void *copy = malloc(size);
  CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
  test_at_end(free, copy);
  return memcpy(copy, bytes, size);
}

void test_release_now(void) {
  while (ends.n > 0) {
    --ends.n;
    ends.at[ends.n].release(ends.at[ends.n].what);
  }
}

static void print_skips(void) {
  printf("\nskipped: %zu of %zu", skips.n, wanted.n);
  for (size_t i = 0; i < skips.n; ++i)
    printf("%s%s (%s)", i == 0 ? ": " : ", ", skips.at[i].test, skips.at[i].why);
  printf("\n");
}

/* The first assertion of each test that failed. */
static void print_failures(void) {
  const char *last = NULL;
  for (CU_pFailureRecord f = CU_get_failure_list(); f != NULL; f = f->pNext) {
    if (f->pTest == NULL || f->pTest->pName == last) continue;
    last = f->pTest->pName;
    printf("FAILED: %s: %s (%s:%u: %s)\n", f->pSuite->pName, last, f->strFileName, f->uiLineNumber,
           f->strCondition);
  }
}

static int suite_begins(void) {
  suites.began = processes_now();
  return 0;
}

/* The slowest first. */
static void print_seconds(void) {
  double total = 0;
  printf("\n\nSeconds by suite:\n");
  for (size_t printed = 0; printed < suites.n; ++printed) {
    size_t slowest = 0;
    for (size_t i = 1; i < suites.n; ++i)
      if (suites.seconds[i] > suites.seconds[slowest]) slowest = i;
    printf("%8.2f  %s\n", suites.seconds[slowest], suites.names[slowest]);
    total += suites.seconds[slowest];
    suites.seconds[slowest] = -1;
  }
  printf("%8.2f  all\n", total);
  if (wanted.jobs > 1)
    printf("%8.2f  by the clock, in %zu processes; CUnit's elapsed time is the first one's alone\n",
           processes_now() - wanted.began, wanted.jobs);
}

static int suite_ends(void) {
  suites.seconds[suites.done++] =
      wanted.jobs > 1 ? processes_seconds() : processes_now() - suites.began;
  if (suites.done < suites.n) return 0;
  if (wanted.jobs > 1) wanted.bad = processes_end();
  print_seconds();
  print_skips();
  print_failures();
  if (wanted.bad > 0)
    printf("FAILED: %zu of %zu processes ended by a signal or with an error\n", wanted.bad,
           wanted.jobs);
  return 0;
}

/* Whether name is `asked` or begins with its words. */
static int begins_with_words(const char *name, const char *asked) {
  const size_t n = strlen(asked);
  return strncmp(name, asked, n) == 0 && !isalnum((unsigned char)name[n]) && name[n] != '_';
}

static int by_file_and_line(const void *a, const void *b) {
  const test_entry *x = *(const test_entry *const *)a, *y = *(const test_entry *const *)b;
  const int files = strcmp(x->file, y->file);
  return files != 0 ? files : (x->line > y->line) - (x->line < y->line);
}

/* Suites and tests in the order of their files, ended by NULL; NULL: no memory. */
static const test_entry **all_entries(void) {
  const size_t n = (size_t)(__stop_gl_tests - __start_gl_tests);
  const test_entry **all = calloc(n + 1, sizeof *all);
  if (all == NULL) return NULL;
  memcpy(all, __start_gl_tests, n * sizeof *all);
  qsort(all, n, sizeof *all, by_file_and_line);
  return all;
}

/* Calls it with every wanted test and its suite; first: of that suite. 0: a call failed, or a test
 * stands above the first SUITE() of its file. */
static int each_wanted(const char *suite, const char *test,
                       int (*call)(const test_entry *suite, const test_entry *t, bool first)) {
  const test_entry **all = all_entries(), *in = NULL, *last = NULL;
  int done = all != NULL;
  for (size_t i = 0; done && all[i] != NULL; ++i) {
    const test_entry *t = all[i];
    if (t->run == NULL) in = t;
    if (t->run == NULL) continue;
    if (in == NULL || strcmp(in->file, t->file) != 0) {
      fprintf(stderr, "%s:%d: no SUITE() stands above %s\n", t->file, t->line, t->name);
      done = 0;
      break;
    }
    if (suite != NULL && !begins_with_words(in->name, suite)) continue;
    if (test != NULL && strcmp(t->name, test) != 0) continue;
    done = call(in, t, in != last);
    last = in;
  }
  free(all);
  return done;
}

static int print_test(const test_entry *suite, const test_entry *t, bool first) {
  if (first) printf("%s\n", suite->name);
  printf("  %s\n", t->name);
  return 1;
}

static int want_test(const test_entry *suite, const test_entry *t, bool first) {
  const wanted_test *last = wanted.n > 0 ? &wanted.at[wanted.n - 1] : NULL;
  if (last == NULL || strcmp(last->test->file, t->file) != 0) ++wanted.files;
  wanted.at[wanted.n++] = (wanted_test){suite, t, first, wanted.files - 1};
  return 1;
}

/* Finds the wanted tests: 1 if there is memory for them and what CUnit's hooks note. */
static int find_wanted(const char *suite, const char *test) {
  const size_t all = (size_t)(__stop_gl_tests - __start_gl_tests);
  wanted.at = calloc(all + 1, sizeof *wanted.at);
  suites.names = calloc(all + 1, sizeof *suites.names);
  suites.seconds = calloc(all + 1, sizeof *suites.seconds);
  skips.at = calloc(all + 1, sizeof *skips.at);
  return wanted.at != NULL && suites.names != NULL && suites.seconds != NULL && skips.at != NULL &&
         each_wanted(suite, test, want_test);
}

static void free_wanted(void) {
  free(wanted.at);
  free(suites.names);
  free(suites.seconds);
  free(skips.at);
  free(ends.at);
}

/* Adds the wanted tests to CUnit's registry, each as it is or as the result of another process: 1
 * if all were added. */
static int add_wanted(void) {
  CU_pSuite added = NULL;
  for (size_t i = 0; i < wanted.n; ++i) {
    const wanted_test *t = &wanted.at[i];
    if (t->first) {
      added = CU_add_suite_with_setup_and_teardown(t->suite->name, suite_begins, suite_ends, NULL,
                                                   test_release_now);
      suites.names[suites.n++] = t->suite->name;
    }
    if (added == NULL || CU_add_test(added, t->test->name,
                                     wanted.jobs > 1 ? processes_replay : t->test->run) == NULL)
      return 0;
  }
  return 1;
}

/* The tables of the rooms that the tests are linked with. */
extern const field_table policy_own __attribute__((weak)), sim_own __attribute__((weak)),
    policy_fields __attribute__((weak)), study_fields __attribute__((weak)),
    design_fields __attribute__((weak)), rl_fields __attribute__((weak)),
    evaluation_fields __attribute__((weak)), sequence_fields __attribute__((weak)),
    toy_bandit_fields __attribute__((weak)), sim_fields __attribute__((weak)),
    toy_fields __attribute__((weak)), llm_fields __attribute__((weak)),
    llm_model_fields __attribute__((weak)), llm_task_fields __attribute__((weak));

/* The list of a test program of some rooms; that of the command, where it is linked, replaces it.
 */
__attribute__((weak)) const field_table *const field_tables[FIELD_MOST_TABLES] = {
    &policy_own, &sim_own,    &study_fields,      &policy_fields,     &design_fields,
    &rl_fields,  &sim_fields, &evaluation_fields, &toy_bandit_fields, &sequence_fields,
    &toy_fields, &llm_fields, &llm_model_fields,  &llm_task_fields};

/* N of --jobs; 0 if it is none. */
static size_t jobs_of(const char *text) {
  char *end;
  const unsigned long n = strtoul(text, &end, 10);
  return text[0] >= '1' && text[0] <= '9' && *end == '\0' && n <= 1024 ? n : 0;
}

/* Runs the wanted tests; returns the exit status. */
static int run_wanted(void) {
  wanted.began = processes_now();
  if (wanted.jobs > wanted.files) wanted.jobs = wanted.files > 0 ? wanted.files : 1;
  if (wanted.jobs > 1 && !processes_begin(wanted.jobs, wanted.at, wanted.n, free_wanted)) {
    perror("cannot begin the processes of the tests");
    return EXIT_FAILURE;
  }
  if (CU_initialize_registry() != CUE_SUCCESS || !add_wanted()) return EXIT_FAILURE;
  CU_basic_set_mode(CU_BRM_VERBOSE);
  CU_basic_run_tests();
  const int failed =
      CU_get_number_of_failures() != 0 || CU_get_number_of_tests_run() == 0 || wanted.bad > 0;
  CU_cleanup_registry();
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv) {
  const char *suite = NULL, *test = NULL;
  int listing = 0;
  const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  wanted.jobs = processors > 1 ? (size_t)processors : 1;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--list") == 0)
      listing = 1;
    else if (strcmp(argv[i], "--test") == 0 && i + 1 < argc)
      test = argv[++i];
    else if (strcmp(argv[i], "--jobs") == 0 && i + 1 < argc && jobs_of(argv[i + 1]) > 0)
      wanted.jobs = jobs_of(argv[++i]);
    else if (argv[i][0] != '-' && suite == NULL)
      suite = argv[i];
    else {
      fprintf(stderr, "usage: %s [SUITE] [--test NAME] [--jobs N] [--list]\n", argv[0]);
      return 2;
    }
  }
  if (suite != NULL && suite[0] == '\0') suite = NULL;
  if (test != NULL && test[0] == '\0') test = NULL;
  if (listing) return each_wanted(suite, test, print_test) ? EXIT_SUCCESS : EXIT_FAILURE;
  gsl_set_error_handler_off(); /* as the command does */
  /* No cache: the commands under test must not write into the caller's. */
  if (setenv("GEPOLAB_CACHE", "", 1) != 0) return EXIT_FAILURE;
  /* Tests write their files into these folders, which a build in another folder did not make. */
  if (mkdir("build", 0777) != 0 && errno != EEXIST) return EXIT_FAILURE;
  if (mkdir("build/tests", 0777) != 0 && errno != EEXIST) return EXIT_FAILURE;
  if (!find_wanted(suite, test)) return EXIT_FAILURE;
  if (wanted.n == 0)
    fprintf(stderr, "no suite's name begins with \"%s\"%s%s: --list prints them all\n",
            suite != NULL ? suite : "", test != NULL ? " and has a test named " : "",
            test != NULL ? test : "");
  const int status = run_wanted();
  free_wanted();
  return status;
}
