/* The tables of a recipe's fields. */
#include "experiments/recipe/fields.h"

#include "core/policy/algorithm.h"
#include "core/rl/fields.h"
#include "core/rl/sequence_task.h"
#include "llm/llm.h"
#include "llm/model/model.h"
#include "llm/task/task.h"
#include "sim/cluster.h"
#include "toy/lab/lab.h"
#include "toy/toy.h"
#include "toy/world/mdp.h"

static const char *world_kind_at(size_t i) {
  size_t n = 0;
  while (toy_kind_at(n, NULL) != NULL) ++n;
  return i < n ? toy_kind_at(i, NULL) : i == n ? "llm" : mdp_kind_at(i - n - 1, NULL);
}

static const field world[] = {
    FIELD("world", "world", SECTION, "", NULL, "what is learned"),
    FIELD("world.kind", "world kind", CHOICE_AT(world_kind_at), "", NULL,
          "bandit, sequence, automaton or llm; for `gepolab lab bias` also chain, gridworld, "
          "garnet and "
          "token. "
          "Required"),
};
static FIELD_TABLE(world_fields, world);

void recipe_fields_use(void) {
  static const field_table *const tables[] = {
      &study_fields, &policy_fields,     &design_fields,     &rl_fields,       &sim_fields,
      &world_fields, &evaluation_fields, &toy_bandit_fields, &sequence_fields, &toy_fields,
      &llm_fields,   &llm_model_fields,  &llm_task_fields,   &lab_fields};
  for (size_t i = 0; i < sizeof tables / sizeof *tables; ++i) fields_add(tables[i]);
}
