/* What gepolab can use on this machine: for each thing whether it is there, what it is for, and how
 * to get it. Prefix: found_. */
#ifndef GEPOLAB_EXPERIMENTS_DOCTOR_FOUND_H
#define GEPOLAB_EXPERIMENTS_DOCTOR_FOUND_H

#include <stddef.h>

enum { FOUND_TEXT = 200 };

typedef struct found_thing {
  const char *name, *use, *remedy; /* static; remedy: how to get it where it is missing */
  int needed; /* README's commands fail without it; else something is left out */
  int present;
  char detail[FOUND_TEXT]; /* its version, or why it is missing */
} found_thing;

/* Looks for the i-th thing; 0 past the last. Starts other programs for their versions, each for a
 * few seconds at most. What it finds is what a command of this process would find: the same PATH,
 * $GEPOLAB_PYTHON, $GEPOLAB_CACHE and CUDA devices. */
int found_look(found_thing *out, size_t i);

#endif
