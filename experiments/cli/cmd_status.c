/* gepolab study status: how far a study is, also while it is being written. */
#include "core/base/json.h"
#include "core/base/shown.h"
#include "experiments/base/args.h"
#include "experiments/base/memory.h"
#include "experiments/base/print_json.h"
#include "experiments/base/program.h"
#include "experiments/cli/common.h"
#include "experiments/sweep/forecast.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct status_options {
  size_t shown; /* missing cells that are listed of each study */
  int json, watch, exit_code;
  size_t every_s;
} status_options;

/* --- what is read --- */

typedef struct missing_cell {
  char *algorithm, *swept; /* owned */
  uint64_t seed;
} missing_cell;

typedef struct choice {
  char *algorithm, *fields; /* {"optimizer.lr":0.1}; owned */
} choice;

typedef struct study_status {
  char *name; /* owned */
  study_progress progress;
  sweep_outlook outlook;
  missing_cell *missing; /* [n_missing], the first ones in grid order; owned */
  size_t n_missing, most;
  choice *choices; /* [n_choices] what `tune` chose for runs that are there; owned */
  size_t n_choices;
} study_status;

typedef struct file_status {
  const char *path;
  int being_written;
  study_status *studies; /* [n] */
  size_t n;
} file_status;

static void file_status_fini(file_status *f) {
  for (size_t i = 0; i < f->n; ++i) {
    for (size_t k = 0; k < f->studies[i].n_missing; ++k) {
      free(f->studies[i].missing[k].algorithm);
      free(f->studies[i].missing[k].swept);
    }
    for (size_t k = 0; k < f->studies[i].n_choices; ++k) {
      free(f->studies[i].choices[k].algorithm);
      free(f->studies[i].choices[k].fields);
    }
    free(f->studies[i].choices);
    free(f->studies[i].missing);
    free(f->studies[i].name);
  }
  free(f->studies);
  *f = (file_status){0};
}

/* Adds a missing cell; 0 where there are enough of them. */
static int add_missing_cell(void *self, const planned_cell *cell) {
  study_status *s = self;
  if (s->n_missing == s->most) return 0;
  *MUST_ADD(s->missing, s->n_missing, "the missing cells") =
      (missing_cell){.algorithm = must_copy(cell->algorithm, "the missing cells"),
                     .swept = must_copy(cell->swept, "the missing cells"),
                     .seed = cell->seed};
  return 1;
}

static int add_chosen_fields(void *self, const char *algorithm, const char *chosen) {
  study_status *s = self;
  *MUST_ADD(s->choices, s->n_choices, "the chosen fields") =
      (choice){must_copy(algorithm, "the chosen fields"), must_copy(chosen, "the chosen fields")};
  return 1;
}

static gl_status read_study(study_status *out, store *s, const char *name, size_t most,
                            gl_error *err) {
  *out = (study_status){.name = must_copy(name, "the name of a study"), .most = most};
  gl_status status = store_progress(s, name, &out->progress, err);
  if (status == GL_OK) status = sweep_outlook_read(&out->outlook, s, name, err);
  if (status == GL_OK) status = store_missing(s, name, add_missing_cell, out, err);
  if (status == GL_OK) status = store_choices(s, name, add_chosen_fields, out, err);
  return status;
}

/* All studies of the file in one state, and the file left alone before anything is printed: a
 * terminal that pauses must not hold the sweep up. */
static gl_status status_read_file(file_status *out, const char *path, size_t most, gl_error *err) {
  store *s = NULL;
  char **names = NULL;
  size_t n = 0;
  *out = (file_status){.path = path};
  gl_status status = store_open(&s, path, STORE_READ, err);
  if (status == GL_OK) status = store_begin_reading(s, err);
  if (status == GL_OK) status = store_studies(s, &names, &n, err);
  out->studies = MUST_ARRAY(study_status, n, "the studies of a file");
  for (; out->n < n && status == GL_OK; ++out->n)
    status = read_study(&out->studies[out->n], s, names[out->n], most, err);
  if (s != NULL) store_end_reading(s);
  store_close(s);
  free(names);
  out->being_written = store_is_being_written(path);
  return status;
}

static int is_complete(const study_status *s) {
  return s->progress.missing == 0 && s->progress.shards_missing == 0 &&
         s->progress.tuning_known == s->progress.tuning_planned;
}

static int all_complete(const file_status *f) {
  for (size_t i = 0; i < f->n; ++i)
    if (!is_complete(&f->studies[i])) return 0;
  return 1;
}

/* --- what is printed --- */

static void put_outlook(table *t, const study_status *s, int being_written) {
  char left[SECONDS_TEXT_SIZE];
  if (!being_written || is_complete(s)) return;
  if (isnan(s->outlook.per_s))
    table_line(t, "  time        not known yet: too few runs have finished");
  else
    table_line(t, "  time        %.3g runs a second lately, about %s left", s->outlook.per_s,
               seconds_text(s->outlook.left_s, left));
}

static void put_missing(table *t, const study_status *s) {
  table *list = table_list(table_field(t, "missing_cells"));
  for (size_t i = 0; i < s->n_missing; ++i) {
    const missing_cell *cell = &s->missing[i];
    table *o = table_object(table_field(list, ""));
    table_put(o, "algorithm %s, seed %llu", cell->algorithm, (unsigned long long)cell->seed);
    table_json(table_field(o, "settings"), json_tree_of(cell->swept));
    table_line(o, "  %-11s %s, seed %llu, %s", i == 0 ? "missing" : "", cell->algorithm,
               (unsigned long long)cell->seed, cell->swept);
  }
  if (s->n_missing < s->progress.missing)
    table_line(t, "  %-11s %s%zu more; --missing lists all", s->n_missing == 0 ? "missing" : "",
               s->n_missing == 0 ? "" : "and ", s->progress.missing - s->n_missing);
}

static void put_choices(table *t, const study_status *s) {
  table *list = table_list(table_field(t, "chosen"));
  for (size_t i = 0; i < s->n_choices; ++i) {
    table *o = table_object(table_field(list, ""));
    table_put(o, "algorithm %s", s->choices[i].algorithm);
    table_json(table_field(o, "fields"), json_tree_of(s->choices[i].fields));
    table_line(o, "  %-11s %s: %s", i == 0 ? "chosen" : "", s->choices[i].algorithm,
               s->choices[i].fields);
  }
}

static void put_study(table *t, const study_status *s, int being_written) {
  const study_progress *p = &s->progress;
  table_put(t, "study %s, complete %i, planned %zu, done %zu, diverged %zu, failed %zu", s->name,
            is_complete(s), p->planned, p->done, p->diverged, p->failed);
  table_put(t, "missing %zu, superseded %zu, tuning_planned %zu, tuning_known %zu", p->missing,
            p->superseded, p->tuning_planned, p->tuning_known);
  table_put(t, "shards %zu, shards_missing %zu, cells_per_s %g, seconds_left %g", p->shards,
            p->shards_missing, s->outlook.per_s, is_complete(s) ? 0 : s->outlook.left_s);
  if (p->planned == 0)
    table_line(t,
               "%s: %zu runs, of no sweep that this file knows: %zu done, %zu diverged, %zu failed",
               s->name, p->done + p->diverged + p->failed, p->done, p->diverged, p->failed);
  else
    table_line(t, "%s: %zu of %zu cells, %zu missing; runs: %zu done, %zu diverged, %zu failed",
               s->name, p->planned - p->missing, p->planned, p->missing, p->done, p->diverged,
               p->failed);
  if (p->tuning_planned > 0)
    table_line(t, "  tuning      %zu of %zu runs", p->tuning_known, p->tuning_planned);
  if (p->shards_missing > 0)
    table_line(t, "  shards      %zu of %zu missing, the first is %zu/%zu", p->shards_missing,
               p->shards, p->first_missing_shard, p->shards);
  if (p->superseded > 0)
    table_line(t, "  superseded  %zu runs, by newer ones of the same place", p->superseded);
  put_outlook(t, s, being_written);
  put_missing(t, s);
  put_choices(t, s);
}

static table *file_table(const file_status *f) {
  table *d = table_document();
  table_put(d, "file %s, being_written %i", f->path, f->being_written);
  table_line(d, "%s: %s", f->path,
             f->being_written ? "a sweep is writing it" : "nothing is writing it");
  table *list = table_list(table_field(d, "studies"));
  for (size_t i = 0; i < f->n; ++i)
    put_study(table_object(table_field(list, "")), &f->studies[i], f->being_written);
  return d;
}

/* One line a study, for a log. */
static void print_lines(const file_status *f) {
  for (size_t i = 0; i < f->n; ++i) {
    const study_status *s = &f->studies[i];
    char left[SECONDS_TEXT_SIZE];
    printf("%s: %s %zu/%zu cells, tuning %zu/%zu, %zu failed, %s left%s\n", shown(f->path).text,
           shown(s->name).text, s->progress.planned - s->progress.missing, s->progress.planned,
           s->progress.tuning_known, s->progress.tuning_planned, s->progress.failed,
           is_complete(s) ? "0s" : seconds_text(s->outlook.left_s, left),
           f->being_written ? "" : ", nothing is writing it");
  }
}

/* With --watch a document is a line, so that who reads them sees where each ends. */
static gl_status print_as_line(table *t, gl_error *err) {
  cJSON *document = table_to_json(t);
  char *text = document != NULL ? cJSON_PrintUnformatted(document) : NULL;
  cJSON_Delete(document);
  table_free(t);
  if (text == NULL) return gl_fail_memory(err, "the JSON answer");
  json_write(text, stdout);
  putchar('\n');
  cJSON_free(text);
  return GL_OK;
}

/* --- the command --- */

static gl_status status_print_file(const file_status *f, const status_options *o, gl_error *err) {
  const bool is_terminal = o->watch && isatty(STDOUT_FILENO);
  if (o->json && o->watch) return print_as_line(file_table(f), err);
  if (o->json || !o->watch || is_terminal) {
    if (is_terminal && !o->json)
      fputs("\033[H\033[J", stdout); /* from the top left corner, and nothing below */
    return report_table(file_table(f), TABLE_AS_TEXT, o->json, err);
  }
  print_lines(f);
  return GL_OK;
}

static gl_status fail_if_incomplete(const file_status *f, gl_error *err) {
  for (size_t i = 0; i < f->n; ++i) {
    const study_status *s = &f->studies[i];
    if (is_complete(s)) continue;
    char *text = unfinished_text(s->name, &s->progress);
    gl_fail(err, GL_EIO, "%s is not complete: %s", f->path,
            text != NULL ? text : "tuning runs are missing");
    free(text);
    return GL_EIO;
  }
  return GL_OK;
}

/* Once, or until the file is complete or its writer has gone. */
static gl_status status_show(const char *path, const status_options *o, gl_error *err) {
  gl_status status = GL_OK;
  int was_written = 0, ends = 0;
  while (status == GL_OK && !ends) {
    file_status f;
    status = status_read_file(&f, path, o->shown, err);
    if (status == GL_OK) status = status_print_file(&f, o, err);
    ends = !o->watch || all_complete(&f) || (was_written && !f.being_written);
    was_written = f.being_written;
    if (status == GL_OK && ends && o->exit_code) status = fail_if_incomplete(&f, err);
    file_status_fini(&f);
    if (status == GL_OK && fflush(stdout) != 0)
      status = gl_fail(err, GL_EIO, "cannot write to standard output");
    if (status == GL_OK && !ends) nanosleep(&(struct timespec){.tv_sec = (time_t)o->every_s}, NULL);
  }
  return status;
}

static gl_status show_status(const command *self, int argc, char **argv, gl_error *err) {
  int all = 0;
  status_options o = {.shown = 5, .every_s = 2};
  const args_option options[] = {
      {"missing", 0, ARGS_FLAG, NULL, "list all missing cells instead of the first few", &all},
      {"watch", 'w', ARGS_FLAG, NULL, "again and again, until all is there or its writer has gone",
       &o.watch},
      {"every", 0, ARGS_COUNT, "SECONDS", "with --watch: how often (default: 2)", &o.every_s},
      {"exit-code", 0, ARGS_FLAG, NULL, "end with 1 where anything is missing", &o.exit_code},
      {"json", 0, ARGS_FLAG, NULL, "as JSON; with --watch a line each time", &o.json}};
  args a;
  gl_status status =
      args_parse(&a, self, options, sizeof options / sizeof *options, argc, argv, err);
  if (all) o.shown = SIZE_MAX;
  if (status == GL_OK && !a.help && o.watch && a.n_words > 1)
    status = gl_fail(err, GL_EINPUT, "--watch takes one file");
  for (size_t i = 0; !a.help && i < a.n_words && status == GL_OK; ++i)
    status = status_show(a.words[i], &o, err);
  args_fini(&a);
  return status;
}

const command command_status = {
    .name = "study status",
    .arguments = "STUDY.db…",
    .words = {ARGS_RUNS, 1, SIZE_MAX, false},
    .summary = "how far a study is, also while it is being swept",
    .about = "For each study of the file: how many of the planned cells are there, how their runs "
             "ended,\n"
             "which are missing, how many tuning runs are known, whether a sweep is writing the "
             "file, and\n"
             "when it will end if it goes on as lately. Reads only, for moments, so that a sweep "
             "goes on.\n"
             "The exit code is 0 whatever the study holds; with --exit-code it is 1, with a "
             "message, where\n"
             "a cell, a tuning run or a shard is missing.",
    .examples = "  gepolab study status study.db\n"
                "  gepolab study status study.db --watch\n"
                "  gepolab study status study.db --exit-code && gepolab plot study.db -o figures/",
    .run = show_status};
