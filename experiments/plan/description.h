/* What `gepolab plan` reads: a recipe whose `cluster` says all that is not to be chosen, and beside
 * it a section `plan` with the GPUs that there are, the network between them, measured speeds, what
 * is tried, limits, and how sure the answer shall be. experiments/RECIPES.md describes its fields.
 * Prefix: plan_. */
#ifndef GEPOLAB_EXPERIMENTS_PLAN_DESCRIPTION_H
#define GEPOLAB_EXPERIMENTS_PLAN_DESCRIPTION_H

#include "core/base/error.h"
#include "core/config/config.h"

#include <stddef.h>
#include <stdint.h>

enum { PLAN_MOST_SITES = 32, PLAN_MOST_VALUES = 64, PLAN_MOST_REPLICATES = 1000 };

/* A connection, the same both ways. */
typedef struct plan_link {
  const cfg_node *at;      /* NULL: none is described */
  const cfg_node *latency; /* a distribution; NULL: the cluster's own delays */
  double bandwidth;        /* bytes/s, of the site as a whole; INFINITY: no limit */
  double loss;             /* probability that a packet is lost */
} plan_link;

typedef struct plan_site {
  const char *name;
  size_t gpus;
  double speed;  /* of a GPU, where those that were measured have 1 */
  int may_learn; /* the learner may stand here */
} plan_site;

/* What was measured of a sampler: the decoding speed of one response among so many. */
typedef struct plan_decoding {
  size_t concurrency;
  double tokens_per_s;
} plan_decoding;

typedef struct plan_limits {
  double staleness, staleness_p95; /* largest, in updates; INFINITY: none */
  double throughput;               /* least, in responses per hour; 0: none */
} plan_limits;

typedef struct plan_rigour {
  double error_rate; /* that the recommendation is not within the indifference zone of the best */
  double throughput; /* indifference zone: a share, and */
  double staleness;  /* updates */
  size_t replicates, most; /* of a candidate: in the first stage, and at most */
  size_t updates, warm_up; /* of a replicate; the first ones are not measured */
} plan_rigour;

typedef struct plan_description {
  const cfg_doc *doc; /* borrowed, as all names and nodes */
  const char *name;
  uint64_t seed; /* of replicate 0; replicate r has seed + r, whatever the candidate */
  size_t groups, group_size;
  plan_site sites[PLAN_MOST_SITES];
  size_t n_sites;
  plan_link links[PLAN_MOST_SITES][PLAN_MOST_SITES]; /* symmetric; [i][i]: inside a site */
  size_t sampler_gpus;                               /* of one sampler */
  plan_decoding decoding[PLAN_MOST_VALUES];
  size_t n_decoding;                           /* 0: a sampler's speed is what `cluster` says */
  size_t learner_gpus;                         /* that cluster.learner.step was measured on */
  double serial;                               /* share of a step that more GPUs do not shorten */
  size_t choices[PLAN_MOST_VALUES], n_choices; /* GPUs of the learner; ascending */
  int relay;                                   /* weights go to a site once and are copied there */
  int64_t batches[PLAN_MOST_VALUES], windows[PLAN_MOST_VALUES], publish[PLAN_MOST_VALUES];
  size_t n_batches, n_windows, n_publish; /* ascending, without repetitions */
  plan_limits limits;
  plan_rigour rigour;
} plan_description;

/* Reads doc, whose units of recipes are resolved (recipe_load()), and resolves those of the section
 * `plan`. The doc must outlive *out. GL_EINPUT with the place for everything that is missing,
 * unknown or impossible, also in the recipe's own sections. */
gl_status plan_describe(plan_description *out, cfg_doc *doc, gl_error *err);

#endif
