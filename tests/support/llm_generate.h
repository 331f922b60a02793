/* A tiny model and a request for llm/generate's tests, and what the forward says about it. */
#ifndef GEPOLAB_TESTS_SUPPORT_LLM_GENERATE_H
#define GEPOLAB_TESTS_SUPPORT_LLM_GENERATE_H

#include "llm/model/generate.h"

enum { VOCABULARY = 7, STOP = 2, PROMPTS = 5, RESPONSES = 24, MAX_TOKENS = 10, POSITIONS = 32 };

typedef struct tiny {
  backend *backend;
  model *model;
} tiny;

/* Two layers of random weights, large enough for distributions far from uniform; a context of
 * POSITIONS. */
tiny tiny_new(number_type type, size_t threads, size_t vocabulary, uint64_t seed);
void tiny_free(tiny *t);

typedef struct request_data {
  size_t prompt_start[PROMPTS + 1];
  int32_t prompt[64];
  size_t prompt_of[RESPONSES], number[RESPONSES];
} request_data;

/* Five prompts of 1 to 9 tokens; 24 responses spread over them unevenly, one prompt with none. */
generate_request make_request(request_data *d);
generate_result result_new(const generate_request *q);
void must_generate(const tiny *t, const generate_request *q, generate_result *r);
generate_result generated(const tiny *t, const generate_request *q);

/* log softmax of every token after sequence[n]: one forward for each. */
void next_dist(const tiny *t, const int32_t *sequence, size_t n, size_t vocabulary,
               double temperature, double *logp);
/* Prompt and the first n tokens of response i, into sequence[64]; returns the length. */
size_t sequence_of(const generate_request *q, const generate_result *r, size_t i, size_t n,
                   int32_t *sequence);

#endif
