/* Recipes that show the effect of a change in a toy world or on a clock. */
#include "analysis/diagnose/internal.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

/* The toy world of `gepolab run quickstart`, small enough for seconds. */
#define WORLD                                                                                      \
  "steps: 200\neval_every: 10\n"                                                                   \
  "world: {kind: sequence, vocabulary: 4, horizon: 5, prompts: 4, task: sum_mod, policy: {kind: "  \
  "loglinear}}\n"                                                                                  \
  "optimizer: {kind: adam, lr: 0.05}\ntrain: {groups: 8, group_size: 8}\nalgorithm: gspo\n"
/* How to run a recipe of a sweep. */
#define SWEEP                                                                                      \
  "# Written by gepolab diagnose. Seconds to a minute:\n"                                          \
  "#   gepolab sweep FILE -o effect.db && gepolab analyze effect.db\n"
#define FRESH "{preset: sync, generation: 1, learner: {step: 1, eval_pause: 0}}"
/* Every batch is DELAY + 1 updates old. */
#define STALE                                                                                      \
  "{preset: fifo, samplers: 1, generation: 1, delay: %g, learner: {step: 1, eval_pause: 0}}"

/* The measured staleness as a delay of the recipes above: at least one update. */
static double delay_of(const diagnosis *d) {
  const role_series *s = series_of(d, SERIES_STALENESS);
  double mean = d->staleness.mean[STALENESS_OLDEST].value, sum = 0;
  for (size_t i = 0; isnan(mean) && s != NULL && i < s->from->n; ++i) sum += s->from->value[i];
  if (isnan(mean) && s != NULL) mean = sum / (double)s->from->n;
  if (isnan(mean)) return 3; /* not known: staleness 4 and 2 */
  return mean > 2 ? fmin(floor(mean + 0.5), 256) - 1 : 1;
}

static double floor_of(const diagnosis *d) {
  const double floor = d->divergence.part[PART_FLOOR].value;
  return floor > 0 ? floor : 0.01;
}

/* Seconds for a clock, at least a thousandth. */
static double seconds_of(interval v) {
  return v.value > 0.001 ? v.value : 0.001;
}

/* Recipes of the clock alone, for what makes the trainer wait. */
static int clock_recipe(const speed_facts *s, bool is_sync, char *text, size_t size) {
  if (!is_sync)
    return snprintf(text, size,
                    "# Written by gepolab diagnose.\n"
                    "# gepolab sim FILE                        # as measured\n"
                    "# gepolab sim FILE cluster.samplers=2     # twice the samplers\n"
                    "name: diagnose_generation_bound\ndescription: samplers that the trainer waits "
                    "for\nsteps: 200\n"
                    "cluster: {preset: fifo, samplers: 1, generation: %.4g, delay: %.4g, learner: "
                    "{step: %.4g, eval_pause: 0}}\n",
                    seconds_of(s->part[0]) + seconds_of(s->part[3]), seconds_of(s->part[2]),
                    seconds_of(s->part[1]));
  return snprintf(text, size,
                  "# Written by gepolab diagnose.\n"
                  "# gepolab sim FILE                                    # as measured\n"
                  "# gepolab sim FILE cluster.learner.publish_every=4    # weights less often\n"
                  "name: diagnose_sync_bound\ndescription: weight synchronisation that takes the "
                  "time\nsteps: 200\n"
                  "cluster: {preset: sync, generation: %.4g, delay: %.4g, learner: {step: %.4g, "
                  "eval_pause: 0}}\n",
                  seconds_of(s->part[0]), seconds_of(s->part[2]), seconds_of(s->part[1]));
}

static int diagnose_write_recipe(const diagnosis *d, diagnose_cause c, char *text, size_t size) {
  const double delay = delay_of(d);
  switch (c) {
  case CAUSE_MISMATCH: /* noise of deviation s on logits gives k3 of about s^2 / 2 */
    return snprintf(
        text, size,
        SWEEP
        "name: diagnose_engine_mismatch\ndescription: what a divergence at lag 0 costs\n" WORLD
        "cluster: " FRESH "\nsweep:\n"
        "  sampling.behaviour.noise: [0, %.3g, %.3g]\n  seed: [1, 2, 3, 4]\n",
        sqrt(2 * floor_of(d)), 4 * sqrt(2 * floor_of(d)));
  case CAUSE_AGE:
    return snprintf(text, size,
                    SWEEP
                    "name: diagnose_age\ndescription: what staleness costs, and half of it\n" WORLD
                    "sweep:\n  cluster:\n    - " FRESH "\n    - " STALE "\n    - " STALE
                    "\n  seed: [1, 2, 3, 4]\n",
                    floor(delay / 2), delay);
  case CAUSE_RATE:
    return snprintf(text, size,
                    SWEEP
                    "name: diagnose_rate\ndescription: a learning rate that is too high, and lower "
                    "ones\n" WORLD "cluster: " STALE
                    "\nsweep:\n  optimizer.lr: [0.2, 0.05, 0.0125]\n  seed: [1, 2, 3, 4]\n",
                    delay);
  case CAUSE_SMALL_BATCH:
    return snprintf(
        text, size,
        SWEEP "name: diagnose_small_batch\ndescription: more prompts in an update\n" WORLD
              "cluster: " FRESH "\nsweep:\n  train.groups: [1, 4, 16]\n  seed: [1, 2, 3, 4]\n");
  case CAUSE_DISCARD:
    return snprintf(
        text, size,
        SWEEP "name: diagnose_discard_bias\ndescription: what becomes of stale groups: dropped, "
              "or trained with less weight\n"
              "steps: 200\neval_every: 10\n"
              "world: {kind: sequence, vocabulary: 2, horizon: 8, prompts: 2, end_token: true, "
              "task: sum_mod}\n"
              "optimizer: {kind: adam, lr: 0.05}\ntrain: {groups: 8, group_size: 8}\n"
              "algorithm: gspo\n"
              "cluster: {preset: fifo, unit: group, partial: wait, coupled: true, window: 2, "
              "samplers: 4, concurrency: 64, tokens_per_s: 0.05, delay: 5, learner: {step: 8, "
              "eval_pause: 0}}\n"
              "sweep:\n  cluster.stale: [discard, downweight]\n  seed: [1, 2, 3, 4]\n");
  case CAUSE_GENERATION:
  case CAUSE_ENVIRONMENT:
  case CAUSE_SYNC:
    return clock_recipe(&d->speed, c == CAUSE_SYNC, text, size);
  case CAUSE_COUNT:
    break;
  }
  return -1;
}

gl_status diagnosis_recipe(const diagnosis *d, size_t at, char *text, size_t size, gl_error *err) {
  if (at >= d->n_findings || at >= DIAGNOSE_CHANGES)
    return gl_fail(err, GL_EINPUT,
                   d->n_findings == 0 ? "the log shows no cause, so there is no change to make a "
                                        "recipe of"
                                      : "there is no change with that number");
  const int n = diagnose_write_recipe(d, d->finding[at].cause, text, size);
  return n > 0 && (size_t)n < size ? GL_OK
                                   : gl_fail(err, GL_EINTERNAL, "a recipe is longer than its room");
}
