/* The build identifier of this program, read from the linker's note in its own memory. */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "experiments/base/build.h"

#include "core/base/hash.h"

#include <link.h>
#include <string.h>

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
