/* Places of cells: the same whatever rate is chosen, and no two cells of a grid share one. */
#include "experiments/sweep/grid.h"
#include "experiments/sweep/tune.h"
#include "tests/support/suite.h"

#include <math.h>
#include <string.h>

SUITE("sweep: places");

static const char recipe[] = "name: places\nsteps: 10\n"
                             "world: {kind: bandit, rewards: [1, 0, 0.5]}\n"
                             "optimizer: {kind: adam, lr: 0.05}\n"
                             "train: {groups: 2, group_size: 4}\n"
                             "sweep: {algorithm: [grpo, gepo], seed: [1, 2]}\n"
                             "tune: {lr: [0.02, 0.1], seeds: [101]}\n";

/* The grid's cells, or the tuning runs', with these rates for grpo and gepo (0: none chosen). */
static sweep_cells expand(const char *text, int tuning, double grpo, double gepo) {
  sweep_choice choices[] = {{.algorithm = "grpo"}, {.algorithm = "gepo"}};
  const sweep_expansion how = {.choices = choices, .n_choices = grpo > 0 ? 2 : 0, .check = 1};
  tune_plan plan = {.rungs = 1};
  sweep_cells cells = {0};
  sweep_grid grid;
  cfg_doc *doc = NULL;
  gl_error err = {0};
  gl_status status = cfg_load_text(&doc, text, strlen(text), "places", &err);
  if (status == GL_OK) status = sweep_grid_read(&grid, doc, &err);
  if (status == GL_OK) status = tune_plan_read(&plan, doc, &grid, 10, &err);
  for (size_t i = 0; how.n_choices > 0 && i < cfg_size(plan.fields.values[0]); ++i) {
    const cfg_node *node = cfg_at(plan.fields.values[0], i);
    double lr = NAN;
    CU_ASSERT(cfg_number(node, &lr));
    if (lr == grpo) choices[0].value[0] = node;
    if (lr == gepo) choices[1].value[0] = node;
  }
  if (status == GL_OK) status = sweep_expand(&cells, doc, tuning ? &plan.grid : &grid, &how, &err);
  tune_plan_fini(&plan);
  if (status != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_EQUAL_FATAL(status, GL_OK);
  cfg_free(doc);
  return cells;
}

TEST(a_place_does_not_depend_on_the_rate_that_was_chosen) {
  sweep_cells open = expand(recipe, 0, 0, 0), one = expand(recipe, 0, 0.02, 0.1),
              other = expand(recipe, 0, 0.1, 0.1);
  CU_ASSERT_EQUAL_FATAL(one.n_cells, 4);
  for (size_t i = 0; i < 4; ++i) {
    CU_ASSERT_STRING_EQUAL(one.cells[i].place, open.cells[i].place);
    CU_ASSERT_STRING_EQUAL(one.cells[i].place, other.cells[i].place);
    const int same = strcmp(one.cells[i].key, other.cells[i].key) == 0;
    CU_ASSERT_EQUAL(same, i >= 2); /* gepo has the same rate in both */
    for (size_t k = 0; k < i; ++k)
      CU_ASSERT_STRING_NOT_EQUAL(one.cells[i].place, one.cells[k].place);
  }
  sweep_cells_fini(&open);
  sweep_cells_fini(&one);
  sweep_cells_fini(&other);
}

/* Their rates are an axis: two rates are two places. */
TEST(tuning_runs_of_two_rates_have_two_places) {
  sweep_cells runs = expand(recipe, 1, 0, 0);
  CU_ASSERT_EQUAL_FATAL(runs.n_cells, 4);
  for (size_t i = 0; i < 4; ++i)
    for (size_t k = 0; k < i; ++k)
      CU_ASSERT_STRING_NOT_EQUAL(runs.cells[i].place, runs.cells[k].place);
  sweep_cells_fini(&runs);
}

/* Without `tune` a rate is the recipe's own: another one is another place. */
TEST(a_rate_that_the_recipe_states_is_part_of_the_place) {
  static const char with[] = "name: places\nsteps: 10\nworld: {kind: bandit, rewards: [1, 0]}\n"
                             "optimizer: {lr: 0.05}\ntrain: {groups: 2, group_size: 4}\n"
                             "sweep: {seed: [1]}\n";
  char other[sizeof with];
  memcpy(other, with, sizeof with);
  strstr(other, "0.05")[3] = '6';
  sweep_cells a = expand(with, 0, 0, 0), b = expand(other, 0, 0, 0);
  CU_ASSERT_STRING_EQUAL(a.cells[0].place, a.cells[0].key);
  CU_ASSERT_STRING_NOT_EQUAL(a.cells[0].place, b.cells[0].place);
  sweep_cells_fini(&a);
  sweep_cells_fini(&b);
}
