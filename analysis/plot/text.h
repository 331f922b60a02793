/* How much room text takes in the font of the figures, DejaVu Sans: what makes a layout that fits
 * without asking the program that draws it. */
#ifndef GEPOLAB_ANALYSIS_PLOT_TEXT_H
#define GEPOLAB_ANALYSIS_PLOT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIGURE_FONT "DejaVu Sans"
/* Of all text of a figure at its final size, in points. Journals ask for 7 at least. */
#define FIGURE_POINTS 7.2

/* Whether the font is known to have the character. What it lacks a figure shows as TEXT_ESCAPE, for
 * the program that draws would put in its place what covers the page. */
bool text_in_font(uint32_t character);
#define TEXT_ESCAPE "U+%04X"

/* Width in centimetres of one line of UTF-8 text at FIGURE_POINTS. */
double text_cm(const char *text);

/* Where a line of at most `most` centimetres of the text ends, in bytes: behind its last whole item
 * ("; " or ", ") or else its last word that fits, else behind the last / _ or - that does, else the
 * last character. At
 * least one character. */
size_t text_line(const char *text, double most);

/* Breaks a heading at commas and spaces into at most `lines` lines of `most` centimetres; the last
 * takes the rest, cut with an ellipsis where it does not fit. starts[i] and lengths[i] are bytes of
 * the text; *cut is 1 where an ellipsis belongs behind the last one. Returns how many lines. */
size_t text_break(const char *text, double most, size_t lines, size_t *starts, size_t *lengths,
                  int *cut);

/* --- the marks of an axis: their positions and texts --- */

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
size_t ticks_of_axis(double low, double high, bool logarithmic, size_t most, tick out[MOST_TICKS]);
/* Centimetres of the widest of their texts; 0 of none. */
double ticks_widest(const tick *ticks, size_t n);

#endif
