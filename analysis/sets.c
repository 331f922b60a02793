/* Best and last by evaluation set. */
#include "analysis/sets.h"

#include "core/config/config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- which there are --- */

static int is_listed(const char *const *names, size_t n, const char *name) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(names[i], name) == 0) return 1;
  return 0;
}

gl_status sets_names(const char ***names, size_t *n, const results *r, gl_error *err) {
  size_t room = 0;
  *n = 0;
  *names = NULL;
  for (size_t i = 0; i < r->n_runs; i++) {
    const results_run *run = &r->runs[i];
    for (size_t k = 0; k < run->n_set_evals; k++) {
      const char *name = run->set_evals[k].set;
      if (is_listed(*names, *n, name)) continue;
      if (*n == room) {
        room = 2 * room + 8;
        const char **more = realloc(*names, room * sizeof *more);
        if (!more) {
          free(*names);
          *names = NULL, *n = 0;
          return gl_fail_memory(err, "evaluation sets");
        }
        *names = more;
      }
      (*names)[(*n)++] = name;
    }
  }
  return GL_OK;
}

int sets_have_halves(const results *r) {
  for (size_t i = 0; i < r->n_runs; i++)
    for (size_t k = 0; k < r->runs[i].n_set_evals; k++)
      if (r->runs[i].set_evals[k].half != 0) return 1;
  return 0;
}

/* --- series --- */

/* The next record of that set and half, from *at on, which ends behind it; NULL: none is left. */
static const set_eval_record *next_of(const results_run *run, const char *set, int half,
                                      size_t *at) {
  while (*at < run->n_set_evals) {
    const set_eval_record *e = &run->set_evals[(*at)++];
    if (e->half == half && strcmp(e->set, set) == 0) return e;
  }
  return NULL;
}

static const series_ends unknown = {NAN, NAN, NAN, NAN};

/* Takes one more value, which may be NaN, into the ends of a series. */
static void take(series_ends *e, double value, int lower_is_better) {
  if (isnan(value)) return;
  if (isnan(e->first)) e->first = value;
  e->best = lower_is_better ? fmin(e->best, value) : fmax(e->best, value);
  e->last = value;
  e->best_to_last = lower_is_better ? e->last - e->best : e->best - e->last;
}

series_ends sets_ends(const results_run *run, const char *set, int lower_is_better) {
  series_ends e = unknown;
  size_t at = 0;
  for (const set_eval_record *r; (r = next_of(run, set, 0, &at)) != NULL;)
    take(&e, r->score, lower_is_better);
  return e;
}

series_ends sets_mean_ends(const results_run *run, const char *const *sets, size_t n,
                           int lower_is_better) {
  series_ends sum = {0, 0, 0, 0};
  const double count = (double)n;
  for (size_t i = 0; i < n; i++) {
    const series_ends e = sets_ends(run, sets[i], lower_is_better);
    sum.first += e.first, sum.best += e.best, sum.last += e.last;
    sum.best_to_last += e.best_to_last;
  }
  return (series_ends){sum.first / count, sum.best / count, sum.last / count,
                       sum.best_to_last / count};
}

/* The run's evaluations with the mean over these sets as their score, on all problems (half 0) or
 * on a half of them; NaN where one is missing. On the heap; NULL if memory is short. */
static eval_record *means(const results_run *run, const char *const *sets, size_t n, int half) {
  eval_record *out = calloc(run->n_evals + 1, sizeof *out);
  for (size_t i = 0; out && i < run->n_evals; i++) out[i] = run->evals[i], out[i].eval_score = 0;
  for (size_t s = 0; out && s < n; s++) {
    size_t at = 0;
    const set_eval_record *e = next_of(run, sets[s], half, &at);
    for (size_t i = 0; i < run->n_evals; i++) {
      while (e && e->step < out[i].step) e = next_of(run, sets[s], half, &at);
      out[i].eval_score += e && e->step == out[i].step ? e->score / (double)n : NAN;
    }
  }
  return out;
}

gl_status sets_ends_of_mean(series_ends *ends, const results_run *run, const char *const *sets,
                            size_t n, int lower_is_better, gl_error *err) {
  *ends = unknown;
  eval_record *mean = means(run, sets, n, 0);
  if (!mean) return gl_fail_memory(err, "evaluation sets");
  for (size_t i = 0; i < run->n_evals; i++) take(ends, mean[i].eval_score, lower_is_better);
  free(mean);
  return GL_OK;
}

/* The score on the other half where this one is best, of equals the first. */
static double scored_elsewhere(const results_run *run, const char *set, int half,
                               int lower_is_better) {
  const int other = 3 - half;
  double best = NAN, score = NAN;
  size_t at = 0, at_other = 0;
  for (const set_eval_record *e; (e = next_of(run, set, half, &at)) != NULL;) {
    if (isnan(e->score) ||
        (!isnan(best) && (lower_is_better ? e->score >= best : e->score <= best)))
      continue;
    const set_eval_record *o;
    while ((o = next_of(run, set, other, &at_other)) != NULL && o->step < e->step) continue;
    if (!o) return NAN;
    if (o->step > e->step) return NAN;
    best = e->score;
    score = o->score;
  }
  return score;
}

/* Ends of one half's own series. */
static series_ends half_ends(const results_run *run, const char *set, int half, int lower) {
  series_ends e = unknown;
  size_t at = 0;
  for (const set_eval_record *r; (r = next_of(run, set, half, &at)) != NULL;)
    take(&e, r->score, lower);
  return e;
}

series_ends sets_halved_ends(const results_run *run, const char *set, int lower_is_better) {
  const series_ends a = half_ends(run, set, 1, lower_is_better),
                    b = half_ends(run, set, 2, lower_is_better);
  series_ends e = {.first = (a.first + b.first) / 2, .last = (a.last + b.last) / 2};
  e.best = (scored_elsewhere(run, set, 1, lower_is_better) +
            scored_elsewhere(run, set, 2, lower_is_better)) /
           2;
  e.best_to_last = lower_is_better ? e.last - e.best : e.best - e.last;
  return e;
}

/* --- one of them as the score --- */

static gl_status refuse_name(const results *r, const char *set, const char *const *names, size_t n,
                             gl_error *err) {
  char list[400] = "", hint[CFG_HINT_SIZE];
  size_t used = 0;
  if (n == 0)
    return gl_fail(err, GL_EINPUT,
                   "the study %s has no evaluation sets; a recipe names them in "
                   "world.evaluation.sets",
                   r->study);
  for (size_t i = 0; i < n && used < sizeof list; i++)
    used += (size_t)snprintf(list + used, sizeof list - used, "%s, ", names[i]);
  return gl_fail(err, GL_EINPUT, "the study %s has no evaluation set '%s'%s; it has %s%s", r->study,
                 set, cfg_hint(set, names, n, hint), list, SETS_MEAN);
}

/* Until each evaluation: where one half was best (of equals the first), the other's score there,
 * and the mean of both ways. */
static void follow_bests(double *best_until, const eval_record *const half[2], size_t n) {
  double best[2] = {NAN, NAN}, elsewhere[2] = {NAN, NAN};
  for (size_t i = 0; i < n; i++) {
    for (int h = 0; h < 2; h++) {
      const double score = half[h][i].eval_score;
      if (isnan(score) || score <= best[h]) continue;
      best[h] = score;
      elsewhere[h] = half[1 - h][i].eval_score;
    }
    best_until[i] = (elsewhere[0] + elsewhere[1]) / 2;
  }
}

static int has_halves_of(const results_run *run, const char *set) {
  for (size_t k = 0; k < run->n_set_evals; k++)
    if (run->set_evals[k].half != 0 && strcmp(run->set_evals[k].set, set) == 0) return 1;
  return 0;
}

/* Nothing where one of the sets has no halves. */
static gl_status judge_run(results_run *run, const char *const *sets, size_t n, gl_error *err) {
  free(run->best_until);
  run->best_until = NULL;
  for (size_t i = 0; i < n; i++)
    if (!has_halves_of(run, sets[i])) return GL_OK;
  eval_record *first = means(run, sets, n, 1), *second = means(run, sets, n, 2);
  run->best_until = calloc(run->n_evals + 1, sizeof *run->best_until);
  const int ok = first && second && run->best_until;
  if (ok) follow_bests(run->best_until, (const eval_record *[]){first, second}, run->n_evals);
  free(first), free(second);
  return ok ? GL_OK : gl_fail_memory(err, "evaluation sets");
}

static gl_status choose_in_run(results_run *run, const char *const *sets, size_t n, gl_error *err) {
  eval_record *chosen = means(run, sets, n, 0);
  if (!chosen) return gl_fail_memory(err, "evaluation sets");
  free(run->evals);
  run->evals = chosen;
  return judge_run(run, sets, n, err);
}

gl_status sets_use_halves(results *r, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < r->n_runs && status == GL_OK; i++)
    if (r->runs[i].n_set_evals > 0) /* the first set's score is the run's */
      status = judge_run(&r->runs[i], (const char *[]){r->runs[i].set_evals[0].set}, 1, err);
  return status;
}

gl_status sets_choose(results *r, const char *set, gl_error *err) {
  const char **names = NULL;
  size_t n = 0;
  gl_status status = sets_names(&names, &n, r, err);
  if (status != GL_OK) return status;
  const int named = is_listed(names, n, set);
  if (!named && (n == 0 || strcmp(set, SETS_MEAN) != 0))
    status = refuse_name(r, set, names, n, err);
  const char *const *sets = named ? &set : names;
  for (size_t i = 0; i < r->n_runs && status == GL_OK; i++)
    status = choose_in_run(&r->runs[i], sets, named ? 1 : n, err);
  free(names);
  return status;
}
