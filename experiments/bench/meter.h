/* What else the machine did while something was measured.
 *
 * Two programs can be compared when each had the machine for itself. Between two readings this says
 * which share of all cores' time went to other processes, and which the hypervisor gave to other
 * machines ("steal"): the system's processor time (/proc/stat) less that of this process and its
 * children. The system counts in ticks of some 10 ms, so that measurements of less than a second
 * are told apart from others' work only roughly. Linux alone; elsewhere the shares are not known,
 * which is not quiet. Prefix: meter_. */
#ifndef GEPOLAB_EXPERIMENTS_BENCH_METER_H
#define GEPOLAB_EXPERIMENTS_BENCH_METER_H

#include "core/base/error.h"

#include <sys/types.h>

/* The share of all cores' time above which nothing is compared. */
#define METER_MOST 0.10

/* Seconds since the machine or the process began; NaN where they cannot be read. */
typedef struct meter_reading {
  double wall_s;
  double busy_s;  /* of all cores, every process and the kernel */
  double steal_s; /* of all cores, given to other machines */
  double own_s;   /* of this process and its children */
  double cores;
} meter_reading;

/* Shares of all cores' time; NaN: not known. */
typedef struct meter_load {
  double others, steal;
} meter_load;

/* busy_s, steal_s and cores from the text of /proc/stat, whose counts are ticks of which
 * ticks_per_s make a second. GL_EINPUT where it has no line "cpu" with eight counts and no core. */
gl_status meter_read_machine(meter_reading *out, const char *text, double ticks_per_s,
                             gl_error *err);
/* Processor seconds of a process and of the children it has waited for, from the text of its
 * /proc/PID/stat; NaN where that is something else. */
double meter_read_process(const char *text, double ticks_per_s);

/* A reading now. child: one that runs and was not waited for yet, which counts as own; 0: none. */
meter_reading meter_now(pid_t child);

/* Adds what happened between two readings to a sum that began as {0}. */
void meter_add(meter_reading *sum, const meter_reading *before, const meter_reading *after);
/* The shares of such a sum, or of what happened between two readings: never below 0, which ticks
 * would allow. */
meter_load meter_load_of(const meter_reading *sum);
meter_load meter_between(const meter_reading *before, const meter_reading *after);
/* 1 if others and steal together took at most METER_MOST; 0 also where they are not known. */
int meter_is_quiet(meter_load load);
/* The heavier of the two; one that is not known is heavier than any other. */
meter_load meter_heavier(meter_load a, meter_load b);

#endif
