#include "experiments/lab/figure.h"

#include "experiments/base/resources.h"
#include "toy/lab/theory.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *embedded(const char *path) {
  for (size_t i = 0; resources_at(i) != NULL; ++i)
    if (strcmp(resources_at(i)->path, path) == 0) return resources_at(i)->data;
  return "";
}

static FILE *create(const lab_figure *f, const char *suffix, gl_error *err) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s.%s", f->folder, f->name, suffix);
  FILE *file = fopen(path, "w");
  if (file == NULL) gl_fail(err, GL_EIO, "%s cannot be written: %s", path, strerror(errno));
  return file;
}

gl_status lab_figure_begin(lab_figure *f, const char *folder, const char *name, gl_error *err) {
  *f = (lab_figure){.folder = folder, .name = name};
  if (mkdir(folder, 0777) != 0 && errno != EEXIST)
    return gl_fail(err, GL_EIO, "the folder %s cannot be made: %s", folder, strerror(errno));
  f->data = create(f, "tsv", err);
  f->script = f->data != NULL ? create(f, "gp", err) : NULL;
  if (f->script == NULL) return GL_EIO;
  fprintf(f->script, "name = '%s'\n", name);
  return GL_OK;
}

void lab_figure_names(lab_figure *f, const char *array, const char *const *names, size_t n) {
  fprintf(f->script, "array %s[%zu]\n", array, n);
  for (size_t i = 0; i < n; ++i) {
    fprintf(f->script, "%s[%zu] = '", array, i + 1);
    for (const char *c = names[i]; *c != '\0'; ++c) {
      if (*c == '\'') fputc('\'', f->script);
      if (*c == '_') fputc('\\', f->script);
      fputc(*c, f->script);
    }
    fputs("'\n", f->script);
  }
}

static gl_status draw(const lab_figure *f, gl_error *err) {
  char script[256];
  snprintf(script, sizeof script, "%s.gp", f->name);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    if (chdir(f->folder) == 0) execlp("gnuplot", "gnuplot", script, (char *)NULL);
    _exit(127);
  }
  int code = 0;
  if (child > 0 && waitpid(child, &code, 0) == child && WIFEXITED(code) && WEXITSTATUS(code) == 0)
    return GL_OK;
  return gl_fail(err, GL_EIO,
                 "gnuplot is missing or failed on %s/%s, which is complete with its data; install "
                 "gnuplot-nox and run gnuplot there",
                 f->folder, script);
}

static int close_file(FILE *f) {
  const int bad = f != NULL && ferror(f);
  return (f != NULL && fclose(f) != 0) || bad;
}

gl_status lab_figure_end(lab_figure *f, const char *shape, gl_status status, gl_error *err) {
  char path[128];
  snprintf(path, sizeof path, "plots/%s.gp", shape);
  if (f->script != NULL)
    fprintf(f->script, "%s\n%s\n%s", embedded("plots/palette.gp"), embedded("plots/lab_style.gp"),
            embedded(path));
  const int bad = close_file(f->data) | close_file(f->script);
  if (status != GL_OK) return status;
  if (bad)
    return gl_fail(err, GL_EIO, "writing %s/%s failed; is the disk full?", f->folder, f->name);
  status = draw(f, err);
  if (status == GL_OK) printf("%s/%s.pdf, .png, .tsv, .gp\n", f->folder, f->name);
  return status;
}

/* --- of a recipe ---------------------------------------------------------------------------------
 */

static gl_status bias_figure(const lab_table *t, const char *folder, const char *shape,
                             gl_error *err) {
  const lab_recipe *r = t->recipe;
  char name[128];
  lab_figure f;
  snprintf(name, sizeof name, "%s_%s", r->name, strncmp(shape, "lab_", 4) == 0 ? shape + 4 : shape);
  const char **rows = calloc(r->n_rows, sizeof *rows);
  if (rows == NULL) return gl_fail_memory(err, "the names of a figure");
  for (size_t i = 0; i < r->n_rows; ++i) rows[i] = r->rows[i].name;
  gl_status status = lab_figure_begin(&f, folder, name, err);
  if (status == GL_OK) {
    lab_table_tsv(t, f.data);
    fprintf(f.script, "rows = %zu\nsizes = %zu\npairs = %zu\n", r->n_rows, r->n_sizes, r->n_pairs);
    lab_figure_names(&f, "row_name", rows, r->n_rows);
    fprintf(f.script, "array size_of[%zu]\n", r->n_sizes);
    for (size_t i = 0; i < r->n_sizes; ++i)
      fprintf(f.script, "size_of[%zu] = %zu\n", i + 1, r->group_size[i]);
  }
  free(rows);
  return lab_figure_end(&f, shape, status, err);
}

/* MSE of every later row over that of the first, a block per row. */
static gl_status map_figure(const lab_table *t, const char *folder, gl_error *err) {
  const lab_recipe *r = t->recipe;
  char name[128];
  lab_figure f;
  snprintf(name, sizeof name, "%s_map", r->name);
  const char **rows = calloc(r->n_rows, sizeof *rows);
  if (rows == NULL) return gl_fail_memory(err, "the names of a figure");
  for (size_t i = 0; i < r->n_rows; ++i) rows[i] = r->rows[i].name;
  gl_status status = lab_figure_begin(&f, folder, name, err);
  if (status == GL_OK) {
    lab_figure_names(&f, "row_name", rows, r->n_rows);
    fprintf(f.script, "rows = %zu\nsizes = %zu\n", r->n_rows, r->n_sizes);
    fprintf(f.script, "array size_of[%zu]\n", r->n_sizes);
    fputs("# size\tgroup_size\tkl_exact\tlog10 mse ratio\tlog10 scaled mse ratio\n", f.data);
    for (size_t i = 0; i < r->n_sizes; ++i)
      fprintf(f.script, "size_of[%zu] = %zu\n", i + 1, r->group_size[i]);
    for (size_t row = 1; row < r->n_rows; ++row, fputs("\n\n", f.data))
      for (size_t s = 0; s < r->n_sizes; ++s, fputc('\n', f.data))
        for (size_t k = 0; k < r->n_pairs; ++k) {
          const lab_result *m = t->results + (k * r->n_sizes + s) * r->n_rows;
          fprintf(f.data, "%zu\t%zu\t%.9g\t%.9g\t%.9g\n", s + 1, r->group_size[s], m->kl,
                  log10(m[row].numbers.mse / m->numbers.mse),
                  log10(m[row].numbers.scaled_mse / m->numbers.scaled_mse));
        }
  }
  free(rows);
  return lab_figure_end(&f, "lab_map", status, err);
}

gl_status lab_bias_figures(const lab_table *t, const char *folder, gl_error *err) {
  const lab_recipe *r = t->recipe;
  if (!isnan(r->pairs[0].staleness)) return bias_figure(t, folder, "lab_staleness", err);
  if (r->n_pairs < 2)
    return gl_fail(err, GL_EINPUT, "figures need a dial with at least two values of KL");
  gl_status status = bias_figure(t, folder, "lab_curves", err);
  if (status == GL_OK) status = bias_figure(t, folder, "lab_plane", err);
  if (status == GL_OK && r->n_sizes > 1 && r->n_rows > 1) status = map_figure(t, folder, err);
  return status;
}

gl_status lab_training_figure(const lab_curves *c, const char *folder, gl_error *err) {
  const lab_recipe *r = c->recipe;
  lab_figure f;
  const char **rows = calloc(r->n_rows, sizeof *rows);
  if (rows == NULL) return gl_fail_memory(err, "the names of a figure");
  for (size_t i = 0; i < r->n_rows; ++i) rows[i] = r->rows[i].name;
  gl_status status = lab_figure_begin(&f, folder, r->name, err);
  if (status == GL_OK) {
    lab_curves_tsv(c, f.data);
    fprintf(f.script, "rows = %zu\n", r->n_rows);
    lab_figure_names(&f, "row_name", rows, r->n_rows);
  }
  free(rows);
  return lab_figure_end(&f, "lab_training", status, err);
}

/* --- of the theorems -----------------------------------------------------------------------------
 */

static void weight_line(FILE *to, double a, double b, const lab_weights_stats *s) {
  fprintf(to, "%.6g\t%.6g\t%.9g\t%.9g\t%.9g\t%.9g\n", a, b, s->kl, s->variance_pq,
          s->variance[LAB_EXPECTED], s->variance[LAB_COMPUTED]);
}

static void write_weights(FILE *to) {
  enum { GRID = 80, LINE = 200 };
  lab_weights_stats s;
  fputs("# p\tq\tkl\tvariance_pq\tvariance_expected\tvariance_computed (Bernoulli)\n", to);
  for (int i = 0; i < GRID; ++i) {
    for (int j = 0; j < GRID; ++j) {
      const double a = (i + 0.5) / GRID, b = (j + 0.5) / GRID;
      lab_theory_bernoulli(a, b, &s);
      weight_line(to, a, b, &s);
    }
    fputc('\n', to);
  }
  fputs("\n# the same for unit normals: distance, 0\n", to);
  for (int i = 0; i <= LINE; ++i) {
    lab_theory_gaussian(1.6 * i / LINE, &s);
    weight_line(to, 1.6 * i / LINE, 0, &s);
  }
}

static void write_constants(FILE *to) {
  fputs("# outcomes\ttheorem\texpected\tcomputed\n", to);
  for (double n = 2; n < 2e9; n = fmax(n + 1, floor(n * 1.5)))
    fprintf(to, "%.17g\t%.17g\t%.9g\t%.9g\n", n, n * n + 1,
            lab_theory_smallest_constant(n, LAB_EXPECTED, NULL),
            lab_theory_smallest_constant(n, LAB_COMPUTED, NULL));
}

gl_status lab_theory_figures(const char *folder, gl_error *err) {
  lab_figure f;
  gl_status status = lab_figure_begin(&f, folder, "weight_variance", err);
  if (status == GL_OK) {
    double d2, kl[LAB_CONSTANTS];
    write_weights(f.data);
    for (int k = 0; k < LAB_CONSTANTS && status == GL_OK; ++k)
      status = lab_theory_gaussian_crossing((lab_constant)k, &d2, &kl[k], err);
    fprintf(f.script, "crossing_expected = %.9g\ncrossing_computed = %.9g\n", kl[LAB_EXPECTED],
            kl[LAB_COMPUTED]);
  }
  status = lab_figure_end(&f, "lab_weights", status, err);
  if (status != GL_OK) return status;
  status = lab_figure_begin(&f, folder, "theorem1_constant", err);
  if (status == GL_OK) write_constants(f.data);
  return lab_figure_end(&f, "lab_constants", status, err);
}
