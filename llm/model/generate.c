/* Generation over slots: checks a request, plans its jobs and slots, runs them, and computes the
 * memory a model needs.
 *
 * Filling of free slots and decoding steps alternate. Slots are filled when at least 1 /
 * REFILL_PART of them are free.
 *
 * Filling: a job runs its sequence through the model once, into one slot. The first tokens of all
 * its responses are sampled from the logits of that run, so no prompt is run twice. Each response
 * that continues gets a slot, into which the prompt's keys and values are copied. Responses of a
 * job that find no slot wait. No other job starts before they have slots, so that some slot still
 * holds their prompt's keys and values.
 *
 * A step decodes the running responses once and samples one token of each. On a device the next
 * step starts before this step's samples are read (llm/model/cache.c). So the end of a response is
 * noticed one step late, and the token sampled for it meanwhile is dropped. Slots are filled when
 * no step is in progress.
 *
 * Prefixes are shared if steps are synchronous: on the CPU, and whenever logits are distorted.
 * Responses to one prompt with the same tokens so far are decoded once.
 * The first of them is the leader; the others sample from its logits. A response that samples
 * another token than its leader gets a copy of the leader's keys and values. It continues alone or
 * with those that sampled the same token.
 *
 * If keys and values are kept between calls (generate_result.cache), a resumed response gets its
 * stored ones instead of another prefill, and its final ones are stored again.
 *
 * The backend computes each row of a matrix from that row's inputs only, and every sample has its
 * own address in a random stream. So a response does not depend on the number of slots or on order.
 */
#include "llm/model/generate.h"

#include "core/base/hash.h"
#include "llm/model/internal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  MOST_POSITIONS = 1 << 20, /* limit of rng_token_index */
  MOST_NUMBERS = 1 << 28,   /* limit of rng_token_index */
  PREFILL_TOKENS = 8192     /* maximum of one prefill, unless a single sequence is longer */
};

/* --- results --- */

gl_status generate_result_init(generate_result *r, size_t n_responses, size_t max_tokens,
                               gl_error *err) {
  *r = (generate_result){0};
  r->length = ARENA_ARRAY(&r->memory, size_t, n_responses);
  r->finished = ARENA_ARRAY(&r->memory, int, n_responses);
  r->token = ARENA_GRID(&r->memory, int32_t, n_responses, max_tokens);
  r->logq = ARENA_GRID(&r->memory, double, n_responses, max_tokens);
  r->logq_truncated = ARENA_GRID(&r->memory, double, n_responses, max_tokens);
  const gl_status status = arena_check(&r->memory, "the responses", err);
  if (status != GL_OK) generate_result_fini(r);
  return status;
}

void generate_result_fini(generate_result *r) {
  arena_fini(&r->memory);
  *r = (generate_result){0};
}

/* --- what may be asked --- */

/* Maximum number of tokens of response i. */
static size_t generate_limit(const generate_request *q, size_t i) {
  return q->limit != NULL ? q->limit[i] : q->up_to;
}

static gl_status check_token_range(const int32_t *token, size_t n, const model_config *c,
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
    gl_status status = check_token_range(q->prompt + q->prompt_start[p], n, c, "prompt", p, err);
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
        check_token_range(r->token + i * q->max_tokens, r->length[i], c, "response", i, err);
    if (status != GL_OK) return status;
  }
  return GL_OK;
}

static gl_status check_generate_request(const generate_request *q, const generate_result *r,
                                        const model_config *c, gl_error *err) {
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

/* One sequence to run through the model: a prompt, for all its responses without tokens; or a
 * prompt with the tokens so far of one response that is resumed. */
typedef struct generate_job {
  size_t first, n; /* its responses: order[first .. first + n) */
  size_t tokens;   /* length of the sequence */
} generate_job;

typedef struct generate_plan {
  size_t *order; /* [n] responses to sample, those of a job side by side */
  size_t n;
  generate_job *jobs;
  size_t n_jobs;
  size_t capacity;       /* positions of a slot: prompt and response */
  size_t slots;          /* sequences decoded side by side, at most n */
  size_t prefill_tokens; /* maximum number of tokens of one prefill */
} generate_plan;

static int still_draws(const generate_request *q, const generate_result *r, size_t i) {
  return !r->finished[i] && r->length[i] < generate_limit(q, i);
}

/* Writes p->order: responses without tokens, ordered by prompt with a counting sort; then those
 * with tokens. next[n_prompts + 1] is zero on entry. */
static void order_responses(generate_plan *p, const generate_request *q, const generate_result *r,
                            size_t *next) {
  for (size_t i = 0; i < q->n_responses; ++i)
    if (still_draws(q, r, i) && r->length[i] == 0) ++next[q->prompt_of[i] + 1];
  for (size_t x = 0; x < q->n_prompts; ++x) next[x + 1] += next[x];
  p->n = next[q->n_prompts];
  for (size_t i = 0; i < q->n_responses; ++i)
    if (still_draws(q, r, i)) p->order[r->length[i] == 0 ? next[q->prompt_of[i]]++ : p->n++] = i;
}

/* Makes one job of adjacent responses to a prompt that have no tokens, and one of each resumed
 * response. */
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

/* Finds the largest number of slots for which the cache, the logits, the activations of a prefill
 * and the scratch memory fit, by binary search. */
gl_status generate_slots(size_t *slots, const model_config *c, const backend *b, size_t n_responses,
                         size_t capacity, size_t bytes, gl_error *err) {
  if (*slots != 0) {
    if (*slots > n_responses) *slots = n_responses;
    return GL_OK;
  }
  size_t low = 0, high = n_responses;
  while (low < high) {
    size_t middle = high - (high - low) / 2;
    memory_plan need;
    gl_status status =
        model_memory(&need, c, b, &(memory_use){.slots = middle, .capacity = capacity}, err);
    if (status != GL_OK) return status;
    if (need.total - need.parameters - need.packed <= bytes - bytes / GENERATE_MARGIN)
      low = middle;
    else
      high = middle - 1;
  }
  *slots = low;
  return GL_OK;
}

static gl_status plan_slots(generate_plan *p, const model *m, const generate_request *q,
                            gl_error *err) {
  backend *b = model_backend(m);
  size_t total = 0, available = 0;
  if (q->slots == 0) b->ops->memory(b, &total, &available);
  if (q->sharing > 1) available /= q->sharing;
  p->slots = q->slots;
  gl_status status =
      generate_slots(&p->slots, model_configuration(m), b, p->n, p->capacity, available, err);
  if (status == GL_OK && p->slots == 0)
    status = gl_fail(err, GL_ENOMEM,
                     "no memory for keys and values of a single sequence of %zu positions (%zu MiB "
                     "free on %s); lower max_tokens",
                     p->capacity, available >> 20, b->device);
  return status;
}

/* Checks request and result against the model and each other, and makes the plan in memory of the
 * arena. A plan with n = 0 has nothing to do. Errors: GL_EINPUT, GL_EINTERNAL. */
static gl_status make_plan(generate_plan *p, arena *memory, const model *m,
                           const generate_request *q, const generate_result *r, gl_error *err) {
  *p = (generate_plan){.prefill_tokens = PREFILL_TOKENS};
  gl_status status = check_generate_request(q, r, model_configuration(m), err);
  if (status != GL_OK) return status;
  size_t *next = ARENA_ARRAY(memory, size_t, q->n_prompts + 1);
  p->order = ARENA_ARRAY(memory, size_t, q->n_responses);
  p->jobs = ARENA_ARRAY(memory, generate_job, q->n_responses);
  status = arena_check(memory, "the plan of responses", err);
  if (status != GL_OK) return status;
  order_responses(p, q, r, next);
  if (p->n == 0) return GL_OK;
  group_into_jobs(p, q, r);
  if (r->cache != NULL && p->capacity > r->cache->capacity)
    return gl_fail(err, GL_EINTERNAL, "%zu positions of keys and values where %zu are kept",
                   p->capacity, r->cache->capacity);
  if (r->cache != NULL) p->capacity = r->cache->capacity;
  return plan_slots(p, m, q, err);
}

/* --- what memory a model needs --- */

static int plan_generation(memory_plan *out, const model_config *c, const backend *b, size_t slots,
                           size_t capacity) {
  const size_t rows = capacity > MODEL_PREFILL_TOKENS ? capacity : MODEL_PREFILL_TOKENS;
  const size_t most =
      slots > SIZE_MAX / capacity || slots * capacity > rows ? rows : slots * capacity;
  const size_t prefill = model_pass_bytes(c, b, (pass_shape){most, slots, slots, 0, 0, 0, 0});
  out->cache = model_cache_bytes(c, b, slots, capacity);
  if (prefill > out->activations) out->activations = prefill;
  return prefill != SIZE_MAX && out->cache != SIZE_MAX &&
         model_add_product(&out->logits, 2 * b->master_element, model_cache_rows(b, slots),
                           c->vocabulary);
}

/* Scratch memory in bytes; training and generation use the same memory. */
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

gl_status model_memory(memory_plan *out, const model_config *c, const backend *b,
                       const memory_use *use, gl_error *err) {
  *out = (memory_plan){0};
  gl_status status = model_config_check(c, err);
  if (status != GL_OK) return status;
  const size_t n = model_config_parameters(c), two = b->type != b->master;
  int fits = model_add_product(&out->parameters, n, b->master_element, 1) &&
             model_add_product(&out->parameters, n, b->element, two) &&
             model_add_product(&out->parameters, n, b->element, use->value_copies) &&
             model_add_product(&out->parameters, c->max_positions, c->head_dim, b->master_element);
  out->packed = model_packed_bytes(c, b);
  fits = fits && out->packed != SIZE_MAX;
  if (use->training_tokens > 0) {
    fits = fits && model_add_product(&out->gradients, n, b->master_element, 1) &&
           model_add_product(&out->moments, n, b->master_element, 2);
    const size_t trees = b->ops->attention_shared != NULL ? use->training_tokens : 0;
    const pass_shape shape = {use->training_tokens,
                              use->training_tokens,
                              use->training_targets,
                              1,
                              use->stores,
                              trees,
                              0};
    out->activations = model_pass_bytes(c, b, shape);
    fits = fits && out->activations != SIZE_MAX;
  }
  if (use->slots > 0 && use->capacity > 0)
    fits = fits && plan_generation(out, c, b, use->slots, use->capacity);
  if (fits) out->scratch = plan_scratch(c, b, use->training_tokens, use->slots, use->capacity);
  fits = fits && model_add_product(&out->total, out->parameters, 1, 1) &&
         model_add_product(&out->total, out->gradients, 1, 1) &&
         model_add_product(&out->total, out->moments, 1, 1) &&
         model_add_product(&out->total, out->activations, 1, 1) &&
         model_add_product(&out->total, out->cache, 1, 1) &&
         model_add_product(&out->total, out->packed, 1, 1) &&
         model_add_product(&out->total, out->logits, 1, 1) &&
         model_add_product(&out->total, out->scratch, 1, 1);
  if (fits) return GL_OK;
  return gl_fail(
      err, GL_ENOMEM,
      "this needs more memory than any machine has; lower micro_batch, slots, max_tokens "
      "or the model's sizes");
}

/* --- a run --- */

enum {
  REFILL_PART = 8
}; /* free slots are refilled when at least 1 / REFILL_PART of all slots are free */

static const size_t none = SIZE_MAX;

/* The state of a slot: which response runs in it, and which slot is decoded for it. */
typedef struct slot_state {
  size_t response; /* the response running here, or none */
  size_t job;      /* the job whose keys and values are in the first positions, or none */
  size_t ahead;    /* number of tokens of the response that steps in progress sample */
  size_t row;      /* row of the slot in the last step started */
  size_t leader;   /* the slot decoded on behalf of this one: itself, or an earlier one */
  size_t left;     /* the leader that it left in the last step, or none */
} slot_state;

/* A prefill of several jobs: its packed sequences and the slot of each. */
typedef struct prefill {
  size_t *start, *slot; /* [slots + 1] first token and slot of each sequence */
  int32_t *token;       /* [plan.prefill_tokens] packed tokens */
  size_t n_jobs, n_tokens;
} prefill;

/* The rows that one model_sample() samples, or one step decodes and samples. */
typedef struct rows {
  size_t *response, *row_of; /* [slots] response, and row of the logits, of each row */
  uint64_t *index;
  int32_t *token, *slot, *position;
  double *logq, *logq_truncated;
  uint64_t *context; /* [slots] addresses of noise; NULL: logits are not distorted */
  uint32_t *kept;    /* [slots] sets of kept tokens; NULL: not recorded */
  size_t n;
} rows;

/* A step in progress: the slots of its rows. */
typedef struct flight {
  size_t *slot; /* [plan.slots] slot of each row */
  size_t n;
} flight;

enum { FLIGHTS = 2 }; /* maximum number of steps in progress */

typedef struct run {
  model_cache *cache;
  const generate_request *q;
  generate_result *r;
  model_draws draws; /* what tokens are sampled from */
  generate_plan plan;
  slot_state *slots; /* [plan.slots] */
  size_t *free;      /* [plan.slots] numbers of the free slots, during a fill */
  size_t n_running;
  size_t next_job;     /* the first job that has not started */
  size_t waiting_job;  /* a job with prefill whose responses wait for slots; or none */
  size_t next_waiting; /* its next waiting response, in plan.order */
  prefill prefill;
  rows rows;
  flight flight[FLIGHTS]; /* step i (from 0) is at index i % FLIGHTS */
  size_t started, taken;  /* numbers of steps started, and of steps whose samples were read */
  int shares;             /* 1: responses with the same tokens so far are decoded once */
  arena memory;           /* owns all arrays, the plan's too */
  gl_error *err;
} run;

/* --- drawing --- */

static int is_stop(const generate_request *q, int32_t token) {
  for (size_t s = 0; s < q->n_stop; ++s)
    if (q->stop[s] == token) return 1;
  return 0;
}

static int is_over(const run *g, size_t i) {
  return g->r->finished[i] || g->r->length[i] >= generate_limit(g->q, i);
}

/* The address of the noise for the next token of response i. Responses to one prompt with the same
 * tokens so far get the same noise. */
static uint64_t context_of(const run *g, size_t i) {
  const generate_request *q = g->q;
  const size_t prompt = q->prompt_of[i], from = q->prompt_start[prompt];
  uint64_t hash = hash_64(HASH_64_START, &q->stream.entity, sizeof q->stream.entity);
  hash = hash_64(hash, q->prompt + from, generate_prompt_length(q, i) * sizeof *q->prompt);
  return hash_64(hash, g->r->token + i * q->max_tokens, g->r->length[i] * sizeof *g->r->token);
}

static void add_draw(run *g, size_t response, size_t row_of) {
  rows *w = &g->rows;
  w->response[w->n] = response;
  w->row_of[w->n] = row_of;
  if (w->context != NULL) w->context[w->n] = context_of(g, response);
  w->index[w->n] = rng_token_index(g->q->number[response], g->r->length[response]);
  ++w->n;
}

/* Checks the log-probability of a sampled token. One NaN or infinite logit makes all
 * log-probabilities of its row NaN, so checking this one is enough. */
static gl_status check_draw(const run *g, size_t i, double logq, double logq_truncated) {
  if (!g->q->must_be_finite || (isfinite(logq) && isfinite(logq_truncated))) return GL_OK;
  return gl_fail(g->err, GL_ENUMERIC,
                 "the model's logits are not finite: token %zu of a response to prompt %zu has "
                 "log-probability %g; the weights are too large to compute with in this dtype, or "
                 "training has diverged: take an earlier checkpoint, or a wider dtype",
                 g->r->length[i], g->q->first_prompt + g->q->prompt_of[i],
                 isfinite(logq) ? logq_truncated : logq);
}

/* Copies the kept set of row k of the last sampling to token `at`, if kept sets are recorded. */
static gl_status copy_kept_set(const run *g, size_t k, size_t at) {
  const kept_shape *shape = &g->r->shape;
  if (g->rows.kept == NULL) return GL_OK;
  const uint32_t *set = g->rows.kept + k * shape->words;
  memcpy(g->r->kept + at * shape->words, set, shape->words * sizeof *set);
  if (!shape->listed || set[0] != KEPT_OVERFLOW) return GL_OK;
  return gl_fail(
      g->err, GL_EINPUT,
      "top_k: %zu kept more than %zu tokens, because so many are as probable as the "
      "%zu-th, and there is no room to record them with the token that was sampled; lower "
      "top_k, take `precision: bfloat16` away, or weights: raw",
      g->draws.sampling.top_k, shape->words - 1, g->draws.sampling.top_k);
}

/* Appends the token sampled in row k to response i. */
static gl_status append_draw(run *g, size_t i, size_t k) {
  const rows *w = &g->rows;
  const generate_request *q = g->q;
  generate_result *r = g->r;
  gl_status status = check_draw(g, i, w->logq[k], w->logq_truncated[k]);
  if (status != GL_OK) return status;
  size_t at = i * q->max_tokens + r->length[i]++;
  r->token[at] = w->token[k];
  r->logq[at] = w->logq[k];
  r->logq_truncated[at] = w->logq_truncated[k];
  r->finished[i] = is_stop(q, w->token[k]);
  return copy_kept_set(g, k, at);
}

/* Samples the next token of every response in g->rows, and empties that list. */
static gl_status draw_rows(run *g) {
  rows *w = &g->rows;
  size_t n = w->n;
  w->n = 0;
  if (n == 0) return GL_OK;
  const model_draw_rows asked = {n, w->row_of, w->index, w->context};
  const model_drawn drawn = {w->token, w->logq, w->logq_truncated, w->kept};
  gl_status status = model_sample(g->cache, &asked, &g->draws, &drawn, g->err);
  for (size_t k = 0; k < n && status == GL_OK; ++k) status = append_draw(g, w->response[k], k);
  return status;
}

/* --- filling slots --- */

static int same_so_far(const run *g, size_t i, size_t j) {
  const generate_result *r = g->r;
  const int32_t *a = r->token + i * g->q->max_tokens, *b = r->token + j * g->q->max_tokens;
  return r->length[i] == r->length[j] && memcmp(a, b, r->length[i] * sizeof *a) == 0;
}

/* The slot to decode for response i in slot s. A leader among beside[n], which run responses to
 * the same prompt, if its response has the same tokens so far and the same limit; else s itself. */
static size_t find_leader(const run *g, size_t i, size_t s, const size_t *beside, size_t n) {
  for (size_t k = 0; k < n && g->shares; ++k) {
    const size_t t = beside[k];
    const size_t j = g->slots[t].response;
    if (g->slots[t].leader == t && generate_limit(g->q, i) == generate_limit(g->q, j) &&
        same_so_far(g, i, j))
      return t;
  }
  return s;
}

/* Starts response i in slot s. If the slot leads, it receives the keys and values of the job's
 * sequence from slot `home`. */
static gl_status start_response(run *g, size_t i, size_t job, size_t home, size_t s,
                                size_t leader) {
  slot_state *slot = &g->slots[s];
  assert(slot->response == none && g->slots[home].job == job);
  gl_status status = GL_OK;
  if (leader == s && slot->job != job)
    status = model_cache_copy(g->cache, home, s, g->plan.jobs[job].tokens, g->err);
  *slot = (slot_state){
      .response = i, .job = leader == s ? job : slot->job, .leader = leader, .left = none};
  ++g->n_running;
  return status;
}

/* Stores the keys and values of response i from its slot, if the caller keeps them. */
static gl_status save_cache(const run *g, size_t i, size_t slot) {
  const generate_cache *c = g->r->cache;
  return c != NULL ? model_cache_get(g->cache, slot, c->kept + i * c->bytes, g->err) : GL_OK;
}

/* Assigns free slots [*used, n_free) to unfinished responses of a job, from *next on. */
static gl_status place_responses(run *g, size_t job, size_t home, size_t *next, size_t *used,
                                 size_t n_free) {
  const generate_job *j = &g->plan.jobs[job];
  const size_t *beside = g->free + *used;
  gl_status status = GL_OK;
  for (size_t n = 0; *next < j->first + j->n && status == GL_OK; ++*next) {
    const size_t i = g->plan.order[*next];
    if (is_over(g, i)) {
      status = save_cache(g, i, home);
      continue;
    }
    if (*used == n_free) break;
    const size_t s = g->free[(*used)++];
    status = start_response(g, i, job, home, s, find_leader(g, i, s, beside, n++));
  }
  return status;
}

static gl_status place_waiting(run *g, size_t *used, size_t n_free) {
  size_t job = g->waiting_job, home = 0;
  if (job == none) return GL_OK;
  while (g->slots[home].job != job) ++home;
  gl_status status = place_responses(g, job, home, &g->next_waiting, used, n_free);
  const generate_job *j = &g->plan.jobs[job];
  if (g->next_waiting == j->first + j->n) g->waiting_job = none;
  return status;
}

/* Appends the job's sequence to the prefill, with the slot that receives its keys and values. */
static void pack_job(run *g, size_t job, size_t slot) {
  prefill *f = &g->prefill;
  const generate_request *q = g->q;
  size_t i = g->plan.order[g->plan.jobs[job].first], n = generate_prompt_length(q, i);
  memcpy(f->token + f->n_tokens, q->prompt + q->prompt_start[q->prompt_of[i]],
         n * sizeof *f->token);
  memcpy(f->token + f->n_tokens + n, g->r->token + i * q->max_tokens,
         g->r->length[i] * sizeof *f->token);
  f->slot[f->n_jobs] = slot;
  f->n_tokens += n + g->r->length[i];
  f->start[++f->n_jobs] = f->n_tokens;
}

/* 1 if the job resumes a response from its stored keys and values. */
static int next_is_kept(const run *g, size_t job) {
  return g->r->cache != NULL && g->r->length[g->plan.order[g->plan.jobs[job].first]] > 0;
}

/* Runs the sequences of the next jobs, as many as free slots and the size of a prefill allow. Each
 * job needs as many slots as it has responses. */
static gl_status prefill_jobs(run *g, size_t used, size_t n_free) {
  prefill *f = &g->prefill;
  f->n_jobs = f->n_tokens = 0;
  for (size_t j = g->next_job; j < g->plan.n_jobs && used < n_free; ++j) {
    const generate_job *job = &g->plan.jobs[j];
    if (job->tokens > g->plan.prefill_tokens - f->n_tokens || next_is_kept(g, j)) break;
    pack_job(g, j, g->free[used]);
    g->slots[g->free[used]].job = j;
    used += job->n < n_free - used ? job->n : n_free - used;
  }
  packed_tokens packed = {
      .n_tokens = f->n_tokens, .n_sequences = f->n_jobs, .start = f->start, .token = f->token};
  return model_prefill(g->cache, &packed, f->slot, g->err);
}

/* Samples the first token of every response of the jobs just run. */
static gl_status draw_first(run *g) {
  gl_status status = GL_OK;
  for (size_t k = 0; k < g->prefill.n_jobs; ++k) {
    const generate_job *job = &g->plan.jobs[g->next_job + k];
    for (size_t i = 0; i < job->n && status == GL_OK; ++i) {
      if (g->rows.n == g->plan.slots) status = draw_rows(g);
      add_draw(g, g->plan.order[job->first + i], k);
    }
  }
  return status == GL_OK ? draw_rows(g) : status;
}

/* Assigns free slots to responses that resume from stored keys and values. */
static gl_status start_kept(run *g, size_t *used, size_t n_free) {
  const generate_cache *c = g->r->cache;
  gl_status status = GL_OK;
  for (; status == GL_OK && *used < n_free && g->next_job < g->plan.n_jobs; ++g->next_job) {
    const size_t i = g->plan.order[g->plan.jobs[g->next_job].first], s = g->free[(*used)++];
    status = model_cache_put(g->cache, s, c->kept + i * c->bytes, g->err);
    g->slots[s].job = g->next_job;
    if (status == GL_OK) status = start_response(g, i, g->next_job, s, s, s);
  }
  return status;
}

/* Starts the next jobs: resumes those with stored keys and values, or else prefills as many as
 * fit. */
static gl_status start_jobs(run *g, size_t *used, size_t n_free) {
  if (next_is_kept(g, g->next_job)) return start_kept(g, used, n_free);
  gl_status status = prefill_jobs(g, *used, n_free);
  if (status == GL_OK) status = draw_first(g);
  for (size_t k = 0; k < g->prefill.n_jobs && status == GL_OK; ++k) {
    size_t job = g->next_job + k, next = g->plan.jobs[job].first;
    const size_t end = next + g->plan.jobs[job].n;
    /* A job's responses get slots from its home slot on, into which it was prefilled. Free slots
     * before it, which earlier jobs did not need, stay free until the next call. */
    while (g->free[*used] != g->prefill.slot[k]) ++*used;
    status = place_responses(g, job, g->prefill.slot[k], &next, used, n_free);
    if (next == end) continue;
    g->waiting_job = job;
    g->next_waiting = next;
  }
  g->next_job += g->prefill.n_jobs;
  return status;
}

/* Fills free slots until none is free or no response is left to start. */
static gl_status fill_slots(run *g) {
  gl_status status = GL_OK;
  size_t started = 1;
  while (status == GL_OK && started) {
    size_t n_free = 0, used = 0;
    for (size_t s = 0; s < g->plan.slots; ++s)
      if (g->slots[s].response == none) g->free[n_free++] = s;
    status = place_waiting(g, &used, n_free);
    started = status == GL_OK && used < n_free && g->next_job < g->plan.n_jobs;
    if (started) status = start_jobs(g, &used, n_free);
  }
  return status;
}

static int wants_filling(const run *g) {
  if (g->waiting_job == none && g->next_job == g->plan.n_jobs) return 0;
  size_t n_free = g->plan.slots - g->n_running, enough = g->plan.slots / REFILL_PART;
  return n_free > 0 && n_free >= enough;
}

/* --- running --- */

/* Starts a step of all running responses whose last token is not being sampled already. Does
 * nothing if there are none. */
static gl_status start_step(run *g) {
  rows *w = &g->rows;
  const generate_request *q = g->q;
  flight *f = &g->flight[g->started % FLIGHTS];
  f->n = 0;
  for (size_t s = 0; s < g->plan.slots; ++s) {
    slot_state *slot = &g->slots[s];
    const size_t i = slot->response;
    if (i == none || g->r->length[i] + slot->ahead >= generate_limit(q, i)) continue;
    const size_t length = g->r->length[i] + slot->ahead, n = f->n++;
    w->token[n] =
        slot->ahead > 0 ? -1 - (int32_t)slot->row : g->r->token[i * q->max_tokens + length - 1];
    w->slot[n] = (int32_t)s;
    w->position[n] = (int32_t)(generate_prompt_length(q, i) + length - 1);
    w->index[n] = rng_token_index(q->number[i], length);
    f->slot[n] = s;
    slot->row = n;
    ++slot->ahead;
  }
  if (f->n == 0) return GL_OK;
  const model_step_rows step = {f->n, w->token, w->slot, w->position, w->index};
  ++g->started;
  return model_step(g->cache, &step, &g->draws, g->err);
}

/* Reads the samples of the oldest step in progress and frees the slots of finished responses. */
static gl_status finish_step(run *g) {
  rows *w = &g->rows;
  const flight *f = &g->flight[g->taken++ % FLIGHTS];
  const model_drawn drawn = {w->token, w->logq, w->logq_truncated, w->kept};
  gl_status status = model_step_take(g->cache, &drawn, g->err);
  for (size_t k = 0; k < f->n && status == GL_OK; ++k) {
    slot_state *slot = &g->slots[f->slot[k]];
    --slot->ahead;
    if (slot->response == none) continue; /* it ended in the step before */
    status = append_draw(g, slot->response, k);
    if (status != GL_OK || !is_over(g, slot->response)) continue;
    slot->response = none;
    --g->n_running;
  }
  return status;
}

/* --- running with leaders --- */

static int32_t last_token(const run *g, size_t s) {
  const size_t i = g->slots[s].response;
  return g->r->token[i * g->q->max_tokens + g->r->length[i] - 1];
}

/* Lists a decode of every leader, and a sample of every response from its leader's row. slots: the
 * slots of the samples, in order. *decoded: number of rows to decode. Leaders precede their
 * followers. */
static void list_step(run *g, size_t *slots, size_t *decoded) {
  rows *w = &g->rows;
  const generate_request *q = g->q;
  *decoded = 0;
  for (size_t s = 0; s < g->plan.slots; ++s) {
    slot_state *slot = &g->slots[s];
    const size_t i = slot->response;
    if (i == none) continue;
    assert(slot->leader <= s);
    slot->left = none;
    slot->row = slot->leader == s ? *decoded : g->slots[slot->leader].row;
    if (slot->leader == s) {
      w->token[*decoded] = last_token(g, s);
      w->slot[*decoded] = (int32_t)s;
      w->position[(*decoded)++] = (int32_t)(generate_prompt_length(q, i) + g->r->length[i] - 1);
    }
    slots[w->n] = s;
    add_draw(g, i, slot->row);
  }
}

/* Finds a slot for the response in slot s, which sampled another token than its leader: a slot that
 * left the same leader with the same token, or s itself. */
static gl_status fork_from_leader(run *g, size_t s) {
  slot_state *slot = &g->slots[s];
  const size_t from = slot->leader, i = slot->response;
  for (size_t t = from + 1; t < s; ++t)
    if (g->slots[t].response != none && g->slots[t].left == from &&
        last_token(g, t) == last_token(g, s)) {
      slot->leader = t;
      return GL_OK;
    }
  slot->leader = s;
  slot->left = from;
  slot->job = g->slots[from].job;
  return model_cache_copy(g->cache, from, s, generate_prompt_length(g->q, i) + g->r->length[i] - 1,
                          g->err);
}

/* Decodes every leader, samples for all, separates responses that sampled another token than their
 * leaders, and frees the slots of finished responses. */
static gl_status step_with_leaders(run *g) {
  rows *w = &g->rows;
  size_t *slots = g->flight[0].slot, decoded = 0;
  list_step(g, slots, &decoded);
  const size_t n = w->n;
  gl_status status = model_decode(g->cache, w->token, w->slot, w->position, decoded, g->err);
  if (status == GL_OK) status = draw_rows(g);
  for (size_t k = 0; k < n && status == GL_OK; ++k) {
    const slot_state *slot = &g->slots[slots[k]];
    if (slot->leader != slots[k] && !is_over(g, slot->response) &&
        last_token(g, slot->leader) != last_token(g, slots[k]))
      status = fork_from_leader(g, slots[k]);
  }
  for (size_t k = 0; k < n && status == GL_OK; ++k) {
    const slot_state *slot = &g->slots[slots[k]];
    if (!is_over(g, slot->response)) continue;
    status = save_cache(g, slot->response, slot->leader);
    g->slots[slots[k]].response = none;
    --g->n_running;
  }
  return status;
}

/* --- all steps --- */

/* Starts a step. Reads the oldest one if none was started or more are in progress than the device
 * runs ahead. If enough slots are free, reads all steps and fills the slots. */
static gl_status step_beside(run *g) {
  const size_t before = g->started;
  gl_status status = start_step(g);
  if (status == GL_OK &&
      (g->started == before || g->started - g->taken > model_steps_ahead(g->cache)))
    status = finish_step(g);
  if (status != GL_OK || !wants_filling(g)) return status;
  while (status == GL_OK && g->taken < g->started) status = finish_step(g);
  return status == GL_OK ? fill_slots(g) : status;
}

static gl_status step(run *g) {
  if (!g->shares) return step_beside(g);
  const gl_status status = step_with_leaders(g);
  return status == GL_OK && wants_filling(g) ? fill_slots(g) : status;
}

static gl_status generation_allocate(run *g, model *m) {
  arena *a = &g->memory;
  const sampling_behaviour *by = &g->draws.sampling.behaviour;
  const size_t n = g->plan.slots;
  const int distorts = !g->q->greedy && (by->noise > 0 || by->rounds_to_bfloat16);
  const int keeps = !g->q->greedy && g->r->kept != NULL;
  g->slots = ARENA_ARRAY(a, slot_state, n);
  g->free = ARENA_ARRAY(a, size_t, n);
  g->prefill = (prefill){.start = ARENA_ARRAY(a, size_t, n + 1),
                         .slot = ARENA_ARRAY(a, size_t, n + 1),
                         .token = ARENA_ARRAY(a, int32_t, g->plan.prefill_tokens)};
  g->rows = (rows){.response = ARENA_ARRAY(a, size_t, n),
                   .row_of = ARENA_ARRAY(a, size_t, n),
                   .index = ARENA_ARRAY(a, uint64_t, n),
                   .token = ARENA_ARRAY(a, int32_t, n),
                   .slot = ARENA_ARRAY(a, int32_t, n),
                   .position = ARENA_ARRAY(a, int32_t, n),
                   .logq = ARENA_ARRAY(a, double, n),
                   .logq_truncated = ARENA_ARRAY(a, double, n)};
  if (distorts) g->rows.context = ARENA_ARRAY(a, uint64_t, n);
  if (keeps) g->draws.kept = g->r->shape;
  if (keeps) g->rows.kept = ARENA_GRID(a, uint32_t, n, g->r->shape.words);
  for (size_t i = 0; i < FLIGHTS; ++i) g->flight[i].slot = ARENA_ARRAY(a, size_t, n);
  gl_status status = arena_check(a, "generation", g->err);
  if (status != GL_OK) return status;
  for (size_t s = 0; s < n; ++s) g->slots[s] = (slot_state){.response = none, .job = none};
  status = model_cache_new(&g->cache, m, n, g->plan.capacity, g->err);
  g->shares = status == GL_OK && (model_steps_ahead(g->cache) == 0 || distorts);
  return status;
}

size_t generate_cache_bytes(const model *m, size_t capacity) {
  return model_cache_slot_bytes(m, capacity);
}

gl_status generate(model *m, const generate_request *request, generate_result *result,
                   gl_error *err) {
  assert(m != NULL && request != NULL && result != NULL);
  run g = {.q = request,
           .r = result,
           .draws = {.sampling = request->sampling,
                     .stream = request->stream,
                     .greedy = request->greedy},
           .waiting_job = none,
           .err = err};
  g.draws.sampling.temperature *= 1 + request->sampling.behaviour.temperature_error;
  gl_status status = make_plan(&g.plan, &g.memory, m, request, result, err);
  if (status == GL_OK && g.plan.n > 0) {
    status = generation_allocate(&g, m);
    if (status == GL_OK && result->cache != NULL && !g.shares)
      status = gl_fail(err, GL_EINTERNAL, "keys and values are kept on a CPU only");
    if (status == GL_OK) status = fill_slots(&g);
    while (status == GL_OK && g.n_running > 0) status = step(&g);
  }
  model_cache_free(g.cache);
  arena_fini(&g.memory);
  return status;
}
