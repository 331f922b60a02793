/* Library interface to the clock (schedule and summary of a recipe) and to delay distributions
 * (quantiles and samples). */
#include "core/config/config.h"
#include "core/config/fields.h"
#include "library/internal.h"
#include "sim/delay.h"
#include "sim/schedule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct gepolab_simulation {
  schedule schedule;
  char *json;
};

/* The fields of `train` and of the top level that the clock needs; others are ignored. */
typedef struct clock_recipe {
  const cfg_node *cluster;
  size_t groups, group_size, updates;
} clock_recipe;

enum { MOST_GROUPS = 1 << 20, MOST_BATCH = 1 << 28, MOST_UPDATES = 100000000 };

static gl_status read_count(const cfg_node *root, const char *path, size_t fallback, size_t most,
                            size_t *out, gl_error *err) {
  const cfg_node *node = cfg_find(root, path);
  double value = (double)fallback;
  if (node != NULL && (!cfg_number(node, &value) || !(value >= 1) || value > (double)most ||
                       value != (double)(size_t)value))
    return cfg_fail(node, err, "%s is '%s', no whole number from 1 to %zu", path, cfg_text(node),
                    most);
  *out = (size_t)value;
  return GL_OK;
}

/* Refuses a misspelt top-level key of a recipe, as `gepolab sim` does; keys in the tables of fields
 * are valid. */
static gl_status simulation_check_keys(const cfg_node *root, gl_error *err) {
  char names[CFG_READER_MAX_KEYS][32];
  size_t n = 0;
  cfg_reader r;
  cfg_begin_at(&r, root, "", "recipe", err);
  for (size_t i = 0; fields_at(i) != NULL; ++i) {
    const char *path = fields_at(i)->path;
    const size_t length = strcspn(path, ".");
    size_t k = 0;
    while (k < n && (strncmp(names[k], path, length) != 0 || names[k][length] != '\0')) ++k;
    if (k < n) continue;
    if (n == CFG_READER_MAX_KEYS || length >= sizeof names[n])
      return gl_fail(err, GL_EINTERNAL, "the table of fields has more at its top than room for it");
    memcpy(names[n], path, length);
    names[n][length] = '\0';
    (void)cfg_child(&r, names[n++]);
  }
  (void)cfg_child(&r, "world");
  return cfg_end(&r);
}

static gl_status read_recipe(const cfg_node *root, clock_recipe *out, gl_error *err) {
  size_t groups = 0, group_size = 0;
  gl_status status = simulation_check_keys(root, err);
  if (status == GL_OK) status = read_count(root, "train.groups", 8, MOST_GROUPS, &groups, err);
  if (status == GL_OK)
    status = read_count(root, "train.group_size", 8, MOST_GROUPS, &group_size, err);
  if (status == GL_OK) status = read_count(root, "steps", 200, MOST_UPDATES, &out->updates, err);
  if (status != GL_OK) return status;
  if (groups > (size_t)MOST_BATCH / group_size)
    return gl_fail(err, GL_EINPUT, "a batch of %zu groups of %zu is more than %d responses", groups,
                   group_size, (int)MOST_BATCH);
  out->groups = groups;
  out->group_size = group_size;
  out->cluster = cfg_find(root, "cluster");
  return GL_OK;
}

static gl_status simulation_fill(void *self, const cfg_node *root, const void *seed,
                                 gl_error *err) {
  gepolab_simulation *s = self;
  clock_recipe recipe = {.cluster = NULL};
  cluster_spec *cluster = NULL;
  cJSON *document = NULL;
  gl_status status = read_recipe(root, &recipe, err);
  if (status == GL_OK)
    status = cluster_parse(&cluster, recipe.cluster, recipe.groups, recipe.group_size, err);
  if (status == GL_OK && cluster_is_coupled(cluster) && !cluster_has_lengths(cluster))
    status = gl_fail(
        err, GL_EINPUT,
        "the cluster is coupled to a learner, and there is none here: give it a distribution "
        "of `lengths` to stand in for real responses");
  if (status == GL_OK)
    status = schedule_build(&s->schedule, cluster, *(const uint64_t *)seed, recipe.updates, err);
  if (status == GL_OK) status = schedule_to_json(&s->schedule, cluster, &document, err);
  if (status == GL_OK) {
    s->json = cJSON_Print(document);
    if (s->json == NULL) status = gl_fail_memory(err, "the summary");
  }
  cJSON_Delete(document);
  cluster_free(cluster);
  return status;
}

static void simulation_release(void *self) {
  gepolab_simulation *s = self;
  schedule_fini(&s->schedule);
  cJSON_free(s->json);
  free(s);
}

static gepolab_status simulate(gepolab_simulation **out, const library_source *source,
                               uint64_t seed, gepolab_error *err) {
  static const library_kind kind = {"the simulation", sizeof(gepolab_simulation), NULL,
                                    simulation_fill, simulation_release};
  void *made;
  const gepolab_status status = library_new(&made, &kind, source, &seed, err);
  *out = made;
  return status;
}

gepolab_status gepolab_simulate(gepolab_simulation **out, const char *recipe, uint64_t seed,
                                gepolab_error *err) {
  const library_source source = {.name = "recipe", .text = recipe};
  return simulate(out, &source, seed, err);
}

gepolab_status gepolab_simulate_file(gepolab_simulation **out, const char *path, uint64_t seed,
                                     gepolab_error *err) {
  const library_source source = {.name = "path", .file = path};
  return simulate(out, &source, seed, err);
}

gepolab_status gepolab_simulate_own(gepolab_simulation **out, const char *recipe, const char *path,
                                    const char *presets, uint64_t seed, gepolab_error *err) {
  const library_source source = {.name = recipe != NULL ? "recipe" : "path",
                                 .text = recipe,
                                 .file = recipe != NULL ? NULL : path,
                                 .own = presets,
                                 .own_key = "presets"};
  return simulate(out, &source, seed, err);
}

void gepolab_simulation_free(gepolab_simulation *s) {
  if (s != NULL) simulation_release(s);
}

const char *gepolab_simulation_json(const gepolab_simulation *s) {
  return s->json;
}

int64_t gepolab_simulation_batches(const gepolab_simulation *s) {
  return (int64_t)s->schedule.n_batches;
}

/* The update that trains batch b: the last one whose first batch is at or before b. */
static size_t update_of(const schedule *s, size_t b) {
  size_t low = 0, high = s->n_updates;
  while (high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    if (s->updates[middle].first_batch <= b)
      low = middle;
    else
      high = middle;
  }
  return low;
}

int64_t gepolab_simulation_read(const gepolab_simulation *s, int64_t first, int64_t n,
                                gepolab_trained *out) {
  const schedule *c = &s->schedule;
  if (first < 0 || n < 1 || first >= (int64_t)c->n_batches) return 0;
  if (n > (int64_t)c->n_batches - first) n = (int64_t)c->n_batches - first;
  size_t u = update_of(c, (size_t)first);
  for (int64_t k = 0; k < n; ++k) {
    const size_t at = (size_t)(first + k);
    const schedule_batch *b = &c->batches[at];
    while (at >= c->updates[u].first_batch + c->updates[u].n_batches) ++u;
    const int64_t staleness = schedule_staleness(c, &c->updates[u], b);
    out[k] = (gepolab_trained){.step = c->updates[u].step,
                               .version = c->updates[u].version,
                               .drawn_at = c->updates[u].version - staleness,
                               .sampler = b->sampler,
                               .start_s = b->start_s,
                               .generated_s = b->generated_s,
                               .arrived_s = b->arrived_s,
                               .trained_s = b->trained_s,
                               .bytes = b->bytes,
                               .tokens = b->tokens};
  }
  return n;
}

/* --- delay distributions --- */

struct gepolab_delay {
  delay_dist *dist;
};

static gl_status delay_fill(void *self, const cfg_node *from, const void *more, gl_error *err) {
  gepolab_delay *made = self;
  (void)more;
  return delay_parse(&made->dist, from, "delay", NAN, err);
}

static void delay_release(void *self) {
  gepolab_delay *dist = self;
  delay_free(dist->dist);
  free(dist);
}

gepolab_status gepolab_delay_new(gepolab_delay **out, const char *text, gepolab_error *err) {
  static const library_kind kind = {"the distribution", sizeof(gepolab_delay), "cluster.delay",
                                    delay_fill, delay_release};
  const library_source source = {.name = "delay", .text = text};
  void *made;
  const gepolab_status status = library_new(&made, &kind, &source, NULL, err);
  *out = made;
  return status;
}

void gepolab_delay_free(gepolab_delay *dist) {
  if (dist != NULL) delay_release(dist);
}

gepolab_status gepolab_delay_quantile(const gepolab_delay *dist, double p, double *out,
                                      gepolab_error *err) {
  if (!(p > 0 && p < 1))
    return library_fail(err, GL_EINPUT, "the quantile of %g: p lies between 0 and 1", p);
  if (dist->dist->kind == DELAY_GILBERT_ELLIOTT)
    return library_fail(
        err, GL_EINPUT,
        "a Gilbert-Elliott distribution has no quantile: its samples depend on one another");
  *out = delay_quantile(dist->dist, p);
  return GEPOLAB_OK;
}

gepolab_status gepolab_delay_draw(const gepolab_delay *dist, uint64_t seed, int64_t first,
                                  int64_t n, double *out, gepolab_error *err) {
  delay_source source = {.stream = rng_stream_at(seed, RNG_DELAY, 0)};
  const int64_t most = (int64_t)1 << 40;
  if (first < 0 || n < 0 || first > most || n > most - first)
    return library_fail(err, GL_EINPUT,
                        "%lld draws from number %lld on: numbers lie between 0 and 2^40",
                        (long long)n, (long long)first);
  if (dist->dist->kind == DELAY_GILBERT_ELLIOTT)
    for (int64_t k = 0; k < first; ++k) (void)delay_draw(dist->dist, &source);
  else
    source.index = (uint64_t)first;
  for (int64_t k = 0; k < n; ++k) out[k] = delay_draw(dist->dist, &source);
  return GEPOLAB_OK;
}
