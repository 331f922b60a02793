/* The exact expected reward, its gradient and the divergences of one prompt, and its tables of
 * responses, by enumeration of a small world. */
#include "toy/lab/prompt_tables.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A prompt and its tables over all responses, before those with sampling probability 0 are removed.
 */
typedef struct whole {
  const enumerable *world;
  size_t x;                        /* the prompt */
  const double *theta_p, *theta_q; /* parameters of learner and sampler */
  lab_weights weights;
  size_t n;
  double *reward, *logp, *logq, *drawn, *p,
      *q;           /* drawn: log-probabilities of the truncated sampling distribution, per token */
  double *score;    /* [n * n_parameters] scores of whole responses */
  double *replayed; /* [n * width] learner's log-probabilities renormalised over the tokens that
                       truncation keeps; NULL: none */
  arena memory;
} whole;

static double row_sum(const double *row, size_t n) {
  double sum = 0;
  for (size_t t = 0; t < n; ++t) sum += row[t];
  return sum;
}

/* Allocates and fills the tables of w's prompt. */
static gl_status whole_fill(whole *w, gl_error *err) {
  const enumerable *e = w->world;
  const size_t x = w->x, n = e->ops->n_responses(e->self, x), m = e->max_length;
  w->n = n;
  if (e->n_parameters > LAB_MAX_SCORES / m / n)
    return gl_fail(err, GL_EINPUT,
                   "%zu responses of %zu tokens under %zu parameters are too many to keep all "
                   "scores; make the world smaller",
                   n, m, e->n_parameters);
  arena *a = &w->memory;
  w->reward = ARENA_ARRAY(a, double, n);
  w->p = ARENA_ARRAY(a, double, n);
  w->q = ARENA_ARRAY(a, double, n);
  w->logp = ARENA_GRID(a, double, n, m);
  w->logq = ARENA_GRID(a, double, n, m);
  w->drawn = ARENA_GRID(a, double, n, m);
  w->score = ARENA_GRID(a, double, n, e->n_parameters);
  if (e->ops->log_probs_replayed != NULL) w->replayed = ARENA_GRID(a, double, n, m);
  gl_status status = arena_check(a, "the tables of a prompt", err);
  if (status != GL_OK) return status;
  e->ops->rewards(e->self, x, w->reward);
  status = e->ops->log_probs(e->self, w->theta_p, x, w->logp, err);
  if (status == GL_OK) status = e->ops->log_probs(e->self, w->theta_q, x, w->logq, err);
  if (status == GL_OK && e->ops->log_probs_truncated != NULL)
    status = e->ops->log_probs_truncated(e->self, w->theta_q, x, w->drawn, err);
  else
    memcpy(w->drawn, w->logq, n * m * sizeof *w->drawn);
  if (status == GL_OK) status = e->ops->sequence_scores(e->self, w->theta_p, x, w->score, err);
  if (status != GL_OK || w->replayed == NULL) return status;
  return e->ops->log_probs_replayed(e->self, w->theta_p, w->theta_q, x, w->replayed, err);
}

/* p(y) log(p(y)/q(y)) with 0 log 0 = 0. */
static double relative(double p, double log_ratio) {
  return p > 0 ? p * log_ratio : 0;
}

/* The behaviour log-probabilities that the importance weights use, [n * width]. */
static const double *seen_dist(const whole *w) {
  return w->weights == LAB_WEIGHTS_RAW ? w->logq : w->drawn;
}

/* Computes probabilities, expected reward, divergences, collision probability and gradient from
 * the tables. */
static gl_status exact_quantities(lab_tables *t, whole *w, gl_error *err) {
  const enumerable *e = w->world;
  const double *seen = seen_dist(w);
  double mass_p = 0, mass_q = 0, collision = 0;
  for (size_t y = 0; y < w->n; ++y) {
    size_t length = e->ops->length(e->self, w->x, y);
    double log_p = row_sum(w->logp + y * t->width, length);
    double log_q = row_sum(w->logq + y * t->width, length);
    w->p[y] = exp(log_p);
    w->q[y] = exp(row_sum(w->drawn + y * t->width, length));
    mass_p += w->p[y];
    mass_q += w->q[y];
    collision += exp(2 * row_sum(seen + y * t->width, length));
    t->value += w->p[y] * w->reward[y];
    t->kl += relative(w->p[y], log_p - log_q);
    t->kl_qp += relative(exp(log_q), log_q - log_p);
    t->reward_range = fmax(t->reward_range, fabs(w->reward[y]));
  }
  if (!(fabs(mass_p - 1) < 1e-8 && fabs(mass_q - 1) < 1e-8))
    return gl_fail(err, GL_ENUMERIC,
                   "the probabilities of the responses sum to %g under the learner and %g under "
                   "the sampler, not to 1",
                   mass_p, mass_q);
  t->log_collision = log(collision);
  t->kl = fmax(t->kl, 0);
  t->kl_qp = fmax(t->kl_qp, 0);
  /* Subtracting the expected reward improves accuracy and changes nothing else: expected scores are
   * zero. */
  for (size_t y = 0; y < w->n; ++y) {
    double gain = w->p[y] * (w->reward[y] - t->value);
    const double *score = w->score + y * t->n_parameters;
    if (gain != 0)
      for (size_t i = 0; i < t->n_parameters; ++i) t->gradient[i] += gain * score[i];
  }
  return GL_OK;
}

/* Gradient of the expected reward under the learner's distribution renormalised over the kept
 * tokens. */
static gl_status kept_gradient(lab_tables *t, whole *w, gl_error *err) {
  if (w->replayed == NULL) return GL_OK;
  const enumerable *e = w->world;
  double *coefficient = ARENA_GRID(&w->memory, double, w->n, t->width), value = 0;
  t->kept_gradient = ARENA_ARRAY(&t->memory, double, t->n_parameters);
  gl_status status = arena_check(&w->memory, "the tables of a prompt", err);
  if (status == GL_OK) status = arena_check(&t->memory, "the tables of a prompt", err);
  if (status != GL_OK) return status;
  for (size_t y = 0; y < w->n; ++y)
    value +=
        exp(row_sum(w->replayed + y * t->width, e->ops->length(e->self, w->x, y))) * w->reward[y];
  for (size_t y = 0; y < w->n; ++y) {
    const size_t length = e->ops->length(e->self, w->x, y);
    const double p = exp(row_sum(w->replayed + y * t->width, length));
    for (size_t s = 0; s < length && p > 0; ++s)
      coefficient[y * t->width + s] = p * (w->reward[y] - value);
  }
  return e->ops->accumulate_score_replayed(e->self, w->theta_p, w->theta_q, w->x, coefficient,
                                           t->kept_gradient, err);
}

/* Whether the weights use the learner's distribution renormalised over the tokens that the sampler
 * keeps. */
static bool whole_replays(const whole *w) {
  return w->weights == LAB_WEIGHTS_REPLAY && w->replayed != NULL;
}

/* Adds the scores of tokens times a coefficient, under the learner's distribution that the weights
 * use. */
static gl_status add_scores(const whole *w, const double *coefficient, double *to, gl_error *err) {
  const enumerable *e = w->world;
  return whole_replays(w)
             ? e->ops->accumulate_score_replayed(e->self, w->theta_p, w->theta_q, w->x, coefficient,
                                                 to, err)
             : e->ops->accumulate_score(e->self, w->theta_p, w->x, coefficient, to, err);
}

/* Scores of single tokens of the responses kept[t->n]. For one-token responses they are already
 * known, unless the learner's distribution is renormalised. */
static gl_status token_scores(lab_tables *t, whole *w, const size_t *kept, gl_error *err) {
  const enumerable *e = w->world;
  const size_t width = t->width, p = t->n_parameters;
  if (width == 1 && !whole_replays(w)) {
    for (size_t k = 0; k < t->n; ++k)
      memcpy(t->score + k * p, w->score + kept[k] * p, p * sizeof *t->score);
    return GL_OK;
  }
  if (!whole_replays(w) && t->n == w->n && e->ops->token_scores != NULL)
    return e->ops->token_scores(e->self, w->theta_p, w->x, t->score, err);
  double *unit = ARENA_GRID(&w->memory, double, w->n, width);
  gl_status status = arena_check(&w->memory, "the scores of a prompt", err);
  for (size_t k = 0; k < t->n && status == GL_OK; ++k)
    for (size_t s = 0; s < t->length[k] && status == GL_OK; ++s) {
      unit[kept[k] * width + s] = 1;
      status = add_scores(w, unit, t->score + (k * width + s) * p, err);
      unit[kept[k] * width + s] = 0;
    }
  return status;
}

/* Copies the responses with positive sampling probability into t. */
static gl_status copy_support(lab_tables *t, whole *w, gl_error *err) {
  const enumerable *e = w->world;
  const size_t width = t->width;
  const double *learner = whole_replays(w) ? w->replayed : w->logp;
  size_t *kept = ARENA_ARRAY(&w->memory, size_t, w->n);
  gl_status status = arena_check(&w->memory, "the tables of a prompt", err);
  for (size_t y = 0; y < w->n && status == GL_OK; ++y)
    if (w->q[y] > 0) kept[t->n++] = y;
  arena *a = &t->memory;
  t->length = ARENA_ARRAY(a, size_t, t->n);
  t->reward = ARENA_ARRAY(a, double, t->n);
  t->draw = ARENA_ARRAY(a, double, t->n);
  t->logp = ARENA_GRID(a, double, t->n, width);
  t->logq = ARENA_GRID(a, double, t->n, width);
  t->score = ARENA_GRID(a, double, t->n, width * t->n_parameters);
  if (status == GL_OK) status = arena_check(a, "the tables of a prompt", err);
  const double *seen = seen_dist(w);
  for (size_t k = 0; k < t->n && status == GL_OK; ++k) {
    t->length[k] = e->ops->length(e->self, w->x, kept[k]);
    t->reward[k] = w->reward[kept[k]];
    t->draw[k] = w->q[kept[k]];
    memcpy(t->logp + k * width, learner + kept[k] * width, width * sizeof *t->logp);
    memcpy(t->logq + k * width, seen + kept[k] * width, width * sizeof *t->logq);
  }
  if (status == GL_OK) status = token_scores(t, w, kept, err);
  return status;
}

gl_status lab_tables_init(lab_tables *t, const enumerable *world, size_t x,
                          const double *theta_learner, const double *theta_sampler,
                          lab_weights weights, gl_error *err) {
  *t = (lab_tables){.width = world->max_length, .n_parameters = world->n_parameters};
  if (weights == LAB_WEIGHTS_REPLAY && world->ops->log_probs_truncated != NULL &&
      world->ops->log_probs_replayed == NULL)
    return gl_fail(err, GL_EINPUT,
                   "weights: replay needs the learner's distribution over the tokens that the "
                   "sampler keeps, which this "
                   "world does not give; take raw or truncated");
  whole w = {.world = world,
             .x = x,
             .theta_p = theta_learner,
             .theta_q = theta_sampler,
             .weights = weights};
  gl_status status = whole_fill(&w, err);
  t->gradient = ARENA_ARRAY(&t->memory, double, t->n_parameters);
  if (status == GL_OK) status = arena_check(&t->memory, "the tables of a prompt", err);
  if (status == GL_OK) status = exact_quantities(t, &w, err);
  if (status == GL_OK) status = kept_gradient(t, &w, err);
  if (status == GL_OK) status = copy_support(t, &w, err);
  arena_fini(&w.memory);
  if (status != GL_OK) lab_tables_fini(t);
  return status;
}

/* Copies the columns parameter[n] of a matrix of scores or gradients. */
static double *narrow_rows(arena *a, const double *wide, size_t rows, size_t n_wide,
                           const size_t *parameter, size_t n) {
  double *out = wide == NULL ? NULL : ARENA_GRID(a, double, rows, n);
  for (size_t row = 0; out != NULL && row < rows; ++row)
    for (size_t i = 0; i < n; ++i) out[row * n + i] = wide[row * n_wide + parameter[i]];
  return out;
}

/* Writes the parameters that any score or gradient depends on and returns their number. */
static size_t narrow_find(const lab_tables *t, size_t *parameter) {
  const size_t p = t->n_parameters;
  size_t n = 0;
  for (size_t i = 0; i < p; ++i) {
    bool used = t->gradient[i] != 0 || (t->kept_gradient != NULL && t->kept_gradient[i] != 0);
    for (size_t row = 0; row < t->n * t->width && !used; ++row) used = t->score[row * p + i] != 0;
    if (used) parameter[n++] = i;
  }
  return n;
}

gl_status lab_tables_narrow(lab_tables *t, gl_error *err) {
  const size_t p = t->n_parameters, cells = t->n * t->width;
  arena scratch = {0}, a = {0};
  size_t *parameter = ARENA_ARRAY(&scratch, size_t, p);
  gl_status status = arena_check(&scratch, "the tables of a prompt", err);
  const size_t n = status == GL_OK ? narrow_find(t, parameter) : p;
  if (n < p) {
    lab_tables narrow = *t;
    narrow.n_parameters = n;
    narrow.parameter = arena_copy(&a, parameter, n, sizeof *parameter);
    narrow.length = arena_copy(&a, t->length, t->n, sizeof *t->length);
    narrow.reward = arena_copy(&a, t->reward, t->n, sizeof *t->reward);
    narrow.draw = arena_copy(&a, t->draw, t->n, sizeof *t->draw);
    narrow.logp = arena_copy(&a, t->logp, cells, sizeof *t->logp);
    narrow.logq = arena_copy(&a, t->logq, cells, sizeof *t->logq);
    narrow.score = narrow_rows(&a, t->score, cells, p, parameter, n);
    narrow.gradient = narrow_rows(&a, t->gradient, 1, p, parameter, n);
    narrow.kept_gradient = narrow_rows(&a, t->kept_gradient, 1, p, parameter, n);
    status = arena_check(&a, "the tables of a prompt", err);
    if (status == GL_OK) {
      arena_fini(&t->memory);
      *t = narrow;
      t->memory = a;
    } else {
      arena_fini(&a);
    }
  }
  arena_fini(&scratch);
  return status;
}

void lab_tables_fini(lab_tables *t) {
  arena_fini(&t->memory);
  *t = (lab_tables){0};
}
