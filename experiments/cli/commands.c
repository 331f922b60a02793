/* The table of commands, `gepolab help`, and how a status becomes an exit code. */
#include "core/config/config.h"
#include "experiments/base/args.h"
#include "experiments/base/command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const command *const table[] = {
    &command_run,     &command_sweep,  &command_sim,   &command_policy,     &command_analyze,
    &command_plot,    &command_export, &command_merge, &command_algorithms, &command_recipes,
    &command_metrics, &command_bench,  &command_bias,  &command_theory,     &command_llm,
};
enum { N_COMMANDS = sizeof table / sizeof table[0] };

const command *const *commands_all(size_t *n) {
  *n = N_COMMANDS;
  return table;
}

static void print_overview(FILE *to) {
  fputs("gepolab measures what network latency does to group-based policy optimisation.\n\n"
        "usage: gepolab COMMAND [ARGUMENTS]\n\n",
        to);
  for (size_t i = 0; i < N_COMMANDS; ++i)
    fprintf(to, "  %-11s %s\n", table[i]->name, table[i]->summary);
  fputs(
      "\n`gepolab COMMAND --help` describes one, with examples; `gepolab --version` its version.\n"
      "Try: gepolab run quickstart\n",
      to);
}

gl_status commands_find(const command **out, const char *name, gl_error *err) {
  const char *names[N_COMMANDS + 1];
  for (size_t i = 0; i < N_COMMANDS; ++i) {
    if (strcmp(table[i]->name, name) == 0) {
      *out = table[i];
      return GL_OK;
    }
    names[i] = table[i]->name;
  }
  names[N_COMMANDS] = "help";
  char hint[CFG_HINT_SIZE];
  return gl_fail(err, GL_EINPUT, "there is no command '%s'%s; `gepolab help` lists them", name,
                 cfg_hint(name, names, N_COMMANDS + 1, hint));
}

static gl_status help(int argc, char **argv, gl_error *err) {
  if (argc < 3) {
    print_overview(stdout);
    return GL_OK;
  }
  const command *c = NULL;
  gl_status status = commands_find(&c, argv[2], err);
  if (status != GL_OK) return status;
  char asked[] = "--help";
  char *line[] = {argv[2], asked, NULL};
  return c->run(c, 2, line, err);
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
  const command *c = NULL;
  gl_status status = commands_find(&c, word, err);
  return status == GL_OK ? c->run(c, argc - 1, argv + 1, err) : status;
}

int commands_main(int argc, char **argv) {
  gl_error err = {.status = GL_OK};
  gl_status status = dispatch(argc, argv, &err);
  if ((fflush(stdout) != 0 || ferror(stdout)) && status == GL_OK)
    status = gl_fail(&err, GL_EIO, "cannot write to standard output: %s", strerror(errno));
  if (err.text[0] != '\0') fprintf(stderr, "gepolab: %s\n", err.text);
  return gl_exit_code(status);
}
