/* A sweep as a list of cells, and the contrasts that its recipe declares. A cell is a complete
 * recipe; its key is the hash of that recipe's canonical form and of what recipes mean
 * (RECIPE_MEANING), so it does not depend on layout, order of keys, or on the rest of the sweep,
 * and a cell of another meaning is another cell.
 */
#ifndef GEPOLAB_EXPERIMENTS_SWEEP_SWEEP_CELLS_H
#define GEPOLAB_EXPERIMENTS_SWEEP_SWEEP_CELLS_H

#include "analysis/contrasts.h"
#include "core/base/error.h"
#include "core/config/config.h"
#include "core/policy/algorithm.h"
#include "experiments/recipe/designs.h"

#include <stddef.h>
#include <stdint.h>

typedef struct sweep_axis {
  const char *path;       /* dotted; borrowed */
  const cfg_node *values; /* a list that is not empty; borrowed */
} sweep_axis;

enum { SWEEP_MAX_AXES = 32 };

typedef struct sweep_grid {
  sweep_axis axes[SWEEP_MAX_AXES]; /* the first varies slowest */
  size_t n_axes;
} sweep_grid;

typedef struct sweep_cell {
  char key[33];
  char place[33]; /* its place in the study, whatever is chosen for it: likewise the hash of
                     the recipe, with the fields left open that `tune` chooses */
  char *identity; /* what the key is the hash of: the meaning of recipes, and the recipe; owned */
  const char *recipe; /* canonical JSON of the whole cell; part of identity */
  const char *swept;  /* canonical JSON of what is swept besides algorithm and seed; in identity's
                         memory */
  const char *source; /* path of the file it came from, NULL: none; that of its cells */
  char *chosen;       /* canonical JSON of what `tune` chose for it; NULL: nothing; owned */
  char algorithm[POLICY_NAME_SIZE];
  uint64_t seed;
  size_t steps;   /* updates it makes */
  int is_llm;     /* its world is a transformer's */
  double lr;      /* optimizer.lr, its default included */
  size_t ordinal; /* position in the grid */
} sweep_cell;

/* The values that `tune` chose for the algorithm of that shown name. */
typedef struct sweep_choice {
  char algorithm[POLICY_NAME_SIZE];
  const cfg_node
      *value[TUNED_FIELDS_MOST]; /* of each of the recipe's tuned_fields_of(); borrowed */
  double lr;                     /* the rate of the runs that were best */
  double score;
  unsigned edges; /* bit i: value[i] is the smallest or the largest number that was tried */
} sweep_choice;

typedef struct sweep_cells {
  sweep_cell *cells;
  size_t n_cells;
  char *source; /* path of the file that the recipe came from, NULL: none; owned */
} sweep_cells;

/* The `sweep` section as a grid, ranges and random search being lists by now (recipe_load()): the
 * axis `random` has maps from paths to values. GL_EINPUT if it is missing, empty, an axis is not a
 * list, or an override would be undone by an axis in every cell. */
gl_status sweep_grid_read(sweep_grid *grid, const cfg_doc *doc, gl_error *err);

/* How a grid becomes cells; {0}: unchecked, unwatched, with what the recipe itself says of fields
 * that `tune` chooses. */
typedef struct sweep_expansion {
  const sweep_choice *choices; /* [n_choices] set the tuned fields by algorithm */
  size_t n_choices;
  int check; /* every cell is read by all its rooms, and two algorithms of one shown name, or two
                equal cells, are refused */
  /* Called every few milliseconds with the number of cells so far; what is not 0 ends the work with
   * GL_EINTERRUPTED. NULL: nobody watches. */
  int (*tick)(void *self, size_t done, size_t total);
  void *self;
} sweep_expansion;

/* Every cell of the grid over the recipe, in grid order: at most 1,000,000, which is found out
 * before anything else. Release with sweep_cells_fini(). */
gl_status sweep_expand(sweep_cells *out, const cfg_doc *doc, const sweep_grid *grid,
                       const sweep_expansion *how, gl_error *err);
void sweep_cells_fini(sweep_cells *s);

/* The recipe of a cell as a doc of its own. */
gl_status sweep_cell_recipe(cfg_doc **out, const sweep_cell *cell, gl_error *err);

/* --- declared contrasts --- */

/* The contrasts that a recipe declares before its study is run:
 *
 *   contrasts:
 *     - name: gate
 *       measure: fall                       # or last: the last score
 *       of: {algorithm: ratio gate, cluster.preset: fifo}
 *       against: {algorithm: ratio, cluster.preset: fifo}
 *
 * An arm names the algorithm as it is shown, and enough fields to identify one setting. */

typedef struct declared_contrasts {
  contrast *contrast; /* [n]; texts are borrowed from the recipe */
  size_t n;
} declared_contrasts;

/* Reads the recipe's `contrasts`; n is 0 where it has none. GL_EINPUT with line and column for an
 * unknown key, measure or field, and a name that two contrasts have. Release with
 * declared_contrasts_fini() in any case. */
gl_status declared_contrasts_read(declared_contrasts *out, const cfg_doc *doc, gl_error *err);
void declared_contrasts_fini(declared_contrasts *d);

/* Only checks them: GL_EINPUT also for an algorithm that no cell of the sweep has. */
gl_status declared_contrasts_check(const cfg_doc *doc, const sweep_cells *cells, gl_error *err);

#endif
