/* Markov decision processes from recipes: chain, gridworld, Garnet, token. */
#include "core/base/blas_room.h"

#include "core/config/fields.h"
#include "core/random/normal.h"
#include "core/random/rng.h"
#include "toy/world/mdp.h"
#include "toy/world/toy_world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Entities of RNG_WORLD, away from those of bandits and sequences. */
enum { GARNET_ENTITY = 100, FEATURES_ENTITY = 101, TOKEN_ENTITY = 102 };

static gl_status mdp_worlds_allocate(mdp *m, size_t states, size_t actions, gl_error *err) {
  m->states = states;
  m->actions = actions;
  m->n_parameters = states * actions;
  m->transition = calloc(states * actions, states * sizeof *m->transition);
  m->reward = calloc(states, actions * sizeof *m->reward);
  m->start = calloc(states, sizeof *m->start);
  m->terminal = calloc(states, sizeof *m->terminal);
  if (m->transition != NULL && m->reward != NULL && m->start != NULL && m->terminal != NULL)
    return GL_OK;
  return gl_fail_memory(err, "a decision process");
}

static double *mdp_worlds_next(const mdp *m, size_t s, size_t a) {
  return m->transition + (s * m->actions + a) * m->states;
}

/* Left or right along a line; a slip goes the other way; the right end pays 1 and ends. The left
 * end pays `distraction` whenever left is chosen there. */
static gl_status chain(mdp *m, cfg_reader *r, uint64_t seed, gl_error *err) {
  (void)seed; /* nothing is random */
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

/* Up, down, left, right from the lower left corner; the upper right pays 1 and ends, the square
 * below it costs 1 and ends; a slip goes to either side. Walls keep one in place. */
static gl_status gridworld(mdp *m, cfg_reader *r, uint64_t seed, gl_error *err) {
  (void)seed; /* nothing is random */
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

/* Garnet (Archibald, McKinnon, Thomas 1995): every pair leads to `branching` distinct random states
 * with probabilities cut at random points of [0, 1]; rewards are standard normal per pair. */
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
      /* Spacings of uniform cuts are normalised exponentials. */
      total += row[to] = -log(rng_u01_53(words.v[1], words.v[2]));
      ++b;
    }
    for (size_t s = 0; s < n; ++s) row[s] /= total;
    m->reward[pair] = rng_normal(rng_block(stream, index++));
  }
  m->start[0] = 1;
  return GL_OK;
}

/* Tokens as actions, the last token and the position as state; one hidden sequence pays 1 / horizon
 * for each token that matches it. */
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
  m->feature = calloc(pairs, dimension * sizeof *m->feature);
  if (m->feature == NULL) return gl_fail_memory(err, "the features of a decision process");
  m->n_features = m->n_parameters = dimension;
  for (size_t i = 0; i < pairs * dimension; ++i)
    m->feature[i] = rng_normal(rng_block(stream, i)) / sqrt((double)dimension);
  return GL_OK;
}

/* A kind of decision process: one block above and one line here. Each reads its own keys; horizon
 * is set. */
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

gl_status mdp_new(mdp **out, const cfg_node *world, uint64_t seed, gl_error *err) {
  cfg_reader r, p;
  *out = NULL;
  fields_add(&toy_fields);
  mdp *m = calloc(1, sizeof *m);
  if (m == NULL) return gl_fail_memory(err, "a decision process");
  cfg_begin(&r, world, "world", err);
  const char *names[N_KINDS];
  for (size_t i = 0; i < N_KINDS; ++i) names[i] = kinds[i].name;
  const int k = cfg_choice(&r, "kind", 0, names, N_KINDS);
  cfg_of(&r, "world.kind", kinds[k].name);
  m->horizon = field_count(&r, "horizon");
  cfg_begin(&p, cfg_child(&r, "policy"), "world.policy", err);
  cfg_of(&p, "world.kind", kinds[k].name);
  const int shared = field_choice(&p, "kind");
  const size_t dimension =
      cfg_count(&p, "dimension", (size_t)field_default(&p, "dimension"), 1, MDP_MAX_STATES);
  gl_status status = cfg_end(&p);
  if (status == GL_OK) status = kinds[k].parse(m, &r, seed, err);
  if (status == GL_OK) status = cfg_end(&r);
  if (status == GL_OK && shared) status = share_features(m, dimension, seed, err);
  if (status == GL_OK) status = blas_reserve(1, err); /* mdp_value() multiplies matrices */
  if (status == GL_OK)
    *out = m;
  else
    mdp_free(m);
  return status;
}
