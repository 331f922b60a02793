/* What every command must make of a study that is not as gepolab wrote it. */
#ifndef GEPOLAB_TESTS_TORTURE_HOSTILE_H
#define GEPOLAB_TESTS_TORTURE_HOSTILE_H

#include "tests/torture/torture.h"

/* The study work/study.db was full.db before `how` was done to it. Every command ends soon, without
 * a crash; every export is the undamaged one or an error; joining and going on too. may_differ: it
 * is another whole study, and only the ends of the commands are looked at. */
void hostile_read(trial *t, const char *how, int may_differ);
/* Copies inputs/full.db to work/study.db. */
void hostile_copy(trial *t);

#endif
