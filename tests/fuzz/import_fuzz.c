/* libFuzzer target: no bytes may make the readers of exports misbehave; what they take has series
 * with numbers, and what they refuse has a reason. */
#include "analysis/import/read.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const shape_request requests[] = {
      {0}, {.columns = COLUMNS_ARE_RUNS}, {.columns = COLUMNS_ARE_METRICS}};
  for (size_t k = 0; k < sizeof requests / sizeof *requests; k++) {
    series_table *t = NULL;
    gl_error err = {0};
    gl_status status = read_series_text(&t, (const char *)data, size, "fuzz", &requests[k], &err);
    if ((status == GL_OK) != (t != NULL)) abort();
    if (status != GL_OK && err.text[0] == '\0') abort();
    for (size_t i = 0; t && i < t->n_series; i++)
      for (size_t j = 0; j < t->series[i].n; j++)
        if (isnan(t->series[i].value[j]) || !isfinite(t->series[i].step[j])) abort();
    series_table_free(t);
  }
  return 0;
}
