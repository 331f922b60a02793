/* A recipe of the exact laboratory: world, pairs of learner and sampler, algorithms, group sizes.
 */
#ifndef GEPOLAB_EXPERIMENTS_LAB_RECIPE_H
#define GEPOLAB_EXPERIMENTS_LAB_RECIPE_H

#include "core/base/progress.h"
#include "core/config/config.h"
#include "llm/exact/exact_world.h"
#include "toy/lab/estimator_moments.h"
#include "toy/world/mdp.h"
#include "toy/world/toy_world.h"

#include <pthread.h>
#include <stddef.h>

/* One pair of policies, learner and sampler. */
typedef struct lab_pair {
  double *learner, *sampler; /* [n_parameters], owned */
  double staleness; /* versions between sampler and learner on a training path; NaN otherwise */
} lab_pair;

/* Training of every algorithm, starting from the learner's parameters. Groups are sampled from the
 * policy of `staleness` updates ago. Each algorithm uses the learning rate with the best mean
 * return over the path on seeds that are not reported. groups: per update; every: updates between
 * two recorded points; seeds, tuning_seeds: numbers of seeds. */
typedef struct lab_training {
  size_t updates, staleness, groups, every, seeds, tuning_seeds;
  double *lr;
  size_t n_lr;  /* number of learning rates to try; 0: the recipe has no training */
  double *ages; /* values of staleness at which `gepolab lab theory` trains and collects pairs of
                   distributions */
  size_t n_ages;
} lab_training;

/* The settings of `truncation`: truncated sampling distributions to compare, each with every kind
 * of weights. */
typedef struct lab_dists {
  double *top_p, *top_k;              /* top_k holds integers */
  const char **weights;               /* borrowed from the document */
  size_t n_top_p, n_top_k, n_weights; /* all 0: the recipe has no `truncation` */
} lab_dists;

typedef struct lab_recipe {
  const char *name; /* borrowed from the document */
  uint64_t seed;
  toy_world *world;         /* bandits and sequences; one of world, transformer, process is set */
  exact_world *transformer; /* sequences under a transformer, or NULL */
  mdp *process;             /* a decision process with its trajectories, or NULL */
  mdp_trajectories *trajectories;
  enumerable view;
  lab_pair *pairs; /* [n_pairs]; with several directions, all KL values of the first direction, then
                      of the next */
  size_t n_pairs;
  size_t directions; /* number of random directions of the dial; 1 otherwise */
  policy_algorithm *algorithms;
  size_t n_algorithms;
  size_t *group_size; /* [n_sizes]; 0 is the population limit and comes last */
  size_t n_sizes;
  size_t budget, samples;
  const cfg_node *budget_place; /* node of `budget`, or the whole recipe; errors refer to it */
  lab_weights weights;
  int covariance;
  lab_training training;
  lab_dists dists;
} lab_recipe;

/* Parses the recipe and solves its dial. Every unknown key is an error. Release with
 * lab_recipe_fini(), also after an error. */
gl_status lab_recipe_read(lab_recipe *r, const cfg_doc *doc, gl_error *err);
void lab_recipe_fini(lab_recipe *r);
/* Width of the column for algorithm names in printed tables: the longest name, at least 24. */
int lab_recipe_name_width(const lab_recipe *r);

/* Parses a list of algorithms or `all` into *out, allocated with malloc. */
gl_status lab_recipe_algorithms(const cfg_node *node, policy_algorithm **out, size_t *n,
                                gl_error *err);

/* --- progress --- */

/* Progress of work that runs on several threads. */

typedef struct lab_counter {
  pthread_mutex_t lock;
  progress *bar; /* NULL: silent */
  size_t done;
  double spent, left; /* cost of finished and of remaining items, in the unit of `cost` */
} lab_counter;

/* Starts the count of `total` items called `name` ("measurements", "training paths") on `threads`
 * threads. cost: total of all items. */
void lab_counter_init(lab_counter *c, const char *name, const char *unit, size_t total, double cost,
                      size_t threads, progress_mode mode);
/* Reports one finished item and its cost; callable from any thread. */
void lab_counter_add(lab_counter *c, double cost);
void lab_counter_fini(lab_counter *c);

#endif
