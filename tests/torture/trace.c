/* Following the system calls of a command that change the disk, to strike at one of them. A filter
 * (seccomp) stops the process only for these calls, so that the rest runs at full speed. */
#define _GNU_SOURCE
#include "tests/torture/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)

typedef struct watched {
  int number;
  const char *name;
  int writes;     /* argument 0 is a descriptor, argument 2 a number of bytes */
  int needs_room; /* fails on a full disk */
} watched;

static const watched calls[] = {
    {SYS_write, "write", 1, 1},         {SYS_pwrite64, "pwrite", 1, 1},
    {SYS_writev, "writev", 0, 1},       {SYS_ftruncate, "ftruncate", 0, 0},
    {SYS_truncate, "truncate", 0, 0},   {SYS_fsync, "fsync", 0, 1},
    {SYS_fdatasync, "fdatasync", 0, 1}, {SYS_rename, "rename", 0, 1},
    {SYS_renameat, "renameat", 0, 1},   {SYS_renameat2, "renameat2", 0, 1},
    {SYS_unlink, "unlink", 0, 0},       {SYS_unlinkat, "unlinkat", 0, 0},
    {SYS_mkdir, "mkdir", 0, 1},         {SYS_mkdirat, "mkdirat", 0, 1},
    {SYS_rmdir, "rmdir", 0, 0},         {SYS_link, "link", 0, 1},
    {SYS_fallocate, "fallocate", 0, 1}, {SYS_openat, "open", 0, 1}, /* only with O_CREAT */
};
enum { N_CALLS = sizeof calls / sizeof *calls };

/* Stops for the calls of the table, openat only where it may make a file. */
static int install_filter(void) {
  struct sock_filter code[N_CALLS + 8];
  size_t n = 0;
  const unsigned number = offsetof(struct seccomp_data, nr);
  const unsigned flags = offsetof(struct seccomp_data, args) + 2 * 8;
  code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, number);
  for (size_t i = 0; i + 1 < N_CALLS; ++i) {
    const unsigned char to_trace = (unsigned char)(N_CALLS - 1 - i + 3);
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i].number,
                                             to_trace, 0);
  }
  code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 2);
  code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, flags);
  code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_CREAT, 1, 0);
  code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
  struct sock_fprog program = {.len = (unsigned short)n, .filter = code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

void trace_me(void) {
  if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(126);
  raise(SIGSTOP);
  if (install_filter() != 0) _exit(126);
}

static const watched *call_of(const struct user_regs_struct *r) {
  for (size_t i = 0; i < N_CALLS; ++i)
    if ((unsigned long long)calls[i].number == r->orig_rax) return &calls[i];
  return NULL;
}

/* What descriptor 0 of the arguments is: a path, or "pipe:[…]". */
static void file_of(pid_t pid, const struct user_regs_struct *r, char *path, size_t size) {
  char link[64];
  snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)pid, (int)r->rdi);
  ssize_t n = readlink(link, path, size - 1);
  path[n > 0 ? n : 0] = '\0';
}

typedef struct following {
  const trace_plan *plan;
  trace_count *count;
  pid_t group, doomed; /* doomed: to be killed at its own_left-th call */
  long own_left;
  char program[256]; /* what the first process runs */
} following;

static void program_of(pid_t pid, char program[256]) {
  char link[64];
  snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
  ssize_t n = readlink(link, program, 255);
  program[n > 0 ? n : 0] = '\0';
}

/* Whether the process is gepolab's own and not, say, gnuplot, which does not notice a write that
 * fails once. */
static int is_own(following *f, pid_t pid) {
  char program[256];
  if (f->program[0] == '\0') program_of(f->group, f->program);
  program_of(pid, program);
  return strcmp(program, f->program) == 0;
}

static void note_where(following *f, const watched *c, const char *path) {
  const char *name = strrchr(path, '/');
  f->count->struck = 1;
  if (f->count->where[0] == '\0')
    snprintf(f->count->where, sizeof f->count->where, "%s(%.60s)", c->name,
             name != NULL ? name + 1 : path);
}

static void make_fail(pid_t pid, struct user_regs_struct *r, int error) {
  r->orig_rax = (unsigned long long)-1;
  r->rax = (unsigned long long)-(long long)error;
  ptrace(PTRACE_SETREGS, pid, NULL, r);
}

static void strike(following *f, pid_t pid, struct user_regs_struct *r, const watched *c) {
  const trace_plan *p = f->plan;
  char path[256] = "";
  if (c->writes || c->number == SYS_fsync || c->number == SYS_fdatasync ||
      c->number == SYS_ftruncate)
    file_of(pid, r, path, sizeof path);
  const long n = f->count->calls;
  switch (p->action) {
  case TRACE_OFF:
  case TRACE_COUNT:
  case TRACE_KILL_FORK:
    break;
  case TRACE_KILL_ALL:
    if (n == p->nth) note_where(f, c, path), kill(-f->group, SIGKILL);
    break;
  case TRACE_KILL_ONE:
    if (n == p->nth) note_where(f, c, path), kill(pid, SIGKILL);
    break;
  case TRACE_HALF_KILL:
    if (n > p->nth) kill(-f->group, SIGKILL);
    if (n != p->nth) break;
    note_where(f, c, path);
    if (c->writes && r->rdx > 1) {
      r->rdx /= 2;
      ptrace(PTRACE_SETREGS, pid, NULL, r);
    } else {
      kill(-f->group, SIGKILL);
    }
    break;
  case TRACE_FAIL_ONCE:
  case TRACE_FAIL_FROM:
    if (n != p->nth && !(n > p->nth && p->action == TRACE_FAIL_FROM)) break;
    if (!c->needs_room || (path[0] != '\0' && path[0] != '/')) break; /* pipes have no disk */
    if (p->action == TRACE_FAIL_ONCE && !is_own(f, pid)) break;
    note_where(f, c, path);
    make_fail(pid, r, p->error);
    break;
  }
}

static void on_call(following *f, pid_t pid) {
  struct user_regs_struct r;
  if (ptrace(PTRACE_GETREGS, pid, NULL, &r) != 0) return;
  const watched *c = call_of(&r);
  if (c == NULL) return;
  if ((c->writes || c->number == SYS_writev) && r.rdi <= STDERR_FILENO) return;
  ++f->count->calls;
  if (pid == f->doomed && --f->own_left <= 0) {
    f->doomed = 0;
    note_where(f, c, "");
    kill(pid, SIGKILL);
    return;
  }
  strike(f, pid, &r, c);
}

static void on_fork(following *f, pid_t pid) {
  unsigned long child = 0;
  if (ptrace(PTRACE_GETEVENTMSG, pid, NULL, &child) != 0) return;
  if (++f->count->forks != f->plan->nth || f->plan->action != TRACE_KILL_FORK) return;
  if (f->plan->own_calls > 0) {
    f->doomed = (pid_t)child;
    f->own_left = f->plan->own_calls;
    return;
  }
  f->count->struck = 1;
  snprintf(f->count->where, sizeof f->count->where, "its birth");
  kill((pid_t)child, SIGKILL);
}

static void on_stop(following *f, pid_t pid, int status) {
  int deliver = 0;
  switch (status >> 16) {
  case PTRACE_EVENT_SECCOMP:
    on_call(f, pid);
    break;
  case PTRACE_EVENT_FORK:
  case PTRACE_EVENT_VFORK:
    on_fork(f, pid);
    break;
  case 0:
    deliver = WSTOPSIG(status);
    if (deliver == SIGSTOP || deliver == SIGTRAP) deliver = 0; /* ours: a new process or thread */
    break;
  }
  ptrace(PTRACE_CONT, pid, NULL, (void *)(intptr_t)deliver);
}

static void nothing(int signal_number) {
  (void)signal_number;
}

int trace_follow(pid_t first, const trace_plan *p, trace_count *count, double until, int *hung) {
  following f = {.plan = p, .count = count, .group = first};
  int result = -1, status = 0;
  const struct timeval tick = {0, 50000};
  struct sigaction wake = {.sa_handler = nothing};
  sigaction(SIGALRM, &wake, NULL); /* ends a wait, so that the time is looked at */
  setitimer(ITIMER_REAL, &(struct itimerval){tick, tick}, NULL);
  while (waitpid(first, &status, __WALL) < 0 && errno == EINTR) continue;
  if (WIFSTOPPED(status)) {
    const long options = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                         PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;
    ptrace(PTRACE_SETOPTIONS, first, NULL, (void *)options);
    ptrace(PTRACE_CONT, first, NULL, NULL);
  } else {
    result = status;
  }
  for (;;) {
    pid_t pid = waitpid(-1, &status, __WALL); /* some make a group of their own */
    if (pid < 0 && errno == ECHILD) break;
    if (now_s() > until) {
      *hung = result == -1;
      kill(-first, SIGKILL);
      until += 5;
    }
    if (pid < 0) continue;
    if (WIFSTOPPED(status))
      on_stop(&f, pid, status);
    else if (pid == first)
      result = status;
  }
  setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
  return result;
}

int trace_possible(void) {
  trace_count count = {0};
  int hung = 0;
  pid_t pid = fork();
  if (pid < 0) return 0;
  if (pid == 0) {
    setpgid(0, 0);
    trace_me();
    if (write(-1, "", 1) < 0) mkdir("/", 0777); /* two calls that change nothing */
    _exit(0);
  }
  setpgid(pid, pid);
  int status = trace_follow(pid, &(trace_plan){.action = TRACE_COUNT}, &count, now_s() + 5, &hung);
  return status == 0 && count.calls == 2;
}

#else

void trace_me(void) {
  _exit(126);
}
int trace_follow(pid_t first, const trace_plan *p, trace_count *count, double until, int *hung) {
  int status = -1;
  (void)p, (void)count, (void)until, (void)hung;
  while (waitpid(first, &status, 0) < 0 && errno == EINTR) continue;
  return status;
}
int trace_possible(void) {
  return 0;
}

#endif
