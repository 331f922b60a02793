/* Memory for the groups that one loss is evaluated on. */
#include "toy/learner/learner.h"

#include <stdlib.h>

/* Grows *array to n elements of the given size, contents lost; 0 if memory is short. */
static int grow(void *array, size_t n, size_t size) {
  void **slot = array;
  free(*slot);
  *slot = calloc(n, size);
  return *slot != NULL;
}

static int grow_groups(token_set *s, size_t n) {
  s->cap_groups = 0;
  if (!grow(&s->group_start, n + 1, sizeof *s->group_start) ||
      !grow(&s->prompt, n, sizeof *s->prompt) ||
      !grow(&s->log_collision, n, sizeof *s->log_collision) ||
      !grow(&s->baseline, n, sizeof *s->baseline) || !grow(&s->scale, n, sizeof *s->scale) ||
      !grow(&s->mean_aw, n, sizeof *s->mean_aw))
    return 0;
  s->cap_groups = n;
  return 1;
}

static int grow_responses(token_set *s, size_t n) {
  s->cap_responses = 0;
  if (!grow(&s->token_start, n + 1, sizeof *s->token_start) ||
      !grow(&s->reward, n, sizeof *s->reward) || !grow(&s->dist, n, sizeof *s->dist) ||
      !grow(&s->loss_weight, n, sizeof *s->loss_weight))
    return 0;
  s->cap_responses = n;
  return 1;
}

static int grow_tokens(token_set *s, size_t n) {
  s->cap_tokens = 0;
  if (!grow(&s->edge, n, sizeof *s->edge) || !grow(&s->sampled_logq, n, sizeof *s->sampled_logq) ||
      !grow(&s->gap, n, sizeof *s->gap) || !grow(&s->logp, n, sizeof *s->logp) ||
      !grow(&s->logprox, n, sizeof *s->logprox) || !grow(&s->logref, n, sizeof *s->logref) ||
      !grow(&s->entropy, n, sizeof *s->entropy) ||
      !grow(&s->coefficient, n, sizeof *s->coefficient))
    return 0;
  s->cap_tokens = n;
  return 1;
}

gl_status token_set_resize(token_set *s, size_t groups, size_t responses, size_t tokens,
                           gl_error *err) {
  if ((groups > s->cap_groups && !grow_groups(s, groups)) ||
      (responses > s->cap_responses && !grow_responses(s, responses)) ||
      (tokens > s->cap_tokens && !grow_tokens(s, tokens)))
    return gl_fail_memory(err, "the batches of an update");
  s->n_groups = groups;
  s->n_responses = responses;
  s->n_tokens = tokens;
  return GL_OK;
}

void token_set_fini(token_set *s) {
  free(s->group_start);
  free(s->token_start);
  free(s->prompt);
  free(s->dist);
  free(s->edge);
  free(s->reward);
  free(s->loss_weight);
  free(s->sampled_logq);
  free(s->gap);
  free(s->logp);
  free(s->logprox);
  free(s->logref);
  free(s->entropy);
  free(s->log_collision);
  free(s->coefficient);
  free(s->baseline);
  free(s->scale);
  free(s->mean_aw);
  *s = (token_set){0};
}
