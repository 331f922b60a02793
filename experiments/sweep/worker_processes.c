/* The processes of a sweep. Workers are forked, one per job, and read through pipes. Ranks are
 * separate processes, each of which runs a part of the sweep. */
#define _GNU_SOURCE /* close_range, MAP_ANONYMOUS */
#include "experiments/sweep/worker_processes.h"

#include "experiments/base/memory.h"
#include "experiments/base/program.h"
#include "experiments/recipe/recipe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef GEPOLAB_WITH_MPI
#include <mpi.h>
#endif

/* --- worker processes --- */

/* Timeout of the parent's poll(). A signal just before poll() does not interrupt it, so the parent
 * must check for signals regularly. */
enum { WAIT_MS = 100 };

typedef struct worker {
  pid_t pid; /* 0: slot is free */
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

/* One BLAS thread per worker: parallelism comes from the workers. Weak symbol, because only some
 * BLAS libraries have it. */
extern void openblas_set_num_threads(int n) __attribute__((weak));

/* Prepares a new worker process. It ignores SIGINT, because Ctrl-C reaches the whole process group
 * and the parent decides when workers stop. It dies with its parent, has no open file but the
 * standard streams and its end of the pipe, and uses one BLAS thread. */
static void settle_in(const executor_plan *plan, pid_t parent, int pipe_end) {
  signal(SIGINT, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  if (plan->lets_finish_step)
    signals_catch_term();
  else
    signal(SIGTERM, SIG_DFL);
  signal(SIGPIPE, SIG_DFL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(EXIT_FAILURE); /* the parent died before prctl() took effect */
  /* The worker must not inherit the study file and other workers' pipes. */
  if (pipe_end > STDERR_FILENO + 1) close_range(STDERR_FILENO + 1, (unsigned)pipe_end - 1, 0);
  close_range((unsigned)pipe_end + 1, ~0u, 0);
  if (openblas_set_num_threads != NULL) openblas_set_num_threads(1);
}

static _Noreturn void be_worker(const executor_plan *plan, size_t job, int pipe_end) {
  run_result result = {0};
  gl_error err = {.status = GL_OK};
  gl_status status = plan->work(plan->self, job, &result, &err);
  if (status == GL_EINTERRUPTED) _exit(EXIT_FAILURE); /* nobody reads the pipe */
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
  fflush(NULL); /* otherwise the worker would inherit unflushed output */
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

/* Reads from the pipe. Returns 1 if the worker closed it, 0 if more may come, -1 with an error in
 * *err. */
static int read_worker(worker *w, gl_error *err) {
  enum { PIECE = 65536 };
  MUST_RESERVE(w->bytes, w->room, w->size + PIECE, "a worker's result");
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

/* Waits for a worker that closed its pipe, and passes its result, or the reason of its failure, to
 * done(). */
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
  result.peak_bytes = (int64_t)used.ru_maxrss * 1024; /* measured even if the worker was killed */
  size_t job = w->job;
  free_worker(x, w);
  gl_status status = x->plan->done(x->plan->self, job, &result, x->err);
  run_result_fini(&result);
  return status;
}

/* Starts a worker for the next job in every free slot. */
static gl_status fill_workers(executor *x) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < x->n_workers && x->next_job < x->plan->n_jobs && status == GL_OK; ++i)
    if (x->workers[i].pid == 0) status = start_worker(x, &x->workers[i], x->next_job++);
  return status;
}

/* Waits at most WAIT_MS for output of workers and reads it. */
static gl_status attend(executor *x) {
  for (size_t i = 0; i < x->n_workers; ++i)
    x->polls[i] =
        (struct pollfd){.fd = x->workers[i].pid != 0 ? x->workers[i].pipe : -1, .events = POLLIN};
  if (poll(x->polls, (nfds_t)x->n_workers, WAIT_MS) < 0 && errno != EINTR)
    return gl_fail(x->err, GL_EIO, "cannot wait for the workers: %s", strerror(errno));
  for (size_t i = 0; i < x->n_workers; ++i) {
    if (x->workers[i].pid == 0 || x->polls[i].revents == 0) continue;
    int end = read_worker(&x->workers[i], x->err);
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
    close(x->workers[i].pipe); /* otherwise a worker that has finished would block writing to it */
    x->workers[i].pipe = -1;
    while (waitpid(x->workers[i].pid, NULL, 0) < 0 && errno == EINTR) continue;
    free_worker(x, &x->workers[i]);
  }
}

gl_status executor_run(const executor_plan *plan, gl_error *err) {
  executor x = {.plan = plan, .err = err};
  x.n_workers = plan->workers < plan->n_jobs ? plan->workers : plan->n_jobs;
  x.workers = MUST_ARRAY(worker, x.n_workers, "the workers");
  x.polls = MUST_ARRAY(struct pollfd, x.n_workers, "the workers");
  gl_status status = GL_OK;
  while (status == GL_OK && (x.running > 0 || x.next_job < plan->n_jobs)) {
    const int caught = signals_caught();
    if (caught != 0) {
      status =
          gl_fail(err, GL_EINTERRUPTED,
                  "stopped by %s; finished work is kept, and the same command goes on from there",
                  strsignal(caught));
      break;
    }
    status = fill_workers(&x);
    if (status == GL_OK) status = attend(&x);
    if (status == GL_OK && plan->tick != NULL) plan->tick(plan->self);
  }
  end_workers(&x);
  free(x.workers);
  free(x.polls);
  return status;
}

/* --- checking the machine --- */

typedef struct question {
  const sweep_cells *cells;
  const size_t *job;
  size_t n;
  gl_error *answer; /* in shared memory, because a run_result has no error status */
} question;

static gl_status ask_cell(const sweep_cell *cell, recipe_worlds *known, gl_error *err) {
  cfg_doc *doc = NULL;
  recipe r = {0};
  gl_error why = {0};
  gl_status status = sweep_cell_recipe(&doc, cell, &why);
  if (status == GL_OK) status = recipe_read(&r, doc, &why);
  r.threads = 1; /* as in workers */
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

static gl_status preflight_answer(void *self, size_t job, const run_result *result, gl_error *err) {
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
      .n_jobs = 1, .workers = 1, .work = preflight_ask, .done = preflight_answer, .self = &q};
  gl_status status = executor_run(&plan, err);
  munmap(q.answer, sizeof *q.answer);
  return status;
}

/* --- ranks --- */

static int executor_read_count(const char *text, size_t *value) {
  char *end = NULL;
  if (text == NULL || text[0] < '0' || text[0] > '9') return 0;
  unsigned long v = strtoul(text, &end, 10);
  *value = v;
  return *end == '\0' && v < 1000000;
}

static gl_status ranks_read_text(ranks *s, const char *text, gl_error *err) {
  unsigned long index = 0, count = 0;
  char rest = 0;
  if (sscanf(text, "%lu/%lu%c", &index, &count, &rest) != 2 || text[0] == '-' || count == 0 ||
      index >= count || count > 1000000)
    return gl_fail(err, GL_EINPUT,
                   "--shard needs I/N with 0 <= I < N, as in 0/4 to 3/4, but got '%s'", text);
  *s = (ranks){.index = index, .count = count};
  return GL_OK;
}

/* Appends a sentence to the note. */
__attribute__((format(printf, 2, 3))) static void ranks_add_note(ranks *s, const char *format,
                                                                 ...) {
  size_t length = strlen(s->note);
  if (length > 0 && length + 2 < sizeof s->note) {
    memcpy(s->note + length, "; ", 3);
    length += 2;
  }
  va_list list;
  va_start(list, format);
  vsnprintf(s->note + length, sizeof s->note - length, format, list);
  va_end(list);
}

static void note_shard(ranks *s, const char *file) {
  if (s->count > 1)
    ranks_add_note(s,
                   "this process does shard %zu of %zu (they are 0 to %zu) into %.300s.shard%zu; "
                   "`gepolab study "
                   "merge` joins them",
                   s->index, s->count, s->count - 1, file, s->index);
}

/* mpirun. */

/* Returns 0 if mpirun did not start this process. Only mpirun sets OMPI_COMM_WORLD_SIZE;
 * initialising MPI without it would slow down every run. */
static size_t mpirun_size(void) {
  size_t size = 0;
  return executor_read_count(getenv("OMPI_COMM_WORLD_SIZE"), &size) ? size : 0;
}

static gl_status begin_mpi(ranks *s, const char *file, gl_error *err) {
#ifdef GEPOLAB_WITH_MPI
  int rank = 0, size = 1;
  if (MPI_Init(NULL, NULL) != MPI_SUCCESS)
    return gl_fail(err, GL_EIO, "MPI does not start; use --shard, or -j without mpirun");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  *s = (ranks){.index = (size_t)rank, .count = (size_t)size, .mpi = 1};
  if (rank == 0)
    ranks_add_note(
        s,
        "%d MPI ranks share this sweep: rank I does shard I into %.300s.shardI; rank 0, this "
        "one, joins them and reports for all",
        size, file);
  return GL_OK;
#else
  (void)s, (void)file;
  return gl_fail(err, GL_EINPUT,
                 "this gepolab was built without MPI; build it where mpicc is found, or give "
                 "each process its --shard I/N");
#endif
}

/* --- ranks under Slurm --- */

/* srun sets the rank of every task, and the number of tasks of the step in SLURM_STEP_NUM_TASKS.
 * The batch script, which runs once and also has SLURM_PROCID 0, does not have the latter. Leaves
 * rank 0 of 1 without a step of several tasks. */
static gl_status read_step(ranks *s, gl_error *err) {
  const char *procid = getenv("SLURM_PROCID");
  size_t index = 0, count = 0;
  if (!executor_read_count(getenv("SLURM_STEP_NUM_TASKS"), &count) || count < 2) return GL_OK;
  if (!executor_read_count(procid, &index) || index >= count)
    return gl_fail(err, GL_EINPUT,
                   "srun's step has %zu tasks (SLURM_STEP_NUM_TASKS), but SLURM_PROCID is '%.40s', "
                   "no number below that; give each process its --shard I/N",
                   count, procid != NULL ? procid : "");
  *s = (ranks){.index = index, .count = count};
  return GL_OK;
}

/* Notes if the Slurm job has several tasks but this process runs the whole sweep. */
static void note_lone_task(ranks *s) {
  size_t tasks = 0;
  if (s->count == 1 && executor_read_count(getenv("SLURM_NTASKS"), &tasks) && tasks > 1)
    ranks_add_note(
        s,
        "this Slurm job has %zu tasks, but srun did not start this process as one of several, "
        "so it does the whole sweep alone; to share the sweep among the tasks write `srun "
        "gepolab sweep …`, or give each process its --shard I/N",
        tasks);
}

/* Notes a job array: each of its tasks would run all cells and write to the same file. */
static void note_array(ranks *s) {
  const char *task = getenv("SLURM_ARRAY_TASK_ID"), *count = getenv("SLURM_ARRAY_TASK_COUNT");
  if (task != NULL)
    ranks_add_note(
        s,
        "this is task %.20s of a Slurm job array of %.20s, and every task of the array does "
        "the same; to share the sweep among them add --shard $(((SLURM_ARRAY_TASK_ID - "
        "SLURM_ARRAY_TASK_MIN) / SLURM_ARRAY_TASK_STEP))/$SLURM_ARRAY_TASK_COUNT",
        task, count != NULL ? count : "unknown size");
}

static gl_status begin_slurm(ranks *s, const char *file, gl_error *err) {
  gl_status status = read_step(s, err);
  if (status != GL_OK) return status;
  note_shard(s, file);
  note_lone_task(s);
  note_array(s);
  return GL_OK;
}

gl_status ranks_begin(ranks *s, const char *text, const char *file, gl_error *err) {
  if (file == NULL) file = "FILE";
  *s = (ranks){.index = 0, .count = 1};
  if (text != NULL) {
    gl_status status = ranks_read_text(s, text, err);
    if (status == GL_OK) note_shard(s, file);
    return status;
  }
  if (mpirun_size() > 1) return begin_mpi(s, file, err);
  return mpirun_size() == 1 ? GL_OK : begin_slurm(s, file, err);
}

gl_status ranks_share(const ranks *s, double *value, size_t n, gl_status own) {
#ifdef GEPOLAB_WITH_MPI
  if (s->mpi) {
    int worst = (int)own, own_status = (int)own;
    MPI_Allreduce(&own_status, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (worst != GL_OK) return (gl_status)worst;
    if (n > 0) MPI_Allreduce(MPI_IN_PLACE, value, (int)n, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  }
#else
  (void)s, (void)value, (void)n;
#endif
  return own;
}

void ranks_sum(const ranks *s, double *value, size_t n) {
#ifdef GEPOLAB_WITH_MPI
  if (s->mpi) MPI_Allreduce(MPI_IN_PLACE, value, (int)n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
#else
  (void)s, (void)value, (void)n;
#endif
}

void ranks_end(ranks *s) {
#ifdef GEPOLAB_WITH_MPI
  if (s->mpi) MPI_Finalize();
#endif
  s->mpi = 0;
}

gl_status ranks_path(char *path, size_t size, const char *file, const ranks *s, size_t index,
                     gl_error *err) {
  int length = s->count > 1 ? snprintf(path, size, "%s.shard%zu", file, index)
                            : snprintf(path, size, "%s", file);
  if (length < 0 || (size_t)length >= size)
    return gl_fail(err, GL_EINPUT, "the path '%.100s…' is too long", file);
  return GL_OK;
}

size_t ranks_shard_files(const char *file, void (*each)(void *self, const char *path), void *self) {
  const char *slash = strrchr(file, '/'), *name = slash != NULL ? slash + 1 : file;
  char *folder = slash == NULL
                     ? must_copy(".", "the names of shards")
                     : must_textf("the names of shards", "%.*s", (int)(name - file), file),
       *start = must_textf("the names of shards", "%s.shard", name);
  struct dirent **entry = NULL;
  size_t n = 0;
  const int entries = scandir(folder, &entry, NULL, versionsort);
  for (int i = 0; i < entries; ++i) {
    const char *found = entry[i]->d_name, *number = found + strlen(start);
    if (strncmp(found, start, strlen(start)) == 0 && *number != '\0' &&
        number[strspn(number, "0123456789")] == '\0') {
      char *path = must_textf("the names of shards", "%.*s%s", (int)(name - file), file, found);
      each(self, path);
      free(path);
      ++n;
    }
    free(entry[i]);
  }
  free(entry);
  free(start);
  free(folder);
  return n;
}
