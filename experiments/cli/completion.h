/* The completion of command lines by a shell: rows of the program's own tables (args.h has those of
 * commands and options), in a shell script that knows how to read them. */
#ifndef GEPOLAB_EXPERIMENTS_CLI_COMPLETION_H
#define GEPOLAB_EXPERIMENTS_CLI_COMPLETION_H

#include "core/base/error.h"

/* Prints the script for "bash" or "zsh" as far as the names that values may have; rows of commands
 * follow, then completion_end(). GL_EINPUT for other shells. */
gl_status completion_begin(const char *shell, gl_error *err);
void completion_end(const char *shell);

#endif
