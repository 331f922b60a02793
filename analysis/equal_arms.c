/* Finds cells of a study whose runs agree bit for bit. */
#include "analysis/equal_arms.h"

#include "core/base/arena.h"

#include <string.h>

static bool is_same_number(double a, double b) {
  return memcmp(&a, &b, sizeof a) == 0;
}

bool runs_are_equal(const results_run *a, const results_run *b) {
  if (a->n_steps == 0 || a->n_steps != b->n_steps || a->n_evals != b->n_evals) return false;
  for (size_t i = 0; i < a->n_evals; i++)
    if (!is_same_number(a->evals[i].eval_score, b->evals[i].eval_score)) return false;
  for (size_t i = 0; i < a->n_steps; i++) {
    const double *x = a->steps[i].metric, *y = b->steps[i].metric;
    if (!is_same_number(x[METRIC_REWARD_MEAN], y[METRIC_REWARD_MEAN]) ||
        !is_same_number(x[METRIC_GRAD_NORM], y[METRIC_GRAD_NORM]))
      return false;
  }
  return true;
}

static const results_run *run_with_seed(const results *r, const results_cell *c, uint64_t seed) {
  for (size_t i = 0; i < c->n; i++)
    if (r->runs[c->first + i].seed == seed) return &r->runs[c->first + i];
  return NULL;
}

/* The number of common seeds if all their runs are equal, else 0. */
static size_t equal_seeds(const results *r, const results_cell *a, const results_cell *b) {
  size_t common = 0;
  for (size_t i = 0; i < a->n; i++) {
    const results_run *run = &r->runs[a->first + i], *other = run_with_seed(r, b, run->seed);
    if (other == NULL) continue;
    if (!runs_are_equal(run, other)) return 0;
    common++;
  }
  return common;
}

gl_status equal_arms_find(equal_arms **out, size_t *n, const results *r, arena *to, gl_error *err) {
  const size_t cells = r->n_groups * r->n_algorithms;
  *n = 0;
  *out = ARENA_ARRAY(to, equal_arms, cells);
  gl_status status = arena_check(to, "equal arms", err);
  for (size_t b = 1; b < cells && status == GL_OK; b++)
    for (size_t a = 0; a < b; a++) {
      const size_t runs = equal_seeds(r, &r->cells[a], &r->cells[b]);
      if (runs == 0) continue;
      (*out)[(*n)++] = (equal_arms){&r->cells[a], &r->cells[b], runs};
      break;
    }
  return status;
}

static const table_column equal_columns[] = {{"algorithm", TABLE_TEXT, .head = "algorithm"},
                                             {"setting", TABLE_TEXT, .head = "setting"},
                                             {"same_as", TABLE_TEXT, .head = "same as"},
                                             {"same_setting", TABLE_TEXT, .head = "setting"},
                                             {"runs", TABLE_WHOLE, .head = "runs"}};

static void put_equal_arm(table *t, const results *r, const results_cell *c) {
  table_text(t, r->algorithms[c->algorithm]);
  table_text(t, r->groups[c->group].heading);
}

gl_status equal_arms_report(table *to, const results *r, gl_error *err) {
  arena work = {0};
  equal_arms *pair = NULL;
  size_t n = 0;
  gl_status status = equal_arms_find(&pair, &n, r, &work, err);
  if (status == GL_OK && n > 0) {
    table *t = table_rows(table_field(to, "equal_arms"), equal_columns,
                          sizeof equal_columns / sizeof *equal_columns);
    table_title(
        t,
        "%s: arms that are one computation (evaluations, batch rewards and gradient norms of all "
        "common seeds agree bit for bit). Count them once.",
        r->study);
    table_gap(t);
    for (size_t i = 0; i < n; i++) {
      table_row(t);
      put_equal_arm(t, r, pair[i].second);
      put_equal_arm(t, r, pair[i].first);
      table_count(t, pair[i].runs);
    }
  }
  arena_fini(&work);
  return status;
}
