/* What a metric of somebody else's log is: which of gepolab's metrics, a score of an evaluation, or
 * neither, and which of two of its values is the better one.
 *
 * Names are compared by the components between slashes: those of gepolab's own metrics, and of a
 * table of what the trainers that published such runs call them (TRL, verl, the released code of
 * GEPO). "eval/…", "test/…" and the like, and words such as "accuracy", are scores.
 */
#ifndef GEPOLAB_ANALYSIS_IMPORT_QUANTITY_H
#define GEPOLAB_ANALYSIS_IMPORT_QUANTITY_H

#include "core/base/metrics.h"

/* How a series without a metric's name is called. */
#define QUANTITY_UNNAMED "score"

typedef struct quantity {
  metric known;   /* METRIC_COUNT: none of gepolab's */
  int is_score;   /* of an evaluation */
  int is_guessed; /* nothing is known of it: higher is taken to be better */
  metric_direction better;
} quantity;

quantity quantity_of(const char *name);
/* Whether a heading is a metric's name and no run's: it is known, or begins as trainers' do
 * ("train/…", "actor/…"). */
int quantity_is_named(const char *heading);

#endif
