/* The store of results: one SQLite file per study with a single writer. Files of formats older than
 * STORE_FORMAT are refused.
 *
 * Tables: runs (a record per finished cell), steps (a record per learner update), evals, set_evals
 * (evaluations by evaluation set and by halves of sets, if a recipe has them), staleness (a
 * histogram per run), fates (what happened to sampled responses, if clock and learner are coupled),
 * clock (throughput and utilisation of the schedule per run), tuned (tuned learning rates),
 * tuning_scores, bias (measurements of the exact laboratory), laboratory (provenance of these
 * measurements), sweeps (the recipes that were swept into the file), plan (the cells that these
 * recipes request), superseded (runs replaced by another run of their place), provenance (how runs
 * were made), seals (record counts and checksums of tables that do not belong to runs). Columns of
 * steps are named as in core/base/metrics.h. A run is inserted in one transaction; a failed or
 * diverged run is a record with its status and reason.
 *
 * Everything is read and written by column name. A metric that the file lacks reads as NULL; its
 * column is added when the file is opened for writing. NULL also means "does not apply".
 *
 * Files are untrusted. The tables must match the schema (core/store/schema.c has the valid values
 * of each column), and data that is read is verified against its checksums
 * (core/store/checksums.c). A damaged study is refused with the location of the damage.
 *
 * Exported tables (core/store/export.h) are ordered by study, ordinal, key and step, and are
 * byte-identical however the study was executed. Only the tables execution, provenance and
 * libraries, which are exported on request, say when and where runs were made. Fields in which runs
 * differ (core/config/axes.h) get columns named by the fields' paths; column names are unique. */
#ifndef GEPOLAB_CORE_STORE_STORE_H
#define GEPOLAB_CORE_STORE_STORE_H

#include "core/base/clock_record.h"
#include "core/base/error.h"
#include "core/base/metrics.h"
#include "core/config/config.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct sqlite3;
typedef struct store store;

enum { STORE_FORMAT = 7 }; /* PRAGMA user_version of the file */

/* The largest staleness, in versions, that a study can store: the histogram has an entry per value.
 */
enum { STORE_MAX_STALENESS = 10000000 };

typedef struct step_record {
  int64_t step;    /* 1-based learner update */
  int32_t sampler; /* sampler of the first batch trained */
  double time_s;   /* simulated time at the end of the update */
  double wait_s;   /* simulated time the learner idled before this update */
  double metric[METRIC_COUNT];
} step_record;

typedef struct eval_record {
  int64_t step; /* 0: before the first update */
  double time_s;
  double eval_score;
} eval_record;

/* The score of one part of an evaluation (core/rl/evaluation.h). The score of the first whole set
 * is the eval_score of that step. */
enum { STORE_SET_NAME_SIZE = 64 };
typedef struct set_eval_record {
  int64_t step;
  double time_s;
  double score;  /* NaN: parameters became non-finite */
  int32_t place; /* index of the set in the recipe's list, from 0 */
  int32_t half;  /* 0: all problems of the set; 1: the first, third, …; 2: the others */
  char set[STORE_SET_NAME_SIZE];
} set_eval_record;

/* Counts sampled responses of a run that share a fate, a quarter of prompts, and a length class of
 * 2^k to 2^(k + 1) - 1 tokens. */
enum { STORE_FATE_SIZE = 16, STORE_QUARTERS = 4 };
typedef struct fate_record {
  char fate[STORE_FATE_SIZE]; /* unit_fate_name() of sim/schedule.h */
  int32_t quarter; /* quarter of the run's prompts by mean reward of all their sampled responses: 1
                      lowest, 4 highest */
  int64_t tokens_from; /* 2^k */
  int64_t responses;
  double tokens, reward; /* sums over these responses */
} fate_record;

typedef enum run_status { RUN_DONE, RUN_DIVERGED, RUN_FAILED } run_status;
/* "done", "diverged" or "failed". */
const char *run_status_name(run_status status);
/* Returns 1 and sets *status if `name` is the name of a status. */
int run_status_named(const char *name, run_status *status);

/* How a run was made. Exports that must not depend on the execution omit it. */
typedef struct run_provenance {
  const char *version;   /* version of gepolab */
  const char *source;    /* commit that the program was built from, in hex; "": unknown */
  int32_t dirty;         /* 1: built from files that differ from that commit; 0: not; -1: unknown */
  const char *command;   /* the command line, quoted for a shell */
  const char *processor; /* "AMD EPYC 9B14, 2 threads" */
  const char *system;    /* "Linux x86_64" */
  const char *compiler;  /* "gcc 12.2.0" */
  const char *libraries; /* a JSON object of versions: {"GSL":"2.7.1", …} */
  const char *hash;      /* key of this record, set by the store */
} run_provenance;

typedef struct run_record {
  const char *key;       /* 32 hex digits: hash of store_identity(recipe, meaning) */
  const char *place;     /* see store_place() below; NULL: computed with store_place() */
  int64_t ordinal;       /* position in the study's grid: determines the export order */
  const char *study;     /* recipe's name */
  const char *algorithm; /* shown name */
  const char *swept;     /* canonical JSON of the swept fields with this cell's values, without
                            algorithm and seed: {"cluster.max_delay":600} */
  const char *chosen;    /* canonical JSON of the fields that were tuned beforehand, as by `tune`:
                            {"optimizer.lr":0.1}; NULL: none */
  const char *recipe;    /* canonical JSON of the whole cell */
  const char *
      in_effect; /* JSON of the value and origin of every field (cfg_record_end()); NULL: unknown */
  int64_t meaning; /* RECIPE_MEANING of the program that made the run */
  const char *code_version;
  const char *machine;
  uint64_t seed;
  double lr; /* optimizer.lr, also if it is the default */
  run_status status;
  const char *reason; /* "" if done */
  double wall_s;
  const run_provenance *provenance; /* NULL: unknown */
  const char *finished;             /* time, as in "2026-11-22T08:30:00Z"; NULL: unknown */
  int64_t peak_bytes;               /* peak resident memory of the process; < 0: unknown */
  clock_record clock;
  const step_record *steps;
  size_t n_steps;
  const eval_record *evals;
  size_t n_evals;
  const set_eval_record *set_evals; /* [n_set_evals] ordered by step, then part */
  size_t n_set_evals;
  const uint64_t *staleness; /* histogram, indexed by staleness */
  size_t n_staleness;
  const fate_record *fates; /* [n_fates] without duplicates */
  size_t n_fates;
} run_record;

typedef enum store_mode { STORE_READ, STORE_READ_ANY, STORE_READ_CUT, STORE_WRITE } store_mode;

/* Opens a study. STORE_WRITE creates the file if needed, takes the single writer's lock and refuses
 * a second writer. STORE_READ_ANY: *out is NULL where a sweep that was stopped before its first
 * cell left a file without a study, which STORE_READ refuses. STORE_READ_CUT reads what is left of
 * a file that was cut. Errors distinguish a full disk, a
 * read-only file system and files that are not gepolab studies. path is always a file name:
 * in-memory databases, URIs and files that are not regular are refused. */
gl_status store_open(store **out, const char *path, store_mode mode, gl_error *err);
/* Like store_open() with a SQLite VFS by name, for fault injection in tests. */
gl_status store_open_vfs(store **out, const char *path, store_mode mode, const char *vfs,
                         gl_error *err);
void store_close(store *s);
/* Returns 1 if any process, including this one, has the file open for writing; 0 also if the system
 * cannot tell. */
int store_is_being_written(const char *path);

/* What a writer does while readers in other processes lock the file. */
typedef struct store_waiting {
  void (*notify)(void *self,
                 const char *text); /* called once, after two seconds; NULL: no message */
  int (*stops)(void *self);         /* called repeatedly; returning 1 gives up; NULL: never */
  double longest_s;                 /* gives up after this many seconds; 0: 60 */
  void *self;
} store_waiting;
void store_set_waiting(store *s, store_waiting waiting);

/* Starts and ends a read transaction: all queries in between see one snapshot of the file. Writers
 * are blocked meanwhile, so a caller must not write to a pipe or terminal, whose reader may pause.
 * Calls may be nested; the outermost pair counts. */
gl_status store_begin_reading(store *s, gl_error *err);
void store_end_reading(store *s);
/* Verifies the checksums of these tables (list ended by NULL), and of the runs if any table belongs
 * to runs. tables NULL: all tables. Call it after store_begin_reading() and before reading data.
 * Errors: GL_EIO, with table and run of the first damage. */
gl_status store_verify(store *s, const char *const *tables, gl_error *err);
/* Looks for all damage: in the file's structure, in records, keys that are not the hash of their
 * recipe, records without a run. Calls found() for each, with the run's key if it concerns a run,
 * otherwise NULL. Returns GL_OK however much damage was found. */
gl_status store_check(store *s, void (*found)(void *self, const char *key, const char *text),
                      void *self, gl_error *err);

/* Inserts or replaces the run with that key, atomically. Unless the run failed, it supersedes the
 * other runs of its place (store_place()). Errors: GL_EINPUT (staleness beyond
 * STORE_MAX_STALENESS), GL_EINTERNAL (another recipe has this key), GL_EIO. */
gl_status store_put_run(store *s, const run_record *run, gl_error *err);
/* Returns 1 if a run with that key and canonical recipe is finished (done or diverged). Returns 0
 * also if the study cannot be read: the run is then repeated, and storing it reports the error. */
int store_has_finished(store *s, const char *key, const char *recipe);
/* Stores the tuned learning rate of an algorithm, with its score. */
gl_status store_put_tuned(store *s, const char *study, const char *algorithm, double lr,
                          double score, gl_error *err);
/* --- scores of tuning runs --- */

/* The score of a tuning run, and its wall time, which affects no result. Scores are stored apart
 * from the study's own runs: a restarted sweep reuses them, and tables and figures do not show them
 * as results. */
typedef struct score_record {
  const char *key, *recipe; /* of the run, as in run_record */
  double score;
  double wall_s;        /* NaN: unknown */
  const char *finished; /* time, as in run_record; NULL: unknown */
} score_record;

/* Stores a score and replaces an older one with the same key. */
gl_status store_put_score(store *s, const score_record *r, gl_error *err);
/* Returns 1 and sets *score if the score is stored; otherwise returns 0 and leaves *score
 * unchanged. */
int store_get_score(store *s, const char *key, const char *recipe, double *score);

/* --- laboratory measurements --- */
/* The table `bias`: a record per algorithm, group size and pair of policies. */

/* NaN if a number does not apply: group_size of the population limit, cosine of a zero vector. */
typedef struct bias_record {
  const char *algorithm, *method;
  double group_size, kl_exact, kl_exact_qp, staleness, groups;
  double bias, cosine, scaled_bias, variance, mse, scaled_mse, snr;
  double iw_mean, iw_variance, aw_variance, ess;
  const char *study; /* study and ordinal are set by the store */
  int64_t ordinal;
} bias_record;

/* Provenance of a study's measurements; it affects no export of them. */
typedef struct bias_making {
  const run_provenance *provenance; /* NULL: unknown */
  const char *finished;             /* time, as in run_record; NULL: unknown */
  double wall_s;                    /* NaN: unknown */
} bias_making;

/* Replaces the records of that study by records[n], in this order, atomically. */
gl_status store_put_bias(store *s, const char *study, const bias_record *records, size_t n,
                         const bias_making *making, gl_error *err);

/* --- operations on studies --- */

/* Merges the runs and tuned rates of another study file into this one, atomically. A finished run
 * replaces a failed one. Errors: GL_EINPUT if a run that both have finished differs in any table,
 * or if tuned rates differ. */
gl_status store_merge(store *into, const char *path, gl_error *err);

/* Writes a table of core/store/export.h as csv, tsv or jsonl (core/base/records.h), in the export
 * order. Errors: GL_EINPUT (unknown name), GL_EIO (damaged study, or writing failed). */
gl_status store_export(store *s, const char *table, const char *format, FILE *to, gl_error *err);

/* The SQLite connection, for read-only queries in analysis/. */
struct sqlite3 *store_handle(store *s);
/* SQL that selects these columns of a table called `alias` in the query, in this order; NULL for
 * columns that the file's table lacks. schema: "main", or the name of an attached file. On the
 * heap, NULL if out of memory. */
char *store_columns(store *s, const char *schema, const char *table, const char *alias,
                    const char *const *names, size_t n);

/* --- plans --- */
/* Plans: the recipes that were swept into the file and the cells they request, so that an
 * unfinished study can be recognised.
 *
 * A cell's place is the hash of its recipe with tuned fields set to null (`tune` chooses learning
 * rates). Without tuned fields it equals the key. If another value is tuned later, the cell is run
 * again: the new run takes the place and supersedes the old one, which stays in the file but is
 * omitted from analyses and exports of results. */

enum { STORE_PLACE_SIZE = 33 };
/* Computes the place of a cell. recipe: its canonical JSON; chosen: the JSON object of its tuned
 * fields ({"optimizer.lr":0.1}; values are ignored; NULL: none); meaning: the version of recipes'
 * meaning. Errors: GL_EIO if either is not JSON. */
gl_status store_place(char place[STORE_PLACE_SIZE], const char *recipe, const char *chosen,
                      int64_t meaning, gl_error *err);
/* The text that is hashed to a cell's key: "meaning 2: {…}". On the heap, NULL if out of memory. */
char *store_identity(const char *recipe, int64_t meaning);

/* A cell of the grid, or a tuning run. */
typedef struct planned_cell {
  int32_t tuning;        /* 1: a tuning run, whose `place` is its key */
  const char *place;     /* for a cell of the grid: store_place() */
  int64_t ordinal;       /* position in its grid */
  const char *algorithm; /* shown name */
  uint64_t seed;
  const char *swept; /* as in run_record */
  const char *study; /* set by the store */
} planned_cell;

typedef struct study_plan {
  const char *study;
  const char *recipe;   /* canonical JSON of the whole recipe, with its sweep */
  size_t shard, shards; /* this file has cells shard, shard + shards, … of the grid; 0 of 1: all */
  const planned_cell *cells; /* [n] cells of the whole grid, whatever the shard */
  size_t n;
  int replaces; /* 1: replaces the study's earlier plan; 0: adds to it */
} study_plan;

/* Stores the plan, atomically. Without `replaces`, writes nothing if all of it is already stored.
 */
gl_status store_put_plan(store *s, const study_plan *plan, gl_error *err);

/* The progress of a study. Cells are counted by place. */
typedef struct study_progress {
  size_t planned;                /* cells of the grid; 0: unknown */
  size_t done, diverged, failed; /* runs that are not superseded, planned or not */
  size_t missing;                /* planned, but neither done nor diverged */
  size_t superseded;             /* runs replaced by another run of their place */
  size_t tuning_planned, tuning_known;
  size_t shards,
      shards_missing; /* shards 0: not sharded; shards_missing: shards that were never merged */
  size_t first_missing_shard; /* if shards_missing > 0 */
} study_progress;
/* Reads the progress of one study of the file. All zeros if the file has no study of that name. */
gl_status store_progress(store *s, const char *study, study_progress *out, gl_error *err);

/* The names of all studies with runs or a plan in the file, sorted: an array of *n in one heap
 * block for the caller to free. *names is NULL if there are none. */
gl_status store_studies(store *s, char ***names, size_t *n, gl_error *err);

/* Calls each() for every planned cell without a finished run, in grid order; each() returns 0 to
 * stop. The cell's strings are valid during the call. */
gl_status store_missing(store *s, const char *study,
                        int (*each)(void *self, const planned_cell *cell), void *self,
                        gl_error *err);

/* Calls each() with the tuned values of each algorithm of the study, from its runs that are not
 * superseded: a JSON object of fields and values, {"optimizer.lr":0.1}. Algorithms are sorted by
 * name; each has one entry, unless the study contains several sweeps. Texts are valid during the
 * call; each() returns 0 to stop. */
gl_status store_choices(store *s, const char *study,
                        int (*each)(void *self, const char *algorithm, const char *chosen),
                        void *self, gl_error *err);

/* Calls each() for the recipes that were swept into the study, as study_plan has them. The text is
 * valid during the call; it returns 0 to stop. */
gl_status store_recipes(store *s, const char *study, int (*each)(void *self, const char *recipe),
                        void *self, gl_error *err);

/* Makes the finished run with that key take its place again. Used if a sweep finds the run in the
 * file after another tuned value had superseded it. */
gl_status store_take_place_again(store *s, const char *key, gl_error *err);

/* --- provenance and cost of runs --- */
/* Provenance and cost of runs, and everything stored about one run. Wall-clock data is only
 * available here, not in exports of results. Functions call a callback for each record, which
 * returns 0 to stop. Strings are valid during the call and come from an untrusted file. */

/* Runs and laboratory measurements with the same provenance: the same program and command on the
 * same kind of machine. */
typedef struct store_origin {
  size_t runs;
  size_t measured;          /* number of laboratory studies */
  int known;                /* 0: provenance unknown; then only the version is set in `how` */
  run_provenance how;       /* unknown texts are "" */
  const char *first, *last; /* when the first and the last of them finished; NULL: unknown */
} store_origin;
/* Calls each() for every origin, most runs first. Measurements without provenance are omitted. */
gl_status store_origins(store *s, int (*each)(void *self, const store_origin *origin), void *self,
                        gl_error *err);

/* Wall time and memory of all runs of an algorithm in a study. */
typedef struct store_cost {
  const char *study, *algorithm;
  size_t runs;
  double wall_s, median_s, largest_s; /* sum, median and maximum of the runs' wall times */
  int64_t peak_bytes;                 /* maximum over the runs' processes; < 0: unknown */
  size_t seeds;                       /* number of distinct seeds */
  uint64_t least_seed, largest_seed;
} store_cost;
/* Calls each() for every algorithm, ordered by study and by position in the grid. */
gl_status store_costs(store *s, int (*each)(void *self, const store_cost *cost), void *self,
                      gl_error *err);

/* One run without its tables. Missing numbers are NAN, missing texts NULL or "". */
typedef struct store_run {
  const char *key, *place, *study, *algorithm, *swept, *recipe;
  const char *chosen;    /* NULL: nothing was tuned */
  const char *in_effect; /* cfg_record_end(); NULL: unknown */
  int64_t ordinal, meaning;
  uint64_t seed;
  double lr, wall_s;
  const char *status, *reason, *code_version, *machine;
  const char *finished;      /* NULL: unknown */
  const char *provenance;    /* hash of the provenance; NULL: unknown */
  int64_t peak_bytes;        /* < 0: unknown */
  run_provenance how;        /* its hash is "" if unknown */
  const char *superseded_by; /* key of the run that superseded this one; NULL: none */
  size_t n_steps, n_evals;
  double eval_first, eval_best, eval_last;
} store_run;
/* Finds the run whose key begins with `prefix` and calls found(). Errors: GL_EINPUT if there is no
 * such run, or several, which the message lists. */
gl_status store_find_run(store *s, const char *prefix, void (*found)(void *self, const store_run *),
                         void *self, gl_error *err);

/* --- repair --- */
/* Repair: removes damage so that the rest of the study can be used. store_check() describes the
 * damage. */

/* The number of records removed: runs, with all their records, and records of tables that belong to
 * no run. */
typedef struct store_removed {
  size_t runs;
  size_t orphans; /* records whose run was missing */
  size_t tuned, tuning_scores, bias, sweeps, plan, superseded, provenance;
} store_removed;

/* Removes every damaged record of a study that is open for writing, in one transaction, and counts
 * the removed records. If one laboratory measurement is damaged all are removed, because its study
 * is unknown. If records of the table superseded were lost, the last run of a place supersedes the
 * others. Errors: GL_EIO, with nothing changed, if the structure of the file is damaged; use
 * store_salvage() then. */
gl_status store_repair(store *s, store_removed *out, gl_error *err);

/* What store_salvage() found. */
typedef struct store_salvaged {
  size_t runs;      /* runs copied */
  size_t lost_runs; /* runs found but damaged; other runs may not have been found */
  size_t lost;      /* the same for records of tables that belong to no run, and 1 more if the table
                       of runs could not be read to its end: 0 and 0 where nothing was lost */
} store_salvaged;

/* Copies all undamaged records of the study at `from` that can be read into a new study at `to`,
 * which is renamed to `to` when complete. Errors: GL_EINPUT if `to` exists, GL_EIO if even the
 * beginning of `from` cannot be read. */
gl_status store_salvage(const char *from, const char *to, store_salvaged *out, gl_error *err);

#endif
