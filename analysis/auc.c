/* The area under a ROC curve: interval, test, power and the events that a test needs. */
#include "analysis/auc.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>

/* --- the area under a ROC curve --- */

double auc_error(double auc, size_t events, size_t others) {
  const double e = (double)events, n = (double)others, square = auc * auc;
  const double q1 = auc / (2 - auc), q2 = 2 * square / (1 + auc);
  if (events == 0 || others == 0 || !(auc >= 0 && auc <= 1)) return NAN;
  const double variance =
      (auc * (1 - auc) + (e - 1) * (q1 - square) + (n - 1) * (q2 - square)) / (e * n);
  return sqrt(fmax(0, variance));
}

interval auc_interval(double auc, size_t events, size_t others) {
  const double error = auc_error(auc, events, others), within = auc * (1 - auc);
  if (!(within > 0) || isnan(error)) return (interval){auc, NAN, NAN};
  const double logit = log(auc / (1 - auc)), half = gsl_cdf_ugaussian_Pinv(0.975) * error / within;
  return (interval){auc, 1 / (1 + exp(half - logit)), 1 / (1 + exp(-half - logit))};
}

/* --- the distribution of U under the hypothesis --- */

/* The distribution of U, p[events * others + 1], allocated; NULL if memory runs out. Of e events
 * and n others the largest value is an event's with probability e / (e + n), and then exceeds all n
 * others. */
static double *u_distribution(size_t events, size_t others) {
  const size_t size = events * others + 1;
  double *p = calloc((others + 1) * size, sizeof *p); /* [others + 1][size] for the current e */
  for (size_t n = 0; p && n <= others; n++) p[n * size] = 1;
  for (size_t e = 1; p && e <= events; e++)
    for (size_t n = 1; n <= others; n++) {
      double *now = p + n * size;
      const double *less = now - size;
      const double event = (double)e / (double)(e + n);
      for (size_t u = e * n + 1; u-- > 0;)
        now[u] = (u >= n ? event * now[u - n] : 0) + (1 - event) * less[u];
    }
  if (p && others > 0)
    for (size_t u = 0; u < size; u++) p[u] = p[others * size + u];
  return p;
}

/* P(|U - mean| >= distance) of U distributed as p[pairs + 1]. */
static double two_tails(const double *p, size_t pairs, double distance) {
  double sum = 0;
  for (size_t u = 0; u <= pairs; u++)
    if (fabs((double)u - (double)pairs / 2) >= distance - 1e-9) sum += p[u];
  return fmin(1, sum);
}

/* Standard deviation of U if the AUC is 0.5. */
static double u_deviation(size_t events, size_t others) {
  return sqrt((double)events * (double)others * (double)(events + others + 1) / 12);
}

/* Most pairs for which the distribution is exact. */
enum { MOST_EXACT = 4000 };

static bool is_exact(size_t events, size_t others) {
  return events <= MOST_EXACT && others <= MOST_EXACT && events * others <= MOST_EXACT;
}

/* The distribution of the sum of U over strata, p[pairs + 1], allocated; NULL if memory runs out.
 */
static double *sum_distribution(const auc_pairs *of, size_t n) {
  size_t pairs = 0;
  double *sum = calloc(1, sizeof *sum);
  if (sum) *sum = 1;
  for (size_t i = 0; i < n && sum; i++) {
    const size_t more = of[i].events * of[i].others;
    double *one = u_distribution(of[i].events, of[i].others);
    double *next = one ? calloc(pairs + more + 1, sizeof *next) : NULL;
    for (size_t u = 0; next && u <= pairs; u++)
      for (size_t k = 0; k <= more; k++) next[u + k] += sum[u] * one[k];
    free(one), free(sum);
    sum = next;
    pairs += more;
  }
  return sum;
}

double auc_p_of_strata(const auc_pairs *of, size_t n) {
  double u = 0, pairs = 0, variance = 0;
  for (size_t i = 0; i < n; i++) {
    if (of[i].events == 0 || of[i].others == 0) return NAN;
    u += of[i].u;
    pairs += (double)of[i].events * (double)of[i].others;
    variance += pow(u_deviation(of[i].events, of[i].others), 2);
  }
  if (n == 0 || !(u >= 0 && u <= pairs)) return NAN;
  /* U is a multiple of 1/2; rounding restores it from an AUC with few digits */
  const double distance = fabs(round(2 * u) - pairs) / 2;
  if (pairs > MOST_EXACT) return 2 * gsl_cdf_ugaussian_Q(fmax(0, distance - 0.5) / sqrt(variance));
  double *p = sum_distribution(of, n);
  const double value = p ? two_tails(p, (size_t)pairs, distance) : NAN;
  free(p);
  return value;
}

double auc_p_value(double auc, size_t events, size_t others) {
  if (!(auc >= 0 && auc <= 1)) return NAN;
  return auc_p_of_strata(&(auc_pairs){auc * (double)events * (double)others, events, others}, 1);
}

/* The smallest |U - mean| that the test rejects; infinite if it rejects nothing. */
static double critical_distance(size_t events, size_t others, double level) {
  const size_t pairs = events * others;
  if (!is_exact(events, others))
    return 0.5 + gsl_cdf_ugaussian_Qinv(level / 2) * u_deviation(events, others);
  double *p = u_distribution(events, others), found = INFINITY, sum = 0;
  for (size_t u = 0; p && 2 * u < pairs; u++) {
    sum += 2 * p[u]; /* the distribution is symmetric */
    if (sum > level) break;
    found = (double)pairs / 2 - (double)u;
  }
  free(p);
  return found;
}

double auc_power(double auc, size_t events, size_t others, double level) {
  if (events == 0 || others == 0) return 0;
  const double pairs = (double)events * (double)others;
  const double critical = critical_distance(events, others, level);
  const double mean = auc * pairs, deviation = auc_error(auc, events, others) * pairs;
  if (!isfinite(critical) || !(deviation > 0)) return isfinite(critical) ? 1 : 0;
  /* continuity correction by 1/2, because U is an integer */
  return gsl_cdf_ugaussian_Q((pairs / 2 + critical - 0.5 - mean) / deviation) +
         gsl_cdf_ugaussian_P((pairs / 2 - critical + 0.5 - mean) / deviation);
}

static size_t others_for(size_t events, double ratio) {
  return (size_t)fmax(1, ceil(ratio * (double)events - 1e-9));
}

size_t auc_events_needed(double auc, double ratio, double level, double power) {
  size_t below = 0, above = 1; /* doubled, then bisected: power rises with the number of events */
  while (above <= AUC_MOST_EVENTS && auc_power(auc, above, others_for(above, ratio), level) < power)
    below = above, above *= 2;
  if (above > AUC_MOST_EVENTS) return 0;
  while (above - below > 1) {
    const size_t middle = below + (above - below) / 2;
    if (auc_power(auc, middle, others_for(middle, ratio), level) < power)
      below = middle;
    else
      above = middle;
  }
  return above;
}

/* --- the table --- */

static const table_column needed_columns[] = {
    {"auc", TABLE_REAL, .head = "AUC", .format = "%.2f"},
    {"ratio", TABLE_REAL, .head = "others for each event", .format = "%.3g"},
    {"events", TABLE_INTEGER, .head = "events needed"}};

/* Writes how many events are needed to distinguish AUCs of 0.6 to 0.9, and `against`, from 0.5. */
static void report_needed(table *to, const power_request *q, double ratio) {
  const double auc[] = {0.6, 0.65, 0.7, 0.75, 0.8, 0.9};
  table *t = table_rows(table_field(to, "needed"), needed_columns, 3);
  for (size_t i = 0; i <= sizeof auc / sizeof *auc; i++) {
    const double of = i > 0 ? auc[i - 1] : q->against;
    if (i > 0 && of == q->against) continue;
    table_row(t);
    table_real(t, of), table_real(t, ratio);
    table_count(t, auc_events_needed(of, ratio, q->level, q->power));
  }
  table_title(t, "Events needed for a power of %.0f %% against chance, two-sided at %.0f %%",
              100 * q->power, 100 * q->level);
}

static const table_column observed_columns[] = {
    {"auc", TABLE_INTERVAL, .head = "AUC observed", .format = "%.2f"},
    {"events", TABLE_INTEGER, .head = "events"},
    {"others", TABLE_INTEGER, .head = "others"},
    {"p", TABLE_REAL, .head = "p against 0.5", .format = "%.3f"}};

static void report_observed(table *to, const power_request *q) {
  table *t = table_rows(table_field(to, "observed"), observed_columns, 4);
  for (size_t i = 0; i < q->n_observed; i++) {
    table_row(t);
    interval_cell(t, auc_interval(q->observed[i], q->events, q->others));
    table_count(t, q->events), table_count(t, q->others);
    table_real(t, auc_p_value(q->observed[i], q->events, q->others));
  }
  table_title(t, "Observed, with intervals of Hanley and McNeil and the exact permutation test "
                 "without ties");
}

void power_report(table *to, const power_request *q) {
  const double ratio = q->events > 0 ? (double)q->others / (double)q->events : 1;
  table_put(to, "against %g, level %g, wanted %g", q->against, q->level, q->power);
  if (q->events > 0) {
    const double power = auc_power(q->against, q->events, q->others, q->level);
    table_put(to, "events %zu, others %zu, power %g", q->events, q->others, power);
    table_line(to,
               "With %zu events and %zu others, an AUC of %.2f is distinguished from 0.5 with "
               "probability %.2f (two-sided at %.0f %%).",
               q->events, q->others, q->against, power, 100 * q->level);
    table_line(to, "%s", "");
  }
  report_needed(to, q, ratio);
  if (q->n_observed > 0) {
    table_line(to, "%s", "");
    report_observed(to, q);
  }
}
