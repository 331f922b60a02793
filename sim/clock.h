/* The event loop behind schedule_build: its state, shared by the files of this room only. */
#ifndef GEPOLAB_SIM_CLOCK_H
#define GEPOLAB_SIM_CLOCK_H

#include "sim/buffer.h"
#include "sim/cluster_spec.h"
#include "sim/event_queue.h"

typedef enum sampler_state {
  SAMPLER_READY,
  SAMPLER_GENERATING,
  SAMPLER_GATED,   /* waits for newer weights */
  SAMPLER_LOADING, /* SYNC_PULL: waits for the weights it fetches */
  SAMPLER_DOWN     /* crashed */
} sampler_state;

/* Where one of a sampler's sequences of draws stands; its stream follows from the sampler. */
typedef struct draw_state {
  uint32_t index, bad;
} draw_state;

typedef struct sampler {
  const sampler_group *group;
  double due_s;           /* SYNC_PULL: when the next fetch may happen */
  double begun_s, ends_s; /* of the batch in work */
  double busy_s;
  int64_t version;
  int resend; /* SYNC_PUSH: weights wait for the link */
  draw_state delay, data_delay, generation, jitter;
  link_state up, down;
  uint32_t crashes;
  uint32_t slot, ordinal;
  sampler_state state;
} sampler;

/* What a coupled clock keeps besides; hooks NULL: it is not coupled. */
typedef struct coupling {
  const schedule_hooks *hooks;
  double *lengths; /* [responses of a batch] */
  uint32_t *users; /* [updates + 1] per version: samplers that have it, messages that carry it, the
                      newest published */
  unsigned char *held; /* [updates + 1] */
  int stopped;
} coupling;

typedef struct sim_clock {
  const cluster_spec *spec;
  event_queue events;
  buffer buffer;
  event_queue by_version; /* what waits, by (version, arrival): see queue_note */
  sampler *samplers;
  double now;
  uint64_t tickets; /* batches begun, less those that will not be trained */
  /* learner */
  int64_t version, published, newest_trained;
  int learner_busy, wake_pending;
  double idle_since, paused_s, busy_s;
  delay_source step, pause;
  uint32_t *chosen;  /* [spec->batches] */
  event_queue slots; /* of a sampler that decodes: room for response_draw */
  /* result */
  schedule *out;
  size_t updates, segment_capacity;
  uint64_t begun, generated, dropped, lost;
  double waited_s, waiting_integral_s;
  double bytes_up, bytes_down, retransmissions;
  int wake_gated; /* tickets that came back: gated samplers may look again */
  coupling coupled;
  uint64_t seed;
  gsl_rng *generator;
} sim_clock;

/* A batch that will not be trained: its ticket is given back and its record is free again. */
static inline void forget_batch(sim_clock *c, uint32_t slot) {
  if (c->coupled.hooks != NULL)
    c->coupled.hooks->discard(c->coupled.hooks->self, &c->buffer.pool[slot].facts);
  buffer_release(&c->buffer, slot);
  --c->tickets;
  ++c->wake_gated;
}

/* At one moment everything that ends or arrives comes first, then the learner starts, then samplers
 * do: a batch or weights that arrive at that moment are seen. */
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
  SAMPLER_STARTS
};

/* An event at a time, of a rank and a kind; GL_ENUMERIC where the time is not finite. */
gl_status clock_post(sim_clock *c, double time, uint32_t rank, uint32_t kind, uint32_t node,
                     uint64_t data, gl_error *err);

/* --- samplers, by their number -----------------------------------------------------------------
 */

/* A sampler that can begin a batch does, after fetching weights that are due. just_loaded: they
 * came this moment, and a delay of 0 does not fetch them twice. */
gl_status sampler_starts(sim_clock *c, uint32_t i, int just_loaded, gl_error *err);
gl_status sampler_generated(sim_clock *c, uint32_t i, gl_error *err);
/* SYNC_PULL: what it fetched is there; UINT64_MAX: it is not. */
gl_status sampler_loaded(sim_clock *c, uint32_t i, uint64_t version, gl_error *err);
/* SYNC_PUSH: sends it the newest weights, or once the link is free; and their arrival. */
gl_status sampler_push(sim_clock *c, uint32_t i, gl_error *err);
gl_status sampler_receives(sim_clock *c, uint32_t i, int64_t version, gl_error *err);
gl_status sampler_plan_crash(sim_clock *c, uint32_t i, gl_error *err);
gl_status sampler_crashes(sim_clock *c, uint32_t i, gl_error *err);
gl_status sampler_returns(sim_clock *c, uint32_t i, gl_error *err);
/* A batch that the link gave up. */
void sampler_loses(sim_clock *c, uint32_t slot);
int sampler_gate_is_open(const sim_clock *c, const sampler *s);
double sampler_weights_delay(sim_clock *c, uint32_t i);

/* --- queue ----------------------------------------------------------------------------------- */

/* Tells the queue of a batch that has joined the buffer. 0: memory is short. */
int queue_note(sim_clock *c, uint32_t slot);
/* Throws a waiting batch away. */
void queue_drop(sim_clock *c, uint32_t slot);
/* Fills clock->chosen with the batches of the next update, removed from the buffer; 0 where the
 * rule has to wait. Batches too old to train are dropped on the way. */
int queue_choose(sim_clock *c);

/* --- coupling ----------------------------------------------------------------------------------
 */

/* 0: memory is short. */
int coupling_init(coupling *k, const schedule_hooks *hooks, size_t updates, size_t responses);
/* Releases what is held, then the memory. */
void coupling_fini(coupling *k, size_t updates);
/* Somebody has a version from now on, or no more (-1: nothing happens). */
void coupling_take(sim_clock *c, int64_t version);
void coupling_leave(sim_clock *c, int64_t version);
/* The end of the update that made c->version; c->published is up to date. */
gl_status coupling_update(sim_clock *c, gl_error *err);

/* --- end ---------------------------------------------------------------------------------------
 */

/* Fills the histogram, the clock row and the books of clock->out. */
gl_status clock_summarise(sim_clock *c, gl_error *err);

#endif
