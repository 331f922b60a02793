/* Where everything of a page stands: panels, texts, marks of axes and the legend, in centimetres at
 * the figure's final size. */
#ifndef GEPOLAB_ANALYSIS_PLOT_LAYOUT_H
#define GEPOLAB_ANALYSIS_PLOT_LAYOUT_H

#include "analysis/plot/page.h"

/* The width of a figure by name: neurips (13.97 cm, the text), icml (8.25 cm, a column), a4 (16 cm,
 * the text), or a number of centimetres from 6 to 100. GL_EINPUT says what there is. */
gl_status figure_width(const char *text, double *cm, gl_error *err);

/* Lays the page out and writes the variables of plots/style.gp: sizes, panels, texts, lines, legend
 * and what stands at the foot. Pads and shares the panels' ranges, leaves out panels in which
 * nothing varies, settings and lines without a value, and shows in grey the lines that are too many
 * for a colour each (or, with q->highlight, all lines that it does not name). */
gl_status layout_write(figure_page *p, FILE *to, gl_error *err);

/* Whether the list of names parted by commas (NULL: none) has that one. */
int figure_is_named(const char *list, const char *name);

#endif
