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
 * which are asked for by name, say when and where runs were made. What tells runs apart
 * (core/config/axes.h) stands in exports in columns of its own, named by the fields' paths; no two
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

/* How a run came about. It stands in no export that must be the same however a study was executed.
 */
typedef struct run_provenance {
  const char *version;   /* of gepolab */
  const char *source;    /* the commit the program was built from, in hex; "": not known */
  int dirty;             /* 1: built from files that differed from it; 0: not; -1: not known */
  const char *command;   /* the command line, quoted for a shell */
  const char *processor; /* "AMD EPYC 9B14, 2 threads" */
  const char *system;    /* "Linux x86_64" */
  const char *compiler;  /* "gcc 12.2.0" */
  const char *libraries; /* a JSON object of versions: {"GSL":"2.7.1", …} */
} run_provenance;

typedef struct run_record {
  const char *key;       /* 32 hex digits: hash of the canonical cell recipe */
  const char *place;     /* core/store/plan.h; NULL: as store_place() says */
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
/* 1 if a process, this one included, has the file at path open for writing; 0 also where that
 * cannot be told. */
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

/* From here to store_end_reading() all queries see one state of the file. Nothing can be written
 * meanwhile, so no output that somebody might pause stands between the two. Pairs may stand inside
 * each other: the outermost counts. */
gl_status store_begin_reading(store *s, gl_error *err);
void store_end_reading(store *s);
/* Compares these tables (ended by NULL) with their checksums, and the runs if any table belongs to
 * them: GL_EIO naming the table and the run of the first damage. NULL: all tables. Call it between
 * store_begin_reading() and what is read. */
gl_status store_verify(store *s, const char *const *tables, gl_error *err);
/* Looks for every damage there is: of the file's structure, of each record, of keys that are not
 * their recipes' hashes, of records that belong to nothing. Each is told to found(), with the run's
 * key where it is a run's, else NULL. GL_OK however many are found. */
gl_status store_check(store *s, void (*found)(void *self, const char *key, const char *text),
                      void *self, gl_error *err);
/* Removes the run of that key with all its records, so that a sweep makes it again. */
gl_status store_remove_run(store *s, const char *key, gl_error *err);

/* Inserts or replaces the run with that key, atomically. It takes its place (core/store/plan.h):
 * another run that stood there is superseded. */
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

/* What a tuning run scored, and what it took, which changes no result. */
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

/* --- what `gepolab bias` measured --- */
/* The table `bias`: a record per algorithm, group size and pair of policies. */

/* NaN where a number does not apply: group_size of the population limit, cosine of a zero vector.
 */
typedef struct bias_record {
  const char *algorithm, *method;
  double group_size, kl_exact, kl_exact_qp, staleness, groups;
  double bias, cosine, scaled_bias, variance, mse, scaled_mse, snr;
  double iw_mean, iw_variance, aw_variance, ess;
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

#endif
