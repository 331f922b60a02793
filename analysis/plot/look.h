/* Line styles: every published algorithm has the same colour, symbol and dash pattern in all
 * figures of all studies.
 *
 * The eight colours are distinguishable with normal vision and with each of the three kinds of
 * colour blindness (tests/golden/looks.py simulates them). Colours of equal lightness, which print
 * as the same grey, have different symbols and dash patterns. */
#ifndef GEPOLAB_ANALYSIS_PLOT_LOOK_H
#define GEPOLAB_ANALYSIS_PLOT_LOOK_H

#include <stddef.h>

enum { LOOK_COLOURS = 8, LOOK_DASHES = 6 };
enum { LOOK_BLACK, LOOK_WINE, LOOK_BLUE, LOOK_RED, LOOK_GREEN, LOOK_PINK, LOOK_SKY, LOOK_GOLD };
/* Two of gnuplot's point types. */
enum { LOOK_PLUS = 1, LOOK_CROSS = 2 };

typedef struct look {
  int colour; /* 0 .. LOOK_COLOURS - 1, or LOOK_GREY */
  int dash;   /* 0 .. LOOK_DASHES - 1 */
  int mark;   /* gnuplot's point type */
} look;

enum { LOOK_GREY = -1 };

/* Returns the colour as "#rrggbb". */
const char *look_colour(int colour);
/* Returns the dash pattern in gnuplot's syntax: "solid", "(8,3)". */
const char *look_dash(int dash);

/* Returns the i-th published algorithm with a style, or NULL past the end. */
const char *look_name(size_t i, look *out);

/* Assigns styles to the lines of one study. A published algorithm gets its own style, also in other
 * programs' spelling: in capitals, with other separators, after a tag in brackets, or followed by
 * the kind of run ("[paper]GEPO_diff32", "Dr. GRPO online"). If several lines are the same
 * algorithm, the first gets that style. All others get the next free styles in order, with unused
 * colours first. A name followed by a parenthesis, such as "gepo (clip none)", counts as a
 * different algorithm. */
void looks_assign(const char *const *names, size_t n, look *out);

#endif
