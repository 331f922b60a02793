/* Writes a file under a temporary name and renames it when it is complete and on disk. */
#include "core/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What the user can do about a failed file operation with this errno. */
static const char *file_fix(int reason) {
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
  case ENXIO:
    return "nobody reads this pipe; start its reader first, or name a file";
  case EISDIR:
    return "it is a folder; give a file's name";
  default:
    return "check the device, or write elsewhere";
  }
}

gl_status file_fail(const char *path, const char *operation, int reason, gl_error *err) {
  return gl_fail(err, GL_EIO, "%.400s: cannot be %s: %s; %s", path, operation, strerror(reason),
                 file_fix(reason));
}

/* Runs stat() on the folder part of path; sets *name to path without the folder. Returns 0, or -1.
 */
static int look_at_folder(const char *path, struct stat *there, const char **name) {
  const char *slash = strrchr(path, '/');
  *name = slash == NULL ? path : slash + 1;
  if (slash == NULL) return stat(".", there);
  char *folder = strndup(path, (size_t)(*name - path));
  const int code = folder == NULL ? -1 : stat(folder, there);
  free(folder);
  return code;
}

bool file_same(const char *a, const char *b) {
  struct stat x, y;
  const bool is_a = stat(a, &x) == 0, is_b = stat(b, &y) == 0;
  if (is_a && is_b) return S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
  const char *name_a, *name_b;
  return !is_a && !is_b && look_at_folder(a, &x, &name_a) == 0 &&
         look_at_folder(b, &y, &name_b) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino &&
         strcmp(name_a, name_b) == 0;
}

bool file_is_regular(const char *path) {
  struct stat there;
  return stat(path, &there) == 0 && S_ISREG(there.st_mode);
}

bool file_is_folder(const char *path) {
  struct stat there;
  return stat(path, &there) == 0 && S_ISDIR(there.st_mode);
}

bool name_ends_with(const char *name, size_t n, const char *ending) {
  const size_t m = strlen(ending);
  return n > m && memcmp(name + n - m, ending, m) == 0;
}

size_t file_uncompressed_length(const char *name) {
  const size_t n = strlen(name);
  return n - (name_ends_with(name, n, ".gz") ? 3u : name_ends_with(name, n, ".zst") ? 4u : 0u);
}

bool file_is_database(const char *path) {
  static const char head[16] = "SQLite format 3";
  char found[sizeof head] = {0};
  if (!file_is_regular(path)) return false;
  FILE *from = fopen(path, "rb");
  const size_t n = from != NULL ? fread(found, 1, sizeof found, from) : 0;
  if (from != NULL) fclose(from);
  return n == sizeof head && memcmp(found, head, sizeof head) == 0;
}

static void file_release(file_writer *w) {
  free(w->path);
  free(w->temporary);
  *w = (file_writer){0};
}

/* Determines whether path is a regular file, which is replaced (a device or a pipe is written to
 * directly), and the permissions of the new file. */
static gl_status look_at(const char *path, int *replaced, mode_t *mode, gl_error *err) {
  struct stat there;
  *replaced = 1;
  *mode = 0;
  if (stat(path, &there) != 0) return GL_OK;
  if (S_ISDIR(there.st_mode)) return file_fail(path, "written", EISDIR, err);
  /* checked here because a rename ignores the file's permissions */
  if (access(path, W_OK) != 0) return file_fail(path, "written", errno, err);
  if (file_is_database(path))
    return gl_fail(err, GL_EINPUT, "%.400s is a study, which would be lost; name another file",
                   path);
  *replaced = S_ISREG(there.st_mode);
  *mode = there.st_mode & 0777;
  return GL_OK;
}

/* Opens a new file next to w->path, with the permissions of the old one; -1 with errno on failure.
 */
static int open_beside(const file_writer *w, mode_t mode) {
  unlink(w->temporary); /* a killed process with the same PID may have left one */
  int descriptor = open(w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor >= 0 && mode != 0 && fchmod(descriptor, mode) != 0) {
    int reason = errno;
    close(descriptor);
    unlink(w->temporary);
    errno = reason;
    return -1;
  }
  return descriptor;
}

/* Opens a device or a pipe. Without O_NONBLOCK a pipe would wait for a reader, perhaps for ever;
 * the writes themselves do wait. -1 with errno. */
static int open_special(const char *path) {
  const int descriptor = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  const int flags = descriptor >= 0 ? fcntl(descriptor, F_GETFL) : -1;
  if (flags >= 0) (void)fcntl(descriptor, F_SETFL, flags & ~O_NONBLOCK);
  return descriptor;
}

gl_status file_begin(file_writer *w, const char *path, gl_error *err) {
  int replaced;
  mode_t mode;
  struct stat there;
  *w = (file_writer){0};
  gl_status status = look_at(path, &replaced, &mode, err);
  if (status != GL_OK) return status;
  if (lstat(path, &there) == 0 && S_ISLNK(there.st_mode))
    w->path = realpath(path, NULL); /* replaces the target of a link, not the link */
  if (w->path == NULL) w->path = strdup(path);
  const size_t size = w->path != NULL ? strlen(w->path) + 32 : 0;
  if (replaced && w->path != NULL) w->temporary = malloc(size);
  if (w->path == NULL || (replaced && w->temporary == NULL)) {
    file_release(w);
    return gl_fail_memory(err, "a file's name");
  }
  if (replaced) snprintf(w->temporary, size, "%s.%ld.tmp", w->path, (long)getpid());
  int descriptor = replaced ? open_beside(w, mode) : open_special(w->path);
  if (descriptor >= 0) w->stream = fdopen(descriptor, "wb");
  if (w->stream != NULL) return GL_OK;
  int reason = errno;
  if (descriptor >= 0) close(descriptor);
  if (descriptor >= 0 && replaced) unlink(w->temporary);
  file_release(w);
  return file_fail(path, "written", reason, err);
}

/* Makes the rename itself durable. If the folder cannot be synced (some network file systems), the
 * file still exists. */
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

/* The errno of an earlier failed write is lost, so another write finds the reason. The file is
 * discarded anyway. */
static int file_reason_of(FILE *stream) {
  errno = 0;
  return write(fileno(stream), "", 1) < 0 && errno != 0 ? errno : EIO;
}

gl_status file_commit(file_writer *w, gl_error *err) {
  int reason = 0;
  errno = 0;
  if (ferror(w->stream))
    reason = file_reason_of(w->stream);
  else if (fflush(w->stream) != 0 || (w->temporary != NULL && fsync(fileno(w->stream)) != 0))
    reason = errno != 0 ? errno : EIO;
  if (fclose(w->stream) != 0 && reason == 0) reason = errno;
  w->stream = NULL;
  if (w->temporary != NULL) {
    if (reason == 0 && rename(w->temporary, w->path) != 0) reason = errno;
    if (reason == 0)
      sync_folder(w->path);
    else
      unlink(w->temporary);
  }
  gl_status status = reason == 0 ? GL_OK : file_fail(w->path, "written", reason, err);
  file_release(w);
  return status;
}

/* Uses link(), which fails if the target exists, while rename() would replace it. Some file systems
 * have no links. */
gl_status file_name_new(const char *temporary, const char *path, gl_error *err) {
  int reason = link(temporary, path) == 0 ? 0 : errno;
  if (reason == 0)
    unlink(temporary);
  else if (reason != EEXIST && access(path, F_OK) != 0 && errno == ENOENT)
    reason = rename(temporary, path) == 0 ? 0 : errno;
  if (reason == EEXIST)
    return gl_fail(err, GL_EINPUT, "%.400s is there already; name a file that is not", path);
  if (reason != 0) return file_fail(path, "written", reason, err);
  sync_folder(path);
  return GL_OK;
}

void file_abandon(file_writer *w) {
  if (w->stream != NULL) fclose(w->stream);
  if (w->temporary != NULL) unlink(w->temporary);
  file_release(w);
}

gl_status file_end(file_writer *w, gl_status status, gl_error *err) {
  if (status == GL_OK) return file_commit(w, err);
  file_abandon(w);
  return status;
}

gl_status file_check(const char *path, gl_error *err) {
  file_writer w;
  int replaced;
  mode_t mode;
  if (path == NULL) return GL_OK;
  gl_status status = look_at(path, &replaced, &mode, err);
  if (status != GL_OK || !replaced) return status;
  status = file_begin(&w, path, err);
  if (status == GL_OK) file_abandon(&w);
  return status;
}

gl_status file_write_text(const char *path, const char *text, gl_error *err) {
  file_writer w;
  const gl_status status = file_begin(&w, path, err);
  if (status != GL_OK) return status;
  fputs(text, w.stream);
  return file_commit(&w, err);
}

gl_status checkpoint_put(FILE *to, const void *bytes, size_t n, gl_error *err) {
  if (fwrite(bytes, 1, n, to) == n) return GL_OK;
  return gl_fail(err, GL_EIO, "cannot write the checkpoint: %s", strerror(errno));
}

gl_status checkpoint_get(FILE *from, void *bytes, size_t n, gl_error *err) {
  if (fread(bytes, 1, n, from) == n) return GL_OK;
  return ferror(from) ? gl_fail(err, GL_EIO, "cannot read the checkpoint: %s", strerror(errno))
                      : gl_fail(err, GL_EINPUT, "the checkpoint is cut short");
}

gl_status file_make_folder(const char *folder, gl_error *err) {
  enum { TRIES = 5 };
  if (folder[0] == '\0') return gl_fail(err, GL_EINPUT, "'' is no name of a folder");
  char *path = strdup(folder);
  if (path == NULL) return gl_fail_memory(err, "a folder's name");
  gl_status status = GL_OK;
  const size_t length = strlen(path);
  int tries = 0;
  for (size_t i = 1; i <= length && status == GL_OK; ++i) {
    if (folder[i] != '/' && folder[i] != '\0') continue;
    const size_t end = i;
    path[end] = '\0';
    const int reason = file_is_folder(path) || mkdir(path, 0777) == 0 ? 0 : errno;
    if (reason == ENOENT && tries++ < TRIES)
      i = 0; /* another process removed a parent meanwhile */
    else if (reason != 0 && !(reason == EEXIST && file_is_folder(path)))
      status = file_fail(path, "made", reason == EEXIST ? ENOTDIR : reason, err);
    path[end] = folder[end];
  }
  free(path);
  return status;
}
