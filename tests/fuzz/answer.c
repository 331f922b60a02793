/* libFuzzer target: the answer checker.
 *
 * An input that begins with 'N' changes a number: the next two bytes choose an answer of
 * tests/golden/answer_forms.txt, the third one of its numbers, and the rest is what stands in its
 * place. If that is another number, neither answer may be accepted for the other.
 *
 * Of any other input the first line is the reference, the rest the response; no two answers may
 * make the checker misbehave. An answer equals itself whatever stands around it, what is found in a
 * response lies inside it, and so do the parts of what it is read as. */
#include "llm/answer/answer.h"
#include "llm/task/internal.h"
#include "tests/support/answer_form.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* Read once, before the first input; the fuzzer's own state. */
static answer_forms forms;

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc;
  (void)argv;
  if (!answer_forms_read(&forms, "tests/golden/answer_forms.txt")) {
    fprintf(stderr, "cannot read tests/golden/answer_forms.txt; run from the repository's root\n");
    abort();
  }
  return 0;
}

/* --- numbers --- */

static int equal(const char *reference, const char *response) {
  return answer_equal(reference, strlen(reference), response, strlen(response));
}

/* Up to NUMBER digits with at most one point between two of them, made of any bytes. */
enum { NUMBER = 60 };
static void number_of(char out[NUMBER + 1], const uint8_t *data, size_t size) {
  size_t n = 0;
  int has_point = 0;
  for (size_t i = 0; i < size && n < NUMBER; ++i) {
    int is_point = data[i] == '.' || data[i] % 16 == 15;
    if (!is_point)
      out[n++] = answer_form_is_digit((char)data[i]) ? (char)data[i] : (char)('0' + data[i] % 10);
    else if (!has_point && n > 0 && i + 1 < size && n + 1 < NUMBER) {
      out[n++] = '.';
      has_point = 1;
    }
  }
  if (n > 0 && out[n - 1] == '.') --n;
  if (n == 0) out[n++] = '0';
  out[n] = '\0';
}

static void change_a_number(const uint8_t *data, size_t size) {
  char number[NUMBER + 1];
  if (size < 3) return;
  const answer_form *f = &forms.form[(data[0] * 256u + data[1]) % forms.n];
  if (f->n == 0) return;
  number_of(number, data + 3, size - 3);
  char *changed = answer_form_changed(f, data[2] % f->n, number);
  if (changed != NULL && (equal(f->text, changed) || equal(changed, f->text))) {
    fprintf(stderr, "'%s' and '%s' are taken for equal\n", f->text, changed);
    abort();
  }
  free(changed);
}

/* --- any texts --- */

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

static void check_read(const char *text, size_t n) {
  static answer_reading r;
  answer_read(&r, text, n);
  if (r.nodes == 0 || r.nodes > ANSWER_NODES || r.n >= sizeof r.text) abort();
  for (size_t i = 0; i < r.nodes; ++i) {
    const answer_node *node = &r.node[i];
    if (node->begin > r.n || node->n > r.n - node->begin || node->name_begin > r.n ||
        node->name_n > r.n - node->name_begin || (i > 0 && node->depth > r.node[i - 1].depth + 1))
      abort();
  }
}

static void compare_texts(const char *text, size_t size) {
  const char *line = size == 0 ? NULL : memchr(text, '\n', size);
  size_t n = line == NULL ? size : (size_t)(line - text), skip = line == NULL ? size : n + 1;
  char *reference = copy_of(text, n), *response = copy_of(text + skip, size - skip);
  expression e;
  answer_equal(reference, n, response, size - skip);
  answer_equal(response, size - skip, reference, n);
  if (!answer_equal(reference, n, reference, n)) abort();
  check_find(response, size - skip);
  check_read(response, size - skip);
  expression_read(&e, response, size - skip);
  free(reference);
  free(response);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size > 0 && data[0] == 'N')
    change_a_number(data + 1, size - 1);
  else
    compare_texts((const char *)data, size);
  return 0;
}
