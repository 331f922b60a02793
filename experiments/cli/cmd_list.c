/* gepolab list algorithms, recipes, metrics, kinds and presets: what there is. (Fields and
 * published cases have files of their own.) */
#define _GNU_SOURCE /* strcasestr */
#include "core/base/metrics.h"
#include "core/base/shown.h"
#include "core/config/config.h"
#include "core/policy/algorithm.h"
#include "experiments/base/args.h"
#include "experiments/base/memory.h"
#include "experiments/base/print_json.h"
#include "experiments/base/program.h"
#include "experiments/recipe/recipe.h"
#include "sim/cluster.h"
#include "sim/delay.h"
#include "toy/world/mdp.h"
#include "toy/world/toy_world.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- list algorithms --- */

static void algorithm_add_field(cJSON *to, const policy_algorithm *algorithm, size_t i) {
  const policy_field *f = policy_fields_at(i);
  char text[POLICY_FIELD_TEXT_SIZE];
  const char *value = policy_algorithm_field(algorithm, i, text);
  switch (f->kind) {
  case FIELD_COUNT:
  case FIELD_NUMBER:
    json_number(to, f->name, strtod(value, NULL));
    return;
  case FIELD_BOOL:
    json_place(to, f->name, cJSON_CreateBool(strcmp(value, "true") == 0));
    return;
  case FIELD_CHOICE:
    json_place(to, f->name, cJSON_CreateString(value));
    return;
  }
}

/* only: the algorithm's name; NULL: of all. */
static gl_status algorithms_print_json(const char *only, gl_error *err) {
  cJSON *list = cJSON_CreateArray();
  for (size_t i = 0; i < policy_algorithms_count(); ++i) {
    const policy_algorithm *algorithm = policy_algorithms_at(i);
    const policy_algorithm_info *info = policy_algorithms_info(i);
    if (only != NULL && strcmp(algorithm->name, only) != 0) continue;
    cJSON *item = json_object(list, NULL);
    json_put(item, "name %s, source %s, trl %s, verl %s, areal %s, notes %s", algorithm->name,
             info->source, info->trl, info->verl, info->areal, info->notes);
    cJSON *fields = json_object(item, "fields");
    for (size_t f = 0; f < policy_fields_count(); ++f) algorithm_add_field(fields, algorithm, f);
  }
  return report_json(list, err);
}

/* Shown for every algorithm; the many other fields only where they differ from `reinforce`, the
 * plainest one, because those that do nothing would hide the rest. JSON has them all. */
static int is_main_field(const char *name) {
  static const char *const main_fields[] = {"objective", "baseline", "scale",    "ratio",
                                            "log_prob",  "clip",     "aggregate"};
  for (size_t i = 0; i < sizeof main_fields / sizeof *main_fields; ++i)
    if (strcmp(main_fields[i], name) == 0) return 1;
  return 0;
}

/* "  source  …", wrapped below itself; nothing where there is no text. */
static void algorithm_print(const char *title, const char *text) {
  enum { COLUMN = 10 };
  if (text[0] == '\0') return;
  printf("  %-7s ", title);
  shown_wrap(text, COLUMN, COLUMN, stdout);
  putchar('\n');
}

static void print_algorithm(size_t i, const policy_algorithm *plain) {
  const policy_algorithm *algorithm = policy_algorithms_at(i);
  const policy_algorithm_info *info = policy_algorithms_info(i);
  char *fields = NULL;
  size_t size = 0;
  puts(algorithm->name);
  algorithm_print("source", info->source);
  algorithm_print("TRL", info->trl);
  algorithm_print("verl", info->verl);
  algorithm_print("AReaL", info->areal);
  algorithm_print("notes", info->notes);
  FILE *to = must_have(open_memstream(&fields, &size), "the fields of an algorithm");
  for (size_t f = 0; f < policy_fields_count(); ++f) {
    char own[POLICY_FIELD_TEXT_SIZE], other[POLICY_FIELD_TEXT_SIZE];
    const char *value = policy_algorithm_field(algorithm, f, own);
    const char *name = policy_fields_at(f)->name;
    if (!is_main_field(name) && strcmp(value, policy_algorithm_field(plain, f, other)) == 0)
      continue;
    fprintf(to, " %s: %s;", name, value);
  }
  must_succeed(fclose(to) == 0, "the fields of an algorithm");
  algorithm_print("fields", fields);
  free(fields);
}

static gl_status unknown_algorithm(const char *name, gl_error *err) {
  size_t n = policy_algorithms_count();
  const char **names = MUST_ARRAY(const char *, n, "the algorithms' names");
  for (size_t i = 0; i < n; ++i) names[i] = policy_algorithms_at(i)->name;
  char hint[CFG_HINT_SIZE];
  cfg_hint(name, names, n, hint);
  free(names);
  return gl_fail(err, GL_EINPUT,
                 "there is no algorithm '%s'%s; `gepolab list algorithms` lists them", name, hint);
}

static const char *unit_words(policy_ratio_unit unit) {
  switch (unit) {
  case RATIO_OF_TOKEN:
    return "of a token";
  case RATIO_OF_RESPONSE:
    return "of a response";
  }
  return "";
}

static const char *gradient_words(policy_ratio_gradient gradient) {
  switch (gradient) {
  case RATIO_GRADIENT_NONE:
    return "constant";
  case RATIO_GRADIENT_OWN_TOKEN:
    return "gradient through each term's own token";
  case RATIO_GRADIENT_RESPONSE:
    return "gradient through all tokens of the response";
  }
  return "";
}

static const char *coupling_words(policy_ratio_coupling coupling) {
  switch (coupling) {
  case RATIO_ALONE:
    return "";
  case RATIO_COUPLED_BY_P:
  case RATIO_COUPLED_BY_RATIOS:
    return "; depends on the whole group";
  case RATIO_COUPLED_BY_DENOMINATOR:
    return "; depends on the whole group unless denominator: exact";
  }
  return "";
}

static void algorithms_print_fields(void) {
  enum { COLUMN = 21 };
  for (size_t f = 0; f < policy_fields_count(); ++f) {
    const policy_field *field = policy_fields_at(f);
    printf("%-20s ", field->name);
    shown_wrap(field->meaning, COLUMN, COLUMN, stdout);
    putchar('\n');
    if (field->offset == offsetof(policy_algorithm, ratio)) {
      for (int r = 0; r < RATIO_COUNT; ++r) {
        const policy_ratio_info *about = policy_ratio_about((policy_ratio)r);
        char *text = must_textf("a ratio", "%-18s %s: %s, %s%s", about->name, about->meaning,
                                unit_words(about->unit), gradient_words(about->gradient),
                                coupling_words(about->coupling));
        printf("%*s", COLUMN, "");
        shown_wrap(text, COLUMN, COLUMN + 2, stdout);
        putchar('\n');
        free(text);
      }
      continue;
    }
    if (field->n_choices == 0) continue;
    char *words = NULL;
    size_t size = 0;
    FILE *to = must_have(open_memstream(&words, &size), "the words of a field");
    for (int c = 0; c < field->n_choices; ++c)
      fprintf(to, "%s%s", c == 0 ? "" : " | ", field->choice(c));
    must_succeed(fclose(to) == 0, "the words of a field");
    printf("%*s", COLUMN, "");
    shown_wrap(words, COLUMN, COLUMN, stdout);
    putchar('\n');
    free(words);
  }
}

static gl_status run_algorithms(const command *self, int argc, char **argv, gl_error *err) {
  int json = 0, fields = 0;
  const args_option options[] = {
      {"fields", 0, ARGS_FLAG, NULL, "what every field means and may be", &fields},
      {"json", 0, ARGS_FLAG, NULL, "all algorithms with all fields as JSON", &json}};
  args a;
  gl_status status = args_parse(&a, self, options, 2, (args_shape){0, 1, 0}, argc, argv, err);
  if (status != GL_OK || a.help) {
    args_fini(&a);
    return status;
  }
  const policy_algorithm *found = a.n_words > 0 ? policy_algorithms_find(a.words[0]) : NULL;
  const char *only = found != NULL ? found->name : NULL;
  if (a.n_words > 0 && found == NULL) {
    status = unknown_algorithm(a.words[0], err);
  } else if (fields) {
    algorithms_print_fields();
  } else if (json) {
    status = algorithms_print_json(only, err);
  } else {
    for (size_t i = 0; i < policy_algorithms_count(); ++i)
      if (only == NULL || strcmp(policy_algorithms_at(i)->name, only) == 0)
        print_algorithm(i, policy_algorithms_find("reinforce"));
  }
  args_fini(&a);
  return status;
}

const command command_algorithms = {
    .name = "list algorithms",
    .arguments = "[ALGORITHM]",
    .summary = "the published algorithms and their fields, with their sources",
    .about =
        "For each: its source, the TRL, verl and AReaL setting it corresponds to or that\n"
        "there is none, what is gepolab's own choice, and its fields (text: the main ones and\n"
        "those that differ from reinforce; JSON: all). Any field can be changed in a recipe:\n"
        "algorithm: {base: gepo, clip: none}.",
    .examples = "  gepolab list algorithms\n  gepolab list algorithms gepo --json\n  gepolab list "
                "algorithms --fields",
    .run = run_algorithms};

/* --- list recipes --- */

typedef struct listed_recipe {
  char name[64];
  char description[512];
  const char *command;
} listed_recipe;

/* 0 if the resource is not a recipe. */
static int describe_recipe(listed_recipe *out, const resource *r) {
  size_t length = 0;
  const char *name = resources_recipe_name(r, &length);
  if (name == NULL) return 0;
  snprintf(out->name, sizeof out->name, "%.*s", (int)length, name);
  cfg_doc *doc = NULL;
  const cfg_node *words = NULL;
  if (recipe_load(&doc, out->name, NULL, 0, NULL) == GL_OK)
    words = cfg_find(cfg_root(doc), "description");
  snprintf(out->description, sizeof out->description, "%s", words != NULL ? cfg_text(words) : "");
  out->command = doc != NULL ? recipe_command(doc) : "";
  cfg_free(doc);
  return 1;
}

static const table_column recipe_columns[] = {{"name", TABLE_TEXT, .head = "", .width = -24},
                                              {"command", TABLE_TEXT, .head = "", .width = -14},
                                              {"description", TABLE_TEXT, .head = ""}};

/* The description of an embedded cluster: its `description`, or "a cluster". */
static void list_cluster_description(table *t, const char *name) {
  cfg_doc *doc = NULL;
  const cfg_node *words = NULL;
  if (recipe_load_cluster(&doc, name, NULL, 0, NULL) == GL_OK)
    words = cfg_find(cfg_root(doc), "description");
  table_text(t, words != NULL ? cfg_text(words) : "a description of a cluster");
  cfg_free(doc);
}

static gl_status list_recipes(bool is_json, gl_error *err) {
  table *t = table_new(recipe_columns, sizeof recipe_columns / sizeof *recipe_columns);
  table_plain(t, 0);
  for (size_t i = 0; resources_at(i) != NULL; ++i) {
    listed_recipe r;
    if (!describe_recipe(&r, resources_at(i))) continue;
    table_row(t);
    table_text(t, r.name), table_text(t, r.command), table_text(t, r.description);
  }
  for (size_t i = 0; resources_cluster_at(i) != NULL; ++i) {
    table_row(t);
    table_text(t, resources_cluster_at(i)), table_text(t, "plan");
    list_cluster_description(t, resources_cluster_at(i));
  }
  return report_table(t, TABLE_AS_TEXT, is_json, err);
}

static gl_status print_recipe(const char *name, gl_error *err) {
  const resource *r = resources_recipe(name);
  if (r == NULL) r = resources_cluster(name);
  if (r == NULL)
    return gl_fail(err, GL_EINPUT,
                   "there is no embedded recipe '%s'; `gepolab list recipes` lists them", name);
  fwrite(r->data, 1, r->size, stdout);
  return GL_OK;
}

static gl_status run_recipes(const command *self, int argc, char **argv, gl_error *err) {
  int json = 0;
  const args_option options[] = {
      {"json", 0, ARGS_FLAG, NULL, "names and descriptions as JSON", &json}};
  args a;
  gl_status status = args_parse(&a, self, options, 1, (args_shape){0, 1, 0}, argc, argv, err);
  if (status != GL_OK || a.help) {
    args_fini(&a);
    return status;
  }
  status = a.n_words == 1 ? print_recipe(a.words[0], err) : list_recipes(json, err);
  args_fini(&a);
  return status;
}

const command command_recipes = {
    .name = "list recipes",
    .arguments = "[RECIPE]",
    .summary = "the recipes inside the program",
    .about =
        "Lists them with the command that each is for, or prints the one named, to be redirected\n"
        "into a file and changed.",
    .examples = "  gepolab list recipes\n  gepolab list recipes quickstart > mine.yaml",
    .run = run_recipes};

/* --- list metrics --- */

static const table_column metric_columns[] = {{"name", TABLE_TEXT, .head = "", .width = -20},
                                              {"unit", TABLE_TEXT, .head = "", .width = -8},
                                              {"meaning", TABLE_TEXT, .head = ""},
                                              TABLE_KEY("source", TABLE_TEXT)};

/* Whether the metric has every word in its name or meaning. */
static bool is_metric_wanted(const metric_info *m, const args *a) {
  for (size_t i = 0; i < a->n_words; ++i)
    if (strcasestr(m->name, a->words[i]) == NULL && strcasestr(m->meaning, a->words[i]) == NULL)
      return false;
  return true;
}

static gl_status list_metrics(bool is_json, const args *a, gl_error *err) {
  size_t n = 0;
  table *t = table_new(metric_columns, sizeof metric_columns / sizeof *metric_columns);
  table_plain(t, 0);
  for (int m = 0; m < METRIC_COUNT; ++m) {
    const metric_info *about = metric_about((metric)m);
    if (!is_metric_wanted(about, a)) continue;
    ++n;
    table_row(t);
    table_text(t, about->name), table_text(t, about->unit), table_text(t, about->meaning);
    if (about->source[0] != '\0') table_shown(t, "%s [%s]", about->meaning, about->source);
    table_text(t, about->source);
  }
  if (n > 0) return report_table(t, TABLE_AS_TEXT, is_json, err);
  table_free(t);
  return gl_fail(err, GL_EINPUT,
                 "no metric has '%s' in its name or meaning; `gepolab list metrics` lists them",
                 a->words[a->n_words - 1]);
}

static gl_status run_metrics(const command *self, int argc, char **argv, gl_error *err) {
  int json = 0;
  const args_option options[] = {{"json", 0, ARGS_FLAG, NULL, "the table as JSON", &json}};
  args a;
  gl_status status = args_parse(&a, self, options, 1, (args_shape){0, 8, 0}, argc, argv, err);
  if (status == GL_OK && !a.help) status = list_metrics(json, &a, err);
  args_fini(&a);
  return status;
}

const command command_metrics = {
    .name = "list metrics",
    .arguments = "[WORD…]",
    .summary = "what is measured at every update, with units and sources",
    .about = "The names are columns of the store, keys of JSON and labels of figures. With words, "
             "those\n"
             "whose name or meaning has them all.",
    .examples = "  gepolab list metrics\n  gepolab list metrics ess\n  gepolab list metrics --json",
    .run = run_metrics};

/* --- list kinds --- */

/* One list that is printed: entry i's name and meaning, NULL past the last; and its parameters. */
typedef struct kind_listing {
  const char *title;
  const char *(*at)(size_t i, const char **about);
  const delay_parameter *(*parameters)(size_t i); /* NULL: entries have none of their own */
} kind_listing;

static const char *dist_at(size_t i, const char **about) {
  if (i >= DELAY_KINDS) return NULL;
  *about = delay_dist_about((delay_kind)i)->about;
  return delay_dist_about((delay_kind)i)->name;
}

static const delay_parameter *dist_parameters(size_t i) {
  return delay_dist_about((delay_kind)i)->parameter;
}

static const char *preset_at(size_t i, const char **about) {
  const cluster_preset *p = cluster_preset_at(i);
  if (p == NULL) return NULL;
  *about = p->about;
  return p->name;
}

static const kind_listing listings[] = {
    {"worlds", toy_kind_at, NULL},
    {"decision processes", mdp_kind_at, NULL},
    {"delay laws", dist_at, dist_parameters},
    {"presets", preset_at, NULL},
};
enum { N_LISTINGS = sizeof listings / sizeof *listings };

static const table_column kind_columns[] = {{"name", TABLE_TEXT, .head = "", .width = -16},
                                            {"about", TABLE_TEXT, .head = ""},
                                            TABLE_KEY("parameters", TABLE_TABLE)},
                          parameter_columns[] = {TABLE_KEY("name", TABLE_TEXT),
                                                 TABLE_KEY("unit", TABLE_TEXT),
                                                 TABLE_KEY("default", TABLE_TEXT)};

/* The entry's meaning, for people with its parameters: "… (mean in s, cap: none)". */
static void put_meaning(table *t, const char *about, const delay_parameter *all) {
  char text[512];
  size_t used = 0;
  for (const delay_parameter *p = all; p != NULL && p->name != NULL && used < sizeof text; ++p)
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%s%s%s%s%s", p == all ? "" : ", ",
                             p->name, *p->unit != '\0' ? " in " : "", p->unit,
                             *p->fallback != '\0' ? ": " : "", p->fallback);
  table_text(t, about);
  if (used > 0) table_shown(t, "%s (%s)", about, text);
}

static void put_parameters(table *t, const delay_parameter *p) {
  table *rows = table_rows(t, parameter_columns, 3);
  for (; p->name != NULL; ++p) {
    table_row(rows);
    table_text(rows, p->name), table_text(rows, p->unit), table_text(rows, p->fallback);
  }
}

static gl_status list_kinds_of_all(bool is_json, gl_error *err) {
  table *document = table_document();
  const char *about = "";
  for (size_t k = 0; k < N_LISTINGS; ++k) {
    const kind_listing *l = &listings[k];
    table *t =
        table_rows(table_field(document, l->title), kind_columns, l->parameters != NULL ? 3 : 2);
    table_plain(t, 2);
    table_title(t, "%s", l->title);
    if (k + 1 < N_LISTINGS) table_gap(t);
    for (size_t i = 0; l->at(i, &about) != NULL; ++i) {
      table_row(t);
      table_text(t, l->at(i, &about));
      put_meaning(t, about, l->parameters != NULL ? l->parameters(i) : NULL);
      if (l->parameters != NULL) put_parameters(t, l->parameters(i));
    }
  }
  return report_table(document, TABLE_AS_TEXT, is_json, err);
}

static gl_status run_kinds(const command *self, int argc, char **argv, gl_error *err) {
  int json = 0;
  const args_option options[] = {{"json", 0, ARGS_FLAG, NULL, "the same as JSON", &json}};
  args a;
  gl_status status = args_parse(&a, self, options, 1, (args_shape){0, 0, 0}, argc, argv, err);
  if (status == GL_OK && !a.help) status = list_kinds_of_all(json, err);
  args_fini(&a);
  return status;
}

const command command_kinds = {
    .name = "list kinds",
    .arguments = "",
    .summary = "kinds of world, delay laws and presets, with their parameters",
    .about = "Lists what `world.kind`, the `law` of a delay and `cluster.preset` may be, from the\n"
             "tables that the program itself reads. Most distributions also take\n"
             "`interval: [l, u]` and `confidence` in place of their parameters. Tasks of\n"
             "a transformer are listed by `gepolab llm tasks`.",
    .examples = "  gepolab list kinds --json",
    .run = run_kinds};

/* --- list presets --- */
/* `make docs` writes the output into experiments/RECIPES.md. */

enum { MOST_PRESETS = 64, FIELDS_SIZE = 256 };

/* A preset's fields, as a recipe would state them. */

static const char *preset_queue(const cluster_preset *p) {
  switch (p->queue) {
  case QUEUE_HETERORL:
    return "heterorl";
  case QUEUE_FIFO:
    return "fifo";
  case QUEUE_LIFO:
    return "lifo";
  case QUEUE_OLDEST_VERSION:
    return "oldest_version";
  }
  return "";
}

static const char *preset_unit(const cluster_preset *p) {
  switch (p->unit) {
  case UNIT_BATCH:
    return "batch";
  case UNIT_GROUP:
    return "group";
  case UNIT_RESPONSE:
    return "response";
  }
  return "";
}

static void add_preset_field(char text[FIELDS_SIZE], const char *name, const char *value) {
  const size_t used = strlen(text);
  snprintf(text + used, FIELDS_SIZE - used, "%s%s: %s", used > 0 ? ", " : "", name, value);
}

static void add_preset_limit(char text[FIELDS_SIZE], const char *name, int64_t limit) {
  char number[24];
  snprintf(number, sizeof number, "%" PRId64, limit);
  if (limit < INT64_MAX) add_preset_field(text, name, number);
}

/* Fields with the value that every other preset has are left out. */
static const char *preset_fields(const cluster_preset *p, char text[FIELDS_SIZE]) {
  const int64_t gated = p->window < p->ahead ? p->window : p->ahead;
  text[0] = '\0';
  add_preset_limit(text, "samplers", (int64_t)p->samplers);
  add_preset_field(text, "sync", p->sync == SYNC_PULL ? "pull" : "push");
  add_preset_field(text, "unit", preset_unit(p));
  if (p->in_flight && p->unit == UNIT_BATCH) add_preset_field(text, "in_flight", "true");
  if (p->unit != UNIT_BATCH && p->sync == SYNC_PUSH)
    add_preset_field(text, "partial", p->in_flight ? "continue" : "wait");
  if (p->kv_cache == KV_CACHE_KEEP) add_preset_field(text, "kv_cache", "keep");
  add_preset_limit(text, "ahead", p->ahead);
  add_preset_limit(text, "window", p->trains_late ? p->window : gated);
  add_preset_field(text, "learner.queue", preset_queue(p));
  if (p->publish_every != 1) add_preset_limit(text, "learner.publish_every", p->publish_every);
  return text;
}

/* "  fields        sync: push, …", wrapped below itself. */
static void print_wrapped(const char *title, const char *text) {
  const size_t column = (size_t)printf("  %-13s ", title);
  shown_wrap(text, column, column, stdout);
  putchar('\n');
}

static void preset_print_plain(const cluster_preset *p, bool is_first) {
  char fields[FIELDS_SIZE];
  const int named = printf("%s%s: ", is_first ? "" : "\n", p->name);
  shown_wrap(p->about, (size_t)named - !is_first, 4, stdout);
  putchar('\n');
  print_wrapped("fields", preset_fields(p, fields));
  print_wrapped("source", p->source);
  print_wrapped("mapping", p->mapping);
  print_wrapped("not modelled", p->not_modelled);
}

static void preset_print_markdown(const cluster_preset *p) {
  char fields[FIELDS_SIZE];
  printf("| `%s` | %s | %s | %s | %s | %s |\n", p->name, p->about, preset_fields(p, fields),
         p->source, p->mapping, p->not_modelled);
}

static void preset_add_json(cJSON *list, const cluster_preset *p) {
  char fields[FIELDS_SIZE];
  json_put(json_object(list, NULL),
           "name %s, about %s, fields %s, source %s, mapping %s, not_modelled %s", p->name,
           p->about, preset_fields(p, fields), p->source, p->mapping, p->not_modelled);
}

typedef enum preset_form { PLAIN, MARKDOWN, JSON } preset_form;

/* wanted[i]: the i-th is printed. */
static gl_status print_presets(const int *wanted, preset_form as, gl_error *err) {
  cJSON *list = as == JSON ? cJSON_CreateArray() : NULL;
  bool is_first = true;
  if (as == MARKDOWN)
    puts("| preset | what it is | fields | source | mapping | not modelled |\n"
         "|---|---|---|---|---|---|");
  for (size_t i = 0; cluster_preset_at(i) != NULL; ++i) {
    if (!wanted[i]) continue;
    switch (as) {
    case PLAIN:
      preset_print_plain(cluster_preset_at(i), is_first);
      break;
    case MARKDOWN:
      preset_print_markdown(cluster_preset_at(i));
      break;
    case JSON:
      preset_add_json(list, cluster_preset_at(i));
      break;
    }
    is_first = false;
  }
  return as == JSON ? report_json(list, err) : GL_OK;
}

/* Marks the named presets; all where none is named. */
static gl_status choose_presets(int *wanted, const args *a, gl_error *err) {
  const char *names[MOST_PRESETS];
  size_t n = 0, which = 0;
  for (; n < MOST_PRESETS && cluster_preset_at(n) != NULL; ++n) {
    names[n] = cluster_preset_at(n)->name;
    wanted[n] = a->n_words == 0;
  }
  for (size_t i = 0; i < a->n_words; ++i) {
    gl_status status = args_choose(&which, "the preset", a->words[i], names, n, err);
    if (status != GL_OK) return status;
    wanted[which] = 1;
  }
  return GL_OK;
}

static gl_status run_presets(const command *self, int argc, char **argv, gl_error *err) {
  static const char *const formats[] = {"text", "markdown"};
  int json = 0, wanted[MOST_PRESETS] = {0};
  const char *format = NULL;
  size_t chosen = 0;
  const args_option options[] = {
      {"format", ARGS_OLD('f'), ARGS_TEXT, "text|markdown", "how they are written", &format},
      {"json", 0, ARGS_FLAG, NULL, "the same as JSON", &json}};
  args a;
  gl_status status =
      args_parse(&a, self, options, 2, (args_shape){0, MOST_PRESETS, 0}, argc, argv, err);
  if (status == GL_OK && !a.help && format != NULL)
    status = args_choose(&chosen, "--format", format, formats, 2, err);
  if (status == GL_OK && !a.help) status = choose_presets(wanted, &a, err);
  if (status == GL_OK && !a.help)
    status = print_presets(wanted, json ? JSON : chosen == 1 ? MARKDOWN : PLAIN, err);
  args_fini(&a);
  return status;
}

const command command_presets = {
    .name = "list presets",
    .arguments = "[PRESET…]",
    .summary = "presets of a cluster: their sources, and what of them is not modelled",
    .about = "For each preset, or those named: the fields it sets, the paper or commit these were\n"
             "taken from, which parameters of the system stand for which fields, and what of the\n"
             "system the clock does not model. `assumed` marks what the source was not seen to\n"
             "say.",
    .examples = "  gepolab list presets verl_async areal\n  gepolab list presets --json",
    .run = run_presets};
