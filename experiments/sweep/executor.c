/* Worker processes: forked one per job, read through pipes, ended when told to stop. */
#define _GNU_SOURCE /* close_range */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "experiments/sweep/executor.h"

#include "experiments/base/process.h"
#include "experiments/recipe/recipe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- worker processes --- */

/* How often the parent looks up from waiting, so that a signal between two waits is not missed. */
enum { WAIT_MS = 100 };

typedef struct worker {
  pid_t pid; /* 0: free */
  int pipe;
  size_t job;
  char *bytes;
  size_t size, room;
} worker;

typedef struct executor {
  const executor_plan *plan;
  worker *workers; /* [n_workers] */
  struct pollfd *polls;
  size_t n_workers, running, next_job;
  gl_error *err;
} executor;

/* --- in the worker --- */

/* One thread a worker: the workers themselves are the parallelism. Weak, because only some BLAS
 * libraries have it. */
extern void openblas_set_num_threads(int n) __attribute__((weak));

/* Ctrl-C at a terminal reaches the whole group: the parent decides what becomes of workers. */
static void settle_in(const executor_plan *plan, pid_t parent, int pipe_end) {
  signal(SIGINT, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  if (plan->lets_finish_step)
    signals_catch_term();
  else
    signal(SIGTERM, SIG_DFL);
  signal(SIGPIPE, SIG_DFL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(EXIT_FAILURE); /* it died before prctl could tell */
  /* The study file and other workers' pipes are the parent's alone. */
  if (pipe_end > STDERR_FILENO + 1) close_range(STDERR_FILENO + 1, (unsigned)pipe_end - 1, 0);
  close_range((unsigned)pipe_end + 1, ~0u, 0);
  if (openblas_set_num_threads != NULL) openblas_set_num_threads(1);
}

static _Noreturn void be_worker(const executor_plan *plan, size_t job, int pipe_end) {
  run_result result = {0};
  gl_error err = {.status = GL_OK};
  gl_status status = plan->work(plan->self, job, &result, &err);
  if (status == GL_EINTERRUPTED) _exit(EXIT_FAILURE); /* nobody listens any more */
  if (status != GL_OK) {
    run_result_fini(&result);
    result.status = RUN_FAILED;
    snprintf(result.reason, sizeof result.reason, "%.*s", (int)sizeof result.reason - 1, err.text);
  }
  FILE *to = fdopen(pipe_end, "wb");
  int ok = to != NULL && run_result_write(&result, to, NULL) == GL_OK && fclose(to) == 0;
  _exit(ok ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* --- in the parent --- */

static gl_status start_worker(executor *x, worker *w, size_t job) {
  int ends[2];
  if (pipe(ends) != 0)
    return gl_fail(x->err, GL_EIO, "cannot make a pipe for a worker: %s", strerror(errno));
  pid_t parent = getpid();
  fflush(NULL); /* or the worker would hold a copy of what is not yet written */
  pid_t pid = fork();
  if (pid < 0) {
    close(ends[0]);
    close(ends[1]);
    return gl_fail(x->err, GL_EIO, "cannot start a worker: %s", strerror(errno));
  }
  if (pid == 0) {
    settle_in(x->plan, parent, ends[1]);
    be_worker(x->plan, job, ends[1]);
  }
  close(ends[1]);
  *w = (worker){.pid = pid, .pipe = ends[0], .job = job};
  ++x->running;
  return GL_OK;
}

/* Takes what the pipe holds. 1: the worker closed it; 0: more may come; -1: trouble in *err. */
static int read_some(worker *w, gl_error *err) {
  if (w->room - w->size < 65536) {
    size_t room = w->room < 65536 ? 131072 : 2 * w->room;
    char *bytes = realloc(w->bytes, room);
    if (bytes == NULL) {
      gl_fail_memory(err, "a worker's result");
      return -1;
    }
    w->bytes = bytes;
    w->room = room;
  }
  ssize_t got = read(w->pipe, w->bytes + w->size, w->room - w->size);
  if (got > 0) {
    w->size += (size_t)got;
    return 0;
  }
  if (got == 0) return 1;
  if (errno == EINTR || errno == EAGAIN) return 0;
  gl_fail(err, GL_EIO, "cannot read from a worker: %s", strerror(errno));
  return -1;
}

static void describe_death(run_result *result, int how) {
  result->status = RUN_FAILED;
  if (WIFSIGNALED(how))
    snprintf(result->reason, sizeof result->reason, "worker ended by signal %d (%s)", WTERMSIG(how),
             strsignal(WTERMSIG(how)));
  else
    snprintf(result->reason, sizeof result->reason, "worker ended with exit code %d",
             WEXITSTATUS(how));
}

static void free_worker(executor *x, worker *w) {
  if (w->pipe >= 0) close(w->pipe);
  free(w->bytes);
  *w = (worker){0};
  --x->running;
}

static gl_status reap(executor *x, worker *w) {
  int how = 0;
  struct rusage used = {0};
  while (wait4(w->pid, &how, 0, &used) < 0 && errno == EINTR) continue;
  run_result result = {0};
  gl_error spoiled = {.status = GL_OK};
  if (!WIFEXITED(how) || WEXITSTATUS(how) != EXIT_SUCCESS) {
    describe_death(&result, how);
  } else if (run_result_read(&result, w->bytes, w->size, &spoiled) != GL_OK) {
    result.status = RUN_FAILED;
    snprintf(result.reason, sizeof result.reason, "%.*s", (int)sizeof result.reason - 1,
             spoiled.text);
  }
  result.peak_bytes = (int64_t)used.ru_maxrss * 1024; /* also of a worker that was killed */
  size_t job = w->job;
  free_worker(x, w);
  gl_status status = x->plan->done(x->plan->self, job, &result, x->err);
  run_result_fini(&result);
  return status;
}

static gl_status fill_workers(executor *x) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < x->n_workers && x->next_job < x->plan->n_jobs && status == GL_OK; ++i)
    if (x->workers[i].pid == 0) status = start_worker(x, &x->workers[i], x->next_job++);
  return status;
}

static gl_status attend(executor *x) {
  for (size_t i = 0; i < x->n_workers; ++i)
    x->polls[i] =
        (struct pollfd){.fd = x->workers[i].pid != 0 ? x->workers[i].pipe : -1, .events = POLLIN};
  if (poll(x->polls, (nfds_t)x->n_workers, WAIT_MS) < 0 && errno != EINTR)
    return gl_fail(x->err, GL_EIO, "cannot wait for the workers: %s", strerror(errno));
  for (size_t i = 0; i < x->n_workers; ++i) {
    if (x->workers[i].pid == 0 || x->polls[i].revents == 0) continue;
    int end = read_some(&x->workers[i], x->err);
    if (end < 0) return x->err != NULL ? x->err->status : GL_EIO;
    gl_status status = end > 0 ? reap(x, &x->workers[i]) : GL_OK;
    if (status != GL_OK) return status;
  }
  return GL_OK;
}

static void end_workers(executor *x) {
  for (size_t i = 0; i < x->n_workers; ++i) {
    if (x->workers[i].pid == 0) continue;
    kill(x->workers[i].pid, x->plan->lets_finish_step ? SIGTERM : SIGKILL);
  }
  for (size_t i = 0; i < x->n_workers; ++i) {
    if (x->workers[i].pid == 0) continue;
    close(x->workers[i].pipe); /* or one that has ended its work would wait to be heard */
    x->workers[i].pipe = -1;
    while (waitpid(x->workers[i].pid, NULL, 0) < 0 && errno == EINTR) continue;
    free_worker(x, &x->workers[i]);
  }
}

gl_status executor_run(const executor_plan *plan, gl_error *err) {
  executor x = {.plan = plan, .err = err};
  x.n_workers = plan->workers < plan->n_jobs ? plan->workers : plan->n_jobs;
  x.workers = calloc(x.n_workers + 1, sizeof *x.workers);
  x.polls = calloc(x.n_workers + 1, sizeof *x.polls);
  gl_status status = GL_OK;
  if (x.workers == NULL || x.polls == NULL) status = gl_fail_memory(err, "the workers");
  while (status == GL_OK && (x.running > 0 || x.next_job < plan->n_jobs)) {
    const int caught = signals_caught();
    if (caught != 0) {
      status =
          gl_fail(err, GL_EINTERRUPTED, "stopped by %s; finished work is kept", strsignal(caught));
      break;
    }
    status = fill_workers(&x);
    if (status == GL_OK) status = attend(&x);
    if (status == GL_OK && plan->tick != NULL) plan->tick(plan->self);
  }
  if (x.workers != NULL) end_workers(&x);
  free(x.workers);
  free(x.polls);
  return status;
}

/* --- whether this machine can run the cells --- */

typedef struct question {
  const sweep_cells *cells;
  const size_t *job;
  size_t n;
  gl_error *answer; /* in memory that both processes see: a result has no status of an error */
} question;

static gl_status ask_cell(const sweep_cell *cell, recipe_worlds *known, gl_error *err) {
  cfg_doc *doc = NULL;
  recipe r = {0};
  gl_error why = {0};
  gl_status status = sweep_cell_recipe(&doc, cell, &why);
  if (status == GL_OK) status = recipe_read(&r, doc, &why);
  r.threads = 1; /* as workers have */
  if (status == GL_OK) status = recipe_check_machine(&r, known, &why);
  cfg_free(doc);
  if (status == GL_OK) return status;
  return gl_fail(err, status, "%s, seed %llu, %s: %s", cell->algorithm,
                 (unsigned long long)cell->seed, cell->swept, why.text);
}

static const sweep_cell *preflight_cell_of(const question *q, size_t i) {
  return &q->cells->cells[q->job != NULL ? q->job[i] : i];
}

static gl_status preflight_ask(void *self, size_t job, run_result *out, gl_error *err) {
  const question *q = self;
  recipe_worlds known = {0};
  gl_status status = GL_OK;
  (void)job, (void)out;
  for (size_t i = 0; i < q->n && status == GL_OK; ++i)
    if (preflight_cell_of(q, i)->is_llm) status = ask_cell(preflight_cell_of(q, i), &known, err);
  recipe_worlds_fini(&known);
  *q->answer = *err;
  return status;
}

static gl_status answer(void *self, size_t job, const run_result *result, gl_error *err) {
  const question *q = self;
  (void)job;
  if (result->status != RUN_FAILED) return GL_OK;
  if (q->answer->status != GL_OK) return gl_fail(err, q->answer->status, "%s", q->answer->text);
  return gl_fail(err, GL_EIO, "this machine could not be asked: %s", result->reason);
}

gl_status preflight_check(const sweep_cells *cells, const size_t *job, size_t n, gl_error *err) {
  question q = {.cells = cells, .job = job, .n = n};
  size_t asked = 0;
  for (size_t i = 0; i < n; ++i) asked += preflight_cell_of(&q, i)->is_llm != 0;
  if (asked == 0) return GL_OK;
  q.answer =
      mmap(NULL, sizeof *q.answer, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (q.answer == MAP_FAILED) return gl_fail_memory(err, "a question to this machine");
  const executor_plan plan = {
      .n_jobs = 1, .workers = 1, .work = preflight_ask, .done = answer, .self = &q};
  gl_status status = executor_run(&plan, err);
  munmap(q.answer, sizeof *q.answer);
  return status;
}
