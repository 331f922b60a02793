/* Evaluates every algorithm on the batches of a recorded run. */
#ifndef GEPOLAB_EXPERIMENTS_POLICY_WHATIF_H
#define GEPOLAB_EXPERIMENTS_POLICY_WHATIF_H

#include "analysis/plot/page.h"
#include "core/policy/policy.h"

/* Most bytes of a line: an update of 64 groups of 8 responses of 1,024 tokens takes some 20 MiB. */
#define WHATIF_MOST_LINE ((size_t)1 << 28)

/* The reported quantities of an algorithm's evaluation of a batch. */
typedef enum whatif_quantity {
  WHATIF_WEIGHT_MEAN,
  WHATIF_WEIGHT_MAX,
  WHATIF_WEIGHT_VARIANCE,
  WHATIF_ESS,
  WHATIF_CLIP_FRACTION,
  WHATIF_AW_VARIANCE,
  WHATIF_COEFFICIENT_NORM, /* sqrt(sum c^2) over tokens, c = d(-loss)/d logp: the norm of the
                              gradient if tokens' scores were orthonormal */
  WHATIF_IDLE_TOKENS,      /* fraction of tokens whose coefficient is 0 */
  WHATIF_LOSS,
  WHATIF_QUANTITIES
} whatif_quantity;
const char *whatif_name(whatif_quantity q);    /* "ess" */
const char *whatif_heading(whatif_quantity q); /* of a column, at most 9 characters */

/* Finite values, and how many were not. */
typedef struct whatif_moments {
  size_t n, n_infinite;
  double mean, least, most; /* NaN where n is 0 */
} whatif_moments;

typedef struct whatif_row {
  policy_algorithm algorithm;
  size_t n, n_refused;
  char why[256]; /* why the first batch that it refuses is refused; "": none is */
  whatif_moments of[WHATIF_QUANTITIES];
  whatif_moments ess_on_policy; /* of the updates that policy_is_on_policy() */
} whatif_row;

/* Of batches of one staleness, rounded: their distance from the learner, whatever the algorithm. */
enum { WHATIF_MOST_STALENESS = 256 };
typedef struct whatif_age {
  size_t n;
  whatif_moments kl_token, kl_response, log_variance; /* kl_k3, kl_k3_seq, log_iw_variance_pq */
} whatif_age;

typedef struct whatif {
  whatif_row *row; /* [n_rows] */
  size_t n_rows;
  size_t n_batches, n_groups, n_responses, n_tokens;
  double first_step, last_step, first_time, last_time; /* NaN: not in the log */
  whatif_age age[WHATIF_MOST_STALENESS + 1];           /* the last one: that and more */
  size_t n_unknown_age;
  size_t n_incomplete; /* files whose last line was cut off, which is left out */
  size_t n_restarts;   /* records of a smaller step than the one before: of another run */
  int keeps;    /* set to 1 after whatif_init(): numbers of every update are kept, for figures */
  double *kept; /* [n_batches] updates as analysis/figures/recorded.h has them; NULL: none */
  size_t kept_room;
} whatif;

/* An algorithm from its name or from {base: NAME, field: value, …}, with n assignments of fields.
 */
gl_status whatif_algorithm(policy_algorithm *out, const char *text, const char *const *overrides,
                           size_t n, gl_error *err);

/* Rows for the algorithms that whatif_algorithm() reads (n_names 0: all published ones). Release
 * with whatif_fini() in any case. GL_EINPUT for a name that there is none of, with the nearest one.
 */
gl_status whatif_init(whatif *w, const char *const *names, size_t n_names, gl_error *err);
void whatif_fini(whatif *w);
/* Adds every record of a file of JSON Lines ("-": standard input), one line at a time in memory.
 * Empty lines are skipped, and a last line that was cut off within its object is left out. GL_EIO;
 * GL_EINPUT with file:line:column for what is no record, lines above WHATIF_MOST_LINE and files
 * without any. */
gl_status whatif_read(whatif *w, const char *path, gl_error *err);
/* Adds the records of text[size], called `name` in messages. */
gl_status whatif_read_text(whatif *w, const char *text, size_t size, const char *name,
                           gl_error *err);

/* Draws what was kept (figures_of_recorded, analysis/figures/recorded.h), without the algorithms
 * that took no batch. */
gl_status whatif_draw(const whatif *w, const figure_request *q, gl_error *err);

#endif
