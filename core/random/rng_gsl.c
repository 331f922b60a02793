/* A stream of addressed random numbers as a GSL generator. */
#include "core/random/rng.h"

/* Words are returned in the order v[0], v[1], v[2], v[3] of block 0, 1, 2 ... */
typedef struct wrapped {
  rng_stream stream;
  uint64_t next_block;
  rng_words words;
  uint32_t used; /* words used of the current block; 4: all */
} wrapped;

static unsigned long wrapped_get(void *state) {
  wrapped *w = state;
  if (w->used == 4) {
    w->words = rng_block(w->stream, w->next_block++);
    w->used = 0;
  }
  return w->words.v[w->used++];
}

/* GSL requires [0, 1): word / 2^32. GSL distributions that need (0, 1) reject zero themselves. */
static double wrapped_get_double(void *state) {
  return (double)wrapped_get(state) * 0x1p-32;
}

static void wrapped_set(void *state, unsigned long seed) {
  wrapped *w = state;
  w->stream.seed = seed;
  w->next_block = 0;
  w->used = 4;
}

static const gsl_rng_type philox_type = {"gepolab-philox4x32-10", 0xffffffffUL, 0,
                                         sizeof(wrapped),         wrapped_set,  wrapped_get,
                                         wrapped_get_double};

gsl_rng *rng_gsl_new(rng_stream stream) {
  gsl_rng *generator = gsl_rng_alloc(&philox_type);
  if (generator != NULL) rng_gsl_seek(generator, stream, 0);
  return generator;
}

void rng_gsl_seek(gsl_rng *generator, rng_stream stream, uint64_t block) {
  wrapped *w = generator->state;
  w->stream = stream;
  w->next_block = block;
  w->used = 4;
}
