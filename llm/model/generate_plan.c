/* Checks a request for generation and plans its jobs and slots; adds up what memory a model needs.
 */
#include "llm/model/generate_plan.h"

#include "llm/model/internal.h"

#include <stdlib.h>

enum {
  MOST_POSITIONS = 1 << 20, /* of rng_token_index */
  MOST_NUMBERS = 1 << 28,   /* the same */
  PREFILL_TOKENS = 8192,    /* of one prefill, unless a single sequence is longer */
  MEMORY_PART = 2           /* a cache of chosen size takes at most 1 / this of what is free */
};

/* --- results --- */

gl_status generate_result_init(generate_result *r, size_t n_responses, size_t max_tokens,
                               gl_error *err) {
  *r = (generate_result){0};
  if (max_tokens > 0 && n_responses > SIZE_MAX / sizeof(double) / max_tokens)
    return gl_fail_memory(err, "the responses");
  size_t n = n_responses * max_tokens;
  r->length = calloc(n_responses + 1, sizeof *r->length);
  r->finished = calloc(n_responses + 1, sizeof *r->finished);
  r->token = calloc(n + 1, sizeof *r->token);
  r->logq = calloc(n + 1, sizeof *r->logq);
  r->logq_truncated = calloc(n + 1, sizeof *r->logq_truncated);
  if (r->length != NULL && r->finished != NULL && r->token != NULL && r->logq != NULL &&
      r->logq_truncated != NULL)
    return GL_OK;
  generate_result_fini(r);
  return gl_fail_memory(err, "the responses");
}

gl_status generate_result_keep(generate_result *r, size_t n_responses, size_t max_tokens,
                               const kept_shape *shape, gl_error *err) {
  size_t n;
  if (shape->words == 0) return GL_OK;
  if (__builtin_mul_overflow(n_responses, max_tokens, &n) ||
      __builtin_mul_overflow(n, shape->words, &n))
    return gl_fail_memory(err, "the responses");
  r->shape = *shape;
  r->kept = calloc(n + 1, sizeof *r->kept);
  return r->kept != NULL ? GL_OK : gl_fail_memory(err, "the responses");
}

void generate_result_fini(generate_result *r) {
  free(r->length);
  free(r->finished);
  free(r->token);
  free(r->logq);
  free(r->logq_truncated);
  free(r->kept);
  *r = (generate_result){0};
}

/* --- what may be asked --- */

static gl_status check_tokens(const int32_t *token, size_t n, const model_config *c,
                              const char *what, size_t which, gl_error *err) {
  for (size_t k = 0; k < n; ++k)
    if (token[k] < 0 || (size_t)token[k] >= c->vocabulary)
      return gl_fail(err, GL_EINPUT,
                     "%s %zu has token %ld at position %zu, but the model's vocabulary has %zu "
                     "tokens; is this the model's own tokenizer?",
                     what, which, (long)token[k], k, c->vocabulary);
  return GL_OK;
}

static gl_status check_prompts(const generate_request *q, const model_config *c, gl_error *err) {
  for (size_t p = 0; p < q->n_prompts; ++p) {
    size_t n = q->prompt_start[p + 1] - q->prompt_start[p];
    if (n == 0)
      return gl_fail(err, GL_EINPUT, "prompt %zu is empty; a prompt needs at least one token", p);
    if (n > c->max_positions || q->max_tokens > c->max_positions - n)
      return gl_fail(err, GL_EINPUT,
                     "prompt %zu of %zu tokens and a response of up to %zu do not fit into the "
                     "model's %zu positions; lower max_tokens or shorten the prompt",
                     p, n, q->max_tokens, c->max_positions);
    gl_status status = check_tokens(q->prompt + q->prompt_start[p], n, c, "prompt", p, err);
    if (status != GL_OK) return status;
  }
  return GL_OK;
}

static gl_status check_responses(const generate_request *q, const generate_result *r,
                                 const model_config *c, gl_error *err) {
  for (size_t i = 0; i < q->n_responses; ++i) {
    if (q->prompt_of[i] >= q->n_prompts || r->length[i] > q->max_tokens ||
        generate_limit(q, i) > q->up_to)
      return gl_fail(err, GL_EINTERNAL, "response %zu of prompt %zu of %zu has %zu of %zu tokens",
                     i, q->prompt_of[i], q->n_prompts, r->length[i], q->max_tokens);
    if (q->number[i] >= MOST_NUMBERS)
      return gl_fail(err, GL_EINPUT, "response number %zu is beyond the %d a stream can address",
                     q->number[i], MOST_NUMBERS);
    gl_status status =
        check_tokens(r->token + i * q->max_tokens, r->length[i], c, "response", i, err);
    if (status != GL_OK) return status;
  }
  return GL_OK;
}

static gl_status check(const generate_request *q, const generate_result *r, const model_config *c,
                       gl_error *err) {
  if (q->max_tokens == 0 || q->up_to > q->max_tokens || q->max_tokens > MOST_POSITIONS)
    return gl_fail(err, GL_EINPUT,
                   "responses of up to %zu of %zu tokens; give 1 to %d tokens, and no more than "
                   "the most",
                   q->up_to, q->max_tokens, MOST_POSITIONS);
  if (!(q->sampling.temperature > 0) || !(q->sampling.top_p > 0))
    return gl_fail(err, GL_EINPUT, "temperature %g and top_p %g must be above 0",
                   q->sampling.temperature, q->sampling.top_p);
  for (size_t s = 0; s < q->n_stop; ++s)
    if (q->stop[s] < 0 || (size_t)q->stop[s] >= c->vocabulary)
      return gl_fail(err, GL_EINPUT, "stop token %ld is outside the vocabulary of %zu",
                     (long)q->stop[s], c->vocabulary);
  gl_status status = check_prompts(q, c, err);
  return status == GL_OK ? check_responses(q, r, c, err) : status;
}

/* --- jobs --- */

static int draws(const generate_request *q, const generate_result *r, size_t i) {
  return !r->finished[i] && r->length[i] < generate_limit(q, i);
}

/* Responses without tokens ordered by prompt, a counting sort into p->order; then those with. */
static gl_status order_responses(generate_plan *p, const generate_request *q,
                                 const generate_result *r, gl_error *err) {
  size_t *next = calloc(q->n_prompts + 1, sizeof *next);
  if (next == NULL) return gl_fail_memory(err, "the order of responses");
  for (size_t i = 0; i < q->n_responses; ++i)
    if (draws(q, r, i) && r->length[i] == 0) ++next[q->prompt_of[i] + 1];
  for (size_t x = 0; x < q->n_prompts; ++x) next[x + 1] += next[x];
  p->n = next[q->n_prompts];
  for (size_t i = 0; i < q->n_responses; ++i)
    if (draws(q, r, i)) p->order[r->length[i] == 0 ? next[q->prompt_of[i]]++ : p->n++] = i;
  free(next);
  return GL_OK;
}

static void group_into_jobs(generate_plan *p, const generate_request *q, const generate_result *r) {
  for (size_t k = 0; k < p->n; ++k) {
    size_t i = p->order[k], tokens = generate_prompt_length(q, i) + r->length[i];
    generate_job *last = p->n_jobs > 0 ? &p->jobs[p->n_jobs - 1] : NULL;
    size_t before = last != NULL ? p->order[last->first] : 0;
    if (last != NULL && r->length[i] == 0 && r->length[before] == 0 &&
        q->prompt_of[i] == q->prompt_of[before])
      ++last->n;
    else
      p->jobs[p->n_jobs++] = (generate_job){k, 1, tokens};
    size_t whole = generate_prompt_length(q, i) + q->up_to;
    if (whole > p->capacity) p->capacity = whole;
    if (tokens > p->prefill_tokens) p->prefill_tokens = tokens;
  }
}

/* --- slots --- */

/* The most slots that fit, by halving. */
gl_status generate_slots(size_t *slots, const model_config *c, const backend *b, size_t asked,
                         size_t n_responses, size_t capacity, size_t bytes, gl_error *err) {
  *slots = asked == 0 || asked > n_responses ? n_responses : asked;
  if (asked != 0) return GL_OK;
  size_t low = 0, high = n_responses;
  while (low < high) {
    size_t middle = high - (high - low) / 2;
    memory_plan need;
    gl_status status = model_memory(&need, c, b, 0, 0, 0, middle, capacity, 0, err);
    if (status != GL_OK) return status;
    if (need.cache + need.logits <= bytes / MEMORY_PART)
      low = middle;
    else
      high = middle - 1;
  }
  *slots = low;
  return GL_OK;
}

static gl_status choose_slots(generate_plan *p, const model *m, const generate_request *q,
                              gl_error *err) {
  backend *b = model_backend(m);
  size_t total = 0, available = 0;
  if (q->slots == 0) b->ops->memory(b, &total, &available);
  if (q->sharing > 1) available /= q->sharing;
  gl_status status = generate_slots(&p->slots, model_configuration(m), b, q->slots, p->n,
                                    p->capacity, available, err);
  if (status == GL_OK && p->slots == 0)
    status = gl_fail(err, GL_ENOMEM,
                     "no memory for keys and values of a single sequence of %zu positions (%zu MiB "
                     "free on %s); lower max_tokens",
                     p->capacity, available >> 20, b->device);
  return status;
}

gl_status generate_plan_init(generate_plan *p, const model *m, const generate_request *q,
                             const generate_result *r, gl_error *err) {
  *p = (generate_plan){.prefill_tokens = PREFILL_TOKENS};
  gl_status status = check(q, r, model_configuration(m), err);
  if (status != GL_OK) return status;
  p->order = calloc(q->n_responses + 1, sizeof *p->order);
  p->jobs = calloc(q->n_responses + 1, sizeof *p->jobs);
  if (p->order == NULL || p->jobs == NULL) return gl_fail_memory(err, "the plan of responses");
  status = order_responses(p, q, r, err);
  if (status != GL_OK || p->n == 0) return status;
  group_into_jobs(p, q, r);
  if (r->cache != NULL && p->capacity > r->cache->capacity)
    return gl_fail(err, GL_EINTERNAL, "%zu positions of keys and values where %zu are kept",
                   p->capacity, r->cache->capacity);
  if (r->cache != NULL) p->capacity = r->cache->capacity;
  return choose_slots(p, m, q, err);
}

void generate_plan_fini(generate_plan *p) {
  free(p->order);
  free(p->jobs);
  *p = (generate_plan){0};
}

/* --- what memory a model needs --- */

/* *sum += a * b * c; 0 where that is more than a size_t. */
static int add(size_t *sum, size_t a, size_t b, size_t c) {
  size_t product;
  return !__builtin_mul_overflow(a, b, &product) && !__builtin_mul_overflow(product, c, &product) &&
         !__builtin_add_overflow(*sum, product, sum);
}

static int plan_generation(memory_plan *out, const model_config *c, const backend *b, size_t slots,
                           size_t capacity) {
  const size_t rows = capacity > MODEL_PREFILL_TOKENS ? capacity : MODEL_PREFILL_TOKENS;
  const size_t most =
      slots > SIZE_MAX / capacity || slots * capacity > rows ? rows : slots * capacity;
  const size_t prefill = model_pass_bytes(c, b, (pass_shape){most, slots, slots, 0, 0, 0, 0});
  out->cache = model_cache_bytes(c, b, slots, capacity);
  if (prefill > out->activations) out->activations = prefill;
  return prefill != SIZE_MAX && out->cache != SIZE_MAX &&
         add(&out->logits, 2 * b->master_element, model_cache_rows(b, slots), c->vocabulary);
}

/* Training and generation use the same scratch memory. */
static size_t plan_scratch(const model_config *c, const backend *b, size_t rows, size_t slots,
                           size_t capacity) {
  const run_shape shape = {.rows = rows,
                           .slots = slots > 0 ? model_cache_rows(b, slots) : 0,
                           .capacity = capacity,
                           .hidden = c->hidden,
                           .intermediate = c->intermediate,
                           .vocabulary = c->vocabulary,
                           .heads = model_heads(c)};
  return b->ops->scratch != NULL ? b->ops->scratch(b, &shape) : 0;
}

gl_status model_memory(memory_plan *out, const model_config *c, const backend *b, int recompute,
                       size_t training_tokens, size_t training_targets, size_t slots,
                       size_t capacity, size_t value_copies, gl_error *err) {
  *out = (memory_plan){0};
  gl_status status = model_config_check(c, err);
  if (status != GL_OK) return status;
  const size_t n = model_config_parameters(c), two = b->type != b->master;
  int fits = add(&out->parameters, n, b->master_element, 1) &&
             add(&out->parameters, n, b->element, two) &&
             add(&out->parameters, n, b->element, value_copies) &&
             add(&out->parameters, c->max_positions, c->head_dim, b->master_element);
  out->packed = model_packed_bytes(c, b);
  fits = fits && out->packed != SIZE_MAX;
  if (training_tokens > 0) {
    fits = fits && add(&out->gradients, n, b->master_element, 1) &&
           add(&out->moments, n, b->master_element, 2);
    const size_t trees = b->ops->attention_shared != NULL ? training_tokens : 0;
    const pass_shape shape = {
        training_tokens, training_tokens, training_targets, 1, recompute, trees, 0};
    out->activations = model_pass_bytes(c, b, shape);
    fits = fits && out->activations != SIZE_MAX;
  }
  if (slots > 0 && capacity > 0) fits = fits && plan_generation(out, c, b, slots, capacity);
  if (fits) out->scratch = plan_scratch(c, b, training_tokens, slots, capacity);
  fits = fits && add(&out->total, out->parameters, 1, 1) &&
         add(&out->total, out->gradients, 1, 1) && add(&out->total, out->moments, 1, 1) &&
         add(&out->total, out->activations, 1, 1) && add(&out->total, out->cache, 1, 1) &&
         add(&out->total, out->packed, 1, 1) && add(&out->total, out->logits, 1, 1) &&
         add(&out->total, out->scratch, 1, 1);
  if (fits) return GL_OK;
  return gl_fail(
      err, GL_ENOMEM,
      "this needs more memory than any machine has; lower micro_batch, slots, max_tokens "
      "or the model's sizes");
}
