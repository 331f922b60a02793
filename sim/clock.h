/* State of the event-driven clock behind schedule_build(), and the interface between its parts.
 * Private to sim/. Times are simulated seconds.
 *
 * Each file only calls files above it; actions at a later time are posted as events:
 *
 *   clock_shared.c  posting events, the pool and the ledger of units, versions in use; a sampler's
 *                   state, sampled times and pauses
 *   transfer.c      messages over a shared network, relays
 *   decoding.c      speed of decoding from the load, preemption
 *   environment.c   turns of responses, calls of an environment with places
 *   sampler.c       samplers that generate whole batches; sending, fetching, pushing; samplers
 *                   that stream groups or responses
 *   learner_queue.c waiting batches, choosing among them, updates
 *   restart.c       restarts of the whole job
 *   statistics.c    statistics at the end
 *   clock.c         crashes, outages, one handler per kind of event, the loop */
#ifndef GEPOLAB_SIM_CLOCK_H
#define GEPOLAB_SIM_CLOCK_H

#include "core/base/arena.h"
#include "sim/cluster_spec.h"
#include "sim/event_queue.h"
#include "sim/network.h"
#include "sim/schedule.h"

#include <stdbool.h>

/* --- the pool of units --- */

/* Batches between their first token and their update: a pool with reusable slots, and a linked
 * list, from oldest to newest, of batches that wait at the learner. A batch is identified by its
 * slot, its index in the pool. */
enum { BUFFER_NONE = UINT32_MAX };
enum { CACHE_LINE = 64 };

/* Two cache lines, with the links in the second. */
typedef struct pooled_batch {
  schedule_batch facts;       /* as copied to the schedule; first_segment is not used here */
  schedule_segment *segments; /* owned; memory is reused with the slot */
  uint32_t segment_capacity;
  uint32_t source;    /* index in cluster.sources */
  int64_t begun_with; /* version of the sampler when it started the batch */
  uint64_t arrival;   /* position in the order of arrival, from 1; 0: not waiting */
  uint32_t older,
      newer; /* neighbours in the list of waiting batches; `newer` also links free slots */
} pooled_batch;

/* Levels of a skip list over waiting batches, each with a quarter of the batches of the level below
 * (Pugh, Skip lists: a probabilistic alternative to balanced trees, CACM 33, 1990). */
enum { INDEX_LEVELS = 10 };

typedef struct buffer {
  bool by_time; /* waiting batches are ordered by the time they were generated, not by arrival */
  uint32_t (*above)[INDEX_LEVELS]; /* [capacity] owned; slots of the next batch on each level, if
                                      by_time */
  uint32_t first_above[INDEX_LEVELS];
  pooled_batch *pool; /* owned; aligned to cache lines */
  size_t n_pool, capacity;
  uint32_t free_slot, oldest, newest;
  size_t waiting;
  uint64_t arrivals;
} buffer;

void buffer_init(buffer *b, bool by_time);
void buffer_fini(buffer *b);
/* Memory of batches and their segments, in bytes. */
size_t buffer_bytes(const buffer *b);
/* Number of slots in use. */
size_t buffer_in_use(const buffer *b);
/* Allocates a slot for a new batch whose first segment has this version; BUFFER_NONE if out of
 * memory. */
uint32_t buffer_take(buffer *b, int64_t version);
/* Ends the last segment at fraction `at` of the response and starts one with another version.
 * Returns false if out of memory. */
bool buffer_switch(buffer *b, uint32_t slot, double at, int64_t version);
/* Adds the first segment of one response; all segments of the batch must then be per response.
 * Returns its index, UINT32_MAX if out of memory. */
uint32_t buffer_begin_response(buffer *b, uint32_t slot, int64_t response, int64_t version);
/* Ends the segment at fraction `at` and starts one with another version. Returns the index of the
 * new segment, of the old one if nothing was generated in it, or UINT32_MAX if out of memory. */
uint32_t buffer_switch_response(buffer *b, uint32_t slot, uint32_t segment, double at,
                                int64_t version);
/* Rescales the segments of a response after a change of its length: multiplies all segment ends
 * except the last by `factor`. */
void buffer_rescale_response(buffer *b, uint32_t slot, int64_t response, double factor);
/* Replaces the segments by a single one if all responses have the same version. */
void buffer_join_segments(buffer *b, uint32_t slot);
/* Frees the slot. */
void buffer_release(buffer *b, uint32_t slot);
/* Inserts a batch into the list of waiting batches: with by_time by the time it was generated, as
 * HeteroRL sorts its files by name, which costs O(log n); otherwise at the newest end. */
void buffer_insert(buffer *b, uint32_t slot);
void buffer_remove(buffer *b, uint32_t slot);
/* Version of the batch's first segment, which is its oldest. */
int64_t buffer_version(const buffer *b, uint32_t slot);

/* --- samplers --- */

typedef enum sampler_state {
  SAMPLER_READY, /* starts a batch as soon as it may */
  SAMPLER_GENERATING,
  SAMPLER_GATED,   /* the gate is closed: waits for newer weights */
  SAMPLER_LOADING, /* SYNC_PULL: waits for the weights it is fetching */
  SAMPLER_DOWN     /* crashed */
} sampler_state;

/* State of one of a sampler's random sequences. Kept small, because there may be millions of
 * samplers; the stream is computed from the sampler's number. */
typedef struct draw_state {
  uint32_t index, bad; /* as in delay_source */
} draw_state;

/* Two cache lines: the members that every event reads, and the random sequences. With a million
 * samplers, an event waits for main memory once per cache line it reads. */
typedef struct sampler {
  _Alignas(CACHE_LINE) const sampler_group *group;
  int64_t version; /* version of its weights; -1: none */
  double begun_s;  /* start of its state */
  double ends_s;   /* end of generating the batch, or of fetching weights */
  double busy_s;   /* time spent generating, up to the last batch that ended */
  double due_s;    /* SYNC_PULL: earliest time of the next fetch */
  sampler_state state;
  uint32_t slot;         /* index in the pool of units: the batch being generated */
  uint32_t ordinal;      /* number of the next batch it starts, from 0 */
  unsigned crashes : 31; /* number of crashes so far */
  unsigned resend : 1;   /* new weights must be sent when the link is free */
  draw_state delay, data_delay, generation, jitter;
  link_state up, down;
} sampler;

/* Streaming: with cluster.unit group or response a sampler has many units in progress. Each
 * decoding slot takes the next response when its own ends. */

/* A response being decoded. */
typedef struct running_response {
  uint32_t slot;           /* index of its unit in the pool of units */
  uint32_t serial;         /* counts uses of this entry; events of earlier uses are ignored */
  uint32_t previous, next; /* neighbours in its sampler's list; `next` also links free entries */
  uint32_t segment;        /* partial: continue: index of its last segment */
  double begun_s, ends_s;
} running_response;

typedef struct engine {
  uint32_t first; /* first of the sampler's running responses */
  uint32_t open;  /* slot of the unit with responses not yet started; BUFFER_NONE: none */
  size_t running; /* number of running responses */
  int64_t coming; /* partial: wait: version to switch to when all units in progress are done; -1:
                     none */
  bool gated;     /* slots are free, but the gate is closed */
  double slot_s;  /* decoding seconds of finished responses, summed over slots */
} engine;

/* Progress of the unit in a pool slot. */
typedef struct unit_progress {
  double *lengths; /* [unit_responses] owned, reused with the slot */
  size_t *from;    /* [unit_responses] owned, reused; argument of schedule_hooks.go_on */
  size_t begun, running;
  double prompt; /* length factor of its prompt; 1 without a distribution */
} unit_progress;

/* A prompt whose keys and values a sampler has computed (cluster.decoding.prefix_cache). */
typedef struct cached_prompt {
  uint64_t group;   /* id of its group, as in unit_draw */
  int64_t version;  /* of the weights that computed it; -1: no longer in the cache */
  uint32_t users;   /* responses in progress that began with it */
  uint32_t holders; /* those of them whose keys and values are in memory */
} cached_prompt;

/* cluster.decoding: a sampler's load. Steps are counted from when it was last empty. */
typedef struct engine_load {
  double at_s;      /* time at which the members below hold; later than now during a pause */
  double steps;     /* number of steps until at_s, with fractions */
  double held;      /* tokens whose keys and values are held */
  double shared;    /* tokens that a step reads again, because responses share their prompt */
  double rate;      /* tokens that a step adds to `held` */
  size_t active;    /* responses that are decoded */
  size_t preempted; /* responses that wait for memory; they keep their slots */
  size_t calling;   /* responses at an environment that keep their keys and values in memory */
  uint32_t serial;  /* serial of the valid DECODING_MOVES event; earlier ones are ignored */
  bool changed;     /* a new DECODING_MOVES event must be posted */
  event_queue ends; /* the last steps of responses; `data` is the serial of a running_response */
  cached_prompt *prompts; /* [n_prompts] owned */
  size_t n_prompts, prompt_capacity;
  size_t newest; /* the prompt of the group begun last */
} engine_load;

/* The steps of its sampler at which a response starts (from) and ends its current turn (to), as if
 * it were decoded without a break: `from` moves by the steps in between. While the response is
 * preempted or at its environment, both are relative to the step at which it stopped. */
typedef struct loaded_response {
  double from, to;
  double turn;    /* number of steps in each turn */
  double rate;    /* tokens per step: 1 over its jitter */
  double since_s; /* time of the preemption */
  bool preempted;
  uint32_t prompt; /* index in engine_load.prompts; not used without a cache */
  int64_t
      cached; /* version of its own keys and values in the cache, which nobody holds; -1: none */
} loaded_response;

/* State of streaming; written by sampler.c and decoding.c. */
typedef struct streaming {
  engine *engines; /* [samplers]; NULL: units do not stream */
  unit_progress *units;
  size_t n_units;
  running_response *running;
  size_t n_running, capacity;
  uint32_t free;           /* first free entry of running[] */
  engine_load *loads;      /* [samplers]; NULL: speed does not depend on the load */
  loaded_response *loaded; /* [loaded_capacity] owned; same indices as running[] */
  size_t loaded_capacity;
  uint64_t preemptions;
  double preempted_tokens;        /* tokens computed again after a preemption */
  double prompts, cached_prompts; /* tokens of the prompts of all responses that began, and of these
                                     in the cache */
  double decoded_tokens,
      decoded_s; /* tokens decoded and seconds spent decoding, summed over samplers */
} streaming;

/* A pause of a sampler for new weights that arrive while it decodes. */
typedef struct interruption {
  double ends_s;          /* end of the pause; 0: no pause */
  double begun_s;         /* start of the pause */
  double paused_s;        /* total pause of the batch being generated; not used for streaming */
  double weights_until_s; /* end of the part for new weights, before any part for the GPUs */
  int64_t coming;         /* version that arrived during the pause; -1: none */
} interruption;

/* State of pauses; written by clock_shared.c. */
typedef struct interruptions {
  interruption *of; /* [samplers]; NULL: there are no pauses */
  bool by_weights;  /* new weights cause pauses, not only GPUs that switch to training */
  uint64_t n;
  double seconds, tokens; /* total length of pauses; tokens whose keys and values were recomputed */
} interruptions;

/* --- the learner: written by learner_queue.c; published and window are read by all --- */

/* cluster.colocated: what the shared GPUs do. */
typedef enum gpu_phase { GPUS_GENERATE, GPUS_SWITCH, GPUS_TRAIN } gpu_phase;

typedef struct learner_side {
  int64_t version, published, newest_trained;
  bool busy, wake_pending;
  double idle_since, paused_s, busy_s;
  bool catches_up; /* the backlog of an evaluation pause has not been trained yet */
  size_t backlog;  /* number of units waiting when the pause started */
  delay_source step, pause, to_training, to_generation;
  gpu_phase gpus;
  uint64_t switches;
  double switch_s, switching_since;
  event_queue by_version; /* waiting batches by (version, arrival): see choice_add() */
  uint32_t *chosen;       /* [chosen_capacity] slots of the n_chosen units of the next update */
  size_t n_chosen, chosen_capacity;
  double waiting_tokens; /* tokens of waiting units; only if updates are counted in tokens */
  size_t waiting_of[MOST_SOURCES];                          /* waiting units of each source */
  size_t segment_capacity, batch_capacity, source_capacity; /* of the schedule's arrays */
} learner_side;

/* --- the ledger: written by clock_shared.c --- */

typedef struct unit_ledger {
  uint64_t begun, generated;
  uint64_t gate_count; /* units started, except those that will never be trained */
  int freed;         /* number of additional units that the gate allows; gated samplers are woken */
  bool wake_learner; /* a unit that the learner may wait for was dropped */
  bool selects;      /* lengths and prompts of units are also counted, in the following members */
  unit_counts drawn; /* totals of units started; their number is `begun` */
  double prompt_quarter[PROMPT_CLASSES -
                        1]; /* factors at the boundaries between quarters of their distribution */
  uint32_t *live, *waits; /* [updates + 1] number of units that may still be trained (live) and, of
                             these, that wait at the learner (waits), for each version they were
                             started with; with queue: in_order, for each update that will train
                             them. NULL unless stale: wait or the queue keeps an order */
  int64_t least_live;     /* lower bound of the indices of live units */
  uint64_t gate_of[MOST_SOURCES]; /* gate_count of each source */
} unit_ledger;

/* State of a clock that is coupled to a learner; hooks NULL: not coupled. */
typedef struct coupling {
  const schedule_hooks *hooks;
  double *lengths; /* [unit_responses] lengths of a unit's responses, in tokens; scratch */
  uint32_t *users; /* [updates + 1] reference counts of versions: samplers that have it, messages
                      that carry it, and 1 for the newest published version; at 0 it is never
                      sampled from again */
  bool *held;      /* [updates + 1] whether the learner holds this version */
  bool stopped;    /* the learner requested no more updates */
} coupling;

/* State of the grader; written by learner_queue.c. Units that wait for it are linked by `newer`. */
typedef struct grader_state {
  uint32_t first, last;
  size_t busy;
  double waited_s, busy_s; /* summed over the units whose grading has begun */
  uint64_t begun, timed_out;
} grader_state;

/* Where a response with several turns is: decoded, in the queue for a place, at a place, or back
 * and waiting for a slot. */
typedef enum turn_place { TURN_DECODES, TURN_QUEUES, TURN_CALLS, TURN_BACK } turn_place;

typedef struct response_turns {
  uint32_t n, done;  /* number of turns, and of turns that have ended */
  uint32_t response; /* index in the unit */
  turn_place where;
  bool slotless;  /* its slot is free for others */
  double seconds; /* decoding time of a turn */
  double since_s; /* start of waiting for a place, or of the call */
} response_turns;

/* State of cluster.environment; written by environment.c. Entries of its queues contain an
 * index in running[] and its serial. */
typedef struct environment_calls {
  response_turns
      *turns; /* [capacity] owned; same indices as running[]; NULL: each response has one turn */
  size_t capacity;
  event_queue queue; /* responses that wait for a place; `kind` is the sampler */
  event_queue *back; /* [samplers] responses that wait for a slot */
  size_t *away;      /* [samplers] responses without a slot */
  size_t busy;       /* places in use */
  uint64_t begun;
  double waited_s, busy_integral_s, at_s; /* time integral of `busy` up to at_s */
} environment_calls;

/* State of restarts; written by restart.c. */
typedef struct restart_state {
  uint64_t n;                /* number of restarts so far */
  bool is_down;              /* between the stop and the start */
  double since_s;            /* start of the time down */
  double stopped_s;          /* total time down of earlier restarts */
  uint64_t again;            /* completed updates that were lost */
  size_t next_before;        /* index of the next entry of spec->restarts->before */
  int64_t furthest;          /* the largest version so far */
  uint64_t without_progress; /* number of restarts since `furthest` last grew */
} restart_state;

/* Sums for the statistics at the end. */
typedef struct clock_statistics {
  double waited_s;           /* summed over batches that have left the list */
  double waiting_integral_s; /* time integral of the number of waiting batches */
  double bytes_up, bytes_down, retransmissions;
} clock_statistics;

typedef struct sim_clock {
  const cluster_spec *spec;
  uint64_t seed;
  size_t updates;
  const schedule_trace *trace; /* NULL: no trace */
  double now;                  /* written only by the event loop */
  future_events events;
  buffer buffer;
  arena memory; /* for arrays of fixed size; see clock_build() */
  sampler *samplers;
  size_t n_gated; /* number of samplers in state SAMPLER_GATED */
  streaming stream;
  interruptions interrupts;
  network net;
  gsl_rng *generator; /* for packet losses */
  event_queue slots;  /* scratch of response_draw: times when decoding slots become free */
  learner_side learner;
  unit_ledger ledger;
  restart_state restarts;
  grader_state grader;
  environment_calls calls;
  coupling coupled;
  clock_statistics stats;
  schedule *out;
} sim_clock;

/* --- events --- */

/* Events are handled in clock.c. At equal times, ends and arrivals come first, then the learner's
 * start, then samplers' starts, so that a start sees everything that arrives at that time. */
enum { RANK_ARRIVAL, RANK_LEARNER, RANK_SAMPLER };
typedef enum event_kind {
  GENERATION_ENDS,
  BATCH_ARRIVES,  /* data: slot of the batch */
  BATCH_LOST,     /* data: slot of the batch */
  WEIGHTS_LOADED, /* SYNC_PULL. data: version; UINT64_MAX: the weights were lost */
  LINK_FREE,
  CRASH,
  RETURN,
  WEIGHTS_ARRIVE, /* SYNC_PUSH. data: version */
  GRADING_ENDS,   /* data: slot of the unit; 1 << 32: it has timed out */
  UPDATE_ENDS,
  PAUSE_ENDS,
  LEARNER_STARTS,
  GPUS_SWITCHED,  /* cluster.colocated. data: a gpu_phase */
  SAMPLER_STARTS, /* data: 1 if weights have just arrived, so that they are not fetched twice with
                     zero delay */
  RESPONSE_ENDS,  /* data: index in running[] and its serial << 32 */
  DECODING_MOVES, /* cluster.decoding. data: serial of the sampler's load */
  CALL_ENDS,      /* cluster.environment. data: index in running[] and its serial << 32 */
  INTERRUPTION_ENDS,
  TRANSFER_MOVES,   /* data: index in network.pool[] and its serial << 32 */
  TRANSFER_ARRIVES, /* data: index in network.pool[] and its serial << 32 */
  NETWORK_SHARES,
  FLOW_ENDS,     /* data: flow class, and network.shares << 32 */
  OUTAGE_BEGINS, /* node: the site; data: 1 if sampled, 0 if scheduled */
  OUTAGE_ENDS,
  RESTART_BEGINS, /* data: 1 if sampled, 0 if scheduled */
  RESTART_ENDS
} event_kind;

/* Adds an event to the queue. `node` is usually the sampler it concerns. Errors: GL_ENOMEM,
 * GL_ENUMERIC (time not finite). */
gl_status clock_post(sim_clock *c, double time, event_kind kind, uint32_t node, uint64_t data,
                     gl_error *err);

/* Reports a span to the trace. Spans of zero length are only reported if they end in a drop or a
 * loss. */
static inline void clock_trace(const sim_clock *c, schedule_span span) {
  const bool is_plain = span.end == SPAN_DONE || span.end == SPAN_OPEN;
  if (c->trace == NULL || (is_plain && span.from_s >= span.to_s)) return;
  c->trace->span(c->trace->self, &span);
}

/* --- clock_shared.c: prompts --- */

/* response_prompts: the sequence of length factors, starting at this group. response_prompt: the
 * factor of one group; 1 if the cluster has no distribution of factors. */
delay_source response_prompts(uint64_t seed, uint64_t group);
double response_prompt(const response_spec *spec, uint64_t seed, uint64_t group);

/* --- clock_shared.c: the ledger of units --- */

/* The _init functions allocate from c->memory, whose owner checks for failure afterwards. */
void ledger_init(sim_clock *c);
/* Count a unit by its lengths; used by ledger_begin() and ledger_end(). */
void ledger_begin_unit(sim_clock *c, uint32_t slot);
void ledger_end_unit(sim_clock *c, uint32_t slot, unit_fate fate);
/* The source of the next unit to be started: with quotas the one that has fewest at the gate,
 * relative to its quota; otherwise one at random. */
uint32_t ledger_next_source(const sim_clock *c);
/* ledger_begin: a unit was started and its lengths are known. The following functions: it starts
 * (+1) or ends (-1) waiting at the learner; it ended with this fate. */
static inline void ledger_begin(sim_clock *c, uint32_t slot) {
  ++c->ledger.begun;
  ++c->ledger.gate_count;
  if (c->ledger.selects) ledger_begin_unit(c, slot);
}
void ledger_wait(sim_clock *c, uint32_t slot, int sign);
static inline void ledger_end(sim_clock *c, uint32_t slot, unit_fate fate) {
  ++c->out->fate[fate].units;
  if (c->ledger.selects) ledger_end_unit(c, slot, fate);
}
/* Counts a unit as lost, because the update that trained it (with this staleness) was lost. */
void ledger_untrain(sim_clock *c, const schedule_batch *b, int64_t staleness);
/* Drops a unit: it no longer counts at the gate, and its slot is freed. */
void ledger_discard(sim_clock *c, uint32_t slot, unit_fate fate);
/* Must be called before and after the lengths of a unit in progress change. */
void ledger_remove_lengths(sim_clock *c, uint32_t slot);
void ledger_add_lengths(sim_clock *c, uint32_t slot);
/* stale: wait. Whether an update now would let some unit become staler than the window although
 * waiting for units in progress would avoid this. */
bool ledger_must_wait(sim_clock *c);
/* Queues in order. Whether enough waiting units for an update come before all units in progress. */
bool ledger_next_is_ready(sim_clock *c);
/* Gives fate FATE_PENDING to all units without a fate: in generation, in transfer or waiting. */
void ledger_count_pending(sim_clock *c);

/* --- clock_shared.c: versions held by a coupled learner --- */

void coupling_init(sim_clock *c, const schedule_hooks *hooks);
/* Makes the learner release all versions that it holds. */
void coupling_fini(sim_clock *c);
/* Add or remove a reference to a version; no effect for -1. */
void version_add_ref(sim_clock *c, int64_t version);
void version_release(sim_clock *c, int64_t version);
/* Called at the end of the update that made learner.version; learner.published must be up to date.
 */
gl_status coupling_update(sim_clock *c, gl_error *err);

/* --- clock_shared.c: state of sampler i --- */

/* Changes the sampler's state; `end` is how the old state ended. */
void sampler_enter(sim_clock *c, uint32_t i, sampler_state state, span_end end);
/* Traces the sampler's state since s->begun_s. */
void sampler_trace(const sim_clock *c, uint32_t i, span_end end);
/* SYNC_PULL: the end of a fetch; version UINT64_MAX: the weights were lost. */
gl_status sampler_loaded(sim_clock *c, uint32_t i, uint64_t version, gl_error *err);
bool sampler_gate_is_open(const sim_clock *c, const sampler *s);
/* Sampled quantities: the delay of weights and of a batch, the seconds of a round of generation
 * without its responses, and the jitter factor; and the random stream of packet losses up or down.
 */
double sampler_weights_delay(sim_clock *c, uint32_t i);
double sampler_data_delay(sim_clock *c, uint32_t i);
double sampler_generation(sim_clock *c, uint32_t i);
double sampler_jitter(sim_clock *c, uint32_t i);
rng_stream sampler_losses(const sim_clock *c, uint32_t i, bool up);

/* --- clock_shared.c: pauses for new weights --- */

void interrupt_init(sim_clock *c);
/* Whether the sampler is paused. */
static inline bool interrupt_is_on(const sim_clock *c, uint32_t i) {
  return c->interrupts.of != NULL && c->interrupts.of[i].ends_s > 0;
}
/* The time up to which the sampler's running responses are decoded: now or, during a pause, its
 * end, because their end times are moved by the whole pause at its start. */
static inline double interrupt_decoded_to(const sim_clock *c, uint32_t i) {
  return interrupt_is_on(c, i) ? c->interrupts.of[i].ends_s : c->now;
}
/* Remaining seconds of the pause. */
static inline double interrupt_rest(const sim_clock *c, uint32_t i) {
  return interrupt_decoded_to(c, i) - c->now;
}
/* Pauses the sampler for `seconds`, during which keys and values of `tokens` tokens are recomputed.
 */
gl_status interrupt_begin(sim_clock *c, uint32_t i, double seconds, double tokens, gl_error *err);
/* Pauses the sampler for `seconds`, from now or from the end of its pause. Negative: ends the pause
 * so much earlier. */
gl_status interrupt_prolong(sim_clock *c, uint32_t i, double seconds, gl_error *err);
/* Weights arrive during the pause: they are used when it ends, unless newer ones arrive. */
void interrupt_hold(sim_clock *c, uint32_t i, int64_t version);
/* Resets the total pause when a batch starts. */
void interrupt_reset(sim_clock *c, uint32_t i);
/* Ends the pause. *next: the version that arrived during it, or -1. Returns false if a crash ended
 * the pause earlier. */
bool interrupt_end(sim_clock *c, uint32_t i, int64_t *next);
/* Ends the pause of a sampler that has stopped; generated: it was generating. */
void interrupt_crash(sim_clock *c, uint32_t i, bool generated);
/* Remaining seconds of the pause's part for new weights. */
static inline double interrupt_weights_rest(const sim_clock *c, uint32_t i) {
  const double rest = c->interrupts.of[i].weights_until_s - c->now;
  return interrupt_is_on(c, i) && rest > 0 ? rest : 0;
}
/* Traces the pause up to now. */
void interrupt_trace(const sim_clock *c, uint32_t i, span_end end);

/* --- transfer.c: messages over a shared network, if spec->network is not NULL --- */

/* Errors: GL_ENOMEM. */
gl_status transfer_init(sim_clock *c, gl_error *err);
void transfer_fini(sim_clock *c);
/* Sends the newest weights to a sampler when its link is free. They arrive with TRANSFER_ARRIVES; a
 * lost fetch ends in sampler_loaded(). */
gl_status transfer_weights(sim_clock *c, uint32_t i, gl_error *err);
/* Sends the unit in that slot to the learner. */
gl_status transfer_batch(sim_clock *c, uint32_t i, uint32_t slot, gl_error *err);
/* After a crash a sampler needs full weights, because it lost those that a delta refers to. */
void transfer_crash(sim_clock *c, uint32_t i);
/* Handlers of the events TRANSFER_MOVES, NETWORK_SHARES and FLOW_ENDS. */
gl_status transfer_moves(sim_clock *c, uint64_t which, gl_error *err);
gl_status transfer_shares(sim_clock *c, gl_error *err);
gl_status transfer_flow_ends(sim_clock *c, uint64_t which, gl_error *err);
/* Handler of TRANSFER_ARRIVES: removes the transfer from the network and copies it to *out. Returns
 * false if it was cancelled. */
bool transfer_take_arrived(sim_clock *c, uint64_t which, transfer *out);
/* Start and end of a site's outage: stop and resume its transfers. */
gl_status transfer_cut(sim_clock *c, gl_error *err);
gl_status transfer_resume(sim_clock *c, gl_error *err);
/* Traces transfers in progress at the end of the clock. */
void transfer_trace_open(const sim_clock *c);
/* Fills clock->out->network. */
void transfer_report(sim_clock *c);
/* The tree of relays. relay_publish: the learner publishes weights, which are sent after earlier
 * versions. relay_shard_arrives: a shard reaches a sampler. */
gl_status relay_publish(sim_clock *c, gl_error *err);
gl_status relay_shard_arrives(sim_clock *c, const transfer *shard, gl_error *err);

/* --- decoding.c: the load of sampler i, if spec->decoding is not NULL --- */

void load_init(sim_clock *c);
void load_fini(sim_clock *c);
size_t load_bytes(const sim_clock *c);
/* index, here and below: index of the response in c->stream.running[]. load_join: a response of
 * `tokens` tokens starts, each of which takes `factor` steps. load_leave: a response ends or is
 * dropped. load_rescale: its length is multiplied by `factor`. They return false if out of memory.
 */
bool load_join(sim_clock *c, uint32_t i, uint32_t index, double tokens, double factor);
void load_leave(sim_clock *c, uint32_t i, uint32_t index);
bool load_rescale(sim_clock *c, uint32_t i, uint32_t index, double factor);
/* Pauses decoding for `seconds` from now. */
void load_pause(sim_clock *c, uint32_t i, double seconds);
/* Whether there is memory for the next response. */
bool load_has_room(const sim_clock *c, uint32_t i);
/* kv_cache: recompute. All that is held is computed again by the sampler's new weights. */
void load_recompute(sim_clock *c, uint32_t i);
/* A crash empties the prefix cache. */
void load_crash(sim_clock *c, uint32_t i);
/* Tokens whose keys and values are held. */
double load_held(const sim_clock *c, uint32_t i);
/* The decoded fraction of a response, or of its current turn if there is an environment. */
double load_fraction(const sim_clock *c, uint32_t i, uint32_t index);
/* cluster.environment. load_call: a response calls its environment. load_return: it decodes its
 * next turn. If it held its slot, its keys and values have stayed in memory; otherwise they are
 * computed again, as after a preemption. load_return() returns false if out of memory. */
void load_call(sim_clock *c, uint32_t i, uint32_t index);
bool load_return(sim_clock *c, uint32_t i, uint32_t index);
/* Must follow any of the changes above: posts the sampler's next event. */
gl_status load_post(sim_clock *c, uint32_t i, gl_error *err);
/* Handler of DECODING_MOVES: either a response ends, whose index is returned in *ended, or one is
 * preempted and *ended is UINT32_MAX. */
gl_status load_moves(sim_clock *c, uint32_t i, uint64_t serial, uint32_t *ended, gl_error *err);
void load_trace_open(const sim_clock *c, uint32_t i);

/* --- environment.c: turns of responses, if spec->environment is not NULL --- */

void turns_init(sim_clock *c);
void turns_fini(sim_clock *c);
size_t turns_bytes(const sim_clock *c);
/* A response that takes `seconds` of decoding begins. Returns false if out of memory. */
bool turns_begin(sim_clock *c, uint32_t index, size_t response, double seconds);
/* The decoded fraction of a response of sampler i. */
double turns_fraction(const sim_clock *c, uint32_t i, uint32_t index);
/* Ends a turn; returns whether it was the response's last. */
bool turns_end_one(sim_clock *c, uint32_t index);
/* Calls the environment if one of its places is free; else the call waits. */
gl_status turns_call(sim_clock *c, uint32_t i, uint32_t index, gl_error *err);
/* Handler of CALL_ENDS; *goes_on: the response has its slot and decodes its next turn now. The
 * call of a dropped response also runs to its end, and holds its place until then. */
gl_status turns_call_ends(sim_clock *c, uint32_t i, uint64_t which, bool *goes_on, gl_error *err);
/* Gives a slot to the response whose environment call ended first among those that wait for a slot,
 * and returns it; UINT32_MAX: none waits. */
uint32_t turns_take_back(sim_clock *c, uint32_t i);
/* A response is dropped. */
void turns_drop(sim_clock *c, uint32_t i, uint32_t index);
/* A restart. turns_stop: frees every place and drops every waiting call. turns_move: delays the
 * turn or call in progress by `seconds`. */
void turns_stop(sim_clock *c);
void turns_move(sim_clock *c, uint32_t index, double seconds);
void turns_trace_open(const sim_clock *c, uint32_t i);
/* Fills clock->out->environment. */
void turns_report(sim_clock *c);
/* turns_decodes: whether the response is being decoded. turns_hold_slot: whether it holds a
 * decoding slot. turns_slots: number of the sampler's slots in use. */
static inline bool turns_decodes(const sim_clock *c, uint32_t index) {
  return c->calls.turns == NULL || c->calls.turns[index].where == TURN_DECODES;
}
static inline bool turns_hold_slot(const sim_clock *c, uint32_t index) {
  return c->calls.turns == NULL || !c->calls.turns[index].slotless;
}
static inline size_t turns_slots(const sim_clock *c, uint32_t i) {
  return c->stream.engines[i].running - (c->calls.away != NULL ? c->calls.away[i] : 0);
}

/* --- sampler.c: operations of sampler i --- */

/* Starts a batch if the sampler may, after fetching weights that are due. */
gl_status sampler_start(sim_clock *c, uint32_t i, bool just_loaded, gl_error *err);
gl_status sampler_generated(sim_clock *c, uint32_t i, gl_error *err);
/* SYNC_PUSH: sends the newest weights when the link is free; handles their arrival. */
gl_status sampler_push(sim_clock *c, uint32_t i, gl_error *err);
gl_status sampler_receive(sim_clock *c, uint32_t i, int64_t version, gl_error *err);
/* Pauses generation for `seconds`, from now or from the end of the current pause. */
gl_status sampler_stop(sim_clock *c, uint32_t i, double seconds, gl_error *err);

/* Cost of a batch of `responses` with sampled lengths, see response_spec. slots is the caller's
 * scratch queue; its contents are lost. Returns 0 if out of memory. */
int response_draw(response_cost *out, const response_spec *spec, event_queue *slots, uint64_t seed,
                  uint64_t batch, size_t responses);
/* The lengths in tokens that response_draw() samples. */
void response_batch_lengths(double *lengths, const response_spec *spec, uint64_t seed,
                            uint64_t batch, size_t responses);
/* The same for known lengths[responses] in tokens; the distribution and max_tokens are not used. */
int response_known(response_cost *out, const response_spec *spec, event_queue *slots,
                   const double *lengths, size_t responses);
/* Samples the lengths of n responses to one prompt: samples 0..n-1 of unit `id`, multiplied by the
 * factor of the prompt, sample 0 of group `prompt`. Returns the factor. */
double response_draw_lengths(double *lengths, const response_spec *spec, uint64_t seed, uint64_t id,
                             uint64_t prompt, size_t n);

/* Samplers that stream units. */

void stream_init(sim_clock *c);
void stream_fini(sim_clock *c);
/* Fills the sampler's free decoding slots, as far as the gate and weights that are due allow. */
gl_status stream_start(sim_clock *c, uint32_t i, bool just_loaded, gl_error *err);
gl_status stream_response_ends(sim_clock *c, uint32_t i, uint64_t which, gl_error *err);
/* cluster.environment: handler of CALL_ENDS. */
gl_status stream_call_ends(sim_clock *c, uint32_t i, uint64_t which, gl_error *err);
/* cluster.decoding: handler of DECODING_MOVES. */
gl_status stream_decoding_moves(sim_clock *c, uint32_t i, uint64_t serial, gl_error *err);
/* SYNC_PUSH: weights arrive; the rule for partial units decides when they are used. */
gl_status stream_receive(sim_clock *c, uint32_t i, int64_t version, gl_error *err);
/* Drops units in progress whose oldest version is below `least`, and fills their slots. */
gl_status stream_cancel_below(sim_clock *c, int64_t least, gl_error *err);
/* A crash loses the units in progress. */
void stream_crash(sim_clock *c, uint32_t i);
/* Traces units in progress at the end of the clock. */
void stream_trace_open(const sim_clock *c, uint32_t i);
/* Memory of units and responses in progress, in bytes. */
size_t stream_bytes(const sim_clock *c);

/* --- restart.c --- */

/* Posts the restarts of given times and the first sampled one. */
gl_status restart_plan(sim_clock *c, gl_error *err);
/* Handlers of RESTART_BEGINS and RESTART_ENDS. */
gl_status restart_begin(sim_clock *c, gl_error *err);
gl_status restart_end(sim_clock *c, gl_error *err);

/* --- statistics.c --- */

/* Writes statistics of the whole clock to clock->out. Errors: GL_ENOMEM. */
gl_status clock_summarise(sim_clock *c, gl_error *err);

/* --- learner_queue.c --- */

/* Allocates arrays for the units of an update and their schedule. Errors: GL_ENOMEM. */
gl_status learner_init(sim_clock *c, gl_error *err);
void learner_fini(sim_clock *c);
/* A unit reaches the learner, or its grader; handler of GRADING_ENDS. */
gl_status learner_receive(sim_clock *c, uint32_t slot, gl_error *err);
gl_status learner_graded(sim_clock *c, uint64_t which, gl_error *err);
/* learner_wake: posts LEARNER_STARTS for now, unless the learner is busy. */
gl_status learner_wake(sim_clock *c, gl_error *err);
gl_status learner_start(sim_clock *c, gl_error *err);
gl_status learner_update_ends(sim_clock *c, gl_error *err);
gl_status learner_pause_ends(sim_clock *c, gl_error *err);
/* cluster.colocated: handler of GPUS_SWITCHED. */
gl_status learner_gpus_switched(sim_clock *c, uint64_t to, gl_error *err);
/* Traces the switch under way, up to to_s. */
void learner_trace_switch(const sim_clock *c, span_end end, double to_s);
/* A restart. learner_stop: interrupts an update, goes back to this version, and drops what does not
 * survive: units of newer versions, and with RESTART_KEEPS_NOTHING all waiting units. With
 * RESTART_KEEPS_RESPONSES an evaluation, gradings and a switch of the GPUs continue after the
 * `later` seconds that the job is down; otherwise they end, what the grader has is lost, and the
 * GPUs generate. learner_end_stop, before it with RESTART_KEEPS_RESPONSES: samplers on the
 * learner's GPUs do not wait for the rest of the interrupted update. learner_lose: an event of the
 * grader or of a switch does not survive. learner_resume: publishes that version and continues. */
void learner_stop(sim_clock *c, int64_t version, restart_keeps keeps, double later);
gl_status learner_end_stop(sim_clock *c, gl_error *err);
void learner_lose(sim_clock *c, const sim_event *e);
/* Gradings and switches are counted in full when they begin; subtracts the rest of the one that
 * this event ends. Other events have no effect. */
void learner_subtract_rest(sim_clock *c, const sim_event *e);
gl_status learner_resume(sim_clock *c, gl_error *err);

#endif
