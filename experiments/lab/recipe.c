/* Parses a recipe of the exact laboratory and makes its world, policies and algorithms. */
#include "experiments/lab/recipe.h"

#include "core/base/display_text.h"
#include "core/config/fields.h"
#include "core/rl/sampling_distribution.h"
#include "experiments/base/memory.h"
#include "llm/exact/exact_world.h"
#include "llm/learner/llm_learner.h"
#include "toy/lab/kl_dial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- lists --- */

static gl_status spaced_numbers(const cfg_node *node, double **out, size_t *n, gl_error *err) {
  cfg_reader r;
  cfg_begin_at(&r, node, "dial.kl", "kl", err);
  double from = field_real(&r, "from"), to = field_real(&r, "to");
  *n = field_count(&r, "points");
  int logarithmic = field_choice(&r, "scale");
  gl_status status = cfg_end(&r);
  if (status != GL_OK) return status;
  if (logarithmic && !(from > 0 && to > 0))
    return cfg_fail(node, err, "a log scale needs from and to above 0");
  *out = must_alloc(*n, sizeof **out, "a list of numbers");
  for (size_t i = 0; i < *n; ++i) {
    double u = *n > 1 ? (double)i / (double)(*n - 1) : 0;
    (*out)[i] = logarithmic ? from * pow(to / from, u) : from + (to - from) * u;
  }
  return GL_OK;
}

/* Parses a list of numbers or {from, to, points, scale: linear | log} into *out, allocated with
 * malloc. */
static gl_status lab_recipe_numbers(const cfg_node *node, double **out, size_t *n, gl_error *err) {
  if (cfg_kind_of(node) == CFG_MAP) return spaced_numbers(node, out, n, err);
  const int alone = cfg_kind_of(node) == CFG_SCALAR;
  *n = alone ? 1 : cfg_size(node);
  if (*n == 0) return cfg_fail(node, err, "the list is empty; give at least one number");
  *out = must_alloc(*n, sizeof **out, "a list of numbers");
  for (size_t i = 0; i < *n; ++i) {
    const cfg_node *item = alone ? node : cfg_at(node, i);
    if (!cfg_number(item, *out + i) || !(isfinite((*out)[i]) && (*out)[i] >= 0))
      return cfg_fail(item, err, "'%s' is not a number of 0 or more", cfg_text(item));
  }
  return GL_OK;
}

/* Tables and figures identify algorithms by name, so names must differ. */
static gl_status refuse_equal_names(const cfg_node *list, const policy_algorithm *algorithms,
                                    size_t n, gl_error *err) {
  for (size_t i = 0; i < n; ++i)
    for (size_t k = 0; k < i; ++k)
      if (strcmp(algorithms[i].name, algorithms[k].name) == 0)
        return cfg_fail(cfg_at(list, i), err,
                        "two algorithms are shown as '%s'; give one of them a `name` of its own",
                        algorithms[i].name);
  return GL_OK;
}

gl_status lab_recipe_algorithms(const cfg_node *node, policy_algorithm **out, size_t *n,
                                gl_error *err) {
  const int all =
      node == NULL || (cfg_kind_of(node) == CFG_SCALAR && strcmp(cfg_text(node), "all") == 0);
  const int list = !all && cfg_kind_of(node) == CFG_LIST;
  *n = all ? policy_algorithms_count() : list ? cfg_size(node) : 1;
  if (*n == 0) return cfg_fail(node, err, "the list of algorithms is empty; name one, or `all`");
  *out = must_alloc(*n, sizeof **out, "the algorithms");
  gl_status status = GL_OK;
  for (size_t i = 0; i < *n && status == GL_OK; ++i) {
    if (all)
      (*out)[i] = *policy_algorithms_at(i);
    else
      status = policy_algorithm_parse(*out + i, list ? cfg_at(node, i) : node, err);
  }
  return status == GL_OK && list ? refuse_equal_names(node, *out, *n, err) : status;
}

static gl_status read_sizes(lab_recipe *r, const cfg_node *node, int population, gl_error *err) {
  const int list = node != NULL && cfg_kind_of(node) == CFG_LIST;
  const size_t n = list ? cfg_size(node) : node != NULL ? 1 : population ? 0 : 1;
  if (n + (size_t)population == 0) return cfg_fail(node, err, "the list of group sizes is empty");
  r->group_size = must_alloc(n + 1, sizeof *r->group_size, "the group sizes");
  if (node == NULL && !population) r->group_size[0] = 8;
  for (size_t i = 0; i < n && node != NULL; ++i) {
    const cfg_node *item = list ? cfg_at(node, i) : node;
    double value = 0;
    if (!cfg_number(item, &value) || value != floor(value) || value < 1 || value > 4096)
      return cfg_fail(item, err, "group_size must be whole numbers from 1 to 4096, not '%s'",
                      cfg_text(item));
    r->group_size[i] = (size_t)value;
    gl_error why = {.status = GL_OK};
    for (size_t k = 0; k < r->n_algorithms; ++k)
      if (policy_algorithm_check_group_size(&r->algorithms[k], r->group_size[i], &why) != GL_OK)
        return cfg_fail(item, err, "%s", why.text);
  }
  r->n_sizes = n + (population ? 1 : 0);
  return GL_OK;
}

/* --- policies --- */

/* Adds a pair of learner and sampler. */
static void add_policies(lab_recipe *r, const double *theta_p, const double *sampler,
                         double staleness) {
  const size_t n = r->view.n_parameters;
  lab_pair *p = MUST_ADD(r->pairs, r->n_pairs, "the policies");
  *p = (lab_pair){MUST_ARRAY(double, n, "the policies"), MUST_ARRAY(double, n, "the policies"),
                  staleness};
  memcpy(p->learner, theta_p, n * sizeof *theta_p);
  memcpy(p->sampler, sampler, n * sizeof *sampler);
}

static gl_status read_prompt_probs(lab_recipe *r, const cfg_node *list, size_t x, double *theta,
                                   const char *key, gl_error *err) {
  const size_t n = cfg_kind_of(list) == CFG_LIST ? cfg_size(list) : 0;
  double *probs = MUST_ARRAY(double, n, key);
  gl_error why = {.status = GL_OK};
  gl_status status = GL_OK;
  for (size_t y = 0; y < n && status == GL_OK; ++y)
    if (!cfg_number(cfg_at(list, y), probs + y))
      status = cfg_fail(cfg_at(list, y), err, "a probability must be a number");
  if (status == GL_OK && n == 0)
    status = cfg_fail(list, err, "%s must be a list of probabilities, one per response", key);
  if (status == GL_OK && toy_world_set_probs(r->world, x, probs, n, theta, &why) != GL_OK)
    status = cfg_fail(list, err, "%s: %s", key, why.text);
  free(probs);
  return status;
}

/* Reads a list of probabilities, or one list per prompt, into theta. */
static gl_status read_probs(lab_recipe *r, const cfg_node *node, double *theta, const char *key,
                            gl_error *err) {
  const int nested = cfg_kind_of(node) == CFG_LIST && cfg_size(node) > 0 &&
                     cfg_kind_of(cfg_at(node, 0)) == CFG_LIST;
  if (nested && cfg_size(node) != r->view.n_prompts)
    return cfg_fail(node, err, "%s has %zu lists for %zu prompts", key, cfg_size(node),
                    r->view.n_prompts);
  if (r->world == NULL)
    return cfg_fail(node, err, "%s is for bandits and sequences; other worlds take a dial", key);
  gl_status status = GL_OK;
  for (size_t x = 0; x < r->view.n_prompts && status == GL_OK; ++x)
    status = read_prompt_probs(r, nested ? cfg_at(node, x) : node, x, theta, key, err);
  return status;
}

/* Exact gradient ascent; stores the parameters of all steps in path[(steps + 1) * n]. */
static gl_status train_path(lab_recipe *r, const double *start, size_t steps, double lr,
                            double **path, gl_error *err) {
  const size_t n = r->view.n_parameters;
  *path = must_alloc(steps + 1, n * sizeof **path, "a training path");
  double *gradient = MUST_ARRAY(double, n, "a gradient"), value = 0;
  gl_status status = GL_OK;
  memcpy(*path, start, n * sizeof *start);
  for (size_t s = 0; s < steps && status == GL_OK; ++s) {
    const double *here = *path + s * n;
    status = lab_value(&r->view, here, &value, gradient, err);
    for (size_t i = 0; i < n; ++i) (*path)[(s + 1) * n + i] = here[i] + lr * gradient[i];
  }
  free(gradient);
  return status;
}

/* Adds pairs from a path of exact gradient ascent: the learner is its end, the sampler an earlier
 * step. */
static gl_status dial_staleness(lab_recipe *r, const double *start, const cfg_node *list,
                                size_t steps, double lr, const cfg_node *place, gl_error *err) {
  double *tau = NULL, *path = NULL;
  size_t count = 0;
  const size_t n = r->view.n_parameters;
  if (list == NULL) return cfg_fail(place, err, "dial: staleness needs `updates`, a list");
  gl_status status = lab_recipe_numbers(list, &tau, &count, err);
  if (status == GL_OK) status = train_path(r, start, steps, lr, &path, err);
  for (size_t i = 0; i < count && status == GL_OK; ++i) {
    if (fabs(tau[i] - round(tau[i])) < 1e-9) tau[i] = round(tau[i]);
    if (tau[i] > (double)steps || tau[i] != floor(tau[i])) {
      status = cfg_fail(list, err, "updates must be whole numbers up to steps (%zu)", steps);
      break;
    }
    add_policies(r, path + steps * n, path + (steps - (size_t)tau[i]) * n, tau[i]);
  }
  free(tau);
  free(path);
  return status;
}

/* Adds pairs with given KL divergences: the sampler's parameters are the learner's plus a multiple
 * of a direction. */
static gl_status dial_kl(lab_recipe *r, const double *theta_p, lab_ray ray, const cfg_node *list,
                         const cfg_node *place, gl_error *err) {
  const size_t n = r->view.n_parameters;
  double *kl = NULL, *direction = MUST_ARRAY(double, 2 * n, "the dial"), scale = 0;
  const lab_half_line along = {theta_p, direction, lab_dial_most(ray)};
  size_t count = 0;
  gl_status status = list == NULL ? cfg_fail(place, err, "the dial needs `kl`, a list")
                                  : lab_recipe_numbers(list, &kl, &count, err);
  for (size_t i = 0; i < count * r->directions && status == GL_OK; ++i) {
    gl_error why = {.status = GL_OK};
    if (i % count == 0) lab_dial_direction(&r->view, theta_p, ray, r->seed, i / count, direction);
    status = lab_dial_ray(&r->view, &along, kl[i % count], direction + n, &scale, &why);
    if (status == GL_EINPUT) cfg_fail(list, err, "%s", why.text);
    if (status == GL_OK) add_policies(r, theta_p, direction + n, NAN);
  }
  free(kl);
  free(direction);
  return status;
}

/* Sampler = mixture q = (1 - m) p + m u with the uniform distribution u, in a tabular world with
 * one prompt. */
static gl_status dial_mixture(lab_recipe *r, const double *theta_p, const cfg_node *list,
                              const cfg_node *place, gl_error *err) {
  const size_t k = r->view.max_responses, m = r->view.max_length, n = r->view.n_parameters;
  if (r->world == NULL || r->view.n_prompts != 1 || toy_world_is_counted(r->world))
    return cfg_fail(place, err,
                    "dial: mixture is for bandits and sequences of one prompt; use direction");
  double *kl = NULL, share = 0;
  double *space = MUST_ARRAY(double, k *(m + 3), "the dial"),
         *theta = MUST_ARRAY(double, n, "the dial");
  size_t count = 0;
  gl_status status = GL_OK;
  double *p = space, *other = space + k, *q = space + 2 * k, *logp = space + 3 * k;
  if (status == GL_OK && list == NULL) status = cfg_fail(place, err, "the dial needs `kl`, a list");
  if (status == GL_OK) status = lab_recipe_numbers(list, &kl, &count, err);
  if (status == GL_OK) status = r->view.ops->log_probs(r->view.self, theta_p, 0, logp, err);
  for (size_t y = 0; y < k && status == GL_OK; ++y) {
    double sum = 0;
    for (size_t t = 0; t < r->view.ops->length(r->view.self, 0, y); ++t) sum += logp[y * m + t];
    p[y] = exp(sum);
    other[y] = 1 / (double)k;
  }
  for (size_t i = 0; i < count && status == GL_OK; ++i) {
    gl_error why = {.status = GL_OK};
    status = lab_dial_mixture(p, other, k, kl[i], q, &share, &why);
    if (status == GL_OK) status = toy_world_set_probs(r->world, 0, q, k, theta, &why);
    if (status == GL_EINPUT) cfg_fail(list, err, "%s", why.text);
    if (status == GL_OK) add_policies(r, theta_p, theta, NAN);
  }
  free(kl);
  free(space);
  free(theta);
  return status;
}

enum { DIAL_HOTTER, DIAL_COLDER, DIAL_DIRECTION, DIAL_MIXTURE, DIAL_STALENESS, DIALS };

static gl_status read_dial(lab_recipe *r, const double *theta_p, const cfg_node *node,
                           gl_error *err) {
  cfg_reader d;
  cfg_begin(&d, node, "dial", err);
  int kind = field_choice(&d, "kind");
  const cfg_node *kl = cfg_child(&d, "kl"), *updates = cfg_child(&d, "updates");
  size_t steps = field_count(&d, "steps");
  double lr = field_real(&d, "lr");
  r->directions = field_count(&d, "directions");
  const cfg_node *several = cfg_child(&d, "directions");
  gl_status status = cfg_end(&d);
  if (status == GL_OK && r->directions > 1 && kind != DIAL_DIRECTION)
    status = cfg_fail(several, err,
                      "dial.directions counts random directions; give kind: direction, or leave "
                      "directions out");
  if (status != GL_OK) return status;
  if (kind == DIAL_STALENESS) return dial_staleness(r, theta_p, updates, steps, lr, node, err);
  if (kind == DIAL_MIXTURE) return dial_mixture(r, theta_p, kl, node, err);
  lab_ray ray = kind == DIAL_HOTTER   ? LAB_RAY_HOTTER
                : kind == DIAL_COLDER ? LAB_RAY_COLDER
                                      : LAB_RAY_RANDOM;
  return dial_kl(r, theta_p, ray, kl, node, err);
}

static gl_status read_training(lab_recipe *r, const cfg_node *node, gl_error *err) {
  lab_training *t = &r->training;
  cfg_reader c;
  cfg_begin(&c, node, "training", err);
  t->updates = field_count(&c, "updates");
  t->staleness = field_count(&c, "staleness");
  t->groups = field_count(&c, "groups");
  t->every = field_count(&c, "record_every");
  t->seeds = field_count(&c, "seeds");
  t->tuning_seeds = field_count(&c, "tuning_seeds");
  const cfg_node *lr = cfg_child(&c, "lr");
  if (cfg_has(&c, "stalenesses")) t->n_ages = field_numbers(&c, "stalenesses", &t->ages);
  gl_status status = cfg_end(&c);
  for (size_t i = 0; i < t->n_ages && status == GL_OK; ++i)
    if (t->ages[i] != floor(t->ages[i]))
      status = cfg_fail(cfg_find(node, "stalenesses"), err,
                        "stalenesses must be whole numbers, not %g", t->ages[i]);
  if (status == GL_OK && lr == NULL)
    status = cfg_fail(node, err, "training needs `lr`, a list of learning rates to choose from");
  return status == GL_OK ? lab_recipe_numbers(lr, &t->lr, &t->n_lr, err) : status;
}

static gl_status read_dists(lab_recipe *r, const cfg_node *node, gl_error *err) {
  lab_dists *l = &r->dists;
  cfg_reader c;
  cfg_begin(&c, node, "truncation", err);
  l->n_top_p = field_numbers(&c, "top_p", &l->top_p);
  l->n_top_k = field_numbers(&c, "top_k", &l->top_k);
  const cfg_node *weights = cfg_child(&c, "weights");
  gl_status status = cfg_end(&c);
  if (status == GL_OK && l->n_top_p + l->n_top_k == 0)
    status = cfg_fail(node, err, "truncation needs `top_p` or `top_k`, a list each");
  for (size_t i = 0; i < l->n_top_k && status == GL_OK; ++i)
    if (l->top_k[i] != floor(l->top_k[i]))
      status = cfg_fail(cfg_find(node, "top_k"), err, "top_k must be whole numbers of 1 or more");
  if (status == GL_OK &&
      (weights == NULL || cfg_kind_of(weights) != CFG_LIST || cfg_size(weights) == 0))
    status = cfg_fail(weights != NULL ? weights : node, err,
                      "truncation needs `weights`, a list such as [raw, truncated]");
  if (status != GL_OK) return status;
  l->n_weights = cfg_size(weights);
  l->weights = must_alloc(l->n_weights, sizeof *l->weights, "the kinds of weights");
  for (size_t i = 0; i < l->n_weights; ++i) l->weights[i] = cfg_text(cfg_at(weights, i));
  return GL_OK;
}

static gl_status read_policies(lab_recipe *r, const cfg_doc *doc, const cfg_node *learner_probs,
                               const cfg_node *sampler_probs, const cfg_node *dial, gl_error *err) {
  const size_t n = r->view.n_parameters;
  double *theta_p = must_alloc(n, 2 * sizeof *theta_p, "the policies");
  gl_status status = GL_OK;
  if (learner_probs != NULL)
    status = read_probs(r, learner_probs, theta_p, "learner_probs", err);
  else if (r->world != NULL)
    toy_world_initial(r->world, r->seed,
                      theta_p); /* decision processes start from the uniform policy */
  else if (r->transformer != NULL)
    status = exact_world_initial(r->transformer, r->seed, theta_p, err);
  if (status == GL_OK && r->training.n_lr > 0) {
    if (sampler_probs != NULL || dial != NULL)
      status = cfg_fail(sampler_probs != NULL ? sampler_probs : dial, err,
                        "with `training` the sampler is the learner of some updates ago");
    if (status == GL_OK) add_policies(r, theta_p, theta_p, NAN);
    free(theta_p);
    return status;
  }
  if (status == GL_OK && (sampler_probs == NULL) == (dial == NULL))
    status = cfg_fail(sampler_probs != NULL ? dial : cfg_root(doc), err,
                      "give the sampler either by sampler_probs or by a dial");
  if (status == GL_OK && sampler_probs != NULL) {
    status = read_probs(r, sampler_probs, theta_p + n, "sampler_probs", err);
    if (status == GL_OK) add_policies(r, theta_p, theta_p + n, NAN);
  } else if (status == GL_OK) {
    status = read_dial(r, theta_p, dial, err);
  }
  free(theta_p);
  return status;
}

/* A transformer has many parameters. Token scores that would exceed the tables' limit are rejected
 * here, with the recipe's position, before the dial is solved. */
static gl_status check_scores(const lab_recipe *r, const cfg_node *world, gl_error *err) {
  const enumerable *e = &r->view;
  if (e->n_parameters <= LAB_MAX_SCORES / e->max_length / e->max_responses) return GL_OK;
  return cfg_fail(world, err,
                  "%zu responses of %zu tokens under %zu weights are too many to keep all scores "
                  "(at most %zu numbers); use a smaller model, vocabulary or horizon",
                  e->max_responses, e->max_length, e->n_parameters, LAB_MAX_SCORES);
}

static gl_status unknown_world(const cfg_node *kind, gl_error *err) {
  enum { MOST = 64 };
  const char *names[MOST], *name;
  char hint[CFG_HINT_SIZE], text[512];
  size_t n = 0, used = 0;
  for (size_t i = 0; n < MOST && (name = toy_kind_at(i, NULL)) != NULL; ++i) names[n++] = name;
  for (size_t i = 0; n < MOST && (name = mdp_kind_at(i, NULL)) != NULL; ++i) names[n++] = name;
  for (size_t i = 0; i < n && used < sizeof text; ++i)
    used += (size_t)snprintf(text + used, sizeof text - used, "%s, ", names[i]);
  return cfg_fail(kind, err, "there is no world of kind '%s'; allowed are %sllm%s", cfg_text(kind),
                  text, cfg_hint(cfg_text(kind), names, n, hint));
}

static gl_status make_world(lab_recipe *r, const cfg_node *world, const cfg_node *sampling,
                            gl_error *err) {
  const cfg_node *kind = cfg_kind_of(world) == CFG_MAP ? cfg_find(world, "kind") : NULL;
  if (kind != NULL && llm_is_kind(cfg_text(kind))) {
    gl_status status = exact_world_new(&r->transformer, world, sampling, r->seed, err);
    if (status == GL_OK) r->view = exact_world_enumerable(r->transformer);
    return status == GL_OK ? check_scores(r, world, err) : status;
  }
  if (kind != NULL && !toy_is_kind(cfg_text(kind)) && !mdp_is_kind(cfg_text(kind)))
    return unknown_world(kind, err);
  if (kind == NULL || toy_is_kind(cfg_text(kind))) {
    gl_status status = toy_world_new(&r->world, world, sampling, r->seed, err);
    if (status == GL_OK) r->view = toy_world_enumerable(r->world);
    return status;
  }
  if (sampling != NULL)
    return cfg_fail(sampling, err,
                    "a decision process is sampled as its policy says; leave "
                    "`sampling` away");
  gl_status status = mdp_new(&r->process, world, r->seed, err);
  if (status == GL_OK) status = mdp_trajectories_new(&r->trajectories, r->process, err);
  if (status == GL_OK) r->view = mdp_trajectories_enumerable(r->trajectories);
  return status;
}

/* Rejects settings that need a list of responses in worlds that have none. */
static gl_status refuse_lists(const cfg_node *training, const cfg_node *covariance, gl_error *err) {
  const cfg_node *place = training != NULL ? training : covariance;
  if (place == NULL) return GL_OK;
  return cfg_fail(place, err,
                  "%s needs a list of responses, which this world has with `listed: true` only",
                  training != NULL ? "training" : "covariance");
}

/* Sets the distribution used in the importance weights. Settings of the sampler for training are
 * rejected: the laboratory gets its sampler from sampler_probs or dial. */
static gl_status weights_of(lab_recipe *r, const sampling_spec *dist, const cfg_node *sampling,
                            gl_error *err) {
  static const char *const keys[] = {"behaviour", "behaviour_mixture", "logq"};
  const int asked[] = {sampling_distorts(dist), dist->behaviour.with != OTHER_NONE,
                       dist->logq != LOGQ_SAMPLER};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; ++i)
    if (asked[i])
      return cfg_fail(
          cfg_find(sampling, keys[i]), err,
          "sampling.%s is for training; the laboratory's sampler is what sampler_probs or "
          "dial says",
          keys[i]);
  switch (dist->weights) {
  case SAMPLING_RAW:
    r->weights = LAB_WEIGHTS_RAW;
    break;
  case SAMPLING_TRUNCATED:
    r->weights = LAB_WEIGHTS_TRUNCATED;
    break;
  case SAMPLING_REPLAY:
    r->weights = LAB_WEIGHTS_REPLAY;
    break;
  }
  return GL_OK;
}

gl_status lab_recipe_read(lab_recipe *r, const cfg_doc *doc, gl_error *err) {
  *r = (lab_recipe){.directions = 1};
  cfg_reader c;
  cfg_begin_at(&c, cfg_root(doc), "", "recipe", err);
  r->name = cfg_string(&c, "name", "bias");
  (void)field_text(&c, "description");
  r->seed = (uint64_t)field_integer(&c, "seed");
  r->budget = field_count(&c, "budget");
  r->budget_place = cfg_find(cfg_root(doc), "budget");
  if (r->budget_place == NULL) r->budget_place = cfg_root(doc);
  r->samples = field_count(&c, "samples");
  r->covariance = field_flag(&c, "covariance");
  const int population = field_flag(&c, "population");
  const cfg_node *world = cfg_child(&c, "world"), *sampling = cfg_child(&c, "sampling");
  const cfg_node *theta_p = cfg_child(&c, "learner_probs"),
                 *sampler = cfg_child(&c, "sampler_probs");
  const cfg_node *dial = cfg_child(&c, "dial"), *sizes = cfg_child(&c, "group_size");
  const cfg_node *algorithms = cfg_child(&c, "algorithms");
  const cfg_node *training = cfg_child(&c, "training"), *dists = cfg_child(&c, "truncation");
  sampling_spec dist = {.weights = SAMPLING_RAW};
  gl_status status = cfg_end(&c);
  if (status == GL_OK && world == NULL)
    status = cfg_fail(cfg_root(doc), err,
                      "the recipe has no world; add `world: {kind: bandit | sequence | llm, …}`");
  if (status == GL_OK) status = sampling_parse(&dist, sampling, err);
  if (status == GL_OK) status = weights_of(r, &dist, sampling, err);
  if (status == GL_OK)
    status = lab_recipe_algorithms(algorithms, &r->algorithms, &r->n_algorithms, err);
  if (status == GL_OK) status = read_sizes(r, sizes, population, err);
  if (status == GL_OK) status = make_world(r, world, sampling, err);
  if (status == GL_OK && r->world != NULL && toy_world_is_counted(r->world) &&
      r->weights == LAB_WEIGHTS_REPLAY)
    status = cfg_fail(cfg_find(sampling, "weights"), err,
                      "weights: replay is measured in worlds that list their responses; set "
                      "world.listed: true, or take raw or truncated");
  if (status == GL_OK && r->world != NULL && toy_world_is_counted(r->world))
    status =
        refuse_lists(training, r->covariance ? cfg_find(cfg_root(doc), "covariance") : NULL, err);
  if (status == GL_OK && training != NULL) status = read_training(r, training, err);
  if (status == GL_OK && dists != NULL) status = read_dists(r, dists, err);
  if (status != GL_OK) return status;
  return read_policies(r, doc, theta_p, sampler, dial, err);
}

void lab_recipe_fini(lab_recipe *r) {
  for (size_t i = 0; i < r->n_pairs; ++i) {
    free(r->pairs[i].learner);
    free(r->pairs[i].sampler);
  }
  free(r->pairs);
  free(r->algorithms);
  free(r->group_size);
  free(r->training.lr);
  free(r->training.ages);
  free(r->dists.top_p);
  free(r->dists.top_k);
  free(r->dists.weights);
  toy_world_free(r->world);
  exact_world_free(r->transformer);
  mdp_trajectories_free(r->trajectories);
  mdp_free(r->process);
  *r = (lab_recipe){0};
}

int lab_recipe_name_width(const lab_recipe *r) {
  size_t wide = sizeof "algorithm" - 1;
  for (size_t i = 0; i < r->n_algorithms; ++i) {
    const size_t n = shown_width(r->algorithms[i].name);
    if (n > wide) wide = n;
  }
  return (int)wide;
}

/* --- progress --- */

void lab_counter_init(lab_counter *c, const char *name, const char *unit, size_t total, double cost,
                      size_t threads, progress_mode mode) {
  *c = (lab_counter){.bar = progress_new(name, unit, total, mode), .left = cost};
  pthread_mutex_init(&c->lock, NULL);
  progress_workers(c->bar, threads < total ? threads : total);
  progress_cost(c->bar, 0, cost);
  progress_at(c->bar, 0, NULL);
}

void lab_counter_add(lab_counter *c, double cost) {
  pthread_mutex_lock(&c->lock);
  c->spent += cost;
  c->left -= cost;
  progress_cost(c->bar, c->spent, c->left);
  progress_at(c->bar, ++c->done, NULL);
  pthread_mutex_unlock(&c->lock);
}

void lab_counter_fini(lab_counter *c) {
  progress_free(c->bar);
  pthread_mutex_destroy(&c->lock);
}
