/* What every command does alike: help, suggestions, JSON, exit codes. */
#include "sim/trainer_counters.h"
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <string.h>

SUITE("cli: commands");

static const char *const commands[] = {"run", "sweep", "study", "analyze", "plot",   "report",
                                       "sim", "plan",  "fit",   "policy",  "whatif", "diagnose",
                                       "lab", "llm",   "list",  "doctor",  "bench",  "results"};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

TEST(every_command_has_help_with_an_example) {
  for (size_t i = 0; i < N_COMMANDS; ++i) {
    cli_result r = CLI(commands[i], "--help");
    CU_ASSERT_EQUAL(r.code, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "usage: gepolab "));
    CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "examples:\n  "));
    CU_ASSERT(cli_fits(r.out, strlen(r.out)));
    cli_result same = CLI("help", commands[i]);
    CU_ASSERT_STRING_EQUAL(r.out, same.out);
  }
}

/* Groups list their words between the description and this line, each after two spaces. */
TEST(help_of_every_word_fits_80_columns) {
  static const char *const groups[] = {"study", "lab", "llm", "list"};
  for (size_t g = 0; g < sizeof groups / sizeof *groups; ++g) {
    cli_result group = CLI(groups[g], "--help");
    const char *end = strstr(group.out, "\n\n`gepolab ");
    size_t words = 0;
    CU_ASSERT_PTR_NOT_NULL_FATAL(end);
    for (const char *line = group.out; line < end; line += 1 + strcspn(line, "\n")) {
      char word[32];
      if (strncmp(line, "  ", 2) != 0 || line[2] == ' ') continue;
      snprintf(word, sizeof word, "%.*s", (int)strcspn(line + 2, " "), line + 2);
      cli_result help = CLI(groups[g], word, "--help");
      CU_ASSERT_EQUAL(help.code, 0);
      CU_ASSERT(cli_fits(help.out, strlen(help.out)));
      ++words;
    }
    CU_ASSERT(words >= 3);
  }
}

/* The overview is read on a terminal of 24 lines of 80 columns, the last of which is the prompt. */
TEST(help_lists_every_command_on_one_terminal) {
  cli_result r = CLI("help");
  size_t lines = 0, columns = 0;
  CU_ASSERT_EQUAL(r.code, 0);
  for (size_t i = 0; i < N_COMMANDS; ++i) CU_ASSERT_PTR_NOT_NULL(strstr(r.out, commands[i]));
  for (const char *c = r.out; *c != '\0'; ++c) {
    const int continues = ((unsigned char)*c & 0xC0) == 0x80; /* of a UTF-8 character */
    columns = *c == '\n' ? 0 : columns + !continues;
    lines += *c == '\n';
    CU_ASSERT(columns <= 80);
  }
  CU_ASSERT(lines <= 23);
}

/* An old first word does what the new words do, and its help begins with them. */
TEST(old_words_work_and_say_the_new_ones) {
  static const char *const words[][3] = {
      {"status", "study", "status"},     {"export", "study", "export"},
      {"merge", "study", "merge"},       {"bias", "lab", "bias"},
      {"selection", "lab", "selection"}, {"algorithms", "list", "algorithms"},
      {"published", "list", "published"}};
  for (size_t i = 0; i < sizeof words / sizeof *words; ++i) {
    cli_result old = CLI(words[i][0], "--help"), now = CLI(words[i][1], words[i][2], "--help");
    char name[64], called[128];
    snprintf(name, sizeof name, "%s %s", words[i][1], words[i][2]);
    const int n = snprintf(called, sizeof called, "`gepolab %s` is called `gepolab %s` now.\n\n",
                           words[i][0], name);
    CU_ASSERT(strncmp(old.out, called, (size_t)n) == 0);
    CU_ASSERT_STRING_EQUAL(old.out + n, now.out);
  }
  cli_result old = CLI("algorithms", "gepo", "--json"),
             now = CLI("list", "algorithms", "gepo", "--json");
  CU_ASSERT_STRING_EQUAL(old.out, now.out);
}

/* An option chooses among the tables of `analyze`, wherever it stands. */
TEST(a_table_of_analyze_is_chosen_by_an_option) {
  cli_result old = CLI("outcomes", "no.db"), now = CLI("analyze", "no.db", "--table=outcomes"),
             last = CLI("analyze", "--table", "outcomes", "no.db");
  CU_ASSERT(old.code != 0 && old.code == now.code && old.code == last.code);
  CU_ASSERT_STRING_EQUAL(old.err, now.err);
  CU_ASSERT_STRING_EQUAL(old.err, last.err);
}

TEST(the_version_is_printed) {
  cli_result r = CLI("--version");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT(strncmp(r.out, "gepolab ", 8) == 0);
}

typedef struct slip {
  const char *arguments[6];
  const char *hint;
} slip;

TEST(slips_of_the_pen_get_the_nearest_name) {
  const slip slips[] = {
      {{"sweeep"}, "'sweep'"},
      {{"polcy"}, "'policy'"},
      {{"run", "quickstart", "--jsn"}, "'--json'"},
      {{"sweep", "quickstart", "--ouptut", "x.db"}, "'--output'"},
      {{"run", "quickstrat"}, "'quickstart'"},
      {{"export", "x.db", "--table", "stpes"}, "'steps'"},
      {{"export", "x.db", "--format", "cvs"}, "'csv'"},
      {{"algorithms", "geppo"}, "'gepo'"},
      {{"policy", "--algorithm", "geppo", "x.json"}, "'gepo'"},
      {{"help", "exprot"}, "'study export'"},
      {{"study", "exprot"}, "'export'"},
      {{"analyze", "--table", "outcoms", "x.db"}, "'outcomes'"},
  };
  for (size_t i = 0; i < sizeof slips / sizeof slips[0]; ++i) {
    cli_result r = cli_run(NULL, slips[i].arguments);
    CU_ASSERT_EQUAL(r.code, 2);
    CU_ASSERT(strncmp(r.err, "gepolab: ", 9) == 0);
    if (strstr(r.err, slips[i].hint) == NULL) {
      fprintf(stderr, "no %s in: %s", slips[i].hint, r.err);
      CU_FAIL("the nearest name is missing");
    }
  }
}

TEST(wrong_usage_exits_with_two) {
  CU_ASSERT(CLI_GIVES(2, "run"));
  CU_ASSERT(CLI_GIVES(2, "run", "quickstart", "stray word"));
  CU_ASSERT(CLI_GIVES(2, "sweep", "delay_sweep", "-q"));
  CU_ASSERT(CLI_GIVES(2, "sweep", "delay_sweep", "-o"));
  CU_ASSERT(CLI_GIVES(2, "sweep", "delay_sweep", "-o", "x.db", "-j", "0"));
  CU_ASSERT(CLI_GIVES(2, "sweep", "delay_sweep", "-o", "x.db", "-j", "two"));
  CU_ASSERT(CLI_GIVES(2, "sweep", "delay_sweep", "-o", "x.db", "--shard", "2/2"));
  CU_ASSERT(CLI_GIVES(2, "sim", "quickstart", "--schedule", "xml"));
  CU_ASSERT(CLI_GIVES(2, "sim", "quickstart", "--schedule", "csv", "--json"));
  CU_ASSERT(CLI_GIVES(2, "policy", "x.json"));
  CU_ASSERT(CLI_GIVES(2, "merge", "x.db"));
  CU_ASSERT(CLI_GIVES(2, "recipes", "no_such_recipe"));
  cli_result r = cli_run(NULL, (const char *const[]){NULL});
  CU_ASSERT_EQUAL(r.code, 2);
}

TEST(a_sweep_is_not_run_as_one_run) {
  cli_result r = CLI("run", "delay_sweep");
  CU_ASSERT_EQUAL(r.code, 2);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "gepolab sweep"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "sweep=null"));
}

TEST(json_answers_parse) {
  const char *const asked[][6] = {
      {"algorithms", "--json"},        {"algorithms", "gepo", "--json"},
      {"recipes", "--json"},           {"metrics", "--json"},
      {"sim", "quickstart", "--json"}, {"run", "quickstart", "steps=10", "-q", "--json"}};
  for (size_t i = 0; i < sizeof asked / sizeof asked[0]; ++i) {
    cli_result r = cli_run(NULL, asked[i]);
    CU_ASSERT_EQUAL(r.code, 0);
    cJSON *json = json_parsed(r.out);
    CU_ASSERT_PTR_NOT_NULL(json);
  }
}

/* Both forms of the answer; and outside of every range no number, but the condition. */
TEST(sim_prints_theory_beside_the_simulated_numbers) {
  const char *const synchronous = "cluster={preset: sync, generation: 90, delay: 5}";
  cli_result r = CLI("sim", "quickstart", synchronous, "steps=200", "--theory", "--json");
  cJSON *json = json_parsed(r.out);
  const cJSON *theory = member_at(json, "theory");
  const cJSON *rate = member_at(theory, "quantities.samples_per_s");
  CU_ASSERT_STRING_EQUAL(text_at(theory, "form"), "synchronous");
  CU_ASSERT_PTR_NOT_NULL_FATAL(rate);
  ASSERT_CLOSE(number_at(rate, "theory_low"), 64 / 125.0, 1e-12);
  ASSERT_CLOSE(number_at(rate, "simulated"), 64 / 125.0, 1e-12);
  CU_ASSERT(number_at(rate, "standard_error") < 1e-12);
  r = CLI("sim", "quickstart", synchronous, "steps=200", "--theory");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "theory: synchronous"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "samples_per_s             0.512 "));
  CU_ASSERT_PTR_NOT_NULL(
      strstr(r.out, "\n                          theory              simulated "));
  r = CLI("sim", "quickstart", "cluster={preset: heterorl}", "--theory");
  CU_ASSERT_EQUAL(r.code, 2);
  CU_ASSERT_STRING_EQUAL(r.out, "");
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "all need: cluster.sync is push"));
  CU_ASSERT(CLI_GIVES(2, "sim", "quickstart", synchronous, "steps=99", "--theory"));
  CU_ASSERT(CLI_GIVES(2, "sim", "quickstart", synchronous, "--theory", "--schedule", "csv"));
}

TEST(sim_tells_what_the_issue_asks) {
  static const char *const keys[] = {"learner_utilisation", "sampler_utilisation",
                                     "batches_trained",     "batches_dropped",
                                     "samples_per_s",       "bytes_up",
                                     "bytes_down",          "simulated_s"};
  static const char *const inner[] = {"mean", "max", "p50", "p95"};
  cJSON *json = CLI_JSON("sim", "quickstart", "--json");
  for (size_t i = 0; i < sizeof keys / sizeof keys[0]; ++i)
    CU_ASSERT(cJSON_IsNumber(member_at(json, keys[i])));
  const cJSON *staleness = member_at(json, "staleness");
  for (size_t i = 0; i < sizeof inner / sizeof inner[0]; ++i)
    CU_ASSERT(cJSON_IsNumber(member_at(staleness, inner[i])));
  const cJSON *bars = member_at(staleness, "histogram"), *bar = NULL;
  double sum = 0;
  cJSON_ArrayForEach(bar, bars) sum += bar->valuedouble;
  CU_ASSERT(sum > 0);
  ASSERT_CLOSE(sum, number_at(json, "batches_trained"), 0);
}

TEST(a_recipe_inside_the_program_can_be_written_out_and_run) {
  char folder[64], path[128];
  cli_scratch_make(folder);
  cli_result text = CLI("recipes", "quickstart");
  cli_write(cli_path(path, folder, "quickstart.yaml"), text.out, text.out_size);
  cli_result a = CLI("run", path, "steps=20", "--json", "-q");
  cli_result b = CLI("run", "quickstart", "steps=20", "--json", "-q");
  CU_ASSERT_EQUAL(a.code, 0);
  CU_ASSERT_STRING_EQUAL(a.out, b.out);
}

/* 1 if the manual holds every "--option" of the help, whose dashes roff writes as \-\-. */
static int manual_has_options(const char *manual, const char *help) {
  int all = 1;
  const char *options = strstr(help, "\noptions:\n"), *end = strstr(help, "\nexamples:\n");
  if (options == NULL || end == NULL) return 0;
  for (const char *at = strstr(options, "--"); at != NULL && at < end; at = strstr(at + 2, "--")) {
    char name[64], escaped[130] = "\\-\\-";
    if (sscanf(at, "--%40[a-z-]", name) != 1 || strcmp(name, "help") == 0) continue;
    for (const char *c = name; *c != '\0'; ++c)
      snprintf(escaped + strlen(escaped), sizeof escaped - strlen(escaped),
               *c == '-' ? "\\-" : "%c", *c);
    if (strstr(manual, escaped) == NULL) {
      fprintf(stderr, "the manual lacks --%s\n", name);
      all = 0;
    }
  }
  return all;
}

TEST(the_manual_names_every_command_and_option) {
  cli_result manual = CLI("help", "--man");
  static const char *const lines[][4] = {{"run"},
                                         {"sweep"},
                                         {"sim"},
                                         {"policy"},
                                         {"analyze"},
                                         {"plot"},
                                         {"doctor"},
                                         {"bench"},
                                         {"study", "export"},
                                         {"study", "merge"},
                                         {"list", "fields"},
                                         {"list", "kinds"},
                                         {"list", "metrics"},
                                         {"lab", "bias"},
                                         {"lab", "theory"},
                                         {"bench", "gpu"},
                                         {"llm", "info"},
                                         {"llm", "sft"},
                                         {"llm", "rl"},
                                         {"llm", "eval"},
                                         {"llm", "generate"},
                                         {"llm", "profile"},
                                         {"analyze", "--table", "features"}};
  CU_ASSERT_EQUAL(manual.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(manual.out, ".TH GEPOLAB 1"));
  for (size_t i = 0; i < sizeof lines / sizeof *lines; ++i) {
    const char *asked[6] = {NULL};
    char heading[64] = "\n.SS \"";
    size_t n = 0;
    for (; lines[i][n] != NULL; ++n) {
      asked[n] = lines[i][n];
      const int dashed = strncmp(asked[n], "--", 2) == 0;
      const size_t used = strlen(heading);
      snprintf(heading + used, sizeof heading - used, "%s%s ", dashed ? "\\-\\-" : "",
               asked[n] + (dashed ? 2 : 0));
    }
    asked[n] = "--help";
    CU_ASSERT_PTR_NOT_NULL(strstr(manual.out, heading));
    cli_result help = cli_run(NULL, asked);
    CU_ASSERT(manual_has_options(manual.out, help.out));
  }
}

TEST(kinds_are_listed_with_their_parameters) {
  cJSON *kinds = CLI_JSON("kinds", "--json");
  const cJSON *dist = cJSON_GetArrayItem(member_at(kinds, "delay distributions"), 9);
  CU_ASSERT_STRING_EQUAL(text_at(dist, "name"), "gilbert_elliott");
  CU_ASSERT_EQUAL(cJSON_GetArraySize(member_at(dist, "parameters")), 4);
  CU_ASSERT_EQUAL(cJSON_GetArraySize(member_at(kinds, "presets")), 33);
  CU_ASSERT(cJSON_GetArraySize(member_at(kinds, "worlds")) >= 2);
}

TEST(every_definition_says_where_it_was_read) {
  cJSON *json = CLI_JSON("list", "definitions", "--json");
  const cJSON *row;
  CU_ASSERT_EQUAL(cJSON_GetArraySize(json), STALENESS_DEFINITIONS);
  cJSON_ArrayForEach(row, json) {
    static const char *const columns[] = {"name", "system", "unit", "formula", "source"};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; ++i) {
      const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(row, columns[i]));
      CU_ASSERT(text != NULL && strlen(text) > 3);
    }
  }
  cli_result r = CLI("list", "definitions", "prime_rl", "in_queue");
  CU_ASSERT_EQUAL(strncmp(r.out, "prime_rl/off_policy/in_queue ", 29), 0);
  for (const char *at = r.out; *at != '\0'; at += strcspn(at, "\n") + 1)
    CU_ASSERT(strcspn(at, "\n") <= 80);
}

TEST(formats_are_chosen_by_words) {
  cli_result all = CLI("list", "formats"), some = CLI("list", "formats", "verl");
  CU_ASSERT(some.code == 0 && strlen(some.out) < strlen(all.out));
  CU_ASSERT_PTR_NOT_NULL(strstr(some.out, "verl"));
}

TEST(presets_are_listed_with_their_sources) {
  cli_result r = CLI("presets", "--json");
  cJSON *presets = json_parsed(r.out), *item = NULL;
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_EQUAL(cJSON_GetArraySize(presets), 33);
  cJSON_ArrayForEach(item, presets) {
    static const char *const keys[] = {"name",   "about",   "fields",
                                       "source", "mapping", "not_modelled"};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; ++k)
      CU_ASSERT(cJSON_IsString(member_at(item, keys[k])));
  }
  r = CLI("presets", "areal", "--format", "markdown");
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "| `areal` |"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "ahead: 4, window: 4, learner.queue: oldest_version"));
  CU_ASSERT_PTR_NULL(strstr(r.out, "| `sync` |"));
  REFUSED(2, "'areal'", "presets", "areall");
}

TEST(renamed_options_are_refused_with_the_new_name) {
  cli_result r = CLI("sim", "quickstart", "--plot", "figures");
  CU_ASSERT_EQUAL(r.code, 2);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "--figures"));
  REFUSED(2, "--threads", "bias", "four_arms", "--jobs", "2");
}

TEST(the_fields_of_recipes_are_listed_with_default_and_unit) {
  cli_result r = CLI("fields", "--json");
  CU_ASSERT_EQUAL(r.code, 0);
  cJSON *fields = json_parsed(r.out), *field = NULL;
  int steps = 0;
  cJSON_ArrayForEach(field, fields) {
    CU_ASSERT(text_at(field, "meaning")[0] != '\0');
    if (strcmp(text_at(field, "path"), "steps") != 0) continue;
    steps = strcmp(text_at(field, "default"), "200") == 0 &&
            strcmp(text_at(field, "unit"), "updates") == 0;
  }
  CU_ASSERT(steps);
  CU_ASSERT(cJSON_GetArraySize(fields) > 150);
  r = CLI("fields", "optimizer.lr");
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "1e-05 (kind llm); else 0.05"));
  r = CLI("fields", "--only", "cluster", "cluster.ahead", "world.task", "--format", "markdown");
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "| `cluster` | section |"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "2 (preset prime_rl, intellect2, areal_2); "
                                       "7 (preset verl_v1); 3 (preset torchtitan_rl); else none"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "| `world.task` | choice or section |"));
  CU_ASSERT_PTR_NULL(strstr(r.out, "`cluster.up`"));
  REFUSED(2, "'cluster'", "fields", "cluster", "clusterr");
}
