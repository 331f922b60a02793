/* libFuzzer target: no bytes may make the decompressing reader misbehave. Lines and blocks give the
 * same bytes, and what is refused has a reason. */
#include "core/base/compressed.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Sum of the text's bytes by position, up to MOST_TEXT bytes: a bomb is not read to its end. */
enum { MOST_TEXT = 1 << 22 };

static gl_status sum_by_line(FILE *from, uint64_t *sum, gl_error *err) {
  compressed_reader *r = NULL;
  compressed_text line = {.text = NULL};
  size_t n = 0;
  gl_status status = compressed_open_stream(&r, from, "fuzz", err);
  while (status == GL_OK && n < MOST_TEXT &&
         (status = compressed_line(r, &line, 1 << 20, err)) == GL_OK && line.text != NULL) {
    if (line.text[line.size] != '\0') abort();
    for (size_t i = 0; i < line.size; i++) *sum = *sum * 31 + (unsigned char)line.text[i];
    if (line.has_end) *sum = *sum * 31 + '\n';
    n += line.size + 1;
  }
  compressed_close(r);
  return status;
}

static gl_status sum_by_block(FILE *from, uint64_t *sum, size_t *total, gl_error *err) {
  compressed_reader *r = NULL;
  char block[1000];
  gl_status status = compressed_open_stream(&r, from, "fuzz", err);
  for (size_t n = 1; status == GL_OK && n > 0 && *total < MOST_TEXT; *total += n) {
    status = compressed_read(r, block, sizeof block, &n, err);
    if (status != GL_OK) n = 0;
    for (size_t i = 0; i < n; i++) *sum = *sum * 31 + (unsigned char)block[i];
  }
  compressed_close(r);
  return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  uint64_t sum[2] = {0, 0};
  size_t total = 0;
  gl_error err[2] = {{0}, {0}};
  FILE *from = fmemopen((void *)(uintptr_t)data, size, "rb");
  if (!from) return 0;
  const gl_status by_block = sum_by_block(from, &sum[0], &total, &err[0]);
  rewind(from);
  const gl_status by_line = sum_by_line(from, &sum[1], &err[1]);
  fclose(from);
  if (by_block != GL_OK && err[0].text[0] == '\0') abort();
  if (by_line != GL_OK && err[1].text[0] == '\0') abort();
  if (by_block == GL_OK && by_line == GL_OK && total < MOST_TEXT && sum[0] != sum[1]) abort();
  return 0;
}
