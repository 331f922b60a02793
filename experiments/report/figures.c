/* The section `figures`: every figure that the study has data for. */
#include "analysis/figures/figures.h"

#include "experiments/report/drawing.h"
#include "experiments/report/study_internal.h"

#include <string.h>

static const char *caption(const char *name) {
  for (size_t i = 0; figures_at(i) != NULL; ++i)
    if (strcmp(figures_at(i)->name, name) == 0) return figures_at(i)->shows;
  return NULL;
}

int has_figures(const report_study *t) {
  return has_runs(t) && !t->q->no_figures;
}

gl_status section_figures(html *h, const report_study *t, gl_error *err) {
  drawing_folder f;
  gl_error why = {.status = GL_OK};
  gl_status status = drawing_init(&f, t->q, err);
  if (status != GL_OK) return status;
  status = figures_draw(t->r, NULL, &f.request, &why);
  if (status == GL_OK) {
    html_markup(h, "<p>Points are interquartile means over seeds, bars and bands their 95&#160;% "
                   "bootstrap intervals. An algorithm keeps its colour, dash and point.</p>\n");
    status = drawing_write(h, &f, t->id, caption, err);
  } else if (status == GL_EINPUT) { /* there are data for none of them */
    html_markup(h, "<p>");
    html_textf(h, "None: %s.", why.text);
    html_markup(h, "</p>\n");
    status = GL_OK;
  } else {
    status = gl_fail(err, status, "%s; or leave the figures out with --no-figures", why.text);
  }
  drawing_fini(&f);
  return status;
}
