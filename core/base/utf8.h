/* UTF-8, strictly: no surrogates, nothing beyond U+10FFFF, no form longer than needed.
 *
 * Where bytes are no UTF-8, each maximal ill-formed part counts as one U+FFFD: the longest prefix
 * of a well-formed character, or else a single byte (the Unicode Standard 15.0, section 3.9, table
 * 3-8; also what Python's errors="replace" does). */
#ifndef GEPOLAB_CORE_BASE_UTF8_H
#define GEPOLAB_CORE_BASE_UTF8_H

#include "core/base/error.h"

#include <stddef.h>
#include <stdint.h>

enum { UTF8_LONGEST = 4, UTF8_REPLACEMENT = 0xfffd };
#define UTF8_INVALID UINT32_MAX

/* Reads one character of text[size], size > 0: its code point into *code, or UTF8_INVALID. Returns
 * its bytes, those of the ill-formed part if it is invalid; at least 1. */
size_t utf8_read(const char *text, size_t size, uint32_t *code);
/* Writes a character (a Unicode scalar value) without a NUL and returns its bytes, 1 to 4. */
size_t utf8_write(uint32_t code, char text[UTF8_LONGEST]);
/* Bytes before the first ill-formed part; size if there is none. */
size_t utf8_valid_prefix(const char *text, size_t size);
/* text[size] with U+FFFD for every ill-formed part: malloc'd, NUL-terminated, its bytes without the
 * NUL in *n. GL_ENOMEM. */
gl_status utf8_repair(const char *text, size_t size, char **out, size_t *n, gl_error *err);

#endif
