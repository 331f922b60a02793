/* What a training log says about staleness: how old the data are, what the age costs, what limits
 * the speed, and what to change. `gepolab diagnose` prints it (experiments/cli/cmd_diagnose.c).
 *
 *   diagnosis *d = NULL;
 *   status = diagnosis_new(&d, &request, err);
 *   for each batch of a token-level log
 *     status = diagnosis_add_batch(d, &batch, err);
 *   status = diagnosis_add_series(d, gathered, err);      for logs with a number for each step
 *   status = diagnosis_finish(d, err);                     intervals, findings, changes
 *   for (size_t s = 0; s < DIAGNOSE_SECTIONS; s++)
 *     status = diagnosis_section(document, d, s, err);
 *   diagnosis_free(d);
 *
 * One batch is in memory at a time; about 0.4 kB are kept for each update, and 60
 * bytes for each of its algorithms. Nothing is printed here.
 *
 * Formulas: paper/methods.md §5.6. l = log p - log q of a token: p is the learner's probability
 * when it trained the token, q the sampler's when it generated it. k1 = -l and k3 = exp(l) - l - 1
 * both estimate KL(q||p) per token. The lag of a token is the learner's version less the version
 * that generated it. Intervals are 95 % percentile intervals of a bootstrap over blocks of
 * consecutive updates, which keeps the correlation between updates; with fewer than DIAGNOSE_FEWEST
 * updates there are none. */
#ifndef GEPOLAB_ANALYSIS_DIAGNOSE_DIAGNOSE_H
#define GEPOLAB_ANALYSIS_DIAGNOSE_DIAGNOSE_H

#include "analysis/import/gather.h"
#include "analysis/statistics.h"
#include "core/base/table.h"
#include "core/policy/policy.h"

#include <stddef.h>

enum {
  DIAGNOSE_FEWEST = 5,    /* updates; with fewer there is no interval */
  DIAGNOSE_MOST_LAG = 64, /* larger lags are counted with this one */
  DIAGNOSE_CHANGES = 3    /* most changes that are proposed */
};

typedef struct diagnosis diagnosis;

/* A range of lines of a log. */
typedef struct log_position {
  const char *first_file, *last_file; /* NULL: not known */
  size_t first, last, n;              /* n: number of lines; 0 if the format has no lines */
} log_position;

/* One update of a token-level log. Pointers are borrowed. */
typedef struct diagnose_batch {
  const policy_input *in;
  log_position place; /* place.n 0: not known */
  double step;        /* NaN: not in the log */
  /* Responses that were generated and not trained (stale, masked or invalid), and their tokens:
   * sum and sum of squares of lengths. NaN: the log does not say. */
  double n_dropped, dropped_tokens, dropped_tokens_squared;
} diagnose_batch;

typedef struct diagnose_request {
  const char *trainer;               /* name of a trainer (diagnose_trainer_at); NULL: not known */
  const policy_algorithm *algorithm; /* the method that ran; NULL: not known */
  const char *rates; /* text of stored results of `analyze --table announcements`; NULL: no
                        warnings */
} diagnose_request;

/* Release with diagnosis_free(). The request's pointers are borrowed. Errors: GL_ENOMEM. */
gl_status diagnosis_new(diagnosis **out, const diagnose_request *request, gl_error *err);
void diagnosis_free(diagnosis *d); /* NULL is allowed */
/* Sets the trainer of the request after the log named it; NULL: not known. Borrowed. */
void diagnosis_set_trainer(diagnosis *d, const char *trainer);

/* Adds an update. Errors: GL_ENOMEM. */
gl_status diagnosis_add_batch(diagnosis *d, const diagnose_batch *batch, gl_error *err);

/* Adds the series of logs that have a number for each step (analysis/import). Studies are ignored.
 * The texts of `from` must live as long as the diagnosis. Errors: GL_ENOMEM. */
gl_status diagnosis_add_series(diagnosis *d, const gathered *from, gl_error *err);

/* Meanings of series. diagnosis_series() returns the first series with a meaning; NULL: the logs
 * have none. */
typedef enum diagnose_series_kind {
  DIAGNOSE_STEP_SECONDS, /* duration of a trainer step */
  DIAGNOSE_GENERATION_SECONDS,
  DIAGNOSE_TRAINER_SECONDS,
  DIAGNOSE_SYNC_SECONDS, /* copying weights to the samplers */
  DIAGNOSE_WAIT_SECONDS, /* the trainer waits for responses */
  DIAGNOSE_ENVIRONMENT_SECONDS,
  DIAGNOSE_STALENESS_MEAN,
  DIAGNOSE_STALENESS_MOST
} diagnose_series_kind;
const gathered_series *diagnosis_series(const diagnosis *d, diagnose_series_kind kind);

/* Computes intervals, findings and changes, after the last update and the last series. Errors:
 * GL_ENOMEM, GL_EINPUT (nothing that a diagnosis can use was added). */
gl_status diagnosis_finish(diagnosis *d, gl_error *err);

/* --- the page --- */

typedef enum diagnose_section {
  DIAGNOSE_READ,
  DIAGNOSE_STALENESS,
  DIAGNOSE_DIVERGENCE,
  DIAGNOSE_WEIGHTS,
  DIAGNOSE_SPEED,
  DIAGNOSE_WARNINGS,
  DIAGNOSE_CHANGES_SECTION,
  DIAGNOSE_SECTIONS
} diagnose_section;
const char *diagnose_section_id(diagnose_section s);      /* "staleness", its name in JSON */
const char *diagnose_section_heading(diagnose_section s); /* "2. Staleness" */

/* Writes the findings in a sentence to text[size], cut off if it is longer. Returns its length. */
size_t diagnosis_lead(const diagnosis *d, char *text, size_t size);

/* Fills an empty document (table_document) with a section. Errors: GL_ENOMEM. */
gl_status diagnosis_section(table *to, const diagnosis *d, diagnose_section s, gl_error *err);

/* --- findings --- */

/* Possible problems of a run, in the order of the rules in diagnose.c. */
typedef enum diagnose_cause {
  CAUSE_MISMATCH,    /* sampler and learner compute different probabilities with equal weights */
  CAUSE_AGE,         /* old weights generated the data, and the policy has moved since */
  CAUSE_RATE,        /* one update moves the policy too far */
  CAUSE_SMALL_BATCH, /* too few responses with a learning signal in an update */
  CAUSE_DISCARD,     /* responses that are dropped are longer than those that are trained */
  CAUSE_GENERATION,  /* the trainer waits for responses */
  CAUSE_SYNC,        /* copying weights to the samplers takes the time */
  CAUSE_ENVIRONMENT, /* tools, environments or rewards take the time */
  CAUSE_COUNT
} diagnose_cause;
/* "engine_mismatch". Exposed for its test. */
const char *diagnose_cause_name(diagnose_cause c);

typedef struct diagnose_finding {
  diagnose_cause cause;
  double severity; /* measured value / limit, at least 1 */
  interval measured;
  double limit;
} diagnose_finding;

/* Findings, worst first. Valid until the diagnosis is freed. Exposed for its test. */
size_t diagnosis_findings(const diagnosis *d, const diagnose_finding **out);

/* Writes a recipe of gepolab that shows the effect of change `at` (0: the first one proposed) to
 * text[size]. Errors: GL_EINPUT (there is no such change). */
gl_status diagnosis_recipe(const diagnosis *d, size_t at, char *text, size_t size, gl_error *err);

/* --- trainers --- */

/* Names that --trainer accepts; NULL past the end. */
const char *diagnose_trainer_at(size_t i);

#endif
