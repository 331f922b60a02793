/* libgepolab: policy optimisation under network delay, for programs other than `gepolab`.
 *
 *   algorithms   the published rows (gepo, grpo, gspo, ...) and any change of their fields
 *   policy       loss, coefficients, weights and diagnostics of a batch in the caller's own buffers
 *   laboratory   exact bias, variance and MSE of an estimator on given tables of probabilities
 *   simulation   the clock of a cluster: a recipe in, staleness, throughput and times out
 *   delay distributions   draws and quantiles of the distributions that recipes name
 *   statistics   interquartile mean, bootstrap, rank correlation, survival
 *
 * Conventions, for every function below unless its comment says otherwise.
 *
 * Errors: what can fail returns a gepolab_status. Where it is not GEPOLAB_OK, the caller's
 * gepolab_error (which may be NULL) holds the same status and one sentence: what, where, remedy; on
 * success it is left as it was. Any function may return GEPOLAB_ENOMEM. Nothing is printed, nothing
 * exits. A pointer is not NULL unless its comment allows it, and text ends with a zero.
 *
 * Ownership: what a ..._new() function or gepolab_simulate() writes to *out belongs to the caller,
 * who releases it with the matching ..._free() (which takes NULL, too); after a failure *out is
 * NULL. Everything else is the caller's memory, read or written during the call and kept by none.
 * Texts that are returned live as long as the object that they are asked of; static ones for ever.
 *
 * Threads: no state is global, and all functions may run at the same time on different objects. A
 * gepolab_algorithm and a gepolab_delay never change once they are made and may be used by any
 * number of threads at once; so may a gepolab_simulation, until it is freed. A gepolab_workspace is
 * for one call at a time.
 *
 * Structures that callers fill begin with their own size, so that a program compiled for an older
 * version goes on working: set it to sizeof and the rest to zero first, as GEPOLAB_INIT does.
 * Logarithms are natural, times are in simulated seconds, versions count learner updates.
 *
 * Formulas: paper/methods.md of the sources, by section in the comments here. Each group of
 * functions begins with a whole program that uses it and what it prints; programs are built with
 * `cc program.c $(pkg-config --cflags --libs gepolab)`.
 */
#ifndef GEPOLAB_H
#define GEPOLAB_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header's interface. The major number changes when a program must be
 * changed, the minor one when something is added. gepolab_version() gives the program's version,
 * gepolab_interface() the interface that the library at hand was built with. */
#define GEPOLAB_INTERFACE_MAJOR 0
#define GEPOLAB_INTERFACE_MINOR 3
#define GEPOLAB_INTERFACE (GEPOLAB_INTERFACE_MAJOR * 1000 + GEPOLAB_INTERFACE_MINOR)

#if defined(__GNUC__)
#define GEPOLAB_API __attribute__((visibility("default")))
#else
#define GEPOLAB_API
#endif

/* gepolab_batch batch = GEPOLAB_INIT(gepolab_batch); */
#ifdef __cplusplus
#define GEPOLAB_INIT(type)                                                                         \
  { sizeof(type) }
#else
#define GEPOLAB_INIT(type)                                                                         \
  { .size = sizeof(type) }
#endif

typedef enum gepolab_status {
  GEPOLAB_OK = 0,
  GEPOLAB_EINPUT = 1,       /* what the caller gave is wrong */
  GEPOLAB_EIO = 2,          /* a file failed */
  GEPOLAB_ENOMEM = 3,       /* memory is short, or a size would overflow */
  GEPOLAB_ENUMERIC = 4,     /* a computation left the domain in which it is defined */
  GEPOLAB_EINTERRUPTED = 5, /* never returned by this version */
  GEPOLAB_EINTERNAL = 6     /* a broken promise inside the library: please report */
} gepolab_status;

typedef struct gepolab_error {
  gepolab_status status;
  char text[1024]; /* one sentence in UTF-8, no newline at its end */
} gepolab_error;

/* "0.2.0-dev" and the like; static. */
GEPOLAB_API const char *gepolab_version(void);
/* GEPOLAB_INTERFACE of the library. A caller needs the same major number (the thousands) and at
 * least its own minor one. */
GEPOLAB_API int gepolab_interface(void);

/* --- algorithms (methods.md §3 fields, §4 rows) --- */
/* Example: algorithms
 *
 *     #include <gepolab.h>
 *     #include <stdio.h>
 *
 *     int main(void) {
 *       gepolab_algorithm *gepo;
 *       gepolab_error err;
 *       char clip[GEPOLAB_FIELD_SIZE];
 *       if (gepolab_algorithm_new(&gepo, "{base: gepo, clip: none}", &err) != GEPOLAB_OK ||
 *           gepolab_algorithm_field(gepo, "clip", clip, &err) != GEPOLAB_OK)
 *         return puts(err.text), 1;
 *       printf("%s has clip %s\n", gepolab_algorithm_name(gepo), clip);
 *       gepolab_algorithm_free(gepo);
 *       return 0;
 *     }
 *
 * prints
 *
 *     gepo(clip=none) has clip none
 */

typedef struct gepolab_algorithm gepolab_algorithm;

/* An algorithm from text as a recipe's `algorithm:` has it: a published name ("gepo") or a map
 * ("{base: gepo, clip: none}", YAML). GEPOLAB_EINPUT with place (`algorithm:line:column`), the
 * wrong word and the nearest right one. Release with gepolab_algorithm_free(). */
GEPOLAB_API gepolab_status gepolab_algorithm_new(gepolab_algorithm **out, const char *text,
                                                 gepolab_error *err);
GEPOLAB_API void gepolab_algorithm_free(gepolab_algorithm *algorithm);
/* "gepo(clip=none)": the name that tables and figures show; borrowed from the algorithm. */
GEPOLAB_API const char *gepolab_algorithm_name(const gepolab_algorithm *algorithm);

/* The value of one of its fields ("clip", "eps_low", ...: `gepolab list algorithms --fields` lists
 * them) as a recipe would write it, into text[GEPOLAB_FIELD_SIZE]. GEPOLAB_EINPUT for a name that
 * is none, with the nearest one. */
#define GEPOLAB_FIELD_SIZE 40
GEPOLAB_API gepolab_status gepolab_algorithm_field(const gepolab_algorithm *algorithm,
                                                   const char *field, char *text,
                                                   gepolab_error *err);

/* The published rows, in documentation order; texts are static. GEPOLAB_EINPUT past the last. */
typedef struct gepolab_algorithm_info {
  const char *name, *source;
  const char *trl, *verl,
      *areal; /* the setting there that is this row; "none" where there is none */
  const char *notes;
} gepolab_algorithm_info;
GEPOLAB_API size_t gepolab_algorithms_count(void);
GEPOLAB_API gepolab_status gepolab_algorithms_at(size_t i, gepolab_algorithm_info *out,
                                                 gepolab_error *err);

/* --- policy: one evaluation of a loss (methods.md §3-§5) --- */
/* Example: policy. One group of two responses, of two tokens and one, padded to two columns.
 *
 *     #include <gepolab.h>
 *     #include <stdio.h>
 *
 *     int main(void) {
 *       static const float reward[] = {1, 0};
 *       static const float logp[] = {-1.0f, -0.5f, -2.0f, 0}, logq[] = {-1.25f, -0.5f, -1.875f, 0};
 *       static const int64_t length[] = {2, 1};
 *       float coefficient[4];
 *       gepolab_algorithm *grpo;
 *       gepolab_workspace *workspace;
 *       gepolab_error err;
 *       gepolab_batch batch = GEPOLAB_INIT(gepolab_batch);
 *       gepolab_result result = GEPOLAB_INIT(gepolab_result);
 *       const char *row = "{base: grpo, old_policy: sampler}";
 *       if (gepolab_algorithm_new(&grpo, row, &err) != GEPOLAB_OK ||
 *           gepolab_workspace_new(&workspace, &err) != GEPOLAB_OK)
 *         return puts(err.text), 1;
 *       batch.n_responses = 2, batch.n_groups = 1, batch.group_size = 2;
 *       batch.columns = 2, batch.length = length;
 *       batch.reward.data = reward, batch.reward.type = GEPOLAB_FLOAT32, batch.reward.stride = 1;
 *       batch.logp.data = logp, batch.logp.type = GEPOLAB_FLOAT32;
 *       batch.logp.response_stride = 2, batch.logp.token_stride = 1;
 *       batch.logq = batch.logp, batch.logq.data = logq;
 *       result.coefficient.data = coefficient, result.coefficient.type = GEPOLAB_FLOAT32;
 *       result.coefficient.response_stride = 2, result.coefficient.token_stride = 1;
 *       if (gepolab_policy(grpo, &batch, &result, workspace, &err) != GEPOLAB_OK)
 *         return puts(err.text), 1;
 *       printf("loss %.4f, coefficients %.4f %.4f, %.4f %.4f\n", result.loss, coefficient[0],
 *              coefficient[1], coefficient[2], coefficient[3]);
 *       gepolab_workspace_free(workspace);
 *       gepolab_algorithm_free(grpo);
 *       return 0;
 *     }
 *
 * prints
 *
 *     loss -0.0769, coefficients 0.0000 0.1768, -0.3120 0.0000
 */

typedef enum gepolab_type {
  GEPOLAB_NONE = 0, /* no array */
  GEPOLAB_FLOAT32 = 1,
  GEPOLAB_FLOAT64 = 2
} gepolab_type;

/* One number for each token. Token t (of the columns, from 0) of response i is the element
 * i * response_stride + t * token_stride of data, in elements, negative strides allowed; in a
 * packed batch it is element (token_start[i] + t) * token_stride. {0}: not given. */
typedef struct gepolab_tokens {
  const void *data;
  gepolab_type type;
  int64_t response_stride, token_stride;
} gepolab_tokens;

/* One number for each response (rewards, advantages) or group: element i * stride of data, negative
 * strides allowed. {0}: not given. */
typedef struct gepolab_numbers {
  const void *data;
  gepolab_type type;
  int64_t stride;
} gepolab_numbers;

/* The same, written to. {0}: not wanted. */
typedef struct gepolab_tokens_out {
  void *data;
  gepolab_type type;
  int64_t response_stride, token_stride;
} gepolab_tokens_out;
typedef struct gepolab_numbers_out {
  void *data;
  gepolab_type type;
  int64_t stride;
} gepolab_numbers_out;

/* A batch of groups of responses. Groups are runs of neighbouring responses: of group_size each,
 * or [group_start[g], group_start[g + 1]). Which tokens a response has is said by one of
 *   token_start  packed: response i owns tokens [token_start[i], token_start[i + 1])
 *   length       padded: the first length[i] of `columns` columns
 *   mask         padded: the columns whose byte is not 0, at i * mask_response_stride +
 *                t * mask_token_stride; a response's tokens keep their order
 * and all columns belong to it where none is given. Responses without tokens are allowed where the
 * algorithm gives them a meaning. */
typedef struct gepolab_batch {
  size_t size; /* sizeof(gepolab_batch) */
  int64_t n_responses, n_groups, group_size;
  const int64_t *group_start; /* [n_groups + 1] or NULL: group_size is used */
  int64_t columns;            /* of a padded batch */
  const int64_t *token_start; /* [n_responses + 1] or NULL */
  const int64_t *length;      /* [n_responses] or NULL */
  const uint8_t *mask;        /* or NULL */
  int64_t mask_response_stride, mask_token_stride;
  gepolab_numbers reward;     /* [n_responses] */
  gepolab_tokens logp;        /* ln probability of each token by the learner now, nats */
  gepolab_tokens logq;        /* likewise by the sampler, at the time of the draw */
  gepolab_tokens logprox;     /* learner at the batch's first update; not given: the same as logp */
  gepolab_tokens logref;      /* reference policy, for ref_kl_coef above 0 */
  gepolab_tokens version_gap; /* learner's version minus the token's, in updates; for diagnostics */
  gepolab_numbers log_denominator; /* [n_groups] log sum_y q(y)^2, for `denominator: exact` */
  int64_t max_length; /* longest response the task allows, for dr_grpo; 0: the longest here */
  /* Since interface 0.2; a batch whose size says that it ends here has none of them. */
  gepolab_numbers advantage; /* [n_responses] taken in place of what the algorithm's baseline and
                                scale make of the rewards; not given: they do */
  gepolab_tokens entropy;    /* of the learner's policy where the token was drawn, nats, for
                                top_entropy below 1 */
} gepolab_batch;

typedef struct gepolab_result {
  size_t size;                    /* sizeof(gepolab_result) */
  double loss;                    /* the algorithm's loss, KL terms included: out */
  gepolab_tokens_out coefficient; /* d loss' gradient: d(-loss)/d logp of every token; columns that
                                     are no token of a padded response get 0 */
  gepolab_tokens_out weight; /* importance ratio before clipping; a response's ratio is repeated */
  gepolab_numbers_out advantage; /* [n_responses] */
  double *metric; /* [gepolab_metrics_count()] or NULL; NaN where the batch does not determine it */
} gepolab_result;

typedef struct gepolab_workspace gepolab_workspace;

/* Memory that evaluations use again; it grows to the largest batch seen: up to 8 bytes for each
 * token of every array that is not read or written in place. */
GEPOLAB_API gepolab_status gepolab_workspace_new(gepolab_workspace **out, gepolab_error *err);
GEPOLAB_API void gepolab_workspace_free(gepolab_workspace *workspace);

/* Evaluations with this workspace run on so many threads from now on, the caller's being one of
 * them (at first it is the only one); the results have the same bits for any number. The others are
 * the workspace's until it is freed or the number changes, and sleep between evaluations. A process
 * that forks needs a new workspace afterwards. GEPOLAB_EINPUT for less than 1 or more than 4096,
 * GEPOLAB_EIO where one cannot be started. */
GEPOLAB_API gepolab_status gepolab_workspace_threads(gepolab_workspace *workspace, int64_t threads,
                                                     gepolab_error *err);

/* Evaluates the algorithm on the batch and writes what result asks for. Arrays are read where they
 * lie; float32 is widened, all sums are in double precision. Coefficients are what a backward pass
 * multiplies the gradients of logp with (and negates, for a loss that is minimised).
 * GEPOLAB_EINPUT names array, response and token of: a NaN or infinity, a log-probability above
 * 1e-3 (rounding in float32 is allowed for), a type that is none of the above; starts that do not
 * rise; and what policy needs but was not given (logref, log_denominator, groups of two).
 * GEPOLAB_ENUMERIC: an advantage, a coefficient, or a weight that was asked for, that is not finite
 * in the type that the caller's array has, named. No array of result may overlap one of the batch.
 * After an error what result points to is unspecified. The same input gives the same bits. */
GEPOLAB_API gepolab_status gepolab_policy(const gepolab_algorithm *algorithm,
                                          const gepolab_batch *batch, gepolab_result *result,
                                          gepolab_workspace *workspace, gepolab_error *err);

/* The metrics of an evaluation, in the order of result->metric: name ("ess") and meaning with its
 * unit; static texts, NULL past the last. `gepolab list metrics` prints them. */
GEPOLAB_API size_t gepolab_metrics_count(void);
GEPOLAB_API const char *gepolab_metric_name(size_t i);
GEPOLAB_API const char *gepolab_metric_meaning(size_t i);

/* --- exact laboratory (methods.md §7) --- */
/* Example: laboratory. What dividing by the group's deviation costs GRPO on three arms.
 *
 *     #include <gepolab.h>
 *     #include <stdio.h>
 *
 *     int main(void) {
 *       static const double learner[] = {0.5, 0.3, 0.2}, sampler[] = {0.2, 0.3, 0.5};
 *       static const double reward[] = {1, 0, 0.5};
 *       gepolab_algorithm *grpo;
 *       gepolab_error err;
 *       gepolab_table table = GEPOLAB_INIT(gepolab_table);
 *       gepolab_moments moments = GEPOLAB_INIT(gepolab_moments);
 *       table.n_prompts = 1, table.n_responses = 3;
 *       table.learner = learner, table.sampler = sampler, table.reward = reward;
 *       if (gepolab_algorithm_new(&grpo, "grpo", &err) != GEPOLAB_OK ||
 *           gepolab_laboratory(grpo, &table, 8, 1000000, 0, 1, &moments, &err) != GEPOLAB_OK)
 *         return puts(err.text), 1;
 *       printf("KL %.4f nats, %.0f groups: bias %.4f, variance %.4f\n", moments.kl, moments.groups,
 *              moments.bias, moments.variance);
 *       gepolab_algorithm_free(grpo);
 *       return 0;
 *     }
 *
 * prints
 *
 *     KL 0.2749 nats, 45 groups: bias 0.1541, variance 0.0141
 */

/* n_prompts prompts with K responses each, of one token (a bandit, or any finite set of responses
 * seen as one choice). The policy is a softmax of one logit for each prompt and response, and
 * gradients are with respect to those n_prompts * K logits. */
typedef struct gepolab_table {
  size_t size;
  int64_t n_prompts, n_responses;
  const double *learner;       /* [n_prompts * n_responses] p, rows sum to 1 within 1e-9 */
  const double *sampler;       /* [n_prompts * n_responses] q, likewise */
  const double *reward;        /* [n_prompts * n_responses] */
  const double *prompt_weight; /* [n_prompts], sums to 1; NULL: equal */
} gepolab_table;

typedef struct gepolab_moments {
  size_t size;
  int32_t method;     /* out: 0 enumerated, 1 Monte Carlo, 2 a group of infinite size */
  int32_t applicable; /* out: 0: the algorithm has no such estimate; why says so */
  char why[200];
  double groups;      /* multisets enumerated or groups drawn */
  double value;       /* J, the learner's expected reward */
  double kl, kl_qp;   /* KL(p||q), KL(q||p), nats, mean over prompts */
  double bias;        /* |E g - J'|, Euclidean norms in the space of the logits */
  double cosine;      /* of E g and J' */
  double scaled_bias; /* sqrt(1 - cosine^2): what is left of the bias when lengths are made equal */
  double variance;    /* trace of g's covariance */
  double mse;         /* bias^2 + variance */
  double scaled_mse;  /* least E|a g - J'|^2 / |J'|^2 over all a */
  double snr;         /* |E g|^2 / variance */
  double iw_mean, iw_variance; /* of the algorithm's own weight of one response of a group */
  double aw_variance;          /* of advantage times weight */
  double ess;                  /* E (sum w)^2 / (group_size * sum w^2) */
  double bias_error, cosine_error, variance_error, mse_error; /* standard errors; 0 where exact */
  double *expected; /* in: [n_prompts * n_responses] or NULL: E of the estimate */
  double *truth;    /* in: likewise or NULL: the gradient of J */
} gepolab_moments;

/* Bias and variance of the algorithm's gradient estimate g from one group of group_size responses
 * (0: infinitely many). Up to `budget` multisets a prompt are enumerated; beyond that `samples`
 * groups a prompt are drawn with `seed` (0: GEPOLAB_EINPUT instead). The same input gives the same
 * bits. GEPOLAB_EINPUT names table, row and column of what is no probability, rows that do not sum
 * to 1, a group that the algorithm cannot use, and sizes beyond 65,536. An algorithm that has no
 * such estimate is no error: out->applicable is 0, and the numbers are NaN or 0. */
GEPOLAB_API gepolab_status gepolab_laboratory(const gepolab_algorithm *algorithm,
                                              const gepolab_table *table, int64_t group_size,
                                              int64_t budget, int64_t samples, uint64_t seed,
                                              gepolab_moments *out, gepolab_error *err);

/* --- simulation (methods.md §10) --- */
/* Example: simulation. One sampler whose weights are three seconds on their way.
 *
 *     #include <gepolab.h>
 *     #include <stdio.h>
 *
 *     int main(void) {
 *       static const char recipe[] =
 *           "steps: 20\n"
 *           "cluster: {preset: fifo, samplers: 1, generation: 1, delay: 3,\n"
 *           "  learner: {step: 1, eval_pause: 0}}\n";
 *       gepolab_simulation *run;
 *       gepolab_trained last;
 *       gepolab_error err;
 *       if (gepolab_simulate(&run, recipe, 1, &err) != GEPOLAB_OK) return puts(err.text), 1;
 *       gepolab_simulation_read(run, gepolab_simulation_batches(run) - 1, 1, &last);
 *       printf("update %d trains on a batch of version %d at %.0f s\n", (int)last.step,
 *              (int)last.drawn_at, last.trained_s);
 *       gepolab_simulation_free(run);
 *       return 0;
 *     }
 *
 * prints
 *
 *     update 20 trains on a batch of version 15 at 20 s
 */

typedef struct gepolab_simulation gepolab_simulation;

/* Runs the clock of a recipe (YAML text with `cluster:`, `train:` and `steps:`; a recipe's other
 * sections are left aside) until its number of updates is done. The same recipe and seed give the
 * same schedule. GEPOLAB_EINPUT with place (`recipe:line:column`) for what is no such recipe, and
 * for one that includes others, which has to be a file. Time and memory grow with the number of
 * batches: some 200 bytes each. Release with gepolab_simulation_free(). */
GEPOLAB_API gepolab_status gepolab_simulate(gepolab_simulation **out, const char *recipe,
                                            uint64_t seed, gepolab_error *err);
/* The same for a recipe in a file: those that it names are looked for beside it first, and messages
 * name it. GEPOLAB_EINPUT also where it cannot be opened. Since interface 0.3. */
GEPOLAB_API gepolab_status gepolab_simulate_file(gepolab_simulation **out, const char *path,
                                                 uint64_t seed, gepolab_error *err);
GEPOLAB_API void gepolab_simulation_free(gepolab_simulation *s);
/* The summary as JSON, as `gepolab sim --json` prints it; borrowed from s. */
GEPOLAB_API const char *gepolab_simulation_json(const gepolab_simulation *s);

/* One trained batch; times are simulated seconds since the start. */
typedef struct gepolab_trained {
  int64_t step;     /* learner update, from 1 */
  int64_t version;  /* learner's version before that update */
  int64_t drawn_at; /* oldest version the batch was drawn with; staleness = version - drawn_at */
  int64_t sampler;  /* from 0 */
  double start_s, generated_s; /* its generation begins and ends */
  double arrived_s, trained_s; /* it is with the learner; its update begins */
  double bytes, tokens; /* on its way; in its responses, 0 without a distribution of lengths */
} gepolab_trained;
/* Trained batches, in the order of updates. */
GEPOLAB_API int64_t gepolab_simulation_batches(const gepolab_simulation *s);
/* Copies up to n of them, from the first-th on, into out[n]; returns how many. */
GEPOLAB_API int64_t gepolab_simulation_read(const gepolab_simulation *s, int64_t first, int64_t n,
                                            gepolab_trained *out);

/* --- delay distributions (methods.md §9.1) --- */
/* Example: delays
 *
 *     #include <gepolab.h>
 *     #include <stdio.h>
 *
 *     int main(void) {
 *       gepolab_delay *delay;
 *       gepolab_error err;
 *       double median, drawn[2];
 *       if (gepolab_delay_new(&delay, "{law: lognormal, interval: [60, 1800], confidence: 0.99}",
 *                             &err) != GEPOLAB_OK ||
 *           gepolab_delay_quantile(delay, 0.5, &median, &err) != GEPOLAB_OK ||
 *           gepolab_delay_draw(delay, 7, 0, 2, drawn, &err) != GEPOLAB_OK)
 *         return puts(err.text), 1;
 *       printf("median %.1f s, draws %.1f s and %.1f s\n", median, drawn[0], drawn[1]);
 *       gepolab_delay_free(delay);
 *       return 0;
 *     }
 *
 * prints
 *
 *     median 328.6 s, draws 541.5 s and 154.1 s
 */

typedef struct gepolab_delay gepolab_delay;

/* A distribution from text as a recipe has it: a number of seconds, a time with its unit ("30m"),
 * or a map ("{law: lognormal, interval: [60, 1800], confidence: 0.99}"). GEPOLAB_EINPUT with place
 * (`delay:line:column`) for any other text. Release with gepolab_delay_free(). */
GEPOLAB_API gepolab_status gepolab_delay_new(gepolab_delay **out, const char *text,
                                             gepolab_error *err);
GEPOLAB_API void gepolab_delay_free(gepolab_delay *dist);
/* The p-quantile, 0 < p < 1, into *out. GEPOLAB_EINPUT for other p, and for a Gilbert-Elliott
 * distribution, whose draws depend on one another. */
GEPOLAB_API gepolab_status gepolab_delay_quantile(const gepolab_delay *dist, double p, double *out,
                                                  gepolab_error *err);
/* Draws number first, first + 1, ... of the sequence with this seed, into out[n], in seconds: the
 * same seed and number give the same draw. A Gilbert-Elliott distribution, which has a state, is
 * drawn from number 0 on each time, which takes time for a large `first`. GEPOLAB_EINPUT for
 * numbers that are negative or beyond 2^40. */
GEPOLAB_API gepolab_status gepolab_delay_draw(const gepolab_delay *dist, uint64_t seed,
                                              int64_t first, int64_t n, double *out,
                                              gepolab_error *err);

/* --- statistics (methods.md §8) --- */
/* Example: statistics. Four runs, of which one had not fallen when it ended.
 *
 *     #include <gepolab.h>
 *     #include <stdio.h>
 *
 *     int main(void) {
 *       static const double score[] = {0.1, 0.4, 0.5, 0.6, 0.9}, update[] = {50, 80, 80, 100};
 *       static const uint8_t fell[] = {1, 1, 1, 0};
 *       double at[4], survival[4], error[4];
 *       int64_t n;
 *       gepolab_interval mean;
 *       gepolab_error err;
 *       if (gepolab_iqm(score, 5, 1, &mean, &err) != GEPOLAB_OK ||
 *           gepolab_survival(update, fell, 4, at, survival, error, &n, &err) != GEPOLAB_OK)
 *         return puts(err.text), 1;
 *       printf("interquartile mean %.3f\n", mean.value);
 *       for (int64_t i = 0; i < n; ++i)
 *         printf("from update %.0f on %.2f have not fallen\n", at[i], survival[i]);
 *       return 0;
 *     }
 *
 * prints
 *
 *     interquartile mean 0.500
 *     from update 50 on 0.75 have not fallen
 *     from update 80 on 0.25 have not fallen
 */

/* An estimate with its 95 % interval; NaN where there is none. */
typedef struct gepolab_interval {
  double value, low, high;
} gepolab_interval;

/* Interquartile mean of value[n] (NaN is left out) with a percentile bootstrap interval of 2,000
 * draws, which `seed` names. NaN where no value is left. n may be 0. */
GEPOLAB_API gepolab_status gepolab_iqm(const double *value, int64_t n, uint64_t seed,
                                       gepolab_interval *out, gepolab_error *err);
/* Spearman's rank correlation of the n pairs x[i], y[i] (those with a NaN are left out), interval
 * by Fisher's z. NaN where it is undefined: fewer than four distinct pairs, or a constant sample.
 */
GEPOLAB_API gepolab_status gepolab_spearman(const double *x, const double *y, int64_t n,
                                            gepolab_interval *out, gepolab_error *err);
/* Kaplan-Meier estimate of survival: time[n] with observed[n] (0: the run ended unfallen). Writes
 * the distinct times of falls in ascending order to at, the share that has not fallen after each to
 * survival, Greenwood's standard error to error, each with room for n; *n_out of them. Times are in
 * any unit. GEPOLAB_EINPUT for a time that is NaN or negative. */
GEPOLAB_API gepolab_status gepolab_survival(const double *time, const uint8_t *observed, int64_t n,
                                            double *at, double *survival, double *error,
                                            int64_t *n_out, gepolab_error *err);

#ifdef __cplusplus
}
#endif

#endif
