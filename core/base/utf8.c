/* Reads, writes and repairs UTF-8. */
#include "core/base/utf8.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

size_t utf8_read(const char *text, size_t size, uint32_t *code) {
  assert(size > 0);
  const unsigned char *s = (const unsigned char *)text;
  const unsigned char lead = s[0];
  *code = lead;
  if (lead < 0x80) return 1;
  *code = UTF8_INVALID;
  if (lead < 0xc2 || lead > 0xf4) return 1;
  const size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  /* only the second byte's range depends on the first: excludes overlong forms, surrogates and
   * values beyond U+10FFFF */
  unsigned char low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  unsigned char high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  uint32_t value = lead & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i, low = 0x80, high = 0xbf) {
    if (i == size || s[i] < low || s[i] > high) return i;
    value = value << 6 | (s[i] & 0x3f);
  }
  *code = value;
  return length;
}

size_t utf8_write(uint32_t code, char text[UTF8_LONGEST]) {
  if (code < 0x80) {
    text[0] = (char)code;
    return 1;
  }
  const size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (size_t i = length - 1; i > 0; --i, code >>= 6) text[i] = (char)(0x80 | (code & 0x3f));
  text[0] = (char)(0xf00 >> length | code);
  return length;
}

size_t utf8_valid_prefix(const char *text, size_t size) {
  size_t at = 0;
  while (at < size) {
    uint64_t eight;
    while (size - at >= sizeof eight) { /* most text is ASCII */
      memcpy(&eight, text + at, sizeof eight);
      if (eight & UINT64_C(0x8080808080808080)) break;
      at += sizeof eight;
    }
    if (at == size) break;
    uint32_t code;
    size_t bytes = utf8_read(text + at, size - at, &code);
    if (code == UTF8_INVALID) return at;
    at += bytes;
  }
  return size;
}

gl_status utf8_repair(const char *text, size_t size, char **out, size_t *n, gl_error *err) {
  enum { REPLACEMENT_BYTES = 3 }; /* per invalid byte */
  char *to = size < SIZE_MAX / REPLACEMENT_BYTES ? malloc(size * REPLACEMENT_BYTES + 1) : NULL;
  if (to == NULL) return gl_fail_memory(err, "a text");
  size_t end = 0;
  for (size_t at = 0; at < size;) {
    size_t valid = utf8_valid_prefix(text + at, size - at);
    if (valid > 0) memcpy(to + end, text + at, valid);
    end += valid;
    at += valid;
    if (at == size) break;
    uint32_t code;
    at += utf8_read(text + at, size - at, &code);
    end += utf8_write(UTF8_REPLACEMENT, to + end);
  }
  to[end] = '\0';
  char *fitting = realloc(to, end + 1);
  *out = fitting != NULL ? fitting : to;
  *n = end;
  return GL_OK;
}
