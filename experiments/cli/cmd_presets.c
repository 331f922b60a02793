/* gepolab list presets: the defaults of each preset of a cluster, the paper or commit they were
 * taken from, which of its parameters stand for which fields, and what of it the clock does not
 * model. `make docs` writes its output into experiments/RECIPES.md. */
#include "core/config/config.h"
#include "experiments/base/args.h"
#include "experiments/base/print_json.h"
#include "sim/cluster.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST_PRESETS = 64, FIELDS_SIZE = 256 };

/* --- a preset's fields, as a recipe would state them --- */

static const char *queue_of(const cluster_preset *p) {
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

static const char *unit_of(const cluster_preset *p) {
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

static void add(char text[FIELDS_SIZE], const char *name, const char *value) {
  const size_t used = strlen(text);
  snprintf(text + used, FIELDS_SIZE - used, "%s%s: %s", used > 0 ? ", " : "", name, value);
}

static void add_limit(char text[FIELDS_SIZE], const char *name, int64_t limit) {
  char number[24];
  snprintf(number, sizeof number, "%" PRId64, limit);
  if (limit < INT64_MAX) add(text, name, number);
}

/* What is as in every other preset is left out. */
static const char *fields_of(const cluster_preset *p, char text[FIELDS_SIZE]) {
  const int64_t gated = p->window < p->ahead ? p->window : p->ahead;
  text[0] = '\0';
  add_limit(text, "samplers", (int64_t)p->samplers);
  add(text, "sync", p->sync == SYNC_PULL ? "pull" : "push");
  add(text, "unit", unit_of(p));
  if (p->in_flight && p->unit == UNIT_BATCH) add(text, "in_flight", "true");
  if (p->unit != UNIT_BATCH && p->sync == SYNC_PUSH)
    add(text, "partial", p->in_flight ? "continue" : "wait");
  if (p->kv_cache == KV_CACHE_KEEP) add(text, "kv_cache", "keep");
  add_limit(text, "ahead", p->ahead);
  add_limit(text, "window", p->trains_late ? p->window : gated);
  add(text, "learner.queue", queue_of(p));
  if (p->publish_every != 1) add_limit(text, "learner.publish_every", p->publish_every);
  return text;
}

/* --- printing --- */

/* Words in lines of at most 78 characters, all but the first below the text of the first. */
static void print_wrapped(const char *title, const char *text) {
  size_t column = (size_t)printf("  %-13s ", title);
  const size_t left = column;
  for (const char *word = text; *word != '\0';) {
    const size_t n = strcspn(word, " ");
    if (column > left && column + 1 + n > 78) {
      printf("\n%*s", (int)left, "");
      column = left;
    }
    column += (size_t)printf("%s%.*s", column > left ? " " : "", (int)n, word);
    word += n;
    word += strspn(word, " ");
  }
  putchar('\n');
}

static void print_plain(const cluster_preset *p, int first) {
  char fields[FIELDS_SIZE];
  printf("%s%s: %s\n", first ? "" : "\n", p->name, p->about);
  print_wrapped("fields", fields_of(p, fields));
  print_wrapped("source", p->source);
  print_wrapped("mapping", p->mapping);
  print_wrapped("not modelled", p->not_modelled);
}

static void print_markdown(const cluster_preset *p) {
  char fields[FIELDS_SIZE];
  printf("| `%s` | %s | %s | %s | %s | %s |\n", p->name, p->about, fields_of(p, fields), p->source,
         p->mapping, p->not_modelled);
}

static int add_json(cJSON *list, const cluster_preset *p) {
  char fields[FIELDS_SIZE];
  cJSON *item = json_append_object(list);
  return item != NULL && json_add_string(item, "name", p->name) != NULL &&
         json_add_string(item, "about", p->about) != NULL &&
         json_add_string(item, "fields", fields_of(p, fields)) != NULL &&
         json_add_string(item, "source", p->source) != NULL &&
         json_add_string(item, "mapping", p->mapping) != NULL &&
         json_add_string(item, "not_modelled", p->not_modelled) != NULL;
}

typedef enum form { PLAIN, MARKDOWN, JSON } form;

/* wanted[i]: the i-th is printed. */
static gl_status print_presets(const int *wanted, form as, gl_error *err) {
  cJSON *list = as == JSON ? cJSON_CreateArray() : NULL;
  int good = as != JSON || list != NULL, first = 1;
  if (as == MARKDOWN)
    puts("| preset | what it is | fields | source | mapping | not modelled |\n"
         "|---|---|---|---|---|---|");
  for (size_t i = 0; cluster_preset_at(i) != NULL && good; ++i) {
    if (!wanted[i]) continue;
    switch (as) {
    case PLAIN:
      print_plain(cluster_preset_at(i), first);
      break;
    case MARKDOWN:
      print_markdown(cluster_preset_at(i));
      break;
    case JSON:
      good = add_json(list, cluster_preset_at(i));
      break;
    }
    first = 0;
  }
  if (as != JSON) return GL_OK;
  return report_json_if(good, list, err);
}

/* Marks the named presets; all where none is named. */
static gl_status choose(int *wanted, const args *a, gl_error *err) {
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
      {"format", 'f', ARGS_TEXT, "text|markdown", "how they are written", &format},
      {"json", 0, ARGS_FLAG, NULL, "the same as JSON", &json}};
  args a;
  gl_status status =
      args_parse(&a, self, options, 2, (args_shape){0, MOST_PRESETS, 0}, argc, argv, err);
  if (status == GL_OK && !a.help && format != NULL)
    status = args_choose(&chosen, "--format", format, formats, 2, err);
  if (status == GL_OK && !a.help) status = choose(wanted, &a, err);
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
