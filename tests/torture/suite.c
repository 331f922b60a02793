/* A few trials of each family for `make check`, with fixed seeds. `make torture` is the whole. */
#include "tests/support/suite.h"
#include "tests/torture/torture.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

SUITE("torture: short");

/* Tracing beside a sanitizer costs more than it shows: `make torture` does that. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { MAY_TRACE = 0 };
#else
enum { MAY_TRACE = 1 };
#endif

static int find_program(session *s) {
  char path[PATH_MAX];
  const char *program = getenv("GEPOLAB");
  *s = (session){.seed = 1, .brief = 1};
  if (realpath(program != NULL ? program : "build/gepolab", path) == NULL ||
      strlen(path) >= sizeof s->gepolab)
    return 0;
  strcpy(s->gepolab, path);
  return 1;
}

typedef struct wanted {
  const char *only; /* "family: case" */
  uint64_t trials;
} wanted;

static const wanted all[] = {{"kills: sweep, tuned, -j 2", 3},
                             {"kills: sweep, checkpoints, -j 3", 2},
                             {"kills: run --checkpoint", 2},
                             {"kills: merge", 2},
                             {"kills: export -o", 3},
                             {"kills: bias -o", 2},
                             {"kills: llm rl", 2},
                             {"workers: sweep, tuned, -j 2", 3},
                             {"disk: sweep, tuned, -j 2", 2},
                             {"disk: export -o", 2},
                             {"disk: run --save", 2},
                             {"disk: stdout: export", 1},
                             {"permissions: run --save", 2},
                             {"onto", 12},
                             {"together: sweep and run", 1},
                             {"readers: an open query", 1},
                             {"damage: head", 1},
                             {"damage: truncated", 1},
                             {"damage: swapped", 1},
                             {"handmade: values", 1},
                             {"handmade: endless view", 1},
                             {"shards: grid", 1}};

/* The number of failed trials. */
static int torture(session *s, const wanted *w) {
  const family *f = families;
  int failures = 0;
  while (strncmp(w->only, f->name, strlen(f->name)) != 0) ++f;
  if (f->missing != NULL && f->missing(s) != NULL) return 0;
  s->only = w->only;
  for (uint64_t k = 0; k < w->trials; ++k) {
    trial t;
    trial_run(&t, s, f, k);
    if (t.what[0] == '\0') continue;
    ++failures;
    fprintf(stderr, "torture: %s, trial %llu: %s; in %s\n", w->only, (unsigned long long)k, t.what,
            t.folder);
  }
  return failures;
}

/* One session for all: what the trials are compared with is made once. */
TEST(what_is_tortured_keeps_its_promises) {
  session s;
  char why[TORTURE_TEXT];
  int failures = 0;
  CU_ASSERT_FATAL(find_program(&s));
  if (session_begin(&s, why) != 0) {
    fprintf(stderr, "torture: undisturbed already: %s\n", why);
    failures = 1;
  }
  s.can_trace = s.can_trace && MAY_TRACE;
  for (size_t i = 0; i < sizeof all / sizeof *all && failures == 0; ++i)
    failures += torture(&s, &all[i]);
  CU_ASSERT_EQUAL(failures, 0);
  session_end(&s, failures > 0);
}

TEST(every_output_has_a_promise_and_every_promise_a_trial) {
  session s;
  CU_ASSERT_FATAL(find_program(&s));
  CU_ASSERT_EQUAL(contract_check(&s, "ARCHITECTURE.md"), 0);
}
