/* The checkpoints of one run in a folder: numbered, the newest found, old ones removed. */
#include "experiments/train/checkpoint_folder.h"

#include "core/base/file.h"
#include "experiments/base/build.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <gen/version.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct checkpoint_folder {
  char *path, *recipe;
  int lock;
  size_t keep;
  uint64_t build;    /* this program's */
  uint64_t *damaged; /* [n_damaged] updates of files that were found damaged */
  size_t n_damaged;
};

/* --- names --- */

enum { DIGITS = 12 };
static const char prefix[] = "update-", suffix[] = ".checkpoint";

static gl_status name_of(char path[PATH_MAX], const char *folder, uint64_t updates, gl_error *err) {
  int n = snprintf(path, PATH_MAX, "%s/%s%0*llu%s", folder, prefix, DIGITS,
                   (unsigned long long)updates, suffix);
  if (n > 0 && n < PATH_MAX) return GL_OK;
  return gl_fail(err, GL_EINPUT, "the path '%.100s…' is too long", folder);
}

/* What follows the digits of one of our names, NULL for other names. */
static const char *after_digits(const char *name, uint64_t *updates) {
  if (strncmp(name, prefix, sizeof prefix - 1) != 0) return NULL;
  name += sizeof prefix - 1;
  *updates = 0;
  for (int i = 0; i < DIGITS; ++i, ++name) {
    if (*name < '0' || *name > '9') return NULL;
    *updates = 10 * *updates + (uint64_t)(*name - '0');
  }
  return name;
}

static int is_checkpoint(const char *name, uint64_t *updates) {
  const char *rest = after_digits(name, updates);
  return rest != NULL && strcmp(rest, suffix) == 0;
}

/* What a killed process left of a file it was writing (core/base/file.h). */
static int is_unfinished(const char *name) {
  uint64_t updates;
  const char *rest = after_digits(name, &updates);
  if (rest == NULL || strncmp(rest, suffix, sizeof suffix - 1) != 0) return 0;
  rest += sizeof suffix - 1;
  size_t digits = rest[0] == '.' ? strspn(rest + 1, "0123456789") : 0;
  return digits > 0 && strcmp(rest + 1 + digits, ".tmp") == 0;
}

static int newest_first(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x < y) - (x > y);
}

/* Update numbers of the folder's checkpoints, newest first; malloc'd. */
static gl_status list(const char *path, uint64_t **out, size_t *n, gl_error *err) {
  size_t capacity = 0;
  *out = NULL;
  *n = 0;
  DIR *all = opendir(path);
  if (all == NULL) return file_fail(path, "read", errno, err);
  for (struct dirent *e; (e = readdir(all)) != NULL;) {
    uint64_t updates;
    if (!is_checkpoint(e->d_name, &updates)) continue;
    if (*n == capacity) {
      capacity = 2 * capacity + 8;
      uint64_t *grown = realloc(*out, capacity * sizeof *grown);
      if (grown == NULL) {
        closedir(all);
        free(*out);
        *out = NULL;
        return gl_fail_memory(err, "the list of checkpoints");
      }
      *out = grown;
    }
    (*out)[(*n)++] = updates;
  }
  closedir(all);
  if (*n > 0) qsort(*out, *n, sizeof **out, newest_first);
  return GL_OK;
}

/* --- opening --- */

/* Folders down to path. One that a finished run just removed because it was empty (a study's, which
 * holds those of all cells) is made again. */
static gl_status make_folders(const char *path, gl_error *err) {
  enum { TRIES = 5 };
  char part[PATH_MAX];
  size_t length = strlen(path);
  int tries = 0;
  if (length == 0 || length >= sizeof part)
    return gl_fail(err, GL_EINPUT, "'%.100s' is no folder for checkpoints", path);
  for (size_t i = 1; i <= length; ++i) {
    struct stat s;
    if (path[i] != '/' && path[i] != '\0') continue;
    memcpy(part, path, i);
    part[i] = '\0';
    if ((stat(part, &s) == 0 && S_ISDIR(s.st_mode)) || mkdir(part, 0777) == 0) continue;
    if (errno == EEXIST && stat(part, &s) == 0 && S_ISDIR(s.st_mode)) continue; /* made meanwhile */
    if (errno != ENOENT || tries++ == TRIES)
      return file_fail(part, "made", errno == EEXIST ? ENOTDIR : errno, err);
    i = 0;
  }
  return GL_OK;
}

/* A process that was just killed may hold its lock for a moment. */
static gl_status lock(checkpoint_folder *f, gl_error *err) {
  enum { TRIES = 100 };
  f->lock = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (f->lock < 0) return file_fail(f->path, "opened", errno, err);
  for (int i = 0; flock(f->lock, LOCK_EX | LOCK_NB) != 0; ++i) {
    if (errno != EWOULDBLOCK && errno != EINTR) return GL_OK; /* no locks on this file system */
    if (i == TRIES)
      return gl_fail(err, GL_EIO,
                     "%.400s: another gepolab keeps its checkpoints there; wait for it to end, or "
                     "give another folder",
                     f->path);
    nanosleep(&(struct timespec){0, 20000000}, NULL);
  }
  return GL_OK;
}

static void remove_unfinished(const checkpoint_folder *f) {
  DIR *all = opendir(f->path);
  if (all == NULL) return;
  for (struct dirent *e; (e = readdir(all)) != NULL;)
    if (is_unfinished(e->d_name)) unlinkat(f->lock, e->d_name, 0);
  closedir(all);
}

gl_status checkpoint_folder_open(checkpoint_folder **out, const char *path, const char *recipe,
                                 size_t keep, gl_error *err) {
  *out = NULL;
  gl_status status = make_folders(path, err);
  if (status != GL_OK) return status;
  if (access(path, W_OK | X_OK) != 0) return file_fail(path, "written", errno, err);
  checkpoint_folder *f = calloc(1, sizeof *f);
  if (f == NULL) return gl_fail_memory(err, "a folder of checkpoints");
  *f = (checkpoint_folder){.path = strdup(path),
                           .recipe = strdup(recipe),
                           .lock = -1,
                           .keep = keep,
                           .build = build_number()};
  if (f->path == NULL || f->recipe == NULL) status = gl_fail_memory(err, "a folder of checkpoints");
  if (status == GL_OK) status = lock(f, err);
  if (status == GL_OK) {
    remove_unfinished(f);
    *out = f;
  } else {
    checkpoint_folder_close(f);
  }
  return status;
}

void checkpoint_folder_close(checkpoint_folder *f) {
  if (f == NULL) return;
  if (f->lock >= 0) close(f->lock);
  free(f->path);
  free(f->recipe);
  free(f->damaged);
  free(f);
}

/* --- reading --- */

static gl_status refuse_other(const checkpoint_folder *f, const checkpoint *c, const char *path,
                              gl_error *err) {
  if (strcmp(c->recipe, f->recipe) != 0)
    return gl_fail(err, GL_EINPUT,
                   "%.300s: is of another recipe than this one; give another folder, or delete "
                   "that folder's checkpoints to start this run over",
                   path);
  if (strcmp(c->code_version, GEPOLAB_VERSION) != 0)
    return gl_fail(err, GL_EINPUT,
                   "%.300s: was written by gepolab %s and this is %s, which may compute "
                   "differently; finish the run with that version, or delete the folder's "
                   "checkpoints to start it over",
                   path, c->code_version, GEPOLAB_VERSION);
  return GL_OK;
}

/* *damaged: the file is not whole, *err says how, and an older one may do. f NULL: any recipe's and
 * version's will do. */
static gl_status find_one(const checkpoint_folder *f, const char *path, checkpoint *c, FILE **state,
                          int *damaged, gl_error *err) {
  *damaged = 0;
  FILE *from = fopen(path, "rb");
  if (from == NULL) return file_fail(path, "read", errno, err);
  gl_error why = {0};
  gl_status status = checkpoint_verify(from, &why);
  *damaged = status != GL_OK;
  if (status == GL_OK) status = checkpoint_read(c, from, &why);
  if (status != GL_OK)
    gl_fail(err, status, "%.300s: %.400s", path, why.text);
  else if (f != NULL)
    status = refuse_other(f, c, path, err);
  if (status == GL_OK) {
    *state = from;
  } else {
    fclose(from);
    checkpoint_fini(c);
  }
  return status;
}

/* Not refused: most changes of a program change no result, and a run may be days old. */
static const char other_build[] = "the checkpoint was written by another build of this version of "
                                  "gepolab; the result is that of a "
                                  "run in one piece only if both compute alike";

static void add_note(char note[CHECKPOINT_NOTE_SIZE], const char *why) {
  size_t used = strlen(note);
  int room = (int)(CHECKPOINT_NOTE_SIZE - used) - 3; /* "; " and the end */
  if (room > 0) sprintf(note + used, "%s%.*s", used > 0 ? "; " : "", room, why);
}

gl_status checkpoint_folder_find(checkpoint_folder *f, checkpoint *c, FILE **state,
                                 char note[CHECKPOINT_NOTE_SIZE], gl_error *err) {
  size_t n = 0;
  *c = (checkpoint){0};
  *state = NULL;
  note[0] = '\0';
  free(f->damaged);
  f->n_damaged = 0;
  gl_status status = list(f->path, &f->damaged, &n, err);
  for (size_t i = 0; i < n && status == GL_OK; ++i) {
    char path[PATH_MAX];
    gl_error why = {0};
    int damaged = 0;
    status = name_of(path, f->path, f->damaged[i], err);
    if (status != GL_OK) break;
    status = find_one(f, path, c, state, &damaged, &why);
    if (status == GL_OK) break;
    if (!damaged) return gl_fail(err, status, "%s", why.text);
    f->n_damaged = i + 1; /* newest first: all before it are damaged too */
    add_note(note, why.text);
    status = GL_OK;
  }
  if (status == GL_OK && n > 0 && f->n_damaged == n)
    status = gl_fail(err, GL_EIO,
                     "no checkpoint can be used (%s); delete them to start the run over, or give "
                     "another folder",
                     note);
  else if (status == GL_OK && *state != NULL && c->build != f->build && c->build != 0 &&
           f->build != 0)
    add_note(note, other_build);
  return status;
}

gl_status checkpoint_folder_list(const char *path, uint64_t **updates, size_t *n, gl_error *err) {
  gl_status status = list(path, updates, n, err);
  for (size_t i = 0; status == GL_OK && i < *n / 2; ++i) {
    const uint64_t other = (*updates)[i];
    (*updates)[i] = (*updates)[*n - 1 - i];
    (*updates)[*n - 1 - i] = other;
  }
  return status;
}

gl_status checkpoint_folder_look(const char *path, uint64_t updates, checkpoint *c, FILE **state,
                                 gl_error *err) {
  char name[PATH_MAX];
  int damaged = 0;
  *c = (checkpoint){0};
  *state = NULL;
  gl_status status = name_of(name, path, updates, err);
  return status == GL_OK ? find_one(NULL, name, c, state, &damaged, err) : status;
}

/* --- writing --- */

static int is_damaged(const checkpoint_folder *f, uint64_t updates) {
  for (size_t i = 0; i < f->n_damaged; ++i)
    if (f->damaged[i] == updates) return 1;
  return 0;
}

static void repaired(checkpoint_folder *f, uint64_t updates) {
  for (size_t i = 0; i < f->n_damaged; ++i)
    if (f->damaged[i] == updates) f->damaged[i--] = f->damaged[--f->n_damaged];
}

/* Removes whole checkpoints up to this one beyond the number to keep, and damaged ones: by now
 * there is a better one. */
static void prune(checkpoint_folder *f, uint64_t updates) {
  uint64_t *all = NULL;
  size_t n = 0, kept = 0;
  if (list(f->path, &all, &n, NULL) != GL_OK) return;
  for (size_t i = 0; i < n; ++i) {
    char path[PATH_MAX];
    if (all[i] > updates) continue;
    int damaged = is_damaged(f, all[i]);
    if (!damaged && kept++ < f->keep) continue;
    if (name_of(path, f->path, all[i], NULL) == GL_OK && unlink(path) == 0 && damaged)
      repaired(f, all[i]);
  }
  free(all);
}

gl_status checkpoint_folder_save(checkpoint_folder *f, checkpoint *c, const learner *l,
                                 gl_error *err) {
  char path[PATH_MAX];
  file_writer w;
  gl_error why = {0};
  int reason = 0;
  c->recipe = f->recipe;
  c->build = f->build;
  gl_status status = name_of(path, f->path, c->n_steps, err);
  if (status != GL_OK) return status;
  status = file_begin(&w, path, &why);
  if (status == GL_OK) {
    status = checkpoint_write(c, l, w.stream, &reason, &why);
    if (status == GL_OK) {
      status = file_commit(&w, &why);
    } else {
      file_abandon(&w);
      if (reason != 0) {
        gl_error_clear(&why);
        status = file_fail(path, "written", reason, &why);
      }
    }
  }
  if (status != GL_OK)
    return gl_fail(err, status,
                   "%.600s; the run stops after update %zu, and goes on from the checkpoint before "
                   "when it is started again",
                   why.text, c->n_steps);
  repaired(f, c->n_steps);
  prune(f, c->n_steps);
  return GL_OK;
}

void checkpoint_folder_clear(const char *path) {
  DIR *all = opendir(path);
  if (all == NULL) return;
  int folder = dirfd(all);
  for (struct dirent *e; (e = readdir(all)) != NULL;) {
    uint64_t updates;
    if (is_checkpoint(e->d_name, &updates) || is_unfinished(e->d_name) ||
        strncmp(e->d_name, LEARNER_KEEPS, sizeof LEARNER_KEEPS - 1) == 0)
      unlinkat(folder, e->d_name, 0);
  }
  closedir(all);
  rmdir(path);
}
