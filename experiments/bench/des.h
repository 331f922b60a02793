/* Benchmarks of the event loop: a single-server queue (queueing_) and a star of samplers (star_).
 */
#ifndef GEPOLAB_EXPERIMENTS_BENCH_DES_H
#define GEPOLAB_EXPERIMENTS_BENCH_DES_H

#include "core/base/error.h"
#include "sim/delay.h"

#include <stddef.h>
#include <stdint.h>

/* --- one queue with one server --- */

/* A queue with one server, on the event loop of the cluster: the closed forms of queueing theory
 * test it, and it is a benchmark. Arrivals are Poisson, service is first come first served.
 *
 * Random numbers: a Philox block has four samples and serves two customers (time to the next
 * arrival, service). Exponentials are -log(u) with libm's log, accurate to less than one unit in
 * the last place. u has 32 bits, so the largest is 22.9 means, and 2^-33 of the distribution is cut
 * off. Prefix: queueing_. */

typedef struct queueing_result {
  uint64_t customers, events; /* served customers; handled arrivals and departures */
  double simulated_s;
  double mean_sojourn;   /* mean time in the system of served customers */
  double standard_error; /* of mean_sojourn, from 50 batch means; NaN below 50 customers */
  double sojourn_sum; /* over all arrived customers; those still in the system count their time so
                         far */
  double number_integral; /* integral over time of the number in the system; equals sojourn_sum by
                             Little's law */
} queueing_result;

/* Runs until `customers` are served. service NULL: exponential with mean 1 / mu. lambda, mu > 0 (mu
 * is unused with a distribution). An unstable queue is limited by memory. Errors: GL_ENOMEM. */
gl_status queueing_run(queueing_result *out, double lambda, double mu, const delay_dist *service,
                       uint64_t seed, uint64_t customers, gl_error *err);

/* --- a star of samplers --- */

/* A star of many samplers around one learner, with the event list only: the clock's cost without
 * anything but events. It measures speed and memory; clusters of recipes run on sim/schedule.h.
 *
 * A sampler generates, its batch travels up, and new weights travel down; all three times are
 * exponential. After every `batches_per_update` batches the learner publishes a version. The event
 * that ends one leg is replaced by the one that ends the next, so each sampler has exactly one
 * event in the list. The event carries the version of the sampler's batch.
 *
 * In the long run a sampler delivers one batch per generation + up + down, and during such a cycle
 * as many batches arrive as there are samplers (Little's law), for any distributions. So mean
 * staleness is samplers / batches_per_update. Prefix: star_. */

typedef struct star_spec {
  uint32_t samplers, batches_per_update;
  double generation_s, up_s, down_s; /* means */
} star_spec;

typedef struct star_result {
  uint64_t events, batches, updates;
  double simulated_s;
  double mean_staleness;    /* versions published between a batch's weights and its arrival */
  size_t bytes_per_sampler; /* state, without its event */
  size_t bytes_per_event;
  size_t event_bytes; /* memory of all events */
} star_result;

/* Handles `events` events. Sample k of a sampler is word k mod 4 of block k / 4 of its stream
 * (RNG_GENERATION, sampler). Errors: GL_EINPUT (a count or mean that is not positive). */
gl_status star_run(star_result *out, const star_spec *spec, uint64_t seed, uint64_t events,
                   gl_error *err);

#endif
