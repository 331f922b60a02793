/* The settings of trainers that give a published algorithm. */
#ifndef GEPOLAB_CORE_POLICY_TRAINER_SETTINGS_H
#define GEPOLAB_CORE_POLICY_TRAINER_SETTINGS_H

#include <stddef.h>

typedef enum policy_trainer {
  TRAINER_TRL,
  TRAINER_VERL,
  TRAINER_AREAL,
  TRAINER_PRIME_RL,
  TRAINER_SLIME,
  TRAINER_NEMO_RL,
  TRAINER_SKYRL,
  TRAINER_ROLL,
  TRAINER_OPENRLHF,
  TRAINER_COUNT
} policy_trainer;

typedef struct policy_trainer_info {
  const char *name, *word; /* the name shown, and the word for it on a command line */
  const char *code;        /* two letters, for the head of a column */
  const char *version;     /* the commit that was read, and the release that tests run */
} policy_trainer_info;
const policy_trainer_info *policy_trainer_about(policy_trainer trainer);

/* How a setting is known: the trainer's loss was run and compared, by python/tests for TRL and verl
 * and by tests/golden/methods_agreement.py for others, or it was read. */
typedef enum policy_setting_basis { SETTING_READ, SETTING_RUN } policy_setting_basis;

typedef struct policy_setting {
  const char *algorithm; /* a published algorithm's name */
  policy_trainer trainer;
  const char *setting; /* the trainer's switches as name=value; text in brackets is no switch */
  const char *differs; /* what the trainer's code does differently from the published algorithm;
                            "" if nothing was found */
  const char *place;   /* file:line at the trainer's version */
  policy_setting_basis basis;
} policy_setting;

/* All settings, in the order of the algorithms. */
size_t policy_settings_count(void);
const policy_setting *policy_settings_at(size_t i);
/* NULL: the trainer has no such setting. */
const policy_setting *policy_settings_find(const char *algorithm, policy_trainer trainer);
/* The setting's text, or "none". */
const char *policy_setting_text(const char *algorithm, policy_trainer trainer);

#endif
