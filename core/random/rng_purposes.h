/* Addresses of random numbers, for headers that only pass them on; core/random/rng.h generates the
 * numbers. */
#ifndef GEPOLAB_CORE_RANDOM_RNG_PURPOSES_H
#define GEPOLAB_CORE_RANDOM_RNG_PURPOSES_H

#include <stdint.h>

/* The purpose of a stream, with all ranges of entities that are in use, so that a new use takes
 * another. Values must never change, because results would no longer be reproducible. 22 and 23 are
 * not used. */
typedef enum rng_purpose {
  RNG_TEST = 0,
  RNG_INIT = 1,    /* parameter initialisation; entity = tensor */
  RNG_WORLD = 2,   /* random worlds; entity = kind of quantity: 0 rewards of bandits, 1 features,
                      2 hidden sequences; of decision processes 100 garnet, 101 features, 102 token */
  RNG_PROMPT = 3,  /* prompts of a batch; entity = batch */
  RNG_ROLLOUT = 4, /* tokens of responses; entity = batch; index = rng_token_index(); of `gepolab
                      llm bias` entities have bit 62; of trained paths of the laboratory entity =
                      seed << 32 | update */
  RNG_SHUFFLE = 5, /* order of minibatches and micro-batches; entity = update; problems of the
                      warm-up; entity = 2^63 + step */
  RNG_DELAY = 6, /* network delays; entity = 2 i up, 2 i + 1 down, of sampler i; 2^64 - 1 shared */
  RNG_GENERATION = 7, /* entity = 2 i: generation times of sampler i; 2 i + 1: its jitter */
  RNG_LENGTH = 8, /* response lengths sampled from a distribution; entity = batch; length factors of
                     prompts; entity = group + 2^63 */
  RNG_LOSS = 9,   /* packet loss; entity = 2 i up, 2 i + 1 down, of sampler i */
  RNG_FAILURE = 10,   /* crashes and returns; entity = sampler; and the ranges RNG_FAILURE_ below */
  RNG_STEP = 11,      /* entity = 0: learner step times; 1: evaluation pauses; 2 and 3: switches of
                         GPUs to training and to generation */
  RNG_BOOTSTRAP = 12, /* bootstrap in analysis; entity = statistic */
  RNG_MONTECARLO = 13, /* Monte Carlo of the exact laboratory; entity = case << 20 | prompt;
                          response i of group g uses word i % 4 of block g * ceil(G / 4) + i / 4 */
  RNG_SEARCH = 14,     /* starting points of searches, random pairs of distributions, directions of
                          the dial; entity = the caller's number */
  RNG_EVAL = 15,       /* sampled evaluation; entity = version + set << 48; of the warm-up's scores
                          2^63 + step, of `gepolab llm eval` 2^62 + set, of `gepolab llm generate`
                          2^64 - 1 - seed */
  RNG_DATA = 16,       /* problems of a task; entity = 2 i + split */
  RNG_ROUNDING = 17,   /* stochastic rounding of parameters; entity = optimiser's step */
  RNG_SETTING = 18,    /* settings of a sweep's random search; entity = hash of the field's path */
  RNG_BEHAVIOUR = 19,  /* noise of samplers' logits; entity = batch, or hash of batch and prefix;
                          choice of the policy in a mixture; entity = batch */
  RNG_UNSOLVABLE = 20, /* prompts that are never rewarded; entity = prompt */
  RNG_FLIP = 21,       /* rewards that are flipped; entity = batch, index = response */
  RNG_WEIGHT_NOISE = 24, /* weight noise or random drops, which are not used together; entity =
                            learner step, index = update << 32 | response */
  RNG_REPLAY = 25        /* choice of replayed responses; entity = learner step, index = draw */
} rng_purpose;

/* Entities of RNG_FAILURE above the samplers' numbers. */
#define RNG_FAILURE_REJECTIONS (UINT64_C(2) << 60) /* + the unit's number */
#define RNG_FAILURE_GRADING (UINT64_C(3) << 60)    /* grading times; + the unit's number */
#define RNG_FAILURE_RESTARTS (UINT64_C(4) << 60)   /* this entity alone */
#define RNG_FAILURE_TURNS (UINT64_C(5) << 60)      /* numbers of turns; + the unit's number */
#define RNG_FAILURE_CALLS (UINT64_C(6) << 60)      /* times of calls; + the unit's number */
#define RNG_FAILURE_SOURCES (UINT64_C(7) << 60)    /* sources of units; + the unit's number */
#define RNG_FAILURE_SITES (UINT64_C(8) << 60)      /* outages; + the site's number */

typedef struct rng_stream {
  uint64_t seed;
  uint64_t entity;
  uint32_t purpose;
} rng_stream;

#endif
