/* Normalisation form C. utf8proc knows the characters; putting marks in canonical order is done
 * here, because utf8proc exchanges neighbours and takes quadratic time on long runs of marks. */
#include "core/base/utf8.h"
#include "llm/text/tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

enum { CLASSES = 256, COMPOSED = UTF8PROC_STABLE | UTF8PROC_COMPOSE };

/* Below U+0300 every character is its own composed form and none combines. */
static int is_composed(const char *text, size_t size) {
  int high = 0;
  for (size_t i = 0; i < size; ++i) high |= (unsigned char)text[i] >= 0xcc;
  return !high;
}

static int class_of(utf8proc_int32_t code) {
  return utf8proc_get_property(code)->combining_class;
}

/* Stable counting sort of a run of marks by their class. */
static void sort_run(utf8proc_int32_t *run, size_t n, utf8proc_int32_t *spare) {
  size_t start[CLASSES + 1] = {0};
  for (size_t i = 0; i < n; ++i) ++start[class_of(run[i]) + 1];
  for (size_t c = 1; c <= CLASSES; ++c) start[c] += start[c - 1];
  for (size_t i = 0; i < n; ++i) spare[start[class_of(run[i])]++] = run[i];
  memcpy(run, spare, n * sizeof *run);
}

/* Puts every run of characters whose class is not 0 in order of class. */
static void order_marks(utf8proc_int32_t *code, size_t n, utf8proc_int32_t *spare) {
  for (size_t i = 0; i < n; ++i) {
    int last = class_of(code[i]), sorted = 1;
    const size_t first = i;
    for (; last != 0 && i + 1 < n; ++i) {
      int next = class_of(code[i + 1]);
      if (next == 0) break;
      sorted &= last <= next;
      last = next;
    }
    if (!sorted) sort_run(code + first, i - first + 1, spare);
  }
}

static gl_status decompose(const char *text, size_t size, utf8proc_int32_t **out, size_t *n,
                           gl_error *err) {
  enum { LONGEST = 32 }; /* of one character's canonical decomposition there are 4 at most */
  size_t room = size + LONGEST, end = 0;
  utf8proc_int32_t *code = room < SIZE_MAX / 16 ? malloc(room * sizeof *code) : NULL;
  for (size_t at = 0; code != NULL && at < size;) {
    uint32_t character;
    at += utf8_read(text + at, size - at, &character);
    if (room - end < LONGEST) {
      utf8proc_int32_t *more = room < SIZE_MAX / 16 ? realloc(code, 2 * room * sizeof *code) : NULL;
      if (more == NULL) free(code);
      code = more;
      room *= 2;
      if (code == NULL) break;
    }
    int last_class = 0; /* only used where text is split into graphemes */
    utf8proc_ssize_t wrote = utf8proc_decompose_char((utf8proc_int32_t)character, code + end,
                                                     LONGEST, UTF8PROC_DECOMPOSE, &last_class);
    if (wrote > 0 && wrote <= LONGEST) end += (size_t)wrote;
  }
  *out = code;
  *n = end;
  return code != NULL ? GL_OK : gl_fail_memory(err, "the normal form of a text");
}

/* Composes in place and returns the new length, or a negative error of utf8proc. Each U+11A7 is
 * composed apart from what is before it, which changes nothing, for it combines with nothing before
 * it; but utf8proc 2.8 takes it for a final consonant and swallows it after a Hangul syllable. */
static utf8proc_ssize_t compose(utf8proc_int32_t *code, size_t n) {
  enum { BEFORE_FINALS = 0x11a7 };
  size_t end = 0;
  for (size_t first = 0, next; first < n; first = next) {
    for (next = first + 1; next < n && code[next] != BEFORE_FINALS;) ++next;
    utf8proc_ssize_t left = utf8proc_normalize_utf32(code + first, (utf8proc_ssize_t)(next - first),
                                                     (utf8proc_option_t)COMPOSED);
    if (left < 0) return left;
    memmove(code + end, code + first, (size_t)left * sizeof *code);
    end += (size_t)left;
  }
  return (utf8proc_ssize_t)end;
}

static gl_status write_codes(const utf8proc_int32_t *code, size_t n, char **out, size_t *size,
                             gl_error *err) {
  char *to = n < SIZE_MAX / UTF8_LONGEST ? malloc(n * UTF8_LONGEST + 1) : NULL;
  if (to == NULL) return gl_fail_memory(err, "the normal form of a text");
  size_t end = 0;
  for (size_t i = 0; i < n; ++i) end += utf8_write((uint32_t)code[i], to + end);
  to[end] = '\0';
  *out = to;
  *size = end;
  return GL_OK;
}

gl_status nfc_text(const char *text, size_t size, char **out, size_t *n, gl_error *err) {
  utf8proc_int32_t *code, *spare;
  size_t codes;
  *out = NULL;
  *n = size;
  if (is_composed(text, size)) return GL_OK;
  gl_status status = decompose(text, size, &code, &codes, err);
  if (status != GL_OK) return status;
  spare = malloc((codes + 1) * sizeof *spare);
  if (spare != NULL) {
    order_marks(code, codes, spare);
    const utf8proc_ssize_t composed = compose(code, codes);
    status = composed >= 0 ? write_codes(code, (size_t)composed, out, n, err)
                           : gl_fail(err, GL_EINTERNAL, "utf8proc cannot compose a text: %s",
                                     utf8proc_errmsg(composed));
  } else
    status = gl_fail_memory(err, "the normal form of a text");
  free(spare);
  free(code);
  return status;
}
