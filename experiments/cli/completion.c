/* Prints what a shell completes gepolab's command lines with: the names of the program's tables,
 * and around them the script of that shell, which is embedded (completion.bash, completion.zsh). */
#include "experiments/cli/completion.h"

#include "analysis/figures/figures.h"
#include "core/base/metrics.h"
#include "core/config/fields.h"
#include "core/policy/algorithm.h"
#include "core/store/export.h"
#include "experiments/base/args.h"
#include "experiments/base/resources.h"
#include "llm/task/task.h"
#include "sim/presets.h"
#include "toy/world/toy_world.h"

#include <stdio.h>
#include <string.h>

/* A row: "v", what it is a name of (the word that help uses for it), the name, and what it means.
 * The name of a value of a field is one of `FIELD:path`. */
static void print_name(const char *of, const char *name, const char *about) {
  printf("v\t%s\t%s\t", of, name);
  for (const char *c = about[0] != '\0' ? about : "-"; *c != '\0'; ++c)
    putchar(*c == '\t' || *c == '\n' ? ' ' : *c);
  putchar('\n');
}

static void print_recipes(void) {
  for (size_t i = 0; resources_at(i) != NULL; ++i) {
    size_t length = 0;
    char name[64];
    const char *at = resources_recipe_name(resources_at(i), &length);
    if (at == NULL) continue;
    snprintf(name, sizeof name, "%.*s", (int)length, at);
    print_name("RECIPE", name, "inside the program");
  }
}

/* Entries of one path are neighbours: the first is printed. */
static void print_recipe_fields(void) {
  const char *last = "", *about = "";
  char of[128];
  for (size_t i = 0; fields_at(i) != NULL; ++i) {
    const field *f = fields_at(i);
    if (strcmp(f->path, last) == 0) continue;
    last = f->path;
    print_name("FIELD", f->path, f->label);
    if (f->kind != VALUE_FLAG) continue;
    snprintf(of, sizeof of, "FIELD:%s", f->path);
    print_name(of, "true", "");
    print_name(of, "false", "");
  }
  for (size_t i = 0; cluster_preset_at(i) != NULL; ++i)
    print_name("FIELD:cluster.preset", cluster_preset_at(i)->name, cluster_preset_at(i)->about);
  for (size_t i = 0; toy_kind_at(i, &about) != NULL; ++i)
    print_name("FIELD:world.kind", toy_kind_at(i, &about), about);
  print_name("FIELD:world.kind", "llm", "a transformer");
}

/* The fields of an algorithm, which `gepolab policy` takes as they are and a recipe below
 * `algorithm.`. */
static void print_settings(void) {
  char of[128];
  for (size_t i = 0; i < policy_fields_count(); ++i) {
    const policy_field *f = policy_fields_at(i);
    print_name("SETTING", f->name, f->meaning);
    snprintf(of, sizeof of, "SETTING:%s", f->name);
    for (int c = 0; c < f->n_choices; ++c) print_name(of, f->choice(c), "");
    if (f->kind != FIELD_BOOL) continue;
    print_name(of, "true", "");
    print_name(of, "false", "");
  }
}

static void print_names(void) {
  const char *about = "";
  for (size_t i = 0; i < policy_algorithms_count(); ++i)
    print_name("ALGORITHM", policy_algorithms_at(i)->name, policy_algorithms_info(i)->source);
  print_settings();
  print_recipes();
  print_recipe_fields();
  for (int m = 0; m < METRIC_COUNT; ++m)
    print_name("METRIC", metric_about((metric)m)->name, metric_about((metric)m)->meaning);
  for (size_t i = 0; store_export_at(i) != NULL; ++i)
    print_name("TABLE", store_export_at(i)->name, store_export_at(i)->about);
  for (size_t i = 0; figures_at(i) != NULL; ++i)
    print_name("FIGURE", figures_at(i)->name, figures_at(i)->shows);
  for (size_t i = 0; task_kind_at(i, &about) != NULL; ++i)
    print_name("KIND", task_kind_at(i, &about), about);
}

/* What a shell's file begins with, and the embedded script that reads the rows. */
typedef struct shell {
  const char *name, *opening, *script;
} shell;

static const shell shells[] = {{"bash", "", "experiments/cli/completion.bash"},
                               {"zsh", "#compdef gepolab\n", "experiments/cli/completion.zsh"}};
enum { N_SHELLS = sizeof shells / sizeof *shells };

gl_status completion_begin(const char *name, gl_error *err) {
  const char *names[N_SHELLS];
  size_t which = 0;
  for (size_t i = 0; i < N_SHELLS; ++i) names[i] = shells[i].name;
  gl_status status = args_choose(&which, "the word after --completion", name, names, N_SHELLS, err);
  if (status != GL_OK) return status;
  printf("%s# Completion of gepolab " GEPOLAB_VERSION
         " for %s, made by `gepolab help --completion %s`.\n\n"
         "_gepolab_rows() {\n  command cat <<'END_OF_ROWS'\n",
         shells[which].opening, name, name);
  print_names();
  return GL_OK;
}

void completion_end(const char *name) {
  fputs("END_OF_ROWS\n}\n\n", stdout);
  for (size_t i = 0; i < N_SHELLS; ++i)
    if (strcmp(shells[i].name, name) == 0) fputs(resources_text(shells[i].script), stdout);
}
