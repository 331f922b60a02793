/* gepolab fields: every field of a recipe with its default, unit and meaning, printed from the
 * table of core/config/fields.h. The last part of experiments/RECIPES.md is this command's output.
 */
#include "core/config/config.h"
#include "core/config/fields.h"
#include "experiments/base/args.h"
#include "experiments/base/print_json.h"

#include <stdio.h>
#include <string.h>

enum { DEFAULT_SIZE = 512, LONGEST_HINTS = 1024 };

/* Appends to text of DEFAULT_SIZE; what does not fit is cut. */
static void append(char *text, const char *what) {
  const size_t used = strlen(text);
  snprintf(text + used, DEFAULT_SIZE - used, "%s", what);
}

static const char *last_word(const char *path) {
  const char *dot = strrchr(path, '.');
  return dot != NULL ? dot + 1 : path;
}

/* Whether entry i and its n - 1 neighbours all hold under this condition only. */
static int is_common(const field_condition *c, size_t i, size_t n) {
  for (size_t k = i; k < i + n; ++k) {
    int found = 0;
    for (size_t m = 0; m < FIELD_MAX_CONDITIONS && fields_at(k)->when[m].path != NULL; ++m) {
      const field_condition *other = &fields_at(k)->when[m];
      found = found || (strcmp(other->path, c->path) == 0 && other->is != NULL && c->is != NULL &&
                        strcmp(other->is, c->is) == 0);
    }
    if (!found) return 0;
  }
  return 1;
}

/* Where entry k of a path's entries i, i + 1, ..., i + n - 1 holds and not all of them do: "sync",
 * "without lengths and delay". */
static void append_case(char *text, size_t k, size_t i, size_t n) {
  const field *f = fields_at(k);
  const char *between = "";
  for (size_t m = 0; m < FIELD_MAX_CONDITIONS && f->when[m].path != NULL; ++m) {
    const field_condition *c = &f->when[m];
    if (is_common(c, i, n)) continue;
    append(text, between);
    append(text, c->is != NULL ? last_word(c->path) : "no");
    append(text, " ");
    append(text, c->is != NULL ? c->is : last_word(c->path));
    between = " and ";
  }
}

/* The default of the path that entry i begins, with its cases: "1 (preset sync); 4 (preset areal,
 * preset fifo)". Returns the number of the path's entries. */
static size_t describe_default(size_t i, char text[DEFAULT_SIZE]) {
  size_t n = 1;
  const char *between = "";
  text[0] = '\0';
  while (fields_at(i + n) != NULL && strcmp(fields_at(i + n)->path, fields_at(i)->path) == 0) ++n;
  for (size_t k = i; k < i + n; ++k) {
    const char *fallback = fields_at(k)->fallback, *comma = "";
    size_t same = 0, first = k;
    for (size_t m = i; m < i + n && fallback != NULL; ++m)
      if (fields_at(m)->fallback != NULL && strcmp(fields_at(m)->fallback, fallback) == 0) {
        ++same;
        if (m < first) first = m;
      }
    if (fallback == NULL || first < k) continue; /* told with the first entry that has it */
    append(text, between);
    append(text, fallback[0] != '\0' ? fallback : "empty");
    between = "; ";
    if (n == 1 || same == n) continue;
    append(text, " (");
    for (size_t m = k; m < i + n; ++m) {
      if (fields_at(m)->fallback == NULL || strcmp(fields_at(m)->fallback, fallback) != 0) continue;
      append(text, comma);
      append_case(text, m, i, n);
      comma = ", ";
    }
    append(text, ")");
  }
  return n;
}

static const char *kind_name(field_kind kind) {
  switch (kind) {
  case VALUE_NUMBER:
    return "number";
  case VALUE_CHOICE:
    return "choice";
  case VALUE_FLAG:
    return "flag";
  case VALUE_TEXT:
    return "text";
  case VALUE_LAW:
    return "law";
  case VALUE_LIST:
    return "list";
  case VALUE_SECTION:
    return "section";
  }
  return "";
}

/* Whether the path is `under` or lies in that section; NULL: all are. */
static int lies_under(const char *path, const char *under) {
  if (under == NULL) return 1;
  const size_t n = strlen(under);
  return strncmp(path, under, n) == 0 && (path[n] == '\0' || path[n] == '.');
}

/* A cell of a Markdown table: a bar ends it otherwise. */
static void print_cell(const char *text) {
  for (const char *c = text; *c != '\0'; ++c) {
    if (*c == '|') putchar('\\');
    putchar(*c);
  }
}

static void print_markdown(const field *f, const char *fallback) {
  printf("| `%s` | %s | ", f->path, kind_name(f->kind));
  print_cell(fallback);
  printf(" | %s | ", f->unit);
  print_cell(f->about != NULL ? f->about : "");
  printf(" |\n");
}

static void print_plain(const field *f, const char *fallback) {
  printf("%-34s %-8s %s%s%s\n", f->path, kind_name(f->kind), fallback,
         f->unit[0] != '\0' && fallback[0] != '\0' ? " " : "",
         f->unit[0] != '\0' && fallback[0] == '\0' ? "" : f->unit);
  if (f->about != NULL) printf("    %s\n", f->about);
}

static cJSON *field_json(const field *f, const char *fallback) {
  cJSON *item = cJSON_CreateObject();
  if (json_add_string(item, "path", f->path) == NULL ||
      json_add_string(item, "kind", kind_name(f->kind)) == NULL ||
      json_add_string(item, "default", fallback) == NULL ||
      json_add_string(item, "unit", f->unit) == NULL ||
      json_add_string(item, "meaning", f->about != NULL ? f->about : "") == NULL) {
    cJSON_Delete(item);
    return NULL;
  }
  return item;
}

typedef enum form { PLAIN, MARKDOWN, JSON } form;

/* All fields of the section, in the table's order. */
static gl_status print_fields(const char *under, form as, gl_error *err) {
  char fallback[DEFAULT_SIZE];
  cJSON *list = as == JSON ? cJSON_CreateArray() : NULL;
  int good = as != JSON || list != NULL;
  if (as == MARKDOWN) puts("| field | kind | default | unit | meaning |\n|---|---|---|---|---|");
  for (size_t i = 0; fields_at(i) != NULL && good;) {
    const field *f = fields_at(i);
    i += describe_default(i, fallback);
    if (!lies_under(f->path, under)) continue;
    if (as == PLAIN) print_plain(f, fallback);
    if (as == MARKDOWN) print_markdown(f, fallback);
    if (as == JSON) {
      cJSON *item = field_json(f, fallback);
      good = item != NULL && cJSON_AddItemToArray(list, item);
    }
  }
  if (as != JSON) return GL_OK;
  if (!good) {
    cJSON_Delete(list);
    list = NULL;
  }
  return report_json(list, err);
}

static gl_status refuse_unknown(const char *path, gl_error *err) {
  const char *names[LONGEST_HINTS];
  size_t n = 0;
  for (size_t i = 0; fields_at(i) != NULL && n < LONGEST_HINTS; ++i)
    names[n++] = fields_at(i)->path;
  char hint[CFG_HINT_SIZE];
  return gl_fail(err, GL_EINPUT, "recipes have no field '%s'%s; `gepolab fields` lists them", path,
                 cfg_hint(path, names, n, hint));
}

static gl_status run_fields(const command *self, int argc, char **argv, gl_error *err) {
  int json = 0;
  const char *format = NULL;
  static const char *const formats[] = {"text", "markdown"};
  size_t chosen = 0;
  const args_option options[] = {
      {"format", 'f', ARGS_TEXT, "FORMAT", "text or markdown", &format},
      {"json", 0, ARGS_FLAG, NULL, "path, kind, default, unit and meaning as JSON", &json}};
  args a;
  gl_status status = args_parse(&a, self, options, 2, (args_shape){0, 1, 0}, argc, argv, err);
  if (status == GL_OK && !a.help && format != NULL)
    status = args_choose(&chosen, "--format", format, formats, 2, err);
  if (status == GL_OK && !a.help) {
    const char *under = a.n_words > 0 ? a.words[0] : NULL;
    if (under != NULL && fields_named(under) == NULL && !fields_is_section(under))
      status = refuse_unknown(under, err);
    else
      status = print_fields(under, json ? JSON : chosen == 1 ? MARKDOWN : PLAIN, err);
  }
  args_fini(&a);
  return status;
}

const command command_fields = {
    .name = "fields",
    .arguments = "[PATH]",
    .summary = "every field of a recipe: default, unit, meaning",
    .about =
        "PATH is a field or a section, such as cluster.learner. Fields that a recipe leaves out\n"
        "have the default; where it depends on another field, the cases are named. The fields\n"
        "of an algorithm are listed by `gepolab algorithms --fields`.",
    .examples = "  gepolab fields cluster.up\n  gepolab fields --format markdown",
    .run = run_fields};
