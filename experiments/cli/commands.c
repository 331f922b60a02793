/* The table of commands, `gepolab help`, the manual page, completion, and how a status becomes an
 * exit code. */
#include "analysis/figures/figures.h"
#include "core/base/display_text.h"
#include "core/base/file.h"
#include "core/base/metrics.h"
#include "core/config/config.h"
#include "core/config/fields.h"
#include "core/policy/algorithm.h"
#include "core/store/export.h"
#include "experiments/base/args.h"
#include "experiments/base/program.h"
#include "llm/task/task.h"
#include "sim/cluster.h"
#include "toy/world/mdp.h"
#include "toy/world/toy_world.h"

#include <errno.h>
#include <gen/version.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* --- completion --- */

/* Prints a row for completion: "v", the kind of the name (the placeholder in help texts, such as
 * RECIPE; `FIELD:path` for values of a field), the name, its description. */
static void print_name(const char *of, const char *name, const char *about) {
  printf("v\t%s\t%s\t", of, name);
  for (const char *c = about[0] != '\0' ? about : "-"; *c != '\0'; ++c)
    putchar(*c == '\t' || *c == '\n' ? ' ' : *c);
  putchar('\n');
}

static void print_recipes(void) {
  for (size_t i = 0; resources_at(i) != NULL; ++i) {
    size_t length = 0;
    char name[64];
    const char *at = resources_recipe_name(resources_at(i), &length);
    if (at == NULL) continue;
    snprintf(name, sizeof name, "%.*s", (int)length, at);
    print_name("RECIPE", name, "inside the program");
  }
}

/* Prints all recipe fields; of several entries with one path only the first. */
static void print_recipe_fields(void) {
  const char *about = "";
  char of[128];
  for (size_t i = 0; fields_at(i) != NULL; ++i) {
    const field *f = fields_at(i);
    if (fields_named(f->path) != f) continue;
    print_name("FIELD", f->path, f->label);
    if (f->kind != VALUE_FLAG) continue;
    snprintf(of, sizeof of, "FIELD:%s", f->path);
    print_name(of, "true", "");
    print_name(of, "false", "");
  }
  for (size_t i = 0; cluster_preset_at(i) != NULL; ++i)
    print_name("FIELD:cluster.preset", cluster_preset_at(i)->name, cluster_preset_at(i)->about);
  for (size_t i = 0; toy_kind_at(i, &about) != NULL; ++i)
    print_name("FIELD:world.kind", toy_kind_at(i, &about), about);
  for (size_t i = 0; mdp_kind_at(i, &about) != NULL; ++i)
    print_name("FIELD:world.kind", mdp_kind_at(i, &about), about);
  print_name("FIELD:world.kind", "llm", "a transformer");
}

/* Prints the fields of an algorithm: `gepolab policy` accepts them by name, recipes as
 * `algorithm.NAME`. */
static void print_settings(void) {
  char of[128];
  for (size_t i = 0; i < policy_fields_count(); ++i) {
    const policy_field *f = policy_fields_at(i);
    print_name("SETTING", f->name, f->meaning);
    snprintf(of, sizeof of, "SETTING:%s", f->name);
    for (int c = 0; c < f->n_choices; ++c) print_name(of, f->choice(c), "");
    if (f->kind != POLICY_FIELD_FLAG) continue;
    print_name(of, "true", "");
    print_name(of, "false", "");
  }
}

static void print_names(void) {
  const char *about = "";
  for (size_t i = 0; i < policy_algorithms_count(); ++i)
    print_name("ALGORITHM", policy_algorithms_at(i)->name, policy_algorithms_info(i)->source);
  print_settings();
  print_recipes();
  print_recipe_fields();
  for (int m = 0; m < METRIC_COUNT; ++m)
    print_name("METRIC", metric_about((metric)m)->name, metric_about((metric)m)->meaning);
  for (size_t i = 0; store_export_at(i) != NULL; ++i)
    print_name("TABLE", store_export_at(i)->name, store_export_at(i)->about);
  for (size_t i = 0; figures_at(i) != NULL; ++i)
    print_name("FIGURE", figures_at(i)->name, figures_at(i)->shows);
  for (size_t i = 0; task_kind_at(i, &about) != NULL; ++i)
    print_name("KIND", task_kind_at(i, &about), about);
}

/* The first line of a shell's completion file, and the embedded script that reads the rows. */
typedef struct shell {
  const char *name, *opening, *script;
} shell;

static const shell shells[] = {{"bash", "", "experiments/cli/completion.bash"},
                               {"zsh", "#compdef gepolab\n", "experiments/cli/completion.zsh"}};
enum { N_SHELLS = sizeof shells / sizeof *shells };

static gl_status completion_begin(const char *name, gl_error *err) {
  const char *names[N_SHELLS];
  size_t which = 0;
  for (size_t i = 0; i < N_SHELLS; ++i) names[i] = shells[i].name;
  gl_status status = args_choose(&which, "the word after --completion", name, names, N_SHELLS, err);
  if (status != GL_OK) return status;
  printf("%s# Completion of gepolab " GEPOLAB_VERSION
         " for %s, made by `gepolab help --completion %s`.\n\n"
         "_gepolab_rows() {\n  command cat <<'END_OF_ROWS'\n",
         shells[which].opening, name, name);
  print_names();
  return GL_OK;
}

static void completion_end(const char *name) {
  fputs("END_OF_ROWS\n}\n\n", stdout);
  for (size_t i = 0; i < N_SHELLS; ++i)
    if (strcmp(shells[i].name, name) == 0) fputs(resources_text(shells[i].script), stdout);
}

/* --- the table --- */

/* Words below a first word; each is a command of its own. */
typedef struct second_words {
  const char *option; /* the words are values of this option; NULL: they follow the first word */
  bool were_first;    /* they also work as first words, as in earlier versions */
  const command *const *of; /* ends with NULL */
} second_words;

/* Each name stands for command_NAME, which one of the files cmd_*.c defines. */
#define STUDY(X) X(status) X(info) X(check) X(merge) X(export)
#define TABLES(X)                                                                                  \
  X(outcomes) X(contrasts) X(effects) X(announcements) X(declines) X(features) X(power) X(profiles)
#define LAB(X) X(bias) X(theory) X(selection)
#define LISTS(X)                                                                                   \
  X(algorithms)                                                                                    \
  X(fields) X(kinds) X(presets) X(formats) X(metrics) X(definitions) X(recipes) X(published)
#define LLM(X)                                                                                     \
  X(llm_info)                                                                                      \
  X(llm_tasks)                                                                                     \
  X(llm_sft)                                                                                       \
  X(llm_rl) X(llm_eval) X(llm_generate) X(llm_answer) X(llm_profile) X(llm_bias)
#define BENCHES(X) X(bench_gpu)
#define SECONDS(X) STUDY(X) TABLES(X) LAB(X) LISTS(X) LLM(X) BENCHES(X)

#define DECLARED(name) extern const command command_##name;
#define LISTED(name) &command_##name,
SECONDS(DECLARED)

static const second_words none = {.of = (const command *const[]){NULL}};
static const second_words of_study = {.were_first = true,
                                      .of = (const command *const[]){STUDY(LISTED) NULL}};
static const second_words of_analyze = {
    .option = "--table", .were_first = true, .of = (const command *const[]){TABLES(LISTED) NULL}};
static const second_words of_lab = {.were_first = true,
                                    .of = (const command *const[]){LAB(LISTED) NULL}};
static const second_words of_list = {.were_first = true,
                                     .of = (const command *const[]){LISTS(LISTED) NULL}};
static const second_words of_llm = {.of = (const command *const[]){LLM(LISTED) NULL}};
static const second_words of_bench = {.of = (const command *const[]){BENCHES(LISTED) NULL}};

/* Rows that the WebAssembly module (mk/wasm.mk) does not have: a browser has no processes, no
 * gnuplot and no transformer, and keeps no studies. */
#ifdef __EMSCRIPTEN__
#define NOT_IN_BROWSER(...)
#else
#define NOT_IN_BROWSER(...) __VA_ARGS__
#endif

/* Every first word in the order of `gepolab help`: its task in the help ("": that of the previous
 * word), NAME for command_NAME, and its second words. */
#define COMMANDS(X)                                                                                \
  NOT_IN_BROWSER(X("train", run, none) X("", sweep, none) X("results", study, of_study) X(         \
      "", analyze, of_analyze) X("", plot, none) X("", report, none) X("", results, none))         \
  X("timing", sim, none)                                                                           \
  NOT_IN_BROWSER(X("", plan, none) X("", fit, none) X("", calibrate, none))                        \
  X("losses", policy, none)                                                                        \
  X("", whatif, none)                                                                              \
  X("", diagnose, none)                                                                            \
  X("theory", lab, of_lab)                                                                         \
  NOT_IN_BROWSER(X("models", llm, of_llm))                                                         \
  X("program", list, of_list)                                                                      \
  NOT_IN_BROWSER(X("", doctor, none) X("", bench, of_bench))

#define DECLARED_FIRST(task, name, words) DECLARED(name)
#define ENTRY(task, name, words) {task, &command_##name, &words},
COMMANDS(DECLARED_FIRST)

typedef struct entry {
  const char *task;
  const command *self; /* self->run NULL: a second word must follow */
  const second_words *words;
} entry;
static const entry table[] = {COMMANDS(ENTRY)};
enum { N_ENTRIES = sizeof table / sizeof *table, MOST_WORDS = 64 };

/* --- first words that are nothing without a second --- */

const command command_study = {
    .name = "study",
    .arguments = "WORD STUDY.db …",
    .summary = "the file of a study: status, info, check, merge, export",
    .about =
        "A study is one SQLite file, which `gepolab sweep`, `gepolab run` and `gepolab lab\n"
        "bias` write with -o. The words below show its progress and provenance, check it, join\n"
        "the files of several shards, and export its tables for other programs.",
    .examples = "  gepolab study status study.db --watch\n"
                "  gepolab study info study.db\n"
                "  gepolab study export study.db --all -o data/"};

const command command_lab = {
    .name = "lab",
    .arguments = "WORD …",
    .summary = "exact gradients in small worlds: bias, theory, selection",
    .about = "Worlds small enough to list all responses: expected gradients, their bias and their\n"
             "variance have no sampling noise there.",
    .examples = "  gepolab lab bias bias_vs_kl\n"
                "  gepolab lab theory\n"
                "  gepolab lab selection what_arrives"};

const command command_list = {.name = "list",
                              .arguments = "WORD …",
                              .summary = "what there is: algorithms, fields, presets, recipes, …",
                              .about = "The tables of the program, with sources and units.",
                              .examples = "  gepolab list algorithms\n"
                                          "  gepolab list algorithms gepo\n"
                                          "  gepolab list fields cluster.window\n"
                                          "  gepolab list recipes"};

const command command_llm = {
    .name = "llm",
    .arguments = "WORD …",
    .summary = "the transformer by itself: warm-up, RL, evaluation, text",
    .about =
        "A real language model in place of a toy world: a recipe's `world: {kind: llm, …}`, or a\n"
        "folder as Hugging Face keeps a Qwen3, Qwen2 or Llama model (config.json,\n"
        "model.safetensors, tokenizer.json). The same world works in `gepolab run`, `sweep` and "
        "`lab bias`.",
    .examples = "  gepolab llm info llm_quick\n"
                "  gepolab llm sft llm_quick -o warm/\n"
                "  gepolab llm eval warm/ --samples 8\n"
                "  gepolab llm generate warm/ '305824='"};

/* --- finding a command --- */

/* The last word of a command's name: "status" of "study status", "outcomes" of "analyze --table
 * outcomes". */
static const char *commands_last_word(const command *c) {
  const char *blank = strrchr(c->name, ' ');
  return blank != NULL ? blank + 1 : c->name;
}

static const command *find_second(const second_words *words, const char *word) {
  for (size_t i = 0; words->of[i] != NULL; ++i)
    if (strcmp(commands_last_word(words->of[i]), word) == 0) return words->of[i];
  return NULL;
}

static const entry *find_first(const char *word) {
  for (size_t i = 0; i < N_ENTRIES; ++i)
    if (strcmp(table[i].self->name, word) == 0) return &table[i];
  return NULL;
}

/* Finds the command with this second word, if the word alone also calls it, as in earlier versions.
 */
static const command *find_old(const char *word) {
  const command *found = NULL;
  for (size_t i = 0; i < N_ENTRIES && found == NULL; ++i)
    if (table[i].words->were_first) found = find_second(table[i].words, word);
  return found;
}

/* Words of other programs and the commands of gepolab that correspond to them. */
static const struct {
  const char *word, *ours;
} other_words[] = {{"train", "run"},
                   {"simulate", "sim"},
                   {"compare", "analyze"},
                   {"stats", "analyze"},
                   {"draw", "plot"},
                   {"figures", "plot"},
                   {"grid", "sweep"},
                   {"tune", "sweep"},
                   {"version", "--version"},
                   {"-v", "--version"},
                   {"-V", "--version"},
                   {"config", "list fields"},
                   {"params", "list fields"},
                   {"gpu", "doctor"},
                   {"check-install", "doctor"},
                   {"eval", "llm eval"},
                   {"generate", "llm generate"},
                   {"sft", "llm sft"},
                   {"resume", "run RECIPE --checkpoint DIR"},
                   {"wandb", "study export"},
                   {"init", "run quickstart --print > my.yaml"},
                   {"list figures", "plot --list"},
                   {"list units", "list fields --units"},
                   {"list worlds", "list kinds"},
                   {"list distributions", "list kinds"},
                   {"list delays", "list kinds"},
                   {"list losses", "list algorithms"},
                   {"list methods", "list algorithms"},
                   {"list parameters", "list fields"},
                   {"list models", "llm info"},
                   {"list tasks", "llm tasks"},
                   {"list clusters", "list recipes"},
                   {"llm train", "llm rl"},
                   {"llm finetune", "llm sft"},
                   {"llm evaluate", "llm eval"},
                   {"lab variance", "lab bias"},
                   {"study open", "study info"},
                   {"study show", "study info"}};

/* Returns the command that corresponds to a word, or two words, of other programs; NULL: there is
 * none. */
static const char *other_word(const char *first, const char *second) {
  char both[128];
  snprintf(both, sizeof both, "%s%s%s", first, second != NULL ? " " : "",
           second != NULL ? second : "");
  for (size_t i = 0; i < sizeof other_words / sizeof *other_words; ++i)
    if (strcmp(other_words[i].word, both) == 0) return other_words[i].ours;
  return NULL;
}

/* Returns the error for an unknown command. It suggests the nearest command, a second-level one
 * with both words ("llm eval"). */
static gl_status no_command(const char *word, gl_error *err) {
  const char *ours = other_word(word, NULL);
  if (ours != NULL)
    return gl_fail(err, GL_EINPUT, "there is no command '%s'; use `gepolab %s`", word, ours);
  if (word[0] == '-')
    return gl_fail(err, GL_EINPUT,
                   "the command comes first, and its options behind it, as in `gepolab run "
                   "quickstart steps=20`; '%s' is no command",
                   word);
  if (resources_recipe(word) != NULL || resources_cluster(word) != NULL)
    return gl_fail(err, GL_EINPUT, "%s is %s; use `gepolab %s %s`", word,
                   resources_recipe(word) != NULL ? "a recipe" : "a description of a cluster",
                   resources_recipe(word) != NULL ? "run" : "plan", word);
  if (access(word, F_OK) == 0 && !file_is_folder(word))
    return gl_fail(err, GL_EINPUT, "'%s' is a file and no command; use `gepolab %s %s`", word,
                   file_is_database(word) ? "analyze" : "run", word);
  const char *names[MOST_WORDS], *asked = word;
  size_t n = 0;
  for (size_t i = 0; i < N_ENTRIES; ++i) {
    names[n++] = table[i].self->name;
    for (size_t k = 0; table[i].words->were_first && table[i].words->of[k] != NULL; ++k)
      names[n++] = commands_last_word(table[i].words->of[k]);
  }
  names[n++] = "help";
  const char *nearest = cfg_nearest(word, names, n);
  const command *old = nearest != NULL ? find_old(nearest) : NULL;
  if (old != NULL) names[0] = old->name, n = 1, asked = old->name;
  char hint[CFG_HINT_SIZE];
  return gl_fail(err, GL_EINPUT, "there is no command '%s'%s; `gepolab help` lists them", word,
                 cfg_hint(asked, names, n, hint));
}

/* --- help --- */

static void print_overview(FILE *to) {
  fputs("gepolab measures what network latency does to group-based policy optimisation.\n"
        "usage: gepolab COMMAND [ARGUMENTS]       `gepolab COMMAND --help` has examples\n\n",
        to);
  for (size_t i = 0; i < N_ENTRIES; ++i)
    fprintf(to, "%-8s  %-9s  %s\n", table[i].task, table[i].self->name, table[i].self->summary);
  fputs("Try: gepolab run quickstart   (also: --version, help --man, help --completion)\n", to);
}

static void commands_print_words(const entry *e, FILE *to) {
  const command *c = e->self;
  args_print_about(c, false, to);
  for (size_t i = 0; e->words->of[i] != NULL; ++i) {
    fprintf(to, "  %-11s ", commands_last_word(e->words->of[i]));
    shown_wrap(e->words->of[i]->summary, 14, 14, to);
    fputc('\n', to);
  }
  fprintf(to, "\n`gepolab %s WORD --help` describes one.\n\nexamples:\n%s\n", c->name, c->examples);
}

static gl_status run_command(const command *c, int argc, char **argv, gl_error *err) {
  args a = {.command = c, .argc = argc, .argv = argv};
  const gl_status status = c->run(&a, err);
  args_fini(&a);
  return status;
}

/* Prints a command's help in a form of args_help_form(). */
static gl_status help_of(const command *c, const char *form, gl_error *err) {
  char name[64], asked[64];
  snprintf(name, sizeof name, "%s", c->name);
  snprintf(asked, sizeof asked, "--help%s%s", form[0] != '\0' ? "=" : "", form);
  char *line[] = {name, asked, NULL};
  return run_command(c, 2, line, err);
}

/* Prints the help of every command, in the order of `gepolab help`. */
static gl_status help_of_all(const char *form, bool families, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < N_ENTRIES && status == GL_OK; ++i) {
    const entry *e = &table[i];
    if (e->self->run != NULL) status = help_of(e->self, form, err);
    if (e->self->run == NULL && families) args_print_command_row(e->self);
    for (size_t k = 0; e->words->of[k] != NULL && status == GL_OK; ++k)
      status = help_of(e->words->of[k], form, err);
  }
  return status;
}

static gl_status print_manual(gl_error *err) {
  fputs(
      ".TH GEPOLAB 1 \"\" \"gepolab " GEPOLAB_VERSION "\" \"User Commands\"\n"
      ".SH NAME\ngepolab \\- network latency and group-based policy optimisation, measured\n"
      ".SH SYNOPSIS\n.B gepolab\n.I COMMAND\n.RI [ options ]\n.RI [ arguments ]\n"
      ".SH DESCRIPTION\n.B gepolab\n"
      "simulates samplers and a learner separated by network delays, trains policies on the\n"
      "resulting schedules with published policy-optimisation algorithms, keeps the results in a\n"
      "database and draws figures from it.\n.PP\nA\n.I RECIPE\n"
      "is a YAML file or the name of a recipe inside the program\n"
      ".RB ( \"gepolab list recipes\"\nlists them).\n.IB key = value\n"
      "overrides any field by its dotted path and takes any YAML value;\n.IB key =null\n"
      "takes a section away. experiments/RECIPES.md of the source describes every field.\n"
      ".SH COMMANDS\n",
      stdout);
  const gl_status status = help_of_all("man", false, err);
  fputs(".SH EXIT STATUS\n"
        ".TP\n0\nDone.\n.TP\n1\nFailed: something could not be read, written or computed.\n"
        ".TP\n2\nWrong usage or a wrong recipe; the message names the place and what is allowed.\n"
        ".TP\n130\nStopped by Ctrl-C; finished work is kept.\n"
        ".TP\n141\nWhoever read the output stopped reading, as in\n.BR \"gepolab study export "
        "study.db | "
        "head\" .\n"
        ".SH ENVIRONMENT\n.TP\n.B GEPOLAB_CACHE\n"
        "The folder of what commands keep between runs; empty: nothing is kept.\n"
        ".TP\n.B GEPOLAB_ALGORITHMS\n"
        "The file of your own algorithms; \\-\\-algorithms comes before it.\n"
        ".TP\n.B GEPOLAB_PRESETS\n"
        "The file of your own presets of clusters; \\-\\-presets comes before it.\n",
        stdout);
  return status;
}

/* Prints the rows for completion: commands, options, and "a" rows with the old word of a command
 * and its present name. */
static gl_status print_completion(const char *asked, gl_error *err) {
  gl_status status = completion_begin(asked, err);
  if (status != GL_OK) return status;
  status = help_of_all("rows", true, err);
  for (size_t i = 0; i < N_ENTRIES; ++i)
    for (size_t k = 0; table[i].words->were_first && table[i].words->of[k] != NULL; ++k)
      printf("a\t%s\t%s\n", commands_last_word(table[i].words->of[k]), table[i].words->of[k]->name);
  completion_end(asked);
  return status;
}

/* --- running --- */

/* The index in argv of the word that chooses one of a command's second words, or 0. */
static size_t chooser_of(const entry *e, int argc, char **argv, const command **chosen) {
  const char *option = e->words->option;
  const size_t length = option != NULL ? strlen(option) : 0;
  for (int i = 1; i < argc; ++i) {
    const char *word = option == NULL ? argv[i] : NULL;
    if (option != NULL && strcmp(argv[i], option) == 0 && i + 1 < argc) word = argv[i + 1];
    if (option != NULL && strncmp(argv[i], option, length) == 0 && argv[i][length] == '=')
      word = argv[i] + length + 1;
    if (word != NULL && (*chosen = find_second(e->words, word)) != NULL) return (size_t)i;
    if (option == NULL || strcmp(argv[i], "--") == 0) return 0;
  }
  return 0;
}

static gl_status no_second(const entry *e, int argc, char **argv, gl_error *err) {
  const char *name = e->self->name, *names[MOST_WORDS];
  if (argc > 1 && args_help_form(2, argv) != ARGS_NO_HELP) {
    commands_print_words(e, stdout);
    return GL_OK;
  }
  size_t n = 0;
  for (; e->words->of[n] != NULL; ++n) names[n] = commands_last_word(e->words->of[n]);
  if (argc < 2) {
    commands_print_words(e, stderr);
    return gl_fail(err, GL_EINPUT, "%s needs one of its words, such as `gepolab %s %s`", name, name,
                   names[0]);
  }
  const char *ours = other_word(name, argv[1]);
  if (ours != NULL)
    return gl_fail(err, GL_EINPUT, "%s has no word '%s'; use `gepolab %s`", name, argv[1], ours);
  char hint[CFG_HINT_SIZE], all[256];
  return gl_fail(err, GL_EINPUT, "%s has no word '%s'%s; it has %s", name, argv[1],
                 cfg_hint(argv[1], names, n, hint), cfg_listed(names, n, all, sizeof all));
}

/* Runs the command. argv[0] is the first word; the words that choose the command are removed from
 * argv. */
static gl_status run_entry(const entry *e, int argc, char **argv, gl_error *err) {
  const command *chosen = NULL;
  const size_t at = chooser_of(e, argc, argv, &chosen);
  if (chosen == NULL)
    return e->self->run != NULL ? run_command(e->self, argc, argv, err)
                                : no_second(e, argc, argv, err);
  const size_t taken = e->words->option != NULL && strchr(argv[at], '=') == NULL ? 2 : 1;
  for (size_t i = at; i + taken <= (size_t)argc; ++i) argv[i] = argv[i + taken];
  return run_command(chosen, argc - (int)taken, argv, err);
}

/* Runs the command named by argv[0]: a first word, or one of earlier versions. */
static gl_status run_word(int argc, char **argv, gl_error *err) {
  const entry *e = find_first(argv[0]);
  if (e != NULL) return run_entry(e, argc, argv, err);
  const command *old = find_old(argv[0]);
  if (old == NULL) return no_command(argv[0], err);
  if (args_help_form(argc, argv) == ARGS_HELP_TERMINAL)
    printf("`gepolab %s` is called `gepolab %s` now.\n\n", argv[0], old->name);
  return run_command(old, argc, argv, err);
}

static gl_status help(int argc, char **argv, gl_error *err) {
  if (argc < 3 || strcmp(argv[2], "help") == 0 || args_help_form(argc - 1, argv + 1) != 0) {
    print_overview(stdout);
    return GL_OK;
  }
  if (strcmp(argv[2], "--man") == 0) return print_manual(err);
  if (strcmp(argv[2], "--completion") == 0) return print_completion(argc > 3 ? argv[3] : "", err);
  char asked[] = "--help";
  char *line[MOST_WORDS];
  const int n = argc - 2 < MOST_WORDS - 2 ? argc - 2 : MOST_WORDS - 2;
  for (int i = 0; i < n; ++i) line[i] = argv[i + 2];
  line[n] = asked;
  line[n + 1] = NULL;
  return run_word(n + 1, line, err);
}

static gl_status dispatch(int argc, char **argv, gl_error *err) {
  if (argc < 2) {
    print_overview(stderr);
    return gl_fail(err, GL_EINPUT, "no command given");
  }
  const char *word = argv[1];
  if (strcmp(word, "--version") == 0) {
    puts("gepolab " GEPOLAB_VERSION);
    return GL_OK;
  }
  if (strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
    return help(argc, argv, err);
  return run_word(argc - 1, argv + 1, err);
}

/* Whether nobody reads standard output any more, as in `gepolab study export study.db | head`. */
static bool reader_has_gone(void) {
  struct pollfd to = {.fd = STDOUT_FILENO, .events = POLLOUT};
  return poll(&to, 1, 0) == 1 && (to.revents & (POLLERR | POLLHUP)) != 0;
}

/* The exit code that a shell reports for a process that SIGPIPE ended. Where that signal is
 * ignored, this process exits with the same code and without a message. */
enum { READER_HAS_GONE = 128 + SIGPIPE };

int commands_main(int argc, char **argv) {
  gl_error err = {.status = GL_OK};
  gl_status status = dispatch(argc, argv, &err);
  const bool unwritten = fflush(stdout) != 0 || ferror(stdout);
  if (unwritten && reader_has_gone()) return READER_HAS_GONE;
  if (unwritten && status == GL_OK)
    status = gl_fail(&err, GL_EIO, "cannot write to standard output: %s", strerror(errno));
  if (err.text[0] != '\0') {
    fputs("gepolab: ", stderr);
    shown_write(err.text, strlen(err.text), stderr);
    fputc('\n', stderr);
  }
  return gl_exit_code(status);
}
