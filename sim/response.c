#include "sim/response.h"

#include <math.h>

const char *const response_batching_names[2] = {"continuous", "padded"};

void response_parse(response_spec *out, cfg_reader *r, const response_spec *outer,
                    const cfg_node *outer_lengths, size_t responses) {
  const response_spec defaults = {
      .max_tokens = 32768, .tokens_per_s = 50, .concurrency = responses};
  if (outer == NULL) outer = &defaults;
  *out = *outer;
  out->lengths = NULL;
  out->max_tokens = cfg_double(r, "max_tokens", outer->max_tokens, 1, 1e9);
  out->tokens_per_s = cfg_positive(r, "tokens_per_s", outer->tokens_per_s);
  out->concurrency = cfg_count(r, "concurrency", outer->concurrency, 1, 1000000000);
  out->batching = (response_batching)cfg_choice(r, "batching", (int)outer->batching,
                                                response_batching_names, 2);
  const cfg_node *node = cfg_child(r, "lengths");
  if (node == NULL) node = outer_lengths;
  if (r->status == GL_OK && node != NULL && !cfg_is_null(node))
    r->status = delay_parse(&out->lengths, node, "lengths", NAN, r->err);
}

void response_fini(response_spec *spec) {
  delay_free(spec->lengths);
  spec->lengths = NULL;
}

static double draw_length(const response_spec *spec, delay_source *source) {
  return fmin(fmax(round(delay_draw(spec->lengths, source)), 1), floor(spec->max_tokens));
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

int response_draw(response_cost *out, const response_spec *spec, event_queue *slots, uint64_t seed,
                  uint64_t batch, size_t responses) {
  delay_source source = {rng_stream_at(seed, RNG_LENGTH, batch), 0, 0};
  double decoded = 0, longest = 0; /* tokens of the slot that works longest; of this wave */
  slots->size = 0;
  out->tokens = 0;
  for (size_t k = 0; k < responses; ++k) {
    double length = draw_length(spec, &source);
    out->tokens += length;
    if (spec->batching == BATCHING_CONTINUOUS) {
      if (!take_slot(spec, slots, length, &decoded)) return 0;
      continue;
    }
    longest = fmax(longest, length);
    if ((k + 1) % spec->concurrency == 0 || k + 1 == responses) {
      decoded += longest;
      longest = 0;
    }
  }
  out->seconds = decoded / spec->tokens_per_s;
  return 1;
}
