/* The commands of gepolab. Each cmd_*.c defines one; main.c finds it by name, runs it and turns its
 * status into the exit code. A command prints its result on stdout and returns its first error; it
 * never exits by itself.
 */
#ifndef GEPOLAB_EXPERIMENTS_BASE_COMMAND_H
#define GEPOLAB_EXPERIMENTS_BASE_COMMAND_H

#include "core/base/error.h"

#include <stddef.h>

typedef struct command command;
struct command {
  const char *name;
  const char *arguments; /* for the usage line: "RECIPE [key=value …]" */
  const char *summary;   /* one line of `gepolab help` */
  const char *about;     /* paragraphs of `gepolab NAME --help` */
  const char *examples;  /* lines of `gepolab NAME --help` */
  gl_status (*run)(const command *self, int argc, char **argv, gl_error *err);
};

extern const command command_run, command_sweep, command_sim, command_policy, command_analyze,
    command_plot, command_export, command_merge, command_algorithms, command_recipes,
    command_metrics, command_bench, command_bias, command_theory, command_llm;

/* All of them, in the order of `gepolab help`. */
const command *const *commands_all(size_t *n);
/* The command of that name; GL_EINPUT naming the nearest one. */
gl_status commands_find(const command **out, const char *name, gl_error *err);

/* Runs a whole command line and returns the process exit code; errors go to stderr. */
int commands_main(int argc, char **argv);

#endif
