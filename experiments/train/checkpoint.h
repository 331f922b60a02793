/* One checkpoint: a run between two updates, as a file.
 *
 * What the recipe determines is not in it: the schedule and every draw are computed again. In
 * native byte order, for the machine that wrote it: a head with all counts, the recipe's canonical
 * text, the records of updates and evaluations, response lengths (coupled runs), batches waiting
 * for their update, the learner's own state; then the number of bytes before and a checksum of all
 * before that. The head has the number of this form and a fingerprint of what the records hold,
 * which changes by itself with the list of metrics: a file of another is refused, and so is one of
 * another version of gepolab. Another build of the same version goes on, with a note.
 * checkpoint_folder.h knows which files there are. Prefix: checkpoint_. */
#ifndef GEPOLAB_EXPERIMENTS_TRAIN_CHECKPOINT_H
#define GEPOLAB_EXPERIMENTS_TRAIN_CHECKPOINT_H

#include "core/base/error.h"
#include "core/rl/batch.h"
#include "core/rl/learner.h"
#include "core/store/store.h"
#include "experiments/train/fates.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A batch that is drawn, or partly drawn, and not trained yet. */
typedef struct checkpoint_batch {
  uint64_t number; /* its place in the schedule, or in a coupled run the order of its begin */
  batch drawn;
} checkpoint_batch;

enum { CHECKPOINT_VERSION_SIZE = 32 };

typedef struct checkpoint {
  char *recipe; /* canonical text of the run's recipe */
  char code_version[CHECKPOINT_VERSION_SIZE];
  uint64_t build;     /* build_number() of the program that wrote it; 0: not known */
  step_record *steps; /* [n_steps]: as many as updates are made */
  size_t n_steps;
  eval_record *evals; /* [n_evals] */
  size_t n_evals;
  set_eval_record *set_evals; /* [n_set_evals] of recipes with evaluation sets */
  size_t n_set_evals;
  uint64_t broken; /* updates in a row without a number, up to the last */
  double wall_s;   /* spent so far */
  /* Coupled runs, else 0: of all batches begun, in order, the lengths of their responses, those of
   * batches that go on with other weights where they do; with dynamic sampling before those the
   * number of rounds and behind them the lengths of each. */
  uint32_t *lengths; /* [n_lengths] */
  size_t n_lengths;  /* without dynamic sampling begun * responses */
  size_t begun, responses;
  response_fate *fates; /* [n_fates] coupled runs: of all responses that have one so far */
  size_t n_fates;
  checkpoint_batch *batches; /* [n_batches] */
  size_t n_batches;
} checkpoint;

/* Frees what checkpoint_read() made. */
void checkpoint_fini(checkpoint *c);

/* Writes the whole file; arrays are borrowed, code_version is this program's. Errors name no
 * path; errno of the first failed write is in *reason (0 where it was not the disk). */
gl_status checkpoint_write(const checkpoint *c, const learner *l, FILE *to, int *reason,
                           gl_error *err);

/* Whether the stream, which must be one that can be sought, is from its beginning a file that
 * checkpoint_write() ended, this one or one of earlier versions. GL_EINPUT saying what is wrong
 * where it is cut short or changed; the stream stands at its beginning afterwards. */
gl_status checkpoint_verify(FILE *from, gl_error *err);

/* Reads all but the learner's state, at which the stream then stands. Any bytes are safe to read,
 * verified or not: GL_EINPUT for what no gepolab of this version writes, GL_EIO, GL_ENOMEM; *c is
 * empty then. Release with checkpoint_fini(). */
gl_status checkpoint_read(checkpoint *c, FILE *from, gl_error *err);

#endif
