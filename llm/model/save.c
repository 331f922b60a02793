/* Writing a model's folder, as Hugging Face has it: config.json and tensors in one file or in
 * shards. Every file appears whole or not at all; what an older save left that would be read
 * instead is removed last. */
#include "core/base/json.h"
#include "llm/model/internal.h"
#include "llm/model/safetensors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct saved_tensor {
  const model_tensor *tensor;
  size_t shard;
} saved_tensor;

typedef struct saving {
  const model *m;
  const char *folder;
  tensor_type type;
  saved_tensor *tensor; /* by name */
  size_t n, n_shards, bytes;
} saving;

static int by_name(const void *a, const void *b) {
  return strcmp(((const saved_tensor *)a)->tensor->name, ((const saved_tensor *)b)->tensor->name);
}

/* A shard takes tensors in order of name as long as it does not grow beyond the limit. */
static gl_status plan(saving *s, size_t limit, gl_error *err) {
  const model *m = s->m;
  size_t filled = 0;
  s->n = m->n_tensors;
  s->tensor = calloc(s->n, sizeof *s->tensor);
  if (s->tensor == NULL) return gl_fail_memory(err, "a model's tensors");
  for (size_t t = 0; t < s->n; ++t) s->tensor[t].tensor = &m->tensor[t];
  qsort(s->tensor, s->n, sizeof *s->tensor, by_name);
  for (size_t t = 0; t < s->n; ++t) {
    const model_tensor *w = s->tensor[t].tensor;
    const size_t bytes = w->rows * w->columns * tensor_type_bytes(s->type);
    if (limit > 0 && filled > 0 && bytes > limit - (filled < limit ? filled : limit)) {
      ++s->n_shards;
      filled = 0;
    }
    s->tensor[t].shard = s->n_shards;
    filled += bytes;
    s->bytes += bytes;
  }
  ++s->n_shards;
  return GL_OK;
}

static void shard_name(const saving *s, size_t shard, char name[64]) {
  if (s->n_shards == 1)
    snprintf(name, 64, "%s", MODEL_FILE);
  else
    snprintf(name, 64, "model-%05zu-of-%05zu.safetensors", shard + 1, s->n_shards);
}

static gl_status write_tensor(const model *m, const model_tensor *t, safetensors_writer *w,
                              char *staging, gl_error *err) {
  const size_t n = t->rows * t->columns;
  double *value = (double *)(void *)(staging + MODEL_STAGING);
  gl_status status = GL_OK;
  for (size_t i = 0; i < n && status == GL_OK; i += MODEL_CHUNK) {
    const size_t k = n - i < MODEL_CHUNK ? n - i : MODEL_CHUNK;
    model_download(m, m->own.master, t->offset + i, k, value, staging);
    status = m->b->ops->status(m->b, err);
    if (status == GL_OK) status = safetensors_write_f64(w, value, k, err);
  }
  return status;
}

static gl_status write_shard(const saving *s, size_t shard, char *staging, gl_error *err) {
  char name[64], path[MODEL_PATH];
  size_t first = 0, n = 0;
  while (s->tensor[first].shard != shard) ++first;
  while (first + n < s->n && s->tensor[first + n].shard == shard) ++n;
  tensor_shape *shapes = calloc(n, sizeof *shapes);
  if (shapes == NULL) return gl_fail_memory(err, "a shard");
  for (size_t i = 0; i < n; ++i) {
    const model_tensor *t = s->tensor[first + i].tensor;
    const int vector = t->offset >= s->m->n_matrices;
    shapes[i] =
        (tensor_shape){t->name, vector ? 1 : 2, {vector ? t->columns : t->rows, t->columns}};
  }
  safetensors_writer w;
  shard_name(s, shard, name);
  gl_status status = model_join(path, s->folder, name, err);
  if (status == GL_OK) status = safetensors_write_begin(&w, path, s->type, shapes, n, err);
  free(shapes);
  if (status != GL_OK) return status;
  for (size_t i = 0; i < n && status == GL_OK; ++i)
    status = write_tensor(s->m, s->tensor[first + i].tensor, &w, staging, err);
  if (status == GL_OK) return safetensors_write_commit(&w, err);
  safetensors_write_abandon(&w);
  return status;
}

static gl_status write_text(const char *folder, const char *name, const char *text, gl_error *err) {
  char path[MODEL_PATH];
  file_writer w;
  if (text == NULL) return gl_fail_memory(err, name);
  gl_status status = model_join(path, folder, name, err);
  if (status == GL_OK) status = file_begin(&w, path, err);
  if (status != GL_OK) return status;
  fputs(text, w.stream);
  return file_commit(&w, err);
}

static char *index_text(const saving *s) {
  char name[64];
  cJSON *json = cJSON_CreateObject();
  cJSON *metadata = json != NULL ? cJSON_AddObjectToObject(json, "metadata") : NULL;
  cJSON *map = metadata != NULL ? cJSON_AddObjectToObject(json, "weight_map") : NULL;
  int good = map != NULL && json_add_number(metadata, "total_size", (double)s->bytes) != NULL;
  for (size_t t = 0; t < s->n && good; ++t) {
    shard_name(s, s->tensor[t].shard, name);
    good = json_add_string(map, s->tensor[t].tensor->name, name) != NULL;
  }
  char *text = good ? cJSON_Print(json) : NULL;
  cJSON_Delete(json);
  return text;
}

/* The file of the other kind, left from an earlier save, would be a second model in the folder. */
static gl_status remove_other(const saving *s, gl_error *err) {
  char path[MODEL_PATH];
  gl_status status = model_join(path, s->folder, s->n_shards == 1 ? MODEL_INDEX : MODEL_FILE, err);
  if (status == GL_OK && unlink(path) != 0 && errno != ENOENT)
    status = file_fail(path, "removed", errno, err);
  return status;
}

static gl_status write_all(const saving *s, gl_error *err) {
  char *staging = malloc(2 * (size_t)MODEL_STAGING);
  gl_status status = staging == NULL ? gl_fail_memory(err, "a model's tensors") : GL_OK;
  for (size_t i = 0; i < s->n_shards && status == GL_OK; ++i)
    status = write_shard(s, i, staging, err);
  free(staging);
  if (status == GL_OK && s->n_shards > 1) {
    char *text = index_text(s);
    status = write_text(s->folder, MODEL_INDEX, text, err);
    free(text);
  }
  if (status != GL_OK) return status;
  char *config = model_config_json(&s->m->c);
  status = write_text(s->folder, "config.json", config, err);
  free(config);
  return status == GL_OK ? remove_other(s, err) : status;
}

gl_status model_save(const model *m, const char *folder, number_type type, size_t shard_bytes,
                     gl_error *err) {
  saving s = {.m = m, .folder = folder};
  s.type = type == NUMBER_F64 ? TENSOR_F64 : type == NUMBER_BF16 ? TENSOR_BF16 : TENSOR_F32;
  if (mkdir(folder, 0777) != 0 && errno != EEXIST) return file_fail(folder, "made", errno, err);
  gl_status status = plan(&s, shard_bytes, err);
  if (status == GL_OK) status = write_all(&s, err);
  free(s.tensor);
  return status;
}
