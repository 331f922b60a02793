/* Looking a field up in the tables that a program has registered. */
#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/config/internal.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* All entries in the order of their tables, found by path: a chain for each slot, and entries of
 * one path are neighbours in their chain. */
enum { MOST_FIELDS = 1024, SLOTS = 2048, MOST_TABLES = 32 };
static struct {
  const field *entry[MOST_FIELDS];
  uint16_t next[MOST_FIELDS], slot[SLOTS]; /* 1 + the number of an entry; 0: none */
  size_t n;
  const field_table *table[MOST_TABLES];
  size_t n_tables;
} all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint16_t *field_slot(const char *path) {
  return &all.slot[hash_64(HASH_64_START, path, strlen(path)) % SLOTS];
}

static void field_insert(const field *f) {
  assert(all.n < MOST_FIELDS);
  uint16_t *link = field_slot(f->path);
  while (*link != 0) link = &all.next[*link - 1];
  all.entry[all.n++] = f;
  *link = (uint16_t)all.n;
}

void fields_add(const field_table *table) {
  size_t k = 0;
  pthread_mutex_lock(&lock);
  while (k < all.n_tables && all.table[k] != table) ++k;
  if (k == all.n_tables) {
    assert(k < MOST_TABLES);
    all.table[all.n_tables++] = table;
    for (size_t i = 0; i < table->n; ++i) field_insert(&table->entries[i]);
  }
  pthread_mutex_unlock(&lock);
}

const field *fields_at(size_t i) {
  return i < all.n ? all.entry[i] : NULL;
}

/* The entry of that path behind link; NULL: none. */
static const field *field_next(const char *path, uint16_t *link) {
  while (*link != 0) {
    const field *f = all.entry[*link - 1];
    *link = all.next[*link - 1];
    if (strcmp(f->path, path) == 0) return f;
  }
  return NULL;
}

const field *fields_named(const char *path) {
  uint16_t link = *field_slot(path);
  return field_next(path, &link);
}

const field *fields_of_kind(const char *path, const char *kind_of, const char *kind) {
  const field *named = fields_of_item(path), *f;
  if (named == NULL || kind_of == NULL) return named;
  uint16_t link = *field_slot(named->path);
  while ((f = field_next(named->path, &link)) != NULL) {
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
  const field *f = fields_named(path);
  for (size_t k = 0; f == NULL && k < all.n; ++k) {
    const field *list = all.entry[k];
    const size_t n = strlen(list->path);
    if (list->items[0] == NULL || !cfg_path_is_inside(path, list->path) || path[n] == '\0')
      continue;
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
  if (f->number == NUMBER_WHOLE && *(const int64_t *)at == INT64_MAX) return "no limit";
  const double value = f->number == NUMBER_WHOLE   ? (double)*(const int64_t *)at
                       : f->number == NUMBER_COUNT ? (double)*(const size_t *)at
                                                   : *(const double *)at;
  number_text(value, text);
  return text;
}

/* What the field is in that recipe: stated, or its default; NULL where it has neither. */
static const char *field_effective(const char *path, field_value value, const void *recipe,
                                   char room[FIELD_TEXT_SIZE]) {
  int stated = 0;
  const char *text = value(recipe, path, &stated);
  return stated ? text : fields_default(path, value, recipe, room);
}

const char *fields_default(const char *path, field_value value, const void *recipe,
                           char text[FIELD_TEXT_SIZE]) {
  char named[FIELD_TEXT_SIZE];
  const char *name = NULL, *preset;
  const field *f = fields_find(path, value, recipe);
  if (f == NULL || f->presets == NULL) return f != NULL ? f->fallback : NULL;
  const char *of = field_effective(f->presets->path, value, recipe, named);
  for (size_t i = 0; of != NULL && (preset = field_preset_at(f, i, &name, text)) != NULL; ++i)
    if (strcmp(name, of) == 0) return strcmp(preset, "no limit") != 0 ? preset : NULL;
  return NULL;
}

/* Conditions are about fields that have none themselves, or only such, so this ends. */
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

const field *fields_find(const char *path, field_value value, const void *recipe) {
  assert(path != NULL && value != NULL);
  uint16_t link = *field_slot(path);
  for (const field *f; (f = field_next(path, &link)) != NULL;)
    if (field_applies(f, value, recipe)) return f;
  return NULL;
}

const field *fields_short_form(const char *path, field_value value, const void *recipe) {
  for (size_t i = 0; i < all.n; ++i) {
    const field *f = all.entry[i];
    if (f->shorthand != NULL && strcmp(f->shorthand, path) == 0 && field_applies(f, value, recipe))
      return f;
  }
  return NULL;
}

int fields_is_section(const char *path) {
  size_t length = strlen(path);
  for (size_t i = 0; i < all.n; ++i)
    if (strncmp(all.entry[i]->path, path, length) == 0 && all.entry[i]->path[length] == '.')
      return 1;
  return 0;
}

const char *field_role_name(field_role role) {
  switch (role) {
  case ROLE_AXIS:
    return "axis";
  case ROLE_CHOSEN:
    return "chosen";
  case ROLE_ALGORITHM:
    return "algorithm";
  case ROLE_SEED:
    return "seed";
  case ROLE_PROVENANCE:
    return "provenance";
  }
  return "";
}

const char *field_kind_name(field_kind kind) {
  switch (kind) {
  case VALUE_NUMBER:
    return "number";
  case VALUE_CHOICE:
    return "choice";
  case VALUE_FLAG:
    return "flag";
  case VALUE_TEXT:
    return "text";
  case VALUE_DIST:
    return "law";
  case VALUE_LIST:
    return "list";
  case VALUE_SECTION:
    return "section";
  }
  return "";
}
