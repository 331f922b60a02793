/* What the sim suites share: clusters given as text. */
#ifndef GEPOLAB_TESTS_SUPPORT_SIM_H
#define GEPOLAB_TESTS_SUPPORT_SIM_H

#include "sim/schedule.h"

/* Builds the schedule of a section given as text; both are released when the test ends. */
gl_status sim_build(schedule *s, cluster_spec **spec, const char *text, uint64_t seed,
                    size_t updates, gl_error *err);
/* The same where it must succeed. */
schedule sim_must_build(const char *text, uint64_t seed, size_t updates);
/* The section is bad input, and the message says where. */
void sim_must_refuse(const char *text);

#endif
