/* Input of `gepolab fit`: reads measured values of fields of a recipe's cluster from logs. */
#ifndef GEPOLAB_EXPERIMENTS_CLOCK_FIT_LOG_H
#define GEPOLAB_EXPERIMENTS_CLOCK_FIT_LOG_H

#include "experiments/base/args.h"

#include <stdbool.h>

/* Each value has an entry in the table of fit_log.c. */
typedef enum fit_field {
  FIT_FIELD_DELAY,
  FIT_FIELD_DATA_DELAY,
  FIT_FIELD_GENERATION,
  FIT_FIELD_LENGTHS,
  FIT_FIELD_REQUEST, /* this and the following are measured, but are not fields of a recipe */
  FIT_FIELD_RESPONSE,
  FIT_FIELD_REWARD,
  FIT_FIELD_TOOLS,
  FIT_FIELDS
} fit_field;

/* The name of a field below `cluster`, and a description of its values. */
const char *fit_field_name(fit_field f);
const char *fit_field_about(fit_field f);
bool fit_field_is_time(fit_field f);
/* Whether `cluster` of a recipe has the field. */
bool fit_field_is_of_recipe(fit_field f);
/* Parses "FIELD=VALUE": sets *out to the field and *value to the start of VALUE. option
 * ("--column") is used in messages. Errors: GL_EINPUT for an unknown field, with the nearest name.
 */
gl_status fit_field_of(fit_field *out, const char **value, const char *option, const char *text,
                       gl_error *err);

typedef struct fit_measured {
  const char *heading; /* heading of its column, borrowed; NULL: not requested */
  double *value;       /* [n] seconds or tokens */
  size_t n;
} fit_measured;

typedef struct fit_log {
  fit_measured field[FIT_FIELDS];
  double factor; /* length in seconds of the time unit of the log */
} fit_log;

/* Reads the requested columns of all files and folders. format: that of the files, or NULL.
 * columns: entries "FIELD=HEADING"; if empty, columns whose headings are field names. time_unit:
 * unit of times, such as "ms". Call fit_log_fini() even after an error. Errors: GL_ENOMEM, GL_EIO,
 * GL_EINPUT with file, line and column (a cell that is not a number in [0, 1e15], a requested
 * column that no file has, an unknown unit). */
gl_status fit_log_read(fit_log *out, const char *const *files, size_t n_files,
                       const args_list *columns, const char *time_unit, const char *format,
                       gl_error *err);
void fit_log_fini(fit_log *log);

#endif
