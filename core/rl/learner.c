/* Code shared by all learners: checks of setups and sampling requests, minibatches, staleness,
 * training rewards and dynamic sampling. */
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

/* Writes the number of tokens of each group, over all batches, to tokens[]. */
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
  double gaps = 0, largest = 0, tokens = 0;
  for (size_t b = 0; b < n; ++b) {
    for (size_t t = 0; t < batches[b]->n_tokens; ++t) {
      const double gap = (double)(version - batches[b]->version[t]);
      gaps += gap;
      largest = fmax(largest, gap);
    }
    tokens += (double)batches[b]->n_tokens;
  }
  double before = tokens * (epochs * (epochs - 1) / 2); /* if one update trains all groups */
  gl_status status = GL_OK;
  if (p->minibatches > 1) status = updates_before(&before, p, batches, n, version, err);
  value[METRIC_STALENESS] = gaps / tokens;
  value[METRIC_STALENESS_MAX] = largest;
  value[METRIC_STALENESS_WITHIN] = before / (epochs * tokens);
  value[METRIC_STALENESS_UPDATES] = (updates * epochs * gaps + before) / (epochs * tokens);
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

/* --- dynamic sampling --- */

enum { MOST_RESPONSES = 1 << 28 }; /* as many as rng_token_index() can address */

/* --- reading --- */

static gl_status group_filter_check(const group_filter *f, const cfg_node *section,
                                    size_t batch_groups, size_t group_size, gl_error *err) {
  if (section != NULL && cfg_find(section, "enable") == NULL)
    return cfg_fail(section, err,
                    "train.filter_groups must say whether it filters: enable: true or enable: "
                    "false");
  if (!f->is_on) return GL_OK;
  if (group_size == 1)
    return cfg_fail(section, err,
                    "train.filter_groups leaves out groups whose rewards are equal, and a group of "
                    "one response has nothing to differ from; give train.group_size 2 or more, or "
                    "leave filter_groups away");
  if (f->groups > MOST_RESPONSES / group_size / f->most)
    return cfg_fail(section, err,
                    "train.filter_groups: %zu generation batches of %zu groups of %zu are more "
                    "than the %d responses that a batch can address; take_groups fewer",
                    f->most, f->groups, group_size, MOST_RESPONSES);
  if (f->groups * f->most < batch_groups)
    return cfg_fail(section, err,
                    "train.filter_groups draws at most %zu x %zu groups, and a batch takes %zu; "
                    "raise max_num_gen_batches or gen_batch_size",
                    f->most, f->groups, batch_groups);
  return GL_OK;
}

gl_status group_filter_read(group_filter *out, cfg_reader *outer, size_t batch_groups,
                            size_t group_size) {
  cfg_reader r;
  const cfg_node *section = cfg_child(outer, "filter_groups");
  cfg_begin(&r, section, "train.filter_groups", outer->err);
  if (outer->status != GL_OK) return outer->status;
  out->is_on = field_flag(&r, "enable");
  out->most = field_count(&r, "max_num_gen_batches");
  out->groups = field_count_or(&r, "gen_batch_size", batch_groups);
  out->exhausted = (filter_end)field_choice(&r, "exhausted");
  gl_status status = cfg_end(&r);
  if (status == GL_OK)
    status = group_filter_check(out, section, batch_groups, group_size, outer->err);
  if (status != GL_OK) outer->status = status;
  return status;
}

size_t group_filter_largest(const group_filter *f, size_t batch_groups) {
  return f->is_on && f->groups > batch_groups ? f->groups : batch_groups;
}

/* --- sampling --- */

void group_rounds_fini(group_rounds *r) {
  free(r->lengths);
  *r = (group_rounds){0};
}

typedef struct drawing {
  const group_filter *filter;
  const draw_request *request;
  batch *drawn; /* [filter->most] one batch per round */
  batch_group
      *taken; /* [request->n_groups], n_taken used: groups whose rewards differ, then others */
  size_t n_taken;
  group_rounds *rounds;
} drawing;

static gl_status note_lengths(drawing *d, const batch *b, gl_error *err) {
  group_rounds *r = d->rounds;
  uint32_t *more = realloc(r->lengths, (r->n + 1) * r->responses * sizeof *more);
  if (more == NULL) return gl_fail_memory(err, "the rounds of a batch");
  r->lengths = more;
  more += r->n++ * r->responses;
  for (size_t i = 0; i < r->responses; ++i)
    more[i] = (uint32_t)(b->token_start[i + 1] - b->token_start[i]);
  return GL_OK;
}

/* Takes the groups of a round whose rewards differ (differ = 1), or are equal (differ = 0), until
 * the batch is full. */
static void take_groups(drawing *d, const batch *round, int differ) {
  for (size_t g = 0; g < round->n_groups && d->n_taken < d->request->n_groups; ++g)
    if (batch_rewards_differ(round, g) == differ) d->taken[d->n_taken++] = (batch_group){round, g};
}

static gl_status draw_round(drawing *d, const learner *l, gl_error *err) {
  const size_t round = d->rounds->n;
  draw_request r = *d->request;
  r.first_group = round * d->filter->groups;
  r.n_groups = d->filter->groups;
  gl_status status = l->ops->draw(l->self, &r, &d->drawn[round], err);
  if (status == GL_OK) status = note_lengths(d, &d->drawn[round], err);
  if (status == GL_OK) take_groups(d, &d->drawn[round], 1);
  return status;
}

static gl_status end_early(drawing *d, gl_error *err) {
  switch (d->filter->exhausted) {
  case FILTER_FILL:
    for (size_t k = 0; k < d->rounds->n; ++k) take_groups(d, &d->drawn[k], 0);
    break;
  case FILTER_FAIL:
    return gl_fail(
        err, GL_ENUMERIC,
        "only %zu of %zu groups sampled from version %lld have rewards that differ, and a "
        "batch takes %zu: the problems may be too easy or too hard by now. Raise "
        "train.filter_groups.max_num_gen_batches (%zu), or give it exhausted: fill",
        d->n_taken, d->rounds->n * d->filter->groups, (long long)d->request->version,
        d->request->n_groups, d->filter->most);
  }
  assert(d->n_taken == d->request->n_groups); /* ensured by group_filter_read() */
  return GL_OK;
}

gl_status group_filter_draw(const group_filter *f, const learner *l, const draw_request *request,
                            batch *b, group_rounds *rounds, gl_error *err) {
  drawing d = {.filter = f, .request = request, .rounds = rounds};
  *rounds = (group_rounds){.responses = f->groups * request->group_size};
  d.drawn = calloc(f->most, sizeof *d.drawn);
  d.taken = calloc(request->n_groups, sizeof *d.taken);
  gl_status status =
      d.drawn != NULL && d.taken != NULL ? GL_OK : gl_fail_memory(err, "the rounds of a batch");
  while (status == GL_OK && rounds->n < f->most && d.n_taken < request->n_groups)
    status = draw_round(&d, l, err);
  if (status == GL_OK && d.n_taken < request->n_groups) status = end_early(&d, err);
  if (status == GL_OK) status = l->ops->join(l->self, b, d.taken, request->n_groups, err);
  for (size_t k = 0; d.drawn != NULL && k < f->most; ++k) batch_fini(&d.drawn[k]);
  free(d.drawn);
  free(d.taken);
  if (status != GL_OK) group_rounds_fini(rounds);
  return status;
}
