/* The learner as a small table of functions. toy/ and llm/ implement it; the training loop in
 * experiments/ brings a learner and a schedule together and knows no more than this page.
 */
#ifndef GEPOLAB_CORE_RL_LEARNER_H
#define GEPOLAB_CORE_RL_LEARNER_H

#include "core/base/error.h"
#include "core/base/metrics.h"
#include "core/config/config.h"
#include "core/policy/algorithm.h"
#include "core/rl/batch.h"
#include "core/rl/evaluation.h"

#include <stdint.h>
#include <stdio.h>

/* What training sees of rewards: some prompts are never rewarded, some rewards are flipped. Scores
 * of evaluations stay what they are (paper/methods.md §12.5). */
typedef struct training_reward {
  double unsolvable; /* share of prompts whose responses all have reward 0 */
  double flip;       /* share of the other rewards r that become 1 - r; they must be in [0, 1] */
} training_reward;

/* Reads the keys `unsolvable` and `reward_noise: {flip}` of the section that r is at. */
gl_status training_reward_read(training_reward *out, cfg_reader *r);

/* The reward that training sees of response i of batch `id` to a prompt that the world knows as
 * `prompt`: a number that is the same whenever the prompt is. The same prompts are unsolvable in
 * the whole run; whether a reward is flipped is drawn for each response. */
double training_reward_of(const training_reward *t, uint64_t seed, uint64_t id, size_t i,
                          uint64_t prompt, double reward);

/* Token positions [from, to) of one response. */
typedef struct draw_span {
  size_t from, to;
} draw_span;

/* A request to draw tokens with the parameters of a version: the one the learner is at, or one that
 * it holds. A batch whose weights change in flight is drawn in several requests on the same batch:
 * the first has from = 0 and makes the batch; each draws, for every response, the token positions
 * in [from, to) as fractions of the longest response allowed. An ordinary batch has one: [0, 1). */
typedef struct draw_request {
  uint64_t batch_id; /* address: the same id under the same parameters draws the same tokens */
  int64_t version;
  size_t n_groups, group_size;
  double from, to;
  size_t first_group; /* the groups are those that a larger batch of this id has from there on, to
                         the last token: addresses count the groups before them; ordinarily 0 */
  /* Where every response changes its weights at a token of its own: what is drawn of each,
   * [n_groups * group_size], nothing where `from` and `to` are equal. What a response has at `from`
   * and behind it is drawn anew, and what it has before it must be there unless it has ended. The
   * fractions then only say whether the batch is made (from = 0) and whether this is all of it (to
   * = 1). NULL: all responses are drawn alike. */
  const draw_span *span;
  /* NULL, or [n_groups * group_size]: gets how many tokens each response has by now. */
  size_t *length;
  /* The responses are those that larger groups of this id have from there on: addresses count the
   * ones before them; ordinarily 0. */
  size_t first_response;
} draw_request;

/* Checks a request, and the batch that it continues: GL_EINTERNAL for one that cannot be, GL_EINPUT
 * for one too large. A batch under way has room for `longest` tokens in every response. */
gl_status draw_request_check(const draw_request *r, const batch *b, size_t longest, gl_error *err);
/* How many of `longest` token positions lie before that fraction of them: where the weights change
 * in a batch that is drawn from several versions. */
size_t draw_boundary(double fraction, size_t longest);

/* The number that response i of a draw has among those of its id, which is its address. */
size_t draw_number(const draw_request *r, size_t i);

/* order[0..n) = the groups 0 .. n - 1 of a step's batches, shuffled (Fisher and Yates) at the
 * address of the learner's version and the epoch. */
void learner_shuffle(size_t *order, size_t n, uint64_t seed, int64_t version, size_t epoch);

/* The groups of minibatch m are those in places learner_minibatch(m) .. learner_minibatch(m + 1) -
 * 1 of the order, of `groups` in all. */
size_t learner_minibatch(size_t m, size_t minibatches, size_t groups);

/* How one learner step divides and repeats its batches. */
typedef struct learner_passes {
  size_t minibatches, epochs;
  uint64_t seed; /* of the shuffles */
} learner_passes;
/* Sets the three metrics of staleness for a step on n batches that starts at `version`: mean and
 * largest gap between it and the versions that drew the tokens, and the mean age in optimiser
 * updates (paper/methods.md §5.1): a version is minibatches x epochs updates, and what the k-th
 * update of the step trains is k - 1 updates older than at the step's start. Means are over tokens,
 * that of updates over epochs too. GL_ENOMEM. */
gl_status learner_staleness(const learner_passes *passes, batch *const *batches, size_t n,
                            int64_t version, double value[METRIC_COUNT], gl_error *err);

typedef struct learner_ops {
  const char *kind;
  /* Draws (a part of) a batch; *b is zeroed before the first request. Rewards are set by the
   * request with to == 1. A version neither current nor held is GL_EINTERNAL. */
  gl_status (*draw)(void *self, const draw_request *request, batch *b, gl_error *err);
  /* Makes one batch of groups of batches that were drawn whole, under the same id and version; *b
   * is empty before. */
  gl_status (*join)(void *self, batch *b, const batch_group *group, size_t n, gl_error *err);
  /* Names the optional records that follow the columns of a batch that was read from a file
   * (batch_name_records()). GL_ENOMEM. */
  gl_status (*adopt)(const void *self, batch *b, gl_error *err);
  /* The most tokens of a response. */
  size_t (*longest)(const void *self);
  /* One learner step on n batches together: minibatches x epochs optimiser updates. Fills the
   * metrics it can know; the loop adds version and staleness. Increments the version by one. A
   * parameter that becomes non-finite is a result, not an error: metrics carry it. */
  gl_status (*update)(void *self, batch *const *batches, size_t n, double metrics[METRIC_COUNT],
                      gl_error *err);
  /* Evaluation score in [0,1] where the world defines one, without touching any training draw. */
  gl_status (*evaluate)(void *self, double *eval_score, gl_error *err);
  /* Optional, both or neither: evaluations of several parts, which are sets or halves of sets
   * (core/rl/evaluation_sets.h). parts gives their list, *n of them, which the learner owns; with
   * none it has the score above alone. evaluate_parts gives the score of each, score[n], NaN where
   * parameters have stopped being numbers; the first is what evaluate gives, to the last bit where
   * the first set changes nothing. */
  const evaluation_part *(*parts)(const void *self, size_t *n);
  gl_status (*evaluate_parts)(void *self, double *score, gl_error *err);
  /* Parameters, optimiser, version and the versions held: a learner made from the same setup that
   * loads them continues as the saved one would, bit for bit. save leaves the learner as it is.
   * Both use the stream from its present position and never seek: a checkpoint has other parts
   * around it. load refuses what does not fit or is damaged (GL_EINPUT) and leaves the learner as
   * it was then. */
  gl_status (*save)(void *self, FILE *to, gl_error *err);
  gl_status (*load)(void *self, FILE *from, gl_error *err);
  /* Optional, both or neither; a learner that has neither cannot be coupled to the clock
   * (cluster.coupled), where a sampler keeps sampling from an older version while the learner
   * trains. hold keeps the parameters as they are now, under the learner's version, for draw() and
   * save() until they are released; it is called before the update that leaves the version, at most
   * once for each. Drawing from a held version gives the tokens it would have given while it was
   * current. Optimiser state is not kept. release forgets a held version, at any time and in any
   * order; one that is not held is left alone. */
  gl_status (*hold)(void *self, gl_error *err);
  void (*release)(void *self, int64_t version);
  /* Optional: from now on, where a draw continues a response, its later tokens attend to the
   * keys and values that its earlier ones were drawn with, of whatever version these were; they are
   * part of the batch until it is complete. To be called before any draw. GL_EINPUT, saying why,
   * where this learner cannot. A learner that has it not has no keys and values. */
  gl_status (*keep_cache)(void *self, gl_error *err);
  void (*free)(void *self);
} learner_ops;

typedef struct learner {
  const learner_ops *ops;
  void *self;
} learner;

/* What a learner may do for long before its first update (a transformer's warm-up): how it is
 * watched and stopped, and where it is kept. */
typedef struct learner_preparation {
  /* Called after each of its steps; other than 0: it is kept as it is and construction is
   * GL_EINTERRUPTED. NULL: nobody looks. */
  int (*after_step)(void *self, uint64_t step, uint64_t steps, double loss);
  void *self;
  /* Where the run keeps its own things: what is done so far, and in the end what came out, so that
   * the same run started again continues from there, bit for bit. Files there begin with
   * LEARNER_KEEPS. NULL: nowhere. */
  const char *folder;
  uint64_t every; /* steps between two such files; 0: by time */
  double seconds;
} learner_preparation;
#define LEARNER_KEEPS "warmup-"

/* What a learner is made from; sections are borrowed during construction only. */
typedef struct learner_setup {
  uint64_t seed;
  const policy_algorithm *algorithm;
  const cfg_node *world;     /* never NULL */
  const cfg_node *optimizer; /* NULL: defaults */
  const cfg_node *sampling;  /* NULL: temperature 1, no truncation */
  size_t group_size, n_groups;
  size_t drawn_groups; /* the most that are drawn together; 0: n_groups */
  size_t minibatches, epochs;
  training_reward rewards; /* what training sees of them */
  double weight_noise;     /* variance of the factors of core/rl/update.h; 0: none */
  uint64_t updates;        /* how many learner steps the run will make, for decay schedules */
  /* Where the recipe says the numbers above and the algorithm, for the places of complaints; NULL:
   * it does not. */
  const cfg_node *train, *algorithm_at;
  size_t threads; /* to compute with; 0: all cores this process may use. Results never depend on
                     it */
  /* A folder where a learner may keep what it would otherwise compute again in the next run, and
   * the name of this build of the program, for what it keeps; NULL: nothing is kept. */
  const char *cache, *code;
  const learner_preparation *preparation; /* NULL: neither watched nor kept for this run */
} learner_setup;

/* GL_EINPUT at its place for a batch that cannot be divided as the setup says, or for groups of one
 * response where the algorithm compares responses. */
gl_status learner_setup_check(const learner_setup *setup, gl_error *err);

static inline void learner_fini(learner *l) {
  if (l->ops != NULL) l->ops->free(l->self);
  l->ops = NULL;
  l->self = NULL;
}

/* --- dynamic sampling --- */
/* Dynamic sampling (DAPO, arXiv 2503.14476, equation 11; verl's algorithm.filter_groups): groups
 * whose responses all have the same reward have no advantage, so a sampler leaves them out and goes
 * on drawing until its batch is full of groups whose rewards differ.
 *
 * Groups are drawn in rounds of `groups`, verl's generation batches. What one id draws are the
 * groups 0, 1, 2, … of that id, whatever the rounds are: the first round is the batch that would
 * have been drawn without the filter, and no group depends on those before it. The batch takes the
 * first groups whose rewards differ, in the order of drawing; what a round has beyond that is left
 * out, as verl leaves it out. Prefix: group_filter_. */

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
