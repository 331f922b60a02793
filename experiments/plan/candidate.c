/* From a description to candidates, and from a candidate to its recipe. */
#include "experiments/plan/candidate.h"

#include "core/base/json.h"
#include "experiments/plan/law.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CANDIDATES = 50000 };

/* --- the grid --- */

typedef struct grid {
  const plan_description *d;
  plan_candidate *of; /* [n] */
  size_t n, room;
} grid;

static gl_status candidate_add(grid *g, const plan_candidate *c, gl_error *err) {
  if (g->n == MOST_CANDIDATES)
    return cfg_fail(cfg_find(cfg_root(g->d->doc), "plan"), err,
                    "the plan has more than %d candidates; give plan.learner.choices and "
                    "plan.search fewer values",
                    MOST_CANDIDATES);
  if (g->n == g->room) {
    const size_t room = 2 * g->room + 64;
    plan_candidate *more = realloc(g->of, room * sizeof *more);
    if (more == NULL) return gl_fail_memory(err, "candidates");
    g->of = more;
    g->room = room;
  }
  g->of[g->n++] = *c;
  return GL_OK;
}

static gl_status add_rules(grid *g, plan_candidate c, gl_error *err) {
  const plan_description *d = g->d;
  gl_status status = GL_OK;
  const size_t speeds = d->n_decoding > 0 ? d->n_decoding : 1;
  for (c.decoding = 0; c.decoding < speeds; ++c.decoding)
    for (size_t b = 0; b < d->n_batches; ++b)
      for (size_t w = 0; w < d->n_windows; ++w)
        for (size_t p = 0; p < d->n_publish && status == GL_OK; ++p) {
          c.batches = d->batches[b], c.window = d->windows[w], c.publish = d->publish[p];
          if (c.publish <= c.window + 1) status = candidate_add(g, &c, err);
        }
  return status;
}

static gl_status check_links(const plan_candidate *c, const plan_description *d, gl_error *err) {
  for (size_t i = 0; i < d->n_sites; ++i)
    if (i != c->learner_site && c->samplers[i] > 0 && d->links[i][c->learner_site].at == NULL)
      return cfg_fail(cfg_find(cfg_root(d->doc), "plan.sites"), err,
                      "plan.links has no link between %s and %s, where the learner may stand; "
                      "describe it, or say elsewhere it may stand with plan.learner.sites",
                      d->sites[i].name, d->sites[c->learner_site].name);
  return GL_OK;
}

static gl_status add_split(grid *g, size_t site, size_t gpus, gl_error *err) {
  const plan_description *d = g->d;
  plan_candidate c = {.learner_site = site, .learner_gpus = gpus};
  for (size_t i = 0; i < d->n_sites; ++i) {
    c.samplers[i] = (d->sites[i].gpus - (i == site ? gpus : 0)) / d->sampler_gpus;
    c.bandwidth[i] = 1;
  }
  if (plan_candidate_samplers(&c, d) == 0) return GL_OK;
  gl_status status = check_links(&c, d, err);
  return status == GL_OK ? add_rules(g, c, err) : status;
}

gl_status plan_candidates(plan_candidate **out, size_t *n, const plan_description *d,
                          gl_error *err) {
  grid g = {.d = d};
  gl_status status = GL_OK;
  for (size_t site = 0; site < d->n_sites; ++site)
    for (size_t k = 0; k < d->n_choices && status == GL_OK; ++k)
      if (d->sites[site].may_learn && d->choices[k] <= d->sites[site].gpus)
        status = add_split(&g, site, d->choices[k], err);
  if (status == GL_OK && g.n == 0)
    status = cfg_fail(cfg_find(cfg_root(d->doc), "plan"), err,
                      "no split of the GPUs leaves both a learner and a sampler of %zu; look at "
                      "plan.learner.choices, plan.sampler.gpus, and at plan.search, where "
                      "publish_every may be at most window + 1",
                      d->sampler_gpus);
  if (status != GL_OK) {
    free(g.of);
    g = (grid){.d = d};
  }
  *out = g.of;
  *n = g.n;
  return status;
}

size_t plan_candidate_samplers(const plan_candidate *c, const plan_description *d) {
  size_t n = 0;
  for (size_t i = 0; i < d->n_sites; ++i) n += c->samplers[i];
  return n;
}

size_t plan_candidate_group(const plan_candidate *c, const plan_description *d, size_t i) {
  for (size_t site = 0; site < d->n_sites; ++site)
    if (c->samplers[site] > 0 && i-- == 0) return site;
  return SIZE_MAX;
}

/* --- the recipe --- */

static gl_status candidate_set(cfg_doc *doc, gl_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static gl_status candidate_set(cfg_doc *doc, gl_error *err, const char *format, ...) {
  char *text = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&text, &size);
  if (to == NULL) return gl_fail_memory(err, "a recipe");
  va_list rest;
  va_start(rest, format);
  vfprintf(to, format, rest);
  va_end(rest);
  const int whole = fclose(to) == 0;
  gl_status status = whole ? cfg_override(doc, text, err) : gl_fail_memory(err, "a recipe");
  free(text);
  return status;
}

/* The bandwidth of one sampler's link, of a site's n: pushed weights go to all of them at once, so
 * that each has its share, unless they are copied at the site; what samplers send is shared. */
static void print_link(FILE *to, const char *way, const plan_link *l, double share) {
  char a[NUMBER_TEXT_SIZE], b[NUMBER_TEXT_SIZE];
  fprintf(to, ", %s: {", way);
  if (isfinite(l->bandwidth)) fprintf(to, "bandwidth: %s", number_text(l->bandwidth * share, a));
  if (l->loss > 0)
    fprintf(to, "%sloss: %s", isfinite(l->bandwidth) ? ", " : "", number_text(l->loss, b));
  fputc('}', to);
}

static gl_status candidate_print_group(FILE *to, const plan_candidate *c, const plan_description *d,
                                       size_t site, gl_error *err) {
  const plan_link *l = &d->links[site][c->learner_site];
  const double n = (double)c->samplers[site], factor = c->bandwidth[site];
  char number[NUMBER_TEXT_SIZE];
  fprintf(to, "{count: %zu", c->samplers[site]);
  if (d->sites[site].speed != 1)
    fprintf(to, ", speed: %s", number_text(d->sites[site].speed, number));
  if (l->latency != NULL) {
    char *dist = NULL;
    gl_status status = plan_dist_times(&dist, l->latency, 1, err);
    if (status != GL_OK) return status;
    fprintf(to, ", delay: %s, data_delay: %s", dist, dist);
    free(dist);
  }
  if (isfinite(l->bandwidth) || l->loss > 0) {
    print_link(to, "up", l, factor / n);
    print_link(to, "down", l, factor / (d->relay ? 1 : n));
  }
  fputc('}', to);
  return GL_OK;
}

static gl_status set_samplers(cfg_doc *doc, const plan_candidate *c, const plan_description *d,
                              gl_error *err) {
  char *text = NULL;
  size_t size = 0, n = 0;
  FILE *to = open_memstream(&text, &size);
  if (to == NULL) return gl_fail_memory(err, "samplers");
  gl_status status = GL_OK;
  fputs("cluster.samplers=[", to);
  for (size_t site = 0; site < d->n_sites && status == GL_OK; ++site) {
    if (c->samplers[site] == 0) continue;
    if (n++ > 0) fputs(", ", to);
    status = candidate_print_group(to, c, d, site, err);
  }
  fputc(']', to);
  const int whole = fclose(to) == 0;
  if (status == GL_OK && !whole) status = gl_fail_memory(err, "samplers");
  if (status == GL_OK) status = cfg_override(doc, text, err);
  free(text);
  return status;
}

/* Amdahl's law: of the step, the share `serial` stays, the rest is divided among the GPUs. It was
 * measured on one batch, and takes as often as long as there are batches. */
static gl_status set_step(cfg_doc *doc, const plan_candidate *c, const plan_description *d,
                          gl_error *err) {
  const double gpus = (double)d->learner_gpus / (double)c->learner_gpus;
  const double factor =
      (double)c->batches * (d->serial + (1 - d->serial) * gpus) / d->sites[c->learner_site].speed;
  char *dist = NULL;
  gl_status status =
      plan_dist_times(&dist, cfg_find(cfg_root(d->doc), "cluster.learner.step"), factor, err);
  if (status == GL_OK) status = candidate_set(doc, err, "cluster.learner.step=%s", dist);
  free(dist);
  return status;
}

static gl_status set_rules(cfg_doc *doc, const plan_candidate *c, const plan_description *d,
                           gl_error *err) {
  char number[NUMBER_TEXT_SIZE];
  gl_status status = candidate_set(doc, err, "cluster.learner.batches=%lld", (long long)c->batches);
  if (status == GL_OK)
    status = candidate_set(doc, err, "cluster.learner.publish_every=%lld", (long long)c->publish);
  if (status == GL_OK)
    status = candidate_set(doc, err, "cluster.window=%lld", (long long)c->window);
  if (status == GL_OK) status = candidate_set(doc, err, "cluster.ahead=%lld", (long long)c->window);
  if (d->n_decoding == 0 || status != GL_OK) return status;
  const plan_decoding *speed = &d->decoding[c->decoding];
  status = candidate_set(doc, err, "cluster.concurrency=%zu", speed->concurrency);
  if (status == GL_OK)
    status = candidate_set(doc, err, "cluster.tokens_per_s=%s",
                           number_text(speed->tokens_per_s, number));
  return status;
}

gl_status plan_candidate_recipe(cfg_doc **out, const plan_candidate *c, const plan_description *d,
                                gl_error *err) {
  cfg_doc *doc = NULL;
  gl_status status = cfg_copy(&doc, d->doc, err);
  if (status == GL_OK) cfg_remove(doc, "plan");
  if (status == GL_OK) status = set_samplers(doc, c, d, err);
  if (status == GL_OK) status = set_step(doc, c, d, err);
  if (status == GL_OK) status = set_rules(doc, c, d, err);
  if (status != GL_OK) {
    cfg_free(doc);
    doc = NULL;
  }
  *out = doc;
  return status;
}

/* --- in words --- */

char *plan_candidate_split(const plan_candidate *c, const plan_description *d,
                           char text[PLAN_SPLIT_SIZE]) {
  int used = snprintf(text, PLAN_SPLIT_SIZE, "learner %zu at %.40s; samplers", c->learner_gpus,
                      d->sites[c->learner_site].name);
  size_t n = 0;
  for (size_t i = 0; i < d->n_sites && used < PLAN_SPLIT_SIZE; ++i)
    if (c->samplers[i] > 0)
      used += snprintf(text + used, (size_t)(PLAN_SPLIT_SIZE - used), "%s %zu at %.40s",
                       n++ > 0 ? "," : "", c->samplers[i], d->sites[i].name);
  return text;
}
