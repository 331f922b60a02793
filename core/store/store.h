/* Results: one SQLite file, one writer. Its format is STORE_FORMAT; files of
 * older ones are refused.
 *
 * Tables: runs (a record per finished cell), steps (a record per learner update), evals, set_evals
 * (the same by evaluation set and by halves of sets, where a recipe asks for them), staleness
 * (a histogram per run), fates (what became of drawn responses, where clock and learner are
 * coupled), clock (the schedule's throughput and utilisation per run), tuned (chosen learning
 * rates), tuning_scores, bias (measurements of the exact laboratory), laboratory (how these came
 * about), sweeps (the recipes that were swept into the file), plan (the cells that these recipes
 * ask for), superseded (runs whose place another run has taken), provenance (how runs came about),
 * seals (how many records the tables have that do not belong to runs). Column names of steps are
 * those of core/base/metrics.h. A run is inserted whole in one transaction or not at all; a failed
 * or diverged run is a record with its status and reason.
 *
 * Everything is read and written by column name. A metric that a file does not have is NULL when it
 * is read, and is added when the file is opened for writing; NULL is also what "does not apply" is
 * stored as.
 *
 * Every file is read as if a stranger had made it. Its tables must be those of a study
 * (core/store/schema.c says which values each column may hold), and what is read is compared with
 * the checksums that were written with it (core/store/sums.c): a damaged study is refused with the
 * place of the damage, never read as another one.
 *
 * Exported tables (core/store/export.h) are ordered by study, place in the grid, key and step, and
 * are byte-identical however the study was executed; only execution, provenance and libraries,
 * which are asked for by name, say when and where runs were made. Fields in which runs differ
 * (core/config/axes.h) have columns of their own in exports, named by the fields' paths; no two
 * columns have the same name.
 */
#ifndef GEPOLAB_CORE_STORE_STORE_H
#define GEPOLAB_CORE_STORE_STORE_H

#include "core/base/clock_record.h"
#include "core/base/error.h"
#include "core/base/metrics.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct sqlite3;
typedef struct store store;

enum { STORE_FORMAT = 7 }; /* PRAGMA user_version of the file */

/* The largest staleness that a study keeps, in versions: its histogram has a place for each value.
 */
enum { STORE_MAX_STALENESS = 10000000 };

typedef struct step_record {
  int64_t step;    /* 1-based learner update */
  int32_t sampler; /* of the first batch trained */
  double time_s;   /* simulated time at the end of the update */
  double wait_s;   /* simulated time the learner idled before it */
  double metric[METRIC_COUNT];
} step_record;

typedef struct eval_record {
  int64_t step; /* 0: before the first update */
  double time_s;
  double eval_score;
} eval_record;

/* One part of an evaluation (core/rl/evaluation_sets.h); the score of the first whole set is the
 * eval_score of that step. */
enum { STORE_SET_NAME_SIZE = 64 };
typedef struct set_eval_record {
  int64_t step;
  double time_s;
  double score;  /* NaN: not a number any more */
  int32_t place; /* of the set in the recipe's list, from 0 */
  int32_t half;  /* 0: all its problems; 1: every other one from the first; 2: the others */
  char set[STORE_SET_NAME_SIZE];
} set_eval_record;

/* What became of some responses that a run's samplers drew, and what they were: of one fate, of
 * prompts of one quarter, of 2^k to 2^(k + 1) - 1 tokens. */
enum { STORE_FATE_SIZE = 16, STORE_QUARTERS = 4 };
typedef struct fate_record {
  char fate[STORE_FATE_SIZE]; /* unit_fate_name() of sim/schedule.h */
  int32_t quarter;            /* of the run's prompts by the mean reward of all that was drawn for
                                 them, from the lowest, 1, to the highest, 4 */
  int64_t tokens_from;        /* 2^k */
  int64_t responses;
  double tokens, reward; /* sums */
} fate_record;

typedef enum run_status { RUN_DONE, RUN_DIVERGED, RUN_FAILED } run_status;
/* "done", "diverged" or "failed". */
const char *run_status_name(run_status status);
/* 1 and *status if it is the name of one. */
int run_status_named(const char *name, run_status *status);

/* How a run came about. Exports that must not depend on the execution leave it out. */
typedef struct run_provenance {
  const char *version;   /* of gepolab */
  const char *source;    /* the commit the program was built from, in hex; "": not known */
  int32_t dirty;         /* 1: built from files that differed from it; 0: not; -1: not known */
  const char *command;   /* the command line, quoted for a shell */
  const char *processor; /* "AMD EPYC 9B14, 2 threads" */
  const char *system;    /* "Linux x86_64" */
  const char *compiler;  /* "gcc 12.2.0" */
  const char *libraries; /* a JSON object of versions: {"GSL":"2.7.1", …} */
  const char *hash;      /* set by the store: its key */
} run_provenance;

typedef struct run_record {
  const char *key;       /* 32 hex digits: hash of the canonical cell recipe */
  const char *place;     /* store_place() below; NULL: as that says */
  int64_t ordinal;       /* position in the study's grid: the export order */
  const char *study;     /* recipe's name */
  const char *algorithm; /* shown name */
  const char *swept;     /* canonical JSON of the fields that the sweep named, with this cell's
                            values, without algorithm and seed: {"cluster.max_delay":600} */
  const char *chosen;    /* likewise of the fields chosen for it beforehand, as by `tune`:
                            {"optimizer.lr":0.1}; NULL: none */
  const char *recipe;    /* canonical JSON of the whole cell */
  const char *in_effect; /* JSON of the value and origin of every field (core/config/record.h);
                            NULL: not known */
  int64_t meaning;       /* RECIPE_MEANING of the program that made it */
  const char *code_version;
  const char *machine;
  uint64_t seed;
  double lr; /* optimizer.lr, its default included */
  run_status status;
  const char *reason; /* "" when done */
  double wall_s;
  const run_provenance *provenance; /* NULL: not known */
  const char *finished;             /* when, as "2026-11-22T08:30:00Z"; NULL: not known */
  int64_t peak_bytes;               /* largest resident memory of its process; < 0: not known */
  clock_record clock;
  const step_record *steps;
  size_t n_steps;
  const eval_record *evals;
  size_t n_evals;
  const set_eval_record *set_evals; /* [n_set_evals]: step by step, each in one order of parts */
  size_t n_set_evals;
  const uint64_t *staleness; /* histogram, index = staleness */
  size_t n_staleness;
  const fate_record *fates; /* [n_fates] none twice */
  size_t n_fates;
} run_record;

typedef enum store_mode { STORE_READ, STORE_WRITE } store_mode;

/* STORE_WRITE creates the file if needed, takes the single writer's lock and refuses a second
 * writer by name. Errors say full disk, read-only file system or not a gepolab study as such. path
 * is the name of a file and nothing else: what SQLite would take for a database in memory or a URI,
 * and what is no regular file, is refused. */
gl_status store_open(store **out, const char *path, store_mode mode, gl_error *err);
/* As store_open with a SQLite VFS by name, for fault injection in tests. */
gl_status store_open_vfs(store **out, const char *path, store_mode mode, const char *vfs,
                         gl_error *err);
void store_close(store *s);
/* 1 if a process, this one included, has the file at path open for writing; 0 also where the
 * system does not say. */
int store_is_being_written(const char *path);

/* What a writer does while readers of other processes hold the file. */
typedef struct store_waiting {
  void (*tell)(void *self,
               const char *text); /* called once, after two seconds; NULL: says nothing */
  int (*stops)(void *self);       /* asked again and again: 1 gives up; NULL: never */
  double longest_s;               /* gives up after so many seconds; 0: 60 */
  void *self;
} store_waiting;
void store_set_waiting(store *s, store_waiting waiting);

/* From here to store_end_reading() all queries see one state of the file. Nobody can write to it
 * meanwhile, so a caller must not write to a pipe or terminal in between: its reader may pause.
 * Pairs may be nested: the outermost counts. */
gl_status store_begin_reading(store *s, gl_error *err);
void store_end_reading(store *s);
/* Compares these tables (ended by NULL) with their checksums, and the runs if any table belongs to
 * them: GL_EIO naming the table and the run of the first damage. NULL: all tables. Call it between
 * store_begin_reading() and what is read. */
gl_status store_verify(store *s, const char *const *tables, gl_error *err);
/* Looks for every damage there is: of the file's structure, of each record, of keys that are not
 * their recipes' hashes, of records that belong to nothing. Each is reported to found(), with the
 * run's key where it is a run's, else NULL. GL_OK however many are found. */
gl_status store_check(store *s, void (*found)(void *self, const char *key, const char *text),
                      void *self, gl_error *err);
/* Removes the run of that key with all its records, so that a sweep makes it again. */
gl_status store_remove_run(store *s, const char *key, gl_error *err);

/* Inserts or replaces the run with that key, atomically. Another run of its place
 * (store_place()) is superseded. */
gl_status store_put_run(store *s, const run_record *run, gl_error *err);
/* 1 if a run with that key and the same canonical recipe is finished (done or diverged). 0 also
 * where the study cannot be read: the run is then made again, and putting it says what is wrong. */
int store_has_finished(store *s, const char *key, const char *recipe);
/* The learning rate chosen for an algorithm, with its score. */
gl_status store_put_tuned(store *s, const char *study, const char *algorithm, double lr,
                          double score, gl_error *err);
/* --- scores of tuning runs --- */
/* Kept apart from the study's own runs: a restarted sweep does not repeat them, and no table or
 * figure mistakes them for results. */

/* The score of a tuning run, and its wall time, which changes no result. */
typedef struct score_record {
  const char *key, *recipe; /* of the run, as of run_record */
  double score;
  double wall_s;        /* NaN: not known */
  const char *finished; /* when, as of runs; NULL: not known */
} score_record;

/* Keeps it, replacing an older one of the key. */
gl_status store_put_score(store *s, const score_record *r, gl_error *err);
/* 1 with *score set if there is one; 0 otherwise, *score untouched. */
int store_get_score(store *s, const char *key, const char *recipe, double *score);

/* --- what `gepolab lab bias` measured --- */
/* The table `bias`: a record per algorithm, group size and pair of policies. */

/* NaN where a number does not apply: group_size of the population limit, cosine of a zero vector.
 */
typedef struct bias_record {
  const char *algorithm, *method;
  double group_size, kl_exact, kl_exact_qp, staleness, groups;
  double bias, cosine, scaled_bias, variance, mse, scaled_mse, snr;
  double iw_mean, iw_variance, aw_variance, ess;
  const char *study; /* this and its place among the study's records: set by the store */
  int64_t ordinal;
} bias_record;

/* How the measurements of a study came about; it changes no export of them. */
typedef struct bias_making {
  const run_provenance *provenance; /* NULL: not known */
  const char *finished;             /* when, as of runs; NULL: not known */
  double wall_s;                    /* NaN: not known */
} bias_making;

/* Replaces the records of that study by records[n], in this order, atomically. */
gl_status store_put_bias(store *s, const char *study, const bias_record *records, size_t n,
                         const bias_making *making, gl_error *err);

/* --- whole studies --- */

/* Joins the runs and the chosen rates of another study file into this one, all or nothing. A run
 * both have finished must agree in every table, a rate both have chosen must be the same: GL_EINPUT
 * otherwise. A finished run takes the place of a failed one. */
gl_status store_merge(store *into, const char *path, gl_error *err);

/* Writes a table of core/store/export.h as csv, tsv or jsonl (core/base/records.h), in the export
 * order. GL_EINPUT for another name, GL_EIO where the study is damaged or writing fails. */
gl_status store_export(store *s, const char *table, const char *format, FILE *to, gl_error *err);

/* The connection, for analysis/ queries; read-only use. */
struct sqlite3 *store_handle(store *s);
/* SQL that selects these columns of a table called `alias` in the query, in this order: NULL for
 * those that the file's table does not have. schema: "main", or the name of an attached file. On
 * the heap, NULL if memory is short. */
char *store_columns(store *s, const char *schema, const char *table, const char *alias,
                    const char *const *names, size_t n);

/* --- what a study is to hold --- */
/* The recipes that were swept into it and the cells they ask for: with them, a study that is not
 * finished can say so.
 *
 * A cell's place is the hash of its recipe with the fields left open (null) that were chosen for it
 * beforehand, as `tune` chooses learning rates; of a cell without such fields it is the key. When
 * other values are chosen, the cell's runs are made again: the new run takes the place, and the old
 * one is superseded. It stays in the file, and neither analyses nor exports of results show it. */

enum { STORE_PLACE_SIZE = 33 };
/* The place of a cell: recipe is its canonical JSON, chosen the JSON object of the fields chosen
 * for it ({"optimizer.lr":0.1}; the values do not matter; NULL: none), meaning that of recipes.
 * GL_EIO if either is not JSON. */
gl_status store_place(char place[STORE_PLACE_SIZE], const char *recipe, const char *chosen,
                      int64_t meaning, gl_error *err);
/* The text whose hash is the key of a cell: "meaning 2: {…}". On the heap, NULL if memory is short.
 */
char *store_identity(const char *recipe, int64_t meaning);

/* A cell of the grid, or a tuning run. */
typedef struct planned_cell {
  int32_t tuning;        /* 1: a tuning run, whose `place` is its key */
  const char *place;     /* of a cell of the grid: store_place() */
  int64_t ordinal;       /* position in its grid */
  const char *algorithm; /* shown name */
  uint64_t seed;
  const char *swept; /* as of runs */
  const char *study; /* set by the store */
} planned_cell;

typedef struct study_plan {
  const char *study;
  const char *recipe;   /* canonical JSON of the whole recipe, with its sweep */
  size_t shard, shards; /* this file does cells shard, shard + shards, … of the grid; 0 of 1: all */
  const planned_cell *cells; /* [n]: of the whole grid, whatever the shard */
  size_t n;
  int replaces; /* 1: what was planned for the study before is forgotten; 0: added to */
} study_plan;

/* Keeps the plan, atomically. Writes nothing where all of it is known. */
gl_status store_put_plan(store *s, const study_plan *plan, gl_error *err);

/* How far a study is. Cells count by place. */
typedef struct study_progress {
  size_t planned;                /* cells of the grid; 0: the file does not say */
  size_t done, diverged, failed; /* of the runs that are not superseded, planned or not */
  size_t missing;                /* planned, and neither done nor diverged */
  size_t superseded;             /* runs whose place another run has taken */
  size_t tuning_planned, tuning_known;
  size_t shards, shards_missing; /* 0: not in parts; parts of the grid that were never joined */
  size_t first_missing_shard;    /* if shards_missing > 0 */
} study_progress;
/* Of one study of the file. All zeros for a name that it does not have. */
gl_status store_progress(store *s, const char *study, study_progress *out, gl_error *err);

/* The names of all studies that the file has runs or a plan of, in the order of their names; on the
 * heap, *n of them, one block to free. *names is NULL where there are none. */
gl_status store_studies(store *s, char ***names, size_t *n, gl_error *err);

/* Tells the planned cells that have no finished run, in grid order; each() returns 0 to stop. The
 * cell's strings are valid during the call. */
gl_status store_missing(store *s, const char *study,
                        int (*each)(void *self, const planned_cell *cell), void *self,
                        gl_error *err);

/* Tells what was chosen for each algorithm of the study, by its runs that are not superseded: the
 * JSON object of fields and values, {"optimizer.lr":0.1}, in order of the algorithms' names. An
 * algorithm has one, but for a study that holds several sweeps. The texts are valid during the
 * call; each() returns 0 to stop. */
gl_status store_choices(store *s, const char *study,
                        int (*each)(void *self, const char *algorithm, const char *chosen),
                        void *self, gl_error *err);

/* Makes the finished run of that key the one of its place, as when a sweep finds it in the file
 * while another choice had taken its place since. */
gl_status store_take_place_again(store *s, const char *key, gl_error *err);

/* --- what it says of its runs beside their results --- */
/* How they came about, what they cost, and all that is kept of one of them. Wall-clock facts are
 * here and in no export. Each function calls a function of the caller for each record, which
 * returns 0 to stop; strings are valid during that call, and come out of a file that somebody else
 * may have written. */

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

/* Wall time and memory of an algorithm's runs: all those of the study that are in the file. */
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

/* One run, whole but for its tables. Numbers are NAN, and texts NULL or "", where the file has
 * none. */
typedef struct store_run {
  const char *key, *place, *study, *algorithm, *swept, *recipe;
  const char *chosen;    /* NULL: nothing was chosen for it */
  const char *in_effect; /* core/config/record.h; NULL: not known */
  int64_t ordinal, meaning;
  uint64_t seed;
  double lr, wall_s;
  const char *status, *reason, *code_version, *machine;
  const char *finished;      /* NULL: not known */
  const char *provenance;    /* its hash; NULL: not known */
  int64_t peak_bytes;        /* < 0: not known */
  run_provenance how;        /* its hash is "" where it is not known */
  const char *superseded_by; /* the key of the run that took its place; NULL: none did */
  size_t n_steps, n_evals;
  double eval_first, eval_best, eval_last;
} store_run;
/* The run whose key begins with `prefix`. GL_EINPUT if there is none, or if there are several,
 * which are named. */
gl_status store_find_run(store *s, const char *prefix, void (*found)(void *self, const store_run *),
                         void *self, gl_error *err);

/* --- taking damage out --- */
/* So that the rest of the study can be used again. store_check() says what the damage is. */

/* What was taken out, a number of records for each table: of runs, with all that belongs to them,
 * and of the tables that belong to no run. */
typedef struct store_removed {
  size_t runs;
  size_t orphans; /* records that belonged to no run */
  size_t tuned, tuning_scores, bias, sweeps, plan, superseded, provenance;
} store_removed;

/* Removes every damaged record of a study that is open for writing, in one transaction, and counts
 * what it removed. Of the measurements of the laboratory all go if one is damaged, because nothing
 * says which study it was of. Where it is no longer known which of several runs of a place the
 * others superseded, it is the one that was put last. GL_EIO, and nothing is changed, if the
 * structure of the file itself is damaged: store_salvage() is for that. */
gl_status store_repair(store *s, store_removed *out, gl_error *err);

/* What store_salvage() found. */
typedef struct store_salvaged {
  size_t runs;      /* copied */
  size_t lost_runs; /* seen, but not as they were written; more may not have been seen */
  size_t lost;      /* likewise of the records of tables that belong to no run */
} store_salvaged;

/* Copies what can be read of the study at `from`, and is as it was written, into a new study at
 * `to`, which gets its name when it is whole: GL_EINPUT if there is such a file. GL_EIO if even the
 * beginning of the file cannot be read. */
gl_status store_salvage(const char *from, const char *to, store_salvaged *out, gl_error *err);

#endif
