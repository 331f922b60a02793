/* Starts gnuplot and says how it ended. */
#include "analysis/plot/gnuplot.h"

#include "core/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What gnuplot is asked to draw. */
typedef struct drawing {
  const char *folder, *program;
  char *script; /* ./NAME.gp: a name may begin like an option */
  char *aside;  /* "aside='.123.tmp'": what the script puts behind the names of its outputs */
} drawing;

/* In the child: gnuplot in the folder, its complaints into the pipe. */
static void run_gnuplot(const drawing *d, int complaints, int failure) {
  int nothing = open("/dev/null", O_RDWR);
  if (nothing >= 0) dup2(nothing, 0), dup2(nothing, 1);
  dup2(complaints, 2);
  if (chdir(d->folder) == 0)
    execlp(d->program, d->program, "-e", d->aside, d->script, (char *)NULL);
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
static int gnuplot_outcome(const drawing *d, char *complaint, size_t size) {
  int complaints[2], failure[2], reason = 0, code = 0;
  if (pipe(complaints) != 0) return errno;
  if (pipe(failure) != 0) {
    reason = errno;
    close(complaints[0]), close(complaints[1]);
    return reason;
  }
  fcntl(failure[1], F_SETFD, FD_CLOEXEC);
  pid_t child = fork();
  if (child == 0) run_gnuplot(d, complaints[1], failure[1]);
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

/* --- outputs, which are the old ones until they are whole --- */

enum { OUTPUTS = 3 };

/* FOLDER/NAME.pdf and what it is called meanwhile. */
typedef struct output {
  char *path, *aside;
  const char *end; /* how a whole file of the kind ends */
} output;

static void output_fini(output *o) {
  free(o->path), free(o->aside);
  *o = (output){0};
}

static int output_init(output *o, const char *folder, const char *name, const char *suffix,
                       const char *end) {
  const size_t size = strlen(folder) + strlen(name) + strlen(suffix) + 40;
  *o = (output){malloc(size), malloc(size), end};
  if (!o->path || !o->aside) {
    output_fini(o);
    return 0;
  }
  snprintf(o->path, size, "%s/%s.%s", folder, name, suffix);
  snprintf(o->aside, size, "%s.%ld.tmp", o->path, (long)getpid());
  return 1;
}

/* Whether the file ends as it should: gnuplot does not tell of a disk that is full. */
static int is_whole(const output *o) {
  char tail[16] = {0};
  FILE *f = fopen(o->aside, "rb");
  if (!f) return 0;
  if (fseek(f, -(long)sizeof tail, SEEK_END) != 0) rewind(f); /* it is shorter */
  size_t n = fread(tail, 1, sizeof tail, f);
  fclose(f);
  const size_t length = strlen(o->end);
  for (size_t i = 0; i + length <= n; i++)
    if (memcmp(tail + i, o->end, length) == 0) return 1;
  return 0;
}

/* Puts one in place. A program that writes no file, as a stand-in for gnuplot may, has drawn. */
static gl_status output_finish(const output *o, gl_error *err) {
  if (access(o->aside, F_OK) != 0) return GL_OK;
  if (!is_whole(o))
    return gl_fail(err, GL_EIO,
                   "%s was not written whole, and is what it was before; is the disk full?",
                   o->path);
  return rename(o->aside, o->path) == 0 ? GL_OK : file_fail(o->path, "written", errno, err);
}

static gl_status draw_outputs(const drawing *d, const output *of, size_t n, gl_error *err) {
  char complaint[200];
  const int outcome = gnuplot_outcome(d, complaint, sizeof complaint);
  gl_status status = GL_OK;
  if (outcome > 0)
    status = gl_fail(err, GL_EIO,
                     "%s cannot be started: %s; install the package gnuplot-nox (data and scripts "
                     "are complete in %s)",
                     d->program, strerror(outcome), d->folder);
  else if (outcome < 0)
    status = gl_fail(err, GL_EIO, "%s failed on %s/%s: %s", d->program, d->folder,
                     d->script + strlen("./"), complaint);
  for (size_t i = 0; i < n && status == GL_OK; i++) status = output_finish(&of[i], err);
  for (size_t i = 0; i < n; i++) unlink(of[i].aside);
  return status;
}

gl_status gnuplot_draw(const char *folder, const char *program, const char *name, gl_error *err) {
  const size_t size = strlen(name) + sizeof "./.gp";
  char aside[48];
  drawing d = {folder, program, malloc(size), aside};
  output of[OUTPUTS] = {{0}};
  int ok = d.script && output_init(&of[0], folder, name, "pdf", "%%EOF") &&
           output_init(&of[1], folder, name, "png", "IEND") &&
           output_init(&of[2], folder, name, "svg", "</svg>");
  gl_status status = ok ? GL_OK : gl_fail_memory(err, "a file's name");
  if (ok) {
    snprintf(d.script, size, "./%s.gp", name);
    snprintf(aside, sizeof aside, "aside='.%ld.tmp'", (long)getpid());
    status = draw_outputs(&d, of, OUTPUTS, err);
  }
  for (size_t i = 0; i < OUTPUTS; i++) output_fini(&of[i]);
  free(d.script);
  return status;
}
