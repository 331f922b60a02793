/* Batches laid out for an update: checked against the world, joined into one set. */
#include "llm/learner/learner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static gl_status foreign(const batch *b, gl_error *err) {
  return gl_fail(err, GL_EINPUT, "batch %llu was drawn in another world than it is trained in",
                 (unsigned long long)b->id);
}

/* Whether every token has a set that holds it, where this learner's samplers record sets. A batch
 * that an older program left in a checkpoint may lack sets that no weights need. */
static int holds_sets(const llm_learner *l, const batch *b) {
  const kept_shape *shape = &l->spec.kept;
  if (l->spec.kept_for_metrics && b->n_aux == 0) return 1;
  if (b->n_aux != b->n_tokens * kept_doubles(shape)) return 0;
  for (size_t k = 0; k < b->n_tokens && shape->words > 0; ++k) {
    const uint32_t *set = (const uint32_t *)(const void *)(b->aux + k * kept_doubles(shape));
    if (shape->listed && set[0] >= shape->words) return 0;
    if (kept_count(shape, set) > 0 && !kept_has(shape, set, (size_t)b->token[k])) return 0;
  }
  return 1;
}

static gl_status check_batch(const llm_learner *l, const batch *b, gl_error *err) {
  if (!batch_is_consistent(b) || b->n_groups == 0) return foreign(b, err);
  for (size_t g = 0; g < b->n_groups; ++g)
    if (b->group_start[g] == b->group_start[g + 1] || b->prompt[g] < 0 ||
        (uint64_t)b->prompt[g] >= task_size(l->spec.task, TASK_TRAIN))
      return foreign(b, err);
  for (size_t i = 0; i < b->n_responses; ++i) {
    size_t n = b->token_start[i + 1] - b->token_start[i];
    if (n == 0 || n > l->spec.max_tokens) return foreign(b, err);
  }
  for (size_t k = 0; k < b->n_tokens; ++k)
    if (b->token[k] < 0 || (size_t)b->token[k] >= l->spec.model.vocabulary) return foreign(b, err);
  return holds_sets(l, b) ? GL_OK : foreign(b, err);
}

static void gather_batch(llm_learner *l, const batch *b, const problem_set *problems, size_t g0,
                         size_t i0, size_t k0) {
  rollout_set *s = &l->all;
  const double *logq = l->spec.sampling.weights != SAMPLING_RAW ? b->logq_trunc : b->logq;
  for (size_t g = (size_t)b->continues; g < b->n_groups; ++g)
    s->group_start[g0 + g] = i0 + b->group_start[g];
  for (size_t i = 0; i < b->n_responses; ++i) {
    s->token_start[i0 + i] = k0 + b->token_start[i];
    s->reward[i0 + i] = b->reward[i];
    s->loss_weight[i0 + i] = b->loss_weight;
  }
  for (size_t k = 0; k < b->n_tokens; ++k) {
    s->token[k0 + k] = b->token[k];
    s->sampled_logq[k0 + k] = logq[k];
    s->gap[k0 + k] = (double)(l->version - b->version[k]);
    s->kept_mass_q += exp(b->logq[k] - b->logq_trunc[k]);
  }
  for (size_t k = 0, words = s->shape.words; k < b->n_tokens && words > 0; ++k)
    memcpy(s->kept + (k0 + k) * words, b->aux + k * kept_doubles(&s->shape),
           words * sizeof *s->kept);
  for (size_t g = 0; g < b->n_groups; ++g) s->prompt_start[g0 + g] = problems->start[g0 + g];
}

/* Copies the prompts of all groups, in order. */
static gl_status gather_prompts(const llm_learner *l, batch *const *batches, size_t n,
                                size_t groups, problem_set *out, gl_error *err) {
  uint64_t *number = calloc(groups + 1, sizeof *number);
  if (number == NULL) return gl_fail_memory(err, "the prompts of an update");
  gl_status status = GL_OK;
  for (size_t b = 0, g0 = 0; b < n; g0 += batches[b++]->n_groups) {
    g0 -= (size_t)batches[b]->continues;
    if (batches[b]->continues && number[g0] != (uint64_t)batches[b]->prompt[0])
      status = gl_fail(err, GL_EINTERNAL, "batch %llu continues a group of another prompt",
                       (unsigned long long)batches[b]->id);
    for (size_t g = 0; g < batches[b]->n_groups; ++g)
      number[g0 + g] = (uint64_t)batches[b]->prompt[g];
  }
  if (status == GL_OK) status = problem_set_init(out, &l->spec, TASK_TRAIN, number, groups, err);
  free(number);
  return status;
}

gl_status llm_learner_gather(llm_learner *l, batch *const *batches, size_t n, gl_error *err) {
  rollout_set *s = &l->all;
  problem_set problems;
  const size_t groups = batches_groups((const batch *const *)batches, n);
  size_t responses = 0, tokens = 0;
  for (size_t b = 0; b < n; ++b) {
    gl_status status = check_batch(l, batches[b], err);
    if (status != GL_OK) return status;
    responses += batches[b]->n_responses;
    tokens += batches[b]->n_tokens;
  }
  if (groups == 0) return gl_fail(err, GL_EINTERNAL, "an update of no batch");
  gl_status status = gather_prompts(l, batches, n, groups, &problems, err);
  if (status != GL_OK) return status;
  s->shape = l->spec.kept;
  for (size_t b = 0; b < n && l->spec.kept_for_metrics; ++b)
    if (batches[b]->n_aux == 0) s->shape = (kept_shape){0};
  s->replays = l->spec.sampling.weights == SAMPLING_REPLAY;
  status = rollout_set_resize(s, groups, responses, tokens, problems.start[groups], err);
  if (status == GL_OK) {
    size_t g0 = 0, i0 = 0, k0 = 0;
    s->kept_mass_q = 0;
    for (size_t b = 0; b < n; ++b) {
      g0 -= (size_t)batches[b]->continues;
      gather_batch(l, batches[b], &problems, g0, i0, k0);
      g0 += batches[b]->n_groups;
      i0 += batches[b]->n_responses;
      k0 += batches[b]->n_tokens;
    }
    s->kept_mass_q /= (double)tokens;
    s->group_start[groups] = responses;
    s->token_start[responses] = tokens;
    s->prompt_start[groups] = problems.start[groups];
    memcpy(s->prompt, problems.token, problems.start[groups] * sizeof *s->prompt);
  }
  problem_set_fini(&problems);
  return status;
}
