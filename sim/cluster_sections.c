/* Reads the sections `network`, `restarts`, `decoding`, `sources`, `grader`, `environment`,
 * `colocated` and `compare` of a cluster. */
#include "core/base/records.h"
#include "core/config/fields.h"
#include "sim/cluster_spec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- cluster.network --- */

enum { MOST_SITES = 64 };
#define SITES_FORM "[{name: paris}, {name: tokyo, latency: 0.1}]"

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
  const bool is_tree = field_choice(&r, "kind");
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
  out->delta_fraction = field_real(&r, "share");
  out->full_every = field_integer(&r, "full_every");
  if (r.status == GL_OK && cfg_has(&r, "full_every") && !cfg_has(&r, "share"))
    r.status = cfg_fail(cfg_child(&r, "full_every"), outer->err,
                        "full_every is about deltas, and without their fraction of the weights' "
                        "bytes all transfers are full; give delta: {share: 0.05, full_every: 10}, "
                        "or leave full_every out");
  outer->status = cfg_end(&r);
}

/* --- sites --- */

/* Bounds of a row of a matrix between sites. */
typedef struct row_rule {
  const char *key;
  double fallback, least, most; /* fallback: for missing values and `none` */
} row_rule;

static gl_status read_site_value(double *out, const cfg_node *node, const row_rule *rule,
                                 gl_error *err) {
  if (cfg_is_null(node) || strcmp(cfg_text(node), "none") == 0) return GL_OK;
  if (cfg_number(node, out) && *out >= rule->least && *out <= rule->most) return GL_OK;
  return cfg_fail(node, err, "%s between two sites is a number from %g to %g or none, not '%s'",
                  rule->key, rule->least, rule->most, cfg_text(node));
}

/* Reads row[n]: one number for all other sites, or one for each of the n sites in order. */
static void read_site_row(double *row, cfg_reader *r, const row_rule *rule, size_t own, size_t n) {
  const cfg_node *node = cfg_child(r, rule->key);
  for (size_t i = 0; i < n; ++i) row[i] = rule->fallback;
  if (node == NULL || r->status != GL_OK) return;
  const bool is_list = cfg_kind_of(node) == CFG_LIST;
  if (is_list && cfg_size(node) != n)
    r->status =
        cfg_fail(node, r->err,
                 "%s has %zu values, and there are %zu sites; give one for each of them, in "
                 "their order, or one number for all others",
                 rule->key, cfg_size(node), n);
  for (size_t i = 0; i < n && r->status == GL_OK; ++i)
    if (is_list || i != own)
      r->status = read_site_value(&row[i], is_list ? cfg_at(node, i) : node, rule, r->err);
}

static void read_outages(network_site *out, cfg_reader *r, const cfg_node *node) {
  const size_t n = cfg_size(node);
  for (; out->n_outages < n && r->status == GL_OK; ++out->n_outages) {
    const cfg_node *pair = cfg_at(node, out->n_outages);
    site_outage *o = &out->outages[out->n_outages];
    const bool is_pair = cfg_kind_of(pair) == CFG_LIST && cfg_size(pair) == 2 &&
                         cfg_number(cfg_at(pair, 0), &o->from_s) &&
                         cfg_number(cfg_at(pair, 1), &o->to_s);
    if (!is_pair || !(o->from_s >= 0) || !(o->to_s > o->from_s) || !isfinite(o->to_s))
      r->status = cfg_fail(pair, r->err,
                           "an outage is a pair of seconds, [from, to], the first at least 0 and "
                           "the second later");
  }
}

/* Reads site `own` of n. Its texts and rows are allocated in the section's arena. */
static gl_status read_site(network_spec *s, const cfg_node *node, size_t own, size_t n,
                           gl_error *err) {
  static const row_rule latency = {"latency", 0, 0, 1e6}, loss = {"loss", 0, 0, 1},
                        bandwidth = {"bandwidth", INFINITY, 1e-3, 1e18};
  network_site *out = &s->sites[own];
  cfg_reader r;
  cfg_begin(&r, node, "cluster.network.sites", err);
  const char *name = field_text(&r, "name");
  if (r.status == GL_OK && (name == NULL || *name == '\0'))
    r.status = cfg_fail(node, err,
                        "a site needs a name, by which groups of samplers say where "
                        "they are: {name: paris, latency: 0.04}");
  const cfg_node *outages = cfg_child(&r, "outages");
  if (outages != NULL && cfg_is_null(outages)) outages = NULL;
  if (r.status == GL_OK && outages != NULL && cfg_kind_of(outages) != CFG_LIST)
    r.status =
        cfg_fail(outages, err, "outages is a list of pairs of seconds, as in [[3600, 7200]]");
  if (r.status != GL_OK) return cfg_end(&r);
  out->name = arena_text(&s->memory, name);
  out->latency = ARENA_ARRAY(&s->memory, double, n);
  out->bandwidth = ARENA_ARRAY(&s->memory, double, n);
  out->loss = ARENA_ARRAY(&s->memory, double, n);
  if (outages != NULL) out->outages = ARENA_ARRAY(&s->memory, site_outage, cfg_size(outages));
  r.status = arena_check(&s->memory, "sites", err);
  if (r.status != GL_OK) return cfg_end(&r);
  read_site_row(out->latency, &r, &latency, own, n);
  read_site_row(out->bandwidth, &r, &bandwidth, own, n);
  read_site_row(out->loss, &r, &loss, own, n);
  for (size_t i = 0; i < n && r.status == GL_OK; ++i)
    if (out->loss[i] >= 1)
      r.status =
          cfg_fail(cfg_child(&r, "loss"), err, "a loss of 1 lets no packet through; lower it");
  if (outages != NULL) read_outages(out, &r, outages);
  delay_read(&r, "mtbf", NULL, &out->mtbf);
  delay_read(&r, "mttr", NULL, &out->mttr);
  return cfg_end(&r);
}

static void read_sites(network_spec *s, cfg_reader *r) {
  const cfg_node *node = cfg_child(r, "sites");
  if (r->status != GL_OK || node == NULL || cfg_is_null(node)) return;
  const size_t n = cfg_kind_of(node) == CFG_LIST ? cfg_size(node) : 0;
  if (n == 0 || n > MOST_SITES) {
    r->status = cfg_fail(node, r->err,
                         "sites is a list of 1 to %d sites, the learner's first, as in " SITES_FORM,
                         MOST_SITES);
    return;
  }
  s->sites = ARENA_ARRAY(&s->memory, network_site, n);
  r->status = arena_check(&s->memory, "sites", r->err);
  while (r->status == GL_OK && s->n_sites < n) {
    const size_t own = s->n_sites++;
    const cfg_node *at = cfg_at(node, own);
    if (cfg_kind_of(at) != CFG_MAP)
      r->status = cfg_fail(at, r->err, "a site is a map with a name, as in sites: " SITES_FORM);
    else
      r->status = read_site(s, at, own, n, r->err);
    for (size_t i = 0; r->status == GL_OK && i < own; ++i)
      if (strcmp(s->sites[i].name, s->sites[own].name) == 0)
        r->status = cfg_fail(at, r->err, "there are two sites called '%s'", s->sites[own].name);
  }
}

gl_status network_site_of(const network_spec *spec, const cfg_node *node, size_t *site,
                          gl_error *err) {
  const char *names[MOST_SITES];
  char hint[CFG_HINT_SIZE], all[300];
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
  return cfg_fail(node, err, "'%.60s' is none of cluster.network.sites: %s%s", cfg_text(node),
                  cfg_listed(names, n, all, sizeof all), cfg_hint(cfg_text(node), names, n, hint));
}

/* Whether the section has no effect: nothing is shared, delayed or interrupted. */
static bool changes_nothing(const network_spec *s) {
  const bool shared = isfinite(s->egress.bandwidth) || s->egress.share == SHARE_QUEUE ||
                      isfinite(s->ingress.bandwidth) || s->ingress.share == SHARE_QUEUE;
  return !shared && s->n_sites == 0 && s->fanout == 0 && s->round_trips <= 0 &&
         s->delta_fraction >= 1;
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

static void network_free(network_spec *spec) {
  if (spec == NULL) return;
  for (size_t i = 0; i < spec->n_sites; ++i) {
    delay_free(spec->sites[i].mtbf);
    delay_free(spec->sites[i].mttr);
  }
  arena_fini(&spec->memory);
  free(spec);
}

gl_status network_parse(network_spec **out, const cfg_node *node, gl_error *err) {
  *out = NULL;
  network_spec *s = calloc(1, sizeof *s);
  if (s == NULL) return gl_fail_memory(err, "a network");
  s->delta_fraction = 1;
  const gl_status status = read_section(s, node, err);
  if (status == GL_OK && !changes_nothing(s))
    *out = s;
  else
    network_free(s);
  return status;
}

/* --- cluster.restarts --- */

static void check_before(const restart_spec *s, cfg_reader *r) {
  for (size_t i = 0; i < s->n_before && r->status == GL_OK; ++i)
    if (s->before[i] != floor(s->before[i]) || (i > 0 && s->before[i] <= s->before[i - 1]))
      r->status = cfg_fail(cfg_child(r, "before"), r->err,
                           "restarts.before lists updates in ascending order, as in [16, 25]");
}

/* Refuses sections that the clock does not support together with restarts. */
static void check_restarts(const restart_spec *s, cfg_reader *r, const cfg_node *node,
                           const cluster_spec *c) {
  const bool goes_back = s->checkpoint_every > 1;
  if (r->status != GL_OK) return;
  if (delay_is_zero(s->every) && s->n_at == 0 && s->n_before == 0)
    r->status = cfg_fail(node, r->err,
                         "restarts need a time: give `every` (seconds until the next one), `at` (a "
                         "list of times) or `before` (a list of updates)");
  else if (c->network != NULL)
    r->status = cfg_fail(node, r->err,
                         "the clock does not know what a restart does to transfers over a shared "
                         "network; leave restarts or network out");
  else if (goes_back && s->keeps == RESTART_KEEPS_RESPONSES)
    r->status = cfg_fail(cfg_child(r, "checkpoint_every"), r->err,
                         "responses that survive may come from versions that are made again; give "
                         "checkpoint_every: 1, or keeps: queue or nothing");
  else if (goes_back && c->coupled)
    r->status = cfg_fail(cfg_child(r, "checkpoint_every"), r->err,
                         "a coupled learner has no checkpoints to go back to; give "
                         "checkpoint_every: 1, or leave coupled out");
}

gl_status restarts_read(cluster_spec *c, const cfg_node *node, gl_error *err) {
  if (node == NULL || cfg_is_null(node)) return GL_OK;
  restart_spec *s = c->restarts = calloc(1, sizeof *s);
  if (s == NULL) return gl_fail_memory(err, "restarts");
  cfg_reader r;
  cfg_begin(&r, node, "cluster.restarts", err);
  delay_read(&r, "every", NULL, &s->every);
  delay_read(&r, "down", NULL, &s->down);
  delay_read(&r, "recovery", NULL, &s->recovery);
  s->n_at = field_numbers(&r, "at", &s->at);
  s->n_before = field_numbers(&r, "before", &s->before);
  s->keeps = (restart_keeps)field_choice(&r, "keeps");
  s->checkpoint_every = field_integer(&r, "checkpoint_every");
  check_before(s, &r);
  check_restarts(s, &r, node, c);
  return cfg_end(&r);
}

/* --- cluster.decoding --- */

/* The fields of a measured curve and of a roofline, and whether each is needed. */
typedef struct decoding_field {
  const char *key;
  bool of_roofline, required;
} decoding_field;

static const decoding_field decoding_fields[] = {{"running", false, false},
                                                 {"tokens_per_s", false, false},
                                                 {"file", false, false},
                                                 {"cached_token_s", false, false},
                                                 {"kv_tokens", false, false},
                                                 {"parameters", true, true},
                                                 {"active_parameters", true, false},
                                                 {"bytes_per_parameter", true, false},
                                                 {"kv_bytes", true, false},
                                                 {"memory_bandwidth", true, true},
                                                 {"flops", true, true},
                                                 {"memory", true, false},
                                                 {"overhead", true, false}};

static void check_decoding_kind(cfg_reader *r, const cfg_node *node, bool roofline) {
  const char *kind = roofline ? "roofline" : "measured";
  for (size_t i = 0; i < sizeof decoding_fields / sizeof *decoding_fields; ++i) {
    const decoding_field *f = &decoding_fields[i];
    if (r->status != GL_OK) return;
    if (f->of_roofline != roofline && cfg_has(r, f->key))
      r->status = cfg_fail(cfg_child(r, f->key), r->err,
                           "decoding.%s belongs to kind: %s, and this is kind: %s", f->key,
                           f->of_roofline ? "roofline" : "measured", kind);
    else if (f->of_roofline == roofline && f->required && !cfg_has(r, f->key))
      r->status = cfg_fail(node, r->err, "decoding: {kind: %s} needs %s", kind, f->key);
  }
}

/* The memory left beside the weights holds the keys and values. */
static void read_roofline(decoding_spec *d, cfg_reader *r) {
  const double parameters = field_real_or(r, "parameters", 1);
  const double active = field_real_or(r, "active_parameters", parameters);
  const double bytes = parameters * field_real(r, "bytes_per_parameter");
  const double kv = field_real(r, "kv_bytes"), bandwidth = field_real_or(r, "memory_bandwidth", 1);
  const double memory = field_real_or(r, "memory", INFINITY);
  d->overhead_s = field_real(r, "overhead");
  d->least_s = bytes / bandwidth;
  d->response_s = 2 * active / field_real_or(r, "flops", 1);
  d->cached_s = kv / bandwidth;
  d->kv_tokens = kv > 0 && isfinite(memory) ? (memory - bytes) / kv : INFINITY;
  if (r->status == GL_OK && active > parameters)
    r->status =
        cfg_fail(cfg_child(r, "active_parameters"), r->err,
                 "active_parameters is %g, more than all parameters, %g", active, parameters);
  else if (r->status == GL_OK && memory < bytes)
    r->status = cfg_fail(cfg_child(r, "memory"), r->err,
                         "the weights take %g bytes, and memory is only %g", bytes, memory);
}

static void read_decoding_file(decoding_spec *d, cfg_reader *r, double **speed, size_t *n_speeds) {
  const cfg_node *at = cfg_child(r, "file");
  gl_error why = {0};
  char *path = cfg_locate(at, cfg_text(at));
  if (path == NULL) {
    r->status = gl_fail_memory(r->err, "a file name");
    return;
  }
  r->status = csv_column(&d->running, &d->n_points, path, "running", &why);
  if (r->status == GL_OK) r->status = csv_column(speed, n_speeds, path, "tokens_per_s", &why);
  if (r->status != GL_OK) r->status = cfg_fail(at, r->err, "%s", why.text);
  free(path);
}

/* Checks the measured points, and converts speed[] in place from tokens per second of one response
 * to seconds of a decoding step. d owns speed[] afterwards. */
static void take_speeds(decoding_spec *d, cfg_reader *r, const cfg_node *node, double *speed) {
  const double *x = d->running;
  for (size_t i = 0; i < d->n_points && r->status == GL_OK; ++i) {
    if (!(x[i] >= 1 && isfinite(x[i])) || (i > 0 && !(x[i] > x[i - 1])))
      r->status = cfg_fail(node, r->err,
                           "decoding.running lists numbers of responses from 1 in ascending order, "
                           "as in [1, 16, 64], not %g",
                           x[i]);
    else if (!(speed[i] > 0 && isfinite(speed[i])))
      r->status = cfg_fail(node, r->err,
                           "decoding.tokens_per_s is the positive speed of each response, not %g",
                           speed[i]);
    else
      speed[i] = 1 / speed[i];
  }
  d->step_s = speed;
}

static void read_measured(decoding_spec *d, cfg_reader *r, const cfg_node *node) {
  double *speed = NULL;
  size_t n_speeds = 0;
  const bool given = cfg_has(r, "running") && cfg_has(r, "tokens_per_s");
  const bool file = cfg_has(r, "file");
  d->cached_s = field_real(r, "cached_token_s");
  d->kv_tokens = field_real_or(r, "kv_tokens", INFINITY);
  if (r->status != GL_OK) return;
  if (given == file || (!given && (cfg_has(r, "running") || cfg_has(r, "tokens_per_s")))) {
    r->status = cfg_fail(node, r->err,
                         "decoding needs the measured speeds once: running: [1, 16, 64] with "
                         "tokens_per_s: [90, 80, 50], or file: FILE.csv with these columns");
    return;
  }
  if (file) {
    read_decoding_file(d, r, &speed, &n_speeds);
  } else {
    d->n_points = field_numbers(r, "running", &d->running);
    n_speeds = field_numbers(r, "tokens_per_s", &speed);
  }
  if (r->status == GL_OK && (d->n_points == 0 || d->n_points != n_speeds))
    r->status = cfg_fail(node, r->err,
                         "decoding has %zu numbers of running responses and %zu speeds; give as "
                         "many of both, at least one",
                         d->n_points, n_speeds);
  if (r->status == GL_OK)
    take_speeds(d, r, node, speed);
  else
    free(speed);
}

/* Refuses `decoding` with unit: batch, because it models only responses that stream, and kv_tokens
 * smaller than one response with its prompt. */
static void check_decoding(const decoding_spec *d, cfg_reader *r, const cfg_node *node,
                           const cluster_spec *c) {
  const bool changes = c->sync == SYNC_PUSH && c->partial == PARTIAL_CONTINUE;
  const bool prefills = d->prefix_cache != PREFIX_CACHE_FREE;

  if (r->status == GL_OK && c->unit == UNIT_BATCH)
    r->status = cfg_fail(node, r->err,
                         "decoding is the speed of responses that stream, and those of a batch are "
                         "decoded by tokens_per_s; give unit: group or unit: response, or leave "
                         "decoding out");
  for (size_t g = 0; g < c->n_groups && r->status == GL_OK; ++g) {
    const response_spec *of = &c->groups[g].responses;
    if (of->prompt_tokens + of->max_tokens > d->kv_tokens)
      r->status = cfg_fail(node, r->err,
                           "keys and values of %.0f tokens fit into memory, and one response may "
                           "have %.0f with its prompt; give more memory (kv_tokens), or a smaller "
                           "max_tokens",
                           floor(d->kv_tokens), of->prompt_tokens + of->max_tokens);
    else if (prefills && !(of->prompt_tokens > 0 && of->prefill_tokens_per_s > 0))
      r->status = cfg_fail(cfg_child(r, "prefix_cache"), r->err,
                           "prefix_cache: %s is about the time and memory that prompts take; give "
                           "prompt_tokens and prefill_tokens_per_s",
                           field_word("cluster.decoding.prefix_cache", d->prefix_cache));
  }
  if (r->status == GL_OK && d->prefix_cache == PREFIX_CACHE_ALL && changes &&
      c->kv_cache == KV_CACHE_RECOMPUTE)
    r->status = cfg_fail(cfg_child(r, "prefix_cache"), r->err,
                         "prefix_cache: all uses keys and values of older weights, and kv_cache: "
                         "recompute has them computed again for new ones; give kv_cache: keep, or "
                         "prefix_cache: version");
}

gl_status decoding_read(cluster_spec *c, const cfg_node *node, gl_error *err) {
  if (node == NULL || cfg_is_null(node)) return GL_OK;
  decoding_spec *d = c->decoding = calloc(1, sizeof *d);
  if (d == NULL) return gl_fail_memory(err, "decoding");
  cfg_reader r;
  cfg_begin(&r, node, "cluster.decoding", err);
  const bool roofline = field_choice(&r, "kind");
  check_decoding_kind(&r, node, roofline);
  if (r.status == GL_OK && roofline) read_roofline(d, &r);
  if (r.status == GL_OK && !roofline) read_measured(d, &r, node);
  d->prefix_cache = (prefix_cache_rule)field_choice(&r, "prefix_cache");
  check_decoding(d, &r, node, c);
  return cfg_end(&r);
}

/* --- cluster.sources --- */

static gl_status read_source(prompt_source *s, const cluster_spec *c, const cfg_node *node,
                             gl_error *err) {
  cfg_reader r;
  cfg_begin(&r, node, "cluster.sources", err);
  const char *name = field_text(&r, "name");
  const cfg_node *lengths = cfg_child(&r, "lengths");
  s->fraction = field_real(&r, "weight");
  s->reject = field_real_or(&r, "reject", c->reject);
  if (r.status == GL_OK && (name == NULL || *name == '\0'))
    r.status = cfg_fail(node, err, "a source needs a name: {name: code, weight: 0.3}");
  if (r.status == GL_OK && lengths != NULL && !cfg_is_null(lengths))
    r.status = delay_parse(&s->lengths, lengths, "lengths", NAN, err);
  if (r.status == GL_OK && (s->name = strdup(name)) == NULL)
    r.status = gl_fail_memory(err, "a source");
  return cfg_end(&r);
}

/* Returns what cannot be combined with sources, or with their quotas, for a message; NULL: nothing.
 */
static const char *not_with_sources(const cluster_spec *c) {
  return c->unit != UNIT_GROUP ? "sources are of groups that stream; give unit: group"
         : c->coupled          ? "a coupled clock takes the prompts of the world; leave coupled out"
         : !c->quotas          ? NULL
         : c->queue != QUEUE_FIFO && c->queue != QUEUE_LIFO
             ? "quotas are filled in the order of arrival; give learner.queue: fifo or lifo"
         : c->tokens > 0          ? "quotas are numbers of groups; leave learner.tokens out"
         : c->capacity != 0       ? "a full queue may lack a source; leave learner.capacity out"
         : c->stale == STALE_WAIT ? "stale: wait trains what is oldest, and quotas what is "
                                    "missing; leave one of them out"
                                  : NULL;
}

/* Turns weights into fractions and quotas. */
static gl_status set_fractions(cluster_spec *c, const cfg_node *node, gl_error *err) {
  double sum = 0;
  for (size_t k = 0; k < c->n_sources; ++k) sum += c->sources[k].fraction;
  for (size_t k = 0; k < c->n_sources; ++k) {
    prompt_source *s = &c->sources[k];
    s->fraction /= sum;
    const double quota = s->fraction * (double)c->take;
    if (!c->quotas) continue;
    s->quota = (size_t)(quota + 0.5);
    if (s->quota == 0 || fabs(quota - (double)s->quota) > 1e-6 * quota)
      return cfg_fail(cfg_at(node, k), err,
                      "an update takes %zu groups, and %g of them would be of '%s'; with "
                      "learner.quotas give weights that make whole numbers, as the quotas "
                      "themselves",
                      c->take, quota, s->name);
  }
  return GL_OK;
}

gl_status sources_read(cluster_spec *c, const cfg_node *node, gl_error *err) {
  if (node == NULL || cfg_is_null(node)) return GL_OK;
  const size_t n = cfg_kind_of(node) == CFG_LIST ? cfg_size(node) : 0;
  const char *why = not_with_sources(c);
  if (n == 0 || n > MOST_SOURCES)
    return cfg_fail(node, err, "sources is a list of 1 to %d sources, {name, weight, …}",
                    MOST_SOURCES);
  if (why != NULL) return cfg_fail(node, err, "%s, or leave sources out", why);
  c->sources = calloc(n, sizeof *c->sources);
  if (c->sources == NULL) return gl_fail_memory(err, "sources");
  gl_status status = GL_OK;
  while (status == GL_OK && c->n_sources < n) {
    prompt_source *own = &c->sources[c->n_sources++];
    const cfg_node *at = cfg_at(node, c->n_sources - 1);
    status = read_source(own, c, at, err);
    for (const prompt_source *s = c->sources; status == GL_OK && s < own; ++s)
      if (strcmp(s->name, own->name) == 0)
        status = cfg_fail(at, err, "there are two sources called '%s'", own->name);
  }
  return status == GL_OK ? set_fractions(c, node, err) : status;
}

/* --- cluster.grader --- */

gl_status grader_read(cluster_spec *c, const cfg_node *node, gl_error *err) {
  if (node == NULL || cfg_is_null(node)) return GL_OK;
  grader_spec *g = c->grader = calloc(1, sizeof *g);
  if (g == NULL) return gl_fail_memory(err, "a grader");
  cfg_reader r;
  cfg_begin(&r, node, "cluster.grader", err);
  g->places = field_count(&r, "places");
  delay_read(&r, "time", NULL, &g->time);
  g->timeout = field_real_or(&r, "timeout", INFINITY);
  if (r.status == GL_OK && delay_is_zero(g->time))
    r.status =
        cfg_fail(node, err, "a grader needs the time that it takes: grader: {places: 8, time: 20}");
  return cfg_end(&r);
}

/* --- cluster.environment --- */

gl_status environment_read(cluster_spec *c, const cfg_node *node, gl_error *err) {
  if (node == NULL || cfg_is_null(node)) return GL_OK;
  environment_spec *s = c->environment = calloc(1, sizeof *s);
  if (s == NULL) return gl_fail_memory(err, "an environment");
  cfg_reader r;
  cfg_begin(&r, node, "cluster.environment", err);
  delay_read(&r, "turns", NULL, &s->turns);
  delay_read(&r, "time", NULL, &s->time);
  s->places = field_count_or(&r, "places", SIZE_MAX);
  s->frees_slot = field_choice(&r, "slot");
  const char *with = c->unit == UNIT_BATCH ? "whole batches; give unit: group or unit: response"
                     : c->coupled          ? "a coupled learner; leave coupled out"
                                           : NULL;
  if (r.status == GL_OK && (delay_is_zero(s->turns) || delay_is_zero(s->time)))
    r.status = cfg_fail(node, err,
                        "an environment needs the number of turns and the time of a call: "
                        "environment: {turns: 4, time: 20}");
  else if (r.status == GL_OK && with != NULL)
    r.status = cfg_fail(node, err,
                        "the clock does not know an environment between turns together with %s, "
                        "or leave environment out",
                        with);
  return cfg_end(&r);
}

/* --- cluster.colocated --- */

/* If no group of samplers is marked as being on the learner's GPUs, marks all of them. */
static void mark_colocated(cluster_spec *c) {
  bool any = false;
  for (size_t i = 0; i < c->n_groups; ++i) any |= c->groups[i].colocated;
  for (size_t i = 0; i < c->n_groups && !any; ++i) c->groups[i].colocated = true;
}

/* Returns what cannot be combined with colocated GPUs, for a message; NULL: nothing. */
static const char *not_with_colocated(const cluster_spec *c) {
  for (size_t i = 0; i < c->n_groups; ++i)
    if (!delay_is_zero(c->groups[i].mtbf)) return "crashes of samplers (mtbf)";
  return c->sync == SYNC_PULL         ? "sync: pull"
         : c->queue == QUEUE_HETERORL ? "learner.queue: heterorl"
         : cluster_keeps_order(c)     ? "learner.queue: version_order or in_order"
         : c->stale == STALE_WAIT     ? "stale: wait"
                                      : NULL;
}

/* Thresholds other than 1, the default, need switch: idle. */
static void check_thresholds(const cluster_spec *c, const colocated_spec *s, cfg_reader *r,
                             const cfg_node *at) {
  if (r->status != GL_OK || (s->high == 1 && s->low == 1)) return;
  if (!s->when_idle)
    r->status = cfg_fail(at, r->err, "colocated: high and low are thresholds of switch: idle");
  else if (s->low > s->high)
    r->status = cfg_fail(at, r->err, "colocated: low, %g, is above high, %g", s->low, s->high);
  else if (c->ahead < INT64_MAX && s->high > (double)c->ahead + 1)
    r->status =
        cfg_fail(at, r->err,
                 "colocated: with ahead %lld at most %lld updates' batches are begun before "
                 "the next update, and high, %g, is never reached; raise ahead",
                 (long long)c->ahead, (long long)c->ahead + 1, s->high);
}

gl_status colocated_read(cluster_spec *c, const cfg_node *node, const cfg_node *at, bool is_preset,
                         gl_error *err) {
  const bool given = node != NULL && !cfg_is_null(node);
  for (size_t i = 0; i < c->n_groups && !given && !is_preset; ++i)
    if (c->groups[i].colocated)
      return cfg_fail(at, err,
                      "a group with colocated: true shares the learner's GPUs; say how these "
                      "switch: colocated: {to_training: 10, to_generation: 10}");
  if (!given && !is_preset) return GL_OK;
  colocated_spec *s = c->colocated = calloc(1, sizeof *s);
  if (s == NULL) return gl_fail_memory(err, "colocated GPUs");
  cfg_reader r;
  cfg_begin(&r, given ? node : NULL, "cluster.colocated", err);
  delay_read(&r, "to_training", NULL, &s->to_training);
  delay_read(&r, "to_generation", NULL, &s->to_generation);
  s->when_idle = field_choice(&r, "switch");
  s->high = field_real(&r, "high");
  s->low = field_real(&r, "low");
  check_thresholds(c, s, &r, at);
  const char *with = not_with_colocated(c);
  if (r.status == GL_OK && with != NULL)
    r.status = cfg_fail(at, err,
                        "GPUs that change between generation and training do not go with %s; "
                        "leave one of them out",
                        with);
  mark_colocated(c);
  return cfg_end(&r);
}

/* --- cluster.compare --- */

static gl_status make_counts(cluster_measurements *m, size_t n, gl_error *err) {
  m->count = calloc(n, sizeof *m->count);
  if (m->count == NULL) return gl_fail_memory(err, "a staleness histogram");
  m->n = n;
  return GL_OK;
}

static gl_status read_histogram(cluster_measurements *m, cfg_reader *r) {
  double *count = NULL;
  const cfg_node *at = cfg_child(r, "histogram");
  const size_t n = field_numbers(r, "histogram", &count);
  if (r->status == GL_OK && (n == 0 || n > MEASURED_MOST))
    r->status = cfg_fail(at, r->err, "a staleness histogram has 1 to %d counts", MEASURED_MOST);
  if (r->status == GL_OK) r->status = make_counts(m, n, r->err);
  for (size_t i = 0; i < n && r->status == GL_OK; ++i) {
    if (count[i] != floor(count[i]))
      r->status =
          cfg_fail(at, r->err, "%g is no count: how many updates had staleness %zu?", count[i], i);
    else
      m->updates += m->count[i] = (uint64_t)count[i];
  }
  if (r->status == GL_OK && m->updates == 0)
    r->status = cfg_fail(at, r->err, "a staleness histogram needs a count above 0");
  free(count);
  return r->status;
}

static gl_status count_values(cluster_measurements *m, const double *value, size_t n,
                              const cfg_node *at, gl_error *err) {
  double largest = 0;
  for (size_t i = 0; i < n; ++i) {
    if (!(value[i] >= 0 && value[i] < MEASURED_MOST))
      return cfg_fail(at, err, "staleness %g is not a number of updates", value[i]);
    largest = fmax(largest, value[i]);
  }
  gl_status status = make_counts(m, (size_t)llround(largest) + 1, err);
  for (size_t i = 0; i < n && status == GL_OK; ++i) m->count[llround(value[i])]++;
  m->updates = n;
  return status;
}

static gl_status read_trace(cluster_measurements *m, cfg_reader *r, const char *column) {
  const cfg_node *at = cfg_child(r, "trace");
  const char *file = field_text(r, "trace");
  gl_error why = {0};
  double *value = NULL;
  size_t n = 0;
  if (r->status != GL_OK) return r->status;
  char *path = cfg_locate(at, file);
  if (path == NULL) return r->status = gl_fail_memory(r->err, "a file name");
  r->status = csv_column(&value, &n, path, column, &why);
  if (r->status != GL_OK)
    r->status = cfg_fail(at, r->err, "%s", why.text);
  else
    r->status = count_values(m, value, n, at, r->err);
  free(value);
  free(path);
  return r->status;
}

static void copy_measured_text(cfg_reader *r, const char *text, char **out) {
  if (r->status != GL_OK) return;
  *out = strdup(text);
  if (*out == NULL) r->status = gl_fail_memory(r->err, "a measured staleness");
}

static void read_seconds(cluster_measurements *m, cfg_reader *r) {
  if (cfg_has(r, "seconds")) m->seconds = field_real_or(r, "seconds", 1);
  m->seconds_of = (double)field_count(r, "updates");
  if (r->status == GL_OK && isnan(m->seconds) && cfg_has(r, "updates"))
    r->status = cfg_fail(cfg_child(r, "updates"), r->err,
                         "updates says how many updates take `seconds`, and there are none; give "
                         "seconds too");
}

gl_status measured_read(cluster_measurements *m, const cfg_node *compare, gl_error *err) {
  cfg_reader r;
  *m = (cluster_measurements){.seconds = NAN};
  if (compare == NULL) return GL_OK;
  cfg_begin(&r, compare, "cluster.compare", err);
  const char *trace = field_text(&r, "trace"), *column = field_text(&r, "column");
  const char *fallback = column != NULL ? column : trace != NULL ? trace : "measured";
  copy_measured_text(&r, cfg_string(&r, "name", fallback), &m->name);
  copy_measured_text(&r, cfg_string(&r, "source", ""), &m->source);
  m->fitted = field_flag(&r, "fitted");
  const bool counted = cfg_child(&r, "histogram") != NULL;
  read_seconds(m, &r);
  const bool given = counted || trace != NULL;
  if (r.status == GL_OK && ((counted && trace != NULL) || (!given && isnan(m->seconds))))
    r.status = cfg_fail(compare, err,
                        "compare needs the measured staleness once, a histogram or a trace, or the "
                        "seconds of updates");
  if (r.status == GL_OK && column != NULL && trace == NULL)
    r.status = cfg_fail(cfg_child(&r, "column"), err,
                        "column names a column of a trace, and there "
                        "is none");
  if (r.status == GL_OK && counted) read_histogram(m, &r);
  if (r.status == GL_OK && trace != NULL) read_trace(m, &r, column);
  return cfg_end(&r);
}

/* --- all --- */

void sections_free(cluster_spec *c) {
  network_free(c->network);
  if (c->restarts != NULL) {
    delay_free(c->restarts->every);
    delay_free(c->restarts->down);
    delay_free(c->restarts->recovery);
    free(c->restarts->at);
    free(c->restarts->before);
  }
  free(c->restarts);
  if (c->decoding != NULL) {
    free(c->decoding->running);
    free(c->decoding->step_s);
  }
  free(c->decoding);
  for (size_t k = 0; k < c->n_sources; ++k) {
    free(c->sources[k].name);
    delay_free(c->sources[k].lengths);
  }
  free(c->sources);
  if (c->grader != NULL) delay_free(c->grader->time);
  free(c->grader);
  if (c->environment != NULL) {
    delay_free(c->environment->turns);
    delay_free(c->environment->time);
  }
  free(c->environment);
  if (c->colocated != NULL) {
    delay_free(c->colocated->to_training);
    delay_free(c->colocated->to_generation);
  }
  free(c->colocated);
  free(c->measured.name);
  free(c->measured.source);
  free(c->measured.count);
}
