/* gepolab list fields: every field of a recipe with its default, unit and meaning, printed from the
 * table of core/config/fields.h. `make docs` writes its output into experiments/RECIPES.md, each
 * section's fields where that document explains the section. */
#define _GNU_SOURCE /* strcasestr */
#include "core/base/display_text.h"
#include "core/config/config.h"
#include "core/config/fields.h"
#include "core/config/units.h"
#include "experiments/base/args.h"
#include "experiments/base/print_json.h"
#include "experiments/plan/plan.h"
#include "experiments/recipe/recipe.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
  DEFAULT_SIZE = 512,
  MEANING_SIZE = 1024,
  LONGEST_HINTS = 1024,
  MOST_PATHS = 256,
  MOST_CASES = 64,
  INDENT = 4 /* columns before a field's meaning */
};

/* Appends to text[DEFAULT_SIZE]; truncates if it does not fit. */
static void append(char *text, const char *what) {
  const size_t used = strlen(text);
  snprintf(text + used, DEFAULT_SIZE - used, "%s", what);
}

/* The entries of one path. */
typedef struct entries {
  const field *of[MOST_CASES];
  size_t n;
} entries;

static entries entries_of(const char *path) {
  entries e = {.n = 0};
  for (size_t i = 0; fields_at(i) != NULL && e.n < MOST_CASES; ++i)
    if (strcmp(fields_at(i)->path, path) == 0) e.of[e.n++] = fields_at(i);
  return e;
}

/* A default, and the cases in which it holds: "preset sync, areal". */
typedef struct fallback {
  char value[FIELD_TEXT_SIZE], cases[DEFAULT_SIZE];
  size_t n;
} fallback;

typedef struct fallbacks {
  fallback of[MOST_CASES];
  size_t n;
} fallbacks;

/* Adds a case, such as "preset sync", to the default with this value, which is appended if it is
 * new. Returns the index of the default. */
static size_t fields_add_case(fallbacks *all, const char *value, const char *of, const char *name) {
  size_t k = 0;
  while (k < all->n && strcmp(all->of[k].value, value) != 0) ++k;
  if (k == MOST_CASES) return 0;
  fallback *f = &all->of[k];
  if (k == all->n) {
    *f = (fallback){.n = 0};
    snprintf(f->value, sizeof f->value, "%s", value[0] != '\0' ? value : "empty");
    ++all->n;
  }
  append(f->cases, f->n++ > 0 ? ", " : of);
  if (f->n == 1 && of[0] != '\0') append(f->cases, " ");
  append(f->cases, name);
  return k;
}

/* Writes "1 (preset sync); else 4". usual: index of the default that comes last, after "else";
 * MOST_CASES: there is none. */
static void append_cases(char text[DEFAULT_SIZE], const fallbacks *all, size_t usual) {
  for (size_t k = 0; k < all->n; ++k) {
    if (k == usual) continue;
    if (text[0] != '\0') append(text, "; ");
    append(text, all->of[k].value);
    append(text, " (");
    append(text, all->of[k].cases);
    append(text, ")");
  }
  if (usual >= all->n) return;
  if (all->n > 1) append(text, "; else ");
  append(text, all->of[usual].value);
}

static size_t conditions_of(const field *f) {
  size_t n = 0;
  while (n < FIELD_MAX_CONDITIONS && f->when[n].path != NULL) ++n;
  return n;
}

/* Writes a path's default: the rule that the table states, or the values under each preset or
 * condition. */
static void describe_default(const entries *e, char text[DEFAULT_SIZE]) {
  const field *f = e->of[0];
  fallbacks all = {.n = 0};
  size_t usual = 0, last = 0;
  char value[FIELD_TEXT_SIZE];
  const char *name = NULL, *preset;
  text[0] = '\0';
  if (f->rule != NULL) {
    append(text, f->rule);
    return;
  }
  for (size_t i = 0; (preset = field_preset_at(f, i, &name, value)) != NULL; ++i)
    last = fields_add_case(&all, preset, field_last_word(f->presets->path), name);
  /* The default of most presets; on ties, that of the last preset. */
  for (size_t k = 0; k < all.n; ++k)
    if (all.of[k].n > all.of[usual].n || (all.of[k].n == all.of[usual].n && k == last)) usual = k;
  for (size_t k = 0; f->presets == NULL && k < e->n; ++k) {
    const size_t n = conditions_of(e->of[k]);
    const field_condition *own = n > 0 ? &e->of[k]->when[n - 1] : NULL;
    if (e->of[k]->fallback == NULL) continue;
    last = fields_add_case(&all, e->of[k]->fallback, own != NULL ? field_last_word(own->path) : "",
                           own != NULL && own->is != NULL ? own->is : "");
    /* The entry with the fewest conditions has the default for all other cases. */
    usual = k == 0 || n < conditions_of(f) ? last : MOST_CASES;
  }
  append_cases(text, &all, usual);
}

/* The printed description of a field. */
typedef struct description {
  const char *path, *unit;
  char kind[32]; /* "number"; "choice or section" where that depends on another field */
  char fallback[DEFAULT_SIZE];
  char meaning[MEANING_SIZE];
} description;

/* Appends `what`, after a separator unless the text is empty. */
static void join(char *text, size_t size, const char *separator, const char *what) {
  const size_t used = strlen(text);
  snprintf(text + used, size - used, "%s%s", used > 0 ? separator : "", what);
}

/* Appends the condition under which the field may be stated: "only beside `x`" or "not with `x:
 * y`". */
static void join_companion(char *text, size_t size, const field_condition *unless) {
  char said[128];
  if (unless->path == NULL) return;
  if (unless->is == NULL)
    snprintf(said, sizeof said, "only beside `%s`", field_last_word(unless->path));
  else
    snprintf(said, sizeof said, "not with `%s: %s`", field_last_word(unless->path), unless->is);
  join(text, size, "; ", said);
}

static void describe_field(description *d, const field *first) {
  const entries e = entries_of(first->path);
  *d = (description){.path = first->path, .unit = first->unit};
  describe_default(&e, d->fallback);
  for (size_t k = 0; k < e.n; ++k) {
    const field *f = e.of[k];
    if (k == 0 || f->kind != e.of[k - 1]->kind)
      join(d->kind, sizeof d->kind, " or ", field_kind_name(f->kind));
    if (f->about != NULL) join(d->meaning, sizeof d->meaning, "; ", f->about);
    join_companion(d->meaning, sizeof d->meaning, &f->unless);
  }
}

/* The requested fields. A path selects itself and, unless `only` is set, all fields below it.
 * Another word selects fields that have it in their path, name or meaning. Without words all fields
 * are selected. */
typedef struct selection {
  const char *const *word; /* [n] */
  size_t n;
  int only;
} selection;

/* The fields of `gepolab plan`'s descriptions are in a table of their own. */
static bool is_path_of_plan(const char *word) {
  for (size_t i = 0; plan_field_at(i) != NULL; ++i)
    if (strcmp(plan_field_at(i)->path, word) == 0) return true;
  return false;
}

static bool plan_mentions(const plan_field *f, const char *word) {
  return strcasestr(f->path, word) != NULL || strcasestr(f->meaning, word) != NULL;
}

static bool is_path(const char *word) {
  return fields_named(word) != NULL || fields_is_section(word);
}

static bool mentions(const field *first, const char *word) {
  const entries e = entries_of(first->path);
  bool found = strcasestr(first->path, word) != NULL || strcasestr(first->label, word) != NULL;
  for (size_t k = 0; k < e.n && !found; ++k)
    found = e.of[k]->about != NULL && strcasestr(e.of[k]->about, word) != NULL;
  return found;
}

static bool is_selected(const selection *s, const field *f) {
  char own[FIELD_HINT_SIZE];
  for (size_t i = 0; i < s->n; ++i) {
    const size_t length = strlen(s->word[i]);
    if (!is_path(s->word[i]) &&
        (mentions(f, s->word[i]) || strcmp(fields_suggested(s->word[i], own), f->path) == 0))
      return true;
    if (strncmp(f->path, s->word[i], length) != 0 || !is_path(s->word[i])) continue;
    if (f->path[length] == '\0' || (!s->only && f->path[length] == '.')) return true;
  }
  return s->n == 0;
}

/* Returns true if a word selects the field. Without words the plan's fields are not printed. */
static bool is_selected_of_plan(const selection *s, const plan_field *f) {
  for (size_t i = 0; i < s->n; ++i) {
    const size_t length = strlen(s->word[i]);
    const bool is_word = !is_path(s->word[i]) && !is_path_of_plan(s->word[i]);
    if (is_word && plan_mentions(f, s->word[i])) return true;
    if (strncmp(f->path, s->word[i], length) != 0 || !is_path_of_plan(s->word[i])) continue;
    if (f->path[length] == '\0' || (!s->only && f->path[length] == '.')) return true;
  }
  return false;
}

/* Prints a cell of a Markdown table. A '|' is escaped, because it would end the cell. */
static void print_cell(const char *text) {
  for (const char *c = text; *c != '\0'; ++c) {
    if (*c == '|') putchar('\\');
    putchar(*c);
  }
}

static void fields_print_markdown(const description *d) {
  printf("| `%s` | %s | ", d->path, d->kind);
  print_cell(d->fallback);
  printf(" | %s | ", d->unit);
  print_cell(d->meaning);
  printf(" |\n");
}

static void fields_print_plain(const description *d) {
  const int has_unit = d->unit[0] != '\0';
  char text[DEFAULT_SIZE + 32];
  const size_t column = (size_t)printf("%-34s %-8s ", d->path, d->kind);
  snprintf(text, sizeof text, "%s%s%s%s", d->fallback, has_unit ? " (" : "", d->unit,
           has_unit ? ")" : "");
  shown_wrap(text, column, INDENT, stdout);
  printf("\n%*s", INDENT, "");
  shown_wrap(d->meaning, INDENT, INDENT, stdout);
  putchar('\n');
}

typedef enum form { PLAIN, MARKDOWN, JSON } form;

static void fields_print_one(const description *d, form as, cJSON *list) {
  switch (as) {
  case PLAIN:
    fields_print_plain(d);
    break;
  case MARKDOWN:
    fields_print_markdown(d);
    break;
  case JSON:
    json_put(json_object(list, NULL), "path %s, kind %s, default %s, unit %s, meaning %s", d->path,
             d->kind, d->fallback, d->unit, d->meaning);
    break;
  }
}

/* Prints the selected fields in the table's order. */
static gl_status print_fields(const selection *which, form as, gl_error *err) {
  cJSON *list = as == JSON ? cJSON_CreateArray() : NULL;
  if (as == MARKDOWN) puts("| field | kind | default | unit | meaning |\n|---|---|---|---|---|");
  const field *f;
  for (size_t i = 0; (f = fields_at(i)) != NULL; ++i) {
    description d;
    if (fields_named(f->path) != f || !is_selected(which, f)) continue;
    describe_field(&d, f);
    fields_print_one(&d, as, list);
  }
  for (size_t i = 0; plan_field_at(i) != NULL; ++i) {
    const plan_field *of = plan_field_at(i);
    description d = {.path = of->path, .unit = of->unit};
    if (!is_selected_of_plan(which, of)) continue;
    snprintf(d.kind, sizeof d.kind, "%s", of->kind);
    snprintf(d.fallback, sizeof d.fallback, "%s", of->fallback);
    snprintf(d.meaning, sizeof d.meaning, "%s", of->meaning);
    fields_print_one(&d, as, list);
  }
  return as == JSON ? report_json(list, err) : GL_OK;
}

/* Prints every unit that a number may have, and the letters that are refused as ambiguous. */
static gl_status print_units(form as, gl_error *err) {
  cJSON *list = as == JSON ? cJSON_CreateArray() : NULL;
  if (as == MARKDOWN) puts("| unit | of fields in | meaning |\n|---|---|---|");
  for (size_t i = 0; units_at(i) != NULL; ++i) {
    const unit *u = units_at(i);
    const char *refused = u->factor == 0 ? "refused: " : "";
    switch (as) {
    case PLAIN:
      printf("%-8s %-10s %s%s\n", u->name, u->dimension, refused, u->about);
      break;
    case MARKDOWN:
      printf("| `%s` | %s | %s%s |\n", u->name, u->dimension, refused, u->about);
      break;
    case JSON:
      json_put(json_object(list, NULL), "unit %s, of_fields_in %s, refused %i, meaning %s", u->name,
               u->dimension, u->factor == 0, u->about);
      break;
    }
  }
  return as == JSON ? report_json(list, err) : GL_OK;
}

/* Refuses a word that is neither a path nor in any field's name or meaning. */
static gl_status refuse_unknown(const char *path, gl_error *err) {
  const char *names[LONGEST_HINTS];
  char other[FIELD_HINT_SIZE];
  for (size_t i = 0; fields_at(i) != NULL; ++i)
    if (is_path(path) || mentions(fields_at(i), path)) return GL_OK;
  for (size_t i = 0; plan_field_at(i) != NULL; ++i)
    if (is_path_of_plan(path) || plan_mentions(plan_field_at(i), path)) return GL_OK;
  if (cfg_path_is_inside(path, "algorithm"))
    return gl_fail(err, GL_EINPUT,
                   "%s: the fields of algorithms are listed by `gepolab list algorithms --fields`",
                   path);
  if (*fields_elsewhere(path, NULL, other) != '\0')
    return gl_fail(err, GL_EINPUT, "recipes have no field '%s'; here that is %s", path, other);
  if (fields_absent(path) != NULL)
    return gl_fail(err, GL_EINPUT, "recipes have no field '%s': %s", path, fields_absent(path));
  size_t n = 0;
  for (size_t i = 0; fields_at(i) != NULL && n < LONGEST_HINTS; ++i)
    names[n++] = fields_at(i)->path;
  char hint[CFG_HINT_SIZE];
  return gl_fail(err, GL_EINPUT, "recipes have no field '%s'%s; `gepolab list fields` lists them",
                 path, cfg_hint(path, names, n, hint));
}

static gl_status run_fields(args *a, gl_error *err) {
  int json = 0, only = 0, units = 0, schema = 0;
  const char *format = NULL;
  static const char *const formats[] = {"text", "markdown"};
  size_t chosen = 0;
  const args_option options[] = {
      {"format", ARGS_OLD('f'), ARGS_TEXT, "text|markdown", "how they are written", &format},
      {"json", 0, ARGS_FLAG, NULL, "path, kind, default, unit and meaning as JSON", &json},
      {"only", 0, ARGS_FLAG, NULL, "no fields below the sections named", &only},
      {"schema", 0, ARGS_FLAG, NULL, "the JSON Schema of recipes, for editors", &schema},
      {"units", 0, ARGS_FLAG, NULL, "the units that numbers may have, instead of fields", &units}};
  gl_status status = args_parse(a, options, 5, err);
  if (status != GL_OK || a->help) return status;
  if (format != NULL) status = args_choose(&chosen, "--format", format, formats, 2, err);
  const selection which = {a->words, a->n_words, only};
  for (size_t i = 0; i < which.n && status == GL_OK; ++i)
    status = refuse_unknown(which.word[i], err);
  const form as = json ? JSON : chosen == 1 ? MARKDOWN : PLAIN;
  if (status == GL_OK && schema)
    status = report_json(recipe_schema(), err);
  else if (status == GL_OK)
    status = units ? print_units(as, err) : print_fields(&which, as, err);
  return status;
}

const command command_fields = {
    .name = "list fields",
    .arguments = "[FIELD|WORD…]",
    .words = {.input = ARGS_ANY, .max = MOST_PATHS},
    .summary = "every field of a recipe: default, unit, meaning",
    .about =
        "FIELD is a field or a section, such as cluster.learner; WORD is looked for in the names\n"
        "and meanings of all; without either, all are printed. Fields that a recipe leaves out\n"
        "have the default; where it depends on another field, the cases are named. A number may\n"
        "have a unit of its field's dimension behind it (10m, 1.5GiB, 100Mbit/s); --units lists\n"
        "those. --schema is for YAML editors. FIELD plan is of `gepolab plan`'s descriptions. "
        "Fields\n"
        "of an algorithm are listed by\n"
        "`gepolab list algorithms --fields`.",
    .examples = "  gepolab list fields cluster.up\n  gepolab list fields staleness\n  gepolab list "
                "fields train optimizer --format markdown",
    .run = run_fields};
