/* A transformer over a world of token sequences that can be enumerated (core/rl/sequence_task.h).
 * The prompts are numbers written in the world's own letters, so that the model's vocabulary is the
 * world's and its softmax, whole, is the policy. */
#include "llm/backend/open/open.h"
#include "llm/exact/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void exact_world_prompt(const exact_world *w, size_t x, int32_t *token) {
  assert(x < w->section.n_prompts);
  for (size_t i = w->prompt_length; i-- > 0; x /= w->section.vocabulary)
    token[i] = (int32_t)(x % w->section.vocabulary);
}

/* --- reading the section --- */

/* Digits that write every prompt; 0 where one letter has to write several. */
static size_t digits(size_t n_prompts, size_t letters) {
  size_t n = 1;
  if (letters == 1) return n_prompts == 1;
  for (size_t reach = letters; reach < n_prompts; reach *= letters) ++n;
  return n;
}

static gl_status read_reward_row(const cfg_node *list, size_t n, double *reward, gl_error *err) {
  if (cfg_kind_of(list) != CFG_LIST || cfg_size(list) != n)
    return cfg_fail(list, err,
                    "rewards must be a list of %zu numbers, one per response, or one "
                    "such list per prompt",
                    n);
  for (size_t y = 0; y < n; ++y)
    if (!cfg_number(cfg_at(list, y), reward + y))
      return cfg_fail(cfg_at(list, y), err, "a reward must be a number");
  return GL_OK;
}

/* A table instead of a task: responses in the tree's order, by length, then lexicographically. */
static gl_status read_rewards(exact_world *w, const cfg_node *list, gl_error *err) {
  const size_t k = w->tree.n_responses, n = w->section.n_prompts;
  const int nested = cfg_kind_of(list) == CFG_LIST && cfg_size(list) > 0 &&
                     cfg_kind_of(cfg_at(list, 0)) == CFG_LIST;
  if (nested && cfg_size(list) != n)
    return cfg_fail(list, err, "rewards has %zu lists for %zu prompts", cfg_size(list), n);
  gl_status status = GL_OK;
  for (size_t x = 0; x < n && status == GL_OK; ++x)
    status = read_reward_row(nested ? cfg_at(list, x) : list, k, w->reward + x * k, err);
  return status;
}

static gl_status make_rewards(exact_world *w, const cfg_node *section, const cfg_node *table,
                              uint64_t seed, gl_error *err) {
  const size_t most = (size_t)1 << 26, k = w->tree.n_responses;
  if (w->section.n_prompts > most / k)
    return cfg_fail(section, err,
                    "%zu prompts with %zu responses each are too many to enumerate; use fewer",
                    w->section.n_prompts, k);
  w->reward = calloc(w->section.n_prompts * k, sizeof *w->reward);
  if (w->reward == NULL) return gl_fail_memory(err, "the rewards of a world");
  if (table != NULL) return read_rewards(w, table, err);
  return sequence_task_rewards(&w->section.task, &w->tree, w->section.n_prompts, seed, w->reward,
                               err);
}

static gl_status read_model(model_config *c, const exact_world *w, const cfg_node *section,
                            const cfg_node *node, gl_error *err) {
  gl_status status = model_config_read(c, node, w->tree.vocabulary, err);
  if (status == GL_OK && c->max_positions < w->prompt_length + w->tree.horizon)
    status = cfg_fail(node != NULL ? node : section, err,
                      "a context of %zu is too short for %zu tokens of prompt and %zu of response",
                      c->max_positions, w->prompt_length, w->tree.horizon);
  return status;
}

static gl_status read_section(exact_world *w, model_config *c, const cfg_node *section,
                              uint64_t seed, gl_error *err) {
  cfg_reader r;
  cfg_begin(&r, section, "world", err);
  (void)cfg_string(&r, "kind", "llm");
  const cfg_node *model_node = cfg_child(&r, "model"), *rewards = cfg_child(&r, "rewards");
  (void)sequence_section_read(&w->section, &r);
  gl_status status = cfg_end(&r);
  if (status != GL_OK) return status;
  w->prompt_length = digits(w->section.n_prompts, w->section.vocabulary);
  if (w->prompt_length == 0)
    return cfg_fail(section, err, "a vocabulary of one letter cannot write %zu prompts",
                    w->section.n_prompts);
  status = sequence_section_tree(&w->tree, &w->section, section, err);
  if (status == GL_OK) status = read_model(c, w, section, model_node, err);
  return status == GL_OK ? make_rewards(w, section, rewards, seed, err) : status;
}

/* --- memory --- */

static gl_status make_batch(exact_batch *p, const exact_world *w, gl_error *err) {
  const size_t tokens = EXACT_BATCH_TOKENS + w->prompt_length + w->tree.horizon;
  const size_t targets = tokens * w->tree.vocabulary;
  p->start = calloc(tokens + 1, sizeof *p->start);
  p->token = calloc(tokens, sizeof *p->token);
  p->after = calloc(targets, sizeof *p->after);
  p->edge = calloc(targets, sizeof *p->edge);
  p->target = calloc(targets, sizeof *p->target);
  p->logp = calloc(targets, sizeof *p->logp);
  p->dlogp = calloc(targets, sizeof *p->dlogp);
  if (p->start != NULL && p->token != NULL && p->after != NULL && p->edge != NULL &&
      p->target != NULL && p->logp != NULL && p->dlogp != NULL)
    return GL_OK;
  return gl_fail_memory(err, "a world's sequences");
}

static gl_status make_workspace(exact_world *w, const model_config *c, gl_error *err) {
  exact_workspace *b = w->workspace;
  /* One thread: a world's rows are few and small, and the laboratory has threads of its own. */
  gl_status status = backend_new(&b->b, BACKEND_CPU, NUMBER_F64, 1, err);
  if (status == GL_OK) status = model_new(&b->m, c, b->b, 0, err);
  if (status == GL_OK) status = make_batch(&b->batch, w, err);
  if (status != GL_OK) return status;
  w->n_parameters = model_parameters(b->m);
  b->has_token = calloc(w->tree.n_nodes, sizeof *b->has_token);
  b->edge = calloc(w->tree.n_edges, sizeof *b->edge);
  b->gradient = calloc(w->n_parameters, sizeof *b->gradient);
  if (b->has_token == NULL || b->edge == NULL || b->gradient == NULL)
    return gl_fail_memory(err, "a world");
  b->has_lock = pthread_mutex_init(&b->lock, NULL) == 0;
  return b->has_lock ? GL_OK : gl_fail_memory(err, "a world's lock");
}

static void free_workspace(exact_workspace *b) {
  if (b == NULL) return;
  free(b->batch.start);
  free(b->batch.token);
  free(b->batch.after);
  free(b->batch.edge);
  free(b->batch.target);
  free(b->batch.logp);
  free(b->batch.dlogp);
  free(b->has_token);
  free(b->edge);
  free(b->gradient);
  model_free(b->m);
  backend_free(b->b);
  if (b->has_lock) pthread_mutex_destroy(&b->lock);
  free(b);
}

gl_status exact_world_new(exact_world **out, const cfg_node *world, const cfg_node *sampling,
                          uint64_t seed, gl_error *err) {
  model_config c = {0};
  *out = NULL;
  exact_world *w = calloc(1, sizeof *w);
  if (w == NULL) return gl_fail_memory(err, "a world");
  w->workspace = calloc(1, sizeof *w->workspace);
  gl_status status = w->workspace == NULL ? gl_fail_memory(err, "a world")
                                          : sampling_parse(&w->sampling, sampling, err);
  if (status == GL_OK) status = read_section(w, &c, world, seed, err);
  if (status == GL_OK) status = make_workspace(w, &c, err);
  if (status == GL_OK)
    *out = w;
  else
    exact_world_free(w);
  return status;
}

void exact_world_free(exact_world *w) {
  if (w == NULL) return;
  free_workspace(w->workspace);
  response_tree_fini(&w->tree);
  free(w->reward);
  free(w);
}

gl_status exact_world_initial(const exact_world *w, uint64_t seed, double *theta, gl_error *err) {
  pthread_mutex_lock(&w->workspace->lock);
  gl_status status = model_initialise(w->workspace->m, seed, err);
  if (status == GL_OK) status = model_get(w->workspace->m, theta, err);
  pthread_mutex_unlock(&w->workspace->lock);
  return status;
}
