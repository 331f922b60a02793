/* One simulation of a candidate, and what is measured of it. */
#ifndef GEPOLAB_EXPERIMENTS_PLAN_TRIAL_H
#define GEPOLAB_EXPERIMENTS_PLAN_TRIAL_H

#include "experiments/plan/candidate.h"
#include "sim/cluster.h"

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

#endif
