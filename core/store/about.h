/* What a study tells about its runs beside their results: how they came about, what they cost, and
 * all that is kept of one of them. Wall-clock facts stand here and in no export. Each function
 * tells its records to a function of the caller, which returns 0 to stop; strings are valid during
 * that call, and come out of a file that somebody else may have written. */
#ifndef GEPOLAB_CORE_STORE_ABOUT_H
#define GEPOLAB_CORE_STORE_ABOUT_H

#include "core/store/store.h"

/* Runs, and measurements of the laboratory, that came about alike: by the same program and command,
 * on the same kind of machine. */
typedef struct store_origin {
  size_t runs;
  size_t measured;          /* studies of the laboratory */
  int known;                /* 0: the file does not say; of `how` then only the version is set */
  run_provenance how;       /* texts that are not known are "" */
  const char *first, *last; /* when the first and the last of them finished; NULL: not known */
} store_origin;
/* The most runs first. Measurements of before format 4 are not in it. */
gl_status store_origins(store *s, int (*each)(void *self, const store_origin *origin), void *self,
                        gl_error *err);

/* What the runs of an algorithm took, all those of the study that are in the file. */
typedef struct store_cost {
  const char *study, *algorithm;
  size_t runs;
  double wall_s, median_s, largest_s; /* sum, median and largest of their wall times */
  int64_t peak_bytes;                 /* the largest of their processes; < 0: not known */
  size_t seeds;                       /* different ones */
  uint64_t least_seed, largest_seed;
} store_cost;
/* In the order of studies and of algorithms in their grids. */
gl_status store_costs(store *s, int (*each)(void *self, const store_cost *cost), void *self,
                      gl_error *err);

/* One run, whole but for its tables. */
typedef struct store_run {
  const char *key, *place, *study, *algorithm, *swept, *chosen, *recipe; /* chosen: NULL: none */
  const char *in_effect; /* core/config/record.h; NULL: not known */
  int64_t ordinal, meaning;
  uint64_t seed;
  double lr, wall_s; /* NAN: not known */
  const char *status, *reason, *code_version, *machine;
  const char *finished;      /* NULL: not known */
  int64_t peak_bytes;        /* < 0: not known */
  const char *superseded_by; /* the key of the run that took its place; NULL: it stands there */
  size_t n_steps, n_evals;
  double eval_first, eval_best, eval_last; /* NAN without evaluations */
  int has_provenance;
  run_provenance provenance; /* if it has one */
} store_run;
/* The run whose key begins with `prefix`. GL_EINPUT if there is none, or if there are several,
 * which are named. */
gl_status store_find_run(store *s, const char *prefix, void (*found)(void *self, const store_run *),
                         void *self, gl_error *err);

#endif
