/* Reading the section cluster.network of a recipe. */
#include "sim/network_spec.h"

#include <math.h>
#include <stdlib.h>

static const char *const share_names[] = {"fair", "queue"};

static void read_port(network_port *out, cfg_reader *outer, const char *key, const char *section) {
  cfg_reader r;
  const cfg_node *node = cfg_child(outer, key);
  *out = (network_port){INFINITY, SHARE_FAIR};
  if (outer->status != GL_OK) return;
  cfg_begin(&r, node, section, outer->err);
  out->bandwidth = cfg_positive(&r, "bandwidth", INFINITY);
  out->share = (share_rule)cfg_choice(&r, "share", SHARE_FAIR, share_names, 2);
  outer->status = cfg_end(&r);
}

static void read_handshake(network_spec *out, cfg_reader *outer) {
  cfg_reader r;
  const cfg_node *node = cfg_child(outer, "handshake");
  if (outer->status != GL_OK) return;
  cfg_begin(&r, node, "cluster.network.handshake", outer->err);
  out->round_trips = (double)cfg_count(&r, "round_trips", 0, 0, 1000);
  out->rtt = cfg_double(&r, "rtt", 0, 0, 1e6);
  if (r.status == GL_OK && out->round_trips > 0 && !(out->rtt > 0))
    r.status = cfg_fail(node, outer->err,
                        "%g round trips of a handshake take no time without rtt; give the seconds "
                        "of one, handshake: {round_trips: %g, rtt: 0.1}, or leave handshake out",
                        out->round_trips, out->round_trips);
  outer->status = cfg_end(&r);
}

static void read_delta(network_spec *out, cfg_reader *outer) {
  cfg_reader r;
  const cfg_node *node = cfg_child(outer, "delta");
  if (outer->status != GL_OK) return;
  cfg_begin(&r, node, "cluster.network.delta", outer->err);
  out->delta_share = cfg_double(&r, "share", 1, 0, 1);
  out->full_every = cfg_int(&r, "full_every", 0, 0, INT64_MAX);
  if (r.status == GL_OK && cfg_has(&r, "full_every") && !cfg_has(&r, "share"))
    r.status = cfg_fail(cfg_child(&r, "full_every"), outer->err,
                        "full_every is about deltas, and without their share of the weights' "
                        "bytes all transfers are full; give delta: {share: 0.05, full_every: 10}, "
                        "or leave full_every out");
  outer->status = cfg_end(&r);
}

/* Whether the section says nothing but what holds without it. */
static int changes_nothing(const network_spec *s) {
  const int shared = isfinite(s->egress.bandwidth) || s->egress.share == SHARE_QUEUE ||
                     isfinite(s->ingress.bandwidth) || s->ingress.share == SHARE_QUEUE;
  return !shared && s->round_trips <= 0 && s->delta_share >= 1;
}

static gl_status read_section(network_spec *s, const cfg_node *node, gl_error *err) {
  cfg_reader r;
  cfg_begin(&r, node, "cluster.network", err);
  read_port(&s->egress, &r, "egress", "cluster.network.egress");
  read_port(&s->ingress, &r, "ingress", "cluster.network.ingress");
  read_handshake(s, &r);
  read_delta(s, &r);
  return cfg_end(&r);
}

gl_status network_parse(network_spec **out, const cfg_node *node, gl_error *err) {
  *out = NULL;
  network_spec *s = calloc(1, sizeof *s);
  if (s == NULL) return gl_fail_memory(err, "a network");
  s->delta_share = 1;
  const gl_status status = read_section(s, node, err);
  if (status == GL_OK && !changes_nothing(s))
    *out = s;
  else
    network_free(s);
  return status;
}

void network_free(network_spec *spec) {
  free(spec);
}
