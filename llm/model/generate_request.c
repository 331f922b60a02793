/* Memory of a generation's results. */
#include "llm/model/generate_request.h"

#include "core/base/error.h"

#include <stdlib.h>

gl_status generate_result_init(generate_result *r, size_t n_responses, size_t max_tokens,
                               gl_error *err) {
  *r = (generate_result){0};
  if (max_tokens > 0 && n_responses > SIZE_MAX / sizeof(double) / max_tokens)
    return gl_fail_memory(err, "the responses");
  size_t n = n_responses * max_tokens;
  r->length = calloc(n_responses + 1, sizeof *r->length);
  r->finished = calloc(n_responses + 1, sizeof *r->finished);
  r->token = calloc(n + 1, sizeof *r->token);
  r->logq = calloc(n + 1, sizeof *r->logq);
  r->logq_truncated = calloc(n + 1, sizeof *r->logq_truncated);
  if (r->length != NULL && r->finished != NULL && r->token != NULL && r->logq != NULL &&
      r->logq_truncated != NULL)
    return GL_OK;
  generate_result_fini(r);
  return gl_fail_memory(err, "the responses");
}

gl_status generate_result_keep(generate_result *r, size_t n_responses, size_t max_tokens,
                               const kept_shape *shape, gl_error *err) {
  size_t n;
  if (shape->words == 0) return GL_OK;
  if (__builtin_mul_overflow(n_responses, max_tokens, &n) ||
      __builtin_mul_overflow(n, shape->words, &n))
    return gl_fail_memory(err, "the responses");
  r->shape = *shape;
  r->kept = calloc(n + 1, sizeof *r->kept);
  return r->kept != NULL ? GL_OK : gl_fail_memory(err, "the responses");
}

void generate_result_fini(generate_result *r) {
  free(r->length);
  free(r->finished);
  free(r->token);
  free(r->logq);
  free(r->logq_truncated);
  free(r->kept);
  *r = (generate_result){0};
}
