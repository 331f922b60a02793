/* Code shared by all learners: checks of setups and sampling requests, minibatches, staleness and
 * training rewards. */
#include "core/rl/learner.h"

#include "core/config/fields.h"
#include "core/random/rng.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* Returns the node of the section's key if it exists, otherwise the section. */
static const cfg_node *key_or_section(const cfg_node *section, const char *key) {
  const cfg_node *node = section != NULL ? cfg_find(section, key) : NULL;
  return node != NULL ? node : section;
}

gl_status learner_setup_check(const learner_setup *s, gl_error *err) {
  if (s->minibatches < 1 || s->epochs < 1 || s->n_groups < 1 || s->group_size < 1)
    return cfg_fail(s->train, err,
                    "train.groups, group_size, minibatches and epochs must each be 1 or more");
  gl_error why = {.status = GL_OK};
  if (policy_algorithm_check_group_size(s->algorithm, s->group_size, &why) != GL_OK)
    return cfg_fail(key_or_section(s->train, "group_size"), err, "%s", why.text);
  if (s->minibatches <= s->n_groups) return GL_OK;
  return cfg_fail(key_or_section(s->train, "minibatches"), err,
                  "train.minibatches is %zu, but a batch has only %zu groups to split; use fewer "
                  "minibatches or more groups",
                  s->minibatches, s->n_groups);
}

gl_status draw_request_check(const draw_request *r, const batch *b, size_t longest, gl_error *err) {
  if (!(r->from >= 0 && r->from < r->to && r->to <= 1) || r->n_groups == 0 || r->group_size == 0)
    return gl_fail(err, GL_EINTERNAL, "a draw of [%g, %g) of %zu groups of %zu", r->from, r->to,
                   r->n_groups, r->group_size);
  const size_t groups = r->first_group + r->n_groups;
  const size_t each = r->first_response + r->group_size;
  if (groups < r->n_groups || each < r->group_size || each > ((size_t)1 << 28) / groups)
    return gl_fail(err, GL_EINPUT, "%zu groups of %zu responses are more than a batch can address",
                   groups, r->group_size);
  if (r->from > 0 &&
      (b->id != r->batch_id || b->n_groups != r->n_groups ||
       b->n_responses != r->n_groups * r->group_size || b->n_tokens != b->n_responses * longest))
    return gl_fail(err, GL_EINTERNAL, "a draw that continues another batch than it began");
  for (size_t i = 0; r->span != NULL && i < r->n_groups * r->group_size; ++i)
    if (r->span[i].from > r->span[i].to || r->span[i].to > longest)
      return gl_fail(err, GL_EINTERNAL, "a draw of tokens %zu to %zu of %zu", r->span[i].from,
                     r->span[i].to, longest);
  return GL_OK;
}

size_t draw_boundary(double fraction, size_t longest) {
  return (size_t)ceil(fraction * (double)longest);
}

size_t draw_number(const draw_request *r, size_t i) {
  return r->first_group * r->group_size + r->first_response + i;
}

void learner_shuffle(size_t *order, size_t n, uint64_t seed, int64_t version, size_t epoch) {
  const rng_stream stream = rng_stream_at(seed, RNG_SHUFFLE, (uint64_t)version);
  for (size_t i = 0; i < n; ++i) order[i] = i;
  for (size_t i = n; i-- > 1;) {
    const rng_words w = rng_block(stream, (uint64_t)epoch * n + i);
    const size_t j = (size_t)(rng_u01_53(w.v[0], w.v[1]) * (double)(i + 1)), kept = order[i];
    order[i] = order[j];
    order[j] = kept;
  }
}

size_t learner_minibatch(size_t m, size_t minibatches, size_t groups) {
  assert(m <= minibatches);
  return m * groups / minibatches;
}

/* Adds the number of tokens of each group of all batches to tokens[], which is zero on entry. A
 * group that continues from the previous batch is one group. */
static void tokens_of_groups(batch *const *batches, size_t n, double *tokens) {
  size_t n_groups = 0;
  for (size_t b = 0; b < n; ++b) {
    const size_t *start = batches[b]->group_start;
    n_groups -= (size_t)batches[b]->continues;
    for (size_t g = 0; g < batches[b]->n_groups; ++g)
      tokens[n_groups++] +=
          (double)(batches[b]->token_start[start[g + 1]] - batches[b]->token_start[start[g]]);
  }
}

/* Sets *sum to the sum over all epochs and tokens of the number of optimiser updates in this step
 * before the one that trains the token. */
static gl_status updates_before(double *sum, const learner_passes *p, batch *const *batches,
                                size_t n, int64_t version, gl_error *err) {
  const size_t groups = batches_groups((const batch *const *)batches, n);
  size_t *order = calloc(groups + 1, sizeof *order);
  double *tokens = calloc(groups + 1, sizeof *tokens);
  if (order == NULL || tokens == NULL) {
    free(order), free(tokens);
    return gl_fail_memory(err, "the staleness of a step");
  }
  tokens_of_groups(batches, n, tokens);
  *sum = 0;
  for (size_t epoch = 0; epoch < p->epochs; ++epoch) {
    learner_shuffle(order, groups, p->seed, version, epoch);
    for (size_t m = 0; m < p->minibatches; ++m) {
      const size_t end = learner_minibatch(m + 1, p->minibatches, groups);
      const double before = (double)(epoch * p->minibatches + m);
      for (size_t i = learner_minibatch(m, p->minibatches, groups); i < end; ++i)
        *sum += before * tokens[order[i]];
    }
  }
  free(order), free(tokens);
  return GL_OK;
}

gl_status learner_staleness(const learner_passes *p, batch *const *batches, size_t n,
                            int64_t version, double value[METRIC_COUNT], gl_error *err) {
  assert(p->minibatches >= 1 && p->epochs >= 1);
  const double epochs = (double)p->epochs, updates = (double)p->minibatches * epochs;
  double sum = 0, largest = 0, tokens = 0;
  for (size_t b = 0; b < n; ++b) {
    for (size_t t = 0; t < batches[b]->n_tokens; ++t) {
      const double staleness = (double)(version - batches[b]->version[t]);
      sum += staleness;
      largest = fmax(largest, staleness);
    }
    tokens += (double)batches[b]->n_tokens;
  }
  double before = tokens * (epochs * (epochs - 1) / 2); /* if one update trains all groups */
  gl_status status = GL_OK;
  if (p->minibatches > 1) status = updates_before(&before, p, batches, n, version, err);
  value[METRIC_STALENESS] = sum / tokens;
  value[METRIC_STALENESS_MAX] = largest;
  value[METRIC_STALENESS_WITHIN] = before / (epochs * tokens);
  value[METRIC_STALENESS_UPDATES] = (updates * epochs * sum + before) / (epochs * tokens);
  return status;
}

/* --- training rewards --- */

gl_status training_reward_read(training_reward *out, cfg_reader *r) {
  cfg_reader noise;
  out->unsolvable = field_real(r, "unsolvable");
  cfg_begin(&noise, cfg_child(r, "reward_noise"), "train.reward_noise", r->err);
  if (r->status != GL_OK) return r->status;
  out->flip = field_real(&noise, "flip");
  if (cfg_end(&noise) != GL_OK) r->status = noise.status;
  return r->status;
}

static double reward_uniform(uint64_t seed, rng_purpose purpose, uint64_t entity, uint64_t index) {
  const rng_words w = rng_block(rng_stream_at(seed, purpose, entity), index);
  return rng_u01_53(w.v[0], w.v[1]);
}

double training_reward_of(const training_reward *t, uint64_t seed, uint64_t id, size_t i,
                          uint64_t prompt, double reward) {
  if (t->unsolvable > 0 && reward_uniform(seed, RNG_UNSOLVABLE, prompt, 0) < t->unsolvable)
    return 0;
  if (t->flip > 0 && reward_uniform(seed, RNG_FLIP, id, i) < t->flip) return 1 - reward;
  return reward;
}
