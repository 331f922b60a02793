/* Distribution functions of delay laws, from their quantiles, and laws in words. */
#include "sim/delay_laws.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { HALVINGS = 80 };
static const double longest = 1e15; /* as in delay_laws.c */

/* The share of draws that are y or less (less than y) before offset and clamp: the greatest p whose
 * quantile is. */
static double share_by_quantile(const delay_law *law, double y, int below) {
  const delay_law_entry *e = delay_law_about(law->kind);
  double low = 0, high = 1;
  assert(e->quantile != NULL);
  for (int i = 0; i < HALVINGS; ++i) {
    const double p = (low + high) / 2;
    if (!(p > low && p < high)) break; /* neighbours in floating point */
    const double x = e->quantile(law, p);
    *((below ? x < y : x <= y) ? &low : &high) = p;
  }
  return (low + high) / 2;
}

static double bad_share(const delay_law *law) {
  const double to_bad = law->gilbert_elliott.to_bad, to_good = law->gilbert_elliott.to_good;
  return to_bad > 0 ? to_bad / (to_bad + to_good) : 0;
}

static double share_before_limits(const delay_law *law, double y, int below) {
  if (law->kind == DELAY_GILBERT_ELLIOTT) {
    const double bad = bad_share(law);
    return (1 - bad) * delay_share(law->gilbert_elliott.good, y, below) +
           bad * delay_share(law->gilbert_elliott.bad, y, below);
  }
  if (law->kind == DELAY_NONE) return below ? y > 0 : y >= 0;
  if (law->kind == DELAY_CONSTANT)
    return below ? y > law->constant.value : y >= law->constant.value;
  return share_by_quantile(law, y, below);
}

double delay_share(const delay_law *law, double x, int below) {
  const double least = fmax(0, law->clamp_lo), most = fmax(law->clamp_hi, least);
  if (below ? x <= least : x < least) return 0;
  if (below ? x > most : x >= most) return 1;
  return share_before_limits(law, x + law->offset, below);
}

double delay_level(const delay_law *law, double p) {
  if (delay_law_about(law->kind)->quantile != NULL) return delay_quantile(law, p);
  if (delay_share(law, 0, 0) >= p) return 0;
  double low = -60, high = log(longest); /* of the logarithm */
  for (int i = 0; i < HALVINGS; ++i) {
    const double at = (low + high) / 2;
    *(delay_share(law, exp(at), 0) >= p ? &high : &low) = at;
  }
  return exp(high);
}

static size_t add_atom(const delay_law *law, double at, size_t n, double *value, double *share) {
  const double mass = delay_share(law, at, 0) - delay_share(law, at, 1);
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

size_t delay_atoms(const delay_law *law, double value[DELAY_MOST_ATOMS],
                   double share[DELAY_MOST_ATOMS]) {
  const double least = fmax(0, law->clamp_lo);
  size_t n = add_atom(law, least, 0, value, share);
  n = add_atom(law, fmax(law->clamp_hi, least), n, value, share);
  if (law->kind == DELAY_CONSTANT)
    n = add_atom(law, law->constant.value - law->offset, n, value, share);
  if (law->kind != DELAY_GILBERT_ELLIOTT) return n;
  const delay_law *const inner[] = {law->gilbert_elliott.good, law->gilbert_elliott.bad};
  for (int i = 0; i < 2; ++i) {
    double at[DELAY_MOST_ATOMS], mass[DELAY_MOST_ATOMS];
    const size_t found = delay_atoms(inner[i], at, mass);
    for (size_t k = 0; k < found; ++k) n = add_atom(law, at[k] - law->offset, n, value, share);
  }
  return n;
}

/* --- in words --- */

static void own_text(const delay_law *law, const char *name, char text[DELAY_TEXT_SIZE]) {
  char good[DELAY_TEXT_SIZE], bad[DELAY_TEXT_SIZE];
  switch (law->kind) {
  case DELAY_NONE:
  case DELAY_KINDS:
    snprintf(text, DELAY_TEXT_SIZE, "%s", name);
    return;
  case DELAY_CONSTANT:
    snprintf(text, DELAY_TEXT_SIZE, "%s %.4g", name, law->constant.value);
    return;
  case DELAY_UNIFORM:
    snprintf(text, DELAY_TEXT_SIZE, "%s %.4g to %.4g", name, law->uniform.min, law->uniform.max);
    return;
  case DELAY_EXPONENTIAL:
    if (law->exponential.shift > 0)
      snprintf(text, DELAY_TEXT_SIZE, "%s(mean %.4g, shift %.4g)", name, law->exponential.mean,
               law->exponential.shift);
    else
      snprintf(text, DELAY_TEXT_SIZE, "%s(mean %.4g)", name, law->exponential.mean);
    return;
  case DELAY_LOGNORMAL:
    snprintf(text, DELAY_TEXT_SIZE, "%s(mu %.3g, sigma %.3g)", name, law->lognormal.mu,
             law->lognormal.sigma);
    return;
  case DELAY_WEIBULL:
  case DELAY_GAMMA:
  case DELAY_PARETO:
    snprintf(text, DELAY_TEXT_SIZE, "%s(shape %.3g, scale %.4g)", name, law->weibull.shape,
             law->weibull.scale);
    return;
  case DELAY_EMPIRICAL:
    snprintf(text, DELAY_TEXT_SIZE, "%s (%zu values)", name, law->empirical.n);
    return;
  case DELAY_GILBERT_ELLIOTT:
    delay_text(law->gilbert_elliott.good, good);
    delay_text(law->gilbert_elliott.bad, bad);
    snprintf(text, DELAY_TEXT_SIZE, "%.3g %% %.80s, else %.80s", 100 * bad_share(law), bad, good);
    return;
  }
}

void delay_text(const delay_law *law, char text[DELAY_TEXT_SIZE]) {
  text[0] = 0;
  if (law == NULL) return;
  own_text(law, delay_law_about(law->kind)->name, text);
  size_t n = strlen(text);
  if (law->offset != 0)
    n += (size_t)snprintf(text + n, DELAY_TEXT_SIZE - n, " less %.4g", law->offset);
  if (n >= DELAY_TEXT_SIZE) return;
  if (isfinite(law->clamp_hi))
    snprintf(text + n, DELAY_TEXT_SIZE - n, " in %.4g to %.4g", law->clamp_lo, law->clamp_hi);
  else if (law->clamp_lo > 0)
    snprintf(text + n, DELAY_TEXT_SIZE - n, " from %.4g", law->clamp_lo);
}
