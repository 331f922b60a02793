/* `gepolab calibrate`: fits a clock's distributions to the first part of a log, predicts the rest
 * of it, and compares. */
#ifndef GEPOLAB_EXPERIMENTS_CLOCK_CALIBRATE_H
#define GEPOLAB_EXPERIMENTS_CLOCK_CALIBRATE_H

#include "analysis/diagnose/diagnose.h"
#include "analysis/import/gather.h"
#include "core/base/table.h"
#include "core/config/config.h"
#include "sim/delay.h"

#include <stddef.h>

/* The series of a log that are used: seconds of a step and of its parts, staleness, and tokens of a
 * response. */
typedef enum calibrate_series {
  CALIBRATE_STEP,
  CALIBRATE_GENERATION,
  CALIBRATE_SYNC,
  CALIBRATE_TRAINER,
  CALIBRATE_WAIT, /* time that the trainer waits for responses */
  CALIBRATE_ENVIRONMENT,
  CALIBRATE_STALENESS,
  CALIBRATE_STALENESS_MOST,
  CALIBRATE_LENGTH,      /* mean over a step's responses */
  CALIBRATE_LENGTH_MOST, /* length of the longest of them */
  CALIBRATE_SERIES
} calibrate_series;

typedef struct calibrate_log {
  const char *name[CALIBRATE_SERIES]; /* its name in the log; NULL: not in the log. Borrowed */
  double *value[CALIBRATE_SERIES];    /* [n] by step; NaN: none at this step. Owned */
  const double *step;                 /* [n] as the log counts them; borrowed */
  size_t n;
  gathered from;    /* owns the names and steps */
  diagnosis *roles; /* owns those of series that are made from others */
} calibrate_log;

/* Reads a log with a number for each step, of a format that analysis/import knows. format: its
 * name, or NULL. Call calibrate_log_fini() even after an error. Errors: those of gather();
 * GL_EINPUT if it has no seconds of a step. */
gl_status calibrate_log_read(calibrate_log *out, const char *const *files, size_t n_files,
                             const char *format, gl_error *err);
void calibrate_log_fini(calibrate_log *log);

typedef struct calibrate_request {
  const calibrate_log *log;
  double first; /* fraction of the steps that distributions are fitted to */
  size_t seeds; /* number of simulated runs; the prediction is their mean */
} calibrate_request;

enum {
  CALIBRATE_FEWEST = 40,    /* minimum number of steps of a log */
  CALIBRATE_QUANTITIES = 3, /* seconds of a step, throughput, staleness */
  CALIBRATE_FIELDS = 3      /* cluster.generation, cluster.delay, cluster.learner.step */
};

/* A quantity predicted for the second part of the log, compared with the log. NaN: unknown. */
typedef struct calibrate_prediction {
  size_t n;
  double measured, predicted; /* means */
  double error;               /* predicted / measured - 1 */
  double mape;                /* mean of |predicted - measured| / |measured| over steps */
  double correlation;         /* Pearson's, over steps */
} calibrate_prediction;

/* A distribution that was fitted to the first part, and its test on the values of the second
 * part. */
typedef struct calibrate_field {
  const char *series; /* NULL: not in the log; the recipe's own distribution is used */
  char text[160];     /* "{distribution: lognormal, mu: 3, sigma: 0.5}" */
  size_t n_first, n_rest;
  double mean_first, mean_rest;
  double distance, p; /* Kolmogorov-Smirnov distance of both parts' values; p-value */
  bool is_wrong;      /* p is below the level */
} calibrate_field;

typedef struct calibration {
  calibrate_prediction quantity[CALIBRATE_QUANTITIES];
  calibrate_field field[CALIBRATE_FIELDS];
  size_t n_first, n_rest;
  double steps[3];    /* the last step that is fitted to; first and last that are predicted */
  double level;       /* significance level of each field's test: 0.01 / number of tested fields */
  size_t wrong_first; /* index of the first field that is wrong; CALIBRATE_FIELDS: none */
} calibration;

/* Sets the fitted distributions in the recipe `doc` (recipe_load()), whose cluster is simulated for
 * the prediction. Errors: GL_EINPUT (too few steps, nothing that can be fitted, a recipe without a
 * clock or of a coupled one, a cluster that refuses the field), GL_ENOMEM, those of
 * schedule_build(). */
gl_status calibrate(calibration *out, cfg_doc *doc, const calibrate_request *q, gl_error *err);
/* Only fits and sets the distributions of the first part; c->quantity is not filled. */
gl_status calibrate_fit(calibration *c, cfg_doc *doc, const calibrate_request *q, gl_error *err);
/* Writes a fitted distribution in the syntax of recipes. Uses a parametric family even if the test
 * rejects all of them, because an empirical distribution would need a file. */
void calibrate_dist(char *text, size_t size, const delay_fit *of);
/* The path in a recipe of a field that is fitted; i below CALIBRATE_FIELDS. */
const char *calibrate_field_path(size_t i);

/* Returns a document with the tables `predictions` and `distributions`, and a sentence that names
 * what is wrong. */
table *calibration_table(const calibration *c);

#endif
