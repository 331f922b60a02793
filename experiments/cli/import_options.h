/* The options of `analyze` and `plot` that say what several files are. */
#ifndef GEPOLAB_EXPERIMENTS_CLI_IMPORT_OPTIONS_H
#define GEPOLAB_EXPERIMENTS_CLI_IMPORT_OPTIONS_H

#include "analysis/import/gather.h"
#include "experiments/base/args.h"

enum { IMPORT_OPTION_COUNT = 11 };

/* What the command line says; starts as {0}. */
typedef struct import_options {
  args_list labels, renames, read_as;
  const char *group_by, *metric, *columns, *step, *at, *set;
  int lower_is_better, each_set;
} import_options;

/* Fills IMPORT_OPTION_COUNT lines of a command's options. */
void import_options_list(import_options *o, args_option *list);
/* The request for those files; it borrows from both. GL_EINPUT for words that are none of an
 * option's. */
gl_status import_options_request(const import_options *o, const char *const *files, size_t n_files,
                                 gather_request *out, gl_error *err);
/* Whether any option was given but --set, which is for studies alone. */
int import_options_given(const import_options *o);

#endif
