/* Makes world, backend and model from a recipe or a model's folder. Writes a model's folder:
 * parameters, tokenizer, and the world in which it was trained. */
#include "experiments/llm/session.h"

#include "core/base/display_text.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "experiments/base/memory.h"
#include "experiments/base/print_json.h"
#include "experiments/base/program.h"
#include "llm/backend/open/open.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns the path folder/name. */
static char *llm_folder_file(const char *folder, const char *name) {
  return must_textf("a file's name", "%s/%s", folder, name);
}

static const char world_file[] = "gepolab.json";
/* A placeholder for the task of a folder without one; every tokenizer can encode it. */
static const char no_task[] = "world.task={kind: parity}";
enum {
  MOST_TOKENS = 128
}; /* maximum response length, if neither the folder nor the user sets it */

/* --- recipes out of folders --- */

/* Makes {"value": text} a separate document, from which fields can be set. */
static gl_status text_doc(cfg_doc **out, const char *text, gl_error *err) {
  cJSON *json = json_new();
  json_put(json, "value %s", text);
  char *printed = must_have(cJSON_PrintUnformatted(json), "a recipe");
  cJSON_Delete(json);
  gl_status status = cfg_load_text(out, printed, strlen(printed), "command line", err);
  free(printed);
  return status;
}

static gl_status set_field_text(cfg_doc *doc, const char *path, const char *text, gl_error *err) {
  cfg_doc *value = NULL;
  gl_status status = text_doc(&value, text, err);
  if (status == GL_OK) status = cfg_set(doc, path, cfg_find(cfg_root(value), "value"), err);
  cfg_free(value);
  return status;
}

/* 1 if folder/name exists. */
static int file_is_in_folder(const char *folder, const char *name) {
  struct stat s;
  char *path = llm_folder_file(folder, name);
  const int has = stat(path, &s) == 0;
  free(path);
  return has;
}

/* Makes the recipe of a model's folder: from its gepolab.json, or without that file a recipe that
 * has only the model. */
static gl_status folder_doc(cfg_doc **out, const char *folder, gl_error *err) {
  static const char bare[] = "world: {kind: llm}\n";
  struct stat s;
  char *path = llm_folder_file(folder, world_file);
  gl_status status = stat(path, &s) == 0 ? cfg_load_file(out, path, err)
                                         : cfg_load_text(out, bare, sizeof bare - 1, folder, err);
  free(path);
  if (status == GL_OK) status = set_field_text(*out, "world.model.path", folder, err);
  if (status == GL_OK && cfg_find(cfg_root(*out), "name") == NULL)
    status = set_field_text(*out, "name", folder, err);
  return status;
}

/* Reads a model whose task is unknown. It must have its own tokenizer. */
static gl_status without_its_task(llm_session *s, const args *a, gl_error *err) {
  const cfg_node *root = cfg_root(s->doc);
  if (cfg_find(root, "world.tokenizer") == NULL && !file_is_in_folder(s->source, "tokenizer.json"))
    return gl_fail(
        err, GL_EINPUT,
        "the folder '%s' has neither tokenizer.json nor gepolab.json, so the meaning of "
        "its model's tokens is not known; name one with %sworld.tokenizer=byte or a path",
        s->source, a->command->words.overrides ? "" : "--set ");
  gl_status status = cfg_override(s->doc, no_task, err);
  if (status != GL_OK || cfg_find(root, "world.max_tokens") != NULL) return status;
  char assignment[64], *path = llm_folder_file(s->source, "config.json");
  model_config c;
  status = model_config_load(&c, path, err);
  free(path);
  if (status != GL_OK) return status;
  snprintf(assignment, sizeof assignment, "world.max_tokens=%zu",
           c.max_positions / 2 < MOST_TOKENS ? c.max_positions / 2 : MOST_TOKENS);
  return cfg_override(s->doc, assignment, err);
}

/* Checks that the files that gepolab.json names for its task exist. Files named on the command line
 * are checked later, as in any recipe. */
static gl_status check_task_files(const llm_session *s, gl_error *err) {
  const cfg_node *root = cfg_root(s->doc), *section = cfg_find(root, "world.task"),
                 *kind = cfg_find(section, "kind");
  const task_field *f = kind != NULL ? task_kind_fields(cfg_text(kind)) : NULL;
  for (; f != NULL && f->key != NULL; ++f) {
    const cfg_node *node = f->is_file ? cfg_find(section, f->key) : NULL;
    if (node == NULL || cfg_is_null(node) || cfg_source_path(node) == NULL) continue;
    char *path = must_have(cfg_locate(node, cfg_text(node)), "a file name");
    gl_status status = GL_OK;
    if (access(path, R_OK) != 0)
      status = cfg_fail(node, err,
                        "the model in '%.200s' was trained on problems from '%.300s', which cannot "
                        "be read: %s; if that file has moved, say where it is with "
                        "world.task.%s=FILE",
                        s->source, path, strerror(errno), f->key);
    free(path);
    if (status != GL_OK) return status;
  }
  return GL_OK;
}

static gl_status load_folder(llm_session *s, const args *a, int without_task, gl_error *err) {
  if (!file_is_in_folder(s->source, "config.json"))
    return gl_fail(err, GL_EINPUT,
                   "the folder '%s' has no config.json, so it is no model's folder; `gepolab llm "
                   "sft RECIPE -o FOLDER` makes one, and Hugging Face's have one",
                   s->source);
  gl_status status = folder_doc(&s->doc, s->source, err);
  for (size_t i = 0; i < a->n_overrides && status == GL_OK; ++i)
    status = cfg_override(s->doc, a->overrides[i], err);
  if (status == GL_OK) status = cfg_resolve(s->doc, err);
  if (status != GL_OK) return status;
  s->has_task = cfg_find(cfg_root(s->doc), "world.task") != NULL;
  if (s->has_task) return check_task_files(s, err);
  if (!without_task)
    return gl_fail(err, GL_EINPUT,
                   "the folder '%s' does not say which task its model is for; add one, such as "
                   "'world.task={kind: math, path: test.jsonl}' and world.max_tokens=1024",
                   s->source);
  return without_its_task(s, a, err);
}

/* --- the session --- */

static gl_status check_recipe_is_llm(const recipe *r, gl_error *err) {
  if (recipe_is_llm(r)) return GL_OK;
  const cfg_node *kind = r->world != NULL ? cfg_find(r->world, "kind") : NULL;
  return cfg_fail(kind != NULL ? kind : r->root, err,
                  "recipe '%s' has no transformer to work on: `gepolab llm` needs world: {kind: "
                  "llm, …}",
                  r->name);
}

gl_status llm_session_init(llm_session *s, args *a, size_t threads, int without_task,
                           gl_error *err) {
  *s = (llm_session){.source = a->words[0], .has_task = 1};
  gl_status status = file_is_folder(s->source)
                         ? load_folder(s, a, without_task, err)
                         : recipe_load(&s->doc, s->source, a->overrides, a->n_overrides, err);
  if (status == GL_OK) status = args_read_files(a, s->doc, err);
  if (status == GL_OK) status = recipe_read(&s->recipe, s->doc, err);
  s->recipe.threads = threads;
  if (status == GL_OK) status = check_recipe_is_llm(&s->recipe, err);
  if (status == GL_OK)
    status = run_spec_init(&s->spec, s->recipe.world, s->recipe.sampling, s->recipe.seed, err);
  s->has_spec = status == GL_OK;
  return status;
}

void llm_session_print(const llm_session *s) {
  char note[LLM_NOTE_SIZE];
  if (llm_note(s->recipe.world, note) != NULL)
    fprintf(stderr, "gepolab: note: %s\n", shown(note).text);
}

gl_status llm_session_override(llm_session *s, const char *assignment, gl_error *err) {
  const size_t threads = s->recipe.threads;
  gl_status status = cfg_override(s->doc, assignment, err);
  if (status == GL_OK) status = recipe_read(&s->recipe, s->doc, err);
  s->recipe.threads = threads;
  return status;
}

void llm_session_fini(llm_session *s) {
  learner_fini(&s->learner);
  model_free(s->own_model);
  if (s->own_backend != NULL) backend_free(s->own_backend);
  if (s->has_spec) run_spec_fini(&s->spec);
  cfg_free(s->doc);
  *s = (llm_session){0};
}

/* --- the model --- */

static gl_status need_backend(llm_session *s, gl_error *err) {
  if (s->backend != NULL) return GL_OK;
  gl_status status = backend_new_at(&s->own_backend, s->spec.backend, s->spec.dtype,
                                    (backend_place){0, s->spec.devices}, s->recipe.threads, err);
  if (status == GL_OK) s->own_backend->tf32 = s->spec.tf32;
  s->backend = s->own_backend;
  return status;
}

static gl_status need_of(memory_need *out, llm_session *s, int trains, gl_error *err) {
  const recipe *r = &s->recipe;
  const int compares = trains && (s->spec.has_reference || policy_needs_reference(&r->algorithm));
  gl_status status = need_backend(s, err);
  if (status != GL_OK) return status;
  return memory_need_of(out, &s->spec, s->backend, r->groups * r->group_size, trains, compares,
                        err);
}

gl_status llm_session_need(memory_need *out, llm_session *s, gl_error *err) {
  return need_of(out, s, 1, err);
}

static gl_status make_session_model(llm_session *s, gl_error *err) {
  memory_need need;
  gl_status status = need_of(&need, s, 0, err);
  if (status == GL_OK) status = memory_need_check(&need, &s->spec, s->backend, err);
  if (status == GL_OK)
    status = model_new(&s->own_model, &s->spec.model, s->backend, need.stores, err);
  if (status == GL_OK)
    status = s->spec.folder != NULL ? model_load(s->own_model, s->spec.folder, err)
                                    : model_initialise(s->own_model, s->recipe.seed, err);
  s->model = s->own_model;
  return status;
}

gl_status llm_session_model(llm_session *s, gl_error *err) {
  if (s->spec.warmup.steps > 0) return llm_session_learner(s, NULL, err);
  s->spec.devices = 1; /* a model that only generates uses the first device */
  return make_session_model(s, err);
}

gl_status llm_session_learner(llm_session *s, const llm_watch *watch, gl_error *err) {
  cache_place place;
  const learner_setup setup = recipe_setup(&s->recipe, cache_find(&place));
  gl_status status = llm_learner_new_watched(&s->learner, &setup, watch, err);
  if (status != GL_OK) return status;
  s->model = llm_learner_model(&s->learner);
  s->backend = model_backend(s->model);
  return GL_OK;
}

const char *llm_session_about(const llm_session *s, char text[LLM_ABOUT_SIZE]) {
  static const char *const types[] = {
      [NUMBER_F32] = "float32", [NUMBER_F64] = "float64", [NUMBER_BF16] = "bfloat16"};
  char times[48] = "";
  if (s->spec.devices > 1) snprintf(times, sizeof times, "%zu devices, each ", s->spec.devices);
  snprintf(text, LLM_ABOUT_SIZE, "%zu parameters, %s on %s%s",
           model_config_parameters(&s->spec.model), types[s->spec.dtype], times,
           s->backend->device);
  return text;
}

/* --- writing a model's folder --- */

/* Files that lie beside a tokenizer.json and that other programs read with it. */
#define FILES_BESIDE_TOKENIZER                                                                     \
  "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja",                       \
      "generation_config.json"

gl_status llm_folder_prepare(const char *folder, int *made, gl_error *err) {
  static const char *const written[] = {"model.safetensors", "config.json", "tokenizer.json",
                                        world_file, FILES_BESIDE_TOKENIZER};
  struct stat s;
  *made = mkdir(folder, 0777) == 0;
  if (!*made && errno != EEXIST) return file_fail(folder, "made", errno, err);
  if (stat(folder, &s) == 0 && !S_ISDIR(s.st_mode))
    return gl_fail(err, GL_EIO, "'%s' is a file; -o needs the name of a folder", folder);
  for (size_t i = 0; i < sizeof written / sizeof *written; ++i)
    if (file_is_in_folder(folder, written[i]))
      return gl_fail(err, GL_EINPUT,
                     "the folder '%s' has a file %s already, which would be overwritten; name "
                     "another folder with -o, or remove this one",
                     folder, written[i]);
  char *path = llm_folder_file(folder, "config.json");
  const gl_status status = file_check(path, err);
  free(path);
  return status;
}

void llm_folder_abandon(const char *folder, int made) {
  if (made) (void)rmdir(folder);
}

/* --- the tokenizer --- */

static gl_status copy_stream(FILE *from, FILE *to, const char *path, gl_error *err) {
  char piece[65536];
  size_t got = 0;
  while ((got = fread(piece, 1, sizeof piece, from)) > 0)
    if (fwrite(piece, 1, got, to) != got) return file_fail(path, "written", errno, err);
  return ferror(from) ? file_fail(path, "copied", errno, err) : GL_OK;
}

static gl_status copy_file(const char *source, const char *path, gl_error *err) {
  file_writer w;
  FILE *from = fopen(source, "rb");
  if (from == NULL) return file_fail(source, "read", errno, err);
  gl_status status = file_begin(&w, path, err);
  if (status == GL_OK) {
    status = copy_stream(from, w.stream, path, err);
    status = file_end(&w, status, err);
  }
  fclose(from);
  return status;
}

/* Copies a file into the folder under that name, unless it is there already. */
static gl_status copy_into(const char *folder, const char *name, const char *source,
                           gl_error *err) {
  char *path = llm_folder_file(folder, name);
  const gl_status status = file_same(source, path) ? GL_OK : copy_file(source, path, err);
  free(path);
  return status;
}

/* Copies the tokenizer and the files beside it, without which other programs may split texts
 * differently. */
static gl_status save_tokenizer(const char *folder, const run_spec *spec, gl_error *err) {
  static const char *const beside[] = {FILES_BESIDE_TOKENIZER};
  const char *from = spec->tokenizer_path;
  if (from == NULL) return GL_OK;
  const char *slash = strrchr(from, '/');
  const int n = slash != NULL ? (int)(slash - from) + 1 : 0; /* of its folder */
  gl_status status = copy_into(folder, "tokenizer.json", from, err);
  for (size_t i = 0; i < sizeof beside / sizeof *beside && status == GL_OK; ++i) {
    char *source = must_textf("a file's name", "%.*s%s", n, from, beside[i]);
    if (access(source, F_OK) == 0) status = copy_into(folder, beside[i], source, err);
    free(source);
  }
  return status;
}

/* --- gepolab.json --- */

/* Returns path with all links resolved. If that fails (the file may no longer exist), returns the
 * working directory followed by path. The caller frees it. */
static char *absolute(const char *path) {
  char *whole = realpath(path, NULL), here[PATH_MAX];
  if (whole != NULL) return whole;
  return *path == '/' || getcwd(here, sizeof here) == NULL ? must_copy(path, "a file's name")
                                                           : llm_folder_file(here, path);
}

/* Makes the names of the task's files absolute, so that they are found from every working
 * directory. In the recipe they may be relative. */
static void make_files_absolute(cJSON *json, const cfg_node *section, const task *t) {
  for (const task_field *f = task_kind_fields(task_kind(t)); f->key != NULL; ++f) {
    const cfg_node *node = f->is_file ? cfg_find(section, f->key) : NULL;
    if (node == NULL || cfg_is_null(node)) continue;
    char *found = must_have(cfg_locate(node, cfg_text(node)), "a file's name");
    char *path = absolute(found);
    cJSON *text = must_have(cJSON_CreateString(path), "a model's recipe");
    must_succeed(cJSON_ReplaceItemInObjectCaseSensitive(json, f->key, text), "a model's recipe");
    free(found);
    free(path);
  }
}

/* A recipe's section as JSON. */
static cJSON *section_json(const cfg_node *node) {
  char *text = must_have(cfg_canonical(node), "a model's recipe");
  cJSON *json = must_have(json_tree_of(text), "a model's recipe");
  free(text);
  return json;
}

/* The world without the fields that only its training needed. */
static cJSON *world_json(const cfg_node *world, const run_spec *spec) {
  cJSON *json = section_json(world);
  cJSON_DeleteItemFromObjectCaseSensitive(json, "model");
  cJSON_DeleteItemFromObjectCaseSensitive(json, "warmup");
  cJSON_DeleteItemFromObjectCaseSensitive(json, "reference");
  if (spec->tokenizer_path != NULL) cJSON_DeleteItemFromObjectCaseSensitive(json, "tokenizer");
  make_files_absolute(cJSON_GetObjectItemCaseSensitive(json, "task"), cfg_find(world, "task"),
                      spec->task);
  return json;
}

static char *recipe_text(const cfg_doc *doc, const run_spec *spec) {
  static const char *const others[] = {"name", "seed", "sampling"};
  const cfg_node *root = cfg_root(doc);
  cJSON *json = json_new();
  must_succeed(cJSON_AddItemToObject(json, "world", world_json(cfg_find(root, "world"), spec)),
               "a model's recipe");
  for (size_t i = 0; i < sizeof others / sizeof *others; ++i) {
    const cfg_node *node = cfg_find(root, others[i]);
    if (node == NULL || cfg_is_null(node)) continue;
    must_succeed(cJSON_AddItemToObject(json, others[i], section_json(node)), "a model's recipe");
  }
  char *text = must_have(cJSON_Print(json), "a model's recipe");
  cJSON_Delete(json);
  return text;
}

static gl_status save_recipe(const char *folder, const cfg_doc *doc, const run_spec *spec,
                             gl_error *err) {
  char *path = llm_folder_file(folder, "gepolab.json"), *text = recipe_text(doc, spec);
  file_writer w;
  gl_status status = file_begin(&w, path, err);
  if (status == GL_OK) {
    fprintf(w.stream, "%s\n", text);
    status = file_commit(&w, err);
  }
  free(path);
  free(text);
  return status;
}

gl_status llm_folder_save(const char *folder, const cfg_doc *doc, const run_spec *spec,
                          const model *m, gl_error *err) {
  const number_type type = spec->dtype;
  gl_status status = model_save(m, folder, type, 0, err);
  if (status == GL_OK) status = save_tokenizer(folder, spec, err);
  return status == GL_OK ? save_recipe(folder, doc, spec, err) : status;
}
