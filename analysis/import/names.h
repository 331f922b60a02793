/* The meaning of a metric's name in the log of another program: one of gepolab's metrics, a score
 * of an evaluation, or neither, and whether higher or lower is better.
 *
 * Names are compared by the components between slashes: those of gepolab's own metrics, and of a
 * table of the names that trainers use (TRL, verl, the released code of
 * GEPO). "eval/…", "test/…" and the like, and words such as "accuracy", are scores.
 */
#ifndef GEPOLAB_ANALYSIS_IMPORT_NAMES_H
#define GEPOLAB_ANALYSIS_IMPORT_NAMES_H

#include "core/base/error.h"
#include "core/base/metrics.h"

#include <stdbool.h>

/* The metric of a series whose file does not name it. */
#define QUANTITY_UNNAMED "score"

typedef struct quantity {
  metric known;    /* METRIC_COUNT: none of gepolab's */
  bool is_score;   /* of an evaluation */
  bool is_guessed; /* nothing is known of it: higher is taken to be better */
  metric_direction better;
} quantity;

quantity quantity_of(const char *name);
/* Whether a heading is a metric's name and no run's: it is known, or begins as trainers' do
 * ("train/…", "actor/…"). */
bool quantity_is_named(const char *heading);

/* --- regular expressions --- */
/* Regular expressions of the command line, by PCRE2. Texts may be any bytes; a match that would
 * take too long is refused. */

typedef struct pattern pattern;

/* Compiles a regular expression. option ("--group-by") names it in errors: GL_EINPUT where it
 * is none, with the place. Release with pattern_free(). */
gl_status pattern_new(pattern **out, const char *regex, const char *option, gl_error *err);
/* The same of "regex=name", where name is the name of a text that matches: in it, $1 to $9
 * are groups of the expression, $0 is the match, $$ a dollar sign. The first '=' ends the
 * expression; inside the expression it is written \x3d. */
gl_status pattern_new_rule(pattern **out, const char *rule, const char *option, gl_error *err);
void pattern_free(pattern *p);

/* Whether the expression has a group in parentheses. */
bool pattern_has_group(const pattern *p);
/* *found: whether it matches the text anywhere. */
gl_status pattern_matches(const pattern *p, const char *text, int *found, gl_error *err);
/* Where it matches the text, *out is the name that the rule makes of it; of an expression alone,
 * the text of its first group. NULL where it does not match. On the heap; GL_EINPUT where the name
 * would be empty. */
gl_status pattern_apply(const pattern *p, const char *text, char **out, gl_error *err);

#endif
