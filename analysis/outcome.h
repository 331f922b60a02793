/* What became of a training run: whether it learned, whether it lost what it had learned, and when.
 *
 * The rule is fixed beforehand and the same for all runs, so that no method is judged by eye. A run
 * falls when several evaluations in a row lie below a share of what had been gained until then; a
 * single bad evaluation is none. Only evaluations before it decide about a fall, so that a fall
 * does not depend on how long the run was watched afterwards. Scores are better when higher.
 */
#ifndef GEPOLAB_ANALYSIS_OUTCOME_H
#define GEPOLAB_ANALYSIS_OUTCOME_H

#include "analysis/results.h"

#include <stddef.h>
#include <stdint.h>

/* In the order in which they are tested, but for survival, which is the rest. */
typedef enum outcome {
  OUTCOME_NOT_FINITE,    /* a loss or parameter that is no number ended it before it fell */
  OUTCOME_NEVER_LEARNED, /* it gained less than the rule's least gain */
  OUTCOME_EARLY_FALL,    /* it fell before it had been on its plateau long enough */
  OUTCOME_LATE_FALL,     /* it fell afterwards: the published kind of collapse */
  OUTCOME_SURVIVED,
  OUTCOME_COUNT
} outcome;

/* "not finite", "never learned", "early fall", "late fall", "survived". */
const char *outcome_name(outcome o);

typedef struct outcome_rule {
  double least_gain;       /* in units of the score; below it a run has learned nothing */
  double kept;             /* below first + kept * gain is a fall */
  size_t in_a_row;         /* so many evaluations in a row */
  double plateau;          /* at least first + plateau * gain is the plateau, gain being the whole
                              run's before the fall */
  int64_t plateau_updates; /* a late fall has been on it so long, in updates */
} outcome_rule;

/* 0.1, half, four, 0.9, 200 updates. */
outcome_rule outcome_rule_default(void);

typedef struct run_outcome {
  outcome kind;
  double first, best, last; /* scores; NaN without an evaluation */
  int64_t best_step;        /* update of the best evaluation (the first of equal ones) */
  int64_t plateau_updates;  /* updates on the plateau before the fall, or in all */
  int64_t onset;            /* update of the first evaluation of the fall, or of the loss of the
                               start; of a run that is not finite its last; -1: none of them */
  int64_t end;              /* the last evaluation */
  int lost_start;           /* it never learned, and lost what it began with: as many evaluations in
                               a row as a fall needs lie below kept * first, first being at least
                               the least gain, without a better one after them */
} run_outcome;

/* 1 for early and late falls, for runs that are not finite, and for those that lost their start:
 * what counts as a fall when falls are set against a dose or a time. */
int run_outcome_is_fall(const run_outcome *o);

/* The outcome of a run with evaluations eval[n] in the order of their updates; not_finite: it ended
 * for that reason. Evaluations that are NaN are skipped. A run that fell before it was not finite
 * is a fall. Without evaluations it never learned, or is not finite. */
run_outcome outcome_of(const eval_record *eval, size_t n, int not_finite, const outcome_rule *rule);
/* The same with the best score until each evaluation, best_until[n], as it was chosen and scored on
 * different problems (analysis/sets.h), instead of the largest one, which is too high. */
run_outcome outcome_of_bests(const eval_record *eval, const double *best_until, size_t n,
                             int not_finite, const outcome_rule *rule);
/* The same of a run of a study, by its halves where it has any. Not finite is a diverged run that
 * ended for it: one whose score has collapsed went on to its last update. */
run_outcome outcome_of_run(const results_run *run, const outcome_rule *rule);

#endif
