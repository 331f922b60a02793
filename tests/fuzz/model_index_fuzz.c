/* libFuzzer target: no model.safetensors.index.json may make its reader misbehave, and no file name
 * outside the model's folder gets through. */
#include "llm/backend/open/open.h"
#include "llm/model/internal.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One layer, made once; the fuzzer's process owns it. */
static const model *some_model(void) {
  static model *m;
  static backend *b;
  gl_error err = {0};
  const model_config c = {.vocabulary = 4,
                          .hidden = 4,
                          .intermediate = 4,
                          .layers = 1,
                          .heads = 1,
                          .kv_heads = 1,
                          .head_dim = 2,
                          .max_positions = 4,
                          .rms_eps = 1e-6,
                          .rope_theta = 100,
                          .tied = 0,
                          .initializer_range = 1,
                          .begin = -1,
                          .end = -1,
                          .pad = -1};
  if (m != NULL) return m;
  if (backend_new(&b, BACKEND_CPU, NUMBER_F32, 1, &err) != GL_OK ||
      model_new(&m, &c, b, 0, &err) != GL_OK)
    abort();
  return m;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  gl_error err = {0};
  char *text = malloc(size + (size == 0));
  if (text == NULL) abort();
  memcpy(text, data, size);
  const gl_status status = model_index_check(some_model(), text, size, "fuzz", &err);
  free(text);
  if (status == GL_EINTERNAL || (status != GL_OK && err.text[0] == '\0')) abort();
  return 0;
}
