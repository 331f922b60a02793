/* The forms: for each what it needs, what it says, and a line of the table at the end. Those of
 * queues are in theory_queues.c. */
#include "sim/theory.h"

#include "sim/theory_forms.h"
#include "sim/theory_moments.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Times are compared up to rounding: what ends within this share of a moment ends at it. */
static const double rounding = 1e-9;

/* --- what the cluster is --- */

static double unlimited(int64_t limit) {
  return limit == INT64_MAX ? INFINITY : (double)limit;
}

int sim_theory_is_random(const delay_dist *dist) {
  double value;
  return !moment_is_constant(dist, &value);
}

/* The mean decoding time of a batch's responses on a sampler of speed 1. */
gl_status sim_theory_decoding(const response_spec *r, size_t responses, double *out,
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
  if (status == GL_OK) status = sim_theory_decoding(&g->responses, responses, &decoding, err);
  if (status == GL_OK) status = moment_of(&jitter, g->jitter, 1, err);
  *out = (once + decoding) * jitter / g->speed;
  return status;
}

static int same(double a, double b) {
  return fabs(a - b) <= rounding * fmax(fabs(a), fabs(b));
}

static gl_status read_group(theory_facts *f, size_t i, gl_error *err) {
  const sampler_group *g = &f->c->groups[i];
  double generation = 0, data = 0, weights = 0;
  gl_status status = mean_generation(g, f->c->samples_per_batch, &generation, err);
  if (status == GL_OK) status = moment_of(&data, g->data_delay, 1, err);
  if (status == GL_OK) status = moment_of(&weights, g->delay, 1, err);
  const double upload = f->c->rollout_bytes / g->up.bandwidth;
  const double download = f->c->weights_bytes / g->down.bandwidth;
  if (sim_theory_is_random(g->generation) || sim_theory_is_random(g->jitter) ||
      (g->responses.lengths != NULL && sim_theory_is_random(g->responses.lengths)))
    f->constant_generation = 0;
  if (sim_theory_is_random(g->data_delay)) f->constant_data = 0;
  if (i > 0 && !same(f->data, data + upload)) f->one_data = 0;
  if (sim_theory_is_random(g->delay) || (i > 0 && !same(f->weights, weights + download)))
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
                      .constant_step = !sim_theory_is_random(c->step)};
  gl_status status = moment_of(&f->step, c->step, 1, err);
  for (size_t i = 0; i < c->n_groups && status == GL_OK; ++i) status = read_group(f, i, err);
  return status;
}

/* --- what every form needs --- */

static int loses(const link_spec *link) {
  return link->loss > 0 || link->to_bad > 0;
}

static const char *group_breaks(const cluster_spec *c, const sampler_group *g) {
  const response_spec *r = &g->responses;
  if (!delay_is_zero(g->mtbf)) return "cluster.mtbf is 0 (no sampler crashes)";
  if (loses(&g->up)) return "cluster.up loses no packets";
  if (loses(&g->down)) return "cluster.down loses no packets";
  if (c->coupled && r->lengths == NULL)
    return "cluster.lengths is given, or cluster.coupled is off";
  if (r->lengths == NULL) return NULL;
  if (c->bytes_per_token > 0 && isfinite(g->up.bandwidth))
    return "cluster.bytes_per_token is 0, or cluster.up.bandwidth unlimited";
  if (r->batching == BATCHING_CONTINUOUS && r->concurrency < c->samples_per_batch &&
      sim_theory_is_random(r->lengths))
    return "cluster.concurrency holds all responses of a batch, or cluster.batching is padded, or "
           "cluster.lengths is constant";
  return NULL;
}

/* A distribution without a finite mean, or whose draws depend on each other. */
static const char *dist_breaks(const cluster_spec *c) {
  cluster_dist dist;
  for (size_t i = 0; cluster_dist_at(c, i, &dist); ++i) {
    if (dist.dist->kind == DELAY_GILBERT_ELLIOTT)
      return "no law is gilbert_elliott (draws are independent)";
    const int limited = strcmp(dist.field, "cluster.lengths") == 0;
    if (!limited && !moment_is_finite(dist.dist, 1))
      return "every law has a finite mean (pareto: shape at least 1.05, or clamped)";
  }
  return NULL;
}

static const char *all_break(const cluster_spec *c) {
  if (c->unit != UNIT_BATCH) return "cluster.unit is batch";
  if (c->tokens > 0) return "cluster.learner.tokens is 0 (an update trains whole batches)";
  if (c->stale != STALE_DISCARD) return "cluster.stale is discard";
  if (c->interrupt > 0) return "cluster.interrupt is 0";
  if (c->network != NULL) return "cluster.network is left out";
  if (c->prompts != NULL) return "cluster.prompt_lengths is left out";
  if (c->sync != SYNC_PUSH) return "cluster.sync is push";
  if (c->queue == QUEUE_HETERORL) return "cluster.learner.queue is fifo, lifo or oldest_version";
  if (c->publish_every != 1) return "cluster.learner.publish_every is 1";
  if (!delay_is_zero(c->pause)) return "cluster.learner.eval_pause is 0";
  if (c->capacity != 0) return "cluster.learner.capacity is 0 (unlimited)";
  const char *broken = dist_breaks(c);
  for (size_t i = 0; i < c->n_groups && broken == NULL; ++i)
    broken = group_breaks(c, &c->groups[i]);
  return broken;
}

/* --- helpers of forms --- */

static theory_value exactly(double x) {
  return (theory_value){x, x};
}

/* Fills the three rates from seconds an update. */
void sim_theory_set_rates(theory *out, const theory_facts *f, double cycle, double sampler_busy) {
  out->value[THEORY_SAMPLES_PER_S] = exactly(f->batches * f->responses / cycle);
  out->value[THEORY_LEARNER_UTILISATION] = exactly(f->step / cycle);
  out->value[THEORY_SAMPLER_UTILISATION] = exactly(sampler_busy / (f->samplers * cycle));
}

gl_status sim_theory_shares_new(theory *out, size_t n, gl_error *err) {
  out->staleness = calloc(n, sizeof *out->staleness);
  if (out->staleness == NULL) return gl_fail_memory(err, "a distribution of staleness");
  out->n_staleness = n;
  return GL_OK;
}

/* The mean of a distribution that has no more staleness than it lists. */
static theory_value mean_of_shares(const theory *t) {
  double mean = 0;
  for (size_t i = 0; i < t->n_staleness; ++i) mean += (double)i * t->staleness[i];
  return exactly(mean);
}

/* --- synchronous: the largest of the times of an update's batches --- */

static size_t random_parts(const sampler_group *g) {
  const delay_dist *lengths = g->responses.lengths;
  return (size_t)sim_theory_is_random(g->generation) + (size_t)sim_theory_is_random(g->jitter) +
         (size_t)sim_theory_is_random(g->data_delay) +
         (size_t)(lengths != NULL && sim_theory_is_random(lengths));
}

/* Whether an update waits for more than one sampler. */
static int waits_for_several(const theory_facts *f) {
  return f->samplers > 1 && f->batches > 1;
}

static const char *several_break(const theory_facts *f) {
  const cluster_spec *c = f->c;
  for (size_t i = 0; i < c->n_groups; ++i) {
    const response_spec *r = &c->groups[i].responses;
    const int random_lengths = r->lengths != NULL && sim_theory_is_random(r->lengths);
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

/* The time from the start of a group's batch to its arrival: its random part, scaled and moved. */
static gl_status draws_of(const theory_facts *f, size_t group, size_t count, moment_draws *out,
                          gl_error *err) {
  const sampler_group *g = &f->c->groups[group];
  double once = 0, decoding = 0, jitter = 0, data = 0, generation = 0;
  gl_status status = moment_of(&once, g->generation, 1, err);
  if (status == GL_OK)
    status = sim_theory_decoding(&g->responses, f->c->samples_per_batch, &decoding, err);
  if (status == GL_OK) status = moment_of(&jitter, g->jitter, 1, err);
  if (status == GL_OK) status = moment_of(&data, g->data_delay, 1, err);
  generation = (once + decoding) * jitter / g->speed;
  const double upload = f->c->rollout_bytes / g->up.bandwidth;
  if (sim_theory_is_random(g->generation))
    *out = (moment_draws){g->generation, jitter / g->speed,
                          decoding * jitter / g->speed + data + upload, count};
  else if (sim_theory_is_random(g->jitter))
    *out = (moment_draws){g->jitter, (once + decoding) / g->speed, data + upload, count};
  else
    *out = (moment_draws){g->data_delay, 1, generation + upload, count};
  return status;
}

/* The longest response of all batches decides, where lengths are what is random. */
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

/* Mean seconds from the start of an update's batches to the arrival of the last. */
static gl_status mean_round(const theory_facts *f, double *out, gl_error *err) {
  const delay_dist *lengths = f->c->groups[0].responses.lengths;
  if (!waits_for_several(f)) {
    *out = f->batches * f->generation + f->data;
    return GL_OK;
  }
  if (f->alike && lengths != NULL && sim_theory_is_random(lengths))
    return longest_of_all(f, out, err);
  moment_draws *draws = calloc(f->c->n_groups, sizeof *draws);
  if (draws == NULL) return gl_fail_memory(err, "the times of samplers");
  gl_status status = GL_OK;
  for (size_t i = 0; i < f->c->n_groups && status == GL_OK; ++i)
    status = draws_of(f, i, f->alike ? f->c->batches : f->c->groups[i].count, &draws[i], err);
  if (status == GL_OK) status = moment_of_largest(out, draws, f->c->n_groups, err);
  free(draws);
  return status;
}

/* Seconds that samplers generate for one update, over all of them. */
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

static gl_status synchronous(theory *out, const theory_facts *f, gl_error *err) {
  double round = 0, busy = 0;
  gl_status status = mean_round(f, &round, err);
  if (status == GL_OK) status = generated_an_update(f, &busy, err);
  if (status == GL_OK) status = sim_theory_shares_new(out, 1, err);
  if (status != GL_OK) return status;
  out->staleness[0] = 1;
  out->value[THEORY_STALENESS] = exactly(0);
  sim_theory_set_rates(out, f, f->weights + round + f->step, busy);
  return GL_OK;
}

/* --- constant times --- */

static double periods(double time, double period) {
  return ceil(time / period - rounding);
}

/* Updates that a round of batches, one of each sampler, feeds; or rounds that one update takes. */
static double updates_a_round(const theory_facts *f) {
  return fmax(1, f->samplers / f->batches);
}

static double rounds_an_update(const theory_facts *f) {
  return fmax(1, f->batches / f->samplers);
}

/* Of round k's first update: its version less the version that the round is generated with. */
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

static gl_status constant(theory *out, const theory_facts *f, gl_error *err) {
  const double r = updates_a_round(f), w = rounds_an_update(f), lag = constant_lag(f);
  gl_status status = sim_theory_shares_new(out, (size_t)constant_largest(f) + 1, err);
  if (status != GL_OK) return status;
  for (double i = 0; i < r; ++i)
    if (w == 1) out->staleness[(size_t)(lag + i)] += 1 / r;
  for (double m = 0; m < w; ++m)
    if (w > 1) out->staleness[(size_t)fmax(0, ceil((lag - m) / w))] += 1 / w;
  out->value[THEORY_STALENESS] = mean_of_shares(out);
  sim_theory_set_rates(out, f, w * f->generation / r, f->batches * f->generation);
  return GL_OK;
}

/* --- constant times behind a gate --- */

const char *sim_theory_order_breaks(const theory_facts *f) {
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
  return sim_theory_order_breaks(f);
}

/* Where constant() holds too, the gate never closes; here it does. */
static gl_status gated_constant(theory *out, const theory_facts *f, gl_error *err) {
  const double way = f->generation + f->data + f->step + f->weights;
  const double cycle = fmax(fmax(f->generation, f->step), way / (f->ahead + 1));
  gl_status status = sim_theory_shares_new(out, (size_t)f->ahead + 1, err);
  if (status != GL_OK) return status;
  out->staleness[(size_t)f->ahead] = 1;
  out->value[THEORY_STALENESS] = exactly(f->ahead);
  sim_theory_set_rates(out, f, cycle, f->batches * f->generation);
  return GL_OK;
}

/* --- the table --- */

typedef struct form {
  const char *name, *range, *source;
  /* The condition that the cluster breaks, static; NULL: the form holds. all_break() is NULL. */
  theory_breaks *breaks;
  theory_say *say;
} form;

static const form table[] = {
    {"synchronous",
     "ahead 0; weights reach all samplers at once; an update takes at most one batch of each "
     "sampler, or all of one; of several random batches one part is random",
     "order statistics: David and Nagaraja (2003), §2.1", synchronous_breaks, synchronous},
    {"constant times",
     "alike samplers, all times constant, the learner keeps up, the gate and the window never act",
     "paper/methods.md §10.9, §10.11", constant_breaks, constant},
    {"constant times, gated",
     "alike samplers, all times constant, an update takes one batch of each, ahead limited",
     "max-plus cycle time: Baccelli, Cohen, Olsder and Quadrat (1992), §3.2", gated_constant_breaks,
     gated_constant},
    {"Poisson batches",
     "exponential generation, one batch an update, fifo, constant delays, no transfers, no gate or "
     "window, learner's utilisation below 1",
     "M/M/1 and M/G/1 (Pollaczek 1930, Khinchine 1932): Kleinrock (1975), §5.6",
     sim_theory_poisson_breaks, sim_theory_poisson},
    {"closed exponential",
     "one sampler, exponential generation and update, one batch an update, no delays, ahead "
     "limited",
     "closed tandem of two exponential servers: Gordon and Newell (1967)", sim_theory_closed_breaks,
     sim_theory_closed},
    {"G/G/1 bounds",
     "one sampler, one batch an update, finite variances, constant delays, no transfers, no gate "
     "or "
     "window, learner's utilisation below 1",
     "Kingman (1962), Marshall (1968), Lorden (1970)", sim_theory_renewal_breaks,
     sim_theory_renewal},
    {"gated bounds", "one sampler, constant delays, no transfers, ahead limited",
     "circuits of the max-plus system, and its monotony in ahead: Baccelli et al. (1992), §3.2",
     sim_theory_gated_breaks, sim_theory_gated},
};
enum { FORMS = sizeof table / sizeof *table };

const char *sim_theory_form_at(size_t i, const char **range) {
  if (i >= FORMS) return NULL;
  if (range != NULL) *range = table[i].range;
  return table[i].name;
}

/* Which condition of each form is broken. */
static gl_status refuse(const theory_facts *f, gl_error *err) {
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
  const char *broken = all_break(spec);
  if (broken != NULL)
    return gl_fail(err, GL_EINPUT, "no closed form holds for this cluster: all need: %s", broken);
  gl_status status = read_facts(&f, spec, err);
  if (status != GL_OK) return status;
  size_t i = 0;
  while (i < FORMS && table[i].breaks(&f) != NULL) ++i;
  if (i == FORMS) return refuse(&f, err);
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
