/* Computes the memory that a run needs on each device. If it is too much, the message names the
 * field to lower. */
#include "llm/learner/run_spec.h"

#include "llm/model/generate.h"

#include <string.h>

static size_t larger_size(size_t a, size_t b) {
  return a > b ? a : b;
}

/* The maximum number of n items that one of `devices` devices gets. */
static size_t part_of_device(size_t n, size_t devices) {
  return (n + devices - 1) / devices;
}

/* The longest prompt in tokens; if the task has no limit, a prompt may fill the context. A template
 * is counted as one token per character, an upper bound. */
static size_t longest_prompt(const run_spec *s) {
  size_t most = s->model.max_positions - s->max_tokens, prompt = task_max_prompt(s->task);
  if (prompt == 0) return most;
  prompt += strlen(s->before) + strlen(s->after) + (s->begin >= 0);
  return prompt < most ? prompt : most;
}

/* The maximum length of a sequence: a prompt and its longest response, in training or in an
 * evaluation set. */
static size_t longest_sequence(const run_spec *s) {
  size_t most = longest_prompt(s) + s->max_tokens;
  for (size_t i = 0; i < s->sets.n; ++i) {
    const run_spec set = run_spec_of_set(s, i);
    most = larger_size(most, longest_prompt(&set) + set.max_tokens);
  }
  return most;
}

/* The maximum number of responses sampled side by side. */
static size_t most_responses(const run_spec *s, size_t batch) {
  size_t most = larger_size(batch, s->eval.prompts);
  for (size_t i = 0; i < s->sets.n; ++i) most = larger_size(most, s->set[i].eval.prompts);
  return most;
}

/* The number of sequences decoded side by side in the memory that the rest leaves. At least one, so
 * that a need that does not fit is reported. */
static gl_status need_slots(memory_need *n, const run_spec *s, const backend *b, size_t responses,
                            const memory_plan *rest, gl_error *err) {
  const size_t left = n->device_free > rest->total ? n->device_free - rest->total : 0;
  n->slots = s->slots;
  gl_status status = generate_slots(&n->slots, &s->model, b,
                                    part_of_device(most_responses(s, responses), s->devices),
                                    n->capacity, left, err);
  n->slots = larger_size(n->slots, 1);
  return status;
}

gl_status memory_need_of(memory_need *out, const run_spec *s, backend *b, size_t responses,
                         int trains, int compares, gl_error *err) {
  memory_plan alone, copied, rest, all;
  size_t sets; /* bytes of the sets of kept tokens of a micro-batch's targets */
  const model_config *c = &s->model;
  *out = (memory_need){.capacity = longest_sequence(s)};
  out->micro_batch = larger_size(s->micro_batch, out->capacity);
  b->ops->memory(b, &out->device_total, &out->device_free);
  out->devices = s->devices;
  if (b->kind == BACKEND_CPU) { /* its replicas share one memory */
    out->device_total /= s->devices;
    out->device_free /= s->devices;
  }
  const size_t tokens = trains ? out->micro_batch : 0;
  const size_t mixes = trains && s->sampling.behaviour.with == OTHER_INITIAL;
  const size_t copies = (compares ? 1 : 0) + mixes;
  memory_use use = {0};
  gl_status status = model_memory(&alone, c, b, &use, err);
  use.value_copies = 1;
  if (status == GL_OK) status = model_memory(&copied, c, b, &use, err);
  use = (memory_use){.recompute = s->recompute,
                     .training_tokens = tokens,
                     .training_targets = tokens,
                     .value_copies = copies};
  if (status == GL_OK) status = model_memory(&rest, c, b, &use, err);
  if (status == GL_OK) status = need_slots(out, s, b, responses, &rest, err);
  use.slots = out->slots;
  use.capacity = out->capacity;
  if (status == GL_OK) status = model_memory(&all, c, b, &use, err);
  if (status != GL_OK) return status;
  out->parameters = alone.parameters + alone.packed;
  out->one_version = copied.parameters - alone.parameters;
  out->reference = all.parameters - alone.parameters;
  out->gradients = all.gradients;
  out->moments = all.moments;
  /* words per token: the sets that split distributions into two parts, each with its target's
   * index; and, unless they serve metrics only, those of renormalised distributions */
  const size_t words = s->kept.words, all_words = s->kept_for_metrics ? words + 1 : 2 * words + 1;
  if (__builtin_mul_overflow(tokens, (words > 0 ? all_words : 0) * sizeof(uint32_t), &sets))
    return gl_fail(err, GL_ENOMEM, "sets of kept tokens that fit no memory; lower micro_batch");
  out->activations = all.activations + sets;
  out->generation = all.cache + all.logits;
  out->scratch = all.scratch;
  out->total = all.total + sets;
  const size_t room = s->slots == 0 ? 2 * out->generation : out->generation;
  const size_t stays = out->total - out->activations - out->generation - out->scratch;
  out->step = out->activations + room + out->scratch;
  if (out->device_free > stays + out->step)
    out->versions = (out->device_free - stays - out->step) / out->one_version;
  return GL_OK;
}

/* The advice for the message: what to change in the recipe. */
static const char *remedy(const memory_need *n, const run_spec *s) {
  const size_t stays = n->parameters + n->gradients + n->moments + n->reference;
  if (stays >= larger_size(n->activations, n->generation)) return "take a smaller model";
  if (n->activations < n->generation)
    return s->slots > 0 ? "lower world.slots or world.max_tokens, or take a smaller model"
                        : "lower world.max_tokens, or take a smaller model";
  return s->recompute
             ? "lower world.micro_batch or world.max_tokens, or take a smaller model"
             : "lower world.micro_batch, set world.recompute: true, or take a smaller model";
}

gl_status memory_need_check(const memory_need *n, const run_spec *s, const backend *b,
                            gl_error *err) {
  const double mib = 0x1p20;
  if (n->total <= n->device_free) return GL_OK;
  return gl_fail(err, GL_ENOMEM,
                 "the model needs %.1f MiB and %s has %.1f of its %.1f MiB free: %.1f for "
                 "parameters, gradients, moments and reference, %.1f for activations, %.1f for "
                 "keys, values and logits, %.1f for the backend itself; %s",
                 (double)n->total / mib, b->device, (double)n->device_free / mib,
                 (double)n->device_total / mib,
                 (double)(n->parameters + n->gradients + n->moments + n->reference) / mib,
                 (double)n->activations / mib, (double)n->generation / mib,
                 (double)n->scratch / mib, remedy(n, s));
}
