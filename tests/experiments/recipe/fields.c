/* The tables of a recipe's fields against its readers: every value of a wrong kind is refused by
 * name; every key that a reader knows is a field.
 */
#include "core/config/fields.h"

#include "core/base/json.h"
#include "core/config/config.h"
#include "experiments/clock/sim_print.h"
#include "experiments/lab/recipe.h"
#include "experiments/lab/theory.h"
#include "experiments/recipe/recipe.h"
#include "experiments/train/train.h"
#include "sim/cluster.h"
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

SUITE("cli: fields of recipes");

enum { TEXT_SIZE = 2048, PATH_SIZE = 512 };

/* A recipe in which fields are stated. Large enough that they matter, small enough for a moment. */
typedef struct base {
  const char *command; /* what reads it: run, bias or theory */
  const char *below;   /* only fields whose path begins so are tried; "" for all */
  const char *text;
} base;

#define TRAIN "steps: 6, eval_every: 2, train: {groups: 2, group_size: 4}, "
#define BANDIT "world: {kind: bandit, contexts: 2}, "
#define TASK(kind, more)                                                                           \
  {                                                                                                \
    "run", "world.task",                                                                           \
        "{steps: 1, train: {groups: 1, group_size: 2}, world: {kind: llm, backend: cpu, model: "   \
        "{layers: 1, hidden: 8, heads: 2, context: 48}, max_tokens: 12, evaluation: {kind: "       \
        "sampled, prompts: 4}, warmup: {steps: 2, batch: 4}, task: {kind: " kind more "}}}"        \
  }

static const base bases[] = {
    {"run", "", "{world: {kind: bandit}}"},
    {"run", "", "{" TRAIN BANDIT "optimizer: {kind: adamw, lr: 0.1}}"},
    {"run", "", "{" TRAIN BANDIT "optimizer: {kind: sgd}, sampling: {top_k: 3}}"},
    {"run", "world",
     "{" TRAIN
     "world: {kind: bandit, rewards: {distribution: normal}, policy: {init: {kind: normal}}}}"},
    {"run", "world", "{" TRAIN "world: {kind: bandit, rewards: {distribution: bernoulli}}}"},
    {"run", "", "{" TRAIN "world: {kind: sequence}, cluster: {preset: heterorl}}"},
    {"run", "world",
     "{" TRAIN
     "world: {kind: sequence, task: needle, policy: {kind: loglinear, features: random}}}"},
    {"run", "world", "{" TRAIN "world: {kind: sequence, policy: {kind: loglinear}}}"},
    {"run", "cluster",
     "{" TRAIN BANDIT "cluster: {preset: one_step_off, mtbf: 900, up: {bandwidth: 1000, loss: 0.1},"
     " down: {bandwidth: 1000, to_bad: 0.2}, rollout_bytes: 9000, weights_bytes: 9000}}"},
    {"run", "cluster", "{" TRAIN BANDIT "cluster: {preset: areal}}"},
    {"run", "cluster",
     "{" TRAIN BANDIT "cluster: {preset: fifo, up: {bandwidth: 1000, to_bad: 0.2}, "
     "down: {bandwidth: 1000, loss: 0.1}, rollout_bytes: 9000, weights_bytes: 9000}}"},
    {"run", "train.filter_groups",
     "{steps: 6, eval_every: 2, train: {groups: 2, group_size: 4, filter_groups: {enable: "
     "true}}, " BANDIT "cluster: {coupled: true}}"},
    {"run", "cluster", "{" TRAIN BANDIT "cluster: {preset: lifo}}"},
    {"run", "cluster",
     "{" TRAIN BANDIT "cluster: {preset: fifo, weights_bytes: 9000, network: {delta: {share: "
     "0.5}}}}"},
    {"run", "cluster", "{" TRAIN BANDIT "cluster: {preset: fifo, learner: {capacity: 3}}}"},
    {"sim", "cluster", "{" TRAIN BANDIT "cluster: {preset: fifo, window: 2, stale: downweight}}"},
    {"sim", "cluster.restarts", "{" TRAIN BANDIT "cluster: {restarts: {at: [900]}}}"},
    {"sim", "cluster.sources",
     "{" TRAIN BANDIT "cluster: {preset: verl_v1, sources: [{name: a, lengths: 9}]}}"},
    {"sim", "cluster.grader", "{" TRAIN BANDIT "cluster: {grader: {time: 9}}}"},
    {"sim", "cluster.environment",
     "{" TRAIN BANDIT "cluster: {preset: verl_v1, environment: {turns: 3, time: 9}}}"},
    {"sim", "cluster.colocated",
     "{" TRAIN BANDIT "cluster: {preset: verl_v1, colocated: {to_training: 9}}}"},
    {"sim", "cluster.decoding",
     "{" TRAIN BANDIT
     "cluster: {preset: verl_async, decoding: {running: [1, 2], tokens_per_s: [9, 8]}}}"},
    {"sim", "cluster.decoding",
     "{" TRAIN BANDIT "cluster: {preset: verl_async, prompt_tokens: 9, prefill_tokens_per_s: 900, "
     "decoding: {running: [1], tokens_per_s: [9], prefix_cache: version}}}"},
    {"sim", "cluster.decoding",
     "{" TRAIN BANDIT "cluster: {preset: verl_async, decoding: {kind: roofline, parameters: 1e9, "
     "memory_bandwidth: 1e12, flops: 1e15}}}"},
    {"sim", "cluster", "{" TRAIN BANDIT "cluster: {preset: verl_async}}"},
    {"sim", "cluster", "{" TRAIN BANDIT "cluster: {preset: verl_async, unit: batch}}"},
    {"sim", "cluster", "{" TRAIN BANDIT "cluster: {preset: prime_rl}}"},
    {"sim", "cluster", "{" TRAIN BANDIT "cluster: {preset: prime_rl, unit: batch}}"},
    {"run", "cluster", "{" TRAIN BANDIT "cluster: {preset: intellect2}}"},
    {"sim", "cluster", "{" TRAIN BANDIT "cluster: {preset: pipelinerl}}"},
    {"sim", "cluster", "{" TRAIN BANDIT "cluster: {preset: pipelinerl, unit: batch}}"},
    {"run", "cluster", "{" TRAIN BANDIT "cluster: {preset: streamrl}}"},
    {"run", "cluster", "{" TRAIN BANDIT "cluster: {preset: asyncflow}}"},
    {"run", "cluster", "{" TRAIN BANDIT "cluster: {preset: llamarl}}"},
    {"sim", "cluster", "{" TRAIN BANDIT "cluster: {preset: magistral}}"},
    {"sim", "cluster", "{" TRAIN BANDIT "cluster: {preset: magistral, unit: batch}}"},
    {"run", "cluster", "{" TRAIN BANDIT "cluster: {preset: laminar}}"},
    {"run", "cluster", "{" TRAIN BANDIT "cluster: {preset: roll_flash}}"},
    {"run", "cluster", "{" TRAIN BANDIT "cluster: {preset: slime}}"},
    {"sim", "cluster", "{" TRAIN BANDIT "cluster: {preset: skyrl}}"},
    {"sim", "cluster", "{" TRAIN BANDIT "cluster: {preset: skyrl, unit: batch}}"},
    {"run", "cluster", "{" TRAIN BANDIT "cluster: {samplers: [{generation: 200}, {speed: 3}]}}"},
    {"run", "cluster",
     "{" TRAIN BANDIT
     "cluster: {lengths: {distribution: uniform, min: 1, max: 90000}, concurrency: 2, "
     "up: {bandwidth: 1000}}}"},
    {"run", "cluster",
     "{" TRAIN BANDIT "cluster: {compare: {histogram: [1, 2], name: here, source: there}}}"},
    {"run", "cluster", "{" TRAIN BANDIT "cluster: {compare: {seconds: 90}}}"},
    {"run", "",
     "{steps: 2, eval_every: 1, train: {groups: 2, group_size: 2}, world: {kind: llm, backend: "
     "cpu, "
     "task: {kind: addition}, evaluation: {kind: sampled, prompts: 8}, warmup: {steps: 3}, "
     "max_tokens: 4}}"},
    {"run", "world.model",
     "{steps: 2, train: {groups: 1, group_size: 2}, world: {kind: llm, backend: cpu, "
     "model: {layers: 1}, task: {kind: parity}, max_tokens: 4}}"},
    {"run", "world",
     "{steps: 1, train: {groups: 1, group_size: 2}, world: {kind: llm, model: {layers: 1, hidden: "
     "8, heads: 2, context: 32}, task: {held_out: 0.1}, max_tokens: 3}}"},
    {"run", "world.policy",
     "{" TRAIN "world: {kind: bandit, arms: 2, policy: {init: {kind: probs, probs: [0.5, 0.5]}}}}"},
    {"run", "", "{" TRAIN "world: {kind: automaton, automaton: count, vocabulary: 6}}"},
    {"run", "", "{" TRAIN "world: {kind: automaton}}"},
    {"run", "world", "{" TRAIN "world: {kind: automaton, automaton: balanced}}"},
    {"run", "world", "{" TRAIN "world: {kind: automaton, automaton: contains, word: [1, 2]}}"},
    {"run", "world",
     "{" TRAIN "world: {kind: automaton, automaton: table, table: {next: [[1], [1, 0]], accept: "
     "[1]}}}"},
    TASK("modular", ""),
    TASK("countdown", ""),
    TASK("sorting", ""),
    TASK("parity", ""),
    TASK("brackets", ""),
    {"bias", "",
     "{world: {kind: bandit, arms: 3}, dial: {kl: {to: 0.1, points: 2}}, "
     "algorithms: [is], group_size: 2}"},
    {"bias", "",
     "{world: {kind: chain}, dial: {kind: staleness, updates: [1]}, algorithms: [is], "
     "group_size: [2]}"},
    {"bias", "world",
     "{world: {kind: gridworld, horizon: 3}, dial: {kind: staleness, updates: [1]}}"},
    {"bias", "world", "{world: {kind: garnet}, dial: {kind: staleness, updates: [1]}}"},
    {"bias", "world",
     "{world: {kind: token, policy: {kind: loglinear}}, dial: {kind: staleness, updates: [1]}}"},
    {"bias", "", "{world: {kind: bandit}, algorithms: [is], training: {lr: [0.1, 1]}}"},
    {"bias", "truncation",
     "{world: {kind: bandit, arms: 3}, dial: {kl: [0]}, algorithms: [is], group_size: 2, "
     "truncation: {top_p: [0.5], weights: [raw]}}"},
    {"bias", "algorithms", "{world: {kind: bandit, arms: 3}, dial: {kl: {to: 0.1, points: 2}}}"},
    {"bias", "", "{world: {kind: bandit, arms: 2}, sampler_probs: [0.5, 0.5], algorithms: [is]}"},
    {"theory", "", "{outcomes: [2], vocabularies: [2], lengths: [1]}"},
};
enum { N_BASES = sizeof bases / sizeof *bases };

/* --- reading a recipe --- */
/* What comes of a recipe, as bytes: of a run its whole result, of the laboratory what it would
 * compute with. */

static void put_lab(const lab_recipe *r, FILE *to) {
  for (size_t i = 0; i < r->n_pairs; ++i) {
    fwrite(r->pairs[i].learner, sizeof(double), r->view.n_parameters, to);
    fwrite(r->pairs[i].sampler, sizeof(double), r->view.n_parameters, to);
  }
  for (size_t i = 0; i < r->n_sizes; ++i) fprintf(to, "%zu ", r->group_size[i]);
  for (size_t i = 0; i < r->n_algorithms; ++i) fprintf(to, "%s ", r->algorithms[i].name);
  const lab_training *t = &r->training;
  fprintf(to, "%zu %zu %zu %d %d %llu; %zu %zu %zu %zu %zu %zu %zu %zu", r->n_sizes, r->budget,
          r->samples, r->covariance, (int)r->weights, (unsigned long long)r->seed, t->updates,
          t->staleness, t->groups, t->every, t->seeds, t->tuning_seeds, t->n_lr, t->n_ages);
}

/* All but what the clock on the wall says. */
static void put_run_result(const run_result *o, FILE *to) {
  fprintf(to, "%d %s ", (int)o->status, o->reason);
  fwrite(o->steps, sizeof *o->steps, o->n_steps, to);
  fwrite(o->evals, sizeof *o->evals, o->n_evals, to);
  fwrite(o->staleness, sizeof *o->staleness, o->n_staleness, to);
  fwrite(&o->clock, sizeof o->clock, 1, to);
}

static gl_status put_run(const cfg_doc *doc, FILE *to, gl_error *err) {
  recipe r;
  run_result o = {0};
  gl_status status = recipe_read(&r, doc, err);
  r.threads = 1;
  if (status == GL_OK) status = recipe_check(&r, NULL, err);
  if (status == GL_OK && to != NULL) {
    status = train_run(&o, &r, &(train_options){0}, err);
    if (status == GL_OK) put_run_result(&o, to);
    run_result_fini(&o);
  }
  return status;
}

/* What `gepolab sim` reads: clusters that no learner can follow, too. */
static gl_status put_clock(const cfg_doc *doc, FILE *to, gl_error *err) {
  recipe r;
  cluster_spec *cluster = NULL;
  schedule s = {0};
  gl_status status = recipe_read(&r, doc, err);
  if (status == GL_OK) status = cluster_parse(&cluster, r.cluster, r.groups, r.group_size, err);
  if (status == GL_OK && to != NULL) status = schedule_build(&s, cluster, r.seed, 20, err);
  if (status == GL_OK && to != NULL) schedule_print_csv(&s, to);
  schedule_fini(&s);
  cluster_free(cluster);
  return status;
}

static gl_status put_result(const char *command, const cfg_doc *doc, FILE *to, gl_error *err) {
  if (strcmp(command, "run") == 0) return put_run(doc, to, err);
  if (strcmp(command, "sim") == 0) return put_clock(doc, to, err);
  if (strcmp(command, "bias") == 0) {
    lab_recipe r;
    gl_status status = lab_recipe_read(&r, doc, err);
    if (status == GL_OK && to != NULL) put_lab(&r, to);
    lab_recipe_fini(&r);
    return status;
  }
  theory_spec s;
  gl_status status = theory_read(&s, doc, err);
  if (status == GL_OK && to != NULL)
    fprintf(to, "%zu %zu %zu %llu", s.pairs, s.starts, s.search_outcomes,
            (unsigned long long)s.seed);
  theory_fini(&s);
  return status;
}

/* The base's recipe with the assignment (NULL: none) made in it, as one read from a file, so that
 * messages do not quote the assignment. */
static cfg_doc *make_doc(const base *b, const char *assignment) {
  cfg_doc *made = NULL, *doc = NULL;
  gl_error err = {0};
  CU_ASSERT_FATAL(cfg_load_text(&made, b->text, strlen(b->text), "base", &err) == GL_OK);
  if (assignment != NULL && cfg_override(made, assignment, &err) != GL_OK) {
    fprintf(stderr, "%s: %s\n", assignment, err.text);
    CU_FAIL("an assignment that cannot be made");
  }
  char *text = cfg_canonical(cfg_root(made));
  CU_ASSERT_FATAL(text != NULL);
  CU_ASSERT_FATAL(cfg_load_text(&doc, text, strlen(text), "recipe", &err) == GL_OK);
  free(text);
  cfg_free(made);
  return doc;
}

typedef struct result {
  gl_status status;
  gl_error err;
  char *bytes;
  size_t size;
} result;

/* runs: 0 reads and checks only. */
static result try_base(const base *b, const char *assignment, int runs) {
  result r = {0};
  cfg_doc *doc = make_doc(b, assignment);
  FILE *to = runs ? open_memstream(&r.bytes, &r.size) : NULL;
  r.status = put_result(b->command, doc, to, &r.err);
  if (to != NULL) fclose(to);
  cfg_free(doc);
  return r;
}

/* --- the table --- */

/* "cluster.samplers.speed" is about a group of the list: the first one. */
static const char *in_recipe(const char *path, char out[PATH_SIZE]) {
  static const char groups[] = "cluster.samplers.";
  const size_t n = strlen(groups);
  if (strncmp(path, groups, n) == 0)
    snprintf(out, PATH_SIZE, "%.20s0.%.400s", groups, path + n);
  else
    snprintf(out, PATH_SIZE, "%s", path);
  return out;
}

static int is_tried(const base *b, const char *path) {
  return strncmp(path, b->below, strlen(b->below)) == 0;
}

static const char *last_word(const char *path) {
  const char *dot = strrchr(path, '.');
  return dot != NULL ? dot + 1 : path;
}

static void fail(const char *what, const char *path, const char *why) {
  fprintf(stderr, "\n  %s: %s: %s\n", path, what, why);
  CU_FAIL("a field is not as the table says");
}

/* --- tests --- */

static const char *wrong_value(field_kind kind) {
  switch (kind) {
  case VALUE_NUMBER:
  case VALUE_CHOICE:
  case VALUE_FLAG:
  case VALUE_LIST:
    return "wrongword";
  case VALUE_DIST:
    return "{distribution: wrongword}";
  case VALUE_TEXT:
    return "[[1], 2]";
  case VALUE_SECTION:
    return "[5]";
  }
  return "";
}

/* Read by sweeps only; lists whose refusal tells place and value; problems from a file. */
static int is_not_refused_by_name(const field *f) {
  static const char *const paths[] = {
      "contrasts",   "tune.lr",     "tune.seeds",      "dial.kl",
      "tune.fields", "training.lr", "world.task.path", "world.task.held_out_path"};
  for (size_t i = 0; i < sizeof paths / sizeof *paths; ++i)
    if (strcmp(f->path, paths[i]) == 0) return 1;
  if (strncmp(f->path, "sweep.", 6) == 0 || strncmp(f->path, "tune.halving", 12) == 0) return 1;
  return f->when[1].is != NULL && strcmp(f->when[1].is, "math") == 0;
}

/* 1 if the base may state the field: what stands above it is a map or not there. */
static int may_state(const base *b, const field *f) {
  char above[PATH_SIZE];
  snprintf(above, sizeof above, "%s", f->path);
  char *dot = strrchr(above, '.');
  if (!is_tried(b, f->path)) return 0;
  if (dot == NULL) return 1;
  *dot = '\0';
  cfg_doc *doc = make_doc(b, NULL);
  const cfg_node *node = cfg_find(cfg_root(doc), above);
  const int in_group = strcmp(above, "cluster.samplers") == 0;
  const int may = in_group ? node != NULL && cfg_kind_of(node) == CFG_LIST
                           : node == NULL || cfg_kind_of(node) == CFG_MAP;
  cfg_free(doc);
  return may;
}

static int names(const char *message, const char *path) {
  char above[PATH_SIZE];
  if (strstr(message, last_word(path)) != NULL) return 1;
  snprintf(above, sizeof above, "%s", path);
  char *dot = strrchr(above, '.');
  if (dot != NULL) *dot = '\0';
  return dot != NULL && strstr(message, last_word(above)) != NULL;
}

TEST(a_value_of_a_wrong_kind_is_refused_by_the_fields_name) {
  for (size_t i = 0; fields_at(i) != NULL; ++i) {
    const field *f = fields_at(i);
    char at[PATH_SIZE], assignment[TEXT_SIZE];
    int named = 0;
    if ((i > 0 && strcmp(f->path, fields_at(i - 1)->path) == 0) || is_not_refused_by_name(f))
      continue;
    snprintf(assignment, sizeof assignment, "%s=%s", in_recipe(f->path, at), wrong_value(f->kind));
    for (size_t k = 0; k < N_BASES && !named; ++k) {
      if (!may_state(&bases[k], f)) continue;
      const result r = try_base(&bases[k], assignment, 0);
      named = r.status != GL_OK && strstr(r.err.text, "unknown key") == NULL &&
              names(r.err.text, f->path);
    }
    if (!named) fail("no refusal names the field", f->path, assignment);
    CU_ASSERT(named);
  }
}

/* The keys of "…; it knows: a, b, c". */
static void check_known_keys(const char *section, const char *message) {
  const char *list = strstr(message, "it knows: ");
  char keys[TEXT_SIZE], path[PATH_SIZE], group[PATH_SIZE];
  snprintf(keys, sizeof keys, "%s", list + strlen("it knows: "));
  for (char *rest = NULL, *key = strtok_r(keys, ", \n", &rest); key != NULL;
       key = strtok_r(NULL, ", \n", &rest)) {
    snprintf(path, sizeof path, "%s%s%s", section, *section != '\0' ? "." : "", key);
    snprintf(group, sizeof group, "cluster.%s", key);
    const int of_group = strcmp(section, "cluster.samplers") == 0 && fields_named(group) != NULL;
    const bool is_include = strcmp(path, "include") == 0; /* replaced before fields are read */
    if (fields_named(path) == NULL && !of_group && !is_include)
      fail("a parser knows it, the table not", path, key);
  }
}

static size_t check_keys_of(const char *section) {
  char at[PATH_SIZE], inside[PATH_SIZE], assignment[TEXT_SIZE];
  size_t answered = 0;
  snprintf(inside, sizeof inside, "%s%szzzz", section, *section != '\0' ? "." : "");
  snprintf(assignment, sizeof assignment, "%s=1", in_recipe(inside, at));
  for (size_t k = 0; k < N_BASES; ++k) {
    cfg_doc *doc = make_doc(&bases[k], NULL);
    const cfg_node *node = cfg_find(cfg_root(doc), section);
    const int is_list = strcmp(section, "cluster.samplers") == 0;
    const int fitting = !is_tried(&bases[k], section) && *section != '\0' ? 0
                        : is_list ? node != NULL && cfg_kind_of(node) == CFG_LIST
                                  : node == NULL || cfg_kind_of(node) == CFG_MAP;
    cfg_free(doc);
    if (!fitting) continue;
    result r = try_base(&bases[k], assignment, 0);
    if (strstr(r.err.text, "unknown key 'zzzz'") == NULL) continue;
    ++answered;
    check_known_keys(section, r.err.text);
  }
  return answered;
}

TEST(every_key_that_a_parser_knows_is_a_field) {
  static const char *const maps[] = {"", "cluster.samplers", "world.rewards", "dial.kl"};
  for (size_t i = 0; i < sizeof maps / sizeof *maps; ++i)
    if (check_keys_of(maps[i]) == 0) fail("no parser was asked", maps[i], "its keys");
  for (size_t i = 0; fields_at(i) != NULL; ++i) {
    const field *f = fields_at(i);
    /* The fields of algorithms have a table of their own, an axis of a sweep is any path, and what
     * `tune` has below it is read by sweeps alone. */
    if (f->kind != VALUE_SECTION || strncmp(f->path, "algorithm", 9) == 0 ||
        strncmp(f->path, "sweep", 5) == 0 || strncmp(f->path, "tune", 4) == 0)
      continue;
    if (check_keys_of(f->path) == 0) fail("no parser was asked", f->path, "its keys");
  }
}
