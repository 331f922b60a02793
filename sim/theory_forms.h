/* What the forms of sim/theory.h share: a cluster as they see it, what they fill, and the forms of
 * sim/theory_queues.c. Inside sim/ only. */
#ifndef GEPOLAB_SIM_THEORY_FORMS_H
#define GEPOLAB_SIM_THEORY_FORMS_H

#include "sim/cluster_spec.h"
#include "sim/theory.h"

/* Times are means in seconds; those of samplers hold where all are alike. */
typedef struct theory_facts {
  const cluster_spec *c;
  double samplers, batches, responses;
  double ahead, window;    /* INFINITY: no limit */
  int alike;               /* one group of samplers */
  int constant_generation; /* of every group, and of all its parts */
  double generation;       /* seconds a batch */
  int constant_data;       /* data delays are constant, */
  int one_data;            /* and with transfers the same for all samplers */
  double data;             /* data delay and transfer of a batch */
  double upload, download; /* the transfers alone, the longest */
  int constant_weights;    /* weights take the same constant time to all samplers */
  double weights;          /* delay and transfer */
  int constant_step;
  double step;
} theory_facts;

/* A form: the condition that the cluster breaks, static, NULL where the form holds; and what it
 * says where it holds. */
typedef const char *theory_breaks(const theory_facts *f);
typedef gl_status theory_say(theory *out, const theory_facts *f, gl_error *err);

/* The mean decoding time of a batch on a sampler of speed 1; 0 without lengths. */
gl_status sim_theory_decoding(const response_spec *r, size_t responses, double *out, gl_error *err);
/* Fills the three rates from the mean seconds an update, and the seconds that all samplers generate
 * for one. */
void sim_theory_set_rates(theory *out, const theory_facts *f, double cycle, double sampler_busy);
/* A distribution of n values of staleness, all 0. */
gl_status sim_theory_shares_new(theory *out, size_t n, gl_error *err);
int sim_theory_is_random(const delay_dist *dist);
/* Condition: batches are trained in their order. */
const char *sim_theory_order_breaks(const theory_facts *f);

/* Open queues: the gate and the window never act. */
theory_breaks sim_theory_poisson_breaks, sim_theory_renewal_breaks;
theory_say sim_theory_poisson, sim_theory_renewal;
/* One sampler behind a gate. */
theory_breaks sim_theory_closed_breaks, sim_theory_gated_breaks;
theory_say sim_theory_closed, sim_theory_gated;

#endif
