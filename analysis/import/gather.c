/* Reads several files and names what is in them. */
#include "analysis/import/gather.h"

#include "analysis/import/pattern.h"
#include "analysis/import/read.h"
#include "analysis/sets.h"
#include "core/config/fields.h"
#include "core/store/store.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char plain_label[] = RESULTS_LABEL;

void gathered_fini(gathered *g) {
  for (size_t i = 0; i < g->n_series; i++) {
    gathered_series *s = &g->series[i];
    free(s->label), free(s->name), free(s->run), free(s->metric), free(s->step), free(s->value);
  }
  for (size_t i = 0; i < g->n_studies; i++) {
    gathered_study *s = &g->studies[i];
    for (size_t a = 0; s->algorithms && a < s->from->n_algorithms; a++) free(s->algorithms[a]);
    free(s->label), free(s->algorithms), results_free(s->from);
  }
  for (size_t i = 0; i < g->n_tables; i++) series_table_free(g->tables[i]);
  free(g->series), free(g->studies), free(g->tables);
  *g = (gathered){0};
}

/* Room for one more item of `size` bytes; arrays grow when their length reaches a power of two. */
static void *grow(void *items, size_t n, size_t size) {
  if (n & (n - 1)) return items;
  const size_t room = n == 0 ? 1 : 2 * n;
  return room > (size_t)-1 / size ? NULL : realloc(items, room * size);
}

/* --- labels --- */

typedef struct file_label {
  const char *path, *text; /* text: "" if none */
  const char *given;       /* the option's words */
} file_label;

static const char *file_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* How many bytes of the option name the file, by its path or its name alone; 0: it does not. */
static size_t names_file(const char *option, const char *path) {
  const char *const forms[] = {path, file_name(path)};
  for (size_t i = 0; i < 2; i++) {
    const size_t n = strlen(forms[i]);
    if (n > 0 && strncmp(option, forms[i], n) == 0 && option[n] == '=') return n;
  }
  return 0;
}

/* The label, or, of "cluster.window=32", the field and its value. */
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
                   option, q->n_files ? file_name(q->files[0]) : "eval.csv");
  if (same > 0)
    return gl_fail(err, GL_EINPUT, "--label '%s' fits several files; name the file by its path",
                   option);
  return set_label(&labels[file], option, option + best + 1, err);
}

/* --- names --- */

/* The regular expressions of a request. */
typedef struct rules {
  pattern **rename, **read_as, *group_by;
  unsigned char *has_read; /* for each of read_as whether it has named a metric */
} rules;

static gl_status compile_rules(pattern ***out, const char *const *texts, size_t n,
                               const char *option, gl_error *err) {
  gl_status status = GL_OK;
  *out = calloc(n + 1, sizeof **out);
  if (!*out) return gl_fail_memory(err, "regular expressions");
  for (size_t i = 0; i < n && status == GL_OK; i++)
    status = pattern_new_rule(&(*out)[i], texts[i], option, err);
  return status;
}

static gl_status rules_init(rules *r, const gather_request *q, gl_error *err) {
  *r = (rules){0};
  gl_status status = compile_rules(&r->rename, q->renames, q->n_renames, "--rename", err);
  if (status == GL_OK)
    status = compile_rules(&r->read_as, q->read_as, q->n_read_as, "--read-as", err);
  r->has_read = calloc(q->n_read_as + 1, 1);
  if (status == GL_OK && !r->has_read) status = gl_fail_memory(err, "regular expressions");
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
  for (size_t i = 0; r->rename && r->rename[i]; i++) pattern_free(r->rename[i]);
  for (size_t i = 0; r->read_as && r->read_as[i]; i++) pattern_free(r->read_as[i]);
  free(r->rename), free(r->read_as), free(r->has_read), pattern_free(r->group_by);
}

/* A rule whose expression begins with a bracket sees the tag: "\[paper\]GEPO=gepo". */
static int sees_tags(const char *rule) {
  if (*rule == '^') rule++;
  return rule[0] == '\\' && rule[1] == '[';
}

/* The name that the first matching rule makes of the text, or, where the rule's words in `texts`
 * ask for it, of the tagged one (which may be NULL); a copy of the text where none matches. On the
 * heap. has_named, unless it is NULL, notes the rule that matched. */
static gl_status apply_rules(pattern *const *list, const char *const *texts, const char *text,
                             const char *tagged, unsigned char *has_named, char **out,
                             gl_error *err) {
  gl_status status = GL_OK;
  *out = NULL;
  for (size_t i = 0; list[i] && !*out && status == GL_OK; i++) {
    const char *seen = sees_tags(texts[i]) ? tagged : text;
    if (seen) status = pattern_apply(list[i], seen, out, err);
    if (has_named && *out) has_named[i] = 1;
  }
  if (status == GL_OK && !*out && !(*out = strdup(text))) status = gl_fail_memory(err, "names");
  return status;
}

/* What the run is called: the group's name, then the rule's. */
static gl_status name_of(const gather_request *q, const rules *r, const series *s, char **out,
                         gl_error *err) {
  char *group = NULL, tagged[2 * IMPORT_MOST_NAME + 3];
  snprintf(tagged, sizeof tagged, "[%s]%s", s->tag, s->run);
  gl_status status = GL_OK;
  if (r->group_by) status = pattern_apply(r->group_by, s->run, &group, err);
  if (status == GL_OK)
    status = apply_rules(r->rename, q->renames, group ? group : s->run,
                         *s->tag && !group ? tagged : NULL, NULL, out, err);
  free(group);
  return status;
}

/* --- series --- */

static int is_asked_for(const gather_request *q, const char *name, quantity what) {
  return !q->metric || strcmp(name, q->metric) == 0 || series_has_component(name, q->metric) ||
         (what.known < METRIC_COUNT && metric_find(q->metric) == what.known);
}

static gl_status add_series(gathered *g, const gather_request *q, const rules *r,
                            const file_label *label, size_t file, const series *s, gl_error *err) {
  if (g->n_series == IMPORT_MOST_SERIES)
    return gl_fail(err, GL_EINPUT, "%s: there are more than %d series; give fewer files or runs",
                   q->files[file], (int)IMPORT_MOST_SERIES);
  gathered_series *more = grow(g->series, g->n_series, sizeof *more);
  if (!more) return gl_fail_memory(err, "series");
  g->series = more;
  gathered_series *to = &more[g->n_series++];
  const char *own = *s->metric ? s->metric : q->metric ? q->metric : QUANTITY_UNNAMED;
  *to = (gathered_series){.file = q->files[file],
                          .label_path = label->path,
                          .label = strdup(*label->text ? label->text : s->label),
                          .tag = s->tag,
                          .settings = s->settings,
                          .chosen = s->chosen,
                          .run = strdup(s->run),
                          .seed = s->has_seed ? s->seed : 0,
                          .step = calloc(s->n + 1, sizeof *to->step),
                          .value = calloc(s->n + 1, sizeof *to->value),
                          .n = s->n,
                          .n_all = s->n};
  gl_status status = name_of(q, r, s, &to->name, err);
  if (status == GL_OK)
    status = apply_rules(r->read_as, q->read_as, own, NULL, r->has_read, &to->metric, err);
  if (status != GL_OK) return status;
  if (!to->label || !to->run || !to->step || !to->value) return gl_fail_memory(err, "series");
  if (s->n > 0) {
    memcpy(to->step, s->step, s->n * sizeof *s->step);
    memcpy(to->value, s->value, s->n * sizeof *s->value);
  }
  to->what = quantity_of(to->metric);
  if (to->what.is_guessed && q->lower_is_better) to->what.better = METRIC_LOWER_IS_BETTER;
  to->is_chosen = is_asked_for(q, to->metric, to->what);
  /* What is asked for, and is nothing that training measures, is the score. */
  if (q->metric && to->what.known == METRIC_COUNT) to->what.is_score = to->is_chosen;
  if (q->metric && q->lower_is_better && to->is_chosen) to->what.better = METRIC_LOWER_IS_BETTER;
  return GL_OK;
}

static gl_status add_table(gathered *g, const gather_request *q, const rules *r,
                           const file_label *label, size_t file, gl_error *err) {
  series_table **more = grow(g->tables, g->n_tables, sizeof *more), *t = NULL;
  if (!more) return gl_fail_memory(err, "files");
  g->tables = more;
  gl_status status = read_series(&t, q->files[file], &q->shape, err);
  if (status != GL_OK) return status;
  more[g->n_tables++] = t;
  g->n_left_out += t->n_left_out;
  for (size_t i = 0; i < t->n_series && status == GL_OK; i++)
    if (t->series[i].n > 0) status = add_series(g, q, r, label, file, &t->series[i], err);
  return status;
}

/* --- studies --- */

/* A study of the file, with that set's score as the runs' own (NULL: as it is). */
static gl_status add_study(gathered *g, const gather_request *q, const rules *r,
                           const file_label *label, size_t file, store *from, const char *name,
                           const char *set, const char *shown_label, gl_error *err) {
  gathered_study *more = grow(g->studies, g->n_studies, sizeof *more);
  if (!more) return gl_fail_memory(err, "studies");
  g->studies = more;
  results *loaded = NULL;
  gl_status status = results_load(&loaded, from, name, err);
  if (status != GL_OK) return status;
  gathered_study *to = &more[g->n_studies++];
  *to = (gathered_study){.file = q->files[file],
                         .label_path = label->path,
                         .label = strdup(shown_label),
                         .from = loaded};
  to->algorithms = calloc(loaded->n_algorithms + 1, sizeof *to->algorithms);
  if (!to->label || !to->algorithms) return gl_fail_memory(err, "studies");
  for (size_t a = 0; a < loaded->n_algorithms && status == GL_OK; a++)
    status = apply_rules(r->rename, q->renames, loaded->algorithms[a], NULL, NULL,
                         &to->algorithms[a], err);
  return status == GL_OK && set ? sets_choose(loaded, set, err) : status;
}

/* Once for each of its sets, of which it must have some. */
static gl_status add_each_set(gathered *g, const gather_request *q, const rules *r,
                              const file_label *label, size_t file, store *from, const char *name,
                              const char *study_label, gl_error *err) {
  results *loaded = NULL;
  const char **sets = NULL;
  size_t n = 0;
  gl_status status = results_load(&loaded, from, name, err);
  if (status == GL_OK) status = sets_names(&sets, &n, loaded, err);
  if (status == GL_OK && n == 0)
    status = gl_fail(err, GL_EINPUT,
                     "%s: the study %s has no evaluation sets; a recipe names them in "
                     "world.evaluation.sets",
                     q->files[file], name);
  if (status == GL_OK && strcmp(label->path, plain_label) != 0)
    status = gl_fail(err, GL_EINPUT,
                     "--label '%s' sets a field, and the evaluation sets of %s are labels too; "
                     "show one of them: --set %s",
                     label->given, q->files[file], sets[0]);
  for (size_t i = 0; i < n && status == GL_OK; i++) {
    char both[2 * IMPORT_MOST_NAME + 8];
    snprintf(both, sizeof both, "%s%s%s", study_label, *study_label ? ", " : "", sets[i]);
    status = add_study(g, q, r, label, file, from, name, sets[i], both, err);
  }
  free(sets);
  results_free(loaded);
  return status;
}

static gl_status add_studies(gathered *g, const gather_request *q, const rules *r,
                             const file_label *label, size_t file, gl_error *err) {
  store *s = NULL;
  char **names = NULL;
  size_t n = 0;
  gl_status status = store_open(&s, q->files[file], STORE_READ, err);
  if (status == GL_OK) status = results_studies(&names, &n, s, err);
  for (size_t i = 0; i < n && status == GL_OK; i++) {
    const char *own = *label->text ? label->text : n > 1 ? names[i] : "";
    status = q->each_set ? add_each_set(g, q, r, label, file, s, names[i], own, err)
                         : add_study(g, q, r, label, file, s, names[i], q->set, own, err);
  }
  free(names);
  store_close(s);
  return status;
}

/* --- names that several runs share --- */

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

/* Equal but for their place, so that the order does not depend on qsort(). */
static int compare_all(const void *a, const void *b) {
  const gathered_series *x = *(gathered_series *const *)a, *y = *(gathered_series *const *)b;
  const int order = compare_names(a, b);
  return order ? order : (x > y) - (x < y);
}

/* The series by name, so that those that share all of it are neighbours; NULL if memory is short.
 */
static gathered_series **sorted_series(gathered *g) {
  gathered_series **sorted = calloc(g->n_series + 1, sizeof *sorted);
  if (!sorted) return NULL;
  for (size_t i = 0; i < g->n_series; i++) sorted[i] = &g->series[i];
  qsort(sorted, g->n_series, sizeof *sorted, compare_all);
  return sorted;
}

/* Runs that --group-by puts together get seeds 1, 2, ... in the order of the files, by their own
 * names. */
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

static gl_status put_tag(gathered_series *s, gl_error *err) {
  const size_t size = strlen(s->tag) + strlen(s->name) + 3;
  char *tagged = malloc(size);
  if (!tagged) return gl_fail_memory(err, "names");
  snprintf(tagged, size, "[%s]%s", s->tag, s->name);
  free(s->name);
  s->name = tagged;
  return GL_OK;
}

/* A name that runs with different tags share keeps its tag, everywhere. */
static gl_status keep_tags(gathered *g, gl_error *err) {
  gathered_series **sorted = sorted_series(g);
  char *shared = calloc(g->n_series + 1, 1);
  gl_status status = sorted && shared ? GL_OK : gl_fail_memory(err, "names");
  for (size_t i = 0, first = 0; status == GL_OK && i < g->n_series; i++) {
    if (strcmp(sorted[first]->name, sorted[i]->name) != 0) first = i;
    if (i > 0 && compare_names(&sorted[i - 1], &sorted[i]) == 0 &&
        strcmp(sorted[i - 1]->tag, sorted[i]->tag) != 0)
      shared[first] = 1;
  }
  for (size_t i = 0, first = 0; status == GL_OK && i < g->n_series; i++) {
    if (strcmp(sorted[first]->name, sorted[i]->name) != 0) first = i;
    shared[i] = shared[first];
  }
  for (size_t i = 0; status == GL_OK && i < g->n_series; i++)
    if (shared[i] && *sorted[i]->tag) status = put_tag(sorted[i], err);
  free(sorted), free(shared);
  return status;
}

static gl_status refuse_shared(const gathered_series *a, const gathered_series *b, gl_error *err) {
  if (strcmp(a->file, b->file) != 0)
    return gl_fail(err, GL_EINPUT,
                   "%s and %s both have %s of the run '%s'; say which benchmark or study each is "
                   "of: --label %s=NAME --label %s=NAME",
                   a->file, b->file, a->metric, a->name, file_name(a->file), file_name(b->file));
  return gl_fail(err, GL_EINPUT,
                 "%s: '%s' and '%s' are both called '%s' and have %s; name them apart (--rename), "
                 "or say what their algorithm is called if they are seeds of one (--group-by)",
                 a->file, a->run, b->run, a->name, a->metric);
}

static gl_status refuse_collisions(gathered *g, gl_error *err) {
  gathered_series **sorted = sorted_series(g);
  gl_status status = sorted ? GL_OK : gl_fail_memory(err, "names");
  for (size_t i = 1; status == GL_OK && i < g->n_series; i++)
    if (compare_names(&sorted[i - 1], &sorted[i]) == 0)
      status = refuse_shared(sorted[i - 1], sorted[i], err);
  free(sorted);
  return status;
}

/* --- several scores under one label --- */

static int same_label(const gathered_series *a, const gathered_series *b) {
  return strcmp(a->label_path, b->label_path) == 0 && strcmp(a->label, b->label) == 0;
}

/* The first score with the label of series i. */
static size_t first_score(const gathered *g, size_t i) {
  size_t k = 0;
  while (!g->series[k].what.is_score || !same_label(&g->series[k], &g->series[i])) k++;
  return k;
}

/* "AIME24, eval/accuracy" */
static gl_status lengthen_label(gathered_series *s, gl_error *err) {
  const size_t size = strlen(s->label) + strlen(s->metric) + 3;
  char *longer = malloc(size);
  if (!longer) return gl_fail_memory(err, "labels");
  snprintf(longer, size, "%s%s%s", s->label, *s->label ? ", " : "", s->metric);
  free(s->label);
  s->label = longer;
  return GL_OK;
}

/* Scores of several names are several benchmarks: each is labelled by its metric too. */
static gl_status label_scores(gathered *g, gl_error *err) {
  size_t *first = calloc(g->n_series + 1, sizeof *first);
  char *several = calloc(g->n_series + 1, 1);
  gl_status status = first && several ? GL_OK : gl_fail_memory(err, "labels");
  for (size_t i = 0; status == GL_OK && i < g->n_series; i++) {
    if (!g->series[i].what.is_score) continue;
    first[i] = first_score(g, i);
    several[first[i]] |= strcmp(g->series[first[i]].metric, g->series[i].metric) != 0;
  }
  for (size_t i = 0; status == GL_OK && i < g->n_series; i++)
    if (g->series[i].what.is_score && several[first[i]])
      status = lengthen_label(&g->series[i], err);
  free(first), free(several);
  return status;
}

/* --- steps --- */

typedef struct point {
  double step, value;
} point;

static int compare_points(const void *a, const void *b) {
  const double x = ((const point *)a)->step, y = ((const point *)b)->step;
  return (x > y) - (x < y);
}

static gl_status sort_points(gathered_series *s, gl_error *err) {
  size_t i = 1;
  while (i < s->n && s->step[i - 1] < s->step[i]) i++;
  if (i >= s->n) return GL_OK;
  point *p = calloc(s->n, sizeof *p);
  if (!p) return gl_fail_memory(err, "steps");
  for (i = 0; i < s->n; i++) p[i] = (point){s->step[i], s->value[i]};
  qsort(p, s->n, sizeof *p, compare_points);
  gl_status status = GL_OK;
  for (i = 0; i < s->n && status == GL_OK; i++) {
    s->step[i] = p[i].step, s->value[i] = p[i].value;
    if (i > 0 && p[i - 1].step == p[i].step)
      status = gl_fail(err, GL_EINPUT,
                       "%s: the run '%s' has two values of %s at step %g; if they are of several "
                       "runs, give these a column 'seed' or 'run', else remove one",
                       s->file, s->run, s->metric, p[i].step);
  }
  free(p);
  return status;
}

/* Each ends at the last step that all series of its label and metric have. */
static void cut_at_common(gathered *g) {
  for (size_t i = 0; i < g->n_series; i++) {
    gathered_series *s = &g->series[i];
    double common = INFINITY;
    for (size_t k = 0; k < g->n_series; k++) {
      const gathered_series *o = &g->series[k];
      if (strcmp(o->metric, s->metric) == 0 && same_label(o, s))
        common = fmin(common, o->step[o->n_all - 1]);
    }
    while (s->n > 0 && s->step[s->n - 1] > common) s->n--;
  }
}

/* --- the whole --- */

static gl_status refuse_missing_metric(const gathered *g, const gather_request *q, gl_error *err) {
  char list[500] = "";
  size_t n = 0;
  if (!q->metric) return GL_OK;
  for (size_t i = 0; i < g->n_series; i++)
    if (g->series[i].is_chosen) return GL_OK;
  if (g->n_studies > 0) return GL_OK; /* what they have is in core/base/metrics.h */
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

static gl_status read_files(gathered *g, const gather_request *q, const rules *r,
                            const file_label *labels, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < q->n_files && status == GL_OK; i++) {
    int is_study = 0;
    status = read_is_study(q->files[i], &is_study, err);
    if (status != GL_OK) break;
    status = is_study ? add_studies(g, q, r, &labels[i], i, err)
                      : add_table(g, q, r, &labels[i], i, err);
  }
  return status;
}

/* "a, b, c, ...": names of series, each once. */
typedef struct name_list {
  char text[300];
  size_t n, used;
  const char *last;
} name_list;

static void list_name(name_list *list, const char *name) {
  enum { MOST = 4 };
  if (list->last && strcmp(list->last, name) == 0) return;
  list->last = name;
  if (++list->n > MOST + 1 || list->used >= sizeof list->text) return;
  list->used += (size_t)snprintf(list->text + list->used, sizeof list->text - list->used, "%s%.60s",
                                 list->n > 1 ? ", " : "", list->n > MOST ? "..." : name);
}

/* A regular expression that is meant to sort runs and matches none of them is a slip. */
static gl_status refuse_idle_rules(const gathered *g, const gather_request *q, const rules *r,
                                   gl_error *err) {
  name_list runs = {.n = 0}, metrics = {.n = 0};
  int found = g->n_series == 0 || !q->group_by;
  for (size_t i = 0; i < g->n_series; i++) {
    gl_status status = GL_OK;
    if (!found) status = pattern_matches(r->group_by, g->series[i].run, &found, err);
    if (status != GL_OK) return status;
    list_name(&runs, g->series[i].run);
    list_name(&metrics, g->series[i].metric);
  }
  if (!found)
    return gl_fail(err, GL_EINPUT, "--group-by '%s' matches none of the runs: %s", q->group_by,
                   runs.text);
  for (size_t i = 0; g->n_series > 0 && i < q->n_read_as; i++)
    if (!r->has_read[i])
      return gl_fail(err, GL_EINPUT, "--read-as '%s' matches none of the metrics: %s",
                     q->read_as[i], metrics.text);
  return GL_OK;
}

static gl_status arrange(gathered *g, const gather_request *q, gl_error *err) {
  gl_status status = refuse_missing_metric(g, q, err);
  if (status == GL_OK && g->n_studies == 0 && (q->set || q->each_set))
    status = gl_fail(err, GL_EINPUT,
                     "none of the files is a study, and evaluation sets are a study's; say of "
                     "exports which benchmark each is of: --label FILE=NAME");
  for (size_t i = 0; i < g->n_series && status == GL_OK; i++)
    status = sort_points(&g->series[i], err);
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
  file_label *labels = calloc(request->n_files + 1, sizeof *labels);
  if (!labels && status == GL_OK) status = gl_fail_memory(err, "labels");
  for (size_t i = 0; labels && i < request->n_files; i++)
    labels[i] = (file_label){plain_label, "", NULL};
  for (size_t i = 0; i < request->n_labels && status == GL_OK; i++)
    status = read_label(labels, request, request->labels[i], err);
  if (status == GL_OK) status = read_files(out, request, &r, labels, err);
  if (status == GL_OK) status = refuse_idle_rules(out, request, &r, err);
  if (status == GL_OK) status = arrange(out, request, err);
  rules_fini(&r);
  free(labels);
  return status;
}
