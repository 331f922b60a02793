/* How much memory a world of kind llm needs on each of its devices, computed before any of it is
 * taken. All sizes are bytes: of the device's memory, or with the CPU backend of this machine's, of
 * which each of several replicas may use its part. Prefix: memory_need_. */
#ifndef GEPOLAB_LLM_LEARNER_MEMORY_NEED_H
#define GEPOLAB_LLM_LEARNER_MEMORY_NEED_H

#include "llm/learner/run_spec.h"

typedef struct memory_need {
  size_t parameters, gradients, moments, reference;
  size_t activations; /* of a micro-batch, or of prompts where that is more */
  size_t generation;  /* keys, values and logits, while responses are drawn */
  size_t scratch;     /* the backend's own, for both */
  size_t total;
  /* What must stay free for a step beside all that stays allocated: activations, scratch memory and
   * the cache of the planned number of sequences, doubled where that number is chosen by the memory
   * that is free, as generation then takes half of it (llm/model/generate_plan.c). */
  size_t step;
  /* Versions held for a coupled clock are not in the total: bytes of each, and how many fit beside
   * a step. Where the backend is a device, further ones go into the host's memory. */
  size_t one_version, versions;
  /* what it was computed from */
  size_t micro_batch;     /* tokens: the recipe's, or the longest sequence where that is more */
  size_t slots, capacity; /* sequences side by side, positions of one */
  size_t devices;         /* that need this each */
  size_t device_total, device_free;
} memory_need;

/* responses: of a batch. trains: 1 for RL or warm-up, 0 where the model only generates. compares: 1
 * where updates need a reference policy. */
gl_status memory_need_of(memory_need *out, const run_spec *spec, backend *b, size_t responses,
                         int trains, int compares, gl_error *err);
/* The part of the total that is allocated for a step; parameters, gradients, moments and reference
 * stay allocated. */
size_t memory_need_of_step(const memory_need *n);
/* GL_ENOMEM naming what is needed, what is there and what to lower, if it does not fit. */
gl_status memory_need_check(const memory_need *n, const run_spec *spec, const backend *b,
                            gl_error *err);

#endif
