/* Builds the series of one run from a trainer's log of JSON objects. Private to this folder.
 *
 * A trainer that restarts from a checkpoint appends steps that are in the log already. The values
 * that it writes last are the ones it trained with, so a value replaces all values of its series at
 * the same step and later ones. Both are counted and reported in the notes of the table. */
#ifndef GEPOLAB_ANALYSIS_IMPORT_LOG_H
#define GEPOLAB_ANALYSIS_IMPORT_LOG_H

#include "analysis/import/formats.h"
#include "core/base/hash.h"
#include "core/base/json.h"

typedef struct log_values {
  double *step, *value; /* [n] ascending; value may be NaN */
  size_t *line;         /* [n] of the file; 0: none */
  size_t n, step_room, value_room, line_room;
  size_t restarts; /* how often the step went back */
} log_values;

typedef struct log_builder {
  const import_file *file;
  series_table *table;
  const char *run;
  hash_table known;   /* index of a series by the hash of its metric */
  log_values *values; /* [n_values] of the series of the table, which are filled at the end */
  size_t n_values;
  size_t n_replaced, n_null, n_text;
  /* line: line of the last value that log_json() read; counted: bytes in which lines have been
   * counted. */
  size_t line, counted;
  const char *counted_text;
  bool null_is_nan; /* the writer replaces NaN by null */
  gl_error *err;
  gl_status status; /* first error of the builder itself */
} log_builder;

/* Begins the series of one run, which is named after the file (log_run_name). Call log_end() even
 * after an error. */
void log_begin(log_builder *b, const import_file *f, gl_error *err);
/* Adds a value; NaN and infinities are kept. */
void log_value(log_builder *b, const char *metric, double step, double value);
/* Adds the time since the start, in seconds, as the series time_s. A step may have several; the
 * last one is used, and the step may go back without a restart. */
void log_time(log_builder *b, double step, double seconds);
/* Reads the value after a key: a number or truth value is added, the members of an object are added
 * as "metric/key". Lists and texts are counted and skipped, and so is null unless null_is_nan. */
void log_json(log_builder *b, json_reader *r, const char *metric, double step);
/* Reads the step of a record: a finite number. */
double log_step(json_reader *r);
/* Adds the notes. *out receives the table; NULL if `status` or the status of the builder is an
 * error. */
gl_status log_end(log_builder *b, gl_status status, series_table **out);

/* Reads a line; `line` is its number. Fails through the reader, or returns another error. */
typedef gl_status log_line(void *context, json_reader *r, size_t line);
/* Calls read_line for every line that is not blank, with NaN and infinities as numbers. A last line
 * without line feed that is not complete JSON is left out: its writer was stopped. *cut says so. */
gl_status log_lines(const import_file *f, log_line *read_line, void *context, bool *cut,
                    gl_error *err);

/* Reads all lines and ends the builder. context: argument of read_line, such as a struct that
 * contains the builder. */
gl_status log_read(log_builder *b, log_line *read_line, void *context, series_table **out);

/* The keys of the first JSON object of a file. */
typedef struct log_keys {
  bool is_object;    /* 0: the file does not begin with a complete JSON object */
  uint32_t found;    /* bit i: the object has key i */
  size_t n_others;   /* members with other keys */
  char first[2][64]; /* its first two keys, truncated */
  double second;     /* value of the second key; NaN if it is no number */
} log_keys;
log_keys log_keys_of(const import_file *f, const char *const *keys, size_t n);

#endif
