/* Strict UTF-8: no surrogates, nothing beyond U+10FFFF, no overlong forms.
 *
 * Each maximal ill-formed part counts as one U+FFFD: the longest prefix of a well-formed character,
 * or else a single byte (Unicode Standard 15.0, section 3.9, table 3-8; also Python's
 * errors="replace"). */
#ifndef GEPOLAB_CORE_BASE_UTF8_H
#define GEPOLAB_CORE_BASE_UTF8_H

#include "core/base/error.h"

#include <stddef.h>
#include <stdint.h>

enum { UTF8_LONGEST = 4, UTF8_REPLACEMENT = 0xfffd };
#define UTF8_INVALID UINT32_MAX

/* Reads one character of text[size], size > 0: sets *code to its code point, or to UTF8_INVALID.
 * Returns its length in bytes (of the ill-formed part if invalid), at least 1. */
size_t utf8_read(const char *text, size_t size, uint32_t *code);
/* Writes a character (a Unicode scalar value) without a NUL and returns its length, 1 to 4. */
size_t utf8_write(uint32_t code, char text[UTF8_LONGEST]);
/* Number of bytes before the first ill-formed part; size if there is none. */
size_t utf8_valid_prefix(const char *text, size_t size);
/* Copies text[size] with U+FFFD for every ill-formed part: malloc'd, NUL-terminated, *n bytes
 * without the NUL. Errors: GL_ENOMEM. */
gl_status utf8_repair(const char *text, size_t size, char **out, size_t *n, gl_error *err);

#endif
