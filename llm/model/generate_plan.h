/* What a call of generate() has to do, before any token is drawn: which responses still draw, which
 * of them share a prefill, how many positions a slot needs and how many slots there are. Prefix:
 * generate_plan_. */
#ifndef GEPOLAB_LLM_MODEL_GENERATE_PLAN_H
#define GEPOLAB_LLM_MODEL_GENERATE_PLAN_H

#include "llm/model/generate_request.h"
#include "llm/model/model.h"

/* One sequence to run through the model: a prompt for all its responses that have no token yet, or
 * a prompt and the tokens so far of one response that goes on. */
typedef struct generate_job {
  size_t first, n; /* its responses: order[first .. first + n) */
  size_t tokens;   /* length of the sequence */
} generate_job;

typedef struct generate_plan {
  size_t *order; /* [n] responses that draw, those of a job side by side */
  size_t n;
  generate_job *jobs;
  size_t n_jobs;
  size_t capacity;       /* positions of a slot */
  size_t slots;          /* sequences side by side, at most n */
  size_t prefill_tokens; /* most tokens of one prefill */
} generate_plan;

/* Checks the request and result against the model and each other (GL_EINPUT, GL_EINTERNAL) and
 * plans. A plan of n = 0 has nothing to do. Release with generate_plan_fini() in any case. */
gl_status generate_plan_init(generate_plan *p, const model *m, const generate_request *q,
                             const generate_result *r, gl_error *err);
void generate_plan_fini(generate_plan *p);

/* Slots that generate() would use for n_responses sequences of up to `capacity` positions: `asked`,
 * or where that is 0 as many as fit into half of `bytes` of backend memory; never more than
 * n_responses, and 0 if not even one fits. */
gl_status generate_slots(size_t *slots, const model_config *c, const backend *b, size_t asked,
                         size_t n_responses, size_t capacity, size_t bytes, gl_error *err);

/* How many tokens response i is drawn to. */
static inline size_t generate_limit(const generate_request *q, size_t i) {
  return q->limit != NULL ? q->limit[i] : q->up_to;
}

/* Tokens of response i's prompt. */
static inline size_t generate_prompt_length(const generate_request *q, size_t i) {
  size_t p = q->prompt_of[i];
  return q->prompt_start[p + 1] - q->prompt_start[p];
}

#endif
