/* A model measured on the held-out problems of its task. Prefix: llm_eval_. */
#ifndef GEPOLAB_EXPERIMENTS_LLM_EVAL_H
#define GEPOLAB_EXPERIMENTS_LLM_EVAL_H

#include "core/base/progress.h"
#include "llm/learner/run_spec.h"

typedef struct llm_eval {
  size_t problems, samples; /* samples 1 where greedy */
  size_t *correct;          /* [problems] responses of reward 1 */
  double reward;            /* mean over responses */
  double tokens, cut_off;   /* tokens of a response, share that met the length limit: means */
} llm_eval;

/* Responses to the first spec->eval.prompts held-out problems: the greedy one of each (samples 0),
 * or that many drawn ones. Every response has its own address in the random streams of `seed`
 * and of `set` (which evaluation set it is, from 0), so that the first ones are the same however
 * many are drawn. bar (may be NULL) counts problems from
 * *done on; a Ctrl-C between two parts of the work is GL_EINTERRUPTED. Release with llm_eval_fini()
 * in any case. */
gl_status llm_eval_init(llm_eval *out, model *m, const run_spec *spec, uint64_t seed, size_t set,
                        size_t samples, progress *bar, size_t *done, gl_error *err);
void llm_eval_fini(llm_eval *e);

#endif
