/* Rules: which causes a log shows, and how far beyond their limits. */
#include "analysis/diagnose/internal.h"

#include <math.h>
#include <stdlib.h>

/* Limits and where they come from. */
#define LIMIT_FACTOR 0.05  /* NeMo-RL: docs/guides/dtensor-tp-accuracy.md:31 (0.6.0) */
#define LIMIT_FLOOR 0.01   /* ten times the 1e-3 nat of NeMo-RL's docs/guides/grpo.md:648 */
#define LIMIT_KL 0.015     /* OpenAI Spinning Up, ppo.py: updates stop at 1.5 target_kl = 0.015 */
#define LIMIT_RESPONSES 16 /* the mean of 16 unit variances has a standard error of 1/4 */
#define LIMIT_SHIFT 0.05
#define LIMIT_WAIT 0.3
#define LIMIT_SERIAL 0.5
#define LIMIT_SYNC 0.2

static const cause_info causes[CAUSE_COUNT] = {
    [CAUSE_MISMATCH] =
        {.name = "engine_mismatch",
         .title = "sampler and learner compute different probabilities with the same weights",
         .measured = "divergence at lag 0: mean exp(|log p - log q|) - 1, or k3 in nats where only "
                     "series are known",
         .limit_about = "NeMo-RL calls a mean factor above 1.05 a framework problem "
                        "(docs/guides/dtensor-tp-accuracy.md); it finds k3 of 0.001 nats usual "
                        "(docs/guides/grpo.md), and ten times that is the limit for series",
         .advice = "correct for it with truncated importance weights, then find its origin: "
                   "precision, kernels, routing of experts, sampling settings, tokenization",
         .instead = "a smaller staleness bound cannot help: the divergence is there at lag 0"},
    [CAUSE_AGE] =
        {.name = "age",
         .title = "the divergence comes from old weights",
         .measured = "divergence k3 beyond that at lag 0, nats per token",
         .limit_about = "PPO stops its epochs at a divergence of 0.015 nats between the policy of "
                        "the data and the learner (Spinning Up, 1.5 target_kl)",
         .advice = "lower the bound of the staleness, or the learning rate by the same factor",
         .instead = "correcting the engines cannot help: the divergence grows with the lag"},
    [CAUSE_RATE] = {.name = "rate_too_high",
                    .title = "one update moves the policy too far",
                    .measured = "growth of k3 per version of lag, nats per token",
                    .limit_about =
                        "PPO stops its epochs at 0.015 nats (Spinning Up, 1.5 target_kl)",
                    .advice = "lower the learning rate; k3 of one update goes with its square",
                    .instead = "a smaller staleness bound helps little: one version is too far"},
    [CAUSE_SMALL_BATCH] =
        {.name = "small_batch",
         .title = "too few responses of an update carry a signal",
         .measured = "responses per update in groups whose rewards differ",
         .limit_about = "the mean of 16 advantages of variance 1 has a standard error of 1/4",
         .advice = "train on more prompts in an update, or leave out prompts whose groups have "
                   "equal rewards",
         .instead = NULL},
    [CAUSE_DISCARD] =
        {.name = "discard_bias",
         .title = "long responses are dropped more often than short ones",
         .measured = "fraction by which dropping shortens the mean response",
         .limit_about = "5 % of the length is the smallest change that is reported",
         .advice = "wait for old responses or down-weight them instead of dropping them; or start "
                   "fewer at once",
         .instead = "a smaller staleness bound drops more"},
    [CAUSE_GENERATION] = {.name = "generation_bound",
                          .title = "the trainer waits for responses",
                          .measured = "fraction of a step that the trainer waits or generates",
                          .limit_about = "0.3 of a step where generation runs beside training, 0.5 "
                                         "where they alternate: below, removing it would speed the "
                                         "run up by less than 1.4 (2) times",
                          .advice = "more samplers, or generation beside training",
                          .instead = NULL,
                          .is_speed = true},
    [CAUSE_SYNC] = {.name = "sync_bound",
                    .title = "weight synchronisation takes the time",
                    .measured = "fraction of a step for weight synchronisation",
                    .limit_about =
                        "0.2 of a step: below, removing it would speed the run up by less "
                        "than 1.25 times",
                    .advice = "send weights less often, or faster",
                    .instead = "less often means staler data",
                    .is_speed = true},
    [CAUSE_ENVIRONMENT] = {.name = "environment_bound",
                           .title = "environments, tools or rewards take the time",
                           .measured = "fraction of a step for environments and rewards",
                           .limit_about =
                               "0.3 of a step: below, removing it would speed the run up "
                               "by less than 1.4 times",
                           .advice =
                               "more workers for environments and rewards, or run them beside "
                               "generation",
                           .instead = NULL,
                           .is_speed = true},
};

const cause_info *cause_about(diagnose_cause c) {
  return &causes[c];
}

const char *diagnose_cause_name(diagnose_cause c) {
  return causes[c].name;
}

/* --- rules --- */

static interval less(interval v, double x) {
  return (interval){v.value - x, v.low - x, v.high - x};
}

/* A finding needs an interval that is beyond the limit as a whole. */
static void report_above(diagnosis *d, diagnose_cause c, interval v, double limit) {
  if (!(v.low > limit)) return;
  d->finding[d->n_findings++] =
      (diagnose_finding){.cause = c, .severity = v.value / limit, .measured = v, .limit = limit};
}

static void report_below(diagnosis *d, diagnose_cause c, interval v, double limit) {
  if (!(v.high < limit)) return;
  d->finding[d->n_findings++] = (diagnose_finding){
      .cause = c, .severity = limit / fmax(v.value, 1), .measured = v, .limit = limit};
}

static void rules_of_divergence(diagnosis *d) {
  const divergence_facts *f = &d->divergence;
  const interval slope = f->part[PART_SLOPE];
  if (f->how == FLOOR_UNKNOWN) return;
  if (f->is_of_updates)
    report_above(d, CAUSE_MISMATCH, f->part[PART_FLOOR], LIMIT_FLOOR);
  else
    report_above(d, CAUSE_MISMATCH, less(f->floor_factor, 1), LIMIT_FACTOR);
  if (slope.low > LIMIT_KL) /* then the age is not the cause: one version is too far */
    report_above(d, CAUSE_RATE, slope, LIMIT_KL);
  else if (slope.low > 0 || f->how == FLOOR_FIRST)
    report_above(d, CAUSE_AGE, f->part[PART_AGE], LIMIT_KL);
}

static void rules_of_speed(diagnosis *d) {
  const speed_facts *f = &d->speed;
  if (!f->is_known) return;
  if (f->is_serial)
    report_above(d, CAUSE_GENERATION, f->generation_fraction, LIMIT_SERIAL);
  else
    report_above(d, CAUSE_GENERATION, f->wait_fraction, LIMIT_WAIT);
  report_above(d, CAUSE_SYNC, f->sync_fraction, LIMIT_SYNC);
  report_above(d, CAUSE_ENVIRONMENT, f->environment_fraction, LIMIT_WAIT);
}

/* What changes the result comes before what only takes time; then by severity. */
static int worse_first(const void *a, const void *b) {
  const diagnose_finding *x = a, *y = b;
  const int speed_x = causes[x->cause].is_speed, speed_y = causes[y->cause].is_speed;
  if (speed_x != speed_y) return speed_x - speed_y;
  return (y->severity > x->severity) - (y->severity < x->severity);
}

void find_causes(diagnosis *d) {
  const interval shift = d->staleness.shift;
  d->n_findings = 0;
  rules_of_divergence(d);
  report_below(d, CAUSE_SMALL_BATCH, d->informative, LIMIT_RESPONSES);
  report_above(d, CAUSE_DISCARD, (interval){-shift.value, -shift.high, -shift.low}, LIMIT_SHIFT);
  rules_of_speed(d);
  qsort(d->finding, d->n_findings, sizeof *d->finding, worse_first);
}

size_t diagnosis_findings(const diagnosis *d, const diagnose_finding **out) {
  *out = d->finding;
  return d->n_findings;
}
