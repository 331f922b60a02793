/* Rows of callers' arrays, read, checked and written; batches of many tokens on several threads. */
#include "library/internal.h"

#include "core/random/rng.h"
#include "tests/support/suite.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

SUITE("library: rows and threads");

enum { N = 37, ROOM = 4 * N };

TEST(rows_of_any_stride_are_read_and_written) {
  static const int64_t strides[] = {1, 3, -1, -2};
  for (size_t k = 0; k < sizeof strides / sizeof *strides; ++k)
    for (size_t n = 0; n <= N; ++n) {
      float single[ROOM];
      double wide[ROOM], value[N] = {0}, again[N] = {0};
      for (size_t i = 0; i < ROOM; ++i) single[i] = (float)(wide[i] = (double)i / 8);
      const int64_t stride = strides[k], first = stride > 0 ? 5 : ROOM - 5;
      const strided s = {single, GEPOLAB_FLOAT32, first, stride, n};
      const strided d = {wide, GEPOLAB_FLOAT64, first, stride, n};
      CU_ASSERT_EQUAL(strided_read(&s, 1, value), strided_read(&d, 1, again));
      CU_ASSERT(strided_read(&s, ROOM, value) && strided_read(&d, ROOM, again));
      for (size_t t = 0; t < n; ++t)
        CU_ASSERT_EQUAL(value[t], (double)(first + (int64_t)t * stride) / 8);
      CU_ASSERT_EQUAL(memcmp(value, again, sizeof value), 0);
      for (size_t t = 0; t < n; ++t) value[t] = -(double)t;
      strided_fill(&s, 0);
      strided_fill(&d, 0.1);
      for (size_t t = 0; t < n; ++t) CU_ASSERT_EQUAL(wide[first + (int64_t)t * stride], 0.1);
      strided_write(&d, value);
      for (size_t i = 0, changed = 0; i < ROOM; ++i) {
        CU_ASSERT(single[i] == 0 || single[i] == (float)i / 8);
        changed += wide[i] != (double)i / 8;
        if (i + 1 == ROOM) CU_ASSERT_EQUAL(changed, n);
      }
      strided_write(&s, value);
      for (size_t i = 0; i < ROOM; ++i) CU_ASSERT_EQUAL((double)single[i], wide[i]);
    }
}

TEST(what_is_not_finite_or_above_a_bound_is_seen_wherever_it_lies) {
  const double bad[] = {NAN, INFINITY, -INFINITY, 0.002};
  double value[N];
  for (size_t t = 0; t < N; ++t) value[t] = -(double)t;
  for (size_t n = 0; n <= N; ++n) CU_ASSERT(numbers_are_within(value, n, 1e-3));
  for (size_t t = 0; t < N; ++t)
    for (size_t k = 0; k < 4; ++k) {
      value[t] = bad[k];
      CU_ASSERT(!numbers_are_within(value, N, 1e-3));
      CU_ASSERT_EQUAL(numbers_are_within(value, N, INFINITY), k == 3);
      value[t] = -(double)t;
    }
}

/* Rounding in float32 does not move the bound. */
TEST(rows_of_floats_are_checked_as_they_are_read) {
  const float bad[] = {NAN, INFINITY, -INFINITY, 0.002f, 0.001f};
  const double most[] = {1e-3, 0.0010000000474974513, INFINITY}; /* the second is 0.001f */
  float value[N];
  double to[N];
  for (size_t t = 0; t < N; ++t) value[t] = -(float)t;
  const strided from = {value, GEPOLAB_FLOAT32, 0, 1, N};
  for (size_t t = 0; t < N; ++t)
    for (size_t k = 0; k < 5; ++k)
      for (size_t m = 0; m < 3; ++m) {
        value[t] = bad[k];
        CU_ASSERT_EQUAL(strided_read(&from, most[m], to), k > 2 && (double)bad[k] <= most[m]);
        value[t] = -(float)t;
        CU_ASSERT(strided_read(&from, most[m], to));
      }
}

TEST(marked_columns_are_counted_and_their_ends_found) {
  for (int64_t stride = -2; stride <= 2; ++stride) {
    if (stride == 0) continue;
    for (size_t from = 0; from < N; from += 3)
      for (size_t to = from; to <= N; to += 2) {
        uint8_t mask[ROOM] = {0};
        size_t first, end;
        const int64_t start = stride > 0 ? 0 : ROOM - 1;
        for (size_t t = from; t < to; ++t)
          mask[start + (int64_t)t * stride] = (uint8_t)(1 + t % 255);
        CU_ASSERT_EQUAL(strided_marked(mask + start, stride, N, &first, &end), to - from);
        CU_ASSERT_EQUAL(first, to > from ? from : 0);
        CU_ASSERT_EQUAL(end, to > from ? to : 0);
        if (to < from + 3) continue;
        mask[start + (int64_t)(from + 1) * stride] = 0;
        CU_ASSERT_EQUAL(strided_marked(mask + start, stride, N, &first, &end), to - from - 1);
        CU_ASSERT_EQUAL(end - first, to - from);
      }
  }
}

/* Longer than what is counted in one go, with every byte's value among them. */
TEST(a_long_mask_is_counted_to_its_end) {
  enum { LONG = 30000 };
  uint8_t *mask = malloc(LONG);
  CU_ASSERT_FATAL(mask != NULL);
  for (size_t n = LONG - 70; n <= LONG; n += 7) {
    size_t count = 0, first, end;
    for (size_t t = 0; t < n; ++t) {
      const rng_words w = rng_block(rng_stream_at(5, RNG_TEST, 10), t);
      mask[t] = t == 0 || t + 1 == n ? 1 : (uint8_t)(w.v[0] % 3 == 0 ? 0 : w.v[1]);
      count += mask[t] != 0;
    }
    CU_ASSERT_EQUAL(strided_marked(mask, 1, n, &first, &end), count);
    memset(mask, 255, n);
    CU_ASSERT_EQUAL(strided_marked(mask, 1, n, &first, &end), n);
  }
  free(mask);
}

/* --- threads --- */

enum {
  GROUPS = 5,
  SIZE = 8,
  RESPONSES = GROUPS * SIZE,
  COLUMNS = 500,
  CELLS = RESPONSES * COLUMNS
};

typedef struct batch {
  double reward[RESPONSES];
  float logp[CELLS], logq[CELLS];
  uint8_t mask[CELLS];
} batch;

typedef struct answer {
  float coefficient[CELLS], weight[CELLS];
  double advantage[RESPONSES], metric[64], loss;
} answer;

/* Responses after prompts of different lengths, every fifth with a gap. */
static void fill(batch *b) {
  const rng_stream stream = rng_stream_at(5, RNG_TEST, 9);
  for (size_t i = 0; i < RESPONSES; ++i) {
    b->reward[i] = (double)(i % 3 == 0);
    for (size_t t = 0; t < COLUMNS; ++t) {
      const rng_words w = rng_block(stream, i * COLUMNS + t);
      const int inside = t >= 10 * (i % 7) && t < COLUMNS - 11 * (i % 13);
      b->mask[i * COLUMNS + t] = (uint8_t)(inside && !(i % 5 == 0 && t == 200));
      b->logq[i * COLUMNS + t] = (float)log(rng_u01(w.v[0]));
      b->logp[i * COLUMNS + t] = b->logq[i * COLUMNS + t] + 0.5f * (float)(rng_u01(w.v[1]) - 0.6);
      if (b->logp[i * COLUMNS + t] > 0) b->logp[i * COLUMNS + t] = 0;
      /* nothing is read beside a response's tokens */
      if (!b->mask[i * COLUMNS + t]) b->logp[i * COLUMNS + t] = NAN;
    }
  }
}

static void evaluate(const char *name, batch *b, int64_t threads, int all, answer *a) {
  gepolab_algorithm *algorithm = NULL;
  gepolab_workspace *w = NULL;
  gepolab_error err = {.status = GEPOLAB_OK};
  memset(a, 0, sizeof *a);
  CU_ASSERT_EQUAL_FATAL(gepolab_algorithm_new(&algorithm, name, NULL), GEPOLAB_OK);
  CU_ASSERT_EQUAL_FATAL(gepolab_workspace_new(&w, NULL), GEPOLAB_OK);
  CU_ASSERT_EQUAL(gepolab_workspace_threads(w, threads, &err), GEPOLAB_OK);
  CU_ASSERT_FATAL(gepolab_metrics_count() <= sizeof a->metric / sizeof *a->metric);
  gepolab_batch in = GEPOLAB_INIT(gepolab_batch);
  in.n_responses = RESPONSES, in.n_groups = GROUPS, in.group_size = SIZE, in.columns = COLUMNS;
  in.mask = b->mask, in.mask_response_stride = COLUMNS, in.mask_token_stride = 1;
  in.reward = (gepolab_numbers){b->reward, GEPOLAB_FLOAT64, 1};
  in.logp = (gepolab_tokens){b->logp, GEPOLAB_FLOAT32, COLUMNS, 1};
  in.logq = (gepolab_tokens){b->logq, GEPOLAB_FLOAT32, COLUMNS, 1};
  gepolab_result out = GEPOLAB_INIT(gepolab_result);
  out.coefficient = (gepolab_tokens_out){a->coefficient, GEPOLAB_FLOAT32, COLUMNS, 1};
  if (all) out.weight = (gepolab_tokens_out){a->weight, GEPOLAB_FLOAT32, COLUMNS, 1};
  out.advantage = (gepolab_numbers_out){a->advantage, GEPOLAB_FLOAT64, 1};
  if (all) out.metric = a->metric;
  CU_ASSERT_EQUAL(gepolab_policy(algorithm, &in, &out, w, &err), GEPOLAB_OK);
  a->loss = out.loss;
  for (size_t k = 0; k < CELLS; ++k)
    if (!b->mask[k]) CU_ASSERT(a->coefficient[k] == 0 && a->weight[k] == 0);
  gepolab_workspace_free(w);
  gepolab_algorithm_free(algorithm);
}

/* Whatever is asked for beside the coefficients, which decides how tokens are read. */
TEST(threads_do_not_change_a_bit_of_a_batch_in_float32) {
  static const char *const names[] = {"gepo", "grpo", "gspo", "cispo", "m2po"};
  batch *b = calloc(1, sizeof *b);
  answer *alone = calloc(1, sizeof *alone), *together = calloc(1, sizeof *together);
  CU_ASSERT_FATAL(b != NULL && alone != NULL && together != NULL);
  fill(b);
  for (size_t k = 0; k < sizeof names / sizeof *names; ++k) {
    evaluate(names[k], b, 1, 1, alone);
    for (int64_t threads = 2; threads <= 5; ++threads) {
      evaluate(names[k], b, threads, 1, together);
      CU_ASSERT_EQUAL(memcmp(alone, together, sizeof *alone), 0);
    }
    memset(alone->weight, 0, sizeof alone->weight);
    memset(alone->metric, 0, sizeof alone->metric);
    for (int64_t threads = 1; threads <= 5; ++threads) {
      evaluate(names[k], b, threads, 0, together);
      CU_ASSERT_EQUAL(memcmp(alone, together, sizeof *alone), 0);
    }
  }
  free(together);
  free(alone);
  free(b);
}

TEST(numbers_of_threads_that_cannot_be_are_refused_and_change_nothing) {
  gepolab_workspace *w = NULL;
  gepolab_error err;
  CU_ASSERT_EQUAL_FATAL(gepolab_workspace_new(&w, NULL), GEPOLAB_OK);
  CU_ASSERT_EQUAL(gepolab_workspace_threads(w, 2, &err), GEPOLAB_OK);
  CU_ASSERT_EQUAL(gepolab_workspace_threads(w, 0, &err), GEPOLAB_EINPUT);
  CU_ASSERT_STRING_EQUAL(err.text, "0 threads; at least 1 evaluates");
  CU_ASSERT_EQUAL(gepolab_workspace_threads(w, 5000, &err), GEPOLAB_EINPUT);
  CU_ASSERT_STRING_EQUAL(err.text, "5000 threads; at most 4096");
  CU_ASSERT_EQUAL(gepolab_workspace_threads(w, 1, &err), GEPOLAB_OK);
  gepolab_workspace_free(w);
}

TEST(results_fit_their_type_or_do_not_wherever_they_lie) {
  static const double most[] = {0, FLT_MAX, DBL_MAX, INFINITY};
  static const int fits[][4] = {[GEPOLAB_NONE] = {1, 1, 1, 0},
                                [GEPOLAB_FLOAT32] = {1, 1, 0, 0},
                                [GEPOLAB_FLOAT64] = {1, 1, 1, 0}};
  static const gepolab_type types[] = {GEPOLAB_NONE, GEPOLAB_FLOAT32, GEPOLAB_FLOAT64};
  double value[40];
  for (size_t k = 0; k < sizeof types / sizeof *types; ++k)
    for (size_t at = 0; at < 40; ++at) {
      memset(value, 0, sizeof value);
      for (size_t m = 0; m < 4; ++m)
        for (int sign = -1; sign <= 1; sign += 2) {
          value[at] = sign * most[m];
          CU_ASSERT_EQUAL(numbers_fit(value, 40, types[k]), fits[types[k]][m]);
        }
      value[at] = NAN;
      CU_ASSERT_EQUAL(numbers_fit(value, 40, types[k]), 0);
    }
  CU_ASSERT_EQUAL(numbers_fit(value, 0, GEPOLAB_FLOAT32), 1);
}
