/* Events at work: a single-server queue (queueing_) and a star of samplers (star_) on the bare
 * event loop. */
#ifndef GEPOLAB_EXPERIMENTS_BENCH_DES_H
#define GEPOLAB_EXPERIMENTS_BENCH_DES_H

#include "core/base/error.h"
#include "sim/delay.h"

#include <stddef.h>
#include <stdint.h>

/* --- one queue with one server --- */

/* One queue with one server, by the event loop the cluster uses: the closed forms of queueing
 * theory are its test and its benchmark. Arrivals are Poisson, service is first come first served.
 *
 * Random numbers: a Philox block holds four draws, so a block serves two customers (time to the
 * next arrival, service). Exponentials are -log(u) of libm, accurate to below one unit in the last
 * place; u has 32 bits, so that the largest is 22.9 means (beyond lie 2^-33 of the distribution).
 * Prefix: queueing_. */

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

/* --- a star of samplers --- */

/* A star of many samplers around one learner, on the bare list of events: what the clock costs when
 * nothing but events is left. It measures speed and memory; clusters of recipes run on
 * sim/schedule.h.
 *
 * A sampler generates, its batch travels up, and new weights travel down, all for exponential
 * times; every `batches_per_update` batches the learner publishes a version. An event that ends
 * one leg is followed by the one that ends the next, so that each sampler has exactly one event in
 * the list; the version its batch comes from travels in it.
 *
 * In the long run a sampler delivers once per generation + up + down, and as many batches arrive
 * during a cycle as there are samplers (Little's law), whatever the distributions: mean staleness
 * is samplers / batches_per_update. Prefix: star_. */

typedef struct star_spec {
  uint32_t samplers, batches_per_update;
  double generation_s, up_s, down_s; /* means */
} star_spec;

typedef struct star_result {
  uint64_t events, batches, updates;
  double simulated_s;
  double mean_staleness;    /* versions published between a batch's weights and its arrival */
  size_t bytes_per_sampler; /* of state, besides its event */
  size_t bytes_per_event;
  size_t event_bytes; /* of all events */
} star_result;

/* Handles `events` events. Draw k of a sampler is word k mod 4 of block k / 4 of its stream
 * (RNG_GENERATION, sampler). GL_EINPUT unless all counts and means are positive. */
gl_status star_run(star_result *out, const star_spec *spec, uint64_t seed, uint64_t events,
                   gl_error *err);

#endif
