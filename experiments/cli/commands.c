/* The table of commands, `gepolab help`, the manual page, and how a status becomes an exit code. */
#include "core/base/shown.h"
#include "core/config/config.h"
#include "experiments/base/args.h"
#include "experiments/base/command.h"
#include "experiments/cli/completion.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Every command, in the order of `gepolab help`: NAME stands for command_NAME of cmd_NAME.c. */
#define COMMANDS(X)                                                                                \
  X(run)                                                                                           \
  X(sweep)                                                                                         \
  X(status)                                                                                        \
  X(info)                                                                                          \
  X(sim)                                                                                           \
  X(plan)                                                                                          \
  X(policy)                                                                                        \
  X(fit)                                                                                           \
  X(whatif)                                                                                        \
  X(analyze)                                                                                       \
  X(outcomes)                                                                                      \
  X(contrasts)                                                                                     \
  X(effects)                                                                                       \
  X(announcements)                                                                                 \
  X(features)                                                                                      \
  X(plot)                                                                                          \
  X(report)                                                                                        \
  X(results)                                                                                       \
  X(export)                                                                                        \
  X(merge)                                                                                         \
  X(check)                                                                                         \
  X(algorithms)                                                                                    \
  X(recipes)                                                                                       \
  X(fields)                                                                                        \
  X(kinds)                                                                                         \
  X(presets)                                                                                       \
  X(published)                                                                                     \
  X(metrics)                                                                                       \
  X(doctor)                                                                                        \
  X(bench)                                                                                         \
  X(bias)                                                                                          \
  X(theory)                                                                                        \
  X(selection)                                                                                     \
  X(llm)

#define DECLARED(name) extern const command command_##name;
#define LISTED(name) &command_##name,
COMMANDS(DECLARED)
static const command *const table[] = {COMMANDS(LISTED)};
enum { N_COMMANDS = sizeof table / sizeof table[0] };

static void print_overview(FILE *to) {
  fputs("gepolab measures what network latency does to group-based policy optimisation.\n\n"
        "usage: gepolab COMMAND [ARGUMENTS]\n\n",
        to);
  for (size_t i = 0; i < N_COMMANDS; ++i)
    fprintf(to, "  %-13s %s\n", table[i]->name, table[i]->summary);
  fputs("\n`gepolab COMMAND --help` describes one, with examples; `gepolab --version` prints the\n"
        "version; `gepolab help --man` prints the manual page, `gepolab help --completion bash`\n"
        "(or zsh) what that shell completes command lines with.\n"
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

/* One command's help in a form of args_help_form(). */
static gl_status help_of(const command *c, const char *form, gl_error *err) {
  char name[64], asked[64];
  snprintf(name, sizeof name, "%s", c->name);
  snprintf(asked, sizeof asked, "--help%s%s", form[0] != '\0' ? "=" : "", form);
  char *line[] = {name, asked, NULL};
  return c->run(c, 2, line, err);
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
      ".RB ( \"gepolab recipes\"\nlists them).\n.IB key = value\n"
      "overrides any field by its dotted path and takes any YAML value;\n.IB key =null\n"
      "takes a section away. experiments/RECIPES.md of the source describes every field.\n"
      ".SH COMMANDS\n",
      stdout);
  gl_status status = GL_OK;
  for (size_t i = 0; i < N_COMMANDS && status == GL_OK; ++i) status = help_of(table[i], "man", err);
  fputs(".SH EXIT STATUS\n"
        ".TP\n0\nDone.\n.TP\n1\nFailed: something could not be read, written or computed.\n"
        ".TP\n2\nWrong usage or a wrong recipe; the message names the place and what is allowed.\n"
        ".TP\n130\nStopped by Ctrl-C; finished work is kept.\n"
        ".TP\n141\nWhoever read the output stopped reading, as in\n.BR \"gepolab export study.db | "
        "head\" .\n"
        ".SH ENVIRONMENT\n.TP\n.B GEPOLAB_CACHE\n"
        "The folder of what commands keep between runs; empty: nothing is kept.\n",
        stdout);
  return status;
}

static gl_status print_completion(const char *shell, gl_error *err) {
  gl_status status = completion_begin(shell, err);
  for (size_t i = 0; i < N_COMMANDS && status == GL_OK; ++i)
    status = help_of(table[i], "rows", err);
  if (status == GL_OK) completion_end(shell);
  return status;
}

static gl_status help(int argc, char **argv, gl_error *err) {
  if (argc < 3) {
    print_overview(stdout);
    return GL_OK;
  }
  if (strcmp(argv[2], "--man") == 0) return print_manual(err);
  if (strcmp(argv[2], "--completion") == 0) return print_completion(argc > 3 ? argv[3] : "", err);
  const command *c = NULL;
  gl_status status = commands_find(&c, argv[2], err);
  return status == GL_OK ? help_of(c, "", err) : status;
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

/* Whether nobody reads standard output any more, as in `gepolab export study.db | head`. */
static int reader_has_gone(void) {
  struct pollfd to = {.fd = STDOUT_FILENO, .events = POLLOUT};
  return poll(&to, 1, 0) == 1 && (to.revents & (POLLERR | POLLHUP)) != 0;
}

/* What the shell tells of a process that SIGPIPE ended; where that signal is ignored, this process
 * ends the same way, without a word. */
enum { READER_HAS_GONE = 128 + SIGPIPE };

int commands_main(int argc, char **argv) {
  gl_error err = {.status = GL_OK};
  gl_status status = dispatch(argc, argv, &err);
  const int unwritten = fflush(stdout) != 0 || ferror(stdout);
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
