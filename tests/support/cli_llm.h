/* Shared by the suites of `gepolab llm`: a tiny recipe and a model of it. */
#ifndef GEPOLAB_TESTS_SUPPORT_CLI_LLM_H
#define GEPOLAB_TESTS_SUPPORT_CLI_LLM_H

#include "tests/support/cli.h"

/* One layer of 16, addition of digits, 60 steps of warm-up. */
extern const char llm_recipe[];

/* A scratch folder with the recipe in it; and where a model of it goes. */
typedef struct place {
  char folder[64], recipe[128], model[128];
} place;

place place_make(void);
/* With the model there, as `llm sft` leaves it. */
place place_with_model(void);

#endif
