/* Loaded before the C library (LD_PRELOAD): the calendar's clock jumps by up to ten years at about
 * every other call; the monotonic one is left alone, for the system promises that it never jumps.
 * TORTURE_CLOCK is the seed. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *t);
time_t time(time_t *t);
int gettimeofday(struct timeval *restrict t, void *restrict zone);

static atomic_ullong calls; /* the one thing a preloaded library cannot be handed */

static int64_t jump(void) {
  const char *text = getenv("TORTURE_CLOCK");
  uint64_t x = (text != NULL ? strtoull(text, NULL, 10) : 1) +
               (atomic_fetch_add(&calls, 1) + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  x ^= x >> 31;
  if (x & 1) return 0;
  return (int64_t)((x >> 1) % 630720000u) - 315360000;
}

int clock_gettime(clockid_t id, struct timespec *t) {
  const long result = syscall(SYS_clock_gettime, id, t);
  if (result == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) t->tv_sec += jump();
  return (int)result;
}

time_t time(time_t *t) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (t != NULL) *t = now.tv_sec;
  return now.tv_sec;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  *t = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
  return 0;
}
