/* The families of trials, a file each. */
#ifndef GEPOLAB_TESTS_TORTURE_FAMILIES_H
#define GEPOLAB_TESTS_TORTURE_FAMILIES_H

#include "tests/torture/torture.h"

void family_kills(trial *t);
void family_workers(trial *t);
void family_disk(trial *t);
void family_limits(trial *t);
void family_permissions(trial *t);
void family_onto(trial *t);
void family_together(trial *t);
void family_readers(trial *t);
void family_clock(trial *t);
void family_damage(trial *t);
void family_handmade(trial *t);
void family_shards(trial *t);
void family_mpi(trial *t);

const char *tracing_missing(const session *s);
const char *root_missing(const session *s);
const char *clock_missing(const session *s);
const char *mpi_missing(const session *s);

#endif
