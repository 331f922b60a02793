/* The table of GEMM plans, a set-associative cache with first-in-first-out replacement; and the
 * file of measured algorithms, which is read line by line from the last position and appended to
 * under a lock. */
#include "llm/backend/cuda/blas_plans.h"

#include "core/base/array.h"
#include "core/base/file.h"
#include "core/base/hash.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- plans --- */

/* A set has plans in ways [0, filled); in a full set, `next` is the oldest. */
typedef struct plan_set {
  unsigned filled, next;
} plan_set;

struct gemm_plans {
  size_t n_sets, key_bytes, plan_bytes, n;
  void (*drop)(void *owner, void *plan);
  void *owner;
  plan_set *sets;
  char *keys, *plans; /* [n_sets * GEMM_PLANS_WAYS] of key_bytes and plan_bytes each; owned */
};

gl_status gemm_plans_new(gemm_plans **out, size_t sets, size_t key_bytes, size_t plan_bytes,
                         void (*drop)(void *owner, void *plan), void *owner, gl_error *err) {
  assert(sets > 0 && key_bytes > 0 && drop != NULL);
  *out = NULL;
  size_t plans, bytes;
  if (__builtin_mul_overflow(sets, (size_t)GEMM_PLANS_WAYS, &plans) ||
      __builtin_mul_overflow(plans, key_bytes + plan_bytes, &bytes))
    return gl_fail_memory(err, "a table of plans");
  gemm_plans *t = calloc(1, sizeof *t);
  if (t == NULL) return gl_fail_memory(err, "a table of plans");
  *t = (gemm_plans){.n_sets = sets,
                    .key_bytes = key_bytes,
                    .plan_bytes = plan_bytes,
                    .drop = drop,
                    .owner = owner,
                    .sets = calloc(sets, sizeof *t->sets),
                    .keys = calloc(plans, key_bytes),
                    .plans = calloc(plans, plan_bytes)};
  if (t->sets == NULL || t->keys == NULL || t->plans == NULL) {
    gemm_plans_free(t);
    return gl_fail_memory(err, "a table of plans");
  }
  *out = t;
  return GL_OK;
}

void gemm_plans_free(gemm_plans *t) {
  if (t == NULL) return;
  for (size_t s = 0; t->sets != NULL && s < t->n_sets; ++s)
    for (size_t w = 0; w < t->sets[s].filled; ++w)
      t->drop(t->owner, t->plans + (s * GEMM_PLANS_WAYS + w) * t->plan_bytes);
  free(t->sets);
  free(t->keys);
  free(t->plans);
  free(t);
}

static size_t set_of(const gemm_plans *t, const void *key) {
  const uint64_t hash = hash_64(HASH_64_START, key, t->key_bytes);
  return (size_t)((hash ^ hash >> 32) % t->n_sets);
}

void *gemm_plans_find(const gemm_plans *t, const void *key) {
  const size_t s = set_of(t, key), first = s * GEMM_PLANS_WAYS;
  for (size_t i = first; i < first + t->sets[s].filled; ++i)
    if (memcmp(t->keys + i * t->key_bytes, key, t->key_bytes) == 0)
      return t->plans + i * t->plan_bytes;
  return NULL;
}

void *gemm_plans_add(gemm_plans *t, const void *key, const void *plan) {
  assert(gemm_plans_find(t, key) == NULL);
  const size_t s = set_of(t, key);
  plan_set *set = &t->sets[s];
  size_t way = set->filled;
  if (set->filled < GEMM_PLANS_WAYS) {
    ++set->filled;
    ++t->n;
  } else {
    way = set->next;
    set->next = (set->next + 1) % GEMM_PLANS_WAYS;
    t->drop(t->owner, t->plans + (s * GEMM_PLANS_WAYS + way) * t->plan_bytes);
  }
  const size_t at = s * GEMM_PLANS_WAYS + way;
  memcpy(t->keys + at * t->key_bytes, key, t->key_bytes);
  return memcpy(t->plans + at * t->plan_bytes, plan, t->plan_bytes);
}

size_t gemm_plans_size(const gemm_plans *t) {
  return t->n;
}

/* --- choices --- */

static const char HEADER[] = "gepolab products 1; ";
enum { NUMBERS = PRODUCT_KEY + 2, LINE = 21 * NUMBERS + 2 };

struct product_choices {
  char *path, *header; /* header: the file's first line */
  product_choice *choice;
  size_t n;
  size_t lines, read; /* number of complete lines read so far, and their bytes */
};

/* The concatenation of a and b, malloc'd. */
static char *joined_texts(const char *a, const char *b) {
  char *out = malloc(strlen(a) + strlen(b) + 1);
  if (out != NULL) strcat(strcpy(out, a), b);
  return out;
}

const product_choice *product_choices_find(const product_choices *c,
                                           const uint64_t key[PRODUCT_KEY]) {
  for (size_t i = 0; i < c->n; ++i)
    if (memcmp(c->choice[i].key, key, sizeof c->choice[i].key) == 0) return &c->choice[i];
  return NULL;
}

/* --- the file --- */

/* Parses a line of numbers separated by single spaces. Returns false if it is not one. */
static bool parse_choice(product_choice *out, const char *line) {
  uint64_t number[NUMBERS];
  for (size_t i = 0; i < NUMBERS; ++i) {
    char *end;
    if (line[0] < '0' || line[0] > '9') return false;
    errno = 0;
    number[i] = strtoull(line, &end, 10);
    if (errno != 0 || *end != (i + 1 < NUMBERS ? ' ' : 0)) return false;
    line = end + 1;
  }
  memcpy(out->key, number, sizeof out->key);
  out->rank = number[PRODUCT_KEY];
  out->nanoseconds = number[PRODUCT_KEY + 1];
  return true;
}

/* Processes the file's next line: checks the header if it is the first, else adds the line's
 * choice. */
static gl_status take_line(product_choices *c, const char *line, gl_error *err) {
  product_choice choice;
  if (c->lines++ == 0)
    return strcmp(line, c->header) == 0
               ? GL_OK
               : gl_fail(err, GL_EINPUT,
                         "%s: its products were not measured on this device and library (\"%s\" "
                         "wanted, \"%.200s\" found); name another file",
                         c->path, c->header, line);
  if (!parse_choice(&choice, line) || product_choices_find(c, choice.key) != NULL)
    return gl_fail(err, GL_EINPUT,
                   "%s:%zu: this is no measured product, or one that is there before; remove the "
                   "file to measure anew",
                   c->path, c->lines);
  product_choice *added = ARRAY_ADD(c->choice, c->n);
  if (added == NULL) return gl_fail_memory(err, "measured products");
  *added = choice;
  return GL_OK;
}

/* Reads all complete lines of the open file that were not read before. */
static gl_status read_on(product_choices *c, int file, gl_error *err) {
  struct stat now;
  if (fstat(file, &now) != 0) return file_fail(c->path, "read", errno, err);
  if ((size_t)now.st_size < c->read)
    return gl_fail(err, GL_EIO, "%s: it became shorter while it was used; let one process have it",
                   c->path);
  const size_t bytes = (size_t)now.st_size - c->read;
  char *text = malloc(bytes + 1);
  if (text == NULL) return gl_fail_memory(err, "measured products");
  size_t got = 0;
  for (ssize_t n = 1; got < bytes && n > 0; got += n > 0 ? (size_t)n : 0)
    n = pread(file, text + got, bytes - got, (off_t)(c->read + got));
  gl_status status = got == bytes ? GL_OK : file_fail(c->path, "read", errno, err);
  char *line = text;
  text[got] = 0;
  while (status == GL_OK) {
    char *end = memchr(line, '\n', (size_t)(text + got - line));
    if (end == NULL) break;
    *end = 0;
    status = strlen(line) == (size_t)(end - line)
                 ? take_line(c, line, err)
                 : gl_fail(err, GL_EINPUT, "%s: a binary file; name another one", c->path);
    if (status == GL_OK) c->read += (size_t)(end - line) + 1;
    line = end + 1;
  }
  free(text);
  return status;
}

gl_status product_choices_open(product_choices **out, const char *path, const char *made_for,
                               gl_error *err) {
  *out = NULL;
  product_choices *c = calloc(1, sizeof *c);
  if (c == NULL) return gl_fail_memory(err, "measured products");
  *c = (product_choices){.path = joined_texts(path, ""), .header = joined_texts(HEADER, made_for)};
  gl_status status =
      c->path != NULL && c->header != NULL ? GL_OK : gl_fail_memory(err, "measured products");
  const int file = status == GL_OK ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
  if (status == GL_OK && file < 0 && errno != ENOENT) status = file_fail(path, "read", errno, err);
  if (file >= 0) {
    status = read_on(c, file, err);
    close(file);
  }
  if (status != GL_OK) {
    product_choices_free(c);
    return status;
  }
  *out = c;
  return GL_OK;
}

void product_choices_free(product_choices *c) {
  if (c == NULL) return;
  free(c->path);
  free(c->header);
  free(c->choice);
  free(c);
}

/* Writes `text` after the complete lines that were read, replacing anything there. */
static bool write_behind(int file, size_t at, const char *text) {
  const size_t bytes = strlen(text);
  size_t done = 0;
  if (ftruncate(file, (off_t)at) != 0) return false;
  while (done < bytes) {
    const ssize_t n = pwrite(file, text + done, bytes - done, (off_t)(at + done));
    if (n <= 0) return false;
    done += (size_t)n;
  }
  return fsync(file) == 0;
}

/* Adds a choice to the file, whose lock the caller holds, and sets *rank. Before that it reads the
 * lines that other processes have appended, and writes the header line of an empty file. */
static gl_status add_locked(product_choices *c, int file, const product_choice *choice,
                            uint64_t *rank, gl_error *err) {
  char line[LINE];
  gl_status status = read_on(c, file, err);
  if (status == GL_OK && c->lines == 0) {
    char *first = joined_texts(c->header, "\n");
    if (first == NULL) return gl_fail_memory(err, "measured products");
    if (!write_behind(file, 0, first)) status = file_fail(c->path, "written", errno, err);
    free(first);
    if (status == GL_OK) status = read_on(c, file, err);
  }
  if (status != GL_OK) return status;
  const product_choice *theirs = product_choices_find(c, choice->key);
  if (theirs == NULL) {
    size_t n = 0;
    for (size_t i = 0; i < PRODUCT_KEY; ++i)
      n += (size_t)snprintf(line + n, sizeof line - n, "%llu ", (unsigned long long)choice->key[i]);
    snprintf(line + n, sizeof line - n, "%llu %llu\n", (unsigned long long)choice->rank,
             (unsigned long long)choice->nanoseconds);
    if (!write_behind(file, c->read, line)) return file_fail(c->path, "written", errno, err);
    status = read_on(c, file, err);
    if (status != GL_OK) return status;
    theirs = product_choices_find(c, choice->key);
  }
  *rank = theirs->rank;
  return GL_OK;
}

gl_status product_choices_add(product_choices *c, const product_choice *choice, uint64_t *rank,
                              gl_error *err) {
  const int file = open(c->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return file_fail(c->path, "written", errno, err);
  gl_status status = flock(file, LOCK_EX) == 0 ? add_locked(c, file, choice, rank, err)
                                               : file_fail(c->path, "locked", errno, err);
  close(file); /* also releases the lock */
  return status;
}
