/* Transfers over a shared network, from request to arrival, and trees of relays. clock.c handles
 * arrivals. */
#include "core/base/array.h"
#include "sim/clock.h"

#include <math.h>
#include <stdlib.h>

/* --- histogram of times --- */

static const size_t tally_classes = (size_t)TALLY_PER_OCTAVE * TALLY_OCTAVES;

static size_t tally_class(double seconds) {
  const double place = (log2(fmax(seconds, 1e-300)) - TALLY_LOWEST) * TALLY_PER_OCTAVE;
  return (size_t)fmin(fmax(place, 0), (double)(tally_classes - 1));
}

void tally_add(tally *t, double seconds) {
  t->least = t->n == 0 ? seconds : fmin(t->least, seconds);
  t->most = t->n == 0 ? seconds : fmax(t->most, seconds);
  t->sum += seconds;
  ++t->n;
  ++t->count[tally_class(seconds)];
}

double tally_quantile(const tally *t, double p) {
  const uint64_t wanted = (uint64_t)fmax(1, ceil(p * (double)t->n));
  uint64_t below = 0;
  for (size_t i = 0; i < tally_classes && t->n > 0; ++i) {
    below += t->count[i];
    if (below < wanted) continue;
    if (i == 0) return t->least; /* the first class also has all shorter times */
    const double middle = exp2(((double)i + 0.5) / TALLY_PER_OCTAVE + TALLY_LOWEST);
    return fmin(fmax(middle, t->least), t->most);
  }
  return NAN;
}

/* --- entries of transfers --- */

/* Allocates an entry for a new transfer; TRANSFER_NONE if out of memory. */
static uint32_t take_transfer(sim_clock *c, uint32_t i) {
  network *n = &c->net;
  if (n->free == TRANSFER_NONE &&
      (n->n >= TRANSFER_NONE - 1 || !ARRAY_RESERVE(n->pool, n->capacity, (size_t)n->n + 1)))
    return TRANSFER_NONE;
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

static void give_transfer_back(network *n, uint32_t id) {
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

/* Removes the first transfer of a queue; TRANSFER_NONE if it is empty. */
static uint32_t line_take(network *n, transfer_line *line) {
  const uint32_t id = line->first;
  if (id != TRANSFER_NONE) line->first = n->pool[id].next;
  return id;
}

static transfer_port *port_of(network *n, const transfer *t) {
  if (t->cargo == CARGO_SHARD) return &n->nodes[t->from].port;
  return t->cargo == CARGO_BATCH ? &n->ingress : &n->egress;
}

static size_t group_of(const sim_clock *c, uint32_t i) {
  return (size_t)(c->samplers[i].group - c->spec->groups);
}

static transfer_route *route_of(sim_clock *c, const transfer *t) {
  const size_t group = group_of(c, t->sampler), n_groups = c->spec->n_groups;
  if (t->cargo == CARGO_SHARD)
    return &c->net.hops[(t->from == 0 ? n_groups : group_of(c, t->from - 1)) * n_groups + group];
  return t->cargo == CARGO_BATCH ? &c->net.up[group] : &c->net.down[group];
}

/* Posts the transfer's next step. */
static gl_status transfer_later(sim_clock *c, uint32_t id, transfer_state state, double seconds,
                                gl_error *err) {
  transfer *t = &c->net.pool[id];
  t->state = state;
  return clock_post(c, c->now + seconds,
                    state == TRANSFER_IN_FLIGHT ? TRANSFER_ARRIVES : TRANSFER_MOVES, t->sampler,
                    id | (uint64_t)t->serial << 32, err);
}

/* --- flowing bytes --- */

/* Posts one recomputation of rates for all flows that join or leave at this time. */
static gl_status want_shares(sim_clock *c, gl_error *err) {
  if (c->net.share_pending) return GL_OK;
  c->net.share_pending = true;
  return clock_post(c, c->now, NETWORK_SHARES, 0, 0, err);
}

gl_status transfer_shares(sim_clock *c, gl_error *err) {
  network *n = &c->net;
  double end;
  uint32_t class;
  n->share_pending = false;
  ++n->shares;
  flow_advance(&n->flows, c->now);
  flow_share(&n->flows);
  if (!flow_next(&n->flows, &end, &class)) return GL_OK;
  return clock_post(c, end, FLOW_ENDS, 0, class | (uint64_t)n->shares << 32, err);
}

/* Whether an outage prevents a transfer between two sites now. */
static bool is_cut(const network *n, uint32_t from, uint32_t to) {
  return n->sites != NULL && from != to && (n->sites[from].outages > 0 || n->sites[to].outages > 0);
}

static bool is_cut_off(sim_clock *c, const transfer *t) {
  const transfer_route *route = route_of(c, t);
  return is_cut(&c->net, route->from, route->to);
}

static void park(network *n, uint32_t id) {
  n->pool[id].state = TRANSFER_QUEUES;
  line_add(n, &n->parked, id);
}

/* Bytes of the weights for this sampler: of a delta, or of all weights if it lacks those that the
 * delta refers to. */
static double weights_for(sim_clock *c, transfer *t) {
  const network_spec *spec = c->spec->network;
  transfer_peer *peer = &c->net.peers[t->sampler];
  ++peer->sent;
  const bool turn = spec->full_every > 0 && peer->sent % spec->full_every == 0;
  t->is_delta = spec->delta_fraction < 1 && !turn && !peer->needs_full;
  t->crashes = c->samplers[t->sampler].crashes;
  peer->needs_full = false;
  *(t->is_delta ? &c->net.deltas : &c->net.fulls) += 1;
  return c->spec->weights_bytes * (t->is_delta ? spec->delta_fraction : 1);
}

/* Samples the packet losses now; all retransmissions are sent with the message. */
static void transfer_plan(sim_clock *c, transfer *t, const transfer_route *route, double bytes) {
  sampler *s = &c->samplers[t->sampler];
  link_state *state = t->cargo == CARGO_BATCH ? &s->up : &s->down;
  state->free_at = 0;
  const link_trip trip =
      link_send(&route->link, state, sampler_losses(c, t->sampler, t->cargo == CARGO_BATCH),
                c->generator, 0, bytes);
  t->bytes = trip.bytes;
  t->wait_s = trip.end_s; /* end time over an unlimited link */
  t->delivered = trip.delivered;
  c->stats.retransmissions += trip.retransmissions;
  *(t->cargo == CARGO_BATCH ? &c->stats.bytes_up : &c->stats.bytes_down) += trip.bytes;
}

/* Chooses the transfer's contents: the newest weights at this time. */
static void transfer_load(sim_clock *c, transfer *t) {
  double bytes = 0;
  t->is_begun = true;
  t->begun_s = c->now;
  if (t->cargo == CARGO_BATCH) {
    bytes = c->buffer.pool[t->slot].facts.bytes;
  } else if (t->cargo == CARGO_SHARD) {
    bytes = c->net.nodes[t->from].bytes;
  } else {
    t->version = c->learner.published;
    version_add_ref(c, t->version);
    bytes = weights_for(c, t);
  }
  transfer_plan(c, t, route_of(c, t), bytes);
}

/* The bytes of a transfer start to flow, or continue after an outage. */
static gl_status transfer_begin(sim_clock *c, uint32_t id, gl_error *err) {
  network *n = &c->net;
  transfer *t = &n->pool[id];
  transfer_port *port = port_of(n, t);
  const transfer_route *route = route_of(c, t);
  if (!t->is_begun) transfer_load(c, t);
  t->since_s = c->now;
  if (port->active++ == 0) port->busy_since_s = c->now;
  if (route->class == FLOW_NONE)
    return transfer_later(c, id, TRANSFER_FLOWS, t->bytes / route->cap, err);
  t->state = TRANSFER_FLOWS;
  flow_advance(&n->flows, c->now);
  if (!flow_join(&n->flows, route->class, t->bytes, id)) return gl_fail_memory(err, "transfers");
  return want_shares(c, err);
}

/* The next queued transfer that no outage blocks; TRANSFER_NONE if there is none or one is flowing.
 */
static uint32_t next_in_line(sim_clock *c, transfer_port *port) {
  while (port->active == 0) {
    const uint32_t id = line_take(&c->net, &port->line);
    if (id == TRANSFER_NONE || !is_cut_off(c, &c->net.pool[id])) return id;
    park(&c->net, id);
  }
  return TRANSFER_NONE;
}

/* After the handshake: starts the transfer, queues it at the learner's side, or parks it if an
 * outage cuts it off. */
static gl_status reaches_port(sim_clock *c, uint32_t id, gl_error *err) {
  transfer *t = &c->net.pool[id];
  transfer_port *port = port_of(&c->net, t);
  if (is_cut_off(c, t)) {
    park(&c->net, id);
    return GL_OK;
  }
  if (port->share == SHARE_FAIR) return transfer_begin(c, id, err);
  if (port->active == 0 && port->line.first == TRANSFER_NONE) return transfer_begin(c, id, err);
  t->state = TRANSFER_QUEUES;
  line_add(&c->net, &port->line, id);
  return GL_OK;
}

/* The transfer has acquired its sampler's link and starts its handshake. */
static gl_status transfer_greet(sim_clock *c, uint32_t id, gl_error *err) {
  const double seconds = route_of(c, &c->net.pool[id])->handshake_s;
  return seconds > 0 ? transfer_later(c, id, TRANSFER_HANDSHAKE, seconds, err)
                     : reaches_port(c, id, err);
}

/* --- requests --- */

gl_status transfer_weights(sim_clock *c, uint32_t i, gl_error *err) {
  transfer_peer *peer = &c->net.peers[i];
  sampler *s = &c->samplers[i];
  if (peer->down != TRANSFER_NONE) {
    /* a transfer that has not begun will carry the newest weights */
    s->resend = c->net.pool[peer->down].is_begun;
    return GL_OK;
  }
  const uint32_t id = take_transfer(c, i);
  if (id == TRANSFER_NONE) return gl_fail_memory(err, "transfers");
  peer->down = id;
  return transfer_greet(c, id, err);
}

gl_status transfer_batch(sim_clock *c, uint32_t i, uint32_t slot, gl_error *err) {
  transfer_peer *peer = &c->net.peers[i];
  const uint32_t id = take_transfer(c, i);
  if (id == TRANSFER_NONE) return gl_fail_memory(err, "transfers");
  c->net.pool[id].cargo = CARGO_BATCH;
  c->net.pool[id].slot = slot;
  if (peer->up != TRANSFER_NONE) {
    line_add(&c->net, &peer->line, id);
    return GL_OK;
  }
  peer->up = id;
  return transfer_greet(c, id, err);
}

static gl_status transfer_shard(sim_clock *c, uint32_t from, uint32_t i, int64_t version,
                                gl_error *err) {
  const uint32_t id = take_transfer(c, i);
  if (id == TRANSFER_NONE) return gl_fail_memory(err, "transfers");
  c->net.pool[id].cargo = CARGO_SHARD;
  c->net.pool[id].from = from;
  c->net.pool[id].version = version;
  return transfer_greet(c, id, err);
}

void transfer_crash(sim_clock *c, uint32_t i) {
  c->net.peers[i].needs_full = true;
}

/* --- the end of a transfer --- */

static void transfer_trace(const sim_clock *c, const transfer *t, span_end end, double to) {
  if (t->cargo == CARGO_SHARD) return; /* shards of a version are reported together */
  const uint64_t batch = t->cargo == CARGO_BATCH ? c->buffer.pool[t->slot].facts.number : 0;
  const bool flows = t->state >= TRANSFER_FLOWS;
  clock_trace(c, (schedule_span){t->cargo == CARGO_BATCH ? SPAN_UPLOAD_WAITS : SPAN_DOWNLOAD_WAITS,
                                 flows ? SPAN_DONE : end, t->sampler, t->asked_s,
                                 flows ? t->begun_s : to, batch, t->version});
  if (flows)
    clock_trace(c, (schedule_span){t->cargo == CARGO_BATCH ? SPAN_UPLOAD : SPAN_DOWNLOAD, end,
                                   t->sampler, t->begun_s, to, batch, t->version});
}

/* Uses a free link for the next batch, or for weights that were published meanwhile. */
static gl_status free_link(sim_clock *c, const transfer *t, gl_error *err) {
  transfer_peer *peer = &c->net.peers[t->sampler];
  sampler *s = &c->samplers[t->sampler];
  if (t->cargo == CARGO_BATCH) {
    peer->up = line_take(&c->net, &peer->line);
    return peer->up == TRANSFER_NONE ? GL_OK : transfer_greet(c, peer->up, err);
  }
  peer->down = TRANSFER_NONE;
  if (!s->resend) return GL_OK;
  s->resend = 0;
  return transfer_weights(c, t->sampler, err);
}

/* The link gave up on weights: pushed ones are sent again, a fetch ends without weights. */
static gl_status loses_weights(sim_clock *c, const transfer *t, bool is_void, gl_error *err) {
  sampler *s = &c->samplers[t->sampler];
  const bool push = c->spec->sync == SYNC_PUSH;
  c->net.peers[t->sampler].needs_full = true;
  version_release(c, t->version);
  if (push) s->resend = 1;
  gl_status status = free_link(c, t, err);
  if (status != GL_OK || push || is_void) return status;
  s->ends_s = c->now;
  return sampler_loaded(c, t->sampler, UINT64_MAX, err);
}

/* Sends a lost shard again, as a new transfer. */
static gl_status sends_again(sim_clock *c, uint32_t id, gl_error *err) {
  const transfer t = c->net.pool[id];
  give_transfer_back(&c->net, id);
  return transfer_shard(c, t.from, t.sampler, t.version, err);
}

/* All bytes have been sent; latency and delay remain. */
static gl_status transfer_is_sent(sim_clock *c, uint32_t id, gl_error *err) {
  const transfer t = c->net.pool[id];
  if (t.cargo == CARGO_SHARD && t.delivered)
    return transfer_later(c, id, TRANSFER_IN_FLIGHT, route_of(c, &t)->latency_s, err);
  if (t.cargo == CARGO_SHARD) return sends_again(c, id, err);
  const bool pull = c->spec->sync == SYNC_PULL;
  /* a fetch invalidated by a crash is requested again when its link is free */
  const bool is_void = t.cargo != CARGO_BATCH && pull && c->samplers[t.sampler].resend;
  double way = route_of(c, &t)->latency_s;
  if (t.cargo == CARGO_BATCH)
    way += sampler_data_delay(c, t.sampler);
  else if (!pull && t.delivered)
    way += sampler_weights_delay(c, t.sampler);
  transfer_trace(c, &t, t.delivered ? SPAN_DONE : SPAN_LOST, c->now + way);
  if (t.delivered)
    tally_add(t.cargo == CARGO_BATCH ? c->net.batches : c->net.weights, c->now + way - t.asked_s);
  if (t.cargo != CARGO_BATCH && (is_void || !t.delivered)) {
    give_transfer_back(&c->net, id);
    return loses_weights(c, &t, is_void, err);
  }
  const gl_status status = transfer_later(c, id, TRANSFER_IN_FLIGHT, way, err);
  return status == GL_OK ? free_link(c, &t, err) : status;
}

static void trace_port(const sim_clock *c, const transfer_port *port, span_kind kind, span_end end,
                       uint32_t who) {
  clock_trace(c, (schedule_span){kind, end, who, port->busy_since_s, c->now, 0, -1});
}

static void leave_port(sim_clock *c, const transfer *t) {
  transfer_port *port = port_of(&c->net, t);
  if (--port->active > 0) return;
  const bool of_relay = t->cargo == CARGO_SHARD && t->from > 0;
  trace_port(c, port,
             t->cargo == CARGO_BATCH ? SPAN_INGRESS
             : of_relay              ? SPAN_RELAY
                                     : SPAN_EGRESS,
             SPAN_DONE, of_relay ? t->from - 1 : 0);
}

/* The bytes of a transfer have been sent: frees the learner's side for the next one. */
static gl_status bytes_end(sim_clock *c, uint32_t id, gl_error *err) {
  const transfer t = c->net.pool[id];
  transfer_port *port = port_of(&c->net, &t);
  gl_status status = GL_OK;
  leave_port(c, &t);
  const uint32_t next = next_in_line(c, port);
  if (next != TRANSFER_NONE) status = transfer_begin(c, next, err);
  if (status != GL_OK) return status;
  return t.wait_s > 0 ? transfer_later(c, id, TRANSFER_RETRANSMITS, t.wait_s, err)
                      : transfer_is_sent(c, id, err);
}

gl_status transfer_flow_ends(sim_clock *c, uint64_t which, gl_error *err) {
  network *n = &c->net;
  if (which >> 32 != n->shares) return GL_OK; /* a flow has joined or left since */
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
  case TRANSFER_IN_FLIGHT:
    return gl_fail(err, GL_EINTERNAL, "a transfer moves while it waits");
  case TRANSFER_HANDSHAKE:
    return reaches_port(c, id, err);
  case TRANSFER_FLOWS:
    return bytes_end(c, id, err);
  case TRANSFER_RETRANSMITS:
    return transfer_is_sent(c, id, err);
  }
  return GL_OK;
}

bool transfer_take_arrived(sim_clock *c, uint64_t which, transfer *out) {
  const uint32_t id = (uint32_t)which;
  *out = c->net.pool[id];
  if (out->serial != which >> 32) return false;
  give_transfer_back(&c->net, id);
  return true;
}

/* --- relays --- */

/* Samplers forward weights in a tree, as shards. A node sends every shard to all of its children as
 * soon as it has received it, one send at a time. It forwards a new version only when all of the
 * previous one has arrived at its children. If the version's first shard arrives after that, the
 * node forwards shard by shard; otherwise it forwards the newest version that it has completely. */

/* The node's children are the nodes *first … *first + n - 1; returns n. */
static size_t children_of(const sim_clock *c, uint32_t node, uint64_t *first) {
  const uint64_t fanout = c->spec->network->fanout, nodes = c->spec->n_samplers + 1;
  *first = fanout * node + 1;
  if (*first >= nodes) return 0;
  return (size_t)(nodes - *first < fanout ? nodes - *first : fanout);
}

/* The node starts to forward this version, as full weights or as a delta. */
static void begin_version(sim_clock *c, uint32_t node, int64_t version, double since) {
  const network_spec *spec = c->spec->network;
  relay_node *x = &c->net.nodes[node];
  ++x->sent;
  const bool turn = spec->full_every > 0 && x->sent % spec->full_every == 0;
  const bool is_delta = spec->delta_fraction < 1 && !turn;
  x->passed = version;
  x->passed_s = since;
  x->bytes = c->spec->weights_bytes * (is_delta ? spec->delta_fraction : 1) / (double)spec->shards;
  x->is_held = true;
  version_add_ref(c, version);
  uint64_t first;
  *(is_delta ? &c->net.deltas : &c->net.fulls) += (double)children_of(c, node, &first);
}

static gl_status pass_shard(sim_clock *c, uint32_t node, gl_error *err) {
  uint64_t first;
  const size_t n = children_of(c, node, &first);
  gl_status status = GL_OK;
  c->net.nodes[node].open += (uint32_t)n;
  for (size_t k = 0; k < n && status == GL_OK; ++k)
    status = transfer_shard(c, node, (uint32_t)(first + k - 1), c->net.nodes[node].passed, err);
  return status;
}

/* When all shards it sent have arrived, forwards the newest version that it has completely. */
static gl_status pass_on(sim_clock *c, uint32_t node, gl_error *err) {
  relay_node *x = &c->net.nodes[node];
  uint64_t first;
  if (x->open > 0) return GL_OK;
  if (x->is_held && x->have >= x->passed) {
    x->is_held = false;
    version_release(c, x->passed);
  }
  if (x->have <= x->passed || children_of(c, node, &first) == 0) return GL_OK;
  begin_version(c, node, x->have, x->have_s);
  gl_status status = GL_OK;
  for (size_t k = 0; k < c->spec->network->shards && status == GL_OK; ++k)
    status = pass_shard(c, node, err);
  return status;
}

gl_status relay_publish(sim_clock *c, gl_error *err) {
  c->net.nodes[0].have = c->learner.published;
  c->net.nodes[0].have_s = c->now;
  return pass_on(c, 0, err);
}

/* The last shard has arrived: the sampler gets the version after its delay. */
static gl_status completes(sim_clock *c, uint32_t i, int64_t version, double since, gl_error *err) {
  relay_node *x = &c->net.nodes[i + 1];
  version_add_ref(c, version);
  if (x->have > 0) version_release(c, x->have);
  x->got = 0;
  x->have = version;
  x->have_s = since;
  const double arrival = c->now + sampler_weights_delay(c, i);
  tally_add(c->net.weights, arrival - since);
  clock_trace(c, (schedule_span){SPAN_DOWNLOAD_WAITS, SPAN_DONE, i, since, x->first_s, 0, version});
  clock_trace(c, (schedule_span){SPAN_DOWNLOAD, SPAN_DONE, i, x->first_s, arrival, 0, version});
  version_add_ref(c, version);
  return clock_post(c, arrival, WEIGHTS_ARRIVE, i, (uint64_t)version, err);
}

gl_status relay_shard_arrives(sim_clock *c, const transfer *shard, gl_error *err) {
  const uint32_t from = shard->from, i = shard->sampler, node = i + 1;
  const int64_t version = shard->version;
  relay_node *x = &c->net.nodes[node];
  const double since = c->net.nodes[from].passed_s;
  uint64_t first;
  gl_status status = GL_OK;
  if (x->got++ == 0) {
    x->first_s = shard->begun_s;
    if (x->open == 0 && children_of(c, node, &first) > 0) begin_version(c, node, version, since);
  }
  if (x->passed == version) status = pass_shard(c, node, err);
  if (status == GL_OK && x->got == c->spec->network->shards) {
    status = completes(c, i, version, since, err);
    if (status == GL_OK) status = pass_on(c, node, err);
  }
  if (status != GL_OK || --c->net.nodes[from].open > 0) return status;
  return pass_on(c, from, err);
}

/* --- outages --- */

static gl_status next_begins(sim_clock *c, transfer_port *port, gl_error *err) {
  const uint32_t next = next_in_line(c, port);
  return next != TRANSFER_NONE ? transfer_begin(c, next, err) : GL_OK;
}

/* Stops a flowing transfer with `left` bytes to send. */
static gl_status transfer_stop(sim_clock *c, uint32_t id, double left, gl_error *err) {
  network *n = &c->net;
  transfer *t = &n->pool[id];
  const transfer gone = *t;
  leave_port(c, t);
  ++n->interrupted;
  if (!c->spec->network->interrupted_is_lost) {
    t->bytes = left;
    park(n, id);
    return gone.cargo == CARGO_SHARD ? next_begins(c, port_of(n, &gone), err) : GL_OK;
  }
  *(t->cargo == CARGO_BATCH ? &c->stats.bytes_up : &c->stats.bytes_down) -= left;
  transfer_trace(c, t, SPAN_LOST, c->now);
  if (gone.cargo == CARGO_SHARD) {
    const gl_status status = sends_again(c, id, err);
    return status == GL_OK ? next_begins(c, port_of(n, &gone), err) : status;
  }
  give_transfer_back(n, id);
  if (gone.cargo != CARGO_BATCH)
    return loses_weights(c, &gone, c->spec->sync == SYNC_PULL && c->samplers[gone.sampler].resend,
                         err);
  ledger_discard(c, gone.slot, FATE_LOST);
  return free_link(c, &gone, err);
}

/* Stops flows of shared resources whose classes connect sites that are cut off. */
static gl_status stop_flows(sim_clock *c, gl_error *err) {
  network *n = &c->net;
  const uint32_t sites = (uint32_t)c->spec->network->n_sites;
  uint64_t id;
  double left;
  for (uint32_t k = 0; k < n->flows.n_classes; ++k) {
    const uint32_t label = n->flows.classes[k].label;
    while (is_cut(n, label / sites, label % sites) && flow_take(&n->flows, k, &id, &left)) {
      const gl_status status = transfer_stop(c, (uint32_t)id, left, err);
      if (status != GL_OK) return status;
    }
  }
  return GL_OK;
}

/* Stops transfers that use no shared resource. */
static gl_status stop_others(sim_clock *c, gl_error *err) {
  network *n = &c->net;
  for (uint32_t id = 0; id < n->n; ++id) {
    transfer *t = &n->pool[id];
    if (t->state != TRANSFER_FLOWS || !is_cut_off(c, t)) continue;
    const transfer_route *route = route_of(c, t);
    const double left = fmax(0, t->bytes - route->cap * (c->now - t->since_s));
    ++t->serial; /* cancels the posted end */
    const gl_status status = transfer_stop(c, id, route->cap < INFINITY ? left : t->bytes, err);
    if (status != GL_OK) return status;
  }
  return GL_OK;
}

gl_status transfer_cut(sim_clock *c, gl_error *err) {
  network *n = &c->net;
  flow_advance(&n->flows, c->now);
  ++n->shares; /* cancels the posted end, which may belong to a stopped flow */
  gl_status status = stop_flows(c, err);
  if (status == GL_OK) status = stop_others(c, err);
  if (status == GL_OK) status = next_begins(c, &n->egress, err);
  if (status == GL_OK) status = next_begins(c, &n->ingress, err);
  return status == GL_OK ? want_shares(c, err) : status;
}

gl_status transfer_resume(sim_clock *c, gl_error *err) {
  network *n = &c->net;
  transfer_line line = n->parked;
  gl_status status = GL_OK;
  n->parked = (transfer_line){TRANSFER_NONE, TRANSFER_NONE};
  while (status == GL_OK) {
    const uint32_t id = line_take(n, &line);
    if (id == TRANSFER_NONE) break;
    status = reaches_port(c, id, err);
  }
  return status;
}

/* --- routes of a network --- */

static double joint_loss(double a, double b) {
  return 1 - (1 - a) * (1 - b);
}

/* Adds latency and loss between two sites, in one direction. */
static void cross(const network_spec *spec, transfer_route *out) {
  if (spec->n_sites == 0) return;
  const network_site *from = &spec->sites[out->from];
  const double back = spec->sites[out->to].latency[out->from];
  out->latency_s = from->latency[out->to];
  if (spec->rtt <= 0) out->handshake_s = spec->round_trips * (out->latency_s + back);
  if (from->loss[out->to] <= 0) return;
  out->link.loss = joint_loss(out->link.loss, from->loss[out->to]);
  out->link.loss_bad = joint_loss(out->link.loss_bad, from->loss[out->to]);
}

/* Creates the class of flows through a port and the resource shared by two sites, with the
 * sampler's link bandwidth as cap. */
static bool open_route(network *n, const network_spec *spec, const transfer_port *port,
                       const link_spec *link, transfer_route *out) {
  uint32_t via[FLOW_MOST_VIA];
  size_t n_via = 0;
  const uint32_t sites = (uint32_t)spec->n_sites;
  const uint32_t pipe =
      n->pipes != NULL ? n->pipes[out->from * sites + out->to] : (uint32_t)FLOW_NONE;
  out->link = *link;
  out->link.bandwidth = INFINITY;
  out->cap = link->bandwidth;
  out->class = FLOW_NONE;
  out->handshake_s = spec->round_trips * spec->rtt;
  cross(spec, out);
  if (port->resource != FLOW_NONE) via[n_via++] = port->resource;
  if (pipe != FLOW_NONE) via[n_via++] = pipe;
  if (n_via == 0) return true;
  out->class = flow_class_of(&n->flows, via, n_via, out->cap, out->from * sites + out->to);
  return out->class != FLOW_NONE;
}

/* Creates a resource for each pair of sites with limited bandwidth. */
static bool open_sites(network *n, const network_spec *spec) {
  const size_t sites = spec->n_sites;
  n->parked = (transfer_line){TRANSFER_NONE, TRANSFER_NONE};
  for (size_t i = 0; i < sites * sites; ++i) {
    const double bandwidth = spec->sites[i / sites].bandwidth[i % sites];
    n->pipes[i] = isfinite(bandwidth) ? flow_resource_add(&n->flows, bandwidth) : FLOW_NONE;
    if (isfinite(bandwidth) && n->pipes[i] == FLOW_NONE) return false;
  }
  return true;
}

/* Creates routes between all groups, and from the learner. A forwarding sampler has the bandwidth
 * of its relay. */
static bool open_hops(network *n, const cluster_spec *c) {
  const size_t groups = c->n_groups;
  bool fits = true;
  for (size_t i = 0; i < (groups + 1) * groups && fits; ++i) {
    const sampler_group *from = i / groups < groups ? &c->groups[i / groups] : NULL;
    const sampler_group *to = &c->groups[i % groups];
    const double own = from == NULL                      ? INFINITY
                       : c->network->relay_bandwidth > 0 ? c->network->relay_bandwidth
                                                         : from->up.bandwidth;
    const transfer_port free_port = {.resource = FLOW_NONE};
    link_spec link = to->down;
    link.bandwidth = fmin(link.bandwidth, own);
    n->hops[i].from = from != NULL ? (uint32_t)from->site : 0;
    n->hops[i].to = (uint32_t)to->site;
    fits = open_route(n, c->network, from == NULL ? &n->egress : &free_port, &link, &n->hops[i]);
  }
  return fits;
}

static bool open_port(network *n, const network_port *spec, transfer_port *out) {
  *out = (transfer_port){
      .share = spec->share, .resource = FLOW_NONE, .line = {TRANSFER_NONE, TRANSFER_NONE}};
  if (!isfinite(spec->bandwidth)) return true;
  out->resource = flow_resource_add(&n->flows, spec->bandwidth);
  return out->resource != FLOW_NONE;
}

static bool open_routes(sim_clock *c) {
  network *n = &c->net;
  const network_spec *spec = c->spec->network;
  bool fits = open_port(n, &spec->egress, &n->egress) &&
              open_port(n, &spec->ingress, &n->ingress) && open_sites(n, spec);
  for (size_t g = 0; g < c->spec->n_groups && fits; ++g) {
    const sampler_group *group = &c->spec->groups[g];
    n->up[g].from = n->down[g].to = (uint32_t)group->site;
    fits = open_route(n, spec, &n->ingress, &group->up, &n->up[g]) &&
           open_route(n, spec, &n->egress, &group->down, &n->down[g]);
  }
  return fits && (n->hops == NULL || open_hops(n, c->spec));
}

gl_status transfer_init(sim_clock *c, gl_error *err) {
  const transfer_line none = {TRANSFER_NONE, TRANSFER_NONE};
  network *n = &c->net;
  const network_spec *spec = c->spec->network;
  const size_t samplers = c->spec->n_samplers, groups = c->spec->n_groups;
  n->free = TRANSFER_NONE;
  flow_init(&n->flows);
  if (spec == NULL) return arena_check(&c->memory, "the schedule", err);
  n->peers = ARENA_ARRAY(&c->memory, transfer_peer, samplers);
  n->up = ARENA_ARRAY(&c->memory, transfer_route, groups);
  n->down = ARENA_ARRAY(&c->memory, transfer_route, groups);
  n->weights = ARENA_ARRAY(&c->memory, tally, 1);
  n->batches = ARENA_ARRAY(&c->memory, tally, 1);
  if (spec->n_sites > 0) {
    n->sites = ARENA_ARRAY(&c->memory, transfer_site, spec->n_sites);
    n->pipes = ARENA_GRID(&c->memory, uint32_t, spec->n_sites, spec->n_sites);
  }
  if (spec->fanout > 0) {
    n->hops = ARENA_GRID(&c->memory, transfer_route, groups + 1, groups);
    n->nodes = ARENA_ARRAY(&c->memory, relay_node, samplers + 1);
  }
  const gl_status status = arena_check(&c->memory, "the schedule", err);
  if (status != GL_OK) return status;
  for (size_t i = 0; i < samplers; ++i)
    n->peers[i] = (transfer_peer){.up = TRANSFER_NONE, .down = TRANSFER_NONE, .line = none};
  for (size_t i = 0; n->nodes != NULL && i <= samplers; ++i)
    n->nodes[i].port = (transfer_port){.share = SHARE_QUEUE, .resource = FLOW_NONE, .line = none};
  return open_routes(c) ? GL_OK : gl_fail_memory(err, "the schedule");
}

void transfer_fini(sim_clock *c) {
  free(c->net.pool);
  flow_fini(&c->net.flows);
}

void transfer_trace_open(const sim_clock *c) {
  for (uint32_t i = 0; i < c->net.n; ++i) {
    const transfer *t = &c->net.pool[i];
    if (t->state != TRANSFER_FREE && t->state != TRANSFER_IN_FLIGHT)
      transfer_trace(c, t, SPAN_OPEN, c->now);
  }
  if (c->net.peers == NULL) return;
  if (c->net.egress.active > 0) trace_port(c, &c->net.egress, SPAN_EGRESS, SPAN_OPEN, 0);
  if (c->net.ingress.active > 0) trace_port(c, &c->net.ingress, SPAN_INGRESS, SPAN_OPEN, 0);
  for (uint32_t x = 0; c->net.nodes != NULL && x <= c->spec->n_samplers; ++x)
    if (c->net.nodes[x].port.active > 0)
      trace_port(c, &c->net.nodes[x].port, x > 0 ? SPAN_RELAY : SPAN_EGRESS, SPAN_OPEN,
                 x > 0 ? x - 1 : 0);
  for (uint32_t i = 0; c->net.sites != NULL && i < c->spec->network->n_sites; ++i)
    if (c->net.sites[i].outages > 0)
      clock_trace(
          c, (schedule_span){SPAN_OUTAGE, SPAN_OPEN, i, c->net.sites[i].since_s, c->now, 0, -1});
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
  for (size_t i = 0; n->sites != NULL && i < c->spec->network->n_sites; ++i)
    if (n->sites[i].outages > 0) n->outage_s += c->now - n->sites[i].since_s;
  c->out->network = (network_report){.is_on = true,
                                     .egress_utilisation = utilisation_of(c, &n->egress),
                                     .ingress_utilisation = utilisation_of(c, &n->ingress),
                                     .weights = times_of(n->weights),
                                     .batches = times_of(n->batches),
                                     .sites = (double)c->spec->network->n_sites,
                                     .outage_s = n->outage_s,
                                     .interrupted = n->interrupted,
                                     .fulls = n->fulls,
                                     .deltas = n->deltas};
}
