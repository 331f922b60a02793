/* The toy learner: its construction. What it does is in draw.c, update.c and evaluate.c, its
 * parameters, held versions and checkpoints in state.c. */
#include "toy/learner/learner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Toy policies have logits of order one and few updates: they want large steps. */

static void learner_free(void *self) {
  toy_learner *l = self;
  if (l == NULL) return;
  toy_learner_free_sets(l);
  toy_world_free(l->world);
  free(l->theta);
  free(l->direction);
  free(l->logref);
  free(l->initial);
  free(l->cache);
  free(l->cache_values);
  free(l->scratch);
  free(l->edges);
  free(l->evaluated);
  free(l->token);
  free(l->rank);
  free(l->slot);
  free(l->dist);
  free(l->edge);
  toy_held_free(l->held, l->n_held);
  toy_optimizer_fini(&l->optimizer);
  update_loop_fini(&l->update);
  free(l);
}

static gl_status allocate(toy_learner *l, gl_error *err) {
  const response_tree *t = &l->world->tree;
  const size_t prompts = l->world->n_prompts, n = l->world->features.n_parameters;
  l->theta = calloc(n, sizeof *l->theta);
  l->direction = calloc(n, sizeof *l->direction);
  l->logref = calloc(prompts * t->n_edges, sizeof *l->logref);
  l->cache = calloc(prompts, sizeof *l->cache);
  l->cache_values = calloc(prompts * t->n_edges, 2 * sizeof *l->cache_values);
  l->scratch = calloc(toy_scratch(l->world), sizeof *l->scratch);
  l->edges = calloc(t->n_edges, sizeof *l->edges);
  l->evaluated = calloc(t->n_edges, 2 * sizeof *l->evaluated);
  l->token = calloc(t->vocabulary, 3 * sizeof *l->token);
  l->rank = calloc(t->vocabulary, sizeof *l->rank);
  l->slot = calloc(prompts, sizeof *l->slot);
  if (l->theta == NULL || l->direction == NULL || l->logref == NULL || l->cache == NULL ||
      l->cache_values == NULL || l->scratch == NULL || l->edges == NULL || l->evaluated == NULL ||
      l->token == NULL || l->rank == NULL || l->slot == NULL)
    return gl_fail_memory(err, "a toy learner");
  for (size_t x = 0; x < prompts; ++x) {
    l->cache[x].logp = l->cache_values + 2 * x * t->n_edges;
    l->cache[x].p = l->cache[x].logp + t->n_edges;
  }
  return GL_OK;
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

/* What responses of samplers are mixed with. */
static gl_status set_initial(toy_learner *l, const cfg_node *sampling, gl_error *err) {
  const toy_world *w = l->world;
  const size_t edges = w->tree.n_edges, n = w->n_prompts * edges;
  if (w->sampling.behaviour.with == OTHER_NONE) return GL_OK;
  if (w->counted)
    return cfg_fail(cfg_find(sampling, "behaviour_mixture"), err,
                    "behaviour_mixture needs a world that lists its responses; set world.listed: "
                    "true, or leave it away");
  l->initial = calloc(n, sizeof *l->initial);
  if (l->initial == NULL) return gl_fail_memory(err, "a toy learner");
  for (size_t x = 0; x < w->n_prompts && w->sampling.behaviour.with == OTHER_INITIAL; ++x)
    toy_log_probs(w, l->theta, x, l->initial + x * edges);
  for (size_t e = 0; e < n && w->sampling.behaviour.with == OTHER_UNIFORM; ++e)
    l->initial[e] = -log((double)w->tree.vocabulary);
  return GL_OK;
}

/* A reward r can be flipped to 1 - r where it is a share. */
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
      .evaluate = toy_learner_evaluate,
      .parts = toy_learner_parts,
      .evaluate_parts = toy_learner_evaluate_parts,
      .save = toy_learner_save,
      .load = toy_learner_load,
      .hold = toy_learner_hold,
      .release = toy_learner_release,
      .free = learner_free,
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
  if (status == GL_OK) status = allocate(l, err);
  if (status == GL_OK)
    status = toy_optimizer_init(&l->optimizer, &l->update.optimizer,
                                l->world->features.n_parameters, err);
  if (status == GL_OK)
    status = gradient_trail_init(&l->update.trail, l->world->features.n_parameters, err);
  if (status != GL_OK) {
    learner_free(l);
    return status;
  }
  l->update.longest = l->world->tree.horizon;
  toy_world_initial(l->world, setup->seed, l->theta);
  set_reference(l);
  status = set_initial(l, setup->sampling, err);
  if (status == GL_OK) status = toy_learner_take_sets(l, setup, err);
  if (status != GL_OK) {
    learner_free(l);
    return status;
  }
  *out = (learner){&ops, l};
  return GL_OK;
}
