/* How much room text takes in the font of the figures, DejaVu Sans: what makes a layout that fits
 * without asking the program that draws it. */
#ifndef GEPOLAB_ANALYSIS_PLOT_TEXT_H
#define GEPOLAB_ANALYSIS_PLOT_TEXT_H

#include <stddef.h>
#include <stdint.h>

#define FIGURE_FONT "DejaVu Sans"
/* Of all text of a figure at its final size, in points. Journals ask for 7 at least. */
#define FIGURE_POINTS 7.2

/* Whether the font is known to have the character. What it lacks a figure shows as TEXT_ESCAPE, for
 * the program that draws would put in its place what covers the page. */
int text_in_font(uint32_t character);
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

#endif
