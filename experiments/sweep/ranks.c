/* Which part of a sweep this process does, and what the processes of an MPI job share. */
#include "experiments/sweep/ranks.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef GEPOLAB_WITH_MPI
#include <mpi.h>
#endif

static int whole_number(const char *text, size_t *value) {
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

/* Adds a sentence to what a person should know. */
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

static void note_shard(ranks *s) {
  if (s->count > 1)
    ranks_add_note(
        s,
        "this process does shard %zu of %zu (they are 0 to %zu) into FILE.shard%zu; `gepolab study "
        "merge` joins them",
        s->index, s->count, s->count - 1, s->index);
}

/* --- mpirun --- */

/* 0 where mpirun did not start this process. Only it sets OMPI_COMM_WORLD_SIZE: starting MPI
 * outside of it would cost every run. */
static size_t mpirun_size(void) {
  size_t size = 0;
  return whole_number(getenv("OMPI_COMM_WORLD_SIZE"), &size) ? size : 0;
}

static gl_status begin_mpi(ranks *s, gl_error *err) {
#ifdef GEPOLAB_WITH_MPI
  int rank = 0, size = 1;
  if (MPI_Init(NULL, NULL) != MPI_SUCCESS) return gl_fail(err, GL_EIO, "MPI does not start");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  *s = (ranks){.index = (size_t)rank, .count = (size_t)size, .mpi = 1};
  if (rank == 0)
    ranks_add_note(
        s,
        "%d MPI ranks share this sweep: rank I does shard I into FILE.shardI; rank 0, this "
        "one, joins them and reports for all",
        size);
  return GL_OK;
#else
  (void)s;
  return gl_fail(err, GL_EINPUT,
                 "this gepolab was built without MPI; build it where mpicc is found, or give "
                 "each process its --shard I/N");
#endif
}

/* Slurm --- */

/* srun gives every process of a step its number, and the step's size in SLURM_STEP_NUM_TASKS. The
 * batch script, which runs once and where SLURM_PROCID is 0 too, does not have the latter. Leaves
 * 0 of 1 where there is no step of several tasks. */
static gl_status read_step(ranks *s, gl_error *err) {
  const char *procid = getenv("SLURM_PROCID");
  size_t index = 0, count = 0;
  if (!whole_number(getenv("SLURM_STEP_NUM_TASKS"), &count) || count < 2) return GL_OK;
  if (!whole_number(procid, &index) || index >= count)
    return gl_fail(err, GL_EINPUT,
                   "srun's step has %zu tasks (SLURM_STEP_NUM_TASKS), but SLURM_PROCID is '%.40s', "
                   "no number below that; give each process its --shard I/N",
                   count, procid != NULL ? procid : "");
  *s = (ranks){.index = index, .count = count};
  return GL_OK;
}

static void note_lone_task(ranks *s) {
  size_t tasks = 0;
  if (s->count == 1 && whole_number(getenv("SLURM_NTASKS"), &tasks) && tasks > 1)
    ranks_add_note(
        s,
        "this Slurm job has %zu tasks, but srun did not start this process as one of several, "
        "so it does the whole sweep alone; to share the sweep among the tasks write `srun "
        "gepolab sweep …`, or give each process its --shard I/N",
        tasks);
}

/* Every task of an array would do the same cells, and into the same file. */
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

static gl_status begin_slurm(ranks *s, gl_error *err) {
  gl_status status = read_step(s, err);
  if (status != GL_OK) return status;
  note_shard(s);
  note_lone_task(s);
  note_array(s);
  return GL_OK;
}

/* --- all of them --- */

gl_status ranks_begin(ranks *s, const char *text, gl_error *err) {
  *s = (ranks){.index = 0, .count = 1};
  if (text != NULL) {
    gl_status status = ranks_read_text(s, text, err);
    if (status == GL_OK) note_shard(s);
    return status;
  }
  if (mpirun_size() > 1) return begin_mpi(s, err);
  return mpirun_size() == 1 ? GL_OK : begin_slurm(s, err);
}

gl_status ranks_share(const ranks *s, double *value, size_t n, gl_status own) {
#ifdef GEPOLAB_WITH_MPI
  if (s->mpi) {
    int worst = (int)own, mine = (int)own;
    MPI_Allreduce(&mine, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
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
