/* Builds toy worlds from a recipe and computes token probabilities from parameters. */
#include "toy/world/world.h"

#include "core/base/hash.h"
#include "core/config/fields.h"
#include "core/random/rng.h"
#include "core/rl/sequence_task.h"
#include "toy/world/automaton.h"
#include "toy/world/mdp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOY_WORLD_LISTED(name) &toy_world_##name,
static const toy_world_kind *const worlds[] = {TOY_WORLDS(TOY_WORLD_LISTED)};
enum { N_KINDS = sizeof worlds / sizeof *worlds };

int toy_is_kind(const char *kind) {
  for (size_t i = 0; i < N_KINDS; ++i)
    if (kind != NULL && strcmp(kind, worlds[i]->name) == 0) return 1;
  return 0;
}

const char *toy_kind_at(size_t i, const char **about) {
  if (i >= N_KINDS) return NULL;
  if (about != NULL) *about = worlds[i]->about;
  return worlds[i]->name;
}

/* --- construction --- */

/* `init: {kind: probs, probs: [..] or [[..], ..]}`: response probabilities, for all prompts or for
 * each. None may be 0, because a logit of -inf cannot be learned. */
static gl_status read_init_probs(toy_world *w, const cfg_node *list, const cfg_node *init,
                                 gl_error *err) {
  size_t k = w->tree.n_responses;
  if (w->counted)
    return cfg_fail(init, err,
                    "the policy of an automaton starts from zeros or normal logits; it has no "
                    "list of responses to give probabilities to");
  if (list == NULL || cfg_kind_of(list) != CFG_LIST || cfg_size(list) == 0)
    return cfg_fail(list != NULL ? list : init, err,
                    "init: {kind: probs} needs probs: a list of %zu probabilities, or one such "
                    "list per prompt",
                    k);
  int nested = cfg_kind_of(cfg_at(list, 0)) == CFG_LIST;
  if (nested && cfg_size(list) != w->n_prompts)
    return cfg_fail(list, err, "probs has %zu lists for %zu prompts", cfg_size(list), w->n_prompts);
  double *probs = calloc(k, sizeof *probs);
  w->init_theta = calloc(w->features.n_parameters, sizeof *w->init_theta);
  gl_status status = probs != NULL && w->init_theta != NULL
                         ? GL_OK
                         : gl_fail_memory(err, "a toy policy's initial parameters");
  for (size_t x = 0; x < w->n_prompts && status == GL_OK; ++x) {
    const cfg_node *row = nested ? cfg_at(list, x) : list;
    if (cfg_kind_of(row) != CFG_LIST || cfg_size(row) != k)
      status = cfg_fail(row, err, "probs must be a list of %zu numbers, one per response", k);
    for (size_t y = 0; y < k && status == GL_OK; ++y)
      if (!cfg_number(cfg_at(row, y), probs + y) || !(probs[y] > 0))
        status = cfg_fail(cfg_at(row, y), err, "an initial probability must be a number above 0");
    gl_error why = {0};
    if (status == GL_OK && toy_world_set_probs(w, x, probs, k, w->init_theta, &why) != GL_OK)
      status = cfg_fail(row, err, "%s", why.text);
  }
  free(probs);
  return status;
}

static gl_status parse_init(toy_world *w, const cfg_node *node, gl_error *err) {
  cfg_reader r;
  cfg_begin(&r, node, "world.policy.init", err);
  w->init = (toy_init)field_choice(&r, "kind");
  w->init_scale = field_real(&r, "scale");
  const cfg_node *probs = cfg_child(&r, "probs");
  gl_status status = cfg_end(&r);
  if (status == GL_OK && w->init == INIT_PROBS) status = read_init_probs(w, probs, node, err);
  return status;
}

static gl_status parse_loglinear(toy_world *w, const toy_features_context *in,
                                 const cfg_node *features, size_t hash, size_t dimension,
                                 gl_error *err) {
  toy_features *f = &w->features;
  if (w->bigram && features != NULL &&
      (cfg_kind_of(features) != CFG_LIST || cfg_size(features) == 0 ||
       cfg_kind_of(cfg_at(features, 0)) != CFG_SCALAR))
    return cfg_fail(features, err,
                    "the features of an automaton's policy are a list of bias, prompt, last and "
                    "prompt*last");
  if (features != NULL && cfg_kind_of(features) == CFG_SCALAR &&
      strcmp(cfg_text(features), "random") == 0)
    return toy_features_random(f, in, dimension, err);
  if (features != NULL && cfg_kind_of(features) == CFG_LIST && cfg_size(features) > 0 &&
      cfg_kind_of(cfg_at(features, 0)) == CFG_LIST)
    return toy_features_explicit(f, in, features, err);
  if (features == NULL || cfg_kind_of(features) == CFG_LIST)
    return toy_features_templates(f, in, features, hash, err);
  static const char *const words[] = {"random"};
  char near[CFG_HINT_SIZE] = "";
  if (cfg_kind_of(features) == CFG_SCALAR) cfg_hint(cfg_text(features), words, 1, near);
  return cfg_fail(features, err,
                  "features must be random, a list of templates such as [position, prompt*last], "
                  "or for a bandit a list of numbers per arm%s",
                  near);
}

/* `section` is the whole `world` section; errors refer to it if the recipe has no nearer node. */
static gl_status parse_policy(toy_world *w, const cfg_node *node, const cfg_node *section,
                              size_t modulus, uint64_t seed, gl_error *err) {
  toy_features_context in = {&w->tree, w->n_prompts, modulus, seed, section, w->bigram};
  cfg_reader r;
  cfg_begin(&r, node, "world.policy", err);
  cfg_of(&r, "world.kind", w->bigram ? "automaton" : "");
  int loglinear = field_choice(&r, "kind");
  const cfg_node *features = cfg_child(&r, "features");
  size_t hash = field_count(&r, "hash");
  size_t dimension = field_count(&r, "dimension");
  const cfg_node *init = cfg_child(&r, "init");
  w->reference = (toy_reference)field_choice(&r, "reference");
  gl_status status = cfg_end(&r);
  if (features != NULL) in.place = features;
  if (status == GL_OK && w->bigram && !loglinear)
    status = cfg_fail(cfg_find(node, "kind"), err,
                      "the policy of an automaton is log-linear in the last letter; a tabular one, "
                      "a logit per prefix, is for kind: sequence");
  if (status == GL_OK && !loglinear && features != NULL)
    status = cfg_fail(features, err, "a tabular policy has no features; use kind: loglinear");
  if (status == GL_OK)
    status = loglinear ? parse_loglinear(w, &in, features, hash, dimension, err)
                       : toy_features_tabular(&w->features, &in, err);
  return status == GL_OK ? parse_init(w, init, err) : status;
}

static gl_status world_build(toy_world *w, const cfg_node *section, uint64_t seed, gl_error *err) {
  static const evaluation_kind evaluations[] = {EVALUATION_EXACT, EVALUATION_GREEDY};
  const char *names[N_KINDS];
  size_t modulus = 1;
  cfg_reader r, own;
  for (size_t i = 0; i < N_KINDS; ++i) names[i] = worlds[i]->name;
  const cfg_node *named = cfg_find(section, "kind"), *init = NULL;
  if (named != NULL && mdp_is_kind(cfg_text(named))) {
    gl_status status = toy_process_build(w, section, seed, &init, err);
    return status == GL_OK ? parse_init(w, init, err) : status;
  }
  cfg_begin(&r, section, "world", err);
  const toy_world_kind *kind = worlds[cfg_choice(&r, "kind", 0, names, N_KINDS)];
  cfg_of(&r, "world.kind", kind->name);
  const cfg_node *policy = cfg_child(&r, "policy");
  evaluation_read(&w->evaluation, &r, &own, evaluations, 2);
  evaluation_sets_read(&w->sets, &own);
  gl_status status = cfg_end(&own);
  if (status == GL_OK) status = kind->parse(w, &r, section, seed, &modulus, err);
  if (status == GL_OK) status = cfg_end(&r);
  return status == GL_OK ? parse_policy(w, policy, section, modulus, seed, err) : status;
}

gl_status toy_world_new(toy_world **out, const cfg_node *world, const cfg_node *sampling,
                        uint64_t seed, gl_error *err) {
  *out = NULL;
  toy_world *w = calloc(1, sizeof *w);
  if (w == NULL) return gl_fail_memory(err, "a toy world");
  gl_status status = sampling_parse(&w->sampling, sampling, err);
  if (status == GL_OK) status = world_build(w, world, seed, err);
  if (status != GL_OK) {
    toy_world_free(w);
    return status;
  }
  *out = w;
  return GL_OK;
}

void toy_world_free(toy_world *w) {
  if (w == NULL) return;
  response_tree_fini(&w->tree);
  toy_features_fini(&w->features);
  toy_automata_free(w->automata, w->n_prompts);
  evaluation_sets_fini(&w->sets);
  free(w->reward);
  free(w->init_theta);
  free(w);
}

void toy_world_initial(const toy_world *w, uint64_t seed, double *theta) {
  rng_stream stream = rng_stream_at(seed, RNG_INIT, 0);
  for (size_t i = 0; i < w->features.n_parameters; ++i)
    theta[i] = w->init == INIT_PROBS    ? w->init_theta[i]
               : w->init == INIT_NORMAL ? w->init_scale * rng_normal(rng_block(stream, i))
                                        : 0;
}

/* Sums the probability mass below every node from response probabilities, children first. */
static void masses(const response_tree *t, const double *probs, double *edge_mass,
                   double *node_mass) {
  for (size_t n = t->n_nodes; n-- > 0;) {
    node_mass[n] = 0;
    for (size_t e = n * t->vocabulary; e < (n + 1) * t->vocabulary; ++e) {
      edge_mass[e] = t->next[e] < 0 ? probs[~t->next[e]] : node_mass[t->next[e]];
      node_mass[n] += edge_mass[e];
    }
  }
}

gl_status toy_world_set_probs(const toy_world *w, size_t x, const double *probs, size_t n,
                              double *theta, gl_error *err) {
  const response_tree *t = &w->tree;
  if (w->features.kind != TOY_TABULAR)
    return gl_fail(err, GL_EINPUT,
                   "a log-linear policy cannot hold arbitrary probabilities; use policy: {kind: "
                   "tabular}");
  if (x >= w->n_prompts || n != t->n_responses)
    return gl_fail(err, GL_EINPUT, "%zu probabilities for a world with %zu responses", n,
                   t->n_responses);
  double sum = 0;
  for (size_t y = 0; y < n; ++y) {
    if (!(probs[y] >= 0))
      return gl_fail(err, GL_EINPUT, "probability %zu is %g; it must be 0 or more", y, probs[y]);
    sum += probs[y];
  }
  if (!(fabs(sum - 1) <= 1e-9))
    return gl_fail(err, GL_EINPUT, "the probabilities sum to %.12g, not to 1", sum);
  double *edge_mass = calloc(t->n_edges + t->n_nodes, sizeof *edge_mass);
  if (edge_mass == NULL) return gl_fail_memory(err, "a toy policy's probabilities");
  double *node_mass = edge_mass + t->n_edges, *z = theta + x * t->n_edges;
  masses(t, probs, edge_mass, node_mass);
  for (size_t e = 0; e < t->n_edges; ++e) {
    double mass = node_mass[e / t->vocabulary];
    /* A prefix with no mass keeps the uniform policy. */
    z[e] = mass > 0 ? w->sampling.temperature * (log(edge_mass[e]) - log(mass)) : 0;
  }
  free(edge_mass);
  return GL_OK;
}

/* --- the policy --- */

void toy_probs_at(const toy_world *w, const double *theta, size_t x, double temperature,
                  double *logp, double *p) {
  const size_t v = w->tree.vocabulary;
  toy_features_logits(&w->features, theta, x, logp);
  const double beta = 1 / temperature;
  for (size_t first = 0; first < w->tree.n_edges; first += v) {
    double *z = logp + first, top = -INFINITY, sum = 0;
    for (size_t a = 0; a < v; ++a) {
      z[a] *= beta;
      if (z[a] > top) top = z[a];
    }
    for (size_t a = 0; a < v; ++a) {
      double e = exp(z[a] - top);
      sum += e;
      if (p != NULL) p[first + a] = e;
    }
    double norm = top + log(sum);
    for (size_t a = 0; a < v; ++a) {
      z[a] -= norm;
      if (p != NULL) p[first + a] /= sum;
    }
  }
}

void toy_probs(const toy_world *w, const double *theta, size_t x, double *logp, double *p) {
  toy_probs_at(w, theta, x, w->sampling.temperature, logp, p);
}

void toy_log_probs(const toy_world *w, const double *theta, size_t x, double *logp) {
  toy_probs(w, theta, x, logp, NULL);
}

void toy_truncate(const toy_world *w, const sampling_spec *dist, const double *logp, size_t n_nodes,
                  double *out, sampling_rank *rank) {
  const size_t v = w->tree.vocabulary;
  for (size_t n = 0; n < n_nodes; ++n) sampling_truncate(dist, logp + n * v, v, out + n * v, rank);
}

void toy_replay_node(const double *logp, const double *drawn, size_t v, double *out, double *p) {
  double top = -INFINITY, sum = 0;
  for (size_t a = 0; a < v; ++a)
    if (!isinf(drawn[a]) && logp[a] > top) top = logp[a];
  for (size_t a = 0; a < v; ++a)
    if (!isinf(drawn[a])) sum += exp(logp[a] - top);
  const double lse = top + log(sum);
  for (size_t a = 0; a < v; ++a) {
    out[a] = isinf(drawn[a]) ? -INFINITY : logp[a] - lse;
    if (p != NULL) p[a] = isinf(drawn[a]) ? 0 : exp(out[a]);
  }
}

void toy_add_score(const toy_world *w, size_t x, size_t edge, double coefficient,
                   const double *node_p, double *dz, double *grad) {
  const size_t v = w->tree.vocabulary;
  const double c = coefficient / w->sampling.temperature;
  for (size_t a = 0; a < v; ++a) dz[a] = -c * node_p[a];
  dz[edge % v] += c;
  toy_features_backward(&w->features, x, edge / v, dz, grad);
}

void toy_add_flow(const toy_world *w, size_t x, const double *flow, const double *logp, double *dz,
                  double *grad) {
  const size_t v = w->tree.vocabulary;
  const double beta = 1 / w->sampling.temperature;
  for (size_t n = 0; n < w->tree.n_nodes; ++n) {
    double through = 0;
    int any = 0;
    for (size_t a = 0; a < v; ++a) {
      through += flow[n * v + a];
      any |= flow[n * v + a] != 0;
    }
    if (!any) continue;
    for (size_t a = 0; a < v; ++a)
      dz[a] = beta * (flow[n * v + a] - through * exp(logp[n * v + a]));
    toy_features_backward(&w->features, x, n, dz, grad);
  }
}

uint64_t toy_world_fingerprint(const toy_world *w) {
  const toy_features *f = &w->features;
  const size_t rows = f->n_prompts * f->n_nodes;
  uint64_t shape[] = {w->tree.vocabulary, w->tree.horizon,   (uint64_t)w->tree.has_end,
                      w->n_prompts,       (uint64_t)f->kind, f->n_parameters,
                      f->width,           w->sampling.top_k};
  double dist[] = {w->sampling.temperature, w->sampling.top_p};
  uint64_t h = hash_64(HASH_64_START, shape, sizeof shape);
  h = hash_64(h, dist, sizeof dist);
  if (w->reward != NULL)
    h = hash_64(h, w->reward, w->n_prompts * w->tree.n_responses * sizeof *w->reward);
  for (size_t x = 0; w->automata != NULL && x < w->n_prompts; ++x) {
    const toy_automaton *m = w->automata + x;
    const uint64_t about[] = {m->states, m->start, (uint64_t)w->counted};
    const size_t letters = w->tree.vocabulary - (w->tree.has_end ? 1 : 0);
    h = hash_64(h, about, sizeof about);
    h = hash_64(h, m->next, m->states * letters * sizeof *m->next);
    h = hash_64(h, m->reward, m->states * sizeof *m->reward);
  }
  if (f->index != NULL) h = hash_64(h, f->index, rows * f->width * sizeof *f->index);
  if (f->offset != NULL) h = hash_64(h, f->offset, f->n_nodes * f->vocabulary * sizeof *f->offset);
  if (f->value != NULL)
    h = hash_64(h, f->value, rows * f->vocabulary * f->width * sizeof *f->value);
  return h;
}

/* --- fields --- */
/* Fields of sequence tasks are in core/rl, those of bandits in bandit.c. */

static const field world_fields[] = {
    /* world: automaton and decision processes */
    FIELD("world.vocabulary", "vocabulary", COUNT(1, AUTOMATON_MAX_LETTERS), "letters", "4", NULL,
          .when = {{"world.kind", "automaton"}}),
    FIELD("world.vocabulary", "vocabulary", COUNT(1, MDP_MAX_ACTIONS), "letters", "3", NULL),
    FIELD("world.horizon", "horizon", COUNT(1, AUTOMATON_MAX_HORIZON), "tokens", "8", NULL,
          .when = {{"world.kind", "automaton"}}),
    FIELD("world.horizon", "horizon", COUNT(1, MDP_MAX_HORIZON), "tokens", "4", NULL),
    FIELD("world.prompts", "prompts", COUNT(1, AUTOMATON_MAX_PROMPTS), "", "1", NULL,
          .when = {{"world.kind", "automaton"}}),
    FIELD("world.modulus", "modulus", COUNT(1, AUTOMATON_MAX_STATES), "", "4", NULL,
          .when = {{"world.kind", "automaton"}}),
    FIELD(
        "world.automaton", "automaton", CHOICE("parity", "count", "contains", "balanced", "table"),
        "", "parity",
        "of automaton: parity (of the number of `letter`, as the prompt's), count (the number of "
        "`letter` modulo `modulus` is the prompt's), contains (`word` occurs), balanced (letter 0 "
        "opens, letter 1 closes, all is closed at the end, and the nesting is exactly 1 + prompt "
        "modulo `depth` deep) or table",
        .when = {{"world.kind", "automaton"}}),
    FIELD("world.letter", "counted letter", COUNT(0, AUTOMATON_MAX_LETTERS - 1), "", NULL,
          "of the automata parity and count: the letter that is counted",
          .rule = "1, or 0 where that is the only letter"),
    FIELD("world.depth", "depth", COUNT(1, AUTOMATON_MAX_HORIZON / 2), "", "2",
          "of the automaton balanced: the deepest nesting that a prompt asks for, up to 32",
          .when = {{"world.kind", "automaton"}, {"world.automaton", "balanced"}}),
    FIELD("world.word", "word", LIST, "", NULL,
          "of the automaton contains: a list of letters, counted from 0, or one such list per "
          "prompt; required there"),
    FIELD("world.table", "automaton's table", SECTION, "", NULL,
          "of the automaton table: its states, up to 1,024, and what they earn; required there"),
    FIELD("world.table.start", "first state", COUNT(0, INFINITY), "", NULL,
          "the state before the first letter", .rule = "0"),
    FIELD("world.table.next", "next states", LIST, "", NULL,
          "a list per state with the state that follows each letter; letters beyond the end of the "
          "list leave the state as it is. Required"),
    FIELD("world.table.accept", "accepted states", LIST, "", NULL,
          "the states that earn a reward of 1 where a response ends, or one such list per prompt; "
          "this or `rewards` is required"),
    FIELD("world.table.rewards", "rewards of states", LIST, "", NULL,
          "a reward for each state, or one such list per prompt"),
    FIELD("world.listed", "listed responses", FLAG, "", "false",
          "of automaton: list all responses, where they are few enough, as a sequence world does; "
          "`gepolab lab bias` then enumerates groups",
          .when = {{"world.kind", "automaton"}}),

    /* world: policy of bandit, sequence and automaton */
    FIELD("world.policy", "policy", SECTION, "", NULL,
          "the policy of bandit, sequence, automaton and decision processes"),
    FIELD("world.policy.kind", "policy kind", CHOICE("tabular", "loglinear"), "", "loglinear",
          "tabular: a logit per prompt, prefix and token; loglinear: features that prompts and "
          "prefixes share",
          .when = {{"world.kind", "automaton"}}, .rule = "tabular; kind automaton: loglinear"),
    FIELD("world.policy.kind", "policy kind", CHOICE("tabular", "loglinear"), "", "tabular", NULL),
    FIELD("world.policy.features", "features", LIST, "", NULL,
          "of loglinear: templates of bias, prompt, position, last, second_last, sum and remainder "
          "(prompt − sum, modulo `modulus`), joined by `*`; or random; or, for a bandit, a list of "
          "numbers per arm",
          .rule =
              "[position, last, prompt*position, prompt*last, prompt*sum]; kind automaton, whose "
              "policy sees prompt and last letter only: [last, prompt*last]"),
    FIELD("world.policy.dimension", "feature dimension", COUNT(1, (size_t)1 << 16), "", "8",
          "number of random features"),
    FIELD("world.policy.hash", "feature buckets", COUNT(0, (size_t)1 << 24), "", "0",
          "number of buckets that the templates' features share; 0: none are shared"),
    FIELD("world.policy.init", "initial policy", SECTION, "", NULL,
          "the policy that the learner starts from"),
    FIELD("world.policy.init.kind", "initial logits", CHOICE("zeros", "normal", "probs"), "",
          "zeros", "zeros, normal (random logits) or probs (given probabilities, tabular only)"),
    FIELD("world.policy.init.scale", "initial scale", REAL(0, 1e6), "", "0.1",
          "standard deviation of normal logits"),
    FIELD("world.policy.init.probs", "initial probabilities", LIST, "", NULL,
          "of probs: the probability of each response"),
    FIELD("world.policy.reference", "toy reference policy", CHOICE("initial", "uniform"), "",
          "initial", "the reference policy of ref_kl_coef and kl_ref: initial or uniform"),

    /* world: decision processes */
    FIELD("world.states", "states", COUNT(2, MDP_MAX_STATES), "", "5",
          "states of a chain or garnet", .when = {{"world.kind", "chain"}}),
    FIELD("world.states", "states", COUNT(1, MDP_MAX_STATES), "", "4", NULL,
          .when = {{"world.kind", "garnet"}}),
    FIELD("world.slip", "slip", REAL(0, 1), "", "0.1",
          "of chain and gridworld: probability that another move is made"),
    FIELD("world.distraction", "distraction", REAL(-1e6, 1e6), "", "0.05",
          "of chain: reward of going left at the start; the right end pays 1"),
    FIELD("world.width", "grid width", COUNT(2, 64), "", "3", "columns of a gridworld"),
    FIELD("world.height", "grid height", COUNT(2, 64), "", "3",
          "rows of a gridworld, whose far corner pays 1 and the square below it −1"),
    FIELD("world.actions", "actions", COUNT(1, MDP_MAX_ACTIONS), "", "2",
          "actions of a garnet, which has random transitions and normal rewards"),
    FIELD("world.branching", "branching", COUNT(1, INFINITY), "", NULL,
          "states that an action of a garnet may lead to",
          .rule = "2, or 1 where there is one state"),
};
FIELD_TABLE(toy_fields, world_fields);
