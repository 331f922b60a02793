/* libFuzzer target: no bytes may make the batch reader misbehave, and what it takes it writes back
 * byte for byte. Inputs have no checksum; theirs is added here, or none would pass. */
#include "core/base/hash.h"
#include "core/rl/batch.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_written(const batch *b, const char *bytes, size_t size) {
  char *written = NULL;
  size_t n = 0;
  gl_error err = {0};
  FILE *to = open_memstream(&written, &n);
  if (to == NULL || batch_write(b, to, &err) != GL_OK) abort();
  fclose(to);
  if (n > size || memcmp(written, bytes, n) != 0) abort(); /* bytes after the batch are not its */
  free(written);
}

static void read_bytes(char *bytes, size_t size) {
  batch b;
  gl_error err = {0};
  FILE *from = fmemopen(bytes, size, "rb");
  if (from == NULL) abort();
  if (batch_read(&b, from, &err) == GL_OK) {
    if (!batch_is_consistent(&b)) abort();
    check_written(&b, bytes, size);
    batch_fini(&b);
  } else if (b.logq != NULL || err.text[0] == '\0')
    abort();
  fclose(from);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint64_t hash = hash_64(HASH_64_START, data, size);
  char *bytes = malloc(size + sizeof hash);
  if (bytes == NULL) abort();
  memcpy(bytes, data, size);
  memcpy(bytes + size, &hash, sizeof hash);
  read_bytes(bytes, size + sizeof hash);
  free(bytes);
  return 0;
}
