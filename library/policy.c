/* Policy evaluation on the caller's buffers.
 *
 * Most algorithms need each token once. For them a response is read, evaluated and written while
 * its tokens are in the cache, so only the caller's arrays pass through main memory. For other
 * algorithms, contiguous double arrays are used in place, for input and output. All other arrays
 * are copied once into or out of the workspace, response by response. Input arrays are never
 * modified. Responses are distributed over the workspace's threads. */
#include "core/policy/policy.h"
#include "core/base/simd.h"
#include "core/base/thread_pool.h"
#include "library/internal.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The per-token input arrays, in the order of their positions in the workspace. */
enum { IN_LOGP, IN_LOGQ, IN_LOGPROX, IN_LOGREF, IN_GAP, IN_ENTROPY, IN_ENTROPY_PROX, IN_ARRAYS };
/* The per-token output arrays. */
enum { OUT_COEFFICIENT, OUT_WEIGHT, OUT_ARRAYS };

static const char *const in_names[IN_ARRAYS] = {"logp",        "logq",    "logprox",     "logref",
                                                "version_gap", "entropy", "entropy_prox"};

struct gepolab_workspace {
  policy_workspace *policy;
  pool *threads; /* owned; NULL: only the caller's thread */
  void *space;
  size_t size;
};

/* State of one evaluation. */
typedef struct evaluation {
  const gepolab_batch *batch;
  gepolab_workspace *workspace;
  size_t n_tokens;
  size_t *group_start, *token_start; /* [n_groups + 1], [n_responses + 1] */
  size_t *first_column; /* [n_responses] first column of a response's tokens; SCATTERED: not
                           contiguous */
  double *reward, *log_denominator, *advantage;
  double *given;                           /* [n_responses] the caller's advantages */
  double *in[IN_ARRAYS], *out[OUT_ARRAYS]; /* [n_tokens] in the workspace, or the caller's */
  gl_error err;
} evaluation;

/* --- shapes --- */

/* The largest accepted count: sums of several stay below 2^63. */
static const int64_t MOST = (int64_t)1 << 40;

static gl_status check_counts(evaluation *e) {
  const gepolab_batch *b = e->batch;
  if (b->size != sizeof *b)
    return gl_fail(&e->err, GL_EINPUT,
                   "batch.size is %zu, not sizeof(gepolab_batch) = %zu: begin with GEPOLAB_INIT, "
                   "and compile with this library's header",
                   b->size, sizeof *b);
  if (b->n_responses < 1 || b->n_responses > MOST || b->n_groups < 1 ||
      b->n_groups > b->n_responses)
    return gl_fail(&e->err, GL_EINPUT,
                   "a batch has at least one group and no more groups than responses; this one has "
                   "n_groups %lld and n_responses %lld",
                   (long long)b->n_groups, (long long)b->n_responses);
  if (b->max_length < 0 || b->max_length > MOST)
    return gl_fail(&e->err, GL_EINPUT, "max_length %lld is no length", (long long)b->max_length);
  const int ways = (b->token_start != NULL) + (b->length != NULL) + (b->mask != NULL);
  if (ways > 1)
    return gl_fail(&e->err, GL_EINPUT,
                   "give one of token_start, length and mask, not %d of them: each says which "
                   "tokens a response has",
                   ways);
  if (b->token_start == NULL && (b->columns < 1 || b->columns > MOST))
    return gl_fail(&e->err, GL_EINPUT, "a padded batch needs its number of columns; it is %lld",
                   (long long)b->columns);
  return GL_OK;
}

/* Marks a response whose tokens are not in contiguous columns. */
#define SCATTERED SIZE_MAX

/* From this many tokens on, using threads is worth their wake-up. */
enum { FEW_TOKENS = 8192 };

/* Runs a task for every response; `tokens` is the approximate total number. */
static void each_response(evaluation *e, pool_task run, void *context, size_t tokens) {
  pool *threads = tokens < FEW_TOKENS ? NULL : e->workspace->threads;
  pool_spread(threads, run, context, (size_t)e->batch->n_responses);
}

static int mask_at(const gepolab_batch *b, int64_t i, int64_t t) {
  return b->mask[i * b->mask_response_stride + t * b->mask_token_stride] != 0;
}

/* The number of tokens of response i, and its first column in *column; -1 if the batch gives an
 * invalid length. */
static int64_t tokens_of(const gepolab_batch *b, int64_t i, size_t *column) {
  *column = 0;
  if (b->token_start != NULL) {
    /* compare before subtracting, because the difference may overflow */
    const int64_t from = b->token_start[i], to = b->token_start[i + 1];
    return from < 0 || to < from || to > MOST ? -1 : to - from;
  }
  if (b->length != NULL) return b->length[i] > b->columns ? -1 : b->length[i];
  if (b->mask == NULL) return b->columns;
  size_t end;
  const size_t n = strided_marked(b->mask + i * b->mask_response_stride, b->mask_token_stride,
                                  (size_t)b->columns, column, &end);
  if (end - *column != n) *column = SCATTERED;
  return (int64_t)n;
}

/* Stores the length of response i (0 if invalid) where its end will be stored. */
static void batch_measure(void *context, size_t i, size_t worker) {
  evaluation *e = context;
  const int64_t n = tokens_of(e->batch, (int64_t)i, &e->first_column[i]);
  (void)worker;
  e->token_start[i + 1] = n > 0 ? (size_t)n : 0;
}

static gl_status refuse_length(evaluation *e, int64_t i) {
  size_t column;
  if (tokens_of(e->batch, i, &column) < 0)
    return gl_fail(&e->err, GL_EINPUT,
                   "the tokens of response %lld are no valid range: starts rise, and lengths lie "
                   "between 0 and the %lld columns",
                   (long long)i, (long long)e->batch->columns);
  return gl_fail(&e->err, GL_EINPUT,
                 "response %lld has no tokens: it has no log-probability to be weighted by; "
                 "leave it out of its group, or count its end-of-text token",
                 (long long)i);
}

static gl_status lay_out_tokens(evaluation *e) {
  const gepolab_batch *b = e->batch;
  const int64_t cells = b->mask == NULL ? 0 : b->columns; /* bytes read per response */
  e->token_start[0] = 0;
  each_response(e, batch_measure, e,
                cells < FEW_TOKENS ? (size_t)(cells * b->n_responses) : FEW_TOKENS);
  for (int64_t i = 0; i < b->n_responses; ++i) {
    if (e->token_start[i + 1] == 0) return refuse_length(e, i);
    e->token_start[i + 1] += e->token_start[i];
  }
  e->n_tokens = e->token_start[b->n_responses];
  return GL_OK;
}

static gl_status lay_out_groups(evaluation *e) {
  const gepolab_batch *b = e->batch;
  if (b->group_start == NULL && (b->group_size < 1 || b->n_responses % b->group_size != 0 ||
                                 b->n_responses / b->group_size != b->n_groups))
    return gl_fail(&e->err, GL_EINPUT,
                   "%lld groups of group_size %lld are not %lld responses; for groups of other "
                   "sizes give group_start",
                   (long long)b->n_groups, (long long)b->group_size, (long long)b->n_responses);
  for (int64_t g = 0; g <= b->n_groups; ++g) {
    const int64_t start = b->group_start != NULL ? b->group_start[g] : g * b->group_size;
    const int64_t least = g == 0 ? 0 : (int64_t)e->group_start[g - 1] + 1;
    if (start < least || start > b->n_responses || (g == 0 && start != 0) ||
        (g == b->n_groups && start != b->n_responses))
      return gl_fail(&e->err, GL_EINPUT,
                     "group_start[%lld] is %lld: starts rise from 0 to the %lld responses",
                     (long long)g, (long long)start, (long long)b->n_responses);
    e->group_start[g] = (size_t)start;
  }
  return GL_OK;
}

/* --- reading --- */

static double batch_number_at(const void *data, gepolab_type type, int64_t at) {
  return type == GEPOLAB_FLOAT32 ? (double)((const float *)data)[at] : ((const double *)data)[at];
}

static gl_status check_type(evaluation *e, const char *name, const void *data, gepolab_type type) {
  if (type == GEPOLAB_NONE && data == NULL) return GL_OK;
  if (data == NULL || (type != GEPOLAB_FLOAT32 && type != GEPOLAB_FLOAT64))
    return gl_fail(&e->err, GL_EINPUT,
                   "%s has %s and type number %d; float32 and float64 are taken: convert others",
                   name, data == NULL ? "no data" : "data", (int)type);
  return GL_OK;
}

static gl_status batch_read_numbers(evaluation *e, const char *name, const gepolab_numbers *from,
                                    int64_t n, double *to) {
  for (int64_t i = 0; i < n; ++i) {
    to[i] = batch_number_at(from->data, from->type, i * from->stride);
    if (!isfinite(to[i]))
      return gl_fail(&e->err, GL_EINPUT, "%s[%lld] is %g", name, (long long)i, to[i]);
  }
  return GL_OK;
}

/* Index of the element of response i's first token (packed) or column (padded). */
static int64_t first_of(const gepolab_batch *b, int64_t i, int64_t response_stride,
                        int64_t token_stride) {
  return b->token_start != NULL ? b->token_start[i] * token_stride : i * response_stride;
}

static int is_log(int array) {
  return array != IN_GAP && array != IN_ENTROPY && array != IN_ENTROPY_PROX;
}

static gl_status batch_refuse_token(evaluation *e, int array, size_t i, size_t t, double value) {
  static const char *const meaning[IN_ARRAYS] = {
      "log-probability",    "log-probability", "log-probability", "log-probability",
      "number of versions", "entropy",         "entropy"};
  return gl_fail(&e->err, GL_EINPUT, "%s of response %zu, token %zu, is %g, which is no %s",
                 in_names[array], i, t, value, meaning[array]);
}

/* The elements of an array that hold response i's tokens, which must be in contiguous columns. */
static strided batch_strided_of(const evaluation *e, const void *data, gepolab_type type,
                                int64_t response_stride, int64_t token_stride, size_t i) {
  const int64_t start = first_of(e->batch, (int64_t)i, response_stride, token_stride);
  return (strided){.data = (void *)data,
                   .type = type,
                   .first = start + (int64_t)e->first_column[i] * token_stride,
                   .stride = token_stride,
                   .n = e->token_start[i + 1] - e->token_start[i]};
}

static void gather_masked(const gepolab_batch *b, const gepolab_tokens *from, int64_t i,
                          double *to) {
  const int64_t first = i * from->response_stride;
  size_t n = 0;
  for (int64_t t = 0; t < b->columns; ++t)
    if (mask_at(b, i, t))
      to[n++] = batch_number_at(from->data, from->type, first + t * from->token_stride);
}

/* State of reading one array. */
typedef struct reading {
  evaluation *e;
  const gepolab_tokens *from;
  double *to;          /* [n_tokens]; NULL: the array is used in place */
  const double *value; /* [n_tokens] the values that the evaluation will read */
  double most;
  _Atomic int refused; /* some number is not finite, or above `most` */
} reading;

/* Copies the tokens of response i to `to`; returns whether they are finite and at most `most`. */
static int batch_read_row(const evaluation *e, const gepolab_tokens *from, size_t i, double most,
                          double *to) {
  const size_t n = e->token_start[i + 1] - e->token_start[i];
  if (e->first_column[i] == SCATTERED) {
    gather_masked(e->batch, from, (int64_t)i, to);
    return numbers_are_within(to, n, most);
  }
  const strided at =
      batch_strided_of(e, from->data, from->type, from->response_stride, from->token_stride, i);
  return strided_read(&at, most, to);
}

static void batch_read_response(void *context, size_t i, size_t worker) {
  reading *r = context;
  const evaluation *e = r->e;
  const size_t start = e->token_start[i], n = e->token_start[i + 1] - start;
  (void)worker;
  const int ok = r->to != NULL ? batch_read_row(e, r->from, i, r->most, r->to + start)
                               : numbers_are_within(r->value + start, n, r->most);
  if (!ok) atomic_store(&r->refused, 1);
}

/* Reports the first number that is not finite or above `most`. */
static gl_status find_refused(evaluation *e, int array, const double *value, double most) {
  for (size_t i = 0; i < (size_t)e->batch->n_responses; ++i)
    for (size_t t = e->token_start[i]; t < e->token_start[i + 1]; ++t)
      if (!isfinite(value[t]) || value[t] > most)
        return batch_refuse_token(e, array, i, t - e->token_start[i], value[t]);
  return gl_fail(&e->err, GL_EINTERNAL, "%s has a number that is not found again", in_names[array]);
}

/* Checks that numbers of versions and entropies are not negative, but for an entropy's rounding. */
static gl_status check_signs(evaluation *e, int array, const double *value) {
  const double least = array == IN_GAP ? 0 : POLICY_LEAST_ENTROPY;
  for (size_t i = 0; !is_log(array) && i < (size_t)e->batch->n_responses; ++i)
    for (size_t t = e->token_start[i]; t < e->token_start[i + 1]; ++t)
      if (value[t] < least) return batch_refuse_token(e, array, i, t - e->token_start[i], value[t]);
  return GL_OK;
}

/* Whether policy_evaluate() can use the array in place: contiguous doubles starting at token 0. */
static int is_direct(const gepolab_batch *b, gepolab_type type, int64_t response_stride,
                     int64_t token_stride) {
  if (type != GEPOLAB_FLOAT64 || token_stride != 1) return 0;
  if (b->token_start != NULL) return b->token_start[0] == 0;
  return b->length == NULL && b->mask == NULL && response_stride == b->columns;
}

static int is_direct_in(const gepolab_batch *b, const gepolab_tokens *from) {
  return is_direct(b, from->type, from->response_stride, from->token_stride);
}

static int is_direct_out(const gepolab_batch *b, const gepolab_tokens_out *to) {
  return is_direct(b, to->type, to->response_stride, to->token_stride);
}

static gl_status read_tokens(evaluation *e, int array, const gepolab_tokens *from,
                             const double **to) {
  *to = NULL;
  if (from->type == GEPOLAB_NONE) return GL_OK;
  reading r = {.e = e, .from = from, .most = is_log(array) ? POLICY_MOST_LOG : INFINITY};
  r.to = is_direct_in(e->batch, from) ? NULL : e->in[array];
  r.value = r.to == NULL ? from->data : r.to;
  each_response(e, batch_read_response, &r, e->n_tokens);
  *to = r.value;
  if (atomic_load(&r.refused)) return find_refused(e, array, r.value, r.most);
  return check_signs(e, array, r.value);
}

/* --- memory --- */

static int wants_in(const gepolab_batch *b, int array) {
  const gepolab_tokens *const given[IN_ARRAYS] = {
      &b->logp, &b->logq, &b->logprox, &b->logref, &b->version_gap, &b->entropy, &b->entropy_prox};
  return given[array]->type != GEPOLAB_NONE && !is_direct_in(b, given[array]);
}

static gl_status batch_grow(evaluation *e, size_t doubles) {
  gepolab_workspace *w = e->workspace;
  if (doubles > SIZE_MAX / sizeof(double)) return gl_fail_memory(&e->err, "the batch");
  if (doubles * sizeof(double) <= w->size) return GL_OK;
  void *space = realloc(w->space, doubles * sizeof(double));
  if (space == NULL) return gl_fail_memory(&e->err, "the batch");
  w->space = space;
  w->size = doubles * sizeof(double);
  return GL_OK;
}

static void *batch_take(double **at, size_t n) {
  void *part = *at;
  *at += n;
  return part;
}

_Static_assert(sizeof(size_t) <= sizeof(double), "starts share the workspace's doubles");

/* Computes the starts first, because they give the number of tokens; then lays out the other
 * arrays, since growing the workspace may move it. */
static gl_status batch_prepare(evaluation *e) {
  const gepolab_batch *b = e->batch;
  const size_t n_responses = (size_t)b->n_responses, n_groups = (size_t)b->n_groups;
  const size_t starts = n_groups + 1 + n_responses + 1 + n_responses;
  gl_status status = batch_grow(e, starts);
  if (status != GL_OK) return status;
  e->group_start = e->workspace->space;
  e->token_start = e->group_start + n_groups + 1;
  e->first_column = e->token_start + n_responses + 1;
  status = lay_out_groups(e);
  if (status == GL_OK) status = lay_out_tokens(e);
  size_t arrays = OUT_ARRAYS;
  for (int k = 0; k < IN_ARRAYS; ++k) arrays += (size_t)wants_in(b, k);
  if (status == GL_OK)
    status = batch_grow(e, starts + n_groups + 3 * n_responses + arrays * e->n_tokens);
  if (status != GL_OK) return status;
  double *at = e->workspace->space;
  e->group_start = batch_take(&at, n_groups + 1);
  e->token_start = batch_take(&at, n_responses + 1);
  e->first_column = batch_take(&at, n_responses);
  e->log_denominator = batch_take(&at, n_groups);
  e->reward = batch_take(&at, n_responses);
  e->advantage = batch_take(&at, n_responses);
  e->given = batch_take(&at, n_responses);
  for (int k = 0; k < OUT_ARRAYS; ++k) e->out[k] = batch_take(&at, e->n_tokens);
  for (int k = 0; k < IN_ARRAYS; ++k)
    e->in[k] = wants_in(b, k) ? batch_take(&at, e->n_tokens) : NULL;
  return GL_OK;
}

static gl_status check_arrays(evaluation *e, const gepolab_result *r) {
  const gepolab_batch *b = e->batch;
  const struct {
    const char *name;
    const void *data;
    gepolab_type type;
    int needed;
  } arrays[] = {{"reward", b->reward.data, b->reward.type, 1},
                {"logp", b->logp.data, b->logp.type, 1},
                {"logq", b->logq.data, b->logq.type, 1},
                {"logprox", b->logprox.data, b->logprox.type, 0},
                {"logref", b->logref.data, b->logref.type, 0},
                {"version_gap", b->version_gap.data, b->version_gap.type, 0},
                {"entropy", b->entropy.data, b->entropy.type, 0},
                {"entropy_prox", b->entropy_prox.data, b->entropy_prox.type, 0},
                {"advantage", b->advantage.data, b->advantage.type, 0},
                {"log_denominator", b->log_denominator.data, b->log_denominator.type, 0},
                {"coefficient", r->coefficient.data, r->coefficient.type, 0},
                {"weight", r->weight.data, r->weight.type, 0},
                {"advantage", r->advantage.data, r->advantage.type, 0}};
  if (r->size != sizeof *r)
    return gl_fail(&e->err, GL_EINPUT,
                   "result.size is %zu, not sizeof(gepolab_result) = %zu: begin with GEPOLAB_INIT",
                   r->size, sizeof *r);
  for (size_t k = 0; k < sizeof arrays / sizeof arrays[0]; ++k) {
    gl_status status = check_type(e, arrays[k].name, arrays[k].data, arrays[k].type);
    if (status != GL_OK) return status;
    if (arrays[k].needed && arrays[k].data == NULL)
      return gl_fail(&e->err, GL_EINPUT, "%s is needed and was not given", arrays[k].name);
  }
  return GL_OK;
}

/* Reads the arrays that policy_evaluate() needs, or (streamed not NULL) all except the two that are
 * read during the evaluation. */
static gl_status read_batch(evaluation *e, policy_input *in, const int *streamed) {
  const gepolab_batch *b = e->batch;
  const gepolab_tokens *const from[IN_ARRAYS] = {
      &b->logp, &b->logq, &b->logprox, &b->logref, &b->version_gap, &b->entropy, &b->entropy_prox};
  const double **const to[IN_ARRAYS] = {&in->logp,        &in->logq,        &in->logprox,
                                        &in->logref,      &in->version_gap, &in->entropy,
                                        &in->entropy_prox};
  *in = (policy_input){.n_groups = (size_t)b->n_groups,
                       .n_responses = (size_t)b->n_responses,
                       .n_tokens = e->n_tokens,
                       .group_start = e->group_start,
                       .token_start = e->token_start,
                       .reward = e->reward,
                       .max_length = (size_t)b->max_length};
  gl_status status = batch_read_numbers(e, "reward", &b->reward, b->n_responses, e->reward);
  for (int k = 0; k < IN_ARRAYS && status == GL_OK; ++k)
    if (streamed == NULL || (k != streamed[POLICY_NOW] && k != streamed[POLICY_BEFORE]))
      status = read_tokens(e, k, from[k], to[k]);
  if (status == GL_OK && b->advantage.type != GEPOLAB_NONE) {
    status = batch_read_numbers(e, "advantage", &b->advantage, b->n_responses, e->given);
    in->advantage = e->given;
  }
  if (status == GL_OK && b->log_denominator.type != GEPOLAB_NONE) {
    status = batch_read_numbers(e, "log_denominator", &b->log_denominator, b->n_groups,
                                e->log_denominator);
    in->log_denominator = e->log_denominator;
  }
  return status;
}

/* --- writing --- */

static void batch_put(void *data, gepolab_type type, int64_t at, double value) {
  if (type == GEPOLAB_FLOAT32)
    ((float *)data)[at] = (float)value;
  else
    ((double *)data)[at] = value;
}

static void scatter_masked(const gepolab_batch *b, const gepolab_tokens_out *to, int64_t i,
                           const double *value, double all) {
  const int64_t first = i * to->response_stride;
  size_t k = 0;
  for (int64_t t = 0; t < b->columns; ++t) {
    const int marked = mask_at(b, i, t);
    const double v = value != NULL && marked ? value[k] : all;
    batch_put(to->data, to->type, first + t * to->token_stride, marked ? v : 0);
    k += (size_t)marked;
  }
}

/* Writes token values to their columns, or the number `all` if value is NULL, and 0 to padding
 * columns. */
static void batch_scatter(const evaluation *e, const gepolab_tokens_out *to, size_t i,
                          const double *value, double all) {
  const gepolab_batch *b = e->batch;
  if (e->first_column[i] == SCATTERED) {
    scatter_masked(b, to, (int64_t)i, value, all);
    return;
  }
  strided at = batch_strided_of(e, to->data, to->type, to->response_stride, to->token_stride, i);
  const size_t before = e->first_column[i], n = at.n;
  if (value != NULL)
    strided_write(&at, value);
  else
    strided_fill(&at, all);
  if (b->token_start != NULL) return;
  at.first += (int64_t)n * at.stride;
  at.n = (size_t)b->columns - before - n;
  strided_fill(&at, 0);
  at.first -= (int64_t)(before + n) * at.stride;
  at.n = before;
  strided_fill(&at, 0);
}

/* State of writing results. */
typedef struct writing {
  const evaluation *e;
  const gepolab_tokens_out *to[OUT_ARRAYS]; /* NULL: not requested, or computed in place */
  gepolab_type type[OUT_ARRAYS];            /* element type of the caller's array */
  _Atomic int infinite;                     /* some result is not finite in that type */
} writing;

static void write_response(void *context, size_t i, size_t worker) {
  writing *w = context;
  const evaluation *e = w->e;
  const size_t start = e->token_start[i], n = e->token_start[i + 1] - start;
  (void)worker;
  for (int k = 0; k < OUT_ARRAYS; ++k) {
    if (e->out[k] == NULL) continue;
    if (!numbers_fit(e->out[k] + start, n, w->type[k])) atomic_store(&w->infinite, 1);
    if (w->to[k] != NULL) batch_scatter(e, w->to[k], i, e->out[k] + start, 0);
  }
}

static policy_precision kept_in(gepolab_type type) {
  return type == GEPOLAB_FLOAT32 ? POLICY_SINGLE : POLICY_DOUBLE;
}

static gl_status write_tokens(evaluation *e, const policy_input *in, const policy_output *out,
                              const gepolab_result *result) {
  const gepolab_tokens_out *asked[OUT_ARRAYS] = {&result->coefficient, &result->weight};
  writing w = {.e = e};
  for (int k = 0; k < OUT_ARRAYS; ++k) {
    w.type[k] = asked[k]->type;
    if (asked[k]->type != GEPOLAB_NONE && asked[k]->data != e->out[k]) w.to[k] = asked[k];
  }
  each_response(e, write_response, &w, e->n_tokens);
  if (!atomic_load(&w.infinite) && isfinite(out->loss) &&
      numbers_fit(e->advantage, in->n_responses, result->advantage.type))
    return GL_OK;
  const policy_precisions keeping = {.advantage = kept_in(result->advantage.type),
                                     .weight = kept_in(result->weight.type),
                                     .coefficient = kept_in(result->coefficient.type)};
  const gl_status status = policy_check_finite(in, out, &keeping, &e->err);
  if (status != GL_OK) return status;
  return gl_fail(&e->err, GL_EINTERNAL, "a result that is not finite is not found again");
}

static void write_result(const evaluation *e, const policy_output *out, gepolab_result *result) {
  result->loss = out->loss;
  if (result->advantage.type != GEPOLAB_NONE)
    for (int64_t i = 0; i < e->batch->n_responses; ++i)
      batch_put(result->advantage.data, result->advantage.type, i * result->advantage.stride,
                e->advantage[i]);
  if (result->metric != NULL) memcpy(result->metric, out->metric, sizeof out->metric);
}

/* --- streaming --- */

/* An evaluation that reads and writes tokens while they are evaluated. */
typedef struct streaming {
  const evaluation *e;
  const gepolab_tokens *from[2]; /* indexed by policy_which */
  const gepolab_tokens_out *to;  /* NULL: coefficients are not requested */
  gepolab_type type;             /* type of the array of coefficients */
} streaming;

static const double *stream_read(void *self, size_t i, policy_which which, double *space) {
  const streaming *x = self;
  const evaluation *e = x->e;
  const gepolab_tokens *from = x->from[which];
  const size_t start = e->token_start[i], n = e->token_start[i + 1] - start;
  if (!is_direct_in(e->batch, from))
    return batch_read_row(e, from, i, POLICY_MOST_LOG, space) ? space : NULL;
  const double *direct = (const double *)from->data + start;
  return numbers_are_within(direct, n, POLICY_MOST_LOG) ? direct : NULL;
}

static int stream_write(void *self, size_t i, const double *coefficient) {
  const streaming *x = self;
  const evaluation *e = x->e;
  if (x->to != NULL) batch_scatter(e, x->to, i, coefficient, 0);
  return numbers_fit(coefficient, e->token_start[i + 1] - e->token_start[i], x->type);
}

static int stream_fill(void *self, size_t i, double coefficient) {
  const streaming *x = self;
  if (x->to != NULL) batch_scatter(x->e, x->to, i, NULL, coefficient);
  return numbers_fit(&coefficient, 1, x->type);
}

static int can_stream(const policy_algorithm *algorithm, const gepolab_result *r) {
  return policy_can_stream(algorithm) && r->metric == NULL && r->weight.type == GEPOLAB_NONE;
}

/* Sets *done if there was no error. Otherwise the caller evaluates again with evaluate_whole(),
 * which reports the error and its position. */
static gl_status stream(evaluation *e, const policy_algorithm *algorithm, gepolab_result *result,
                        policy_output *out, int *done) {
  const gepolab_batch *b = e->batch;
  const int proximal = algorithm->old_policy == OLD_PROXIMAL;
  const int old = !proximal ? IN_LOGQ : b->logprox.type != GEPOLAB_NONE ? IN_LOGPROX : IN_LOGP;
  const int streamed[2] = {[POLICY_NOW] = IN_LOGP, [POLICY_BEFORE] = old};
  const gepolab_tokens *const logs[] = {&b->logp, &b->logq, &b->logprox};
  streaming x = {.e = e,
                 .from = {[POLICY_NOW] = &b->logp, [POLICY_BEFORE] = logs[old]},
                 .type = result->coefficient.type};
  policy_stream s = {.self = &x, .read = stream_read, .write = stream_write, .fill = stream_fill};
  policy_input in;
  int refused = 0;
  if (result->coefficient.type != GEPOLAB_NONE) x.to = &result->coefficient;
  for (size_t i = 0; i < (size_t)b->n_responses; ++i) {
    const size_t n = e->token_start[i + 1] - e->token_start[i];
    if (n > s.longest) s.longest = n;
  }
  gl_status status = read_batch(e, &in, streamed);
  if (status == GL_OK)
    status =
        policy_evaluate_stream(algorithm, &in, &s, out, e->workspace->policy, &refused, &e->err);
  *done = status == GL_OK && !refused && isfinite(out->loss) &&
          numbers_fit(e->advantage, (size_t)b->n_responses, result->advantage.type);
  return status;
}

/* Evaluates the whole batch, array by array. */
static gl_status evaluate_whole(evaluation *e, const policy_algorithm *algorithm,
                                gepolab_result *result, policy_output *out) {
  policy_input in;
  gl_status status = read_batch(e, &in, NULL);
  if (status != GL_OK) return status;
  if (is_direct_out(e->batch, &result->coefficient))
    e->out[OUT_COEFFICIENT] = result->coefficient.data;
  if (is_direct_out(e->batch, &result->weight)) e->out[OUT_WEIGHT] = result->weight.data;
  if (result->weight.type == GEPOLAB_NONE) e->out[OUT_WEIGHT] = NULL; /* not requested */
  out->coefficient = e->out[OUT_COEFFICIENT];
  out->weight = e->out[OUT_WEIGHT];
  status = policy_evaluate(algorithm, &in, out, e->workspace->policy, &e->err);
  return status == GL_OK ? write_tokens(e, &in, out, result) : status;
}

/* --- public functions --- */

gepolab_status gepolab_workspace_new(gepolab_workspace **out, gepolab_error *err) {
  gepolab_workspace *w = calloc(1, sizeof *w);
  *out = NULL;
  if (w != NULL) w->policy = policy_workspace_new();
  if (w == NULL || w->policy == NULL) {
    free(w);
    return library_fail(err, GL_ENOMEM, "out of memory for a workspace");
  }
  *out = w;
  return GEPOLAB_OK;
}

void gepolab_workspace_free(gepolab_workspace *workspace) {
  if (workspace == NULL) return;
  policy_workspace_free(workspace->policy);
  pool_free(workspace->threads);
  free(workspace->space);
  free(workspace);
}

gepolab_status gepolab_workspace_threads(gepolab_workspace *workspace, int64_t threads,
                                         gepolab_error *err) {
  gl_error own = {.status = GL_OK};
  pool *made = NULL;
  if (threads < 1)
    return library_fail(err, GL_EINPUT, "%lld threads; at least 1 evaluates", (long long)threads);
  const size_t n = (uint64_t)threads > SIZE_MAX ? SIZE_MAX : (size_t)threads;
  if (n == (workspace->threads == NULL ? 1 : pool_threads(workspace->threads))) return GEPOLAB_OK;
  if (n > 1 && pool_new(&made, n, &own) != GL_OK) return library_failed(err, &own);
  policy_workspace_share(workspace->policy, made);
  pool_free(workspace->threads);
  workspace->threads = made;
  return GEPOLAB_OK;
}

static gl_status batch_evaluate(evaluation *e, const policy_algorithm *algorithm,
                                gepolab_result *result) {
  policy_output out = {.skip_metrics = result->metric == NULL};
  int done = 0;
  gl_status status = check_counts(e);
  if (status == GL_OK) status = check_arrays(e, result);
  if (status == GL_OK) status = batch_prepare(e);
  if (status != GL_OK) return status;
  metrics_clear(out.metric);
  out.advantage = e->advantage;
  if (can_stream(algorithm, result)) status = stream(e, algorithm, result, &out, &done);
  if (status == GL_OK && !done) status = evaluate_whole(e, algorithm, result, &out);
  if (status == GL_OK) write_result(e, &out, result);
  return status;
}

/* The size of a batch in interface 0.1. */
static const size_t FIRST_SIZE = offsetof(gepolab_batch, advantage);

gepolab_status gepolab_policy(const gepolab_algorithm *algorithm, const gepolab_batch *batch,
                              gepolab_result *result, gepolab_workspace *workspace,
                              gepolab_error *err) {
  gepolab_batch older = GEPOLAB_INIT(gepolab_batch);
  if (batch->size == FIRST_SIZE) {
    memcpy(&older, batch, FIRST_SIZE);
    older.size = sizeof older;
    batch = &older;
  }
  evaluation e = {.batch = batch, .workspace = workspace};
  const gl_status status = batch_evaluate(&e, &algorithm->own, result);
  return status == GL_OK ? GEPOLAB_OK : library_failed(err, &e.err);
}

size_t gepolab_metrics_count(void) {
  return METRIC_COUNT;
}

const char *gepolab_metric_name(size_t i) {
  return i < METRIC_COUNT ? metric_about((metric)i)->name : NULL;
}

const char *gepolab_metric_meaning(size_t i) {
  return i < METRIC_COUNT ? metric_about((metric)i)->meaning : NULL;
}

/* --- strided arrays --- */
/* Reads, checks and writes strided arrays of tokens. Contiguous elements, by far the most common
 * case, have their own loops. */

/* Returns whether some number is not in [-FLT_MAX, most]. */
CLONES static uint32_t widen(const float *from, size_t n, float most, double *to) {
  uint32_t refused = 0;
  for (size_t t = 0; t < n; ++t) {
    to[t] = (double)from[t];
    refused |= ((from[t] <= most) & (from[t] >= -FLT_MAX)) ? 0 : 1;
  }
  return refused;
}

/* The largest finite float that is at most `most`. */
static float float_below(double most) {
  if (most >= (double)FLT_MAX) return FLT_MAX;
  const float nearest = (float)most;
  return (double)nearest > most ? nextafterf(nearest, -INFINITY) : nearest;
}

CLONES static void narrow(const double *from, size_t n, float *to) {
  for (size_t t = 0; t < n; ++t) to[t] = (float)from[t];
}

int strided_read(const strided *from, double most, double *to) {
  if (from->type == GEPOLAB_FLOAT32) {
    const float *at = (const float *)from->data + from->first;
    if (from->stride == 1) return widen(at, from->n, float_below(most), to) == 0;
    for (size_t t = 0; t < from->n; ++t) to[t] = (double)at[(int64_t)t * from->stride];
  } else {
    const double *at = (const double *)from->data + from->first;
    if (from->stride == 1 && from->n > 0) memcpy(to, at, from->n * sizeof *to);
    for (size_t t = 0; t < from->n && from->stride != 1; ++t) to[t] = at[(int64_t)t * from->stride];
  }
  return numbers_are_within(to, from->n, most);
}

void strided_write(const strided *to, const double *value) {
  if (to->type == GEPOLAB_FLOAT32) {
    float *at = (float *)to->data + to->first;
    if (to->stride == 1) narrow(value, to->n, at);
    for (size_t t = 0; t < to->n && to->stride != 1; ++t)
      at[(int64_t)t * to->stride] = (float)value[t];
  } else {
    double *at = (double *)to->data + to->first;
    if (to->stride == 1 && to->n > 0) memcpy(at, value, to->n * sizeof *at);
    for (size_t t = 0; t < to->n && to->stride != 1; ++t) at[(int64_t)t * to->stride] = value[t];
  }
}

CLONES static void fill_singles(float *to, size_t n, float value) {
  for (size_t t = 0; t < n; ++t) to[t] = value;
}

CLONES static void fill_doubles(double *to, size_t n, double value) {
  for (size_t t = 0; t < n; ++t) to[t] = value;
}

void strided_fill(const strided *to, double value) {
  if (to->n == 0) return;
  if (to->type == GEPOLAB_FLOAT32) {
    float *at = (float *)to->data + to->first;
    if (to->stride == 1) fill_singles(at, to->n, (float)value);
    for (size_t t = 0; t < to->n && to->stride != 1; ++t)
      at[(int64_t)t * to->stride] = (float)value;
  } else {
    double *at = (double *)to->data + to->first;
    if (to->stride == 1) fill_doubles(at, to->n, value);
    for (size_t t = 0; t < to->n && to->stride != 1; ++t) at[(int64_t)t * to->stride] = value;
  }
}

CLONES static uint64_t beyond(const double *value, size_t n, double most) {
  uint64_t count = 0;
  for (size_t t = 0; t < n; ++t) count += ((value[t] <= most) & (value[t] >= -DBL_MAX)) ? 0 : 1;
  return count;
}

int numbers_are_within(const double *value, size_t n, double most) {
  return beyond(value, n, most < DBL_MAX ? most : DBL_MAX) == 0;
}

CLONES static uint64_t outside(const double *value, size_t n, double most) {
  uint64_t count = 0;
  for (size_t t = 0; t < n; ++t) count += ((value[t] <= most) & (value[t] >= -most)) ? 0 : 1;
  return count;
}

int numbers_fit(const double *value, size_t n, gepolab_type type) {
  return outside(value, n, type == GEPOLAB_FLOAT32 ? (double)FLT_MAX : DBL_MAX) == 0;
}

/* Counters are bytes, which 255 rounds cannot overflow. */
enum { LANES = 32, ROUNDS = 255 };

CLONES static size_t marked(const uint8_t *mask, size_t n) {
  size_t count = 0;
  while (n >= LANES) {
    uint8_t lane[LANES] = {0};
    const size_t rounds = n / LANES < ROUNDS ? n / LANES : ROUNDS;
    for (size_t r = 0; r < rounds; ++r, mask += LANES)
      for (size_t l = 0; l < LANES; ++l) lane[l] = (uint8_t)(lane[l] + (mask[l] != 0));
    for (size_t l = 0; l < LANES; ++l) count += lane[l];
    n -= rounds * LANES;
  }
  for (size_t t = 0; t < n; ++t) count += mask[t] != 0;
  return count;
}

size_t strided_marked(const uint8_t *mask, int64_t stride, size_t n, size_t *first, size_t *end) {
  *first = 0;
  *end = n;
  for (uint64_t eight = 0; stride == 1 && *end >= sizeof eight; *end -= sizeof eight) {
    memcpy(&eight, mask + *end - sizeof eight, sizeof eight);
    if (eight != 0) break;
  }
  while (*end > 0 && mask[(int64_t)(*end - 1) * stride] == 0) --*end;
  while (*first < *end && mask[(int64_t)*first * stride] == 0) ++*first;
  if (stride == 1) return marked(mask + *first, *end - *first);
  size_t count = 0;
  for (size_t t = *first; t < *end; ++t) count += mask[(int64_t)t * stride] != 0;
  return count;
}
