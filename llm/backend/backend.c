/* Functions common to all backends: freeing one, and this machine's memory. */
#include "llm/backend/backend.h"

#include <stdio.h>
#include <unistd.h>

void backend_free(backend *b) {
  if (b != NULL) b->ops->free(b);
}

/* Linux's estimate of the memory available to programs (MemAvailable). If it gives none: the free
 * pages. page: the size of a page in bytes. */
static size_t available_bytes(size_t page) {
  FILE *f = fopen("/proc/meminfo", "r");
  char line[128];
  unsigned long long kib = 0;
  int found = 0;
  while (f != NULL && !found && fgets(line, sizeof line, f) != NULL)
    found = sscanf(line, "MemAvailable: %llu kB", &kib) == 1;
  if (f != NULL) fclose(f);
  if (found) return (size_t)kib << 10;
  const long pages = sysconf(_SC_AVPHYS_PAGES);
  return pages > 0 ? (size_t)pages * page : 0;
}

void backend_host_memory(size_t *total, size_t *available) {
  const long page = sysconf(_SC_PAGESIZE), pages = sysconf(_SC_PHYS_PAGES);
  *total = page > 0 && pages > 0 ? (size_t)page * (size_t)pages : 0;
  *available = available_bytes(page > 0 ? (size_t)page : 4096);
}
