/* libFuzzer target: no two answers may make the checker misbehave. The first line is the reference,
 * the rest the response. An answer equals itself whatever stands around it, and what is found in a
 * response lies inside it. */
#include "llm/answer/answer.h"
#include "llm/task/expression.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A copy of exactly n bytes, so that a step beyond them is seen. */
static char *copy_of(const char *text, size_t n) {
  char *copy = malloc(n == 0 ? 1 : n);
  if (copy == NULL) abort();
  if (n != 0) memcpy(copy, text, n);
  return copy;
}

static void check_find(const char *text, size_t n) {
  const char *found;
  size_t m;
  for (int pattern = ANSWER_BOXED; pattern <= ANSWER_LAST_NUMBER; ++pattern)
    if (answer_find(text, n, (answer_pattern)pattern, &found, &m) &&
        (found < text || m > n || (size_t)(found - text) > n - m))
      abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *text = (const char *)data;
  const char *line = size == 0 ? NULL : memchr(text, '\n', size);
  size_t n = line == NULL ? size : (size_t)(line - text), skip = line == NULL ? size : n + 1;
  char *reference = copy_of(text, n), *response = copy_of(text + skip, size - skip);
  expression e;
  answer_equal(reference, n, response, size - skip);
  answer_equal(response, size - skip, reference, n);
  if (!answer_equal(reference, n, reference, n)) abort();
  check_find(response, size - skip);
  expression_read(&e, response, size - skip);
  free(reference);
  free(response);
  return 0;
}
