/* gepolab analyze --table contrasts: the comparisons that a recipe declared before its study was
 * run. */
#include "analysis/contrasts.h"
#include "experiments/base/args.h"
#include "experiments/base/print_json.h"
#include "experiments/cli/common.h"
#include "experiments/recipe/recipe.h"
#include "experiments/sweep/sweep_cells.h"

#include <stdio.h>
#include <stdlib.h>

static gl_status read_declared(declared_contrasts *out, cfg_doc **doc, const char *declared,
                               gl_error *err) {
  gl_status status = recipe_load(doc, declared, NULL, 0, err);
  if (status == GL_OK) status = declared_contrasts_read(out, *doc, err);
  if (status == GL_OK && out->n == 0)
    status = cfg_fail(cfg_root(*doc), err,
                      "the recipe declares no contrasts; add contrasts: [{name: NAME, of: "
                      "{algorithm: A}, against: {algorithm: B}}]");
  return status;
}

static gl_status tell(const results *r, const declared_contrasts *d, table_form format, int as_json,
                      gl_error *err) {
  contrast_result *found = calloc(d->n, sizeof *found);
  gl_status status = found != NULL ? GL_OK : gl_fail_memory(err, "the contrasts");
  if (status == GL_OK) status = contrasts_find(r, d->contrast, d->n, found, err);
  if (status == GL_OK) {
    table *t = table_document();
    contrasts_report(t, r, d->contrast, found, d->n);
    status = report_table(t, format, as_json, err);
  }
  free(found);
  return status;
}

static gl_status compare(const char *file, const char *declared, const char *study,
                         table_form format, int as_json, gl_error *err) {
  declared_contrasts d = {0};
  cfg_doc *doc = NULL;
  store *from = NULL;
  results *r = NULL;
  gl_status status = read_declared(&d, &doc, declared, err);
  if (status == GL_OK) status = store_open(&from, file, STORE_READ, err);
  if (status == GL_OK) status = tell_unfinished(from, file, err);
  if (status == GL_OK) status = results_load(&r, from, study, err);
  if (status == GL_OK) status = tell(r, &d, format, as_json, err);
  results_free(r);
  store_close(from);
  declared_contrasts_fini(&d);
  cfg_free(doc);
  return status;
}

static gl_status run_contrasts(const command *self, int argc, char **argv, gl_error *err) {
  int json = 0;
  const char *name = "text", *study = NULL;
  size_t format = 0;
  args_option options[] = {
      {"study", 's', ARGS_TEXT, "NAME", "the study, where the file has several", &study},
      {"format", 'f', ARGS_TEXT, "FORMAT", "text, markdown or latex", &name},
      {"json", 0, ARGS_FLAG, NULL, "the numbers as JSON", &json}};
  args a;
  gl_status status = args_parse(&a, self, options, sizeof options / sizeof options[0],
                                (args_shape){2, 2, 0}, argc, argv, err);
  if (status == GL_OK && !a.help) {
    status = args_choose(&format, "--format", name, table_form_names, TABLE_FOR_PEOPLE, err);
    if (status == GL_OK)
      status = compare(a.words[0], a.words[1], study, (table_form)format, json, err);
  }
  args_fini(&a);
  return status;
}

const command command_contrasts = {
    .name = "analyze --table contrasts",
    .arguments = "STUDY.db RECIPE",
    .summary = "tests the comparisons that a recipe declared before its study was run",
    .about =
        "Compares the arms of each of the recipe's `contrasts` start by start: a pair is a run of\n"
        "each arm with the same seed. Falls (as the table outcomes judges them) are compared by\n"
        "McNemar's exact test, last scores by Wilcoxon's exact signed-rank test; p are adjusted\n"
        "over all contrasts of the recipe (Holm). The last column tells the power: the share of\n"
        "pairs that must differ, all in one direction, to be found with probability 0.8.",
    .examples = "  gepolab analyze --table contrasts confirmation.db confirmation\n"
                "  gepolab analyze --table contrasts study.db recipe.yaml --json",
    .run = run_contrasts};
