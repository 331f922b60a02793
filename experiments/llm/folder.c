/* Writes a model's folder: parameters, tokenizer and the world it was trained in. */
#include "experiments/llm/folder.h"

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/json_tree.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *llm_folder_file(const char *folder, const char *name) {
  size_t size = strlen(folder) + strlen(name) + 2;
  char *path = malloc(size);
  if (path != NULL) snprintf(path, size, "%s/%s", folder, name);
  return path;
}

gl_status llm_folder_prepare(const char *folder, int *made, gl_error *err) {
  struct stat s;
  *made = mkdir(folder, 0777) == 0;
  if (!*made && errno != EEXIST) return file_fail(folder, "make the folder", errno, err);
  if (stat(folder, &s) == 0 && !S_ISDIR(s.st_mode))
    return gl_fail(err, GL_EIO, "'%s' is a file; -o needs the name of a folder", folder);
  char *path = llm_folder_file(folder, "config.json");
  if (path == NULL) return gl_fail_memory(err, "a model's folder");
  file_writer trial;
  gl_status status = file_begin(&trial, path, err);
  if (status == GL_OK) file_abandon(&trial);
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
    if (fwrite(piece, 1, got, to) != got) return file_fail(path, "write", errno, err);
  return ferror(from) ? file_fail(path, "copy", errno, err) : GL_OK;
}

static gl_status copy_file(const char *source, const char *path, gl_error *err) {
  file_writer w;
  FILE *from = fopen(source, "rb");
  if (from == NULL) return file_fail(source, "read", errno, err);
  gl_status status = file_begin(&w, path, err);
  if (status == GL_OK) {
    status = copy_stream(from, w.stream, path, err);
    if (status == GL_OK)
      status = file_commit(&w, err);
    else
      file_abandon(&w);
  }
  fclose(from);
  return status;
}

static int same_file(const char *a, const char *b) {
  struct stat x, y;
  return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static gl_status save_tokenizer(const char *folder, const run_spec *spec, gl_error *err) {
  if (spec->tokenizer_path == NULL) return GL_OK;
  char *path = llm_folder_file(folder, "tokenizer.json");
  if (path == NULL) return gl_fail_memory(err, "a model's folder");
  gl_status status =
      same_file(spec->tokenizer_path, path) ? GL_OK : copy_file(spec->tokenizer_path, path, err);
  free(path);
  return status;
}

/* --- gepolab.json --- */

/* path with every link resolved; where that fails (it may be gone by now), the working directory in
 * front of it. malloc'd; NULL if memory is short. */
static char *absolute(const char *path) {
  char *whole = realpath(path, NULL), here[PATH_MAX];
  if (whole != NULL) return whole;
  return *path == '/' || getcwd(here, sizeof here) == NULL ? strdup(path)
                                                           : llm_folder_file(here, path);
}

/* Makes the names of the task's files absolute, wherever the recipe's were relative to, so that
 * they are found from any working directory. 0 if memory is short. */
static int make_files_absolute(cJSON *json, const cfg_node *section, const task *t) {
  int done = 1;
  for (const task_field *f = task_kind_fields(task_kind(t)); done && f->key != NULL; ++f) {
    const cfg_node *node = f->is_file ? cfg_find(section, f->key) : NULL;
    if (node == NULL || cfg_is_null(node)) continue;
    char *found = cfg_locate(node, cfg_text(node)), *path = found != NULL ? absolute(found) : NULL;
    cJSON *text = path != NULL ? cJSON_CreateString(path) : NULL;
    done = text != NULL && cJSON_ReplaceItemInObjectCaseSensitive(json, f->key, text);
    free(found);
    free(path);
  }
  return done;
}

/* A recipe's section as it would be written in JSON; NULL if memory is short. */
static cJSON *section_json(const cfg_node *node) {
  char *text = cfg_canonical(node);
  cJSON *json = json_tree_of(text);
  free(text);
  return json;
}

/* The world without what only its own training needed. */
static cJSON *world_json(const cfg_node *world, const run_spec *spec) {
  cJSON *json = section_json(world);
  if (json == NULL) return NULL;
  cJSON_DeleteItemFromObjectCaseSensitive(json, "model");
  cJSON_DeleteItemFromObjectCaseSensitive(json, "warmup");
  cJSON_DeleteItemFromObjectCaseSensitive(json, "reference");
  if (spec->tokenizer_path != NULL) cJSON_DeleteItemFromObjectCaseSensitive(json, "tokenizer");
  cJSON *section = cJSON_GetObjectItemCaseSensitive(json, "task");
  if (section != NULL && make_files_absolute(section, cfg_find(world, "task"), spec->task))
    return json;
  cJSON_Delete(json);
  return NULL;
}

static int copy_section(cJSON *to, const cfg_node *root, const char *key) {
  const cfg_node *node = cfg_find(root, key);
  if (node == NULL || cfg_is_null(node)) return 1;
  cJSON *json = section_json(node);
  if (json != NULL && cJSON_AddItemToObject(to, key, json)) return 1;
  cJSON_Delete(json);
  return 0;
}

static char *recipe_text(const cfg_doc *doc, const run_spec *spec) {
  const cfg_node *root = cfg_root(doc);
  cJSON *json = cJSON_CreateObject(), *world = world_json(cfg_find(root, "world"), spec);
  char *text = NULL;
  if (json == NULL || world == NULL || !cJSON_AddItemToObject(json, "world", world))
    cJSON_Delete(world);
  else if (copy_section(json, root, "name") && copy_section(json, root, "seed") &&
           copy_section(json, root, "sampling"))
    text = cJSON_Print(json);
  cJSON_Delete(json);
  return text;
}

static gl_status save_recipe(const char *folder, const cfg_doc *doc, const run_spec *spec,
                             gl_error *err) {
  char *path = llm_folder_file(folder, "gepolab.json"), *text = recipe_text(doc, spec);
  file_writer w;
  gl_status status = path != NULL && text != NULL ? file_begin(&w, path, err)
                                                  : gl_fail_memory(err, "a model's recipe");
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
