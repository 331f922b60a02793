/* gepolab list recipes and gepolab list metrics: what exists. (Algorithms have a file of their
 * own.) */
#include "core/base/metrics.h"
#include "core/config/config.h"
#include "experiments/base/args.h"
#include "experiments/base/print_json.h"
#include "experiments/base/program.h"

#include <stdio.h>
#include <string.h>

/* --- recipes --- */

typedef struct listed_recipe {
  char name[64];
  char description[512];
} listed_recipe;

/* 0 if the resource is not a recipe. */
static int describe_recipe(listed_recipe *out, const resource *r) {
  size_t length = 0;
  const char *name = resources_recipe_name(r, &length);
  if (name == NULL) return 0;
  snprintf(out->name, sizeof out->name, "%.*s", (int)length, name);
  cfg_doc *doc = NULL;
  const cfg_node *words = NULL;
  if (cfg_load_text(&doc, r->data, r->size, r->path, NULL) == GL_OK)
    words = cfg_find(cfg_root(doc), "description");
  snprintf(out->description, sizeof out->description, "%s", words != NULL ? cfg_text(words) : "");
  cfg_free(doc);
  return 1;
}

static gl_status recipes_json(gl_error *err) {
  cJSON *list = cJSON_CreateArray();
  for (size_t i = 0; resources_at(i) != NULL && list != NULL; ++i) {
    listed_recipe r;
    if (!describe_recipe(&r, resources_at(i))) continue;
    cJSON *item = cJSON_CreateObject();
    if (item == NULL || !cJSON_AddItemToArray(list, item) ||
        json_add_string(item, "name", r.name) == NULL ||
        json_add_string(item, "description", r.description) == NULL) {
      cJSON_Delete(list);
      list = NULL;
    }
  }
  return report_json(list, err);
}

static gl_status print_recipe(const char *name, gl_error *err) {
  const resource *r = resources_recipe(name);
  if (r == NULL)
    return gl_fail(err, GL_EINPUT,
                   "there is no embedded recipe '%s'; `gepolab list recipes` lists them", name);
  fwrite(r->data, 1, r->size, stdout);
  return GL_OK;
}

static gl_status run_recipes(const command *self, int argc, char **argv, gl_error *err) {
  int json = 0;
  const args_option options[] = {
      {"json", 0, ARGS_FLAG, NULL, "names and descriptions as JSON", &json}};
  args a;
  gl_status status = args_parse(&a, self, options, 1, (args_shape){0, 1, 0}, argc, argv, err);
  if (status != GL_OK || a.help) {
    args_fini(&a);
    return status;
  }
  if (a.n_words == 1) {
    status = print_recipe(a.words[0], err);
  } else if (json) {
    status = recipes_json(err);
  } else {
    listed_recipe r;
    for (size_t i = 0; resources_at(i) != NULL; ++i)
      if (describe_recipe(&r, resources_at(i))) printf("%-24s %s\n", r.name, r.description);
  }
  args_fini(&a);
  return status;
}

const command command_recipes = {
    .name = "list recipes",
    .arguments = "[RECIPE]",
    .summary = "the recipes inside the program",
    .about = "Lists them, or prints the one named, to be redirected into a file and changed.",
    .examples = "  gepolab list recipes\n  gepolab list recipes quickstart > mine.yaml",
    .run = run_recipes};

/* --- metrics --- */

static gl_status metrics_json(gl_error *err) {
  cJSON *list = cJSON_CreateArray();
  for (int m = 0; m < METRIC_COUNT && list != NULL; ++m) {
    const metric_info *about = metric_about((metric)m);
    cJSON *item = cJSON_CreateObject();
    if (item == NULL || !cJSON_AddItemToArray(list, item) ||
        json_add_string(item, "name", about->name) == NULL ||
        json_add_string(item, "unit", about->unit) == NULL ||
        json_add_string(item, "meaning", about->meaning) == NULL ||
        json_add_string(item, "source", about->source) == NULL) {
      cJSON_Delete(list);
      list = NULL;
    }
  }
  return report_json(list, err);
}

static gl_status run_metrics(const command *self, int argc, char **argv, gl_error *err) {
  int json = 0;
  const args_option options[] = {{"json", 0, ARGS_FLAG, NULL, "the table as JSON", &json}};
  args a;
  gl_status status = args_parse(&a, self, options, 1, (args_shape){0, 0, 0}, argc, argv, err);
  if (status == GL_OK && !a.help) {
    if (json) {
      status = metrics_json(err);
    } else {
      for (int m = 0; m < METRIC_COUNT; ++m) {
        const metric_info *about = metric_about((metric)m);
        printf("%-20s %-8s %s%s%s%s\n", about->name, about->unit, about->meaning,
               about->source[0] != '\0' ? " [" : "", about->source,
               about->source[0] != '\0' ? "]" : "");
      }
    }
  }
  args_fini(&a);
  return status;
}

const command command_metrics = {
    .name = "list metrics",
    .arguments = "",
    .summary = "what is measured at every update, with units and sources",
    .about = "The names are columns of the store, keys of JSON and labels of figures.",
    .examples = "  gepolab list metrics\n  gepolab list metrics --json",
    .run = run_metrics};
