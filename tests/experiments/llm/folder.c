/* A model's folder says which task its model was trained on; the files of that task are found from
 * any working directory, and a file that has moved is named. */
#include "tests/support/cli_llm.h"
#include "tests/support/files.h"
#include "tests/support/suite.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

SUITE("cli: llm folders");

static const char data_recipe[] =
    "name: sums\nseed: 3\nsteps: 2\n"
    "world:\n"
    "  kind: llm\n"
    "  backend: cpu\n"
    "  model: {layers: 1, hidden: 16, heads: 2, context: 48}\n"
    "  tokenizer: byte\n"
    "  max_tokens: 16\n"
    "  task: {kind: math, path: sums.jsonl, held_out_path: test.jsonl}\n"
    "  warmup: {steps: 2, batch: 4, cache: false}\n"
    "  evaluation: {prompts: 4}\n"
    "train: {groups: 2, group_size: 4}\n";

/* Sums first + 1, first + 2, ... as JSON Lines. */
static void write_sums(const char *folder, const char *name, int first) {
  char path[128], text[1024];
  size_t size = 0;
  for (int i = first; i < first + 8; ++i)
    size += (size_t)snprintf(text + size, sizeof text - size,
                             "{\"prompt\": \"%d+1?\", \"answer\": \"%d\"}\n", i, i + 1);
  cli_write(cli_path(path, folder, name), text, size);
}

/* Where the tests run, to come back to; and the program by a path that holds everywhere. */
typedef struct shell {
  char home[PATH_MAX], *program;
} shell;

static shell shell_begin(void) {
  shell s;
  const char *program = getenv("GEPOLAB");
  CU_ASSERT_PTR_NOT_NULL_FATAL(getcwd(s.home, sizeof s.home));
  s.program = program != NULL ? strdup(program) : NULL;
  char *whole = realpath(program != NULL && *program != '\0' ? program : "build/gepolab", NULL);
  CU_ASSERT_PTR_NOT_NULL_FATAL(whole);
  CU_ASSERT_FATAL(setenv("GEPOLAB", whole, 1) == 0);
  free(whole);
  return s;
}

static void shell_end(shell *s) {
  CU_ASSERT_EQUAL(chdir(s->home), 0);
  CU_ASSERT_EQUAL(s->program != NULL ? setenv("GEPOLAB", s->program, 1) : unsetenv("GEPOLAB"), 0);
  free(s->program);
}

TEST(eval_finds_the_data_of_sft_from_any_directory) {
  char folder[64], path[128], elsewhere[128], model[128];
  shell s = shell_begin();
  cli_scratch_make(folder);
  CU_ASSERT_FATAL(mkdir(cli_path(path, folder, "recipes"), 0777) == 0);
  CU_ASSERT_FATAL(mkdir(cli_path(elsewhere, folder, "elsewhere"), 0777) == 0);
  write_sums(folder, "recipes/sums.jsonl", 1);
  write_sums(folder, "test.jsonl", 20);
  cli_write(cli_path(path, folder, "recipes/sums.yaml"), data_recipe, sizeof data_recipe - 1);
  /* One file is beside the recipe, the other in the working directory. */
  CU_ASSERT_EQUAL_FATAL(chdir(folder), 0);
  CU_ASSERT(CLI_GIVES(0, "llm", "sft", "recipes/sums.yaml", "-o", "model", "-q"));
  CU_ASSERT(CLI_GIVES(0, "llm", "eval", "model", "-q"));
  CU_ASSERT_EQUAL_FATAL(chdir(elsewhere), 0);
  CU_ASSERT(CLI_GIVES(0, "llm", "eval", "../model", "-q"));
  CU_ASSERT(CLI_GIVES(0, "llm", "sft", "../model", "-o", "second", "-q",
                      "world.warmup={steps: 2, batch: 4, cache: false}"));
  CU_ASSERT_EQUAL_FATAL(chdir(s.home), 0);
  CU_ASSERT(CLI_GIVES(0, "llm", "eval", cli_path(model, folder, "model"), "-q"));
  CU_ASSERT(CLI_GIVES(0, "llm", "eval", cli_path(model, folder, "elsewhere/second"), "-q"));
  shell_end(&s);
}

TEST(what_has_moved_is_found_or_named_with_the_remedy) {
  char folder[64], path[128], moved[128], model[128], away[128], set[200];
  cli_scratch_make(folder);
  write_sums(folder, "sums.jsonl", 1);
  write_sums(folder, "test.jsonl", 20);
  cli_write(cli_path(path, folder, "sums.yaml"), data_recipe, sizeof data_recipe - 1);
  /* Both files are beside the recipe. */
  CU_ASSERT_FATAL(CLI_GIVES(0, "llm", "sft", path, "-o", cli_path(model, folder, "model"), "-q"));
  CU_ASSERT_FATAL(rename(model, cli_path(away, folder, "away")) == 0);
  CU_ASSERT(CLI_GIVES(0, "llm", "eval", away, "-q"));
  cli_path(path, folder, "test.jsonl");
  CU_ASSERT_FATAL(rename(path, cli_path(moved, folder, "moved.jsonl")) == 0);
  REFUSED(2, path, "llm", "eval", away, "-q");
  REFUSED(2, "world.task.held_out_path=FILE", "llm", "eval", away, "-q");
  REFUSED(2, "away/gepolab.json:", "llm", "eval", away, "-q");
  snprintf(set, sizeof set, "world.task.held_out_path=%s", moved);
  CU_ASSERT(CLI_GIVES(0, "llm", "eval", away, "-q", set));
  REFUSED(2, "cannot read /no/such", "llm", "eval", away, "-q",
          "world.task.held_out_path=/no/such.jsonl");
}

/* Without them other programs may take another class of tokenizer, which splits texts differently.
 */
TEST(files_beside_the_tokenizer_are_copied_with_it) {
  static const char *const beside[] = {"tokenizer_config.json", "special_tokens_map.json",
                                       "chat_template.jinja", "generation_config.json"};
  place p = place_make();
  char path[128], name[64], set[160], tokenizer[128], again[128], other[128];
  char *text = cli_read("tests/golden/tokenizer.json");
  cli_write(cli_path(tokenizer, p.folder, "tokenizer.json"), text, strlen(text));
  for (int i = 0; i < 3; ++i)
    cli_write(cli_path(path, p.folder, beside[i]), beside[i], strlen(beside[i]));
  snprintf(set, sizeof set, "world.tokenizer=%s", tokenizer);
  CU_ASSERT_FATAL(CLI_GIVES(0, "llm", "sft", p.recipe, "-o", p.model, "-q", set,
                            "world.warmup.steps=2", "world.stop=[<|im_end|>]"));
  CU_ASSERT_FATAL(CLI_GIVES(0, "llm", "sft", p.model, "-o", cli_path(again, p.folder, "again"),
                            "-q", "world.warmup={steps: 2, batch: 4, cache: false}"));
  for (int i = 0; i < 4; ++i) {
    snprintf(name, sizeof name, "again/%s", beside[i]);
    cli_path(path, p.folder, name);
    CU_ASSERT_EQUAL(access(path, F_OK) == 0, i < 3);
    if (i < 3) CU_ASSERT_STRING_EQUAL(cli_read(path), beside[i]);
  }
  CU_ASSERT_FATAL(mkdir(cli_path(other, p.folder, "other"), 0777) == 0);
  cli_write(cli_path(path, p.folder, "other/chat_template.jinja"), "x", 1);
  REFUSED(2, "has a file chat_template.jinja already", "llm", "sft", p.recipe, "-o", other, "-q");
}

/* Puts a member in front of the others of the model's config.json. */
static void add_to_config(const place *p, const char *member) {
  char path[192];
  size_t size;
  snprintf(path, sizeof path, "%s/config.json", p->model);
  unsigned char *old = files_read(path, &size);
  CU_ASSERT_PTR_NOT_NULL_FATAL(old);
  CU_ASSERT_FATAL(size > 0 && old[0] == '{');
  char *text = malloc(size + strlen(member) + 2);
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  const int n = sprintf(text, "{%s,%.*s", member, (int)(size - 1), (const char *)old + 1);
  cli_write(path, text, (size_t)n);
  free(text);
  free(old);
}

static void says(const cli_result *r, const char *text) {
  if (r->code != 0 || strstr(r->err, text) == NULL) fprintf(stderr, "%d %s", r->code, r->err);
  CU_ASSERT(r->code == 0 && strstr(r->err, text) != NULL);
}

TEST(keys_of_config_json_are_refused_or_named) {
  static const char known[] = "keys that gepolab does not know and passes over: mystery";
  place p = place_with_model();
  char set[160], db[128];
  cli_result r = CLI("llm", "eval", p.model, "-q");
  CU_ASSERT(r.code == 0 && strstr(r.err, "note") == NULL);
  add_to_config(&p, "\"mystery\": 7");
  r = CLI("llm", "eval", p.model, "-q");
  says(&r, known);
  r = CLI("llm", "generate", p.model, "1+1=");
  says(&r, known);
  snprintf(set, sizeof set, "world.model={path: %s}", p.model);
  r = CLI("run", p.recipe, "-q", "world.warmup=null", set);
  says(&r, known);
  r = CLI("sweep", p.recipe, "-q", "-o", cli_path(db, p.folder, "s.db"), "world.warmup=null", set,
          "sweep={seed: [1, 2]}");
  says(&r, known);
  r = CLI("llm", "info", p.model);
  CU_ASSERT(r.code == 0 && strstr(r.out, "not known and passed over: mystery") != NULL);
  add_to_config(&p, "\"logit_softcap\": 30");
  REFUSED(2, "logit_softcap asks for soft-capped logits", "llm", "eval", p.model, "-q");
  REFUSED(2, "logit_softcap", "run", p.recipe, "-q", "world.warmup=null", set);
}

/* As in a real model, whose vocabulary is rounded up. */
TEST(tokens_that_the_tokenizer_lacks_give_no_text) {
  place p = place_make();
  char path[192];
  CU_ASSERT_FATAL(
      CLI_GIVES(0, "llm", "sft", p.recipe, "-o", p.model, "-q", "world.tokenizer.unused=40"));
  snprintf(path, sizeof path, "%s/gepolab.json", p.model);
  char *text = cli_read(path), *unused = strstr(text, "40");
  CU_ASSERT_PTR_NOT_NULL_FATAL(unused);
  unused[0] = ' ', unused[1] = '0';
  cli_write(path, text, strlen(text));
  cJSON *json = CLI_JSON("llm", "generate", p.model, "1+2=", "-n", "40", "-t", "100", "--json");
  const cJSON *one, *token;
  int beyond = 0, fits = 1;
  cJSON_ArrayForEach(one, member_at(json, "responses")) {
    size_t known = 0;
    cJSON_ArrayForEach(token, member_at(one, "tokens")) known += token->valuedouble < 15;
    beyond += known < (size_t)cJSON_GetArraySize(member_at(one, "tokens"));
    fits &= strstr(text_at(one, "text"), "\xef\xbf\xbd") == NULL;
  }
  CU_ASSERT(beyond > 0 && fits);
  CU_ASSERT(CLI_GIVES(0, "llm", "generate", p.model, "1+2=", "-n", "40", "-t", "100"));
}
