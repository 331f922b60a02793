/* Results: one SQLite file per study, one writer.
 *
 * Tables: runs (one per finished cell), steps (one row per learner update),
 * evals, staleness (histogram per run), clock (the schedule's throughput and utilisation per run),
 * tuned (chosen learning rates). Column names of steps are
 * those of core/base/metrics.h. A run is inserted whole in one transaction or not at all; a failed
 * or diverged run is a row with its status and reason.
 *
 * Exported tables are ordered by (cell key order, step), carry no wall-clock columns, and are
 * byte-identical however the study was executed. Wall-clock facts live in runs.wall_s, runs.machine
 * and are left out of exports unless asked for.
 */
#ifndef GEPOLAB_CORE_STORE_STORE_H
#define GEPOLAB_CORE_STORE_STORE_H

#include "core/base/error.h"
#include "core/base/metrics.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct sqlite3;
typedef struct store store;

typedef struct step_row {
  int64_t step;    /* 1-based learner update */
  int32_t sampler; /* of the first batch trained */
  double time_s;   /* simulated time at the end of the update */
  double wait_s;   /* simulated time the learner idled before it */
  double metric[METRIC_COUNT];
} step_row;

typedef struct eval_row {
  int64_t step; /* 0: before the first update */
  double time_s;
  double eval_score;
} eval_row;

/* What the schedule says about a run's clock (sim/schedule.h fills it). */
typedef struct clock_row {
  double simulated_s, learner_utilisation, sampler_utilisation, samples_per_s;
  double bytes_up, bytes_down;
  double staleness_mean, staleness_max, staleness_p50, staleness_p95;
  double batches_generated, batches_trained, batches_dropped, batches_lost;
  double retransmissions;
} clock_row;

typedef enum run_status { RUN_DONE, RUN_DIVERGED, RUN_FAILED } run_status;

typedef struct run_record {
  const char *key;       /* 32 hex digits: hash of the canonical cell recipe */
  int64_t ordinal;       /* position in the study's grid: the export order */
  const char *study;     /* recipe's name */
  const char *algorithm; /* shown name */
  const char
      *axes; /* canonical JSON of the swept fields of this cell, e.g. {"cluster.max_delay":600} */
  const char *recipe; /* canonical JSON of the whole cell */
  const char *code_version;
  const char *machine;
  uint64_t seed;
  double lr;
  run_status status;
  const char *reason; /* "" when done */
  double wall_s;
  clock_row clock;
  const step_row *steps;
  size_t n_steps;
  const eval_row *evals;
  size_t n_evals;
  const uint64_t *staleness; /* histogram, index = staleness */
  size_t n_staleness;
} run_record;

typedef enum store_mode { STORE_READ, STORE_WRITE } store_mode;

/* STORE_WRITE creates the file if needed, takes the single writer's lock and refuses a second
 * writer by name. Errors say full disk, read-only file system or not a gepolab study as such. */
gl_status store_open(store **out, const char *path, store_mode mode, gl_error *err);
/* As store_open with a SQLite VFS by name, for fault injection in tests. */
gl_status store_open_vfs(store **out, const char *path, store_mode mode, const char *vfs,
                         gl_error *err);
void store_close(store *s);

/* Inserts or replaces the run with that key, atomically. */
gl_status store_put_run(store *s, const run_record *run, gl_error *err);
/* 1 if a run with that key and the same canonical recipe is finished (done or diverged). 0 also
 * where the study cannot be read: the run is then made again, and putting it says what is wrong. */
int store_has_finished(store *s, const char *key, const char *recipe);
/* A chosen learning rate: algorithm label x group label -> lr with its score. */
gl_status store_put_tuned(store *s, const char *study, const char *algorithm, const char *axes,
                          double lr, double score, gl_error *err);
/* Joins the runs and the chosen rates of another study file into this one, all or nothing. A run
 * both have finished must agree in every table, a rate both have chosen must be the same: GL_EINPUT
 * otherwise. A finished run takes the place of a failed one. */
gl_status store_merge(store *into, const char *path, gl_error *err);

/* Writes a table (runs, steps, evals, staleness, clock, tuned, bias) as csv, tsv or jsonl, in the
 * export order; doubles in shortest round-trip form, NaN as an empty cell or null. */
gl_status store_export(store *s, const char *table, const char *format, FILE *to, gl_error *err);

/* The connection, for analysis/ queries; read-only use. */
struct sqlite3 *store_handle(store *s);

#endif
