/* A transformer over a world of token sequences that can be enumerated (core/rl/sequence_task.h),
 * seen through core/rl/enumerable.h. Prompts are numbers written in the letters of the world. So
 * the model's vocabulary is the world's, and its softmax without truncation is the policy.
 *
 * The log-probabilities of the edges that leave a node of the tree of responses come from a forward
 * over the prompt and the tokens on the path to that node. The same forward gives them for every
 * prefix, that is, for all ancestors. So nodes are handled from the deepest level up, and a node on
 * the path of an earlier sequence needs no sequence of its own. Sequences are collected and run in
 * batches of bounded size. */
#include "llm/exact/exact_world.h"

#include "core/base/arena.h"
#include "core/rl/sequence_task.h"
#include "llm/backend/open/open.h"
#include "llm/model/model.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Number of packed tokens to collect before the model runs them. */
enum { EXACT_BATCH_TOKENS = 4096 };

/* Packed sequences of one forward, and its results. */
typedef struct exact_batch {
  size_t *start; /* [sequences + 1] first packed token of each sequence */
  size_t *after,
      *edge; /* [targets] the packed token that the target follows; the target's edge in the tree */
  int32_t *token, *target; /* [tokens], [targets] packed tokens; tokens to score */
  double *logp, *dlogp;    /* [targets] log-probability; gradient with respect to it */
  size_t n_sequences, n_tokens, n_targets;
} exact_batch;

/* The model and its workspace. A thread holds the lock while it uses them. */
typedef struct exact_workspace {
  pthread_mutex_t lock;
  int has_lock;
  backend *b;
  model *m;
  exact_batch batch;
  unsigned char *has_token; /* [n_nodes] 1: a packed sequence includes the last token of the path to
                               this node */
  double *edge, *gradient;  /* edge: [n_edges] log-probabilities or their coefficients; gradient:
                               [n_parameters] */
} exact_workspace;

struct exact_world {
  sequence_section section;
  response_tree tree;
  double *reward; /* [n_prompts * n_responses] reward of each response */
  sampling_spec sampling;
  size_t prompt_length, n_parameters;
  exact_workspace *workspace;
  arena memory; /* owns the world and all its arrays */
};

/* Writes prompt x as the model receives it, token[prompt_length]: its digits in base `vocabulary`,
 * most significant first. */
static void exact_world_prompt(const exact_world *w, size_t x, int32_t *token) {
  assert(x < w->section.n_prompts);
  for (size_t i = w->prompt_length; i-- > 0; x /= w->section.vocabulary)
    token[i] = (int32_t)(x % w->section.vocabulary);
}

/* --- reading the section --- */

/* Number of digits that write every prompt; 0 if there is one letter but several prompts. */
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

/* Reads a table of rewards, given instead of a task. Responses are in the tree's order: by length,
 * then lexicographically. */
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
  w->reward = ARENA_GRID(&w->memory, double, w->section.n_prompts, k);
  gl_status status = arena_check(&w->memory, "the rewards of a world", err);
  if (status != GL_OK) return status;
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

static gl_status read_exact_section(exact_world *w, model_config *c, const cfg_node *section,
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

/* Makes the model in double precision, and the buffers. */
static gl_status make_workspace(exact_world *w, const model_config *c, gl_error *err) {
  exact_workspace *b = w->workspace;
  arena *a = &w->memory;
  /* One thread: the matrices are small, and the laboratory has its own threads. */
  gl_status status = backend_new(&b->b, BACKEND_CPU, NUMBER_F64, 1, err);
  if (status == GL_OK) status = model_new(&b->m, c, b->b, 0, err);
  if (status != GL_OK) return status;
  w->n_parameters = model_parameters(b->m);
  const size_t tokens = EXACT_BATCH_TOKENS + w->prompt_length + w->tree.horizon;
  const size_t targets = tokens * w->tree.vocabulary;
  b->batch = (exact_batch){.start = ARENA_ARRAY(a, size_t, tokens + 1),
                           .token = ARENA_ARRAY(a, int32_t, tokens),
                           .after = ARENA_ARRAY(a, size_t, targets),
                           .edge = ARENA_ARRAY(a, size_t, targets),
                           .target = ARENA_ARRAY(a, int32_t, targets),
                           .logp = ARENA_ARRAY(a, double, targets),
                           .dlogp = ARENA_ARRAY(a, double, targets)};
  b->has_token = ARENA_ARRAY(a, unsigned char, w->tree.n_nodes);
  b->edge = ARENA_ARRAY(a, double, w->tree.n_edges);
  b->gradient = ARENA_ARRAY(a, double, w->n_parameters);
  status = arena_check(a, "a world", err);
  if (status != GL_OK) return status;
  b->has_lock = pthread_mutex_init(&b->lock, NULL) == 0;
  return b->has_lock ? GL_OK : gl_fail_memory(err, "a world's lock");
}

gl_status exact_world_new(exact_world **out, const cfg_node *world, const cfg_node *sampling,
                          uint64_t seed, gl_error *err) {
  model_config c = {0};
  arena memory = {0};
  *out = NULL;
  exact_world *w = ARENA_ARRAY(&memory, exact_world, 1);
  exact_workspace *workspace = ARENA_ARRAY(&memory, exact_workspace, 1);
  gl_status status = arena_check(&memory, "a world", err);
  if (status != GL_OK) return status;
  w->memory = memory;
  w->workspace = workspace;
  status = sampling_parse(&w->sampling, sampling, err);
  if (status == GL_OK) status = read_exact_section(w, &c, world, seed, err);
  if (status == GL_OK) status = make_workspace(w, &c, err);
  if (status == GL_OK)
    *out = w;
  else
    exact_world_free(w);
  return status;
}

void exact_world_free(exact_world *w) {
  if (w == NULL) return;
  model_free(w->workspace->m);
  backend_free(w->workspace->b);
  if (w->workspace->has_lock) pthread_mutex_destroy(&w->workspace->lock);
  response_tree_fini(&w->tree);
  arena_free_owner(&w->memory);
}

gl_status exact_world_initial(const exact_world *w, uint64_t seed, double *theta, gl_error *err) {
  pthread_mutex_lock(&w->workspace->lock);
  gl_status status = model_initialise(w->workspace->m, seed, err);
  if (status == GL_OK) status = model_get(w->workspace->m, theta, err);
  pthread_mutex_unlock(&w->workspace->lock);
  return status;
}

/* --- forwards and gradients over the tree --- */

/* A computation for one prompt: the log-probabilities of its edges, or a gradient through them. */
typedef struct sweep {
  const exact_world *w;
  exact_workspace *workspace;
  size_t x;
  /* [n_edges] coefficients c of the sum c_e logp_e to differentiate; edges with coefficient 0 are
   * skipped. NULL: compute every edge's log-probability, in `logp`. */
  const double *through;
  double *logp; /* [n_edges] log-probability of each edge */
} sweep;

/* --- sequences --- */

static int is_wanted(const sweep *s, size_t edge) {
  return s->through == NULL || s->through[edge] != 0;
}

/* Makes the wanted edges of a node targets that follow the packed token `after`. */
static void add_targets(const sweep *s, size_t node, size_t after) {
  exact_batch *p = &s->workspace->batch;
  const size_t v = s->w->tree.vocabulary;
  s->workspace->has_token[node] = 1;
  for (size_t a = 0; a < v; ++a) {
    if (!is_wanted(s, node * v + a)) continue;
    p->after[p->n_targets] = after;
    p->edge[p->n_targets] = node * v + a;
    p->target[p->n_targets++] = (int32_t)a;
  }
}

/* Adds the sequence that ends at a node. Makes the wanted edges of the nodes on its path targets,
 * except at nodes that an earlier sequence covers. */
static void add_path(const sweep *s, size_t node, size_t depth) {
  const response_tree *t = &s->w->tree;
  exact_batch *p = &s->workspace->batch;
  const size_t prompt = s->w->prompt_length, last = p->n_tokens + prompt - 1;
  int32_t *token = p->token + p->n_tokens;
  exact_world_prompt(s->w, s->x, token);
  for (size_t d = depth, at = node; d-- > 0; at = (size_t)t->entered_by[at] / t->vocabulary)
    token[prompt + d] = t->entered_by[at] % (int32_t)t->vocabulary;
  p->n_tokens += prompt + depth;
  p->start[++p->n_sequences] = p->n_tokens;
  for (size_t d = 0, at = 0;; ++d) { /* from the root down, so that targets ascend */
    if (!s->workspace->has_token[at]) add_targets(s, at, last + d);
    if (d == depth) return;
    at = (size_t)t->next[at * t->vocabulary + (size_t)token[prompt + d]];
  }
}

/* Runs the collected sequences: writes log-probabilities, or adds their gradient, and empties the
 * batch. */
static gl_status run_batch(const sweep *s, gl_error *err) {
  exact_batch *p = &s->workspace->batch;
  const int backward = s->through != NULL;
  const packed_tokens packed = {p->n_tokens, p->n_sequences, p->n_targets, p->start,
                                p->token,    p->after,       p->target};
  gl_status status = GL_OK;
  if (p->n_targets > 0)
    status = model_forward(s->workspace->m, &packed, s->w->sampling.temperature, backward, p->logp,
                           NULL, err);
  for (size_t j = 0; j < p->n_targets; ++j) {
    if (backward)
      p->dlogp[j] = s->through[p->edge[j]];
    else
      s->logp[p->edge[j]] = p->logp[j];
  }
  if (status == GL_OK && backward && p->n_targets > 0)
    status = model_backward(s->workspace->m, p->dlogp, err);
  p->n_tokens = p->n_sequences = p->n_targets = 0;
  return status;
}

static int needs_token(const sweep *s, size_t node) {
  const size_t v = s->w->tree.vocabulary;
  if (s->workspace->has_token[node]) return 0;
  for (size_t a = 0; a < v; ++a)
    if (is_wanted(s, node * v + a)) return 1;
  return 0;
}

/* Runs the computation. The caller holds the lock and has set the parameters. */
static gl_status run_sweep(const sweep *s, gl_error *err) {
  const response_tree *t = &s->w->tree;
  gl_status status = GL_OK;
  memset(s->workspace->has_token, 0, t->n_nodes);
  for (size_t depth = t->horizon; depth-- > 0;)
    for (size_t node = t->level[depth]; node < t->level[depth + 1] && status == GL_OK; ++node) {
      if (!needs_token(s, node)) continue;
      add_path(s, node, depth);
      if (s->workspace->batch.n_tokens >= EXACT_BATCH_TOKENS) status = run_batch(s, err);
    }
  return status == GL_OK ? run_batch(s, err) : status;
}

/* gradient = d sum_e through[e] logp_e / d theta, under the conditions of run_sweep(). */
static gl_status run_backward(const sweep *s, double *gradient, gl_error *err) {
  gl_status status = model_zero_gradient(s->workspace->m, err);
  if (status == GL_OK) status = run_sweep(s, err);
  return status == GL_OK ? model_gradient_get(s->workspace->m, gradient, err) : status;
}

/* --- the view --- */

static size_t view_n_responses(const void *self, size_t x) {
  (void)x;
  return ((const exact_world *)self)->tree.n_responses;
}

static size_t view_length(const void *self, size_t x, size_t y) {
  (void)x;
  return (size_t)((const exact_world *)self)->tree.length[y];
}

static void view_rewards(const void *self, size_t x, double *reward) {
  const exact_world *w = self;
  const size_t k = w->tree.n_responses;
  memcpy(reward, w->reward + x * k, k * sizeof *reward);
}

/* Writes the log-probabilities of all edges into the workspace. cut 1: of the truncated sampling
 * distribution (paper/methods.md §1.2). */
static gl_status edge_log_probs(const exact_world *w, const double *theta, size_t x, int cut,
                                gl_error *err) {
  const size_t v = w->tree.vocabulary;
  const sweep s = {.w = w, .workspace = w->workspace, .x = x, .logp = w->workspace->edge};
  gl_status status = model_set(w->workspace->m, theta, err);
  if (status == GL_OK) status = run_sweep(&s, err);
  if (status != GL_OK || !cut) return status;
  sampling_rank *rank = calloc(v, sizeof *rank);
  double *dist = calloc(v, sizeof *dist);
  if (rank == NULL || dist == NULL) status = gl_fail_memory(err, "log-probabilities");
  for (size_t n = 0; n < w->tree.n_nodes && status == GL_OK; ++n) {
    sampling_truncate(&w->sampling, s.logp + n * v, v, dist, rank);
    memcpy(s.logp + n * v, dist, v * sizeof *dist);
  }
  free(rank);
  free(dist);
  return status;
}

static gl_status log_probs(const exact_world *w, const double *theta, size_t x, int cut,
                           double *logp, gl_error *err) {
  pthread_mutex_lock(&w->workspace->lock);
  gl_status status = edge_log_probs(w, theta, x, cut, err);
  if (status == GL_OK) response_tree_along_paths(&w->tree, w->workspace->edge, logp);
  pthread_mutex_unlock(&w->workspace->lock);
  return status;
}

static gl_status view_log_probs(const void *self, const double *theta, size_t x, double *logp,
                                gl_error *err) {
  return log_probs(self, theta, x, 0, logp, err);
}

static gl_status view_log_probs_truncated(const void *self, const double *theta, size_t x,
                                          double *logp, gl_error *err) {
  return log_probs(self, theta, x, 1, logp, err);
}

/* --- a policy renormalised over the tokens that another one's sampler keeps --- */

/* over [n_edges] = log-probabilities under theta at x, renormalised at each node over the tokens
 * that the sampler keeps; -inf for the other tokens. theta remains set. The caller holds the lock.
 */
static gl_status replayed_edges(const exact_world *w, const double *theta,
                                const double *theta_sampler, size_t x, double *over,
                                gl_error *err) {
  const size_t v = w->tree.vocabulary, edges = w->tree.n_edges;
  gl_status status = edge_log_probs(w, theta_sampler, x, 1, err);
  if (status != GL_OK) return status;
  memcpy(over, w->workspace->edge, edges * sizeof *over);
  status = edge_log_probs(w, theta, x, 0, err);
  const double *logp = w->workspace->edge;
  for (size_t first = 0; first < edges && status == GL_OK; first += v) {
    double top = -INFINITY, sum = 0;
    for (size_t e = first; e < first + v; ++e)
      if (!isinf(over[e]) && logp[e] > top) top = logp[e];
    for (size_t e = first; e < first + v; ++e)
      if (!isinf(over[e])) sum += exp(logp[e] - top);
    for (size_t e = first; e < first + v; ++e)
      if (!isinf(over[e])) over[e] = logp[e] - top - log(sum);
  }
  return status;
}

static gl_status view_log_probs_replayed(const void *self, const double *theta,
                                         const double *theta_sampler, size_t x, double *logp,
                                         gl_error *err) {
  const exact_world *w = self;
  double *over = calloc(w->tree.n_edges, sizeof *over);
  if (over == NULL) return gl_fail_memory(err, "log-probabilities");
  pthread_mutex_lock(&w->workspace->lock);
  gl_status status = replayed_edges(w, theta, theta_sampler, x, over, err);
  pthread_mutex_unlock(&w->workspace->lock);
  if (status == GL_OK) response_tree_along_paths(&w->tree, over, logp);
  free(over);
  return status;
}

/* Converts coefficients of the renormalised log-probabilities to coefficients of the whole
 * distribution's. The gradient of a kept token's renormalised log-probability is the gradient of
 * its log-probability minus the expectation of this gradient under the renormalised distribution.
 */
static void pass_to_whole_dist(const response_tree *t, const double *over, double *through) {
  const size_t v = t->vocabulary;
  for (size_t first = 0; first < t->n_edges; first += v) {
    double sum = 0;
    for (size_t e = first; e < first + v; ++e) sum += through[e];
    if (sum == 0) continue;
    for (size_t e = first; e < first + v; ++e)
      if (!isinf(over[e])) through[e] -= sum * exp(over[e]);
  }
}

/* theta_sampler NULL: scores of the whole distribution. */
static gl_status view_accumulate_score_replayed(const void *self, const double *theta,
                                                const double *theta_sampler, size_t x,
                                                const double *coefficient, double *grad,
                                                gl_error *err) {
  const exact_world *w = self;
  const response_tree *t = &w->tree;
  exact_workspace *b = w->workspace;
  const sweep s = {.w = w, .workspace = b, .x = x, .through = b->edge};
  double *over = theta_sampler != NULL ? calloc(t->n_edges, sizeof *over) : NULL;
  if (theta_sampler != NULL && over == NULL) return gl_fail_memory(err, "scores");
  pthread_mutex_lock(&b->lock);
  gl_status status = over != NULL ? replayed_edges(w, theta, theta_sampler, x, over, err)
                                  : model_set(b->m, theta, err);
  response_tree_gather(t, coefficient, b->edge);
  if (status == GL_OK && over != NULL) pass_to_whole_dist(t, over, b->edge);
  if (status == GL_OK) status = run_backward(&s, b->gradient, err);
  for (size_t i = 0; i < w->n_parameters && status == GL_OK; ++i) grad[i] += b->gradient[i];
  pthread_mutex_unlock(&b->lock);
  free(over);
  return status;
}

static gl_status view_accumulate_score(const void *self, const double *theta, size_t x,
                                       const double *coefficient, double *grad, gl_error *err) {
  return view_accumulate_score_replayed(self, theta, NULL, x, coefficient, grad, err);
}

/* The score (gradient of the log-probability) of one edge from a node of that depth. All
 * coefficients are zero before and after. */
static gl_status edge_score(const sweep *s, size_t edge, size_t depth, double *score,
                            gl_error *err) {
  const size_t node = edge / s->w->tree.vocabulary;
  gl_status status = model_zero_gradient(s->workspace->m, err);
  s->workspace->edge[edge] = 1;
  s->workspace->has_token[node] = 0;
  add_path(s, node, depth);
  if (status == GL_OK) status = run_batch(s, err);
  s->workspace->edge[edge] = 0;
  return status == GL_OK ? model_gradient_get(s->workspace->m, score, err) : status;
}

/* The score of one response. It needs one sequence, to the node of its last token. */
static gl_status sequence_score(const sweep *s, size_t y, double *score, gl_error *err) {
  const response_tree *t = &s->w->tree;
  const int32_t *path = t->path + y * t->horizon;
  const size_t length = (size_t)t->length[y], v = t->vocabulary;
  gl_status status = model_zero_gradient(s->workspace->m, err);
  for (size_t i = 0; i < length; ++i) {
    s->workspace->edge[path[i]] = 1;
    s->workspace->has_token[(size_t)path[i] / v] = 0;
  }
  add_path(s, (size_t)path[length - 1] / v, length - 1);
  if (status == GL_OK) status = run_batch(s, err);
  for (size_t i = 0; i < length; ++i) s->workspace->edge[path[i]] = 0;
  return status == GL_OK ? model_gradient_get(s->workspace->m, score, err) : status;
}

static gl_status view_sequence_scores(const void *self, const double *theta, size_t x,
                                      double *score, gl_error *err) {
  const exact_world *w = self;
  exact_workspace *b = w->workspace;
  const sweep s = {.w = w, .workspace = b, .x = x, .through = b->edge};
  pthread_mutex_lock(&b->lock);
  memset(b->edge, 0, w->tree.n_edges * sizeof *b->edge);
  gl_status status = model_set(b->m, theta, err);
  for (size_t y = 0; y < w->tree.n_responses && status == GL_OK; ++y)
    status = sequence_score(&s, y, score + y * w->n_parameters, err);
  pthread_mutex_unlock(&b->lock);
  return status;
}

/* Responses that share a prefix share the scores of its tokens. So there is one backward per edge
 * of the tree, not per response. */
static gl_status view_token_scores(const void *self, const double *theta, size_t x, double *score,
                                   gl_error *err) {
  const exact_world *w = self;
  const response_tree *t = &w->tree;
  exact_workspace *b = w->workspace;
  const sweep s = {.w = w, .workspace = b, .x = x, .through = b->edge};
  const size_t n = w->n_parameters, rows = t->n_responses * t->horizon;
  int32_t *first = calloc(t->n_edges, sizeof *first); /* 1 + the first row that contains the edge */
  if (first == NULL) return gl_fail_memory(err, "scores");
  pthread_mutex_lock(&b->lock);
  memset(b->edge, 0, t->n_edges * sizeof *b->edge);
  gl_status status = model_set(b->m, theta, err);
  for (size_t row = 0; row < rows && status == GL_OK; ++row) {
    const int32_t edge = t->path[row];
    if (edge < 0) continue;
    if (first[edge] == 0) {
      status = edge_score(&s, (size_t)edge, row % t->horizon, score + row * n, err);
      first[edge] = (int32_t)row + 1;
    } else
      memcpy(score + row * n, score + (size_t)(first[edge] - 1) * n, n * sizeof *score);
  }
  pthread_mutex_unlock(&b->lock);
  free(first);
  return status;
}

enumerable exact_world_enumerable(const exact_world *w) {
  static const enumerable_ops whole = {
      .n_responses = view_n_responses,
      .length = view_length,
      .rewards = view_rewards,
      .log_probs = view_log_probs,
      .accumulate_score = view_accumulate_score,
      .sequence_scores = view_sequence_scores,
      .token_scores = view_token_scores,
  };
  static const enumerable_ops truncated = {
      .n_responses = view_n_responses,
      .length = view_length,
      .rewards = view_rewards,
      .log_probs = view_log_probs,
      .log_probs_truncated = view_log_probs_truncated,
      .log_probs_replayed = view_log_probs_replayed,
      .accumulate_score_replayed = view_accumulate_score_replayed,
      .accumulate_score = view_accumulate_score,
      .sequence_scores = view_sequence_scores,
      .token_scores = view_token_scores,
  };
  return (enumerable){
      .ops = sampling_truncates(&w->sampling, w->tree.vocabulary) ? &truncated : &whole,
      .self = w,
      .n_prompts = w->section.n_prompts,
      .n_parameters = w->n_parameters,
      .max_length = w->tree.horizon,
      .max_responses = w->tree.n_responses,
  };
}
