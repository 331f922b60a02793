/* gepolab list algorithms: the published algorithms and the user's own, with their sources,
 * formulas, fields, and the trainer settings that select them. Also finds the algorithm that a
 * trainer's settings select (--from), and prints an algorithm as a PyTorch loss (--torch). */
#include "core/base/display_text.h"
#include "core/config/config.h"
#include "core/config/fields.h"
#include "core/policy/algorithm.h"
#include "core/policy/trainer_settings.h"
#include "experiments/base/args.h"
#include "experiments/base/memory.h"
#include "experiments/base/print_json.h"
#include "experiments/base/program.h"
#include "experiments/policy/formula_lines.h"
#include "experiments/policy/torch_lines.h"
#include "experiments/policy/trainer_options.h"
#include "experiments/policy/whatif.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void algorithm_add_field(cJSON *to, const policy_algorithm *algorithm, size_t i) {
  const policy_field *f = policy_fields_at(i);
  char text[POLICY_FIELD_TEXT_SIZE];
  const char *value = policy_algorithm_field(algorithm, i, text);
  switch (f->kind) {
  case POLICY_FIELD_COUNT:
  case POLICY_FIELD_NUMBER:
    json_number(to, f->name, strtod(value, NULL));
    return;
  case POLICY_FIELD_FLAG:
    json_attach(to, f->name, cJSON_CreateBool(strcmp(value, "true") == 0));
    return;
  case POLICY_FIELD_CHOICE:
    json_attach(to, f->name, cJSON_CreateString(value));
    return;
  }
}

/* A published algorithm, or one of the user's own, whose source is its file. */
typedef struct listed_algorithm {
  const policy_algorithm *algorithm;
  policy_algorithm_info info;
  policy_algorithm made; /* storage of the algorithm if it is the user's own */
} listed_algorithm;

/* Lists the published algorithms, then the user's own. */
static gl_status list_all(listed_algorithm **out, const cfg_own *own, size_t *n, gl_error *err) {
  const size_t published = policy_algorithms_count();
  gl_status status = GL_OK;
  *n = published + cfg_own_count(own, "algorithms");
  listed_algorithm *all = *out = MUST_ARRAY(listed_algorithm, *n, "the algorithms");
  for (size_t i = 0; i < published; ++i) {
    all[i].algorithm = policy_algorithms_at(i);
    all[i].info = *policy_algorithms_info(i);
  }
  for (size_t i = published; i < *n && status == GL_OK; ++i) {
    const char *name;
    const cfg_node *at = cfg_own_at(own, "algorithms", i - published, &name);
    status = policy_algorithms_own(&all[i].made, own, i - published, err);
    all[i].algorithm = &all[i].made;
    all[i].info = (policy_algorithm_info){.source = cfg_source_path(at), .notes = "your own"};
  }
  return status;
}

static const char *basis_words(policy_setting_basis basis) {
  switch (basis) {
  case SETTING_READ:
    return "read, not run";
  case SETTING_RUN:
    return "run and compared";
  }
  return "";
}

/* Returns the name of the algorithm that `algorithms --from` reads from the setting; "" if it is
 * the algorithm that the setting is listed for, or if the setting cannot be read. */
static const char *setting_makes(const policy_setting *s, trainer_reading *r) {
  gl_error err = {0};
  if (trainer_read_text(r, s->trainer, s->setting, &err) != GL_OK ||
      strcmp(r->algorithm.name, s->algorithm) == 0)
    return "";
  return r->algorithm.name;
}

static void add_settings(cJSON *list, const char *name) {
  for (int t = 0; t < TRAINER_COUNT; ++t) {
    const policy_setting *s = policy_settings_find(name, (policy_trainer)t);
    const policy_trainer_info *trainer = policy_trainer_about((policy_trainer)t);
    trainer_reading r;
    if (s == NULL) continue;
    json_put(json_object(list, NULL),
             "trainer %s, version %s, setting %s, makes %s, differs %s, place %s, basis %s",
             trainer->name, trainer->version, s->setting, setting_makes(s, &r), s->differs,
             s->place, basis_words(s->basis));
  }
}

/* Ends the first line of *text, moves *text past it and returns the line; NULL: none is left. */
static char *formula_next(char **text) {
  char *line = *text, *end = strchr(line, '\n');
  if (end == NULL) return NULL;
  *end = '\0';
  *text = end + 1;
  return line;
}

static void add_formula(cJSON *list, const policy_algorithm *algorithm) {
  char *text = formula_lines(algorithm, policy_algorithms_find("reinforce")), *rest = text;
  for (char *line; (line = formula_next(&rest)) != NULL;) json_put(list, "%s", line);
  free(text);
}

static gl_status algorithms_print_json(const listed_algorithm *a, size_t n, gl_error *err) {
  cJSON *list = cJSON_CreateArray();
  for (; n > 0; ++a, --n) {
    cJSON *item = json_object(list, NULL);
    const char *name = a->algorithm->name;
    json_put(item, "name %s, source %s, notes %s", name, a->info.source, a->info.notes);
    json_put(item, "trl %s, verl %s, areal %s", policy_setting_text(name, TRAINER_TRL),
             policy_setting_text(name, TRAINER_VERL), policy_setting_text(name, TRAINER_AREAL));
    add_settings(json_list(item, "settings"), name);
    add_formula(json_list(item, "formula"), a->algorithm);
    cJSON *fields = json_object(item, "fields");
    for (size_t f = 0; f < policy_fields_count(); ++f) algorithm_add_field(fields, a->algorithm, f);
  }
  return report_json(list, err);
}

/* Returns 1 for fields that are printed for every algorithm. Other fields are printed only if they
 * differ from those of `reinforce`, so that unused fields do not hide the rest. JSON has all
 * fields. */
static int is_main_field(const char *name) {
  static const char *const main_fields[] = {"objective", "baseline", "scale",    "ratio",
                                            "log_prob",  "clip",     "aggregate"};
  for (size_t i = 0; i < sizeof main_fields / sizeof *main_fields; ++i)
    if (strcmp(main_fields[i], name) == 0) return 1;
  return 0;
}

/* Prints a title and a text, which is wrapped in its column; prints nothing if the text is
 * empty. */
static void algorithm_print(const char *title, const char *text) {
  enum { COLUMN = 15 };
  if (text[0] == '\0') return;
  printf("  %-12s ", title);
  shown_wrap(text, COLUMN, COLUMN, stdout);
  putchar('\n');
}

/* Prints the settings with which trainers use the algorithm, their differences from it, and where
 * these were read. */
static void print_settings_of(const char *name) {
  for (int t = 0; t < TRAINER_COUNT; ++t) {
    const policy_setting *s = policy_settings_find(name, (policy_trainer)t);
    trainer_reading r;
    if (s == NULL) continue;
    const char *makes = setting_makes(s, &r);
    char *text = must_textf(
        "a setting", "%s%s%s%s%s [%s at %s; %s]", s->setting, *makes != '\0' ? "; makes " : "",
        makes, s->differs[0] != '\0' ? "; differs: " : "", s->differs, s->place,
        policy_trainer_about((policy_trainer)t)->version, basis_words(s->basis));
    algorithm_print(policy_trainer_about((policy_trainer)t)->name, text);
    free(text);
  }
}

static void print_algorithm(const listed_algorithm *a, const policy_algorithm *plain) {
  const policy_algorithm *algorithm = a->algorithm;
  const policy_algorithm_info *info = &a->info;
  char *fields = NULL;
  size_t size = 0;
  puts(algorithm->name);
  algorithm_print("source", info->source);
  algorithm_print("notes", info->notes);
  char *formula = formula_lines(algorithm, plain), *rest = formula;
  const char *title = "formula";
  for (char *line; (line = formula_next(&rest)) != NULL; title = "") algorithm_print(title, line);
  free(formula);
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
  print_settings_of(algorithm->name);
}

/* Prints one line for each algorithm: a mark for every trainer that has settings for it, and its
 * source. */
static void algorithms_print_lines(const listed_algorithm *a, size_t n) {
  enum { COLUMN = 58 };
  printf("%-28s ", "algorithm");
  for (int t = 0; t < TRAINER_COUNT; ++t)
    printf(" %s", policy_trainer_about((policy_trainer)t)->code);
  puts("  source");
  for (; n > 0; ++a, --n) {
    printf("%-28s ", shown(a->algorithm->name).text);
    for (int t = 0; t < TRAINER_COUNT; ++t) {
      const policy_setting *s = policy_settings_find(a->algorithm->name, (policy_trainer)t);
      printf("  %c", s == NULL ? '.' : s->basis == SETTING_RUN ? '#' : 'o');
    }
    fputs("  ", stdout);
    shown_wrap(a->info.source, COLUMN, COLUMN, stdout);
    putchar('\n');
  }
  char *legend = must_copy("#: a setting whose code was run and compared; o: one that was read; "
                           "`gepolab list algorithms NAME` prints it.",
                           "a legend");
  for (int t = 0; t < TRAINER_COUNT; ++t) {
    const policy_trainer_info *about = policy_trainer_about((policy_trainer)t);
    char *longer = must_textf("a legend", "%s %s: %s %s%s", legend, about->code, about->name,
                              about->version, t + 1 < TRAINER_COUNT ? ";" : ".");
    free(legend);
    legend = longer;
  }
  shown_wrap(legend, 0, 0, stdout);
  putchar('\n');
  free(legend);
}

static gl_status unknown_algorithm(const char *name, const listed_algorithm *all, size_t n,
                                   gl_error *err) {
  char other[FIELD_HINT_SIZE];
  if (*fields_value_elsewhere("algorithm", name, other) != '\0')
    return gl_fail(err, GL_EINPUT, "there is no algorithm '%s'; here %s", name,
                   strchr(other, '=') + 1);
  const char **names = MUST_ARRAY(const char *, n, "the algorithms' names");
  for (size_t i = 0; i < n; ++i) names[i] = all[i].algorithm->name;
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
  for (size_t i = 0; i < policy_fields_count(); ++i) {
    const policy_field *f = policy_fields_at(i);
    printf("%-20s ", f->name);
    shown_wrap(f->meaning, COLUMN, COLUMN, stdout);
    putchar('\n');
    if (f->offset == offsetof(policy_algorithm, ratio)) {
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
    if (f->n_choices == 0) continue;
    char *words = NULL;
    size_t size = 0;
    FILE *to = must_have(open_memstream(&words, &size), "the words of a field");
    for (int c = 0; c < f->n_choices; ++c) fprintf(to, "%s%s", c == 0 ? "" : " | ", f->choice(c));
    must_succeed(fclose(to) == 0, "the words of a field");
    printf("%*s", COLUMN, "");
    shown_wrap(words, COLUMN, COLUMN, stdout);
    putchar('\n');
    free(words);
  }
}

/* Sets *only to the algorithm of that name; upper case does not matter for published ones. */
static gl_status algorithms_choose(const listed_algorithm **only, const char *name,
                                   const listed_algorithm *all, size_t n, gl_error *err) {
  for (size_t i = 0; i < n; ++i)
    if (strcasecmp(all[i].algorithm->name, name) == 0) *only = &all[i];
  return *only != NULL ? GL_OK : unknown_algorithm(name, all, n, err);
}

/* Prints the algorithm with this name; NULL: all algorithms. */
static gl_status print_algorithms(const char *name, bool is_json, gl_error *err) {
  cfg_own *own = NULL;
  listed_algorithm *all = NULL;
  size_t n = 0;
  gl_status status = program_own(&own, err);
  if (status == GL_OK) status = list_all(&all, own, &n, err);
  const listed_algorithm *first = name != NULL ? NULL : all;
  if (status == GL_OK && name != NULL) {
    status = algorithms_choose(&first, name, all, n, err);
    n = 1;
  }
  if (status == GL_OK && is_json) status = algorithms_print_json(first, n, err);
  if (status == GL_OK && !is_json && name != NULL)
    print_algorithm(first, policy_algorithms_find("reinforce"));
  if (status == GL_OK && !is_json && name == NULL) algorithms_print_lines(first, n);
  free(all);
  cfg_own_free(own);
  return status;
}

/* --- from a trainer's switches --- */

static gl_status choose_trainer(policy_trainer *trainer, const char *word, gl_error *err) {
  const char *names[TRAINER_COUNT];
  policy_trainer of[TRAINER_COUNT];
  size_t n = 0, which = 0;
  for (int t = 0; t < TRAINER_COUNT; ++t)
    if (trainer_is_readable((policy_trainer)t)) {
      names[n] = policy_trainer_about((policy_trainer)t)->word;
      of[n++] = (policy_trainer)t;
    }
  const gl_status status = args_choose(&which, "--from", word, names, n, err);
  if (status == GL_OK) *trainer = of[which];
  return status;
}

/* The arguments are switches (an argument may contain several, separated by blanks) or one
 * configuration file. */
static gl_status read_switches(trainer_reading *r, policy_trainer trainer, const args *a,
                               gl_error *err) {
  if (a->n_words == 1 && strchr(a->words[0], '=') == NULL)
    return trainer_read_file(r, trainer, a->words[0], err);
  char *text = must_copy("", "a trainer's switches");
  for (size_t i = 0; i < a->n_words; ++i) {
    char *longer = must_textf("a trainer's switches", "%s %s", text, a->words[i]);
    free(text);
    text = longer;
  }
  const gl_status status = trainer_read_text(r, trainer, text, err);
  free(text);
  return status;
}

static gl_status print_reading(const trainer_reading *r, policy_trainer trainer, bool is_json,
                               gl_error *err) {
  const policy_trainer_info *about = policy_trainer_about(trainer);
  if (is_json) {
    cJSON *o = json_new(), *notes, *fields;
    json_put(o, "trainer %s, version %s, algorithm %s, base %s, published %i", about->name,
             about->version, r->algorithm.name, r->algorithm.base, r->is_published);
    notes = json_list(o, "notes");
    for (size_t i = 0; i < r->n_notes; ++i) json_put(notes, "%s", r->notes[i]);
    fields = json_object(o, "fields");
    for (size_t f = 0; f < policy_fields_count(); ++f)
      algorithm_add_field(fields, &r->algorithm, f);
    return report_json(o, err);
  }
  printf("%s\n", r->algorithm.name);
  printf("  these switches of %s (%s) make %s\n", about->name, about->version,
         r->is_published ? "this published algorithm" : "this, and no published algorithm itself");
  for (size_t i = 0; i < r->n_notes; ++i) algorithm_print("note", r->notes[i]);
  return GL_OK;
}

static gl_status read_trainer(const char *from, const args *a, bool is_json, gl_error *err) {
  policy_trainer trainer = TRAINER_COUNT;
  trainer_reading r;
  gl_status status = choose_trainer(&trainer, from, err);
  if (status == GL_OK) status = read_switches(&r, trainer, a, err);
  return status == GL_OK ? print_reading(&r, trainer, is_json, err) : status;
}

/* --- as PyTorch --- */

static gl_status print_torch(const char *name, gl_error *err) {
  policy_algorithm a;
  gl_status status = whatif_algorithm(&a, name, NULL, 0, err);
  if (status != GL_OK) return status;
  char *text = torch_lines(&a);
  fputs(text, stdout);
  free(text);
  return GL_OK;
}

static gl_status run_algorithms(args *a, gl_error *err) {
  int json = 0, fields = 0, torch = 0;
  const char *from = NULL;
  const args_option options[] = {
      {"fields", 0, ARGS_FLAG, NULL, "what every field means and may be", &fields},
      {"from", 0, ARGS_TEXT, "TRAINER",
       "the algorithm that a trainer's switches make: name=value …, or its file", &from},
      {"torch", 0, ARGS_FLAG, NULL,
       "one algorithm, a name or {base: NAME, field: value, …}, as a loss in PyTorch", &torch},
      {"json", 0, ARGS_FLAG, NULL, "all algorithms with all fields as JSON", &json}};
  gl_status status = args_parse(a, options, 4, err);
  if (status != GL_OK || a->help) return status;
  if (from == NULL && a->n_words > 1)
    return gl_fail(err, GL_EINPUT, "list algorithms takes one name, not %zu", a->n_words);
  if (torch && a->n_words != 1)
    return gl_fail(err, GL_EINPUT, "--torch writes one algorithm; name it");
  if (torch) return print_torch(a->words[0], err);
  if (from != NULL && !fields) return read_trainer(from, a, json, err);
  if (!fields) return print_algorithms(a->n_words > 0 ? a->words[0] : NULL, json, err);
  algorithms_print_fields();
  return GL_OK;
}

const command command_algorithms = {
    .name = "list algorithms",
    .arguments = "[ALGORITHM | --from TRAINER name=value …]",
    .words = {.input = ARGS_ANY, .max = 64, .algorithms = true},
    .summary = "the published algorithms and your own, their fields and sources",
    .about =
        "A line for each, or all of one: its source, what is gepolab's own choice, its formulas\n"
        "in the notation of paper/methods.md, its fields (text: the main ones and those that\n"
        "differ from reinforce; JSON: all), and the settings of TRL, verl, AReaL, prime-rl, slime\n"
        "and miles, NeMo-RL, SkyRL, ROLL and OpenRLHF that make it, with what their code does\n"
        "differently and where that was read: `--from TRAINER` reads these switches again, on top "
        "of\n"
        "the trainer's defaults, and `makes` says what they make where that is not the algorithm\n"
        "itself. Any field can be changed in a recipe: algorithm:\n"
        "{base: gepo, clip: none}. --torch writes one as a loss in PyTorch; a field that those\n"
        "lines do not follow is named below them.",
    .examples = "  gepolab list algorithms\n  gepolab list algorithms gepo --json\n  gepolab list "
                "algorithms --from verl loss_mode=gspo\n  gepolab list "
                "algorithms --fields",
    .run = run_algorithms};
