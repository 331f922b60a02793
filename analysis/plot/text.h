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

#endif
