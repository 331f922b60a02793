/* Reads and writes a model's folder in Hugging Face's layout: config.json, and tensors in one file
 * or in shards. */

#include "core/base/json.h"
#include "llm/model/internal.h"
#include "llm/model/safetensors.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODEL_FILE "model.safetensors"
#define MODEL_INDEX "model.safetensors.index.json"

enum { MAX_INDEX_BYTES = 8 << 20, MAX_SHARDS = 4096 };

static gl_status model_join(char path[MODEL_PATH], const char *folder, const char *name,
                            gl_error *err) {
  if (snprintf(path, MODEL_PATH, "%s/%s", folder, name) < MODEL_PATH) return GL_OK;
  return gl_fail(err, GL_EINPUT, "%.200s…: the path is too long", folder);
}

/* --- which file has which tensor --- */

/* The safetensors files of a folder, and the one that has each tensor. */
typedef struct shards {
  size_t n;
  char **name;
  safetensors **file;
  size_t *of; /* [tensors] index of the shard that has the tensor; SIZE_MAX: not found yet */
} shards;

static void shards_fini(shards *s) {
  for (size_t i = 0; i < s->n; ++i) {
    free(s->name[i]);
    safetensors_free(s->file[i]);
  }
  free(s->name);
  free(s->file);
  free(s->of);
}

static gl_status shards_init(shards *s, const model *m, gl_error *err) {
  *s = (shards){.name = calloc(MAX_SHARDS, sizeof *s->name),
                .file = calloc(MAX_SHARDS, sizeof(safetensors *)),
                .of = calloc(m->n_tensors, sizeof *s->of)};
  if (s->name == NULL || s->file == NULL || s->of == NULL)
    return gl_fail_memory(err, "a model's files");
  for (size_t t = 0; t < m->n_tensors; ++t) s->of[t] = SIZE_MAX;
  return GL_OK;
}

/* 1 if the name is a plain file name, without a folder. */
static int is_shard_name(const char *name) {
  const size_t n = strlen(name), suffix = strlen(".safetensors");
  return n > suffix && n < 256 && strcmp(name + n - suffix, ".safetensors") == 0 &&
         strpbrk(name, "/\\") == NULL && name[0] != '.';
}

static size_t find_tensor(const model *m, const char *name) {
  for (size_t t = 0; t < m->n_tensors; ++t)
    if (strcmp(m->tensor[t].name, name) == 0) return t;
  return SIZE_MAX;
}

/* The index of the shard named r->word, which is added if it is new; SIZE_MAX after an error. */
static size_t find_shard(shards *s, json_reader *r) {
  for (size_t i = s->n; i-- > 0;)
    if (strcmp(s->name[i], r->word) == 0) return i;
  if (s->n == MAX_SHARDS)
    json_fail(r, "more than %d shards", (int)MAX_SHARDS);
  else if (!is_shard_name(r->word))
    json_fail(r, "\"%.100s\" is no file name a shard may have", r->word);
  else if ((s->name[s->n] = strdup(r->word)) != NULL)
    return s->n++;
  else
    r->status = gl_fail_memory(r->err, "a shard's name");
  return SIZE_MAX;
}

static void read_weight_map(shards *s, const model *m, json_reader *r) {
  json_enter(r, '{');
  while (json_member(r)) {
    const size_t t = find_tensor(m, r->word);
    if (t != SIZE_MAX && s->of[t] != SIZE_MAX) json_fail(r, "%.100s is there twice", r->word);
    json_string(r);
    if (r->status != GL_OK) return;
    const size_t shard = find_shard(s, r);
    if (t != SIZE_MAX) s->of[t] = shard;
  }
}

static gl_status parse_index(shards *s, const model *m, const char *text, size_t size,
                             const char *path, gl_error *err) {
  int found = 0;
  json_reader r;
  json_begin(&r, text, size, path, err);
  json_enter(&r, '{');
  while (json_member(&r)) {
    if (strcmp(r.word, "weight_map") != 0)
      json_skip(&r);
    else if (found++)
      json_fail(&r, "weight_map is given twice");
    else
      read_weight_map(s, m, &r);
  }
  if (!found) json_fail(&r, "there is no weight_map");
  return json_end(&r);
}

static gl_status read_index(shards *s, const model *m, const char *path, gl_error *err) {
  char *text = NULL;
  size_t size = 0;
  gl_status status = model_read_text(&text, &size, path, MAX_INDEX_BYTES, err);
  if (status == GL_OK) status = parse_index(s, m, text, size, path, err);
  free(text);
  return status;
}

gl_status model_index_check(const model *m, const char *text, size_t size, const char *path,
                            gl_error *err) {
  shards s;
  gl_status status = shards_init(&s, m, err);
  if (status == GL_OK) status = parse_index(&s, m, text, size, path, err);
  for (size_t i = 0; i < s.n && status == GL_OK; ++i)
    if (!is_shard_name(s.name[i]))
      status = gl_fail(err, GL_EINTERNAL, "\"%.100s\" was taken for a shard", s.name[i]);
  shards_fini(&s);
  return status;
}

/* Lists the files with the tensors: model.safetensors if it exists, else the shards of the index.
 */
static gl_status find_files(shards *s, const model *m, const char *folder, gl_error *err) {
  char path[MODEL_PATH];
  gl_status status = model_join(path, folder, MODEL_FILE, err);
  if (status != GL_OK) return status;
  if (access(path, F_OK) == 0) {
    s->name[0] = strdup(MODEL_FILE);
    if (s->name[0] == NULL) return gl_fail_memory(err, "a file's name");
    s->n = 1;
    for (size_t t = 0; t < m->n_tensors; ++t) s->of[t] = 0;
    return GL_OK;
  }
  status = model_join(path, folder, MODEL_INDEX, err);
  if (status != GL_OK) return status;
  if (access(path, F_OK) != 0)
    return gl_fail(err, GL_EINPUT, "%.400s: has neither %s nor %s; is it a model's folder?", folder,
                   MODEL_FILE, MODEL_INDEX);
  return read_index(s, m, path, err);
}

/* --- reading --- */

static int is_of_model(const model *m, const char *name) {
  const size_t n = strlen(name);
  static const char angles[] =
      "rotary_emb.inv_freq"; /* present in old files; the config has theta */
  if (m->c.tied && strcmp(name, "lm_head.weight") == 0) return 1; /* a copy of the embedding */
  if (n > sizeof angles && strcmp(name + n - (sizeof angles - 1), angles) == 0) return 1;
  return find_tensor(m, name) != SIZE_MAX;
}

static gl_status check_tensor(const safetensors *file, const model *m, const model_tensor *want,
                              gl_error *err) {
  const tensor_entry *t = safetensors_find(file, want->name);
  const char *path = safetensors_path(file);
  if (t == NULL)
    return gl_fail(err, GL_EINPUT, "%.300s: there is no tensor %s, which the model has", path,
                   want->name);
  if (t->type == TENSOR_OTHER)
    return gl_fail(err, GL_EINPUT,
                   "%.300s: tensor %s has type %s; F32, F16, BF16 and F64 can be read", path,
                   want->name, t->type_name);
  const int vector = want->offset >= m->n_matrices;
  if (vector ? t->rank == 1 && t->shape[0] == want->columns
             : t->rank == 2 && t->shape[0] == want->rows && t->shape[1] == want->columns)
    return GL_OK;
  return gl_fail(
      err, GL_EINPUT,
      "%.300s: tensor %s has %zu dimension%s, the first %zu, and %zu elements; the model "
      "(see config.json) needs %zu x %zu",
      path, want->name, t->rank, t->rank == 1 ? "" : "s", t->rank > 0 ? t->shape[0] : 1,
      t->elements, want->rows, want->columns);
}

/* Opens every shard and checks all tensors before any value is read. */
static gl_status check_files(shards *s, const model *m, const char *folder, gl_error *err) {
  char path[MODEL_PATH];
  gl_status status = GL_OK;
  for (size_t i = 0; i < s->n && status == GL_OK; ++i) {
    status = model_join(path, folder, s->name[i], err);
    if (status == GL_OK) status = safetensors_open(&s->file[i], path, err);
    const tensor_entry *t;
    for (size_t k = 0; status == GL_OK && (t = safetensors_at(s->file[i], k)) != NULL; ++k)
      if (!is_of_model(m, t->name))
        status =
            gl_fail(err, GL_EINPUT, "%.300s: tensor %.100s is none of a %s with this config.json",
                    path, t->name, model_traits_of(&m->c)->architecture);
  }
  for (size_t t = 0; t < m->n_tensors && status == GL_OK; ++t)
    status = s->of[t] == SIZE_MAX
                 ? gl_fail(err, GL_EINPUT, "%.300s: %s does not say where tensor %s is", folder,
                           MODEL_INDEX, m->tensor[t].name)
                 : check_tensor(s->file[s->of[t]], m, &m->tensor[t], err);
  return status;
}

/* The largest finite magnitude of the type in which a forward reads parameters. */
static double greatest_of(number_type type) {
  switch (type) {
  case NUMBER_F64:
    return DBL_MAX;
  case NUMBER_BF16:
    return 0x1.fep127;
  case NUMBER_F32:
    break;
  }
  return FLT_MAX;
}

/* Refuses a weight that is not finite. One such weight would make every logit NaN, and every answer
 * wrong. */
static gl_status refuse_number(const safetensors *file, const model_tensor *t, size_t at,
                               double value, number_type type, gl_error *err) {
  static const char *const types[] = {
      [NUMBER_F32] = "float32", [NUMBER_F64] = "float64", [NUMBER_BF16] = "bfloat16"};
  char why[64] = "";
  if (isfinite(value)) snprintf(why, sizeof why, ", beyond the largest number of %s", types[type]);
  return gl_fail(err, GL_EINPUT,
                 "%.300s: tensor %s holds %g at [%zu, %zu]%s; the file is damaged or its training "
                 "diverged, so take an earlier checkpoint",
                 safetensors_path(file), t->name, value, at / t->columns, at % t->columns, why);
}

static gl_status check_numbers(const safetensors *file, const model_tensor *t, size_t first,
                               const double *value, size_t n, number_type type, gl_error *err) {
  const double greatest = greatest_of(type);
  for (size_t i = 0; i < n; ++i)
    if (!(fabs(value[i]) <= greatest))
      return refuse_number(file, t, first + i, value[i], type, err);
  return GL_OK;
}

static gl_status load_tensors(const shards *s, const model *m, gl_error *err) {
  char *staging = malloc(2 * (size_t)MODEL_STAGING);
  gl_status status = GL_OK;
  if (staging == NULL) return gl_fail_memory(err, "a model's tensors");
  double *value = (double *)(void *)(staging + MODEL_STAGING);
  for (size_t t = 0; t < m->n_tensors; ++t) {
    const model_tensor *tensor = &m->tensor[t];
    const safetensors *file = s->file[s->of[t]];
    const tensor_entry *entry = safetensors_find(file, tensor->name);
    const size_t n = tensor->rows * tensor->columns;
    for (size_t i = 0; i < n && status == GL_OK; i += MODEL_CHUNK) {
      const size_t k = n - i < MODEL_CHUNK ? n - i : MODEL_CHUNK;
      status = safetensors_read_f64(file, entry, i, k, value, err);
      if (status == GL_OK) status = check_numbers(file, tensor, i, value, k, m->b->type, err);
      if (status == GL_OK) model_upload(m, m->own.master, tensor->offset + i, k, value, staging);
    }
  }
  free(staging);
  return status;
}

/* Compares the settings that determine parameters and arithmetic. Context length and special tokens
 * may differ. */
static gl_status must_match(const model_config *expected, const model_config *file,
                            const char *path, gl_error *err) {
  const struct {
    const char *key;
    double expected, file;
  } pairs[] = {
      {"vocab_size", (double)expected->vocabulary, (double)file->vocabulary},
      {"hidden_size", (double)expected->hidden, (double)file->hidden},
      {"intermediate_size", (double)expected->intermediate, (double)file->intermediate},
      {"num_hidden_layers", (double)expected->layers, (double)file->layers},
      {"num_attention_heads", (double)expected->heads, (double)file->heads},
      {"num_key_value_heads", (double)expected->kv_heads, (double)file->kv_heads},
      {"head_dim", (double)expected->head_dim, (double)file->head_dim},
      {"tie_word_embeddings", expected->tied, file->tied},
      {"rms_norm_eps", expected->rms_eps, file->rms_eps},
      {"rope_theta", expected->rope_theta, file->rope_theta},
      {"rope_scaling's factor", expected->scaling.factor, file->scaling.factor},
      {"low_freq_factor", expected->scaling.low, file->scaling.low},
      {"high_freq_factor", expected->scaling.high, file->scaling.high},
      {"original_max_position_embeddings", expected->scaling.positions, file->scaling.positions},
  };
  if (expected->type != file->type)
    return gl_fail(err, GL_EINPUT, "%.300s: model_type is %s, but this model is a %s", path,
                   model_traits_of(file)->word, model_traits_of(expected)->word);
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; ++i)
    if (pairs[i].expected != pairs[i].file)
      return gl_fail(err, GL_EINPUT, "%.300s: %s is %g, but this model has %g", path, pairs[i].key,
                     pairs[i].file, pairs[i].expected);
  return GL_OK;
}

gl_status model_load(model *m, const char *folder, gl_error *err) {
  char path[MODEL_PATH];
  model_config there;
  shards s;
  gl_status status = model_join(path, folder, "config.json", err);
  if (status == GL_OK) status = model_config_load(&there, path, err);
  if (status == GL_OK) status = must_match(&m->c, &there, path, err);
  if (status != GL_OK) return status;
  status = shards_init(&s, m, err);
  if (status == GL_OK) status = find_files(&s, m, folder, err);
  if (status == GL_OK) status = check_files(&s, m, folder, err);
  if (status == GL_OK) status = load_tensors(&s, m, err);
  shards_fini(&s);
  model_renew(m);
  return status == GL_OK ? m->b->ops->status(m->b, err) : status;
}

/* --- writing --- */
/* Every file is replaced atomically. Files of an older save that a reader would use instead are
 * removed last. */

typedef struct saved_tensor {
  const model_tensor *tensor;
  size_t shard;
} saved_tensor;

/* Arguments of a save: `n` tensors in `n_shards` files with `bytes` bytes of numbers in all. */
typedef struct saving {
  const model *m;
  const char *folder;
  tensor_type type;
  saved_tensor *tensor; /* in ascending order of name */
  size_t n, n_shards, bytes;
} saving;

static int saved_by_name(const void *a, const void *b) {
  return strcmp(((const saved_tensor *)a)->tensor->name, ((const saved_tensor *)b)->tensor->name);
}

/* Adds tensors to a shard in order of name until the next one would exceed the limit. */
static gl_status plan_shards(saving *s, size_t limit, gl_error *err) {
  const model *m = s->m;
  size_t filled = 0;
  s->n = m->n_tensors;
  s->tensor = calloc(s->n, sizeof *s->tensor);
  if (s->tensor == NULL) return gl_fail_memory(err, "a model's tensors");
  for (size_t t = 0; t < s->n; ++t) s->tensor[t].tensor = &m->tensor[t];
  qsort(s->tensor, s->n, sizeof *s->tensor, saved_by_name);
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

static gl_status write_file(const char *folder, const char *name, const char *text, gl_error *err) {
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

/* Removes the file of the other layout (single file or index) left by an earlier save: it would be
 * a second model in the folder. */
static gl_status remove_other(const saving *s, gl_error *err) {
  char path[MODEL_PATH];
  gl_status status = model_join(path, s->folder, s->n_shards == 1 ? MODEL_INDEX : MODEL_FILE, err);
  if (status == GL_OK && unlink(path) != 0 && errno != ENOENT)
    status = file_fail(path, "removed", errno, err);
  return status;
}

/* Writes the tensors, the index if there are several shards, and config.json. */
static gl_status write_folder(const saving *s, gl_error *err) {
  char *staging = malloc(2 * (size_t)MODEL_STAGING);
  gl_status status = staging == NULL ? gl_fail_memory(err, "a model's tensors") : GL_OK;
  for (size_t i = 0; i < s->n_shards && status == GL_OK; ++i)
    status = write_shard(s, i, staging, err);
  free(staging);
  if (status == GL_OK && s->n_shards > 1) {
    char *text = index_text(s);
    status = write_file(s->folder, MODEL_INDEX, text, err);
    free(text);
  }
  if (status != GL_OK) return status;
  char *config = model_config_json(&s->m->c);
  status = write_file(s->folder, "config.json", config, err);
  free(config);
  return status == GL_OK ? remove_other(s, err) : status;
}

gl_status model_save(const model *m, const char *folder, number_type type, size_t shard_bytes,
                     gl_error *err) {
  saving s = {.m = m, .folder = folder};
  s.type = type == NUMBER_F64 ? TENSOR_F64 : type == NUMBER_BF16 ? TENSOR_BF16 : TENSOR_F32;
  if (mkdir(folder, 0777) != 0 && errno != EEXIST) return file_fail(folder, "made", errno, err);
  gl_status status = plan_shards(&s, shard_bytes, err);
  if (status == GL_OK) status = write_folder(&s, err);
  free(s.tensor);
  return status;
}
