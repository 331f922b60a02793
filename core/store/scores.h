/* Scores of tuning runs, kept apart from the study's own runs: a restarted sweep does not repeat
 * them, and no table or figure mistakes them for results.
 */
#ifndef GEPOLAB_CORE_STORE_SCORES_H
#define GEPOLAB_CORE_STORE_SCORES_H

#include "core/store/store.h"

/* What a tuning run scored, and what it took, which changes no result. */
typedef struct score_record {
  const char *key, *recipe; /* of the run, as of run_record */
  double score;
  double wall_s;        /* NaN: not known */
  const char *finished; /* when, as of runs; NULL: not known */
} score_record;

/* Keeps it, replacing an older one of the key. */
gl_status store_put_score(store *s, const score_record *r, gl_error *err);
/* 1 with *score set if there is one; 0 otherwise, *score untouched. */
int store_get_score(store *s, const char *key, const char *recipe, double *score);

#endif
