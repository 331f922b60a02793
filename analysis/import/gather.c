/* Reads several files and assigns names to their runs and metrics. */
#include "analysis/import/gather.h"

#include "analysis/evaluation_sets.h"
#include "analysis/import/metric_names.h"
#include "analysis/import/read.h"
#include "core/base/array.h"
#include "core/base/file.h"
#include "core/config/fields.h"
#include "core/store/store.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char plain_label[] = RESULTS_LABEL;

void gathered_fini(gathered *g) {
  for (size_t i = 0; i < g->n_studies; i++) results_free(g->studies[i].from);
  for (size_t i = 0; i < g->n_tables; i++) series_table_free(g->tables[i]);
  free(g->series), free(g->studies), free(g->tables), free(g->notes);
  arena_fini(&g->memory);
  *g = (gathered){0};
}

/* Concatenates two texts with a separator; NULL if m has failed. */
static const char *join_names(arena *m, const char *a, const char *between, const char *b) {
  char *text = ARENA_ARRAY(m, char, strlen(a) + strlen(between) + strlen(b) + 1);
  if (text) sprintf(text, "%s%s%s", a, between, b);
  return text;
}

/* --- labels --- */

typedef struct file_label {
  const char *path, *text; /* path: recipe field that the label is a value of, or NULL; text: the
                              label, may be "" */
  const char *given;       /* the option's text */
} file_label;

static const char *name_of_file(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* Length of the file name at the start of the option, given as a path or a base name; 0: the option
 * names another file. */
static size_t names_file(const char *option, const char *path) {
  const char *const forms[] = {path, name_of_file(path)};
  for (size_t i = 0; i < 2; i++) {
    const size_t n = strlen(forms[i]);
    if (n > 0 && strncmp(option, forms[i], n) == 0 && option[n] == '=') return n;
  }
  return 0;
}

/* Sets the label, or for "cluster.window=32" the field and its value. */
static gl_status set_label(file_label *to, const char *option, const char *text, gl_error *err) {
  char path[128];
  const char *equals = strchr(text, '=');
  if (to->given)
    return gl_fail(err, GL_EINPUT, "--label '%s' and --label '%s' name one file; give one of them",
                   to->given, option);
  if (*text == '\0' || strlen(text) > IMPORT_MOST_NAME)
    return gl_fail(err, GL_EINPUT, "--label '%s' has %s name behind the file; write FILE=NAME",
                   option, *text ? "too long a" : "no");
  *to = (file_label){plain_label, text, option};
  if (!equals || equals[1] == '\0' || equals - text >= (ptrdiff_t)sizeof path) return GL_OK;
  snprintf(path, sizeof path, "%.*s", (int)(equals - text), text);
  const field *f = fields_named(path);
  if (f) to->path = f->path, to->text = equals + 1;
  return GL_OK;
}

static gl_status read_label(file_label *labels, const gather_request *q, const char *option,
                            gl_error *err) {
  size_t best = 0, file = q->n_files, same = 0;
  for (size_t i = 0; i < q->n_files; i++) {
    const size_t n = names_file(option, q->files[i]);
    if (n == 0 || n < best) continue;
    same = n == best && strcmp(q->files[i], q->files[file]) != 0 ? same + 1 : 0;
    best = n, file = i;
  }
  if (best == 0)
    return gl_fail(err, GL_EINPUT,
                   "--label '%s' begins with none of the files given; write FILE=NAME, such as "
                   "%s=AIME24",
                   option, q->n_files ? name_of_file(q->files[0]) : "eval.csv");
  if (same > 0)
    return gl_fail(err, GL_EINPUT, "--label '%s' fits several files; name the file by its path",
                   option);
  return set_label(&labels[file], option, option + best + 1, err);
}

/* Fills labels[q->n_files]. */
static gl_status read_labels(file_label *labels, const gather_request *q, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < q->n_files; i++) labels[i] = (file_label){plain_label, "", NULL};
  for (size_t i = 0; i < q->n_labels && status == GL_OK; i++)
    status = read_label(labels, q, q->labels[i], err);
  return status;
}

gl_status gather_label(const char **label, const gather_request *request, size_t file,
                       gl_error *err) {
  arena memory = {0};
  file_label *labels = ARENA_ARRAY(&memory, file_label, request->n_files);
  gl_status status = arena_check(&memory, "labels", err);
  if (status == GL_OK) status = read_labels(labels, request, err);
  if (status == GL_OK && *labels[file].text) *label = labels[file].text;
  arena_fini(&memory);
  return status;
}

/* --- names --- */

/* Rules REGEX=NAME in the order of the command line. */
typedef struct rule_list {
  const char *const *text; /* [n] */
  size_t n;
  pattern **rule;    /* [n] */
  bool *has_matched; /* [n] */
} rule_list;

/* The compiled options. */
typedef struct rules {
  const gather_request *of;
  rule_list rename, read_as;
  pattern *group_by;
  file_label *labels; /* [of->n_files] */
  arena memory;
} rules;

static rule_list rule_list_of(arena *m, const char *const *texts, size_t n) {
  return (rule_list){texts, n, ARENA_ARRAY(m, pattern *, n), ARENA_ARRAY(m, bool, n)};
}

static void rule_list_fini(rule_list *l) {
  for (size_t i = 0; l->rule && i < l->n; i++) pattern_free(l->rule[i]);
}

static gl_status compile_rules(rule_list *l, const char *option, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < l->n && status == GL_OK; i++)
    status = pattern_new_rule(&l->rule[i], l->text[i], option, err);
  return status;
}

static gl_status rules_init(rules *r, const gather_request *q, gl_error *err) {
  *r = (rules){.of = q};
  r->rename = rule_list_of(&r->memory, q->renames, q->n_renames);
  r->read_as = rule_list_of(&r->memory, q->read_as, q->n_read_as);
  r->labels = ARENA_ARRAY(&r->memory, file_label, q->n_files);
  gl_status status = arena_check(&r->memory, "regular expressions", err);
  if (status == GL_OK) status = compile_rules(&r->rename, "--rename", err);
  if (status == GL_OK) status = compile_rules(&r->read_as, "--read-as", err);
  if (status == GL_OK && q->group_by)
    status = pattern_new(&r->group_by, q->group_by, "--group-by", err);
  if (status == GL_OK && r->group_by && !pattern_has_group(r->group_by))
    status = gl_fail(err, GL_EINPUT,
                     "--group-by '%s' has no group in parentheses, which is the name that runs of "
                     "one algorithm share; write, for example, '(.*)_seed[0-9]+'",
                     q->group_by);
  return status;
}

static void rules_fini(rules *r) {
  rule_list_fini(&r->rename), rule_list_fini(&r->read_as);
  pattern_free(r->group_by);
  arena_fini(&r->memory);
}

/* A rule whose expression begins with a bracket is matched against the tagged name:
 * "\[paper\]GEPO=gepo". */
static bool sees_tags(const char *rule) {
  if (*rule == '^') rule++;
  return rule[0] == '\\' && rule[1] == '[';
}

/* Applies the first matching rule to the text, or to the tagged text (may be NULL) if the rule
 * requires it. Returns the text itself if no rule matches. Memory comes from m. */
static gl_status apply_rules(arena *m, const rule_list *l, const char *text, const char *tagged,
                             const char **out, gl_error *err) {
  gl_status status = GL_OK;
  char *name = NULL;
  for (size_t i = 0; i < l->n && !name && status == GL_OK; i++) {
    const char *seen = sees_tags(l->text[i]) ? tagged : text;
    if (seen) status = pattern_apply(l->rule[i], seen, &name, err);
    if (name) l->has_matched[i] = true;
  }
  *out = arena_text(m, name ? name : text);
  free(name);
  return status == GL_OK ? arena_check(m, "names", err) : status;
}

/* Computes the run's name: first --group-by, then the rename rules. */
static gl_status name_run_of(arena *m, const rules *r, const series *s, const char **out,
                             gl_error *err) {
  char *group = NULL, tagged[2 * IMPORT_MOST_NAME + 3];
  snprintf(tagged, sizeof tagged, "[%s]%s", s->tag, s->run);
  gl_status status = GL_OK;
  if (r->group_by) status = pattern_apply(r->group_by, s->run, &group, err);
  if (status == GL_OK)
    status = apply_rules(m, &r->rename, group ? group : s->run, *s->tag && !group ? tagged : NULL,
                         out, err);
  free(group);
  return status;
}

/* --- series --- */

static bool is_asked_for(const gather_request *q, const char *name, quantity what) {
  return !q->metric || strcmp(name, q->metric) == 0 || series_has_component(name, q->metric) ||
         (what.known < METRIC_COUNT && metric_find(q->metric) == what.known);
}

static gl_status add_file_series(gathered *g, const rules *r, size_t file, const char *path,
                                 const series *s, gl_error *err) {
  const gather_request *q = r->of;
  const file_label *label = &r->labels[file];
  arena *m = &g->memory;
  if (g->n_series == IMPORT_MOST_SERIES)
    return gl_fail(err, GL_EINPUT, "%s: there are more than %d series; give fewer files or runs",
                   path, (int)IMPORT_MOST_SERIES);
  gathered_series *to = ARRAY_ADD(g->series, g->n_series);
  if (!to) return gl_fail_memory(err, "series");
  const char *own = *s->metric ? s->metric : q->metric ? q->metric : QUANTITY_UNNAMED;
  *to = (gathered_series){.file = path,
                          .label_path = label->path,
                          .label = *label->text ? label->text : s->label,
                          .tag = s->tag,
                          .settings = s->settings,
                          .chosen = s->chosen,
                          .run = s->run,
                          .seed = s->has_seed ? s->seed : 0,
                          .step = arena_copy(m, s->step, s->n, sizeof *s->step),
                          .value = arena_copy(m, s->value, s->n, sizeof *s->value),
                          .line = arena_copy(m, s->line, s->n, sizeof *s->line),
                          .n = s->n,
                          .n_all = s->n,
                          .nan_step = arena_copy(m, s->nan_step, s->n_nan, sizeof *s->nan_step),
                          .n_nan = s->n_nan,
                          .end = INFINITY};
  gl_status status = name_run_of(m, r, s, &to->name, err);
  if (status == GL_OK) status = apply_rules(m, &r->read_as, own, NULL, &to->metric, err);
  if (status != GL_OK) return status;
  to->what = quantity_of(to->metric);
  if (to->what.is_guessed && q->lower_is_better) to->what.better = METRIC_LOWER_IS_BETTER;
  to->is_chosen = is_asked_for(q, to->metric, to->what);
  /* A metric that was requested and is not a known training metric is the score. */
  if (q->metric && to->what.known == METRIC_COUNT) to->what.is_score = to->is_chosen;
  if (q->metric && q->lower_is_better && to->is_chosen) to->what.better = METRIC_LOWER_IS_BETTER;
  return GL_OK;
}

static gl_status gather_note(gathered *g, const char *note, gl_error *err) {
  const char **to = ARRAY_ADD(g->notes, g->n_notes);
  if (!to) return gl_fail_memory(err, "notes");
  *to = arena_text(&g->memory, note);
  return arena_check(&g->memory, "notes", err);
}

/* Reads the series of one file. file: index in the request of the file or of its folder. */
static gl_status add_table(gathered *g, const rules *r, size_t file, const char *path,
                           gl_error *err) {
  series_table **t = ARRAY_ADD(g->tables, g->n_tables);
  if (!t) return gl_fail_memory(err, "files");
  gl_status status = read_series(t, path, &r->of->shape, err);
  if (status != GL_OK) return status;
  for (size_t i = 0; i < (*t)->n_notes && status == GL_OK; i++)
    status = gather_note(g, (*t)->notes[i], err);
  for (size_t i = 0; i < (*t)->n_series && status == GL_OK; i++)
    if ((*t)->series[i].n + (*t)->series[i].n_nan > 0)
      status = add_file_series(g, r, file, path, &(*t)->series[i], err);
  return status;
}

static gl_status gather_folder(gathered *g, const rules *r, size_t file, gl_error *err) {
  folder_logs f;
  char note[1200];
  gl_status status = folder_list(&f, r->of->files[file], READ_IS_SERIES, err);
  for (size_t i = 0; i < f.n && status == GL_OK; i++) {
    const char *path = arena_text(&g->memory, f.path[i]);
    status = path ? add_table(g, r, file, path, err) : gl_fail_memory(err, "files");
  }
  if (status == GL_OK && f.n_left_out > 0) {
    snprintf(note, sizeof note, "%.500s: %zu files were read, and %zu left out: %s",
             r->of->files[file], f.n, f.n_left_out, f.left_out);
    status = gather_note(g, note, err);
  }
  folder_fini(&f);
  return status;
}

/* --- studies --- */

/* A study of a file, with the evaluation set by which it is analysed. */
typedef struct shown_study {
  store *from;
  size_t file;
  const char *name, *set; /* set: evaluation set to use; NULL: the run's own */
  const char *label;
} shown_study;

static gl_status add_study(gathered *g, const rules *r, const shown_study *s, gl_error *err) {
  results *loaded = NULL;
  gl_status status = results_load(&loaded, s->from, s->name, err);
  if (status != GL_OK) return status;
  gathered_study *to = ARRAY_ADD(g->studies, g->n_studies);
  if (!to) {
    results_free(loaded);
    return gl_fail_memory(err, "studies");
  }
  *to = (gathered_study){.file = r->of->files[s->file],
                         .label_path = r->labels[s->file].path,
                         .label = arena_text(&g->memory, s->label),
                         .algorithms = ARENA_ARRAY(&g->memory, const char *, loaded->n_algorithms),
                         .from = loaded};
  status = arena_check(&g->memory, "studies", err);
  for (size_t a = 0; a < loaded->n_algorithms && status == GL_OK; a++)
    status =
        apply_rules(&g->memory, &r->rename, loaded->algorithms[a], NULL, &to->algorithms[a], err);
  return status == GL_OK && s->set ? sets_choose(loaded, s->set, err) : status;
}

/* Adds the study once for each of its evaluation sets; it must have some. */
static gl_status add_each_set(gathered *g, const rules *r, const shown_study *s, gl_error *err) {
  results *loaded = NULL;
  const char **sets = NULL;
  size_t n = 0;
  gl_status status = results_load(&loaded, s->from, s->name, err);
  if (status == GL_OK) status = sets_names(&sets, &n, loaded, err);
  if (status == GL_OK && n == 0)
    status = gl_fail(err, GL_EINPUT,
                     "%s: the study %s has no evaluation sets; a recipe names them in "
                     "world.evaluation.sets",
                     r->of->files[s->file], s->name);
  if (status == GL_OK && strcmp(r->labels[s->file].path, plain_label) != 0)
    status = gl_fail(err, GL_EINPUT,
                     "--label '%s' sets a field, and the evaluation sets of %s are labels too; "
                     "show one of them: --set %s",
                     r->labels[s->file].given, r->of->files[s->file], sets[0]);
  for (size_t i = 0; i < n && status == GL_OK; i++) {
    char both[2 * IMPORT_MOST_NAME + 8];
    snprintf(both, sizeof both, "%s%s%s", s->label, *s->label ? ", " : "", sets[i]);
    status = add_study(g, r, &(shown_study){s->from, s->file, s->name, sets[i], both}, err);
  }
  free(sets);
  results_free(loaded);
  return status;
}

static gl_status add_studies(gathered *g, const rules *r, size_t file, gl_error *err) {
  store *s = NULL;
  char **names = NULL;
  size_t n = 0;
  gl_status status = store_open(&s, r->of->files[file], STORE_READ, err);
  if (status == GL_OK) status = results_studies(&names, &n, s, err);
  for (size_t i = 0; i < n && status == GL_OK; i++) {
    const char *label = r->labels[file].text;
    const shown_study shown = {s, file, names[i], r->of->set,
                               *label  ? label
                               : n > 1 ? names[i]
                                       : ""};
    status = r->of->each_set ? add_each_set(g, r, &shown, err) : add_study(g, r, &shown, err);
  }
  free(names);
  store_close(s);
  return status;
}

/* --- names shared by several runs --- */

static int compare_names(const void *a, const void *b) {
  const gathered_series *x = *(gathered_series *const *)a, *y = *(gathered_series *const *)b;
  int order = strcmp(x->name, y->name);
  if (order == 0) order = strcmp(x->label_path, y->label_path);
  if (order == 0) order = strcmp(x->label, y->label);
  if (order == 0) order = strcmp(x->settings, y->settings);
  if (order == 0) order = strcmp(x->chosen, y->chosen);
  if (order == 0) order = strcmp(x->metric, y->metric);
  if (order == 0) order = (x->seed > y->seed) - (x->seed < y->seed);
  return order;
}

/* If all keys are equal, compares positions, so that the order does not depend on qsort(). */
static int compare_all(const void *a, const void *b) {
  const gathered_series *x = *(gathered_series *const *)a, *y = *(gathered_series *const *)b;
  const int order = compare_names(a, b);
  return order ? order : (x > y) - (x < y);
}

/* Returns the series sorted by all names, so that equal ones are neighbours. Memory comes from m;
 * NULL if memory runs out. */
static gathered_series **sorted_series(arena *m, gathered *g) {
  gathered_series **sorted = ARENA_ARRAY(m, gathered_series *, g->n_series);
  if (!sorted) return NULL;
  for (size_t i = 0; i < g->n_series; i++) sorted[i] = &g->series[i];
  qsort(sorted, g->n_series, sizeof *sorted, compare_all);
  return sorted;
}

/* Runs grouped by --group-by get seeds 1, 2, ... in the order of the files, and within a file by
 * their own names. */
static void number_replicates(gathered *g) {
  for (size_t i = 0; i < g->n_series; i++) {
    gathered_series *s = &g->series[i];
    uint64_t most = 0;
    if (s->seed != 0) continue;
    for (size_t k = 0; k < i && s->seed == 0; k++) {
      const gathered_series *o = &g->series[k];
      if (strcmp(o->name, s->name) != 0) continue;
      if (strcmp(o->run, s->run) == 0) s->seed = o->seed;
      if (o->seed > most) most = o->seed;
    }
    if (s->seed == 0) s->seed = most + 1;
  }
}

/* If runs with different tags have the same name, the tag is kept in all their names. */
static gl_status keep_tags(gathered *g, gl_error *err) {
  arena work = {0};
  gathered_series **sorted = sorted_series(&work, g);
  bool *shared = ARENA_ARRAY(&work, bool, g->n_series);
  const size_t n = work.failed ? 0 : g->n_series;
  for (size_t i = 0, first = 0; i < n; i++) {
    if (strcmp(sorted[first]->name, sorted[i]->name) != 0) first = i;
    if (i > 0 && compare_names(&sorted[i - 1], &sorted[i]) == 0 &&
        strcmp(sorted[i - 1]->tag, sorted[i]->tag) != 0)
      shared[first] = true;
  }
  for (size_t i = 0, first = 0; i < n; i++) {
    if (strcmp(sorted[first]->name, sorted[i]->name) != 0) first = i;
    shared[i] = shared[first];
  }
  for (size_t i = 0; i < n; i++) {
    char tag[IMPORT_MOST_NAME + 3];
    if (!shared[i] || !*sorted[i]->tag) continue;
    snprintf(tag, sizeof tag, "[%s]", sorted[i]->tag);
    sorted[i]->name = join_names(&g->memory, tag, "", sorted[i]->name);
  }
  gl_status status = arena_check(&work, "names", err);
  arena_fini(&work);
  return status == GL_OK ? arena_check(&g->memory, "names", err) : status;
}

static gl_status refuse_shared(const gathered_series *a, const gathered_series *b, gl_error *err) {
  if (strcmp(a->file, b->file) != 0)
    return gl_fail(err, GL_EINPUT,
                   "%s and %s both have %s of the run '%s'; say which benchmark or study each is "
                   "of: --label %s=NAME --label %s=NAME",
                   a->file, b->file, a->metric, a->name, name_of_file(a->file),
                   name_of_file(b->file));
  return gl_fail(err, GL_EINPUT,
                 "%s: '%s' and '%s' are both called '%s' and have %s; name them apart (--rename), "
                 "or say what their algorithm is called if they are seeds of one (--group-by)",
                 a->file, a->run, b->run, a->name, a->metric);
}

static gl_status refuse_collisions(gathered *g, gl_error *err) {
  gathered_series **sorted = sorted_series(&g->memory, g);
  gl_status status = arena_check(&g->memory, "names", err);
  for (size_t i = 1; status == GL_OK && i < g->n_series; i++)
    if (compare_names(&sorted[i - 1], &sorted[i]) == 0)
      status = refuse_shared(sorted[i - 1], sorted[i], err);
  return status;
}

/* --- several scores under one label --- */

static bool same_label(const gathered_series *a, const gathered_series *b) {
  return strcmp(a->label_path, b->label_path) == 0 && strcmp(a->label, b->label) == 0;
}

/* Index of the first score with the label of series i. */
static size_t first_score(const gathered *g, size_t i) {
  size_t k = 0;
  while (!g->series[k].what.is_score || !same_label(&g->series[k], &g->series[i])) k++;
  return k;
}

/* Scores with several names are different benchmarks; the metric is added to their label: "AIME24,
 * eval/accuracy". */
static gl_status label_scores(gathered *g, gl_error *err) {
  size_t *first = ARENA_ARRAY(&g->memory, size_t, g->n_series);
  bool *several = ARENA_ARRAY(&g->memory, bool, g->n_series);
  const size_t n = g->memory.failed ? 0 : g->n_series;
  for (size_t i = 0; i < n; i++) {
    if (!g->series[i].what.is_score) continue;
    first[i] = first_score(g, i);
    several[first[i]] |= strcmp(g->series[first[i]].metric, g->series[i].metric) != 0;
  }
  for (size_t i = 0; i < n; i++) {
    gathered_series *s = &g->series[i];
    if (s->what.is_score && several[first[i]])
      s->label = join_names(&g->memory, s->label, *s->label ? ", " : "", s->metric);
  }
  return arena_check(&g->memory, "labels", err);
}

/* --- steps --- */

typedef struct point {
  double step, value;
  size_t line;
} point;

static int compare_points(const void *a, const void *b) {
  const double x = ((const point *)a)->step, y = ((const point *)b)->step;
  return (x > y) - (x < y);
}

/* A log that a restart continues, which goes back to a step after its first one: removes the values
 * that are written again. Returns their number; 0 if the log goes back to its beginning or before,
 * as several runs do that are one file. */
static size_t replace_restarted(gathered_series *s) {
  size_t n = 0;
  for (size_t i = 1; i < s->n; i++)
    if (s->step[i] <= s->step[i - 1] && s->step[i] <= s->step[0]) return 0;
  for (size_t i = 0; i < s->n; i++) {
    while (n > 0 && s->step[i] <= s->step[n - 1]) n--;
    s->step[n] = s->step[i], s->value[n] = s->value[i], s->line[n++] = s->line[i];
  }
  const size_t replaced = s->n - n;
  s->n = s->n_all = n;
  return replaced;
}

/* Sorts the values by step. m: scratch. *replaced += values that a restart wrote again. */
static gl_status sort_points(arena *m, gathered_series *s, size_t *replaced, gl_error *err) {
  size_t i = 1;
  while (i < s->n && s->step[i - 1] < s->step[i]) i++;
  if (i >= s->n) return GL_OK;
  point *p = ARENA_ARRAY(m, point, s->n);
  if (!p) return gl_fail_memory(err, "steps");
  for (i = 0; i < s->n; i++) p[i] = (point){s->step[i], s->value[i], s->line[i]};
  qsort(p, s->n, sizeof *p, compare_points);
  for (i = 1; i < s->n && p[i - 1].step < p[i].step;) i++;
  if (i < s->n) {
    const size_t again = replace_restarted(s);
    *replaced += again;
    return again > 0
               ? GL_OK
               : gl_fail(err, GL_EINPUT,
                         "%s: the run '%s' has two values of %s at step %g; if they are of several "
                         "runs, give these a column 'seed' or 'run', else remove one",
                         s->file, s->run, s->metric, p[i].step);
  }
  for (i = 0; i < s->n; i++)
    s->step[i] = p[i].step, s->value[i] = p[i].value, s->line[i] = p[i].line;
  return GL_OK;
}

static double last_step(const gathered_series *s) {
  double last = s->n_all > 0 ? s->step[s->n_all - 1] : -INFINITY;
  for (size_t i = 0; i < s->n_nan; i++) last = fmax(last, s->nan_step[i]);
  return last;
}

/* Truncates each series at the last step that all series of its label and metric have. */
static void cut_at_common(gathered *g) {
  for (size_t i = 0; i < g->n_series; i++) {
    gathered_series *s = &g->series[i];
    double common = INFINITY;
    for (size_t k = 0; k < g->n_series; k++) {
      const gathered_series *o = &g->series[k];
      if (strcmp(o->metric, s->metric) == 0 && same_label(o, s))
        common = fmin(common, last_step(o));
    }
    while (s->n > 0 && s->step[s->n - 1] > common) s->n--;
    s->end = common;
  }
}

size_t gathered_nan(const gathered_series *s, bool *at_end) {
  size_t n = 0;
  *at_end = s->n > 0 && isinf(s->value[s->n - 1]);
  for (size_t i = 0; i < s->n_nan; i++) {
    if (s->nan_step[i] > s->end) continue;
    n++;
    *at_end |= s->n == 0 || s->nan_step[i] > s->step[s->n - 1];
  }
  return n;
}

/* --- entry points --- */

static gl_status refuse_missing_metric(const gathered *g, const gather_request *q, gl_error *err) {
  char list[500] = "";
  size_t n = 0;
  if (!q->metric) return GL_OK;
  for (size_t i = 0; i < g->n_series; i++)
    if (g->series[i].is_chosen) return GL_OK;
  if (g->n_studies > 0) return GL_OK; /* the metrics of studies are those of core/base/metrics.h */
  for (size_t i = 0; i < g->n_series && n < sizeof list; i++) {
    size_t k = 0;
    while (k < i && strcmp(g->series[k].metric, g->series[i].metric) != 0) k++;
    if (k == i)
      n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", n ? ", " : "", g->series[i].metric);
  }
  if (n >= sizeof list) strcpy(list + sizeof list - 4, "...");
  return gl_fail(err, GL_EINPUT, "no file has a metric '%s'; there are: %s", q->metric, list);
}

static gl_status refuse_repeated_files(const gather_request *q, gl_error *err) {
  for (size_t i = 0; i < q->n_files; i++)
    for (size_t k = 0; k < i; k++)
      if (strcmp(q->files[i], q->files[k]) == 0)
        return gl_fail(err, GL_EINPUT, "%s is given twice; give it once", q->files[i]);
  return GL_OK;
}

static gl_status read_files(gathered *g, const rules *r, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < r->of->n_files && status == GL_OK; i++) {
    int is_study = 0;
    if (file_is_folder(r->of->files[i])) {
      status = gather_folder(g, r, i, err);
      continue;
    }
    status = read_is_study(r->of->files[i], &is_study, err);
    if (status == GL_OK)
      status = is_study ? add_studies(g, r, i, err) : add_table(g, r, i, r->of->files[i], err);
  }
  return status;
}

/* "a, b, c, ...": distinct names of series. */
typedef struct name_list {
  char text[300];
  size_t n, used;
  const char *last;
} name_list;

static void gathered_list_name(name_list *list, const char *name) {
  enum { MOST = 4 };
  if (list->last && strcmp(list->last, name) == 0) return;
  list->last = name;
  if (++list->n > MOST + 1 || list->used >= sizeof list->text) return;
  list->used += (size_t)snprintf(list->text + list->used, sizeof list->text - list->used, "%s%.60s",
                                 list->n > 1 ? ", " : "", list->n > MOST ? "..." : name);
}

/* A rule that matches no run is most likely a mistake and is rejected. */
static gl_status refuse_idle_rules(const gathered *g, const rules *r, gl_error *err) {
  const gather_request *q = r->of;
  name_list runs = {.n = 0}, metrics = {.n = 0};
  int found = g->n_series == 0 || !q->group_by;
  for (size_t i = 0; i < g->n_series; i++) {
    gl_status status = GL_OK;
    if (!found) status = pattern_matches(r->group_by, g->series[i].run, &found, err);
    if (status != GL_OK) return status;
    gathered_list_name(&runs, g->series[i].run);
    gathered_list_name(&metrics, g->series[i].metric);
  }
  if (!found)
    return gl_fail(err, GL_EINPUT, "--group-by '%s' matches none of the runs: %s", q->group_by,
                   runs.text);
  for (size_t i = 0; g->n_series > 0 && i < q->n_read_as; i++)
    if (!r->read_as.has_matched[i])
      return gl_fail(err, GL_EINPUT, "--read-as '%s' matches none of the metrics: %s",
                     q->read_as[i], metrics.text);
  return GL_OK;
}

/* Checks that --x and --log-format have an effect. */
static gl_status refuse_idle_shape(const gathered *g, const shape_request *q, gl_error *err) {
  bool has_steps = q->step == NULL;
  if (g->n_tables == 0 && (q->step != NULL || q->format != NULL))
    return gl_fail(err, GL_EINPUT, "--%s is for tables and logs, and only studies are given",
                   q->step != NULL ? "x" : "log-format");
  for (size_t i = 0; i < g->n_tables; i++)
    has_steps = has_steps || strcmp(g->tables[i]->axis, q->step) == 0;
  if (has_steps) return GL_OK;
  return gl_fail(
      err, GL_EINPUT,
      "--x %s: no column with the steps is headed '%s'; they are in '%s' (leave --x out)", q->step,
      q->step, g->tables[0]->axis);
}

static gl_status arrange_series(gathered *g, const gather_request *q, gl_error *err) {
  gl_status status = refuse_missing_metric(g, q, err);
  if (status == GL_OK && g->n_studies == 0 && (q->set || q->each_set))
    status = gl_fail(err, GL_EINPUT,
                     "none of the files is a study, and evaluation sets are a study's; say of "
                     "exports which benchmark each is of: --label FILE=NAME");
  size_t replaced = 0;
  char note[160];
  for (size_t i = 0; i < g->n_series && status == GL_OK; i++)
    status = sort_points(&g->memory, &g->series[i], &replaced, err);
  snprintf(note, sizeof note,
           "%zu values were written again at steps that a log had reached, by a restart; the later "
           "values are used",
           replaced);
  if (status == GL_OK && replaced > 0) status = gather_note(g, note, err);
  if (status == GL_OK && q->group_by) number_replicates(g);
  if (status == GL_OK) status = label_scores(g, err);
  if (status == GL_OK) status = keep_tags(g, err);
  if (status == GL_OK) status = refuse_collisions(g, err);
  if (status == GL_OK && q->at_common) cut_at_common(g);
  return status;
}

gl_status gather(gathered *out, const gather_request *request, gl_error *err) {
  rules r;
  *out = (gathered){0};
  gl_status status = rules_init(&r, request, err);
  if (status == GL_OK) status = refuse_repeated_files(request, err);
  if (status == GL_OK) status = read_labels(r.labels, request, err);
  if (status == GL_OK) status = read_files(out, &r, err);
  if (status == GL_OK) status = refuse_idle_rules(out, &r, err);
  if (status == GL_OK) status = refuse_idle_shape(out, &request->shape, err);
  if (status == GL_OK) status = arrange_series(out, request, err);
  rules_fini(&r);
  return status;
}
