/* Tells which files were drawn, which figures lack their data, and what a figure leaves out. */
#include "experiments/cli/tell_figures.h"

#include "analysis/plot/layout.h"
#include "core/base/shown.h"
#include "experiments/base/resources.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* context is the folder, as a pointer that is not written through. */
static void figures_told(void *context, const char *file, const char *why) {
  const char *folder = context;
  const size_t length = strlen(folder);
  const char *between = length > 0 && folder[length - 1] == '/' ? "" : "/";
  if (why == NULL)
    printf("%s%s%s.pdf, .png, .svg, .tsv, .gp\n", shown(folder).text, between, shown(file).text);
  else
    printf("no %s: %s\n", shown(file).text, why);
}

static void figures_noted(void *context, const char *file, const char *left_out) {
  (void)context;
  fprintf(stderr, "gepolab: note: the figure %s does not show ", shown(file).text);
  shown_write(left_out, strlen(left_out), stderr);
  fputc('\n', stderr);
}

figure_request tell_figures(const char *folder) {
  return (figure_request){.folder = folder,
                          .script = resources_text,
                          .told = figures_told,
                          .noted = figures_noted,
                          .context = (void *)(uintptr_t)folder};
}

gl_status tell_figures_form(figure_request *q, const figure_form *form, gl_error *err) {
  q->highlight = form->highlight;
  return form->width != NULL ? figure_width(form->width, &q->width_cm, err) : GL_OK;
}
