/* Messages over a network that they share: from asking to arrival, step by step. */
#include "sim/clock.h"

#include <math.h>
#include <stdlib.h>

/* --- places ------------------------------------------------------------------------------------
 */

static int reserve(network *n) {
  if (n->free != TRANSFER_NONE || n->n < n->capacity) return 1;
  const size_t capacity = n->capacity == 0 ? 64 : 2 * (size_t)n->capacity;
  if (capacity >= TRANSFER_NONE || capacity > SIZE_MAX / sizeof *n->pool) return 0;
  transfer *more = realloc(n->pool, capacity * sizeof *more);
  if (more == NULL) return 0;
  n->pool = more;
  n->capacity = (uint32_t)capacity;
  return 1;
}

/* A place for a transfer that is asked for now; TRANSFER_NONE if memory is short. */
static uint32_t take(sim_clock *c, uint32_t i) {
  network *n = &c->net;
  if (!reserve(n)) return TRANSFER_NONE;
  uint32_t id = n->free, serial = 0;
  if (id == TRANSFER_NONE) {
    id = n->n++;
  } else {
    n->free = n->pool[id].next;
    serial = n->pool[id].serial;
  }
  n->pool[id] = (transfer){.state = TRANSFER_WAITS,
                           .sampler = i,
                           .next = TRANSFER_NONE,
                           .serial = serial,
                           .version = -1,
                           .slot = BUFFER_NONE,
                           .asked_s = c->now};
  return id;
}

static void give_back(network *n, uint32_t id) {
  transfer *t = &n->pool[id];
  t->state = TRANSFER_FREE;
  ++t->serial;
  t->next = n->free;
  n->free = id;
}

static void line_add(network *n, transfer_line *line, uint32_t id) {
  n->pool[id].next = TRANSFER_NONE;
  *(line->first == TRANSFER_NONE ? &line->first : &n->pool[line->last].next) = id;
  line->last = id;
}

/* Takes the first of a line; TRANSFER_NONE: it is empty. */
static uint32_t line_take(network *n, transfer_line *line) {
  const uint32_t id = line->first;
  if (id != TRANSFER_NONE) line->first = n->pool[id].next;
  return id;
}

static transfer_port *port_of(network *n, const transfer *t) {
  return t->is_batch ? &n->ingress : &n->egress;
}

static transfer_route *route_of(sim_clock *c, const transfer *t) {
  const size_t group = (size_t)(c->samplers[t->sampler].group - c->spec->groups);
  return t->is_batch ? &c->net.up[group] : &c->net.down[group];
}

/* The transfer's next step, after so many seconds. */
static gl_status later(sim_clock *c, uint32_t id, transfer_state state, double seconds,
                       gl_error *err) {
  transfer *t = &c->net.pool[id];
  t->state = state;
  return clock_post(c, c->now + seconds, RANK_ARRIVAL, TRANSFER_MOVES, t->sampler,
                    id | (uint64_t)t->serial << 32, err);
}

/* --- bytes that flow ----------------------------------------------------------------------------
 */

/* Flows join and leave at once at a moment; rates are given when all of that moment is known. */
static gl_status want_shares(sim_clock *c, gl_error *err) {
  if (c->net.share_pending) return GL_OK;
  c->net.share_pending = 1;
  return clock_post(c, c->now, RANK_ARRIVAL, NETWORK_SHARES, 0, 0, err);
}

gl_status transfer_shares(sim_clock *c, gl_error *err) {
  network *n = &c->net;
  double end;
  uint32_t class;
  n->share_pending = 0;
  ++n->shares;
  flow_advance(&n->flows, c->now);
  flow_share(&n->flows);
  if (!flow_next(&n->flows, &end, &class)) return GL_OK;
  return clock_post(c, end, RANK_ARRIVAL, FLOW_ENDS, 0, class | (uint64_t)n->shares << 32, err);
}

/* How many bytes the weights are for this sampler: a delta, or all of them where it lacks what the
 * delta is one from. */
static double weights_for(sim_clock *c, transfer *t) {
  const network_spec *spec = c->spec->network;
  transfer_peer *peer = &c->net.peers[t->sampler];
  ++peer->sent;
  const int turn = spec->full_every > 0 && peer->sent % spec->full_every == 0;
  t->is_delta = spec->delta_share < 1 && !turn && !peer->needs_full;
  t->crashes = c->samplers[t->sampler].crashes;
  peer->needs_full = 0;
  *(t->is_delta ? &c->net.deltas : &c->net.fulls) += 1;
  return c->spec->weights_bytes * (t->is_delta ? spec->delta_share : 1);
}

/* What the link loses is drawn now, and all repetitions are sent with the rest. */
static void plan(sim_clock *c, transfer *t, const transfer_route *route, double bytes) {
  sampler *s = &c->samplers[t->sampler];
  link_state *state = t->is_batch ? &s->up : &s->down;
  state->free_at = 0;
  const link_trip trip = link_send(&route->link, state, c->seed, c->generator, 0, bytes);
  t->bytes = trip.bytes;
  t->wait_s = trip.end_s; /* over an unlimited link */
  t->delivered = trip.delivered;
  c->retransmissions += trip.retransmissions;
  *(t->is_batch ? &c->bytes_up : &c->bytes_down) += trip.bytes;
}

static gl_status begin(sim_clock *c, uint32_t id, gl_error *err) {
  network *n = &c->net;
  transfer *t = &n->pool[id];
  transfer_port *port = port_of(n, t);
  const transfer_route *route = route_of(c, t);
  double bytes = 0;
  t->begun_s = c->now;
  if (t->is_batch) {
    bytes = c->buffer.pool[t->slot].facts.bytes;
  } else {
    t->version = c->published;
    coupling_take(c, t->version);
    bytes = weights_for(c, t);
  }
  plan(c, t, route, bytes);
  if (port->active++ == 0) port->busy_since_s = c->now;
  if (route->class == FLOW_NONE) return later(c, id, TRANSFER_FLOWS, t->bytes / route->cap, err);
  t->state = TRANSFER_FLOWS;
  flow_advance(&n->flows, c->now);
  if (!flow_join(&n->flows, route->class, t->bytes, id)) return gl_fail_memory(err, "transfers");
  return want_shares(c, err);
}

static gl_status reaches_port(sim_clock *c, uint32_t id, gl_error *err) {
  transfer *t = &c->net.pool[id];
  transfer_port *port = port_of(&c->net, t);
  if (port->share == SHARE_FAIR || port->active == 0) return begin(c, id, err);
  t->state = TRANSFER_QUEUES;
  line_add(&c->net, &port->line, id);
  return GL_OK;
}

/* It has its sampler's link. */
static gl_status greet(sim_clock *c, uint32_t id, gl_error *err) {
  const network_spec *spec = c->spec->network;
  const double seconds = spec->round_trips * spec->rtt;
  return seconds > 0 ? later(c, id, TRANSFER_GREETS, seconds, err) : reaches_port(c, id, err);
}

/* --- asking -------------------------------------------------------------------------------------
 */

gl_status transfer_weights(sim_clock *c, uint32_t i, gl_error *err) {
  transfer_peer *peer = &c->net.peers[i];
  sampler *s = &c->samplers[i];
  if (peer->down != TRANSFER_NONE) {
    /* What has not begun to flow will carry the newest weights anyway. */
    const transfer_state state = c->net.pool[peer->down].state;
    s->resend = state == TRANSFER_FLOWS || state == TRANSFER_REPEATS;
    return GL_OK;
  }
  const uint32_t id = take(c, i);
  if (id == TRANSFER_NONE) return gl_fail_memory(err, "transfers");
  peer->down = id;
  return greet(c, id, err);
}

gl_status transfer_batch(sim_clock *c, uint32_t i, uint32_t slot, gl_error *err) {
  transfer_peer *peer = &c->net.peers[i];
  const uint32_t id = take(c, i);
  if (id == TRANSFER_NONE) return gl_fail_memory(err, "transfers");
  c->net.pool[id].is_batch = 1;
  c->net.pool[id].slot = slot;
  if (peer->up != TRANSFER_NONE) {
    line_add(&c->net, &peer->line, id);
    return GL_OK;
  }
  peer->up = id;
  return greet(c, id, err);
}

void transfer_crash(sim_clock *c, uint32_t i) {
  c->net.peers[i].needs_full = 1;
}

/* --- the end of a transfer ----------------------------------------------------------------------
 */

static void tell(const sim_clock *c, const transfer *t, span_end end, double to) {
  const uint64_t batch = t->is_batch ? c->buffer.pool[t->slot].facts.number : 0;
  const int flows = t->state >= TRANSFER_FLOWS;
  clock_tell(c, t->is_batch ? SPAN_UPLOAD_WAITS : SPAN_DOWNLOAD_WAITS, flows ? SPAN_DONE : end,
             t->sampler, t->asked_s, flows ? t->begun_s : to, batch, t->version);
  if (flows)
    clock_tell(c, t->is_batch ? SPAN_UPLOAD : SPAN_DOWNLOAD, end, t->sampler, t->begun_s, to, batch,
               t->version);
}

/* The link is free: for the next batch, or for weights that have been published meanwhile. */
static gl_status free_link(sim_clock *c, const transfer *t, gl_error *err) {
  transfer_peer *peer = &c->net.peers[t->sampler];
  sampler *s = &c->samplers[t->sampler];
  if (t->is_batch) {
    peer->up = line_take(&c->net, &peer->line);
    return peer->up == TRANSFER_NONE ? GL_OK : greet(c, peer->up, err);
  }
  peer->down = TRANSFER_NONE;
  if (!s->resend) return GL_OK;
  s->resend = 0;
  return transfer_weights(c, t->sampler, err);
}

/* Weights that the link has given up: pushed ones are sent again, a fetch ends without. */
static gl_status loses_weights(sim_clock *c, const transfer *t, int is_void, gl_error *err) {
  sampler *s = &c->samplers[t->sampler];
  const int push = c->spec->sync == SYNC_PUSH;
  c->net.peers[t->sampler].needs_full = 1;
  coupling_leave(c, t->version);
  if (push) s->resend = 1;
  gl_status status = free_link(c, t, err);
  if (status != GL_OK || push || is_void) return status;
  s->ends_s = c->now;
  return sampler_loaded(c, t->sampler, UINT64_MAX, err);
}

/* All is sent; what is left is the way. */
static gl_status is_sent(sim_clock *c, uint32_t id, gl_error *err) {
  const transfer t = c->net.pool[id];
  const int pull = c->spec->sync == SYNC_PULL;
  /* A fetch that a crash has made void is asked for again when its link is free. */
  const int is_void = !t.is_batch && pull && c->samplers[t.sampler].resend;
  double way = 0;
  if (t.is_batch)
    way = sampler_data_delay(c, t.sampler);
  else if (!pull && t.delivered)
    way = sampler_weights_delay(c, t.sampler);
  tell(c, &t, t.delivered ? SPAN_DONE : SPAN_LOST, c->now + way);
  if (t.delivered)
    tally_add(t.is_batch ? c->net.batches : c->net.weights, c->now + way - t.asked_s);
  if (!t.is_batch && (is_void || !t.delivered)) {
    give_back(&c->net, id);
    return loses_weights(c, &t, is_void, err);
  }
  const gl_status status = later(c, id, TRANSFER_TRAVELS, way, err);
  return status == GL_OK ? free_link(c, &t, err) : status;
}

static gl_status weights_arrive(sim_clock *c, const transfer *t, gl_error *err) {
  const uint32_t i = t->sampler;
  sampler *s = &c->samplers[i];
  if (t->is_delta && s->crashes != t->crashes) { /* it has lost what this is a delta from */
    coupling_leave(c, t->version);
    return GL_OK;
  }
  if (c->spec->sync == SYNC_PULL) {
    s->ends_s = c->now;
    return sampler_loaded(c, i, (uint64_t)t->version, err);
  }
  return (c->stream.engines != NULL ? stream_receives : sampler_receives)(c, i, t->version, err);
}

static gl_status arrives(sim_clock *c, uint32_t id, gl_error *err) {
  const transfer t = c->net.pool[id];
  give_back(&c->net, id);
  if (!t.is_batch) return weights_arrive(c, &t, err);
  if (t.delivered) return clock_batch_arrives(c, t.slot, err);
  sampler_loses(c, t.slot);
  return GL_OK;
}

/* Its bytes have been sent: the learner's side is free for the next. */
static gl_status bytes_end(sim_clock *c, uint32_t id, gl_error *err) {
  const transfer t = c->net.pool[id];
  transfer_port *port = port_of(&c->net, &t);
  gl_status status = GL_OK;
  if (--port->active == 0)
    clock_tell(c, t.is_batch ? SPAN_INGRESS : SPAN_EGRESS, SPAN_DONE, 0, port->busy_since_s, c->now,
               0, -1);
  const uint32_t next = port->active == 0 ? line_take(&c->net, &port->line) : TRANSFER_NONE;
  if (next != TRANSFER_NONE) status = begin(c, next, err);
  if (status != GL_OK) return status;
  return t.wait_s > 0 ? later(c, id, TRANSFER_REPEATS, t.wait_s, err) : is_sent(c, id, err);
}

gl_status transfer_flow_ends(sim_clock *c, uint64_t which, gl_error *err) {
  network *n = &c->net;
  if (which >> 32 != n->shares) return GL_OK; /* something has joined or left since */
  flow_advance(&n->flows, c->now);
  const gl_status status = bytes_end(c, (uint32_t)flow_finish(&n->flows, (uint32_t)which), err);
  return status == GL_OK ? want_shares(c, err) : status;
}

gl_status transfer_moves(sim_clock *c, uint64_t which, gl_error *err) {
  const uint32_t id = (uint32_t)which;
  const transfer *t = &c->net.pool[id];
  if (t->serial != which >> 32) return GL_OK;
  switch (t->state) {
  case TRANSFER_FREE:
  case TRANSFER_WAITS:
  case TRANSFER_QUEUES:
    return gl_fail(err, GL_EINTERNAL, "a transfer moves while it waits");
  case TRANSFER_GREETS:
    return reaches_port(c, id, err);
  case TRANSFER_FLOWS:
    return bytes_end(c, id, err);
  case TRANSFER_REPEATS:
    return is_sent(c, id, err);
  case TRANSFER_TRAVELS:
    return arrives(c, id, err);
  }
  return GL_OK;
}

/* --- the whole ----------------------------------------------------------------------------------
 */

/* The class of flows through a port, as fast as a sampler's own link lets one be. */
static int open_route(network *n, const transfer_port *port, const link_spec *link,
                      transfer_route *out) {
  *out = (transfer_route){.link = *link, .cap = link->bandwidth, .class = FLOW_NONE};
  out->link.bandwidth = INFINITY;
  if (port->resource == FLOW_NONE) return 1;
  out->class = flow_class_of(&n->flows, &port->resource, 1, out->cap);
  return out->class != FLOW_NONE;
}

static int open_port(network *n, const network_port *spec, transfer_port *out) {
  *out = (transfer_port){
      .share = spec->share, .resource = FLOW_NONE, .line = {TRANSFER_NONE, TRANSFER_NONE}};
  if (!isfinite(spec->bandwidth)) return 1;
  out->resource = flow_resource_add(&n->flows, spec->bandwidth);
  return out->resource != FLOW_NONE;
}

int transfer_init(sim_clock *c) {
  network *n = &c->net;
  const network_spec *spec = c->spec->network;
  n->free = TRANSFER_NONE;
  flow_init(&n->flows);
  if (spec == NULL) return 1;
  n->peers = calloc(c->spec->n_samplers, sizeof *n->peers);
  n->up = calloc(c->spec->n_groups, sizeof *n->up);
  n->down = calloc(c->spec->n_groups, sizeof *n->down);
  n->weights = calloc(1, sizeof *n->weights);
  n->batches = calloc(1, sizeof *n->batches);
  int fits = n->peers && n->up && n->down && n->weights && n->batches;
  fits =
      fits && open_port(n, &spec->egress, &n->egress) && open_port(n, &spec->ingress, &n->ingress);
  for (size_t g = 0; g < c->spec->n_groups && fits; ++g)
    fits = open_route(n, &n->ingress, &c->spec->groups[g].up, &n->up[g]) &&
           open_route(n, &n->egress, &c->spec->groups[g].down, &n->down[g]);
  for (size_t i = 0; i < c->spec->n_samplers && fits; ++i)
    n->peers[i] = (transfer_peer){
        .up = TRANSFER_NONE, .down = TRANSFER_NONE, .line = {TRANSFER_NONE, TRANSFER_NONE}};
  return fits;
}

void transfer_fini(sim_clock *c) {
  network *n = &c->net;
  free(n->peers);
  free(n->up);
  free(n->down);
  free(n->pool);
  free(n->weights);
  free(n->batches);
  flow_fini(&n->flows);
  *n = (network){.free = TRANSFER_NONE};
}

static void tell_port(const sim_clock *c, const transfer_port *port, span_kind kind) {
  if (port->active > 0) clock_tell(c, kind, SPAN_OPEN, 0, port->busy_since_s, c->now, 0, -1);
}

void transfer_tell_open(const sim_clock *c) {
  for (uint32_t i = 0; i < c->net.n; ++i) {
    const transfer *t = &c->net.pool[i];
    if (t->state != TRANSFER_FREE && t->state != TRANSFER_TRAVELS) tell(c, t, SPAN_OPEN, c->now);
  }
  if (c->net.peers == NULL) return;
  tell_port(c, &c->net.egress, SPAN_EGRESS);
  tell_port(c, &c->net.ingress, SPAN_INGRESS);
}

static transfer_times times_of(const tally *t) {
  return (transfer_times){.n = (double)t->n,
                          .mean = t->n > 0 ? t->sum / (double)t->n : NAN,
                          .p50 = tally_quantile(t, 0.5),
                          .p95 = tally_quantile(t, 0.95),
                          .max = t->n > 0 ? t->most : NAN};
}

static double utilisation_of(const sim_clock *c, const transfer_port *port) {
  if (port->resource == FLOW_NONE) return NAN;
  const flow_resource *r = &c->net.flows.resources[port->resource];
  return c->now > 0 ? r->carried / (r->capacity * c->now) : 0;
}

void transfer_report(sim_clock *c) {
  network *n = &c->net;
  if (n->peers == NULL) return;
  flow_advance(&n->flows, c->now);
  c->out->network = (network_report){.is_on = 1,
                                     .egress_utilisation = utilisation_of(c, &n->egress),
                                     .ingress_utilisation = utilisation_of(c, &n->ingress),
                                     .weights = times_of(n->weights),
                                     .batches = times_of(n->batches),
                                     .fulls = n->fulls,
                                     .deltas = n->deltas};
}
