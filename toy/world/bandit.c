/* The bandit: arms, contexts, fixed or random mean rewards, optional noise. */
#include "core/random/rng.h"

#include "core/config/fields.h"
#include "toy/world/world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* entity of the random mean rewards at RNG_WORLD */
enum { REWARDS_ENTITY = 0 };

/* --- fields --- */

static const field entries[] = {
    FIELD(
        "world.rewards", "rewards", LIST, "", NULL,
        "of bandit: mean rewards, a number per arm, such a list per context, or the distribution "
        "that "
        "they are drawn from. Of llm in `gepolab lab bias`: a number per response (by length, then "
        "lexicographically), or such a list per prompt, instead of a task",
        .rule = "the uniform distribution"),
    FIELD("world.rewards.distribution", "distribution of rewards",
          CHOICE("uniform", "normal", "bernoulli"), "", "uniform", "uniform, normal or bernoulli",
          .when = {{"world.kind", "bandit"}}),
    FIELD("world.rewards.low", "lowest reward", REAL(-1e9, 1e9), "", "0",
          "least mean reward of uniform", .when = {{"world.kind", "bandit"}}),
    FIELD("world.rewards.high", "highest reward", REAL(-1e9, 1e9), "", "1",
          "largest mean reward of uniform", .when = {{"world.kind", "bandit"}}),
    FIELD("world.rewards.mean", "mean of rewards", REAL(-1e9, 1e9), "", "0", "mean of normal",
          .when = {{"world.kind", "bandit"}}),
    FIELD("world.rewards.sd", "deviation of rewards", REAL(0, 1e9), "", "1",
          "standard deviation of normal", .when = {{"world.kind", "bandit"}}),
    FIELD("world.rewards.p", "share of rewards", REAL(0, 1), "", "0.5",
          "of bernoulli: probability that an arm has mean reward 1, else 0",
          .when = {{"world.kind", "bandit"}}),
    FIELD("world.arms", "arms", COUNT(1, TREE_MAX_RESPONSES), "", NULL, "actions to choose from",
          .when = {{"world.kind", "bandit"}}, .rule = "length of `rewards`, or 10"),
    FIELD("world.contexts", "contexts", COUNT(1, TOY_MAX_CONTEXTS), "", NULL,
          "prompts, each with rewards of its own", .when = {{"world.kind", "bandit"}},
          .rule = "number of lists in `rewards`, or 1"),
    FIELD("world.noise", "reward noise", TEXT, "", "none",
          "none, bernoulli (rewards are probabilities of a reward of 1), or the standard deviation "
          "of Gaussian noise; exact quantities use the mean",
          .when = {{"world.kind", "bandit"}}),
};
FIELD_TABLE(toy_bandit_fields, entries);

/* --- reading --- */

typedef enum reward_dist { DIST_UNIFORM, DIST_NORMAL, DIST_BERNOULLI } reward_dist;

static gl_status random_rewards(toy_world *w, const cfg_node *node, uint64_t seed, gl_error *err) {
  cfg_reader r;
  cfg_begin(&r, node, "world.rewards", err);
  reward_dist dist = (reward_dist)field_choice(&r, "distribution");
  double low = field_real(&r, "low"), high = field_real(&r, "high");
  double mean = field_real(&r, "mean"), sd = field_real(&r, "sd");
  double p = field_real(&r, "p");
  gl_status status = cfg_end(&r);
  if (status == GL_OK && low > high)
    status = cfg_fail(cfg_find(node, cfg_has(&r, "low") ? "low" : "high"), err,
                      "low must not be above high, but they are %g and %g", low, high);
  rng_stream stream = rng_stream_at(seed, RNG_WORLD, REWARDS_ENTITY);
  for (size_t i = 0; i < w->n_prompts * w->tree.n_responses && status == GL_OK; ++i) {
    rng_words words = rng_block(stream, i);
    double u = rng_u01_53(words.v[0], words.v[1]);
    w->reward[i] = dist == DIST_UNIFORM  ? low + (high - low) * u
                   : dist == DIST_NORMAL ? mean + sd * rng_normal(words)
                                         : u < p;
  }
  return status;
}

static gl_status bandit_read_row(const cfg_node *list, size_t arms, double *to, gl_error *err) {
  if (cfg_kind_of(list) != CFG_LIST || cfg_size(list) != arms)
    return cfg_fail(list, err, "rewards must be a list of %zu numbers, one per arm", arms);
  for (size_t a = 0; a < arms; ++a) {
    const cfg_node *item = cfg_at(list, a);
    if (!cfg_number(item, to + a) || !isfinite(to[a]))
      return cfg_fail(item, err, "a reward must be a finite number");
  }
  return GL_OK;
}

/* `noise`: none, bernoulli, or a number: the standard deviation of Gaussian noise. */
static gl_status parse_noise(toy_world *w, const cfg_node *node, gl_error *err) {
  static const char *const kinds[] = {"none", "bernoulli"};
  if (node == NULL) return GL_OK;
  if (cfg_number(node, &w->noise_sd) && w->noise_sd >= 0 && isfinite(w->noise_sd)) {
    w->noise = w->noise_sd > 0 ? NOISE_GAUSSIAN : NOISE_NONE;
    return GL_OK;
  }
  const char *text = cfg_kind_of(node) == CFG_SCALAR ? cfg_text(node) : "";
  if (strcmp(text, "bernoulli") == 0) {
    w->noise = NOISE_BERNOULLI;
    for (size_t i = 0; i < w->n_prompts * w->tree.n_responses; ++i)
      if (w->reward[i] < 0 || w->reward[i] > 1)
        return cfg_fail(node, err, "bernoulli noise needs mean rewards in [0, 1], but one is %g",
                        w->reward[i]);
    return GL_OK;
  }
  if (strcmp(text, "none") == 0) return GL_OK;
  char near[CFG_HINT_SIZE];
  return cfg_fail(node, err,
                  "noise must be none, bernoulli, or the standard deviation of Gaussian noise, a "
                  "number of 0 or more%s",
                  cfg_hint(text, kinds, 2, near));
}

static gl_status bandit_parse(toy_world *w, cfg_reader *r, const cfg_node *section, uint64_t seed,
                              size_t *modulus, gl_error *err) {
  (void)modulus; /* the feature `sum` does not exist for responses of one token */
  const cfg_node *rewards = cfg_child(r, "rewards");
  int listed = rewards != NULL && cfg_kind_of(rewards) == CFG_LIST && cfg_size(rewards) > 0;
  int nested = listed && cfg_kind_of(cfg_at(rewards, 0)) == CFG_LIST;
  size_t arms = nested ? cfg_size(cfg_at(rewards, 0)) : listed ? cfg_size(rewards) : 10;
  size_t given = field_count_or(r, "arms", arms);
  w->n_prompts = field_count_or(r, "contexts", nested ? cfg_size(rewards) : 1);
  const cfg_node *noise = cfg_child(r, "noise");
  if (r->status != GL_OK) return r->status;
  if (rewards != NULL && !listed && cfg_kind_of(rewards) != CFG_MAP)
    return cfg_fail(rewards, err,
                    "rewards must be a list with a number per arm, a list of such lists, one per "
                    "context, or a map like {distribution: uniform, low: 0, high: 1}");
  if (listed && given != arms)
    return cfg_fail(cfg_find(section, "arms"), err, "arms is %zu, but rewards has %zu", given,
                    arms);
  if (nested && w->n_prompts != cfg_size(rewards))
    return cfg_fail(cfg_find(section, "contexts"), err,
                    "contexts is %zu, but rewards has %zu lists", w->n_prompts, cfg_size(rewards));
  gl_status status = response_tree_init(&w->tree, given, 1, 0, err);
  if (status == GL_OK) status = toy_reserve_rewards(w, section, err);
  if (status != GL_OK) return status;
  if (!listed)
    status = random_rewards(w, rewards, seed, err);
  else
    for (size_t x = 0; x < w->n_prompts && status == GL_OK; ++x)
      status =
          bandit_read_row(nested ? cfg_at(rewards, x) : rewards, given, w->reward + x * given, err);
  return status == GL_OK ? parse_noise(w, noise, err) : status;
}

const toy_world_kind toy_world_bandit = {
    .name = "bandit",
    .about = "arms with given or drawn mean rewards, with or without contexts and noise",
    .parse = bandit_parse,
};
