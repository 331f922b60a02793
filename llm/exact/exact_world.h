/* The transformer as an enumerable policy (core/rl/enumerable.h): the public header of llm/exact.
 */
#ifndef GEPOLAB_LLM_EXACT_EXACT_WORLD_H
#define GEPOLAB_LLM_EXACT_EXACT_WORLD_H

#include "core/config/config.h"
#include "core/rl/enumerable.h"

/* The transformer as a policy over all responses of a task that has few enough, in double precision
 * on the CPU, for the exact laboratory. Its functions may be called from any thread; calls are
 * serialised. */
typedef struct exact_world exact_world;
/* Reads the section world: {kind: llm, model, rewards, and the fields of a sequence world}. The
 * caller frees *out. Errors: GL_EINPUT with file:line:column. */
gl_status exact_world_new(exact_world **out, const cfg_node *world, const cfg_node *sampling,
                          uint64_t seed, gl_error *err);
void exact_world_free(exact_world *w);
/* Borrowed view, valid while w lives. */
enumerable exact_world_enumerable(const exact_world *w);
/* Writes the initial parameters of a learner with that seed into theta[n_parameters]. */
gl_status exact_world_initial(const exact_world *w, uint64_t seed, double *theta, gl_error *err);

#endif
