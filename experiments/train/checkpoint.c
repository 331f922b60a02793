/* Checkpoints of a run: the file format, and the folder of numbered files, where the newest is
 * found and old ones are removed. */
#define _GNU_SOURCE /* fopencookie */
#include "experiments/train/checkpoint.h"

#include "core/base/file.h"
#include "core/base/hash.h"
#include "experiments/base/memory.h"
#include "experiments/base/program.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <gen/version.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

/* The file formats. 1 had sizes of records instead of layout and build, and the checksum of
 * core/base/hash.h. 3 adds to 2 records of evaluation sets, with their number after the head. 4
 * adds to 3 the number of lengths, and 5 adds to 4 the number of fates, both after that. Runs that
 * need none of these are written as 2. */
enum {
  CHECKPOINT_FORMAT = 2,
  FORMAT_OF_HASH = 1,
  FORMAT_OF_SETS = 3,
  FORMAT_OF_ROUNDS = 4,
  FORMAT_OF_FATES = 5
};
static const char magic[8] = "GLrun\r\n\x1a";

/* All members have 8 bytes, so there is no padding. */
typedef struct head {
  char magic[8];
  uint64_t format, layout, build;
  uint64_t recipe_size, n_steps, n_evals, broken, begun, responses, n_batches;
  double wall_s;
  char code_version[CHECKPOINT_VERSION_SIZE];
} head;

typedef struct tail {
  uint64_t size, sum; /* size and checksum of all bytes before the tail */
} tail;

/* A hash of the layout of records: the metrics' names in order, and sizes. */
static uint64_t layout(void) {
  const uint64_t sizes[] = {sizeof(step_record), sizeof(eval_record)};
  uint64_t hash = hash_64(HASH_64_START, sizes, sizeof sizes);
  for (int m = 0; m < METRIC_COUNT; ++m) {
    const char *name = metric_about((metric)m)->name;
    hash = hash_64(hash, name, strlen(name) + 1);
  }
  return hash;
}

void checkpoint_fini(checkpoint *c) {
  for (size_t i = 0; i < c->n_batches; ++i) batch_fini(&c->batches[i].drawn);
  free(c->recipe);
  free(c->steps);
  free(c->evals);
  free(c->set_evals);
  free(c->lengths);
  free(c->fates);
  free(c->batches);
  *c = (checkpoint){0};
}

/* --- writing --- */
/* Everything is written through a stream that computes a checksum, so that the learner may write
 * any amount of state. */

typedef struct summing {
  FILE *to;
  checksum sum;
  uint64_t size;
  int reason;
} summing;

static ssize_t sum_and_write(void *cookie, const char *bytes, size_t size) {
  summing *s = cookie;
  errno = 0;
  if (fwrite(bytes, 1, size, s->to) != size) {
    if (s->reason == 0) s->reason = errno != 0 ? errno : EIO;
    return 0;
  }
  checksum_add(&s->sum, bytes, size);
  s->size += size;
  return (ssize_t)size;
}

static void write_items(FILE *to, const void *data, size_t size, size_t n) {
  if (n > 0) fwrite(data, size, n, to); /* the stream records an error */
}

static gl_status write_body(const checkpoint *c, const learner *l, FILE *to, gl_error *err) {
  const uint64_t n_set_evals = c->n_set_evals, n_lengths = c->n_lengths, n_fates = c->n_fates;
  const int has_rounds = n_lengths != (uint64_t)c->begun * c->responses;
  head h = {.format = n_fates > 0       ? FORMAT_OF_FATES
                      : has_rounds      ? FORMAT_OF_ROUNDS
                      : n_set_evals > 0 ? FORMAT_OF_SETS
                                        : CHECKPOINT_FORMAT,
            .layout = layout(),
            .build = c->build,
            .recipe_size = strlen(c->recipe),
            .n_steps = c->n_steps,
            .n_evals = c->n_evals,
            .broken = c->broken,
            .begun = c->begun,
            .responses = c->responses,
            .n_batches = c->n_batches,
            .wall_s = c->wall_s};
  memcpy(h.magic, magic, sizeof magic);
  snprintf(h.code_version, sizeof h.code_version, "%s", GEPOLAB_VERSION);
  write_items(to, &h, sizeof h, 1);
  if (h.format >= FORMAT_OF_SETS) write_items(to, &n_set_evals, sizeof n_set_evals, 1);
  if (h.format >= FORMAT_OF_ROUNDS) write_items(to, &n_lengths, sizeof n_lengths, 1);
  if (h.format >= FORMAT_OF_FATES) write_items(to, &n_fates, sizeof n_fates, 1);
  write_items(to, c->recipe, 1, h.recipe_size);
  write_items(to, c->steps, sizeof *c->steps, c->n_steps);
  write_items(to, c->evals, sizeof *c->evals, c->n_evals);
  write_items(to, c->set_evals, sizeof *c->set_evals, c->n_set_evals);
  write_items(to, c->lengths, sizeof *c->lengths, c->n_lengths);
  write_items(to, c->fates, sizeof *c->fates, c->n_fates);
  gl_status status = GL_OK;
  for (size_t i = 0; i < c->n_batches && status == GL_OK; ++i) {
    write_items(to, &c->batches[i].number, sizeof c->batches[i].number, 1);
    status = batch_write(&c->batches[i].drawn, to, err);
  }
  return status == GL_OK ? l->ops->save(l->self, to, err) : status;
}

gl_status checkpoint_write(const checkpoint *c, const learner *l, FILE *to, int *reason,
                           gl_error *err) {
  summing s = {.to = to};
  checksum_begin(&s.sum);
  *reason = 0;
  FILE *through = fopencookie(&s, "wb", (cookie_io_functions_t){.write = sum_and_write});
  if (through == NULL) return gl_fail_memory(err, "a checkpoint");
  gl_status status = write_body(c, l, through, err);
  int failed = ferror(through);
  failed = fclose(through) != 0 || failed;
  const tail end = {s.size, checksum_of(&s.sum)};
  if (status == GL_OK && !failed && fwrite(&end, sizeof end, 1, to) != 1) s.reason = errno;
  *reason = s.reason;
  if (status == GL_OK && (failed || s.reason != 0))
    status = gl_fail(err, GL_EIO, "cannot write a checkpoint: %s", strerror(s.reason));
  return status;
}

/* --- whole or not --- */

/* Computes the checksum of `left` bytes from the stream, with the algorithm of that format; of
 * fewer if the stream ends. */
static tail sum_up(FILE *from, uint64_t left, uint64_t format) {
  char piece[65536];
  checksum sum;
  tail all = {.sum = HASH_64_START};
  checksum_begin(&sum);
  while (left > 0) {
    size_t want = left < sizeof piece ? (size_t)left : sizeof piece;
    size_t got = fread(piece, 1, want, from);
    if (got == 0) break;
    if (format == FORMAT_OF_HASH)
      all.sum = hash_64(all.sum, piece, got);
    else
      checksum_add(&sum, piece, got);
    all.size += got;
    left -= got;
  }
  if (format != FORMAT_OF_HASH) all.sum = checksum_of(&sum);
  return all;
}

gl_status checkpoint_verify(FILE *from, gl_error *err) {
  head h;
  tail written;
  off_t end = fseeko(from, 0, SEEK_END) == 0 ? ftello(from) : -1;
  rewind(from);
  if (end < 0) return gl_fail(err, GL_EIO, "cannot be read: %s", strerror(errno));
  if ((uint64_t)end < sizeof(head) + sizeof(tail))
    return gl_fail(err, GL_EINPUT, "cut short: only %lld bytes are left", (long long)end);
  const uint64_t size = (uint64_t)end - sizeof(tail);
  int whole = fread(&h, sizeof h, 1, from) == 1;
  rewind(from);
  const tail sum = sum_up(from, size, whole ? h.format : CHECKPOINT_FORMAT);
  whole = whole && sum.size == size && fread(&written, sizeof written, 1, from) == 1;
  int reason = ferror(from) ? errno : 0;
  rewind(from);
  if (reason != 0) return gl_fail(err, GL_EIO, "cannot be read: %s", strerror(reason));
  if (!whole || written.size != sum.size || written.sum != sum.sum)
    return gl_fail(err, GL_EINPUT, "cut short or changed: its checksum does not match");
  return GL_OK;
}

/* --- reading --- */

/* Reads n items and adds a zeroed one. It reads in pieces of growing size, so that a false count
 * reaches the end of the file before memory is exhausted. Does nothing if *status is an error
 * already. */
static void *read_items(size_t size, uint64_t n, FILE *from, gl_status *status, gl_error *err) {
  enum { FIRST = 4096 };
  char *data = must_alloc(1, size, "a checkpoint");
  for (size_t have = 0; have < n && *status == GL_OK;) {
    const uint64_t twice = 2 * (uint64_t)have + FIRST;
    const size_t room = (size_t)(twice < n ? twice : n);
    data = must_resize(data, room + 1, size, "a checkpoint");
    if (fread(data + have * size, size, room - have, from) != room - have)
      *status = ferror(from)
                    ? gl_fail(err, GL_EIO, "cannot be read: %s", strerror(errno))
                    : gl_fail(err, GL_EINPUT, "cut short: its counts promise more than it has");
    else
      memset(data + room * size, 0, size);
    have = room;
  }
  return data;
}

static gl_status get_batches(checkpoint *c, uint64_t n, FILE *from, gl_error *err) {
  for (uint64_t i = 0; i < n; ++i) {
    uint64_t number;
    if (fread(&number, sizeof number, 1, from) != 1)
      return gl_fail(err, GL_EINPUT, "cut short before batch %llu", (unsigned long long)i);
    checkpoint_batch *b = MUST_ADD(c->batches, c->n_batches, "a checkpoint's batches");
    b->number = number;
    gl_status status = batch_read(&b->drawn, from, err);
    if (status != GL_OK) return status;
  }
  return GL_OK;
}

/* Reads the counts that some formats have after the head. */
static gl_status get_counts(const head *h, FILE *from, uint64_t *n_set_evals, uint64_t *n_lengths,
                            uint64_t *n_fates, gl_error *err) {
  *n_set_evals = *n_fates = 0;
  if (h->responses != 0 && h->begun > UINT64_MAX / 8 / h->responses)
    return gl_fail(err, GL_EINPUT, "a count in it is impossible");
  *n_lengths = h->begun * h->responses;
  if ((h->format >= FORMAT_OF_SETS && fread(n_set_evals, sizeof *n_set_evals, 1, from) != 1) ||
      (h->format >= FORMAT_OF_ROUNDS && fread(n_lengths, sizeof *n_lengths, 1, from) != 1) ||
      (h->format >= FORMAT_OF_FATES && fread(n_fates, sizeof *n_fates, 1, from) != 1))
    return gl_fail(err, GL_EINPUT, "cut short behind its head");
  return GL_OK;
}

static gl_status read_checkpoint_body(checkpoint *c, const head *h, FILE *from, gl_error *err) {
  uint64_t n_set_evals, n_lengths, n_fates;
  if (get_counts(h, from, &n_set_evals, &n_lengths, &n_fates, err) != GL_OK) return GL_EINPUT;
  gl_status status = GL_OK;
  c->recipe = read_items(1, h->recipe_size, from, &status, err);
  c->steps = read_items(sizeof *c->steps, h->n_steps, from, &status, err);
  c->evals = read_items(sizeof *c->evals, h->n_evals, from, &status, err);
  c->set_evals = read_items(sizeof *c->set_evals, n_set_evals, from, &status, err);
  c->lengths = read_items(sizeof *c->lengths, n_lengths, from, &status, err);
  c->fates = read_items(sizeof *c->fates, n_fates, from, &status, err);
  if (status != GL_OK) return status;
  c->n_set_evals = (size_t)n_set_evals;
  c->n_lengths = (size_t)n_lengths;
  c->n_fates = (size_t)n_fates;
  for (size_t i = 0; i < c->n_set_evals; ++i)
    c->set_evals[i].set[sizeof c->set_evals[i].set - 1] = '\0';
  for (size_t i = 0; i < c->n_fates; ++i)
    if (c->fates[i].fate >= FATES || !(c->fates[i].tokens >= 1))
      return gl_fail(err, GL_EINPUT, "no checkpoint: a response in it has no fate that there is");
  if (strlen(c->recipe) != h->recipe_size)
    return gl_fail(err, GL_EINPUT, "no checkpoint: its recipe is no text");
  return get_batches(c, h->n_batches, from, err);
}

gl_status checkpoint_read(checkpoint *c, FILE *from, gl_error *err) {
  head h;
  *c = (checkpoint){0};
  if (fread(&h, sizeof h, 1, from) != 1)
    return gl_fail(err, GL_EINPUT, "no checkpoint: it is shorter than a checkpoint's head");
  if (memcmp(h.magic, magic, sizeof magic) != 0)
    return gl_fail(err, GL_EINPUT, "no checkpoint: its first bytes are others");
  const int known = h.format >= CHECKPOINT_FORMAT && h.format <= FORMAT_OF_FATES;
  if (!known || h.layout != layout())
    return gl_fail(err, GL_EINPUT,
                   "was written by gepolab %.*s in a form that this program, %s, does not read; "
                   "finish the run with that one, or delete the folder's checkpoints to start it "
                   "over",
                   (int)sizeof h.code_version - 1, h.code_version, GEPOLAB_VERSION);
  gl_status status = read_checkpoint_body(c, &h, from, err);
  c->n_steps = (size_t)h.n_steps;
  c->n_evals = (size_t)h.n_evals;
  c->broken = h.broken;
  c->wall_s = h.wall_s;
  c->build = h.build;
  c->begun = (size_t)h.begun;
  c->responses = (size_t)h.responses;
  snprintf(c->code_version, sizeof c->code_version, "%.*s", (int)sizeof h.code_version - 1,
           h.code_version);
  if (status != GL_OK) checkpoint_fini(c);
  return status;
}

/* --- the folder --- */

struct checkpoint_folder {
  char *path, *recipe;
  int folder; /* descriptor of the folder, which also holds its lock; -1: not open */
  size_t keep;
  uint64_t build;    /* build number of this program */
  uint64_t *damaged; /* [n_damaged] numbers of updates of damaged files */
  size_t n_damaged;
};

/* --- names --- */

enum { DIGITS = 12 };
static const char prefix[] = "update-", suffix[] = ".checkpoint";

static gl_status checkpoint_path(char path[PATH_MAX], const char *folder, uint64_t updates,
                                 gl_error *err) {
  int n = snprintf(path, PATH_MAX, "%s/%s%0*llu%s", folder, prefix, DIGITS,
                   (unsigned long long)updates, suffix);
  if (n > 0 && n < PATH_MAX) return GL_OK;
  return gl_fail(err, GL_EINPUT, "the path '%.100s…' is too long", folder);
}

/* The part of a checkpoint's file name after the digits; NULL for other names. */
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

/* 1 for an incomplete file that a killed process left (core/base/file.h). */
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

/* The numbers of updates of the folder's checkpoints, newest first; malloc'd. */
static gl_status list_checkpoints(const char *path, uint64_t **out, size_t *n, gl_error *err) {
  *out = NULL;
  *n = 0;
  DIR *all = opendir(path);
  if (all == NULL) return file_fail(path, "read", errno, err);
  for (struct dirent *e; (e = readdir(all)) != NULL;) {
    uint64_t updates;
    if (is_checkpoint(e->d_name, &updates))
      *(uint64_t *)must_have(ARRAY_ADD(*out, *n), "the list of checkpoints") = updates;
  }
  closedir(all);
  if (*n > 0) qsort(*out, *n, sizeof **out, newest_first);
  return GL_OK;
}

/* --- opening --- */

/* Locks the folder. Retries, because a process that was just killed may hold its lock for a moment.
 */
static gl_status lock_folder(checkpoint_folder *f, gl_error *err) {
  enum { TRIES = 100 };
  f->folder = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (f->folder < 0) return file_fail(f->path, "opened", errno, err);
  for (int i = 0; flock(f->folder, LOCK_EX | LOCK_NB) != 0; ++i) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      return GL_OK; /* the file system does not support locks */
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
    if (is_unfinished(e->d_name)) unlinkat(f->folder, e->d_name, 0);
  closedir(all);
}

gl_status checkpoint_folder_open(checkpoint_folder **out, const char *path, const char *recipe,
                                 size_t keep, gl_error *err) {
  *out = NULL;
  gl_status status = file_make_folder(path, err);
  if (status != GL_OK) return status;
  if (access(path, W_OK | X_OK) != 0) return file_fail(path, "written", errno, err);
  checkpoint_folder *f = MUST_ARRAY(checkpoint_folder, 1, "a folder of checkpoints");
  *f = (checkpoint_folder){.path = must_copy(path, "a folder of checkpoints"),
                           .recipe = must_copy(recipe, "a folder of checkpoints"),
                           .folder = -1,
                           .keep = keep,
                           .build = build_number()};
  status = lock_folder(f, err);
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
  if (f->folder >= 0) close(f->folder);
  free(f->path);
  free(f->recipe);
  free(f->damaged);
  free(f);
}

/* --- reading --- */

/* Refuses a checkpoint of another recipe or another version of gepolab. */
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

/* Reads one checkpoint. *damaged is 1 if the file is incomplete or corrupt (*err has the reason),
 * so that the caller may try an older one. f NULL: accept any recipe and version. */
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

/* A note, not an error: most changes of a program change no result, and a run may have taken days.
 */
static const char other_build[] = "the checkpoint was written by another build of this version of "
                                  "gepolab; the result is that of a "
                                  "run in one piece only if both compute alike";

static void add_note(char note[CHECKPOINT_NOTE_SIZE], const char *why) {
  size_t used = strlen(note);
  int room = (int)(CHECKPOINT_NOTE_SIZE - used) - 3; /* room for "; " and the terminating NUL */
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
  gl_status status = list_checkpoints(f->path, &f->damaged, &n, err);
  for (size_t i = 0; i < n && status == GL_OK; ++i) {
    char path[PATH_MAX];
    gl_error why = {0};
    int damaged = 0;
    status = checkpoint_path(path, f->path, f->damaged[i], err);
    if (status != GL_OK) break;
    status = find_one(f, path, c, state, &damaged, &why);
    if (status == GL_OK) break;
    if (!damaged) return gl_fail(err, status, "%s", why.text);
    f->n_damaged = i + 1; /* newest first: all before it are damaged, too */
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
  gl_status status = list_checkpoints(path, updates, n, err);
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
  gl_status status = checkpoint_path(name, path, updates, err);
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

/* Removes intact checkpoints up to this one beyond the number to keep, and all damaged ones, which
 * are no longer needed. */
static void prune_checkpoints(checkpoint_folder *f, uint64_t updates) {
  uint64_t *all = NULL;
  size_t n = 0, kept = 0;
  if (list_checkpoints(f->path, &all, &n, NULL) != GL_OK) return;
  for (size_t i = 0; i < n; ++i) {
    char path[PATH_MAX];
    if (all[i] > updates) continue;
    int damaged = is_damaged(f, all[i]);
    if (!damaged && kept++ < f->keep) continue;
    if (checkpoint_path(path, f->path, all[i], NULL) == GL_OK && unlink(path) == 0 && damaged)
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
  gl_status status = checkpoint_path(path, f->path, c->n_steps, err);
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
  prune_checkpoints(f, c->n_steps);
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
