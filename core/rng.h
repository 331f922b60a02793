/* Addressed random numbers: every draw has an address, and its value depends on nothing else.
 *
 * The generator is Philox4x32-10 (Salmon et al., SC11) as Random123 implements it. A stream is
 * (seed, purpose, entity); block `index` of a stream holds four independent 32-bit words:
 *
 *   key     = { seed low, seed high }
 *   counter = { index low, entity low, entity high, purpose << 16 | index high 16 }
 *
 * so a stream has 2^48 blocks of four draws and no two streams overlap. Threads, order, resume and
 * backend cannot change a draw; the same functions compile in CUDA. Hot loops call rng_block();
 * anything needing a GSL distribution wraps a stream with rng_gsl_new() (about three times the
 * cost per draw).
 */
#ifndef GEPOLAB_CORE_RNG_H
#define GEPOLAB_CORE_RNG_H

#include <Random123/philox.h>
#include <gsl/gsl_rng.h>
#include <stdint.h>

/* What a stream is for. Values are part of the reproducibility contract: never renumber. */
typedef enum rng_purpose {
  RNG_TEST = 0,
  RNG_INIT = 1,        /* parameter initialisation; entity = tensor */
  RNG_WORLD = 2,       /* random worlds: rewards, features, transitions; entity = what */
  RNG_PROMPT = 3,      /* which prompts a batch holds; entity = batch */
  RNG_ROLLOUT = 4,     /* tokens of responses; entity = batch; index = rng_token_index() */
  RNG_SHUFFLE = 5,     /* order of minibatches and micro-batches; entity = update */
  RNG_DELAY = 6,       /* network delays; entity = link */
  RNG_GENERATION = 7,  /* generation times and jitter; entity = sampler */
  RNG_LENGTH = 8,      /* response lengths drawn from a law; entity = batch */
  RNG_LOSS = 9,        /* packet loss; entity = link */
  RNG_FAILURE = 10,    /* crashes and returns; entity = sampler */
  RNG_STEP = 11,       /* learner step time jitter; entity = learner */
  RNG_BOOTSTRAP = 12,  /* resampling in analysis; entity = statistic */
  RNG_MONTECARLO = 13, /* exact laboratory's Monte Carlo; entity = case */
  RNG_SEARCH = 14,     /* random starts of searches; entity = start */
  RNG_EVAL = 15,       /* evaluation that samples; entity = evaluation */
  RNG_DATA = 16        /* synthetic data sets; entity = item */
} rng_purpose;

typedef struct rng_stream {
  uint64_t seed;
  uint64_t entity;
  uint32_t purpose;
} rng_stream;

typedef struct rng_words {
  uint32_t v[4];
} rng_words;

static inline rng_stream rng_stream_at(uint64_t seed, rng_purpose purpose, uint64_t entity) {
  return (rng_stream){seed, entity, (uint32_t)purpose};
}

/* The four 32-bit words of block `index` (below 2^48) of a stream. */
static inline rng_words rng_block(rng_stream s, uint64_t index) {
  philox4x32_ctr_t counter = {{(uint32_t)index, (uint32_t)s.entity, (uint32_t)(s.entity >> 32),
                               s.purpose << 16 | (uint32_t)(index >> 32 & 0xffffu)}};
  philox4x32_key_t key = {{(uint32_t)s.seed, (uint32_t)(s.seed >> 32)}};
  philox4x32_ctr_t out = philox4x32(counter, key);
  return (rng_words){{out.v[0], out.v[1], out.v[2], out.v[3]}};
}

/* Uniform on (0,1), never 0 or 1: the 2^32 midpoints (x + 1/2) / 2^32. */
static inline double rng_u01(uint32_t word) {
  return ((double)word + 0.5) * 0x1p-32;
}

/* Uniform on (0,1), never 0 or 1: the 2^52 odd multiples of 2^-53. All of them are doubles, so
 * nothing rounds up to 1, and floor(u n) is below n for any n. */
static inline double rng_u01_53(uint32_t high, uint32_t low) {
  uint64_t x = (uint64_t)high << 21 ^ (uint64_t)low >> 11;
  return (double)(x | 1) * 0x1p-53;
}

/* Block index of token `position` (below 2^20) of response `response` (below 2^28) in a batch. */
static inline uint64_t rng_token_index(uint64_t response, uint64_t position) {
  return response << 20 | position;
}

/* A stream as a GSL generator, starting at block 0, words taken in order; release with
 * gsl_rng_free(). NULL if memory is short. gsl_rng_set() on it restarts the stream with another
 * seed. rng_gsl_seek() restarts it at any block. */
gsl_rng *rng_gsl_new(rng_stream stream);
void rng_gsl_seek(gsl_rng *generator, rng_stream stream, uint64_t block);

#endif
