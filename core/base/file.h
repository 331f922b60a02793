/* Atomic replacement of files: a reader sees the old file or the new one, never a part: written
 * under a temporary name beside the target, flushed to the disk and renamed. For figures, exports,
 * JSON outputs and checkpoints. */
#ifndef GEPOLAB_CORE_BASE_FILE_H
#define GEPOLAB_CORE_BASE_FILE_H

#include "core/base/error.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct file_writer {
  FILE *stream;           /* write here; NULL outside begin .. commit or abandon */
  char *path, *temporary; /* temporary: NULL for a device or a pipe */
} file_writer;

/* Opens a new temporary file in the folder of path, which must exist; of a symbolic link, in the
 * folder of its target. The permissions of an existing file are kept; one that may not be written
 * is refused, and so is a study (GL_EINPUT), which nothing else replaces. A device or a pipe, such
 * as /dev/stdout, is written to directly. GL_EIO, naming path, reason and remedy. After a failure
 * nothing needs releasing. */
gl_status file_begin(file_writer *w, const char *path, gl_error *err);
/* Flushes, syncs and renames over path. On failure (a full disk shows here at the latest) the
 * temporary file is removed and an existing file at path is untouched. Releases *w either way. */
gl_status file_commit(file_writer *w, gl_error *err);
/* Renames the complete file `temporary`, on the same file system and already synced, to path.
 * GL_EINPUT if a file at path exists. On failure `temporary` is left. */
gl_status file_name_new(const char *temporary, const char *path, gl_error *err);
/* Removes the temporary file; path is untouched. Does nothing after a commit. */
void file_abandon(file_writer *w);

/* Makes the folder and its missing parents. GL_EIO names the one that cannot be made. */
gl_status file_make_folder(const char *folder, gl_error *err);

/* Whether both paths name one regular file, also through links; of two that are not there yet,
 * whether they would. */
bool file_same(const char *a, const char *b);
/* Whether the file at path is an SQLite database, as every study is. */
bool file_is_database(const char *path);

/* GL_EIO for a failed operation on path with that errno: what failed, why, what to do. */
gl_status file_fail(const char *path, const char *operation, int reason, gl_error *err);

#endif
