/* `gepolab plan`: recommends a recipe for a described cluster of GPUs. Prefix: plan_. */
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

/* The description is a recipe. Its section `cluster` contains all fixed fields. Its section `plan`,
 * which only `gepolab plan` reads, contains the GPUs, the network between them, measured speeds,
 * the values to try, limits and the error rate. experiments/RECIPES.md documents the fields. */

enum { PLAN_NAME_SIZE = 128 };
enum { PLAN_MOST_SITES = 32, PLAN_MOST_VALUES = 64, PLAN_MOST_REPLICATES = 1000 };

/* A network connection with the same properties in both directions. */
typedef struct plan_link {
  const cfg_node *at;      /* its node in the recipe; NULL: the link is not described */
  const cfg_node *latency; /* a distribution; NULL: the cluster's own delays */
  double bandwidth;        /* bytes/s for the whole site; INFINITY: unlimited */
  double loss;             /* probability that a packet is lost */
} plan_link;

typedef struct plan_site {
  const char *name;
  size_t gpus;
  double speed;   /* speed of a GPU relative to the GPUs on which speeds were measured */
  bool may_learn; /* whether the learner may be placed here */
} plan_site;

/* A measured decoding speed: that of each response when a sampler decodes `concurrency` responses.
 */
typedef struct plan_decoding {
  size_t concurrency;
  double tokens_per_s;
} plan_decoding;

typedef struct plan_limits {
  double staleness, staleness_p95; /* upper limits, in updates; INFINITY: none */
  double throughput;               /* lower limit, in responses per hour; 0: none */
} plan_limits;

typedef struct plan_rigour {
  double error_rate; /* probability that the recommendation is not within the indifference zone of
                        the best */
  double throughput; /* indifference zone of throughput, a fraction */
  double staleness;  /* indifference zone of staleness, in updates */
  size_t replicates, most; /* replicates of a candidate in the first stage, and maximum number */
  size_t updates, warm_up; /* updates of a replicate; the first warm_up are not measured */
} plan_rigour;

typedef struct plan_description {
  const cfg_doc *doc; /* borrowed, like all names and nodes */
  const char *name;
  char algorithm[PLAN_NAME_SIZE]; /* algorithm of the recipe */
  uint64_t seed; /* seed of replicate 0; replicate r uses seed + r for every candidate */
  size_t groups, group_size;
  plan_site sites[PLAN_MOST_SITES];
  size_t n_sites;
  plan_link links[PLAN_MOST_SITES][PLAN_MOST_SITES]; /* symmetric; [i][i]: within site i */
  size_t sampler_gpus;                               /* GPUs per sampler */
  plan_decoding decoding[PLAN_MOST_VALUES];
  size_t n_decoding;   /* 0: `cluster` gives the speed of a sampler */
  size_t learner_gpus; /* GPUs on which cluster.learner.step was measured */
  double serial;       /* fraction of a step that more GPUs do not shorten */
  size_t choices[PLAN_MOST_VALUES], n_choices; /* numbers of learner GPUs to try; ascending */
  bool relay; /* weights are sent to a site once and copied there */
  int64_t batches[PLAN_MOST_VALUES], windows[PLAN_MOST_VALUES], publish[PLAN_MOST_VALUES];
  size_t n_batches, n_windows, n_publish; /* ascending, without repetitions */
  plan_limits limits;
  plan_rigour rigour;
} plan_description;

/* Reads doc, whose units must be resolved except in the section `plan` (recipe_load()), and
 * resolves the units of that section. The doc must outlive *out. Errors: GL_EINPUT with position
 * for missing, unknown or impossible fields, also in the recipe's own sections. */
gl_status plan_describe(plan_description *out, cfg_doc *doc, gl_error *err);

/* --- the fields of the section: description.c --- */

/* A field of the section `plan`; of lists also the fields of their items. All static. */
typedef struct plan_field {
  const char *path, *kind, *fallback, *unit, *meaning;
} plan_field;
/* The i-th field, in the order of the document: a section before the fields below it; NULL past the
 * last. */
const plan_field *plan_field_at(size_t i);

/* --- candidate.c --- */

/* --- scaling a distribution --- */

/* Writes the distribution at node as JSON, which is also valid YAML, with every sample multiplied
 * by factor (> 0). An interval is replaced by the parameters it implies, and an empirical
 * distribution names its file by absolute path. The caller frees *out. Errors: those of
 * delay_parse(). */
gl_status plan_dist_times(char **out, const cfg_node *node, double factor, gl_error *err);

/* --- candidates --- */

typedef struct plan_candidate {
  size_t learner_site, learner_gpus;
  size_t samplers[PLAN_MOST_SITES]; /* [n_sites] number of samplers at each site */
  size_t decoding;                  /* index in the description's list; unused if that is empty */
  int64_t batches, window, publish;
  double bandwidth[PLAN_MOST_SITES]; /* factors on the bandwidth between a site and the learner;
                                        normally 1 */
} plan_candidate;

/* Enumerates all candidates, except those that certainly stall: fewer updates can be made from one
 * version's data than lie between two publications (publish_every > window + 1). The learner gets
 * one of the allowed numbers of GPUs. All other GPUs of every site sample, in whole samplers. The
 * caller frees *out. Errors: GL_EINPUT if there are none or more than 50,000, or if no link is
 * described between a site and the learner's site. */
gl_status plan_candidates(plan_candidate **out, size_t *n, const plan_description *d,
                          gl_error *err);
size_t plan_candidate_samplers(const plan_candidate *c, const plan_description *d);
/* The i-th site with samplers, in the order of the recipe's groups of samplers; SIZE_MAX past the
 * last. */
size_t plan_candidate_group(const plan_candidate *c, const plan_description *d, size_t i);

/* Builds the candidate's recipe: the description's sections without `plan`, with samplers, links,
 * the learner's step and all fields of the candidate. The caller frees *out (cfg_free()). */
gl_status plan_candidate_recipe(cfg_doc **out, const plan_candidate *c, const plan_description *d,
                                gl_error *err);

/* Writes "8 GPUs at oregon learn; 12 + 8 + 8 samplers of 2 at …". Returns text. */
enum { PLAN_SPLIT_SIZE = 400 };
char *plan_candidate_split(const plan_candidate *c, const plan_description *d,
                           char text[PLAN_SPLIT_SIZE]);

/* --- the recommended recipe --- */

/* Builds the candidate's recipe with a description of the choices. If the description has no world,
 * adds what `gepolab sweep` needs: a bandit and three seeds. The caller frees *out (cfg_free()).
 * *why_not: "" if `gepolab sweep` can run it, otherwise the reason why only `gepolab sim` can. */
enum { PLAN_WHY_SIZE = 600 };
gl_status plan_recommend(cfg_doc **out, const plan_candidate *c, const plan_description *d,
                         char why_not[PLAN_WHY_SIZE], gl_error *err);

/* --- search.c --- */

/* --- one simulation --- */

/* Measurements of one replicate, over the updates after the warm-up. */
typedef struct plan_measures {
  double throughput;               /* trained responses per hour of simulated time */
  double tokens;                   /* trained tokens per hour; 0 if responses have no lengths */
  double staleness, staleness_p95; /* of trained units, in updates: mean, 95th percentile */
  double learner, samplers; /* utilisation: fraction of the time in use; if samplers stream units,
                               the mean over their decoding slots */
  double weights[PLAN_MOST_SITES];   /* [n_sites] fraction of the time that a site's link sends
                                        published weights; 1: it is too slow */
  double responses[PLAN_MOST_SITES]; /* [n_sites] fraction of the time that the site's link sends
                                        batches that are trained */
  double wasted;                     /* fraction of finished or aborted units that were dropped */
} plan_measures;

/* Inputs shared by all simulations of a candidate. */
typedef struct plan_setup {
  const plan_description *d;
  const plan_candidate *c;
  cluster_spec *cluster; /* owned */
  double weights_bytes;
  size_t *site_of; /* [samplers] site of each sampler; owned */
} plan_setup;

/* Reads the candidate's recipe as `gepolab sim` does. Call plan_setup_fini() even after an error.
 */
gl_status plan_setup_init(plan_setup *s, const plan_candidate *c, const plan_description *d,
                          gl_error *err);
void plan_setup_fini(plan_setup *s);

/* Simulates replicate r, with the seed that it has for every candidate. A pure function of its
 * arguments; may be called from several threads. Errors: GL_ENUMERIC if the cluster stalls. */
gl_status plan_trial(plan_measures *out, const plan_setup *s, size_t replicate, gl_error *err);

/* --- the search --- */

/* Callbacks for progress and interruption of plan_search(). Any may be NULL. */
typedef struct plan_watch {
  void *self;
  /* Called at the start of a phase with its number of simulations; 0: unknown. */
  void (*phase)(void *self, const char *what, size_t simulations);
  void (*done)(void *self, size_t simulations); /* total so far in this phase */
  int (*stop)(void *self); /* not 0: the search ends with GL_EINTERRUPTED; called from any thread */
} plan_watch;

/* An estimate with the half-width of its 95 % interval. */
typedef struct plan_estimate {
  double mean, half;
} plan_estimate;

/* A candidate with the measurements of its replicates. */
typedef struct plan_system {
  plan_candidate candidate;
  plan_setup setup;
  plan_measures *run; /* [n] measurements of its replicates; owned */
  size_t n, room;
  bool stalls;   /* it stalled in the first replicate and is excluded */
  bool too_slow; /* a closed form shows that it misses the throughput limit; it is not simulated */
} plan_system;

/* A change to the recommended candidate, whose effect is simulated. PLAN_WITHOUT_SITE removes a
 * resource, all others add one. */
typedef enum plan_more {
  PLAN_MORE_SAMPLER,   /* one more sampler at a site */
  PLAN_MORE_LEARNER,   /* more GPUs for the learner, as many as its step was measured on */
  PLAN_MORE_BANDWIDTH, /* twice the bandwidth between a site and the learner */
  PLAN_MORE_WINDOW,    /* one more update of staleness */
  PLAN_WITHOUT_SITE    /* no sampler at a site */
} plan_more;

/* The effect of a change to the recommended candidate, paired by replicate. */
typedef struct plan_gain {
  plan_more more;
  size_t site;                      /* site of a change of samplers or bandwidth */
  plan_estimate throughput, tokens; /* difference, per hour */
  plan_estimate staleness;          /* difference, in updates */
  bool stalls;
} plan_gain;

typedef enum plan_resource {
  PLAN_LEARNER,
  PLAN_SAMPLERS,
  PLAN_WEIGHTS,   /* transfer of weights to a site */
  PLAN_RESPONSES, /* transfer of responses from a site */
  PLAN_RESOURCES
} plan_resource;

/* A resource counts as the bottleneck only if it is in use for at least this fraction of the time.
 */
#define PLAN_BOTTLENECK_USE 0.85

typedef struct plan_result {
  const plan_description *d; /* borrowed */
  plan_system *system;       /* [n] all candidates, including excluded ones */
  size_t n, n_stalled, n_too_slow;
  ranking ranking; /* of the candidates that neither stall nor are too slow, in their order */
  size_t *of;      /* [ranking.n] index in system[] of each ranked candidate */
  size_t chosen;   /* index in system[]; SIZE_MAX: no candidate keeps the limits */
  size_t *front;   /* [n_front] indices in system[], by ascending staleness */
  size_t n_front;
  double zone; /* minimum difference in throughput, per hour, between members of the front */
  plan_resource bottleneck; /* PLAN_RESOURCES: none */
  size_t bottleneck_site;   /* site, if the bottleneck is weights or responses */
  double in_use;            /* fraction of the time that the most used resource is in use */
  /* left_out: per site, samplers removed from the selected candidate because it is as good without
   * them. It keeps the limits, the mean loss of throughput and the mean increase of staleness are
   * at most half the indifference zone, and their 95 % intervals are within the whole zone. (If
   * throughput is the only limit, the loss of throughput is not tested: the least stale system is
   * preferred.) left_out_throughput, left_out_staleness: what all removed samplers together would
   * add. */
  size_t left_out[PLAN_MOST_SITES]; /* [n_sites] samplers */
  plan_estimate left_out_throughput, left_out_staleness;
  plan_gain *gains; /* [n_gains] */
  size_t n_gains;
  size_t simulations;
} plan_result;

/* The search of `gepolab plan`: simulates candidates with common random numbers until the best is
 * distinguished from the rest, then finds the Pareto front, the bottleneck, and the gain from
 * adding one unit of each resource. threads 0: all cores. The description must outlive *out. Call
 * plan_result_fini() even after an error. Errors: GL_ENUMERIC if every candidate stalls. */
gl_status plan_search(plan_result *out, const plan_description *d, size_t threads,
                      const plan_watch *watch, gl_error *err);
void plan_result_fini(plan_result *r);

/* Mean and interval of a measurement over the system's replicates. */
plan_estimate plan_throughput(const plan_system *s);
plan_estimate plan_tokens(const plan_system *s);
plan_estimate plan_staleness(const plan_system *s);
plan_estimate plan_staleness_p95(const plan_system *s);
plan_estimate plan_wasted(const plan_system *s);
/* Mean fraction of the time that a resource is in use. */
double plan_use(const plan_system *s, plan_resource which, size_t site);
/* Whether the means keep the limits. */
bool plan_keeps_limits(const plan_system *s, const plan_limits *l);

/* --- print.c --- */

/* Prints the recommendation with its bottleneck and the gains of more resources, and the Pareto
 * front. Check ferror(to) for write errors. */
void plan_print(const plan_result *r, FILE *to);

/* --- settings.c --- */

/* A trainer whose settings can be printed: its name as a value of --for, its full name, and the
 * version whose source the names of settings were taken from. plan_trainer_at() returns NULL past
 * the last. */
typedef struct plan_trainer {
  const char *word, *name, *version;
} plan_trainer;
const plan_trainer *plan_trainer_at(size_t i);
/* The settings of a trainer that make it run the recommended candidate, and the quantities of the
 * candidate that it has no setting for; only if there is a candidate (r->chosen). */
void plan_settings_print(const plan_result *r, size_t trainer, FILE *to);
/* `trainer`, `version`, `settings` [{setting, quantity, place, note}], `not_settings` [{…}]. */
void plan_settings_json(cJSON *to, const plan_result *r, size_t trainer);

/* The recommended candidate's gain from asynchrony, computed from the fractions of the time in
 * which the learner, the samplers and the busiest link for weights are in use. Without overlap an
 * update would take the sum of the three times; with overlap it takes at least the longest. */
typedef struct plan_verdict {
  double overlap_limit; /* sum / longest: how many times as fast it can be at most */
  double overlap_gain;  /* sum of the fractions: how many times as fast the plan is */
} plan_verdict;
plan_verdict plan_verdict_of(const plan_result *r);
/* Prints the gain from asynchrony and the bottleneck in one sentence. */
void plan_verdict_print(const plan_result *r, FILE *to);

/* --- print.c, again --- */

/* Result of a stored study of the staleness that a method tolerates: paper/results/frontier.tsv,
 * the fraction of 16 runs (four learning rates, four warm-up checkpoints) that collapsed at each
 * staleness. */
enum { PLAN_STUDIED = 5 };
extern const int plan_studied_staleness[PLAN_STUDIED];
typedef struct plan_studied {
  const char *algorithm; /* name of the method in the study */
  double collapsed[PLAN_STUDIED];
} plan_studied;
/* The i-th method, NULL past the last. Exposed for its test. */
const plan_studied *plan_studied_at(size_t i);

/* If the description has no limit, warns that the fastest candidate is recommended however stale it
 * is, and reports the stored study's results for the recipe's method. */
void plan_warn(const plan_result *r, FILE *to);

/* The plan as JSON: `recommended` {…, `recipe`}, `front` [{…}], `verdict` {…}, `binds`, `use`,
 * `more` [{…}], `without` [{…}], `selection` {…}, `candidates`, `simulations`. recipe: the
 * recommended one, or NULL if there is none. The function takes ownership of it, also after a
 * failure. The caller deletes the result; NULL if out of memory. */
cJSON *plan_to_json(const plan_result *r, cJSON *recipe);

#endif
