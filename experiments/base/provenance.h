/* The provenance of the runs of this process, which a study stores (core/store/store.h): program
 * and source, command line, machine, compiler and libraries. Names of hosts and people are not
 * looked up; the command line is stored as given. */
#ifndef GEPOLAB_EXPERIMENTS_BASE_PROVENANCE_H
#define GEPOLAB_EXPERIMENTS_BASE_PROVENANCE_H

#include "core/base/error.h"
#include "core/store/store.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { PROVENANCE_TEXT_SIZE = 256, PROVENANCE_DATE_SIZE = 21 };

typedef struct provenance {
  run_provenance record; /* its texts are those below, or constants */
  char processor[PROVENANCE_TEXT_SIZE], system[PROVENANCE_TEXT_SIZE],
      compiler[PROVENANCE_TEXT_SIZE];
  char *command, *libraries;
} provenance;

/* Fills *p for this process; unknown texts are "", unknown `dirty` is -1. The record points into
 * *p, which must not be copied. Release with provenance_fini(), also after an error. Errors:
 * GL_ENOMEM. */
gl_status provenance_init(provenance *p, gl_error *err);
void provenance_fini(provenance *p);

/* The command words[n] quoted for a POSIX shell, with the program's name instead of its path, after
 * the environment variables that change results: "OMP_NUM_THREADS=2 gepolab sweep study.yaml". It
 * is UTF-8: other bytes are written with printf. Longer than `most` bytes: truncated with "…". On
 * the heap; NULL if out of memory. */
char *provenance_command(const char *const *words, size_t n, size_t most);

/* The model of the first processor in a text such as /proc/cpuinfo (NULL: there is none), into
 * text[size], valid UTF-8; `machine` if the text has no line with a known name for the model.
 * Returns text. */
char *provenance_processor(FILE *cpuinfo, const char *machine, char *text, size_t size);

/* The present time, UTC, as "2026-11-22T08:30:00Z". Returns text. */
char *provenance_now(char text[PROVENANCE_DATE_SIZE]);

/* Largest resident memory of this process so far, in bytes; 0: not known. */
int64_t provenance_peak_bytes(void);

#endif
