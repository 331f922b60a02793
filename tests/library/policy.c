/* The library evaluates batches where they lie: packed or padded, masked, strided backwards, in
 * float32 and float64, with the bits of policy_evaluate(); what it cannot take it names. */
#include "core/policy/policy.h"
#include "core/random/rng.h"
#include "library/gepolab.h"
#include "tests/support/suite.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

SUITE("library: policy");

enum { GROUPS = 3, SIZE = 4, RESPONSES = GROUPS * SIZE, COLUMNS = 9, CELLS = RESPONSES * COLUMNS };

static const int64_t lengths[RESPONSES] = {3, 9, 1, 4, 5, 2, 7, 7, 1, 8, 6, 3};

/* A batch in double precision, padded, whose numbers are exact in float32. */
typedef struct made {
  double reward[RESPONSES], logp[CELLS], logq[CELLS], logprox[CELLS], logref[CELLS], gap[CELLS];
  double entropy[CELLS], entropy_prox[CELLS], log_denominator[GROUPS];
} made;

static double drawn(uint64_t index, double low, double high) {
  const rng_words w = rng_block(rng_stream_at(7, RNG_TEST, 3), index);
  return (double)(float)(low + (high - low) * rng_u01(w.v[0]));
}

static void make(made *m) {
  for (size_t i = 0; i < RESPONSES; ++i) m->reward[i] = (double)(i % 3 == 0);
  for (size_t g = 0; g < GROUPS; ++g) m->log_denominator[g] = -1.5;
  for (size_t k = 0; k < CELLS; ++k) {
    m->logq[k] = drawn(k, -2.5, -0.3);
    m->logp[k] = (double)(float)(m->logq[k] + drawn(1000 + k, -0.3, 0.25));
    m->logprox[k] = (double)(float)(m->logq[k] + drawn(2000 + k, -0.2, 0.2));
    m->logref[k] = drawn(3000 + k, -2.5, -0.3);
    m->gap[k] = (double)(k % 5);
    m->entropy[k] = drawn(4000 + k, 0.1, 3);
    m->entropy_prox[k] = (double)(float)(m->entropy[k] * drawn(5000 + k, 0.9, 1.1));
  }
}

/* What policy_evaluate() says of it, packed. */
typedef struct reference {
  size_t token_start[RESPONSES + 1], n_tokens;
  double advantage[RESPONSES], weight[CELLS], coefficient[CELLS], metric[METRIC_COUNT], loss;
} reference;

static void pack(const reference *r, const double *padded, double *packed) {
  for (size_t i = 0; i < RESPONSES; ++i)
    for (size_t t = r->token_start[i]; t < r->token_start[i + 1]; ++t)
      packed[t] = padded[i * COLUMNS + t - r->token_start[i]];
}

static gl_status refer(const made *m, const policy_algorithm *algorithm, reference *r) {
  size_t group_start[GROUPS + 1];
  double logp[CELLS], logq[CELLS], logprox[CELLS], logref[CELLS], gap[CELLS];
  double entropy[CELLS], entropy_prox[CELLS];
  memset(r, 0, sizeof *r);
  for (size_t g = 0; g <= GROUPS; ++g) group_start[g] = g * SIZE;
  for (size_t i = 0; i < RESPONSES; ++i)
    r->token_start[i + 1] = r->token_start[i] + (size_t)lengths[i];
  r->n_tokens = r->token_start[RESPONSES];
  pack(r, m->logp, logp);
  pack(r, m->logq, logq);
  pack(r, m->logprox, logprox);
  pack(r, m->logref, logref);
  pack(r, m->gap, gap);
  pack(r, m->entropy, entropy);
  pack(r, m->entropy_prox, entropy_prox);
  const policy_input in = {.n_groups = GROUPS,
                           .n_responses = RESPONSES,
                           .n_tokens = r->n_tokens,
                           .group_start = group_start,
                           .token_start = r->token_start,
                           .reward = m->reward,
                           .logp = logp,
                           .logq = logq,
                           .logprox = logprox,
                           .logref = logref,
                           .version_gap = gap,
                           .entropy = entropy,
                           .entropy_prox = entropy_prox,
                           .log_denominator = m->log_denominator,
                           .max_length = COLUMNS};
  policy_output out = {
      .advantage = r->advantage, .weight = r->weight, .coefficient = r->coefficient};
  policy_workspace *w = policy_workspace_new();
  metrics_clear(out.metric);
  const gl_status status = policy_evaluate(algorithm, &in, &out, w, NULL);
  memcpy(r->metric, out.metric, sizeof r->metric);
  r->loss = out.loss;
  policy_workspace_free(w);
  return status;
}

/* --- layouts --- */

typedef enum way { PADDED, BACKWARDS, TURNED, MASKED, PACKED, WAYS } way;
static const char *const way_names[WAYS] = {"padded", "backwards", "turned", "masked", "packed"};

enum { WIDE = 2 * COLUMNS, ROOM = RESPONSES * WIDE };

/* A layout of the batch: where cell (i, t) lies, and the bytes of the arrays. */
typedef struct layout {
  way how;
  gepolab_type type;
  int64_t token_start[RESPONSES + 1];
  uint8_t mask[ROOM];
  double space[10][ROOM];
} layout;

/* Element of token t of response i from the array's data; of a masked one, its column. */
static int64_t column_of(const layout *l, int64_t i, int64_t t) {
  return l->how == MASKED ? 2 * t + (i & 1) : t;
}
static int64_t base_of(const layout *l) {
  return l->how == BACKWARDS ? (RESPONSES - 1) * COLUMNS + COLUMNS - 1 : 0;
}
static int64_t response_stride(const layout *l) {
  switch (l->how) {
  case PADDED:
    return COLUMNS;
  case BACKWARDS:
    return -COLUMNS;
  case TURNED:
    return 1;
  case MASKED:
    return WIDE;
  case PACKED:
    return 0;
  case WAYS:
    break;
  }
  return 0;
}
static int64_t token_stride(const layout *l) {
  return l->how == BACKWARDS ? -1 : l->how == TURNED ? RESPONSES : 1;
}
static int64_t element(const layout *l, int64_t i, int64_t t) {
  if (l->how == PACKED) return l->token_start[i] + t;
  return base_of(l) + i * response_stride(l) + column_of(l, i, t) * token_stride(l);
}

static void *place(layout *l, int k) {
  return l->type == GEPOLAB_FLOAT32 ? (void *)((float *)(void *)l->space[k] + base_of(l))
                                    : (void *)(l->space[k] + base_of(l));
}

static void lay(layout *l, int k, const double *padded) {
  for (int64_t i = 0; i < RESPONSES; ++i)
    for (int64_t t = 0; t < lengths[i]; ++t) {
      const double value = padded[i * COLUMNS + t];
      if (l->type == GEPOLAB_FLOAT32)
        ((float *)(void *)l->space[k])[element(l, i, t)] = (float)value;
      else
        l->space[k][element(l, i, t)] = value;
    }
}

static double laid(const layout *l, int k, int64_t i, int64_t t) {
  const int64_t at = element(l, i, t);
  return l->type == GEPOLAB_FLOAT32 ? (double)((const float *)(const void *)l->space[k])[at]
                                    : l->space[k][at];
}

enum { LOGP, LOGQ, LOGPROX, LOGREF, GAP, ENTROPY, ENTROPY_PROX, COEFFICIENT, WEIGHT };

static gepolab_tokens tokens(layout *l, int k) {
  return (gepolab_tokens){place(l, k), l->type, response_stride(l), token_stride(l)};
}
static gepolab_tokens_out tokens_out(layout *l, int k) {
  return (gepolab_tokens_out){place(l, k), l->type, response_stride(l), token_stride(l)};
}

static gepolab_batch lay_batch(layout *l, made *m) {
  gepolab_batch b = GEPOLAB_INIT(gepolab_batch);
  const double *const from[] = {m->logp, m->logq,    m->logprox,     m->logref,
                                m->gap,  m->entropy, m->entropy_prox};
  memset(l->space, 0x7f, sizeof l->space); /* what is no token is never read as one */
  memset(l->mask, 0, sizeof l->mask);
  l->token_start[0] = 0;
  for (int64_t i = 0; i < RESPONSES; ++i) {
    l->token_start[i + 1] = l->token_start[i] + lengths[i];
    for (int64_t t = 0; t < lengths[i]; ++t) l->mask[i * WIDE + column_of(l, i, t)] = 1;
  }
  for (int k = LOGP; k <= ENTROPY_PROX; ++k) lay(l, k, from[k]);
  b.n_responses = RESPONSES;
  b.n_groups = GROUPS;
  b.group_size = SIZE;
  b.columns = l->how == MASKED ? WIDE : COLUMNS;
  if (l->how == PACKED)
    b.token_start = l->token_start;
  else if (l->how == MASKED)
    b.mask = l->mask;
  else
    b.length = lengths;
  b.mask_response_stride = WIDE;
  b.mask_token_stride = 1;
  b.reward = (gepolab_numbers){m->reward, GEPOLAB_FLOAT64, 1};
  b.logp = tokens(l, LOGP);
  b.logq = tokens(l, LOGQ);
  b.logprox = tokens(l, LOGPROX);
  b.logref = tokens(l, LOGREF);
  b.version_gap = tokens(l, GAP);
  b.entropy = tokens(l, ENTROPY);
  b.entropy_prox = tokens(l, ENTROPY_PROX);
  b.log_denominator = (gepolab_numbers){m->log_denominator, GEPOLAB_FLOAT64, 1};
  b.max_length = COLUMNS;
  return b;
}

static int same(double a, double b) {
  return a == b || (isnan(a) && isnan(b));
}

/* A result in float32 is the double result, rounded once. */
static double as_stored(const layout *l, double value) {
  return l->type == GEPOLAB_FLOAT32 ? (double)(float)value : value;
}

/* measured NULL: neither weights nor metrics were asked for. */
static int same_result(const layout *l, const reference *want, const gepolab_result *got,
                       const double *advantage, const double *measured) {
  int ok = same(got->loss, want->loss);
  for (int64_t i = 0; i < RESPONSES; ++i) {
    ok = ok && same(advantage[i], want->advantage[i]);
    for (int64_t t = 0; t < lengths[i]; ++t) {
      const size_t at = want->token_start[i] + (size_t)t;
      ok = ok && same(laid(l, COEFFICIENT, i, t), as_stored(l, want->coefficient[at]));
      if (measured != NULL) ok = ok && same(laid(l, WEIGHT, i, t), as_stored(l, want->weight[at]));
    }
  }
  for (size_t k = 0; k < METRIC_COUNT && measured != NULL; ++k)
    ok = ok && same(measured[k], want->metric[k]);
  return ok;
}

static int check_layout(const gepolab_algorithm *algorithm, gepolab_workspace *w, made *m,
                        const reference *want, way how, gepolab_type type, int all) {
  static layout l;
  double advantage[RESPONSES], measured[METRIC_COUNT];
  gepolab_error err = {.status = GEPOLAB_OK};
  l.how = how;
  l.type = type;
  const gepolab_batch batch = lay_batch(&l, m);
  gepolab_result result = GEPOLAB_INIT(gepolab_result);
  result.coefficient = tokens_out(&l, COEFFICIENT);
  if (all) result.weight = tokens_out(&l, WEIGHT);
  result.advantage = (gepolab_numbers_out){advantage, GEPOLAB_FLOAT64, 1};
  if (all) result.metric = measured;
  const int ok = gepolab_policy(algorithm, &batch, &result, w, &err) == GEPOLAB_OK &&
                 same_result(&l, want, &result, advantage, all ? measured : NULL);
  if (!ok)
    fprintf(stderr, "%s, %s, type %d, %s: differs (%s)\n", gepolab_algorithm_name(algorithm),
            way_names[how], (int)type, all ? "all" : "coefficients alone", err.text);
  return ok;
}

TEST(every_layout_gives_the_bits_of_policy_evaluate) {
  static made m;
  static reference want;
  gepolab_workspace *w = NULL;
  size_t evaluated = 0;
  make(&m);
  CU_ASSERT_EQUAL_FATAL(gepolab_workspace_new(&w, NULL), GEPOLAB_OK);
  CU_ASSERT_EQUAL(gepolab_algorithms_count(), policy_algorithms_count());
  for (size_t i = 0; i < gepolab_algorithms_count(); ++i) {
    gepolab_algorithm_info info;
    gepolab_algorithm *algorithm = NULL;
    CU_ASSERT_EQUAL_FATAL(gepolab_algorithms_at(i, &info, NULL), GEPOLAB_OK);
    CU_ASSERT_EQUAL_FATAL(gepolab_algorithm_new(&algorithm, info.name, NULL), GEPOLAB_OK);
    CU_ASSERT_STRING_EQUAL(gepolab_algorithm_name(algorithm), info.name);
    CU_ASSERT_EQUAL_FATAL(refer(&m, policy_algorithms_find(info.name), &want), GL_OK);
    for (int how = 0; how < WAYS; ++how)
      for (int all = 0; all < 2; ++all) {
        CU_ASSERT(check_layout(algorithm, w, &m, &want, (way)how, GEPOLAB_FLOAT64, all));
        CU_ASSERT(check_layout(algorithm, w, &m, &want, (way)how, GEPOLAB_FLOAT32, all));
        evaluated += 2;
      }
    gepolab_algorithm_free(algorithm);
  }
  CU_ASSERT_EQUAL(evaluated, 4 * WAYS * policy_algorithms_count());
  gepolab_workspace_free(w);
}

TEST(columns_beyond_a_response_get_coefficient_zero) {
  static made m;
  static layout l = {.how = PADDED, .type = GEPOLAB_FLOAT64};
  gepolab_workspace *w = NULL;
  gepolab_algorithm *algorithm = NULL;
  gepolab_result result = GEPOLAB_INIT(gepolab_result);
  make(&m);
  CU_ASSERT_EQUAL_FATAL(gepolab_workspace_new(&w, NULL), GEPOLAB_OK);
  CU_ASSERT_EQUAL_FATAL(gepolab_algorithm_new(&algorithm, "gepo", NULL), GEPOLAB_OK);
  const gepolab_batch batch = lay_batch(&l, &m);
  result.coefficient = tokens_out(&l, COEFFICIENT);
  CU_ASSERT_EQUAL(gepolab_policy(algorithm, &batch, &result, w, NULL), GEPOLAB_OK);
  for (int64_t i = 0; i < RESPONSES; ++i)
    for (int64_t t = lengths[i]; t < COLUMNS; ++t)
      CU_ASSERT_EQUAL(l.space[COEFFICIENT][i * COLUMNS + t], 0);
  gepolab_algorithm_free(algorithm);
  gepolab_workspace_free(w);
}

/* --- refusals --- */

typedef struct wrong {
  const char *text; /* what the message has to say */
  void (*spoil)(gepolab_batch *b, gepolab_result *r, layout *l);
} wrong;

static void no_size(gepolab_batch *b, gepolab_result *r, layout *l) {
  (void)r, (void)l;
  b->size = 8;
}
static void no_result_size(gepolab_batch *b, gepolab_result *r, layout *l) {
  (void)b, (void)l;
  r->size = 0;
}
static void no_groups(gepolab_batch *b, gepolab_result *r, layout *l) {
  (void)r, (void)l;
  b->n_groups = 0;
}
static void odd_groups(gepolab_batch *b, gepolab_result *r, layout *l) {
  (void)r, (void)l;
  b->group_size = 5;
}
static void falling_starts(gepolab_batch *b, gepolab_result *r, layout *l) {
  static const int64_t starts[GROUPS + 1] = {0, 8, 4, 12};
  (void)r, (void)l;
  b->group_start = starts;
}
static void two_shapes(gepolab_batch *b, gepolab_result *r, layout *l) {
  (void)r;
  b->mask = l->mask;
}
static void too_long(gepolab_batch *b, gepolab_result *r, layout *l) {
  (void)r, (void)l;
  b->columns = 8;
}
static void empty_response(gepolab_batch *b, gepolab_result *r, layout *l) {
  static const int64_t with_an_empty_one[RESPONSES] = {3, 9, 0, 4, 5, 2, 7, 7, 1, 8, 6, 3};
  (void)r, (void)l;
  b->length = with_an_empty_one;
}
/* A start so far below the one before that their difference overflows to a length. */
static void overflowing_starts(gepolab_batch *b, gepolab_result *r, layout *l) {
  static const int64_t starts[RESPONSES + 1] = {0,  3,  12, 16, 20, 25,           27,
                                                34, 41, 42, 50, 56, INT64_MIN + 1};
  (void)r, (void)l;
  b->length = NULL;
  b->token_start = starts;
}
static void no_logq(gepolab_batch *b, gepolab_result *r, layout *l) {
  (void)r, (void)l;
  b->logq = (gepolab_tokens){.data = NULL};
}
static void half_precision(gepolab_batch *b, gepolab_result *r, layout *l) {
  (void)r, (void)l;
  b->logp.type = (gepolab_type)16;
}
static void a_nan(gepolab_batch *b, gepolab_result *r, layout *l) {
  (void)b, (void)r;
  l->space[LOGP][1 * COLUMNS + 4] = NAN;
}
static void a_probability(gepolab_batch *b, gepolab_result *r, layout *l) {
  (void)b, (void)r;
  l->space[LOGQ][3 * COLUMNS + 2] = 0.7;
}
static void a_negative_gap(gepolab_batch *b, gepolab_result *r, layout *l) {
  (void)b, (void)r;
  l->space[GAP][1 * COLUMNS + 4] = -1;
}
static void a_negative_entropy(gepolab_batch *b, gepolab_result *r, layout *l) {
  (void)b, (void)r;
  l->space[ENTROPY][3 * COLUMNS + 2] = -1.5;
}
static void an_overflow(gepolab_batch *b, gepolab_result *r, layout *l) {
  (void)b, (void)r;
  l->space[LOGQ][0] = -2000;
}

TEST(what_is_wrong_is_named) {
  static const wrong cases[] = {{"batch.size is 8", no_size},
                                {"result.size is 0", no_result_size},
                                {"n_groups 0", no_groups},
                                {"group_size 5", odd_groups},
                                {"group_start[2] is 4", falling_starts},
                                {"one of token_start, length and mask", two_shapes},
                                {"response 1 are no valid range", too_long},
                                {"response 2 has no tokens", empty_response},
                                {"response 11 are no valid range", overflowing_starts},
                                {"logq is needed", no_logq},
                                {"logp has data and type number 16", half_precision},
                                {"logp of response 1, token 4, is nan", a_nan},
                                {"logq of response 3, token 2, is 0.7", a_probability},
                                {"version_gap of response 1, token 4, is -1", a_negative_gap},
                                {"entropy of response 3, token 2, is -1.5", a_negative_entropy},
                                {"coefficient of response 0, token 0 is inf", an_overflow}};
  static made m;
  static layout l = {.how = PADDED, .type = GEPOLAB_FLOAT64};
  gepolab_workspace *w = NULL;
  gepolab_algorithm *algorithm = NULL;
  make(&m);
  CU_ASSERT_EQUAL_FATAL(gepolab_workspace_new(&w, NULL), GEPOLAB_OK);
  CU_ASSERT_EQUAL_FATAL(
      gepolab_algorithm_new(&algorithm, "{base: is, token_log_clamp: .inf}", NULL), GEPOLAB_OK);
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; ++k) {
    gepolab_error err = {.status = GEPOLAB_OK};
    gepolab_result result = GEPOLAB_INIT(gepolab_result);
    gepolab_batch batch = lay_batch(&l, &m);
    cases[k].spoil(&batch, &result, &l);
    CU_ASSERT_NOT_EQUAL(gepolab_policy(algorithm, &batch, &result, w, &err), GEPOLAB_OK);
    if (strstr(err.text, cases[k].text) == NULL)
      fprintf(stderr, "wanted '%s', found '%s'\n", cases[k].text, err.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, cases[k].text));
    CU_ASSERT_NOT_EQUAL(err.status, GEPOLAB_OK);
  }
  gepolab_algorithm_free(algorithm);
  gepolab_workspace_free(w);
}

TEST(an_unknown_algorithm_is_told_its_neighbour) {
  gepolab_algorithm *algorithm = NULL;
  gepolab_error err = {.status = GEPOLAB_OK};
  CU_ASSERT_EQUAL(gepolab_algorithm_new(&algorithm, "gepa", &err), GEPOLAB_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "gepo"));
  CU_ASSERT_PTR_NULL(algorithm);
  CU_ASSERT_EQUAL(gepolab_algorithm_new(&algorithm, "{base: gepo, clap: none}", &err),
                  GEPOLAB_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "clip"));
  CU_ASSERT_EQUAL(gepolab_algorithm_new(&algorithm, NULL, &err), GEPOLAB_EINPUT);
  CU_ASSERT_EQUAL(gepolab_algorithm_new(&algorithm, "[[[", &err), GEPOLAB_EINPUT);
  gepolab_algorithm_free(algorithm);
}

/* --- threads --- */

typedef struct work {
  const gepolab_algorithm *algorithm;
  layout l;
  made m;
  double advantage[RESPONSES], loss;
  int ok;
} work;

/* A batch of {1, 0} and {0.5} of one token each, whose size is the caller's to say. */
static gepolab_status small_batch(const char *algorithm, size_t size, const double *advantage,
                                  double coefficient[3], gepolab_error *err) {
  static const double reward[] = {1, 0, 0.5}, logp[] = {-1, -0.5, -2},
                      logq[] = {-1.25, -0.375, -1.75};
  gepolab_algorithm *a = NULL;
  gepolab_workspace *w = NULL;
  gepolab_batch b = GEPOLAB_INIT(gepolab_batch);
  gepolab_result r = GEPOLAB_INIT(gepolab_result);
  b.size = size;
  b.n_responses = b.group_size = 3;
  b.n_groups = b.columns = 1;
  b.reward = (gepolab_numbers){reward, GEPOLAB_FLOAT64, 1};
  b.logp = (gepolab_tokens){logp, GEPOLAB_FLOAT64, 1, 1};
  b.logq = (gepolab_tokens){logq, GEPOLAB_FLOAT64, 1, 1};
  if (advantage != NULL) b.advantage = (gepolab_numbers){advantage, GEPOLAB_FLOAT64, 1};
  r.coefficient = (gepolab_tokens_out){coefficient, GEPOLAB_FLOAT64, 1, 1};
  CU_ASSERT_EQUAL_FATAL(gepolab_algorithm_new(&a, algorithm, err), GEPOLAB_OK);
  CU_ASSERT_EQUAL_FATAL(gepolab_workspace_new(&w, err), GEPOLAB_OK);
  const gepolab_status status = gepolab_policy(a, &b, &r, w, err);
  gepolab_workspace_free(w);
  gepolab_algorithm_free(a);
  return status;
}

/* A program compiled for interface 0.1 says the size of its own batch, and what lies behind it is
 * not read. */
TEST(batches_of_the_first_interface_are_taken) {
  static const double given[] = {7, 8, 9};
  const size_t first = offsetof(gepolab_batch, advantage);
  double old[3], now[3], with[3];
  gepolab_error err;
  CU_ASSERT_EQUAL(small_batch("gepo", first, given, old, &err), GEPOLAB_OK);
  CU_ASSERT_EQUAL(small_batch("gepo", sizeof(gepolab_batch), NULL, now, &err), GEPOLAB_OK);
  CU_ASSERT_EQUAL(small_batch("gepo", sizeof(gepolab_batch), given, with, &err), GEPOLAB_OK);
  CU_ASSERT_EQUAL(memcmp(old, now, sizeof now), 0);
  CU_ASSERT_NOT_EQUAL(memcmp(with, now, sizeof now), 0);
  CU_ASSERT_EQUAL(small_batch("gepo", first - 8, NULL, old, &err), GEPOLAB_EINPUT);
}

TEST(entropies_are_asked_for_by_name) {
  double c[3];
  gepolab_error err;
  const char *text = "{base: grpo, top_entropy: 0.5}";
  CU_ASSERT_EQUAL(small_batch(text, sizeof(gepolab_batch), NULL, c, &err), GEPOLAB_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "top_entropy"));
}

TEST(fields_are_told_by_name) {
  gepolab_algorithm *a = NULL;
  gepolab_error err;
  char text[GEPOLAB_FIELD_SIZE];
  CU_ASSERT_EQUAL_FATAL(gepolab_algorithm_new(&a, "{base: gepo, eps_high: 0.3}", &err), GEPOLAB_OK);
  CU_ASSERT_EQUAL(gepolab_algorithm_field(a, "ratio", text, &err), GEPOLAB_OK);
  CU_ASSERT_STRING_EQUAL(text, "group_expectation");
  CU_ASSERT_EQUAL(gepolab_algorithm_field(a, "eps_high", text, &err), GEPOLAB_OK);
  CU_ASSERT_STRING_EQUAL(text, "0.3");
  CU_ASSERT_EQUAL(gepolab_algorithm_field(a, "agregate", text, &err), GEPOLAB_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "aggregate"));
  gepolab_algorithm_free(a);
}

static void *evaluate_often(void *given) {
  work *k = given;
  gepolab_workspace *w = NULL;
  k->ok = gepolab_workspace_new(&w, NULL) == GEPOLAB_OK;
  const gepolab_batch batch = lay_batch(&k->l, &k->m);
  for (int i = 0; i < 200 && k->ok; ++i) {
    gepolab_result result = GEPOLAB_INIT(gepolab_result);
    result.coefficient = tokens_out(&k->l, COEFFICIENT);
    k->ok = gepolab_policy(k->algorithm, &batch, &result, w, NULL) == GEPOLAB_OK &&
            (i == 0 || result.loss == k->loss);
    k->loss = result.loss;
  }
  gepolab_workspace_free(w);
  return NULL;
}

TEST(threads_share_an_algorithm) {
  static work one, two;
  gepolab_algorithm *algorithm = NULL;
  pthread_t first, second;
  CU_ASSERT_EQUAL_FATAL(gepolab_algorithm_new(&algorithm, "m2po", NULL), GEPOLAB_OK);
  one.algorithm = two.algorithm = algorithm;
  one.l.type = two.l.type = GEPOLAB_FLOAT32;
  make(&one.m);
  make(&two.m);
  CU_ASSERT_EQUAL_FATAL(pthread_create(&first, NULL, evaluate_often, &one), 0);
  CU_ASSERT_EQUAL_FATAL(pthread_create(&second, NULL, evaluate_often, &two), 0);
  pthread_join(first, NULL);
  pthread_join(second, NULL);
  CU_ASSERT(one.ok && two.ok && one.loss == two.loss);
  gepolab_algorithm_free(algorithm);
}

/* Three responses of one token; the first one's log-ratio is 100, so that its weight is 2.7e43.
 * What is asked for is in single precision where `narrow` says so. */
static gepolab_status far_apart(int narrow, int weights, gepolab_error *err) {
  static const double reward[] = {1, 0, 0.5}, logp[] = {-1, -0.5, -2}, logq[] = {-101, -0.5, -2};
  const gepolab_type type = narrow ? GEPOLAB_FLOAT32 : GEPOLAB_FLOAT64;
  double coefficient[3], weight[3];
  gepolab_algorithm *a = NULL;
  gepolab_workspace *w = NULL;
  gepolab_batch b = GEPOLAB_INIT(gepolab_batch);
  gepolab_result r = GEPOLAB_INIT(gepolab_result);
  b.n_responses = b.group_size = 3;
  b.n_groups = b.columns = 1;
  b.reward = (gepolab_numbers){reward, GEPOLAB_FLOAT64, 1};
  b.logp = (gepolab_tokens){logp, GEPOLAB_FLOAT64, 1, 1};
  b.logq = (gepolab_tokens){logq, GEPOLAB_FLOAT64, 1, 1};
  r.coefficient = (gepolab_tokens_out){coefficient, weights ? GEPOLAB_FLOAT64 : type, 1, 1};
  if (weights) r.weight = (gepolab_tokens_out){weight, type, 1, 1};
  CU_ASSERT_EQUAL_FATAL(gepolab_algorithm_new(&a, "is", err), GEPOLAB_OK);
  CU_ASSERT_EQUAL_FATAL(gepolab_workspace_new(&w, err), GEPOLAB_OK);
  const gepolab_status status = gepolab_policy(a, &b, &r, w, err);
  gepolab_workspace_free(w);
  gepolab_algorithm_free(a);
  return status;
}

/* Whichever way tokens are read: one that is asked for weights reads the whole batch first. */
TEST(results_that_single_precision_cannot_hold_are_refused) {
  static const char *const says[] = {"the coefficient of response 0, token 0 is ",
                                     "the weight of response 0, token 0 is 2.68"};
  for (int weights = 0; weights < 2; ++weights) {
    gepolab_error err = {.text = ""};
    CU_ASSERT_EQUAL(far_apart(0, weights, &err), GEPOLAB_OK);
    CU_ASSERT_EQUAL(far_apart(1, weights, &err), GEPOLAB_ENUMERIC);
    if (strstr(err.text, says[weights]) == NULL) fprintf(stderr, "found '%s'\n", err.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, says[weights]));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "single precision ends at 3.4e38"));
  }
}
