/* Simulates published systems and compares update times with the published ones. */
#include "experiments/clock/published.h"

#include "core/config/config.h"
#include "experiments/base/memory.h"
#include "experiments/recipe/recipe.h"
#include "sim/cluster.h"
#include "sim/schedule.h"

#include <stdlib.h>
#include <string.h>

/* Simulates one cluster of the sweep's list, which replaces the recipe's cluster. */
static gl_status published_simulate(published_case *out, const recipe *r, const cfg_node *node,
                                    gl_error *err) {
  cluster_spec *cluster = NULL;
  schedule s = {0};
  gl_status status = cluster_parse(&cluster, node, r->groups, r->group_size, err);
  const measured_staleness *m = status == GL_OK ? cluster_measured_time(cluster) : NULL;
  if (status == GL_OK && m == NULL)
    status = cfg_fail(node, err,
                      "this cluster has no published time; give it compare: {seconds: …, updates: "
                      "…, name: …, source: …}");
  if (status == GL_OK) status = schedule_build(&s, cluster, r->seed, r->steps, err);
  if (status == GL_OK) {
    const cfg_node *preset = cfg_find(node, "preset");
    out->name = must_copy(m->name, "a published case");
    out->source = must_copy(m->source, "a published case");
    out->preset = must_copy(preset != NULL ? cfg_text(preset) : "sync", "a published case");
    out->published_s = m->seconds;
    out->simulated_s = schedule_seconds(&s, m->seconds_of);
  }
  schedule_fini(&s);
  cluster_free(cluster);
  return status;
}

static gl_status published_check_name(const published_cases *cases, const cfg_node *node,
                                      gl_error *err) {
  const char *name = cases->of[cases->n - 1].name;
  for (size_t i = 0; i + 1 < cases->n; ++i)
    if (strcmp(cases->of[i].name, name) == 0)
      return cfg_fail(node, err, "there are two cases called '%s'; give each its compare.name",
                      name);
  return GL_OK;
}

static gl_status add_clusters(published_cases *cases, const recipe *r, const cfg_node *list,
                              gl_error *err) {
  double published = 0, simulated = 0; /* update times of the most recent case with preset sync */
  for (size_t i = 0; i < cfg_size(list); ++i) {
    const cfg_node *node = cfg_at(list, i);
    published_case *c = MUST_ADD(cases->of, cases->n, "published cases");
    gl_status status = published_simulate(c, r, node, err);
    if (status == GL_OK) status = published_check_name(cases, node, err);
    if (status != GL_OK) return status;
    c->in_turns = strcmp(c->preset, "sync") == 0;
    if (i == 0 && !c->in_turns)
      return cfg_fail(node, err,
                      "the first cluster is what others are compared with and has the preset "
                      "sync, not %s",
                      c->preset);
    if (c->in_turns) {
      published = c->published_s;
      simulated = c->simulated_s;
    }
    c->published_speedup = published / c->published_s;
    c->simulated_speedup = simulated / c->simulated_s;
  }
  return GL_OK;
}

gl_status published_cases_add(published_cases *cases, const char *source,
                              const char *const *overrides, size_t n_overrides, gl_error *err) {
  cfg_doc *doc = NULL;
  recipe r;
  gl_status status = recipe_load(&doc, source, overrides, n_overrides, err);
  if (status == GL_OK) status = recipe_read(&r, doc, err);
  if (status == GL_OK) {
    const cfg_node *list = r.sweep != NULL ? cfg_find(r.sweep, "cluster") : NULL;
    if (list == NULL || cfg_kind_of(list) != CFG_LIST || cfg_size(list) == 0)
      status = cfg_fail(r.sweep != NULL ? r.sweep : cfg_root(doc), err,
                        "a recipe of published cases lists clusters: sweep: {cluster: [{preset: "
                        "sync, compare: {seconds: …}}, …]}");
    else
      status = add_clusters(cases, &r, list, err);
  }
  cfg_free(doc);
  return status;
}

void published_cases_fini(published_cases *cases) {
  for (size_t i = 0; i < cases->n; ++i) {
    free(cases->of[i].name);
    free(cases->of[i].preset);
    free(cases->of[i].source);
  }
  free(cases->of);
  *cases = (published_cases){0};
}
