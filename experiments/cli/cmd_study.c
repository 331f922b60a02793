/* gepolab study status, check, merge and export. */
#include "analysis/export.h"
#include "core/base/display_text.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/store/store.h"
#include "experiments/base/args.h"
#include "experiments/base/memory.h"
#include "experiments/base/print_json.h"
#include "experiments/base/program.h"
#include "experiments/cli/common.h"
#include "experiments/sweep/forecast.h"
#include "experiments/sweep/worker_processes.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct status_options {
  size_t shown; /* maximum number of missing cells to list of each study */
  int json, watch, exit_code;
  size_t every_s;
} status_options;

/* --- reading --- */

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
  choice *choices; /* [n_choices] values that `tune` chose, for runs in the file; owned */
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

/* Adds a missing cell; returns 0 if enough cells were added. */
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

static void add_name(void *self, const char *path) {
  fprintf(self, " %s", path);
}

/* Fails if there is no such file, but shards of it. */
static gl_status refuse_shards_alone(const char *path, gl_error *err) {
  char *names = NULL;
  size_t size = 0;
  if (access(path, F_OK) == 0) return GL_OK;
  FILE *to = must_have(open_memstream(&names, &size), "the names of shards");
  const size_t n = ranks_shard_files(path, add_name, to);
  must_succeed(fclose(to) == 0, "the names of shards");
  if (n > 0)
    gl_fail(err, GL_EIO,
            "there is no %s yet, but there are shards of it; join them with `gepolab "
            "study merge %s%s`, or give their names",
            path, path, names);
  free(names);
  return n > 0 ? GL_EIO : GL_OK;
}

/* Reads all studies of the file in one transaction and closes the file before anything is printed,
 * so that a paused terminal does not block a sweep. */
static gl_status status_read_file(file_status *out, const char *path, size_t most, gl_error *err) {
  store *s = NULL;
  char **names = NULL;
  size_t n = 0;
  /* asked first: what is read after the writer has gone is all that it wrote */
  *out = (file_status){.path = path, .being_written = store_is_being_written(path)};
  gl_status status = refuse_shards_alone(path, err);
  if (status == GL_OK) status = store_open(&s, path, STORE_READ, err);
  if (status == GL_OK) status = store_begin_reading(s, err);
  if (status == GL_OK) status = store_studies(s, &names, &n, err);
  out->studies = MUST_ARRAY(study_status, n, "the studies of a file");
  for (; out->n < n && status == GL_OK; ++out->n)
    status = read_study(&out->studies[out->n], s, names[out->n], most, err);
  for (size_t i = 0; i < out->n && out->being_written; ++i) {
    sweep_outlook *o = &out->studies[i].outlook;
    o->left_s = sweep_outlook_left_s(o, (double)time(NULL));
  }
  if (s != NULL) store_end_reading(s);
  store_close(s);
  free(names);
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

/* --- printing --- */

static void put_outlook(table *t, const study_status *s, int being_written) {
  char left[SECONDS_TEXT_SIZE];
  if (!being_written || is_complete(s)) return;
  if (isnan(s->outlook.per_s))
    table_line(t, "  time        not known yet: no run has finished");
  else if (s->outlook.at_most)
    table_line(t, "  time        at most about %s left, as the last run took",
               seconds_text(s->outlook.left_s, left));
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
    const bool varies = strcmp(cell->swept, "{}") != 0; /* else nothing but algorithm and seed */
    table_line(o, "  %-11s %s, seed %llu%s%s", i == 0 ? "missing" : "", cell->algorithm,
               (unsigned long long)cell->seed, varies ? ", " : "", varies ? cell->swept : "");
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

/* Prints one line per study, for use in logs. */
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

/* With --watch prints each JSON document on one line, so that readers can separate them. */
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
      fputs("\033[H\033[J", stdout); /* moves to the top left corner and clears the screen */
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

/* Prints the status once; with --watch until the study is complete or no process writes the file.
 */
static gl_status status_show(const char *path, const status_options *o, gl_error *err) {
  gl_status status = GL_OK;
  int ends = 0;
  while (status == GL_OK && !ends) {
    file_status f;
    status = status_read_file(&f, path, o->shown, err);
    if (status == GL_OK) status = status_print_file(&f, o, err);
    ends = !o->watch || all_complete(&f) || !f.being_written;
    if (status == GL_OK && ends && o->exit_code) status = fail_if_incomplete(&f, err);
    file_status_fini(&f);
    if (status == GL_OK && fflush(stdout) != 0)
      status = gl_fail(err, GL_EIO, "cannot write to standard output");
    if (status == GL_OK && !ends) nanosleep(&(struct timespec){.tv_sec = (time_t)o->every_s}, NULL);
  }
  return status;
}

static gl_status show_status(args *a, gl_error *err) {
  int all = 0;
  status_options o = {.shown = 5};
  const args_option options[] = {
      {"missing", 0, ARGS_FLAG, NULL, "list all missing cells instead of the first few", &all},
      {"watch", 'w', ARGS_FLAG, NULL, "again and again, until all is there or its writer has gone",
       &o.watch},
      {"every", 0, ARGS_COUNT, "SECONDS", "with --watch: how often (default: 2)", &o.every_s},
      {"exit-code", 0, ARGS_FLAG, NULL, "end with 1 where anything is missing", &o.exit_code},
      {"json", 0, ARGS_FLAG, NULL, "as JSON; with --watch a line each time", &o.json}};
  gl_status status = args_parse(a, ARGS_OPTIONS(options), err);
  if (status != GL_OK || a->help) return status;
  if (all) o.shown = SIZE_MAX;
  if (o.every_s == 0)
    o.every_s = 2;
  else if (!o.watch)
    status = gl_fail(err, GL_EINPUT, "--every needs --watch");
  if (o.watch && a->n_words > 1) status = gl_fail(err, GL_EINPUT, "--watch takes one file");
  for (size_t i = 0; i < a->n_words && status == GL_OK; ++i)
    status = status_show(a->words[i], &o, err);
  return status;
}

const command command_status = {
    .name = "study status",
    .arguments = "STUDY.db…",
    .words = {.input = ARGS_RUNS, .min = 1, .max = SIZE_MAX},
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

/* --- study check --- */

/* gepolab study check: searches a study file for damage, and repairs it or reports how to recreate
 * the data. */

/* --- damage --- */

typedef struct damage {
  char *key, *text; /* key: the damaged run; NULL: the damage is not in a run */
} damage;

typedef struct damages {
  damage *list; /* [n] */
  size_t n;
} damages;

static void damages_fini(damages *d) {
  for (size_t i = 0; i < d->n; ++i) {
    free(d->list[i].key);
    free(d->list[i].text);
  }
  free(d->list);
  *d = (damages){0};
}

/* Copies a text in printable form (core/base/display_text.h), because a damaged file may contain
 * bytes that are not text. */
static char *shown_copy(const char *text) {
  char *copy = NULL;
  size_t size = 0;
  FILE *to = must_have(open_memstream(&copy, &size), "the list of damage");
  shown_write(text, strlen(text), to);
  must_succeed(fclose(to) == 0, "the list of damage");
  return copy;
}

static void note_damage(void *self, const char *key, const char *text) {
  damages *d = self;
  *MUST_ADD(d->list, d->n, "the list of damage") =
      (damage){.key = key != NULL ? shown_copy(key) : NULL, .text = shown_copy(text)};
}

/* --- looking --- */

typedef struct check_outcome {
  const char *path;
  int64_t runs;
  damages found, left; /* left: after a repair */
  int repaired;
  store_removed removed;
} check_outcome;

static void outcome_fini(check_outcome *o) {
  damages_fini(&o->found);
  damages_fini(&o->left);
}

static gl_status find_damage(store *s, damages *d, int64_t *runs, gl_error *err) {
  sqlite3_stmt *q = NULL;
  gl_status status = store_begin_reading(s, err);
  if (status == GL_OK) status = store_check(s, note_damage, d, err);
  *runs = -1; /* remains if the runs cannot be counted */
  if (status == GL_OK &&
      sqlite3_prepare_v2(store_handle(s), "SELECT count(*) FROM runs", -1, &q, NULL) == SQLITE_OK &&
      sqlite3_step(q) == SQLITE_ROW)
    *runs = sqlite3_column_int64(q, 0);
  sqlite3_finalize(q);
  store_end_reading(s);
  return status;
}

/* Searches for damage and repairs it with --repair. An undamaged file is never opened for writing.
 */
static gl_status examine(check_outcome *o, const char *path, int repair, gl_error *err) {
  store *s = NULL;
  *o = (check_outcome){.path = path};
  gl_status status = store_open(&s, path, STORE_READ, err);
  if (status == GL_OK) status = find_damage(s, &o->found, &o->runs, err);
  store_close(s);
  s = NULL;
  if (status != GL_OK || !repair || o->found.n == 0) return status;
  status = store_open(&s, path, STORE_WRITE, err);
  if (status == GL_OK) status = store_repair(s, &o->removed, err);
  o->repaired = status == GL_OK;
  if (status == GL_OK) status = find_damage(s, &o->left, &o->runs, err);
  store_close(s);
  return status;
}

/* --- printing --- */

/* For each table, how records that a repair removed can be recreated. */
static const struct {
  const char *name, *says;
  size_t offset;
} remedies[] = {
    {"runs", "the same sweep makes them again", offsetof(store_removed, runs)},
    {"orphans", "they belonged to no run", offsetof(store_removed, orphans)},
    {"tuned", "the same sweep writes the chosen learning rates again",
     offsetof(store_removed, tuned)},
    {"tuning_scores", "the same sweep makes these tuning runs again",
     offsetof(store_removed, tuning_scores)},
    {"bias",
     "all measurements of the laboratory are gone; the same `gepolab lab bias` makes them again",
     offsetof(store_removed, bias)},
    {"sweeps", "the same sweep writes its plan again; until then cells may be missing unnoticed",
     offsetof(store_removed, sweeps)},
    {"plan", "the same sweep writes its plan again; until then cells may be missing unnoticed",
     offsetof(store_removed, plan)},
    {"superseded", "of several runs of a cell the one that was stored last is valid now",
     offsetof(store_removed, superseded)},
    {"provenance", "how some runs came about is not known any more",
     offsetof(store_removed, provenance)},
};
enum { N_REMEDIES = sizeof remedies / sizeof *remedies };

static size_t removed_of(const store_removed *r, size_t i) {
  size_t n;
  memcpy(&n, (const char *)r + remedies[i].offset, sizeof n);
  return n;
}

static void put_damages(table *d, const char *name, const char *before, const damages *list) {
  table *t = table_list(table_field(d, name));
  for (size_t i = 0; i < list->n; ++i) {
    table_put(table_object(table_field(t, "")), "run %s, text %s", list->list[i].key,
              list->list[i].text);
    table_line(t, "%s%s", before, list->list[i].text);
  }
}

static table *outcome_table(const check_outcome *o) {
  table *d = table_document();
  table_put(d, "file %s, format %d, has_checksums %i, runs %g", o->path, (int)STORE_FORMAT, 1,
            (double)o->runs);
  put_damages(d, "damage", "", &o->found);
  table *removed = o->repaired ? table_object(table_field(d, "removed")) : NULL;
  for (size_t i = 0; i < N_REMEDIES && o->repaired; ++i) {
    const size_t n = removed_of(&o->removed, i);
    table_count(table_field(removed, remedies[i].name), n);
    if (n > 0) table_line(removed, "removed %zu of %s: %s", n, remedies[i].name, remedies[i].says);
  }
  if (o->repaired) put_damages(d, "left", "left: ", &o->left);
  if (o->repaired ? o->left.n == 0 : o->found.n == 0)
    table_line(d, "%s: %lld run%s, all as they were written", o->path, (long long)o->runs,
               o->runs == 1 ? "" : "s");
  return d;
}

/* --- the command --- */

static gl_status fail_if_damaged(const check_outcome *o, gl_error *err) {
  if (o->repaired && o->left.n > 0)
    return gl_fail(err, GL_EIO, "%s: %zu damage%s left; restore a copy", o->path, o->left.n,
                   o->left.n == 1 ? " is" : "s are");
  if (o->repaired || o->found.n == 0) return GL_OK;
  return gl_fail(
      err, GL_EIO,
      "%s: %zu damage%s; restore a copy, or let `gepolab study check %s --repair` remove what "
      "is damaged, so that the same sweep makes it again, or --salvage NEW.db copy what is whole",
      o->path, o->found.n, plural_ending(o->found.n), o->path);
}

static gl_status check_study(const char *path, int repair, int json, gl_error *err) {
  check_outcome o;
  gl_error why = {0};
  gl_status status = examine(&o, path, repair, &why);
  /* Damage is reported even if the repair failed. */
  if (status == GL_OK || o.found.n > 0) {
    const gl_status printed = report_table(outcome_table(&o), TABLE_AS_TEXT, json, err);
    if (printed != GL_OK) status = printed;
  }
  if (status == GL_OK)
    status = fail_if_damaged(&o, err);
  else if (why.text[0] != '\0')
    gl_fail(err, status, "%s", why.text);
  outcome_fini(&o);
  return status;
}

/* Copies the undamaged runs of a study to a new file. */
static gl_status salvage(const char *from, const char *to, int json, gl_error *err) {
  store_salvaged n;
  gl_status status = store_salvage(from, to, &n, err);
  if (status != GL_OK) return status;
  table *d = table_document();
  table_put(d, "file %s, runs %zu, lost_runs %zu, lost_records %zu", to, n.runs, n.lost_runs,
            n.lost);
  table_line(d, "%s: %zu run%s, all as they were written in %s", to, n.runs, plural_ending(n.runs),
             from);
  if (n.lost_runs + n.lost == 0) {
    table_line(d, "Nothing in %s was damaged, and nothing was left behind.", from);
  } else {
    table_line(d,
               "%zu damaged run%s and %zu other record%s were left behind, and there may be more "
               "that could not be seen.",
               n.lost_runs, plural_ending(n.lost_runs), n.lost, plural_ending(n.lost));
    table_line(d, "The same sweep into %s makes what is missing again.", to);
  }
  return report_table(d, TABLE_AS_TEXT, json, err);
}

static gl_status run_check(args *a, gl_error *err) {
  const char *to = NULL;
  int repair = 0, json = 0;
  const args_option options[] = {
      {"repair", 0, ARGS_FLAG, NULL, "remove what is damaged", &repair},
      {"salvage", 0, ARGS_TEXT, "NEW.db", "copy what is whole into a new study", &to},
      {"json", 0, ARGS_FLAG, NULL, "as JSON", &json}};
  gl_status status = args_parse(a, ARGS_OPTIONS(options), err);
  if (status != GL_OK || a->help) return status;
  if (repair && to != NULL)
    return gl_fail(err, GL_EINPUT,
                   "--repair changes the file and --salvage leaves it alone; "
                   "give one of them");
  return to != NULL ? salvage(a->words[0], to, json, err)
                    : check_study(a->words[0], repair, json, err);
}

const command command_check = {
    .name = "study check",
    .arguments = "STUDY.db",
    .words = {.input = ARGS_RUNS, .min = 1, .max = 1},
    .summary = "whether a study is as it was written; --repair, --salvage",
    .about =
        "Compares every record with its checksum and every key with the recipe that it is the\n"
        "hash of, and checks the structure of the file. Each damage is listed, and the exit\n"
        "code is 1 if there is any.\n"
        "--repair removes damaged runs and records, and says how each kind is made again,\n"
        "mostly by the same sweep. If the structure of the file is damaged or its end is cut off,\n"
        "--salvage copies every readable run with a correct checksum into a new study.",
    .examples = "  gepolab study check study.db && cp study.db archive/\n"
                "  gepolab study check study.db --repair\n"
                "  gepolab study check study.db --salvage saved.db",
    .run = run_check};

/* --- study export --- */

enum { MOST_TABLES = 32 };

/* --- what there is --- */

static const char *type_name(table_type type) {
  switch (type) {
  case TABLE_TEXT:
    return "text";
  case TABLE_INTEGER:
    return "whole number";
  case TABLE_REAL:
    return "number";
  case TABLE_FLAG:
    return "true or false";
  case TABLE_INTERVAL:
  case TABLE_NUMBERS:
  case TABLE_JSON:
  case TABLE_TABLE:
    break;
  }
  return "";
}

/* Prints text for a Markdown table, with '|' escaped. */
static void put_markdown(const char *text) {
  for (; *text != '\0'; ++text) printf(*text == '|' ? "\\|" : "%c", *text);
}

static void list_column(const table_column *c, int markdown) {
  if (!markdown) {
    printf("  %-22s %-14s %-9s %s\n", c->name, type_name(c->type), c->unit, c->about);
    return;
  }
  printf("| `%s` | %s | %s | ", c->name, type_name(c->type), c->unit);
  put_markdown(c->about);
  fputs(" |\n", stdout);
}

static const char apart[] = "a column for each field in which runs differ, named by its path";

/* Lists the columns of a table. In Markdown the columns that all tables of runs begin with are
 * listed for `runs` only. */
static gl_status list_table(const export_table *t, int markdown, gl_error *err) {
  size_t n = 0;
  const size_t own = export_columns(t);
  table_column *columns = export_header(t, NULL, &n);
  if (columns == NULL) return gl_fail_memory(err, "the columns of a table");
  const int shortly = markdown && t->lead == EXPORT_OF_RUNS && strcmp(t->name, "runs") != 0;
  if (markdown)
    fputs("| column | type | unit | meaning |\n|---|---|---|---|\n", stdout);
  else
    printf("%s: %s\n", t->name, t->about);
  if (shortly)
    puts("| `study` … | | | the columns of `runs` up to the fields in which runs differ |");
  for (size_t i = shortly ? n - own : 0; i < n; ++i) {
    if (i == n - own && t->lead != EXPORT_ALONE && !shortly)
      printf(markdown ? "| … | | | %s |\n" : "  …                      %25s%s\n",
             markdown ? apart : "", apart);
    list_column(&columns[i], markdown);
  }
  free(columns);
  return GL_OK;
}

static gl_status list_tables(const export_table *only, int markdown, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = 0; study_export_at(i) != NULL && status == GL_OK; ++i) {
    if (only != NULL && only != study_export_at(i)) continue;
    status = list_table(study_export_at(i), markdown, err);
    if (!markdown && only == NULL && study_export_at(i + 1) != NULL) putchar('\n');
  }
  return status;
}

/* --- writing --- */

static gl_status export_to(store *s, const export_table *of, records_format format,
                           const char *path, gl_error *err) {
  if (path == NULL) return study_export(s, of, format, stdout, err);
  file_writer w;
  gl_status status = file_begin(&w, path, err);
  if (status != GL_OK) return status;
  gl_error why = {.status = GL_OK};
  status = study_export(s, of, format, w.stream, &why);
  if (status != GL_OK && !ferror(w.stream)) {
    file_abandon(&w);
    if (err != NULL) *err = why;
    return status;
  }
  return file_commit(&w, err); /* reports a failed write with the file's name */
}

/* The options of the command line. */
typedef struct request {
  const char *table, *format, *path, *file;
  int all, list;
} request;

static gl_status export_file(const request *q, const export_table *of, records_format format,
                             gl_error *err) {
  store *s = NULL;
  gl_status status = store_open(&s, q->file, STORE_READ, err);
  if (status == GL_OK) status = print_unfinished(s, q->file, err);
  if (status == GL_OK)
    status =
        q->all ? study_export_all(s, format, q->path, err) : export_to(s, of, format, q->path, err);
  store_close(s);
  return status;
}

static gl_status check(const request *q, gl_error *err) {
  if (q->list && (q->all || q->path != NULL))
    return gl_fail(err, GL_EINPUT, "--list prints what tables there are; drop --all and -o");
  if (!q->list && q->file == NULL)
    return gl_fail(err, GL_EINPUT, "export needs a study: gepolab study export STUDY.db");
  if (q->all && q->path == NULL)
    return gl_fail(err, GL_EINPUT, "--all needs -o FOLDER, where the tables go");
  if (q->all && q->table != NULL)
    return gl_fail(err, GL_EINPUT, "--all writes every table; drop --table");
  return GL_OK;
}

static gl_status choose_table(const export_table **out, const char *name, gl_error *err) {
  const char *names[MOST_TABLES];
  size_t n = 0, which = 0;
  for (; n < MOST_TABLES && study_export_at(n) != NULL; ++n) names[n] = study_export_at(n)->name;
  gl_status status = args_choose(&which, "--table", name, names, n, err);
  *out = study_export_at(which);
  return status;
}

/* Determines the format from the file's extension; csv if there is none. */
static gl_status format_of_name(size_t *format, const char *path, const char *const *formats,
                                gl_error *err) {
  const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
  *format = RECORDS_CSV;
  if (dot == NULL || dot == path || (slash != NULL && dot < slash + 2)) return GL_OK;
  for (*format = 0; *format < RECORDS_FORMAT_COUNT; ++*format)
    if (strcmp(formats[*format], dot + 1) == 0) return GL_OK;
  return gl_fail(err, GL_EINPUT,
                 "no table is written as '%s'; name the file .csv, .tsv or .jsonl, or say "
                 "--format csv",
                 dot);
}

static gl_status choose_tables(const request *q, gl_error *err) {
  static const char *const formats[] = {"csv", "tsv", "jsonl", "markdown"};
  const export_table *chosen = NULL;
  size_t format = 0;
  gl_status status = check(q, err);
  if (status == GL_OK && (q->table != NULL || !q->list))
    status = choose_table(&chosen, q->table != NULL ? q->table : "runs", err);
  if (status == GL_OK && q->format != NULL)
    status = args_choose(&format, "--format", q->format, formats, q->list ? 4 : 3, err);
  else if (status == GL_OK && q->path != NULL && !q->all)
    status = format_of_name(&format, q->path, formats, err);
  if (status != GL_OK) return status;
  return q->list ? list_tables(chosen, format == RECORDS_FORMAT_COUNT, err)
                 : export_file(q, chosen, (records_format)format, err);
}

static gl_status run_export(args *a, gl_error *err) {
  request q = {0};
  const args_option options[] = {
      {"table", 't', ARGS_TEXT, "TABLE", "the table (default: runs); --list names all", &q.table},
      {"format", ARGS_OLD('f'), ARGS_TEXT, "csv|tsv|jsonl", "default: what -o FILE ends in, or csv",
       &q.format},
      {"output", 'o', ARGS_WRITE, "FILE",
       "write there instead of standard output; an old file stays until the new one is whole",
       &q.path},
      {"all", 0, ARGS_FLAG, NULL, "every table into the folder -o, with datapackage.json", &q.all},
      {"list", 0, ARGS_FLAG, NULL, "what tables there are, and what their columns hold", &q.list}};
  gl_status status = args_parse(a, ARGS_OPTIONS(options), err);
  if (status != GL_OK || a->help) return status;
  q.file = a->n_words > 0 ? a->words[0] : NULL;
  return choose_tables(&q, err);
}

const command command_export = {
    .name = "study export",
    .arguments = "STUDY.db",
    .words = {.input = ARGS_RUNS, .max = 1},
    .summary = "tables of a study as CSV, TSV or JSON lines, for pandas, R and DuckDB",
    .about =
        "One value in every column; `key` joins the tables. Fields in which runs differ have\n"
        "columns named by the fields of the recipe (cluster.max_delay), the learning rate in\n"
        "optimizer.lr. `summary` has a record for each run, `cells` the means and intervals that\n"
        "`analyze` shows. Records are in the order of the study's grid and hold no wall-clock\n"
        "times, so that two executions of one study export the same bytes; only the tables\n"
        "execution, provenance and libraries, which --all leaves out, say when and where runs\n"
        "were made. --all also writes datapackage.json: every column's type, unit and meaning.\n"
        "experiments/DATA.md has them all, with lines of pandas, DuckDB and R.",
    .examples = "  gepolab study export study.db --table steps --format csv > steps.csv\n"
                "  gepolab study export study.db --table summary --format jsonl\n"
                "  gepolab study export study.db --all -o data/\n"
                "  gepolab study export --list -t cells",
    .run = run_export};

/* --- gepolab study merge --- */

gl_status merge_files(const char *into, const char *const *files, size_t n, gl_error *err) {
  store *s = NULL;
  for (size_t i = 0; i < n; ++i)
    if (access(files[i], R_OK) != 0)
      return gl_fail(err, GL_EIO, "cannot read '%s': %s", files[i], strerror(errno));
  const bool is_new = access(into, F_OK) != 0;
  gl_status status = store_open(&s, into, STORE_WRITE, err);
  for (size_t i = 0; i < n && status == GL_OK; ++i) status = store_merge(s, files[i], err);
  if (status != GL_OK && s != NULL && is_new) unlink(into);
  store_close(s);
  return status;
}

static gl_status run_merge(args *a, gl_error *err) {
  gl_status status = args_parse(a, NULL, 0, err);
  if (status != GL_OK || a->help) return status;
  status = merge_files(a->words[0], a->words + 1, a->n_words - 1, err);
  if (status == GL_OK) print_unfinished_file(a->words[0]);
  return status;
}

const command command_merge = {
    .name = "study merge",
    .arguments = "INTO.db FILE.db…",
    .words = {.input = ARGS_ANY, .min = 2, .max = SIZE_MAX},
    .summary = "join the study files of several shards",
    .about =
        "Adds the runs of every FILE to INTO, which is created if needed. Runs with equal keys\n"
        "must agree; the FILEs are not changed. Parts of the plan that are still missing, such\n"
        "as a shard that was not given, are listed on standard error.",
    .examples = "  gepolab study merge study.db study.db.shard0 study.db.shard1",
    .run = run_merge};
