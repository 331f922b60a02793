/* What every command that draws figures says about them. */
#ifndef GEPOLAB_EXPERIMENTS_CLI_TELL_FIGURES_H
#define GEPOLAB_EXPERIMENTS_CLI_TELL_FIGURES_H

#include "analysis/plot/figure.h"

/* A request for all figures into the folder, with the embedded scripts; drawn files, and figures
 * that lack their data, are told on standard output, what a figure leaves out on standard error. */
figure_request tell_figures(const char *folder);

/* What a command line says about the form of figures: the texts of --width and --highlight, or NULL
 * where they are not given. The options themselves stand in FIGURE_FORM_OPTIONS. */
typedef struct figure_form {
  const char *width, *highlight;
} figure_form;

#define FIGURE_WIDTH_OPTION(form)                                                                  \
  {                                                                                                \
    "width", 0, ARGS_TEXT, "WIDTH",                                                                \
        "of a figure: neurips (13.97 cm, the default), icml (8.25 cm), a4 (16 cm), or "            \
        "centimetres",                                                                             \
        &(form).width                                                                              \
  }
#define FIGURE_FORM_OPTIONS(form)                                                                  \
  FIGURE_WIDTH_OPTION(form), {                                                                     \
    "highlight", 0, ARGS_TEXT, "NAME,...", "these algorithms in colour, all others grey",          \
        &(form).highlight                                                                          \
  }

/* Sets q->width_cm and q->highlight. GL_EINPUT says which widths there are. */
gl_status tell_figures_form(figure_request *q, const figure_form *form, gl_error *err);

#endif
