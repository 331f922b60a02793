/* The cache of keys and values, the forward passes that fill and read it, and the steps of
 * generation.
 *
 * Every matrix product is requested with the flag that makes each row's result independent of the
 * other rows. So a response does not depend on the other responses in the batch. */
#include "llm/model/internal.h"

#include <stdlib.h>
#include <string.h>

/* MODEL_GRAPHS: recorded graphs; graph i has 2^i rows. MODEL_STEPS: maximum number of steps in
 * progress. */
enum { MODEL_GRAPHS = 32, MODEL_STEPS = 2 };

/* The kernels of a step of 2^i rows, recorded once as a CUDA graph and replayed. */
typedef struct recorded_step {
  backend_graph *graph;
  const struct model_values *values; /* the values that the recorded kernels read */
  int warm; /* 1: a step of this size has run, so the backend has allocated the scratch memory it
               needs */
} recorded_step;

/* The arrays [most] that a step reads on the device and updates for the next step
 * (llm/backend/operations.h: embed_next). The host has a copy. */
typedef struct step_rows {
  uint64_t *index;
  int32_t *source, *slot, *position;
} step_rows;

/* The steps in progress, and the CUDA graphs that run them. */
typedef struct model_steps {
  size_t ahead; /* steps that may run while the host continues; 0: model_step() returns when the
                   step is done */
  size_t started, taken;
  /* Of step i, at index i % MODEL_STEPS: numbers of rows, without and with padding rows, and words
   * of a set of kept tokens. */
  size_t rows[MODEL_STEPS], all[MODEL_STEPS], words[MODEL_STEPS];
  /* Used if ahead > 0: */
  step_rows device, host; /* each is one allocation that begins with its index; host: the device's
                             contents after all steps started so far */
  int same;               /* the device's contents equal `host` */
  int fed;           /* 1: `drawn` holds, in stream order, the samples of the last step started */
  model_draws draws; /* the settings with which the graphs were recorded */
  backend_fetch *fetch[MODEL_STEPS];
  backend_fetch *fetch_kept[MODEL_STEPS]; /* of sets of kept tokens, allocated together with them */
  recorded_step recorded[MODEL_GRAPHS];
  /* Used if ahead = 0: the last step's samples, host [most] */
  int32_t *token;
  double *logq, *logq_truncated;
} model_steps;

struct model_cache {
  model *m;
  size_t slots, capacity, most; /* most: maximum rows of a step, at least slots */
  size_t filled;                /* rows of logits that are valid */
  layer_cache *layer;           /* [layers] keys and values */
  layer_activations rows;       /* activations of a decode, shared by all layers */
  void *branch, *last, *last_rstd;
  int32_t *token, *slot, *position; /* backend, [most] each, one block, token first */
  uint64_t *index;                  /* backend [most] random-stream block of each sample */
  int32_t *row_of;                  /* backend [most] row of the logits of each sample */
  int32_t *drawn;                   /* backend [most]; one download copies it together with logq */
  void
      *logq; /* M [2 rows] log-probabilities: untruncated, then truncated; in memory behind drawn */
  void *logits, *gathered; /* M [most, vocabulary] */
  uint32_t *kept; /* backend [most, kept_words], allocated for the first sampling or step that
                     records kept tokens */
  size_t kept_words;
  uint64_t *context; /* backend [most], allocated for the first sampling from distorted logits */
  void *block;
  int32_t *prompt_slot; /* backend memory: slot of each token of a prefill; grows, never shrinks */
  size_t prompt_room;
  int32_t *host; /* [3 most] staging of token, slot and position, or of row_of */
  uint64_t *host_index;
  void *host_drawn; /* host copy of the memory from drawn to the end of logq */
  model_steps steps;
};

/* Size in bytes of a block of step_rows; below, the arrays are taken from such a block. */
static size_t step_rows_bytes(size_t most) {
  return most * (sizeof(uint64_t) + 3 * sizeof(int32_t));
}

static step_rows step_rows_cut(void *block, size_t most) {
  step_rows w = {.index = block};
  w.source = (int32_t *)(void *)(w.index + most);
  w.slot = w.source + most;
  w.position = w.slot + most;
  return w;
}

static gl_status model_steps_init(model_cache *k, gl_error *err);
static void model_steps_fini(model_cache *k);

/* --- construction --- */

size_t model_cache_rows(const backend *b, size_t n) {
  size_t p = 1;
  if (b->ops->graph_begin == NULL) return n;
  while (p < n) p *= 2;
  return p;
}

/* Takes all buffers of a cache except the logits from the arena. */
static void cut_cache(model_cache *k, device_arena *a, const model_config *c, const backend *b) {
  const size_t width = c->kv_heads * c->head_dim, t = b->element, m = b->master_element;
  for (size_t l = 0; l < c->layers; ++l) {
    void *keys = device_arena_take(a, k->slots * k->capacity, width, t);
    void *values = device_arena_take(a, k->slots * k->capacity, width, t);
    if (k->layer != NULL) k->layer[l] = (layer_cache){.k = keys, .v = values};
  }
  layer_activations_take(&k->rows, a, c, b, k->most);
  k->rows.in = device_arena_take(a, k->most, c->hidden, t);
  k->branch = device_arena_take(a, k->most, c->hidden, t);
  k->last = device_arena_take(a, k->most, c->hidden, t);
  k->last_rstd = device_arena_take(a, k->most, 1, m);
  k->token = device_arena_take(a, k->most, 3, sizeof *k->token);
  k->index = device_arena_take(a, k->most, 1, sizeof *k->index);
  k->row_of = device_arena_take(a, k->most, 1, sizeof *k->row_of);
  k->drawn = device_arena_take(a, k->most, 1, sizeof *k->drawn);
  k->logq = device_arena_take(a, k->most, 2, m);
  void *steps = device_arena_take(a, 1, step_rows_bytes(k->most), 1);
  if (steps != NULL) k->steps.device = step_rows_cut(steps, k->most);
}

size_t model_cache_bytes(const model_config *c, const backend *b, size_t slots, size_t capacity) {
  model_cache k = {.slots = slots, .capacity = capacity};
  device_arena a = {0};
  if (slots < 1 || slots >= INT32_MAX / 4 || capacity > SIZE_MAX / slots) return SIZE_MAX;
  k.most = model_cache_rows(b, slots);
  cut_cache(&k, &a, c, b);
  return a.overflow ? SIZE_MAX : a.used;
}

static size_t model_drawn_bytes(const model_cache *k, size_t rows) {
  return (size_t)((char *)k->logq - (char *)k->drawn) + 2 * rows * k->m->b->master_element;
}

static gl_status cache_allocate(model_cache *k, gl_error *err) {
  const model_config *c = &k->m->c;
  backend *b = k->m->b;
  const size_t bytes = model_cache_bytes(c, b, k->slots, k->capacity);
  size_t logits;
  if (bytes == SIZE_MAX ||
      __builtin_mul_overflow(k->most, c->vocabulary * b->master_element, &logits))
    return gl_fail(err, GL_ENOMEM, "a cache of %zu slots of %zu positions fits no memory", k->slots,
                   k->capacity);
  k->block = b->ops->allocate(b, bytes);
  k->logits = b->ops->allocate(b, logits);
  gl_status status = b->ops->status(b, err);
  if (status != GL_OK) return status;
  device_arena a = {.base = k->block};
  cut_cache(k, &a, c, b);
  k->host_drawn = malloc(model_drawn_bytes(k, k->most));
  if (k->host_drawn == NULL) return gl_fail_memory(err, "a cache");
  k->slot = k->token + k->most;
  k->position = k->slot + k->most;
  for (size_t l = 0; l < c->layers; ++l) k->layer[l].capacity = k->capacity;
  return model_steps_init(k, err);
}

gl_status model_cache_new(model_cache **out, model *m, size_t slots, size_t capacity,
                          gl_error *err) {
  *out = NULL;
  if (slots < 1 || capacity < 1 || capacity > m->c.max_positions)
    return gl_fail(err, GL_EINPUT,
                   "%zu slots of %zu positions: there must be one at least, and no more positions "
                   "than the model's context of %zu; raise `context` or lower max_tokens",
                   slots, capacity, m->c.max_positions);
  model_cache *k = calloc(1, sizeof *k);
  if (k == NULL) return gl_fail_memory(err, "a cache");
  *k = (model_cache){.m = m, .slots = slots, .capacity = capacity};
  k->most = model_cache_rows(m->b, slots);
  k->layer = calloc(m->c.layers, sizeof *k->layer);
  k->host = calloc(k->most, 3 * sizeof *k->host);
  k->host_index = calloc(k->most, sizeof *k->host_index);
  gl_status status = k->layer == NULL || k->host == NULL || k->host_index == NULL
                         ? gl_fail_memory(err, "a cache")
                         : cache_allocate(k, err);
  if (status == GL_OK)
    *out = k;
  else
    model_cache_free(k);
  return status;
}

void model_cache_free(model_cache *k) {
  if (k == NULL) return;
  backend *b = k->m->b;
  model_steps_fini(k);
  b->ops->release(b, k->block);
  b->ops->release(b, k->logits);
  b->ops->release(b, k->gathered);
  b->ops->release(b, k->kept);
  b->ops->release(b, k->context);
  b->ops->release(b, k->prompt_slot);
  free(k->layer);
  free(k->host);
  free(k->host_index);
  free(k->host_drawn);
  free(k);
}

/* --- prompts --- */

/* Uploads the slot of each of a prefill's tokens. */
static gl_status place_prompts(model_cache *k, const int32_t *slot, size_t rows, gl_error *err) {
  backend *b = k->m->b;
  if (rows > k->prompt_room) {
    b->ops->release(b, k->prompt_slot);
    k->prompt_slot = b->ops->allocate(b, rows * sizeof *slot);
    k->prompt_room = k->prompt_slot != NULL ? rows : 0;
  }
  gl_status status = b->ops->status(b, err);
  if (status != GL_OK) return status;
  b->ops->upload(b, k->prompt_slot, slot, rows * sizeof *slot);
  for (size_t l = 0; l < k->m->c.layers; ++l) {
    k->layer[l].slot = k->prompt_slot;
    k->layer[l].decode = 0;
  }
  return GL_OK;
}

/* Runs sequences [first, first + n) and writes their logits to rows [first, first + n). */
static gl_status prefill_part(model_cache *k, const packed_tokens *packed, const size_t *slot,
                              size_t first, size_t n, gl_error *err) {
  model *m = k->m;
  const size_t base = packed->start[first], tokens = packed->start[first + n] - base;
  size_t *start = calloc(2 * n + 1, sizeof *start), *last = start + n + 1;
  int32_t *numbers = calloc(n + tokens, sizeof *numbers);
  if (start == NULL || numbers == NULL) {
    free(start);
    free(numbers);
    return gl_fail_memory(err, "prompts");
  }
  for (size_t s = 0; s < n; ++s) {
    start[s + 1] = packed->start[first + s + 1] - base;
    last[s] = start[s + 1] - 1;
    for (size_t i = start[s]; i < start[s + 1]; ++i) numbers[n + i] = (int32_t)slot[first + s];
  }
  const packed_tokens part = {tokens, n, n, start, packed->token + base, last, numbers};
  gl_status status = model_pass_begin(m, &part, NULL, NULL, 0, err);
  if (status == GL_OK) status = place_prompts(k, numbers + n, tokens, err);
  if (status == GL_OK) {
    model_layers(m, k->layer, PRODUCT_ROW_BY_ROW);
    model_last_norm(m);
    model_logits(m, (char *)k->logits + first * m->c.vocabulary * m->b->master_element,
                 m->pass.last_normed, n);
    status = m->b->ops->status(m->b, err);
  }
  free(start);
  free(numbers);
  return status;
}

gl_status model_prefill(model_cache *k, const packed_tokens *packed, const size_t *slot,
                        gl_error *err) {
  gl_status status = GL_OK;
  k->filled = 0;
  if (packed->n_sequences > k->slots)
    return gl_fail(err, GL_EINTERNAL, "%zu prompts for %zu slots", packed->n_sequences, k->slots);
  for (size_t s = 0; s < packed->n_sequences; ++s)
    if (slot[s] >= k->slots || packed->start[s + 1] - packed->start[s] > k->capacity)
      return gl_fail(err, GL_EINTERNAL, "prompt %zu does not fit slot %zu", s, slot[s]);
  for (size_t s = 0, end; s < packed->n_sequences && status == GL_OK; s = end) {
    end = s + 1;
    while (end < packed->n_sequences &&
           packed->start[end + 1] - packed->start[s] <= MODEL_PREFILL_TOKENS)
      ++end;
    status = prefill_part(k, packed, slot, s, end - s, err);
  }
  if (status == GL_OK) k->filled = packed->n_sequences;
  return status;
}

gl_status model_cache_copy(model_cache *k, size_t from, size_t to, size_t length, gl_error *err) {
  backend *b = k->m->b;
  if (from >= k->slots || to >= k->slots || length > k->capacity)
    return gl_fail(err, GL_EINTERNAL, "a copy of %zu positions from slot %zu to %zu", length, from,
                   to);
  if (from == to) return GL_OK;
  for (size_t l = 0; l < k->m->c.layers; ++l)
    b->ops->cache_copy(b, k->layer[l].k, k->layer[l].v, from, to, length, k->capacity,
                       model_heads(&k->m->c));
  return b->ops->status(b, err);
}

/* --- slots that are kept --- */

/* Bytes of the keys of one layer's slot. */
static size_t layer_slot_bytes(const model *m, size_t capacity) {
  size_t n;
  if (__builtin_mul_overflow(capacity, m->c.kv_heads * m->c.head_dim * m->b->element, &n))
    return SIZE_MAX;
  return n;
}

size_t model_cache_slot_bytes(const model *m, size_t capacity) {
  const size_t one = layer_slot_bytes(m, capacity);
  size_t all;
  return one == SIZE_MAX || __builtin_mul_overflow(one, 2 * m->c.layers, &all) ? SIZE_MAX : all;
}

/* A slot's copy stores the layers one after the other, keys before values. */
gl_status model_cache_get(model_cache *k, size_t slot, void *to, gl_error *err) {
  backend *b = k->m->b;
  const size_t one = layer_slot_bytes(k->m, k->capacity);
  if (slot >= k->slots) return gl_fail(err, GL_EINTERNAL, "slot %zu of %zu", slot, k->slots);
  for (size_t l = 0; l < k->m->c.layers; ++l) {
    char *at = (char *)to + 2 * l * one;
    b->ops->download(b, at, (const char *)k->layer[l].k + slot * one, one);
    b->ops->download(b, at + one, (const char *)k->layer[l].v + slot * one, one);
  }
  return b->ops->status(b, err);
}

gl_status model_cache_put(model_cache *k, size_t slot, const void *from, gl_error *err) {
  backend *b = k->m->b;
  const size_t one = layer_slot_bytes(k->m, k->capacity);
  if (slot >= k->slots) return gl_fail(err, GL_EINTERNAL, "slot %zu of %zu", slot, k->slots);
  for (size_t l = 0; l < k->m->c.layers; ++l) {
    const char *at = (const char *)from + 2 * l * one;
    b->ops->upload(b, (char *)k->layer[l].k + slot * one, at, one);
    b->ops->upload(b, (char *)k->layer[l].v + slot * one, at + one, one);
  }
  return b->ops->status(b, err);
}

/* --- one more token --- */

/* Minimum rows of a decode for which a CPU thread runs all layers by itself. Each such thread reads
 * all weights. With fewer rows it is faster to divide the weights among the threads. */
enum { RANGE_LEAST = 12 };

typedef struct decode_job {
  const model_cache *k;
  const int32_t *slot, *position;
} decode_job;

/* Decodes rows [first, first + rows) on backend b. */
static void decode_range(void *context, size_t first, size_t rows, backend *b) {
  const decode_job *job = context;
  const model_cache *k = job->k;
  model m = *k->m; /* the same model, on the backend of this range */
  m.b = b;
  const size_t stream = first * m.c.hidden * b->element;
  const layer_activations l = layer_activations_from(&k->rows, &m.c, b, first);
  layer_cache cache;
  layer_run run = {.l = &l,
                   .branch = (char *)k->branch + stream,
                   .position = job->position + first,
                   .packed = {.rows = rows},
                   .cache = &cache,
                   .flags = PRODUCT_ROW_BY_ROW,
                   .want_branch = 1};
  void *last = (char *)k->last + stream;
  void *last_rstd = (char *)k->last_rstd + first * b->master_element;
  for (size_t i = 0; i < m.c.layers; ++i) {
    const model_norm next =
        i + 1 == m.c.layers
            ? (model_norm){last, last_rstd, l.mid, l.mid, run.branch, m.norm}
            : (model_norm){l.normed, l.rstd, l.in, l.mid, run.branch, m.place[i + 1].input_norm};
    cache = k->layer[i];
    cache.slot = job->slot + first;
    cache.decode = 1;
    run.begun = i > 0;
    run.next = &next;
    model_layer(&m, i, &run, l.in, NULL);
  }
  model_logits(&m, (char *)k->logits + first * m.c.vocabulary * b->master_element, last, rows);
}

static void model_cache_run(model_cache *k, const int32_t *slot, const int32_t *position,
                            size_t rows) {
  backend *b = k->m->b;
  decode_job job = {k, slot, position};
  if (b->ops->in_ranges != NULL)
    b->ops->in_ranges(b, rows, RANGE_LEAST, decode_range, &job);
  else
    decode_range(&job, 0, rows, b);
}

static gl_status model_cache_check(const model_cache *k, int32_t token, int32_t slot,
                                   int32_t position, gl_error *err) {
  if (token < 0 || (size_t)token >= k->m->c.vocabulary || slot < 0 || (size_t)slot >= k->slots ||
      position < 0 || (size_t)position >= k->capacity)
    return gl_fail(err, GL_EINTERNAL, "a row with token %d in slot %d at %d", (int)token, (int)slot,
                   (int)position);
  return GL_OK;
}

gl_status model_decode(model_cache *k, const int32_t *token, const int32_t *slot,
                       const int32_t *position, size_t rows, gl_error *err) {
  model *m = k->m;
  backend *b = m->b;
  k->filled = 0;
  if (rows > k->slots)
    return gl_fail(err, GL_EINTERNAL, "%zu tokens for %zu slots", rows, k->slots);
  gl_status status = GL_OK;
  for (size_t r = 0; r < rows && status == GL_OK; ++r)
    status = model_cache_check(k, token[r], slot[r], position[r], err);
  if (status != GL_OK || rows == 0) return status;
  status = model_pack(m, err);
  if (status != GL_OK) return status;
  memcpy(k->host, token, rows * sizeof *token);
  memcpy(k->host + k->most, slot, rows * sizeof *slot);
  memcpy(k->host + 2 * k->most, position, rows * sizeof *position);
  b->ops->upload(b, k->token, k->host, 3 * k->most * sizeof *k->host);
  b->ops->embed(b, k->rows.in, model_weight(m, m->embed), k->token, rows, m->c.hidden);
  model_cache_run(k, k->slot, k->position, rows);
  k->filled = rows;
  return GL_OK; /* does not wait; an error is returned when the logits are read */
}

/* --- draws --- */

static void discard_graphs(model_steps *s, backend *b) {
  for (size_t i = 0; i < MODEL_GRAPHS; ++i) {
    if (s->recorded[i].graph != NULL) b->ops->graph_free(b, s->recorded[i].graph);
    s->recorded[i] = (recorded_step){0};
  }
}

/* Copies rows row_of[0 .. rows) of the logits into a separate buffer and returns it. Returns the
 * logits themselves if they are exactly the first rows and the caller will not change them. NULL
 * after an error. */
static void *select_logits(model_cache *k, const size_t *row_of, size_t rows, int changes) {
  backend *b = k->m->b;
  int same = !changes;
  for (size_t r = 0; r < rows; ++r) {
    const size_t from = row_of != NULL ? row_of[r] : r;
    same = same && from == r;
    k->host[r] = (int32_t)from;
  }
  if (same) return k->logits;
  /* gather() moves numbers of type T; a logit of type M is as large as one or two of them. */
  const size_t width = k->m->c.vocabulary * (b->master_element / b->element);
  if (k->gathered == NULL) k->gathered = b->ops->allocate(b, k->most * width * b->element);
  if (k->gathered == NULL) return NULL;
  b->ops->upload(b, k->row_of, k->host, rows * sizeof *k->host);
  b->ops->gather(b, k->gathered, k->logits, k->row_of, rows, width);
  return k->gathered;
}

gl_status model_logits_get(const model_cache *k, size_t rows, double *logits, gl_error *err) {
  const size_t n = rows * k->m->c.vocabulary;
  if (rows > k->filled) return gl_fail(err, GL_EINTERNAL, "logits that are not there");
  void *staging = malloc(MODEL_STAGING);
  if (staging == NULL) return gl_fail_memory(err, "logits");
  model_download(k->m, k->logits, 0, n, logits, staging);
  free(staging);
  return k->m->b->ops->status(k->m->b, err);
}

static void model_drawn_get(const model_cache *k, const void *drawn, size_t rows, size_t all,
                            int32_t *token, double *logq, double *logq_truncated) {
  const char *from = (const char *)drawn + model_drawn_bytes(k, 0);
  const int wide = k->m->b->master == NUMBER_F64;
  memcpy(token, drawn, rows * sizeof *token);
  for (size_t r = 0; r < rows; ++r) {
    logq[r] = wide ? ((const double *)(const void *)from)[r]
                   : (double)((const float *)(const void *)from)[r];
    logq_truncated[r] = wide ? ((const double *)(const void *)from)[all + r]
                             : (double)((const float *)(const void *)from)[all + r];
  }
}

static gl_status check_draws(const model_cache *k, const size_t *row_of, size_t rows,
                             gl_error *err) {
  if (rows > k->most) return gl_fail(err, GL_EINTERNAL, "%zu draws for %zu slots", rows, k->slots);
  for (size_t r = 0; r < rows; ++r)
    if ((row_of != NULL ? row_of[r] : r) >= k->filled)
      return gl_fail(err, GL_EINTERNAL, "a draw from logits that are not there");
  return GL_OK;
}

/* Uploads the random-stream addresses of the samples. */
static void begin_draws(model_cache *k, const uint64_t *index, size_t rows) {
  backend *b = k->m->b;
  k->steps.fed = 0;
  memcpy(k->host_index, index, rows * sizeof *index);
  b->ops->upload(b, k->index, k->host_index, rows * sizeof *index);
}

static void end_draws(model_cache *k, size_t rows, int32_t *token, double *logq,
                      double *logq_truncated) {
  backend *b = k->m->b;
  b->ops->download(b, k->host_drawn, k->drawn, model_drawn_bytes(k, rows));
  model_drawn_get(k, k->host_drawn, rows, rows, token, logq, logq_truncated);
}

/* Allocates memory for sets of `words` words of kept tokens. */
static gl_status make_kept(model_cache *k, size_t words, gl_error *err) {
  model_steps *s = &k->steps;
  backend *b = k->m->b;
  if (words == 0 || (k->kept != NULL && k->kept_words == words)) return GL_OK;
  if (s->started != s->taken)
    return gl_fail(err, GL_EINTERNAL, "other sets of kept tokens while a step is under way");
  const size_t bytes = k->most * words * sizeof *k->kept;
  discard_graphs(s, b);
  b->ops->release(b, k->kept);
  k->kept = b->ops->allocate(b, bytes);
  k->kept_words = words;
  for (size_t i = 0; i < MODEL_STEPS && s->ahead > 0; ++i) {
    b->ops->fetch_free(b, s->fetch_kept[i]);
    s->fetch_kept[i] = b->ops->fetch_new(b, bytes);
  }
  return b->ops->status(b, err);
}

static void distort_logits(model_cache *k, const uint64_t *context, void *logits, size_t rows,
                           const sampling_behaviour *behaviour, uint64_t seed) {
  backend *b = k->m->b;
  b->ops->upload(b, k->context, context, rows * sizeof *context);
  b->ops->distort(b, logits, k->context, rows, k->m->c.vocabulary, behaviour, seed);
}

/* Samples a token of each row, and records the kept tokens if that is wanted. */
static void sample_rows(model_cache *k, const void *logits, const uint64_t *index, size_t rows,
                        const model_draws *draws) {
  backend *b = k->m->b;
  void *logq_truncated = (char *)k->logq + rows * b->master_element;
  if (draws->kept.words > 0)
    b->ops->sample_kept(b, k->drawn, k->logq, logq_truncated, (kept_sets){draws->kept, k->kept},
                        logits, index, rows, &draws->sampling, draws->stream);
  else
    b->ops->sample(b, k->drawn, k->logq, logq_truncated, logits, index, rows, k->m->c.vocabulary,
                   &draws->sampling, draws->stream, draws->greedy);
}

gl_status model_sample(model_cache *k, const model_draw_rows *rows, const model_draws *draws,
                       const model_drawn *out, gl_error *err) {
  backend *b = k->m->b;
  const size_t words = draws->kept.words;
  gl_status status = check_draws(k, rows->row_of, rows->n, err);
  if (status == GL_OK && rows->n > 0) status = make_kept(k, words, err);
  if (status != GL_OK || rows->n == 0) return status;
  if (rows->context != NULL && k->context == NULL) {
    k->context = b->ops->allocate(b, k->most * sizeof *k->context);
    if (k->context == NULL) return b->ops->status(b, err);
  }
  void *logits = select_logits(k, rows->row_of, rows->n, rows->context != NULL);
  if (logits == NULL) return b->ops->status(b, err);
  if (rows->context != NULL)
    distort_logits(k, rows->context, logits, rows->n, &draws->sampling.behaviour,
                   draws->stream.seed);
  begin_draws(k, rows->index, rows->n);
  sample_rows(k, logits, k->index, rows->n, draws);
  end_draws(k, rows->n, out->token, out->logq, out->logq_truncated);
  if (words > 0) b->ops->download(b, out->kept, k->kept, rows->n * words * sizeof *out->kept);
  return b->ops->status(b, err);
}

/* --- steps --- */
/* A step decodes one token of every row and samples the next one.
 *
 * The device does not wait for the host. A whole step is one CUDA graph: it reads its tokens from
 * where the previous step sampled them, increments positions, and samples. The host starts the next
 * step before it has read this step's samples. It uploads data only when rows are added, removed or
 * moved. On a backend whose operations are synchronous (the CPU), a step is a decode followed by
 * sampling. */

static gl_status model_steps_init(model_cache *k, gl_error *err) {
  model_steps *s = &k->steps;
  backend *b = k->m->b;
  s->ahead = b->ops->graph_begin != NULL;
  if (s->ahead == 0) {
    s->token = calloc(k->most, sizeof *s->token);
    s->logq = calloc(k->most, 2 * sizeof *s->logq);
    if (s->token == NULL || s->logq == NULL) return gl_fail_memory(err, "a cache");
    s->logq_truncated = s->logq + k->most;
    return GL_OK;
  }
  void *block = calloc(1, step_rows_bytes(k->most));
  if (block == NULL) return gl_fail_memory(err, "a cache");
  s->host = step_rows_cut(block, k->most);
  for (size_t i = 0; i < MODEL_STEPS; ++i)
    s->fetch[i] = b->ops->fetch_new(b, model_drawn_bytes(k, k->most));
  return b->ops->status(b, err);
}

static void model_steps_fini(model_cache *k) {
  model_steps *s = &k->steps;
  backend *b = k->m->b;
  discard_graphs(s, b);
  for (size_t i = 0; i < MODEL_STEPS && s->ahead > 0; ++i) {
    b->ops->fetch_free(b, s->fetch[i]);
    b->ops->fetch_free(b, s->fetch_kept[i]);
  }
  free(s->host.index);
  free(s->token);
  free(s->logq);
}

size_t model_steps_ahead(const model_cache *k) {
  return k->steps.ahead;
}

/* --- a step beside the host --- */

static void run_step(model_cache *k, size_t rows) {
  const model *m = k->m;
  const step_rows *w = &k->steps.device;
  backend *b = m->b;
  b->ops->embed_next(b, k->rows.in, model_weight(m, m->embed), w->source, w->position, w->index,
                     w->slot, k->drawn, rows, m->c.hidden);
  model_cache_run(k, w->slot, w->position, rows);
  sample_rows(k, k->logits, w->index, rows, &k->steps.draws);
}

static int same_draws(const model_draws *a, const model_draws *b) {
  return a->sampling.temperature == b->sampling.temperature &&
         a->sampling.top_k == b->sampling.top_k && a->sampling.top_p == b->sampling.top_p &&
         a->sampling.weights == b->sampling.weights && a->stream.seed == b->stream.seed &&
         a->stream.entity == b->stream.entity && a->stream.purpose == b->stream.purpose &&
         a->greedy == b->greedy && a->kept.words == b->kept.words &&
         a->kept.vocabulary == b->kept.vocabulary && a->kept.listed == b->kept.listed;
}

/* Discards the recorded graphs if the sampling distribution or the random stream changed. */
static void use_draws(model_cache *k, const model_draws *draws) {
  model_steps *s = &k->steps;
  if (same_draws(&s->draws, draws)) return;
  discard_graphs(s, k->m->b);
  s->draws = *draws;
}

/* The first step of a size runs without a graph, the second is recorded and run, later ones replay
 * the graph. */
static void replay_step(model_cache *k, size_t rows) {
  const backend_ops *ops = k->m->b->ops;
  backend *b = k->m->b;
  size_t i = 0;
  while (((size_t)1 << i) < rows) ++i;
  recorded_step *r = &k->steps.recorded[i];
  if (r->graph != NULL && r->values != k->m->use) {
    ops->graph_free(b, r->graph);
    r->graph = NULL;
  }
  if (r->graph == NULL && r->warm) {
    ops->graph_begin(b);
    run_step(k, rows);
    r->graph = ops->graph_end(b);
    r->values = k->m->use;
  }
  if (r->graph != NULL)
    ops->graph_run(b, r->graph);
  else
    run_step(k, rows);
  r->warm = 1;
}

/* Uploads the rows of the next step, padded to `all`, unless the device has computed the same rows
 * itself. Positions and sample numbers are those before the step: a step begins by incrementing
 * them. */
static void place_rows(model_cache *k, const model_step_rows *rows, size_t all) {
  model_steps *s = &k->steps;
  step_rows *w = &s->host;
  int same = s->same;
  for (size_t r = 0; r < all; ++r) {
    const int here = r < rows->n;
    const uint64_t index = here ? rows->index[r] - 1 : 0;
    const int32_t source = here ? rows->token[r] : 0, slot = here ? rows->slot[r] : -1;
    const int32_t position = here ? rows->position[r] - 1 : 0;
    same = same && w->index[r] == index && w->source[r] == source && w->slot[r] == slot &&
           w->position[r] == position;
    w->index[r] = index;
    w->source[r] = source;
    w->slot[r] = slot;
    w->position[r] = position;
  }
  if (!same) k->m->b->ops->upload(k->m->b, s->device.index, w->index, step_rows_bytes(k->most));
  for (size_t r = 0; r < rows->n; ++r) {
    ++w->index[r];
    ++w->position[r];
    w->source[r] = -1 - (int32_t)r;
  }
  s->same = 1;
}

static gl_status start_beside(model_cache *k, const model_step_rows *rows, const model_draws *draws,
                              gl_error *err) {
  model_steps *s = &k->steps;
  backend *b = k->m->b;
  const size_t all = model_cache_rows(b, rows->n), i = s->started % MODEL_STEPS;
  const size_t words = draws->kept.words;
  gl_status status = make_kept(k, words, err);
  if (status != GL_OK) return status;
  use_draws(k, draws);
  place_rows(k, rows, all);
  replay_step(k, all);
  b->ops->fetch_start(b, s->fetch[i], k->drawn, model_drawn_bytes(k, all));
  if (words > 0)
    b->ops->fetch_start(b, s->fetch_kept[i], k->kept, rows->n * words * sizeof *k->kept);
  s->all[i] = all;
  s->words[i] = words;
  s->fed = 1;
  return GL_OK;
}

/* --- a step at once --- */

/* A step of a synchronous backend: decodes the rows, then samples. */
static gl_status run_at_once(model_cache *k, const model_step_rows *rows, const model_draws *draws,
                             gl_error *err) {
  model_steps *s = &k->steps;
  if (draws->kept.words > 0)
    return gl_fail(err, GL_EINTERNAL, "a step at once with sets of kept tokens");
  int32_t *token = calloc(rows->n + 1, sizeof *token);
  if (token == NULL) return gl_fail_memory(err, "a step");
  for (size_t r = 0; r < rows->n; ++r)
    token[r] = rows->token[r] >= 0 ? rows->token[r] : s->token[-1 - rows->token[r]];
  gl_status status = model_decode(k, token, rows->slot, rows->position, rows->n, err);
  if (status == GL_OK)
    status = model_sample(k, &(model_draw_rows){.n = rows->n, .index = rows->index}, draws,
                          &(model_drawn){s->token, s->logq, s->logq_truncated, NULL}, err);
  free(token);
  return status;
}

/* --- both --- */

/* Checks the rows. A negative token must name a row of the previous step. */
static gl_status check_step(const model_cache *k, const model_step_rows *rows, gl_error *err) {
  const model_steps *s = &k->steps;
  if (rows->n == 0 || rows->n > k->slots)
    return gl_fail(err, GL_EINTERNAL, "a step of %zu rows for %zu slots", rows->n, k->slots);
  if (s->started - s->taken > s->ahead)
    return gl_fail(err, GL_EINTERNAL, "a step while %zu are under way", s->started - s->taken);
  const size_t before =
      s->started == 0 || (s->ahead > 0 && !s->fed) ? 0 : s->rows[(s->started - 1) % MODEL_STEPS];
  gl_status status = GL_OK;
  for (size_t r = 0; r < rows->n && status == GL_OK; ++r) {
    const int32_t token = rows->token[r];
    if (token < 0 && (size_t)(-1 - (int64_t)token) >= before)
      return gl_fail(err, GL_EINTERNAL, "row %zu wants what row %ld of the step before drew", r,
                     -1 - (long)token);
    status = model_cache_check(k, token < 0 ? 0 : token, rows->slot[r], rows->position[r], err);
  }
  return status;
}

gl_status model_step(model_cache *k, const model_step_rows *rows, const model_draws *draws,
                     gl_error *err) {
  model_steps *s = &k->steps;
  gl_status status = check_step(k, rows, err);
  if (status != GL_OK) return status;
  status = s->ahead > 0 ? start_beside(k, rows, draws, err) : run_at_once(k, rows, draws, err);
  if (status != GL_OK) return status;
  k->filled = rows->n;
  s->rows[s->started++ % MODEL_STEPS] = rows->n;
  return GL_OK;
}

gl_status model_step_take(model_cache *k, const model_drawn *out, gl_error *err) {
  model_steps *s = &k->steps;
  if (s->taken == s->started) return gl_fail(err, GL_EINTERNAL, "no step is under way");
  const size_t i = s->taken++ % MODEL_STEPS, rows = s->rows[i];
  if (s->ahead == 0) {
    memcpy(out->token, s->token, rows * sizeof *out->token);
    memcpy(out->logq, s->logq, rows * sizeof *out->logq);
    memcpy(out->logq_truncated, s->logq_truncated, rows * sizeof *out->logq);
    return GL_OK;
  }
  backend *b = k->m->b;
  const size_t words = s->words[i];
  const void *drawn = b->ops->fetch_wait(b, s->fetch[i]);
  const void *kept = words > 0 ? b->ops->fetch_wait(b, s->fetch_kept[i]) : NULL;
  if (drawn == NULL || (words > 0 && kept == NULL)) {
    const gl_status status = b->ops->status(b, err);
    return status != GL_OK ? status : gl_fail(err, GL_EINTERNAL, "a step's draws did not come");
  }
  model_drawn_get(k, drawn, rows, s->all[i], out->token, out->logq, out->logq_truncated);
  if (words > 0) memcpy(out->kept, kept, rows * words * sizeof *out->kept);
  return GL_OK;
}
