/* Dynamic sampling (DAPO, arXiv 2503.14476, equation 11; verl's algorithm.filter_groups). A group
 * whose responses all have the same reward has zero advantages. The sampler drops such groups and
 * continues sampling until its batch is full of groups with different rewards.
 *
 * Groups are sampled in rounds of `groups`, verl's generation batches. One id samples groups 0, 1,
 * 2, … of that id whatever the size of rounds: the first round begins with the batch that would be
 * sampled without the filter, and no group depends on earlier ones. The batch takes the first
 * groups with different rewards in the order of sampling and drops the surplus of the last round,
 * as verl does. Prefix: group_filter_. */
#ifndef GEPOLAB_CORE_RL_GROUP_FILTER_H
#define GEPOLAB_CORE_RL_GROUP_FILTER_H

#include "core/rl/learner.h"

/* What to do if the batch is not full after the last round. */
typedef enum filter_end {
  FILTER_FILL, /* fill the batch with the first groups of equal rewards */
  FILTER_FAIL  /* fail, as verl does */
} filter_end;

typedef struct group_filter {
  int is_on;
  size_t most;   /* maximum number of rounds per batch: verl's max_num_gen_batches */
  size_t groups; /* groups per round: verl's gen_batch_size */
  filter_end exhausted;
} group_filter;

/* Reads the key `filter_groups: {enable, max_num_gen_batches, gen_batch_size, exhausted}` of the
 * section at r. A round has batch_groups groups by default. Errors: GL_EINPUT if `enable` is
 * missing or, with an enabled filter, if groups have one response, all rounds together have fewer
 * groups than a batch, or there are more responses than an id can address. */
gl_status group_filter_read(group_filter *out, cfg_reader *r, size_t batch_groups,
                            size_t group_size);

/* The maximum number of groups sampled together for a batch of batch_groups groups. */
size_t group_filter_largest(const group_filter *f, size_t batch_groups);

/* All that was sampled for a batch, including dropped groups. */
typedef struct group_rounds {
  size_t n;          /* number of rounds */
  size_t responses;  /* responses per round */
  uint32_t *lengths; /* [n * responses] lengths in tokens, round by round; owned */
} group_rounds;
void group_rounds_fini(group_rounds *r);

/* Samples a whole batch (the request must have from 0 and to 1) and keeps the groups that the
 * filter selects. The filter must be enabled and *b empty. Errors: GL_ENUMERIC if the rounds are
 * exhausted and the filter is set to fail; otherwise those of the learner. */
gl_status group_filter_draw(const group_filter *f, const learner *l, const draw_request *request,
                            batch *b, group_rounds *rounds, gl_error *err);

#endif
