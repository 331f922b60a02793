/* libgepolab: policy optimisation under network delay, for programs other than `gepolab`.
 *
 *   algorithms   the published algorithms (gepo, grpo, gspo, ...) and variants with other fields
 *   policy       loss, coefficients, weights and diagnostics of a batch in the caller's own
 *                buffers
 *   laboratory   exact bias, variance and MSE of an estimator for given tables of probabilities
 *   simulation   the clock of a cluster: staleness, throughput and times of a recipe
 *   delays       samples and quantiles of the delay distributions that recipes name
 *   statistics   interquartile mean, bootstrap, rank correlation, survival
 *
 * Conventions, for every function below unless its comment says otherwise.
 *
 * Errors: functions that can fail return a gepolab_status. If it is not GEPOLAB_OK, the caller's
 * gepolab_error (which may be NULL) receives the same status and one sentence: the problem, its
 * location and the fix. On success it is not changed. Any function may return GEPOLAB_ENOMEM. The
 * library never prints or exits. Pointers must not be NULL unless the comment allows it; texts are
 * zero-terminated.
 *
 * Ownership: objects that a ..._new() function or gepolab_simulate() writes to *out belong to the
 * caller, who must call the matching ..._free() (NULL is allowed). After a failure *out is NULL.
 * All other memory belongs to the caller, is accessed only during the call, and is never retained.
 * Returned texts live as long as the object they were requested from, or forever if static.
 *
 * Threads: there is no global state, and all functions may run concurrently on different objects.
 * A gepolab_algorithm, a gepolab_delay and a gepolab_simulation are immutable and may be shared by
 * threads until freed. A gepolab_workspace may be used by one call at a time.
 *
 * Structures that callers fill begin with their own size, so that programs compiled for an older
 * version keep working. Set size to sizeof and everything else to zero first, as GEPOLAB_INIT
 * does. Logarithms are natural, times are simulated seconds, versions count learner updates.
 *
 * Formulas: section numbers refer to paper/methods.md in the sources. Each group of functions
 * begins with a complete example program and its output; build programs with `cc PROGRAM.c
 * $(pkg-config --cflags --libs gepolab)`. */
#ifndef GEPOLAB_H
#define GEPOLAB_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header's interface. The major number increases with incompatible changes, the
 * minor number with additions. gepolab_version() returns the version of gepolab,
 * gepolab_interface() the interface that the linked library was built with. */
#define GEPOLAB_INTERFACE_MAJOR 0
#define GEPOLAB_INTERFACE_MINOR 6
#define GEPOLAB_INTERFACE (GEPOLAB_INTERFACE_MAJOR * 1000 + GEPOLAB_INTERFACE_MINOR)

#if defined(__GNUC__)
#define GEPOLAB_API __attribute__((visibility("default")))
#else
#define GEPOLAB_API
#endif

/* Initialises a structure: gepolab_batch batch = GEPOLAB_INIT(gepolab_batch); */
#ifdef __cplusplus
#define GEPOLAB_INIT(type)                                                                         \
  { sizeof(type) }
#else
#define GEPOLAB_INIT(type)                                                                         \
  { .size = sizeof(type) }
#endif

typedef enum gepolab_status {
  GEPOLAB_OK = 0,
  GEPOLAB_EINPUT = 1,       /* invalid arguments */
  GEPOLAB_EIO = 2,          /* a file operation failed */
  GEPOLAB_ENOMEM = 3,       /* out of memory, or a size would overflow */
  GEPOLAB_ENUMERIC = 4,     /* a computation left its domain, or a result is not finite */
  GEPOLAB_EINTERRUPTED = 5, /* not returned by this version */
  GEPOLAB_EINTERNAL = 6     /* a bug in the library: please report */
} gepolab_status;

typedef struct gepolab_error {
  gepolab_status status;
  char text[1024]; /* one sentence in UTF-8, no newline at the end */
} gepolab_error;

/* "0.2.0-dev" and the like; static. */
GEPOLAB_API const char *gepolab_version(void);
/* Returns GEPOLAB_INTERFACE of the library. A caller needs the same major number (the thousands)
 * and at least its own minor number. */
GEPOLAB_API int gepolab_interface(void);

/* --- algorithms (methods.md §3 fields, §4 algorithms) --- */
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

/* Makes an algorithm from text like a recipe's `algorithm:`: a published name ("gepo") or a map
 * ("{base: gepo, clip: none}", YAML). Errors: GEPOLAB_EINPUT with position
 * (`algorithm:line:column`), the invalid word and the nearest valid one. Release with
 * gepolab_algorithm_free(). */
GEPOLAB_API gepolab_status gepolab_algorithm_new(gepolab_algorithm **out, const char *text,
                                                 gepolab_error *err);
/* Like gepolab_algorithm_new(). In addition text may name, alone or as a base, an algorithm that
 * the file `file` defines, as `algorithms: {my_gepo: {base: gepo, clip: none}}`. Errors also for
 * the file, with its name, line and column. */
GEPOLAB_API gepolab_status gepolab_algorithm_own(gepolab_algorithm **out, const char *text,
                                                 const char *file, gepolab_error *err);
GEPOLAB_API void gepolab_algorithm_free(gepolab_algorithm *algorithm);
/* The name shown in tables and figures, as in "gepo(clip=none)"; owned by the algorithm. */
GEPOLAB_API const char *gepolab_algorithm_name(const gepolab_algorithm *algorithm);

/* Writes the value of a field ("clip", "eps_low", ...), as in a recipe, to
 * text[GEPOLAB_FIELD_SIZE]. `gepolab list algorithms --fields` lists the fields. Errors:
 * GEPOLAB_EINPUT for an unknown name, with the nearest valid one. */
#define GEPOLAB_FIELD_SIZE 40
GEPOLAB_API gepolab_status gepolab_algorithm_field(const gepolab_algorithm *algorithm,
                                                   const char *field, char *text,
                                                   gepolab_error *err);

/* The published algorithms, in documentation order; texts are static. Errors: GEPOLAB_EINPUT past
 * the last. */
typedef struct gepolab_algorithm_info {
  const char *name, *source;
  const char *trl, *verl,
      *areal; /* the setting of that trainer for this algorithm; "none" if it has none */
  const char *notes;
} gepolab_algorithm_info;
GEPOLAB_API size_t gepolab_algorithms_count(void);
GEPOLAB_API gepolab_status gepolab_algorithms_at(size_t i, gepolab_algorithm_info *out,
                                                 gepolab_error *err);

/* Settings of trainers that make a published algorithm: the switches, what the trainer's code does
 * differently, where that was read, and basis: "run" if a test runs the trainer's code, otherwise
 * "read, not run". Texts are static. Errors: GEPOLAB_EINPUT past the last. */
typedef struct gepolab_setting {
  const char *algorithm, *trainer, *version, *setting, *differs, *place, *basis;
} gepolab_setting;
GEPOLAB_API size_t gepolab_settings_count(void);
GEPOLAB_API gepolab_status gepolab_settings_at(size_t i, gepolab_setting *out, gepolab_error *err);

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
 *       const char *text = "{base: grpo, old_policy: sampler}";
 *       if (gepolab_algorithm_new(&grpo, text, &err) != GEPOLAB_OK ||
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

/* One number per token. Token t (column, from 0) of response i is the element i * response_stride +
 * t * token_stride of data; in a packed batch it is element (token_start[i] + t) * token_stride.
 * Strides count elements and may be negative. {0}: not given. */
typedef struct gepolab_tokens {
  const void *data;
  gepolab_type type;
  int64_t response_stride, token_stride;
} gepolab_tokens;

/* One number per response (rewards, advantages) or per group: element i * stride of data; strides
 * may be negative. {0}: not given. */
typedef struct gepolab_numbers {
  const void *data;
  gepolab_type type;
  int64_t stride;
} gepolab_numbers;

/* The corresponding output arrays. {0}: not requested. */
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

/* A batch of groups of responses. Groups are consecutive responses: group_size each, or
 * [group_start[g], group_start[g + 1]). The tokens of a response are given by one of
 *   token_start  packed: response i has tokens [token_start[i], token_start[i + 1])
 *   length       padded: the first length[i] of `columns` columns
 *   mask         padded: the columns whose byte at i * mask_response_stride + t *
 *                mask_token_stride is not 0, in order
 * or, if none is given, are all columns. A response without tokens is refused (GEPOLAB_EINPUT). */
typedef struct gepolab_batch {
  size_t size; /* sizeof(gepolab_batch) */
  int64_t n_responses, n_groups, group_size;
  const int64_t *group_start; /* [n_groups + 1] or NULL: use group_size */
  int64_t columns;            /* columns of a padded batch */
  const int64_t *token_start; /* [n_responses + 1] or NULL */
  const int64_t *length;      /* [n_responses] or NULL */
  const uint8_t *mask;        /* one byte per token, or NULL */
  int64_t mask_response_stride, mask_token_stride;
  gepolab_numbers reward; /* [n_responses] */
  gepolab_tokens logp;    /* log-probability of each token under the learner, nats */
  gepolab_tokens logq;    /* the same under the sampler when it sampled the token */
  gepolab_tokens logprox; /* learner at the batch's first update; not given: same as logp, except
                             that proximal_decay > 0 needs it */
  gepolab_tokens logref;  /* reference policy, if ref_kl_coef > 0, or if reward_kl_coef > 0 with
                             reward_kl_of: reference */
  gepolab_tokens version_gap; /* staleness in updates: learner's version - token's version; needed
                                 by old_policy: interpolated and mixture_anneal: true, otherwise
                                 only for the metrics staleness and staleness_max */
  gepolab_numbers log_denominator; /* [n_groups] log sum_y q(y)^2, for `denominator: exact` */
  int64_t
      max_length; /* longest response the task allows, for dr_grpo; 0: the longest in the batch */
  /* Since interface 0.2. A batch whose size ends here has none of the following members. */
  gepolab_numbers advantage;   /* [n_responses] replaces the advantages computed from rewards by the
                                  algorithm's baseline and scale; not given: computed */
  gepolab_tokens entropy;      /* entropy of the learner's distribution at each token, nats, for
                                  top_entropy < 1 and entropy_ratio_ */
  gepolab_tokens entropy_prox; /* the same at the batch's first update, beside logprox */
} gepolab_batch;

typedef struct gepolab_result {
  size_t size;                    /* sizeof(gepolab_result) */
  double loss;                    /* output: the algorithm's loss, including KL terms */
  gepolab_tokens_out coefficient; /* d(-loss)/d logp of every token; padding columns get 0 */
  gepolab_tokens_out
      weight; /* importance ratio before clipping; a response's ratio is repeated for its tokens */
  gepolab_numbers_out advantage; /* [n_responses] */
  double
      *metric; /* [gepolab_metrics_count()] or NULL; NaN if the batch does not determine a metric */
} gepolab_result;

typedef struct gepolab_workspace gepolab_workspace;

/* Memory reused between evaluations; it grows to the largest batch seen: up to 8 bytes per token
 * for every array that is not read or written in place. */
GEPOLAB_API gepolab_status gepolab_workspace_new(gepolab_workspace **out, gepolab_error *err);
GEPOLAB_API void gepolab_workspace_free(gepolab_workspace *workspace);

/* Sets the number of threads for later evaluations with this workspace, including the caller's
 * thread (initially 1). Results are bit-identical for any number. The other threads belong to the
 * workspace until it is freed or the number changes, and sleep between evaluations. A process that
 * forks needs a new workspace afterwards. Errors: GEPOLAB_EINPUT (below 1 or above 4096),
 * GEPOLAB_EIO (a thread cannot be started). */
GEPOLAB_API gepolab_status gepolab_workspace_threads(gepolab_workspace *workspace, int64_t threads,
                                                     gepolab_error *err);

/* Evaluates the algorithm on the batch and writes the requested results. Arrays are read in place;
 * float32 is converted, and all sums are in double precision. A backward pass multiplies the
 * gradients of logp by the coefficients (and negates, to minimise the loss). No array of result may
 * overlap an array of the batch. The same input gives the same bits. Errors: GEPOLAB_EINPUT, with
 * array, response and token, for a NaN or infinity, a log-probability above 1e-3 (which allows for
 * rounding in float32), a negative staleness, an entropy below -1, an invalid type, decreasing
 * starts, or missing inputs that the algorithm needs (logref, log_denominator, version_gap,
 * logprox, entropy, groups of two). GEPOLAB_ENUMERIC if an advantage, a coefficient or a requested
 * weight is not finite in the type of the caller's array. After an error the contents of result are
 * unspecified.
 */
GEPOLAB_API gepolab_status gepolab_policy(const gepolab_algorithm *algorithm,
                                          const gepolab_batch *batch, gepolab_result *result,
                                          gepolab_workspace *workspace, gepolab_error *err);

/* The metrics of an evaluation, in the order of result->metric: name ("ess") and meaning. Texts are
 * static; NULL past the last. `gepolab list metrics` prints them, with units. */
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
 *       gepolab_groups groups = GEPOLAB_INIT(gepolab_groups);
 *       gepolab_moments moments = GEPOLAB_INIT(gepolab_moments);
 *       groups.group_size = 8, groups.budget = 1000000;
 *       table.n_prompts = 1, table.n_responses = 3;
 *       table.learner = learner, table.sampler = sampler, table.reward = reward;
 *       if (gepolab_algorithm_new(&grpo, "grpo", &err) != GEPOLAB_OK ||
 *           gepolab_laboratory(grpo, &table, &groups, &moments, &err) != GEPOLAB_OK)
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
 * treated as one choice). The policy is a softmax over one logit per prompt and response, and
 * gradients are with respect to these n_prompts * K logits. */
typedef struct gepolab_table {
  size_t size;
  int64_t n_prompts, n_responses;
  const double *learner;       /* [n_prompts * n_responses] p, rows sum to 1 within 1e-9 */
  const double *sampler;       /* [n_prompts * n_responses] q, rows sum to 1 within 1e-9 */
  const double *reward;        /* [n_prompts * n_responses] */
  const double *prompt_weight; /* [n_prompts], sums to 1; NULL: uniform */
} gepolab_table;

/* Up to `budget` multisets of group_size responses per prompt are enumerated; if there are more,
 * `samples` groups per prompt are sampled with `seed` (samples 0: GEPOLAB_EINPUT instead). */
typedef struct gepolab_groups {
  size_t size;
  int64_t group_size; /* 0: infinitely many responses */
  int64_t budget, samples;
  uint64_t seed;
} gepolab_groups;

typedef struct gepolab_moments {
  size_t size;
  int32_t method;     /* output: 0 enumerated, 1 Monte Carlo, 2 a group of infinite size */
  int32_t applicable; /* output: 0: the estimate is undefined for this algorithm; why gives the
                         reason */
  char why[200];
  double groups;      /* multisets enumerated or groups sampled */
  double value;       /* J, the learner's expected reward */
  double kl, kl_qp;   /* KL(p||q), KL(q||p), nats, mean over prompts */
  double bias;        /* |E g - J'|, Euclidean norms in the space of the logits */
  double cosine;      /* between E g and J' */
  double scaled_bias; /* sqrt(1 - cosine^2): relative bias after rescaling E g optimally */
  double variance;    /* trace of the covariance of g */
  double mse;         /* bias^2 + variance */
  double scaled_mse;  /* minimum over a of E|a g - J'|^2 / |J'|^2 */
  double snr;         /* |E g|^2 / variance */
  double iw_mean,
      iw_variance; /* mean and variance of the algorithm's own weight of one response of a group */
  double aw_variance; /* variance of advantage times weight */
  double ess;         /* E (sum w)^2 / (group_size * sum w^2) */
  double bias_error, cosine_error, variance_error, mse_error; /* standard errors; 0 if exact */
  double *expected; /* input: [n_prompts * n_responses] or NULL: receives E g */
  double *truth;    /* input: [n_prompts * n_responses] or NULL: receives the gradient of J */
} gepolab_moments;

/* Bias and variance of the algorithm's gradient estimate g from one group. The same input gives the
 * same bits. Errors: GEPOLAB_EINPUT, with table, row and column, for invalid probabilities, rows
 * that do not sum to 1, group sizes that the algorithm cannot use, fewer than 2 responses, sizes
 * beyond 65,536, and tables that would take more than 4 GB. An
 * algorithm without such an estimate is not an error: out->applicable is then 0, and the numbers
 * are NaN or 0. */
GEPOLAB_API gepolab_status gepolab_laboratory(const gepolab_algorithm *algorithm,
                                              const gepolab_table *table,
                                              const gepolab_groups *groups, gepolab_moments *out,
                                              gepolab_error *err);

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

/* Runs the clock of a recipe (YAML text with `cluster:`, `train:` and `steps:`; other sections of
 * a recipe are not read, and unknown top-level keys are refused) until its number of updates is
 * done. The same recipe and seed give the same schedule. Time and memory grow with the number of
 * batches: about 200 bytes each. Errors: GEPOLAB_EINPUT with position (`recipe:line:column`) for an
 * invalid recipe, GEPOLAB_EINPUT also for a recipe that includes others, which must be read from a
 * file, and for `coupled: true` without distributions of lengths. Release with
 * gepolab_simulation_free(). */
GEPOLAB_API gepolab_status gepolab_simulate(gepolab_simulation **out, const char *recipe,
                                            uint64_t seed, gepolab_error *err);
/* The same for a recipe in a file. Files it includes are looked for beside it first, and messages
 * name the file. Errors: GEPOLAB_EINPUT also if the file cannot be opened. Since interface 0.3. */
GEPOLAB_API gepolab_status gepolab_simulate_file(gepolab_simulation **out, const char *path,
                                                 uint64_t seed, gepolab_error *err);
/* Like gepolab_simulate() for `recipe` or, if it is NULL, gepolab_simulate_file() for `path`. In
 * addition `cluster.preset` may name a preset that the file `presets` (NULL: none) defines, as
 * `presets: {mine: {base: areal, samplers: 8}}`. Errors also for that file, with its name, line and
 * column. Since interface 0.6. */
GEPOLAB_API gepolab_status gepolab_simulate_own(gepolab_simulation **out, const char *recipe,
                                                const char *path, const char *presets,
                                                uint64_t seed, gepolab_error *err);
GEPOLAB_API void gepolab_simulation_free(gepolab_simulation *s);
/* The summary as JSON, as printed by `gepolab sim --json`; owned by s. */
GEPOLAB_API const char *gepolab_simulation_json(const gepolab_simulation *s);

/* One trained batch; times are simulated seconds since the start. */
typedef struct gepolab_trained {
  int64_t step;     /* learner update, from 1 */
  int64_t version;  /* learner's version before that update */
  int64_t drawn_at; /* oldest version that sampled the batch; staleness = version - drawn_at */
  int64_t sampler;  /* from 0 */
  double start_s, generated_s; /* start and end of its generation */
  double arrived_s, trained_s; /* when it joined the learner's queue, after grading if the cluster
                                  has a grader; start of its update */
  double bytes, tokens; /* bytes sent; tokens in its responses, 0 without a length distribution */
} gepolab_trained;
/* The number of trained batches. */
GEPOLAB_API int64_t gepolab_simulation_batches(const gepolab_simulation *s);
/* Copies up to n trained batches, in the order of updates, from index `first` on to out[n]; returns
 * how many. */
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
 *       const char *text = "{distribution: lognormal, interval: [60, 1800], confidence: 0.99}";
 *       if (gepolab_delay_new(&delay, text, &err) != GEPOLAB_OK ||
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

/* Makes a distribution from text as in a recipe: a number of seconds, a time with unit ("30m"), or
 * a map ("{distribution: lognormal, interval: [60, 1800], confidence: 0.99}"). Errors:
 * GEPOLAB_EINPUT with position (`delay:line:column`) for any other text. Release with
 * gepolab_delay_free(). */
GEPOLAB_API gepolab_status gepolab_delay_new(gepolab_delay **out, const char *text,
                                             gepolab_error *err);
GEPOLAB_API void gepolab_delay_free(gepolab_delay *dist);
/* Writes the p-quantile, 0 < p < 1, to *out. Errors: GEPOLAB_EINPUT for other p, and for a
 * Gilbert-Elliott distribution, whose samples are not independent. */
GEPOLAB_API gepolab_status gepolab_delay_quantile(const gepolab_delay *dist, double p, double *out,
                                                  gepolab_error *err);
/* Writes samples number first, first + 1, ... of the sequence with this seed to out[n], in seconds.
 * The same seed and number give the same sample. A Gilbert-Elliott distribution has a state, so it
 * is simulated from number 0 each time, which is slow for a large `first`. Errors: GEPOLAB_EINPUT
 * for numbers that are negative or beyond 2^40. */
GEPOLAB_API gepolab_status gepolab_delay_draw(const gepolab_delay *dist, uint64_t seed,
                                              int64_t first, int64_t n, double *out,
                                              gepolab_error *err);

/* --- statistics (methods.md §13) --- */
/* Example: statistics. Four runs, one of which had not collapsed when it ended.
 *
 *     #include <gepolab.h>
 *     #include <stdio.h>
 *
 *     int main(void) {
 *       static const double score[] = {0.1, 0.4, 0.5, 0.6, 0.9}, update[] = {50, 80, 80, 100};
 *       static const uint8_t fell[] = {1, 1, 1, 0};
 *       double at[4], survival[4], error[4];
 *       gepolab_curve curve = GEPOLAB_INIT(gepolab_curve);
 *       gepolab_interval mean;
 *       gepolab_error err;
 *       curve.at = at, curve.survival = survival, curve.error = error;
 *       if (gepolab_iqm(score, 5, 1, &mean, &err) != GEPOLAB_OK ||
 *           gepolab_survival(update, fell, 4, &curve, &err) != GEPOLAB_OK)
 *         return puts(err.text), 1;
 *       printf("interquartile mean %.3f\n", mean.value);
 *       for (int64_t i = 0; i < curve.n; ++i)
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

/* An estimate with its 95 % interval; NaN if undefined. */
typedef struct gepolab_interval {
  double value, low, high;
} gepolab_interval;

/* Interquartile mean of value[n] (NaN values are skipped), with a percentile bootstrap interval of
 * 2,000 resamples seeded by `seed`; with fewer than five values low and high are their range. NaN
 * if no value is left. n may be 0. */
GEPOLAB_API gepolab_status gepolab_iqm(const double *value, int64_t n, uint64_t seed,
                                       gepolab_interval *out, gepolab_error *err);
/* Spearman's rank correlation of the n pairs x[i], y[i] (pairs with a NaN are skipped), with an
 * interval from Fisher's z. NaN if undefined: fewer than four distinct pairs, or a constant sample.
 */
GEPOLAB_API gepolab_status gepolab_spearman(const double *x, const double *y, int64_t n,
                                            gepolab_interval *out, gepolab_error *err);

typedef struct gepolab_curve {
  size_t size;
  /* input: each with room for as many values as there are times */
  double *at;       /* receives the distinct collapse times, ascending */
  double *survival; /* receives the fraction surviving after each */
  double *error;    /* receives Greenwood's standard error */
  int64_t n;        /* output: number of collapse times */
} gepolab_curve;

/* Kaplan and Meier's estimate of survival (1958) with Greenwood's standard errors (1926): time[n]
 * with observed[n] (0: censored, the run ended without a collapse). Times may be in any unit.
 * Errors: GEPOLAB_EINPUT for a time that is NaN or negative.
 */
GEPOLAB_API gepolab_status gepolab_survival(const double *time, const uint8_t *observed, int64_t n,
                                            gepolab_curve *out, gepolab_error *err);

#ifdef __cplusplus
}
#endif

#endif
