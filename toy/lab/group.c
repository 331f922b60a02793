/* One group evaluated by core/policy, and sums over groups: for what no kernel computes. */
#include "toy/lab/group.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

gl_status lab_group_init(lab_group *g, const lab_tables *t, size_t size, gl_error *err) {
  *g = (lab_group){.tables = t, .size = size};
  const size_t tokens = size * t->width;
  g->response = calloc(size, sizeof *g->response);
  g->token_start = calloc(size + 1, sizeof *g->token_start);
  g->reward = calloc(size, sizeof *g->reward);
  g->advantage = calloc(size, sizeof *g->advantage);
  g->logp = calloc(tokens, sizeof *g->logp);
  g->logq = calloc(tokens, sizeof *g->logq);
  g->weight = calloc(tokens, sizeof *g->weight);
  g->coefficient = calloc(tokens, sizeof *g->coefficient);
  g->gradient = calloc(t->n_parameters, sizeof *g->gradient);
  g->drawn = calloc(size, LAB_BLOCK * sizeof *g->drawn);
  g->workspace = policy_workspace_new();
  if (g->response != NULL && g->token_start != NULL && g->reward != NULL && g->advantage != NULL &&
      g->logp != NULL && g->logq != NULL && g->weight != NULL && g->coefficient != NULL &&
      g->gradient != NULL && g->drawn != NULL && g->workspace != NULL)
    return GL_OK;
  lab_group_fini(g);
  return gl_fail_memory(err, "a group of responses");
}

void lab_group_fini(lab_group *g) {
  free(g->response);
  free(g->token_start);
  free(g->reward);
  free(g->advantage);
  free(g->logp);
  free(g->logq);
  free(g->weight);
  free(g->coefficient);
  free(g->gradient);
  free(g->drawn);
  policy_workspace_free(g->workspace);
  *g = (lab_group){0};
}

static void gather(lab_group *g) {
  const lab_tables *t = g->tables;
  for (size_t i = 0; i < g->size; ++i) {
    const size_t y = g->response[i], at = g->token_start[i];
    g->reward[i] = t->reward[y];
    memcpy(g->logp + at, t->logp + y * t->width, t->length[y] * sizeof *g->logp);
    memcpy(g->logq + at, t->logq + y * t->width, t->length[y] * sizeof *g->logq);
    g->token_start[i + 1] = at + t->length[y];
  }
}

static void scatter(lab_group *g) {
  const lab_tables *t = g->tables;
  const size_t p = t->n_parameters;
  memset(g->gradient, 0, p * sizeof *g->gradient);
  for (size_t i = 0; i < g->size; ++i)
    for (size_t k = g->token_start[i]; k < g->token_start[i + 1]; ++k) {
      const double c = g->coefficient[k];
      const double *score = t->score + (g->response[i] * t->width + k - g->token_start[i]) * p;
      if (c != 0)
        for (size_t j = 0; j < p; ++j) g->gradient[j] += c * score[j];
    }
}

gl_status lab_group_evaluate(lab_group *g, const policy_algorithm *algorithm, gl_error *err) {
  const size_t group_start[2] = {0, g->size};
  gather(g);
  const policy_input in = {.n_groups = 1,
                           .n_responses = g->size,
                           .n_tokens = g->token_start[g->size],
                           .group_start = group_start,
                           .token_start = g->token_start,
                           .reward = g->reward,
                           .logp = g->logp,
                           .logq = g->logq,
                           .log_denominator = &g->tables->log_collision,
                           .max_length = g->tables->width};
  policy_output out = {.advantage = g->advantage,
                       .weight = g->weight,
                       .coefficient = g->coefficient,
                       .skip_metrics = 1};
  gl_status status = policy_evaluate(algorithm, &in, &out, g->workspace, err);
  if (status == GL_OK) scatter(g);
  return status;
}

double lab_group_weight(const lab_group *g, size_t i) {
  double sum = 0;
  for (size_t k = g->token_start[i]; k < g->token_start[i + 1]; ++k) sum += g->weight[k];
  return sum / (double)(g->token_start[i + 1] - g->token_start[i]);
}

gl_status lab_sums_init(lab_sums *s, size_t n_parameters, int outer, gl_error *err) {
  *s = (lab_sums){.n_parameters = n_parameters};
  s->mean = calloc(n_parameters, sizeof *s->mean);
  if (outer) s->outer = calloc(n_parameters, n_parameters * sizeof *s->outer);
  if (s->mean != NULL && (!outer || s->outer != NULL)) return GL_OK;
  lab_sums_fini(s);
  return gl_fail_memory(err, "the moments of an estimator");
}

void lab_sums_fini(lab_sums *s) {
  free(s->mean);
  free(s->outer);
  *s = (lab_sums){0};
}

static gl_status add_group(lab_sums *s, const lab_group *g, double weight, gl_error *err) {
  const double share = 1 / (double)g->size;
  double square = 0, w = 0, w2 = 0, aw = 0, aw2 = 0;
  for (size_t j = 0; j < s->n_parameters; ++j) {
    s->mean[j] += weight * g->gradient[j];
    square += g->gradient[j] * g->gradient[j];
  }
  if (!isfinite(square))
    return gl_fail(
        err, GL_ENUMERIC,
        "an estimate of this algorithm is not finite: learner and sampler are too far apart");
  for (size_t j = 0; s->outer != NULL && j < s->n_parameters; ++j)
    for (size_t k = 0; k < s->n_parameters; ++k)
      s->outer[j * s->n_parameters + k] += weight * g->gradient[j] * g->gradient[k];
  for (size_t i = 0; i < g->size; ++i) {
    double ratio = lab_group_weight(g, i), weighted = ratio * g->advantage[i];
    w += ratio;
    w2 += ratio * ratio;
    aw += weighted;
    aw2 += weighted * weighted;
  }
  s->total += weight;
  s->square += weight * square;
  s->w += weight * w * share;
  s->w2 += weight * w2 * share;
  s->aw += weight * aw * share;
  s->aw2 += weight * aw2 * share;
  if (w2 > 0) s->ess += weight * share * w * (w / w2);
  return GL_OK;
}

/* The responses of every group of a block, ascending: one walk over the counts, as they lie. */
static void list_responses(lab_group *g, const lab_block *b) {
  size_t n[LAB_BLOCK] = {0};
  for (size_t y = 0; y < b->n_outcomes; ++y)
    for (size_t column = 0; column < b->n; ++column)
      for (double c = b->count[y * LAB_BLOCK + column]; c > 0.5; c -= 1)
        g->drawn[column * g->size + n[column]++] = y;
}

gl_status lab_sums_add_block(lab_sums *s, lab_group *g, const policy_algorithm *algorithm,
                             const lab_block *b, gl_error *err) {
  gl_status status = GL_OK;
  list_responses(g, b);
  for (size_t column = 0; column < b->n && status == GL_OK; ++column) {
    if (b->weight[column] == 0) continue;
    memcpy(g->response, g->drawn + column * g->size, g->size * sizeof *g->response);
    status = lab_group_evaluate(g, algorithm, err);
    if (status == GL_OK) status = add_group(s, g, b->weight[column], err);
  }
  return status;
}
