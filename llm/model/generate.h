/* Generation: samples responses to prompts. Responses are decoded side by side in slots with a
 * cache of keys and values; slots are refilled as responses end. A response depends only on the
 * parameters, its prompt and its random-stream address. It does not depend on the other responses,
 * their order or the number of slots. Prefix: generate_. */
#ifndef GEPOLAB_LLM_MODEL_GENERATE_H
#define GEPOLAB_LLM_MODEL_GENERATE_H

#include "core/base/arena.h"
#include "core/random/rng.h"
#include "core/rl/sampling_distribution.h"
#include "llm/model/model.h"

/* --- requests and results --- */

typedef struct generate_request {
  size_t n_prompts;
  const size_t *prompt_start; /* [n_prompts + 1] first token of each prompt */
  const int32_t *prompt;      /* tokens of all prompts */
  size_t n_responses;
  const size_t *prompt_of; /* [n_responses]; responses to one prompt share its prefill */
  /* Response i's token at position t is sampled with block rng_token_index(number[i], t) of stream.
   */
  const size_t *number; /* [n_responses] */
  rng_stream stream;
  /* sampling.behaviour distorts the distribution (paper/methods.md §1.3). Noise has its own address
   * for each prompt and prefix of a response, under the stream's seed and entity. Mixtures and
   * `weights` are ignored here. A greedy request must have no behaviour. */
  sampling_spec sampling;
  int greedy;
  size_t max_tokens;   /* maximum length of a response, including its stop token */
  size_t up_to;        /* sample until each response has this many tokens (<= max_tokens) */
  const size_t *limit; /* [n_responses] limit per response (<= up_to); NULL: up_to for all */
  const int32_t *stop; /* [n_stop] tokens that end a response; a response includes its stop token */
  size_t n_stop;
  size_t slots; /* sequences decoded side by side; 0: all, if memory allows */
  /* 1: a log-probability that is not finite is GL_ENUMERIC; the message names the prompt (its index
   * here plus first_prompt), the response and the token. Training uses 0: the update reports the
   * divergence. */
  int must_be_finite;
  size_t first_prompt;
  size_t sharing; /* number of requests that run at the same time in the same memory (devices on one
                     CPU); this one may use 1 / sharing of it. 0 or 1: no other request */
} generate_request;

/* Keys and values that are kept between calls: those of every response's prompt and tokens so far,
 * computed under the parameters in use at the time. */
typedef struct generate_cache {
  size_t capacity;     /* positions of a response: the longest prompt plus max_tokens */
  size_t bytes;        /* size of one response's part (generate_cache_bytes) */
  unsigned char *kept; /* [n_responses * bytes] keys and values of each response */
} generate_cache;

/* The responses, filled in place: matrices [n_responses, max_tokens]. Of row i the first length[i]
 * tokens are valid. A response that has tokens already (sampled under older parameters) is resumed:
 * the caller sets length[i] and those tokens. Their keys and values are recomputed under the
 * present parameters, or taken from the cache if the result has one. */
typedef struct generate_result {
  size_t *length;                /* [n_responses] in and out: number of tokens */
  int *finished;                 /* [n_responses] in and out: 1 if ended by a stop token */
  int32_t *token;                /* [n_responses * max_tokens] sampled tokens */
  double *logq, *logq_truncated; /* same shape: log-probability of each token */
  /* The sets of tokens that each sampling distribution kept, [n_responses * max_tokens] sets of
   * this shape; NULL: not recorded. */
  kept_shape shape;
  uint32_t *kept;
  /* In and out: stored keys and values, from which responses resume. NULL: none are stored. CPU
   * only. */
  const generate_cache *cache;
  arena memory; /* owns the arrays, if generate_result_init() made them */
} generate_result;

/* Allocates a result's arrays, zeroed. */
gl_status generate_result_init(generate_result *r, size_t n_responses, size_t max_tokens,
                               gl_error *err);
void generate_result_fini(generate_result *r);

/* Samples the requested responses into result, whose arrays generate_result_init() made. Errors:
 * GL_EINPUT (tokens outside the vocabulary, prompts longer than the model's context, invalid
 * sampling settings), GL_EINTERNAL (request and result do not match), the backend's errors. After
 * an error the result holds some of the tokens. */
gl_status generate(model *m, const generate_request *request, generate_result *result,
                   gl_error *err);

/* Size in bytes of the keys and values of `capacity` positions of one response; SIZE_MAX on
 * overflow. */
size_t generate_cache_bytes(const model *m, size_t capacity);

/* Computes how many slots generate() would use for n_responses sequences of up to `capacity`
 * positions. *slots on entry: the number wanted, or 0 for as many as fit into `bytes` of backend
 * memory, of which 1 / GENERATE_MARGIN stays free. On return: that number, at most n_responses; 0
 * if not even one fits. */
enum { GENERATE_MARGIN = 8 };
gl_status generate_slots(size_t *slots, const model_config *c, const backend *b, size_t n_responses,
                         size_t capacity, size_t bytes, gl_error *err);

/* Number of tokens of response i's prompt. */
static inline size_t generate_prompt_length(const generate_request *q, size_t i) {
  size_t p = q->prompt_of[i];
  return q->prompt_start[p + 1] - q->prompt_start[p];
}

#endif
