/* Builds packed sequences, and reads problems as tokens. */
#include "llm/learner/packed_tokens.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- packed tokens -----------------------------------------------------------------------------
 */

/* Grows *array, which holds elements of `size`, to at least n of them; contents are kept. */
static int grow(void *array, size_t *capacity, size_t n, size_t size) {
  void **slot = array;
  if (n <= *capacity) return 1;
  size_t wanted = n < SIZE_MAX / 2 ? n + n / 2 + 16 : n;
  if (wanted > SIZE_MAX / size) return 0;
  void *larger = realloc(*slot, wanted * size);
  if (larger == NULL) return 0;
  *slot = larger;
  *capacity = wanted;
  return 1;
}

static int reserve(token_pack *p, size_t tokens, size_t targets) {
  size_t first = p->cap_targets;
  return grow(&p->start, &p->cap_sequences, p->n_sequences + 2, sizeof *p->start) &&
         grow(&p->token, &p->cap_tokens, p->n_tokens + tokens, sizeof *p->token) &&
         grow(&p->target_after, &first, p->n_targets + targets, sizeof *p->target_after) &&
         grow(&p->target, &p->cap_targets, p->n_targets + targets, sizeof *p->target);
}

void token_pack_clear(token_pack *p) {
  p->n_sequences = p->n_tokens = p->n_targets = 0;
}

gl_status token_pack_add(token_pack *p, const int32_t *prompt, size_t n_prompt,
                         const int32_t *response, size_t n_response, gl_error *err) {
  assert(n_prompt > 0 && n_response > 0);
  const size_t tokens = n_prompt + n_response - 1, first = p->n_tokens;
  if (!reserve(p, tokens, n_response)) return gl_fail_memory(err, "packed sequences");
  memcpy(p->token + first, prompt, n_prompt * sizeof *p->token);
  memcpy(p->token + first + n_prompt, response, (n_response - 1) * sizeof *p->token);
  for (size_t t = 0; t < n_response; ++t)
    p->target_after[p->n_targets + t] = first + n_prompt - 1 + t;
  memcpy(p->target + p->n_targets, response, n_response * sizeof *p->target);
  p->start[p->n_sequences++] = first;
  p->n_tokens += tokens;
  p->n_targets += n_response;
  p->start[p->n_sequences] = p->n_tokens;
  return GL_OK;
}

packed_tokens token_pack_view(const token_pack *p) {
  return (packed_tokens){.n_tokens = p->n_tokens,
                         .n_sequences = p->n_sequences,
                         .n_targets = p->n_targets,
                         .start = p->start,
                         .token = p->token,
                         .target_after = p->target_after,
                         .target = p->target};
}

void token_pack_fini(token_pack *p) {
  free(p->start);
  free(p->token);
  free(p->target_after);
  free(p->target);
  *p = (token_pack){0};
}

/* --- problems -----------------------------------------------------------------------------------
 */

static gl_status add_problem(problem_set *set, const run_spec *spec, task_split split,
                             uint64_t number, size_t *capacity, gl_error *err) {
  int32_t *token = NULL;
  size_t n = 0, i = set->n, first = set->start[i];
  gl_status status = task_problem(spec->task, split, number, &set->problem[i], err);
  if (status != GL_OK) return status;
  ++set->n;
  status = run_spec_prompt(spec, set->problem[i].prompt, &token, &n, err);
  if (status == GL_OK && !grow(&set->token, capacity, first + n, sizeof *set->token))
    status = gl_fail_memory(err, "prompts");
  if (status == GL_OK) {
    memcpy(set->token + first, token, n * sizeof *token);
    set->start[i + 1] = first + n;
  }
  free(token);
  return status;
}

gl_status problem_set_init(problem_set *set, const run_spec *spec, task_split split,
                           const uint64_t *number, size_t n, gl_error *err) {
  size_t capacity = 0;
  *set = (problem_set){.problem = calloc(n + 1, sizeof *set->problem),
                       .start = calloc(n + 1, sizeof *set->start)};
  gl_status status =
      set->problem != NULL && set->start != NULL ? GL_OK : gl_fail_memory(err, "prompts");
  for (size_t i = 0; i < n && status == GL_OK; ++i)
    status = add_problem(set, spec, split, number[i], &capacity, err);
  if (status != GL_OK) problem_set_fini(set);
  return status;
}

void problem_set_fini(problem_set *set) {
  for (size_t i = 0; i < set->n; ++i) problem_fini(&set->problem[i]);
  free(set->problem);
  free(set->start);
  free(set->token);
  *set = (problem_set){0};
}
