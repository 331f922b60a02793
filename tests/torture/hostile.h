/* What every command must make of a study that is not as gepolab wrote it. */
#ifndef GEPOLAB_TESTS_TORTURE_HOSTILE_H
#define GEPOLAB_TESTS_TORTURE_HOSTILE_H

#include "tests/torture/torture.h"

/* How much an export may differ from that of the undamaged study. */
typedef enum tolerance {
  NOT_AT_ALL,
  IF_SAID,  /* where a warning says what is missing: records were taken out whole */
  IF_WHOLE, /* it is another study, and only the ends of the commands are looked at */
} tolerance;

/* The study work/study.db was full.db before `how` was done to it. Every command ends soon, without
 * a crash; every export is the undamaged one, or an error, or as different as it may be; joining
 * and going on too. */
void hostile_read(trial *t, const char *how, tolerance may_differ);
/* Copies inputs/full.db to work/study.db. */
void hostile_copy(trial *t);

#endif
