/* Atomic replacement of files: a reader sees either the old file or the complete new one. The file
 * is written under a temporary name beside the target, synced to disk and renamed. Used for
 * figures, exports, JSON output and checkpoints. */
#ifndef GEPOLAB_CORE_BASE_FILE_H
#define GEPOLAB_CORE_BASE_FILE_H

#include "core/base/error.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct file_writer {
  FILE *stream;           /* write here; NULL except between begin and commit or abandon */
  char *path, *temporary; /* temporary is NULL for a device or a pipe */
} file_writer;

/* Opens a new temporary file in the folder of path (of the target, if path is a symbolic link). The
 * folder must exist. The permissions of an existing file are preserved; a file without write
 * permission is refused. A study is refused too, so that other output cannot replace it. A device
 * or a pipe, such as /dev/stdout, is written to directly; a pipe without a reader is refused. After
 * a failure nothing needs to be released. Errors: GL_EIO with path, reason and fix, GL_EINPUT (a
 * study). */
gl_status file_begin(file_writer *w, const char *path, gl_error *err);
/* Flushes, syncs and renames the file to path. If this fails (for example because the disk is
 * full), the temporary file is removed and an existing file at path is unchanged. Releases *w in
 * both cases. */
gl_status file_commit(file_writer *w, gl_error *err);
/* Renames the complete and synced file `temporary`, on the same file system, to path. On failure
 * `temporary` remains. Errors: GL_EIO, GL_EINPUT (path exists). */
gl_status file_name_new(const char *temporary, const char *path, gl_error *err);
/* Removes the temporary file; path is untouched. Does nothing after a commit. */
void file_abandon(file_writer *w);

/* Calls file_commit() if status is GL_OK, otherwise file_abandon(); returns the first error. */
gl_status file_end(file_writer *w, gl_status status, gl_error *err);
/* Checks that file_begin() would succeed, with the same errors; path is untouched. A device or a
 * pipe is not opened, because a pipe's reader would see its end. GL_OK if path is NULL. */
gl_status file_check(const char *path, gl_error *err);
/* Replaces the file by the text. */
gl_status file_write_text(const char *path, const char *text, gl_error *err);

/* Write and read n bytes of a checkpoint. Errors: GL_EIO, GL_EINPUT (the file ends before). */
gl_status checkpoint_put(FILE *to, const void *bytes, size_t n, gl_error *err);
gl_status checkpoint_get(FILE *from, void *bytes, size_t n, gl_error *err);

/* Creates the folder and missing parents; tries again where another process removes an empty parent
 * meanwhile. Errors: GL_EIO, naming the one that cannot be created, GL_EINPUT (no name). */
gl_status file_make_folder(const char *folder, gl_error *err);

/* Whether both paths name the same regular file, also through links. If neither exists, whether
 * they would name the same file. */
bool file_same(const char *a, const char *b);
/* Whether there is a regular file at path, also through links. Opening a pipe may wait for ever. */
bool file_is_regular(const char *path);
/* Whether there is a folder at path, also through links. */
bool file_is_folder(const char *path);
/* Whether the first n bytes of name end with `ending` and have at least one byte before it. */
bool name_ends_with(const char *name, size_t n, const char *ending);
/* Length of the name without a final .gz or .zst. */
size_t file_uncompressed_length(const char *name);
/* Whether the file at path is an SQLite database; every study is one. */
bool file_is_database(const char *path);

/* Returns GL_EIO for a failed operation ("written") on path with that errno: the operation, the
 * reason and the fix. */
gl_status file_fail(const char *path, const char *operation, int reason, gl_error *err);

#endif
