/* Folders of models, read and written. */
#include "llm/model/model.h"
#include "tests/support/files.h"
#include "tests/support/llm_model.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- reading --- */

SUITE("llm: model files");

/* Every tensor of the loaded model against the same tensor of the files, as this reader's numbers
 * (which safetensors.c compares with torch). */
TEST(numbers_lie_where_their_names_say) {
  small_model s;
  safetensors *file;
  small_model_load(&s, QWEN3 "tied", NUMBER_F32, 0);
  ASSERT_OK(safetensors_open(&file, QWEN3 "tied/model.safetensors", &err));
  const size_t n = model_parameters(s.m);
  double *theta = calloc(n, sizeof *theta);
  ASSERT_OK(model_get(s.m, theta, &err));
  const model_tensor *t;
  size_t seen = 0, count;
  for (size_t i = 0; (t = model_tensor_at(s.m, i)) != NULL; ++i) {
    double *right = golden_tensor(file, t->name, &count);
    CU_ASSERT_EQUAL(count, t->rows * t->columns);
    CU_ASSERT_EQUAL(memcmp(theta + t->offset, right, count * sizeof *right), 0);
    seen += count;
    free(right);
  }
  CU_ASSERT_EQUAL(seen, n);
  CU_ASSERT_EQUAL(n, model_config_parameters(model_configuration(s.m)));
  free(theta);
  safetensors_free(file);
}

/* bfloat16 and float16 files hold the float32 ones rounded. */
TEST(half_precision_files_are_read) {
  static const struct {
    const char *folder;
    double epsilon;
  } halves[] = {{QWEN3 "tied_bf16", 0x1p-8}, {QWEN3 "tied_f16", 0x1p-11}};
  small_model s;
  small_model_load(&s, QWEN3 "tied", NUMBER_F32, 0);
  const size_t n = model_parameters(s.m);
  double *whole = calloc(2 * n, sizeof *whole), *half = whole + n;
  ASSERT_OK(model_get(s.m, whole, &err));
  for (size_t i = 0; i < 2; ++i) {
    size_t off = 0, changed = 0;
    ASSERT_OK(model_load(s.m, halves[i].folder, &err));
    ASSERT_OK(model_get(s.m, half, &err));
    for (size_t k = 0; k < n; ++k) {
      off += fabs(half[k] - whole[k]) <= halves[i].epsilon * fabs(whole[k]) + 0x1p-25 ? 0 : 1;
      changed += half[k] != whole[k];
    }
    CU_ASSERT_EQUAL(off, 0);
    CU_ASSERT(changed > n / 2);
  }
  free(whole);
}

/* Copies a folder's model with one number replaced, into `to`; returns the tensor's name. */
static const char *spoil(small_model *s, const char *to, size_t tensor, size_t element,
                         double value, number_type type, size_t shard_bytes) {
  gl_error err = {0};
  const size_t n = model_parameters(s->m);
  const model_tensor *t = model_tensor_at(s->m, tensor);
  double *theta = calloc(n, sizeof *theta);
  must(model_get(s->m, theta, &err), &err);
  const double kept = theta[t->offset + element];
  theta[t->offset + element] = value;
  must(model_set(s->m, theta, &err), &err);
  must(model_save(s->m, to, type, shard_bytes, &err), &err);
  theta[t->offset + element] = kept;
  must(model_set(s->m, theta, &err), &err);
  free(theta);
  return t->name;
}

/* NaN and infinities in any tensor, in files of both types, whole and in shards. */
TEST(numbers_that_are_not_finite_are_refused_by_name) {
  static const double bad[] = {NAN, INFINITY, -INFINITY};
  char folder[FILES_PATH];
  small_model s;
  small_model_load(&s, QWEN3 "tied", NUMBER_F32, 0);
  gl_error good = {0};
  size_t tensors = 0;
  while (model_tensor_at(s.m, tensors) != NULL) ++tensors;
  for (size_t t = 0; t < tensors; ++t)
    for (size_t k = 0; k < 4; ++k) {
      const model_tensor *about = model_tensor_at(s.m, t);
      const size_t last = about->rows * about->columns - 1, at = k < 2 ? last : 0;
      gl_error err = {0};
      char place[64];
      files_make(folder);
      spoil(&s, folder, t, at, bad[(t + k) % 3], k % 2 ? NUMBER_BF16 : NUMBER_F32,
            k == 3 ? 20000 : 0);
      snprintf(place, sizeof place, "at [%zu, %zu]", at / about->columns, at % about->columns);
      CU_ASSERT_EQUAL(model_load(s.m, folder, &err), GL_EINPUT);
      CU_ASSERT_PTR_NOT_NULL(strstr(err.text, about->name));
      CU_ASSERT_PTR_NOT_NULL(strstr(err.text, place));
      CU_ASSERT_PTR_NOT_NULL(strstr(err.text, ".safetensors: "));
      files_remove(folder);
      must(model_load(s.m, QWEN3 "tied", &good), &good);
    }
}

/* 1e300 in a file of float64 is infinite in float32. */
TEST(numbers_beyond_the_models_type_are_refused) {
  gl_error err = {0};
  char folder[FILES_PATH];
  small_model wide, narrow;
  files_make(folder);
  small_model_load(&wide, QWEN3 "tied", NUMBER_F64, 0);
  small_model_load(&narrow, QWEN3 "tied", NUMBER_F32, 0);
  const char *name = spoil(&wide, folder, 1, 2, 1e300, NUMBER_F64, 0);
  must(model_load(wide.m, folder, &err), &err);
  CU_ASSERT_EQUAL(model_load(narrow.m, folder, &err), GL_EINPUT);
  CU_ASSERT(strstr(err.text, name) != NULL && strstr(err.text, "float32") != NULL);
  files_remove(folder);
}

/* --- writing --- */

TEST(a_model_written_again_is_the_file_it_was_read_from) {
  char folder[FILES_PATH], path[FILES_PATH];
  small_model s;
  files_make(folder);
  small_model_load(&s, QWEN3 "tied", NUMBER_F32, 0);
  ASSERT_OK(model_save(s.m, folder, NUMBER_F32, 0, &err));
  CU_ASSERT(
      files_equal(files_path(folder, "model.safetensors", path), QWEN3 "tied/model.safetensors"));
  ASSERT_OK(model_save(s.m, folder, NUMBER_BF16, 0, &err));
  CU_ASSERT(files_equal(path, QWEN3 "tied_bf16/model.safetensors"));
  CU_ASSERT_EQUAL(files_count(folder), 2);
  small_model_load(&s, QWEN3 "tied", NUMBER_F64, 0);
  ASSERT_OK(model_save(s.m, folder, NUMBER_F64, 0, &err));
  ASSERT_OK(model_load(s.m, folder, &err));
  ASSERT_OK(model_save(s.m, folder, NUMBER_F32, 0, &err));
  CU_ASSERT(files_equal(path, QWEN3 "tied/model.safetensors"));
  static const char *const others[][2] = {{DECODERS "qwen2", DECODERS "qwen2/model.safetensors"},
                                          {DECODERS "llama", DECODERS "llama/model.safetensors"}};
  for (size_t i = 0; i < 2; ++i) {
    small_model_load(&s, others[i][0], NUMBER_F32, 0);
    ASSERT_OK(model_save(s.m, folder, NUMBER_F32, 0, &err));
    CU_ASSERT(files_equal(path, others[i][1]));
    ASSERT_OK(model_load(s.m, folder, &err)); /* with the config.json written here */
  }
  files_remove(folder);
}

TEST(shards_hold_the_same_model) {
  char folder[FILES_PATH], path[FILES_PATH];
  small_model s, again;
  files_make(folder);
  small_model_load(&s, QWEN3 "untied", NUMBER_F32, 0);
  const size_t n = model_parameters(s.m);
  double *a = calloc(2 * n, sizeof *a), *b = a + n;
  ASSERT_OK(model_get(s.m, a, &err));
  ASSERT_OK(model_save(s.m, folder, NUMBER_F32, 0, &err));
  ASSERT_OK(model_save(s.m, folder, NUMBER_F32, 9000, &err));
  CU_ASSERT(access(files_path(folder, "model.safetensors", path), F_OK) != 0); /* the old form */
  CU_ASSERT(files_count(folder) > 8);
  small_model_load(&again, folder, NUMBER_F32, 0);
  ASSERT_OK(model_get(again.m, b, &err));
  CU_ASSERT_EQUAL(memcmp(a, b, n * sizeof *a), 0);
  free(a);
  files_remove(folder);
}

TEST(a_folder_that_cannot_be_written_is_told) {
  gl_error err = {0};
  char folder[FILES_PATH], path[FILES_PATH];
  small_model s;
  files_make(folder);
  small_model_make(&s, NUMBER_F32, 0, 1);
  files_path(folder, "file", path);
  files_write(path, "x", 1);
  CU_ASSERT_EQUAL(model_save(s.m, path, NUMBER_F32, 0, &err), GL_EIO);
  gl_error_clear(&err);
  CU_ASSERT_EQUAL(model_save(s.m, "/nonexistent/folder/model", NUMBER_F32, 0, &err), GL_EIO);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "/nonexistent/folder/model"));
  CU_ASSERT_EQUAL(files_count(folder), 1);
  files_remove(folder);
}

/* --- folders that are wrong --- */

/* Loads a folder with this index beside the fixture's shards; returns the status. */
static gl_status load_with_index(const char *index, gl_error *err) {
  static const char *const shards[] = {
      "config.json", "model-00001-of-00004.safetensors", "model-00002-of-00004.safetensors",
      "model-00003-of-00004.safetensors", "model-00004-of-00004.safetensors"};
  char folder[FILES_PATH], path[FILES_PATH], inner[FILES_PATH];
  small_model s;
  files_make(folder);
  mkdir(files_path(folder, "inner", inner), 0777);
  for (size_t i = 0; i < 5; ++i) {
    size_t size;
    unsigned char *bytes = files_read(files_path(QWEN3 "untied", shards[i], path), &size);
    CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
    files_write(files_path(inner, shards[i], path), bytes, size);
    if (i > 0) files_write(files_path(folder, shards[i], path), bytes, size);
    free(bytes);
  }
  files_write(files_path(inner, "model.safetensors.index.json", path), index, strlen(index));
  small_model_load(&s, QWEN3 "untied", NUMBER_F32, 0);
  gl_status status = model_load(s.m, inner, err);
  files_remove(folder);
  return status;
}

/* The fixture's index with the first `from` replaced by `to`. */
static char *edited_index(const char *from, const char *to) {
  size_t size;
  char *text = (char *)files_read(QWEN3 "untied/model.safetensors.index.json", &size);
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  char *at = strstr(text, from);
  CU_ASSERT_PTR_NOT_NULL_FATAL(at);
  char *edited = calloc(size + strlen(to) + 1, 1);
  memcpy(edited, text, (size_t)(at - text));
  strcat(edited, to);
  strcat(edited, at + strlen(from));
  free(text);
  return edited;
}

TEST(an_index_may_name_files_of_its_folder_only) {
  static const struct {
    const char *from, *to, *says; /* says NULL: loads */
  } edits[] = {
      {"\"metadata\"", "\"metadata\"", NULL},
      {"\"model-00001", "\"../model-00001", "no file name"},
      {"\"model-00001", "\"/tmp/model-00001", "no file name"},
      {"\"model-00001", "\".model-00001", "no file name"},
      {"-of-00004.safetensors\"", "-of-00004.bin\"", "no file name"},
      {"\"model-00001-of", "\"model-00009-of", "cannot be read"},
      {"model-00001-of", "model-00002-of", "there is no tensor"},
      {"\"lm_head.weight\"", "\"lm_heap.weight\"", "does not say where tensor lm_head.weight"},
      {"\"lm_head.weight\"", "\"model.norm.weight\"", "there twice"},
      {"\"weight_map\"", "\"weight_mop\"", "no weight_map"},
      {"\"lm_head.weight\": ", "\"lm_head.weight\": 1, \"x\": ", "expected a string"},
  };
  for (size_t i = 0; i < sizeof edits / sizeof *edits; ++i) {
    gl_error err = {0};
    char *index = edited_index(edits[i].from, edits[i].to);
    gl_status status = load_with_index(index, &err);
    int right = edits[i].says == NULL
                    ? status == GL_OK
                    : status == GL_EINPUT && strstr(err.text, edits[i].says) != NULL;
    if (!right) fprintf(stderr, "%s: %s\n", edits[i].to, err.text);
    CU_ASSERT(right);
    free(index);
  }
}

/* The first place of text among so many bytes, or NULL. */
static char *find_bytes(char *in, size_t size, const char *text) {
  const size_t n = strlen(text);
  for (size_t i = 0; i + n <= size; ++i)
    if (memcmp(in + i, text, n) == 0) return in + i;
  return NULL;
}

/* One tensor more, less, of another shape or type than the model has. */
static gl_status load_with_header(const char *from, const char *to, gl_error *err) {
  char folder[FILES_PATH], path[FILES_PATH];
  size_t size;
  uint64_t header;
  small_model s;
  unsigned char *bytes = files_read(QWEN3 "tied/model.safetensors", &size);
  CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
  memcpy(&header, bytes, 8);
  char *at = find_bytes((char *)bytes + 8, header, from);
  CU_ASSERT_PTR_NOT_NULL_FATAL(at);
  CU_ASSERT_EQUAL_FATAL(strlen(from), strlen(to));
  memcpy(at, to, strlen(to));
  files_make(folder);
  files_write(files_path(folder, "model.safetensors", path), bytes, size);
  free(bytes);
  bytes = files_read(QWEN3 "tied/config.json", &size);
  files_write(files_path(folder, "config.json", path), bytes, size);
  free(bytes);
  small_model_load(&s, QWEN3 "tied", NUMBER_F32, 0);
  gl_status status = model_load(s.m, folder, err);
  files_remove(folder);
  return status;
}

TEST(tensors_that_are_not_the_models_are_refused) {
  static const struct {
    const char *from, *to, *says;
  } edits[] = {
      {"layers.0.self_attn.q_norm", "layers.2.self_attn.q_norm", "is none of a Qwen3ForCausalLM"},
      {"\"shape\":[37,32]", "\"shape\":[32,37]", "needs 37 x 32"},
      {"\"shape\":[16]", "\"shape\":[  ]", "its shape of F32 needs 4 bytes"},
      {"\"dtype\":\"F32\"", "\"dtype\":\"I32\"", "has type I32"},
  };
  for (size_t i = 0; i < sizeof edits / sizeof *edits; ++i) {
    gl_error err = {0};
    gl_status status = load_with_header(edits[i].from, edits[i].to, &err);
    int right = status == GL_EINPUT && strstr(err.text, edits[i].says) != NULL;
    if (!right) fprintf(stderr, "%s: %s\n", edits[i].to, err.text);
    CU_ASSERT(right);
  }
  gl_error err = {0};
  CU_ASSERT_EQUAL(load_with_header("\"format\":\"pt\"", "\"format\":\"np\"", &err), GL_OK);
}

TEST(another_models_folder_is_refused) {
  gl_error err = {0};
  small_model s;
  small_model_load(&s, QWEN3 "tied", NUMBER_F32, 0);
  CU_ASSERT_EQUAL(model_load(s.m, QWEN3 "untied", &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "vocab_size is 29, but this model has 37"));
  gl_error_clear(&err);
  CU_ASSERT_EQUAL(model_load(s.m, QWEN3 "none", &err), GL_EINPUT);
  gl_error_clear(&err);
  CU_ASSERT_EQUAL(model_load(s.m, DECODERS "llama", &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "model_type is llama, but this model is a qwen3"));
}
