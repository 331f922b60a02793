/* Input of `gepolab fit`, and of `gepolab plan` for logs with a line for each response: reads
 * measured values of fields of a recipe's cluster from logs. */
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

/* What token-level logs (experiments/tokens/token_log.h) say of their batches. A batch is an
 * optimiser step's, or what the format calls one. */
typedef struct fit_batches {
  double *longest;                  /* [n] tokens of a batch's longest response; owned */
  size_t n;                         /* 0: there is no token-level log */
  size_t groups[2], group_size[2];  /* smallest and largest number of groups of a batch, and of
                                       responses of a group */
  double staleness, staleness_most; /* mean over trained tokens, and largest; NaN: no versions */
  double n_versions;                /* number of these tokens */
  size_t n_incomplete;              /* logs whose last line is incomplete and was left out */
  size_t n_untrained; /* responses without trained tokens, whose lengths are not in the log */
} fit_batches;

typedef struct fit_log {
  fit_measured field[FIT_FIELDS];
  double factor; /* length in seconds of the time unit of the log */
  fit_batches batches;
  char **beside; /* [n_beside] logs with a number for each step in the folders of token-level logs,
                    which are not read; owned */
  size_t n_beside;
} fit_log;

typedef struct fit_log_request {
  const args_list *columns; /* entries "FIELD=HEADING"; empty: columns whose headings are field
                               names, and the lengths of token-level logs */
  const char *time_unit;    /* of times, such as "ms"; NULL: seconds */
  const char *format;       /* of the files; NULL: recognised */
  size_t group_size; /* of token-level logs: responses of a group, which follow each other; 0: found
                        in the log */
} fit_log_request;

/* Reads the requested columns of all files and folders. Call fit_log_fini() even after an error.
 * Errors: GL_ENOMEM, GL_EIO, GL_EINPUT with file, line and column (a cell that is not a number in
 * [0, 1e15], a requested column that no file has, an unknown unit), those of token_log_next(). */
gl_status fit_log_read(fit_log *out, const char *const *files, size_t n_files,
                       const fit_log_request *q, gl_error *err);
/* Whether the format of that name, or if it is NULL, the content of the file or of a file of the
 * folder, is that of a token-level log. Errors: those of token_log_recognises(). */
gl_status fit_log_has_tokens(bool *has, const char *path, const char *format, gl_error *err);
void fit_log_fini(fit_log *log);

#endif
