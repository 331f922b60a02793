/* The learner step: its table of tokens, optimiser updates, gradient cosine and weight noise. */
#include "core/rl/update.h"

#include "core/random/rng.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- table of a step's tokens --- */

/* A column of a table: the address of its pointer, and the size of an element. */
typedef struct table_column {
  void *at; /* address of the pointer */
  size_t size;
} table_column;

/* Grows n columns to `rows` elements each plus one spare; contents are lost. Returns false and sets
 * *capacity to 0 if out of memory. */
static bool table_grow(const table_column *column, size_t n, size_t rows, size_t *capacity) {
  bool enough = true;
  if (rows <= *capacity) return true;
  for (size_t i = 0; i < n; ++i) {
    void **slot = column[i].at;
    free(*slot);
    *slot = rows < SIZE_MAX ? calloc(rows + 1, column[i].size) : NULL;
    enough = enough && *slot != NULL;
  }
  *capacity = enough ? rows : 0;
  return enough;
}

#define COLUMN(of, name)                                                                           \
  { &(of)->name, sizeof *(of)->name }

/* Allocates columns of these sizes; old contents are lost. */
static gl_status table_resize(update_table *t, size_t groups, size_t responses, size_t tokens,
                              gl_error *err) {
  const table_column by_group[] = {COLUMN(t, group_start),     COLUMN(t, prompt),
                                   COLUMN(t, log_denominator), COLUMN(t, baseline),
                                   COLUMN(t, scale),           COLUMN(t, mean_aw)};
  const table_column by_response[] = {COLUMN(t, token_start), COLUMN(t, group_of),
                                      COLUMN(t, reward), COLUMN(t, loss_weight)};
  const table_column by_token[] = {
      COLUMN(t, token),   COLUMN(t, logq),         COLUMN(t, staleness),
      COLUMN(t, logp),    COLUMN(t, logprox),      COLUMN(t, logref),
      COLUMN(t, entropy), COLUMN(t, entropy_prox), COLUMN(t, coefficient)};
  if (!table_grow(by_group, sizeof by_group / sizeof *by_group, groups, &t->cap_groups) ||
      !table_grow(by_response, sizeof by_response / sizeof *by_response, responses,
                  &t->cap_responses) ||
      !table_grow(by_token, sizeof by_token / sizeof *by_token, tokens, &t->cap_tokens))
    return gl_fail_memory(err, "the batches of an update");
  t->n_groups = groups;
  t->n_responses = responses;
  t->n_tokens = tokens;
  t->n_replayed = 0;
  return GL_OK;
}

/* Takes a replayed batch, the last one in the table, out of the table's counts. */
static void exclude_replayed(update_table *t, const batch *last) {
  if (last->replay == 0) return;
  assert(last->n_groups == last->n_responses && !last->continues);
  t->replay = last->replay;
  t->n_replayed = last->n_responses;
  t->n_groups -= last->n_groups;
  t->n_responses -= last->n_responses;
  t->n_tokens -= last->n_tokens;
}

static void table_fini(update_table *t) {
  void *const columns[] = {t->group_start, t->token_start,  t->prompt,     t->log_denominator,
                           t->baseline,    t->scale,        t->mean_aw,    t->group_of,
                           t->reward,      t->loss_weight,  t->token,      t->logq,
                           t->staleness,   t->logp,         t->logprox,    t->logref,
                           t->entropy,     t->entropy_prox, t->coefficient};
  for (size_t i = 0; i < sizeof columns / sizeof *columns; ++i) free(columns[i]);
  *t = (update_table){0};
}

gl_status update_table_gather(update_table *t, batch *const *batches, size_t n,
                              sampling_weights weights, int64_t version, gl_error *err) {
  const size_t groups = batches_groups((const batch *const *)batches, n);
  size_t responses = 0, tokens = 0;
  for (size_t j = 0; j < n; ++j) {
    assert(batches[j]->replay == 0 || j == n - 1);
    responses += batches[j]->n_responses;
    tokens += batches[j]->n_tokens;
  }
  gl_status status = table_resize(t, groups, responses, tokens, err);
  if (status != GL_OK) return status;
  size_t g0 = 0, i0 = 0, k0 = 0; /* first group, response and token of the batch */
  for (size_t j = 0; j < n; ++j) {
    const batch *b = batches[j];
    const double *logq = weights != SAMPLING_RAW ? b->logq_trunc : b->logq;
    if (b->continues && t->prompt[--g0] != (size_t)b->prompt[0])
      return gl_fail(err, GL_EINTERNAL, "batch %llu continues a group of another prompt",
                     (unsigned long long)b->id);
    for (size_t g = 0; g < b->n_groups; ++g) {
      t->prompt[g0 + g] = (size_t)b->prompt[g];
      if (g > 0 || !b->continues) t->group_start[g0 + g] = i0 + b->group_start[g];
      for (size_t i = b->group_start[g]; i < b->group_start[g + 1]; ++i)
        t->group_of[i0 + i] = g0 + g;
    }
    for (size_t i = 0; i < b->n_responses; ++i) {
      t->token_start[i0 + i] = k0 + b->token_start[i];
      t->reward[i0 + i] = b->reward[i];
      t->loss_weight[i0 + i] = b->loss_weight;
    }
    for (size_t k = 0; k < b->n_tokens; ++k) {
      t->token[k0 + k] = b->token[k];
      t->logq[k0 + k] = logq[k];
      t->staleness[k0 + k] = (double)(version - b->version[k]);
    }
    g0 += b->n_groups;
    i0 += b->n_responses;
    k0 += b->n_tokens;
  }
  t->group_start[groups] = responses;
  t->token_start[responses] = tokens;
  if (n > 0) exclude_replayed(t, batches[n - 1]);
  return GL_OK;
}

/* Copies the columns of the view's groups that core/policy reads into `part`. */
static gl_status table_select(update_table *part, const update_table *all, const token_view *view,
                              gl_error *err) {
  gl_status status = table_resize(part, view->n_groups, view->n_responses, view->n_tokens, err);
  if (status != GL_OK) return status;
  size_t i = 0, k = 0;
  for (size_t j = 0; j < view->n_groups; ++j) {
    const size_t g = view->group[j], first = all->group_start[g], last = all->group_start[g + 1];
    const size_t from = all->token_start[first], n = all->token_start[last] - from;
    part->group_start[j] = i;
    part->log_denominator[j] = all->log_denominator[g];
    for (size_t r = first; r < last; ++r, ++i) {
      part->reward[i] = all->reward[r];
      part->loss_weight[i] = all->loss_weight[r];
      part->token_start[i] = k + all->token_start[r] - from;
    }
    memcpy(part->logq + k, all->logq + from, n * sizeof *part->logq);
    memcpy(part->staleness + k, all->staleness + from, n * sizeof *part->staleness);
    memcpy(part->logp + k, all->logp + from, n * sizeof *part->logp);
    memcpy(part->logprox + k, all->logprox + from, n * sizeof *part->logprox);
    memcpy(part->logref + k, all->logref + from, n * sizeof *part->logref);
    memcpy(part->entropy + k, all->entropy + from, n * sizeof *part->entropy);
    memcpy(part->entropy_prox + k, all->entropy_prox + from, n * sizeof *part->entropy_prox);
    k += n;
  }
  part->group_start[view->n_groups] = i;
  part->token_start[i] = k;
  return GL_OK;
}

/* Copies the coefficients of a part back to the table. */
static void table_put_coefficients(update_table *all, const update_table *part,
                                   const token_view *view) {
  for (size_t j = 0; j < view->n_responses; ++j)
    memcpy(all->coefficient + all->token_start[view->response[j]],
           part->coefficient + part->token_start[j],
           (part->token_start[j + 1] - part->token_start[j]) * sizeof *all->coefficient);
}

/* --- cosine between consecutive gradients --- */

gl_status gradient_trail_init(gradient_trail *t, size_t n, gl_error *err) {
  *t = (gradient_trail){.n = n};
  t->last = calloc(n > 0 ? n : 1, sizeof *t->last);
  t->now = calloc(n > 0 ? n : 1, sizeof *t->now);
  if (t->last != NULL && t->now != NULL) return GL_OK;
  gradient_trail_fini(t);
  return gl_fail_memory(err, "the last gradient");
}

void gradient_trail_fini(gradient_trail *t) {
  free(t->last);
  free(t->now);
  *t = (gradient_trail){0};
}

void gradient_trail_begin(gradient_trail *t) {
  t->sum = 0;
  t->cosines = 0;
}

/* The sums of a^2, b^2 and a b of scaled numbers, each in four independent partial sums. */
static void products(const double *a, const double *b, size_t n, double scale_a, double scale_b,
                     double sum[3]) {
  double part[3][4] = {{0}};
  for (size_t i = 0; i < n; i += 4)
    for (size_t lane = 0; lane < 4 && i + lane < n; ++lane) {
      const double x = a[i + lane] * scale_a, y = b[i + lane] * scale_b;
      part[0][lane] += x * x;
      part[1][lane] += y * y;
      part[2][lane] += x * y;
    }
  for (int k = 0; k < 3; ++k) sum[k] = part[k][0] + part[k][1] + (part[k][2] + part[k][3]);
}

/* A power of two that scales the largest |x[i]| of n to about 1; 0 if all are zero or one is not
 * finite. */
static double scale_of(const double *x, size_t n) {
  double top = 0;
  int exponent;
  for (size_t i = 0; i < n; ++i) {
    if (!isfinite(x[i])) return 0;
    top = fmax(top, fabs(x[i]));
  }
  if (top == 0) return 0;
  frexp(top, &exponent);
  return ldexp(1, exponent < -1000 ? 1000 : -exponent);
}

static int in_range(double square) {
  return square > 1e-200 && square < 1e200;
}

static double cosine(const double *a, const double *b, size_t n) {
  double sum[3];
  products(a, b, n, 1, 1, sum);
  if (!in_range(sum[0]) || !in_range(sum[1])) {
    const double scale_a = scale_of(a, n), scale_b = scale_of(b, n);
    if (scale_a == 0 || scale_b == 0) return NAN;
    products(a, b, n, scale_a, scale_b, sum);
  }
  return fmax(-1, fmin(1, sum[2] / (sqrt(sum[0]) * sqrt(sum[1]))));
}

void gradient_trail_next(gradient_trail *t) {
  const double c = t->has_last ? cosine(t->last, t->now, t->n) : NAN;
  double *kept = t->now;
  if (!isnan(c)) {
    t->sum += c;
    ++t->cosines;
  }
  t->now = t->last;
  t->last = kept;
  t->has_last = 1;
}

double gradient_trail_mean(const gradient_trail *t) {
  return t->cosines > 0 ? t->sum / (double)t->cosines : NAN;
}

/* --- weight noise --- */

/* The block of response i in an optimiser update, of weight noise and of random drops. */
static uint64_t response_block(size_t update, size_t i) {
  assert(update < UPDATE_MOST_RANDOM && i <= UINT32_MAX);
  return (uint64_t)update << 32 | (uint64_t)i;
}

double weight_noise_factor(double variance, uint64_t seed, uint64_t step, size_t update, size_t i) {
  if (variance == 0) return 1;
  const double width = sqrt(log1p(variance)); /* standard deviation of the logarithm */
  const rng_stream stream = rng_stream_at(seed, RNG_WEIGHT_NOISE, step);
  const rng_words w = rng_block(stream, response_block(update, i));
  return exp(width * rng_normal(w) - width * width / 2);
}

void weight_noise_apply(double variance, uint64_t seed, uint64_t step, size_t update,
                        const size_t *token_start, size_t n, double *coefficient) {
  for (size_t i = 0; variance != 0 && i < n; ++i) {
    const double factor = weight_noise_factor(variance, seed, step, update, i);
    for (size_t k = token_start[i]; k < token_start[i + 1]; ++k) coefficient[k] *= factor;
  }
}

/* --- random drops --- */

int random_drops_any(const random_drops *d) {
  return d->negative > 0 || d->positive > 0 || d->equal > 0;
}

void random_drops_apply(const random_drops *d, uint64_t seed, uint64_t step, size_t update,
                        const update_table *t) {
  if (!random_drops_any(d)) return;
  const rng_stream stream = rng_stream_at(seed, RNG_WEIGHT_NOISE, step);
  for (size_t g = 0; g < t->n_groups; ++g) {
    const size_t from = t->group_start[g], to = t->group_start[g + 1];
    double sum = 0;
    int equal = 1;
    for (size_t i = from; i < to; ++i) {
      sum += t->reward[i];
      equal = equal && t->reward[i] == t->reward[from];
    }
    const double mean = sum / (double)(to - from);
    for (size_t i = from; i < to; ++i) {
      const rng_words w = rng_block(stream, response_block(update, i));
      const double probability = equal                 ? d->equal
                                 : t->reward[i] < mean ? d->negative
                                 : t->reward[i] > mean ? d->positive
                                                       : 0;
      if (rng_u01_53(w.v[0], w.v[1]) >= probability) continue;
      for (size_t k = t->token_start[i]; k < t->token_start[i + 1]; ++k) t->coefficient[k] = 0;
    }
  }
}

/* --- the step --- */

gl_status update_loop_init(update_loop *u, const learner_setup *setup, gl_error *err) {
  assert(setup->weight_noise == 0 || !random_drops_any(&setup->drops));
  *u = (update_loop){.algorithm = *setup->algorithm,
                     .seed = setup->seed,
                     .updates = setup->updates,
                     .minibatches = setup->minibatches,
                     .epochs = setup->epochs,
                     .weight_noise = setup->weight_noise,
                     .drops = setup->drops,
                     .workspace = policy_workspace_new()};
  return u->workspace != NULL ? GL_OK : gl_fail_memory(err, "a learner");
}

void update_loop_fini(update_loop *u) {
  policy_workspace_free(u->workspace);
  gradient_trail_fini(&u->trail);
  table_fini(&u->table);
  table_fini(&u->part);
  free(u->order);
  free(u->responses);
  *u = (update_loop){0};
}

bool update_wants_entropies(const update_loop *u) {
  return policy_needs_entropy(&u->algorithm);
}

/* Allocates the lists of a view of the table. */
static gl_status view_reserve(update_loop *u, gl_error *err) {
  const table_column order = COLUMN(u, order), responses = COLUMN(u, responses);
  if (table_grow(&order, 1, u->table.n_groups, &u->cap_order) &&
      table_grow(&responses, 1, u->table.n_responses + u->table.n_replayed, &u->cap_responses))
    return GL_OK;
  return gl_fail_memory(err, "an update's minibatches");
}

/* Makes a view of the groups order[first .. last). */
static void view_groups(update_loop *u, size_t first, size_t last, token_view *view) {
  const update_table *t = &u->table;
  *view =
      (token_view){.n_groups = last - first, .group = u->order + first, .response = u->responses};
  for (size_t j = 0; j < view->n_groups; ++j) {
    const size_t from = t->group_start[view->group[j]], to = t->group_start[view->group[j] + 1];
    for (size_t i = from; i < to; ++i) u->responses[view->n_responses++] = i;
    view->n_tokens += t->token_start[to] - t->token_start[from];
  }
}

/* Lists the replayed responses behind those of views. Their objective is the coefficient of replay
 * times the mean of logp over their tokens. */
static void list_replayed(update_loop *u) {
  update_table *t = &u->table;
  const size_t first = t->token_start[t->n_responses];
  const size_t end = t->token_start[t->n_responses + t->n_replayed];
  for (size_t k = first; k < end; ++k) t->coefficient[k] = t->replay / (double)(end - first);
  for (size_t i = t->n_responses; i < t->n_responses + t->n_replayed; ++i) u->responses[i] = i;
}

gl_status update_view_all(update_loop *u, token_view *view, gl_error *err) {
  gl_status status = view_reserve(u, err);
  if (status != GL_OK) return status;
  for (size_t g = 0; g < u->table.n_groups; ++g) u->order[g] = g;
  view_groups(u, 0, u->table.n_groups, view);
  list_replayed(u);
  return GL_OK;
}

token_view update_view_replayed(const update_loop *u) {
  const update_table *t = &u->table;
  return (token_view){.n_responses = t->n_replayed, .response = u->responses + t->n_responses};
}

/* Computes coefficients of the tokens of the table or of a part. */
static gl_status update_coefficients(update_loop *u, const policy_algorithm *algorithm,
                                     update_table *t, policy_output *out, gl_error *err) {
  const policy_input in = {
      .n_groups = t->n_groups,
      .n_responses = t->n_responses,
      .n_tokens = t->n_tokens,
      .group_start = t->group_start,
      .token_start = t->token_start,
      .reward = t->reward,
      .logp = t->logp,
      .logq = t->logq,
      .logprox = t->logprox,
      .logref = u->has_reference ? t->logref : NULL,
      .entropy = policy_needs_entropy(algorithm) ? t->entropy : NULL,
      .entropy_prox = policy_needs_entropy(algorithm) ? t->entropy_prox : NULL,
      .version_gap = t->staleness,
      .log_denominator = policy_needs_exact_denominator(&u->algorithm) ? t->log_denominator : NULL,
      .max_length = u->longest,
  };
  out->coefficient = t->coefficient;
  return policy_evaluate(algorithm, &in, out, u->workspace, err);
}

gl_status update_evaluate(update_loop *u, const policy_algorithm *algorithm, double *metrics,
                          gl_error *err) {
  update_table *t = &u->table;
  policy_output out = {.baseline = t->baseline, .scale = t->scale, .mean_aw = t->mean_aw};
  if (algorithm->proximal_decay == 0) {
    memcpy(t->logprox, t->logp, t->n_tokens * sizeof *t->logprox);
    memcpy(t->entropy_prox, t->entropy, t->n_tokens * sizeof *t->entropy_prox);
  }
  gl_status status = update_coefficients(u, algorithm, t, &out, err);
  if (status == GL_OK) memcpy(metrics, out.metric, sizeof out.metric);
  return status;
}

static bool is_same_response(const update_table *t, size_t i, size_t k) {
  const size_t a = t->token_start[i], b = t->token_start[k], n = t->token_start[i + 1] - a;
  return n == t->token_start[k + 1] - b &&
         memcmp(t->token + a, t->token + b, n * sizeof *t->token) == 0;
}

/* Counts different right responses; undefined (NaN) unless all rewards are 0 or 1. */
static void measure_right(const update_table *t, double metrics[METRIC_COUNT]) {
  size_t solved = 0, distinct = 0;
  for (size_t i = 0; i < t->n_responses; ++i)
    if (t->reward[i] != 0 && t->reward[i] != 1) return;
  for (size_t g = 0; g < t->n_groups; ++g) {
    const size_t before = distinct;
    for (size_t i = t->group_start[g]; i < t->group_start[g + 1]; ++i) {
      size_t k = t->group_start[g];
      if (t->reward[i] != 1) continue;
      while (k < i && (t->reward[k] != 1 || !is_same_response(t, i, k))) ++k;
      distinct += k == i;
    }
    solved += distinct > before;
  }
  metrics[METRIC_PASS_AT_G] = (double)solved / (double)t->n_groups;
  metrics[METRIC_DISTINCT_RIGHT] = (double)distinct / (double)t->n_groups;
}

/* The factor on the learning rate from the effective sample size of the importance weights. */
static double rate_factor(const update_loop *u, const update_table *t) {
  if (u->optimizer.ess_scaling == ESS_NONE) return 1;
  return optimizer_ess_factor(&u->optimizer,
                              optimizer_ess(t->logp, t->logq, t->token_start, t->n_responses));
}

/* Rewards and lengths of the whole batch. */
static void measure_batch(const update_table *all, double metrics[METRIC_COUNT]) {
  double reward = 0;
  for (size_t i = 0; i < all->n_responses; ++i) reward += all->reward[i];
  metrics[METRIC_REWARD_MEAN] = reward / (double)all->n_responses;
  measure_right(all, metrics);
  metrics[METRIC_RESPONSE_LENGTH] = (double)all->n_tokens / (double)all->n_responses;
}

gl_status update_run(update_loop *u, const update_ops *ops, void *self,
                     double metrics[METRIC_COUNT], gl_error *err) {
  update_table *all = &u->table;
  const size_t groups = all->n_groups, parts = u->minibatches;
  const bool scales = u->optimizer.ess_scaling != ESS_NONE;
  const double lr = optimizer_lr(&u->optimizer, (uint64_t)u->version, u->updates);
  double norms = 0, factors = 0;
  size_t count = 0; /* optimiser updates so far */
  bool defined = false;
  token_view view;
  gl_status status = update_view_all(u, &view, err);
  if (status == GL_OK) status = ops->score(self, &view, UPDATE_WHOLE, &defined, err);
  const bool begun = defined;
  if (status == GL_OK && begun) {
    status = update_evaluate(u, &u->algorithm, metrics, err);
    if (status == GL_OK) ops->measure(self, metrics);
    gradient_trail_begin(&u->trail);
  }
  for (size_t epoch = 0; epoch < u->epochs && defined && status == GL_OK; ++epoch) {
    if (parts > 1) learner_shuffle(u->order, groups, u->seed, u->version, epoch);
    for (size_t m = 0; m < parts; ++m) {
      update_table *t = parts > 1 ? &u->part : all;
      policy_output out = {.skip_metrics = 1};
      double norm = 0;
      if (parts > 1)
        view_groups(u, learner_minibatch(m, parts, groups), learner_minibatch(m + 1, parts, groups),
                    &view);
      if (parts > 1 || epoch > 0) { /* otherwise the coefficients of the whole table are used */
        status = ops->score(self, &view, UPDATE_PART, &defined, err);
        if (status != GL_OK || !defined) break;
        if (parts > 1) status = table_select(t, all, &view, err);
        if (status == GL_OK) status = update_coefficients(u, &u->algorithm, t, &out, err);
        if (status != GL_OK) break;
      }
      const double factor = rate_factor(u, t);
      weight_noise_apply(u->weight_noise, u->seed, (uint64_t)u->version, count, t->token_start,
                         t->n_responses, t->coefficient);
      random_drops_apply(&u->drops, u->seed, (uint64_t)u->version, count, t);
      batch_weigh(t->loss_weight, t->token_start, t->n_responses, t->coefficient);
      if (parts > 1) table_put_coefficients(all, t, &view);
      status = ops->step(self, &view, lr * factor, &norm, err);
      if (status != GL_OK) break;
      gradient_trail_next(&u->trail);
      norms += norm;
      factors += factor;
      ++count;
    }
  }
  if (status != GL_OK) return status;
  if (begun) {
    metrics[METRIC_GRAD_NORM] = norms / (double)count;
    metrics[METRIC_GRAD_COSINE] = gradient_trail_mean(&u->trail);
  }
  measure_batch(all, metrics);
  metrics[METRIC_LR] = scales && count > 0 ? lr * factors / (double)count : lr;
  ++u->version;
  return GL_OK;
}
