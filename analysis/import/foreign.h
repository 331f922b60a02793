/* Names of metrics in other programs' logs, with the definition that each counts by. A name is
 * mapped to a metric of gepolab if both measure the same quantity; the definition says how they
 * differ. Definitions were read in the source that the entry names. `gepolab list metrics` prints
 * the table. */
#ifndef GEPOLAB_ANALYSIS_IMPORT_FOREIGN_H
#define GEPOLAB_ANALYSIS_IMPORT_FOREIGN_H

#include "core/base/metrics.h"

#include <stddef.h>

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
