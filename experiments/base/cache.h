/* The folder where learners keep between runs what can be computed again (such as the weights after
 * a supervised warm-up), and the name of this build, under which they keep it. */
#ifndef GEPOLAB_EXPERIMENTS_BASE_CACHE_H
#define GEPOLAB_EXPERIMENTS_BASE_CACHE_H

typedef struct cache_place {
  char folder[4096]; /* empty: nothing is kept */
  char code[96];     /* the build's name: version and build number */
} cache_place;

/* $GEPOLAB_CACHE (empty: nothing is kept), else gepolab in $XDG_CACHE_HOME, else in ~/.cache.
 * Returns place. */
const cache_place *cache_find(cache_place *place);

#endif
