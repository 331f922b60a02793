/* One queue with one server, by the event loop the cluster uses: the closed forms of queueing
 * theory are its test and its benchmark. Arrivals are Poisson, service is first come first served.
 *
 * Random numbers: a Philox block holds four draws, so a block serves two customers (time to the
 * next arrival, service). Exponentials are -log(u) of libm, accurate to below one unit in the last
 * place; u has 32 bits, so that the largest is 22.9 means (beyond lie 2^-33 of the distribution).
 * Prefix: queueing_. */
#ifndef GEPOLAB_EXPERIMENTS_BENCH_QUEUEING_H
#define GEPOLAB_EXPERIMENTS_BENCH_QUEUEING_H

#include "core/base/error.h"
#include "sim/delay.h"

#include <stddef.h>
#include <stdint.h>

typedef struct queueing_result {
  uint64_t customers, events; /* served; arrivals and departures handled */
  double simulated_s;
  double mean_sojourn;    /* of those served */
  double standard_error;  /* of mean_sojourn, by 50 batch means; NaN below 50 customers */
  double sojourn_sum;     /* of all who came, those still there with their time so far */
  double number_integral; /* integral over time of the number in the system: Little's law says both
                             are one */
} queueing_result;

/* Runs until `customers` are served. service NULL: exponential with mean 1 / mu. lambda, mu > 0
 * (mu unused with a distribution); an unstable queue is bounded by memory (GL_ENOMEM). */
gl_status queueing_run(queueing_result *out, double lambda, double mu, const delay_dist *service,
                       uint64_t seed, uint64_t customers, gl_error *err);

#endif
