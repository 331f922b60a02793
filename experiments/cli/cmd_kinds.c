/* gepolab list kinds: what the program's own tables list: kinds of world, delay distributions with
 * their parameters, presets of a cluster. */
#include "core/base/json.h"
#include "experiments/base/args.h"
#include "experiments/base/print_json.h"
#include "sim/cluster.h"
#include "sim/delay.h"
#include "toy/world/mdp.h"
#include "toy/world/toy_world.h"

#include <stdio.h>
#include <string.h>

/* One list that is printed: entry i's name and meaning, NULL past the last; and its parameters. */
typedef struct listing {
  const char *title;
  const char *(*at)(size_t i, const char **about);
  const delay_parameter *(*parameters)(size_t i); /* NULL: entries have none of their own */
} listing;

static const char *dist_at(size_t i, const char **about) {
  if (i >= DELAY_KINDS) return NULL;
  *about = delay_dist_about((delay_kind)i)->about;
  return delay_dist_about((delay_kind)i)->name;
}

static const delay_parameter *dist_parameters(size_t i) {
  return delay_dist_about((delay_kind)i)->parameter;
}

static const char *preset_at(size_t i, const char **about) {
  const cluster_preset *p = cluster_preset_at(i);
  if (p == NULL) return NULL;
  *about = p->about;
  return p->name;
}

static const listing listings[] = {
    {"worlds", toy_kind_at, NULL},
    {"decision processes", mdp_kind_at, NULL},
    {"delay laws", dist_at, dist_parameters},
    {"presets", preset_at, NULL},
};
enum { N_LISTINGS = sizeof listings / sizeof *listings };

static void print_text(void) {
  const char *about = "";
  for (size_t k = 0; k < N_LISTINGS; ++k) {
    const listing *l = &listings[k];
    printf("%s%s\n", k == 0 ? "" : "\n", l->title);
    for (size_t i = 0; l->at(i, &about) != NULL; ++i) {
      printf("  %-16s %s", l->at(i, &about), about);
      for (const delay_parameter *p = l->parameters != NULL ? l->parameters(i) : NULL;
           p != NULL && p->name != NULL; ++p)
        printf("%s%s%s%s%s%s", p == l->parameters(i) ? " (" : ", ", p->name,
               *p->unit != '\0' ? " in " : "", p->unit, *p->fallback != '\0' ? ": " : "",
               p->fallback);
      printf("%s\n", l->parameters != NULL && l->parameters(i)->name != NULL ? ")" : "");
    }
  }
}

static int add_parameters(cJSON *to, const delay_parameter *p) {
  cJSON *list = cJSON_AddArrayToObject(to, "parameters");
  for (; list != NULL && p->name != NULL; ++p) {
    cJSON *item = cJSON_CreateObject();
    if (item == NULL || !cJSON_AddItemToArray(list, item) ||
        json_add_string(item, "name", p->name) == NULL ||
        json_add_string(item, "unit", p->unit) == NULL ||
        json_add_string(item, "default", p->fallback) == NULL)
      return 0;
  }
  return list != NULL;
}

static int add_listing(cJSON *document, const listing *l) {
  const char *about = "";
  cJSON *list = cJSON_AddArrayToObject(document, l->title);
  for (size_t i = 0; list != NULL && l->at(i, &about) != NULL; ++i) {
    cJSON *item = cJSON_CreateObject();
    if (item == NULL || !cJSON_AddItemToArray(list, item) ||
        json_add_string(item, "name", l->at(i, &about)) == NULL ||
        json_add_string(item, "about", about) == NULL ||
        (l->parameters != NULL && !add_parameters(item, l->parameters(i))))
      return 0;
  }
  return list != NULL;
}

static gl_status print_json(gl_error *err) {
  cJSON *document = cJSON_CreateObject();
  int ok = document != NULL;
  for (size_t k = 0; k < N_LISTINGS && ok; ++k) ok = add_listing(document, &listings[k]);
  return report_json_if(ok, document, err);
}

static gl_status run_kinds(const command *self, int argc, char **argv, gl_error *err) {
  int json = 0;
  const args_option options[] = {{"json", 0, ARGS_FLAG, NULL, "the same as JSON", &json}};
  args a;
  gl_status status = args_parse(&a, self, options, 1, (args_shape){0, 0, 0}, argc, argv, err);
  if (status == GL_OK && !a.help && json) status = print_json(err);
  if (status == GL_OK && !a.help && !json) print_text();
  args_fini(&a);
  return status;
}

const command command_kinds = {
    .name = "list kinds",
    .arguments = "",
    .summary = "kinds of world, delay laws and presets, with their parameters",
    .about = "Lists what `world.kind`, the `law` of a delay and `cluster.preset` may be, from the\n"
             "tables that the program itself reads. In place of their own parameters, laws that\n"
             "can may be given `interval: [l, u]` and `confidence`. Tasks of a transformer are\n"
             "listed by `gepolab llm tasks`.",
    .examples = "  gepolab list kinds --json",
    .run = run_kinds};
