#include "tests/support/processes.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What a process sends of a test: its failed assertions, then its end. Shorter than PIPE_BUF, so
 * that messages do not mix. `why` is a string constant, at one address in all processes. */
typedef struct message {
  size_t test;
  bool ended;
  unsigned assertions; /* all of the test, with its end */
  unsigned line;
  double seconds;
  const char *why; /* it is skipped */
  char file[256], condition[512];
} message;

typedef struct result {
  message *sent; /* [n], the end last */
  size_t n;
} result;

static struct {
  const wanted_test *tests;
  size_t n_tests, n_files, n, replayed;
  pid_t *pids; /* [n] */
  int from, to;
  bool sends;
  /* of a process that sends */
  size_t running;
  unsigned assertions; /* of the file before the running test */
  const char *why;
  double began;
  /* of the first process */
  result *results; /* [n_tests] */
  double seconds;
} all = {.from = -1, .to = -1};

double processes_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void send_message(const message *m) {
  if (write(all.to, m, sizeof *m) != (ssize_t)sizeof *m) _exit(EXIT_FAILURE);
}

static void test_starts(const CU_pTest test, const CU_pSuite suite) {
  (void)test, (void)suite;
  all.began = processes_now();
  all.assertions = CU_get_number_of_asserts();
}

static void test_ends(const CU_pTest test, const CU_pSuite suite,
                      const CU_pFailureRecord failures) {
  (void)test, (void)suite;
  for (CU_pFailureRecord f = failures; f != NULL; f = f->pNext) {
    message m = {.test = all.running, .line = f->uiLineNumber};
    snprintf(m.file, sizeof m.file, "%s", f->strFileName);
    snprintf(m.condition, sizeof m.condition, "%s", f->strCondition);
    send_message(&m);
  }
  const message end = {.test = all.running++,
                       .ended = true,
                       .assertions = CU_get_number_of_asserts() - all.assertions,
                       .seconds = processes_now() - all.began,
                       .why = all.why};
  all.why = NULL;
  send_message(&end);
}

/* The tests of a file, the first of which is tests[first]. */
static void run_file(size_t first) {
  if (CU_initialize_registry() != CUE_SUCCESS) exit(EXIT_FAILURE);
  CU_pSuite suite = NULL;
  for (size_t i = first; i < all.n_tests && all.tests[i].file == all.tests[first].file; ++i) {
    const wanted_test *t = &all.tests[i];
    if (t->first)
      suite =
          CU_add_suite_with_setup_and_teardown(t->suite->name, NULL, NULL, NULL, test_release_now);
    if (suite == NULL || CU_add_test(suite, t->test->name, t->test->run) == NULL)
      exit(EXIT_FAILURE);
  }
  CU_set_test_start_handler(test_starts);
  CU_set_test_complete_handler(test_ends);
  all.running = first;
  CU_run_all_tests();
}

/* Takes files that no process has taken until none is left: process 0, 2, … from the first on, so
 * that results can be printed soon, the others from the last on. taken[all.n_files]. */
static void run_files(size_t process, atomic_bool *taken) {
  for (size_t k = 0; k < all.n_files; ++k) {
    const size_t file = process % 2 == 0 ? k : all.n_files - 1 - k;
    if (atomic_exchange(&taken[file], true)) continue;
    size_t first = 0;
    while (all.tests[first].file != file) ++first;
    run_file(first);
  }
  CU_cleanup_registry();
}

/* Runs files in a process of its own, and in another one after it has died: what it had taken is
 * lost, and no more. Returns the exit status. */
static int run_until_none_is_left(size_t process, atomic_bool *taken) {
  for (int status = 0, bad = 0;; bad = 1) {
    const pid_t pid = fork();
    if (pid == 0) run_files(process, taken);
    if (pid == 0) return EXIT_SUCCESS;
    if (pid < 0 || waitpid(pid, &status, 0) != pid) return EXIT_FAILURE;
    size_t file = 0;
    while (file < all.n_files && taken[file]) ++file;
    if (status == 0 && file == all.n_files) return bad ? EXIT_FAILURE : EXIT_SUCCESS;
    if (file == all.n_files) return EXIT_FAILURE;
  }
}

int processes_begin(size_t n, const wanted_test *tests, size_t n_tests, void (*end)(void)) {
  int ends[2];
  all.tests = tests, all.n_tests = n_tests, all.n_files = tests[n_tests - 1].file + 1;
  const size_t size = all.n_files * sizeof(atomic_bool);
  atomic_bool *taken = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  all.pids = calloc(n, sizeof *all.pids);
  all.results = calloc(n_tests, sizeof *all.results);
  if (taken == MAP_FAILED || all.pids == NULL || all.results == NULL || pipe(ends) != 0) return 0;
  all.from = ends[0], all.to = ends[1];
  /* Not for the commands of tests: what remains of one must not keep the pipe open. */
  if (fcntl(all.from, F_SETFD, FD_CLOEXEC) != 0 || fcntl(all.to, F_SETFD, FD_CLOEXEC) != 0)
    return 0;
  for (; all.n < n; ++all.n) {
    all.pids[all.n] = fork();
    if (all.pids[all.n] < 0) return 0;
    if (all.pids[all.n] > 0) continue;
    close(all.from);
    all.sends = true;
    const int status = run_until_none_is_left(all.n, taken);
    free(all.pids);
    free(all.results);
    end();
    exit(status);
  }
  close(all.to);
  munmap(taken, size);
  return 1;
}

/* Stores the next message; 0: all processes have ended. */
static int receive(void) {
  message m;
  if (read(all.from, &m, sizeof m) != (ssize_t)sizeof m || m.test >= all.n_tests) return 0;
  result *r = &all.results[m.test];
  message *more = realloc(r->sent, (r->n + 1) * sizeof *more);
  if (more == NULL) return 0;
  r->sent = more;
  r->sent[r->n++] = m;
  return 1;
}

void processes_replay(void) {
  const wanted_test *t = &all.tests[all.replayed];
  result *r = &all.results[all.replayed++];
  while ((r->n == 0 || !r->sent[r->n - 1].ended) && receive()) continue;
  if (r->n == 0 || !r->sent[r->n - 1].ended) {
    CU_assertImplementation(CU_FALSE, (unsigned)t->test->line, "its process ended before it did",
                            t->test->file, "", CU_FALSE);
    return;
  }
  const message *end = &r->sent[r->n - 1];
  all.seconds += end->seconds;
  if (end->why != NULL) test_skipped(end->why);
  for (size_t i = 0; i + 1 < r->n; ++i)
    CU_assertImplementation(CU_FALSE, r->sent[i].line, r->sent[i].condition, r->sent[i].file, "",
                            CU_FALSE);
  for (size_t i = r->n - 1; i < end->assertions; ++i)
    CU_assertImplementation(CU_TRUE, 0, "", "", "", CU_FALSE);
}

double processes_seconds(void) {
  const double seconds = all.seconds;
  all.seconds = 0;
  return seconds;
}

size_t processes_end(void) {
  size_t bad = 0;
  while (receive()) continue;
  for (size_t i = 0; i < all.n; ++i) {
    int status;
    bad += waitpid(all.pids[i], &status, 0) != all.pids[i] || status != 0;
  }
  for (size_t i = 0; i < all.n_tests; ++i) free(all.results[i].sent);
  free(all.results);
  free(all.pids);
  close(all.from);
  return bad;
}

void processes_skipped(const char *why) {
  all.why = why;
}

bool processes_sends(void) {
  return all.sends;
}
