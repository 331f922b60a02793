/* libFuzzer target: no bytes may make the JSON Lines reader misbehave; what it takes has texts, and
 * what it refuses has a reason. */
#include "llm/task/internal.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  dataset d;
  gl_error err = {0};
  gl_status status = dataset_parse(&d, (const char *)data, size, "fuzz", "prompt", "answer", &err);
  if (status == GL_OK && d.n == 0) abort();
  if (status != GL_OK && (d.row != NULL || err.text[0] == '\0')) abort();
  for (size_t i = 0; i < d.n; ++i)
    if (d.row[i].prompt[0] == '\0' || d.row[i].answer[0] == '\0') abort();
  dataset_fini(&d);
  return 0;
}
