/* The folder of one run's checkpoints: update-000000000120.checkpoint is the run after 120 updates.
 * Each file appears whole or not at all; the last few are kept, so that a damaged one costs the
 * updates since the one before. What the learner keeps of its preparation (core/rl/learner.h) is
 * there too. Nothing else in the folder is touched. While it is open no other process can open it
 * (a lock that the kernel drops with the process). Prefix: checkpoint_folder_.
 */
#ifndef GEPOLAB_EXPERIMENTS_TRAIN_CHECKPOINT_FOLDER_H
#define GEPOLAB_EXPERIMENTS_TRAIN_CHECKPOINT_FOLDER_H

#include "experiments/train/checkpoint.h"

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
