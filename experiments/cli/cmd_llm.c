/* gepolab llm: the transformer learner by itself. Each of its words is a command of its own. */
#include "experiments/cli/cmd_llm.h"
#include "core/config/config.h"
#include "experiments/base/args.h"

#include <stdio.h>
#include <string.h>

static const command *const words[] = {
#define LLM_WORD(name) &command_llm_##name,
#include "experiments/cli/cmd_llm_words.h"
#undef LLM_WORD
};
enum { N_WORDS = sizeof words / sizeof words[0] };

/* "sft" of "llm sft". */
static const char *word_of(const command *c) {
  return strchr(c->name, ' ') + 1;
}

static void print_words(const command *self, FILE *to) {
  fprintf(to, "gepolab llm: %s\n\nusage: gepolab llm %s\n\n%s\n\n", self->summary, self->arguments,
          self->about);
  for (size_t i = 0; i < N_WORDS; ++i)
    fprintf(to, "  %-9s %s\n", word_of(words[i]), words[i]->summary);
  fprintf(to, "\n`gepolab llm WORD --help` describes one.\n\nexamples:\n%s\n", self->examples);
}

/* The manual's part, or the rows, of every word. */
static gl_status print_each(char *asked, gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < N_WORDS && status == GL_OK; ++i) {
    char name[32];
    snprintf(name, sizeof name, "%s", words[i]->name);
    char *line[] = {name, asked, NULL};
    status = words[i]->run(words[i], 2, line, err);
  }
  return status;
}

static gl_status run_llm(const command *self, int argc, char **argv, gl_error *err) {
  if (argc < 2) {
    print_words(self, stderr);
    return gl_fail(err, GL_EINPUT, "llm needs one of its words, such as `gepolab llm info`");
  }
  const char *word = argv[1], *names[N_WORDS];
  const args_help form = args_help_form(argc < 2 ? argc : 2, argv);
  if (form == ARGS_HELP_TERMINAL) {
    print_words(self, stdout);
    return GL_OK;
  }
  if (form == ARGS_HELP_ROWS) args_print_command_row(self);
  if (form != ARGS_NO_HELP) return print_each(argv[1], err);
  for (size_t i = 0; i < N_WORDS; ++i) {
    names[i] = word_of(words[i]);
    if (strcmp(names[i], word) == 0) return words[i]->run(words[i], argc - 1, argv + 1, err);
  }
  char hint[CFG_HINT_SIZE];
  return gl_fail(err, GL_EINPUT, "llm has no word '%s'%s; `gepolab llm --help` lists them", word,
                 cfg_hint(word, names, N_WORDS, hint));
}

const command command_llm = {
    .name = "llm",
    .arguments = "WORD …",
    .summary = "the transformer learner by itself: warm-up, RL, evaluation, text",
    .about =
        "A real language model in place of a toy world: a recipe's `world: {kind: llm, …}`, or a\n"
        "folder as Hugging Face keeps a Qwen3 model (config.json, model.safetensors,\n"
        "tokenizer.json). The same world works in `gepolab run`, `sweep` and `bias`.",
    .examples = "  gepolab llm info llm_quick\n"
                "  gepolab llm sft llm_quick -o warm/\n"
                "  gepolab llm eval warm/ --samples 8\n"
                "  gepolab llm generate warm/ '305824='",
    .run = run_llm};
