/* What identifies this build of the program, and where it keeps what can be computed again. */
#ifndef GEPOLAB_EXPERIMENTS_BASE_BUILD_H
#define GEPOLAB_EXPERIMENTS_BASE_BUILD_H

#include <stdint.h>

/* --- the build identifier, read from the linker's note in our own memory --- */

/* A hash of the build identifier that the linker put into the program (--build-id), which differs
 * between programs of different code or data and is the same for every copy of one. 0 where the
 * program carries none. */
uint64_t build_number(void);

/* --- the cache folder --- */

/* The folder where learners keep between runs what can be computed again (such as the weights after
 * a supervised warm-up), and the name of this build, under which they keep it. */

typedef struct cache_place {
  char folder[4096]; /* empty: nothing is kept */
  char code[96];     /* the build's name: version and build number */
} cache_place;

/* $GEPOLAB_CACHE (empty: nothing is kept), else gepolab in $XDG_CACHE_HOME, else in ~/.cache.
 * Returns place. */
const cache_place *cache_find(cache_place *place);

#endif
