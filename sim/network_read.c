/* Reading the section cluster.network of a recipe. */
#include "sim/network_spec.h"

#include "core/config/fields.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SITES = 64 };

static void read_port(network_port *out, cfg_reader *outer, const char *key, const char *section) {
  cfg_reader r;
  const cfg_node *node = cfg_child(outer, key);
  *out = (network_port){INFINITY, SHARE_FAIR};
  if (outer->status != GL_OK) return;
  cfg_begin(&r, node, section, outer->err);
  out->bandwidth = field_real(&r, "bandwidth");
  out->share = (share_rule)field_choice(&r, "share");
  outer->status = cfg_end(&r);
}

static void read_handshake(network_spec *out, cfg_reader *outer) {
  cfg_reader r;
  const cfg_node *node = cfg_child(outer, "handshake");
  if (outer->status != GL_OK) return;
  cfg_begin(&r, node, "cluster.network.handshake", outer->err);
  out->round_trips = (double)field_count(&r, "round_trips");
  out->rtt = field_real(&r, "rtt");
  if (r.status == GL_OK && out->round_trips > 0 && !(out->rtt > 0) && out->n_sites == 0)
    r.status = cfg_fail(node, outer->err,
                        "%g round trips of a handshake take no time without rtt; give the seconds "
                        "of one, handshake: {round_trips: %g, rtt: 0.1}, or leave handshake out",
                        out->round_trips, out->round_trips);
  outer->status = cfg_end(&r);
}

static void read_relay(network_spec *out, cfg_reader *outer) {
  cfg_reader r;
  const cfg_node *node = cfg_child(outer, "relay");
  if (outer->status != GL_OK) return;
  cfg_begin(&r, node, "cluster.network.relay", outer->err);
  const int is_tree = field_choice(&r, "kind");
  out->fanout = field_count(&r, "fanout");
  out->shards = field_count(&r, "shards");
  out->relay_bandwidth = cfg_has(&r, "bandwidth") ? field_real_or(&r, "bandwidth", 1) : 0;
  if (r.status == GL_OK && !is_tree &&
      (cfg_has(&r, "fanout") || cfg_has(&r, "shards") || cfg_has(&r, "bandwidth")))
    r.status =
        cfg_fail(node, outer->err,
                 "fanout, shards and bandwidth are those of a tree of relays, and kind: none "
                 "has none; give relay: {kind: tree, fanout: 2, shards: 8}, or leave relay out");
  const cfg_node *egress = is_tree ? cfg_find(outer->map, "egress.share") : NULL;
  if (r.status == GL_OK && egress != NULL && out->egress.share == SHARE_FAIR)
    r.status = cfg_fail(egress, outer->err,
                        "in a tree of relays everybody sends one shard at a time, the learner too; "
                        "give egress: {share: queue}, or leave share out");
  if (!is_tree) out->fanout = 0;
  outer->status = cfg_end(&r);
}

static void read_delta(network_spec *out, cfg_reader *outer) {
  cfg_reader r;
  const cfg_node *node = cfg_child(outer, "delta");
  if (outer->status != GL_OK) return;
  cfg_begin(&r, node, "cluster.network.delta", outer->err);
  out->delta_share = field_real(&r, "share");
  out->full_every = field_whole(&r, "full_every");
  if (r.status == GL_OK && cfg_has(&r, "full_every") && !cfg_has(&r, "share"))
    r.status = cfg_fail(cfg_child(&r, "full_every"), outer->err,
                        "full_every is about deltas, and without their share of the weights' "
                        "bytes all transfers are full; give delta: {share: 0.05, full_every: 10}, "
                        "or leave full_every out");
  outer->status = cfg_end(&r);
}

/* --- sites --- */

/* What a row of a matrix may hold. */
typedef struct row_rule {
  const char *key;
  double fallback, least, most; /* fallback: where nothing is said, and for `none` */
} row_rule;

static gl_status read_cell(double *out, const cfg_node *node, const row_rule *rule, gl_error *err) {
  if (cfg_is_null(node) || strcmp(cfg_text(node), "none") == 0) return GL_OK;
  if (cfg_number(node, out) && *out >= rule->least && *out <= rule->most) return GL_OK;
  return cfg_fail(node, err, "%s between two sites is a number from %g to %g or none, not '%s'",
                  rule->key, rule->least, rule->most, cfg_text(node));
}

/* A number for all other sites, or one for each of the n sites in their order. */
static gl_status read_row(double **out, cfg_reader *r, const row_rule *rule, size_t own, size_t n,
                          gl_error *err) {
  const cfg_node *node = cfg_child(r, rule->key);
  double *row = calloc(n, sizeof *row);
  *out = row;
  if (row == NULL) return gl_fail_memory(err, "sites");
  for (size_t i = 0; i < n; ++i) row[i] = rule->fallback;
  if (node == NULL || r->status != GL_OK) return r->status;
  const int is_list = cfg_kind_of(node) == CFG_LIST;
  if (is_list && cfg_size(node) != n)
    return cfg_fail(node, err,
                    "%s has %zu values, and there are %zu sites; give one for each of them, in "
                    "their order, or one number for all others",
                    rule->key, cfg_size(node), n);
  gl_status status = GL_OK;
  for (size_t i = 0; i < n && status == GL_OK; ++i)
    if (is_list || i != own)
      status = read_cell(&row[i], is_list ? cfg_at(node, i) : node, rule, err);
  return status;
}

static gl_status read_outages(network_site *out, cfg_reader *r, gl_error *err) {
  const cfg_node *node = cfg_child(r, "outages");
  if (r->status != GL_OK || node == NULL || cfg_is_null(node)) return r->status;
  const size_t n = cfg_size(node);
  if (cfg_kind_of(node) != CFG_LIST)
    return cfg_fail(node, err, "outages is a list of pairs of seconds, as in [[3600, 7200]]");
  out->outages = calloc(n + 1, sizeof *out->outages);
  if (out->outages == NULL) return gl_fail_memory(err, "outages");
  for (; out->n_outages < n; ++out->n_outages) {
    const cfg_node *pair = cfg_at(node, out->n_outages);
    site_outage *o = &out->outages[out->n_outages];
    const int is_pair = cfg_kind_of(pair) == CFG_LIST && cfg_size(pair) == 2 &&
                        cfg_number(cfg_at(pair, 0), &o->from_s) &&
                        cfg_number(cfg_at(pair, 1), &o->to_s);
    if (!is_pair || !(o->from_s >= 0) || !(o->to_s > o->from_s) || !isfinite(o->to_s))
      return cfg_fail(pair, err,
                      "an outage is a pair of seconds, [from, to], the first at least 0 and the "
                      "second later");
  }
  return GL_OK;
}

static gl_status read_site_dist(delay_dist **out, cfg_reader *r, const char *key, double fallback,
                                gl_error *err) {
  const cfg_node *node = cfg_child(r, key);
  if (r->status != GL_OK) return r->status;
  if (node != NULL) return delay_parse(out, node, key, NAN, err);
  *out = delay_constant(fallback);
  return *out != NULL ? GL_OK : gl_fail_memory(err, "a law");
}

static gl_status read_site(network_site *out, const cfg_node *node, size_t own, size_t n,
                           gl_error *err) {
  const row_rule latency = {"latency", 0, 0, 1e6}, bandwidth = {"bandwidth", INFINITY, 1e-3, 1e18},
                 loss = {"loss", 0, 0, 1};
  cfg_reader r;
  cfg_begin(&r, node, "cluster.network.sites", err);
  const char *name = field_text(&r, "name");
  if (r.status == GL_OK && (name == NULL || *name == '\0'))
    r.status = cfg_fail(node, err,
                        "a site needs a name, by which groups of samplers say where "
                        "they are: {name: paris, latency: 0.04}");
  if (r.status == GL_OK && (out->name = strdup(name)) == NULL)
    r.status = gl_fail_memory(err, "sites");
  if (r.status == GL_OK) r.status = read_row(&out->latency, &r, &latency, own, n, err);
  if (r.status == GL_OK) r.status = read_row(&out->bandwidth, &r, &bandwidth, own, n, err);
  if (r.status == GL_OK) r.status = read_row(&out->loss, &r, &loss, own, n, err);
  if (r.status == GL_OK) r.status = read_outages(out, &r, err);
  if (r.status == GL_OK) r.status = read_site_dist(&out->mtbf, &r, "mtbf", 0, err);
  if (r.status == GL_OK) r.status = read_site_dist(&out->mttr, &r, "mttr", 600, err);
  return cfg_end(&r);
}

static void read_sites(network_spec *s, cfg_reader *r) {
  const cfg_node *node = cfg_child(r, "sites");
  if (r->status != GL_OK || node == NULL || cfg_is_null(node)) return;
  const size_t n = cfg_kind_of(node) == CFG_LIST ? cfg_size(node) : 0;
  if (n == 0 || n > MOST_SITES) {
    r->status =
        cfg_fail(node, r->err, "sites is a list of 1 to %d sites, the learner's first", MOST_SITES);
    return;
  }
  s->sites = calloc(n, sizeof *s->sites);
  if (s->sites == NULL) r->status = gl_fail_memory(r->err, "sites");
  while (r->status == GL_OK && s->n_sites < n) {
    const cfg_node *at = cfg_at(node, s->n_sites);
    network_site *site = &s->sites[s->n_sites];
    r->status = read_site(site, at, s->n_sites++, n, r->err);
    for (size_t i = 0; r->status == GL_OK && i + 1 < s->n_sites; ++i)
      if (strcmp(s->sites[i].name, site->name) == 0)
        r->status = cfg_fail(at, r->err, "there are two sites called '%s'", site->name);
  }
}

gl_status network_site_of(const network_spec *spec, const cfg_node *node, size_t *site,
                          gl_error *err) {
  const char *names[MOST_SITES];
  char hint[CFG_HINT_SIZE];
  const size_t n = spec != NULL ? spec->n_sites : 0;
  *site = 0;
  if (node == NULL || cfg_is_null(node)) return GL_OK;
  for (size_t i = 0; i < n; ++i) {
    names[i] = spec->sites[i].name;
    if (strcmp(names[i], cfg_text(node)) != 0) continue;
    *site = i;
    return GL_OK;
  }
  if (n == 0)
    return cfg_fail(node, err, "there are no sites; say where they are in cluster.network.sites");
  return cfg_fail(node, err, "'%s' is none of cluster.network.sites%s", cfg_text(node),
                  cfg_hint(cfg_text(node), names, n, hint));
}

/* --- the whole --- */

/* Whether the section says nothing but what holds without it. */
static int changes_nothing(const network_spec *s) {
  const int shared = isfinite(s->egress.bandwidth) || s->egress.share == SHARE_QUEUE ||
                     isfinite(s->ingress.bandwidth) || s->ingress.share == SHARE_QUEUE;
  return !shared && s->n_sites == 0 && s->fanout == 0 && s->round_trips <= 0 && s->delta_share >= 1;
}

static gl_status read_section(network_spec *s, const cfg_node *node, gl_error *err) {
  cfg_reader r;
  cfg_begin(&r, node, "cluster.network", err);
  read_port(&s->egress, &r, "egress", "cluster.network.egress");
  read_port(&s->ingress, &r, "ingress", "cluster.network.ingress");
  read_sites(s, &r);
  s->interrupted_is_lost = field_choice(&r, "interrupted");
  read_handshake(s, &r);
  read_delta(s, &r);
  read_relay(s, &r);
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
  for (size_t i = 0; spec != NULL && i < spec->n_sites; ++i) {
    network_site *s = &spec->sites[i];
    free(s->name);
    free(s->latency);
    free(s->bandwidth);
    free(s->loss);
    free(s->outages);
    delay_free(s->mtbf);
    delay_free(s->mttr);
  }
  if (spec != NULL) free(spec->sites);
  free(spec);
}
