/* Reads the section `world` of kind llm: model, task, warm-up, evaluation and its sets, backend;
 * and the folder of the initial checkpoint, which may depend on the seed. */
#include "llm/learner/run_spec.h"

#include "core/base/file.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/config/config.h"
#include "core/config/fields.h"
#include "llm/learner/llm_learner.h"
#include "llm/model/generate.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reports an error about a file that the section names, with the position of its name in the
 * recipe. */
static gl_status blame(const cfg_node *at, const gl_error *why, gl_error *err) {
  if (why->status == GL_ENOMEM) return gl_fail(err, GL_ENOMEM, "%s", why->text);
  return cfg_fail(at, err, "%s", why->text);
}

/* folder/name, malloc'd; NULL if out of memory. */
static char *path_in_folder(const char *folder, const char *name) {
  size_t size = strlen(folder) + strlen(name) + 2;
  char *path = malloc(size);
  if (path != NULL) snprintf(path, size, "%s/%s", folder, name);
  return path;
}

static int model_folder_has(const char *folder, const char *name) {
  char *path = path_in_folder(folder, name);
  int has = path != NULL && access(path, F_OK) == 0;
  free(path);
  return has;
}

/* --- warm-up and evaluation --- */

static gl_status read_warmup(warmup_spec *w, const cfg_node *node, gl_error *err) {
  optimizer_spec *o = &w->optimizer;
  cfg_reader r;
  cfg_begin(&r, node, "world.warmup", err);
  w->steps = field_count(&r, "steps");
  w->batch = field_count(&r, "batch");
  o->kind = OPTIMIZER_ADAMW;
  o->lr = field_real(&r, "lr");
  o->beta1 = field_real(&r, "beta1");
  o->beta2 = field_real(&r, "beta2");
  o->eps = field_real(&r, "eps");
  o->weight_decay = field_real(&r, "weight_decay");
  o->clip_grad_norm = field_real(&r, "clip_grad_norm");
  o->warmup = cfg_count(&r, "rise", w->steps / 20, 0, w->steps);
  o->decay = (lr_decay)field_choice(&r, "decay");
  w->until = cfg_child(&r, "until") != NULL ? field_real_or(&r, "until", 0) : NAN;
  w->check_every = field_count(&r, "check_every");
  w->cache = field_flag(&r, "cache");
  return cfg_end(&r);
}

/* The kinds of evaluation of a transformer; the first is the default. */
enum { LLM_EVALUATIONS = 2 };
static const evaluation_kind llm_evaluations[LLM_EVALUATIONS] = {EVALUATION_GREEDY,
                                                                 EVALUATION_SAMPLED};

static void read_evaluation(run_spec *s, cfg_reader *world) {
  eval_spec *e = &s->eval;
  cfg_reader r;
  if (world->status == GL_OK && cfg_has(world, "eval"))
    world->status = cfg_fail(cfg_find(world->map, "eval"), world->err,
                             "world.eval is called world.evaluation now, {kind: greedy | sampled, "
                             "temperature, top_k, top_p, prompts, samples}: what was samples: 0 is "
                             "kind: greedy, and other numbers of samples need kind: sampled");
  evaluation_read(&e->how, world, &r, llm_evaluations, LLM_EVALUATIONS);
  evaluation_sets_read(&s->sets, &r);
  e->prompts = field_count(&r, "prompts");
  e->samples = field_count(&r, "samples");
  if (r.status == GL_OK && e->how.kind == EVALUATION_GREEDY && cfg_has(&r, "samples"))
    r.status = cfg_fail(cfg_child(&r, "samples"), r.err,
                        "a greedy evaluation has one response to a problem; leave samples out, or "
                        "say kind: sampled");
  if (world->status == GL_OK) world->status = cfg_end(&r);
}

/* Limits the problems of an evaluation to the task's number of held-out problems. Errors: GL_EINPUT
 * (there are none). */
static gl_status bound_evaluation(eval_spec *e, const task *of, const cfg_node *at, gl_error *err) {
  size_t size = task_size(of, TASK_HELD_OUT);
  if (size < e->prompts) e->prompts = size;
  if (size == 0)
    return cfg_fail(at, err,
                    "the task has no held-out problems to evaluate on; give it some (task: "
                    "{held_out: 0.1, …})");
  return GL_OK;
}

/* --- the folder of a seed --- */

/* The text with {seed} replaced, malloc'd; NULL if out of memory. */
static char *with_seed(const char *text, uint64_t seed) {
  static const char hole[] = "{seed}";
  const size_t width = sizeof hole - 1;
  char *out = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&out, &size);
  if (to == NULL) return NULL;
  while (*text != '\0') {
    if (strncmp(text, hole, width) == 0) {
      fprintf(to, "%llu", (unsigned long long)seed);
      text += width;
    } else {
      fputc(*text++, to);
    }
  }
  if (fclose(to) == 0) return out;
  free(out);
  return NULL;
}

/* The folder that a node names, for a run with that seed; malloc'd, NULL if out of memory. */
static char *start_folder(const cfg_node *at, uint64_t seed) {
  char *text = with_seed(cfg_text(at), seed), *path = text != NULL ? cfg_locate(at, text) : NULL;
  free(text);
  return path;
}

gl_status llm_start_folder(char **out, const cfg_node *world, uint64_t seed, gl_error *err) {
  const cfg_node *kind = world != NULL ? cfg_find(world, "kind") : NULL;
  *out = NULL;
  if (kind == NULL || cfg_kind_of(kind) != CFG_SCALAR || !llm_is_kind(cfg_text(kind))) return GL_OK;
  const cfg_node *at = cfg_find(world, "model.path");
  if (at == NULL || cfg_kind_of(at) != CFG_SCALAR || *cfg_text(at) == '\0') return GL_OK;
  *out = start_folder(at, seed);
  return *out != NULL ? GL_OK : gl_fail_memory(err, "a model's folder");
}

/* --- its checksum --- */

/* 1 for files that define a model: its configuration, its tokenizer, its parameters in one file or
 * in shards. */
static int is_of_start(const struct dirent *entry) {
  static const char suffix[] = ".safetensors";
  const size_t n = strlen(entry->d_name), width = sizeof suffix - 1;
  return strcmp(entry->d_name, "config.json") == 0 ||
         strcmp(entry->d_name, "tokenizer.json") == 0 ||
         (n > width && strcmp(entry->d_name + n - width, suffix) == 0);
}

/* Adds a file's name, contents and size to the sum. */
static gl_status checksum_add_file(checksum *sum, const char *folder, const char *name, char *piece,
                                   size_t room, gl_error *err) {
  char *path = path_in_folder(folder, name);
  if (path == NULL) return gl_fail_memory(err, "a model's folder");
  FILE *from = fopen(path, "rb");
  gl_status status = from != NULL ? GL_OK : file_fail(path, "read", errno, err);
  uint64_t bytes = 0;
  checksum_add(sum, name, strlen(name) + 1);
  for (size_t got = 1; status == GL_OK && got > 0; bytes += got) {
    got = fread(piece, 1, room, from);
    checksum_add(sum, piece, got);
    if (ferror(from)) status = file_fail(path, "read", errno, err);
  }
  checksum_add(sum, &bytes, sizeof bytes);
  if (from != NULL) fclose(from);
  free(path);
  return status;
}

gl_status llm_start_checksum(const char *folder, char text[LLM_CHECKSUM_SIZE], gl_error *err) {
  enum { PIECE = 1 << 20 };
  struct dirent **entry = NULL;
  checksum sum;
  const int n = scandir(folder, &entry, is_of_start, alphasort);
  if (n < 0) return file_fail(folder, "read", errno, err);
  char *piece = malloc(PIECE);
  gl_status status = piece != NULL ? GL_OK : gl_fail_memory(err, "a model's checksum");
  checksum_begin(&sum);
  for (int i = 0; i < n; ++i) {
    if (status == GL_OK)
      status = checksum_add_file(&sum, folder, entry[i]->d_name, piece, PIECE, err);
    free(entry[i]);
  }
  free(entry);
  free(piece);
  snprintf(text, LLM_CHECKSUM_SIZE, "xxh3-%016llx", (unsigned long long)checksum_of(&sum));
  return status;
}

gl_status run_spec_check_start(const run_spec *s, gl_error *err) {
  char found[LLM_CHECKSUM_SIZE];
  if (s->folder_checksum == NULL) return GL_OK;
  gl_status status = llm_start_checksum(s->folder, found, err);
  if (status != GL_OK || strcmp(found, s->folder_checksum) == 0) return status;
  return gl_fail(err, GL_EINPUT,
                 "the model in %.300s has the checksum %s, and the recipe begins from %.60s "
                 "(world.model.checksum); put that model back, or begin a study of this one",
                 s->folder, found, s->folder_checksum);
}

/* --- its tokens --- */

/* The kind that a section `tokenizer` names, as text or under the key `kind`; "char" by default. */
static const char *builtin_kind(const cfg_node *section) {
  const cfg_node *kind = section;
  if (kind != NULL && cfg_kind_of(kind) == CFG_MAP) kind = cfg_find(kind, "kind");
  return kind != NULL && cfg_kind_of(kind) == CFG_SCALAR && !cfg_is_null(kind) ? cfg_text(kind)
                                                                               : "char";
}

/* Checks the letters of the char tokenizer against those of the task on which the model was
 * trained. */
static gl_status check_trained_letters(const run_spec *s, const cfg_node *trained, const char *file,
                                       const cfg_node *at, gl_error *err) {
  task *other = NULL;
  gl_error why = {0};
  gl_status status = trained != NULL ? task_new(&other, trained, 0, &why) : GL_OK;
  const char *was = other != NULL ? task_alphabet(other) : NULL, *is = task_alphabet(s->task);
  if (status == GL_ENOMEM)
    status = gl_fail(err, GL_ENOMEM, "%s", why.text);
  else if (status != GL_OK)
    status = cfg_fail(at, err, "%s", why.text);
  else if (was == NULL || is == NULL || strcmp(was, is) != 0)
    status = cfg_fail(at, err,
                      "this model was trained on the task %s, whose letters \"%.60s\" are its "
                      "tokens, and task %s has \"%.60s\"; take a model of this task, or tokenizer: "
                      "byte for both (%.300s)",
                      other != NULL ? task_kind(other) : "of no name", was != NULL ? was : "",
                      task_kind(s->task), is != NULL ? is : "", file);
  task_free(other);
  return status;
}

static gl_status check_trained_tokenizer(const run_spec *s, const cfg_doc *of, const char *file,
                                         const cfg_node *at, gl_error *err) {
  const cfg_node *world = cfg_find(cfg_root(of), "world");
  const char *was = builtin_kind(world != NULL ? cfg_find(world, "tokenizer") : NULL);
  const char *is = tokenizer_kind(s->tokenizer);
  if (strcmp(was, is) != 0)
    return cfg_fail(at, err,
                    "this model was trained with tokenizer: %.30s, and the recipe has %s (%.300s)",
                    was, is, file);
  return strcmp(is, "char") != 0 ? GL_OK
                                 : check_trained_letters(s, cfg_find(world, "task"), file, at, err);
}

/* Checks that the folder's model was trained with the recipe's tokens, if gepolab wrote it and its
 * tokenizer is not a file. Errors: GL_EINPUT at the position of `at`, which names the folder. */
static gl_status check_tokens_of_start(const run_spec *s, const cfg_node *at, gl_error *err) {
  gl_error why = {0};
  cfg_doc *of = NULL;
  char *file = path_in_folder(s->folder, "gepolab.json"),
       *own = path_in_folder(s->folder, "tokenizer.json");
  gl_status status = file != NULL && own != NULL ? GL_OK : gl_fail_memory(err, "a model's folder");
  if (status == GL_OK && access(own, F_OK) != 0 && access(file, F_OK) == 0) {
    status = cfg_load_file(&of, file, &why);
    if (status == GL_OK)
      status = check_trained_tokenizer(s, of, file, at, err);
    else
      status = status == GL_ENOMEM ? gl_fail(err, status, "%s", why.text)
                                   : cfg_fail(at, err, "%s", why.text);
  }
  cfg_free(of);
  free(own);
  free(file);
  return status;
}

/* --- the model --- */

/* Reads the configuration of a checkpoint's folder, and checks that its parameters exist. */
static gl_status read_folder(model_config *out, char **folder, const cfg_node *at, uint64_t seed,
                             gl_error *err) {
  gl_error why = {0};
  *folder = start_folder(at, seed);
  char *config = *folder != NULL ? path_in_folder(*folder, "config.json") : NULL;
  if (config == NULL) return gl_fail_memory(err, "a model's folder");
  gl_status status = GL_OK;
  if (access(*folder, F_OK) != 0)
    status = cfg_fail(at, err,
                      "there is no folder '%.300s'; it should hold config.json, model.safetensors "
                      "and tokenizer.json as Hugging Face writes them",
                      *folder);
  else if (model_config_load(out, config, &why) != GL_OK)
    status = blame(at, &why, err);
  else if (!model_folder_has(*folder, "model.safetensors") &&
           !model_folder_has(*folder, "model.safetensors.index.json"))
    status = cfg_fail(at, err,
                      "the folder '%.300s' has no parameters: neither model.safetensors nor "
                      "model.safetensors.index.json is there",
                      *folder);
  free(config);
  return status;
}

static gl_status read_path(run_spec *s, const cfg_node *section, uint64_t seed, gl_error *err) {
  cfg_reader r;
  cfg_begin(&r, section, "world.model", err);
  const cfg_node *at = cfg_child(&r, "path");
  const char *start = field_text(&r, "checksum");
  if (cfg_end(&r) != GL_OK) return r.status;
  if (cfg_kind_of(at) != CFG_SCALAR || *cfg_text(at) == '\0')
    return cfg_fail(at, err, "world.model.path must be the name of a folder");
  s->folder_checksum = start != NULL ? strdup(start) : NULL;
  if (start != NULL && s->folder_checksum == NULL) return gl_fail_memory(err, "a model's checksum");
  return read_folder(&s->model, &s->folder, at, seed, err);
}

static gl_status read_reference(run_spec *s, const cfg_node *node, uint64_t seed, gl_error *err) {
  s->has_reference = node != NULL && !cfg_is_null(node);
  if (!s->has_reference || strcmp(cfg_text(node), "initial") == 0) return GL_OK;
  if (cfg_kind_of(node) != CFG_SCALAR || *cfg_text(node) == '\0')
    return cfg_fail(node, err, "world.reference must be initial or the name of a folder");
  model_config other;
  return read_folder(&other, &s->reference, node, seed, err);
}

/* --- notes --- */

/* Appends a warning about the folder that a node names, if there is one. */
static void note_folder(const cfg_node *at, char text[LLM_NOTE_SIZE]) {
  gl_error ignored = {0}; /* llm_check() has reported it */
  model_config c;
  if (at == NULL || cfg_kind_of(at) != CFG_SCALAR || *cfg_text(at) == '\0') return;
  char *folder = cfg_locate(at, cfg_text(at));
  char *path = folder != NULL ? path_in_folder(folder, "config.json") : NULL;
  const size_t used = strlen(text);
  if (path != NULL && model_config_load(&c, path, &ignored) == GL_OK && c.unknown[0] != '\0')
    snprintf(text + used, LLM_NOTE_SIZE - used,
             "%s%.200s has keys that gepolab does not know and passes over: %s; if one of them "
             "changes what the model computes, results here differ from its own",
             used > 0 ? "; " : "", path, c.unknown);
  free(path);
  free(folder);
}

const char *llm_note(const cfg_node *world, char text[LLM_NOTE_SIZE]) {
  const cfg_node *kind = world != NULL ? cfg_find(world, "kind") : NULL;
  text[0] = '\0';
  if (kind == NULL || !llm_is_kind(cfg_text(kind))) return NULL;
  const cfg_node *reference = cfg_find(world, "reference");
  note_folder(cfg_find(world, "model.path"), text);
  if (reference != NULL && strcmp(cfg_text(reference), "initial") != 0)
    note_folder(reference, text);
  return text[0] != '\0' ? text : NULL;
}

/* --- evaluation sets --- */
/* An evaluation set has its own task, sampling distribution and maximum response length. It shares
 * the world's model, tokenizer and template. */

/* Refuses a maximum response length that does not fit the model's context behind the longest prompt
 * of the task in s, if the task has a longest prompt. */
static gl_status check_room(const run_spec *s, const cfg_node *at, gl_error *err) {
  const size_t prompt = (s->begin >= 0) + s->around + task_max_prompt(s->task);
  const size_t most = s->model.max_positions;
  if (s->max_tokens < most && prompt <= most - s->max_tokens) return GL_OK;
  return cfg_fail(
      at, err,
      "a prompt of up to %zu tokens and a response of up to %zu (max_tokens) do not fit "
      "into the model's context of %zu; enlarge model.context or lower max_tokens",
      prompt, s->max_tokens, most);
}

/* The kind in a task section; NULL: none. */
static const char *task_section_kind(const cfg_node *section) {
  const cfg_node *kind = cfg_find(section, "kind");
  return kind != NULL && cfg_kind_of(kind) == CFG_SCALAR ? cfg_text(kind) : NULL;
}

/* Makes a set's task: the world's with some fields replaced, or, if its kind differs, one with only
 * the set's fields. */
static gl_status make_task(set_spec *set, const run_spec *s, const cfg_node *world,
                           const cfg_node *node, uint64_t seed, gl_error *err) {
  const char *kind = task_section_kind(node);
  if (cfg_kind_of(node) != CFG_MAP)
    return cfg_fail(node, err,
                    "the task of an evaluation set is a map of the fields in which it differs from "
                    "the world's, as in task: {digits: 3}, or of another kind, task: {kind: …}");
  if (kind != NULL && strcmp(kind, task_kind(s->task)) != 0)
    return task_new(&set->task, node, seed, err);
  cfg_doc *doc = NULL;
  gl_status status = cfg_overlay(&doc, "world", world, "task", node, err);
  if (status != GL_OK) return status;
  status = task_new(&set->task, cfg_find(cfg_root(doc), "world.task"), seed, err);
  cfg_free(doc);
  return status;
}

/* Checks that every letter of a generated task's prompts and answers has a token. Free text is
 * checked when its problems are read. */
static gl_status check_set_letters(const run_spec *s, const char *name, const cfg_node *at,
                                   gl_error *err) {
  const char *alphabet = task_alphabet(s->task);
  int32_t *token = NULL;
  size_t n = 0;
  gl_error why = {0};
  if (alphabet == NULL) return GL_OK;
  gl_status status = tokenizer_encode(s->tokenizer, alphabet, strlen(alphabet), &token, &n, &why);
  free(token);
  if (status == GL_OK) return GL_OK;
  if (status != GL_EINPUT) return gl_fail(err, status, "%s", why.text);
  return cfg_fail(at, err,
                  "the tokenizer cannot write the evaluation set '%s', which uses the letters "
                  "\"%.100s\": %s; take another task for the set, or world.tokenizer: byte",
                  name, alphabet, why.text);
}

run_spec run_spec_of_set(const run_spec *s, size_t i) {
  run_spec own = *s;
  own.eval = s->set[i].eval;
  own.max_tokens = s->set[i].max_tokens;
  if (s->set[i].task != NULL) own.task = s->set[i].task;
  return own;
}

/* The maximum response length: the set's; else, if the set has a task, what the longest answer of
 * this task needs; else the world's. */
static size_t longest_response(const set_spec *set, const run_spec *s, size_t said) {
  if (said > 0) return said;
  if (set->task != NULL && task_max_answer(set->task) > 0) return task_max_answer(set->task) + 1;
  return s->max_tokens;
}

static gl_status read_evaluation_set(run_spec *s, size_t i, const cfg_node *world,
                                     const cfg_node *node, uint64_t seed, gl_error *err) {
  set_spec *set = &s->set[i];
  const char *name = s->sets.part[i * evaluation_sets_parts(&s->sets)].set;
  cfg_reader r;
  cfg_begin(&r, node, "world.evaluation.sets", err);
  cfg_string(&r, "name", NULL);
  evaluation_read_set(&set->eval.how, &s->eval.how, &r, llm_evaluations, LLM_EVALUATIONS);
  set->eval.prompts = field_count_or(&r, "prompts", s->eval.prompts);
  const int greedy = set->eval.how.kind == EVALUATION_GREEDY;
  set->eval.samples = field_count_or(&r, "samples", greedy ? 1 : s->eval.samples);
  if (r.status == GL_OK && greedy && cfg_has(&r, "samples"))
    return cfg_fail(cfg_child(&r, "samples"), err,
                    "a greedy evaluation has one response to a problem; leave samples out, or say "
                    "kind: sampled");
  const size_t said = field_count(&r, "max_tokens");
  const cfg_node *own = cfg_child(&r, "task");
  set->at = node != NULL ? node : cfg_find(world, "evaluation");
  if (cfg_end(&r) != GL_OK) return r.status;
  gl_status status = own != NULL ? make_task(set, s, world, own, seed, err) : GL_OK;
  if (status != GL_OK) return status;
  set->max_tokens = longest_response(set, s, said);
  const run_spec whole = run_spec_of_set(s, i);
  status = check_set_letters(&whole, name, set->at, err);
  if (status == GL_OK) status = check_room(&whole, set->at, err);
  if (status == GL_OK) status = bound_evaluation(&set->eval, whole.task, set->at, err);
  return status == GL_OK ? evaluation_sets_check(&s->sets, name, set->eval.prompts, set->at, err)
                         : status;
}

/* Reads the evaluation sets whose names are in s. Everything else in s must have been read.
 * Errors: GL_EINPUT, at the set's position (a task that the tokenizer cannot encode, problems that
 * do not fit the model's context). */
static gl_status read_sets(run_spec *s, const cfg_node *world, uint64_t seed, gl_error *err) {
  const cfg_node *list = cfg_find(world, "evaluation.sets");
  if (s->sets.n == 0) return GL_OK;
  s->set = calloc(s->sets.n, sizeof *s->set);
  if (s->set == NULL) return gl_fail_memory(err, "evaluation sets");
  gl_status status = GL_OK;
  for (size_t i = 0; i < s->sets.n && status == GL_OK; ++i)
    status = read_evaluation_set(s, i, world, list != NULL ? cfg_at(list, i) : NULL, seed, err);
  return status;
}

static void free_sets(run_spec *s) {
  for (size_t i = 0; s->set != NULL && i < s->sets.n; ++i) task_free(s->set[i].task);
  free(s->set);
  evaluation_sets_fini(&s->sets);
}

/* --- the whole section --- */

static const cfg_node *present(cfg_reader *r, const char *key) {
  const cfg_node *node = cfg_child(r, key);
  return node != NULL && cfg_is_null(node) ? NULL : node;
}

/* The sub-sections of the recipe; NULL if one is missing. */
typedef struct world_nodes {
  const cfg_node *world, *model, *tokenizer, *stop, *task, *warmup, *reference;
} world_nodes;

static gl_status read_model_and_language(run_spec *s, const world_nodes *n, const char *template,
                                         uint64_t seed, gl_error *err) {
  int described = n->model == NULL || cfg_find(n->model, "path") == NULL;
  const cfg_node *start = n->model != NULL ? cfg_find(n->model, "checksum") : NULL;
  if (described && start != NULL)
    return cfg_fail(start, err,
                    "world.model.checksum is that of a folder, and this model begins from none; "
                    "give world.model.path, or leave checksum out");
  gl_status status = described ? GL_OK : read_path(s, n->model, seed, err);
  if (status == GL_OK)
    status = run_spec_read_language(s, n->world, n->tokenizer, template, n->stop, err);
  if (status != GL_OK) return status;
  const size_t size = tokenizer_size(s->tokenizer);
  if (described) return model_config_read(&s->model, n->model, size, err);
  status = check_tokens_of_start(s, cfg_find(n->model, "path"), err);
  if (status != GL_OK || size <= s->model.vocabulary) return status;
  return cfg_fail(n->tokenizer != NULL ? n->tokenizer : n->model, err,
                  "the tokenizer has %zu tokens, the model only %zu; take the tokenizer that the "
                  "model was trained with",
                  size, s->model.vocabulary);
}

/* Computes the fingerprint from the settings that define the policy, not from those of speed or
 * backend. */
static gl_status take_fingerprint(run_spec *s, const cfg_node *world, const cfg_node *sampling,
                                  gl_error *err) {
  static const char *const keys[] = {"dtype",    "model", "tokenizer", "task",
                                     "template", "stop",  "max_tokens"};
  uint64_t hash = HASH_64_START;
  for (size_t i = 0; i <= sizeof keys / sizeof *keys; ++i) {
    const int last = i == sizeof keys / sizeof *keys;
    const cfg_node *node = last ? sampling : cfg_find(world, keys[i]);
    char *text = node != NULL ? cfg_canonical(node) : strdup("-");
    if (text == NULL) return gl_fail_memory(err, "a world's fingerprint");
    hash = hash_64(hash, text, strlen(text) + 1);
    free(text);
  }
  char *config = model_config_json(&s->model);
  if (config == NULL) return gl_fail_memory(err, "a world's fingerprint");
  s->fingerprint = hash_64(hash, config, strlen(config));
  free(config);
  return GL_OK;
}

/* Checks that backend, number type and the options of rounding fit together. */
static gl_status check_place(const run_spec *s, const cfg_node *world, gl_error *err) {
  const cfg_node *at = cfg_find(world, "dtype");
  if (s->backend == BACKEND_CPU && s->dtype == NUMBER_BF16)
    return cfg_fail(at, err, "dtype: bfloat16 needs backend: cuda; the CPU has float32");
  if (s->backend == BACKEND_CUDA && s->dtype == NUMBER_F64)
    return cfg_fail(at, err, "dtype: float64 needs backend: cpu; CUDA has float32 and bfloat16");
  if (s->rounds_stochastically && s->dtype != NUMBER_BF16)
    return cfg_fail(cfg_find(world, "stochastic_rounding"), err,
                    "stochastic_rounding is for the bfloat16 copy of the parameters, which only "
                    "dtype: bfloat16 has");
  at = cfg_find(world, "tf32");
  if (s->tf32 && s->dtype != NUMBER_F32)
    return cfg_fail(at, err, "tf32: true is for dtype: float32, whose products it rounds");
  if (s->tf32 && s->backend == BACKEND_CPU)
    return cfg_fail(at, err, "tf32: true needs a GPU; take it out, or say backend: auto or cuda");
  return GL_OK;
}

/* Sets the maximum response length, and checks that it fits behind the longest prompt, if the task
 * has one. */
static gl_status bound_response(run_spec *s, const world_nodes *n, gl_error *err) {
  if (s->max_tokens == 0 && task_max_answer(s->task) == 0)
    return cfg_fail(n->world, err,
                    "world.max_tokens must be given: task %s does not bound its answers",
                    task_kind(s->task));
  if (s->max_tokens == 0) s->max_tokens = task_max_answer(s->task) + 1;
  return check_room(s, n->model != NULL ? n->model : n->world, err);
}

static gl_status read_world(run_spec *s, const cfg_node *world, uint64_t seed, gl_error *err) {
  static const char *const kinds[] = {"llm"};
  cfg_reader r;
  cfg_begin(&r, world, "world", err);
  cfg_choice(&r, "kind", 0, kinds, 1);
  s->backend = (backend_kind)field_choice(&r, "backend");
  s->dtype = (number_type)field_choice(&r, "dtype");
  s->devices = field_count(&r, "devices");
  s->slots = field_count(&r, "slots");
  s->micro_batch = field_count(&r, "micro_batch");
  s->recompute = field_flag(&r, "recompute");
  s->rounds_stochastically = field_flag(&r, "stochastic_rounding");
  s->tf32 = field_flag(&r, "tf32");
  s->max_tokens = field_count(&r, "max_tokens");
  const char *template = cfg_string(&r, "template", NULL);
  const world_nodes n = {world,
                         present(&r, "model"),
                         present(&r, "tokenizer"),
                         present(&r, "stop"),
                         present(&r, "task"),
                         present(&r, "warmup"),
                         present(&r, "reference")};
  read_evaluation(s, &r);
  if (cfg_end(&r) != GL_OK) return r.status;
  if (n.task == NULL) return cfg_fail(world, err, "a world of kind llm needs a task: {kind: …}");
  gl_status status = check_place(s, world, err);
  if (status == GL_OK) status = task_new(&s->task, n.task, seed, err);
  if (status == GL_OK) status = read_model_and_language(s, &n, template, seed, err);
  if (status == GL_OK) status = bound_response(s, &n, err);
  if (status == GL_OK) status = read_warmup(&s->warmup, n.warmup, err);
  if (status == GL_OK) status = read_sets(s, world, seed, err);
  if (status == GL_OK) status = bound_evaluation(&s->eval, s->task, n.task, err);
  return status == GL_OK ? read_reference(s, n.reference, seed, err) : status;
}

/* 1 if importance weights need the sets of kept tokens: weights that replay them, or weights of
 * truncated distributions that the learner computes itself. */
static int weights_need_sets(const sampling_spec *dist) {
  return dist->weights == SAMPLING_REPLAY ||
         (dist->weights == SAMPLING_TRUNCATED && dist->logq == LOGQ_LEARNER);
}

/* Determines the shape of the sets of kept tokens, if distributions are truncated and weights need
 * the sets. For metrics only, they are recorded if the vocabulary is small, so that a set is a few
 * bits. */
static gl_status read_kept(run_spec *s, const cfg_node *sampling, gl_error *err) {
  const sampling_spec *dist = &s->sampling;
  if (!sampling_truncates(dist, s->model.vocabulary)) return GL_OK;
  s->kept_for_metrics = !weights_need_sets(dist);
  if (s->kept_for_metrics && s->model.vocabulary > KEPT_MOST_BITS) return GL_OK;
  return kept_shape_of(&s->kept, dist, s->model.vocabulary, sampling, err);
}

/* Checks a mixture. A response of the other policy is scored by a forward with the sampler's
 * parameters, in the learner's arithmetic. */
static gl_status check_mixture(const run_spec *s, const cfg_node *sampling, gl_error *err) {
  const sampling_behaviour *b = &s->sampling.behaviour;
  if (b->with == OTHER_NONE || (b->noise == 0 && !b->rounds_to_bfloat16)) return GL_OK;
  return cfg_fail(
      cfg_find(sampling, "behaviour"), err,
      "a transformer's behaviour_mixture needs the sampler's probabilities of responses that "
      "another policy drew, and behaviour.%s is only known where tokens are sampled; "
      "leave one of them away",
      b->noise > 0 ? "noise" : "precision");
}

gl_status run_spec_init(run_spec *s, const cfg_node *world, const cfg_node *sampling, uint64_t seed,
                        gl_error *err) {
  *s = (run_spec){.begin = -1};
  gl_status status = sampling_parse(&s->sampling, sampling, err);
  if (status == GL_OK) status = check_mixture(s, sampling, err);
  if (status == GL_OK) status = read_world(s, world, seed, err);
  if (status == GL_OK) status = read_kept(s, sampling, err);
  if (status == GL_OK) status = take_fingerprint(s, world, sampling, err);
  if (status != GL_OK) run_spec_fini(s);
  return status;
}

void run_spec_fini(run_spec *s) {
  free_sets(s);
  tokenizer_free(s->tokenizer);
  task_free(s->task);
  free(s->folder);
  free(s->folder_checksum);
  free(s->tokenizer_path);
  free(s->before);
  free(s->after);
  free(s->stop);
  free(s->reference);
  *s = (run_spec){0};
}

/* --- memory --- */

/* Computes the memory that a run needs on each device. If it is too much, the message names the
 * field to lower. */

static size_t larger_size(size_t a, size_t b) {
  return a > b ? a : b;
}

/* The maximum number of n items that one of `devices` devices gets. */
static size_t part_of_device(size_t n, size_t devices) {
  return (n + devices - 1) / devices;
}

/* The longest prompt in tokens; if the task has no limit, a prompt may fill the context. A template
 * is counted as one token per character, an upper bound. */
static size_t longest_prompt(const run_spec *s) {
  size_t most = s->model.max_positions - s->max_tokens, prompt = task_max_prompt(s->task);
  if (prompt == 0) return most;
  prompt += strlen(s->before) + strlen(s->after) + (s->begin >= 0);
  return prompt < most ? prompt : most;
}

/* The maximum length of a sequence: a prompt and its longest response, in training or in an
 * evaluation set. */
static size_t longest_sequence(const run_spec *s) {
  size_t most = longest_prompt(s) + s->max_tokens;
  for (size_t i = 0; i < s->sets.n; ++i) {
    const run_spec set = run_spec_of_set(s, i);
    most = larger_size(most, longest_prompt(&set) + set.max_tokens);
  }
  return most;
}

/* The maximum number of responses sampled side by side. */
static size_t most_responses(const run_spec *s, size_t responses) {
  size_t most = larger_size(responses, s->eval.prompts);
  for (size_t i = 0; i < s->sets.n; ++i) most = larger_size(most, s->set[i].eval.prompts);
  return most;
}

/* The number of sequences decoded side by side in the memory that the rest leaves. At least one, so
 * that a need that does not fit is reported. */
static gl_status need_slots(memory_need *n, const run_spec *s, const backend *b, size_t responses,
                            const memory_plan *rest, gl_error *err) {
  const size_t left = n->device_free > rest->total ? n->device_free - rest->total : 0;
  n->slots = s->slots;
  gl_status status = generate_slots(&n->slots, &s->model, b,
                                    part_of_device(most_responses(s, responses), s->devices),
                                    n->capacity, left, err);
  n->slots = larger_size(n->slots, 1);
  return status;
}

/* Decides what a forward before a backward stores. `rest` is the plan without logits, n->slots its
 * number of sequences. The logits, which save a product, are stored if they take at most a quarter
 * of what the rest leaves, so that most of it is for held versions, and no sequence is lost. */
static gl_status need_stores(memory_need *n, const run_spec *s, const backend *b, size_t responses,
                             memory_use use, const memory_plan *rest, gl_error *err) {
  memory_need with = *n;
  memory_plan plan, all;
  const size_t left = n->device_free > rest->total ? n->device_free - rest->total : 0;
  if (s->recompute || use.training_tokens == 0 || b->ops->logits_bytes == NULL) return GL_OK;
  use.stores = MODEL_STORES_LOGITS;
  gl_status status = model_memory(&plan, &s->model, b, &use, err);
  if (status == GL_OK) status = need_slots(&with, s, b, responses, &plan, err);
  use.slots = with.slots;
  use.capacity = n->capacity;
  if (status == GL_OK) status = model_memory(&all, &s->model, b, &use, err);
  if (status == GL_OK && with.slots == n->slots && plan.total - rest->total <= left / 4 &&
      all.total <= n->device_free)
    n->stores = MODEL_STORES_LOGITS;
  return status;
}

gl_status memory_need_of(memory_need *out, const run_spec *s, backend *b, size_t responses,
                         int trains, int compares, gl_error *err) {
  memory_plan alone, copied, rest, all;
  size_t sets; /* bytes of the sets of kept tokens of a micro-batch's targets */
  const model_config *c = &s->model;
  *out = (memory_need){.capacity = longest_sequence(s)};
  out->micro_batch = larger_size(s->micro_batch, out->capacity);
  b->ops->memory(b, &out->device_total, &out->device_free);
  out->devices = s->devices;
  if (b->kind == BACKEND_CPU) { /* its replicas share one memory */
    out->device_total /= s->devices;
    out->device_free /= s->devices;
  }
  const size_t tokens = trains ? out->micro_batch : 0;
  const size_t mixes = trains && s->sampling.behaviour.with == OTHER_INITIAL;
  const size_t copies = (compares ? 1 : 0) + mixes;
  memory_use use = {0};
  gl_status status = model_memory(&alone, c, b, &use, err);
  use.value_copies = 1;
  if (status == GL_OK) status = model_memory(&copied, c, b, &use, err);
  out->stores = s->recompute ? MODEL_STORES_INPUTS : MODEL_STORES_ACTIVATIONS;
  use = (memory_use){.stores = out->stores,
                     .training_tokens = tokens,
                     .training_targets = tokens,
                     .value_copies = copies};
  if (status == GL_OK) status = model_memory(&rest, c, b, &use, err);
  if (status == GL_OK) status = need_slots(out, s, b, responses, &rest, err);
  if (status == GL_OK) status = need_stores(out, s, b, responses, use, &rest, err);
  use.stores = out->stores;
  use.slots = out->slots;
  use.capacity = out->capacity;
  if (status == GL_OK) status = model_memory(&all, c, b, &use, err);
  if (status != GL_OK) return status;
  out->parameters = alone.parameters + alone.packed;
  out->one_version = copied.parameters - alone.parameters;
  out->reference = all.parameters - alone.parameters;
  out->gradients = all.gradients;
  out->moments = all.moments;
  /* Words per token: a kept set and its target's index, for metrics; and, unless only metrics need
   * sets, the kept set of the renormalised distribution. */
  const size_t words = s->kept.words, all_words = s->kept_for_metrics ? words + 1 : 2 * words + 1;
  if (__builtin_mul_overflow(tokens, (words > 0 ? all_words : 0) * sizeof(uint32_t), &sets))
    return gl_fail(err, GL_ENOMEM, "sets of kept tokens that fit no memory; lower micro_batch");
  out->activations = all.activations + sets;
  out->generation = all.cache + all.logits;
  out->scratch = all.scratch;
  out->total = all.total + sets;
  out->step = out->activations + out->generation + out->scratch;
  const size_t stays = out->total - out->step;
  if (s->slots == 0) out->step += out->step / (GENERATE_MARGIN - 1);
  if (out->device_free > stays + out->step)
    out->versions = (out->device_free - stays - out->step) / out->one_version;
  return GL_OK;
}

/* The advice for the message: what to change in the recipe. */
static const char *remedy(const memory_need *n, const run_spec *s) {
  const size_t stays = n->parameters + n->gradients + n->moments + n->reference;
  if (stays >= larger_size(n->activations, n->generation)) return "take a smaller model";
  if (n->activations < n->generation)
    return s->slots > 0 ? "lower world.slots or world.max_tokens, or take a smaller model"
                        : "lower world.max_tokens, or take a smaller model";
  return s->recompute
             ? "lower world.micro_batch or world.max_tokens, or take a smaller model"
             : "lower world.micro_batch, set world.recompute: true, or take a smaller model";
}

gl_status memory_need_check(const memory_need *n, const run_spec *s, const backend *b,
                            gl_error *err) {
  const double mib = 0x1p20;
  if (n->total <= n->device_free) return GL_OK;
  return gl_fail(err, GL_ENOMEM,
                 "the model needs %.1f MiB and %s has %.1f of its %.1f MiB free: %.1f for "
                 "parameters, gradients, moments and reference, %.1f for activations, %.1f for "
                 "keys, values and logits, %.1f for the backend itself; %s",
                 (double)n->total / mib, b->device, (double)n->device_free / mib,
                 (double)n->device_total / mib,
                 (double)(n->parameters + n->gradients + n->moments + n->reference) / mib,
                 (double)n->activations / mib, (double)n->generation / mib,
                 (double)n->scratch / mib, remedy(n, s));
}
