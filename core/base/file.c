/* Writes a file under a temporary name and renames it once it is whole and on the disk. */
#include "core/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *remedy(int reason) {
  switch (reason) {
  case ENOSPC:
  case EDQUOT:
    return "the disk is full; free some space or write elsewhere";
  case EROFS:
    return "the file system is read-only; write elsewhere";
  case EACCES:
  case EPERM:
    return "you may not write there; write elsewhere or change its permissions";
  case ENOENT:
    return "make its folder first";
  case ENOTDIR:
    return "a part of the path is a file, not a folder";
  case EISDIR:
    return "it is a folder; give a file's name";
  default:
    return "check the device, or write elsewhere";
  }
}

gl_status file_fail(const char *path, const char *operation, int reason, gl_error *err) {
  return gl_fail(err, GL_EIO, "%.400s: cannot be %s: %s; %s", path, operation, strerror(reason),
                 remedy(reason));
}

static void release(file_writer *w) {
  free(w->path);
  free(w->temporary);
  *w = (file_writer){0};
}

gl_status file_begin(file_writer *w, const char *path, gl_error *err) {
  size_t size = strlen(path) + 32;
  struct stat there;
  *w = (file_writer){0};
  if (stat(path, &there) == 0 && S_ISDIR(there.st_mode))
    return file_fail(path, "written", EISDIR, err);
  w->path = strdup(path);
  w->temporary = malloc(size);
  if (w->path == NULL || w->temporary == NULL) {
    release(w);
    return gl_fail_memory(err, "a file's name");
  }
  snprintf(w->temporary, size, "%s.%ld.tmp", path, (long)getpid());
  unlink(w->temporary); /* a killed process of the same number may have left one */
  int descriptor = open(w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor >= 0) w->stream = fdopen(descriptor, "wb");
  if (w->stream != NULL) return GL_OK;
  int reason = errno;
  if (descriptor >= 0) {
    close(descriptor);
    unlink(w->temporary);
  }
  release(w);
  return file_fail(path, "written", reason, err);
}

/* Makes the rename itself durable; a folder that cannot be synced (some network file systems) still
 * has the file. */
static void sync_folder(const char *path) {
  char *folder = strdup(path);
  if (folder == NULL) return;
  char *slash = strrchr(folder, '/');
  if (slash != NULL) slash[slash == folder] = '\0';
  int descriptor = open(slash == NULL ? "." : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  free(folder);
  if (descriptor < 0) return;
  fsync(descriptor);
  close(descriptor);
}

gl_status file_commit(file_writer *w, gl_error *err) {
  int reason = 0;
  errno = 0;
  if (ferror(w->stream) || fflush(w->stream) != 0 || fsync(fileno(w->stream)) != 0)
    reason = errno != 0 ? errno : EIO;
  if (fclose(w->stream) != 0 && reason == 0) reason = errno;
  w->stream = NULL;
  if (reason == 0 && rename(w->temporary, w->path) != 0) reason = errno;
  if (reason == 0)
    sync_folder(w->path);
  else
    unlink(w->temporary);
  gl_status status = reason == 0 ? GL_OK : file_fail(w->path, "written", reason, err);
  release(w);
  return status;
}

void file_abandon(file_writer *w) {
  if (w->stream != NULL) fclose(w->stream);
  if (w->temporary != NULL) unlink(w->temporary);
  release(w);
}
