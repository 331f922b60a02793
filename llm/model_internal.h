/* What the files of the model share. */
#ifndef GEPOLAB_LLM_MODEL_INTERNAL_H
#define GEPOLAB_LLM_MODEL_INTERNAL_H

#include "llm/model.h"

/* A whole small text file into malloc'd *out (the caller frees); GL_EINPUT beyond `most` bytes or
 * where there is none, GL_EIO where it cannot be read. */
gl_status model_read_text(char **out, size_t *size, const char *path, size_t most, gl_error *err);

#endif
