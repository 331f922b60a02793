/* libFuzzer target: no text may make a reader of token-level logs misbehave, whichever format it is
 * read as; every batch has the shape that policy_input promises. */
#include "experiments/tokens/token_log.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds) {
  if (!holds) abort();
}

static void check_logs(const double *log, size_t n) {
  for (size_t t = 0; t < n; ++t) must(log[t] <= 0 && log[t] >= -1e6);
}

static void check_batch(const token_batch *b) {
  const policy_input *in = &b->input;
  must(in->n_groups > 0 && in->n_responses >= in->n_groups && in->n_tokens >= in->n_responses);
  must(in->group_start[0] == 0 && in->group_start[in->n_groups] == in->n_responses);
  must(in->token_start[0] == 0 && in->token_start[in->n_responses] == in->n_tokens);
  for (size_t g = 0; g < in->n_groups; ++g) must(in->group_start[g] < in->group_start[g + 1]);
  for (size_t i = 0; i < in->n_responses; ++i) {
    must(in->token_start[i] < in->token_start[i + 1]);
    must(b->has_rewards ? isfinite(in->reward[i]) : isfinite(in->advantage[i]));
  }
  must(b->has_logs == (in->logp != NULL && in->logq != NULL));
  if (in->logp != NULL) check_logs(in->logp, in->n_tokens);
  if (in->logq != NULL) check_logs(in->logq, in->n_tokens);
}

static void read_as(const char *format, size_t group_size, const uint8_t *data, size_t size) {
  const token_request request = {.format = format, .group_size = group_size};
  const token_batch *b = NULL;
  token_log *log = NULL;
  gl_error err = {0};
  size_t n = 0;
  gl_status status = token_log_open_text(&log, (const char *)data, size, "log", &request, &err);
  while (status == GL_OK && (status = token_log_next(log, &b, &err)) == GL_OK && b != NULL) {
    check_batch(b);
    ++n;
  }
  must((status == GL_OK) == (err.text[0] == '\0'));
  must(status != GL_OK || n > 0);
  token_log_close(log);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  read_as(NULL, 0, data, size);
  for (size_t i = 0; i < token_formats_count(); ++i)
    read_as(token_format_name(i), i % 3, data, size);
  return 0;
}
