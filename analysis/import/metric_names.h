/* The meaning of a metric name in another program's log: one of gepolab's metrics, an evaluation
 * score, or neither; and whether higher or lower is better.
 *
 * Whole names that known trainers write are looked up first (trainer_metrics.c). Other names are
 * split at slashes, and their components are compared with gepolab's metrics and with a table of
 * common names; behind the component only "mean" may follow. "eval/…", "test/…" and the like, and
 * words such as "accuracy", are scores. */
#ifndef GEPOLAB_ANALYSIS_IMPORT_METRIC_NAMES_H
#define GEPOLAB_ANALYSIS_IMPORT_METRIC_NAMES_H

#include "core/base/error.h"
#include "core/base/metrics.h"

#include <stdbool.h>
#include <stddef.h>

/* Metric name of a series whose file does not name it. */
#define QUANTITY_UNNAMED "score"

typedef struct quantity {
  metric known;    /* METRIC_COUNT: not a metric of gepolab */
  bool is_score;   /* an evaluation score */
  bool is_guessed; /* 1: unknown name; higher is assumed to be better */
  metric_direction better;
} quantity;

quantity quantity_of(const char *name);
/* Returns true if a heading is the name of a metric and not of a run: it is known, or begins like
 * trainers' metrics ("train/…", "actor/…"). */
bool quantity_is_named(const char *heading);

/* --- regular expressions --- */
/* Regular expressions of the command line (PCRE2). Texts may contain any bytes. A match that takes
 * too long is an error. */

typedef struct pattern pattern;

/* Compiles a regular expression. Release with pattern_free(). option ("--group-by") is used in
 * messages. Errors: GL_ENOMEM, GL_EINPUT (invalid expression, with the position). */
gl_status pattern_new(pattern **out, const char *regex, const char *option, gl_error *err);
/* Compiles "regex=name", where name is the replacement for a text that matches. In name, $1 to $9
 * are groups of the expression, $0 is the match, $$ a dollar sign. The first '=' ends the
 * expression; write \x3d for '=' inside it. */
gl_status pattern_new_rule(pattern **out, const char *rule, const char *option, gl_error *err);
void pattern_free(pattern *p);

/* Returns true if the expression has a group in parentheses. */
bool pattern_has_group(const pattern *p);
/* *found: 1 if the expression matches anywhere in the text. */
gl_status pattern_matches(const pattern *p, const char *text, int *found, gl_error *err);
/* If the expression matches the text, *out receives the rule's replacement (for an expression
 * alone, the text of its first group), allocated; otherwise NULL. Errors: GL_ENOMEM, GL_EINPUT
 * (empty name). */
gl_status pattern_apply(const pattern *p, const char *text, char **out, gl_error *err);

/* Names of metrics in other programs' logs, with the definition that each counts by. A name is
 * mapped to a metric of gepolab if both measure the same quantity; the definition says how they
 * differ. Definitions were read in the source that the entry names. `gepolab list metrics` prints
 * the table. */

typedef struct foreign_metric {
  const char *name;       /* whole name in the log; <k> stands for a number, <name> for a word */
  const char *system;     /* program and version */
  metric known;           /* METRIC_COUNT: no metric of gepolab measures this */
  const char *definition; /* what it counts, and how it differs from the metric of gepolab */
  const char *source;     /* file and line of that version */
} foreign_metric;

/* Entry i of the table; NULL after the last one. */
const foreign_metric *foreign_at(size_t i);
/* The entry of that name, also with "train/" before it, as Hugging Face writes names to W&B; NULL:
 * there is none. */
const foreign_metric *foreign_find(const char *name);

#endif
