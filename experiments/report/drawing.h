/* Figures drawn for one page: made in a folder that goes away with them. */
#ifndef GEPOLAB_EXPERIMENTS_REPORT_DRAWING_H
#define GEPOLAB_EXPERIMENTS_REPORT_DRAWING_H

#include "analysis/plot/figure.h"
#include "core/base/error.h"
#include "experiments/report/html.h"
#include "experiments/report/report.h"

enum { DRAWING_MOST = 32 };

typedef struct drawing_figure {
  char *name;     /* of its files, without ending */
  char *left_out; /* what it does not show; NULL: nothing */
} drawing_figure;

/* Hands figures_draw() or lab_figures_draw() what it needs and keeps what these tell. */
typedef struct drawing_folder {
  figure_request request;
  char path[256]; /* "" before drawing_init() */
  drawing_figure figures[DRAWING_MOST];
  size_t n;
  int failed; /* memory was short */
} drawing_folder;

/* Makes an empty folder where temporary files belong ($TMPDIR, else /tmp); f must stay where it is
 * until drawing_fini(), which removes the folder with all that was drawn. GL_EIO. */
gl_status drawing_init(drawing_folder *f, const report_request *q, gl_error *err);
void drawing_fini(drawing_folder *f);

/* What a figure shows, as the page's caption. NULL: the figure has no part in the page. */
typedef const char *drawing_caption(const char *name);

/* Writes each figure that was drawn as <figure>; their ids begin with id. */
gl_status drawing_write(html *h, const drawing_folder *f, const char *id, drawing_caption *caption,
                        gl_error *err);

#endif
