/* What all learners share: checks of a setup and of a draw, and the shuffle of minibatches. */
#include "core/rl/learner.h"

#include "core/random/rng.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* The key of a section, or the section, whichever is there. */
static const cfg_node *place(const cfg_node *section, const char *key) {
  const cfg_node *node = section != NULL ? cfg_find(section, key) : NULL;
  return node != NULL ? node : section;
}

gl_status learner_setup_check(const learner_setup *s, gl_error *err) {
  if (s->minibatches < 1 || s->epochs < 1 || s->n_groups < 1 || s->group_size < 1)
    return cfg_fail(s->train, err,
                    "train.groups, group_size, minibatches and epochs must each be 1 or more");
  gl_error why = {.status = GL_OK};
  if (policy_algorithm_check_group_size(s->algorithm, s->group_size, &why) != GL_OK)
    return cfg_fail(place(s->train, "group_size"), err, "%s", why.text);
  if (s->minibatches <= s->n_groups) return GL_OK;
  return cfg_fail(place(s->train, "minibatches"), err,
                  "train.minibatches is %zu, but a batch has only %zu groups to split; use fewer "
                  "minibatches or more groups",
                  s->minibatches, s->n_groups);
}

gl_status draw_request_check(const draw_request *r, const batch *b, size_t longest, gl_error *err) {
  if (!(r->from >= 0 && r->from < r->to && r->to <= 1) || r->n_groups == 0 || r->group_size == 0)
    return gl_fail(err, GL_EINTERNAL, "a draw of [%g, %g) of %zu groups of %zu", r->from, r->to,
                   r->n_groups, r->group_size);
  if (r->group_size > ((size_t)1 << 28) / r->n_groups)
    return gl_fail(err, GL_EINPUT, "%zu groups of %zu responses are more than a batch can address",
                   r->n_groups, r->group_size);
  if (r->from > 0 &&
      (b->id != r->batch_id || b->n_groups != r->n_groups ||
       b->n_responses != r->n_groups * r->group_size || b->n_tokens != b->n_responses * longest))
    return gl_fail(err, GL_EINTERNAL, "a draw that continues another batch than it began");
  return GL_OK;
}

size_t draw_boundary(double fraction, size_t longest) {
  return (size_t)ceil(fraction * (double)longest);
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

/* Tokens and summed version gaps of every group of a step's batches, in the order in which the
 * learner numbers them. */
typedef struct group_ages {
  size_t n;
  size_t *order;         /* [n] */
  double *tokens, *gaps; /* [n] */
} group_ages;

static gl_status group_ages_init(group_ages *a, batch *const *batches, size_t n, int64_t version,
                                 gl_error *err) {
  *a = (group_ages){0};
  for (size_t j = 0; j < n; ++j) a->n += batches[j]->n_groups;
  a->order = calloc(a->n + 1, sizeof *a->order);
  a->tokens = calloc(a->n + 1, sizeof *a->tokens);
  a->gaps = calloc(a->n + 1, sizeof *a->gaps);
  if (a->order == NULL || a->tokens == NULL || a->gaps == NULL)
    return gl_fail_memory(err, "the staleness of a step");
  for (size_t j = 0, at = 0; j < n; ++j) {
    const batch *b = batches[j];
    for (size_t g = 0; g < b->n_groups; ++g, ++at) {
      const size_t end = b->token_start[b->group_start[g + 1]];
      for (size_t k = b->token_start[b->group_start[g]]; k < end; ++k) {
        a->tokens[at] += 1;
        a->gaps[at] += (double)(version - b->version[k]);
      }
    }
  }
  return GL_OK;
}

static void group_ages_fini(group_ages *a) {
  free(a->order);
  free(a->tokens);
  free(a->gaps);
}

gl_status learner_staleness_updates(const learner_passes *p, batch *const *batches, size_t n,
                                    int64_t version, double *mean, gl_error *err) {
  assert(p->minibatches >= 1 && p->epochs >= 1);
  const double of_version = (double)(p->minibatches * p->epochs);
  group_ages a;
  gl_status status = group_ages_init(&a, batches, n, version, err);
  double sum = 0, tokens = 0;
  for (size_t epoch = 0; epoch < p->epochs && status == GL_OK; ++epoch) {
    for (size_t g = 0; g < a.n; ++g) a.order[g] = g;
    if (p->minibatches > 1) learner_shuffle(a.order, a.n, p->seed, version, epoch);
    for (size_t m = 0; m < p->minibatches; ++m) {
      const size_t end = learner_minibatch(m + 1, p->minibatches, a.n);
      const double before = (double)(epoch * p->minibatches + m);
      for (size_t i = learner_minibatch(m, p->minibatches, a.n); i < end; ++i) {
        sum += of_version * a.gaps[a.order[i]] + before * a.tokens[a.order[i]];
        tokens += a.tokens[a.order[i]];
      }
    }
  }
  *mean = sum / tokens;
  group_ages_fini(&a);
  return status;
}
