/* From a grid to its cells: what they are, and stopping on the way. */
#include "experiments/sweep/sweep_cells.h"

#include "tests/support/suite.h"

#include <string.h>

static const char recipe[] =
    "name: grid\nsteps: 2\neval_every: 1\nworld: {kind: bandit}\ntrain: {groups: 1, group_size: "
    "2}\n"
    "sweep: {algorithm: [grpo, gepo], train.epochs: [1, 2], seed: [1, 2, 3]}\n";

static cfg_doc *loaded(const char *text, sweep_grid *grid) {
  cfg_doc *doc = NULL;
  gl_error err = {0};
  gl_status status = cfg_load_text(&doc, text, strlen(text), "cells", &err);
  if (status == GL_OK) status = sweep_grid_read(grid, doc, &err);
  if (status != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_EQUAL_FATAL(status, GL_OK);
  return doc;
}

typedef struct watch {
  size_t calls, last, total, stop_at;
} watch;

static int see(void *self, size_t done, size_t total) {
  watch *w = self;
  ++w->calls;
  w->last = done;
  w->total = total;
  return done >= w->stop_at;
}

static void listing_cells_is_watched_and_ends_when_asked(void) {
  sweep_grid grid;
  sweep_cells cells;
  gl_error err = {0};
  cfg_doc *doc = loaded(recipe, &grid);
  watch w = {.stop_at = 100};
  sweep_expansion how = {.check = 1, .tick = see, .self = &w};
  CU_ASSERT_EQUAL(sweep_expand(&cells, doc, &grid, &how, &err), GL_OK);
  CU_ASSERT_EQUAL(cells.n_cells, 12);
  CU_ASSERT(w.calls > 0 && w.last < 12);
  CU_ASSERT_EQUAL(w.total, 12);
  sweep_cells_fini(&cells);
  gl_error_clear(&err);
  w = (watch){.stop_at = 0};
  CU_ASSERT_EQUAL(sweep_expand(&cells, doc, &grid, &how, &err), GL_EINTERRUPTED);
  CU_ASSERT_EQUAL(w.calls, 1);
  CU_ASSERT_PTR_NULL(cells.cells);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "nothing was run"));
  cfg_free(doc);
}

SUITE(sweep_cells_, "cli: sweep cells", TEST(listing_cells_is_watched_and_ends_when_asked));
