/* gepolab study info: what a study file is, how its runs came about and what they cost. */
#include "core/base/json.h"
#include "core/base/shown.h"
#include "core/store/store.h"
#include "experiments/base/args.h"
#include "experiments/base/print_json.h"
#include "experiments/base/process.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* All that is told is gathered as one JSON document while the file is held, and printed when it has
 * been left: a terminal that pauses must not hold a sweep up. The words are printed from it too. */

/* --- gathering --- */

typedef struct gathering {
  cJSON *to; /* the list or object that is filled */
  int ok;    /* 0: memory is short */
} gathering;

static int add_text(cJSON *to, const char *name, const char *text) {
  return text != NULL ? json_add_string(to, name, text) != NULL
                      : cJSON_AddNullToObject(to, name) != NULL;
}

static int add_number(cJSON *to, const char *name, double value) {
  return json_add_number(to, name, value) != NULL;
}

static int add_bytes(cJSON *to, const char *name, int64_t bytes) {
  return add_number(to, name, bytes >= 0 ? (double)bytes : NAN);
}

/* 64 bits, which a JSON number of cJSON would round. */
static int add_seed(cJSON *to, const char *name, uint64_t seed) {
  char text[24];
  snprintf(text, sizeof text, "%llu", (unsigned long long)seed);
  return cJSON_AddRawToObject(to, name, text) != NULL;
}

/* A text that should be JSON, as what it says; as a string where it is none. */
static int add_json(cJSON *to, const char *name, const char *text) {
  cJSON *tree = NULL;
  const int is = text != NULL && json_tree_read(&tree, text, strlen(text), 0, name, NULL) == GL_OK;
  cJSON_Delete(tree);
  return is ? cJSON_AddRawToObject(to, name, text) != NULL : add_text(to, name, text);
}

static int add_provenance(cJSON *o, const run_provenance *p) {
  int ok = add_text(o, "version", p->version) && add_text(o, "source", p->source);
  ok = ok && (p->dirty < 0 ? cJSON_AddNullToObject(o, "dirty")
                           : cJSON_AddBoolToObject(o, "dirty", p->dirty)) != NULL;
  return ok && add_text(o, "command", p->command) && add_text(o, "processor", p->processor) &&
         add_text(o, "system", p->system) && add_text(o, "compiler", p->compiler) &&
         add_json(o, "libraries", p->libraries);
}

static int add_origin(void *self, const store_origin *origin) {
  gathering *g = self;
  cJSON *o = cJSON_CreateObject();
  g->ok = o != NULL && add_number(o, "runs", (double)origin->runs) &&
          add_number(o, "measured", (double)origin->measured) &&
          cJSON_AddBoolToObject(o, "known", origin->known) != NULL &&
          add_provenance(o, &origin->how) && add_text(o, "first", origin->first) &&
          add_text(o, "last", origin->last) && cJSON_AddItemToArray(g->to, o);
  if (!g->ok) cJSON_Delete(o);
  return g->ok;
}

static int add_cost(void *self, const store_cost *c) {
  gathering *g = self;
  cJSON *o = cJSON_CreateObject();
  g->ok = o != NULL && add_text(o, "study", c->study) && add_text(o, "algorithm", c->algorithm) &&
          add_number(o, "runs", (double)c->runs) && add_number(o, "wall_s", c->wall_s) &&
          add_number(o, "wall_s_median", c->median_s) &&
          add_number(o, "wall_s_max", c->largest_s) && add_bytes(o, "peak_bytes", c->peak_bytes) &&
          add_number(o, "seeds", (double)c->seeds) && add_seed(o, "seed_min", c->least_seed) &&
          add_seed(o, "seed_max", c->largest_seed) && cJSON_AddItemToArray(g->to, o);
  if (!g->ok) cJSON_Delete(o);
  return g->ok;
}

static int add_study(cJSON *list, const char *name, const study_progress *p) {
  const struct {
    const char *key;
    size_t value;
  } numbers[] = {{"planned", p->planned},
                 {"done", p->done},
                 {"diverged", p->diverged},
                 {"failed", p->failed},
                 {"missing", p->missing},
                 {"superseded", p->superseded},
                 {"tuning_planned", p->tuning_planned},
                 {"tuning_known", p->tuning_known},
                 {"shards", p->shards},
                 {"shards_missing", p->shards_missing}};
  cJSON *o = cJSON_CreateObject();
  int ok = o != NULL && add_text(o, "study", name);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers && ok; ++i)
    ok = add_number(o, numbers[i].key, (double)numbers[i].value);
  if (ok && cJSON_AddItemToArray(list, o)) return 1;
  cJSON_Delete(o);
  return 0;
}

static gl_status add_studies(cJSON *list, store *s, gl_error *err) {
  char **names = NULL;
  size_t n = 0;
  gl_status status = store_studies(s, &names, &n, err);
  for (size_t i = 0; i < n && status == GL_OK; ++i) {
    study_progress p;
    status = store_progress(s, names[i], &p, err);
    if (status == GL_OK && !add_study(list, names[i], &p)) status = gl_fail_memory(err, "a study");
  }
  free(names);
  return status;
}

static gl_status add_all(cJSON *o, store *s, gl_error *err) {
  gathering studies = {cJSON_AddArrayToObject(o, "studies"), 1},
            origins = {cJSON_AddArrayToObject(o, "origins"), 1},
            costs = {cJSON_AddArrayToObject(o, "algorithms"), 1};
  if (studies.to == NULL || origins.to == NULL || costs.to == NULL)
    return gl_fail_memory(err, "what is known of a study");
  gl_status status = add_studies(studies.to, s, err);
  if (status == GL_OK) status = store_origins(s, add_origin, &origins, err);
  if (status == GL_OK) status = store_costs(s, add_cost, &costs, err);
  return status != GL_OK || (origins.ok && costs.ok)
             ? status
             : gl_fail_memory(err, "what is known of a study");
}

static gl_status add_file(cJSON *o, const char *path, gl_error *err) {
  struct stat about;
  const double bytes = stat(path, &about) == 0 ? (double)about.st_size : NAN;
  return add_text(o, "file", path) && add_number(o, "bytes", bytes) &&
                 add_number(o, "format", STORE_FORMAT) && add_text(o, "lacks", NULL) &&
                 cJSON_AddBoolToObject(o, "being_written", store_is_being_written(path)) != NULL
             ? GL_OK
             : gl_fail_memory(err, "what is known of a study");
}

static int add_run_texts(cJSON *o, const store_run *r) {
  return add_text(o, "key", r->key) && add_text(o, "place", r->place) &&
         add_text(o, "superseded_by", r->superseded_by) && add_text(o, "study", r->study) &&
         add_number(o, "ordinal", (double)r->ordinal) && add_text(o, "algorithm", r->algorithm) &&
         add_seed(o, "seed", r->seed) && add_json(o, "swept", r->swept) &&
         add_json(o, "chosen", r->chosen) && add_number(o, "meaning", (double)r->meaning) &&
         add_number(o, "lr", r->lr) && add_text(o, "status", r->status) &&
         add_text(o, "reason", r->reason) && add_json(o, "recipe", r->recipe) &&
         add_json(o, "in_effect", r->in_effect);
}

static void add_run(void *self, const store_run *r) {
  gathering *g = self;
  cJSON *o = g->to;
  g->ok = add_run_texts(o, r) && add_number(o, "steps", (double)r->n_steps) &&
          add_number(o, "evals", (double)r->n_evals) &&
          add_number(o, "eval_first", r->eval_first) && add_number(o, "eval_best", r->eval_best) &&
          add_number(o, "eval_last", r->eval_last) && add_number(o, "wall_s", r->wall_s) &&
          add_bytes(o, "peak_bytes", r->peak_bytes) && add_text(o, "finished", r->finished) &&
          add_text(o, "code_version", r->code_version) && add_text(o, "machine", r->machine);
  cJSON *how = !g->ok           ? NULL
               : r->how.hash[0] ? cJSON_AddObjectToObject(o, "provenance")
                                : cJSON_AddNullToObject(o, "provenance");
  g->ok = how != NULL && (!r->how.hash[0] || add_provenance(how, &r->how));
}

static gl_status add_one_run(cJSON *o, store *s, const char *key, gl_error *err) {
  gathering g = {o, 1};
  gl_status status = store_find_run(s, key, add_run, &g, err);
  return status != GL_OK || g.ok ? status : gl_fail_memory(err, "what is known of a run");
}

/* key NULL: of the whole file. */
static gl_status gather(cJSON **out, const char *path, const char *key, gl_error *err) {
  static const char *const read[] = {"runs",          "evals",      "plan",       "sweeps",
                                     "tuning_scores", "provenance", "laboratory", NULL};
  store *s = NULL;
  cJSON *o = cJSON_CreateObject();
  *out = NULL;
  if (o == NULL) return gl_fail_memory(err, "what is known of a study");
  gl_status status = store_open(&s, path, STORE_READ, err);
  if (status == GL_OK) status = store_begin_reading(s, err);
  if (status == GL_OK) status = store_verify(s, read, err);
  if (status == GL_OK) status = add_file(o, path, err);
  if (status == GL_OK) status = key != NULL ? add_one_run(o, s, key, err) : add_all(o, s, err);
  if (s != NULL) store_end_reading(s);
  store_close(s);
  if (status == GL_OK)
    *out = o;
  else
    cJSON_Delete(o);
  return status;
}

/* --- reading the document --- */

static const cJSON *item(const cJSON *o, const char *name) {
  return cJSON_GetObjectItemCaseSensitive(o, name);
}

/* Of strings and of numbers; "" for null. */
static const char *text(const cJSON *o, const char *name) {
  const cJSON *i = item(o, name);
  return i != NULL && i->valuestring != NULL ? i->valuestring : "";
}

static double number(const cJSON *o, const char *name) {
  const char *at = text(o, name);
  return at[0] != '\0' ? strtod(at, NULL) : NAN;
}

static size_t count(const cJSON *o, const char *name) {
  const double x = number(o, name);
  return x > 0 ? (size_t)x : 0;
}

/* --- warnings --- */

/* 1 if the runs of the file differ in that part of their origins. */
static int is_mixed(const cJSON *origins, const char *name) {
  const cJSON *one, *first = origins->child;
  cJSON_ArrayForEach(one, origins) {
    if (strcmp(text(one, name), text(first, name)) != 0) return 1;
  }
  return 0;
}

static int add_warnings(cJSON *document) {
  const cJSON *origins = item(document, "origins"), *one;
  cJSON *list = cJSON_AddArrayToObject(document, "warnings");
  const struct {
    const char *name, *says;
  } mixed[] = {
      {"version", "runs of different versions of gepolab stand together; compare their results "
                  "only where the changelog says that nothing changed"},
      {"source", "runs of different commits stand together; they may compute differently"},
      {"processor", "runs of different processors stand together; results may differ by rounding"},
      {"compiler", "runs of different compilers stand together; results may differ by rounding"},
      {"libraries",
       "runs with different libraries stand together; results may differ by rounding"}};
  int ok = list != NULL, dirty = 0;
  for (size_t i = 0; ok && i < sizeof mixed / sizeof *mixed; ++i)
    if (is_mixed(origins, mixed[i].name)) ok = json_add_string(list, NULL, mixed[i].says) != NULL;
  cJSON_ArrayForEach(one, origins) {
    dirty |= cJSON_IsTrue(item(one, "dirty"));
  }
  if (ok && dirty)
    ok = json_add_string(list, NULL,
                         "runs come from a program whose files differed from its commit; "
                         "nobody else can build it") != NULL;
  return ok;
}

/* --- in words --- */

enum { ORIGINS_TOLD = 8 };

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
         bytes_text(number(d, "bytes"), size),
         cJSON_IsTrue(item(d, "being_written")) ? ", a sweep is writing it" : "");
}

static void print_study(const cJSON *s) {
  const size_t runs = count(s, "done") + count(s, "diverged") + count(s, "failed");
  printf("%s: ", shown(text(s, "study")).text);
  if (count(s, "planned") > 0)
    printf("%zu of %s planned cells, ", count(s, "planned") - count(s, "missing"),
           text(s, "planned"));
  else
    printf("%zu run%s, ", runs, runs == 1 ? "" : "s");
  printf("%s done, %s diverged, %s failed, %s missing, %s superseded\n", text(s, "done"),
         text(s, "diverged"), text(s, "failed"), text(s, "missing"), text(s, "superseded"));
  if (count(s, "tuning_planned") > 0)
    printf("  tuning      %s of %s runs\n", text(s, "tuning_known"), text(s, "tuning_planned"));
  if (count(s, "shards") > 0)
    printf("  shards      %s, %s of them missing\n", text(s, "shards"), text(s, "shards_missing"));
}

/* Times below a minute with their fractions. */
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
    printf("            %8s", wall_text(number(one, "wall_s"), seconds));
    printf("  %8s", wall_text(number(one, "wall_s_median"), seconds));
    printf("  %8s", wall_text(number(one, "wall_s_max"), seconds));
    printf("  %11s  ", bytes_text(number(one, "peak_bytes"), words));
    printf("%s %s, %s seed%s %s", text(one, "runs"), shown(text(one, "algorithm")).text,
           text(one, "seeds"), count(one, "seeds") == 1 ? "" : "s", text(one, "seed_min"));
    if (count(one, "seeds") > 1) printf(" to %s", text(one, "seed_max"));
    if (cJSON_GetArraySize(item(d, "studies")) > 1) printf(" (%s)", shown(text(one, "study")).text);
    putchar('\n');
    total += isnan(number(one, "wall_s")) ? 0 : number(one, "wall_s");
    peak = fmax(peak, number(one, "peak_bytes"));
  }
  printf("all runs: %s of wall time, peak memory %s\n", wall_text(total, seconds),
         bytes_text(peak, words));
}

static void print_provenance(const cJSON *p) {
  static const char *const lines[] = {"command", "processor", "system", "compiler", "libraries"};
  const cJSON *dirty = item(p, "dirty");
  const char *source = text(p, "source");
  printf("  %-11s %s, commit %s%s\n", "gepolab", shown(text(p, "version")).text,
         source[0] != '\0' ? shown(source).text : "not known",
         cJSON_IsTrue(dirty)                        ? ", from files that differ from it"
         : cJSON_IsNull(dirty) && source[0] != '\0' ? ", not known whether files differed from it"
                                                    : "");
  for (size_t i = 0; i < sizeof lines / sizeof *lines; ++i) {
    if (text(p, lines[i])[0] == '\0') continue;
    printf("  %-11s ", lines[i]);
    shown_write(text(p, lines[i]), strlen(text(p, lines[i])), stdout);
    putchar('\n');
  }
}

static void print_origins(const cJSON *d) {
  const cJSON *one;
  size_t told = 0;
  cJSON_ArrayForEach(one, item(d, "origins")) {
    if (++told > ORIGINS_TOLD) continue;
    if (count(one, "runs") > 0)
      printf("%s run%s, ", text(one, "runs"), count(one, "runs") == 1 ? "" : "s");
    if (count(one, "measured") > 0) printf("measurements of the laboratory, ");
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
  if (told > ORIGINS_TOLD)
    printf("and runs of %zu more origins; --json lists all\n", told - ORIGINS_TOLD);
}

static void print_words(const cJSON *d) {
  const cJSON *one;
  print_file(d);
  cJSON_ArrayForEach(one, item(d, "studies")) {
    print_study(one);
  }
  if (item(d, "algorithms")->child != NULL) print_costs(d);
  print_origins(d);
  cJSON_ArrayForEach(one, item(d, "warnings")) {
    printf("warning: %s\n", one->valuestring);
  }
}

static void print_line(const cJSON *d, const char *name) {
  const char *words = text(d, name);
  if (words[0] == '\0') return;
  printf("  %-14s ", name);
  shown_write(words, strlen(words), stdout);
  putchar('\n');
}

/* Fields that the recipe did not state, by where their values came from. */
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

static void print_run(const cJSON *d) {
  static const char *const first[] = {
      "key",    "place",    "superseded_by", "study",      "ordinal",   "algorithm",
      "seed",   "swept",    "chosen",        "meaning",    "lr",        "status",
      "reason", "steps",    "evals",         "eval_first", "eval_best", "eval_last",
      "wall_s", "finished", "code_version",  "machine",    "recipe"};
  char words[32];
  print_file(d);
  for (size_t i = 0; i < sizeof first / sizeof *first; ++i) print_line(d, first[i]);
  print_in_effect(text(d, "in_effect"));
  printf("  %-14s %s\n", "peak memory", bytes_text(number(d, "peak_bytes"), words));
  if (cJSON_IsObject(item(d, "provenance")))
    print_provenance(item(d, "provenance"));
  else
    puts("nothing more is known of how it came about");
}

/* --- the command --- */

static gl_status run_info(const command *self, int argc, char **argv, gl_error *err) {
  const char *key = NULL;
  int json = 0;
  const args_option options[] = {
      {"run", 'r', ARGS_TEXT, "KEY", "one run whole; the beginning of its key is enough", &key},
      {"json", 0, ARGS_FLAG, NULL, "as JSON", &json}};
  args a;
  cJSON *d = NULL;
  gl_status status = args_parse(&a, self, options, sizeof options / sizeof *options,
                                (args_shape){1, 1, 0}, argc, argv, err);
  if (status == GL_OK && !a.help) {
    status = gather(&d, a.words[0], key, err);
    if (status == GL_OK && key == NULL && !add_warnings(d))
      status = gl_fail_memory(err, "what is known of a study");
    if (status == GL_OK && json) {
      status = report_json(d, err);
      d = NULL;
    } else if (status == GL_OK && key != NULL) {
      print_run(d);
    } else if (status == GL_OK) {
      print_words(d);
    }
  }
  cJSON_Delete(d);
  args_fini(&a);
  return status;
}

const command command_info = {
    .name = "study info",
    .arguments = "STUDY.db",
    .summary = "what a study file is, and how its runs came about",
    .about =
        "The file's format; its studies; for each algorithm the wall time and the largest memory\n"
        "of its runs; and how the runs came about: version and commit of gepolab, and whether it\n"
        "was built from files that differ from that commit, command line, processor, system,\n"
        "compiler, libraries, first and last date. It warns where runs of different versions,\n"
        "commits, processors, compilers or libraries stand together.\n"
        "With --run it prints all that the file keeps of one run but its tables, among it the\n"
        "whole recipe. No export shows where and when runs were made.",
    .examples = "  gepolab study info study.db\n"
                "  gepolab study info study.db --run acaec48 --json\n"
                "  gepolab study info study.db --json | jq '.origins[].source'",
    .run = run_info};
