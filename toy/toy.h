/* Toy worlds, as other rooms see them: a learner (core/rl/learner.h) and an enumerable policy
 * (core/rl/enumerable.h). */
#ifndef GEPOLAB_TOY_TOY_H
#define GEPOLAB_TOY_TOY_H

#include "toy/learner/toy_learner.h"
#include "toy/world/toy_world.h"

#endif
