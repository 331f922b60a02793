/* Prompts and answers from a JSON Lines file: one object a line, UTF-8, of which two keys are
 * taken. The prompt must be text; the answer may be a number, too, and is then kept as it is
 * written. Other keys may hold anything. Blank lines and a byte order mark are passed over.
 *
 * What is refused names file, line and column (in characters): bytes that are no UTF-8, what is not
 * strict JSON, a line that is no object, a key that is missing, there twice, of another type or
 * empty, a NUL in a text, a line longer than DATASET_MAX_LINE, a file without an object.
 * Prefix: dataset_. */
#ifndef GEPOLAB_LLM_TASK_DATASET_H
#define GEPOLAB_LLM_TASK_DATASET_H

#include "core/base/error.h"

#include <stddef.h>

enum { DATASET_MAX_LINE = 4 << 20 };

typedef struct dataset_row {
  char *prompt, *answer; /* owned by the dataset; never empty */
  size_t line;           /* of the file, from 1 */
} dataset_row;

/* One entry for each object, in the order of the file; release with dataset_fini(). */
typedef struct dataset {
  dataset_row *row;
  size_t n;
} dataset;

/* Reads the file at path. GL_EINPUT as above, or where it cannot be opened; GL_EIO if reading
 * fails. On failure *out is empty. */
gl_status dataset_read(dataset *out, const char *path, const char *prompt_key,
                       const char *answer_key, gl_error *err);
/* Same from memory; name stands for the file in messages. */
gl_status dataset_parse(dataset *out, const char *text, size_t size, const char *name,
                        const char *prompt_key, const char *answer_key, gl_error *err);
void dataset_fini(dataset *d);

#endif
