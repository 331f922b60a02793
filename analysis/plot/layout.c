/* Lays a page out. */
#include "analysis/plot/layout_internal.h"

#include "core/config/config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- widths by name --- */

static const struct {
  const char *name;
  double cm;
} widths[] = {{"neurips", FIGURE_WIDTH_CM}, {"icml", 8.255}, {"a4", 16}};
enum { WIDTHS = sizeof widths / sizeof *widths };
static const double NARROWEST = 6, WIDEST = 100;

gl_status figure_width(const char *text, double *cm, gl_error *err) {
  const char *names[WIDTHS];
  char hint[CFG_HINT_SIZE], *end;
  for (size_t i = 0; i < WIDTHS; i++) {
    names[i] = widths[i].name;
    if (strcmp(text, widths[i].name) != 0) continue;
    *cm = widths[i].cm;
    return GL_OK;
  }
  *cm = strtod(text, &end);
  if (end == text || *end)
    return gl_fail(err, GL_EINPUT,
                   "the width '%.40s' is neither neurips, icml, a4 nor a number of centimetres%s",
                   text, cfg_hint(text, names, WIDTHS, hint));
  if (!(*cm >= NARROWEST && *cm <= WIDEST))
    return gl_fail(err, GL_EINPUT, "a figure is %g to %g cm wide, not %.40s", NARROWEST, WIDEST,
                   text);
  return GL_OK;
}

/* --- the page --- */

gl_status layout_write(figure_page *p, FILE *to, gl_error *err) {
  layout l = {.p = p, .to = to, .width = page_width(p)};
  assert(p->n_panels > 0);
  l.places = calloc(p->n_panels, sizeof *l.places);
  gl_status status = l.places ? GL_OK : gl_fail_memory(err, "the layout of a figure");
  if (status == GL_OK) status = layout_choose_panels(&l, err);
  if (status == GL_OK) status = layout_choose_lines(p, err);
  if (status == GL_OK) status = layout_choose_colours(p, err);
  if (status == GL_OK) {
    layout_set_ranges(p);
    layout_set_columns(&l);
    layout_set_rows(&l);
    layout_set_legend(&l);
    layout_write_all(&l);
  }
  free(l.places);
  return status;
}
