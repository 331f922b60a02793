/* Shared by the two training loops: train.c runs either one, loop.c makes updates and follows a
 * schedule, coupled.c runs together with the clock. Only for code in experiments/. */
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
  size_t broken; /* number of consecutive updates, ending with the last one, with a loss or gradient
                    norm that is not finite */
  batch replay_buffer;       /* right responses (core/rl/replay.h) */
  checkpoint_folder *folder; /* NULL: no checkpoints */
  size_t saved;              /* updates in the newest checkpoint */
  double saved_s, begun_s;   /* wall-clock times */
  double earlier_s;          /* wall-clock time before this start of the program */
  gl_error *err;
} train_loop;

/* Runs from update c->n_steps on, whose records are in the result already. Takes ownership of the
 * batches of *c, the loaded checkpoint. */
gl_status train_follow(train_loop *l, checkpoint *c);

/* train_follow() with a clock coupled to the learner. */
gl_status train_coupled(train_loop *l, checkpoint *c);

/* Copies clock and staleness of a finished schedule into the result. */
void train_take_clock(train_loop *l, const schedule *s);
/* Arranges the batches of an update's units, units[n], in the learner's order. If units are parts
 * of groups, the parts of one group are adjacent and form one group of the update. Groups are
 * ordered by their first unit, and responses in them by number. */
void train_assemble(const train_loop *l, const schedule_batch *units, batch **batches, size_t n);
/* The parts of the learner's evaluation; *n is 0 if it has a single score. */
const evaluation_part *train_parts(const train_loop *l, size_t *n);
/* Makes one update of the learner on u's batches, and its record. */
gl_status train_update(train_loop *l, const schedule_update *u, uint32_t sampler, batch **batches);
/* Evaluates and makes a record if an evaluation is due after that many updates (always at 0 and at
 * the end). */
gl_status train_evaluate(train_loop *l, size_t updates, double time_s);

/* To be called after an update and its evaluation: asks the caller whether to continue. Returns
 * TRAIN_ON, or a sum of TRAIN_SAVE (a checkpoint is due) and TRAIN_STOP (the caller wants to stop;
 * TRAIN_SAVE is then set, too). */
enum { TRAIN_ON = 0, TRAIN_SAVE = 1, TRAIN_STOP = 2 };
int train_pauses(train_loop *l);
/* Writes a checkpoint of the records so far, with the batches and lengths in *c. May
 * append the replay buffer (borrowed) to the batches. */
gl_status train_save(train_loop *l, checkpoint *c);
/* Returns GL_EINPUT: the checkpoint does not match the clock of the present recipe. */
gl_status train_misfit(train_loop *l);
/* Returns GL_EINTERRUPTED with a message about the progress of the run. */
gl_status train_stopped(train_loop *l);

/* --- fates (coupled.c) --- */
/* The fate of every response that the samplers of a coupled run sampled. It shows whether dropped
 * responses differ from trained ones in length, prompt or reward. */

typedef struct fates_log {
  response_fate *all; /* [n] responses with a fate; owned */
  size_t n, capacity;
} fates_log;

void fates_fini(fates_log *l);
/* Adds the responses of a complete batch, with their rewards. */
void fates_add(fates_log *l, const batch *b, unit_fate fate);
/* Counts the responses by fate, quarter of prompts and length: *n records sorted by these keys; the
 * caller frees them. Prompts are sorted by the mean reward of all their responses in the log, ties
 * by number, and split into quarters of about equal size. */
fate_record *fates_count(const fates_log *l, size_t *n);

#endif
