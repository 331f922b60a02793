#include "core/rl/learner.h"

#include "core/random/rng.h"

#include <math.h>

/* The key of a section, or the section, whichever is there. */
static const cfg_node *place(const cfg_node *section, const char *key) {
  const cfg_node *node = section != NULL ? cfg_find(section, key) : NULL;
  return node != NULL ? node : section;
}

gl_status learner_setup_check(const learner_setup *s, gl_error *err) {
  if (s->minibatches < 1 || s->epochs < 1 || s->n_groups < 1 || s->group_size < 1)
    return cfg_fail(s->train, err,
                    "train.groups, group_size, minibatches and epochs must each be 1 or more");
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
