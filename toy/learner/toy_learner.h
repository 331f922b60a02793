/* Toy worlds as a learner (core/rl/learner.h): what other rooms see of toy/learner. */
#ifndef GEPOLAB_TOY_LEARNER_TOY_LEARNER_H
#define GEPOLAB_TOY_LEARNER_TOY_LEARNER_H

#include "core/rl/learner.h"

/* world.kind in {bandit, sequence}. On success *out owns everything. */
gl_status toy_learner_new(learner *out, const learner_setup *setup, gl_error *err);

#endif
