/* Writes the gnuplot script of a figure and its notes when its page is closed. */
#include "analysis/plot/layout.h"
#include "analysis/plot/page.h"
#include "analysis/plot/text.h"
#include "core/base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static gl_status write_script(figure_page *p, gl_error *err) {
  char shape[64];
  snprintf(shape, sizeof shape, "plots/%s.gp", p->shape);
  const char *style = p->q->script("plots/page.gp"), *draws = p->q->script(shape);
  file_writer w;
  if (!style || !draws) return gl_fail(err, GL_EINPUT, "the plot script %s is missing", shape);
  gl_status status = page_begin_file(&w, p, ".gp", err);
  if (status != GL_OK) return status;
  fprintf(w.stream, "# gnuplot -d %s.gp draws %s.pdf, %s.png and %s.svg from %s.tsv\n", p->name,
          p->name, p->name, p->name, p->name);
  fputs("if (!exists('aside')) aside = ''\n", w.stream);
  /* The prefix ./ prevents a file name from starting with | or <, which gnuplot would execute as a
   * command. */
  fputs("name = './'.", w.stream), page_write_name(p->name, w.stream), fputc('\n', w.stream);
  fprintf(w.stream, "formats = '%s'\nfont = '%s'\npoints = %g\n",
          p->q->formats ? p->q->formats : "pdf png svg", FIGURE_FONT, FIGURE_POINTS);
  status = layout_write(p, w.stream, err);
  if (status != GL_OK) {
    file_abandon(&w);
    return status;
  }
  fwrite(p->variables_text, 1, p->variables_size, w.stream);
  fprintf(w.stream, "\n%s\n%s", style, draws);
  return file_commit(&w, err);
}

/* Writes NAME.txt: what the figure omits or says and does not show. Without such notes an older
 * file is removed. */
static gl_status write_notes(const figure_page *p, gl_error *err) {
  file_writer w;
  const char *left_out = p->q->no_notes ? p->left_out : NULL;
  gl_status status = page_begin_file(&w, p, ".txt", err);
  if (status != GL_OK) return status;
  if (!p->absent && !left_out && !(p->q->no_notes && p->remark)) {
    char *path = strdup(w.path);
    file_abandon(&w);
    if (path) unlink(path);
    free(path);
    return GL_OK;
  }
  if (left_out) fprintf(w.stream, "not shown: %s\n", left_out);
  if (p->absent) fprintf(w.stream, "not in the data: %s\n", p->absent);
  if (p->q->no_notes && p->remark) fprintf(w.stream, "%s\n", p->remark);
  return file_commit(&w, err);
}

/* Reports what the figure omits, or has no data for. */
static void report_notes(const figure_page *p) {
  char *all = NULL;
  size_t size = 0;
  if (!p->q->noted || (!p->left_out && !p->absent)) return;
  FILE *to = open_memstream(&all, &size);
  if (!to) return;
  fprintf(to, "%s%s%s", p->left_out ? p->left_out : "", p->left_out && p->absent ? "; " : "",
          p->absent ? p->absent : "");
  if (fclose(to) == 0 && all) p->q->noted(p->q->context, p->name, all);
  free(all);
}

gl_status page_close(figure_page *p, gl_status status, gl_error *err) {
  if (p->variables && fclose(p->variables) != 0 && status == GL_OK)
    status = gl_fail_memory(err, "the script of a figure");
  if (status == GL_OK) status = write_script(p, err);
  if (status == GL_OK) status = write_notes(p, err);
  if (status == GL_OK)
    status = file_commit(&p->data, err);
  else if (p->data.stream)
    file_abandon(&p->data);
  if (status == GL_OK) report_notes(p);
  if (status == GL_OK && p->q->described) p->q->described(p->q->context, p);
  free(p->drawn), free(p->marks), free(p->variables_text);
  free(p->left_out), free(p->absent), free(p->remark);
  arena_fini(&p->memory);
  *p = (figure_page){0};
  return status;
}
