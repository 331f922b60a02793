/* The marks of an axis: where they stand and what is written at them. */
#ifndef GEPOLAB_ANALYSIS_PLOT_TICKS_H
#define GEPOLAB_ANALYSIS_PLOT_TICKS_H

#include <stddef.h>

enum { MOST_TICKS = 96 };

typedef struct tick {
  double at;
  char text[24]; /* ""; a mark without a number, shorter than others */
} tick;

/* A number as a figure shows it: "0.25", "−3", "20000", "2·10⁻⁶". digits: behind the point. */
void tick_text(double value, int digits, char text[24]);

/* Round numbers within low..high, at most `most` (>= 1) of them, but two at least, as one says
 * nothing of the scale. Returns how many. */
size_t ticks_linear(double low, double high, size_t most, tick out[MOST_TICKS]);
/* Powers of ten ("10⁻³") within low..high, 0 < low < high, at most `most` of them named, with
 * unnamed marks at the multiples between where decades are few. Where the range holds fewer than
 * two powers, multiples of them are named too ("0.2", "0.5"), and where that names fewer than two,
 * the numbers are those of a linear axis. Returns how many. */
size_t ticks_logarithmic(double low, double high, size_t most, tick out[MOST_TICKS]);
/* The one or the other. */
size_t ticks_of_axis(double low, double high, int logarithmic, size_t most, tick out[MOST_TICKS]);
/* Centimetres of the widest of their texts; 0 of none. */
double ticks_widest(const tick *ticks, size_t n);

#endif
