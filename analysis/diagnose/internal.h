/* Shared declarations of this folder, and private to it. */
#ifndef GEPOLAB_ANALYSIS_DIAGNOSE_INTERNAL_H
#define GEPOLAB_ANALYSIS_DIAGNOSE_INTERNAL_H

#include "analysis/diagnose/diagnose.h"
#include "analysis/statistics.h"
#include "core/base/arena.h"

/* --- sums of a token-level log: tokens.c --- */

/* Sums over tokens. */
typedef struct token_sums {
  double n, l, l2, k3; /* l = logp - logq, its square, k3 = exp(l) - l - 1 */
  double difference;   /* |p - q| */
  double far;          /* 1 where |p - q| > DIAGNOSE_FAR */
  double factor;       /* exp(|l|): NeMo-RL's multiplicative probability error */
} token_sums;
#define DIAGNOSE_FAR 0.2

/* Sums of a regression of y on x: n, sum x, sum x^2, sum y, sum xy. */
enum { LINE_SUMS = 5 };

/* Ways to count the staleness of an update from the lags of its tokens. */
typedef enum staleness_kind {
  STALENESS_TOKENS, /* mean over tokens */
  STALENESS_START,  /* lag of a response's first trained token, mean over responses */
  STALENESS_NEWEST, /* smallest lag of a response, mean over responses */
  STALENESS_OLDEST, /* largest lag of a response, mean over responses */
  STALENESS_MOST,   /* largest lag of a token */
  STALENESS_KINDS
} staleness_kind;

/* All members are doubles: an array of them is a table of doubles. */
typedef struct update_facts {
  double step;
  double groups, responses, tokens;
  double informative;    /* responses whose advantage is not 0 */
  double reward;         /* mean; NaN: not in the log */
  double tokens_squared; /* sum of squares of lengths */
  token_sums all;
  double k3_error, factor_error;     /* standard errors of their means, responses as clusters */
  double lag_line[LINE_SUMS];        /* regression sums of k3 on lag, over tokens of known lag */
  double factor_line[LINE_SUMS];     /* regression sums of exp(|l|) on lag */
  double length_line[LINE_SUMS];     /* regression sums of a response's length on its largest lag */
  double staleness[STALENESS_KINDS]; /* NaN: unknown */
  double dropped, dropped_tokens, dropped_tokens_squared; /* NaN: unknown */
  double improbable; /* wrong responses that are improbable under their group; NaN: unknown */
} update_facts;

/* Tokens of one lag in one update. */
typedef struct lag_cell {
  size_t update, lag;
  token_sums sums;
} lag_cell;

/* --- metrics of each algorithm: tokens.c --- */

typedef enum method_value {
  METHOD_ESS,
  METHOD_WEIGHT_MAX,
  METHOD_CLIPPED_POSITIVE,
  METHOD_CLIPPED_NEGATIVE,
  METHOD_GATED_POSITIVE,
  METHOD_GATED_NEGATIVE,
  METHOD_IMPROBABLE, /* number of improbable wrong responses none of whose tokens has a gradient */
  METHOD_VALUES
} method_value;

typedef struct method_facts {
  policy_algorithm algorithm;
  bool ran;
  size_t n, n_refused; /* batches: evaluated, and refused because they lack what it needs */
  char why[256];
  double *value; /* [n_updates][METHOD_VALUES] */
} method_facts;

/* --- series: series.c --- */

/* Those before SERIES_STALENESS are seconds. */
typedef enum series_role {
  SERIES_STEP_TIME, /* of a step of the trainer */
  SERIES_WAIT,      /* part of the step in which the trainer waits for responses */
  SERIES_GENERATE,
  SERIES_TRAIN,
  SERIES_TRAIN_PART, /* work of the learner that SERIES_TRAIN does not count: log-probabilities */
  SERIES_ASIDE, /* evaluations and checkpoints, which some trainers count as a part of the step */
  SERIES_SYNC,
  SERIES_ENVIRONMENT,
  SERIES_STALENESS, /* of any definition, see role_series.definition */
  SERIES_STALENESS_MOST,
  SERIES_DROPPED,        /* dropped responses or groups, whichever the log counts */
  SERIES_KEEP_RATE,      /* fraction of the generated responses or groups that is trained */
  SERIES_KL,             /* k3 per token */
  SERIES_DIFFERENCE,     /* mean |p - q| */
  SERIES_LOG_DIFFERENCE, /* mean |log p - log q|, nats */
  SERIES_ESS
} series_role;

/* A series of the log with a role: its updates in order of the step. */
typedef struct role_series {
  series_role role;
  const gathered_series *from;
  const char *definition; /* for staleness: name of the counter in core/base/staleness_counters.h
                             that defines it; NULL: none */
} role_series;

/* The first series with the role; NULL if the log has none. */
const role_series *series_of(const diagnosis *d, series_role role);
/* Whether series of this name are seconds of a step or of its parts. */
bool series_is_seconds(const char *name);

/* Parts of a step's duration. */
typedef enum speed_part {
  SPEED_GENERATION,
  SPEED_TRAINER,
  SPEED_SYNC, /* of the weights */
  SPEED_ENVIRONMENT,
  SPEED_PARTS
} speed_part;
/* Durations of a step and its parts in seconds, and ratios of them. */
typedef struct speed_facts {
  interval step, wait, part[SPEED_PARTS];
  bool is_known;                 /* the durations of the step and of at least two parts are known */
  bool is_inferred[SPEED_PARTS]; /* the part is not logged and follows from the others */
  bool is_hidden;                /* generation is shorter than a step, and not logged */
  bool is_serial;                /* the step is as long as its parts together */
  int longest_part;              /* a speed_part */
  interval overlap_limit; /* most that overlap could bring: sum of the parts / longest part */
  interval overlap_gain;  /* sum of the parts / step */
  interval wait_fraction, sync_fraction, environment_fraction, generation_fraction; /* of a step */
} speed_facts;
extern const char *const speed_part_names[SPEED_PARTS];
extern const series_role speed_part_roles[SPEED_PARTS]; /* of the series that logs the part */

/* Computes d->speed, and the divergence and its parts where only series have them. Errors:
 * GL_ENOMEM. */
gl_status facts_of_series(diagnosis *d, gl_error *err);

/* --- statistics over updates: facts.c, line_add() in tokens.c --- */

/* Computes statistics m of the column totals of sums[n][k]; NaN where they are undefined. */
typedef void block_statistic(const double *total, double *out);

enum { BLOCK_MOST = 8 };
typedef struct block_sums {
  const double *sums; /* [n][k] */
  size_t n, k;
  block_statistic *statistic;
  size_t m;        /* statistics; k and m are at most BLOCK_MOST */
  uint64_t entity; /* entity of the random stream (rng_stream_at) */
} block_sums;
/* Statistics out[m] of the columns' totals with intervals: circular block bootstrap over rows in
 * blocks of ceil(n^(1/3)) (Politis and Romano 1992; the length's order: Kuensch 1989). With fewer
 * than DIAGNOSE_FEWEST rows the ends are NaN. Errors: GL_ENOMEM. */
gl_status block_bootstrap(const block_sums *of, interval *out, gl_error *err);
/* out[0] = total[0] / total[1]; NaN without data. */
block_statistic block_ratio;
/* out[0] = standard deviation (ddof 0) from sums n, x, x^2. */
block_statistic block_deviation;
/* Input: LINE_SUMS sums. Output: intercept and slope. */
block_statistic block_line;
/* Parts of the mean k3 (or exp(|l|)): at lag 0, and what grows with the lag. */
typedef enum line_part {
  PART_FLOOR,             /* mean at lag 0; the intercept, at least 0, if no token has lag 0 */
  PART_SLOPE,             /* increase per version of lag */
  PART_AGE,               /* mean of y minus the floor */
  PART_MISMATCH_FRACTION, /* floor / mean, in [0, 1] */
  PART_AGE_FRACTION,
  LINE_PARTS
} line_part;
/* Computes the parts from rows [n][LINE_SUMS + 2], one for each update: the LINE_SUMS sums of k3
 * (y) against lag (x), then number and sum of k3 of the tokens at lag 0. If only a few updates have
 * such tokens, fewer than DIAGNOSE_FEWEST, what depends on them has no interval. Errors: GL_ENOMEM.
 */
gl_status divide_by_lag(const double *rows, size_t n, uint64_t entity, interval part[LINE_PARTS],
                        gl_error *err);
void line_add(double sums[LINE_SUMS], double x, double y, double weight);

/* Numbers of members of token_sums, and of the means in lag_facts that are computed from them. */
enum { TOKEN_SUMS = 7, TOKEN_MEANS = 6 };
block_statistic block_tokens;

/* --- facts of the whole log: facts.c --- */

typedef struct lag_facts {
  size_t lag;
  double tokens;
  /* mean k1, k3, standard deviation of l, mean |p - q|, fraction with |p - q| > DIAGNOSE_FAR, mean
   * exp(|l|) */
  interval k1, k3, spread, difference, far, factor;
} lag_facts;

/* How the floor was found. */
typedef enum floor_kind {
  FLOOR_UNKNOWN,
  FLOOR_LAG_0, /* mean of the tokens of lag 0 */
  FLOOR_LINE,  /* intercept of the regression on the lag */
  FLOOR_FRESH, /* every token has lag 0 */
  FLOOR_FIRST  /* mean of the run's first update, whose data are on-policy */
} floor_kind;

typedef struct divergence_facts {
  lag_facts all;
  lag_facts *lag; /* [n_lags] ascending, in `memory` of the diagnosis */
  size_t n_lags;
  double unknown_lag; /* tokens whose lag is not known */
  double not_finite;  /* tokens left out because a log-probability is missing or not finite */
  floor_kind how;
  const char *why; /* reason if how is FLOOR_UNKNOWN */
  interval part[LINE_PARTS];
  interval floor_factor; /* exp(|l|) at lag 0 */
  bool is_of_updates; /* computed from series: regression of an update's mean divergence on its mean
                         staleness */
} divergence_facts;

typedef struct staleness_facts {
  interval mean[STALENESS_KINDS], trend; /* trend: of STALENESS_OLDEST per 100 updates */
  double most;
  interval dropped_fraction; /* fraction of the generated responses that is dropped */
  interval kept_length, dropped_length, length_ratio;
  interval shift;         /* relative change of the mean length that dropping causes */
  interval length_by_lag; /* tokens a response is longer per version of its largest lag */
} staleness_facts;

/* Computes d->staleness and d->divergence. Errors: GL_ENOMEM. */
gl_status facts_of_tokens(diagnosis *d, gl_error *err);
/* An interval over updates of the mean of column `value` (NaN values are left out). */
gl_status facts_mean(const double *value, size_t n, size_t stride, uint64_t entity, interval *out,
                     gl_error *err);

/* --- algorithms: tokens.c --- */

/* The negative clip of gepo: wrong responses whose likelihood is below this fraction of the group
 * expectation count as improbable. */
#define DIAGNOSE_IMPROBABLE 0.8
gl_status methods_init(diagnosis *d, gl_error *err);
void methods_fini(diagnosis *d);

/* --- trainers: facts.c --- */

/* Fields of a trainer's log, settings, and what makes it log more. */
typedef struct trainer_info {
  const char *name, *title; /* title with the version that the names were looked up in */
  const char *logp, *logq, *versions, *rewards, *dropped; /* fields of its token-level log; NULL:
                                                             the log has none */
  const char *log_tokens, *log_versions, *log_times;      /* what to switch on; NULL: not known */
  const char *setting[CAUSE_COUNT]; /* the setting that acts on a cause; NULL: not known */
} trainer_info;
/* The trainer of the request, or that of the series; never NULL. */
const trainer_info *trainer_of(const diagnosis *d);

/* --- origins of numbers: origins.c --- */

/* The field of the log that a number comes from, and its lines. ref: number of these lines in the
 * list of sources, from 1; 0: not in the list. lines NULL: not known. Texts are borrowed. */
typedef struct origin {
  const char *field, *lines;
  size_t ref;
} origin;
enum { DIAGNOSE_POSITION_SIZE = 240 };

/* Lists the sources. Errors: GL_ENOMEM. */
gl_status sources_finish(diagnosis *d, gl_error *err);
origin origin_of_tokens(const diagnosis *d, const char *field);
origin origin_of_series(const diagnosis *d, const gathered_series *s, const char *field);
/* All sources of series; their lines are written to lines[size]. */
origin origin_of_all_series(const diagnosis *d, const char *name, char *lines, size_t size);
/* "run.jsonl:17-24", without the folders that all logs have in common; "step 3" where the lines are
 * not known. */
void position_of_update(char text[DIAGNOSE_POSITION_SIZE], const diagnosis *d, size_t u);
void position_of_value(char text[DIAGNOSE_POSITION_SIZE], const diagnosis *d,
                       const gathered_series *s, size_t i);
/* The cells `from` and `lines` of a row: the field with the number of its source, and its lines. */
void origin_cells(table *t, const origin *from);
/* The columns of these cells. */
#define ORIGIN_COLUMNS {"from", TABLE_TEXT, .head = "from"}, TABLE_KEY("lines", TABLE_TEXT)
void sources_table(table *to, const diagnosis *d);

/* --- findings: diagnose.c --- */

typedef struct cause_info {
  const char *name;
  const char *title;       /* "Sampler and learner disagree at equal weights" */
  const char *measured;    /* what is measured, with its unit */
  const char *limit_about; /* why this limit */
  const char *advice;      /* what to change, for any trainer */
  const char *instead;     /* what does not help, or what the change costs */
  bool is_speed;
} cause_info;
const cause_info *cause_about(diagnose_cause c);

/* Section 6: diagnose.c. */
gl_status warnings_section(table *to, const diagnosis *d, gl_error *err);

struct diagnosis {
  diagnose_request request;
  update_facts *update;
  log_position *place; /* [n_updates] */
  size_t n_updates;
  lag_cell *cell;
  size_t n_cells;
  method_facts *method;
  size_t n_methods;
  size_t value_room; /* updates that method[i].value has room for */
  double not_finite;
  size_t restarts, restart_at; /* restart_at: the update of the first one */
  const char **source;         /* [n_sources] texts that say which lines of the log the numbers are
                                from; in `memory` */
  size_t n_sources;
  size_t n_prefix;       /* bytes of the folders that all files have in common */
  bool has_token_source; /* source[0] is that of the token-level logs */
  policy_workspace *workspace;
  double *scratch; /* work arrays of a batch */
  size_t scratch_room;
  role_series *series;
  size_t n_series, n_all_series;
  const gathered *gathered; /* NULL: no series */
  speed_facts speed;
  divergence_facts divergence;
  staleness_facts staleness;
  interval informative; /* responses with a signal in an update */
  diagnose_finding finding[CAUSE_COUNT];
  size_t n_findings;
  arena memory;
};

#endif
