/* The optimiser's step over all parameters; parameters and moments in a checkpoint. */
#include "core/base/hash.h"
#include "llm/model/internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct model_optimizer {
  model *m;
  optimizer_spec spec;
  void *first, *second; /* M [n] moments; NULL if the optimiser has none */
  uint64_t steps;
  int rounds; /* 1: stochastic rounding */
  uint64_t seed;
};

gl_status model_optimizer_new(model_optimizer **out, model *m, const optimizer_spec *spec,
                              gl_error *err) {
  const size_t bytes = m->n * m->b->master_element;
  const int adam = spec->kind != OPTIMIZER_SGD;
  *out = NULL;
  model_optimizer *o = calloc(1, sizeof *o);
  if (o == NULL) return gl_fail_memory(err, "an optimizer");
  *o = (model_optimizer){.m = m, .spec = *spec};
  if (adam || spec->momentum > 0) o->first = m->b->ops->allocate(m->b, bytes);
  if (adam) o->second = m->b->ops->allocate(m->b, bytes);
  gl_status status = model_want_gradient(m, err);
  if (status == GL_OK)
    *out = o;
  else
    model_optimizer_free(o);
  return status;
}

void model_optimizer_free(model_optimizer *o) {
  if (o == NULL) return;
  o->m->b->ops->release(o->m->b, o->first);
  o->m->b->ops->release(o->m->b, o->second);
  free(o);
}

void model_optimizer_round(model_optimizer *o, uint64_t seed) {
  o->rounds = 1;
  o->seed = seed;
}

/* Sets how the model's bfloat16 copy is rounded: to nearest before the first step, afterwards
 * stochastically if o->rounds. */
static void address_rounding(const model_optimizer *o) {
  o->m->rounds = o->rounds && o->steps > 0;
  o->m->rounding = rng_stream_at(o->seed, RNG_ROUNDING, o->steps);
}

/* Updates parameters [first, first + n), with that weight decay. */
static void step_range(model_optimizer *o, size_t first, size_t n, double decay, double lr,
                       double scale) {
  model *m = o->m;
  backend *b = m->b;
  const size_t at = first * b->master_element;
  char *param = (char *)m->own.master + at, *copy = (char *)m->own.copy + first * b->element;
  const char *gradient = (const char *)m->gradient + at;
  char *one = o->first != NULL ? (char *)o->first + at : NULL;
  const copy_rounding address = {m->rounding, first}, *rounding = m->rounds ? &address : NULL;
  if (n == 0) return;
  if (o->spec.kind == OPTIMIZER_SGD) {
    const sgd_step step = {lr, o->spec.momentum, decay, scale, rounding};
    b->ops->sgd(b, param, copy, gradient, one, n, &step);
    return;
  }
  const int decoupled = o->spec.kind == OPTIMIZER_ADAMW;
  const adamw_step step = {.lr = lr,
                           .beta1 = o->spec.beta1,
                           .beta2 = o->spec.beta2,
                           .eps = o->spec.eps,
                           .decoupled = decoupled ? decay : 0,
                           .coupled = decoupled ? 0 : decay,
                           .correct1 = 1 - pow(o->spec.beta1, (double)o->steps),
                           .correct2 = 1 - pow(o->spec.beta2, (double)o->steps),
                           .scale = scale,
                           .rounding = rounding};
  b->ops->adamw(b, param, copy, gradient, one, (char *)o->second + at, n, &step);
}

gl_status model_optimizer_step(model_optimizer *o, double lr, double *norm, gl_error *err) {
  model *m = o->m;
  const double limit = o->spec.clip_grad_norm;
  *norm = sqrt(m->b->ops->sum_squares(m->b, m->gradient, m->n));
  gl_status status = m->b->ops->status(m->b, err);
  if (status != GL_OK || !isfinite(*norm)) return status;
  const double scale = limit > 0 && *norm > limit ? limit / *norm : 1;
  ++o->steps;
  address_rounding(o);
  model_changed(m);
  step_range(o, 0, m->n_matrices, o->spec.weight_decay, lr, scale);
  step_range(o, m->n_matrices, m->n - m->n_matrices, 0, lr, scale);
  return m->b->ops->status(m->b, err);
}

/* --- checkpoints --- */
/* The header of a state; the arrays follow as they are in memory, then the checksum of everything
 * before it. Native byte order. */

typedef struct state_header {
  char magic[8];
  uint64_t format, config; /* config: a checksum of the model's sizes */
  uint64_t n, element, n_arrays;
  uint64_t optimizer_kind, steps;
} state_header;

enum { STATE_FORMAT = 2, MAX_ARRAYS = 3 };
static const char state_magic[8] = "GLllm\r\n\x1a";

static uint64_t config_checksum(const model_config *c) {
  const uint64_t sizes[] = {c->vocabulary, c->hidden,   c->intermediate, c->layers,
                            c->heads,      c->kv_heads, c->head_dim,     (uint64_t)c->tied};
  const double reals[] = {c->rms_eps, c->rope_theta};
  uint64_t h = hash_64(hash_64(HASH_64_START, sizes, sizeof sizes), reals, sizeof reals);
  /* Not hashed for a Qwen3 without scaling: its older checkpoints, whose hash lacks them, stay
   * readable. */
  const double more[] = {(double)c->type, c->scaling.factor, c->scaling.low, c->scaling.high,
                         c->scaling.positions};
  if (c->type != MODEL_QWEN3 || c->scaling.factor > 0) h = hash_64(h, more, sizeof more);
  return h;
}

/* Lists the arrays of a checkpoint: the parameters, then those moments that the optimiser has.
 * Returns their number. */
static size_t arrays_of(const model *m, const model_optimizer *o, void *array[MAX_ARRAYS]) {
  size_t n = 0;
  array[n++] = m->own.master;
  if (o != NULL && o->first != NULL) array[n++] = o->first;
  if (o != NULL && o->second != NULL) array[n++] = o->second;
  return n;
}

static state_header state_header_of(const model *m, const model_optimizer *o) {
  void *array[MAX_ARRAYS];
  state_header h = {.format = STATE_FORMAT,
                    .config = config_checksum(&m->c),
                    .n = m->n,
                    .element = m->b->master_element,
                    .n_arrays = arrays_of(m, o, array),
                    .optimizer_kind = o != NULL ? (uint64_t)o->spec.kind : UINT64_MAX,
                    .steps = o != NULL ? o->steps : 0};
  memcpy(h.magic, state_magic, sizeof h.magic);
  return h;
}

gl_status model_write(const model *m, const model_optimizer *o, FILE *to, gl_error *err) {
  backend *b = m->b;
  void *array[MAX_ARRAYS], *piece = malloc(MODEL_STAGING);
  const size_t n = arrays_of(m, o, array), bytes = m->n * b->master_element;
  const state_header h = state_header_of(m, o);
  checksum sum;
  checksum_begin(&sum);
  if (piece == NULL) return gl_fail_memory(err, "a checkpoint");
  gl_status status = checksum_put(to, &h, sizeof h, &sum, err);
  for (size_t i = 0; i < n; ++i)
    for (size_t at = 0; at < bytes && status == GL_OK; at += MODEL_STAGING) {
      const size_t k = bytes - at < MODEL_STAGING ? bytes - at : MODEL_STAGING;
      b->ops->download(b, piece, (const char *)array[i] + at, k);
      status = b->ops->status(b, err);
      if (status == GL_OK) status = checksum_put(to, piece, k, &sum, err);
    }
  free(piece);
  const uint64_t end = checksum_of(&sum);
  return status == GL_OK ? checksum_put(to, &end, sizeof end, NULL, err) : status;
}

static gl_status check_state_header(const model *m, const model_optimizer *o, const state_header *h,
                                    gl_error *err) {
  const state_header expected = state_header_of(m, o);
  if (memcmp(h->magic, expected.magic, sizeof expected.magic) != 0 || h->format != expected.format)
    return gl_fail(err, GL_EINPUT, "this is not a transformer's checkpoint of this version");
  if (h->config != expected.config || h->n != expected.n || h->element != expected.element)
    return gl_fail(err, GL_EINPUT,
                   "the checkpoint belongs to a model of other sizes or precision; start from the "
                   "recipe it was written with");
  if (h->optimizer_kind != expected.optimizer_kind || h->n_arrays != expected.n_arrays)
    return gl_fail(err, GL_EINPUT,
                   "the checkpoint was written with another optimizer; use the one it has");
  return GL_OK;
}

/* Reads the arrays and the checksum behind them; uploads them if `keep`, else only checks. */
static gl_status read_arrays(const model *m, const model_optimizer *o, FILE *from,
                             const checksum *header, int keep, gl_error *err) {
  backend *b = m->b;
  void *array[MAX_ARRAYS], *piece = malloc(MODEL_STAGING);
  const size_t n = arrays_of(m, o, array), bytes = m->n * b->master_element;
  uint64_t written = 0;
  checksum sum = *header;
  gl_status status = GL_OK;
  if (piece == NULL) return gl_fail_memory(err, "a checkpoint");
  for (size_t i = 0; i < n; ++i)
    for (size_t at = 0; at < bytes && status == GL_OK; at += MODEL_STAGING) {
      const size_t k = bytes - at < MODEL_STAGING ? bytes - at : MODEL_STAGING;
      status = checksum_get(from, piece, k, &sum, err);
      if (status == GL_OK && keep) b->ops->upload(b, (char *)array[i] + at, piece, k);
    }
  free(piece);
  if (status == GL_OK) status = checksum_get(from, &written, sizeof written, NULL, err);
  if (status == GL_OK && written != checksum_of(&sum))
    status = gl_fail(err, GL_EINPUT, "the checkpoint is damaged: its checksum does not match");
  return status == GL_OK ? b->ops->status(b, err) : status;
}

gl_status model_read(model *m, model_optimizer *o, FILE *from, gl_error *err) {
  state_header h;
  checksum sum;
  checksum_begin(&sum);
  gl_status status = checksum_get(from, &h, sizeof h, &sum, err);
  if (status == GL_OK) status = check_state_header(m, o, &h, err);
  if (status != GL_OK) return status;
  /* The first pass checks the file, the second loads it, so that a damaged file changes nothing. */
  const off_t start = ftello(from);
  if (start < 0) return gl_fail(err, GL_EIO, "cannot read the checkpoint: %s", strerror(errno));
  status = read_arrays(m, o, from, &sum, 0, err);
  if (status == GL_OK && fseeko(from, start, SEEK_SET) != 0)
    status = gl_fail(err, GL_EIO, "cannot read the checkpoint: %s", strerror(errno));
  if (status == GL_OK) status = read_arrays(m, o, from, &sum, 1, err);
  if (status != GL_OK) return status;
  if (o != NULL) {
    o->steps = h.steps;
    address_rounding(o);
  }
  model_renew(m);
  return m->b->ops->status(m->b, err);
}
