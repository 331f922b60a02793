/* Where warmed parameters are kept between runs: one file for each different warm-up. Whatever goes
 * wrong here costs a warm-up and nothing else, so nothing here fails. */
#ifndef GEPOLAB_LLM_WARMUP_H
#define GEPOLAB_LLM_WARMUP_H

#include "llm/learner.h"

typedef struct warmup_entry {
  char *folder, *path; /* NULL: nothing is kept */
  char *key;           /* text of everything that determines the parameters */
} warmup_entry;

/* The place of this learner's warm-up below the cache folder; `code` names the program's build. */
void warmup_entry_init(warmup_entry *e, const llm_learner *l, const char *cache, const char *code);
void warmup_entry_fini(warmup_entry *e);
/* 1 and the parameters set if they are there and whole. */
int warmup_entry_read(const warmup_entry *e, llm_learner *l);
/* Keeps the parameters as they are now, and removes what has not been used for longest if the
 * folder has become large. */
void warmup_entry_write(const warmup_entry *e, const llm_learner *l);

#endif
