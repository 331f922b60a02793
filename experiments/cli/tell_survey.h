/* `gepolab sweep --dry-run`: what a sweep would do, in words or as JSON. */
#ifndef GEPOLAB_EXPERIMENTS_CLI_TELL_SURVEY_H
#define GEPOLAB_EXPERIMENTS_CLI_TELL_SURVEY_H

#include "experiments/sweep/survey.h"

/* Prints on stdout. */
gl_status tell_survey(const sweep_survey *v, const sweep_options *options, int json, gl_error *err);

#endif
