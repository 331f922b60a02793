#include "core/base/json.h"
#include "sim/cluster_spec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A preset is a set of defaults; a recipe may override each. */
typedef struct preset {
  const char *name, *source;
  size_t samplers;
  int one_batch_each; /* an update trains one batch of every sampler */
  sync_rule sync;
  queue_rule queue;
  int64_t ahead, window;
  int in_flight, heterorl_delay;
  double eval_pause;
} preset;

#define UNLIMITED INT64_MAX

static const preset presets[] = {
    {"sync", "generation and training take turns", 1, 1, SYNC_PUSH, QUEUE_FIFO, 0, UNLIMITED, 0, 0,
     0},
    {"one_step_off", "batches of the version before: 2410.18252", 1, 1, SYNC_PUSH, QUEUE_FIFO, 1,
     UNLIMITED, 0, 0, 0},
    {"areal", "bounded staleness, interruptible generation: AReaL, 2505.24298", 4, 1, SYNC_PUSH,
     QUEUE_OLDEST_VERSION, 4, UNLIMITED, 1, 0, 0},
    {"heterorl", "HeteroRL as released with 2508.17850", 4, 0, SYNC_PULL, QUEUE_HETERORL, UNLIMITED,
     32, 0, 1, 600},
    {"fifo", "no gate, first come first trained", 4, 0, SYNC_PUSH, QUEUE_FIFO, UNLIMITED, UNLIMITED,
     0, 0, 0},
    {"lifo", "no gate, newest arrival first", 4, 0, SYNC_PUSH, QUEUE_LIFO, UNLIMITED, UNLIMITED, 0,
     0, 0},
};
enum { N_PRESETS = sizeof presets / sizeof *presets };
static const char *const preset_names[] = {"sync",     "one_step_off", "areal",
                                           "heterorl", "fifo",         "lifo"};
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

static void read_learner(cluster_spec *c, cfg_reader *outer, const preset *p) {
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

static gl_status read_cluster(cluster_spec *c, const cfg_node *node, size_t batch_responses,
                              gl_error *err) {
  cfg_reader r;
  shared_keys s = {.max_delay = NAN};
  cfg_begin(&r, node, "cluster", err);
  const preset *p = &presets[cfg_choice(&r, "preset", 0, preset_names, N_PRESETS)];
  c->preset = p->name;
  s.default_delay = p->heterorl_delay;
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
  c->shared_delays = cfg_bool(&r, "shared_delays", p->heterorl_delay);
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

static int describe_law(cJSON *to, const char *key, const delay_law *law) {
  cJSON *o = cJSON_AddObjectToObject(to, key);
  int ok = o != NULL && json_add_string(o, "law", delay_names[law->kind]) != NULL &&
           json_add_number(o, "a", law->a) != NULL && json_add_number(o, "b", law->b) != NULL &&
           json_add_number(o, "offset", law->offset) != NULL &&
           json_add_number(o, "clamp_lo", law->clamp_lo) != NULL &&
           json_add_number(o, "clamp_hi", law->clamp_hi) != NULL;
  if (ok && law->good != NULL) ok = describe_law(o, "good", law->good);
  if (ok && law->bad != NULL) ok = describe_law(o, "bad", law->bad);
  return ok;
}

static int describe_link(cJSON *to, const char *key, const link_spec *l) {
  cJSON *o = cJSON_AddObjectToObject(to, key);
  return o != NULL && json_add_number(o, "bandwidth", l->bandwidth) != NULL &&
         json_add_number(o, "packet_bytes", l->packet_bytes) != NULL &&
         json_add_number(o, "loss", l->loss) != NULL &&
         json_add_number(o, "loss_bad", l->loss_bad) != NULL &&
         json_add_number(o, "to_bad", l->to_bad) != NULL &&
         json_add_number(o, "to_good", l->to_good) != NULL &&
         json_add_number(o, "rto", l->rto) != NULL &&
         json_add_number(o, "backoff", l->backoff) != NULL &&
         json_add_number(o, "max_retries", l->max_retries) != NULL;
}

static int describe_responses(cJSON *o, const response_spec *s, int coupled) {
  if (s->lengths == NULL && !coupled) return 1;
  return (s->lengths == NULL || describe_law(o, "lengths", s->lengths)) &&
         json_add_number(o, "max_tokens", s->max_tokens) != NULL &&
         json_add_number(o, "tokens_per_s", s->tokens_per_s) != NULL &&
         json_add_number(o, "concurrency", (double)s->concurrency) != NULL &&
         json_add_string(o, "batching", response_batching_names[s->batching]) != NULL;
}

static int describe_group(cJSON *groups, const sampler_group *g, int coupled) {
  cJSON *o = cJSON_CreateObject();
  if (o == NULL || !cJSON_AddItemToArray(groups, o)) {
    cJSON_Delete(o);
    return 0;
  }
  return json_add_number(o, "count", (double)g->count) != NULL &&
         json_add_number(o, "speed", g->speed) != NULL &&
         describe_law(o, "generation", g->generation) &&
         describe_responses(o, &g->responses, coupled) && describe_law(o, "jitter", g->jitter) &&
         describe_law(o, "delay", g->delay) && describe_law(o, "data_delay", g->data_delay) &&
         describe_law(o, "mtbf", g->mtbf) && describe_law(o, "mttr", g->mttr) &&
         describe_link(o, "up", &g->up) && describe_link(o, "down", &g->down);
}

static const char *source_of(const char *name) {
  for (size_t i = 0; i < N_PRESETS; ++i)
    if (strcmp(presets[i].name, name) == 0) return presets[i].source;
  return "";
}

static int describe(cJSON *o, const cluster_spec *c) {
  cJSON *groups = cJSON_AddArrayToObject(o, "samplers");
  int ok = groups != NULL;
  for (size_t i = 0; i < c->n_groups && ok; ++i)
    ok = describe_group(groups, &c->groups[i], c->coupled);
  cJSON *learner = ok ? cJSON_AddObjectToObject(o, "learner") : NULL;
  return learner != NULL && json_add_string(o, "preset", c->preset) != NULL &&
         json_add_string(o, "source", source_of(c->preset)) != NULL &&
         json_add_string(o, "sync", sync_names[c->sync]) != NULL &&
         cJSON_AddBoolToObject(o, "shared_delays", c->shared_delays) != NULL &&
         cJSON_AddBoolToObject(o, "in_flight", c->in_flight) != NULL &&
         cJSON_AddBoolToObject(o, "coupled", c->coupled) != NULL &&
         json_add_number(o, "ahead", (double)c->ahead) != NULL &&
         json_add_number(o, "window", (double)c->window) != NULL &&
         json_add_number(o, "weights_bytes", c->weights_bytes) != NULL &&
         json_add_number(o, "rollout_bytes", c->rollout_bytes) != NULL &&
         json_add_number(o, "bytes_per_token", c->bytes_per_token) != NULL &&
         json_add_number(o, "samples_per_batch", (double)c->samples_per_batch) != NULL &&
         json_add_number(learner, "batches", (double)c->batches) != NULL &&
         json_add_string(learner, "queue", queue_names[c->queue]) != NULL &&
         json_add_number(learner, "lookback", (double)c->lookback) != NULL &&
         json_add_number(learner, "capacity", (double)c->capacity) != NULL &&
         json_add_number(learner, "eval_every", (double)c->eval_every) != NULL &&
         json_add_number(learner, "publish_every", (double)c->publish_every) != NULL &&
         describe_law(learner, "step", c->step) && describe_law(learner, "eval_pause", c->pause);
}

char *cluster_describe(const cluster_spec *spec) {
  cJSON *o = cJSON_CreateObject();
  char *text = o != NULL && describe(o, spec) ? cJSON_PrintUnformatted(o) : NULL;
  cJSON_Delete(o);
  return text;
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
