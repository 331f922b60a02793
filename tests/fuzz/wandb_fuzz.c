/* libFuzzer target: no bytes may make the W&B reader misbehave. */
#include "analysis/wandb.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  wandb_table *table;
  gl_error err = {0};
  if (wandb_parse(&table, (const char *)data, size, "fuzz", &err) == GL_OK) wandb_free(table);
  return 0;
}
