/* Reads a file of bytes, line by line or block by block. A file that is compressed with gzip or
 * Zstandard is decompressed while it is read; the first bytes decide, not the name. Several members
 * or frames one after the other are read as one text, as gzip -d and zstd -d do.
 *
 *   compressed_reader *r = NULL;
 *   gl_status status = compressed_open(&r, path, err);
 *   compressed_text line;
 *   while (status == GL_OK) {
 *     status = compressed_line(r, &line, MOST, err);
 *     if (status != GL_OK || line.text == NULL) break;
 *     status = handle(line.text, line.size, compressed_line_number(r), err);
 *   }
 *   compressed_close(r);
 *
 * Memory is bounded by the longest line and the window of the format (at most 128 MiB), whatever
 * the size of the file. */
#ifndef GEPOLAB_CORE_BASE_COMPRESSED_H
#define GEPOLAB_CORE_BASE_COMPRESSED_H

#include "core/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct compressed_reader compressed_reader;

typedef struct compressed_text {
  char *text;  /* without the line feed, NUL-terminated, writable; NULL after the last line */
  size_t size; /* bytes before the NUL */
  bool
      has_end; /* the line ends with a line feed: false for the last line of a file that lacks it */
} compressed_text;

/* Opens the file at path; "-" is standard input. Errors: GL_ENOMEM, GL_EIO (cannot be opened). */
gl_status compressed_open(compressed_reader **out, const char *path, gl_error *err);
/* The same for an open stream, which the reader borrows; name is the name in messages. Errors:
 * GL_ENOMEM. */
gl_status compressed_open_stream(compressed_reader **out, FILE *from, const char *name,
                                 gl_error *err);
/* NULL is allowed. Closes the file, unless it was borrowed or is standard input. */
void compressed_close(compressed_reader *r);

/* Reads the next line of at most `most` bytes. line->text is valid until the next call. Errors:
 * GL_ENOMEM, GL_EIO (reading failed), GL_EINPUT (a longer line, damaged or truncated compressed
 * data), each with the name of the file. */
gl_status compressed_line(compressed_reader *r, compressed_text *line, size_t most, gl_error *err);
/* Number of the last line read, from 1. */
size_t compressed_line_number(const compressed_reader *r);
/* Reads the next bytes, at most `size`; *n is 0 only at the end. Errors: as above. */
gl_status compressed_read(compressed_reader *r, char *to, size_t size, size_t *n, gl_error *err);
/* "gzip", "Zstandard", or NULL if the file is not compressed; known after the first read. */
const char *compressed_format(const compressed_reader *r);
/* The name in messages: the path, or "standard input". */
const char *compressed_name(const compressed_reader *r);

#endif
