/* Inspects the machine, and runs a short test of the program: compares results with exactly known
 * ones, then measures speeds. */
#include "experiments/doctor/doctor.h"
#include "experiments/base/memory.h"

#include "core/policy/policy.h"
#include "experiments/base/program.h"
#include "experiments/bench/bench.h"
#include "experiments/lab/table.h"
#include "experiments/recipe/recipe.h"
#include "experiments/train/train.h"
#include "llm/backend/open/open.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- programs, libraries and devices --- */

/* Maximum seconds for a program to print its version. */
#define PATIENCE_S 5.0

/* --- other programs --- */

/* Runs a program and stores the first line of its output; returns 0, with the reason, if that
 * fails. */
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

static int detect_gnuplot(char detail[FOUND_TEXT]) {
  char ignored[FOUND_TEXT];
  if (!FIRST_LINE(detail, "gnuplot", "--version")) return 0;
  if (FIRST_LINE(ignored, "gnuplot", "-e",
                 "set terminal pdfcairo; set terminal pngcairo; set terminal svg"))
    return 1;
  const size_t used = strlen(detail);
  snprintf(detail + used, FOUND_TEXT - used, " without the terminals pdfcairo, pngcairo and svg");
  return 0;
}

/* fc-match prints the best available font, even if it is not the requested one. */
static int detect_font(char detail[FOUND_TEXT]) {
  static const char wanted[] = "DejaVu Sans";
  if (!FIRST_LINE(detail, "fc-match", "--format=%{family[0]}", wanted)) return 0;
  if (strcmp(detail, wanted) == 0) return 1;
  char other[64];
  snprintf(other, sizeof other, "%.60s", detail);
  snprintf(detail, FOUND_TEXT, "%s would be used in its place", other);
  return 0;
}

static int detect_pdflatex(char detail[FOUND_TEXT]) {
  return FIRST_LINE(detail, "pdflatex", "--version");
}

/* pdfunite prints its version on standard error, which is not read here. */
static int detect_pdfunite(char detail[FOUND_TEXT]) {
  if (!FIRST_LINE(detail, "pdfunite", "-v")) return 0;
  if (detail[0] == '\0') snprintf(detail, FOUND_TEXT, "found");
  return 1;
}

static int detect_mpi(char detail[FOUND_TEXT]) {
#ifdef GEPOLAB_WITH_MPI
  return FIRST_LINE(detail, "mpirun", "--version");
#else
  snprintf(detail, FOUND_TEXT, "this gepolab was built without MPI");
  return 0;
#endif
}

static int detect_slurm(char detail[FOUND_TEXT]) {
  return FIRST_LINE(detail, "sbatch", "--version");
}

static int detect_library(char detail[FOUND_TEXT]) {
  if (!FIRST_LINE(detail, "pkg-config", "--version")) return 0;
  if (FIRST_LINE(detail, "pkg-config", "--modversion", "gepolab")) return 1;
  snprintf(detail, FOUND_TEXT, "pkg-config finds no gepolab.pc");
  return 0;
}

/* --- Python --- */

/* The interpreter that `gepolab bench` also uses. */
static const char *python(void) {
  const char *named = getenv("GEPOLAB_PYTHON");
  return named != NULL && named[0] != '\0' ? named : "python3";
}

/* Imports the package, because it looks for libgepolab on import. */
static int detect_package(char detail[FOUND_TEXT]) {
  if (!FIRST_LINE(detail, python(), "--version")) return 0;
  if (FIRST_LINE(detail, python(), "-c", "import gepolab; print(gepolab.__version__)")) return 1;
  snprintf(detail, FOUND_TEXT, "%.60s has no package gepolab, or it finds no libgepolab", python());
  return 0;
}

/* Asks only for PyTorch's version, because importing it takes seconds. */
static int detect_torch(char detail[FOUND_TEXT]) {
  if (FIRST_LINE(detail, python(), "-c",
                 "import importlib.metadata as m; print(m.version('torch'))"))
    return 1;
  snprintf(detail, FOUND_TEXT, "%.60s has no package torch", python());
  return 0;
}

/* --- this machine --- */

static int detect_cuda(char detail[FOUND_TEXT]) {
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

/* Checks the folder, or its nearest existing parent, in which it would be made. */
static int detect_cache(char detail[FOUND_TEXT]) {
  cache_place place;
  cache_find(&place);
  char *at = place.folder;
  if (at[0] == '\0') {
    snprintf(detail, FOUND_TEXT,
             "$GEPOLAB_CACHE is empty, or there is no home folder or build identifier");
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
     "install the package gnuplot-nox", 1, detect_gnuplot},
    {"font DejaVu Sans", "the figures' letters, whose widths their layout reckons with",
     "install the packages fonts-dejavu-core and fontconfig", 0, detect_font},
    {"cache folder", "keeps warmed-up transformers between runs",
     "set GEPOLAB_CACHE to a folder that can be written", 0, detect_cache},
    {"MPI", "sweeps over machines under mpirun",
     "install openmpi-bin and libopenmpi-dev and build again; shards work without", 0, detect_mpi},
    {"Slurm", "sweeps as an array of jobs: experiments/slurm/sweep.sbatch",
     "nothing to do where there is no cluster with Slurm", 0, detect_slurm},
    {"CUDA device", "transformers with backend: cuda",
     "run on a machine with an NVIDIA GPU, built where nvcc is found; the CPU does the same", 0,
     detect_cuda},
    {"libgepolab", "the C library for other programs, by pkg-config",
     "make install, or install libgepolab-dev; elsewhere than /usr: set PKG_CONFIG_PATH", 0,
     detect_library},
    {"Python package", "gepolab from NumPy, PyTorch and TRL",
     "pip install ./python in the sources, or install python3-gepolab", 0, detect_package},
    {"PyTorch", "compared with gepolab in bench; the loss of trainers", "pip install torch", 0,
     detect_torch},
    {"pdflatex", "make paper and make study-paper",
     "install texlive-latex-recommended, texlive-fonts-recommended and lmodern", 0,
     detect_pdflatex},
    {"pdfunite", "make figures, which joins all into one file", "install poppler-utils", 0,
     detect_pdfunite},
};

int detect_one(found_thing *out, size_t i) {
  if (i >= sizeof places / sizeof *places) return 0;
  const place *p = &places[i];
  *out = (found_thing){
      .name = p->name, .use = p->use, .remedy = p->remedy, .needed = p->needed, .detail = ""};
  out->present = p->look(out->detail);
  return 1;
}

/* --- the self-test --- */

/* --- coefficients are the loss's derivatives --- */

enum { RESPONSES = 4, TOKENS = 7 };

static const size_t group_start[] = {0, RESPONSES}, token_start[] = {0, 2, 3, 5, 7};
static const double reward[RESPONSES] = {1, 0, 0.5, 0},
                    logq[TOKENS] = {-1.2, -0.4, -1.8, -0.7, -0.3, -2.1, -0.9},
                    at[TOKENS] = {-1.15, -0.45, -1.75, -0.72, -0.31, -2.0, -0.95};

/* Evaluates the algorithm on a fixed group with these log-probabilities. */
static gl_status loss_at(const policy_algorithm *algorithm, const double *logp, policy_output *out,
                         policy_workspace *w, gl_error *err) {
  const policy_input in = {.n_groups = 1,
                           .n_responses = RESPONSES,
                           .n_tokens = TOKENS,
                           .group_start = group_start,
                           .token_start = token_start,
                           .reward = reward,
                           .logp = logp,
                           .logq = logq,
                           .max_length = 2};
  out->skip_metrics = 1;
  return policy_evaluate(algorithm, &in, out, w, err);
}

/* The maximum difference between a coefficient and the central difference of the loss. */
static gl_status largest_error(const char *name, policy_workspace *w, double *error,
                               gl_error *err) {
  const double h = 1e-5;
  const policy_algorithm *algorithm = policy_algorithms_find(name);
  double coefficient[TOKENS], logp[TOKENS];
  policy_output out = {.coefficient = coefficient}, up = {0}, down = {0};
  gl_status status = loss_at(algorithm, at, &out, w, err);
  for (size_t t = 0; t < TOKENS && status == GL_OK; ++t) {
    memcpy(logp, at, sizeof logp);
    logp[t] = at[t] + h;
    status = loss_at(algorithm, logp, &up, w, err);
    logp[t] = at[t] - h;
    if (status == GL_OK) status = loss_at(algorithm, logp, &down, w, err);
    *error = fmax(*error, fabs((up.loss - down.loss) / (2 * h) + coefficient[t]));
  }
  return status;
}

/* Checks algorithms whose coefficients are derivatives of the loss that they return. */
static gl_status check_coefficients(self_check *c, gl_error *err) {
  static const char *const rows[] = {"is", "grpo", "gspo"};
  double error = 0;
  policy_workspace *w = must_have(policy_workspace_new(), "a workspace");
  gl_status status = GL_OK;
  for (size_t i = 0; i < 3 && status == GL_OK; ++i) status = largest_error(rows[i], w, &error, err);
  policy_workspace_free(w);
  c->passed = error < 1e-8;
  snprintf(c->detail, sizeof c->detail,
           "of is, grpo and gspo against differences of the loss: %.1e apart", error);
  return status;
}

/* --- importance sampling is unbiased --- */

static gl_status check_laboratory(self_check *c, gl_error *err) {
  cfg_doc *doc = NULL;
  lab_recipe r = {0};
  lab_table t = {0};
  gl_status status = recipe_load(&doc, "four_arms", NULL, 0, err);
  if (status == GL_OK) status = lab_recipe_read(&r, doc, err);
  if (status == GL_OK) status = lab_table_init(&t, &r, 1, PROGRESS_SILENT, err);
  if (status == GL_OK) {
    const double bias = t.results[0].numbers.bias;
    c->passed = strcmp(r.algorithms[0].name, "is") == 0 && bias < 1e-12;
    snprintf(c->detail, sizeof c->detail,
             "importance sampling on four arms has no bias: %.1e, enumerated", bias);
  }
  lab_table_fini(&t);
  lab_recipe_fini(&r);
  cfg_free(doc);
  return status;
}

/* --- a run learns, and learns the same again --- */

static gl_status self_test_train(run_result *out, gl_error *err) {
  static const char *const overrides[] = {"steps=150"};
  const train_options quiet = {0};
  cfg_doc *doc = NULL;
  recipe r = {0};
  *out = (run_result){.n_steps = 0};
  gl_status status = recipe_load(&doc, "quickstart", overrides, 1, err);
  if (status == GL_OK) status = recipe_read(&r, doc, err);
  r.threads = 1;
  if (status == GL_OK) status = train_run(out, &r, &quiet, err);
  cfg_free(doc);
  return status;
}

static gl_status check_training(self_check *c, gl_error *err) {
  run_result one, other = {.n_steps = 0};
  gl_status status = self_test_train(&one, err);
  if (status == GL_OK) status = self_test_train(&other, err);
  if (status == GL_OK) {
    const run_scores a = run_result_scores(&one), b = run_result_scores(&other);
    c->passed = a.last > a.eval_first + 0.1 && a.last == b.last;
    snprintf(c->detail, sizeof c->detail, "quickstart goes from %.3f to %.3f, and to %.3f again",
             a.eval_first, a.last, b.last);
  }
  run_result_fini(&one);
  run_result_fini(&other);
  return status;
}

/* --- all together --- */

typedef struct named_check {
  const char *name;
  gl_status (*run)(self_check *c, gl_error *err);
} named_check;

static const named_check checks[] = {{"coefficients", check_coefficients},
                                     {"laboratory", check_laboratory},
                                     {"training", check_training}};

static void self_test_run_check(self_test *t, const named_check *named) {
  gl_error err = {.status = GL_OK};
  self_check *c = &t->checks[t->n_checks++];
  *c = (self_check){.name = named->name};
  if (named->run(c, &err) == GL_OK) return;
  c->passed = 0;
  snprintf(c->detail, sizeof c->detail, "%.*s", SELF_TEST_TEXT - 1, err.text);
}

static gl_status run_once(void *self, gl_error *err) {
  run_result *out = self;
  gl_status status = self_test_train(out, err);
  run_result_fini(out);
  return status;
}

static gl_status time_training(bench *b, gl_error *err) {
  run_result out;
  bench_number *number = NULL;
  return bench_measure(
      b, &number,
      (bench_row){"updates_per_s", "updates a second of a toy learner", 150, run_once, &out}, 0.2,
      err);
}

/* Runs the parts of `gepolab bench` that take a second or two. */
static void self_test_measure(self_test *t) {
  static gl_status (*const parts[])(bench * b, gl_error * err) = {time_training, bench_policy,
                                                                  bench_lab, bench_llm};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i) {
    gl_error err = {.status = GL_OK};
    if (parts[i](&t->speeds, &err) == GL_OK) continue;
    self_check *c = &t->checks[t->n_checks++];
    *c = (self_check){.name = "speeds"};
    snprintf(c->detail, sizeof c->detail, "%.*s", SELF_TEST_TEXT - 1, err.text);
    return;
  }
}

void self_test_run(self_test *t) {
  const double begun = seconds_now();
  *t = (self_test){
      .speeds = {.shape = "64x2", .quick = 1, .takes_busy = 1, .end = begun + SELF_TEST_SECONDS}};
  for (size_t i = 0; i < sizeof checks / sizeof *checks; ++i) self_test_run_check(t, &checks[i]);
  self_test_measure(t);
  t->seconds = seconds_now() - begun;
}

int self_test_passed(const self_test *t) {
  for (size_t i = 0; i < t->n_checks; ++i)
    if (!t->checks[i].passed) return 0;
  return 1;
}
