/* A sweep as a list of cells, and the contrasts that its recipe declares. A cell is a complete
 * recipe. Its key is the hash of the recipe's canonical form and of RECIPE_MEANING, the version of
 * what recipes mean. The key does not depend on layout, order of keys, or the rest of the sweep;
 * with another RECIPE_MEANING it is a different cell. */
#ifndef GEPOLAB_EXPERIMENTS_SWEEP_GRID_H
#define GEPOLAB_EXPERIMENTS_SWEEP_GRID_H

#include "analysis/contrasts.h"
#include "core/base/error.h"
#include "core/config/config.h"
#include "core/policy/algorithm.h"
#include "core/store/store.h"
#include "experiments/recipe/designs.h"

#include <stddef.h>
#include <stdint.h>

typedef struct sweep_axis {
  const char *path;       /* dotted path; borrowed */
  const cfg_node *values; /* a non-empty list; borrowed */
} sweep_axis;

enum { SWEEP_MAX_AXES = 32 };

typedef struct sweep_grid {
  sweep_axis axes[SWEEP_MAX_AXES]; /* the first varies slowest */
  size_t n_axes;
} sweep_grid;

typedef struct sweep_cell {
  char key[33];
  char place[33]; /* place in the study, independent of what is chosen: hash of the recipe with the
                     fields that `tune` chooses left open */
  char *identity; /* text of which the key is the hash: the meaning of recipes, and the recipe;
                     owned */
  const char *recipe; /* canonical JSON of the whole cell; points into identity */
  const char *swept;  /* canonical JSON of the swept fields except algorithm and seed; in identity's
                         memory */
  const char *source; /* path of the recipe's file, NULL: none; borrowed from the list of cells */
  char *chosen;       /* canonical JSON of what `tune` chose; NULL: nothing; owned */
  char algorithm[POLICY_NAME_SIZE];
  uint64_t seed;
  size_t steps;   /* number of updates */
  int is_llm;     /* 1: the world is a transformer */
  double lr;      /* optimizer.lr, or its default */
  size_t ordinal; /* index in the grid */
} sweep_cell;

/* The values that `tune` chose for the algorithm with that shown name. */
typedef struct sweep_choice {
  char algorithm[POLICY_NAME_SIZE];
  const cfg_node
      *value[TUNED_FIELDS_MOST]; /* a value for each of tuned_fields_of() the recipe; borrowed */
  double lr;                     /* learning rate of the best runs */
  double score;
  unsigned edges; /* bit i: value[i] is the smallest or the largest number that was tried */
} sweep_choice;

typedef struct sweep_cells {
  sweep_cell *cells;
  size_t n_cells;
  char *source; /* path of the recipe's file, NULL: none; owned */
} sweep_cells;

/* Parses the `sweep` section as a grid. recipe_load() has already replaced ranges and random search
 * by lists: the axis `random` has maps from paths to values. Errors: GL_EINPUT (missing, empty, an
 * axis that is not a list, an override that an axis would undo in every cell). */
gl_status sweep_grid_read(sweep_grid *grid, const cfg_doc *doc, gl_error *err);

/* Options of the expansion of a grid. {0}: no checks, no callback, and tuned fields as stated in
 * the recipe. */
typedef struct sweep_expansion {
  const sweep_choice *choices; /* [n_choices] set the tuned fields by algorithm */
  size_t n_choices;
  int check; /* 1: checks every section of every cell, and rejects two algorithms with one shown
                name and two equal cells */
  /* Called every few milliseconds with the number of cells so far; a nonzero result stops with
   * GL_EINTERRUPTED. May be NULL. */
  int (*tick)(void *self, size_t done, size_t total);
  void *self;
} sweep_expansion;

/* Expands every cell of the grid over the recipe, in grid order; at most 1,000,000, which is
 * checked first. Release with sweep_cells_fini(). */
gl_status sweep_expand(sweep_cells *out, const cfg_doc *doc, const sweep_grid *grid,
                       const sweep_expansion *how, gl_error *err);
void sweep_cells_fini(sweep_cells *s);
/* Whether an earlier cell has the same swept fields, and so the same cluster: cells that differ
 * only in algorithm and seed do. */
bool sweep_cell_repeats(const sweep_cells *s, size_t i);

/* Parses a cell's recipe into its own document. */
gl_status sweep_cell_recipe(cfg_doc **out, const sweep_cell *cell, gl_error *err);

/* --- declared contrasts --- */

/* The contrasts that a recipe declares before its study is run:
 *
 *   contrasts:
 *     - name: gate
 *       measure: fall                       # or another contrast_measure
 *       of: {algorithm: ratio gate, cluster.preset: fifo}
 *       against: {algorithm: ratio, cluster.preset: fifo}
 *
 * An arm gives the algorithm's shown name and enough fields to identify one setting. */

typedef struct declared_contrasts {
  contrast *contrast; /* [n]; texts are borrowed from the recipe */
  size_t n;
} declared_contrasts;

/* Parses the recipe's `contrasts`; n is 0 if it has none. Release with declared_contrasts_fini(),
 * also after an error. Errors: GL_EINPUT with line and column (an unknown key, measure or field; a
 * duplicate name). */
gl_status declared_contrasts_read(declared_contrasts *out, const cfg_doc *doc, gl_error *err);
void declared_contrasts_fini(declared_contrasts *d);

/* Checks the contrasts without storing them. Errors: also GL_EINPUT for an algorithm that no cell
 * of the sweep has. */
gl_status declared_contrasts_check(const cfg_doc *doc, const sweep_cells *cells, gl_error *err);

/* Sets the origin of each contrast: whether a recipe that the study holds declares it. */
gl_status declared_contrasts_origins(declared_contrasts *d, store *from, const char *study,
                                     gl_error *err);
/* If the study has finished runs, removes the contrasts that no recipe of it declares from doc: the
 * contrasts of the recipes that a study holds were declared before its runs. */
gl_status declared_contrasts_forget_later(cfg_doc *doc, store *of, const char *study,
                                          gl_error *err);

#endif
