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

/* Where one of a sampler's sequences of draws stands, in few bytes, for there may be millions of
 * samplers; the stream follows from the sampler's number. */
typedef struct draw_state {
  uint32_t index, bad; /* as in delay_source */
} draw_state;

/* Two cache lines: what every event looks at, and what is drawn from. An event of one among a
 * million samplers waits for memory once for each of them that it needs. */
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

/* Where units stream (cluster.unit: group or response). Many of a sampler's units are under way at
 * once: its responses hold decoding slots, each of which takes the next response when its own ends.
 */

/* A response that is being decoded. */
typedef struct running_response {
  uint32_t slot;           /* of its unit */
  uint32_t serial;         /* of uses of this place: an event of an earlier use is void */
  uint32_t previous, next; /* among those of its sampler; `next` also links free places */
  uint32_t segment;        /* partial: continue: its last segment */
  double begun_s, ends_s;
} running_response;

typedef struct engine {
  uint32_t first; /* of the sampler's running responses */
  uint32_t open;  /* slot of the unit of which responses are still to be begun; BUFFER_NONE */
  size_t running; /* responses */
  int64_t coming; /* partial: wait: weights that wait for the units under way; -1: none */
  bool gated;     /* slots are free, and the gate is closed */
  double slot_s;  /* decoding seconds of responses that have ended, of all slots */
} engine;

/* Of a unit, by its slot. */
typedef struct unit_progress {
  double *lengths; /* [unit_responses] owned, kept when the slot is used again */
  size_t *from;    /* likewise, where a learner resamples under new weights: see schedule_hooks */
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

/* A sampler's pause, where weights that come while it decodes interrupt it. */
typedef struct interruption {
  double ends_s;   /* it stands still until then; 0: it does not */
  double begun_s;  /* since then */
  double paused_s; /* of the batch being generated; not where units stream */
  int64_t coming;  /* weights that have come meanwhile; -1: none */
} interruption;

/* Written by clock_shared.c. */
typedef struct interruptions {
  interruption *of; /* [samplers]; NULL: weights are taken over in no time */
  uint64_t n;
  double seconds, tokens; /* that samplers stood still; computed again */
} interruptions;

/* --- the learner's side: written by learner.c, but newest published and window are read by all --- */

typedef struct learner_side {
  int64_t version, published, newest_trained;
  bool busy, wake_pending;
  double idle_since, paused_s, busy_s;
  delay_source step, pause;
  event_queue by_version; /* waiting batches by (version, arrival): see choice_add() */
  uint32_t *chosen;       /* [chosen_capacity] the units of the next update, n_chosen */
  size_t n_chosen, chosen_capacity;
  double waiting_tokens; /* of the units that wait; kept where an update is counted in tokens */
  size_t segment_capacity, batch_capacity; /* of the schedule */
} learner_side;

/* --- the books: written by clock_shared.c, whose functions every part calls --- */

typedef struct unit_ledger {
  uint64_t begun, generated;
  uint64_t gate_count; /* begun, without those that are known never to be trained */
  int freed;           /* so many units more may be begun: samplers at the gate look again */
  bool wake_learner;   /* a unit that the learner may wait for will not come */
  bool selects;        /* units are counted by more than their fates: */
  unit_counts drawn;   /* of units begun; their number is `begun` */
  double
      prompt_quarter[PROMPT_CLASSES - 1]; /* factors between the quarters of their distribution */
  uint32_t *live, *waits; /* [updates + 1] stale: wait. Units by the version they were begun with:
                             all that may yet be trained, and those of them that wait */
  int64_t least_live;     /* none is of a version below it */
} unit_ledger;

/* What a clock that is coupled to a learner keeps besides; hooks NULL: it is not coupled. */
typedef struct coupling {
  const schedule_hooks *hooks;
  double *lengths; /* [responses of a batch] */
  uint32_t *users; /* [updates + 1] of each version: how many samplers have it, messages carry it,
                      and 1 if it is the newest published; at 0 nobody will sample from it again */
  bool *held;      /* [updates + 1] the learner holds this version */
  bool stopped;    /* the learner wants no more updates */
} coupling;

/* Sums that only the end of the clock reads. */
typedef struct clock_statistics {
  double waited_s;           /* sum over batches that have left the list */
  double waiting_integral_s; /* integral over time of the number of batches that wait */
  double bytes_up, bytes_down, retransmissions;
} clock_statistics;

typedef struct sim_clock {
  const cluster_spec *spec;
  uint64_t seed;
  size_t updates;
  const schedule_trace *trace; /* NULL: nobody listens */
  double now;                  /* written by the loop alone */
  future_events events;
  buffer buffer;
  sampler *samplers;
  size_t n_gated; /* so many of them are SAMPLER_GATED */
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

/* Each is handled in clock.c. Events of one moment are handled in this order: what ends or arrives,
 * then the learner's start, then samplers' starts. So a batch or weights that arrive at a moment
 * are seen at that moment. */
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

/* Reports a span to the trace; one that takes no time only where its end says something. */
static inline void clock_trace(const sim_clock *c, schedule_span span) {
  const bool is_plain = span.end == SPAN_DONE || span.end == SPAN_OPEN;
  if (c->trace == NULL || (is_plain && span.from_s >= span.to_s)) return;
  c->trace->span(c->trace->self, &span);
}

/* --- clock_shared.c: the ledger of units --- */

/* False: memory is short. */
bool ledger_init(sim_clock *c);
void ledger_fini(sim_clock *c);
/* Counts a unit by its lengths: use ledger_begin() and ledger_end(). */
void ledger_begin_unit(sim_clock *c, uint32_t slot);
void ledger_end_unit(sim_clock *c, uint32_t slot, unit_fate fate);
/* A unit is begun, its lengths are known; it waits at the learner; and what became of it. */
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
/* A unit will not be trained: it no longer counts at the gate, and its slot is free. */
void ledger_discard(sim_clock *c, uint32_t slot, unit_fate fate);
/* Lengths of a unit that is begun change: before and after. */
void ledger_remove_lengths(sim_clock *c, uint32_t slot);
void ledger_add_lengths(sim_clock *c, uint32_t slot);
/* stale: wait. Whether an update now would leave a unit to become staler than the window, which one
 * that waits for units on their way would not. */
bool ledger_must_wait(sim_clock *c);
/* Units that are still under way or wait: what is begun and has no other fate. */
void ledger_count_pending(sim_clock *c);

/* --- clock_shared.c: versions that a coupled learner keeps --- */

/* False: memory is short. */
bool coupling_init(sim_clock *c, const schedule_hooks *hooks);
/* Releases what is held, then the memory. */
void coupling_fini(sim_clock *c);
/* One more user of a version, or one less (-1: no version, nothing happens). */
void version_add_ref(sim_clock *c, int64_t version);
void version_release(sim_clock *c, int64_t version);
/* The end of the update that made learner.version; learner.published is up to date. */
gl_status coupling_update(sim_clock *c, gl_error *err);

/* --- clock_shared.c: samplers by their number --- */

/* Leaves one state, in the way that `end` says, for another. */
void sampler_enter(sim_clock *c, uint32_t i, sampler_state state, span_end end);
/* Reports the state that a sampler has been in since s->begun_s. */
void sampler_trace(const sim_clock *c, uint32_t i, span_end end);
/* SYNC_PULL: the weights it fetched have come; version UINT64_MAX: they were lost. */
gl_status sampler_loaded(sim_clock *c, uint32_t i, uint64_t version, gl_error *err);
bool sampler_gate_is_open(const sim_clock *c, const sampler *s);
/* Draws: the delay of weights and of a batch, seconds of one round of generation without
 * responses, the factor on its next generation time; and the stream of what its link loses, upwards
 * or downwards. */
double sampler_weights_delay(sim_clock *c, uint32_t i);
double sampler_data_delay(sim_clock *c, uint32_t i);
double sampler_generation(sim_clock *c, uint32_t i);
double sampler_jitter(sim_clock *c, uint32_t i);
rng_stream sampler_losses(const sim_clock *c, uint32_t i, bool up);

/* --- clock_shared.c: weights that interrupt decoding --- */

/* False: memory is short. */
bool interrupt_init(sim_clock *c);
void interrupt_fini(sim_clock *c);
/* Whether the sampler stands still. */
static inline bool interrupt_is_on(const sim_clock *c, uint32_t i) {
  return c->interrupts.of != NULL && c->interrupts.of[i].ends_s > 0;
}
/* Decode progress of its responses under way: now, or the end of the pause while it is paused, for
 * their times have been moved by all of the pause. */
static inline double interrupt_decoded_to(const sim_clock *c, uint32_t i) {
  return interrupt_is_on(c, i) ? c->interrupts.of[i].ends_s : c->now;
}
/* Seconds of the pause that are still to come. */
static inline double interrupt_rest(const sim_clock *c, uint32_t i) {
  return interrupt_decoded_to(c, i) - c->now;
}
/* The sampler begins to stand still for `seconds`, of which `tokens` are computed again. */
gl_status interrupt_begin(sim_clock *c, uint32_t i, double seconds, double tokens, gl_error *err);
/* Weights come while it stands still: they are used afterwards, unless newer ones come. */
void interrupt_hold(sim_clock *c, uint32_t i, int64_t version);
/* A batch is begun: it has not stood still yet. */
void interrupt_reset(sim_clock *c, uint32_t i);
/* The pause is over; *next: the weights that came meanwhile, or -1. False where the event is void
 * because the sampler crashed. */
bool interrupt_end(sim_clock *c, uint32_t i, int64_t *next);
void interrupt_crash(sim_clock *c, uint32_t i);
/* Reports a pause until now. */
void interrupt_trace(const sim_clock *c, uint32_t i, span_end end);

/* --- transfer.c: messages over a network that they share, where spec->network is not NULL --- */

/* False: memory is short. */
bool transfer_init(sim_clock *c);
void transfer_fini(sim_clock *c);
/* Sends a sampler the newest weights, or, where older ones already flow to it, once its link is
 * free. They come as TRANSFER_ARRIVES, or by sampler_loaded() where a fetch was lost. */
gl_status transfer_weights(sim_clock *c, uint32_t i, gl_error *err);
/* Sends the unit of that slot to the learner. */
gl_status transfer_batch(sim_clock *c, uint32_t i, uint32_t slot, gl_error *err);
/* A crash: the sampler no longer has what a delta is one from. */
void transfer_crash(sim_clock *c, uint32_t i);
/* The events TRANSFER_MOVES, NETWORK_SHARES and FLOW_ENDS. */
gl_status transfer_moves(sim_clock *c, uint64_t which, gl_error *err);
gl_status transfer_shares(sim_clock *c, gl_error *err);
gl_status transfer_flow_ends(sim_clock *c, uint64_t which, gl_error *err);
/* TRANSFER_ARRIVES: takes the transfer out of the network. False: the event is void. */
bool transfer_take_arrived(sim_clock *c, uint64_t which, transfer *out);
/* A site has been cut off, or is no longer: transfers from and to it stop, and continue. */
gl_status transfer_cut(sim_clock *c, gl_error *err);
gl_status transfer_resume(sim_clock *c, gl_error *err);
/* Reports what the clock's end interrupts. */
void transfer_trace_open(const sim_clock *c);
/* Fills clock->out->network. */
void transfer_report(sim_clock *c);
/* The tree of relays: there are new weights, which the learner sends on, or will once it has sent
 * those before; and a shard is at a sampler. */
gl_status relay_publish(sim_clock *c, gl_error *err);
gl_status relay_shard_arrives(sim_clock *c, const transfer *shard, gl_error *err);

/* --- sampler.c: samplers by their number --- */

/* A sampler that can begin a batch does, after fetching weights that are due. */
gl_status sampler_start(sim_clock *c, uint32_t i, bool just_loaded, gl_error *err);
gl_status sampler_generated(sim_clock *c, uint32_t i, gl_error *err);
/* SYNC_PUSH: sends it the newest weights, at once or when the link is free; and: they arrive. */
gl_status sampler_push(sim_clock *c, uint32_t i, gl_error *err);
gl_status sampler_receive(sim_clock *c, uint32_t i, int64_t version, gl_error *err);
/* SYNC_PULL: fetches the newest weights; the sampler stands still until they are there. */
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

/* False: memory is short. */
bool stream_init(sim_clock *c);
void stream_fini(sim_clock *c);
/* Fills the sampler's free decoding slots, as far as the gate and weights that are due let it. */
gl_status stream_start(sim_clock *c, uint32_t i, bool just_loaded, gl_error *err);
gl_status stream_response_ends(sim_clock *c, uint32_t i, uint64_t which, gl_error *err);
/* SYNC_PUSH: weights arrive, and the rule of partial units says when they are used. */
gl_status stream_receive(sim_clock *c, uint32_t i, int64_t version, gl_error *err);
/* A crash: the units under way are lost. */
void stream_crash(sim_clock *c, uint32_t i);
/* Reports units that the clock's end interrupts. */
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
/* A unit has come to the learner. */
gl_status learner_receive(sim_clock *c, uint32_t slot, gl_error *err);
/* Has the learner look for an update at this moment, unless it is busy. */
gl_status learner_wake(sim_clock *c, gl_error *err);
gl_status learner_start(sim_clock *c, gl_error *err);
gl_status learner_update_ends(sim_clock *c, gl_error *err);
gl_status learner_pause_ends(sim_clock *c, gl_error *err);

#endif
