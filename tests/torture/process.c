/* Starting a command, disturbing it by a signal, and waiting for it with a limit of time. */
#define _GNU_SOURCE
#include "tests/torture/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void sleep_s(double seconds) {
  struct timespec t = {.tv_sec = (time_t)seconds};
  t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
  while (nanosleep(&t, &t) != 0 && errno == EINTR) continue;
}

const char *job_text(const job *j, char *text, size_t size) {
  size_t used = 0;
  text[0] = '\0';
  for (size_t i = 0; j->environment[i] != NULL && used < size; ++i)
    used += (size_t)snprintf(text + used, size - used, "%s ", j->environment[i]);
  if (used < size) used += (size_t)snprintf(text + used, size - used, "%s", j->program);
  for (size_t i = 0; j->words[i] != NULL && used < size; ++i) {
    const char *quote = strpbrk(j->words[i], " {[*$") != NULL ? "'" : "";
    used += (size_t)snprintf(text + used, size - used, " %s%s%s", quote, j->words[i], quote);
  }
  return text;
}

/* One line of the trial's list of commands, with what was done to the command. */
static void note_command(trial *t, const job *j) {
  char path[TORTURE_PATH + 16], text[4096];
  snprintf(path, sizeof path, "%s/commands", t->folder);
  FILE *to = fopen(path, "a");
  if (to == NULL) return;
  fprintf(to, "(cd %s && %s)", t->work, job_text(j, text, sizeof text));
  for (size_t i = 0; i < j->n_limits; ++i)
    fprintf(to, "  [limit %d: %llu]", j->limits[i].what, (unsigned long long)j->limits[i].value);
  if (j->uid != 0) fprintf(to, "  [as user %u]", (unsigned)j->uid);
  if (j->signal != 0)
    fprintf(to, "  [signal %d to %s after %.4f s]", j->signal,
            j->aim == AIM_PARENT  ? "it"
            : j->aim == AIM_CHILD ? "a worker"
                                  : "all",
            j->after_s);
  if (j->trace.action != TRACE_OFF)
    fprintf(to, "  [traced: action %d, number %ld, error %d]", (int)j->trace.action, j->trace.nth,
            j->trace.error);
  fputc('\n', to);
  fclose(to);
}

static void note_ending(trial *t, const outcome *o) {
  char path[TORTURE_PATH + 16];
  snprintf(path, sizeof path, "%s/commands", t->folder);
  FILE *to = fopen(path, "a");
  if (to == NULL) return;
  fprintf(to, "  -> %d%s%s%s after %.3f s: %.*s\n", o->code, o->hung ? " hung" : "",
          o->trace.where[0] != '\0' ? ", struck at " : "", o->trace.where, o->seconds, 400, o->err);
  fclose(to);
}

/* --- starting --- */

static void redirect(const char *path, int flags, int to) {
  int d = open(path, flags, 0666);
  if (d < 0) _exit(126);
  dup2(d, to);
  if (d != to) close(d);
}

static _Noreturn void become(trial *t, const job *j, const char *name, int pipe_end) {
  char out[TORTURE_PATH + 64], err[TORTURE_PATH + 64], *argv[JOB_WORDS + 2] = {(char *)j->program};
  setpgid(0, 0);
  snprintf(out, sizeof out, "%s/%s.out", t->folder, name);
  snprintf(err, sizeof err, "%s/%s.err", t->folder, name);
  redirect("/dev/null", O_RDONLY, 0);
  redirect(err, O_WRONLY | O_CREAT | O_TRUNC, 2);
  if (pipe_end >= 0)
    dup2(pipe_end, 1);
  else
    redirect(out, O_WRONLY | O_CREAT | O_TRUNC, 1);
  closefrom(3);
  if (chdir(t->work) != 0) _exit(126);
  for (size_t i = 0; i < j->n_limits; ++i) {
    const struct rlimit limit = {j->limits[i].value, j->limits[i].value};
    if (setrlimit((__rlimit_resource_t)j->limits[i].what, &limit) != 0) _exit(126);
  }
  if (j->uid != 0 && (setgroups(0, NULL) != 0 || setgid((gid_t)j->uid) != 0 || setuid(j->uid) != 0))
    _exit(126);
  for (size_t i = 0; i < JOB_WORDS && j->words[i] != NULL; ++i) argv[i + 1] = (char *)j->words[i];
  for (size_t i = 0; j->environment[i] != NULL; ++i) putenv((char *)j->environment[i]);
  if (j->trace.action != TRACE_OFF) {
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* leaks cannot be looked for while traced */
    trace_me();
  }
  execvp(j->program, argv);
  _exit(127);
}

static pid_t start(trial *t, const job *wanted, const char *name, int pipe_end) {
  job j = *wanted;
  if (j.program == NULL) j.program = t->session->gepolab;
  note_command(t, &j);
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) become(t, &j, name, pipe_end);
  if (pid > 0) setpgid(pid, pid);
  return pid;
}

pid_t job_start(trial *t, const job *j, const char *name, int pipe_end) {
  return start(t, j, name, pipe_end);
}

/* --- waiting --- */

static char *contents(const trial *t, const char *name, const char *suffix, size_t *size) {
  enum { MOST = 256 << 20 };
  char path[TORTURE_PATH + 64];
  snprintf(path, sizeof path, "%s/%s%s", t->folder, name, suffix);
  FILE *from = fopen(path, "rb");
  size_t room = 1 << 16, used = 0, got;
  char *text = malloc(room + 1);
  while (from != NULL && text != NULL && (got = fread(text + used, 1, room - used, from)) > 0) {
    used += got;
    if (used < room || room >= MOST) continue;
    char *more = realloc(text, 2 * room + 1);
    if (more == NULL) break;
    text = more, room *= 2;
  }
  if (from != NULL) fclose(from);
  if (text == NULL) abort();
  text[used] = '\0';
  *size = used;
  return text;
}

/* A process whose parent is pid, drawn from them; 0: none. */
static pid_t child_of(trial *t, pid_t pid) {
  DIR *all = opendir("/proc");
  pid_t found = 0;
  size_t n = 0;
  for (struct dirent *e; all != NULL && (e = readdir(all)) != NULL;) {
    char path[300], state = 0;
    int one = 0, parent = 0;
    if (e->d_name[0] < '0' || e->d_name[0] > '9') continue;
    snprintf(path, sizeof path, "/proc/%s/stat", e->d_name);
    FILE *from = fopen(path, "r");
    if (from == NULL) continue;
    if (fscanf(from, "%d (%*[^)]) %c %d", &one, &state, &parent) == 3 && parent == pid &&
        draw_below(t, ++n) == 0)
      found = one;
    fclose(from);
  }
  if (all != NULL) closedir(all);
  return found;
}

static int send(trial *t, pid_t pid, const job *j) {
  switch (j->aim) {
  case AIM_PARENT:
    return kill(pid, j->signal) == 0;
  case AIM_ALL:
    return kill(-pid, j->signal) == 0;
  case AIM_CHILD: {
    pid_t child = child_of(t, pid);
    return child > 0 && kill(child, j->signal) == 0;
  }
  }
  return 0;
}

/* Other processes of a command that has ended, such as workers, are to end by themselves soon. */
static int left_behind(pid_t group) {
  const double until = now_s() + 10;
  while (kill(-group, 0) == 0 && now_s() < until) {
    while (waitpid(-group, NULL, WNOHANG) > 0) continue;
    sleep_s(0.002);
  }
  if (kill(-group, 0) != 0) return 0;
  kill(-group, SIGKILL);
  return 1;
}

static outcome finish(trial *t, pid_t pid, const char *name, int status, outcome o) {
  o.left = left_behind(pid);
  o.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  o.code = o.signal != 0 ? 128 + o.signal : WEXITSTATUS(status);
  o.out = contents(t, name, ".out", &o.out_size);
  o.err = contents(t, name, ".err", &o.err_size);
  note_ending(t, &o);
  return o;
}

static outcome follow_by_time(trial *t, pid_t pid, const job *j, const char *name,
                              double patience) {
  outcome o = {0};
  const double begun = now_s(), strike = begun + j->after_s, until = begun + patience;
  int status = 0, due = j->signal != 0;
  double nap = 0.0001;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    const double now = now_s();
    if (due && now >= strike) {
      o.struck = send(t, pid, j);
      due = 0;
    }
    if (now > until && !o.hung) {
      o.hung = 1;
      kill(-pid, SIGKILL);
    }
    double wait = nap < 0.002 ? (nap *= 1.2) : 0.002;
    if (due && strike - now < wait) wait = strike - now > 0 ? strike - now : 0;
    sleep_s(wait);
  }
  o.seconds = now_s() - begun;
  return finish(t, pid, name, status, o);
}

outcome job_wait(trial *t, pid_t pid, const char *name, double patience_s) {
  return follow_by_time(t, pid, &(job){0}, name, patience_s);
}

outcome job_run(trial *t, const job *j) {
  const double patience = j->patience_s > 0 ? j->patience_s : 60, begun = now_s();
  pid_t pid = start(t, j, "run", -1);
  if (pid < 0) {
    trial_fail(t, "no process can be started");
    return (outcome){.code = 126, .out = calloc(1, 1), .err = calloc(1, 1)};
  }
  if (j->trace.action == TRACE_OFF) return follow_by_time(t, pid, j, "run", patience);
  outcome o = {0};
  int status = trace_follow(pid, &j->trace, &o.trace, begun + patience, &o.hung);
  o.struck = o.trace.struck;
  o.seconds = now_s() - begun;
  return finish(t, pid, "run", status, o);
}

void outcome_fini(outcome *o) {
  free(o->out);
  free(o->err);
  *o = (outcome){0};
}

/* --- judging --- */

static int is_crash(int signal_number) {
  return signal_number == SIGSEGV || signal_number == SIGABRT || signal_number == SIGBUS ||
         signal_number == SIGFPE || signal_number == SIGILL || signal_number == SIGSYS;
}

int outcome_decent(trial *t, const outcome *o, const char *what) {
  if (o->hung)
    trial_fail(t, "%s: did not end", what);
  else if (is_crash(o->signal))
    trial_fail(t, "%s: crashed by signal %d: %.300s", what, o->signal, o->err);
  else if (strstr(o->err, "Sanitizer") != NULL || strstr(o->err, "runtime error:") != NULL)
    trial_fail(t, "%s: sanitizer: %.500s", what, o->err);
  else if (o->left)
    trial_fail(t, "%s: left processes behind", what);
  else if (o->code != 0 && o->signal == 0 && o->err_size == 0)
    trial_fail(t, "%s: ended with %d and without a word", what, o->code);
  else
    return 1;
  return 0;
}

int outcome_says(const outcome *o, const char *text) {
  return o->code != 0 && (text == NULL || strstr(o->err, text) != NULL);
}
