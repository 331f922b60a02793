/* From a description to candidates, and from a candidate to its recipe. */
#ifndef GEPOLAB_EXPERIMENTS_PLAN_CANDIDATE_H
#define GEPOLAB_EXPERIMENTS_PLAN_CANDIDATE_H

#include "core/base/error.h"
#include "core/config/config.h"
#include "experiments/plan/description.h"

/* --- a distribution times a factor --- */

/* The distribution at node as JSON, which is a value of YAML too, with every draw multiplied by
 * factor (above 0); an interval becomes the parameters it stands for, and the file of an empirical
 * distribution is named by its whole path. malloc'd, the caller frees. Errors are delay_parse()'s.
 */
gl_status plan_dist_times(char **out, const cfg_node *node, double factor, gl_error *err);

/* --- candidates --- */

typedef struct plan_candidate {
  size_t learner_site, learner_gpus;
  size_t samplers[PLAN_MOST_SITES]; /* [n_sites] */
  size_t decoding; /* of the description's; has no part in it where there is none */
  int64_t batches, window, publish;
  double bandwidth[PLAN_MOST_SITES]; /* factors on links between sites and the learner; 1 */
} plan_candidate;

/* All candidates, but those that can be known to stand still: where fewer updates can be made of
 * one version's data than lie between two publications (publish_every > window + 1). The learner
 * has one of the wanted numbers of GPUs, and all others of every site sample, as many as make up
 * whole samplers. *out is the caller's to free. GL_EINPUT where there is none, more than 50,000, or
 * no link is described between a site and the learner's. */
gl_status plan_candidates(plan_candidate **out, size_t *n, const plan_description *d,
                          gl_error *err);
size_t plan_candidate_samplers(const plan_candidate *c, const plan_description *d);
/* The i-th site that has samplers, in the order of the recipe's groups of samplers; SIZE_MAX past
 * the last. */
size_t plan_candidate_group(const plan_candidate *c, const plan_description *d, size_t i);

/* Its recipe: the description's sections, without `plan`, with samplers, links, the learner's step
 * and everything that the candidate chose. *out is the caller's (cfg_free()). */
gl_status plan_candidate_recipe(cfg_doc **out, const plan_candidate *c, const plan_description *d,
                                gl_error *err);

/* "8 GPUs at oregon learn; 12 + 8 + 8 samplers of 2 at …". Returns text. */
enum { PLAN_SPLIT_SIZE = 400 };
char *plan_candidate_split(const plan_candidate *c, const plan_description *d,
                           char text[PLAN_SPLIT_SIZE]);

/* --- the recommended recipe --- */

/* Its recipe, with a description that says what was chosen, and with what `gepolab sweep` needs
 * where the description has no world: a bandit, and three seeds. *out is the caller's (cfg_free()).
 * *why_not: "" where `gepolab sweep` runs it, else why only `gepolab sim` does. */
enum { PLAN_WHY_SIZE = 600 };
gl_status plan_recommend(cfg_doc **out, const plan_candidate *c, const plan_description *d,
                         char why_not[PLAN_WHY_SIZE], gl_error *err);

#endif
