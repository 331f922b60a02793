/* libFuzzer target: no bytes may make a reader of a trainer's log misbehave. Every reader gets
 * them, whatever the recognisers say; what they read has finite ascending steps, and what they
 * refuse has a reason. */
#include "analysis/import/read.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_series(const series_table *t) {
  for (size_t i = 0; i < t->n_series; i++)
    for (size_t k = 0; k < t->series[i].n; k++)
      if (isnan(t->series[i].value[k]) || !isfinite(t->series[i].step[k])) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *name = NULL;
  for (size_t i = 0; import_format_about(i, &name); i++) {
    series_table *t = NULL;
    sheet rows;
    gl_error err = {0}, err_rows = {0};
    const gl_status status = read_series_text(&t, (const char *)data, size, "series.json",
                                              &(shape_request){.format = name}, &err);
    if ((status == GL_OK) != (t != NULL) || (status != GL_OK && err.text[0] == '\0')) abort();
    if (t) check_series(t);
    series_table_free(t);
    if (read_rows_text(&rows, (const char *)data, size, "fuzz", name, &err_rows) != GL_OK &&
        err_rows.text[0] == '\0')
      abort();
    sheet_fini(&rows);
  }
  return 0;
}
