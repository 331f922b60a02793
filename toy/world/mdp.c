/* Markov decision processes: their trajectories as enumerable responses, and the environments that
 * recipes name. */
#include "toy/world/mdp.h"

#include "core/config/fields.h"
#include "core/random/rng.h"
#include "toy/world/toy_world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void mdp_free(mdp *m) {
  if (m == NULL) return;
  arena_fini(&m->memory);
  free(m);
}

static double logit(const mdp *m, const double *theta, size_t pair) {
  if (m->n_features == 0) return theta[pair];
  double z = 0;
  for (size_t k = 0; k < m->n_features; ++k) z += theta[k] * m->feature[pair * m->n_features + k];
  return z;
}

/* Writes log pi(a|s) to log_policy[states * actions]. */
static void mdp_log_policy(const mdp *m, const double *theta, double *log_policy) {
  for (size_t s = 0; s < m->states; ++s) {
    double *row = log_policy + s * m->actions, top = -INFINITY, sum = 0;
    for (size_t a = 0; a < m->actions; ++a) {
      row[a] = logit(m, theta, s * m->actions + a);
      top = fmax(top, row[a]);
    }
    for (size_t a = 0; a < m->actions; ++a) sum += exp(row[a] - top);
    for (size_t a = 0; a < m->actions; ++a) row[a] -= top + log(sum);
  }
}

/* --- trajectories --- */
/* All trajectories of a decision process as an enumerable policy. */

/* Trajectories, those of a prompt adjacent. A pair is state * actions + action. */
struct mdp_trajectories {
  const mdp *m;
  size_t n_prompts, most;
  size_t *first;  /* [n_prompts + 1] index of a prompt's first trajectory */
  double *weight; /* [n_prompts] probability of the start state */
  size_t n, room;
  size_t *length;     /* [n] steps of each trajectory */
  size_t *pair;       /* [n * horizon] state-action pair of each step */
  double *transition; /* [n * horizon] log P(s'|s,a) */
  double *reward;     /* [n] return: sum of expected rewards */
};

void mdp_trajectories_free(mdp_trajectories *t) {
  if (t == NULL) return;
  free(t->first);
  free(t->weight);
  free(t->length);
  free(t->pair);
  free(t->transition);
  free(t->reward);
  free(t);
}

static gl_status mdp_make_room(mdp_trajectories *t, gl_error *err) {
  if (t->n < t->room) return GL_OK;
  if (t->n - t->first[t->n_prompts] >= MDP_MAX_TRAJECTORIES)
    return gl_fail(err, GL_EINPUT,
                   "the process has more than %zu trajectories from one start; shorten the horizon",
                   MDP_MAX_TRAJECTORIES);
  const size_t room = t->room == 0 ? 64 : 2 * t->room, h = t->m->horizon;
  size_t *length = realloc(t->length, room * sizeof *length);
  if (length != NULL) t->length = length;
  size_t *pair = realloc(t->pair, room * h * sizeof *pair);
  if (pair != NULL) t->pair = pair;
  double *transition = realloc(t->transition, room * h * sizeof *transition);
  if (transition != NULL) t->transition = transition;
  double *reward = realloc(t->reward, room * sizeof *reward);
  if (reward != NULL) t->reward = reward;
  if (length == NULL || pair == NULL || transition == NULL || reward == NULL)
    return gl_fail_memory(err, "the trajectories of a decision process");
  t->room = room;
  return GL_OK;
}

/* State of the recursive enumeration of trajectories. Rewards are the expected r(s,a), averaged
 * over next states, which gives the same J and gradient. */
typedef struct walk {
  size_t *pair;
  double *transition;
} walk;

/* Stores the complete trajectory in w, of `depth` steps, with its sum of expected rewards. */
static gl_status mdp_keep(mdp_trajectories *t, const walk *w, size_t depth, gl_error *err) {
  const size_t h = t->m->horizon;
  gl_status status = mdp_make_room(t, err);
  if (status != GL_OK) return status;
  double reward = 0;
  for (size_t i = 0; i < depth; ++i) reward += t->m->reward[w->pair[i]];
  memcpy(t->pair + t->n * h, w->pair, depth * sizeof *w->pair);
  memcpy(t->transition + t->n * h, w->transition, depth * sizeof *w->transition);
  t->length[t->n] = depth;
  t->reward[t->n++] = reward;
  return GL_OK;
}

/* Enumerates the continuations of the trajectory in w, whose `depth` steps lead to state s. */
static gl_status extend(mdp_trajectories *t, walk *w, size_t s, size_t depth, gl_error *err) {
  const mdp *m = t->m;
  gl_status status = GL_OK;
  if (depth == m->horizon || m->terminal[s]) return mdp_keep(t, w, depth, err);
  for (size_t a = 0; a < m->actions && status == GL_OK; ++a) {
    const size_t pair = s * m->actions + a;
    const double *next = m->transition + pair * m->states;
    w->pair[depth] = pair;
    /* The last transition does not affect the return: do not branch on it. */
    if (depth + 1 == m->horizon) {
      w->transition[depth] = 0;
      status = mdp_keep(t, w, depth + 1, err);
      continue;
    }
    for (size_t to = 0; to < m->states && status == GL_OK; ++to) {
      if (next[to] == 0) continue;
      w->transition[depth] = log(next[to]);
      status = extend(t, w, to, depth + 1, err);
    }
  }
  return status;
}

gl_status mdp_trajectories_new(mdp_trajectories **out, const mdp *m, gl_error *err) {
  *out = NULL;
  mdp_trajectories *t = calloc(1, sizeof *t);
  walk w = {calloc(m->horizon, sizeof *w.pair), calloc(m->horizon, sizeof *w.transition)};
  gl_status status = GL_OK;
  if (t != NULL) {
    *t = (mdp_trajectories){.m = m,
                            .first = calloc(m->states + 1, sizeof *t->first),
                            .weight = calloc(m->states, sizeof *t->weight)};
  }
  if (t == NULL || w.pair == NULL || w.transition == NULL || t->first == NULL || t->weight == NULL)
    status = gl_fail_memory(err, "the trajectories of a decision process");
  for (size_t s = 0; s < m->states && status == GL_OK; ++s) {
    if (m->start[s] == 0) continue;
    if (m->terminal[s])
      status = gl_fail(err, GL_EINPUT, "state %zu is a start and terminal; nothing to learn", s);
    else
      status = extend(t, &w, s, 0, err);
    t->weight[t->n_prompts] = m->start[s];
    const size_t count = t->n - t->first[t->n_prompts];
    t->first[++t->n_prompts] = t->n;
    if (count > t->most) t->most = count;
  }
  free(w.pair);
  free(w.transition);
  if (status == GL_OK)
    *out = t;
  else
    mdp_trajectories_free(t);
  return status;
}

/* --- the enumerable view --- */

static size_t n_responses(const void *self, size_t x) {
  const mdp_trajectories *t = self;
  return t->first[x + 1] - t->first[x];
}

static size_t length(const void *self, size_t x, size_t y) {
  const mdp_trajectories *t = self;
  return t->length[t->first[x] + y];
}

static void rewards(const void *self, size_t x, double *reward) {
  const mdp_trajectories *t = self;
  memcpy(reward, t->reward + t->first[x], n_responses(self, x) * sizeof *reward);
}

/* Allocates log pi(a|s) of all pairs; the caller frees it. Returns NULL and sets err if memory runs
 * out. */
static double *mdp_new_log_policy(const mdp *m, const double *theta, gl_error *err) {
  double *log_policy = calloc(m->states, m->actions * sizeof *log_policy);
  if (log_policy == NULL)
    gl_fail_memory(err, "a policy");
  else
    mdp_log_policy(m, theta, log_policy);
  return log_policy;
}

static gl_status mdp_log_probs(const void *self, const double *theta, size_t x, double *logp,
                               gl_error *err) {
  const mdp_trajectories *t = self;
  const size_t h = t->m->horizon;
  double *log_policy = mdp_new_log_policy(t->m, theta, err);
  if (log_policy == NULL) return GL_ENOMEM;
  for (size_t y = t->first[x]; y < t->first[x + 1]; ++y)
    for (size_t i = 0; i < h; ++i)
      logp[(y - t->first[x]) * h + i] =
          i < t->length[y] ? log_policy[t->pair[y * h + i]] + t->transition[y * h + i] : 0;
  free(log_policy);
  return GL_OK;
}

/* grad += c * d log pi(pair) / d theta; log_policy [states * actions], as from mdp_log_policy(). */
static void mdp_add_score(const mdp *m, const double *log_policy, size_t pair, double c,
                          double *grad) {
  const size_t s = pair / m->actions;
  for (size_t a = 0; a < m->actions; ++a) {
    const size_t other = s * m->actions + a;
    const double dz = c * ((other == pair ? 1 : 0) - exp(log_policy[other]));
    if (m->n_features == 0) grad[other] += dz;
    for (size_t k = 0; k < m->n_features; ++k)
      grad[k] += dz * m->feature[other * m->n_features + k];
  }
}

static gl_status accumulate_score(const void *self, const double *theta, size_t x,
                                  const double *coefficient, double *grad, gl_error *err) {
  const mdp_trajectories *t = self;
  const size_t h = t->m->horizon;
  double *log_policy = mdp_new_log_policy(t->m, theta, err);
  if (log_policy == NULL) return GL_ENOMEM;
  for (size_t y = t->first[x]; y < t->first[x + 1]; ++y)
    for (size_t i = 0; i < t->length[y]; ++i) {
      const double c = coefficient[(y - t->first[x]) * h + i];
      if (c != 0) mdp_add_score(t->m, log_policy, t->pair[y * h + i], c, grad);
    }
  free(log_policy);
  return GL_OK;
}

static gl_status sequence_scores(const void *self, const double *theta, size_t x, double *score,
                                 gl_error *err) {
  const mdp_trajectories *t = self;
  const size_t h = t->m->horizon, p = t->m->n_parameters;
  double *log_policy = mdp_new_log_policy(t->m, theta, err);
  if (log_policy == NULL) return GL_ENOMEM;
  memset(score, 0, n_responses(self, x) * p * sizeof *score);
  for (size_t y = t->first[x]; y < t->first[x + 1]; ++y)
    for (size_t i = 0; i < t->length[y]; ++i)
      mdp_add_score(t->m, log_policy, t->pair[y * h + i], 1, score + (y - t->first[x]) * p);
  free(log_policy);
  return GL_OK;
}

enumerable mdp_trajectories_enumerable(const mdp_trajectories *t) {
  static const enumerable_ops ops = {.n_responses = n_responses,
                                     .length = length,
                                     .rewards = rewards,
                                     .log_probs = mdp_log_probs,
                                     .accumulate_score = accumulate_score,
                                     .sequence_scores = sequence_scores};
  return (enumerable){.ops = &ops,
                      .self = t,
                      .n_prompts = t->n_prompts,
                      .prompt_weight = t->weight,
                      .n_parameters = t->m->n_parameters,
                      .max_length = t->m->horizon,
                      .max_responses = t->most};
}

/* --- the worlds of recipes: chain, gridworld, Garnet, token --- */

/* Entities at RNG_WORLD, distinct from those of bandits and sequences. */
enum { GARNET_ENTITY = 100, FEATURES_ENTITY = 101, TOKEN_ENTITY = 102 };

static gl_status mdp_worlds_allocate(mdp *m, size_t states, size_t actions, gl_error *err) {
  m->states = states;
  m->actions = actions;
  m->n_parameters = states * actions;
  m->transition = ARENA_GRID(&m->memory, double, states *actions, states);
  m->reward = ARENA_GRID(&m->memory, double, states, actions);
  m->start = ARENA_ARRAY(&m->memory, double, states);
  m->terminal = ARENA_ARRAY(&m->memory, int, states);
  return arena_check(&m->memory, "a decision process", err);
}

static double *mdp_worlds_next(const mdp *m, size_t s, size_t a) {
  return m->transition + (s * m->actions + a) * m->states;
}

/* Actions: left or right along a line; a slip moves the other way. The right end pays 1 and
 * terminates. In the left end state, choosing left pays `distraction`. */
static gl_status chain(mdp *m, cfg_reader *r, uint64_t seed, gl_error *err) {
  (void)seed; /* deterministic */
  const size_t n = field_count(r, "states");
  const double slip = field_real(r, "slip");
  const double distraction = field_real(r, "distraction");
  if (r->status != GL_OK) return r->status;
  gl_status status = mdp_worlds_allocate(m, n, 2, err);
  if (status != GL_OK) return status;
  for (size_t s = 0; s + 1 < n; ++s)
    for (size_t a = 0; a < 2; ++a) {
      const double right = a == 1 ? 1 - slip : slip;
      mdp_worlds_next(m, s, a)[s + 1] += right;
      mdp_worlds_next(m, s, a)[s > 0 ? s - 1 : 0] += 1 - right;
      m->reward[s * 2 + a] = s + 2 == n ? right : s == 0 && a == 0 ? distraction : 0;
    }
  m->terminal[n - 1] = 1;
  m->start[0] = 1;
  return GL_OK;
}

/* Actions: up, down, left, right, from the lower left corner. The upper right cell pays 1 and
 * terminates; the cell below it costs 1 and terminates. A slip moves to either side. A move into a
 * wall has no effect. */
static gl_status gridworld(mdp *m, cfg_reader *r, uint64_t seed, gl_error *err) {
  (void)seed; /* deterministic */
  static const int dx[] = {0, 0, -1, 1}, dy[] = {1, -1, 0, 0};
  static const size_t side[4][2] = {{2, 3}, {2, 3}, {0, 1}, {0, 1}};
  const size_t w = field_count(r, "width"), h = field_count(r, "height");
  const double slip = field_real(r, "slip");
  if (r->status != GL_OK) return r->status;
  gl_status status = mdp_worlds_allocate(m, w * h, 4, err);
  if (status != GL_OK) return status;
  const size_t goal = w * h - 1, pit = goal - w;
  m->terminal[goal] = m->terminal[pit] = 1;
  for (size_t s = 0; s < w * h; ++s)
    for (size_t a = 0; a < 4 && !m->terminal[s]; ++a)
      for (size_t way = 0; way < 3; ++way) {
        const size_t move = way == 0 ? a : side[a][way - 1];
        const double p = way == 0 ? 1 - slip : slip / 2;
        const int x = (int)(s % w) + dx[move], y = (int)(s / w) + dy[move];
        const int inside = x >= 0 && y >= 0 && x < (int)w && y < (int)h;
        const size_t to = inside ? (size_t)y * w + (size_t)x : s;
        mdp_worlds_next(m, s, a)[to] += p;
        m->reward[s * 4 + a] += to == goal ? p : to == pit ? -p : 0;
      }
  m->start[pit == 0 ? 1 : 0] = 1;
  return GL_OK;
}

/* Garnet (Archibald, McKinnon, Thomas 1995): every (state, action) leads to `branching` distinct
 * random states, with probabilities given by random cuts of [0, 1]. Rewards are standard normal for
 * each pair. */
static gl_status garnet(mdp *m, cfg_reader *r, uint64_t seed, gl_error *err) {
  const size_t n = field_count(r, "states");
  const size_t k = field_count(r, "actions");
  const size_t branching = cfg_count(r, "branching", n < 2 ? n : 2, 1, n);
  if (r->status != GL_OK) return r->status;
  gl_status status = mdp_worlds_allocate(m, n, k, err);
  if (status != GL_OK) return status;
  const rng_stream stream = rng_stream_at(seed, RNG_WORLD, GARNET_ENTITY);
  uint64_t index = 0;
  for (size_t pair = 0; pair < n * k; ++pair) {
    double *row = m->transition + pair * n, total = 0;
    for (size_t b = 0; b < branching;) {
      rng_words words = rng_block(stream, index++);
      size_t to = (size_t)(rng_u01(words.v[0]) * (double)n);
      if (row[to] > 0) continue;
      /* Spacings between uniform cuts have the distribution of normalised exponentials. */
      total += row[to] = -log(rng_u01_53(words.v[1], words.v[2]));
      ++b;
    }
    for (size_t s = 0; s < n; ++s) row[s] /= total;
    m->reward[pair] = rng_normal(rng_block(stream, index++));
  }
  m->start[0] = 1;
  return GL_OK;
}

/* Token generation as an MDP: actions are tokens, the state is (position, last token). One hidden
 * sequence pays 1 / horizon for each matching token. */
static gl_status token(mdp *m, cfg_reader *r, uint64_t seed, gl_error *err) {
  const size_t v = field_count(r, "vocabulary"), h = m->horizon;
  if (r->status != GL_OK) return r->status;
  if (h > (MDP_MAX_STATES - 1) / v)
    return cfg_fail(r->map, err,
                    "a token process of %zu tokens over %zu steps has more than %d "
                    "states; make one smaller",
                    v, h, MDP_MAX_STATES);
  gl_status status = mdp_worlds_allocate(m, 1 + h * v, v, err);
  if (status != GL_OK) return status;
  const rng_stream stream = rng_stream_at(seed, RNG_WORLD, TOKEN_ENTITY);
  for (size_t s = 0; s < m->states; ++s) {
    const size_t position = s == 0 ? 0 : 1 + (s - 1) / v;
    if (position == h) m->terminal[s] = 1;
    for (size_t a = 0; a < v && position < h; ++a) {
      mdp_worlds_next(m, s, a)[1 + position * v + a] = 1;
      size_t wanted = (size_t)(rng_u01(rng_block(stream, position).v[0]) * (double)v);
      m->reward[s * v + a] = a == wanted ? 1 / (double)h : 0;
    }
  }
  m->start[0] = 1;
  return GL_OK;
}

static gl_status share_features(mdp *m, size_t dimension, uint64_t seed, gl_error *err) {
  const rng_stream stream = rng_stream_at(seed, RNG_WORLD, FEATURES_ENTITY);
  const size_t pairs = m->states * m->actions;
  m->feature = ARENA_GRID(&m->memory, double, pairs, dimension);
  if (m->feature == NULL) return arena_check(&m->memory, "features", err);
  m->n_features = m->n_parameters = dimension;
  for (size_t i = 0; i < pairs * dimension; ++i)
    m->feature[i] = rng_normal(rng_block(stream, i)) / sqrt((double)dimension);
  return GL_OK;
}

/* Table of decision processes: to add one, write a parser above and a line here. Each parser reads
 * its own keys; the horizon is already set. */
static const struct {
  const char *name, *about;
  gl_status (*parse)(mdp *m, cfg_reader *r, uint64_t seed, gl_error *err);
} kinds[] = {
    {"chain", "left or right along a line whose far end pays", chain},
    {"gridworld", "a goal in one corner of a grid, and a pit beside it", gridworld},
    {"garnet", "random transitions and normal rewards", garnet},
    {"token", "tokens as actions; a hidden sequence pays per matching token", token},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

int mdp_is_kind(const char *kind) {
  for (size_t k = 0; k < N_KINDS; ++k)
    if (strcmp(kinds[k].name, kind) == 0) return 1;
  return 0;
}

const char *mdp_kind_at(size_t i, const char **about) {
  if (i >= N_KINDS) return NULL;
  if (about != NULL) *about = kinds[i].about;
  return kinds[i].name;
}

gl_status mdp_read(mdp **out, cfg_reader *r, cfg_reader *policy, uint64_t seed, gl_error *err) {
  *out = NULL;
  mdp *m = calloc(1, sizeof *m);
  if (m == NULL) return gl_fail_memory(err, "a decision process");
  const char *names[N_KINDS];
  for (size_t i = 0; i < N_KINDS; ++i) names[i] = kinds[i].name;
  const int k = cfg_choice(r, "kind", 0, names, N_KINDS);
  cfg_of(r, "world.kind", kinds[k].name);
  m->horizon = field_count(r, "horizon");
  cfg_begin(policy, cfg_child(r, "policy"), "world.policy", err);
  cfg_of(policy, "world.kind", kinds[k].name);
  const int shared = field_choice(policy, "kind");
  const size_t dimension =
      cfg_count(policy, "dimension", (size_t)field_default(policy, "dimension"), 1, MDP_MAX_STATES);
  gl_status status = policy->status;
  if (status == GL_OK) status = kinds[k].parse(m, r, seed, err);
  if (status == GL_OK && shared) status = share_features(m, dimension, seed, err);
  if (status == GL_OK)
    *out = m;
  else
    mdp_free(m);
  return status;
}

gl_status mdp_new(mdp **out, const cfg_node *world, uint64_t seed, gl_error *err) {
  cfg_reader r, policy;
  cfg_begin(&r, world, "world", err);
  gl_status status = mdp_read(out, &r, &policy, seed, err);
  if (status == GL_OK) status = cfg_end(&policy);
  if (status == GL_OK) status = cfg_end(&r);
  if (status == GL_OK) return GL_OK;
  mdp_free(*out);
  *out = NULL;
  return status;
}
