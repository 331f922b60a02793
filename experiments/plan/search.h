/* From candidates to a plan: schedules of candidates, their measures, and what is simulated next.
 */
#ifndef GEPOLAB_EXPERIMENTS_PLAN_SEARCH_H
#define GEPOLAB_EXPERIMENTS_PLAN_SEARCH_H

#include "experiments/plan/candidate.h"
#include "experiments/plan/ranking.h"
#include "sim/cluster.h"

/* --- one simulation --- */

/* Over the updates behind the warm-up. */
typedef struct plan_measures {
  double throughput;               /* trained responses per hour of simulated time */
  double tokens;                   /* trained tokens per hour; 0 where responses have no lengths */
  double staleness, staleness_p95; /* of trained units, in updates */
  double learner, samplers;        /* shares of the time, of all decoding slots where units
                                      stream, in use */
  double weights[PLAN_MOST_SITES]; /* [n_sites] share of the time that a site's link needs for
                                      every published version; 1: it needs more than there is */
  double responses[PLAN_MOST_SITES]; /* and that it needs for what is trained of the site */
  double wasted;                     /* share of finished or aborted units that were thrown away */
} plan_measures;

/* What a candidate's simulations have in common. */
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
 * is told from the rest; then the Pareto front, what binds, and what one more of each would bring.
 */

/* What the search tells while it runs, and how it is stopped. Any may be NULL. */
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

/* A candidate with what its replicates gave. */
typedef struct plan_system {
  plan_candidate candidate;
  plan_setup setup;
  plan_measures *run; /* [n] owned */
  size_t n, room;
  int stalls;   /* it stood still in the first replicate, and is left out */
  int too_slow; /* a closed form says that it misses the throughput wanted; never simulated */
} plan_system;

typedef enum plan_more {
  PLAN_MORE_SAMPLER,   /* one more sampler at a site */
  PLAN_MORE_LEARNER,   /* as many more GPUs for the learner as its step was measured on */
  PLAN_MORE_BANDWIDTH, /* twice the bandwidth between a site and the learner */
  PLAN_MORE_WINDOW     /* one more update of staleness */
} plan_more;

/* What a change of the recommendation brings, paired replicate by replicate. */
typedef struct plan_gain {
  plan_more more;
  size_t site;                      /* of a sampler or a bandwidth */
  plan_estimate throughput, tokens; /* difference, per hour */
  plan_estimate staleness;          /* difference, in updates */
  int stalls;
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
  double in_use;       /* share of the time that the most used resource is */
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
/* Mean share of the time that a resource is in use. */
double plan_use(const plan_system *s, plan_resource which, size_t site);
/* Whether the means keep the limits. */
int plan_keeps_limits(const plan_system *s, const plan_limits *l);

#endif
