/* Forward: tokens to log-probabilities. Backward: to gradients of parameters. The buffers of a pass
 * are taken from one block of memory.
 *
 * If the backend has a packed form of weights (llm/backend/operations.h), products read packed
 * weights. So products of many rows and of one row read the same memory in the same order. There
 * is one packed copy, of the values in use. model_pack() makes it when a pass needs it;
 * model_changed() invalidates it when the values change or model_use() chooses others. */
#include "llm/model/internal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- buffers --- */

enum { ALIGNMENT = 256 };

void *device_arena_take(device_arena *a, size_t n, size_t width, size_t bytes) {
  assert(bytes > 0);
  size_t size;
  if (__builtin_mul_overflow(n, width, &size) || __builtin_mul_overflow(size, bytes, &size) ||
      size > SIZE_MAX / 4 || a->used > SIZE_MAX / 4) {
    a->overflow = 1;
    return NULL;
  }
  void *at = a->base != NULL ? a->base + a->used : NULL;
  a->used += (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  return at;
}

void layer_activations_take(layer_activations *l, device_arena *a, const model_config *c,
                            const backend *b, size_t rows) {
  const size_t q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
  const size_t t = b->element, m = b->master_element;
  l->normed = device_arena_take(a, rows, c->hidden, t);
  l->rstd = device_arena_take(a, rows, 1, m);
  l->qkv = device_arena_take(a, rows, q + 2 * kv, t);
  l->qk = device_arena_take(a, rows, q + kv, t);
  l->heads_rstd = device_arena_take(a, rows, c->heads + c->kv_heads, m);
  l->attended = device_arena_take(a, rows, q, t);
  l->lse = device_arena_take(a, rows, c->heads, m);
  l->mid = device_arena_take(a, rows, c->hidden, t);
  l->mid_normed = device_arena_take(a, rows, c->hidden, t);
  l->mid_rstd = device_arena_take(a, rows, 1, m);
  l->gate_up = device_arena_take(a, rows, 2 * c->intermediate, t);
  l->active = device_arena_take(a, rows, c->intermediate, t);
}

/* Address of row `first` of a matrix with rows of `width` numbers of `bytes` bytes; NULL for a NULL
 * matrix. */
static void *row_of(void *matrix, size_t first, size_t width, size_t bytes) {
  return matrix != NULL ? (char *)matrix + first * width * bytes : NULL;
}

layer_activations layer_activations_from(const layer_activations *l, const model_config *c,
                                         const backend *b, size_t first) {
  const size_t q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
  const size_t t = b->element, m = b->master_element;
  return (layer_activations){.in = row_of(l->in, first, c->hidden, t),
                             .normed = row_of(l->normed, first, c->hidden, t),
                             .rstd = row_of(l->rstd, first, 1, m),
                             .qkv = row_of(l->qkv, first, q + 2 * kv, t),
                             .qk = row_of(l->qk, first, q + kv, t),
                             .heads_rstd = row_of(l->heads_rstd, first, c->heads + c->kv_heads, m),
                             .attended = row_of(l->attended, first, q, t),
                             .lse = row_of(l->lse, first, c->heads, m),
                             .mid = row_of(l->mid, first, c->hidden, t),
                             .mid_normed = row_of(l->mid_normed, first, c->hidden, t),
                             .mid_rstd = row_of(l->mid_rstd, first, 1, m),
                             .gate_up = row_of(l->gate_up, first, 2 * c->intermediate, t),
                             .active = row_of(l->active, first, c->intermediate, t)};
}

/* Takes the layers' activations. All layers share their buffers unless a backward needs each
 * layer's. */
static void take_layers(pass *p, device_arena *a, const model_config *c, const backend *b,
                        layer_activations *layer) {
  const pass_shape *s = &p->shape;
  const int all = s->keep && s->stores != MODEL_STORES_INPUTS;
  layer_activations shared = {0};
  p->layer = layer;
  if (!all) layer_activations_take(&shared, a, c, b, s->rows);
  if (!s->keep) shared.in = device_arena_take(a, s->rows, c->hidden, b->element);
  for (size_t l = 0; l < c->layers; ++l) {
    layer_activations own = shared;
    if (s->keep) own.in = device_arena_take(a, s->rows, c->hidden, b->element);
    if (all) layer_activations_take(&own, a, c, b, s->rows);
    if (layer != NULL) layer[l] = own;
  }
}

/* Takes the gradients' buffers. Those of attention and of the feed-forward block share memory. */
static void take_gradients(pass *p, device_arena *a, const model_config *c, const backend *b) {
  const size_t rows = p->shape.rows, targets = p->shape.targets, t = b->element;
  const size_t q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
  p->d_last = device_arena_take(a, targets, c->hidden, t);
  p->d_last_normed = device_arena_take(a, targets, c->hidden, t);
  p->d_stream = device_arena_take(a, rows, c->hidden, t);
  p->d_normed = device_arena_take(a, rows, c->hidden, t);
  device_arena attention = *a;
  p->d_gate_up = device_arena_take(a, rows, 2 * c->intermediate, t);
  p->d_active = device_arena_take(a, rows, c->intermediate, t);
  p->d_qkv = device_arena_take(&attention, rows, q + 2 * kv, t);
  p->d_qk = device_arena_take(&attention, rows, q + kv, t);
  p->d_attended = device_arena_take(&attention, rows, q, t);
  if (attention.used > a->used) a->used = attention.used;
  a->overflow |= attention.overflow;
}

/* Takes a pass's buffers from the arena; the caller owns layer[layers]. */
static void pass_take(pass *p, device_arena *a, const model_config *c, const backend *b,
                      pass_shape shape, layer_activations *layer) {
  const size_t t = b->element, m = b->master_element, n = shape.targets;
  *p = (pass){.shape = shape};
  p->token = device_arena_take(a, pass_index_numbers(&shape), 1, sizeof *p->token);
  if (p->token != NULL) {
    p->position = p->token + shape.rows;
    p->start = p->position + shape.rows;
    p->row = p->start + shape.sequences + 1;
    p->target = p->row + n;
  }
  int32_t *behind = p->token != NULL ? p->target + n : NULL;
  if (p->token != NULL && shape.trees > 0) {
    p->tree = behind;
    p->parent = p->tree + shape.trees + 1;
    p->before = p->parent + shape.sequences;
    p->full = p->before + shape.sequences;
    behind = p->full + shape.sequences + 1;
  }
  if (p->token != NULL && shape.set_words > 0) p->kept.set = (uint32_t *)behind;
  p->branch = device_arena_take(a, shape.rows, c->hidden, t);
  p->last = device_arena_take(a, n, c->hidden, t);
  p->last_branch = device_arena_take(a, n, c->hidden, t);
  p->last_normed = device_arena_take(a, n, c->hidden, t);
  p->last_rstd = device_arena_take(a, n, 1, m);
  p->logp = device_arena_take(a, n, 1, m);
  p->entropy = device_arena_take(a, n, 1, m);
  p->lse = device_arena_take(a, n, 1, m);
  p->dlogp = device_arena_take(a, n, 1, m);
  if (shape.keep && shape.stores == MODEL_STORES_LOGITS && b->ops->logits_bytes != NULL)
    p->logits = device_arena_take(a, b->ops->logits_bytes(b, n, c->vocabulary), 1, 1);
  take_layers(p, a, c, b, layer);
  if (shape.keep) take_gradients(p, a, c, b);
}

size_t model_pass_bytes(const model_config *c, const backend *b, pass_shape shape) {
  device_arena a = {0};
  pass p;
  if (shape.rows > SIZE_MAX / 8 || shape.sequences > SIZE_MAX / 8 ||
      shape.targets > SIZE_MAX / 8 / (1 + shape.set_words))
    return SIZE_MAX;
  pass_take(&p, &a, c, b, shape, NULL);
  return a.overflow ? SIZE_MAX : a.used;
}

/* --- packed weights --- */

/* The sizes of a weight matrix, and its offset in the array of all parameters. */
typedef struct matrix {
  size_t outputs, inputs, place;
} matrix;

/* Weight matrix number i; the output embedding is the last. If m is NULL, the offset is not set. */
static matrix matrix_at(const model_config *c, const model *m, size_t i) {
  const size_t q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim, layer = i / MODEL_KINDS;
  if (layer == c->layers) return (matrix){c->vocabulary, c->hidden, m != NULL ? m->head : 0};
  const layer_places at = m != NULL ? m->place[layer] : (layer_places){0};
  switch ((model_kind)(i % MODEL_KINDS)) {
  case MODEL_QKV:
    return (matrix){q + 2 * kv, c->hidden, at.qkv};
  case MODEL_O:
    return (matrix){c->hidden, q, at.o};
  case MODEL_GATE_UP:
    return (matrix){2 * c->intermediate, c->hidden, at.gate_up};
  case MODEL_DOWN:
    return (matrix){c->hidden, c->intermediate, at.down};
  case MODEL_KINDS:
    break;
  }
  assert(0);
  return (matrix){0};
}

/* The number of the output embedding. */
static size_t head_number(const model_config *c) {
  return c->layers * MODEL_KINDS;
}

/* Size in bytes of the first n packed matrices of one layer; SIZE_MAX on overflow. */
static size_t layer_bytes(const model_config *c, const backend *b, size_t n) {
  device_arena a = {0};
  for (size_t i = 0; i < n; ++i) {
    const matrix w = matrix_at(c, NULL, i);
    device_arena_take(&a, b->ops->packed_numbers(b, w.outputs, w.inputs), 1, b->element);
  }
  return a.overflow ? SIZE_MAX : a.used;
}

/* Offset of matrix i in the packed weights. model_packed_bytes() has checked their size. */
static size_t packed_at(const model_config *c, const backend *b, size_t i) {
  return i / MODEL_KINDS * layer_bytes(c, b, MODEL_KINDS) + layer_bytes(c, b, i % MODEL_KINDS);
}

size_t model_packed_bytes(const model_config *c, const backend *b) {
  if (b->ops->pack == NULL) return 0;
  device_arena a = {0};
  if (__builtin_mul_overflow(c->layers, layer_bytes(c, b, MODEL_KINDS), &a.used)) return SIZE_MAX;
  device_arena_take(&a, b->ops->packed_numbers(b, c->vocabulary, c->hidden), 1, b->element);
  return a.overflow ? SIZE_MAX : a.used;
}

gl_status model_pack(model *m, gl_error *err) {
  const backend_ops *ops = m->b->ops;
  if (m->packed_is_current || ops->pack == NULL) return ops->status(m->b, err);
  if (m->packed == NULL) {
    const size_t bytes = model_packed_bytes(&m->c, m->b);
    if (bytes == SIZE_MAX) return gl_fail(err, GL_ENOMEM, "weights that fit no memory packed");
    m->packed = ops->allocate(m->b, bytes);
    if (m->packed == NULL) return ops->status(m->b, err);
  }
  for (size_t i = 0; i <= head_number(&m->c); ++i) {
    const matrix w = matrix_at(&m->c, m, i);
    ops->pack(m->b, m->packed + packed_at(&m->c, m->b, i), model_weight(m, w.place), w.outputs,
              w.inputs);
  }
  const gl_status status = ops->status(m->b, err);
  m->packed_is_current = status == GL_OK;
  return status;
}

/* Multiplies rows by the model's i-th weight matrix, in packed form where the backend has one. */
static void product(const model *m, size_t i, void *out, const void *in, size_t rows, int flags) {
  const backend_ops *ops = m->b->ops;
  const matrix w = matrix_at(&m->c, m, i);
  const void *weight = model_weight(m, w.place);
  if (ops->pack == NULL) {
    ops->product(m->b, out, in, weight, rows, w.outputs, w.inputs, flags);
    return;
  }
  assert(m->packed_is_current);
  ops->product_packed(m->b, out, in, weight, m->packed + packed_at(&m->c, m->b, i), rows, w.outputs,
                      w.inputs, flags);
}

/* T out [rows, outputs] = T in [rows, inputs] times the transpose of a matrix of a layer; flags as
 * in product(). */
static void model_product(const model *m, size_t layer, model_kind kind, void *out, const void *in,
                          size_t rows, int flags) {
  product(m, layer * MODEL_KINDS + kind, out, in, rows, flags);
}

/* model_product() of a matrix with `hidden` outputs into norm->branch, then the norm. One fused
 * operation if the backend has it and flags ask for row-wise products. */
static void model_product_norm(const model *m, size_t layer, model_kind kind, const void *in,
                               size_t rows, int flags, const model_norm *norm) {
  const backend_ops *ops = m->b->ops;
  const model_config *c = &m->c;
  const void *norm_weight = model_weight(m, norm->weight);
  model_product(m, layer, kind, norm->branch, in, rows, flags);
  ops->norm(m->b, norm->out, norm->rstd, norm->sum, norm->in, norm->branch, norm_weight, rows,
            c->hidden, c->rms_eps);
}

/* The product with gate_proj and up_proj into gate_up, then SwiGLU into `active`. Fused under the
 * same conditions; gate_up is not written then. */
static void model_product_swiglu(const model *m, size_t layer, void *active, void *gate_up,
                                 const void *in, size_t rows, int flags) {
  const backend_ops *ops = m->b->ops;
  const model_config *c = &m->c;
  if (ops->product_swiglu != NULL && (flags & PRODUCT_ROW_BY_ROW)) {
    ops->product_swiglu(m->b, active, in, model_weight(m, m->place[layer].gate_up), rows,
                        c->intermediate, c->hidden);
    return;
  }
  model_product(m, layer, MODEL_GATE_UP, gate_up, in, rows, flags);
  ops->swiglu(m->b, active, gate_up, rows, c->intermediate);
}

void model_logits(const model *m, void *out, const void *in, size_t rows) {
  const backend_ops *ops = m->b->ops;
  if (ops->pack == NULL)
    ops->logits(m->b, out, in, model_weight(m, m->head), rows, m->c.vocabulary, m->c.hidden);
  else
    product(m, head_number(&m->c), out, in, rows, PRODUCT_ROW_BY_ROW);
}

/* --- forward --- */

gl_status model_forward(model *m, const packed_tokens *packed, double temperature, int keep,
                        double *logp, double *entropy, gl_error *err) {
  const forward_options o = {.temperature = temperature, .keep = keep};
  return model_forward_with(m, packed, &o, logp, entropy, err);
}

static void run_output(const model *m, size_t n) {
  const backend_ops *ops = m->b->ops;
  const pass *p = &m->pass;
  const void *weight = model_weight(m, m->head);
  ops->output(m->b, p->logp, p->entropy, p->lse, p->logits, p->last_normed, weight, p->target,
              p->kept, n, m->c.vocabulary, m->c.hidden, m->temperature);
}

gl_status model_forward_with(model *m, const packed_tokens *packed, const forward_options *o,
                             double *logp, double *entropy, gl_error *err) {
  const backend_ops *ops = m->b->ops;
  pass *p = &m->pass;
  if (!(o->temperature > 0))
    return gl_fail(err, GL_EINTERNAL, "a temperature of %g is not positive", o->temperature);
  if (o->keep && m->use != &m->own)
    return gl_fail(err, GL_EINTERNAL, "only the model's own values have a gradient");
  gl_status status = model_pass_begin(m, packed, o->shared, o->kept, o->keep, err);
  const size_t n = packed->n_targets;
  if (status != GL_OK) return status;
  m->temperature = o->temperature;
  if (n > 0) {
    model_layers(m, NULL, 0);
    model_last_norm(m);
    run_output(m, n);
    void *staging = malloc(MODEL_STAGING);
    if (staging == NULL) return gl_fail_memory(err, "log-probabilities");
    model_download(m, p->logp, 0, n, logp, staging);
    if (entropy != NULL) model_download(m, p->entropy, 0, n, entropy, staging);
    free(staging);
  }
  status = ops->status(m->b, err);
  m->kept = status == GL_OK && o->keep;
  return status;
}

/* --- the parts of a distribution --- */

/* Uploads into m->parts: the indices of n targets, then their sets of kept tokens, [n * words]. */
static gl_status put_parts(model *m, const size_t *target, const uint32_t *set, size_t n,
                           size_t words, gl_error *err) {
  const size_t numbers = n * (1 + words);
  if (numbers > m->parts_room) {
    m->b->ops->release(m->b, m->parts);
    m->parts_room = 0;
    m->parts = m->b->ops->allocate(m->b, numbers * sizeof *m->parts);
    if (m->parts != NULL) m->parts_room = numbers;
  }
  int32_t *place = malloc(n * sizeof *place);
  if (m->parts == NULL || place == NULL) {
    free(place);
    gl_status status = m->b->ops->status(m->b, err);
    return status != GL_OK ? status : gl_fail_memory(err, "sets of kept tokens");
  }
  for (size_t j = 0; j < n; ++j) place[j] = (int32_t)target[j];
  m->b->ops->upload(m->b, m->parts, place, n * sizeof *place);
  m->b->ops->upload(m->b, m->parts + n, set, n * words * sizeof *set);
  free(place);
  return GL_OK;
}

/* Handles at most as many targets at a time as the forward had. It reuses the buffers of the final
 * norm's input and of forward results that have been read already. */
gl_status model_kept_parts(model *m, const size_t *target, const kept_tokens *kept, size_t n,
                           double *const part[3], gl_error *err) {
  const pass *p = &m->pass;
  const backend_ops *ops = m->b->ops;
  const size_t words = kept->shape->words, most = p->shape.targets;
  void *staging = malloc(MODEL_STAGING);
  gl_status status = staging != NULL ? GL_OK : gl_fail_memory(err, "the parts of distributions");
  for (size_t j = 0; j < n && status == GL_OK; ++j)
    if (target[j] >= most)
      status =
          gl_fail(err, GL_EINTERNAL, "the distribution before target %zu of %zu", target[j], most);
  for (size_t j = 0; j < n && status == GL_OK; j += most) {
    const size_t some = n - j < most ? n - j : most;
    status = put_parts(m, target + j, kept->set + j * words, some, words, err);
    if (status != GL_OK) break;
    const kept_sets sets = {*kept->shape, (uint32_t *)(void *)(m->parts + some)};
    ops->gather(m->b, p->last_branch, p->last_normed, m->parts, some, m->c.hidden);
    ops->kept_parts(m->b, p->logp, p->entropy, p->dlogp, p->last_branch, model_weight(m, m->head),
                    sets, some, m->c.hidden, m->temperature);
    const void *const from[] = {p->logp, p->entropy, p->dlogp};
    for (size_t k = 0; k < 3; ++k) model_download(m, from[k], 0, some, part[k] + j, staging);
    status = ops->status(m->b, err);
  }
  free(staging);
  return status;
}

/* --- layers --- */

/* Adds the biases of queries, keys and values. */
static void add_biases(const model *m, size_t layer, const layer_run *run) {
  const size_t bias = m->place[layer].qkv_bias;
  const head_shape heads = model_heads(&m->c);
  if (bias != SIZE_MAX)
    m->b->ops->bias(m->b, run->l->qkv, model_weight(m, bias), run->packed.rows,
                    (heads.q + 2 * heads.kv) * heads.dim);
}

/* Applies norm and rotary embedding to queries and keys; stores keys and values in the cache, if
 * there is one. */
static void store_heads(const model *m, size_t layer, const layer_run *run) {
  const layer_places *w = &m->place[layer];
  const layer_activations *l = run->l;
  const layer_cache *cache = run->cache;
  const backend_ops *ops = m->b->ops;
  const head_shape heads = model_heads(&m->c);
  const void *q_norm = model_optional_weight(m, w->q_norm);
  const void *k_norm = model_optional_weight(m, w->k_norm);
  if (cache != NULL && ops->heads_store != NULL) {
    ops->heads_store(m->b, l->qk, l->heads_rstd, cache->k, cache->v, l->qkv, q_norm, k_norm,
                     m->cosine, m->sine, run->position, cache->slot, run->packed.rows,
                     cache->capacity, heads, m->c.rms_eps);
    return;
  }
  ops->heads(m->b, l->qk, l->heads_rstd, l->qkv, q_norm, k_norm, m->cosine, m->sine, run->position,
             run->packed.rows, heads, m->c.rms_eps);
  if (cache != NULL)
    ops->cache_store(m->b, cache->k, cache->v, l->qk, l->qkv, cache->slot, run->position,
                     run->packed.rows, cache->capacity, heads);
}

/* Attention, from queries, keys and values as their product leaves them. */
static void layer_attention(const model *m, size_t layer, const layer_run *run) {
  const layer_places *w = &m->place[layer];
  const layer_activations *l = run->l;
  const layer_cache *cache = run->cache;
  const backend_ops *ops = m->b->ops;
  backend *b = m->b;
  const head_shape heads = model_heads(&m->c);
  const size_t rows = run->packed.rows;
  const int decodes = cache != NULL && cache->decode;
  add_biases(m, layer, run);
  if (decodes && ops->heads_attention != NULL) {
    ops->heads_attention(b, l->attended, l->qk, l->heads_rstd, cache->k, cache->v, l->qkv,
                         model_optional_weight(m, w->q_norm), model_optional_weight(m, w->k_norm),
                         m->cosine, m->sine, run->position, cache->slot, rows, cache->capacity,
                         heads, m->c.rms_eps);
    return;
  }
  store_heads(m, layer, run);
  if (decodes)
    ops->attention_cached(b, l->attended, l->qk, cache->k, cache->v, cache->slot, run->position,
                          rows, cache->capacity, heads);
  else if (run->shared.trees > 0)
    ops->attention_shared(b, l->attended, l->lse, l->qk, l->qkv, run->packed, run->shared, heads);
  else
    ops->attention(b, l->attended, l->lse, l->qk, l->qkv, run->packed, heads);
}

void model_layer(const model *m, size_t layer, const layer_run *run, const void *in,
                 const void *add) {
  const model_config *c = &m->c;
  const backend_ops *ops = m->b->ops;
  backend *b = m->b;
  const layer_places *w = &m->place[layer];
  const layer_activations *l = run->l;
  const size_t rows = run->packed.rows;

  if (!run->begun)
    ops->norm(b, l->normed, l->rstd, l->in, in, add, model_weight(m, w->input_norm), rows,
              c->hidden, c->rms_eps);
  model_product(m, layer, MODEL_QKV, l->qkv, l->normed, rows, run->flags);
  layer_attention(m, layer, run);
  const model_norm middle = {l->mid_normed, l->mid_rstd, l->mid, l->in, run->branch, w->post_norm};
  model_product_norm(m, layer, MODEL_O, l->attended, rows, run->flags, &middle);
  model_product_swiglu(m, layer, l->active, l->gate_up, l->mid_normed, rows, run->flags);
  if (run->next != NULL)
    model_product_norm(m, layer, MODEL_DOWN, l->active, rows, run->flags, run->next);
  else if (run->want_branch)
    model_product(m, layer, MODEL_DOWN, run->branch, l->active, rows, run->flags);
}

void model_layers(model *m, const layer_cache *cache, int flags) {
  pass *p = &m->pass;
  layer_run run = {.branch = p->branch,
                   .position = p->position,
                   .packed = pass_rows(p),
                   .shared = pass_shared(p),
                   .flags = flags,
                   .want_branch = 1};
  m->b->ops->embed(m->b, p->layer[0].in, model_weight(m, m->embed), p->token, p->shape.rows,
                   m->c.hidden);
  for (size_t l = 0; l < m->c.layers; ++l) {
    run.l = &p->layer[l];
    run.cache = cache != NULL ? &cache[l] : NULL;
    model_layer(m, l, &run, l == 0 ? p->layer[0].in : p->layer[l - 1].mid,
                l == 0 ? NULL : p->branch);
  }
}

void model_last_norm(model *m) {
  const pass *p = &m->pass;
  const backend_ops *ops = m->b->ops;
  const size_t n = p->shape.targets, width = m->c.hidden;
  ops->gather(m->b, p->last, p->layer[m->c.layers - 1].mid, p->row, n, width);
  ops->gather(m->b, p->last_branch, p->branch, p->row, n, width);
  ops->norm(m->b, p->last_normed, p->last_rstd, p->last, p->last, p->last_branch,
            model_weight(m, m->norm), n, width, m->c.rms_eps);
}

/* --- tokens from the host --- */

/* The costs of a layer on a device, in units of a row times a parameter forward and backward (6
 * operations, 0.02 ps on an H100): launches of kernels (100 us), and a byte copied (0.33 ps).
 * Estimates; not measured. */
static const double LAUNCHES = 5e9, BYTE = 16;

int model_shares(const model *m, size_t saved, size_t positions) {
  const model_config *c = &m->c;
  const head_shape s = model_heads(c);
  if (m->b->ops->attention_shared == NULL) return 0;
  if (!m->b->copies_shared) return 1;
  const double q = (double)(s.q * s.dim), kv = (double)(s.kv * s.dim);
  const double parameters = (double)c->hidden * (2 * (q + kv) + 3 * (double)c->intermediate);
  const double bytes = (10 * q + 12 * kv) * (double)m->b->element; /* of a position */
  return (double)saved * parameters >= LAUNCHES + (double)positions * bytes * BYTE;
}

/* Number of positions that sequence s shares with its parent. */
static size_t before_of(const shared_tokens *shared, size_t s) {
  return shared != NULL ? shared->before[s] : 0;
}

static size_t sequence_length(const packed_tokens *packed, const shared_tokens *shared, size_t s) {
  return before_of(shared, s) + packed->start[s + 1] - packed->start[s];
}

/* 1 if the tree's first sequence is complete, and each other one shares a prefix of an earlier
 * sequence of the tree, or nothing. */
static int is_tree(const packed_tokens *packed, const shared_tokens *shared, size_t t) {
  const size_t first = shared->tree[t], end = shared->tree[t + 1];
  if (first >= end || end > packed->n_sequences || shared->before[first] > 0) return 0;
  for (size_t s = first; s < end; ++s) {
    const size_t parent = shared->parent[s], before = shared->before[s];
    if (before == 0) continue;
    if (parent < first || parent >= s || before > sequence_length(packed, shared, parent)) return 0;
  }
  return 1;
}

static gl_status check_trees(const model *m, const packed_tokens *packed,
                             const shared_tokens *shared, gl_error *err) {
  if (shared == NULL) return GL_OK;
  if (m->b->ops->attention_shared == NULL)
    return gl_fail(err, GL_EINTERNAL, "%s cannot run sequences that share beginnings",
                   m->b->device);
  int right = shared->tree[0] == 0 && shared->tree[shared->n_trees] == packed->n_sequences;
  for (size_t t = 0; t < shared->n_trees && right; ++t) right = is_tree(packed, shared, t);
  return right ? GL_OK : gl_fail(err, GL_EINTERNAL, "sequences that share what is not there");
}

/* Checks that every target is in its set of kept tokens, unless the set is empty. */
static gl_status check_kept(const model *m, const packed_tokens *packed, const kept_tokens *kept,
                            gl_error *err) {
  if (kept == NULL) return GL_OK;
  if (kept->shape->vocabulary != m->c.vocabulary || kept->shape->words == 0)
    return gl_fail(err, GL_EINTERNAL, "kept tokens of a vocabulary of %zu, not of %zu",
                   kept->shape->vocabulary, m->c.vocabulary);
  for (size_t j = 0; j < packed->n_targets; ++j) {
    const uint32_t *set = kept->set + j * kept->shape->words;
    if (kept_count(kept->shape, set) > 0 && packed->target[j] >= 0 &&
        (size_t)packed->target[j] < m->c.vocabulary &&
        !kept_has(kept->shape, set, (size_t)packed->target[j]))
      return gl_fail(err, GL_EINTERNAL, "target %zu, token %d, is not among the tokens kept", j,
                     (int)packed->target[j]);
  }
  return GL_OK;
}

/* Checks sequences, tokens and targets against the model. *longest receives the longest sequence.
 */
static gl_status check_packed_tokens(const model *m, const packed_tokens *packed,
                                     const shared_tokens *shared, size_t *longest, gl_error *err) {
  size_t full = 0; /* positions of all sequences */
  *longest = 0;
  if (packed->n_tokens > INT32_MAX || packed->n_targets > INT32_MAX ||
      (packed->n_sequences > 0 &&
       (packed->start[0] != 0 || packed->start[packed->n_sequences] != packed->n_tokens)))
    return gl_fail(err, GL_EINTERNAL, "packed sequences that do not cover their %zu tokens",
                   packed->n_tokens);
  gl_status status = check_trees(m, packed, shared, err);
  if (status != GL_OK) return status;
  for (size_t s = 0; s < packed->n_sequences; ++s) {
    const size_t n = sequence_length(packed, shared, s);
    if (packed->start[s + 1] <= packed->start[s])
      return gl_fail(err, GL_EINTERNAL, "sequence %zu has no tokens", s);
    if (n > m->c.max_positions)
      return gl_fail(err, GL_EINPUT,
                     "a sequence of %zu tokens is longer than the model's context of %zu; raise "
                     "`context` or shorten prompts and max_tokens",
                     n, m->c.max_positions);
    *longest = n > *longest ? n : *longest;
    full += n;
  }
  if (full > INT32_MAX)
    return gl_fail(err, GL_EINPUT, "sequences of %zu tokens in one pass; lower micro_batch", full);
  for (size_t i = 0; i < packed->n_tokens; ++i)
    if (packed->token[i] < 0 || (size_t)packed->token[i] >= m->c.vocabulary)
      return gl_fail(err, GL_EINPUT, "token %d is outside the model's vocabulary of %zu",
                     (int)packed->token[i], m->c.vocabulary);
  for (size_t j = 0; j < packed->n_targets; ++j) {
    if (packed->target[j] < 0 || (size_t)packed->target[j] >= m->c.vocabulary)
      return gl_fail(err, GL_EINPUT, "token %d is outside the model's vocabulary of %zu",
                     (int)packed->target[j], m->c.vocabulary);
    if (packed->target_after[j] >= packed->n_tokens ||
        (j > 0 && packed->target_after[j] < packed->target_after[j - 1]))
      return gl_fail(err, GL_EINTERNAL, "targets follow tokens out of order or range");
  }
  return GL_OK;
}

/* Writes the index arrays into host staging memory, in the order in which the pass has them in
 * backend memory: token, position, start, target_after, target; then tree, parent, before, full if
 * prefixes are shared; then the sets of kept tokens if there are any. */
static gl_status fill_index(model *m, const packed_tokens *packed, const shared_tokens *shared,
                            const kept_tokens *kept, const pass_shape *shape, gl_error *err) {
  const size_t n = packed->n_tokens, s = packed->n_sequences, t = packed->n_targets;
  const size_t room = pass_index_numbers(shape);
  if (room > m->index_room) {
    int32_t *more = realloc(m->index, room * sizeof *more);
    if (more == NULL) return gl_fail_memory(err, "a batch's tokens");
    m->index = more;
    m->index_room = room;
  }
  int32_t *position = m->index + n, *start = position + n, *row = start + s + 1, *target = row + t;
  if (n > 0) memcpy(m->index, packed->token, n * sizeof *packed->token);
  start[0] = 0;
  for (size_t k = 0; k < s; ++k) {
    start[k + 1] = (int32_t)packed->start[k + 1];
    for (size_t i = packed->start[k]; i < packed->start[k + 1]; ++i)
      position[i] = (int32_t)(before_of(shared, k) + i - packed->start[k]);
  }
  for (size_t j = 0; j < t; ++j) {
    row[j] = (int32_t)packed->target_after[j];
    target[j] = packed->target[j];
  }
  if (kept != NULL && t > 0)
    memcpy(m->index + room - t * shape->set_words, kept->set,
           t * shape->set_words * sizeof *kept->set);
  if (shared == NULL) return GL_OK;
  int32_t *tree = target + t, *parent = tree + shape->trees + 1, *before = parent + s,
          *full = before + s;
  full[0] = 0;
  for (size_t k = 0; k <= shape->trees; ++k) tree[k] = (int32_t)shared->tree[k];
  for (size_t k = 0; k < s; ++k) {
    before[k] = (int32_t)shared->before[k];
    parent[k] = before[k] > 0 ? (int32_t)shared->parent[k] : 0;
    full[k + 1] = full[k] + (int32_t)sequence_length(packed, shared, k);
  }
  return GL_OK;
}

/* Ensures the block has at least `bytes` bytes. A reallocation loses the contents. */
static gl_status reserve_block(model *m, size_t bytes, gl_error *err) {
  if (bytes == SIZE_MAX)
    return gl_fail(err, GL_ENOMEM, "a batch with more activations than any memory holds");
  if (bytes > m->block_bytes) {
    m->b->ops->release(m->b, m->block);
    m->block_bytes = 0;
    m->block = m->b->ops->allocate(m->b, bytes);
    if (m->block != NULL) m->block_bytes = bytes;
  }
  return m->b->ops->status(m->b, err);
}

/* Bytes of the pass. Leaves the logits out if the device no longer has the memory, which others may
 * have taken since the plan was made. */
static size_t pass_bytes_at_hand(const model *m, pass_shape *shape) {
  const size_t bytes = model_pass_bytes(&m->c, m->b, *shape);
  size_t total, available;
  if (!shape->keep || shape->stores != MODEL_STORES_LOGITS || bytes <= m->block_bytes) return bytes;
  m->b->ops->memory(m->b, &total, &available);
  if (bytes - m->block_bytes <= available) return bytes;
  shape->stores = MODEL_STORES_ACTIVATIONS;
  return model_pass_bytes(&m->c, m->b, *shape);
}

gl_status model_pass_begin(model *m, const packed_tokens *packed, const shared_tokens *shared,
                           const kept_tokens *kept, int keep, gl_error *err) {
  size_t longest;
  pass_shape shape = {.rows = packed->n_tokens,
                      .sequences = packed->n_sequences,
                      .targets = packed->n_targets,
                      .keep = keep,
                      .stores = m->stores,
                      .trees = shared != NULL ? shared->n_trees : 0,
                      .set_words = kept != NULL ? kept->shape->words : 0};
  m->kept = 0;
  gl_status status = check_packed_tokens(m, packed, shared, &longest, err);
  if (status == GL_OK) status = check_kept(m, packed, kept, err);
  if (status == GL_OK) status = fill_index(m, packed, shared, kept, &shape, err);
  if (status == GL_OK) status = model_pack(m, err);
  if (status != GL_OK) return status;
  status = reserve_block(m, pass_bytes_at_hand(m, &shape), err);
  if (status != GL_OK) return status;
  device_arena a = {.base = m->block};
  pass_take(&m->pass, &a, &m->c, m->b, shape, m->layer);
  m->pass.longest = longest;
  if (shared != NULL) m->pass.full_host = m->index + (m->pass.full - m->pass.token);
  if (kept != NULL) m->pass.kept.shape = *kept->shape;
  m->b->ops->upload(m->b, m->pass.token, m->index, pass_index_numbers(&shape) * sizeof *m->index);
  return GL_OK;
}

/* --- backward --- */
/* From gradients of log-probabilities to gradients of parameters. The stages run backward over the
 * layers. d_stream is always the gradient of the residual stream. */

/* Propagates gradients of log-probabilities through the output embedding and the final norm to
 * d_stream. */
static void last_backward(model *m) {
  const pass *p = &m->pass;
  const backend_ops *ops = m->b->ops;
  const size_t n = p->shape.targets, width = m->c.hidden, bytes = width * m->b->element;
  const void *weight = model_weight(m, m->head);
  void *d_weight = model_gradient_at(m, m->head);
  ops->output_backward(m->b, p->d_last_normed, d_weight, p->dlogp, p->lse, p->logits,
                       p->last_normed, weight, p->target, p->kept, n, m->c.vocabulary, width,
                       m->temperature);
  ops->zero(m->b, p->d_last, n * bytes);
  ops->norm_backward(m->b, p->d_last, model_gradient_at(m, m->norm), p->d_last_normed, p->last,
                     p->last_rstd, model_weight(m, m->norm), n, width);
  ops->zero(m->b, p->d_stream, p->shape.rows * bytes);
  ops->scatter_add(m->b, p->d_stream, p->d_last, p->row, n, width);
}

/* Backward of the feed-forward block: from d_stream to d_stream and the block's gradients. */
static void gated_backward(model *m, size_t layer) {
  const pass *p = &m->pass;
  const backend_ops *ops = m->b->ops;
  backend *b = m->b;
  const layer_places *w = &m->place[layer];
  const layer_activations *l = &p->layer[layer];
  const size_t rows = p->shape.rows, h = m->c.hidden, i = m->c.intermediate;
  ops->product_backward_weight(b, model_gradient_at(m, w->down), p->d_stream, l->active, rows, h,
                               i);
  ops->product_backward_input(b, p->d_active, p->d_stream, model_weight(m, w->down), rows, h, i, 0);
  ops->swiglu_backward(b, p->d_gate_up, p->d_active, l->gate_up, rows, i);
  ops->product_backward_weight(b, model_gradient_at(m, w->gate_up), p->d_gate_up, l->mid_normed,
                               rows, 2 * i, h);
  ops->product_backward_input(b, p->d_normed, p->d_gate_up, model_weight(m, w->gate_up), rows,
                              2 * i, h, 0);
  ops->norm_backward(b, p->d_stream, model_gradient_at(m, w->post_norm), p->d_normed, l->mid,
                     l->mid_rstd, model_weight(m, w->post_norm), rows, h);
}

/* Backward of the attention block: from d_stream to d_stream and the block's gradients. */
static void attention_backward(model *m, size_t layer) {
  const pass *p = &m->pass;
  const backend_ops *ops = m->b->ops;
  backend *b = m->b;
  const layer_places *w = &m->place[layer];
  const layer_activations *l = &p->layer[layer];
  const head_shape heads = model_heads(&m->c);
  const size_t rows = p->shape.rows, h = m->c.hidden, q = heads.q * heads.dim,
               all = q + 2 * heads.kv * heads.dim;
  ops->product_backward_weight(b, model_gradient_at(m, w->o), p->d_stream, l->attended, rows, h, q);
  ops->product_backward_input(b, p->d_attended, p->d_stream, model_weight(m, w->o), rows, h, q, 0);
  if (p->shape.trees > 0)
    ops->attention_shared_backward(b, p->d_qk, p->d_qkv, p->d_attended, l->attended, l->lse, l->qk,
                                   l->qkv, pass_rows(p), pass_shared(p), heads);
  else
    ops->attention_backward(b, p->d_qk, p->d_qkv, p->d_attended, l->attended, l->lse, l->qk, l->qkv,
                            pass_rows(p), heads);
  const int norms = w->q_norm != SIZE_MAX;
  ops->heads_backward(b, p->d_qkv, norms ? model_gradient_at(m, w->q_norm) : NULL,
                      norms ? model_gradient_at(m, w->k_norm) : NULL, p->d_qk, l->qkv,
                      l->heads_rstd, model_optional_weight(m, w->q_norm),
                      model_optional_weight(m, w->k_norm), m->cosine, m->sine, p->position, rows,
                      heads);
  if (w->qkv_bias != SIZE_MAX)
    ops->bias_backward(b, model_gradient_at(m, w->qkv_bias), p->d_qkv, rows, all);
  ops->product_backward_weight(b, model_gradient_at(m, w->qkv), p->d_qkv, l->normed, rows, all, h);
  ops->product_backward_input(b, p->d_normed, p->d_qkv, model_weight(m, w->qkv), rows, all, h, 0);
  ops->norm_backward(b, p->d_stream, model_gradient_at(m, w->input_norm), p->d_normed, l->in,
                     l->rstd, model_weight(m, w->input_norm), rows, h);
}

/* Recomputes a layer's activations from its stored input. */
static void recompute(model *m, size_t layer) {
  const pass *p = &m->pass;
  const layer_run run = {.l = &p->layer[layer],
                         .branch = p->branch,
                         .position = p->position,
                         .packed = pass_rows(p),
                         .shared = pass_shared(p)};
  model_layer(m, layer, &run, run.l->in, NULL);
}

gl_status model_backward(model *m, const double *dlogp, gl_error *err) {
  const pass *p = &m->pass;
  const size_t n = p->shape.targets;
  if (!m->kept) return gl_fail(err, GL_EINTERNAL, "a backward without the forward it belongs to");
  m->kept = 0;
  gl_status status = model_want_gradient(m, err);
  if (status != GL_OK || n == 0) return status;
  void *staging = malloc(MODEL_STAGING);
  if (staging == NULL) return gl_fail_memory(err, "coefficients");
  model_upload(m, p->dlogp, 0, n, dlogp, staging);
  free(staging);
  last_backward(m);
  for (size_t l = m->c.layers; l-- > 0;) {
    /* The last layer needs no recomputation: the buffers that layers share still hold its
     * activations. */
    if (m->stores == MODEL_STORES_INPUTS && l + 1 < m->c.layers) recompute(m, l);
    gated_backward(m, l);
    attention_backward(m, l);
  }
  m->b->ops->embed_backward(m->b, model_gradient_at(m, m->embed), p->d_stream, p->token,
                            p->shape.rows, m->c.hidden);
  return m->b->ops->status(m->b, err);
}
