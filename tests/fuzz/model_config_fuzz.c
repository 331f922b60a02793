/* libFuzzer target: no text may make the reader of config.json misbehave. A configuration that is
 * accepted has sizes that fit together, and written again it reads back the same. */
#include "llm/model/model.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int same(const model_config *a, const model_config *b) {
  return a->vocabulary == b->vocabulary && a->hidden == b->hidden &&
         a->intermediate == b->intermediate && a->layers == b->layers && a->heads == b->heads &&
         a->kv_heads == b->kv_heads && a->head_dim == b->head_dim &&
         a->max_positions == b->max_positions && a->rms_eps == b->rms_eps &&
         a->rope_theta == b->rope_theta && a->initializer_range == b->initializer_range &&
         !a->tied == !b->tied && a->begin == b->begin && a->end == b->end && a->pad == b->pad &&
         a->type == b->type && memcmp(&a->scaling, &b->scaling, sizeof a->scaling) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  gl_error err = {0};
  model_config c, again;
  char *text = malloc(size + (size == 0));
  if (text == NULL) abort();
  memcpy(text, data, size);
  const gl_status status = model_config_parse(&c, text, size, "fuzz", &err);
  free(text);
  if (status != GL_OK) {
    if (err.status != status || err.text[0] == '\0') abort();
    return 0;
  }
  if (model_config_parameters(&c) == 0 || c.heads % c.kv_heads != 0) abort();
  char *written = model_config_json(&c);
  if (written == NULL) abort();
  if (model_config_parse(&again, written, strlen(written), "written", &err) != GL_OK) abort();
  if (!same(&c, &again)) abort();
  free(written);
  return 0;
}
