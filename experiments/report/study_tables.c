/* Sections read from tables of the study file: `rates`, `laboratory`, `provenance` and `recipe`. */
#include "core/base/json.h"
#include "experiments/base/memory.h"
#include "experiments/base/print_json.h"
#include "experiments/report/study_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static gl_status count_one(void *context, sqlite3_stmt *record, gl_error *err) {
  (void)record, (void)err;
  ++*(size_t *)context;
  return GL_OK;
}

/* Returns 1 if the query has at least one record. */
static int has_answer(const report_study *t, const char *const *tables, const char *sql) {
  size_t n = 0;
  return query_each(t->from, tables, sql, t->name, count_one, &n, NULL) == GL_OK && n > 0;
}

/* --- provenance --- */
/* Section `provenance`: the versions, commits, machines, dates and commands of the runs. */

static const char *const run_tables[] = {"runs", "provenance", "superseded", NULL};
#define RUNS                                                                                       \
  " FROM runs r LEFT JOIN provenance p ON p.hash = r.provenance WHERE r.study = ?1 AND r.key NOT " \
  "IN"                                                                                             \
  " (SELECT key FROM superseded)"

/* --- programs and machines --- */

/* Writes a commit and whether the files were modified. dirty: 1, 0, or NaN if unknown. */
static void write_commit(html *h, const char *source, double dirty) {
  if (*source == '\0') {
    html_cell(h, "–");
    return;
  }
  html_markup(h, "<td><code>"), html_textf(h, "%.12s", source), html_markup(h, "</code>");
  if (dirty == 1) html_markup(h, " <span class=\"missing\">with changes</span>");
  html_markup(h, "</td>");
}

/* Writes {"GSL":"2.7.1"} as words; anything else verbatim. */
static void write_libraries(html *h, const char *json) {
  cJSON *tree = json_tree_of(json);
  html_markup(h, "<td class=\"words\">");
  for (const cJSON *i = cJSON_IsObject(tree) ? tree->child : NULL; i != NULL; i = i->next)
    html_textf(h, "%s%s %s", i == tree->child ? "" : ", ", i->string,
               cJSON_IsString(i) ? i->valuestring : "");
  if (!cJSON_IsObject(tree)) html_text(h, *json ? json : "–");
  html_markup(h, "</td>");
  cJSON_Delete(tree);
}

static gl_status write_maker(void *context, sqlite3_stmt *record, gl_error *err) {
  html *h = context;
  (void)err;
  html_row_begin(h);
  html_row_head(h, query_text(record, 0));
  write_commit(h, query_text(record, 1), query_number(record, 2));
  html_cell(h, query_text(record, 3));
  html_cell_number(h, query_number(record, 4));
  html_cell_number(h, query_number(record, 5));
  html_cell_number(h, query_number(record, 6) / (1 << 20));
  html_cell(h, *query_text(record, 7) ? query_text(record, 7) : "–");
  write_libraries(h, query_text(record, 8));
  html_row_end(h);
  return GL_OK;
}

/* Writes a row for each combination of version, commit, machine, compiler and libraries that made
 * runs. */
static gl_status write_makers(html *h, const report_study *t, gl_error *err) {
  static const char *const heads[] = {"gepolab",  "commit",   "machine",
                                      "#runs",    "#hours",   "#most memory / MiB",
                                      "compiler", "libraries"};
  html_table_begin(h, "What made the runs", heads, 8);
  gl_status status = query_each(
      t->from, run_tables,
      "SELECT coalesce(p.version, r.code_version), p.source, p.dirty, coalesce(p.processor || ', '"
      " || p.system, r.machine), count(*), sum(r.wall_s) / 3600, max(r.peak_bytes), p.compiler,"
      " p.libraries" RUNS " GROUP BY 1, 2, 3, 4, 8, 9 ORDER BY 1, 2, 3, 4, 8, 9",
      t->name, write_maker, h, err);
  html_table_end(h);
  html_markup(h, "<p>Hours are those of all processes that made runs, added up.</p>\n");
  return status;
}

/* --- dates and commands --- */

static gl_status write_dates(void *context, sqlite3_stmt *record, gl_error *err) {
  html *h = context;
  (void)err;
  if (*query_text(record, 0) == '\0') return GL_OK;
  html_markup(h, "<p>The first run was finished at ");
  html_text(h, query_text(record, 0)), html_markup(h, ", the last at ");
  html_text(h, query_text(record, 1)), html_markup(h, ".</p>\n");
  return GL_OK;
}

typedef struct commands {
  html *h;
  size_t n;
} commands;

static gl_status write_command(void *context, sqlite3_stmt *record, gl_error *err) {
  commands *c = context;
  (void)err;
  if (c->n++ == 0)
    html_markup(c->h, "<p>The commands, with how many runs each has made:</p>\n"
                      "<pre class=\"wide\" tabindex=\"0\"><code>");
  html_textf(c->h, "%s  # %.0f\n", query_text(record, 0), query_number(record, 1));
  return GL_OK;
}

gl_status section_provenance(html *h, const report_study *t, gl_error *err) {
  commands c = {h, 0};
  gl_status status = write_makers(h, t, err);
  if (status == GL_OK)
    status = query_each(t->from, run_tables, "SELECT min(r.finished), max(r.finished)" RUNS,
                        t->name, write_dates, h, err);
  if (status == GL_OK)
    status = query_each(t->from, run_tables,
                        "SELECT p.command, count(*)" RUNS
                        " AND p.command != '' GROUP BY p.command ORDER BY min(r.finished), 1",
                        t->name, write_command, &c, err);
  if (c.n > 0) html_markup(h, "</code></pre>\n");
  return status;
}

/* --- rates --- */
/* Section `rates`: the learning rate chosen for each algorithm. */

static const char *const rate_tables[] = {"tuned", NULL};
static const char rates_question[] =
    "SELECT algorithm, lr, score FROM tuned WHERE study = ?1 ORDER BY algorithm";

int has_rates(const report_study *t) {
  return has_answer(t, rate_tables, rates_question);
}

static gl_status add_chosen_rate(void *context, sqlite3_stmt *record, gl_error *err) {
  (void)err;
  table_row(context);
  table_text(context, query_text(record, 0));
  table_real(context, query_number(record, 1));
  table_real(context, query_number(record, 2));
  return GL_OK;
}

gl_status section_rates(html *h, const report_study *t, gl_error *err) {
  static const table_column columns[] = {TABLE_HEAD("algorithm"),
                                         {.type = TABLE_REAL, .head = "learning rate"},
                                         {.type = TABLE_REAL, .head = "score"}};
  table *to = table_new(columns, 3);
  table_title(to, "Learning rates chosen");
  html_markup(h, "<p>Each algorithm has the rate with the highest score on seeds that are not "
                 "reported, over all settings.</p>\n");
  gl_status status =
      query_each(t->from, rate_tables, rates_question, t->name, add_chosen_rate, to, err);
  html_table(h, to);
  return status;
}

/* --- laboratory --- */
/* Section `laboratory`: measurements of `gepolab lab bias` stored in the study file. */

static const char *const bias_tables[] = {"bias", NULL};

int has_laboratory(const report_study *t) {
  return has_answer(t, bias_tables, "SELECT 1 FROM bias WHERE study = ?1 LIMIT 1");
}

static gl_status add_measurement(void *context, sqlite3_stmt *record, gl_error *err) {
  (void)err;
  table_row(context);
  table_text(context, query_text(record, 0));
  table_text(context, query_text(record, 1));
  table_real(context, query_number(record, 2));
  if (isnan(query_number(record, 2))) table_shown(context, "∞");
  for (int i = 3; i < 11; ++i) table_real(context, query_number(record, i));
  return GL_OK;
}

gl_status section_laboratory(html *h, const report_study *t, gl_error *err) {
#define NUMBER(HEAD)                                                                               \
  { .type = TABLE_REAL, .head = HEAD }
  static const table_column columns[] = {
      TABLE_HEAD("algorithm"), TABLE_HEAD("method"), NUMBER("group size"), NUMBER("KL(p‖q) / nats"),
      NUMBER("staleness"),     NUMBER("bias"),       NUMBER("cosine"),     NUMBER("scaled bias"),
      NUMBER("variance"),      NUMBER("MSE"),        NUMBER("scaled MSE")};
#undef NUMBER
  table *to = table_new(columns, sizeof columns / sizeof *columns);
  table_title(to, "Bias, variance and mean squared error");
  html_markup(h, "<p>Moments of the gradient estimate, measured by <code>gepolab lab bias</code>: "
                 "exactly, or by Monte Carlo where the method says so. Its figures are not on this "
                 "page, for the file does not keep the recipe that they need: "
                 "<code>gepolab lab bias RECIPE --figures FOLDER</code> measures again and draws "
                 "them.</p>\n");
  gl_status status = query_each(
      t->from, bias_tables,
      "SELECT algorithm, method, group_size, kl_exact, staleness, bias, cosine, scaled_bias,"
      " variance, mse, scaled_mse FROM bias WHERE study = ?1 ORDER BY algorithm, group_size IS "
      "NULL,"
      " group_size, ordinal",
      t->name, add_measurement, to, err);
  html_table(h, to);
  return status;
}

/* --- recipe --- */

/* Section `recipe`: the recipe that was swept. For files without it: the fields common to all runs,
 * and the fields in which they differ. */

static const char *const order[] = {"name",    "description", "steps",    "eval_every", "seed",
                                    "world",   "algorithm",   "sampling", "optimizer",  "train",
                                    "cluster", "sweep",       "tune"};

/* Removes a dotted path from a tree, and maps that become empty. Returns 1 if it was present. */
static int take_out(cJSON *tree, const char *path) {
  const char *dot = strchr(path, '.');
  char key[128];
  const size_t n = dot != NULL ? (size_t)(dot - path) : strlen(path);
  if (n >= sizeof key) return 0;
  memcpy(key, path, n), key[n] = '\0';
  cJSON *item = cJSON_GetObjectItemCaseSensitive(tree, key);
  if (item == NULL || (dot != NULL && !cJSON_IsObject(item))) return 0;
  const int found = dot == NULL || take_out(item, dot + 1);
  if (found && (dot == NULL || item->child == NULL))
    cJSON_DeleteItemFromObjectCaseSensitive(tree, key);
  return found;
}

/* Copies the algorithm in a run's recipe to *out, which the caller owns; NULL if `among` has it
 * already or the recipe has none. Returns 0 if memory runs out. */
static int algorithm_not_among(cJSON **out, const results_run *run, const cJSON *among) {
  cJSON *tree = json_tree_of(run->recipe);
  *out = NULL;
  if (tree == NULL) return run->recipe == NULL;
  *out = cJSON_DetachItemFromObjectCaseSensitive(tree, "algorithm");
  cJSON_Delete(tree);
  for (const cJSON *i = among->child; *out != NULL && i != NULL; i = i->next)
    if (cJSON_Compare(i, *out, 1)) {
      cJSON_Delete(*out);
      *out = NULL;
    }
  return 1;
}

static int add_algorithms(cJSON *sweep, const results *r) {
  cJSON *list = cJSON_AddArrayToObject(sweep, "algorithm"), *own = NULL;
  for (size_t a = 0; a < r->n_algorithms && list != NULL; ++a, own = NULL)
    for (size_t i = 0; i < r->n_runs && own == NULL; ++i) {
      if (r->runs[i].algorithm != a) continue;
      if (!algorithm_not_among(&own, &r->runs[i], list)) return 0;
      if (own != NULL && !cJSON_AddItemToArray(list, own)) {
        cJSON_Delete(own);
        return 0;
      }
    }
  return list != NULL;
}

/* Adds the distinct values of one axis in the order of the groups. */
static int add_axis(cJSON *sweep, const results *r, size_t a) {
  cJSON *list = cJSON_AddArrayToObject(sweep, r->axes.axis[a].path);
  for (size_t g = 0; g < r->n_groups && list != NULL; ++g) {
    cJSON *holder = cJSON_CreateObject();
    cJSON *value = holder ? axis_json(holder, &r->axes.axis[a], r->groups[g].value[a]) : NULL;
    if (value != NULL) value = cJSON_DetachItemViaPointer(holder, value);
    cJSON_Delete(holder);
    if (value == NULL) return 0;
    free(value->string);
    value->string = NULL;
    const cJSON *same = list->child;
    while (same != NULL && !cJSON_Compare(same, value, 1)) same = same->next;
    if (same != NULL)
      cJSON_Delete(value);
    else if (!cJSON_AddItemToArray(list, value))
      return 0;
  }
  return list != NULL;
}

/* The first run's recipe, with the fields that differ between algorithms, settings and seeds moved
 * to `sweep`. */
static cJSON *common_recipe(const report_study *t) {
  const results *r = t->r;
  cJSON *tree = json_tree_of(r->runs[0].recipe), *sweep = cJSON_CreateObject();
  int ok = tree != NULL && sweep != NULL;
  if (ok && r->n_algorithms > 1) take_out(tree, "algorithm"), ok = add_algorithms(sweep, r);
  for (size_t a = 0; a < r->axes.n && ok; ++a)
    take_out(tree, r->axes.axis[a].path), ok = add_axis(sweep, r, a);
  cJSON *seeds = ok && t->n_seeds > 1 ? cJSON_AddArrayToObject(sweep, "seed") : NULL;
  if (ok && t->n_seeds > 1) take_out(tree, "seed"), ok = seeds != NULL;
  for (size_t i = 0; i < t->n_seeds && seeds != NULL && ok; ++i)
    ok = json_add_number(seeds, NULL, (double)t->seeds[i]) != NULL;
  if (ok && sweep->child != NULL) ok = cJSON_AddItemToObject(tree, "sweep", sweep);
  if (ok && cJSON_GetObjectItemCaseSensitive(tree, "sweep") == sweep) return tree;
  cJSON_Delete(sweep);
  if (ok) return tree;
  cJSON_Delete(tree);
  return NULL;
}

/* Removes fields that were chosen per cell, as by `tune`, and differ between cells. */
static size_t take_out_chosen(const report_study *t, cJSON *tree) {
  size_t n = 0;
  for (size_t i = 0; i < t->r->n_runs; ++i) {
    cJSON *chosen = t->r->runs[i].chosen ? json_tree_of(t->r->runs[i].chosen) : NULL;
    for (const cJSON *c = chosen ? chosen->child : NULL; c != NULL; c = c->next)
      n += (size_t)take_out(tree, c->string);
    cJSON_Delete(chosen);
  }
  return n;
}

char *study_recipe_text(const report_study *t, const char *key) {
  cJSON *tree = t->n_recipes > 0 ? json_tree_of(t->recipes[0]) : NULL;
  const cJSON *item = tree ? cJSON_GetObjectItemCaseSensitive(tree, key) : NULL;
  char *text = cJSON_IsString(item) ? strdup(item->valuestring) : NULL;
  cJSON_Delete(tree);
  return text;
}

int has_recipe(const report_study *t) {
  return t->n_recipes > 0 || has_runs(t);
}

/* --- writing the section --- */

static gl_status write_yaml(html *h, const cJSON *tree, gl_error *err) {
  char *text = NULL;
  size_t size = 0;
  if (tree == NULL) return gl_fail_memory(err, "the recipe of a study");
  FILE *to = must_have(open_memstream(&text, &size), "the recipe of a study");
  yaml_write(tree, order, sizeof order / sizeof *order, to);
  must_succeed(fclose(to) == 0, "the recipe of a study");
  html_markup(h, "<pre class=\"wide\" tabindex=\"0\"><code>");
  html_text(h, text);
  html_markup(h, "</code></pre>\n");
  free(text);
  return GL_OK;
}

static gl_status write_common(html *h, const report_study *t, gl_error *err) {
  cJSON *tree = common_recipe(t);
  if (tree == NULL) return gl_fail_memory(err, "the recipe of a study");
  const size_t chosen = take_out_chosen(t, tree);
  html_markup(h, "<p>Put together from the stored recipes of the runs: what they have in common, "
                 "and under <code>sweep</code> the fields in which they differ.");
  if (chosen > 0)
    html_markup(h, " What was chosen for each cell beforehand is left out: see its learning rate "
                   "in the tables above.");
  html_markup(h, "</p>\n");
  gl_status status = write_yaml(h, tree, err);
  cJSON_Delete(tree);
  return status;
}

gl_status section_recipe(html *h, const report_study *t, gl_error *err) {
  gl_status status = GL_OK;
  if (t->n_recipes == 0) return write_common(h, t, err);
  if (t->n_recipes > 1)
    html_markup(h, "<p>Several recipes were swept into this study, one after another.</p>\n");
  for (size_t i = 0; i < t->n_recipes && status == GL_OK; ++i) {
    cJSON *tree = json_tree_of(t->recipes[i]);
    status = write_yaml(h, tree, err);
    cJSON_Delete(tree);
  }
  return status;
}

/* --- rerun --- */
/* Section `rerun`: the commands that reproduce the study and this page. */

/* Reduces the study's name to characters that are safe in file names and need no quotes in a shell.
 */
static void safe_name(char *name, size_t size, const char *study) {
  size_t n = 0;
  for (const char *c = study; *c != '\0' && n + 1 < size; ++c)
    if ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
        *c == '_' || (n > 0 && (*c == '-' || *c == '.')))
      name[n++] = *c;
  name[n] = '\0';
  if (n == 0) snprintf(name, size, "study");
}

gl_status section_rerun(html *h, const report_study *t, gl_error *err) {
  char name[40];
  (void)err;
  safe_name(name, sizeof name, t->name);
  html_markup(h, "<p>Keep the recipe above as ");
  html_markup(h, "<code>"), html_textf(h, "%s.yaml", name), html_markup(h, "</code>, then:</p>\n");
  html_markup(h, "<pre class=\"wide\" tabindex=\"0\"><code>");
  html_textf(h,
             "gepolab sweep %s.yaml -o %s.db\ngepolab analyze %s.db\ngepolab plot %s.db -o "
             "figures/\ngepolab report %s.db -o %s.html\n",
             name, name, name, name, name, name);
  html_markup(h, "</code></pre>\n<p>The same command resumes a stopped sweep: "
                 "finished runs are kept.</p>\n");
  return GL_OK;
}
