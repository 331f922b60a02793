/* Gradients of the groups sampled and of the groups that reach the learner, in closed form.
 *
 * Groups are not enumerated. Among groups of G independent responses, a fraction P_L^G has no
 * response longer than L tokens, where P_L = P(length <= L). Given that, the responses are
 * independent samples from the policy conditioned on length <= L. The expected gradient of such a
 * group is (G - 1)/G times the covariance of reward and score. If a group reaches the learner with
 * probability a(longest), the expectation is the sum over L of these terms with weights a(L) - a(L
 * + 1) (summation by parts). */
#include "experiments/lab/arrivals.h"

#include "experiments/base/memory.h"
#include "toy/lab/prompt_tables.h"

#include <math.h>
#include <stdlib.h>

void arrivals_fini(arrivals *a) {
  free(a->longest);
  free(a->drawn.gradient);
  free(a->arrived.gradient);
  *a = (arrivals){0};
}

/* The policy conditioned on responses of at most L tokens: mass P_L, means, and the covariance of
 * reward and score. */
typedef struct conditional {
  double mass, reward, length;
  double *covariance; /* [n_parameters] */
} conditional;

/* The score of a whole response is the sum of its tokens' scores. */
static void add_score(double *to, const lab_tables *t, size_t y, double factor) {
  for (size_t k = 0; k < t->length[y]; ++k) {
    const double *score = t->score + (y * t->width + k) * t->n_parameters;
    for (size_t i = 0; i < t->n_parameters; ++i) to[i] += factor * score[i];
  }
}

/* Conditions the policy on responses of at most `longest` tokens. */
static void condition(conditional *c, const lab_tables *t, size_t longest) {
  c->mass = c->reward = c->length = 0;
  for (size_t i = 0; i < t->n_parameters; ++i) c->covariance[i] = 0;
  for (size_t y = 0; y < t->n; ++y) {
    if (t->length[y] > longest) continue;
    c->mass += t->draw[y];
    c->reward += t->draw[y] * t->reward[y];
    c->length += t->draw[y] * (double)t->length[y];
  }
  if (!(c->mass > 0)) return;
  c->reward /= c->mass;
  c->length /= c->mass;
  for (size_t y = 0; y < t->n; ++y)
    if (t->length[y] <= longest)
      add_score(c->covariance, t, y, t->draw[y] * (t->reward[y] - c->reward) / c->mass);
}

static void add_side(arrivals_side *to, const conditional *c, double weight, double group,
                     size_t n_parameters) {
  to->reward += weight * c->reward;
  to->length += weight * c->length;
  for (size_t i = 0; i < n_parameters; ++i)
    to->gradient[i] += weight * (group - 1) / group * c->covariance[i];
}

/* Adds a prompt of probability `prompt` to the expectations, by the sum over L in this file's first
 * comment. */
static void add_prompt(arrivals *out, const lab_tables *t, conditional *c, double prompt,
                       double group, const double *arrives) {
  double before = 0;
  for (size_t longest = 0; longest <= out->max_length; ++longest) {
    condition(c, t, longest);
    const double share = pow(fmin(c->mass, 1), group);
    const double next = longest < out->max_length ? arrives[longest + 1] : 0;
    const double weight = prompt * share * (arrives[longest] - next);
    out->longest[longest] += prompt * (share - before);
    out->probability += weight;
    add_side(&out->arrived, c, weight, group, out->n_parameters);
    before = share;
  }
  add_side(&out->drawn, c, prompt, group,
           out->n_parameters); /* after the loop c is conditioned on length <= max_length, which
                                  holds for every response: the terms of all sampled groups */
}

/* Variances of reward and length within prompts, and their covariance. */
typedef struct spread {
  double reward, length, both;
} spread;

static void add_arrival_spread(spread *to, const lab_tables *t, double prompt) {
  double reward = 0, length = 0, mass = 0;
  for (size_t y = 0; y < t->n; ++y) {
    mass += t->draw[y];
    reward += t->draw[y] * t->reward[y];
    length += t->draw[y] * (double)t->length[y];
  }
  for (size_t y = 0; y < t->n; ++y) {
    const double r = t->reward[y] - reward / mass, l = (double)t->length[y] - length / mass;
    to->reward += prompt * t->draw[y] * r * r;
    to->length += prompt * t->draw[y] * l * l;
    to->both += prompt * t->draw[y] * r * l;
  }
}

static double correlation_of(const spread *s) {
  return s->reward > 0 && s->length > 0 ? s->both / sqrt(s->reward * s->length) : NAN;
}

static double arrival_dot(const double *a, const double *b, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

/* Divides the sums by the probability that a group reaches the learner, and compares the two
 * gradients. */
static gl_status finish(arrivals *out, gl_error *err) {
  if (!(out->probability > 0))
    return gl_fail(err, GL_EINPUT,
                   "no group of the policy arrives, so there is no gradient of what arrives");
  out->arrived.reward /= out->probability;
  out->arrived.length /= out->probability;
  for (size_t i = 0; i < out->n_parameters; ++i) out->arrived.gradient[i] /= out->probability;
  const double *drawn = out->drawn.gradient, *arrived = out->arrived.gradient;
  const double of_drawn = sqrt(arrival_dot(drawn, drawn, out->n_parameters)),
               of_arrived = sqrt(arrival_dot(arrived, arrived, out->n_parameters));
  out->cosine = of_drawn > 0 && of_arrived > 0
                    ? arrival_dot(drawn, arrived, out->n_parameters) / of_drawn / of_arrived
                    : NAN;
  out->norm_ratio = of_drawn > 0 ? of_arrived / of_drawn : NAN;
  return GL_OK;
}

gl_status arrivals_measure(arrivals *out, const enumerable *world, const double *theta,
                           size_t group_size, const double *arrives, gl_error *err) {
  *out = (arrivals){.max_length = world->max_length, .n_parameters = world->n_parameters};
  conditional c = {0};
  spread within = {0};
  c.covariance = MUST_ARRAY(double, world->n_parameters, "a gradient");
  out->longest = MUST_ARRAY(double, world->max_length + 1, "the lengths of groups");
  out->drawn.gradient = MUST_ARRAY(double, world->n_parameters, "a gradient");
  out->arrived.gradient = MUST_ARRAY(double, world->n_parameters, "a gradient");
  gl_status status = GL_OK;
  for (size_t x = 0; x < world->n_prompts && status == GL_OK; ++x) {
    lab_tables t = {0};
    status = lab_tables_init(&t, world, x, theta, theta, LAB_WEIGHTS_RAW, err);
    if (status != GL_OK) break;
    const double prompt = enumerable_prompt_weight(world, x);
    add_prompt(out, &t, &c, prompt, (double)group_size, arrives);
    add_arrival_spread(&within, &t, prompt);
    lab_tables_fini(&t);
  }
  out->correlation = correlation_of(&within);
  if (status == GL_OK) status = finish(out, err);
  free(c.covariance);
  if (status != GL_OK) arrivals_fini(out);
  return status;
}
