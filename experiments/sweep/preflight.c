/* Asks this machine, in a process of its own, whether it can run the cells of a sweep. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "experiments/sweep/preflight.h"

#include "experiments/recipe/recipe.h"
#include "experiments/sweep/executor.h"

#include <sys/mman.h>

typedef struct question {
  const sweep_cells *cells;
  const size_t *job;
  size_t n;
  gl_error *answer; /* in memory that both processes see: a result has no status of an error */
} question;

static gl_status ask_cell(const sweep_cell *cell, recipe_worlds *known, gl_error *err) {
  cfg_doc *doc = NULL;
  recipe r = {0};
  gl_error why = {0};
  gl_status status = sweep_cell_recipe(&doc, cell, &why);
  if (status == GL_OK) status = recipe_read(&r, doc, &why);
  r.threads = 1; /* as workers have */
  if (status == GL_OK) status = recipe_check_machine(&r, known, &why);
  cfg_free(doc);
  if (status == GL_OK) return status;
  return gl_fail(err, status, "%s, seed %llu, %s: %s", cell->algorithm,
                 (unsigned long long)cell->seed, cell->swept, why.text);
}

static const sweep_cell *preflight_cell_of(const question *q, size_t i) {
  return &q->cells->cells[q->job != NULL ? q->job[i] : i];
}

static gl_status preflight_ask(void *self, size_t job, run_result *out, gl_error *err) {
  const question *q = self;
  recipe_worlds known = {0};
  gl_status status = GL_OK;
  (void)job, (void)out;
  for (size_t i = 0; i < q->n && status == GL_OK; ++i)
    if (preflight_cell_of(q, i)->is_llm) status = ask_cell(preflight_cell_of(q, i), &known, err);
  recipe_worlds_fini(&known);
  *q->answer = *err;
  return status;
}

static gl_status answer(void *self, size_t job, const run_result *result, gl_error *err) {
  const question *q = self;
  (void)job;
  if (result->status != RUN_FAILED) return GL_OK;
  if (q->answer->status != GL_OK) return gl_fail(err, q->answer->status, "%s", q->answer->text);
  return gl_fail(err, GL_EIO, "this machine could not be asked: %s", result->reason);
}

gl_status preflight_check(const sweep_cells *cells, const size_t *job, size_t n, gl_error *err) {
  question q = {.cells = cells, .job = job, .n = n};
  size_t asked = 0;
  for (size_t i = 0; i < n; ++i) asked += preflight_cell_of(&q, i)->is_llm != 0;
  if (asked == 0) return GL_OK;
  q.answer =
      mmap(NULL, sizeof *q.answer, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (q.answer == MAP_FAILED) return gl_fail_memory(err, "a question to this machine");
  const executor_plan plan = {
      .n_jobs = 1, .workers = 1, .work = preflight_ask, .done = answer, .self = &q};
  gl_status status = executor_run(&plan, err);
  munmap(q.answer, sizeof *q.answer);
  return status;
}
