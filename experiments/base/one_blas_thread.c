/* Keeps OpenBLAS from starting threads when it is loaded.
 *
 * Its constructor, which runs before main(), starts a thread for every further core, and each asks
 * for 128 MiB. Versions before 0.3.30 ask again without end where that is refused: under
 * `ulimit -v 100000` the program did its work and then hung when it forked or ended, waiting for
 * those threads. gepolab has threads of its own and never wants OpenBLAS's. Only the environment
 * (OPENBLAS_NUM_THREADS) or the number of usable cores could say so that early. So the process is
 * bound to the core it runs on while its libraries are initialised, and released before main(). */
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__clang__)
#define PLAIN __attribute__((no_sanitize("address", "undefined", "thread", "coverage")))
#else
#define PLAIN __attribute__((no_sanitize("address", "undefined", "thread")))
#endif

enum { WORD_BITS = 8 * sizeof(unsigned long), WORDS = 8192 / WORD_BITS };

/* The cores the process may use. From before the libraries are there until main() nothing else can
 * hold them. bytes: what the kernel has of them; 0 or less: they were not changed. */
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
