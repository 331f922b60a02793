/* Width of text in the figures' font, DejaVu Sans, so that the layout does not need the drawing
 * program. */
#ifndef GEPOLAB_ANALYSIS_PLOT_TEXT_H
#define GEPOLAB_ANALYSIS_PLOT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIGURE_FONT "DejaVu Sans"
/* Font size of all text at the figure's final size, in points. Journals require at least 7. */
#define FIGURE_POINTS 7.2

/* Returns true if the font is known to have the character. Others are shown as TEXT_ESCAPE, because
 * the drawing program would substitute a glyph that covers the page. */
bool text_in_font(uint32_t character);
#define TEXT_ESCAPE "U+%04X"

/* Width in centimetres of one line of UTF-8 text at FIGURE_POINTS. */
double text_cm(const char *text);

/* Returns the number of bytes of the text that fit on a line of `most` centimetres, at least one
 * character. Breaks after the last item that fits ("; " or ", "), else after the last word, else
 * after the last / _ or -, else after the last character. */
size_t text_line(const char *text, double most);

/* Breaks a title at commas and spaces into at most `lines` lines of `most` centimetres. The last
 * line has the rest, truncated if needed; *cut is 1 if an ellipsis must follow it. starts[i] and
 * lengths[i] are in bytes. Returns the number of lines. */
size_t text_break(const char *text, double most, size_t lines, size_t *starts, size_t *lengths,
                  int *cut);

/* --- ticks of an axis: positions and labels --- */

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
