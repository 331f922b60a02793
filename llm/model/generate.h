/* What generation is asked for and what it gives: prompts, addresses of tokens, responses.
 * Responses are decoded side by side in slots with a cache of keys and values; slots are refilled
 * as responses end. A response depends on the parameters, its prompt and its address alone: not on
 * the other responses, their order or the number of slots. Prefix: generate_. */
#ifndef GEPOLAB_LLM_MODEL_GENERATE_H
#define GEPOLAB_LLM_MODEL_GENERATE_H

#include "core/base/arena.h"
#include "core/random/rng.h"
#include "core/rl/sampling.h"
#include "llm/model/model.h"

/* --- requests and results --- */

typedef struct generate_request {
  size_t n_prompts;
  const size_t *prompt_start; /* [n_prompts + 1] */
  const int32_t *prompt;      /* tokens */
  size_t n_responses;
  const size_t *prompt_of; /* [n_responses]; responses to one prompt share its prefill */
  /* Response i's token at position t is drawn at block rng_token_index(number[i], t) of stream. */
  const size_t *number; /* [n_responses] */
  rng_stream stream;
  /* Its behaviour distorts what tokens are drawn from (paper/methods.md §1.3); noise has an address
   * of its own for each prompt and beginning of a response, among those of stream's seed and
   * entity. Mixtures and `weights` mean nothing here, and a greedy request has no behaviour. */
  sampling_spec sampling;
  int greedy;
  size_t max_tokens;   /* most tokens of a response, its stop token included */
  size_t up_to;        /* draw until each response has so many (<= max_tokens) */
  const size_t *limit; /* [n_responses] the same for each by itself (<= up_to); NULL: up_to */
  const int32_t *stop; /* [n_stop] tokens that end a response; drawn and kept as its last */
  size_t n_stop;
  size_t slots; /* sequences decoded side by side; 0: all, as memory allows */
  /* 1: a log-probability that is not finite is GL_ENUMERIC, naming prompt (its place here plus
   * first_prompt), response and token. Training asks for 0: there it is a divergence, which is
   * reported by the update. */
  int must_be_finite;
  size_t first_prompt;
  size_t sharing; /* requests that run at the same time in the same memory (devices on one CPU), of
                     which this one may use its part; 0 or 1: it is alone */
} generate_request;

/* Keys and values that stay between draws of responses: those of every response's prompt and
 * tokens, as far as they have been computed, by whatever parameters were in use then. */
typedef struct generate_cache {
  size_t capacity;     /* positions of a response: those of the longest prompt and max_tokens */
  size_t bytes;        /* of a response (generate_cache_bytes) */
  unsigned char *kept; /* [n_responses * bytes] */
} generate_cache;

/* The responses, filled in place: matrices [n_responses, max_tokens], of whose row i the first
 * length[i] tokens count. A response that has tokens already (drawn under older parameters) is
 * continued: the caller gives length[i] and those tokens, and their keys and values are computed
 * again under the parameters of now, or, where the result has a cache, are those of before. */
typedef struct generate_result {
  size_t *length;                /* [n_responses] in and out */
  int *finished;                 /* [n_responses] in and out: ended by a stop token */
  int32_t *token;                /* [n_responses * max_tokens] */
  double *logq, *logq_truncated; /* same shape */
  /* The tokens that each draw's distribution kept, [n_responses * max_tokens] sets of the shape;
   * NULL: they are not wanted. */
  kept_shape shape;
  uint32_t *kept;
  /* In and out: keys and values are kept, and go on from here. NULL: they are not. On a CPU only.
   */
  const generate_cache *cache;
  arena memory; /* of the arrays, where generate_result_init() made them */
} generate_result;

/* Allocates a result's arrays, zeroed. */
gl_status generate_result_init(generate_result *r, size_t n_responses, size_t max_tokens,
                               gl_error *err);
/* Adds room for the sets of that shape; nothing where it has no words. */
gl_status generate_result_keep(generate_result *r, size_t n_responses, size_t max_tokens,
                               const kept_shape *shape, gl_error *err);
void generate_result_fini(generate_result *r);

/* Draws what the request asks for into result, whose arrays generate_result_init() made. GL_EINPUT
 * for tokens outside the vocabulary, prompts that do not fit into the model's positions or settings
 * of sampling that are none; GL_EINTERNAL where request and result contradict each other; what the
 * backend fails with. After a failure the result holds some of the tokens. */
gl_status generate(model *m, const generate_request *request, generate_result *result,
                   gl_error *err);

/* Bytes of the keys and values of `capacity` positions of one response; SIZE_MAX where they
 * overflow.
 */
size_t generate_cache_bytes(const model *m, size_t capacity);

/* Slots that generate() would use for n_responses sequences of up to `capacity` positions. *slots:
 * in, how many are asked for, or 0 for as many as fit into half of `bytes` of backend memory; out,
 * that number, never more than n_responses, and 0 if not even one fits. */
gl_status generate_slots(size_t *slots, const model_config *c, const backend *b, size_t n_responses,
                         size_t capacity, size_t bytes, gl_error *err);

/* Tokens of response i's prompt. */
static inline size_t generate_prompt_length(const generate_request *q, size_t i) {
  size_t p = q->prompt_of[i];
  return q->prompt_start[p + 1] - q->prompt_start[p];
}

#endif
