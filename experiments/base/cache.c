/* Finds the cache folder of this user, and names this build inside it. */
#include "experiments/base/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* A path that does not fit is none. */
static void cache_set(cache_place *place, const char *base, const char *rest) {
  int n = snprintf(place->folder, sizeof place->folder, "%s%s", base, rest);
  if (n < 0 || (size_t)n >= sizeof place->folder) place->folder[0] = '\0';
}

const cache_place *cache_find(cache_place *place) {
  const char *own = getenv("GEPOLAB_CACHE"), *cache = getenv("XDG_CACHE_HOME"),
             *home = getenv("HOME");
  struct stat s = {0};
  place->folder[0] = '\0';
  if (own != NULL)
    cache_set(place, own, "");
  else if (cache != NULL && cache[0] == '/')
    cache_set(place, cache, "/gepolab");
  else if (home != NULL && home[0] == '/')
    cache_set(place, home, "/.cache/gepolab");
  /* Two builds of one version may round differently, so the program's own file is part of it. */
  (void)stat("/proc/self/exe", &s);
  snprintf(place->code, sizeof place->code, "%.32s %lld %lld.%09ld", GEPOLAB_VERSION,
           (long long)s.st_size, (long long)s.st_mtim.tv_sec, (long)s.st_mtim.tv_nsec);
  return place;
}
