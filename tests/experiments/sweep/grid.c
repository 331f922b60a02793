/* From a grid to its cells: what they are, against recipes made one by one, and stopping on the
 * way. */
#include "experiments/sweep/grid.h"

#include "core/base/hash.h"
#include "core/config/fields.h"
#include "experiments/recipe/designs.h"
#include "experiments/recipe/recipe.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("cli: sweep cells");

#define BASE                                                                                       \
  "name: grid\nsteps: 2\neval_every: 1\ndescription: none\nworld: {kind: bandit}\n"                \
  "train: {groups: 1, group_size: 2}\n"

static cfg_doc *loaded(const char *text, const char *override, sweep_grid *grid, gl_error *err) {
  cfg_doc *doc = NULL;
  gl_status status = cfg_load_text(&doc, text, strlen(text), "cells", err);
  if (status == GL_OK && override != NULL) status = cfg_override(doc, override, err);
  if (status == GL_OK) status = cfg_resolve(doc, err);
  if (status == GL_OK) status = random_search_draw(doc, err);
  if (status == GL_OK) status = sweep_grid_read(grid, doc, err);
  if (status == GL_OK) return doc;
  cfg_free(doc);
  return NULL;
}

static cfg_doc *grid_of(const char *text, sweep_grid *grid) {
  gl_error err = {0};
  cfg_doc *doc = loaded(text, NULL, grid, &err);
  if (doc == NULL) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_PTR_NOT_NULL_FATAL(doc);
  return doc;
}

/* --- cells against recipes made one by one --- */

/* The values of a cell, the first axis slowest; those of a random search are maps. */
static cfg_doc *made_by_hand(const cfg_doc *doc, const sweep_grid *grid, size_t ordinal) {
  cfg_doc *one = NULL;
  CU_ASSERT_FATAL(cfg_copy(&one, doc, NULL) == GL_OK);
  for (size_t i = 0; i < 4; ++i)
    cfg_remove(one, (const char *const[]){"sweep", "tune", "description", "checkpoint"}[i]);
  size_t at[SWEEP_MAX_AXES];
  for (size_t i = grid->n_axes; i-- > 0; ordinal /= cfg_size(grid->axes[i].values))
    at[i] = ordinal % cfg_size(grid->axes[i].values);
  for (size_t i = 0; i < grid->n_axes; ++i) {
    const cfg_node *value = cfg_at(grid->axes[i].values, at[i]);
    const int is_search = strcmp(grid->axes[i].path, "random") == 0;
    for (size_t k = 0; k < (is_search ? cfg_size(value) : 1); ++k)
      CU_ASSERT_FATAL(cfg_set(one, is_search ? cfg_key_at(value, k) : grid->axes[i].path,
                              is_search ? cfg_at(value, k) : value, NULL) == GL_OK);
  }
  return one;
}

static void check_key(const char *key, const cfg_doc *doc) {
  char *text = cfg_canonical(cfg_root(doc)), hex[HASH_HEX_SIZE];
  char *identity = malloc(strlen(text) + 48);
  const int n = sprintf(identity, "meaning %d: %s", RECIPE_MEANING, text);
  hash_hex(identity, (size_t)n, hex);
  CU_ASSERT_STRING_EQUAL(key, hex);
  free(identity);
  free(text);
}

static void check_cells(const char *text, size_t n, const char *last_swept) {
  sweep_grid grid;
  sweep_cells cells;
  gl_error err = {0};
  cfg_doc *doc = grid_of(text, &grid);
  const sweep_expansion how = {.check = 1};
  gl_status status = sweep_expand(&cells, doc, &grid, &how, &err);
  if (status != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_FATAL(status == GL_OK);
  CU_ASSERT_EQUAL_FATAL(cells.n_cells, n);
  for (size_t i = 0; i < n; ++i) {
    const sweep_cell *cell = &cells.cells[i];
    cfg_doc *one = made_by_hand(doc, &grid, i);
    recipe r;
    char *canonical = cfg_canonical(cfg_root(one));
    CU_ASSERT_STRING_EQUAL(cell->recipe, canonical);
    check_key(cell->key, one);
    CU_ASSERT_EQUAL_FATAL(recipe_read(&r, one, NULL), GL_OK);
    CU_ASSERT(cell->ordinal == i && cell->seed == r.seed && cell->steps == r.steps);
    CU_ASSERT(cell->lr == recipe_lr(&r) && cell->is_llm == 0 && cell->chosen == NULL);
    free(canonical);
    cfg_free(one);
  }
  CU_ASSERT_STRING_EQUAL(cells.cells[n - 1].swept, last_swept);
  sweep_cells_fini(&cells);
  cfg_free(doc);
}

TEST(cells_are_the_recipes_one_would_write_by_hand) {
  check_cells(BASE "sweep: {seed: [3, 1, 2]}", 3, "{}");
  check_cells(BASE "sweep: {algorithm: [grpo, {base: gepo, clip: none}], train.epochs: [1, 2], "
                   "seed: [1, 2, 3]}",
              12, "{\"train.epochs\":2}");
  check_cells(BASE
              "algorithm: gepo\nsweep: {seed: [1, 2], algorithm.cap: [1, 2.50], steps: [2, 3], "
              "optimizer.lr: [1e-1, 0.2], world.arms: [2, 3]}",
              32, "{\"algorithm.cap\":2.5,\"optimizer.lr\":0.2,\"steps\":3,\"world.arms\":3}");
  check_cells(BASE
              "sweep: {cluster: [{preset: sync}, {preset: areal}], seed: {from: 1, to: 2, n: 2}}",
              4, "{\"cluster\":{\"preset\":\"areal\"}}");
  check_cells(
      BASE "sweep: {random: {draws: 5, seed: 3, fields: {optimizer.lr: {distribution: log_uniform, "
           "from: 1e-4, to: 1}, train.group_size: [2, 4]}}, algorithm: [grpo, gepo]}",
      10, "{\"optimizer.lr\":0.4615,\"train.group_size\":2}");
}

/* One field inside another: the section is set first, whichever axis comes first. */
TEST(an_axis_inside_another_changes_what_that_one_set) {
  check_cells(BASE "sweep: {algorithm: [grpo, gepo], algorithm.clip: [none], seed: [1, 2]}", 4,
              "{\"algorithm.clip\":\"none\"}");
  sweep_grid grid;
  sweep_cells cells;
  cfg_doc *doc =
      grid_of(BASE "sweep: {algorithm.clip: [none, ppo], algorithm: [grpo, gepo]}", &grid);
  ASSERT_OK(sweep_expand(&cells, doc, &grid, &(sweep_expansion){.check = 1}, &err));
  CU_ASSERT_PTR_NOT_NULL(
      strstr(cells.cells[1].recipe, "\"algorithm\":{\"base\":\"gepo\",\"clip\":\"none\"}"));
  CU_ASSERT_STRING_EQUAL(cells.cells[1].algorithm, "gepo"); /* clip is an axis of its own */
  sweep_cells_fini(&cells);
  cfg_free(doc);
}

/* --- what is refused --- */

static void check_refused(const char *text, const char *override, const char *says) {
  sweep_grid grid;
  sweep_cells cells = {0};
  gl_error err = {0};
  cfg_doc *doc = loaded(text, override, &grid, &err);
  gl_status status = doc != NULL
                         ? sweep_expand(&cells, doc, &grid, &(sweep_expansion){.check = 1}, &err)
                         : GL_EINPUT;
  const int ok = status == GL_EINPUT && strstr(err.text, says) != NULL;
  if (!ok) fprintf(stderr, "wanted '%s'\n   got '%s'\n", says, err.text);
  CU_ASSERT(ok);
  sweep_cells_fini(&cells);
  cfg_free(doc);
}

TEST(an_override_that_no_cell_would_see_is_refused) {
  static const char text[] = BASE "algorithm: gepo\nsweep: {algorithm: [grpo, gepo], seed: [1]}";
  check_refused(text, "algorithm.clip=none", "command line:1:16: in 'algorithm.clip=none'");
  check_refused(text, "algorithm.clip=none", "sweep.algorithm.clip=[none]");
  check_refused(text, "algorithm=tis", "sweep.algorithm=[");
  check_refused(text, "seed=5", "sweep.seed=null");
  sweep_grid grid;
  gl_error err = {0};
  cfg_doc *doc = loaded(text, "sweep.algorithm.clip=[none]", &grid, &err);
  CU_ASSERT_PTR_NOT_NULL(doc);
  cfg_free(doc);
  doc = loaded(text, "train.epochs=2", &grid, &err);
  CU_ASSERT_PTR_NOT_NULL(doc);
  cfg_free(doc);
}

TEST(a_wrong_cell_is_found_wherever_it_is) {
  check_refused(BASE "sweep: {seed: [1, 2], optimizer.lr: [0.1, -1]}", NULL, "cells:7:43: ");
  check_refused(BASE "sweep: {seed: [1, x]}", NULL, "cells:7:19: ");
  check_refused(BASE "sweep: {world.arms: [2, 0], seed: [1, 2]}", NULL, "cells:7:25: ");
  check_refused(BASE "sweep: {cluster.window: [2, -1], seed: [1, 2]}", NULL, "cells:7:29: ");
  check_refused(BASE "sweep: {seed: [1, 2, 1]}", NULL, "same cell twice");
  check_refused(BASE "sweep: {algorithm: [grpo, grpo]}", NULL, "shown as 'grpo'");
  check_refused(BASE "sweep: {random: [1]}", NULL, "is a list; it must be a map");
}

TEST(a_grid_beyond_the_limit_is_refused_with_its_size) {
  check_refused(BASE "sweep: {seed: {from: 1, to: 1000, n: 1000}, steps: {from: 1, to: 1000, n: "
                     "1000}, optimizer.lr: [0.1, 0.2]}",
                NULL, "1000 \xc3\x97 1000 \xc3\x97 2 = 2000000 cells, and a study at most 1000000");
}

/* --- watching --- */

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

TEST(listing_cells_is_watched_and_ends_when_asked) {
  sweep_grid grid;
  sweep_cells cells;
  gl_error err = {0};
  cfg_doc *doc = grid_of(BASE "sweep: {algorithm: [grpo, gepo], train.epochs: [1, 2], seed: {from: "
                              "1, to: 3000, n: 3000}}",
                         &grid);
  watch w = {.stop_at = 100000};
  sweep_expansion how = {.check = 1, .tick = see, .self = &w};
  CU_ASSERT_EQUAL(sweep_expand(&cells, doc, &grid, &how, &err), GL_OK);
  CU_ASSERT_EQUAL(cells.n_cells, 12000);
  CU_ASSERT(w.calls >= 12 && w.last >= 10976); /* at least every 1024 cells */
  CU_ASSERT_EQUAL(w.total, 12000);
  sweep_cells_fini(&cells);
  static const size_t stops[] = {0, 1, 2999, 9000};
  for (size_t i = 0; i < 4; ++i) {
    gl_error_clear(&err);
    w = (watch){.stop_at = stops[i]};
    CU_ASSERT_EQUAL(sweep_expand(&cells, doc, &grid, &how, &err), GL_EINTERRUPTED);
    CU_ASSERT(w.last >= stops[i] && w.last <= stops[i] + 1024);
    CU_ASSERT_PTR_NULL(cells.cells);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "nothing was run"));
  }
  cfg_free(doc);
}
