/* Starts gnuplot and says how it ended. */
#include "analysis/plot/gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the child: gnuplot in the folder, its complaints into the pipe. */
static void run_gnuplot(const char *folder, const char *gnuplot, const char *script, int complaints,
                        int failure) {
  int nothing = open("/dev/null", O_RDWR);
  if (nothing >= 0) dup2(nothing, 0), dup2(nothing, 1);
  dup2(complaints, 2);
  if (chdir(folder) == 0) execlp(gnuplot, gnuplot, script, (char *)NULL);
  int reason = errno;
  if (write(failure, &reason, sizeof reason) < 0) _exit(126);
  _exit(127);
}

/* The first bytes of what comes through a pipe, as text without line breaks; reads to its end. */
static void read_complaint(int from, char *text, size_t size) {
  size_t n = 0;
  char room[512];
  for (ssize_t got; (got = read(from, room, sizeof room)) > 0 || (got < 0 && errno == EINTR);)
    for (ssize_t i = 0; i < got && n + 1 < size; i++)
      if (n > 0 || !strchr(" \n\r", room[i])) text[n++] = room[i] == '\n' ? ' ' : room[i];
  text[n] = 0;
}

/* How gnuplot ended: 0, or errno if it could not be started, or -1 with its complaint. */
static int gnuplot_outcome(const char *folder, const char *gnuplot, const char *script,
                           char *complaint, size_t size) {
  int complaints[2], failure[2], reason = 0, code = 0;
  if (pipe(complaints) != 0) return errno;
  if (pipe(failure) != 0) {
    reason = errno;
    close(complaints[0]), close(complaints[1]);
    return reason;
  }
  fcntl(failure[1], F_SETFD, FD_CLOEXEC);
  pid_t child = fork();
  if (child == 0) run_gnuplot(folder, gnuplot, script, complaints[1], failure[1]);
  reason = child < 0 ? errno : 0;
  close(complaints[1]), close(failure[1]);
  read_complaint(complaints[0], complaint, size);
  int found;
  if (read(failure[0], &found, sizeof found) == (ssize_t)sizeof found) reason = found;
  close(complaints[0]), close(failure[0]);
  while (child > 0 && waitpid(child, &code, 0) < 0 && errno == EINTR) continue;
  if (reason) return reason;
  return WIFEXITED(code) && WEXITSTATUS(code) == 0 ? 0 : -1;
}

gl_status gnuplot_draw(const char *folder, const char *program, const char *name, gl_error *err) {
  const size_t size = strlen(name) + sizeof ".gp";
  char complaint[200], *script = malloc(size);
  if (!script) return gl_fail_memory(err, "a file's name");
  snprintf(script, size, "%s.gp", name);
  const int outcome = gnuplot_outcome(folder, program, script, complaint, sizeof complaint);
  gl_status status = GL_OK;
  if (outcome > 0)
    status = gl_fail(err, GL_EIO,
                     "%s cannot be started: %s; install the package gnuplot-nox (data and scripts "
                     "are complete in %s)",
                     program, strerror(outcome), folder);
  else if (outcome < 0)
    status = gl_fail(err, GL_EIO, "%s failed on %s/%s: %s", program, folder, script, complaint);
  free(script);
  return status;
}
