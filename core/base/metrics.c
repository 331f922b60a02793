/* The table of metrics as an array. */
#include "core/base/metrics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define METRIC_ENTRY(ID, NAME, UNIT, LABEL, BETTER, MEANING, SOURCE, MISREAD)                      \
  [METRIC_##ID] = {NAME, UNIT, LABEL, METRIC_##BETTER##_IS_BETTER, MEANING, SOURCE, MISREAD},
static const metric_info table[METRIC_COUNT] = {METRICS(METRIC_ENTRY)};

const metric_info *metric_about(metric m) {
  return &table[m];
}

const char *metric_axis(metric m, char text[METRIC_AXIS_SIZE]) {
  const char *unit = table[m].unit;
  if (strcmp(unit, "nat") == 0) unit = "nats";
  if (strcmp(unit, "optimiser updates") == 0) unit = "updates";
  snprintf(text, METRIC_AXIS_SIZE, *unit ? "%s [%s]" : "%s%s", table[m].label, unit);
  return text;
}

metric metric_find(const char *name) {
  for (int m = 0; m < METRIC_COUNT; ++m)
    if (strcmp(table[m].name, name) == 0) return (metric)m;
  return METRIC_COUNT;
}

metric_direction metric_better(metric m) {
  return table[m].better;
}

void metrics_clear(double value[METRIC_COUNT]) {
  for (int m = 0; m < METRIC_COUNT; ++m) value[m] = NAN;
}
