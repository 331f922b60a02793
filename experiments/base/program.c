/* The program itself: what identifies its build, the files embedded in it, its cache folder, and
 * how it starts. */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "experiments/base/program.h"

#include "core/base/error.h"
#include "core/base/hash.h"

#include <assert.h>
#include <link.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --- the build identifier, read from the linker's note in our own memory --- */

#ifdef __EMSCRIPTEN__ /* WebAssembly has no build identifier */
uint64_t build_number(void) {
  return 0;
}
#else
/* An ELF note is a header, a name and a description; name and description are padded to multiples
 * of four bytes. */
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

/* Callback of dl_iterate_phdr(), which visits the program before its libraries; the result 1 stops
 * it there. */
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
#endif

/* --- the user's own algorithms and presets --- */

const program_own_file program_own_files[PROGRAM_OWN_FILES] = {
    {"algorithms", "GEPOLAB_ALGORITHMS", "ALGORITHMS.yaml",
     "algorithms of your own, as $GEPOLAB_ALGORITHMS: algorithms: {my_grpo: {base: grpo, …}}"},
    {"presets", "GEPOLAB_PRESETS", "PRESETS.yaml",
     "presets of clusters of your own, as $GEPOLAB_PRESETS: presets: {mine: {base: areal, …}}"}};

gl_status program_own(cfg_own **out, gl_error *err) {
  gl_status status = cfg_own_new(out, err);
  for (int i = 0; i < PROGRAM_OWN_FILES && status == GL_OK; ++i) {
    const char *path = getenv(program_own_files[i].variable);
    if (path != NULL && path[0] != '\0')
      status = cfg_own_add_file(*out, path, program_own_files[i].key, err);
  }
  return status;
}

/* --- the cache folder --- */

/* Sets the cache folder to base and rest joined; to "" (no cache) if that is too long. */
static void cache_set(cache_place *place, const char *base, const char *rest) {
  int n = snprintf(place->folder, sizeof place->folder, "%s%s", base, rest);
  if (n < 0 || (size_t)n >= sizeof place->folder) place->folder[0] = '\0';
}

const cache_place *cache_find(cache_place *place) {
  const char *own = getenv("GEPOLAB_CACHE"), *cache = getenv("XDG_CACHE_HOME"),
             *home = getenv("HOME");
  const uint64_t build = build_number();
  place->folder[0] = '\0';
  if (build == 0) own = ""; /* two builds of one version may round differently */
  if (own != NULL)
    cache_set(place, own, "");
  else if (cache != NULL && cache[0] == '/')
    cache_set(place, cache, "/gepolab");
  else if (home != NULL && home[0] == '/')
    cache_set(place, home, "/.cache/gepolab");
  snprintf(place->code, sizeof place->code, "%016llx", (unsigned long long)build);
  return place;
}

/* --- embedded files --- */

/* Written by the Makefile; ends with an entry of zeros. */
extern const resource resource_table[];

const resource *resources_at(size_t i) {
  for (size_t k = 0; k <= i; ++k)
    if (resource_table[k].path == NULL) return NULL;
  return &resource_table[i];
}

/* The name of a YAML file of that folder (length in *length); NULL of any other file. */
static const char *yaml_name(const char *folder, const resource *r, size_t *length) {
  static const char suffix[] = ".yaml";
  const size_t before = strlen(folder), after = sizeof suffix - 1, all = strlen(r->path);
  if (all <= before + after || strncmp(r->path, folder, before) != 0) return NULL;
  if (strcmp(r->path + all - after, suffix) != 0) return NULL;
  *length = all - before - after;
  return r->path + before;
}

static const resource *yaml_named(const char *folder, const char *name) {
  for (const resource *r = resource_table; r->path != NULL; ++r) {
    size_t length = 0;
    const char *own = yaml_name(folder, r, &length);
    if (own != NULL && strlen(name) == length && strncmp(own, name, length) == 0) return r;
  }
  return NULL;
}

static const char recipes[] = "experiments/recipes/", clusters[] = "experiments/clusters/";

const char *resources_recipe_name(const resource *r, size_t *length) {
  return yaml_name(recipes, r, length);
}

const resource *resources_recipe(const char *name) {
  return yaml_named(recipes, name);
}

const char *resources_cluster_name(const resource *r, size_t *length) {
  return yaml_name(clusters, r, length);
}

const resource *resources_cluster(const char *name) {
  return yaml_named(clusters, name);
}

const char *resources_text(const char *path) {
  for (const resource *r = resource_table; r->path != NULL; ++r)
    if (strcmp(r->path, path) == 0) return r->data;
  return NULL;
}

/* --- one BLAS thread --- */

#ifndef __EMSCRIPTEN__ /* which has neither OpenBLAS nor threads */

/* Prevents OpenBLAS from starting threads when it is loaded; gepolab has its own threads.
 *
 * OpenBLAS's constructor runs before main(). It starts a thread for every further usable core, and
 * each thread allocates 128 MiB. Versions before 0.3.30 retry forever if the allocation fails:
 * under `ulimit -v 100000` the program finished its work and then hung in a fork or at exit,
 * waiting for those threads. Before main() only the environment (OPENBLAS_NUM_THREADS) or the
 * number of usable cores limits the number of threads. So the process is bound to its current core
 * while its libraries are initialised, and released before main(). */
#if defined(__clang__)
#define PLAIN __attribute__((no_sanitize("address", "undefined", "thread", "coverage")))
#else
#define PLAIN __attribute__((no_sanitize("address", "undefined", "thread")))
#endif

enum { WORD_BITS = 8 * sizeof(unsigned long), WORDS = 8192 / WORD_BITS };

/* The set of cores that the process may use, until blas_release() restores it. bytes:
 * size of the set in the kernel; 0 or less: the affinity was not changed. */
static struct {
  long bytes;
  unsigned long cores[WORDS];
} whole;

/* Runs before any library's constructor, and so before those of sanitizers. */
PLAIN static void bind_to_one(int argc, char **argv, char **environment) {
  (void)argc, (void)argv, (void)environment;
  unsigned core = 0;
  unsigned long one[WORDS];
  for (int i = 0; i < WORDS; ++i) one[i] = 0;
  whole.bytes = syscall(SYS_sched_getaffinity, 0, sizeof whole.cores, whole.cores);
  if (whole.bytes <= 0 || syscall(SYS_getcpu, &core, NULL, NULL) != 0 || core >= 8192) {
    whole.bytes = 0;
    return;
  }
  one[core / WORD_BITS] = 1ul << core % WORD_BITS;
  if (syscall(SYS_sched_setaffinity, 0, whole.bytes, one) != 0) whole.bytes = 0;
}

__attribute__((section(".preinit_array"), used)) static void (*const first)(int, char **,
                                                                            char **) = bind_to_one;

/* A program's constructors run after those of its libraries. */
__attribute__((constructor)) PLAIN static void blas_release(void) {
  if (whole.bytes > 0) (void)syscall(SYS_sched_setaffinity, 0, whole.bytes, whole.cores);
}

#endif

/* --- signals --- */

/* Set by the handler, read by all threads. */
static atomic_int caught;
static_assert(ATOMIC_INT_LOCK_FREE == 2, "a signal handler may use lock-free atomics only");

static void note_signal(int signal_number) {
  atomic_store(&caught, signal_number);
}

void signals_catch(void) {
  struct sigaction action = {.sa_handler = note_signal, .sa_flags = (int)SA_RESETHAND};
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  struct sigaction inherited;
  if (sigaction(SIGHUP, NULL, &inherited) == 0 && inherited.sa_handler != SIG_IGN)
    sigaction(SIGHUP, &action, NULL);
}

void signals_catch_term(void) {
  struct sigaction action = {.sa_handler = note_signal};
  sigaction(SIGTERM, &action, NULL);
}

int signals_caught(void) {
  return atomic_load(&caught);
}
