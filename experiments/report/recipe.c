/* Section `recipe`: the recipe that was swept. For files without it: the fields common to all runs,
 * and the fields in which they differ. */
#include "core/base/json.h"
#include "experiments/base/memory.h"
#include "experiments/base/print_json.h"
#include "experiments/report/study_internal.h"

#include <stdlib.h>
#include <string.h>

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

/* Returns a copy of the algorithm in a run's recipe, or NULL if an earlier run has the same one. */
static cJSON *new_algorithm(const results_run *run, const cJSON *among) {
  cJSON *tree = json_tree_of(run->recipe);
  cJSON *own = tree ? cJSON_DetachItemFromObjectCaseSensitive(tree, "algorithm") : NULL;
  cJSON_Delete(tree);
  for (const cJSON *i = among->child; own != NULL && i != NULL; i = i->next)
    if (cJSON_Compare(i, own, 1)) {
      cJSON_Delete(own);
      own = NULL;
    }
  return own;
}

static int add_algorithms(cJSON *sweep, const results *r) {
  cJSON *list = cJSON_AddArrayToObject(sweep, "algorithm");
  for (size_t a = 0; a < r->n_algorithms && list != NULL; ++a)
    for (size_t i = 0; i < r->n_runs; ++i) {
      if (r->runs[i].algorithm != a) continue;
      cJSON *own = new_algorithm(&r->runs[i], list);
      if (own != NULL && !cJSON_AddItemToArray(list, own)) return 0;
      if (own != NULL) break;
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
  html_markup(h, "</code></pre>\n<p>A sweep that was stopped goes on with the same command: "
                 "finished runs are kept.</p>\n");
  return GL_OK;
}
