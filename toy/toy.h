/* Public interface of toy/: toy worlds as a learner (core/rl/learner.h) and as an enumerable policy
 * (core/rl/enumerable.h). */
#ifndef GEPOLAB_TOY_TOY_H
#define GEPOLAB_TOY_TOY_H

#include "toy/learner/toy_learner.h"
#include "toy/world/toy_world.h"

#endif
