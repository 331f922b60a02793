/* Distribution functions of delay distributions, from their quantiles, and distributions in words.
 */
#include "sim/delay_distributions.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { HALVINGS = 80 };
static const double longest = 1e15; /* as in delay_distributions.c */

/* The share of draws that are y or less (less than y) before offset and clamp: the greatest p whose
 * quantile is. */
static double share_by_quantile(const delay_dist *dist, double y, int below) {
  const delay_dist_entry *e = delay_dist_about(dist->kind);
  double low = 0, high = 1;
  assert(e->quantile != NULL);
  for (int i = 0; i < HALVINGS; ++i) {
    const double p = (low + high) / 2;
    if (!(p > low && p < high)) break; /* neighbours in floating point */
    const double x = e->quantile(dist, p);
    *((below ? x < y : x <= y) ? &low : &high) = p;
  }
  return (low + high) / 2;
}

static double bad_share(const delay_dist *dist) {
  const double to_bad = dist->gilbert_elliott.to_bad, to_good = dist->gilbert_elliott.to_good;
  return to_bad > 0 ? to_bad / (to_bad + to_good) : 0;
}

static double share_before_limits(const delay_dist *dist, double y, int below) {
  if (dist->kind == DELAY_GILBERT_ELLIOTT) {
    const double bad = bad_share(dist);
    return (1 - bad) * delay_share(dist->gilbert_elliott.good, y, below) +
           bad * delay_share(dist->gilbert_elliott.bad, y, below);
  }
  if (dist->kind == DELAY_NONE) return below ? y > 0 : y >= 0;
  if (dist->kind == DELAY_CONSTANT)
    return below ? y > dist->constant.value : y >= dist->constant.value;
  return share_by_quantile(dist, y, below);
}

double delay_share(const delay_dist *dist, double x, int below) {
  const double least = fmax(0, dist->clamp_lo), most = fmax(dist->clamp_hi, least);
  if (below ? x <= least : x < least) return 0;
  if (below ? x > most : x >= most) return 1;
  return share_before_limits(dist, x + dist->offset, below);
}

double delay_level(const delay_dist *dist, double p) {
  if (delay_dist_about(dist->kind)->quantile != NULL) return delay_quantile(dist, p);
  if (delay_share(dist, 0, 0) >= p) return 0;
  double low = -60, high = log(longest); /* of the logarithm */
  for (int i = 0; i < HALVINGS; ++i) {
    const double at = (low + high) / 2;
    *(delay_share(dist, exp(at), 0) >= p ? &high : &low) = at;
  }
  return exp(high);
}

static size_t add_atom(const delay_dist *dist, double at, size_t n, double *value, double *share) {
  const double mass = delay_share(dist, at, 0) - delay_share(dist, at, 1);
  size_t place = 0;
  while (place < n && value[place] < at) ++place;
  if (!isfinite(at) || !(mass > 1e-9) || n == DELAY_MOST_ATOMS || (place < n && value[place] == at))
    return n;
  memmove(value + place + 1, value + place, (n - place) * sizeof *value);
  memmove(share + place + 1, share + place, (n - place) * sizeof *share);
  value[place] = at;
  share[place] = mass;
  return n + 1;
}

size_t delay_atoms(const delay_dist *dist, double value[DELAY_MOST_ATOMS],
                   double share[DELAY_MOST_ATOMS]) {
  const double least = fmax(0, dist->clamp_lo);
  size_t n = add_atom(dist, least, 0, value, share);
  n = add_atom(dist, fmax(dist->clamp_hi, least), n, value, share);
  if (dist->kind == DELAY_CONSTANT)
    n = add_atom(dist, dist->constant.value - dist->offset, n, value, share);
  if (dist->kind != DELAY_GILBERT_ELLIOTT) return n;
  const delay_dist *const inner[] = {dist->gilbert_elliott.good, dist->gilbert_elliott.bad};
  for (int i = 0; i < 2; ++i) {
    double at[DELAY_MOST_ATOMS], mass[DELAY_MOST_ATOMS];
    const size_t found = delay_atoms(inner[i], at, mass);
    for (size_t k = 0; k < found; ++k) n = add_atom(dist, at[k] - dist->offset, n, value, share);
  }
  return n;
}

/* --- in words --- */

static void own_text(const delay_dist *dist, const char *name, char text[DELAY_TEXT_SIZE]) {
  char good[DELAY_TEXT_SIZE], bad[DELAY_TEXT_SIZE];
  switch (dist->kind) {
  case DELAY_NONE:
  case DELAY_KINDS:
    snprintf(text, DELAY_TEXT_SIZE, "%s", name);
    return;
  case DELAY_CONSTANT:
    snprintf(text, DELAY_TEXT_SIZE, "%s %.4g", name, dist->constant.value);
    return;
  case DELAY_UNIFORM:
    snprintf(text, DELAY_TEXT_SIZE, "%s %.4g to %.4g", name, dist->uniform.min, dist->uniform.max);
    return;
  case DELAY_EXPONENTIAL:
    if (dist->exponential.shift > 0)
      snprintf(text, DELAY_TEXT_SIZE, "%s(mean %.4g, shift %.4g)", name, dist->exponential.mean,
               dist->exponential.shift);
    else
      snprintf(text, DELAY_TEXT_SIZE, "%s(mean %.4g)", name, dist->exponential.mean);
    return;
  case DELAY_LOGNORMAL:
    snprintf(text, DELAY_TEXT_SIZE, "%s(mu %.3g, sigma %.3g)", name, dist->lognormal.mu,
             dist->lognormal.sigma);
    return;
  case DELAY_WEIBULL:
  case DELAY_GAMMA:
  case DELAY_PARETO:
    snprintf(text, DELAY_TEXT_SIZE, "%s(shape %.3g, scale %.4g)", name, dist->weibull.shape,
             dist->weibull.scale);
    return;
  case DELAY_EMPIRICAL:
    snprintf(text, DELAY_TEXT_SIZE, "%s (%zu values)", name, dist->empirical.n);
    return;
  case DELAY_GILBERT_ELLIOTT:
    delay_text(dist->gilbert_elliott.good, good);
    delay_text(dist->gilbert_elliott.bad, bad);
    snprintf(text, DELAY_TEXT_SIZE, "%.3g %% %.80s, else %.80s", 100 * bad_share(dist), bad, good);
    return;
  }
}

void delay_text(const delay_dist *dist, char text[DELAY_TEXT_SIZE]) {
  text[0] = 0;
  if (dist == NULL) return;
  own_text(dist, delay_dist_about(dist->kind)->name, text);
  size_t n = strlen(text);
  if (dist->offset != 0)
    n += (size_t)snprintf(text + n, DELAY_TEXT_SIZE - n, " less %.4g", dist->offset);
  if (n >= DELAY_TEXT_SIZE) return;
  if (isfinite(dist->clamp_hi))
    snprintf(text + n, DELAY_TEXT_SIZE - n, " in %.4g to %.4g", dist->clamp_lo, dist->clamp_hi);
  else if (dist->clamp_lo > 0)
    snprintf(text + n, DELAY_TEXT_SIZE - n, " from %.4g", dist->clamp_lo);
}
