/* Generation: responses to prompts, batched over slots with a cache of keys and values, slots
 * refilled as responses end. A response depends on the parameters, its prompt and its address
 * alone: not on the other responses, their order or the number of slots. Prefix: generate_. */
#ifndef GEPOLAB_LLM_MODEL_GENERATE_H
#define GEPOLAB_LLM_MODEL_GENERATE_H

#include "llm/model/generate_plan.h"

/* Draws what the request asks for into result, whose arrays generate_result_init() made. GL_EINPUT
 * for tokens outside the vocabulary, prompts that do not fit into the model's positions or settings
 * of sampling that are none; GL_EINTERNAL where request and result contradict each other; what the
 * backend fails with. After a failure the result holds some of the tokens. */
gl_status generate(model *m, const generate_request *request, generate_result *result,
                   gl_error *err);

/* Bytes of the keys and values of `capacity` positions of one response; SIZE_MAX where they
 * overflow.
 */
size_t generate_cache_bytes(const model *m, size_t capacity);

#endif
