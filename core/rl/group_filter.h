/* Dynamic sampling (DAPO, arXiv 2503.14476, equation 11; verl's algorithm.filter_groups): groups
 * whose responses all have the same reward have no advantage, so a sampler leaves them out and goes
 * on drawing until its batch is full of groups whose rewards differ.
 *
 * Groups are drawn in rounds of `groups`, verl's generation batches. What one id draws are the
 * groups 0, 1, 2, … of that id, whatever the rounds are: the first round is the batch that would
 * have been drawn without the filter, and no group depends on those before it. The batch takes the
 * first groups whose rewards differ, in the order of drawing; what a round has beyond that is left
 * out, as verl leaves it out. Prefix: group_filter_. */
#ifndef GEPOLAB_CORE_RL_GROUP_FILTER_H
#define GEPOLAB_CORE_RL_GROUP_FILTER_H

#include "core/rl/learner.h"

/* What happens when the last round is drawn and the batch is not full. */
typedef enum filter_end {
  FILTER_FILL, /* the first groups of equal rewards fill it up */
  FILTER_FAIL  /* the run fails, as verl's does */
} filter_end;

typedef struct group_filter {
  int is_on;
  size_t most;   /* rounds of a batch: verl's max_num_gen_batches */
  size_t groups; /* of a round: verl's gen_batch_size */
  filter_end exhausted;
} group_filter;

/* Reads the key `filter_groups: {enable, max_num_gen_batches, gen_batch_size, exhausted}` of the
 * section that r is at; a round has batch_groups by default. GL_EINPUT for a section that does not
 * say `enable`; and of a filter that is on for groups of one response, for fewer groups than a
 * batch has and for more responses than an id can address. */
gl_status group_filter_read(group_filter *out, cfg_reader *r, size_t batch_groups,
                            size_t group_size);

/* The most groups that are drawn together for a batch of so many. */
size_t group_filter_largest(const group_filter *f, size_t batch_groups);

/* What was drawn for a batch, left-out groups included. */
typedef struct group_rounds {
  size_t n;          /* rounds */
  size_t responses;  /* of a round */
  uint32_t *lengths; /* [n * responses] in tokens, round after round; owned */
} group_rounds;
void group_rounds_fini(group_rounds *r);

/* Draws a whole batch as the request says, which draws from 0 to 1, and keeps of it what the
 * filter, which is on, keeps. *b is empty before. GL_ENUMERIC where it is exhausted and fails;
 * errors are otherwise those of the learner. */
gl_status group_filter_draw(const group_filter *f, const learner *l, const draw_request *request,
                            batch *b, group_rounds *rounds, gl_error *err);

#endif
