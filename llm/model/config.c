/* What a model is made of, from a recipe, and whether its sizes fit together. */
#include "llm/model/internal.h"

#include "core/config/fields.h"

gl_status model_config_read(model_config *out, const cfg_node *section, size_t vocabulary,
                            gl_error *err) {
  cfg_reader r;
  model_config c = {.vocabulary = vocabulary, .begin = -1, .end = -1, .pad = -1};
  fields_add(&llm_model_fields);
  cfg_begin_at(&r, section, "world.model", "model", err);
  c.layers = field_count(&r, "layers");
  c.hidden = field_count(&r, "hidden");
  c.heads = cfg_count(&r, "heads", (size_t)field_default(&r, "heads"), 1, c.hidden);
  c.kv_heads = cfg_count(&r, "kv_heads", c.heads % 2 == 0 ? c.heads / 2 : c.heads, 1, c.heads);
  size_t even = c.hidden / c.heads / 2 * 2;
  c.head_dim = field_count_or(&r, "head_dim", even > 0 ? even : 2);
  c.intermediate = field_count_or(&r, "intermediate", 3 * c.hidden);
  c.max_positions = field_count(&r, "context");
  c.tied = field_flag(&r, "tied");
  c.rope_theta = field_real(&r, "rope_theta");
  c.rms_eps = field_real(&r, "rms_eps");
  c.initializer_range = field_real(&r, "initializer_range");
  if (cfg_end(&r) != GL_OK) return r.status;
  gl_error why = {0};
  gl_status status = model_config_check(&c, &why);
  if (status != GL_OK)
    return section != NULL ? cfg_fail(section, err, "%s", why.text)
                           : gl_fail(err, status, "%s", why.text);
  *out = c;
  return GL_OK;
}

/* *n += a * b * c, or 0 where that is more than an array of doubles could hold. */
static int add_product(size_t *n, size_t a, size_t b, size_t c) {
  size_t product, most = SIZE_MAX / 2 / sizeof(double);
  return !__builtin_mul_overflow(a, b, &product) && !__builtin_mul_overflow(product, c, &product) &&
         !__builtin_add_overflow(*n, product, n) && *n <= most;
}

static int count_parameters(const model_config *c, size_t *n) {
  const size_t q = c->heads, kv = c->kv_heads, d = c->head_dim, h = c->hidden, l = c->layers;
  size_t width = 0, heads = 0, norms = 0;
  *n = 0;
  return add_product(&heads, q + 2 * kv, d, 1) && add_product(&heads, q, d, 1) &&
         add_product(&width, c->intermediate, 3, 1) && add_product(n, l, heads, h) &&
         add_product(n, l, width, h) && add_product(n, c->vocabulary, h, c->tied ? 1 : 2) &&
         add_product(&norms, h + d, 2, l) && add_product(n, norms, 1, 1) && add_product(n, h, 1, 1);
}

gl_status model_config_check(const model_config *c, gl_error *err) {
  size_t n;
  const size_t sizes[] = {c->vocabulary, c->hidden,   c->intermediate, c->layers,
                          c->heads,      c->kv_heads, c->head_dim,     c->max_positions};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
    if (sizes[i] < 1 || sizes[i] > MODEL_MAX_SIZE)
      return gl_fail(err, GL_EINPUT, "a model's sizes must be from 1 to %d, not %zu",
                     (int)MODEL_MAX_SIZE, sizes[i]);
  if (c->layers > MODEL_MAX_LAYERS)
    return gl_fail(err, GL_EINPUT, "%zu layers; at most %d are supported", c->layers,
                   (int)MODEL_MAX_LAYERS);
  if (c->heads % c->kv_heads != 0)
    return gl_fail(err, GL_EINPUT,
                   "%zu query heads cannot share %zu key and value heads; the first must be a "
                   "multiple of the second",
                   c->heads, c->kv_heads);
  if (c->head_dim % 2 != 0)
    return gl_fail(err, GL_EINPUT, "head_dim is %zu; rotary embedding needs an even one",
                   c->head_dim);
  if (!(c->rms_eps > 0) || !(c->rope_theta > 0) || !(c->initializer_range > 0))
    return gl_fail(err, GL_EINPUT, "rms_eps, rope_theta and initializer_range must be positive");
  if (c->begin >= (int32_t)c->vocabulary || c->end >= (int32_t)c->vocabulary ||
      c->pad >= (int32_t)c->vocabulary)
    return gl_fail(err, GL_EINPUT, "a special token's number lies outside the vocabulary of %zu",
                   c->vocabulary);
  if (!count_parameters(c, &n))
    return gl_fail(err, GL_EINPUT, "this model has more parameters than any memory holds");
  return GL_OK;
}

size_t model_config_parameters(const model_config *c) {
  size_t n;
  return count_parameters(c, &n) ? n : 0;
}
