#include "analysis/figures.h"

#include "analysis/statistics.h"
#include "core/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the axes must hold, and how many points were written. */
typedef struct extent {
  double low, high;
  size_t points;
} extent;

static void write_number(FILE *to, double value) {
  char text[NUMBER_TEXT_SIZE];
  fprintf(to, "\t%s", isfinite(value) ? number_text(value, text) : "");
}

/* Scores of all the cell's runs at the i-th evaluation of the longest one. */
static gl_status write_point(const results *r, const results_cell *c, const results_run *longest,
                             size_t i, double *scores, FILE *to, extent *e, gl_error *err) {
  size_t n = 0;
  for (size_t k = 0; k < c->n; k++) {
    const results_run *run = &r->runs[c->first + k];
    if (run->status != RUN_FAILED && i < run->n_evals &&
        run->evals[i].step == longest->evals[i].step)
      scores[n++] = run->evals[i].eval_score;
  }
  uint64_t entity = (uint64_t)(c - r->cells) << 32 | i | UINT64_C(1) << 63;
  interval v;
  gl_status status = iqm_bootstrap(scores, &n, 1, rng_stream_at(1, RNG_BOOTSTRAP, entity), &v, err);
  if (status != GL_OK) return status;
  fprintf(to, "%zu\t%zu\t%lld", c->group, c->algorithm, (long long)longest->evals[i].step);
  write_number(to, v.value), write_number(to, v.low), write_number(to, v.high);
  fputc('\n', to);
  if (isfinite(v.value)) {
    e->low = fmin(e->low, fmin(v.value, v.low));
    e->high = fmax(e->high, fmax(v.value, v.high));
    e->points++;
  }
  return GL_OK;
}

static gl_status write_data(const results *r, FILE *to, extent *e, gl_error *err) {
  double *scores = calloc(r->n_runs + 1, sizeof *scores);
  if (!scores) return gl_fail_memory(err, "scores");
  fprintf(to, "# group\talgorithm\tstep\tiqm\tlow\thigh\n");
  gl_status status = GL_OK;
  for (size_t c = 0; c < r->n_groups * r->n_algorithms && status == GL_OK; c++) {
    const results_cell *cell = &r->cells[c];
    const results_run *longest = NULL;
    for (size_t k = 0; k < cell->n; k++) {
      const results_run *run = &r->runs[cell->first + k];
      if (!longest || run->n_evals > longest->n_evals) longest = run;
    }
    size_t n = longest ? longest->n_evals : 0;
    /* Every cell keeps its block, so that a block's number says which cell it is. */
    if (n == 0) fprintf(to, "%zu\t%zu\t\t\t\t\n", cell->group, cell->algorithm);
    for (size_t i = 0; i < n && status == GL_OK; i++)
      status = write_point(r, cell, longest, i, scores, to, e, err);
    fputs("\n\n", to);
  }
  free(scores);
  return status;
}

static void write_quoted(const char *text, FILE *to) {
  for (fputc('\'', to); *text; text++) {
    if (*text == '\'') fputc('\'', to);
    if (*text == '_') fputc('\\', to);
    fputc(*text, to);
  }
  fputc('\'', to);
}

static void write_script(const results *r, const extent *e, const figure_scripts *s, FILE *to) {
  double margin = 0.04 * fmax(e->high - e->low, 1e-6);
  fprintf(to, "name = 'eval_score'\npanels = %zu\nalgorithms = %zu\nlow = %.17g\nhigh = %.17g\n",
          r->n_groups, r->n_algorithms, e->low - margin, e->high + margin);
  fprintf(to, "array panel_title[%zu]\narray algorithm_name[%zu]\n", r->n_groups, r->n_algorithms);
  for (size_t g = 0; g < r->n_groups; g++) {
    fprintf(to, "panel_title[%zu] = ", g + 1);
    write_quoted(r->axis_label, to), fputs(".' '.", to), write_quoted(r->groups[g].label, to);
    fputc('\n', to);
  }
  for (size_t a = 0; a < r->n_algorithms; a++) {
    fprintf(to, "algorithm_name[%zu] = ", a + 1);
    write_quoted(r->algorithms[a], to), fputc('\n', to);
  }
  fprintf(to, "%s\n%s", s->style, s->eval_score);
}

static gl_status draw(const char *folder, const char *gnuplot, gl_error *err) {
  pid_t child = fork();
  if (child == 0) {
    if (chdir(folder) == 0) execlp(gnuplot, gnuplot, "eval_score.gp", (char *)NULL);
    _exit(127);
  }
  int code = 0;
  if (child < 0 || waitpid(child, &code, 0) < 0)
    return gl_fail(err, GL_EIO, "%s cannot be started; data and script are in %s", gnuplot, folder);
  if (WIFEXITED(code) && WEXITSTATUS(code) == 0) return GL_OK;
  return gl_fail(err, GL_EIO,
                 "%s is missing or failed on %s/eval_score.gp, which is complete with its data; "
                 "install gnuplot-nox and run gnuplot there",
                 gnuplot, folder);
}

static FILE *create(const char *folder, const char *file, gl_error *err) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, file);
  FILE *f = fopen(path, "w");
  if (!f) gl_fail(err, GL_EIO, "%s cannot be written; check the folder", path);
  return f;
}

static gl_status close_written(FILE *f, const char *folder, gl_error *err) {
  int failed = ferror(f);
  if (fclose(f) != 0 || failed)
    return gl_fail(err, GL_EIO, "writing into %s failed; is the disk full?", folder);
  return GL_OK;
}

gl_status figure_eval_score(const results *r, const char *folder, const char *gnuplot,
                            const figure_scripts *scripts, gl_error *err) {
  extent e = {INFINITY, -INFINITY, 0};
  FILE *f = create(folder, "eval_score.tsv", err);
  if (!f) return GL_EIO;
  gl_status status = write_data(r, f, &e, err), closed = close_written(f, folder, err);
  if (status != GL_OK || closed != GL_OK) return status != GL_OK ? status : closed;
  if (e.points == 0) return gl_fail(err, GL_EINPUT, "the study has no evaluation to draw");
  if (!(f = create(folder, "eval_score.gp", err))) return GL_EIO;
  write_script(r, &e, scripts, f);
  status = close_written(f, folder, err);
  return status == GL_OK ? draw(folder, gnuplot, err) : status;
}
