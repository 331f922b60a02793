/* Converts a trainer's loss options (loss_mode=gspo, ...) to the gepolab algorithm with the same
 * loss. */
#ifndef GEPOLAB_EXPERIMENTS_POLICY_TRAINER_OPTIONS_H
#define GEPOLAB_EXPERIMENTS_POLICY_TRAINER_OPTIONS_H

#include "core/policy/algorithm.h"
#include "core/policy/trainer_settings.h"

#include <stddef.h>

enum { TRAINER_NOTES_MOST = 16 };
typedef struct trainer_reading {
  policy_algorithm algorithm; /* its name: that of the published algorithm, or the nearest one with
                                 the fields that differ */
  int is_published;           /* all fields are those of the published algorithm */
  size_t n_notes;
  const char *notes[TRAINER_NOTES_MOST]; /* warnings, and effects of switches that no gepolab
                                            algorithm has; static texts */
} trainer_reading;

/* Whether trainer_read() knows the trainer's switches. */
int trainer_is_readable(policy_trainer trainer);

/* Starts from the trainer's defaults and applies switches such as "loss_mode=gspo". Of a dotted
 * name only the last parts count. Errors: GL_EINPUT for a switch or a value that is not known, with
 * the nearest one; for combinations that no algorithm can have. */
gl_status trainer_read(trainer_reading *out, policy_trainer trainer, const char *const *switches,
                       size_t n, gl_error *err);
/* The same for switches in one text, with blanks between them and words in brackets left out, such
 * as the `setting` of a policy_setting. Errors: those of trainer_read(); GL_EINPUT without a
 * switch. */
gl_status trainer_read_text(trainer_reading *out, policy_trainer trainer, const char *text,
                            gl_error *err);
/* The same for the switches in a trainer's configuration file in YAML; other keys of the file are
 * ignored. */
gl_status trainer_read_file(trainer_reading *out, policy_trainer trainer, const char *path,
                            gl_error *err);

#endif
