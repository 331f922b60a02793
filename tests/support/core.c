/* A folder for the files of a test, and reading and writing them whole. */
#include "tests/support/core.h"
#include "tests/support/files.h"

#include "core/base/hash.h"
#include "tests/support/suite.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- files --- */

/* In memory where that is possible: the suites sync often, which a busy disk makes slow. */
void scratch_make(scratch *s) {
  snprintf(s->folder, sizeof s->folder, "%s/gepolab-core-XXXXXX",
           access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp");
  CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(s->folder));
}

char *scratch_path(const scratch *s, const char *name, char path[SCRATCH_PATH_SIZE]) {
  snprintf(path, SCRATCH_PATH_SIZE, "%s/%.80s", s->folder, name);
  return path;
}

size_t scratch_count(const scratch *s) {
  return files_count(s->folder);
}

void scratch_remove(const scratch *s) {
  files_remove(s->folder);
  CU_ASSERT(access(s->folder, F_OK) != 0);
}

char *scratch_read(const char *path) {
  return files_text(path);
}

void scratch_write(const char *path, const char *text) {
  files_put(path, text);
}

void scratch_copy(const char *from, const char *to) {
  size_t size = 0;
  unsigned char *bytes = files_read(from, &size);
  CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
  files_write(to, bytes, size);
  free(bytes);
}

/* --- runs --- */

static void fill_steps(sample_run *s, int ordinal, size_t n_steps) {
  for (size_t i = 0; i < n_steps; ++i) {
    step_record *of = &s->steps[i];
    *of = (step_record){.step = (int64_t)i + 1, .sampler = (int32_t)(i % 3)};
    of->time_s = 1.5 * (double)(i + 1);
    of->wait_s = 0.1;
    metrics_clear(of->metric);
    of->metric[METRIC_LOSS] = ordinal + 1 / (double)(i + 1);
    of->metric[METRIC_GRAD_NORM] = 0.25;
  }
}

void sample_run_init(sample_run *s, int ordinal, size_t n_steps) {
  CU_ASSERT_FATAL(n_steps <= SAMPLE_MAX_STEPS);
  fill_steps(s, ordinal, n_steps);
  s->evals[0] = (eval_record){0, 0, 0.5};
  s->evals[1] = (eval_record){(int64_t)n_steps, 1.5 * (double)n_steps, NAN};
  s->staleness[0] = 3, s->staleness[1] = 0, s->staleness[2] = UINT64_C(1) << 40;
  snprintf(s->recipe, sizeof s->recipe, "{\"seed\":%d}", ordinal);
  hash_hex(s->recipe, strlen(s->recipe), s->key);
  s->run = (run_record){.key = s->key,
                        .ordinal = ordinal,
                        .study = "s",
                        .algorithm = "gepo",
                        .swept = "{}",
                        .meaning = 1,
                        .recipe = s->recipe,
                        .code_version = "1.0",
                        .machine = "test",
                        .seed = (uint64_t)ordinal,
                        .lr = 0.1,
                        .status = RUN_DONE,
                        .reason = "",
                        .wall_s = 1,
                        .peak_bytes = -1,
                        .clock = {.simulated_s = 450, .learner_utilisation = 1 / 3.0},
                        .steps = s->steps,
                        .n_steps = n_steps,
                        .evals = s->evals,
                        .n_evals = 2,
                        .staleness = s->staleness,
                        .n_staleness = 3};
}

/* --- studies --- */

double store_number(store *s, const char *sql) {
  sqlite3_stmt *stmt = NULL;
  double value = -1;
  int code = sqlite3_prepare_v2(store_handle(s), sql, -1, &stmt, NULL);
  if (code == SQLITE_OK) code = sqlite3_step(stmt);
  if (code == SQLITE_ROW) value = sqlite3_column_double(stmt, 0);
  if (code != SQLITE_ROW) fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(store_handle(s)));
  CU_ASSERT_EQUAL(code, SQLITE_ROW);
  sqlite3_finalize(stmt);
  return value;
}

store *store_opened(const char *path, store_mode mode) {
  store *s = NULL;
  ASSERT_OK(store_open(&s, path, mode, &err));
  CU_ASSERT_PTR_NOT_NULL_FATAL(s);
  return s;
}

void store_put_samples(store *s, int first, int last, size_t n_steps) {
  static sample_run sample;
  gl_error err = {0};
  for (int i = first; i <= last; ++i) {
    sample_run_init(&sample, i, n_steps);
    if (store_put_run(s, &sample.run, &err) != GL_OK) fprintf(stderr, "%s\n", err.text);
    CU_ASSERT_EQUAL_FATAL(err.status, GL_OK);
  }
}

char *store_text(const char *path, const char *const *tables, size_t n, gl_error *err) {
  char *text = NULL;
  size_t size = 0;
  store *s = NULL;
  FILE *to = open_memstream(&text, &size);
  gl_status status = store_open(&s, path, STORE_READ, err);
  for (size_t i = 0; i < n && status == GL_OK; ++i)
    status = store_export(s, tables[i], "csv", to, err);
  store_close(s);
  fclose(to);
  if (status == GL_OK) return text;
  free(text);
  return NULL;
}
