/* The script of a page, and both of its files put in place. */
#include "analysis/plot/finish.h"

#include "analysis/plot/layout.h"
#include "analysis/plot/text.h"

#include <stdlib.h>

static gl_status write_script(figure_page *p, gl_error *err) {
  char shape[64];
  snprintf(shape, sizeof shape, "plots/%s.gp", p->shape);
  const char *style = p->q->script("plots/style.gp"), *draws = p->q->script(shape);
  file_writer w;
  if (!style || !draws) return gl_fail(err, GL_EINPUT, "the plot script %s is missing", shape);
  gl_status status = page_begin_file(&w, p, ".gp", err);
  if (status != GL_OK) return status;
  fprintf(w.stream, "# gnuplot %s.gp draws %s.pdf, %s.png and %s.svg from %s.tsv\n", p->name,
          p->name, p->name, p->name, p->name);
  fputs("if (!exists('aside')) aside = ''\n", w.stream);
  /* Behind ./ no name begins with what gnuplot takes for a command instead of a file: | or <. */
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

gl_status page_close(figure_page *p, gl_status status, gl_error *err) {
  if (p->variables && fclose(p->variables) != 0 && status == GL_OK)
    status = gl_fail_memory(err, "the script of a figure");
  if (status == GL_OK) status = write_script(p, err);
  if (status == GL_OK)
    status = file_commit(&p->data, err);
  else if (p->data.stream)
    file_abandon(&p->data);
  if (status == GL_OK && p->left_out && p->q->noted)
    p->q->noted(p->q->context, p->name, p->left_out);
  for (size_t i = 0; i < p->n_lines; i++) free(p->lines[i].name);
  for (size_t i = 0; i < p->n_drawn; i++) free(p->drawn[i]);
  for (size_t i = 0; i < p->n_marks; i++) free(p->marks[i].text);
  for (size_t i = 0; i < p->n_kinds; i++) free(p->kinds[i].name);
  free(p->kinds), free(p->lines), free(p->drawn), free(p->marks), free(p->panels),
      free(p->variables_text);
  free(p->left_out), free(p->remark);
  *p = (figure_page){0};
  return status;
}
