/* Cuts the buffers of a pass from one block of memory. */
#include "llm/model/internal.h"

#include <assert.h>
#include <string.h>

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

/* Row `first` of a matrix whose rows have `width` numbers of `bytes` bytes. */
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

static void take_layers(pass *p, device_arena *a, const model_config *c, const backend *b,
                        layer_activations *layer) {
  const pass_shape *s = &p->shape;
  const int all = s->keep && !s->recompute;
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

void pass_take(pass *p, device_arena *a, const model_config *c, const backend *b, pass_shape shape,
               layer_activations *layer) {
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
    behind = p->before + shape.sequences;
  }
  if (p->token != NULL && shape.kept > 0) p->kept.set = (uint32_t *)behind;
  p->branch = device_arena_take(a, shape.rows, c->hidden, t);
  p->last = device_arena_take(a, n, c->hidden, t);
  p->last_branch = device_arena_take(a, n, c->hidden, t);
  p->last_normed = device_arena_take(a, n, c->hidden, t);
  p->last_rstd = device_arena_take(a, n, 1, m);
  p->logp = device_arena_take(a, n, 1, m);
  p->entropy = device_arena_take(a, n, 1, m);
  p->lse = device_arena_take(a, n, 1, m);
  p->dlogp = device_arena_take(a, n, 1, m);
  take_layers(p, a, c, b, layer);
  if (shape.keep) take_gradients(p, a, c, b);
}

size_t model_pass_bytes(const model_config *c, const backend *b, pass_shape shape) {
  device_arena a = {0};
  pass p;
  if (shape.rows > SIZE_MAX / 8 || shape.sequences > SIZE_MAX / 8 ||
      shape.targets > SIZE_MAX / 8 / (1 + shape.kept))
    return SIZE_MAX;
  pass_take(&p, &a, c, b, shape, NULL);
  return a.overflow ? SIZE_MAX : a.used;
}
