/* Public interface of toy/learner: toy worlds as a learner (core/rl/learner.h). */
#ifndef GEPOLAB_TOY_LEARNER_TOY_LEARNER_H
#define GEPOLAB_TOY_LEARNER_TOY_LEARNER_H

#include "core/rl/learner.h"

/* Makes a learner for world.kind in {bandit, sequence, automaton}. On success *out owns everything.
 */
gl_status toy_learner_new(learner *out, const learner_setup *setup, gl_error *err);

#endif
