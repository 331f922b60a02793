/* The parameters after a warm-up are kept in two places. A cache between runs has one file for each
 * different warm-up; a failure there is no error, for it only means warming up again. A run with
 * checkpoints keeps its own warm-up beside them, unfinished ones too; a failure there is returned.
 */
#ifndef GEPOLAB_LLM_LEARNER_WARMUP_H
#define GEPOLAB_LLM_LEARNER_WARMUP_H

#include "llm/learner/learner.h"

typedef struct warmup_entry {
  char *folder, *path; /* NULL: nothing is kept */
  char *key;           /* text of everything that determines the parameters */
} warmup_entry;

/* The place of this learner's warm-up in the folder; `code` names the program's build. */
void warmup_entry_init(warmup_entry *e, const llm_learner *l, const char *folder, const char *code);
void warmup_entry_fini(warmup_entry *e);
/* Reads the parameters: 1 if they are there and undamaged, else 0 and nothing is changed. */
int warmup_entry_read(const warmup_entry *e, llm_learner *l);
/* Writes the parameters as they are now into e's file, which appears whole or not at all. */
gl_status warmup_entry_save(const warmup_entry *e, const llm_learner *l, gl_error *err);
/* The same in a cache, from which the files that were not used for longest are removed where it has
 * become large. A file that alone is too large is not kept. */
void warmup_entry_write(const warmup_entry *e, const llm_learner *l);

/* The same in a run's own folder, whatever its size. Other warm-ups there are removed, and
 * unfinished ones. */
gl_status warmup_own_write(const warmup_entry *e, const llm_learner *l, gl_error *err);
/* Reads an unfinished warm-up: 1, with models, optimisers and *steps as they were, if it is there
 * and undamaged; else 0. */
int warmup_own_resume(const warmup_entry *e, llm_learner *l, size_t *steps);
/* Keeps an unfinished warm-up after that many steps. */
gl_status warmup_own_keep(const warmup_entry *e, const llm_learner *l, size_t steps, gl_error *err);

#endif
