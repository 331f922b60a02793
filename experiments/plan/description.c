/* Reads the section `plan` of a recipe. */
#include "experiments/plan/plan.h"

#include "core/base/array.h"
#include "core/config/config.h"
#include "experiments/recipe/recipe.h"
#include "sim/cluster.h"
#include "sim/delay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const cfg_quantity quantities[] = {{"plan.links.latency", "s"},
                                          {"plan.links.bandwidth", "bytes/s"},
                                          {"plan.inside.latency", "s"},
                                          {"plan.inside.bandwidth", "bytes/s"},
                                          {"plan.sampler.decoding.tokens_per_s", "tokens/s"},
                                          {"plan.search.window", "updates"},
                                          {"plan.search.publish_every", "updates"},
                                          {"plan.limits.staleness", "updates"},
                                          {"plan.limits.staleness_p95", "updates"},
                                          {"plan.selection.staleness", "updates"},
                                          {"plan.selection.updates", "updates"},
                                          {"plan.selection.warm_up", "updates"}};

/* --- lists --- */

/* Returns a required list with 1 to `most` items; NULL after an error. */
static const cfg_node *list_of(cfg_reader *r, const char *key, size_t most, const char *what) {
  const cfg_node *list = cfg_child(r, key);
  if (r->status != GL_OK) return NULL;
  if (list == NULL) {
    r->status = r->map != NULL
                    ? cfg_fail(r->map, r->err, "'%s' needs `%s`: %s", r->section, key, what)
                    : gl_fail(r->err, GL_EINPUT, "'%s' needs `%s`: %s", r->section, key, what);
    return NULL;
  }
  if (cfg_kind_of(list) == CFG_LIST && cfg_size(list) > 0 && cfg_size(list) <= most) return list;
  r->status =
      cfg_fail(list, r->err, "'%s.%s' must be a list of 1 to %zu: %s", r->section, key, most, what);
  return NULL;
}

/* Reads a list of whole numbers in ascending order, without repetitions; default: `fallback`. */
static size_t plan_read_values(cfg_reader *r, const char *key, const int64_t *fallback, size_t n,
                               int64_t lo, int64_t out[PLAN_MOST_VALUES]) {
  double *given = NULL;
  const cfg_node *node = cfg_child(r, key);
  size_t m = cfg_doubles(r, key, &given, (double)lo, 1e6), used = 0;
  if (r->status == GL_OK && m > PLAN_MOST_VALUES)
    r->status = cfg_fail(node, r->err, "'%s.%s' has %zu values; at most %d are tried", r->section,
                         key, m, PLAN_MOST_VALUES);
  for (size_t i = 0; i < m && r->status == GL_OK; ++i) {
    if (given[i] != floor(given[i]))
      r->status = cfg_fail(node, r->err, "'%s.%s' holds %g; it must be whole numbers", r->section,
                           key, given[i]);
    out[i] = (int64_t)given[i];
  }
  free(given);
  if (r->status != GL_OK) return 0;
  if (m == 0) memcpy(out, fallback, n * sizeof *out), m = n;
  qsort(out, m, sizeof *out, order_signed);
  for (size_t i = 0; i < m; ++i)
    if (used == 0 || out[used - 1] != out[i]) out[used++] = out[i];
  return used;
}

/* --- sites and links --- */

static gl_status find_site(const plan_description *d, size_t *which, const cfg_node *name,
                           gl_error *err) {
  const char *names[PLAN_MOST_SITES];
  char hint[CFG_HINT_SIZE];
  for (size_t i = 0; i < d->n_sites; ++i) {
    names[i] = d->sites[i].name;
    if (strcmp(names[i], cfg_text(name)) != 0) continue;
    *which = i;
    return GL_OK;
  }
  return cfg_fail(name, err, "there is no site '%s' in plan.sites%s", cfg_text(name),
                  cfg_hint(cfg_text(name), names, d->n_sites, hint));
}

static gl_status plan_read_site(plan_description *d, const cfg_node *node, gl_error *err) {
  plan_site *s = &d->sites[d->n_sites];
  cfg_reader r;
  cfg_begin(&r, node, "plan.sites", err);
  s->name = cfg_string(&r, "name", NULL);
  const cfg_node *gpus = cfg_child(&r, "gpus");
  s->gpus = cfg_count(&r, "gpus", 0, 1, 1000000);
  s->speed = cfg_positive(&r, "speed", 1);
  if (cfg_end(&r) != GL_OK) return r.status;
  if (s->name == NULL || s->name[0] == '\0')
    return cfg_fail(node, err, "a site of plan.sites has no name; give it one, as in name: oregon");
  if (gpus == NULL)
    return cfg_fail(node, err, "site '%s' of plan.sites does not say how many `gpus` it has",
                    s->name);
  for (size_t i = 0; i < d->n_sites; ++i)
    if (strcmp(d->sites[i].name, s->name) == 0)
      return cfg_fail(node, err, "there are two sites '%s' in plan.sites", s->name);
  ++d->n_sites;
  return GL_OK;
}

/* Reads the fields of a link except `between`. */
static void read_link(plan_link *l, cfg_reader *r, const cfg_node *node) {
  delay_dist *dist = NULL;
  l->at = node;
  l->latency = cfg_child(r, "latency");
  l->bandwidth = cfg_positive(r, "bandwidth", INFINITY);
  l->loss = cfg_double(r, "loss", 0, 0, 1);
  if (r->status == GL_OK && l->latency != NULL)
    r->status = delay_parse(&dist, l->latency, "latency", NAN, r->err);
  delay_free(dist);
}

static gl_status read_between(plan_description *d, const cfg_node *node, gl_error *err) {
  plan_link l = {.at = NULL};
  size_t end[2] = {0, 0};
  cfg_reader r;
  cfg_begin(&r, node, "plan.links", err);
  const cfg_node *between = cfg_child(&r, "between");
  if (r.status == GL_OK &&
      (between == NULL || cfg_kind_of(between) != CFG_LIST || cfg_size(between) != 2))
    return cfg_fail(between != NULL ? between : node, err,
                    "a link of plan.links says which two sites it joins: between: [oregon, tokyo]");
  for (size_t i = 0; i < 2 && r.status == GL_OK; ++i)
    r.status = find_site(d, &end[i], cfg_at(between, i), err);
  if (r.status == GL_OK && end[0] == end[1])
    return cfg_fail(between, err,
                    "a link of plan.links joins two sites; what is inside one is `plan.inside`");
  if (r.status == GL_OK && d->links[end[0]][end[1]].at != NULL)
    return cfg_fail(between, err, "there are two links between %s and %s", d->sites[end[0]].name,
                    d->sites[end[1]].name);
  read_link(&l, &r, node);
  if (r.status == GL_OK) d->links[end[0]][end[1]] = d->links[end[1]][end[0]] = l;
  return cfg_end(&r);
}

static gl_status read_network(plan_description *d, cfg_reader *r) {
  plan_link inside = {.bandwidth = INFINITY};
  for (size_t i = 0; i < PLAN_MOST_SITES; ++i)
    for (size_t k = 0; k < PLAN_MOST_SITES; ++k)
      d->links[i][k] = (plan_link){.bandwidth = INFINITY};
  const cfg_node *links = cfg_child(r, "links"), *within = cfg_child(r, "inside");
  if (r->status == GL_OK && links != NULL && cfg_kind_of(links) != CFG_LIST)
    r->status = cfg_fail(links, r->err, "plan.links must be a list of links between two sites");
  for (size_t i = 0; links != NULL && i < cfg_size(links) && r->status == GL_OK; ++i)
    r->status = read_between(d, cfg_at(links, i), r->err);
  if (r->status != GL_OK) return r->status;
  cfg_reader in;
  cfg_begin(&in, within, "plan.inside", r->err);
  read_link(&inside, &in, within);
  r->status = cfg_end(&in);
  for (size_t i = 0; i < d->n_sites; ++i) d->links[i][i] = inside;
  return r->status;
}

/* --- samplers and learner --- */

static int by_concurrency(const void *a, const void *b) {
  const plan_decoding *x = a, *y = b;
  return (x->concurrency > y->concurrency) - (x->concurrency < y->concurrency);
}

static gl_status read_decoding(plan_description *d, const cfg_node *node, gl_error *err) {
  plan_decoding *to = &d->decoding[d->n_decoding];
  cfg_reader r;
  cfg_begin(&r, node, "plan.sampler.decoding", err);
  to->concurrency = cfg_count(&r, "concurrency", 0, 1, 1000000000);
  to->tokens_per_s = cfg_positive(&r, "tokens_per_s", 0);
  const bool complete = cfg_has(&r, "concurrency") && cfg_has(&r, "tokens_per_s");
  if (cfg_end(&r) != GL_OK) return r.status;
  if (!complete)
    return cfg_fail(node, err,
                    "an entry of plan.sampler.decoding is a measurement, {concurrency: 64, "
                    "tokens_per_s: 40}; `gepolab llm profile --distribution lengths` makes it");
  for (size_t i = 0; i < d->n_decoding; ++i)
    if (d->decoding[i].concurrency == to->concurrency)
      return cfg_fail(node, err, "plan.sampler.decoding has two speeds at concurrency %zu",
                      to->concurrency);
  ++d->n_decoding;
  return GL_OK;
}

static gl_status read_sampler(plan_description *d, const cfg_node *node, gl_error *err) {
  cfg_reader r;
  cfg_begin(&r, node, "plan.sampler", err);
  d->sampler_gpus = cfg_count(&r, "gpus", 1, 1, 1000000);
  if (r.status == GL_OK && cfg_has(&r, "decoding")) {
    const cfg_node *list = list_of(&r, "decoding", PLAN_MOST_VALUES, "measured decoding speeds");
    for (size_t i = 0; list != NULL && i < cfg_size(list) && r.status == GL_OK; ++i)
      r.status = read_decoding(d, cfg_at(list, i), err);
  }
  qsort(d->decoding, d->n_decoding, sizeof *d->decoding, by_concurrency);
  return cfg_end(&r);
}

/* Reads the list of sites where the learner may be; without the list, every site is allowed. */
static gl_status plan_read_learner_sites(plan_description *d, cfg_reader *r) {
  const bool stated = cfg_has(r, "sites");
  const cfg_node *list =
      stated ? list_of(r, "sites", PLAN_MOST_SITES, "sites where the learner may be") : NULL;
  for (size_t i = 0; i < d->n_sites; ++i) d->sites[i].may_learn = !stated;
  for (size_t i = 0; list != NULL && i < cfg_size(list) && r->status == GL_OK; ++i) {
    size_t which = 0;
    r->status = find_site(d, &which, cfg_at(list, i), r->err);
    if (r->status == GL_OK) d->sites[which].may_learn = true;
  }
  if (!stated) cfg_child(r, "sites");
  return r->status;
}

/* The default: all multiples of the measured number of GPUs that fit some site. */
static size_t default_choices(const plan_description *d, int64_t out[PLAN_MOST_VALUES]) {
  size_t n = 0, largest = 0;
  for (size_t i = 0; i < d->n_sites; ++i)
    if (d->sites[i].may_learn && d->sites[i].gpus > largest) largest = d->sites[i].gpus;
  for (size_t g = d->learner_gpus; g <= largest && n < PLAN_MOST_VALUES; g += d->learner_gpus)
    out[n++] = (int64_t)g;
  return n;
}

static gl_status plan_read_learner(plan_description *d, const cfg_node *node, gl_error *err) {
  int64_t fallback[PLAN_MOST_VALUES], chosen[PLAN_MOST_VALUES];
  cfg_reader r;
  cfg_begin(&r, node, "plan.learner", err);
  d->learner_gpus = cfg_count(&r, "gpus", 1, 1, 1000000);
  d->serial = cfg_double(&r, "serial", 0, 0, 1);
  if (plan_read_learner_sites(d, &r) != GL_OK) return r.status;
  const size_t n = default_choices(d, fallback);
  d->n_choices = plan_read_values(&r, "choices", fallback, n, 1, chosen);
  for (size_t i = 0; i < d->n_choices; ++i) d->choices[i] = (size_t)chosen[i];
  if (r.status == GL_OK && d->n_choices == 0)
    return cfg_fail(node, err,
                    "plan.learner: the step was measured on %zu GPUs, and no site where the "
                    "learner may be has as many; say which numbers to try, choices: [1, 2]",
                    d->learner_gpus);
  return cfg_end(&r);
}

/* --- values to try, limits, error rate --- */

static gl_status plan_read_search(plan_description *d, const cfg_node *node, gl_error *err) {
  static const int64_t batches[] = {1, 2}, windows[] = {1, 2, 4, 8}, publish[] = {1, 2};
  cfg_reader r;
  cfg_begin(&r, node, "plan.search", err);
  d->n_batches = plan_read_values(&r, "batches", batches, 2, 1, d->batches);
  d->n_windows = plan_read_values(&r, "window", windows, 4, 0, d->windows);
  d->n_publish = plan_read_values(&r, "publish_every", publish, 2, 1, d->publish);
  return cfg_end(&r);
}

static gl_status plan_read_limits(plan_limits *l, const cfg_node *node, gl_error *err) {
  cfg_reader r;
  cfg_begin(&r, node, "plan.limits", err);
  l->staleness = cfg_double(&r, "staleness", INFINITY, 0, 1e9);
  l->staleness_p95 = cfg_double(&r, "staleness_p95", INFINITY, 0, 1e9);
  l->throughput = cfg_double(&r, "throughput", 0, 0, 1e15);
  return cfg_end(&r);
}

static gl_status read_rigour(plan_rigour *g, const cfg_node *node, gl_error *err) {
  cfg_reader r;
  cfg_begin(&r, node, "plan.selection", err);
  g->error_rate = cfg_double(&r, "error_rate", 0.05, 1e-6, 0.5);
  g->throughput = cfg_double(&r, "throughput", 0.02, 1e-4, 0.5);
  g->staleness = cfg_double(&r, "staleness", 0.1, 1e-3, 1e3);
  g->replicates = cfg_count(&r, "replicates", 12, 3, PLAN_MOST_REPLICATES);
  g->most = cfg_count(&r, "most", PLAN_MOST_REPLICATES, 3, PLAN_MOST_REPLICATES);
  g->updates = cfg_count(&r, "updates", 64, 8, 1000000);
  g->warm_up = cfg_count(&r, "warm_up", g->updates / 4, 0, 1000000);
  if (r.status == GL_OK && g->most < g->replicates)
    r.status = cfg_fail(node, err, "plan.selection: `most` is %zu, less than `replicates`, %zu",
                        g->most, g->replicates);
  if (r.status == GL_OK && g->warm_up + 4 > g->updates)
    r.status = cfg_fail(node, err,
                        "plan.selection: of %zu updates %zu are not measured; at least 4 must be "
                        "left",
                        g->updates, g->warm_up);
  return cfg_end(&r);
}

static gl_status plan_read_plan(plan_description *d, const cfg_node *plan, gl_error *err) {
  cfg_reader r;
  cfg_begin(&r, plan, "plan", err);
  const cfg_node *sites =
      list_of(&r, "sites", PLAN_MOST_SITES, "the GPUs there are, as in - {name: oregon, gpus: 32}");
  for (size_t i = 0; sites != NULL && i < cfg_size(sites) && r.status == GL_OK; ++i)
    r.status = plan_read_site(d, cfg_at(sites, i), err);
  if (r.status == GL_OK) read_network(d, &r);
  const cfg_node *sampler = cfg_child(&r, "sampler"), *trainer = cfg_child(&r, "learner");
  const cfg_node *search = cfg_child(&r, "search"), *limits = cfg_child(&r, "limits");
  const cfg_node *selection = cfg_child(&r, "selection");
  d->relay = cfg_bool(&r, "relay", 1);
  if (r.status == GL_OK) r.status = read_sampler(d, sampler, err);
  if (r.status == GL_OK) r.status = plan_read_learner(d, trainer, err);
  if (r.status == GL_OK) r.status = plan_read_search(d, search, err);
  if (r.status == GL_OK) r.status = plan_read_limits(&d->limits, limits, err);
  if (r.status == GL_OK) r.status = read_rigour(&d->rigour, selection, err);
  return cfg_end(&r);
}

/* Requires the measured speeds, which have no sensible default. */
static gl_status require_measured(const plan_description *d, gl_error *err) {
  const cfg_node *root = cfg_root(d->doc);
  if (cfg_find(root, "cluster.learner.step") == NULL)
    return cfg_fail(cfg_find(root, "plan"), err,
                    "a plan needs cluster.learner.step, the time of an update on one batch and %zu "
                    "GPU%s (plan.learner.gpus); `gepolab llm profile` measures it",
                    d->learner_gpus, d->learner_gpus == 1 ? "" : "s");
  if (d->n_decoding == 0 && cfg_find(root, "cluster.generation") == NULL &&
      cfg_find(root, "cluster.tokens_per_s") == NULL && cfg_find(root, "cluster.decoding") == NULL)
    return cfg_fail(
        cfg_find(root, "plan"), err,
        "a plan needs to know how fast a sampler is: plan.sampler.decoding, or "
        "cluster.tokens_per_s or decoding with concurrency, or cluster.generation; `gepolab llm "
        "profile` measures them");
  return GL_OK;
}

/* Refuses fields of the cluster that the plan would overwrite. */
static gl_status refuse_chosen(const plan_description *d, const cfg_node *cluster, gl_error *err) {
  static const struct {
    const char *field, *instead;
  } chosen[] = {{"samplers", "plan.sites, from which the samplers are made"},
                {"window", "plan.search.window"},
                {"ahead", "plan.search.window"},
                {"coupled", "a distribution of `lengths`; no learner runs beside a plan"},
                {"learner.batches", "plan.search.batches"},
                {"learner.tokens", "plan.search.batches"},
                {"learner.publish_every", "plan.search.publish_every"}};
  static const char *const measured[] = {"concurrency", "tokens_per_s", "decoding"};
  for (size_t i = 0; i < sizeof chosen / sizeof *chosen; ++i) {
    const cfg_node *at = cfg_find(cluster, chosen[i].field);
    if (at != NULL && !cfg_is_null(at))
      return cfg_fail(at, err, "a plan chooses cluster.%s itself; leave it out and give %s",
                      chosen[i].field, chosen[i].instead);
  }
  for (size_t i = 0; i < 3 && d->n_decoding > 0; ++i) {
    const cfg_node *at = cfg_find(cluster, measured[i]);
    if (at != NULL && !cfg_is_null(at))
      return cfg_fail(at, err,
                      "cluster.%s and plan.sampler.decoding both say how fast a sampler decodes; "
                      "leave one of them out",
                      measured[i]);
  }
  return GL_OK;
}

/* Reads the recipe's own sections as a run would, so that their errors are reported with position.
 */
static gl_status plan_read_recipe(plan_description *d, gl_error *err) {
  cfg_doc *copy = NULL;
  cluster_spec *spec = NULL;
  recipe r;
  gl_status status = cfg_copy(&copy, d->doc, err);
  if (status == GL_OK) cfg_remove(copy, "plan");
  if (status == GL_OK) status = recipe_read(&r, copy, err);
  if (status == GL_OK && (r.sweep != NULL || r.tune != NULL))
    status = cfg_fail(r.sweep != NULL ? r.sweep : r.tune, err,
                      "a description of a cluster has no sweep and no tuning; add them to the "
                      "recipe that `gepolab plan -o` writes");
  if (status == GL_OK && r.cluster != NULL) status = refuse_chosen(d, r.cluster, err);
  if (status == GL_OK) status = require_measured(d, err);
  if (status == GL_OK) status = cluster_parse(&spec, r.cluster, r.groups, r.group_size, err);
  if (status == GL_OK) {
    d->seed = r.seed;
    d->groups = r.groups;
    d->group_size = r.group_size;
    snprintf(d->algorithm, sizeof d->algorithm, "%s", r.algorithm.name);
    const cfg_node *name = cfg_find(cfg_root(d->doc), "name");
    d->name = name != NULL ? cfg_text(name) : "cluster";
  }
  cluster_free(spec);
  cfg_free(copy);
  return status;
}

gl_status plan_describe(plan_description *out, cfg_doc *doc, gl_error *err) {
  *out = (plan_description){.doc = doc};
  gl_status status =
      cfg_resolve_quantities(doc, quantities, sizeof quantities / sizeof *quantities, err);
  if (status != GL_OK) return status;
  const cfg_node *plan = cfg_find(cfg_root(doc), "plan");
  if (plan == NULL || cfg_is_null(plan))
    return cfg_fail(cfg_root(doc), err,
                    "this recipe has no section `plan` that says which GPUs there are; "
                    "experiments/RECIPES.md describes it, and `gepolab plan one_node` has one");
  status = plan_read_plan(out, plan, err);
  return status == GL_OK ? plan_read_recipe(out, err) : status;
}

/* --- fields --- */

/* The fields of a description's section `plan`, for `gepolab list fields plan` and
 * experiments/RECIPES.md. Only `gepolab plan` reads them. */

static const plan_field fields[] = {
    {"plan", "section", "required", "",
     "the available GPUs, the settings to compare, and the limits"},
    {"plan.sites", "list", "required", "", "the places with GPUs, up to 32"},
    {"plan.sites.name", "text", "required", "", "name of the site"},
    {"plan.sites.gpus", "number", "required", "", "GPUs there"},
    {"plan.sites.speed", "number", "1", "",
     "speed of a GPU there, relative to the one that was measured: it decodes and trains so much "
     "faster"},
    {"plan.inside", "section", "nothing takes time", "", "the network within every site"},
    {"plan.inside.latency", "distribution", "`cluster.delay` and `data_delay`", "s",
     "time on the way, in each direction"},
    {"plan.inside.bandwidth", "number", "no limit", "bytes/s", "of each site as a whole"},
    {"plan.inside.loss", "number", "0", "", "probability that a packet is lost"},
    {"plan.links", "list", "none", "",
     "the network between two sites; one is needed from every site with samplers to the learner's"},
    {"plan.links.between", "list", "required", "", "the names of the two sites"},
    {"plan.links.latency", "distribution", "`cluster.delay` and `data_delay`", "s",
     "time on the way, in each direction"},
    {"plan.links.bandwidth", "number", "no limit", "bytes/s",
     "of the site as a whole. Samplers share it for what they send; weights take all of it "
     "(`relay: true`) or share it"},
    {"plan.links.loss", "number", "0", "", "probability that a packet is lost"},
    {"plan.relay", "flag", "true", "",
     "weights cross to a site once and are copied there; false: once for every sampler"},
    {"plan.sampler", "section", "one GPU each", "", "what a sampler (an inference engine) is"},
    {"plan.sampler.gpus", "number", "1", "", "GPUs of one sampler"},
    {"plan.sampler.decoding", "list",
     "`cluster.concurrency` with `tokens_per_s` or `decoding`, or `generation`", "",
     "measured speeds, of which the plan chooses one and guesses none between"},
    {"plan.sampler.decoding.concurrency", "number", "required", "",
     "responses that a sampler decodes at a time"},
    {"plan.sampler.decoding.tokens_per_s", "number", "required", "tokens/s",
     "speed of each of them"},
    {"plan.learner", "section", "one GPU, anywhere", "", "what the learner may be"},
    {"plan.learner.gpus", "number", "1", "",
     "GPUs that `cluster.learner.step` was measured on, with one batch"},
    {"plan.learner.serial", "number", "0", "", "fraction of a step that more GPUs do not shorten"},
    {"plan.learner.choices", "list", "multiples of `gpus`", "", "numbers of GPUs to try"},
    {"plan.learner.sites", "list", "all", "", "sites where the learner may be"},
    {"plan.search", "section", "see its fields", "", "the values to try"},
    {"plan.search.batches", "list", "[1, 2]", "", "batches of an update"},
    {"plan.search.window", "list", "[1, 2, 4, 8]", "updates",
     "largest staleness, as `cluster.window` and `cluster.ahead`"},
    {"plan.search.publish_every", "list", "[1, 2]", "updates",
     "updates between two versions that samplers may get"},
    {"plan.limits", "section", "none", "",
     "what the recommendation must keep; without any, the fastest candidate is recommended"},
    {"plan.limits.staleness", "number", "none", "updates", "largest mean staleness"},
    {"plan.limits.staleness_p95", "number", "none", "updates",
     "largest 95th percentile of staleness"},
    {"plan.limits.throughput", "number", "none", "responses/h",
     "least throughput; alone, the least stale candidate is wanted instead of the fastest"},
    {"plan.selection", "section", "see its fields", "", "how sure the recommendation is"},
    {"plan.selection.error_rate", "number", "0.05", "",
     "probability that a candidate within the limits is better by more than the indifference zone"},
    {"plan.selection.throughput", "number", "0.02", "",
     "indifference zone of throughput, a fraction of the recommended candidate's; candidates "
     "within it are as good, and the least stale of them is recommended"},
    {"plan.selection.staleness", "number", "0.1", "updates",
     "indifference zone of staleness, and the tolerance of its limits"},
    {"plan.selection.replicates", "number", "12", "",
     "simulations of a candidate in the first stage"},
    {"plan.selection.most", "number", "1000", "",
     "simulations of a candidate at most; where they do not suffice, the zone that they suffice "
     "for is printed"},
    {"plan.selection.updates", "number", "64", "updates", "of a simulation"},
    {"plan.selection.warm_up", "number", "a quarter of `updates`", "updates",
     "of a simulation, at its beginning, that are not measured"},
};

const plan_field *plan_field_at(size_t i) {
  return i < sizeof fields / sizeof *fields ? &fields[i] : NULL;
}
