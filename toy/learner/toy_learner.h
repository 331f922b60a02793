/* Public interface of toy/learner: toy worlds as a learner (core/rl/learner.h). */
#ifndef GEPOLAB_TOY_LEARNER_TOY_LEARNER_H
#define GEPOLAB_TOY_LEARNER_TOY_LEARNER_H

#include "core/rl/learner.h"

/* Makes a learner for every kind of world that toy_is_kind() or mdp_is_kind() accepts. On success
 * *out owns everything. Errors: GL_ENOMEM, GL_EINPUT with position in the recipe. */
gl_status toy_learner_new(learner *out, const learner_setup *setup, gl_error *err);

#endif
