/* Lengths of responses, and the time that a sampler takes to decode them. */
#include "sim/response.h"

#include "core/config/fields.h"

#include <math.h>

void response_parse(response_spec *out, cfg_reader *r, const response_spec *outer,
                    const cfg_node *outer_lengths, size_t responses) {
  if (outer != NULL) *out = *outer;
  out->lengths = NULL;
  out->max_tokens = outer != NULL ? field_real_or(r, "max_tokens", outer->max_tokens)
                                  : field_real(r, "max_tokens");
  out->tokens_per_s = outer != NULL ? field_real_or(r, "tokens_per_s", outer->tokens_per_s)
                                    : field_real(r, "tokens_per_s");
  out->prompt_tokens = outer != NULL ? field_real_or(r, "prompt_tokens", outer->prompt_tokens)
                                     : field_real(r, "prompt_tokens");
  out->prefill_tokens_per_s =
      outer != NULL ? field_real_or(r, "prefill_tokens_per_s", outer->prefill_tokens_per_s)
                    : field_real(r, "prefill_tokens_per_s");
  out->concurrency =
      field_count_or(r, "concurrency", outer != NULL ? outer->concurrency : responses);
  out->batching =
      (response_batching)(outer != NULL ? field_choice_or(r, "batching", (int)outer->batching)
                                        : field_choice(r, "batching"));
  const cfg_node *node = cfg_child(r, "lengths");
  if (node == NULL) node = outer_lengths;
  if (r->status == GL_OK && node != NULL && !cfg_is_null(node))
    r->status = delay_parse(&out->lengths, node, "lengths", NAN, r->err);
}

void response_fini(response_spec *spec) {
  delay_free(spec->lengths);
  spec->lengths = NULL;
}

static double draw_length(const response_spec *spec, delay_source *source, double factor) {
  return fmin(fmax(round(factor * delay_draw(spec->lengths, source)), 1), floor(spec->max_tokens));
}

static delay_source prompts_of(uint64_t seed, uint64_t group) {
  return (delay_source){rng_stream_at(seed, RNG_LENGTH, group + RESPONSE_PROMPTS), 0, 0};
}

/* Continuous batching: gives the next response to the slot that is free first. */
static int take_slot(const response_spec *spec, event_queue *slots, double length, double *end) {
  double begin = 0;
  if (slots->size == spec->concurrency) {
    begin = eq_top(slots)->time;
    eq_replace(slots, begin + length, 0, 0, 0, 0);
  } else if (!eq_push(slots, length, 0, 0, 0, 0)) {
    return 0;
  }
  *end = fmax(*end, begin + length);
  return 1;
}

/* A sampler at work on a batch. */
typedef struct decoder {
  const response_spec *spec;
  event_queue *slots;
  size_t begun, responses;
  double tokens;
  double decoded; /* tokens of the slot that works longest; padded: of all waves before */
  double wave;    /* of this wave, its longest */
  double longest; /* of all */
} decoder;

static int decode(decoder *d, double length) {
  d->tokens += length;
  d->longest = fmax(d->longest, length);
  ++d->begun;
  if (d->spec->batching == BATCHING_CONTINUOUS)
    return take_slot(d->spec, d->slots, length, &d->decoded);
  d->wave = fmax(d->wave, length);
  if (d->begun % d->spec->concurrency == 0 || d->begun == d->responses) {
    d->decoded += d->wave;
    d->wave = 0;
  }
  return 1;
}

static decoder begin(const response_spec *spec, event_queue *slots, size_t responses) {
  slots->size = 0;
  return (decoder){.spec = spec, .slots = slots, .responses = responses};
}

static response_cost cost_of(const decoder *d) {
  return (response_cost){
      .seconds = d->decoded / d->spec->tokens_per_s, .tokens = d->tokens, .longest = d->longest};
}

int response_draw(response_cost *out, const response_spec *spec, event_queue *slots, uint64_t seed,
                  uint64_t batch, size_t responses) {
  delay_source source = {rng_stream_at(seed, RNG_LENGTH, batch), 0, 0};
  delay_source prompts = prompts_of(seed, batch);
  decoder d = begin(spec, slots, responses);
  double factor = 1;
  for (size_t k = 0; k < responses; ++k) {
    if (spec->prompts != NULL && k % spec->group_size == 0)
      factor = delay_draw(spec->prompts, &prompts);
    if (!decode(&d, draw_length(spec, &source, factor))) return 0;
  }
  *out = cost_of(&d);
  return 1;
}

int response_known(response_cost *out, const response_spec *spec, event_queue *slots,
                   const double *lengths, size_t responses) {
  decoder d = begin(spec, slots, responses);
  for (size_t k = 0; k < responses; ++k)
    if (!decode(&d, lengths[k])) return 0;
  *out = cost_of(&d);
  return 1;
}

double response_draw_lengths(double *lengths, const response_spec *spec, uint64_t seed, uint64_t id,
                             uint64_t prompt, size_t n) {
  delay_source source = {rng_stream_at(seed, RNG_LENGTH, id), 0, 0};
  delay_source prompts = prompts_of(seed, prompt);
  const double factor = spec->prompts != NULL ? delay_draw(spec->prompts, &prompts) : 1;
  for (size_t k = 0; k < n; ++k) lengths[k] = draw_length(spec, &source, factor);
  return factor;
}
