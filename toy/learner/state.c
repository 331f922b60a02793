/* Parameters of the toy learner: the policy at a prompt, copies of older versions, and checkpoints.
 * A checkpoint is a header, the parameters, the last gradient, the optimiser state, the held
 * versions (number and parameters each), and a checksum of everything before it, in native byte
 * order. Everything else follows from the recipe and the seed. */
#include "core/base/array.h"
#include "core/base/file.h"
#include "core/base/hash.h"
#include "toy/learner/learner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- the policy at a prompt --- */

const prompt_cache *toy_learner_at(toy_learner *l, size_t x) {
  prompt_cache *c = l->cache + x;
  if (c->stamp != l->stamp) {
    toy_probs(l->world, l->theta, x, c->logp, c->p);
    c->stamp = l->stamp;
  }
  return c;
}

size_t toy_learner_slots(toy_learner *l, const batch *b) {
  size_t n = 0, prompts = l->world->n_prompts;
  for (size_t x = 0; x < prompts; ++x) l->slot[x] = SIZE_MAX;
  for (size_t g = 0; g < b->n_groups; ++g) {
    if (b->prompt[g] < 0 || (uint64_t)b->prompt[g] >= prompts) return 0;
    if (l->slot[b->prompt[g]] == SIZE_MAX) l->slot[b->prompt[g]] = n++;
  }
  return n;
}

double toy_learner_return(toy_learner *l) {
  const toy_world *w = l->world;
  double sum = 0;
  for (size_t x = 0; x < w->n_prompts; ++x)
    sum += toy_mean_reward(w, x, toy_learner_at(l, x)->p, toy_learner_at(l, x)->logp, l->scratch);
  return sum / (double)w->n_prompts;
}

int toy_learner_is_finite(const toy_learner *l) {
  for (size_t i = 0; i < l->world->features.n_parameters; ++i)
    if (!isfinite(l->theta[i])) return 0;
  return 1;
}

toy_dists toy_learner_dists(const toy_learner *l, const batch *b, size_t slots) {
  return (toy_dists){
      toy_behaviour_parts(l->world, b->own_dists ? b->n_responses : slots, b->n_dist),
      b->own_dists};
}

/* --- held versions --- */
/* Held versions: copies of the parameters that samplers still use. A copy keeps the stamp of its
 * parameters, so cached tables of that stamp stay valid. */

/* Appends an entry with theta allocated to the list of held versions. Returns NULL if memory runs
 * out. */
static toy_held *add_held(toy_held **held, size_t *n, size_t *capacity, size_t n_parameters) {
  if (!ARRAY_RESERVE(*held, *capacity, *n + 1)) return NULL;
  toy_held *h = &(*held)[*n];
  *h = (toy_held){.theta = calloc(n_parameters, sizeof *h->theta)};
  if (h->theta == NULL) return NULL;
  ++*n;
  return h;
}

void toy_held_free(toy_held *held, size_t n) {
  for (size_t i = 0; i < n; ++i) free(held[i].theta);
  free(held);
}

gl_status toy_learner_hold(void *self, gl_error *err) {
  toy_learner *l = self;
  const size_t n = l->world->features.n_parameters;
  toy_held *h = add_held(&l->held, &l->n_held, &l->cap_held, n);
  if (h == NULL) return gl_fail_memory(err, "a version held for samplers");
  h->version = l->update.version;
  h->stamp = l->stamp;
  memcpy(h->theta, l->theta, n * sizeof *h->theta);
  return GL_OK;
}

void toy_learner_release(void *self, int64_t version) {
  toy_learner *l = self;
  for (size_t i = 0; i < l->n_held; ++i) {
    if (l->held[i].version != version) continue;
    free(l->held[i].theta);
    l->held[i] = l->held[--l->n_held];
    return;
  }
}

/* --- files --- */

typedef struct checkpoint_header {
  char magic[8];
  uint64_t format, fingerprint, seed;
  uint64_t n_parameters, n_vectors; /* vectors: see state_vectors() */
  uint64_t optimizer_kind, optimizer_steps;
  int64_t version;
  uint64_t n_held, has_gradient;
} checkpoint_header;

/* Format 2 did not store the last gradient. */
enum { CHECKPOINT_FORMAT = 3, MAX_VECTORS = 5 };
static const char checkpoint_magic[8] = "GLtoy\r\n\x1a";

/* The parameters, the last gradient, and those of the optimiser's vectors and the moving average
 * that there are. Returns their number. */
static size_t state_vectors(const toy_learner *l, double *vectors[MAX_VECTORS]) {
  double *const all[MAX_VECTORS] = {l->theta, l->update.trail.last, l->optimizer.first,
                                    l->optimizer.second, l->average};
  size_t n = 0;
  for (size_t i = 0; i < MAX_VECTORS; ++i)
    if (all[i] != NULL) vectors[n++] = all[i];
  return n;
}

static checkpoint_header describe_state(const toy_learner *l) {
  double *vectors[MAX_VECTORS];
  checkpoint_header h = {.format = CHECKPOINT_FORMAT,
                         .fingerprint = toy_world_fingerprint(l->world),
                         .seed = l->update.seed,
                         .n_parameters = l->world->features.n_parameters,
                         .n_vectors = state_vectors(l, vectors),
                         .optimizer_kind = (uint64_t)l->optimizer.spec.kind,
                         .optimizer_steps = l->optimizer.steps,
                         .version = l->update.version,
                         .n_held = l->n_held,
                         .has_gradient = l->update.trail.has_last};
  memcpy(h.magic, checkpoint_magic, sizeof h.magic);
  return h;
}

static gl_status put_state(FILE *to, const void *bytes, size_t n, uint64_t *hash, gl_error *err) {
  *hash = hash_64(*hash, bytes, n);
  return checkpoint_put(to, bytes, n, err);
}

gl_status toy_learner_save(void *self, FILE *to, gl_error *err) {
  const toy_learner *l = self;
  double *vectors[MAX_VECTORS];
  checkpoint_header h = describe_state(l);
  (void)state_vectors(l, vectors);
  uint64_t hash = HASH_64_START, ignored = 0;
  gl_status status = put_state(to, &h, sizeof h, &hash, err);
  for (size_t i = 0; i < h.n_vectors && status == GL_OK; ++i)
    status = put_state(to, vectors[i], h.n_parameters * sizeof(double), &hash, err);
  for (size_t i = 0; i < h.n_held && status == GL_OK; ++i) {
    status = put_state(to, &l->held[i].version, sizeof l->held[i].version, &hash, err);
    if (status == GL_OK)
      status = put_state(to, l->held[i].theta, h.n_parameters * sizeof(double), &hash, err);
  }
  return status == GL_OK ? put_state(to, &hash, sizeof hash, &ignored, err) : status;
}

static gl_status check_header(const toy_learner *l, const checkpoint_header *h, gl_error *err) {
  const checkpoint_header expected = describe_state(l);
  if (memcmp(h->magic, expected.magic, sizeof expected.magic) != 0 || h->format != expected.format)
    return gl_fail(err, GL_EINPUT,
                   "this is not the state of a toy learner, or one of another version of gepolab");
  if (h->fingerprint != expected.fingerprint || h->seed != expected.seed ||
      h->n_parameters != expected.n_parameters)
    return gl_fail(err, GL_EINPUT,
                   "the checkpoint belongs to another world, policy, sampling or seed; start from "
                   "the recipe it was written with");
  if (h->optimizer_kind != expected.optimizer_kind || h->n_vectors != expected.n_vectors)
    return gl_fail(err, GL_EINPUT,
                   "the checkpoint was written with another optimizer, or with or without "
                   "proximal_decay; use what it has");
  if (h->version < 0)
    return gl_fail(err, GL_EINPUT, "the checkpoint has a negative version: it is damaged");
  return GL_OK;
}

/* Contents of a file, before its checksum is verified. */
typedef struct checkpoint_body {
  double *vectors; /* [n_vectors * n_parameters] */
  toy_held *held;  /* [n_held] */
  size_t n_held, cap_held;
} checkpoint_body;

static gl_status get(FILE *from, void *bytes, size_t n, uint64_t *hash, gl_error *err) {
  const gl_status status = checkpoint_get(from, bytes, n, err);
  if (status == GL_OK) *hash = hash_64(*hash, bytes, n);
  return status;
}

static gl_status read_body(FILE *from, const checkpoint_header *h, checkpoint_body *body,
                           gl_error *err) {
  const size_t n = h->n_parameters;
  uint64_t hash = hash_64(HASH_64_START, h, sizeof *h), written = 0, ignored = 0;
  body->vectors = calloc(n, h->n_vectors * sizeof *body->vectors);
  if (body->vectors == NULL) return gl_fail_memory(err, "a checkpoint");
  gl_status status = get(from, body->vectors, n * h->n_vectors * sizeof(double), &hash, err);
  /* If n_held is corrupt, the loop ends with an error at the end of the file. */
  for (uint64_t i = 0; i < h->n_held && status == GL_OK; ++i) {
    toy_held *one = add_held(&body->held, &body->n_held, &body->cap_held, n);
    if (one == NULL) return gl_fail_memory(err, "a checkpoint's held versions");
    status = get(from, &one->version, sizeof one->version, &hash, err);
    if (status == GL_OK) status = get(from, one->theta, n * sizeof(double), &hash, err);
  }
  if (status == GL_OK) status = get(from, &written, sizeof written, &ignored, err);
  if (status == GL_OK && written != hash)
    status = gl_fail(err, GL_EINPUT, "the checkpoint is damaged: its checksum does not match");
  return status;
}

/* Moves the file's state into the learner. The learner's old held versions go into the body, which
 * frees them. */
static void take_over(toy_learner *l, const checkpoint_header *h, checkpoint_body *body) {
  double *vectors[MAX_VECTORS];
  const size_t n = h->n_parameters;
  (void)state_vectors(l, vectors);
  for (size_t i = 0; i < h->n_vectors; ++i)
    memcpy(vectors[i], body->vectors + i * n, n * sizeof(double));
  checkpoint_body old = {.held = l->held, .n_held = l->n_held, .cap_held = l->cap_held};
  l->held = body->held;
  l->n_held = body->n_held;
  l->cap_held = body->cap_held;
  body->held = old.held;
  body->n_held = old.n_held;
  body->cap_held = old.cap_held;
  l->optimizer.steps = h->optimizer_steps;
  l->update.trail.has_last = h->has_gradient != 0;
  l->update.version = h->version;
  for (size_t i = 0; i < l->n_held; ++i) l->held[i].stamp = ++l->stamp;
  ++l->stamp;
}

gl_status toy_learner_load(void *self, FILE *from, gl_error *err) {
  toy_learner *l = self;
  checkpoint_header h;
  checkpoint_body body = {0};
  uint64_t ignored = 0;
  gl_status status = get(from, &h, sizeof h, &ignored, err);
  if (status == GL_OK) status = check_header(l, &h, err);
  if (status == GL_OK) status = read_body(from, &h, &body, err);
  if (status == GL_OK) take_over(l, &h, &body);
  free(body.vectors);
  toy_held_free(body.held, body.n_held);
  return status;
}
