/* Enumerates the candidates of a description, and builds the recipe of a candidate. */
#include "experiments/plan/plan.h"

#include "core/config/config.h"
#include "experiments/base/memory.h"
#include "experiments/base/print_json.h"
#include "experiments/recipe/recipe.h"
#include "sim/delay.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- scaling a distribution --- */

static void put_empirical(cJSON *to, const cfg_node *node, double factor) {
  const cfg_node *column = cfg_find(node, "column"), *scale = cfg_find(node, "scale");
  const cfg_node *file = cfg_find(node, "file");
  double own = 1;
  char *found = must_have(cfg_locate(file, cfg_text(file)), "a file name");
  char *absolute = realpath(found, NULL);
  json_put(to, "file %s", absolute != NULL ? absolute : found);
  if (column != NULL) json_put(to, "column %s", cfg_text(column));
  if (scale != NULL) (void)cfg_number(scale, &own); /* a number, already checked by delay_parse() */
  json_number(to, "scale", own * factor);
  free(absolute);
  free(found);
}

/* Writes the parameters with times multiplied by the factor; the logarithm of the factor is added
 * to the mean of a logarithm. */
static void put_dist_parameters(cJSON *to, const delay_dist *dist, double factor) {
  const delay_parameter *p = delay_dist_about(dist->kind)->parameter;
  for (size_t i = 0; p[i].name != NULL; ++i) {
    double value = dist->parameter[i];
    if (strcmp(p[i].unit, "s") == 0) value *= factor;
    if (strcmp(p[i].name, "mu") == 0) value += log(factor);
    json_number(to, p[i].name, value);
  }
}

static bool has_limits(const delay_dist *dist) {
  return dist->clamp_lo > 0 || isfinite(dist->clamp_hi);
}

/* A clamp without an upper bound gets the longest duration, because JSON has no infinity. */
static void put_dist(cJSON *to, const delay_dist *dist, const cfg_node *node, double factor) {
  json_put(to, "distribution %s", delay_dist_about(dist->kind)->name);
  if (dist->kind == DELAY_EMPIRICAL) {
    put_empirical(to, node, factor);
  } else if (dist->kind == DELAY_GILBERT_ELLIOTT) {
    json_put(to, "to_bad %g, to_good %g", dist->gilbert_elliott.to_bad,
             dist->gilbert_elliott.to_good);
    put_dist(json_object(to, "good"), dist->gilbert_elliott.good, cfg_find(node, "good"), factor);
    put_dist(json_object(to, "bad"), dist->gilbert_elliott.bad, cfg_find(node, "bad"), factor);
  } else {
    put_dist_parameters(to, dist, factor);
  }
  if (dist->offset != 0) json_number(to, "offset", dist->offset * factor);
  const double ends[] = {dist->clamp_lo * factor, fmin(dist->clamp_hi * factor, DELAY_LONGEST)};
  if (has_limits(dist)) json_numbers(to, "clamp", ends, 2);
}

gl_status plan_dist_times(char **out, const cfg_node *node, double factor, gl_error *err) {
  delay_dist *dist = NULL;
  *out = NULL;
  gl_status status = delay_parse(&dist, node, "distribution", NAN, err);
  if (status != GL_OK) return status;
  const bool is_number = (dist->kind == DELAY_NONE || dist->kind == DELAY_CONSTANT) &&
                         dist->offset == 0 && !has_limits(dist);
  if (is_number) {
    char text[NUMBER_TEXT_SIZE];
    const double value = dist->kind == DELAY_NONE ? 0 : dist->constant.value;
    *out = must_copy(number_text(value * factor, text), "a distribution");
  } else {
    cJSON *item = json_new();
    put_dist(item, dist, node, factor);
    *out = must_have(cJSON_PrintUnformatted(item), "a distribution");
    cJSON_Delete(item);
  }
  delay_free(dist);
  return GL_OK;
}

/* --- candidates: a grid --- */

enum { MOST_CANDIDATES = 50000 };

typedef struct grid {
  const plan_description *d;
  plan_candidate *of; /* [n] the candidates added so far */
  size_t n;
} grid;

static gl_status candidate_add(grid *g, const plan_candidate *c, gl_error *err) {
  if (g->n == MOST_CANDIDATES)
    return cfg_fail(cfg_find(cfg_root(g->d->doc), "plan"), err,
                    "the plan has more than %d candidates; give plan.learner.choices and "
                    "plan.search fewer values",
                    MOST_CANDIDATES);
  *MUST_ADD(g->of, g->n, "candidates") = *c;
  return GL_OK;
}

/* Adds the candidates of one split of the GPUs: all combinations of decoding speed, batches, window
 * and publication interval that do not stall. */
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
                      "plan.links has no link between %s and %s, where the learner may be; "
                      "describe it, or name other places with plan.learner.sites",
                      d->sites[i].name, d->sites[c->learner_site].name);
  return GL_OK;
}

/* Adds the candidates with the learner on `gpus` GPUs of a site and samplers on all other GPUs. */
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

/* Sets one field of the recipe, KEY=VALUE. */
static gl_status candidate_set(cfg_doc *doc, gl_error *err, char *text) {
  const gl_status status = cfg_override(doc, text, err);
  free(text);
  return status;
}

/* Writes the link of one of a site's samplers, which gets a fraction of the site's bandwidth: the
 * samplers share it for batches, and for pushed weights unless these are copied at the site. */
static void print_link(FILE *to, const char *way, const plan_link *l, double fraction) {
  char a[NUMBER_TEXT_SIZE], b[NUMBER_TEXT_SIZE];
  fprintf(to, ", %s: {", way);
  if (isfinite(l->bandwidth)) fprintf(to, "bandwidth: %s", number_text(l->bandwidth * fraction, a));
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
  must_succeed(to != NULL, "samplers");
  gl_status status = GL_OK;
  fputs("cluster.samplers=[", to);
  for (size_t site = 0; site < d->n_sites && status == GL_OK; ++site) {
    if (c->samplers[site] == 0) continue;
    if (n++ > 0) fputs(", ", to);
    status = candidate_print_group(to, c, d, site, err);
  }
  fputc(']', to);
  must_succeed(fclose(to) == 0, "samplers");
  if (status == GL_OK) status = cfg_override(doc, text, err);
  free(text);
  return status;
}

/* Sets the learner's step time by Amdahl's law: the fraction `serial` of a step is not parallel,
 * the rest is divided among the GPUs. The step was measured on one batch; its time is proportional
 * to the number of batches. */
static gl_status set_step(cfg_doc *doc, const plan_candidate *c, const plan_description *d,
                          gl_error *err) {
  const double gpus = (double)d->learner_gpus / (double)c->learner_gpus;
  const double factor =
      (double)c->batches * (d->serial + (1 - d->serial) * gpus) / d->sites[c->learner_site].speed;
  char *dist = NULL;
  gl_status status =
      plan_dist_times(&dist, cfg_find(cfg_root(d->doc), "cluster.learner.step"), factor, err);
  if (status == GL_OK)
    status = candidate_set(doc, err, must_textf("a recipe", "cluster.learner.step=%s", dist));
  free(dist);
  return status;
}

/* Sets the candidate's batches, publication interval, window and decoding speed in the recipe. */
static gl_status set_rules(cfg_doc *doc, const plan_candidate *c, const plan_description *d,
                           gl_error *err) {
  char number[NUMBER_TEXT_SIZE];
  gl_status status = candidate_set(
      doc, err, must_textf("a recipe", "cluster.learner.batches=%lld", (long long)c->batches));
  if (status == GL_OK)
    status = candidate_set(
        doc, err,
        must_textf("a recipe", "cluster.learner.publish_every=%lld", (long long)c->publish));
  if (status == GL_OK)
    status = candidate_set(doc, err,
                           must_textf("a recipe", "cluster.window=%lld", (long long)c->window));
  if (status == GL_OK)
    status =
        candidate_set(doc, err, must_textf("a recipe", "cluster.ahead=%lld", (long long)c->window));
  if (d->n_decoding == 0 || status != GL_OK) return status;
  const plan_decoding *speed = &d->decoding[c->decoding];
  status = candidate_set(doc, err,
                         must_textf("a recipe", "cluster.concurrency=%zu", speed->concurrency));
  if (status == GL_OK)
    status = candidate_set(doc, err,
                           must_textf("a recipe", "cluster.tokens_per_s=%s",
                                      number_text(speed->tokens_per_s, number)));
  return status;
}

/* Writes the sizes of messages that the description leaves out, for its links have a bandwidth. */
static gl_status set_sizes(cfg_doc *doc, gl_error *err) {
  const cfg_node *root = cfg_root(doc);
  gl_status status = GL_OK;
  if (cfg_find(root, "cluster.rollout_bytes") == NULL &&
      cfg_find(root, "cluster.bytes_per_token") == NULL)
    status = cfg_override(doc, "cluster.rollout_bytes=0", err);
  if (status == GL_OK && cfg_find(root, "cluster.weights_bytes") == NULL)
    status = cfg_override(doc, "cluster.weights_bytes=0", err);
  return status;
}

gl_status plan_candidate_recipe(cfg_doc **out, const plan_candidate *c, const plan_description *d,
                                gl_error *err) {
  cfg_doc *doc = NULL;
  gl_status status = cfg_copy(&doc, d->doc, err);
  if (status == GL_OK) cfg_remove(doc, "plan");
  if (status == GL_OK) status = set_sizes(doc, err);
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

/* --- text --- */

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

/* --- the recommended recipe --- */

static bool recommend_has(const cfg_doc *doc, const char *section) {
  const cfg_node *node = cfg_find(cfg_root(doc), section);
  return node != NULL && !cfg_is_null(node);
}

static gl_status recommend_describe(cfg_doc *doc, const plan_candidate *c,
                                    const plan_description *d, gl_error *err) {
  char split[PLAN_SPLIT_SIZE], text[PLAN_SPLIT_SIZE + 64];
  /* quotes and control characters in the names of sites would end the text */
  plan_candidate_split(c, d, split);
  for (char *at = split; *at != '\0'; ++at)
    if (*at == '"' || *at == '\\' || (unsigned char)*at < ' ') *at = ' ';
  snprintf(text, sizeof text, "description=\"planned: %s\"", split);
  return cfg_override(doc, text, err);
}

/* Checks whether `gepolab sweep` can run the recipe; if not, why_not gets the reason. */
static gl_status recommend_check(const cfg_doc *doc, char why_not[PLAN_WHY_SIZE], gl_error *err) {
  gl_error why = {0};
  recipe r;
  gl_status status = recipe_read(&r, doc, err);
  if (status == GL_OK) status = recipe_check(&r, NULL, &why);
  if (status == GL_OK || why.status != GL_EINPUT) return status;
  snprintf(why_not, PLAN_WHY_SIZE, "%.*s", PLAN_WHY_SIZE - 1, why.text);
  return GL_OK;
}

gl_status plan_recommend(cfg_doc **out, const plan_candidate *c, const plan_description *d,
                         char why_not[PLAN_WHY_SIZE], gl_error *err) {
  why_not[0] = '\0';
  gl_status status = plan_candidate_recipe(out, c, d, err);
  if (status == GL_OK) status = recommend_describe(*out, c, d, err);
  if (status == GL_OK && !recommend_has(*out, "world")) {
    status = cfg_override(*out, "world={kind: bandit, arms: 10}", err);
    if (status == GL_OK) status = cfg_override(*out, "sweep={seed: [1, 2, 3]}", err);
  }
  if (status == GL_OK) status = cfg_settle_files(*out, err);
  if (status == GL_OK) status = recommend_check(*out, why_not, err);
  if (status == GL_OK) return GL_OK;
  cfg_free(*out);
  *out = NULL;
  return status;
}
