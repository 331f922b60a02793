/* The event loop behind schedule_build: its state and the functions that handle its events, shared
 * by clock.c (the loop, the learner), sampler.c, stream.c, batch_choice.c, coupling.c and
 * clock_summary.c.
 * Inside sim/ only. Times are simulated seconds. */
#ifndef GEPOLAB_SIM_CLOCK_H
#define GEPOLAB_SIM_CLOCK_H

#include "sim/buffer.h"
#include "sim/cluster_spec.h"
#include "sim/future_events.h"
#include "sim/network.h"

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
  int gated;      /* slots are free, and the gate is closed */
  double slot_s;  /* decoding seconds of responses that have ended, of all slots */
} engine;

/* Of a unit, by its slot. */
typedef struct unit_progress {
  double *lengths; /* [unit_responses] owned, kept when the slot is used again */
  size_t *from;    /* likewise, where a learner is told of changed weights: see schedule_hooks */
  size_t begun, running;
  double prompt; /* its factor; 1 without a distribution */
} unit_progress;

typedef struct streaming {
  engine *engines; /* [samplers]; NULL: units do not stream */
  unit_progress *units;
  size_t n_units;
  running_response *running;
  size_t n_running, capacity;
  uint32_t free; /* place in running[] */
  uint64_t aborted;
} streaming;

/* Where weights that come while a sampler decodes interrupt it (interrupt.c). */
typedef struct interruption {
  double ends_s;  /* it stands still until then; 0: it does not */
  double begun_s; /* since then */
  double stood_s; /* of the batch being generated; not where units stream */
  int64_t coming; /* weights that have come meanwhile; -1: none */
} interruption;

typedef struct interruptions {
  interruption *of; /* [samplers]; NULL: weights are taken over in no time */
  uint64_t n;
  double seconds, tokens; /* that samplers stood still; computed again */
} interruptions;

/* What a clock that is coupled to a learner keeps besides; hooks NULL: it is not coupled. */
typedef struct coupling {
  const schedule_hooks *hooks;
  double *lengths; /* [responses of a batch] */
  uint32_t *users; /* [updates + 1] of each version: how many samplers have it, messages carry it,
                      and 1 if it is the newest published; at 0 nobody will draw from it again */
  unsigned char *held; /* [updates + 1] 1: the learner holds this version */
  int stopped;         /* the learner wants no more updates */
} coupling;

typedef struct sim_clock {
  const cluster_spec *spec;
  future_events events;
  buffer buffer;
  event_queue by_version; /* waiting batches by (version, arrival): see batch_choice.c */
  sampler *samplers;
  size_t gated; /* so many of them are SAMPLER_GATED */
  double now;
  uint64_t gate_count; /* batches begun, without those that are known never to be trained */
  /* learner */
  int64_t version, published, newest_trained;
  int learner_busy, wake_pending;
  double idle_since, paused_s, busy_s;
  delay_source step, pause;
  uint32_t *chosen; /* [chosen_capacity] the units of the next update, n_chosen */
  size_t n_chosen, chosen_capacity;
  double waiting_tokens; /* of the units that wait; kept where an update is counted in tokens */
  event_queue slots;     /* scratch of response_draw: when each decoding slot is free */
  /* result */
  schedule *out;
  size_t updates, segment_capacity, batch_capacity;
  streaming stream;
  interruptions interrupts;
  uint64_t begun, generated, dropped, lost; /* batches */
  double waited_s;                          /* sum over batches that have left the list */
  double waiting_integral_s; /* integral over time of the number of batches that wait */
  double bytes_up, bytes_down, retransmissions;
  uint32_t *live, *waits; /* [updates + 1] stale: wait. Units by the version they were begun with:
                             all that may yet be trained, and those of them that wait */
  int64_t least_live;     /* none is of a version below it */
  int wake_learner;       /* a unit that the learner may wait for will not come */
  int wake_gated;         /* so many batches more may be begun: samplers at the gate look again */
  coupling coupled;
  network net;
  const schedule_trace *trace; /* NULL: nobody is told */
  uint64_t seed;
  gsl_rng *generator;
  int selects;       /* units are counted by more than their fates */
  unit_counts drawn; /* units begun; their number is `begun` */
  double
      prompt_quarter[PROMPT_CLASSES - 1]; /* factors between the quarters of their distribution */
} sim_clock;

/* --- what becomes of units (selection.c) --- */

/* 0: memory is short. */
int selection_init(sim_clock *c);
void selection_fini(sim_clock *c);
/* A unit is begun, its lengths are known; it waits at the learner; and what became of it. */
void selection_begins_unit(sim_clock *c, uint32_t slot);
static inline void selection_begins(sim_clock *c, uint32_t slot) {
  ++c->begun;
  if (c->selects) selection_begins_unit(c, slot);
}
void selection_waits(sim_clock *c, uint32_t slot);
/* Lengths of a unit that is begun change: before and after. */
void selection_forgets_lengths(sim_clock *c, uint32_t slot);
void selection_takes_lengths(sim_clock *c, uint32_t slot);
void selection_ends_unit(sim_clock *c, uint32_t slot, unit_fate fate);
static inline void selection_ends(sim_clock *c, uint32_t slot, unit_fate fate) {
  ++c->out->fate[fate].units;
  if (c->selects) selection_ends_unit(c, slot, fate);
}
/* stale: wait. Whether an update now would leave a unit to become staler than the window, which one
 * that waits for units on their way would not. */
int selection_must_wait(sim_clock *c);
/* Units that are still under way or wait: what is begun and has no other fate. */
void selection_count_pending(sim_clock *c);

/* A batch that will not be trained: it no longer counts at the gate, and its slot is free. */
static inline void forget_batch(sim_clock *c, uint32_t slot, unit_fate fate) {
  selection_ends(c, slot, fate);
  if (c->coupled.hooks != NULL)
    c->coupled.hooks->discard(c->coupled.hooks->self, &c->buffer.pool[slot].facts, fate);
  buffer_release(&c->buffer, slot);
  --c->gate_count;
  ++c->wake_gated;
}

/* Tells the trace of a span from then until `to`. */
static inline void clock_tell(const sim_clock *c, span_kind kind, span_end end, uint32_t who,
                              double from, double to, uint64_t batch, int64_t version) {
  const int empty = from >= to && (end == SPAN_DONE || end == SPAN_OPEN);
  if (c->trace == NULL || empty) return;
  c->trace->span(c->trace->self, &(schedule_span){kind, end, who, from, to, batch, version});
}

/* Events of one moment are handled in this order: what ends or arrives, then the learner's start,
 * then samplers' starts. So a batch or weights that arrive at a moment are seen at that moment. */
enum { RANK_ARRIVAL, RANK_LEARNER, RANK_SAMPLER };
enum event_kind {
  GENERATION_ENDS,
  BATCH_ARRIVES,
  BATCH_LOST,
  WEIGHTS_LOADED,
  LINK_FREE,
  CRASH,
  RETURN,
  WEIGHTS_ARRIVE,
  UPDATE_ENDS,
  PAUSE_ENDS,
  LEARNER_STARTS,
  SAMPLER_STARTS,
  RESPONSE_ENDS, /* data: place in running[] and its serial << 32 */
  INTERRUPTION_ENDS,
  TRANSFER_MOVES, /* data: place in network.pool[] and its serial << 32 */
  NETWORK_SHARES,
  FLOW_ENDS,     /* data: class, and network.shares << 32 */
  OUTAGE_BEGINS, /* node: the site; data: 1 if it is one of its distributions */
  OUTAGE_ENDS
};

/* Adds an event to the queue. `node` is the sampler it concerns, `data` what its kind needs: a slot
 * or a version. GL_ENUMERIC where the time is not finite. */
gl_status clock_post(sim_clock *c, double time, uint32_t rank, uint32_t kind, uint32_t node,
                     uint64_t data, gl_error *err);

/* A unit has come to the learner. */
gl_status clock_batch_arrives(sim_clock *c, uint32_t slot, gl_error *err);

/* --- samplers, by their number --- */

/* A sampler that can begin a batch does, after fetching weights that are due. just_loaded: they
 * came this moment, and a delay of 0 does not fetch them twice. */
gl_status sampler_starts(sim_clock *c, uint32_t i, int just_loaded, gl_error *err);
gl_status sampler_generated(sim_clock *c, uint32_t i, gl_error *err);
/* SYNC_PULL: the weights it fetched have come; version UINT64_MAX: they were lost. */
gl_status sampler_loaded(sim_clock *c, uint32_t i, uint64_t version, gl_error *err);
/* SYNC_PUSH: sends it the newest weights, at once or when the link is free; and: they arrive. */
gl_status sampler_push(sim_clock *c, uint32_t i, gl_error *err);
gl_status sampler_receives(sim_clock *c, uint32_t i, int64_t version, gl_error *err);
gl_status sampler_plan_crash(sim_clock *c, uint32_t i, gl_error *err);
gl_status sampler_crashes(sim_clock *c, uint32_t i, gl_error *err);
gl_status sampler_returns(sim_clock *c, uint32_t i, gl_error *err);
/* Leaves one state, in the way that `end` says, for another. */
void sampler_enter(sim_clock *c, uint32_t i, sampler_state state, span_end end);
/* SYNC_PULL: fetches the newest weights; the sampler stands still until they are there. */
gl_status sampler_fetches(sim_clock *c, uint32_t i, gl_error *err);
/* The factor on its next generation time. */
double sampler_jitter(sim_clock *c, uint32_t i);
/* Sends a unit whose generation has ended to the learner. */
gl_status sampler_sends(sim_clock *c, uint32_t i, uint32_t slot, gl_error *err);
/* Tells the trace of the state that a sampler has been in since s->begun_s. */
void sampler_tell(const sim_clock *c, uint32_t i, span_end end);
/* A batch that was lost: with its sampler, or by the link. */
void sampler_loses(sim_clock *c, uint32_t slot);
int sampler_gate_is_open(const sim_clock *c, const sampler *s);
double sampler_weights_delay(sim_clock *c, uint32_t i);
double sampler_data_delay(sim_clock *c, uint32_t i);
/* What its link loses, upwards or else downwards, is drawn from. */
rng_stream sampler_losses(const sim_clock *c, uint32_t i, int up);

/* --- messages over a network that they share (transfer.c), where spec->network is not NULL --- */
/* 0: memory is short. */
int transfer_init(sim_clock *c);
void transfer_fini(sim_clock *c);
/* Sends a sampler the newest weights, or, where older ones already flow to it, once its link is
 * free. They come by sampler_loaded where weights are pulled, else by sampler_receives or
 * stream_receives. */
gl_status transfer_weights(sim_clock *c, uint32_t i, gl_error *err);
/* Sends the unit of that slot to the learner. */
gl_status transfer_batch(sim_clock *c, uint32_t i, uint32_t slot, gl_error *err);
/* Sends a shard of a version from a node of the tree of relays to a sampler. */
gl_status transfer_shard(sim_clock *c, uint32_t from, uint32_t i, int64_t version, gl_error *err);
/* The tree of relays (relay.c). 0: memory is short. */
int relay_init(sim_clock *c);
/* There are new weights: the learner sends them on, or once it has sent those before. */
gl_status relay_publish(sim_clock *c, gl_error *err);
/* A shard is at a sampler; its bytes began to flow at begun_s. */
gl_status relay_shard_arrives(sim_clock *c, uint32_t from, uint32_t i, int64_t version,
                              double begun_s, gl_error *err);
/* A crash: the sampler no longer has what a delta is one from. */
void transfer_crash(sim_clock *c, uint32_t i);
/* The events TRANSFER_MOVES, NETWORK_SHARES and FLOW_ENDS. */
gl_status transfer_moves(sim_clock *c, uint64_t which, gl_error *err);
gl_status transfer_shares(sim_clock *c, gl_error *err);
gl_status transfer_flow_ends(sim_clock *c, uint64_t which, gl_error *err);
/* A site has been cut off, or is no longer: transfers from and to it stop, and go on. */
gl_status transfer_outage_begins(sim_clock *c, gl_error *err);
gl_status transfer_outage_ends(sim_clock *c, gl_error *err);
/* Posts the outages of all sites (outage.c), and: one begins, and ends. */
gl_status outage_plan(sim_clock *c, gl_error *err);
gl_status outage_begins(sim_clock *c, uint32_t site, int drawn, gl_error *err);
gl_status outage_ends(sim_clock *c, uint32_t site, int drawn, gl_error *err);
/* Tells the trace of what the clock's end interrupts. */
void transfer_tell_open(const sim_clock *c);
/* Fills clock->out->network. */
void transfer_report(sim_clock *c);

/* --- samplers that stream units (stream.c) --- */

/* 0: memory is short. */
int stream_init(sim_clock *c);
void stream_fini(sim_clock *c);
/* Fills the sampler's free decoding slots, as far as the gate and weights that are due let it. */
gl_status stream_starts(sim_clock *c, uint32_t i, int just_loaded, gl_error *err);
gl_status stream_response_ends(sim_clock *c, uint32_t i, uint64_t which, gl_error *err);
/* SYNC_PUSH: weights arrive, and the rule of partial units says when they are used. */
gl_status stream_receives(sim_clock *c, uint32_t i, int64_t version, gl_error *err);
/* A crash: the units under way are lost. */
void stream_crashes(sim_clock *c, uint32_t i);
/* Tells the trace of units that the clock's end interrupts. */
void stream_tell_open(const sim_clock *c, uint32_t i);
/* Memory of the units and responses under way. */
size_t stream_bytes(const sim_clock *c);

/* --- weights that interrupt decoding (interrupt.c) --- */

/* 0: memory is short. */
int interrupt_init(sim_clock *c);
void interrupt_fini(sim_clock *c);
/* Whether the sampler stands still. */
static inline int interrupt_stands(const sim_clock *c, uint32_t i) {
  return c->interrupts.of != NULL && c->interrupts.of[i].ends_s > 0;
}
/* Up to when its responses under way have been decoded, or will have been when it stands still no
 * longer, for their times are moved by all of that. */
static inline double interrupt_decoded_to(const sim_clock *c, uint32_t i) {
  return interrupt_stands(c, i) ? c->interrupts.of[i].ends_s : c->now;
}
/* What of it is still to come. */
static inline double interrupt_rest(const sim_clock *c, uint32_t i) {
  return interrupt_decoded_to(c, i) - c->now;
}
/* The sampler begins to stand still for `seconds`, of which `tokens` are computed again. */
gl_status interrupt_begins(sim_clock *c, uint32_t i, double seconds, double tokens, gl_error *err);
/* Weights come while it stands still: they are taken over next, unless newer ones come. */
void interrupt_keeps(sim_clock *c, uint32_t i, int64_t version);
/* A batch is begun: it has not stood still yet. */
void interrupt_begins_batch(sim_clock *c, uint32_t i);
gl_status interrupt_ends(sim_clock *c, uint32_t i, gl_error *err);
/* A crash. */
void interrupt_crashes(sim_clock *c, uint32_t i);
/* Tells the trace that the sampler has stood still, in which way it ends. */
void interrupt_tell(const sim_clock *c, uint32_t i, span_end end);

/* --- which waiting batch is trained next (batch_choice.c) --- */

/* Room in clock->chosen for so many units. 0 if memory is short. */
int batch_choice_reserve(sim_clock *c, size_t units);
/* A batch has joined the list of those that wait. 0 if memory is short. */
int batch_choice_add(sim_clock *c, uint32_t slot);
/* Throws a waiting batch away. */
void batch_choice_drop(sim_clock *c, uint32_t slot, unit_fate fate);
/* Keeps a queue that has overflowed within its capacity. */
void batch_choice_evict(sim_clock *c);
/* Fills clock->chosen[n_chosen] with the units of the next update and takes them from the list; 0
 * where the rule has to wait. Batches too old to be trained are dropped on the way. */
int batch_choice_next(sim_clock *c);

/* --- coupling --- */

/* 0: memory is short. */
int coupling_init(coupling *k, const schedule_hooks *hooks, size_t updates, size_t responses);
/* Releases what is held, then the memory. */
void coupling_fini(coupling *k, size_t updates);
/* One more user of a version, or one less (-1: no version, nothing happens). */
void coupling_take(sim_clock *c, int64_t version);
void coupling_leave(sim_clock *c, int64_t version);
/* The end of the update that made c->version; c->published is up to date. */
gl_status coupling_update(sim_clock *c, gl_error *err);

/* --- end --- */

/* Fills staleness, clock and the counts of clock->out. */
gl_status clock_summarise(sim_clock *c, gl_error *err);

#endif
