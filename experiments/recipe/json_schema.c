/* Builds the JSON Schema from the tables of a recipe's fields. */
#include "experiments/recipe/recipe.h"

#include "core/base/json.h"
#include "core/policy/algorithm.h"
#include "core/rl/fields.h"
#include "core/rl/sequence_task.h"
#include "llm/learner/llm_learner.h"
#include "llm/model/model.h"
#include "llm/task/task.h"
#include "sim/cluster.h"
#include "toy/lab/estimator_moments.h"
#include "toy/world/mdp.h"
#include "toy/world/toy_world.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static const char *world_kind_at(size_t i) {
  size_t n = 0;
  while (toy_kind_at(n, NULL) != NULL) ++n;
  return i < n ? toy_kind_at(i, NULL) : i == n ? "llm" : mdp_kind_at(i - n - 1, NULL);
}

static const field world[] = {
    FIELD("world", "world", SECTION, "", NULL, "what is learned"),
    FIELD("world.kind", "world kind", CHOICE_AT(world_kind_at), "", NULL,
          "bandit, sequence, automaton, llm, or a decision process: chain, gridworld, garnet or "
          "token. Required"),
};
static FIELD_TABLE(world_fields, world);

const field_table *const field_tables[FIELD_MOST_TABLES] = {
    &policy_own,        &sim_own,           &study_fields,    &policy_fields,
    &design_fields,     &rl_fields,         &sim_fields,      &world_fields,
    &evaluation_fields, &toy_bandit_fields, &sequence_fields, &toy_fields,
    &llm_fields,        &llm_model_fields,  &llm_task_fields, &lab_fields};

/* --- the JSON Schema --- */

/* A number in a form that YAML parsers may read as a string: 1e-4, 0x10, 1_000, inf. */
#define EXPONENT_PATTERN "([eE][-+]?[0-9]+)?"
#define NUMBER_PATTERN                                                                             \
  "[-+]?(0[xX][0-9a-fA-F_]+|[0-9][0-9_]*(\\.[0-9_]*)?" EXPONENT_PATTERN                            \
  "|\\.[0-9_]+" EXPONENT_PATTERN "|\\.?[iI]nf)"
#define UNIT_PATTERN "( ?[A-Za-z\xc2\xb5/]+)?"

static cJSON *schema_of(const char *path);

static cJSON *schema_add_type(cJSON *any, const char *type) {
  cJSON *one = cJSON_CreateObject();
  cJSON_AddStringToObject(one, "type", type);
  cJSON_AddItemToArray(any, one);
  return one;
}

static void schema_add_number(cJSON *any, bool is_integer, double lo, double hi, bool has_unit) {
  cJSON *number = schema_add_type(any, is_integer ? "integer" : "number");
  if (isfinite(lo)) cJSON_AddNumberToObject(number, "minimum", lo);
  if (hi == FIELD_BELOW_1)
    cJSON_AddNumberToObject(number, "exclusiveMaximum", 1);
  else if (isfinite(hi))
    cJSON_AddNumberToObject(number, "maximum", hi);
  cJSON_AddStringToObject(schema_add_type(any, "string"), "pattern",
                          has_unit ? "^" NUMBER_PATTERN UNIT_PATTERN "$" : "^" NUMBER_PATTERN "$");
}

static cJSON *schema_add_words(cJSON *any) {
  cJSON *one = cJSON_CreateObject(), *words = cJSON_AddArrayToObject(one, "enum");
  cJSON_AddItemToArray(any, one);
  return words;
}

/* Schema of a field's own values, except null and the fields below it. */
static void schema_add_values(cJSON *any, const field *f) {
  const char *word;
  switch (f->kind) {
  case VALUE_NUMBER:
    schema_add_number(any, f->number == NUMBER_INTEGER || f->number == NUMBER_COUNT, f->lo, f->hi,
                      f->unit[0] != '\0');
    if (f->no_limit) cJSON_AddItemToArray(schema_add_words(any), cJSON_CreateString("none"));
    if (f->number == NUMBER_FREE || strcmp(f->path, "cluster.max_delay") == 0)
      schema_add_type(any, "string"), schema_add_type(any, "array");
    break;
  case VALUE_CHOICE: {
    cJSON *words = schema_add_words(any);
    for (size_t i = 0; (word = field_choice_at(f, i)) != NULL; ++i)
      cJSON_AddItemToArray(words, cJSON_CreateString(word));
    break;
  }
  case VALUE_FLAG:
    schema_add_type(any, "boolean");
    break;
  case VALUE_TEXT:
    schema_add_type(any, "string");
    schema_add_type(any, "number");
    break;
  case VALUE_DIST: {
    schema_add_number(any, false, 0, INFINITY, true);
    cJSON_AddItemToArray(schema_add_words(any), cJSON_CreateString("none"));
    cJSON *kind = cJSON_CreateObject();
    cJSON_AddStringToObject(kind, "type", "string");
    cJSON_AddItemToObject(cJSON_AddObjectToObject(schema_add_type(any, "object"), "properties"),
                          "distribution", kind);
    break;
  }
  case VALUE_LIST:
    schema_add_type(any, "array");
    schema_add_type(any, "number");
    schema_add_type(any, "string");
    schema_add_type(any, "object");
    break;
  case VALUE_SECTION:
    break;
  }
}

static void schema_add_algorithm_fields(cJSON *properties, const char *within) {
  const size_t n = strlen(within);
  for (size_t i = 0; i < policy_fields_count(); ++i) {
    const policy_field *f = policy_fields_at(i);
    if (strncmp(f->name, within, n) != 0 || strchr(f->name + n, '.') != NULL) continue;
    cJSON *one = cJSON_AddObjectToObject(properties, f->name + n);
    cJSON_AddStringToObject(one, "description", f->meaning);
    cJSON *any = cJSON_AddArrayToObject(one, "anyOf");
    switch (f->kind) {
    case POLICY_FIELD_CHOICE: {
      cJSON *words = schema_add_words(any);
      for (int k = 0; k < f->n_choices; ++k)
        cJSON_AddItemToArray(words, cJSON_CreateString(f->choice(k)));
      break;
    }
    case POLICY_FIELD_FLAG:
      schema_add_type(any, "boolean");
      break;
    case POLICY_FIELD_COUNT:
    case POLICY_FIELD_NUMBER:
      schema_add_number(any, f->kind == POLICY_FIELD_COUNT, f->lo, f->hi, false);
      break;
    }
    schema_add_type(any, "null");
  }
}

/* Adds the fields directly below a section, each once. Returns how many. */
static size_t schema_add_fields(cJSON *properties, const char *section) {
  const size_t n = strlen(section);
  size_t found = 0;
  for (size_t i = 0; fields_at(i) != NULL; ++i) {
    const char *path = fields_at(i)->path, *key = n > 0 ? path + n + 1 : path;
    if (n > 0 && (strncmp(path, section, n) != 0 || path[n] != '.')) continue;
    if (strchr(key, '.') != NULL || cJSON_GetObjectItemCaseSensitive(properties, key) != NULL)
      continue;
    cJSON_AddItemToObject(properties, key, schema_of(path));
    ++found;
  }
  return found;
}

/* In `sweep`, and in sections without fields, the recipe chooses the keys (paths and names). */
static void schema_fill_section(cJSON *to, const char *path) {
  cJSON_AddStringToObject(to, "type", "object");
  cJSON *properties = cJSON_AddObjectToObject(to, "properties");
  const size_t n = schema_add_fields(properties, path);
  if (strcmp(path, "algorithm") == 0) schema_add_algorithm_fields(properties, "");
  if (strcmp(path, "algorithm.gate") == 0) schema_add_algorithm_fields(properties, "gate.");
  if ((n > 0 || strcmp(path, "algorithm.gate") == 0) && strcmp(path, "sweep") != 0)
    cJSON_AddFalseToObject(to, "additionalProperties");
}

/* Adds scalars that are a short form of the section. */
static void schema_add_short_forms(cJSON *any, const char *section) {
  for (size_t i = 0; fields_at(i) != NULL; ++i)
    if (fields_at(i)->shorthand != NULL && strcmp(fields_at(i)->shorthand, section) == 0)
      schema_add_values(any, fields_at(i));
}

static cJSON *schema_of(const char *path) {
  cJSON *schema = cJSON_CreateObject();
  const field *named = fields_named(path);
  if (named->about != NULL) cJSON_AddStringToObject(schema, "description", named->about);
  cJSON *any = cJSON_AddArrayToObject(schema, "anyOf");
  bool is_section = false;
  for (size_t i = 0; fields_at(i) != NULL; ++i) {
    const field *f = fields_at(i);
    if (strcmp(f->path, path) != 0) continue;
    schema_add_values(any, f);
    is_section |= f->kind == VALUE_SECTION;
  }
  if (is_section) {
    cJSON *section = cJSON_CreateObject();
    schema_fill_section(section, path);
    cJSON_AddItemToArray(any, section);
    schema_add_short_forms(any, path);
  }
  schema_add_type(any, "null");
  return schema;
}

/* Adds `presets`, a map from names to presets. A preset has fields of a cluster and `base`, the
 * name of a published preset or of one defined before. */
static void schema_add_own_presets(cJSON *properties) {
  cJSON *presets = cJSON_AddObjectToObject(properties, "presets");
  cJSON_AddStringToObject(presets, "description",
                          "presets of clusters of one's own, by name: {base: areal, samplers: 8}");
  cJSON_AddStringToObject(presets, "type", "object");
  cJSON *one = cJSON_AddObjectToObject(presets, "additionalProperties");
  schema_fill_section(one, "cluster");
  cJSON *fields = cJSON_GetObjectItemCaseSensitive(one, "properties");
  cJSON_DeleteItemFromObjectCaseSensitive(fields, "preset");
  cJSON_AddStringToObject(cJSON_AddObjectToObject(fields, "base"), "type", "string");
}

cJSON *recipe_schema(void) {
  cJSON *schema = cJSON_CreateObject();
  cJSON_AddStringToObject(schema, "$schema", "http://json-schema.org/draft-07/schema#");
  cJSON_AddStringToObject(schema, "title", "a recipe of gepolab");
  schema_fill_section(schema, "");
  cJSON *include =
      cJSON_AddObjectToObject(cJSON_GetObjectItemCaseSensitive(schema, "properties"), "include");
  cJSON *any = cJSON_AddArrayToObject(include, "anyOf");
  cJSON_AddStringToObject(include, "description",
                          "recipes that this one begins with, files or embedded ones");
  schema_add_type(any, "string");
  schema_add_type(any, "array");
  schema_add_type(any, "null");
  schema_add_own_presets(cJSON_GetObjectItemCaseSensitive(schema, "properties"));
  return schema;
}
