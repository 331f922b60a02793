/* Addresses of random numbers, for headers that only pass them on; core/random/rng.h generates the
 * numbers. */
#ifndef GEPOLAB_CORE_RANDOM_RNG_PURPOSES_H
#define GEPOLAB_CORE_RANDOM_RNG_PURPOSES_H

#include <stdint.h>

/* The purpose of a stream. Values must never change, because results would no longer be
 * reproducible. */
typedef enum rng_purpose {
  RNG_TEST = 0,
  RNG_INIT = 1,       /* parameter initialisation; entity = tensor */
  RNG_WORLD = 2,      /* random worlds: rewards, features, transitions; entity = kind of quantity */
  RNG_PROMPT = 3,     /* prompts of a batch; entity = batch */
  RNG_ROLLOUT = 4,    /* tokens of responses; entity = batch; index = rng_token_index() */
  RNG_SHUFFLE = 5,    /* order of minibatches and micro-batches; entity = update */
  RNG_DELAY = 6,      /* network delays; entity = link */
  RNG_GENERATION = 7, /* generation times and jitter; entity = sampler */
  RNG_LENGTH = 8,     /* response lengths sampled from a distribution; entity = batch */
  RNG_LOSS = 9,       /* packet loss; entity = link */
  RNG_FAILURE = 10,   /* crashes and returns; entity = sampler */
  RNG_STEP = 11,      /* learner step time jitter; entity = learner */
  RNG_BOOTSTRAP = 12, /* bootstrap in analysis; entity = statistic */
  RNG_MONTECARLO = 13,  /* Monte Carlo of the exact laboratory; entity = case << 20 | prompt;
                           response i of group g uses word i % 4 of block g * ceil(G / 4) + i / 4 */
  RNG_SEARCH = 14,      /* random starting points of searches; entity = start */
  RNG_EVAL = 15,        /* sampled evaluation; entity = evaluation */
  RNG_DATA = 16,        /* synthetic data sets; entity = item */
  RNG_ROUNDING = 17,    /* stochastic rounding of parameters; entity = optimiser's step */
  RNG_SETTING = 18,     /* settings of a sweep's random search; entity = hash of the field's path */
  RNG_BEHAVIOUR = 19,   /* noise of samplers' logits; entity = batch, or hash of batch and prefix */
  RNG_UNSOLVABLE = 20,  /* prompts that are never rewarded; entity = prompt */
  RNG_FLIP = 21,        /* rewards that are flipped; entity = batch, index = response */
  RNG_WEIGHT_NOISE = 24 /* weight noise; entity = learner step, index = update << 32 | response */
} rng_purpose;

typedef struct rng_stream {
  uint64_t seed;
  uint64_t entity;
  uint32_t purpose;
} rng_stream;

#endif
