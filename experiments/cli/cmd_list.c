/* gepolab list recipes, metrics, definitions, kinds and presets. Algorithms, fields and published
 * cases are listed in separate files. */
#define _GNU_SOURCE /* strcasestr */
#include "analysis/import/metric_names.h"
#include "analysis/import/read.h"
#include "core/base/display_text.h"
#include "core/base/metrics.h"
#include "core/config/config.h"
#include "experiments/base/args.h"
#include "experiments/base/memory.h"
#include "experiments/base/print_json.h"
#include "experiments/base/program.h"
#include "experiments/recipe/recipe.h"
#include "experiments/tokens/token_log.h"
#include "sim/cluster.h"
#include "sim/delay.h"
#include "sim/trainer_counters.h"
#include "toy/world/mdp.h"
#include "toy/world/toy_world.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- list recipes --- */

/* Adds the name, the command and the description of an embedded recipe or cluster. */
static void list_yaml(table *t, const char *name, size_t length, bool is_cluster) {
  char text[64];
  cfg_doc *doc = NULL;
  snprintf(text, sizeof text, "%.*s", (int)length, name);
  if (is_cluster)
    (void)recipe_load_cluster(&doc, text, NULL, 0, NULL);
  else
    (void)recipe_load(&doc, text, NULL, 0, NULL);
  const cfg_node *words = doc != NULL ? cfg_find(cfg_root(doc), "description") : NULL;
  table_row(t);
  table_text(t, text);
  table_text(t, is_cluster ? "plan" : doc != NULL ? recipe_command(doc) : "");
  table_text(t, words != NULL ? cfg_text(words) : is_cluster ? "a description of a cluster" : "");
  cfg_free(doc);
}

static const table_column recipe_columns[] = {{"name", TABLE_TEXT, .head = "", .width = -24},
                                              {"command", TABLE_TEXT, .head = "", .width = -14},
                                              {"description", TABLE_TEXT, .head = ""}};

static gl_status list_recipes(bool is_json, gl_error *err) {
  table *t = table_new(recipe_columns, sizeof recipe_columns / sizeof *recipe_columns);
  table_plain(t, 0);
  size_t length = 0;
  const char *name;
  for (size_t i = 0; resources_at(i) != NULL; ++i)
    if ((name = resources_recipe_name(resources_at(i), &length)) != NULL)
      list_yaml(t, name, length, false);
  for (size_t i = 0; resources_at(i) != NULL; ++i)
    if ((name = resources_cluster_name(resources_at(i), &length)) != NULL)
      list_yaml(t, name, length, true);
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

static gl_status run_recipes(args *a, gl_error *err) {
  int json = 0;
  const args_option options[] = {
      {"json", 0, ARGS_FLAG, NULL, "names and descriptions as JSON", &json}};
  gl_status status = args_parse(a, options, 1, err);
  if (status != GL_OK || a->help) return status;
  return a->n_words == 1 ? print_recipe(a->words[0], err) : list_recipes(json, err);
}

const command command_recipes = {
    .name = "list recipes",
    .arguments = "[RECIPE]",
    .words = {.input = ARGS_RECIPE, .max = 1},
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
                                              TABLE_KEY("source", TABLE_TEXT),
                                              TABLE_KEY("misread", TABLE_TEXT)};

/* Whether a word of the text begins with `word`: "ess" is in "mean ess" and not in "staleness". */
static bool text_has_word(const char *text, const char *word) {
  for (const char *at = text; (at = strcasestr(at, word)) != NULL; ++at)
    if (at == text || !isalnum((unsigned char)at[-1])) return true;
  return false;
}

/* Returns true if the metric's name or meaning has every word. */
static bool is_metric_wanted(const metric_info *m, const args *a) {
  for (size_t i = 0; i < a->n_words; ++i)
    if (!text_has_word(m->name, a->words[i]) && !text_has_word(m->meaning, a->words[i]))
      return false;
  return true;
}

static const table_column foreign_columns[] = {{"name", TABLE_TEXT, .head = "", .width = -46},
                                               {"read_as", TABLE_TEXT, .head = "", .width = -15},
                                               {"definition", TABLE_TEXT, .head = ""},
                                               TABLE_KEY("system", TABLE_TEXT),
                                               TABLE_KEY("source", TABLE_TEXT)};

/* Whether each word of the command line is in one of texts[4]. */
static bool texts_have_words(const args *a, const char *const *texts) {
  for (size_t i = 0; i < a->n_words; ++i) {
    bool is_found = false;
    for (size_t k = 0; k < 4; ++k) is_found |= strcasestr(texts[k], a->words[i]) != NULL;
    if (!is_found) return false;
  }
  return true;
}

/* Reports the table, which has n rows, or that the words of the command line select none. */
static gl_status report_chosen(table *t, size_t n, table_format form, bool is_json, const args *a,
                               gl_error *err) {
  if (n > 0) return report_table(t, form, is_json, err);
  table_free(t);
  return gl_fail(err, GL_EINPUT,
                 "nothing in this list has '%s' in its name or meaning; without words `gepolab %s` "
                 "lists all",
                 a->words[a->n_words - 1], a->command->name);
}

/* Adds a row for each metric of other programs that the arguments select; returns their number. */
static size_t list_foreign(table *t, const args *a) {
  size_t n = 0;
  for (size_t i = 0; foreign_at(i) != NULL; ++i) {
    const foreign_metric *f = foreign_at(i);
    const char *known = f->known < METRIC_COUNT ? metric_about(f->known)->name : "";
    if (!texts_have_words(a, (const char *[]){f->name, known, f->system, f->definition})) continue;
    ++n;
    table_row(t);
    table_text(t, f->name);
    table_text(t, f->known < METRIC_COUNT ? metric_about(f->known)->name : NULL);
    table_text(t, f->definition);
    table_shown(t, "%s [%s, %s]", f->definition, f->system, f->source);
    table_text(t, f->system), table_text(t, f->source);
  }
  return n;
}

static size_t list_own_metrics(table *t, const args *a) {
  size_t n = 0;
  for (int m = 0; m < METRIC_COUNT; ++m) {
    const metric_info *about = metric_about((metric)m);
    if (!is_metric_wanted(about, a)) continue;
    ++n;
    table_row(t);
    table_text(t, about->name), table_text(t, about->unit), table_text(t, about->meaning);
    table_shown(t, "%s [%s]%s%s", about->meaning, about->source,
                about->misread[0] != '\0' ? "; misread: " : "", about->misread);
    table_text(t, about->source), table_text(t, about->misread);
  }
  return n;
}

static gl_status list_metrics(bool is_json, bool is_foreign, const args *a, gl_error *err) {
  table *t = is_foreign
                 ? table_new(foreign_columns, sizeof foreign_columns / sizeof *foreign_columns)
                 : table_new(metric_columns, sizeof metric_columns / sizeof *metric_columns);
  table_plain(t, 0);
  const size_t n = is_foreign ? list_foreign(t, a) : list_own_metrics(t, a);
  return report_chosen(t, n, TABLE_AS_TEXT, is_json, a, err);
}

static gl_status run_metrics(args *a, gl_error *err) {
  int json = 0, foreign = 0;
  const args_option options[] = {{"foreign", 0, ARGS_FLAG, NULL,
                                  "names in the logs of trainers, and what each counts", &foreign},
                                 {"json", 0, ARGS_FLAG, NULL, "the table as JSON", &json}};
  gl_status status = args_parse(a, options, 2, err);
  if (status != GL_OK || a->help) return status;
  return list_metrics(json, foreign, a, err);
}

const command command_metrics = {
    .name = "list metrics",
    .arguments = "[WORD…]",
    .words = {.input = ARGS_ANY, .max = 8},
    .summary = "what is measured at every update, with units and sources",
    .about = "The names are columns of the store, keys of JSON and labels of figures. With words, "
             "those\n"
             "whose name or meaning has them all. --foreign lists the names that trainers write,\n"
             "the metric that each is read as (none: it measures something else), and the\n"
             "trainer's own definition, with its version and source line.",
    .examples = "  gepolab list metrics\n  gepolab list metrics ess\n"
                "  gepolab list metrics --foreign staleness\n  gepolab list metrics --json",
    .run = run_metrics};

/* --- list definitions --- */

/* A row for each counter: name, system, unit, formula, source; as text each is a paragraph. */
static gl_status list_definitions(table_format form, bool is_json, const args *a, gl_error *err) {
  const bool plain = form == TABLE_AS_TEXT;
  const table_column columns[] = {
      {"name", TABLE_TEXT, .head = plain ? "" : "counter", .width = -34},
      {"system", TABLE_TEXT, .head = plain ? NULL : "system"},
      {"unit", TABLE_TEXT, .head = plain ? NULL : "unit"},
      {"formula", TABLE_TEXT, .head = plain ? "" : "what it counts"},
      {"source", TABLE_TEXT, .head = plain ? NULL : "read at"}};
  table *t = table_new(columns, sizeof columns / sizeof *columns);
  const staleness_definition *d;
  size_t n = 0;
  if (plain) table_plain(t, 0);
  for (size_t i = 0; (d = staleness_definition_at(i)) != NULL; ++i) {
    if (!texts_have_words(a, (const char *[]){d->name, d->system, d->unit, d->formula})) continue;
    ++n;
    table_row(t);
    table_text(t, d->name), table_text(t, d->system), table_text(t, d->unit);
    table_text(t, d->formula);
    if (plain) table_shown(t, "%s; %s [%s, %s]", d->formula, d->unit, d->system, d->source);
    table_text(t, d->source);
  }
  return report_chosen(t, n, form, is_json, a, err);
}

static gl_status run_definitions(args *a, gl_error *err) {
  int json = 0;
  table_format form = TABLE_AS_TEXT;
  const args_option options[] = {
      {"json", 0, ARGS_FLAG, NULL, "the table as JSON", &json},
      {"format", 0, ARGS_FORMAT, "FORMAT", "text, markdown or latex", &form}};
  gl_status status = args_parse(a, options, 2, err);
  if (status != GL_OK || a->help) return status;
  return list_definitions(form, json, a, err);
}

const command command_definitions = {
    .name = "list definitions",
    .arguments = "[WORD…]",
    .words = {.input = ARGS_ANY, .max = 8},
    .summary = "the staleness counters of trainers: what each counts, and where it was read",
    .about =
        "A counter's name is that of the system, a slash, and the name in its log. Here a\n"
        "sync is a publication of weights. With words, those that have them all in their name,\n"
        "system, unit or formula. `gepolab sim RECIPE --definitions` reads all counters for\n"
        "one simulated run.",
    .examples = "  gepolab list definitions\n  gepolab list definitions verl\n  gepolab list "
                "definitions --json",
    .run = run_definitions};

/* --- list formats --- */

static gl_status run_formats(args *a, gl_error *err) {
  static const table_column columns[] = {{"name", TABLE_TEXT, .head = "", .width = -16},
                                         {"about", TABLE_TEXT, .head = ""}};
  int json = 0;
  const args_option options[] = {{"json", 0, ARGS_FLAG, NULL, "the table as JSON", &json}};
  gl_status status = args_parse(a, options, 1, err);
  if (status != GL_OK || a->help) return status;
  const char *name = NULL, *about = NULL;
  size_t n = 0;
  table *t = table_new(columns, 2);
  table_plain(t, 0);
  for (size_t i = 0; (about = import_format_about(i, &name)) != NULL; ++i) {
    if (!texts_have_words(a, (const char *[]){name, about, "", ""})) continue;
    ++n;
    table_row(t);
    table_text(t, name), table_text(t, about);
  }
  for (size_t i = 0; i < token_formats_count(); ++i) {
    name = token_format_name(i), about = token_format_title(i);
    if (!texts_have_words(a, (const char *[]){name, about, "", ""})) continue;
    ++n;
    table_row(t);
    table_text(t, name);
    table_textf(t, "tokens (whatif, policy): %s", about);
  }
  return report_chosen(t, n, TABLE_AS_TEXT, json, a, err);
}

const command command_formats = {
    .name = "list formats",
    .arguments = "[WORD…]",
    .words = {.input = ARGS_ANY, .max = 8},
    .summary = "the formats of other programs' logs",
    .about =
        "analyze, plot and calibrate read series of steps, whatif and policy token-level logs,\n"
        "plan both, and fit these and tables. A file is known by its content, compressed with "
        "gzip\n"
        "or zstd or not. --log-format NAME (of whatif and policy: --format NAME) decides where "
        "two\n"
        "formats would read it. With words, the formats that have them all in their name or "
        "meaning.",
    .examples = "  gepolab list formats\n  gepolab list formats verl\n  gepolab analyze run.jsonl "
                "--log-format json_lines",
    .run = run_formats};

/* --- list kinds --- */

/* A list to print. at() returns the name of entry i and sets *about to its meaning; NULL past the
 * last. parameters() returns the entry's parameters. */
typedef struct kind_listing {
  const char *title;
  const char *(*at)(size_t i, const char **about);
  const delay_parameter *(*parameters)(size_t i); /* NULL: entries have none of their own */
  const char *all;                                /* what holds of all entries; NULL: nothing */
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
    {"worlds", toy_kind_at, NULL, NULL},
    {"decision processes", mdp_kind_at, NULL, NULL},
    {"delay distributions", dist_at, dist_parameters,
     "offset is subtracted from each draw; clamp: [l, u] limits it"},
    {"presets", preset_at, NULL, NULL},
};
enum { N_LISTINGS = sizeof listings / sizeof *listings };

static const table_column kind_columns[] = {{"name", TABLE_TEXT, .head = "", .width = -16},
                                            {"about", TABLE_TEXT, .head = ""},
                                            TABLE_KEY("parameters", TABLE_TABLE)},
                          parameter_columns[] = {TABLE_KEY("name", TABLE_TEXT),
                                                 TABLE_KEY("unit", TABLE_TEXT),
                                                 TABLE_KEY("default", TABLE_TEXT)};

/* Adds the entry's meaning; in text also its parameters: "… (mean in s, cap: none)". */
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
    table_title(t, "%s%s%s", l->title, l->all != NULL ? ": " : "", l->all != NULL ? l->all : "");
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

static gl_status run_kinds(args *a, gl_error *err) {
  int json = 0;
  const args_option options[] = {{"json", 0, ARGS_FLAG, NULL, "the same as JSON", &json}};
  gl_status status = args_parse(a, options, 1, err);
  if (status != GL_OK || a->help) return status;
  return list_kinds_of_all(json, err);
}

const command command_kinds = {
    .name = "list kinds",
    .arguments = "",
    .summary = "kinds of world, delay distributions and presets, with their parameters",
    .about = "Lists what `world.kind`, the `distribution` of a delay and `cluster.preset` may be,\n"
             "from the tables that the program itself reads. Most distributions also take\n"
             "`interval: [l, u]` and `confidence` in place of their parameters. Tasks of\n"
             "a transformer are listed by `gepolab llm tasks`.",
    .examples = "  gepolab list kinds --json",
    .run = run_kinds};

/* --- list presets --- */
/* `make docs` writes the output into experiments/RECIPES.md. */

enum { MOST_PRESETS = 64, FIELDS_SIZE = 256 };

/* A published preset, or one of the user's own, whose source is its file. */
typedef struct listed_preset {
  const cluster_preset *published; /* the published preset, or the base of the user's own */
  const char *name, *about, *source, *read;
  char *fields, *made; /* owned; made: the description of the user's own */
  bool wanted;
} listed_preset;

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
  case QUEUE_VERSION_ORDER:
    return "version_order";
  case QUEUE_IN_ORDER:
    return "in_order";
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

/* Writes the fields of the preset, except those with the same value in every other preset. */
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
  if (p->cancels_stale) add_preset_field(text, "cancel_stale", "true");
  if (p->colocated) add_preset_field(text, "colocated", "{switch: always}");
  add_preset_field(text, "learner.queue", preset_queue(p));
  if (p->publish_every != 1) add_preset_limit(text, "learner.publish_every", p->publish_every);
  return text;
}

/* Prints a title, such as "fields", and a text, which is wrapped in its column. */
static void print_wrapped(const char *title, const char *text) {
  const size_t column = (size_t)printf("  %-13s ", title);
  shown_wrap(text, column, column, stdout);
  putchar('\n');
}

/* Returns the fields that the user's preset changes, malloc'd:
 * `samplers: 8, delay: {"distribution":"gamma",…}`. */
static char *own_preset_fields(const cfg_node *section) {
  char *text = must_copy("", "a preset");
  for (size_t i = 0; i < cfg_size(section); ++i) {
    const cfg_node *value = cfg_at(section, i);
    if (strcmp(cfg_key_at(section, i), "preset") == 0) continue;
    char *nested =
        cfg_kind_of(value) != CFG_SCALAR ? must_have(cfg_canonical(value), "a preset") : NULL;
    char *longer = must_textf("a preset", "%s%s%s: %s", text, *text != '\0' ? ", " : "",
                              cfg_key_at(section, i), nested != NULL ? nested : cfg_text(value));
    free(nested);
    free(text);
    text = longer;
  }
  return text;
}

static const cluster_preset *preset_named(const char *name) {
  const cluster_preset *p;
  for (size_t i = 0; (p = cluster_preset_at(i)) != NULL && strcmp(p->name, name) != 0; ++i)
    continue;
  return p;
}

/* Lists the published presets, then the user's own. */
static listed_preset *list_presets(const cfg_own *own, size_t *n) {
  size_t published = 0;
  while (cluster_preset_at(published) != NULL) ++published;
  *n = published + cfg_own_count(own, "presets");
  listed_preset *all = MUST_ARRAY(listed_preset, *n, "the presets");
  for (size_t i = 0; i < *n; ++i) {
    listed_preset *l = &all[i];
    if (i < published) {
      const cluster_preset *p = l->published = cluster_preset_at(i);
      char fields[FIELDS_SIZE];
      l->name = p->name, l->about = p->about, l->source = p->source, l->read = p->read;
      l->fields = must_copy(preset_fields(p, fields), "a preset");
      continue;
    }
    const cfg_node *section = cfg_own_at(own, "presets", i - published, &l->name);
    const char *base = cfg_text(cfg_find(section, "preset"));
    l->published = preset_named(base);
    l->about = l->made = must_textf("a preset", "your own, a change of %s", base);
    l->source = cfg_source_path(section);
    l->fields = own_preset_fields(section);
  }
  return all;
}

static void free_presets(listed_preset *all, size_t n) {
  for (size_t i = 0; i < n && all != NULL; ++i) {
    free(all[i].fields);
    free(all[i].made);
  }
  free(all);
}

static void preset_print_plain(const listed_preset *l, bool is_first) {
  const int named = printf("%s%s: ", is_first ? "" : "\n", l->name);
  shown_wrap(l->about, (size_t)named - !is_first, 4, stdout);
  putchar('\n');
  print_wrapped("fields", l->fields);
  print_wrapped("source", shown(l->source).text);
  print_wrapped("mapping", l->published->mapping);
  print_wrapped("not modelled", l->published->not_modelled);
}

static void preset_print_markdown(const listed_preset *l) {
  printf("| `%s` | %s | %s | %s | %s | %s |\n", l->name, l->about, l->fields, l->source,
         l->published->mapping, l->published->not_modelled);
}

static void preset_add_json(cJSON *list, const listed_preset *l) {
  json_put(json_object(list, NULL),
           "name %s, about %s, fields %s, source %s, read %s, mapping %s, not_modelled %s", l->name,
           l->about, l->fields, l->source, l->read, l->published->mapping,
           l->published->not_modelled);
}

typedef enum preset_form { PLAIN, MARKDOWN, JSON } preset_form;

static gl_status print_presets(const listed_preset *all, size_t n, preset_form as, gl_error *err) {
  cJSON *list = as == JSON ? cJSON_CreateArray() : NULL;
  bool is_first = true;
  if (as == MARKDOWN)
    puts("| preset | what it is | fields | source | mapping | not modelled |\n"
         "|---|---|---|---|---|---|");
  for (size_t i = 0; i < n; ++i) {
    if (!all[i].wanted) continue;
    switch (as) {
    case PLAIN:
      preset_print_plain(&all[i], is_first);
      break;
    case MARKDOWN:
      preset_print_markdown(&all[i]);
      break;
    case JSON:
      preset_add_json(list, &all[i]);
      break;
    }
    is_first = false;
  }
  return as == JSON ? report_json(list, err) : GL_OK;
}

/* Checks that the text is a month such as "2026-08". */
static gl_status check_month(const char *text, gl_error *err) {
  int year, month, end = 0;
  if (sscanf(text, "%4d-%2d%n", &year, &month, &end) == 2 && end == 7 && text[7] == '\0' &&
      month >= 1 && month <= 12)
    return GL_OK;
  return gl_fail(err, GL_EINPUT, "--since needs a month, as in --since 2026-08, not '%s'",
                 shown(text).text);
}

/* Leaves out presets whose source was read before that month. */
static gl_status drop_older(listed_preset *all, size_t n, const char *since, gl_error *err) {
  bool any = false;
  if (since == NULL) return GL_OK;
  gl_status status = check_month(since, err);
  for (listed_preset *l = all; l < all + n; ++l) {
    l->wanted = l->wanted && l->read != NULL && strcmp(l->read, since) >= 0;
    any |= l->wanted;
  }
  if (status != GL_OK || any) return status;
  return gl_fail(err, GL_EINPUT, "no preset was read at its source in %s or later", since);
}

/* Marks the presets named as arguments; without arguments all presets. */
static gl_status choose_presets(listed_preset *all, size_t n, const args *a, gl_error *err) {
  const char **names = MUST_ARRAY(const char *, n, "the presets' names");
  gl_status status = GL_OK;
  size_t which = 0;
  for (size_t i = 0; i < n; ++i) {
    names[i] = all[i].name;
    all[i].wanted = a->n_words == 0;
  }
  for (size_t i = 0; i < a->n_words && status == GL_OK; ++i) {
    status = args_choose(&which, "the preset", a->words[i], names, n, err);
    if (status == GL_OK) all[which].wanted = true;
  }
  free(names);
  return status;
}

static gl_status run_presets(args *a, gl_error *err) {
  static const char *const formats[] = {"text", "markdown"};
  int json = 0;
  const char *format = NULL, *since = NULL;
  cfg_own *own = NULL;
  listed_preset *all = NULL;
  size_t chosen = 0, n = 0;
  const args_option options[] = {
      {"since", 0, ARGS_TEXT, "YYYY-MM", "those whose source was read in that month or later",
       &since},
      {"format", ARGS_OLD('f'), ARGS_TEXT, "text|markdown", "how they are written", &format},
      {"json", 0, ARGS_FLAG, NULL, "the same as JSON", &json}};
  gl_status status = args_parse(a, options, 3, err);
  if (status != GL_OK || a->help) return status;
  if (format != NULL) status = args_choose(&chosen, "--format", format, formats, 2, err);
  if (status == GL_OK) status = program_own(&own, err);
  if (status == GL_OK) all = list_presets(own, &n);
  if (status == GL_OK) status = choose_presets(all, n, a, err);
  if (status == GL_OK) status = drop_older(all, n, since, err);
  if (status == GL_OK)
    status = print_presets(all, n, json ? JSON : chosen == 1 ? MARKDOWN : PLAIN, err);
  free_presets(all, n);
  cfg_own_free(own);
  return status;
}

const command command_presets = {
    .name = "list presets",
    .arguments = "[PRESET…]",
    .words = {.input = ARGS_ANY, .max = MOST_PRESETS, .presets = true},
    .summary = "presets of a cluster: their sources, and what of them is not modelled",
    .about =
        "For each preset, or those named: the fields it sets, the paper or commit these were\n"
        "taken from, which parameters of the system correspond to which fields, and what of the\n"
        "system the clock does not model. `assumed` marks settings the source does not state.\n"
        "Your own presets stand last, with their file as source.",
    .examples = "  gepolab list presets verl_async areal\n  gepolab list presets --since 2026-01\n "
                " gepolab list presets --json",
    .run = run_presets};
