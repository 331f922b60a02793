/* What the suites of tasks share: a task from YAML text. */
#ifndef GEPOLAB_TESTS_SUPPORT_LLM_TASK_H
#define GEPOLAB_TESTS_SUPPORT_LLM_TASK_H

#include "core/config/config.h"
#include "llm/task/task.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

/* A task and the document its section came from. */
typedef struct task_fixture {
  cfg_doc *doc;
  task *t;
} task_fixture;

/* text: a recipe with a `task` section. */
static inline gl_status task_try(task_fixture *f, const char *text, uint64_t seed, gl_error *err) {
  *f = (task_fixture){0};
  gl_status status = cfg_load_text(&f->doc, text, strlen(text), "r.yaml", err);
  if (status == GL_OK) status = task_new(&f->t, cfg_find(cfg_root(f->doc), "task"), seed, err);
  return status;
}

static inline void task_close(task_fixture *f) {
  task_free(f->t);
  cfg_free(f->doc);
}

static inline void task_end(void *f) {
  task_close(f);
}

/* Until the end of the test. */
static inline task_fixture task_open(const char *text, uint64_t seed) {
  task_fixture f;
  gl_error err = {0};
  if (task_try(&f, text, seed, &err) != GL_OK) fprintf(stderr, "%s: %s\n", text, err.text);
  CU_ASSERT_PTR_NOT_NULL_FATAL(f.t);
  test_at_end(task_end, test_copy(&f, sizeof f));
  return f;
}

static inline void problem_end(void *p) {
  problem_fini(p);
}

/* Until the end of the test. */
static inline problem task_get(const task *t, task_split split, uint64_t i) {
  problem p;
  ASSERT_OK(task_problem(t, split, i, &p, &err));
  CU_ASSERT_PTR_NOT_NULL_FATAL(p.prompt);
  test_at_end(problem_end, test_copy(&p, sizeof p));
  return p;
}

#endif
