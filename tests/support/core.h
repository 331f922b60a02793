/* What the core suites share: a folder for their files, a run to store, a file's bytes. */
#ifndef GEPOLAB_TESTS_SUPPORT_CORE_H
#define GEPOLAB_TESTS_SUPPORT_CORE_H

#include "core/store/store.h"

#include <stddef.h>

enum { SCRATCH_PATH_SIZE = 160, SAMPLE_MAX_STEPS = 300 };

/* A fresh empty folder; scratch_remove() takes it away with the files in it. */
typedef struct scratch {
  char folder[64];
} scratch;
void scratch_make(scratch *s);
void scratch_remove(const scratch *s);
/* folder/name; returns path. */
char *scratch_path(const scratch *s, const char *name, char path[SCRATCH_PATH_SIZE]);
size_t scratch_count(const scratch *s);
void scratch_copy(const char *from, const char *to);
void scratch_write(const char *path, const char *text);
/* malloc'd and NUL-terminated, the caller frees; NULL if there is no such file. */
char *scratch_read(const char *path);

/* A run of the study "s" whose contents depend on its ordinal alone: the steps have a loss and a
 * gradient norm and no other metric. It points into itself, so it is not to be copied. */
typedef struct sample_run {
  run_record run;
  char key[33], recipe[32];
  step_record steps[SAMPLE_MAX_STEPS];
  eval_record evals[2];
  uint64_t staleness[3];
} sample_run;
void sample_run_init(sample_run *s, int ordinal, size_t n_steps);

/* The first column of the first row as a number; -1 with a failed assertion where there is none. */
double store_number(store *s, const char *sql);
/* Opens or fails the test. */
store *store_opened(const char *path, store_mode mode);
/* Puts sample runs first .. last with n_steps steps each. */
void store_put_samples(store *s, int first, int last, size_t n_steps);
/* The n tables of the study as CSV, malloc'd; NULL where it is refused, with err. */
char *store_text(const char *path, const char *const *tables, size_t n, gl_error *err);

#endif
