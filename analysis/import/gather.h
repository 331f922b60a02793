/* Several files as one collection of series: exports, tables, JSON Lines and studies together, with
 * the names that the command line gives them.
 *
 * A run is one algorithm's; runs that differ only in their seed share a name. Series of one run may
 * come from several files (its KL from one, its staleness from another); two files with the same
 * metric of the same run need labels, for which of them is meant is not guessed.
 */
#ifndef GEPOLAB_ANALYSIS_IMPORT_GATHER_H
#define GEPOLAB_ANALYSIS_IMPORT_GATHER_H

#include "analysis/import/names.h"
#include "analysis/import/read.h"
#include "analysis/results.h"

#include <stdbool.h>

typedef struct gather_request {
  const char *const *files;
  size_t n_files;
  /* "FILE=AIME24": the benchmark or study that a file is of, by its path or its name alone; or
   * "FILE=cluster.window=32", a field of a recipe and its value. */
  const char *const *labels;
  size_t n_labels;
  const char *const *renames; /* "REGEX=NAME" (pattern.h); the first that matches names the run.
                                 It sees the name without its tag, or, where REGEX begins with
                                 "\[" or "^\[", with it: "[paper]GEPO" */
  size_t n_renames;
  const char *const *read_as; /* the same for metrics: "REGEX=kl_exact" */
  size_t n_read_as;
  const char *group_by; /* a regular expression whose first group is the name that the runs of one
                           algorithm share; NULL: each run is one */
  const char *metric;   /* the quantity that is asked for, by its name or a part of it between
                           slashes; what series are of whose file does not say it; NULL: all */
  bool lower_is_better; /* of metrics that are not known to gepolab */
  const char *set; /* the evaluation set of studies whose score is shown (analysis/sets.h); NULL:
                      the runs' own */
  bool each_set;   /* 1: every set of a study is shown, under its name as a label */
  bool at_common;  /* 1: series end at the last step that all runs of a label and metric have */
  shape_request shape;
} gather_request;

typedef struct gathered_series {
  const char *file;                    /* borrowed from the request */
  const char *label_path;              /* "label", or the field whose value the label is */
  const char *label;                   /* "" if none */
  const char *name;                    /* of the algorithm, as shown */
  const char *run;                     /* of the run, as its file calls it */
  const char *tag, *settings, *chosen; /* borrowed from its table */
  const char *metric;
  quantity what;
  bool is_chosen; /* it is the metric that was asked for, or none was */
  uint64_t seed;
  double *step, *value; /* [n] by step */
  size_t n, n_all;      /* n_all: before series were cut at the common step */
  double *nan_step;     /* [n_nan] where its file says NaN; those beyond `end` do not count */
  size_t n_nan;
  double end; /* the common step; infinite where none was asked for */
} gathered_series;

typedef struct gathered_study {
  const char *file;
  const char *label_path;
  const char *label;       /* "" if none */
  const char **algorithms; /* [from->n_algorithms] renamed */
  results *from;
} gathered_study;

typedef struct gathered {
  gathered_series *series;
  size_t n_series;
  gathered_study *studies;
  size_t n_studies;
  series_table **tables; /* [n_tables] from which the series borrow */
  size_t n_tables;
  size_t n_left_out; /* values in the files that were no numbers */
  arena memory;      /* of texts and of the series' numbers */
} gathered;

/* How many cells of the series say NaN, and whether one stands behind its last value. */
size_t gathered_nan(const gathered_series *s, bool *at_end);

/* Reads all files. Release with gathered_fini() in any case. GL_EIO for files that cannot be read,
 * GL_EINPUT, with file and remedy, for wrong options, wrong files, names that two runs share, and a
 * metric that is not there. */
gl_status gather(gathered *out, const gather_request *request, gl_error *err);
void gathered_fini(gathered *g);

/* --- as results: joined.c --- */
/* Gathered files as results (analysis/results.h), so that every figure and table of studies can be
 * made of them.
 *
 * Known metrics become those of updates (a variance gives its logarithm too), scores become
 * evaluations, and whole-numbered staleness a histogram. A label is an axis of its own, or the
 * recipe's field that it names. What is neither a known metric nor a score has no place in figures.
 */

/* Arranged; release with results_free(). left_out, where it is not NULL, becomes the names of
 * metrics that have no place, "a, b", on the heap, or NULL if there is none. GL_EINPUT where there
 * is nothing to draw, where a step is no whole number, and where two metrics of one run are the
 * same to gepolab. */
gl_status joined_results(results **out, char **left_out, const gathered *g, gl_error *err);

#endif
