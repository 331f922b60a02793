/* libFuzzer target: no header may make the tensor reader misbehave. The first byte says how many
 * bytes of data are said to follow (times 4), the rest is the header. What is accepted must tile
 * that data: every tensor inside it, sizes adding up to it. */
#include "llm/model/safetensors.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const safetensors *s, size_t data_bytes) {
  const tensor_entry *t, *before = NULL;
  size_t total = 0;
  for (size_t i = 0; (t = safetensors_at(s, i)) != NULL; before = t, ++i) {
    size_t elements = 1;
    if (t->begin > t->end || t->end > data_bytes || t->rank > SAFETENSORS_MAX_RANK) abort();
    for (size_t d = 0; d < t->rank; ++d) elements *= t->shape[d];
    if (elements != t->elements) abort();
    if (t->type != TENSOR_OTHER && t->end - t->begin != elements * tensor_type_bytes(t->type))
      abort();
    if (before != NULL && strcmp(before->name, t->name) >= 0) abort();
    if (safetensors_find(s, t->name) != t) abort();
    total += t->end - t->begin;
  }
  if (total != data_bytes) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  gl_error err = {0};
  safetensors *s = NULL;
  if (size == 0) return 0;
  const size_t data_bytes = 4 * (size_t)data[0];
  /* In memory of its own size, so that a byte read beyond it is seen. */
  char *header = malloc(size);
  if (header == NULL) abort();
  memcpy(header, data + 1, size - 1);
  char *exact = realloc(header, size > 1 ? size - 1 : 1);
  if (exact == NULL) abort();
  const gl_status status = safetensors_parse(&s, exact, size - 1, data_bytes, "fuzz", &err);
  if (status == GL_OK)
    check(s, data_bytes);
  else if (s != NULL || err.status != status || err.text[0] == '\0')
    abort();
  safetensors_free(s);
  free(exact);
  return 0;
}
