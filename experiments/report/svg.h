/* Figures inside a page. */
#ifndef GEPOLAB_EXPERIMENTS_REPORT_SVG_H
#define GEPOLAB_EXPERIMENTS_REPORT_SVG_H

#include "core/base/error.h"
#include "experiments/report/html.h"

#include <stddef.h>

/* What a figure is called and says on the page. */
typedef struct svg_words {
  const char *id;    /* of the figure: unique on the page; letters, digits and '-' */
  const char *title; /* read out in place of the picture */
  const char *about; /* the longer description */
} svg_words;

/* Writes the drawing of gnuplot's svg terminal in text[size] as an <svg> element that scales with
 * the page. Its ids get the figure's before them, so that those of two figures differ; groups that
 * draw nothing, and gnuplot's own names of its plots, are left out.
 *
 * Only elements and attributes on a list are let through: nothing that is run, and nothing that is
 * fetched. GL_EIO, naming the figure, for anything else and for what is not well-formed. */
gl_status svg_inline(html *h, const svg_words *words, const char *text, size_t size, gl_error *err);

#endif
