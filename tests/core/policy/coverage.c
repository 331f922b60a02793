/* That the golden cases leave nothing out: every published algorithm occurs, and every value of
 * every field decides at least one case, that is, the case comes out differently with another
 * value. */
#include "tests/support/policy_fixture.h"
#include "tests/support/suite.h"

#include <string.h>

SUITE("policy: coverage of the golden cases");

TEST(every_published_row_is_in_the_fixture) {
  fixture *f = fixture_open();
  CU_ASSERT_PTR_NOT_NULL_FATAL(f);
  for (size_t i = 0; i < policy_algorithms_count(); i++) {
    const cJSON *c;
    int found = 0;
    cJSON_ArrayForEach(c, f->cases) {
      found = found || strcmp(cJSON_GetObjectItem(c, "algorithm")->valuestring,
                              policy_algorithms_at(i)->name) == 0;
    }
    CU_ASSERT(found);
  }
  fixture_free(f);
}

static int differ(const double *a, const double *b, size_t n) {
  for (size_t k = 0; k < n; k++)
    if (a[k] != b[k] && !(fabs(a[k] - b[k]) <= 1e-9 * fmax(1e-3, fabs(a[k])))) return 1;
  return 0;
}

/* Whether the case comes out differently with algorithm `other`, which must be a valid one. */
static int decides(const fixture *f, const policy_input *in, const policy_algorithm *algorithm,
                   const policy_algorithm *other) {
  static fixture_output a, b;
  gl_error err = {0};
  if (policy_algorithm_check(other, &err) != GL_OK) return 0;
  return fixture_evaluate(f, algorithm, in, &a) && fixture_evaluate(f, other, in, &b) &&
         (differ(&a.out.loss, &b.out.loss, 1) ||
          differ(a.coefficient, b.coefficient, in->n_tokens));
}

/* Choices and booleans: this very value against each other one. */
static int value_decides(const fixture *f, const policy_field *field, int value) {
  int n = field->kind == POLICY_FIELD_FLAG ? 2 : field->n_choices;
  const cJSON *c;
  cJSON_ArrayForEach(c, f->cases) {
    policy_algorithm algorithm, other;
    if (!fixture_row(c, &algorithm) || *(int *)((char *)&algorithm + field->offset) != value)
      continue;
    for (int v = 0; v < n; v++) {
      other = algorithm;
      *(int *)((char *)&other + field->offset) = v;
      if (v != value && decides(f, fixture_input_of(f, c, NULL), &algorithm, &other)) return 1;
    }
  }
  return 0;
}

/* Numbers: a value that is not the published algorithm's, against the algorithm's own. */
static int number_decides(const fixture *f, const policy_field *field) {
  size_t size = field->kind == POLICY_FIELD_COUNT ? sizeof(size_t) : sizeof(double);
  const cJSON *c;
  cJSON_ArrayForEach(c, f->cases) {
    policy_algorithm algorithm, other;
    if (!fixture_row(c, &algorithm)) continue;
    other = algorithm;
    memcpy((char *)&other + field->offset,
           (const char *)policy_algorithms_find(algorithm.base) + field->offset, size);
    if (memcmp((char *)&other + field->offset, (char *)&algorithm + field->offset, size) != 0 &&
        decides(f, fixture_input_of(f, c, NULL), &algorithm, &other))
      return 1;
  }
  return 0;
}

TEST(every_value_of_every_field_decides_a_golden_case) {
  fixture *f = fixture_open();
  CU_ASSERT_PTR_NOT_NULL_FATAL(f);
  for (size_t i = 0; i < policy_fields_count(); i++) {
    const policy_field *field = policy_fields_at(i);
    int discrete = field->kind == POLICY_FIELD_CHOICE || field->kind == POLICY_FIELD_FLAG;
    int n = field->kind == POLICY_FIELD_CHOICE ? field->n_choices : discrete ? 2 : 1;
    if (strcmp(field->name, "proximal_decay") == 0) continue; /* the learner's: logprox is given */
    for (int v = 0; v < n; v++) {
      int found = discrete ? value_decides(f, field, v) : number_decides(f, field);
      if (!found)
        fprintf(stderr, "no golden case is decided by %s: %s\n", field->name,
                field->kind == POLICY_FIELD_CHOICE ? field->choice(v)
                : discrete                         ? (v ? "true" : "false")
                                                   : "a number other than the algorithm's");
      CU_ASSERT(found);
    }
  }
  fixture_free(f);
}

TEST(every_metric_that_a_policy_fills_is_in_the_fixture) {
  fixture *f = fixture_open();
  CU_ASSERT_PTR_NOT_NULL_FATAL(f);
  static fixture_output o;
  const cJSON *input = NULL, *name;
  const policy_input *in = fixture_input_of(f, f->cases->child, &input);
  CU_ASSERT(fixture_evaluate(f, policy_algorithms_find("gepo"), in, &o));
  for (int m = 0; m < METRIC_COUNT; m++) {
    const char *want = metric_about((metric)m)->name;
    int found = cJSON_HasObjectItem(cJSON_GetObjectItem(input, "metrics"), want);
    cJSON_ArrayForEach(name, cJSON_GetObjectItem(f->root, "metrics")) {
      found = found || strcmp(name->valuestring, want) == 0;
    }
    int filled = !isnan(o.out.metric[m]) && m != METRIC_LOSS; /* the loss is each case's own */
    if (filled != found) fprintf(stderr, "metric %s\n", want);
    CU_ASSERT_EQUAL(filled, found);
  }
  fixture_free(f);
}
