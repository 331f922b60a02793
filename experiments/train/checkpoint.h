/* One checkpoint: a run between two updates, as a file.
 *
 * What the recipe determines is not in it: the schedule and every draw are computed again. In
 * native byte order, for the machine that wrote it: a head with all counts, the recipe's canonical
 * text, the records of updates and evaluations, response lengths (coupled runs), batches waiting
 * for their update, the learner's own state; then the number of bytes before and a checksum of all
 * before that. The head has the number of this form and a fingerprint of what the records hold,
 * which changes by itself with the list of metrics: a file of another is refused, and so is one of
 * another version of gepolab. Another build of the same version resumes it, with a note.
 * Prefix: checkpoint_. */
#ifndef GEPOLAB_EXPERIMENTS_TRAIN_CHECKPOINT_H
#define GEPOLAB_EXPERIMENTS_TRAIN_CHECKPOINT_H

#include "core/base/error.h"
#include "core/rl/batch.h"
#include "core/rl/learner.h"
#include "core/store/store.h"
#include "sim/schedule.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* One response of a coupled run and what became of it. Of 24 bytes without holes, as checkpoints
 * have it. */
typedef struct response_fate {
  int64_t prompt;
  double reward;
  uint32_t tokens, fate; /* a unit_fate */
} response_fate;

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
 * where it is cut short or changed; the stream is at its beginning afterwards. */
gl_status checkpoint_verify(FILE *from, gl_error *err);

/* Reads all but the learner's state, at which the stream then stands. Any bytes are safe to read,
 * verified or not: GL_EINPUT for what no gepolab of this version writes, GL_EIO; *c is empty then.
 * Release with checkpoint_fini(). */
gl_status checkpoint_read(checkpoint *c, FILE *from, gl_error *err);

/* --- the folder of a run's checkpoints --- */
/* The folder of one run's checkpoints: update-000000000120.checkpoint is the run after 120 updates.
 * Each file appears whole or not at all; the last few are kept, so that a damaged one costs the
 * updates since the one before. What the learner keeps of its preparation (core/rl/learner.h) is
 * there too. Nothing else in the folder is touched. While it is open no other process can open it
 * (a lock that the kernel drops with the process).  */

typedef struct checkpoint_folder checkpoint_folder;

/* Makes the folder, and those above it, where it is missing; refuses one that cannot be written.
 * recipe: the run's canonical text, copied. keep: files to keep, at least 1. */
gl_status checkpoint_folder_open(checkpoint_folder **out, const char *path, const char *recipe,
                                 size_t keep, gl_error *err);
void checkpoint_folder_close(checkpoint_folder *f);

/* The newest checkpoint that is whole: all but the learner's state in *c, and *state open and
 * standing at that, for learner_ops.load (the caller closes it). Damaged newer ones are named in
 * note, and that another build wrote it ("" if nothing is to be said). Without any checkpoint:
 * GL_OK and *state NULL. GL_EINPUT: the newest whole one belongs to another recipe or version of
 * gepolab; GL_EIO: all are damaged. Release *c with checkpoint_fini() in any case. */
enum { CHECKPOINT_NOTE_SIZE = 512 };
gl_status checkpoint_folder_find(checkpoint_folder *f, checkpoint *c, FILE **state,
                                 char note[CHECKPOINT_NOTE_SIZE], gl_error *err);
/* For who only looks, in a folder that need not be open: the update numbers of its checkpoints,
 * oldest first, on the heap; GL_EIO where it cannot be read. */
gl_status checkpoint_folder_list(const char *path, uint64_t **updates, size_t *n, gl_error *err);
/* One of them, whatever its recipe, as checkpoint_folder_find() gives it. The errors name the file.
 */
gl_status checkpoint_folder_look(const char *path, uint64_t updates, checkpoint *c, FILE **state,
                                 gl_error *err);
/* Writes a checkpoint after c->n_steps updates and then removes those beyond the number to keep. On
 * failure the ones before are untouched. c's recipe is set by this function. */
gl_status checkpoint_folder_save(checkpoint_folder *f, checkpoint *c, const learner *l,
                                 gl_error *err);

/* Removes the checkpoints in path, and what the learner kept, and path if nothing else is in it.
 * What cannot be removed stays: it does no harm. */
void checkpoint_folder_clear(const char *path);

#endif
