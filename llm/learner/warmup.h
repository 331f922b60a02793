/* Where warmed parameters are kept between runs: one file for each different warm-up. Whatever goes
 * wrong there costs a warm-up and nothing else, so it is no error. And where a run that keeps
 * checkpoints keeps its own warm-up, unfinished too: what cannot be kept there is told. */
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
/* 1 and the parameters set if they are there and whole. */
int warmup_entry_read(const warmup_entry *e, llm_learner *l);
/* Writes the parameters as they are now into e's file, which appears whole or not at all. */
gl_status warmup_entry_save(const warmup_entry *e, const llm_learner *l, gl_error *err);
/* Keeps them in a cache, and removes what has not been used for longest
 * if the folder has become large; what alone would be too large is not kept. */
void warmup_entry_write(const warmup_entry *e, const llm_learner *l);

/* The same in a run's own folder, whatever the size; other warm-ups there and unfinished work are
 * removed. */
gl_status warmup_own_write(const warmup_entry *e, const llm_learner *l, gl_error *err);
/* 1, models and optimisers as they were and *steps made, if unfinished work is there and whole. */
int warmup_own_resume(const warmup_entry *e, llm_learner *l, size_t *steps);
/* Keeps unfinished work after so many steps. */
gl_status warmup_own_keep(const warmup_entry *e, const llm_learner *l, size_t steps, gl_error *err);

#endif
