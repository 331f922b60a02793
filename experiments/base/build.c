/* What identifies this build of the program, and where it keeps what can be computed again. */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "experiments/base/build.h"

#include "core/base/hash.h"

#include <gen/version.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- the build identifier, read from the linker's note in our own memory --- */

/* Notes are a header, a name and what is noted, the latter two filled up to four bytes. */
static size_t filled(size_t n) {
  return (n + 3) & ~(size_t)3;
}

static uint64_t read_notes(const char *at, size_t size) {
  static const char owner[] = "GNU";
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) h;
    memcpy(&h, at, sizeof h);
    const size_t length = sizeof h + filled(h.n_namesz) + filled(h.n_descsz);
    if (length > size) return 0;
    if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == sizeof owner &&
        memcmp(at + sizeof h, owner, sizeof owner) == 0)
      return hash_64(HASH_64_START, at + sizeof h + filled(h.n_namesz), h.n_descsz);
    at += length;
    size -= length;
  }
  return 0;
}

/* Called for the program first, and ends there. */
static int of_program(struct dl_phdr_info *info, size_t size, void *to) {
  uint64_t *number = to;
  (void)size;
  for (size_t i = 0; i < info->dlpi_phnum && *number == 0; ++i)
    if (info->dlpi_phdr[i].p_type == PT_NOTE) {
      const uintptr_t at = (uintptr_t)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
      *number = read_notes((const char *)at, (size_t)info->dlpi_phdr[i].p_memsz);
    }
  return 1;
}

uint64_t build_number(void) {
  uint64_t number = 0;
  (void)dl_iterate_phdr(of_program, &number);
  return number;
}

/* --- the cache folder --- */

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
