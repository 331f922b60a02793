/* libFuzzer target: no study file, however damaged or made by hand, may make its readers misbehave.
 *
 * A valid study is made once. The input changes a copy of it: as pieces of a file that are written
 * over (so that the fuzzer need not find SQLite's format), or as values that are put into its
 * tables, of the right type and of others. The copy is read, exported, checked and merged
 * like any other study. */
#include "analysis/results.h"
#include "core/store/internal.h"
#include "core/store/store.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In memory, one for each process. */
static const char *place_of(char path[64], const char *name) {
  snprintf(path, 64, "/dev/shm/gepolab-fuzz-%d-%s", (int)getpid(), name);
  return path;
}

/* --- the study --- */

static void put_runs(store *s) {
  for (int i = 0; i < 3; ++i) {
    step_record steps[2] = {{.step = 1}, {.step = 2, .sampler = 1, .time_s = 2}};
    eval_record evals[2] = {{0, 0, 0.5}, {2, 3, 0.75}};
    const uint64_t staleness[2] = {1, 1};
    char recipe[128], key[16];
    snprintf(recipe, sizeof recipe,
             "{\"algorithm\":\"gepo\",\"cluster\":{\"max_delay\":%d},\"optimizer\":{\"lr\":0.1},"
             "\"seed\":%d}",
             60 * (i / 2), i);
    snprintf(key, sizeof key, "key%d", i);
    for (int k = 0; k < 2; ++k) metrics_clear(steps[k].metric);
    const run_provenance from = {"0", "", -1, "gepolab", "", "", "", "{}", ""};
    const run_record run = {.key = key,
                            .ordinal = i,
                            .study = "s",
                            .algorithm = "gepo",
                            .swept = "{\"cluster.max_delay\":60}",
                            .chosen = "{\"optimizer.lr\":0.1}",
                            .recipe = recipe,
                            .meaning = 2,
                            .code_version = "0",
                            .machine = "",
                            .seed = (uint64_t)i,
                            .lr = 0.1,
                            .provenance = &from,
                            .peak_bytes = 1,
                            .steps = steps,
                            .n_steps = 2,
                            .evals = evals,
                            .n_evals = 2,
                            .staleness = staleness,
                            .n_staleness = 2};
    if (store_put_run(s, &run, NULL) != GL_OK) abort();
  }
}

static void put_rest(store *s) {
  const bias_record record = {.algorithm = "gepo", .method = "exact", .bias = 0.5};
  const bias_making making = {.finished = "2026-11-22T08:30:00Z", .wall_s = 1};
  const score_record score = {"t", "{}", 0.5, 1, "2026-11-22T08:30:00Z"};
  const planned_cell cell = {.place = "p", .algorithm = "gepo", .swept = "{}"};
  const study_plan plan = {
      .study = "s", .recipe = "{}", .shard = 1, .shards = 2, .cells = &cell, .n = 1};
  if (store_put_bias(s, "lab", &record, 1, &making, NULL) != GL_OK ||
      store_put_score(s, &score, NULL) != GL_OK ||
      store_put_tuned(s, "s", "gepo", 0.1, 0.5, NULL) != GL_OK ||
      store_put_plan(s, &plan, NULL) != GL_OK)
    abort();
}

typedef struct bytes {
  uint8_t *at;
  size_t size;
} bytes;

static bytes make_study(void) {
  char path[64];
  store *s = NULL;
  gl_error err = {0};
  unlink(place_of(path, "base.db"));
  if (store_open(&s, path, STORE_WRITE, &err) != GL_OK) abort();
  put_runs(s), put_rest(s);
  store_close(s);
  FILE *from = fopen(path, "rb");
  bytes made = {malloc(1 << 20), 0};
  if (from == NULL || made.at == NULL) abort();
  made.size = fread(made.at, 1, 1 << 20, from);
  fclose(from);
  unlink(path);
  return made;
}

/* --- the damage --- */

/* Pieces: place (3 bytes), length (1 byte), then so many bytes. */
static void write_over(bytes study, const uint8_t *data, size_t size) {
  while (size > 4) {
    size_t at = ((size_t)data[0] << 16 | (size_t)data[1] << 8 | data[2]) % study.size;
    size_t n = data[3];
    data += 4, size -= 4;
    if (n > size) n = size;
    if (n > study.size - at) n = study.size - at;
    memcpy(study.at + at, data, n);
    data += n, size -= n;
  }
}

static void bind_value(sqlite3_stmt *q, uint8_t kind, const uint8_t *data, size_t size) {
  int64_t number = 0;
  double real;
  memcpy(&number, data, size < sizeof number ? size : sizeof number);
  memcpy(&real, &number, sizeof real);
  switch (kind % 6) {
  case 0:
    sqlite3_bind_null(q, 1);
    break;
  case 1:
    sqlite3_bind_int64(q, 1, number);
    break;
  case 2:
    sqlite3_bind_double(q, 1, real);
    break;
  case 3:
    sqlite3_bind_blob(q, 1, data, (int)size, SQLITE_STATIC);
    break;
  default:
    sqlite3_bind_text(q, 1, (const char *)data, (int)size, SQLITE_STATIC);
  }
}

/* Writes all checksums anew where the study can be written. */
static void seal_anew(const char *path) {
  store *s = NULL;
  gl_status status = store_open(&s, path, STORE_WRITE, NULL);
  if (status == GL_OK) {
    status = store_begin(s, NULL);
    if (status == GL_OK) status = store_seal_runs(s, "1", NULL);
    if (status == GL_OK) status = store_seal_all(s, NULL);
    status = store_end(s, status, NULL);
  }
  store_close(s);
}

/* table, column, record, kind, length, value. With the highest bit of `kind` the checksums are made
 * anew afterwards, as somebody who knows them would. */
static void put_values(const char *path, const uint8_t *data, size_t size) {
  static const char *const tables[] = {
      "runs", "steps",  "evals", "staleness",  "clock",      "tuned",     "tuning_scores",
      "bias", "sweeps", "plan",  "superseded", "provenance", "set_evals", "fates"};
  sqlite3 *db = NULL;
  int seals = 0;
  if (sqlite3_open(path, &db) != SQLITE_OK) abort();
  sqlite3_exec(db, "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF", NULL, NULL, NULL);
  while (size >= 5) {
    const char *table = tables[data[0] % (sizeof tables / sizeof *tables)];
    sqlite3_stmt *q = NULL;
    char *sql = sqlite3_mprintf("SELECT * FROM %s", table);
    size_t n = data[4] > size - 5 ? size - 5 : data[4];
    sqlite3_prepare_v2(db, sql, -1, &q, NULL);
    sqlite3_free(sql);
    const int columns = q != NULL ? sqlite3_column_count(q) : 0;
    sql = columns > 0 ? sqlite3_mprintf("UPDATE OR IGNORE %s SET \"%w\" = ?1%s", table,
                                        sqlite3_column_name(q, data[1] % columns),
                                        data[2] & 1 ? "" : " WHERE rowid = 1")
                      : NULL;
    sqlite3_finalize(q), q = NULL;
    if (sql != NULL && sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK) {
      bind_value(q, data[3] & 0x7f, data + 5, n);
      sqlite3_step(q);
    }
    sqlite3_finalize(q);
    sqlite3_free(sql);
    seals |= data[3] >> 7;
    data += 5 + n, size -= 5 + n;
  }
  /* Rows without a checksum are sealed anew. */
  for (size_t i = 0; seals && schema_at(i) != NULL; ++i) {
    char *sql = schema_at(i)->kind == TABLE_ALONE
                    ? sqlite3_mprintf("UPDATE %s SET sum = NULL", schema_at(i)->name)
                    : NULL;
    if (sql != NULL) sqlite3_exec(db, sql, NULL, NULL, NULL);
    sqlite3_free(sql);
  }
  sqlite3_close(db);
  if (seals) seal_anew(path);
}

/* --- the readers --- */

static void note(void *self, const char *key, const char *text) {
  *(size_t *)self += (key != NULL ? strlen(key) : 0) + strlen(text);
}

static void read_study(const char *path, const char *merged) {
  static const char *const tables[] = {"runs",  "steps", "evals",     "staleness", "clock",
                                       "tuned", "bias",  "set_evals", "fates"};
  store *s = NULL;
  gl_error err = {0};
  if (store_open(&s, path, STORE_READ, &err) != GL_OK) return;
  FILE *to = fopen("/dev/null", "w");
  for (size_t i = 0; i < sizeof tables / sizeof *tables; ++i)
    (void)store_export(s, tables[i], i % 2 ? "jsonl" : "csv", to, &err);
  fclose(to);
  results *r = NULL;
  if (results_load(&r, s, NULL, &err) == GL_OK) results_free(r);
  study_progress p;
  (void)store_progress(s, "s", &p, &err);
  size_t told = 0;
  (void)store_check(s, note, &told, &err);
  store_close(s);
  s = NULL;
  if (store_open(&s, merged, STORE_WRITE, &err) == GL_OK) (void)store_merge(s, path, &err);
  store_close(s);
  unlink(merged);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static bytes base;
  char path[64], merged[64];
  if (base.at == NULL) base = make_study();
  if (size < 2) return 0;
  bytes copy = {malloc(base.size), base.size};
  if (copy.at == NULL) abort();
  memcpy(copy.at, base.at, base.size);
  if (data[0] & 1) write_over(copy, data + 1, size - 1);
  FILE *to = fopen(place_of(path, "study.db"), "wb");
  if (to == NULL || fwrite(copy.at, 1, copy.size, to) != copy.size || fclose(to) != 0) abort();
  free(copy.at);
  if (!(data[0] & 1)) put_values(path, data + 1, size - 1);
  read_study(path, place_of(merged, "merged.db"));
  unlink(path);
  return 0;
}
