/* A recipe of the exact laboratory: which world, which learners and samplers, which algorithms and
 * group sizes. */
#ifndef GEPOLAB_EXPERIMENTS_LAB_RECIPE_H
#define GEPOLAB_EXPERIMENTS_LAB_RECIPE_H

#include "core/base/progress.h"
#include "core/config/config.h"
#include "llm/llm.h"
#include "toy/lab/lab.h"
#include "toy/toy.h"
#include "toy/world/mdp.h"

#include <pthread.h>
#include <stddef.h>

/* One pair of policies. */
typedef struct lab_pair {
  double *learner, *sampler; /* [n_parameters], owned */
  double staleness;          /* updates apart on a training path; NaN otherwise */
} lab_pair;

/* Training of every algorithm from the learner, by sampled groups from the policy `staleness`
 * updates ago. Of the learning rates, each algorithm gets the one with the best mean return over
 * the path on seeds that are not reported. */
typedef struct lab_training {
  size_t updates, staleness, groups, every, seeds, tuning_seeds;
  double *lr;
  size_t n_lr;  /* 0: no training is asked for */
  double *ages; /* stalenesses at which `gepolab lab theory` trains and takes its pairs of
                   distributions */
  size_t n_ages;
} lab_training;

/* Distributions of truncated sampling to compare (`truncation`), each with every kind of weights.
 */
typedef struct lab_dists {
  double *top_p, *top_k;              /* top_k: whole numbers */
  const char **weights;               /* borrowed from the doc */
  size_t n_top_p, n_top_k, n_weights; /* all 0: none are asked for */
} lab_dists;

typedef struct lab_recipe {
  const char *name, *description; /* borrowed from the doc */
  uint64_t seed;
  toy_world *world;         /* bandits and sequences */
  exact_world *transformer; /* or sequences under a transformer */
  mdp *process;             /* or a decision process with its trajectories */
  mdp_trajectories *trajectories;
  enumerable view;
  lab_pair *pairs;
  size_t n_pairs;
  policy_algorithm *algorithms;
  size_t n_algorithms;
  size_t *group_size; /* [n_sizes], 0 for the population limit, last */
  size_t n_sizes;
  size_t budget, samples;
  const cfg_node *budget_place; /* of `budget`, or the whole recipe: where a refusal points */
  lab_weights weights;
  int covariance;
  lab_training training;
  lab_dists dists;
} lab_recipe;

/* Reads the recipe and solves its dial. Every unknown key is an error. Release in any case. */
gl_status lab_recipe_read(lab_recipe *r, const cfg_doc *doc, gl_error *err);
void lab_recipe_fini(lab_recipe *r);
/* Columns that the longest of the algorithms' names takes in a printed table, 24 or more. */
int lab_recipe_name_width(const lab_recipe *r);

/* A list of numbers, or {from, to, points, scale: linear | log}: malloc'd into *out. */
gl_status lab_recipe_numbers(const cfg_node *node, double **out, size_t *n, gl_error *err);
/* A list of algorithms or `all`: malloc'd into *out. */
gl_status lab_recipe_algorithms(const cfg_node *node, policy_algorithm **out, size_t *n,
                                gl_error *err);

/* --- progress --- */

/* Progress of the laboratory's work, which several threads do. */

typedef struct lab_counter {
  pthread_mutex_t lock;
  progress *bar; /* NULL: silent */
  size_t done;
  double spent, left; /* costs, in any unit: of what is done, and of the rest */
} lab_counter;

/* `total` items of what is called `name` ("measurements", "training paths"), worked at by so many
 * threads; cost: of all of them together. */
void lab_counter_init(lab_counter *c, const char *name, const char *unit, size_t total, double cost,
                      size_t threads, progress_mode mode);
/* One item of that cost is done; from any thread. */
void lab_counter_add(lab_counter *c, double cost);
void lab_counter_fini(lab_counter *c);

#endif
