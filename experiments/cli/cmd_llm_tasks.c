/* gepolab llm tasks: the kinds of task a transformer can learn, and the fields of each. */
#include "experiments/base/args.h"
#include "experiments/base/command.h"
#include "experiments/base/print_json.h"
#include "llm/task/task.h"

#include <stdio.h>
#include <string.h>

/* --- as text --- */

static void print_kind(const char *kind, const char *about) {
  const char *const *example = task_kind_example(kind);
  printf("%s: %s\n", kind, about);
  if (example != NULL) printf("  %s  →  %s\n", example[0], example[1]);
  for (const task_field *f = task_kind_fields(kind); f->key != NULL; ++f)
    printf("  %-15s %s (%s; %s)\n", f->key, f->about, f->values, f->normal);
}

/* --- as JSON --- */

static int tasks_field_json(cJSON *list, const task_field *f) {
  cJSON *o = cJSON_CreateObject();
  if (o == NULL || !cJSON_AddItemToArray(list, o)) {
    cJSON_Delete(o);
    return 0;
  }
  return json_add_string(o, "key", f->key) != NULL &&
         json_add_string(o, "values", f->values) != NULL &&
         json_add_string(o, "default", f->normal) != NULL &&
         json_add_string(o, "about", f->about) != NULL;
}

static int kind_json(cJSON *to, const char *kind, const char *about) {
  const char *const *example = task_kind_example(kind);
  int ok = json_add_string(to, "kind", kind) != NULL && json_add_string(to, "about", about) != NULL;
  if (ok && example != NULL)
    ok = json_add_string(to, "prompt", example[0]) != NULL &&
         json_add_string(to, "answer", example[1]) != NULL;
  cJSON *list = ok ? cJSON_AddArrayToObject(to, "fields") : NULL;
  ok = list != NULL;
  for (const task_field *f = task_kind_fields(kind); ok && f->key != NULL; ++f)
    ok = tasks_field_json(list, f);
  return ok;
}

/* --- the command --- */

static gl_status print_kinds(const char *only, int json, gl_error *err) {
  const char *about, *kind;
  cJSON *list = json ? cJSON_CreateArray() : NULL;
  int ok = !json || list != NULL;
  for (size_t i = 0; ok && (kind = task_kind_at(i, &about)) != NULL; ++i) {
    if (only != NULL && strcmp(only, kind) != 0) continue;
    if (!json) {
      print_kind(kind, about);
      continue;
    }
    cJSON *o = cJSON_CreateObject();
    ok = o != NULL && cJSON_AddItemToArray(list, o);
    if (!ok) cJSON_Delete(o);
    ok = ok && kind_json(o, kind, about);
  }
  if (!json) return GL_OK;
  if (!ok) cJSON_Delete(list);
  return report_json(ok ? list : NULL, err);
}

static gl_status tasks_find_kind(const char *name, gl_error *err) {
  enum { MOST_KINDS = 64 };
  const char *names[MOST_KINDS];
  size_t n = 0, found;
  while (n < MOST_KINDS && (names[n] = task_kind_at(n, NULL)) != NULL) ++n;
  return args_choose(&found, "a task", name, names, n, err);
}

static gl_status run_tasks(const command *self, int argc, char **argv, gl_error *err) {
  int json = 0;
  const args_option options[] = {{"json", 0, ARGS_FLAG, NULL, "as JSON", &json}};
  args a;
  gl_status status = args_parse(&a, self, options, 1, (args_shape){0, 1, 0}, argc, argv, err);
  if (status == GL_OK && !a.help) {
    const char *only = a.n_words > 0 ? a.words[0] : NULL;
    if (only != NULL) status = tasks_find_kind(only, err);
    if (status == GL_OK) status = print_kinds(only, json, err);
  }
  args_fini(&a);
  return status;
}

const command command_llm_tasks = {
    .name = "llm tasks",
    .arguments = "[KIND]",
    .summary = "the kinds of task, with an example and the fields of each",
    .about =
        "What `world.task` of a recipe may be. Behind a field stand its values and, after the\n"
        "semicolon, what it is where it is not given. Every kind has kind, held_out, reward and\n"
        "cut_off besides; experiments/RECIPES.md describes them.",
    .examples = "  gepolab llm tasks\n"
                "  gepolab llm tasks countdown --json",
    .run = run_tasks};
