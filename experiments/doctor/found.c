/* Looks for the programs, libraries and devices that gepolab can use. */
#include "experiments/doctor/found.h"

#include "experiments/base/cache.h"
#include "experiments/bench/peer.h"
#include "llm/backend/open/open.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Longest that a program may take to tell its version. */
#define PATIENCE_S 5.0

/* --- other programs --- */

/* Runs a program and keeps the first line that it prints; 0, with the reason, where that fails. */
static int first_line(char detail[FOUND_TEXT], const char *const *words) {
  char text[512], why[PEER_TEXT];
  if (isnan(peer_run(words, PATIENCE_S, text, sizeof text, why))) {
    snprintf(detail, FOUND_TEXT, "%s", why);
    return 0;
  }
  text[strcspn(text, "\r\n")] = '\0';
  snprintf(detail, FOUND_TEXT, "%.*s", FOUND_TEXT - 1, text);
  return 1;
}
#define FIRST_LINE(detail, ...) first_line(detail, (const char *const[]){__VA_ARGS__, NULL})

static int look_gnuplot(char detail[FOUND_TEXT]) {
  char ignored[FOUND_TEXT];
  if (!FIRST_LINE(detail, "gnuplot", "--version")) return 0;
  if (FIRST_LINE(ignored, "gnuplot", "-e",
                 "set terminal pdfcairo; set terminal pngcairo; set terminal svg"))
    return 1;
  const size_t used = strlen(detail);
  snprintf(detail + used, FOUND_TEXT - used, " without the terminals pdfcairo, pngcairo and svg");
  return 0;
}

/* fc-match names the font that would be taken, whether or not it is the one asked for. */
static int look_font(char detail[FOUND_TEXT]) {
  static const char wanted[] = "DejaVu Sans";
  if (!FIRST_LINE(detail, "fc-match", "--format=%{family[0]}", wanted)) return 0;
  if (strcmp(detail, wanted) == 0) return 1;
  char other[64];
  snprintf(other, sizeof other, "%.60s", detail);
  snprintf(detail, FOUND_TEXT, "%s would stand in for it", other);
  return 0;
}

static int look_pdflatex(char detail[FOUND_TEXT]) {
  return FIRST_LINE(detail, "pdflatex", "--version");
}

/* Its version goes to standard error, which nobody reads here. */
static int look_pdfunite(char detail[FOUND_TEXT]) {
  if (!FIRST_LINE(detail, "pdfunite", "-v")) return 0;
  if (detail[0] == '\0') snprintf(detail, FOUND_TEXT, "found");
  return 1;
}

static int look_mpi(char detail[FOUND_TEXT]) {
#ifdef GEPOLAB_WITH_MPI
  return FIRST_LINE(detail, "mpirun", "--version");
#else
  snprintf(detail, FOUND_TEXT, "this gepolab was built without MPI");
  return 0;
#endif
}

static int look_slurm(char detail[FOUND_TEXT]) {
  return FIRST_LINE(detail, "sbatch", "--version");
}

static int look_library(char detail[FOUND_TEXT]) {
  if (!FIRST_LINE(detail, "pkg-config", "--version")) return 0;
  if (FIRST_LINE(detail, "pkg-config", "--modversion", "gepolab")) return 1;
  snprintf(detail, FOUND_TEXT, "pkg-config finds no gepolab.pc");
  return 0;
}

/* Python --- */

/* The one that `gepolab bench` runs, too. */
static const char *python(void) {
  const char *named = getenv("GEPOLAB_PYTHON");
  return named != NULL && named[0] != '\0' ? named : "python3";
}

/* The package is imported, because that is when it looks for libgepolab. */
static int look_package(char detail[FOUND_TEXT]) {
  if (!FIRST_LINE(detail, python(), "--version")) return 0;
  if (FIRST_LINE(detail, python(), "-c", "import gepolab; print(gepolab.__version__)")) return 1;
  snprintf(detail, FOUND_TEXT, "%.60s has no package gepolab, or it finds no libgepolab", python());
  return 0;
}

/* Of PyTorch only the version is asked for: to load it would take seconds. */
static int look_torch(char detail[FOUND_TEXT]) {
  if (FIRST_LINE(detail, python(), "-c",
                 "import importlib.metadata as m; print(m.version('torch'))"))
    return 1;
  snprintf(detail, FOUND_TEXT, "%.60s has no package torch", python());
  return 0;
}

/* --- this machine --- */

static int look_cuda(char detail[FOUND_TEXT]) {
  const size_t n = backend_devices();
  gl_error err = {.status = GL_OK};
  backend *b = NULL;
  if (n > 0) {
    snprintf(detail, FOUND_TEXT, "%zu device%s", n, n == 1 ? "" : "s");
    return 1;
  }
  if (backend_new(&b, BACKEND_CUDA, NUMBER_F32, 1, &err) == GL_OK) backend_free(b);
  snprintf(detail, FOUND_TEXT, "%.*s", FOUND_TEXT - 1, err.text);
  return 0;
}

/* The folder itself, or the nearest one above it that is there, in which it would be made. */
static int look_cache(char detail[FOUND_TEXT]) {
  cache_place place;
  cache_find(&place);
  char *at = place.folder;
  if (at[0] == '\0') {
    snprintf(detail, FOUND_TEXT, "$GEPOLAB_CACHE is empty, or there is no home folder");
    return 0;
  }
  snprintf(detail, FOUND_TEXT, "%.*s", FOUND_TEXT - 1, at);
  while (access(at, F_OK) != 0 && errno == ENOENT) {
    char *slash = strrchr(at, '/');
    if (slash == NULL || slash == at) break;
    *slash = '\0';
  }
  if (access(at, W_OK | X_OK) == 0) return 1;
  snprintf(detail, FOUND_TEXT, "%.120s cannot be written: %s", at, strerror(errno));
  return 0;
}

/* --- the table --- */

typedef struct place {
  const char *name, *use, *remedy;
  int needed;
  int (*look)(char detail[FOUND_TEXT]);
} place;

static const place places[] = {
    {"gnuplot", "draws figures: plot, report, bias, theory and sim with --figures",
     "install the package gnuplot-nox", 1, look_gnuplot},
    {"font DejaVu Sans", "the figures' letters, whose widths their layout reckons with",
     "install the packages fonts-dejavu-core and fontconfig", 0, look_font},
    {"cache folder", "keeps warmed-up transformers between runs",
     "set GEPOLAB_CACHE to a folder that can be written", 0, look_cache},
    {"MPI", "sweeps over machines under mpirun",
     "install openmpi-bin and libopenmpi-dev and build again; shards work without", 0, look_mpi},
    {"Slurm", "sweeps as an array of jobs: experiments/slurm/sweep.sbatch",
     "nothing to do where there is no cluster with Slurm", 0, look_slurm},
    {"CUDA device", "transformers with backend: cuda",
     "run on a machine with an NVIDIA GPU, built where nvcc is found; the CPU does the same", 0,
     look_cuda},
    {"libgepolab", "the C library for other programs, by pkg-config",
     "make install, or install libgepolab-dev; elsewhere than /usr: set PKG_CONFIG_PATH", 0,
     look_library},
    {"Python package", "gepolab from NumPy, PyTorch and TRL",
     "pip install ./python in the sources, or install python3-gepolab", 0, look_package},
    {"PyTorch", "stands beside gepolab in bench; the loss of trainers", "pip install torch", 0,
     look_torch},
    {"pdflatex", "make paper and make study-paper",
     "install texlive-latex-recommended, texlive-fonts-recommended and lmodern", 0, look_pdflatex},
    {"pdfunite", "make figures, which joins all into one file", "install poppler-utils", 0,
     look_pdfunite},
};

int found_look(found_thing *out, size_t i) {
  if (i >= sizeof places / sizeof *places) return 0;
  const place *p = &places[i];
  *out = (found_thing){
      .name = p->name, .use = p->use, .remedy = p->remedy, .needed = p->needed, .detail = ""};
  out->present = p->look(out->detail);
  return 1;
}
