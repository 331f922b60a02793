/* The kernels that CPU and CUDA share (llm/backend/kernels.h, llm/backend/kernels_rows.h), in their
 * CPU form, against formulas and numbers by hand; and the thread pool. */
#include "llm/backend/kernels.h"
#include "llm/backend/cpu/cpu.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

#define REAL double
#define MASTER double
#define ROW(x) row_##x
#define ROW_EXP(x) kernel_exp_f64(x)
#define GET(p) (*(p))
#define PUT(p, x) (*(p) = (x))
#include "llm/backend/kernels_rows.h"

SUITE("llm: kernels");

static const kernel_group one = {0};

TEST(float_exponential_is_within_two_ulp) {
  double worst = 0;
  for (int i = 0; i <= 2000000; ++i) {
    const float x = -86.97f + 175.6f * (float)i / 2000000.0f;
    const double exact = exp((double)x), got = (double)kernel_exp_f32(x);
    const float ulp = nextafterf((float)exact, INFINITY) - (float)exact;
    worst = fmax(worst, fabs(got - exact) / (double)ulp);
  }
  CU_ASSERT(worst < 2);
  if (worst >= 2) fprintf(stderr, "%g ulp\n", worst);
}

/* --- stochastic rounding to bfloat16 --- */

static float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* Over all 2^16 values of the random half, the share that rounds up is the distance to the lower
 * neighbour, exactly: the half that is cut off, over 2^16. For both signs, across a power of two,
 * and among subnormals. */
TEST(stochastic_rounding_has_the_exact_mean) {
  static const uint32_t some[] = {0x3f800001, 0x3f808000, 0xbf812345, 0x3fffffff, 0xc0490fdb,
                                  0x00000001, 0x00007fff, 0x807fffff, 0x7f7e8000, 0x0000ffff};
  for (size_t i = 0; i < sizeof some / sizeof *some; ++i) {
    const uint32_t low = some[i] >> 16, cut = some[i] & 0xffff;
    uint32_t up = 0, wrong = 0;
    for (uint32_t u = 0; u < 1u << 16; ++u) {
      const uint32_t got = kernel_round_bf16(float_of(some[i]), u << 16 | (u * 40503u & 0xffff));
      up += got == low + 1;
      wrong += got != low && got != low + 1;
    }
    CU_ASSERT(up == cut && wrong == 0);
  }
}

TEST(what_bfloat16_has_is_not_rounded) {
  for (uint32_t upper = 0; upper < 1u << 16; ++upper) {
    const float x = float_of(upper << 16);
    const uint16_t most = kernel_round_bf16(x, UINT32_MAX), least = kernel_round_bf16(x, 0);
    if (isnan(x))
      CU_ASSERT((most & 0x7fff) > 0x7f80 && (least & 0x7fff) > 0x7f80)
    else
      CU_ASSERT(most == upper && least == upper);
  }
  /* Beyond the greatest finite number there is none to go up to. */
  CU_ASSERT(kernel_round_bf16(float_of(0x7f7fffff), UINT32_MAX) == 0x7f7f);
  CU_ASSERT(kernel_round_bf16(float_of(0xff7fffff), UINT32_MAX) == 0xff7f);
}

/* Of a million parameters of one value, p of the way between its neighbours, the number that round
 * up is binomial. Five standard deviations are exceeded with probability 5.8e-7 in each of 6
 * checks; the seed is fixed. */
TEST(addressed_roundings_have_their_mean) {
  enum { N = 1000000 };
  static const uint32_t cut[] = {0x0100, 0x4000, 0xc000};
  for (size_t i = 0; i < 3; ++i)
    for (uint64_t step = 1; step < 3; ++step) {
      const rng_stream stream = rng_stream_at(7, RNG_ROUNDING, step);
      const double p = (double)cut[i] / 65536;
      size_t up = 0;
      for (uint64_t k = 0; k < N; ++k)
        up += kernel_round_bf16(float_of(0x3f800000 | cut[i]), rng_block(stream, k / 4).v[k % 4]) !=
              0x3f80;
      CU_ASSERT(fabs((double)up - N * p) < 5 * sqrt(N * p * (1 - p)));
    }
}

TEST(float_exponential_at_its_ends) {
  CU_ASSERT_EQUAL(kernel_exp_f32(0), 1);
  CU_ASSERT_EQUAL(kernel_exp_f32(-INFINITY), 0);
  CU_ASSERT_EQUAL(kernel_exp_f32(-1e30f), 0);
  CU_ASSERT_EQUAL(kernel_exp_f32(-88), 0);
  CU_ASSERT_EQUAL(kernel_exp_f32(INFINITY), INFINITY);
  CU_ASSERT_EQUAL(kernel_exp_f32(89), INFINITY);
  CU_ASSERT(isfinite(kernel_exp_f32(88.72f)));
  CU_ASSERT(kernel_exp_f32(-86.97f) > 0);
  CU_ASSERT(isnan(kernel_exp_f32(NAN)));
}

/* silu in both instruction sets (with fused multiply-addition and without), for gates where e^-x is
 * all of the denominator and where it vanishes. The bound is four roundings of 6e-8 each and the
 * exponential's two ulp. */
TEST(gates_are_exact_over_their_range) {
  enum { N = 100000 };
  for (int variant = 0; variant < 2; ++variant) {
    backend *b = NULL;
    ASSERT_OK(backend_cpu_new_form(&b, NUMBER_F32, 1, variant ? CPU_PLAIN : cpu_form_best(), &err));
    float *in = b->ops->allocate(b, 2 * N * sizeof *in), *out = b->ops->allocate(b, N * sizeof *in);
    for (size_t i = 0; i < N; ++i) {
      in[i] = -80.0f + 160.0f * (float)i / N;
      in[N + i] = 1;
    }
    b->ops->swiglu(b, out, in, 1, N);
    double worst = 0;
    for (size_t i = 0; i < N; ++i) {
      const double x = (double)in[i], exact = x / (1 + exp(-x));
      if (x != 0) worst = fmax(worst, fabs((double)out[i] - exact) / fabs(exact));
    }
    CU_ASSERT(worst < 5e-7);
    b->ops->release(b, in);
    b->ops->release(b, out);
    backend_free(b);
  }
}

/* The statistics of ten thousand elements, made in unequal parts and joined, against the softmax in
 * long double. */
TEST(statistics_join_to_those_of_the_whole) {
  enum { N = 10000 };
  static double z[N];
  const double factor = 1 / 0.7;
  long double sum = 0, entropy = 0;
  for (size_t i = 0; i < N; ++i) {
    z[i] = 12 * sin((double)i * (double)i) + (i == 4321 ? 20 : 0);
    sum += expl((long double)(factor * z[i]));
  }
  for (size_t i = 0; i < N; ++i) {
    const long double logp = (long double)(factor * z[i]) - logl(sum);
    entropy -= expl(logp) * logp;
  }
  softmax_stats all = {.greatest = -INFINITY};
  size_t at = 0;
  for (size_t n = 1; at < N; n = n * 2 + 1) {
    const size_t some = n < N - at ? n : N - at;
    all = softmax_stats_join(all, row_stats(one, z + at, some, factor), factor);
    at += some;
  }
  ASSERT_CLOSE(softmax_stats_lse(all, factor), (double)logl(sum), 1e-14);
  ASSERT_CLOSE(softmax_stats_entropy(all), (double)entropy, 1e-12);
  ASSERT_CLOSE(softmax_stats_logp(all, z[77], factor), factor * z[77] - (double)logl(sum), 1e-13);
}

TEST(an_empty_part_changes_no_statistics) {
  const softmax_stats none = {.greatest = -INFINITY}, some = {2, 3, -1};
  const softmax_stats left = softmax_stats_join(none, some, 1),
                      right = softmax_stats_join(some, none, 1);
  CU_ASSERT(memcmp(&left, &some, sizeof some) == 0);
  CU_ASSERT(memcmp(&right, &some, sizeof some) == 0);
  CU_ASSERT_EQUAL(softmax_stats_join(none, none, 1).sum, 0);
}

/* x = (1, 2), weight (3, 0.5), eps 0: rms = sqrt(5/2). */
TEST(norm_of_two_numbers_by_hand) {
  const double in[] = {1, 2}, weight[] = {3, 0.5}, rms = sqrt(2.5);
  double out[2];
  ASSERT_CLOSE(row_norm(one, out, NULL, in, NULL, weight, 2, 0), 1 / rms, 1e-15);
  ASSERT_CLOSE(out[0], 3 / rms, 1e-15);
  ASSERT_CLOSE(out[1], 1 / rms, 1e-15);
}

/* A rotation by a quarter takes (a, b) to (-b, a). */
TEST(a_head_rotated_by_a_quarter) {
  const double in[] = {3, 4, 5, 12}, weight[] = {1, 1, 1, 1}, cosine[] = {0, 1}, sine[] = {1, 0};
  const double rstd = 1 / sqrt((9 + 16 + 25 + 144) / 4.0);
  double out[4];
  ASSERT_CLOSE(row_head(one, out, in, weight, cosine, sine, 4, 0), rstd, 1e-15);
  ASSERT_CLOSE(out[0], -5 * rstd, 1e-15);
  ASSERT_CLOSE(out[2], 3 * rstd, 1e-15);
  ASSERT_CLOSE(out[1], 4 * rstd, 1e-15);
  ASSERT_CLOSE(out[3], 12 * rstd, 1e-15);
}

/* First step from zero moments with bias correction: the parameter moves by lr * sign(gradient),
 * after decay. */
TEST(adamw_by_hand) {
  double m = 0, v = 0;
  const double beta1 = 0.9, beta2 = 0.99, lr = 0.01;
  const double p = row_adamw_number(2.0, -4.0, &m, &v, beta1, beta2, 1 - lr * 0.1, 0, 0.5,
                                    lr / (1 - beta1), 1 / sqrt(1 - beta2), 0);
  ASSERT_CLOSE(m, -0.2, 1e-15);
  ASSERT_CLOSE(v, 0.04, 1e-15);
  ASSERT_CLOSE(p, 2 * 0.999 + 0.01, 1e-14);
}

/* --- the pool --- */

typedef struct marks {
  unsigned char ran[1000];
  size_t threads, wrong;
} marks;

static void mark(void *context, size_t task, size_t worker) {
  marks *m = context;
  ++m->ran[task];
  if (worker >= m->threads) m->wrong = 1;
}

TEST(every_task_runs_once) {
  for (size_t threads = 1; threads <= 4; ++threads) {
    pool *p = NULL;
    ASSERT_OK(pool_new(&p, threads, &err));
    CU_ASSERT_EQUAL(pool_threads(p), threads);
    size_t wrong = 0;
    for (size_t round = 0; round < 300; ++round) {
      const size_t n = round * 7 % 1000;
      marks m = {.threads = threads};
      pool_run(p, mark, &m, n);
      for (size_t i = 0; i < 1000; ++i) wrong += m.ran[i] != (i < n);
      wrong += m.wrong;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    pool_free(p);
  }
}
