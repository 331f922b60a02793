/* The toy learner: evaluation and construction. Parameters, held versions and checkpoints are in
 * state.c; sampling is in draw.c, training in update.c. */
#include "toy/learner/learner.h"

#include "core/config/config.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- evaluation --- */
/* Exact or greedy evaluation scores, over all prompts or some, with the world's rewards or those of
 * another world of the same shape. */

/* Expected reward, in the world `rewards`, of responses to prompt x sampled with the current
 * parameters under the sampling settings `dist`. The cached tables are used if these settings are
 * those of training. */
static double return_at(toy_learner *l, const toy_world *rewards, size_t x,
                        const sampling_spec *dist) {
  const toy_world *w = l->world;
  const response_tree *t = &w->tree;
  const int truncates = sampling_truncates(dist, t->vocabulary);
  if (!truncates && dist->temperature == w->sampling.temperature)
    return toy_mean_reward(rewards, x, toy_learner_at(l, x)->p, toy_learner_at(l, x)->logp,
                           l->scratch);
  double *logp = l->evaluated, *p = l->evaluated + t->n_edges;
  const double *drawn = logp;
  toy_probs_at(w, l->theta, x, dist->temperature, logp, p);
  if (truncates) {
    toy_truncate(w, dist, logp, t->n_nodes, l->edges, l->rank);
    for (size_t e = 0; e < t->n_edges; ++e) p[e] = exp(l->edges[e]);
    drawn = l->edges;
  }
  return toy_mean_reward(rewards, x, p, drawn, l->scratch);
}

/* *score receives the score of one prompt. */
static gl_status score_at(toy_learner *l, const toy_world *rewards, size_t x,
                          const evaluation_spec *how, double *score, gl_error *err) {
  switch (how->kind) {
  case EVALUATION_EXACT:
    *score = return_at(l, rewards, x, &how->dist);
    return GL_OK;
  case EVALUATION_GREEDY:
    *score = toy_greedy_reward(rewards, x, toy_learner_at(l, x)->p);
    return GL_OK;
  case EVALUATION_SAMPLED:
    break;
  }
  return gl_fail(err, GL_EINTERNAL, "a toy world has no evaluation of kind %d", (int)how->kind);
}

static const evaluation_part *parts(const void *self, size_t *n) {
  const toy_learner *l = self;
  *n = l->world->sets.n_parts;
  return l->world->sets.part;
}

static gl_status toy_evaluate_parts(void *self, double *score, gl_error *err) {
  toy_learner *l = self;
  const evaluation_sets *all = &l->world->sets;
  double *of_prompt = l->prompt_score;
  gl_status status = GL_OK;
  for (size_t i = 0; i < all->n && status == GL_OK; ++i) {
    const toy_set *s = &l->sets[i];
    const toy_world *rewards = s->other != NULL ? s->other : l->world;
    for (size_t k = 0; k < s->n_prompts && status == GL_OK; ++k)
      status =
          score_at(l, rewards, s->prompt != NULL ? s->prompt[k] : k, &s->how, &of_prompt[k], err);
    if (status == GL_OK)
      evaluation_sets_means(all, of_prompt, s->n_prompts, 1,
                            score + i * evaluation_sets_parts(all));
  }
  return status;
}

static gl_status evaluate(void *self, double *eval_score, gl_error *err) {
  toy_learner *l = self;
  if (l->world->sets.n > 0) {
    gl_status status = toy_evaluate_parts(self, l->part_score, err);
    *eval_score = l->part_score[0];
    return status;
  }
  double sum = 0, score = 0;
  for (size_t x = 0; x < l->world->n_prompts; ++x) {
    gl_status status = score_at(l, l->world, x, &l->world->evaluation, &score, err);
    if (status != GL_OK) return status;
    sum += score;
  }
  *eval_score = sum / (double)l->world->n_prompts;
  return GL_OK;
}

/* --- reading sets --- */

/* `prompts: [0, 2]`: prompt numbers without repetition. */
static gl_status read_prompts(toy_set *s, toy_learner *l, cfg_reader *r) {
  const toy_world *w = l->world;
  double *number = NULL;
  s->n_prompts = cfg_doubles(r, "prompts", &number, 0, (double)(w->n_prompts - 1));
  if (r->status != GL_OK || number == NULL) {
    s->n_prompts = w->n_prompts;
    free(number);
    return r->status;
  }
  s->prompt = ARENA_ARRAY(&l->memory, size_t, s->n_prompts);
  bool *seen = ARENA_ARRAY(&l->memory, bool, w->n_prompts);
  r->status = arena_check(&l->memory, "evaluation sets", r->err);
  if (r->status == GL_OK && s->n_prompts > w->n_prompts)
    r->status =
        cfg_fail(cfg_child(r, "prompts"), r->err, "the world has only %zu prompts", w->n_prompts);
  for (size_t k = 0; k < s->n_prompts && r->status == GL_OK; ++k) {
    const size_t x = (size_t)number[k];
    if ((double)x != number[k] || seen[x])
      r->status = cfg_fail(cfg_child(r, "prompts"), r->err,
                           "prompts must be whole numbers from 0 to %zu, each once; %g is not, or "
                           "is there twice",
                           w->n_prompts - 1, number[k]);
    else
      seen[x] = true;
    s->prompt[k] = x;
  }
  free(number);
  return r->status;
}

/* The world of an evaluation set may differ from the world of training in its rewards only: the
 * keys policy, kind and evaluation are rejected. */
static gl_status check_keys(const cfg_node *changes, gl_error *err) {
  static const char *const kept[] = {"kind", "policy", "evaluation"};
  if (cfg_kind_of(changes) != CFG_MAP)
    return cfg_fail(changes, err,
                    "the world of an evaluation set is a map of the fields in which it differs "
                    "from the world that is trained in, as in world: {task: parity}");
  for (size_t i = 0; i < sizeof kept / sizeof *kept; ++i)
    if (cfg_find(changes, kept[i]) != NULL)
      return cfg_fail(cfg_find(changes, kept[i]), err,
                      "an evaluation set has the policy that is trained, and its world's kind; "
                      "leave %s out",
                      kept[i]);
  return GL_OK;
}

static int same_sizes(const toy_world *a, const toy_world *b) {
  const response_tree *s = &a->tree, *t = &b->tree;
  return a->n_prompts == b->n_prompts && a->counted == b->counted && a->bigram == b->bigram &&
         s->vocabulary == t->vocabulary && s->horizon == t->horizon && s->n_nodes == t->n_nodes &&
         s->n_edges == t->n_edges && s->n_responses == t->n_responses;
}

/* Builds the set's world: the learner's world section with the set's changes. */
static gl_status make_other(toy_set *s, const toy_learner *l, const learner_setup *setup,
                            const cfg_node *changes, gl_error *err) {
  cfg_doc *doc = NULL;
  gl_status status = check_keys(changes, err);
  if (status == GL_OK) status = cfg_overlay(&doc, "world", setup->world, "", changes, err);
  if (status != GL_OK) return status;
  status =
      toy_world_new(&s->other, cfg_find(cfg_root(doc), "world"), setup->sampling, setup->seed, err);
  cfg_free(doc);
  if (status == GL_OK && !same_sizes(l->world, s->other))
    status = cfg_fail(changes, err,
                      "with these fields the set's world has other prompts or responses than the "
                      "one that is trained in, so the policy cannot act in it; change rewards or "
                      "the task, not sizes");
  return status;
}

static gl_status read_set(toy_set *s, toy_learner *l, const learner_setup *setup,
                          const cfg_node *node, gl_error *err) {
  static const evaluation_kind kinds[] = {EVALUATION_EXACT, EVALUATION_GREEDY};
  cfg_reader r;
  cfg_begin(&r, node, "world.evaluation.sets", err);
  cfg_string(&r, "name", NULL);
  evaluation_read_set(&s->how, &l->world->evaluation, &r, kinds, 2);
  read_prompts(s, l, &r);
  const cfg_node *changes = cfg_child(&r, "world");
  if (cfg_end(&r) != GL_OK) return r.status;
  return changes != NULL ? make_other(s, l, setup, changes, err) : GL_OK;
}

/* Enlarges the scratch if another world's automata have more states. */
static gl_status widen_scratch(toy_learner *l, gl_error *err) {
  size_t most = toy_scratch(l->world);
  for (size_t i = 0; i < l->world->sets.n; ++i)
    if (l->sets[i].other != NULL && toy_scratch(l->sets[i].other) > most)
      most = toy_scratch(l->sets[i].other);
  l->scratch = ARENA_ARRAY(&l->memory, double, most);
  return arena_check(&l->memory, "evaluation sets", err);
}

/* Reads the evaluation sets. Errors: GL_ENOMEM, GL_EINPUT (a set that does not fit the world, with
 * its position in the recipe). */
static gl_status toy_read_sets(toy_learner *l, const learner_setup *setup, gl_error *err) {
  const evaluation_sets *all = &l->world->sets;
  const cfg_node *list = cfg_find(setup->world, "evaluation.sets");
  if (all->n == 0) return GL_OK;
  l->sets = ARENA_ARRAY(&l->memory, toy_set, all->n);
  l->part_score = ARENA_ARRAY(&l->memory, double, all->n_parts);
  l->prompt_score = ARENA_ARRAY(&l->memory, double, l->world->n_prompts);
  gl_status status = arena_check(&l->memory, "evaluation sets", err);
  for (size_t i = 0; i < all->n && status == GL_OK; ++i) {
    const cfg_node *node = list != NULL ? cfg_at(list, i) : NULL;
    status = read_set(&l->sets[i], l, setup, node, err);
    if (status == GL_OK)
      status = evaluation_sets_check(
          all, all->part[i * evaluation_sets_parts(all)].set, l->sets[i].n_prompts,
          node != NULL ? node : cfg_find(setup->world, "evaluation"), err);
  }
  return status == GL_OK ? widen_scratch(l, err) : status;
}

/* --- construction --- */

static void toy_learner_free(void *self) {
  toy_learner *l = self;
  if (l == NULL) return;
  for (size_t i = 0; l->sets != NULL && i < l->world->sets.n; ++i) toy_world_free(l->sets[i].other);
  toy_world_free(l->world);
  free(l->dist);
  free(l->edge);
  toy_held_free(l->held, l->n_held);
  toy_optimizer_fini(&l->optimizer);
  update_loop_fini(&l->update);
  arena_fini(&l->memory);
  free(l);
}

static gl_status allocate_learner(toy_learner *l, gl_error *err) {
  const response_tree *t = &l->world->tree;
  const size_t prompts = l->world->n_prompts, n = l->world->features.n_parameters;
  arena *a = &l->memory;
  l->theta = ARENA_ARRAY(a, double, n);
  l->direction = ARENA_ARRAY(a, double, n);
  if (l->update.algorithm.proximal_decay > 0) l->average = ARENA_ARRAY(a, double, n);
  l->logref = ARENA_GRID(a, double, prompts, t->n_edges);
  l->cache = ARENA_ARRAY(a, prompt_cache, prompts);
  l->scratch = ARENA_ARRAY(a, double, toy_scratch(l->world));
  l->edges = ARENA_ARRAY(a, double, t->n_edges);
  l->evaluated = ARENA_ARRAY(a, double, 2 * t->n_edges);
  l->token = ARENA_ARRAY(a, double, 3 * t->vocabulary);
  l->rank = ARENA_ARRAY(a, sampling_rank, t->vocabulary);
  l->slot = ARENA_ARRAY(a, size_t, prompts);
  gl_status status = arena_check(a, "a toy learner", err);
  for (size_t x = 0; x < prompts && status == GL_OK; ++x) {
    l->cache[x].logp = ARENA_ARRAY(a, double, t->n_edges);
    l->cache[x].p = ARENA_ARRAY(a, double, t->n_edges);
  }
  return arena_check(a, "a toy learner", err);
}

static void set_reference(toy_learner *l) {
  const toy_world *w = l->world;
  const size_t edges = w->tree.n_edges;
  if (w->reference == REFERENCE_INITIAL)
    for (size_t x = 0; x < w->n_prompts; ++x) toy_log_probs(w, l->theta, x, l->logref + x * edges);
  else
    for (size_t e = 0; e < w->n_prompts * edges; ++e)
      l->logref[e] = -log((double)w->tree.vocabulary);
}

/* Sets l->initial to the policy that is mixed into the behaviour policy: the initial or the
 * uniform one. */
static gl_status set_mixed_in(toy_learner *l, const cfg_node *sampling, gl_error *err) {
  const toy_world *w = l->world;
  const size_t edges = w->tree.n_edges, n = w->n_prompts * edges;
  if (w->sampling.behaviour.with == OTHER_NONE) return GL_OK;
  if (w->counted)
    return cfg_fail(cfg_find(sampling, "behaviour_mixture"), err,
                    "behaviour_mixture needs a world that lists its responses; set world.listed: "
                    "true, or leave it away");
  l->initial = ARENA_ARRAY(&l->memory, double, n);
  if (l->initial == NULL) return arena_check(&l->memory, "a toy learner", err);
  for (size_t x = 0; x < w->n_prompts && w->sampling.behaviour.with == OTHER_INITIAL; ++x)
    toy_log_probs(w, l->theta, x, l->initial + x * edges);
  for (size_t e = 0; e < n && w->sampling.behaviour.with == OTHER_UNIFORM; ++e)
    l->initial[e] = -log((double)w->tree.vocabulary);
  return GL_OK;
}

/* Flipping a reward r to 1 - r requires rewards in [0, 1]. */
static gl_status check_rewards(const toy_learner *l, const cfg_node *train, gl_error *err) {
  const toy_world *w = l->world;
  int shares = w->noise != NOISE_GAUSSIAN;
  for (size_t i = 0; w->reward != NULL && i < w->n_prompts * w->tree.n_responses; ++i)
    shares = shares && w->reward[i] >= 0 && w->reward[i] <= 1;
  for (size_t x = 0; w->reward == NULL && x < w->n_prompts; ++x)
    for (size_t s = 0; s < w->automata[x].states; ++s)
      shares = shares && w->automata[x].reward[s] >= 0 && w->automata[x].reward[s] <= 1;
  if (l->rewards.flip == 0 || shares) return GL_OK;
  return cfg_fail(train, err,
                  "train.reward_noise.flip turns r into 1 - r, and this world has rewards outside "
                  "of [0, 1]; take rewards of [0, 1], or leave flip away");
}

gl_status toy_learner_new(learner *out, const learner_setup *setup, gl_error *err) {
  static const learner_ops ops = {
      .kind = "toy",
      .draw = toy_learner_draw,
      .join = toy_learner_join,
      .adopt = toy_learner_adopt,
      .longest = toy_learner_longest,
      .update = toy_learner_update,
      .evaluate = evaluate,
      .parts = parts,
      .evaluate_parts = toy_evaluate_parts,
      .save = toy_learner_save,
      .load = toy_learner_load,
      .hold = toy_learner_hold,
      .release = toy_learner_release,
      .free = toy_learner_free,
  };
  *out = (learner){0};
  gl_status status = learner_setup_check(setup, err);
  if (status != GL_OK) return status;
  toy_learner *l = calloc(1, sizeof *l);
  if (l == NULL) return gl_fail_memory(err, "a toy learner");
  l->rewards = setup->rewards;
  l->stamp = 1;
  status = update_loop_init(&l->update, setup, err);
  l->update.has_reference = true;
  if (status == GL_OK)
    status = toy_world_new(&l->world, setup->world, setup->sampling, setup->seed, err);
  if (status == GL_OK)
    status = optimizer_parse(&l->update.optimizer, setup->optimizer, "bandit", err);
  if (status == GL_OK) status = check_rewards(l, setup->train, err);
  if (status == GL_OK) status = allocate_learner(l, err);
  if (status == GL_OK)
    status = toy_optimizer_init(&l->optimizer, &l->update.optimizer,
                                l->world->features.n_parameters, err);
  if (status == GL_OK)
    status = gradient_trail_init(&l->update.trail, l->world->features.n_parameters, err);
  if (status != GL_OK) {
    toy_learner_free(l);
    return status;
  }
  l->update.longest = l->world->tree.horizon;
  toy_world_initial(l->world, setup->seed, l->theta);
  if (l->average != NULL)
    memcpy(l->average, l->theta, l->world->features.n_parameters * sizeof *l->average);
  set_reference(l);
  status = set_mixed_in(l, setup->sampling, err);
  if (status == GL_OK) status = toy_read_sets(l, setup, err);
  if (status != GL_OK) {
    toy_learner_free(l);
    return status;
  }
  *out = (learner){&ops, l};
  return GL_OK;
}
