/* Ticks of axes: steps of 1, 2 or 5 times a power of ten on linear axes, powers of ten on
 * logarithmic ones, and their labels. */
#include "analysis/plot/ticks.h"

#include "analysis/plot/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- labels --- */

/* Appends an exponent in Unicode superscript digits. gnuplot's own superscripts are smaller than
 * journals allow. */
static void append_exponent(int exponent, char *text, size_t size) {
  static const char *const digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  char plain[16];
  size_t n = strlen(text);
  snprintf(plain, sizeof plain, "%d", exponent < 0 ? -exponent : exponent);
  n += (size_t)snprintf(text + n, size - n, "%s", exponent < 0 ? "⁻" : "");
  for (const char *c = plain; *c && n + 4 < size; c++)
    n += (size_t)snprintf(text + n, size - n, "%s", digits[*c - '0']);
}

static void power_text(int exponent, char text[24]) {
  if (exponent >= 0 && exponent <= 1) {
    snprintf(text, 24, "%d", exponent == 0 ? 1 : 10);
    return;
  }
  snprintf(text, 24, "10");
  append_exponent(exponent, text, 24);
}

void tick_text(double value, int digits, char text[24]) {
  const double size = fabs(value);
  const char *sign = value < 0 ? "−" : "";
  if (size > 0 && (size >= 1e6 || size < 9.999e-5)) {
    const int exponent = (int)floor(log10(size) + 1e-9);
    snprintf(text, 24, "%s%.3g·10", sign, size / pow(10, exponent));
    append_exponent(exponent, text, 24);
    return;
  }
  if (digits < 0) digits = 0;
  char plain[24];
  snprintf(plain, sizeof plain, "%.*f", digits > 6 ? 6 : digits, size);
  snprintf(text, 24, "%s%.16s", strspn(plain, "0.") == strlen(plain) ? "" : sign, plain);
}

/* --- linear axes --- */

/* Rounds x up to 1, 2 or 5 times a power of ten. */
static double round_up_125(double x, int *exponent) {
  *exponent = (int)floor(log10(x) + 1e-12);
  const double power = pow(10, *exponent), m = x / power;
  if (m <= 1 + 1e-9) return power;
  if (m <= 2 + 1e-9) return 2 * power;
  if (m <= 5 + 1e-9) return 5 * power;
  ++*exponent;
  return 10 * power;
}

static size_t linear_marks(double low, double high, size_t most, tick out[MOST_TICKS]) {
  int exponent;
  const double step = round_up_125((high - low) / (double)(most < 1 ? 1 : most), &exponent);
  size_t n = 0;
  for (double k = ceil(low / step - 1e-9); k * step <= high + 1e-9 * step && n < MOST_TICKS; k++) {
    out[n].at = k == 0 ? 0 : k * step;
    tick_text(out[n].at, -exponent, out[n].text);
    n++;
  }
  return n;
}

size_t ticks_linear(double low, double high, size_t most, tick out[MOST_TICKS]) {
  if (!(high > low) || !isfinite(high - low)) return 0;
  size_t n = 0;
  for (size_t try = most; n < 2 && try < most + 5; try++) n = linear_marks(low, high, try, out);
  return n;
}

/* --- logarithmic axes --- */

typedef struct tick_list {
  tick *out;
  size_t n;
  double low, high;
} tick_list;

static void add_tick(tick_list *l, double at, const char *text) {
  if (at < l->low * (1 - 1e-9) || at > l->high * (1 + 1e-9) || l->n == MOST_TICKS) return;
  l->out[l->n].at = at;
  snprintf(l->out[l->n++].text, sizeof l->out->text, "%s", text);
}

/* Labels multiples of powers too, for a range of one or two decades. */
static void add_multiples(tick_list *l, int first, int last, size_t most) {
  char text[24];
  const int dense = l->high / l->low < 4 && most > 3;
  for (int e = first; e <= last; e++)
    for (int m = 1; m <= 9; m++) {
      const double at = m * pow(10, e);
      const int named = m == 1 || m == 2 || m == 5 || (dense && (m == 3 || m == 4 || m == 7));
      tick_text(at, -e, text);
      add_tick(l, at, named ? text : "");
    }
}

static size_t count_named(const tick_list *l) {
  size_t n = 0;
  for (size_t i = 0; i < l->n; i++) n += l->out[i].text[0] != 0;
  return n;
}

/* Finds the first labelled power if every k-th is labelled. Powers are chosen so that 10^0 is
 * labelled, unless that leaves a single label. */
static int first_named(double low, double high, int every) {
  const int least = (int)ceil(log10(low) - 1e-9), largest = (int)floor(log10(high) + 1e-9);
  int n = 0;
  for (int e = least; e <= largest; e++) n += e % every == 0;
  return n > 1 ? 0 : least;
}

size_t ticks_logarithmic(double low, double high, size_t most, tick out[MOST_TICKS]) {
  if (!(low > 0 && high > low) || !isfinite(high)) return 0;
  tick_list l = {out, 0, low, high};
  const int first = (int)floor(log10(low)), last = (int)ceil(log10(high));
  const int inside = (int)floor(log10(high) + 1e-9) - (int)ceil(log10(low) - 1e-9) + 1;
  if (inside < 2) {
    add_multiples(&l, first, last, most);
    return count_named(&l) < 2 ? ticks_linear(low, high, most, out) : l.n;
  }
  if (most < 2) most = 2;
  const int every = (int)ceil((double)inside / (double)most);
  const int from = first_named(low, high, every);
  char text[24];
  for (int e = first; e <= last; e++) {
    power_text(e, text);
    add_tick(&l, pow(10, e), (e - from) % every == 0 ? text : "");
    for (int m = 2; m <= 9 && inside <= 5; m++) add_tick(&l, m * pow(10, e), "");
  }
  return l.n;
}

size_t ticks_of_axis(double low, double high, bool logarithmic, size_t most, tick out[MOST_TICKS]) {
  return logarithmic ? ticks_logarithmic(low, high, most, out) : ticks_linear(low, high, most, out);
}

double ticks_widest(const tick *ticks, size_t n) {
  double most = 0;
  for (size_t i = 0; i < n; i++) most = fmax(most, text_cm(ticks[i].text));
  return most;
}
