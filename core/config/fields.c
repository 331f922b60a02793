/* Looks up fields in the program's tables, and the designs of a sweep. */
#include "core/base/json.h"
#include "core/config/internal.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Weak: a program that reads no recipes need not define it. */
extern const field_table *const field_tables[FIELD_MOST_TABLES] __attribute__((weak));

/* State of an iteration through the tables; initialise with {0}. */
typedef struct field_walk {
  size_t table, entry;
} field_walk;

/* The next entry with that path (NULL: any), or NULL after the last. */
static const field *field_next(field_walk *w, const char *path) {
  for (; field_tables != NULL && w->table < FIELD_MOST_TABLES; ++w->table, w->entry = 0) {
    const field_table *t = field_tables[w->table];
    while (t != NULL && w->entry < t->n) {
      const field *f = &t->entries[w->entry++];
      if (path == NULL || strcmp(f->path, path) == 0) return f;
    }
  }
  return NULL;
}

const field *fields_at(size_t i) {
  for (size_t k = 0; field_tables != NULL && k < FIELD_MOST_TABLES; ++k) {
    const field_table *t = field_tables[k];
    if (t == NULL) continue;
    if (i < t->n) return &t->entries[i];
    i -= t->n;
  }
  return NULL;
}

const own_kind *fields_own_at(size_t i) {
  for (size_t k = 0; field_tables != NULL && k < FIELD_MOST_TABLES; ++k)
    if (field_tables[k] != NULL && field_tables[k]->own != NULL && i-- == 0)
      return field_tables[k]->own;
  return NULL;
}

const own_kind *fields_own_aside(const char *key) {
  const own_kind *kind;
  for (size_t i = 0; (kind = fields_own_at(i)) != NULL; ++i)
    if (strcmp(kind->aside, key) == 0) return kind;
  return NULL;
}

const field *fields_named(const char *path) {
  field_walk w = {0};
  return field_next(&w, path);
}

const field *fields_of_kind(const char *path, const char *kind_of, const char *kind) {
  const field *named = fields_of_item(path), *f;
  if (named == NULL || kind_of == NULL) return named;
  field_walk w = {0};
  while ((f = field_next(&w, named->path)) != NULL) {
    const field_condition *c = f->when;
    while (c < f->when + FIELD_MAX_CONDITIONS && c->path != NULL &&
           (c->is == NULL || strcmp(c->path, kind_of) != 0))
      ++c;
    if (c == f->when + FIELD_MAX_CONDITIONS || c->path == NULL || strcmp(c->is, kind) == 0)
      return f;
  }
  return named;
}

const field *fields_of_item(const char *path) {
  const field *f = fields_named(path), *list;
  field_walk w = {0};
  while (f == NULL && (list = field_next(&w, NULL)) != NULL) {
    if (list->items[0] == NULL || !cfg_path_is_inside(path, list->path)) continue;
    const size_t n = strlen(list->path);
    if (path[n] == '\0') continue;
    for (size_t i = 0; i < 2 && f == NULL && list->items[i] != NULL; ++i) {
      char whole[FIELD_PATH_SIZE];
      const int length = snprintf(whole, sizeof whole, "%s%s", list->items[i], path + n);
      if (length > 0 && (size_t)length < sizeof whole) f = fields_named(whole);
    }
  }
  return f;
}

const char *field_choice_at(const field *f, size_t i) {
  if (f->choice_at != NULL) return f->choice_at(i);
  for (size_t k = 0; f->choices != NULL && f->choices[k] != NULL; ++k)
    if (k == i) return f->choices[k];
  return NULL;
}

const char *field_word(const char *path, size_t i) {
  const field *f = fields_named(path);
  const char *word = f != NULL ? field_choice_at(f, i) : NULL;
  return word != NULL ? word : "";
}

const char *field_preset_at(const field *f, size_t i, const char **name,
                            char text[FIELD_TEXT_SIZE]) {
  const void *set = f->presets != NULL ? f->presets->at(i, name) : NULL;
  if (set == NULL) return NULL;
  const void *at = (const char *)set + f->member;
  if (f->kind == VALUE_CHOICE) return field_choice_at(f, (size_t) * (const int *)at);
  if (f->kind == VALUE_FLAG) return *(const int *)at ? "true" : "false";
  if (f->number == NUMBER_INTEGER && *(const int64_t *)at == INT64_MAX) return "none";
  const double value = f->number == NUMBER_INTEGER ? (double)*(const int64_t *)at
                       : f->number == NUMBER_COUNT ? (double)*(const size_t *)at
                                                   : *(const double *)at;
  number_text(value, text);
  return text;
}

/* The field's value in that recipe, stated or default; NULL if it has neither. */
static const char *field_effective(const char *path, field_value value, const void *recipe,
                                   char room[FIELD_TEXT_SIZE]) {
  int stated = 0;
  const char *text = value(recipe, path, &stated);
  return stated ? text : fields_default(path, value, recipe, room);
}

/* Recursion ends because conditions refer to fields without conditions, or only via such fields. */
static int field_holds(const field_condition *c, field_value value, const void *recipe) {
  if (c->path == NULL) return 1;
  int stated = 0;
  if (c->is == NULL) {
    value(recipe, c->path, &stated);
    return !stated;
  }
  char room[FIELD_TEXT_SIZE];
  const char *text = field_effective(c->path, value, recipe, room);
  return text != NULL && strcmp(text, c->is) == 0;
}

static int field_applies(const field *f, field_value value, const void *recipe) {
  for (size_t i = 0; i < FIELD_MAX_CONDITIONS; ++i)
    if (!field_holds(&f->when[i], value, recipe)) return 0;
  return f->unless.path == NULL || !field_holds(&f->unless, value, recipe);
}

/* The entry with that path whose conditions hold for the recipe; NULL if there is none. */
static const field *field_find(const char *path, field_value value, const void *recipe) {
  assert(path != NULL && value != NULL);
  field_walk w = {0};
  const field *f;
  while ((f = field_next(&w, path)) != NULL && !field_applies(f, value, recipe)) continue;
  return f;
}

const char *fields_default(const char *path, field_value value, const void *recipe,
                           char text[FIELD_TEXT_SIZE]) {
  char named[FIELD_TEXT_SIZE];
  const char *name = NULL, *preset;
  const field *f = field_find(path, value, recipe);
  if (f == NULL || f->presets == NULL) return f != NULL ? f->fallback : NULL;
  const char *of = field_effective(f->presets->path, value, recipe, named);
  for (size_t i = 0; of != NULL && (preset = field_preset_at(f, i, &name, text)) != NULL; ++i)
    if (strcmp(name, of) == 0) return f->no_limit && strcmp(preset, "none") == 0 ? NULL : preset;
  return NULL;
}

const field *fields_short_form(const char *path, field_value value, const void *recipe) {
  field_walk w = {0};
  const field *f;
  while ((f = field_next(&w, NULL)) != NULL)
    if (f->shorthand != NULL && strcmp(f->shorthand, path) == 0 && field_applies(f, value, recipe))
      break;
  return f;
}

int fields_is_section(const char *path) {
  const size_t length = strlen(path);
  field_walk w = {0};
  const field *f;
  while ((f = field_next(&w, NULL)) != NULL)
    if (strncmp(f->path, path, length) == 0 && f->path[length] == '.') return 1;
  return 0;
}

bool fields_is_one_value(const char *path) {
  const field *f = fields_named(path);
  return f != NULL && (f->kind == VALUE_DIST || f->kind == VALUE_LIST);
}

const char *field_role_name(field_role role) {
  static const char *const names[] = {[ROLE_AXIS] = "axis",
                                      [ROLE_CHOSEN] = "chosen",
                                      [ROLE_ALGORITHM] = "algorithm",
                                      [ROLE_SEED] = "seed",
                                      [ROLE_PROVENANCE] = "provenance"};
  return names[role];
}

const char *field_kind_name(field_kind kind) {
  static const char *const names[] = {
      [VALUE_NUMBER] = "number",  [VALUE_CHOICE] = "choice",     [VALUE_FLAG] = "flag",
      [VALUE_TEXT] = "text",      [VALUE_DIST] = "distribution", [VALUE_LIST] = "list",
      [VALUE_SECTION] = "section"};
  return names[kind];
}

/* --- names of other programs --- */

/* Weak: a program without aliases need not define it. */
extern __typeof__(field_alias_at) field_alias_at __attribute__((weak));

enum { MOST_ELSEWHERE = 3 };

/* "Learning-Rate" as "learning_rate"; cut where the room ends. */
static void plain_name(const char *name, char text[FIELD_PATH_SIZE]) {
  size_t n = 0;
  for (; name[n] != '\0' && n + 1 < FIELD_PATH_SIZE; ++n)
    text[n] = name[n] == '-' ? '_' : (char)tolower((unsigned char)name[n]);
  text[n] = '\0';
}

const char *field_last_word(const char *path) {
  const char *dot = strrchr(path, '.');
  return dot != NULL ? dot + 1 : path;
}

static void add_elsewhere(char text[FIELD_HINT_SIZE], const char *path) {
  const size_t used = strlen(text), room = FIELD_HINT_SIZE - used;
  const int length = snprintf(text + used, room, "%s%s", used > 0 ? " or " : "", path);
  if (length < 0 || (size_t)length >= room) text[used] = '\0'; /* no path in part */
}

/* Writes the paths that end with that word, or nothing if there are more than MOST_ELSEWHERE. */
static void find_elsewhere(const char *word, char text[FIELD_HINT_SIZE]) {
  field_walk w = {0};
  const field *f;
  size_t n = 0;
  while ((f = field_next(&w, NULL)) != NULL) {
    if (strcmp(field_last_word(f->path), word) != 0 || fields_named(f->path) != f) continue;
    if (++n <= MOST_ELSEWHERE) add_elsewhere(text, f->path);
  }
  if (n > MOST_ELSEWHERE) *text = '\0';
}

/* The first alias whose name is `name`, or its last words: "rollout.n" of "actor.rollout.n". */
static bool find_entry(const char *name, field_alias *a) {
  const size_t length = strlen(name);
  for (size_t i = 0; field_alias_at != NULL && field_alias_at(i, a); ++i) {
    const size_t own = strlen(a->name);
    if (own <= length && strcmp(name + length - own, a->name) == 0 &&
        (own == length || name[length - own - 1] == '.'))
      return true;
  }
  return false;
}

static void find_alias(const char *name, char text[FIELD_HINT_SIZE]) {
  field_alias a;
  if (!find_entry(name, &a) || a.path[0] == '\0') return;
  snprintf(text, FIELD_HINT_SIZE, "%s%s%s%s%s", a.path,
           a.path[strlen(a.path) - 1] == '.' ? a.name : "", a.note[0] != '\0' ? " (" : "", a.note,
           a.note[0] != '\0' ? ")" : "");
}

const char *fields_absent(const char *name) {
  char plain[FIELD_PATH_SIZE];
  field_alias a;
  plain_name(name, plain);
  return find_entry(plain, &a) && a.path[0] == '\0' ? a.note : NULL;
}

const char *fields_answer(const char *command, const char *name) {
  char both[2 * FIELD_PATH_SIZE];
  field_alias a;
  snprintf(both, sizeof both, "%s %s", command, name);
  for (size_t i = 0; field_alias_at != NULL && field_alias_at(i, &a); ++i)
    if (strcmp(a.name, both) == 0 || (name[0] == '-' && strcmp(a.name, name) == 0)) return a.note;
  return NULL;
}

static bool is_field_at(const char *path) {
  return path != NULL && fields_of_item(path) != NULL;
}

const char *fields_alias(const char *name, const char *not_at, char text[FIELD_HINT_SIZE]) {
  char plain[FIELD_PATH_SIZE];
  *text = '\0';
  plain_name(name, plain);
  if (not_at == NULL && fields_named(plain) != NULL)
    add_elsewhere(text, plain);
  else if (!is_field_at(not_at) || strchr(not_at, '.') == NULL) {
    if (not_at != NULL) plain_name(not_at, plain);
    find_alias(plain, text);
  }
  return text;
}

const char *fields_elsewhere(const char *name, const char *not_at, char text[FIELD_HINT_SIZE]) {
  char plain[FIELD_PATH_SIZE];
  plain_name(name, plain);
  if (*fields_alias(name, not_at, text) == '\0' && !is_field_at(not_at))
    find_elsewhere(field_last_word(plain), text);
  return text;
}

const char *fields_suggested(const char *path, char text[FIELD_HINT_SIZE]) {
  if (fields_of_item(path) != NULL || *fields_alias(path, NULL, text) == '\0') return path;
  text[strcspn(text, " ")] = '\0';
  return cfg_path_is_inside(text, "sweep") ? text + strlen("sweep.") : text;
}

const char *fields_value_elsewhere(const char *path, const char *value,
                                   char text[FIELD_HINT_SIZE]) {
  char both[2 * FIELD_PATH_SIZE], plain[FIELD_PATH_SIZE];
  *text = '\0';
  plain_name(value, plain);
  snprintf(both, sizeof both, "%s=%s", path, plain);
  find_alias(both, text);
  char *end = NULL;
  if (*text != '\0' || (strtod(value, &end), end == value) || *end != '\0') return text;
  snprintf(both, sizeof both, "%s=number", path);
  find_alias(both, text);
  return text;
}

const char *fields_whole_section(const char *path, char text[FIELD_HINT_SIZE]) {
  const field *f = fields_of_item(path);
  *text = '\0';
  for (size_t i = 0; f != NULL && i < FIELD_MAX_CONDITIONS && f->when[i].path != NULL; ++i) {
    const char *dot = strchr(f->when[i].path, '.');
    if (dot == NULL || strcmp(dot, ".kind") != 0 || f->when[i].is == NULL) continue;
    snprintf(text, FIELD_HINT_SIZE, "'%.*s={kind: %s, ...}'", (int)(dot - f->when[i].path),
             f->when[i].path, f->when[i].is);
  }
  return text;
}

const char *fields_in_section(const char *path, const char *value, char text[FIELD_HINT_SIZE]) {
  static const char *const words[] = {"kind", "preset", "enable"};
  const size_t length = strlen(path);
  char one[FIELD_PATH_SIZE];
  if (*fields_value_elsewhere(path, value, text) != '\0') return text;
  for (size_t i = 0; i < sizeof words / sizeof *words; ++i) {
    snprintf(one, sizeof one, "%s.%s", path, words[i]);
    if (fields_named(one) == NULL) continue;
    if (*fields_value_elsewhere(one, value, text) == '\0')
      snprintf(text, FIELD_HINT_SIZE, "%.110s=%.200s", one, value);
    return text;
  }
  field_walk w = {0};
  const field *f;
  while ((f = field_next(&w, NULL)) != NULL)
    if (f->kind != VALUE_SECTION && strncmp(f->path, path, length) == 0 && f->path[length] == '.' &&
        strchr(f->path + length + 1, '.') == NULL) {
      snprintf(text, FIELD_HINT_SIZE, "a field of it, as in %s=VALUE", f->path);
      break;
    }
  return text;
}

/* --- designs --- */

static const cfg_design designs[] = {
    {"random", "{draws: N, seed: S, fields: {PATH: DISTRIBUTION, …}}", "fields", 0},
    {"factorial", "{factors: {A: {PATH: [LOW, HIGH]}, …}, generators: {D: ABC}}", "factors", 1},
    {"one_at_a_time", "{PATH: [BASE, OTHER, …], …}", NULL, 0},
};

const cfg_design *cfg_design_of(const char *key, size_t length) {
  for (size_t i = 0; i < sizeof designs / sizeof *designs; ++i)
    if (strlen(designs[i].key) == length && memcmp(designs[i].key, key, length) == 0)
      return &designs[i];
  return NULL;
}

const cfg_design *cfg_design_named(const char *key) {
  return cfg_design_of(key, strlen(key));
}

int cfg_paths_overlap(const char *a, const char *b) {
  return cfg_path_is_inside(a, b) || cfg_path_is_inside(b, a);
}
