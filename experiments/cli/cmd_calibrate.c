/* gepolab calibrate: how well a clock that is fitted to the first part of a log predicts the rest.
 */
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/records.h"
#include "experiments/base/args.h"
#include "experiments/base/memory.h"
#include "experiments/base/print_json.h"
#include "experiments/base/program.h"
#include "experiments/cli/common.h"
#include "experiments/clock/calibrate.h"
#include "experiments/recipe/recipe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct calibrate_options {
  const char *first, *output, *format;
  size_t seeds;
  int json;
} calibrate_options;

/* --- writing --- */

static gl_status write_calibrated(const cfg_doc *doc, const char *path, gl_error *err) {
  static const char *const first[] = {"name", "description", "seed", "steps"};
  file_writer w;
  char *text = cfg_canonical(cfg_root(doc));
  cJSON *tree = text != NULL ? json_tree_of(text) : NULL;
  free(text);
  if (tree == NULL) return gl_fail_memory(err, "the calibrated recipe");
  gl_status status = file_begin(&w, path, err);
  if (status == GL_OK) {
    fputs("# Calibrated by gepolab calibrate.\n", w.stream);
    yaml_write(tree, first, sizeof first / sizeof *first, w.stream);
    status = file_commit(&w, err);
  }
  cJSON_Delete(tree);
  return status;
}

/* --- the command --- */

static gl_status read_fraction(double *out, const calibrate_options *o, gl_error *err) {
  *out = 0.5;
  if (o->first == NULL || (csv_number(o->first, out) && *out >= 0.1 && *out <= 0.9)) return GL_OK;
  return gl_fail(err, GL_EINPUT, "--first %s: a fraction of the steps, from 0.1 to 0.9", o->first);
}

static gl_status calibrate_logs(const args *a, const calibrate_options *o, gl_error *err) {
  const char *source = a->words[a->n_words - 1];
  cfg_doc *doc = NULL;
  calibrate_log log = {.n = 0};
  calibrate_request q = {.log = &log, .seeds = o->seeds > 0 ? o->seeds : 16};
  calibration c;
  gl_status status = read_fraction(&q.first, o, err);
  if (status == GL_OK && resources_recipe(a->words[0]) != NULL && access(a->words[0], F_OK) != 0)
    status = gl_fail(err, GL_EINPUT,
                     "the logs come first, and then the recipe: gepolab calibrate "
                     "%s %s",
                     source, a->words[0]);
  if (status == GL_OK) status = recipe_load(&doc, source, a->overrides, a->n_overrides, err);
  if (status == GL_OK) note_left_sweep(cfg_find(cfg_root(doc), "sweep"));
  if (status == GL_OK) status = calibrate_log_read(&log, a->words, a->n_words - 1, o->format, err);
  tell_gathered(&log.from);
  if (status == GL_OK) status = calibrate(&c, doc, &q, err);
  if (status == GL_OK && o->output != NULL) status = write_calibrated(doc, o->output, err);
  if (status == GL_OK) status = report_table(calibration_table(&c), TABLE_AS_TEXT, o->json, err);
  calibrate_log_fini(&log);
  cfg_free(doc);
  return status;
}

static gl_status run_calibrate(args *a, gl_error *err) {
  calibrate_options o = {.json = 0};
  const args_option options[] = {
      {"first", 0, ARGS_TEXT, "FRACTION", "of the steps, to fit to (default: 0.5)", &o.first},
      {"seeds", 0, ARGS_COUNT, "N", "simulated runs (default: 16)", &o.seeds},
      {"output", 'o', ARGS_WRITE, "FILE.yaml", "write the recipe with what was fitted", &o.output},
      {"log-format", 0, ARGS_TEXT, "NAME", "of the logs (`gepolab list formats`)", &o.format},
      {"json", 0, ARGS_FLAG, NULL, "the comparison as JSON", &o.json}};
  gl_status status = args_parse(a, ARGS_OPTIONS(options), err);
  if (status != GL_OK || a->help) return status;
  return calibrate_logs(a, &o, err);
}

const command command_calibrate = {
    .name = "calibrate",
    .arguments = "LOG… RECIPE [key=value …]",
    .words = {.input = ARGS_ANY, .min = 2, .max = 256, .overrides = true},
    .summary = "how well the clock predicts the rest of a log",
    .about =
        "LOG is a trainer's log with a number for each step: verl, prime-rl, TRL, miles, W&B\n"
        "exports, CSV, JSON Lines, or gepolab's own exports; folders too. The seconds of\n"
        "generation, weight sync and training of its first part are fitted as cluster.generation\n"
        "(of all samplers together), cluster.delay and cluster.learner.step; the clock of RECIPE\n"
        "with these distributions predicts the steps of the rest. Printed are the error of the\n"
        "mean, the mean absolute percentage error and the correlation over steps, of the seconds\n"
        "of a step, the throughput and the staleness, and the distribution that is wrong first:\n"
        "a Kolmogorov-Smirnov test of each field's values in the rest against those of the first\n"
        "part, in the order generation, delay, learner. The test assumes independent steps.",
    .examples = "  gepolab calibrate verl.jsonl quickstart cluster='{preset: sync}'\n"
                "  gepolab calibrate run/metrics.jsonl mine.yaml --first 0.3 -o fitted.yaml\n"
                "  gepolab calibrate dump/dashboard mine.yaml --json",
    .run = run_calibrate};
