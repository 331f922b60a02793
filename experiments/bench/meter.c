/* Processor time of the machine, of others and of ourselves. */
#include "experiments/bench/meter.h"

#include "experiments/base/seconds.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { STAT_TEXT = 65536 };

/* --- texts of the system --- */

gl_status meter_read_machine(meter_reading *out, const char *text, double ticks_per_s,
                             gl_error *err) {
  enum { USER, NICE, SYSTEM, IDLE, WAITING, INTERRUPTS, SOFT_INTERRUPTS, STEAL, N };
  double ticks[N];
  size_t cores = 0;
  if (sscanf(text, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &ticks[USER], &ticks[NICE],
             &ticks[SYSTEM], &ticks[IDLE], &ticks[WAITING], &ticks[INTERRUPTS],
             &ticks[SOFT_INTERRUPTS], &ticks[STEAL]) != N)
    return gl_fail(err, GL_EINPUT, "/proc/stat does not begin with the times of all cores");
  for (const char *line = strstr(text, "\ncpu"); line != NULL; line = strstr(line + 1, "\ncpu"))
    ++cores;
  if (cores == 0 || !(ticks_per_s > 0))
    return gl_fail(err, GL_EINPUT, "/proc/stat names no core, or ticks have no length");
  out->cores = (double)cores;
  out->steal_s = ticks[STEAL] / ticks_per_s;
  out->busy_s =
      (ticks[USER] + ticks[NICE] + ticks[SYSTEM] + ticks[INTERRUPTS] + ticks[SOFT_INTERRUPTS]) /
      ticks_per_s;
  return GL_OK;
}

/* The name, in brackets, may hold anything, so fields are counted from the last bracket. */
double meter_read_process(const char *text, double ticks_per_s) {
  double user, system, children_user, children_system;
  const char *rest = strrchr(text, ')');
  if (rest == NULL || sscanf(rest, ") %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lf %lf %lf %lf",
                             &user, &system, &children_user, &children_system) != 4)
    return NAN;
  return (user + system + children_user + children_system) / ticks_per_s;
}

/* --- now --- */

static int meter_read_text(const char *path, char text[STAT_TEXT]) {
  FILE *from = fopen(path, "r");
  if (from == NULL) return 0;
  const size_t n = fread(text, 1, STAT_TEXT - 1, from);
  text[n] = '\0';
  fclose(from);
  return n > 0;
}

static double used_by(int who) {
  struct rusage r;
  if (getrusage(who, &r) != 0) return NAN;
  return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
         1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

meter_reading meter_now(pid_t child) {
  char text[STAT_TEXT], path[64];
  const double ticks_per_s = (double)sysconf(_SC_CLK_TCK);
  meter_reading r = {.busy_s = NAN, .steal_s = NAN, .cores = NAN, .wall_s = seconds_now()};
  if (meter_read_text("/proc/stat", text)) (void)meter_read_machine(&r, text, ticks_per_s, NULL);
  r.own_s = used_by(RUSAGE_SELF) + used_by(RUSAGE_CHILDREN);
  if (child > 0) {
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)child);
    r.own_s += meter_read_text(path, text) ? meter_read_process(text, ticks_per_s) : 0;
  }
  return r;
}

/* --- between two readings --- */

static double meter_share_of(double seconds, double whole) {
  return isnan(seconds) || !(whole > 0) ? NAN : fmax(seconds, 0) / whole;
}

void meter_add(meter_reading *sum, const meter_reading *before, const meter_reading *after) {
  sum->wall_s += after->wall_s - before->wall_s;
  sum->busy_s += after->busy_s - before->busy_s;
  sum->steal_s += after->steal_s - before->steal_s;
  sum->own_s += after->own_s - before->own_s;
  sum->cores = after->cores;
}

meter_load meter_load_of(const meter_reading *sum) {
  const double whole = sum->wall_s * sum->cores;
  return (meter_load){meter_share_of(sum->busy_s - sum->own_s, whole),
                      meter_share_of(sum->steal_s, whole)};
}

meter_load meter_between(const meter_reading *before, const meter_reading *after) {
  meter_reading sum = {0};
  meter_add(&sum, before, after);
  return meter_load_of(&sum);
}

int meter_is_quiet(meter_load load) {
  return load.others + load.steal <= METER_MOST; /* no comparison with NaN is true */
}

meter_load meter_heavier(meter_load a, meter_load b) {
  const double x = a.others + a.steal, y = b.others + b.steal;
  if (isnan(x)) return a;
  return isnan(y) || y > x ? b : a;
}
