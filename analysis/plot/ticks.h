/* Ticks of an axis: positions and labels. */
#ifndef GEPOLAB_ANALYSIS_PLOT_TICKS_H
#define GEPOLAB_ANALYSIS_PLOT_TICKS_H

#include <stdbool.h>
#include <stddef.h>

enum { MOST_TICKS = 96 };

typedef struct tick {
  double at;
  char text[24]; /* ""; a tick without a label, which is shorter */
} tick;

/* Formats a number for figures: "0.25", "−3", "20000", "2·10⁻⁶". digits: after the decimal point.
 */
void tick_text(double value, int digits, char text[24]);

/* Chooses round numbers within low..high, at most `most` (>= 1), but at least two, because one
 * label does not define a scale. Returns how many. */
size_t ticks_linear(double low, double high, size_t most, tick out[MOST_TICKS]);
/* Chooses powers of ten ("10⁻³") within low..high, 0 < low < high, with at most `most` labels. If
 * there are few decades, unlabelled ticks are at the multiples between them. If the range contains
 * fewer than two powers, multiples are labelled too ("0.2", "0.5"). If that still gives fewer than
 * two labels, the ticks of a linear axis are used. Returns how many. */
size_t ticks_logarithmic(double low, double high, size_t most, tick out[MOST_TICKS]);
/* Calls one of the two. */
size_t ticks_of_axis(double low, double high, bool logarithmic, size_t most, tick out[MOST_TICKS]);
/* Width in centimetres of the widest label; 0 without labels. */
double ticks_widest(const tick *ticks, size_t n);

#endif
