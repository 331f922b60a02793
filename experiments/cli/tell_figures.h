/* What every command that draws figures says about them. */
#ifndef GEPOLAB_EXPERIMENTS_CLI_TELL_FIGURES_H
#define GEPOLAB_EXPERIMENTS_CLI_TELL_FIGURES_H

#include "analysis/plot/figure.h"

/* A request for all figures into the folder, with the embedded scripts; drawn files, and figures
 * that lack their data, are told on standard output, what a figure leaves out on standard error. */
figure_request tell_figures(const char *folder);

#endif
