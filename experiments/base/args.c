/* The words after a command: options, paths and overrides; and help printed from their table. */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include "experiments/base/args.h"

#include "experiments/base/program.h"

#include "core/base/array.h"
#include "core/base/display_text.h"
#include "core/base/file.h"
#include "core/base/table.h"
#include "core/config/config.h"
#include "core/config/fields.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_OPTIONS = 32, HELP_COLUMN = 26 };

typedef struct parser {
  args *out;
  const command *command;
  const args_option *options;
  size_t n_options;
  int argc;
  char **argv;
  int next;                           /* index of the next word of argv */
  const char *own[PROGRAM_OWN_FILES]; /* values of --algorithms and --presets */
  bool prints;                        /* --print was given */
  const char *given[MAX_OPTIONS];     /* the value that an option had before; NULL: none */
  gl_error *err;
} parser;

static bool has_letter(const args_option *o) {
  return o->letter != 0 && (o->letter & 0x80) == 0;
}

/* Whether the choices of an option are too many for the column of names. */
static bool has_long_value(const args_option *o) {
  return o->value != NULL && strlen(o->value) > 40;
}

/* Writes "-o, --output FILE"; four blanks replace a missing letter. */
static void option_left(const args_option *o, char *left, size_t size) {
  int used =
      has_letter(o) ? snprintf(left, size, "-%c, ", o->letter) : snprintf(left, size, "    ");
  const char *value = o->value == NULL ? "" : has_long_value(o) ? "NAME" : o->value;
  snprintf(left + used, size - (size_t)used, "--%s%s%s", o->name, *value != '\0' ? " " : "", value);
}

/* The help of an option; before it its choices, if there are too many to stand beside its name. */
enum { ABOUT_SIZE = 512 };
static const char *option_about(const args_option *o, char text[ABOUT_SIZE]) {
  if (!has_long_value(o)) return o->help;
  size_t n = 0;
  for (const char *c = o->value; *c != '\0' && n + 4 < ABOUT_SIZE; ++c)
    n += (size_t)sprintf(text + n, *c == '|' ? ", " : "%c", *c);
  snprintf(text + n, ABOUT_SIZE - n, ": %s", o->help);
  return text;
}

/* Whether the command's first word may be the name of a file that is inside the program. */
static bool is_embedded(const command *c) {
  return c->words.input == ARGS_RECIPE || c->words.input == ARGS_CLUSTER;
}

/* Whether the command reads algorithms, so that it has the option --algorithms. */
static bool has_algorithms(const command *c) {
  return c->words.input == ARGS_RECIPE || c->words.algorithms;
}

/* Whether the command reads clusters, so that it has the option --presets. */
static bool has_presets(const command *c) {
  return c->words.input == ARGS_RECIPE || c->words.presets;
}

/* Whether the command has the option of the i-th file of own definitions. */
static bool has_own_file(const command *c, int i) {
  return i == 0 ? has_algorithms(c) : has_presets(c);
}

/* Options that many commands have. */
typedef struct common_option {
  const char *name, *value, *help;
} common_option;

/* The i-th option of those that the command has; false past the last. */
static bool common_option_at(const command *c, int i, common_option *o) {
  if (is_embedded(c) && i-- == 0) {
    *o = (common_option){"print", NULL,
                         "print the built-in recipe, cluster or description, and stop"};
    return true;
  }
  for (int k = 0; k < PROGRAM_OWN_FILES; ++k) {
    const program_own_file *f = &program_own_files[k];
    if (!has_own_file(c, k) || i-- > 0) continue;
    *o = (common_option){f->key, f->value, f->help};
    return true;
  }
  return false;
}

static void print_option(const char *left, const char *help) {
  const bool fits = strlen(left) <= HELP_COLUMN;
  printf("  %-*s%s%*s", HELP_COLUMN, left, fits ? " " : "\n", fits ? 0 : HELP_COLUMN + 3, "");
  shown_wrap(help, HELP_COLUMN + 3, HELP_COLUMN + 3, stdout);
  putchar('\n');
}

void args_print_about(const command *c, bool has_options, FILE *to) {
  const char *options = has_options ? " [options]" : "";
  const size_t name = strlen(c->name);
  fprintf(to, "gepolab %s: ", c->name);
  shown_wrap(c->summary, strlen("gepolab : ") + name, 4, to);
  fprintf(to, "\n\nusage: gepolab %s%s%s", c->name, options, c->arguments[0] != 0 ? " " : "");
  shown_wrap(c->arguments, strlen("usage: gepolab  ") + name + strlen(options), 7, to);
  fputs("\n\n", to);
  shown_paragraphs(c->about, to);
  fputs("\n\n", to);
}

static void print_help(const command *c, const args_option *options, size_t n) {
  args_print_about(c, n > 0, stdout);
  puts("options:");
  for (size_t i = 0; i < n; ++i) {
    char left[64], about[ABOUT_SIZE];
    if (options[i].help == NULL) continue;
    option_left(&options[i], left, sizeof left);
    print_option(left, option_about(&options[i], about));
  }
  common_option o;
  for (int i = 0; common_option_at(c, i, &o); ++i) {
    char left[64];
    snprintf(left, sizeof left, "    --%s%s%s", o.name, o.value != NULL ? " " : "",
             o.value != NULL ? o.value : "");
    print_option(left, o.help);
  }
  print_option("-h, --help", "print this");
  printf("\nexamples:\n%s\n", c->examples);
}

/* Prints text for the manual in roff, in which a line that begins with '.' or ' is a request:
 * escapes these and other special characters. */
static void print_roff(const char *text) {
  for (const char *c = text; *c != '\0'; ++c) {
    if ((c == text || c[-1] == '\n') && (*c == '.' || *c == '\'')) fputs("\\&", stdout);
    if (*c == '\\' || *c == '-') putchar('\\');
    putchar(*c == '\\' ? 'e' : *c);
  }
}

static void print_man(const command *c, const args_option *options, size_t n) {
  fputs(".SS \"", stdout);
  print_roff(c->name);
  putchar(' ');
  print_roff(c->arguments);
  fputs("\"\n", stdout);
  print_roff(c->summary);
  fputs(".\n.PP\n", stdout);
  print_roff(c->about);
  putchar('\n');
  for (size_t i = 0; i < n; ++i) {
    char left[64], about[ABOUT_SIZE];
    if (options[i].help == NULL) continue;
    option_left(&options[i], left, sizeof left);
    fputs(".TP\n.B ", stdout);
    print_roff(left + (has_letter(&options[i]) ? 0 : 4));
    putchar('\n');
    print_roff(option_about(&options[i], about));
    putchar('\n');
  }
  common_option o;
  for (int i = 0; common_option_at(c, i, &o); ++i) {
    printf(".TP\n.B \\-\\-%s%s%s\n", o.name, o.value != NULL ? " " : "",
           o.value != NULL ? o.value : "");
    print_roff(o.help);
    putchar('\n');
  }
  fputs(".PP\nExamples:\n.nf\n", stdout);
  print_roff(c->examples);
  fputs("\n.fi\n", stdout);
}

/* --- rows for completion --- */

/* Prints a field of a row, then `after`. Tabs and newlines in the field, which would end it, are
 * printed as blanks. */
static void args_print_field(const char *text, char after) {
  for (const char *c = text[0] != '\0' ? text : "-"; *c != '\0'; ++c)
    putchar(*c == '\t' || *c == '\n' ? ' ' : *c);
  putchar(after);
}

void args_print_command_row(const command *c) {
  args_print_field("c", '\t');
  args_print_field(c->name, '\t');
  args_print_field(c->arguments, '\t');
  args_print_field(c->summary, '\n');
}

/* Prints rows of fields with tabs between. An option has: "o", command, letter, long form, value,
 * help. */
static void args_print_rows(const command *c, const args_option *options, size_t n) {
  args_print_command_row(c);
  for (size_t i = 0; i < n; ++i) {
    const args_option *o = &options[i];
    const char letter[] = {'-', o->letter, '\0'};
    if (o->help == NULL) continue;
    args_print_field("o", '\t');
    args_print_field(c->name, '\t');
    args_print_field(has_letter(o) ? letter : "", '\t');
    printf("--%s\t", o->name);
    args_print_field(o->value != NULL ? o->value : "", '\t');
    args_print_field(o->help, '\n');
  }
  common_option o;
  for (int i = 0; common_option_at(c, i, &o); ++i)
    printf("o\t%s\t-\t--%s\t%s\t%s\n", c->name, o.name, o.value != NULL ? o.value : "-", o.help);
}

static const args_option *option_named(const parser *p, const char *name, size_t length) {
  for (size_t i = 0; i < p->n_options; ++i)
    if (strlen(p->options[i].name) == length && strncmp(p->options[i].name, name, length) == 0)
      return &p->options[i];
  return NULL;
}

static const args_option *option_lettered(const parser *p, char letter) {
  for (size_t i = 0; i < p->n_options; ++i)
    if (p->options[i].letter == letter || p->options[i].letter == ARGS_OLD(letter))
      return &p->options[i];
  return NULL;
}

/* For commands with a recipe: refuses `--steps 20`, which should be steps=20. Returns true if it
 * did. */
static bool is_field_as_option(const parser *p, const char *word, size_t length, gl_error *err) {
  char name[64], own[FIELD_HINT_SIZE], path[FIELD_HINT_SIZE];
  const char *of = is_embedded(p->command) ? "recipe" : "algorithm";
  if (!p->command->words.overrides) return false;
  snprintf(name, sizeof name, "%.*s", (int)length, word);
  if (*fields_elsewhere(name, NULL, own) == '\0') return false;
  if (!is_embedded(p->command)) {
    if (strncmp(own, "algorithm.", 10) != 0) return false;
    memmove(own, own + 10, strlen(own + 10) + 1);
  }
  const char *next = p->next < p->argc && p->argv[p->next][0] != '-' ? p->argv[p->next] : "VALUE";
  snprintf(path, sizeof path, "%.*s", (int)strcspn(own, " "), own);
  const bool is_list = strncmp(path, "sweep.", 6) == 0;
  gl_fail(err, GL_EINPUT,
          "%s has no option --%s; a field of the %s is written key=value: %s=%s%s%s%s",
          p->command->name, name, of, path, is_list ? "[" : "",
          word[length] == '=' ? word + length + 1 : next, is_list ? "]" : "", own + strlen(path));
  return true;
}

/* For commands with a recipe: refuses `steps 20` and `steps = 20`, which should be steps=20.
 * Returns true if it did. */
static bool is_field_as_word(const parser *p, const char *word) {
  char own[FIELD_HINT_SIZE];
  if (p->command->words.input != ARGS_RECIPE) return false;
  if (*fields_elsewhere(word, NULL, own) == '\0') return false;
  int at = p->next;
  const bool is_assigned = at < p->argc && strcmp(p->argv[at], "=") == 0;
  if (is_assigned) ++at;
  /* The last component of a nested field's path, without a value after it, is more likely a name
   * than a field. */
  if (!is_assigned && at == p->argc && strchr(own, '.') != NULL && strchr(word, '.') == NULL)
    return false;
  gl_fail(p->err, GL_EINPUT,
          "%s does not know what to do with '%s'; a field of the recipe is written key=value, "
          "without blanks: %.*s=%s",
          p->command->name, word, (int)strcspn(own, " "), own,
          at < p->argc ? p->argv[at] : "VALUE");
  return true;
}

static bool args_is_file(args_kind kind) {
  return kind == ARGS_READ || kind == ARGS_WRITE || kind == ARGS_STUDY;
}

static bool args_is_written(args_kind kind) {
  return kind == ARGS_WRITE || kind == ARGS_STUDY;
}

static const char *file_of(const args_option *o) {
  return args_is_file(o->kind) ? *(const char *const *)o->target : NULL;
}

/* Refuses the unit of `key=10 min`, which should be key=10min. Returns true if it did. */
static bool is_unit_as_word(const parser *p, const char *word) {
  const args *a = p->out;
  const char *last = a->n_overrides > 0 ? a->overrides[a->n_overrides - 1] : "";
  const size_t n = strlen(last);
  if (n == 0 || !isdigit((unsigned char)last[n - 1]) || !isalpha((unsigned char)word[0]) ||
      p->next < 2 || p->argv[p->next - 2] != last)
    return false;
  gl_fail(p->err, GL_EINPUT,
          "%s does not know what to do with '%s'; a value and its unit are written without a "
          "blank: %s%s",
          p->command->name, word, last, word);
  return true;
}

/* How many brackets of YAML the word opens and does not close. */
static int open_brackets(const char *word) {
  int n = 0;
  for (; *word != '\0'; ++word) n += strchr("{[", *word) != NULL ? 1 : strchr("}]", *word) ? -1 : 0;
  return n;
}

/* Refuses a part of a map or list that the shell has split at its blanks. Returns true if it did.
 */
static bool is_split_map(const parser *p, const char *word) {
  char whole[400];
  int first = p->next - 1, open = 0, last;
  while (first > 0 && open_brackets(p->argv[first]) <= 0) --first;
  if (first == 0 || first == p->next - 1) return false;
  size_t used = 0;
  for (last = first; last < p->argc && used < sizeof whole; ++last) {
    used += (size_t)snprintf(whole + used, sizeof whole - used, "%s%s", last > first ? " " : "",
                             p->argv[last]);
    if ((open += open_brackets(p->argv[last])) <= 0) break;
  }
  if (last < p->next - 1 || used >= sizeof whole) return false;
  gl_fail(p->err, GL_EINPUT,
          "%s does not know what to do with '%s'; a value with blanks is put in quotes: '%s'",
          p->command->name, word, whole);
  return true;
}

/* Refuses an option with a dash of a text processor. Returns true if it did. */
static bool is_dash_of_text(const parser *p, const char *word) {
  size_t n = 0;
  while (strncmp(word + n, "\xe2\x80\x93", 3) == 0 || strncmp(word + n, "\xe2\x80\x94", 3) == 0)
    n += 3;
  if (n == 0) return false;
  gl_fail(p->err, GL_EINPUT,
          "'%s' begins with the dash of a text and not with two hyphens; write --%s", word,
          word + n);
  return true;
}

/* Refuses a further file name, which is probably the file to write, and names the option for it.
 * Returns true if it did. */
static bool is_output_as_word(const parser *p, const char *word) {
  const char *dot = strrchr(word, '.');
  if (file_is_database(word)) return false;
  for (const args_option *o = p->options; o < p->options + p->n_options && dot != NULL; ++o) {
    if (!args_is_written(o->kind) || o->letter == 0) continue;
    gl_fail(p->err, GL_EINPUT, "%s does not know what to do with '%s'; a file to write is -%c %s",
            p->command->name, word, o->letter, word);
    return true;
  }
  return false;
}

static gl_status unknown_option(const parser *p, const char *word, size_t length) {
  enum { NAME_SIZE = 64 };
  char asked[NAME_SIZE];
  snprintf(asked, sizeof asked, "--%.*s", (int)length, word);
  const char *answer = fields_answer(p->command->name, asked);
  if (answer != NULL)
    return gl_fail(p->err, GL_EINPUT, "%s has no option %s: %s", p->command->name, asked, answer);
  if (is_field_as_option(p, word, length, p->err)) return GL_EINPUT;
  char name[NAME_SIZE], hint[CFG_HINT_SIZE] = "";
  const char *names[MAX_OPTIONS + 1];
  snprintf(name, sizeof name, "--%.*s", (int)length, word);
  const char *absent = p->command->words.input == ARGS_RECIPE ? fields_absent(name + 2) : NULL;
  if (absent != NULL)
    return gl_fail(p->err, GL_EINPUT, "%s has no option %s: %s", p->command->name, name, absent);
  size_t n = 0;
  for (size_t i = 0; i <= p->n_options; ++i) {
    if (i < p->n_options && p->options[i].help == NULL) continue;
    names[n++] = i < p->n_options ? p->options[i].name : "help";
  }
  const char *near = cfg_nearest(name + 2, names, n);
  if (near != NULL) snprintf(hint, sizeof hint, " (did you mean '--%s'?)", near);
  return gl_fail(p->err, GL_EINPUT, "%s has no option %s%s; `gepolab %s --help` lists them",
                 p->command->name, name, hint, p->command->name);
}

/* Adds an override, and says which one before it is replaced, because it is of a field of the same
 * section. */
static void add_override(parser *p, const char *word) {
  args *a = p->out;
  char key[FIELD_HINT_SIZE], before[FIELD_HINT_SIZE];
  snprintf(key, sizeof key, "%.*s", (int)strcspn(word, "="), word);
  for (size_t i = 0; i < a->n_overrides; ++i) {
    const char *other = a->overrides[i];
    snprintf(before, sizeof before, "%.*s", (int)strcspn(other, "="), other);
    if (cfg_path_is_inside(before, key) && strcmp(before, key) != 0)
      fprintf(stderr, "gepolab: note: %s has no effect, because %s after it replaces the section\n",
              other, word);
  }
  a->overrides[a->n_overrides++] = word;
}

/* An option that is an override under a shorter name: --seed 7 for seed=7. */
static gl_status take_setting(parser *p, const args_option *o, const char *text) {
  args *a = p->out;
  const char *key = o->target;
  size_t size = (key != NULL ? strlen(key) + 1 : 0) + strlen(text) + 1;
  char *made = malloc(size);
  if (made == NULL) return gl_fail_memory(p->err, "the command line");
  snprintf(made, size, "%s%s%s", key != NULL ? key : "", key != NULL ? "=" : "", text);
  a->made[a->n_made++] = made;
  add_override(p, made);
  return GL_OK;
}

/* Refuses a second value, which would replace the first or say the same again. */
static gl_status check_repeated(parser *p, const args_option *o, const char *text) {
  const size_t i = (size_t)(o - p->options);
  if (o < p->options || i >= p->n_options || o->kind == ARGS_EACH || o->kind == ARGS_SET)
    return GL_OK;
  const char *before = p->given[i];
  p->given[i] = text;
  if (before == NULL || strcmp(before, text) == 0) return GL_OK;
  return gl_fail(p->err, GL_EINPUT, "--%s is given twice, '%s' and '%s'; give it once", o->name,
                 before, text);
}

static gl_status take_one_more(parser *p, const args_option *o, const char *text) {
  args_list *list = o->target;
  for (size_t i = 0; i < list->n; ++i)
    if (strcmp(list->item[i], text) == 0)
      return gl_fail(p->err, GL_EINPUT, "--%s %s is given twice; give it once", o->name, text);
  if (list->n == ARGS_LIST_MOST)
    return gl_fail(p->err, GL_EINPUT, "--%s is given more than %d times", o->name,
                   (int)ARGS_LIST_MOST);
  list->item[list->n++] = text;
  return GL_OK;
}

/* Refuses a picture's name for a folder of figures, of which one would be made with that name. */
static gl_status check_figures(const parser *p, const args_option *o, const char *folder) {
  static const char pictures[] = " .pdf .png .svg .eps .jpg ";
  const char *dot = strrchr(folder, '.');
  char padded[8];
  if (dot == NULL || strlen(dot) != 4 || file_is_folder(folder)) return GL_OK;
  snprintf(padded, sizeof padded, " %s ", dot);
  if (strstr(pictures, padded) == NULL) return GL_OK;
  return gl_fail(p->err, GL_EINPUT,
                 "--%s %s: figures go into a folder, each as PDF, PNG and SVG; write -%c FOLDER%s",
                 o->name, folder, o->letter,
                 option_named(p, "figure", 6) != NULL ? ", and --figure NAME for one of them" : "");
}

/* Stores a whole number within the range of the option's kind. */
static gl_status args_take_number(const parser *p, const args_option *o, const char *text) {
  const bool is_seed = o->kind == ARGS_SEED;
  const unsigned long long least = is_seed ? 0 : 1, most = is_seed ? UINT64_MAX : 65536;
  char *end = NULL;
  errno = 0;
  const unsigned long long value = strtoull(text, &end, 10);
  if (!isdigit((unsigned char)text[0]) || *end != '\0' || errno != 0 || value < least ||
      value > most)
    return gl_fail(p->err, GL_EINPUT, "--%s needs a whole number from %llu to %llu, but got '%s'",
                   o->name, least, most, text);
  if (is_seed)
    *(uint64_t *)o->target = value;
  else
    *(size_t *)o->target = (size_t)value;
  return GL_OK;
}

/* Stores the value of an option; text NULL means none was attached to the word. */
static gl_status args_take(parser *p, const args_option *o, const char *text) {
  if (o->kind == ARGS_RENAMED)
    return gl_fail(p->err, GL_EINPUT, "--%s is called %s now", o->name, o->value);
  if (o->kind == ARGS_FLAG) {
    if (text != NULL)
      return gl_fail(p->err, GL_EINPUT, "--%s takes no value, but got '%s'", o->name, text);
    *(int *)o->target = 1;
    return check_repeated(p, o, "");
  }
  if (text == NULL) {
    if (p->next >= p->argc)
      return gl_fail(p->err, GL_EINPUT, "--%s needs a value: --%s %s", o->name, o->name, o->value);
    text = p->argv[p->next++];
  }
  const bool is_text = o->kind == ARGS_TEXT || o->kind == ARGS_FIGURES || args_is_file(o->kind);
  if (o->kind != ARGS_COUNT && o->kind != ARGS_SEED && text[0] == '\0')
    return gl_fail(p->err, GL_EINPUT, "--%s needs a value that is not empty", o->name);
  if (check_repeated(p, o, text) != GL_OK) return GL_EINPUT;
  if (o->kind == ARGS_SET) return take_setting(p, o, text);
  if (o->kind == ARGS_EACH) return take_one_more(p, o, text);
  if (o->kind == ARGS_FORMAT) {
    size_t form = 0;
    const gl_status status =
        args_choose(&form, "--format", text, table_format_names, TABLE_COMMAND_FORMATS, p->err);
    *(table_format *)o->target = (table_format)form;
    return status;
  }
  if (is_text) {
    *(const char **)o->target = text;
    return o->kind == ARGS_FIGURES ? check_figures(p, o, text) : GL_OK;
  }
  return args_take_number(p, o, text);
}

static gl_status take_long(parser *p, const char *word) {
  if (strcmp(word, "print") == 0 && is_embedded(p->command)) {
    p->prints = true;
    return GL_OK;
  }
  const char *equals = strchr(word, '=');
  size_t length = equals != NULL ? (size_t)(equals - word) : strlen(word);
  const args_option *o = option_named(p, word, length);
  for (int i = 0; i < PROGRAM_OWN_FILES && o == NULL; ++i) {
    const program_own_file *f = &program_own_files[i];
    const args_option own = {f->key, 0, ARGS_READ, f->value, NULL, &p->own[i]};
    if (has_own_file(p->command, i) && length == strlen(f->key) &&
        strncmp(word, f->key, length) == 0)
      return args_take(p, &own, equals != NULL ? equals + 1 : NULL);
  }
  if (o == NULL) return unknown_option(p, word, length);
  return args_take(p, o, equals != NULL ? equals + 1 : NULL);
}

static gl_status unknown_letter(const parser *p, const char *word) {
  char name[FIELD_HINT_SIZE];
  snprintf(name, sizeof name, "-%c", word[0]);
  const char *answer = fields_answer(p->command->name, name);
  if (answer == NULL) {
    snprintf(name, sizeof name, "-%.*s", (int)strcspn(word, "="), word);
    answer = fields_answer(p->command->name, name);
  }
  if (answer != NULL)
    return gl_fail(p->err, GL_EINPUT, "%s has no option %s: %s", p->command->name, name, answer);
  if (isdigit((unsigned char)word[0]))
    return gl_fail(p->err, GL_EINPUT,
                   "%s has no option -%c; put -- before a word that begins with a minus: -- -%s",
                   p->command->name, word[0], word);
  char own[FIELD_HINT_SIZE] = "";
  const size_t length = strcspn(word, "=");
  snprintf(name, sizeof name, "%.*s", (int)length, word);
  if (length > 1 && p->command->words.overrides) fields_elsewhere(name, NULL, own);
  if (*own != '\0' && is_field_as_option(p, word, length, p->err)) return GL_EINPUT;
  return gl_fail(p->err, GL_EINPUT, "%s has no option -%c; `gepolab %s --help` lists them",
                 p->command->name, word[0], p->command->name);
}

static gl_status take_short(parser *p, const char *word) {
  const args_option *o = option_lettered(p, word[0]);
  if (o == NULL) return unknown_letter(p, word);
  if (o->kind == ARGS_FLAG && word[1] != '\0' && option_lettered(p, word[1]) != NULL)
    return gl_fail(p->err, GL_EINPUT,
                   "-%s: options of one letter are not joined; write them apart: -%c -%s", word,
                   word[0], word + 1);
  if (o->kind != ARGS_FLAG && word[1] == '=') ++word; /* -o=FILE */
  return args_take(p, o, word[1] != '\0' ? word + 1 : NULL);
}

/* Returns 1 for key=value. A key has no slash or blank, unlike a path such as ./a=b.yaml. */
static int is_override(const char *word) {
  const char *equals = strchr(word, '=');
  if (equals == NULL || equals == word) return 0;
  for (const char *c = word; c < equals; ++c)
    if (*c == '/' || isspace((unsigned char)*c)) return 0;
  return 1;
}

/* Refuses a second study, and a recipe behind the study that it is to be kept in. Returns true if
 * it did. */
static bool is_study_as_word(const parser *p, const char *word) {
  const command *c = p->command;
  const char *first = p->out->n_words > 0 ? p->out->words[0] : "", *dot = strrchr(first, '.');
  if (c->words.input == ARGS_RUNS && file_is_database(word)) {
    gl_fail(p->err, GL_EINPUT,
            "%s takes one study, and '%s' is a second one; `gepolab study merge both.db %s %s` "
            "joins them",
            c->name, word, first, word);
    return true;
  }
  if (c->words.input != ARGS_RECIPE || resources_recipe(word) == NULL || dot == NULL ||
      strcmp(dot, ".db") != 0)
    return false;
  gl_fail(p->err, GL_EINPUT, "the recipe is the first word: gepolab %s %s -o %s", c->name, word,
          first);
  return true;
}

/* Writes the forms in which a command takes what is no word of it. */
static void other_forms(const parser *p, const char *word, char *text, size_t size) {
  *text = '\0';
  if (option_named(p, "algorithm", 9) != NULL && strpbrk(word, "=.") == NULL)
    snprintf(text, size, "; an algorithm's name is -a %.40s", word);
  else if (option_named(p, "table", 5) != NULL)
    snprintf(text, size, "; a table's name is --table %.40s", word);
  else if (p->command->words.overrides)
    snprintf(text, size, "; an override has the form key=value");
}

static gl_status args_take_word(parser *p, const char *word) {
  args *a = p->out;
  if (p->command->words.overrides && is_override(word)) {
    char key[FIELD_HINT_SIZE];
    snprintf(key, sizeof key, "%.*s", (int)strcspn(word, "="), word);
    const char *answer = fields_answer(p->command->name, key);
    if (answer != NULL)
      return gl_fail(p->err, GL_EINPUT, "%s has no field '%s': %s", p->command->name, key, answer);
    add_override(p, word);
    return GL_OK;
  }
  if (a->n_words == p->command->words.max &&
      (is_split_map(p, word) || is_dash_of_text(p, word) || is_unit_as_word(p, word) ||
       is_field_as_word(p, word) || is_output_as_word(p, word)))
    return GL_EINPUT;
  if (a->n_words == p->command->words.max) {
    if (is_study_as_word(p, word)) return GL_EINPUT;
    char hint[160];
    other_forms(p, word, hint, sizeof hint);
    return gl_fail(p->err, GL_EINPUT,
                   "%s does not know what to do with '%s'%s (usage: gepolab %s%s%s)",
                   p->command->name, word, hint, p->command->name,
                   p->command->arguments[0] != '\0' ? " " : "", p->command->arguments);
  }
  a->words[a->n_words++] = word;
  return GL_OK;
}

/* --- files that are written --- */

static gl_status refuse_overwritten(const args_option *o, const char *again, gl_error *err) {
  return gl_fail(err, GL_EINPUT,
                 "--%s: '%s' and '%s' are one file, which would be overwritten; name another file",
                 o->name, file_of(o), again);
}

/* Adds a file that is read, which no option may write. */
static gl_status add_read(void *self, const char *path, gl_error *err) {
  args *a = self;
  for (const args_option *o = a->options; o < a->options + a->n_options; ++o)
    if (args_is_written(o->kind) && file_of(o) != NULL && file_same(path, file_of(o)))
      return refuse_overwritten(o, path, err);
  char **added = ARRAY_ADD(a->reads, a->n_reads);
  if (added == NULL) return gl_fail_memory(err, "the command line");
  *added = strdup(path);
  return *added != NULL ? GL_OK : gl_fail_memory(err, "the command line");
}

gl_status args_read_files(args *a, const cfg_doc *doc, gl_error *err) {
  return cfg_files(doc, add_read, a, err);
}

/* The kinds of files that an option's value names by its ending, and what to do for another. */
static const struct {
  const char *ending, *others, *remedy;
} endings[] = {
    {".html", ".htm", "the page is HTML, which a browser can print"},
    {".yaml", ".yml", "what is written is YAML"},
    {".db", ".sqlite .sqlite3",
     "a study is an SQLite file, from which `gepolab study export` makes tables"},
};

/* Refuses a name that says another kind of file than the option writes. */
static gl_status check_ending(const args_option *o, gl_error *err) {
  static const char known[] = " .html .htm .yaml .yml .db .sqlite .sqlite3 .pdf .csv .tsv .json "
                              ".jsonl .md .png .svg .xlsx .parquet ";
  const char *own = o->value != NULL ? strrchr(o->value, '.') : NULL,
             *dot = strrchr(file_of(o), '.');
  char padded[16];
  if (own == NULL || dot == NULL || strlen(dot) > 10) return GL_OK;
  snprintf(padded, sizeof padded, " %s ", dot);
  for (size_t i = 0; i < sizeof endings / sizeof *endings; ++i) {
    if (strcmp(own, endings[i].ending) != 0 || strcmp(dot, own) == 0) continue;
    if (strstr(known, padded) == NULL || strstr(endings[i].others, dot) != NULL) return GL_OK;
    return gl_fail(err, GL_EINPUT, "--%s %s: %s; name it %.*s%s", o->name, file_of(o),
                   endings[i].remedy, (int)(dot - file_of(o)), file_of(o), own);
  }
  return GL_OK;
}

/* Refuses to overwrite a file whose contents would be lost. */
static gl_status check_written(const parser *p) {
  args *a = p->out;
  gl_status status = GL_OK;
  a->options = p->options;
  a->n_options = p->n_options;
  for (size_t i = 0; i < a->n_words && status == GL_OK; ++i)
    status = add_read(a, a->words[i], p->err);
  for (size_t i = 0; i < a->n_overrides && status == GL_OK; ++i) {
    const char *equals = strchr(a->overrides[i], '=');
    if (equals != NULL) status = add_read(a, equals + 1, p->err);
  }
  for (const args_option *o = p->options; o < p->options + p->n_options && status == GL_OK; ++o) {
    if (file_of(o) == NULL) continue;
    for (const args_option *other = p->options; other < o && status == GL_OK; ++other)
      if (file_of(other) != NULL && (args_is_written(o->kind) || args_is_written(other->kind)) &&
          file_same(file_of(o), file_of(other)))
        status = args_is_written(o->kind) ? refuse_overwritten(o, file_of(other), p->err)
                                          : refuse_overwritten(other, file_of(o), p->err);
    if (status == GL_OK && o->kind == ARGS_READ) status = add_read(a, file_of(o), p->err);
    if (status == GL_OK && o->kind == ARGS_WRITE && file_is_database(file_of(o)))
      status = gl_fail(p->err, GL_EINPUT,
                       "--%s would write over '%s', which is a study; name another file", o->name,
                       file_of(o));
    if (status == GL_OK &&
        (o->kind == ARGS_WRITE || (o->kind == ARGS_STUDY && access(file_of(o), F_OK) != 0)))
      status = check_ending(o, p->err);
  }
  return status;
}

/* Fails if the word names what another command reads. */
static gl_status refuse_input(const command *c, const char *word, gl_error *err) {
  if (c->words.input == ARGS_RUNS && resources_recipe(word) != NULL && access(word, F_OK) != 0)
    return gl_fail(err, GL_EINPUT,
                   "%s is a recipe inside the program, and %s reads what its runs were kept in: "
                   "`gepolab sweep` or `run %s -o %s.db` first, then %s.db",
                   word, c->name, word, word, word);
  if ((c->words.input == ARGS_RUNS || c->words.input == ARGS_LOGS) && !c->words.overrides &&
      is_override(word) && access(word, F_OK) != 0)
    return gl_fail(err, GL_EINPUT, "%s takes files and no key=value, and there is no file '%s'%s",
                   c->name, word,
                   c->words.algorithms ? "; a changed algorithm is -a '{base: NAME, FIELD: VALUE}'"
                                       : "");
  if (c->words.input == ARGS_LOGS && resources_recipe(word) != NULL && access(word, F_OK) != 0)
    return gl_fail(err, GL_EINPUT, "%s is a recipe inside the program; usage: gepolab %s %s", word,
                   c->name, c->arguments);
  if ((c->words.input == ARGS_LOGS || c->words.input == ARGS_CLUSTER) && file_is_database(word))
    return gl_fail(err, GL_EINPUT,
                   "%s is a study, which `gepolab analyze`, plot and report read; usage: gepolab "
                   "%s %s",
                   word, c->name, c->arguments);
  return GL_OK;
}

/* Whether the option was given; one whose value is called `not` does not count. */
static bool args_is_given(const parser *p, const char *name, const char * not ) {
  const args_option *o = option_named(p, name, strlen(name));
  return o != NULL && p->given[o - p->options] != NULL &&
         (not == NULL || o->value == NULL || strcmp(o->value, not ) != 0);
}

/* Prints the embedded file that the word names, as it is; the command then has nothing to do. */
static gl_status print_embedded(const parser *p) {
  args *a = p->out;
  const char *name = a->words[0];
  const resource *r =
      p->command->words.input == ARGS_CLUSTER ? resources_cluster(name) : resources_recipe(name);
  if (r == NULL && resources_cluster(name) != NULL)
    return gl_fail(p->err, GL_EINPUT,
                   "%s is a description of a cluster and no recipe; use `gepolab plan %s --print`",
                   name, name);
  if (r == NULL)
    return gl_fail(p->err, GL_EINPUT,
                   "--print: nothing inside the program is called '%s'; `gepolab list recipes` "
                   "lists what is",
                   name);
  const bool is_json = args_is_given(p, "json", NULL);
  if (is_json || a->n_overrides > 0)
    return gl_fail(p->err, GL_EINPUT,
                   "--print prints %s as it is inside the program, in YAML; leave %s out, or write "
                   "the file with --print > my.yaml and change that",
                   name, is_json ? "--json" : a->overrides[0]);
  fwrite(r->data, 1, r->size, stdout);
  a->help = 1;
  return GL_OK;
}

args_help args_help_form(int argc, char **argv) {
  for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; ++i) {
    if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return ARGS_HELP_TERMINAL;
    if (strcmp(argv[i], "--help=man") == 0) return ARGS_HELP_MAN;
    if (strcmp(argv[i], "--help=rows") == 0) return ARGS_HELP_ROWS;
  }
  return ARGS_NO_HELP;
}

/* What is missing where a command has too few words. */
static const char *const missing_words[] = {
    [ARGS_ANY] = "",
    [ARGS_RECIPE] = "a recipe is missing (`gepolab list recipes` lists those in the program); ",
    [ARGS_CLUSTER] =
        "the description of a cluster is missing (`gepolab list recipes` lists some); ",
    [ARGS_RUNS] = "a file of runs is missing (-o FILE.db of run or sweep writes one); ",
    [ARGS_LOGS] = "a log is missing; "};

gl_status args_parse(args *a, const args_option *options, size_t n_options, gl_error *err) {
  const command *c = a->command;
  const int argc = a->argc;
  const args_help form = args_help_form(argc, a->argv);
  a->help = form != ARGS_NO_HELP;
  if (form == ARGS_HELP_TERMINAL) print_help(c, options, n_options);
  if (form == ARGS_HELP_MAN) print_man(c, options, n_options);
  if (form == ARGS_HELP_ROWS) args_print_rows(c, options, n_options);
  if (a->help) return GL_OK;
  if (n_options > MAX_OPTIONS) return gl_fail(err, GL_EINTERNAL, "too many options");
  a->words = calloc((size_t)argc + 1, sizeof *a->words);
  a->overrides = calloc((size_t)argc + 1, sizeof *a->overrides);
  a->made = calloc((size_t)argc + 1, sizeof *a->made);
  if (a->words == NULL || a->overrides == NULL || a->made == NULL)
    return gl_fail_memory(err, "the command line");
  parser p = {.out = a,
              .command = c,
              .options = options,
              .n_options = n_options,
              .argc = argc,
              .argv = a->argv,
              .next = 1,
              .err = err};
  int only_words = 0;
  while (p.next < argc) {
    const char *word = a->argv[p.next++];
    gl_status status = GL_OK;
    if (!only_words && strcmp(word, "--") == 0)
      only_words = 1;
    else if (!only_words && strncmp(word, "--", 2) == 0)
      status = take_long(&p, word + 2);
    else if (!only_words && word[0] == '-' && word[1] != '\0')
      status = take_short(&p, word + 1);
    else
      status = args_take_word(&p, word);
    if (status != GL_OK) return status;
  }
  for (int i = 0; i < PROGRAM_OWN_FILES; ++i)
    if (p.own[i] != NULL && setenv(program_own_files[i].variable, p.own[i], 1) != 0)
      return gl_fail_memory(err, "the command line");
  if (p.prints && a->n_words == 1) return print_embedded(&p);
  for (size_t i = 0; i < a->n_words; ++i)
    if (refuse_input(c, a->words[i], err) != GL_OK) return GL_EINPUT;
  if (args_is_given(&p, "json", NULL) && args_is_given(&p, "format", "NAME"))
    return gl_fail(err, GL_EINPUT, "--json and --format exclude each other; give one of them");
  for (size_t i = 1; i < a->n_words && c->words.input == ARGS_LOGS; ++i)
    for (size_t k = 0; k < i; ++k)
      if (strcmp(a->words[k], a->words[i]) == 0 || file_same(a->words[k], a->words[i]))
        return gl_fail(err, GL_EINPUT, "%s is given twice; give it once", a->words[i]);
  if (a->n_words < c->words.min && c->words.input == ARGS_RECIPE && a->n_overrides > 0)
    return gl_fail(err, GL_EINPUT,
                   "no recipe is named; it comes first, as in gepolab %s quickstart %s (`gepolab "
                   "list recipes`)",
                   c->name, a->overrides[0]);
  if (a->n_words < c->words.min)
    return gl_fail(err, GL_EINPUT, "%susage: gepolab %s %s", missing_words[c->words.input], c->name,
                   c->arguments);
  return check_written(&p);
}

void args_fini(args *a) {
  for (size_t i = 0; i < a->n_made; ++i) free(a->made[i]);
  for (size_t i = 0; i < a->n_reads; ++i) free(a->reads[i]);
  free(a->reads);
  free(a->made);
  free(a->words);
  free(a->overrides);
  *a = (args){0};
}

gl_status args_choose(size_t *index, const char *what, const char *word, const char *const *names,
                      size_t n, gl_error *err) {
  char all[800], hint[CFG_HINT_SIZE];
  for (size_t i = 0; i < n; ++i)
    if (strcmp(names[i], word) == 0) {
      *index = i;
      return GL_OK;
    }
  bool is_json = strcmp(what, "--format") == 0 && strcmp(word, "json") == 0;
  for (size_t i = 0; i < n; ++i) is_json &= strcmp(names[i], "jsonl") != 0;
  return gl_fail(err, GL_EINPUT, "%s is one of %s, not '%s'%s", what,
                 cfg_listed(names, n, all, sizeof all), word,
                 is_json ? "; JSON is --json" : cfg_hint(word, names, n, hint));
}
