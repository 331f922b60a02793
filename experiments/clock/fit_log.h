/* What `gepolab fit` reads from logs: the measured values of the fields of a recipe's cluster. */
#ifndef GEPOLAB_EXPERIMENTS_CLOCK_FIT_LOG_H
#define GEPOLAB_EXPERIMENTS_CLOCK_FIT_LOG_H

#include "experiments/base/args.h"

#include <stdbool.h>

/* One for each line of the table in fit_log.c. */
typedef enum fit_field {
  FIT_FIELD_DELAY,
  FIT_FIELD_DATA_DELAY,
  FIT_FIELD_GENERATION,
  FIT_FIELD_LENGTHS,
  FIT_FIELDS
} fit_field;

/* The name of a field below `cluster`, and what its values are. */
const char *fit_field_name(fit_field f);
const char *fit_field_about(fit_field f);
bool fit_field_is_time(fit_field f);
/* The field that text "FIELD=VALUE" begins with, and where VALUE begins. GL_EINPUT, with the
 * nearest name, where it is none; option ("--column") stands for it in messages. */
gl_status fit_field_of(fit_field *out, const char **value, const char *option, const char *text,
                       gl_error *err);

typedef struct fit_measured {
  const char *heading; /* of its column, borrowed; NULL: none was asked for */
  double *value;       /* [n] seconds or tokens */
  size_t n;
} fit_measured;

typedef struct fit_log {
  fit_measured field[FIT_FIELDS];
  double factor; /* seconds of the unit that the log's times have */
} fit_log;

/* Reads the columns of all files. columns: "FIELD=HEADING" each; where there are none, the columns
 * that are headed as the fields are. unit: of the times, "ms". Release with fit_log_fini() in any
 * case. GL_EIO; GL_EINPUT, naming file, line and column, for cells that are no number from 0 to
 * 1e15, for columns that no file has, and for units of no time. */
gl_status fit_log_read(fit_log *out, const char *const *files, size_t n_files,
                       const args_list *columns, const char *time_unit, gl_error *err);
void fit_log_fini(fit_log *log);

#endif
