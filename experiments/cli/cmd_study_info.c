/* gepolab study info: the contents of a study file, and the provenance and cost of its runs. */
#include "core/base/display_text.h"
#include "core/base/json.h"
#include "core/store/store.h"
#include "experiments/base/args.h"
#include "experiments/base/print_json.h"
#include "experiments/base/program.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The file is read into one JSON document and closed before anything is printed, text included, so
 * that a paused terminal does not block a sweep that writes to the file. */

/* --- gathering --- */

static void info_add_bytes(cJSON *to, const char *name, int64_t bytes) {
  json_number(to, name, bytes >= 0 ? (double)bytes : NAN);
}

/* Adds a seed as an exact number; a number of cJSON, a double, would round 64 bits. */
static void info_add_seed(cJSON *to, const char *name, uint64_t seed) {
  char text[24];
  snprintf(text, sizeof text, "%llu", (unsigned long long)seed);
  json_raw(to, name, text);
}

/* Adds a stored JSON text as JSON, or as a string if it is not valid JSON. */
static void info_add_json(cJSON *to, const char *name, const char *text) {
  cJSON *tree = NULL;
  if (text != NULL && json_tree_read(&tree, text, strlen(text), 0, name, NULL) == GL_OK)
    json_raw(to, name, text);
  else
    json_attach(to, name, text != NULL ? cJSON_CreateString(text) : cJSON_CreateNull());
  cJSON_Delete(tree);
}

static void info_add_provenance(cJSON *o, const run_provenance *p) {
  json_put(o, "version %s, source %s", p->version, p->source);
  json_attach(o, "dirty", p->dirty < 0 ? cJSON_CreateNull() : cJSON_CreateBool(p->dirty));
  json_put(o, "command %s, processor %s, system %s, compiler %s", p->command, p->processor,
           p->system, p->compiler);
  info_add_json(o, "libraries", p->libraries);
}

static int info_add_origin(void *list, const store_origin *origin) {
  cJSON *o = json_object(list, NULL);
  json_put(o, "runs %g, measured %g, known %i", (double)origin->runs, (double)origin->measured,
           (int)origin->known);
  info_add_provenance(o, &origin->how);
  json_put(o, "first %s, last %s", origin->first, origin->last);
  return 1;
}

static int info_add_cost(void *list, const store_cost *c) {
  cJSON *o = json_object(list, NULL);
  json_put(o, "study %s, algorithm %s, runs %g, wall_s %g, wall_s_median %g, wall_s_max %g",
           c->study, c->algorithm, (double)c->runs, c->wall_s, c->median_s, c->largest_s);
  info_add_bytes(o, "peak_bytes", c->peak_bytes);
  json_put(o, "seeds %g", (double)c->seeds);
  info_add_seed(o, "seed_min", c->least_seed);
  info_add_seed(o, "seed_max", c->largest_seed);
  return 1;
}

static gl_status info_add_studies(cJSON *list, store *s, gl_error *err) {
  char **names = NULL;
  size_t n = 0;
  gl_status status = store_studies(s, &names, &n, err);
  for (size_t i = 0; i < n && status == GL_OK; ++i) {
    study_progress p;
    status = store_progress(s, names[i], &p, err);
    if (status != GL_OK) break;
    cJSON *o = json_object(list, NULL);
    json_put(o, "study %s, planned %zu, done %zu, diverged %zu, failed %zu, missing %zu", names[i],
             p.planned, p.done, p.diverged, p.failed, p.missing);
    json_put(o, "superseded %zu, tuning_planned %zu, tuning_known %zu", p.superseded,
             p.tuning_planned, p.tuning_known);
    json_put(o, "shards %zu, shards_missing %zu", p.shards, p.shards_missing);
  }
  free(names);
  return status;
}

static gl_status info_add_all(cJSON *o, store *s, gl_error *err) {
  cJSON *studies = json_list(o, "studies"), *origins = json_list(o, "origins"),
        *costs = json_list(o, "algorithms");
  gl_status status = info_add_studies(studies, s, err);
  if (status == GL_OK) status = store_origins(s, info_add_origin, origins, err);
  if (status == GL_OK) status = store_costs(s, info_add_cost, costs, err);
  return status;
}

static void info_add_file(cJSON *o, const char *path) {
  struct stat about;
  json_put(o, "file %s, bytes %g, format %d", path,
           stat(path, &about) == 0 ? (double)about.st_size : (double)NAN, (int)STORE_FORMAT);
  json_put(o, "being_written %i", (int)store_is_being_written(path));
}

static void info_add_run(void *document, const store_run *r) {
  cJSON *o = document;
  json_put(o, "key %s, place %s, superseded_by %s, study %s, ordinal %g, algorithm %s", r->key,
           r->place, r->superseded_by, r->study, (double)r->ordinal, r->algorithm);
  info_add_seed(o, "seed", r->seed);
  info_add_json(o, "swept", r->swept);
  info_add_json(o, "chosen", r->chosen);
  json_put(o, "meaning %g, lr %g, status %s, reason %s", (double)r->meaning, r->lr, r->status,
           r->reason);
  info_add_json(o, "recipe", r->recipe);
  info_add_json(o, "in_effect", r->in_effect);
  json_put(o, "steps %g, evals %g, eval_first %g, eval_best %g, eval_last %g, wall_s %g",
           (double)r->n_steps, (double)r->n_evals, r->eval_first, r->eval_best, r->eval_last,
           r->wall_s);
  info_add_bytes(o, "peak_bytes", r->peak_bytes);
  json_put(o, "finished %s, code_version %s, machine %s", r->finished, r->code_version, r->machine);
  if (r->how.hash[0] != '\0')
    info_add_provenance(json_object(o, "provenance"), &r->how);
  else
    json_attach(o, "provenance", cJSON_CreateNull());
}

/* Gathers the facts about the run with that key; key NULL: about the whole file. */
static gl_status gather_info(cJSON **out, const char *path, const char *key, gl_error *err) {
  static const char *const read[] = {"runs",          "evals",      "plan",       "sweeps",
                                     "tuning_scores", "provenance", "laboratory", NULL};
  store *s = NULL;
  cJSON *o = *out = json_new();
  gl_status status = store_open(&s, path, STORE_READ, err);
  if (status == GL_OK) status = store_begin_reading(s, err);
  if (status == GL_OK) status = store_verify(s, read, err);
  if (status == GL_OK) info_add_file(o, path);
  if (status == GL_OK)
    status = key != NULL ? store_find_run(s, key, info_add_run, o, err) : info_add_all(o, s, err);
  if (s != NULL) store_end_reading(s);
  store_close(s);
  return status;
}

/* --- reading the document --- */

static const cJSON *item(const cJSON *o, const char *name) {
  return cJSON_GetObjectItemCaseSensitive(o, name);
}

/* The text of a string, or of a number stored as raw text; "" for null. */
static const char *text(const cJSON *o, const char *name) {
  const cJSON *i = item(o, name);
  return i != NULL && i->valuestring != NULL ? i->valuestring : "";
}

static double real_of(const cJSON *o, const char *name) {
  const char *at = text(o, name);
  return at[0] != '\0' ? strtod(at, NULL) : NAN;
}

static size_t count_of(const cJSON *o, const char *name) {
  const double x = real_of(o, name);
  return x > 0 ? (size_t)x : 0;
}

/* --- warnings --- */

/* 1 if the runs of the file differ in this field of their provenance. */
static int is_mixed(const cJSON *origins, const char *name) {
  const cJSON *one, *first = origins->child;
  cJSON_ArrayForEach(one, origins) {
    if (strcmp(text(one, name), text(first, name)) != 0) return 1;
  }
  return 0;
}

static void add_warnings(cJSON *document) {
  const cJSON *origins = item(document, "origins"), *one;
  cJSON *list = json_list(document, "warnings");
  const struct {
    const char *name, *says;
  } mixed[] = {
      {"version", "the file has runs of different versions of gepolab; compare their results "
                  "only where the changelog says that nothing changed"},
      {"source", "the file has runs of different commits; they may compute differently"},
      {"processor", "the file has runs of different processors; results may differ by rounding"},
      {"compiler", "the file has runs of different compilers; results may differ by rounding"},
      {"libraries", "the file has runs with different libraries; results may differ by rounding"}};
  bool dirty = false;
  for (size_t i = 0; i < sizeof mixed / sizeof *mixed; ++i)
    if (is_mixed(origins, mixed[i].name)) json_put(list, "%s", mixed[i].says);
  cJSON_ArrayForEach(one, origins) {
    dirty |= cJSON_IsTrue(item(one, "dirty"));
  }
  if (dirty)
    json_put(list, "%s",
             "runs come from a program whose files differed from its commit; nobody else can build "
             "it");
}

/* --- in words --- */

enum { ORIGINS_LISTED = 8 };

static char *bytes_text(double bytes, char words[32]) {
  static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit < 4; ++unit) bytes /= 1024;
  snprintf(words, 32, isnan(bytes) ? "not known" : "%.*f %s", unit > 0 ? 1 : 0, bytes, units[unit]);
  return words;
}

static void print_file(const cJSON *d) {
  char size[32];
  printf("%s: format %s, %s%s\n", shown(text(d, "file")).text, text(d, "format"),
         bytes_text(real_of(d, "bytes"), size),
         cJSON_IsTrue(item(d, "being_written")) ? ", a sweep is writing it" : "");
}

static void print_study(const cJSON *s) {
  const size_t runs = count_of(s, "done") + count_of(s, "diverged") + count_of(s, "failed");
  printf("%s: ", shown(text(s, "study")).text);
  if (count_of(s, "planned") > 0)
    printf("%zu of %s planned cells, ", count_of(s, "planned") - count_of(s, "missing"),
           text(s, "planned"));
  else
    printf("%zu run%s, ", runs, runs == 1 ? "" : "s");
  printf("%s done, %s diverged, %s failed, %s missing, %s superseded\n", text(s, "done"),
         text(s, "diverged"), text(s, "failed"), text(s, "missing"), text(s, "superseded"));
  if (count_of(s, "tuning_planned") > 0)
    printf("  tuning      %s of %s runs\n", text(s, "tuning_known"), text(s, "tuning_planned"));
  if (count_of(s, "shards") > 0)
    printf("  shards      %s, %s of them missing\n", text(s, "shards"), text(s, "shards_missing"));
}

/* Formats a duration; below a minute with fractions of a second. */
static const char *wall_text(double s, char words[SECONDS_TEXT_SIZE]) {
  if (isnan(s)) return "?";
  if (s >= 60) return seconds_text(s, words);
  snprintf(words, SECONDS_TEXT_SIZE, "%.2fs", s);
  return words;
}

static void print_costs(const cJSON *d) {
  const cJSON *one;
  double total = 0, peak = NAN;
  char words[32], seconds[SECONDS_TEXT_SIZE];
  cJSON_ArrayForEach(one, item(d, "algorithms")) {
    if (one == item(d, "algorithms")->child)
      puts("wall time      total    median   largest  peak memory  runs, algorithm, seeds");
    printf("            %8s", wall_text(real_of(one, "wall_s"), seconds));
    printf("  %8s", wall_text(real_of(one, "wall_s_median"), seconds));
    printf("  %8s", wall_text(real_of(one, "wall_s_max"), seconds));
    printf("  %11s  ", bytes_text(real_of(one, "peak_bytes"), words));
    printf("%s %s, %s seed%s %s", text(one, "runs"), shown(text(one, "algorithm")).text,
           text(one, "seeds"), count_of(one, "seeds") == 1 ? "" : "s", text(one, "seed_min"));
    if (count_of(one, "seeds") > 1) printf(" to %s", text(one, "seed_max"));
    if (cJSON_GetArraySize(item(d, "studies")) > 1) printf(" (%s)", shown(text(one, "study")).text);
    putchar('\n');
    total += isnan(real_of(one, "wall_s")) ? 0 : real_of(one, "wall_s");
    peak = fmax(peak, real_of(one, "peak_bytes"));
  }
  printf("all runs: %s of wall time, peak memory %s\n", wall_text(total, seconds),
         bytes_text(peak, words));
}

static void info_print_wrapped(const char *name, const char *words) {
  const size_t column = (size_t)printf("  %-11s ", name);
  shown_wrap(shown(words).text, column, column, stdout);
  putchar('\n');
}

/* {"GSL":"2.7.1",…} as "GSL 2.7.1, …". */
static void print_libraries(const cJSON *p) {
  cJSON *all = json_tree_of(text(p, "libraries"));
  const cJSON *one;
  char words[SHOWN_SIZE] = "";
  size_t n = 0;
  cJSON_ArrayForEach(one, all) {
    if (n < sizeof words && one->valuestring != NULL)
      n += (size_t)snprintf(words + n, sizeof words - n, "%s%s %s", n > 0 ? ", " : "", one->string,
                            one->valuestring);
  }
  if (n > 0) info_print_wrapped("libraries", words);
  cJSON_Delete(all);
}

static void print_provenance(const cJSON *p) {
  static const char *const lines[] = {"command", "processor", "system", "compiler"};
  const cJSON *dirty = item(p, "dirty");
  const char *source = text(p, "source");
  char made[SHOWN_SIZE];
  snprintf(made, sizeof made, "%s, commit %s%s", text(p, "version"),
           source[0] != '\0' ? source : "not known",
           cJSON_IsTrue(dirty)                        ? ", from files that differ from it"
           : cJSON_IsNull(dirty) && source[0] != '\0' ? ", not known whether files differed from it"
                                                      : "");
  info_print_wrapped("gepolab", made);
  for (size_t i = 0; i < sizeof lines / sizeof *lines; ++i) {
    if (text(p, lines[i])[0] == '\0') continue;
    printf("  %-11s ", lines[i]);
    shown_write(text(p, lines[i]), strlen(text(p, lines[i])), stdout);
    putchar('\n');
  }
  print_libraries(p);
}

static void print_origins(const cJSON *d) {
  const cJSON *one;
  size_t listed = 0;
  cJSON_ArrayForEach(one, item(d, "origins")) {
    if (++listed > ORIGINS_LISTED) continue;
    if (count_of(one, "runs") > 0)
      printf("%s run%s, ", text(one, "runs"), count_of(one, "runs") == 1 ? "" : "s");
    if (count_of(one, "measured") > 0) printf("measurements of the laboratory, ");
    if (text(one, "first")[0] != '\0')
      printf("%s to %s\n", shown(text(one, "first")).text, shown(text(one, "last")).text);
    else
      puts("date not known");
    if (cJSON_IsTrue(item(one, "known")))
      print_provenance(one);
    else
      printf("  %-11s %s; nothing more is known of how they came about\n", "gepolab",
             shown(text(one, "version")).text);
  }
  if (listed > ORIGINS_LISTED)
    printf("and runs of %zu more origins; --json lists all\n", listed - ORIGINS_LISTED);
}

static void info_print_words(const cJSON *d) {
  const cJSON *one;
  print_file(d);
  cJSON_ArrayForEach(one, item(d, "studies")) {
    print_study(one);
  }
  if (item(d, "algorithms")->child != NULL) print_costs(d);
  print_origins(d);
  cJSON_ArrayForEach(one, item(d, "warnings")) {
    const size_t column = (size_t)printf("warning: ");
    shown_wrap(one->valuestring, column, column, stdout);
    putchar('\n');
  }
}

static void info_print_line(const cJSON *d, const char *name) {
  const char *words = text(d, name);
  if (words[0] == '\0') return;
  printf("  %-14s ", name);
  shown_write(words, strlen(words), stdout);
  putchar('\n');
}

/* Prints the fields that the recipe did not state, grouped by the source of their values. */
static void print_in_effect(const char *in_effect) {
  static const char *const origins[][2] = {{"null", "null, so the default"},
                                           {"default", "default"},
                                           {"preset", "from the preset"},
                                           {"computed", "from other fields"}};
  cJSON *tree = json_tree_of(in_effect);
  for (size_t i = 0; i < sizeof origins / sizeof *origins; ++i) {
    const cJSON *all = cJSON_GetObjectItemCaseSensitive(tree, origins[i][0]), *one;
    if (!cJSON_IsObject(all)) continue;
    printf("  %s\n", origins[i][1]);
    cJSON_ArrayForEach(one, all) {
      char *value = cJSON_PrintUnformatted(one);
      printf("    %-40s ", one->string);
      if (value != NULL) shown_write(value, strlen(value), stdout);
      putchar('\n');
      cJSON_free(value);
    }
  }
  cJSON_Delete(tree);
}

static void info_print_run(const cJSON *d) {
  static const char *const first[] = {
      "key",    "place",    "superseded_by", "study",      "ordinal",   "algorithm",
      "seed",   "swept",    "chosen",        "meaning",    "lr",        "status",
      "reason", "steps",    "evals",         "eval_first", "eval_best", "eval_last",
      "wall_s", "finished", "code_version",  "machine",    "recipe"};
  char words[32];
  print_file(d);
  for (size_t i = 0; i < sizeof first / sizeof *first; ++i) info_print_line(d, first[i]);
  print_in_effect(text(d, "in_effect"));
  printf("  %-14s %s\n", "peak memory", bytes_text(real_of(d, "peak_bytes"), words));
  if (cJSON_IsObject(item(d, "provenance")))
    print_provenance(item(d, "provenance"));
  else
    puts("nothing more is known of how it came about");
}

/* --- the command --- */

static gl_status run_info(args *a, gl_error *err) {
  const char *key = NULL;
  int json = 0;
  const args_option options[] = {
      {"run", 'r', ARGS_TEXT, "KEY", "one run whole; the beginning of its key is enough", &key},
      {"json", 0, ARGS_FLAG, NULL, "as JSON", &json}};
  cJSON *d = NULL;
  gl_status status = args_parse(a, ARGS_OPTIONS(options), err);
  if (status != GL_OK || a->help) return status;
  status = gather_info(&d, a->words[0], key, err);
  if (status == GL_OK && key == NULL) add_warnings(d);
  if (status == GL_OK && json) {
    status = report_json(d, err);
    d = NULL;
  } else if (status == GL_OK && key != NULL) {
    info_print_run(d);
  } else if (status == GL_OK) {
    info_print_words(d);
  }
  cJSON_Delete(d);
  return status;
}

const command command_info = {
    .name = "study info",
    .arguments = "STUDY.db",
    .words = {.input = ARGS_RUNS, .min = 1, .max = 1},
    .summary = "what a study file is, and how its runs came about",
    .about =
        "Prints the file's format; its studies; for each algorithm the wall time and peak\n"
        "memory of its runs; and their provenance: version and commit of gepolab, whether it\n"
        "was built from modified files, command line, processor, system, compiler, libraries,\n"
        "first and last date. It warns if runs of different versions, commits, processors,\n"
        "compilers or libraries are in one file.\n"
        "With --run it prints everything about one run except its tables, including the recipe.",
    .examples = "  gepolab study info study.db\n"
                "  gepolab study info study.db --run acaec48 --json\n"
                "  gepolab study info study.db --json | jq '.origins[].source'",
    .run = run_info};
