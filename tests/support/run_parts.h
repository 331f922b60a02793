/* What holds of every table of records that some runs have and others have not: they are checked,
 * repaired, merged and salvaged with their runs. */
#ifndef GEPOLAB_TESTS_SUPPORT_RUN_PARTS_H
#define GEPOLAB_TESTS_SUPPORT_RUN_PARTS_H

#include "tests/support/core.h"

typedef struct run_part {
  const char *table, *sum; /* its name, and the column of its checksum in `runs` */
  const char *disagrees;   /* what a merge says where two studies differ in it */
  size_t records;          /* of a run that has some */
  /* Stores the run of that ordinal with its records; two values give two different runs. */
  void (*put)(store *s, int ordinal, double value);
} run_part;

typedef struct part_study {
  scratch at;
  char path[SCRATCH_PATH_SIZE];
} part_study;

/* Runs 1 and 3 have records, with the values 0.25 and 0.5, run 2 has none. scratch_remove(&f->at)
 * takes it away. */
void part_study_make(part_study *f, const run_part *p);
/* The table of such a study as CSV; the caller frees. */
char *part_exported(const run_part *p);
gl_status part_verified(const run_part *p, const char *path, gl_error *err);

/* Each asserts what its name says. */
void check_runs_without_part_have_no_sum(const run_part *p);
/* damages[n]: statements that each spoil one run or two. */
void check_damage_of_part_is_found(const run_part *p, const char *const *damages, size_t n);
void check_part_is_merged(const run_part *p);
void check_part_is_salvaged(const run_part *p);

#endif
