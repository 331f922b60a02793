/* Starts, asks and ends the programs that are measured beside ours. */
#include "experiments/bench/peer.h"

#include "core/base/json_tree.h"
#include "experiments/base/seconds.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ANSWER_TEXT = 4096, NOT_STARTED = 127 };

/* --- processes --- */

static _Noreturn void become(const char *const *words, int line, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(NOT_STARTED);
  setpgid(0, 0);
  const char *log = getenv("GEPOLAB_PEER_LOG");
  const int errors = open(log != NULL ? log : "/dev/null", O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (errors >= 0) dup2(errors, STDERR_FILENO);
  dup2(line, STDIN_FILENO);
  dup2(line, STDOUT_FILENO);
  execvp(words[0], (char *const *)words);
  _exit(NOT_STARTED);
}

static void peer_begin(peer_process *p, const char *const *words) {
  int ends[2];
  const pid_t parent = getpid();
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    snprintf(p->why, sizeof p->why, "no socket: %s", strerror(errno));
    return;
  }
  fflush(NULL);
  const pid_t pid = fork();
  if (pid == 0) become(words, ends[1], parent);
  close(ends[1]);
  if (pid < 0) {
    snprintf(p->why, sizeof p->why, "no process: %s", strerror(errno));
    close(ends[0]);
    return;
  }
  setpgid(pid, pid);
  *p = (peer_process){.pid = pid, .line = ends[0]};
}

/* Ends the process and returns how it ended. */
static int peer_finish(peer_process *p, int force) {
  int how = 0;
  if (force) {
    kill(-p->pid, SIGKILL);
    kill(p->pid, SIGKILL); /* before it was the head of a group */
  }
  close(p->line);
  while (waitpid(p->pid, &how, 0) < 0 && errno == EINTR) continue;
  p->pid = 0;
  return how;
}

/* Why the process is no longer there. */
static void explain(char *why, const char *name, int how) {
  if (WIFEXITED(how) && WEXITSTATUS(how) == NOT_STARTED)
    snprintf(why, PEER_TEXT, "%.80s is not installed", name);
  else if (WIFSIGNALED(how))
    snprintf(why, PEER_TEXT, "%.80s was ended by signal %d", name, WTERMSIG(how));
  else
    snprintf(why, PEER_TEXT, "%.80s ended with code %d", name, WEXITSTATUS(how));
}

/* Reads until a newline (whole 0) or the end, at most size - 1 bytes, further ones are dropped. 1:
 * read; 0: the end came first; -1: time is up. */
static int read_answer(int line, char *text, size_t size, double seconds, int whole) {
  const double end = seconds_now() + seconds;
  size_t used = 0;
  text[0] = '\0';
  for (;;) {
    const double left = end - seconds_now();
    struct pollfd p = {.fd = line, .events = POLLIN};
    char more[512];
    if (left <= 0) return -1;
    const int ready = poll(&p, 1, left < 1e6 ? (int)(1000 * left) + 1 : -1);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return -1;
    const ssize_t got = read(line, more, sizeof more);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return whole;
    for (ssize_t i = 0; i < got; ++i) {
      if (!whole && more[i] == '\n') return 1;
      if (used + 1 < size) text[used++] = more[i];
      text[used] = '\0';
    }
  }
}

/* --- a script that answers --- */

/* Stops the process and what it has started, and waits until it stands still (or has ended, which
 * whoever asks next will find). Without that its start, which takes a library like PyTorch seconds,
 * and threads that wait for work by spinning would take the machine from what is measured
 * meanwhile. */
static void peer_hold(const peer_process *p) {
  siginfo_t seen;
  kill(-p->pid, SIGSTOP);
  while (waitid(P_PID, (id_t)p->pid, &seen, WSTOPPED | WEXITED | WNOWAIT) < 0 && errno == EINTR)
    continue;
}

static void let_go_on(const peer_process *p) {
  kill(-p->pid, SIGCONT);
}

void peer_start(peer_process *p, const char *const *words, const char *script) {
  *p = (peer_process){.pid = 0};
  if (script != NULL && access(script, R_OK) != 0)
    snprintf(p->why, sizeof p->why, "%.100s is not here", script);
  else
    peer_begin(p, words);
  if (p->pid != 0) peer_hold(p);
}

void peer_end(peer_process *p) {
  if (p->pid != 0) (void)peer_finish(p, 1);
}

static void peer_copy_text(char to[PEER_TEXT], const cJSON *from, const char *key) {
  const cJSON *item = cJSON_GetObjectItem(from, key);
  if (cJSON_IsString(item)) snprintf(to, PEER_TEXT, "%s", item->valuestring);
}

/* 1 if the line was an answer. */
static int understand(peer_answer *a, const char *text) {
  cJSON *answer = json_tree_of(text);
  const cJSON *rates = cJSON_GetObjectItem(answer, "rates"), *rate = NULL;
  peer_copy_text(a->missing, answer, "missing");
  peer_copy_text(a->note, answer, "note");
  cJSON_ArrayForEach(rate, rates) {
    if (a->n < PEER_MOST_RATES && cJSON_IsNumber(rate) && rate->valuedouble > 0)
      a->rates[a->n++] = rate->valuedouble;
  }
  cJSON_Delete(answer);
  return a->n > 0 || a->missing[0] != '\0';
}

void peer_ask(peer_process *p, const char *request, double seconds, peer_answer *a) {
  char text[ANSWER_TEXT];
  *a = (peer_answer){.n = 0};
  if (p->pid != 0) {
    const int sent = snprintf(text, sizeof text, "%s\n", request);
    let_go_on(p);
    const ssize_t written = send(p->line, text, (size_t)sent, MSG_NOSIGNAL);
    const int got = written != sent ? 0 : read_answer(p->line, text, sizeof text, seconds, 0);
    if (got == 1 && understand(a, text)) {
      peer_hold(p);
      return;
    }
    const int how = peer_finish(p, got != 0);
    if (got < 0)
      snprintf(p->why, sizeof p->why, "no answer within %.0f s", seconds);
    else if (got > 0)
      snprintf(p->why, sizeof p->why, "the answer was not understood");
    else
      explain(p->why, "the program", how);
  }
  snprintf(a->missing, sizeof a->missing, "%s", p->why);
}

/* --- a program that runs to its end --- */

double peer_run(const char *const *words, double seconds, char *text, size_t size, char *why) {
  peer_process p = {.pid = 0};
  const double begun = seconds_now();
  why[0] = '\0';
  peer_begin(&p, words);
  if (p.pid == 0) {
    snprintf(why, PEER_TEXT, "%s", p.why);
    return NAN;
  }
  const int got = read_answer(p.line, text, size, seconds, 1);
  const int how = peer_finish(&p, got < 0);
  const double took = seconds_now() - begun;
  if (got < 0)
    snprintf(why, PEER_TEXT, "not done within %.0f s", seconds);
  else if (!WIFEXITED(how) || WEXITSTATUS(how) != 0)
    explain(why, words[0], how);
  return why[0] == '\0' ? took : NAN;
}
