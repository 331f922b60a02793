/* Judges runs by a rule that is fixed beforehand. */
#include "analysis/outcome.h"

#include <math.h>

outcome_rule outcome_rule_default(void) {
  return (outcome_rule){
      .least_gain = 0.1, .kept = 0.5, .in_a_row = 4, .plateau = 0.9, .plateau_updates = 200};
}

const char *outcome_name(outcome o) {
  static const char *const names[OUTCOME_COUNT] = {[OUTCOME_NOT_FINITE] = "not finite",
                                                   [OUTCOME_NEVER_LEARNED] = "never learned",
                                                   [OUTCOME_EARLY_FALL] = "early fall",
                                                   [OUTCOME_LATE_FALL] = "late fall",
                                                   [OUTCOME_SURVIVED] = "survived"};
  return names[o];
}

int run_outcome_is_fall(const run_outcome *o) {
  switch (o->kind) {
  case OUTCOME_NOT_FINITE:
  case OUTCOME_EARLY_FALL:
  case OUTCOME_LATE_FALL:
    return 1;
  case OUTCOME_NEVER_LEARNED:
    return o->lost_start;
  case OUTCOME_SURVIVED:
  case OUTCOME_COUNT:
    break;
  }
  return 0;
}

/* The best after evaluation i: the largest, or what best_until says. */
static double best_with(double best, const eval_record *eval, const double *best_until, size_t i) {
  if (best_until == NULL) return fmax(best, eval[i].eval_score);
  return isnan(best_until[i]) ? best : best_until[i];
}

/* The index at which the fall begins, or n. Only what was gained until then counts. */
static size_t fall_of(const eval_record *eval, const double *best_until, size_t n,
                      const outcome_rule *rule) {
  double first = NAN, best = NAN, best_before = NAN;
  size_t low = 0, begin = n;
  for (size_t i = 0; i < n; i++) {
    const double score = eval[i].eval_score;
    if (isnan(score)) continue;
    if (isnan(first)) first = best = score;
    if (low == 0) best_before = best;
    const double gain = best_before - first;
    if (gain >= rule->least_gain && score < first + rule->kept * gain) {
      if (low++ == 0) begin = i;
      if (low == rule->in_a_row) return begin;
    } else {
      low = 0;
    }
    best = best_with(best, eval, best_until, i);
  }
  return n;
}

/* The index from which on all evaluations lie below a share of the first one, if that began as
 * something and there are enough of them; else n. */
static size_t loss_of_start(const eval_record *eval, size_t n, const outcome_rule *rule) {
  double first = NAN;
  size_t low = 0, begin = n;
  for (size_t i = 0; i < n; i++) {
    if (isnan(eval[i].eval_score)) continue;
    if (isnan(first)) first = eval[i].eval_score;
    if (eval[i].eval_score >= rule->kept * first)
      low = 0;
    else if (low++ == 0)
      begin = i;
  }
  return first >= rule->least_gain && low >= rule->in_a_row ? begin : n;
}

static void ends_of(run_outcome *o, const eval_record *eval, const double *best_until, size_t n,
                    size_t fall) {
  double highest = NAN;
  for (size_t i = 0; i < n; i++) {
    const double score = eval[i].eval_score;
    if (isnan(score)) continue;
    if (isnan(o->first)) o->first = score;
    if (i < fall) o->best = best_with(isnan(o->best) ? score : o->best, eval, best_until, i);
    if (i < fall && (isnan(highest) || score > highest)) {
      highest = score;
      o->best_step = eval[i].step;
    }
    o->last = score;
    o->end = eval[i].step;
  }
}

/* An evaluation on the plateau stands for the updates since the one before it. */
static int64_t plateau_of(const run_outcome *o, const eval_record *eval, size_t fall,
                          const outcome_rule *rule) {
  const double least = o->first + rule->plateau * (o->best - o->first);
  int64_t updates = 0, before = 0;
  for (size_t i = 0; i < fall; i++) {
    if (isnan(eval[i].eval_score)) continue;
    if (eval[i].eval_score >= least) updates += eval[i].step - before;
    before = eval[i].step;
  }
  return updates;
}

run_outcome outcome_of(const eval_record *eval, size_t n, int not_finite,
                       const outcome_rule *rule) {
  return outcome_of_bests(eval, NULL, n, not_finite, rule);
}

run_outcome outcome_of_bests(const eval_record *eval, const double *best_until, size_t n,
                             int not_finite, const outcome_rule *rule) {
  run_outcome o = {.first = NAN, .best = NAN, .last = NAN, .onset = -1};
  const size_t fall = fall_of(eval, best_until, n, rule);
  ends_of(&o, eval, best_until, n, fall);
  o.plateau_updates = plateau_of(&o, eval, fall, rule);
  if (fall < n) {
    o.onset = eval[fall].step;
    o.kind = o.plateau_updates >= rule->plateau_updates ? OUTCOME_LATE_FALL : OUTCOME_EARLY_FALL;
  } else if (not_finite) {
    o.onset = o.end;
    o.kind = OUTCOME_NOT_FINITE;
  } else if (o.best - o.first >= rule->least_gain) {
    o.kind = OUTCOME_SURVIVED;
  } else {
    const size_t lost = loss_of_start(eval, n, rule);
    o.kind = OUTCOME_NEVER_LEARNED;
    o.lost_start = lost < n;
    if (lost < n) o.onset = eval[lost].step;
  }
  return o;
}

/* A diverged run that was evaluated after its last update, whose loss and gradient are numbers, has
 * lost its score and is not one that is not finite. */
static int is_not_finite(const results_run *run) {
  if (run->status != RUN_DIVERGED) return 0;
  if (run->n_steps == 0 || run->n_evals == 0) return 1;
  const step_record *last = &run->steps[run->n_steps - 1];
  return run->evals[run->n_evals - 1].step != last->step || !isfinite(last->metric[METRIC_LOSS]) ||
         !isfinite(last->metric[METRIC_GRAD_NORM]);
}

run_outcome outcome_of_run(const results_run *run, const outcome_rule *rule) {
  return outcome_of_bests(run->evals, run->best_until, run->n_evals, is_not_finite(run), rule);
}
