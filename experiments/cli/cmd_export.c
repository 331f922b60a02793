/* gepolab study export: the tables of a study as text. */
#include "analysis/export.h"
#include "core/base/file.h"
#include "experiments/base/args.h"
#include "experiments/cli/common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TABLES = 32 };

/* --- what there is --- */

static const char *type_name(table_type type) {
  switch (type) {
  case TABLE_TEXT:
    return "text";
  case TABLE_WHOLE:
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

/* Bars would end a cell of a Markdown table. */
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

/* Markdown says once, of `runs`, what the tables of runs begin with. */
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
  return file_commit(&w, err); /* it reports a write error with the file's name */
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

/* The format that a file's name says; csv for a name without an extension. */
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

static gl_status run_export(const command *self, int argc, char **argv, gl_error *err) {
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
  args a;
  gl_status status =
      args_parse(&a, self, options, sizeof options / sizeof *options, argc, argv, err);
  if (status == GL_OK && !a.help) {
    q.file = a.n_words > 0 ? a.words[0] : NULL;
    status = choose_tables(&q, err);
  }
  args_fini(&a);
  return status;
}

const command command_export = {
    .name = "study export",
    .arguments = "STUDY.db",
    .words = {ARGS_RUNS, 0, 1, false},
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
