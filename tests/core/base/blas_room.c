/* OpenBLAS's working memory under a limit: an error before it asks, and products afterwards. */
#include "core/base/blas_room.h"
#include "tests/support/sanitized.h"
#include "tests/support/suite.h"

#include <cblas.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 300 };

/* Bytes of this process's address space. */
static rlim_t address_space(void) {
  unsigned long pages = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  if (f == NULL || fscanf(f, "%lu", &pages) != 1) abort();
  fclose(f);
  return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static int multiplies(void) {
  static double a[N * N], b[N * N], c[N * N];
  for (size_t i = 0; i < N * N; ++i) a[i] = b[i] = 1;
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, N, N, N, 1, a, N, b, N, 0, c, N);
  return c[N * N - 1] == N;
}

/* In a process of its own that has so many MiB left: 0 reserved and multiplied, 1 refused as it
 * should be, others are wrong. alarm() ends one that hangs. */
static int reserve_with(size_t mib, size_t threads) {
  fflush(NULL);
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(120);
    const rlim_t limit = address_space() + ((rlim_t)mib << 20);
    const struct rlimit both = {limit, limit};
    gl_error err = {0};
    if (setrlimit(RLIMIT_AS, &both) != 0) _exit(10);
    const gl_status status = blas_reserve(threads, &err);
    if (status == GL_OK) _exit(multiplies() ? 0 : 11);
    const int told = strstr(err.text, "ulimit -v") != NULL && strstr(err.text, "--threads") != NULL;
    _exit(status == GL_ENOMEM && told ? 1 : 12);
  }
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

static void what_does_not_fit_is_refused_and_what_fits_computes(void) {
  if (SANITIZED) SKIP("a sanitizer takes the address space");
  CU_ASSERT_EQUAL(reserve_with(64, 1), 1);
  CU_ASSERT_EQUAL(reserve_with(200, 1), 0);
  CU_ASSERT_EQUAL(reserve_with(200, 4), 1);
  CU_ASSERT_EQUAL(reserve_with(800, 4), 0);
}

static void without_a_limit_it_may_be_asked_again_and_again(void) {
  gl_error err = {0};
  for (int i = 0; i < 100; ++i) CU_ASSERT_EQUAL(blas_reserve(2, &err), GL_OK);
  CU_ASSERT(multiplies());
}

SUITE(blas_room, "core: room for matrix products",
      TEST(what_does_not_fit_is_refused_and_what_fits_computes),
      TEST(without_a_limit_it_may_be_asked_again_and_again));
