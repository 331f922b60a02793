/* Moments of an estimator from sums, from kernels, or from parts, and the numbers made of them. */
#include "toy/lab/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

gl_status lab_summary_init(lab_summary *s, size_t n_parameters, int covariance, gl_error *err) {
  *s = (lab_summary){.n_parameters = n_parameters};
  s->mean = calloc(n_parameters, sizeof *s->mean);
  if (covariance) s->covariance = calloc(n_parameters, n_parameters * sizeof *s->covariance);
  if (s->mean != NULL && (!covariance || s->covariance != NULL)) return GL_OK;
  lab_summary_fini(s);
  return gl_fail_memory(err, "the moments of an estimator");
}

void lab_summary_fini(lab_summary *s) {
  free(s->mean);
  free(s->covariance);
  *s = (lab_summary){0};
}

static double norm2(const double *v, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += v[i] * v[i];
  return sum;
}

void lab_summary_from_sums(lab_summary *s, const lab_sums *sums) {
  const size_t n = s->n_parameters;
  const double share = 1 / sums->total;
  for (size_t i = 0; i < n; ++i) s->mean[i] = sums->mean[i] * share;
  s->trace = fmax(0, sums->square * share - norm2(s->mean, n));
  for (size_t i = 0; s->covariance != NULL && i < n; ++i)
    for (size_t j = 0; j < n; ++j)
      s->covariance[i * n + j] = sums->outer[i * n + j] * share - s->mean[i] * s->mean[j];
  s->w = sums->w * share;
  s->w2 = sums->w2 * share;
  s->aw = sums->aw * share;
  s->aw2 = sums->aw2 * share;
  s->ess = sums->ess * share;
}

void lab_gram(const lab_tables *t, double *gram) {
  const size_t p = t->n_parameters;
  for (size_t i = 0; i < t->n; ++i)
    for (size_t j = 0; j <= i; ++j) {
      double sum = 0;
      for (size_t k = 0; k < p; ++k) sum += t->score[i * p + k] * t->score[j * p + k];
      gram[i * t->n + j] = gram[j * t->n + i] = sum;
    }
}

/* Cov g = S' C S for the covariance C of the coefficients. */
static void spread_covariance(lab_summary *s, const double *c, const lab_tables *t) {
  const size_t p = t->n_parameters, n = t->n;
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) {
      const double *a = t->score + i * p, *b = t->score + j * p;
      for (size_t k = 0; c[i * n + j] != 0 && k < p; ++k)
        for (size_t l = 0; l < p; ++l) s->covariance[k * p + l] += c[i * n + j] * a[k] * b[l];
    }
}

void lab_summary_from_moments(lab_summary *s, lab_moments *m, const lab_tables *t,
                              const double *gram) {
  const size_t n = m->n, p = t->n_parameters;
  const double share = 1 / m->total;
  lab_moments_mirror(m);
  for (size_t i = 0; i < n; ++i) m->first[i] *= share;
  memset(s->mean, 0, p * sizeof *s->mean);
  s->trace = 0;
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < p; ++k) s->mean[k] += m->first[i] * t->score[i * p + k];
    for (size_t j = 0; j < n; ++j) {
      double *c = &m->second[i * n + j];
      *c = *c * share - m->first[i] * m->first[j];
      s->trace += *c * gram[i * n + j];
    }
  }
  s->trace = fmax(0, s->trace);
  if (s->covariance != NULL) spread_covariance(s, m->second, t);
  s->w = m->w * share;
  s->w2 = m->w2 * share;
  s->aw = m->aw * share;
  s->aw2 = m->aw2 * share;
  s->ess = m->ess * share;
}

static void summary_add_spread(lab_summary *into, const lab_summary *part, double weight) {
  const size_t n = into->n_parameters;
  for (size_t i = 0; i < n; ++i) {
    double d = part->mean[i] - into->mean[i];
    into->trace += weight * d * d;
    for (size_t j = 0; into->covariance != NULL && j < n; ++j)
      into->covariance[i * n + j] +=
          weight * (part->covariance[i * n + j] + d * (part->mean[j] - into->mean[j]));
  }
  into->trace += weight * part->trace;
}

void lab_summary_join(lab_summary *into, const lab_summary *const *parts, const double *weights,
                      size_t n, size_t skip) {
  const size_t p = into->n_parameters;
  const double rescale = skip < n ? 1 / (1 - weights[skip]) : 1;
  double *mean = into->mean, *covariance = into->covariance;
  memset(mean, 0, p * sizeof *mean);
  if (covariance != NULL) memset(covariance, 0, p * p * sizeof *covariance);
  *into = (lab_summary){.n_parameters = p, .mean = mean, .covariance = covariance};
  for (size_t k = 0; k < n; ++k) {
    if (k == skip) continue;
    const double weight = weights[k] * rescale;
    for (size_t i = 0; i < p; ++i) mean[i] += weight * parts[k]->mean[i];
    into->w += weight * parts[k]->w;
    into->w2 += weight * parts[k]->w2;
    into->aw += weight * parts[k]->aw;
    into->aw2 += weight * parts[k]->aw2;
    into->ess += weight * parts[k]->ess;
  }
  for (size_t k = 0; k < n; ++k)
    if (k != skip) summary_add_spread(into, parts[k], weights[k] * rescale);
}

void lab_summary_numbers(const lab_summary *s, const double *truth, double rounding,
                         lab_numbers *out) {
  const size_t n = s->n_parameters;
  double dot = 0, distance = 0;
  for (size_t i = 0; i < n; ++i) {
    dot += s->mean[i] * truth[i];
    distance += (s->mean[i] - truth[i]) * (s->mean[i] - truth[i]);
  }
  const double length2 = norm2(s->mean, n), truth2 = norm2(truth, n);
  const int directed = sqrt(length2) > rounding && sqrt(truth2) > rounding;
  const double cosine = directed ? fmax(-1, fmin(1, dot / sqrt(length2 * truth2))) : NAN;
  const double second = length2 + s->trace, scale = directed ? dot / length2 : 0;
  double rest = 0; /* of the truth, beyond its best multiple of the mean */
  for (size_t i = 0; i < n; ++i)
    rest += (scale * s->mean[i] - truth[i]) * (scale * s->mean[i] - truth[i]);
  *out = (lab_numbers){
      .bias = sqrt(distance),
      .cosine = cosine,
      .scaled_bias = directed ? sqrt(rest / truth2) : NAN,
      .variance = s->trace,
      .mse = distance + s->trace,
      .scaled_mse = directed ? fmax(0, 1 - dot * dot / (second * truth2)) : NAN,
      .snr = s->trace > rounding * rounding ? length2 / s->trace : NAN,
      .iw_mean = s->w,
      .iw_variance = fmax(0, s->w2 - s->w * s->w),
      .aw_variance = fmax(0, s->aw2 - s->aw * s->aw),
      .ess = s->ess,
  };
}

gl_status lab_summary_errors(lab_numbers *error, double *expected_error,
                             const lab_summary *const *parts, size_t n, const double *expected,
                             const double *truth, double rounding, gl_error *err) {
  const size_t p = parts[0]->n_parameters;
  const double count = (double)n;
  double *even = calloc(n, (1 + LAB_NUMBERS) * sizeof *even), *to = (double *)error;
  lab_summary s = {0};
  gl_status status =
      even == NULL ? gl_fail_memory(err, "standard errors") : lab_summary_init(&s, p, 0, err);
  if (status != GL_OK) {
    free(even);
    return status;
  }
  double *left_out = even + n; /* [n * LAB_NUMBERS] */
  for (size_t k = 0; k < n; ++k) even[k] = 1 / count;
  memset(expected_error, 0, p * sizeof *expected_error);
  for (size_t k = 0; k < n; ++k) {
    lab_numbers numbers;
    lab_summary_join(&s, parts, even, n, k);
    lab_summary_numbers(&s, truth, rounding, &numbers);
    memcpy(left_out + k * LAB_NUMBERS, &numbers, sizeof numbers);
    for (size_t i = 0; i < p; ++i) {
      const double d = parts[k]->mean[i] - expected[i];
      expected_error[i] += d * d;
    }
  }
  for (size_t v = 0; v < LAB_NUMBERS; ++v) {
    double mean = 0, sum = 0;
    for (size_t k = 0; k < n; ++k) mean += left_out[k * LAB_NUMBERS + v] / count;
    for (size_t k = 0; k < n; ++k) {
      const double d = left_out[k * LAB_NUMBERS + v] - mean;
      sum += d * d;
    }
    to[v] = sqrt(sum * (count - 1) / count);
  }
  for (size_t i = 0; i < p; ++i)
    expected_error[i] = sqrt(expected_error[i] / (count * (count - 1)));
  lab_summary_fini(&s);
  free(even);
  return GL_OK;
}

/* --- the reported numbers --- */

const char *const lab_number_names[LAB_NUMBERS] = {
    "bias", "cosine",  "scaled_bias", "variance",    "mse", "scaled_mse",
    "snr",  "iw_mean", "iw_variance", "aw_variance", "ess"};

/* --- one group --- */
/* One group evaluated by core/policy, and sums over groups: for what no kernel computes. */

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

static void summary_gather(lab_group *g) {
  const lab_tables *t = g->tables;
  for (size_t i = 0; i < g->size; ++i) {
    const size_t y = g->response[i], at = g->token_start[i];
    g->reward[i] = t->reward[y];
    memcpy(g->logp + at, t->logp + y * t->width, t->length[y] * sizeof *g->logp);
    memcpy(g->logq + at, t->logq + y * t->width, t->length[y] * sizeof *g->logq);
    g->token_start[i + 1] = at + t->length[y];
  }
}

static void summary_scatter(lab_group *g) {
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
  summary_gather(g);
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
  if (status == GL_OK) summary_scatter(g);
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

static gl_status summary_add_group(lab_sums *s, const lab_group *g, double weight, gl_error *err) {
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
static void summary_list_responses(lab_group *g, const lab_block *b) {
  size_t n[LAB_BLOCK] = {0};
  for (size_t y = 0; y < b->n_outcomes; ++y)
    for (size_t column = 0; column < b->n; ++column)
      for (double c = b->count[y * LAB_BLOCK + column]; c > 0.5; c -= 1)
        g->drawn[column * g->size + n[column]++] = y;
}

gl_status lab_sums_add_block(lab_sums *s, lab_group *g, const policy_algorithm *algorithm,
                             const lab_block *b, gl_error *err) {
  gl_status status = GL_OK;
  summary_list_responses(g, b);
  for (size_t column = 0; column < b->n && status == GL_OK; ++column) {
    if (b->weight[column] == 0) continue;
    memcpy(g->response, g->drawn + column * g->size, g->size * sizeof *g->response);
    status = lab_group_evaluate(g, algorithm, err);
    if (status == GL_OK) status = summary_add_group(s, g, b->weight[column], err);
  }
  return status;
}
