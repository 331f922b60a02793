/* Values, gradients and divergences of a decision process by dynamic programming. */
#include "toy/world/mdp.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void mdp_free(mdp *m) {
  if (m == NULL) return;
  free(m->transition);
  free(m->reward);
  free(m->start);
  free(m->terminal);
  free(m->feature);
  free(m);
}

static double logit(const mdp *m, const double *theta, size_t pair) {
  if (m->n_features == 0) return theta[pair];
  double z = 0;
  for (size_t k = 0; k < m->n_features; ++k) z += theta[k] * m->feature[pair * m->n_features + k];
  return z;
}

void mdp_log_policy(const mdp *m, const double *theta, double *log_policy) {
  for (size_t s = 0; s < m->states; ++s) {
    double *row = log_policy + s * m->actions, top = -INFINITY, sum = 0;
    for (size_t a = 0; a < m->actions; ++a) {
      row[a] = logit(m, theta, s * m->actions + a);
      top = fmax(top, row[a]);
    }
    for (size_t a = 0; a < m->actions; ++a) sum += exp(row[a] - top);
    for (size_t a = 0; a < m->actions; ++a) row[a] -= top + log(sum);
  }
}

/* One policy's tables, and room for both passes. */
typedef struct passes {
  double *policy;       /* [states * actions] */
  double *log_policy;   /* likewise */
  double *q;            /* [horizon * states * actions] */
  double *v, *d, *flow; /* [states], [states], [states * actions] */
} passes;

static void passes_fini(passes *p) {
  free(p->policy);
  free(p->q);
  *p = (passes){0};
}

static gl_status passes_init(passes *p, const mdp *m, const double *theta, gl_error *err) {
  const size_t pairs = m->states * m->actions;
  p->policy = calloc(3 * pairs + 2 * m->states, sizeof *p->policy);
  p->q = calloc(m->horizon, pairs * sizeof *p->q);
  if (p->policy == NULL || p->q == NULL) {
    passes_fini(p);
    return gl_fail_memory(err, "a dynamic programme");
  }
  p->log_policy = p->policy + pairs;
  p->flow = p->log_policy + pairs;
  p->v = p->flow + pairs;
  p->d = p->v + m->states;
  mdp_log_policy(m, theta, p->log_policy);
  for (size_t i = 0; i < pairs; ++i) p->policy[i] = exp(p->log_policy[i]);
  return GL_OK;
}

static double state_value(const mdp *m, const passes *p, size_t t, size_t s) {
  const double *q = p->q + t * m->states * m->actions;
  return m->terminal[s]
             ? 0
             : cblas_ddot((int)m->actions, p->policy + s * m->actions, 1, q + s * m->actions, 1);
}

static void backward(const mdp *m, passes *p) {
  const size_t pairs = m->states * m->actions;
  memset(p->v, 0, m->states * sizeof *p->v);
  for (size_t t = m->horizon; t-- > 0;) {
    double *q = p->q + t * pairs;
    memcpy(q, m->reward, pairs * sizeof *q);
    cblas_dgemv(CblasRowMajor, CblasNoTrans, (int)pairs, (int)m->states, 1, m->transition,
                (int)m->states, p->v, 1, 1, q, 1);
    for (size_t s = 0; s < m->states; ++s) p->v[s] = state_value(m, p, t, s);
  }
}

/* d becomes the distribution one step later; mass in terminal states stays out. */
static void step_forward(const mdp *m, passes *p) {
  const size_t pairs = m->states * m->actions;
  for (size_t s = 0; s < m->states; ++s)
    for (size_t a = 0; a < m->actions; ++a)
      p->flow[s * m->actions + a] = m->terminal[s] ? 0 : p->d[s] * p->policy[s * m->actions + a];
  cblas_dgemv(CblasRowMajor, CblasTrans, (int)pairs, (int)m->states, 1, m->transition,
              (int)m->states, p->flow, 1, 0, p->d, 1);
}

static void add_gradient(const mdp *m, const passes *p, size_t t, double *gradient) {
  const double *q = p->q + t * m->states * m->actions;
  for (size_t s = 0; s < m->states; ++s) {
    if (m->terminal[s] || p->d[s] == 0) continue;
    const double v = state_value(m, p, t, s);
    for (size_t a = 0; a < m->actions; ++a) {
      const size_t pair = s * m->actions + a;
      const double dz = p->d[s] * p->policy[pair] * (q[pair] - v);
      if (m->n_features == 0) gradient[pair] += dz;
      for (size_t k = 0; k < m->n_features; ++k)
        gradient[k] += dz * m->feature[pair * m->n_features + k];
    }
  }
}

gl_status mdp_value(const mdp *m, const double *theta, double *value, double *gradient,
                    gl_error *err) {
  passes p = {0};
  gl_status status = passes_init(&p, m, theta, err);
  if (status != GL_OK) return status;
  backward(m, &p);
  *value = cblas_ddot((int)m->states, m->start, 1, p.v, 1);
  if (gradient != NULL) {
    memset(gradient, 0, m->n_parameters * sizeof *gradient);
    memcpy(p.d, m->start, m->states * sizeof *p.d);
    for (size_t t = 0; t < m->horizon; ++t) {
      add_gradient(m, &p, t, gradient);
      step_forward(m, &p);
    }
  }
  passes_fini(&p);
  return GL_OK;
}

gl_status mdp_divergence(const mdp *m, const double *theta_p, const double *theta_q, double *kl,
                         gl_error *err) {
  passes p = {0}, q = {0};
  gl_status status = passes_init(&p, m, theta_p, err);
  if (status == GL_OK) status = passes_init(&q, m, theta_q, err);
  *kl = 0;
  if (status == GL_OK) memcpy(p.d, m->start, m->states * sizeof *p.d);
  for (size_t t = 0; t < m->horizon && status == GL_OK; ++t) {
    for (size_t s = 0; s < m->states; ++s)
      for (size_t a = 0; a < m->actions && !m->terminal[s] && p.d[s] > 0; ++a) {
        const size_t i = s * m->actions + a;
        *kl += p.d[s] * p.policy[i] * (p.log_policy[i] - q.log_policy[i]);
      }
    step_forward(m, &p);
  }
  passes_fini(&p);
  passes_fini(&q);
  return status;
}

/* --- trajectories --- */
/* All trajectories of a decision process as an enumerable policy. */

/* One trajectory: pair[t] = state * actions + action. */
struct mdp_trajectories {
  const mdp *m;
  size_t n_prompts, most;
  size_t *first;  /* [n_prompts + 1] */
  double *weight; /* [n_prompts] */
  size_t n, room;
  size_t *length;     /* [n] */
  size_t *pair;       /* [n * horizon] */
  double *transition; /* [n * horizon] log P(s'|s,a) */
  double *reward;     /* [n] */
};

void mdp_trajectories_free(mdp_trajectories *t) {
  if (t == NULL) return;
  free(t->first);
  free(t->weight);
  free(t->length);
  free(t->pair);
  free(t->transition);
  free(t->reward);
  free(t);
}

static gl_status mdp_make_room(mdp_trajectories *t, gl_error *err) {
  if (t->n < t->room) return GL_OK;
  if (t->n - t->first[t->n_prompts] >= MDP_MAX_TRAJECTORIES)
    return gl_fail(err, GL_EINPUT,
                   "the process has more than %zu trajectories from one start; shorten the horizon",
                   MDP_MAX_TRAJECTORIES);
  const size_t room = t->room == 0 ? 64 : 2 * t->room, h = t->m->horizon;
  size_t *length = realloc(t->length, room * sizeof *length);
  if (length != NULL) t->length = length;
  size_t *pair = realloc(t->pair, room * h * sizeof *pair);
  if (pair != NULL) t->pair = pair;
  double *transition = realloc(t->transition, room * h * sizeof *transition);
  if (transition != NULL) t->transition = transition;
  double *reward = realloc(t->reward, room * sizeof *reward);
  if (reward != NULL) t->reward = reward;
  if (length == NULL || pair == NULL || transition == NULL || reward == NULL)
    return gl_fail_memory(err, "the trajectories of a decision process");
  t->room = room;
  return GL_OK;
}

/* A path being walked. Rewards are expected ones, r(s,a): what a step earns on average over where
 * it leads, which gives the same J and gradient. */
typedef struct walk {
  size_t *pair;
  double *transition;
} walk;

static gl_status mdp_keep(mdp_trajectories *t, const walk *w, size_t depth, gl_error *err) {
  const size_t h = t->m->horizon;
  gl_status status = mdp_make_room(t, err);
  if (status != GL_OK) return status;
  double reward = 0;
  for (size_t i = 0; i < depth; ++i) reward += t->m->reward[w->pair[i]];
  memcpy(t->pair + t->n * h, w->pair, depth * sizeof *w->pair);
  memcpy(t->transition + t->n * h, w->transition, depth * sizeof *w->transition);
  t->length[t->n] = depth;
  t->reward[t->n++] = reward;
  return GL_OK;
}

static gl_status extend(mdp_trajectories *t, walk *w, size_t s, size_t depth, gl_error *err) {
  const mdp *m = t->m;
  gl_status status = GL_OK;
  if (depth == m->horizon || m->terminal[s]) return mdp_keep(t, w, depth, err);
  for (size_t a = 0; a < m->actions && status == GL_OK; ++a) {
    const size_t pair = s * m->actions + a;
    const double *next = m->transition + pair * m->states;
    w->pair[depth] = pair;
    /* Where the last step leads changes nothing any more. */
    if (depth + 1 == m->horizon) {
      w->transition[depth] = 0;
      status = mdp_keep(t, w, depth + 1, err);
      continue;
    }
    for (size_t to = 0; to < m->states && status == GL_OK; ++to) {
      if (next[to] == 0) continue;
      w->transition[depth] = log(next[to]);
      status = extend(t, w, to, depth + 1, err);
    }
  }
  return status;
}

gl_status mdp_trajectories_new(mdp_trajectories **out, const mdp *m, gl_error *err) {
  *out = NULL;
  mdp_trajectories *t = calloc(1, sizeof *t);
  walk w = {calloc(m->horizon, sizeof *w.pair), calloc(m->horizon, sizeof *w.transition)};
  gl_status status = GL_OK;
  if (t != NULL) {
    *t = (mdp_trajectories){.m = m,
                            .first = calloc(m->states + 1, sizeof *t->first),
                            .weight = calloc(m->states, sizeof *t->weight)};
  }
  if (t == NULL || w.pair == NULL || w.transition == NULL || t->first == NULL || t->weight == NULL)
    status = gl_fail_memory(err, "the trajectories of a decision process");
  for (size_t s = 0; s < m->states && status == GL_OK; ++s) {
    if (m->start[s] == 0) continue;
    if (m->terminal[s])
      status = gl_fail(err, GL_EINPUT, "state %zu is a start and terminal; nothing to learn", s);
    else
      status = extend(t, &w, s, 0, err);
    t->weight[t->n_prompts] = m->start[s];
    const size_t count = t->n - t->first[t->n_prompts];
    t->first[++t->n_prompts] = t->n;
    if (count > t->most) t->most = count;
  }
  free(w.pair);
  free(w.transition);
  if (status == GL_OK)
    *out = t;
  else
    mdp_trajectories_free(t);
  return status;
}

/* --- the enumerable view --- */

static size_t n_responses(const void *self, size_t x) {
  const mdp_trajectories *t = self;
  return t->first[x + 1] - t->first[x];
}

static size_t length(const void *self, size_t x, size_t y) {
  const mdp_trajectories *t = self;
  return t->length[t->first[x] + y];
}

static void rewards(const void *self, size_t x, double *reward) {
  const mdp_trajectories *t = self;
  memcpy(reward, t->reward + t->first[x], n_responses(self, x) * sizeof *reward);
}

static gl_status mdp_log_probs(const void *self, const double *theta, size_t x, double *logp,
                               gl_error *err) {
  const mdp_trajectories *t = self;
  const size_t h = t->m->horizon;
  double *policy = calloc(t->m->states, t->m->actions * sizeof *policy);
  if (policy == NULL) return gl_fail_memory(err, "a policy");
  mdp_log_policy(t->m, theta, policy);
  for (size_t y = t->first[x]; y < t->first[x + 1]; ++y)
    for (size_t i = 0; i < h; ++i)
      logp[(y - t->first[x]) * h + i] =
          i < t->length[y] ? policy[t->pair[y * h + i]] + t->transition[y * h + i] : 0;
  free(policy);
  return GL_OK;
}

/* grad += c * d log pi(pair) / d theta, from the pair's row of probabilities. */
static void mdp_add_score(const mdp *m, const double *policy, size_t pair, double c, double *grad) {
  const size_t s = pair / m->actions;
  for (size_t a = 0; a < m->actions; ++a) {
    const size_t other = s * m->actions + a;
    const double dz = c * ((other == pair ? 1 : 0) - exp(policy[other]));
    if (m->n_features == 0) grad[other] += dz;
    for (size_t k = 0; k < m->n_features; ++k)
      grad[k] += dz * m->feature[other * m->n_features + k];
  }
}

static gl_status accumulate_score(const void *self, const double *theta, size_t x,
                                  const double *coefficient, double *grad, gl_error *err) {
  const mdp_trajectories *t = self;
  const size_t h = t->m->horizon;
  double *policy = calloc(t->m->states, t->m->actions * sizeof *policy);
  if (policy == NULL) return gl_fail_memory(err, "a policy");
  mdp_log_policy(t->m, theta, policy);
  for (size_t y = t->first[x]; y < t->first[x + 1]; ++y)
    for (size_t i = 0; i < t->length[y]; ++i) {
      const double c = coefficient[(y - t->first[x]) * h + i];
      if (c != 0) mdp_add_score(t->m, policy, t->pair[y * h + i], c, grad);
    }
  free(policy);
  return GL_OK;
}

static gl_status sequence_scores(const void *self, const double *theta, size_t x, double *score,
                                 gl_error *err) {
  const mdp_trajectories *t = self;
  const size_t h = t->m->horizon, p = t->m->n_parameters;
  double *policy = calloc(t->m->states, t->m->actions * sizeof *policy);
  if (policy == NULL) return gl_fail_memory(err, "a policy");
  mdp_log_policy(t->m, theta, policy);
  memset(score, 0, n_responses(self, x) * p * sizeof *score);
  for (size_t y = t->first[x]; y < t->first[x + 1]; ++y)
    for (size_t i = 0; i < t->length[y]; ++i)
      mdp_add_score(t->m, policy, t->pair[y * h + i], 1, score + (y - t->first[x]) * p);
  free(policy);
  return GL_OK;
}

enumerable mdp_trajectories_enumerable(const mdp_trajectories *t) {
  static const enumerable_ops ops = {.n_responses = n_responses,
                                     .length = length,
                                     .rewards = rewards,
                                     .log_probs = mdp_log_probs,
                                     .accumulate_score = accumulate_score,
                                     .sequence_scores = sequence_scores};
  return (enumerable){.ops = &ops,
                      .self = t,
                      .n_prompts = t->n_prompts,
                      .prompt_weight = t->weight,
                      .n_parameters = t->m->n_parameters,
                      .max_length = t->m->horizon,
                      .max_responses = t->most};
}
