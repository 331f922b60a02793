/* Loads a study for its report: results, missing runs, and queries on its file. */
#include "core/base/array.h"
#include "core/base/json.h"
#include "core/store/store.h"
#include "experiments/base/memory.h"
#include "experiments/report/study_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- queries --- */

static gl_status each_record(store *from, const char *sql, const char *study, query_record *take,
                             void *context, gl_error *err) {
  sqlite3 *db = store_handle(from);
  sqlite3_stmt *q = NULL;
  gl_status status = GL_OK;
  int code = sqlite3_prepare_v2(db, sql, -1, &q, NULL);
  if (code == SQLITE_OK && study != NULL) code = sqlite3_bind_text(q, 1, study, -1, SQLITE_STATIC);
  if (code == SQLITE_OK) code = SQLITE_ROW;
  while (status == GL_OK && code == SQLITE_ROW && (code = sqlite3_step(q)) == SQLITE_ROW)
    status = take(context, q, err);
  if (status == GL_OK && code != SQLITE_DONE)
    status = gl_fail(err, GL_EIO, "the study cannot be read: %s; is the file damaged?",
                     sqlite3_errmsg(db));
  sqlite3_finalize(q);
  return status;
}

gl_status query_each(store *from, const char *const *tables, const char *sql, const char *study,
                     query_record *take, void *context, gl_error *err) {
  gl_status status = store_begin_reading(from, err);
  if (status != GL_OK) return status;
  status = store_verify(from, tables, err);
  if (status == GL_OK) status = each_record(from, sql, study, take, context, err);
  store_end_reading(from);
  return status;
}

const char *query_text(sqlite3_stmt *record, int column) {
  const char *text = (const char *)sqlite3_column_text(record, column);
  return text != NULL ? text : "";
}

double query_number(sqlite3_stmt *record, int column) {
  return sqlite3_column_type(record, column) == SQLITE_NULL ? NAN
                                                            : sqlite3_column_double(record, column);
}

/* --- words --- */

char *study_seeds_text(const uint64_t *seeds, size_t n) {
  char *text = NULL;
  size_t size = 0;
  FILE *to = must_have(open_memstream(&text, &size), "the seeds of a study");
  for (size_t i = 0, k; i < n; i = k + 1) {
    for (k = i; k + 1 < n && seeds[k + 1] == seeds[k] + 1;) ++k;
    if (k < i + 2) k = i; /* ranges have at least three seeds; two are listed one by one */
    fprintf(to, "%s%llu", i > 0 ? ", " : "", (unsigned long long)seeds[i]);
    if (k > i) fprintf(to, " to %llu", (unsigned long long)seeds[k]);
  }
  must_succeed(fclose(to) == 0, "the seeds of a study");
  return text;
}

const char *study_setting(const report_study *t, size_t group) {
  const char *heading = t->r->groups[group].heading;
  return *heading ? heading : "the only setting";
}

int has_runs(const report_study *t) {
  return t->r != NULL;
}

int has_grid(const report_study *t) {
  return has_runs(t) || t->is_planned;
}

/* --- cells with missing runs --- */
/* Missing are the runs of the plan that the study does not contain; without a plan, those of the
 * grid that its runs span. */

/* Adds a gap without seeds; takes ownership of setting. */
static incomplete_cell *add_incomplete_cell(report_study *t, const char *algorithm, char *setting) {
  incomplete_cell *cell = MUST_ADD(t->incomplete, t->n_incomplete, "the missing runs");
  cell->algorithm = must_copy(algorithm, "the missing runs");
  cell->setting = setting;
  return cell;
}

static void add_missing_seed(report_study *t, incomplete_cell *cell, uint64_t seed) {
  *MUST_ADD(cell->seeds, cell->n, "the missing runs") = seed;
  ++t->missing;
}

/* --- missing runs according to the plan --- */

/* Formats {"cluster.max_delay":600} as "max delay 600 s", with the labels used for existing runs.
 */
static char *setting_words(const report_study *t, const char *swept) {
  char *text = NULL;
  size_t size = 0;
  cJSON *tree = json_tree_of(swept);
  FILE *to = must_have(open_memstream(&text, &size), "the missing runs");
  for (const cJSON *i = tree ? tree->child : NULL; i != NULL; i = i->next) {
    const size_t a = t->r != NULL ? results_axis(t->r, i->string) : 0;
    const axis *known = t->r != NULL && a < t->r->axes.n ? &t->r->axes.axis[a] : NULL;
    char *value = must_have(cJSON_PrintUnformatted(i), "the missing runs");
    fprintf(to, "%s%s %s", i == tree->child ? "" : ", ", known ? known->label : i->string,
            cJSON_IsString(i) ? i->valuestring : value);
    if (known != NULL && *known->unit && cJSON_IsNumber(i)) fprintf(to, " %s", known->unit);
    free(value);
  }
  if (tree == NULL || tree->child == NULL) fputs("the only setting", to);
  cJSON_Delete(tree);
  must_succeed(fclose(to) == 0, "the missing runs");
  return text;
}

/* Adds a missing run (algorithm, swept fields, seed) to its incomplete cell. */
static gl_status take_missing(void *context, sqlite3_stmt *record, gl_error *err) {
  report_study *t = context;
  const char *algorithm = query_text(record, 0);
  char *setting = setting_words(t, query_text(record, 1));
  incomplete_cell *cell = NULL;
  (void)err;
  for (size_t i = 0; i < t->n_incomplete; ++i)
    if (strcmp(t->incomplete[i].algorithm, algorithm) == 0 &&
        strcmp(t->incomplete[i].setting, setting) == 0)
      cell = &t->incomplete[i];
  if (cell != NULL)
    free(setting);
  else
    cell = add_incomplete_cell(t, algorithm, setting);
  add_missing_seed(t, cell, (uint64_t)sqlite3_column_int64(record, 2));
  return GL_OK;
}

/* Finds the runs of the plan that the study does not contain. Failed runs are not missing; they are
 * reported as failed. */
static gl_status find_by_plan(report_study *t, gl_error *err) {
  static const char *const tables[] = {"plan", NULL};
  return query_each(t->from, tables,
                    "SELECT algorithm, swept, seed FROM plan p WHERE study = ?1 AND tuning = 0 AND"
                    " NOT EXISTS (SELECT 1 FROM runs r WHERE r.study = ?1 AND r.place = p.place)"
                    " ORDER BY ordinal, place",
                    t->name, take_missing, t, err);
}

/* --- missing runs according to the grid --- */

static int has_seed(const report_study *t, const results_cell *c, uint64_t seed) {
  for (size_t i = 0; i < c->n; ++i)
    if (t->r->runs[c->first + i].seed == seed) return 1;
  return 0;
}

/* Without a plan: expects a run for every combination of algorithm, setting and seed in the file.
 */
static void find_by_grid(report_study *t) {
  for (size_t i = 0; i < t->r->n_groups * t->r->n_algorithms; ++i) {
    const results_cell *c = &t->r->cells[i];
    incomplete_cell *cell = NULL;
    for (size_t k = 0; k < t->n_seeds; ++k) {
      if (has_seed(t, c, t->seeds[k])) continue;
      if (cell == NULL)
        cell = add_incomplete_cell(t, t->r->algorithms[c->algorithm],
                                   must_copy(study_setting(t, c->group), "the missing runs"));
      add_missing_seed(t, cell, t->seeds[k]);
    }
  }
}

static gl_status find_incomplete_cells(report_study *t, gl_error *err) {
  study_progress progress;
  gl_status status = store_progress(t->from, t->name, &progress, err);
  if (status != GL_OK) return status;
  t->is_planned = progress.planned > 0;
  t->superseded = progress.superseded;
  if (t->is_planned) return find_by_plan(t, err);
  if (t->r != NULL) find_by_grid(t);
  return GL_OK;
}

/* --- recipes stored in the file --- */

static gl_status take_recipe(void *context, sqlite3_stmt *record, gl_error *err) {
  report_study *t = context;
  (void)err;
  *MUST_ADD(t->recipes, t->n_recipes, "the recipe of a study") =
      must_copy(query_text(record, 0), "the recipe of a study");
  return GL_OK;
}

static gl_status find_recipes(report_study *t, gl_error *err) {
  static const char *const tables[] = {"sweeps", NULL};
  return query_each(t->from, tables,
                    "SELECT DISTINCT recipe FROM sweeps WHERE study = ?1 ORDER BY recipe_hash",
                    t->name, take_recipe, t, err);
}

/* --- a study --- */

static void find_seeds(report_study *t) {
  t->seeds = must_alloc(t->r->n_runs + 1, sizeof *t->seeds, "the seeds of a study");
  for (size_t i = 0; i < t->r->n_runs; ++i) t->seeds[i] = t->r->runs[i].seed;
  qsort(t->seeds, t->r->n_runs, sizeof *t->seeds, order_unsigned);
  for (size_t i = 0; i < t->r->n_runs; ++i)
    if (t->n_seeds == 0 || t->seeds[t->n_seeds - 1] != t->seeds[i])
      t->seeds[t->n_seeds++] = t->seeds[i];
}

static void count_runs(report_study *t) {
  for (size_t i = 0; i < t->r->n_runs; ++i) {
    t->done += t->r->runs[i].status == RUN_DONE;
    t->diverged += t->r->runs[i].status == RUN_DIVERGED;
    t->failed += t->r->runs[i].status == RUN_FAILED;
  }
  for (size_t i = 0; i < t->s.n_cells; ++i) {
    t->collapsed += t->s.cells[i].collapsed;
    t->not_finite += t->s.cells[i].not_finite;
  }
}

static gl_status load_runs(report_study *t, gl_error *err) {
  results *r = NULL;
  gl_status status = results_load(&r, t->from, t->name, err);
  if (status != GL_OK) return status;
  status = summary_init(&t->s, r, err);
  if (status != GL_OK) {
    results_free(r);
    return status;
  }
  t->r = r;
  status = verdicts_init(&t->v, &t->s, err);
  if (status != GL_OK) return status;
  count_runs(t);
  find_seeds(t);
  return GL_OK;
}

gl_status study_init(report_study *t, const report_request *q, store *from, const char *name,
                     size_t number, gl_error *err) {
  *t = (report_study){.q = q, .from = from, .name = name};
  snprintf(t->id, sizeof t->id, "s%zu", number);
  study_progress progress;
  gl_status status = store_progress(from, name, &progress, err);
  if (status == GL_OK && progress.done + progress.diverged + progress.failed > 0)
    status = load_runs(t, err);
  if (status == GL_OK) status = find_incomplete_cells(t, err);
  return status == GL_OK ? find_recipes(t, err) : status;
}

void study_fini(report_study *t) {
  for (size_t i = 0; i < t->n_incomplete; ++i)
    free(t->incomplete[i].algorithm), free(t->incomplete[i].setting), free(t->incomplete[i].seeds);
  for (size_t i = 0; i < t->n_recipes; ++i) free(t->recipes[i]);
  free(t->incomplete), free(t->recipes), free(t->seeds);
  verdicts_fini(&t->v);
  if (t->r != NULL) summary_fini(&t->s);
  results_free(t->r);
  *t = (report_study){0};
}
