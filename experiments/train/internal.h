/* What the two forms of the training loop share: train.c runs either, loop.c has an
 * update and follows a schedule, coupled.c runs with the clock. Inside experiments/ only. */
#ifndef GEPOLAB_EXPERIMENTS_TRAIN_INTERNAL_H
#define GEPOLAB_EXPERIMENTS_TRAIN_INTERNAL_H

#include "experiments/train/checkpoint.h"
#include "experiments/train/train.h"
#include "sim/schedule.h"

typedef struct train_loop {
  const recipe *recipe;
  const train_options *options;
  const cluster_spec *cluster;
  learner learner;
  run_result *out;
  size_t broken;             /* updates in a row without a number */
  checkpoint_folder *folder; /* NULL: no checkpoints */
  size_t saved;              /* updates in the newest checkpoint */
  double saved_s, begun_s;   /* wall-clock times */
  double earlier_s;          /* spent before this start */
  gl_error *err;
} train_loop;

/* Runs from c->n_steps updates, whose records are in the result already, and takes the batches of
 * *c, which is what was loaded. */
gl_status train_replay(train_loop *l, checkpoint *c);

/* The same with a clock that is coupled to the learner. */
gl_status train_coupled(train_loop *l, checkpoint *c);

/* Clock and staleness of a finished schedule into the result. */
void train_take_clock(train_loop *l, const schedule *s);
/* Puts the batches of an update's units, of which units[n] says which they are, in the order of a
 * learner: where units are parts of groups, those of a group stand together and are one group of
 * the update, the groups in the order of their first unit and in them responses by their number. */
void train_assemble(const train_loop *l, const schedule_batch *units, batch **batches, size_t n);
/* The parts that the learner's evaluation has; *n is 0 where it has one score. */
const evaluation_part *train_parts(const train_loop *l, size_t *n);
/* One update of the learner on u's batches, and its record. */
gl_status train_update(train_loop *l, const schedule_update *u, uint32_t sampler, batch **batches);
/* An evaluation, if one is due after so many updates (0 and the last are always), and its record.
 */
gl_status train_evaluate(train_loop *l, size_t updates, double time_s);

/* After an update and its evaluation: asks the caller whether to go on and says whether a
 * checkpoint is to be written now. */
typedef enum train_pause { TRAIN_ON = 0, TRAIN_SAVE = 1, TRAIN_STOP = 2 } train_pause;
int train_pauses(train_loop *l);
/* Writes a checkpoint of the records so far and of what *c says of batches and lengths. */
gl_status train_save(train_loop *l, checkpoint *c);
/* GL_EINPUT: the checkpoint is not of the clock that the recipe gives now. */
gl_status train_misfit(train_loop *l);
/* GL_EINTERRUPTED, saying how far the run came. */
gl_status train_stopped(train_loop *l);

/* --- fates (coupled.c) --- */
/* What became of every response that the samplers of a coupled run drew, and which they were. This
 * shows whether dropped ones have other lengths, prompts or rewards than those that
 * are trained. */

typedef struct fates_log {
  response_fate *all; /* [n] owned */
  size_t n, capacity;
} fates_log;

void fates_fini(fates_log *l);
/* Adds the responses of a batch that is complete, with their rewards. */
void fates_add(fates_log *l, const batch *b, unit_fate fate);
/* The responses counted by fate, quarter of prompts and length: *n records in the order of these,
 * to be freed. Prompts are sorted by the mean reward of all their responses in the log, equal ones
 * by their number, and split into quarters of about equal size. */
fate_record *fates_count(const fates_log *l, size_t *n);

#endif
