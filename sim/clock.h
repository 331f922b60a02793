/* The clock behind schedule_build: its state, part by part, and what the parts ask of each other.
 * Inside sim/ only. Times are simulated seconds.
 *
 * Files, each of which calls only those above it; what happens later is an event that is posted:
 *
 *   clock_shared.c  posting events, the pool and the ledger of units, versions in use;
 *                   a sampler's state, what it draws, its pauses
 *   transfer.c      messages over a shared network, relays
 *   sampler.c       samplers that generate whole batches; sending, fetching, pushing;
 *                   samplers that stream groups or responses
 *   learner.c       batches that wait, the choice among them, updates
 *   schedule.c      the statistics at the end
 *   clock.c         crashes, outages, one handler for each kind of event, the loop
 */
#ifndef GEPOLAB_SIM_CLOCK_H
#define GEPOLAB_SIM_CLOCK_H

#include "core/base/arena.h"
#include "sim/cluster_spec.h"
#include "sim/event_queue.h"
#include "sim/network.h"
#include "sim/schedule.h"

#include <stdbool.h>

/* --- the pool of units --- */

/* Batches between their first token and their update: a pool whose free slots are used again, and
 * the list, from oldest to newest, of those that have arrived at the learner and wait there. A
 * batch is named by its slot, its index in the pool. */
enum { BUFFER_NONE = UINT32_MAX };
enum { CACHE_LINE = 64 };

/* Two cache lines, the links in the second. */
typedef struct pooled_batch {
  schedule_batch facts;       /* what the schedule will say of it; first_segment is not used here */
  schedule_segment *segments; /* owned; kept when the slot is reused */
  uint32_t segment_capacity;
  int64_t begun_with;    /* version of its sampler at its start */
  uint64_t arrival;      /* its place in the order of arrivals, from 1; 0: it does not wait */
  uint32_t older, newer; /* neighbours in the list; `newer` also links free slots */
} pooled_batch;

typedef struct buffer {
  pooled_batch *pool; /* owned; each on lines of its own */
  size_t n_pool, capacity;
  uint32_t free_slot, oldest, newest;
  size_t waiting;
  uint64_t arrivals;
} buffer;

void buffer_init(buffer *b);
void buffer_fini(buffer *b);
/* Bytes of memory that batches and their segments take. */
size_t buffer_bytes(const buffer *b);
/* Slots in use. */
size_t buffer_in_use(const buffer *b);
/* Takes a slot for a new batch whose first segment is of this version; BUFFER_NONE if memory is
 * short. */
uint32_t buffer_take(buffer *b, int64_t version);
/* Ends the last segment at this fraction of the response and begins one of another version. False
 * if memory is short. */
bool buffer_switch(buffer *b, uint32_t slot, double at, int64_t version);
/* Adds a segment that begins one response; the batch's segments are then those of single responses.
 * Its index, UINT32_MAX if memory is short. */
uint32_t buffer_begin_response(buffer *b, uint32_t slot, int64_t response, int64_t version);
/* Ends that segment there and begins one of another version; the new one's index, or that of the
 * old one where nothing was generated under it; UINT32_MAX if memory is short. */
uint32_t buffer_switch_response(buffer *b, uint32_t slot, uint32_t segment, double at,
                                int64_t version);
/* Segments of a response whose length is now other: their ends, but the last, are so many times
 * what they were. */
void buffer_rescale_response(buffer *b, uint32_t slot, int64_t response, double factor);
/* Where all responses are of one version: makes one segment of theirs. */
void buffer_join_segments(buffer *b, uint32_t slot);
/* Frees the slot. */
void buffer_release(buffer *b, uint32_t slot);
/* Puts a batch into the list: by the time it was generated, as HeteroRL sorts its files by name, or
 * else at the newest end. */
void buffer_insert(buffer *b, uint32_t slot, bool by_generation_time);
void buffer_remove(buffer *b, uint32_t slot);
/* Version of the batch's first segment, its oldest. */
int64_t buffer_version(const buffer *b, uint32_t slot);

/* --- samplers --- */

typedef enum sampler_state {
  SAMPLER_READY, /* begins a batch as soon as it may */
  SAMPLER_GENERATING,
  SAMPLER_GATED,   /* the gate is closed: it waits for newer weights */
  SAMPLER_LOADING, /* SYNC_PULL: waits for the weights it fetches */
  SAMPLER_DOWN     /* crashed */
} sampler_state;

/* The state of one of a sampler's random sequences. Small, because there may be millions of
 * samplers; the stream follows from the sampler's number. */
typedef struct draw_state {
  uint32_t index, bad; /* as in delay_source */
} draw_state;

/* Two cache lines: the members that every event reads, and the random sequences. With a million
 * samplers an event waits for main memory once per line that it reads. */
typedef struct sampler {
  _Alignas(CACHE_LINE) const sampler_group *group;
  int64_t version; /* of its weights; -1: it has none */
  double begun_s;  /* of its state */
  double ends_s;   /* of the batch being generated, or of the weights being fetched */
  double busy_s;   /* spent generating, up to the last batch that ended */
  double due_s;    /* SYNC_PULL: the next fetch is not before */
  sampler_state state;
  uint32_t slot;         /* of the batch being generated */
  uint32_t ordinal;      /* of the next batch it begins, from 0 */
  unsigned crashes : 31; /* so far */
  unsigned resend : 1;   /* weights are wanted again once the link is free */
  draw_state delay, data_delay, generation, jitter;
  link_state up, down;
} sampler;

/* With cluster.unit group or response, units stream: a sampler has many units under way. Each
 * decoding slot takes the next response when its own ends. */

/* A response that is being decoded. */
typedef struct running_response {
  uint32_t slot;           /* of its unit */
  uint32_t serial;         /* counts uses of this place; events of earlier uses are ignored */
  uint32_t previous, next; /* neighbours in its sampler's list; `next` also links free places */
  uint32_t segment;        /* partial: continue: its last segment */
  double begun_s, ends_s;
} running_response;

typedef struct engine {
  uint32_t first; /* of the sampler's running responses */
  uint32_t open;  /* slot of the unit whose responses have not all begun; BUFFER_NONE */
  size_t running; /* responses */
  int64_t coming; /* partial: wait: the version that is used once the units under way are done; -1:
                     none */
  bool gated;     /* slots are free, and the gate is closed */
  double slot_s;  /* decoding seconds of responses that have ended, of all slots */
} engine;

/* The progress of the unit in a slot. */
typedef struct unit_progress {
  double *lengths; /* [unit_responses] owned, kept when the slot is used again */
  size_t *from;    /* likewise, for schedule_hooks.go_on */
  size_t begun, running;
  double prompt; /* its factor; 1 without a distribution */
} unit_progress;

/* Written by sampler.c. */
typedef struct streaming {
  engine *engines; /* [samplers]; NULL: units do not stream */
  unit_progress *units;
  size_t n_units;
  running_response *running;
  size_t n_running, capacity;
  uint32_t free; /* place in running[] */
} streaming;

/* A sampler's pause for new weights that arrive while it decodes. */
typedef struct interruption {
  double ends_s;   /* end of the pause; 0: no pause */
  double begun_s;  /* start of the pause */
  double paused_s; /* of the batch being generated; not where units stream */
  int64_t coming;  /* version that arrived during the pause; -1: none */
} interruption;

/* Written by clock_shared.c. */
typedef struct interruptions {
  interruption *of; /* [samplers]; NULL: new weights interrupt nothing */
  uint64_t n;
  double seconds, tokens; /* of all pauses; whose keys and values were computed again */
} interruptions;

/* --- the learner's side: written by learner.c, but newest published and window are read by all --- */

typedef struct learner_side {
  int64_t version, published, newest_trained;
  bool busy, wake_pending;
  double idle_since, paused_s, busy_s;
  bool catches_up; /* the backlog of an evaluation pause is being worked off: */
  size_t backlog;  /* units that waited when the pause began */
  delay_source step, pause;
  event_queue by_version; /* waiting batches by (version, arrival): see choice_add() */
  uint32_t *chosen;       /* [chosen_capacity] the units of the next update, n_chosen */
  size_t n_chosen, chosen_capacity;
  double waiting_tokens; /* of the waiting units; only where an update is counted in tokens */
  size_t segment_capacity, batch_capacity; /* of the schedule */
} learner_side;

/* --- the books: written by clock_shared.c, whose functions every part calls --- */

typedef struct unit_ledger {
  uint64_t begun, generated;
  uint64_t gate_count; /* units begun, without those that will never be trained */
  int freed;           /* number of units that the gate newly allows; gated samplers are woken */
  bool wake_learner;   /* a unit that the learner may wait for was dropped */
  bool selects;        /* lengths and prompts of units are counted too: */
  unit_counts drawn;   /* of units begun; their number is `begun` */
  double
      prompt_quarter[PROMPT_CLASSES - 1]; /* factors between the quarters of their distribution */
  uint32_t *live, *waits; /* [updates + 1] stale: wait. Units by the version they were begun with:
                             all that may yet be trained, and those of them that wait */
  int64_t least_live;     /* none is of a version below it */
} unit_ledger;

/* State of a clock that is coupled to a learner; hooks NULL: it is not coupled. */
typedef struct coupling {
  const schedule_hooks *hooks;
  double *lengths; /* [responses of a batch] */
  uint32_t
      *users;   /* [updates + 1] references to each version: samplers that have it, messages that
                   carry it, and 1 for the newest published; at 0 it is never sampled from again */
  bool *held;   /* [updates + 1] the learner holds this version */
  bool stopped; /* the learner wants no more updates */
} coupling;

/* Sums for the statistics at the end. */
typedef struct clock_statistics {
  double waited_s;           /* sum over batches that have left the list */
  double waiting_integral_s; /* integral over time of the number of batches that wait */
  double bytes_up, bytes_down, retransmissions;
} clock_statistics;

typedef struct sim_clock {
  const cluster_spec *spec;
  uint64_t seed;
  size_t updates;
  const schedule_trace *trace; /* NULL: no trace */
  double now;                  /* written by the loop alone */
  future_events events;
  buffer buffer;
  arena memory; /* of arrays whose sizes do not change; see clock_build() */
  sampler *samplers;
  size_t n_gated; /* samplers in the state SAMPLER_GATED */
  streaming stream;
  interruptions interrupts;
  network net;
  gsl_rng *generator; /* of lost packets */
  event_queue slots;  /* scratch of response_draw: when each decoding slot is free */
  learner_side learner;
  unit_ledger ledger;
  coupling coupled;
  clock_statistics stats;
  schedule *out;
} sim_clock;

/* --- events --- */

/* Events are handled in clock.c. At equal times ends and arrivals come first, then the learner's
 * start, then samplers' starts in the order of the samplers' numbers, so that a start sees
 * everything that arrives at its time. */
enum { RANK_ARRIVAL, RANK_LEARNER, RANK_SAMPLER };
typedef enum event_kind {
  GENERATION_ENDS,
  BATCH_ARRIVES,  /* data: its slot */
  BATCH_LOST,     /* likewise */
  WEIGHTS_LOADED, /* SYNC_PULL. data: version; UINT64_MAX: they were lost */
  LINK_FREE,
  CRASH,
  RETURN,
  WEIGHTS_ARRIVE, /* SYNC_PUSH. data: version */
  UPDATE_ENDS,
  PAUSE_ENDS,
  LEARNER_STARTS,
  SAMPLER_STARTS, /* data: 1 if weights came this moment, so that a delay of 0 does not fetch them
                     twice */
  RESPONSE_ENDS,  /* data: place in running[] and its serial << 32 */
  INTERRUPTION_ENDS,
  TRANSFER_MOVES,   /* data: place in network.pool[] and its serial << 32 */
  TRANSFER_ARRIVES, /* likewise */
  NETWORK_SHARES,
  FLOW_ENDS,     /* data: class, and network.shares << 32 */
  OUTAGE_BEGINS, /* node: the site; data: 1 if it was drawn, 0 if it was stated */
  OUTAGE_ENDS
} event_kind;

/* Adds an event to the queue. `node` is the sampler it concerns. GL_ENUMERIC where the time is not
 * finite. */
gl_status clock_post(sim_clock *c, double time, event_kind kind, uint32_t node, uint64_t data,
                     gl_error *err);

/* Reports a span to the trace. Spans of no time are reported only if they end in a drop or a loss.
 */
static inline void clock_trace(const sim_clock *c, schedule_span span) {
  const bool is_plain = span.end == SPAN_DONE || span.end == SPAN_OPEN;
  if (c->trace == NULL || (is_plain && span.from_s >= span.to_s)) return;
  c->trace->span(c->trace->self, &span);
}

/* --- clock_shared.c: the ledger of units --- */

/* The functions _init allocate from c->memory, whose owner checks it afterwards. */
void ledger_init(sim_clock *c);
/* Count a unit by its lengths, for ledger_begin() and ledger_end(). */
void ledger_begin_unit(sim_clock *c, uint32_t slot);
void ledger_end_unit(sim_clock *c, uint32_t slot, unit_fate fate);
/* A unit is begun and its lengths are known; it waits at the learner; it ends with this fate. */
static inline void ledger_begin(sim_clock *c, uint32_t slot) {
  ++c->ledger.begun;
  ++c->ledger.gate_count;
  if (c->ledger.selects) ledger_begin_unit(c, slot);
}
void ledger_wait(sim_clock *c, uint32_t slot);
static inline void ledger_end(sim_clock *c, uint32_t slot, unit_fate fate) {
  ++c->out->fate[fate].units;
  if (c->ledger.selects) ledger_end_unit(c, slot, fate);
}
/* Drops a unit: it no longer counts at the gate, and its slot is free. */
void ledger_discard(sim_clock *c, uint32_t slot, unit_fate fate);
/* Before and after the lengths of a unit under way change. */
void ledger_remove_lengths(sim_clock *c, uint32_t slot);
void ledger_add_lengths(sim_clock *c, uint32_t slot);
/* stale: wait. Whether an update now would let some unit become staler than the window, while
 * waiting for units on their way would not. */
bool ledger_must_wait(sim_clock *c);
/* Gives units without another fate FATE_PENDING: those under way, on their way or waiting. */
void ledger_count_pending(sim_clock *c);

/* --- clock_shared.c: versions that a coupled learner keeps --- */

void coupling_init(sim_clock *c, const schedule_hooks *hooks);
/* Has the learner release all versions that it holds. */
void coupling_fini(sim_clock *c);
/* One more and one fewer reference to a version; nothing happens for -1. */
void version_add_ref(sim_clock *c, int64_t version);
void version_release(sim_clock *c, int64_t version);
/* The end of the update that made learner.version; learner.published is up to date. */
gl_status coupling_update(sim_clock *c, gl_error *err);

/* --- clock_shared.c: samplers by their number --- */

/* Changes the sampler's state; `end` says how the old one ended. */
void sampler_enter(sim_clock *c, uint32_t i, sampler_state state, span_end end);
/* Reports the state that a sampler has been in since s->begun_s. */
void sampler_trace(const sim_clock *c, uint32_t i, span_end end);
/* SYNC_PULL: the end of a fetch; version UINT64_MAX: the weights were lost. */
gl_status sampler_loaded(sim_clock *c, uint32_t i, uint64_t version, gl_error *err);
bool sampler_gate_is_open(const sim_clock *c, const sampler *s);
/* Samples: the delay of weights and of a batch, the seconds of a round of generation beside its
 * responses, the jitter factor; and the random stream of packet losses up or down. */
double sampler_weights_delay(sim_clock *c, uint32_t i);
double sampler_data_delay(sim_clock *c, uint32_t i);
double sampler_generation(sim_clock *c, uint32_t i);
double sampler_jitter(sim_clock *c, uint32_t i);
rng_stream sampler_losses(const sim_clock *c, uint32_t i, bool up);

/* --- clock_shared.c: weights that interrupt decoding --- */

void interrupt_init(sim_clock *c);
/* Whether the sampler is paused. */
static inline bool interrupt_is_on(const sim_clock *c, uint32_t i) {
  return c->interrupts.of != NULL && c->interrupts.of[i].ends_s > 0;
}
/* The time up to which its responses under way are decoded: now, or the end of the pause while
 * paused, because their times are moved by the whole pause at its start. */
static inline double interrupt_decoded_to(const sim_clock *c, uint32_t i) {
  return interrupt_is_on(c, i) ? c->interrupts.of[i].ends_s : c->now;
}
/* Seconds left of the pause. */
static inline double interrupt_rest(const sim_clock *c, uint32_t i) {
  return interrupt_decoded_to(c, i) - c->now;
}
/* Pauses the sampler for `seconds`; keys and values of `tokens` are computed again. */
gl_status interrupt_begin(sim_clock *c, uint32_t i, double seconds, double tokens, gl_error *err);
/* Weights arrive during the pause: they are used at its end, unless newer ones arrive. */
void interrupt_hold(sim_clock *c, uint32_t i, int64_t version);
/* A batch begins: its pauses are counted from 0. */
void interrupt_reset(sim_clock *c, uint32_t i);
/* Ends the pause; *next: the version that arrived during it, or -1. False if a crash ended the
 * pause before. */
bool interrupt_end(sim_clock *c, uint32_t i, int64_t *next);
void interrupt_crash(sim_clock *c, uint32_t i);
/* Reports the pause up to now to the trace. */
void interrupt_trace(const sim_clock *c, uint32_t i, span_end end);

/* --- transfer.c: messages over a network that they share, where spec->network is not NULL --- */

/* GL_ENOMEM. */
gl_status transfer_init(sim_clock *c, gl_error *err);
void transfer_fini(sim_clock *c);
/* Sends a sampler the newest weights, once its link is free. They arrive as TRANSFER_ARRIVES; a
 * lost fetch ends in sampler_loaded(). */
gl_status transfer_weights(sim_clock *c, uint32_t i, gl_error *err);
/* Sends the unit of that slot to the learner. */
gl_status transfer_batch(sim_clock *c, uint32_t i, uint32_t slot, gl_error *err);
/* After a crash the sampler needs full weights: it lost the ones that a delta refers to. */
void transfer_crash(sim_clock *c, uint32_t i);
/* The events TRANSFER_MOVES, NETWORK_SHARES and FLOW_ENDS. */
gl_status transfer_moves(sim_clock *c, uint64_t which, gl_error *err);
gl_status transfer_shares(sim_clock *c, gl_error *err);
gl_status transfer_flow_ends(sim_clock *c, uint64_t which, gl_error *err);
/* TRANSFER_ARRIVES: takes the transfer out of the network. False: it was cancelled. */
bool transfer_take_arrived(sim_clock *c, uint64_t which, transfer *out);
/* The beginning and the end of an outage of a site: its transfers stop and continue. */
gl_status transfer_cut(sim_clock *c, gl_error *err);
gl_status transfer_resume(sim_clock *c, gl_error *err);
/* Reports transfers under way at the clock's end to the trace. */
void transfer_trace_open(const sim_clock *c);
/* Fills clock->out->network. */
void transfer_report(sim_clock *c);
/* The tree of relays: the learner publishes weights, which it sends after those before; a shard
 * reaches a sampler. */
gl_status relay_publish(sim_clock *c, gl_error *err);
gl_status relay_shard_arrives(sim_clock *c, const transfer *shard, gl_error *err);

/* --- sampler.c: samplers by their number --- */

/* Begins a batch if the sampler can, after fetching weights that are due. */
gl_status sampler_start(sim_clock *c, uint32_t i, bool just_loaded, gl_error *err);
gl_status sampler_generated(sim_clock *c, uint32_t i, gl_error *err);
/* SYNC_PUSH: sends the newest weights, once the link is free; their arrival. */
gl_status sampler_push(sim_clock *c, uint32_t i, gl_error *err);
gl_status sampler_receive(sim_clock *c, uint32_t i, int64_t version, gl_error *err);
/* SYNC_PULL: fetches the newest weights; the sampler waits for them. */
gl_status sampler_fetch(sim_clock *c, uint32_t i, gl_error *err);
/* Sends a unit whose generation has ended to the learner. */
gl_status sampler_send(sim_clock *c, uint32_t i, uint32_t slot, gl_error *err);

/* Costs of responses, see response_spec. */

/* The cost of a batch of `responses` whose lengths are drawn. slots is a queue the caller owns and
 * may use again; its contents are lost. 0 if memory is short. */
int response_draw(response_cost *out, const response_spec *spec, event_queue *slots, uint64_t seed,
                  uint64_t batch, size_t responses);
/* The same for lengths[responses] that are known, in tokens; the distribution and max_tokens have
 * no part in it. */
int response_known(response_cost *out, const response_spec *spec, event_queue *slots,
                   const double *lengths, size_t responses);
/* The lengths of n responses to one prompt: draws 0..n-1 of the unit `id`, with the factor of the
 * prompt, draw 0 of the group `prompt`, which is returned. */
double response_draw_lengths(double *lengths, const response_spec *spec, uint64_t seed, uint64_t id,
                             uint64_t prompt, size_t n);

/* Samplers that stream units. */

void stream_init(sim_clock *c);
void stream_fini(sim_clock *c);
/* Fills the sampler's free decoding slots, as far as the gate and weights that are due let it. */
gl_status stream_start(sim_clock *c, uint32_t i, bool just_loaded, gl_error *err);
gl_status stream_response_ends(sim_clock *c, uint32_t i, uint64_t which, gl_error *err);
/* SYNC_PUSH: weights arrive, and the rule of partial units says when they are used. */
gl_status stream_receive(sim_clock *c, uint32_t i, int64_t version, gl_error *err);
/* A crash: the units under way are lost. */
void stream_crash(sim_clock *c, uint32_t i);
/* Reports units under way at the clock's end to the trace. */
void stream_trace_open(const sim_clock *c, uint32_t i);
/* Memory of the units and responses under way. */
size_t stream_bytes(const sim_clock *c);

/* --- schedule.c --- */

/* Statistics of the whole clock, into clock->out. GL_ENOMEM. */
gl_status clock_summarise(sim_clock *c, gl_error *err);

/* --- learner.c --- */

/* Room for the units of an update and their schedule. GL_ENOMEM. */
gl_status learner_init(sim_clock *c, gl_error *err);
void learner_fini(sim_clock *c);
/* A unit reaches the learner. */
gl_status learner_receive(sim_clock *c, uint32_t slot, gl_error *err);
/* Posts LEARNER_STARTS for now, unless the learner is busy. */
gl_status learner_wake(sim_clock *c, gl_error *err);
gl_status learner_start(sim_clock *c, gl_error *err);
gl_status learner_update_ends(sim_clock *c, gl_error *err);
gl_status learner_pause_ends(sim_clock *c, gl_error *err);

#endif
