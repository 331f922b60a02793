/* How library code reports errors.
 *
 * Every function that can fail returns a gl_status and takes a gl_error * as its last argument.
 * The error is filled once, where the failure is found, with a sentence a user can act on: what
 * (file, place), why, and the fix. Library code never prints and never exits; only the commands
 * in experiments/ do, and they turn the status into the exit code.
 */
#ifndef GEPOLAB_CORE_BASE_ERROR_H
#define GEPOLAB_CORE_BASE_ERROR_H

typedef enum gl_status {
  GL_OK = 0,
  GL_EINPUT,       /* the user's input is wrong (recipe, CSV, JSON, command line): exit 2 */
  GL_EIO,          /* a file, a pipe or the database failed: exit 1 */
  GL_ENOMEM,       /* allocation failed, or a size would overflow: exit 1 */
  GL_ENUMERIC,     /* a computation left the domain in which it is defined: exit 1 */
  GL_EINTERRUPTED, /* stopped by a signal, finished work is stored: exit 130 */
  GL_EINTERNAL     /* a bug of gepolab: exit 1, please report */
} gl_status;

typedef struct gl_error {
  gl_status status;
  char text[1024]; /* one sentence, no trailing newline; truncated if longer */
} gl_error;

/* Fills *err (which may be NULL) printf-style and returns status, so that callers write
 * `return gl_fail(err, GL_EIO, "...")`. Never overwrites: the first failure is the cause. */
gl_status gl_fail(gl_error *err, gl_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Shorthand for the failed allocation of `what`. */
gl_status gl_fail_memory(gl_error *err, const char *what);

/* Empties *err before reuse. A gl_error begins as `gl_error err = {0}`. */
void gl_error_clear(gl_error *err);

/* The process exit code that belongs to a status: 0, 1, 2 or 130. */
int gl_exit_code(gl_status status);

#endif
