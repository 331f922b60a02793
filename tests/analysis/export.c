/* The tables of a study, read back by another reader. */
#include "analysis/export.h"

#include "analysis/analyze.h"
#include "analysis/summary.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/base/records.h"
#include "core/config/fields.h"
#include "tests/support/json.h"
#include "tests/support/suite.h"
#include "tests/support/tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

SUITE("analysis: exports");

static const char path[] = "build/analysis_export_test.db";
static const char folder[] = "build/analysis_export_test";

/* --- a file of two studies --- */

/* What a run of the study "made" is: the delay is a number, the weight delay a distribution or a
 * word, and `shared_delays` a truth value. */
typedef struct made_run {
  const char *algorithm, *max_delay, *delay, *shared;
  uint64_t seed;
  run_status status;
  int64_t meaning;
} made_run;

static const made_run made[] = {
    {"grpo", "0", "\"none\"", "false", 1, RUN_DONE, 2},
    {"grpo", "0", "\"none\"", "false", 2, RUN_DONE, 2},
    {"grpo", "0", "\"none\"", "false", 3, RUN_FAILED, 2},
    {"gepo, \"quoted\"", "600", "{\"distribution\":\"exponential\",\"mean\":3}", "true", 1,
     RUN_DONE, 2},
    {"gepo, \"quoted\"", "600", "{\"distribution\":\"exponential\",\"mean\":3}", "true", 2,
     RUN_DIVERGED, 2},
    {"gepo, \"quoted\"", "600", "{\"distribution\":\"exponential\",\"mean\":3}", "true",
     INT64_MAX - 1, RUN_DONE, 2},
};
enum { MADE = sizeof made / sizeof *made };

static void put_run(store *s, const char *study, const made_run *of, int64_t ordinal,
                    const char *more) {
  char recipe[512], key[HASH_HEX_SIZE], swept[128];
  const double peak = 0.5 + (double)ordinal / 100.0;
  step_record steps[4];
  const eval_record evals[] = {{0, 0, 0.25}, {2, 3, peak}, {4, 6, peak - 0.125}};
  const uint64_t staleness[] = {1, 2};
  for (int i = 0; i < 4; ++i) {
    steps[i] = (step_record){.step = i + 1, .time_s = 1.5 * (i + 1)};
    metrics_clear(steps[i].metric);
    steps[i].metric[METRIC_STALENESS] = i;
    steps[i].metric[METRIC_KL_EXACT] = (double)ordinal / 7.0;
    steps[i].metric[METRIC_LOG_IW_VARIANCE_PQ] = i == 0 ? -INFINITY : (double)(i * ordinal);
    if (i == 3) steps[i].metric[METRIC_GRAD_NORM] = INFINITY;
  }
  snprintf(recipe, sizeof recipe,
           "{\"cluster\":{\"delay\":%s,\"max_delay\":%s,\"shared_delays\":%s},\"seed\":%llu%s}",
           of->delay, of->max_delay, of->shared, (unsigned long long)of->seed, more);
  snprintf(swept, sizeof swept, "{\"cluster.max_delay\":%s}", of->max_delay);
  hash_hex(recipe, strlen(recipe), key);
  const run_record run = {.key = key,
                          .ordinal = ordinal,
                          .study = study,
                          .algorithm = of->algorithm,
                          .swept = swept,
                          .recipe = recipe,
                          .meaning = of->meaning,
                          .code_version = "0",
                          .machine = "",
                          .seed = of->seed,
                          .lr = 0.125,
                          .status = of->status,
                          .reason = of->status == RUN_DONE ? "" : "a, b",
                          .clock = {.samples_per_s = 8, .staleness_mean = 2.0 / 3.0},
                          .steps = steps,
                          .n_steps = 4,
                          .evals = evals,
                          .n_evals = 3,
                          .staleness = staleness,
                          .n_staleness = 2};
  gl_error err = {0};
  if (store_put_run(s, &run, &err) != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_EQUAL_FATAL(err.status, GL_OK);
}

/* The second study is one cell of another file's worth; the last run of the first one repeats its
 * first run with a default written out. */
static store *made_file(void) {
  static const made_run other = {"grpo", "100", "\"none\"", "false", 1, RUN_DONE, 2};
  store *s = NULL;
  unlink(path);
  ASSERT_OK(store_open(&s, path, STORE_WRITE, &err));
  for (size_t i = 0; i < MADE; ++i) put_run(s, "made", &made[i], (int64_t)i, "");
  put_run(s, "made", &made[0], MADE, ",\"eval_every\":10");
  put_run(s, "other", &other, 0, "");
  ASSERT_OK(store_put_tuned(s, "made", "grpo", 0.125, 0.5, &err));
  return s;
}

/* --- a table that was read back --- */

enum { MOST_CELLS = 8192, MOST_COLUMNS = 80 };

typedef struct sheet {
  char *cell[MOST_CELLS]; /* [rows + 1][columns], the header first */
  size_t n, columns;
  char *text;
} sheet;

static void sheet_fini(sheet *t) {
  for (size_t i = 0; i < t->n; ++i) free(t->cell[i]);
  free(t->text);
  *t = (sheet){.n = 0};
}

/* All lines have as many cells as the first. */
static void sheet_read(sheet *t) {
  csv_reader r;
  gl_error err = {0};
  gl_status status = csv_begin(&r, t->text, strlen(t->text), "export", &err);
  while (status == GL_OK && csv_line(&r)) {
    size_t here = 0;
    for (int more = 1; more && status == GL_OK && t->n < MOST_CELLS; ++here) {
      status = csv_cell(&r, &more);
      if (status == GL_OK) t->cell[t->n++] = strdup(r.cell);
    }
    if (t->columns == 0) t->columns = here;
    CU_ASSERT_EQUAL(here, t->columns);
  }
  CU_ASSERT_EQUAL(status, GL_OK);
  CU_ASSERT_FATAL(t->n < MOST_CELLS && t->columns > 0 && t->n % t->columns == 0);
  csv_end(&r);
}

static const export_table *table_named(const char *name) {
  size_t i = 0;
  while (study_export_at(i) != NULL && strcmp(study_export_at(i)->name, name) != 0) ++i;
  return study_export_at(i);
}

static void sheet_export(sheet *t, store *s, const char *name) {
  size_t size = 0;
  gl_error err = {0};
  *t = (sheet){.n = 0};
  FILE *to = open_memstream(&t->text, &size);
  const export_table *of = table_named(name);
  CU_ASSERT_FATAL(to != NULL && of != NULL);
  if (study_export(s, of, RECORDS_CSV, to, &err) != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_EQUAL(err.status, GL_OK);
  fclose(to);
  sheet_read(t);
}

static size_t rows(const sheet *t) {
  return t->n / t->columns - 1;
}

static size_t column(const sheet *t, const char *name) {
  size_t c = 0;
  while (c < t->columns && strcmp(t->cell[c], name) != 0) ++c;
  if (c == t->columns) fprintf(stderr, "there is no column %s\n", name);
  CU_ASSERT_FATAL(c < t->columns);
  return c;
}

static const char *at(const sheet *t, size_t row, const char *name) {
  return t->cell[(row + 1) * t->columns + column(t, name)];
}

static double cell_number(const sheet *t, size_t row, const char *name) {
  double value = NAN;
  const char *text = at(t, row, name);
  CU_ASSERT(*text == '\0' || csv_number(text, &value));
  return value;
}

/* The first row that has this text there. */
static size_t row_of(const sheet *t, const char *name, const char *text) {
  size_t row = 0;
  while (row < rows(t) && strcmp(at(t, row, name), text) != 0) ++row;
  return row;
}

/* --- every table --- */

static int has_type(const char *cell, table_type type) {
  double value;
  switch (type) {
  case TABLE_TEXT:
    return 1;
  case TABLE_INTEGER:
    return strspn(cell, "-0123456789") == strlen(cell);
  case TABLE_REAL:
    return *cell == '\0' || csv_number(cell, &value);
  case TABLE_FLAG:
    return *cell == '\0' || strcmp(cell, "true") == 0 || strcmp(cell, "false") == 0;
  case TABLE_INTERVAL:
  case TABLE_NUMBERS:
  case TABLE_JSON:
  case TABLE_TABLE:
    break;
  }
  return 0;
}

/* The header is the one declared, and the cells have the types declared. */
static void check_types(const sheet *t, const export_table *of, const run_list *runs) {
  size_t n = 0;
  table_column *columns = export_header(of, runs, &n);
  CU_ASSERT_PTR_NOT_NULL_FATAL(columns);
  CU_ASSERT_EQUAL_FATAL(n, t->columns);
  for (size_t c = 0; c < n; ++c) {
    CU_ASSERT_STRING_EQUAL(t->cell[c], columns[c].name);
    CU_ASSERT(strlen(columns[c].about) > 0);
    for (size_t k = 0; k < c; ++k) CU_ASSERT_STRING_NOT_EQUAL(t->cell[c], t->cell[k]);
    for (size_t r = 0; r < rows(t); ++r) {
      const char *cell = t->cell[(r + 1) * n + c];
      if (!has_type(cell, columns[c].type))
        fprintf(stderr, "%s.%s is '%s'\n", of->name, columns[c].name, cell);
      CU_ASSERT(has_type(cell, columns[c].type));
    }
  }
  free(columns);
}

/* No two rows have alike what the table says they do not. */
static void check_key(const sheet *t, const export_table *of) {
  size_t key[8], n = 0;
  char names[128], *rest = NULL;
  snprintf(names, sizeof names, "%s", of->key);
  for (char *name = strtok_r(names, ", ", &rest); name != NULL; name = strtok_r(NULL, ", ", &rest))
    key[n++] = column(t, name);
  CU_ASSERT(n > 0);
  for (size_t a = 1; a <= rows(t); ++a)
    for (size_t b = 1; b < a; ++b) {
      size_t same = 0;
      for (size_t k = 0; k < n; ++k)
        same += strcmp(t->cell[a * t->columns + key[k]], t->cell[b * t->columns + key[k]]) == 0;
      CU_ASSERT(same < n);
    }
}

static int is_column(const sheet *t, const char *name) {
  size_t c = 0;
  while (c < t->columns && strcmp(t->cell[c], name) != 0) ++c;
  return c < t->columns;
}

TEST(every_table_is_read_by_another_reader_and_joins) {
  store *s = made_file();
  sheet t, of_runs;
  run_list runs = {0};
  CU_ASSERT_EQUAL(run_list_init(&runs, s, NULL), GL_OK);
  sheet_export(&of_runs, s, "runs");
  CU_ASSERT_EQUAL(rows(&of_runs), MADE + 2);
  for (size_t i = 0; study_export_at(i) != NULL; ++i) {
    const export_table *of = study_export_at(i);
    sheet_export(&t, s, of->name);
    check_types(&t, of, &runs);
    check_key(&t, of);
    /* "core: studies with pages in wrong places" and "cli: sweeps" export a study that was tuned */
    const int empty = strcmp(of->name, "bias") == 0 || strcmp(of->name, "provenance") == 0 ||
                      strcmp(of->name, "libraries") == 0 || strcmp(of->name, "tuning") == 0 ||
                      strcmp(of->name, "set_evals") == 0 || /* "core: scores by evaluation set" */
                      strcmp(of->name, "fates") == 0;       /* "core: fates of responses" */
    CU_ASSERT_EQUAL(rows(&t) == 0, empty);
    for (size_t r = 0; is_column(&t, "key") && r < rows(&t); ++r)
      CU_ASSERT(row_of(&of_runs, "key", at(&t, r, "key")) < rows(&of_runs));
    sheet_fini(&t);
  }
  sheet_fini(&of_runs);
  run_list_fini(&runs);
  store_close(s);
  unlink(path);
}

/* What tells runs apart may be any field of a recipe. */
TEST(no_column_is_called_as_a_field_of_recipes) {
  for (size_t i = 0; study_export_at(i) != NULL; ++i) {
    const export_table *of = study_export_at(i);
    for (size_t c = 0; of->lead != EXPORT_ALONE && c < export_columns(of); ++c)
      CU_ASSERT_PTR_NULL(fields_named(export_column(of, c).name));
  }
}

TEST(axes_have_a_column_of_one_type) {
  store *s = made_file();
  sheet t;
  sheet_export(&t, s, "runs");
  CU_ASSERT_STRING_EQUAL(at(&t, 3, "cluster.max_delay"), "600");
  CU_ASSERT_STRING_EQUAL(at(&t, 0, "cluster.delay"), "none");
  CU_ASSERT_STRING_EQUAL(at(&t, 3, "cluster.delay"),
                         "{\"distribution\":\"exponential\",\"mean\":3}");
  CU_ASSERT_STRING_EQUAL(at(&t, 3, "cluster.shared_delays"), "true");
  CU_ASSERT_STRING_EQUAL(at(&t, 5, "seed"), "9223372036854775806");
  CU_ASSERT_STRING_EQUAL(at(&t, 3, "algorithm"), "gepo, \"quoted\"");
  sheet_fini(&t);
  sheet_export(&t, s, "axes");
  const size_t row = row_of(&t, "path", "cluster.max_delay");
  CU_ASSERT_STRING_EQUAL(at(&t, row, "study"), "made");
  CU_ASSERT_STRING_EQUAL(at(&t, row, "unit"), "s");
  CU_ASSERT_STRING_EQUAL(at(&t, row, "kind"), "number");
  CU_ASSERT_STRING_EQUAL(at(&t, row, "role"), "axis");
  CU_ASSERT_STRING_EQUAL(at(&t, row, "swept"), "true");
  CU_ASSERT_STRING_EQUAL(at(&t, row, "values"), "2");
  CU_ASSERT_STRING_EQUAL(at(&t, row_of(&t, "path", "cluster.delay"), "swept"), "false");
  CU_ASSERT_STRING_EQUAL(at(&t, row_of(&t, "study", "other"), "values"), "1");
  sheet_fini(&t);
  sheet_export(&t, s, "axis_values");
  CU_ASSERT_EQUAL(rows(&t), 3 * (MADE + 2));
  CU_ASSERT_EQUAL(cell_number(&t, row_of(&t, "value", "600"), "number"), 600);
  CU_ASSERT_EQUAL(cell_number(&t, row_of(&t, "value", "none"), "number"), 0);
  sheet_fini(&t);
  /* In lines of JSON the type of a column is the same in every record. */
  char *text = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&text, &size);
  CU_ASSERT_EQUAL(study_export(s, table_named("runs"), RECORDS_JSONL, to, NULL), GL_OK);
  fclose(to);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"cluster.delay\":\"none\""));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"cluster.delay\":\"{\\\"distribution\\\":"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"cluster.shared_delays\":true"));
  CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"seed\":9223372036854775806"));
  free(text);
  store_close(s);
  unlink(path);
}

/* --- runs and cells --- */

TEST(a_run_is_summarised_in_one_record) {
  store *s = made_file();
  sheet t;
  sheet_export(&t, s, "summary");
  CU_ASSERT_EQUAL(rows(&t), MADE + 2);
  /* run 4 diverged: peak 0.54 at update 2, a gradient that is not finite at the end */
  CU_ASSERT_STRING_EQUAL(at(&t, 4, "status"), "diverged");
  CU_ASSERT_STRING_EQUAL(at(&t, 4, "diverged_step"), "4");
  CU_ASSERT_STRING_EQUAL(at(&t, 0, "diverged_step"), "");
  CU_ASSERT_STRING_EQUAL(at(&t, 4, "eval_first"), "0.25");
  CU_ASSERT_STRING_EQUAL(at(&t, 4, "best"), "0.54");
  CU_ASSERT_STRING_EQUAL(at(&t, 4, "best_step"), "2");
  CU_ASSERT_STRING_EQUAL(at(&t, 4, "last"), "");
  CU_ASSERT_STRING_EQUAL(at(&t, 4, "best_to_last"), "");
  ASSERT_CLOSE(cell_number(&t, 3, "best_to_last"), 0.125, 1e-15);
  CU_ASSERT_STRING_EQUAL(at(&t, 4, "updates"), "4");
  CU_ASSERT_STRING_EQUAL(at(&t, 4, "evaluations"), "3");
  CU_ASSERT_STRING_EQUAL(at(&t, 4, "staleness"), "1.5"); /* mean of 0 1 2 3 */
  ASSERT_CLOSE(cell_number(&t, 4, "kl_exact"), 4.0 / 7.0, 1e-15);
  CU_ASSERT_STRING_EQUAL(at(&t, 4, "log_iw_variance_pq"), "6"); /* median of -inf 4 8 12 */
  CU_ASSERT_STRING_EQUAL(at(&t, 4, "kl_k3_seq"), "");
  CU_ASSERT_STRING_EQUAL(at(&t, 4, "samples_per_s"), "8");
  ASSERT_CLOSE(cell_number(&t, 4, "staleness_mean"), 2.0 / 3.0, 1e-15);
  /* the repeat counts in no cell; cells count through the studies of the file */
  for (size_t r = 0; r < MADE + 2; ++r) {
    const int repeat = r == MADE;
    CU_ASSERT_STRING_EQUAL(at(&t, r, "is_repeat"), repeat ? "true" : "false");
    CU_ASSERT_STRING_EQUAL(at(&t, r, "cell"), repeat ? "" : r < 3 ? "1" : r < MADE ? "2" : "3");
  }
  sheet_fini(&t);
  store_close(s);
  unlink(path);
}

/* A number, as CSV and as the JSON of analyze have it. */
static void check_number(const sheet *t, size_t row, const char *name, const cJSON *wanted) {
  char text[NUMBER_TEXT_SIZE];
  CU_ASSERT_PTR_NOT_NULL_FATAL(wanted);
  if (cJSON_IsNull(wanted))
    CU_ASSERT(strspn(at(t, row, name), "-inf") == strlen(at(t, row, name)))
  else
    CU_ASSERT_STRING_EQUAL(at(t, row, name), number_text(wanted->valuedouble, text));
}

static void check_interval(const sheet *t, size_t row, const char *name, const cJSON *cell) {
  char end[64];
  const cJSON *wanted = member_at(cell, name);
  check_number(t, row, name, member_at(wanted, "iqm"));
  snprintf(end, sizeof end, "%s_low", name);
  check_number(t, row, end, member_at(wanted, "low"));
  snprintf(end, sizeof end, "%s_high", name);
  check_number(t, row, end, member_at(wanted, "high"));
}

static void check_cell(const sheet *t, size_t row, const cJSON *cell) {
  static const char *const intervals[] = {"best",      "last",     "best_to_last",
                                          "staleness", "kl_exact", "log_iw_variance_pq"};
  static const char *const numbers[] = {"done", "diverged", "failed", "samples_per_s"};
  const cJSON *delay = member_at(cell, "axes.cluster.max_delay");
  for (size_t i = 0; i < sizeof intervals / sizeof *intervals; ++i)
    check_interval(t, row, intervals[i], cell);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i)
    check_number(t, row, numbers[i], member_at(cell, numbers[i]));
  check_number(t, row, "optimizer.lr", member_at(cell, "lr"));
  check_number(t, row, "cluster.max_delay", delay);
  CU_ASSERT_STRING_EQUAL(at(t, row, "algorithm"), text_at(cell, "algorithm"));
}

TEST(cells_are_what_analyze_says) {
  store *s = made_file();
  sheet t;
  table *said = table_document();
  CU_ASSERT_EQUAL_FATAL(analyze_study(said, s, NULL, NULL), GL_OK);
  cJSON *json = read_table(said);
  table_free(said);
  sheet_export(&t, s, "cells");
  size_t row = 0;
  const cJSON *study, *cell;
  cJSON_ArrayForEach(study, member_at(json, "studies")) {
    cJSON_ArrayForEach(cell, member_at(study, "cells")) {
      CU_ASSERT_STRING_EQUAL(at(&t, row, "study"), text_at(study, "study"));
      CU_ASSERT_EQUAL(cell_number(&t, row, "cell"), (double)(row + 1));
      check_cell(&t, row++, cell);
    }
  }
  CU_ASSERT_EQUAL(row, 3);
  CU_ASSERT_EQUAL(rows(&t), 3);
  ASSERT_CLOSE(cell_number(&t, 0, "best"), 0.505, 1e-12); /* 0.50 and 0.51; the third run failed */
  CU_ASSERT_EQUAL(cell_number(&t, 0, "failed"), 1);
  cJSON_Delete(json);
  sheet_fini(&t);
  store_close(s);
  unlink(path);
}

TEST(an_empty_study_has_tables_with_a_header_only) {
  store *s = NULL;
  sheet t;
  unlink(path);
  CU_ASSERT_EQUAL_FATAL(store_open(&s, path, STORE_WRITE, NULL), GL_OK);
  for (size_t i = 0; study_export_at(i) != NULL; ++i) {
    sheet_export(&t, s, study_export_at(i)->name);
    CU_ASSERT_EQUAL(rows(&t), 0);
    sheet_fini(&t);
  }
  store_close(s);
  unlink(path);
}

/* --- a folder --- */

static char *read_file(const char *name) {
  char *text = NULL, file[128];
  size_t size = 0;
  snprintf(file, sizeof file, "%s/%s", folder, name);
  if (csv_load(&text, &size, file, NULL) != GL_OK) return NULL;
  char *ended = realloc(text, size + 1);
  CU_ASSERT_PTR_NOT_NULL_FATAL(ended);
  ended[size] = '\0';
  return ended;
}

/* How many files of the folder there were; the folder goes with them. */
static size_t remove_folder(void) {
  size_t n = 0;
  char file[128];
  for (size_t i = 0; study_export_at(i) != NULL; ++i)
    for (int f = 0; f < RECORDS_FORMAT_COUNT; ++f) {
      snprintf(file, sizeof file, "%s/%s.%s", folder, study_export_at(i)->name,
               records_format_name((records_format)f));
      n += unlink(file) == 0;
    }
  snprintf(file, sizeof file, "%s/datapackage.json", folder);
  n += unlink(file) == 0;
  CU_ASSERT_EQUAL(rmdir(folder), 0); /* nothing else is left in it */
  return n;
}

static void check_resource(const cJSON *resource, store *s) {
  sheet t;
  const char *name = text_at(resource, "name");
  char *text = read_file(text_at(resource, "path"));
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  sheet_export(&t, s, name);
  CU_ASSERT_STRING_EQUAL(text, t.text);
  CU_ASSERT_EQUAL(number_at(resource, "bytes"), (double)strlen(text));
  const cJSON *schema = member_at(resource, "schema"), *key, *reference,
              *fields = member_at(schema, "fields");
  CU_ASSERT_EQUAL_FATAL((size_t)cJSON_GetArraySize(fields), t.columns);
  for (size_t c = 0; c < t.columns; ++c) {
    const cJSON *declared = cJSON_GetArrayItem(fields, (int)c);
    CU_ASSERT_STRING_EQUAL(text_at(declared, "name"), t.cell[c]);
    CU_ASSERT(cJSON_IsString(member_at(declared, "type")));
  }
  cJSON_ArrayForEach(key, member_at(schema, "primaryKey"))
      CU_ASSERT(is_column(&t, cJSON_GetStringValue(key)));
  cJSON_ArrayForEach(reference, member_at(schema, "foreignKeys"))
      CU_ASSERT(is_column(&t, text_at(reference, "fields")));
  CU_ASSERT_EQUAL(cJSON_GetArraySize(member_at(schema, "foreignKeys")),
                  (is_column(&t, "key") && strcmp(name, "runs") != 0) +
                      (strcmp(name, "summary") == 0));
  sheet_fini(&t);
  free(text);
}

TEST(a_folder_holds_every_table_and_their_description) {
  store *s = made_file();
  for (int again = 0; again < 2; ++again) ASSERT_OK(study_export_all(s, RECORDS_CSV, folder, &err));
  char *text = read_file("datapackage.json");
  cJSON *package = cJSON_Parse(text);
  const cJSON *resource, *resources = member_at(package, "resources");
  int n = 0;
  for (size_t i = 0; study_export_at(i) != NULL; ++i)
    n += !study_export_at(i)->depends_on_execution;
  CU_ASSERT_EQUAL(cJSON_GetArraySize(resources), n);
  cJSON_ArrayForEach(resource, resources) check_resource(resource, s);
  CU_ASSERT_PTR_NULL(strstr(text, "execution"));
  cJSON_Delete(package);
  free(text);
  CU_ASSERT_EQUAL(remove_folder(), (size_t)n + 1);
  ASSERT_OK(study_export_all(s, RECORDS_JSONL, folder, &err));
  text = read_file("cells.jsonl");
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  CU_ASSERT_EQUAL(strncmp(text, "{\"cell\":1,\"study\":\"made\",", 25), 0);
  free(text);
  CU_ASSERT_EQUAL(remove_folder(), (size_t)n + 1);
  store_close(s);
  unlink(path);
}

TEST(a_folder_that_cannot_be_filled_is_left_as_it_was) {
  store *s = made_file();
  gl_error err = {0};
  char in_the_way[128];
  snprintf(in_the_way, sizeof in_the_way, "%s/tuned.csv", folder);
  CU_ASSERT(mkdir(folder, 0777) == 0 && mkdir(in_the_way, 0777) == 0);
  CU_ASSERT_EQUAL(study_export_all(s, RECORDS_CSV, folder, &err), GL_EIO);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "tuned.csv"));
  CU_ASSERT_EQUAL(rmdir(in_the_way), 0);
  CU_ASSERT_EQUAL(remove_folder(), 0);
  gl_error_clear(&err);
  CU_ASSERT_EQUAL(study_export_all(s, RECORDS_CSV, path, &err), GL_EIO); /* a file */
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, path));
  store_close(s);
  unlink(path);
}
