/* Which part of a sweep this process does, and what the processes of an MPI job share. */
#include "experiments/sweep/ranks.h"

#include <math.h>
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

static gl_status read_text(ranks *s, const char *text, gl_error *err) {
  unsigned long index = 0, count = 0;
  char rest = 0;
  if (sscanf(text, "%lu/%lu%c", &index, &count, &rest) != 2 || text[0] == '-' || count == 0 ||
      index >= count || count > 1000000)
    return gl_fail(err, GL_EINPUT,
                   "--shard needs I/N with 0 <= I < N, as in 0/4 to 3/4, but got '%s'", text);
  *s = (ranks){.index = index, .count = count};
  return GL_OK;
}

/* Only mpirun sets OMPI_COMM_WORLD_SIZE: starting MPI outside of it would cost every run. */
static int under_mpirun(void) {
  size_t size = 0;
  return whole_number(getenv("OMPI_COMM_WORLD_SIZE"), &size) && size > 1;
}

gl_status ranks_begin(ranks *s, const char *text, gl_error *err) {
  *s = (ranks){.index = 0, .count = 1};
  if (text != NULL) return read_text(s, text, err);
  if (under_mpirun()) {
#ifdef GEPOLAB_WITH_MPI
    int rank = 0, size = 1;
    if (MPI_Init(NULL, NULL) != MPI_SUCCESS) return gl_fail(err, GL_EIO, "MPI does not start");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    *s = (ranks){.index = (size_t)rank, .count = (size_t)size, .mpi = 1};
    return GL_OK;
#else
    return gl_fail(err, GL_EINPUT,
                   "this gepolab was built without MPI; build it where mpicc is found, or give "
                   "each process its --shard I/N");
#endif
  }
  size_t index = 0, count = 0;
  if (whole_number(getenv("SLURM_PROCID"), &index) &&
      whole_number(getenv("SLURM_NTASKS"), &count) && index < count && count > 1)
    *s = (ranks){.index = index, .count = count};
  return GL_OK;
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
