/* Forms of queueing theory: batches arrive at the learner at random. Derivations are in
 * paper/methods.md §10.11. */
#include "sim/theory_forms.h"
#include "sim/theory_moments.h"

#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdlib.h>

/* A distribution that would need more values is left out; those kept hold all but some 1e-9. */
enum { MOST_SHARES = 4096 };
static const double shares_a_mean = 25;
/* A learner that is busier has no long run that could be told from an endless queue: means come
 * from integrals, and 1 may read as a little less. */
static const double busiest = 1 - 1e-6;

/* --- conditions that forms share --- */

static const char *links_break(const theory_facts *f) {
  if (!f->constant_data || !f->one_data)
    return "cluster.data_delay is constant and the same for all samplers";
  if (!f->constant_weights) return "cluster.delay is constant and the same for all samplers";
  if (f->upload > 0) return "cluster.rollout_bytes is 0, or cluster.up.bandwidth unlimited";
  if (f->download > 0) return "cluster.weights_bytes is 0, or cluster.down.bandwidth unlimited";
  return NULL;
}

static const char *open_breaks(const theory_facts *f) {
  if (f->batches != 1) return "cluster.learner.batches is 1";
  if (isfinite(f->ahead)) return "cluster.ahead is unlimited";
  if (isfinite(f->window)) return "cluster.window is unlimited";
  if (f->c->queue != QUEUE_FIFO) return "cluster.learner.queue is fifo";
  return links_break(f);
}

static const char *gate_breaks(const theory_facts *f) {
  if (f->samplers != 1) return "cluster.samplers is 1";
  if (isinf(f->ahead)) return "cluster.ahead is limited";
  if (f->window < f->ahead) return "cluster.window is at least cluster.ahead";
  const char *broken = links_break(f);
  return broken != NULL ? broken : sim_theory_order_breaks(f);
}

/* Whether no weights are back at the moment at which their batch is generated: a sampler that
 * begins its next one then is not yet given them. */
static int takes_time(const theory_facts *f) {
  return f->data + f->weights > 0 || moment_survival(f->c->step, 0) == 1;
}

static int is_exponential(const delay_dist *dist) {
  return dist->kind == DELAY_EXPONENTIAL && dist->exponential.shift == 0 && dist->offset == 0 &&
         dist->clamp_lo <= 0 && isinf(dist->clamp_hi);
}

static const char *exponential_breaks(const theory_facts *f) {
  for (size_t i = 0; i < f->c->n_groups; ++i) {
    const sampler_group *g = &f->c->groups[i];
    if (!is_exponential(g->generation)) return "cluster.generation is exponential without shift";
    if (sim_theory_is_random(g->jitter)) return "cluster.jitter is constant";
    if (g->responses.lengths != NULL) return "cluster.lengths is absent";
  }
  return NULL;
}

/* Poisson batches: M/G/1 --- */

/* Batches a second of one sampler of a group whose generation is exponential. */
static double rate_of(const sampler_group *g) {
  return g->speed / (g->generation->exponential.mean * delay_quantile(g->jitter, 0.5));
}

static double rate_of_all(const theory_facts *f) {
  double rate = 0;
  for (size_t i = 0; i < f->c->n_groups; ++i)
    rate += (double)f->c->groups[i].count * rate_of(&f->c->groups[i]);
  return rate;
}

const char *sim_theory_poisson_breaks(const theory_facts *f) {
  const char *broken = open_breaks(f);
  if (broken == NULL) broken = exponential_breaks(f);
  if (broken != NULL) return broken;
  if (!moment_is_finite(f->c->step, 2)) return "cluster.learner.step has a finite variance";
  if (!takes_time(f)) return "cluster.learner.step, data_delay or delay is always above 0";
  if (rate_of_all(f) * f->step > busiest)
    return "the learner keeps up: batches a second x cluster.learner.step is below 1";
  return NULL;
}

/* Adds a geometric number, P(k) = (1 - q) q^k, to a distribution. */
static void add_geometric(double *share, size_t n, double q) {
  double before = 0;
  for (size_t i = 0; i < n; ++i) {
    before = before * q + share[i];
    share[i] = (1 - q) * before;
  }
}

/* 1 + Poisson(passed) + those of the others while the batch is generated + those that the learner
 * has, a geometric number in M/M/1. */
static gl_status poisson_shares(theory *out, const theory_facts *f, double rate, double passed,
                                gl_error *err) {
  const double mean = out->value[THEORY_STALENESS].low;
  if (!is_exponential(f->c->step) && f->step > 0) return GL_OK;
  if (shares_a_mean * mean + 50 > MOST_SHARES) return GL_OK;
  const size_t n = (size_t)(shares_a_mean * mean) + 50;
  double *one = calloc(n, sizeof *one);
  if (one == NULL) return gl_fail_memory(err, "a distribution of staleness");
  gl_status status = sim_theory_shares_new(out, n, err);
  for (size_t g = 0; g < f->c->n_groups && status == GL_OK; ++g) {
    const double own = rate_of(&f->c->groups[g]) / rate;
    one[0] = 0;
    for (size_t k = 1; k < n; ++k) one[k] = gsl_ran_poisson_pdf((unsigned)k - 1, passed);
    add_geometric(one, n, 1 - own);
    add_geometric(one, n, rate * f->step);
    for (size_t k = 0; k < n; ++k)
      out->staleness[k] += (double)f->c->groups[g].count * own * one[k];
  }
  free(one);
  return status;
}

gl_status sim_theory_poisson(theory *out, const theory_facts *f, gl_error *err) {
  const double rate = rate_of_all(f), busy = rate * f->step;
  const double passed = rate * (f->data + f->weights);
  double square = 0;
  gl_status status = moment_of(&square, f->c->step, 2, err);
  if (status != GL_OK) return status;
  const double at_learner = busy + rate * rate * square / (2 * (1 - busy));
  const double stale = f->samplers + passed + at_learner;
  out->value[THEORY_STALENESS] = (theory_value){stale, stale};
  sim_theory_set_rates(out, f, 1 / rate, f->samplers / rate);
  return poisson_shares(out, f, rate, passed, err);
}

/* --- one exponential sampler behind a gate: a closed tandem --- */

const char *sim_theory_closed_breaks(const theory_facts *f) {
  const char *broken = gate_breaks(f);
  if (broken == NULL) broken = exponential_breaks(f);
  if (broken != NULL) return broken;
  if (f->batches != 1) return "cluster.learner.batches is 1";
  if (!is_exponential(f->c->step)) return "cluster.learner.step is exponential without shift";
  if (f->data > 0) return "cluster.data_delay is 0";
  if (f->weights > 0) return "cluster.delay is 0";
  return f->ahead > 1e6 ? "cluster.ahead is at most 1e6" : NULL;
}

/* ahead + 1 batches go round between sampler and learner; i of them are at the learner with a
 * chance in proportion to (step / generation)^i. A batch that the sampler begins as it ends another
 * is as stale as there then are at the learner; one that it begins after standing still has found
 * all others there. */
gl_status sim_theory_closed(theory *out, const theory_facts *f, gl_error *err) {
  const size_t most = (size_t)f->ahead;
  const double ratio = f->step / f->generation;
  const double base = ratio > 1 ? -log(ratio) * (f->ahead + 1) : 0; /* the largest weight is 1 */
  double sum = 0, mean = 0;
  gl_status status = sim_theory_shares_new(out, most + 1, err);
  if (status != GL_OK) return status;
  for (size_t i = 0; i <= most + 1; ++i) {
    const double weight = exp(base + (double)i * log(ratio));
    out->staleness[i < most ? i + 1 : most] += i <= most ? weight : 0;
    sum += weight;
  }
  const double gated = exp(base + (f->ahead + 1) * log(ratio)) / sum;
  for (size_t i = 0; i <= most; ++i) {
    out->staleness[i] /= sum * (1 - gated);
    mean += (double)i * out->staleness[i];
  }
  out->value[THEORY_STALENESS] = (theory_value){mean, mean};
  sim_theory_set_rates(out, f, f->generation / (1 - gated), f->generation);
  return GL_OK;
}

/* --- one sampler of any distribution: bounds of G/G/1 --- */
const char *sim_theory_renewal_breaks(const theory_facts *f) {
  const sampler_group *g = &f->c->groups[0];
  if (f->samplers != 1) return "cluster.samplers is 1";
  const char *broken = open_breaks(f);
  if (broken != NULL) return broken;
  if (g->responses.lengths != NULL && sim_theory_is_random(g->responses.lengths))
    return "cluster.lengths is absent or constant";
  if (!moment_is_finite(g->generation, 2) || !moment_is_finite(g->jitter, 2))
    return "cluster.generation and cluster.jitter have finite variances";
  if (!moment_is_finite(f->c->step, 2)) return "cluster.learner.step has a finite variance";
  if (f->step > busiest * f->generation)
    return "the learner keeps up: cluster.learner.step is below the mean generation time";
  return NULL;
}

/* E[G^2] of the time a batch takes to generate. */
static gl_status generation_square(const theory_facts *f, double *out, gl_error *err) {
  const sampler_group *g = &f->c->groups[0];
  double once = 0, square = 0, jitter = 0, decoding = 0;
  gl_status status = moment_of(&once, g->generation, 1, err);
  if (status == GL_OK) status = moment_of(&square, g->generation, 2, err);
  if (status == GL_OK) status = moment_of(&jitter, g->jitter, 2, err);
  if (status == GL_OK)
    status = sim_theory_decoding(&g->responses, f->c->samples_per_batch, &decoding, err);
  *out = (square + 2 * once * decoding + decoding * decoding) * jitter / (g->speed * g->speed);
  return status;
}

/* Staleness is one more than the batches begun while a batch's weights are under way, from its end
 * of generation on: a renewal function, between t/m - 1 and t/m + its squared variation. */
gl_status sim_theory_renewal(theory *out, const theory_facts *f, gl_error *err) {
  const double m = f->generation, busy = f->step / m;
  double square = 0, step_square = 0;
  gl_status status = generation_square(f, &square, err);
  if (status == GL_OK) status = moment_of(&step_square, f->c->step, 2, err);
  if (status != GL_OK) return status;
  const double variance = fmax(0, square - m * m);
  const double step_variance = fmax(0, step_square - f->step * f->step);
  const double idle = 2 * m * (1 - busy);
  const double longest_wait = (variance + step_variance) / idle;
  const double shortest_wait = fmax(0, (step_variance - m * m * busy * (2 - busy)) / idle);
  const double way = f->data + f->weights + f->step;
  out->value[THEORY_STALENESS] = (theory_value){fmax(takes_time(f), (way + shortest_wait) / m),
                                                1 + (way + longest_wait) / m + variance / (m * m)};
  sim_theory_set_rates(out, f, m, m);
  return GL_OK;
}

/* --- one sampler of any distribution behind a gate: bounds --- */
const char *sim_theory_gated_breaks(const theory_facts *f) {
  return gate_breaks(f);
}

/* An update takes no less than its batches, its step, and its share of the way round, on which
 * ahead + 1 updates are; and no more than without any overlap. */
gl_status sim_theory_gated(theory *out, const theory_facts *f, gl_error *err) {
  (void)err;
  const double generation = f->batches * f->generation;
  const double way = generation + f->data + f->step + f->weights;
  const double least = fmax(fmax(generation, f->step), way / (f->ahead + 1));
  theory slow = {0};
  sim_theory_set_rates(out, f, least, generation);
  sim_theory_set_rates(&slow, f, way, generation);
  for (size_t q = 0; q < THEORY_QUANTITIES; ++q) out->value[q].low = slow.value[q].low;
  out->value[THEORY_STALENESS] = (theory_value){0, f->ahead};
  return GL_OK;
}
