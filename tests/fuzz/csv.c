/* libFuzzer target: no bytes may make the CSV reader misbehave, alone or under the reader of W&B
 * exports. */
#include "analysis/import/formats.h"
#include "core/base/records.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  series_table *table;
  csv_reader r;
  gl_error err = {0};
  const import_file file = {.name = "fuzz", .text = (const char *)data, .size = size};
  if (format_panel.series(&table, &file, &err) == GL_OK) series_table_free(table);
  gl_status status = csv_begin(&r, (const char *)data, size, "fuzz", &err);
  if (status != GL_OK) return 0;
  while (status == GL_OK && csv_line(&r))
    for (int more = 1; more && status == GL_OK;) {
      double x;
      status = csv_cell(&r, &more);
      if (status == GL_OK) csv_number(r.cell, &x);
    }
  csv_end(&r);
  return 0;
}
