/* Builds series from the columns of a sheet. */
#include "analysis/import/read.h"

#include "analysis/import/metric_names.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/base/records.h"
#include "core/config/config.h"
#include "core/config/fields.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef enum column_role {
  IS_VALUES, /* metrics or runs, depending on the table's shape */
  IS_STEP,
  IS_RUN,
  IS_REPLICATE, /* a second name, which distinguishes runs of one algorithm */
  IS_SEED,
  IS_BENCHMARK,
  IS_METRIC,
  IS_VALUE,
  IS_SETTING,
  IS_CHOSEN,
  IS_IGNORED
} column_role;

typedef struct shape {
  const sheet *from;
  const shape_request *request;
  column_role *of;                                             /* [n_columns] */
  size_t step, run, replicate, seed, benchmark, metric, value; /* columns; n_columns: absent */
  series_table *table;
  size_t n_without_step; /* lines */
  hash_table known;      /* index of the series by key */
  gl_error *err;
} shape;

/* --- headings --- */

static const char *const step_names[] = {"step",       "_step",        "steps",     "global_step",
                                         "update",     "updates",      "iteration", "iter",
                                         "train_step", "trainer_step", NULL};
static const char *const algorithm_names[] = {"algorithm", "algo", "method", NULL};
static const char *const run_names[] = {"run", "run_name", "name", "series", "experiment", NULL};
static const char *const seed_names[] = {"seed", NULL};
static const char *const benchmark_names[] = {"benchmark", "task",  "dataset",
                                              "eval_set",  "label", NULL};
static const char *const metric_names[] = {"metric", "variable", "quantity", NULL};
static const char *const value_names[] = {"value", NULL};
/* Bookkeeping columns of W&B, pandas and gepolab. */
static const char *const ignored_names[] = {"_runtime", "_timestamp", "_wandb",    "ordinal", "key",
                                            "study",    "sampler",    "wall_time", NULL};

static bool is_heading_of(const char *heading, const char *const *names) {
  for (; *names; names++)
    if (strcasecmp(heading, *names) == 0) return true;
  return false;
}

/* "timing_s/step" is the seconds of a step, not its number. */
static bool is_duration(const char *heading) {
  static const char *const folders[] = {"time/", "timing/", "timing_s/"};
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
    if (strncmp(heading, folders[i], strlen(folders[i])) == 0) return true;
  return false;
}

static column_role role_of(const char *heading) {
  const char *slash = strrchr(heading, '/'), *last = slash ? slash + 1 : heading;
  if (is_heading_of(last, step_names) && !is_duration(heading)) return IS_STEP;
  const field *f = fields_named(heading);
  if (f && strchr(heading, '.'))
    return f->role == ROLE_CHOSEN || strcmp(heading, "optimizer.lr") == 0 ? IS_CHOSEN : IS_SETTING;
  if (strchr(heading, '.') && cfg_path_is_inside(heading, "algorithm")) return IS_SETTING;
  if (is_heading_of(heading, algorithm_names) || is_heading_of(heading, run_names)) return IS_RUN;
  if (is_heading_of(heading, seed_names)) return IS_SEED;
  if (is_heading_of(heading, benchmark_names)) return IS_BENCHMARK;
  if (is_heading_of(heading, metric_names)) return IS_METRIC;
  if (is_heading_of(heading, value_names)) return IS_VALUE;
  return is_heading_of(heading, ignored_names) ? IS_IGNORED : IS_VALUES;
}

/* First column with that role; n_columns if there is none. */
static size_t column_with_role(const shape *s, column_role wanted) {
  size_t i = 0;
  while (i < s->from->n_columns && s->of[i] != wanted) i++;
  return i;
}

static void list_headings(const shape *s, char *list, size_t size) {
  size_t n = 0;
  *list = '\0';
  for (size_t i = 0; i < s->from->n_columns && n < size; i++)
    n += (size_t)snprintf(list + n, size - n, "%s%s", i ? ", " : "",
                          *s->from->heading[i] ? s->from->heading[i] : "''");
  if (n >= size) strcpy(list + size - 4, "...");
}

static gl_status fail_heading(const shape *s, const char *what) {
  char list[400];
  list_headings(s, list, sizeof list);
  return gl_fail(s->err, GL_EINPUT, "%s:1: %s; the columns are: %s", s->from->name, what, list);
}

/* Chooses the step column: the requested one, the only one with such a name, or pandas' first
 * column without a heading. Among several names, one that ends in global_step is preferred, then
 * "step". */
static gl_status choose_step(shape *s) {
  static const char *const preferred[] = {"global_step", "step", NULL};
  const size_t n = s->from->n_columns;
  char what[IMPORT_MOST_NAME + 80];
  s->step = n;
  if (s->request->step) {
    for (size_t i = 0; i < n; i++)
      if (strcmp(s->from->heading[i], s->request->step) == 0) s->step = i;
    snprintf(what, sizeof what, "no column is headed '%s'", s->request->step);
    if (s->step == n) return fail_heading(s, what);
  }
  for (size_t k = 0; s->step == n && preferred[k]; k++)
    for (size_t i = 0; s->step == n && i < n; i++) {
      const char *slash = strrchr(s->from->heading[i], '/');
      if (is_duration(s->from->heading[i])) continue;
      if (strcasecmp(slash ? slash + 1 : s->from->heading[i], preferred[k]) == 0) s->step = i;
    }
  if (s->step == n) s->step = column_with_role(s, IS_STEP);
  if (s->step == n && n > 1 && *s->from->heading[0] == '\0') s->step = 0;
  if (s->step == n)
    return fail_heading(s, "no column is called step, so it is not clear along which one the "
                           "series run; name it: --x COLUMN");
  for (size_t i = 0; i < n; i++)
    if (s->of[i] == IS_STEP || *s->from->heading[i] == '\0') s->of[i] = IS_IGNORED;
  s->of[s->step] = IS_STEP;
  return GL_OK;
}

/* If several columns name runs, the algorithm's column is the name, and another distinguishes its
 * runs. */
static void choose_run(shape *s) {
  s->run = s->replicate = s->from->n_columns;
  for (size_t i = 0; i < s->from->n_columns; i++) {
    if (s->of[i] != IS_RUN) continue;
    const int is_algorithm = is_heading_of(s->from->heading[i], algorithm_names);
    if (s->run == s->from->n_columns || is_algorithm) {
      if (s->run < s->from->n_columns) s->replicate = s->run;
      s->run = i;
    } else {
      s->replicate = i;
    }
  }
  if (s->replicate < s->from->n_columns) s->of[s->replicate] = IS_REPLICATE;
}

static gl_status refuse_repeated_headings(const shape *s) {
  for (size_t i = 0; i < s->from->n_columns; i++)
    for (size_t k = 0; k < i; k++)
      if (strcmp(s->from->heading[i], s->from->heading[k]) == 0) {
        char what[IMPORT_MOST_NAME + 80];
        snprintf(what, sizeof what, "two columns are headed '%s'; name them apart",
                 s->from->heading[i]);
        return fail_heading(s, what);
      }
  return GL_OK;
}

/* Determines whether columns without a role are metrics or runs. */
static gl_status choose_value_columns(const shape *s, int *are_metrics) {
  size_t named = 0, unnamed = 0, first = 0;
  for (size_t i = 0; i < s->from->n_columns; i++) {
    if (s->of[i] != IS_VALUES) continue;
    if (quantity_is_named(s->from->heading[i]))
      named++;
    else if (unnamed++ == 0)
      first = i;
  }
  *are_metrics = s->run < s->from->n_columns || named > 0;
  if (s->request->columns != COLUMNS_BY_NAME)
    *are_metrics = s->request->columns == COLUMNS_ARE_METRICS;
  else if (s->run == s->from->n_columns && named > 0 && unnamed > 0 && !s->from->is_json) {
    char what[IMPORT_MOST_NAME + 160];
    snprintf(what, sizeof what,
             "some columns are named as metrics are, and '%s' is not; say what the columns are: "
             "--columns runs or --columns metrics",
             s->from->heading[first]);
    return fail_heading(s, what);
  }
  if (s->value == s->from->n_columns && named + unnamed == 0)
    return fail_heading(s, "no column holds numbers beside the step; export some");
  return GL_OK;
}

static gl_status read_sheet_headings(shape *s) {
  const size_t n = s->from->n_columns;
  gl_status status = refuse_repeated_headings(s);
  for (size_t i = 0; i < n; i++) s->of[i] = role_of(s->from->heading[i]);
  if (status == GL_OK) status = choose_step(s);
  if (status != GL_OK) return status;
  choose_run(s);
  s->seed = column_with_role(s, IS_SEED);
  s->benchmark = column_with_role(s, IS_BENCHMARK);
  s->metric = column_with_role(s, IS_METRIC);
  s->value = column_with_role(s, IS_VALUE);
  if (s->metric < n && s->value == n)
    return fail_heading(s, "there is a column 'metric' and none 'value'; add it");
  return GL_OK;
}

/* --- series --- */

/* The key of a series: all fields except its values. */
static uint64_t series_hash(const series *w) {
  const char *const texts[] = {w->run, w->metric, w->label, w->settings, w->chosen};
  uint64_t h = HASH_64_START;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) h = hash_64_text(h, texts[i]);
  return hash_64(h, &w->seed, sizeof w->seed);
}

static bool has_series_key(const void *table, uint64_t i, const void *key) {
  const series *s = &((const series_table *)table)->series[i], *w = key;
  return strcmp(s->run, w->run) == 0 && strcmp(s->metric, w->metric) == 0 &&
         strcmp(s->label, w->label) == 0 && strcmp(s->settings, w->settings) == 0 &&
         strcmp(s->chosen, w->chosen) == 0 && s->has_seed == w->has_seed && s->seed == w->seed;
}

/* Finds the series with that key, or adds it. */
static gl_status find_series(shape *s, const series *w, size_t row, series **out) {
  series_table *t = s->table;
  const uint64_t hash = series_hash(w);
  const uint64_t *known = hash_table_find(&s->known, hash, has_series_key, t, w);
  if (known == NULL) {
    if (t->n_series == IMPORT_MOST_SERIES)
      return sheet_fail(s->from, row, s->step, s->err,
                        "there are more than 8192 series; is '%s' really the name of a run?",
                        s->run < s->from->n_columns ? s->from->heading[s->run] : "the heading");
    gl_status status = series_add(t, w, s->err);
    if (status != GL_OK) return status;
    if (!hash_table_add(&s->known, hash, t->n_series - 1)) return gl_fail_memory(s->err, "series");
  }
  *out = &t->series[known ? *known : t->n_series - 1];
  return GL_OK;
}

/* --- cells of a row --- */

/* *value is NaN if the row has no number there. Text is an error. */
static gl_status number_in_cell(const shape *s, size_t row, size_t column, double *value) {
  const char *text = sheet_text(s->from, row, column);
  *value = NAN;
  if (!text || csv_number(text, value)) return GL_OK;
  if (csv_overflows(text))
    return sheet_fail(
        s->from, row, column, s->err,
        "'%.60s' in column '%.60s' is more than a double holds; write inf for a value "
        "that is not finite, or leave the cell empty",
        text, s->from->heading[column]);
  if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
    *value = text[0] == 't';
    return GL_OK;
  }
  return sheet_fail(s->from, row, column, s->err,
                    "'%.60s' in column '%.60s' is not a number; write decimal numbers, or "
                    "export without that column",
                    text, s->from->heading[column]);
}

static gl_status read_seed(const shape *s, size_t row, series *w) {
  const char *text = s->seed < s->from->n_columns ? sheet_text(s->from, row, s->seed) : NULL;
  char *end = NULL;
  if (!text) return GL_OK;
  errno = 0;
  w->seed = strtoull(text, &end, 10);
  w->has_seed = 1;
  if (*text >= '0' && *text <= '9' && *end == '\0' && errno == 0) return GL_OK;
  return sheet_fail(s->from, row, s->seed, s->err, "the seed '%.40s' is not a whole number", text);
}

/* Returns the cells of columns with that role as a JSON object, allocated; "" if there are none;
 * NULL if memory runs out. */
static char *settings_at(const shape *s, size_t row, column_role wanted) {
  cJSON *o = NULL;
  int ok = 1;
  for (size_t i = 0; i < s->from->n_columns && ok; i++) {
    const char *text = s->of[i] == wanted ? sheet_text(s->from, row, i) : NULL;
    double number;
    if (!text) continue;
    if (!o) o = cJSON_CreateObject();
    ok = o && (csv_number(text, &number) && isfinite(number)
                   ? json_add_number(o, s->from->heading[i], number) != NULL
                   : json_add_string(o, s->from->heading[i], text) != NULL);
  }
  char *made = !ok ? NULL : o ? cJSON_PrintUnformatted(o) : strdup("");
  cJSON_Delete(o);
  return made;
}

static gl_status add_series_value(shape *s, const series *w, size_t row, size_t column,
                                  double step) {
  double value;
  series *to = NULL;
  gl_status status = number_in_cell(s, row, column, &value);
  if (status != GL_OK || !sheet_text(s->from, row, column)) return status;
  status = find_series(s, w, row, &to);
  return status == GL_OK ? series_append(to, step, value, s->from->line[row], s->err) : status;
}

enum { SECOND_NAME = 2 * IMPORT_MOST_NAME + 2 };

/* The run's name in a table that names runs; if there is no seed, its second name is appended. */
static gl_status name_run(const shape *s, size_t row, series *w, char own[SECOND_NAME]) {
  const char *name = sheet_text(s->from, row, s->run);
  const char *second =
      s->replicate < s->from->n_columns ? sheet_text(s->from, row, s->replicate) : NULL;
  if (!name)
    return sheet_fail(s->from, row, s->run, s->err, "the line has no name in column '%.60s'",
                      s->from->heading[s->run]);
  if (strlen(name) > IMPORT_MOST_NAME || (second && strlen(second) > IMPORT_MOST_NAME))
    return sheet_fail(s->from, row, s->run, s->err, "the name is longer than 1000 bytes");
  if (second && !w->has_seed && strcmp(name, second) != 0)
    snprintf(own, SECOND_NAME, "%s %s", name, second);
  else
    snprintf(own, SECOND_NAME, "%s", name);
  w->run = own;
  return GL_OK;
}

static gl_status read_row_values(shape *s, size_t row, series *w, int are_metrics, double step) {
  const size_t n = s->from->n_columns;
  if (s->value < n) {
    const char *name = s->metric < n ? sheet_text(s->from, row, s->metric) : "";
    w->metric = name ? name : "";
    if (strlen(w->metric) > IMPORT_MOST_NAME)
      return sheet_fail(s->from, row, s->metric, s->err, "the name is longer than 1000 bytes");
    return add_series_value(s, w, row, s->value, step);
  }
  gl_status status = GL_OK;
  const char *run = w->run;
  for (size_t i = 0; i < n && status == GL_OK; i++) {
    if (s->of[i] != IS_VALUES) continue;
    w->metric = are_metrics ? s->from->heading[i] : "";
    w->run = are_metrics ? run : s->from->heading[i];
    status = add_series_value(s, w, row, i, step);
  }
  return status;
}

static gl_status read_sheet_row(shape *s, size_t row, const char *file_run, int are_metrics) {
  char own[SECOND_NAME];
  series w = {.run = file_run, .metric = "", .label = ""};
  double step;
  if (sheet_text(s->from, row, s->step) == NULL) { /* an evaluation of W&B's, for example */
    ++s->n_without_step;
    return GL_OK;
  }
  gl_status status = number_in_cell(s, row, s->step, &step);
  if (status == GL_OK && !isfinite(step))
    status = sheet_fail(s->from, row, s->step, s->err, "the line has no step in column '%.60s'",
                        s->from->heading[s->step]);
  if (status == GL_OK) status = read_seed(s, row, &w);
  if (status == GL_OK && s->run < s->from->n_columns) status = name_run(s, row, &w, own);
  if (status != GL_OK) return status;
  if (s->benchmark < s->from->n_columns && sheet_text(s->from, row, s->benchmark))
    w.label = sheet_text(s->from, row, s->benchmark);
  if (strlen(w.label) > IMPORT_MOST_NAME)
    return sheet_fail(s->from, row, s->benchmark, s->err, "the name is longer than 1000 bytes");
  char *settings = settings_at(s, row, IS_SETTING);
  char *chosen = settings_at(s, row, IS_CHOSEN);
  w.settings = settings, w.chosen = chosen;
  if (settings && chosen)
    status = read_row_values(s, row, &w, are_metrics, step);
  else
    status = gl_fail_memory(s->err, "the settings of a run");
  free(settings), free(chosen);
  return status;
}

/* --- entry points --- */

/* Name for the only run of a file without run names: "kl_run" for "logs/kl_run.csv". */
static char *run_of_file(arena *m, const char *path) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  const char *dot = strrchr(name, '.');
  size_t n = dot && dot > name ? (size_t)(dot - name) : strlen(name);
  if (n > IMPORT_MOST_NAME) n = IMPORT_MOST_NAME;
  char *run = ARENA_ARRAY(m, char, n + 1);
  if (run) memcpy(run, name, n);
  return run;
}

/* Many lines have no step: names the columns that all lines have, one of which may be meant. */
static gl_status fail_lines_without_step(shape *s) {
  char list[300] = "";
  size_t n = 0;
  for (size_t i = 0; i < s->from->n_columns && n < sizeof list; i++) {
    size_t row = 0;
    while (row < s->from->n_rows && sheet_text(s->from, row, i) != NULL) row++;
    if (row == s->from->n_rows)
      n += (size_t)snprintf(list + n, sizeof list - n, "%s'%.60s'", n > 0 ? ", " : "",
                            s->from->heading[i]);
  }
  return gl_fail(
      s->err, GL_EINPUT,
      "%s: %zu of %zu lines have no step in column '%.60s'; name another, --x COLUMN%s%s",
      s->from->name, s->n_without_step, s->from->n_rows, s->table->axis,
      n > 0 ? "; in all lines are: " : "; no column is in all lines", list);
}

static gl_status read_series_of_sheet(shape *s) {
  int are_metrics = 0;
  gl_status status = read_sheet_headings(s);
  if (status == GL_OK) status = choose_value_columns(s, &are_metrics);
  if (status != GL_OK) return status;
  arena *m = &s->table->memory;
  const char *file_run = run_of_file(m, s->from->name);
  s->table->axis = arena_text(m, s->from->heading[s->step]);
  status = arena_check(m, "series", s->err);
  for (size_t row = 0; row < s->from->n_rows && status == GL_OK; row++)
    status = read_sheet_row(s, row, file_run, are_metrics);
  if (status == GL_OK && s->n_without_step > s->from->n_rows / 4)
    status = fail_lines_without_step(s);
  if (status == GL_OK && s->n_without_step > 0)
    status = series_note(s->table, s->err,
                         "%s: %zu lines have no step in column '%.60s' and were left out",
                         s->from->name, s->n_without_step, s->table->axis);
  if (status == GL_OK && s->from->is_cut) status = series_note_cut(s->table, s->from->name, s->err);
  if (status == GL_OK && s->table->n_series == 0)
    status = fail_heading(s, "there is no number in it beside the step");
  return status;
}

gl_status shape_series(series_table **out, const sheet *s, const shape_request *request,
                       gl_error *err) {
  *out = NULL;
  shape r = {.from = s, .request = request, .err = err, .table = series_table_new()};
  r.of = r.table ? ARENA_ARRAY(&r.table->memory, column_role, s->n_columns) : NULL;
  if (r.table) r.table->n_left_out = s->n_left_out;
  gl_status status = r.of ? read_series_of_sheet(&r) : gl_fail_memory(err, "series");
  hash_table_fini(&r.known);
  if (status == GL_OK)
    *out = r.table;
  else
    series_table_free(r.table);
  return status;
}
