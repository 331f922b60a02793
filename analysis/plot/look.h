/* The looks of lines: every published algorithm has its colour, mark and dash, in every figure of
 * every study.
 *
 * Eight colours, told apart by people with normal vision and with each of the three kinds of colour
 * blindness (tests/golden/looks.py simulates them); where two are equally light, so that print
 * without colour shows one grey, their marks and dashes differ.
 */
#ifndef GEPOLAB_ANALYSIS_PLOT_LOOK_H
#define GEPOLAB_ANALYSIS_PLOT_LOOK_H

#include <stddef.h>

enum { LOOK_COLOURS = 8, LOOK_DASHES = 6 };
enum { LOOK_BLACK, LOOK_WINE, LOOK_BLUE, LOOK_RED, LOOK_GREEN, LOOK_PINK, LOOK_SKY, LOOK_GOLD };
/* Some of gnuplot's points. */
enum { LOOK_PLUS = 1, LOOK_CROSS = 2 };

typedef struct look {
  int colour; /* 0 .. LOOK_COLOURS - 1, or LOOK_GREY */
  int dash;   /* 0 .. LOOK_DASHES - 1 */
  int mark;   /* gnuplot's number of a point */
} look;

enum { LOOK_GREY = -1 };

/* "#rrggbb" */
const char *look_colour(int colour);
/* gnuplot's words: "solid", "(8,3)". */
const char *look_dash(int dash);

/* The i-th published algorithm that has a look, or NULL past the end. */
const char *look_name(size_t i, look *out);

/* The looks of lines of one study. A published name has its own, also as other programs spell it:
 * in capitals, with other marks between its words, behind a tag in brackets, followed by what kind
 * of run it is of: "[paper]GEPO_diff32", "Dr. GRPO online"; of several lines of one algorithm the
 * first has it. The others, in their order, have the next that none of the names has, with colours
 * that are free as long as there are any. A name followed by a parenthesis, "gepo (clip none)", is
 * another one. */
void looks_assign(const char *const *names, size_t n, look *out);

#endif
