/* The recommended candidate as a recipe that other commands run as it is. */
#ifndef GEPOLAB_EXPERIMENTS_PLAN_RECOMMEND_H
#define GEPOLAB_EXPERIMENTS_PLAN_RECOMMEND_H

#include "experiments/plan/candidate.h"

/* Its recipe, with a description that says what was chosen, and with what `gepolab sweep` needs
 * where the description has no world: a bandit, and three seeds. *out is the caller's (cfg_free()).
 * *why_not: "" where `gepolab sweep` runs it, else why only `gepolab sim` does. */
enum { PLAN_WHY_SIZE = 600 };
gl_status plan_recommend(cfg_doc **out, const plan_candidate *c, const plan_description *d,
                         char why_not[PLAN_WHY_SIZE], gl_error *err);

#endif
