/* The transformer as a learner (core/rl/learner.h) and as an enumerable policy
 * (core/rl/enumerable.h): the public header of llm/, for experiments/. */
#ifndef GEPOLAB_LLM_LLM_H
#define GEPOLAB_LLM_LLM_H

#include "llm/exact/exact_world.h"
#include "llm/learner/llm_learner.h"

#endif
