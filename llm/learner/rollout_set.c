/* Memory of a rollout_set, and selection of some of its groups. */
#include "llm/learner/learner.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for n elements in *array, whose contents are lost; 0 if memory is short. */
static int grow(void *array, size_t n, size_t size) {
  void **slot = array;
  free(*slot);
  *slot = calloc(n, size);
  return *slot != NULL;
}

static int grow_groups(rollout_set *s, size_t n) {
  s->cap_groups = 0;
  if (!grow(&s->group_start, n + 1, sizeof *s->group_start) ||
      !grow(&s->prompt_start, n + 1, sizeof *s->prompt_start))
    return 0;
  s->cap_groups = n;
  return 1;
}

static int grow_responses(rollout_set *s, size_t n) {
  s->cap_responses = 0;
  if (!grow(&s->token_start, n + 1, sizeof *s->token_start) ||
      !grow(&s->rows, n, sizeof *s->rows) || !grow(&s->reward, n, sizeof *s->reward) ||
      !grow(&s->loss_weight, n, sizeof *s->loss_weight))
    return 0;
  s->cap_responses = n;
  return 1;
}

static int grow_tokens(rollout_set *s, size_t n) {
  double **const columns[] = {&s->sampled_logq, &s->gap,     &s->logp,        &s->logprox,
                              &s->logref,       &s->entropy, &s->coefficient, &s->part[0],
                              &s->part[1],      &s->part[2]};
  s->cap_tokens = 0;
  if (!grow(&s->token, n, sizeof *s->token)) return 0;
  for (size_t i = 0; i < sizeof columns / sizeof *columns; ++i)
    if (!grow(columns[i], n, sizeof **columns[i])) return 0;
  s->cap_tokens = n;
  return 1;
}

static int grow_prompts(rollout_set *s, size_t n) {
  s->cap_prompt_tokens = 0;
  if (!grow(&s->prompt, n, sizeof *s->prompt)) return 0;
  s->cap_prompt_tokens = n;
  return 1;
}

static int grow_sets(rollout_set *s, size_t tokens) {
  size_t n;
  if (__builtin_mul_overflow(tokens, s->shape.words, &n)) return 0;
  if (n <= s->cap_kept) return 1;
  s->cap_kept = 0;
  if (!grow(&s->kept, n, sizeof *s->kept)) return 0;
  s->cap_kept = n;
  return 1;
}

gl_status rollout_set_resize(rollout_set *s, size_t groups, size_t responses, size_t tokens,
                             size_t prompt_tokens, gl_error *err) {
  if ((groups > s->cap_groups && !grow_groups(s, groups)) ||
      (responses > s->cap_responses && !grow_responses(s, responses)) ||
      (tokens > s->cap_tokens && !grow_tokens(s, tokens)) || !grow_sets(s, tokens) ||
      (prompt_tokens > s->cap_prompt_tokens && !grow_prompts(s, prompt_tokens)))
    return gl_fail_memory(err, "the batches of an update");
  s->n_groups = groups;
  s->n_responses = responses;
  s->n_tokens = tokens;
  s->n_prompt_tokens = prompt_tokens;
  return GL_OK;
}

static void copy_tokens(rollout_set *to, size_t at, const rollout_set *from, size_t first,
                        size_t n) {
  memcpy(to->token + at, from->token + first, n * sizeof *to->token);
  memcpy(to->sampled_logq + at, from->sampled_logq + first, n * sizeof *to->sampled_logq);
  memcpy(to->gap + at, from->gap + first, n * sizeof *to->gap);
  memcpy(to->logprox + at, from->logprox + first, n * sizeof *to->logprox);
  memcpy(to->logref + at, from->logref + first, n * sizeof *to->logref);
  const size_t words = to->shape.words;
  if (words > 0)
    memcpy(to->kept + at * words, from->kept + first * words, n * words * sizeof *to->kept);
}

gl_status rollout_set_select(rollout_set *to, const rollout_set *from, const size_t *order,
                             size_t n, gl_error *err) {
  assert(to != from);
  size_t responses = 0, tokens = 0, prompts = 0;
  for (size_t j = 0; j < n; ++j) {
    assert(order[j] < from->n_groups);
    size_t g = order[j], first = from->group_start[g], last = from->group_start[g + 1];
    responses += last - first;
    tokens += from->token_start[last] - from->token_start[first];
    prompts += from->prompt_start[g + 1] - from->prompt_start[g];
  }
  to->replays = from->replays;
  to->shape = from->replays ? from->shape : (kept_shape){0};
  gl_status status = rollout_set_resize(to, n, responses, tokens, prompts, err);
  if (status != GL_OK) return status;
  size_t i = 0, k = 0, p = 0;
  for (size_t j = 0; j < n; ++j) {
    const size_t g = order[j], first = from->group_start[g], last = from->group_start[g + 1];
    const size_t n_prompt = from->prompt_start[g + 1] - from->prompt_start[g];
    const size_t from_k = from->token_start[first], n_k = from->token_start[last] - from_k;
    to->group_start[j] = i;
    to->prompt_start[j] = p;
    memcpy(to->prompt + p, from->prompt + from->prompt_start[g], n_prompt * sizeof *to->prompt);
    for (size_t r = first; r < last; ++r) {
      to->reward[i + r - first] = from->reward[r];
      to->loss_weight[i + r - first] = from->loss_weight[r];
      to->token_start[i + r - first] = k + from->token_start[r] - from_k;
    }
    copy_tokens(to, k, from, from_k, n_k);
    i += last - first;
    k += n_k;
    p += n_prompt;
  }
  to->group_start[n] = i;
  to->prompt_start[n] = p;
  to->token_start[i] = k;
  return GL_OK;
}

void rollout_set_fini(rollout_set *s) {
  free(s->group_start);
  free(s->token_start);
  free(s->rows);
  free(s->prompt_start);
  free(s->prompt);
  free(s->reward);
  free(s->loss_weight);
  free(s->token);
  free(s->sampled_logq);
  free(s->kept);
  for (size_t i = 0; i < sizeof s->part / sizeof *s->part; ++i) free(s->part[i]);
  free(s->gap);
  free(s->logp);
  free(s->logprox);
  free(s->logref);
  free(s->entropy);
  free(s->coefficient);
  *s = (rollout_set){0};
}
