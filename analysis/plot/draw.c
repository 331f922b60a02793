/* Processes a table of figures: selects those with data, writes their files, and runs gnuplot on
 * their scripts, which script.c writes. */
#include "analysis/plot/draw.h"

#include "analysis/plot/page.h"
#include "core/base/display_text.h"
#include "core/base/file.h"
#include "core/config/config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static gl_status check_figure_name(const figure_table *t, const char *only, gl_error *err) {
  const char **names = calloc(t->n + 1, sizeof *names);
  char one[128], hint[CFG_HINT_SIZE], all[900];
  gl_status status = GL_OK;
  if (!names) return gl_fail_memory(err, "the names of figures");
  for (size_t i = 0; i < t->n; i++) names[i] = t->figures[i].name;
  for (const char *at = only; at && status == GL_OK; at = strchr(at, ',')) {
    at += at != only;
    size_t i = 0;
    snprintf(one, sizeof one, "%.*s", (int)strcspn(at, ","), at);
    while (i < t->n && strcmp(names[i], one) != 0) i++;
    if (i == t->n)
      status = gl_fail(err, GL_EINPUT, "there is no figure '%s'%s; there are %s", one,
                       cfg_hint(one, names, t->n, hint), cfg_listed(names, t->n, all, sizeof all));
  }
  free(names);
  return status;
}

gl_status figures_check_highlight(const figure_request *q, const char *const *names, size_t n,
                                  gl_error *err) {
  char one[128], hint[CFG_HINT_SIZE], all[512];
  for (const char *at = q->highlight; at && *at; at += *at == ',') {
    const size_t length = strcspn(at, ",");
    size_t i = 0;
    snprintf(one, sizeof one, "%.*s", (int)(length < 127 ? length : 127), at);
    while (i < n && strcmp(names[i], one) != 0) i++;
    if (i == n)
      return gl_fail(err, GL_EINPUT, "--highlight: there is no algorithm '%s'%s; there are %s",
                     shown(one).text, cfg_hint(one, names, n, hint),
                     shown(cfg_listed(names, n, all, sizeof all)).text);
    at += length;
  }
  return GL_OK;
}

/* Returns PREFIX_NAME, allocated. The prefix may be any text; characters not allowed in file names
 * are replaced. */
static char *figure_file_name(const figure_request *q, const char *name) {
  const char *prefix = q->prefix ? q->prefix : "";
  const size_t size = strlen(prefix) + strlen(name) + 2;
  char *file = malloc(size);
  if (!file) return NULL;
  snprintf(file, size, "%s%s%s", prefix, *prefix ? "_" : "", name);
  for (char *c = file; *c; c++)
    if (*c == '/' || (unsigned char)*c < ' ' || *c == 127) *c = '_';
  return file;
}

/* *is_empty is set if there is no value to show; no file is left then. */
static gl_status write_figure_files(const figure *f, const void *data, const figure_request *q,
                                    const char *file, int *is_empty, gl_error *err) {
  figure_page p;
  page_init(&p, q, file, f->shape);
  gl_status status = f->write(data, &p, err);
  *is_empty = status == GL_OK && page_is_empty(&p);
  if (!*is_empty) return page_close(&p, status, err);
  page_close(&p, GL_EINPUT, err);
  return GL_OK;
}

static const char no_values[] = "none of the quantities that it needs together has a value";

/* Writes the requested figures that have data. files[i] receives each file name, allocated. */
static gl_status write_all_figures(const figure_table *t, const void *data, const figure_request *q,
                                   char **files, gl_error *err) {
  size_t n = 0;
  for (size_t i = 0; i < t->n; i++) {
    const figure *f = &t->figures[i];
    if (q->only && !figure_is_named(q->only, f->name)) continue;
    const char *why = t->lacks ? t->lacks(data, f->needs) : t->missing;
    if (why && q->only)
      return gl_fail(err, GL_EINPUT, "figure %s does not apply: %s", f->name, why);
    if (why && q->report) q->report(q->context, f->name, why);
    if (why) continue;
    if (!(files[i] = figure_file_name(q, f->name))) return gl_fail_memory(err, "a figure's name");
    int is_empty;
    gl_status status = write_figure_files(f, data, q, files[i], &is_empty, err);
    if (status != GL_OK) return status;
    n += !is_empty;
    if (!is_empty) continue;
    free(files[i]), files[i] = NULL;
    if (q->only) return gl_fail(err, GL_EINPUT, "figure %s does not apply: %s", f->name, no_values);
    if (q->report) q->report(q->context, f->name, no_values);
  }
  return n ? GL_OK : gl_fail(err, GL_EINPUT, "%s", t->nothing);
}

static gl_status draw_all_figures(const figure_table *t, const figure_request *q,
                                  char *const *files, gl_error *err) {
  for (size_t i = 0; i < t->n; i++) {
    if (!files[i]) continue;
    gl_status status = gnuplot_draw(q->folder, q->gnuplot ? q->gnuplot : "gnuplot", files[i], err);
    if (status != GL_OK) return status;
    if (q->report) q->report(q->context, files[i], NULL);
  }
  return GL_OK;
}

gl_status figures_draw_table(const figure_table *t, const void *data, const figure_request *q,
                             gl_error *err) {
  assert(q->folder && q->script);
  gl_status status = check_figure_name(t, q->only, err);
  if (status == GL_OK) status = file_make_folder(q->folder, err);
  if (status != GL_OK) return status;
  char **files = calloc(t->n + 1, sizeof *files);
  if (!files) return gl_fail_memory(err, "the names of figures");
  status = write_all_figures(t, data, q, files, err);
  if (status == GL_OK) status = draw_all_figures(t, q, files, err);
  for (size_t i = 0; i < t->n; i++) free(files[i]);
  free(files);
  return status;
}

gl_status figures_draw_one(const figure *f, const char *missing, const char *nothing,
                           const void *data, const figure_request *q, gl_error *err) {
  const figure_table table = {f, 1, NULL, nothing, missing};
  return figures_draw_table(&table, data, q, err);
}

/* --- running gnuplot --- */

/* A run of gnuplot. */
typedef struct drawing {
  const char *folder, *program;
  char *script; /* ./NAME.gp: the prefix prevents a name from being read as an option */
  char *aside;  /* "aside='.123.tmp'": suffix of the output files until they are complete */
} drawing;

/* In the child process: runs gnuplot in the folder, with stderr into a pipe. -d: without the
 * ~/.gnuplot of the user, which may redefine missing data, separators and styles. */
static void run_gnuplot(const drawing *d, int complaints, int failure) {
  int nothing = open("/dev/null", O_RDWR);
  if (nothing >= 0) dup2(nothing, 0), dup2(nothing, 1);
  dup2(complaints, 2);
  if (chdir(d->folder) == 0)
    execlp(d->program, d->program, "-d", "-e", d->aside, d->script, (char *)NULL);
  int reason = errno;
  if (write(failure, &reason, sizeof reason) < 0) _exit(126);
  _exit(127);
}

/* Reads a pipe to its end and stores the first bytes as text without line breaks. */
static void read_complaint(int from, char *text, size_t size) {
  size_t n = 0;
  char room[512];
  for (ssize_t got; (got = read(from, room, sizeof room)) > 0 || (got < 0 && errno == EINTR);)
    for (ssize_t i = 0; i < got && n + 1 < size; i++)
      if (n > 0 || !strchr(" \n\r", room[i])) text[n++] = room[i] == '\n' ? ' ' : room[i];
  text[n] = 0;
}

/* Runs gnuplot. Returns 0, errno if it could not be started, or -1 with the beginning of its error
 * output, or how it ended if it wrote none. */
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
  if (WIFEXITED(code) && WEXITSTATUS(code) == 0) return 0;
  if (!*complaint && WIFEXITED(code))
    snprintf(complaint, size, "it wrote no message; exit status %d", WEXITSTATUS(code));
  else if (!*complaint)
    snprintf(complaint, size, "it was ended by the signal %s", strsignal(WTERMSIG(code)));
  return -1;
}

/* --- outputs, replaced when complete --- */

enum { OUTPUTS = 3 };

/* FOLDER/NAME.pdf and its temporary name. */
typedef struct output {
  char *path, *aside;
  const char *end; /* last bytes of a complete file of this format */
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

/* Returns true if the file ends correctly. gnuplot does not report a full disk. */
static bool is_whole_output(const output *o) {
  char tail[16] = {0};
  FILE *f = fopen(o->aside, "rb");
  if (!f) return false;
  if (fseek(f, -(long)sizeof tail, SEEK_END) != 0) rewind(f); /* the file is shorter than tail */
  size_t n = fread(tail, 1, sizeof tail, f);
  fclose(f);
  const size_t length = strlen(o->end);
  for (size_t i = 0; i + length <= n; i++)
    if (memcmp(tail + i, o->end, length) == 0) return true;
  return false;
}

/* Renames an output to its final name. If the program wrote no file (as a test's stand-in for
 * gnuplot), nothing is done. */
static gl_status output_finish(const output *o, gl_error *err) {
  if (access(o->aside, F_OK) != 0) return GL_OK;
  if (!is_whole_output(o))
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
