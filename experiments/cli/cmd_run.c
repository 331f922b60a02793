/* gepolab run: one training run, with a summary. */
#include "core/base/display_text.h"
#include "core/base/progress.h"
#include "experiments/base/args.h"
#include "experiments/base/memory.h"
#include "experiments/base/print_json.h"
#include "experiments/base/program.h"
#include "experiments/cli/common.h"
#include "experiments/recipe/recipe.h"
#include "experiments/sweep/sweep.h"
#include "experiments/train/train.h"
#include "llm/learner/llm_learner.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* --- printing --- */

static void report_evals(table *d, const run_result *o) {
  static const table_column columns[] = {TABLE_KEY("step", TABLE_INTEGER),
                                         TABLE_KEY("time_s", TABLE_REAL),
                                         TABLE_KEY("eval_score", TABLE_REAL)};
  table *t = table_rows(table_field(d, "evals"), columns, sizeof columns / sizeof *columns);
  for (size_t i = 0; i < o->n_evals; ++i) {
    table_row(t);
    table_integer(t, o->evals[i].step), table_real(t, o->evals[i].time_s);
    table_real(t, o->evals[i].eval_score);
  }
}

/* Adds the scores of evaluation sets, or of halves of a set, if the recipe has them. */
static void report_set_evals(table *d, const run_result *o) {
  static const table_column columns[] = {
      TABLE_KEY("step", TABLE_INTEGER), TABLE_KEY("eval_set", TABLE_TEXT),
      TABLE_KEY("half", TABLE_INTEGER), TABLE_KEY("eval_score", TABLE_REAL)};
  if (o->n_set_evals == 0) return;
  table *t = table_rows(table_field(d, "set_evals"), columns, sizeof columns / sizeof *columns);
  for (size_t i = 0; i < o->n_set_evals; ++i) {
    const set_eval_record *r = &o->set_evals[i];
    table_row(t);
    table_integer(t, r->step), table_text(t, r->set), table_integer(t, r->half);
    table_real(t, r->score);
  }
}

/* Reports best and last score of each whole set. Those of the first set are the run's scores. */
static void report_best_of_sets(table *d, const run_result *o) {
  for (size_t i = 0; i < o->n_set_evals && o->set_evals[i].step == o->set_evals[0].step; ++i) {
    double best = NAN, last = NAN;
    if (o->set_evals[i].half != 0) continue;
    for (size_t k = i; k < o->n_set_evals; ++k) {
      const set_eval_record *r = &o->set_evals[k];
      if (r->place != o->set_evals[i].place || r->half != 0) continue;
      best = fmax(best, r->score);
      last = r->score;
    }
    table_line(d, "  %-20s best %.4f, last %.4f", o->set_evals[i].set, best, last);
  }
}

/* Adds the numbers of groups that dynamic sampling sampled and kept, over all updates. */
static void report_sampled_groups(table *d, const recipe *r, const run_result *o) {
  double drawn = 0, kept = 0;
  if (!r->filter.is_on) return;
  for (size_t i = 0; i < o->n_steps; ++i) {
    drawn += o->steps[i].metric[METRIC_GROUPS_DRAWN];
    kept += o->steps[i].metric[METRIC_GROUPS_KEPT];
  }
  table_line(d, "  groups               %.0f sampled for the updates, %.0f kept (%.1f %%)", drawn,
             kept, drawn > 0 ? 100 * kept / drawn : 0);
}

static void report_part(table *d, table *from, const char *name, const char *meaning,
                        uint64_t versions, const run_result *o) {
  const double trained = o->clock.batches_trained > 0 ? o->clock.batches_trained : 1;
  table *part = table_object(table_field(from, name));
  table_put(part, "versions %zu, mean %g", versions, (double)versions / trained);
  table_line(d, "    from %-14s  %.4g %s", name, (double)versions / trained, meaning);
}

/* Adds the contribution of each cause to the mean staleness. */
static void report_parts(table *d, table *staleness, const run_result *o) {
  table *from = table_object(table_field(staleness, "from"));
#define REPORT_PART(name, meaning) report_part(d, from, #name, meaning, o->parts.name, o);
  STALENESS_PARTS(REPORT_PART)
#undef REPORT_PART
}

/* With several optimiser updates per step: the mean staleness that the step itself adds
 * (staleness_within). */
static void run_report_within(table *d, table *staleness, const recipe *r, const run_result *o) {
  const double updates = (double)r->minibatches * (double)r->epochs;
  double sum = 0;
  if (updates <= 1 || o->n_steps == 0) return;
  for (size_t i = 0; i < o->n_steps; ++i) sum += o->steps[i].metric[METRIC_STALENESS_WITHIN];
  const double mean = sum / (double)o->n_steps;
  table_put(staleness, "updates_per_version %g, updates_within %g", updates, mean);
  table_line(d, "    within a step       %.4g optimiser updates, beside %g for each version above",
             mean, updates);
}

static void report_clock(table *d, const recipe *r, const run_result *o) {
  const clock_record *c = &o->clock;
  table *staleness = table_object(table_field(d, "staleness"));
  double *bars = MUST_ARRAY(double, o->n_staleness, "a histogram");
  for (size_t i = 0; i < o->n_staleness; ++i) bars[i] = (double)o->staleness[i];
  table_put(staleness, "mean %g, max %g, p50 %g, p95 %g", c->staleness_mean, c->staleness_max,
            c->staleness_p50, c->staleness_p95);
  table_numbers(table_field(staleness, "histogram"), bars, o->n_staleness);
  free(bars);
  const struct {
    const char *name;
    double value;
  } numbers[] = {{"learner_utilisation", c->learner_utilisation},
                 {"sampler_utilisation", c->sampler_utilisation},
                 {"batches_generated", c->batches_generated},
                 {"batches_trained", c->batches_trained},
                 {"batches_dropped", c->batches_dropped},
                 {"batches_lost", c->batches_lost},
                 {"retransmissions", c->retransmissions},
                 {"samples_per_s", c->samples_per_s},
                 {"bytes_up", c->bytes_up},
                 {"bytes_down", c->bytes_down},
                 {"simulated_s", c->simulated_s}};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i)
    table_real(table_field(d, numbers[i].name), numbers[i].value);
  table_line(d, "  staleness            mean %.4g, median %.4g, 95 %% %.4g, largest %.4g",
             c->staleness_mean, c->staleness_p50, c->staleness_p95, c->staleness_max);
  report_parts(d, staleness, o);
  run_report_within(d, staleness, r, o);
  table_line(d, "  simulated time       %.6g s for %zu updates", c->simulated_s, o->n_steps);
  table_line(d, "  utilisation          learner %.1f %%, samplers %.1f %%",
             100 * c->learner_utilisation, 100 * c->sampler_utilisation);
  table_line(d, "  batches              %.0f generated, %.0f trained, %.0f dropped, %.0f lost",
             c->batches_generated, c->batches_trained, c->batches_dropped, c->batches_lost);
  table_line(d, "  samples              %.4g per second", c->samples_per_s);
  table_line(d, "  network              %.4g bytes up, %.4g bytes down, %.0f retransmissions",
             c->bytes_up, c->bytes_down, c->retransmissions);
}

/* Adds the metrics of the last update by name. */
static void report_last_update(table *d, const run_result *o) {
  table *all = table_object(table_field(d, "last_update"));
  for (int m = 0; m < METRIC_COUNT && o->n_steps > 0; ++m)
    table_real(table_field(all, metric_about((metric)m)->name), o->steps[o->n_steps - 1].metric[m]);
}

/* For a stopped run: the mean staleness of the batches that it trained. (The clock simulates all
 * updates of the recipe.) */
static void report_trained_staleness(table *d, const run_result *o) {
  double sum = 0;
  for (size_t i = 0; i < o->n_steps; ++i) sum += o->steps[i].metric[METRIC_STALENESS];
  const double mean = sum / (double)o->n_steps;
  table *staleness = table_object(table_field(d, "staleness"));
  table_real(table_field(staleness, "mean"), mean);
  table_line(d, "  staleness            mean %.4g", mean);
}

/* JSON has no wall-clock time: two runs of one recipe print the same. is_stopped: the summary is of
 * the updates so far. */
static gl_status report_run(const recipe *r, const run_result *o, bool is_stopped, bool is_json,
                            gl_error *err) {
  const char *ended = is_stopped ? "stopped" : run_status_name(o->status);
  const run_scores s = run_result_scores(o);
  const struct {
    const char *name;
    double value;
  } scores[] = {{"eval_first", s.eval_first},
                {"best", s.best},
                {"last", s.last},
                {"best_to_last", s.best_to_last}};
  table *d = table_document();
  table_put(d, "name %s, algorithm %s", r->name, r->algorithm.name);
  table_integer(table_field(d, "seed"), (int64_t)r->seed);
  table_put(d, "status %s, reason %s, steps %zu", ended, o->reason, o->n_steps);
  table_line(d, "%s: %s, seed %llu, %zu updates in %.2f s, %s%s%s", r->name, r->algorithm.name,
             (unsigned long long)r->seed, o->n_steps, o->wall_s, ended,
             o->reason[0] != '\0' ? ": " : "", o->reason);
  for (size_t i = 0; i < sizeof scores / sizeof *scores; ++i) {
    table_real(table_field(d, scores[i].name), scores[i].value);
    table_line(d, "  %-20s %.4f", scores[i].name, scores[i].value);
  }
  report_best_of_sets(d, o);
  if (is_stopped)
    report_trained_staleness(d, o);
  else
    report_clock(d, r, o);
  report_sampled_groups(d, r, o);
  fates_report(d, o->fates, o->n_fates);
  report_evals(d, o);
  report_set_evals(d, o);
  report_last_update(d, o);
  return report_table(d, TABLE_AS_TEXT, is_json, err);
}

/* --- the run --- */

/* The state of the training loop's callbacks. */
typedef struct run_watch {
  progress *bar; /* progress of the warm-up while it runs, then of the updates */
  int warms_up;
  const recipe *recipe;
  const run_options *options;
} run_watch;

static progress *run_bar_of(const run_watch *w, const char *what, const char *unit,
                            uint64_t total) {
  char name[SHOWN_SIZE + 16];
  shown_text own;
  shown_cut(w->recipe->name, 48, &own);
  snprintf(name, sizeof name, "%s%s", own.text, what);
  return progress_new(name, unit, total, w->options->quiet ? PROGRESS_SILENT : PROGRESS_AUTO);
}

static int preparing(void *self, uint64_t step, uint64_t steps, double loss) {
  run_watch *w = self;
  char note[48];
  if (!w->warms_up) {
    progress_free(w->bar);
    w->bar = run_bar_of(w, " warm-up", "steps", steps);
    w->warms_up = 1;
  }
  if (isnan(loss))
    snprintf(note, sizeof note, "another process runs it");
  else
    snprintf(note, sizeof note, "loss %.3f", loss);
  progress_at(w->bar, step, note);
  return signals_caught();
}

static int run_after_step(void *self, size_t step, double last_eval) {
  run_watch *w = self;
  char note[48];
  if (w->warms_up) {
    progress_free(w->bar);
    w->bar = run_bar_of(w, "", "updates", w->recipe->steps);
    w->warms_up = 0;
  }
  snprintf(note, sizeof note, "eval_score %.3f", last_eval);
  progress_at(w->bar, step, note);
  return signals_caught();
}

static gl_status at_end(void *self, const learner *l, gl_error *err) {
  const run_options *q = ((run_watch *)self)->options;
  return q->at_end != NULL ? q->at_end(q->self, l, err) : GL_OK;
}

static void run_note(void *self, const char *text) {
  (void)self;
  fprintf(stderr, "gepolab: note: %s\n", shown(text).text);
}

static gl_status refuse_sweep(const recipe *r, gl_error *err) {
  const char *key = r->sweep != NULL ? "sweep" : "tune";
  const cfg_node *place = r->sweep != NULL ? r->sweep : r->tune;
  if (place == NULL) return GL_OK;
  return cfg_fail(
      place, err,
      "the recipe has a `%s`, which `gepolab run` would ignore; use `gepolab sweep`, or "
      "drop it with the override %s=null",
      key, key);
}

static gl_status run_keep(const char *file, const sweep_cell *cell, const recipe *r,
                          const run_result *o, gl_error *err) {
  store *s = NULL;
  gl_status status = store_open(&s, file, STORE_WRITE, err);
  if (status == GL_OK) status = sweep_store_cell(s, r->name, cell, o, err);
  store_close(s);
  return status;
}

/* Trains and reports. Checkpoints in a folder that the user names are kept; the default folder
 * beside the study file is removed once the run is stored. */
static gl_status train_and_report(const sweep_cell *cell, const recipe *r, const run_options *q,
                                  gl_error *err) {
  run_result o = {0};
  char beside[PATH_MAX] = "";
  gl_status status = GL_OK;
  if (q->every > 0 && q->checkpoints == NULL && (!r->wants_checkpoints || q->file == NULL))
    return gl_fail(err, GL_EINPUT, "--checkpoint-every needs --checkpoint DIR");
  if (q->checkpoints == NULL && r->wants_checkpoints && q->file != NULL)
    status = sweep_checkpoints(beside, NULL, q->file, cell, err);
  else if (q->checkpoints == NULL && r->wants_checkpoints)
    run_note(NULL, "no checkpoints are written: give --checkpoint DIR, or -o FILE.db");
  if (status != GL_OK) return status;
  run_watch watch = {.options = q, .recipe = r};
  watch.bar = run_bar_of(&watch, "", "updates", r->steps);
  train_options how = {.after_step = run_after_step,
                       .preparing = preparing,
                       .note = run_note,
                       .self = &watch,
                       .checkpoints = beside[0] != '\0' ? beside : q->checkpoints,
                       .canonical = cell->identity,
                       .pace = r->checkpoint,
                       .checkpoint_at_end = beside[0] == '\0',
                       .save_to = q->save_to,
                       .at_end = at_end};
  if (q->every > 0) how.pace.every = q->every;
  signals_catch();
  status = train_run(&o, r, &how, err);
  progress_free(watch.bar);
  if (status == GL_OK && q->file != NULL) status = run_keep(q->file, cell, r, &o, err);
  if (status == GL_OK && beside[0] != '\0') sweep_clear_checkpoints(beside);
  if (status == GL_OK) status = report_run(r, &o, false, q->json, err);
  if (status == GL_EINTERRUPTED && o.n_steps > 0 && o.n_evals > 0)
    (void)report_run(r, &o, true, q->json, NULL);
  run_result_fini(&o);
  return status;
}

/* Treats the recipe as the only cell of a study, which gives the key of the run in study files and
 * checkpoints. */
gl_status run_recipe(const cfg_doc *doc, const recipe *r, const run_options *q, gl_error *err) {
  sweep_cells one = {0};
  const sweep_grid no_axes = {.n_axes = 0};
  gl_status status = refuse_sweep(r, err);
  if (status == GL_OK) status = recipe_check(r, NULL, err);
  char note[LLM_NOTE_SIZE];
  if (status == GL_OK && llm_note(r->world, note) != NULL) run_note(NULL, note);
  const sweep_expansion how = {0};
  if (status == GL_OK) status = sweep_expand(&one, doc, &no_axes, &how, err);
  if (status == GL_OK) status = train_and_report(&one.cells[0], r, q, err);
  sweep_cells_fini(&one);
  return status;
}

static gl_status run_run(args *a, gl_error *err) {
  run_options q = {0};
  const args_option options[] = {
      {"output", 'o', ARGS_STUDY, "FILE.db", "keep the run in this study file", &q.file},
      {"checkpoint", 0, ARGS_TEXT, "DIR", "keep checkpoints there, and go on from them",
       &q.checkpoints},
      {"checkpoint-every", 0, ARGS_COUNT, "N", "one every N updates (default: 300 s)", &q.every},
      {"save", 0, ARGS_WRITE, "FILE", "write the learner's final state", &q.save_to},
      {"threads", ARGS_OLD('t'), ARGS_COUNT, "N", "threads of the learner (default: all cores)",
       &q.threads},
      {"quiet", 'q', ARGS_FLAG, NULL, "no progress", &q.quiet},
      {"json", 0, ARGS_FLAG, NULL, "the summary as JSON", &q.json}};
  one_recipe of = {.words = a};
  gl_status status = args_parse(a, ARGS_OPTIONS(options), err);
  if (status != GL_OK || a->help) return status;
  status = one_recipe_read(&of, err);
  of.r.threads = q.threads;
  if (status == GL_OK) status = run_recipe(of.doc, &of.r, &q, err);
  cfg_free(of.doc);
  return status;
}

const command command_run = {
    .name = "run",
    .arguments = "RECIPE [key=value …]",
    .words = {.input = ARGS_RECIPE, .min = 1, .max = 1, .overrides = true},
    .summary = "one training run, with a summary",
    .about =
        "Trains once as the recipe says and prints best and last evaluation, staleness and the\n"
        "clock. RECIPE is a file or the name of an embedded recipe; key=value overrides any\n"
        "field by its dotted path and takes any YAML value. A run whose parameters stop being\n"
        "numbers, or whose score collapses, is a result: `status` says diverged.\n"
        "Ctrl-C prints the summary of the updates so far.\n"
        "With --checkpoint the same command goes on from the newest checkpoint after Ctrl-C "
        "(which\n"
        "writes one after the update in work; a second Ctrl-C does not wait), kill or a crash, "
        "and\n"
        "ends with the result of a run that was never interrupted.",
    .examples = "  gepolab run quickstart\n"
                "  gepolab run quickstart algorithm=gepo steps=60 seed=7\n"
                "  gepolab run quickstart steps=5000 --checkpoint going/ --save final.state\n"
                "  gepolab run quickstart 'algorithm={base: gepo, clip: none}' -o runs.db --json",
    .run = run_run};
