/* From gradients of log-probabilities to gradients of parameters. Stages run backward over the
 * layers; d_stream is the gradient of the residual stream throughout. */
#include "llm/model/internal.h"

#include <stdlib.h>

/* From gradients of log-probabilities through the output embedding and the final norm to d_stream.
 */
static void last_backward(model *m) {
  const pass *p = &m->pass;
  const backend_ops *ops = m->b->ops;
  const size_t n = p->shape.targets, width = m->c.hidden, bytes = width * m->b->element;
  const void *weight = model_weight(m, m->head);
  void *d_weight = model_gradient_at(m, m->head);
  if (p->kept.set != NULL)
    ops->output_kept_backward(m->b, p->d_last_normed, d_weight, p->dlogp, p->lse, p->last_normed,
                              weight, p->target, p->kept, n, width, m->temperature);
  else
    ops->output_backward(m->b, p->d_last_normed, d_weight, p->dlogp, p->lse, p->last_normed, weight,
                         p->target, n, m->c.vocabulary, width, m->temperature);
  ops->zero(m->b, p->d_last, n * bytes);
  ops->norm_backward(m->b, p->d_last, model_gradient_at(m, m->norm), p->d_last_normed, p->last,
                     p->last_rstd, model_weight(m, m->norm), n, width);
  ops->zero(m->b, p->d_stream, p->shape.rows * bytes);
  ops->scatter_add(m->b, p->d_stream, p->d_last, p->row, n, width);
}

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
  ops->heads_backward(b, p->d_qkv, model_gradient_at(m, w->q_norm), model_gradient_at(m, w->k_norm),
                      p->d_qk, l->qkv, l->heads_rstd, model_weight(m, w->q_norm),
                      model_weight(m, w->k_norm), m->cosine, m->sine, p->position, rows, heads);
  ops->product_backward_weight(b, model_gradient_at(m, w->qkv), p->d_qkv, l->normed, rows, all, h);
  ops->product_backward_input(b, p->d_normed, p->d_qkv, model_weight(m, w->qkv), rows, all, h, 0);
  ops->norm_backward(b, p->d_stream, model_gradient_at(m, w->input_norm), p->d_normed, l->in,
                     l->rstd, model_weight(m, w->input_norm), rows, h);
}

/* Computes a layer's activations again from its input, which was kept. */
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
    /* The buffers that layers share still hold the last layer's activations. */
    if (m->recompute && l + 1 < m->c.layers) recompute(m, l);
    gated_backward(m, l);
    attention_backward(m, l);
  }
  m->b->ops->embed_backward(m->b, model_gradient_at(m, m->embed), p->d_stream, p->token,
                            p->shape.rows, m->c.hidden);
  return m->b->ops->status(m->b, err);
}
