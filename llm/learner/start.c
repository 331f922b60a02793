/* What a run begins from: the folder of a checkpoint, which may be another one for every seed, its
 * checksum, and whether its tokens are those of the recipe. */
#include "core/base/file.h"
#include "core/base/hash.h"
#include "llm/learner/llm_learner.h"
#include "llm/learner/run_spec.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- the folder of a seed --- */

/* The text with {seed} replaced, malloc'd; NULL if memory is short. */
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

char *run_spec_folder(const cfg_node *at, uint64_t seed) {
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
  *out = run_spec_folder(at, seed);
  return *out != NULL ? GL_OK : gl_fail_memory(err, "a model's folder");
}

/* --- its checksum --- */

/* What a model is made of: its shape, its tokenizer and its parameters, in one file or in shards.
 */
static int is_of_start(const struct dirent *entry) {
  static const char suffix[] = ".safetensors";
  const size_t n = strlen(entry->d_name), width = sizeof suffix - 1;
  return strcmp(entry->d_name, "config.json") == 0 ||
         strcmp(entry->d_name, "tokenizer.json") == 0 ||
         (n > width && strcmp(entry->d_name + n - width, suffix) == 0);
}

static char *file_of(const char *folder, const char *name) {
  const size_t size = strlen(folder) + strlen(name) + 2;
  char *path = malloc(size);
  if (path != NULL) snprintf(path, size, "%s/%s", folder, name);
  return path;
}

static gl_status add_file(checksum *sum, const char *folder, const char *name, char *piece,
                          size_t room, gl_error *err) {
  char *path = file_of(folder, name);
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
  if (n < 0) return file_fail(folder, "read the folder", errno, err);
  char *piece = malloc(PIECE);
  gl_status status = piece != NULL ? GL_OK : gl_fail_memory(err, "a model's checksum");
  checksum_begin(&sum);
  for (int i = 0; i < n; ++i) {
    if (status == GL_OK) status = add_file(&sum, folder, entry[i]->d_name, piece, PIECE, err);
    free(entry[i]);
  }
  free(entry);
  free(piece);
  snprintf(text, LLM_CHECKSUM_SIZE, "xxh3-%016llx", (unsigned long long)checksum_of(&sum));
  return status;
}

gl_status run_spec_check_start(const run_spec *s, gl_error *err) {
  char found[LLM_CHECKSUM_SIZE];
  if (s->start == NULL) return GL_OK;
  gl_status status = llm_start_checksum(s->folder, found, err);
  if (status != GL_OK || strcmp(found, s->start) == 0) return status;
  return gl_fail(err, GL_EINPUT,
                 "the model in %.300s has the checksum %s, and the recipe begins from %.60s "
                 "(world.model.checksum); put that model back, or begin a study of this one",
                 s->folder, found, s->start);
}

/* --- its tokens --- */

/* The kind of a built-in tokenizer, as a section says it. */
static const char *kind_said(const cfg_node *section) {
  const cfg_node *kind = section;
  if (kind != NULL && cfg_kind_of(kind) == CFG_MAP) kind = cfg_find(kind, "kind");
  return kind != NULL && cfg_kind_of(kind) == CFG_SCALAR && !cfg_is_null(kind) ? cfg_text(kind)
                                                                               : "char";
}

/* The letters of char for the task that the model was trained on. */
static gl_status check_letters(const run_spec *s, const cfg_node *trained, const char *file,
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

static gl_status check_tokens(const run_spec *s, const cfg_doc *of, const char *file,
                              const cfg_node *at, gl_error *err) {
  const cfg_node *world = cfg_find(cfg_root(of), "world");
  const char *was = kind_said(world != NULL ? cfg_find(world, "tokenizer") : NULL);
  const char *is = tokenizer_kind(s->tokenizer);
  if (strcmp(was, is) != 0)
    return cfg_fail(at, err,
                    "this model was trained with tokenizer: %.30s, and the recipe has %s (%.300s)",
                    was, is, file);
  return strcmp(is, "char") != 0 ? GL_OK : check_letters(s, cfg_find(world, "task"), file, at, err);
}

gl_status run_spec_check_tokens(const run_spec *s, const cfg_node *at, gl_error *err) {
  gl_error why = {0};
  cfg_doc *of = NULL;
  char *file = file_of(s->folder, "gepolab.json"), *own = file_of(s->folder, "tokenizer.json");
  gl_status status = file != NULL && own != NULL ? GL_OK : gl_fail_memory(err, "a model's folder");
  if (status == GL_OK && access(own, F_OK) != 0 && access(file, F_OK) == 0) {
    status = cfg_load_file(&of, file, &why);
    if (status == GL_OK)
      status = check_tokens(s, of, file, at, err);
    else
      status = status == GL_ENOMEM ? gl_fail(err, status, "%s", why.text)
                                   : cfg_fail(at, err, "%s", why.text);
  }
  cfg_free(of);
  free(own);
  free(file);
  return status;
}
