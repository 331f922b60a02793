/* A toy world as core/rl/enumerable.h sees it. */
#include "toy/world/world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t view_n_responses(const void *self, size_t x) {
  (void)x;
  return ((const toy_world *)self)->tree.n_responses;
}

static size_t view_length(const void *self, size_t x, size_t y) {
  (void)x;
  return (size_t)((const toy_world *)self)->tree.length[y];
}

static void view_rewards(const void *self, size_t x, double *reward) {
  const toy_world *w = self;
  size_t k = w->tree.n_responses;
  memcpy(reward, w->reward + x * k, k * sizeof *reward);
}

/* Copies what each response meets on its way through a table over edges. */
static void along_paths(const response_tree *t, const double *edge, double *logp) {
  for (size_t i = 0; i < t->n_responses * t->horizon; ++i)
    logp[i] = t->path[i] < 0 ? 0 : edge[t->path[i]];
}

static gl_status view_log_probs(const void *self, const double *theta, size_t x, double *logp,
                                gl_error *err) {
  const toy_world *w = self;
  double *edge = calloc(w->tree.n_edges, sizeof *edge);
  if (edge == NULL) return gl_fail_memory(err, "log-probabilities");
  toy_log_probs(w, theta, x, edge);
  along_paths(&w->tree, edge, logp);
  free(edge);
  return GL_OK;
}

static gl_status view_log_probs_truncated(const void *self, const double *theta, size_t x,
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
  along_paths(&w->tree, truncated, logp);
  free(edge);
  free(rank);
  return GL_OK;
}

/* Probabilities of every edge, with room for the vocabulary behind them; NULL if memory is short.
 */
static double *edge_probabilities(const toy_world *w, const double *theta, size_t x) {
  double *p = calloc(w->tree.n_edges + w->tree.vocabulary, sizeof *p);
  if (p == NULL) return NULL;
  toy_log_probs(w, theta, x, p);
  for (size_t e = 0; e < w->tree.n_edges; ++e) p[e] = exp(p[e]);
  return p;
}

static gl_status view_accumulate_score(const void *self, const double *theta, size_t x,
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
  /* Responses that share a prefix share its gradient: sum their coefficients first. */
  for (size_t i = 0; i < t->n_responses * t->horizon; ++i)
    if (t->path[i] >= 0) through[t->path[i]] += coefficient[i];
  for (size_t e = 0; e < t->n_edges; ++e)
    if (through[e] != 0)
      toy_add_score(w, x, e, through[e], p + e / t->vocabulary * t->vocabulary, p + t->n_edges,
                    grad);
  free(p);
  free(through);
  return GL_OK;
}

static gl_status view_sequence_scores(const void *self, const double *theta, size_t x,
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

enumerable toy_world_enumerable(const toy_world *w) {
  static const enumerable_ops whole = {
      .n_responses = view_n_responses,
      .length = view_length,
      .rewards = view_rewards,
      .log_probs = view_log_probs,
      .accumulate_score = view_accumulate_score,
      .sequence_scores = view_sequence_scores,
  };
  static const enumerable_ops truncated = {
      .n_responses = view_n_responses,
      .length = view_length,
      .rewards = view_rewards,
      .log_probs = view_log_probs,
      .log_probs_truncated = view_log_probs_truncated,
      .accumulate_score = view_accumulate_score,
      .sequence_scores = view_sequence_scores,
  };
  return (enumerable){
      .ops = sampling_truncates(&w->sampling, w->tree.vocabulary) ? &truncated : &whole,
      .self = w,
      .n_prompts = w->n_prompts,
      .n_parameters = w->features.n_parameters,
      .max_length = w->tree.horizon,
      .max_responses = w->tree.n_responses,
  };
}
