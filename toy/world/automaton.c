/* Automaton worlds: exact sums by dynamic programming over (last letter, automaton state), and the
 * parser of the automata a recipe names or gives as a table. */
#include "toy/world/automaton.h"

#include "core/config/fields.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- dynamic programmes over the last letter and the state --- */

gl_status toy_chain_graph(response_tree *graph, size_t letters, size_t horizon, int has_end,
                          gl_error *err) {
  *graph = (response_tree){.vocabulary = letters + (has_end ? 1 : 0),
                           .horizon = horizon,
                           .has_end = has_end,
                           .n_nodes = letters + 1};
  graph->n_edges = graph->n_nodes * graph->vocabulary;
  graph->next = calloc(graph->n_edges, sizeof *graph->next);
  if (graph->next == NULL) return gl_fail_memory(err, "a graph of letters");
  for (size_t e = 0; e < graph->n_edges; ++e) {
    const size_t a = e % graph->vocabulary;
    graph->next[e] = a < letters ? (int32_t)(1 + a) : -1;
  }
  return GL_OK;
}

/* Scratch arrays of one toy_chain_sum(). */
typedef struct tables {
  double *m;    /* [n_edges] measure at the current position */
  double *edge; /* [n_edges] mass times backward value of each edge */
  double
      *ahead; /* [horizon * vocabulary * states] backward value after reading a token in a state */
  double *from; /* [n_nodes * states] backward value of a node in a state */
  double *mass; /* [n_nodes * states] forward mass of a node in a state */
  double *step; /* [vocabulary * states] scratch of chain_advance() */
} tables;

size_t toy_chain_scratch(const response_tree *g, size_t states) {
  return 2 * g->n_edges + states * (g->horizon * g->vocabulary + 2 * g->n_nodes + g->vocabulary);
}

static tables chain_lay_out(const response_tree *g, size_t states, double *scratch) {
  tables t = {.m = scratch};
  t.edge = t.m + g->n_edges;
  t.ahead = t.edge + g->n_edges;
  t.from = t.ahead + g->horizon * g->vocabulary * states;
  t.mass = t.from + g->n_nodes * states;
  t.step = t.mass + g->n_nodes * states;
  return t;
}

static void exponentiate(const response_tree *g, const double *log_m, double power, double *m) {
  for (size_t e = 0; e < g->n_edges; ++e) m[e] = exp(power * log_m[e]);
}

static size_t state_after(const toy_chain *c, size_t letters, size_t state, size_t a) {
  return c->automaton != NULL ? c->automaton->next[state * letters + a] : 0;
}

/* Backward value of reading token a in each state at position t: the terminal value if the response
 * ends there, otherwise from[node of a][next state]. */
static void look_ahead(const toy_chain *c, size_t t, const double *from, const double *value,
                       double *ahead) {
  const response_tree *g = c->graph;
  const size_t letters = g->n_nodes - 1, states = c->automaton != NULL ? c->automaton->states : 1;
  for (size_t a = 0; a < g->vocabulary; ++a)
    for (size_t s = 0; s < states; ++s) {
      const size_t to = a < letters ? state_after(c, letters, s, a) : s;
      const int ends = a >= letters || t + 1 == g->horizon;
      ahead[a * states + s] = ends ? (value != NULL ? value[to] : 1) : from[(1 + a) * states + to];
    }
}

/* Backward step as a matrix product: from[n][s] = sum_a m[n][a] ahead[a][s]. */
static void chain_gather(const response_tree *g, size_t states, const double *m,
                         const double *ahead, double *from) {
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)g->n_nodes, (int)states,
              (int)g->vocabulary, 1, m, (int)g->vocabulary, ahead, (int)states, 0, from,
              (int)states);
}

/* Forward step: moves t->mass from position t to position t + 1. */
static void chain_advance(const toy_chain *c, const tables *t, size_t states) {
  const response_tree *g = c->graph;
  const size_t letters = g->n_nodes - 1;
  cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)g->vocabulary, (int)states,
              (int)g->n_nodes, 1, t->m, (int)g->vocabulary, t->mass, (int)states, 0, t->step,
              (int)states);
  memset(t->mass, 0, g->n_nodes * states * sizeof *t->mass);
  for (size_t a = 0; a < letters; ++a)
    for (size_t s = 0; s < states; ++s)
      t->mass[(1 + a) * states + state_after(c, letters, s, a)] += t->step[a * states + s];
}

/* flow[n][a] += m[n][a] sum_s mass[n][s] ahead[a][s]; the sum is one matrix product. */
static void add_flow(const response_tree *g, const tables *t, size_t states, const double *ahead,
                     double *flow) {
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)g->n_nodes, (int)g->vocabulary,
              (int)states, 1, t->mass, (int)states, ahead, (int)states, 0, t->edge,
              (int)g->vocabulary);
  for (size_t e = 0; e < g->n_edges; ++e) flow[e] += t->m[e] * t->edge[e];
}

double toy_chain_sum(const toy_chain *c, const double *const *log_m, double power,
                     const double *value, double *flow, double *scratch) {
  const response_tree *g = c->graph;
  const size_t states = c->automaton != NULL ? c->automaton->states : 1;
  const size_t start = c->automaton != NULL ? c->automaton->start : 0,
               width = g->vocabulary * states;
  const tables t = chain_lay_out(g, states, scratch);
  const double *held = NULL;
  for (size_t k = g->horizon; k-- > 0;) {
    look_ahead(c, k, t.from, value, t.ahead + k * width);
    if (held != log_m[k]) exponentiate(g, log_m[k], power, t.m);
    held = log_m[k];
    chain_gather(g, states, t.m, t.ahead + k * width, t.from);
  }
  const double total = t.from[start]; /* node 0: before the first letter */
  if (flow == NULL) return total;
  memset(t.mass, 0, g->n_nodes * states * sizeof *t.mass);
  t.mass[start] = 1;
  for (size_t k = 0; k < g->horizon; ++k) {
    if (held != log_m[k]) exponentiate(g, log_m[k], power, t.m);
    held = log_m[k];
    add_flow(g, &t, states, t.ahead + k * width, flow);
    if (k + 1 < g->horizon) chain_advance(c, &t, states);
  }
  return total;
}

void toy_chain_visits(const response_tree *g, const double *const *log_m, double *visit,
                      double *scratch) {
  const size_t letters = g->n_nodes - 1, v = g->vocabulary;
  const double *held = NULL;
  memset(visit, 0, g->horizon * g->n_nodes * sizeof *visit);
  visit[0] = 1;
  for (size_t k = 0; k + 1 < g->horizon; ++k) {
    const double *here = visit + k * g->n_nodes;
    double *after = visit + (k + 1) * g->n_nodes + 1;
    if (held != log_m[k]) exponentiate(g, log_m[k], 1, scratch);
    held = log_m[k];
    for (size_t n = 0; n < g->n_nodes; ++n)
      if (here[n] != 0)
        for (size_t a = 0; a < letters; ++a) after[a] += here[n] * scratch[n * v + a];
  }
}

/* --- automata by name and by table --- */

typedef enum automaton_kind {
  AUTOMATON_PARITY,
  AUTOMATON_COUNT,
  AUTOMATON_CONTAINS,
  AUTOMATON_BALANCED,
  AUTOMATON_TABLE,
  N_AUTOMATA
} automaton_kind;
static const char *const names[N_AUTOMATA] = {"parity", "count", "contains", "balanced", "table"};

/* Upper bound on the transitions of all prompts' automata together. */
static const size_t max_transitions = (size_t)1 << 26;

/* The parsed keys of a world section; which of them are required depends on the kind. */
typedef struct automaton_section {
  automaton_kind kind;
  size_t letter, modulus, depth;
  const cfg_node *section, *word, *table;
  size_t letters, n_prompts;
} automaton_section;

static gl_status automata_reserve(toy_automaton *m, size_t states, size_t letters, gl_error *err) {
  *m = (toy_automaton){.states = states,
                       .next = calloc(states, letters * sizeof *m->next),
                       .reward = calloc(states, sizeof *m->reward)};
  return m->next != NULL && m->reward != NULL ? GL_OK : gl_fail_memory(err, "an automaton");
}

void toy_automata_free(toy_automaton *automata, size_t n_prompts) {
  for (size_t x = 0; automata != NULL && x < n_prompts; ++x) {
    free(automata[x].next);
    free(automata[x].reward);
  }
  free(automata);
}

/* Counts `letter` modulo the number of states. Prompt x accepts when the count equals x modulo that
 * number (parity: modulus 2). */
static gl_status make_count(toy_automaton *m, const automaton_section *s, size_t x, gl_error *err) {
  const size_t modulus = s->kind == AUTOMATON_PARITY ? 2 : s->modulus;
  gl_status status = automata_reserve(m, modulus, s->letters, err);
  if (status != GL_OK) return status;
  for (size_t k = 0; k < modulus; ++k)
    for (size_t a = 0; a < s->letters; ++a)
      m->next[k * s->letters + a] = (uint16_t)((k + (a == s->letter)) % modulus);
  m->reward[x % modulus] = 1;
  return GL_OK;
}

/* Balanced brackets: letter 0 opens, letter 1 closes, others have no effect. Accepts if all
 * brackets are closed at the end, none was closed before it was opened, and the greatest nesting
 * depth was exactly `wanted`. States 0 .. wanted - 1 are the open brackets before depth `wanted`
 * was reached, states wanted .. 2 wanted those after. The last state is failure. */
static gl_status make_balanced(toy_automaton *m, const automaton_section *s, size_t x,
                               gl_error *err) {
  const size_t wanted = 1 + x % s->depth, failed = 2 * wanted + 1;
  gl_status status = automata_reserve(m, 2 * wanted + 2, s->letters, err);
  if (status != GL_OK) return status;
  for (size_t k = 0; k < m->states; ++k) {
    const int met = k >= wanted;
    const size_t open = met ? k - wanted : k;
    uint16_t *next = m->next + k * s->letters;
    for (size_t a = 0; a < s->letters; ++a) next[a] = (uint16_t)k;
    if (k == failed) continue;
    next[0] = (uint16_t)(open + 1 > wanted           ? failed
                         : met || open + 1 == wanted ? wanted + open + 1
                                                     : open + 1);
    next[1] = (uint16_t)(open == 0 ? failed : k - 1);
  }
  m->reward[wanted] = 1;
  return GL_OK;
}

static gl_status automata_read_word(const cfg_node *list, const automaton_section *s, size_t *word,
                                    size_t *n, gl_error *err) {
  *n = list != NULL && cfg_kind_of(list) == CFG_LIST ? cfg_size(list) : 0;
  if (*n == 0 || *n > AUTOMATON_MAX_HORIZON)
    return cfg_fail(list != NULL ? list : s->section, err,
                    "the automaton contains needs `word`: a list of 1 to %d letters, or one such "
                    "list per prompt",
                    AUTOMATON_MAX_HORIZON);
  for (size_t i = 0; i < *n; ++i) {
    double v = 0;
    if (!cfg_number(cfg_at(list, i), &v) || v != floor(v) || v < 0 || v >= (double)s->letters)
      return cfg_fail(cfg_at(list, i), err, "a letter of `word` is a whole number from 0 to %zu",
                      s->letters - 1);
    word[i] = (size_t)v;
  }
  return GL_OK;
}

/* Knuth-Morris-Pratt automaton: the state is the length of the longest prefix of the word that was
 * just read. The state of the complete word is absorbing. */
static gl_status make_contains(toy_automaton *m, const automaton_section *s, size_t x,
                               gl_error *err) {
  size_t word[AUTOMATON_MAX_HORIZON], n = 0, restart = 0;
  const int nested = s->word != NULL && cfg_kind_of(s->word) == CFG_LIST && cfg_size(s->word) > 0 &&
                     cfg_kind_of(cfg_at(s->word, 0)) == CFG_LIST;
  if (nested && cfg_size(s->word) != s->n_prompts)
    return cfg_fail(s->word, err, "word has %zu lists for %zu prompts", cfg_size(s->word),
                    s->n_prompts);
  gl_status status = automata_read_word(nested ? cfg_at(s->word, x) : s->word, s, word, &n, err);
  if (status == GL_OK) status = automata_reserve(m, n + 1, s->letters, err);
  if (status != GL_OK) return status;
  for (size_t k = 0; k < n; ++k) {
    uint16_t *next = m->next + k * s->letters;
    for (size_t a = 0; a < s->letters; ++a) next[a] = k > 0 ? m->next[restart * s->letters + a] : 0;
    next[word[k]] = (uint16_t)(k + 1);
    if (k > 0) restart = m->next[restart * s->letters + word[k]];
  }
  for (size_t a = 0; a < s->letters; ++a) m->next[n * s->letters + a] = (uint16_t)n;
  m->reward[n] = 1;
  return GL_OK;
}

/* --- tables --- */

static gl_status read_state(const cfg_node *node, size_t states, size_t *out, const char *what,
                            gl_error *err) {
  double v = 0;
  if (!cfg_number(node, &v) || v != floor(v) || v < 0 || v >= (double)states)
    return cfg_fail(node, err, "%s must be a state, a whole number from 0 to %zu", what,
                    states - 1);
  *out = (size_t)v;
  return GL_OK;
}

/* A state's list may be shorter than the alphabet: letters beyond its end leave the state
 * unchanged. */
static gl_status read_next(toy_automaton *m, const cfg_node *list, const automaton_section *s,
                           gl_error *err) {
  for (size_t k = 0; k < m->states; ++k) {
    const cfg_node *row = cfg_at(list, k);
    if (cfg_kind_of(row) != CFG_LIST || cfg_size(row) > s->letters)
      return cfg_fail(row, err,
                      "state %zu of `next` must be a list of up to %zu states, one per letter", k,
                      s->letters);
    for (size_t a = 0; a < s->letters; ++a) {
      size_t to = k;
      gl_status status = a < cfg_size(row)
                             ? read_state(cfg_at(row, a), m->states, &to, "the next state", err)
                             : GL_OK;
      if (status != GL_OK) return status;
      m->next[k * s->letters + a] = (uint16_t)to;
    }
  }
  return GL_OK;
}

/* The list for prompt x: the list itself or, if it is a list of lists, its x-th. */
static gl_status of_prompt(const cfg_node **out, const cfg_node *list, const automaton_section *s,
                           size_t x, const char *key, gl_error *err) {
  if (cfg_kind_of(list) != CFG_LIST || cfg_size(list) == 0)
    return cfg_fail(list, err, "%s must be a list, or one list per prompt", key);
  const int nested = cfg_kind_of(cfg_at(list, 0)) == CFG_LIST;
  if (nested && cfg_size(list) != s->n_prompts)
    return cfg_fail(list, err, "%s has %zu lists for %zu prompts", key, cfg_size(list),
                    s->n_prompts);
  *out = nested ? cfg_at(list, x) : list;
  return GL_OK;
}

static gl_status read_accept(toy_automaton *m, const cfg_node *list, gl_error *err) {
  for (size_t i = 0; i < cfg_size(list); ++i) {
    size_t state = 0;
    gl_status status = read_state(cfg_at(list, i), m->states, &state, "what is accepted", err);
    if (status != GL_OK) return status;
    m->reward[state] = 1;
  }
  return GL_OK;
}

static gl_status automata_read_rewards(toy_automaton *m, const cfg_node *list, gl_error *err) {
  if (cfg_kind_of(list) != CFG_LIST || cfg_size(list) != m->states)
    return cfg_fail(list, err, "rewards must be a list of %zu numbers, one per state", m->states);
  for (size_t k = 0; k < m->states; ++k)
    if (!cfg_number(cfg_at(list, k), m->reward + k) || !isfinite(m->reward[k]))
      return cfg_fail(cfg_at(list, k), err, "a reward must be a finite number");
  return GL_OK;
}

static gl_status fill_table(toy_automaton *m, const automaton_section *s, size_t x,
                            const cfg_node *next, const cfg_node *accept, const cfg_node *rewards,
                            gl_error *err) {
  const cfg_node *list = NULL;
  const char *key = accept != NULL ? "accept" : "rewards";
  gl_status status = automata_reserve(m, cfg_size(next), s->letters, err);
  if (status == GL_OK) status = read_next(m, next, s, err);
  if (status == GL_OK) status = of_prompt(&list, accept != NULL ? accept : rewards, s, x, key, err);
  if (status != GL_OK) return status;
  return accept != NULL ? read_accept(m, list, err) : automata_read_rewards(m, list, err);
}

/* Makes the automaton that the recipe gives as a table. */
static gl_status make_table(toy_automaton *m, const automaton_section *s, size_t x, gl_error *err) {
  cfg_reader r;
  if (s->table == NULL)
    return cfg_fail(s->section, err,
                    "automaton: table needs `table: {next: […], accept: […]}`, a list of states "
                    "for each state, and the states that earn a reward of 1");
  cfg_begin(&r, s->table, "world.table", err);
  const cfg_node *start = cfg_child(&r, "start"), *next = cfg_child(&r, "next");
  const cfg_node *accept = cfg_child(&r, "accept"), *rewards = cfg_child(&r, "rewards");
  gl_status status = cfg_end(&r);
  if (status != GL_OK) return status;
  const size_t states = next != NULL && cfg_kind_of(next) == CFG_LIST ? cfg_size(next) : 0;
  if (states == 0 || states > AUTOMATON_MAX_STATES)
    return cfg_fail(next != NULL ? next : s->table, err,
                    "`next` must be a list of 1 to %d lists, one per state, each with the state "
                    "that follows each letter",
                    AUTOMATON_MAX_STATES);
  if ((accept == NULL) == (rewards == NULL))
    return cfg_fail(s->table, err,
                    "a table has either `accept`, a list of states, or `rewards`, a number per "
                    "state");
  status = fill_table(m, s, x, next, accept, rewards, err);
  if (status == GL_OK && start != NULL) status = read_state(start, states, &m->start, "start", err);
  return status;
}

/* --- all kinds --- */

/* Rejects a key that the chosen automaton does not use. */
static gl_status refuse_unused(const automaton_section *s, gl_error *err) {
  static const struct {
    const char *key;
    unsigned kinds; /* bit set of the kinds that use the key */
  } keys[] = {{"letter", 1u << AUTOMATON_PARITY | 1u << AUTOMATON_COUNT},
              {"modulus", 1u << AUTOMATON_COUNT},
              {"word", 1u << AUTOMATON_CONTAINS},
              {"depth", 1u << AUTOMATON_BALANCED},
              {"table", 1u << AUTOMATON_TABLE}};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; ++i) {
    const cfg_node *at = cfg_find(s->section, keys[i].key);
    if (at != NULL && (keys[i].kinds >> s->kind & 1u) == 0)
      return cfg_fail(at, err, "%s means nothing to the automaton %s; leave it out", keys[i].key,
                      names[s->kind]);
  }
  return GL_OK;
}

static gl_status automata_check_letters(const automaton_section *s, gl_error *err) {
  const cfg_node *at = cfg_find(s->section, "letter");
  const int counts = s->kind == AUTOMATON_PARITY || s->kind == AUTOMATON_COUNT;
  if (counts && s->letter >= s->letters)
    return cfg_fail(at != NULL ? at : s->section, err,
                    "letter %zu is counted, but the letters are 0 to %zu", s->letter,
                    s->letters - 1);
  if (s->kind == AUTOMATON_BALANCED && s->letters < 2)
    return cfg_fail(s->section, err,
                    "balanced needs a vocabulary of 2 or more: letter 0 opens, letter 1 closes");
  return GL_OK;
}

static gl_status automata_make(toy_automaton *m, const automaton_section *s, size_t x,
                               gl_error *err) {
  switch (s->kind) {
  case AUTOMATON_PARITY:
  case AUTOMATON_COUNT:
    return make_count(m, s, x, err);
  case AUTOMATON_CONTAINS:
    return make_contains(m, s, x, err);
  case AUTOMATON_BALANCED:
    return make_balanced(m, s, x, err);
  case AUTOMATON_TABLE:
    return make_table(m, s, x, err);
  case N_AUTOMATA:
    break;
  }
  return gl_fail(err, GL_EINTERNAL, "an automaton of kind %d", (int)s->kind);
}

gl_status toy_automata_new(toy_automaton **out, cfg_reader *r, const cfg_node *section,
                           size_t letters, size_t n_prompts, gl_error *err) {
  automaton_section s = {.section = section, .letters = letters, .n_prompts = n_prompts};
  *out = NULL;
  s.kind = (automaton_kind)field_choice(r, "automaton");
  s.letter = field_count_or(r, "letter", letters < 2 ? 0 : 1);
  s.modulus = field_count(r, "modulus");
  s.depth = field_count(r, "depth");
  s.word = cfg_child(r, "word");
  s.table = cfg_child(r, "table");
  gl_status status = r->status;
  if (status == GL_OK) status = refuse_unused(&s, err);
  if (status == GL_OK) status = automata_check_letters(&s, err);
  if (status != GL_OK) return status;
  toy_automaton *made = calloc(n_prompts, sizeof *made);
  if (made == NULL) return gl_fail_memory(err, "automata");
  for (size_t x = 0; x < n_prompts && status == GL_OK; ++x) {
    status = automata_make(made + x, &s, x, err);
    if (status == GL_OK && made[x].states > max_transitions / letters / n_prompts)
      status = cfg_fail(section, err,
                        "%zu automata of %zu states over %zu letters are more than are held; use "
                        "fewer prompts, states or letters",
                        n_prompts, made[x].states, letters);
  }
  if (status != GL_OK) {
    toy_automata_free(made, n_prompts);
    return status;
  }
  *out = made;
  return GL_OK;
}
