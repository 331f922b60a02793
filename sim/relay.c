/* Weights that samplers hand on to each other, in a tree: store and forward of shards, pipelined. A
 * node sends every shard on to all of its children as soon as it has it, one send at a time. A new
 * version is sent on when all of the one before has arrived at the children: at once, shard by
 * shard, if it comes then, or as a whole, the newest that there is. */
#include "sim/clock.h"

#include <stdlib.h>

int relay_init(sim_clock *c) {
  const size_t n = c->spec->n_samplers + 1;
  c->net.nodes = calloc(n, sizeof *c->net.nodes);
  for (size_t i = 0; c->net.nodes != NULL && i < n; ++i)
    c->net.nodes[i].port = (transfer_port){
        .share = SHARE_QUEUE, .resource = FLOW_NONE, .line = {TRANSFER_NONE, TRANSFER_NONE}};
  return c->net.nodes != NULL;
}

/* Its children are the nodes first … first + n - 1. */
static size_t children_of(const sim_clock *c, uint32_t node, uint64_t *first) {
  const uint64_t fanout = c->spec->network->fanout, nodes = c->spec->n_samplers + 1;
  *first = fanout * node + 1;
  if (*first >= nodes) return 0;
  return (size_t)(nodes - *first < fanout ? nodes - *first : fanout);
}

static void begin_version(sim_clock *c, uint32_t node, int64_t version, double since) {
  const network_spec *spec = c->spec->network;
  relay_node *x = &c->net.nodes[node];
  ++x->sent;
  const int turn = spec->full_every > 0 && x->sent % spec->full_every == 0;
  const int is_delta = spec->delta_share < 1 && !turn;
  x->passed = version;
  x->passed_s = since;
  x->bytes = c->spec->weights_bytes * (is_delta ? spec->delta_share : 1) / (double)spec->shards;
  x->is_held = 1;
  coupling_take(c, version);
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

/* Where all that it sent on has arrived: sends on the newest version that it has as a whole. */
static gl_status pass_on(sim_clock *c, uint32_t node, gl_error *err) {
  relay_node *x = &c->net.nodes[node];
  uint64_t first;
  if (x->open > 0) return GL_OK;
  if (x->is_held && x->have >= x->passed) {
    x->is_held = 0;
    coupling_leave(c, x->passed);
  }
  if (x->have <= x->passed || children_of(c, node, &first) == 0) return GL_OK;
  begin_version(c, node, x->have, x->have_s);
  gl_status status = GL_OK;
  for (size_t k = 0; k < c->spec->network->shards && status == GL_OK; ++k)
    status = pass_shard(c, node, err);
  return status;
}

gl_status relay_publish(sim_clock *c, gl_error *err) {
  c->net.nodes[0].have = c->published;
  c->net.nodes[0].have_s = c->now;
  return pass_on(c, 0, err);
}

/* The last shard is here: the sampler has the version after its delay. */
static gl_status completes(sim_clock *c, uint32_t i, int64_t version, double since, gl_error *err) {
  relay_node *x = &c->net.nodes[i + 1];
  coupling_take(c, version);
  if (x->have > 0) coupling_leave(c, x->have);
  x->got = 0;
  x->have = version;
  x->have_s = since;
  const double arrival = c->now + sampler_weights_delay(c, i);
  tally_add(c->net.weights, arrival - since);
  clock_tell(c, SPAN_DOWNLOAD_WAITS, SPAN_DONE, i, since, x->first_s, 0, version);
  clock_tell(c, SPAN_DOWNLOAD, SPAN_DONE, i, x->first_s, arrival, 0, version);
  coupling_take(c, version);
  return clock_post(c, arrival, RANK_ARRIVAL, WEIGHTS_ARRIVE, i, (uint64_t)version, err);
}

gl_status relay_shard_arrives(sim_clock *c, uint32_t from, uint32_t i, int64_t version,
                              double begun_s, gl_error *err) {
  const uint32_t node = i + 1;
  relay_node *x = &c->net.nodes[node];
  const double since = c->net.nodes[from].passed_s;
  uint64_t first;
  gl_status status = GL_OK;
  if (x->got++ == 0) {
    x->first_s = begun_s;
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
