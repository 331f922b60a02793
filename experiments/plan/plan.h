/* `gepolab plan`: from the description of a cluster to a recommended recipe. Prefix: plan_. */
#ifndef GEPOLAB_EXPERIMENTS_PLAN_PLAN_H
#define GEPOLAB_EXPERIMENTS_PLAN_PLAN_H

#include "core/base/error.h"
#include "core/config/config.h"
#include "experiments/plan/ranking.h"
#include "sim/cluster.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* --- description.c --- */

/* The description is a recipe: its section `cluster` has everything that is not chosen, its section
 * `plan` the GPUs, the network between them, measured speeds, the values to try, limits and the
 * error rate. experiments/RECIPES.md describes the fields. */

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
  double speed;   /* of a GPU, where those that were measured have 1 */
  bool may_learn; /* the learner may be here */
} plan_site;

/* A measurement of a sampler: the decoding speed of each of `concurrency` responses. */
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
  double throughput; /* indifference zone: a fraction of the throughput, and */
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
  size_t n_decoding;   /* 0: a sampler's speed is what `cluster` says */
  size_t learner_gpus; /* that cluster.learner.step was measured on */
  double serial;       /* fraction of a step that more GPUs do not shorten */
  size_t choices[PLAN_MOST_VALUES], n_choices; /* GPUs of the learner; ascending */
  bool relay;                                  /* weights go to a site once and are copied there */
  int64_t batches[PLAN_MOST_VALUES], windows[PLAN_MOST_VALUES], publish[PLAN_MOST_VALUES];
  size_t n_batches, n_windows, n_publish; /* ascending, without repetitions */
  plan_limits limits;
  plan_rigour rigour;
} plan_description;

/* Reads doc, whose units of recipes are resolved (recipe_load()), and resolves those of the section
 * `plan`. The doc must outlive *out. GL_EINPUT with the place for everything that is missing,
 * unknown or impossible, also in the recipe's own sections. */
gl_status plan_describe(plan_description *out, cfg_doc *doc, gl_error *err);

/* --- candidate.c --- */

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

/* --- search.c --- */

/* From candidates to a plan: schedules of candidates, their measures, and what is simulated next.
 */

/* --- one simulation --- */

/* Over the updates behind the warm-up. */
typedef struct plan_measures {
  double throughput;               /* trained responses per hour of simulated time */
  double tokens;                   /* trained tokens per hour; 0 where responses have no lengths */
  double staleness, staleness_p95; /* of trained units, in updates */
  double learner, samplers;        /* fractions of the time in use; where units stream,
                                      of all decoding slots */
  double weights[PLAN_MOST_SITES]; /* [n_sites] fraction of the time that a site's link sends
                                      published weights; 1: the link is too slow for them */
  double responses[PLAN_MOST_SITES]; /* and that it sends the site's trained batches */
  double wasted;                     /* fraction of finished or aborted units that were dropped */
} plan_measures;

/* The inputs that all simulations of a candidate share. */
typedef struct plan_setup {
  const plan_description *d;
  const plan_candidate *c;
  cluster_spec *cluster; /* owned */
  double weights_bytes;
  size_t *site_of; /* [samplers] owned */
} plan_setup;

/* Reads the candidate's recipe as `gepolab sim` does. Release with plan_setup_fini() in any case.
 */
gl_status plan_setup_init(plan_setup *s, const plan_candidate *c, const plan_description *d,
                          gl_error *err);
void plan_setup_fini(plan_setup *s);

/* Replicate r, with the seed that replicate r of every candidate has. A function of its arguments
 * alone, which may be called from several threads. GL_ENUMERIC where the cluster stands still. */
gl_status plan_trial(plan_measures *out, const plan_setup *s, size_t replicate, gl_error *err);

/* --- the search --- */

/* The search of `gepolab plan`: candidates are simulated with common random numbers until the best
 * is distinguished from the rest; then the Pareto front, the bottleneck, and the gain of one more
 * of each.
 */

/* Callbacks for progress and interruption. Any may be NULL. */
typedef struct plan_watch {
  void *self;
  /* A phase begins, of so many simulations; 0: not known. */
  void (*phase)(void *self, const char *what, size_t simulations);
  void (*done)(void *self, size_t simulations); /* of the phase, all together */
  int (*stop)(void *self); /* not 0: the search ends with GL_EINTERRUPTED; from any thread */
} plan_watch;

/* A quantity with half the width of its 95 % interval. */
typedef struct plan_estimate {
  double mean, half;
} plan_estimate;

/* A candidate with the measures of its replicates. */
typedef struct plan_system {
  plan_candidate candidate;
  plan_setup setup;
  plan_measures *run; /* [n] owned */
  size_t n, room;
  bool stalls;   /* it stood still in the first replicate, and is left out */
  bool too_slow; /* a closed form says that it misses the throughput wanted; never simulated */
} plan_system;

typedef enum plan_more {
  PLAN_MORE_SAMPLER,   /* one more sampler at a site */
  PLAN_MORE_LEARNER,   /* as many more GPUs for the learner as its step was measured on */
  PLAN_MORE_BANDWIDTH, /* twice the bandwidth between a site and the learner */
  PLAN_MORE_WINDOW     /* one more update of staleness */
} plan_more;

/* The effect of a change of the recommended candidate, paired replicate by replicate. */
typedef struct plan_gain {
  plan_more more;
  size_t site;                      /* of a sampler or a bandwidth */
  plan_estimate throughput, tokens; /* difference, per hour */
  plan_estimate staleness;          /* difference, in updates */
  bool stalls;
} plan_gain;

typedef enum plan_resource {
  PLAN_LEARNER,
  PLAN_SAMPLERS,
  PLAN_WEIGHTS,   /* on their way to a site */
  PLAN_RESPONSES, /* on their way from a site */
  PLAN_RESOURCES
} plan_resource;

/* A resource in use for less of the time binds nothing. */
#define PLAN_BINDS 0.85

typedef struct plan_result {
  const plan_description *d; /* borrowed */
  plan_system *system;       /* [n] all candidates, also those left out */
  size_t n, n_stalled, n_too_slow;
  ranking ranking; /* of the n - n_stalled - n_too_slow others, in their order */
  size_t *of;      /* [ranking.n] their places in system[] */
  size_t chosen;   /* place in system[]; SIZE_MAX: none keeps the limits */
  size_t *front;   /* [n_front] places, ascending in staleness */
  size_t n_front;
  double zone;         /* of throughput, per hour: the front's steps */
  plan_resource binds; /* PLAN_RESOURCES: none does */
  size_t binding_site; /* of weights and responses */
  double in_use;       /* fraction of the time that the most used resource is in use */
  plan_gain *gains;    /* [n_gains] */
  size_t n_gains;
  size_t simulations;
} plan_result;

/* Searches on so many threads (0: all cores). Release with plan_result_fini() in any case; the
 * description must outlive it. GL_ENUMERIC where every candidate stands still. */
gl_status plan_search(plan_result *out, const plan_description *d, size_t threads,
                      const plan_watch *watch, gl_error *err);
void plan_result_fini(plan_result *r);

/* Mean and interval of a measure over the system's replicates. */
plan_estimate plan_throughput(const plan_system *s);
plan_estimate plan_tokens(const plan_system *s);
plan_estimate plan_staleness(const plan_system *s);
plan_estimate plan_staleness_p95(const plan_system *s);
/* Mean fraction of the time that a resource is in use. */
double plan_use(const plan_system *s, plan_resource which, size_t site);
/* Whether the means keep the limits. */
bool plan_keeps_limits(const plan_system *s, const plan_limits *l);

/* --- print.c --- */

/* Plans as text and as JSON. */

/* The recommendation with what binds and what more would bring, and the Pareto front, as lines of
 * text; write errors show in ferror(to). */
void plan_print(const plan_result *r, FILE *to);

/* The same as JSON: `recommended` {…, `recipe`}, `front` [{…}], `binds`, `use`, `more` [{…}],
 * `selection` {…}, `candidates`, `simulations`. recipe: the recommended one, which becomes part of
 * it and is deleted also after a failure; NULL: there is none. The caller deletes the result; NULL
 * where memory is short. */
cJSON *plan_to_json(const plan_result *r, cJSON *recipe);

#endif
