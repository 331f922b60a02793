/* The transformer as an enumerable policy (core/rl/enumerable.h): what other rooms see of
 * llm/exact. */
#ifndef GEPOLAB_LLM_EXACT_LLM_WORLD_H
#define GEPOLAB_LLM_EXACT_LLM_WORLD_H

#include "core/config/config.h"
#include "core/rl/enumerable.h"

/* The transformer as a policy over all responses of up to max_tokens tokens, in double precision,
 * for the exact laboratory. */
typedef struct llm_world llm_world;
gl_status llm_world_new(llm_world **out, const cfg_node *world, const cfg_node *sampling,
                        uint64_t seed, gl_error *err);
void llm_world_free(llm_world *w);
/* Borrowed view, valid while w lives. */
enumerable llm_world_enumerable(const llm_world *w);
/* The parameters a learner with that seed starts from, into theta[n_parameters]. */
gl_status llm_world_initial(const llm_world *w, uint64_t seed, double *theta, gl_error *err);

#endif
