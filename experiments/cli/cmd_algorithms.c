/* gepolab list algorithms: every published algorithm, its fields, source, and settings of other
 * trainers. */
#include "core/policy/algorithm.h"
#include "experiments/base/args.h"
#include "experiments/base/print_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int field_json(cJSON *to, const policy_algorithm *algorithm, size_t i) {
  const policy_field *field = policy_fields_at(i);
  char text[POLICY_FIELD_TEXT_SIZE];
  const char *value = policy_algorithm_field(algorithm, i, text);
  switch (field->kind) {
  case FIELD_COUNT:
  case FIELD_NUMBER:
    return json_add_number(to, field->name, strtod(value, NULL)) != NULL;
  case FIELD_BOOL:
    return cJSON_AddBoolToObject(to, field->name, strcmp(value, "true") == 0) != NULL;
  case FIELD_CHOICE:
    break;
  }
  return json_add_string(to, field->name, value) != NULL;
}

static int algorithm_json(cJSON *to, size_t i) {
  const policy_algorithm *algorithm = policy_algorithms_at(i);
  const policy_algorithm_info *info = policy_algorithms_info(i);
  cJSON *fields = NULL;
  int ok = json_add_string(to, "name", algorithm->name) != NULL &&
           json_add_string(to, "source", info->source) != NULL &&
           json_add_string(to, "trl", info->trl) != NULL &&
           json_add_string(to, "verl", info->verl) != NULL &&
           json_add_string(to, "areal", info->areal) != NULL &&
           json_add_string(to, "notes", info->notes) != NULL &&
           (fields = cJSON_AddObjectToObject(to, "fields")) != NULL;
  for (size_t f = 0; f < policy_fields_count() && ok; ++f) ok = field_json(fields, algorithm, f);
  return ok;
}

static gl_status print_json(const char *only, gl_error *err) {
  cJSON *list = cJSON_CreateArray();
  for (size_t i = 0; i < policy_algorithms_count() && list != NULL; ++i) {
    if (only != NULL && strcmp(policy_algorithms_at(i)->name, only) != 0) continue;
    cJSON *item = cJSON_CreateObject();
    if (item == NULL || !cJSON_AddItemToArray(list, item) || !algorithm_json(item, i)) {
      cJSON_Delete(list);
      list = NULL;
    }
  }
  return report_json(list, err);
}

/* Shown for every algorithm; the many other fields only where they differ from `reinforce`, the
 * plainest one, because those that do nothing would hide the rest. JSON has them all. */
static int is_main_field(const char *name) {
  static const char *const main_fields[] = {"objective", "baseline", "scale",    "ratio",
                                            "log_prob",  "clip",     "aggregate"};
  for (size_t i = 0; i < sizeof main_fields / sizeof *main_fields; ++i)
    if (strcmp(main_fields[i], name) == 0) return 1;
  return 0;
}

static void print_algorithm(size_t i, const policy_algorithm *plain) {
  const policy_algorithm *algorithm = policy_algorithms_at(i);
  const policy_algorithm_info *info = policy_algorithms_info(i);
  printf("%s\n  source  %s\n", algorithm->name, info->source);
  printf("  TRL     %s\n  verl    %s\n  AReaL   %s\n", info->trl, info->verl, info->areal);
  if (info->notes[0] != '\0') printf("  notes   %s\n", info->notes);
  printf("  fields ");
  for (size_t f = 0; f < policy_fields_count(); ++f) {
    char own[POLICY_FIELD_TEXT_SIZE], other[POLICY_FIELD_TEXT_SIZE];
    const char *value = policy_algorithm_field(algorithm, f, own);
    const char *name = policy_fields_at(f)->name;
    if (!is_main_field(name) && strcmp(value, policy_algorithm_field(plain, f, other)) == 0)
      continue;
    printf(" %s: %s;", name, value);
  }
  puts("");
}

static gl_status unknown_algorithm(const char *name, gl_error *err) {
  size_t n = policy_algorithms_count();
  const char **names = calloc(n, sizeof *names);
  if (names == NULL) return gl_fail_memory(err, "the algorithms' names");
  for (size_t i = 0; i < n; ++i) names[i] = policy_algorithms_at(i)->name;
  char hint[CFG_HINT_SIZE];
  cfg_hint(name, names, n, hint);
  free(names);
  return gl_fail(err, GL_EINPUT,
                 "there is no algorithm '%s'%s; `gepolab list algorithms` lists them", name, hint);
}

static const char *unit_words(policy_ratio_unit unit) {
  switch (unit) {
  case RATIO_OF_TOKEN:
    return "of a token";
  case RATIO_OF_RESPONSE:
    return "of a response";
  }
  return "";
}

static const char *gradient_words(policy_ratio_gradient gradient) {
  switch (gradient) {
  case RATIO_GRADIENT_NONE:
    return "constant";
  case RATIO_GRADIENT_OWN_TOKEN:
    return "gradient through each term's own token";
  case RATIO_GRADIENT_RESPONSE:
    return "gradient through all tokens of the response";
  }
  return "";
}

static const char *coupling_words(policy_ratio_coupling coupling) {
  switch (coupling) {
  case RATIO_ALONE:
    return "";
  case RATIO_COUPLED_BY_P:
  case RATIO_COUPLED_BY_RATIOS:
    return "; depends on the whole group";
  case RATIO_COUPLED_BY_DENOMINATOR:
    return "; depends on the whole group unless denominator: exact";
  }
  return "";
}

static void print_fields(void) {
  for (size_t f = 0; f < policy_fields_count(); ++f) {
    const policy_field *field = policy_fields_at(f);
    printf("%-20s %s\n", field->name, field->meaning);
    if (field->offset == offsetof(policy_algorithm, ratio)) {
      for (int r = 0; r < RATIO_COUNT; ++r) {
        const policy_ratio_info *about = policy_ratio_about((policy_ratio)r);
        printf("                     %-18s %s: %s, %s%s\n", about->name, about->meaning,
               unit_words(about->unit), gradient_words(about->gradient),
               coupling_words(about->coupling));
      }
      continue;
    }
    for (int c = 0; c < field->n_choices; ++c)
      printf("%s%s%s", c == 0 ? "                     " : " | ", field->choice(c),
             c + 1 == field->n_choices ? "\n" : "");
  }
}

static gl_status run_algorithms(const command *self, int argc, char **argv, gl_error *err) {
  int json = 0, fields = 0;
  const args_option options[] = {
      {"fields", 0, ARGS_FLAG, NULL, "what every field means and may be", &fields},
      {"json", 0, ARGS_FLAG, NULL, "all algorithms with all fields as JSON", &json}};
  args a;
  gl_status status = args_parse(&a, self, options, 2, (args_shape){0, 1, 0}, argc, argv, err);
  if (status != GL_OK || a.help) {
    args_fini(&a);
    return status;
  }
  const char *only = a.n_words > 0 ? a.words[0] : NULL;
  if (only != NULL && policy_algorithms_find(only) == NULL) {
    status = unknown_algorithm(only, err);
  } else if (fields) {
    print_fields();
  } else if (json) {
    status = print_json(only, err);
  } else {
    for (size_t i = 0; i < policy_algorithms_count(); ++i)
      if (only == NULL || strcmp(policy_algorithms_at(i)->name, only) == 0)
        print_algorithm(i, policy_algorithms_find("reinforce"));
  }
  args_fini(&a);
  return status;
}

const command command_algorithms = {
    .name = "list algorithms",
    .arguments = "[ALGORITHM]",
    .summary = "the published algorithms and their fields, with their sources",
    .about =
        "For each: its source, the TRL, verl and AReaL setting it corresponds to or that\n"
        "there is none, what is gepolab's own choice, and its fields (text: the main ones and\n"
        "those that differ from reinforce; JSON: all). Any field can be changed in a recipe:\n"
        "algorithm: {base: gepo, clip: none}.",
    .examples = "  gepolab list algorithms\n  gepolab list algorithms gepo --json\n  gepolab list "
                "algorithms --fields",
    .run = run_algorithms};
