/* The weights that products read, packed once for each version of the values where the backend has
 * a packed form (operations.h): products of many rows and of one row then read the same memory in
 * the same order.
 *
 * One packed copy is kept, of the values in use. It is made when a pass begins that finds none
 * (model_pack), and thrown away whenever the values or the choice of them change (model_changed).
 */
#include "llm/model/internal.h"

#include <assert.h>

/* The sizes and the place of a matrix among the parameters. */
typedef struct matrix {
  size_t outputs, inputs, place;
} matrix;

/* Matrix number i; without a model its place is not known. The output embedding is the last. */
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

/* Number of the output embedding. */
static size_t head_number(const model_config *c) {
  return c->layers * MODEL_KINDS;
}

/* Bytes of the first n matrices of one layer, packed; SIZE_MAX where that overflows. */
static size_t layer_bytes(const model_config *c, const backend *b, size_t n) {
  device_arena a = {0};
  for (size_t i = 0; i < n; ++i) {
    const matrix w = matrix_at(c, NULL, i);
    device_arena_take(&a, b->ops->packed_numbers(b, w.outputs, w.inputs), 1, b->element);
  }
  return a.overflow ? SIZE_MAX : a.used;
}

/* Where matrix i begins in the packed weights, whose size model_packed_bytes has checked. */
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

void model_changed(model *m) {
  m->kept = 0;
  m->packed_is_current = 0;
}

/* The product with matrix number i. */
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

void model_product(const model *m, size_t layer, model_kind kind, void *out, const void *in,
                   size_t rows, int flags) {
  product(m, layer * MODEL_KINDS + kind, out, in, rows, flags);
}

void model_product_norm(const model *m, size_t layer, model_kind kind, void *branch, const void *in,
                        size_t rows, int flags, const model_norm *norm) {
  const backend_ops *ops = m->b->ops;
  const model_config *c = &m->c;
  const void *norm_weight = model_weight(m, norm->weight);
  const matrix w = matrix_at(c, m, layer * MODEL_KINDS + kind);
  assert(w.outputs == c->hidden);
  if (ops->product_norm != NULL && (flags & PRODUCT_ROW_BY_ROW)) {
    ops->product_norm(m->b, norm->out, norm->rstd, norm->sum, norm->in, norm_weight, c->rms_eps,
                      branch, in, model_weight(m, w.place), rows, w.outputs, w.inputs);
    return;
  }
  model_product(m, layer, kind, branch, in, rows, flags);
  ops->norm(m->b, norm->out, norm->rstd, norm->sum, norm->in, branch, norm_weight, rows, c->hidden,
            c->rms_eps);
}

void model_product_swiglu(const model *m, size_t layer, void *active, void *gate_up, const void *in,
                          size_t rows, int flags) {
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
