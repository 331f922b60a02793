/* gepolab fields: every field of a recipe with its default, unit and meaning, printed from the
 * table of core/config/fields.h. `make docs` writes its output into experiments/RECIPES.md, each
 * section's fields where that document explains the section. */
#include "core/config/config.h"
#include "core/config/fields.h"
#include "core/config/units.h"
#include "experiments/base/args.h"
#include "experiments/base/print_json.h"

#include <stdio.h>
#include <string.h>

enum { DEFAULT_SIZE = 512, MEANING_SIZE = 1024, LONGEST_HINTS = 1024, MOST_PATHS = 256 };

/* Appends to text of DEFAULT_SIZE; what does not fit is cut. */
static void append(char *text, const char *what) {
  const size_t used = strlen(text);
  snprintf(text + used, DEFAULT_SIZE - used, "%s", what);
}

static const char *last_word(const char *path) {
  const char *dot = strrchr(path, '.');
  return dot != NULL ? dot + 1 : path;
}

/* Whether entry i and its n - 1 neighbours all hold under this condition only. */
static int is_common(const field_condition *c, size_t i, size_t n) {
  for (size_t k = i; k < i + n; ++k) {
    int found = 0;
    for (size_t m = 0; m < FIELD_MAX_CONDITIONS && fields_at(k)->when[m].path != NULL; ++m) {
      const field_condition *other = &fields_at(k)->when[m];
      found = found || (strcmp(other->path, c->path) == 0 && other->is != NULL && c->is != NULL &&
                        strcmp(other->is, c->is) == 0);
    }
    if (!found) return 0;
  }
  return 1;
}

/* Where entry k of a path's entries i, i + 1, ..., i + n - 1 holds and not all of them do: "preset
 * sync", "no lengths and no delay". *about: the path that the list so far is about, which is not
 * named again; NULL: the list is empty. */
static void append_case(char *text, size_t k, size_t i, size_t n, const char **about) {
  const field *f = fields_at(k);
  const char *between = *about != NULL ? ", " : "", *named = *about;
  for (size_t m = 0; m < FIELD_MAX_CONDITIONS && f->when[m].path != NULL; ++m) {
    const field_condition *c = &f->when[m];
    if (is_common(c, i, n)) continue;
    append(text, between);
    if (c->is == NULL) append(text, "no ");
    if (named == NULL || c->is == NULL || strcmp(named, c->path) != 0)
      append(text, last_word(c->path));
    if (c->is != NULL && (named == NULL || strcmp(named, c->path) != 0)) append(text, " ");
    if (c->is != NULL) append(text, c->is);
    *about = c->path;
    between = " and ";
  }
}

/* How many entries from i on have the same path. */
static size_t count_entries(size_t i) {
  size_t n = 1;
  while (fields_at(i + n) != NULL && strcmp(fields_at(i + n)->path, fields_at(i)->path) == 0) ++n;
  return n;
}

/* The default of the path that the entries i, ..., i + n - 1 are about: in the table's words, or
 * with its cases: "1 (preset sync); 4 (preset areal, fifo)". */
static void describe_default(size_t i, size_t n, char text[DEFAULT_SIZE]) {
  const char *between = "";
  text[0] = '\0';
  if (fields_at(i)->rule != NULL) {
    append(text, fields_at(i)->rule);
    return;
  }
  for (size_t k = i; k < i + n; ++k) {
    const char *fallback = fields_at(k)->fallback, *about = NULL;
    size_t same = 0, first = k;
    for (size_t m = i; m < i + n && fallback != NULL; ++m)
      if (fields_at(m)->fallback != NULL && strcmp(fields_at(m)->fallback, fallback) == 0) {
        ++same;
        if (m < first) first = m;
      }
    if (fallback == NULL || first < k) continue; /* told with the first entry that has it */
    append(text, between);
    append(text, fallback[0] != '\0' ? fallback : "empty");
    between = "; ";
    if (n == 1 || same == n) continue;
    append(text, " (");
    for (size_t m = k; m < i + n; ++m) {
      if (fields_at(m)->fallback == NULL || strcmp(fields_at(m)->fallback, fallback) != 0) continue;
      append_case(text, m, i, n, &about);
    }
    append(text, ")");
  }
}

/* What is printed of a path. */
typedef struct description {
  const char *path, *unit;
  char kind[32]; /* "number"; "choice or section" where that depends on another field */
  char fallback[DEFAULT_SIZE];
  char meaning[MEANING_SIZE];
} description;

/* Appends `what` behind a separator, unless the text is empty. */
static void join(char *text, size_t size, const char *separator, const char *what) {
  const size_t used = strlen(text);
  snprintf(text + used, size - used, "%s%s", used > 0 ? separator : "", what);
}

/* Beside what a field that cannot always be stated may be. */
static void join_companion(char *text, size_t size, const field_condition *unless) {
  char said[128];
  if (unless->path == NULL) return;
  if (unless->is == NULL)
    snprintf(said, sizeof said, "only beside `%s`", last_word(unless->path));
  else
    snprintf(said, sizeof said, "not with `%s: %s`", last_word(unless->path), unless->is);
  join(text, size, "; ", said);
}

/* The path of the entries i, ..., i + n - 1. */
static void describe(description *d, size_t i, size_t n) {
  *d = (description){.path = fields_at(i)->path, .unit = fields_at(i)->unit};
  describe_default(i, n, d->fallback);
  for (size_t k = i; k < i + n; ++k) {
    const field *f = fields_at(k);
    if (k == i || f->kind != fields_at(k - 1)->kind)
      join(d->kind, sizeof d->kind, " or ", field_kind_name(f->kind));
    if (f->about != NULL) join(d->meaning, sizeof d->meaning, "; ", f->about);
    join_companion(d->meaning, sizeof d->meaning, &f->unless);
  }
}

/* Which fields are asked for: those of the paths, and unless `only`, all below them; all where
 * there is no path. */
typedef struct selection {
  const char *const *path; /* [n] */
  size_t n;
  int only;
} selection;

static int is_selected(const selection *s, const char *path) {
  for (size_t i = 0; i < s->n; ++i) {
    const size_t length = strlen(s->path[i]);
    if (strncmp(path, s->path[i], length) != 0) continue;
    if (path[length] == '\0' || (!s->only && path[length] == '.')) return 1;
  }
  return s->n == 0;
}

/* A cell of a Markdown table: a bar ends it otherwise. */
static void print_cell(const char *text) {
  for (const char *c = text; *c != '\0'; ++c) {
    if (*c == '|') putchar('\\');
    putchar(*c);
  }
}

static void print_markdown(const description *d) {
  printf("| `%s` | %s | ", d->path, d->kind);
  print_cell(d->fallback);
  printf(" | %s | ", d->unit);
  print_cell(d->meaning);
  printf(" |\n");
}

static void print_plain(const description *d) {
  const int has_unit = d->unit[0] != '\0';
  printf("%-34s %-8s %s%s%s%s\n    %s\n", d->path, d->kind, d->fallback, has_unit ? " (" : "",
         d->unit, has_unit ? ")" : "", d->meaning);
}

static cJSON *field_json(const description *d) {
  cJSON *item = cJSON_CreateObject();
  if (json_add_string(item, "path", d->path) == NULL ||
      json_add_string(item, "kind", d->kind) == NULL ||
      json_add_string(item, "default", d->fallback) == NULL ||
      json_add_string(item, "unit", d->unit) == NULL ||
      json_add_string(item, "meaning", d->meaning) == NULL) {
    cJSON_Delete(item);
    return NULL;
  }
  return item;
}

typedef enum form { PLAIN, MARKDOWN, JSON } form;

/* The selected fields in the table's order. */
static gl_status print_fields(const selection *which, form as, gl_error *err) {
  cJSON *list = as == JSON ? cJSON_CreateArray() : NULL;
  int good = as != JSON || list != NULL;
  if (as == MARKDOWN) puts("| field | kind | default | unit | meaning |\n|---|---|---|---|---|");
  for (size_t i = 0, n; fields_at(i) != NULL && good; i += n) {
    description d;
    n = count_entries(i);
    if (!is_selected(which, fields_at(i)->path)) continue;
    describe(&d, i, n);
    switch (as) {
    case PLAIN:
      print_plain(&d);
      break;
    case MARKDOWN:
      print_markdown(&d);
      break;
    case JSON: {
      cJSON *item = field_json(&d);
      good = item != NULL && cJSON_AddItemToArray(list, item);
      break;
    }
    }
  }
  if (as != JSON) return GL_OK;
  return report_json_if(good, list, err);
}

static cJSON *unit_json(const unit *u) {
  cJSON *item = cJSON_CreateObject();
  if (json_add_string(item, "unit", u->name) == NULL ||
      json_add_string(item, "of_fields_in", u->dimension) == NULL ||
      cJSON_AddBoolToObject(item, "refused", u->factor == 0) == NULL ||
      json_add_string(item, "meaning", u->about) == NULL) {
    cJSON_Delete(item);
    return NULL;
  }
  return item;
}

/* Every unit that a number may have, and the letters that are refused as ambiguous. */
static gl_status print_units(form as, gl_error *err) {
  cJSON *list = as == JSON ? cJSON_CreateArray() : NULL;
  int good = as != JSON || list != NULL;
  if (as == MARKDOWN) puts("| unit | of fields in | meaning |\n|---|---|---|");
  for (size_t i = 0; units_at(i) != NULL && good; ++i) {
    const unit *u = units_at(i);
    const char *refused = u->factor == 0 ? "refused: " : "";
    switch (as) {
    case PLAIN:
      printf("%-8s %-10s %s%s\n", u->name, u->dimension, refused, u->about);
      break;
    case MARKDOWN:
      printf("| `%s` | %s | %s%s |\n", u->name, u->dimension, refused, u->about);
      break;
    case JSON: {
      cJSON *item = unit_json(u);
      good = item != NULL && cJSON_AddItemToArray(list, item);
      break;
    }
    }
  }
  if (as != JSON) return GL_OK;
  return report_json_if(good, list, err);
}

static gl_status refuse_unknown(const char *path, gl_error *err) {
  const char *names[LONGEST_HINTS];
  size_t n = 0;
  for (size_t i = 0; fields_at(i) != NULL && n < LONGEST_HINTS; ++i)
    names[n++] = fields_at(i)->path;
  char hint[CFG_HINT_SIZE];
  return gl_fail(err, GL_EINPUT, "recipes have no field '%s'%s; `gepolab fields` lists them", path,
                 cfg_hint(path, names, n, hint));
}

static gl_status run_fields(const command *self, int argc, char **argv, gl_error *err) {
  int json = 0, only = 0, units = 0;
  const char *format = NULL;
  static const char *const formats[] = {"text", "markdown"};
  size_t chosen = 0;
  const args_option options[] = {
      {"format", 'f', ARGS_TEXT, "text|markdown", "how they are written", &format},
      {"json", 0, ARGS_FLAG, NULL, "path, kind, default, unit and meaning as JSON", &json},
      {"only", 0, ARGS_FLAG, NULL, "no fields below the sections named", &only},
      {"units", 0, ARGS_FLAG, NULL, "the units that numbers may have, instead of fields", &units}};
  args a;
  gl_status status =
      args_parse(&a, self, options, 4, (args_shape){0, MOST_PATHS, 0}, argc, argv, err);
  if (status == GL_OK && !a.help && format != NULL)
    status = args_choose(&chosen, "--format", format, formats, 2, err);
  if (status == GL_OK && !a.help) {
    const selection which = {a.words, a.n_words, only};
    for (size_t i = 0; i < which.n && status == GL_OK; ++i)
      if (fields_named(which.path[i]) == NULL && !fields_is_section(which.path[i]))
        status = refuse_unknown(which.path[i], err);
    const form as = json ? JSON : chosen == 1 ? MARKDOWN : PLAIN;
    if (status == GL_OK) status = units ? print_units(as, err) : print_fields(&which, as, err);
  }
  args_fini(&a);
  return status;
}

const command command_fields = {
    .name = "list fields",
    .arguments = "[FIELD…]",
    .summary = "every field of a recipe: default, unit, meaning",
    .about =
        "FIELD is a field or a section, such as cluster.learner; without one, all fields are\n"
        "printed. Fields that a recipe leaves out have the default; where it depends on another\n"
        "field, the cases are named. A number may have a unit of its field's dimension behind it\n"
        "(10m, 1.5GiB, 100Mbit/s); --units lists those. The fields of an algorithm are listed by "
        "`gepolab\n"
        "algorithms --fields`.",
    .examples =
        "  gepolab list fields cluster.up\n  gepolab list fields train optimizer --format markdown",
    .run = run_fields};
