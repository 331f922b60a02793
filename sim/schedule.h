/* The schedule: what the clock decides, ordinarily before any learning happens.
 *
 * For every learner update: which batches it trains, drawn by which sampler from which version, and
 * all times, in simulated seconds. It holds no parameters of a policy. The training loop follows
 * it: when the learner is at version v, the loop draws exactly those batches of version v that some
 * update will train. A batch whose weights changed while it was generated has several segments.
 * The model is that of paper/methods.md §10.
 */
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
  double from, to; /* fractions of the response generated under this version */
  int64_t
      response; /* which of the unit's responses, where they differ; SEGMENT_OF_ALL: all of them */
} schedule_segment;
enum { SEGMENT_OF_ALL = -1 };

/* A unit: with cluster.unit: batch a batch, else a group of responses or one response. */
typedef struct schedule_batch {
  uint64_t id;     /* sampler << 32 | ordinal of the batch at that sampler */
  uint64_t number; /* of the batches begun, in order, from 0 */
  uint32_t sampler;
  uint32_t n_segments;
  size_t first_segment;
  double start_s, generated_s, arrived_s, trained_s;
  double bytes;
  double tokens; /* of all its responses, and of the longest; 0 where no lengths are drawn */
  double longest;
} schedule_batch;

typedef struct schedule_update {
  int64_t step;                  /* 1-based */
  int64_t version;               /* learner version the update starts from: step - 1 */
  size_t first_batch, n_batches; /* into batches[] */
  double start_s, end_s;
  double wait_s;  /* idle before start, evaluation pauses excluded */
  double pause_s; /* evaluation pause before start */
  /* Updates so far, this one included, that worked off the backlog of an evaluation pause: since a
   * pause more units have waited at the start of each than when the pause began, and the learner
   * has not waited for units. */
  uint64_t catch_ups;
} schedule_update;

/* The fate of a unit that was begun. */
typedef enum unit_fate {
  FATE_TRAINED,
  FATE_STALE,   /* dropped: staler than the window */
  FATE_EVICTED, /* dropped by a full queue */
  FATE_ABORTED, /* dropped at its sampler, for new weights (partial: drop) */
  FATE_LOST,    /* with a crash or by the link */
  FATE_PENDING, /* under way, on its way or waiting at the end */
  FATES
} unit_fate;

/* Classes of units: by their longest response, class k of 2^k to 2^(k+1) - 1 tokens; and by their
 * prompt's factor (cluster.prompt_lengths), the quarters of its distribution from the fastest to
 * the slowest. */
enum { LENGTH_CLASSES = 32, PROMPT_CLASSES = 4 };
typedef struct unit_counts {
  uint64_t units;
  double tokens, longest; /* sums */
  uint64_t by_length[LENGTH_CLASSES], by_prompt[PROMPT_CLASSES];
} unit_counts;

/* "trained", "stale", …; static. */
const char *unit_fate_name(unit_fate fate);

/* Times of transfers, from asking for them to arrival. Seconds; NaN without any; p50 and p95 within
 * 0.6 %. */
typedef struct transfer_times {
  double n, mean, p50, p95, max;
} transfer_times;

/* Measurements of cluster.network. */
typedef struct network_report {
  bool is_on;                                     /* 0: the cluster has none */
  double egress_utilisation, ingress_utilisation; /* of the learner's bandwidths; NaN: unlimited */
  transfer_times weights, batches;
  double fulls, deltas; /* transfers of weights */
  double sites;         /* 0: all is at one place; else, of all sites together: */
  double outage_s;      /* seconds cut off */
  double interrupted;   /* transfers that flowed when an outage began */
} network_report;

typedef struct schedule {
  schedule_update *updates;
  size_t n_updates;
  schedule_batch *batches; /* trained batches only, grouped by update */
  size_t n_batches;
  schedule_segment *segments;
  size_t n_segments;
  uint64_t *staleness; /* [n_staleness] histogram over trained batches: version at update - batch's
                          oldest version */
  size_t n_staleness;
  staleness_parts parts; /* summed over trained batches */
  clock_record clock;
  /* Two checks: batches begun = trained + dropped + lost + pending; and by Little's law the time
   * that batches waited, summed (those that still wait with their time so far), is the integral
   * over time of the number that wait. */
  uint64_t begun, pending; /* units; pending: in work, on the way or waiting at the end */
  double waited_s, waiting_integral_s;
  size_t unit_responses;   /* of a unit */
  unit_counts fate[FATES]; /* lengths and prompts count where the cluster draws them */
  double weight_sum;       /* of trained units: 1 each, less where stale ones are downweighted */
  uint64_t rounds; /* of generation that the units begun took, one each but where a learner */
  uint64_t drawn_responses; /* draws more than it sends; and the responses of these */
  bool streams;             /* units are groups or responses, and have these: */
  uint64_t aborted;         /* dropped at their sampler, because new weights came (partial: drop) */
  double slot_utilisation;  /* fraction of the decoding slots in use, over time */
  /* Where weights interrupt decoding: how often, how long samplers stood still for it, all in all,
   * and tokens of which keys and values were computed again. */
  bool interrupts;
  uint64_t n_interrupts;
  double interrupted_s, recomputed_tokens;
  network_report network;
  size_t sampler_bytes; /* memory the clock took for one sampler, */
  size_t batch_bytes;   /* and at its peak for all batches in work, on the way or waiting, */
  size_t event_bytes;   /* and for its events */
  uint64_t events;      /* that it handled */
} schedule;

/* Runs the cluster's clock until `updates` learner updates are done. The result depends on spec,
 * seed and updates alone. GL_ENUMERIC if the learner waits for batches that can never come, saying
 * what everybody waits for. Release with schedule_fini(); after an error *out is empty. */
gl_status schedule_build(schedule *out, const cluster_spec *spec, uint64_t seed, size_t updates,
                         gl_error *err);
void schedule_fini(schedule *s);

/* The rounds of a batch whose sampler resamples groups until enough are informative; only some of
 * their responses are sent. n 0: one round of the batch's responses. */
typedef struct schedule_rounds {
  size_t n;
  size_t responses;        /* of each round */
  const uint32_t *lengths; /* [n * responses] in tokens; borrowed until the next call */
} schedule_rounds;

/* Callbacks of a coupled clock to its learner: sample responses and return their lengths, update,
 * hold and release versions. Calls come in the order of simulated time. Batches are identified by
 * their number; batches pending at the clock's end are not discarded. */
typedef struct schedule_hooks {
  void *self;
  /* A sampler begins batch b (id, number, sampler are set) with these weights: lengths[responses of
   * a batch] in tokens. The version is the learner's or a held one. */
  gl_status (*draw)(void *self, const schedule_batch *b, int64_t version, double *lengths,
                    gl_error *err);
  /* Batch b will not be trained: it was lost, or thrown away. */
  void (*discard)(void *self, const schedule_batch *b, unit_fate fate);
  /* The learner ends update u, which makes of version u->version the next; batches[u->n_batches].
   * *stop = true makes it the schedule's last. */
  gl_status (*update)(void *self, const schedule_update *u, const schedule_batch *batches,
                      bool *stop, gl_error *err);
  /* hold: before the update that replaces a version with which batches may still begin; release:
   * once none can. All held versions are released before the clock returns. */
  gl_status (*hold)(void *self, int64_t version, gl_error *err);
  void (*release)(void *self, int64_t version);
  /* How batch b was drawn, after draw(); NULL: every batch in one round. The time of a batch is
   * that of all its rounds, its bytes are those of what is sent. Only for clusters whose unit is a
   * batch.
   */
  void (*rounds)(void *self, const schedule_batch *b, schedule_rounds *out);
  /* Where weights change while responses are decoded (partial: continue), else NULL: batch b goes
   * on with those of this version, response k from its token from[k] on, which is 0 where it has
   * not begun (SCHEDULE_LEAVES: nothing of it changes). lengths[responses] are what they were, and
   * become what they are now; none is below from[k] + 1. */
  gl_status (*go_on)(void *self, const schedule_batch *b, int64_t version, const size_t *from,
                     double *lengths, gl_error *err);
} schedule_hooks;
#define SCHEDULE_LEAVES SIZE_MAX

/* Runs the clock with these hooks: generation times and bytes follow from the lengths they give,
 * whatever distributions the cluster has for them. The result depends on the arguments and the
 * lengths alone: with the lengths that a distribution gives, it is schedule_build's. Errors are
 * schedule_build's and those of the hooks. */
gl_status schedule_build_coupled(schedule *out, const cluster_spec *spec, uint64_t seed,
                                 size_t updates, const schedule_hooks *hooks, gl_error *err);

/* Kinds of spans in a trace. */
typedef enum span_kind {
  SPAN_GENERATION, /* a sampler generates a batch */
  SPAN_GATED,      /* a sampler waits for newer weights at the gate */
  SPAN_FETCH,      /* a sampler waits for the weights it fetches */
  SPAN_DOWN,       /* a sampler has crashed */
  SPAN_INTERRUPT,  /* a generating sampler is paused for new weights */
  SPAN_UPLOAD,     /* a batch is on its way to the learner */
  SPAN_DOWNLOAD,   /* weights are on their way to a sampler */
  SPAN_QUEUED,     /* a batch waits at the learner */
  SPAN_IDLE,       /* the learner waits for batches */
  SPAN_TRAINING,
  SPAN_EVALUATION,
  SPAN_UPLOAD_WAITS,   /* cluster.network: a batch waits until its bytes flow, */
  SPAN_DOWNLOAD_WAITS, /* and weights do */
  SPAN_EGRESS,         /* bytes flow through the learner's side of the network, outwards */
  SPAN_INGRESS,        /* and inwards */
  SPAN_RELAY,          /* a sampler sends weights on */
  SPAN_OUTAGE          /* a site is cut off; its number is in `sampler` */
} span_kind;

/* How a span ended. SPAN_DROPPED: the batch was dropped; SPAN_LOST: the message or, with its
 * sampler, the batch was lost; SPAN_OPEN: the clock ended before. */
typedef enum span_end { SPAN_DONE, SPAN_DROPPED, SPAN_LOST, SPAN_OPEN } span_end;

typedef struct schedule_span {
  span_kind kind;
  span_end end;
  uint32_t sampler;    /* of a sampler, its link or its batch; the learner's: 0 */
  double from_s, to_s; /* of messages and of the learner it may lie beyond the clock's end */
  uint64_t batch;      /* its number, where the span is about one; else 0 */
  int64_t version;     /* of weights on their way or trained from; else -1 */
} schedule_span;

/* Receives every span that takes time or ends in a drop or a loss, once its end is known; in no
 * particular order. */
typedef struct schedule_trace {
  void *self;
  void (*span)(void *self, const schedule_span *s);
} schedule_trace;

/* schedule_build() that reports spans to a trace; the schedule is the same. */
gl_status schedule_build_traced(schedule *out, const cluster_spec *spec, uint64_t seed,
                                size_t updates, const schedule_trace *trace, gl_error *err);

/* Staleness of one trained batch: its update's version minus its oldest segment's version. */
int64_t schedule_staleness(const schedule *s, const schedule_update *u, const schedule_batch *b);

/* Splits it into its parts, which add up to it. */
staleness_parts schedule_split_staleness(const schedule *s, const schedule_update *u,
                                         const schedule_batch *b);

/* --- the schedule in numbers, as a list and as JSON --- */

/* The summary (`bound` is cluster_staleness_bound() where there is one; `from` has an object for
 * each part of staleness, {versions: sum over trained batches, mean}; the parts add up):
 * `staleness` {mean, max, p50, p95, histogram, bound, from}, `learner_utilisation`,
 * `sampler_utilisation`, `batches_generated/_trained/_dropped/_lost`, `samples_per_s`, `bytes_up`,
 * `bytes_down`, `retransmissions`, `simulated_s`, `updates`; where units stream also `unit` (what
 * all counts of batches count), `slot_utilisation` and `batches_aborted`; with `compare` in the
 * recipe also `ks_distance` or `measured_s` and `compared_s` (measured and simulated seconds of as
 * many updates), `compared_with` and `compared_source`. *out is the caller's (cJSON_Delete). */
gl_status schedule_to_json(const schedule *s, const cluster_spec *spec, cJSON **out, gl_error *err);
/* The same numbers as a list: those that every schedule has (SCHEDULE_COMMON_NUMBERS), the mean,
 * median, 95 % quantile, maximum and mean parts of staleness, and those of a network where there is
 * one. Returns how many. */
enum { SCHEDULE_COMMON_NUMBERS = 12, SCHEDULE_MOST_NUMBERS = 64 };
typedef struct schedule_number {
  const char *name, *unit; /* static */
  double value;
} schedule_number;
size_t schedule_numbers(const schedule *s, schedule_number out[SCHEDULE_MOST_NUMBERS]);
/* Kolmogorov-Smirnov distance between the staleness of the updates (of an update's first batch; of
 * as many updates from the first on as were measured) and the recipe's measured staleness. NaN with
 * GL_OK where the recipe names none. */
gl_status schedule_ks(const schedule *s, const cluster_spec *spec, double *distance, gl_error *err);
/* Mean seconds that `updates` updates take, in the later half of the schedule, where the queues
 * have filled. NaN if there is no update. */
double schedule_seconds(const schedule *s, double updates);

#endif
