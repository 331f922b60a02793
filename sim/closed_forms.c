/* Closed forms: properties of the cluster, each form's conditions and values, the table of forms,
 * and the same quantities measured in a schedule. */
#include "sim/closed_forms.h"

#include "sim/cluster_spec.h"
#include "sim/delay_moments.h"
#include "sim/schedule.h"

#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Times that differ by no more than this fraction are equal. */
static const double rounding = 1e-9;

/* --- properties of the cluster --- */

/* Properties of a cluster. Times are means in seconds; those of samplers are only valid if all
 * samplers are alike. */
typedef struct theory_facts {
  const cluster_spec *c;
  double samplers, batches, responses;
  double ahead, window;     /* INFINITY: no limit */
  bool alike;               /* one group of samplers */
  bool constant_generation; /* constant in every group, including all components */
  double generation;        /* seconds per batch */
  bool constant_data;       /* all data delays are constant */
  bool one_data;            /* data delay plus transfer is the same for all samplers */
  double data;              /* data delay and transfer of a batch */
  double upload, download;  /* the longest transfer among all samplers, without delays */
  bool constant_weights;    /* weights take the same constant time to every sampler */
  double weights;           /* delay and transfer of weights */
  bool constant_step;
  double step;
} theory_facts;

/* theory_breaks: returns the condition that the cluster violates, a static text, or NULL if the
 * form holds. theory_say: computes the form's values. */
typedef const char *theory_breaks(const theory_facts *f);
typedef gl_status theory_say(theory *out, const theory_facts *f, gl_error *err);

static double unlimited(int64_t limit) {
  return limit == INT64_MAX ? INFINITY : (double)limit;
}

static bool is_random(const delay_dist *dist) {
  double value;
  return !moment_is_constant(dist, &value);
}

/* The mean decoding time of a batch's responses on a sampler of speed 1. */
static gl_status mean_decoding(const response_spec *r, size_t responses, double *out,
                               gl_error *err) {
  *out = 0;
  if (r->lengths == NULL) return GL_OK;
  double longest = 0, rest = 0;
  const size_t wave = r->concurrency < responses ? r->concurrency : responses;
  const size_t waves = responses / wave, left = responses % wave;
  gl_status status = moment_of_longest(&longest, r, (double)wave, err);
  if (status == GL_OK && left > 0) status = moment_of_longest(&rest, r, (double)left, err);
  *out = ((double)waves * longest + rest) / r->tokens_per_s;
  return status;
}

static gl_status mean_generation(const sampler_group *g, size_t responses, double *out,
                                 gl_error *err) {
  double once = 0, decoding = 0, jitter = 0;
  gl_status status = moment_of(&once, g->generation, 1, err);
  if (status == GL_OK) status = mean_decoding(&g->responses, responses, &decoding, err);
  if (status == GL_OK) status = moment_of(&jitter, g->jitter, 1, err);
  *out = (once + decoding) * jitter / g->speed;
  return status;
}

static bool theory_same(double a, double b) {
  return fabs(a - b) <= rounding * fmax(fabs(a), fabs(b));
}

static gl_status theory_read_group(theory_facts *f, size_t i, gl_error *err) {
  const sampler_group *g = &f->c->groups[i];
  double generation = 0, data = 0, weights = 0;
  gl_status status = mean_generation(g, f->c->samples_per_batch, &generation, err);
  if (status == GL_OK) status = moment_of(&data, g->data_delay, 1, err);
  if (status == GL_OK) status = moment_of(&weights, g->delay, 1, err);
  const double upload = f->c->rollout_bytes / g->up.bandwidth;
  const double download = f->c->weights_bytes / g->down.bandwidth;
  if (is_random(g->generation) || is_random(g->jitter) ||
      (g->responses.lengths != NULL && is_random(g->responses.lengths)))
    f->constant_generation = 0;
  if (is_random(g->data_delay)) f->constant_data = 0;
  if (i > 0 && !theory_same(f->data, data + upload)) f->one_data = 0;
  if (is_random(g->delay) || (i > 0 && !theory_same(f->weights, weights + download)))
    f->constant_weights = 0;
  f->generation = generation;
  f->data = data + upload;
  f->weights = weights + download;
  f->upload = fmax(f->upload, upload);
  f->download = fmax(f->download, download);
  return status;
}

static gl_status read_facts(theory_facts *f, const cluster_spec *c, gl_error *err) {
  *f = (theory_facts){.c = c,
                      .samplers = (double)c->n_samplers,
                      .batches = (double)c->batches,
                      .responses = (double)c->samples_per_batch,
                      .ahead = unlimited(c->ahead),
                      .window = unlimited(c->window),
                      .alike = c->n_groups == 1,
                      .constant_generation = 1,
                      .constant_data = 1,
                      .one_data = 1,
                      .constant_weights = 1,
                      .constant_step = !is_random(c->step)};
  gl_status status = moment_of(&f->step, c->step, 1, err);
  for (size_t i = 0; i < c->n_groups && status == GL_OK; ++i) status = theory_read_group(f, i, err);
  return status;
}

/* --- conditions of every form --- */

static bool link_loses(const link_spec *link) {
  return link->loss > 0 || link->to_bad > 0;
}

/* Conditions that a cluster violates, joined with "; ". */
typedef struct broken_conditions {
  char text[800];
} broken_conditions;

static void add_broken(broken_conditions *to, bool is_broken, const char *condition) {
  const size_t n = strlen(to->text);
  if (is_broken) snprintf(to->text + n, sizeof to->text - n, "%s%s", n > 0 ? "; " : "", condition);
}

static void add_broken_of_group(broken_conditions *to, const cluster_spec *c,
                                const sampler_group *g) {
  const response_spec *r = &g->responses;
  const bool has_lengths = r->lengths != NULL;
  add_broken(to, !delay_is_zero(g->mtbf), "cluster.mtbf is 0 (no sampler crashes)");
  add_broken(to, link_loses(&g->up), "cluster.up loses no packets");
  add_broken(to, link_loses(&g->down), "cluster.down loses no packets");
  add_broken(to, c->coupled && !has_lengths, "cluster.lengths is given, or cluster.coupled is off");
  add_broken(to, has_lengths && c->bytes_per_token > 0 && isfinite(g->up.bandwidth),
             "cluster.bytes_per_token is 0, or cluster.up.bandwidth unlimited");
  add_broken(to,
             has_lengths && r->batching == BATCHING_CONTINUOUS &&
                 r->concurrency < c->samples_per_batch && is_random(r->lengths),
             "cluster.concurrency holds all responses of a batch, or cluster.batching is padded, "
             "or cluster.lengths is constant");
}

/* Refuses distributions without a finite mean, or with dependent samples. */
static void add_broken_dist(broken_conditions *to, const cluster_spec *c) {
  cluster_dist dist;
  bool is_dependent = false, is_infinite = false;
  for (size_t i = 0; cluster_dist_at(c, i, &dist); ++i) {
    const bool limited = strcmp(dist.field, "cluster.lengths") == 0;
    const bool dependent = dist.dist->kind == DELAY_GILBERT_ELLIOTT;
    is_dependent |= dependent;
    is_infinite |= !dependent && !limited && !moment_is_finite(dist.dist, 1);
  }
  add_broken(to, is_dependent, "no distribution is gilbert_elliott (draws are independent)");
  add_broken(to, is_infinite,
             "every distribution has a finite mean (pareto: shape at least 1.05, or clamped)");
}

static void add_broken_of_all(broken_conditions *to, const cluster_spec *c) {
  const struct {
    bool is_broken;
    const char *condition;
  } rules[] = {
      {c->unit != UNIT_BATCH, "cluster.unit is batch"},
      {c->tokens > 0, "cluster.learner.tokens is 0 (an update trains whole batches)"},
      {c->stale != STALE_DISCARD, "cluster.stale is discard"},
      {c->interrupt > 0, "cluster.interrupt is 0"},
      {c->network != NULL, "cluster.network is left out"},
      {c->restarts != NULL, "cluster.restarts is left out"},
      {c->prompts != NULL, "cluster.prompt_lengths is left out"},
      {c->sync != SYNC_PUSH, "cluster.sync is push"},
      {c->queue == QUEUE_HETERORL || cluster_keeps_order(c),
       "cluster.learner.queue is fifo, lifo or oldest_version"},
      {c->publish_every != 1, "cluster.learner.publish_every is 1"},
      {!delay_is_zero(c->pause), "cluster.learner.eval_pause is 0"},
      {c->reject > 0, "cluster.learner.reject is 0"},
      {c->capacity != 0, "cluster.learner.capacity is 0 (unlimited)"},
  };
  for (size_t i = 0; i < sizeof rules / sizeof *rules; ++i)
    add_broken(to, rules[i].is_broken, rules[i].condition);
  add_broken_dist(to, c);
  const size_t before = strlen(to->text);
  for (size_t i = 0; i < c->n_groups && strlen(to->text) == before; ++i)
    add_broken_of_group(to, c, &c->groups[i]);
}

/* --- helpers of forms --- */

static theory_value exactly(double x) {
  return (theory_value){x, x};
}

/* Computes the three rates from the seconds per update. */
static void set_rates(theory *out, const theory_facts *f, double cycle, double sampler_busy) {
  out->value[THEORY_SAMPLES_PER_S] = exactly(f->batches * f->responses / cycle);
  out->value[THEORY_LEARNER_UTILISATION] = exactly(f->step / cycle);
  out->value[THEORY_SAMPLER_UTILISATION] = exactly(sampler_busy / (f->samplers * cycle));
}

static gl_status theory_new_fractions(theory *out, size_t n, gl_error *err) {
  out->staleness = calloc(n, sizeof *out->staleness);
  if (out->staleness == NULL) return gl_fail_memory(err, "a distribution of staleness");
  out->n_staleness = n;
  return GL_OK;
}

/* The mean of a distribution given by all its fractions. */
static theory_value mean_of_fractions(const theory *t) {
  double mean = 0;
  for (size_t i = 0; i < t->n_staleness; ++i) mean += (double)i * t->staleness[i];
  return exactly(mean);
}

/* --- synchronous: maximum of the batches' times --- */

static size_t random_parts(const sampler_group *g) {
  const delay_dist *lengths = g->responses.lengths;
  return (size_t)is_random(g->generation) + (size_t)is_random(g->jitter) +
         (size_t)is_random(g->data_delay) + (size_t)(lengths != NULL && is_random(lengths));
}

/* Whether an update waits for more than one sampler. */
static bool waits_for_several(const theory_facts *f) {
  return f->samplers > 1 && f->batches > 1;
}

static const char *several_break(const theory_facts *f) {
  const cluster_spec *c = f->c;
  for (size_t i = 0; i < c->n_groups; ++i) {
    const response_spec *r = &c->groups[i].responses;
    const int random_lengths = r->lengths != NULL && is_random(r->lengths);
    if (random_parts(&c->groups[i]) > 1)
      return "at most one of cluster.generation, lengths, jitter and data_delay is random where an "
             "update takes several batches";
    if (random_lengths && !f->alike)
      return "samplers whose cluster.lengths are random are all alike";
    if (random_lengths && r->concurrency < c->samples_per_batch)
      return "cluster.concurrency holds all responses of a batch where an update takes several";
  }
  return NULL;
}

static const char *synchronous_breaks(const theory_facts *f) {
  if (f->ahead != 0) return "cluster.ahead is 0";
  if (f->samplers > 1 && f->batches > f->samplers)
    return "cluster.learner.batches is at most the number of samplers, or there is one sampler";
  if (f->batches < f->samplers && !f->alike)
    return "samplers are alike where cluster.learner.batches is below their number";
  if (!f->constant_weights && f->samplers > 1 && !(f->c->shared_delays && f->alike))
    return "cluster.delay is the same for all samplers (constant, shared, or of one sampler)";
  if (f->samplers == 1 && f->batches > 1 && !f->constant_data)
    return "cluster.data_delay is constant where one sampler makes several batches";
  return waits_for_several(f) ? several_break(f) : NULL;
}

/* The time from the start of a group's batch to its arrival, as a scaled and shifted distribution.
 */
static gl_status draws_of(const theory_facts *f, size_t group, size_t count, moment_draws *out,
                          gl_error *err) {
  const sampler_group *g = &f->c->groups[group];
  double once = 0, decoding = 0, jitter = 0, data = 0, generation = 0;
  gl_status status = moment_of(&once, g->generation, 1, err);
  if (status == GL_OK)
    status = mean_decoding(&g->responses, f->c->samples_per_batch, &decoding, err);
  if (status == GL_OK) status = moment_of(&jitter, g->jitter, 1, err);
  if (status == GL_OK) status = moment_of(&data, g->data_delay, 1, err);
  generation = (once + decoding) * jitter / g->speed;
  const double upload = f->c->rollout_bytes / g->up.bandwidth;
  if (is_random(g->generation))
    *out = (moment_draws){g->generation, jitter / g->speed,
                          decoding * jitter / g->speed + data + upload, count};
  else if (is_random(g->jitter))
    *out = (moment_draws){g->jitter, (once + decoding) / g->speed, data + upload, count};
  else
    *out = (moment_draws){g->data_delay, 1, generation + upload, count};
  return status;
}

/* If only lengths are random, the longest response of all batches determines the time. */
static gl_status longest_of_all(const theory_facts *f, double *out, gl_error *err) {
  const sampler_group *g = &f->c->groups[0];
  double once = 0, jitter = 0, longest = 0;
  gl_status status = moment_of(&once, g->generation, 1, err);
  if (status == GL_OK) status = moment_of(&jitter, g->jitter, 1, err);
  if (status == GL_OK)
    status = moment_of_longest(&longest, &g->responses, f->batches * f->responses, err);
  *out = (once + longest / g->responses.tokens_per_s) * jitter / g->speed + f->data;
  return status;
}

/* Mean seconds from the start of an update's batches to the arrival of the last one. */
static gl_status mean_round(const theory_facts *f, double *out, gl_error *err) {
  const delay_dist *lengths = f->c->groups[0].responses.lengths;
  if (!waits_for_several(f)) {
    *out = f->batches * f->generation + f->data;
    return GL_OK;
  }
  if (f->alike && lengths != NULL && is_random(lengths)) return longest_of_all(f, out, err);
  moment_draws *draws = calloc(f->c->n_groups, sizeof *draws);
  if (draws == NULL) return gl_fail_memory(err, "the times of samplers");
  gl_status status = GL_OK;
  for (size_t i = 0; i < f->c->n_groups && status == GL_OK; ++i)
    status = draws_of(f, i, f->alike ? f->c->batches : f->c->groups[i].count, &draws[i], err);
  if (status == GL_OK) status = moment_of_largest(out, draws, f->c->n_groups, err);
  free(draws);
  return status;
}

/* Generation seconds per update, summed over samplers. */
static gl_status generated_an_update(const theory_facts *f, double *out, gl_error *err) {
  gl_status status = GL_OK;
  *out = f->batches * f->generation;
  if (f->alike) return GL_OK;
  *out = 0;
  for (size_t i = 0; i < f->c->n_groups && status == GL_OK; ++i) {
    double one = 0;
    status = mean_generation(&f->c->groups[i], f->c->samples_per_batch, &one, err);
    *out += one * (double)f->c->groups[i].count;
  }
  return status;
}

static gl_status theory_synchronous(theory *out, const theory_facts *f, gl_error *err) {
  double round = 0, busy = 0;
  gl_status status = mean_round(f, &round, err);
  if (status == GL_OK) status = generated_an_update(f, &busy, err);
  if (status == GL_OK) status = theory_new_fractions(out, 1, err);
  if (status != GL_OK) return status;
  out->staleness[0] = 1;
  out->value[THEORY_STALENESS] = exactly(0);
  set_rates(out, f, f->weights + round + f->step, busy);
  return GL_OK;
}

/* --- constant times --- */

static double periods(double time, double period) {
  return ceil(time / period - rounding);
}

/* updates_a_round: number of updates fed by a round of batches, one from each sampler.
 * rounds_an_update: number of rounds that one update takes. */
static double updates_a_round(const theory_facts *f) {
  return fmax(1, f->samplers / f->batches);
}

static double rounds_an_update(const theory_facts *f) {
  return fmax(1, f->batches / f->samplers);
}

/* The staleness of a round's first update. */
static double constant_lag(const theory_facts *f) {
  double lag = 0;
  const double r = updates_a_round(f);
  for (double l = 1; l <= r; ++l) lag += periods(f->data + f->weights + l * f->step, f->generation);
  return lag;
}

static double constant_largest(const theory_facts *f) {
  const double w = rounds_an_update(f);
  return w > 1 ? ceil(constant_lag(f) / w) : constant_lag(f) + updates_a_round(f) - 1;
}

static const char *constants_break(const theory_facts *f) {
  if (!f->alike) return "samplers are alike";
  if (!f->constant_generation) return "cluster.generation, lengths and jitter are constant";
  if (!f->constant_data) return "cluster.data_delay is constant";
  if (!f->constant_weights) return "cluster.delay is constant";
  if (!f->constant_step) return "cluster.learner.step is constant";
  if (f->upload > f->generation * (1 + rounding))
    return "a batch's transfer (rollout_bytes over up.bandwidth) takes no longer than its "
           "generation";
  return NULL;
}

static const char *constant_breaks(const theory_facts *f) {
  const char *broken = constants_break(f);
  if (broken != NULL) return broken;
  const double r = updates_a_round(f), w = rounds_an_update(f);
  if (fmod(f->samplers, f->batches) != 0 && fmod(f->batches, f->samplers) != 0)
    return "cluster.learner.batches divides the number of samplers or is a multiple of it";
  if (r * f->step > w * f->generation * (1 + rounding))
    return "the learner keeps up: updates a round x cluster.learner.step are within the "
           "generation time of the batches they take";
  if (f->download > (r > 1 ? f->step : w * f->generation) * (1 + rounding))
    return "a transfer of weights (weights_bytes over down.bandwidth) ends before the next begins";
  if (r > 1e6 || w > 1e6) return "samplers over cluster.learner.batches is within 1e-6 to 1e6";
  if (constant_largest(f) > 1e6) return "weights come back within 1e6 updates";
  if (f->ahead < constant_largest(f)) return "cluster.ahead is at least the largest staleness";
  if (f->window < constant_largest(f)) return "cluster.window is at least the largest staleness";
  return NULL;
}

static gl_status theory_constant(theory *out, const theory_facts *f, gl_error *err) {
  const double r = updates_a_round(f), w = rounds_an_update(f), lag = constant_lag(f);
  gl_status status = theory_new_fractions(out, (size_t)constant_largest(f) + 1, err);
  if (status != GL_OK) return status;
  for (double i = 0; i < r; ++i)
    if (w == 1) out->staleness[(size_t)(lag + i)] += 1 / r;
  for (double m = 0; m < w; ++m)
    if (w > 1) out->staleness[(size_t)fmax(0, ceil((lag - m) / w))] += 1 / w;
  out->value[THEORY_STALENESS] = mean_of_fractions(out);
  set_rates(out, f, w * f->generation / r, f->batches * f->generation);
  return GL_OK;
}

/* --- constant times behind a gate --- */

/* Condition: batches are trained in order. */
static const char *order_breaks(const theory_facts *f) {
  return f->c->queue == QUEUE_LIFO ? "cluster.learner.queue is fifo or oldest_version" : NULL;
}

static const char *gated_constant_breaks(const theory_facts *f) {
  const char *broken = constants_break(f);
  if (broken != NULL) return broken;
  if (f->batches != f->samplers) return "cluster.learner.batches is the number of samplers";
  if (isinf(f->ahead)) return "cluster.ahead is limited";
  if (f->ahead > 1e6) return "cluster.ahead is at most 1e6";
  if (f->window < f->ahead) return "cluster.window is at least cluster.ahead";
  if (f->download > fmax(f->step, f->generation) * (1 + rounding))
    return "a transfer of weights (weights_bytes over down.bandwidth) ends before the next begins";
  return order_breaks(f);
}

/* The case in which the gate closes. If it never closes, theory_constant() applies, which precedes
 * this form in the table. */
static gl_status gated_constant(theory *out, const theory_facts *f, gl_error *err) {
  const double way = f->generation + f->data + f->step + f->weights;
  const double cycle = fmax(fmax(f->generation, f->step), way / (f->ahead + 1));
  gl_status status = theory_new_fractions(out, (size_t)f->ahead + 1, err);
  if (status != GL_OK) return status;
  out->staleness[(size_t)f->ahead] = 1;
  out->value[THEORY_STALENESS] = exactly(f->ahead);
  set_rates(out, f, cycle, f->batches * f->generation);
  return GL_OK;
}

/* --- queues: batches arrive at the learner at random --- */

/* A distribution of staleness that needs more values than this is omitted; the listed values
 * contain all but about 1e-9 of the probability. */
enum { MOST_FRACTIONS = 4096 };
static const double fractions_a_mean = 25;
/* The largest utilisation at which the learner counts as keeping up. Means come from integrals, so
 * a true 1 may be computed as slightly less. */
static const double busiest = 1 - 1e-6;

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
  return broken != NULL ? broken : order_breaks(f);
}

/* Whether new weights always reach the sampler after it has started its next batch, so that this
 * batch does not use them. */
static bool takes_time(const theory_facts *f) {
  return f->data + f->weights > 0 || delay_survival(f->c->step, 0) == 1;
}

static bool is_exponential(const delay_dist *dist) {
  return dist->kind == DELAY_EXPONENTIAL && dist->exponential.shift == 0 && dist->offset == 0 &&
         dist->clamp_lo <= 0 && isinf(dist->clamp_hi);
}

static const char *exponential_breaks(const theory_facts *f) {
  for (size_t i = 0; i < f->c->n_groups; ++i) {
    const sampler_group *g = &f->c->groups[i];
    if (!is_exponential(g->generation)) return "cluster.generation is exponential without shift";
    if (is_random(g->jitter)) return "cluster.jitter is constant";
    if (g->responses.lengths != NULL) return "cluster.lengths is absent";
  }
  return NULL;
}

/* --- Poisson batches: M/G/1 --- */

/* Batches per second of one sampler of a group with exponential generation times. */
static double theory_rate_of(const sampler_group *g) {
  return g->speed / (g->generation->exponential.mean * delay_quantile(g->jitter, 0.5));
}

static double rate_of_all(const theory_facts *f) {
  double rate = 0;
  for (size_t i = 0; i < f->c->n_groups; ++i)
    rate += (double)f->c->groups[i].count * theory_rate_of(&f->c->groups[i]);
  return rate;
}

static const char *poisson_breaks(const theory_facts *f) {
  const char *broken = open_breaks(f);
  if (broken == NULL) broken = exponential_breaks(f);
  if (broken != NULL) return broken;
  if (!moment_is_finite(f->c->step, 2)) return "cluster.learner.step has a finite variance";
  if (!takes_time(f)) return "cluster.learner.step, data_delay or delay is always above 0";
  if (rate_of_all(f) * f->step > busiest)
    return "the learner keeps up: batches a second x cluster.learner.step is below 1";
  return NULL;
}

/* Convolves a distribution with a geometric one, P(k) = (1 - q) q^k. */
static void add_geometric(double *fraction, size_t n, double q) {
  double before = 0;
  for (size_t i = 0; i < n; ++i) {
    before = before * q + fraction[i];
    fraction[i] = (1 - q) * before;
  }
}

/* Staleness is the sum of 1, Poisson(passed), the other samplers' batches during generation, and
 * the batches at the learner, a geometric number in M/M/1. */
static gl_status poisson_fractions(theory *out, const theory_facts *f, double rate, double passed,
                                   gl_error *err) {
  const double mean = out->value[THEORY_STALENESS].low;
  if (!is_exponential(f->c->step) && f->step > 0) return GL_OK;
  if (fractions_a_mean * mean + 50 > MOST_FRACTIONS) return GL_OK;
  const size_t n = (size_t)(fractions_a_mean * mean) + 50;
  double *one = calloc(n, sizeof *one);
  if (one == NULL) return gl_fail_memory(err, "a distribution of staleness");
  gl_status status = theory_new_fractions(out, n, err);
  for (size_t g = 0; g < f->c->n_groups && status == GL_OK; ++g) {
    const double own = theory_rate_of(&f->c->groups[g]) / rate;
    one[0] = 0;
    for (size_t k = 1; k < n; ++k) /* GSL's density of mean 0 is not a number */
      one[k] = passed > 0 ? gsl_ran_poisson_pdf((unsigned)k - 1, passed) : k == 1;
    add_geometric(one, n, 1 - own);
    add_geometric(one, n, rate * f->step);
    for (size_t k = 0; k < n; ++k)
      out->staleness[k] += (double)f->c->groups[g].count * own * one[k];
  }
  free(one);
  return status;
}

static gl_status theory_poisson(theory *out, const theory_facts *f, gl_error *err) {
  const double rate = rate_of_all(f), busy = rate * f->step;
  const double passed = rate * (f->data + f->weights);
  double square = 0;
  gl_status status = moment_of(&square, f->c->step, 2, err);
  if (status != GL_OK) return status;
  const double at_learner = busy + rate * rate * square / (2 * (1 - busy));
  const double stale = f->samplers + passed + at_learner;
  out->value[THEORY_STALENESS] = (theory_value){stale, stale};
  set_rates(out, f, 1 / rate, f->samplers / rate);
  return poisson_fractions(out, f, rate, passed, err);
}

/* --- one exponential sampler behind a gate: a closed tandem --- */

static const char *closed_breaks(const theory_facts *f) {
  const char *broken = gate_breaks(f);
  if (broken == NULL) broken = exponential_breaks(f);
  if (broken != NULL) return broken;
  if (f->batches != 1) return "cluster.learner.batches is 1";
  if (!is_exponential(f->c->step)) return "cluster.learner.step is exponential without shift";
  if (f->data > 0) return "cluster.data_delay is 0";
  if (f->weights > 0) return "cluster.delay is 0";
  return f->ahead > 1e6 ? "cluster.ahead is at most 1e6" : NULL;
}

/* ahead + 1 batches circulate between sampler and learner; i of them are at the learner with
 * probability proportional to (step / generation)^i. A batch started when another ends has as
 * staleness the number of batches then at the learner. A batch started after the sampler was
 * blocked has all others at the learner. */
static gl_status theory_closed(theory *out, const theory_facts *f, gl_error *err) {
  const size_t most = (size_t)f->ahead;
  const double ratio = f->step / f->generation;
  const double base =
      ratio > 1 ? -log(ratio) * (f->ahead + 1) : 0; /* scales the largest weight to 1 */
  double sum = 0, mean = 0;
  gl_status status = theory_new_fractions(out, most + 1, err);
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
  set_rates(out, f, f->generation / (1 - gated), f->generation);
  return GL_OK;
}

/* --- one sampler of any distribution: bounds of G/G/1 --- */
static const char *renewal_breaks(const theory_facts *f) {
  const sampler_group *g = &f->c->groups[0];
  if (f->samplers != 1) return "cluster.samplers is 1";
  const char *broken = open_breaks(f);
  if (broken != NULL) return broken;
  if (g->responses.lengths != NULL && is_random(g->responses.lengths))
    return "cluster.lengths is absent or constant";
  if (!moment_is_finite(g->generation, 2) || !moment_is_finite(g->jitter, 2))
    return "cluster.generation and cluster.jitter have finite variances";
  if (!moment_is_finite(f->c->step, 2)) return "cluster.learner.step has a finite variance";
  if (f->step > busiest * f->generation)
    return "the learner keeps up: cluster.learner.step is below the mean generation time";
  return NULL;
}

/* E[G^2] of the generation time G. */
static gl_status generation_square(const theory_facts *f, double *out, gl_error *err) {
  const sampler_group *g = &f->c->groups[0];
  double once = 0, square = 0, jitter = 0, decoding = 0;
  gl_status status = moment_of(&once, g->generation, 1, err);
  if (status == GL_OK) status = moment_of(&square, g->generation, 2, err);
  if (status == GL_OK) status = moment_of(&jitter, g->jitter, 2, err);
  if (status == GL_OK)
    status = mean_decoding(&g->responses, f->c->samples_per_batch, &decoding, err);
  *out = (square + 2 * once * decoding + decoding * decoding) * jitter / (g->speed * g->speed);
  return status;
}

/* Staleness is 1 plus the number of batches started between the end of a batch's generation and the
 * arrival of its weights. This is a renewal function, between t/m - 1 and t/m + the squared
 * coefficient of variation. */
static gl_status theory_renewal(theory *out, const theory_facts *f, gl_error *err) {
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
  set_rates(out, f, m, m);
  return GL_OK;
}

/* --- one sampler of any distribution behind a gate: bounds --- */
/* An update takes at least the time of its batches, of its step, and of a round divided by the
 * ahead + 1 updates that share it; and at most the time without any overlap. */
static gl_status theory_gated(theory *out, const theory_facts *f, gl_error *err) {
  (void)err;
  const double generation = f->batches * f->generation;
  const double way = generation + f->data + f->step + f->weights;
  const double least = fmax(fmax(generation, f->step), way / (f->ahead + 1));
  theory slow = {0};
  set_rates(out, f, least, generation);
  set_rates(&slow, f, way, generation);
  for (size_t q = 0; q < THEORY_QUANTITIES; ++q) out->value[q].low = slow.value[q].low;
  out->value[THEORY_STALENESS] = (theory_value){0, f->ahead};
  return GL_OK;
}

/* --- the table --- */

typedef struct form {
  const char *name, *range, *source;
  /* Returns the violated condition, static; NULL: the form holds. add_broken_of_all() adds nothing.
   */
  theory_breaks *breaks;
  theory_say *say;
} form;

static const form table[] = {
    {"synchronous",
     "ahead 0; weights reach all samplers at once; an update takes at most one batch of each "
     "sampler, or all of one; of several random batches one part is random",
     "order statistics: David and Nagaraja (2003), §2.1", synchronous_breaks, theory_synchronous},
    {"constant times",
     "alike samplers, all times constant, the learner keeps up, the gate and the window never act",
     "paper/methods.md §10.9, §10.11", constant_breaks, theory_constant},
    {"constant times, gated",
     "alike samplers, all times constant, an update takes one batch of each, ahead limited",
     "max-plus cycle time: Baccelli, Cohen, Olsder and Quadrat (1992), §3.2", gated_constant_breaks,
     gated_constant},
    {"Poisson batches",
     "exponential generation, one batch an update, fifo, constant delays, no transfers, no gate or "
     "window, learner's utilisation below 1",
     "M/M/1 and M/G/1 (Pollaczek 1930, Khinchine 1932): Kleinrock (1975), §5.6", poisson_breaks,
     theory_poisson},
    {"closed exponential",
     "one sampler, exponential generation and update, one batch an update, no delays, ahead "
     "limited",
     "closed tandem of two exponential servers: Gordon and Newell (1967)", closed_breaks,
     theory_closed},
    {"G/G/1 bounds",
     "one sampler, one batch an update, finite variances, constant delays, no transfers, no gate "
     "or "
     "window, learner's utilisation below 1",
     "Kingman (1962), Marshall (1968), Lorden (1970)", renewal_breaks, theory_renewal},
    {"gated bounds", "one sampler, constant delays, no transfers, ahead limited",
     "circuits of the max-plus system, and its monotony in ahead: Baccelli et al. (1992), §3.2",
     gate_breaks, theory_gated},
};
enum { FORMS = sizeof table / sizeof *table };

/* Reports which condition of each form is violated. */
static gl_status theory_refuse(const theory_facts *f, gl_error *err) {
  char text[sizeof err->text] = "";
  for (size_t i = 0; i < FORMS; ++i) {
    const size_t n = strlen(text);
    snprintf(text + n, sizeof text - n, "%s%s needs: %s", i > 0 ? "; " : "", table[i].name,
             table[i].breaks(f));
  }
  return gl_fail(err, GL_EINPUT, "no closed form holds for this cluster: %s", text);
}

gl_status sim_theory_of(theory *out, const cluster_spec *spec, gl_error *err) {
  theory_facts f;
  *out = (theory){0};
  broken_conditions broken = {""};
  add_broken_of_all(&broken, spec);
  if (*broken.text != '\0')
    return gl_fail(err, GL_EINPUT, "no closed form holds for this cluster: all need: %s",
                   broken.text);
  gl_status status = read_facts(&f, spec, err);
  if (status != GL_OK) return status;
  size_t i = 0;
  while (i < FORMS && table[i].breaks(&f) != NULL) ++i;
  if (i == FORMS) return theory_refuse(&f, err);
  out->form = table[i].name;
  out->range = table[i].range;
  out->source = table[i].source;
  status = table[i].say(out, &f, err);
  if (status != GL_OK) sim_theory_fini(out);
  return status;
}

void sim_theory_fini(theory *t) {
  free(t->staleness);
  *t = (theory){0};
}

/* --- measurements of a schedule --- */

/* Seconds of generation of trained batches between two times. A batch that is begun before a block
 * and trained in it counts in both as far as it was generated there. */
static double generated_between(const schedule *s, double from, double to) {
  double sum = 0;
  for (size_t i = 0; i < s->n_batches; ++i) {
    const schedule_batch *b = &s->batches[i];
    sum += fmax(0, fmin(b->generated_s, to) - fmax(b->start_s, from));
  }
  return sum;
}

/* Seconds of generation of batches that are not trained when the clock ends. They are the last
 * batches, so measure_block() counts them in the last block. */
static double generated_untrained(const schedule *s, const cluster_spec *spec) {
  const double all = s->clock.sampler_utilisation * s->clock.simulated_s * (double)spec->n_samplers;
  return fmax(0, all - generated_between(s, 0, s->clock.simulated_s));
}

/* One block's value of every quantity. */
static bool measure_block(double value[THEORY_QUANTITIES], const schedule *s,
                          const cluster_spec *spec, size_t first, size_t n) {
  const schedule_update *u = &s->updates[first];
  const double seconds = u[n - 1].end_s - u[-1].end_s;
  double stale = 0, trained = 0, batches = 0;
  double generated = generated_between(s, u[-1].end_s, u[n - 1].end_s);
  for (size_t i = 0; i < n; ++i) {
    trained += u[i].end_s - u[i].start_s;
    for (size_t k = 0; k < u[i].n_batches; ++k, ++batches) {
      const schedule_batch *b = &s->batches[u[i].first_batch + k];
      stale += (double)schedule_staleness(s, &u[i], b);
    }
  }
  if (!(seconds > 0)) return 0;
  if (first + n == s->n_updates) generated += generated_untrained(s, spec);
  value[THEORY_STALENESS] = stale / batches;
  value[THEORY_SAMPLES_PER_S] = batches * (double)spec->samples_per_batch / seconds;
  value[THEORY_LEARNER_UTILISATION] = trained / seconds;
  value[THEORY_SAMPLER_UTILISATION] = generated / (seconds * (double)spec->n_samplers);
  return 1;
}

gl_status sim_theory_measure(theory_measured *out, const schedule *s, const cluster_spec *spec,
                             gl_error *err) {
  double sum[THEORY_QUANTITIES] = {0}, squares[THEORY_QUANTITIES] = {0};
  *out = (theory_measured){.first_update = 0};
  if (s->n_updates < THEORY_LEAST_UPDATES)
    return gl_fail(err, GL_EINPUT,
                   "theory is about the long run, and %zu updates are too few to measure it; give "
                   "the recipe at least %d steps",
                   s->n_updates, THEORY_LEAST_UPDATES);
  const size_t n = (s->n_updates - s->n_updates / 5) / THEORY_BLOCKS;
  out->n_updates = n * THEORY_BLOCKS;
  out->first_update = s->n_updates - out->n_updates;
  for (size_t b = 0; b < THEORY_BLOCKS; ++b) {
    double value[THEORY_QUANTITIES] = {0};
    if (!measure_block(value, s, spec, out->first_update + b * n, n))
      return gl_fail(err, GL_EINPUT, "the clock stands still: its updates take no time");
    for (size_t q = 0; q < THEORY_QUANTITIES; ++q) {
      const double step = value[q] - sum[q];
      sum[q] += step / (double)(b + 1); /* Welford's mean so far */
      squares[q] += step * (value[q] - sum[q]);
    }
  }
  for (size_t q = 0; q < THEORY_QUANTITIES; ++q) {
    out->mean[q] = sum[q];
    out->error[q] = sqrt(squares[q] / (THEORY_BLOCKS - 1) / THEORY_BLOCKS);
  }
  return GL_OK;
}

const char *sim_theory_quantity_name(theory_quantity q) {
  switch (q) {
  case THEORY_STALENESS:
    return "staleness_mean";
  case THEORY_SAMPLES_PER_S:
    return "samples_per_s";
  case THEORY_LEARNER_UTILISATION:
    return "learner_utilisation";
  case THEORY_SAMPLER_UTILISATION:
    return "sampler_utilisation";
  case THEORY_QUANTITIES:
    break;
  }
  return "";
}
