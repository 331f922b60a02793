#include "core/learner.h"

/* The key of a section, or the section, whichever is there. */
static const cfg_node *place(const cfg_node *section, const char *key) {
  const cfg_node *node = section != NULL ? cfg_find(section, key) : NULL;
  return node != NULL ? node : section;
}

gl_status learner_setup_check(const learner_setup *s, gl_error *err) {
  if (s->minibatches < 1 || s->epochs < 1 || s->n_groups < 1 || s->group_size < 1)
    return cfg_fail(s->train, err,
                    "train.groups, group_size, minibatches and epochs must each be 1 or more");
  if (s->minibatches <= s->n_groups) return GL_OK;
  return cfg_fail(place(s->train, "minibatches"), err,
                  "train.minibatches is %zu, but a batch has only %zu groups to split; use fewer "
                  "minibatches or more groups",
                  s->minibatches, s->n_groups);
}
