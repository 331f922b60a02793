/* The area under a ROC curve (AUC) of a predictor of rare events: interval, test and power. */
#ifndef GEPOLAB_ANALYSIS_AUC_H
#define GEPOLAB_ANALYSIS_AUC_H

#include "analysis/statistics.h"

/* Standard error of the AUC over events and non-events (Hanley and McNeil 1982): with Q1 = A / (2 -
 * A) and Q2 = 2 A^2 / (1 + A), the variance is (A (1 - A) + (e - 1)(Q1 - A^2) + (n - 1)(Q2 - A^2))
 * / (e n). Exact where both samples are exponential. NaN without events or without non-events. */
double auc_error(double auc, size_t events, size_t others);
/* The AUC with its 95 % interval: symmetric in its logit, with that standard error. The interval of
 * 0 and of 1 is unknown (NaN). */
interval auc_interval(double auc, size_t events, size_t others);
/* Two-sided p of the hypothesis that the AUC is 0.5: the exact permutation distribution of Mann and
 * Whitney's U without ties up to 4,000 pairs, its normal limit beyond. NaN without events or
 * without non-events. */
double auc_p_value(double auc, size_t events, size_t others);
/* Mann and Whitney's U of a stratum: the pairs of an event and a non-event in which the event is
 * higher, ties by half. */
typedef struct auc_pairs {
  double u;
  size_t events, others;
} auc_pairs;
/* The same test of the sum of U over strata, whose distribution is the convolution of theirs; exact
 * up to 4,000 pairs in total. NaN if a stratum has no events or no non-events. */
double auc_p_of_strata(const auc_pairs *p, size_t n);
/* Probability that the test of auc_p_value() rejects at `level` if the AUC is `auc`: the
 * distribution of the estimate is taken as normal with the standard error above. */
double auc_power(double auc, size_t events, size_t others, double level);
/* Smallest number of events, with `ratio` non-events for each, at which the power reaches `power`;
 * 0 if AUC_MOST_EVENTS are not enough. */
enum { AUC_MOST_EVENTS = 100000 };
size_t auc_events_needed(double auc, double ratio, double level, double power);

/* The request for the table `power`. */
typedef struct power_request {
  size_t events, others;  /* declines, and windows or runs without one; 0: unknown */
  double against;         /* an AUC that is to be distinguished from 0.5 */
  double level, power;    /* level of the test; required power */
  const double *observed; /* [n_observed] AUCs measured with these events, to be tested */
  size_t n_observed;
} power_request;
/* Writes the answers to a document: {"events", "others", "against", "level", "wanted", "power",
 * "needed": [{auc, ratio, events}], "observed": [{auc, events, p}]}. */
void power_report(table *to, const power_request *q);

#endif
