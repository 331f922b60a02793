/* The exact laboratory: enumerates or samples groups, evaluates the algorithms on them, and
 * computes the reported numbers. */
#include "toy/lab/estimator_moments.h"

#include "core/base/thread_pool.h"
#include "core/config/fields.h"
#include "toy/lab/kernel.h"
#include "toy/lab/theorems.h"

#include <math.h>
#include <stdio.h>
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

/* Writes gram[n * n], the inner products of the scores of one-token responses. */
static void gram_of(const lab_tables *t, double *gram) {
  const size_t p = t->n_parameters;
  for (size_t i = 0; i < t->n; ++i)
    for (size_t j = 0; j <= i; ++j) {
      double sum = 0;
      for (size_t k = 0; k < p; ++k) sum += t->score[i * p + k] * t->score[j * p + k];
      gram[i * t->n + j] = gram[j * t->n + i] = sum;
    }
}

/* Cov g = S' C S, with C the covariance of the coefficients and S the scores. */
static void spread_covariance(lab_summary *s, const double *c, const lab_tables *t) {
  const size_t p = t->n_parameters, n = t->n;
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) {
      const double *a = t->score + i * p, *b = t->score + j * p;
      for (size_t k = 0; c[i * n + j] != 0 && k < p; ++k)
        for (size_t l = 0; l < p; ++l) s->covariance[k * p + l] += c[i * n + j] * a[k] * b[l];
    }
}

/* Summarises kernel moments; overwrites their sums. gram[n * n] has the inner products of the
 * scores, needed for the trace. */
static void summary_from_moments(lab_summary *s, lab_moments *m, const lab_tables *t,
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

/* The index of parameter i in s, or s->n_parameters if it is not there. Called with ascending i;
 * *next is the first index not yet found. */
static size_t summary_find(const lab_summary *s, size_t i, size_t *next) {
  if (s->parameter == NULL) return i;
  const int found = *next < s->n_parameters && s->parameter[*next] == i;
  return found ? (*next)++ : s->n_parameters;
}

/* Law of total variance: adds a part's weighted covariance, and that of its mean around the joined
 * mean. */
static void summary_add_spread(lab_summary *into, const lab_summary *part, double weight) {
  const size_t n = into->n_parameters, none = part->n_parameters;
  for (size_t i = 0, next = 0; i < n; ++i) {
    const size_t k = summary_find(part, i, &next);
    const double d = (k < none ? part->mean[k] : 0) - into->mean[i];
    into->trace += weight * d * d;
    for (size_t j = 0, after = 0; into->covariance != NULL && j < n; ++j) {
      const size_t l = summary_find(part, j, &after);
      const double e = (l < none ? part->mean[l] : 0) - into->mean[j];
      const double within = k < none && l < none ? part->covariance[k * none + l] : 0;
      into->covariance[i * n + j] += weight * (within + d * e);
    }
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
    const size_t *at = parts[k]->parameter;
    for (size_t i = 0; i < parts[k]->n_parameters; ++i)
      mean[at != NULL ? at[i] : i] += weight * parts[k]->mean[i];
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
  double rest = 0; /* residual of the truth after projection on the mean */
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

gl_status lab_result_errors(lab_result *out, const lab_summary *const *parts, size_t n,
                            double rounding, gl_error *err) {
  const size_t p = parts[0]->n_parameters;
  const double count = (double)n;
  double *even = calloc(n, (1 + LAB_NUMBERS) * sizeof *even), *to = (double *)&out->error;
  lab_summary s = {0};
  gl_status status =
      even == NULL ? gl_fail_memory(err, "standard errors") : lab_summary_init(&s, p, 0, err);
  if (status != GL_OK) {
    free(even);
    return status;
  }
  double *left_out = even + n; /* [n * LAB_NUMBERS] reported numbers without part k */
  for (size_t k = 0; k < n; ++k) even[k] = 1 / count;
  memset(out->expected_error, 0, p * sizeof *out->expected_error);
  for (size_t k = 0; k < n; ++k) {
    lab_numbers numbers;
    lab_summary_join(&s, parts, even, n, k);
    lab_summary_numbers(&s, out->truth, rounding, &numbers);
    memcpy(left_out + k * LAB_NUMBERS, &numbers, sizeof numbers);
    for (size_t i = 0; i < p; ++i) {
      const double d = parts[k]->mean[i] - out->expected[i];
      out->expected_error[i] += d * d;
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
    out->expected_error[i] = sqrt(out->expected_error[i] / (count * (count - 1)));
  lab_summary_fini(&s);
  free(even);
  return GL_OK;
}

/* --- the reported numbers --- */

const char *const lab_number_names[LAB_NUMBERS] = {
    "bias", "cosine",  "scaled_bias", "variance",    "mse", "scaled_mse",
    "snr",  "iw_mean", "iw_variance", "aw_variance", "ess"};

/* --- one group --- */
/* Evaluates one group with core/policy and sums over groups; used where no kernel applies. */

gl_status lab_group_init(lab_group *g, size_t size, size_t width, size_t n_parameters,
                         gl_error *err) {
  *g = (lab_group){.size = size};
  arena *a = &g->memory;
  g->response = ARENA_ARRAY(a, size_t, size);
  g->token_start = ARENA_ARRAY(a, size_t, size + 1);
  g->reward = ARENA_ARRAY(a, double, size);
  g->advantage = ARENA_ARRAY(a, double, size);
  g->logp = ARENA_GRID(a, double, size, width);
  g->logq = ARENA_GRID(a, double, size, width);
  g->weight = ARENA_GRID(a, double, size, width);
  g->coefficient = ARENA_GRID(a, double, size, width);
  g->gradient = ARENA_ARRAY(a, double, n_parameters);
  g->workspace = policy_workspace_new();
  gl_status status = arena_check(a, "a group of responses", err);
  if (status == GL_OK && g->workspace == NULL) status = gl_fail_memory(err, "a group of responses");
  if (status != GL_OK) lab_group_fini(g);
  return status;
}

void lab_group_fini(lab_group *g) {
  arena_fini(&g->memory);
  policy_workspace_free(g->workspace);
  *g = (lab_group){0};
}

/* Copies the tables' rows of the group's responses. */
static void group_gather(lab_group *g, const lab_tables *t) {
  for (size_t i = 0; i < g->size; ++i) {
    const size_t y = g->response[i], at = g->token_start[i];
    g->reward[i] = t->reward[y];
    memcpy(g->logp + at, t->logp + y * t->width, t->length[y] * sizeof *g->logp);
    memcpy(g->logq + at, t->logq + y * t->width, t->length[y] * sizeof *g->logq);
    g->token_start[i + 1] = at + t->length[y];
  }
}

/* gradient = sum over the group's tokens of coefficient * score. */
static void group_scatter(lab_group *g, const lab_tables *t) {
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

gl_status lab_group_coefficients(lab_group *g, const policy_algorithm *algorithm,
                                 double log_collision, size_t width, gl_error *err) {
  const size_t group_start[2] = {0, g->size};
  const policy_input in = {.n_groups = 1,
                           .n_responses = g->size,
                           .n_tokens = g->token_start[g->size],
                           .group_start = group_start,
                           .token_start = g->token_start,
                           .reward = g->reward,
                           .logp = g->logp,
                           .logq = g->logq,
                           .log_denominator = &log_collision,
                           .max_length = width};
  policy_output out = {.advantage = g->advantage,
                       .weight = g->weight,
                       .coefficient = g->coefficient,
                       .skip_metrics = 1};
  return policy_evaluate(algorithm, &in, &out, g->workspace, err);
}

gl_status lab_group_evaluate(lab_group *g, const lab_tables *t, const policy_algorithm *algorithm,
                             gl_error *err) {
  group_gather(g, t);
  gl_status status = lab_group_coefficients(g, algorithm, t->log_collision, t->width, err);
  if (status == GL_OK) group_scatter(g, t);
  return status;
}

double lab_group_weight(const lab_group *g, size_t i) {
  double sum = 0;
  for (size_t k = g->token_start[i]; k < g->token_start[i + 1]; ++k) sum += g->weight[k];
  return sum / (double)(g->token_start[i + 1] - g->token_start[i]);
}

gl_status lab_sums_init(lab_sums *s, size_t n_parameters, int outer, gl_error *err) {
  *s = (lab_sums){.n_parameters = n_parameters};
  s->mean = ARENA_ARRAY(&s->memory, double, n_parameters);
  if (outer) s->outer = ARENA_GRID(&s->memory, double, n_parameters, n_parameters);
  gl_status status = arena_check(&s->memory, "the moments of an estimator", err);
  if (status != GL_OK) lab_sums_fini(s);
  return status;
}

void lab_sums_fini(lab_sums *s) {
  arena_fini(&s->memory);
  *s = (lab_sums){0};
}

gl_status lab_sums_add(lab_sums *s, const lab_group *g, double weight, gl_error *err) {
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

/* --- the laboratory --- */

const char *const lab_method_names[3] = {"exact", "monte_carlo", "population"};

/* Monte Carlo runs in this many parts; their spread gives the standard errors. */
enum { PARTS = 32 };
/* Kernels store second moments of pairs of responses; with more responses than this, gradients are
 * summed instead. */
enum { KERNEL_MOST = 64 };
/* Group size that represents infinity: a power of two, so that q * G is exact. */
#define LAB_INFINITE_GROUP ((size_t)1 << 50)

/* One prompt: data shared by all algorithms. */
typedef struct prompt {
  lab_tables tables;
  lab_alias alias;
  double *gram; /* [n * n], products of scores; NULL if no kernel is used */
  int exact;
  size_t multisets;
} prompt;

/* A measurement of all algorithms at all prompts. Monte Carlo samples are divided into parts; part
 * k of prompt x is task x * parts + k. */
typedef struct work {
  const lab_spec *spec;
  const policy_algorithm *const *algorithms;
  size_t n_algorithms, n_prompts;
  size_t parts; /* 1 if all prompts are exact */
  prompt *prompts;
  lab_form *forms;      /* [n_algorithms * n_prompts] tables for the kernels */
  int *fast;            /* same shape: 1 if kernels evaluate the algorithm */
  gl_error **refused;   /* same shape: why it cannot be measured, or NULL */
  lab_summary *summary; /* [(algorithm * n_prompts + x) * parts + part] */
  gl_error **stopped;   /* same shape as summary: the error that stopped the algorithm, or NULL */
  arena memory;
} work;

static size_t lab_cell(const work *w, size_t algorithm, size_t x, size_t part) {
  return (algorithm * w->n_prompts + x) * w->parts + part;
}

/* --- one task: every algorithm over one part of one prompt's groups --- */
typedef struct task_workspace {
  lab_block block;
  lab_scratch scratch;
  lab_group group;
  size_t *drawn;        /* [LAB_BLOCK * group size] responses of all groups in the block */
  lab_moments *moments; /* [n_algorithms] set for algorithms that the fast kernels evaluate
                           (lab_form) */
  lab_sums *sums;       /* [n_algorithms] set for the others */
  arena memory;
} task_workspace;

static void task_workspace_fini(task_workspace *b, size_t n_algorithms) {
  for (size_t r = 0; r < n_algorithms; ++r) {
    if (b->moments != NULL) lab_moments_fini(&b->moments[r]);
    if (b->sums != NULL) lab_sums_fini(&b->sums[r]);
  }
  arena_fini(&b->memory);
  lab_group_fini(&b->group);
  lab_scratch_fini(&b->scratch);
  lab_block_fini(&b->block);
}

static gl_status task_workspace_init(task_workspace *b, const work *w, size_t x, gl_error *err) {
  const lab_tables *t = &w->prompts[x].tables;
  const size_t size = w->spec->group_size == 0 ? LAB_INFINITE_GROUP : w->spec->group_size;
  *b = (task_workspace){.moments = NULL};
  b->moments = ARENA_ARRAY(&b->memory, lab_moments, w->n_algorithms);
  b->sums = ARENA_ARRAY(&b->memory, lab_sums, w->n_algorithms);
  b->drawn = ARENA_GRID(&b->memory, size_t, w->spec->group_size, LAB_BLOCK);
  gl_status status = arena_check(&b->memory, "a measurement", err);
  if (status == GL_OK) status = lab_block_init(&b->block, t->n, size, err);
  if (status == GL_OK) status = lab_scratch_init(&b->scratch, t->n, err);
  if (status == GL_OK && w->spec->group_size != 0)
    status = lab_group_init(&b->group, size, t->width, t->n_parameters, err);
  for (size_t r = 0; r < w->n_algorithms && status == GL_OK; ++r)
    status = w->fast[r * w->n_prompts + x]
                 ? lab_moments_init(&b->moments[r], t->n, err)
                 : lab_sums_init(&b->sums[r], t->n_parameters, w->spec->covariance, err);
  return status;
}

/* Lists the responses of every group in the block, in ascending order, in one pass over the counts.
 */
static void list_responses(task_workspace *b) {
  size_t n[LAB_BLOCK] = {0};
  for (size_t y = 0; y < b->block.n_outcomes; ++y)
    for (size_t column = 0; column < b->block.n; ++column)
      for (double c = b->block.count[y * LAB_BLOCK + column]; c > 0.5; c -= 1)
        b->drawn[column * b->group.size + n[column]++] = y;
}

/* Adds every group of the block. Errors: GL_ENOMEM, GL_ENUMERIC (a coefficient is not finite). */
static gl_status sums_add_block(lab_sums *s, task_workspace *b, const lab_tables *t,
                                const policy_algorithm *algorithm, gl_error *err) {
  lab_group *g = &b->group;
  gl_status status = GL_OK;
  list_responses(b);
  for (size_t column = 0; column < b->block.n && status == GL_OK; ++column) {
    if (b->block.weight[column] == 0) continue;
    memcpy(g->response, b->drawn + column * g->size, g->size * sizeof *g->response);
    status = lab_group_evaluate(g, t, algorithm, err);
    if (status == GL_OK) status = lab_sums_add(s, g, b->block.weight[column], err);
  }
  return status;
}

/* Returns a malloc'd copy of an error, or NULL if memory runs out. */
static gl_error *lab_reason(const gl_error *why) {
  gl_error *copy = malloc(sizeof *copy);
  if (copy != NULL) *copy = *why;
  return copy;
}

/* An algorithm that fails on a group is skipped from then on, and the reason is stored. Only
 * GL_ENOMEM is an error of the task. */
static gl_status lab_run_algorithms(work *w, task_workspace *b, size_t x, size_t part,
                                    gl_error *err) {
  for (size_t r = 0; r < w->n_algorithms; ++r) {
    const size_t at = r * w->n_prompts + x;
    gl_error **stopped = &w->stopped[lab_cell(w, r, x, part)], why = {.status = GL_OK};
    if (w->refused[at] != NULL || *stopped != NULL) continue;
    if (w->fast[at])
      lab_kernel(&w->forms[at], &b->block, &b->scratch, &b->moments[r]);
    else if (sums_add_block(&b->sums[r], b, &w->prompts[x].tables, w->algorithms[r], &why) !=
             GL_OK) {
      if (why.status == GL_ENOMEM) return gl_fail(err, GL_ENOMEM, "%s", why.text);
      *stopped = lab_reason(&why);
      if (*stopped == NULL) return gl_fail_memory(err, "a measurement");
    }
  }
  return GL_OK;
}

static gl_status run_exact(work *w, task_workspace *b, size_t x, gl_error *err) {
  const lab_tables *t = &w->prompts[x].tables;
  lab_multisets walk;
  gl_status status = lab_multisets_init(&walk, t->draw, t->n, w->spec->group_size, err);
  while (status == GL_OK && lab_multisets_next(&walk, &b->block))
    status = lab_run_algorithms(w, b, x, 0, err);
  lab_multisets_fini(&walk);
  return status;
}

/* Population limit: evaluates one "group" whose fractions are the sampling distribution q. */
static gl_status run_population(work *w, task_workspace *b, size_t x, gl_error *err) {
  const lab_tables *t = &w->prompts[x].tables;
  for (size_t y = 0; y < t->n; ++y)
    for (size_t k = 0; k < LAB_BLOCK; ++k)
      b->block.count[y * LAB_BLOCK + k] = t->draw[y] * (double)LAB_INFINITE_GROUP;
  memset(b->block.weight, 0, LAB_BLOCK * sizeof *b->block.weight);
  b->block.weight[0] = 1;
  b->block.n = 1;
  return lab_run_algorithms(w, b, x, 0, err);
}

/* Monte Carlo: evaluates the sampled groups of one part. */
static gl_status run_sampled(work *w, task_workspace *b, size_t x, size_t part, gl_error *err) {
  const uint64_t n = w->spec->samples, first = n * part / PARTS, end = n * (part + 1) / PARTS;
  const rng_stream stream =
      rng_stream_at(w->spec->seed, RNG_MONTECARLO, w->spec->entity << 20 | (uint64_t)x);
  gl_status status = GL_OK;
  for (uint64_t g = first; g < end && status == GL_OK; g += LAB_BLOCK) {
    size_t count = end - g < LAB_BLOCK ? (size_t)(end - g) : LAB_BLOCK;
    lab_block_draw(&b->block, &w->prompts[x].alias, stream, g, count, (double)(end - first));
    status = lab_run_algorithms(w, b, x, part, err);
  }
  return status;
}

/* Evaluates all algorithms on one part of one prompt's groups, and summarises the moments of each.
 */
static gl_status run_task(void *context, size_t task, gl_error *err) {
  work *w = context;
  const size_t x = task / w->parts, part = task % w->parts;
  if (part > 0 && w->prompts[x].exact) return GL_OK;
  const lab_tables *t = &w->prompts[x].tables;
  task_workspace b = {0};
  gl_status status = task_workspace_init(&b, w, x, err);
  if (status == GL_OK)
    status = w->spec->group_size == 0 ? run_population(w, &b, x, err)
             : w->prompts[x].exact    ? run_exact(w, &b, x, err)
                                      : run_sampled(w, &b, x, part, err);
  for (size_t r = 0; r < w->n_algorithms && status == GL_OK; ++r) {
    lab_summary *s = &w->summary[lab_cell(w, r, x, part)];
    if (w->refused[r * w->n_prompts + x] != NULL || w->stopped[lab_cell(w, r, x, part)] != NULL)
      continue;
    status = lab_summary_init(s, t->n_parameters, w->spec->covariance, err);
    if (status != GL_OK) break;
    s->parameter = t->parameter;
    if (w->fast[r * w->n_prompts + x])
      summary_from_moments(s, &b.moments[r], t, w->prompts[x].gram);
    else
      lab_summary_from_sums(s, &b.sums[r]);
  }
  task_workspace_fini(&b, w->n_algorithms);
  return status;
}

/* --- preparation and results --- */

const char *lab_cannot_measure(const policy_algorithm *algorithm) {
  switch (algorithm->group_scope) {
  case SCOPE_PROMPT:
    break;
  case SCOPE_MICROBATCH:
    return "its denominator mixes prompts, and a group is of one prompt";
  }
  if (policy_needs_reference(algorithm)) return "it needs a reference policy";
  return NULL;
}

/* Sets the lab_form of algorithm r at prompt x, or stores in w->refused why it cannot be measured
 * there. */
static gl_status lab_prepare_algorithm(work *w, size_t r, size_t x, policy_workspace *ws,
                                       gl_error *err) {
  const prompt *p = &w->prompts[x];
  const size_t at = r * w->n_prompts + x;
  const char *needs = lab_cannot_measure(w->algorithms[r]);
  gl_error why = {.status = GL_OK};
  gl_status status = GL_OK;
  if (needs != NULL) gl_fail(&why, GL_EINPUT, "%s", needs);
  if (needs == NULL && p->tables.n <= KERNEL_MOST)
    status = lab_form_init(&w->forms[at], &w->fast[at], w->algorithms[r], &p->tables, ws, &why);
  if (status != GL_OK && status != GL_EINPUT && status != GL_ENUMERIC)
    return gl_fail(err, status, "%s", why.text);
  if (why.status == GL_OK && !w->fast[at] && w->spec->group_size == 0)
    gl_fail(&why, GL_EINPUT,
            "its coefficients do not factor, so its population limit has no closed form");
  if (why.status == GL_OK) return GL_OK;
  w->refused[at] = lab_reason(&why);
  return w->refused[at] != NULL ? GL_OK : gl_fail_memory(err, "a measurement");
}

static gl_status lab_prepare_prompt(work *w, size_t x, policy_workspace *ws, gl_error *err) {
  const lab_spec *spec = w->spec;
  prompt *p = &w->prompts[x];
  gl_status status = lab_tables_init(&p->tables, spec->world, x, spec->theta_learner,
                                     spec->theta_sampler, spec->weights, err);
  if (status == GL_OK) status = lab_tables_narrow(&p->tables, err);
  if (status != GL_OK) return status;
  p->multisets = spec->group_size == 0 ? 0 : lab_multiset_count(p->tables.n, spec->group_size);
  p->exact = p->multisets <= spec->budget;
  if (!p->exact && spec->samples == 0)
    return gl_fail(err, GL_EINPUT,
                   "groups of %zu from %zu responses are %zu multisets, more than the budget of "
                   "%zu; raise the budget or allow Monte Carlo with `samples`",
                   spec->group_size, p->tables.n, p->multisets, spec->budget);
  if (!p->exact) status = lab_alias_init(&p->alias, p->tables.draw, p->tables.n, err);
  for (size_t r = 0; r < w->n_algorithms && status == GL_OK; ++r) {
    status = lab_prepare_algorithm(w, r, x, ws, err);
    if (status != GL_OK || !w->fast[r * w->n_prompts + x] || p->gram != NULL) continue;
    p->gram = ARENA_GRID(&w->memory, double, p->tables.n, p->tables.n);
    status = arena_check(&w->memory, "the products of scores", err);
    if (status == GL_OK) gram_of(&p->tables, p->gram);
  }
  return status;
}

/* Refuses a measurement that would need more than LAB_MOST_BYTES. Estimates the tables and moments
 * of every prompt (only of the parameters that the prompt depends on), one prompt's table of all
 * parameters, and the joined moments. Assumes that all prompts are of the first one's size. */
static gl_status lab_check_memory(const work *w, gl_error *err) {
  const prompt *p = &w->prompts[0];
  const int covariance = w->spec->covariance;
  const double own = (double)p->tables.n_parameters, all = (double)w->spec->world->n_parameters;
  const double cells = (double)(p->tables.n * p->tables.width), parts = p->exact ? 1 : PARTS;
  const double tables = sizeof(double) * (own * (cells + 1) + 3 * cells);
  const double moments =
      sizeof(lab_summary) + sizeof(double) * (covariance ? own + own * own : own);
  const double whole = (parts + 1) * (covariance ? all + all * all : all) + all * cells;
  const double bytes = sizeof(double) * whole +
                       (double)w->n_prompts * (tables + (double)w->n_algorithms *
                                                            (sizeof(lab_form) + parts * moments));
  if (bytes <= LAB_MOST_BYTES) return GL_OK;
  return gl_fail(
      err, GL_EINPUT,
      "the exact laboratory would take %.1f GB for %zu prompts of %zu parameters and %zu "
      "algorithms%s, more than %.1f GB; take fewer prompts (contexts) or parameters, or "
      "fewer algorithms at once",
      bytes / 1e9, w->n_prompts, w->spec->world->n_parameters, w->n_algorithms,
      covariance ? " with covariances" : "", LAB_MOST_BYTES / 1e9);
}

static gl_status lab_prepare(work *w, gl_error *err) {
  const size_t pairs = w->n_algorithms * w->n_prompts;
  w->parts = 1;
  w->prompts = ARENA_ARRAY(&w->memory, prompt, w->n_prompts);
  w->forms = ARENA_ARRAY(&w->memory, lab_form, pairs);
  w->fast = ARENA_ARRAY(&w->memory, int, pairs);
  w->refused = ARENA_ARRAY(&w->memory, gl_error *, pairs);
  policy_workspace *ws = policy_workspace_new();
  gl_status status = arena_check(&w->memory, "a measurement", err);
  if (status == GL_OK && ws == NULL) status = gl_fail_memory(err, "a measurement");
  for (size_t x = 0; x < w->n_prompts && status == GL_OK; ++x) {
    status = lab_prepare_prompt(w, x, ws, err);
    if (x == 0 && status == GL_OK) status = lab_check_memory(w, err);
    if (status == GL_OK && !w->prompts[x].exact) w->parts = PARTS;
  }
  policy_workspace_free(ws);
  if (status != GL_OK) return status;
  w->summary = ARENA_GRID(&w->memory, lab_summary, pairs, w->parts);
  w->stopped = ARENA_GRID(&w->memory, gl_error *, pairs, w->parts);
  return arena_check(&w->memory, "a measurement", err);
}

static void lab_release(work *w) {
  for (size_t x = 0; w->prompts != NULL && x < w->n_prompts; ++x) {
    lab_tables_fini(&w->prompts[x].tables);
    lab_alias_fini(&w->prompts[x].alias);
  }
  for (size_t i = 0; i < w->n_algorithms * w->n_prompts; ++i) {
    if (w->forms != NULL) lab_form_fini(&w->forms[i]);
    if (w->refused != NULL) free(w->refused[i]);
    for (size_t k = 0; k < w->parts; ++k) {
      if (w->summary != NULL) lab_summary_fini(&w->summary[i * w->parts + k]);
      if (w->stopped != NULL) free(w->stopped[i * w->parts + k]);
    }
  }
  arena_fini(&w->memory);
}

/* Fills the fields that do not depend on the algorithm: true gradient, value, divergences, number
 * of groups. */
static gl_status lab_describe(lab_result *out, const work *w, double *rounding, gl_error *err) {
  const enumerable *e = w->spec->world;
  *out = (lab_result){.applicable = 1, .n_parameters = e->n_parameters, .cosine_kept = NAN};
  if (w->n_prompts > 0 && w->prompts[0].tables.kept_gradient != NULL) {
    out->kept_truth = calloc(e->n_parameters, sizeof *out->kept_truth);
    if (out->kept_truth == NULL) return gl_fail_memory(err, "a result");
  }
  out->method = w->spec->group_size == 0 ? LAB_POPULATION : LAB_EXACT;
  out->expected = calloc(e->n_parameters, sizeof *out->expected);
  out->truth = calloc(e->n_parameters, sizeof *out->truth);
  if (out->expected == NULL || out->truth == NULL) return gl_fail_memory(err, "a result");
  double range = 0;
  for (size_t x = 0; x < w->n_prompts; ++x) {
    const prompt *p = &w->prompts[x];
    const double weight = enumerable_prompt_weight(e, x);
    const size_t *at = p->tables.parameter;
    for (size_t i = 0; i < p->tables.n_parameters; ++i) {
      const size_t to = at != NULL ? at[i] : i;
      out->truth[to] += weight * p->tables.gradient[i];
      if (out->kept_truth != NULL) out->kept_truth[to] += weight * p->tables.kept_gradient[i];
    }
    out->value += weight * p->tables.value;
    out->kl += weight * p->tables.kl;
    out->kl_qp += weight * p->tables.kl_qp;
    range = fmax(range, p->tables.reward_range);
    if (w->spec->group_size == 0) continue;
    if (!p->exact) out->method = LAB_MONTE_CARLO;
    out->groups += p->exact ? (double)p->multisets : (double)w->spec->samples;
  }
  *rounding = 1e-13 * fmax(range, 1e-300);
  return GL_OK;
}

/* The result of an algorithm: the weighted mean over prompts in each part of the samples, then the
 * mean of the parts, whose spread gives the standard errors. */
static gl_status lab_conclude(lab_result *out, const work *w, size_t algorithm, gl_error *err) {
  const enumerable *e = w->spec->world;
  arena scratch = {0};
  const lab_summary **at = ARENA_ARRAY(&scratch, const lab_summary *, w->n_prompts);
  double *weights = ARENA_ARRAY(&scratch, double, w->n_prompts), even[PARTS], rounding = 0;
  lab_summary part[PARTS] = {{0}}, whole = {0};
  const lab_summary *parts[PARTS];
  gl_status status = lab_describe(out, w, &rounding, err);
  if (status == GL_OK) status = arena_check(&scratch, "a result", err);
  for (size_t k = 0; k < w->parts && status == GL_OK; ++k) {
    for (size_t x = 0; x < w->n_prompts; ++x) {
      size_t sampled = w->prompts[x].exact ? 0 : k;
      const gl_error *why = w->refused[algorithm * w->n_prompts + x];
      if (why == NULL) why = w->stopped[lab_cell(w, algorithm, x, sampled)];
      if (why != NULL && out->applicable) {
        out->applicable = 0;
        snprintf(out->why, sizeof out->why, "%.190s", why->text);
      }
      at[x] = &w->summary[lab_cell(w, algorithm, x, sampled)];
      weights[x] = enumerable_prompt_weight(e, x);
    }
    if (!out->applicable) break;
    parts[k] = &part[k];
    even[k] = 1 / (double)w->parts;
    status = lab_summary_init(&part[k], e->n_parameters, w->spec->covariance, err);
    if (status == GL_OK) lab_summary_join(&part[k], at, weights, w->n_prompts, SIZE_MAX);
  }
  if (status == GL_OK && out->applicable) {
    status = lab_summary_init(&whole, e->n_parameters, w->spec->covariance, err);
    if (status == GL_OK) {
      lab_summary_join(&whole, parts, even, w->parts, SIZE_MAX);
      memcpy(out->expected, whole.mean, e->n_parameters * sizeof *out->expected);
      lab_summary_numbers(&whole, out->truth, rounding, &out->numbers);
      if (out->kept_truth != NULL) {
        lab_numbers kept;
        lab_summary_numbers(&whole, out->kept_truth, rounding, &kept);
        out->cosine_kept = kept.cosine;
      }
      out->covariance = whole.covariance;
      whole.covariance = NULL;
    }
    if (status == GL_OK && out->method == LAB_MONTE_CARLO) {
      out->expected_error = calloc(out->n_parameters, sizeof *out->expected_error);
      status = out->expected_error == NULL ? gl_fail_memory(err, "standard errors")
                                           : lab_result_errors(out, parts, PARTS, rounding, err);
    }
  }
  for (size_t k = 0; k < w->parts; ++k) lab_summary_fini(&part[k]);
  lab_summary_fini(&whole);
  arena_fini(&scratch);
  return status;
}

gl_status lab_measure(lab_result *out, const policy_algorithm *const *algorithms, size_t n,
                      const lab_spec *spec, gl_error *err) {
  work w = {.spec = spec,
            .algorithms = algorithms,
            .n_algorithms = n,
            .n_prompts = spec->world->n_prompts};
  for (size_t r = 0; r < n; ++r) out[r] = (lab_result){0};
  gl_status status = lab_prepare(&w, err);
  if (status == GL_OK) status = pool_try(w.n_prompts * w.parts, spec->threads, run_task, &w, err);
  for (size_t r = 0; r < n && status == GL_OK; ++r) status = lab_conclude(&out[r], &w, r, err);
  if (status != GL_OK)
    for (size_t r = 0; r < n; ++r) lab_result_fini(&out[r]);
  lab_release(&w);
  return status;
}

void lab_result_fini(lab_result *r) {
  free(r->expected);
  free(r->truth);
  free(r->kept_truth);
  free(r->covariance);
  free(r->expected_error);
  *r = (lab_result){0};
}

/* --- fields of recipes --- */

static const field entries[] = {

    /* recipes of `gepolab lab bias` and `gepolab lab theory` */
    FIELD("learner_probs", "learner probabilities", LIST, "", NULL,
          "of bias: probabilities of the responses under the learner, or a list of them per prompt "
          "(tabular bandits and sequences)",
          .rule = "the world's initial policy"),
    FIELD("sampler_probs", "sampler probabilities", LIST, "", NULL,
          "of bias: the same under the sampler. Either this or `dial` is needed; with "
          "`training` neither is allowed"),
    FIELD("dial", "dial", SECTION, "", NULL,
          "of bias: moves the sampler away from the learner, instead of `sampler_probs`"),
    FIELD("dial.kind", "dial kind", CHOICE("hotter", "colder", "direction", "mixture", "staleness"),
          "", "direction",
          "direction (logits moved along one random direction of the seed), hotter or colder "
          "(logits scaled towards the uniform policy or away from it), mixture (q = (1 − m) p + m "
          "· uniform; bandits and sequences of one prompt) or staleness (learner and sampler are "
          "policies of one path of exact gradient steps)"),
    FIELD("dial.directions", "directions", COUNT(1, 100000), "", "1",
          "of direction: how many random directions; with more than one, medians and fractions "
          "over them are printed"),
    FIELD("dial.kl", "dialled KL", LIST, "nats", NULL,
          "values of KL(p||q) to solve for: a number, a list, or {from, to, points, scale}; "
          "required but for staleness"),
    FIELD("dial.kl.from", "first KL", REAL(0, 1e9), "nats", "0", "first of the values"),
    FIELD("dial.kl.to", "last KL", REAL(0, 1e9), "nats", "1", "last of the values"),
    FIELD("dial.kl.points", "KL points", COUNT(1, 100000), "", "20", "how many values"),
    FIELD("dial.kl.scale", "KL scale", CHOICE("linear", "log"), "", "linear",
          "how they are spaced: linear, or log (from and to above 0)"),
    FIELD("dial.steps", "dial steps", COUNT(1, 1000000), "updates", "100",
          "of staleness: exact gradient steps that the learner has made"),
    FIELD("dial.lr", "dial rate", POSITIVE, "", "0.5", "of staleness: their learning rate"),
    FIELD("dial.updates", "dialled staleness", LIST, "updates", NULL,
          "of staleness: how many steps before the learner the sampler is; a number, a list, or "
          "{from, to, points, scale}; required"),
    FIELD("group_size", "group sizes", LIST, "", "8",
          "of bias: responses of a group, a number or a list",
          .rule = "8; with `population`: only that limit"),
    FIELD("algorithms", "algorithms", LIST, "", "all",
          "of bias: algorithms, each as under `algorithm`, or all; no two may be shown alike"),
    FIELD("population", "population limit", FLAG, "", "false",
          "of bias: also the limit of endless groups, for algorithms that factor"),
    FIELD("budget", "budget", COUNT(1, (size_t)1 << 40), "", "2000000",
          "of bias: most multisets of the responses to one prompt that are enumerated"),
    FIELD("samples", "Monte Carlo groups", COUNT(0, (size_t)1 << 40), "", "262144",
          "of bias: groups per prompt that are sampled where enumeration is beyond the budget; 0: "
          "refuse instead"),
    FIELD("covariance", "covariance", FLAG, "", "false",
          "of bias: the full covariance in the JSON"),
    FIELD("truncation", "truncation", SECTION, "", NULL,
          "distributions of truncated sampling to compare, each with every kind of weights; for "
          "one pair of "
          "policies and one group size"),
    FIELD("truncation.top_p", "compared top-p", NUMBERS(1e-9, 1), "", NULL,
          "values of top_p, each without top_k; 1 truncates nothing"),
    FIELD("truncation.top_k", "compared top-k", NUMBERS(1, 1e9), "", NULL,
          "values of top_k, each without top_p; one of the two lists is required"),
    FIELD("truncation.weights", "compared weights", LIST, "", NULL,
          "kinds of `sampling.weights`; required"),
    FIELD("training", "training", SECTION, "", NULL,
          "of bias: learning curves in exact return instead of a table"),
    FIELD("training.updates", "training updates", COUNT(1, 10000000), "updates", "500",
          "learner updates by sampled groups"),
    FIELD("training.staleness", "training staleness", COUNT(0, 1000000), "updates", "0",
          "groups are sampled from the policy of so many updates ago"),
    FIELD("training.groups", "training groups", COUNT(1, 100000), "", "1",
          "groups of `group_size` in an update"),
    FIELD("training.lr", "training rates", LIST, "", NULL,
          "learning rates, of which each algorithm gets the one of the highest mean return on "
          "other seeds; a list or {from, to, points, scale}. Required"),
    FIELD("training.tuning_seeds", "training tuning seeds", COUNT(1, 10000), "", "5",
          "how many other seeds"),
    FIELD("training.record_every", "recording interval", COUNT(1, 10000000), "updates", "10",
          "updates between two points of a curve"),
    FIELD("training.seeds", "training seeds", COUNT(1, 10000), "", "10", "runs of each algorithm"),
    FIELD("training.stalenesses", "stalenesses of pairs", NUMBERS(1, 1000000), "updates", NULL,
          "of theory: each algorithm is trained at each of these stalenesses, and its pairs of "
          "policies "
          "are those of learner and sampler along the way"),
    FIELD("outcomes", "outcomes", NUMBERS(2, 1e15), "", NULL,
          "of theory: numbers n of outcomes in the table of Theorem 1"),
    FIELD("vocabularies", "vocabularies", NUMBERS(2, 4096), "", NULL,
          "of theory: numbers V of letters in the products of token distributions"),
    FIELD("lengths", "product lengths", NUMBERS(1, 4096), "", NULL, "of theory: their lengths T"),
    FIELD("pairs", "pairs", COUNT(1, 10000000), "", "2000",
          "of theory: random pairs of distributions in each family; Theorem 3 gives medians over "
          "them"),
    FIELD("starts", "search starts", COUNT(1, 1000000), "", "100",
          "of theory: starts of the search for violations of Theorem 2"),
    FIELD("search_outcomes", "searched outcomes", COUNT(2, LAB_SEARCH_MOST), "", "4",
          "of theory: outcomes of the distributions in that search"),
};

FIELD_TABLE(lab_fields, entries);
