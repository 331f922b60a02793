/* Looking a field up in the table of a recipe's fields, whose parts are in core/config/fields/. */
#include "core/config/fields.h"
#include "core/config/fields/tables.h"

#include <assert.h>
#include <string.h>

/* In the order of the reference of recipes. */
static const field_table *const parts[] = {&fields_of_study,     &fields_of_learner,
                                           &fields_of_cluster,   &fields_of_toy_world,
                                           &fields_of_llm_world, &fields_of_laboratory};
enum { N_PARTS = sizeof parts / sizeof *parts };

/* Walks over all entries, part by part: start with {0, 0}. */
typedef struct cursor {
  size_t part, entry;
} cursor;

static const field *next(cursor *c) {
  for (; c->part < N_PARTS; ++c->part, c->entry = 0)
    if (c->entry < parts[c->part]->n) return &parts[c->part]->entries[c->entry++];
  return NULL;
}

const field *fields_at(size_t i) {
  for (size_t p = 0; p < N_PARTS; ++p) {
    if (i < parts[p]->n) return &parts[p]->entries[i];
    i -= parts[p]->n;
  }
  return NULL;
}

const field *fields_named(const char *path) {
  cursor c = {0, 0};
  for (const field *f; (f = next(&c)) != NULL;)
    if (strcmp(f->path, path) == 0) return f;
  return NULL;
}

/* What the field is in that recipe: stated, or its default; NULL where it has neither. */
static const char *effective(const char *path, field_value value, const void *recipe) {
  int stated = 0;
  const char *text = value(recipe, path, &stated);
  if (stated) return text;
  const field *f = fields_find(path, value, recipe);
  return f != NULL ? f->fallback : NULL;
}

/* Conditions are about fields that have none themselves, or only such, so this ends. */
static int holds(const field_condition *c, field_value value, const void *recipe) {
  if (c->path == NULL) return 1;
  int stated = 0;
  if (c->is == NULL) {
    value(recipe, c->path, &stated);
    return !stated;
  }
  const char *text = effective(c->path, value, recipe);
  return text != NULL && strcmp(text, c->is) == 0;
}

static int applies(const field *f, field_value value, const void *recipe) {
  for (size_t i = 0; i < FIELD_MAX_CONDITIONS; ++i)
    if (!holds(&f->when[i], value, recipe)) return 0;
  return f->unless.path == NULL || !holds(&f->unless, value, recipe);
}

const field *fields_find(const char *path, field_value value, const void *recipe) {
  assert(path != NULL && value != NULL);
  cursor c = {0, 0};
  for (const field *f; (f = next(&c)) != NULL;)
    if (strcmp(f->path, path) == 0 && applies(f, value, recipe)) return f;
  return NULL;
}

const field *fields_short_form(const char *path, field_value value, const void *recipe) {
  cursor c = {0, 0};
  for (const field *f; (f = next(&c)) != NULL;)
    if (f->shorthand != NULL && strcmp(f->shorthand, path) == 0 && applies(f, value, recipe))
      return f;
  return NULL;
}

int fields_is_section(const char *path) {
  size_t length = strlen(path);
  cursor c = {0, 0};
  for (const field *f; (f = next(&c)) != NULL;)
    if (strncmp(f->path, path, length) == 0 && f->path[length] == '.') return 1;
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
