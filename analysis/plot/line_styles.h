/* Line styles: every published algorithm has the same colour, symbol and dash pattern in all
 * figures of all studies.
 *
 * The eight colours are distinguishable with normal vision and with each of the three kinds of
 * colour blindness (tests/golden/looks.py simulates them). Colours of equal lightness, which print
 * as the same grey, have different symbols and dash patterns. */
#ifndef GEPOLAB_ANALYSIS_PLOT_LINE_STYLES_H
#define GEPOLAB_ANALYSIS_PLOT_LINE_STYLES_H

#include <stddef.h>

enum { LOOK_COLOURS = 8, LOOK_DASHES = 9, LOOK_SHADES = 3 };
enum { LOOK_BLACK, LOOK_WINE, LOOK_BLUE, LOOK_RED, LOOK_GREEN, LOOK_PINK, LOOK_SKY, LOOK_GOLD };
/* Two of gnuplot's point types. */
enum { LOOK_PLUS = 1, LOOK_CROSS = 2 };

typedef struct look {
  int colour; /* 0 .. LOOK_COLOURS - 1, or LOOK_GREY */
  int dash;   /* 0 .. LOOK_DASHES - 1 */
  int mark;   /* gnuplot's point type */
  int shade;  /* of a variant: 0 as the algorithm, 1 lighter, 2 darker */
} look;

enum { LOOK_GREY = -1 };

/* Returns the colour as "#rrggbb". */
const char *look_colour(int colour);
/* Writes the colour of a look with its shade, as "#rrggbb". */
enum { LOOK_SHADED = 8 };
void look_shaded(look l, char out[LOOK_SHADED]);
/* Returns the dash pattern in gnuplot's syntax: "solid", "(8,3)". */
const char *look_dash(int dash);

/* Returns the i-th published algorithm with a style and writes the style to *out; NULL past the
 * end. Exposed for its test. */
const char *look_name(size_t i, look *out);

/* Facts about a line besides its name: the algorithm that it varies, and its other fields. */
typedef struct look_variant {
  const char *name, *base, *fields;
} look_variant;

/* Assigns styles to the lines of one study. A published algorithm gets its own style, also in other
 * programs' spelling: in capitals, with other separators, after a tag in brackets, or followed by
 * the kind of run ("[paper]GEPO_diff32", "Dr. GRPO online"). A variant, whose name continues an
 * algorithm's ("gspo 0.2", "gepo(clip=none)", "GSPO_online" beside "gspo"), gets the algorithm's
 * colour with a shade, dash and symbol that follow from its name; if another line of the study has
 * them, the next free ones. A name in variants[n_variants] is a variant of its base whatever it is
 * called, and its style follows from its fields. If its name begins with its base's name it follows
 * from the name instead: stored results have names only, and must look like the study they come
 * from. Arms of shipped recipes that are
 * not called after an algorithm ("right only", "ratio gate") have styles of their own. Other names
 * without an algorithm get the next free styles in order, with unused colours first. */
void looks_assign(const char *const *names, size_t n, const look_variant *variants,
                  size_t n_variants, look *out);

#endif
