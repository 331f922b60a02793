/* libFuzzer target: no text may make the reader of `gepolab policy`'s groups misbehave, and what it
 * takes can be given to every algorithm: each either refuses it or answers, and where the ratios
 * are within double precision the answer is finite. */
#include "experiments/tokens/group_file.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_logs(const double *value, size_t n) {
  for (size_t t = 0; value != NULL && t < n; ++t)
    if (!(value[t] >= GROUP_FILE_LEAST_LOG && value[t] <= 0)) abort();
}

static void check_input(const policy_input *in) {
  if (in->n_groups == 0 || in->group_start[0] != 0 || in->token_start[0] != 0 ||
      in->group_start[in->n_groups] != in->n_responses ||
      in->token_start[in->n_responses] != in->n_tokens)
    abort();
  for (size_t g = 0; g < in->n_groups; ++g)
    if (in->group_start[g + 1] <= in->group_start[g]) abort();
  for (size_t i = 0; i < in->n_responses; ++i)
    if (in->token_start[i + 1] <= in->token_start[i] || !isfinite(in->reward[i])) abort();
  check_logs(in->logp, in->n_tokens);
  check_logs(in->logq, in->n_tokens);
  check_logs(in->logprox, in->n_tokens);
  check_logs(in->logref, in->n_tokens);
  for (size_t t = 0; in->version_gap != NULL && t < in->n_tokens; ++t)
    if (!isfinite(in->version_gap[t])) abort();
  for (size_t g = 0; in->log_denominator != NULL && g < in->n_groups; ++g)
    if (!isfinite(in->log_denominator[g])) abort();
}

/* Whether sums, products and exponentials of these numbers stay within double precision. */
static int is_tame(const policy_input *in) {
  double spread = 0, rewards = 0;
  for (size_t t = 0; t < in->n_tokens; ++t) {
    spread += fabs(in->logp[t] - in->logq[t]);
    if (in->logprox != NULL) spread += fabs(in->logprox[t] - in->logq[t]);
    if (in->logref != NULL) spread += fabs(in->logref[t] - in->logp[t]);
  }
  for (size_t i = 0; i < in->n_responses; ++i) rewards = fmax(rewards, fabs(in->reward[i]));
  return spread < 100 && rewards < 1e100 && in->log_denominator == NULL;
}

static void evaluate(const policy_input *in, const policy_algorithm *algorithm,
                     policy_workspace *workspace) {
  gl_error err = {0};
  double *memory = calloc(in->n_responses + 2 * in->n_tokens, sizeof *memory);
  if (memory == NULL) abort();
  policy_output out = {.advantage = memory,
                       .weight = memory + in->n_responses,
                       .coefficient = memory + in->n_responses + in->n_tokens};
  const gl_status status = policy_evaluate(algorithm, in, &out, workspace, &err);
  if ((status == GL_OK) != (err.text[0] == '\0')) abort();
  if (status == GL_OK && is_tame(in)) {
    if (!isfinite(out.loss)) abort();
    for (size_t t = 0; t < in->n_tokens; ++t)
      if (isnan(out.coefficient[t])) abort();
  }
  free(memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  group_file g;
  gl_error err = {0};
  if (group_file_read_text(&g, (const char *)data, size, "input", &err) != GL_OK) {
    if (err.text[0] == '\0' || g.memory != NULL || strstr(err.text, "policy input") == NULL)
      abort();
    return 0;
  }
  check_input(&g.input);
  policy_workspace *workspace = policy_workspace_new();
  if (workspace == NULL) abort();
  for (size_t k = 0; k < policy_algorithms_count(); ++k)
    evaluate(&g.input, policy_algorithms_at(k), workspace);
  policy_workspace_free(workspace);
  group_file_fini(&g);
  return 0;
}
