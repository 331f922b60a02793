/* Reads the cluster section of a recipe. */
#include "sim/cluster.h"

#include "core/config/fields.h"
#include "sim/cluster_spec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --- lengths of responses --- */

/* Reads lengths, max_tokens, tokens_per_s, prompt_tokens, prefill_tokens_per_s, concurrency
 * (default: all responses of a batch at once) and batching of the section at r. Missing keys are
 * taken from `outer` (NULL: defaults), whose distribution is read again from outer_lengths. Errors
 * are stored in the reader. */
static void response_parse(response_spec *out, cfg_reader *r, const response_spec *outer,
                           const cfg_node *outer_lengths, size_t responses) {
  if (outer != NULL) *out = *outer;
  out->lengths = NULL;
  out->max_tokens = outer != NULL ? field_real_or(r, "max_tokens", outer->max_tokens)
                                  : field_real(r, "max_tokens");
  out->tokens_per_s = outer != NULL ? field_real_or(r, "tokens_per_s", outer->tokens_per_s)
                                    : field_real(r, "tokens_per_s");
  out->prompt_tokens = outer != NULL ? field_real_or(r, "prompt_tokens", outer->prompt_tokens)
                                     : field_real(r, "prompt_tokens");
  out->prefill_tokens_per_s =
      outer != NULL ? field_real_or(r, "prefill_tokens_per_s", outer->prefill_tokens_per_s)
                    : field_real(r, "prefill_tokens_per_s");
  out->concurrency =
      field_count_or(r, "concurrency", outer != NULL ? outer->concurrency : responses);
  out->batching =
      (response_batching)(outer != NULL ? field_choice_or(r, "batching", (int)outer->batching)
                                        : field_choice(r, "batching"));
  const cfg_node *node = cfg_child(r, "lengths");
  if (node == NULL) node = outer_lengths;
  if (r->status == GL_OK && node != NULL && !cfg_is_null(node))
    r->status = delay_parse(&out->lengths, node, "lengths", NAN, r->err);
}

static void response_fini(response_spec *spec) {
  delay_free(spec->lengths);
  spec->lengths = NULL;
}

/* --- distributions --- */

/* HeteroRL's delays: log-normal with 99.5 % in 60 to u seconds, clamped. */
static gl_status heterorl_delay(delay_dist **out, double u, const cfg_node *at, gl_error *err) {
  *out = delay_constant(0);
  if (*out == NULL) return gl_fail_memory(err, "a distribution");
  if (u == 0) return GL_OK;
  if (!(u > 60))
    return cfg_fail(
        at, err,
        "max_delay is %g; it must be above 60, the lower end of the default delays (or "
        "0 for none); give delay: {distribution: lognormal, interval: [l, u]} for others",
        u);
  gl_status status = delay_from_interval(*out, DELAY_LOGNORMAL, 60, u, 0.995, err);
  (*out)->clamp_lo = 60;
  (*out)->clamp_hi = u;
  return status;
}

/* Distributions of a group of samplers, for which the cluster may give a default. */
typedef enum group_dist {
  GROUP_DELAY,
  GROUP_DATA_DELAY,
  GROUP_GENERATION,
  GROUP_JITTER,
  GROUP_LENGTHS,
  GROUP_MTBF,
  GROUP_MTTR,
  GROUP_DISTS
} group_dist;

static const struct {
  const char *key, *field, *unit;
  size_t member; /* offset in sampler_group */
} group_dists[GROUP_DISTS] = {
#define ENTRY(name, unit, member)                                                                  \
  { name, "cluster." name, unit, offsetof(sampler_group, member) }
    [GROUP_DELAY] = ENTRY("delay", "s", delay),
    [GROUP_DATA_DELAY] = ENTRY("data_delay", "s", data_delay),
    [GROUP_GENERATION] = ENTRY("generation", "s", generation),
    [GROUP_JITTER] = ENTRY("jitter", "", jitter),
    [GROUP_LENGTHS] = ENTRY("lengths", "tokens", responses.lengths),
    [GROUP_MTBF] = ENTRY("mtbf", "s", mtbf),
    [GROUP_MTTR] = ENTRY("mttr", "s", mttr),
#undef ENTRY
};

static delay_dist **cluster_group_dist(const sampler_group *g, group_dist which) {
  return (delay_dist **)((char *)g + group_dists[which].member);
}

/* Defaults that groups of samplers inherit from the cluster. */
typedef struct inherited {
  const cluster_spec *c;
  const cluster_preset *preset;
  const cfg_node *dist[GROUP_DISTS]; /* NULL: not given; lengths may come from the preset */
  const cfg_node *up, *down;
  response_spec responses; /* without the length distribution */
  double max_delay;        /* NaN: not given */
  const cfg_node *max_delay_at, *unit_at, *prefill_at;
  bool has_decoding;
  bool sizes_weights, sizes_batches; /* whether their bytes are given */
} inherited;

/* --- groups of samplers --- */

static void require_time(cfg_reader *r, const char *key, const cfg_node *outer,
                         const delay_dist *dist) {
  const cfg_node *own = cfg_child(r, key);
  if (r->status == GL_OK && delay_is_zero(dist))
    r->status = cfg_fail(own != NULL ? own : outer, r->err,
                         "%s must take some time; give a positive number of seconds", key);
}

/* Refuses generation times of streaming units, whose time is only that of their responses. */
static gl_status check_streaming(const sampler_group *g, const inherited *s, gl_error *err) {
  const cfg_node *at = s->unit_at;
  const char *unit = field_word("cluster.unit", s->c->unit);
  if (g->responses.lengths == NULL && !s->c->coupled)
    return cfg_fail(at, err,
                    "unit: %s needs response lengths, for a %s is sent when its last response has "
                    "ended; give the cluster a distribution of `lengths`, or coupled: true",
                    unit, unit);
  if (!delay_is_zero(g->generation))
    return cfg_fail(at, err,
                    "`generation` is the time of a whole batch, and with unit: %s there is none; "
                    "leave it out, and let lengths and tokens_per_s say how long responses take",
                    unit);
  if (g->responses.batching == BATCHING_PADDED)
    return cfg_fail(at, err,
                    "batching: padded makes responses wait for the longest beside them, and with "
                    "unit: %s a slot that is free takes the next one; give batching: continuous",
                    unit);
  return GL_OK;
}

/* Requires a prefill speed if keys and values are recomputed, which needs the progress of each
 * response. */
static gl_status check_prefill(cfg_reader *r, const inherited *s, gl_error *err) {
  if (s->has_decoding) return GL_OK; /* preempted responses are computed again too */
  if (s->c->sync == SYNC_PUSH && s->c->unit != UNIT_BATCH && s->c->partial == PARTIAL_CONTINUE)
    return GL_OK;
  const char *key = "prefill_tokens_per_s";
  return cfg_fail(cfg_has(r, key) ? cfg_child(r, key) : s->prefill_at, err,
                  "prefill_tokens_per_s is the speed at which keys and values are computed again "
                  "for new weights; it needs unit: group or response and partial: continue (of a "
                  "batch it is not known how far each response has come: say with `interrupt` how "
                  "long that takes)");
}

/* Refuses a bandwidth for messages whose size is not given. A size of 0 that is given is meant. */
static gl_status check_bandwidth(const link_spec *link, const cfg_node *at, bool is_sized,
                                 const char *sizes, gl_error *err) {
  if (is_sized || !isfinite(link->bandwidth)) return GL_OK;
  return cfg_fail(cfg_find(at, "bandwidth"), err,
                  "this bandwidth has no effect, because the messages have no size; give %s (0: "
                  "they take no time), or leave bandwidth out",
                  sizes);
}

/* Refuses fields about the responses of a batch where these have no lengths. */
static void check_lengths(cfg_reader *r) {
  static const char *const keys[] = {"max_tokens", "tokens_per_s", "concurrency", "batching",
                                     "prompt_tokens"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys && r->status == GL_OK; ++i)
    if (cfg_has(r, keys[i]))
      r->status = cfg_fail(cfg_child(r, keys[i]), r->err,
                           "%s has no effect without response lengths, because `generation` is "
                           "the time of a whole batch; give cluster.lengths, a distribution of "
                           "tokens, or leave %s out",
                           keys[i], keys[i]);
}

/* Reads the delay of weights: the group's, the cluster's, or HeteroRL's if max_delay or the preset
 * requests it. */
static void read_delay(sampler_group *g, cfg_reader *r, const inherited *s) {
  const cfg_node *outer = s->dist[GROUP_DELAY];
  const bool given = cfg_has(r, "delay") || outer != NULL;
  const bool heterorl = s->preset->heterorl_delays || s->max_delay > 0;
  if (given || r->status != GL_OK || !heterorl) {
    delay_read_field(r, "delay", outer, 0, given ? s->max_delay : NAN, &g->delay);
    return;
  }
  cfg_child(r, "delay");
  const double most = isnan(s->max_delay) ? field_default(r, "max_delay") : s->max_delay;
  r->status = heterorl_delay(&g->delay, field_noted(r, "max_delay", most), s->max_delay_at, r->err);
}

static gl_status read_group(sampler_group *g, const cfg_node *node, size_t count,
                            const inherited *s, gl_error *err) {
  static const group_dist plain[] = {GROUP_DATA_DELAY, GROUP_MTBF, GROUP_MTTR};
  const cluster_spec *c = s->c;
  cfg_reader r;
  cfg_begin(&r, node, "cluster.samplers", err);
  g->count = node == NULL ? count : field_count(&r, "count");
  g->speed = field_real(&r, "speed");
  g->colocated = field_flag(&r, "colocated");
  const cfg_node *site = cfg_child(&r, "site");
  if (r.status == GL_OK) r.status = network_site_of(c->network, site, &g->site, err);
  response_parse(&g->responses, &r, &s->responses, s->dist[GROUP_LENGTHS], c->samples_per_batch);
  const bool has_lengths = g->responses.lengths != NULL || c->coupled;
  delay_read_field(&r, "generation", s->dist[GROUP_GENERATION],
                   has_lengths ? 0 : field_default(&r, "generation"), NAN, &g->generation);
  if (!has_lengths) require_time(&r, "generation", s->dist[GROUP_GENERATION], g->generation);
  if (!has_lengths) check_lengths(&r);
  double largest = c->rollout_bytes;
  if (has_lengths)
    largest += c->bytes_per_token * g->responses.max_tokens * (double)c->samples_per_batch;
  if (r.status == GL_OK && c->unit != UNIT_BATCH) r.status = check_streaming(g, s, err);
  if (r.status == GL_OK && g->responses.prefill_tokens_per_s > 0)
    r.status = check_prefill(&r, s, err);
  delay_read(&r, "jitter", s->dist[GROUP_JITTER], &g->jitter);
  require_time(&r, "jitter", s->dist[GROUP_JITTER], g->jitter);
  for (size_t i = 0; i < sizeof plain / sizeof *plain; ++i)
    delay_read(&r, group_dists[plain[i]].key, s->dist[plain[i]], cluster_group_dist(g, plain[i]));
  const cfg_node *up = cfg_child(&r, "up"), *down = cfg_child(&r, "down");
  if (up == NULL) up = s->up;
  if (down == NULL) down = s->down;
  if (r.status == GL_OK) r.status = link_parse(&g->up, up, "cluster.up", largest, err);
  if (r.status == GL_OK)
    r.status = link_parse(&g->down, down, "cluster.down", c->weights_bytes, err);
  const bool relays = c->network != NULL && c->network->fanout > 0; /* at up.bandwidth */
  if (r.status == GL_OK)
    r.status = check_bandwidth(&g->up, up, s->sizes_batches || relays,
                               "cluster.rollout_bytes or cluster.bytes_per_token", err);
  if (r.status == GL_OK)
    r.status = check_bandwidth(&g->down, down, s->sizes_weights, "cluster.weights_bytes", err);
  read_delay(g, &r, s);
  return cfg_end(&r);
}

static gl_status read_samplers(cluster_spec *c, cfg_reader *r, const inherited *s) {
  const cfg_node *node = cfg_child(r, "samplers");
  const bool is_list = node != NULL && cfg_kind_of(node) == CFG_LIST;
  const size_t n = is_list ? cfg_size(node) : 1;
  const size_t count = is_list ? 0 : field_count(r, "samplers");
  if (r->status != GL_OK) return r->status;
  if (n == 0) return r->status = cfg_fail(node, r->err, "samplers needs at least one group");
  c->groups = calloc(n, sizeof *c->groups);
  if (c->groups == NULL) return r->status = gl_fail_memory(r->err, "sampler groups");
  for (c->n_groups = 0; c->n_groups < n && r->status == GL_OK; ++c->n_groups) {
    r->status = read_group(&c->groups[c->n_groups], is_list ? cfg_at(node, c->n_groups) : NULL,
                           count, s, r->err);
    c->n_samplers += c->groups[c->n_groups].count;
  }
  if (r->status == GL_OK && c->n_samplers > 10000000)
    r->status = cfg_fail(node, r->err, "more than 10,000,000 samplers");
  return r->status;
}

/* Refuses fields that fix the number of units per update if updates are counted in tokens. */
static void check_tokens(const cluster_spec *c, cfg_reader *r) {
  const cfg_node *at = cfg_child(r, "tokens");
  bool has_lengths = true;
  for (size_t i = 0; i < c->n_groups; ++i) has_lengths &= c->groups[i].responses.lengths != NULL;
  if (!has_lengths && !c->coupled)
    r->status =
        cfg_fail(at, r->err,
                 "learner.tokens counts the tokens of responses, and these have no lengths; "
                 "give the cluster a distribution of `lengths`, or say batches instead");
  else if (cfg_has(r, "batches"))
    r->status = cfg_fail(at, r->err,
                         "an update is counted in batches or in tokens; leave learner.batches or "
                         "learner.tokens out");
  else if (c->ahead < INT64_MAX)
    r->status = cfg_fail(at, r->err,
                         "`ahead` counts batches, and with learner.tokens an update has no fixed "
                         "number of them; take a preset without `ahead` (fifo, lifo or heterorl), "
                         "and let `window` limit the staleness");
  else if (c->capacity != 0)
    r->status = cfg_fail(at, r->err,
                         "learner.capacity may keep fewer %s than learner.tokens needs, and the "
                         "learner would stand still; leave one of them out",
                         cluster_unit_names(c));
}

/* Rules for units staler than the window need a window, and HeteroRL's queue has its own rule. */
static gl_status check_stale(const cluster_spec *c, cfg_reader *r) {
  const cfg_node *at = cfg_child(r, "stale");
  const char *stale = field_word("cluster.stale", c->stale);
  if (c->stale != STALE_DOWNWEIGHT && cfg_has(r, "stale_decay"))
    return cfg_fail(cfg_child(r, "stale_decay"), r->err,
                    "stale_decay is the weight of stale data, and with stale: %s there is none; "
                    "give stale: downweight, or leave stale_decay out",
                    stale);
  if (c->stale == STALE_DISCARD) return GL_OK;
  if (c->stale == STALE_WAIT && (c->ahead == INT64_MAX || c->window < c->ahead))
    return cfg_fail(
        at, r->err,
        "stale: wait keeps every update within `window` if samplers pause in time, as "
        "`ahead` makes them, and %s; give the cluster `ahead`, and a window of at least "
        "as much",
        c->ahead == INT64_MAX ? "there is no limit" : "the window is less than that");
  if (c->stale == STALE_WAIT && c->queue != QUEUE_OLDEST_VERSION)
    return cfg_fail(at, r->err,
                    "stale: wait trains the stalest data first; give learner: {queue: "
                    "oldest_version}");
  if (c->queue == QUEUE_HETERORL)
    return cfg_fail(at, r->err,
                    "stale: %s goes with the queues fifo, lifo and oldest_version; the rule of "
                    "heterorl never takes what is too stale, so leave stale out or give "
                    "learner.queue",
                    stale);
  if (c->window == INT64_MAX)
    return cfg_fail(at, r->err,
                    "stale: %s is about data staler than `window`, and there is no limit; give "
                    "the cluster a window",
                    stale);
  return GL_OK;
}

/* Computes and checks the surplus, after `take` is known. */
static void set_surplus(cluster_spec *c, cfg_reader *r) {
  c->surplus = (size_t)ceil((c->oversample - 1) * (double)c->take);
  if (c->surplus > 0 && c->ahead == INT64_MAX)
    r->status = cfg_fail(cfg_child(r, "oversample"), r->err,
                         "oversample is about samplers that wait for the next version, and without "
                         "`ahead` they never wait; give ahead, or leave oversample out");
  else if (!c->aborts_surplus && cfg_has(r, "surplus") && !cfg_has(r, "oversample"))
    r->status = cfg_fail(cfg_child(r, "surplus"), r->err,
                         "surplus: carry is about what is begun beyond an update, and that is "
                         "nothing without oversample; give oversample, or leave surplus out");
  else if (c->aborts_surplus && c->unit == UNIT_BATCH)
    r->status = cfg_fail(cfg_child(r, "surplus"), r->err,
                         "surplus: abort is about groups or responses that stream; give unit: "
                         "group, or leave surplus out");
  else if ((c->aborts_surplus || c->surplus > 0) && c->stale == STALE_WAIT)
    r->status = cfg_fail(cfg_child(r, c->aborts_surplus ? "surplus" : "oversample"), r->err,
                         "stale: wait trains all that was begun in time, and a surplus is dropped "
                         "or comes later; leave one of them out");
}

/* Refuses sections that cannot be combined with a queue that waits for units in progress. */
static void check_order(const cluster_spec *c, cfg_reader *r, const cfg_node *at) {
  const char *with =
      c->tokens > 0            ? "learner.tokens"
      : c->capacity != 0       ? "learner.capacity"
      : c->stale == STALE_WAIT ? "stale: wait"
      : c->oversample > 1      ? "oversample"
      : c->queue == QUEUE_IN_ORDER && c->stale == STALE_DISCARD && c->window < INT64_MAX
          ? "a window (in order, only `ahead` limits staleness)"
          : NULL;
  if (r->status == GL_OK && cluster_keeps_order(c) && with != NULL)
    r->status = cfg_fail(at, r->err, "learner.queue: %s does not go with %s; leave one of them out",
                         field_word("cluster.learner.queue", c->queue), with);
}

static void read_learner(cluster_spec *c, cfg_reader *outer, const cluster_preset *p) {
  cfg_reader r;
  const cfg_node *node = cfg_child(outer, "learner");
  if (outer->status != GL_OK) return;
  cfg_begin(&r, node, "cluster.learner", outer->err);
  cfg_defaults(&r, p);
  c->batches = field_count_or(&r, "batches", p->one_batch ? 1 : c->n_samplers);
  c->queue = (queue_rule)field_choice(&r, "queue");
  c->lookback = field_count(&r, "lookback");
  c->capacity = field_count(&r, "capacity");
  c->reject = field_real(&r, "reject");
  c->quotas = field_flag(&r, "quotas");
  if (r.status == GL_OK && c->coupled && c->reject > 0)
    r.status = cfg_fail(cfg_child(&r, "reject"), outer->err,
                        "a coupled clock has real rewards, which decide what is rejected; leave "
                        "reject out, or coupled");
  if (r.status == GL_OK && c->quotas && cfg_child(outer, "sources") == NULL)
    r.status = cfg_fail(cfg_child(&r, "quotas"), outer->err,
                        "quotas are what an update takes from each of cluster.sources, and there "
                        "are none; give sources, or leave quotas out");
  c->eval_every = field_integer(&r, "eval_every");
  c->publish_every = field_integer(&r, "publish_every");
  delay_read(&r, "step", NULL, &c->step);
  delay_read(&r, "eval_pause", NULL, &c->pause);
  c->evict = (evict_rule)field_choice(&r, "evict");
  if (r.status == GL_OK && c->capacity == 0 && cfg_has(&r, "evict"))
    r.status =
        cfg_fail(cfg_child(&r, "evict"), outer->err,
                 "evict says what a full queue throws away, and this one is never full; give "
                 "learner.capacity too, or leave evict out");
  if (r.status == GL_OK) r.status = check_stale(c, outer);
  c->tokens = field_real(&r, "tokens");
  if (r.status == GL_OK && c->tokens > 0) check_tokens(c, &r);
  const cfg_node *queue = cfg_child(&r, "queue");
  check_order(c, &r, queue != NULL ? queue : cfg_child(outer, "preset"));
  c->take = c->batches * (c->samples_per_batch / c->unit_responses);
  if (r.status == GL_OK && c->tokens <= 0 && c->capacity != 0 && c->capacity < c->take)
    r.status = cfg_fail(node, outer->err,
                        "capacity %zu holds fewer than the %zu %s of an "
                        "update",
                        c->capacity, c->take, cluster_unit_names(c));
  outer->status = cfg_end(&r);
}

/* Relays only forward pushed weights, and do not support samplers that return from a crash without
 * weights. */
static void check_relay(const cluster_spec *c, cfg_reader *r) {
  const cfg_node *at = cfg_find(cfg_child(r, "network"), "relay");
  bool crashes = false;
  for (size_t i = 0; i < c->n_groups; ++i) crashes |= !delay_is_zero(c->groups[i].mtbf);
  if (c->sync == SYNC_PULL)
    r->status =
        cfg_fail(at, r->err,
                 "relays hand on weights that are pushed, and with sync: pull samplers fetch "
                 "them from the learner; give sync: push, or leave relay out");
  else if (crashes)
    r->status = cfg_fail(at, r->err,
                         "a sampler that comes back from a crash would ask its relay for weights, "
                         "which the clock does not know; leave mtbf or relay out");
}

/* Refuses in-flight weights for coupled batches: the progress of each response when new weights
 * arrive depends on all of them, so one fraction per segment does not describe any of them. */
static void check_coupled(const cluster_spec *c, cfg_reader *r, size_t batch_responses) {
  if (r->status == GL_OK && c->in_flight && c->unit == UNIT_BATCH) {
    const cfg_node *given = cfg_child(r, "in_flight");
    r->status =
        cfg_fail(given != NULL ? given : cfg_child(r, "coupled"), r->err,
                 "a coupled clock cannot change weights while a batch is generated%s; "
                 "give the cluster in_flight: false, or unit: group with partial: continue, "
                 "or leave coupled out",
                 given != NULL ? "" : ", as this preset does");
  }
  if (r->status == GL_OK && c->samples_per_batch != batch_responses)
    r->status = cfg_fail(cfg_child(r, "samples_per_batch"), r->err,
                         "a coupled clock takes the responses there are, train.groups x "
                         "train.group_size = %zu, but samples_per_batch is %zu; leave it out",
                         batch_responses, c->samples_per_batch);
}

/* Reads interrupt and kv_cache, which need weights that arrive during decoding. The prefill speed
 * is a field of each group of samplers (check_prefill). */
static void read_interruptions(cluster_spec *c, cfg_reader *r, const cluster_preset *p) {
  const bool streams = c->unit != UNIT_BATCH;
  const bool changes =
      c->sync == SYNC_PUSH && (streams ? c->partial == PARTIAL_CONTINUE : c->in_flight);
  c->interrupt = field_real(r, "interrupt");
  c->kv_cache = (kv_cache_rule)field_choice_or(r, "kv_cache",
                                               changes ? (int)p->kv_cache : KV_CACHE_RECOMPUTE);
  const char *key = c->interrupt > 0 ? "interrupt" : "kv_cache";
  if (r->status != GL_OK || changes || (c->interrupt <= 0 && c->kv_cache == KV_CACHE_RECOMPUTE))
    return;
  r->status = cfg_fail(cfg_child(r, key), r->err,
                       "%s is about weights that come while responses are decoded, and here none "
                       "are used before these have ended; give sync: push and %s, or leave %s out",
                       key, streams ? "partial: continue" : "in_flight: true", key);
}

/* Reads unit and partial, and computes how they divide a batch. */
static void read_units(cluster_spec *c, cfg_reader *r, size_t group_size) {
  c->unit = (unit_kind)field_choice(r, "unit");
  const bool streams = c->unit != UNIT_BATCH, push = c->sync == SYNC_PUSH;
  const char *unit = field_word("cluster.unit", c->unit);
  c->partial = (partial_rule)field_choice_or(
      r, "partial", streams && push && c->in_flight ? PARTIAL_CONTINUE : PARTIAL_WAIT);
  c->group_size = group_size;
  c->unit_responses = c->unit == UNIT_BATCH   ? c->samples_per_batch
                      : c->unit == UNIT_GROUP ? group_size
                                              : 1;
  if (r->status != GL_OK) return;
  if (!streams && cfg_has(r, "partial"))
    r->status = cfg_fail(cfg_child(r, "partial"), r->err,
                         "partial is about groups and responses that stream; give unit: group or "
                         "unit: response, or say in_flight of batches");
  else if (streams && cfg_has(r, "in_flight"))
    r->status = cfg_fail(cfg_child(r, "in_flight"), r->err,
                         "in_flight is about batches; with unit: %s say partial: wait, continue or "
                         "drop",
                         unit);
  else if (c->partial != PARTIAL_WAIT && !push)
    r->status =
        cfg_fail(cfg_child(r, "partial"), r->err,
                 "partial: %s is about weights that arrive while responses are decoded, and "
                 "with sync: pull they are fetched between %s; give sync: push, or leave "
                 "partial out",
                 field_word("cluster.partial", c->partial), cluster_unit_names(c));
  else if (c->samples_per_batch % c->unit_responses != 0)
    r->status = cfg_fail(cfg_child(r, "samples_per_batch"), r->err,
                         "samples_per_batch is %zu, which no number of groups of %zu responses "
                         "makes; give a multiple of train.group_size",
                         c->samples_per_batch, group_size);
}

/* Refuses cancel_stale without units that stream, without a window, or without stale: discard,
 * whose rule it applies to units in progress. */
static void check_cancels(cluster_spec *c, cfg_reader *r) {
  const char *why = c->unit == UNIT_BATCH    ? "groups or responses that stream; give unit: group"
                    : c->window == INT64_MAX ? "what is staler than `window`; give the cluster one"
                    : c->stale != STALE_DISCARD ? "what would be discarded; give stale: discard"
                                                : NULL;
  if (r->status == GL_OK && c->cancels_stale && why != NULL && cfg_has(r, "cancel_stale"))
    r->status = cfg_fail(cfg_child(r, "cancel_stale"), r->err,
                         "cancel_stale is about %s, or leave it out", why);
  c->cancels_stale =
      c->cancels_stale && why == NULL; /* drops a preset's default that cannot apply */
}

/* Presets with groups have default lengths, unless real responses give the lengths. */
static const cfg_node *lengths_of_preset(const cluster_spec *c, const cluster_preset *p,
                                         const cfg_doc *usual) {
  const bool streams = p->unit != UNIT_BATCH && c->unit != UNIT_BATCH;
  return streams && !c->coupled ? cfg_find(cfg_root(usual), "lengths") : NULL;
}

/* Reads message sizes and the rules shared by all groups. */
static void read_rules(cluster_spec *c, cfg_reader *r, const cluster_preset *p,
                       size_t batch_responses, size_t group_size) {
  c->shared_delays = field_flag(r, "shared_delays");
  c->sync = (sync_rule)field_choice(r, "sync");
  c->in_flight = field_flag(r, "in_flight");
  c->coupled = field_flag(r, "coupled");
  c->ahead = field_integer(r, "ahead");
  /* The gate limits how many batches are started, but batches of slow samplers may still arrive too
   * late. */
  const int64_t gated = p->window < c->ahead ? p->window : c->ahead;
  c->oversample = field_real(r, "oversample");
  c->aborts_surplus = field_choice(r, "surplus");
  const bool late = p->trains_late || (c->oversample > 1 && !c->aborts_surplus);
  c->window = field_integer_or(r, "window", late ? p->window : gated);
  c->stale = (stale_rule)field_choice(r, "stale");
  c->stale_decay = field_real(r, "stale_decay");
  c->cancels_stale = field_flag(r, "cancel_stale");
  c->weights_bytes = field_real(r, "weights_bytes");
  c->rollout_bytes = field_real(r, "rollout_bytes");
  c->bytes_per_token = field_real(r, "bytes_per_token");
  c->samples_per_batch = field_count_or(r, "samples_per_batch", batch_responses);
  read_units(c, r, group_size);
  read_interruptions(c, r, p);
  check_cancels(c, r);
  const cfg_node *prompts = cfg_child(r, "prompt_lengths");
  if (r->status == GL_OK && prompts != NULL && !cfg_is_null(prompts))
    r->status = delay_parse(&c->prompts, prompts, "prompt_lengths", NAN, r->err);
}

/* With `decoding`, tokens_per_s is refused: both define the decoding speed. */
static void check_speed(cfg_reader *r) {
  if (cfg_has(r, "tokens_per_s"))
    r->status = cfg_fail(cfg_child(r, "tokens_per_s"), r->err,
                         "tokens_per_s is the same speed whatever the load, and decoding says how "
                         "it depends on it; leave one of them out");
}

/* `preset_doc`: the default lengths of presets with groups. */
static void read_inherited(inherited *s, cfg_reader *r, const cfg_doc *preset_doc) {
  s->max_delay = NAN;
  s->max_delay_at = cfg_child(r, "max_delay");
  if (s->max_delay_at != NULL && !cfg_is_null(s->max_delay_at)) {
    const bool none = strcmp(cfg_text(s->max_delay_at), "none") == 0;
    s->max_delay = none ? 0 : field_real_or(r, "max_delay", 0);
  }
  response_parse(&s->responses, r, NULL, NULL, s->c->samples_per_batch);
  response_fini(&s->responses); /* groups read the distribution again, each into its own copy */
  s->responses.prompts = s->c->prompts;
  s->responses.group_size = s->c->group_size;
  for (size_t i = 0; i < GROUP_DISTS; ++i) s->dist[i] = cfg_child(r, group_dists[i].key);
  if (s->dist[GROUP_LENGTHS] == NULL)
    s->dist[GROUP_LENGTHS] = lengths_of_preset(s->c, s->preset, preset_doc);
  s->up = cfg_child(r, "up");
  s->down = cfg_child(r, "down");
  s->prefill_at = cfg_child(r, "prefill_tokens_per_s");
  s->has_decoding = cfg_has(r, "decoding");
  s->sizes_weights = cfg_has(r, "weights_bytes");
  s->sizes_batches = cfg_has(r, "rollout_bytes") || cfg_has(r, "bytes_per_token");
  s->unit_at = cfg_child(r, cfg_has(r, "unit") ? "unit" : "preset");
}

static bool has_any_lengths(const cluster_spec *c) {
  for (size_t i = 0; i < c->n_groups; ++i)
    if (c->groups[i].responses.lengths != NULL) return true;
  return false;
}

static gl_status read_cluster(cluster_spec *c, const cfg_node *node, const cfg_doc *preset_doc,
                              size_t groups, size_t group_size, gl_error *err) {
  cfg_reader r;
  cfg_begin(&r, node, "cluster", err);
  const cluster_preset *p = cluster_preset_at((size_t)field_choice(&r, "preset"));
  cfg_defaults(&r, p);
  c->preset = p->name;
  read_rules(c, &r, p, groups * group_size, group_size);
  inherited s = {.c = c, .preset = p};
  read_inherited(&s, &r, preset_doc);
  if (c->coupled) check_coupled(c, &r, groups * group_size);
  const cfg_node *network = cfg_child(&r, "network");
  if (r.status == GL_OK) r.status = network_parse(&c->network, network, err);
  if (r.status == GL_OK) read_samplers(c, &r, &s);
  if (r.status == GL_OK && !c->coupled && !has_any_lengths(c)) check_lengths(&r);
  if (r.status == GL_OK && c->network != NULL && c->network->fanout > 0) check_relay(c, &r);
  if (r.status == GL_OK) read_learner(c, &r, p);
  if (r.status == GL_OK) set_surplus(c, &r);
  const cfg_node *sources = cfg_child(&r, "sources");
  if (r.status == GL_OK) r.status = sources_read(c, sources, err);
  const cfg_node *restarts = cfg_child(&r, "restarts");
  if (r.status == GL_OK) r.status = restarts_read(c, restarts, err);
  const cfg_node *decoding = cfg_child(&r, "decoding");
  if (r.status == GL_OK) r.status = decoding_read(c, decoding, err);
  if (r.status == GL_OK && c->decoding != NULL) check_speed(&r);
  const cfg_node *grader = cfg_child(&r, "grader");
  if (r.status == GL_OK) r.status = grader_read(c, grader, err);
  const cfg_node *environment = cfg_child(&r, "environment");
  if (r.status == GL_OK) r.status = environment_read(c, environment, err);
  const cfg_node *colocated = cfg_child(&r, "colocated");
  const cfg_node *shares = colocated != NULL ? colocated : cfg_child(&r, "samplers");
  if (r.status == GL_OK)
    r.status = colocated_read(c, colocated, shares != NULL ? shares : node, p->colocated, err);
  const cfg_node *compare = cfg_child(&r, "compare");
  if (r.status == GL_OK) r.status = measured_read(&c->measured, compare, err);
  return cfg_end(&r);
}

gl_status cluster_parse(cluster_spec **out, const cfg_node *cluster, size_t groups,
                        size_t group_size, gl_error *err) {
  *out = NULL;
  cfg_doc *usual = NULL;
  gl_status status =
      cfg_load_text(&usual, preset_lengths, strlen(preset_lengths), "the preset", err);
  if (status != GL_OK) return status;
  cluster_spec *c = calloc(1, sizeof *c);
  status = c == NULL ? gl_fail_memory(err, "a cluster")
                     : read_cluster(c, cluster, usual, groups, group_size, err);
  cfg_free(usual);
  if (status == GL_OK)
    *out = c;
  else
    cluster_free(c);
  return status;
}

/* --- presets of one's own --- */

static const char *published_preset(const char *name) {
  const cluster_preset *p;
  for (size_t i = 0; (p = cluster_preset_at(i)) != NULL; ++i)
    if (strcasecmp(p->name, name) == 0) return p->name;
  return NULL;
}

/* A preset must be usable as it stands, with the default size of a batch. */
static gl_status check_preset(const cfg_node *section, gl_error *err) {
  enum { GROUPS = 8, GROUP_SIZE = 8 };
  cluster_spec *spec = NULL;
  const gl_status status = cluster_parse(&spec, section, GROUPS, GROUP_SIZE, err);
  if (status == GL_OK) cluster_free(spec);
  return status;
}

static const own_kind own_presets = {.key = "presets",
                                     .aside = "presets\n",
                                     .section = "cluster",
                                     .base = "preset",
                                     .noun = "preset",
                                     .example = "my_cluster: {base: areal, samplers: 8}",
                                     .published = published_preset,
                                     .check = check_preset};

const field_table sim_own = {.own = &own_presets};

const char *cluster_preset_name(const cluster_spec *spec) {
  return spec->preset;
}

const char *cluster_unit_names(const cluster_spec *spec) {
  switch (spec->unit) {
  case UNIT_BATCH:
    return "batches";
  case UNIT_GROUP:
    return "groups";
  case UNIT_RESPONSE:
    return "responses";
  }
  return "";
}

size_t cluster_unit_groups(const cluster_spec *spec, size_t groups) {
  return spec->unit == UNIT_BATCH ? groups : 1;
}

bool cluster_divides_groups(const cluster_spec *spec) {
  return spec->unit == UNIT_RESPONSE && spec->group_size > 1;
}

unit_draw cluster_unit_draw(const cluster_spec *spec, uint64_t unit, size_t groups) {
  const size_t n_groups = cluster_unit_groups(spec, groups);
  if (!cluster_divides_groups(spec)) return (unit_draw){unit, n_groups, spec->group_size, 0};
  const uint64_t sampler = unit & ~(uint64_t)UINT32_MAX, ordinal = unit & UINT32_MAX;
  return (unit_draw){sampler | ordinal / spec->group_size, 1, 1, ordinal % spec->group_size};
}

double cluster_stale_weight(const cluster_spec *spec, int64_t staleness) {
  if (spec->stale != STALE_DOWNWEIGHT || staleness <= spec->window) return 1;
  return pow(spec->stale_decay, (double)(staleness - spec->window));
}

int64_t cluster_window(const cluster_spec *spec) {
  return spec->window;
}

int64_t cluster_staleness_bound(const cluster_spec *spec) {
  if (spec->stale == STALE_DOWNWEIGHT || spec->window == INT64_MAX) return INT64_MAX;
  if (spec->queue != QUEUE_HETERORL) return spec->window;
  return spec->window < INT64_MAX / 2 ? 2 * spec->window : INT64_MAX;
}

const char *cluster_stale(const cluster_spec *spec) {
  return field_word("cluster.stale", spec->stale);
}

const char *cluster_site_at(const cluster_spec *spec, size_t i) {
  if (spec->network == NULL || i >= spec->network->n_sites) return NULL;
  return spec->network->sites[i].name;
}

const char *cluster_source_at(const cluster_spec *spec, size_t i) {
  return i < spec->n_sources ? spec->sources[i].name : NULL;
}

size_t cluster_samplers(const cluster_spec *spec) {
  return spec->n_samplers;
}

size_t cluster_batches(const cluster_spec *spec) {
  return spec->batches;
}

/* Repair times are skipped if there are no crashes. */
bool cluster_dist_at(const cluster_spec *spec, size_t i, cluster_dist *out) {
  for (group_dist which = 0; which < GROUP_DISTS; ++which)
    for (size_t k = 0; k < spec->n_groups; ++k) {
      const sampler_group *g = &spec->groups[k];
      const delay_dist *dist =
          which == GROUP_MTTR && delay_is_zero(g->mtbf) ? NULL : *cluster_group_dist(g, which);
      *out = (cluster_dist){group_dists[which].field, group_dists[which].unit, k, dist};
      if (dist != NULL && i-- == 0) return true;
    }
  for (size_t k = 0; k < spec->n_sources; ++k) {
    *out = (cluster_dist){"cluster.sources.lengths", "tokens", k, spec->sources[k].lengths};
    if (out->dist != NULL && i-- == 0) return true;
  }
  static const restart_spec none = {.every = NULL};
  const restart_spec *restarts = spec->restarts != NULL ? spec->restarts : &none;
  const cluster_dist others[] = {
      {"cluster.restarts.every", "s", 0, restarts->every},
      {"cluster.restarts.down", "s", 0, restarts->down},
      {"cluster.restarts.recovery", "s", 0, restarts->recovery},
      {"cluster.grader.time", "s", 0, spec->grader != NULL ? spec->grader->time : NULL},
      {"cluster.environment.turns", "", 0,
       spec->environment != NULL ? spec->environment->turns : NULL},
      {"cluster.environment.time", "s", 0,
       spec->environment != NULL ? spec->environment->time : NULL},
      {"cluster.colocated.to_training", "s", 0,
       spec->colocated != NULL ? spec->colocated->to_training : NULL},
      {"cluster.colocated.to_generation", "s", 0,
       spec->colocated != NULL ? spec->colocated->to_generation : NULL},
      {"cluster.learner.step", "s", 0, spec->step},
      {"cluster.learner.eval_pause", "s", 0, spec->pause},
      {"cluster.prompt_lengths", "", 0, spec->prompts}};
  for (size_t k = 0; k < sizeof others / sizeof *others; ++k)
    if (others[k].dist != NULL && i-- == 0) {
      *out = others[k];
      return true;
    }
  return false;
}

const cluster_measurements *cluster_measured(const cluster_spec *spec) {
  return &spec->measured;
}

bool cluster_is_coupled(const cluster_spec *spec) {
  return spec->coupled;
}

bool cluster_changes_in_flight(const cluster_spec *spec) {
  return spec->unit != UNIT_BATCH && spec->partial == PARTIAL_CONTINUE;
}

bool cluster_keeps_cache(const cluster_spec *spec) {
  return spec->kv_cache == KV_CACHE_KEEP;
}

bool cluster_has_lengths(const cluster_spec *spec) {
  for (size_t i = 0; i < spec->n_groups; ++i)
    if (spec->groups[i].responses.lengths == NULL) return false;
  return true;
}

void cluster_free(cluster_spec *spec) {
  if (spec == NULL) return;
  for (size_t i = 0; spec->groups != NULL && i < spec->n_groups; ++i)
    for (group_dist which = 0; which < GROUP_DISTS; ++which)
      delay_free(*cluster_group_dist(&spec->groups[i], which));
  free(spec->groups);
  delay_free(spec->step);
  delay_free(spec->pause);
  delay_free(spec->prompts);
  sections_free(spec);
  free(spec);
}
