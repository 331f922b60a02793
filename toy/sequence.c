/* The sequence world: a vocabulary, a horizon, prompts, and a task that a whole response solves or
 * does not. */
#include "toy/tasks.h"
#include "toy/world.h"

#include <stdlib.h>

enum { MAX_PROMPTS = 1 << 20 };

gl_status toy_sequence_parse(toy_world *w, cfg_reader *r, const cfg_node *section, uint64_t seed,
                             size_t *modulus, gl_error *err) {
  static const char *const gradings[] = {"exact", "graded"};
  size_t vocabulary = cfg_count(r, "vocabulary", 4, 1, TOY_MAX_RESPONSES);
  size_t horizon = cfg_count(r, "horizon", 4, 1, TOY_MAX_PATH);
  int end = cfg_bool(r, "end_token", 0);
  w->n_prompts = cfg_count(r, "prompts", 4, 1, MAX_PROMPTS);
  toy_task_spec task = {.task =
                            (toy_task)cfg_choice(r, "task", TASK_SUM_MOD, toy_task_names, N_TASKS)};
  task.graded = cfg_choice(r, "reward", 0, gradings, 2);
  task.modulus = *modulus = cfg_count(r, "modulus", vocabulary, 1, TOY_MAX_RESPONSES);
  task.needle_length = cfg_count(r, "needle_length", horizon < 2 ? 1 : 2, 1, horizon);
  if (r->status != GL_OK) return r->status;
  gl_error size_error = {0};
  gl_status status = toy_tree_init(&w->tree, vocabulary + (end ? 1 : 0), horizon, end, &size_error);
  if (status == GL_EINPUT) {
    const cfg_node *place = cfg_find(section, "horizon");
    if (place == NULL) place = cfg_find(section, "vocabulary");
    return cfg_fail(place != NULL ? place : section, err, "%s", size_error.text);
  }
  if (status != GL_OK) return gl_fail(err, status, "%s", size_error.text);
  status = toy_reserve_rewards(w, section, err);
  if (status != GL_OK) return status;
  return toy_task_rewards(&task, &w->tree, w->n_prompts, seed, w->reward, err);
}
