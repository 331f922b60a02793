/* Where programs keep what they can make again: the folder and the name of this build, for learners
 * that keep things between runs. */
#ifndef GEPOLAB_EXPERIMENTS_BASE_CACHE_H
#define GEPOLAB_EXPERIMENTS_BASE_CACHE_H

typedef struct cache_place {
  char folder[4096]; /* empty: nothing is kept */
  char code[96];     /* differs between builds of the program */
} cache_place;

/* $GEPOLAB_CACHE (empty: nothing is kept), else gepolab in $XDG_CACHE_HOME, else in ~/.cache.
 * Returns place. */
const cache_place *cache_find(cache_place *place);

#endif
