/* Addressed random numbers: the generator is Philox, no two addresses share a block, and what comes
 * out is uniform. Seeds are fixed, so a test passes always or never; each statistic is held to a
 * level that a sound generator would miss once in a million seeds. */
#include "core/random/rng.h"
#include "tests/support/suite.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

SUITE("core: random numbers");

#define RARE 1e-6

/* --- addresses --- */

/* Philox4x32-10 written out from Salmon et al. (SC11), and backwards: a round multiplies by odd
 * constants, which have inverses modulo 2^32, so the counter can be had back from the words. */
enum { ROUNDS = 10 };
static const uint32_t multiplier[2] = {0xD2511F53u, 0xCD9E8D57u},
                      weyl[2] = {0x9E3779B9u, 0xBB67AE85u};

static void one_round(uint32_t c[4], uint32_t k0, uint32_t k1) {
  uint64_t p = (uint64_t)multiplier[0] * c[0], q = (uint64_t)multiplier[1] * c[2];
  const uint32_t next[4] = {(uint32_t)(q >> 32) ^ c[1] ^ k0, (uint32_t)q,
                            (uint32_t)(p >> 32) ^ c[3] ^ k1, (uint32_t)p};
  memcpy(c, next, sizeof next);
}

/* The x with a x = 1 modulo 2^32, a odd: Newton's steps double the correct bits, 3 to begin with.
 */
static uint32_t inverse(uint32_t a) {
  uint32_t x = a;
  for (int i = 0; i < 4; ++i) x *= 2 - a * x;
  return x;
}

static void one_round_back(uint32_t c[4], uint32_t k0, uint32_t k1) {
  uint32_t c0 = c[3] * inverse(multiplier[0]), c2 = c[1] * inverse(multiplier[1]);
  uint64_t p = (uint64_t)multiplier[0] * c0, q = (uint64_t)multiplier[1] * c2;
  const uint32_t before[4] = {c0, c[0] ^ (uint32_t)(q >> 32) ^ k0, c2,
                              c[2] ^ (uint32_t)(p >> 32) ^ k1};
  memcpy(c, before, sizeof before);
}

typedef struct address {
  rng_stream stream;
  uint64_t index;
} address;

/* Random addresses, every fourth number of them small or at its limit. */
static uint64_t awkward(gsl_rng *r, uint64_t limit) {
  uint64_t x = (uint64_t)gsl_rng_get(r) << 32 | gsl_rng_get(r);
  switch (gsl_rng_get(r) % 8) {
  case 0:
    return limit;
  case 1:
    return x % 3;
  default:
    return x & limit;
  }
}

static address random_address(gsl_rng *r) {
  address a;
  a.stream.seed = awkward(r, UINT64_MAX);
  a.stream.entity = awkward(r, UINT64_MAX);
  a.stream.purpose = (uint32_t)awkward(r, 0xffff);
  a.index = awkward(r, (UINT64_C(1) << 48) - 1);
  return a;
}

/* The words tell their address, so two addresses of one seed never share a block. */
TEST(the_address_can_be_had_back_from_the_words) {
  gsl_rng *r = rng_gsl_new(rng_stream_at(1, RNG_TEST, 0));
  CU_ASSERT_PTR_NOT_NULL_FATAL(r);
  size_t wrong = 0;
  for (int i = 0; i < 100000; ++i) {
    address a = random_address(r);
    rng_words w = rng_block(a.stream, a.index);
    uint32_t c[4], k0 = (uint32_t)a.stream.seed, k1 = (uint32_t)(a.stream.seed >> 32);
    memcpy(c, w.v, sizeof c);
    for (uint32_t round = ROUNDS; round-- > 0;)
      one_round_back(c, k0 + round * weyl[0], k1 + round * weyl[1]);
    uint64_t index = (uint64_t)(c[3] & 0xffff) << 32 | c[0];
    uint64_t entity = (uint64_t)c[2] << 32 | c[1];
    wrong += index != a.index || entity != a.stream.entity || c[3] >> 16 != a.stream.purpose;
  }
  CU_ASSERT_EQUAL(wrong, 0);
  gsl_rng_free(r);
}

TEST(blocks_are_philox_of_the_documented_counter_and_key) {
  gsl_rng *r = rng_gsl_new(rng_stream_at(2, RNG_TEST, 0));
  CU_ASSERT_PTR_NOT_NULL_FATAL(r);
  size_t wrong = 0;
  for (int i = 0; i < 100000; ++i) {
    address a = random_address(r);
    rng_words w = rng_block(a.stream, a.index);
    uint64_t seed = a.stream.seed, entity = a.stream.entity;
    uint32_t c[4] = {(uint32_t)a.index, (uint32_t)entity, (uint32_t)(entity >> 32),
                     a.stream.purpose << 16 | (uint32_t)(a.index >> 32)};
    philox4x32_ctr_t counter = {{c[0], c[1], c[2], c[3]}};
    philox4x32_key_t key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
    philox4x32_ctr_t theirs = philox4x32_R(ROUNDS, counter, key);
    for (uint32_t round = 0; round < ROUNDS; ++round)
      one_round(c, key.v[0] + round * weyl[0], key.v[1] + round * weyl[1]);
    wrong += memcmp(w.v, theirs.v, sizeof w.v) != 0 || memcmp(w.v, c, sizeof c) != 0;
  }
  CU_ASSERT_EQUAL(wrong, 0);
  gsl_rng_free(r);
}

/* Whether rng_block() aborts, in a child, at this index. */
static int is_refused(uint64_t index) {
  int state = 0;
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    if (freopen("/dev/null", "w", stderr) == NULL) _exit(2);
    const rng_words w = rng_block(rng_stream_at(1, RNG_TEST, 0), index);
    _exit(w.v[0] == 0); /* so that the call is not removed */
  }
  CU_ASSERT_FATAL(child > 0 && waitpid(child, &state, 0) == child);
  CU_ASSERT(WIFSIGNALED(state) || WEXITSTATUS(state) == 0);
  return WIFSIGNALED(state) && WTERMSIG(state) == SIGABRT;
}

TEST(an_index_beyond_the_address_is_refused) {
  CU_ASSERT(!is_refused((UINT64_C(1) << 48) - 1));
  CU_ASSERT(is_refused(UINT64_C(1) << 48));
  CU_ASSERT(is_refused(UINT64_C(1) << 63));
}

TEST(token_indices_are_distinct_within_their_limits) {
  const uint64_t last_response = (1u << 28) - 1, last_position = (1u << 20) - 1;
  CU_ASSERT_EQUAL(rng_token_index(0, 0), 0);
  CU_ASSERT_EQUAL(rng_token_index(0, last_position) + 1, rng_token_index(1, 0));
  CU_ASSERT_EQUAL(rng_token_index(last_response, last_position), (UINT64_C(1) << 48) - 1);
}

/* --- uniformity --- */

/* Block i of one walk through the addresses: along the index, or over one part of the address with
 * the rest held. */
typedef enum direction {
  ALONG_INDEX,
  OVER_ENTITIES,
  OVER_SEEDS,
  OVER_TOKENS,
  DIRECTIONS
} direction;

static rng_words block_of(direction d, uint64_t i) {
  switch (d) {
  case ALONG_INDEX:
    return rng_block(rng_stream_at(7, RNG_TEST, 3), i);
  case OVER_ENTITIES:
    return rng_block(rng_stream_at(7, RNG_TEST, i), 0);
  case OVER_SEEDS:
    return rng_block(rng_stream_at(i, RNG_TEST, 3), 0);
  case OVER_TOKENS:
    return rng_block(rng_stream_at(7, RNG_ROLLOUT, 5), rng_token_index(i >> 6, i & 63));
  case DIRECTIONS:
    break;
  }
  return (rng_words){{0}}; /* every test of uniformity fails */
}

/* P(chi-square at least this large) of counts that should be equal. */
static double chi_square_tail(const size_t *count, size_t n_cells, size_t total) {
  double expected = (double)total / (double)n_cells, x = 0;
  for (size_t i = 0; i < n_cells; ++i)
    x += ((double)count[i] - expected) * ((double)count[i] - expected) / expected;
  return gsl_cdf_chisq_Q(x, (double)n_cells - 1);
}

enum { BLOCKS = 200000 };

TEST(every_byte_of_every_word_is_uniform_in_every_direction) {
  for (int d = 0; d < DIRECTIONS; ++d) {
    static size_t count[16][256];
    memset(count, 0, sizeof count);
    for (uint64_t i = 0; i < BLOCKS; ++i) {
      rng_words w = block_of((direction)d, i);
      for (int b = 0; b < 16; ++b) ++count[b][w.v[b / 4] >> b % 4 * 8 & 255];
    }
    for (int b = 0; b < 16; ++b) CU_ASSERT(chi_square_tail(count[b], 256, BLOCKS) > RARE);
  }
}

/* Pairs (word of a block, word of the next one) fall into 64 x 64 cells alike. */
TEST(neighbouring_blocks_are_independent_in_every_direction) {
  for (int d = 0; d < DIRECTIONS; ++d) {
    static size_t count[4][64 * 64];
    memset(count, 0, sizeof count);
    rng_words before = block_of((direction)d, 0);
    for (uint64_t i = 1; i <= BLOCKS; ++i) {
      rng_words w = block_of((direction)d, i);
      for (int v = 0; v < 4; ++v) ++count[v][(before.v[v] >> 26) * 64 + (w.v[(v + 1) % 4] >> 26)];
      before = w;
    }
    for (int v = 0; v < 4; ++v) CU_ASSERT(chi_square_tail(count[v], 64 * 64, BLOCKS) > RARE);
  }
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Whether n values keep to a distribution by Kolmogorov and Smirnov: P(sqrt(n) D > x) is close to
 * 2 exp(-2 x^2). Sorts. */
static int keeps_to(double *value, size_t n, double (*cdf)(double)) {
  double largest = 0;
  qsort(value, n, sizeof *value, ascending);
  for (size_t i = 0; i < n; ++i) {
    double f = cdf(value[i]);
    largest = fmax(largest, fmax(f - (double)i / (double)n, (double)(i + 1) / (double)n - f));
  }
  return largest * sqrt((double)n) < sqrt(-0.5 * log(RARE / 2));
}

static double identity(double x) {
  return x;
}

TEST(uniform_numbers_keep_to_their_distribution) {
  static double coarse[BLOCKS], fine[BLOCKS];
  for (uint64_t i = 0; i < BLOCKS; ++i) {
    rng_words w = block_of(ALONG_INDEX, i);
    coarse[i] = rng_u01(w.v[0]);
    fine[i] = rng_u01_53(w.v[1], w.v[2]);
  }
  CU_ASSERT(keeps_to(coarse, BLOCKS, identity));
  CU_ASSERT(keeps_to(fine, BLOCKS, identity));
}

TEST(uniform_numbers_are_never_0_or_1) {
  CU_ASSERT_EQUAL(rng_u01(0), 0x1p-33);
  CU_ASSERT_EQUAL(rng_u01(UINT32_MAX), 1 - 0x1p-33);
  CU_ASSERT_EQUAL(rng_u01_53(0, 0), 0x1p-53);
  CU_ASSERT_EQUAL(rng_u01_53(UINT32_MAX, UINT32_MAX), 1 - 0x1p-53);
  for (int n = 1; n < 100000; ++n) /* an index drawn as floor(u n) is one */
    if (!(rng_u01_53(UINT32_MAX, UINT32_MAX) * n < n)) CU_FAIL("an index out of range");
}

/* --- through GSL --- */

static double normal_cdf(double x) {
  return gsl_cdf_gaussian_P(x, 2);
}
static double exponential_cdf(double x) {
  return gsl_cdf_exponential_P(x, 3);
}
static double gamma_cdf(double x) {
  return gsl_cdf_gamma_P(x, 0.5, 2);
}
static double weibull_cdf(double x) {
  return gsl_cdf_weibull_P(x, 1.5, 0.7);
}
static double lognormal_cdf(double x) {
  return gsl_cdf_lognormal_P(x, 0.5, 0.25);
}

TEST(gsl_distributions_are_right_over_the_wrapped_generator) {
  enum { N = 50000 };
  static double value[5][N];
  gsl_rng *r = rng_gsl_new(rng_stream_at(11, RNG_TEST, 0));
  CU_ASSERT_PTR_NOT_NULL_FATAL(r);
  for (size_t i = 0; i < N; ++i) {
    value[0][i] = gsl_ran_gaussian(r, 2);
    value[1][i] = gsl_ran_exponential(r, 3);
    value[2][i] = gsl_ran_gamma(r, 0.5, 2);
    value[3][i] = gsl_ran_weibull(r, 1.5, 0.7);
    value[4][i] = gsl_ran_lognormal(r, 0.5, 0.25);
  }
  CU_ASSERT(keeps_to(value[0], N, normal_cdf));
  CU_ASSERT(keeps_to(value[1], N, exponential_cdf));
  CU_ASSERT(keeps_to(value[2], N, gamma_cdf));
  CU_ASSERT(keeps_to(value[3], N, weibull_cdf));
  CU_ASSERT(keeps_to(value[4], N, lognormal_cdf));
  gsl_rng_free(r);
}

TEST(gsl_draws_whole_numbers_and_shuffles_alike) {
  enum { N = 70000 };
  static size_t rolled[7], order[120];
  gsl_rng *r = rng_gsl_new(rng_stream_at(12, RNG_TEST, 0));
  CU_ASSERT_PTR_NOT_NULL_FATAL(r);
  memset(rolled, 0, sizeof rolled);
  memset(order, 0, sizeof order);
  for (int i = 0; i < N; ++i) {
    int deck[5] = {0, 1, 2, 3, 4};
    ++rolled[gsl_rng_uniform_int(r, 7)];
    gsl_ran_shuffle(r, deck, 5, sizeof *deck);
    size_t rank = 0; /* of the permutation among the 120 */
    for (int a = 0; a < 5; ++a) {
      size_t smaller = 0;
      for (int b = a + 1; b < 5; ++b) smaller += deck[b] < deck[a];
      rank = rank * (size_t)(5 - a) + smaller;
    }
    ++order[rank];
  }
  CU_ASSERT(chi_square_tail(rolled, 7, N) > RARE);
  CU_ASSERT(chi_square_tail(order, 120, N) > RARE);
  gsl_rng_free(r);
}

TEST(a_wrapped_generator_can_be_cloned_and_reseeded) {
  rng_stream s = rng_stream_at(13, RNG_TEST, 4);
  gsl_rng *r = rng_gsl_new(s);
  CU_ASSERT_PTR_NOT_NULL_FATAL(r);
  CU_ASSERT(gsl_rng_min(r) == 0 && gsl_rng_max(r) == UINT32_MAX);
  for (int i = 0; i < 5; ++i) gsl_rng_get(r); /* into the second block */
  gsl_rng *twin = gsl_rng_clone(r);
  for (int i = 0; i < 9; ++i) CU_ASSERT_EQUAL(gsl_rng_get(r), gsl_rng_get(twin));
  gsl_rng_set(r, 99); /* another seed, the same purpose and entity, from the start */
  CU_ASSERT_EQUAL(gsl_rng_get(r), rng_block(rng_stream_at(99, RNG_TEST, 4), 0).v[0]);
  rng_gsl_seek(r, s, (UINT64_C(1) << 40) + 1);
  CU_ASSERT_EQUAL(gsl_rng_get(r), rng_block(s, (UINT64_C(1) << 40) + 1).v[0]);
  gsl_rng_free(twin);
  gsl_rng_free(r);
}
