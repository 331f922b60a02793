/* Which runs a study is to hold and does not: by its plan, or, where its file has none, by the grid
 * that its runs span. */
#include "core/base/json_tree.h"
#include "core/store/plan.h"
#include "experiments/report/query.h"
#include "experiments/report/study_internal.h"

#include <stdlib.h>
#include <string.h>

/* One more gap at the end, without seeds; NULL if memory is short. Takes the texts over. */
static report_gap *add_gap(report_study *t, char *algorithm, char *setting) {
  report_gap *more = algorithm != NULL && setting != NULL
                         ? realloc(t->gaps, (t->n_gaps + 1) * sizeof *more)
                         : NULL;
  if (more == NULL) {
    free(algorithm), free(setting);
    return NULL;
  }
  t->gaps = more;
  more[t->n_gaps] = (report_gap){.algorithm = algorithm, .setting = setting};
  return &more[t->n_gaps++];
}

static int add_seed(report_study *t, report_gap *gap, uint64_t seed) {
  uint64_t *more = realloc(gap->seeds, (gap->n + 1) * sizeof *more);
  if (more == NULL) return 0;
  gap->seeds = more;
  gap->seeds[gap->n++] = seed;
  ++t->missing;
  return 1;
}

/* --- by the plan --- */

/* "max delay 600 s" of {"cluster.max_delay":600}, in the words of the runs that are there. */
static char *setting_words(const report_study *t, const char *swept) {
  char *text = NULL;
  size_t size = 0;
  cJSON *tree = json_tree_of(swept);
  FILE *to = open_memstream(&text, &size);
  for (const cJSON *i = tree ? tree->child : NULL; i != NULL && to != NULL; i = i->next) {
    const size_t a = t->r != NULL ? results_axis(t->r, i->string) : 0;
    const axis *known = t->r != NULL && a < t->r->axes.n ? &t->r->axes.axis[a] : NULL;
    char *value = cJSON_PrintUnformatted(i);
    fprintf(to, "%s%s %s", i == tree->child ? "" : ", ", known ? known->label : i->string,
            cJSON_IsString(i) ? i->valuestring
            : value != NULL   ? value
                              : "");
    if (known != NULL && *known->unit && cJSON_IsNumber(i)) fprintf(to, " %s", known->unit);
    free(value);
  }
  if (to != NULL && (tree == NULL || tree->child == NULL)) fputs("the only setting", to);
  cJSON_Delete(tree);
  if (to != NULL && fclose(to) == 0) return text;
  free(text);
  return NULL;
}

static gl_status take_missing(void *context, sqlite3_stmt *record, gl_error *err) {
  report_study *t = context;
  const char *algorithm = query_text(record, 0);
  char *setting = setting_words(t, query_text(record, 1));
  report_gap *gap = NULL;
  for (size_t i = 0; setting != NULL && i < t->n_gaps; ++i)
    if (strcmp(t->gaps[i].algorithm, algorithm) == 0 && strcmp(t->gaps[i].setting, setting) == 0)
      gap = &t->gaps[i];
  if (gap != NULL)
    free(setting);
  else
    gap = add_gap(t, strdup(algorithm), setting);
  if (gap == NULL || !add_seed(t, gap, (uint64_t)sqlite3_column_int64(record, 2)))
    return gl_fail_memory(err, "the cells that are missing");
  return GL_OK;
}

/* Failed runs are told as such, and are not missing. */
static gl_status find_by_plan(report_study *t, gl_error *err) {
  static const char *const tables[] = {"plan", NULL};
  return query_each(t->from, tables,
                    "SELECT algorithm, swept, seed FROM plan p WHERE study = ?1 AND tuning = 0 AND"
                    " NOT EXISTS (SELECT 1 FROM runs r WHERE r.study = ?1 AND r.place = p.place)"
                    " ORDER BY ordinal, place",
                    t->name, take_missing, t, err);
}

/* --- by the grid --- */

static int has_seed(const report_study *t, const results_cell *c, uint64_t seed) {
  for (size_t i = 0; i < c->n; ++i)
    if (t->r->runs[c->first + i].seed == seed) return 1;
  return 0;
}

/* A run for every algorithm, setting and seed that the file has. */
static gl_status find_by_grid(report_study *t, gl_error *err) {
  for (size_t i = 0; i < t->r->n_groups * t->r->n_algorithms; ++i) {
    const results_cell *c = &t->r->cells[i];
    report_gap *gap = NULL;
    for (size_t k = 0; k < t->n_seeds; ++k) {
      if (has_seed(t, c, t->seeds[k])) continue;
      if (gap == NULL)
        gap =
            add_gap(t, strdup(t->r->algorithms[c->algorithm]), strdup(study_setting(t, c->group)));
      if (gap == NULL || !add_seed(t, gap, t->seeds[k]))
        return gl_fail_memory(err, "the holes of a grid");
    }
  }
  return GL_OK;
}

gl_status study_find_gaps(report_study *t, gl_error *err) {
  study_progress progress;
  gl_status status = store_progress(t->from, t->name, &progress, err);
  if (status != GL_OK) return status;
  t->is_planned = progress.planned > 0;
  t->superseded = progress.superseded;
  if (t->is_planned) return find_by_plan(t, err);
  return t->r != NULL ? find_by_grid(t, err) : GL_OK;
}
