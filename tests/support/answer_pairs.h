/* A table of answers and whether one is right where the other is. */
#ifndef GEPOLAB_TESTS_SUPPORT_ANSWER_PAIRS_H
#define GEPOLAB_TESTS_SUPPORT_ANSWER_PAIRS_H

#include "llm/answer/answer.h"
#include "tests/support/suite.h"

#include <string.h>

typedef struct answer_pair {
  const char *reference, *response;
  int equal;
} answer_pair;

static inline void answer_pairs_check(const answer_pair *pair, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const char *a = pair[i].reference, *b = pair[i].response;
    int got = answer_equal(a, strlen(a), b, strlen(b));
    if (got != pair[i].equal) fprintf(stderr, "'%s' and '%s': %d\n", a, b, got);
    CU_ASSERT(got == pair[i].equal);
  }
}

#define CHECK_PAIRS(table) answer_pairs_check(table, sizeof(table) / sizeof *(table))

#endif
