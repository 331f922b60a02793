/* Implements the interface of core/rl/enumerable.h for toy worlds. */
#include "toy/world/automaton.h"
#include "toy/world/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t toy_view_n_responses(const void *self, size_t x) {
  (void)x;
  return ((const toy_world *)self)->tree.n_responses;
}

static size_t toy_view_length(const void *self, size_t x, size_t y) {
  (void)x;
  return (size_t)((const toy_world *)self)->tree.length[y];
}

static void toy_view_rewards(const void *self, size_t x, double *reward) {
  const toy_world *w = self;
  size_t k = w->tree.n_responses;
  memcpy(reward, w->reward + x * k, k * sizeof *reward);
}

static gl_status toy_view_log_probs(const void *self, const double *theta, size_t x, double *logp,
                                    gl_error *err) {
  const toy_world *w = self;
  double *edge = calloc(w->tree.n_edges, sizeof *edge);
  if (edge == NULL) return gl_fail_memory(err, "log-probabilities");
  toy_log_probs(w, theta, x, edge);
  response_tree_along_paths(&w->tree, edge, logp);
  free(edge);
  return GL_OK;
}

static gl_status toy_view_log_probs_truncated(const void *self, const double *theta, size_t x,
                                              double *logp, gl_error *err) {
  const toy_world *w = self;
  double *edge = calloc(w->tree.n_edges, 2 * sizeof *edge);
  sampling_rank *rank = calloc(w->tree.vocabulary, sizeof *rank);
  if (edge == NULL || rank == NULL) {
    free(edge);
    free(rank);
    return gl_fail_memory(err, "log-probabilities");
  }
  double *truncated = edge + w->tree.n_edges;
  toy_log_probs(w, theta, x, edge);
  toy_truncate(w, &w->sampling, edge, w->tree.n_nodes, truncated, rank);
  response_tree_along_paths(&w->tree, truncated, logp);
  free(edge);
  free(rank);
  return GL_OK;
}

/* Workspace of a replayed distribution: its log-probabilities and probabilities over edges, the
 * sampler's distribution before and after truncation, and scratch of one node. */
typedef struct replayed {
  double *logp, *p, *sampler, *drawn, *scratch;
  sampling_rank *rank;
} replayed;

static void replayed_fini(replayed *r) {
  free(r->logp);
  free(r->rank);
}

static gl_status replayed_init(replayed *r, const toy_world *w, const double *theta,
                               const double *theta_sampler, size_t x, gl_error *err) {
  const size_t edges = w->tree.n_edges, v = w->tree.vocabulary;
  *r = (replayed){.logp = calloc(4 * edges + v, sizeof *r->logp),
                  .rank = calloc(v, sizeof *r->rank)};
  if (r->logp == NULL || r->rank == NULL) {
    replayed_fini(r);
    return gl_fail_memory(err, "log-probabilities");
  }
  r->p = r->logp + edges;
  r->sampler = r->p + edges;
  r->drawn = r->sampler + edges;
  r->scratch = r->drawn + edges;
  toy_log_probs(w, theta_sampler, x, r->sampler);
  toy_truncate(w, &w->sampling, r->sampler, w->tree.n_nodes, r->drawn, r->rank);
  toy_log_probs(w, theta, x, r->sampler);
  for (size_t first = 0; first < edges; first += v)
    toy_replay_node(r->sampler + first, r->drawn + first, v, r->logp + first, r->p + first);
  return GL_OK;
}

static gl_status toy_view_log_probs_replayed(const void *self, const double *theta,
                                             const double *theta_sampler, size_t x, double *logp,
                                             gl_error *err) {
  const toy_world *w = self;
  replayed r;
  gl_status status = replayed_init(&r, w, theta, theta_sampler, x, err);
  if (status != GL_OK) return status;
  response_tree_along_paths(&w->tree, r.logp, logp);
  replayed_fini(&r);
  return GL_OK;
}

static gl_status toy_view_accumulate_score_replayed(const void *self, const double *theta,
                                                    const double *theta_sampler, size_t x,
                                                    const double *coefficient, double *grad,
                                                    gl_error *err) {
  const toy_world *w = self;
  const response_tree *t = &w->tree;
  replayed r;
  gl_status status = replayed_init(&r, w, theta, theta_sampler, x, err);
  if (status != GL_OK) return status;
  double *through = r.sampler; /* reuse: r.sampler is no longer needed */
  response_tree_gather(t, coefficient, through);
  for (size_t e = 0; e < t->n_edges; ++e)
    if (through[e] != 0)
      toy_add_score(w, x, e, through[e], r.p + e / t->vocabulary * t->vocabulary, r.scratch, grad);
  replayed_fini(&r);
  return GL_OK;
}

/* Allocates the probabilities of every edge, with room for `vocabulary` doubles behind them.
 * Returns NULL if memory runs out. */
static double *edge_probabilities(const toy_world *w, const double *theta, size_t x) {
  double *p = calloc(w->tree.n_edges + w->tree.vocabulary, sizeof *p);
  if (p == NULL) return NULL;
  toy_log_probs(w, theta, x, p);
  for (size_t e = 0; e < w->tree.n_edges; ++e) p[e] = exp(p[e]);
  return p;
}

static gl_status toy_view_accumulate_score(const void *self, const double *theta, size_t x,
                                           const double *coefficient, double *grad, gl_error *err) {
  const toy_world *w = self;
  const response_tree *t = &w->tree;
  double *p = edge_probabilities(w, theta, x);
  double *through = calloc(t->n_edges, sizeof *through);
  if (p == NULL || through == NULL) {
    free(p);
    free(through);
    return gl_fail_memory(err, "scores");
  }
  /* Responses that share a prefix share its gradient, so sum their coefficients first. */
  response_tree_gather(t, coefficient, through);
  for (size_t e = 0; e < t->n_edges; ++e)
    if (through[e] != 0)
      toy_add_score(w, x, e, through[e], p + e / t->vocabulary * t->vocabulary, p + t->n_edges,
                    grad);
  free(p);
  free(through);
  return GL_OK;
}

static gl_status toy_view_sequence_scores(const void *self, const double *theta, size_t x,
                                          double *score, gl_error *err) {
  const toy_world *w = self;
  const response_tree *t = &w->tree;
  const size_t n = w->features.n_parameters;
  double *p = edge_probabilities(w, theta, x);
  if (p == NULL) return gl_fail_memory(err, "scores");
  memset(score, 0, t->n_responses * n * sizeof *score);
  for (size_t y = 0; y < t->n_responses; ++y)
    for (size_t i = 0; i < (size_t)t->length[y]; ++i) {
      size_t edge = (size_t)t->path[y * t->horizon + i];
      toy_add_score(w, x, edge, 1, p + edge / t->vocabulary * t->vocabulary, p + t->n_edges,
                    score + y * n);
    }
  free(p);
  return GL_OK;
}

/* --- counted worlds --- */

int toy_world_is_counted(const toy_world *w) {
  return w->counted;
}

/* Workspace: two distributions as log-probabilities, the flow of a sum, and scratch of the passes.
 */
typedef struct counted_room {
  double *logp, *logq, *flow, *scratch;
  const double *at_p[AUTOMATON_MAX_HORIZON], *at_q[AUTOMATON_MAX_HORIZON];
} counted_room;

/* Allocates all arrays in one block, owned by r->logp. `flow` is followed by `vocabulary` doubles
 * of scratch for toy_add_flow(). Every position points to the same table, because the policy of a
 * counted world does not depend on the position. */
static gl_status counted_room_init(counted_room *r, const toy_world *w, gl_error *err) {
  const size_t edges = w->tree.n_edges;
  r->logp = calloc(3 * edges + w->tree.vocabulary + toy_scratch(w), sizeof *r->logp);
  if (r->logp == NULL) return gl_fail_memory(err, "a dynamic programme");
  r->logq = r->logp + edges;
  r->flow = r->logq + edges;
  r->scratch = r->flow + edges + w->tree.vocabulary;
  for (size_t t = 0; t < w->tree.horizon; ++t) {
    r->at_p[t] = r->logp;
    r->at_q[t] = r->logq;
  }
  return GL_OK;
}

/* The gradient weights each log-probability by the value's flow through its edge. Subtracting the
 * expected reward leaves the gradient unchanged. It makes the flow, and so its rounding error,
 * small where rewards hardly vary. */
static gl_status counted_value(const void *self, const double *theta, size_t x, double weight,
                               double *value, double *gradient, gl_error *err) {
  const toy_world *w = self;
  const toy_automaton *m = w->automata + x;
  const toy_chain chain = {&w->tree, m};
  counted_room r;
  double *centred = calloc(m->states, sizeof *centred);
  if (centred == NULL) return gl_fail_memory(err, "a dynamic programme");
  gl_status status = counted_room_init(&r, w, err);
  if (status != GL_OK) {
    free(centred);
    return status;
  }
  toy_log_probs(w, theta, x, r.logp);
  *value = toy_chain_sum(&chain, r.at_p, 1, m->reward, NULL, r.scratch);
  if (gradient != NULL) {
    for (size_t s = 0; s < m->states; ++s) centred[s] = m->reward[s] - *value;
    toy_chain_sum(&chain, r.at_p, 1, centred, r.flow, r.scratch);
    for (size_t e = 0; e < w->tree.n_edges; ++e) r.flow[e] *= weight;
    toy_add_flow(w, x, r.flow, r.logp, r.flow + w->tree.n_edges, gradient);
  }
  free(r.logp);
  free(centred);
  return GL_OK;
}

static gl_status counted_divergence(const void *self, const double *theta_p, const double *theta_q,
                                    size_t x, double *kl_pq, double *kl_qp, gl_error *err) {
  const toy_world *w = self;
  counted_room r;
  gl_status status = counted_room_init(&r, w, err);
  if (status != GL_OK) return status;
  double *visit = r.scratch, *rest = visit + w->tree.horizon * w->tree.n_nodes;
  toy_log_probs(w, theta_p, x, r.logp);
  toy_log_probs(w, theta_q, x, r.logq);
  toy_chain_visits(&w->tree, r.at_p, visit, rest);
  *kl_pq = toy_chain_kl(w, visit, r.at_p, r.at_q);
  toy_chain_visits(&w->tree, r.at_q, visit, rest);
  *kl_qp = toy_chain_kl(w, visit, r.at_q, r.at_p);
  free(r.logp);
  return GL_OK;
}

enumerable toy_world_enumerable(const toy_world *w) {
  static const enumerable_ops whole = {
      .n_responses = toy_view_n_responses,
      .length = toy_view_length,
      .rewards = toy_view_rewards,
      .log_probs = toy_view_log_probs,
      .accumulate_score = toy_view_accumulate_score,
      .sequence_scores = toy_view_sequence_scores,
  };
  static const enumerable_ops truncated = {
      .n_responses = toy_view_n_responses,
      .length = toy_view_length,
      .rewards = toy_view_rewards,
      .log_probs = toy_view_log_probs,
      .log_probs_truncated = toy_view_log_probs_truncated,
      .log_probs_replayed = toy_view_log_probs_replayed,
      .accumulate_score_replayed = toy_view_accumulate_score_replayed,
      .accumulate_score = toy_view_accumulate_score,
      .sequence_scores = toy_view_sequence_scores,
  };
  static const enumerable_ops counted = {.value = counted_value, .divergence = counted_divergence};
  return (enumerable){
      .ops = w->counted                                             ? &counted
             : sampling_truncates(&w->sampling, w->tree.vocabulary) ? &truncated
                                                                    : &whole,
      .self = w,
      .n_prompts = w->n_prompts,
      .n_parameters = w->features.n_parameters,
      .max_length = w->tree.horizon,
      .max_responses = w->tree.n_responses,
  };
}
