/* What memory a world of kind llm needs, before any of it is taken, on each of its devices. Bytes
 * of the backend's memory: the device's, or on the CPU this machine's, of which each of several
 * replicas has a part. Prefix: memory_need_. */
#ifndef GEPOLAB_LLM_LEARNER_MEMORY_NEED_H
#define GEPOLAB_LLM_LEARNER_MEMORY_NEED_H

#include "llm/learner/run_spec.h"

typedef struct memory_need {
  size_t parameters, gradients, moments, reference;
  size_t activations; /* of a micro-batch, or of prompts where that is more */
  size_t generation;  /* keys, values and logits, while responses are drawn */
  size_t scratch;     /* the backend's own, for both */
  size_t total;
  /* What must be left free for steps beside all that stays allocated: activations, scratch and room
   * in which as many sequences are decoded side by side as planned, which is twice what they take
   * where memory decides (llm/model/generate_plan.c). */
  size_t step;
  /* Versions held for a coupled clock are no part of the total: what each adds, and how many find
   * room beside a step. Where the backend is a device, later ones go into the host's memory. */
  size_t one_version, versions;
  /* how it comes about */
  size_t micro_batch;     /* tokens: the recipe's, or the longest sequence where that is more */
  size_t slots, capacity; /* sequences side by side, positions of one */
  size_t devices;         /* that need this each */
  size_t device_total, device_free;
} memory_need;

/* responses: of a batch; trains: RL or warm-up, else the model only answers; compares: updates need
 * a reference policy. */
gl_status memory_need_of(memory_need *out, const run_spec *spec, backend *b, size_t responses,
                         int trains, int compares, gl_error *err);
/* Of the total, what comes and goes with steps: parameters, gradients, moments and reference stay.
 */
size_t memory_need_of_step(const memory_need *n);
/* GL_ENOMEM naming what is needed, what is there and what to lower, if it does not fit. */
gl_status memory_need_check(const memory_need *n, const run_spec *spec, const backend *b,
                            gl_error *err);

#endif
