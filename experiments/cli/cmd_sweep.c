/* gepolab sweep: runs a grid and stores it in a study file. */
#include "core/base/display_text.h"
#include "experiments/base/args.h"
#include "experiments/base/memory.h"
#include "experiments/base/print_json.h"
#include "experiments/base/program.h"
#include "experiments/cli/common.h"
#include "experiments/recipe/recipe.h"
#include "experiments/sweep/forecast.h"
#include "experiments/sweep/sweep.h"
#include "llm/learner/llm_learner.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- sweep --dry-run --- */

/* Returns a value as canonical recipe text, malloc'd. */
static char *value_text(const cfg_node *value) {
  char *text = cfg_canonical(value);
  must_have(text, "a value");
  return text;
}

/* --- in words --- */

/* Columns after which a printed list of an axis's values is cut. The list of a design can be very
 * long. */
enum { VALUE_COLUMNS = 120 };

static void print_axes(const sweep_grid *grid, const char *title) {
  if (grid->n_axes > 0) printf("%s\n", title);
  for (size_t i = 0; i < grid->n_axes; ++i) {
    char *values = value_text(grid->axes[i].values);
    printf("  %-20s ", shown(grid->axes[i].path).text);
    shown_text cut;
    shown_cut(values, VALUE_COLUMNS, &cut);
    printf("%s", cut.text);
    if (shown_width(values) > VALUE_COLUMNS)
      printf(" (%zu values)", cfg_size(grid->axes[i].values));
    putchar('\n');
    free(values);
  }
}

static void print_counts(const sweep_survey *v) {
  if (v->tuning_runs > 0)
    printf("tuning runs            %zu, of which %zu are in the file and %zu to be made\n",
           v->tuning_runs, v->tuning_known, v->tuning_runs - v->tuning_known);
  if (v->rates_open)
    printf("cells                  %zu; which of them are in the file is known when the rates are "
           "chosen\n",
           v->cells);
  else
    printf("cells                  %zu, of which %zu are in the file and %zu to be run\n", v->cells,
           v->known, v->cells - v->known);
}

static void print_time(const sweep_survey *v, size_t workers) {
  char wait[SECONDS_TEXT_SIZE], work[SECONDS_TEXT_SIZE];
  if (v->known == v->cells && v->tuning_known == v->tuning_runs)
    puts("time                   nothing is left to do");
  else if (isnan(v->wait_s))
    printf("time                   unknown: no run has finished yet, and the first cell made no "
           "update in ten seconds\n");
  else if (v->timed_updates > 0)
    printf("time                   about %s with %zu worker%s (%s of work), as %zu update%s of the "
           "first cell took\n",
           seconds_text(v->wait_s, wait), workers, workers == 1 ? "" : "s",
           seconds_text(v->work_s, work), v->timed_updates, v->timed_updates == 1 ? "" : "s");
  else
    printf("time                   about %s with %zu worker%s (%s of work), as %zu finished run%s "
           "took\n",
           seconds_text(v->wait_s, wait), workers, workers == 1 ? "" : "s",
           seconds_text(v->work_s, work), v->learned_from, v->learned_from == 1 ? "" : "s");
}

static void survey_print_memory(const sweep_survey *v, size_t workers) {
  const double mib = 1024.0 * 1024, gib = 1024 * mib, one = (double)v->peak_bytes;
  const double all = one * (double)workers;
  if (v->peak_bytes == 0)
    printf("memory                 unknown: no run of this study has finished yet\n");
  else
    printf("memory                 up to %.3g %s with %zu worker%s, as %s "
           "took\n",
           all < gib ? all / mib : all / gib, all < gib ? "MiB" : "GiB", workers,
           workers == 1 ? "" : "s",
           v->timed_updates > 0 ? "that cell" : "the largest finished run");
}

static void survey_print_words(const sweep_survey *v, const sweep_options *o) {
  printf("%s%s%s: nothing is run or written\n", shown(v->study).text, o->file != NULL ? " -> " : "",
         shown(o->file).text);
  print_axes(&v->grid, "axes of the sweep, the first slowest");
  print_axes(&v->tuning, "axes of the tuning runs");
  print_counts(v);
  print_time(v, o->workers);
  survey_print_memory(v, o->workers);
}

/* --- as JSON --- */

/* [{"path": …, "values": […]}] */
static void add_axes(cJSON *to, const char *key, const sweep_grid *grid) {
  cJSON *list = json_list(to, key);
  for (size_t i = 0; i < grid->n_axes; ++i) {
    cJSON *item = json_object(list, NULL);
    char *values = value_text(grid->axes[i].values);
    json_put(item, "path %s", grid->axes[i].path);
    json_raw(item, "values", values);
    free(values);
  }
}

static gl_status survey_print_document(const sweep_survey *v, const sweep_options *o,
                                       gl_error *err) {
  cJSON *d = json_new();
  json_put(d, "study %s, file %s", v->study, o->file);
  add_axes(d, "axes", &v->grid);
  add_axes(d, "tuning_axes", &v->tuning);
  json_put(d, "tuning_runs %zu, tuning_already_known %zu, cells %zu, already_finished %g",
           v->tuning_runs, v->tuning_known, v->cells,
           v->rates_open ? (double)NAN : (double)v->known);
  json_put(d, "workers %zu, work_s %g, seconds_left %g, learned_from_runs %zu, timed_updates %zu",
           o->workers, v->work_s, v->wait_s, v->learned_from, v->timed_updates);
  json_put(d, "peak_bytes_of_a_run %g", v->peak_bytes > 0 ? (double)v->peak_bytes : (double)NAN);
  return report_json(d, err);
}

/* --- sweep --- */

/* --- chosen settings --- */

static int is_rate_alone(const sweep_report *r) {
  return r->tuned.n == 1 && strcmp(r->tuned.path[0], "optimizer.lr") == 0;
}

/* {"PATH": value, …} under the key. */
static void sweep_add_chosen(cJSON *to, const sweep_report *r, const sweep_choice *c) {
  cJSON *fields = json_object(to, "chosen");
  for (size_t i = 0; i < r->tuned.n; ++i) {
    char *text = value_text(c->value[i]);
    json_raw(fields, r->tuned.path[i], text);
    free(text);
  }
}

static void sweep_print_chosen(const sweep_report *r, const sweep_choice *c) {
  printf("  %-20s ", shown(c->algorithm).text);
  for (size_t i = 0; i < r->tuned.n; ++i) {
    char *text = value_text(c->value[i]);
    printf("%s%s %s%s", i > 0 ? ", " : "", shown(r->tuned.path[i]).text, shown(text).text,
           c->edges >> i & 1 ? " (at the edge of the grid)" : "");
    free(text);
  }
  printf("; score %.4f\n", c->score);
}

/* --- printing --- */

static gl_status sweep_print_json(const sweep_report *r, const char *file, gl_error *err) {
  cJSON *d = json_new();
  json_put(d, "file %s, cells %zu, already_finished %zu, done %zu, diverged %zu, failed %zu", file,
           r->cells, r->known, r->done, r->diverged, r->failed);
  json_put(d, "superseded %zu, tuning_runs %zu, tuning_already_known %zu, tuning_failed %zu",
           r->superseded, r->tuning_runs, r->tuning_known, r->tuning_failed);
  json_put(d, "tuning_s %g, grid_s %g", r->tuning_s, r->grid_s);
  cJSON *tuned = json_list(d, "tuned");
  for (size_t i = 0; i < r->n_choices; ++i) {
    const sweep_choice *c = &r->choices[i];
    cJSON *item = json_object(tuned, NULL);
    json_put(item, "algorithm %s, lr %g, score %g, at_edge %i", c->algorithm, c->lr, c->score,
             c->edges != 0);
    sweep_add_chosen(item, r, c);
  }
  return report_json(d, err);
}

static void sweep_print_text(const sweep_report *r, const char *file) {
  if (r->n_choices > 0)
    printf("%s chosen by tune (%zu runs, %zu already known, %.1f s):\n",
           is_rate_alone(r) ? "learning rates" : "settings", r->tuning_runs, r->tuning_known,
           r->tuning_s);
  for (size_t i = 0; i < r->n_choices; ++i) {
    const sweep_choice *c = &r->choices[i];
    if (is_rate_alone(r))
      printf("  %-20s lr %-8g score %.4f%s\n", shown(c->algorithm).text, c->lr, c->score,
             c->edges != 0 ? "  (at the edge of the grid)" : "");
    else
      sweep_print_chosen(r, c);
  }
  printf("%zu cell%s in %.1f s: %zu done, %zu diverged, %zu failed, %zu already finished -> %s\n",
         r->cells, plural_ending(r->cells), r->grid_s, r->done, r->diverged, r->failed, r->known,
         shown(file).text);
}

static void print_failures(const sweep_report *r) {
  const size_t all = r->failed + r->tuning_failed;
  for (const char *line = r->failures; line != NULL && *line != '\0';) {
    size_t length = strcspn(line, "\n");
    fputs("gepolab: failed: ", stderr);
    shown_write(line, length, stderr);
    fputc('\n', stderr);
    line += length + (line[length] == '\n');
  }
  if (all > SWEEP_FAILURES_TOLD)
    fprintf(stderr, "gepolab: failed: %zu more\n", all - SWEEP_FAILURES_TOLD);
}

static void warn_of_edges(const sweep_report *r) {
  for (size_t i = 0; i < r->n_choices * r->tuned.n; ++i) {
    const sweep_choice *c = &r->choices[i / r->tuned.n];
    const size_t which = i % r->tuned.n;
    if (!(c->edges >> which & 1)) continue;
    if (is_rate_alone(r)) {
      fprintf(stderr,
              "gepolab: warning: the best rate of %s, %g, is at the edge of tune.lr; a wider grid "
              "may have a better one\n",
              shown(c->algorithm).text, c->lr);
      continue;
    }
    char *text = value_text(c->value[which]);
    fprintf(stderr,
            "gepolab: warning: the best %s of %s, %s, is at the edge of what tune tries; a wider "
            "grid may have a better one\n",
            shown(r->tuned.path[which]).text, shown(c->algorithm).text, shown(text).text);
    free(text);
  }
}

/* --- joining files --- */

static gl_status merge_shards(const char *file, const ranks *s, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < s->count && status == GL_OK; ++i) {
    char path[PATH_MAX];
    status = ranks_path(path, sizeof path, file, s, i, err);
    const char *one[] = {path};
    if (status == GL_OK) status = merge_files(file, one, 1, err);
  }
  return status;
}

/* --- gepolab sweep --- */

static size_t processors(void) {
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n > 0 ? (size_t)n : 1;
}

/* Sums the counts over all ranks of an MPI job; without MPI a process reports its own part. The
 * times stay those of this rank, which waits for the others after each phase. */
static void total_report(sweep_report *r, const ranks *s) {
  size_t *count[] = {&r->tuning_runs, &r->tuning_known, &r->tuning_failed, &r->cells,     &r->known,
                     &r->done,        &r->diverged,     &r->failed,        &r->superseded};
  enum { N = sizeof count / sizeof *count };
  double value[N];
  for (size_t i = 0; i < N; ++i) value[i] = (double)*count[i];
  ranks_sum(s, value, N);
  for (size_t i = 0; i < N; ++i) *count[i] = (size_t)value[i];
}

/* Reports the sweep on stdout, if its grid was run or JSON is asked for. */
static gl_status sweep_print_report(const sweep_report *r, gl_status status,
                                    const sweep_options *options, int json, gl_error *err) {
  char path[PATH_MAX];
  const ranks *s = &options->ranks;
  if (status != GL_OK && (!json || r->tuning_failed == 0)) return status;
  const ranks whole = {.index = 0, .count = 1};
  gl_status printed =
      ranks_path(path, sizeof path, options->file, s->mpi ? &whole : s, s->index, err);
  if (printed == GL_OK && json) printed = sweep_print_json(r, path, err);
  if (status != GL_OK || printed != GL_OK) return status != GL_OK ? status : printed;
  warn_of_edges(r);
  if (r->superseded > 0)
    fprintf(stderr,
            "gepolab: note: %zu run%s superseded by newer ones of the same place (other learning "
            "rates chosen); they stay in the file and are left out of analyses and exports\n",
            r->superseded, r->superseded == 1 ? " is" : "s are");
  if (!json) sweep_print_text(r, path);
  if (r->failed == 0) return GL_OK;
  return gl_fail(err, GL_EIO,
                 "%zu of %zu runs failed; the others are kept, and the same command tries the "
                 "failed ones again",
                 r->failed, r->cells);
}

/* Calls note_unused() for each algorithm of the sweep, unless other fields that it reads are
 * swept. */
static void note_unused_in_sweep(const cfg_doc *doc) {
  sweep_grid grid;
  gl_error err = {0};
  unsigned told = 0;
  const cfg_node *algorithms = NULL;
  if (sweep_grid_read(&grid, doc, &err) != GL_OK) return; /* sweep_run() tells why */
  for (size_t i = 0; i < grid.n_axes; ++i) {
    const char *path = grid.axes[i].path;
    if (strcmp(path, "algorithm") == 0)
      algorithms = grid.axes[i].values;
    else if (cfg_design_named(path) != NULL || strcmp(path, "steps") == 0 ||
             cfg_path_is_inside(path, "algorithm") || cfg_path_is_inside(path, "optimizer"))
      return;
  }
  for (size_t i = 0; i < (algorithms != NULL ? cfg_size(algorithms) : 1); ++i) {
    cfg_doc *one = NULL;
    recipe r;
    gl_status status = cfg_copy(&one, doc, &err);
    if (status == GL_OK && algorithms != NULL)
      status = cfg_set(one, "algorithm", cfg_at(algorithms, i), &err);
    if (status == GL_OK && recipe_read(&r, one, &err) == GL_OK) note_unused(&r, &told);
    cfg_free(one);
  }
}

static gl_status sweep_and_report(const cfg_doc *doc, sweep_options *options, int json,
                                  gl_error *err) {
  sweep_report report;
  char note[LLM_NOTE_SIZE];
  if (llm_note(cfg_find(cfg_root(doc), "world"), note) != NULL)
    fprintf(stderr, "gepolab: note: %s\n", shown(note).text);
  const ranks *s = &options->ranks;
  if (s->note[0] != '\0') fprintf(stderr, "gepolab: note: %s\n", shown(s->note).text);
  gl_status status = sweep_run(&report, doc, options, err);
  print_failures(&report);
  /* The barrier before rank 0 reads the others' files. */
  status = ranks_share(s, NULL, 0, status);
  total_report(&report, s);
  /* Rank 0 joins the files, even if a cell failed, and reports for all ranks. The others exit
   * without an error, because mpirun stops the job at the first process that fails. */
  if (s->mpi && s->index > 0) {
    if (err->text[0] == '\0') status = GL_OK;
  } else {
    if (status == GL_OK && s->mpi) status = merge_shards(options->file, s, err);
    status = sweep_print_report(&report, status, options, json, err);
  }
  sweep_report_fini(&report);
  return status;
}

static gl_status sweep_dry_run(const cfg_doc *doc, const sweep_options *options, int json,
                               gl_error *err) {
  sweep_survey survey;
  gl_status status = sweep_look_ahead(&survey, doc, options, err);
  if (status == GL_OK && json) status = survey_print_document(&survey, options, err);
  if (status == GL_OK && !json) survey_print_words(&survey, options);
  sweep_survey_fini(&survey);
  return status;
}

/* Fails if there is no folder for the study file, before anything is read or timed. */
static gl_status check_folder(const char *file, gl_error *err) {
  char folder[PATH_MAX];
  const char *slash = file != NULL ? strrchr(file, '/') : NULL;
  if (slash == NULL || slash == file) return GL_OK;
  snprintf(folder, sizeof folder, "%.*s", (int)(slash - file), file);
  if (access(folder, F_OK) == 0) return GL_OK;
  return gl_fail(err, GL_EIO, "--output %s: there is no folder %s; make it first", file, folder);
}

static gl_status sweep_run_sweep(args *a, gl_error *err) {
  int json = 0, quiet = 0, dry = 0;
  const char *shard = NULL;
  sweep_options o = {.workers = 0};
  const args_option options[] = {
      {"output", 'o', ARGS_STUDY, "FILE.db", "the study file (needed); made, or continued",
       &o.file},
      {"jobs", 'j', ARGS_COUNT, "N", "worker processes (default: one a processor)", &o.workers},
      {"shard", 0, ARGS_TEXT, "I/N", "do part I of N, into FILE.db.shardI", &shard},
      {"checkpoint", 0, ARGS_TEXT, "DIR", "keep checkpoints of unfinished cells there",
       &o.checkpoints},
      {"checkpoint-every", 0, ARGS_COUNT, "N", "one every N updates (default: 300 s)",
       &o.checkpoint_every},
      {"replace-plan", 0, ARGS_FLAG, NULL,
       "this grid is all that the study is to hold; earlier plans are forgotten", &o.replaces_plan},
      {"dry-run", 0, ARGS_FLAG, NULL,
       "say what would be run and how long it takes (without finished runs, by running one cell "
       "for at most ten seconds); write nothing",
       &dry},
      {"quiet", 'q', ARGS_FLAG, NULL, "no progress", &quiet},
      {"json", 0, ARGS_FLAG, NULL, "the closing summary as JSON", &json}};
  one_recipe of = {.words = a};
  gl_status status = args_parse(a, ARGS_OPTIONS(options), err);
  if (status != GL_OK || a->help) return status;
  if (o.file == NULL && !dry)
    status = gl_fail(err, GL_EINPUT, "sweep needs a file to keep its results: add -o study.db");
  if (status == GL_OK) status = check_folder(o.file, err);
  if (status == GL_OK) status = one_recipe_load(&of, err);
  if (status == GL_OK) status = ranks_begin(&o.ranks, shard, o.file, err);
  if (status == GL_OK) {
    if (o.workers == 0) o.workers = o.ranks.mpi ? 1 : processors();
    o.progress = quiet || (o.ranks.mpi && o.ranks.index > 0) ? PROGRESS_SILENT : PROGRESS_AUTO;
    if (!o.ranks.mpi || o.ranks.index == 0) note_unused_in_sweep(of.doc);
    signals_catch();
    status = dry ? sweep_dry_run(of.doc, &o, json, err) : sweep_and_report(of.doc, &o, json, err);
  }
  status = recipe_say_command(of.doc, "sweep", status, err);
  ranks_end(&o.ranks);
  cfg_free(of.doc);
  return status;
}

const command command_sweep = {
    .name = "sweep",
    .arguments = "RECIPE -o FILE.db [key=value …]",
    .words = {.input = ARGS_RECIPE, .min = 1, .max = 1, .overrides = true},
    .summary = "a grid of runs into a study file; resumable",
    .about =
        "Runs every cell of the recipe's `sweep` in worker processes and stores the results in\n"
        "FILE.db, after choosing learning rates or other fields if the recipe has `tune`. A\n"
        "cell that is in the file is not run again: after Ctrl-C, kill or a crash the same\n"
        "command continues where it stopped. The results do not depend on -j, on the order of\n"
        "finishing, or on interruptions.\n"
        "The grid begins when all tuning runs have ended. A failed tuning run ends the command;\n"
        "the same command tries it again.\n"
        "If other values are chosen than before, the cells are run again with those, and the\n"
        "earlier runs are superseded: they stay in the file, and analyses exclude them.\n"
        "`gepolab study status` shows the progress of a sweep from another terminal.\n"
        "With --checkpoint an interrupted cell continues from its last checkpoint.\n"
        "Under mpirun, each rank writes its part into FILE.db.shardI and rank 0 joins them and\n"
        "reports for all; with --shard, or under srun, join them with `study merge`. A Slurm\n"
        "batch script without srun, and every task of a job array, does the whole sweep.",
    .examples = "  gepolab sweep delay_sweep --dry-run -j 2\n"
                "  gepolab sweep delay_sweep -o study.db -j 2\n"
                "  gepolab sweep delay_sweep -o small.db steps=60 'sweep.seed=[1,2,3]' \\\n"
                "      'sweep.algorithm=[grpo,gepo]'\n"
                "  mpirun -n 4 gepolab sweep delay_sweep -o study.db",
    .run = sweep_run_sweep};
