/* The cases of tests/golden/policy_cases.json, made by tests/golden/policy_oracle.py: an algorithm,
 * what is changed of it, one of a few inputs, and what PyTorch and NumPy say of it. */
#ifndef GEPOLAB_TESTS_SUPPORT_POLICY_FIXTURE_H
#define GEPOLAB_TESTS_SUPPORT_POLICY_FIXTURE_H

#include "core/policy/policy.h"

#include <cjson/cJSON.h>

enum { FIXTURE_INPUTS = 16, FIXTURE_GROUPS = 16, FIXTURE_RESPONSES = 64, FIXTURE_TOKENS = 512 };

typedef struct fixture_input {
  size_t group_start[FIXTURE_GROUPS + 1], token_start[FIXTURE_RESPONSES + 1];
  double reward[FIXTURE_RESPONSES], logp[FIXTURE_TOKENS], logq[FIXTURE_TOKENS];
  double logprox[FIXTURE_TOKENS], logref[FIXTURE_TOKENS], version_gap[FIXTURE_TOKENS];
  double entropy[FIXTURE_TOKENS], entropy_prox[FIXTURE_TOKENS];
  double log_denominator[FIXTURE_GROUPS];
  policy_input in;
} fixture_input;

typedef struct fixture {
  cJSON *root;
  const cJSON *cases; /* an array */
  fixture_input input[FIXTURE_INPUTS];
  policy_workspace *workspace;
} fixture;

/* Room for all that policy_evaluate() gives. */
typedef struct fixture_output {
  double advantage[FIXTURE_RESPONSES], weight[FIXTURE_TOKENS], coefficient[FIXTURE_TOKENS];
  double baseline[FIXTURE_GROUPS], scale[FIXTURE_GROUPS], mean_aw[FIXTURE_GROUPS];
  policy_output out;
} fixture_output;

/* The fixture, read once per call; NULL if the file is missing. The caller frees it. */
fixture *fixture_open(void);
void fixture_free(fixture *f);
/* The algorithm a case evaluates: a published one with the case's changes; 0 if it names no such
 * field.
 */
int fixture_row(const cJSON *a_case, policy_algorithm *algorithm);
/* The case's input; *json, where wanted, gets the input's own expectations. */
const policy_input *fixture_input_of(const fixture *f, const cJSON *a_case, const cJSON **json);
/* policy_evaluate() with all outputs; 0, its message on stderr, if it fails. */
int fixture_evaluate(const fixture *f, const policy_algorithm *algorithm, const policy_input *in,
                     fixture_output *to);
/* A number of the file: null is NaN, 1e999 infinity. */
double fixture_number(const cJSON *value);

#endif
