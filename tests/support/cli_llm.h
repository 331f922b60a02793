/* What the suites of `gepolab llm` share: a tiny recipe, a model of it, JSON and refusals. */
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

/* Exit code, words in the message, and nothing on standard output. */
void check_refusal(const cli_result *r, int code, const char *says);

#define REFUSED(code, says, ...)                                                                   \
  do {                                                                                             \
    cli_result refused_ = CLI(__VA_ARGS__);                                                        \
    check_refusal(&refused_, code, says);                                                          \
    cli_result_fini(&refused_);                                                                    \
  } while (0)

#endif
