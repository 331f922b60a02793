/* Reads several files as one collection of series: exports, tables, JSON Lines and studies, with
 * the names that the command line assigns.
 *
 * A run belongs to one algorithm; runs that differ only in their seed share a name. The series of a
 * run may come from several files (KL from one, staleness from another). If two files have the same
 * metric of the same run, they need labels, because the choice is ambiguous. */
#ifndef GEPOLAB_ANALYSIS_IMPORT_GATHER_H
#define GEPOLAB_ANALYSIS_IMPORT_GATHER_H

#include "analysis/import/metric_names.h"
#include "analysis/import/read.h"
#include "analysis/results.h"

#include <stdbool.h>

typedef struct gather_request {
  const char *const *files; /* files, and folders of logs */
  size_t n_files;
  /* "FILE=AIME24": the benchmark or study of a file, given by path or base name; or
   * "FILE=cluster.window=32": a recipe field and its value. */
  const char *const *labels;
  size_t n_labels;
  const char *const *renames; /* "REGEX=NAME" (metric_names.h); the first match names the run. REGEX
                                 is matched against the name without its tag, or against
                                 "[paper]GEPO" if it begins with "\[" or "^\[" */
  size_t n_renames;
  const char *const *read_as; /* the same for names of metrics: "REGEX=kl_exact" */
  size_t n_read_as;
  const char *group_by; /* a regular expression whose first group is the common name of the runs of
                           one algorithm; NULL: runs are not grouped */
  const char *metric;   /* the requested quantity, by name or by one component between slashes. Also
                           names the series of files without a metric name. NULL: all */
  bool lower_is_better; /* lower is better for metrics that gepolab does not know */
  const char *set; /* evaluation set whose score is used for studies (analysis/evaluation_sets.h);
                      NULL: the runs' own score */
  bool each_set;   /* 1: all evaluation sets of a study, with their names as labels */
  bool at_common; /* 1: truncate series at the last step that all runs of a label and metric have */
  shape_request shape;
} gather_request;

typedef struct gathered_series {
  const char *file;                    /* its path */
  const char *label_path;              /* "label", or the field that the label is a value of */
  const char *label;                   /* "" if none */
  const char *name;                    /* displayed name of the algorithm */
  const char *run;                     /* name of the run in its file */
  const char *tag, *settings, *chosen; /* borrowed from its table; settings, chosen: JSON of swept
                                          and of tuned fields (read.h) */
  const char *metric;
  quantity what;
  bool is_chosen; /* 1: this metric was requested, or none was */
  uint64_t seed;
  double *step, *value; /* [n] sorted by step */
  size_t *line;         /* [n] of the file; 0: none */
  size_t n, n_all;      /* n_all: before truncation at the common step */
  double *nan_step; /* [n_nan] steps at which the file has NaN; steps beyond `end` are ignored */
  size_t n_nan;
  double end; /* the common step; infinite without truncation */
} gathered_series;

typedef struct gathered_study {
  const char *file;
  const char *label_path;
  const char *label;       /* "" if none */
  const char **algorithms; /* [from->n_algorithms] after renaming */
  results *from;
} gathered_study;

typedef struct gathered {
  gathered_series *series;
  size_t n_series;
  gathered_study *studies;
  size_t n_studies;
  series_table **tables; /* [n_tables] own the texts that series borrow */
  size_t n_tables;
  const char **notes; /* [n_notes] what was left out or replaced while reading */
  size_t n_notes;
  arena memory; /* memory of texts and of the series' numbers */
} gathered;

/* Returns how many cells of the series are NaN. *at_end: the series ends with NaN or an infinite
 * value. */
size_t gathered_nan(const gathered_series *s, bool *at_end);

/* *label: the text that the request's labels give to a file; unchanged if there is none. Errors:
 * GL_ENOMEM, GL_EINPUT (a label of no file, or two of one). */
gl_status gather_label(const char **label, const gather_request *request, size_t file,
                       gl_error *err);

/* Reads all files. Release with gathered_fini(), also after an error. Errors: GL_ENOMEM, GL_EIO
 * (unreadable file), GL_EINPUT with file and hint (invalid options or files, a name shared by two
 * runs, a metric that is absent). */
gl_status gather(gathered *out, const gather_request *request, gl_error *err);
void gathered_fini(gathered *g);

/* --- conversion to results: gathered_results.c --- */

/* Converts gathered files to results (analysis/results.h), so that all figures and tables of
 * studies apply. Release with results_free().
 *
 * Known metrics become metrics of updates (a variance also gives its logarithm), scores become
 * evaluations, and integer staleness a histogram. A label becomes an axis of its own or the recipe
 * field that it names. Series that are neither known metrics nor scores are omitted. If left_out is
 * not NULL, it receives the names of omitted metrics, "a, b", allocated, or NULL if there are none.
 * Errors: GL_ENOMEM, GL_EINPUT (no data to plot, a non-integer step, or two metrics of one run that
 * map to the same metric). */
gl_status gathered_results(results **out, char **left_out, const gathered *g, gl_error *err);

#endif
