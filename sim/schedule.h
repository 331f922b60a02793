/* The schedule of a simulated cluster, usually computed before any learning.
 *
 * For every learner update it lists the trained batches, the sampler and version of each, and all
 * times in simulated seconds. It contains no policy parameters. The training loop replays it: when
 * the learner is at version v, it samples exactly the batches of version v that some update will
 * train. A batch whose weights changed during generation has several segments. Model:
 * paper/methods.md §10. */
#ifndef GEPOLAB_SIM_SCHEDULE_H
#define GEPOLAB_SIM_SCHEDULE_H

#include "core/base/clock_record.h"
#include "core/base/error.h"
#include "sim/cluster.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct schedule_segment {
  int64_t version;
  double from, to;  /* part of the response generated with this version, as fractions */
  int64_t response; /* index of the response in the unit if responses differ; SEGMENT_OF_ALL: all */
} schedule_segment;
enum { SEGMENT_OF_ALL = -1 };

/* A unit: a batch, a group of responses or one response (cluster.unit). */
typedef struct schedule_batch {
  uint64_t id;     /* sampler << 32 | index of the batch at that sampler */
  uint64_t number; /* index among all batches started, from 0 */
  uint32_t sampler;
  uint32_t n_segments;
  size_t first_segment;
  double start_s, generated_s; /* simulated seconds: start and end of its generation */
  double arrived_s;            /* when it joined the learner's queue, after grading */
  double trained_s;            /* start of its update */
  double bytes;
  double tokens;  /* total of all responses; 0 without lengths */
  double longest; /* tokens of the longest response; 0 without lengths */
} schedule_batch;

typedef struct schedule_update {
  int64_t step;                  /* learner update, from 1 */
  int64_t version;               /* learner version the update starts from: step - 1 */
  int64_t published;             /* newest published version at its start */
  size_t first_batch, n_batches; /* into batches[] */
  double start_s, end_s;
  double wait_s;  /* idle time before start, without evaluation pauses */
  double pause_s; /* evaluation pause before start */
  /* Number of updates so far, including this one, that trained the backlog of an evaluation pause:
   * since the pause the learner has not waited for units, and at the start of each of these updates
   * more units waited than when the pause started. */
  uint64_t catch_ups;
} schedule_update;

/* The fate of a unit that was started. */
typedef enum unit_fate {
  FATE_TRAINED,
  FATE_STALE,    /* dropped: staler than the window */
  FATE_EVICTED,  /* dropped by a full queue */
  FATE_ABORTED,  /* dropped because of new weights (partial: drop), because it had become too stale
                    (cancel_stale), or as surplus (surplus: abort) */
  FATE_LOST,     /* lost in a crash or by the link */
  FATE_REJECTED, /* rejected when it reached the learner (learner.reject) */
  FATE_PENDING,  /* in generation, in transfer or waiting at the end */
  FATES
} unit_fate;

/* Classes of units: by their longest response, class k having 2^k to 2^(k+1) - 1 tokens; and by
 * their prompt's length factor (cluster.prompt_lengths), the quarters of its distribution from
 * short to long. */
enum { LENGTH_CLASSES = 32, PROMPT_CLASSES = 4 };
typedef struct unit_counts {
  uint64_t units;
  double tokens, longest; /* sums over the units */
  uint64_t by_length[LENGTH_CLASSES], by_prompt[PROMPT_CLASSES];
} unit_counts;

/* "trained", "stale", …; static. */
const char *unit_fate_name(unit_fate fate);

/* Units of one source (cluster.sources); the others of `begun` are pending. */
typedef struct source_report {
  uint64_t begun, fate[FATES];
  int64_t staleness; /* summed over the trained ones */
  double waited_s;   /* seconds that they waited at the learner, summed */
} source_report;

/* Times of transfers from request to arrival. Seconds; NaN without transfers; p50 and p95 within
 * 0.6 %. */
typedef struct transfer_times {
  double n, mean, p50, p95, max;
} transfer_times;

/* Statistics of cluster.restarts. */
typedef struct restart_report {
  bool is_on;       /* false: the cluster has none */
  double n;         /* number of restarts */
  double stopped_s; /* seconds that the job was down or recovering */
  double again;     /* completed updates that were lost and repeated */
} restart_report;

/* Statistics of cluster.decoding. */
typedef struct decoding_report {
  bool is_on;              /* false: the cluster has none */
  double tokens_per_s;     /* tokens of all responses per second that a sampler decodes, mean over
                              samplers */
  double preemptions;      /* number of times a response was preempted */
  double preempted_tokens; /* tokens whose keys and values were computed again after it */
  bool prefills; /* prompts take time (prefix_cache is not free); the following are then counted */
  double prompts, cached; /* tokens of prompts of responses that began, and of these in the cache */
} decoding_report;

/* Statistics of cluster.grader. */
typedef struct grader_report {
  bool is_on;       /* false: the cluster has none */
  double wait_s;    /* mean time that units waited for a place */
  double busy;      /* places in use, averaged over time */
  double timed_out; /* number of units whose grading timed out */
} grader_report;

/* Statistics of cluster.colocated. */
typedef struct gpu_report {
  bool is_on;      /* false: the cluster has none */
  double switches; /* number of switches of the shared GPUs, in both directions */
  double seconds;  /* total duration of these switches */
} gpu_report;

/* Statistics of cluster.environment. */
typedef struct environment_report {
  bool is_on;    /* false: the cluster has none */
  double wait_s; /* mean time that calls waited for a place */
  double busy;   /* places in use, averaged over time */
  double calls;  /* number of calls begun */
} environment_report;

/* Measurements of cluster.network. */
typedef struct network_report {
  bool is_on; /* false: the cluster has none */
  double egress_utilisation,
      ingress_utilisation; /* fraction of the learner's bandwidth in use; NaN: unlimited */
  transfer_times weights, batches;
  double fulls, deltas; /* number of transfers of full weights and of deltas */
  double sites;    /* number of sites; 0: everything is at one place. The following are totals over
                      sites */
  double outage_s; /* seconds of outages */
  double interrupted; /* transfers that were flowing when an outage started */
} network_report;

typedef struct schedule {
  schedule_update *updates;
  size_t n_updates;
  schedule_batch *batches; /* trained batches only, grouped by update */
  size_t n_batches;
  schedule_segment *segments;
  size_t n_segments;
  uint64_t *staleness; /* [n_staleness] histogram over trained batches: version at the update minus
                          the batch's oldest version */
  size_t n_staleness;
  staleness_parts parts; /* summed over trained batches */
  clock_record clock;
  /* Two invariants: batches started = trained + dropped + lost + pending; and by Little's law the
   * total waiting time of batches (including those still waiting) equals the time integral of the
   * number waiting. */
  uint64_t begun, pending; /* units; pending: in generation, in transfer or waiting at the end */
  double waited_s, waiting_integral_s;
  size_t unit_responses;   /* responses per unit */
  unit_counts fate[FATES]; /* lengths and prompts are only counted if the cluster samples them */
  source_report sources[MOST_SOURCES];
  size_t n_sources;
  uint8_t *source_of; /* [n_batches] source of each trained unit; NULL without sources */
  double weight_sum;  /* summed weight of trained units: 1 each, or less if stale ones are
                         downweighted */
  uint64_t rounds;    /* rounds of generation of all units started: 1 each, or more if the learner
                         samples more than it sends */
  uint64_t drawn_responses; /* number of responses in these rounds */
  bool streams;             /* units are groups or responses; the following two are then valid */
  uint64_t aborted;         /* units with FATE_ABORTED */
  double slot_utilisation;  /* fraction of decoding slots in use, averaged over time */
  /* If new weights pause decoding: the number of pauses, their total length over samplers, and the
   * number of tokens whose keys and values were recomputed. */
  bool interrupts;
  uint64_t n_interrupts;
  double interrupted_s, recomputed_tokens;
  network_report network;
  restart_report restarts;
  decoding_report decoding;
  grader_report grader;
  environment_report environment;
  gpu_report gpus;
  size_t sampler_bytes; /* memory of the clock per sampler */
  size_t batch_bytes;   /* peak memory of all batches in generation, in transfer or waiting */
  size_t event_bytes;   /* memory of the event list */
  uint64_t events;      /* number of events handled */
} schedule;

/* Runs the cluster's clock until `updates` learner updates are done. The result depends only on
 * spec, seed and updates. Release with schedule_fini(); after an error *out is empty. Errors:
 * GL_ENOMEM, GL_ENUMERIC if the learner waits for batches that can never arrive, with the state of
 * all parts. */
gl_status schedule_build(schedule *out, const cluster_spec *spec, uint64_t seed, size_t updates,
                         gl_error *err);
void schedule_fini(schedule *s);

/* Rounds of a batch whose sampler resamples groups until enough have different rewards; only some
 * of the responses are sent. n 0: one round with the batch's responses. */
typedef struct schedule_rounds {
  size_t n;
  size_t responses;        /* responses per round */
  const uint32_t *lengths; /* [n * responses] lengths in tokens; borrowed until the next call */
} schedule_rounds;

/* Callbacks from a coupled clock to its learner: sample responses and return their lengths, update,
 * hold and release versions. Calls are in the order of simulated time. Batches are identified by
 * their number; batches pending at the end are not discarded. */
typedef struct schedule_hooks {
  void *self;
  /* A sampler starts batch b (id, number, sampler are set) with the weights of `version`, the
   * learner's current one or a held one. Writes lengths[responses of a batch] in tokens. */
  gl_status (*draw)(void *self, const schedule_batch *b, int64_t version, double *lengths,
                    gl_error *err);
  /* Batch b will not be trained: it was lost or dropped. */
  void (*discard)(void *self, const schedule_batch *b, unit_fate fate);
  /* The learner ends update u on batches[u->n_batches], which turns version u->version into the
   * next one. *stop = true makes it the last update of the schedule. */
  gl_status (*update)(void *self, const schedule_update *u, const schedule_batch *batches,
                      bool *stop, gl_error *err);
  /* hold: called before the update that replaces a version with which batches may still start;
   * release: called when none can. All held versions are released before the clock returns. */
  gl_status (*hold)(void *self, int64_t version, gl_error *err);
  void (*release)(void *self, int64_t version);
  /* Returns the rounds in which batch b was sampled, after draw(); NULL: one round for every batch.
   * The generation time is that of all rounds; bytes only count responses that are sent. Only if
   * the cluster's unit is a batch. */
  void (*rounds)(void *self, const schedule_batch *b, schedule_rounds *out);
  /* Only if weights change during decoding (partial: continue), otherwise NULL. Batch b continues
   * with weights of this version: response k from its token from[k] on (0: not started;
   * SCHEDULE_LEAVES: response unchanged). lengths[responses] holds the old lengths and receives the
   * new ones, at least from[k] + 1. */
  gl_status (*go_on)(void *self, const schedule_batch *b, int64_t version, const size_t *from,
                     double *lengths, gl_error *err);
} schedule_hooks;
#define SCHEDULE_LEAVES SIZE_MAX

/* Runs the clock with these hooks: generation times and bytes follow from the lengths they return;
 * the cluster's length distributions are not used. The result depends only on the arguments and the
 * lengths: with lengths sampled from the distribution it equals that of schedule_build(). Errors:
 * those of schedule_build() and of the hooks. */
gl_status schedule_build_coupled(schedule *out, const cluster_spec *spec, uint64_t seed,
                                 size_t updates, const schedule_hooks *hooks, gl_error *err);

/* Kinds of spans in a trace. */
typedef enum span_kind {
  SPAN_GENERATION, /* a sampler generates a batch */
  SPAN_GATED,      /* a sampler waits for newer weights at the gate */
  SPAN_FETCH,      /* a sampler waits for the weights it fetches */
  SPAN_DOWN,       /* a sampler has crashed */
  SPAN_INTERRUPT,  /* a sampler is paused for new weights, or while its GPUs train */
  SPAN_UPLOAD,     /* a batch is in transfer to the learner */
  SPAN_DOWNLOAD,   /* weights are in transfer to a sampler */
  SPAN_QUEUED,     /* a batch waits at the learner */
  SPAN_IDLE,       /* the learner waits for batches */
  SPAN_TRAINING,
  SPAN_EVALUATION,
  SPAN_UPLOAD_WAITS,   /* cluster.network: a batch waits until its bytes flow */
  SPAN_DOWNLOAD_WAITS, /* cluster.network: weights wait until their bytes flow */
  SPAN_EGRESS,         /* bytes flow from the learner through its side of the network */
  SPAN_INGRESS,        /* bytes flow to the learner through its side of the network */
  SPAN_RELAY,          /* a sampler forwards weights */
  SPAN_OUTAGE,         /* a site is cut off; `sampler` is the site's index */
  SPAN_RESTART,        /* the whole job is down or recovering */
  SPAN_GRADING,        /* a unit is graded */
  SPAN_SWITCH,         /* the learner's GPUs change between generation and training */
  SPAN_CALL_WAITS,     /* a response of the unit waits for a place of the environment */
  SPAN_CALL,           /* a response of the unit is at a place of the environment */
  SPAN_PREEMPTED,      /* a response of the unit waits for memory at its sampler */
  SPAN_PREFILL         /* a sampler computes the prompt of a response of the unit */
} span_kind;

/* How a span ended. SPAN_DROPPED: the batch was dropped; SPAN_LOST: the message was lost, or the
 * batch with its sampler; SPAN_OPEN: the clock ended first. */
typedef enum span_end { SPAN_DONE, SPAN_DROPPED, SPAN_LOST, SPAN_OPEN } span_end;

typedef struct schedule_span {
  span_kind kind;
  span_end end;
  uint32_t sampler;    /* the sampler, or that of the link or batch; 0 for the learner */
  double from_s, to_s; /* for messages, prefills and the learner, to_s may be after the end of the
                          clock */
  uint64_t batch;      /* number of the batch if the span concerns one; otherwise 0 */
  int64_t version; /* version of weights in transfer or at the start of training; otherwise -1 */
} schedule_span;

/* Receives every span that takes time or ends in a drop or a loss, when its end is known; in no
 * particular order. */
typedef struct schedule_trace {
  void *self;
  void (*span)(void *self, const schedule_span *s);
} schedule_trace;

/* schedule_build() that reports spans to a trace; the schedule is the same. */
gl_status schedule_build_traced(schedule *out, const cluster_spec *spec, uint64_t seed,
                                size_t updates, const schedule_trace *trace, gl_error *err);

/* Staleness of a trained batch: its update's version minus the version of its oldest segment. */
int64_t schedule_staleness(const schedule *s, const schedule_update *u, const schedule_batch *b);

/* The learner's version at this time, before update u began: the number of updates before u that
 * have ended by then. Updates may take no time, so that u and later ones may have ended, too. */
int64_t schedule_version_at(const schedule *s, const schedule_update *u, double time);

/* Splits the staleness of a batch into parts that add up to it. */
staleness_parts schedule_split_staleness(const schedule *s, const schedule_update *u,
                                         const schedule_batch *b);

/* Fills the histogram of staleness and the sums of its parts. */
gl_status schedule_count_staleness(schedule *s, gl_error *err);
/* The smallest staleness that a fraction of at least p of the batches does not exceed. */
double schedule_staleness_quantile(const schedule *s, double p);

/* --- summary as a list and as JSON --- */

/* Writes the summary to *out: `preset`, `staleness` {mean, max, p50, p95, histogram, bound, from}
 * and, by their names, the numbers of schedule_numbers(), those of a network in an object
 * `network`. `bound` is cluster_staleness_bound(), if there is one; `from` has an object for each
 * part of staleness, {versions: sum over trained batches, mean}. If units stream also `unit` (the
 * unit of all counts of batches), `slot_utilisation` and `batches_aborted`; if new weights pause
 * decoding `interruptions`, `interrupted_s` and `recomputed_tokens`; with sources a list `sources`.
 * If the recipe has `compare` also `ks_distance`, or `measured_s` and `compared_s` (measured and
 * simulated seconds of the same number of updates), with `compared_with` and `compared_source`. The
 * caller frees *out (cJSON_Delete). */
gl_status schedule_to_json(const schedule *s, const cluster_spec *spec, cJSON **out, gl_error *err);
/* The numbers of a schedule as a list: those of every schedule (SCHEDULE_COMMON_NUMBERS), mean,
 * median, 95 % quantile, maximum and parts of staleness, and the numbers of those sections that the
 * cluster has: network, restarts, decoding, grader, colocated, environment. Returns their number.
 */
enum { SCHEDULE_COMMON_NUMBERS = 12, SCHEDULE_MOST_NUMBERS = 64 };
typedef struct schedule_number {
  const char *name, *unit; /* static */
  double value;
} schedule_number;
size_t schedule_numbers(const schedule *s, schedule_number out[SCHEDULE_MOST_NUMBERS]);
/* Kolmogorov-Smirnov distance between the staleness of the updates (of the first batch of each,
 * over as many updates as were measured) and the recipe's measured staleness. NaN and GL_OK if the
 * recipe has none. */
gl_status schedule_ks(const schedule *s, const cluster_spec *spec, double *distance, gl_error *err);
/* Mean duration in seconds of `updates` updates, from the second half of the schedule, when the
 * queues have filled. NaN without updates. */
double schedule_seconds(const schedule *s, double updates);

#endif
