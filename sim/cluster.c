/* Reading the cluster section of a recipe. */
#include "sim/cluster.h"

#include "sim/cluster_spec.h"
#include "sim/presets.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const sync_names[] = {"pull", "push"};
static const char *const queue_names[] = {"heterorl", "fifo", "lifo", "oldest_version"};

/* HeteroRL's own delays: log-normal, 60 to 1800 s at 99.5 %, clamped. */
static gl_status heterorl_delay(delay_law **out, double max_delay, const cfg_node *at,
                                gl_error *err) {
  double u = isnan(max_delay) ? 1800 : max_delay;
  *out = delay_constant(0);
  if (*out == NULL) return gl_fail_memory(err, "a delay law");
  if (u == 0) return GL_OK;
  if (!(u > 60))
    return cfg_fail(at, err,
                    "max_delay is %g; it must be above 60, the lower end of the default delays (or "
                    "0 for none); give delay: {law: lognormal, interval: [l, u]} for others",
                    u);
  gl_status status = delay_from_interval(*out, DELAY_LOGNORMAL, 60, u, 0.995, err);
  (*out)->clamp_lo = 60;
  (*out)->clamp_hi = u;
  return status;
}

/* The law under key, or the fallback's copy: group keys fall back on the cluster's. */
static void read_law(cfg_reader *r, const char *key, const cfg_node *outer, double fallback,
                     double max_delay, int must_be_positive, delay_law **out) {
  const cfg_node *node = cfg_child(r, key);
  if (node == NULL) node = outer;
  if (r->status != GL_OK) return;
  if (node != NULL)
    r->status = delay_parse(out, node, key, max_delay, r->err);
  else if ((*out = delay_constant(fallback)) == NULL)
    r->status = gl_fail_memory(r->err, "a law");
  if (r->status == GL_OK && must_be_positive && delay_is_zero(*out))
    r->status =
        cfg_fail(node, r->err, "%s must take some time; give a positive number of seconds", key);
}

/* The cluster's own laws, which groups inherit. */
typedef struct shared_keys {
  const cfg_node *generation, *jitter, *delay, *data_delay, *mtbf, *mttr, *up, *down, *max_delay_at;
  const cfg_node *lengths;
  response_spec responses; /* without its law */
  size_t n_responses;
  double weights_bytes, rollout_bytes, bytes_per_token;
  double max_delay; /* NaN: not given */
  int default_delay, coupled;
} shared_keys;

static gl_status read_group(sampler_group *g, const cfg_node *node, size_t count,
                            const shared_keys *s, gl_error *err) {
  cfg_reader r;
  cfg_begin(&r, node, "cluster.samplers", err);
  g->count = node == NULL ? count : cfg_count(&r, "count", 1, 1, 10000000);
  g->speed = cfg_positive(&r, "speed", 1);
  response_parse(&g->responses, &r, &s->responses, s->lengths, s->n_responses);
  int has_lengths = g->responses.lengths != NULL || s->coupled;
  read_law(&r, "generation", s->generation, has_lengths ? 0 : 120, NAN, !has_lengths,
           &g->generation);
  double largest = s->rollout_bytes;
  if (has_lengths) largest += s->bytes_per_token * g->responses.max_tokens * (double)s->n_responses;
  read_law(&r, "jitter", s->jitter, 1, NAN, 1, &g->jitter);
  read_law(&r, "data_delay", s->data_delay, 0, NAN, 0, &g->data_delay);
  read_law(&r, "mtbf", s->mtbf, 0, NAN, 0, &g->mtbf);
  read_law(&r, "mttr", s->mttr, 600, NAN, 0, &g->mttr);
  const cfg_node *up = cfg_child(&r, "up"), *down = cfg_child(&r, "down");
  if (r.status == GL_OK)
    r.status = link_parse(&g->up, up != NULL ? up : s->up, "cluster.up", largest, err);
  if (r.status == GL_OK)
    r.status =
        link_parse(&g->down, down != NULL ? down : s->down, "cluster.down", s->weights_bytes, err);
  int own = cfg_has(&r, "delay") || s->delay != NULL;
  if (!own && r.status == GL_OK && (s->default_delay || s->max_delay > 0)) {
    cfg_child(&r, "delay");
    r.status = heterorl_delay(&g->delay, s->max_delay, s->max_delay_at, err);
  } else {
    read_law(&r, "delay", s->delay, 0, own ? s->max_delay : NAN, 0, &g->delay);
  }
  return cfg_end(&r);
}

static gl_status read_samplers(cluster_spec *c, cfg_reader *r, const shared_keys *s,
                               size_t fallback) {
  const cfg_node *node = cfg_child(r, "samplers");
  int is_list = node != NULL && cfg_kind_of(node) == CFG_LIST;
  size_t n = is_list ? cfg_size(node) : 1;
  size_t count = is_list ? 0 : cfg_count(r, "samplers", fallback, 1, 10000000);
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

static void read_learner(cluster_spec *c, cfg_reader *outer, const cluster_preset *p) {
  cfg_reader r;
  const cfg_node *node = cfg_child(outer, "learner");
  if (outer->status != GL_OK) return;
  cfg_begin(&r, node, "cluster.learner", outer->err);
  c->batches = cfg_count(&r, "batches", p->one_batch_each ? c->n_samplers : 1, 1, 10000000);
  c->queue = (queue_rule)cfg_choice(&r, "queue", (int)p->queue, queue_names, 4);
  c->lookback = cfg_count(&r, "lookback", 64, 1, 1000000);
  c->capacity = cfg_count(&r, "capacity", 0, 0, SIZE_MAX);
  c->eval_every = cfg_int(&r, "eval_every", 64, 1, INT64_MAX);
  c->publish_every = cfg_int(&r, "publish_every", 1, 1, 1000000);
  read_law(&r, "step", NULL, 30, NAN, 0, &c->step);
  read_law(&r, "eval_pause", NULL, p->eval_pause, NAN, 0, &c->pause);
  if (r.status == GL_OK && c->capacity != 0 && c->capacity < c->batches)
    r.status = cfg_fail(node, outer->err,
                        "capacity %zu holds fewer than the %zu batches of an "
                        "update",
                        c->capacity, c->batches);
  outer->status = cfg_end(&r);
}

/* How far each response of a batch has come when new weights arrive depends on them all; the
 * fraction of a segment stands for none of them. */
static void check_coupled(const cluster_spec *c, cfg_reader *r, size_t batch_responses) {
  if (r->status == GL_OK && c->in_flight) {
    const cfg_node *given = cfg_child(r, "in_flight");
    r->status = cfg_fail(given != NULL ? given : cfg_child(r, "coupled"), r->err,
                         "a coupled clock cannot change weights while a batch is generated%s; "
                         "give the cluster in_flight: false, or leave coupled out",
                         given != NULL ? "" : ", as this preset does");
  }
  if (r->status == GL_OK && c->samples_per_batch != batch_responses)
    r->status = cfg_fail(cfg_child(r, "samples_per_batch"), r->err,
                         "a coupled clock takes the responses there are, train.groups x "
                         "train.group_size = %zu, but samples_per_batch is %zu; leave it out",
                         batch_responses, c->samples_per_batch);
}

static const cluster_preset *read_preset(cfg_reader *r) {
  enum { MOST = 64 };
  const char *names[MOST];
  int n = 0;
  for (; n < MOST && cluster_preset_at((size_t)n) != NULL; ++n)
    names[n] = cluster_preset_at((size_t)n)->name;
  assert(cluster_preset_at((size_t)n) == NULL);
  return cluster_preset_at((size_t)cfg_choice(r, "preset", 0, names, n));
}

static gl_status read_cluster(cluster_spec *c, const cfg_node *node, size_t batch_responses,
                              gl_error *err) {
  cfg_reader r;
  shared_keys s = {.max_delay = NAN};
  cfg_begin(&r, node, "cluster", err);
  const cluster_preset *p = read_preset(&r);
  c->preset = p->name;
  s.default_delay = p->heterorl_delays;
  s.max_delay_at = cfg_child(&r, "max_delay");
  if (s.max_delay_at != NULL && !cfg_is_null(s.max_delay_at)) {
    int none = strcmp(cfg_text(s.max_delay_at), "none") == 0;
    s.max_delay = none ? 0 : cfg_double(&r, "max_delay", 0, 0, 1e12);
  }
  s.generation = cfg_child(&r, "generation");
  s.jitter = cfg_child(&r, "jitter");
  s.delay = cfg_child(&r, "delay");
  s.data_delay = cfg_child(&r, "data_delay");
  s.mtbf = cfg_child(&r, "mtbf");
  s.mttr = cfg_child(&r, "mttr");
  s.up = cfg_child(&r, "up");
  s.down = cfg_child(&r, "down");
  c->shared_delays = cfg_bool(&r, "shared_delays", p->heterorl_delays);
  c->sync = (sync_rule)cfg_choice(&r, "sync", (int)p->sync, sync_names, 2);
  c->in_flight = cfg_bool(&r, "in_flight", p->in_flight);
  c->coupled = s.coupled = cfg_bool(&r, "coupled", 0);
  c->ahead = cfg_int(&r, "ahead", p->ahead, 0, INT64_MAX);
  /* The gate bounds how many batches are begun; slow samplers' may still arrive too late. */
  c->window = cfg_int(&r, "window", p->window < c->ahead ? p->window : c->ahead, 0, INT64_MAX);
  c->weights_bytes = cfg_double(&r, "weights_bytes", 0, 0, 1e18);
  c->rollout_bytes = cfg_double(&r, "rollout_bytes", 0, 0, 1e18);
  c->bytes_per_token = cfg_double(&r, "bytes_per_token", 0, 0, 1e9);
  c->samples_per_batch = cfg_count(&r, "samples_per_batch", batch_responses, 1, 1000000000);
  response_parse(&s.responses, &r, NULL, NULL, c->samples_per_batch);
  response_fini(&s.responses); /* groups read the law, each its own */
  s.lengths = cfg_child(&r, "lengths");
  s.n_responses = c->samples_per_batch;
  s.bytes_per_token = c->bytes_per_token;
  s.weights_bytes = c->weights_bytes;
  s.rollout_bytes = c->rollout_bytes;
  if (c->coupled) check_coupled(c, &r, batch_responses);
  if (r.status == GL_OK) read_samplers(c, &r, &s, p->samplers);
  if (r.status == GL_OK) read_learner(c, &r, p);
  const cfg_node *compare = cfg_child(&r, "compare");
  if (r.status == GL_OK) r.status = measured_read(&c->measured, compare, err);
  return cfg_end(&r);
}

gl_status cluster_parse(cluster_spec **out, const cfg_node *cluster, size_t batch_responses,
                        gl_error *err) {
  *out = NULL;
  cluster_spec *c = calloc(1, sizeof *c);
  if (c == NULL) return gl_fail_memory(err, "a cluster");
  gl_status status = read_cluster(c, cluster, batch_responses, err);
  if (status == GL_OK)
    *out = c;
  else
    cluster_free(c);
  return status;
}

size_t cluster_samplers(const cluster_spec *spec) {
  return spec->n_samplers;
}

/* A group's law of each kind; NULL where it has none. Where nothing crashes nothing is repaired. */
enum { GROUP_LAWS = 7, LEARNER_LAWS = 2 };

static cluster_law group_law(const cluster_spec *spec, size_t which, size_t group) {
  const sampler_group *g = &spec->groups[group];
  const cluster_law of[GROUP_LAWS] = {
      {"cluster.delay", "s", group, g->delay},
      {"cluster.data_delay", "s", group, g->data_delay},
      {"cluster.generation", "s", group, g->generation},
      {"cluster.jitter", "", group, g->jitter},
      {"cluster.lengths", "tokens", group, g->responses.lengths},
      {"cluster.mtbf", "s", group, g->mtbf},
      {"cluster.mttr", "s", group, delay_is_zero(g->mtbf) ? NULL : g->mttr}};
  return of[which];
}

int cluster_law_at(const cluster_spec *spec, size_t i, cluster_law *out) {
  for (size_t which = 0; which < GROUP_LAWS; ++which)
    for (size_t group = 0; group < spec->n_groups; ++group) {
      *out = group_law(spec, which, group);
      if (out->law != NULL && i-- == 0) return 1;
    }
  const cluster_law of_learner[LEARNER_LAWS] = {
      {"cluster.learner.step", "s", 0, spec->step},
      {"cluster.learner.eval_pause", "s", 0, spec->pause}};
  if (i < LEARNER_LAWS) *out = of_learner[i];
  return i < LEARNER_LAWS;
}

const measured_staleness *cluster_measured(const cluster_spec *spec) {
  return spec->measured.n > 0 ? &spec->measured : NULL;
}

int cluster_is_coupled(const cluster_spec *spec) {
  return spec->coupled;
}

int cluster_has_lengths(const cluster_spec *spec) {
  for (size_t i = 0; i < spec->n_groups; ++i)
    if (spec->groups[i].responses.lengths == NULL) return 0;
  return 1;
}

void cluster_free(cluster_spec *spec) {
  if (spec == NULL) return;
  for (size_t i = 0; spec->groups != NULL && i < spec->n_groups; ++i) {
    delay_free(spec->groups[i].generation);
    response_fini(&spec->groups[i].responses);
    delay_free(spec->groups[i].jitter);
    delay_free(spec->groups[i].delay);
    delay_free(spec->groups[i].data_delay);
    delay_free(spec->groups[i].mtbf);
    delay_free(spec->groups[i].mttr);
  }
  free(spec->groups);
  delay_free(spec->step);
  delay_free(spec->pause);
  measured_fini(&spec->measured);
  free(spec);
}
