/* A learner's checkpoint: a header; held versions, each its number and its parameters as doubles;
 * what is kept of the last gradient, where there was an update; a checksum of all before it; then
 * the model's parameters and moments (model_write), which carry their own. Native byte order.
 * Everything else follows from the recipe and the seed: the reference policy is what construction
 * made it. */
#include "core/base/checksum.h"
#include "llm/learner/learner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct checkpoint_header {
  char magic[8];
  uint64_t format, fingerprint, seed, optimizer_kind;
  uint64_t n_parameters, n_held, has_gradient;
  int64_t version;
  char form[16]; /* of the CPU's arithmetic; zeros elsewhere */
} checkpoint_header;

/* Format 3 had no last gradient. */
enum { CHECKPOINT_FORMAT = 4 };
static const char checkpoint_magic[8] = "GLllm\r\n\x1a";

static checkpoint_header describe(const llm_learner *l) {
  checkpoint_header h = {.format = CHECKPOINT_FORMAT,
                         .fingerprint = l->spec.fingerprint,
                         .seed = l->update.seed,
                         .optimizer_kind = (uint64_t)l->update.optimizer.kind,
                         .n_parameters = model_parameters(l->model),
                         .n_held = l->replica[0].n_held,
                         .has_gradient = l->update.trail.has,
                         .version = l->update.version};
  const char *form = l->replica[0].backend->form;
  memcpy(h.magic, checkpoint_magic, sizeof h.magic);
  if (form != NULL) snprintf(h.form, sizeof h.form, "%s", form);
  return h;
}

/* sum: NULL for the checksum itself. */
static gl_status put(FILE *to, const void *bytes, size_t n, checksum *sum, gl_error *err) {
  if (sum != NULL) checksum_add(sum, bytes, n);
  if (fwrite(bytes, 1, n, to) == n) return GL_OK;
  return gl_fail(err, GL_EIO, "cannot write the checkpoint: %s", strerror(errno));
}

static gl_status put_held(const llm_learner *l, FILE *to, checksum *sum, gl_error *err) {
  const size_t n = model_parameters(l->model);
  double *host = calloc(n, sizeof *host);
  gl_status status = host != NULL ? GL_OK : gl_fail_memory(err, "a checkpoint");
  const replica *r = &l->replica[0]; /* all replicas have the same values */
  for (size_t i = 0; i < r->n_held && status == GL_OK; ++i) {
    status = model_values_get(r->held[i].values, r->model, host, err);
    if (status == GL_OK) status = put(to, &r->held[i].version, sizeof r->held[i].version, sum, err);
    if (status == GL_OK) status = put(to, host, n * sizeof *host, sum, err);
  }
  free(host);
  return status;
}

gl_status llm_learner_save(void *self, FILE *to, gl_error *err) {
  const llm_learner *l = self;
  const checkpoint_header h = describe(l);
  checksum sum;
  checksum_begin(&sum);
  gl_status status = put(to, &h, sizeof h, &sum, err);
  if (status == GL_OK && h.n_held > 0) status = put_held(l, to, &sum, err);
  if (status == GL_OK && h.has_gradient)
    status =
        put(to, l->update.trail.last, l->update.trail.n * sizeof *l->update.trail.last, &sum, err);
  const uint64_t end = checksum_of(&sum);
  if (status == GL_OK) status = put(to, &end, sizeof end, NULL, err);
  return status == GL_OK ? model_write(l->model, l->replica[0].optimizer, to, err) : status;
}

/* A run that goes on in another form would have other last bits than one that was never
 * interrupted, so it is refused; all x86 processors of the last ten years run avx2. */
static gl_status other_form(const checkpoint_header *h, const checkpoint_header *mine,
                            gl_error *err) {
  static const char device[] = "a GPU";
  const char *was = h->form[0] != '\0' ? h->form : device;
  const char *is = mine->form[0] != '\0' ? mine->form : device;
  return gl_fail(
      err, GL_EINPUT,
      "the checkpoint was computed in another arithmetic (%.15s) than this run's (%.15s), "
      "so last bits would differ; resume where it was written%s%.15s, or start anew",
      was, is, h->form[0] != '\0' ? ", or with GEPOLAB_CPU_FORM=" : "", h->form);
}

static gl_status check_header(const llm_learner *l, const checkpoint_header *h, gl_error *err) {
  const checkpoint_header mine = describe(l);
  if (memcmp(h->magic, mine.magic, sizeof mine.magic) != 0 || h->format != mine.format)
    return gl_fail(err, GL_EINPUT,
                   "this is not the state of a transformer learner, or one of another version of "
                   "gepolab");
  if (h->fingerprint != mine.fingerprint || h->seed != mine.seed ||
      h->n_parameters != mine.n_parameters)
    return gl_fail(err, GL_EINPUT,
                   "the checkpoint belongs to another world, sampling or seed; start from the "
                   "recipe it was written with");
  if (h->optimizer_kind != mine.optimizer_kind)
    return gl_fail(err, GL_EINPUT,
                   "the checkpoint was written with another optimizer; use the one it has");
  if (memcmp(h->form, mine.form, sizeof h->form) != 0) return other_form(h, &mine, err);
  if (h->version < 0)
    return gl_fail(err, GL_EINPUT, "the checkpoint has a negative version: it is damaged");
  return GL_OK;
}

/* Held versions as they are read, before the checksum shows that the file is undamaged. */
typedef struct held_values {
  int64_t version;
  double *host; /* [n_parameters] */
} held_values;

static void held_free(held_values *held, size_t n) {
  for (size_t i = 0; i < n; ++i) free(held[i].host);
  free(held);
}

static gl_status get(FILE *from, void *bytes, size_t n, checksum *sum, gl_error *err) {
  if (fread(bytes, 1, n, from) != n)
    return ferror(from) ? gl_fail(err, GL_EIO, "cannot read the checkpoint: %s", strerror(errno))
                        : gl_fail(err, GL_EINPUT, "the checkpoint is cut short");
  if (sum != NULL) checksum_add(sum, bytes, n);
  return GL_OK;
}

/* Reads one held version. A count that is too large ends at the end of the file. */
static gl_status get_held(FILE *from, held_values **held, size_t *n_held, size_t n, checksum *sum,
                          gl_error *err) {
  held_values *larger = realloc(*held, (*n_held + 1) * sizeof *larger);
  if (larger == NULL) return gl_fail_memory(err, "a checkpoint's held versions");
  *held = larger;
  held_values *one = &larger[*n_held];
  one->host = calloc(n, sizeof *one->host);
  if (one->host == NULL) return gl_fail_memory(err, "a checkpoint's held versions");
  ++*n_held;
  gl_status status = get(from, &one->version, sizeof one->version, sum, err);
  return status == GL_OK ? get(from, one->host, n * sizeof *one->host, sum, err) : status;
}

/* gradient[n]: what is kept of the last one. */
static gl_status read_held(FILE *from, const checkpoint_header *h, held_values **held,
                           size_t *n_held, double *gradient, size_t n, gl_error *err) {
  uint64_t written = 0;
  checksum sum;
  checksum_begin(&sum);
  checksum_add(&sum, h, sizeof *h);
  gl_status status = GL_OK;
  for (uint64_t i = 0; i < h->n_held && status == GL_OK; ++i)
    status = get_held(from, held, n_held, h->n_parameters, &sum, err);
  if (status == GL_OK && h->has_gradient)
    status = get(from, gradient, n * sizeof *gradient, &sum, err);
  if (status == GL_OK) status = get(from, &written, sizeof written, NULL, err);
  if (status == GL_OK && written != checksum_of(&sum))
    status = gl_fail(err, GL_EINPUT, "the checkpoint is damaged: its checksum does not match");
  return status;
}

/* Held versions that were read, to be copied to the replicas. */
typedef struct loading {
  llm_learner *l;
  const held_values *held;
  size_t n_held;
} loading;

/* A copy can only be made from a model's own parameters. So each held version is set as those, then
 * copied; the model's own parameters are put back at the end. */
static gl_status take_held(void *context, size_t rank, gl_error *err) {
  const loading *f = context;
  replica *r = &f->l->replica[rank];
  replica_release_all(r);
  if (f->n_held == 0) return GL_OK;
  double *own = calloc(model_parameters(r->model), sizeof *own);
  if (own == NULL) return gl_fail_memory(err, "a checkpoint's held versions");
  gl_status status = model_get(r->model, own, err);
  for (size_t i = 0; i < f->n_held && status == GL_OK; ++i) {
    status = model_set(r->model, f->held[i].host, err);
    if (status == GL_OK) status = replica_add_held(r, f->held[i].version, err);
  }
  if (status == GL_OK) status = model_set(r->model, own, err);
  free(own);
  return status;
}

gl_status llm_learner_load(void *self, FILE *from, gl_error *err) {
  llm_learner *l = self;
  checkpoint_header h;
  held_values *held = NULL;
  size_t n_held = 0;
  gl_status status = get(from, &h, sizeof h, NULL, err);
  if (status == GL_OK) status = check_header(l, &h, err);
  /* Into the memory of the next gradient, which means nothing between updates. */
  if (status == GL_OK)
    status = read_held(from, &h, &held, &n_held, l->update.trail.now, l->update.trail.n, err);
  if (status == GL_OK) status = llm_learner_read(l, from, err);
  loading f = {l, held, n_held};
  if (status == GL_OK) status = rank_threads_run(l->threads, take_held, &f, err);
  if (status == GL_OK) {
    l->update.version = h.version;
    l->update.trail.has = h.has_gradient != 0;
    if (l->update.trail.has)
      memcpy(l->update.trail.last, l->update.trail.now,
             l->update.trail.n * sizeof *l->update.trail.last);
  }
  held_free(held, n_held);
  return status;
}
