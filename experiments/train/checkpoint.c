/* Writes and reads the file of one checkpoint. */
#define _GNU_SOURCE /* fopencookie */
#include "experiments/train/checkpoint.h"

#include "core/base/hash.h"

#include <errno.h>
#include <gen/version.h>
#include <stdlib.h>
#include <string.h>

/* 1 had sizes of records in place of layout and build, and the checksum of core/base/hash.h. 3 is 2
 * with records of evaluation sets, their number behind the head, and 4 is 3 with the number of
 * lengths behind that, and 5 is 4 with the number of fates behind that; runs that need none of them
 * are still written as 2. */
enum {
  CHECKPOINT_FORMAT = 2,
  FORMAT_OF_HASH = 1,
  FORMAT_OF_SETS = 3,
  FORMAT_OF_ROUNDS = 4,
  FORMAT_OF_FATES = 5
};
static const char magic[8] = "GLrun\r\n\x1a";

/* All of 8 bytes, so that it has no holes. */
typedef struct head {
  char magic[8];
  uint64_t format, layout, build;
  uint64_t recipe_size, n_steps, n_evals, broken, begun, responses, n_batches;
  double wall_s;
  char code_version[CHECKPOINT_VERSION_SIZE];
} head;

typedef struct tail {
  uint64_t size, sum; /* of all bytes before the tail */
} tail;

/* What a record is: its metrics by name, in order, and sizes. */
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
/* Everything goes through a stream that sums what passes, so that the learner may write its state
 * however long it is. */

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

static void put(FILE *to, const void *data, size_t size, size_t n) {
  if (n > 0) fwrite(data, size, n, to); /* trouble stays in the stream */
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
  put(to, &h, sizeof h, 1);
  if (h.format >= FORMAT_OF_SETS) put(to, &n_set_evals, sizeof n_set_evals, 1);
  if (h.format >= FORMAT_OF_ROUNDS) put(to, &n_lengths, sizeof n_lengths, 1);
  if (h.format >= FORMAT_OF_FATES) put(to, &n_fates, sizeof n_fates, 1);
  put(to, c->recipe, 1, h.recipe_size);
  put(to, c->steps, sizeof *c->steps, c->n_steps);
  put(to, c->evals, sizeof *c->evals, c->n_evals);
  put(to, c->set_evals, sizeof *c->set_evals, c->n_set_evals);
  put(to, c->lengths, sizeof *c->lengths, c->n_lengths);
  put(to, c->fates, sizeof *c->fates, c->n_fates);
  gl_status status = GL_OK;
  for (size_t i = 0; i < c->n_batches && status == GL_OK; ++i) {
    put(to, &c->batches[i].number, sizeof c->batches[i].number, 1);
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

/* Sums `left` bytes from the stream, as files of that format do. Fewer where it ends early. */
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

/* Reads n items into *array, in pieces that grow, so that a false count meets the end of the file
 * long before it exhausts memory. One zeroed item to spare, and never NULL. */
static gl_status get(void **array, size_t size, uint64_t n, FILE *from, gl_error *err) {
  enum { FIRST = 4096 };
  char *data = NULL;
  size_t have = 0;
  *array = NULL;
  do {
    uint64_t room = 2 * (uint64_t)have + FIRST;
    if (room > n) room = n;
    char *bigger = room + 1 > SIZE_MAX / size ? NULL : realloc(data, (size_t)(room + 1) * size);
    if (bigger == NULL) {
      free(data);
      return gl_fail_memory(err, "a checkpoint");
    }
    data = bigger;
    if (fread(data + have * size, size, (size_t)room - have, from) != (size_t)room - have) {
      free(data);
      return ferror(from)
                 ? gl_fail(err, GL_EIO, "cannot be read: %s", strerror(errno))
                 : gl_fail(err, GL_EINPUT, "cut short: its counts promise more than it has");
    }
    have = (size_t)room;
  } while (have < n);
  memset(data + have * size, 0, size);
  *array = data;
  return GL_OK;
}

static gl_status get_batches(checkpoint *c, uint64_t n, FILE *from, gl_error *err) {
  size_t capacity = 0;
  for (uint64_t i = 0; i < n; ++i) {
    if (c->n_batches == capacity) {
      capacity = 2 * capacity + 16;
      checkpoint_batch *grown = capacity > SIZE_MAX / sizeof *grown
                                    ? NULL
                                    : realloc(c->batches, capacity * sizeof *grown);
      if (grown == NULL) return gl_fail_memory(err, "a checkpoint's batches");
      c->batches = grown;
    }
    checkpoint_batch *b = &c->batches[c->n_batches];
    if (fread(&b->number, sizeof b->number, 1, from) != 1)
      return gl_fail(err, GL_EINPUT, "cut short before batch %llu", (unsigned long long)i);
    gl_status status = batch_read(&b->drawn, from, err);
    if (status != GL_OK) return status;
    ++c->n_batches;
  }
  return GL_OK;
}

/* The counts that some formats have behind the head. */
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

static gl_status read_body(checkpoint *c, const head *h, FILE *from, gl_error *err) {
  void *recipe = NULL, *steps = NULL, *evals = NULL, *sets = NULL, *lengths = NULL, *fates = NULL;
  uint64_t n_set_evals, n_lengths, n_fates;
  if (get_counts(h, from, &n_set_evals, &n_lengths, &n_fates, err) != GL_OK) return GL_EINPUT;
  gl_status status = get(&recipe, 1, h->recipe_size, from, err);
  if (status == GL_OK) status = get(&steps, sizeof *c->steps, h->n_steps, from, err);
  if (status == GL_OK) status = get(&evals, sizeof *c->evals, h->n_evals, from, err);
  if (status == GL_OK) status = get(&sets, sizeof *c->set_evals, n_set_evals, from, err);
  if (status == GL_OK) status = get(&lengths, sizeof *c->lengths, n_lengths, from, err);
  if (status == GL_OK) status = get(&fates, sizeof *c->fates, n_fates, from, err);
  c->recipe = recipe;
  c->steps = steps;
  c->evals = evals;
  c->set_evals = sets;
  c->n_set_evals = status == GL_OK ? (size_t)n_set_evals : 0;
  for (size_t i = 0; i < c->n_set_evals; ++i)
    c->set_evals[i].set[sizeof c->set_evals[i].set - 1] = '\0';
  c->lengths = lengths;
  c->n_lengths = status == GL_OK ? (size_t)n_lengths : 0;
  c->fates = fates;
  c->n_fates = status == GL_OK ? (size_t)n_fates : 0;
  for (size_t i = 0; i < c->n_fates; ++i)
    if (c->fates[i].fate >= FATES || !(c->fates[i].tokens >= 1))
      return gl_fail(err, GL_EINPUT, "no checkpoint: a response in it has no fate that there is");
  if (status == GL_OK && strlen(c->recipe) != h->recipe_size)
    status = gl_fail(err, GL_EINPUT, "no checkpoint: its recipe is no text");
  return status == GL_OK ? get_batches(c, h->n_batches, from, err) : status;
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
  gl_status status = read_body(c, &h, from, err);
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
