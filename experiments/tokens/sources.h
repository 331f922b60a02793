/* The files of a token-level log: those that were named, and those below folders. Private to this
 * folder. */
#ifndef GEPOLAB_EXPERIMENTS_TOKENS_SOURCES_H
#define GEPOLAB_EXPERIMENTS_TOKENS_SOURCES_H

#include "core/base/error.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct token_source {
  char *path;
  bool in_folder; /* found in a folder, not named itself */
  bool skipped;   /* found in a folder, and no token-level log */
} token_source;

typedef struct token_sources {
  token_source *file;
  size_t n;
} token_sources;

/* Lists the files in the order of the paths; those of a folder in the natural order of their names
 * (numbers by value), folders recursively, without symbolic links to folders. Of a folder only
 * names with .jsonl or .json are listed, also with .gz or .zst. Errors: GL_EIO, GL_EINPUT (a folder
 * without such files). */
gl_status token_sources_list(token_sources *s, const char *const *paths, size_t n, gl_error *err);
void token_sources_fini(token_sources *s);

#endif
