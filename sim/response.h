/* Response lengths and what they cost: the seconds a batch takes to generate and its bytes, where
 * these follow from lengths drawn from a distribution (measured lengths: an empirical one), or from
 * those of real responses (cluster.coupled).
 *
 * A sampler decodes up to `concurrency` responses side by side, each at `tokens_per_s`:
 *
 *   continuous  a slot takes the next response as soon as its own has ended (continuous batching
 *               of vLLM and SGLang), in the order of the responses
 *   padded      the next `concurrency` responses begin when the longest of the ones before has
 * ended
 *
 * Batching more responses does not slow one down in this model; a sampler that slows is one with
 * fewer tokens_per_s. Lengths are rounded to whole tokens in 1..max_tokens. Response k of a batch
 * is draw k of the stream (RNG_LENGTH, batch id), so a batch's lengths depend on nothing else.
 *
 * Prompts may differ in how long their responses are: a factor for each group of a batch, draw g of
 * the stream (RNG_LENGTH, batch id + RESPONSE_PROMPTS), multiplies the lengths of its responses
 * before they are rounded. Prefix: response_. */
#ifndef GEPOLAB_SIM_RESPONSE_H
#define GEPOLAB_SIM_RESPONSE_H

#include "core/config/config.h"
#include "sim/delay.h"
#include "sim/event_queue.h"

#define RESPONSE_PROMPTS ((uint64_t)1 << 63)

typedef enum response_batching { BATCHING_CONTINUOUS, BATCHING_PADDED } response_batching;

typedef struct response_spec {
  delay_dist *lengths; /* tokens; owned; NULL: costs do not follow lengths */
  double max_tokens, tokens_per_s;
  double prompt_tokens;        /* of every prompt */
  double prefill_tokens_per_s; /* at which caches are computed again; 0: it takes no time */
  size_t concurrency;
  response_batching batching;
  const delay_dist
      *prompts;      /* factor on the lengths of all responses of a group; borrowed; NULL: 1 */
  size_t group_size; /* of it; has no part where prompts is NULL */
} response_spec;

typedef struct response_cost {
  double seconds; /* on a sampler of speed 1 */
  double tokens;  /* of all responses */
  double longest; /* tokens of the longest */
} response_cost;

/* Reads lengths, max_tokens, tokens_per_s, prompt_tokens, prefill_tokens_per_s, concurrency
 * (default: all responses of a batch at once) and batching of the section r reads; what it does not
 * give falls back on `outer` (NULL: defaults), whose distribution is read again from outer_lengths.
 * Errors stay in the reader. */
void response_parse(response_spec *out, cfg_reader *r, const response_spec *outer,
                    const cfg_node *outer_lengths, size_t responses);
void response_fini(response_spec *spec);
/* The cost of a batch of `responses` whose lengths are drawn. slots is a queue the caller owns and
 * may use again; its contents are lost. 0 if memory is short. */
int response_draw(response_cost *out, const response_spec *spec, event_queue *slots, uint64_t seed,
                  uint64_t batch, size_t responses);
/* The same for lengths[responses] that are known, in tokens; the distribution and max_tokens have
 * no part in it. */
int response_known(response_cost *out, const response_spec *spec, event_queue *slots,
                   const double *lengths, size_t responses);
/* The lengths of n responses to one prompt: draws 0..n-1 of the unit `id`, with the factor of the
 * prompt, draw 0 of the group `prompt`, which is returned. */
double response_draw_lengths(double *lengths, const response_spec *spec, uint64_t seed, uint64_t id,
                             uint64_t prompt, size_t n);

#endif
