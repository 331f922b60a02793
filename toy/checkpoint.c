/* A toy learner's checkpoint: a header, parameters, optimiser state, a checksum of all before it.
 * Native byte order. Everything else follows from the recipe and the seed. */
#include "core/hash.h"
#include "toy/learner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct checkpoint_header {
  char magic[8];
  uint64_t format, fingerprint, seed;
  uint64_t n_parameters, n_vectors; /* theta, then the optimiser's */
  uint64_t optimizer_kind, optimizer_steps;
  int64_t version;
} checkpoint_header;

enum { CHECKPOINT_FORMAT = 1, MAX_VECTORS = 3 };
static const char checkpoint_magic[8] = "GLtoy\r\n\x1a";

static checkpoint_header describe(const toy_learner *l) {
  checkpoint_header h = {.format = CHECKPOINT_FORMAT,
                         .fingerprint = toy_world_fingerprint(l->world),
                         .seed = l->seed,
                         .n_parameters = l->world->features.n_parameters,
                         .n_vectors =
                             1u + (l->optimizer.first != NULL) + (l->optimizer.second != NULL),
                         .optimizer_kind = (uint64_t)l->optimizer.spec.kind,
                         .optimizer_steps = l->optimizer.steps,
                         .version = l->version};
  memcpy(h.magic, checkpoint_magic, sizeof h.magic);
  return h;
}

static gl_status put(FILE *to, const void *bytes, size_t n, uint64_t *hash, gl_error *err) {
  *hash = hash_64(*hash, bytes, n);
  if (fwrite(bytes, 1, n, to) == n) return GL_OK;
  return gl_fail(err, GL_EIO, "cannot write the checkpoint: %s", strerror(errno));
}

gl_status toy_learner_save(void *self, FILE *to, gl_error *err) {
  const toy_learner *l = self;
  const double *vectors[MAX_VECTORS] = {l->theta, l->optimizer.first, l->optimizer.second};
  checkpoint_header h = describe(l);
  uint64_t hash = HASH_64_START, ignored = 0;
  gl_status status = put(to, &h, sizeof h, &hash, err);
  for (size_t i = 0; i < h.n_vectors && status == GL_OK; ++i)
    status = put(to, vectors[i], h.n_parameters * sizeof(double), &hash, err);
  return status == GL_OK ? put(to, &hash, sizeof hash, &ignored, err) : status;
}

static gl_status check_header(const toy_learner *l, const checkpoint_header *h, gl_error *err) {
  const checkpoint_header mine = describe(l);
  if (memcmp(h->magic, mine.magic, sizeof mine.magic) != 0 || h->format != mine.format)
    return gl_fail(err, GL_EINPUT, "this is not a checkpoint of a toy learner of this version");
  if (h->fingerprint != mine.fingerprint || h->seed != mine.seed ||
      h->n_parameters != mine.n_parameters)
    return gl_fail(err, GL_EINPUT,
                   "the checkpoint belongs to another world, policy, sampling or seed; start from "
                   "the recipe it was written with");
  if (h->optimizer_kind != mine.optimizer_kind || h->n_vectors != mine.n_vectors)
    return gl_fail(err, GL_EINPUT,
                   "the checkpoint was written with another optimizer; use the one it has");
  if (h->version < 0)
    return gl_fail(err, GL_EINPUT, "the checkpoint has a negative version: it is damaged");
  return GL_OK;
}

/* Reads vectors and checksum into vector[n], hashing on from the header. */
static gl_status read_body(FILE *from, uint64_t hash, double *vector, size_t n, gl_error *err) {
  uint64_t written;
  if (fread(vector, sizeof *vector, n, from) != n || fread(&written, sizeof written, 1, from) != 1)
    return ferror(from) ? gl_fail(err, GL_EIO, "cannot read the checkpoint: %s", strerror(errno))
                        : gl_fail(err, GL_EINPUT, "the checkpoint is cut short");
  if (hash_64(hash, vector, n * sizeof *vector) != written)
    return gl_fail(err, GL_EINPUT, "the checkpoint is damaged: its checksum does not match");
  return GL_OK;
}

gl_status toy_learner_load(void *self, FILE *from, gl_error *err) {
  toy_learner *l = self;
  checkpoint_header h;
  if (fread(&h, sizeof h, 1, from) != 1)
    return ferror(from) ? gl_fail(err, GL_EIO, "cannot read the checkpoint: %s", strerror(errno))
                        : gl_fail(err, GL_EINPUT, "the checkpoint is cut short");
  gl_status status = check_header(l, &h, err);
  if (status != GL_OK) return status;
  double *vectors[MAX_VECTORS] = {l->theta, l->optimizer.first, l->optimizer.second};
  const size_t n = h.n_parameters;
  double *body = calloc(n, h.n_vectors * sizeof *body);
  if (body == NULL) return gl_fail_memory(err, "a checkpoint");
  status = read_body(from, hash_64(HASH_64_START, &h, sizeof h), body, n * h.n_vectors, err);
  if (status == GL_OK) {
    for (size_t i = 0; i < h.n_vectors; ++i) memcpy(vectors[i], body + i * n, n * sizeof *body);
    l->optimizer.steps = h.optimizer_steps;
    l->version = h.version;
    ++l->stamp;
  }
  free(body);
  return status;
}
