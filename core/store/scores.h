/* Scores of tuning runs, kept apart from the study's own runs: a restarted sweep does not repeat
 * them, and no table or figure mistakes them for results.
 */
#ifndef GEPOLAB_CORE_STORE_SCORES_H
#define GEPOLAB_CORE_STORE_SCORES_H

#include "core/store/store.h"

/* Keeps the score of the run with that key and canonical recipe, replacing an older one. */
gl_status store_put_score(store *s, const char *key, const char *recipe, double score,
                          gl_error *err);
/* 1 with *score set if there is one; 0 otherwise, *score untouched. */
int store_get_score(store *s, const char *key, const char *recipe, double *score);

#endif
