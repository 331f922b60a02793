/* gepolab results: stores the numbers that documents cite, writes them into the documents, and
 * checks them. */
#include "analysis/import/metric_names.h"
#include "analysis/stored_results.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/records.h"
#include "core/store/store.h"
#include "experiments/base/args.h"
#include "experiments/base/provenance.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct results_options {
  const char *output, *study, *recipe, *command_line, *keep;
  marker_source from;
  args_list missing;
} results_options;

/* --- keep --- */

/* The provenance of a study, copied from the store. */
typedef struct origin {
  char commit[64], processor[PROVENANCE_TEXT_SIZE], date[16], *command;
  int dirty;
  size_t n;
} origin;

/* Takes the first provenance record of a study. If a later record has another commit, the origin is
 * marked as dirty. */
static int take_origin(void *self, const store_origin *from) {
  origin *o = self;
  if (o->n++ == 0) {
    snprintf(o->commit, sizeof o->commit, "%s", from->how.source);
    snprintf(o->processor, sizeof o->processor, "%s", from->how.processor);
    snprintf(o->date, sizeof o->date, "%.10s", from->last ? from->last : "");
    o->command = strdup(from->how.command ? from->how.command : "");
    o->dirty = from->how.dirty;
  } else if (strcmp(o->commit, from->how.source) != 0) {
    o->dirty = 1;
  }
  return 1;
}

static gl_status origin_of_study(origin *o, const char *path, gl_error *err) {
  store *s = NULL;
  gl_status status = store_open(&s, path, STORE_READ, err);
  if (status == GL_OK) status = store_origins(s, take_origin, o, err);
  store_close(s);
  if (status == GL_OK && (o->n == 0 || !o->command))
    status = gl_fail(err, GL_EINPUT, "%s does not say how its runs came about", path);
  return status;
}

static gl_status origin_of_program(origin *o, gl_error *err) {
  provenance p;
  char date[PROVENANCE_DATE_SIZE];
  gl_status status = provenance_init(&p, err);
  if (status == GL_OK) {
    snprintf(o->commit, sizeof o->commit, "%s", p.record.source);
    snprintf(o->processor, sizeof o->processor, "%s", p.record.processor);
    snprintf(o->date, sizeof o->date, "%.10s", provenance_now(date));
    o->dirty = p.record.dirty;
  }
  provenance_fini(&p);
  return status;
}

static int keeps(void *self, const char *key) {
  int found = 0;
  return pattern_matches(self, key, &found, NULL) == GL_OK && found;
}

/* Copies a command line with every path shortened to its last component. */
static char *without_paths(const char *line) {
  char *out = strdup(line), *to = out;
  if (!out) return NULL;
  for (const char *word = line; *word;) {
    const size_t n = strcspn(word, " ");
    const char *from = word;
    for (const char *c = word; c < word + n; c++)
      if (*c == '/') from = c + 1;
    memcpy(to, from, (size_t)(word + n - from));
    to += word + n - from;
    word += n;
    if (*word) *to++ = *word++;
  }
  *to = '\0';
  return out;
}

static gl_status write_kept(const results_options *q, const origin *o, const cJSON *document,
                            gl_error *err) {
  file_writer w;
  pattern *p = NULL;
  char *line = without_paths(q->command_line ? q->command_line : o->command);
  if (!line) return gl_fail_memory(err, "a command line");
  gl_status status = q->keep ? pattern_new(&p, q->keep, "--keep", err) : GL_OK;
  if (status == GL_OK) status = file_begin(&w, q->output, err);
  if (status == GL_OK) {
    const stored_head head = {q->recipe, o->commit, o->processor, line, o->date};
    status = stored_write(w.stream, &head, document, p ? keeps : NULL, p, err);
    status = file_end(&w, status, err);
  }
  pattern_free(p);
  free(line);
  return status;
}

static gl_status keep(const results_options *q, const char *path, gl_error *err) {
  char *text = NULL;
  size_t size = 0;
  cJSON *document = NULL;
  origin o = {.dirty = -1};
  if (!q->output || !q->recipe || (!q->study && !q->command_line))
    return gl_fail(err, GL_EINPUT,
                   "results keep needs --output, --recipe, and --study or --command: what the "
                   "numbers are of");
  gl_status status = csv_load(&text, &size, strcmp(path, "-") == 0 ? "/dev/stdin" : path, err);
  if (status == GL_OK) status = json_tree_read(&document, text, size, 0, path, err);
  if (status == GL_OK)
    status = q->study ? origin_of_study(&o, q->study, err) : origin_of_program(&o, err);
  if (status == GL_OK && o.dirty != 0)
    status = gl_fail(err, GL_EINPUT,
                     "%s was not built from one commit alone, so that nobody could make these "
                     "numbers again; build it from a clean clone",
                     q->study ? q->study : "this program");
  if (status == GL_OK) status = write_kept(q, &o, document, err);
  cJSON_Delete(document);
  free(text), free(o.command);
  return status;
}

/* --- fill, check and define --- */

static gl_status load_text(char **out, const char *path, gl_error *err) {
  size_t size = 0;
  char *text = NULL;
  gl_status status = csv_load(&text, &size, path, err);
  if (status != GL_OK) return status;
  *out = strndup(text, size);
  free(text);
  return *out ? GL_OK : gl_fail_memory(err, "a document");
}

/* Returns the line number of the first difference. */
static size_t first_difference(const char *a, const char *b) {
  size_t line = 1;
  for (; *a && *a == *b; a++, b++) line += *a == '\n';
  return line;
}

/* Writes the document of a path, or compares it, with its template PATH.in and the stored results.
 */
static gl_status fill(const results_options *q, const char *path, bool writes, gl_error *err) {
  char template[4096], *source = NULL, *text = NULL, *filled = NULL;
  size_t n = 0;
  if (snprintf(template, sizeof template, "%s.in", path) >= (int)sizeof template)
    return gl_fail(err, GL_EINPUT, "the path %.60s… is too long", path);
  if (access(template, F_OK) != 0)
    return gl_fail(err, GL_EIO,
                   "%s: there is no template %s; write it: the text of %s, in which numbers are "
                   "references to stored results (`gepolab results --help`)",
                   path, template, path);
  gl_status status = load_text(&source, template, err);
  if (status == GL_OK) status = markers_fill(&filled, source, template, &q->from, &n, err);
  if (status == GL_OK && writes) {
    status = file_write_text(path, filled, err);
  } else if (status == GL_OK) {
    status = load_text(&text, path, err);
    if (status == GL_OK && strcmp(text, filled) != 0)
      status = gl_fail(err, GL_EIO,
                       "%s:%zu: differs from %s filled with the stored results in %s; edit the "
                       "template, then: make results",
                       path, first_difference(text, filled), template, q->from.folder);
  }
  if (status == GL_OK) printf("%s: %zu numbers %s\n", path, n, writes ? "written" : "as stored");
  free(source), free(text), free(filled);
  return status;
}

/* Writes the stored numbers that a document cites as definitions for LaTeX. */
static gl_status define(const results_options *q, const char *path, gl_error *err) {
  char *text = NULL;
  file_writer w;
  if (!q->output) return gl_fail(err, GL_EINPUT, "results define needs --output FILE.tex");
  gl_status status = load_text(&text, path, err);
  if (status == GL_OK) status = file_begin(&w, q->output, err);
  if (status == GL_OK) {
    status = markers_define(w.stream, text, path, &q->from, err);
    status = file_end(&w, status, err);
  }
  free(text);
  return status;
}

static gl_status run_results(args *a, gl_error *err) {
  static const char *const verbs[] = {"keep", "fill", "check", "define"};
  results_options q = {.from = {.folder = "paper/results"}};
  const args_option options[] = {
      {"output", 'o', ARGS_WRITE, "FILE", "keep: NAME.tsv; define: a file of definitions",
       &q.output},
      {"results", 'd', ARGS_TEXT, "RESULTS", "folder of stored results (default: paper/results)",
       &q.from.folder},
      {"without", 0, ARGS_EACH, "NAME", "results that need not be there", &q.missing},
      {"recipe", 0, ARGS_TEXT, "RECIPE", "keep: the recipe behind the numbers", &q.recipe},
      {"study", 0, ARGS_READ, "STUDY", "keep: commit, processor, command, date from here",
       &q.study},
      {"command", 0, ARGS_TEXT, "WORDS", "keep: the command that gave the numbers",
       &q.command_line},
      {"keep", 0, ARGS_TEXT, "REGEX", "keep: only keys that match", &q.keep}};
  size_t verb = 0;
  gl_status status = args_parse(a, ARGS_OPTIONS(options), err);
  if (status != GL_OK || a->help) return status;
  status = args_choose(&verb, "the word after results", a->words[0], verbs, 4, err);
  q.from.missing = q.missing.item, q.from.n_missing = q.missing.n;
  for (size_t i = 1; status == GL_OK && i < a->n_words; i++) {
    if (verb == 0) status = keep(&q, a->words[i], err);
    if (verb == 1 || verb == 2) status = fill(&q, a->words[i], verb == 1, err);
    if (verb == 3) status = define(&q, a->words[i], err);
  }
  return status;
}

const command command_results = {
    .name = "results",
    .arguments = "keep|fill|check|define FILE …",
    .words = {.input = ARGS_ANY, .min = 2, .max = 64},
    .summary = "stored results, and the numbers of documents from them",
    .about =
        "keep: the numbers of a JSON document (- for standard input) as NAME.tsv, with recipe, "
        "commit,\n"
        "processor, command and date in its head; refused where the program was not built from a\n"
        "clean commit. fill: writes FILE from its template FILE.in, in which a number is\n"
        "{{NAME KEY FORMAT}}; check: reports where FILE differs. define: writes the definitions\n"
        "for a LaTeX file that uses \\result{NAME}{KEY}{FORMAT}. Formats: .3f, .4g, .0p (per "
        "cent),\n"
        "24n (a fraction of 24 as a count), s.",
    .examples = "  gepolab analyze study.db --json | gepolab results keep - --study study.db \\\n"
                "      --recipe delay_sweep -o paper/results/delay_sweep.tsv\n"
                "  gepolab results fill README.md paper/findings.md\n"
                "  gepolab results define paper/gepolab.tex -o build/paper/numbers.tex",
    .run = run_results};
