/* What a command of gepolab is. Each experiments/cli/cmd_NAME.c defines one as command_NAME, and
 * one line of the table in experiments/cli/commands.c makes it known. A command prints its result
 * on stdout and returns its first error; it never exits by itself. Help on the terminal and the
 * manual page are both printed from these fields and from the command's options (args.h). */
#ifndef GEPOLAB_EXPERIMENTS_BASE_COMMAND_H
#define GEPOLAB_EXPERIMENTS_BASE_COMMAND_H

#include "core/base/error.h"

#include <stddef.h>

typedef struct command command;
struct command {
  const char *name;      /* "run"; with the words before it, "study status" */
  const char *arguments; /* for the usage line: "RECIPE [key=value …]" */
  const char *summary;   /* one line of `gepolab help` */
  const char *about;     /* paragraphs of `gepolab NAME --help` */
  const char *examples;  /* lines of `gepolab NAME --help` */
  gl_status (*run)(const command *self, int argc, char **argv, gl_error *err);
};

/* Runs a whole command line and returns the process exit code; errors go to stderr. */
int commands_main(int argc, char **argv);

#endif
