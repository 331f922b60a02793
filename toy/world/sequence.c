/* Worlds of token sequences. In `sequence` the reward of a response is that of a task, or read from
 * a file; in `automaton` it is that of a finite automaton's final state. Also allocates the rewards
 * of all listed worlds. */
#include "core/config/fields.h"
#include "core/rl/sequence_task.h"
#include "toy/world/automaton.h"
#include "toy/world/world.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

gl_status toy_reserve_rewards(toy_world *w, const cfg_node *section, gl_error *err) {
  const size_t most = (size_t)1 << 26;
  if (w->n_prompts > most / w->tree.n_responses)
    return cfg_fail(section, err,
                    "%zu prompts with %zu responses each are too many to enumerate; use fewer "
                    "prompts (contexts) or responses",
                    w->n_prompts, w->tree.n_responses);
  w->reward = calloc(w->n_prompts * w->tree.n_responses, sizeof *w->reward);
  return w->reward != NULL ? GL_OK : gl_fail_memory(err, "a toy world's rewards");
}

/* --- rewards from a file --- */

/* A line of the file, "prompt,response,reward". */
typedef struct reward_line {
  const char *path;
  size_t line;
  gl_error *err;
} reward_line;

static gl_status reward_line_fail(const reward_line *at, const char *why) {
  return gl_fail(at->err, GL_EINPUT,
                 "%s:%zu: %s; a line is prompt,response,reward, as in 0,2 1 3,0.5", at->path,
                 at->line, why);
}

/* Finds the index of the response with the given letters, such as "2 1 3". */
static gl_status sequence_find_response(const response_tree *tree, char *letters,
                                        const reward_line *at, size_t *response) {
  const size_t n_letters = tree->vocabulary - (tree->has_end ? 1 : 0);
  size_t node = 0;
  for (char *rest = letters;;) {
    char *end = NULL;
    rest += strspn(rest, " ");
    const bool is_end = *rest == '\0';
    const unsigned long token = is_end ? tree->vocabulary - 1 : strtoul(rest, &end, 10);
    if (is_end && !tree->has_end) return reward_line_fail(at, "the response is too short");
    if (!is_end && (end == rest || (*end != ' ' && *end != '\0') || token >= n_letters))
      return reward_line_fail(at,
                              "the response has something that is no letter below `vocabulary`");
    const int32_t next = tree->next[node * tree->vocabulary + token];
    if (!is_end) rest = end;
    if (next >= 0) {
      node = (size_t)next;
      continue;
    }
    *response = (size_t)~next;
    return rest[strspn(rest, " ")] == '\0' ? GL_OK
                                           : reward_line_fail(at, "the response is too long");
  }
}

/* Reads one line, "prompt,response,reward". The prompt * stands for every prompt. */
static gl_status sequence_read_reward(toy_world *w, char *text, const reward_line *at) {
  char *letters = strchr(text, ','), *value = letters != NULL ? strrchr(text, ',') : NULL;
  char *end = NULL;
  size_t response = 0;
  if (letters == NULL || value == letters)
    return reward_line_fail(at, "there are not three columns");
  *letters++ = '\0', *value++ = '\0';
  const double reward = strtod(value, &end);
  if (end == value || end[strspn(end, " \r\n")] != '\0' || !isfinite(reward))
    return reward_line_fail(at, "the reward is no finite number");
  const bool is_every = strcmp(text, "*") == 0;
  const unsigned long prompt = is_every ? 0 : strtoul(text, &end, 10);
  if (!is_every && (end == text || *end != '\0' || prompt >= w->n_prompts))
    return reward_line_fail(at, "the prompt is neither * nor a number below `prompts`");
  gl_status status = sequence_find_response(&w->tree, letters, at, &response);
  for (size_t x = 0; x < w->n_prompts && status == GL_OK; ++x)
    if (is_every || x == prompt) w->reward[x * w->tree.n_responses + response] = reward;
  return status;
}

static gl_status sequence_read_rewards(toy_world *w, const cfg_node *place, gl_error *err) {
  char *path = cfg_locate(place, cfg_text(place)), *text = NULL;
  size_t size = 0;
  if (path == NULL) return gl_fail_memory(err, "the rewards of a world");
  FILE *from = fopen(path, "r");
  gl_status status = GL_OK;
  if (from == NULL)
    status = cfg_fail(place, err, "world.rewards_path: %s: %s", path, strerror(errno));
  reward_line at = {.path = path, .err = err};
  while (from != NULL && status == GL_OK && getline(&text, &size, from) >= 0) {
    ++at.line;
    const bool is_head = at.line == 1 && strncmp(text, "prompt,", 7) == 0;
    if (!is_head && text[0] != '#' && text[0] != '\n') status = sequence_read_reward(w, text, &at);
  }
  if (status == GL_OK && ferror(from)) status = cfg_fail(place, err, "%s cannot be read", path);
  if (from != NULL) fclose(from);
  free(text);
  free(path);
  return status;
}

/* --- the sequence world --- */

static gl_status sequence_parse(toy_world *w, cfg_reader *r, const cfg_node *section, uint64_t seed,
                                size_t *modulus, gl_error *err) {
  sequence_section s;
  gl_status status = sequence_section_read(&s, r);
  const cfg_node *from = cfg_child(r, "rewards_path");
  if (status != GL_OK) return status;
  if (from != NULL && cfg_kind_of(from) != CFG_SCALAR)
    return cfg_fail(from, err, "'world.rewards_path' must be the name of a file");
  if (from != NULL && cfg_has(r, "task"))
    return cfg_fail(from, err,
                    "rewards come from world.rewards_path or from world.task; take the task out, "
                    "or add world.task=null");
  w->n_prompts = s.n_prompts;
  *modulus = s.task.modulus;
  status = sequence_section_tree(&w->tree, &s, section, err);
  if (status == GL_OK) status = toy_reserve_rewards(w, section, err);
  if (status != GL_OK) return status;
  if (from != NULL) return sequence_read_rewards(w, from, err);
  return sequence_task_rewards(&s.task, &w->tree, w->n_prompts, seed, w->reward, err);
}

const toy_world_kind toy_world_sequence = {
    .name = "sequence",
    .about = "short sequences of letters, and a task that a whole response solves or does not",
    .parse = sequence_parse,
};

/* --- the automaton world --- */
/* Automaton world: up to 256 letters, responses of up to 64 letters, a reward by the automaton's
 * final state, and a policy that depends on prompt and last letter only. */

/* Upper bound on the scratch of a dynamic programme, in doubles (64 MiB). */
static const size_t max_scratch = (size_t)1 << 23;

static const cfg_node *automaton_place(const cfg_node *section, const char *key) {
  const cfg_node *node = cfg_find(section, key);
  return node != NULL ? node : section;
}

/* The reward of the state that response y ends in. */
static double automaton_reward_of(const toy_automaton *m, const response_tree *tree, size_t y,
                                  size_t letters) {
  size_t state = m->start;
  for (size_t i = 0; i < (size_t)tree->length[y]; ++i) {
    const size_t a = (size_t)tree->path[y * tree->horizon + i] % tree->vocabulary;
    if (a < letters) state = m->next[state * letters + a];
  }
  return m->reward[state];
}

/* Enumerates the responses of a small world (`listed: true`). Policy and rewards are the same as in
 * the counted world. */
static gl_status automaton_list_responses(toy_world *w, const cfg_node *section, size_t letters,
                                          size_t horizon, int has_end, gl_error *err) {
  gl_error why = {0};
  gl_status status =
      response_tree_init(&w->tree, letters + (has_end ? 1 : 0), horizon, has_end, &why);
  if (status == GL_EINPUT)
    return cfg_fail(automaton_place(section, "horizon"), err, "%s, or leave `listed` out",
                    why.text);
  if (status != GL_OK) return gl_fail(err, status, "%s", why.text);
  status = toy_reserve_rewards(w, section, err);
  for (size_t x = 0; x < w->n_prompts && status == GL_OK; ++x)
    for (size_t y = 0; y < w->tree.n_responses; ++y) {
      w->reward[x * w->tree.n_responses + y] =
          automaton_reward_of(w->automata + x, &w->tree, y, letters);
    }
  return status;
}

/* Makes a counted world: the graph of last letters instead of a tree of responses. */
static gl_status count_responses(toy_world *w, const cfg_node *section, size_t letters,
                                 size_t horizon, int has_end, gl_error *err) {
  size_t states = 1;
  gl_status status = toy_chain_graph(&w->tree, letters, horizon, has_end, err);
  for (size_t x = 0; x < w->n_prompts; ++x)
    if (w->automata[x].states > states) states = w->automata[x].states;
  if (status == GL_OK && toy_chain_scratch(&w->tree, states) > max_scratch)
    return cfg_fail(automaton_place(section, "horizon"), err,
                    "%zu positions of %zu letters in %zu states are more than a dynamic programme "
                    "here holds; make the automaton, the vocabulary or the horizon smaller",
                    horizon, letters, states);
  w->counted = 1;
  return status;
}

static gl_status automaton_parse(toy_world *w, cfg_reader *r, const cfg_node *section,
                                 uint64_t seed, size_t *modulus, gl_error *err) {
  (void)seed;    /* deterministic */
  (void)modulus; /* a bigram policy has no feature `sum` */
  const size_t letters = field_count(r, "vocabulary");
  const size_t horizon = field_count(r, "horizon");
  const int has_end = field_flag(r, "end_token"), listed = field_flag(r, "listed");
  w->n_prompts = field_count(r, "prompts");
  w->bigram = 1;
  gl_status status = r->status;
  if (status == GL_OK)
    status = toy_automata_new(&w->automata, r, section, letters, w->n_prompts, err);
  if (status != GL_OK) return status;
  return listed ? automaton_list_responses(w, section, letters, horizon, has_end, err)
                : count_responses(w, section, letters, horizon, has_end, err);
}

const toy_world_kind toy_world_automaton = {
    .name = "automaton",
    .about = "responses of up to 64 letters out of 256, a reward by a finite automaton, and a "
             "policy that sees the last letter: exact without listing responses",
    .parse = automaton_parse,
};
