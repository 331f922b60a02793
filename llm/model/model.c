/* A model's parameters: order, memory and initial values. */
#include "llm/model/internal.h"

#include "core/random/rng.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- order --- */

/* Appends a tensor and returns its offset. In the name '#' is replaced by `layer`, and ".weight" is
 * appended unless the tensor is a bias. */
static size_t add_parameter(model *m, const char *name, size_t layer, size_t rows, size_t columns) {
  model_tensor *t = &m->tensor[m->n_tensors++];
  const char *rest = strchr(name, '#'), *end = strstr(name, ".bias") == NULL ? ".weight" : "";
  *t = (model_tensor){.offset = m->n, .rows = rows, .columns = columns};
  if (rest == NULL)
    snprintf(t->name, sizeof t->name, "%s%s", name, end);
  else
    snprintf(t->name, sizeof t->name, "%.*s%zu%s%s", (int)(rest - name), name, layer, rest + 1,
             end);
  m->n += rows * columns;
  return t->offset;
}

static void add_matrices(model *m) {
  const model_config *c = &m->c;
  const size_t q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim, h = c->hidden;
  m->embed = add_parameter(m, "model.embed_tokens", 0, c->vocabulary, h);
  m->head = c->tied ? m->embed : add_parameter(m, "lm_head", 0, c->vocabulary, h);
  for (size_t l = 0; l < c->layers; ++l) {
    layer_places *p = &m->place[l];
    p->qkv = add_parameter(m, "model.layers.#.self_attn.q_proj", l, q, h);
    add_parameter(m, "model.layers.#.self_attn.k_proj", l, kv, h);
    add_parameter(m, "model.layers.#.self_attn.v_proj", l, kv, h);
    p->o = add_parameter(m, "model.layers.#.self_attn.o_proj", l, h, q);
    p->gate_up = add_parameter(m, "model.layers.#.mlp.gate_proj", l, c->intermediate, h);
    add_parameter(m, "model.layers.#.mlp.up_proj", l, c->intermediate, h);
    p->down = add_parameter(m, "model.layers.#.mlp.down_proj", l, h, c->intermediate);
  }
}

static void add_vectors(model *m) {
  const model_config *c = &m->c;
  const model_traits *t = model_traits_of(c);
  const size_t q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
  for (size_t l = 0; l < c->layers; ++l) {
    layer_places *p = &m->place[l];
    p->input_norm = add_parameter(m, "model.layers.#.input_layernorm", l, 1, c->hidden);
    p->post_norm = add_parameter(m, "model.layers.#.post_attention_layernorm", l, 1, c->hidden);
    p->q_norm = p->k_norm = p->qkv_bias = SIZE_MAX;
    if (t->qk_norm) {
      p->q_norm = add_parameter(m, "model.layers.#.self_attn.q_norm", l, 1, c->head_dim);
      p->k_norm = add_parameter(m, "model.layers.#.self_attn.k_norm", l, 1, c->head_dim);
    }
    if (!t->qkv_bias) continue;
    p->qkv_bias = add_parameter(m, "model.layers.#.self_attn.q_proj.bias", l, 1, q);
    add_parameter(m, "model.layers.#.self_attn.k_proj.bias", l, 1, kv);
    add_parameter(m, "model.layers.#.self_attn.v_proj.bias", l, 1, kv);
  }
  m->norm = add_parameter(m, "model.norm", 0, 1, c->hidden);
}

/* --- memory --- */

enum { TENSORS_PER_LAYER = 7 + 2 + 3, TENSORS_BESIDES = 3 };

static gl_status model_allocate(model *m, gl_error *err) {
  const backend_ops *ops = m->b->ops;
  const size_t angles = m->c.max_positions * (m->c.head_dim / 2) * m->b->master_element;
  m->own.master = ops->allocate(m->b, m->n * m->b->master_element);
  m->own.copy = m->own.master;
  if (m->b->type != m->b->master) m->own.copy = ops->allocate(m->b, m->n * m->b->element);
  m->cosine = ops->allocate(m->b, angles);
  m->sine = ops->allocate(m->b, angles);
  gl_status status = ops->status(m->b, err);
  if (status == GL_OK)
    ops->rotary_table(m->b, m->cosine, m->sine, m->c.max_positions, m->c.head_dim, m->c.rope_theta,
                      m->c.scaling);
  return status;
}

gl_status model_new(model **out, const model_config *config, backend *b, model_stores stores,
                    gl_error *err) {
  *out = NULL;
  gl_status status = model_config_check(config, err);
  if (status != GL_OK) return status;
  if (config->max_positions > SIZE_MAX / 16 / config->head_dim)
    return gl_fail(err, GL_EINPUT, "a context of %zu positions is more than any memory holds",
                   config->max_positions);
  model *m = calloc(1, sizeof *m);
  if (m == NULL) return gl_fail_memory(err, "a model");
  m->c = *config;
  m->b = b;
  m->stores = stores;
  m->use = &m->own;
  m->tensor = calloc(config->layers * TENSORS_PER_LAYER + TENSORS_BESIDES, sizeof *m->tensor);
  m->place = calloc(config->layers, sizeof *m->place);
  m->layer = calloc(config->layers, sizeof *m->layer);
  if (m->tensor == NULL || m->place == NULL || m->layer == NULL)
    status = gl_fail_memory(err, "a model");
  if (status == GL_OK) {
    add_matrices(m);
    m->n_matrices = m->n;
    add_vectors(m);
    status = model_allocate(m, err);
  }
  if (status == GL_OK)
    *out = m;
  else
    model_free(m);
  return status;
}

void model_free(model *m) {
  if (m == NULL) return;
  const backend_ops *ops = m->b->ops;
  if (m->own.copy != m->own.master) ops->release(m->b, m->own.copy);
  ops->release(m->b, m->own.master);
  ops->release(m->b, m->packed);
  ops->release(m->b, m->gradient);
  ops->release(m->b, m->cosine);
  ops->release(m->b, m->sine);
  ops->release(m->b, m->block);
  ops->release(m->b, m->parts);
  free(m->tensor);
  free(m->place);
  free(m->layer);
  free(m->index);
  free(m);
}

const model_config *model_configuration(const model *m) {
  return &m->c;
}

backend *model_backend(const model *m) {
  return m->b;
}

size_t model_parameters(const model *m) {
  return m->n;
}

const model_tensor *model_tensor_at(const model *m, size_t i) {
  return i < m->n_tensors ? &m->tensor[i] : NULL;
}

size_t model_kept_bytes(const model *m) {
  return m->block_bytes;
}

gl_status model_want_gradient(model *m, gl_error *err) {
  if (m->use == &m->guest)
    return gl_fail(err, GL_EINTERNAL, "a gradient is wanted where parameters put aside are in use");
  if (m->gradient == NULL) m->gradient = m->b->ops->allocate(m->b, m->n * m->b->master_element);
  return m->b->ops->status(m->b, err);
}

void *model_gradient(model *m) {
  return m->gradient;
}

gl_status model_zero_gradient(model *m, gl_error *err) {
  gl_status status = model_want_gradient(m, err);
  if (status != GL_OK) return status;
  m->b->ops->zero(m->b, m->gradient, m->n * m->b->master_element);
  return m->b->ops->status(m->b, err);
}

/* --- copies of the values --- */

size_t model_values_bytes(const model *m) {
  return m->n * m->b->element;
}

static gl_status copy_values(model_values **out, model *m, int aside, gl_error *err) {
  const backend_ops *ops = m->b->ops;
  const size_t bytes = model_values_bytes(m);
  model_values *v = calloc(1, sizeof *v);
  *out = NULL;
  if (v == NULL) return gl_fail_memory(err, "a copy of the model");
  void **to = aside ? &v->aside : &v->copy;
  *to = aside ? ops->allocate_aside(m->b, bytes) : ops->allocate(m->b, bytes);
  if (*to != NULL) ops->copy(m->b, *to, m->own.copy, bytes);
  gl_status status = ops->status(m->b, err);
  if (status == GL_OK)
    *out = v;
  else
    model_values_free(v, m);
  return status;
}

gl_status model_values_copy(model_values **out, model *m, gl_error *err) {
  return copy_values(out, m, 0, err);
}

gl_status model_values_put_aside(model_values **out, model *m, gl_error *err) {
  *out = NULL;
  gl_status status =
      model_want_gradient(m, err); /* the values are copied into the gradient's memory when used */
  return status == GL_OK ? copy_values(out, m, 1, err) : status;
}

int model_values_are_aside(const model_values *v) {
  return v->aside != NULL;
}

void model_values_free(model_values *v, model *m) {
  if (v == NULL) return;
  if (m->use == v || (m->use == &m->guest && m->guest_of == v)) model_use(m, NULL);
  m->b->ops->release(m->b, v->copy);
  if (v->aside != NULL) m->b->ops->release_aside(m->b, v->aside);
  free(v);
}

void model_changed(model *m) {
  m->kept = 0;
  m->packed_is_current = 0;
}

void model_use(model *m, model_values *v) {
  model_changed(m);
  m->use = v != NULL ? v : &m->own;
  if (v == NULL || v->aside == NULL) return;
  m->guest_of = v;
  m->guest.copy = m->gradient;
  m->use = &m->guest;
  m->b->ops->copy(m->b, m->gradient, v->aside, model_values_bytes(m));
}

/* --- numbers from and to the host --- */

void model_upload(const model *m, void *to, size_t first, size_t n, const double *host,
                  void *staging) {
  const backend *b = m->b;
  const int wide = b->master == NUMBER_F64;
  for (size_t i = 0; i < n; i += MODEL_CHUNK) {
    const size_t k = n - i < MODEL_CHUNK ? n - i : MODEL_CHUNK;
    if (wide)
      memcpy(staging, host + i, k * sizeof *host);
    else
      for (size_t j = 0; j < k; ++j) ((float *)staging)[j] = (float)host[i + j];
    b->ops->upload(m->b, (char *)to + (first + i) * b->master_element, staging,
                   k * b->master_element);
  }
}

void model_download(const model *m, const void *from, size_t first, size_t n, double *host,
                    void *staging) {
  const backend *b = m->b;
  const int wide = b->master == NUMBER_F64;
  for (size_t i = 0; i < n; i += MODEL_CHUNK) {
    const size_t k = n - i < MODEL_CHUNK ? n - i : MODEL_CHUNK;
    b->ops->download(m->b, staging, (const char *)from + (first + i) * b->master_element,
                     k * b->master_element);
    if (wide)
      memcpy(host + i, staging, k * sizeof *host);
    else
      for (size_t j = 0; j < k; ++j) host[i + j] = (double)((const float *)staging)[j];
  }
}

void model_renew(model *m) {
  const copy_rounding rounding = {m->rounding, 0};
  if (m->rounds)
    m->b->ops->cast_stochastic(m->b, m->own.copy, m->own.master, m->n, &rounding);
  else
    m->b->ops->cast(m->b, m->own.copy, m->own.master, m->n);
  model_changed(m);
}

static gl_status download_all(const model *m, const void *from, double *host, gl_error *err) {
  void *staging = malloc(MODEL_STAGING);
  if (staging == NULL) return gl_fail_memory(err, "a model's values");
  model_download(m, from, 0, m->n, host, staging);
  free(staging);
  return m->b->ops->status(m->b, err);
}

gl_status model_get(const model *m, double *host, gl_error *err) {
  return download_all(m, m->own.master, host, err);
}

/* A copy has values of type T only. A bfloat16 is the upper half of a float. */
gl_status model_values_get(const model_values *v, const model *m, double *host, gl_error *err) {
  const void *from = v->aside != NULL ? v->aside : v->copy;
  if (m->b->element == m->b->master_element) return download_all(m, from, host, err);
  uint16_t *half = malloc(m->n * sizeof *half);
  if (half == NULL) return gl_fail_memory(err, "a copy of the model");
  m->b->ops->download(m->b, half, from, m->n * sizeof *half);
  for (size_t i = 0; i < m->n; ++i) {
    const uint32_t bits = (uint32_t)half[i] << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    host[i] = (double)value;
  }
  free(half);
  return m->b->ops->status(m->b, err);
}

gl_status model_gradient_get(const model *m, double *host, gl_error *err) {
  if (m->gradient != NULL) return download_all(m, m->gradient, host, err);
  memset(host, 0, m->n * sizeof *host);
  return GL_OK;
}

size_t model_gradient_sample_size(const model *m) {
  return m->n < MODEL_SAMPLE ? m->n : MODEL_SAMPLE;
}

gl_status model_gradient_sample(const model *m, double *host, gl_error *err) {
  const size_t each = MODEL_SAMPLE / MODEL_SAMPLE_RUNS;
  if (m->n <= MODEL_SAMPLE || m->gradient == NULL) return model_gradient_get(m, host, err);
  void *staging = malloc(MODEL_STAGING);
  if (staging == NULL) return gl_fail_memory(err, "a sample of the gradient");
  for (size_t i = 0; i < MODEL_SAMPLE_RUNS; ++i)
    model_download(m, m->gradient, m->n / MODEL_SAMPLE_RUNS * i, each, host + i * each, staging);
  free(staging);
  return m->b->ops->status(m->b, err);
}

static gl_status upload_all(model *m, void *to, const double *host, gl_error *err) {
  void *staging = malloc(MODEL_STAGING);
  if (staging == NULL) return gl_fail_memory(err, "a model's values");
  model_upload(m, to, 0, m->n, host, staging);
  free(staging);
  return m->b->ops->status(m->b, err);
}

gl_status model_gradient_set(model *m, const double *host, gl_error *err) {
  gl_status status = model_want_gradient(m, err);
  return status == GL_OK ? upload_all(m, m->gradient, host, err) : status;
}

gl_status model_set(model *m, const double *host, gl_error *err) {
  gl_status status = upload_all(m, m->own.master, host, err);
  model_renew(m);
  return status == GL_OK ? m->b->ops->status(m->b, err) : status;
}

/* Numbers 2 i and 2 i + 1 of a tensor come from block i of its stream. first is even. */
static void draw_normals(rng_stream stream, size_t first, size_t n, double scale, double *out) {
  for (size_t i = 0; i < n; i += 2) {
    double two[2];
    rng_normal_pair(rng_block(stream, (first + i) / 2), scale, two);
    out[i] = two[0];
    if (i + 1 < n) out[i + 1] = two[1];
  }
}

gl_status model_initialise(model *m, uint64_t seed, gl_error *err) {
  char *staging = malloc(2 * (size_t)MODEL_STAGING);
  if (staging == NULL) return gl_fail_memory(err, "a model's values");
  double *value = (double *)(void *)(staging + MODEL_STAGING);
  for (size_t t = 0; t < m->n_tensors; ++t) {
    const model_tensor *tensor = &m->tensor[t];
    const size_t n = tensor->rows * tensor->columns;
    const rng_stream stream = rng_stream_at(seed, RNG_INIT, t);
    for (size_t i = 0; i < n; i += MODEL_CHUNK) {
      const size_t k = n - i < MODEL_CHUNK ? n - i : MODEL_CHUNK;
      if (tensor->offset < m->n_matrices)
        draw_normals(stream, i, k, m->c.initializer_range, value);
      else
        for (size_t j = 0; j < k; ++j) value[j] = strstr(tensor->name, ".bias") == NULL;
      model_upload(m, m->own.master, tensor->offset + i, k, value, staging);
    }
  }
  free(staging);
  model_renew(m);
  return m->b->ops->status(m->b, err);
}
