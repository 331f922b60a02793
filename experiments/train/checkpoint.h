/* One checkpoint: a file with the state of a run between two updates.
 *
 * State that the recipe determines is not stored: schedule and random numbers are recomputed. The
 * file is in native byte order, for the machine that wrote it: a head with all counts; the recipe's
 * canonical text; the records of updates and evaluations; response lengths (coupled runs); batches
 * waiting for their update; the learner's state; then the number of bytes before this point and a
 * checksum of everything before. The head has the format's number and a hash of the records'
 * layout, which changes when the list of metrics changes. A file with another layout, or of another
 * version of gepolab, is refused. Another build of the same version resumes it, with a note.
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

/* One response of a coupled run and its fate. 24 bytes without padding, as stored in checkpoints.
 */
typedef struct response_fate {
  int64_t prompt;
  double reward;
  uint32_t tokens, fate; /* a unit_fate */
} response_fate;

#define CHECKPOINT_REPLAY UINT64_MAX /* the number of the replay buffer */

/* A batch that is sampled, or partly sampled, and not yet trained; or the replay buffer. */
typedef struct checkpoint_batch {
  uint64_t number; /* index in the schedule; in a coupled run, order in which batches began; or
                      CHECKPOINT_REPLAY */
  batch drawn;
} checkpoint_batch;

enum { CHECKPOINT_VERSION_SIZE = 32 };

typedef struct checkpoint {
  char *recipe; /* canonical text of the run's recipe */
  char code_version[CHECKPOINT_VERSION_SIZE];
  uint64_t build;     /* build_number() of the program that wrote it; 0: unknown */
  step_record *steps; /* [n_steps], one per update made */
  size_t n_steps;
  eval_record *evals; /* [n_evals] */
  size_t n_evals;
  set_eval_record *set_evals; /* [n_set_evals], for recipes with evaluation sets */
  size_t n_set_evals;
  uint64_t broken; /* number of consecutive updates, ending with the last one, whose loss or
                      gradient norm was not finite */
  double wall_s;   /* wall-clock time so far */
  /* Coupled runs only, else 0: the response lengths of all batches begun, in order. A batch that
   * continues under new weights has new lengths at that point. With dynamic sampling a batch's
   * entry starts with the number of rounds and ends with the lengths of each round. */
  uint32_t *lengths; /* [n_lengths] */
  size_t n_lengths;  /* without dynamic sampling: begun * responses */
  size_t begun, responses;
  response_fate *fates; /* [n_fates] coupled runs: all responses with a known fate */
  size_t n_fates;
  checkpoint_batch *batches; /* [n_batches] */
  size_t n_batches;
} checkpoint;

/* Frees the memory of checkpoint_read(). */
void checkpoint_fini(checkpoint *c);

/* Writes the whole file. Arrays are borrowed; code_version is this program's. Error messages
 * contain no path. *reason: errno of the first failed write (0: not a write error). */
gl_status checkpoint_write(const checkpoint *c, const learner *l, FILE *to, int *reason,
                           gl_error *err);

/* Checks that the seekable stream is a complete file by checkpoint_write(), of this version or an
 * earlier one. Errors: GL_EINPUT (the message says whether it is cut short or changed), GL_EIO
 * (the stream cannot be read). The stream is rewound. */
gl_status checkpoint_verify(FILE *from, gl_error *err);

/* Reads everything up to the learner's state, where the stream is then positioned. Safe for any
 * bytes, verified or not. Release with checkpoint_fini(). Errors: GL_EINPUT (not a file of this
 * version of gepolab), GL_EIO; *c is empty then. */
gl_status checkpoint_read(checkpoint *c, FILE *from, gl_error *err);

/* --- the folder of a run's checkpoints --- */
/* The folder of one run's checkpoints: update-000000000120.checkpoint is the state after 120
 * updates. Each file is written atomically. The newest few are kept, so that a damaged one costs
 * only the updates since the one before. The learner's stored preparation (core/rl/learner.h) is in
 * the same folder. No other files are touched. An open folder is locked against other processes;
 * the kernel releases the lock when the process ends. */

typedef struct checkpoint_folder checkpoint_folder;

/* Opens the folder, and makes it and its parents if needed. Errors: one that is not writable.
 * recipe: the run's canonical text, copied. keep: number of files to keep, at least 1. */
gl_status checkpoint_folder_open(checkpoint_folder **out, const char *path, const char *recipe,
                                 size_t keep, gl_error *err);
void checkpoint_folder_close(checkpoint_folder *f);

/* Finds the newest intact checkpoint. *c receives everything except the learner's state. *state is
 * a stream positioned at that, for learner_ops.load (the caller closes it). note lists damaged
 * newer files, and reports if another build wrote the checkpoint ("": nothing to report). If there
 * is no checkpoint: GL_OK and *state NULL. Release *c with checkpoint_fini() in any case. Errors:
 * GL_EINPUT (the newest intact one is of another recipe or version of gepolab), GL_EIO (all are
 * damaged). */
enum { CHECKPOINT_NOTE_SIZE = 512 };
gl_status checkpoint_folder_find(checkpoint_folder *f, checkpoint *c, FILE **state,
                                 char note[CHECKPOINT_NOTE_SIZE], gl_error *err);
/* For read-only access, without opening the folder: the numbers of updates of its checkpoints,
 * ascending, malloc'd. Errors: GL_EIO. */
gl_status checkpoint_folder_list(const char *path, uint64_t **updates, size_t *n, gl_error *err);
/* Reads one of them, whatever its recipe, as checkpoint_folder_find() does. Error messages name the
 * file. */
gl_status checkpoint_folder_look(const char *path, uint64_t updates, checkpoint *c, FILE **state,
                                 gl_error *err);
/* Writes a checkpoint after c->n_steps updates, then removes those beyond the number to keep. After
 * an error the earlier ones are unchanged. This function sets c's recipe. */
gl_status checkpoint_folder_save(checkpoint_folder *f, checkpoint *c, const learner *l,
                                 gl_error *err);

/* Removes the checkpoints in path and the learner's stored preparation, and path if it is empty
 * then. Files that cannot be removed are left; they do no harm. */
void checkpoint_folder_clear(const char *path);

#endif
