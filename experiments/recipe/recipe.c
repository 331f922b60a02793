/* Loads a recipe, parses its top-level keys, and has every section checked by the module that owns
 * it before anything is run or written. */
#include "experiments/recipe/recipe.h"

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/utf8.h"
#include "core/config/fields.h"
#include "core/policy/algorithm.h"
#include "core/rl/optimizer_settings.h"
#include "core/rl/update.h"
#include "experiments/base/memory.h"
#include "experiments/base/program.h"
#include "experiments/recipe/designs.h"
#include "llm/learner/llm_learner.h"
#include "sim/cluster.h"
#include "toy/learner/toy_learner.h"
#include "toy/world/mdp.h"
#include "toy/world/toy_world.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- loading --- */

/* The file's name without folder and extension. */
static void name_from_path(const char *source, char *name, size_t size) {
  const char *slash = strrchr(source, '/');
  snprintf(name, size, "%s", slash != NULL ? slash + 1 : source);
  char *dot = strrchr(name, '.');
  if (dot != NULL && dot != name) *dot = '\0';
}

static gl_status no_such_recipe(const char *source, gl_error *err) {
  enum { MAX_NAMES = 256, NAME_SIZE = 64 };
  char text[MAX_NAMES][NAME_SIZE];
  const char *names[MAX_NAMES];
  size_t n = 0;
  for (size_t i = 0; resources_at(i) != NULL && n < MAX_NAMES; ++i) {
    size_t length = 0;
    const char *name = resources_recipe_name(resources_at(i), &length);
    if (name == NULL || length >= NAME_SIZE) continue;
    memcpy(text[n], name, length);
    text[n][length] = '\0';
    names[n] = text[n];
    ++n;
  }
  char hint[CFG_HINT_SIZE], named[NAME_MAX + 1];
  name_from_path(source, named, sizeof named);
  if (strcmp(source, "-") == 0)
    return gl_fail(err, GL_EINPUT, "a recipe on standard input is called /dev/stdin, not -");
  if (policy_algorithms_find(source) != NULL)
    return gl_fail(err, GL_EINPUT,
                   "%s is an algorithm and no recipe; give a recipe first, as in quickstart "
                   "algorithm=%s",
                   source, source);
  for (size_t i = 0; cluster_preset_at(i) != NULL; ++i)
    if (strcmp(cluster_preset_at(i)->name, source) == 0)
      return gl_fail(err, GL_EINPUT,
                     "%s is a preset of clusters and no recipe; give a recipe first, as in "
                     "quickstart cluster.preset=%s",
                     source, source);
  if (resources_cluster(source) != NULL)
    return gl_fail(err, GL_EINPUT,
                   "%s is a description of a cluster and no recipe; use `gepolab plan %s`", source,
                   source);
  const char *slash = strchr(source, '/');
  if (slash != NULL && slash != source && strchr(slash + 1, '/') == NULL && slash[1] != '\0' &&
      *cfg_hint(named, names, n, hint) == '\0' && strstr(slash, ".y") == NULL)
    return gl_fail(err, GL_EINPUT,
                   "%s:1:1: there is no such file or folder; a model of Hugging Face is downloaded "
                   "first, as with `hf download %s --local-dir %s`, and its folder named",
                   source, source, slash + 1);
  return gl_fail(
      err, GL_EINPUT,
      "%s:1:1: there is no such file and no embedded recipe of that name%s; `gepolab list "
      "recipes` lists those",
      source, cfg_hint(named, names, n, hint));
}

/* A file takes precedence over an embedded recipe of the same name only if it exists. */
static gl_status load_source(cfg_doc **out, const char *source, gl_error *err) {
  const resource *r = resources_recipe(source);
  if (file_is_database(source))
    return gl_fail(err, GL_EINPUT,
                   "%s is a study and no recipe; `gepolab analyze`, plot and report read it",
                   source);
  if (access(source, F_OK) == 0 && (r == NULL || strpbrk(source, "/.") != NULL))
    return cfg_load_file(out, source, err);
  if (r != NULL) return cfg_load_text(out, r->data, r->size, r->path, err);
  if (errno == ENOENT || errno == ENOTDIR) return no_such_recipe(source, err);
  return cfg_load_file(out, source, err);
}

/* Names a recipe without a name after its file. */
static gl_status ensure_name(cfg_doc *doc, const char *source, gl_error *err) {
  if (cfg_find(cfg_root(doc), "name") != NULL) return GL_OK;
  char name[NAME_MAX + 1];
  name_from_path(source, name, sizeof name);
  if (utf8_valid_prefix(name, strlen(name)) < strlen(name))
    return gl_fail(err, GL_EINPUT,
                   "%s:1:1: the recipe has the name of its file, which is not UTF-8; rename the "
                   "file, or give the recipe a name: name=NAME",
                   source);
  cJSON *json = must_have(cJSON_CreateObject(), "the recipe's name");
  must_succeed(cJSON_AddStringToObject(json, "name", name) != NULL, "the recipe's name");
  char *text = must_have(cJSON_PrintUnformatted(json), "the recipe's name");
  cfg_doc *named = NULL;
  gl_status status = cfg_load_text(&named, text, strlen(text), "file name", err);
  if (status == GL_OK) status = cfg_set(doc, "name", cfg_find(cfg_root(named), "name"), err);
  cfg_free(named);
  free(text);
  cJSON_Delete(json);
  return status;
}

static int find_embedded(void *self, const char *name, const char **text, size_t *size,
                         const char **shown) {
  (void)self;
  const resource *r = resources_recipe(name);
  if (r == NULL) return 0;
  *text = r->data;
  *size = r->size;
  *shown = r->path;
  return 1;
}

/* Included files are read before overrides are applied, so an override of `include` would have no
 * effect. */
static gl_status refuse_include(const cfg_doc *doc, gl_error *err) {
  const cfg_node *late = cfg_find(cfg_root(doc), "include");
  if (late == NULL || cfg_is_null(late)) return GL_OK;
  return cfg_fail(late, err,
                  "'include' is a line of a recipe's file and no override; write a file of two "
                  "lines, include: [one, other], and run that");
}

/* An override world.model.path=FOLDER replaces the recipe's whole section world.model, which
 * describes another model. */
static gl_status apply_override(cfg_doc *doc, const char *assignment, gl_error *err) {
  static const char path[] = "world.model.path=";
  const cfg_node *own = cfg_find(cfg_root(doc), "world.model");
  const bool replaces = strncmp(assignment, path, sizeof path - 1) == 0 && own != NULL &&
                        cfg_kind_of(own) == CFG_MAP && cfg_overridden(own) == NULL;
  gl_status status = replaces ? cfg_override(doc, "world.model=null", err) : GL_OK;
  return status == GL_OK ? cfg_override(doc, assignment, err) : status;
}

/* Replaces names of algorithms by their canonical spelling, so that `GSPO` and `gspo` are the same
 * cell of a study. */
static void spell_algorithm(cfg_doc *doc, const cfg_node *node) {
  if (node == NULL) return;
  if (cfg_kind_of(node) == CFG_LIST)
    for (size_t i = 0; i < cfg_size(node); ++i) spell_algorithm(doc, cfg_at(node, i));
  if (cfg_kind_of(node) == CFG_MAP) spell_algorithm(doc, cfg_find(node, "base"));
  if (cfg_kind_of(node) != CFG_SCALAR) return;
  const policy_algorithm *named = policy_algorithms_find(cfg_text(node));
  if (named != NULL) cfg_respell(doc, node, named->name);
}

static void spell_algorithms(cfg_doc *doc) {
  static const char *const axes[] = {"algorithm", "algorithm.base"};
  const cfg_node *sweep = cfg_find(cfg_root(doc), "sweep");
  spell_algorithm(doc, cfg_find(cfg_root(doc), "algorithm"));
  spell_algorithm(doc, cfg_find(cfg_root(doc), "algorithms"));
  for (size_t i = 0; i < 2 && sweep != NULL && cfg_kind_of(sweep) == CFG_MAP; ++i)
    spell_algorithm(doc, cfg_find(sweep, axes[i]));
}

/* Replaces the names of the user's own algorithms and presets by their fields. */
static gl_status expand_own(cfg_doc *doc, gl_error *err) {
  cfg_own *own = NULL;
  gl_status status = program_own(&own, err);
  if (status == GL_OK) status = cfg_own_expand(own, doc, err);
  cfg_own_free(own);
  return status;
}

/* Completes a document after loading, unless `status` is an error: reads included files, applies
 * overrides, and resolves units and ranges. */
static gl_status complete(cfg_doc **out, gl_status status, const char *source,
                          const char *const *overrides, size_t n_overrides, gl_error *err) {
  const cfg_library embedded = {.find = find_embedded};
  if (status == GL_OK) status = cfg_include(*out, &embedded, err);
  for (size_t i = 0; i < n_overrides && status == GL_OK; ++i)
    status = apply_override(*out, overrides[i], err);
  if (status == GL_OK) status = refuse_include(*out, err);
  if (status == GL_OK) status = cfg_resolve(*out, err);
  if (status == GL_OK) status = random_search_draw(*out, err);
  if (status == GL_OK) status = factorial_expand(*out, err);
  if (status == GL_OK) status = one_at_a_time_expand(*out, err);
  if (status == GL_OK) status = expand_own(*out, err);
  if (status == GL_OK) spell_algorithms(*out);
  if (status == GL_OK) status = ensure_name(*out, source, err);
  if (status != GL_OK) {
    cfg_free(*out);
    *out = NULL;
  }
  return status;
}

gl_status recipe_load(cfg_doc **out, const char *source, const char *const *overrides,
                      size_t n_overrides, gl_error *err) {
  *out = NULL;
  return complete(out, load_source(out, source, err), source, overrides, n_overrides, err);
}

static gl_status load_cluster(cfg_doc **out, const char *source, gl_error *err) {
  const resource *r = resources_cluster(source);
  if (r != NULL) return cfg_load_text(out, r->data, r->size, r->path, err);
  if (access(source, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR))
    return cfg_load_file(out, source, err);
  char text[256] = "";
  if (resources_recipe(source) != NULL)
    return gl_fail(
        err, GL_EINPUT,
        "%s is a recipe and no description of a cluster; use `gepolab run %s`, or one of "
        "the descriptions: `gepolab list recipes` lists both",
        source, source);
  for (size_t i = 0, n = 0, length = 0; resources_at(i) != NULL; ++i) {
    const char *name = resources_cluster_name(resources_at(i), &length);
    if (name != NULL)
      n += (size_t)snprintf(text + n, n < sizeof text ? sizeof text - n : 0, "%s%.*s",
                            n > 0 ? ", " : "", (int)length, name);
  }
  return gl_fail(err, GL_EINPUT,
                 "%s:1:1: there is no such file and no embedded description of that name; those "
                 "are %s",
                 source, text);
}

gl_status recipe_load_cluster(cfg_doc **out, const char *source, const char *const *overrides,
                              size_t n_overrides, gl_error *err) {
  *out = NULL;
  return complete(out, load_cluster(out, source, err), source, overrides, n_overrides, err);
}

gl_status recipe_load_text(cfg_doc **out, const char *text, const char *name,
                           const char *const *overrides, size_t n_overrides, gl_error *err) {
  *out = NULL;
  return complete(out, cfg_load_text(out, text, strlen(text), name, err), name, overrides,
                  n_overrides, err);
}

/* --- reading --- */

/* Refuses what would use a random number of weight noise or of random drops twice. */
static gl_status check_random(const recipe *r, const cfg_node *train, gl_error *err) {
  const bool drops = random_drops_any(&r->drops);
  const char *key = r->drops.negative > 0   ? "drop_negative"
                    : r->drops.positive > 0 ? "drop_positive"
                                            : "drop_equal";
  if (r->weight_noise == 0 && !drops) return GL_OK;
  if (r->weight_noise > 0 && drops)
    return cfg_fail(cfg_find(train, key), err,
                    "train: weight_noise and %s use the same random numbers, so they would depend "
                    "on each other; set one of them to 0",
                    key);
  if (r->minibatches > UPDATE_MOST_RANDOM / r->epochs)
    return cfg_fail(cfg_find(train, drops ? key : "weight_noise"), err,
                    "train: %zu minibatches and %zu epochs are more than the %d optimiser updates "
                    "of a step that have random numbers of their own for %s; lower minibatches or "
                    "epochs",
                    r->minibatches, r->epochs, UPDATE_MOST_RANDOM, drops ? key : "weight_noise");
  return GL_OK;
}

/* Replay is part of a transformer's learner only. */
static gl_status check_replay(const recipe *r, const cfg_node *train, gl_error *err) {
  if (r->replay.coef == 0 || r->world == NULL || recipe_is_llm(r)) return GL_OK;
  return cfg_fail(cfg_find(train, "replay"), err,
                  "train.replay is for a transformer, and this recipe has another world; give "
                  "coef: 0, or world: {kind: llm, …}");
}

static gl_status read_train(recipe *out, const cfg_node *train, gl_error *err) {
  cfg_reader r;
  cfg_begin(&r, train, "train", err);
  out->groups = field_count(&r, "groups");
  out->group_size = field_count(&r, "group_size");
  out->minibatches = field_count(&r, "minibatches");
  out->epochs = field_count(&r, "epochs");
  training_reward_read(&out->rewards, &r);
  out->weight_noise = field_real(&r, "weight_noise");
  out->drops.negative = field_real(&r, "drop_negative");
  out->drops.positive = field_real(&r, "drop_positive");
  out->drops.equal = field_real(&r, "drop_equal");
  group_filter_read(&out->filter, &r, out->groups, out->group_size);
  replay_read(&out->replay, &r);
  if (cfg_end(&r) != GL_OK) return GL_EINPUT;
  enum { MOST_RESPONSES = 1 << 26 };
  if (out->groups > MOST_RESPONSES / out->group_size)
    return cfg_fail(train, err, "train: a batch of %zu groups of %zu is more than %d responses",
                    out->groups, out->group_size, MOST_RESPONSES);
  gl_status status = check_random(out, train, err);
  return status == GL_OK ? check_replay(out, train, err) : status;
}

static gl_status read_checkpoint(recipe *out, const cfg_node *node, gl_error *err) {
  cfg_reader r;
  cfg_begin(&r, node, "checkpoint", err);
  if (cfg_has(&r, "every") && cfg_has(&r, "seconds"))
    return cfg_fail(cfg_find(node, "seconds"), err,
                    "checkpoint: give `every` (updates) or `seconds`, not both");
  out->wants_checkpoints = node != NULL;
  out->checkpoint.every = field_count(&r, "every");
  out->checkpoint.seconds = field_real(&r, "seconds");
  out->checkpoint.keep = field_count(&r, "keep");
  return cfg_end(&r);
}

static gl_status read_algorithm(recipe *out, const cfg_node *algorithm, gl_error *err) {
  if (algorithm != NULL) return policy_algorithm_parse(&out->algorithm, algorithm, err);
  const policy_algorithm *fallback = policy_algorithms_find("grpo");
  if (fallback == NULL) return gl_fail(err, GL_EINTERNAL, "the algorithm grpo is missing");
  out->algorithm = *fallback;
  return GL_OK;
}

/* Returns a section; NULL if it is missing or null, as after `sweep=null` on the command line. */
static const cfg_node *section(cfg_reader *r, const char *key) {
  const cfg_node *node = cfg_child(r, key);
  return node != NULL && cfg_is_null(node) ? NULL : node;
}

static gl_status must_be_map(const cfg_node *node, const char *key, gl_error *err) {
  if (node == NULL || cfg_kind_of(node) == CFG_MAP) return GL_OK;
  char own[FIELD_HINT_SIZE] = "";
  if (cfg_kind_of(node) == CFG_SCALAR) fields_in_section(key, cfg_text(node), own);
  return cfg_fail(node, err, "'%s' must be a map of keys to values; %s%s%s%s=null leaves it out",
                  key, *own != '\0' ? "write " : "", own, *own != '\0' ? "; " : "", key);
}

gl_status recipe_read(recipe *out, const cfg_doc *doc, gl_error *err) {
  return recipe_read_at(out, cfg_root(doc), err);
}

gl_status recipe_read_at(recipe *out, const cfg_node *root, gl_error *err) {
  *out = (recipe){.root = root};
  cfg_reader r;
  cfg_begin_at(&r, root, "", "recipe", err);
  out->name = cfg_string(&r, "name", "recipe");
  (void)field_text(&r, "description");
  out->seed = (uint64_t)field_integer(&r, "seed");
  out->steps = field_count(&r, "steps");
  out->eval_every = field_count(&r, "eval_every");
  out->world = section(&r, "world");
  out->optimizer = section(&r, "optimizer");
  out->sampling = section(&r, "sampling");
  out->cluster = section(&r, "cluster");
  out->sweep = section(&r, "sweep");
  out->tune = section(&r, "tune");
  (void)section(&r, "contrasts"); /* parsed by experiments/sweep/grid.h */
  out->train = section(&r, "train");
  const cfg_node *checkpoint = section(&r, "checkpoint");
  out->algorithm_at = section(&r, "algorithm");
  gl_status status = cfg_end(&r);
  const struct {
    const char *key;
    const cfg_node *node;
  } maps[] = {{"world", out->world}, {"optimizer", out->optimizer}, {"sampling", out->sampling},
              {"train", out->train}, {"cluster", out->cluster},     {"sweep", out->sweep},
              {"tune", out->tune},   {"checkpoint", checkpoint}};
  for (size_t i = 0; i < sizeof maps / sizeof maps[0] && status == GL_OK; ++i)
    status = must_be_map(maps[i].node, maps[i].key, err);
  if (status == GL_OK) status = read_train(out, out->train, err);
  if (status == GL_OK) status = read_checkpoint(out, checkpoint, err);
  if (status == GL_OK) status = read_algorithm(out, out->algorithm_at, err);
  return status;
}

/* --- the command that a recipe is meant for --- */

static bool has_any(const cfg_node *root, const char *const *keys) {
  while (*keys != NULL && cfg_find(root, *keys) == NULL) ++keys;
  return *keys != NULL;
}

static bool is_true(const cfg_node *node) {
  return node != NULL && strcmp(cfg_text(node), "true") == 0;
}

const char *recipe_command(const cfg_doc *doc) {
  static const char *const theory[] = {"outcomes", "vocabularies", "search_outcomes",
                                       "training.stalenesses", NULL},
                           *const bias[] = {"learner_probs", "sampler_probs",
                                            "dial",          "algorithms",
                                            "population",    "covariance",
                                            "budget",        "truncation",
                                            "training",      NULL},
                           *const learns[] = {"algorithm", "optimizer", NULL};
  const cfg_node *root = cfg_root(doc);
  if (cfg_kind_of(root) != CFG_MAP) return "run";
  if (has_any(root, theory)) return "lab theory";
  if (has_any(root, bias)) return "lab bias";
  if (cfg_find(root, "sweep.cluster.0.compare") != NULL) return "list published";
  if (has_any(root, (const char *const[]){"sweep", "tune", NULL})) return "sweep";
  if (has_any(root, learns)) return "run";
  return is_true(cfg_find(root, "cluster.coupled")) ? "lab selection" : "sim";
}

static bool is_of_lab(const char *command) {
  return strncmp(command, "lab ", 4) == 0 && strcmp(command, "lab selection") != 0;
}

gl_status recipe_say_command(const cfg_doc *doc, const char *command, gl_status status,
                             gl_error *err) {
  static const char *const runs[] = {"steps", "train", "optimizer", "cluster", "sweep", NULL};
  char text[sizeof err->text];
  if (status != GL_EINPUT || err == NULL || doc == NULL) return status;
  const char *own = recipe_command(doc);
  if (strcmp(own, command) == 0 || (!is_of_lab(own) && !is_of_lab(command))) return status;
  if (!is_of_lab(own) && !has_any(cfg_root(doc), runs)) return status;
  snprintf(text, sizeof text, "%s", err->text);
  gl_error_clear(err);
  return gl_fail(err, status, "this is a recipe for `gepolab %s`; as one for `gepolab %s`: %.800s",
                 own, command, text);
}

/* --- building from a recipe --- */

/* Lists the names of all trainable kinds of world, also as text for messages. */
enum { MOST_KINDS = 64, KINDS_TEXT = 512 };
static size_t list_kinds(const char *names[MOST_KINDS], char text[KINDS_TEXT]) {
  size_t n = 0, used = 0;
  while (n < MOST_KINDS - 1 && toy_kind_at(n, NULL) != NULL) {
    names[n] = toy_kind_at(n, NULL);
    ++n;
  }
  for (size_t k = 0; n < MOST_KINDS - 1 && mdp_kind_at(k, NULL) != NULL; ++k)
    names[n++] = mdp_kind_at(k, NULL);
  names[n++] = "llm";
  *text = '\0';
  for (size_t i = 0; i < n && used < KINDS_TEXT; ++i)
    used += (size_t)snprintf(text + used, KINDS_TEXT - used, "%s%s",
                             i == 0       ? ""
                             : i + 1 == n ? " or "
                                          : ", ",
                             names[i]);
  return n;
}

static gl_status find_kind(const recipe *r, const char **kind, gl_error *err) {
  const char *names[MOST_KINDS];
  char text[KINDS_TEXT], hint[CFG_HINT_SIZE];
  const size_t n = list_kinds(names, text);
  const cfg_node *node = cfg_find(r->world, "kind");
  if (node == NULL) return cfg_fail(r->world, err, "'world' must say its kind: %s", text);
  *kind = cfg_text(node);
  if (toy_is_kind(*kind) || llm_is_kind(*kind) || mdp_is_kind(*kind)) return GL_OK;
  char other[FIELD_HINT_SIZE];
  if (*fields_value_elsewhere("world.kind", *kind, other) != '\0')
    return cfg_fail(node, err, "there is no world of kind '%s'; write %s", *kind, other);
  return cfg_fail(node, err, "there is no world of kind '%s'; allowed are %s%s", *kind, text,
                  cfg_hint(*kind, names, n, hint));
}

bool recipe_is_llm(const recipe *r) {
  const cfg_node *kind = r->world != NULL ? cfg_find(r->world, "kind") : NULL;
  return kind != NULL && llm_is_kind(cfg_text(kind));
}

learner_setup recipe_setup(const recipe *r, const cache_place *place) {
  return (learner_setup){.seed = r->seed,
                         .algorithm = &r->algorithm,
                         .algorithm_at = r->algorithm_at,
                         .train = r->train,
                         .world = r->world,
                         .optimizer = r->optimizer,
                         .sampling = r->sampling,
                         .group_size = r->group_size,
                         .n_groups = r->groups,
                         .drawn_groups = group_filter_largest(&r->filter, r->groups),
                         .minibatches = r->minibatches,
                         .epochs = r->epochs,
                         .rewards = r->rewards,
                         .weight_noise = r->weight_noise,
                         .drops = r->drops,
                         .updates = r->steps,
                         .threads = r->threads,
                         .cache = place->folder[0] != '\0' ? place->folder : NULL,
                         .code = place->code};
}

gl_status recipe_learner(learner *out, const recipe *r, const learner_preparation *how,
                         gl_error *err) {
  const char *kind = NULL;
  cache_place place;
  gl_status status = find_kind(r, &kind, err);
  if (status != GL_OK) return status;
  learner_setup setup = recipe_setup(r, cache_find(&place));
  setup.preparation = how;
  return llm_is_kind(kind) ? llm_learner_new(out, &setup, err) : toy_learner_new(out, &setup, err);
}

/* --- checkpoints that a transformer starts from --- */

void recipe_starts_fini(recipe_starts *s) {
  for (size_t i = 0; i < s->n; ++i) {
    free(s->start[i].folder);
    free(s->start[i].checksum);
  }
  free(s->start);
  *s = (recipe_starts){0};
}

/* Finds the checksum of the model in a folder. `place`, where the recipe names the folder, is for
 * error messages. */
static gl_status find_start(const char **found, recipe_starts *s, const char *folder,
                            const cfg_node *place, gl_error *err) {
  for (size_t i = 0; i < s->n; ++i)
    if (strcmp(s->start[i].folder, folder) == 0) {
      *found = s->start[i].checksum;
      return GL_OK;
    }
  char sum[LLM_CHECKSUM_SIZE];
  gl_error why = {0};
  const gl_status status = llm_start_checksum(folder, sum, &why);
  if (status == GL_ENOMEM) return gl_fail(err, status, "%s", why.text);
  if (status != GL_OK) return cfg_fail(place, err, "%s", why.text);
  recipe_start *added = MUST_ADD(s->start, s->n, "the starts of a study");
  added->folder = must_copy(folder, "the starts of a study");
  added->checksum = must_copy(sum, "the starts of a study");
  *found = added->checksum;
  return GL_OK;
}

gl_status recipe_pin_start(cfg_doc *doc, const recipe *r, recipe_starts *known, gl_error *err) {
  char *folder, assignment[64 + LLM_CHECKSUM_SIZE];
  const char *found = NULL;
  gl_status status = llm_start_folder(&folder, r->world, r->seed, err);
  if (status != GL_OK || folder == NULL) return status;
  const cfg_node *stated = cfg_find(r->world, "model.checksum");
  status = find_start(&found, known, folder, cfg_find(r->world, "model.path"), err);
  if (status == GL_OK && stated != NULL && strcmp(cfg_text(stated), found) != 0)
    status = cfg_fail(stated, err,
                      "the model in %.300s has the checksum %s; put the model with this one back, "
                      "or take world.model.checksum out to begin from what is there",
                      folder, found);
  free(folder);
  if (status != GL_OK || stated != NULL) return status;
  snprintf(assignment, sizeof assignment, "world.model.checksum=%s", found);
  return cfg_override(doc, assignment, err);
}

/* --- cache of checked worlds --- */

void recipe_worlds_fini(recipe_worlds *w) {
  free(w->key);
  hash_table_fini(&w->place_of);
  *w = (recipe_worlds){0};
}

static bool is_world_key(const void *keys, uint64_t i, const void *key) {
  return strcmp(((const char(*)[HASH_HEX_SIZE])keys)[i], key) == 0;
}

static bool is_known(const recipe_worlds *w, const char key[HASH_HEX_SIZE]) {
  return hash_table_find(&w->place_of, hash_64_text(HASH_64_START, key), is_world_key, w->key,
                         key) != NULL;
}

static void add_known(recipe_worlds *w, const char key[HASH_HEX_SIZE]) {
  must_succeed(hash_table_add(&w->place_of, hash_64_text(HASH_64_START, key), w->n),
               "the worlds of a sweep");
  memcpy(MUST_ADD(w->key, w->n, "the worlds of a sweep"), key, HASH_HEX_SIZE);
}

static char *canonical_or_empty(const cfg_node *section) {
  return section != NULL ? must_have(cfg_canonical(section), "a section of a recipe")
                         : must_copy("", "a section of a recipe");
}

/* Hash of the sections that determine whether the recipe's world is valid and, if `sized`, how much
 * memory it takes. The seed is not included: it only determines which problems are sampled. */
static void world_key(const recipe *r, bool sized, char key[HASH_HEX_SIZE]) {
  char *world = canonical_or_empty(r->world), *sampling = canonical_or_empty(r->sampling);
  char size[64] = "";
  if (sized)
    snprintf(size, sizeof size, "%zu %d",
             group_filter_largest(&r->filter, r->groups) * r->group_size,
             policy_needs_reference(&r->algorithm));
  char *text = must_textf("a world's key", "%s\n%s\n%s", world, sampling, size);
  hash_hex(text, strlen(text), key);
  free(text);
  free(world);
  free(sampling);
}

/* Hash of the sections that determine whether the recipe's cluster is valid. */
static void cluster_key(const recipe *r, char key[HASH_HEX_SIZE]) {
  char *cluster = canonical_or_empty(r->cluster);
  char *text = must_textf("a cluster's key", "cluster %zu %d %s", r->groups * r->group_size,
                          r->filter.is_on, cluster);
  hash_hex(text, strlen(text), key);
  free(text);
  free(cluster);
}

/* --- checks --- */

/* Parses the other sections of a toy world's recipe as its learner does. */
static gl_status check_toy_sections(const learner_setup *setup, gl_error *err) {
  optimizer_spec optimizer;
  gl_status status = learner_setup_check(setup, err);
  return status == GL_OK ? optimizer_parse(&optimizer, setup->optimizer, "bandit", err) : status;
}

/* Builds a toy learner to check it; for a transformer, reads its files. The result does not depend
 * on the seed, which only determines what is sampled. */
static gl_status check_world(const learner_setup *setup, int is_llm, gl_error *err) {
  if (is_llm) return llm_check(setup, err);
  learner l = {0};
  gl_status status = toy_learner_new(&l, setup, err);
  learner_fini(&l);
  return status;
}

static gl_status recipe_check_learner(const recipe *r, recipe_worlds *known, gl_error *err) {
  const char *kind = NULL;
  char key[HASH_HEX_SIZE];
  cache_place place;
  gl_status status = find_kind(r, &kind, err);
  if (status != GL_OK) return status;
  const learner_setup setup = recipe_setup(r, cache_find(&place));
  const int is_llm = llm_is_kind(kind);
  if (known == NULL) return check_world(&setup, is_llm, err);
  world_key(r, false, key);
  if (is_known(known, key))
    return is_llm ? llm_check_sections(&setup, err) : check_toy_sections(&setup, err);
  status = check_world(&setup, is_llm, err);
  if (status == GL_OK) add_known(known, key);
  return status;
}

gl_status recipe_check_filter(const recipe *r, const cluster_spec *cluster, gl_error *err) {
  if (!r->filter.is_on) return GL_OK;
  const cfg_node *filter = cfg_find(r->train, "filter_groups");
  if (!cluster_is_coupled(cluster))
    return cfg_fail(filter, err,
                    "train.filter_groups draws until a batch is full, and how long that takes is "
                    "known only to a clock that runs beside the learner; give cluster: {coupled: "
                    "true}, or enable: false");
  if (cluster_unit_groups(cluster, 2) == 1)
    return cfg_fail(filter, err,
                    "train.filter_groups fills whole batches, and this cluster streams %s; give "
                    "cluster: {unit: batch}, or enable: false",
                    cluster_unit_names(cluster));
  return GL_OK;
}

static gl_status check_cluster(const recipe *r, recipe_worlds *known, gl_error *err) {
  char key[HASH_HEX_SIZE];
  cluster_spec *cluster = NULL;
  if (known != NULL) cluster_key(r, key);
  if (known != NULL && is_known(known, key)) return GL_OK;
  gl_status status = cluster_parse(&cluster, r->cluster, r->groups, r->group_size, err);
  if (status == GL_OK) status = recipe_check_filter(r, cluster, err);
  cluster_free(cluster);
  if (status == GL_OK && known != NULL) add_known(known, key);
  return status;
}

gl_status recipe_check(const recipe *r, recipe_worlds *known, gl_error *err) {
  if (r->world == NULL)
    return cfg_fail(r->root, err,
                    "recipe '%s' has no world, so nothing can be learned; add `world: {kind: "
                    "bandit | sequence | llm, …}`, or use `gepolab sim` for its clock alone",
                    r->name);
  gl_status status = check_cluster(r, known, err);
  return status == GL_OK ? recipe_check_learner(r, known, err) : status;
}

gl_status recipe_check_machine(const recipe *r, recipe_worlds *known, gl_error *err) {
  char key[HASH_HEX_SIZE];
  cache_place place;
  if (!recipe_is_llm(r)) return GL_OK;
  world_key(r, true, key);
  if (is_known(known, key)) return GL_OK;
  const learner_setup setup = recipe_setup(r, cache_find(&place));
  const gl_status status = llm_check_machine(&setup, err);
  if (status == GL_OK) add_known(known, key);
  return status;
}

double recipe_lr(const recipe *r) {
  double lr = NAN;
  const cfg_node *node = r->optimizer != NULL ? cfg_find(r->optimizer, "lr") : NULL;
  if (node != NULL && !cfg_is_null(node)) return cfg_number(node, &lr) ? lr : NAN;
  char room[FIELD_TEXT_SIZE];
  const char *text = fields_default("optimizer.lr", cfg_stated, r->root, room);
  return text != NULL ? strtod(text, NULL) : NAN;
}
