/* Dynamic sampling: reads `filter_groups`, and samples rounds of groups until a batch is full of
 * groups whose rewards differ. */
#include "core/rl/group_filter.h"

#include "core/config/fields.h"

#include <assert.h>
#include <stdlib.h>

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
                    "than the %d responses that a batch can address; take fewer",
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

/* The rounds are used up and the batch is not full: fills it with groups of equal rewards, or
 * fails. */
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
